//! Routing: shortest paths, computed once.

use std::collections::VecDeque;

use tacit_link::wifi::{FunctionId, StationId};
use tacit_packet::units::HostId;

use crate::RunError;
use crate::setup::Setup;

/// The output of a host for a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Port {
    /// A pipe.
    Pipe(u32),
    /// A channel.
    Wifi {
        /// Its number.
        bss: u16,
        /// The sending function.
        from: FunctionId,
        /// The receiving function.
        to: FunctionId,
    },
}

/// Next hops between all pairs of hosts. Most hosts have a single port, which needs one entry, so the size grows with
/// the number of hosts, not of pairs.
#[derive(Debug)]
pub(crate) struct Topology {
    ways: Vec<Ways>,
    /// Connected hosts have the same number.
    islands: Vec<u32>,
}

/// Ports of a host.
#[derive(Clone, Debug)]
enum Ways {
    /// One port to every reachable host; `None` for a host without a port.
    One(Option<Port>),
    /// Port by destination.
    Each(Vec<Option<Port>>),
}

impl Topology {
    /// Fewest hops; among equal paths, links in the order of the setup.
    ///
    /// # Errors
    /// If a link refers to a host that does not exist, or there are too many channels to number.
    pub fn new(setup: &Setup) -> Result<Self, RunError> {
        let hosts = setup.hosts.len();
        let mut neighbours: Vec<Vec<(HostId, Port)>> = vec![Vec::new(); hosts];
        let mut connect = |from: HostId, to: HostId, port: Port| {
            let known = |host: HostId| (host.0 as usize) < hosts;
            if !known(from) || !known(to) {
                return Err(RunError::Setup(format!(
                    "a link joins {from} and {to}, but there are {hosts} hosts"
                )));
            }
            neighbours[from.0 as usize].push((to, port));
            Ok(())
        };
        for (link, number) in setup.wired.iter().zip(0_u32..) {
            connect(link.a, link.b, Port::Pipe(2 * number))?;
            connect(link.b, link.a, Port::Pipe(2 * number + 1))?;
        }
        for (index, bss) in setup.bss.iter().enumerate() {
            let too_many = |_| RunError::Setup(format!("there are {} channels", setup.bss.len()));
            let number = u16::try_from(index).map_err(too_many)?;
            for (client, station) in bss.clients.iter().zip(1..) {
                let [ap, sta] = [StationId::AP, StationId(station)].map(StationId::first_function);
                let (access_point, client) = (bss.access_point.host, client.host);
                connect(access_point, client, Port::Wifi { bss: number, from: ap, to: sta })?;
                connect(client, access_point, Port::Wifi { bss: number, from: sta, to: ap })?;
            }
            // Added last: of two paths of two hops, the one through the access point is preferred.
            for link in &bss.config.direct_links {
                let [from, to] = [link.from, link.to].map(StationId::first_function);
                connect(bss.host(link.from), bss.host(link.to), Port::Wifi { bss: number, from, to })?;
            }
        }
        Ok(Self::between(&neighbours))
    }

    /// Next hops for the `neighbours` of each host; the relation must be symmetric.
    fn between(neighbours: &[Vec<(HostId, Port)>]) -> Self {
        let ways = (0..neighbours.len()).map(|host| match neighbours[host].as_slice() {
            [] => Ways::One(None),
            [(_, port)] => Ways::One(Some(*port)),
            _ => Ways::Each(first_hops(host, neighbours)),
        });
        Self { ways: ways.collect(), islands: islands(neighbours) }
    }

    /// Port by which `at` sends packets to `destination`; `None` if there is no path.
    #[inline]
    pub fn next_hop(&self, at: HostId, destination: HostId) -> Option<Port> {
        let to = destination.0 as usize;
        match &self.ways[at.0 as usize] {
            Ways::Each(ports) => ports[to],
            Ways::One(port) => {
                let reached = self.islands[at.0 as usize] == self.islands[to] && at != destination;
                port.filter(|_| reached)
            }
        }
    }
}

/// Breadth-first search from `source`: the first port on the path to every other host.
fn first_hops(source: usize, neighbours: &[Vec<(HostId, Port)>]) -> Vec<Option<Port>> {
    let mut first = vec![None; neighbours.len()];
    let mut frontier = VecDeque::from([source]);
    while let Some(host) = frontier.pop_front() {
        for (neighbour, port) in &neighbours[host] {
            let neighbour = neighbour.0 as usize;
            if neighbour != source && first[neighbour].is_none() {
                first[neighbour] = if host == source { Some(*port) } else { first[host] };
                frontier.push_back(neighbour);
            }
        }
    }
    first
}

/// The island of each host: the number of the first host on it. Links work in both directions.
fn islands(neighbours: &[Vec<(HostId, Port)>]) -> Vec<u32> {
    let mut islands = vec![u32::MAX; neighbours.len()];
    for (host, number) in (0..neighbours.len()).zip(0..) {
        let mut frontier = vec![host];
        while let Some(host) = frontier.pop() {
            if islands[host] == u32::MAX {
                islands[host] = number;
                frontier.extend(neighbours[host].iter().map(|(neighbour, _)| neighbour.0 as usize));
            }
        }
    }
    islands
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// In any topology, a host with one port needs no table of its own.
        #[test]
        fn one_way_out_says_what_a_table_would(
            hosts in 1_usize..12,
            links in prop::collection::vec((0_u32..12, 0_u32..12), 0..14),
        ) {
            let mut neighbours = vec![Vec::new(); hosts];
            for ((a, b), number) in links.into_iter().zip(0..) {
                let [a, b] = [a, b].map(|host| host % hosts as u32);
                neighbours[a as usize].push((HostId(b), Port::Pipe(2 * number)));
                neighbours[b as usize].push((HostId(a), Port::Pipe(2 * number + 1)));
            }
            let topology = Topology::between(&neighbours);
            for (host, number) in (0..hosts).zip(0..) {
                let table = first_hops(host, &neighbours);
                for (destination, to) in (0..hosts).zip(0..) {
                    let hop = topology.next_hop(HostId(number), HostId(to));
                    prop_assert_eq!(hop, table[destination], "from {} to {}", host, destination);
                }
            }
        }
    }
}
