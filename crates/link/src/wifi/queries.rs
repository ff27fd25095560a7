//! What a basic service set has to say about itself.

use hdrhistogram::Histogram;
use tacit_proto::units::{Duration, Instant};

use super::air::StationId;
use super::airtime::{Airtime, StationAirtime};
use super::bss::Bss;
use super::category::AccessCategory;
use super::counters::StationCounters;
use super::mac::block_ack::WINDOW;
use crate::payload::Payload;

impl<P: Payload> Bss<P> {
    /// Where the time went, of the part of the measured window before `now`.
    pub fn airtime(&self, now: Instant) -> Airtime {
        let mut ledger = self.ledger.clone();
        ledger.book(self.idle_use(), now);
        ledger.airtime()
    }

    /// Until when [`Bss::airtime`] knows what the channel does: the end of what is on the air, at `now`
    /// at the earliest.
    pub fn airtime_until(&self, now: Instant) -> Instant {
        self.ledger.booked_until().max(now)
    }

    /// What `station` spent of that time.
    pub fn station_airtime(&self, station: StationId) -> StationAirtime {
        let each = self.functions(station).map(|function| function.airtime);
        each.reduce(|sum, more| sum.plus(&more)).unwrap_or_default()
    }

    /// Channel accesses, collided ones counted once.
    pub fn accesses(&self) -> u64 {
        self.accesses
    }

    /// Accesses of two stations or more at once.
    pub fn collisions(&self) -> u64 {
        self.collisions
    }

    /// Counters of a station.
    pub fn counters(&self, station: StationId) -> StationCounters {
        let each = self.functions(station).map(|function| function.counters);
        each.reduce(|sum, more| sum.plus(&more)).unwrap_or_default()
    }

    /// Counters of a station in one category; of the first in use where `category` is not.
    pub fn counters_in(&self, station: StationId, category: AccessCategory) -> StationCounters {
        self.stations[self.function(station, category).index()].counters
    }

    /// Time from queueing to first transmission at a station, in microseconds.
    pub fn queueing_delay_us(&self, station: StationId) -> Histogram<u64> {
        let mut all = Histogram::new(2).expect("2 digits are within what the library allows");
        for function in self.functions(station) {
            all.add(&function.queueing_delay_us).expect("the histogram grows as needed");
        }
        all
    }

    /// Sum of the times from queueing to first transmission at a station: over a window, by Little's law,
    /// the mean number of packets in its queues.
    pub fn queueing_time(&self, station: StationId) -> Duration {
        self.functions(station).map(|function| function.queueing_time).sum()
    }

    /// Most packets that waited at once in one queue of a station.
    pub fn queue_peak(&self, station: StationId) -> usize {
        let peers = self.functions(station).flat_map(|function| &function.peers);
        peers.map(|peer| peer.originator.queue().peak()).max().unwrap_or(0)
    }

    /// Packets that the queues of a station marked instead of dropping them, since the start.
    pub fn queue_marks(&self, station: StationId) -> u64 {
        let peers = self.functions(station).flat_map(|function| &function.peers);
        peers.map(|peer| peer.originator.queue().marks()).sum()
    }

    /// PPDUs of data that a station sent, by the number of their MPDUs: entry 0 counts those of one.
    pub fn ppdu_sizes(&self, station: StationId) -> Vec<u64> {
        let mut sizes = vec![0; usize::from(WINDOW)];
        for function in self.functions(station) {
            sizes.iter_mut().zip(&function.ppdu_sizes).for_each(|(sum, more)| *sum += more);
        }
        sizes
    }
}
