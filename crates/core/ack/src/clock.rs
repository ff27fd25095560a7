//! When a receiver acknowledges: the TACK rule, the paper's, and those they are compared with.

use crate::meters::{BurstMeter, GATHER, QueueingDelay};
use crate::{AckClock, BitRate, Bytes, Duration, Instant, StartUp};

/// Bounds of the wait for a second packet that does not come. The papers are silent about the tail of a flow; QUIC's
/// `max_ack_delay` is 25 ms (RFC 9000 section 18.2).
const TAIL_MIN: Duration = Duration::from_millis(1);
/// The longest such wait.
pub const TAIL_MAX: Duration = Duration::from_millis(25);

/// ACKs in a round trip while a sender starts up, at most. The sender paces, so that an ACK brings only news of the rate:
/// sixteen times a round trip it is as good as with every packet (docs/experiments/tack.md).
pub(crate) const STARTUP_PER_RTT: u64 = 16;

/// Full-sized packets per ACK of a start-up under [`AckClock::Tack`], as TCP's receivers have (RFC 5681 section 4.2): the first
/// windows are of few packets, and a slow way back is known to be one only after the first ACKs.
const STARTUP_EVERY: u8 = 2;

/// Least time between ACKs of a start-up under [`AckClock::Tack`]: on a short path a sixteenth of a round trip is the time of
/// a few packets.
const STARTUP_INTERVAL_MIN: Duration = Duration::from_millis(1);

/// Bursts in an interval of [`AckClock::Tack`]: where several stations share a channel, an ACK per A-MPDU is an access for
/// each that an access point makes.
const BURSTS_PER_ACK: u64 = 2;

/// However slowly packets arrive, this long they are waited for. It is half the delay that TCP's receivers may add
/// (RFC 9293 section 3.8.6.3 allows less than 0.5 s; Linux takes up to 200 ms).
const COUNTED_MAX: Duration = Duration::from_millis(100);

/// Loss IACKs in a smallest round-trip time: where holes open faster, as when a queue overflows, one TACK reports all of
/// them after a sixteenth. The papers bound IACKs by the losses alone.
const INSTANTS_PER_RTT: u64 = 16;

/// Reports of holes in a round trip under [`AckClock::Tack`] (RFC 8985 section 6.2 waits a quarter of it for
/// reordering), within these bounds.
const HOLE_REPORTS_PER_RTT: u64 = 4;
const HOLE_INTERVAL: core::ops::RangeInclusive<Duration> =
    Duration::from_millis(1)..=Duration::from_millis(10);

/// Bytes by which a packet may be shorter than the largest and still counts as full-sized: its stream's number and a `Sync`
/// need that room.
const FULL_SLACK: u64 = 32;

/// Inputs of the time between ACKs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arriving {
    /// The rate at which data arrives; zero while it is not known.
    pub rate: BitRate,
    /// The smallest round-trip time.
    pub rtt_min: Duration,
    /// Queueing delay that adds to it now.
    pub queueing: Duration,
    /// A full-sized packet.
    pub packet: Bytes,
    /// The most that arrives at once.
    pub burst: Bytes,
    /// The least time between ACKs that the way back carries.
    pub ack_path: Duration,
}

impl AckClock {
    /// The time from one ACK to the next: 1/f. [`Paper`](Self::Paper) and [`Delayed`](Self::Delayed) are TACK paper equations 3
    /// and 5. A rate of zero waits for the path alone.
    pub fn interval(self, arriving: &Arriving) -> Duration {
        let &Arriving { rate, rtt_min, queueing, packet, burst, ack_path } = arriving;
        let time_of = |bytes: u64| match rate.as_bps() {
            0 => Duration::ZERO,
            _ => rate.time_for(Bytes(bytes)),
        };
        let counting = |every: u8| u64::from(every.max(1)) * packet.0;
        match self {
            Self::Tack { beta, every, min_interval } => {
                let part = (rtt_min + queueing) / u64::from(beta.max(1));
                // A window that waits for ACKs slows the flow down, and that would make ACKs rarer again.
                if min_interval == Duration::ZERO {
                    return part.max(ack_path);
                }
                let counted = time_of(counting(every).max(BURSTS_PER_ACK * burst.0)).min(COUNTED_MAX);
                counted.max(part).max(min_interval).max(ack_path)
            }
            // The smaller frequency is the longer time.
            Self::Paper { beta, every } => time_of(counting(every)).max(rtt_min / u64::from(beta.max(1))),
            Self::Delayed { every, delay } => time_of(counting(every)).min(delay),
        }
    }

    /// How long a packet may wait for its ACK, independent of later arrivals.
    pub fn longest_wait(self, arriving: &Arriving) -> Duration {
        match self {
            Self::Tack { .. } => at_least_tail(self.interval(arriving)),
            Self::Paper { beta, .. } => at_least_tail(arriving.rtt_min / u64::from(beta.max(1))),
            Self::Delayed { delay, .. } => delay,
        }
    }
}

/// The wait for packets that do not come where ACKs come `period` apart.
fn tail(period: Duration) -> Duration {
    period.clamp(TAIL_MIN, TAIL_MAX)
}

fn at_least_tail(period: Duration) -> Duration {
    period.max(tail(period))
}

/// The clock of one receiver.
#[derive(Clone, Debug)]
pub struct Clock {
    rule: AckClock,
    /// Least bytes of a full-sized packet.
    full: u64,
    /// Smallest round-trip time, once the sender has told it.
    rtt_min: Option<Duration>,
    /// The rule while the sender looks for its rate.
    start_up: StartUp,
    /// It does.
    starting: bool,
    /// The least time between ACKs that the way back carries, as the sender told it.
    ack_path: Duration,
    /// Bytes and packets that no ACK reports, and when the first of them came.
    pending: u64,
    pending_packets: u32,
    pending_since: Instant,
    last: Option<Instant>,
    rate: BitRate,
    queueing: QueueingDelay,
    bursts: BurstMeter,
    /// The time between ACKs as of the last, and a shorter one for packets that come faster than they did by then.
    interval: Duration,
    least: Duration,
}

impl Clock {
    /// The clock of a receiver whose full-sized packets have `full` bytes of data, before the first packet.
    pub fn new(rule: AckClock, start_up: StartUp, full: u32) -> Self {
        Self {
            rule,
            full: u64::from(full).saturating_sub(FULL_SLACK).max(1),
            rtt_min: None,
            start_up,
            starting: true,
            ack_path: Duration::ZERO,
            pending: 0,
            pending_packets: 0,
            pending_since: Instant::ZERO,
            last: None,
            rate: BitRate::default(),
            queueing: QueueingDelay::default(),
            bursts: BurstMeter::default(),
            interval: Duration::ZERO,
            least: Duration::ZERO,
        }
    }

    /// The sender says how long the path is, how many ACKs it carries, and whether it is still looking for its rate.
    pub fn synchronise(&mut self, rtt_min: Option<Duration>, ack_path: Duration, starting: bool) {
        self.rtt_min = rtt_min.or(self.rtt_min);
        self.ack_path = ack_path;
        self.starting = starting;
        self.update_interval();
    }

    /// The handshake measured the path; the sender will say better.
    pub fn set_rtt(&mut self, rtt: Duration) {
        self.rtt_min = Some(rtt);
        self.update_interval();
    }

    /// The sender's wishes; the clock keeps the TACK rule or the paper's.
    pub fn set_rule(&mut self, beta: u8, every: u8, min_interval: Duration) {
        self.rule = match self.rule {
            AckClock::Tack { .. } => AckClock::Tack { beta, every, min_interval },
            AckClock::Paper { .. } => AckClock::Paper { beta, every },
            delayed @ AckClock::Delayed { .. } => delayed,
        };
        self.update_interval();
    }

    fn update_interval(&mut self) {
        let arriving = Arriving {
            rate: self.rate,
            rtt_min: self.rtt_min.unwrap_or_default(),
            queueing: self.queueing.smoothed(),
            packet: Bytes(self.full),
            burst: self.burst(),
            ack_path: self.ack_path,
        };
        (self.interval, self.least) = match self.rule {
            AckClock::Tack { .. } => {
                let all_came = Arriving { rate: BitRate::default(), ..arriving };
                (self.rule.interval(&arriving), self.rule.interval(&all_came))
            }
            AckClock::Paper { beta, .. } => {
                let part = arriving.rtt_min / u64::from(beta.max(1));
                (part, part)
            }
            AckClock::Delayed { .. } => (Duration::ZERO, Duration::ZERO),
        };
    }

    /// A packet with `bytes` of data arrived.
    #[inline]
    pub fn on_packet(&mut self, now: Instant, bytes: u64) {
        if self.pending_packets == 0 {
            self.pending_since = now;
        }
        self.pending += bytes;
        self.pending_packets += 1;
        self.bursts.on_bytes(now, bytes);
    }

    /// Smallest round-trip time, once known.
    pub fn rtt_min(&self) -> Option<Duration> {
        self.rtt_min
    }

    /// From when a packet leaves to when its sender hears of it, where no queue stands: the time that a receive window must
    /// last for.
    pub fn feedback_delay(&self) -> Option<Duration> {
        let wait = if self.is_tack() { self.interval } else { Duration::ZERO };
        self.rtt_min.map(|rtt_min| rtt_min + wait)
    }

    /// The most that arrived at once lately.
    pub fn burst(&self) -> Bytes {
        Bytes(self.bursts.burst())
    }

    /// TACK's own rule, which also gathers the holes of a PPDU into one TACK.
    pub fn is_tack(&self) -> bool {
        matches!(self.rule, AckClock::Tack { .. })
    }

    /// When a hole that opens at `now` is to be reported, where holes were reported `before`; `None` where each has an IACK.
    /// Other losses of one PPDU are known a moment later, and go with it.
    pub fn hole_due(&self, now: Instant, before: Option<Instant>) -> Option<Instant> {
        self.is_tack().then(|| {
            let spaced = before.map_or(now, |before| before + self.hole_interval());
            spaced.max(now + GATHER)
        })
    }

    /// The time between reports of holes.
    pub fn hole_interval(&self) -> Duration {
        let rtt_min = self.rtt_min.unwrap_or_default();
        if self.is_tack() {
            let rtt = rtt_min + self.queueing.smoothed();
            let often = (rtt / HOLE_REPORTS_PER_RTT).clamp(*HOLE_INTERVAL.start(), *HOLE_INTERVAL.end());
            often.max(self.ack_path)
        } else {
            rtt_min / INSTANTS_PER_RTT
        }
    }

    /// When the next TACK is due, which may be in the past; `None` where nothing waits for one.
    #[inline]
    pub fn due(&self) -> Option<Instant> {
        if self.pending_packets == 0 {
            return None;
        }
        let due = self.earliest_due();
        Some(if self.is_tack() { self.gather(due) } else { due })
    }

    /// Packets that arrive at once are acknowledged at once: a TACK that falls due within a burst waits for the rest of it.
    fn gather(&self, due: Instant) -> Instant {
        due.max(self.bursts.began().min(due) + GATHER)
    }

    fn earliest_due(&self) -> Instant {
        match self.start_up {
            StartUp::PerPacket if self.starting => return self.pending_since,
            StartUp::Often if self.starting && self.is_tack() => {
                let interval = self.startup_interval();
                return self.counted(STARTUP_EVERY, interval, tail(interval)).max(self.pending_since);
            }
            StartUp::Often if self.starting => {
                let earliest = self.last.map(|last| last + self.startup_interval());
                return earliest.unwrap_or_default().max(self.pending_since);
            }
            _ => {}
        }
        match self.rule {
            AckClock::Tack { every, .. } => {
                // Twice the bursts of an interval: packets come faster than they did.
                let hurries = self.pending >= 2 * BURSTS_PER_ACK * self.burst().0;
                let interval = if hurries { self.least } else { self.interval };
                self.counted(every, interval, at_least_tail(self.interval)).max(self.pending_since)
            }
            AckClock::Paper { every, .. } => self.counted(every, self.interval, tail(self.interval)),
            AckClock::Delayed { every, delay } => {
                let enough = self.pending_packets >= u32::from(every);
                if enough { self.pending_since } else { self.pending_since + delay }
            }
        }
    }

    /// `interval` after the last TACK, and once `every` packets wait for one; or the first of fewer has waited for `tail`.
    fn counted(&self, every: u8, interval: Duration, tail: Duration) -> Instant {
        let earliest = self.last.map_or(self.pending_since, |last| last + interval);
        let enough = self.pending >= u64::from(every) * self.full;
        if enough { earliest } else { earliest.max(self.pending_since + tail) }
    }

    /// A TACK leaves. Data arrived at `rate` where that is known, and the least one-way delay since the last TACK was `delay`
    /// microseconds by two clocks.
    pub fn on_tack(&mut self, now: Instant, rate: Option<BitRate>, delay: Option<u32>) {
        self.last = Some(now);
        self.rate = rate.unwrap_or(self.rate);
        if let Some(delay) = delay {
            self.queueing.update(now, delay);
        }
        if self.pending_packets > 0 {
            self.bursts.end_interval();
        }
        self.pending = 0;
        self.pending_packets = 0;
        self.update_interval();
    }

    /// The sender's start-up: its rate doubles in a round trip, so ACKs are frequent.
    fn startup_interval(&self) -> Duration {
        let often = self.rtt_min.unwrap_or_default() / STARTUP_PER_RTT;
        if self.is_tack() { often.max(STARTUP_INTERVAL_MIN).max(self.ack_path) } else { often }
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
            let arriving = Arriving {
                rate: BitRate::from_kbps(kbps),
                rtt_min: MS(rtt),
                packet: Bytes(1500),
                ..Arriving::default()
            };
            1e9 / AckClock::PAPER.interval(&arriving).as_nanos() as f64
        };
        for (rtt, b, ac) in [(10, 294.0, 400.0), (80, 50.0, 50.0), (200, 20.0, 20.0)] {
            assert!((hz(7_056, rtt) / b - 1.0).abs() < 0.01);
            assert!((hz(594_650, rtt) / ac - 1.0).abs() < 0.01);
        }
    }

    fn clock(rtt_min: u64) -> Clock {
        let mut clock = Clock::new(AckClock::PAPER, StartUp::Often, FULL);
        clock.synchronise(Some(MS(rtt_min)), Duration::ZERO, false);
        clock
    }

    #[test]
    fn both_bounds_must_be_met() {
        let mut clock = clock(80);
        clock.on_packet(at(0), 1500);
        clock.on_tack(at(0), None, None);
        clock.on_packet(at(1), 1500);
        // One packet waits for the tail: 20 ms, a quarter of the round trip.
        assert_eq!(clock.due(), Some(at(21)));
        clock.on_packet(at(2), 1500);
        assert_eq!(clock.due(), Some(at(20)));
        clock.on_tack(at(20), None, None);
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
            let mut clock = Clock::new(AckClock::PAPER, start_up, FULL);
            clock.set_rtt(MS(80));
            clock.on_packet(at(3), 10);
            clock.on_tack(at(3), None, None);
            clock.on_packet(at(4), 10);
            assert_eq!(clock.due(), Some(at(second)), "{start_up:?}");
        }
        let mut clock = Clock::new(AckClock::PAPER, StartUp::Often, FULL);
        clock.on_packet(at(3), 10);
        assert_eq!(clock.due(), Some(at(3)), "the path's round trip is not known yet");
    }

    #[test]
    fn a_start_up_acknowledges_every_second_packet_and_no_sooner_than_after_a_millisecond() {
        let micros = |micros| Instant::ZERO + Duration::from_micros(micros);
        for (rtt_ms, one, two) in [(8, 11_100, 11_000), (80, 15_100, 15_000)] {
            let mut clock = Clock::new(AckClock::USUAL, StartUp::Often, FULL);
            clock.set_rtt(MS(rtt_ms));
            clock.on_packet(at(10), 1500);
            clock.on_tack(at(10), None, None);
            clock.on_packet(micros(10_100), 1500);
            assert_eq!(
                clock.due(),
                Some(micros(one)),
                "a second packet is waited for, round trip of {rtt_ms} ms"
            );
            clock.on_packet(micros(10_200), 1500);
            assert_eq!(clock.due(), Some(micros(two)), "round trip of {rtt_ms} ms");
        }
    }

    #[test]
    fn packets_that_name_a_stream_or_tell_of_the_path_are_full_sized() {
        let mut clock = clock(80);
        clock.on_packet(at(0), 1500);
        clock.on_tack(at(0), None, None);
        clock.on_packet(at(1), 1490);
        clock.on_packet(at(2), 1480);
        assert_eq!(clock.due(), Some(at(20)));
        // 32 bytes each, and not one more.
        for (second, due_ms) in [(1468, 20), (1467, 21)] {
            clock.on_tack(at(0), None, None);
            clock.on_packet(at(1), 1468);
            clock.on_packet(at(2), second);
            assert_eq!(clock.due(), Some(at(due_ms)), "{second} bytes");
        }
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

    /// The law in one line per bound: the longest of them decides.
    #[test]
    fn the_longest_of_three_times_is_between_tacks() {
        let arriving = Arriving {
            rate: BitRate::from_mbps(120),
            rtt_min: MS(2),
            queueing: MS(6),
            packet: Bytes(1500),
            burst: Bytes(42 * 1500),
            ack_path: Duration::ZERO,
        };
        let interval = |change: fn(&mut Arriving)| {
            let mut arriving = arriving;
            change(&mut arriving);
            AckClock::USUAL.interval(&arriving)
        };
        assert_eq!(interval(|_| {}), MS(25), "one station: the least");
        // 42 packets arrive each 44 ms, for nine others are served between.
        assert_eq!(interval(|now| now.rate = BitRate::from_kbps(11_455)).as_micros(), 87_996, "two A-MPDUs");
        assert_eq!(
            interval(|now| (now.rate, now.burst) = (BitRate::from_mbps(4), Bytes(1500))),
            MS(48),
            "16 packets"
        );
        assert_eq!(interval(|now| now.rate = BitRate::from_kbps(500)), MS(100), "few packets");
        assert_eq!(
            interval(|now| now.queueing = MS(398)),
            MS(100),
            "a quarter of a round trip that queues have made long"
        );
        assert_eq!(interval(|now| now.ack_path = MS(114)), MS(114), "the way back carries no more");
        let window = AckClock::Tack { beta: 4, every: 16, min_interval: Duration::ZERO };
        assert_eq!(
            window.interval(&Arriving { burst: Bytes(1500), ..arriving }),
            MS(2),
            "of a sender with a window"
        );
    }

    fn tack_clock() -> Clock {
        let mut clock = Clock::new(AckClock::USUAL, StartUp::Often, FULL);
        clock.synchronise(Some(MS(2)), Duration::ZERO, false);
        clock
    }

    #[test]
    fn packets_that_arrive_at_once_get_one_tack() {
        let mut clock = tack_clock();
        for _ in 0..42 {
            clock.on_packet(at(1000), 1500);
            assert!(clock.due().is_some_and(|due| due >= at(1000) + GATHER));
        }
        let due = clock.due().unwrap();
        assert_eq!(due, at(1000) + GATHER);
        // One that is due in the middle of a burst waits for its end, and no longer.
        let mut busy = tack_clock();
        busy.on_tack(at(1000), None, None);
        (0..50).for_each(|packet| busy.on_packet(at(1024) + Duration::from_micros(980 + packet), 1500));
        assert_eq!(busy.due(), Some(at(1025) + Duration::from_micros(230)));
        (0..50).for_each(|packet| busy.on_packet(at(1025) + Duration::from_micros(300 + packet), 1500));
        assert_eq!(busy.due(), Some(at(1025) + GATHER));
        clock.on_tack(due, Some(BitRate::from_mbps(120)), None);
        clock.on_packet(at(1004), 1500);
        assert_eq!(clock.due(), Some(at(1029)), "a single packet waits for the tail");
        (0..15).for_each(|_| clock.on_packet(at(1004), 1500));
        assert_eq!(clock.due(), Some(due + MS(25)));
    }

    #[test]
    fn holes_of_one_ppdu_are_told_once_and_again_after_a_quarter_of_a_round_trip() {
        let clock = tack_clock();
        assert_eq!(clock.hole_due(at(7), None), Some(at(7) + GATHER));
        assert_eq!(clock.hole_due(at(7), Some(at(5))), Some(at(7) + GATHER));
        assert_eq!(clock.hole_due(at(7), Some(at(7))), Some(at(8)), "1 ms at least");
        for (rtt_ms, again_ms) in [(20, 12), (80, 17)] {
            let mut long = tack_clock();
            long.set_rtt(MS(rtt_ms));
            assert_eq!(long.hole_due(at(7), Some(at(7))), Some(at(again_ms)), "a quarter, 10 ms at most");
        }
        let mut paper = clock;
        paper.rule = AckClock::PAPER;
        assert_eq!(paper.hole_due(at(7), None), None);
    }
}
