//! A TCP segment as a plain struct: header fields, options, and the length of its payload.

use core::ops::{BitOr, BitOrAssign};

use crate::units::{Duration, SeqNumber};

/// Tick length of the timestamp clock; RFC 7323 section 5.4 requires 1 ms to 1 s.
pub const TIMESTAMP_TICK: Duration = Duration::from_millis(1);

/// TCP control bits (RFC 9293 section 3.1, RFC 3168 section 6.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// No flag.
    pub const NONE: Self = Self(0);
    /// No more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// Push.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgment field is significant.
    pub const ACK: Self = Self(0x10);
    /// The urgent pointer is significant.
    pub const URG: Self = Self(0x20);
    /// ECN echo.
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced.
    pub const CWR: Self = Self(0x80);

    /// True if every flag of `other` is set.
    #[inline]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// True for the flags of a segment that only acknowledges. The rule is that of the codec for such segments
    /// ([`tacit_rohc::header::flags::only_acknowledge`]), so that both agree.
    #[inline]
    pub const fn only_acknowledge(self) -> bool {
        tacit_rohc::header::flags::only_acknowledge(self.0)
    }

    /// True if any flag of `other` is set.
    #[inline]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl BitOr for Flags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Flags {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// The Timestamps option (RFC 7323 section 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timestamps {
    /// TSval: the sender's clock.
    pub value: u32,
    /// TSecr: the peer's clock, echoed.
    pub echo_reply: u32,
}

impl Timestamps {
    /// Whether it echoes TSval `value` or a later one, in the circular order of timestamps (RFC 7323 section 5.2).
    pub fn echoes(&self, value: u32) -> bool {
        !is_before(self.echo_reply, value)
    }

    /// Whether its TSval is later than `value`, in the same order.
    pub fn is_later_than(&self, value: u32) -> bool {
        is_before(value, self.value)
    }
}

fn is_before(one: u32, other: u32) -> bool {
    (one.wrapping_sub(other) as i32) < 0
}

/// One SACK block: `start` is its first byte, `end` the byte after its last (RFC 2018 section 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackRange {
    /// Left edge.
    pub start: SeqNumber,
    /// Right edge (exclusive).
    pub end: SeqNumber,
}

/// Up to four SACK blocks, in the order of the option.
#[derive(Clone, Copy, Debug, Default)]
pub struct SackBlocks {
    len: u8,
    blocks: [SackRange; Self::MAX],
}

impl SackBlocks {
    /// As many as fit in 40 bytes of options; 3 together with timestamps (RFC 2018 section 3).
    pub const MAX: usize = 4;
    /// No block: the option is absent.
    pub const EMPTY: Self =
        Self { len: 0, blocks: [SackRange { start: SeqNumber(0), end: SeqNumber(0) }; Self::MAX] };

    /// Appends a block; returns false, and changes nothing, if there is no room.
    pub fn push(&mut self, range: SackRange) -> bool {
        let Some(slot) = self.blocks.get_mut(usize::from(self.len)) else { return false };
        *slot = range;
        self.len += 1;
        true
    }

    /// The blocks.
    #[inline]
    pub fn as_slice(&self) -> &[SackRange] {
        &self.blocks[..usize::from(self.len)]
    }

    /// True if the option is absent.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl PartialEq for SackBlocks {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}
impl Eq for SackBlocks {}

/// A TCP segment. Payload is the bytes `seq .. seq + payload_len` of the stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Sequence number of the first payload byte (of the SYN, if set).
    pub seq: SeqNumber,
    /// Next expected byte, if [`Flags::ACK`] is set.
    pub ack: SeqNumber,
    /// Payload bytes.
    pub payload_len: u32,
    /// The window field as in the header: unscaled in SYN segments, scaled otherwise.
    pub window: u16,
    /// Control bits.
    pub flags: Flags,
    /// Timestamps option.
    pub timestamps: Option<Timestamps>,
    /// SACK option.
    pub sack: SackBlocks,
    /// Maximum segment size option, in SYN segments.
    pub mss: Option<u16>,
    /// Window scale option, in SYN segments (RFC 7323 section 2).
    pub window_scale: Option<u8>,
    /// SACK-permitted option, in SYN segments (RFC 2018 section 2).
    pub sack_permitted: bool,
    /// The payload is not the sender's: FWP's shim generated it. TCP ignores this field; it is for observers of a
    /// simulation, and is not part of the wire format.
    pub placeholder: bool,
}

impl Segment {
    /// Bytes of TCP header including options padded to 32 bits, laid out as Linux does:
    /// MSS 4; SACK-permitted 2 and timestamps 10 together 12; window scale 1 + 3; SACK 2 + 2 + 8 a block.
    #[inline]
    pub fn header_len(&self) -> u32 {
        let mut len = 20;
        if self.timestamps.is_some() {
            len += 12;
        } else if self.sack_permitted {
            len += 4;
        }
        if !self.sack.is_empty() {
            len += 4 + 8 * u32::from(self.sack.len);
        }
        if self.mss.is_some() {
            len += 4;
        }
        if self.window_scale.is_some() {
            len += 4;
        }
        len
    }

    /// True if the segment only acknowledges: no payload, and flags that [only acknowledge](Flags::only_acknowledge).
    #[inline]
    pub fn is_pure_ack(&self) -> bool {
        self.payload_len == 0 && self.flags.only_acknowledge()
    }

    /// Length in sequence space: payload, plus one each for SYN and FIN.
    #[inline]
    pub fn sequence_len(&self) -> u32 {
        self.payload_len
            + u32::from(self.flags.contains(Flags::SYN))
            + u32::from(self.flags.contains(Flags::FIN))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pure_ack_says_nothing_else_but_what_ecn_has_to_say() {
        let pure = |flags, payload_len| Segment { flags, payload_len, ..Segment::default() }.is_pure_ack();
        assert!(!pure(Flags::NONE, 0) && pure(Flags::ACK, 0) && !pure(Flags::ACK, 1));
        for silent in [Flags::PSH, Flags::ECE, Flags::CWR] {
            assert!(pure(Flags::ACK | silent, 0));
        }
        for telling in [Flags::SYN, Flags::FIN, Flags::RST, Flags::URG] {
            assert!(!pure(Flags::ACK | telling, 0));
        }
    }
}
