//! The layout of packets in bytes: one table per struct ([`packet`](super::packet)), from which its width, its writing and its
//! reading follow. Fields stand one after another in the order of the table, numbers in network byte order.

use crate::units::SeqNumber;

/// Why bytes cannot be read as the expected type.
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

/// Parts of packets.
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

/// Codes that a byte may hold.
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

pub(super) use {codes, fields};

numbers!(u8, u16, u32);
fields!(SeqNumber { 0: u32 });
codes!(bool, "truth value" { false = 0, true = 1 });

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
