//! Errors between captures and compressed packets, as one line each.

use std::io;
use std::path::{Path, PathBuf};

use crate::capture::CaptureError;
use tacit_scenario::InputError;

/// Why a capture was not compressed, or compressed packets are no capture.
#[derive(Debug, thiserror::Error)]
pub enum RohcError {
    /// Something the user wrote.
    #[error(transparent)]
    Input(#[from] InputError),
    /// A capture that cannot be used.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// A file or directory that cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A packet did not come back from the codec as it went in: a defect of this program.
    #[error("{place}: {what}; no file was written")]
    RoundTrip {
        /// File and packet.
        place: String,
        /// The failure: of compression, of decompression, or a changed packet.
        what: String,
    },
}

impl RohcError {
    /// Makes an I/O error that names its file.
    pub(super) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }
}
