//! Reads untrusted files with a size limit.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// Reads the file at `path`. Returns `None` if it has more than `most_bytes` bytes. The limit is enforced while
/// reading, because the size of a file may be unknown: a link to a device can be endless.
///
/// # Errors
/// If the file cannot be opened or read.
pub fn read(path: &Path, most_bytes: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= most_bytes).then_some(bytes))
}
