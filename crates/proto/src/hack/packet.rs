//! The simulator's packets as the driver sees them.

use super::driver::{AckPacket, Rides};
use crate::packet::{Packet, Transport};
use crate::units::{FlowId, HostId};
use crate::wire;

/// The [key](AckPacket::flow_key) of what `source` sends in `flow`.
pub fn flow_key(flow: FlowId, source: HostId) -> u64 {
    u64::from(flow.0) << 32 | u64::from(source.0)
}

impl AckPacket for Packet {
    fn write_to(&self, bytes: &mut Vec<u8>) {
        // Neither a pure ACK, with few options and no payload, nor a report is ever too long.
        wire::encode_into(self, bytes).expect("feedback has a wire form");
    }

    fn read_from(bytes: &[u8]) -> Option<Self> {
        wire::decode(bytes).ok()
    }

    fn rides(&self) -> Rides {
        match &self.transport {
            Transport::Tcp(segment) if segment.is_pure_ack() => Rides::Compressed,
            Transport::Udp(datagram) if datagram.is_report() => Rides::AsIs,
            _ => Rides::Never,
        }
    }

    fn flow_key(&self) -> u64 {
        flow_key(self.flow, self.source)
    }
}
