//! Evaluation of feedback: which packets arrived, which are lost, how long the path is and how fast.

use super::{Carried, Sender};
use crate::incoming::START;
use crate::{AckClock, Arriving};
use tacit_congestion::{AckSample, Delivery, ReceiverReport, Repair};
use tacit_packet::position::Position;
use tacit_packet::ranges::Range;
use tacit_packet::tack::packet::{BURST_UNIT, Block, Cause, InstantAck, Stamp, Tack};
use tacit_packet::units::{BitRate, Bytes, Duration, Instant, SeqNumber};

/// Intervals that the controller counts in a round trip of feedback: beta of the paper.
const INTERVALS_PER_TRIP: u64 = 4;

/// The receiver acknowledged packets that were never sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Optimistic;

/// Contents of one piece of feedback.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    acked: u64,
    lost: u64,
    newest_acked: Option<Position>,
    newest_lost: Option<Position>,
    rtt: Option<Duration>,
    report: Option<ReceiverReport>,
    marked: bool,
}

impl Sender {
    /// Processes a TACK.
    ///
    /// # Errors
    /// Where it acknowledges packets that were never sent: nothing of it was believed from there on.
    pub fn on_tack(&mut self, now: Instant, tack: &Tack, ack_loss: u16) -> Result<(), Optimistic> {
        let prior = self.in_flight();
        let mut seen = Seen::default();
        self.rate.begin_ack(now);
        self.acknowledge_below(now, tack.cumulative, &mut seen)?;
        for block in &tack.acked {
            let range = self.range(*block)?;
            self.acknowledge_claimed(now, range, &mut seen)?;
        }
        let mut before = None;
        for (place, block) in tack.unacked.iter().enumerate() {
            let hole = self.range(*block)?;
            let start = before.filter(|_| place != usize::from(tack.repeated)).unwrap_or(hole.start);
            before = Some(hole.end);
            if start < hole.start {
                self.acknowledge_claimed(now, Range { start, end: hole.start }, &mut seen)?;
            }
            self.lose(now, hole, &mut seen);
        }
        self.count_received(tack.received)?;
        self.raise_window(tack.window);
        for (stream, limit) in &tack.streams {
            self.streams.raise_stream_limit(*stream, *limit);
        }
        (self.path.loss, self.path.ack_loss) = (tack.loss, ack_loss);
        self.path.base_loss = tack.base_loss;
        // Marks before the first TACK may be of another path.
        seen.marked = self.path.ce.replace(tack.ce).is_some_and(|before| before != tack.ce);
        seen.rtt = self.round_trip(now, tack);
        if let AckClock::Tack { .. } = self.clock {
            let rtt = seen.rtt.or(self.path.rtt.smoothed()).unwrap_or_default();
            let rtt_min = self.path.rtt_min.get().unwrap_or_default();
            self.path.ack_path.on_ack(now, Stamp::at(now, self.clock_offset), tack.left, rtt, rtt_min);
        }
        self.end_silence(now, &seen);
        let reported = BitRate::from_kbps(u64::from(tack.rate_kbps));
        self.path.arriving.burst = Bytes(u64::from(tack.burst) * BURST_UNIT);
        if reported > BitRate::default() {
            self.path.arriving.rate = reported;
        }
        let rate = if now < self.path.quiet_until { BitRate::default() } else { reported };
        seen.report = Some(self.report(rate));
        self.finish(now, prior, &seen);
        Ok(())
    }

    /// Processes an IACK.
    ///
    /// # Errors
    /// As [`on_tack`](Self::on_tack).
    pub fn on_instant(&mut self, now: Instant, instant: &InstantAck) -> Result<(), Optimistic> {
        let prior = self.in_flight();
        let mut seen = Seen::default();
        self.rate.begin_ack(now);
        self.acknowledge_below(now, instant.cumulative, &mut seen)?;
        if instant.cause == Cause::Loss {
            let largest = self.range(Block { first: instant.largest, last: instant.largest })?;
            self.acknowledge_claimed(now, largest, &mut seen)?;
            let before = self.range(Block { first: instant.since, last: instant.second })?;
            self.acknowledge_claimed(now, before, &mut seen)?;
            let hole = Range { start: before.end, end: largest.start };
            self.lose(now, hole, &mut seen);
        }
        self.raise_window(instant.window);
        self.end_silence(now, &seen);
        seen.report = Some(self.report(BitRate::default()));
        self.finish(now, prior, &seen);
        Ok(())
    }

    /// The positions of a block. All of them were sent.
    fn range(&self, block: Block) -> Result<Range, Optimistic> {
        let start = self.base.nearest(block.first);
        let range = Range { start, end: start.nearest(block.last) + 1 };
        if range.start < range.end && range.end <= self.next { Ok(range) } else { Err(Optimistic) }
    }

    fn acknowledge_below(
        &mut self,
        now: Instant,
        cumulative: SeqNumber,
        seen: &mut Seen,
    ) -> Result<(), Optimistic> {
        let end = self.base.nearest(cumulative);
        // No receiver passes skipped numbers before a `Forget` names them.
        if end > self.next || self.skips.is_within(self.base.max(self.announced_floor), end) {
            return Err(Optimistic);
        }
        if self.base < end {
            self.acknowledge(now, Range { start: self.base, end }, seen);
        }
        Ok(())
    }

    /// The receiver claims that each number of `range` arrived. Below `base`, which it has been asked to forget,
    /// it cannot know which were left out.
    fn acknowledge_claimed(&mut self, now: Instant, range: Range, seen: &mut Seen) -> Result<(), Optimistic> {
        let range = Range { start: range.start.max(self.base), end: range.end.max(self.base) };
        if self.skips.is_within(range.start, range.end) {
            return Err(Optimistic);
        }
        self.acknowledge(now, range, seen);
        Ok(())
    }

    /// The numbers of `range` arrived.
    fn acknowledge(&mut self, now: Instant, range: Range, seen: &mut Seen) {
        self.path.sync.on_acked(range.start, range.end);
        self.settle(range, |sender, number| {
            let place = (number - sender.base) as usize;
            let sent = &mut sender.sent[place];
            sent.flying = false;
            let (at, carried) = (sent.at, sent.carried);
            let is_newest = sender.newest_acked.is_none_or(|(newest, _)| newest < number);
            if is_newest && matches!(carried, Carried::Data(_) | Carried::Datagram(_)) {
                sender.newest_acked = Some((number, at));
            }
            if let Carried::Probe | Carried::Control(_) | Carried::Streams = carried
                && let Some(stall) = &mut sender.path.stall
            {
                stall.short_passes |= at >= stall.since;
            }
            let bytes = match carried {
                Carried::Data(chunk) => {
                    sender.streams.on_acked(chunk);
                    sender.data_arrived(number, at, chunk.len);
                    u64::from(chunk.len)
                }
                Carried::Datagram(len) => {
                    sender.data_arrived(number, at, len);
                    u64::from(len)
                }
                Carried::Control(control) => {
                    sender.on_control_acked(control);
                    0
                }
                Carried::Streams => {
                    sender.on_stream_limit_settled(true);
                    0
                }
                Carried::PathProbe => {
                    sender.path_probed(now, number, true);
                    0
                }
                Carried::Probe | Carried::Nothing => 0,
            };
            sender.bytes_acked += bytes;
            seen.acked += sender.leave_network(number, bytes);
            seen.newest_acked = seen.newest_acked.max(Some(number));
            sender.rate.on_delivered(place, bytes);
            true
        });
        self.advance();
    }

    /// Bytes of the packet `number` are no longer in the network. Returns how many of them were on this path.
    fn leave_network(&mut self, number: Position, bytes: u64) -> u64 {
        self.in_flight -= bytes;
        if number >= self.path.start {
            return bytes;
        }
        self.path.elsewhere = self.path.elsewhere.saturating_sub(bytes);
        0
    }

    fn path_probed(&mut self, now: Instant, number: Position, arrived: bool) {
        if number >= self.path.start && self.path.mtu.on_fate(now, arrived) {
            self.path.set_mss(self.implied);
        }
    }

    /// A packet with `len` bytes of data arrived that left at `at`: as long ones pass.
    fn data_arrived(&mut self, number: Position, at: Instant, len: u32) {
        self.unanswered_probes = 0;
        self.end_stall(at, len);
        if number >= self.path.start {
            self.path.mtu.on_arrived(len);
        }
    }

    /// A packet with `len` bytes of data was lost: perhaps as long ones pass no more.
    fn data_lost(&mut self, now: Instant, number: Position, len: u32) {
        let next = self.sent.get((number - self.base) as usize + 1);
        let follower = next.filter(|next| next.carried == Carried::Probe);
        // A report is read first for what arrived.
        let follower = follower.map(|follower| !follower.flying && !follower.lost);
        let probe_timeout = self.probe_timeout();
        if number >= self.path.start && self.path.mtu.on_lost(now, len, follower, probe_timeout) {
            self.path.set_mss(self.implied);
        }
    }

    /// The receiver holds the numbers of `range` lost. It cannot know about packets sent less than a round trip ago; each
    /// packet is thus sent again once per round trip at most.
    fn lose(&mut self, now: Instant, range: Range, seen: &mut Seen) {
        let rtt_min = self.path.rtt_min.get().unwrap_or_default();
        let youngest = rtt_min - rtt_min / 8;
        let range = Range { start: range.start.max(self.base), end: range.end.min(self.next) };
        self.settle(range, |sender, number| {
            let sent = &mut sender.sent[(number - sender.base) as usize];
            if now.saturating_since(sent.at) < youngest {
                return false;
            }
            (sent.flying, sent.lost) = (false, true);
            let place = (number - sender.base) as usize;
            match sent.carried {
                Carried::Data(chunk) => {
                    sender.rate.on_lost(place, u64::from(chunk.len));
                    seen.lost += sender.leave_network(number, u64::from(chunk.len));
                    sender.streams.on_lost(chunk);
                    sender.data_lost(now, number, chunk.len);
                }
                Carried::Datagram(len) => {
                    sender.rate.on_lost(place, u64::from(len));
                    seen.lost += sender.leave_network(number, u64::from(len));
                    sender.data_lost(now, number, len);
                }
                Carried::Control(control) => sender.on_control_lost(control),
                Carried::Streams => sender.on_stream_limit_settled(false),
                Carried::PathProbe => sender.path_probed(now, number, false),
                Carried::Probe | Carried::Nothing => {}
            }
            sender.counters.packets_lost += 1;
            if let Some(losses) = &mut sender.losses {
                losses.push(number.saturating_since(START));
            }
            if number >= sender.path.start {
                seen.newest_lost = seen.newest_lost.max(Some(number));
            }
            true
        });
        self.advance();
    }

    /// Calls `each` for the numbers of `range` whose fate was not known; it is then, up to the first for which
    /// that returns false.
    fn settle(&mut self, range: Range, mut each: impl FnMut(&mut Self, Position) -> bool) {
        let mut wanted = Range { start: range.start.max(self.base), end: range.end };
        while wanted.start < wanted.end
            && let Some(gap) = self.settled.first_gap(wanted)
        {
            let mut end = gap.start;
            while end < gap.end && each(self, end) {
                end += 1;
            }
            if gap.start < end {
                self.settled.insert(Range { start: gap.start, end }, usize::MAX);
            }
            if end < gap.end {
                return;
            }
            wanted.start = end;
        }
    }

    /// Forgets the lowest packets, whose fate is known.
    fn advance(&mut self) {
        let Some(first) = self.settled.first().filter(|first| first.start <= self.base) else { return };
        while self.base < first.end {
            let sent = self.sent.pop_front();
            self.holes += u64::from(sent.is_some_and(|sent| sent.lost));
            self.rate.forget_first();
            self.base += 1;
        }
        self.settled.pop_first();
    }

    /// The receiver counts bytes that it got, of any packets.
    fn count_received(&mut self, received: SeqNumber) -> Result<(), Optimistic> {
        self.received = self.received.max(self.received.nearest(received));
        let received = self.received - START;
        if received > self.bytes_sent {
            return Err(Optimistic);
        }
        self.unreported = received.saturating_sub(self.bytes_acked);
        Ok(())
    }

    fn raise_window(&mut self, window: SeqNumber) {
        let known = START.saturating_add(self.streams.limit());
        let reported = known.nearest(window);
        self.streams.raise_limit(reported.saturating_since(START));
    }

    /// The round-trip time of the packet that the receiver chose.
    fn round_trip(&self, now: Instant, tack: &Tack) -> Option<Duration> {
        if tack.delay_us == u32::MAX {
            return None;
        }
        let elapsed = Stamp::at(now, self.clock_offset).since(tack.departed)?;
        // It may have left on another path.
        let here = u64::from(elapsed) <= now.saturating_since(self.path.since).as_micros();
        if self.path.start > START && !here {
            return None;
        }
        let micros = elapsed.checked_sub(tack.delay_us)?;
        (micros > 0).then(|| Duration::from_micros(u64::from(micros)))
    }

    /// Something arrived. A rate over the time in which nothing but probes was sent is no rate of the path: those that the
    /// receiver reports span a round trip, and the first without that time is on its way a round trip from now.
    fn end_silence(&mut self, now: Instant, seen: &Seen) {
        if seen.newest_acked.is_none() {
            return;
        }
        if self.path.timeouts > 0 {
            self.path.quiet_until = now + self.path.rtt_min.get().unwrap_or_default().saturating_mul(2);
        }
        self.peer_acknowledged = true;
        self.path.timeouts = 0;
        self.path.silent_timeouts = 0;
        self.path.after_timeout = false;
    }

    /// The receiver's measurements, as far as they can be true: no faster than we sent.
    fn report(&self, rate: BitRate) -> ReceiverReport {
        let fastest = self.path.fastest.into_iter().max().unwrap_or_default();
        let rate = if fastest > BitRate::default() { rate.min(fastest) } else { rate };
        let arriving = Arriving { rate, ..self.arriving() };
        let wait = self.ack_wait();
        // A cycle of gains has as many intervals whether these are a part of the round trip or longer than it.
        let interval = match self.clock {
            AckClock::Tack { .. } => wait.max(arriving.rtt_min) / INTERVALS_PER_TRIP,
            clock => clock.interval(&arriving),
        };
        let (burst, base_loss) = (arriving.burst, self.path.base_loss);
        let rate = (rate > BitRate::default()).then_some(rate);
        ReceiverReport { rate, base_loss, interval, wait, burst }
    }

    /// Tells the controller, and acts on the feedback as a whole.
    fn finish(&mut self, now: Instant, prior_in_flight: u64, seen: &Seen) {
        if let Some(rtt) = seen.rtt {
            self.path.rtt.sample(rtt);
            self.path.rtt_min.update(now, rtt);
        }
        let mut sample = self.rate.finish_ack();
        sample.rtt = seen.rtt;
        if self.config.paces_by_reports() {
            sample.over = None;
        }
        let round_over = seen.newest_acked.is_some_and(|newest| newest >= self.path.round_end);
        if round_over {
            self.path.round_end = self.next;
        }
        self.enter_or_leave_recovery(seen, prior_in_flight);
        if seen.acked > 0 && self.path.recovery.is_none() {
            self.path.congestion.on_ack(&AckSample {
                now,
                acked: seen.acked,
                snd_una: START + self.bytes_acked,
                snd_nxt: START + self.bytes_sent,
                rtt: seen.rtt,
                smoothed_rtt: self.path.rtt.smoothed(),
                window_limited: core::mem::take(&mut self.path.window_limited),
                after_timeout: self.path.after_timeout,
            });
        }
        if self.path.congestion.wants_delivery() {
            let repair = match (self.path.after_timeout, self.path.recovery) {
                (true, _) => Repair::Timeout,
                (false, Some(_)) => Repair::Fast,
                (false, None) => Repair::None,
            };
            // Bytes that arrived while the report queued.
            let late = self.reported_late(self.path.ack_path.queueing());
            self.path.congestion.on_delivery(&Delivery {
                now,
                sample,
                lost: seen.lost,
                prior_in_flight: prior_in_flight.saturating_sub(late),
                in_flight: self.in_flight().saturating_sub(late),
                advanced: true,
                repair,
                smoothed_rtt: self.path.rtt.smoothed(),
                stamps: None,
                receiver_limited: core::mem::take(&mut self.path.receiver_limited),
                receiver: seen.report.filter(|_| self.config.paces_by_reports()),
            });
        }
        if self.path.congestion.holds_back() {
            self.rate.limit_by_application(self.in_flight());
        }
        self.end_startup(round_over);
        self.path.set_mss(self.implied);
        // The rate may have risen: data that waits for the pacer asks it again.
        self.end_pacing(now);
    }

    /// One reduction per round trip, as RFC 9002 section 7.3.2 has it.
    fn enter_or_leave_recovery(&mut self, seen: &Seen, flight: u64) {
        if self.path.recovery.is_some_and(|until| self.base >= until) {
            self.path.recovery = None;
        }
        let lost = seen.newest_lost.is_some() && seen.lost > 0;
        if self.path.recovery.is_none() && (lost || (seen.marked && self.config.ecn)) {
            self.path.recovery = Some(self.next);
            self.counters.recoveries += 1;
            self.path.congestion.on_loss(flight);
        }
    }
}
