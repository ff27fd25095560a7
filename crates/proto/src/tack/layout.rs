//! How what packets consist of lies in bytes: one table per struct, from which its width, its writing and its reading
//! follow. Fields stand one after another in the order of the table, numbers in network byte order.

use super::packet::{
    Block, Cause, CloseCode, ConnectionId, Datagram, Hello, InstantAck, Stamp, StreamId, Sync, Tack, Token,
};
use crate::units::SeqNumber;

/// Why bytes are not what they were taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misread {
    /// They end too early.
    #[error("the bytes end within the packet")]
    Short,
    /// Four bytes for the number of a stream that two can hold.
    #[error("a stream's number is longer than it need be")]
    LongStream,
    /// A field holds a value that stands for nothing.
    #[error("{1} is no {0}")]
    Value(&'static str, u8),
}

/// What packets consist of.
pub(super) trait Layout: Sized {
    /// Bytes that it takes at least, and most things always.
    const WIDTH: u32;

    /// Bytes that it takes.
    fn width(&self) -> u32 {
        Self::WIDTH
    }

    /// Appends it to `bytes`.
    fn write(&self, bytes: &mut Vec<u8>);

    /// Takes it from the front of `bytes`.
    fn read(bytes: &mut &[u8]) -> Result<Self, Misread>;
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Layout for $number {
            const WIDTH: u32 = Self::BITS / 8;

            fn write(&self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_be_bytes());
            }

            fn read(bytes: &mut &[u8]) -> Result<Self, Misread> {
                let (head, rest) = bytes.split_first_chunk().ok_or(Misread::Short)?;
                *bytes = rest;
                Ok(Self::from_be_bytes(*head))
            }
        }
    )*};
}

/// The fields of a struct. Those that `elsewhere` lays out are left at their defaults, and have to be named: a field that
/// was forgotten does not compile.
macro_rules! fields {
    ($name:ident { $($field:tt: $kind:ty),* $(,)? } $(elsewhere { $($other:ident),* })?) => {
        impl Layout for $name {
            const WIDTH: u32 = 0 $(+ <$kind>::WIDTH)*;

            fn write(&self, bytes: &mut Vec<u8>) {
                $(self.$field.write(bytes);)*
            }

            fn read(bytes: &mut &[u8]) -> Result<Self, Misread> {
                // Fields are evaluated in the order in which they are written here.
                Ok(Self { $($field: <$kind>::read(bytes)?,)* $($($other: Default::default()),*)? })
            }
        }
    };
}

/// What a byte may say.
macro_rules! codes {
    ($name:ty, $what:literal { $($($value:tt)::+ = $code:literal),* $(,)? }) => {
        impl Layout for $name {
            const WIDTH: u32 = u8::WIDTH;

            fn write(&self, bytes: &mut Vec<u8>) {
                bytes.push(match self { $($($value)::+ => $code),* });
            }

            fn read(bytes: &mut &[u8]) -> Result<Self, Misread> {
                match u8::read(bytes)? {
                    $($code => Ok($($value)::+),)*
                    other => Err(Misread::Value($what, other)),
                }
            }
        }
    };
}

numbers!(u8, u16, u32);
fields!(SeqNumber { 0: u32 });
fields!(Stamp { 0: u32 });
fields!(ConnectionId { 0: u32 });
codes!(bool, "truth value" { false = 0, true = 1 });
codes!(Cause, "cause of an IACK" { Cause::Loss = 1, Cause::Window = 2 });
codes!(CloseCode, "reason for an end" {
    CloseCode::Done = 1,
    CloseCode::Aborted = 2,
    CloseCode::Refused = 3,
    CloseCode::Violation = 4,
});

fields!(Hello {
    version: u16,
    own: ConnectionId,
    departed: Stamp,
    echo: Stamp,
    window: u32,
    stream_window: u32,
    max_payload: u16,
    beta: u8,
    every: u8,
    min_interval_ms: u8,
} elsewhere { streams });

fields!(Datagram { departed: Stamp } elsewhere { payload_len, sync });

fields!(Token { token: [u8; 8] } elsewhere { padding });

fields!(Sync { rtt_min_us: u32, floor: SeqNumber, blocks: u8, startup: bool, ack_interval_ms: u16 });

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
    cumulative: SeqNumber,
    repeated: u8,
} elsewhere { acked, unacked, streams });

fields!(Block { first: SeqNumber, last: SeqNumber });

fields!(InstantAck {
    cause: Cause,
    largest: SeqNumber,
    second: SeqNumber,
    since: SeqNumber,
    cumulative: SeqNumber,
    window: SeqNumber,
});

impl Layout for [u8; 8] {
    const WIDTH: u32 = 8;

    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self);
    }

    fn read(bytes: &mut &[u8]) -> Result<Self, Misread> {
        let (head, rest) = bytes.split_first_chunk().ok_or(Misread::Short)?;
        *bytes = rest;
        Ok(*head)
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
