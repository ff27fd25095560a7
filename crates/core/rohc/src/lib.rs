//! Robust header compression for TCP/IP: RFC 6846 (profile 0x0006) in the framework of RFC 5795.
//!
//! Compresses a TCP/IP header of 40 to 100 bytes to 4 to 12 bytes, and restores it bit for bit. A [`Compressor`] turns
//! whole IP packets into ROHC packets, and a [`Decompressor`] turns them back. Payloads pass unchanged. The crate uses
//! no sockets and no clock. Memory is allocated per context, never per packet.
//!
//! ```
//! use tacit_rohc::header::{Header, Ip, Options, flags};
//! use tacit_rohc::{Compressor, CompressorConfig, Decompressor, DecompressorConfig};
//!
//! let mut compressor = Compressor::new(CompressorConfig::default());
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
//! assert_eq!(shortest, 4, "two bytes of seq_4, two of TCP checksum");
//! ```
//!
//! # Coverage
//!
//! * [`Channel`] is one end of a link, for both directions. It routes feedback, sends packets other than TCP
//!   uncompressed (profile 0x0000), and segments long packets. [`Compressor`] and [`Decompressor`] are its halves.
//! * IPv4 without options and IPv6; TCP with any options; segments with and without payload. Tunnels and extension
//!   headers ([`Layers`]): IP in IP, GRE, minimal encapsulation, AH, and IPv6 hop-by-hop options, destination options
//!   and routing. A header that the profile or this crate cannot represent results in an error with the reason.
//! * All packet formats, in both directions: IR, IR-DYN, co_common, rnd_1 to rnd_8, seq_1 to seq_8, and optionally
//!   IR-CR ([`CompressorConfig::replicate`]).
//! * Sequential, byte-swapped, random and zero IP-ID; ECN; URG; option lists with SACK, timestamps and unknown kinds.
//! * Small and large CIDs ([`CidSpace`]), with one context per CID. A new flow evicts the least recently used one that
//!   is not pinned.
//! * U-mode (repetition, and refreshes by packet count and time) and O-mode: pass [`Decompressed::feedback`] and
//!   [`DecompressError::feedback`] to [`Compressor::feedback`] over any channel. [`split_feedback`] separates
//!   piggybacked feedback from ROHC packets.
//!
//! Other profiles are not implemented.
//!
//! # Features
//!
//! `hack` (off by default): the module `hack`, with compressed ACKs inside link-layer ACKs. It needs the only
//! dependency (MD5).
//!
//! # Errors after losses
//!
//! Most headers carry a CRC of three bits. While fewer than [`CompressorConfig::repeat`] consecutive packets are lost,
//! no header is decoded wrongly. After longer losses, one wrong header in eight would pass the CRC. Three measures
//! prevent this:
//!
//! * A packet that does not follow its predecessor also needs a correct TCP checksum, provided that the flow's earlier
//!   checksums were correct.
//! * A packet that fails is decoded again on the assumption of a longer loss ([`DecompressorConfig::repair`]).
//! * A failure changes no state, and after [`DecompressorConfig::damaged_after`] failures only headers with longer CRCs
//!   are decoded.
//!
//! One gap remains: a loss of a multiple of 16 packets. In one case out of eight it is mistaken for no loss, and the
//! IP-ID is then wrong by a multiple of 16. [`DecompressorConfig::verify_tcp_checksum`] verifies the TCP checksum of
//! every packet.

// The tests read files.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![warn(missing_debug_implementations)]

extern crate alloc;
#[cfg(test)]
extern crate self as tacit_rohc;

mod chains;
mod channel;
mod cid;
mod compressor;
#[doc(hidden)]
pub mod crc;
mod decompressor;
#[cfg(test)]
mod equal;
mod feedback;
mod formats;
#[cfg(feature = "hack")]
pub mod hack;
pub mod header;
mod ip_id;
mod items;
mod layers;
mod lsb;
mod quick;
mod state;
mod wire;

pub use channel::{Channel, ChannelConfig, ReceiveError, SendError, Sent};
pub use cid::CidSpace;
pub use compressor::{CompressError, Compressed, Compressor, CompressorConfig, FlowCounts, MAX_REPEAT};
pub use decompressor::{
    ContextCounts, DecompressError, DecompressErrorKind, Decompressed, Decompressor, DecompressorConfig,
};
pub use feedback::{Feedback, FeedbackKind, split_feedback};
pub use formats::FormatKind;
pub use layers::{Layers, MAX_LAYERS, MAX_LAYERS_LEN};
