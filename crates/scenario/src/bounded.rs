//! Files of users and strangers, read with a limit.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// Contents of the file at `path`; `None` where it has more than `most_bytes`. A file need not tell its length: a link to
/// a device may have no end.
///
/// # Errors
/// Where it cannot be opened or read.
pub fn read(path: &Path, most_bytes: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= most_bytes).then_some(bytes))
}
