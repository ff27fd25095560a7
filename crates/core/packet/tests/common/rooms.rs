//! Modules ("rooms") of a crate as files, and the names used in them; for the layer tests of the core and of `link`.

use std::fs;
use std::path::{Path, PathBuf};

/// All files of `room`, which is a file, or a folder plus the file of its name.
pub fn files_of(room: &Path) -> Vec<PathBuf> {
    if room.is_file() {
        return vec![room.to_path_buf()];
    }
    let entries = fs::read_dir(room).expect("a folder").map(|entry| entry.expect("an entry").path());
    let sibling = Some(room.with_extension("rs")).filter(|sibling| sibling.is_file());
    entries.flat_map(|path| files_of(&path)).chain(sibling).collect()
}

/// True if `text` contains `path` as a complete path.
pub fn names(text: &str, path: &str) -> bool {
    let continues = |next: char| next.is_alphanumeric() || next == '_';
    text.match_indices(path).any(|(at, _)| !text[at + path.len()..].starts_with(continues))
}
