//! Errors in converting between captures and compressed packets. Each is one line of text.

use std::io;
use std::path::{Path, PathBuf};

use crate::capture::CaptureError;
use tacit_scenario::InputError;

/// Why a capture could not be compressed, or compressed packets could not be converted to a capture.
#[derive(Debug, thiserror::Error)]
pub enum RohcError {
    /// An error in the user's input.
    #[error(transparent)]
    Input(#[from] InputError),
    /// A capture that cannot be used.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// A file or directory that cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The codec did not restore a packet unchanged, which is a defect of this program.
    #[error("{place}: {what}; no file was written")]
    RoundTrip {
        /// File and packet.
        place: String,
        /// The failure: of compression, of decompression, or a changed packet.
        what: String,
    },
}

impl RohcError {
    /// Creates an I/O error with the path of the file.
    pub(super) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }
}
