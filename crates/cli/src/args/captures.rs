//! Arguments of commands that read captures, and of a hop that is reckoned with.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Arguments of `audit`.
#[derive(Debug, Args)]
pub struct AuditArgs {
    /// A pcap or pcapng file, or - for standard input: Ethernet, raw IP, PPP, Linux cooked, or 802.11 with or without a
    /// header of the radio
    pub capture: PathBuf,
    #[command(flatten)]
    pub hop: HopArgs,
    /// Minimum round-trip time, which TACK's row depends on
    #[arg(long, value_name = "TIME", default_value = "20ms")]
    pub rtt: String,
    /// Print JSON instead of tables
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `rohc`.
#[derive(Debug, Args)]
pub struct RohcArgs {
    /// What to do
    #[command(subcommand)]
    pub command: RohcCommand,
}

/// What `rohc` does.
#[derive(Debug, Subcommand)]
pub enum RohcCommand {
    /// Run a capture through a codec and back, check every octet, count and measure
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
        /// The file to write: each ROHC packet behind its length, 16 bits, little-endian; where it ends in .pcap or .pcapng, a
        /// capture of Ethernet frames with the EtherType of ROHC
        out: PathBuf,
        /// In how many packets each change is said, 1 to 8
        #[arg(long, value_name = "N", default_value_t = 2)]
        repeat: u8,
        /// How contexts are numbered: small (up to 16) or large (up to 16384)
        #[arg(long, value_name = "SPACE", default_value = "small")]
        cid: String,
        /// Print JSON instead of text
        #[arg(long)]
        json: bool,
    },
    /// Set our packets beside those that another implementation made of the same capture, and decompress theirs
    Compare {
        /// A pcap or pcapng file
        capture: PathBuf,
        /// The other's ROHC packets, one for each TCP packet of the capture, each behind its length
        other: PathBuf,
        /// In how many packets each change is said, 1 to 8
        #[arg(long, value_name = "N", default_value_t = 2)]
        repeat: u8,
        /// How contexts are numbered: small (up to 16) or large (up to 16384)
        #[arg(long, value_name = "SPACE", default_value = "small")]
        cid: String,
        /// Print JSON instead of tables
        #[arg(long)]
        json: bool,
    },
    /// Decompress such a file into a capture: pcap, raw IP
    Decompress {
        /// A file of ROHC packets, each behind its length, 16 bits, little-endian
        rohc: PathBuf,
        /// The pcap file to write
        out: PathBuf,
        /// How contexts are numbered: small (up to 16) or large (up to 16384)
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
    #[arg(long, value_name = "PHY", default_value = "802.11n")]
    pub phy: String,
    /// The rate of data frames
    #[arg(long, value_name = "RATE", default_value = "150Mbps")]
    pub rate: String,
}
