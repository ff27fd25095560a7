//! Requests for unacknowledged data that did not arrive.

use tacit_packet::units::Instant;

use super::{Cell, earliest};
use crate::wifi::air::{Frame, Outcome};
use crate::wifi::mac::block_ack::Recipient;
use crate::wifi::mac::exchange::Exchange;

impl Cell {
    /// Lets recipients whose time has come at `at` send requests; those that start to contend for it are added to
    /// [`Cell::contending`].
    pub(super) fn request_repairs(&mut self, at: Instant) {
        for station in self.stations.iter_mut() {
            for peer in 0..station.peers.len() {
                let Recipient::Deferred(recipient) = &mut station.peers[peer].recipient else { continue };
                if recipient.due().is_some_and(|due| due <= at) {
                    let requests = recipient.begin_request(at);
                    station.counters.repair_given_up += recipient.take_given_up();
                    if requests {
                        station.peers[peer].originator.request_repair();
                        self.contending.extend(station.wants_turn(peer, at).then_some(station.id));
                    }
                }
                let Recipient::Deferred(recipient) = &station.peers[peer].recipient else { continue };
                self.reorder_check = earliest(self.reorder_check, recipient.due());
            }
        }
    }

    /// A request has ended: if it arrived, the missing data is sent next. Returns true if it arrived.
    pub(super) fn receive_repair_request(&mut self, exchange: &Exchange, peer: usize) -> bool {
        let [from, to] = self.stations.ends(exchange);
        let asker = &mut from.peers[peer];
        let (mode, away) = (asker.originator.control_mode, asker.is_away(exchange.start));
        let Recipient::Deferred(recipient) = &asker.recipient else {
            unreachable!("only a recipient without acknowledgments asks");
        };
        let (start, bitmap) = recipient.scoreboard();
        let noisy = asker.noise.as_mut().is_some_and(|noise| noise.takes_control(recipient.request_len()));
        let arrived = !noisy && !away;
        if arrived {
            let back = to.peer_index(exchange.from);
            if to.peers[back].originator.repair(exchange.end, recipient.wanted(), &mut self.holders) {
                self.contending.extend(to.wants_turn(back, exchange.end).then_some(to.id));
            }
        }
        let outcome = if arrived { Outcome::Received } else { Outcome::Errored };
        self.air.record(exchange, mode, outcome, Frame::BlockAck { start, bitmap, appended: Vec::new() });
        arrived
    }
}
