//! Messages: a length in bytes (u32, big endian) and JSON of that length. Contents are sent between messages as raw
//! pieces.

use serde::{Deserialize, Serialize};
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _,
};

use super::{CopyError, Options, Report, Summary};

/// Version of the protocol. Both ends must have the same.
pub const VERSION: u32 = 3;
/// Longest message or piece of contents, in bytes: one buffer of this size can hold any.
pub const LENGTH_MAX: usize = 64 * 1024;
/// Most paths in one copy, which limits a receiver's memory for them to 1 GiB.
pub const ENTRIES_MAX: usize = 1_000_000;
/// Most bytes of all paths and link targets in one copy.
pub const NAMES_BYTES_MAX: usize = 256 << 20;
/// Most bytes of a path, link target or reason: PATH_MAX of Linux.
pub const PATH_BYTES_MAX: usize = 4096;
/// Most bytes of a name: NAME_MAX of Linux.
pub const NAME_BYTES_MAX: usize = 255;
/// Set in a piece's length: the piece is a hole, and the other bits are its length.
const HOLE: u32 = 1 << 31;
/// Longest hole in one piece, in bytes. Ours: a receiver hashes holes, and this limits its cost for four bytes on the
/// wire to some milliseconds.
pub const HOLE_BYTES_MAX: u64 = 16 << 20;
/// Most paths that a client may request, and patterns that it may exclude, in one copy. They must fit in one message.
/// Ours.
pub const ASKED_MAX: usize = 4096;

/// Direction of the contents, as seen from the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From the client to the server.
    Push,
    /// From the server to the client.
    Pull,
}

/// Type of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Kind {
    /// A file.
    File {
        /// Its length in bytes.
        size_bytes: u64,
        /// Hash of its contents, if contents are to be compared.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        blake3: Option<String>,
    },
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink {
        /// Target of the link.
        target: String,
    },
    /// A file whose length is not known in advance.
    Stream,
}

/// A point in time with nanosecond resolution, in the range of file systems.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "(i64, u32)", into = "(i64, u32)")]
pub struct Timestamp {
    /// Whole seconds since 1970, rounded down.
    s: i64,
    /// Nanoseconds in addition to `s`.
    ns: u32,
}

impl Timestamp {
    /// `ns` nanoseconds after `s` seconds since 1970; `None` if `ns` is a second or more, because such values have
    /// special meanings in system calls.
    pub fn new(s: i64, ns: u32) -> Option<Self> {
        (ns < 1_000_000_000).then_some(Self { s, ns })
    }

    /// Whole seconds since 1970, rounded down.
    pub fn s(self) -> i64 {
        self.s
    }

    /// Nanoseconds in addition to the seconds.
    pub fn ns(self) -> u32 {
        self.ns
    }
}

impl TryFrom<(i64, u32)> for Timestamp {
    type Error = &'static str;

    fn try_from((s, ns): (i64, u32)) -> Result<Self, Self::Error> {
        Self::new(s, ns).ok_or("a second has less than 1,000,000,000 ns")
    }
}

impl From<Timestamp> for (i64, u32) {
    fn from(Timestamp { s, ns }: Timestamp) -> Self {
        (s, ns)
    }
}

/// An entry of the source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Relative path with components separated by slashes.
    pub path: String,
    /// Its type.
    pub kind: Kind,
    /// Modification time.
    pub mtime: Timestamp,
    /// Permission bits.
    pub mode: u32,
}

/// What a client requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Work {
    /// Send files to the server.
    Push {
        /// The destination, relative to the served directory.
        path: String,
        /// The destination is a directory, which is created if it does not exist; otherwise `path` may be the new name
        /// of a single source.
        is_directory: bool,
    },
    /// Get files from the server.
    Pull {
        /// Paths relative to the served directory. A path that ends in a slash is sent without its name; one that does
        /// not exist is a pattern.
        paths: Vec<String>,
        /// New name of a single source.
        name: Option<String>,
    },
    /// List paths, as [`Message::Entry`]s.
    List(Listing),
}

/// A request for a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listing {
    /// As in [`Work::Pull`].
    pub paths: Vec<String>,
    /// Also list subdirectories.
    pub is_recursive: bool,
    /// Also list partial files of interrupted copies.
    pub with_parts: bool,
}

impl Work {
    /// Direction of the contents; `None` for a list.
    pub fn direction(&self) -> Option<Direction> {
        match self {
            Self::Push { .. } => Some(Direction::Push),
            Self::Pull { .. } => Some(Direction::Pull),
            Self::List(_) => None,
        }
    }

    /// The paths on the server, joined in one line.
    pub fn paths(&self) -> String {
        match self {
            Self::Push { path, .. } => path.clone(),
            Self::Pull { paths, .. } | Self::List(Listing { paths, .. }) => paths.join(" "),
        }
    }
}

/// The options of version 1, which are still part of [`Message::Hello`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HelloOptions {
    checksum: bool,
    delete: bool,
    dry_run: bool,
}

/// All messages of the protocol.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case", deny_unknown_fields)]
pub enum Message {
    /// First message of the client. It keeps the format of version 1 forever, so that ends of any two versions can
    /// refuse each other with a readable reason.
    Hello {
        /// [`VERSION`].
        version: u32,
        /// Field of version 1.
        direction: Direction,
        /// Field of version 1.
        path: String,
        /// Field of version 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// Field of version 1.
        options: HelloOptions,
    },
    /// From the client, directly after [`Message::Hello`].
    Ask {
        /// The request.
        work: Work,
        /// Its options.
        options: Options,
    },
    /// The server accepts the request.
    Ready {
        /// Name for a single source, if the path is not a directory.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
    /// The server refuses the request.
    Refused {
        /// The reason.
        reason: String,
    },
    /// Sender: an entry of the source.
    Entry(Entry),
    /// Sender: a path of the source that is not sent. The receiver deletes nothing there; for a directory, nothing
    /// below it either.
    Omitted {
        /// The path; bytes that are not valid UTF-8 are replaced.
        path: String,
        /// The reason.
        reason: String,
        /// True if the path could not be read, false if its type is not copied.
        is_failure: bool,
    },
    /// Sender: no more paths.
    EntriesEnd {
        /// The list contains a whole directory, which is sent without its name.
        is_top_listed: bool,
    },
    /// Receiver: send this file.
    Want {
        /// Its index in the manifest.
        index: usize,
        /// Bytes that the receiver already has.
        offset_bytes: u64,
        /// Hash of those bytes.
        blake3: String,
    },
    /// Receiver: no more wants.
    WantsEnd,
    /// Sender: contents follow as pieces up to an empty piece, then [`Message::ContentsEnd`].
    Contents {
        /// Index in the manifest.
        index: usize,
        /// Offset of the first byte: the wanted offset, or 0 if the receiver's bytes are not a prefix of the file.
        offset_bytes: u64,
        /// Size of the file when it was opened; `None` for a stream.
        size_bytes: Option<u64>,
        /// Modification time when it was opened; `None` for a stream.
        mtime: Option<Timestamp>,
    },
    /// Sender: the end of a file.
    ContentsEnd {
        /// Hash of the whole file, including the prefix.
        blake3: String,
        /// Why the contents are invalid: the file changed while it was read, or could not be read.
        failure: Option<String>,
        /// The file was listed, and no longer exists. No contents were sent.
        has_vanished: bool,
    },
    /// Receiver, while contents are sent: this file cannot be stored. The sender ends it and continues with the next
    /// one.
    Stop {
        /// Index in the manifest.
        index: usize,
        /// The reason.
        reason: String,
    },
    /// Receiver: the outcome of a path.
    Report(Report),
    /// Receiver: totals; the last message.
    Summary(Summary),
}

impl Message {
    /// The first message of a client.
    pub fn hello() -> Self {
        let (version, direction, options) = (VERSION, Direction::Pull, HelloOptions::default());
        Self::Hello { version, direction, path: String::new(), name: None, options }
    }
}

/// A part of a file's contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// At least one byte.
    Bytes(&'a [u8]),
    /// A run of zeros that is sent as its length only.
    Hole(u64),
    /// The end of the contents.
    End,
}

/// Truncates text that would not fit in a message.
pub fn bounded(mut text: String) -> String {
    let mut end = text.len().min(PATH_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text
}

/// Writes `message`.
///
/// # Errors
/// If it is too long, or the stream breaks.
pub async fn write(stream: &mut (impl AsyncWrite + Unpin), message: &Message) -> Result<(), CopyError> {
    let bytes = serde_json::to_vec(message).map_err(std::io::Error::from)?;
    write_piece(stream, &bytes).await
}

/// Reads one message.
///
/// # Errors
/// If the bytes are not a message, or the stream breaks.
pub async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Result<Message, CopyError> {
    let bytes = read_piece(stream).await?;
    serde_json::from_slice(&bytes).map_err(|error| CopyError::Protocol(format!("no message: {error}")))
}

/// Writes the length of `bytes`, followed by `bytes`.
///
/// # Errors
/// If there are too many bytes, or the stream breaks.
pub async fn write_piece(stream: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> Result<(), CopyError> {
    let length = u32::try_from(bytes.len()).ok().filter(|_| bytes.len() <= LENGTH_MAX);
    let length = length.ok_or(CopyError::Limit { what: "bytes in a message", max: LENGTH_MAX })?;
    stream.write_all(&length.to_be_bytes()).await?;
    Ok(stream.write_all(bytes).await?)
}

/// A buffer for a piece of contents, with room for the length in front, so that both are sent in one write.
#[derive(Debug)]
pub struct Contents(Vec<u8>);

impl Default for Contents {
    /// Room for a piece of any length.
    fn default() -> Self {
        Self(vec![0; size_of::<u32>() + LENGTH_MAX])
    }
}

impl Contents {
    /// Buffer for the bytes of the next piece.
    pub fn room(&mut self) -> &mut [u8] {
        &mut self.0[size_of::<u32>()..]
    }

    /// The first `count` bytes.
    pub fn bytes(&self, count: usize) -> &[u8] {
        &self.0[size_of::<u32>()..][..count]
    }

    /// Writes the first `count` bytes as a piece.
    ///
    /// # Errors
    /// If the stream breaks.
    pub async fn write(
        &mut self,
        stream: &mut (impl AsyncWrite + Unpin),
        count: usize,
    ) -> Result<(), CopyError> {
        let (length, _) = self.0.split_at_mut(size_of::<u32>());
        // `count` is at most LENGTH_MAX.
        length.copy_from_slice(&(count as u32).to_be_bytes());
        Ok(stream.write_all(&self.0[..size_of::<u32>() + count]).await?)
    }
}

/// Reads a length and then that number of bytes.
///
/// # Errors
/// If the length is too large, or the stream breaks.
pub async fn read_piece(stream: &mut (impl AsyncRead + Unpin)) -> Result<Vec<u8>, CopyError> {
    let mut bytes = vec![0; checked(stream.read_u32().await?)?];
    stream.read_exact(&mut bytes).await?;
    Ok(bytes)
}

/// Writes a hole of at most [`HOLE_BYTES_MAX`].
///
/// # Errors
/// If it is longer, or the stream breaks.
pub async fn write_hole(stream: &mut (impl AsyncWrite + Unpin), length_bytes: u64) -> Result<(), CopyError> {
    let length = u32::try_from(length_bytes).ok().filter(|_| (1..=HOLE_BYTES_MAX).contains(&length_bytes));
    let max = HOLE_BYTES_MAX as usize;
    let length = length.ok_or(CopyError::Limit { what: "bytes in a hole", max })?;
    Ok(stream.write_all(&(HOLE | length).to_be_bytes()).await?)
}

/// Contents of a file that are being received. Bytes are borrowed from the stream's buffer.
#[derive(Debug, Default)]
pub struct Arriving {
    /// Bytes of the current piece that were not consumed yet.
    left: usize,
}

impl Arriving {
    /// Waits for the next part. The same bytes are returned again until they are [consumed](Self::take).
    ///
    /// # Errors
    /// If it is too long, or the stream breaks.
    pub async fn next<'a>(
        &mut self,
        stream: &'a mut (impl AsyncBufRead + Unpin),
    ) -> Result<Piece<'a>, CopyError> {
        if self.left == 0 {
            match stream.read_u32().await? {
                0 => return Ok(Piece::End),
                hole if hole & HOLE != 0 => return hole_of(hole & !HOLE),
                length => self.left = checked(length)?,
            }
        }
        let bytes = stream.fill_buf().await?;
        if bytes.is_empty() {
            return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into());
        }
        Ok(Piece::Bytes(&bytes[..bytes.len().min(self.left)]))
    }

    /// Consumes the first `count` of the returned bytes.
    pub fn take(&mut self, stream: &mut (impl AsyncBufRead + Unpin), count: usize) {
        stream.consume(count);
        self.left -= count;
    }
}

fn hole_of<'a>(length: u32) -> Result<Piece<'a>, CopyError> {
    match u64::from(length) {
        bytes @ 1..=HOLE_BYTES_MAX => Ok(Piece::Hole(bytes)),
        _ => Err(CopyError::Limit { what: "bytes in a hole", max: HOLE_BYTES_MAX as usize }),
    }
}

/// Checks the length of a message or piece.
fn checked(length: u32) -> Result<usize, CopyError> {
    match length as usize {
        length @ 0..=LENGTH_MAX => Ok(length),
        _ => Err(CopyError::Limit { what: "bytes in a message", max: LENGTH_MAX }),
    }
}

/// The error for an unexpected message. A refusal may arrive at any time, and becomes its own error.
pub fn unexpected(message: &Message) -> CopyError {
    if let Message::Refused { reason } = message {
        return CopyError::Refused(reason.clone());
    }
    let text = format!("{message:?}");
    let name = text.split([' ', '(']).next().unwrap_or_default();
    CopyError::Protocol(format!("{name} has no business here"))
}
