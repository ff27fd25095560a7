//! What holds at any time, between two events.

use super::air::StationId;
use super::bss::Bss;
use super::mac::exchange::Phase;
use super::mac::station::Station;
use crate::payload::Payload;

impl<P: Payload> Bss<P> {
    /// Verifies that no packet was made or lost, and that whatever waits will have its turn.
    ///
    /// # Errors
    /// Which station breaks what.
    pub fn check(&self) -> Result<(), String> {
        let each = |station: &Station<P>| {
            self.check_books(station)?;
            self.check_turn(station)
        };
        self.stations.iter().try_for_each(each)?;
        let due = match &self.hearing {
            Some(hearing) => hearing.next.is_some(),
            None => !matches!(self.phase, Phase::Idle) || self.next_access.is_some(),
        };
        match self.stations.iter().find(|station| station.has_traffic()) {
            Some(station) if !due => {
                Err(format!("station {} has something to send, and nothing is due", station.id.0))
            }
            _ => Ok(()),
        }
    }

    fn check_books(&self, station: &Station<P>) -> Result<(), String> {
        let counters = &station.counters;
        let settled = counters.delivered_first_try
            + counters.delivered_after_retry
            + counters.unacknowledged
            + counters.dropped_mpdus
            + counters.discarded_by_queue
            + counters.retracted
            + counters.filtered_acks;
        let held = station.backlog() as u64;
        if counters.accepted == settled + held {
            return Ok(());
        }
        Err(format!(
            "station {} took {} packets, settled {settled} and holds {held}",
            station.id.0, counters.accepted
        ))
    }

    /// Whether the exchange on the air is of `station`, be it in the TXOP of another.
    fn is_sending(&self, station: StationId) -> bool {
        if let Some(hearing) = &self.hearing {
            return hearing.engages(station);
        }
        match &self.phase {
            Phase::Protection { exchange, .. }
            | Phase::Transmission(exchange)
            | Phase::Response { exchange, .. } => exchange.from == station,
            Phase::Idle | Phase::Collision { .. } | Phase::Broadcast { .. } => false,
        }
    }

    /// A station that holds packets contends for each destination they are for, or is sending: nothing it could
    /// have slept through will wake it.
    fn check_turn(&self, station: &Station<P>) -> Result<(), String> {
        if station.transmitting || self.is_sending(station.id) {
            return Ok(());
        }
        let id = station.id.0;
        if let Some(peer) = station.idle_peer_with_packets() {
            return Err(format!("station {id} holds packets for {} and does not send them", peer.0));
        }
        if station.has_traffic() && !station.active {
            return Err(format!("station {id} has something to send and does not contend"));
        }
        Ok(())
    }
}
