//! Which ACKs of a flow may wait, and for how long.
//!
//! Only an ACK that says no more than a later one of its flow will say may wait. The rules name what else an ACK may
//! say; an ACK that is not understood passes.
//!
//! `crates/live/kernel/bpf/thin.h` is the same in C: the kernel runs it.

use super::uplink::Uplink;
use tacit_packet::tcp::{AckInfo, Flags, SackBlocks, Segment};
use tacit_packet::units::{Duration, Instant, SeqNumber};

/// Segments at the beginning of a flow, and after a pause, whose ACKs all pass: slow start counts ACKs. Chrome's
/// receiver begins to thin after as many packets.
const FIRST_SEGMENTS: u32 = 100;
/// A sender that has been idle for a retransmission timeout starts slowly again (RFC 5681 section 4.1), and that timeout
/// is a second at least (RFC 6298 section 2.4).
const PAUSE: Duration = Duration::from_secs(1);
/// Most segments that one ACK stands for; a sender without pacing answers it with as many at once. TCP segmentation
/// offload makes bursts of 64 KiB, 44 segments, of its own.
const MOST_SEGMENTS: u32 = 64;
/// The window is open by three quarters at least when its sender learns more of it.
const WINDOW_PARTS: u32 = 4;
/// An ACK waits for a quarter of the round trip at most: four ACKs per round trip suffice a sender (RFC 3449 section
/// 5.3, draft-ietf-quic-ack-frequency section 7).
const ROUND_TRIP_PARTS: u64 = 4;
/// Half of Linux's shortest retransmission timeout (`TCP_RTO_MIN`), for round trips that a queue makes long.
const LONGEST_HOLD: Duration = Duration::from_millis(100);
/// Segment size of a flow whose segments were not seen yet (RFC 9293 section 3.7.1).
const DEFAULT_MSS: u32 = 536;
/// Largest segment on Ethernet over IPv4. What is heard may be larger where a kernel has merged segments.
const ETHERNET_MSS: u32 = 1_460;

/// State of a flow in the direction of its ACKs.
#[derive(Clone, Copy, Debug, Default)]
pub struct ThinFlow {
    /// Shift of the receiver's windows. Zero, which makes them smaller than they are, if its SYN was not seen.
    scale: u8,
    /// Size of a full segment in bytes, if one was seen.
    mss: Option<u32>,
    /// `None` before its first ACK.
    acks: Option<Acks>,
    /// Number behind the peer's FIN, if that is not acknowledged. PSH says nothing: Linux sets it on the last segment of each
    /// packet that it cuts (tcp_output.c, "Control the PSH flag on TSO packets"), which at low rates is every second segment.
    finished: Option<SeqNumber>,
    /// The peer asks for an answer.
    probed: bool,
    round_trip: RoundTrip,
}

/// The ACKs of a flow so far.
#[derive(Clone, Copy, Debug)]
struct Acks {
    /// Number at the beginning of the present burst of data.
    first: SeqNumber,
    /// Number, blocks and time of the last one.
    last: SeqNumber,
    last_sack: SackBlocks,
    last_at: Instant,
    /// Number and window, in bytes, of the last one that passed.
    passed: SeqNumber,
    window: u32,
}

impl ThinFlow {
    /// The host sends `segment`, which has the contents `ack` if it is a pure ACK. Returns how long it may wait for
    /// `uplink`; `None` if it must pass.
    pub fn longest_hold(
        &mut self,
        now: Instant,
        uplink: &Uplink,
        segment: &Segment,
        ack: Option<&AckInfo>,
    ) -> Option<Duration> {
        let mss = self.mss();
        let may_wait = self.acks.as_ref().is_some_and(|acks| {
            ack.is_some_and(AckInfo::is_plain)
                && segment.ack.after(acks.last)
                && acks.last_sack.is_empty()
                && now.saturating_since(acks.last_at) < PAUSE
                && segment.ack - acks.first > FIRST_SEGMENTS.saturating_mul(mss)
                && segment.ack - acks.passed < MOST_SEGMENTS.saturating_mul(mss)
                && !self.answers(segment)
                && !self.tells_of_window(segment, acks)
        });
        if segment.flags.contains(Flags::ACK) {
            self.note_offered(now, segment);
        }
        let round_trip = self.round_trip.smoothed.filter(|_| may_wait && uplink.has_only_acks(now))?;
        Some((round_trip / ROUND_TRIP_PARTS).min(LONGEST_HOLD))
    }

    fn note_offered(&mut self, now: Instant, segment: &Segment) {
        let window = self.window(segment);
        let acks = self.acks.get_or_insert(Acks {
            first: segment.ack,
            last: segment.ack,
            last_sack: SackBlocks::EMPTY,
            last_at: now,
            passed: segment.ack,
            window,
        });
        if now.saturating_since(acks.last_at) >= PAUSE {
            acks.first = acks.last;
        }
        (acks.last, acks.last_sack, acks.last_at) = (segment.ack, segment.sack, now);
    }

    /// Whether the peer waits for this ACK in particular.
    fn answers(&self, segment: &Segment) -> bool {
        self.probed || self.finished.is_some_and(|end| end.before_eq(segment.ack))
    }

    /// Whether its window is nearly closed, was so, went back, or is open by a part that the sender does not know.
    fn tells_of_window(&self, segment: &Segment, acks: &Acks) -> bool {
        let window = self.window(segment);
        let smaller = window.min(acks.window);
        let (acknowledged, part) = (segment.ack - acks.passed, smaller / WINDOW_PARTS);
        // How far the end of the window has moved.
        let moved = i64::from(acknowledged) + i64::from(window) - i64::from(acks.window);
        smaller < 2 * self.mss() || moved < 0 || acknowledged >= part || moved >= i64::from(part)
    }

    /// Bytes. A SYN's window has no scale (RFC 7323 section 2.2).
    fn window(&self, segment: &Segment) -> u32 {
        let scale = if segment.flags.contains(Flags::SYN) { 0 } else { self.scale };
        u32::from(segment.window) << scale
    }

    fn mss(&self) -> u32 {
        self.mss.unwrap_or(DEFAULT_MSS)
    }

    /// `segment` goes to the uplink now.
    pub fn note_passed(&mut self, now: Instant, segment: &Segment) {
        if segment.flags.contains(Flags::SYN) {
            // "the maximum scale exponent is limited to 14" (RFC 7323 section 2.3).
            self.scale = segment.window_scale.unwrap_or(0).min(14);
            self.note_mss(segment);
        }
        let window = self.window(segment);
        if let Some(acks) = self.acks.as_mut().filter(|_| segment.flags.contains(Flags::ACK)) {
            (acks.passed, acks.window) = (segment.ack, window);
            self.finished = self.finished.filter(|end| segment.ack.before(*end));
            self.probed = false;
        }
        self.round_trip.note_passed(now, segment);
    }

    /// `segment` of the other direction arrived.
    pub fn on_reverse_segment(&mut self, now: Instant, segment: &Segment) {
        if segment.flags.contains(Flags::SYN) {
            self.note_mss(segment);
            // Both ends scale, or none.
            self.scale = segment.window_scale.map_or(0, |_| self.scale);
        } else if segment.payload_len > 0 && self.mss.is_none() {
            self.mss = Some(segment.payload_len.clamp(DEFAULT_MSS, ETHERNET_MSS));
        }
        if let Some(acks) = &self.acks {
            let end = segment.seq + segment.sequence_len();
            if segment.flags.contains(Flags::FIN) && end.after(acks.last) {
                self.finished = Some(end);
            }
            // Keep-alives, zero-window probes and retransmissions repeat what the receiver has (RFC 9293 section 3.8.4).
            self.probed |= segment.seq.before(acks.last);
        }
        self.round_trip.on_reverse_segment(now, segment);
    }

    /// Its whole state, for comparisons with the C.
    pub fn words(&self) -> [u64; 17] {
        let some = |number: Option<u32>| number.map_or(0, |number| 1 + u64::from(number));
        let acks = self.acks;
        let field_of = |field: fn(&Acks) -> u64| acks.as_ref().map_or(0, field);
        let RoundTrip { smoothed, syn, echo, stamped } = self.round_trip;
        [
            self.scale.into(),
            self.mss.unwrap_or(0).into(),
            acks.is_some().into(),
            field_of(|acks| acks.first.0.into()),
            field_of(|acks| acks.last.0.into()),
            field_of(|acks| (!acks.last_sack.is_empty()).into()),
            field_of(|acks| acks.last_at.as_nanos()),
            field_of(|acks| acks.passed.0.into()),
            field_of(|acks| acks.window.into()),
            some(self.finished.map(|end| end.0)),
            self.probed.into(),
            smoothed.is_some().into(),
            smoothed.map_or(0, Duration::as_nanos),
            syn.map_or(0, |at| 1 + at.as_nanos()),
            some(echo.map(|(value, _)| value)),
            echo.map_or(0, |(_, at)| at.as_nanos()),
            some(stamped),
        ]
    }

    /// The smaller of both ends' maximum segment sizes (RFC 9293 section 3.7.1).
    fn note_mss(&mut self, segment: &Segment) {
        let mss = segment.mss.map_or(DEFAULT_MSS, u32::from).max(1);
        self.mss = Some(self.mss.map_or(mss, |known| known.min(mss)));
    }
}

/// The round-trip time from the uplink's queue and back to it: from an ACK to the first data that echoes its timestamp.
#[derive(Clone, Copy, Debug, Default)]
struct RoundTrip {
    smoothed: Option<Duration>,
    /// When the SYN was sent.
    syn: Option<Instant>,
    /// TSval of an ACK that no data has echoed yet, and when it went.
    echo: Option<(u32, Instant)>,
    /// Largest TSval that was waited for.
    stamped: Option<u32>,
}

impl RoundTrip {
    fn note_passed(&mut self, now: Instant, segment: &Segment) {
        if segment.flags.contains(Flags::SYN) {
            self.syn = Some(now);
        }
        let Some(timestamps) = segment.timestamps else { return };
        let is_new = self.stamped.is_none_or(|stamped| timestamps.is_later_than(stamped));
        if self.echo.is_none() && is_new {
            (self.echo, self.stamped) = (Some((timestamps.value, now)), Some(timestamps.value));
        }
    }

    fn on_reverse_segment(&mut self, now: Instant, segment: &Segment) {
        if let Some(at) = self.syn.take_if(|_| segment.flags.contains(Flags::ACK)) {
            self.sample(now.saturating_since(at));
        }
        // A peer without data may delay its ACKs.
        let Some(timestamps) = segment.timestamps.filter(|_| segment.payload_len > 0) else { return };
        if let Some((_, at)) = self.echo.take_if(|(value, _)| timestamps.echoes(*value)) {
            self.sample(now.saturating_since(at));
        }
    }

    /// RFC 6298 section 2.3, but faster downwards: a sender that pauses makes samples too long.
    fn sample(&mut self, sample: Duration) {
        let next = |smoothed: Duration| {
            if sample < smoothed { (smoothed + sample) / 2 } else { smoothed + (sample - smoothed) / 8 }
        };
        self.smoothed = Some(self.smoothed.map_or(sample, next));
    }
}
