//! Carrier sense and contention: which functions count down, and which of them win an access.
//!
//! Each station has its own view of the medium. Where every station hears every other, all have one view in common.

use tacit_packet::units::Instant;

use crate::wifi::air::StationId;
use crate::wifi::airtime::AirtimeUse;
use crate::wifi::cell::{Cell, Sequence, earliest};
use crate::wifi::functions::FunctionId;
use crate::wifi::mac::access::{AWAY, IdlePeriod};
use crate::wifi::phy::Phy;

/// The medium as a station perceives it.
#[derive(Clone, Copy, Debug)]
struct View {
    busy: bool,
    idle: IdlePeriod,
    /// Until when it is reserved (NAV) for stations that took no part in the last exchange.
    reserved_until: Instant,
    /// Since when it is idle and not reserved for those that took part in it.
    free_from: Instant,
}

/// The views of all stations.
#[derive(Clone, Debug)]
enum Views {
    /// Every station hears every other.
    Common(View),
    /// In the order of the stations.
    Own(Vec<View>),
}

/// The stations' views of the medium, and the functions that contend for it.
#[derive(Clone, Debug)]
pub(super) struct CarrierSense {
    views: Views,
    /// Functions that contend or count down.
    active: Vec<FunctionId>,
    /// Time of the next transmission, while the medium is idle.
    next_access: Option<Instant>,
    /// Functions whose backoff ended at the same time as that of a more urgent function of their station.
    yielding: Vec<FunctionId>,
    /// Kept to reuse the allocation.
    pub winners: Vec<Sequence>,
}

impl CarrierSense {
    /// An idle medium, with a view for each of `stations` or one for all.
    pub fn new(phy: &Phy, stations: Option<usize>) -> Self {
        let [reserved_until, free_from] = [Instant::ZERO; 2];
        let view = View { busy: false, idle: IdlePeriod::first(phy), reserved_until, free_from };
        Self {
            views: stations.map_or(Views::Common(view), |stations| Views::Own(vec![view; stations])),
            active: Vec::new(),
            next_access: None,
            yielding: Vec::new(),
            winners: Vec::new(),
        }
    }

    /// Time of the next transmission, while the medium is idle.
    pub fn next_access(&self) -> Option<Instant> {
        self.next_access
    }

    /// Whether the medium is busy for `station`.
    pub fn is_busy(&self, station: StationId) -> bool {
        self.views.get(station).busy
    }

    /// Number of the next idle period of `function`.
    pub fn next_idle(&self, cell: &Cell, function: FunctionId) -> u64 {
        self.views.of(cell, function).idle.number + 1
    }

    /// When the next beacon can be sent, if the medium is idle for the access point.
    pub fn beacon_at(&self, cell: &Cell) -> Option<Instant> {
        let free_from = self.views.get(StationId::AP).free_from;
        cell.next_beacon.map(|target| target.max(free_from + cell.rules.phy.pifs()))
    }

    /// When the backoff of `function` ends if the medium stays idle; `None` if it is busy.
    pub fn ready_at(&self, cell: &Cell, function: FunctionId) -> Option<Instant> {
        let View { busy, idle, .. } = self.views.of(cell, function);
        let ends_at = || cell.stations[function].contention.transmits_at(idle, cell.rules.phy.slot);
        (!busy).then(ends_at)
    }

    /// The radio of `function` leaves the link at `now`: its backoff stands still until it is back.
    pub fn sense_nothing(&self, cell: &mut Cell, now: Instant, function: FunctionId) {
        let view = self.views.of(cell, function);
        let contention = &mut cell.stations[function].contention;
        if !view.busy {
            contention.stand_still(&view.idle, now, cell.rules.phy);
        }
        contention.sense_from(AWAY);
    }

    /// The use to which idle time is charged: `Acquisition` if a station waits, `Idle` if none does.
    pub fn idle_use(&self) -> AirtimeUse {
        if self.next_access.is_some() { AirtimeUse::Acquisition } else { AirtimeUse::Idle }
    }

    /// The use to which idle time would be charged if `newcomer` had no traffic.
    pub fn idle_use_without(&self, cell: &Cell, newcomer: Option<FunctionId>) -> AirtimeUse {
        let waits = |id: &FunctionId| Some(*id) != newcomer && cell.stations[*id].has_traffic();
        if self.active.iter().any(waits) { AirtimeUse::Acquisition } else { AirtimeUse::Idle }
    }

    // --- Contention -------------------------------------------------------------------------

    /// A function that had no traffic now has some.
    pub fn start_contending(&mut self, cell: &mut Cell, now: Instant, id: FunctionId) {
        let View { busy, idle, reserved_until, free_from } = *self.views.of(cell, id);
        let slot = cell.rules.phy.slot;
        let station = &mut cell.stations[id];
        // A NAV makes the medium busy even if no frame is on it (802.11-2020 clauses 10.3.2.1 and 10.3.4.2).
        let takes_part = station.contention.failed_before(idle.number);
        let mut is_reserved = now < if takes_part { free_from } else { reserved_until };
        if cell.rules.multi_link.is_some() && now < station.contention.senses_from() {
            is_reserved = true;
            station.contention.renew_if_over(station.active);
        }
        if station.start_contending(&idle, slot, now, busy || is_reserved) {
            self.active.push(id);
        }
        if !busy {
            let at = station.contention.transmits_at(&idle, slot);
            self.next_access = earliest(self.next_access, Some(at));
        }
    }

    /// Functions that want the medium without a packet from the host draw their backoff while it is busy.
    pub fn begin_contending(&mut self, cell: &mut Cell, at: Instant) {
        while cell.rules.has_triggers
            && let Some(function) = cell.contending.pop()
        {
            self.start_contending(cell, at, function);
        }
    }

    /// Finds the time of the next transmission.
    pub fn find_next_access(&mut self, cell: &Cell) {
        self.yielding.clear();
        let times = self.active.iter().map(|id| self.views.transmits_at(cell, *id));
        self.next_access = times.fold(None, earliest);
    }

    /// The functions whose backoff ended at `at` win an access, of each station only those of the most urgent category.
    /// Returns the sequences with which they begin, which are charged for the wait.
    pub fn access(&mut self, cell: &mut Cell, at: Instant) -> Vec<Sequence> {
        if cell.rules.config.categories.len() > 1 {
            self.find_yielding(cell, at);
        }
        let Self { views, active, yielding, winners, .. } = self;
        active.retain(|id| {
            if views.transmits_at(cell, *id).is_none_or(|when| when > at) {
                return true;
            }
            if yielding.contains(id) {
                cell.stations[*id].yield_access(cell.rules.config.short_retry_limit);
                return true;
            }
            if let Some(sequence) = cell.begin_access(at, *id) {
                winners.push(sequence);
            }
            cell.stations[*id].active
        });
        // Where time does not divide evenly, the remainder is not that of a round.
        winners.sort_by_key(|winner| matches!(winner, Sequence::Round(_)));
        cell.accounts.charge_wait(&mut cell.stations, winners.iter().map(Sequence::account));
        std::mem::take(winners)
    }

    /// Finds the functions that yield at `at` to a more urgent one of the same station.
    fn find_yielding(&mut self, cell: &Cell, at: Instant) {
        let Self { views, active, yielding, .. } = self;
        let stations = &cell.stations;
        let due = |id: &&FunctionId| views.transmits_at(cell, **id).is_some_and(|when| when <= at);
        let beaten = |id: &&FunctionId| {
            active.iter().filter(due).any(|other| {
                stations.station_of(*other) == stations.station_of(**id)
                    && stations[*other].category > stations[**id].category
            })
        };
        yielding.clear();
        yielding.extend(active.iter().filter(due).filter(beaten));
    }

    // --- Busy and idle ----------------------------------------------------------------------

    /// The medium becomes busy at `at` for `station`, or for all with a common view: functions that do not send stop
    /// counting. One without traffic and without slots left must draw a backoff if a packet comes while the medium is busy
    /// (802.11-2020 clauses 10.3.4.2 and 10.23.2.2).
    pub fn become_busy(&mut self, cell: &mut Cell, at: Instant, station: StationId) {
        let Self { views, active, yielding, .. } = self;
        let is_common = matches!(views, Views::Common(_));
        let view = views.get_mut(station);
        view.busy = true;
        active.retain(|id| {
            if !is_common && cell.stations.station_of(*id) != station {
                return true;
            }
            let function = &mut cell.stations[*id];
            if !function.transmitting && !yielding.contains(id) {
                function.freeze(&view.idle, at, cell.rules.phy);
            }
            function.active
        });
    }

    /// The medium becomes idle for `station`, or for all with a common view. It is free from `free_from` on for those that
    /// took part in the last exchange; the others count down from `countdown_from` on.
    pub fn become_idle(
        &mut self,
        cell: &Cell,
        station: StationId,
        (reserved_until, free_from, countdown_from): (Instant, Instant, Instant),
    ) {
        let exempt_countdown_from = free_from + cell.rules.phy.aifs();
        let view = self.views.get_mut(station);
        let number = view.idle.number + 1;
        let idle = IdlePeriod { number, countdown_from, exempt_countdown_from };
        *view = View { busy: false, idle, reserved_until, free_from };
    }
}

impl Views {
    fn get(&self, station: StationId) -> &View {
        match self {
            Self::Common(view) => view,
            Self::Own(views) => &views[station.index()],
        }
    }

    fn get_mut(&mut self, station: StationId) -> &mut View {
        match self {
            Self::Common(view) => view,
            Self::Own(views) => &mut views[station.index()],
        }
    }

    fn of(&self, cell: &Cell, function: FunctionId) -> &View {
        match self {
            Self::Common(view) => view,
            Self::Own(views) => &views[cell.stations.station_of(function).index()],
        }
    }

    /// When `function` transmits, if it has traffic and the medium is idle for it.
    // Called for each active function at each access: left to the compiler, a run with single packets costs 1 % more.
    #[inline(always)]
    fn transmits_at(&self, cell: &Cell, function: FunctionId) -> Option<Instant> {
        let station = &cell.stations[function];
        if !station.has_traffic() {
            return None;
        }
        let view = self.of(cell, function);
        (!view.busy).then(|| station.contention.transmits_at(&view.idle, cell.rules.phy.slot))
    }
}
