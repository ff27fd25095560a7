//! UDP: a datagram.

/// A UDP datagram: a number and a payload length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Datagram {
    /// Counts the datagrams of a flow from 0; on the wire the first 8 octets of payload.
    pub number: u64,
    /// Payload octets after the UDP header; at least 8, for the number.
    pub payload_len: u32,
}

impl Datagram {
    /// Octets of UDP header (RFC 768).
    pub const HEADER_LEN: u32 = 8;
}
