//! The compressor's view of the item table, and how an option area becomes a list and irregular items.

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

/// More than 15 options, a malformed one, padding that is not zero or too long, or more unknown kinds than indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unlistable;

/// The item table: contents, and in how many packets each item was sent since it last changed.
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
    /// Where the next unknown option goes when all indexes are taken.
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

    /// The peer may have lost everything: all items must be sent again.
    pub(crate) fn doubt(&mut self) {
        self.sent = [0; ITEMS];
        self.list_id += 1;
    }

    /// Numbers the versions of the table.
    pub(crate) const fn list_id(&self) -> u32 {
        self.list_id
    }

    /// The peer confirmed a packet that held the whole table.
    pub(crate) fn confirm(&mut self) {
        for sent in &mut self.sent {
            if *sent > 0 {
                *sent = u8::MAX;
            }
        }
    }

    /// Enters the options of a packet; the identifiers in `values` tell whether anything is new.
    #[inline]
    pub(crate) fn observe(
        &mut self,
        bytes: &[u8],
        values: &mut Values,
        history: &History,
    ) -> Result<(), Unlistable> {
        // The options of nearly every segment of a modern host: NOP, NOP, timestamps.
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

    /// An option that leaves the list is no longer repeated: unless the peer surely has its latest contents, it comes
    /// back as a whole.
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

    /// Enters an option that has an index of its own; `None` for others and for a second one of a kind.
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

    /// Enters the bytes of another option: the index that has its kind and length, else the next free one.
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

    /// Bit per index whose item must stand in a list, because the peer may not have it.
    pub(crate) fn must_bring(&self, repeat: u8, timestamps_fit: bool) -> u16 {
        let mut bring = 0;
        for &at in self.order.list() {
            if self.sent[usize::from(at)] < repeat || (at == index::TIMESTAMPS && !timestamps_fit) {
                bring |= 1 << at;
            }
        }
        bring
    }

    /// The forms for the irregular items of TSval and TSecr; `None` when they are too far from those that the peer may have.
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

    /// Counts the items of a list that went out. Only packets in a row count: of scattered ones all may be lost.
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

    /// The irregular items of the options that no list brought.
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

/// True when eol_list_item can say this padding: zeros, and their number of bits in one byte.
fn has_form(padding: &[u8]) -> bool {
    padding.len() <= usize::from(u8::MAX / 8) && padding.iter().all(|&byte| byte == 0)
}

/// Sets `slot`; true when it had another value.
fn replace<T: PartialEq>(slot: &mut T, value: T) -> bool {
    let changed = *slot != value;
    *slot = value;
    changed
}

/// The shortest form of a timestamp that is right for every reference, as an index into [`TS_FORMS`].
#[inline]
fn timestamp_form(field: Field, value: u32, history: &History) -> Option<usize> {
    TS_FORMS.iter().position(|&(_, _, lsb)| history.fits(field, lsb, value))
}
