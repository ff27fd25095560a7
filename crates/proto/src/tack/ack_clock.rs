//! When a receiver acknowledges: the TACK rule, and those it is compared with.

use super::config::{AckClock, StartUp};
use crate::units::{BitRate, Bytes, Duration, Instant};

/// Bounds of the wait for a second packet that does not come. The papers are silent about the tail of a flow; QUIC's
/// `max_ack_delay` is 25 ms (RFC 9000 section 18.2).
const TAIL_MIN: Duration = Duration::from_millis(1);
pub(super) const TAIL_MAX: Duration = Duration::from_millis(25);

/// ACKs in a round trip while a sender starts up, at most. The sender paces, so that what an ACK brings is news of the
/// rate: sixteen times a round trip it is as good as with every packet (docs/design/tack.md).
const STARTUP_PER_RTT: u64 = 16;

/// Octets by which a packet may be shorter than the largest and still counts as full-sized: the room that its stream's name
/// and what the sender tells of the path take in it.
const FULL_SLACK: u64 = 32;

impl AckClock {
    /// The time from one ACK to the next while packets of `packet` octets arrive at `rate` over a path of `rtt_min`:
    /// 1/f of TACK paper equations 3 and 5. A rate of zero waits for the path alone.
    pub fn interval(self, rate: BitRate, rtt_min: Duration, packet: Bytes) -> Duration {
        let counting = |every: u8| match rate.as_bps() {
            0 => Duration::ZERO,
            _ => rate.time_for(Bytes(u64::from(every.max(1)) * packet.0)),
        };
        match self {
            // The smaller frequency is the longer time.
            Self::Tack { beta, every } => counting(every).max(rtt_min / u64::from(beta.max(1))),
            Self::Delayed { every, delay } => counting(every).min(delay),
        }
    }

    /// How long a packet may wait for its ACK, whatever arrives after it.
    pub fn longest_wait(self, rtt_min: Duration) -> Duration {
        match self {
            Self::Tack { beta, .. } => {
                let period = rtt_min / u64::from(beta.max(1));
                period.max(tail(period))
            }
            Self::Delayed { delay, .. } => delay,
        }
    }
}

/// The wait for a second packet where ACKs come `period` apart.
fn tail(period: Duration) -> Duration {
    period.clamp(TAIL_MIN, TAIL_MAX)
}

/// The clock of one receiver.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    rule: AckClock,
    /// Least octets of a full-sized packet.
    full: u64,
    /// Smallest round-trip time, once the sender has told it.
    rtt_min: Option<Duration>,
    /// The rule while the sender looks for its rate.
    start_up: StartUp,
    /// It does.
    starting: bool,
    /// Octets and packets that no ACK reports, and when the first of them came.
    pending: u64,
    pending_packets: u32,
    pending_since: Instant,
    last: Option<Instant>,
}

impl Clock {
    pub fn new(rule: AckClock, start_up: StartUp, full: u32) -> Self {
        Self {
            rule,
            full: u64::from(full).saturating_sub(FULL_SLACK).max(1),
            rtt_min: None,
            start_up,
            starting: true,
            pending: 0,
            pending_packets: 0,
            pending_since: Instant::ZERO,
            last: None,
        }
    }

    /// The sender says how long the path is, and whether it is still looking for its rate.
    pub fn synchronise(&mut self, rtt_min: Option<Duration>, starting: bool) {
        self.rtt_min = rtt_min.or(self.rtt_min);
        self.starting = starting;
    }

    /// The handshake measured the path; the sender will say better.
    pub fn set_rtt(&mut self, rtt: Duration) {
        self.rtt_min = Some(rtt);
    }

    /// The sender wants `beta` and `every`: for a clock that keeps the TACK rule.
    pub fn set_rule(&mut self, beta: u8, every: u8) {
        if matches!(self.rule, AckClock::Tack { .. }) {
            self.rule = AckClock::Tack { beta, every };
        }
    }

    /// A packet with `octets` of data arrived.
    #[inline]
    pub fn on_packet(&mut self, now: Instant, octets: u64) {
        if self.pending_packets == 0 {
            self.pending_since = now;
        }
        self.pending += octets;
        self.pending_packets += 1;
    }

    /// The time between ACKs where packets are many; zero while the path is not known.
    pub fn period(&self) -> Duration {
        match self.rule {
            AckClock::Tack { beta, .. } => self.rtt_min.unwrap_or_default() / u64::from(beta.max(1)),
            AckClock::Delayed { .. } => Duration::ZERO,
        }
    }

    /// Smallest round-trip time as far as it is known.
    pub fn rtt_min(&self) -> Option<Duration> {
        self.rtt_min
    }

    /// When the next TACK is due, which may be in the past; `None` where nothing waits for one.
    #[inline]
    pub fn due(&self) -> Option<Instant> {
        if self.pending_packets == 0 {
            return None;
        }
        if self.starting && self.start_up != StartUp::AsAlways {
            let often = self.rtt_min.unwrap_or_default() / STARTUP_PER_RTT;
            let earliest = self.last.filter(|_| self.start_up == StartUp::Often).map(|last| last + often);
            return Some(earliest.unwrap_or_default().max(self.pending_since));
        }
        match self.rule {
            AckClock::Tack { every, .. } => {
                let period = self.period();
                let earliest = self.last.map_or(self.pending_since, |last| last + period);
                let enough = self.pending >= u64::from(every) * self.full;
                Some(if enough { earliest } else { earliest.max(self.pending_since + tail(period)) })
            }
            AckClock::Delayed { every, delay } => {
                let enough = self.pending_packets >= u32::from(every);
                Some(if enough { self.pending_since } else { self.pending_since + delay })
            }
        }
    }

    /// A TACK leaves.
    pub fn on_tack(&mut self, now: Instant) {
        self.last = Some(now);
        self.pending = 0;
        self.pending_packets = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;
    const FULL: u32 = 1500;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + MS(millis)
    }

    /// TACK paper figure 8(b), and the checks of its three insights.
    #[test]
    fn intervals_are_those_of_the_paper() {
        let hz = |kbps, rtt| {
            1e9 / AckClock::USUAL.interval(BitRate::from_kbps(kbps), MS(rtt), Bytes(1500)).as_nanos() as f64
        };
        for (rtt, b, ac) in [(10, 294.0, 400.0), (80, 50.0, 50.0), (200, 20.0, 20.0)] {
            assert!((hz(7_056, rtt) / b - 1.0).abs() < 0.01);
            assert!((hz(594_650, rtt) / ac - 1.0).abs() < 0.01);
        }
    }

    fn clock(rtt_min: u64) -> Clock {
        let mut clock = Clock::new(AckClock::USUAL, StartUp::Often, FULL);
        clock.synchronise(Some(MS(rtt_min)), false);
        clock
    }

    #[test]
    fn both_bounds_must_be_met() {
        let mut clock = clock(80);
        clock.on_packet(at(0), 1500);
        clock.on_tack(at(0));
        clock.on_packet(at(1), 1500);
        // One packet waits for the tail: 20 ms, a quarter of the round trip.
        assert_eq!(clock.due(), Some(at(21)));
        clock.on_packet(at(2), 1500);
        assert_eq!(clock.due(), Some(at(20)));
        clock.on_tack(at(20));
        assert_eq!(clock.due(), None);
        // Packets are rare: the second decides.
        clock.on_packet(at(100), 1500);
        clock.on_packet(at(110), 1500);
        assert_eq!(clock.due(), Some(at(40)));
    }

    #[test]
    fn the_tail_waits_between_1_and_25_ms() {
        for (rtt, wait) in [(1, 1), (40, 10), (400, 25)] {
            let mut clock = clock(rtt);
            clock.on_packet(at(1000), 100);
            assert_eq!(clock.due(), Some(at(1000 + wait)));
        }
    }

    #[test]
    fn a_start_up_has_an_ack_per_packet_or_sixteen_in_a_round_trip() {
        for (start_up, second) in [(StartUp::PerPacket, 4), (StartUp::Often, 8), (StartUp::AsAlways, 24)] {
            let mut clock = Clock::new(AckClock::USUAL, start_up, FULL);
            clock.set_rtt(MS(80));
            clock.on_packet(at(3), 10);
            clock.on_tack(at(3));
            clock.on_packet(at(4), 10);
            assert_eq!(clock.due(), Some(at(second)), "{start_up:?}");
        }
        let mut clock = Clock::new(AckClock::USUAL, StartUp::Often, FULL);
        clock.on_packet(at(3), 10);
        assert_eq!(clock.due(), Some(at(3)), "how long the path is nobody knows yet");
    }

    #[test]
    fn packets_that_name_a_stream_or_tell_of_the_path_are_full_sized() {
        let mut clock = clock(80);
        clock.on_packet(at(0), 1500);
        clock.on_tack(at(0));
        clock.on_packet(at(1), 1490);
        clock.on_packet(at(2), 1480);
        assert_eq!(clock.due(), Some(at(20)));
    }

    #[test]
    fn delayed_acks_come_by_number_or_time() {
        let rule = AckClock::Delayed { every: 2, delay: MS(40) };
        let mut clock = Clock::new(rule, StartUp::AsAlways, FULL);
        clock.on_packet(at(0), 1500);
        assert_eq!(clock.due(), Some(at(40)));
        clock.on_packet(at(1), 1500);
        assert_eq!(clock.due(), Some(at(0)));
    }
}
