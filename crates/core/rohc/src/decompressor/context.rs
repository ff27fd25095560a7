//! One context of the decompressor, and the decoding of each packet format.

use alloc::boxed::Box;

use crate::chains::{Chain, common_tail, dynamic_chain, irregular_chain, read_static_chain};
use crate::crc::{CRC3, CRC7, CRC8};
use crate::decompressor::options::{Items, NO_GENERICS};
use crate::decompressor::outage::Outage;
use crate::decompressor::{ContextCounts, Scratch};
use crate::formats::{CONTEXT_FIELDS, ContextFields, Field, Format, FormatKind, Values};
use crate::header::{Header, Ip, Options, flags};
use crate::ip_id::{behavior, ip_id_offset};
use crate::items::Generics;
use crate::layers::Layers;
use crate::quick::Template;
use crate::state::{kept_flags, observe, reconstruct, scale};
use crate::wire::{Reader, Short};

/// Why a packet was not decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Malformed,
    Crc,
    /// Like `Crc`; the packet seems older than the reference.
    Stale,
    OutputTooSmall,
}

impl From<Short> for Fault {
    fn from(_: Short) -> Self {
        Self::Malformed
    }
}

/// State of a flow. It changes only after a CRC has succeeded.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    header: Header,
    pub(super) kept: ContextFields,
    pub(super) items: Items,
    generics: Generics,
    /// The headers around IP and TCP, if there are any.
    layers: Option<Box<Layers>>,
    /// The last header; the template of the fast path.
    pub(super) template: Template,
    /// The dynamic part may be damaged: only headers with CRC-7 or CRC-8 are decoded (SC state).
    pub(crate) damaged: bool,
    /// Failures since the last success.
    pub(crate) failures: u32,
    /// Number of these that were IR-DYN packets in a damaged context.
    pub(crate) strong_failures: u32,
    /// Number of consecutive packets that changed much of the context.
    pub(crate) significant_row: u32,
    /// The TCP checksum of the last IR, IR-DYN or IR-CR was correct, so the checksums of this flow can be used to
    /// verify packets.
    has_checksums: bool,
    /// Some packet has failed since the last success, even if it only seemed late.
    pub(super) uneasy: bool,
    /// Number of negative feedback messages to suppress before the next one.
    pub(crate) quiet: u32,
    pub(super) outage: Outage,
    pub(super) counts: ContextCounts,
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
        kept: [0; CONTEXT_FIELDS],
        items: Items::EMPTY,
        generics: NO_GENERICS,
        layers: None,
        template: Template::NONE,
        damaged: false,
        failures: 0,
        strong_failures: 0,
        significant_row: 0,
        has_checksums: false,
        uneasy: false,
        quiet: 0,
        outage: Outage::NONE,
        counts: ContextCounts {
            packets: 0,
            rohc_bytes: 0,
            ip_bytes: 0,
            initialisations: 0,
            repaired: 0,
            refused: 0,
        },
    };

    pub(crate) fn msn(&self) -> u16 {
        self.kept[Field::Msn as usize] as u16
    }

    pub(super) fn kept(&self) -> &ContextFields {
        &self.kept
    }

    pub(crate) fn is_sequential(&self) -> bool {
        self.kept[Field::Behavior as usize] <= behavior::SWAPPED
    }

    /// Decodes a CO packet whose first byte is `co.first` and whose remaining bytes are `co.rest`.
    ///
    /// With `trust.verify`, a correct CRC is not enough; the TCP checksum must be correct too. `scratch` receives a
    /// copy of the generic items if the packet may change them.
    pub(crate) fn decode_co(
        &mut self,
        co: &Co<'_>,
        trust: Trust,
        scratch: &mut Scratch,
        out: &mut [u8],
    ) -> Result<usize, Fault> {
        let mut decoded = self.attempt(co, &self.kept, scratch, out)?;
        let age = self.age(&decoded.values);
        // A packet older than the reference was encoded relative to another one, so a CRC of a few bits is not enough.
        let late = age <= 0 && !(self.damaged && co.format.crc7);
        let follows = age == 1 && !self.uneasy;
        if decoded.good && !late && !trust.verify && (follows || !trust.repair) {
            self.accept(&mut decoded, scratch);
            self.succeeded();
            self.prepare_quick(&out[..decoded.len]);
            return Ok(decoded.len);
        }
        self.doubt(co, decoded, late, trust, scratch, out)
    }

    /// Decides whether to accept a packet that failed or does not follow its predecessor.
    #[cold]
    fn doubt(
        &mut self,
        co: &Co<'_>,
        mut decoded: Decoded<'_>,
        late: bool,
        trust: Trust,
        scratch: &mut Scratch,
        out: &mut [u8],
    ) -> Result<usize, Fault> {
        let age = self.age(&decoded.values);
        let checksum = self.checksum_holds(&decoded.header, scratch, decoded.payload);
        // A packet that is really late cannot be ahead in other fields. If it is, the MSN wrapped after a long loss.
        let wrapped = late && decoded.good && checksum && self.is_ahead(&decoded.values);
        let must_check = trust.verify || late || (trust.repair && self.has_checksums);
        let good = decoded.good && !wrapped && (checksum || !must_check);
        let repair = trust.repair && !self.damaged && self.outage.can_pay();
        if good && (!repair || self.is_plausible(&decoded.values)) {
            // The packet is delivered, but the context keeps the newest reference (RFC 6846 section 5.3.1.1).
            if age > 0 || self.damaged {
                self.accept(&mut decoded, scratch);
            }
            self.succeeded();
            return Ok(decoded.len);
        }
        let failure = if age > 0 || wrapped { Fault::Crc } else { Fault::Stale };
        self.uneasy = true;
        if repair {
            let first = First { good, late: age <= 0 };
            return self.repair(co, first, scratch, out).ok_or(failure);
        }
        Err(failure)
    }

    /// Distance of the MSN from the reference; positive if it is ahead.
    pub(super) fn age(&self, values: &Values) -> i16 {
        (values[Field::Msn] as u16).wrapping_sub(self.msn()) as i16
    }

    /// True if the acknowledgment number, sequence number or TSval is ahead of the reference.
    pub(super) fn is_ahead(&self, values: &Values) -> bool {
        [Field::Ack, Field::Seq, Field::TsValue]
            .into_iter()
            .any(|field| values[field].wrapping_sub(self.kept[field as usize]) as i32 > 0)
    }

    /// Decodes a packet relative to the references in `kept` and writes it. Does not change the context.
    pub(super) fn attempt<'a>(
        &self,
        co: &Co<'a>,
        kept: &ContextFields,
        scratch: &mut Scratch,
        out: &mut [u8],
    ) -> Result<Decoded<'a>, Fault> {
        let format = co.format;
        let mut reader = Reader::new(co.rest);
        let mut values = Values::inherit(kept);
        format.unpack(base_word(format.len, co.first, &mut reader)?, &mut values);
        if format.kind == FormatKind::CoCommon {
            let tunnels = self.layers.as_deref().is_some_and(|layers| layers.outer() > 0);
            if values[Field::Reserved] != 0 || (values[Field::TtlOuter] != 0 && !tunnels) {
                return Err(Fault::Malformed);
            }
            common_tail(&mut reader, &mut values, kept)?;
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
            scratch.generics = self.generics;
        }
        let generics = &mut scratch.generics;
        let brought = if list { items.read_list(&mut reader, generics, &mut values)? } else { 0 };
        let mut header = self.header;
        if let Some(layers) = self.layers.as_deref() {
            scratch.layers.clone_from(layers);
        }
        let layered = self.layers.as_ref().map(|_| &mut scratch.layers);
        let mut chain = Chain { header: &mut header, layers: layered };
        irregular_chain(&mut reader, &mut chain, &mut values)?;
        items.read_irregular(brought, &mut reader, generics, &mut values)?;
        if !items.build(generics, &values, &mut header.options) {
            return Err(Fault::Malformed);
        }

        let payload = reader.rest;
        let layers = self.layers.as_ref().map(|_| &scratch.layers);
        header.payload_len = payload_len(&header, layers, payload)?;
        values[Field::PayloadLen] = u32::from(header.payload_len);
        if format.scaled_seq {
            let len = Some(values[Field::PayloadLen]).filter(|&len| len != 0).ok_or(Fault::Malformed)?;
            values[Field::Seq] =
                values[Field::SeqScaled].wrapping_mul(len).wrapping_add(values[Field::SeqResidue]);
        }
        reconstruct(&values, &mut header);
        let check = Check { format, crc: values[Field::Crc], layers, payload };
        let (mut len, mut good) = check.write(&header, out)?;
        let kept_flags = values[Field::KeptFlags];
        if kept_flags != USUAL_FLAGS && format.kind != FormatKind::CoCommon {
            (len, good) = check.with_kept_flags(kept_flags, len, good, &mut header, out)?;
        }
        Ok(Decoded { header, values, items, generic, payload, len, good })
    }

    /// Updates the context with the values of a packet.
    pub(super) fn accept(&mut self, decoded: &mut Decoded<'_>, scratch: &Scratch) {
        if decoded.generic {
            self.generics = scratch.generics;
        }
        if let Some(layers) = self.layers.as_deref_mut() {
            layers.clone_from(&scratch.layers);
        }
        self.commit(decoded.header, &mut decoded.values, decoded.items);
    }

    /// True if the TCP checksum of a decoded packet is correct. Its layers are in the scratch space.
    pub(super) fn checksum_holds(&self, header: &Header, scratch: &Scratch, payload: &[u8]) -> bool {
        match self.layers {
            None => header.has_valid_checksum(payload),
            Some(_) => scratch.layers.has_valid_checksum(header, payload),
        }
    }

    /// Counts a packet that was delivered.
    pub(super) fn succeeded(&mut self) {
        self.failures = 0;
        self.strong_failures = 0;
        self.uneasy = false;
        self.outage.clear();
    }

    fn commit(&mut self, header: Header, values: &mut Values, items: Items) {
        if let Ip::V4 { id, .. } = header.ip {
            values[Field::IpIdOffset] = ip_id_offset(id, values[Field::Msn], values[Field::Behavior]);
        }
        values[Field::KeptFlags] = kept_flags(header.flags);
        scale(values);
        self.header = header;
        self.kept = *values.kept();
        self.items = items;
        self.damaged = false;
        self.template.forget();
        self.outage.note(&self.kept);
    }

    /// Decodes the bytes after the CRC byte of an IR or IR-DYN packet. `header` starts at the add-CID or type byte; the
    /// CRC byte is at offset `crc_at` in it.
    pub(crate) fn decode_ir(
        &mut self,
        is_static: bool,
        packet: &[u8],
        crc_at: usize,
        scratch: &mut Scratch,
        out: &mut [u8],
    ) -> Result<usize, Fault> {
        let mut reader = Reader::new(packet.get(crc_at + 1..).ok_or(Fault::Malformed)?);
        let mut header = self.header;
        if is_static {
            header = BLANK;
            read_static_chain(&mut reader, &mut header, &mut scratch.layers)?;
        } else {
            self.lend_layers(scratch);
        }
        // A new flow inherits nothing, not even the stride (INITIAL in RFC 6846 section 8.2).
        let same_flow = self.is_of(&header, &scratch.layers);
        let mut values = Values::inherit(if same_flow { &self.kept } else { &[0; CONTEXT_FIELDS] });
        let mut items = if same_flow { self.items } else { Items::EMPTY };
        scratch.generics = self.generics;
        let mut chain = Chain { header: &mut header, layers: Some(&mut scratch.layers) };
        dynamic_chain(&mut reader, &mut chain, &mut values)?;
        values[Field::Ack] = header.ack;
        let brought = items.read_list(&mut reader, &mut scratch.generics, &mut values)?;
        if brought.count_ones() != u32::from(items.len()) {
            return Err(Fault::Malformed);
        }
        if !items.build(&scratch.generics, &values, &mut header.options) {
            return Err(Fault::Malformed);
        }
        let payload = reader.rest;
        check_crc8(packet, crc_at, packet.len() - payload.len())?;
        // The CRC of an IR-DYN does not cover the static part, which may belong to an earlier flow. If the context is
        // damaged, check the TCP checksum too, which covers addresses and ports.
        if !is_static && self.damaged && self.has_checksums {
            header.payload_len = payload_len(&header, Some(&scratch.layers), payload)?;
            if !scratch.layers.has_valid_checksum(&header, payload) {
                return Err(Fault::Crc);
            }
        }
        self.establish(header, &mut values, items, scratch, payload, out)
    }

    /// True if these headers have the static chain of this context.
    fn is_of(&self, header: &Header, layers: &Layers) -> bool {
        let same_layers = match self.layers.as_deref() {
            None => layers.is_empty(),
            Some(kept) => kept.is_same_flow(layers),
        };
        same_layers && is_same_flow(header, &self.header)
    }

    /// Copies the layers of this context to the scratch space.
    pub(super) fn lend_layers(&self, scratch: &mut Scratch) {
        match self.layers.as_deref() {
            Some(layers) => scratch.layers.clone_from(layers),
            None => scratch.layers.clear(),
        }
    }

    /// Installs a context whose CRC was correct, and writes its packet.
    pub(crate) fn establish(
        &mut self,
        mut header: Header,
        values: &mut Values,
        items: Items,
        scratch: &Scratch,
        payload: &[u8],
        out: &mut [u8],
    ) -> Result<usize, Fault> {
        let layers = &scratch.layers;
        if !self.is_of(&header, layers) {
            self.counts = ContextCounts::default();
        }
        header.payload_len = payload_len(&header, Some(layers), payload)?;
        let len = emit(&header, Some(layers), payload, out)?;
        observe(&header, values);
        self.has_checksums = layers.has_valid_checksum(&header, payload);
        self.generics = scratch.generics;
        match &mut self.layers {
            kept if layers.is_empty() => *kept = None,
            Some(kept) => (**kept).clone_from(layers),
            None => self.layers = Some(Box::new(layers.clone())),
        }
        self.commit(header, values, items);
        self.succeeded();
        Ok(len)
    }

    /// The header of the last packet, and the rest of the context's state.
    pub(crate) fn parts(&self) -> (Header, &ContextFields, &Items, &Generics) {
        // The fast path updates only these numbers, not the header.
        let mut header = self.header;
        reconstruct(&Values::inherit(&self.kept), &mut header);
        (header, &self.kept, &self.items, &self.generics)
    }
}

/// [`Field::KeptFlags`] as implied by formats other than co_common.
const USUAL_FLAGS: u32 = kept_flags(flags::ACK);

/// A CO packet: its format, its first byte and the bytes after a large CID.
pub(crate) struct Co<'a> {
    pub(crate) format: &'static Format,
    pub(crate) first: u8,
    pub(crate) rest: &'a [u8],
}

/// Rules for accepting packets.
#[derive(Clone, Copy)]
pub(crate) struct Trust {
    /// Require a correct TCP checksum.
    pub(crate) verify: bool,
    /// Also accept packets that fit only after a long loss, if their TCP checksum is correct.
    pub(crate) repair: bool,
}

/// The outcome of decoding a packet without repair.
#[derive(Clone, Copy)]
pub(super) struct First {
    /// The CRC was correct, and so was the TCP checksum if it was required; only the MSN did not fit the flow's pace.
    pub(super) good: bool,
    /// The MSN was not newer than the reference.
    pub(super) late: bool,
}

/// A decoded packet that has not been accepted yet.
pub(super) struct Decoded<'a> {
    pub(super) header: Header,
    pub(super) values: Values,
    items: Items,
    /// The generic items are in the scratch space.
    generic: bool,
    pub(super) payload: &'a [u8],
    pub(super) len: usize,
    /// The CRC is correct.
    pub(super) good: bool,
}

/// Inputs that stay the same when a packet is decoded in several ways.
struct Check<'a> {
    format: &'static Format,
    crc: u32,
    layers: Option<&'a Layers>,
    payload: &'a [u8],
}

impl Check<'_> {
    /// Writes the packet. Returns its length, and whether the CRC is correct.
    fn write(&self, header: &Header, out: &mut [u8]) -> Result<(usize, bool), Fault> {
        let len = emit(header, self.layers, self.payload, out)?;
        let bytes = &out[..len - self.payload.len()];
        let check = if self.format.crc7 { CRC7.check(bytes) } else { CRC3.check(bytes) };
        Ok((len, u32::from(check) == self.crc))
    }

    /// Handles compressors that take the ACK and URG flags from the context where RFC 6846 fixes them (section 8.2,
    /// DEFAULT). If this makes a difference, the TCP checksum decides; if it cannot, the RFC's interpretation is used.
    #[cold]
    fn with_kept_flags(
        &self,
        kept: u32,
        len: usize,
        good: bool,
        header: &mut Header,
        out: &mut [u8],
    ) -> Result<(usize, bool), Fault> {
        let holds = |header: &Header| match self.layers {
            None => header.has_valid_checksum(self.payload),
            Some(layers) => layers.has_valid_checksum(header, self.payload),
        };
        if good && holds(header) {
            return Ok((len, true));
        }
        let other = Header { flags: header.flags & !(3 << 4) | (kept as u8) << 4, ..*header };
        if holds(&other) {
            let (len, good) = self.write(&other, out)?;
            if good {
                *header = other;
                return Ok((len, true));
            }
            self.write(header, out)?;
        }
        Ok((len, good))
    }
}

/// True if both have the same static chain.
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

/// Reads a base header of `len` bytes into a word. Its first byte precedes a large CID.
fn base_word(len: usize, first: u8, reader: &mut Reader<'_>) -> Result<u64, Short> {
    let more = len - 1;
    let bytes = reader.rest;
    let word = match bytes.first_chunk::<8>() {
        // A checksum follows every base header, so a whole word is nearly always available.
        Some(word) => u64::from_be_bytes(*word) >> (64 - more as u32 * 8),
        None => bytes.get(..more).ok_or(Short)?.iter().fold(0, |word, &byte| word << 8 | u64::from(byte)),
    };
    reader.rest = bytes.get(more..).ok_or(Short)?;
    Ok(u64::from(first) << (more * 8) | word)
}

/// The length of the payload, or an error if the packet is too long for its IP headers.
fn payload_len(header: &Header, layers: Option<&Layers>, payload: &[u8]) -> Result<u16, Fault> {
    let fits = match layers {
        None => {
            let fixed = match header.ip {
                Ip::V4 { .. } => header.len(),
                Ip::V6 { .. } => header.len() - header.ip.header_len(),
            };
            fixed + payload.len() <= usize::from(u16::MAX)
        }
        Some(layers) => layers.has_room(header, payload.len()),
    };
    if fits { Ok(payload.len() as u16) } else { Err(Fault::Malformed) }
}

#[inline]
fn emit(header: &Header, layers: Option<&Layers>, payload: &[u8], out: &mut [u8]) -> Result<usize, Fault> {
    let len = match layers {
        None => header.emit(out),
        Some(layers) => layers.emit(header, out),
    };
    let len = len.ok_or(Fault::OutputTooSmall)?;
    if !payload.is_empty() {
        let end = len + payload.len();
        out.get_mut(len..end).ok_or(Fault::OutputTooSmall)?.copy_from_slice(payload);
        return Ok(end);
    }
    Ok(len)
}

/// Checks the CRC-8 of an IR, IR-DYN or IR-CR header of `len` bytes. It is computed with the CRC byte set to zero.
pub(crate) fn check_crc8(packet: &[u8], crc_at: usize, len: usize) -> Result<(), Fault> {
    let state = CRC8.update(CRC8.start(), &packet[..crc_at]);
    let state = CRC8.update(state, &[0]);
    if CRC8.update(state, &packet[crc_at + 1..len]) == packet[crc_at] { Ok(()) } else { Err(Fault::Crc) }
}
