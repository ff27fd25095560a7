//! Queues given as tables.

use tacit_link::QueueLimit;
use tacit_packet::units::Duration;

use super::entry::{Key, Keys, named};
use super::kind::{Choice, Flag, Limit, Span, Whole};

/// Linux's default interface queue length.
pub(crate) const DEFAULT_QUEUE: QueueLimit = QueueLimit { packets: Some(1_000), bytes: None };

/// The order in which packets leave the queue, and which are dropped before the queue is full.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Discipline {
    DropTail,
    DropHead,
    CoDel,
    FqCoDel,
    DualPi2,
}

pub(crate) const DISCIPLINE: Key<Choice<Discipline>> = named("discipline")
    .means(
        "FIFO that drops the newest or the oldest packets; RFC 8289; RFC 8290, on Wi-Fi per \
         station; RFC 9332, for L4S",
    )
    .described("required")
    .key(Choice(&[
        ("drop-tail", Discipline::DropTail),
        ("drop-head", Discipline::DropHead),
        ("codel", Discipline::CoDel),
        ("fq-codel", Discipline::FqCoDel),
        ("dualpi2", Discipline::DualPi2),
    ]));

pub(crate) const LIMIT: Key<Limit> = named("limit")
    .means("most waiting packets or bytes")
    .described("1000 packets; `fq-codel` 8192 packets, on wires 10240")
    .key(Limit);

const DELAY: Span = Span::between(Duration::from_micros(1), Duration::from_secs(10));

pub(crate) const TARGET: Key<Span> = named("target")
    .means("tolerated standing delay")
    .described("`\"5 ms\"`; `fq-codel` of Wi-Fi `\"20 ms\"`; `dualpi2` `\"15 ms\"`")
    .key(DELAY);

pub(crate) const INTERVAL: Key<Span> = named("interval")
    .means("time above `target` after which packets are dropped (`codel`, `fq-codel`)")
    .is("\"100 ms\"")
    .key(DELAY);

pub(crate) const ECN: Key<Flag> = named("ecn")
    .means("mark ECN-capable packets instead of dropping them (`codel`, `fq-codel`; `dualpi2` always does)")
    .is("true")
    .key(Flag);

pub(crate) const QUANTUM: Key<Whole> = named("quantum")
    .means("bytes per flow and turn (`fq-codel`)")
    .described("300; on wires 1514")
    .key(Whole(1, 65_535));

pub(crate) const FLOWS: Key<Whole> =
    named("flows").means("number of queues for hashed flows (`fq-codel`)").is("1024").key(Whole(1, 32_768));

pub(crate) const RTT_MAX: Key<Span> =
    named("rtt-max").means("longest usual round-trip time (`dualpi2`)").is("\"100 ms\"").key(DELAY);

pub(crate) const L4S_THRESHOLD: Key<Span> = named("l4s-threshold")
    .means("delay from which on L4S packets are marked; all are 400 us later (`dualpi2`)")
    .is("\"800 us\"")
    .key(DELAY);

pub(super) const QUEUE: Keys<()> =
    &[&DISCIPLINE, &LIMIT, &TARGET, &INTERVAL, &ECN, &QUANTUM, &FLOWS, &RTT_MAX, &L4S_THRESHOLD];

#[cfg(test)]
mod tests {
    use tacit_link::queue::{CoDelConfig, DualPi2Config, FqCoDelConfig};

    use super::*;
    use crate::keys::Row;
    use crate::keys::kind::Kind;

    #[test]
    fn the_defaults_are_those_of_the_queues() {
        let default =
            |name: &str| -> &'static Row { crate::keys::find(&format!("wifi.ap-queue.{name}")).unwrap() };
        let (codel, wire, wifi) = (CoDelConfig::INTERNET, FqCoDelConfig::INTERNET, FqCoDelConfig::MAC80211);
        let dual = DualPi2Config::INTERNET;
        assert_eq!(default("rtt-max").default, DELAY.write(&dual.rtt_max));
        assert_eq!(default("l4s-threshold").default, DELAY.write(&dual.l4s_threshold));
        let [usual, wifi_target, dual] =
            [codel.target, wifi.codel.target, dual.target].map(|target| DELAY.write(&target));
        assert_eq!(
            default("target").default,
            format!("`{usual}`; `fq-codel` of Wi-Fi `{wifi_target}`; `dualpi2` `{dual}`")
        );
        assert_eq!(wire.codel.target, codel.target);
        for usual in [codel, wire.codel, wifi.codel] {
            assert_eq!(default("interval").default, DELAY.write(&usual.interval));
            assert!(usual.ecn);
        }
        assert_eq!(default("quantum").default, format!("{}; on wires {}", wifi.quantum, wire.quantum));
        assert_eq!(
            [wifi.flows, wire.flows].map(|flows| flows.to_string()),
            [default("flows").default.as_str(); 2]
        );
    }
}
