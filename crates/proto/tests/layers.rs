//! Who may name whom inside the crate, where the compiler does not look.

use std::fs;
use std::path::{Path, PathBuf};

/// A room, and the rooms that nothing in it names.
const UNKNOWN_TO: &[(&str, &[&str])] = &[
    ("units", &["congestion", "tcp", "tack", "transport", "udp", "packet", "wire", "hack", "fastack"]),
    ("stats.rs", &["congestion", "tack", "transport", "udp", "packet", "wire", "hack", "fastack"]),
    // What every transport needs and none owns.
    ("congestion", &["tcp", "tack", "transport", "udp", "packet", "wire", "hack", "fastack"]),
    ("tcp", &["tack", "transport", "udp", "hack", "fastack"]),
    // Its octets are `tack::wire`, which sockets use too: nothing else in the room names them.
    ("tack", &["tcp", "transport", "hack", "fastack", "wire"]),
    ("udp.rs", &["tcp", "tack", "transport", "congestion", "hack", "fastack"]),
];

/// All files of `room`, which is a folder or a file.
fn files_of(room: &Path) -> Vec<PathBuf> {
    if room.is_file() {
        return vec![room.to_path_buf()];
    }
    let entries = fs::read_dir(room).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.flat_map(|path| files_of(&path)).collect()
}

/// True when `path` stands in `text` as a whole.
fn names(text: &str, path: &str) -> bool {
    let goes_on = |next: char| next.is_alphanumeric() || next == '_';
    text.match_indices(path).any(|(at, _)| !text[at + path.len()..].starts_with(goes_on))
}

#[test]
fn rooms_name_only_those_below_them() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for (room, unknown) in UNKNOWN_TO {
        let files = files_of(&src.join(room));
        assert!(!files.is_empty(), "{room} has moved");
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            for other in *unknown {
                for path in [format!("crate::{other}"), format!("super::{other}")] {
                    assert!(!names(&text, &path), "{} names {path}", file.display());
                }
            }
        }
    }
}
