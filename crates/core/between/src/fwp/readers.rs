//! The interface of the shim to the readers of flows.

use tacit_packet::FlowKey;

/// The readers of registered flows.
pub trait Readers {
    /// Announces placeholders in `start..end` of the stream of `flow`; false if the reader cannot be reached.
    fn hole(&mut self, flow: FlowKey, start: u64, end: u64) -> bool;

    /// The original bytes of `start..end` arrived after their placeholder. `bytes` is empty if packets carry only
    /// lengths.
    fn late(&mut self, flow: FlowKey, start: u64, end: u64, bytes: &[u8]);

    /// From now on holes are filled (`on`), or not.
    fn switched(&mut self, flow: FlowKey, on: bool);
}
