//! Captures: the files people record packets in, and the link layers found in them.
//!
//! Captures are hostile input: they are read as a stream, in bounded memory, and a fault names its
//! byte offset.

pub(crate) mod container;
pub(crate) mod link;

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

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
    /// Reading fails before any packet.
    #[error("{name}: cannot read at byte {offset}: {source}")]
    Read {
        /// The file.
        name: String,
        /// Bytes read until then.
        offset: u64,
        /// The cause.
        source: io::Error,
    },
    /// Nothing in it.
    #[error("{name}: is empty; a pcap or pcapng file is needed")]
    Empty {
        /// The file.
        name: String,
    },
    /// Some other kind of file.
    #[error("{name}: is neither pcap nor pcapng: {found}")]
    NotACapture {
        /// The file.
        name: String,
        /// A description of its first bytes.
        found: String,
    },
    /// A fault before any packet.
    #[error("{name}: no packet can be read: at byte {offset} {problem}")]
    Corrupt {
        /// The file.
        name: String,
        /// Bytes read until then.
        offset: u64,
        /// The fault.
        problem: String,
    },
    /// No packet is of a link type that is understood.
    #[error("{name}: link type {link_type} is not understood; these are: {SUPPORTED}")]
    LinkType {
        /// The file.
        name: String,
        /// The first one met.
        link_type: u16,
    },
    /// A fault behind packets that were read, where half a capture is of no use.
    #[error("{name}: packet {packet} (byte {offset}): {problem}; allowed: a whole pcap or pcapng file")]
    Broken {
        /// The file.
        name: String,
        /// The packet that cannot be read, counted from 1.
        packet: u64,
        /// Where it begins.
        offset: u64,
        /// The fault.
        problem: String,
    },
}

/// Opens the capture at `path` and reads its file header.
pub(crate) fn open(path: &Path) -> Result<Container<BufReader<File>>, CaptureError> {
    let name = path.display().to_string();
    match File::open(path) {
        Ok(file) => open_reader(file, &name),
        Err(source) => Err(CaptureError::Open { name, source }),
    }
}

/// Reads the file header of the capture that `reader` gives; `name` is for messages.
pub(crate) fn open_reader<R: Read>(reader: R, name: &str) -> Result<Container<BufReader<R>>, CaptureError> {
    Container::new(BufReader::with_capacity(64 * 1024, reader))
        .map_err(|fault| CaptureError::before_any_packet(fault, name, 0))
}

impl CaptureError {
    /// A fault before any packet was read; `offset` is 0 in the file header.
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
