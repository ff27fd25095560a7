//! Captures of the air, as pcapng files of 802.11 frames with radiotap headers (link type 127).
//!
//! Time zero of the run is 1970-01-01 00:00 UTC in the file.

mod atomic;
mod dot11;
pub mod fields;
pub mod pcapng;
mod radiotap;
mod recorder;
mod signals;

pub use atomic::AtomicFile;
pub use recorder::Recorder;
pub use signals::Signals;

use std::collections::BTreeMap;
use std::io::{self, Write};

use tacit_link::wifi::AirFrame;
use tacit_link::wifi::phy::Band;
use tacit_packet::units::{Duration, Instant};
use tacit_packet::{Packet, wire};

/// Link type of 802.11 frames after radiotap headers.
const LINK_TYPE_RADIOTAP: u16 = 127;

/// Longest time from the start of a frame to the end of all frames that began before it. Frames are reported when they
/// end, and those of stations that do not hear each other overlap. The longest frame has 2346 bytes at 1 Mb/s, 19 ms.
const OVERLAP_MAX: Duration = Duration::from_millis(50);

/// A payload that can be written as an IP packet.
pub trait FrameBytes {
    /// Appends the bytes of the IP packet, from the IP header on.
    fn write_to(&self, out: &mut Vec<u8>);
}

impl FrameBytes for Vec<u8> {
    fn write_to(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }
}

impl FrameBytes for Packet {
    fn write_to(&self, out: &mut Vec<u8>) {
        // Only packets with more hosts or flows than there are addresses and ports cannot be encoded; their frames are
        // written without payload.
        let _ = wire::encode_into(self, out);
    }
}

/// Writes transmitted frames in the order in which they began.
///
/// A frame that its receiver did not get is marked in radiotap as having a bad FCS, and its FCS is wrong.
pub struct CaptureWriter<W: Write> {
    out: W,
    /// Number of the next beacon, because an [`AirFrame`] has none.
    beacons: u16,
    frame: Vec<u8>,
    /// Blocks of frames that may still have to be written after others, by start time and order of their ends.
    waiting: BTreeMap<(Instant, u64), Vec<u8>>,
    order: u64,
    /// Buffers of written blocks, for reuse.
    spare: Vec<Vec<u8>>,
}

impl<W: Write> CaptureWriter<W> {
    /// Starts a file with one interface.
    ///
    /// # Errors
    /// If `out` fails.
    pub fn new(out: W) -> io::Result<Self> {
        Self::of_links(out, &["air".to_owned()])
    }

    /// Starts a file with an interface for each link, of these names.
    ///
    /// # Errors
    /// If `out` fails.
    pub fn of_links(mut out: W, names: &[String]) -> io::Result<Self> {
        let mut block = Vec::new();
        pcapng::section_header(&mut block);
        for name in names {
            pcapng::interface_description(&mut block, LINK_TYPE_RADIOTAP, name.as_bytes());
        }
        out.write_all(&block)?;
        let (waiting, spare) = (BTreeMap::new(), vec![block]);
        Ok(Self { out, beacons: 0, frame: Vec::new(), waiting, order: 0, spare })
    }

    /// Adds a frame in `band` that has ended, with the power at which it was received, if known.
    ///
    /// # Errors
    /// If the underlying writer fails; the file then ends inside a block.
    pub fn write<P: FrameBytes>(
        &mut self,
        frame: &AirFrame<P>,
        band: Band,
        signal_dbm: Option<i8>,
    ) -> io::Result<()> {
        self.frame.clear();
        radiotap::header(&mut self.frame, frame, band, signal_dbm);
        if dot11::frame(&mut self.frame, frame, self.beacons) == dot11::Numbered::Beacon {
            self.beacons = self.beacons.wrapping_add(1);
        }
        let mut block = self.spare.pop().unwrap_or_default();
        block.clear();
        pcapng::enhanced_packet(&mut block, u32::from(frame.link.0), frame.at, &[&self.frame]);
        self.waiting.insert((frame.at, self.order), block);
        self.order += 1;
        let settled = Instant::from_nanos(frame.at.as_nanos().saturating_sub(OVERLAP_MAX.as_nanos()));
        while let Some(first) = self.waiting.first_entry().filter(|first| first.key().0 < settled) {
            let block = first.remove();
            self.out.write_all(&block)?;
            self.spare.push(block);
        }
        Ok(())
    }

    /// Flushes, and returns the writer.
    ///
    /// # Errors
    /// If flushing fails.
    pub fn finish(mut self) -> io::Result<W> {
        for block in self.waiting.values() {
            self.out.write_all(block)?;
        }
        self.out.flush()?;
        Ok(self.out)
    }
}

/// Why a capture could not be written, as part of a sentence.
pub fn why(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::BrokenPipe => "the program that reads the capture stopped before its end".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod atomic_tests;
#[cfg(test)]
mod tests;
