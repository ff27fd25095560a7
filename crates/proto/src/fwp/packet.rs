//! The simulator's packets as the shim sees them.

use super::Marker;
use super::shim::SegmentPacket;
use crate::FlowKey;
use crate::packet::{Ecn, IpHeader, Packet, Transport};
use crate::tcp::Segment;

impl SegmentPacket for Packet {
    fn flow_key(&self) -> FlowKey {
        Packet::flow_key(self)
    }

    fn reverse_key(&self) -> FlowKey {
        FlowKey::simulated(self.flow, self.destination)
    }

    fn segment(&self) -> Option<Segment> {
        match self.transport {
            Transport::Tcp(segment) => Some(segment),
            Transport::Udp(_) | Transport::Tack(_) => None,
        }
    }

    fn is_intact(&self) -> bool {
        true
    }

    fn payload(&self) -> &[u8] {
        &[]
    }

    fn forged(&self, segment: &Segment, text: Option<(Marker, u64)>) -> Self {
        let ecn = if self.ip.ecn == Ecn::Ce { Ecn::Ect0 } else { self.ip.ecn };
        let segment = Segment { placeholder: text.is_some(), ..*segment };
        Self { ip: IpHeader { ecn, ..self.ip }, transport: Transport::Tcp(segment), ..*self }
    }
}
