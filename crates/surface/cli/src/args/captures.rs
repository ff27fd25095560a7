//! Arguments of commands that read captures, and of a hop in closed form.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use tacit_theory::hop::{USUAL_PHY, USUAL_RATE};

use super::WidthArgs;

/// Arguments of `audit`.
#[derive(Debug, Args)]
pub struct AuditArgs {
    /// A pcap or pcapng file, or - for standard input: Ethernet, raw IP, PPP, Linux cooked, or 802.11 with or without a
    /// radio header
    pub capture: PathBuf,
    /// The 802.11 amendment of the prediction; by default, with --rate, that of most data in the capture, where frames have
    /// radiotap headers, else 802.11n
    #[arg(long, value_name = "PHY")]
    pub phy: Option<String>,
    /// The rate of data frames in the prediction; by default as --phy, else 150Mbps
    #[arg(long, value_name = "RATE")]
    pub rate: Option<String>,
    /// Minimum round-trip time, for TACK's row
    #[arg(long, value_name = "TIME", default_value = "20ms")]
    pub rtt: String,
    /// Print JSON instead of tables
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub width: WidthArgs,
}

/// Arguments of `rohc`.
#[derive(Debug, Args)]
pub struct RohcArgs {
    /// The subcommand
    #[command(subcommand)]
    pub command: RohcCommand,
}

/// Subcommands of `rohc`.
#[derive(Debug, Subcommand)]
pub enum RohcCommand {
    /// Compress and decompress a capture, check every byte, and measure
    Stats {
        /// A pcap or pcapng file
        capture: PathBuf,
        /// strict (RFC 6846), hack (TCP/HACK, ACK by ACK) or hack-batch (the ACKs of a frame as one run)
        #[arg(long, value_name = "CODEC", default_value = "strict")]
        codec: String,
        /// Print JSON instead of tables
        #[arg(long)]
        json: bool,
    },
    /// Compress the TCP packets of a capture into a file of RFC 6846 packets
    Compress {
        /// A pcap or pcapng file
        capture: PathBuf,
        /// The file to write: each ROHC packet after its length, 16 bits, little-endian; with the extension .pcap or .pcapng a
        /// capture of Ethernet frames with ROHC's EtherType
        out: PathBuf,
        /// Number of packets that repeat each change, 1 to 8
        #[arg(long, value_name = "N", default_value_t = 2)]
        repeat: u8,
        /// Context identifiers: small (up to 16 contexts) or large (up to 16384)
        #[arg(long, value_name = "SPACE", default_value = "small")]
        cid: String,
        /// Print JSON instead of text
        #[arg(long)]
        json: bool,
    },
    /// Compare our packets with another implementation's of the same capture, and decompress theirs
    Compare {
        /// A pcap or pcapng file
        capture: PathBuf,
        /// The other implementation's ROHC packets, one per TCP packet of the capture, each after its length
        other: PathBuf,
        /// Number of packets that repeat each change, 1 to 8
        #[arg(long, value_name = "N", default_value_t = 2)]
        repeat: u8,
        /// Context identifiers: small (up to 16 contexts) or large (up to 16384)
        #[arg(long, value_name = "SPACE", default_value = "small")]
        cid: String,
        /// Print JSON instead of tables
        #[arg(long)]
        json: bool,
    },
    /// Decompress a file of `compress` into a capture: pcap, raw IP
    Decompress {
        /// A file of ROHC packets, each after its length, 16 bits, little-endian
        rohc: PathBuf,
        /// The pcap file to write
        out: PathBuf,
        /// Context identifiers: small (up to 16 contexts) or large (up to 16384)
        #[arg(long, value_name = "SPACE", default_value = "small")]
        cid: String,
        /// Print JSON instead of text
        #[arg(long)]
        json: bool,
    },
}

/// Arguments that name a wireless hop.
#[derive(Debug, Args)]
pub struct HopArgs {
    /// The 802.11 amendment
    #[arg(long, value_name = "PHY", default_value = USUAL_PHY)]
    pub phy: String,
    /// The rate of data frames
    #[arg(long, value_name = "RATE", default_value = USUAL_RATE)]
    pub rate: String,
}
