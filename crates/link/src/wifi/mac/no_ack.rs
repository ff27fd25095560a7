//! Data that nobody acknowledges.

use super::exchange::Exchange;
use crate::payload::Payload;
use crate::wifi::bss::Bss;
use crate::wifi::config::LinkAcks;

impl<P: Payload> Bss<P> {
    /// Whether `exchange` ends with its PPDU.
    #[inline]
    pub(super) fn is_unanswered(&self) -> bool {
        self.config.link_acks == LinkAcks::None
    }

    /// The PPDU is over, and its sender has nothing to wait for: whatever became of it, it is done with, and the window
    /// is that of a success (802.11-2020 clause 10.3.2.14: nothing tells of a failure).
    pub(super) fn settle_unanswered(&mut self, exchange: &Exchange) {
        let peer = exchange.outgoing.peer();
        let station = &mut self.stations[exchange.from.index()];
        station.counters.unacknowledged += u64::from(station.peers[peer].originator.acknowledged().first_try);
        station.contention.succeeded();
        station.finish(peer);
    }
}
