//! The per-ACK coding of the paper: a separate compressed header for each ACK (section 3.3.2).
//!
//! ```text
//!   0   1 2 3   4 5   6 7
//! +---+-------+-----+-----+
//! | 0 | units | TSv | TSe |   short: step in units, rise of TSval and TSecr
//! +---+-------+-----+-----+
//! | 1 | a t w i s q r     |   long: which fields follow
//! +---+---------+---------+
//! | 0 |   MSN   |  CRC-3  |   all but the first ACK of a frame
//! +---+---------+---------+
//! |  fields of a long one |
//! +-----------------------+
//! ```
//!
//! Fields of the long form, in this order, each present if its bit is set: `a` value of the step (varint; otherwise the
//! expected step), `t` rise of TSval and TSecr (a nibble each; 15 means that a varint follows), `w` window difference
//! (zigzag varint), `i` IP-ID relative to the expected one (16 bits), `s` SACK blocks, `q` sequence number difference
//! (varint), `r` everything else.

use super::bytes::{Bytes, Reader, Writer};
use super::context::{
    BlockDelta, Context, Delta, Layout, Rare, SackDelta, Step, figure_step, rare, step_figure, unzigzag,
    zigzag,
};
use super::frame::Kind;
use super::memory::List;
use crate::crc::CRC3;
use crate::header::Options;

const LONG: u8 = 0x80;
const STEP: u8 = 0x40;
const TIMESTAMPS: u8 = 0x20;
const WINDOW: u8 = 0x10;
const IP_ID: u8 = 0x08;
const SACK: u8 = 0x04;
const SEQ: u8 = 0x02;
const REST: u8 = 0x01;
/// Flag next to the bits of [`rare`]: a new layout of the option area follows.
const LAYOUT: u8 = 0x80;

/// Layout bytes that cannot be the length of a raw area.
const PLAIN: u8 = 0xfe;
const PLAIN_WITH_TIMESTAMPS: u8 = 0xff;

/// Smaller advances of a SACK block share a byte with its index; from this value on, a varint follows.
const FAR: u8 = 63;

/// The kind of a frame whose header alone encodes this first ACK, if there is one.
pub(super) fn head(context: &Context, delta: &Delta) -> Option<Kind> {
    let expected = delta.step == Step::Units(context.steps()) && delta.window == 0 && delta.is_plain();
    (expected && delta.value < 3 && delta.echo < 3)
        .then(|| Kind::Short { pair: delta.value as u8 * 3 + delta.echo as u8 })
}

/// The ACK that `pair` in the frame header encodes.
pub(super) fn from_head(context: &Context, pair: u8) -> Delta {
    Delta {
        step: Step::Units(context.steps()),
        value: u32::from(pair / 3),
        echo: u32::from(pair % 3),
        ..Delta::NONE
    }
}

/// The second byte of the ACK with this MSN and these header bytes: MSN and CRC-3.
pub(super) fn mark(msn: u8, bytes: &[u8]) -> u8 {
    (msn & 0xf) << 3 | CRC3.check(bytes)
}

/// Appends an ACK. `mark` is its second byte; the first ACK of a frame has none.
pub(super) fn write(out: &mut impl List<u8>, context: &Context, delta: &Delta, mark: Option<u8>) {
    let form = form_of(context, delta);
    let mut writer = Writer::new(out);
    // A writer never fails.
    let _ = writer.byte(form);
    if let Some(mark) = mark {
        let _ = writer.byte(mark);
    }
    if form & LONG != 0 {
        let _ = fields(&mut writer, context, form, delta);
    }
}

/// Reads an ACK and its second byte, which is `None` for the first ACK of a frame.
pub(super) fn read(reader: &mut Reader<'_>, context: &Context, first: bool) -> Option<(Delta, Option<u8>)> {
    let form = reader.byte(0)?;
    let mark = if first { None } else { Some(reader.byte(0)?) };
    let delta = if form & LONG == 0 {
        Delta {
            step: Step::Units(u32::from(form >> 4)),
            value: u32::from(form >> 2 & 3),
            echo: u32::from(form & 3),
            ..Delta::NONE
        }
    } else {
        let none = Delta { step: Step::Units(context.steps()), ..Delta::NONE };
        fields(reader, context, form, &none)?
    };
    Some((delta, mark))
}

fn form_of(context: &Context, delta: &Delta) -> u8 {
    if let Step::Units(steps @ 0..8) = delta.step
        && delta.window == 0
        && delta.is_plain()
        && delta.value < 4
        && delta.echo < 4
    {
        return (steps as u8) << 4 | (delta.value as u8) << 2 | delta.echo as u8;
    }
    let bit = |set: bool, bit: u8| if set { bit } else { 0 };
    LONG | bit(delta.step != Step::Units(context.steps()), STEP)
        | bit(delta.value != 0 || delta.echo != 0, TIMESTAMPS)
        | bit(delta.window != 0, WINDOW)
        | bit(delta.ip_id != 0, IP_ID)
        | bit(delta.sack.is_some(), SACK)
        | bit(delta.seq != 0, SEQ)
        | bit(delta.layout.is_some() || delta.rare.mask != 0, REST)
}

/// Reads or writes the fields of a long form.
fn fields(io: &mut impl Bytes, context: &Context, form: u8, given: &Delta) -> Option<Delta> {
    let mut delta = *given;
    if form & STEP != 0 {
        delta.step = figure_step(io.varint(step_figure(given.step))?)?;
    }
    if form & TIMESTAMPS != 0 {
        let nibble = |rise: u32| rise.min(15) as u8;
        let byte = io.byte(nibble(given.value) << 4 | nibble(given.echo))?;
        for (rise, nibble) in [(&mut delta.value, byte >> 4), (&mut delta.echo, byte & 15)] {
            *rise = if nibble == 15 { io.varint32(*rise)? } else { u32::from(nibble) };
        }
    }
    if form & WINDOW != 0 {
        delta.window = unzigzag(u16::try_from(io.varint(zigzag(given.window).into())?).ok()?);
    }
    if form & IP_ID != 0 {
        delta.ip_id = io.short(given.ip_id)?;
    }
    if form & SACK != 0 {
        delta.sack = Some(sack(io, context, &given.sack.unwrap_or_default())?);
    }
    if form & SEQ != 0 {
        delta.seq = io.varint32(given.seq)?;
    }
    if form & REST != 0 {
        let mask = io.byte(given.rare.mask | if given.layout.is_some() { LAYOUT } else { 0 })?;
        if mask & LAYOUT != 0 {
            delta.layout = Some(layout(io, given.layout)?);
        }
        delta.rare = rare_fields(io, mask & rare::ALL, &given.rare)?;
    }
    Some(delta)
}

/// Reads or writes SACK blocks: a byte with their number and a mask of the new ones, then each block.
fn sack(io: &mut impl Bytes, context: &Context, given: &SackDelta) -> Option<SackDelta> {
    let new = |coded: &SackDelta| {
        let bits = coded.blocks.iter().take(usize::from(coded.len)).enumerate();
        bits.fold(0, |mask, (i, block)| mask | u8::from(matches!(block, BlockDelta::New { .. })) << i)
    };
    let head = io.byte(given.len << 4 | new(given))?;
    let mut sack = SackDelta { len: head >> 4, ..SackDelta::default() };
    for (i, block) in sack.blocks.get_mut(..usize::from(head >> 4))?.iter_mut().enumerate() {
        *block = if head >> i & 1 != 0 {
            let (offset, length) = match given.blocks[i] {
                BlockDelta::New { offset, length } => (offset, length),
                BlockDelta::Kept { .. } => (0, 0),
            };
            BlockDelta::New {
                offset: context.unscale(io.varint(context.scale(offset))?)?,
                length: context.unscale(io.varint(context.scale(length))?)?,
            }
        } else {
            kept(io, context, given.blocks[i])?
        };
    }
    Some(sack)
}

fn kept(io: &mut impl Bytes, context: &Context, given: BlockDelta) -> Option<BlockDelta> {
    let (index, advance) = match given {
        BlockDelta::Kept { index, advance } => (index, advance),
        BlockDelta::New { .. } => (0, 0),
    };
    let figure = context.scale(advance);
    let near = if figure & 1 == 0 && figure < u64::from(FAR) * 2 { (figure / 2) as u8 } else { FAR };
    let byte = io.byte(index << 6 | near)?;
    let figure = if byte & FAR == FAR { io.varint(figure)? } else { u64::from(byte & FAR) * 2 };
    Some(BlockDelta::Kept { index: byte >> 6, advance: context.unscale(figure)? })
}

fn layout(io: &mut impl Bytes, given: Option<Layout>) -> Option<Layout> {
    let (head, bytes) = match given {
        Some(Layout::Plain { timestamps: false }) | None => (PLAIN, Options::NONE),
        Some(Layout::Plain { timestamps: true }) => (PLAIN_WITH_TIMESTAMPS, Options::NONE),
        Some(Layout::Raw(options)) => (options.as_bytes().len() as u8, options),
    };
    match io.byte(head)? {
        PLAIN => Some(Layout::Plain { timestamps: false }),
        PLAIN_WITH_TIMESTAMPS => Some(Layout::Plain { timestamps: true }),
        len => {
            let mut area = [0; crate::header::MAX_OPTIONS_LEN];
            let area = area.get_mut(..usize::from(len))?;
            for (i, byte) in area.iter_mut().enumerate() {
                *byte = io.byte(bytes.as_bytes().get(i).copied().unwrap_or(0))?;
            }
            Options::new(area).map(Layout::Raw)
        }
    }
}

fn rare_fields(io: &mut impl Bytes, mask: u8, given: &Rare) -> Option<Rare> {
    let mut fields = Rare { mask, ..*given };
    for (bit, field) in fields.bytes() {
        if mask & bit != 0 {
            *field = io.byte(*field)?;
        }
    }
    if mask & rare::URGENT != 0 {
        fields.urgent = io.short(fields.urgent)?;
    }
    if mask & rare::FLOW_LABEL != 0 {
        fields.flow_label = io.varint32(fields.flow_label)?;
    }
    Some(fields)
}
