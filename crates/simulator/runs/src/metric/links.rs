//! Metrics of each link of multi-link devices; no value without several links.

use tacit_link::wifi::{RadioTimes, StationCounters};
use tacit_sim::record::{LinkOutcome, Percentiles};

use super::view::View;
use super::{Metric, metric};

/// A value of a link, given the measured seconds.
type OfLink = fn(&LinkOutcome, f64) -> f64;

impl View<'_> {
    /// A percentile of the time in reorder buffers; no value if no packet waited.
    fn reorder_delay(&self, percentile: fn(&Percentiles) -> u64) -> Option<f64> {
        let delays = &self.bss?.reorder_delay_us;
        (delays.count > 0).then(|| percentile(delays) as f64)
    }

    /// The value of link `number`, counted from 1.
    fn on_link(&self, number: usize, measure: OfLink) -> Option<f64> {
        let links = &self.bss?.links;
        let link = links.get(number - 1).filter(|_| links.len() > 1)?;
        Some(measure(link, self.seconds))
    }
}

impl View<'_> {
    /// A count per second; no value where all clients can do everything on all links at once.
    fn called(&self, count: fn(&StationCounters) -> u64) -> Option<f64> {
        self.of_radios(|_| 0.0)?;
        self.per_second(count)
    }

    /// A share of time, as a mean over the clients that cannot.
    fn of_radios(&self, time_s: fn(&RadioTimes) -> f64) -> Option<f64> {
        let radios = &self.bss?.radios;
        (radios.clients > 0).then(|| time_s(radios) / f64::from(radios.clients) / self.seconds)
    }
}

const GOODPUT: OfLink = |link, seconds| link.counts.stations.delivered_bytes as f64 * 8.0 / seconds;
const PPDUS: OfLink = |link, seconds| link.counts.stations.data_ppdus as f64 / seconds;
const MPDUS: OfLink =
    |link, _| link.counts.stations.data_mpdus as f64 / link.counts.stations.data_ppdus as f64;
const RETRIES: OfLink =
    |link, _| link.counts.stations.retries as f64 / link.counts.stations.data_mpdus as f64;
const COLLISIONS: OfLink = |link, seconds| link.counts.collisions as f64 / seconds;
const MISSED: OfLink = |link, seconds| link.counts.stations.missed_link_acks as f64 / seconds;
const ACKS: OfLink = |link, seconds| link.counts.stations.tcp_acks_on_air as f64 / seconds;
const STALLED: OfLink = |link, seconds| link.stalled.as_secs_f64() / seconds;

const SAYS: [&str; 8] = [
    "with several links: bytes of packets that this link settled as arrived, both ways",
    "PPDUs of data and TCP ACKs on this link",
    "MPDUs in such a PPDU",
    "retransmissions among the MPDUs of this link",
    "accesses in which two or more stations sent at once on this link",
    "ACKs and Block Acks that did not come on this link",
    "pure ACKs on this link, retransmissions included",
    "time in which the Block Ack window kept the access point from sending on this link",
];

/// The metrics of three links, and of the reorder buffers that they have in common.
pub(super) const OF_LINKS: [Metric; 33] = [
    metric("reorder_held_share", "packets that waited in a reorder buffer among those passed up", |view| {
        let arrived = view.on_air(|air| air.arrived)?;
        Some(view.bss?.reorder_delay_us.count as f64 / arrived)
    }),
    metric(
        "reorder_delay_p50_us",
        "time that packets waited in a reorder buffer, of those that waited",
        |view| view.reorder_delay(|delays| delays.p50),
    ),
    metric("reorder_delay_p95_us", "its 95th percentile", |view| view.reorder_delay(|delays| delays.p95)),
    metric("reorder_delay_max_us", "the longest", |view| view.reorder_delay(|delays| delays.max)),
    metric("icfs_per_s", "with EMLSR: initial control frames, which call clients to a link", |view| {
        view.called(|air| air.icfs)
    }),
    metric("icf_failures_per_s", "those that no CTS answered", |view| view.called(|air| air.icf_failures)),
    metric(
        "transition_share",
        "time in which a client with EMLSR returned from an exchange to listening",
        |view| view.of_radios(|radios| radios.transition.as_secs_f64()),
    ),
    metric("radio_busy_share", "time in which the one radio of a client with EMLSR was in use", |view| {
        view.of_radios(|radios| radios.busy.as_secs_f64())
    }),
    metric("deaf_share", "time in which it heard nothing on a link, as a mean over its links", |view| {
        view.of_radios(|radios| radios.deaf.as_secs_f64())
    }),
    metric("link1_goodput_bps", SAYS[0], |view| view.on_link(1, GOODPUT)),
    metric("link2_goodput_bps", SAYS[0], |view| view.on_link(2, GOODPUT)),
    metric("link3_goodput_bps", SAYS[0], |view| view.on_link(3, GOODPUT)),
    metric("link1_ppdus_per_s", SAYS[1], |view| view.on_link(1, PPDUS)),
    metric("link2_ppdus_per_s", SAYS[1], |view| view.on_link(2, PPDUS)),
    metric("link3_ppdus_per_s", SAYS[1], |view| view.on_link(3, PPDUS)),
    metric("link1_mpdus_per_ppdu", SAYS[2], |view| view.on_link(1, MPDUS)),
    metric("link2_mpdus_per_ppdu", SAYS[2], |view| view.on_link(2, MPDUS)),
    metric("link3_mpdus_per_ppdu", SAYS[2], |view| view.on_link(3, MPDUS)),
    metric("link1_retry_share", SAYS[3], |view| view.on_link(1, RETRIES)),
    metric("link2_retry_share", SAYS[3], |view| view.on_link(2, RETRIES)),
    metric("link3_retry_share", SAYS[3], |view| view.on_link(3, RETRIES)),
    metric("link1_collisions_per_s", SAYS[4], |view| view.on_link(1, COLLISIONS)),
    metric("link2_collisions_per_s", SAYS[4], |view| view.on_link(2, COLLISIONS)),
    metric("link3_collisions_per_s", SAYS[4], |view| view.on_link(3, COLLISIONS)),
    metric("link1_missed_link_acks_per_s", SAYS[5], |view| view.on_link(1, MISSED)),
    metric("link2_missed_link_acks_per_s", SAYS[5], |view| view.on_link(2, MISSED)),
    metric("link3_missed_link_acks_per_s", SAYS[5], |view| view.on_link(3, MISSED)),
    metric("link1_tcp_acks_on_air_per_s", SAYS[6], |view| view.on_link(1, ACKS)),
    metric("link2_tcp_acks_on_air_per_s", SAYS[6], |view| view.on_link(2, ACKS)),
    metric("link3_tcp_acks_on_air_per_s", SAYS[6], |view| view.on_link(3, ACKS)),
    metric("link1_window_stall_share", SAYS[7], |view| view.on_link(1, STALLED)),
    metric("link2_window_stall_share", SAYS[7], |view| view.on_link(2, STALLED)),
    metric("link3_window_stall_share", SAYS[7], |view| view.on_link(3, STALLED)),
];
