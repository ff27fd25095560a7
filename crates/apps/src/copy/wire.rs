//! Messages: a length in bytes (u32, big endian) and JSON of that length. Contents go raw between them, in pieces.

use serde::{Deserialize, Serialize};
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _,
};

use super::{CopyError, Options, Report, Summary};

/// Of the protocol. Both ends must have the same.
pub const VERSION: u32 = 2;
/// Of a message or a piece of contents, bytes: one buffer of this size holds any.
pub const LENGTH_MAX: usize = 64 * 1024;
/// Paths in one copy: a receiver's memory for them stays below 1 GiB in all.
pub const ENTRIES_MAX: usize = 1_000_000;
/// Bytes of all paths and link targets in one copy.
pub const NAMES_BYTES_MAX: usize = 256 << 20;
/// Bytes of a path, link target or reason: PATH_MAX of Linux.
pub const PATH_BYTES_MAX: usize = 4096;
/// Bytes of a name: NAME_MAX of Linux.
pub const NAME_BYTES_MAX: usize = 255;
/// Set in a piece's length: the piece is a hole, and the other bits are its length.
const HOLE: u32 = 1 << 31;
/// Bytes of a hole in one piece. Ours: a receiver hashes them, so that four bytes on the wire cost it some milliseconds at most.
pub const HOLE_BYTES_MAX: u64 = 16 << 20;
/// Paths that a client may ask for, and patterns that it may leave out, in one copy: all fit in one message. Ours.
pub const ASKED_MAX: usize = 4096;

/// Which way contents go, seen from the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From the client to the server.
    Push,
    /// From the server to the client.
    Pull,
}

/// Kind of a path's entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Kind {
    /// A file.
    File {
        /// Its length.
        size_bytes: u64,
        /// Hash of its contents, where contents are to be compared.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        blake3: Option<String>,
    },
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink {
        /// Where it points.
        target: String,
    },
    /// A file whose length is unknown before its end.
    Stream,
}

/// A point in time, to the nanosecond and as far as file systems go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "(i64, u32)", into = "(i64, u32)")]
pub struct Timestamp {
    /// Whole seconds since 1970, rounded down.
    s: i64,
    /// Beyond them.
    ns: u32,
}

impl Timestamp {
    /// `ns` after `s` seconds since 1970; `None` where `ns` are a second or more, which means other things to system calls.
    pub fn new(s: i64, ns: u32) -> Option<Self> {
        (ns < 1_000_000_000).then_some(Self { s, ns })
    }

    /// Whole seconds since 1970, rounded down.
    pub fn s(self) -> i64 {
        self.s
    }

    /// Nanoseconds beyond the seconds.
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

/// A path of the source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Relative, its parts parted by slashes.
    pub path: String,
    /// Its kind.
    pub kind: Kind,
    /// Last change.
    pub mtime: Timestamp,
    /// Permission bits.
    pub mode: u32,
}

/// The request of a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Work {
    /// To send files.
    Push {
        /// The destination, relative to the served directory.
        path: String,
        /// It is a directory, made where it is not there; else it may be the new name of the one source.
        is_directory: bool,
    },
    /// To get files.
    Pull {
        /// Relative to the served directory. A path that ends in a slash is sent without its name; one that does not exist is a pattern.
        paths: Vec<String>,
        /// New name of the one source.
        name: Option<String>,
    },
    /// To list paths, as [`Message::Entry`]s.
    List {
        /// As in [`Work::Pull`].
        paths: Vec<String>,
        /// Also in directories of directories.
        is_recursive: bool,
    },
}

impl Work {
    /// Which way contents go; a list has none.
    pub fn direction(&self) -> Option<Direction> {
        match self {
            Self::Push { .. } => Some(Direction::Push),
            Self::Pull { .. } => Some(Direction::Pull),
            Self::List { .. } => None,
        }
    }

    /// Paths on the server, in one line.
    pub fn paths(&self) -> String {
        match self {
            Self::Push { path, .. } => path.clone(),
            Self::Pull { paths, .. } | Self::List { paths, .. } => paths.join(" "),
        }
    }
}

/// The options of version 1, which [`Message::Hello`] keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HelloOptions {
    checksum: bool,
    delete: bool,
    dry_run: bool,
}

/// All that the two ends say to each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case", deny_unknown_fields)]
pub enum Message {
    /// First, from the client. It looks as in version 1 for good, so that ends of any two versions refuse each other in words.
    Hello {
        /// [`VERSION`].
        version: u32,
        /// Of version 1.
        direction: Direction,
        /// Of version 1.
        path: String,
        /// Of version 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// Of version 1.
        options: HelloOptions,
    },
    /// From the client, right behind [`Message::Hello`].
    Ask {
        /// The request.
        work: Work,
        /// How.
        options: Options,
    },
    /// The server does it.
    Ready {
        /// Name for the one source: the path is no directory.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
    /// The server does not do it.
    Refused {
        /// Why.
        reason: String,
    },
    /// Sender: a path of the source.
    Entry(Entry),
    /// Sender: a path of the source that is not carried. Nothing is deleted there; in a directory nothing below it.
    Omitted {
        /// As far as it is text.
        path: String,
        /// Why.
        reason: String,
        /// It could not be read; else it is nothing that is carried.
        is_failure: bool,
    },
    /// Sender: no more paths.
    EntriesEnd {
        /// The top of the list is the whole of one directory, which is sent without its name.
        is_top_listed: bool,
    },
    /// Receiver: send this file.
    Want {
        /// Its place in the manifest.
        index: usize,
        /// So much is there already.
        offset_bytes: u64,
        /// Hash of those bytes.
        blake3: String,
    },
    /// Receiver: that is all.
    WantsEnd,
    /// Sender: contents follow in pieces, up to an empty one, then [`Message::ContentsEnd`].
    Contents {
        /// Place in the manifest.
        index: usize,
        /// From here on: the wanted offset, or 0 where the prefix is another file's.
        offset_bytes: u64,
        /// Of the whole file when it was opened; `None` of a stream.
        size_bytes: Option<u64>,
        /// Its last change when it was opened; `None` of a stream.
        mtime: Option<Timestamp>,
    },
    /// Sender: the hash of the whole file, or why there is none.
    ContentsEnd {
        /// Of the whole file, prefix included.
        blake3: String,
        /// The file changed meanwhile, or could not be read.
        failure: Option<String>,
    },
    /// Receiver, while contents come: this file cannot be kept. The sender ends it and goes on with the next one.
    Stop {
        /// Place in the manifest.
        index: usize,
        /// Why.
        reason: String,
    },
    /// Receiver: outcome for a path.
    Report(Report),
    /// Receiver: the end.
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
    /// These bytes, one at least.
    Bytes(&'a [u8]),
    /// A run of zeros that takes no room.
    Hole(u64),
    /// There is no more.
    End,
}

/// Text with its end cut off where it would not fit in a message.
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
/// Where it is too long or the stream breaks.
pub async fn write(stream: &mut (impl AsyncWrite + Unpin), message: &Message) -> Result<(), CopyError> {
    let bytes = serde_json::to_vec(message).map_err(std::io::Error::from)?;
    write_piece(stream, &bytes).await
}

/// Reads one message.
///
/// # Errors
/// Where it is none, or the stream breaks.
pub async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Result<Message, CopyError> {
    let bytes = read_piece(stream).await?;
    serde_json::from_slice(&bytes).map_err(|error| CopyError::Protocol(format!("no message: {error}")))
}

/// Writes a length and `bytes`.
///
/// # Errors
/// Where they are too many, or the stream breaks.
pub async fn write_piece(stream: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> Result<(), CopyError> {
    let length = u32::try_from(bytes.len()).ok().filter(|_| bytes.len() <= LENGTH_MAX);
    let length = length.ok_or(CopyError::Limit { what: "bytes in a message", max: LENGTH_MAX })?;
    stream.write_all(&length.to_be_bytes()).await?;
    Ok(stream.write_all(bytes).await?)
}

/// Bytes of a file on their way, behind room for their length: both leave in one write.
#[derive(Debug)]
pub struct Contents(Vec<u8>);

impl Default for Contents {
    /// Room for a piece of any length.
    fn default() -> Self {
        Self(vec![0; size_of::<u32>() + LENGTH_MAX])
    }
}

impl Contents {
    /// Where the bytes of the next piece go.
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
    /// Where the stream breaks.
    pub async fn write(
        &mut self,
        stream: &mut (impl AsyncWrite + Unpin),
        count: usize,
    ) -> Result<(), CopyError> {
        let (length, _) = self.0.split_at_mut(size_of::<u32>());
        // It is LENGTH_MAX at most.
        length.copy_from_slice(&(count as u32).to_be_bytes());
        Ok(stream.write_all(&self.0[..size_of::<u32>() + count]).await?)
    }
}

/// Reads a length and that number of bytes.
///
/// # Errors
/// Where they are too many, or the stream breaks.
pub async fn read_piece(stream: &mut (impl AsyncRead + Unpin)) -> Result<Vec<u8>, CopyError> {
    let mut bytes = vec![0; checked(stream.read_u32().await?)?];
    stream.read_exact(&mut bytes).await?;
    Ok(bytes)
}

/// Writes a hole of at most [`HOLE_BYTES_MAX`].
///
/// # Errors
/// Where it is longer, or the stream breaks.
pub async fn write_hole(stream: &mut (impl AsyncWrite + Unpin), length_bytes: u64) -> Result<(), CopyError> {
    let length = u32::try_from(length_bytes).ok().filter(|_| (1..=HOLE_BYTES_MAX).contains(&length_bytes));
    let max = HOLE_BYTES_MAX as usize;
    let length = length.ok_or(CopyError::Limit { what: "bytes in a hole", max })?;
    Ok(stream.write_all(&(HOLE | length).to_be_bytes()).await?)
}

/// Contents of a file on their way in. Bytes are lent by the stream's own buffer.
#[derive(Debug, Default)]
pub struct Arriving {
    /// Bytes of a piece that were not taken.
    left: usize,
}

impl Arriving {
    /// Waits for the next part. Bytes come again until they are [taken](Self::take).
    ///
    /// # Errors
    /// Where it is too long, or the stream breaks.
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

    /// `count` bytes of those that came last are done with.
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

/// A length that a message or piece may have.
fn checked(length: u32) -> Result<usize, CopyError> {
    match length as usize {
        length @ 0..=LENGTH_MAX => Ok(length),
        _ => Err(CopyError::Limit { what: "bytes in a message", max: LENGTH_MAX }),
    }
}

/// The error for a message that has no business here, and for a refusal, which has its business everywhere.
pub fn unexpected(message: &Message) -> CopyError {
    if let Message::Refused { reason } = message {
        return CopyError::Refused(reason.clone());
    }
    let text = format!("{message:?}");
    let name = text.split([' ', '(']).next().unwrap_or_default();
    CopyError::Protocol(format!("{name} has no business here"))
}
