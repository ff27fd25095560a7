//! TCP options, laid out as Linux does and as [`Segment::header_len`] counts.

use etherparse::{TcpHeader, TcpOptionElement};

use super::{DecodeError, EncodeError};
use crate::tcp::{SackBlocks, SackRange, Segment, Timestamps};
use crate::units::SeqNumber;

/// Option kinds (RFC 9293 section 3.1, RFC 7323 sections 2.2 and 3.2, RFC 2018 sections 2 and 3).
const NOP: u8 = 1;
pub(super) const MSS: u8 = 2;
pub(super) const WINDOW_SCALE: u8 = 3;
pub(super) const SACK_PERMITTED: u8 = 4;
pub(super) const SACK: u8 = 5;
pub(super) const TIMESTAMPS: u8 = 8;

/// Most bytes of options, because the data offset allows 60 bytes of header.
const MAX_LEN: usize = 40;

/// Encoded options.
pub(super) struct Encoded {
    bytes: [u8; MAX_LEN],
    len: usize,
}

impl Encoded {
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    fn push(&mut self, bytes: &[u8]) {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }
}

pub(super) fn encode(segment: &Segment) -> Result<Encoded, EncodeError> {
    let len = segment.header_len() - 20;
    if len as usize > MAX_LEN {
        return Err(EncodeError::Options(len));
    }
    let mut options = Encoded { bytes: [0; MAX_LEN], len: 0 };
    if let Some(mss) = segment.mss {
        options.push(&[MSS, 4]);
        options.push(&mss.to_be_bytes());
    }
    // SACK-permitted takes the place of the two padding bytes before the timestamps.
    if segment.sack_permitted {
        options.push(&[SACK_PERMITTED, 2]);
    }
    if let Some(stamps) = segment.timestamps {
        if !segment.sack_permitted {
            options.push(&[NOP, NOP]);
        }
        options.push(&[TIMESTAMPS, 10]);
        options.push(&stamps.value.to_be_bytes());
        options.push(&stamps.echo_reply.to_be_bytes());
    } else if segment.sack_permitted {
        options.push(&[NOP, NOP]);
    }
    if let Some(scale) = segment.window_scale {
        options.push(&[NOP, WINDOW_SCALE, 3, scale]);
    }
    let blocks = segment.sack.as_slice();
    if !blocks.is_empty() {
        options.push(&[NOP, NOP, SACK, 2 + 8 * blocks.len() as u8]);
        for block in blocks {
            options.push(&block.start.0.to_be_bytes());
            options.push(&block.end.0.to_be_bytes());
        }
    }
    debug_assert_eq!(options.len, len as usize, "Segment::header_len counts the options laid out here");
    Ok(options)
}

/// Parses the options of `header` into `segment`. Any order can be parsed, but only the layout of [`encode`] is
/// accepted, so that each packet has only one form.
pub(super) fn decode(header: &TcpHeader, segment: &mut Segment) -> Result<(), DecodeError> {
    for option in header.options_iterator() {
        match option.map_err(|_| DecodeError::TcpOptions)? {
            TcpOptionElement::Noop => {}
            TcpOptionElement::MaximumSegmentSize(mss) => segment.mss = Some(mss),
            TcpOptionElement::WindowScale(scale) => segment.window_scale = Some(scale),
            TcpOptionElement::SelectiveAcknowledgementPermitted => segment.sack_permitted = true,
            TcpOptionElement::SelectiveAcknowledgement(first, rest) => {
                segment.sack = SackBlocks::EMPTY;
                for (start, end) in core::iter::once(first).chain(rest.into_iter().flatten()) {
                    segment.sack.push(SackRange { start: SeqNumber(start), end: SeqNumber(end) });
                }
            }
            TcpOptionElement::Timestamp(value, echo_reply) => {
                segment.timestamps = Some(Timestamps { value, echo_reply });
            }
        }
    }
    let again = encode(segment).map_err(|_| DecodeError::TcpOptions)?;
    if again.as_slice() == header.options.as_slice() { Ok(()) } else { Err(DecodeError::TcpOptions) }
}
