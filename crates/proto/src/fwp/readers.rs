//! The readers of flows as the shim sees them.

use crate::FlowKey;

/// The readers of registered flows.
pub trait Readers {
    /// Announces placeholders in `start..end` of the stream of `flow`; false if the reader cannot be reached.
    fn hole(&mut self, flow: FlowKey, start: u64, end: u64) -> bool;

    /// The true bytes of `start..end` came after their placeholder. `bytes` are none where packets carry lengths
    /// alone.
    fn late(&mut self, flow: FlowKey, start: u64, end: u64, bytes: &[u8]);

    /// From here on holes are filled, or not.
    fn switched(&mut self, flow: FlowKey, on: bool);
}
