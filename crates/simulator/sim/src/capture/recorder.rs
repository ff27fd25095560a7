//! Captures the frames of a run.

use std::io;

use tacit_link::wifi::phy::Band;
use tacit_link::wifi::{AirFrame, BssConfig};

use super::{AtomicFile, CaptureWriter, FrameBytes, Signals};
use crate::Observer;
use crate::setup::{BssSetup, Setup};

/// Writes each observed frame to a file, until writing fails.
pub struct Recorder {
    writer: CaptureWriter<AtomicFile>,
    signals: Signals,
    /// Band of each link of each basic service set.
    bands: Vec<Vec<Band>>,
    failed: Option<io::Error>,
}

impl Recorder {
    /// Starts a capture of a run of `setup`.
    ///
    /// # Errors
    /// If `file` cannot be written.
    pub fn new(file: AtomicFile, setup: &Setup) -> io::Result<Self> {
        let bands = |bss: &BssSetup| bss.config.links().map(|link| link.variant.band).collect();
        let names: Vec<String> = setup.bss.first().map_or_else(Vec::new, |bss| {
            bss.config.links().zip(1..).map(|(link, number)| name(link, number)).collect()
        });
        let writer =
            if names.len() > 1 { CaptureWriter::of_links(file, &names)? } else { CaptureWriter::new(file)? };
        let bands = setup.bss.iter().map(bands).collect();
        Ok(Self { writer, signals: Signals::from_setup(setup), bands, failed: None })
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
            self.failed = self.writer.write(frame, self.bands[bss][frame.link.index()], signal_dbm).err();
        }
    }
}

/// Name of the interface of a link: its number, band and width.
fn name(link: &BssConfig, number: u32) -> String {
    let width = link.stations.iter().map(|station| station.mode.width_mhz).max().unwrap_or(20);
    format!("link {number}: {}, {width} MHz", link.variant.band.name())
}
