//! Transmission rates and schedules of a pipe.

use std::sync::Arc;

use tacit_packet::units::{BitRate, Bytes, Duration, Instant};

use crate::cellular::{Position, Trace};

/// Schedule by which packets leave a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Service {
    /// A transmitter with a constant rate.
    Rate(BitRate),
    /// A transmitter with a variable rate.
    Script(RateScript),
    /// A cellular link.
    Trace(Arc<Trace>),
}

impl Service {
    /// Bytes that can be transmitted from `from` to `to`, including headers.
    pub fn capacity(&self, from: Instant, to: Instant) -> Bytes {
        match self {
            Self::Rate(rate) => rate.amount_in(to.saturating_since(from)),
            Self::Script(script) => script.capacity(from, to),
            Self::Trace(trace) => trace.capacity(from, to),
        }
    }

    /// The rate at `now`; for a trace, the average over the second around it.
    pub fn rate_at(&self, now: Instant) -> BitRate {
        match self {
            Self::Rate(rate) => *rate,
            Self::Script(script) => script.rate_at(now).0.unwrap_or_default(),
            Self::Trace(trace) => {
                let half = Duration::from_millis(500);
                let from = Instant::ZERO + now.saturating_since(Instant::ZERO + half);
                BitRate::from_amount(trace.capacity(from, now + half), (now + half).saturating_since(from))
                    .unwrap_or_default()
            }
        }
    }
}

/// A rate that changes at given times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateScript {
    first: BitRate,
    /// In ascending order; `None` is an outage.
    changes: Vec<(Instant, Option<BitRate>)>,
}

impl RateScript {
    /// Starts with `first` and changes at each time in `changes` to the given rate, or to an outage for `None`. Returns
    /// `None` unless the times ascend and the last change is to a rate; otherwise packets would wait forever.
    pub fn new(first: BitRate, changes: Vec<(Instant, Option<BitRate>)>) -> Option<Self> {
        let ascend = changes.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let ends = changes.last().is_none_or(|(_, rate)| rate.is_some());
        let runs = changes.iter().filter_map(|(_, rate)| *rate).chain([first]).all(|rate| rate.as_bps() > 0);
        (ascend && ends && runs).then_some(Self { first, changes })
    }

    /// The initial rate.
    pub fn first(&self) -> BitRate {
        self.first
    }

    /// The rate at `now`, and the number of changes until then.
    fn rate_at(&self, now: Instant) -> (Option<BitRate>, usize) {
        let changed = self.changes.partition_point(|(at, _)| *at <= now);
        (changed.checked_sub(1).map_or(Some(self.first), |last| self.changes[last].1), changed)
    }

    /// Bytes that can be transmitted from `from` to `to`.
    fn capacity(&self, from: Instant, to: Instant) -> Bytes {
        let (mut at, mut bytes) = (from, Bytes(0));
        while at < to {
            let (rate, changed) = self.rate_at(at);
            let next = self.changes.get(changed).map_or(to, |(at, _)| (*at).min(to));
            bytes += rate.map_or(Bytes(0), |rate| rate.amount_in(next - at));
            at = next;
        }
        bytes
    }

    /// The earliest time, not before `now`, at which there is a rate.
    fn running_from(&self, now: Instant) -> Instant {
        let (rate, changed) = self.rate_at(now);
        match (rate, self.changes.get(changed)) {
            (None, Some((at, _))) => self.running_from(*at),
            _ => now,
        }
    }

    /// When a transmission of `len` bytes that starts at `start` ends. A packet during which the rate changes continues
    /// at the new rate.
    fn end_of(&self, start: Instant, len: Bytes) -> Instant {
        let mut rest_nanobits = u128::from(len.0) * 8_000_000_000;
        let mut from = start;
        loop {
            let (rate, changed) = self.rate_at(from);
            let next = self.changes.get(changed).map(|(at, _)| *at);
            let bps = rate.map_or(0, |rate| u128::from(rate.as_bps()));
            let until_next = next.map(|at| bps * u128::from(at.saturating_since(from).as_nanos()));
            match (next, until_next) {
                (Some(at), Some(sent_nanobits)) if sent_nanobits < rest_nanobits => {
                    rest_nanobits -= sent_nanobits;
                    from = at;
                }
                // The last change is to a rate, so a rate that lasts to the end of the packet is above zero.
                _ => return from + Duration::from_nanos(rest_nanobits.div_ceil(bps) as u64),
            }
        }
    }
}

/// A running transmitter.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    /// When it finishes its accepted packets.
    free_at: Instant,
    position: Position,
}

impl Progress {
    /// When the transmission of a packet starts that is first in the queue and has been there since `since`.
    #[inline]
    pub fn next_start(&self, service: &Service, since: Instant) -> Instant {
        if let Service::Rate(_) = service {
            return self.free_at.max(since);
        }
        self.next_start_otherwise(service, since)
    }

    #[inline(never)]
    fn next_start_otherwise(&self, service: &Service, since: Instant) -> Instant {
        match service {
            Service::Rate(_) => self.free_at.max(since),
            Service::Script(script) => script.running_from(self.free_at.max(since)),
            Service::Trace(trace) => self.position.next_start(trace, since),
        }
    }

    /// Transmits it; returns the start and the end of the transmission.
    #[inline]
    pub fn transmit(&mut self, service: &Service, since: Instant, len: Bytes) -> (Instant, Instant) {
        let Service::Rate(rate) = service else { return self.transmit_otherwise(service, since, len) };
        let start = self.free_at.max(since);
        self.free_at = start + rate.time_for(len);
        (start, self.free_at)
    }

    /// Fast version for a transmitter with a constant rate, the most common case.
    #[inline(never)]
    fn transmit_otherwise(&mut self, service: &Service, since: Instant, len: Bytes) -> (Instant, Instant) {
        let start = self.next_start(service, since);
        match service {
            Service::Trace(trace) => return self.position.transmit(trace, since, len),
            Service::Script(script) => self.free_at = script.end_of(start, len),
            Service::Rate(rate) => self.free_at = start + rate.time_for(len),
        }
        (start, self.free_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn a_packet_goes_on_at_the_rate_it_finds() {
        let changes =
            vec![(at(1), Some(BitRate::from_mbps(6))), (at(2), None), (at(10), Some(BitRate::from_mbps(12)))];
        let service = Service::Script(RateScript::new(BitRate::from_mbps(12), changes).unwrap());
        let mut progress = Progress::default();
        let mut send = |since, len| progress.transmit(&service, at(since), Bytes(len));
        // 1500 bytes take 1 ms at 12 Mb/s and 2 ms at 6 Mb/s.
        assert_eq!(send(0, 1_500), (at(0), at(1)));
        assert_eq!(
            send(0, 1_500),
            (at(1), at(10) + Duration::from_micros(500)),
            "half of it, an outage, the rest"
        );
        assert_eq!(send(20, 1_500), (at(20), at(21)));
    }

    #[test]
    fn capacity_is_what_can_be_sent() {
        let changes = vec![(at(10), None), (at(15), Some(BitRate::from_mbps(24)))];
        let service = Service::Script(RateScript::new(BitRate::from_mbps(12), changes).unwrap());
        // 12 Mb/s are 1500 bytes per millisecond.
        assert_eq!(service.capacity(at(4), at(12)), Bytes(6 * 1_500));
        assert_eq!(service.capacity(at(0), at(20)), Bytes((10 + 5 * 2) * 1_500));
        assert_eq!(service.rate_at(at(12)), BitRate::default());
        assert_eq!(Service::Rate(BitRate::from_mbps(12)).capacity(at(5), at(7)), Bytes(3_000));
        let trace = Trace::parse("1\n1\n4\n10\n").unwrap();
        // Opportunities at 1, 1, 4, 10, 11, 11, 14, 20 ms. A packet that arrives at the exact time of an opportunity
        // misses it.
        assert_eq!(trace.capacity(at(0), at(10)), Bytes(4 * 1_500));
        assert_eq!(trace.capacity(at(4), at(12)), Bytes(3 * 1_500));
        let service = Service::Trace(Arc::new(trace));
        assert_eq!(service.rate_at(at(5_000)), BitRate::from_bps(4_800_000));
    }

    #[test]
    fn nothing_begins_in_an_outage() {
        let changes = vec![(at(0), None), (at(5), None), (at(10), Some(BitRate::from_mbps(12)))];
        let service = Service::Script(RateScript::new(BitRate::from_mbps(1), changes).unwrap());
        let mut progress = Progress::default();
        assert_eq!(progress.next_start(&service, at(3)), at(10));
        assert_eq!(progress.transmit(&service, at(3), Bytes(1_500)), (at(10), at(11)));
    }

    #[test]
    fn scripts_ascend_and_end_with_a_rate() {
        let rate = BitRate::from_mbps(1);
        assert_eq!(RateScript::new(rate, vec![(at(1), None)]), None);
        assert_eq!(RateScript::new(rate, vec![(at(1), Some(rate)), (at(1), Some(rate))]), None);
        assert_eq!(RateScript::new(rate, vec![(at(1), Some(BitRate::from_bps(0)))]), None);
        assert!(RateScript::new(rate, vec![]).is_some());
    }
}
