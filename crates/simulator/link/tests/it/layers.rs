//! Which modules may use which names within the crate, where the compiler does not check it.

use std::fs;
use std::path::Path;

#[path = "../../../../core/packet/tests/common/rooms.rs"]
mod rooms;

use rooms::{files_of, names};

/// Modules, and the names that must not be used in them.
const UNKNOWN_TO: &[(&[&str], &[&str])] = &[
    (&["queue", "wired", "cellular.rs", "loss.rs", "packet.rs", "random.rs", "waits.rs"], &["wifi"]),
    // The standards as data.
    (
        &["wifi/phy"],
        &["air", "bitmap", "bss", "category", "cell", "config", "functions", "mac", "medium", "ofdma"],
    ),
    // Settings of a basic service set, and the view of an observer.
    (
        &["wifi/air.rs", "wifi/bitmap.rs", "wifi/category.rs", "wifi/config.rs", "wifi/ofdma.rs"],
        &["bss", "cell", "mac", "medium"],
    ),
    (&["wifi/mac"], &["bss", "cell", "interrupt", "medium"]),
    (&["wifi/cell"], &["bss", "medium"]),
    (&["wifi/medium"], &["bss"]),
];

/// The code of a file without comments, because comments may link to the users of a module.
fn code_of(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap();
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    code.map(|line| format!("{line}\n")).collect()
}

#[test]
fn rooms_name_only_those_below_them() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for (rooms, unknown) in UNKNOWN_TO {
        for room in *rooms {
            let files = files_of(&src.join(room));
            assert!(!files.is_empty(), "{room} has moved");
            for file in files {
                let code = code_of(&file);
                for other in *unknown {
                    for path in ["crate", "wifi", "super"].map(|above| format!("{above}::{other}")) {
                        assert!(!names(&code, &path), "{} names {path}", file.display());
                    }
                }
            }
        }
    }
}
