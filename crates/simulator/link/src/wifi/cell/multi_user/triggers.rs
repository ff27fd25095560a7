//! Which clients an access point triggers, and when (802.11ax-2021 clause 26.5.2); [`uplink`](super::uplink) sends the
//! trigger.

use tacit_packet::units::Instant;

use crate::packet::PayloadClass;
use crate::wifi::cell::Cell;
use crate::wifi::functions::FunctionId;
use crate::wifi::mac::exchange::Exchange;
use crate::wifi::mac::originator::Need;
use crate::wifi::mac::peer::Peer;
use crate::wifi::mac::plan::Outgoing;
use crate::wifi::mu_scheduler::{SchedulerHandle, UplinkClient};
use crate::wifi::ofdma::{MuAcknowledgment, OfdmaConfig, Triggers};
use crate::wifi::phy::{Format, Mode};

impl Cell {
    /// Units of a trigger for random access.
    pub(super) fn random_units(&self, ofdma: &OfdmaConfig) -> usize {
        usize::from(ofdma.random_access_units).min(self.rules.most_users)
    }

    /// Most clients that a trigger addresses individually.
    fn most_triggered(&self, ofdma: &OfdmaConfig) -> usize {
        self.rules.most_users - self.random_units(ofdma)
    }

    /// The slowest client of `id`, and its mode, among those whose PPDUs can be combined with that of `first`, if
    /// given.
    pub(super) fn slowest_client(&self, id: FunctionId, first: Option<usize>) -> Option<(usize, Mode)> {
        let all = first.into_iter().chain(0..self.stations[id].peers.len());
        let clients = self.sharing_a_trigger(id, all).map(|peer| (peer, self.uplink_mode(id, peer)));
        clients.min_by_key(|(_, mode)| mode.rate())
    }

    /// The mode of a client's HE TB PPDUs that try no rate: that of its single-user PPDUs, unless the access point finds one.
    pub(super) fn uplink_mode(&self, id: FunctionId, peer: usize) -> Mode {
        let entry = &self.stations[id].peers[peer];
        if let Some(rates) = &entry.triggered_rates {
            return rates.steady_mode();
        }
        let client = &self.stations[entry.id];
        client.peers[client.peer_index(id)].originator.steady_modes()[0]
    }

    /// The mode that `id` asks a client for in the trigger at `at`.
    pub(super) fn choose_uplink(&mut self, at: Instant, id: FunctionId, peer: usize) -> Mode {
        let client = &self.stations[self.stations[id].peers[peer].id];
        let retries = client.peers[client.peer_index(id)].originator.most_retries();
        match &mut self.stations[id].peers[peer].triggered_rates {
            Some(rates) => rates.choose(at, retries),
            None => self.uplink_mode(id, peer),
        }
    }

    /// Clients of `id` that send much at `at`.
    fn busy_clients(&self, at: Instant, id: FunctionId) -> usize {
        self.stations[id].peers.iter().filter(|peer| peer.uplink.is_busy(at)).count()
    }

    /// Whether data of `id` goes before its triggers at `at`, because no client has anything.
    fn data_precedes_trigger(&self, at: Instant, id: FunctionId, ofdma: &OfdmaConfig) -> bool {
        let station = &self.stations[id];
        ofdma.triggers == Triggers::Always
            && station.has_data()
            && station.peers.iter().all(|peer| {
                let reports_soon = peer.originator.need() == Need::Data;
                peer.uplink.has_nothing(at, reports_soon)
            })
    }

    /// The clients that `id` triggers at `at`, no more than there are units; in turns if all are triggered.
    pub(super) fn clients_to_trigger(
        &mut self,
        at: Instant,
        id: FunctionId,
        ofdma: &OfdmaConfig,
    ) -> Vec<usize> {
        if let Some(scheduler) = self.stations[id].mu_scheduler.clone() {
            return self.scheduled_clients(at, id, ofdma, &scheduler);
        }
        if self.data_precedes_trigger(at, id, ofdma) {
            return Vec::new();
        }
        let count = self.stations[id].peers.len();
        let first = self.stations[id].next_to_trigger;
        let busy = self.busy_clients(at, id);
        let wanted = |peer: &usize| self.stations[id].peers[*peer].uplink.is_wanted(ofdma.triggers, busy, at);
        let turns = (0..count).map(|peer| (first + peer) % count).filter(wanted);
        let chosen: Vec<usize> = self.sharing_a_trigger(id, turns).take(self.most_triggered(ofdma)).collect();
        self.stations[id].next_to_trigger = chosen.last().map_or(first, |last| (last + 1) % count);
        chosen
    }

    /// Those of `peers` whose responses may share a PPDU with that of the first one that sends HE PPDUs.
    fn sharing_a_trigger(
        &self,
        id: FunctionId,
        peers: impl Iterator<Item = usize>,
    ) -> impl Iterator<Item = usize> {
        let mut first = None;
        peers.filter(move |peer| {
            let mode = self.uplink_mode(id, *peer);
            let alike = (mode.width_mhz, mode.guard_interval);
            mode.format == Format::HeSu
                && self.stations[id].peers[*peer].answered
                && *first.get_or_insert(alike) == alike
        })
    }

    /// The clients that `scheduler` lets `id` trigger at `at`.
    fn scheduled_clients(
        &self,
        at: Instant,
        id: FunctionId,
        ofdma: &OfdmaConfig,
        scheduler: &SchedulerHandle,
    ) -> Vec<usize> {
        let peers: Vec<usize> = self.sharing_a_trigger(id, 0..self.stations[id].peers.len()).collect();
        let clients = peers.iter().map(|peer| {
            let Peer { id: client, uplink, .. } = &self.stations[id].peers[*peer];
            uplink.as_seen_at(at, self.stations.station_of(*client), self.uplink_mode(id, *peer).rate())
        });
        let clients: Vec<UplinkClient> = clients.collect();
        let chosen = scheduler.uplink(at, &clients, self.most_triggered(ofdma));
        chosen.into_iter().map(|position| peers[position]).collect()
    }

    /// A single-user PPDU was acknowledged, or not: that of a client brought its buffer status to the access point.
    pub fn note_single_user(&mut self, exchange: &Exchange) {
        let Some(ofdma) = self.rules.config.ofdma else { return };
        if self.stations[exchange.from].is_access_point() {
            self.note_downlink(exchange);
            self.contend_for_trigger(exchange.from, exchange.response_end, &ofdma);
            return;
        }
        if !self.stations[exchange.to].is_access_point() || exchange.is_no_ack() {
            // A direct link, or data that no client is triggered for.
            return;
        }
        let client = &self.stations[exchange.from];
        let originator = &client.peers[exchange.peer()].originator;
        let (left, mpdus) = (originator.buffer_status(), originator.plan().mpdus);
        let access_point = &mut self.stations[exchange.to];
        let peer = access_point.peer_index(exchange.from);
        access_point.peers[peer].uplink.received_single_user(exchange.end, mpdus, left);
        self.contend_for_trigger(exchange.to, exchange.response_end, &ofdma);
    }

    /// The access point's data was acknowledged or lost: TCP ACKs for it are expected.
    pub fn note_downlink(&mut self, exchange: &Exchange) {
        let mpdus = self.stations.originator(exchange).plan().mpdus;
        if matches!(exchange.outgoing, Outgoing::Data { class: PayloadClass::Data, .. }) {
            self.stations[exchange.from].peers[exchange.peer()].uplink.sent(mpdus);
        }
    }

    /// Lets the access point contend for a trigger if there are clients to trigger.
    pub(super) fn contend_for_trigger(&mut self, id: FunctionId, at: Instant, ofdma: &OfdmaConfig) {
        if self.stations[id].trigger_due || !self.has_clients_to_trigger(at, id, ofdma) {
            return;
        }
        let station = &self.stations[id];
        let contends = !station.has_traffic() && !station.transmitting;
        self.stations[id].trigger_due = true;
        self.contending.extend(contends.then_some(id));
    }

    /// Whether `id` has clients to trigger at `at`.
    fn has_clients_to_trigger(&self, at: Instant, id: FunctionId, ofdma: &OfdmaConfig) -> bool {
        let station = &self.stations[id];
        if let Some(scheduler) = &station.mu_scheduler {
            return !self.scheduled_clients(at, id, ofdma, scheduler).is_empty();
        }
        if ofdma.triggers == Triggers::RandomAccess {
            return ofdma.random_access_units > 0;
        }
        // The next PPDU of a cascade also triggers its users.
        let cascades = ofdma.acknowledgment == MuAcknowledgment::Cascade && station.has_data_for_several();
        let busy = self.busy_clients(at, id);
        let wanted = |peer: &Peer| {
            let asked_with_data = cascades && peer.originator.need() == Need::Data;
            peer.uplink.is_wanted(ofdma.triggers, busy, at) && !asked_with_data
        };
        station.peers.iter().any(wanted) && !self.data_precedes_trigger(at, id, ofdma)
    }
}
