//! A violation ends a connection: the peer does not keep to the protocol.

/// The peer broke a rule of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Violation;
