//! The view of a run from which metrics are computed.

use tacit_between::hack;
use tacit_link::PayloadClass;
use tacit_link::wifi::{AirtimeUse, StationCounters};
use tacit_packet::Stats;
use tacit_packet::units::Duration;
use tacit_sim::RunOutcome;
use tacit_sim::record::{
    ApplicationResult, BssOutcome, FlowOutcome, PageLoads, PipeOutcome, StationOutcome, VideoPlayed,
};

/// An outcome with sums that several metrics need.
pub(super) struct View<'a> {
    pub outcome: &'a RunOutcome,
    pub seconds: f64,
    pub bss: Option<&'a BssOutcome>,
    pub senders: Vec<&'a Stats>,
    pub receivers: Vec<&'a Stats>,
    /// Page loads of all users together; `None` if there are none.
    pub pages: Option<PageLoads>,
    pub videos: Vec<&'a VideoPlayed>,
    /// Flows that users read, without connections that only repair downloads.
    pub users_flows: Vec<&'a FlowOutcome>,
    /// Completion times of those that completed, ascending.
    pub completion_times: Vec<Duration>,
}

impl<'a> View<'a> {
    pub fn new(outcome: &'a RunOutcome) -> Self {
        let results = || outcome.applications.iter().map(|application| &application.result);
        let loads = || {
            results().filter_map(|result| match result {
                ApplicationResult::Pages(loads) => Some(loads),
                _ => None,
            })
        };
        let videos = results().filter_map(|result| match result {
            ApplicationResult::Stream(video) => Some(video),
            _ => None,
        });
        let users_flows = users_flows(outcome);
        Self {
            outcome,
            pages: (loads().count() > 0).then(|| PageLoads::merged(loads())),
            videos: videos.collect(),
            seconds: outcome.measured.as_secs_f64(),
            bss: outcome.bss.first(),
            senders: outcome.flows.iter().filter_map(|flow| flow.sender.as_ref()).collect(),
            receivers: outcome.flows.iter().filter_map(|flow| flow.receiver.as_ref()).collect(),
            completion_times: completion_times(users_flows.iter().copied()),
            users_flows,
        }
    }

    /// Sum over all stations of all channels.
    pub fn on_air(&self, count: impl Fn(&StationCounters) -> u64) -> Option<f64> {
        let stations = self.outcome.bss.iter().flat_map(|bss| &bss.stations);
        self.bss.map(|_| stations.map(|station| count(&station.counters)).sum::<u64>() as f64)
    }

    pub fn per_second(&self, count: impl Fn(&StationCounters) -> u64) -> Option<f64> {
        Some(self.on_air(count)? / self.seconds)
    }

    pub fn share(
        &self,
        part: impl Fn(&StationCounters) -> u64,
        whole: impl Fn(&StationCounters) -> u64,
    ) -> Option<f64> {
        Some(self.on_air(part)? / self.on_air(whole)?)
    }

    /// Like [`Self::share`], over the stations that send to several users.
    pub fn share_of_senders(
        &self,
        part: impl Fn(&StationCounters) -> u64,
        whole: impl Fn(&StationCounters) -> u64,
    ) -> Option<f64> {
        let if_shared = |count: &dyn Fn(&StationCounters) -> u64, air: &StationCounters| {
            if air.shared_ppdus > 0 { count(air) } else { 0 }
        };
        self.share(|air| if_shared(&part, air), |air| if_shared(&whole, air))
    }

    /// Total time of all stations divided by the measured time.
    pub fn time_share(&self, time: impl Fn(&StationOutcome) -> Duration) -> Option<f64> {
        Some(self.millis(time)? / 1e3 / self.seconds)
    }

    pub fn airtime(&self, what: AirtimeUse) -> Option<f64> {
        let airtime = &self.bss?.airtime;
        Some(airtime.get(what).as_secs_f64() / airtime.total().as_secs_f64())
    }

    /// Total milliseconds of the use `what` that all stations spent on PPDUs with only pure TCP ACKs.
    pub fn spent_on_acks(&self, what: AirtimeUse) -> Option<f64> {
        self.millis(|station| station.airtime.of_class(PayloadClass::Ack).get(what))
    }

    /// Sum over all stations of all channels, in milliseconds.
    pub fn millis(&self, time: impl Fn(&StationOutcome) -> Duration) -> Option<f64> {
        let stations = self.outcome.bss.iter().flat_map(|bss| &bss.stations);
        self.bss.map(|_| stations.map(time).sum::<Duration>().as_secs_f64() * 1e3)
    }

    /// The station that sent most: the access point for downloads, the busiest client for uploads.
    pub fn busiest(&self) -> Option<&'a StationOutcome> {
        // If several are equal, the first one, which is the access point.
        self.bss?.stations.iter().rev().max_by_key(|station| station.counters.delivered_bytes)
    }

    /// Sum over all TCP/HACK drivers; `None` if there are none.
    pub fn hack(&self, count: impl Fn(&hack::Counters) -> u64) -> Option<f64> {
        let mut drivers =
            self.outcome.bss.iter().flat_map(|bss| &bss.stations).filter_map(|station| station.driver.hack());
        let first = count(&drivers.next()?);
        Some(drivers.fold(first, |sum, counters| sum + count(&counters)) as f64)
    }

    /// Sum over all sources of connections; `None` if none of them counts it.
    pub fn sent(&self, count: impl Fn(&Stats) -> Option<u64>) -> Option<f64> {
        self.senders
            .iter()
            .filter_map(|stats| count(stats))
            .reduce(|sum, more| sum + more)
            .map(|sum| sum as f64)
    }

    /// Sum over all sinks of connections.
    pub fn received(&self, count: impl Fn(&Stats) -> u64) -> Option<f64> {
        self.receivers.iter().map(|stats| count(stats)).reduce(|sum, more| sum + more).map(|sum| sum as f64)
    }

    /// Zero if there are no ACKs.
    pub fn acks_per_data_packet(&self) -> Option<f64> {
        let counts = self.outcome.flows.iter().filter_map(|flow| match (&flow.receiver, &flow.reports) {
            (Some(end), _) => Some((end.acks_sent, end.data_packets_received)),
            (None, Some(reports)) => Some((reports.sent, reports.arrived_datagrams)),
            (None, None) => None,
        });
        match counts.fold((0, 0), |sum, more| (sum.0 + more.0, sum.1 + more.1)) {
            (0, _) => Some(0.0),
            (acks, data) => Some(acks as f64 / data as f64),
        }
    }

    pub fn page_load_ms(&self, percent: usize) -> Option<f64> {
        Some(self.pages.as_ref()?.percentile(percent)?.as_secs_f64() * 1e3)
    }

    /// Sum over all videos; `None` if there are none.
    pub fn watched(&self, count: impl Fn(&VideoPlayed) -> f64) -> Option<f64> {
        (!self.videos.is_empty()).then(|| self.videos.iter().map(|video| count(video)).sum())
    }

    /// Median over the samples in the measured window, which ends with the last sample.
    pub fn blocked_kb(&self) -> Option<f64> {
        let series = &self.outcome.series;
        let end = series.last()?.at;
        let measured = series.iter().filter(|point| end.saturating_since(point.at) < self.outcome.measured);
        let mut blocked: Vec<u64> = measured.filter_map(|point| Some(point.blocked?.0)).collect();
        blocked.sort_unstable();
        blocked.get(blocked.len() / 2).map(|median| *median as f64 / 1e3)
    }

    /// The largest estimate of any sender; `None` if no sender has one.
    pub fn rtt_min_ms(&self) -> Option<f64> {
        let largest = self.senders.iter().filter_map(|stats| stats.rtt_min).max()?;
        Some(largest.as_secs_f64() * 1e3)
    }

    /// All wired and cellular links.
    pub fn wired(&self) -> Option<Pipes<'a>> {
        Some(Pipes(self.outcome.pipes.iter().collect()))
    }

    /// The wired and cellular links in the direction of the first flow's data.
    pub fn first_way(&self) -> Option<Pipes<'a>> {
        let source = self.outcome.flows.first().map(|flow| flow.source);
        let is_back = self.outcome.pipes.first().is_some_and(|pipe| Some(pipe.from) != source);
        Some(self.pipes(is_back))
    }

    /// The wired and cellular links from the server, or back to it.
    fn pipes(&self, is_back: bool) -> Pipes<'a> {
        // They are stored in pairs: from the server, then towards it.
        Pipes(self.outcome.pipes.iter().skip(usize::from(is_back)).step_by(2).collect())
    }

    /// Exact if a single queue is the bottleneck and links have no jitter. `None` with Wi-Fi, whose delay is not
    /// included.
    pub fn one_way_delay_p95_us(&self) -> Option<f64> {
        if self.bss.is_some() {
            return None;
        }
        let [down, up] = [false, true].map(|is_back| self.pipes(is_back));
        let busier = if up.bytes() > down.bytes() { up } else { down };
        let delay: Duration = busier.0.iter().map(|pipe| pipe.delay).sum();
        Some(delay.as_secs_f64() * 1e6 + busier.queue_delay_p95_us()?)
    }
}

/// Some wired and cellular links.
pub(super) struct Pipes<'a>(Vec<&'a PipeOutcome>);

impl Pipes<'_> {
    /// Of the fullest link.
    pub fn utilisation(&self) -> Option<f64> {
        let share = |pipe: &&PipeOutcome| pipe.counters.delivered_bytes.0 as f64 / pipe.capacity.0 as f64;
        self.0.iter().map(share).reduce(f64::max)
    }

    fn bytes(&self) -> u64 {
        self.0.iter().map(|pipe| pipe.counters.delivered_bytes.0).sum()
    }

    pub fn drops(&self) -> f64 {
        self.0.iter().map(|pipe| pipe.counters.dropped).sum::<u64>() as f64
    }

    /// Of the busiest queue.
    pub fn queue_delay_p95_us(&self) -> Option<f64> {
        self.0.iter().map(|pipe| pipe.queueing_delay_us.p95 as f64).reduce(f64::max)
    }
}

/// Flows that users read, without connections that only repair downloads.
fn users_flows(outcome: &RunOutcome) -> Vec<&FlowOutcome> {
    let programs = outcome.applications.iter();
    let mut others: Vec<_> =
        programs.flat_map(|program| program.flows.iter().skip(program.data_flows)).collect();
    others.sort_unstable();
    let is_read = |flow: &&FlowOutcome| others.binary_search(&&flow.flow).is_err();
    outcome.flows.iter().filter(is_read).collect()
}

/// Completion times of those of `flows` that completed, ascending.
pub(super) fn completion_times<'a>(flows: impl Iterator<Item = &'a FlowOutcome>) -> Vec<Duration> {
    let mut times: Vec<_> = flows.filter_map(FlowOutcome::completion_time).collect();
    times.sort_unstable();
    times
}

/// The time that this percentage (1 to 100) of the ascending `times` does not exceed, by the nearest-rank method.
pub(super) fn nearest_rank_s(times: &[Duration], percent: usize) -> Option<f64> {
    let rank = (times.len() * percent).div_ceil(100);
    Some(times.get(rank.checked_sub(1)?)?.as_secs_f64())
}
