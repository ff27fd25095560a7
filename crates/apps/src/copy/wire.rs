//! Messages: a length (u32, big endian) and JSON of so many octets. Contents go raw between them, in pieces.

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::{CopyError, Options, Report, Summary};

/// Of the protocol. Both ends must have the same.
pub const VERSION: u32 = 1;
/// Of a message or a piece of contents, octets: one buffer of this size holds any.
pub const LENGTH_MAX: usize = 64 * 1024;
/// Paths in one copy: what a receiver keeps of each stays below 1 GiB in all.
pub const ENTRIES_MAX: usize = 1_000_000;
/// Octets of all paths and link targets in one copy.
pub const NAMES_OCTETS_MAX: usize = 256 << 20;
/// Octets of a path, link target or reason: PATH_MAX of Linux.
pub const PATH_OCTETS_MAX: usize = 4096;
/// Octets of a name: NAME_MAX of Linux.
pub const NAME_OCTETS_MAX: usize = 255;

/// Which way contents go, seen from the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From the client to the server.
    Push,
    /// From the server to the client.
    Pull,
}

/// What stands at a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Kind {
    /// A file.
    File {
        /// Its length.
        size_octets: u64,
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
}

/// A path of the source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Relative, its parts parted by slashes.
    pub path: String,
    /// What it is.
    pub kind: Kind,
    /// Last change, ns since 1970.
    pub mtime_ns: i64,
    /// Permission bits.
    pub mode: u32,
}

/// All that the two ends say to each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case", deny_unknown_fields)]
pub enum Message {
    /// First, from the client.
    Hello {
        /// [`VERSION`].
        version: u32,
        /// Which way.
        direction: Direction,
        /// What on the server: relative to what it serves. One to send that ends in a slash is sent without its name.
        path: String,
        /// What the one source is to be called where it arrives. For [`Direction::Pull`].
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// How.
        options: Options,
    },
    /// The server does it.
    Ready {
        /// What the one source is to be called: the path is no directory, and the one before it is.
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
    /// Sender: no more paths.
    EntriesEnd {
        /// Paths that could not be listed: with any, nothing is deleted.
        unlisted: Vec<Report>,
        /// How many there are, those included that `unlisted` has no room for.
        unlisted_count: u64,
    },
    /// Receiver: send this file.
    Want {
        /// Its place in the manifest.
        index: usize,
        /// So much is there already.
        offset_octets: u64,
        /// Hash of what is there.
        blake3: String,
    },
    /// Receiver: that is all.
    WantsEnd,
    /// Sender: contents follow in pieces, up to an empty one, then [`Message::ContentsEnd`].
    Contents {
        /// Place in the manifest.
        index: usize,
        /// From here on: what was wanted, or 0 where the prefix is another file's.
        offset_octets: u64,
    },
    /// Sender: the hash of the whole file, or why there is none.
    ContentsEnd {
        /// Of the whole file, prefix included.
        blake3: String,
        /// The file changed meanwhile, or could not be read.
        failure: Option<String>,
    },
    /// Receiver: what became of a path.
    Report(Report),
    /// Receiver: the end.
    Summary(Summary),
}

/// Text with its end cut off where it would not fit in a message.
pub fn bounded(mut text: String) -> String {
    let mut end = text.len().min(PATH_OCTETS_MAX);
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
    let octets = serde_json::to_vec(message).map_err(std::io::Error::from)?;
    write_piece(stream, &octets).await
}

/// Reads one message.
///
/// # Errors
/// Where it is none, or the stream breaks.
pub async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Result<Message, CopyError> {
    let mut octets = Vec::new();
    read_piece(stream, &mut octets).await?;
    serde_json::from_slice(&octets).map_err(|error| CopyError::Protocol(format!("no message: {error}")))
}

/// Writes a length and `octets`.
///
/// # Errors
/// Where they are too many, or the stream breaks.
pub async fn write_piece(stream: &mut (impl AsyncWrite + Unpin), octets: &[u8]) -> Result<(), CopyError> {
    let length = u32::try_from(octets.len()).ok().filter(|_| octets.len() <= LENGTH_MAX);
    let length = length.ok_or(CopyError::Limit { what: "octets in a message", max: LENGTH_MAX })?;
    stream.write_all(&length.to_be_bytes()).await?;
    Ok(stream.write_all(octets).await?)
}

/// Reads a length and so many octets into `buffer`, which has only them afterwards.
///
/// # Errors
/// Where they are too many, or the stream breaks.
pub async fn read_piece(
    stream: &mut (impl AsyncRead + Unpin),
    buffer: &mut Vec<u8>,
) -> Result<(), CopyError> {
    let length = stream.read_u32().await? as usize;
    if length > LENGTH_MAX {
        return Err(CopyError::Limit { what: "octets in a message", max: LENGTH_MAX });
    }
    buffer.resize(length, 0);
    stream.read_exact(buffer).await?;
    Ok(())
}

/// The error for a message that has no business here.
pub fn unexpected(message: &Message) -> CopyError {
    let text = format!("{message:?}");
    let name = text.split([' ', '(']).next().unwrap_or_default();
    CopyError::Protocol(format!("{name} has no business here"))
}
