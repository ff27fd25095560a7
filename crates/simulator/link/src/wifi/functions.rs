//! The functions of a channel. A station has one for each access category in use, and each contends independently. Only
//! this module decides the number of a function, its station and its peers.

use super::air::StationId;
use super::config::DirectLink;

/// A station's enhanced distributed channel access function (EDCAF, 802.11-2020 clause 10.23.2.1) for one access
/// category. It has its own backoff and queues, and contends with the other functions of its station as with those of
/// other stations. [`Bss::function`](super::Bss::function) returns the function of a station and a category.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionId(u16);

impl FunctionId {
    /// Index into tables of the functions of a channel.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl StationId {
    /// The station's function for the first category in use, which is the only one by default.
    pub const fn first_function(self) -> FunctionId {
        FunctionId(self.0)
    }
}

/// The functions of a channel, in this order: those of the first category by station, starting with the access point,
/// then those of the next category. A function of the first category, which is the only one by default, therefore has
/// the number of its station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Functions {
    stations: u16,
    categories: u16,
}

impl Functions {
    /// The functions of `stations`, including the access point, with `categories` each.
    pub const fn new(stations: u16, categories: u16) -> Self {
        Self { stations, categories }
    }

    /// All functions, in the order of their indices.
    pub fn all(self) -> impl Iterator<Item = FunctionId> {
        (0..self.stations * self.categories).map(FunctionId)
    }

    /// The function of `station` for the category in `place` among those in use.
    pub const fn function(self, station: StationId, place: usize) -> FunctionId {
        FunctionId(station.0 + place as u16 * self.stations)
    }

    /// The functions of `station`, one for each category.
    pub fn of_station(self, station: StationId) -> impl Iterator<Item = FunctionId> {
        (station.0..self.stations * self.categories).step_by(usize::from(self.stations)).map(FunctionId)
    }

    /// The station that `function` belongs to.
    pub const fn station(self, function: FunctionId) -> StationId {
        // This avoids a division if there is one category.
        StationId(if function.0 < self.stations { function.0 } else { function.0 % self.stations })
    }

    /// Index of the category of `function` among those in use.
    pub const fn place(self, function: FunctionId) -> usize {
        (function.0 / self.stations) as usize
    }

    /// The peers of `function` if the channel has the links `direct`.
    pub fn peers(self, function: FunctionId, direct: &[DirectLink]) -> Peers {
        let station = self.station(function);
        let access_point = FunctionId(function.0 - station.0);
        if station == StationId::AP {
            return Peers::Clients { access_point, count: self.stations - 1 };
        }
        let clients: Vec<_> = DirectLink::from_station(direct, station)
            .map(|link| self.function(link.to, self.place(function)))
            .collect();
        if clients.is_empty() {
            return Peers::AccessPoint(access_point);
        }
        Peers::Linked([access_point].into_iter().chain(clients).collect())
    }
}

/// The functions with which a function exchanges packets, all of its own category. The function numbers them from 0, as
/// do its queues and its NIC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peers {
    /// Of a client: only the access point's function.
    AccessPoint(FunctionId),
    /// Of the access point: those of all clients, in their order.
    Clients {
        /// The access point's function.
        access_point: FunctionId,
        /// Number of clients.
        count: u16,
    },
    /// Of a client with direct links: the access point's function, then those of the clients at the other ends.
    Linked(Box<[FunctionId]>),
}

impl Peers {
    /// Number of peers.
    pub fn count(&self) -> usize {
        match self {
            Self::AccessPoint(_) => 1,
            Self::Clients { count, .. } => usize::from(*count),
            Self::Linked(peers) => peers.len(),
        }
    }

    /// True when `function` is one of them.
    pub fn contains(&self, function: FunctionId) -> bool {
        match self {
            Self::AccessPoint(access_point) => function == *access_point,
            Self::Clients { access_point, count } => {
                (access_point.0 + 1..=access_point.0 + count).contains(&function.0)
            }
            Self::Linked(peers) => place(peers, function).is_some(),
        }
    }

    /// The number of `peer`, which must be in the list.
    pub fn index(&self, peer: FunctionId) -> usize {
        match self {
            Self::AccessPoint(_) => 0,
            Self::Clients { access_point, .. } => usize::from(peer.0 - access_point.0) - 1,
            Self::Linked(peers) => place(peers, peer).unwrap_or(0),
        }
    }

    /// The peer with this number.
    pub fn id(&self, index: usize) -> FunctionId {
        match self {
            Self::AccessPoint(access_point) => *access_point,
            Self::Clients { access_point, .. } => FunctionId(access_point.0 + index as u16 + 1),
            Self::Linked(peers) => peers[index],
        }
    }

    /// All peers, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = FunctionId> + '_ {
        (0..self.count()).map(|index| self.id(index))
    }
}

/// Position of `function` in `peers`, which is short.
#[cold]
fn place(peers: &[FunctionId], function: FunctionId) -> Option<usize> {
    peers.iter().position(|known| *known == function)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_know_their_station_and_their_peers() {
        let functions = Functions::new(3, 2);
        assert_eq!(functions.all().map(FunctionId::index).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
        for station in (0..3).map(StationId) {
            let members: Vec<_> = functions.of_station(station).collect();
            assert_eq!(members, [functions.function(station, 0), functions.function(station, 1)]);
            assert!(members.iter().all(|id| functions.station(*id) == station));
            assert_eq!(members[0].index(), station.index(), "the first has the number of its station");
        }
    }

    #[test]
    fn peers_are_numbered_and_of_the_same_category() {
        let functions = Functions::new(3, 2);
        for place in 0..2 {
            for station in (0..3).map(StationId) {
                let peers = functions.peers(functions.function(station, place), &[]);
                let expected: &[u16] = if station == StationId::AP { &[1, 2] } else { &[0] };
                let expected: Vec<_> =
                    expected.iter().map(|peer| functions.function(StationId(*peer), place)).collect();
                assert_eq!(peers.iter().collect::<Vec<_>>(), expected);
                assert!(peers.iter().enumerate().all(|(index, peer)| peers.index(peer) == index));
                let contained: Vec<_> = functions.all().filter(|id| peers.contains(*id)).collect();
                assert_eq!(contained, expected);
            }
        }
    }
    #[test]
    fn ends_of_direct_links_are_peers_behind_the_access_point() {
        use crate::wifi::config::StationConfig;
        use crate::wifi::phy::{Mode, Standard};

        let functions = Functions::new(4, 2);
        let link = StationConfig::new(Mode::all(Standard::N)[0]);
        let direct: Vec<_> = [(1, 3), (3, 1), (3, 2), (2, 3)]
            .map(|(from, to)| DirectLink { from: StationId(from), to: StationId(to), link: link.clone() })
            .into();
        for place in 0..2 {
            let expected = |stations: &[u16]| -> Vec<_> {
                stations.iter().map(|station| functions.function(StationId(*station), place)).collect()
            };
            for (station, peers) in [(0, &[1, 2, 3][..]), (1, &[0, 3]), (2, &[0, 3]), (3, &[0, 1, 2])] {
                let peers_of = functions.peers(functions.function(StationId(station), place), &direct);
                assert_eq!(peers_of.iter().collect::<Vec<_>>(), expected(peers), "of {station}");
                assert!(peers_of.iter().enumerate().all(|(index, peer)| peers_of.index(peer) == index));
                let contained: Vec<_> = functions.all().filter(|id| peers_of.contains(*id)).collect();
                assert_eq!(contained.len(), peers.len());
            }
        }
    }
}
