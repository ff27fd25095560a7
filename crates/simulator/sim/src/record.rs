//! Results of a run.

use hdrhistogram::Histogram;
use tacit_between::{fastack, fwp, hack};
use tacit_link::wifi::{Airtime, StationAirtime, Turns};
use tacit_link::wired::PipeCounters;
use tacit_packet::Stats;
use tacit_packet::units::{BitRate, Bytes, Duration, FlowId, HostId, Instant};

/// Results of a run. Counters cover the measured window unless they say otherwise.
#[derive(Clone, Debug)]
pub struct RunOutcome {
    /// Hash of the whole event trace: equal for equal setups, in debug and release.
    pub digest: u64,
    /// Events processed in the whole run.
    pub events: u64,
    /// Length of the measured window.
    pub measured: Duration,
    /// One per flow, in the order of the setup.
    pub flows: Vec<FlowOutcome>,
    /// One per application, in the order of the setup.
    pub applications: Vec<ApplicationOutcome>,
    /// One per basic service set, in the order of the setup.
    pub bss: Vec<BssOutcome>,
    /// Two per wired link, in the order of the setup: forward, backward.
    pub pipes: Vec<PipeOutcome>,
    /// Samples, by time then flow; empty unless asked for.
    pub series: Vec<SeriesPoint>,
    /// The first this many users are a group of their own; `None` for no groups.
    pub adopters: Option<u32>,
}

impl RunOutcome {
    /// Payload of all flows per second of the measured window, in bits.
    pub fn goodput_bps(&self) -> f64 {
        self.flows.iter().map(|flow| flow.goodput_bps(self.measured)).sum()
    }

    /// Payload rate of all flows over the time in which at least one of them was in progress, including start-up, in
    /// bits per second; 0 if none ever started.
    pub fn transfer_goodput_bps(&self) -> f64 {
        let mut times: Vec<_> =
            self.flows.iter().map(|flow| (flow.started_at, flow.started_at + flow.lasted)).collect();
        times.sort_unstable();
        let (mut under_way, mut until) = (Duration::ZERO, Instant::ZERO);
        for (from, to) in times {
            under_way += to.saturating_since(from.max(until));
            until = until.max(to);
        }
        let bytes: u64 = self.flows.iter().map(|flow| flow.delivered_total.0).sum();
        if under_way == Duration::ZERO { 0.0 } else { bytes as f64 * 8.0 / under_way.as_secs_f64() }
    }
}

/// Outcome of a flow.
#[derive(Clone, Debug)]
pub struct FlowOutcome {
    /// The flow.
    pub flow: FlowId,
    /// The sender of data.
    pub source: HostId,
    /// The receiver of data.
    pub sink: HostId,
    /// Number of the user whose flow it is, from 0.
    pub user: u32,
    /// Payload bytes that arrived at the receiver in the measured window, each counted once. Includes bytes that wait
    /// for earlier ones, but not those that were already waiting when the window began.
    pub delivered: Bytes,
    /// Payload bytes delivered to the receiving application in order, over the whole run.
    pub delivered_total: Bytes,
    /// When the sink had received everything, for flows of a fixed size.
    pub completed_at: Option<Instant>,
    /// When its source starts.
    pub started_at: Instant,
    /// True for a flow of a fixed number of bytes.
    pub is_sized: bool,
    /// From its start until the sink had received everything, or to the end of the run.
    pub lasted: Duration,
    /// Statistics of the source's end of the connection over the whole run; `None` for datagrams.
    pub sender: Option<Stats>,
    /// Statistics of the sink's end of the connection over the whole run; `None` for datagrams.
    pub receiver: Option<Stats>,
    /// Reports of the sink to the source over the whole run, for datagrams with reports.
    pub reports: Option<Reports>,
    /// Counters of its ACKs at TCP/HACK drivers over the whole run; `None` without such drivers.
    pub hack: Option<hack::FlowCounters>,
}

/// Outcome of a program, from its user's point of view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApplicationOutcome {
    /// Its name.
    pub name: String,
    /// The flows it fed.
    pub flows: Vec<FlowId>,
    /// Number of flows that carry data to users; they come first, and the others repair them.
    pub data_flows: usize,
    /// Its results.
    pub result: ApplicationResult,
}

/// Results of a program, by its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApplicationResult {
    /// Pages were loaded.
    Pages(PageLoads),
    /// Data was sent in on and off periods.
    OnOff(OnOffTimes),
    /// A video was played.
    Stream(VideoPlayed),
    /// A body was downloaded and repaired.
    Download(Downloaded),
}

/// Pages finished in the measured window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageLoads {
    /// Times from the request for the document to the last byte of the last object, ascending. The first page of a
    /// connection includes its opening.
    pub load_times: Vec<Duration>,
    /// That of the page that was finished last; of several users, the longest.
    pub last: Option<Duration>,
    /// When the page that is unfinished at the end of the run was requested.
    pub waiting_since: Option<Instant>,
}

impl PageLoads {
    /// The load time that this share of the pages did not exceed: nearest rank, in percent from 1 to 100.
    pub fn percentile(&self, percent: usize) -> Option<Duration> {
        let rank = (self.load_times.len() * percent).div_ceil(100);
        self.load_times.get(rank.checked_sub(1)?).copied()
    }

    /// Mean load time in seconds; `None` without a page.
    pub fn mean_s(&self) -> Option<f64> {
        let total: Duration = self.load_times.iter().copied().sum();
        (!self.load_times.is_empty()).then(|| total.as_secs_f64() / self.load_times.len() as f64)
    }

    /// All pages of several users together.
    pub fn merged<'a>(users: impl Iterator<Item = &'a Self> + Clone) -> Self {
        let last = users.clone().filter_map(|user| user.last).max();
        let mut load_times: Vec<Duration> = users.flat_map(|user| user.load_times.iter().copied()).collect();
        load_times.sort_unstable();
        Self { load_times, last, waiting_since: None }
    }
}

/// When an on-off source was on in the measured window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OnOffTimes {
    /// Number of sending periods.
    pub periods: u64,
    /// Total duration of sending.
    pub on_time: Duration,
}

/// Playback of a video in the measured window, as its viewer saw it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VideoPlayed {
    /// Frames played, including damaged ones.
    pub frames_played: u64,
    /// Frames played without some of their bytes.
    pub frames_damaged: u64,
    /// How often the player ran dry.
    pub rebuffers: u64,
    /// Total waiting time after it ran dry.
    pub rebuffering: Duration,
    /// From the first frame to the last, including waits.
    pub watched: Duration,
    /// From the start of the source to the first played frame; `None` if no frame was played.
    pub start_up: Option<Duration>,
}

impl VideoPlayed {
    /// Fraction of the viewing time that was spent waiting; `None` if nothing was viewed.
    pub fn rebuffering_ratio(&self) -> Option<f64> {
        (self.watched != Duration::ZERO).then(|| self.rebuffering.as_secs_f64() / self.watched.as_secs_f64())
    }
}

/// Results of a download whose holes are repaired, in the measured window unless a field says otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Downloaded {
    /// Bytes of the body handed to the user, in order.
    pub released: Bytes,
    /// The same since the start of the run.
    pub released_total: Bytes,
    /// Holes in the body, and in answers that should repair it.
    pub holes: u64,
    /// Bytes in them.
    pub hole_bytes: Bytes,
    /// Of these, bytes whose original arrived late.
    pub late_bytes: Bytes,
    /// Requests for bytes in holes.
    pub repair_requests: u64,
    /// Of these, requests whose answer left a hole open.
    pub repeated_repairs: u64,
    /// Bytes of those requests.
    pub request_bytes: Bytes,
    /// Bytes of heads of answers.
    pub head_bytes: Bytes,
    /// Bytes of bodies of answers.
    pub answer_bytes: Bytes,
    /// Time from the detection of a hole to the release of its last byte, in microseconds.
    pub repair_delay_us: Percentiles,
    /// Most bytes that waited behind holes; whole run.
    pub held_peak: Bytes,
    /// When everything was released; `None` for an endless body.
    pub completed_at: Option<Instant>,
    /// Why it failed; whole run.
    pub failure: Option<String>,
}

impl Downloaded {
    /// Bytes that repair adds on the path from the server, relative to the bytes handed on.
    pub fn internet_overhead(&self) -> Option<f64> {
        self.over_released(self.request_bytes + self.head_bytes + self.answer_bytes)
    }

    /// The same for the wireless hop, without bytes that any repair would send again: heads and requests.
    pub fn wireless_overhead(&self) -> Option<f64> {
        self.over_released(self.request_bytes + self.head_bytes)
    }

    fn over_released(&self, bytes: Bytes) -> Option<f64> {
        (self.released.0 > 0).then(|| bytes.0 as f64 / self.released.0 as f64)
    }
}

/// Counts of reports from a sink of datagrams to their source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reports {
    /// Reports sent.
    pub sent: u64,
    /// Datagrams that arrived, as known to the source.
    pub reported_datagrams: u64,
    /// Datagrams that arrived.
    pub arrived_datagrams: u64,
}

impl FlowOutcome {
    /// Payload bits per second of a window of `measured`.
    pub fn goodput_bps(&self, measured: Duration) -> f64 {
        self.delivered.0 as f64 * 8.0 / measured.as_secs_f64()
    }

    /// Time from its start until the sink had received everything; `None` for an endless or incomplete flow.
    pub fn completion_time(&self) -> Option<Duration> {
        self.completed_at.map(|at| at.saturating_since(self.started_at))
    }

    /// Payload bits per second from its start to its last byte, including start-up; 0 for a flow that never started.
    pub fn transfer_goodput_bps(&self) -> f64 {
        match self.lasted {
            Duration::ZERO => 0.0,
            lasted => self.delivered_total.0 as f64 * 8.0 / lasted.as_secs_f64(),
        }
    }
}

/// Results of a channel.
#[derive(Clone, Debug)]
pub struct BssOutcome {
    /// Time that packets of all stations waited in reorder buffers behind gaps, of those that waited.
    pub reorder_delay_us: Percentiles,
    /// Use of time; the sum is exactly the measured window, times the number of links.
    pub airtime: Airtime,
    /// Each link of multi-link devices; the channel itself without them.
    pub links: Vec<LinkOutcome>,
    /// What clients with one radio for several links could not hear.
    pub radios: tacit_link::wifi::RadioTimes,
    /// One per station, the access point first.
    pub stations: Vec<StationOutcome>,
}

impl BssOutcome {
    /// Channel accesses on all links, successful or failed; a collision counts once.
    pub fn accesses(&self) -> u64 {
        self.links.iter().map(|link| link.counts.accesses).sum()
    }

    /// Accesses on all links in which two or more stations sent at the same time.
    pub fn collisions(&self) -> u64 {
        self.links.iter().map(|link| link.counts.collisions).sum()
    }
}

/// Results of a link.
#[derive(Clone, Debug)]
pub struct LinkOutcome {
    /// Use of time; the sum is exactly the measured window.
    pub airtime: Airtime,
    /// What happened on it.
    pub counts: tacit_link::wifi::LinkCounts,
    /// Time in which the window that the links have in common kept the access point from sending here.
    pub stalled: Duration,
}

/// Results of a station.
#[derive(Clone, Debug)]
pub struct StationOutcome {
    /// Its host.
    pub host: HostId,
    /// Counters of its MAC.
    pub counters: tacit_link::wifi::StationCounters,
    /// Counters of its driver.
    pub driver: DriverCounters,
    /// Its share of the channel's time.
    pub airtime: StationAirtime,
    /// Time from queueing to first transmission of its packets, in microseconds.
    pub queueing_delay_us: Percentiles,
    /// The distinct delays, ascending, and the number of packets with each.
    pub queueing_delays_us: Vec<(u64, u64)>,
    /// Sum of those times; divided by the measured window it is the mean number of queued packets (Little's law).
    pub queueing_time: Duration,
    /// How the access point served it; empty for the access point.
    pub down: Turns,
    /// How it served the access point; empty for the access point.
    pub up: Turns,
    /// Most packets in one of its queues at the same time.
    pub queue_peak_packets: u64,
    /// Packets that its queues marked with ECN instead of dropping them; whole run.
    pub queue_marks: u64,
    /// Data PPDUs it sent, by number of MPDUs: entry 0 counts PPDUs of one MPDU.
    pub ppdu_sizes: Vec<u64>,
}

/// The driver between a station's MAC and its host, with its counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DriverCounters {
    /// No driver.
    #[default]
    Stock,
    /// TCP/HACK.
    Hack(hack::Counters),
    /// A driver that holds pure ACKs until later ones replace them.
    AckHold {
        /// Number of replaced ACKs.
        dropped: u64,
    },
    /// FastACK's agent.
    FastAck(fastack::Counters),
    /// FWP's shim.
    Fwp(fwp::Counters),
}

impl DriverCounters {
    /// Counters of TCP/HACK; `None` for a station without it.
    pub fn hack(&self) -> Option<hack::Counters> {
        if let Self::Hack(counters) = self { Some(*counters) } else { None }
    }

    /// Counters of FastACK's agent; `None` where there is none.
    pub fn fastack(&self) -> Option<fastack::Counters> {
        if let Self::FastAck(counters) = self { Some(*counters) } else { None }
    }

    /// Counters of FWP's shim; `None` where there is none.
    pub fn fwp(&self) -> Option<fwp::Counters> {
        if let Self::Fwp(counters) = self { Some(*counters) } else { None }
    }

    /// Pure ACKs that were held and then replaced by later ones.
    pub fn held_and_dropped_acks(&self) -> u64 {
        if let Self::AckHold { dropped } = self { *dropped } else { 0 }
    }

    /// Sum of the counters of two drivers of a station, which are of the same kind.
    #[must_use]
    pub(crate) fn plus(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Hack(one), Self::Hack(other)) => Self::Hack(one.plus(other)),
            (Self::AckHold { dropped: one }, Self::AckHold { dropped: other }) => {
                Self::AckHold { dropped: one + other }
            }
            (one, _) => *one,
        }
    }
}

/// Percentiles of a distribution; zero when it is empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Percentiles {
    /// Number of values.
    pub count: u64,
    /// Median.
    pub p50: u64,
    /// 95th percentile.
    pub p95: u64,
    /// 99th percentile.
    pub p99: u64,
    /// Largest.
    pub max: u64,
}

impl From<&Histogram<u64>> for Percentiles {
    fn from(values: &Histogram<u64>) -> Self {
        Self {
            count: values.len(),
            p50: values.value_at_quantile(0.50),
            p95: values.value_at_quantile(0.95),
            p99: values.value_at_quantile(0.99),
            max: values.max(),
        }
    }
}

/// Results of one direction of a wired or cellular link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PipeOutcome {
    /// The host at its start.
    pub from: HostId,
    /// The host at its end.
    pub to: HostId,
    /// Counts of packets by outcome.
    pub counters: PipeCounters,
    /// Time from queueing to the start of transmission, in microseconds.
    pub queueing_delay_us: Percentiles,
    /// The same of L4S packets in a queue with an AQM; `None` without such packets.
    pub l4s_queueing_delay_us: Option<Percentiles>,
    /// Propagation delay.
    pub delay: Duration,
    /// Bytes that it could have transferred in the measured window.
    pub capacity: Bytes,
}

/// One sample of one flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeriesPoint {
    /// Time of the sample.
    pub at: Instant,
    /// The flow.
    pub flow: FlowId,
    /// Payload bytes delivered since the start of the run.
    pub delivered_total: Bytes,
    /// The sender's congestion window; zero if it has none.
    pub congestion_window: Bytes,
    /// The sender's smoothed round-trip time; zero for datagrams or before the first sample.
    pub smoothed_rtt: Duration,
    /// Payload bytes that the sender knows to have arrived; zero for datagrams.
    pub acknowledged_total: Bytes,
    /// Packets that the sender sent, of any kind; zero for datagrams.
    pub packets_sent: u64,
    /// Packets retransmitted by the sender, including the handshake's; zero for datagrams.
    pub packets_retransmitted: u64,
    /// The sender's retransmission timeout including back-off, or that of its probes if the window is closed; zero if
    /// it has none.
    pub retransmission_timeout: Duration,
    /// Payload bytes that the receiver holds back because earlier ones are missing; `None` if the transport does not
    /// count them.
    pub blocked: Option<Bytes>,
    /// Sum of the waiting times of the packets at the head of the queues of wired and cellular links on the path from
    /// source to sink, of any sender.
    pub queueing: Duration,
    /// The sender's pacing rate; `None` if it does not pace.
    pub pacing_rate: Option<BitRate>,
    /// State of the sender's congestion control; `None` if it does not report one.
    pub congestion_state: Option<&'static str>,
}
