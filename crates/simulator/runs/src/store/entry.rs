//! An entry of the record: a line of JSON that starts with a checksum of the rest.
//!
//! ```text
//! {"blake3":"<64 hexadecimal digits>","run":{…}}
//! ```
//!
//! The checksum is BLAKE3 over everything after the comma that follows it, without the line end. An entry is verified
//! while it is read sequentially, so nothing is loaded into memory or parsed before it is known to be intact.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _, Seek as _, SeekFrom};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

const OPEN: &[u8] = b"{\"blake3\":\"";
const CLOSE: &[u8] = b"\",";
/// Number of bytes before those that the checksum covers.
const HEAD: usize = OPEN.len() + 2 * blake3::OUT_LEN + CLOSE.len();
/// Number of following bytes that identify the kind of entry.
const KIND: usize = 8;
/// Maximum length of an entry that is parsed in memory, which is much faster than parsing a stream.
const IN_MEMORY_MAX: u64 = 16 << 20;

/// An entry. `R` and `S` are the parts of a run and of a sweep to read.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Entry<R, S> {
    /// A finished run.
    Run(R),
    /// A finished sweep, which refers to its runs.
    Sweep(S),
}

/// The kind of an entry, determined without parsing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Run,
    Sweep,
    Unknown,
}

/// Location of an entry in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EntryLocation {
    pub offset: u64,
    /// Length, including the line end if there is one.
    pub bytes: u64,
    pub state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Sound(Kind),
    /// The line end is missing, because the writer was stopped.
    Torn,
    /// The checksum does not match.
    Damaged,
}

/// Serialises `entry` as a line.
pub(crate) fn line<R: Serialize, S: Serialize>(entry: &Entry<R, S>) -> serde_json::Result<Vec<u8>> {
    let json = serde_json::to_vec(entry)?;
    // The part of the object after its opening brace.
    let body = json.get(1..).unwrap_or_default();
    let mut line = Vec::with_capacity(HEAD + json.len());
    line.extend_from_slice(OPEN);
    line.extend_from_slice(blake3::hash(body).to_hex().as_bytes());
    line.extend_from_slice(CLOSE);
    line.extend_from_slice(body);
    line.push(b'\n');
    Ok(line)
}

/// Verifies the line at `offset` of the file; `None` at the end.
pub(crate) fn next(from: &mut impl BufRead, offset: u64) -> io::Result<Option<EntryLocation>> {
    let mut head = Vec::with_capacity(HEAD + KIND);
    let mut hash = blake3::Hasher::new();
    let mut bytes = 0;
    let ended = loop {
        let piece = from.fill_buf()?;
        if piece.is_empty() {
            break false;
        }
        let end = piece.iter().position(|byte| *byte == b'\n');
        let mut rest = &piece[..end.unwrap_or(piece.len())];
        if head.len() < HEAD + KIND {
            let (taken, after) = rest.split_at(rest.len().min(HEAD + KIND - head.len()));
            head.extend_from_slice(taken);
            rest = after;
            if head.len() == HEAD + KIND {
                hash.update(&head[HEAD..]);
            }
        }
        hash.update(rest);
        let used = end.map_or(piece.len(), |end| end + 1);
        bytes += used as u64;
        from.consume(used);
        if end.is_some() {
            break true;
        }
    };
    if bytes == 0 {
        return Ok(None);
    }
    let state = match ended {
        true if fits(&head, &hash) => State::Sound(kind(&head[HEAD..])),
        true => State::Damaged,
        false => State::Torn,
    };
    Ok(Some(EntryLocation { offset, bytes, state }))
}

/// Every entry is longer than its head.
fn fits(head: &[u8], hash: &blake3::Hasher) -> bool {
    head.len() == HEAD + KIND
        && head.starts_with(OPEN)
        && head[..HEAD].ends_with(CLOSE)
        && hash.finalize().to_hex().as_bytes() == &head[OPEN.len()..HEAD - CLOSE.len()]
}

fn kind(body: &[u8]) -> Kind {
    if body.starts_with(b"\"run\":") {
        Kind::Run
    } else if body.starts_with(b"\"sweep\":") {
        Kind::Sweep
    } else {
        Kind::Unknown
    }
}

/// Parses the parts that `R` and `S` select from an intact entry.
pub(crate) fn read<R: DeserializeOwned, S: DeserializeOwned>(
    file: &File,
    line: &EntryLocation,
) -> serde_json::Result<Entry<R, S>> {
    let mut file = file;
    file.seek(SeekFrom::Start(line.offset + HEAD as u64)).map_err(serde_json::Error::io)?;
    let len = line.bytes - HEAD as u64;
    let mut json = (&b"{"[..]).chain(file.take(len));
    if len > IN_MEMORY_MAX {
        return serde_json::from_reader(BufReader::new(json));
    }
    let mut bytes = Vec::with_capacity(1 + len as usize);
    json.read_to_end(&mut bytes).map_err(serde_json::Error::io)?;
    serde_json::from_slice(&bytes)
}
