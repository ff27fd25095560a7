//! The simulator's packets as the driver sees them.

use super::driver::AckPacket;
use crate::packet::Packet;
use crate::wire;

impl AckPacket for Packet {
    fn write_to(&self, bytes: &mut Vec<u8>) {
        // A pure ACK has no payload and few options: it always fits.
        wire::encode_into(self, bytes).expect("a pure ACK has a wire form");
    }

    fn read_from(bytes: &[u8]) -> Option<Self> {
        wire::decode(bytes).ok()
    }

    fn is_pure_ack(&self) -> bool {
        Packet::is_pure_ack(self)
    }

    fn flow_key(&self) -> u64 {
        u64::from(self.flow.0) << 32 | u64::from(self.source.0)
    }
}
