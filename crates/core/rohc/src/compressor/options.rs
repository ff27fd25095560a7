//! The compressor's item table, and the encoding of an option area as a list and irregular items.

use crate::compressor::History;
use crate::formats::{Field, Values};
use crate::header::{Options, TcpOption};
use crate::items::{Generic, Generics, ITEMS, MAX_LIST, Sack, TS_FORMS, index, write_list_head};
use crate::wire::{Short, Writer};

/// Indexes into [`TS_FORMS`] for the fields of [`TIMESTAMPS`].
pub(crate) type TimestampForms = [usize; 2];
const TIMESTAMPS: [Field; 2] = [Field::TsValue, Field::TsEcho];

/// The options of one packet as indexes into the item table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    list: [u8; MAX_LIST],
    len: u8,
}

impl Order {
    const EMPTY: Self = Self { list: [0; MAX_LIST], len: 0 };

    fn list(&self) -> &[u8] {
        &self.list[..usize::from(self.len)]
    }

    fn push(&mut self, at: u8) -> Result<(), Unlistable> {
        *self.list.get_mut(usize::from(self.len)).ok_or(Unlistable)? = at;
        self.len += 1;
        Ok(())
    }
}

/// The option area cannot be listed: more than 15 options, a malformed option, padding that is not zero or too long, or
/// more unknown kinds than free indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unlistable;

/// The item table: the contents of each item, and the number of packets that carried it since its last change.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    order: Order,
    has_timestamps: bool,
    sent: [u8; ITEMS],
    mss: u16,
    window_scale: u8,
    padding: u8,
    sack: Sack,
    generics: Generics,
    /// The index for the next unknown option when all indexes are in use.
    next_generic: u8,
    list_id: u32,
    sack_id: u32,
    generic_id: u32,
}

impl Table {
    pub(crate) const EMPTY: Self = Self {
        order: Order::EMPTY,
        has_timestamps: false,
        sent: [0; ITEMS],
        mss: 0,
        window_scale: 0,
        padding: 0,
        sack: Sack::NONE,
        generics: [Generic::EMPTY; ITEMS - index::GENERIC as usize],
        next_generic: 0,
        list_id: 1,
        sack_id: 1,
        generic_id: 1,
    };

    /// Marks all items as unsent, because the peer may have lost its table.
    pub(crate) fn doubt(&mut self) {
        self.sent = [0; ITEMS];
        self.list_id += 1;
    }

    /// Version number of the list.
    pub(crate) const fn list_id(&self) -> u32 {
        self.list_id
    }

    /// Records that the peer decompressed a packet sent with the whole current table.
    pub(crate) fn confirm(&mut self) {
        for sent in &mut self.sent {
            if *sent > 0 {
                *sent = u8::MAX;
            }
        }
    }

    /// Enters the options of a packet into the table. The identifiers in `values` change if the list or a generic item
    /// changed.
    #[inline]
    pub(crate) fn observe(
        &mut self,
        bytes: &[u8],
        values: &mut Values,
        history: &History,
    ) -> Result<(), Unlistable> {
        // Fast path for the usual options of modern hosts: NOP, NOP, timestamps.
        if let [1, 1, 8, 10, ts @ ..] = bytes
            && let Ok(ts) = <&[u8; 8]>::try_from(ts)
            && self.order.list() == [index::NOP, index::NOP, index::TIMESTAMPS]
        {
            values[Field::TsValue] = u32::from_be_bytes([ts[0], ts[1], ts[2], ts[3]]);
            values[Field::TsEcho] = u32::from_be_bytes([ts[4], ts[5], ts[6], ts[7]]);
        } else {
            self.observe_each(bytes, values, history)?;
        }
        values[Field::ListId] = self.list_id;
        values[Field::SackId] = self.sack_id;
        values[Field::GenericId] = self.generic_id;
        Ok(())
    }

    fn observe_each(
        &mut self,
        bytes: &[u8],
        values: &mut Values,
        history: &History,
    ) -> Result<(), Unlistable> {
        let mut order = Order::EMPTY;
        let mut used = 0u16;
        let mut rest = Options::iter_over(bytes);
        while let (bytes, Some(option)) = (rest.as_bytes(), rest.next()) {
            let bytes = &bytes[..bytes.len() - rest.as_bytes().len()];
            let at = match self.reserved_index(&option, used, values)? {
                Some(at) => at,
                None => self.generic_index(bytes, used)?,
            };
            used |= 1 << at;
            order.push(at)?;
        }
        if order != self.order {
            self.drop_doubtful(used, history);
            self.order = order;
            self.has_timestamps = order.list().contains(&index::TIMESTAMPS);
            self.list_id += 1;
        }
        Ok(())
    }

    /// Handles options that are no longer in the list and therefore no longer repeated. Unless every reference has
    /// their latest contents, they must be sent in full when they return.
    fn drop_doubtful(&mut self, stays: u16, history: &History) {
        let sure = |field| history.latest().is_some_and(|latest| history.all(field, latest[field as usize]));
        for &at in self.order.list() {
            let known = match at {
                index::TIMESTAMPS => sure(Field::TsValue) && sure(Field::TsEcho),
                index::SACK => sure(Field::SackId),
                index::GENERIC.. => sure(Field::GenericId),
                _ => true,
            };
            if stays & 1 << at == 0 && !known {
                self.sent[usize::from(at)] = 0;
            }
        }
    }

    /// Enters an option with a reserved index. Returns `None` for other options and for a second one of the same kind.
    fn reserved_index(
        &mut self,
        option: &TcpOption<'_>,
        used: u16,
        values: &mut Values,
    ) -> Result<Option<u8>, Unlistable> {
        let at = match option {
            TcpOption::Nop => return Ok(Some(index::NOP)),
            TcpOption::End(_) => index::EOL,
            TcpOption::Mss(_) => index::MSS,
            TcpOption::WindowScale(_) => index::WINDOW_SCALE,
            TcpOption::Timestamps { .. } => index::TIMESTAMPS,
            TcpOption::SackPermitted => index::SACK_PERMITTED,
            TcpOption::Sack(_) => index::SACK,
            TcpOption::Other { .. } => return Ok(None),
            TcpOption::Malformed(_) => return Err(Unlistable),
        };
        if used & 1 << at != 0 {
            return Ok(None);
        }
        let changed = match *option {
            TcpOption::End(padding) if !has_form(padding) => return Err(Unlistable),
            TcpOption::End(padding) => replace(&mut self.padding, padding.len() as u8),
            TcpOption::Mss(mss) => replace(&mut self.mss, mss),
            TcpOption::WindowScale(scale) => replace(&mut self.window_scale, scale),
            TcpOption::Timestamps { value, echo } => {
                values[Field::TsValue] = value;
                values[Field::TsEcho] = echo;
                false
            }
            TcpOption::Sack(bytes) => {
                if replace(&mut self.sack, Sack::from_bytes(bytes)) {
                    self.sack_id += 1;
                }
                false
            }
            _ => false,
        };
        if changed {
            self.sent[usize::from(at)] = 0;
            self.list_id += 1;
        }
        Ok(Some(at))
    }

    /// Enters any other option. Uses the index with the same kind and length, or the next free one.
    fn generic_index(&mut self, bytes: &[u8], used: u16) -> Result<u8, Unlistable> {
        let [kind, _, data @ ..] = bytes else { return Err(Unlistable) };
        let kind = *kind;
        let free = |at: &usize| used & 1 << (at + usize::from(index::GENERIC)) == 0;
        let same = |generic: &Generic| generic.kind == kind && usize::from(generic.len) == data.len();
        let count = self.generics.len();
        let found = (0..count).filter(free).find(|&at| same(&self.generics[at]));
        let at = match found {
            Some(at) => at,
            None => {
                let start = usize::from(self.next_generic);
                let at = (0..count).map(|i| (start + i) % count).find(free).ok_or(Unlistable)?;
                self.next_generic = ((at + 1) % count) as u8;
                self.generics[at] = Generic { kind, len: data.len() as u8, ..Generic::EMPTY };
                self.sent[at + usize::from(index::GENERIC)] = 0;
                self.list_id += 1;
                at
            }
        };
        let content = &mut self.generics[at].data[..data.len()];
        if content != data {
            content.copy_from_slice(data);
            self.generic_id += 1;
        }
        Ok(at as u8 + index::GENERIC)
    }

    /// Bit mask of the indexes whose items the list must carry, because the peer may not have them.
    pub(crate) fn must_bring(&self, repeat: u8, timestamps_fit: bool) -> u16 {
        let mut bring = 0;
        for &at in self.order.list() {
            if self.sent[usize::from(at)] < repeat || (at == index::TIMESTAMPS && !timestamps_fit) {
                bring |= 1 << at;
            }
        }
        bring
    }

    /// The forms of the irregular items of TSval and TSecr; `None` if a value is too far from one that the peer may
    /// hold.
    #[inline]
    pub(crate) fn timestamp_forms(&self, values: &Values, history: &History) -> Option<TimestampForms> {
        if !self.has_timestamps {
            return Some([0; 2]);
        }
        let [value, echo] = TIMESTAMPS.map(|field| timestamp_form(field, values[field], history));
        Some([value?, echo?])
    }

    /// Writes the list and the items of `bring`.
    pub(crate) fn write_list(
        &mut self,
        bring: u16,
        values: &Values,
        writer: &mut Writer<'_>,
    ) -> Result<(), Short> {
        write_list_head(self.order.list(), bring, writer)?;
        for place in 0..usize::from(self.order.len) {
            let at = self.order.list[place];
            if bring & 1 << at != 0 {
                self.write_item(at, values, writer)?;
            }
        }
        Ok(())
    }

    /// Counts the items of a list that was sent. Only consecutive packets count, because scattered ones could all be
    /// lost.
    pub(crate) fn count_sent(&mut self, bring: u16, repeat: u8) {
        let in_order = self.order.list().iter().fold(0u16, |mask, &at| mask | 1 << at);
        for (at, sent) in self.sent.iter_mut().enumerate() {
            if bring & in_order & 1 << at != 0 {
                *sent = sent.saturating_add(1);
            } else if *sent < repeat {
                *sent = 0;
            }
        }
    }

    fn write_item(&mut self, at: u8, values: &Values, writer: &mut Writer<'_>) -> Result<(), Short> {
        match at {
            index::NOP | index::SACK_PERMITTED => Ok(()),
            index::EOL => writer.put(&[self.padding * 8]),
            index::MSS => writer.put(&self.mss.to_be_bytes()),
            index::WINDOW_SCALE => writer.put(&[self.window_scale]),
            index::TIMESTAMPS => {
                writer.put(&values[Field::TsValue].to_be_bytes())?;
                writer.put(&values[Field::TsEcho].to_be_bytes())
            }
            index::SACK => self.sack.write(values[Field::Ack], writer),
            _ => self.generics[usize::from(at - index::GENERIC)].code(writer),
        }
    }

    /// Writes the irregular items of the options that the list did not carry.
    #[inline]
    pub(crate) fn write_irregular(
        &self,
        brought: u16,
        forms: TimestampForms,
        values: &Values,
        history: &History,
        writer: &mut Writer<'_>,
    ) -> Result<(), Short> {
        for &at in self.order.list() {
            if brought & 1 << at != 0 {
                continue;
            }
            match at {
                index::TIMESTAMPS => {
                    for (field, form) in TIMESTAMPS.into_iter().zip(forms) {
                        let (bytes, prefix, lsb) = TS_FORMS[form];
                        let word = u64::from(prefix | lsb.encode(values[field]));
                        writer.put_word(word << (64 - bytes * 8), bytes)?;
                    }
                }
                index::SACK if history.all(Field::SackId, self.sack_id) => writer.put(&[0])?,
                index::SACK => self.sack.write(values[Field::Ack], writer)?,
                index::GENERIC.. if history.all(Field::GenericId, self.generic_id) => writer.put(&[0xff])?,
                index::GENERIC.. => {
                    writer.put(&[0])?;
                    writer.put(self.generics[usize::from(at - index::GENERIC)].data())?;
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// True if eol_list_item can encode this padding: all zero, with a length in bits that fits one byte.
fn has_form(padding: &[u8]) -> bool {
    padding.len() <= usize::from(u8::MAX / 8) && padding.iter().all(|&byte| byte == 0)
}

/// Sets `slot`. Returns true if its value changed.
fn replace<T: PartialEq>(slot: &mut T, value: T) -> bool {
    let changed = *slot != value;
    *slot = value;
    changed
}

/// The shortest form of a timestamp that decodes correctly with every reference, as an index into [`TS_FORMS`].
fn timestamp_form(field: Field, value: u32, history: &History) -> Option<usize> {
    TS_FORMS.iter().position(|&(_, _, lsb)| history.fits(field, lsb, value))
}
