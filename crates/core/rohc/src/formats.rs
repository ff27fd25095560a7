//! The base headers of CO packets (RFC 6846 section 8.2). Each is described once for both directions.
//!
//! Every base header, except the tail of co_common, fits in 64 bits. A [`Format`] lists its fields in wire order. The
//! compressor shifts values in along this list, and the decompressor shifts them out.

use crate::lsb::Lsb;

/// A field or control field, as an index into [`Values`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Field {
    // Kept in the context: a packet that does not carry one of these fields inherits it.
    Seq,
    Ack,
    AckResidue,
    SeqResidue,
    PayloadLen,
    // The fields from here on have their own rules for when they are sent.
    IpIdOffset,
    SeqScaled,
    AckScaled,
    Msn,
    TsValue,
    TsEcho,
    /// Changes whenever the SACK edges change (compressor only).
    SackId,
    // The fields from here on rarely change.
    Window,
    Ttl,
    EcnUsed,
    Behavior,
    Df,
    Stride,
    UrgentPointer,
    Dscp,
    /// IP ECN (2 bits), TCP reserved flags (4), CWR and ECE (2), as in the irregular chain.
    EcnBits,
    /// Changes whenever the order or presence of options changes (compressor only).
    ListId,
    /// Changes whenever the contents of generic options change (compressor only).
    GenericId,
    /// The ACK and URG flags of the last packet (ACK 1, URG 2). Some peers take them from the context where RFC 6846
    /// has fixed values.
    KeptFlags,
    // Carried by every packet, not inherited.
    Psh,
    Rsf,
    ListPresent,
    Crc,
    AckFlag,
    Urg,
    TtlOuter,
    SeqIndicator,
    AckIndicator,
    StrideIndicator,
    WindowIndicator,
    IpIdIndicator,
    UrgentIndicator,
    Reserved,
    DscpIndicator,
    TtlIndicator,
}

/// The first of the context fields that are sent regardless of whether they changed.
pub(crate) const ALWAYS: usize = IpIdOffset as usize;
/// The first of the context fields that rarely change.
pub(crate) const SELDOM: usize = Window as usize;
/// Number of fields kept in the context.
pub(crate) const CONTEXT_FIELDS: usize = Psh as usize;
const FIELDS: usize = TtlIndicator as usize + 1;

/// The context fields of one packet.
pub(crate) type ContextFields = [u32; CONTEXT_FIELDS];

/// Every field of one packet.
#[derive(Clone, Copy)]
pub(crate) struct Values([u32; FIELDS]);

impl Values {
    /// The values of a packet before its own fields are read: those of the context, with the ACK flag set and other
    /// flags clear.
    pub(crate) fn inherit(kept: &ContextFields) -> Self {
        let mut values = [0; FIELDS];
        values[..CONTEXT_FIELDS].copy_from_slice(kept);
        values[AckFlag as usize] = 1;
        Self(values)
    }

    pub(crate) fn kept(&self) -> &ContextFields {
        self.0.first_chunk().expect("KEPT is below FIELDS")
    }
}

impl core::ops::Index<Field> for Values {
    type Output = u32;
    fn index(&self, field: Field) -> &u32 {
        &self.0[field as usize]
    }
}

impl core::ops::IndexMut<Field> for Values {
    fn index_mut(&mut self, field: Field) -> &mut u32 {
        &mut self.0[field as usize]
    }
}

/// A set of fields.
pub(crate) type Mask = u64;

pub(crate) const fn bit(field: Field) -> Mask {
    1 << field as usize
}

/// One field of a base header.
#[derive(Clone, Copy)]
pub(crate) struct Slot {
    pub(crate) field: Field,
    bits: u8,
    /// `None` if the bits are the value itself.
    lsb: Option<Lsb>,
    width_mask: u32,
}

const fn raw(field: Field, bits: u8) -> Slot {
    Slot { field, bits, lsb: None, width_mask: u32::MAX }
}

const fn lsb(field: Field, bits: u8, offset: i32) -> Slot {
    let width_mask = match field {
        IpIdOffset | Msn | Window => 0xffff,
        Ttl => 0xff,
        _ => u32::MAX,
    };
    Slot { field, bits, lsb: Some(Lsb::new(bits as u32, offset)), width_mask }
}

impl Slot {
    /// Number of bits on the wire.
    pub(crate) const fn bits(&self) -> u32 {
        self.bits as u32
    }

    /// True if the bits are the value itself, independent of the reference.
    pub(crate) const fn is_raw(&self) -> bool {
        self.lsb.is_none()
    }

    /// True if a decompressor with this reference decodes `value` from this slot.
    pub(crate) const fn fits(&self, reference: u32, value: u32) -> bool {
        match self.lsb {
            None => true,
            Some(lsb) => {
                let low = reference.wrapping_sub(lsb.offset as u32);
                value.wrapping_sub(low) & self.width_mask < 1 << lsb.bits
            }
        }
    }
}

/// A base header.
pub(crate) struct Format {
    pub(crate) kind: FormatKind,
    discriminator: u8,
    discriminator_bits: u8,
    pub(crate) slots: &'static [Slot],
    /// Length in bytes; for co_common, without its optional fields.
    pub(crate) len: usize,
    /// Fields that a decompressor learns from this format.
    pub(crate) carries: Mask,
    /// The scalings that must be unchanged: the format carries its scaled field only if the peer knows the scaling.
    pub(crate) scaled_ack: bool,
    pub(crate) scaled_seq: bool,
    /// The CRC has seven bits instead of three.
    pub(crate) crc7: bool,
}

/// Packet format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
#[non_exhaustive]
pub enum FormatKind {
    Ir,
    IrDyn,
    IrCr,
    CoCommon,
    Rnd1,
    Rnd2,
    Rnd3,
    Rnd4,
    Rnd5,
    Rnd6,
    Rnd7,
    Rnd8,
    Seq1,
    Seq2,
    Seq3,
    Seq4,
    Seq5,
    Seq6,
    Seq7,
    Seq8,
    /// The IR packet of profile 0x0000 (RFC 5795 section 5.4.1).
    PlainIr,
    /// A Normal packet of profile 0x0000 (RFC 5795 section 5.4.2).
    Plain,
}

impl FormatKind {
    /// Its name in RFC 6846 or RFC 5795.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ir => "IR",
            Self::IrDyn => "IR-DYN",
            Self::IrCr => "IR-CR",
            Self::CoCommon => "co_common",
            Self::Rnd1 => "rnd_1",
            Self::Rnd2 => "rnd_2",
            Self::Rnd3 => "rnd_3",
            Self::Rnd4 => "rnd_4",
            Self::Rnd5 => "rnd_5",
            Self::Rnd6 => "rnd_6",
            Self::Rnd7 => "rnd_7",
            Self::Rnd8 => "rnd_8",
            Self::Seq1 => "seq_1",
            Self::Seq2 => "seq_2",
            Self::Seq3 => "seq_3",
            Self::Seq4 => "seq_4",
            Self::Seq5 => "seq_5",
            Self::Seq6 => "seq_6",
            Self::Seq7 => "seq_7",
            Self::Seq8 => "seq_8",
            Self::PlainIr => "uncompressed IR",
            Self::Plain => "uncompressed",
        }
    }
}

/// Builds a format, and checks at compile time that its length is a whole number of bytes.
const fn format(
    kind: FormatKind,
    discriminator: u8,
    discriminator_bits: u8,
    slots: &'static [Slot],
) -> Format {
    let mut bits = discriminator_bits as usize;
    let mut carries = 0;
    let (mut scaled_ack, mut scaled_seq, mut crc7) = (false, false, false);
    let mut i = 0;
    while i < slots.len() {
        bits += slots[i].bits as usize;
        carries |= bit(slots[i].field);
        match slots[i].field {
            AckScaled => {
                carries |= bit(Ack);
                scaled_ack = true;
            }
            SeqScaled => {
                carries |= bit(Seq);
                scaled_seq = true;
            }
            Crc => crc7 = slots[i].bits == 7,
            _ => {}
        }
        i += 1;
    }
    assert!(bits.is_multiple_of(8) && bits <= 64);
    Format {
        kind,
        discriminator,
        discriminator_bits,
        slots,
        len: bits / 8,
        carries,
        scaled_ack,
        scaled_seq,
        crc7,
    }
}

use Field::{
    Ack, AckFlag, AckIndicator, AckScaled, Behavior, Crc, Df, DscpIndicator, EcnUsed, IpIdIndicator,
    IpIdOffset, ListPresent, Msn, Psh, Reserved, Rsf, Seq, SeqIndicator, SeqScaled, StrideIndicator, Ttl,
    TtlIndicator, TtlOuter, Urg, UrgentIndicator, Window, WindowIndicator,
};

const MSN: Slot = lsb(Msn, 4, 4);
const PSH: Slot = raw(Psh, 1);
const CRC3: Slot = raw(Crc, 3);
const CRC7: Slot = raw(Crc, 7);

/// Formats for a random or zero IP-ID and for IPv6, sorted by length.
#[rustfmt::skip]
pub(crate) static RND: [Format; 8] = [
    format(FormatKind::Rnd4, 0b1101, 4, &[lsb(AckScaled, 4, 3), MSN, PSH, CRC3]),
    format(FormatKind::Rnd2, 0b1100, 4, &[lsb(SeqScaled, 4, 7), MSN, PSH, CRC3]),
    format(FormatKind::Rnd3, 0b0, 1, &[lsb(Ack, 15, 8191), MSN, PSH, CRC3]),
    format(FormatKind::Rnd1, 0b10_1110, 6, &[lsb(Seq, 18, 65535), MSN, PSH, CRC3]),
    format(FormatKind::Rnd6, 0b1010, 4, &[CRC3, PSH, lsb(Ack, 16, 16383), MSN, lsb(SeqScaled, 4, 7)]),
    format(FormatKind::Rnd5, 0b100, 3, &[PSH, MSN, CRC3, lsb(Seq, 14, 8191), lsb(Ack, 15, 8191)]),
    format(FormatKind::Rnd7, 0b10_1111, 6, &[lsb(Ack, 18, 65535), raw(Window, 16), MSN, PSH, CRC3]),
    format(FormatKind::Rnd8, 0b1_0110, 5, &[
        raw(Rsf, 2), raw(ListPresent, 1), CRC7, MSN, PSH, lsb(Ttl, 3, 3), raw(EcnUsed, 1),
        lsb(Seq, 16, 65535), lsb(Ack, 16, 16383),
    ]),
];

/// Formats for a sequential IP-ID, in network order or byte-swapped, sorted by length.
#[rustfmt::skip]
pub(crate) static SEQ: [Format; 8] = [
    format(FormatKind::Seq4, 0b0, 1, &[lsb(AckScaled, 4, 3), lsb(IpIdOffset, 3, 1), MSN, PSH, CRC3]),
    format(FormatKind::Seq2, 0b1_1010, 5, &[lsb(IpIdOffset, 7, 3), lsb(SeqScaled, 4, 7), MSN, PSH, CRC3]),
    format(FormatKind::Seq1, 0b1010, 4, &[lsb(IpIdOffset, 4, 3), lsb(Seq, 16, 32767), MSN, PSH, CRC3]),
    format(FormatKind::Seq3, 0b1001, 4, &[lsb(IpIdOffset, 4, 3), lsb(Ack, 16, 16383), MSN, PSH, CRC3]),
    format(FormatKind::Seq6, 0b1_1011, 5, &[
        lsb(SeqScaled, 4, 7), lsb(IpIdOffset, 7, 3), lsb(Ack, 16, 16383), MSN, PSH, CRC3,
    ]),
    format(FormatKind::Seq5, 0b1000, 4, &[
        lsb(IpIdOffset, 4, 3), lsb(Ack, 16, 16383), lsb(Seq, 16, 32767), MSN, PSH, CRC3,
    ]),
    format(FormatKind::Seq7, 0b1100, 4, &[
        lsb(Window, 15, 16383), lsb(IpIdOffset, 5, 3), lsb(Ack, 16, 32767), MSN, PSH, CRC3,
    ]),
    format(FormatKind::Seq8, 0b1011, 4, &[
        lsb(IpIdOffset, 4, 3), raw(ListPresent, 1), CRC7, MSN, PSH, lsb(Ttl, 3, 3), raw(EcnUsed, 1),
        lsb(Ack, 15, 8191), raw(Rsf, 2), lsb(Seq, 14, 8191),
    ]),
];

/// co_common, which can carry every field. Its optional fields follow, see [`crate::chains::common_tail`].
#[rustfmt::skip]
pub(crate) static COMMON: Format = format(FormatKind::CoCommon, 0b111_1101, 7, &[
    raw(TtlOuter, 1), raw(AckFlag, 1), PSH, raw(Rsf, 2), MSN,
    raw(SeqIndicator, 2), raw(AckIndicator, 2), raw(StrideIndicator, 1), raw(WindowIndicator, 1),
    raw(IpIdIndicator, 1), raw(UrgentIndicator, 1),
    raw(Reserved, 1), raw(EcnUsed, 1), raw(DscpIndicator, 1), raw(TtlIndicator, 1), raw(ListPresent, 1),
    raw(Behavior, 2), raw(Urg, 1), raw(Df, 1), CRC7,
]);

impl Format {
    /// Finds the format for a first byte: co_common, or one of the formats that the context's IP-ID behaviour selects.
    pub(crate) fn find(first: u8, sequential: bool) -> Option<&'static Self> {
        let index = FIRST_BYTE[usize::from(sequential)][usize::from(first)];
        match usize::from(index) {
            at @ 0..8 => Some(if sequential { &SEQ[at] } else { &RND[at] }),
            8 => Some(&COMMON),
            _ => None,
        }
    }

    const fn starts(&self, first: u8) -> bool {
        first >> (8 - self.discriminator_bits) == self.discriminator
    }

    /// Packs the base header into the last `len` bytes of a big-endian word.
    pub(crate) fn pack(&self, values: &Values) -> u64 {
        let mut word = u64::from(self.discriminator);
        for slot in self.slots {
            let value = u64::from(values[slot.field]) & ((1 << slot.bits) - 1);
            word = word << slot.bits | value;
        }
        word
    }

    /// Unpacks the base header from a word as produced by [`Format::pack`]. `values` must contain the references.
    pub(crate) fn unpack(&self, word: u64, values: &mut Values) {
        let mut left = self.len as u32 * 8 - u32::from(self.discriminator_bits);
        for slot in self.slots {
            left -= u32::from(slot.bits);
            let bits = (word >> left) as u32 & ((1 << slot.bits) - 1);
            let value = &mut values[slot.field];
            *value = match slot.lsb {
                None => bits,
                Some(lsb) => lsb.decode(*value, bits) & slot.width_mask,
            };
        }
    }
}

const NONE: u8 = 0xff;

/// Index into [`RND`] or [`SEQ`] by first byte; 8 means co_common.
static FIRST_BYTE: [[u8; 256]; 2] = [first_bytes(&RND), first_bytes(&SEQ)];

const fn first_bytes(set: &[Format; 8]) -> [u8; 256] {
    let mut table = [NONE; 256];
    let mut first = 0;
    while first < 256 {
        let mut at = 0;
        while at < 8 {
            if set[at].starts(first as u8) {
                assert!(table[first] == NONE, "two formats share a first byte");
                table[first] = at as u8;
            }
            at += 1;
        }
        if COMMON.starts(first as u8) {
            assert!(table[first] == NONE, "co_common shares a first byte");
            table[first] = 8;
        }
        first += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_those_of_the_rfc() {
        let len = |set: &[Format; 8]| -> [usize; 8] { core::array::from_fn(|i| set[i].len) };
        assert_eq!(len(&RND), [2, 2, 3, 4, 4, 5, 6, 7]);
        assert_eq!(len(&SEQ), [2, 3, 4, 4, 5, 6, 6, 7]);
        assert_eq!(COMMON.len, 5);
    }

    #[test]
    fn reserved_first_bytes_are_no_base_headers() {
        for sequential in [false, true] {
            for first in 0xe0..=0xffu8 {
                let expected = matches!(first, 0xfa | 0xfb);
                assert_eq!(Format::find(first, sequential).is_some(), expected, "{first:#x}");
            }
        }
    }

    #[test]
    fn packed_headers_are_unpacked() {
        let mut kept = [0; CONTEXT_FIELDS];
        kept[Ack as usize] = 0xffff_ff00;
        kept[Seq as usize] = 77;
        kept[Msn as usize] = 0xffff;
        kept[Ttl as usize] = 255;
        for set in [&RND, &SEQ] {
            for format in set {
                let mut values = Values::inherit(&kept);
                values[Ack] = 10;
                values[Msn] = 3;
                values[Psh] = 1;
                values[Crc] = 5;
                let mut read = Values::inherit(&kept);
                let word = format.pack(&values);
                assert_eq!(word >> (format.len * 8) as u32, 0);
                format.unpack(word, &mut read);
                assert_eq!(read[Msn], 3);
                assert_eq!((read[Psh], read[Crc]), (1, 5), "{:?}", format.kind);
                if format.carries & bit(Ack) != 0 && !format.scaled_ack {
                    assert_eq!(read[Ack], 10, "{:?}", format.kind);
                }
            }
        }
    }
}
