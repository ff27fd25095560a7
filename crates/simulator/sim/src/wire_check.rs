//! Encodes and decodes packets to check that structs and codec agree.

use tacit_packet::{Packet, wire};

/// Encodes and decodes packets.
#[derive(Debug, Default)]
pub(crate) struct WireCheck {
    buffer: Vec<u8>,
}

impl WireCheck {
    /// `packet` after encoding and decoding.
    ///
    /// # Errors
    /// If it is not the same.
    pub fn pass(&mut self, packet: &Packet) -> Result<Packet, String> {
        self.buffer.clear();
        wire::encode_into(packet, &mut self.buffer).map_err(|error| format!("{packet:?}: {error}"))?;
        wire::decode(&self.buffer).map_err(|error| format!("{packet:?} does not survive the wire: {error}"))
    }
}
