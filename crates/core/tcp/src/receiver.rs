//! The receiving half: RCV.NXT, the window, reassembly.

use super::ack_policy::{AckDecision, AckScheduler, Disorder};
use super::autotune::{Autotune, ReceiveAutotuning, WindowGrowth};
use super::config::Config;
use super::counters::Counters;
use super::reorder::ReorderQueue;
use super::rsfc::Rsfc;
use tacit_packet::position::Position;
use tacit_packet::ranges::Range;
use tacit_packet::tcp::{SackBlocks, SackRange};
use tacit_packet::units::{Duration, Instant};

/// When the application reads data from the receive buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadPolicy {
    /// At once when it is in order: the window never closes.
    #[default]
    Immediate,
    /// When [`read`](super::Connection::read) is called.
    Manual,
}

/// Result of processing a segment's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Received {
    /// Decision about an acknowledgment.
    pub ack: AckDecision,
    /// The peer's FIN is now in order.
    pub finished: bool,
}

/// How the buffer size follows the arrivals.
#[derive(Clone, Debug)]
enum Tuning {
    Grows(Autotune),
    Regulates(Rsfc),
}

/// What arrives at an instant has to fit into the socket, since a program reads all of it later.
#[derive(Clone, Copy, Debug)]
struct Socket {
    holds: u32,
    last_arrival: Instant,
    waiting: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    /// RCV.NXT.
    pub rcv_nxt: Position,
    /// RCV.NXT + RCV.WND: the offered right edge, which never moves back (RFC 9293 section 3.10.7.4).
    edge: Position,
    buffer: u64,
    /// The widest window to offer while it grows with each segment (`rcv_ssthresh`); `None` where the buffer alone
    /// limits it.
    widest: Option<u64>,
    /// Present if the buffer size changes.
    tuning: Option<Tuning>,
    /// In order but not yet read: RCV.USER.
    unread: u64,
    policy: ReadPolicy,
    reorder: ReorderQueue,
    /// Report duplicates (RFC 2883).
    report_duplicates: bool,
    /// The duplicate that the next ACK reports.
    duplicate: Option<Range>,
    /// Position of the peer's FIN, once one was seen within the window.
    fin_at: Option<Position>,
    /// Present if its room is limited.
    socket: Option<Socket>,
    pub acks: AckScheduler,
    /// Our own effective MSS, used for the peer's in SWS avoidance.
    mss: u64,
    /// RCV.WND.SCALE: shift of the windows we offer.
    pub scale: u8,
}

impl Receiver {
    /// A receiver that starts at `irs + 1` after [`start`](Self::start) passes the peer's number.
    pub fn new(config: &Config, policy: ReadPolicy) -> Self {
        Self {
            rcv_nxt: Position::default(),
            edge: Position::default(),
            buffer: config.receive_buffer.0,
            widest: widest(config),
            tuning: tuning(config),
            unread: 0,
            policy,
            reorder: ReorderQueue::default(),
            report_duplicates: false,
            duplicate: None,
            fin_at: None,
            socket: config.socket_packets.map(|holds| Socket {
                holds,
                last_arrival: Instant::ZERO,
                waiting: 0,
            }),
            acks: AckScheduler::new(config),
            mss: u64::from(config.mss()),
            scale: scale_for(config.receive_autotuning.largest(config.receive_buffer.0)),
        }
    }

    /// Sets the position of the peer's SYN.
    pub fn start(&mut self, irs: Position) {
        self.rcv_nxt = irs + 1;
        self.edge = self.rcv_nxt + self.buffer.min(u64::from(u16::MAX));
    }

    /// The size of the buffer in bytes.
    pub fn buffer(&self) -> u64 {
        self.buffer
    }

    /// True if [`tune`](Self::tune) must be called for data.
    #[inline]
    pub fn tunes(&self) -> bool {
        self.tuning.is_some()
    }

    /// Data has arrived, sent when the peer's clock was `stamp`; its timestamp echoes a segment sent `echoed` ago.
    pub fn tune(&mut self, now: Instant, stamp: Option<u32>, echoed: Option<Duration>) {
        let (nxt, edge, buffer) = (self.rcv_nxt, self.edge, self.buffer);
        let wanted = match &mut self.tuning {
            Some(Tuning::Grows(tuning)) => tuning.on_data(now, nxt, edge, echoed, buffer),
            Some(Tuning::Regulates(rsfc)) => rsfc.on_data(now, nxt, stamp, echoed),
            None => None,
        };
        self.buffer = wanted.unwrap_or(buffer);
    }

    /// False for a packet that finds no room in the socket.
    pub fn has_room(&mut self, now: Instant) -> bool {
        let Some(socket) = &mut self.socket else { return true };
        if socket.last_arrival != now {
            (socket.last_arrival, socket.waiting) = (now, 0);
        }
        socket.waiting += 1;
        socket.waiting <= socket.holds
    }

    fn note_taken(&mut self, bytes: u64) {
        if let Some(Tuning::Grows(tuning)) = &mut self.tuning {
            tuning.on_taken(bytes);
        }
    }

    /// From now on duplicates are reported.
    pub fn report_duplicates(&mut self) {
        self.report_duplicates = true;
    }

    /// Bytes `start .. end` arrived, all of them for the second time.
    pub fn note_duplicate(&mut self, start: Position, end: Position) {
        if self.report_duplicates && start < end {
            self.duplicate = Some(Range { start, end });
        }
    }

    /// True if an ACK has SACK blocks.
    #[inline]
    pub fn has_blocks(&self) -> bool {
        !self.reorder.is_empty() || self.duplicate.is_some()
    }

    /// The blocks of the next ACK, at most `room`: first a duplicate, which is reported once (RFC 2883 section 4), then
    /// the data behind gaps.
    pub fn take_blocks(&mut self, room: usize, counters: &mut Counters) -> SackBlocks {
        let Some(duplicate) = self.duplicate.take_if(|_| room > 0) else { return self.reorder.blocks(room) };
        counters.dsacks_sent += 1;
        let mut blocks = SackBlocks::EMPTY;
        blocks.push(SackRange { start: duplicate.start.wire(), end: duplicate.end.wire() });
        for block in self.reorder.blocks(room.min(SackBlocks::MAX) - 1).as_slice() {
            blocks.push(*block);
        }
        blocks
    }

    pub fn policy(&self) -> ReadPolicy {
        self.policy
    }

    pub fn set_policy(&mut self, policy: ReadPolicy) {
        self.policy = policy;
    }

    /// Bytes the peer may still send: RCV.WND.
    #[inline]
    pub fn window(&self) -> u64 {
        self.edge.saturating_since(self.rcv_nxt)
    }

    /// The offered right edge of the window.
    pub fn edge(&self) -> Position {
        self.edge
    }

    /// In-order bytes waiting to be read.
    pub fn unread(&self) -> u64 {
        self.unread
    }

    /// True once the peer's FIN was received in order.
    pub fn finished(&self) -> bool {
        self.fin_at.is_some_and(|fin| self.rcv_nxt > fin)
    }

    /// The right edge for which the buffer has room.
    fn room_edge(&self) -> Position {
        let room = self.buffer.saturating_sub(self.unread);
        self.rcv_nxt + self.widest.map_or(room, |widest| room.min(widest))
    }

    /// A segment of `bytes` arrived (`tcp_event_data_recv`, `tcp_grow_window`).
    fn widen(&mut self, bytes: u64) {
        let room = self.buffer.saturating_sub(self.unread);
        let Some(widest) = self.widest.as_mut().filter(|_| bytes >= LEAST_WIDENING) else { return };
        if *widest < room {
            *widest = room.min(*widest + 2 * bytes);
            self.acks.on_widened();
        }
    }

    /// The window field for a segment sent now. The right edge moves only by at least min(half the buffer, one
    /// segment): SWS avoidance (RFC 9293 section 3.8.6.2.2).
    pub fn offer_window(&mut self) -> u16 {
        let room = self.room_edge();
        if room.saturating_since(self.edge) >= (self.buffer / 2).min(self.mss) {
            self.edge = room;
        }
        // Rounded up to the unit of the scale, because rounding down could move the edge back (RFC 7323 section 2.4).
        let units = self.window().div_ceil(1 << self.scale).min(u64::from(u16::MAX));
        self.edge = self.edge.max(self.rcv_nxt + (units << self.scale));
        units as u16
    }

    /// The window field of a SYN, never scaled (RFC 7323 section 2.2).
    pub fn offer_unscaled_window(&self) -> u16 {
        u16::try_from(self.buffer).unwrap_or(u16::MAX)
    }

    /// Receives data `start .. end`, and possibly a FIN after it, from a segment that passed the acceptability test.
    pub fn receive(
        &mut self,
        now: Instant,
        start: Position,
        end: Position,
        fin: bool,
        counters: &mut Counters,
    ) -> Received {
        let limit = self.fin_at.map_or(self.edge, |fin_at| fin_at.min(self.edge));
        let new = Range { start: start.max(self.rcv_nxt), end: end.min(limit) };
        counters.duplicate_bytes += self.rcv_nxt.min(end).saturating_since(start);
        counters.dropped_bytes += end.saturating_since(start.max(limit));
        self.note_duplicate(start, self.rcv_nxt.min(end));
        // A FIN counts only if no byte before it was cut off. There can be only one: a second FIN at another position,
        // or one below received data, is invalid.
        let last_held = self.reorder.highest().unwrap_or(self.rcv_nxt);
        if fin && end <= self.edge && end >= last_held.max(self.rcv_nxt) && self.fin_at.is_none() {
            self.fin_at = Some(end);
        }
        let had_gap = !self.reorder.is_empty();
        let before = self.rcv_nxt;
        let mut ack = AckDecision::Now;
        if new.start < new.end {
            self.widen(new.len());
            if new.start > self.rcv_nxt {
                self.hold(new, counters);
                ack = self.answer_disorder(now, new, last_held);
            } else {
                self.rcv_nxt = new.end;
                if had_gap {
                    self.rcv_nxt = self.reorder.advance(new.end);
                    ack = self.answer_disorder(now, new, last_held);
                } else {
                    ack = self.acks.on_in_order(new.len(), now);
                }
                self.deliver(self.rcv_nxt - before, counters);
            }
        }
        let finished = self.fin_at == Some(self.rcv_nxt);
        if finished {
            self.rcv_nxt += 1;
            ack = AckDecision::Now;
        }
        Received { ack, finished }
    }

    /// True if [`receive_next`](Self::receive_next) can receive the next `len` bytes: there is no gap, the peer has not
    /// closed, there is room for all of them, and they need not be measured.
    #[inline]
    pub fn is_ready_for(&self, len: u32) -> bool {
        self.reorder.is_empty()
            && self.fin_at.is_none()
            && self.rcv_nxt + u64::from(len) <= self.edge
            && self.tuning.is_none()
            && self.socket.is_none()
            && !self.acks.wants_rtt()
    }

    /// [`receive`](Self::receive) for the next `len` bytes without a FIN, if it [is ready](Self::is_ready_for) for
    /// them.
    #[inline]
    pub fn receive_next(&mut self, now: Instant, len: u32, counters: &mut Counters) -> AckDecision {
        let bytes = u64::from(len);
        self.rcv_nxt += bytes;
        let ack = self.acks.on_in_order(bytes, now);
        self.deliver(bytes, counters);
        ack
    }

    fn hold(&mut self, range: Range, counters: &mut Counters) {
        counters.out_of_order_segments += 1;
        if let Some(held) = self.reorder.held_at(range.start) {
            self.note_duplicate(range.start, held.end.min(range.end));
        }
        if !self.reorder.hold(range) {
            counters.dropped_bytes += range.len();
        }
    }

    /// `range` arrived above or below a gap, when the highest received data ended at `highest_before`.
    fn answer_disorder(&mut self, now: Instant, range: Range, highest_before: Position) -> AckDecision {
        self.acks.on_out_of_order(&Disorder {
            now,
            range,
            highest_before,
            rcv_nxt: self.rcv_nxt,
            queue: &self.reorder,
        })
    }

    fn deliver(&mut self, bytes: u64, counters: &mut Counters) {
        match self.policy {
            ReadPolicy::Immediate => {
                counters.delivered_bytes += bytes;
                self.note_taken(bytes);
            }
            ReadPolicy::Manual => self.unread += bytes,
        }
    }

    /// Received bytes that wait for earlier ones.
    pub fn blocked(&self) -> u64 {
        self.reorder.bytes()
    }

    /// Takes up to `bytes` out of the buffer. Returns their number, and whether a window update should be sent at once:
    /// the window was closed and may open, has doubled, or has grown by half the buffer.
    pub fn read(&mut self, bytes: u64, counters: &mut Counters) -> (u64, bool) {
        let taken = bytes.min(self.unread);
        self.unread -= taken;
        counters.delivered_bytes += taken;
        self.note_taken(taken);
        let growth = self.room_edge().saturating_since(self.edge);
        let window = self.window();
        // Reading alone is news where it doubles the window (Linux, tcp_cleanup_rbuf). What arrives is acknowledged by the policy.
        let enough = if window == 0 { self.mss } else { window.max(2 * self.mss) };
        (taken, taken > 0 && growth >= enough.min(self.buffer / 2).max(1))
    }
}

/// Shorter segments do not widen the window (`tcp_event_data_recv`).
const LEAST_WIDENING: u64 = 128;

fn widest(config: &Config) -> Option<u64> {
    let grows = matches!(config.receive_autotuning, ReceiveAutotuning::UpTo(_));
    let first = config.receive_buffer.0.min(u64::from(u16::MAX));
    (grows && config.window_growth == WindowGrowth::BySegment).then_some(first)
}

fn tuning(config: &Config) -> Option<Tuning> {
    let (max, mss) = (config.receive_autotuning.largest(config.receive_buffer.0), config.mss().into());
    match config.receive_autotuning {
        ReceiveAutotuning::Off => None,
        ReceiveAutotuning::UpTo(_) => Some(Tuning::Grows(Autotune::new(max, mss))),
        ReceiveAutotuning::Rsfc(_) => Some(Tuning::Regulates(Rsfc::new(max, mss))),
    }
}

/// The smallest shift with which 16 bits can represent `buffer`, at most 14 (RFC 7323 section 2.3).
fn scale_for(buffer: u64) -> u8 {
    (0..14).find(|scale| buffer >> scale <= u64::from(u16::MAX)).unwrap_or(14)
}

#[cfg(test)]
mod tests {
    use super::super::profile::Profile;
    use super::*;
    use tacit_packet::position::at;
    use tacit_packet::units::Bytes;

    const SEGMENT: u64 = 1448;

    /// How many of 40 segments are acknowledged at once, and the window that is offered after them, when the buffer
    /// grew by the window of 20 segments before the first.
    fn answered_at_once(window_growth: WindowGrowth) -> (usize, u64) {
        let config = Config { window_growth, ..Profile::Linux.config() };
        let mut receiver = Receiver::new(&config, ReadPolicy::Immediate);
        let mut counters = Counters::default();
        receiver.start(at(0));
        receiver.buffer = u64::from(u16::MAX) + 20 * 2 * SEGMENT;
        let mut at_once = 0;
        for _ in 0..40 {
            let start = receiver.rcv_nxt;
            let ack = receiver.receive(Instant::ZERO, start, start + SEGMENT, false, &mut counters).ack;
            // GRO's segments of one instant are passed on at the end of it.
            let ack = if ack == AckDecision::At(Instant::ZERO) {
                receiver.acks.on_timer(Instant::ZERO)
            } else {
                ack
            };
            if ack == AckDecision::Now {
                at_once += 1;
                receiver.acks.on_ack_sent();
                receiver.offer_window();
            }
        }
        (at_once, receiver.window())
    }

    /// 16 quick ACKs, then one for each two segments; or one for each of 20 that widen the window, and then so.
    #[test]
    fn segments_that_widen_the_window_are_acknowledged_one_by_one() {
        let (plain, window) = answered_at_once(WindowGrowth::AtOnce);
        let (by_segment, window_after) = answered_at_once(WindowGrowth::BySegment);
        assert_eq!((plain, by_segment), (16 + 12, 20 + 10));
        assert_eq!(window, window_after, "both offer the whole buffer in the end");
    }

    /// The window opens by twice the data of each segment, not by all of the buffer.
    #[test]
    fn a_window_that_grows_by_segment_opens_by_twice_its_data() {
        let config = Config { window_growth: WindowGrowth::BySegment, ..Profile::Linux.config() };
        let mut receiver = Receiver::new(&config, ReadPolicy::Immediate);
        receiver.start(at(0));
        receiver.buffer = 1 << 20;
        let start = receiver.rcv_nxt;
        receiver.receive(Instant::ZERO, start, start + SEGMENT, false, &mut Counters::default());
        receiver.offer_window();
        let widest = u64::from(u16::MAX) + 2 * SEGMENT;
        assert!(
            (widest..widest + (1 << receiver.scale)).contains(&receiver.window()),
            "{}",
            receiver.window()
        );
    }

    /// A reader that takes each segment as it arrives adds no ACKs to those of the policy; one that let the buffer fill does.
    #[test]
    fn reading_is_announced_where_it_doubles_the_window() {
        let config = Config { receive_buffer: Bytes(100 * 1448), ..Config::default() };
        let mut receiver = Receiver::new(&config, ReadPolicy::Manual);
        let mut counters = Counters::default();
        receiver.start(Position::default());
        receiver.offer_window();
        let mut arrive = |receiver: &mut Receiver, segments: u64| {
            let start = receiver.rcv_nxt;
            receiver.receive(Instant::ZERO, start, start + segments * 1448, false, &mut counters);
            receiver.read(0, &mut counters)
        };
        for _ in 0..40 {
            arrive(&mut receiver, 1);
            assert_eq!(receiver.read(u64::MAX, &mut Counters::default()), (1448, false));
        }
        receiver.offer_window();
        arrive(&mut receiver, 70);
        assert!(!receiver.read(29 * 1448, &mut Counters::default()).1, "30 segments of room, 59 after it");
        assert!(receiver.read(2 * 1448, &mut Counters::default()).1, "61");
    }

    #[test]
    fn the_scale_is_the_smallest_that_fits() {
        assert_eq!(scale_for(65_535), 0);
        assert_eq!(scale_for(65_536), 1);
        assert_eq!(scale_for(4 << 20), 7);
        assert_eq!(scale_for(u64::MAX), 14);
    }
}
