//! The decompressor's item table, and the reconstruction of an option area from it.

use crate::formats::{Field, Values};
use crate::header::{MAX_OPTIONS_LEN, Options};
use crate::items::{Generic, Generics, ITEMS, MAX_LIST, Sack, index, read_list_head, read_timestamp};
use crate::wire::{Coder, Reader, Short, Writer};

/// The order of the last options and the item table, without its generic items and timestamps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Items {
    /// Bit per index, set if its item has been received.
    known: u16,
    list: [u8; MAX_LIST],
    len: u8,
    /// The list contains an index beyond the reserved ones.
    pub(crate) has_generic: bool,
    window_scale: u8,
    /// Bytes of padding after an EOL option.
    padding: u8,
    mss: u16,
    sack: Sack,
}

pub(crate) const NO_GENERICS: Generics = [Generic::EMPTY; ITEMS - index::GENERIC as usize];

/// Bit per entry of the list, set if the list carried the item.
pub(crate) type EntryMask = u16;

impl Items {
    pub(crate) const EMPTY: Self = Self {
        // Items without contents need not be received first (RFC 6846 section 6.3.4).
        known: 1 << index::NOP | 1 << index::SACK_PERMITTED,
        list: [0; MAX_LIST],
        len: 0,
        has_generic: false,
        window_scale: 0,
        padding: 0,
        mss: 0,
        sack: Sack::NONE,
    };

    /// Number of options in the list.
    pub(crate) const fn len(&self) -> u8 {
        self.len
    }

    pub(crate) fn list(&self) -> &[u8] {
        &self.list[..usize::from(self.len)]
    }

    /// Reads the list of a base header or chain: the order of the options, and the items it carries.
    pub(crate) fn read_list(
        &mut self,
        reader: &mut Reader<'_>,
        generics: &mut Generics,
        values: &mut Values,
    ) -> Result<EntryMask, Short> {
        let head = read_list_head(reader)?;
        self.list = head.list;
        self.len = head.len as u8;
        self.has_generic = self.list().iter().any(|&at| at >= index::GENERIC);
        let mut brought = 0;
        for place in 0..head.len {
            let at = head.list[place];
            if head.present[place] {
                brought |= 1 << place;
                self.known |= 1 << at;
                self.read_item(at, reader, generics, values)?;
            } else if self.known & 1 << at == 0 {
                return Err(Short);
            }
        }
        Ok(brought)
    }

    fn read_item(
        &mut self,
        at: u8,
        reader: &mut Reader<'_>,
        generics: &mut Generics,
        values: &mut Values,
    ) -> Result<(), Short> {
        match at {
            index::NOP | index::SACK_PERMITTED => Ok(()),
            index::EOL => {
                let bits = reader.next()?;
                self.padding = bits / 8;
                if bits.is_multiple_of(8) { Ok(()) } else { Err(Short) }
            }
            index::MSS => reader.u16(&mut self.mss),
            index::WINDOW_SCALE => reader.u8(&mut self.window_scale),
            index::TIMESTAMPS => {
                reader.u32(&mut values[Field::TsValue])?;
                reader.u32(&mut values[Field::TsEcho])
            }
            index::SACK => {
                let ack = values[Field::Ack];
                if reader.rest.first() == Some(&0) {
                    return Err(Short);
                }
                self.sack.read(ack, reader)
            }
            _ => generics[usize::from(at - index::GENERIC)].code(reader),
        }
    }

    /// Reads the irregular items of all options whose items the list did not carry.
    pub(crate) fn read_irregular(
        &mut self,
        brought: EntryMask,
        reader: &mut Reader<'_>,
        generics: &mut Generics,
        values: &mut Values,
    ) -> Result<(), Short> {
        let references = (values[Field::TsValue], values[Field::TsEcho]);
        for place in 0..usize::from(self.len) {
            if brought & 1 << place != 0 {
                continue;
            }
            match self.list[place] {
                index::TIMESTAMPS => {
                    values[Field::TsValue] = read_timestamp(references.0, reader)?;
                    values[Field::TsEcho] = read_timestamp(references.1, reader)?;
                }
                index::SACK => self.sack.read(values[Field::Ack], reader)?,
                at @ index::GENERIC.. => {
                    read_generic(&mut generics[usize::from(at - index::GENERIC)], reader)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Writes the option area. Returns false if it would exceed 40 bytes or is not a multiple of four.
    pub(crate) fn build(&self, generics: &Generics, values: &Values, options: &mut Options) -> bool {
        options.refill(|area| {
            if self.list() == [index::NOP, index::NOP, index::TIMESTAMPS] {
                area[..4].copy_from_slice(&[1, 1, 8, 10]);
                area[4..8].copy_from_slice(&values[Field::TsValue].to_be_bytes());
                area[8..12].copy_from_slice(&values[Field::TsEcho].to_be_bytes());
                return Some(12);
            }
            let mut writer = Writer::new(area);
            for &at in self.list() {
                self.write_option(at, generics, values, &mut writer).ok()?;
            }
            Some(writer.len)
        })
    }

    fn write_option(
        &self,
        at: u8,
        generics: &Generics,
        values: &Values,
        writer: &mut Writer<'_>,
    ) -> Result<(), Short> {
        match at {
            index::NOP => writer.put(&[1]),
            index::TIMESTAMPS => {
                let mut option = [8, 10, 0, 0, 0, 0, 0, 0, 0, 0];
                option[2..6].copy_from_slice(&values[Field::TsValue].to_be_bytes());
                option[6..10].copy_from_slice(&values[Field::TsEcho].to_be_bytes());
                writer.put(&option)
            }
            index::SACK => {
                writer.put(&[5, 2 + self.sack.count * 8])?;
                self.sack.edges().iter().try_for_each(|edge| writer.put(&edge.to_be_bytes()))
            }
            index::EOL => {
                let padding = [0; MAX_OPTIONS_LEN];
                writer.put(padding.get(..1 + usize::from(self.padding)).ok_or(Short)?)
            }
            index::MSS => {
                let [high, low] = self.mss.to_be_bytes();
                writer.put(&[2, 4, high, low])
            }
            index::WINDOW_SCALE => writer.put(&[3, 3, self.window_scale]),
            index::SACK_PERMITTED => writer.put(&[4, 2]),
            _ => {
                let generic = &generics[usize::from(at - index::GENERIC)];
                writer.put(&[generic.kind, generic.len + 2])?;
                writer.put(generic.data())
            }
        }
    }
}

/// generic_static_irregular, generic_stable_irregular or generic_full_irregular.
fn read_generic(generic: &mut Generic, reader: &mut Reader<'_>) -> Result<(), Short> {
    if generic.fixed {
        return Ok(());
    }
    match reader.next()? {
        0xff => Ok(()),
        0x00 => {
            let len = usize::from(generic.len);
            reader.bytes(&mut generic.data[..len])
        }
        _ => Err(Short),
    }
}
