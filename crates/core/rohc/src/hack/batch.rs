//! The batch coding: all ACKs of a frame as one run, range coded with probabilities that the context has learnt.
//!
//! A run-length code pays whole bytes for every exception. With an adaptive probability per decision, only deviations
//! are expensive; a decision that turns out as expected costs a few hundredths of a bit. The probabilities are part of
//! the context. They start from a fixed table and adapt with every ACK, in the same way at both ends.

use super::context::{
    BlockDelta, Context, Delta, Layout, Rare, SackDelta, Step, figure_step, rare, step_figure, unzigzag,
    zigzag,
};
use super::range::{BitCoder, Chance, Number};
use crate::header::Options;

/// Number of positions in a frame that have separate probabilities for the end of the frame.
const POSITIONS: usize = 32;

/// Adaptive probabilities of one flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Model {
    last: [Chance; POSITIONS],
    /// The step equals the expected one; indexed by position in the frame and whether the previous step did.
    step_expected: [Chance; 8],
    /// The value of a step; separate for the last of several ACKs, and for all other positions.
    step: [Number; 2],
    /// The timestamps changed; indexed by first or later in the frame, and whether the previous ones did.
    timestamps: [Chance; 4],
    value: [Number; 2],
    /// Rise of TSecr; indexed by the rise of TSval: zero, one, or more.
    echo: [Number; 3],
    window: [Chance; 4],
    window_again: [Chance; 2],
    window_step: Number,
    /// Some other field differs; indexed by whether this was so in the previous ACK.
    other: [Chance; 2],
    others: [Chance; 5],
    seq: Number,
    blocks: [Chance; 8],
    block_new: [Chance; 4],
    block_index: [Chance; 4],
    block_moved: [Chance; 4],
    advance: Number,
    offset: Number,
    length: Number,
    rare: [Chance; 8],
    previous: Previous,
}

/// Properties of the previous ACK, which select the probabilities for the next one.
#[derive(Clone, Copy, Debug, Default)]
struct Previous {
    step_expected: bool,
    timestamps: bool,
    window: bool,
    other: bool,
}

/// Position of an ACK in its frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct FramePosition {
    /// Number of ACKs before it.
    pub index: usize,
    /// It is the last ACK.
    pub is_last: bool,
}

impl Model {
    /// The initial table of both ends.
    pub const NEW: Self = Self {
        last: [Chance::SELDOM; POSITIONS],
        step_expected: [Chance::OFTEN; 8],
        step: [Number::NEW; 2],
        timestamps: [Chance::SELDOM, Chance::SELDOM, Chance::OFTEN, Chance::OFTEN],
        value: [Number::NEW; 2],
        echo: [Number::NEW; 3],
        window: [Chance::RARE; 4],
        window_again: [Chance::EVEN; 2],
        window_step: Number::NEW,
        other: [Chance::RARE, Chance::EVEN],
        others: [Chance::EVEN; 5],
        seq: Number::NEW,
        blocks: [Chance::EVEN; 8],
        block_new: [Chance::EVEN; 4],
        block_index: [Chance::EVEN; 4],
        block_moved: [Chance::EVEN; 4],
        advance: Number::NEW,
        offset: Number::NEW,
        length: Number::NEW,
        rare: [Chance::EVEN; 8],
        previous: Previous { step_expected: true, timestamps: false, window: false, other: false },
    };

    /// Codes whether the ACK at `index` ends the frame.
    pub fn last<C: BitCoder>(&mut self, coder: &mut C, index: usize, is_last: bool) -> bool {
        coder.bit(&mut self.last[index.min(POSITIONS - 1)], is_last)
    }

    /// Codes one ACK. Returns `None` if the bits read do not form one.
    pub fn ack<C: BitCoder>(
        &mut self,
        c: &mut C,
        context: &Context,
        place: FramePosition,
        given: &Delta,
    ) -> Option<Delta> {
        let mut delta = Delta::NONE;
        let was = self.previous;
        let first = place.index == 0;
        let other = c.bit(&mut self.other[usize::from(was.other)], !given.is_plain());
        delta.step = self.step(c, context, place, given.step)?;
        let at = usize::from(first) * 2 + usize::from(was.timestamps);
        let moved = c.bit(&mut self.timestamps[at], given.value != 0 || given.echo != 0);
        if moved {
            (delta.value, delta.echo) = self.timestamps(c, first, given)?;
        }
        self.previous.timestamps = moved;
        delta.window = self.window(c, context, given.window)?;
        if other {
            self.others(c, context, given, &mut delta)?;
        }
        self.previous.other = other;
        Some(delta)
    }

    fn step<C: BitCoder>(
        &mut self,
        c: &mut C,
        context: &Context,
        place: FramePosition,
        given: Step,
    ) -> Option<Step> {
        let alone_or_inner = !place.is_last || place.index == 0;
        let at = usize::from(place.index == 0) * 4
            + usize::from(place.is_last) * 2
            + usize::from(self.previous.step_expected);
        let expected = Step::Units(context.steps());
        let hit = c.bit(&mut self.step_expected[at], given == expected);
        self.previous.step_expected = hit;
        if hit {
            return Some(expected);
        }
        let number = &mut self.step[usize::from(!alone_or_inner)];
        figure_step(number.code(c, step_figure(given)))
    }

    fn timestamps<C: BitCoder>(&mut self, c: &mut C, first: bool, given: &Delta) -> Option<(u32, u32)> {
        let value = u32::try_from(self.value[usize::from(first)].code(c, given.value.into())).ok()?;
        let echo = u32::try_from(self.echo[value.min(2) as usize].code(c, given.echo.into())).ok()?;
        Some((value, echo))
    }

    fn window<C: BitCoder>(&mut self, c: &mut C, context: &Context, given: u16) -> Option<u16> {
        let was = self.previous.window;
        let at = usize::from(was) + 2 * usize::from(self.previous.step_expected);
        let moved = c.bit(&mut self.window[at], given != 0);
        self.previous.window = moved;
        if !moved {
            return Some(0);
        }
        if c.bit(&mut self.window_again[usize::from(was)], given == context.window_step()) {
            return Some(context.window_step());
        }
        let figure = self.window_step.code(c, zigzag(given).into());
        Some(unzigzag(u16::try_from(figure).ok()?))
    }

    fn others<C: BitCoder>(
        &mut self,
        c: &mut C,
        context: &Context,
        given: &Delta,
        delta: &mut Delta,
    ) -> Option<()> {
        if c.bit(&mut self.others[0], given.ip_id != 0) {
            delta.ip_id = c.plain(16, given.ip_id.into()) as u16;
        }
        if c.bit(&mut self.others[1], given.seq != 0) {
            delta.seq = u32::try_from(self.seq.code(c, given.seq.into())).ok()?;
        }
        if c.bit(&mut self.others[2], given.sack.is_some()) {
            delta.sack = Some(self.sack(c, context, &given.sack.unwrap_or_default())?);
        }
        if c.bit(&mut self.others[3], given.layout.is_some()) {
            delta.layout = Some(layout(c, given.layout)?);
        }
        if c.bit(&mut self.others[4], given.rare.mask != 0) {
            delta.rare = self.rare(c, &given.rare);
        }
        Some(())
    }

    fn sack<C: BitCoder>(&mut self, c: &mut C, context: &Context, given: &SackDelta) -> Option<SackDelta> {
        let mut len = 1;
        for at in (0..3).rev() {
            let bit = c.bit(&mut self.blocks[len], given.len >> at & 1 != 0);
            len = len << 1 | usize::from(bit);
        }
        let mut sack = SackDelta { len: (len & 7) as u8, ..SackDelta::default() };
        for (i, block) in sack.blocks.get_mut(..len & 7)?.iter_mut().enumerate() {
            *block = self.block(c, context, i, given.blocks[i])?;
        }
        Some(sack)
    }

    fn block<C: BitCoder>(
        &mut self,
        c: &mut C,
        context: &Context,
        i: usize,
        given: BlockDelta,
    ) -> Option<BlockDelta> {
        let (is_new, index, advance, offset, length) = match given {
            BlockDelta::New { offset, length } => (true, 0, 0, offset, length),
            BlockDelta::Kept { index, advance } => (false, index, advance, 0, 0),
        };
        if c.bit(&mut self.block_new[i], is_new) {
            return Some(BlockDelta::New {
                offset: context.unscale(self.offset.code(c, context.scale(offset)))?,
                length: context.unscale(self.length.code(c, context.scale(length)))?,
            });
        }
        // The index is usually the block's own position, or one less after a new block.
        let mut index = index;
        let mut expected = i as u8;
        if !c.bit(&mut self.block_index[i], index == expected) {
            index = c.plain(2, index.into()) as u8;
            expected = index;
        }
        let moved = c.bit(&mut self.block_moved[i], advance != 0);
        let advance = if moved { context.unscale(self.advance.code(c, context.scale(advance)))? } else { 0 };
        Some(BlockDelta::Kept { index: expected, advance })
    }

    fn rare<C: BitCoder>(&mut self, c: &mut C, given: &Rare) -> Rare {
        let mut fields = Rare { mask: 0, ..*given };
        for bit in 0..7 {
            if c.bit(&mut self.rare[bit], given.mask >> bit & 1 != 0) {
                fields.mask |= 1 << bit;
            }
        }
        let mask = fields.mask;
        for (bit, field) in fields.bytes() {
            if mask & bit != 0 {
                *field = c.plain(8, u32::from(*field)) as u8;
            }
        }
        if fields.mask & rare::URGENT != 0 {
            fields.urgent = c.plain(16, fields.urgent.into()) as u16;
        }
        if fields.mask & rare::FLOW_LABEL != 0 {
            fields.flow_label = c.plain(20, fields.flow_label);
        }
        fields
    }
}

fn layout<C: BitCoder>(c: &mut C, given: Option<Layout>) -> Option<Layout> {
    let (is_raw, timestamps, bytes) = match given {
        Some(Layout::Raw(options)) => (true, false, options),
        Some(Layout::Plain { timestamps }) => (false, timestamps, Options::NONE),
        None => (false, false, Options::NONE),
    };
    if c.plain(1, is_raw.into()) == 0 {
        return Some(Layout::Plain { timestamps: c.plain(1, timestamps.into()) != 0 });
    }
    let words = c.plain(4, bytes.as_bytes().len() as u32 / 4);
    let mut area = [0; crate::header::MAX_OPTIONS_LEN];
    let area = area.get_mut(..4 * words as usize)?;
    for (i, byte) in area.iter_mut().enumerate() {
        *byte = c.plain(8, bytes.as_bytes().get(i).copied().unwrap_or(0).into()) as u8;
    }
    Options::new(area).map(Layout::Raw)
}
