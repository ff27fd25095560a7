//! Maps addresses to hosts of a world, for packets that arrive as bytes on a link-layer ACK.

use std::collections::BTreeMap;
use std::net::IpAddr;

use tacit_packet::units::{FlowId, HostId};
use tacit_packet::{Packet, wire};

use crate::address::Block;

/// Maximum number of addresses remembered. A program that forges source addresses can use any number of them.
const LEARNT: usize = 4_096;

/// Addresses of the two sides of a hop, and the flows of simulated stations.
///
/// An address belongs to the side that sent from it, similar to the learning of a switch. Addresses that have sent
/// nothing follow the hop's own routes: some belong to the command's side, and all others are reached by the default
/// route.
#[derive(Debug, Default)]
pub struct AddressTable {
    /// Source and sink of each simulated flow, in order.
    flows: Vec<[HostId; 2]>,
    /// The command's side, the other side, and their assigned addresses.
    sides: Option<([HostId; 2], Block)>,
    learnt: BTreeMap<IpAddr, HostId>,
}

impl AddressTable {
    /// For a hop between the near and far `sides`, with simulated flows between these hosts.
    pub fn new(flows: impl IntoIterator<Item = [HostId; 2]>, sides: [HostId; 2], block: Block) -> Self {
        Self { flows: flows.into_iter().collect(), sides: Some((sides, block)), learnt: BTreeMap::new() }
    }

    /// Records that `host` sent from `address`.
    pub fn learn(&mut self, address: IpAddr, host: HostId) {
        if let Some(known) = self.learnt.get_mut(&address) {
            *known = host;
        } else if self.learnt.len() < LEARNT {
            self.learnt.insert(address, host);
        }
    }

    /// The host that receives packets for `address`.
    pub fn host_at(&self, address: IpAddr) -> Option<HostId> {
        let ([near, far], block) = self.sides?;
        let routed = || if block.is_near(address) { near } else { far };
        Some(self.learnt.get(&address).copied().unwrap_or_else(routed))
    }

    /// The packet of a simulated flow in `bytes`, identified by its addresses and ports.
    pub fn simulated(&self, bytes: &[u8]) -> Option<Packet> {
        if self.flows.is_empty() {
            return None;
        }
        let packet = wire::decode(bytes).ok()?;
        let FlowId(flow) = packet.flow;
        let ends = *self.flows.get(flow as usize)?;
        let goes = [packet.source, packet.destination];
        (goes == ends || goes == [ends[1], ends[0]]).then_some(packet)
    }
}

#[cfg(test)]
mod tests {
    use tacit_packet::tcp::{Flags, Segment};
    use tacit_packet::{IpHeader, Transport};

    use super::*;

    const NEAR: HostId = HostId(2);
    const FAR: HostId = HostId(0);

    fn table() -> AddressTable {
        AddressTable::new([[HostId(0), HostId(3)]], [NEAR, FAR], Block::first())
    }

    #[test]
    fn an_address_is_where_it_was_last_sent_from() {
        let mut table = table();
        let address: IpAddr = [192, 0, 2, 7].into();
        assert_eq!(table.host_at(address), Some(FAR), "by the default route");
        table.learn(address, NEAR);
        assert_eq!(table.host_at(address), Some(NEAR));
        table.learn(address, FAR);
        assert_eq!(table.host_at(address), Some(FAR));
        assert_eq!(table.host_at(Block::first().near().parse().unwrap()), Some(NEAR), "before it has spoken");
    }

    #[test]
    fn forged_senders_fill_no_memory() {
        let mut table = table();
        for forged in 0..3 * LEARNT as u32 {
            table.learn(IpAddr::from(forged.to_be_bytes()), NEAR);
        }
        assert_eq!(table.learnt.len(), LEARNT);
    }

    #[test]
    fn packets_of_simulated_flows_are_known_by_addresses_and_ports() {
        let packet = |flow: u32, source: u32, destination: u32| Packet {
            flow: FlowId(flow),
            source: HostId(source),
            destination: HostId(destination),
            ip: IpHeader::default(),
            transport: Transport::Tcp(Segment { flags: Flags::ACK, ..Segment::default() }),
        };
        let read = |packet: Packet| table().simulated(&wire::encode(&packet).unwrap());
        assert_eq!(read(packet(0, 3, 0)), Some(packet(0, 3, 0)));
        assert_eq!(read(packet(0, 0, 3)), Some(packet(0, 0, 3)));
        assert_eq!(read(packet(0, 3, 1)), None, "other hosts");
        assert_eq!(read(packet(1, 3, 0)), None, "no such flow");
        assert_eq!(table().simulated(b""), None);
    }
}
