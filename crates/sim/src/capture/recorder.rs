//! A run's capture.

use std::io;

use tacit_link::wifi::AirFrame;
use tacit_link::wifi::phy::Band;

use super::{AtomicFile, CaptureWriter, FrameBytes, Signals};
use crate::Observer;
use crate::setup::Setup;

/// Writes each frame that it hears to a file, until writing fails.
pub struct Recorder {
    writer: CaptureWriter<AtomicFile>,
    signals: Signals,
    /// Of each basic service set.
    bands: Vec<Band>,
    failed: Option<io::Error>,
}

impl Recorder {
    /// Starts a capture of a run of `setup`.
    ///
    /// # Errors
    /// When `file` cannot be written.
    pub fn new(file: AtomicFile, setup: &Setup) -> io::Result<Self> {
        let bands = setup.bss.iter().map(|bss| bss.config.variant.band).collect();
        Ok(Self { writer: CaptureWriter::new(file)?, signals: Signals::of(setup), bands, failed: None })
    }

    /// Gives the file its name, now that all of it is there.
    ///
    /// # Errors
    /// When some of it could not be written: there is no file then.
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
