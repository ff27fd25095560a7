//! Capture files and the link layers in them.
//!
//! Captures are untrusted input: they are read as a stream in bounded memory, and faults are reported with their byte
//! offset, which counts decompressed bytes.

pub(crate) mod compressed;
pub(crate) mod container;
pub(crate) mod link;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use compressed::Decompressed;
use container::{Container, Fault};
use link::SUPPORTED;

/// Why a capture cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The file cannot be opened.
    #[error("{name}: cannot open: {source}")]
    Open {
        /// The file.
        name: String,
        /// The cause.
        source: io::Error,
    },
    /// Reading failed before the first packet.
    #[error("{name}: cannot read at byte {offset}: {source}")]
    Read {
        /// The file.
        name: String,
        /// Number of bytes read before the failure.
        offset: u64,
        /// The cause.
        source: io::Error,
    },
    /// The file is empty.
    #[error("{name}: is empty; a pcap or pcapng file is needed")]
    Empty {
        /// The file.
        name: String,
    },
    /// The file has another format.
    #[error("{name}: is neither pcap nor pcapng: {found}")]
    NotACapture {
        /// The file.
        name: String,
        /// A description of its first bytes.
        found: String,
    },
    /// The file is corrupt before the first packet.
    #[error("{name}: no packet can be read: at byte {offset} {problem}")]
    Corrupt {
        /// The file.
        name: String,
        /// Number of bytes read before the fault.
        offset: u64,
        /// The fault.
        problem: String,
    },
    /// No packet has a supported link type.
    #[error("{name}: link type {link_type} is not understood; these are: {SUPPORTED}")]
    LinkType {
        /// The file.
        name: String,
        /// The first link type found.
        link_type: u16,
    },
    /// The file is corrupt after some packets, in a context that needs the whole capture.
    #[error("{name}: packet {packet} (byte {offset}): {problem}; allowed: a whole pcap or pcapng file")]
    Broken {
        /// The file.
        name: String,
        /// Number of the unreadable packet, counted from 1.
        packet: u64,
        /// Its byte offset.
        offset: u64,
        /// The fault.
        problem: String,
    },
}

/// Opens the capture at `path` and reads its file header.
pub(crate) fn open(path: &Path) -> Result<Container<Decompressed<File>>, CaptureError> {
    let name = path.display().to_string();
    match File::open(path) {
        Ok(file) => open_reader(file, &name),
        Err(source) => Err(CaptureError::Open { name, source }),
    }
}

/// Reads the file header of the capture from `reader`; `name` is used in messages.
pub(crate) fn open_reader<R: Read>(
    reader: R,
    name: &str,
) -> Result<Container<Decompressed<R>>, CaptureError> {
    Decompressed::new(reader)
        .map_err(Fault::Io)
        .and_then(Container::new)
        .map_err(|fault| CaptureError::before_any_packet(fault, name, 0))
}

impl CaptureError {
    /// The error for a fault before the first packet; `offset` is 0 in the file header.
    pub(crate) fn before_any_packet(fault: Fault, name: &str, offset: u64) -> Self {
        let name = name.to_owned();
        match fault {
            Fault::Io(source) => Self::Read { name, offset, source },
            Fault::Empty => Self::Empty { name },
            Fault::NotACapture(found) => Self::NotACapture { name, found },
            Fault::Truncated => Self::Corrupt { name, offset, problem: "the file ends".into() },
            Fault::Corrupt(problem) => Self::Corrupt { name, offset, problem },
        }
    }
}
