//! The stations of a channel, and how their functions are numbered.

use std::ops::{Index, IndexMut};

use super::exchange::Exchange;
use crate::wifi::air::StationId;
use crate::wifi::mac::originator::Originator;
use crate::wifi::mac::station::{Peer, Station};
use crate::wifi::phy::Mode;

/// What each station has for each access category, one category after the other, so that in the first a function
/// has the number of its station.
#[derive(Clone, Debug)]
pub(crate) struct Stations<P> {
    functions: Vec<Station<P>>,
    /// Stations, the access point included.
    count: u16,
}

impl<P> Stations<P> {
    /// `functions` of `count` stations.
    pub fn new(functions: Vec<Station<P>>, count: u16) -> Self {
        Self { functions, count }
    }

    /// Stations, the access point included.
    #[inline]
    pub fn count(&self) -> u16 {
        self.count
    }

    /// What `station` has for the category in `place` among those in use.
    pub fn function(&self, station: StationId, place: usize) -> StationId {
        StationId(station.0 + place as u16 * self.count)
    }

    /// The station that `function` belongs to.
    #[inline]
    pub fn station_of(&self, function: StationId) -> StationId {
        // Spares a division where there is one category.
        if function.0 < self.count { function } else { StationId(function.0 % self.count) }
    }

    /// What `station` has for each category.
    pub fn of(&self, station: StationId) -> impl Iterator<Item = &Station<P>> {
        self.functions[self.station_of(station).index()..].iter().step_by(usize::from(self.count))
    }

    /// Does something with what `station` has for each category.
    pub fn for_each_of(&mut self, station: StationId, each: impl FnMut(&mut Station<P>)) {
        let first = self.station_of(station).index();
        self.functions[first..].iter_mut().step_by(usize::from(self.count)).for_each(each);
    }

    /// All functions.
    pub fn iter(&self) -> impl Iterator<Item = &Station<P>> {
        self.functions.iter()
    }

    /// All functions.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Station<P>> {
        self.functions.iter_mut()
    }

    /// The functions at both ends of an exchange: who began it and who answers.
    pub fn ends(&mut self, exchange: &Exchange) -> [&mut Station<P>; 2] {
        self.functions
            .get_disjoint_mut([exchange.from.index(), exchange.to.index()])
            .expect("an exchange has two ends, both in the set")
    }

    /// The addressee of an exchange as who began it sees it.
    #[inline]
    pub fn peer(&self, exchange: &Exchange) -> &Peer<P> {
        &self[exchange.from].peers[exchange.peer()]
    }

    /// Where what is sent in an exchange comes from.
    #[inline]
    pub fn originator(&self, exchange: &Exchange) -> &Originator<P> {
        &self.peer(exchange).originator
    }

    /// The mode of responses in an exchange.
    #[inline]
    pub fn control_mode(&self, exchange: &Exchange) -> &Mode {
        &self.originator(exchange).control_mode
    }
}

impl<P> Index<StationId> for Stations<P> {
    type Output = Station<P>;

    #[inline]
    fn index(&self, function: StationId) -> &Station<P> {
        &self.functions[function.index()]
    }
}

impl<P> IndexMut<StationId> for Stations<P> {
    #[inline]
    fn index_mut(&mut self, function: StationId) -> &mut Station<P> {
        &mut self.functions[function.index()]
    }
}
