//! Encoding and decoding of TACK's packets (`docs/references/tack-wire.md`).
//!
//! A packet has one form, and bytes of another are refused: all that [`decode`] takes, [`encode`] makes again, byte for byte.
//! Nothing is allocated for a list before its bytes are known to be there.

use std::sync::Arc;

use super::layout::Layout;
use super::packet::{
    Block, Body, Cause, CloseCode, ConnectionId, Control, Data, Datagram, Hello, InstantAck, MAX_LIST,
    Packet, Reason, Stamp, StreamId, Sync, TAG_LEN, Tack, Token,
};
use super::protect::{Forged, Protector, Tag, Unprotected};
use crate::units::SeqNumber;

pub use super::layout::Misread;

/// Types, in the high half of a packet's first byte. 0 and 15 stand for nothing.
mod kind {
    pub const OPEN: u8 = 1 << 4;
    pub const ANSWER: u8 = 2 << 4;
    pub const DATA: u8 = 3 << 4;
    pub const TACK: u8 = 4 << 4;
    pub const INSTANT: u8 = 5 << 4;
    pub const SYNC: u8 = 6 << 4;
    pub const PROBE: u8 = 7 << 4;
    pub const CLOSE: u8 = 8 << 4;
    pub const CONTROL: u8 = 9 << 4;
    pub const DATAGRAM: u8 = 10 << 4;
    pub const CHALLENGE: u8 = 11 << 4;
    pub const RESPONSE: u8 = 12 << 4;
    /// Data with its number and time stamp in two bytes each.
    pub const SHORT: u8 = 13 << 4;
    /// The same, without the number of the connection.
    pub const IMPLIED: u8 = 14 << 4;
    /// Where the type stands.
    pub const MASK: u8 = 0xf0;
}

/// Kind of a control packet, in the byte behind the prefix.
mod control {
    pub const RESET: u8 = 1;
    pub const STOP: u8 = 2;
    pub const STREAMS: u8 = 3;
    pub const HELD: u8 = 4;
}

/// The byte of a [`CloseCode`] that says that a [`Reason`] follows.
const WITH_REASON: u8 = 5;

/// Flags of data, in the low half; of these a datagram may have the last. In opening packets that half is a number.
mod flag {
    pub const FIN: u8 = 1;
    pub const IMMEDIATE_ACK: u8 = 2;
    /// The number of the stream follows, which is not 0.
    pub const STREAM: u8 = 4;
    /// A `Sync` follows.
    pub const SYNC: u8 = 8;
}

/// A violation of the format that no correct sender commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsound {
    /// An opening packet has connection 0, and no other but a Close has it.
    #[error("a packet to connection {0} of that type")]
    Connection(u32),
    /// A Hello whose sender has no number for the connection.
    #[error("a Hello with 0 for its sender's connection")]
    OwnConnection,
    /// An opening packet answers nothing.
    #[error("an opening packet that echoes a time stamp")]
    Echo,
    /// More entries than a list's length can say.
    #[error("a list of more than {MAX_LIST} entries")]
    LongList,
    /// Blocks that end before they begin, overlap, are not in order, or lie half the circle or more above `cumulative`.
    #[error("blocks that are not in order")]
    Blocks,
    /// A packet that is both received and missing.
    #[error("a packet both received and missing")]
    Both,
    /// More repeated blocks than there are blocks.
    #[error("more of the unacked list are repeated than it has")]
    Repeated,
    /// A number or a time stamp that its two bytes cannot say.
    #[error("{0:#x} in two bytes")]
    Short(u32),
    /// A stream with a number that is none.
    #[error("stream {0}")]
    Stream(u32),
    /// More streams than the field can say.
    #[error("2^{0} streams")]
    Streams(u8),
    /// Words that are too many.
    #[error("{0} bytes of a reason")]
    LongReason(usize),
    /// An IACK for a loss without a packet between the two that it names.
    #[error("an IACK for a loss that encloses no hole")]
    NoHole,
}

/// Why a packet has no form in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// The content is not as long as the packet says.
    #[error("{0} bytes of a stream in a packet with {1}")]
    Content(usize, u32),
    /// It breaks a rule of the format.
    #[error(transparent)]
    Unsound(#[from] Unsound),
}

/// Why bytes are no packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// They end too early, or a field holds a value that stands for nothing.
    #[error(transparent)]
    Misread(#[from] Misread),
    /// More bytes than the packet has, or than a length can say.
    #[error("{0} bytes too many")]
    TooLong(usize),
    /// A type that stands for nothing, or flags that it does not have.
    #[error("unknown type and flags {0:#04x}")]
    Kind(u8),
    /// Stream 0, which goes without saying.
    #[error("stream 0 is named")]
    StreamZero,
    /// Padding that is not zeros.
    #[error("padding that is not zeros")]
    Padding,
    /// A reason that is not in UTF-8.
    #[error("a reason that is no text")]
    Text,
    /// The tag is not that of the packet.
    #[error(transparent)]
    Forged(#[from] Forged),
    /// It breaks a rule of the format.
    #[error(transparent)]
    Unsound(#[from] Unsound),
}

/// Appends `packet` with `content`, the bytes of its stream, and a tag of zeros to `bytes`, which is unchanged on error.
///
/// # Errors
///
/// Where `content` is not as long as the packet says, or the packet breaks a rule of the format.
pub fn encode(packet: &Packet, content: &[u8], bytes: &mut Vec<u8>) -> Result<(), EncodeError> {
    encode_sealed(packet, content, u64::from(packet.number.0), &Unprotected, bytes)
}

/// [`encode`] under protection; `number` is the whole packet number.
///
/// # Errors
///
/// As [`encode`].
pub fn encode_sealed(
    packet: &Packet,
    content: &[u8],
    number: u64,
    protector: &impl Protector,
    bytes: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    encode_from(packet, |bytes| bytes.extend_from_slice(content), number, protector, bytes)
}

/// [`encode_sealed`] where `append` appends the content, which so is copied once.
///
/// # Errors
///
/// As [`encode`].
pub fn encode_from(
    packet: &Packet,
    append: impl FnOnce(&mut Vec<u8>),
    number: u64,
    protector: &impl Protector,
    bytes: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    check(packet)?;
    let carried = if packet.is_short() { u32::from(number as u16) } else { number as u32 };
    debug_assert_eq!(SeqNumber(carried), packet.number, "the whole number ends in that of the packet");
    let start = bytes.len();
    bytes.reserve(packet.len() as usize);
    bytes.push(first_byte(packet));
    if packet.is_short() {
        if packet.connection != ConnectionId(0) {
            packet.connection.write(bytes);
        }
        write_short(packet.number.0, bytes);
    } else {
        packet.connection.write(bytes);
        packet.number.write(bytes);
    }
    write_body(&packet.body, bytes);
    let content = bytes.len();
    append(bytes);
    let content = bytes.len() - content;
    if content != packet.payload_len() as usize {
        bytes.truncate(start);
        return Err(EncodeError::Content(content, packet.payload_len()));
    }
    let (header, body) = bytes[start..].split_at_mut(packet.prefix_len() as usize);
    let tag = protector.seal(number, header, body);
    bytes.extend_from_slice(&tag);
    debug_assert_eq!(bytes.len() - start, packet.len() as usize, "Packet::len counts the bytes written here");
    Ok(())
}

/// The packet in `bytes`, which must be exactly one with a tag of zeros, and the bytes of its stream.
///
/// # Errors
///
/// All bytes that [`encode`] would not have made.
pub fn decode(bytes: &[u8]) -> Result<(Packet, &[u8]), DecodeError> {
    let (plain, tag) = bytes.split_last_chunk().ok_or(Misread::Short)?;
    Unprotected::check(tag)?;
    read(plain)
}

/// [`decode`] under protection, in place; `number` is the whole packet number, found from that in [`Prefix`].
///
/// # Errors
///
/// As [`decode`].
pub fn decode_sealed<'a>(
    bytes: &'a mut [u8],
    number: u64,
    protector: &impl Protector,
) -> Result<(Packet, &'a [u8]), DecodeError> {
    let (sealed, tag): (_, &mut Tag) = bytes.split_last_chunk_mut().ok_or(Misread::Short)?;
    let rest = &mut &*sealed;
    let before = rest.len();
    Prefix::read(rest)?;
    let prefix = before - rest.len();
    let (header, body) = sealed.split_at_mut(prefix);
    protector.open(number, header, body, tag)?;
    read(sealed)
}

/// The readable prefix of a sealed packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// How the end it goes to knows the connection; 0 where the packet opens one, or leaves an
    /// [implied](ConnectionId::is_implied) one out.
    pub connection: ConnectionId,
    /// The low 32 bits of its number; the low 16 where [`short`](Self::short).
    pub number: SeqNumber,
    /// It is [short](Data::short) data.
    pub short: bool,
}

impl Prefix {
    /// The prefix of `bytes`, a packet and its tag. Nothing of it is proved yet.
    ///
    /// # Errors
    ///
    /// [`Misread::Short`] where no packet is as short, [`Unsound::Connection`] where a short one names connection 0.
    pub fn parse(mut bytes: &[u8]) -> Result<Self, DecodeError> {
        let (_, prefix) = Self::read(&mut bytes)?;
        if bytes.len() < TAG_LEN as usize {
            return Err(Misread::Short.into());
        }
        Ok(prefix)
    }

    /// The first byte, and the prefix that it is of, from the front of `bytes`.
    fn read(bytes: &mut &[u8]) -> Result<(u8, Self), DecodeError> {
        let first = u8::read(bytes)?;
        let kind = first & kind::MASK;
        let short = kind == kind::SHORT || kind == kind::IMPLIED;
        let connection = if kind == kind::IMPLIED { ConnectionId(0) } else { ConnectionId::read(bytes)? };
        if kind == kind::SHORT && connection == ConnectionId(0) {
            // A packet to connection 0 leaves the number out (`kind::IMPLIED`): one form for each packet.
            return Err(Unsound::Connection(0).into());
        }
        let number = if short { SeqNumber(read_short(bytes)?) } else { SeqNumber::read(bytes)? };
        Ok((first, Self { connection, number, short }))
    }
}

/// Appends a number that [`check`] has bounded.
fn write_short(number: u32, bytes: &mut Vec<u8>) {
    (number as u16).write(bytes);
}

fn read_short(bytes: &mut &[u8]) -> Result<u32, Misread> {
    u16::read(bytes).map(u32::from)
}

fn first_byte(packet: &Packet) -> u8 {
    let flag = |flag, set| if set { flag } else { 0 };
    match &packet.body {
        // `check` has bounded the number.
        Body::Open(hello) => kind::OPEN | hello.streams,
        Body::Answer(hello) => kind::ANSWER | hello.streams,
        Body::Data(data) => {
            let kind = match (data.short, packet.connection) {
                (false, _) => kind::DATA,
                (true, ConnectionId(0)) => kind::IMPLIED,
                (true, _) => kind::SHORT,
            };
            kind | flag(flag::FIN, data.fin)
                | flag(flag::IMMEDIATE_ACK, data.immediate_ack)
                | flag(flag::STREAM, data.stream != StreamId(0))
                | flag(flag::SYNC, data.sync.is_some())
        }
        Body::Tack(_) => kind::TACK,
        Body::Instant(_) => kind::INSTANT,
        Body::Sync(_) => kind::SYNC,
        Body::Probe { .. } => kind::PROBE,
        Body::Control(_) => kind::CONTROL,
        Body::Datagram(datagram) => kind::DATAGRAM | flag(flag::SYNC, datagram.sync.is_some()),
        Body::PathChallenge(_) => kind::CHALLENGE,
        Body::PathResponse(_) => kind::RESPONSE,
        Body::Close(_) | Body::CloseWith(_) => kind::CLOSE,
    }
}

fn write_body(body: &Body, bytes: &mut Vec<u8>) {
    match body {
        Body::Open(hello) | Body::Answer(hello) => hello.write(bytes),
        Body::Data(data) => {
            data.offset.write(bytes);
            if data.short {
                write_short(data.departed.0, bytes);
            } else {
                data.departed.write(bytes);
            }
            if data.stream != StreamId(0) {
                data.stream.write(bytes);
            }
            if let Some(sync) = data.sync {
                sync.write(bytes);
            }
        }
        Body::Tack(tack) => {
            tack.write(bytes);
            // `check` has bounded the lengths.
            let lengths = [tack.acked.len(), tack.unacked.len(), tack.streams.len()];
            lengths.iter().for_each(|len| bytes.push(*len as u8));
            tack.acked.iter().chain(&tack.unacked).for_each(|block| block.write(bytes));
            tack.streams.iter().for_each(|limit| limit.write(bytes));
        }
        Body::Instant(instant) => instant.write(bytes),
        Body::Sync(sync) => sync.write(bytes),
        Body::Probe { padding } => write_padding(*padding, bytes),
        Body::Control(control) => write_control(control, bytes),
        Body::Datagram(datagram) => {
            datagram.write(bytes);
            if let Some(sync) = datagram.sync {
                sync.write(bytes);
            }
        }
        Body::PathChallenge(token) | Body::PathResponse(token) => {
            token.write(bytes);
            write_padding(token.padding, bytes);
        }
        Body::Close(code) => code.write(bytes),
        Body::CloseWith(reason) => {
            WITH_REASON.write(bytes);
            reason.code.write(bytes);
            bytes.extend_from_slice(reason.text.as_bytes());
        }
    }
}

fn write_padding(padding: u16, bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len() + usize::from(padding), 0);
}

fn write_control(control: &Control, bytes: &mut Vec<u8>) {
    match control {
        Control::Reset { stream, code, end } => {
            control::RESET.write(bytes);
            stream.write(bytes);
            code.write(bytes);
            end.write(bytes);
        }
        Control::Stop { stream, code } => {
            control::STOP.write(bytes);
            stream.write(bytes);
            code.write(bytes);
        }
        Control::Streams { limit } => {
            control::STREAMS.write(bytes);
            limit.write(bytes);
        }
        Control::Held { stream } => {
            control::HELD.write(bytes);
            stream.write(bytes);
        }
    }
}

/// The packet in `bytes`, which end before the tag.
fn read(mut bytes: &[u8]) -> Result<(Packet, &[u8]), DecodeError> {
    let rest = &mut bytes;
    let (first, Prefix { connection, number, short }) = Prefix::read(rest)?;
    let mut content: &[u8] = &[];
    let body = match first {
        _ if first & kind::MASK == kind::OPEN => Body::Open(read_hello(first, rest)?),
        _ if first & kind::MASK == kind::ANSWER => Body::Answer(read_hello(first, rest)?),
        _ if short || first & kind::MASK == kind::DATA => {
            let data = read_data(first & !kind::MASK, short, rest)?;
            content = std::mem::take(rest);
            Body::Data(data)
        }
        kind::TACK => Body::Tack(Arc::new(read_tack(rest)?)),
        kind::INSTANT => Body::Instant(InstantAck::read(rest)?),
        kind::SYNC => Body::Sync(Sync::read(rest)?),
        kind::PROBE => Body::Probe { padding: read_padding(rest)? },
        kind::CONTROL => Body::Control(read_control(rest)?),
        _ if first & !flag::SYNC == kind::DATAGRAM => {
            let datagram = read_datagram(first & flag::SYNC != 0, rest)?;
            content = std::mem::take(rest);
            Body::Datagram(datagram)
        }
        kind::CHALLENGE => Body::PathChallenge(read_token(rest)?),
        kind::RESPONSE => Body::PathResponse(read_token(rest)?),
        kind::CLOSE if rest.first() == Some(&WITH_REASON) => read_reason(rest)?,
        kind::CLOSE => Body::Close(CloseCode::read(rest)?),
        _ => return Err(DecodeError::Kind(first)),
    };
    if !rest.is_empty() {
        return Err(DecodeError::TooLong(rest.len()));
    }
    let packet = Packet { connection, number, body };
    check(&packet)?;
    Ok((packet, content))
}

/// The fields of data, behind which all is content.
fn read_data(flags: u8, short: bool, bytes: &mut &[u8]) -> Result<Data, DecodeError> {
    let has = |flag| flags & flag != 0;
    let offset = SeqNumber::read(bytes)?;
    let departed = if short { Stamp(read_short(bytes)?) } else { Stamp::read(bytes)? };
    let stream = if has(flag::STREAM) { StreamId::read(bytes)? } else { StreamId(0) };
    if has(flag::STREAM) && stream == StreamId(0) {
        return Err(DecodeError::StreamZero);
    }
    let sync = if has(flag::SYNC) { Some(Sync::read(bytes)?) } else { None };
    let payload_len = length(bytes)?;
    let (fin, immediate_ack) = (has(flag::FIN), has(flag::IMMEDIATE_ACK));
    Ok(Data { stream, offset, payload_len, fin, immediate_ack, short, departed, sync })
}

fn read_tack(bytes: &mut &[u8]) -> Result<Tack, DecodeError> {
    let fixed = Tack::read(bytes)?;
    let (acked, unacked, streams) = (u8::read(bytes)?, u8::read(bytes)?, u8::read(bytes)?);
    Ok(Tack {
        acked: read_list(acked, bytes)?,
        unacked: read_list(unacked, bytes)?,
        streams: read_list(streams, bytes)?,
        ..fixed
    })
}

/// `len` entries of a list.
fn read_list<T: Layout>(len: u8, bytes: &mut &[u8]) -> Result<Vec<T>, Misread> {
    // Before anything is allocated.
    if bytes.len() < usize::from(len) * T::WIDTH as usize {
        return Err(Misread::Short);
    }
    let mut list = Vec::with_capacity(usize::from(len));
    for _ in 0..len {
        list.push(T::read(bytes)?);
    }
    Ok(list)
}

/// The zeros that are left.
fn read_padding(bytes: &mut &[u8]) -> Result<u16, DecodeError> {
    let padding = std::mem::take(bytes);
    if padding.iter().any(|byte| *byte != 0) {
        return Err(DecodeError::Padding);
    }
    length(padding)
}

fn read_hello(first: u8, bytes: &mut &[u8]) -> Result<Hello, DecodeError> {
    Ok(Hello { streams: first & !kind::MASK, ..Hello::read(bytes)? })
}

fn read_control(bytes: &mut &[u8]) -> Result<Control, DecodeError> {
    Ok(match u8::read(bytes)? {
        control::RESET => Control::Reset {
            stream: StreamId::read(bytes)?,
            code: u32::read(bytes)?,
            end: SeqNumber::read(bytes)?,
        },
        control::STOP => Control::Stop { stream: StreamId::read(bytes)?, code: u32::read(bytes)? },
        control::STREAMS => Control::Streams { limit: u32::read(bytes)? },
        control::HELD => Control::Held { stream: StreamId::read(bytes)? },
        other => return Err(Misread::Value("control", other).into()),
    })
}

fn read_datagram(has_sync: bool, bytes: &mut &[u8]) -> Result<Datagram, DecodeError> {
    let fixed = Datagram::read(bytes)?;
    let sync = if has_sync { Some(Sync::read(bytes)?) } else { None };
    Ok(Datagram { payload_len: length(bytes)?, sync, ..fixed })
}

fn read_token(bytes: &mut &[u8]) -> Result<Token, DecodeError> {
    let fixed = Token::read(bytes)?;
    Ok(Token { padding: read_padding(bytes)?, ..fixed })
}

fn read_reason(bytes: &mut &[u8]) -> Result<Body, DecodeError> {
    u8::read(bytes)?;
    let code = u32::read(bytes)?;
    // Before anything is allocated.
    if bytes.len() > Reason::MAX_TEXT {
        return Err(Unsound::LongReason(bytes.len()).into());
    }
    let text = std::str::from_utf8(std::mem::take(bytes)).map_err(|_| DecodeError::Text)?;
    Ok(Body::CloseWith(Arc::new(Reason { code, text: text.to_owned() })))
}

/// How many bytes there are.
fn length(bytes: &[u8]) -> Result<u16, DecodeError> {
    u16::try_from(bytes.len()).map_err(|_| DecodeError::TooLong(bytes.len() - usize::from(u16::MAX)))
}

/// Looks for contents that no end sends in any state: those that may be refused without knowing the connection.
fn check(packet: &Packet) -> Result<(), Unsound> {
    let named = packet.connection != ConnectionId(0);
    match packet.body {
        Body::Open(_) if named => return Err(Unsound::Connection(packet.connection.0)),
        // An end that was not answered may give up.
        Body::Open(_) | Body::Close(_) | Body::CloseWith(_) => {}
        Body::Data(data) if data.short => {
            if let Some(long) =
                [packet.number.0, data.departed.0].into_iter().find(|number| number >> 16 != 0)
            {
                return Err(Unsound::Short(long));
            }
        }
        _ if !named => return Err(Unsound::Connection(0)),
        _ => {}
    }
    let stream = match &packet.body {
        Body::Data(data) => Some(data.stream),
        Body::Control(control) => control.stream(),
        _ => None,
    };
    if let Some(stream) = stream.filter(|stream| stream.0 > StreamId::MAX) {
        return Err(Unsound::Stream(stream.0));
    }
    match &packet.body {
        Body::Open(hello) | Body::Answer(hello) if hello.source == ConnectionId(0) => {
            Err(Unsound::OwnConnection)
        }
        Body::Open(hello) | Body::Answer(hello) if hello.streams > !kind::MASK => {
            Err(Unsound::Streams(hello.streams))
        }
        Body::CloseWith(reason) if reason.text.len() > Reason::MAX_TEXT => {
            Err(Unsound::LongReason(reason.text.len()))
        }
        Body::Open(hello) if hello.echo.0 != 0 => Err(Unsound::Echo),
        Body::Tack(tack) => check_lists(tack),
        Body::Instant(InstantAck { cause: Cause::Loss, largest, second, since, .. }) => {
            // With the packet behind `second` missing at least.
            let encloses = since.before_eq(*second) && (*second + 1).before(*largest);
            if encloses { Ok(()) } else { Err(Unsound::NoHole) }
        }
        _ => Ok(()),
    }
}

fn check_lists(tack: &Tack) -> Result<(), Unsound> {
    if [tack.acked.len(), tack.unacked.len(), tack.streams.len()].into_iter().any(|len| len > MAX_LIST) {
        return Err(Unsound::LongList);
    }
    if let Some((stream, _)) = tack.streams.iter().find(|(stream, _)| stream.0 > StreamId::MAX) {
        return Err(Unsound::Stream(stream.0));
    }
    if usize::from(tack.repeated) > tack.unacked.len() {
        return Err(Unsound::Repeated);
    }
    let above = |number: SeqNumber| number - tack.cumulative;
    // Both from the lowest on.
    let (received, missing) = (|| tack.acked.iter().rev(), || tack.unacked.iter());
    if !ascend(received(), above) || !ascend(missing(), above) {
        return Err(Unsound::Blocks);
    }
    let (mut received, mut missing) = (received().peekable(), missing().peekable());
    while let (Some(one), Some(other)) = (received.peek(), missing.peek()) {
        if above(one.last) < above(other.first) {
            received.next();
        } else if above(other.last) < above(one.first) {
            missing.next();
        } else {
            return Err(Unsound::Both);
        }
    }
    Ok(())
}

/// True where each of `blocks` begins behind the end of the one before, and ends less than half the circle up; `above`
/// says how far up a number is.
fn ascend<'a>(mut blocks: impl Iterator<Item = &'a Block>, above: impl Fn(SeqNumber) -> u32) -> bool {
    let mut free = 0;
    blocks.all(|block| {
        let (first, last) = (above(block.first), above(block.last));
        let fits = free <= first && first <= last && last < 1 << 31;
        free = last.wrapping_add(1);
        fits
    })
}
