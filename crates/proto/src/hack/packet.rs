//! The simulator's packets as the driver sees them.

use super::driver::{AckPacket, FlowTimestamps, Rides};
use crate::FlowKey;
use crate::packet::{Packet, Transport};
use crate::tcp::AckInfo;
use crate::wire;

impl AckPacket for Packet {
    fn write_to(&self, bytes: &mut Vec<u8>) {
        // Neither a pure ACK, with few options and no payload, nor a report is ever too long; a TACK's lists are made
        // in order and to fit.
        wire::encode_into(self, bytes).expect("feedback has a wire form");
    }

    fn rides(&self) -> Rides {
        match &self.transport {
            Transport::Tcp(segment) if segment.is_pure_ack() => Rides::Compressed,
            Transport::Udp(datagram) if datagram.is_report() => Rides::AsIs,
            Transport::Tack(packet) if packet.is_feedback() => Rides::AsIs,
            _ => Rides::Never,
        }
    }

    fn flow_key(&self) -> FlowKey {
        Packet::flow_key(self)
    }

    fn ack_info(&self) -> Option<AckInfo> {
        Packet::ack_info(self)
    }

    fn timestamps(&self) -> Option<FlowTimestamps> {
        let Transport::Tcp(segment) = &self.transport else { return None };
        let reverse = FlowKey::simulated(self.flow, self.destination);
        segment.timestamps.map(|timestamps| FlowTimestamps { reverse, timestamps })
    }
}
