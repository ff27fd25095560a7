//! Results of a run.

use hdrhistogram::Histogram;
use tacit_link::wifi::{Airtime, StationAirtime, Turns};
use tacit_link::wired::PipeCounters;
use tacit_proto::transport::Stats;
use tacit_proto::units::{BitRate, Bytes, Duration, FlowId, HostId, Instant};
use tacit_proto::{fastack, fwp, hack};

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
}

impl RunOutcome {
    /// Payload of all flows per second of the measured window, in bits.
    pub fn goodput_bps(&self) -> f64 {
        self.flows.iter().map(|flow| flow.goodput_bps(self.measured)).sum()
    }

    /// Payload of all flows over the time in which at least one of them was under way, start-up included, in bits per
    /// second; 0 where none ever started.
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
    /// Which.
    pub flow: FlowId,
    /// Where data was sent from.
    pub source: HostId,
    /// Where it was received.
    pub sink: HostId,
    /// Payload bytes that came to the receiver in the measured window, each once: of those that wait for others before
    /// them too, but not of those that waited when the window began.
    pub delivered: Bytes,
    /// Payload bytes passed to the receiving application in order, over the whole run.
    pub delivered_total: Bytes,
    /// When the sink had everything, for flows of a fixed size.
    pub completed_at: Option<Instant>,
    /// When its source starts.
    pub started_at: Instant,
    /// Whether it has an end: a number of bytes and no more.
    pub is_sized: bool,
    /// From its start until the sink had everything, or to the end of the run.
    pub lasted: Duration,
    /// Statistics of the source's end of the connection over the whole run; `None` for datagrams.
    pub sender: Option<Stats>,
    /// Statistics of the sink's end of the connection over the whole run; `None` for datagrams.
    pub receiver: Option<Stats>,
    /// Reports of the sink to the source over the whole run, for datagrams with reports.
    pub reports: Option<Reports>,
    /// Fate of its ACKs at TCP/HACK drivers over the whole run; `None` where there are none.
    pub hack: Option<hack::FlowCounters>,
}

/// Outcome of a program, as its user would see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApplicationOutcome {
    /// Its name.
    pub name: String,
    /// The flows it fed.
    pub flows: Vec<FlowId>,
    /// The first so many of those bring data to users; the others repair it.
    pub data_flows: usize,
    /// Its results.
    pub result: ApplicationResult,
}

/// Results of a program, by its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApplicationResult {
    /// Pages were loaded.
    Pages(PageLoads),
    /// Data was sent on and off.
    OnOff(OnOffTimes),
    /// A video was played.
    Stream(VideoPlayed),
    /// A body was downloaded and repaired.
    Download(Downloaded),
}

/// Pages finished in the measured window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageLoads {
    /// From the question for the document to the last byte of the last object, ascending. The first page
    /// of a run includes the opening of its connections.
    pub load_times: Vec<Duration>,
    /// Since when the page under way at the end of the run is.
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
    pub fn merged<'a>(users: impl Iterator<Item = &'a Self>) -> Self {
        let mut load_times: Vec<Duration> = users.flat_map(|user| user.load_times.iter().copied()).collect();
        load_times.sort_unstable();
        Self { load_times, waiting_since: None }
    }
}

/// When an on-off source was on in the measured window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OnOffTimes {
    /// Times it began to send.
    pub periods: u64,
    /// For how long it was on.
    pub on_time: Duration,
}

/// Playback of a video in the measured window, as its viewer saw it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VideoPlayed {
    /// Frames played, damaged ones included.
    pub frames_played: u64,
    /// Frames played without some of their bytes.
    pub frames_damaged: u64,
    /// Times the player ran dry.
    pub rebuffers: u64,
    /// For how long it waited then.
    pub rebuffering: Duration,
    /// From the first frame to the last, waits included.
    pub watched: Duration,
    /// From the start of the source to the first frame played; `None` where none was.
    pub start_up: Option<Duration>,
}

impl VideoPlayed {
    /// Share of the time watched that was spent waiting; `None` where nothing was watched.
    pub fn rebuffering_ratio(&self) -> Option<f64> {
        (self.watched != Duration::ZERO).then(|| self.rebuffering.as_secs_f64() / self.watched.as_secs_f64())
    }
}

/// Results of a download whose holes are repaired, in the measured window unless a field says otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Downloaded {
    /// Bytes of the body handed to the user, in order.
    pub released: Bytes,
    /// Since the start of the run.
    pub released_total: Bytes,
    /// Holes in the body, and in answers that were to repair it.
    pub holes: u64,
    /// Bytes in them.
    pub hole_bytes: Bytes,
    /// Of those, bytes whose original came after all.
    pub late_bytes: Bytes,
    /// Requests for bytes in holes.
    pub repair_requests: u64,
    /// Of them, those whose answer left something open.
    pub repeated_repairs: u64,
    /// Bytes of those requests.
    pub request_bytes: Bytes,
    /// Bytes of heads of answers.
    pub head_bytes: Bytes,
    /// Bytes of bodies of answers.
    pub answer_bytes: Bytes,
    /// From the moment that a hole was known to the release of its last byte, in microseconds.
    pub repair_delay_us: Percentiles,
    /// Most bytes that waited behind holes; whole run.
    pub held_peak: Bytes,
    /// When everything was released; `None` for a body without an end.
    pub completed_at: Option<Instant>,
    /// Why it was given up; whole run.
    pub failure: Option<String>,
}

impl Downloaded {
    /// Bytes that repair adds to the way from the server, over bytes handed on.
    pub fn internet_overhead(&self) -> Option<f64> {
        self.over_released(self.request_bytes + self.head_bytes + self.answer_bytes)
    }

    /// The same for the wireless hop, without bytes that any repair sends again: heads and requests.
    pub fn wireless_overhead(&self) -> Option<f64> {
        self.over_released(self.request_bytes + self.head_bytes)
    }

    fn over_released(&self, bytes: Bytes) -> Option<f64> {
        (self.released.0 > 0).then(|| bytes.0 as f64 / self.released.0 as f64)
    }
}

/// Reports of a sink of datagrams to their source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reports {
    /// Reports sent.
    pub sent: u64,
    /// Datagrams that arrived, as far as the source knows.
    pub reported_datagrams: u64,
    /// Datagrams that arrived.
    pub arrived_datagrams: u64,
}

impl FlowOutcome {
    /// Payload bits per second of a window of `measured`.
    pub fn goodput_bps(&self, measured: Duration) -> f64 {
        self.delivered.0 as f64 * 8.0 / measured.as_secs_f64()
    }

    /// From its start until the sink had everything; `None` for a flow without an end, or that did not come to it.
    pub fn completion_time(&self) -> Option<Duration> {
        self.completed_at.map(|at| at.saturating_since(self.started_at))
    }

    /// Payload bits per second from its start to its last byte, start-up included; 0 for a flow that never
    /// started.
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
    /// Where the time went; adds up to the measured window exactly.
    pub airtime: Airtime,
    /// Channel accesses that succeeded or failed, collisions counted once.
    pub accesses: u64,
    /// Accesses in which two or more stations sent at once.
    pub collisions: u64,
    /// One per station, the access point first.
    pub stations: Vec<StationOutcome>,
}

/// Results of a station.
#[derive(Clone, Debug)]
pub struct StationOutcome {
    /// Which host.
    pub host: HostId,
    /// Counters of its MAC.
    pub counters: tacit_link::wifi::StationCounters,
    /// Counters of its driver.
    pub driver: DriverCounters,
    /// Its part of the channel's time.
    pub airtime: StationAirtime,
    /// Time from queueing to first transmission of the packets it sent, in microseconds.
    pub queueing_delay_us: Percentiles,
    /// Each of those times, ascending, and how many packets waited so long.
    pub queueing_delays_us: Vec<(u64, u64)>,
    /// Sum of those times; over the measured window it is the mean number of packets queued (Little's law).
    pub queueing_time: Duration,
    /// How the access point served it; nothing for the access point.
    pub down: Turns,
    /// How it served the access point; nothing for the access point.
    pub up: Turns,
    /// Most packets that waited at once in one of its queues.
    pub queue_peak_packets: u64,
    /// Packets that its queues marked with ECN instead of dropping them; whole run.
    pub queue_marks: u64,
    /// PPDUs of data it sent, by the number of their MPDUs: entry 0 counts those of one.
    pub ppdu_sizes: Vec<u64>,
}

/// The driver between a station's MAC and its host, with its counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DriverCounters {
    /// Nothing.
    #[default]
    Stock,
    /// TCP/HACK.
    Hack(hack::Counters),
    /// A driver that holds pure ACKs until later ones take their place.
    AckHold {
        /// How often one did.
        dropped: u64,
    },
    /// FastACK's agent.
    FastAck(fastack::Counters),
    /// FWP's shim.
    Fwp(fwp::Counters),
}

impl DriverCounters {
    /// Counters of TCP/HACK; `None` for a station that does not speak it.
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

    /// Pure ACKs that were held until later ones took their place.
    pub fn held_and_dropped_acks(&self) -> u64 {
        if let Self::AckHold { dropped } = self { *dropped } else { 0 }
    }

    /// Both together, of two drivers of a station, which are of one kind.
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
    /// How many values.
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
    /// Where it begins.
    pub from: HostId,
    /// Where it ends.
    pub to: HostId,
    /// Counts of packets by their fate.
    pub counters: PipeCounters,
    /// Time from queueing to the start of transmission, in microseconds.
    pub queueing_delay_us: Percentiles,
    /// Propagation delay.
    pub delay: Duration,
    /// Bytes that it could have carried in the measured window.
    pub capacity: Bytes,
}

/// One sample of one flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeriesPoint {
    /// When.
    pub at: Instant,
    /// Which flow.
    pub flow: FlowId,
    /// Payload bytes delivered since the start of the run.
    pub delivered_total: Bytes,
    /// The sender's congestion window; zero where it has none.
    pub congestion_window: Bytes,
    /// The sender's smoothed round-trip time; zero for datagrams or before the first sample.
    pub smoothed_rtt: Duration,
    /// Payload bytes that the sender knows to have arrived; zero for datagrams.
    pub acknowledged_total: Bytes,
    /// Packets that the sender sent, of any kind; zero for datagrams.
    pub packets_sent: u64,
    /// Packets that the sender sent again, those of the handshake included; zero for datagrams.
    pub packets_retransmitted: u64,
    /// The sender's retransmission timeout, backed off as it is, or at a closed window that of its probes; zero where it
    /// has none.
    pub retransmission_timeout: Duration,
    /// Payload bytes that the receiver holds back because others before them are missing; `None` where the transport
    /// does not count them.
    pub blocked: Option<Bytes>,
    /// For how long packets have waited that are first in the queues of wired and cellular links on the way from source
    /// to sink, from any sender.
    pub queueing: Duration,
    /// Rate at which the sender may send; `None` where it does not pace.
    pub pacing_rate: Option<BitRate>,
    /// State of the sender's congestion control; `None` where it does not say.
    pub congestion_state: Option<&'static str>,
}
