//! TACK's packets, as structs.
//!
//! Each packet is the payload of one UDP datagram. Packet numbers, offsets and limits are the low 32 bits of larger numbers on
//! the wire; an endpoint reconstructs them, as TCP does. `docs/references/tack-wire.md` and
//! [`tack::wire`](crate::tack::wire) have the encoding.

use std::sync::Arc;

use super::layout::{Layout, Misread, codes, fields};
use crate::udp;
use crate::units::SeqNumber;

/// Bytes that the packet protector adds to each packet: the tag of AES-GCM and ChaCha20-Poly1305
/// (RFC 9001 section 5.3). The simulator fills them with zeros.
pub const TAG_LEN: u32 = 16;

/// A number that the receiving end chose, by which it knows the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ConnectionId(pub u32);

fields!(ConnectionId { 0: u32 });

impl ConnectionId {
    /// The bit of a number that [short data](Data::short) leaves out.
    pub const IMPLIED: u32 = 1 << 31;

    /// This number, or the nearest sound one; a connection may be implied or named.
    pub fn implied_or_not(self, implied: bool) -> Self {
        let rest = self.0 & !Self::IMPLIED;
        Self(if implied { rest | Self::IMPLIED } else { rest.max(1) })
    }

    /// True where short data to this number goes without it: of all connections of a socket, one at most has such a number.
    pub fn is_implied(self) -> bool {
        self.0 & Self::IMPLIED != 0
    }
}

/// A stream of a connection, which carries bytes both ways. Those that the client opens have even numbers, those of the
/// server odd ones (RFC 9000 section 2.1); no number is used twice. Stream 0 is open from the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u32);

impl StreamId {
    /// The highest number that a packet can say.
    pub const MAX: u32 = (1 << 31) - 1;

    /// Length of the number in a packet, in bytes.
    pub fn wire_len(self) -> u32 {
        self.width()
    }
}

/// Two bytes, or four with the highest bit set where two of 15 bits cannot hold it.
impl Layout for StreamId {
    const WIDTH: u32 = u16::WIDTH;

    fn width(&self) -> u32 {
        if self.0 < LONG_STREAM { u16::WIDTH } else { u32::WIDTH }
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        if self.0 < LONG_STREAM {
            (self.0 as u16).write(bytes);
        } else {
            (self.0 | LONG_STREAM << 16).write(bytes);
        }
    }

    fn read(bytes: &mut &[u8]) -> Result<Self, Misread> {
        let high = u32::from(u16::read(bytes)?);
        if high < LONG_STREAM {
            return Ok(Self(high));
        }
        let number = (high - LONG_STREAM) << 16 | u32::from(u16::read(bytes)?);
        // A number has one form.
        if number < LONG_STREAM { Err(Misread::LongStream) } else { Ok(Self(number)) }
    }
}

/// The first stream whose number takes four bytes.
const LONG_STREAM: u32 = 1 << 15;

/// A limit of a stream.
impl Layout for (StreamId, SeqNumber) {
    const WIDTH: u32 = StreamId::WIDTH + SeqNumber::WIDTH;

    fn width(&self) -> u32 {
        self.0.width() + SeqNumber::WIDTH
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        self.0.write(bytes);
        self.1.write(bytes);
    }

    fn read(bytes: &mut &[u8]) -> Result<Self, Misread> {
        Ok((StreamId::read(bytes)?, SeqNumber::read(bytes)?))
    }
}

/// A clock reading in microseconds since its owner's start, modulo 2^32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp(pub u32);

fields!(Stamp { 0: u32 });

/// One packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// How the end it goes to knows the connection; 0 in an [`Open`](Body::Open), before it has chosen, in the
    /// [`Close`](Body::Close) of an end that was not answered, and in [short data](Data::short) that leaves it out.
    pub connection: ConnectionId,
    /// PKT.SEQ: one more for each packet sent, of any content and whether again or not (TACK paper section 5.1). The low 32
    /// bits; of [short data](Data::short) the low 16.
    pub number: SeqNumber,
    /// Its content.
    pub body: Body,
}

/// Content of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// Asks for a connection.
    Open(Hello),
    /// Accepts one.
    Answer(Hello),
    /// Bytes of a stream.
    Data(Data),
    /// A TACK: all that the receiver knows, at a rate of its own.
    Tack(Arc<Tack>),
    /// An IACK: one event, at once.
    Instant(InstantAck),
    /// State of the sender for the receiver, where no data was there to carry it.
    Sync(Sync),
    /// Padding that asks for an answer: keeps a path alive, or finds out how long a packet may be
    /// (RFC 8899 section 4.1).
    Probe {
        /// Bytes of padding.
        padding: u16,
    },
    /// A control message about a stream or all streams.
    Control(Control),
    /// Bytes of no stream, which are not sent again (after RFC 9221).
    Datagram(Datagram),
    /// Asks for a [`PathResponse`](Self::PathResponse) along the path on which it came (RFC 9000 section 8.2).
    PathChallenge(Token),
    /// Answers a [`PathChallenge`](Self::PathChallenge).
    PathResponse(Token),
    /// The end of the connection.
    Close(CloseCode),
    /// The end of the connection, which the user gave up for a reason of its own.
    CloseWith(Arc<Reason>),
}

/// A control message about a stream or all streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// The sender gives up a stream, its own direction of it (RFC 9000 section 19.4).
    Reset {
        /// Which stream.
        stream: StreamId,
        /// Why, in the application's words.
        code: u32,
        /// Bytes of it that were sent: the low 32 bits.
        end: SeqNumber,
    },
    /// The sender wants no more of a stream (RFC 9000 section 19.5).
    Stop {
        /// Which stream.
        stream: StreamId,
        /// Why, in the application's words.
        code: u32,
    },
    /// Streams that the receiver may have opened so far, counted from its first (RFC 9000 section 19.11).
    Streams {
        /// How many.
        limit: u32,
    },
    /// The limit of a stream holds the sender, which may not have heard the latest (RFC 9000 section 19.13).
    Held {
        /// Which stream.
        stream: StreamId,
    },
}

/// Bytes of no stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Datagram {
    /// How many bytes.
    pub payload_len: u16,
    /// As in [`Data`].
    pub departed: Stamp,
    /// As in [`Data`].
    pub sync: Option<Sync>,
}

fields!(Datagram { departed: Stamp } elsewhere { payload_len, sync });

/// The token of a path challenge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Token {
    /// Unpredictable bytes.
    pub token: [u8; 8],
    /// Bytes of padding: a path is of use only where it takes full packets.
    pub padding: u16,
}

fields!(Token { token: [u8; 8] } elsewhere { padding });

/// Why a user ended a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reason {
    /// In numbers of the application.
    pub code: u32,
    /// The reason as text, at most [`MAX_TEXT`](Self::MAX_TEXT) bytes.
    pub text: String,
}

impl Reason {
    /// Bytes of [`text`](Self::text) at most.
    pub const MAX_TEXT: usize = 64;

    /// A reason with as much of `text` as fits.
    pub fn new(code: u32, text: &str) -> Self {
        let mut text = text.to_owned();
        while text.len() > Self::MAX_TEXT {
            text.pop();
        }
        Self { code, text }
    }
}

/// The first packet of each end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hello {
    /// Version of the protocol; [`VERSION`](Self::VERSION) is the only one.
    pub version: u16,
    /// The connection number by which the sender of this packet is addressed; never 0.
    pub source: ConnectionId,
    /// When it left.
    pub departed: Stamp,
    /// In an [`Answer`](Body::Answer): the departure time of the packet that it answers, plus the time that the answer waited;
    /// 0 in an [`Open`](Body::Open).
    pub echo: Stamp,
    /// Initial limit of all streams together, in bytes.
    pub window: u32,
    /// Initial limit of each stream, in bytes.
    pub stream_window: u32,
    /// Initial limit of the peer's open streams, as a logarithm to base 2, at most 15.
    pub streams: u8,
    /// Bytes of the largest UDP payload that it can take.
    pub max_payload: u16,
    /// ACKs per smallest round-trip time that it would like to get: beta; 0 for no wish.
    pub beta: u8,
    /// Full-sized packets per ACK that it would like: L; 0 for no wish.
    pub every: u8,
    /// Milliseconds between ACKs that it does without, however short the round-trip time is.
    pub min_interval_ms: u8,
}

fields!(Hello {
    version: u16,
    source: ConnectionId,
    departed: Stamp,
    echo: Stamp,
    window: u32,
    stream_window: u32,
    max_payload: u16,
    beta: u8,
    every: u8,
    min_interval_ms: u8,
} elsewhere { streams });

impl Hello {
    /// The version spoken here.
    pub const VERSION: u16 = 4;
}

/// Bytes of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Data {
    /// Which stream.
    pub stream: StreamId,
    /// Its first byte: the low 32 bits of its place in the stream.
    pub offset: SeqNumber,
    /// How many bytes.
    pub payload_len: u16,
    /// The stream ends behind them.
    pub fin: bool,
    /// The receiver should acknowledge at once.
    pub immediate_ack: bool,
    /// The packet number and `departed` are the low 16 bits: the receiver has acknowledged data that left so shortly before
    /// that these suffice. An [implied](ConnectionId::is_implied) connection is left out.
    pub short: bool,
    /// When it left (TACK paper section 5.2); where `short`, [`Stamp::short`] of that.
    pub departed: Stamp,
    /// State of the sender for the receiver.
    pub sync: Option<Sync>,
}

/// State of a sender for its receiver (TACK paper sections 4.4 and 5.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sync {
    /// Smallest round-trip time in microseconds; 0 while none is known.
    pub rtt_min_us: u32,
    /// The lowest packet number whose fate the sender does not know. The receiver discards state below it.
    pub floor: SeqNumber,
    /// Blocks that a TACK should carry of each list: Q.
    pub blocks: u8,
    /// The sender is in start-up, and requests more frequent feedback.
    pub startup: bool,
    /// Least milliseconds between acknowledgments: more would queue on their way.
    pub ack_interval_ms: u16,
}

fields!(Sync { rtt_min_us: u32, floor: SeqNumber, blocks: u8, startup: bool, ack_interval_ms: u16 });

/// Packet numbers `first ..= last`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// The first.
    pub first: SeqNumber,
    /// The last.
    pub last: SeqNumber,
}

fields!(Block { first: SeqNumber, last: SeqNumber });

/// Bytes in a unit of [`Tack::burst`]: 16 bits then hold a megabyte, more than any A-MPDU of 802.11n and ac.
pub const BURST_UNIT: u64 = 16;

/// A TACK (TACK paper section 5; its fields after the successor paper's figure 10).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tack {
    /// When it left, by its sender's clock.
    pub left: Stamp,
    /// When the packet left whose one-way delay was the least since the last TACK: t0*.
    pub departed: Stamp,
    /// Microseconds since that packet arrived: Δt*; [`u32::MAX`] where none has arrived since the last TACK.
    pub delay_us: u32,
    /// Rate at which bytes of data arrive, in kb/s; 0 while it is not known.
    pub rate_kbps: u32,
    /// Packets that were lost on the way to the receiver, in 65,536ths of those that were sent.
    pub loss: u16,
    /// Bytes of data that arrived so far, whether before or not: the low 32 bits.
    pub received: SeqNumber,
    /// Initial limit of all streams together, in bytes.
    pub window: SeqNumber,
    /// Packets that arrived with congestion experienced: the low 16 bits.
    pub ce: u16,
    /// The most that arrived at once lately, in units of [`BURST_UNIT`] bytes.
    pub burst: u16,
    /// Packets that were lost, in 256ths of those that met no queue; 0 where too few are known to have met none.
    pub base_loss: u8,
    /// Every packet number below was received, or is of no interest to the sender any more.
    pub cumulative: SeqNumber,
    /// The acked list: received, highest first, none below `cumulative`. At most [`MAX_LIST`], as in each list.
    pub acked: Vec<Block>,
    /// The unacked list: missing, lowest first, none below `cumulative`. Between one block and the next everything was
    /// received, with one exception: nothing is said of the range between the first `repeated` blocks and those behind them.
    pub unacked: Vec<Block>,
    /// Number of blocks at the start of the unacked list that are its oldest; the length of the list without an exception.
    pub repeated: u8,
    /// Limits of streams that changed lately: bytes that may be sent, low 32 bits.
    pub streams: Vec<(StreamId, SeqNumber)>,
}

fields!(Tack {
    left: Stamp,
    departed: Stamp,
    delay_us: u32,
    rate_kbps: u32,
    loss: u16,
    received: SeqNumber,
    window: SeqNumber,
    ce: u16,
    burst: u16,
    base_loss: u8,
    cumulative: SeqNumber,
    repeated: u8,
} elsewhere { acked, unacked, streams });

/// Why an IACK was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Packets between `second` and `largest` are missing.
    Loss,
    /// The window has moved from where it held the sender.
    Window,
}

codes!(Cause, "cause of an IACK" { Cause::Loss = 1, Cause::Window = 2 });

/// An IACK of a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstantAck {
    /// The event.
    pub cause: Cause,
    /// The largest packet number received.
    pub largest: SeqNumber,
    /// The second-largest: with the first it encloses the newest hole.
    pub second: SeqNumber,
    /// `since ..= second` were received; where one cumulative number covers these as well, `second` itself.
    pub since: SeqNumber,
    /// As in a [`Tack`].
    pub cumulative: SeqNumber,
    /// As in a [`Tack`].
    pub window: SeqNumber,
}

fields!(InstantAck {
    cause: Cause,
    largest: SeqNumber,
    second: SeqNumber,
    since: SeqNumber,
    cumulative: SeqNumber,
    window: SeqNumber,
});

/// Why a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseCode {
    /// Both directions are done.
    Done,
    /// The user gave it up.
    Aborted,
    /// There is no endpoint to talk to.
    Refused,
    /// The peer acknowledged packets that were never sent, or broke another rule.
    Violation,
    /// The path carries no packets of the configuration's `min_mtu`.
    PathTooNarrow,
}

codes!(CloseCode, "reason for an end" {
    CloseCode::Done = 1,
    CloseCode::Aborted = 2,
    CloseCode::Refused = 3,
    CloseCode::Violation = 4,
    // 5 has a reason of the user: `wire::WITH_REASON`.
    CloseCode::PathTooNarrow = 6,
});

/// Bytes that each packet begins with: type and flags, connection, packet number.
pub(super) const PREFIX: u32 = u8::WIDTH + ConnectionId::WIDTH + SeqNumber::WIDTH;

/// Entries that each list of a [`Tack`] holds at most: its length is one byte.
pub const MAX_LIST: usize = u8::MAX as usize;

/// Bytes of a [`Tack`] without the entries of its lists: the fields, and a byte of length for each list.
const TACK: u32 = Tack::WIDTH + 3;

/// Bytes of a list of limits.
pub fn limits_len(limits: &[(StreamId, SeqNumber)]) -> u32 {
    limits.iter().map(Layout::width).sum()
}

/// Bytes that short data begins with: as [`PREFIX`], with two bytes of the number, and without an implied connection.
const fn short_prefix(implied: bool) -> u32 {
    u8::WIDTH + if implied { 0 } else { ConnectionId::WIDTH } + u16::WIDTH
}

impl Packet {
    /// True for data with a packet number of 16 bits.
    pub fn is_short(&self) -> bool {
        matches!(&self.body, Body::Data(data) if data.short)
    }

    /// Bytes that stay readable: type and flags, connection, packet number.
    pub(super) fn prefix_len(&self) -> u32 {
        if self.is_short() { short_prefix(self.connection == ConnectionId(0)) } else { PREFIX }
    }

    /// Bytes of UDP payload without those of streams, the tag included.
    pub fn header_len(&self) -> u32 {
        self.prefix_len() + TAG_LEN + self.body.len()
    }

    /// Bytes of UDP payload.
    pub fn len(&self) -> u32 {
        self.header_len() + self.payload_len()
    }

    /// Never true: a packet has a header.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Bytes of a stream, or of a datagram.
    pub fn payload_len(&self) -> u32 {
        match &self.body {
            Body::Data(data) => u32::from(data.payload_len),
            Body::Datagram(datagram) => u32::from(datagram.payload_len),
            _ => 0,
        }
    }

    /// True for packets that only acknowledge.
    pub fn is_feedback(&self) -> bool {
        matches!(self.body, Body::Tack(_) | Body::Instant(_))
    }

    /// True for a packet that must be acknowledged.
    pub fn elicits(&self) -> bool {
        matches!(self.body, Body::Data(_) | Body::Datagram(_) | Body::Control(_) | Body::Probe { .. })
    }
}

impl Control {
    fn len(&self) -> u32 {
        u8::WIDTH
            + match self {
                Self::Reset { stream, .. } => stream.width() + u32::WIDTH + SeqNumber::WIDTH,
                Self::Stop { stream, .. } => stream.width() + u32::WIDTH,
                Self::Streams { .. } => u32::WIDTH,
                Self::Held { stream } => stream.width(),
            }
    }

    /// The stream that it is about, if any.
    pub(super) fn stream(&self) -> Option<StreamId> {
        match self {
            Self::Reset { stream, .. } | Self::Stop { stream, .. } | Self::Held { stream } => Some(*stream),
            Self::Streams { .. } => None,
        }
    }
}

impl Body {
    fn len(&self) -> u32 {
        match self {
            Self::Open(_) | Self::Answer(_) => Hello::WIDTH,
            Self::Data(data) => {
                let stream = if data.stream == StreamId(0) { 0 } else { data.stream.width() };
                data.fields_len() + stream + if data.sync.is_some() { Sync::WIDTH } else { 0 }
            }
            Self::Tack(tack) => {
                let blocks = (tack.acked.len() + tack.unacked.len()) as u32;
                TACK + Block::WIDTH * blocks + limits_len(&tack.streams)
            }
            Self::Instant(_) => InstantAck::WIDTH,
            Self::Sync(_) => Sync::WIDTH,
            Self::Probe { padding } => u32::from(*padding),
            Self::Control(control) => control.len(),
            Self::Datagram(datagram) => {
                Datagram::WIDTH + if datagram.sync.is_some() { Sync::WIDTH } else { 0 }
            }
            Self::PathChallenge(token) | Self::PathResponse(token) => Token::WIDTH + u32::from(token.padding),
            Self::Close(_) => CloseCode::WIDTH,
            Self::CloseWith(reason) => CloseCode::WIDTH + u32::WIDTH + reason.text.len() as u32,
        }
    }
}

impl Data {
    /// Bytes of the fields that all data has: offset and time stamp.
    const fn fields_len(&self) -> u32 {
        if self.short { Self::SHORT_FIELDS } else { Self::FIELDS }
    }

    const FIELDS: u32 = SeqNumber::WIDTH + Stamp::WIDTH;
    const SHORT_FIELDS: u32 = SeqNumber::WIDTH + u16::WIDTH;
}

/// Bytes of a stream that a data packet of stream 0 without [`Sync`] carries in a UDP payload of `max_payload` bytes, with its
/// number and time stamp in full.
pub const fn room_for_data(max_payload: u32) -> u32 {
    max_payload.saturating_sub(PREFIX + TAG_LEN + Data::FIELDS)
}

/// [`room_for_data`] of [short](Data::short) data, to an [implied](ConnectionId::is_implied) connection or another.
pub const fn room_for_short_data(max_payload: u32, implied: bool) -> u32 {
    max_payload.saturating_sub(short_prefix(implied) + TAG_LEN + Data::SHORT_FIELDS)
}

/// Bytes of a datagram in a UDP payload of `max_payload` bytes, with a [`Sync`] or without.
pub const fn room_for_datagram(max_payload: u32) -> u32 {
    max_payload.saturating_sub(PREFIX + TAG_LEN + Datagram::WIDTH + Sync::WIDTH)
}

/// Bytes of padding in a probe of `payload` bytes.
pub fn padding_for(payload: u32) -> u16 {
    u16::try_from(payload.saturating_sub(PREFIX + TAG_LEN)).unwrap_or(u16::MAX)
}

/// Blocks, of both lists together, that fit in a TACK of `max_payload` bytes with `limits` bytes of limits; never more than
/// [`MAX_LIST`], so that they may all be in one list.
pub const fn room_for_blocks(max_payload: u32, limits: u32) -> u32 {
    let room = max_payload.saturating_sub(PREFIX + TAG_LEN + TACK + limits) / Block::WIDTH;
    if room > MAX_LIST as u32 { MAX_LIST as u32 } else { room }
}

/// Bytes of a [`Sync`] in a packet.
pub const SYNC_LEN: u32 = Sync::WIDTH;

/// Bytes of IP payload around a packet.
pub const UDP_HEADER_LEN: u32 = udp::Datagram::HEADER_LEN;

#[cfg(test)]
mod tests {
    use super::*;

    fn tack(blocks: usize, streams: usize) -> u32 {
        let tack = Tack {
            acked: vec![Block::default(); blocks],
            streams: vec![Default::default(); streams],
            ..Tack::default()
        };
        let body = Body::Tack(Arc::new(tack));
        Packet { connection: ConnectionId(1), number: SeqNumber(1), body }.len()
    }

    #[test]
    fn a_tack_holds_the_blocks_there_is_room_for_and_no_more() {
        for max_payload in 63..9_000 {
            for streams in [0, 1, 7].into_iter().filter(|streams| tack(0, *streams) <= max_payload) {
                let room = room_for_blocks(max_payload, 6 * streams as u32) as usize;
                assert!(tack(room, streams) <= max_payload);
                assert!(tack(room + 1, streams) > max_payload || room == MAX_LIST);
            }
        }
        assert_eq!(room_for_blocks(1_472, 0), 176, "of Ethernet");
        assert_eq!(room_for_blocks(20, 0), 0);
    }

    #[test]
    fn data_fills_a_payload() {
        let payload_len = room_for_data(1_472) as u16;
        let body = Body::Data(Data { payload_len, ..Data::default() });
        assert_eq!(payload_len, 1_439);
        assert_eq!(Packet { connection: ConnectionId(1), number: SeqNumber(1), body }.len(), 1_472);
        for (connection, expected) in [(0, 1_447), (1, 1_443)] {
            let payload_len = room_for_short_data(1_472, connection == 0) as u16;
            let body = Body::Data(Data { payload_len, short: true, ..Data::default() });
            assert_eq!(payload_len, expected);
            assert_eq!(
                Packet { connection: ConnectionId(connection), number: SeqNumber(1), body }.len(),
                1_472
            );
        }
    }
}
