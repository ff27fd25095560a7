//! What a sender asks of a receiver that is not its own: how many packets, and how much time, an ACK may wait for. QUIC
//! carries it as `ACK_FREQUENCY` (draft-ietf-quic-ack-frequency).
//!
//! A receiver with a [`Clock`](crate::Clock) measures the path itself. Here the sender decides by what it learns from ACKs, with
//! the same [`AckClock::interval`].

use crate::clock::{STARTUP_PER_RTT, TAIL_MAX};
use crate::{AckClock, Arriving, Bytes, Duration, Instant};

/// The shortest delay that is worth a request, and the least that a receiver's timers keep (RFC 9002 section 6.1.2:
/// `kGranularity`).
const DELAY_MIN: Duration = Duration::from_millis(1);

/// The longest delay: where only the way back is too slow for more ACKs, it may exceed what senders bear on any path.
const DELAY_MAX: Duration = Duration::from_millis(100);

/// Windows of up to this number of packets cause no more ACKs than a start-up has: sixteen in a round trip, for two packets
/// each. To spare some of them gains little, and windows that losses keep small need each.
const SMALL_WINDOW: u64 = STARTUP_PER_RTT * Request::PLAIN.packets as u64;

/// Growth of the window in a round trip that says start-up (draft-cardwell-iccrg-bbr-congestion-control-00 section
/// 4.3.2.2: a quarter).
const STARTUP_GROWTH_DIVISOR: u64 = 4;

/// A request that changes either number by less than a quarter is not worth a frame.
const CHANGE_DIVISOR: u64 = 4;

/// How often the peer is to acknowledge: at the earlier of two limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Packets per ACK, at least 1: the threshold of `ACK_FREQUENCY` and one more.
    pub packets: u32,
    /// The longest wait of a packet for its ACK.
    pub delay: Duration,
}

impl Request {
    /// What receivers do by default: every second packet (RFC 9000 section 13.2.2), after 25 ms (section 18.2).
    pub const PLAIN: Self = Self { packets: 2, delay: TAIL_MAX };

    /// Worth a frame where `before` holds.
    fn differs_from(self, before: Self) -> bool {
        let differ = |a: u64, b: u64| a.abs_diff(b) > a.max(b) / CHANGE_DIVISOR;
        (self == Self::PLAIN) != (before == Self::PLAIN)
            || differ(self.packets.into(), before.packets.into())
            || differ(self.delay.as_nanos(), before.delay.as_nanos())
    }
}

impl AckClock {
    /// What a sender asks for that may have `window` in flight, and limits itself by that window. It is [`Request::PLAIN`]
    /// on short paths, where a part of the round trip is less than a millisecond, and for small windows. A window is never
    /// waited for: an ACK comes for each `beta`-th of it, and for each `beta`-th of a round trip.
    ///
    /// Only [`Tack`](Self::Tack) asks; other rules are receivers' own.
    pub fn request(self, arriving: &Arriving, window: Bytes) -> Request {
        let Self::Tack { beta, every, .. } = self else { return Request::PLAIN };
        let of_window = Self::Tack { beta, every, min_interval: Duration::ZERO };
        let delay = of_window.interval(arriving);
        let in_window = window.0 / arriving.packet.0.max(1);
        if delay < DELAY_MIN || in_window <= SMALL_WINDOW {
            return Request::PLAIN;
        }
        let packets = u32::try_from(in_window / u64::from(beta.max(1))).unwrap_or(u32::MAX);
        let packets = packets.max(Request::PLAIN.packets);
        // A queue on the way there makes round trips long as well, and needs no slower ACKs.
        let most = TAIL_MAX.max(arriving.ack_path.min(DELAY_MAX));
        Request { packets, delay: delay.min(most) }
    }
}

/// What a sender knows when ACKs have arrived.
#[derive(Clone, Copy, Debug)]
pub struct Sending {
    /// The path; `ack_path` is zero where nothing is known of the way back.
    pub arriving: Arriving,
    /// Bytes that may be in flight.
    pub window: Bytes,
}

/// The requests of one connection, over its life.
#[derive(Clone, Debug)]
pub struct Requests {
    rule: AckClock,
    /// What holds, and since when.
    last: Request,
    asked: Option<Instant>,
    /// The window when this round trip began.
    round: Option<(Instant, Bytes)>,
    is_starting: bool,
}

impl Requests {
    /// No request was sent yet.
    pub const fn new(rule: AckClock) -> Self {
        Self { rule, last: Request::PLAIN, asked: None, round: None, is_starting: true }
    }

    /// What the peer was asked for last.
    pub const fn current(&self) -> Request {
        self.last
    }

    /// ACKs arrived at `now`: what the peer is to be asked for, where that is news. It is once in a round trip at most,
    /// except for the news that each second packet is to be acknowledged again.
    ///
    /// A start-up asks for nothing: a window of few packets would wait for its ACK, and each doubling with it. Where a queue
    /// has doubled the round trip, the window is large enough, and the queue may be one of ACKs.
    pub fn on_acks(&mut self, now: Instant, sending: &Sending) -> Option<Request> {
        let rtt = sending.arriving.rtt_min + sending.arriving.queueing;
        self.look_for_startup(now, rtt, sending.window);
        let is_queueing = sending.arriving.queueing > sending.arriving.rtt_min;
        let wanted = if self.is_starting && !is_queueing {
            Request::PLAIN
        } else {
            self.rule.request(&sending.arriving, sending.window)
        };
        let is_early = self.asked.is_some_and(|asked| now.saturating_since(asked) < rtt);
        if !wanted.differs_from(self.last) || (is_early && wanted != Request::PLAIN) {
            return None;
        }
        self.last = wanted;
        self.asked = Some(now);
        Some(wanted)
    }

    /// The window grew by a quarter in the last round trip, or there was none yet.
    fn look_for_startup(&mut self, now: Instant, rtt: Duration, window: Bytes) {
        match self.round {
            Some((began, before)) if now.saturating_since(began) >= rtt => {
                self.is_starting = window.0 >= before.0.saturating_add(before.0 / STARTUP_GROWTH_DIVISOR);
                self.round = Some((now, window));
            }
            Some(_) => {}
            None => self.round = Some((now, window)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BitRate;

    const MS: fn(u64) -> Duration = Duration::from_millis;
    const PACKET: u64 = 1_200;

    fn path(rtt_micros: u64) -> Arriving {
        Arriving {
            rate: BitRate::from_mbps(100),
            rtt_min: Duration::from_micros(rtt_micros),
            packet: Bytes(PACKET),
            ..Arriving::default()
        }
    }

    fn request(arriving: &Arriving, packets: u64) -> Request {
        AckClock::USUAL.request(arriving, Bytes(packets * PACKET))
    }

    #[test]
    fn short_paths_and_small_windows_ask_for_nothing() {
        for rtt_micros in [0, 100, 2_000, 3_999] {
            assert_eq!(request(&path(rtt_micros), 10_000), Request::PLAIN, "{rtt_micros} us");
        }
        assert_eq!(request(&path(4_000), 400), Request { packets: 100, delay: MS(1) });
        for packets in [0, 1, 32] {
            assert_eq!(request(&path(80_000), packets), Request::PLAIN, "{packets} packets");
        }
        assert_eq!(request(&path(80_000), 33), Request { packets: 8, delay: MS(20) });
    }

    /// A request delays ACKs no longer than receivers do by default, unless the way back needs it.
    #[test]
    fn a_delay_is_no_longer_than_a_peer_may_take_unasked_except_for_the_way_back() {
        assert_eq!(request(&path(400_000), 400).delay, TAIL_MAX);
        let queued = Arriving { queueing: MS(600), ..path(20_000) };
        assert_eq!(request(&queued, 400).delay, TAIL_MAX);
        for (ack_path, delay) in [(MS(40), MS(40)), (MS(400), DELAY_MAX)] {
            let slow = Arriving { ack_path, ..path(20_000) };
            assert_eq!(request(&slow, 400).delay, delay);
        }
    }

    #[test]
    fn other_rules_ask_for_nothing() {
        for rule in [AckClock::PAPER, AckClock::Delayed { every: 2, delay: MS(25) }] {
            assert_eq!(rule.request(&path(80_000), Bytes(400 * PACKET)), Request::PLAIN);
        }
    }

    /// The requests of a window that is `windows` of packets, an ACK each half round trip of 80 ms.
    fn asked(windows: &[u64]) -> Vec<(usize, Request)> {
        let mut requests = Requests::new(AckClock::USUAL);
        let mut now = Instant::ZERO;
        let mut all = Vec::new();
        for (at, packets) in windows.iter().enumerate() {
            let sending = Sending { arriving: path(80_000), window: Bytes(packets * PACKET) };
            all.extend(requests.on_acks(now, &sending).map(|request| (at, request)));
            now += MS(40);
        }
        all
    }

    #[test]
    fn a_start_up_asks_for_nothing() {
        assert_eq!(asked(&[10, 15, 20, 30, 40, 60, 80, 120]), []);
        let after = Request { packets: 30, delay: MS(20) };
        assert_eq!(asked(&[40, 60, 80, 120, 120, 120, 120]), [(6, after)]);
    }

    #[test]
    fn a_start_up_asks_where_a_queue_has_doubled_the_round_trip() {
        for (queueing, delay) in [(80, None), (81, Some(TAIL_MAX))] {
            let mut requests = Requests::new(AckClock::USUAL);
            let arriving = Arriving { queueing: MS(queueing), ..path(80_000) };
            let sending = Sending { arriving, window: Bytes(400 * PACKET) };
            let asked = requests.on_acks(Instant::ZERO, &sending);
            assert_eq!(asked.map(|request| request.delay), delay, "{queueing} ms");
        }
    }

    #[test]
    fn a_window_that_shrinks_is_told_of_and_a_little_change_is_not() {
        let request_every = |packets| Request { packets, delay: MS(20) };
        assert_eq!(asked(&[400, 400, 400, 420, 380, 350]), [(2, request_every(100))]);
        // A request holds for a round trip; a window of few packets cannot wait for it.
        assert_eq!(asked(&[400, 400, 400, 200, 200]), [(2, request_every(100)), (4, request_every(50))]);
        assert_eq!(asked(&[400, 400, 400, 8]), [(2, request_every(100)), (3, Request::PLAIN)]);
    }
}
