//! Captures the frames of a run.

use std::io;

use tacit_link::wifi::AirFrame;
use tacit_link::wifi::phy::Band;

use super::{AtomicFile, CaptureWriter, FrameBytes, Signals};
use crate::Observer;
use crate::setup::Setup;

/// Writes each observed frame to a file, until writing fails.
pub struct Recorder {
    writer: CaptureWriter<AtomicFile>,
    signals: Signals,
    /// Band of each basic service set.
    bands: Vec<Band>,
    failed: Option<io::Error>,
}

impl Recorder {
    /// Starts a capture of a run of `setup`.
    ///
    /// # Errors
    /// If `file` cannot be written.
    pub fn new(file: AtomicFile, setup: &Setup) -> io::Result<Self> {
        let bands = setup.bss.iter().map(|bss| bss.config.variant.band).collect();
        Ok(Self { writer: CaptureWriter::new(file)?, signals: Signals::of(setup), bands, failed: None })
    }

    /// Gives the complete file its name.
    ///
    /// # Errors
    /// If some of it could not be written; there is no file then.
    pub fn finish(self) -> io::Result<()> {
        let written = self.failed.map_or(Ok(()), Err);
        written.and_then(|()| self.writer.finish()).and_then(AtomicFile::commit)
    }
}

impl<P: FrameBytes> Observer<P> for Recorder {
    fn on_air(&mut self, bss: usize, frame: &AirFrame<P>) {
        if self.failed.is_none() {
            let signal_dbm = self.signals.of_frame(bss, frame);
            self.failed = self.writer.write(frame, self.bands[bss], signal_dbm).err();
        }
    }
}
