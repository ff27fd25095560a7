//! Payload bytes: a pattern that depends on flow, direction and position, so that a receiver can detect every misplaced
//! byte.

use super::{DecodeError, EncodeError};
use crate::tack::{self, Body};
use crate::tcp::{Flags, Segment};
use crate::udp::Datagram;
use crate::{Packet, Transport};

/// One direction of one flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    key: u64,
}

impl Stream {
    /// The stream `packet` belongs to.
    pub fn from_packet(packet: &Packet) -> Self {
        let hosts = u64::from(packet.source.0) << 32 | u64::from(packet.destination.0);
        Self { key: scramble(scramble(hosts) ^ u64::from(packet.flow.0)) }
    }

    /// The byte with sequence number `place`.
    pub fn byte(self, place: u32) -> u8 {
        self.word(place / 8)[(place % 8) as usize]
    }

    /// The eight bytes from `8 * index` on.
    fn word(self, index: u32) -> [u8; 8] {
        scramble(self.key.wrapping_add(u64::from(index))).to_le_bytes()
    }

    /// The `len` bytes from `place` on, which wraps like sequence numbers.
    fn bytes(self, place: u32, len: u32) -> impl Iterator<Item = u8> {
        // Generated in words for speed: one scramble gives eight bytes.
        let skip = place % 8;
        let words = (skip + len).div_ceil(8);
        (0..words)
            .flat_map(move |word| self.word((place / 8).wrapping_add(word) & (u32::MAX >> 3)))
            .skip(skip as usize)
            .take(len as usize)
    }

    /// The payload of `segment`. A SYN occupies the position before its payload.
    pub(super) fn tcp(self, segment: &Segment) -> Vec<u8> {
        self.bytes(first_place(segment), segment.payload_len).collect()
    }

    /// The payload of `datagram`: its number, then a separate pattern.
    pub(super) fn udp(self, datagram: Datagram) -> Result<Vec<u8>, EncodeError> {
        let rest = datagram
            .payload_len
            .checked_sub(Datagram::MIN_PAYLOAD)
            .ok_or(EncodeError::ShortDatagram(datagram.payload_len))?;
        let mut content = Vec::with_capacity(datagram.payload_len as usize);
        content.extend_from_slice(&datagram.number.to_be_bytes());
        content.extend(self.part(datagram.number).bytes(0, rest));
        Ok(content)
    }

    /// The bytes of a connection's stream that `packet` carries.
    pub(super) fn tack(self, packet: &tack::Packet) -> Vec<u8> {
        let (stream, place) = self.in_tack(packet);
        stream.bytes(place, packet.payload_len()).collect()
    }

    /// Stream and position of the content of `packet`; each stream of a connection has its own bytes.
    fn in_tack(self, packet: &tack::Packet) -> (Self, u32) {
        match &packet.body {
            Body::Data(data) => (self.part(u64::from(data.stream.0)), data.offset.0),
            _ => (self, 0),
        }
    }

    /// The pattern of a datagram or a stream in this direction.
    fn part(self, number: u64) -> Self {
        Self { key: scramble(self.key ^ number) }
    }

    /// Compares `content` with its expected pattern.
    pub(super) fn verify(self, transport: &Transport, content: &[u8]) -> Result<(), DecodeError> {
        let (stream, place, from) = match transport {
            Transport::Tcp(segment) => (self, first_place(segment), 0),
            Transport::Udp(datagram) => (self.part(datagram.number), 0, Datagram::MIN_PAYLOAD),
            Transport::Tack(packet) => {
                let (stream, place) = self.in_tack(packet);
                (stream, place, 0)
            }
        };
        let content = &content[from as usize..];
        let expected = stream.bytes(place, content.len() as u32);
        match expected.zip(content).position(|(expected, byte)| expected != *byte) {
            Some(at) => Err(DecodeError::Payload(from + at as u32)),
            None => Ok(()),
        }
    }
}

fn first_place(segment: &Segment) -> u32 {
    (segment.seq + u32::from(segment.flags.contains(Flags::SYN))).0
}

/// The mixing function of SplitMix64: every bit of the result depends on every bit of `value`.
fn scramble(value: u64) -> u64 {
    let mut mixed = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}
