//! The stations of a channel, by function.

use std::ops::{Index, IndexMut};

use crate::wifi::air::StationId;
use crate::wifi::functions::{FunctionId, Functions};
use crate::wifi::mac::exchange::Exchange;
use crate::wifi::mac::originator::Originator;
use crate::wifi::mac::peer::Peer;
use crate::wifi::mac::station::Station;
use crate::wifi::phy::Mode;

/// The functions of all stations, one per access category.
#[derive(Clone, Debug)]
pub(crate) struct Stations {
    /// In the order of `numbers`.
    functions: Vec<Station>,
    numbers: Functions,
}

impl Stations {
    /// Creates each function with `make`.
    pub fn new(numbers: Functions, make: impl FnMut(FunctionId) -> Station) -> Self {
        Self { functions: numbers.all().map(make).collect(), numbers }
    }

    /// How the functions are numbered.
    pub fn numbers(&self) -> Functions {
        self.numbers
    }

    /// The station that `function` belongs to.
    pub fn station_of(&self, function: FunctionId) -> StationId {
        self.numbers.station(function)
    }

    /// The functions of `station`, one for each category.
    pub fn functions_of(&self, station: StationId) -> impl Iterator<Item = &Station> {
        self.numbers.of_station(station).map(|function| &self[function])
    }

    /// Calls `each` for every function of `station`.
    pub fn for_each_of(&mut self, station: StationId, mut each: impl FnMut(&mut Station)) {
        self.numbers.of_station(station).for_each(|function| each(&mut self[function]));
    }

    /// All functions.
    pub fn iter(&self) -> impl Iterator<Item = &Station> {
        self.functions.iter()
    }

    /// All functions.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Station> {
        self.functions.iter_mut()
    }

    /// The functions at both ends of an exchange: initiator and responder.
    pub fn ends(&mut self, exchange: &Exchange) -> [&mut Station; 2] {
        self.functions
            .get_disjoint_mut([exchange.from.index(), exchange.to.index()])
            .expect("an exchange has two ends, both in the set")
    }

    /// The receiver of an exchange, in the initiator's records.
    pub fn peer(&self, exchange: &Exchange) -> &Peer {
        &self[exchange.from].peers[exchange.peer()]
    }

    /// The originator of an exchange's MPDUs.
    pub fn originator(&self, exchange: &Exchange) -> &Originator {
        &self.peer(exchange).originator
    }

    /// The mode of responses in an exchange.
    pub fn control_mode(&self, exchange: &Exchange) -> &Mode {
        &self.originator(exchange).control_mode
    }
}

impl Index<FunctionId> for Stations {
    type Output = Station;

    fn index(&self, function: FunctionId) -> &Station {
        &self.functions[function.index()]
    }
}

impl IndexMut<FunctionId> for Stations {
    fn index_mut(&mut self, function: FunctionId) -> &mut Station {
        &mut self.functions[function.index()]
    }
}
