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
use tacit_proto::units::{Duration, Instant};
use tacit_proto::{Packet, wire};

/// Link type of 802.11 frames behind radiotap headers.
const LINK_TYPE_RADIOTAP: u16 = 127;

/// Longest time from the beginning of a frame to the end of all that began before it: frames are told when they end, and
/// those of stations that do not hear each other overlap. The longest frame is one of 2346 bytes at 1 Mb/s, 19 ms.
const OVERLAP_MAX: Duration = Duration::from_millis(50);

/// A payload that can be written as the IP packet it stands for.
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
        // Only packets of more hosts or flows than there are addresses and ports have no bytes; their
        // frames are written without.
        let _ = wire::encode_into(self, out);
    }
}

/// Writes frames as they went on the air, in the order in which they began.
///
/// A frame that its addressee did not get is marked in radiotap as one with a bad FCS, and has one.
pub struct CaptureWriter<W: Write> {
    out: W,
    /// Beacons number themselves: an [`AirFrame`] does not.
    beacons: u16,
    frame: Vec<u8>,
    /// Blocks of frames before which another one may still have begun, by that time and the order of their ends.
    waiting: BTreeMap<(Instant, u64), Vec<u8>>,
    told: u64,
    /// Buffers of blocks that were written.
    spare: Vec<Vec<u8>>,
}

impl<W: Write> CaptureWriter<W> {
    /// Starts a file.
    ///
    /// # Errors
    /// When `out` fails.
    pub fn new(mut out: W) -> io::Result<Self> {
        let mut block = Vec::new();
        pcapng::section_header(&mut block);
        pcapng::interface_description(&mut block, LINK_TYPE_RADIOTAP, b"air");
        out.write_all(&block)?;
        let (waiting, spare) = (BTreeMap::new(), vec![block]);
        Ok(Self { out, beacons: 0, frame: Vec::new(), waiting, told: 0, spare })
    }

    /// Takes one frame in `band`, when it has ended, and the power at which it was heard, if that is known.
    ///
    /// # Errors
    /// When the underlying writer fails; the file then ends inside a block.
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
        pcapng::enhanced_packet(&mut block, frame.at, &[&self.frame]);
        self.waiting.insert((frame.at, self.told), block);
        self.told += 1;
        let settled = Instant::from_nanos(frame.at.as_nanos().saturating_sub(OVERLAP_MAX.as_nanos()));
        while let Some(first) = self.waiting.first_entry().filter(|first| first.key().0 < settled) {
            let block = first.remove();
            self.out.write_all(&block)?;
            self.spare.push(block);
        }
        Ok(())
    }

    /// Flushes, and hands back the writer.
    ///
    /// # Errors
    /// When flushing fails.
    pub fn finish(mut self) -> io::Result<W> {
        for block in self.waiting.values() {
            self.out.write_all(block)?;
        }
        self.out.flush()?;
        Ok(self.out)
    }
}

/// Why a capture could not be written, in a sentence's words.
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
