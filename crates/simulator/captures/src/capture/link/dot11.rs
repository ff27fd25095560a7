//! 802.11 frames, and the headers that capture programs prepend.

use crc32fast::hash as crc32;

use super::radiotap::Radiotap;
use super::{Cursor, Kind, Sink, Verdict, Walk};

const MANAGEMENT: Kind = Kind::Named("802.11 management");
const CONTROL: Kind = Kind::Named("802.11 control");
const WITHOUT_DATA: Kind = Kind::Named("802.11 data frames without a body");
const LATER_FRAGMENT: Kind = Kind::Named("802.11 fragments after the first");

/// Magic number of an AVS header, without its version.
const AVS_MAGIC: u32 = 0x8021_1000;

impl<S: Sink> Walk<'_, S> {
    /// Parses a radiotap header and the MPDU after it.
    pub(super) fn radiotap(&mut self, frame: Cursor<'_>) -> Option<Verdict> {
        let header = Radiotap::parse(frame.bytes)?;
        if header.has_bad_fcs() {
            return Some(Verdict::BadFcs);
        }
        self.mode = header.mode;
        let mut mpdu = frame.skip(header.len)?;
        if header.has_fcs() {
            mpdu = mpdu.without_tail(4);
        }
        self.dot11(mpdu, header.is_padded())
    }

    /// Parses an MPDU (802.11-2020 clause 9.2). Only data frames with a frame body are of interest.
    pub(super) fn dot11(&mut self, mpdu: Cursor<'_>, padded_to_four: bool) -> Option<Verdict> {
        let (kind, flags) = (*mpdu.bytes.first()?, *mpdu.bytes.get(1)?);
        let subtype = kind >> 4;
        let is_data = kind & 0x0f == 0x08;
        if let Some(len) = appended(mpdu.bytes) {
            return Some(Verdict::HackAck(len));
        }
        // Subtype bit 2 means no frame body.
        if !is_data || subtype & 0x4 != 0 {
            return Some(Verdict::NotIp(match kind & 0x0c {
                0x00 => MANAGEMENT,
                0x04 => CONTROL,
                _ => WITHOUT_DATA,
            }));
        }
        let is_qos = subtype & 0x8 != 0;
        let four_addresses = flags & 0x03 == 0x03;
        let qos_at = if four_addresses { 30 } else { 24 };
        let mut header_len = qos_at;
        let mut is_amsdu = false;
        let mut tid = 0;
        if is_qos {
            let qos = mpdu.bytes.get(qos_at)?;
            is_amsdu = qos & 0x80 != 0;
            tid = qos & 0x0f;
            header_len += 2;
            // The +HTC bit means that an HT Control field follows.
            if flags & 0x80 != 0 {
                header_len += 4;
            }
        }
        if padded_to_four {
            header_len = header_len.next_multiple_of(4);
        }
        if flags & 0x40 != 0 {
            return Some(Verdict::Opaque);
        }
        let sequence_control = u16::from_le_bytes([*mpdu.bytes.get(22)?, *mpdu.bytes.get(23)?]);
        if sequence_control & 0x0f != 0 {
            return Some(Verdict::NotIp(LATER_FRAGMENT));
        }
        let addresses: [u8; 12] = *mpdu.bytes.get(4..)?.first_chunk()?;
        if self.heard.is_copy((addresses, tid), sequence_control >> 4, flags & 0x08 != 0) {
            return Some(Verdict::Copy);
        }
        let body = mpdu.skip(header_len)?;
        if is_amsdu { self.amsdu(body) } else { self.llc(body) }
    }

    /// A-MSDU subframes: addresses, length, MSDU, padding to 4 (802.11-2020 clause 9.3.2.2).
    fn amsdu(&mut self, mut body: Cursor<'_>) -> Option<Verdict> {
        let mut verdict = Verdict::NotIp(Kind::LLC);
        let layers = self.layers;
        loop {
            let Some(len) = body.u16_at(12) else { return Some(verdict) };
            let msdu = body.skip(14)?.first(u32::from(len));
            // Subframes follow each other; they are not nested.
            self.layers = layers;
            match self.llc(msdu) {
                Some(Verdict::Read) => verdict = Verdict::Read,
                Some(_) => {}
                None => return Some(if verdict == Verdict::Read { verdict } else { Verdict::Short }),
            }
            match body.skip((14 + usize::from(len)).next_multiple_of(4)) {
                Some(next) if !next.bytes.is_empty() => body = next,
                _ => return Some(verdict),
            }
        }
    }

    /// Prism header: message code and length in the sender's byte order, a device name, and items. An MPDU follows.
    pub(super) fn prism(&mut self, frame: Cursor<'_>) -> Option<Verdict> {
        const CODES: [u32; 2] = [0x41, 0x44];
        const LONGEST: u32 = 1_024;
        // AVS headers also occur with this link type.
        if frame.u32_at(0)? & 0xffff_f000 == AVS_MAGIC {
            return self.avs(frame);
        }
        let (code, length) = (frame.u32_at(0)?, frame.u32_at(4)?);
        let length = if CODES.contains(&code) { length } else { length.swap_bytes() };
        if length > LONGEST {
            return Some(Verdict::Short);
        }
        self.dot11(without_fcs(frame.skip(length as usize)?), false)
    }

    /// AVS header: a magic number with the version in its low bits, and its length.
    pub(super) fn avs(&mut self, frame: Cursor<'_>) -> Option<Verdict> {
        let length = frame.u32_at(4)?;
        if frame.u32_at(0)? & 0xffff_f000 != AVS_MAGIC || length > 1_024 {
            return Some(Verdict::Short);
        }
        self.dot11(without_fcs(frame.skip(length as usize)?), false)
    }

    /// PPI header: version, flags, length, and link type of the frame after it; then fields. The 802.11 field indicates
    /// whether there is an FCS.
    pub(super) fn ppi(&mut self, frame: Cursor<'_>) -> Option<Verdict> {
        const COMMON_802_11: u16 = 2;
        const FLAG_FCS: u16 = 1;
        const FLAG_BAD_FCS: u16 = 4;
        const LINK_DOT11: u32 = 105;
        let little = |at: usize| Some(frame.u16_at(at)?.swap_bytes());
        let length = usize::from(little(2)?);
        let link_type = frame.u32_at(4)?.swap_bytes();
        let mut flags = 0;
        let mut at = 8;
        // Each field has type, length and content.
        while at + 4 <= length {
            let (kind, bytes) = (little(at)?, usize::from(little(at + 2)?));
            if kind == COMMON_802_11 && bytes >= 10 {
                flags = little(at + 4 + 8)?;
            }
            at += 4 + bytes;
        }
        let inner = frame.skip(length)?;
        if link_type != LINK_DOT11 {
            return match u16::try_from(link_type) {
                // PPI within PPI is not supported.
                Ok(other) if other != 192 => self.link(other, inner),
                _ => Some(Verdict::Unsupported),
            };
        }
        match (flags & FLAG_BAD_FCS != 0, flags & FLAG_FCS != 0) {
            (true, _) => Some(Verdict::BadFcs),
            (false, true) => self.dot11(inner.without_tail(4), false),
            (false, false) => self.dot11(without_fcs(inner), false),
        }
    }
}

/// The MPDU without its FCS, if it has one, which link type 105 does not indicate.
pub(super) fn without_fcs(mpdu: Cursor<'_>) -> Cursor<'_> {
    let is_whole = mpdu.bytes.len() as u64 == u64::from(mpdu.on_link);
    match mpdu.bytes.split_last_chunk::<4>() {
        // The FCS is the CRC-32 of all preceding bytes, lowest byte first (clause 9.2.4.8).
        Some((before, fcs)) if is_whole && crc32(before).to_le_bytes() == *fcs => mpdu.without_tail(4),
        _ => mpdu,
    }
}

/// Length of the bytes that TCP/HACK appended to an ACK or a compressed Block Ack (802.11-2020 clauses 9.3.1.4 and
/// 9.3.1.8). `None` unless there are some and they consist of whole TCP/HACK frames, because other systems append their
/// own data.
fn appended(mpdu: &[u8]) -> Option<usize> {
    const CONTROL_WRAPPER: u8 = 0x74;
    /// The Carried Frame Control and HT Control fields.
    const WRAPPED_LEN: usize = 6;
    /// Frame Control, Duration and receiver address.
    const ACK_LEN: usize = 10;
    /// BA Type in the BA Control field, and its value for a compressed bitmap.
    const TYPE_MASK: u8 = 0x1e;
    const TYPE_COMPRESSED: u8 = 0x04;
    let (kind, wrapper) = match *mpdu.first()? {
        CONTROL_WRAPPER => (*mpdu.get(10)?, WRAPPED_LEN),
        kind => (kind, 0),
    };
    let from = match kind {
        0xd4 => ACK_LEN + wrapper,
        // Transmitter address, BA Control, Starting Sequence Control and the bitmap follow.
        0x94 => {
            if mpdu.get(16 + wrapper)? & TYPE_MASK != TYPE_COMPRESSED {
                return None;
            }
            20 + wrapper + compressed_bitmap_len(*mpdu.get(18 + wrapper)? & 0x0f)?
        }
        _ => return None,
    };
    let bytes = mpdu.get(from..).filter(|bytes| !bytes.is_empty())?;
    tacit_rohc::hack::are_frames(bytes).then_some(bytes.len())
}

/// Length of the bitmap of a compressed Block Ack, as indicated by its Fragment Number (802.11ax-2021 and 802.11be
/// clause 9.3.1.8.2).
const fn compressed_bitmap_len(fragment_number: u8) -> Option<usize> {
    match fragment_number {
        0 => Some(8),
        4 => Some(32),
        8 => Some(64),
        10 => Some(128),
        _ => None,
    }
}
