//! The medium on which every station hears every other.
//!
//! Between exchanges it is idle, with one pending event: the earliest end of a backoff (or a beacon). Functions whose
//! backoff ends at the same time collide. The cost is per channel access, independent of slots and idle stations.

use tacit_packet::units::{Duration, Instant};

use super::carrier_sense::CarrierSense;
use crate::packet::PayloadClass;
use crate::wifi::air::StationId;
use crate::wifi::airtime::AirtimeUse;
use crate::wifi::cell::{Cell, Follows, Reception, Sequence, earliest, even_shares};
use crate::wifi::config::Eifs;
use crate::wifi::functions::FunctionId;
use crate::wifi::mac::exchange::{Exchange, Part};
use crate::wifi::mac::protection::Handshake;
use crate::wifi::phy::Phy;

/// State of the channel.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// Idle.
    Idle,
    /// A frame of a sequence is on the air, without a collision.
    Frame { until: Instant },
    /// Several PPDUs overlap; lasts until the last one ends.
    Collision { until: Instant },
    /// A beacon is on the air.
    Beacon { until: Instant },
}

/// Time that a TXOP reserved but neither used nor released.
#[derive(Clone, Copy, Debug)]
struct Reservation {
    until: Instant,
    /// The two ends of the TXOP.
    ends: [FunctionId; 2],
}

impl Reservation {
    const NONE: Self = Self { until: Instant::ZERO, ends: [StationId::AP.first_function(); 2] };

    /// The unused part of the TXOP of `exchange`, which ended at `at`. Whole slots: stations that begin a part of a slot
    /// apart collide, because the later one cannot detect the other in time (802.11-2020 clause 10.3.7).
    fn left_by(exchange: &Exchange, at: Instant, phy: &Phy) -> Self {
        Self { until: at + phy.to_slots(exchange.reserved_until() - at), ends: [exchange.from, exchange.to] }
    }
}

/// The state of a channel that is common to all its stations.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    pub(super) sense: CarrierSense,
    phase: Phase,
    /// The rest of a reservation that outlasts its TXOP.
    reservation: Reservation,
    /// What collides on the air; a round is the last.
    colliding: Vec<Sequence>,
    /// The sequence with a frame on the air, without a collision.
    on_air: Option<Sequence>,
}

impl Shared {
    pub fn new(phy: &Phy) -> Self {
        Self {
            sense: CarrierSense::new(phy, None),
            phase: Phase::Idle,
            reservation: Reservation::NONE,
            colliding: Vec::new(),
            on_air: None,
        }
    }

    /// When the channel state changes next.
    pub fn poll_timeout(&self, cell: &Cell) -> Option<Instant> {
        match &self.phase {
            Phase::Idle => earliest(self.sense.next_access(), self.sense.beacon_at(cell)),
            Phase::Frame { until } | Phase::Collision { until } | Phase::Beacon { until } => Some(*until),
        }
    }

    /// Processes the events due at `at`.
    pub fn step(&mut self, cell: &mut Cell, at: Instant) {
        match self.phase {
            Phase::Idle => {
                // A beacon goes first: it waits only PIFS and has no backoff.
                if self.sense.beacon_at(cell).is_some_and(|beacon| beacon <= at) {
                    self.start_beacon(cell, at);
                } else {
                    self.access(cell, at);
                }
            }
            Phase::Frame { until } => self.frame_ended(cell, until),
            Phase::Collision { until } => self.collision_ended(cell, until),
            Phase::Beacon { until } => self.go_idle(cell, until, (until, cell.rules.phy.aifs())),
        }
    }

    /// True while the exchange on the air is one of `function`, including one in another's TXOP.
    pub fn engages(&self, function: FunctionId) -> bool {
        matches!(self.phase, Phase::Frame { .. })
            && self.on_air.as_ref().is_some_and(|sequence| sequence.engages(function))
    }

    /// The exchanges whose frames are on the air, with the frame where there is no collision.
    pub fn on_air(&self) -> impl Iterator<Item = (Option<Part>, &Exchange)> {
        let is_alone = matches!(self.phase, Phase::Frame { .. });
        let alone = self.on_air.as_ref().filter(|_| is_alone).and_then(Sequence::exchange);
        let colliding: &[Sequence] =
            if matches!(self.phase, Phase::Collision { .. }) { &self.colliding } else { &[] };
        let collided = colliding.iter().filter_map(Sequence::exchange).map(|exchange| (None, exchange));
        alone.map(|exchange| (Some(exchange.part), exchange)).into_iter().chain(collided)
    }

    /// The station whose frame is on the air without a collision, beacons included.
    pub fn transmitter(&self, cell: &Cell) -> Option<StationId> {
        match (self.phase, self.on_air.as_ref().and_then(Sequence::exchange)) {
            (Phase::Beacon { .. }, _) => Some(StationId::AP),
            (Phase::Frame { .. }, Some(exchange)) => Some(cell.stations.station_of(exchange.transmitter())),
            _ => None,
        }
    }

    /// True while an event other than a beacon is due.
    pub fn is_due(&self) -> bool {
        !matches!(self.phase, Phase::Idle) || self.sense.next_access().is_some()
    }

    // --- Contention -------------------------------------------------------------------------

    /// A function that had no traffic now has some.
    pub fn start_contending(&mut self, cell: &mut Cell, now: Instant, id: FunctionId) {
        if matches!(self.phase, Phase::Idle) {
            // From here on, idle time is charged to acquisition.
            cell.accounts.book_idle(self.sense.idle_use_without(cell, Some(id)), now);
        }
        self.sense.start_contending(cell, now, id);
    }

    /// A function that had traffic now has none, because another link of its station sent it.
    pub fn stop_contending(&mut self, cell: &mut Cell, now: Instant) {
        if matches!(self.phase, Phase::Idle) {
            cell.accounts.book_idle(self.sense.idle_use(), now);
            self.sense.find_next_access(cell);
        }
    }

    /// The function whose backoff ends first transmits; equal ends collide.
    fn access(&mut self, cell: &mut Cell, at: Instant) {
        cell.accounts.book_idle(AirtimeUse::Acquisition, at);
        let mut winners = self.sense.access(cell, at);
        match winners.len() {
            // All waiting packets were too old.
            0 => self.sense.find_next_access(cell),
            1 => {
                self.sense.become_busy(cell, at, StationId::AP);
                cell.count_access(&winners[0], at);
                self.on_air = winners.pop();
                self.begin(cell, at);
            }
            _ => {
                self.colliding.append(&mut winners);
                self.start_collision(cell, at);
            }
        }
        self.sense.winners = winners;
    }

    /// The channel becomes idle at `since`; the NAV of bystanders ends at `reserved_until`, and `wait` later their countdown
    /// starts.
    fn go_idle(&mut self, cell: &mut Cell, since: Instant, (mut reserved_until, wait): (Instant, Duration)) {
        let mut countdown_from = reserved_until + wait;
        self.phase = Phase::Idle;
        let reservation = self.reservation;
        if reservation.until > since {
            self.exempt_ends(cell);
            reserved_until = reserved_until.max(reservation.until);
            countdown_from = countdown_from.max(reservation.until + cell.rules.phy.aifs());
        }
        self.sense.become_idle(cell, StationId::AP, (reserved_until, since, countdown_from));
        self.sense.find_next_access(cell);
    }

    /// In the idle period that begins, bystanders defer until the reservation ends. The two ends of the TXOP do not:
    /// frames addressed to a station do not set its NAV.
    fn exempt_ends(&self, cell: &mut Cell) {
        for end in self.reservation.ends {
            let (station, number) = (cell.stations.station_of(end), self.sense.next_idle(cell, end));
            cell.stations.for_each_of(station, |function| function.contention.exempt(number));
        }
    }

    // --- One sequence alone -----------------------------------------------------------------

    /// The next frame of the sequence begins at `at`.
    fn begin(&mut self, cell: &mut Cell, at: Instant) {
        let Some(sequence) = &self.on_air else { return };
        let until = cell.begin_frame(sequence, at);
        if let Some(exchange) = sequence.exchange() {
            // A response is accounted when it has ended.
            if !matches!(exchange.part, Part::Response { .. }) {
                cell.book_frame(exchange, until);
            }
            if exchange.part == Part::CfEnd {
                self.reservation = Reservation::NONE;
            }
        }
        self.phase = Phase::Frame { until };
    }

    /// The frame on the air ended at `at`.
    fn frame_ended(&mut self, cell: &mut Cell, at: Instant) {
        let Some(sequence) = &mut self.on_air else { return };
        let next_idle = self.sense.next_idle(cell, sequence.holder());
        if let Some(exchange @ Exchange { part: Part::Response { .. }, .. }) = sequence.exchange() {
            cell.book_frame(exchange, at);
        }
        let follows = cell.frame_ended(sequence, Reception::UNDISTURBED, (at, next_idle));
        if let (Follows::Nothing { at, reserves_txop: true, .. }, Some(exchange)) =
            (follows, sequence.exchange())
            && exchange.reserved_until() > at
        {
            self.reservation = Reservation::left_by(exchange, at, cell.rules.phy);
        }
        self.sense.begin_contending(cell, at);
        match follows {
            Follows::Frame(at) => self.begin(cell, at),
            Follows::Nothing { at, reserved_until, .. } => {
                self.go_idle(cell, at, (reserved_until, cell.rules.phy.aifs()));
            }
        }
    }

    // --- Several at once, and beacons -------------------------------------------------------

    fn start_collision(&mut self, cell: &mut Cell, at: Instant) {
        self.sense.become_busy(cell, at, StationId::AP);
        cell.accounts.accesses += 1;
        cell.accounts.collisions += 1;
        let mut until = at;
        for sequence in &self.colliding {
            until = match sequence {
                Sequence::Exchange(exchange) => until.max(exchange.alone_until()),
                Sequence::Round(round) if round.ends_at() >= until => round.ends_at(),
                // The trigger after the multi-user PPDU collides too.
                Sequence::Round(round) => until.max(round.alone_until(cell)),
            };
            cell.stations[sequence.account().0].counters.collided_ppdus += 1;
        }
        let spent = cell.accounts.book(AirtimeUse::Collision, until);
        let accounts = self.colliding.iter().map(Sequence::account);
        for ((from, class), share) in accounts.zip(even_shares(spent, self.colliding.len())) {
            cell.stations[from].airtime.spend(class, AirtimeUse::Collision, share);
        }
        self.phase = Phase::Collision { until };
    }

    /// The last of the colliding PPDUs ended. Their senders time out, each from the end of its own PPDU; stations that
    /// received noise wait EIFS. If a round lasted longest, its users receive the trigger after it, and with capture also
    /// the MPDUs after the end of the other PPDUs.
    fn collision_ended(&mut self, cell: &mut Cell, until: Instant) {
        let mut colliding = std::mem::take(&mut self.colliding);
        let captured = if cell.rules.config.capture { captured(cell, &colliding) } else { None };
        let next_idle = self.sense.next_idle(cell, StationId::AP.first_function());
        let exchanges = || colliding.iter().filter_map(Sequence::exchange);
        let lost = || {
            let is_lost = |from| captured.is_none_or(|captured| captured.from != from);
            exchanges().filter(move |exchange| is_lost(exchange.from))
        };
        lost().for_each(|exchange| cell.record_collision(exchange));
        lost().for_each(|exchange| cell.fail_collided(exchange, next_idle));
        let others_end = exchanges().map(Exchange::alone_until).max();
        let clear_from = others_end.filter(|_| cell.rules.config.capture).unwrap_or(until);
        let mut round = match colliding.pop() {
            Some(Sequence::Round(round)) => Some(round),
            _ => None,
        };
        let deaf = |function| colliding.iter().any(|other| other.account().0 == function);
        let mut longest = round.as_mut().filter(|round| round.ends_at() == until);
        let survives = longest.as_mut().is_some_and(|round| round.survives(cell, clear_from, deaf));
        colliding.clear();
        self.colliding = colliding;
        match (captured, round) {
            (Some(exchange), _) => {
                self.on_air = Some(Sequence::Exchange(exchange));
                self.frame_ended(cell, exchange.end);
            }
            (None, Some(round)) if survives => {
                self.on_air = Some(Sequence::Round(round));
                self.frame_ended(cell, until);
            }
            (None, round) => {
                if let Some(mut round) = round {
                    round.record_collided(cell);
                    let timeout = cell.rules.ack_timeout(round.control_mode());
                    let noticed_at = round.alone_until(cell) + timeout;
                    round.fail(cell, noticed_at, next_idle);
                }
                let phy = cell.rules.phy;
                // All began together.
                let waits_eifs = cell.rules.config.eifs == Eifs::Overlapping;
                let wait = if waits_eifs { phy.eifs() } else { phy.aifs() };
                self.go_idle(cell, until, (until, wait));
            }
        }
    }

    fn start_beacon(&mut self, cell: &mut Cell, at: Instant) {
        cell.accounts.book_idle(self.sense.idle_use(), at);
        self.sense.become_busy(cell, at, StationId::AP);
        let until = cell.send_beacon(at);
        cell.charge(StationId::AP.first_function(), PayloadClass::Data, AirtimeUse::Beacon, until);
        self.phase = Phase::Beacon { until };
    }
}

/// The exchange among `colliding` that is on the air after all others have ended, unless its addressee was sending too.
/// From that time on its MPDUs are free of collision. `None` beside a round.
fn captured(cell: &Cell, colliding: &[Sequence]) -> Option<Exchange> {
    let exchanges = || colliding.iter().filter_map(Sequence::exchange);
    if exchanges().count() < colliding.len() {
        return None;
    }
    let longest = exchanges().max_by_key(|exchange| exchange.alone_until())?;
    let others = || exchanges().filter(|other| other.from != longest.from);
    let clear_from = others().map(Exchange::alone_until).max()?;
    let station_of = |function| cell.stations.station_of(function);
    let deaf = others().any(|other| station_of(other.from) == station_of(longest.to));
    // An RTS is a single frame, so it is lost if its beginning is.
    let whole = longest.handshake != Handshake::Rts;
    (whole && clear_from < longest.end && !deaf).then(|| longest.hidden_until(clear_from))
}
