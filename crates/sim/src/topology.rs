//! Where a packet goes next: shortest paths, worked out once.

use std::collections::VecDeque;

use tacit_link::wifi::{FunctionId, StationId};
use tacit_proto::units::HostId;

use crate::RunError;
use crate::setup::Setup;

/// Where a host sends a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Port {
    /// Into a pipe.
    Pipe(u32),
    /// Onto a channel.
    Wifi {
        /// Which.
        bss: u32,
        /// As which function.
        from: FunctionId,
        /// To which.
        to: FunctionId,
    },
}

/// Next hops of every pair of hosts.
#[derive(Debug)]
pub(crate) struct Topology {
    hosts: usize,
    /// `next[at * hosts + destination]`.
    next: Vec<Option<Port>>,
}

impl Topology {
    /// Fewest hops; among equals, links in the order of the setup.
    ///
    /// # Errors
    /// When a link names a host that does not exist.
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
        for (bss, number) in setup.bss.iter().zip(0_u32..) {
            for (client, station) in bss.clients.iter().zip(1..) {
                let [ap, sta] = [StationId::AP, StationId(station)].map(StationId::first_function);
                let (access_point, client) = (bss.access_point.host, client.host);
                connect(access_point, client, Port::Wifi { bss: number, from: ap, to: sta })?;
                connect(client, access_point, Port::Wifi { bss: number, from: sta, to: ap })?;
            }
        }
        let mut next = vec![None; hosts * hosts];
        for source in 0..hosts {
            first_hops(source, &neighbours, &mut next[source * hosts..(source + 1) * hosts]);
        }
        Ok(Self { hosts, next })
    }

    /// Where `at` sends what is for `destination`; `None` when there is no way.
    #[inline]
    pub fn next_hop(&self, at: HostId, destination: HostId) -> Option<Port> {
        self.next[at.0 as usize * self.hosts + destination.0 as usize]
    }
}

/// Breadth-first from `source`: the first port on the way to every other host.
fn first_hops(source: usize, neighbours: &[Vec<(HostId, Port)>], first: &mut [Option<Port>]) {
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
}
