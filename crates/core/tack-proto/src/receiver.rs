//! The receiving half of a connection: arrivals, and the contents and times of their acknowledgments.

use std::collections::VecDeque;
use std::sync::Arc;

use tacit_ack::{Clock, RateMeter};

use super::arrivals::{Arrival, Arrivals};
use super::base_loss::Wait;
use super::config::{Config, Lists, LossReports};
use super::incoming::{Accepted, Incoming, START, Taken};
use super::timing::Reference;
use super::violation::Violation;
use super::windows::Path;
use tacit_packet::position::Position;
use tacit_packet::ranges::Range;
use tacit_packet::tack::packet::{
    BURST_UNIT, Block, Body, Cause, Data, Datagram, InstantAck, Stamp, StreamId, Sync, Tack, limits_len,
    room_for_blocks,
};
use tacit_packet::units::{Duration, Instant, SeqNumber};

/// Blocks of each list that are repeated at least, even where the sender asks for fewer.
const LEAST_BLOCKS: u8 = 4;

/// Limits of streams that one TACK tells at most.
const MAX_STREAM_LIMITS: usize = 16;

/// Answers that are due at once at most: as many as a sender asks for (`questions` and two probes with data).
const MAX_ANSWERS: u8 = 6;

/// TACKs that are kept to be filled again.
const SPARE: usize = 4;

#[derive(Clone, Debug)]
pub(super) struct Receiver {
    lists: Lists,
    loss_reports: LossReports,
    max_payload: u32,
    /// What passes where `max_payload` does not, and whether the next TACK that the sender asks for is that short.
    min_payload: u32,
    short_next: bool,
    /// Microseconds that our clock is ahead of the driver's.
    clock_offset: u32,
    /// Bytes of a full-sized packet.
    full: u64,
    arrivals: Arrivals,
    clock: Clock,
    reference: Reference,
    /// The packet with the largest number of those that say when they left, and when: the reference for short data.
    newest: (Position, Stamp),
    meter: RateMeter,
    /// Bytes that arrived before they were reported missing.
    received: u64,
    pub incoming: Incoming,
    /// Packets that arrived with congestion experienced.
    ce: u16,
    /// Blocks of each list that the sender asks for.
    blocks: u8,
    /// A TACK has reported the holes below, and so the arrivals.
    reported_end: Position,
    /// The next TACK repeats holes from here on.
    repeat_from: Position,
    instants: VecDeque<InstantAck>,
    last_instant: Option<Instant>,
    /// When holes that no IACK reported are due.
    holes_due: Option<Instant>,
    /// TACKs that are due independent of the clock, each with all that it has room for.
    answers_due: u8,
    /// A TACK is due for the limits of streams.
    limits_due: bool,
    spare: Vec<Arc<Tack>>,
    pub duplicates: u64,
}

impl Receiver {
    /// For the end that opened the connection where `client`.
    pub fn new(config: &Config, client: bool, full: u32, clock_offset: u32) -> Self {
        Self {
            lists: config.lists,
            loss_reports: config.loss_reports,
            max_payload: config.payload(),
            min_payload: config.min_payload(),
            short_next: false,
            clock_offset,
            full: u64::from(full),
            arrivals: Arrivals::new(START),
            clock: Clock::new(config.ack_clock, config.start_up, full),
            reference: Reference::new(config.timing),
            newest: (START, Stamp::default()),
            meter: RateMeter::default(),
            received: 0,
            incoming: Incoming::new(config, client),
            ce: 0,
            blocks: LEAST_BLOCKS,
            reported_end: START,
            repeat_from: START,
            instants: VecDeque::new(),
            last_instant: None,
            holes_due: None,
            answers_due: 0,
            limits_due: false,
            spare: Vec::new(),
            duplicates: 0,
        }
    }

    /// Acknowledgments lost on the way to us, in 65,536ths, as far as known.
    pub fn ack_loss(&self) -> u16 {
        self.arrivals.loss_so_far()
    }

    /// Smallest round-trip time as the sender told it.
    pub fn known_rtt(&self) -> Option<Duration> {
        self.clock.rtt_min()
    }

    fn rtt_min(&self) -> Duration {
        self.clock.rtt_min().unwrap_or_default()
    }

    /// A packet arrived that is never acknowledged. False for one that had arrived before.
    pub fn on_number(&mut self, now: Instant, number: SeqNumber) -> bool {
        let number = self.arrivals.end().nearest(number);
        let fresh = self.arrivals.classify(number) != Arrival::Duplicate;
        if fresh {
            self.arrivals.take(now, number, self.rtt_min(), Wait::Long);
        } else {
            self.duplicates += 1;
        }
        fresh
    }

    /// A probe arrived, which is answered at once.
    pub fn on_probe(&mut self, now: Instant, number: SeqNumber) {
        let position = self.arrivals.end().nearest(number);
        if self.arrivals.classify(position) != Arrival::Duplicate {
            self.take(now, position, Wait::Long);
        }
        // A sender asks several times because answers are lost: probes that the system hands over together get one each.
        self.answers_due = (self.answers_due + 1).min(MAX_ANSWERS);
    }

    /// A packet about streams arrived. False for one that had arrived before.
    pub fn on_control(&mut self, now: Instant, number: SeqNumber) -> bool {
        let position = self.arrivals.end().nearest(number);
        let fresh = self.arrivals.classify(position) != Arrival::Duplicate;
        if fresh {
            self.clock.on_packet(now, 0);
            self.take(now, position, Wait::Long);
        } else {
            self.duplicates += 1;
        }
        fresh
    }

    /// The whole number of a packet that says `number`, in 16 bits where `short`: the nearest to those that arrived.
    pub fn whole(&self, number: SeqNumber, short: bool) -> u64 {
        self.position(number, short).saturating_since(START)
    }

    fn position(&self, number: SeqNumber, short: bool) -> Position {
        let near = self.arrivals.end();
        if short { near.nearest_to_low(number.0 as u16) } else { near.nearest(number) }
    }

    /// When packet `number` left, which says so in short. Packets leave in the order of their numbers, and one that is newer than
    /// all that arrived left less than a turn of the short reading after the newest of these, which the sender knows to have
    /// arrived. One that was overtaken by as long a time may seem to have left later than it did, never later than the packet
    /// that overtook it: it is not taken for the one with the least delay.
    fn departed(&self, number: Position, short: Stamp) -> Stamp {
        let (newest, departed) = self.newest;
        if number > newest { departed.next(short) } else { departed.last(short) }
    }

    /// The peer's hello arrived, which left at `departed` of its clock.
    pub fn on_hello(&mut self, now: Instant, number: SeqNumber, departed: Stamp) {
        let position = self.arrivals.end().nearest(number);
        self.on_stamp(position, departed);
        self.on_number(now, number);
    }

    fn on_stamp(&mut self, number: Position, departed: Stamp) {
        if self.newest.0 <= number {
            self.newest = (number, departed);
        }
    }

    /// Bytes of a stream arrived; `marked` where the packet experienced congestion. Returns the bytes that the user may have.
    pub fn on_data(
        &mut self,
        now: Instant,
        number: SeqNumber,
        data: &Data,
        marked: bool,
    ) -> Result<Option<Accepted>, Violation> {
        let number = self.position(number, data.short);
        let departed = if data.short { self.departed(number, data.departed) } else { data.departed };
        let arrival = self.arrivals.classify(number);
        self.answers_due = self.answers_due.max(u8::from(data.immediate_ack));
        if arrival == Arrival::Duplicate {
            self.duplicates += 1;
            self.incoming.duplicate += u64::from(data.payload_len);
            return Ok(None);
        }
        let accepted = match self.incoming.take(data) {
            Taken::New(_, accepted) => accepted,
            // As if it had not come.
            Taken::NoRoom => return Ok(None),
            Taken::Violation => return Err(Violation),
        };
        let bytes = u64::from(data.payload_len);
        self.on_bytes(now, number, arrival, bytes, departed, marked);
        if let Some(sync) = &data.sync {
            self.synchronise(sync);
        }
        if let Some(feedback_delay) = self.clock.feedback_delay() {
            let path = Path { feedback_delay, loss: self.arrivals.loss() };
            self.incoming.autotune(now, data.stream, self.meter.received(), path);
        }
        Ok(accepted)
    }

    /// A datagram arrived. False for one that had arrived before.
    pub fn on_datagram(
        &mut self,
        now: Instant,
        number: SeqNumber,
        datagram: &Datagram,
        marked: bool,
    ) -> bool {
        let number = self.arrivals.end().nearest(number);
        let arrival = self.arrivals.classify(number);
        if arrival == Arrival::Duplicate {
            self.duplicates += 1;
            return false;
        }
        self.on_bytes(now, number, arrival, u64::from(datagram.payload_len), datagram.departed, marked);
        if let Some(sync) = &datagram.sync {
            self.synchronise(sync);
        }
        true
    }

    /// Consequences of `bytes` that arrived for any stream.
    fn on_bytes(
        &mut self,
        now: Instant,
        number: Position,
        arrival: Arrival,
        bytes: u64,
        departed: Stamp,
        marked: bool,
    ) {
        // All that arrives is the path's rate. But packets reported missing are not in the network any more, by the sender's count.
        self.meter.on_bytes(now, bytes);
        if arrival != Arrival::Late {
            self.received += bytes;
        }
        self.ce = self.ce.wrapping_add(u16::from(marked));
        let arrived = Stamp::at(now, self.clock_offset);
        self.reference.on_packet(now, arrived, departed);
        self.on_stamp(number, departed);
        self.clock.on_packet(now, bytes);
        let delay_us = arrived.0.wrapping_sub(departed.0);
        let wait = self.arrivals.on_delay(now, number, delay_us, self.clock.rtt_min());
        self.take(now, number, wait);
    }

    fn take(&mut self, now: Instant, number: Position, wait: Wait) {
        // One that settles first is reported then.
        if let Some(hole) = self.arrivals.take(now, number, self.rtt_min(), wait) {
            self.report(now, hole);
        }
    }

    /// The sender tells its state.
    pub fn synchronise(&mut self, sync: &Sync) {
        let rtt_min = Duration::from_micros(u64::from(sync.rtt_min_us));
        let ack_path = Duration::from_millis(sync.ack_interval_ms.into());
        self.clock.synchronise((sync.rtt_min_us > 0).then_some(rtt_min), ack_path, sync.startup);
        self.blocks = sync.blocks.max(LEAST_BLOCKS);
        let floor = self.arrivals.end().nearest(sync.floor);
        self.arrivals.forget_below(floor);
    }

    /// A packet of more bytes of UDP payload than `max` cannot leave.
    pub fn set_max_payload(&mut self, max: u32) {
        self.max_payload = self.max_payload.min(max);
    }

    /// The path as the handshake measured it, until the peer says better.
    pub fn set_rtt(&mut self, rtt: Duration) {
        self.clock.set_rtt(rtt);
    }

    /// The peer asks for `beta` TACKs per round trip, and one per `every` packets and `min_interval` at most.
    pub fn set_rule(&mut self, beta: u8, every: u8, min_interval: Duration) {
        self.clock.set_rule(beta, every, min_interval);
    }

    /// `hole` counts as lost.
    fn report(&mut self, now: Instant, hole: Range) {
        if self.loss_reports == LossReports::WithTack {
            return;
        }
        // A poor TACK could not say all that waits for it.
        if self.lists == Lists::Rich
            && let Some(due) = self.clock.hole_due(now, self.last_instant)
        {
            self.holes_due = Some(self.holes_due.map_or(due, |before| before.min(due)));
            return;
        }
        let again = self.last_instant.map(|last| last + self.clock.hole_interval());
        // A poor TACK could not report the holes that wait for it.
        let again = again.filter(|again| now < *again && self.lists == Lists::Rich);
        // Those that wait are reported before this one, or with it.
        if self.holes_due.is_some() || again.is_some() {
            self.holes_due = self.holes_due.or(again);
            return;
        }
        self.last_instant = Some(now);
        self.push_instant(Cause::Loss, hole.end, hole.start.saturating_sub(1));
    }

    fn push_instant(&mut self, cause: Cause, largest: Position, second: Position) {
        let instant = InstantAck {
            cause,
            largest: largest.wire(),
            second: second.wire(),
            since: self.arrivals.block_at(second).map_or(second, |block| block.start).wire(),
            cumulative: self.arrivals.cumulative().wire(),
            window: Position::first(SeqNumber(0)).saturating_add(self.incoming.advertise()).wire(),
        };
        self.instants.push_back(instant);
    }

    /// The reader of `stream` has taken `bytes`.
    pub fn on_read(&mut self, stream: StreamId, bytes: u64) {
        self.incoming.on_read(stream, bytes);
        self.after_read(stream);
    }

    /// The peer named `stream` as one that its limit holds.
    pub fn on_held(&mut self, stream: StreamId) -> Result<(), Violation> {
        self.limits_due = true;
        self.incoming.on_held(stream)
    }

    /// The window has moved, of all streams and of `stream`: a peer that it held hears at once.
    pub fn after_read(&mut self, stream: StreamId) {
        self.limits_due |= self.incoming.reopened_stream(stream, self.full);
        if self.incoming.reopened(self.full) {
            let largest = self.arrivals.end().saturating_sub(1);
            self.push_instant(Cause::Window, largest, largest);
        }
    }

    /// When [`next`](Self::next) has something, though nothing arrives.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let soonest = [self.clock.due(), self.holes_due, self.arrivals.next_settled()];
        soonest.into_iter().flatten().min()
    }

    /// True when nothing is to be said at `now`, which costs little to tell.
    #[inline]
    pub fn is_quiet(&self, now: Instant) -> bool {
        self.answers_due == 0
            && !self.limits_due
            && self.instants.is_empty()
            && self.holes_due.is_none()
            && self.arrivals.next_settled().is_none()
            && self.clock.due().is_none_or(|at| now < at)
    }

    /// The next acknowledgment that is due at `now`.
    pub fn next(&mut self, now: Instant) -> Option<Body> {
        while let Some(hole) = self.arrivals.settled(now) {
            self.report(now, hole);
        }
        if let Some(instant) = self.instants.pop_front() {
            return Some(Body::Instant(instant));
        }
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        (self.answers_due > 0 || self.limits_due || due(self.holes_due) || due(self.clock.due()))
            .then(|| Body::Tack(self.tack(now)))
    }

    fn tack(&mut self, now: Instant) -> Arc<Tack> {
        let mut shared = self
            .spare
            .iter()
            .position(|tack| Arc::strong_count(tack) == 1)
            .map_or_else(|| Arc::new(Tack::default()), |place| self.spare.swap_remove(place));
        // One that we made or that has no other owner; a copy otherwise.
        self.fill(now, Arc::make_mut(&mut shared));
        self.answers_due = self.answers_due.saturating_sub(1);
        if self.spare.len() < SPARE {
            self.spare.push(Arc::clone(&shared));
        }
        shared
    }

    fn fill(&mut self, now: Instant, tack: &mut Tack) {
        let least = self.reference.take(now);
        let rate = self.clock.rtt_min().and_then(|span| self.meter.take(now, span));
        self.clock.on_tack(now, rate, least.map(|least| least.delay_us));
        tack.left = Stamp::at(now, self.clock_offset);
        tack.departed = least.map_or(Stamp::default(), |least| least.departed);
        tack.delay_us = least.map_or(u32::MAX, |least| least.waited_us);
        tack.burst = u16::try_from(self.clock.burst().0 / BURST_UNIT).unwrap_or(u16::MAX);
        tack.rate_kbps = rate.map_or(0, |rate| u32::try_from(rate.as_bps() / 1000).unwrap_or(u32::MAX));
        tack.loss = self.arrivals.loss();
        tack.base_loss = self.arrivals.base_loss();
        tack.received = SeqNumber(self.received as u32);
        tack.window = SeqNumber(self.incoming.advertise() as u32);
        tack.ce = self.ce;
        tack.cumulative = self.arrivals.cumulative().wire();
        tack.streams.clear();
        if self.answers_due > 0 {
            self.incoming.on_limits_requested(&mut tack.streams);
        }
        self.incoming.advertise_streams(&mut tack.streams, MAX_STREAM_LIMITS);
        self.limits_due &= self.incoming.has_limits();
        let complete = self.fill_lists(tack);
        if self.clock.is_tack() && self.holes_due.is_some_and(|due| due <= now) {
            self.last_instant = Some(now);
        }
        self.holes_due = (!complete).then(|| now + self.clock.hole_interval());
    }

    /// The longest TACK. The sender asks where it has heard nothing for long: perhaps the path has come to carry none of full
    /// length, so every second TACK that it asks for is short.
    fn payload(&mut self) -> u32 {
        let asked = self.answers_due > 0;
        let short = asked && self.short_next;
        self.short_next ^= asked;
        if short { self.max_payload.min(self.min_payload) } else { self.max_payload }
    }

    /// News since the last, and beyond them as many blocks as the sender asked for: of the acked list the highest, of the
    /// unacked list the lowest, so that the oldest are repeated (TACK paper section 5.1). By our law successive TACKs repeat
    /// successive holes instead: until the sender's floor moves, a round trip later, each would repeat the same. A sender that
    /// asks gets all. False where holes are left that no acknowledgment has reported.
    fn fill_lists(&mut self, tack: &mut Tack) -> bool {
        let room = room_for_blocks(self.payload(), limits_len(&tack.streams)) as usize;
        let asked = self.answers_due > 0;
        let (reported_end, from) = if asked { (START, START) } else { (self.reported_end, self.repeat_from) };
        let (least, news) = match self.lists {
            // A sender that asks has heard nothing for long.
            Lists::Poor => (1, asked),
            Lists::Rich => (usize::from(self.blocks), true),
        };
        // However many the sender asks for of each list, a quarter of the room is for news.
        let least = least.min((room * 3 / 8).max(1));
        let block = |range: Range| Block { first: range.start.wire(), last: (range.end - 1).wire() };
        tack.unacked.clear();
        tack.repeated = 0;
        let (mut left, mut passed, mut untold) = (None, None, false);
        let (mut again, mut repeat_from) = (0, START);
        for hole in self.arrivals.holes() {
            let is_news = hole.end > reported_end;
            if hole.end <= from && !is_news {
                continue;
            }
            let repeats = again < least;
            if !repeats && !news {
                break;
            }
            if !(repeats || is_news) {
                if passed.is_none() {
                    repeat_from = hole.start;
                }
                untold |= passed.replace(hole).is_some();
                continue;
            }
            // The last one before the news goes with them: the arrivals after it are news too.
            let anchor = passed.take().filter(|_| !repeats);
            if tack.unacked.len() + usize::from(anchor.is_some()) + least >= room {
                left = Some(hole.start);
                break;
            }
            again += usize::from(repeats);
            for hole in anchor.into_iter().chain([hole]) {
                tack.unacked.push(block(hole));
                // Those behind the repeated ones are of one piece with them where none was passed over.
                tack.repeated += u8::from(repeats || !untold);
            }
        }
        if self.lists == Lists::Rich && self.clock.is_tack() {
            self.repeat_from = repeat_from;
        }
        tack.acked.clear();
        tack.acked.extend(self.arrivals.blocks().take(least).map(block));
        // The sender may have missed the lists of one that it asked for: others continue where that one ended.
        self.reported_end = reported_end.max(left.unwrap_or(self.arrivals.settled_end()));
        left.is_none() || !news
    }
}
