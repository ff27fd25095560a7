//! The ROHC codec applied to captures: its results, and files of compressed packets.
//!
//! [`stats`] runs a capture through a compressor and a decompressor and checks every byte. [`compress`] and
//! [`decompress`] convert between captures and files of ROHC packets. [`compare`] compares our packets with those of
//! another implementation.

mod compare;
mod convert;
mod error;
mod hack;
mod output;
mod packets;
mod pair;
mod stats;
mod strict;

pub use compare::{Comparison, compare};
pub use convert::{Channel, Converted, compress, decompress};
pub use error::RohcError;
pub use packets::LeftOut;
pub use stats::{Codec, Stats, stats};

#[cfg(test)]
mod tests;
