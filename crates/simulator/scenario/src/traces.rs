//! Traces of cellular links: bundled ones and files.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tacit_link::cellular::{OPPORTUNITY, Trace, TraceError};
use tacit_link::random::Stream;

use crate::bounded;
use crate::error::InputError;
use crate::input::{Node, Tree, Value};
use crate::keys::links::{DOWN_TRACE, UP_TRACE};

/// Maximum size of a trace file in bytes: two hours at 100 Mb/s.
const MAX_FILE: u64 = 1 << 29;

/// A trace that is generated instead of recorded.
///
/// A new rate is drawn every 100 ms. It differs from the previous one by at most `step_kbps` and stays between
/// `least_kbps` and `most_kbps`, similar to a mobile link with fading and varying load. On average, one in sixty of the
/// 100 ms intervals is an outage. Bytes accumulate every millisecond, and every 1500 bytes are one delivery
/// opportunity.
struct Synthetic {
    name: &'static str,
    seconds: u32,
    least_kbps: u32,
    most_kbps: u32,
    step_kbps: u32,
}

const SYNTHETIC: [Synthetic; 2] = [
    Synthetic {
        name: "lte-synthetic.down",
        seconds: 60,
        least_kbps: 1_000,
        most_kbps: 30_000,
        step_kbps: 3_000,
    },
    Synthetic { name: "lte-synthetic.up", seconds: 60, least_kbps: 200, most_kbps: 6_000, step_kbps: 600 },
];

impl Synthetic {
    fn trace(&self) -> Trace {
        let mut stream = Stream::new(1, self.name);
        let mut millis = Vec::new();
        let mut kbps = (self.least_kbps + self.most_kbps) / 2;
        // One kilobit per second is one eighth of a byte per millisecond.
        let (mut outage, mut eighths, opportunity) = (false, 0, OPPORTUNITY.0 as u32 * 8);
        for at in 1..=self.seconds * 1_000 {
            if at % 100 == 1 {
                kbps = (kbps + stream.up_to(2 * self.step_kbps)).saturating_sub(self.step_kbps);
                kbps = kbps.clamp(self.least_kbps, self.most_kbps);
                outage = stream.up_to(59) == 0;
            }
            eighths += if outage { 0 } else { kbps };
            while eighths >= opportunity {
                eighths -= opportunity;
                millis.push(at);
            }
        }
        // Ensures the nominal length of the trace.
        millis.push(self.seconds * 1_000);
        Trace::new(millis).expect("milliseconds were counted upwards")
    }
}

/// The bundled trace with this name.
pub(super) fn find(name: &str) -> Option<Trace> {
    SYNTHETIC.iter().find(|synthetic| synthetic.name == name).map(Synthetic::trace)
}

/// The names of the bundled traces.
pub(super) fn names() -> String {
    SYNTHETIC.map(|synthetic| format!("{:?}", synthetic.name)).join(", ")
}

/// Separator between the path of a trace and the BLAKE3 hash that its file must have.
const HASH: &str = " blake3:";

/// The path of a trace, and the required hash of its file if given.
fn path_and_hash(reference: &str) -> (&str, Option<&str>) {
    reference.split_once(HASH).map_or((reference, None), |(path, hash)| (path, Some(hash)))
}

/// Why a trace could not be loaded.
#[derive(Debug)]
pub(super) enum LoadError {
    /// The file cannot be read, or does not have the required hash.
    File(String),
    /// The content is not a valid trace.
    Trace(TraceError),
}

/// Loads the trace `reference`, relative to `directory`. Also returns the path of its file.
pub(super) fn load(directory: &Path, reference: &str) -> (PathBuf, Result<Arc<Trace>, LoadError>) {
    let (path, hash) = path_and_hash(reference);
    let path = directory.join(path);
    let trace = read(&path).map_err(|error| LoadError::File(error.to_string())).and_then(|bytes| {
        let found = blake3::hash(&bytes).to_hex();
        // Checked before parsing, because a result is untrusted and messages quote the file.
        if let Some(hash) = hash.filter(|hash| *hash != found.as_str()) {
            return Err(LoadError::File(format!(
                "not the trace that is meant: its hash is {found}, not {hash}"
            )));
        }
        let text = String::from_utf8_lossy(&bytes);
        Trace::parse(&text).map(Arc::new).map_err(LoadError::Trace)
    });
    (path, trace)
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    bounded::read(path, MAX_FILE)?.ok_or_else(|| io::Error::other(format!("longer than {MAX_FILE} bytes")))
}

/// Visits each trace that `tree` names.
fn each_in(
    tree: &mut Tree,
    mut each: impl FnMut(&mut Node) -> Result<(), InputError>,
) -> Result<(), InputError> {
    let mut links: Vec<&mut Node> = Vec::new();
    for (name, node) in &mut tree.entries {
        if name == "cellular" {
            links.push(node);
        } else if name == "hop"
            && let Value::List(hops) = &mut node.value
        {
            links.extend(hops);
        }
    }
    for link in links {
        let Value::Table(keys) = &mut link.value else { continue };
        for key in [DOWN_TRACE.name, UP_TRACE.name] {
            keys.entries.get_mut(key).map_or(Ok(()), &mut each)?;
        }
    }
    Ok(())
}

/// Replaces the trace files in `tree` by absolute paths with hashes, so that it means the same wherever it is read. A
/// file that cannot be read is left unchanged, so that the reader reports the error.
pub(super) fn pin(tree: &mut Tree) -> Result<(), InputError> {
    each_in(tree, |node| {
        let Value::Text(reference) = &node.value else { return Ok(()) };
        if find(reference).is_some() || path_and_hash(reference).1.is_some() {
            return Ok(());
        }
        let path = node.origin.directory().unwrap_or(Path::new("")).join(reference);
        // Anything except a regular file, such as a pipe, can be read only once.
        if path.is_file()
            && let (Ok(whole), Ok(bytes)) = (std::path::absolute(&path), read(&path))
            && let Some(whole) = whole.to_str()
        {
            node.value = Value::Text(format!("{whole}{HASH}{}", blake3::hash(&bytes).to_hex()));
        }
        Ok(())
    })
}

/// Refuses trace files in `tree` without a hash.
pub(super) fn require_hashes(tree: &mut Tree) -> Result<(), InputError> {
    each_in(tree, |node| match &node.value {
        Value::Text(reference) if find(reference).is_none() && path_and_hash(reference).1.is_none() => {
            Err(InputError::new(&node.origin, format!("the trace {reference:?} has no hash"))
                .allowed("results made by this version or a later one, whose traces have"))
        }
        _ => Ok(()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_synthetic_traces_are_what_they_were() {
        let measured = SYNTHETIC.map(|synthetic| {
            let trace = synthetic.trace();
            (synthetic.name, trace.period_millis(), trace.opportunities(), trace.mean_rate().as_bps() / 1_000)
        });
        // Known values. If they change, so does every result computed with these traces.
        let known =
            [("lte-synthetic.down", 60_000, 102_334, 20_466), ("lte-synthetic.up", 60_000, 7_783, 1_556)];
        assert_eq!(measured, known);
    }
}
