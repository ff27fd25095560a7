//! The fast path of the decompressor: handles the next pure ACK of an established flow.

use super::context::{Co, Context};
use crate::crc::CRC3;
use crate::formats::{ContextFields, Field, FormatKind};
use crate::header::flags;
use crate::ip_id::behavior;
use crate::items::index;
use crate::lsb::Lsb;
use crate::state::kept_flags;

/// The fields in the base headers that the fast path supports. All other fields are unchanged.
struct BaseHeaderFields {
    /// Position of the byte with MSN, PSH and CRC, counted from the second byte of the header.
    last: usize,
    ack: u32,
    scaled: Option<u32>,
    offset: u32,
    window: u32,
}

/// The `count` bytes at `at` as a number. The caller must have checked that they exist.
#[inline(always)]
fn word(bytes: &[u8], at: usize, count: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + count)?;
    Some(bytes.iter().fold(0, |word, &byte| word << 8 | u32::from(byte)))
}

/// Reads a timestamp of one to three bytes.
#[inline(always)]
fn timestamp(reference: u32, bytes: &[u8], at: &mut usize) -> Option<u32> {
    let first = *bytes.get(*at)?;
    let (count, lsb) = match first {
        0..0x80 => (1, Lsb::new(7, -1)),
        0x80..0xc0 => (2, Lsb::new(14, -1)),
        0xc0..0xe0 => (3, Lsb::new(21, 0x0004_0000)),
        _ => return None,
    };
    let bits = word(bytes, *at, count)?;
    *at += count;
    Some(lsb.decode(reference, lsb.encode(bits)))
}

impl Context {
    /// Decodes a packet that changes only the fields that a pure ACK changes, if it follows its predecessor and its CRC
    /// is correct. On `None`, nothing has changed except `out`.
    #[inline]
    pub(crate) fn quick(&mut self, co: &Co<'_>, out: &mut [u8]) -> Option<usize> {
        if self.uneasy {
            return None;
        }
        if self.template.layout()?.1 {
            self.quick_layout::<true, 72>(co, out)
        } else {
            self.quick_layout::<false, 52>(co, out)
        }
    }

    /// `LEN` must be the length of the layout for `V6`.
    #[inline(always)]
    fn quick_layout<const V6: bool, const LEN: usize>(
        &mut self,
        co: &Co<'_>,
        out: &mut [u8],
    ) -> Option<usize> {
        let kept = &self.kept;
        let base = read_base_fields(co, kept)?;
        let rest = co.rest;
        let last = u32::from(*rest.get(base.last)?);
        // Accept only the immediate successor of the reference.
        let msn = (kept[Field::Msn as usize] + 1) & 0xffff;
        if last >> 4 != msn & 0xf {
            return None;
        }
        let checksum = word(rest, base.last + 1, 2)? as u16;
        let mut at = base.last + 3;
        let value = timestamp(kept[Field::TsValue as usize], rest, &mut at)?;
        let echo = timestamp(kept[Field::TsEcho as usize], rest, &mut at)?;
        if at != rest.len() {
            return None;
        }
        let stride = kept[Field::Stride as usize];
        let residue = kept[Field::AckResidue as usize];
        let ack = match base.scaled {
            Some(scaled) => scaled.wrapping_mul(stride).wrapping_add(residue),
            None => base.ack,
        };

        let tcp = LEN - 32;
        let packet = out.first_chunk_mut::<LEN>()?;
        *packet = *self.template.bytes().first_chunk()?;
        if !V6 {
            let id = base.offset.wrapping_add(msn) as u16;
            packet[4..6].copy_from_slice(&id.to_be_bytes());
            packet[10..12].copy_from_slice(&self.template.ipv4_checksum(id).to_be_bytes());
        }
        packet[tcp + 8..tcp + 12].copy_from_slice(&ack.to_be_bytes());
        packet[tcp + 13] = packet[tcp + 13] & !flags::PSH | (last as u8 & 8);
        packet[tcp + 14..tcp + 16].copy_from_slice(&(base.window as u16).to_be_bytes());
        packet[tcp + 16..tcp + 18].copy_from_slice(&checksum.to_be_bytes());
        packet[tcp + 24..tcp + 28].copy_from_slice(&value.to_be_bytes());
        packet[tcp + 28..tcp + 32].copy_from_slice(&echo.to_be_bytes());
        if u32::from(CRC3.check_header(packet)) != last & 7 {
            return None;
        }

        let kept = &mut self.kept;
        match base.scaled {
            // The same division as in the general path, which accounts for products that overflow 32 bits.
            Some(scaled)
                if u64::from(scaled) * u64::from(stride) + u64::from(residue) <= u64::from(u32::MAX) =>
            {
                kept[Field::AckScaled as usize] = scaled;
            }
            _ => {
                if let Some(scaled) = ack.checked_div(stride) {
                    kept[Field::AckScaled as usize] = scaled;
                    kept[Field::AckResidue as usize] = ack % stride;
                }
            }
        }
        kept[Field::Ack as usize] = ack;
        kept[Field::Msn as usize] = msn;
        kept[Field::Window as usize] = base.window;
        kept[Field::TsValue as usize] = value;
        kept[Field::TsEcho as usize] = echo;
        if !V6 {
            kept[Field::IpIdOffset as usize] = base.offset;
        }
        self.outage.note(&self.kept);
        self.succeeded();
        Some(LEN)
    }

    /// Called after a packet of the general path. Enables the fast path with its header as the template.
    pub(super) fn prepare_quick(&mut self, header: &[u8]) {
        let kept = &self.kept;
        let behavior = kept[Field::Behavior as usize];
        let is_v4 = header.first() == Some(&0x45);
        let tcp = if is_v4 { 20 } else { 40 };
        let plain = flags::ACK | flags::URG | flags::RST | flags::SYN | flags::FIN;
        if self.damaged
            || kept[Field::PayloadLen as usize] != 0
            || kept[Field::EcnUsed as usize] != 0
            || kept[Field::KeptFlags as usize] != kept_flags(flags::ACK)
            || (is_v4 && behavior != behavior::SEQUENTIAL)
            || self.items.list() != [index::NOP, index::NOP, index::TIMESTAMPS]
            || header.get(tcp + 13).is_none_or(|flags| flags & plain != flags::ACK)
        {
            return;
        }
        self.template.learn(header);
    }
}

/// Reads a base header of one of the known formats.
#[inline(always)]
fn read_base_fields(co: &Co<'_>, kept: &ContextFields) -> Option<BaseHeaderFields> {
    let first = u32::from(co.first);
    let mut base = BaseHeaderFields {
        last: 0,
        ack: kept[Field::Ack as usize],
        scaled: None,
        offset: kept[Field::IpIdOffset as usize],
        window: kept[Field::Window as usize],
    };
    let ack = kept[Field::Ack as usize];
    let scaled = |bits: u32| {
        let known = kept[Field::Stride as usize] != 0;
        known.then(|| Lsb::new(4, 3).decode(kept[Field::AckScaled as usize], bits & 15))
    };
    let offset = |bits: u32, count: u32, below: i32| {
        Lsb::new(count, below).decode(kept[Field::IpIdOffset as usize], bits & ((1 << count) - 1)) & 0xffff
    };
    match co.format.kind {
        FormatKind::Seq4 => {
            base.scaled = Some(scaled(first >> 3)?);
            base.offset = offset(first, 3, 1);
        }
        FormatKind::Seq3 => {
            base.last = 2;
            base.offset = offset(first, 4, 3);
            base.ack = Lsb::new(16, 16383).decode(ack, word(co.rest, 0, 2)?);
        }
        FormatKind::Seq7 => {
            base.last = 4;
            let bits = first << 16 | word(co.rest, 0, 2)?;
            let reference = kept[Field::Window as usize];
            base.window = Lsb::new(15, 16383).decode(reference, bits >> 5 & 0x7fff) & 0xffff;
            base.offset = offset(bits, 5, 3);
            base.ack = Lsb::new(16, 32767).decode(ack, word(co.rest, 2, 2)?);
        }
        FormatKind::Rnd4 => base.scaled = Some(scaled(first)?),
        FormatKind::Rnd3 => {
            base.last = 1;
            let bits = first << 8 | word(co.rest, 0, 1)?;
            base.ack = Lsb::new(15, 8191).decode(ack, bits & 0x7fff);
        }
        FormatKind::Rnd7 => {
            base.last = 4;
            let bits = first << 16 | word(co.rest, 0, 2)?;
            base.ack = Lsb::new(18, 65535).decode(ack, bits & 0x3_ffff);
            base.window = word(co.rest, 2, 2)?;
        }
        _ => return None,
    }
    Some(base)
}
