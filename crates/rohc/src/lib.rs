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
//! * [`Channel`], both directions of one end: packets in, frames out, and back; feedback finds its way, what is no TCP goes
//!   uncompressed (profile 0x0000), long frames are segmented. [`Compressor`] and [`Decompressor`] are its halves.
//! * IPv4 without options and IPv6; TCP with any options; segments with and without payload. Tunnels and extension headers
//!   ([`Layers`]): IP in IP, GRE, minimal encapsulation, AH, and IPv6 hop-by-hop options, destination options and routing.
//!   What the profile or this crate cannot say is an error that tells the reason; such a packet travels otherwise.
//! * All packet formats both ways: IR, IR-DYN, co_common, rnd_1 to rnd_8, seq_1 to seq_8, and IR-CR if asked for
//!   ([`Config::replicate`]).
//! * Sequential, byte-swapped, random and zero IP-ID; ECN; URG; lists of options with SACK, timestamps and unknown kinds.
//! * Small and large CIDs ([`CidSpace`]), as many contexts as they name; the flow that was silent longest makes room, but
//!   for those that are pinned.
//! * U-mode (repetition, refreshes by packets and by time) and O-mode: [`Decompressed::feedback`] and
//!   [`DecompressError::feedback`] are handed to [`Compressor::feedback`] over any channel; [`split_feedback`] takes it off
//!   the front of ROHC packets.
//!
//! Not there: other profiles.
//!
//! # Features
//!
//! `hack` (default): the module `hack`, compressed ACKs inside link-layer ACKs, the only user of a dependency (MD5).
//!
//! # What can go wrong
//!
//! Most headers carry a check of three bits. While fewer packets in a row are lost than [`Config::repeat`] says, none is
//! decoded wrongly. After longer losses one wrong header in eight would pass the check; so a packet that does not follow the
//! one before it needs a right TCP checksum, if those of its flow have been right, and one that fails is tried as what it
//! would be after a longer loss ([`DecompressorConfig::repair`]). A check that fails changes nothing, and after
//! [`DecompressorConfig::damaged_after`] failures only headers with longer checks are tried. What remains: a loss of
//! 16 packets or a multiple that looks like none, one time in eight, and an IP-ID that is a multiple of 16 too small.
//! [`DecompressorConfig::verify_tcp_checksum`] asks the TCP checksum of every packet.

// The tests compare with files.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate self as tacit_rohc;

mod chains;
mod channel;
mod cid;
mod compressor;
pub mod crc;
mod decompressor;
#[cfg(test)]
mod equal;
mod feedback;
mod formats;
#[cfg(feature = "hack")]
pub mod hack;
pub mod header;
mod items;
mod layers;
pub mod lsb;
mod quick;
mod state;
mod wire;

pub use channel::{Channel, ChannelConfig, ReceiveError, SendError, Sent};
pub use cid::CidSpace;
pub use compressor::{CompressError, Compressed, Compressor, Config, FlowCounts, MAX_REPEAT};
pub use decompressor::{
    ContextCounts, DecompressError, DecompressErrorKind, Decompressed, Decompressor, DecompressorConfig,
};
pub use feedback::{Feedback, FeedbackKind, split_feedback};
pub use formats::FormatKind;
pub use layers::{Layers, MAX_LAYERS, MAX_LAYERS_LEN};
