//! A UDP datagram as a packet's content.

/// A UDP datagram: a number and a payload length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Datagram {
    /// Number of the datagram within its flow, from 0; on the wire, the first 8 bytes of the payload.
    pub number: u64,
    /// Payload bytes after the UDP header; at least 8, because the number is in the payload.
    pub payload_len: u32,
}

impl Datagram {
    /// Bytes of UDP header (RFC 768).
    pub const HEADER_LEN: u32 = 8;
    /// The smallest payload: the number.
    pub const MIN_PAYLOAD: u32 = 8;
    /// This bit marks the number of a report.
    const REPORT: u64 = 1 << 63;

    /// A report that `count` datagrams have arrived so far.
    pub(super) const fn report(count: u64) -> Self {
        Self { number: count | Self::REPORT, payload_len: Self::MIN_PAYLOAD }
    }

    /// True for datagrams of a [`Reporter`](super::Reporter).
    pub const fn is_report(&self) -> bool {
        self.number & Self::REPORT != 0
    }

    /// The number of received datagrams in a report; `None` for other datagrams.
    pub(super) const fn reported(&self) -> Option<u64> {
        if self.is_report() { Some(self.number & !Self::REPORT) } else { None }
    }
}
