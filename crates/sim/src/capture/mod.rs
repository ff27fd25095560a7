//! What was on the air, as a pcapng file of 802.11 frames with radiotap headers (link type 127).
//!
//! Time zero of the run is 1970-01-01 00:00 UTC in the file.

mod atomic;
mod dot11;
mod pcapng;
mod radiotap;

pub use atomic::AtomicFile;

use std::io::{self, Write};

use tacit_link::wifi::AirFrame;
use tacit_proto::{Packet, wire};

/// Link type of 802.11 frames behind radiotap headers.
const LINK_TYPE_RADIOTAP: u16 = 127;

/// A payload that can be written as the IP packet it stands for.
pub trait FrameBytes {
    /// Appends the octets of the IP packet, from the IP header on.
    fn write_to(&self, out: &mut Vec<u8>);
}

impl FrameBytes for Vec<u8> {
    fn write_to(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }
}

impl FrameBytes for Packet {
    fn write_to(&self, out: &mut Vec<u8>) {
        // Only packets of more hosts or flows than there are addresses and ports have no bytes; their
        // frames are written without.
        let _ = wire::encode_into(self, out);
    }
}

/// Writes frames as they went on the air.
///
/// A frame that its addressee did not get is marked in radiotap as one with a bad FCS, and has one.
pub struct CaptureWriter<W: Write> {
    out: W,
    /// Beacons number themselves: an [`AirFrame`] does not.
    beacons: u16,
    frame: Vec<u8>,
    block: Vec<u8>,
}

impl<W: Write> CaptureWriter<W> {
    /// Starts a file.
    ///
    /// # Errors
    /// When `out` fails.
    pub fn new(mut out: W) -> io::Result<Self> {
        let mut block = Vec::new();
        pcapng::section_header(&mut block);
        pcapng::interface_description(&mut block, LINK_TYPE_RADIOTAP);
        out.write_all(&block)?;
        Ok(Self { out, beacons: 0, frame: Vec::new(), block })
    }

    /// Appends one frame.
    ///
    /// # Errors
    /// When the underlying writer fails; the file then ends inside a block.
    pub fn write<P: FrameBytes>(&mut self, frame: &AirFrame<P>) -> io::Result<()> {
        self.frame.clear();
        radiotap::header(&mut self.frame, frame);
        if dot11::frame(&mut self.frame, frame, self.beacons) == dot11::Numbered::Beacon {
            self.beacons = self.beacons.wrapping_add(1);
        }
        self.block.clear();
        pcapng::enhanced_packet(&mut self.block, frame.at, &self.frame);
        self.out.write_all(&self.block)
    }

    /// Flushes, and hands back what was written to.
    ///
    /// # Errors
    /// When flushing fails.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }
}

#[cfg(test)]
mod atomic_tests;
#[cfg(test)]
mod tests;
