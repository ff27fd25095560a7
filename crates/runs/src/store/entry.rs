//! An entry of the record of results: a line of JSON that opens with a checksum of the rest of it.
//!
//! ```text
//! {"blake3":"<64 hexadecimal digits>","run":{…}}
//! ```
//!
//! The checksum is BLAKE3 over everything after the comma that follows it, without the end of the line. An entry is
//! checked as it is read past, so that nothing is taken into memory, or parsed, before it is known to be whole.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _, Seek as _, SeekFrom};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

const OPEN: &[u8] = b"{\"blake3\":\"";
const CLOSE: &[u8] = b"\",";
/// Bytes before those that the checksum is of.
const HEAD: usize = OPEN.len() + 2 * blake3::OUT_LEN + CLOSE.len();
/// Bytes after them that tell the kind of entry.
const KIND: usize = 8;
/// Longest entry that is parsed in memory, which takes a fraction of the time that parsing a stream takes.
const IN_MEMORY_MAX: u64 = 16 << 20;

/// An entry; `R` and `S` are the wanted parts of a run and of a sweep.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Entry<R, S> {
    /// A finished run.
    Run(R),
    /// A finished sweep, which names its runs.
    Sweep(S),
}

/// The kind of an entry, without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Run,
    Sweep,
    Unknown,
}

/// Where an entry stands in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EntryLocation {
    pub offset: u64,
    /// With the end of the line, if it has one.
    pub bytes: u64,
    pub state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Sound(Kind),
    /// It has no end: its writer was stopped.
    Torn,
    /// It does not fit its checksum.
    Damaged,
}

/// `entry` as a line.
pub(crate) fn line<R: Serialize, S: Serialize>(entry: &Entry<R, S>) -> serde_json::Result<Vec<u8>> {
    let json = serde_json::to_vec(entry)?;
    // An object: the part after its brace.
    let body = json.get(1..).unwrap_or_default();
    let mut line = Vec::with_capacity(HEAD + json.len());
    line.extend_from_slice(OPEN);
    line.extend_from_slice(blake3::hash(body).to_hex().as_bytes());
    line.extend_from_slice(CLOSE);
    line.extend_from_slice(body);
    line.push(b'\n');
    Ok(line)
}

/// Checks the line that starts here, at `offset` of its file; `None` at the end.
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

/// No entry is as short as its head.
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

/// As much as `R` and `S` want of a sound entry.
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
