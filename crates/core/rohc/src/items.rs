//! Parts of the TCP option encodings that both ends share (RFC 6846 sections 6.3 and 8.2).

use crate::header::MAX_OPTIONS_LEN;
use crate::lsb::Lsb;
use crate::wire::{Coder, Reader, Short, Writer};

/// Maximum number of options in a list: m has four bits.
pub(crate) const MAX_LIST: usize = 15;
/// Number of entries in the item table.
pub(crate) const ITEMS: usize = 16;

/// Item table indexes of RFC 6846 section 6.3.4.
pub(crate) mod index {
    pub(crate) const NOP: u8 = 0;
    pub(crate) const EOL: u8 = 1;
    pub(crate) const MSS: u8 = 2;
    pub(crate) const WINDOW_SCALE: u8 = 3;
    pub(crate) const TIMESTAMPS: u8 = 4;
    pub(crate) const SACK_PERMITTED: u8 = 5;
    pub(crate) const SACK: u8 = 6;
    pub(crate) const GENERIC: u8 = 7;
}

/// An entry of the generic part of the item table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Generic {
    pub(crate) kind: u8,
    /// Bytes of `data` in use.
    pub(crate) len: u8,
    /// The option_static flag: the contents only change with a list.
    pub(crate) fixed: bool,
    pub(crate) data: [u8; MAX_OPTIONS_LEN - 2],
}

/// Indexes 7 to 15.
pub(crate) type Generics = [Generic; ITEMS - index::GENERIC as usize];

impl Generic {
    pub(crate) const EMPTY: Self = Self { kind: 0, len: 0, fixed: false, data: [0; MAX_OPTIONS_LEN - 2] };

    pub(crate) fn data(&self) -> &[u8] {
        &self.data[..usize::from(self.len)]
    }

    /// generic_list_item, in either direction.
    pub(crate) fn code(&mut self, coder: &mut impl Coder) -> Result<(), Short> {
        let mut length = u8::from(self.fixed) << 7 | (self.len + 2);
        coder.u8(&mut self.kind)?;
        coder.u8(&mut length)?;
        let len = (length & 0x7f).checked_sub(2).ok_or(Short)?;
        if usize::from(len) > self.data.len() {
            return Err(Short);
        }
        self.len = len;
        self.fixed = length & 0x80 != 0;
        coder.bytes(&mut self.data[..usize::from(len)])
    }
}

/// One to four SACK blocks, each with its start and end. `count` is 0 if there are none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sack {
    pub(crate) count: u8,
    pub(crate) edges: [u32; 8],
}

/// The forms of a SACK edge relative to the previous edge (sack_pure_lsb): length in bytes, prefix, largest delta.
const SACK_FORMS: [(usize, u32, u32); 3] =
    [(2, 0, 0x7fff), (3, 0x80_0000, 0x3f_ffff), (4, 0xc000_0000, 0x1fff_ffff)];

impl Sack {
    pub(crate) const NONE: Self = Self { count: 0, edges: [0; 8] };

    /// Parses the blocks of a SACK option.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        let mut sack = Self { count: (bytes.len() / 8).min(4) as u8, ..Self::NONE };
        for (edge, bytes) in sack.edges.iter_mut().zip(bytes.chunks_exact(4)) {
            *edge = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        }
        sack
    }

    pub(crate) fn edges(&self) -> &[u32] {
        &self.edges[..usize::from(self.count) * 2]
    }

    /// Writes sackN_list_item or sackN_irregular. Each edge is relative to the previous one, the first to the
    /// acknowledgment number. Block 3 follows block 2 in the irregular form too; the RFC's notation has an error there.
    pub(crate) fn write(&self, ack: u32, writer: &mut Writer<'_>) -> Result<(), Short> {
        writer.put(&[self.count])?;
        let mut before = ack;
        for &edge in self.edges() {
            let delta = edge.wrapping_sub(before);
            match SACK_FORMS.iter().find(|form| delta <= form.2) {
                Some(&(bytes, prefix, _)) => writer.low(bytes, &mut (prefix | delta))?,
                None => {
                    writer.put(&[0xff])?;
                    writer.put(&delta.to_be_bytes())?;
                }
            }
            before = edge;
        }
        Ok(())
    }

    /// Reads the blocks that [`Sack::write`] wrote. A count of 0 leaves `self` unchanged.
    pub(crate) fn read(&mut self, ack: u32, reader: &mut Reader<'_>) -> Result<(), Short> {
        let count = reader.next()?;
        match count {
            0 => return Ok(()),
            1..=4 => {}
            _ => return Err(Short),
        }
        let mut before = ack;
        for edge in &mut self.edges[..usize::from(count) * 2] {
            let first = reader.next()?;
            let (more, mask) = match first {
                0..0x80 => (1, 0x7f),
                0x80..0xc0 => (2, 0x3f),
                0xc0..0xe0 => (3, 0x1f),
                0xff => (4, 0),
                _ => return Err(Short),
            };
            let head = u32::from(first & mask);
            let delta = reader.take(more)?.iter().fold(head, |delta, &byte| delta << 8 | u32::from(byte));
            *edge = before.wrapping_add(delta);
            before = *edge;
        }
        self.count = count;
        Ok(())
    }
}

/// The forms of a timestamp (ts_lsb): length in bytes, prefix, encoding; sorted by length.
pub(crate) const TS_FORMS: [(usize, u32, Lsb); 4] = [
    (1, 0, Lsb::new(7, -1)),
    (2, 0x8000, Lsb::new(14, -1)),
    (3, 0xc0_0000, Lsb::new(21, 0x0004_0000)),
    (4, 0xe000_0000, Lsb::new(29, 0x0400_0000)),
];

/// Reads a timestamp relative to `reference`.
pub(crate) fn read_timestamp(reference: u32, reader: &mut Reader<'_>) -> Result<u32, Short> {
    let first = reader.rest.first().ok_or(Short)?;
    let (bytes, _, lsb) = TS_FORMS[first.leading_ones().min(3) as usize];
    let bits = reader.take(bytes)?.iter().fold(0, |bits, &byte| bits << 8 | u32::from(byte));
    Ok(lsb.decode(reference, lsb.encode(bits)))
}

/// Writes the head of a compressed list: byte `000` PS m, then m XI items (RFC 6846 section 6.3.3). At most 16 bytes.
pub(crate) fn write_list_head(list: &[u8], present: u16, writer: &mut Writer<'_>) -> Result<(), Short> {
    let wide = list.iter().any(|&index| index > 7);
    writer.put(&[u8::from(wide) << 4 | list.len() as u8])?;
    let xi = |index: u8, x: u8| if present & 1 << index != 0 { x | index } else { index };
    if wide {
        return list.iter().try_for_each(|&index| writer.put(&[xi(index, 0x80)]));
    }
    for pair in list.chunks(2) {
        let second = pair.get(1).map_or(0, |&index| xi(index, 8));
        writer.put(&[xi(pair[0], 8) << 4 | second])?;
    }
    Ok(())
}

/// The head of a list: indexes, their number, and the X bit of each entry.
pub(crate) struct ListHead {
    pub(crate) list: [u8; MAX_LIST],
    pub(crate) len: usize,
    pub(crate) present: [bool; MAX_LIST],
}

/// Reads the head of a list. Reserved bits and padding must be zero.
pub(crate) fn read_list_head(reader: &mut Reader<'_>) -> Result<ListHead, Short> {
    let first = reader.next()?;
    let len = usize::from(first & 0xf);
    let mut head = ListHead { list: [0; MAX_LIST], len, present: [false; MAX_LIST] };
    match first >> 4 {
        0 => {
            let bytes = reader.take(len.div_ceil(2))?;
            for at in 0..len {
                let xi = bytes[at / 2] >> if at % 2 == 0 { 4 } else { 0 } & 0xf;
                head.list[at] = xi & 7;
                head.present[at] = xi & 8 != 0;
            }
            if len % 2 == 1 && bytes[len / 2] & 0xf != 0 {
                return Err(Short);
            }
        }
        1 => {
            for (at, &xi) in reader.take(len)?.iter().enumerate() {
                if xi & 0x70 != 0 {
                    return Err(Short);
                }
                head.list[at] = xi & 0xf;
                head.present[at] = xi & 0x80 != 0;
            }
        }
        _ => return Err(Short),
    }
    Ok(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sack_edges_return_at_every_distance() {
        for delta in [0u32, 0x7fff, 0x8000, 0x3f_ffff, 0x40_0000, 0x1fff_ffff, 0x2000_0000, u32::MAX] {
            for ack in [0, 1000, u32::MAX - 5] {
                let mut sack = Sack { count: 4, edges: [0; 8] };
                let mut edge = ack;
                for slot in &mut sack.edges {
                    edge = edge.wrapping_add(delta);
                    *slot = edge;
                }
                let mut out = [0; 41];
                let mut writer = Writer::new(&mut out);
                assert!(sack.write(ack, &mut writer).is_ok());
                let len = writer.len;
                let mut back = Sack::NONE;
                let mut reader = Reader::new(&out[..len]);
                assert!(back.read(ack, &mut reader).is_ok() && reader.rest.is_empty());
                assert!(back == sack, "{delta:#x} from {ack}");
            }
        }
    }

    #[test]
    fn sack_rejects_what_no_form_starts_with() {
        let mut sack = Sack::NONE;
        assert!(sack.read(0, &mut Reader::new(&[5, 0, 0])).is_err());
        assert!(sack.read(0, &mut Reader::new(&[1, 0xe0, 0, 0, 0, 0, 0])).is_err());
        assert!(sack.read(0, &mut Reader::new(&[1, 0x00])).is_err());
    }

    #[test]
    fn list_heads_return_and_padding_is_checked() {
        for list in [&[0u8, 0, 4][..], &[0, 0, 4, 6], &[2, 5, 4, 0, 3, 9], &[]] {
            let present = 0b1_0000;
            let mut out = [0; 17];
            let mut writer = Writer::new(&mut out);
            assert!(write_list_head(list, present, &mut writer).is_ok());
            let len = writer.len;
            let Ok(head) = read_list_head(&mut Reader::new(&out[..len])) else { panic!("{list:?}") };
            assert_eq!(&head.list[..head.len], list);
            for (at, &index) in list.iter().enumerate() {
                assert_eq!(head.present[at], index == 4);
            }
        }
        assert!(read_list_head(&mut Reader::new(&[0x01, 0x01])).is_err(), "padding");
        assert!(read_list_head(&mut Reader::new(&[0x20])).is_err(), "reserved");
        assert!(read_list_head(&mut Reader::new(&[0x11, 0x10])).is_err(), "reserved in XI");
    }
}
