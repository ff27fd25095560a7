//! One context of the decompressor and the decoding of each packet type against it.

use crate::chains::{behavior, common_tail, dynamic_chain, ip_id_offset, irregular_chain, static_chain};
use crate::crc::{CRC3, CRC7, CRC8};
use crate::decompressor::options::{Items, NO_GENERICS};
use crate::formats::{Field, Format, FormatKind, KEPT, Kept, Values};
use crate::header::{Header, Ip, Options};
use crate::items::Generics;
use crate::state::{observe, reconstruct, scale};
use crate::wire::{Reader, Short};

/// Why a packet was not decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Malformed,
    Crc,
    /// As `Crc`, of a packet that seems to be older than the reference.
    Stale,
    OutputTooSmall,
}

impl From<Short> for Fault {
    fn from(_: Short) -> Self {
        Self::Malformed
    }
}

/// What is known about a flow. Changed only after a check succeeded.
pub(crate) struct Context {
    header: Header,
    kept: Kept,
    items: Items,
    generics: Generics,
    /// Dynamic part in doubt: only CRC-7 and CRC-8 headers are tried (the SC state).
    pub(crate) damaged: bool,
    /// Failures since the last success.
    pub(crate) failures: u32,
}

const BLANK: Header = Header {
    ip: Ip::V4 { source: [0; 4], destination: [0; 4], id: 0, dont_fragment: false },
    dscp: 0,
    ip_ecn: 0,
    ttl: 0,
    source_port: 0,
    destination_port: 0,
    seq: 0,
    ack: 0,
    reserved: 0,
    flags: 0,
    window: 0,
    checksum: 0,
    urgent: 0,
    options: Options::NONE,
    payload_len: 0,
};

impl Context {
    pub(crate) const EMPTY: Self = Self {
        header: BLANK,
        kept: [0; KEPT],
        items: Items::EMPTY,
        generics: NO_GENERICS,
        damaged: false,
        failures: 0,
    };

    pub(crate) fn msn(&self) -> u16 {
        self.kept[Field::Msn as usize] as u16
    }

    pub(crate) fn is_sequential(&self) -> bool {
        self.kept[Field::Behavior as usize] <= behavior::SWAPPED
    }

    /// Decodes a CO packet whose first octet is `first` and whose further octets are `rest`.
    ///
    /// With `verify` a 3-bit check needs a right TCP checksum beside it.
    /// `scratch` takes a copy of the generic items when the packet may change them.
    pub(crate) fn decode_co(
        &mut self,
        format: &'static Format,
        first: u8,
        rest: &[u8],
        verify: bool,
        scratch: &mut Generics,
        out: &mut [u8],
    ) -> Result<usize, Fault> {
        let mut reader = Reader::new(rest);
        let mut values = Values::inherit(&self.kept);
        format.unpack(base_word(format.len, first, &mut reader)?, &mut values);
        if format.kind == FormatKind::CoCommon {
            if values[Field::Reserved] != 0 || values[Field::TtlOuter] != 0 {
                return Err(Fault::Malformed);
            }
            common_tail(&mut reader, &mut values, &self.kept)?;
        }
        if format.scaled_ack {
            let stride = Some(values[Field::Stride]).filter(|&stride| stride != 0).ok_or(Fault::Malformed)?;
            values[Field::Ack] =
                values[Field::AckScaled].wrapping_mul(stride).wrapping_add(values[Field::AckResidue]);
        }
        let mut items = self.items;
        let list = values[Field::ListPresent] != 0;
        let generic = list || items.has_generic;
        if generic {
            *scratch = self.generics;
        }
        let brought = if list { items.read_list(&mut reader, scratch, &mut values)? } else { 0 };
        let mut header = self.header;
        irregular_chain(&mut reader, &mut header, &mut values)?;
        items.read_irregular(brought, &mut reader, scratch, &mut values)?;
        if !items.build(scratch, &values, &mut header.options) {
            return Err(Fault::Malformed);
        }

        let payload = reader.rest;
        header.payload_len = payload_len(&header, payload)?;
        values[Field::PayloadLen] = u32::from(header.payload_len);
        if format.scaled_seq {
            let len = Some(values[Field::PayloadLen]).filter(|&len| len != 0).ok_or(Fault::Malformed)?;
            values[Field::Seq] =
                values[Field::SeqScaled].wrapping_mul(len).wrapping_add(values[Field::SeqResidue]);
        }
        reconstruct(&values, &mut header);
        let len = emit(&header, payload, out)?;
        let octets = &out[..len - payload.len()];
        let check = if format.crc7 { CRC7.check(octets) } else { CRC3.check(octets) };
        let age = (values[Field::Msn] as u16).wrapping_sub(self.msn()) as i16;
        let failure = if age > 0 { Fault::Crc } else { Fault::Stale };
        if u32::from(check) != values[Field::Crc] {
            return Err(failure);
        }
        // A packet from before the reference was coded beside another one: three bits are too few to trust it.
        if (verify || age <= 0) && !format.crc7 && !header.has_valid_checksum(payload) {
            return Err(failure);
        }
        // It is delivered, but the context stays with the newest (RFC 6846 section 5.3.1.1).
        if age > 0 || self.damaged {
            if generic {
                self.generics = *scratch;
            }
            self.commit(header, &mut values, items);
        }
        self.failures = 0;
        Ok(len)
    }

    #[inline]
    fn commit(&mut self, header: Header, values: &mut Values, items: Items) {
        if let Ip::V4 { id, .. } = header.ip {
            values[Field::IpIdOffset] = ip_id_offset(id, values[Field::Msn], values[Field::Behavior]);
        }
        scale(values);
        self.header = header;
        self.kept = *values.kept();
        self.items = items;
        self.damaged = false;
    }

    /// Decodes what follows the CRC octet of an IR or IR-DYN packet. `header` is everything from the add-CID or type
    /// octet on, of which `crc_at` is the CRC octet.
    pub(crate) fn decode_ir(
        &mut self,
        is_static: bool,
        packet: &[u8],
        crc_at: usize,
        scratch: &mut Generics,
        out: &mut [u8],
    ) -> Result<usize, Fault> {
        let mut reader = Reader::new(packet.get(crc_at + 1..).ok_or(Fault::Malformed)?);
        let mut header = self.header;
        if is_static {
            header = BLANK;
            static_chain(&mut reader, &mut header)?;
        }
        // A new flow inherits nothing, also no stride (INITIAL in RFC 6846 section 8.2).
        let same_flow = is_same_flow(&header, &self.header);
        let mut values = Values::inherit(if same_flow { &self.kept } else { &[0; KEPT] });
        let mut items = if same_flow { self.items } else { Items::EMPTY };
        *scratch = self.generics;
        dynamic_chain(&mut reader, &mut header, &mut values)?;
        values[Field::Ack] = header.ack;
        let brought = items.read_list(&mut reader, scratch, &mut values)?;
        if brought.count_ones() != u32::from(items.len()) {
            return Err(Fault::Malformed);
        }
        if !items.build(scratch, &values, &mut header.options) {
            return Err(Fault::Malformed);
        }
        let payload = reader.rest;
        check_crc8(packet, crc_at, packet.len() - payload.len())?;
        self.establish(header, &mut values, items, scratch, payload, out)
    }

    /// Takes over a context that a CRC has vouched for, and writes its packet.
    pub(crate) fn establish(
        &mut self,
        mut header: Header,
        values: &mut Values,
        items: Items,
        generics: &Generics,
        payload: &[u8],
        out: &mut [u8],
    ) -> Result<usize, Fault> {
        header.payload_len = payload_len(&header, payload)?;
        let len = emit(&header, payload, out)?;
        observe(&header, values);
        self.generics = *generics;
        self.commit(header, values, items);
        self.failures = 0;
        Ok(len)
    }

    pub(crate) fn parts(&self) -> (&Header, &Kept, &Items, &Generics) {
        (&self.header, &self.kept, &self.items, &self.generics)
    }
}

/// True when the static chains of both are equal.
fn is_same_flow(a: &Header, b: &Header) -> bool {
    let addresses = match (a.ip, b.ip) {
        (
            Ip::V4 { source, destination, .. },
            Ip::V4 { source: other_source, destination: other_destination, .. },
        ) => source == other_source && destination == other_destination,
        (a, b) => a == b,
    };
    addresses && a.source_port == b.source_port && a.destination_port == b.destination_port
}

/// Gathers a base header of `len` octets, the first of which stands before a large CID.
#[inline]
fn base_word(len: usize, first: u8, reader: &mut Reader<'_>) -> Result<u64, Short> {
    let more = len - 1;
    let octets = reader.rest;
    let word = match octets.first_chunk::<8>() {
        // Every base header is followed by a checksum, so a whole word is nearly always there.
        Some(word) => u64::from_be_bytes(*word) >> (64 - more as u32 * 8),
        None => octets.get(..more).ok_or(Short)?.iter().fold(0, |word, &octet| word << 8 | u64::from(octet)),
    };
    reader.rest = octets.get(more..).ok_or(Short)?;
    Ok(u64::from(first) << (more * 8) | word)
}

/// The payload's length, if the packet's length fits its IP header.
#[inline]
fn payload_len(header: &Header, payload: &[u8]) -> Result<u16, Fault> {
    let fixed = match header.ip {
        Ip::V4 { .. } => header.len(),
        Ip::V6 { .. } => header.len() - header.ip.header_len(),
    };
    if fixed + payload.len() > usize::from(u16::MAX) {
        return Err(Fault::Malformed);
    }
    Ok(payload.len() as u16)
}

#[inline]
fn emit(header: &Header, payload: &[u8], out: &mut [u8]) -> Result<usize, Fault> {
    let len = header.emit(out).ok_or(Fault::OutputTooSmall)?;
    if !payload.is_empty() {
        let end = len + payload.len();
        out.get_mut(len..end).ok_or(Fault::OutputTooSmall)?.copy_from_slice(payload);
        return Ok(end);
    }
    Ok(len)
}

/// The CRC-8 of an IR, IR-DYN or IR-CR header of `len` octets, computed with the CRC octet clear.
pub(crate) fn check_crc8(packet: &[u8], crc_at: usize, len: usize) -> Result<(), Fault> {
    let state = CRC8.update(CRC8.start(), &packet[..crc_at]);
    let state = CRC8.update(state, &[0]);
    if CRC8.update(state, &packet[crc_at + 1..len]) == packet[crc_at] { Ok(()) } else { Err(Fault::Crc) }
}
