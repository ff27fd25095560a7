//! Robust header compression for TCP/IP: RFC 6846 (profile 0x0006) in the framework of RFC 5795.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod chains;
mod cid;
mod compressor;
pub mod crc;
mod decompressor;
mod feedback;
mod formats;
pub mod hack;
pub mod header;
mod items;
pub mod lsb;
mod state;
mod wire;

pub use cid::CidSpace;
pub use compressor::{CompressError, Compressed, Compressor, Config, MAX_REPEAT};
pub use decompressor::{
    DecompressError, DecompressErrorKind, Decompressed, Decompressor, DecompressorConfig,
};
pub use feedback::{Feedback, FeedbackKind, split_feedback};
pub use formats::FormatKind;
