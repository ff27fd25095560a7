//! Which modules may refer to which formats of packets, which the compiler does not check; and which crates use which, compared with
//! docs/design/architecture.md.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

#[path = "../common/rooms.rs"]
mod rooms;

use rooms::{files_of, names};

/// A module of the core, and the names of tacit-packet that nothing in it may refer to. Cargo keeps the protocols apart, but tacit-packet has
/// the formats of all packets.
const UNKNOWN_TO: &[(&str, &str, &[&str])] = &[
    ("packet/src/units", "crate", &["tcp", "tack", "udp", "packet", "wire", "Packet", "Transport"]),
    ("packet/src/stats.rs", "crate", &["tack", "udp", "packet", "wire", "Packet", "Transport"]),
    ("packet/src/udp", "crate", &["tcp", "tack"]),
    // Every transport needs it.
    ("congestion/src", "tacit_packet", &["tcp", "tack", "udp", "wire", "Packet", "Transport"]),
    ("tcp/src", "tacit_packet", &["tack", "udp"]),
    // Its wire format is `tacit_packet::tack::wire`, which sockets use, too; nothing else in the module refers to bytes.
    ("tack-proto/src", "tacit_packet", &["tcp", "wire"]),
];

#[test]
fn rooms_name_only_those_below_them() {
    let core = repository().join("crates/core");
    for (room, owner, unknown) in UNKNOWN_TO {
        let files = files_of(&core.join(room));
        assert!(!files.is_empty(), "{room} has moved");
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            for name in *unknown {
                let is_named = names(&text, &format!("{owner}::{name}"))
                    || *owner == "crate" && names(&text, &format!("super::{name}"))
                    || in_group(&text, owner, name);
                assert!(!is_named, "{} names {owner}::{name}", file.display());
            }
        }
    }
}

/// True if `text` has a `use owner::{…}` with `name` in the braces.
fn in_group(text: &str, owner: &str, name: &str) -> bool {
    let begin = format!("use {owner}::{{");
    text.split(&begin)
        .skip(1)
        .filter_map(|rest| rest.split(';').next())
        .any(|group| group.split([',', '{', '}']).any(|item| item.trim().split("::").next() == Some(name)))
}

/// Crates by short name, and which others each one uses.
type Uses = BTreeMap<String, BTreeSet<String>>;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// The floors, the lowest first.
const FLOORS: [&str; 5] = ["core", "simulator", "live", "network", "surface"];

/// The folder of each crate.
fn crates() -> Vec<PathBuf> {
    let floors = FLOORS.map(|floor| fs::read_dir(repository().join("crates").join(floor)).expect("a floor"));
    floors.into_iter().flatten().map(|entry| entry.expect("an entry").path()).collect()
}

/// Uses in the manifests, without tests.
fn uses_by_manifest() -> Uses {
    let uses = crates().into_iter().map(|path| {
        let manifest = fs::read_to_string(path.join("Cargo.toml")).expect("a crate has a manifest");
        let dependencies = manifest.split("[dependencies]").nth(1).expect("all have dependencies");
        let dependencies = dependencies.split("\n[").next().expect("a split has a first part");
        let used = dependencies.lines().filter_map(|line| line.strip_prefix("tacit-"));
        let used = used.map(|rest| rest.split(['.', ' ']).next().unwrap_or_default().to_owned());
        (name_of(&path), used.collect())
    });
    uses.collect()
}

fn name_of(path: &Path) -> String {
    path.file_name().expect("a folder has a name").to_string_lossy().into_owned()
}

/// The transitive closure of `uses`.
fn closed(uses: &Uses) -> Uses {
    let mut closed = uses.clone();
    for _ in uses {
        let before = closed.clone();
        for used in closed.values_mut() {
            used.extend(used.clone().iter().flat_map(|name| before[name].clone()));
        }
    }
    closed
}

fn architecture() -> String {
    fs::read_to_string(repository().join("docs/design/architecture.md")).expect("a page")
}

#[test]
fn the_picture_of_the_rooms_has_the_arrows_that_cargo_has() {
    let page = architecture();
    let picture = page.split("```mermaid\n").nth(1).and_then(|rest| rest.split("```").next());
    let picture = picture.expect("the page has a picture");
    let mut drawn: Uses = uses_by_manifest().into_keys().map(|name| (name, BTreeSet::new())).collect();
    for (from, to) in picture.lines().filter_map(|line| line.trim().split_once(" --> ")) {
        let is_new =
            drawn.get_mut(from).unwrap_or_else(|| panic!("{from} is no crate")).insert(to.to_owned());
        assert!(is_new, "{from} --> {to} is drawn twice");
    }
    assert_eq!(closed(&drawn), closed(&uses_by_manifest()));
    for name in drawn.keys() {
        assert!(picture.contains(&format!(" {name}[")), "{name} has a box");
    }
    for (from, to) in drawn.iter().flat_map(|(from, all)| all.iter().map(move |to| (from, to))) {
        let mut without = drawn.clone();
        without.get_mut(from).expect("it is drawn").remove(to);
        assert_ne!(closed(&without), closed(&drawn), "{from} --> {to} follows from other arrows");
    }
}

#[test]
fn no_arrow_goes_up() {
    let floor_of: BTreeMap<_, _> = crates()
        .iter()
        .map(|path| {
            let floor = name_of(path.parent().expect("a crate is on a floor"));
            (name_of(path), FLOORS.iter().position(|name| *name == floor))
        })
        .collect();
    for (from, to) in uses_by_manifest().iter().flat_map(|(from, all)| all.iter().map(move |to| (from, to))) {
        assert!(floor_of[to] <= floor_of[from], "{from} uses {to}, which is on a higher floor");
    }
}

#[test]
fn the_table_of_the_rooms_says_what_each_crate_uses() {
    let page = architecture();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `crates/"));
    let documented: Uses = rows
        .map(|row| {
            let place = row.split('`').next().expect("a split has a first part");
            let (_, name) = place.split_once('/').expect("a crate is on a floor");
            let uses = row.trim_end_matches(" |").rsplit("| ").next().expect("a row has a last cell");
            let quoted = uses.split('`').skip(1).step_by(2).map(str::to_owned);
            (name.to_owned(), quoted.collect())
        })
        .collect();
    assert_eq!(documented, uses_by_manifest());
}

/// A file that no `mod` includes is in no test program, so its assertions are never checked.
#[test]
fn every_file_of_tests_is_in_a_test_program() {
    let mut looked_at = 0;
    for path in crates() {
        let Ok(programs) = fs::read_dir(path.join("tests")) else { continue };
        let programs = programs.map(|entry| entry.unwrap().path());
        for program in programs.filter(|path| path.join("main.rs").is_file()) {
            let mut files = files_of(&program);
            files.retain(|file| file.extension().is_some_and(|it| it == "rs") && !file.ends_with("main.rs"));
            let sources: String = std::iter::once(&program.join("main.rs"))
                .chain(&files)
                .map(|file| fs::read_to_string(file).unwrap())
                .collect();
            for file in &files {
                let module = if file.ends_with("mod.rs") { file.parent().unwrap() } else { file };
                let name = module.file_stem().unwrap().to_str().unwrap();
                assert!(names(&sources, &format!("mod {name}")), "no mod names {}", file.display());
                looked_at += 1;
            }
        }
    }
    assert!(looked_at > 100, "only {looked_at} files were found");
}
