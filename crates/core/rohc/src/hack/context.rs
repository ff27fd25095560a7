//! The state of a flow at both ends: it predicts the next ACK, and the deviation from the prediction is coded
//! ([`Delta`]).
//!
//! **Context rule.** A context depends only on the native ACK that started it and on the sequence of ACKs coded since.
//! [`Context::new`] creates it and [`Context::advance`] updates it. Both ends run this same code.

use super::area::{Area, Block, Sack, Timestamps};
use super::is_carried;
use crate::compressor::gcd;
use crate::header::{Header, Ip, Options};

/// Initial guess of the step between acknowledgment numbers: the segment size over Ethernet with timestamps (1500 bytes
/// minus headers). One or two ACKs correct it if it is wrong.
const FIRST_UNIT_V4: u32 = 1448;
const FIRST_UNIT_V6: u32 = 1428;
/// Smaller segment sizes are taken for the short last segment of a write, not for a step.
const SMALLEST_UNIT: u32 = 128;

/// Expected change of the IPv4 identification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IdRule {
    /// One more than before, in network order.
    Next,
    /// One more than before, bytes swapped.
    NextSwapped,
    /// Unchanged (usually zero).
    Same,
}

impl IdRule {
    const ALL: [Self; 3] = [Self::Next, Self::NextSwapped, Self::Same];

    fn expect(self, id: u16) -> u16 {
        match self {
            Self::Next => id.wrapping_add(1),
            Self::NextSwapped => id.swap_bytes().wrapping_add(1).swap_bytes(),
            Self::Same => id,
        }
    }
}

/// Advance of the acknowledgment number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A multiple of the context's unit.
    Units(u32),
    /// Bytes, not a multiple of the unit.
    Bytes(u32),
}

/// A SACK block, relative to those that the context expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockDelta {
    /// The expected block with this index, its end advanced by `advance` bytes.
    Kept { index: u8, advance: u32 },
    /// A new block: bytes from the acknowledgment number to its start, and its length.
    New { offset: u32, length: u32 },
}

impl BlockDelta {
    const EMPTY: Self = Self::New { offset: 0, length: 0 };
}

/// The blocks of a SACK option that differ from those the context expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SackDelta {
    pub blocks: [BlockDelta; 4],
    pub len: u8,
}

impl Default for SackDelta {
    fn default() -> Self {
        Self { blocks: [BlockDelta::EMPTY; 4], len: 0 }
    }
}

/// A new layout of the option area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// Plain, with or without timestamps. SACK blocks are coded separately.
    Plain { timestamps: bool },
    /// The whole area.
    Raw(Options),
}

/// Which fields of [`Rare`] changed.
pub(super) mod rare {
    pub const TOS: u8 = 1;
    pub const TTL: u8 = 2;
    pub const FLAGS: u8 = 4;
    pub const RESERVED: u8 = 8;
    pub const URGENT: u8 = 0x10;
    pub const DONT_FRAGMENT: u8 = 0x20;
    pub const FLOW_LABEL: u8 = 0x40;
    pub const ALL: u8 = 0x7f;
}

/// Fields that rarely change. Only those in `mask` have new values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rare {
    pub mask: u8,
    /// DSCP and ECN.
    pub tos: u8,
    pub ttl: u8,
    pub flags: u8,
    pub reserved: u8,
    pub urgent: u16,
    pub flow_label: u32,
}

impl Rare {
    /// The one-byte fields and their bits in the mask, in frame order.
    pub fn bytes(&mut self) -> [(u8, &mut u8); 4] {
        [
            (rare::TOS, &mut self.tos),
            (rare::TTL, &mut self.ttl),
            (rare::FLAGS, &mut self.flags),
            (rare::RESERVED, &mut self.reserved),
        ]
    }

    fn from_header(header: &Header) -> Self {
        Self {
            mask: 0,
            tos: header.dscp << 2 | header.ip_ecn,
            ttl: header.ttl,
            flags: header.flags,
            reserved: header.reserved,
            urgent: header.urgent,
            flow_label: match header.ip {
                Ip::V4 { .. } => 0,
                Ip::V6 { flow_label, .. } => flow_label,
            },
        }
    }

    /// The values of `self`, with a mask of those that differ from `before`.
    fn beside(mut self, before: &Self) -> Self {
        let bit = |changed: bool, bit: u8| if changed { bit } else { 0 };
        self.mask = bit(self.tos != before.tos, rare::TOS)
            | bit(self.ttl != before.ttl, rare::TTL)
            | bit(self.flags != before.flags, rare::FLAGS)
            | bit(self.reserved != before.reserved, rare::RESERVED)
            | bit(self.urgent != before.urgent, rare::URGENT)
            | bit(self.flow_label != before.flow_label, rare::FLOW_LABEL);
        self
    }

    fn apply(&self, header: &mut Header) {
        if self.mask & rare::TOS != 0 {
            header.dscp = self.tos >> 2;
            header.ip_ecn = self.tos & 3;
        }
        if self.mask & rare::TTL != 0 {
            header.ttl = self.ttl;
        }
        if self.mask & rare::FLAGS != 0 {
            header.flags = self.flags;
        }
        if self.mask & rare::RESERVED != 0 {
            header.reserved = self.reserved & 0xf;
        }
        if self.mask & rare::URGENT != 0 {
            header.urgent = self.urgent;
        }
        match &mut header.ip {
            Ip::V4 { dont_fragment, .. } => *dont_fragment ^= self.mask & rare::DONT_FRAGMENT != 0,
            Ip::V6 { flow_label, .. } => {
                if self.mask & rare::FLOW_LABEL != 0 {
                    *flow_label = self.flow_label & 0xf_ffff;
                }
            }
        }
    }
}

/// Difference of an ACK from the expected one, all zero if there is none. Differences are modulo the width of the
/// field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Delta {
    pub step: Step,
    /// TSval and TSecr relative to the previous ones.
    pub value: u32,
    pub echo: u32,
    /// Window relative to the previous one.
    pub window: u16,
    /// IPv4 identification relative to the expected one.
    pub ip_id: u16,
    /// Sequence number relative to the previous one.
    pub seq: u32,
    pub sack: Option<SackDelta>,
    pub layout: Option<Layout>,
    pub rare: Rare,
}

impl Delta {
    /// An ACK exactly as expected, with an unchanged acknowledgment number.
    pub const NONE: Self = Self {
        step: Step::Units(0),
        value: 0,
        echo: 0,
        window: 0,
        ip_id: 0,
        seq: 0,
        sack: None,
        layout: None,
        rare: Rare { mask: 0, tos: 0, ttl: 0, flags: 0, reserved: 0, urgent: 0, flow_label: 0 },
    };

    /// True if only the acknowledgment number, timestamps and window differ.
    pub const fn is_plain(&self) -> bool {
        self.ip_id == 0
            && self.seq == 0
            && self.sack.is_none()
            && self.layout.is_none()
            && self.rare.mask == 0
    }
}

/// State of one flow at one end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context {
    /// The latest ACK.
    header: Header,
    /// The latest timestamps, kept while an ACK carries none.
    timestamps: Timestamps,
    sack: Sack,
    has_timestamps: bool,
    is_raw: bool,
    unit: u32,
    /// The latest step that was not a multiple of the unit.
    odd_step: u32,
    /// The expected step and the latest step, in units.
    steps: u32,
    last_steps: u32,
    /// The latest nonzero change of the window.
    window_step: u16,
    id_rule: IdRule,
}

impl Context {
    /// Creates the context that a native ACK starts.
    pub fn new(native: &Header) -> Self {
        let mut context = Self {
            header: *native,
            timestamps: Timestamps::default(),
            sack: Sack::default(),
            has_timestamps: false,
            is_raw: false,
            unit: match native.ip {
                Ip::V4 { .. } => FIRST_UNIT_V4,
                Ip::V6 { .. } => FIRST_UNIT_V6,
            },
            odd_step: 0,
            steps: 2,
            last_steps: 2,
            window_step: 0,
            id_rule: if native.ip_id() == 0 { IdRule::Same } else { IdRule::Next },
        };
        context.take_area(&Area::parse(&native.options));
        context
    }

    /// The expected step in units.
    pub const fn steps(&self) -> u32 {
        self.steps
    }

    /// The latest nonzero change of the window.
    pub const fn window_step(&self) -> u16 {
        self.window_step
    }

    /// The SACK blocks expected together with this acknowledgment number.
    fn expected_sack(&self, ack: u32) -> Sack {
        self.sack.beyond(ack)
    }

    /// Difference of `header` from the expected one. Ignores the TCP checksum, which the caller has verified.
    pub fn diff(&self, header: &Header) -> Delta {
        let last = &self.header;
        let moved = header.ack.wrapping_sub(last.ack);
        let mut delta = Delta {
            step: if moved.is_multiple_of(self.unit) {
                Step::Units(moved / self.unit)
            } else {
                Step::Bytes(moved)
            },
            window: header.window.wrapping_sub(last.window),
            seq: header.seq.wrapping_sub(last.seq),
            rare: Rare::from_header(header).beside(&Rare::from_header(last)),
            ..Delta::NONE
        };
        if let (Ip::V4 { id, dont_fragment, .. }, Ip::V4 { id: last_id, dont_fragment: last_flag, .. }) =
            (header.ip, last.ip)
        {
            delta.ip_id = id.wrapping_sub(self.id_rule.expect(last_id));
            if dont_fragment != last_flag {
                delta.rare.mask |= rare::DONT_FRAGMENT;
            }
        }
        if header.options != last.options {
            self.diff_area(&mut delta, header);
        } else if !self.sack.as_slice().is_empty() {
            self.diff_sack(&mut delta, header.ack, &self.sack);
        }
        delta
    }

    fn diff_area(&self, delta: &mut Delta, header: &Header) {
        match Area::parse(&header.options) {
            Area::Raw(options) => delta.layout = Some(Layout::Raw(options)),
            Area::Plain { timestamps, sack } => {
                if self.is_raw || timestamps.is_some() != self.has_timestamps {
                    delta.layout = Some(Layout::Plain { timestamps: timestamps.is_some() });
                }
                if let Some(timestamps) = timestamps {
                    delta.value = timestamps.value.wrapping_sub(self.timestamps.value);
                    delta.echo = timestamps.echo.wrapping_sub(self.timestamps.echo);
                }
                self.diff_sack(delta, header.ack, &sack);
            }
        }
    }

    fn diff_sack(&self, delta: &mut Delta, ack: u32, sack: &Sack) {
        let expected = self.expected_sack(ack);
        if *sack == expected {
            return;
        }
        let mut coded = SackDelta { len: sack.as_slice().len() as u8, ..SackDelta::default() };
        for (coded, block) in coded.blocks.iter_mut().zip(sack.as_slice()) {
            *coded = match expected.as_slice().iter().position(|e| e.start == block.start) {
                Some(index) => BlockDelta::Kept {
                    index: index as u8,
                    advance: block.end.wrapping_sub(expected.as_slice()[index].end),
                },
                None => BlockDelta::New {
                    offset: block.start.wrapping_sub(ack),
                    length: block.end.wrapping_sub(block.start),
                },
            };
        }
        delta.sack = Some(coded);
    }

    /// Advances to the header that differs by `delta`, computes its TCP checksum and returns it. Returns `None` if
    /// `delta` does not yield a valid pure ACK; the context is then unusable.
    ///
    /// Works in place, because copying a header that was just stored field by field is slow.
    pub fn apply(&mut self, delta: &Delta) -> Option<&Header> {
        let ack = self.header.ack.wrapping_add(match delta.step {
            Step::Units(steps) => steps.checked_mul(self.unit)?,
            Step::Bytes(bytes) => bytes,
        });
        let quiet = delta.layout.is_none() && delta.sack.is_none();
        let still = delta.value == 0 && delta.echo == 0 && self.sack.as_slice().is_empty();
        if !(quiet && (still || self.is_raw)) {
            self.take_options(&self.apply_area(delta, ack)?.emit()?);
        }
        let id = self.header.ip_id();
        let header = &mut self.header;
        header.ack = ack;
        header.window = header.window.wrapping_add(delta.window);
        header.seq = header.seq.wrapping_add(delta.seq);
        if let Ip::V4 { id, .. } = &mut header.ip {
            *id = self.id_rule.expect(*id).wrapping_add(delta.ip_id);
        }
        delta.rare.apply(header);
        if !is_carried(header) {
            return None;
        }
        header.checksum = header.tcp_checksum(&[]);
        let now = header.ip_id();
        self.learn(delta, id, now);
        Some(&self.header)
    }

    fn apply_area(&self, delta: &Delta, ack: u32) -> Option<Area> {
        let with_timestamps = match delta.layout {
            Some(Layout::Raw(options)) => return Some(Area::Raw(options)),
            Some(Layout::Plain { timestamps }) => timestamps,
            None if self.is_raw => return None,
            None => self.has_timestamps,
        };
        let timestamps = with_timestamps.then_some(Timestamps {
            value: self.timestamps.value.wrapping_add(delta.value),
            echo: self.timestamps.echo.wrapping_add(delta.echo),
        });
        let expected = self.expected_sack(ack);
        let Some(coded) = &delta.sack else {
            return Some(Area::Plain { timestamps, sack: expected });
        };
        let mut sack = Sack::default();
        for block in coded.blocks.get(..usize::from(coded.len))? {
            sack.push(match *block {
                BlockDelta::Kept { index, advance } => {
                    let kept = expected.as_slice().get(usize::from(index))?;
                    Block { start: kept.start, end: kept.end.wrapping_add(advance) }
                }
                BlockDelta::New { offset, length } => {
                    let start = ack.wrapping_add(offset);
                    Block { start, end: start.wrapping_add(length) }
                }
            })?;
        }
        Some(Area::Plain { timestamps, sack })
    }

    /// Advances to `header`, which differs by `delta` from the expected one.
    pub fn advance(&mut self, delta: &Delta, header: &Header) {
        self.learn(delta, self.header.ip_id(), header.ip_id());
        self.take_options(&header.options);
        self.header = *header;
    }

    /// Updates the predictions after an ACK that differed by `delta`. `id` is its IPv4 identification, `last_id` that
    /// of the previous ACK.
    fn learn(&mut self, delta: &Delta, last_id: u16, id: u16) {
        match delta.step {
            Step::Units(steps) => {
                // Two equal steps in a row become the expected one, so a single unusual step does not change it.
                if steps == self.last_steps {
                    self.steps = steps;
                }
                self.last_steps = steps;
            }
            Step::Bytes(bytes) => self.learn_unit(bytes),
        }
        if delta.window != 0 {
            self.window_step = delta.window;
        }
        if delta.ip_id != 0
            && let Some(rule) = IdRule::ALL.into_iter().find(|rule| rule.expect(last_id) == id)
        {
            self.id_rule = rule;
        }
    }

    fn take_options(&mut self, options: &Options) {
        if *options != self.header.options {
            self.header.options = *options;
            self.take_area(&Area::parse(options));
        }
    }

    /// Sets the unit to its greatest common divisor with this odd step, or, if that is too small, to that of the
    /// previous odd step with this one.
    fn learn_unit(&mut self, bytes: u32) {
        let candidates = [self.unit, self.odd_step];
        if let Some(unit) =
            candidates.map(|known| gcd(known, bytes)).into_iter().find(|&u| u >= SMALLEST_UNIT)
            && unit <= u32::from(u16::MAX)
        {
            self.unit = unit;
        }
        self.odd_step = bytes;
    }

    fn take_area(&mut self, area: &Area) {
        self.is_raw = matches!(area, Area::Raw(_));
        self.sack = Sack::default();
        self.has_timestamps = false;
        if let Area::Plain { timestamps, sack } = area {
            self.sack = *sack;
            self.has_timestamps = timestamps.is_some();
            self.timestamps = timestamps.unwrap_or(self.timestamps);
        }
    }

    /// A number of bytes as one value: twice the number of units, or twice the bytes plus one.
    pub fn scale(&self, bytes: u32) -> u64 {
        if bytes.is_multiple_of(self.unit) {
            u64::from(bytes / self.unit) << 1
        } else {
            u64::from(bytes) << 1 | 1
        }
    }

    /// Inverse of [`Context::scale`]; `None` if the bytes do not fit in 32 bits.
    pub fn unscale(&self, figure: u64) -> Option<u32> {
        let number = u32::try_from(figure >> 1).ok()?;
        if figure & 1 == 0 { number.checked_mul(self.unit) } else { Some(number) }
    }
}

/// A step as one value, as [`Context::scale`] does for bytes.
pub(super) fn step_figure(step: Step) -> u64 {
    match step {
        Step::Units(steps) => u64::from(steps) << 1,
        Step::Bytes(bytes) => u64::from(bytes) << 1 | 1,
    }
}

/// Inverse of [`step_figure`]; `None` if the number does not fit in 32 bits.
pub(super) fn figure_step(figure: u64) -> Option<Step> {
    let number = u32::try_from(figure >> 1).ok()?;
    Some(if figure & 1 == 0 { Step::Units(number) } else { Step::Bytes(number) })
}

/// Maps signed 16-bit differences to small values: 0, -1, 1, -2, ... become 0, 1, 2, 3, ...
pub(super) const fn zigzag(difference: u16) -> u16 {
    let signed = difference as i16;
    ((signed << 1) ^ (signed >> 15)) as u16
}

/// Inverse of [`zigzag`].
pub(super) const fn unzigzag(figure: u16) -> u16 {
    (figure >> 1) ^ (figure & 1).wrapping_neg()
}
