//! Feedback elements: RFC 5795 section 5.2.4.1 and RFC 6846 section 8.3.

use crate::cid::{CidSpace, read_large, write_large};
use crate::crc::CRC8;
use crate::lsb::Lsb;
use crate::wire::{Reader, Short, Writer};

/// Kind of feedback about a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FeedbackKind {
    /// A packet was decompressed and its context is valid.
    Ack,
    /// The dynamic part of the context is presumed damaged.
    Nack,
    /// There is no static context, or it is presumed damaged.
    StaticNack,
}

/// One feedback element, ready to send. It starts with the feedback type byte, so it can be sent alone on a feedback
/// channel or in front of a ROHC header (piggybacked).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feedback {
    kind: FeedbackKind,
    len: u8,
    bytes: [u8; 8],
}

impl Feedback {
    /// The kind of the feedback.
    pub const fn kind(&self) -> FeedbackKind {
        self.kind
    }

    /// The bytes of the element.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// Creates an element about `cid`. An ACK is a FEEDBACK-1 with eight bits of the MSN. Other kinds are a FEEDBACK-2
    /// with all 16 bits, or with MSN-NOT-VALID if `msn` is `None`.
    pub(crate) fn new(kind: FeedbackKind, space: CidSpace, cid: u16, msn: Option<u16>) -> Self {
        let options: &[u8] = match msn {
            Some(msn) => &[0x41, (msn as u8) << 6],
            None => &[0x30],
        };
        Self::with_options(kind, space, cid, msn, options)
    }

    /// Creates a STATIC-NACK with REJECT: the decompressor has no room for the flow (RFC 6846 section 8.3.2.1).
    pub(crate) fn reject(space: CidSpace, cid: u16) -> Self {
        Self::with_options(FeedbackKind::StaticNack, space, cid, None, &[0x30, 0x20])
    }

    fn with_options(kind: FeedbackKind, space: CidSpace, cid: u16, msn: Option<u16>, options: &[u8]) -> Self {
        let mut bytes = [0; 8];
        let mut writer = Writer::new(&mut bytes);
        // Always fits: one type byte, at most two bytes of CID, and at most five of FEEDBACK-2.
        let _ = Self::write(kind, space, cid, msn, options, &mut writer);
        let len = writer.len as u8;
        bytes[0] = 0xf0 | (len - 1);
        Self { kind, len, bytes }
    }

    fn write(
        kind: FeedbackKind,
        space: CidSpace,
        cid: u16,
        msn: Option<u16>,
        options: &[u8],
        writer: &mut Writer<'_>,
    ) -> Result<(), Short> {
        writer.put(&[0])?;
        if space.is_large() {
            write_large(cid, writer)?;
        } else {
            space.write_before(cid, writer)?;
        }
        let acktype = match (kind, msn) {
            (FeedbackKind::Ack, Some(msn)) => return writer.put(&[msn as u8]),
            (FeedbackKind::Ack, None) => 0,
            (FeedbackKind::Nack, _) => 1,
            (FeedbackKind::StaticNack, _) => 2,
        };
        let value = msn.unwrap_or(0);
        let high = (value >> 2) | acktype << 14;
        writer.put(&high.to_be_bytes())?;
        let crc_at = writer.len;
        writer.put(&[0])?;
        writer.put(options)?;
        let crc = CRC8.check(&writer.written()[1..]);
        writer.written()[crc_at] = crc;
        Ok(())
    }
}

/// A parsed feedback element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Element {
    pub(crate) kind: FeedbackKind,
    pub(crate) cid: u16,
    /// Low bits of the MSN, and their number; `None` with MSN-NOT-VALID.
    pub(crate) msn: Option<(u16, u32)>,
    /// The decompressor has no room for this flow.
    pub(crate) reject: bool,
}

impl Element {
    /// The full MSN: the latest one sent whose low bits equal those of the element.
    pub(crate) fn msn_before(&self, sent: u16) -> Option<u16> {
        let (bits, count) = self.msn?;
        if count >= 16 {
            return Some(bits);
        }
        Some(Lsb::new(count, (1 << count) - 1).decode16(sent, u32::from(bits)))
    }
}

/// Splits leading feedback elements and padding off a ROHC packet. Returns (feedback, rest).
///
/// The feedback may be empty. Pass it to [`crate::Compressor::feedback`] of the opposite direction. If an element is
/// truncated, the first part contains the whole packet.
pub fn split_feedback(packet: &[u8]) -> (&[u8], &[u8]) {
    let mut reader = Reader::new(packet);
    while let Some(&first) = reader.rest.first() {
        match first {
            0xe0 => reader.rest = &reader.rest[1..],
            0xf0..=0xf7 => {
                if take_element(&mut reader).is_err() {
                    return (packet, &[]);
                }
            }
            _ => break,
        }
    }
    packet.split_at(packet.len() - reader.rest.len())
}

/// Takes the first element and returns its bytes without type and size.
fn take_element<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], Short> {
    let len = match reader.next()? & 7 {
        0 => reader.next()?,
        len => len,
    };
    reader.take(usize::from(len))
}

/// Calls `handle` with every well-formed element; returns how many were malformed.
pub(crate) fn parse(bytes: &[u8], space: CidSpace, mut handle: impl FnMut(Element)) -> usize {
    let mut reader = Reader::new(bytes);
    let mut malformed = 0;
    while let Some(&first) = reader.rest.first() {
        if first == 0xe0 {
            reader.rest = &reader.rest[1..];
            continue;
        }
        let element = (first & 0xf8 == 0xf0).then(|| take_element(&mut reader));
        let Some(Ok(element)) = element else { return malformed + 1 };
        match parse_element(element, space) {
            Ok(element) => handle(element),
            Err(Short) => malformed += 1,
        }
    }
    malformed
}

fn parse_element(bytes: &[u8], space: CidSpace) -> Result<Element, Short> {
    let mut reader = Reader::new(bytes);
    let cid = if space.is_large() {
        read_large(&mut reader)?
    } else if bytes.len() > 1 && bytes[0] & 0xf0 == 0xe0 {
        u16::from(reader.next()? & 0xf)
    } else {
        0
    };
    if let [msn] = reader.rest {
        let msn = Some((u16::from(*msn), 8));
        return Ok(Element { kind: FeedbackKind::Ack, cid, msn, reject: false });
    }
    let crc_at = bytes.len() - reader.rest.len() + 2;
    let head = reader.take(3)?;
    let state = CRC8.update(CRC8.start(), &bytes[..crc_at]);
    let state = CRC8.update(state, &[0]);
    if CRC8.update(state, &bytes[crc_at + 1..]) != head[2] {
        return Err(Short);
    }
    let kind = match head[0] >> 6 {
        0 => FeedbackKind::Ack,
        1 => FeedbackKind::Nack,
        2 => FeedbackKind::StaticNack,
        _ => return Err(Short),
    };
    let high = u16::from(head[0] & 0x3f) << 8 | u16::from(head[1]);
    let mut element = Element { kind, cid, msn: Some((high, 14)), reject: false };
    parse_options(&mut reader, high, &mut element)?;
    Ok(element)
}

/// Parses the feedback options REJECT, MSN-NOT-VALID and MSN, each at most once. Other options are skipped.
fn parse_options(reader: &mut Reader<'_>, high: u16, element: &mut Element) -> Result<(), Short> {
    let mut seen = 0u16;
    while !reader.rest.is_empty() {
        let byte = reader.next()?;
        let data = reader.take(usize::from(byte & 0xf))?;
        let kind = byte >> 4;
        if seen & 1 << kind != 0 {
            return Err(Short);
        }
        seen |= 1 << kind;
        match (kind, data) {
            (2, []) => element.reject = true,
            (3, []) => element.msn = None,
            (4, [low]) => element.msn = Some((high << 2 | u16::from(low >> 6), 16)),
            (2..=4, _) => return Err(Short),
            _ => {}
        }
    }
    const BOTH: u16 = 1 << 3 | 1 << 4;
    if seen & BOTH == BOTH { Err(Short) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    extern crate alloc;
    use super::*;
    use alloc::vec::Vec;

    fn elements(bytes: &[u8], space: CidSpace) -> Vec<Element> {
        let mut all = Vec::new();
        parse(bytes, space, |element| all.push(element));
        all
    }

    #[test]
    fn every_element_returns_with_every_kind_of_cid() {
        let spaces =
            [(CidSpace::Small { max: 15 }, [0, 1, 15]), (CidSpace::Large { max: 16383 }, [0, 127, 16383])];
        for (space, cids) in spaces {
            for cid in cids {
                for kind in [FeedbackKind::Ack, FeedbackKind::Nack, FeedbackKind::StaticNack] {
                    for msn in [Some(0), Some(0xffff), Some(0x1234), None] {
                        let feedback = Feedback::new(kind, space, cid, msn);
                        let parsed = elements(feedback.as_bytes(), space);
                        assert_eq!(parsed.len(), 1);
                        assert_eq!((parsed[0].kind, parsed[0].cid), (kind, cid));
                        assert_eq!(parsed[0].msn_before(msn.unwrap_or(0)), msn);
                        let mut packet = Vec::from(feedback.as_bytes());
                        packet.extend([0xe0, 0x55]);
                        assert_eq!(split_feedback(&packet).1, &[0x55]);
                    }
                }
            }
        }
    }

    #[test]
    fn any_flipped_bit_of_a_nack_is_noticed() {
        let space = CidSpace::Large { max: 16383 };
        let good = Feedback::new(FeedbackKind::Nack, space, 300, Some(77));
        for at in 8..good.as_bytes().len() * 8 {
            let mut bad = Vec::from(good.as_bytes());
            bad[at / 8] ^= 1 << (at % 8);
            assert!(
                elements(&bad, space).iter().all(|e| e.msn.is_none_or(|(_, bits)| bits == 8)),
                "bit {at}"
            );
        }
    }

    #[test]
    fn a_feedback_1_means_the_latest_msn_that_ends_so() {
        let element = Element { kind: FeedbackKind::Ack, cid: 0, msn: Some((0xfe, 8)), reject: false };
        assert_eq!(element.msn_before(0x0102), Some(0x00fe));
        assert_eq!(element.msn_before(0x0003), Some(0xfffe));
        assert_eq!(element.msn_before(0x01fe), Some(0x01fe));
    }
}
