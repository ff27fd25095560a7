//! The flow of a packet, and the CID by which both ends identify it.

use md5::{Digest, Md5};

use crate::header::{Header, Ip};

/// Addresses and ports of a TCP flow in the direction of its ACKs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Flow {
    source: [u8; 16],
    destination: [u8; 16],
    ports: [u16; 2],
    v6: bool,
}

impl Flow {
    pub fn from_header(header: &Header) -> Self {
        let ports = [header.source_port, header.destination_port];
        match header.ip {
            Ip::V4 { source: from, destination: to, .. } => {
                let (mut source, mut destination) = ([0; 16], [0; 16]);
                source[..4].copy_from_slice(&from);
                destination[..4].copy_from_slice(&to);
                Self { source, destination, ports, v6: false }
            }
            Ip::V6 { source, destination, .. } => Self { source, destination, ports, v6: true },
        }
    }

    /// The context identifier (paper section 3.3.2): the lowest byte, which is the last one, of the MD5 digest over
    /// source address, destination address, protocol number 6, source port and destination port in network order.
    pub fn cid(&self) -> u8 {
        let address = if self.v6 { 16 } else { 4 };
        let mut digest = Md5::new();
        digest.update(&self.source[..address]);
        digest.update(&self.destination[..address]);
        digest.update([6]);
        digest.update(self.ports[0].to_be_bytes());
        digest.update(self.ports[1].to_be_bytes());
        digest.finalize()[15]
    }
}
