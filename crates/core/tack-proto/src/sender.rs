//! The sending half of a connection: packets in the network, losses, and when the next packet may leave.

mod controls;
mod feedback;
mod path;
mod sync;

use std::collections::VecDeque;

use tacit_ack::{AckClock, Arriving};

use super::config::Config;
use super::incoming::START;
use super::outgoing::{Chunk, Outgoing, room_for};
use super::path_mtu::PathMtu;
use super::skips::Skips;
use tacit_congestion::Start;
use tacit_congestion::pacing::Pacer;
use tacit_congestion::rate::RateSampler;
use tacit_packet::position::Position;
use tacit_packet::ranges::{Range, RangeSet};
use tacit_packet::tack::packet::{
    Body, Control, Data, SYNC_LEN, Stamp, padding_for, room_for_data, room_for_short_data,
};
use tacit_packet::units::{BitRate, Bytes, Duration, Instant};

use controls::ControlsAndDatagrams;
use path::{Path, Stall};

/// How often at least a peer is asked within the idle time-out. Where every second packet is lost each way, two probes and their
/// answer fail with chance 0.6: ten in a row once in 160 times, twenty once in 27,000. RFC 9002 section 6.2.1 has no limit.
const PROBES_BEFORE_IDLE: u64 = 16;
/// Longest wait between two probes (RFC 6298 section 2.5).
const PTO_MAX: Duration = Duration::from_secs(60);

/// Most times in a row that the peer is asked by several probes though no data arrives: a path may carry questions and no data. Ours: where half
/// of the packets are lost, the same one is lost once in eight times.
const UNANSWERED_PROBES_MAX: u8 = 3;

/// Most timeouts in a row before a path is held to have gone away. Ours: each waits twice as long as the one before, or as long where the
/// peer still sends.
const MAX_TIMEOUTS_OF_OUTAGE: u32 = 6;

/// Packets in the network at most, of any length: a bound of memory.
const MAX_PACKETS: usize = 1 << 17;

/// Data is short where its number is less than that above one that the peer has, a quarter of the circle of 16 bits: the peer finds
/// it among those that arrived before and after it by as much more.
const SHORT_NUMBERS: u64 = 1 << 14;

/// And where it leaves less than that after it: a turn of [`Stamp::short`] is 1.05 s.
const SHORT_AGE: Duration = Duration::from_secs(1);

/// Timeouts in a row that mean that the path went away, not that questions or answers were lost: two, and more where the share
/// `unanswered`, in 65,536ths, of questions gets no answer. The first timeout asks once and the others twice. All answers are lost by
/// chance once in 16 times at most. Ours: where seven of ten ACKs are lost, two timeouts in a row are usual.
fn timeouts_of_outage(unanswered: u16) -> u32 {
    const RARE: u64 = (1 << 16) / 16;
    let lost = u64::from(unanswered);
    let (mut timeouts, mut chance) = (2, (lost * lost * lost) >> 32);
    while chance > RARE && timeouts < MAX_TIMEOUTS_OF_OUTAGE {
        chance = (chance * lost * lost) >> 32;
        timeouts += 1;
    }
    timeouts
}

/// A share of lost answers, in 65,536ths, at which the probe timeout is seldom waited for.
const SELDOM: u32 = (1 << 16) / 8;

/// Probes that ask at once where the share `unanswered` of questions, in 65,536ths, gets no answer: none up to an eighth, where the
/// probe timeout is seldom waited for; then as many as leave all unanswered once in eight times, up to four.
fn questions(unanswered: u16) -> u8 {
    let share = u32::from(unanswered);
    let (mut questions, mut chance) = (0, if share > SELDOM { 1 << 16 } else { 0 });
    while chance > SELDOM && questions < 4 {
        chance = ((u64::from(chance) * u64::from(share)) >> 16) as u32;
        questions += 1;
    }
    questions
}

/// Content that a number stood for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Carried {
    Data(Chunk),
    /// Bytes of a datagram.
    Datagram(u32),
    /// A message about a stream.
    Control(Control),
    /// How many streams the peer may open.
    Streams,
    Probe,
    /// A probe of a longer packet, whose loss says nothing about congestion.
    PathProbe,
    /// Nothing that the peer acknowledges, or a number that was left out.
    Nothing,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Instant,
    carried: Carried,
    /// In the network, as far as is known.
    flying: bool,
    /// The receiver takes it for lost, and lists it until a `Forget` names it.
    lost: bool,
}

/// Counters of the sender.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    pub data_packets: u64,
    pub data_bytes: u64,
    pub packets_again: u64,
    pub bytes_again: u64,
    pub packets_lost: u64,
    pub timeouts: u64,
    pub recoveries: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Sender {
    config: Config,
    pub streams: Outgoing,
    /// Content beside streams.
    pub controls: ControlsAndDatagrams,
    path: Path,
    clock_offset: u32,
    /// Short data to the peer goes without its number of the connection.
    implied: bool,
    /// The newest data that the peer has acknowledged, and when it left; before, our first hello, which it has once data may leave.
    newest_acked: Option<(Position, Instant)>,
    /// Packets from `base` on, one for each number up to `next`.
    sent: VecDeque<Sent>,
    base: Position,
    next: Position,
    /// Numbers above `base` whose fate is known.
    settled: RangeSet,
    /// Bytes that flew and are neither acknowledged nor lost.
    in_flight: u64,
    /// Bytes that the receiver has, of those `in_flight`: it counts them, though it did not say which.
    unreported: u64,
    /// Bytes sent, lost and acknowledged, each time they were.
    bytes_sent: u64,
    bytes_acked: u64,
    received: Position,
    rate: RateSampler,
    /// When the last packet left that must be acknowledged.
    last_sent: Instant,
    /// Probes to send, with data where there is any, and others behind them without.
    probes: u8,
    questions: u8,
    /// Something was sent since the last question whose loss no later packet may show: the end of a stream, or data again.
    ends_flight: bool,
    /// When the window last held data back and the peer was asked.
    window_probed_at: Instant,
    /// How often it was asked by several probes since data was acknowledged.
    unanswered_probes: u8,
    skips: Skips,
    /// The peer has acknowledged something.
    peer_acknowledged: bool,
    /// How the receiver was asked to acknowledge.
    clock: AckClock,
    /// Packets below `base` that the receiver lists as missing; it has been asked to forget them.
    holes: u64,
    /// The highest floor that the receiver may have heard of.
    announced_floor: Position,
    pub counters: Counters,
    /// Lost numbers that the user has not fetched yet, where they are asked for.
    pub losses: Option<Vec<u64>>,
}

impl Sender {
    pub fn new(config: &Config, clock_offset: u32, seed: u32) -> Self {
        let sizes = [config.min_payload(), config.payload(), config.payload()];
        let mtu = PathMtu::new(sizes, config.usual_payload());
        let path = Path::new(config, mtu, false, START, Start { seed, ..Start::default() });
        Self {
            config: *config,
            streams: Outgoing::new(),
            controls: ControlsAndDatagrams::default(),
            path: Path { ce: Some(0), ..path },
            clock_offset,
            implied: false,
            newest_acked: None,
            sent: VecDeque::new(),
            base: START,
            next: START,
            settled: RangeSet::default(),
            in_flight: 0,
            unreported: 0,
            bytes_sent: 0,
            bytes_acked: 0,
            received: START,
            rate: RateSampler::default(),
            last_sent: Instant::ZERO,
            probes: 0,
            questions: 0,
            ends_flight: false,
            window_probed_at: Instant::ZERO,
            unanswered_probes: 0,
            skips: Skips::new(START, seed),
            peer_acknowledged: false,
            clock: config.wished_clock(),
            holes: 0,
            announced_floor: START,
            counters: Counters::default(),
            losses: None,
        }
    }

    /// The handshake is done: the peer takes that much, and the round trip took `rtt` where it was measured.
    pub fn open(&mut self, now: Instant, seed: u32, rtt: Option<Duration>) {
        self.path.open(&self.config, Start { seed, at: now, rtt, ..Start::default() });
    }

    /// See [`Connection::stir`](super::Connection::stir).
    pub fn add_entropy(&mut self, fresh: u32) {
        self.skips.add_entropy(fresh);
    }

    /// Bytes of data in a full packet, which is short.
    pub fn mss(&self) -> u32 {
        self.path.mss
    }

    /// See [`Connection::begin_at_min_mtu`](super::Connection::begin_at_min_mtu).
    pub fn begin_at_min_mtu(&mut self) {
        self.config.mtu = self.config.mtu.min(self.config.min_mtu);
    }

    /// The peer takes `max` bytes of UDP payload at most, and its number of the connection is `implied` in short data or not.
    pub fn set_peer(&mut self, max: u32, implied: bool) {
        let base = self.config.payload().min(max);
        let sizes = [self.config.min_payload(), base, self.config.max_payload().min(max)];
        self.path.mtu = PathMtu::new(sizes, self.config.usual_payload());
        self.implied = implied;
        self.path.set_mss(self.implied);
    }

    /// A hello leaves at `now`, which has its number.
    pub fn on_hello(&mut self, now: Instant) {
        self.newest_acked.get_or_insert((self.latest(), now));
    }

    /// A round trip took about this long: see [`RttEstimator::guess`](crate::congestion::rtt::RttEstimator::guess). An end that repeated
    /// its hello after a time does not wait longer now.
    pub fn guess_rtt(&mut self, round_trip: Duration) {
        self.path.rtt.guess(round_trip, self.config.hello_timeout);
    }

    /// Whether data that leaves now is [short](Data::short). The peer reckons its number and time from the newest that arrived,
    /// which is the newest that it has acknowledged or a later one.
    fn is_short(&self, now: Instant) -> bool {
        self.newest_acked.is_some_and(|(number, at)| {
            self.next - number < SHORT_NUMBERS && now.saturating_since(at) < SHORT_AGE
        })
    }

    /// Bytes that are thought to be in the network.
    pub fn in_flight(&self) -> u64 {
        self.in_flight.saturating_sub(self.unreported + self.path.elsewhere)
    }

    /// Congestion window in bytes, with room for arrivals that are not reported yet, where the controller does not count them
    /// itself.
    pub fn cwnd(&self) -> u64 {
        let unreported = if self.config.paces_by_reports() {
            // A start-up doubles in a round trip anyway.
            let gain = 1 + u64::from(self.path.congestion.in_start_up());
            self.reported_late(self.path.ack_path.smoothed()) * gain
        } else {
            self.path.arriving.rate.amount_in(self.ack_wait()).0
        };
        (self.path.congestion.cwnd() + unreported).min(self.config.send_buffer.0)
    }

    /// Bytes that leave while reports queue for `late`. Where data queues, too, the window need not be larger: each half of a
    /// queue on a shared channel would let the other grow.
    fn reported_late(&self, late: Duration) -> u64 {
        let rtt_min = self.path.rtt_min.get().unwrap_or_default();
        let queueing = self.path.rtt.smoothed().unwrap_or_default().saturating_sub(rtt_min);
        let of_data = queueing.saturating_sub(self.path.ack_path.smoothed());
        match late.saturating_sub(of_data * 2) {
            Duration::ZERO => 0,
            late => self.path.congestion.amount_reported_late(late),
        }
    }

    /// The rate at which it paces now; `None` where it does not.
    pub fn pacing_rate(&self) -> Option<BitRate> {
        self.path.pacer.as_ref()?;
        self.path.congestion.pacing_rate(self.path.rtt.smoothed(), self.in_flight())
    }

    /// State of congestion control.
    pub fn congestion_state(&self) -> Option<&'static str> {
        self.path.congestion.state()
    }

    /// Smoothed round-trip time.
    pub fn smoothed_rtt(&self) -> Option<Duration> {
        self.path.rtt.smoothed()
    }

    /// Smallest round-trip time of the last ten seconds.
    pub fn rtt_min(&self) -> Option<Duration> {
        self.path.rtt_min.get()
    }

    /// True while packets are out that the peer must acknowledge, or its window holds us.
    fn awaits(&self) -> bool {
        self.in_flight > 0 || self.base < self.next || self.streams.is_held()
    }

    /// How long to wait for any acknowledgment: the receiver may keep one for a period of its clock.
    pub fn probe_timeout(&self) -> Duration {
        let wait = self.clock.longest_wait(&self.arriving());
        self.path.rtt.rto() + wait.max(tacit_ack::TAIL_MAX)
    }

    /// Inputs of the time between ACKs that this end knows.
    fn arriving(&self) -> Arriving {
        let rtt_min = self.path.rtt_min.get().unwrap_or_default();
        let queueing = self.path.rtt.smoothed().unwrap_or_default().saturating_sub(rtt_min);
        let ack_path = self.path.sync.ack_interval();
        let packet = Bytes(u64::from(self.path.mss));
        Arriving { rtt_min, queueing, packet, ack_path, ..self.path.arriving }
    }

    /// How long the receiver may keep an ACK beside the round trip, where that is not a small part of one; zero while it
    /// acknowledges often for a start-up.
    fn ack_wait(&self) -> Duration {
        match self.clock {
            AckClock::Tack { .. } if !self.path.startup => self.clock.interval(&self.arriving()),
            _ => Duration::ZERO,
        }
    }

    /// [`probe_timeout`](Self::probe_timeout), twice as long for each that passed in vain. A peer that is there is asked
    /// several times before it is given up for its silence (RFC 9000 section 10.1 has three). Until the peer has acknowledged something
    /// the wait is that of a hello at most.
    pub fn backed_off(&self) -> Duration {
        let longest = (self.config.idle_timeout / PROBES_BEFORE_IDLE).min(PTO_MAX);
        let longest = if self.peer_acknowledged {
            longest
        } else {
            longest.min(self.config.hello_wait(self.path.timeouts))
        };
        // Where answers are lost, the first silences say nothing of a path that is gone or full.
        let by_chance = timeouts_of_outage(self.unanswered()) - timeouts_of_outage(0);
        self.probe_timeout()
            .saturating_mul(1 << self.path.silent_timeouts.saturating_sub(by_chance).min(10))
            .min(longest.max(self.probe_timeout()))
    }

    /// When something happens though nothing arrives.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let probe = self.probe_at();
        let soonest = [
            probe,
            self.path.paced_until,
            probe.and_then(|_| self.path.congestion.poll_timeout()),
            self.controls.poll_timeout(),
        ];
        soonest.into_iter().flatten().min()
    }

    fn probe_at(&self) -> Option<Instant> {
        self.awaits().then(|| self.last_sent + self.backed_off())
    }

    /// Takes the actions due at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.path.paced_until.is_some_and(|at| at <= now) {
            self.end_pacing(now);
        }
        self.path.congestion.handle_timeout(now);
        self.request_limits(now);
        if self.probe_at().is_some_and(|at| at <= now) {
            self.counters.timeouts += 1;
            self.path.timeouts += 1;
            self.path.silent_timeouts += 1;
            // Two where one brought nothing: either may be lost, and its answer (RFC 9002 section 6.2.4). And a short one behind them
            // where they may be too long for the path.
            self.probes = if self.path.timeouts > 1 { 2 } else { 1 };
            let may_be_long = self.in_flight > 0 && self.path.mtu.is_above_floor();
            self.questions = self.questions_now().unwrap_or(0).max(u8::from(may_be_long));
            self.last_sent = now;
            self.watch_stall(now);
            // The first may be a lost tail; more are a path that went away, unless only the peer's window was waited for.
            if self.path.timeouts == timeouts_of_outage(self.unanswered()) && self.in_flight > 0 {
                self.path.congestion.on_timeout(now, self.in_flight(), false);
                self.path.after_timeout = true;
            }
        }
    }

    /// Bytes of the oldest data in flight, and no more than fit a packet of the smallest size.
    fn oldest_len(&self) -> Option<u32> {
        let oldest = self.sent.iter().find_map(|sent| match sent.carried {
            Carried::Data(chunk) if sent.flying => Some(chunk.len),
            Carried::Datagram(len) if sent.flying => Some(len),
            _ => None,
        });
        oldest.map(|len| len.min(room_for_short_data(self.config.min_payload(), self.implied)))
    }

    /// A probe timeout passed. A stall ends where what was missing is not wanted any more, as when its stream was reset.
    fn watch_stall(&mut self, now: Instant) {
        let missing = self.oldest_len();
        let stays = self
            .path
            .stall
            .is_some_and(|stall| self.streams.has_lost() || missing.is_some_and(|len| len >= stall.len / 2));
        if !stays {
            self.path.stall = missing.map(|len| Stall { since: now, len, short_passes: false });
        }
    }

    /// A packet with `len` bytes of data arrived that left at `at`: as much as what was missing, or about as much.
    fn end_stall(&mut self, at: Instant, len: u32) {
        self.path.stall.take_if(|stall| at >= stall.since && len >= stall.len - stall.len / 8);
    }

    /// No data was acknowledged for `time`, though probe timeouts passed.
    fn stalls_for(&self, now: Instant, time: Duration) -> bool {
        self.path.stall.is_some_and(|stall| now.saturating_since(stall.since) >= time)
    }

    /// See [`Connection::is_path_too_narrow`](super::Connection::is_path_too_narrow).
    pub fn is_path_too_narrow(&self, now: Instant) -> bool {
        let short_passes = self.path.stall.is_some_and(|stall| stall.short_passes);
        short_passes && self.path.timeouts > 0 && self.stalls_for(now, self.config.idle_timeout)
    }

    /// Nothing waits for the pacer any more, which learns how much longer than asked for that was.
    fn end_pacing(&mut self, now: Instant) {
        if let (Some(until), Some(pacer)) = (self.path.paced_until.take(), &mut self.path.pacer) {
            pacer.on_late(now.saturating_since(until));
        }
    }

    /// The peer sent a packet of any kind. The path is there, so the next probe timeout is not a backed-off one: questions and answers
    /// were lost by chance. After [`MAX_TIMEOUTS_OF_OUTAGE`] it was no chance: the peer never acknowledges, or its acknowledgments never arrive.
    pub fn on_packet(&mut self) {
        if self.path.timeouts < MAX_TIMEOUTS_OF_OUTAGE {
            self.path.silent_timeouts = 0;
        }
    }

    /// An answer that is waited for may never come: the peer is asked at once.
    pub fn restart_probes(&mut self) {
        if self.awaits() {
            (self.path.timeouts, self.path.silent_timeouts, self.probes) = (0, 0, 2);
        }
    }

    /// True when nothing can be sent at `now`, which costs little to tell.
    #[inline]
    pub fn is_idle(&self, now: Instant) -> bool {
        self.probes == 0
            && self.questions == 0
            && !self.controls.is_urgent()
            && self.path.paced_until.is_some_and(|until| now < until)
    }

    /// When the last packet left that must be acknowledged.
    pub fn last_sent(&self) -> Instant {
        self.last_sent
    }

    /// The next packet with data or a probe.
    pub fn next(&mut self, now: Instant) -> Option<Body> {
        if self.probes > 0 {
            self.probes -= 1;
            return Some(self.next_probe(now));
        }
        if self.questions > 0 {
            self.questions -= 1;
            self.ends_flight = false;
            return Some(self.next_ping(now));
        }
        self.watch_limits(now);
        if let Some(control) = self.next_control(now) {
            return Some(control);
        }
        if !self.streams.has_lost() && !self.streams.has_new() && !self.controls.has_datagrams() {
            // Nothing is left, or the peer's windows hold it: neither says how much the path carries, unless most of the
            // congestion window is in flight.
            let is_receiver_limited = self.streams.is_receiver_limited();
            self.path.receiver_limited |= is_receiver_limited;
            if !is_receiver_limited || self.in_flight() < self.cwnd() / 4 * 3 {
                self.rate.limit_by_application(self.in_flight());
            }
            self.path.pacer.iter_mut().for_each(Pacer::forget_lateness);
            let ends_flight = core::mem::take(&mut self.ends_flight);
            return ends_flight.then(|| self.immediate_probe(now)).flatten();
        }
        let in_flight = self.in_flight();
        if in_flight > 0 && in_flight + u64::from(self.path.mss) > self.cwnd() {
            self.path.window_limited = true;
            let is_due = now >= self.window_probed_at + self.path.rtt.smoothed().unwrap_or(PTO_MAX);
            return is_due.then(|| self.probe_held_window(now)).flatten();
        }
        if self.sent.len() >= MAX_PACKETS {
            return None;
        }
        if let Some(until) = self.path.paced_until.or_else(|| self.path.pacer.as_ref()?.held_until(now)) {
            if now < until {
                self.path.paced_until = Some(until);
                return None;
            }
            self.end_pacing(now);
        }
        if in_flight > 0
            && let Some(probe) = self.next_path_probe(now)
        {
            return Some(probe);
        }
        if in_flight == 0 {
            self.path.congestion.on_transmit_start(now, Some(&self.rate));
        }
        if let Some(datagram) = self.next_datagram(now) {
            return Some(datagram);
        }
        let (chunk, again) = self.next_chunk(now)?;
        self.pace(now, u64::from(chunk.len));
        Some(self.data(now, chunk, again, chunk.fin))
    }

    /// The share of questions, in 65,536ths, that gets no answer by chance: it is lost, or the answer. Lost questions count where many
    /// answers are lost too: a queue that overflows loses none of these, and is to be heeded.
    fn unanswered(&self) -> u16 {
        let [there, back] = [self.path.loss, self.path.ack_loss].map(u32::from);
        if back <= SELDOM {
            return self.path.ack_loss;
        }
        // Below 65,536.
        (there + back - (there * back).div_ceil(1 << 16)) as u16
    }

    /// Nothing follows the packets that left, so that nothing shows which of them are lost. Where much is lost the peer is asked at
    /// once, which takes a round trip; the probe timeout is several.
    fn immediate_probe(&mut self, now: Instant) -> Option<Body> {
        self.questions = self.questions_now()?.checked_sub(1)?;
        Some(self.next_ping(now))
    }

    /// How many probes ask now; none where several asked in vain.
    fn questions_now(&mut self) -> Option<u8> {
        let questions = questions(self.unanswered());
        if questions == 0 || self.unanswered_probes >= UNANSWERED_PROBES_MAX {
            return None;
        }
        self.unanswered_probes += 1;
        Some(questions)
    }

    /// The same where the window holds data back: the acknowledgments that would open it may be lost.
    fn probe_held_window(&mut self, now: Instant) -> Option<Body> {
        self.window_probed_at = now;
        self.immediate_probe(now)
    }

    /// The next bytes of a stream, as many as one packet holds.
    fn next_chunk(&mut self, now: Instant) -> Option<(Chunk, bool)> {
        self.streams.next(self.room(now))
    }

    /// Bytes of data of stream 0 in the next packet: a [`Sync`] takes room where the packet must fit.
    fn room(&self, now: Instant) -> u32 {
        let shorter = self.config.fit_sync && self.sync_is_due(now);
        self.room_beside_sync(now).saturating_sub(if shorter { SYNC_LEN } else { 0 }).max(1)
    }

    fn room_beside_sync(&self, now: Instant) -> u32 {
        if self.is_short(now) { self.path.mss } else { room_for_data(self.path.payload()).max(1) }
    }

    /// The first initial window of a connection leaves at once (RFC 9002 section 7.7); Linux does not pace it either
    /// (`tcp_update_skb_after_send`).
    fn pace(&mut self, now: Instant, bytes: u64) {
        let in_flight = self.in_flight();
        let Some(pacer) = &mut self.path.pacer else { return };
        let rate = self.path.congestion.pacing_rate(self.path.rtt.smoothed(), in_flight);
        let initial = self.config.congestion.initial_window_bytes(self.path.mss);
        if self.bytes_sent + bytes >= initial {
            pacer.on_sent(bytes, now, rate, u64::from(self.path.mss));
        }
        let rate = rate.unwrap_or_default();
        if now.saturating_since(self.path.fastest_since) > self.path.rtt.smoothed().unwrap_or_default() {
            self.path.fastest = [BitRate::default(), self.path.fastest[0], self.path.fastest[1]];
            self.path.fastest_since = now;
        }
        self.path.fastest[0] = self.path.fastest[0].max(rate);
    }

    /// A packet that makes the receiver answer: with data that it lacks, or without any.
    fn next_probe(&mut self, now: Instant) -> Body {
        if self.path.timeouts > 1 && self.probes == 0 && self.stalls_for(now, self.config.idle_timeout / 2) {
            return self.next_ping(now);
        }
        if let Some((chunk, again)) = self.next_chunk(now) {
            return self.data(now, chunk, again, true);
        }
        let oldest = self.sent.iter().find_map(|sent| match sent.carried {
            Carried::Data(chunk) if sent.flying => self.streams.missing(chunk),
            _ => None,
        });
        if let Some(oldest) = oldest {
            // Packets may have been longer when it was sent.
            let len = oldest.len.min(room_for(oldest.stream, self.room(now)));
            return self.data(now, Chunk { len, fin: oldest.fin && len == oldest.len, ..oldest }, true, true);
        }
        self.next_ping(now)
    }

    fn data(&mut self, now: Instant, chunk: Chunk, again: bool, immediate_ack: bool) -> Body {
        self.counters.data_packets += 1;
        self.counters.data_bytes += u64::from(chunk.len);
        if again {
            self.counters.packets_again += 1;
            self.counters.bytes_again += u64::from(chunk.len);
        }
        self.ends_flight |= again || chunk.fin;
        // Before the packet has a number: so its room was found.
        let (short, room) = (self.is_short(now), room_for(chunk.stream, self.room_beside_sync(now)));
        let departed = Stamp::at(now, self.clock_offset);
        let number = self.push(now, Carried::Data(chunk), u64::from(chunk.len));
        let fits = !self.config.fit_sync || chunk.len + SYNC_LEN <= room;
        let sync = if fits { self.next_sync(now, number) } else { None };
        Body::Data(Data {
            stream: chunk.stream,
            offset: chunk.start.wire(),
            payload_len: chunk.len as u16,
            fin: chunk.fin,
            immediate_ack,
            short,
            departed: if short { departed.short() } else { departed },
            sync,
        })
    }

    /// A packet leaves that is not acknowledged.
    pub fn push_silent(&mut self, now: Instant) {
        self.push(now, Carried::Nothing, 0);
    }

    /// A packet that asks for an acknowledgment and nothing else.
    pub fn next_ping(&mut self, now: Instant) -> Body {
        self.push(now, Carried::Probe, 0);
        Body::Probe { padding: 0 }
    }

    /// A probe of the path's length, while data flows that would gain from it.
    fn next_path_probe(&mut self, now: Instant) -> Option<Body> {
        let size = self.path.mtu.next(now)?;
        self.push(now, Carried::PathProbe, 0);
        Some(Body::Probe { padding: padding_for(size) })
    }

    /// The number of the packet that left last.
    pub fn latest(&self) -> Position {
        self.next - 1
    }

    /// Its whole number, from 0 on.
    pub fn latest_number(&self) -> u64 {
        self.latest().saturating_since(START)
    }

    /// Place in its stream of the first byte of that packet.
    pub fn latest_start(&self) -> Option<u64> {
        match self.sent.back()?.carried {
            Carried::Data(chunk) => Some(chunk.start - START),
            _ => None,
        }
    }

    fn push(&mut self, now: Instant, carried: Carried, bytes: u64) -> Position {
        if carried != Carried::Nothing && self.skips.takes(self.next, now, self.path.fastest[0]) {
            self.push_one(now, Carried::Nothing);
        }
        let number = self.push_one(now, carried);
        if carried != Carried::Nothing {
            self.in_flight += bytes;
            self.bytes_sent += bytes;
            self.last_sent = now;
        }
        number
    }

    fn push_one(&mut self, now: Instant, carried: Carried) -> Position {
        let number = self.next;
        self.next += 1;
        let flying = carried != Carried::Nothing;
        if !flying && self.sent.is_empty() {
            self.base = self.next;
            return number;
        }
        self.rate.on_sent(now, self.in_flight());
        self.sent.push_back(Sent { at: now, carried, flying, lost: !flying });
        if !flying {
            self.settled.insert(Range { start: number, end: number + 1 }, usize::MAX);
        }
        number
    }

    /// Fails where data or packets would wait for ever if the peer said nothing more.
    pub fn check(&self) -> Result<(), String> {
        let waits = self.streams.has_lost() || self.streams.has_new();
        if waits && self.poll_timeout().is_none() {
            return Err(format!("has data to send, {} bytes in flight and no deadline", self.in_flight));
        }
        if self.in_flight > 0 && self.probe_at().is_none() {
            return Err("has bytes in flight and no probe timeout".into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{questions, timeouts_of_outage};

    #[test]
    fn the_more_is_lost_the_more_often_the_peer_is_asked_at_once() {
        let at_loss = |percent: u32| questions((percent * 65_535 / 100) as u16);
        // p^2 is 1/8 at 35.4 %, p^3 at 50 %.
        assert_eq!([0, 12, 13, 35, 36, 49, 51, 59, 60, 100].map(at_loss), [0, 0, 2, 2, 3, 3, 4, 4, 4, 4]);
    }

    #[test]
    fn an_outage_takes_more_timeouts_where_acknowledgments_are_lost() {
        let at_loss = |percent: u32| timeouts_of_outage((percent * 65_535 / 100) as u16);
        // p^3 is 1/16 at 39.7 %, p^5 at 57.4 %, p^7 at 67.3 %.
        assert_eq!([0, 10, 39, 41, 57, 58, 67, 69, 100].map(at_loss), [2, 2, 2, 3, 3, 4, 4, 5, 6]);
    }
}
