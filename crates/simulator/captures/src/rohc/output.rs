//! Output files for ROHC packets: with length fields, or as captures.

use std::io::{self, Write};
use std::path::Path;

use tacit_packet::units::Instant;
use tacit_sim::capture::{AtomicFile, pcapng};

/// Link type of Ethernet.
const ETHERNET: u16 = 1;
/// Link type of raw IP packets.
pub(super) const RAW_IP: u16 = 101;
/// The largest snap length that libpcap accepts.
const LONGEST_FRAME: u32 = 262_144;
/// Ethernet header from the compressor to the decompressor, with locally administered addresses and the EtherType of
/// ROHC (0x22f1, IEEE registry).
const ETHERNET_HEADER: [u8; 14] = [0x02, 0, 0, 0, 0, 2, 0x02, 0, 0, 0, 0, 1, 0x22, 0xf1];

/// Resolution of times in a classic pcap file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clock {
    Microseconds,
    Nanoseconds,
}

/// Layout of ROHC packets in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    /// Each packet is preceded by its length: 16 bits, little-endian.
    Lengths,
    /// Ethernet frames in a classic pcap file.
    Pcap,
    /// Ethernet frames in a pcapng file.
    PcapNg,
}

impl Layout {
    /// The layout indicated by the file name extension.
    fn from_extension(path: &Path) -> Self {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("pcap") => Self::Pcap,
            Some("pcapng") => Self::PcapNg,
            _ => Self::Lengths,
        }
    }
}

/// A file of ROHC packets under construction.
pub(super) struct RohcFile {
    out: AtomicFile,
    layout: Layout,
    block: Vec<u8>,
}

impl RohcFile {
    /// Creates the file, which appears under its name when it is complete.
    pub fn create(path: &Path) -> io::Result<Self> {
        let mut file =
            Self { out: AtomicFile::create(path)?, layout: Layout::from_extension(path), block: Vec::new() };
        match file.layout {
            Layout::Lengths => {}
            Layout::Pcap => file.block.extend(pcap_header(Clock::Nanoseconds, ETHERNET, LONGEST_FRAME)),
            Layout::PcapNg => {
                pcapng::section_header(&mut file.block);
                pcapng::interface_description(&mut file.block, ETHERNET, b"rohc");
            }
        }
        file.flush_block()?;
        Ok(file)
    }

    /// Length of the longest packet that it can hold, in bytes.
    pub const fn longest(&self) -> usize {
        match self.layout {
            Layout::Lengths => u16::MAX as usize,
            Layout::Pcap | Layout::PcapNg => usize::MAX,
        }
    }

    /// Appends a packet of at most [`longest`](Self::longest) bytes. `at_nanos` is the capture time in nanoseconds
    /// since 1970; captures can only represent times from 1970 to 2554.
    pub fn write(&mut self, rohc: &[u8], at_nanos: Option<i128>) -> io::Result<()> {
        let at = u64::try_from(at_nanos.unwrap_or(0).max(0)).unwrap_or(u64::MAX);
        match self.layout {
            Layout::Lengths => {
                self.block.extend((rohc.len() as u16).to_le_bytes());
                self.block.extend_from_slice(rohc);
            }
            Layout::Pcap => pcap_record(
                &mut self.block,
                (at / 1_000_000_000, at % 1_000_000_000),
                &[&ETHERNET_HEADER, rohc],
            ),
            Layout::PcapNg => {
                pcapng::enhanced_packet(
                    &mut self.block,
                    0,
                    Instant::from_nanos(at),
                    &[&ETHERNET_HEADER, rohc],
                );
            }
        }
        self.flush_block()
    }

    fn flush_block(&mut self) -> io::Result<()> {
        self.out.write_all(&self.block)?;
        self.block.clear();
        Ok(())
    }

    /// Makes the file appear under its name.
    pub fn commit(self) -> io::Result<()> {
        self.out.commit()
    }
}

/// A pcap file header: version 2.4, little-endian, frames of up to `longest` bytes.
pub(super) fn pcap_header(clock: Clock, link_type: u16, longest: u32) -> [u8; 24] {
    let magic: u32 = match clock {
        Clock::Microseconds => 0xa1b2_c3d4,
        Clock::Nanoseconds => 0xa1b2_3c4d,
    };
    let mut header = [0; 24];
    header[..4].copy_from_slice(&magic.to_le_bytes());
    header[4..8].copy_from_slice(&[2, 0, 4, 0]);
    header[16..20].copy_from_slice(&longest.to_le_bytes());
    header[20..22].copy_from_slice(&link_type.to_le_bytes());
    header
}

/// Appends a pcap record of `parts` at (seconds, fraction).
pub(super) fn pcap_record(out: &mut Vec<u8>, (seconds, fraction): (u64, u64), parts: &[&[u8]]) {
    let len = parts.iter().map(|part| part.len() as u32).sum::<u32>();
    // A pcap file cannot represent times after 2106.
    let seconds = u32::try_from(seconds).unwrap_or(u32::MAX);
    for field in [seconds, fraction as u32, len, len] {
        out.extend(field.to_le_bytes());
    }
    parts.iter().for_each(|part| out.extend_from_slice(part));
}
