//! The bottleneck of a link, and alternative queues.

use serde::Serialize;
use tacit_link::QueueConfig;
use tacit_link::queue::Discipline;
use tacit_link::wifi::AirtimeUse;
use tacit_link::wired::Service;
use tacit_packet::units::{Duration, Instant};
use tacit_runs::aggregate::Group;
use tacit_runs::metric::airtime_name;
use tacit_scenario::{ApplicationKind, DirectPairs, Direction, Hop, Scenario, TrafficPlan};

use super::arena::{Arena, Lead};
use crate::compare::{Options, are_files, goodput_of, load, share_of};
use crate::first_seen;
use crate::why::{BUSY, LONGER_BACK, Resource, fullest};

/// What limits the current goodput, and the utilisation of the path.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Limit {
    /// Its kind.
    pub by: LimitedBy,
    /// The resource with the highest utilisation.
    pub resource: Option<Resource>,
    /// Fraction of time in which this resource had something to carry, or the radio was not idle.
    pub busy: Option<f64>,
    /// Goodput as a fraction of that of saturating UDP.
    pub share_of_udp: Option<f64>,
    /// Fraction of channel time used by ACKs, excluding their link-layer ACKs and channel accesses.
    pub airtime_tcp_ack: Option<f64>,
    /// Retransmitted data packets as a fraction of those sent.
    pub tcp_retransmitted_share: Option<f64>,
}

/// Kind of limit on the goodput.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitedBy {
    /// The Wi-Fi channel is saturated.
    Channel,
    /// The one radio that clients have for several links is never idle, though each link is.
    Radio,
    /// The wired or cellular link is saturated.
    Link,
    /// ACKs queue in the reverse direction.
    WayBack,
    /// No flow had more to send, because programs wait for users or are limited by their own rate.
    Source,
    /// The queue drops packets before the path is saturated. A longer queue increases goodput.
    Queue,
    /// Windows, losses and timeouts at the endpoints.
    Ends,
}

/// Delay in ms below which users do not notice it, regardless of the other queue's length (our choice).
const NOTICED_MS: f64 = 10.0;
/// Minimum gain from a longer queue for the current queue to count as the limit (our choice).
const QUEUE_COUNTS: f64 = 0.02;

impl Limit {
    /// Determines the limit from current runs of `stock` and `udp`.
    pub(super) fn find(scenario: &Scenario, stock: &Group<'_>, udp: &Group<'_>) -> Self {
        let mean = |name: &str| stock.mean_of(name);
        let resource = if fills_a_wire(scenario, udp) { Some(Resource::Link) } else { fullest(&[stock]) };
        let radio = mean("radio_busy_share");
        let busy = match resource {
            Some(Resource::Channel) => mean(&airtime_name(AirtimeUse::Idle)).map(|idle| 1.0 - idle),
            // A packet in transmission at the start of the window is counted completely.
            Some(Resource::Link) => mean("first_way_utilisation").map(|busy| busy.min(1.0)),
            Some(Resource::Station) | None => None,
        };
        let share_of_udp = share_of(stock, udp);
        // Files leave a channel idle after their end, so their goodput stands for how busy it was.
        let busy = if are_files(stock) { share_of_udp } else { busy };
        let by = match resource {
            Some(Resource::Channel) if busy >= Some(BUSY) => LimitedBy::Channel,
            Some(Resource::Link) if busy >= Some(BUSY) => LimitedBy::Link,
            Some(Resource::Channel) if radio >= Some(BUSY) => LimitedBy::Radio,
            _ if is_way_back(mean) => LimitedBy::WayBack,
            _ if !is_greedy(scenario) => LimitedBy::Source,
            _ => LimitedBy::Ends,
        };
        Self {
            by,
            resource,
            busy: if by == LimitedBy::Radio { radio } else { busy },
            share_of_udp,
            airtime_tcp_ack: mean(&airtime_name(AirtimeUse::TcpAck)),
            tcp_retransmitted_share: mean("tcp_retransmitted_share"),
        }
    }

    /// Changes the limit from the endpoints to the queue if a longer queue increases goodput.
    pub(super) fn judge_queue(&mut self, current: &Arena, longer: &Arena, stock: &str) {
        let lead = Lead::between(&longer.group(stock), &current.group(stock));
        if self.by == LimitedBy::Ends && lead.is_some_and(|lead| lead.least > QUEUE_COUNTS) {
            self.by = LimitedBy::Queue;
        }
    }
}

/// Whether saturating UDP has all of the slowest wired or cellular link on the way of the data. The channel behind it may be
/// busy all the same: short A-MPDUs fill the air, too.
fn fills_a_wire(scenario: &Scenario, udp: &Group<'_>) -> bool {
    /// Least fraction of a link's rate that payload is, of full packets and with rests (our choice).
    const PAYLOAD: f64 = 0.9;
    let is_up = directions(scenario) == [Direction::Upload];
    let [from, to] = [scenario.run.measure_from, scenario.run.duration].map(|time| Instant::ZERO + time);
    let seconds = to.saturating_since(from).as_secs_f64();
    let capacity_bps = |hop: &Hop| match hop {
        Hop::Pipe(link) => {
            let pipe = if is_up { &link.up } else { &link.down };
            Some(pipe.service.capacity(from, to).0 as f64 * 8.0 / seconds)
        }
        Hop::Wifi => None,
    };
    let slowest = scenario.hops.iter().filter_map(capacity_bps).reduce(f64::min);
    slowest.zip(goodput_of(udp)).is_some_and(|(capacity, goodput)| goodput >= PAYLOAD * capacity)
}

/// Whether ACKs have a much longer queueing delay than data.
fn is_way_back(mean: impl Fn(&str) -> Option<f64>) -> bool {
    let wait_ms = |name: &str| mean(name).map(|us| us / 1e3);
    let data = wait_ms("first_way_queue_delay_p95_us").unwrap_or(0.0);
    wait_ms("wired_queue_delay_p95_us").is_some_and(|longest| longest > NOTICED_MS.max(LONGER_BACK * data))
}

/// Whether some flow sends as much as its transport allows, without end or for the length of a file.
fn is_greedy(scenario: &Scenario) -> bool {
    scenario
        .traffic_plans()
        .any(|traffic| traffic.application == ApplicationKind::Bulk && traffic.udp_rate.is_none())
}

/// A queue at the bottleneck.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Queue {
    /// Its size relative to the bandwidth-delay product.
    pub kind: QueueKind,
    /// The value that sets it, as in `--set`; null for the scenario's own queue.
    pub setting: Option<String>,
    /// Its capacity in packets; null if it is limited in bytes.
    pub packets: Option<u32>,
    /// Its capacity divided by the bandwidth-delay product of the flows that share it; null if it is limited in bytes.
    pub bandwidth_delay_products: Option<f64>,
}

/// Size of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueueKind {
    /// Less than a bandwidth-delay product, or as close to that as aggregates allow.
    Short,
    /// At least a bandwidth-delay product.
    Ample,
    /// FQ-CoDel or CoDel.
    FqCodel,
}

/// Length of a full packet in bytes, as counted by queues.
const PACKET_BYTES: f64 = 1_500.0;
/// Sizes of a short and an ample queue in bandwidth-delay products (our choice).
const SHORT_PRODUCTS: f64 = 0.25;
const AMPLE_PRODUCTS: f64 = 2.0;
/// Number of MPDUs in a Block Ack window (802.11-2020 clause 10.25). A shorter queue cannot fill an aggregate.
const AGGREGATE: u32 = 64;
/// Number of packets that hold the burst of slow start between two round trips (our choice).
const BURST: u32 = 16;

/// The scenario's queue, the keys that set it, and its bandwidth-delay product.
#[derive(Clone, Debug)]
pub(super) struct BottleneckQueue {
    pub current: Queue,
    keys: Vec<&'static str>,
    product_packets: f64,
    least: u32,
}

impl BottleneckQueue {
    /// The queue for data at the bottleneck, if assignments can change it. `capacity_bps` is the total goodput that all
    /// flows can have.
    pub fn find(
        scenario: &Scenario,
        resource: Option<Resource>,
        (clients, capacity_bps): (u32, f64),
    ) -> Option<Self> {
        let directions = directions(scenario);
        let (keys, queue, sharers): (Vec<&'static str>, QueueConfig, u32) = match (resource?, &scenario.wifi)
        {
            (Resource::Channel, Some(wifi)) => {
                // Data between clients waits in both queues, unless all of it uses direct links.
                let between = directions.contains(&Direction::StationToStation);
                let relayed = between && wifi.direct.pairs != DirectPairs::All;
                let ap = directions.contains(&Direction::Download) || relayed;
                let stations = directions.contains(&Direction::Upload) || between;
                let keys = [("wifi.ap-queue", ap), ("wifi.station-queue", stations)];
                let keys = keys.into_iter().filter(|(_, used)| *used).map(|(key, _)| key).collect();
                (keys, if ap { wifi.ap_queue } else { wifi.station_queue }, clients)
            }
            _ => {
                let pipes: Vec<_> = (scenario.hops.iter())
                    .filter_map(|hop| if let Hop::Pipe(link) = hop { Some(link) } else { None })
                    .collect();
                let [link] = pipes[..] else { return None };
                let is_up = directions == [Direction::Upload];
                let pipe = if is_up { &link.up } else { &link.down };
                let key = match (&pipe.service, is_up) {
                    (Service::Trace(_), false) => "cellular.down.queue",
                    (Service::Trace(_), true) => "cellular.up.queue",
                    (_, false) => "wired.down.queue",
                    (_, true) => "wired.up.queue",
                };
                (vec![key], pipe.queue, 1)
            }
        };
        let round_trip = scenario.round_trip().max(Duration::from_millis(1)).as_secs_f64();
        let product_packets = capacity_bps / 8.0 * round_trip / PACKET_BYTES / f64::from(sharers);
        let least = if scenario.wifi.is_some() { AGGREGATE } else { BURST };
        let products = |packets: u32| f64::from(packets) / product_packets;
        let kind = match queue.discipline {
            Discipline::FqCoDel(_) | Discipline::CoDel(_) | Discipline::DualPi2(_) => QueueKind::FqCodel,
            _ if queue.limit.packets.is_some_and(|packets| products(packets) < 1.0) => QueueKind::Short,
            _ => QueueKind::Ample,
        };
        let current = Queue {
            kind,
            setting: None,
            packets: queue.limit.packets,
            bandwidth_delay_products: queue.limit.packets.map(products),
        };
        Some(Self { current, keys, product_packets, least })
    }

    /// Queues of the two other kinds.
    pub fn others(&self) -> Vec<Queue> {
        let packets =
            |products: f64, least: u32| ((self.product_packets * products).ceil() as u32).max(least);
        let short = packets(SHORT_PRODUCTS, self.least);
        let ample = packets(AMPLE_PRODUCTS, 2 * short);
        let limited = |kind, packets: u32| Queue {
            kind,
            setting: Some(format!("{packets} packets")),
            packets: Some(packets),
            bandwidth_delay_products: Some(f64::from(packets) / self.product_packets),
        };
        let all = [
            limited(QueueKind::Short, short),
            limited(QueueKind::Ample, ample),
            Queue {
                kind: QueueKind::FqCodel,
                setting: Some("{ discipline = \"fq-codel\" }".to_owned()),
                packets: None,
                bandwidth_delay_products: None,
            },
        ];
        // If the limit is in bytes, no number of packets is equal to it.
        let is_own = |queue: &Queue| {
            queue.kind == self.current.kind
                || queue.packets.is_some() && queue.packets == self.current.packets
        };
        all.into_iter().filter(|queue| !is_own(queue)).collect()
    }

    /// The assignments that set `queue` in addition to `options`, and the resulting scenario. `None` if no assignment
    /// can change the queue, as with `[[hop]]`.
    pub fn with(&self, options: &Options, queue: &Queue) -> Option<(Vec<String>, Scenario)> {
        let setting = queue.setting.as_ref()?;
        let set: Vec<String> = self.keys.iter().map(|key| format!("{key}={setting}")).collect();
        let assignments = [options.assignments.clone(), set.clone()].concat();
        Some((set, load(&Options { assignments, ..options.clone() }).ok()?))
    }
}

/// The directions of data.
fn directions(scenario: &Scenario) -> Vec<Direction> {
    let one_way = |traffic: &TrafficPlan| match traffic.direction {
        Direction::Both => vec![Direction::Download, Direction::Upload],
        one => vec![one],
    };
    first_seen(scenario.traffic_plans().flat_map(one_way))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The queue before the channel of `wlan-11n-150` with these settings of the access point's queue.
    fn place(set: &[&str]) -> BottleneckQueue {
        let set: Vec<String> = set.iter().map(|&text| text.to_owned()).collect();
        let scenario = Scenario::load("wlan-11n-150", &set).expect("a bundled scenario");
        BottleneckQueue::find(&scenario, Some(Resource::Channel), (1, 100e6))
            .expect("assignments reach the queue")
    }

    fn kinds(set: &[&str]) -> Vec<QueueKind> {
        place(set).others().iter().map(|queue| queue.kind).collect()
    }

    #[test]
    fn the_other_queues_are_of_the_other_kinds() {
        use QueueKind::{Ample, FqCodel, Short};
        assert_eq!(kinds(&["wifi.ap-queue=1000 packets"]), [Short, FqCodel]);
        assert_eq!(kinds(&["wifi.ap-queue=2 packets"]), [Ample, FqCodel]);
        assert_eq!(kinds(&["wifi.ap-queue={ discipline = \"fq-codel\" }"]), [Short, Ample]);
        // A limit in bytes is not a number of packets, and neither is the limit of FQ-CoDel.
        assert_eq!(kinds(&["wifi.ap-queue=1 MB"]), [Short, FqCodel]);
        assert_eq!(kinds(&["wifi.ap-queue=unlimited"]), [Short, FqCodel]);
    }

    #[test]
    fn data_between_clients_waits_for_both_unless_a_link_is_direct() {
        let keys = |set: &[&str]| place(set).keys;
        assert_eq!(keys(&[]), ["wifi.ap-queue"]);
        let between = "traffic.kind=station-to-station";
        assert_eq!(keys(&[between]), ["wifi.ap-queue", "wifi.station-queue"]);
        assert_eq!(keys(&[between, "wifi.direct-links=all"]), ["wifi.station-queue"]);
    }
}
