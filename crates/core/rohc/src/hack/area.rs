//! The option area of a pure ACK, in the form in which the codec handles it.

use crate::header::Options;

/// Bytes of `NOP NOP TS`.
const TIMESTAMPS_LEN: usize = 12;

/// One block of a SACK option: left and right edge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Block {
    pub start: u32,
    pub end: u32,
}

/// Up to four SACK blocks in the order of the option.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sack {
    blocks: [Block; 4],
    len: u8,
}

impl Sack {
    pub fn as_slice(&self) -> &[Block] {
        &self.blocks[..usize::from(self.len)]
    }

    /// Appends a block. Returns `None` if there are already four.
    pub fn push(&mut self, block: Block) -> Option<()> {
        *self.blocks.get_mut(usize::from(self.len))? = block;
        self.len += 1;
        Some(())
    }

    /// The blocks that remain after an acknowledgment of everything before `ack`. The next ACK is expected to repeat
    /// them.
    pub fn beyond(&self, ack: u32) -> Self {
        let mut rest = Self::default();
        for block in self.as_slice() {
            if (block.end.wrapping_sub(ack) as i32) > 0 {
                rest.blocks[usize::from(rest.len)] = *block;
                rest.len += 1;
            }
        }
        rest
    }
}

/// TSval and TSecr.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Timestamps {
    pub value: u32,
    pub echo: u32,
}

/// Content of an option area: parsed if it has the layout of the common stacks, raw otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Area {
    /// `[NOP NOP TS] [NOP NOP SACK]`, each part present or not, nothing else.
    Plain { timestamps: Option<Timestamps>, sack: Sack },
    /// Any other area, verbatim.
    Raw(Options),
}

impl Area {
    pub fn parse(options: &Options) -> Self {
        Self::parse_plain(options.as_bytes()).unwrap_or(Self::Raw(*options))
    }

    fn parse_plain(bytes: &[u8]) -> Option<Self> {
        let word = |at: usize| {
            let bytes = bytes.get(at..at + 4)?;
            Some(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
        };
        let mut timestamps = None;
        let mut at = 0;
        if bytes.starts_with(&[1, 1, 8, 10]) {
            timestamps = Some(Timestamps { value: word(4)?, echo: word(8)? });
            at = TIMESTAMPS_LEN;
        }
        let mut sack = Sack::default();
        if at < bytes.len() {
            let blocks = (bytes.len() - at - 4) / 8;
            if bytes[at..at + 4] != [1, 1, 5, 2 + 8 * blocks as u8] || bytes.len() != at + 4 + 8 * blocks {
                return None;
            }
            for block in 0..blocks {
                let at = at + 4 + 8 * block;
                sack.push(Block { start: word(at)?, end: word(at + 4)? })?;
            }
            // An empty SACK option would be lost.
            if blocks == 0 {
                return None;
            }
        }
        Some(Self::Plain { timestamps, sack })
    }

    /// The option area as bytes; `None` if it exceeds 40 bytes.
    #[inline]
    pub fn emit(&self) -> Option<Options> {
        let (timestamps, sack) = match self {
            Self::Raw(options) => return Some(*options),
            Self::Plain { timestamps, sack } => (timestamps, sack.as_slice()),
        };
        let mut bytes = [1; crate::header::MAX_OPTIONS_LEN];
        let mut at = 0;
        if let Some(timestamps) = timestamps {
            bytes[2..4].copy_from_slice(&[8, 10]);
            bytes[4..8].copy_from_slice(&timestamps.value.to_be_bytes());
            bytes[8..12].copy_from_slice(&timestamps.echo.to_be_bytes());
            at = TIMESTAMPS_LEN;
        }
        if !sack.is_empty() {
            let len = 2 + 8 * sack.len();
            bytes.get_mut(at + 2..at + 4)?.copy_from_slice(&[5, len as u8]);
            at += 4;
            for block in sack {
                let edges = bytes.get_mut(at..at + 8)?;
                edges[..4].copy_from_slice(&block.start.to_be_bytes());
                edges[4..].copy_from_slice(&block.end.to_be_bytes());
                at += 8;
            }
        }
        Options::new(&bytes[..at])
    }
}
