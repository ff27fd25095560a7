//! State that the sender tells the receiver, and when (TACK paper sections 4.4 and 5.4).

use super::Sender;
use crate::AckClock;
use crate::config::Lists;
use tacit_packet::position::Position;
use tacit_packet::tack::packet::Sync;
use tacit_packet::units::{Duration, Instant};

/// Round trips after which a start-up is over, even where the controller continues it: one that the application holds back
/// might never leave it.
const STARTUP_ROUNDS: u32 = 12;

/// The state last sent to the receiver.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SyncState {
    announced: Sync,
    /// The packet that carried it last, and when; `None` before the first.
    by: Option<(Position, Instant)>,
    /// That packet arrived.
    known: bool,
}

impl SyncState {
    /// The packet `number`, which leaves at `now`, says `announced`.
    pub fn new(announced: Sync, number: Position, now: Instant) -> Self {
        Self { announced, by: Some((number, now)), known: false }
    }

    /// The least time between ACKs that the receiver knows of.
    pub fn ack_interval(&self) -> Duration {
        Duration::from_millis(self.announced.ack_interval_ms.into())
    }

    /// The packets `start .. end` arrived.
    pub fn on_acked(&mut self, start: Position, end: Position) {
        self.known |= self.by.is_some_and(|(by, _)| start <= by && by < end);
    }
}

impl Sender {
    /// State that the packet `number`, about to leave, should tell the receiver. The papers send this where the value has
    /// doubled or halved; on data it costs ten bytes, so that an eighth is enough here, and nothing waits.
    pub(super) fn next_sync(&mut self, now: Instant, number: Position) -> Option<Sync> {
        let current = self.current_sync();
        if !self.should_announce(now, &current) {
            return None;
        }
        self.path.sync = SyncState::new(current, number, now);
        self.holes = 0;
        self.announced_floor = self.base;
        Some(current)
    }

    /// State that the receiver should know at once though no data may leave: the round-trip time has doubled or halved
    /// (successor paper section VI-C), or the start-up is over. Data repeats it.
    pub fn next_urgent_sync(&mut self, now: Instant) -> Option<Sync> {
        let (announced, current) = (self.path.sync.announced, self.current_sync());
        self.path.sync.by?;
        let (old, new) = (u64::from(announced.rtt_min_us), u64::from(current.rtt_min_us));
        let moved = new >= 2 * old || 2 * new <= old;
        if !(moved && new > 0) && announced.startup == current.startup {
            return None;
        }
        self.path.sync = SyncState::new(current, self.next, now);
        self.announced_floor = self.base;
        Some(current)
    }

    /// Whether the next packet should tell the receiver anything.
    pub(super) fn sync_is_due(&self, now: Instant) -> bool {
        self.should_announce(now, &self.current_sync())
    }

    fn should_announce(&self, now: Instant, current: &Sync) -> bool {
        let announced = &self.path.sync.announced;
        let Some((_, at)) = self.path.sync.by else { return true };
        if current.startup != announced.startup {
            return true;
        }
        let period = self.path.rtt_min.get().unwrap_or_default() / 4;
        if now.saturating_since(at) < period.max(Duration::from_millis(1)) {
            return false;
        }
        let moved = current.rtt_min_us.abs_diff(announced.rtt_min_us) > announced.rtt_min_us / 8
            || current.ack_interval_ms.abs_diff(announced.ack_interval_ms) > announced.ack_interval_ms / 16;
        // Holes that were repaired are dead weight in a list. Without any the receiver sees for itself.
        let repaired = current.floor != announced.floor && self.holes > 0;
        !self.path.sync.known || moved || current.blocks != announced.blocks || repaired
    }

    /// Least time between ACKs, beyond the one that the receiver keeps anyway, which in a start-up is little.
    fn ack_interval_ms(&self) -> u16 {
        let AckClock::Tack { beta, min_interval, .. } = self.clock else { return 0 };
        let interval = self.path.ack_path.interval(beta);
        if !self.path.startup && interval <= min_interval {
            return 0;
        }
        u16::try_from(interval.as_millis()).unwrap_or(u16::MAX)
    }

    fn current_sync(&self) -> Sync {
        let rtt_min_us = self.path.rtt_min.get().unwrap_or_default().as_micros();
        Sync {
            rtt_min_us: u32::try_from(rtt_min_us).unwrap_or(u32::MAX),
            floor: self.base.wire(),
            blocks: self.blocks(),
            startup: self.path.startup,
            ack_interval_ms: self.ack_interval_ms(),
        }
    }

    /// Q: blocks of each list that make up for acknowledgments that are lost, after TACK paper equations 6 to 8. Losses in
    /// a round trip whose IACK is lost as well must fit into the TACKs that follow; twice as many, for losses come in
    /// bunches.
    pub fn blocks(&self) -> u8 {
        if self.config.lists == Lists::Poor {
            return 1;
        }
        let packets = self.cwnd() / u64::from(self.path.mss);
        let lost = (packets * u64::from(self.path.loss)) >> 16;
        let unreported = (lost * u64::from(self.path.ack_loss)) >> 16;
        // A power of two: the receiver need not hear of each change.
        let blocks = (4 + 2 * unreported).next_power_of_two();
        u8::try_from(blocks).unwrap_or(u8::MAX)
    }

    /// A round trip is over: is the start-up?
    pub(super) fn end_startup(&mut self, round_over: bool) {
        if !self.path.startup {
            return;
        }
        self.path.startup_rounds += u32::from(round_over);
        self.path.startup = self.path.congestion.in_start_up() && self.path.startup_rounds < STARTUP_ROUNDS;
    }
}
