//! Tests of `docs/` and the README: the book is consistent, its commands work, and its features have tests.
//!
//! Nothing here needs mdBook; `./ci.sh book` builds the book itself.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod book;
mod commands;
mod features;
mod headlines;
mod jobs;
mod markdown;
mod metrics;
mod readme;
mod shown;
mod stacks;
mod workflows;

use std::fs;
use std::path::{Path, PathBuf};

/// The root directory of the project.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").canonicalize().unwrap()
}

/// All files below a directory, by path.
fn files_below(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.append(&mut files_below(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Pages of the book, except its table of contents.
fn pages() -> Vec<PathBuf> {
    let mut pages = files_below(&root().join("docs"));
    pages.retain(|path| path.extension().is_some_and(|it| it == "md") && !path.ends_with("SUMMARY.md"));
    pages
}

/// Pages of the book, and those in the root directory of the project.
fn all_pages() -> Vec<PathBuf> {
    let mut all = vec![root().join("README.md"), root().join("CONTRIBUTING.md")];
    all.append(&mut pages());
    all
}

/// The name of a file in messages.
fn name(path: &Path) -> String {
    path.strip_prefix(root()).unwrap().display().to_string()
}
