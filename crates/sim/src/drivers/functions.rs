//! The functions of a channel (a station has one for each access category), whose they are and who talks to whom: the
//! one place that does sums with their numbers.

use tacit_link::Payload;
use tacit_link::wifi::{Bss, StationId};

/// The functions of a channel, in the order of their numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Functions {
    /// Stations, the access point included.
    stations: u16,
    categories: u16,
}

impl Functions {
    pub fn of<P: Payload>(channel: &Bss<P>) -> Self {
        Self::with(channel.station_count(), channel.categories().len() as u16)
    }

    /// Those of so many stations, the access point included.
    pub fn with(stations: u16, categories: u16) -> Self {
        Self { stations, categories }
    }

    /// Of all stations.
    pub fn all(self) -> impl Iterator<Item = StationId> {
        (0..self.stations * self.categories).map(StationId)
    }

    /// The stations but the access point.
    pub fn clients(self) -> impl Iterator<Item = StationId> {
        (1..self.stations).map(StationId)
    }

    /// Those of `station`, one per category.
    pub fn of_station(self, station: StationId) -> impl Iterator<Item = StationId> {
        (station.0..self.stations * self.categories).step_by(usize::from(self.stations)).map(StationId)
    }

    /// Whose `function` is.
    pub fn station(self, function: StationId) -> StationId {
        StationId(function.0 % self.stations)
    }

    /// Whom `function` exchanges packets with.
    pub fn peers(self, function: StationId) -> Peers {
        let access_point = StationId(function.0 - function.0 % self.stations);
        if function == access_point {
            Peers::Clients { access_point, count: self.stations - 1 }
        } else {
            Peers::AccessPoint(access_point)
        }
    }
}

/// The functions of its category that a function exchanges packets with, numbered from 0 as its NIC numbers them.
#[derive(Clone, Copy, Debug)]
pub(super) enum Peers {
    /// A client's: the access point alone.
    AccessPoint(StationId),
    /// The access point's: all clients.
    Clients { access_point: StationId, count: u16 },
}

impl Peers {
    pub fn count(self) -> usize {
        match self {
            Self::AccessPoint(_) => 1,
            Self::Clients { count, .. } => usize::from(count),
        }
    }

    /// The number of `peer`.
    #[inline]
    pub fn index(self, peer: StationId) -> usize {
        match self {
            Self::AccessPoint(_) => 0,
            Self::Clients { access_point, .. } => usize::from(peer.0 - access_point.0) - 1,
        }
    }

    /// The peer with this number.
    #[inline]
    pub fn id(self, index: usize) -> StationId {
        match self {
            Self::AccessPoint(access_point) => access_point,
            Self::Clients { access_point, .. } => StationId(access_point.0 + index as u16 + 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_know_their_station_and_their_peers() {
        let functions = Functions::with(3, 2);
        assert_eq!(functions.all().count(), 6);
        assert_eq!(functions.of_station(StationId(1)).collect::<Vec<_>>(), [StationId(1), StationId(4)]);
        assert!(functions.of_station(StationId(2)).all(|id| functions.station(id) == StationId(2)));
        for function in functions.all() {
            let peers = functions.peers(function);
            let is_access_point = functions.station(function) == StationId::AP;
            assert_eq!(peers.count(), if is_access_point { 2 } else { 1 });
            for index in 0..peers.count() {
                let peer = peers.id(index);
                assert_eq!(peers.index(peer), index);
                assert_ne!(
                    functions.station(peer) == StationId::AP,
                    is_access_point,
                    "{function:?} {peer:?}"
                );
            }
        }
    }
}
