//! The bottleneck of a link, and queues it could have.

use serde::Serialize;
use tacit_link::QueueConfig;
use tacit_link::queue::Discipline;
use tacit_link::wifi::AirtimeUse;
use tacit_link::wired::Service;
use tacit_proto::units::Duration;
use tacit_runs::aggregate::{Column, Group};
use tacit_runs::metric::airtime_name;
use tacit_scenario::{ApplicationKind, DirectPairs, Direction, Hop, Scenario, TrafficPlan};

use super::arena::{Arena, Lead};
use crate::compare::{Options, load};
use crate::why::{BUSY, LONGER_BACK, Resource, fullest};

/// The limit of today's goodput, and how full the way is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Limit {
    /// Its kind.
    pub by: LimitedBy,
    /// Whose time is nearest to its end.
    pub resource: Option<Resource>,
    /// Share of its time in which it had something to carry.
    pub busy: Option<f64>,
    /// Goodput over that of saturating UDP.
    pub share_of_udp: Option<f64>,
    /// Share of the channel's time that ACKs take, without their link-layer ACKs and accesses.
    pub airtime_tcp_ack: Option<f64>,
    /// Data packets sent again among those sent.
    pub tcp_retransmitted_share: Option<f64>,
}

/// Kind of limit on the goodput.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitedBy {
    /// The Wi-Fi channel has no time left.
    Channel,
    /// The wired or cellular link carries as much as it can.
    Link,
    /// ACKs wait on their way back.
    WayBack,
    /// No flow had anything to send: programs wait for users, or for their own rate.
    Source,
    /// The queue drops before the way is full: with a longer one it carries more.
    Queue,
    /// Windows, losses and timeouts of the ends.
    Ends,
}

/// Users do not notice a wait below this in ms, however long the other queue. Ours.
const NOTICED_MS: f64 = 10.0;
/// Least gain of a longer queue for the present one to be the limit. Ours.
const QUEUE_COUNTS: f64 = 0.02;

impl Limit {
    /// Of the runs of today, `stock` and `udp`.
    pub(super) fn of(scenario: &Scenario, stock: &Group<'_>, udp: &Group<'_>) -> Self {
        let mean = |name: &str| Some(stock.mean(Column::named(name)?)?.mean);
        let resource = fullest(&[stock]);
        let busy = match resource {
            Some(Resource::Channel) => mean(&airtime_name(AirtimeUse::Idle)).map(|idle| 1.0 - idle),
            // A packet under way when the window begins is counted whole.
            Some(Resource::Link) => mean("first_way_utilisation").map(|busy| busy.min(1.0)),
            Some(Resource::Station) | None => None,
        };
        let by = match resource {
            Some(Resource::Channel) if busy >= Some(BUSY) => LimitedBy::Channel,
            Some(Resource::Link) if busy >= Some(BUSY) => LimitedBy::Link,
            _ if is_way_back(mean) => LimitedBy::WayBack,
            _ if !is_greedy(scenario) => LimitedBy::Source,
            _ => LimitedBy::Ends,
        };
        Self {
            by,
            resource,
            busy,
            share_of_udp: Column::named("goodput_bps").and_then(|goodput| stock.share_of(udp, goodput)),
            airtime_tcp_ack: mean(&airtime_name(AirtimeUse::TcpAck)),
            tcp_retransmitted_share: mean("tcp_retransmitted_share"),
        }
    }

    /// Blames the queue where the ends seemed to be at fault, and a longer one carries more.
    pub(super) fn judge_queue(&mut self, own: &Arena, longer: &Arena, stock: &str) {
        let lead = Lead::of(&longer.group(stock), &own.group(stock));
        if self.by == LimitedBy::Ends && lead.is_some_and(|lead| lead.least > QUEUE_COUNTS) {
            self.by = LimitedBy::Queue;
        }
    }
}

/// Whether ACKs wait on the way back for much longer than data does.
fn is_way_back(mean: impl Fn(&str) -> Option<f64>) -> bool {
    let wait_ms = |name: &str| mean(name).map(|us| us / 1e3);
    let data = wait_ms("first_way_queue_delay_p95_us").unwrap_or(0.0);
    wait_ms("wired_queue_delay_p95_us").is_some_and(|longest| longest > NOTICED_MS.max(LONGER_BACK * data))
}

/// Whether some flow sends as much as its transport takes.
fn is_greedy(scenario: &Scenario) -> bool {
    scenario.traffic_plans().any(|traffic| {
        traffic.application == ApplicationKind::Bulk && traffic.udp_rate.is_none() && traffic.size.is_none()
    })
}

/// A queue in front of the bottleneck.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Queue {
    /// How it compares with a bandwidth-delay product.
    pub kind: QueueKind,
    /// The value that sets it, as in `--set`; the scenario's own where it is none.
    pub setting: Option<String>,
    /// Packets that it holds; null where bytes count.
    pub packets: Option<u32>,
    /// Its capacity over the bandwidth-delay product of the flows that share it; null where bytes count.
    pub bandwidth_delay_products: Option<f64>,
}

/// How long a queue is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueueKind {
    /// Less than a bandwidth-delay product, or as near to it as aggregates allow.
    Short,
    /// A bandwidth-delay product and more.
    Ample,
    /// FQ-CoDel or CoDel.
    FqCodel,
}

/// Bytes of a full packet, as queues count.
const PACKET_BYTES: f64 = 1_500.0;
/// A short queue has a quarter of a bandwidth-delay product, an ample one two. Ours.
const SHORT_PRODUCTS: f64 = 0.25;
const AMPLE_PRODUCTS: f64 = 2.0;
/// MPDUs of one Block Ack window (802.11-2020 clause 10.25): with less no aggregate is full.
const AGGREGATE: u32 = 64;
/// Packets of a queue that takes a burst of slow start from one round trip to the next, ours.
const BURST: u32 = 16;

/// The queue that the scenario has, the keys that set it, and its bandwidth-delay product.
#[derive(Clone, Debug)]
pub(super) struct BottleneckQueue {
    pub own: Queue,
    keys: Vec<&'static str>,
    product_packets: f64,
    least: u32,
}

impl BottleneckQueue {
    /// The queue that data waits in before the bottleneck, where it is one that assignments reach; `capacity_bps` is the
    /// goodput that all flows could have together.
    pub fn of(
        scenario: &Scenario,
        resource: Option<Resource>,
        (clients, capacity_bps): (u32, f64),
    ) -> Option<Self> {
        let directions = directions(scenario);
        let (keys, own, sharers): (Vec<&'static str>, QueueConfig, u32) = match (resource?, &scenario.wifi) {
            (Resource::Channel, Some(wifi)) => {
                // Between clients data waits for both, unless all of it goes over direct links.
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
        let kind = match own.discipline {
            Discipline::FqCoDel(_) | Discipline::CoDel(_) => QueueKind::FqCodel,
            _ if own.limit.packets.is_some_and(|packets| products(packets) < 1.0) => QueueKind::Short,
            _ => QueueKind::Ample,
        };
        let own = Queue {
            kind,
            setting: None,
            packets: own.limit.packets,
            bandwidth_delay_products: own.limit.packets.map(products),
        };
        Some(Self { own, keys, product_packets, least })
    }

    /// The queues of the two other kinds.
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
        // Where bytes count, no number of packets is the same.
        let is_own = |queue: &Queue| {
            queue.kind == self.own.kind || queue.packets.is_some() && queue.packets == self.own.packets
        };
        all.into_iter().filter(|queue| !is_own(queue)).collect()
    }

    /// The assignments that set `queue` on top of `options`, and the scenario with it; `None` where no assignment reaches
    /// the queue, as with those of `[[hop]]`.
    pub fn with(&self, options: &Options, queue: &Queue) -> Option<(Vec<String>, Scenario)> {
        let setting = queue.setting.as_ref()?;
        let set: Vec<String> = self.keys.iter().map(|key| format!("{key}={setting}")).collect();
        let assignments = [options.assignments.clone(), set.clone()].concat();
        Some((set, load(&Options { assignments, ..options.clone() }).ok()?))
    }
}

/// Which ways data goes.
fn directions(scenario: &Scenario) -> Vec<Direction> {
    let of = |traffic: &TrafficPlan| match traffic.direction {
        Direction::Both => vec![Direction::Download, Direction::Upload],
        one => vec![one],
    };
    let mut all: Vec<Direction> = Vec::new();
    for direction in scenario.traffic_plans().flat_map(of) {
        if !all.contains(&direction) {
            all.push(direction);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The place before the channel of `wlan-11n-150` with this queue at the access point.
    fn place(set: &[&str]) -> BottleneckQueue {
        let set: Vec<String> = set.iter().map(|&said| said.to_owned()).collect();
        let scenario = Scenario::load("wlan-11n-150", &set).expect("a bundled scenario");
        BottleneckQueue::of(&scenario, Some(Resource::Channel), (1, 100e6))
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
        // Bytes are no number of packets, and neither is the limit of FQ-CoDel.
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
