//! Robust header compression for TCP/IP: RFC 6846 (profile 0x0006) in the framework of RFC 5795.
//!
//! A TCP/IP header of 40 to 100 octets shrinks to 4 to 12 on links where every octet counts, and comes back bit for
//! bit. A [`Compressor`] turns whole IP packets into ROHC packets, a [`Decompressor`] turns them back; payloads pass
//! through. Neither knows about sockets or time. Memory is taken when a context is made, never per packet.
//!
//! ```
//! use tacit_rohc::header::{Header, Ip, Options, flags};
//! use tacit_rohc::{Compressor, Config, Decompressor, DecompressorConfig};
//!
//! let mut compressor = Compressor::new(Config::default());
//! let mut decompressor = Decompressor::new(DecompressorConfig::default());
//! let (mut packet, mut rohc, mut back) = ([0; 100], [0; 200], [0; 1500]);
//! let mut shortest = usize::MAX;
//! for number in 0..10 {
//!     let header = Header {
//!         ip: Ip::V4 { source: [10, 0, 0, 1], destination: [10, 0, 0, 2], id: number, dont_fragment: true },
//!         dscp: 0, ip_ecn: 0, ttl: 64, source_port: 5000, destination_port: 80,
//!         seq: 1, ack: 1448 * u32::from(number), reserved: 0, flags: flags::ACK, window: 500,
//!         checksum: 0xbeef, urgent: 0, options: Options::NONE, payload_len: 0,
//!     };
//!     let len = header.emit(&mut packet).unwrap();
//!     let made = compressor.compress(&packet[..len], &mut rohc).unwrap();
//!     let done = decompressor.decompress(&rohc[..made.len], &mut back).unwrap();
//!     assert_eq!(back[..done.len], packet[..len]);
//!     shortest = shortest.min(made.len);
//! }
//! assert_eq!(shortest, 4, "two octets of seq_4, two of TCP checksum");
//! ```
//!
//! # What is there
//!
//! * IPv4 without options and IPv6 without extension headers; TCP with any options; segments with and without payload.
//!   What the profile or this crate cannot say is an error that tells the reason; such a packet travels otherwise.
//! * All packet formats both ways: IR, IR-DYN, co_common, rnd_1 to rnd_8, seq_1 to seq_8, and IR-CR if asked for
//!   ([`Config::replicate`]).
//! * Sequential, byte-swapped, random and zero IP-ID; ECN; URG; lists of options with SACK, timestamps and unknown kinds.
//! * Small and large CIDs ([`CidSpace`]), as many contexts as they name; the flow that was silent longest makes room.
//! * U-mode (repetition, refreshes) and O-mode: [`Decompressed::feedback`] and [`DecompressError::feedback`] are handed
//!   to [`Compressor::feedback`] over any channel; [`split_feedback`] takes it off the front of ROHC packets.
//!
//! Not there: segmentation, IP tunnels, other profiles.
//!
//! # What can go wrong
//!
//! Most headers carry a check of three bits. While fewer packets in a row are lost than [`Config::repeat`] says, none is
//! decoded wrongly. After longer losses one wrong header in eight passes the check; a check that fails changes nothing,
//! and after [`DecompressorConfig::damaged_after`] failures only headers with longer checks are tried. Where that is not
//! enough, [`DecompressorConfig::verify_tcp_checksum`] asks the TCP checksum, too.

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
