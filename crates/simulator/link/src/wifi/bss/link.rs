//! A link of a basic service set, which contends alone.

use tacit_packet::units::Instant;

use crate::wifi::cell::{Cell, earliest};
use crate::wifi::functions::FunctionId;
use crate::wifi::mac::block_ack::Recipient;
use crate::wifi::mac::rules::Rules;
use crate::wifi::mac::station::Following;
use crate::wifi::medium::Medium;

/// A channel: its stations and its medium.
#[derive(Clone, Debug)]
pub(super) struct Link {
    pub cell: Cell,
    pub medium: Medium,
}

impl Link {
    pub fn new(
        rules: Rules,
        seed: u64,
        name: &str,
        station_names: &[&str],
        measure: (Instant, Instant),
    ) -> Self {
        let cell = Cell::new(rules, seed, name, station_names, measure);
        Self { medium: Medium::new(&cell.rules), cell }
    }

    /// When its state changes next.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Instant> {
        earliest(self.medium.poll_timeout(&self.cell), self.cell.reorder_check)
    }

    /// Processes the event at `at`.
    pub fn step(&mut self, at: Instant) {
        if self.cell.reorder_check.is_some_and(|check| check <= at) {
            self.cell.give_up_gaps(at);
        } else {
            self.medium.step(&mut self.cell, at);
        }
        while let Some(function) = self.cell.contending.pop() {
            self.medium.start_contending(&mut self.cell, at, function);
        }
    }

    /// The queues and windows of `function` were used until `at`. They are those of `holder`, or its own. Returns true if the
    /// function begins to contend here.
    pub fn follow(&mut self, holder: Option<&Cell>, function: FunctionId, at: Instant) -> bool {
        let there = holder.map(|holder| &holder.stations[function]);
        let station = &mut self.cell.stations[function];
        for (peer, there) in station.peers.iter_mut().zip(there.iter().flat_map(|there| &there.peers)) {
            if let (Recipient::Block(recipient), Recipient::Block(there)) =
                (&mut peer.recipient, &there.recipient)
            {
                recipient.keep_up(there.next());
            }
        }
        match station.follow(there, at) {
            None => false,
            Some(Following::Stops) => {
                self.medium.stop_contending(&mut self.cell, at);
                false
            }
            Some(Following::Contends) => {
                self.medium.start_contending(&mut self.cell, at, function);
                true
            }
        }
    }
}
