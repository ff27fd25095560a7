//! Reading TOML that people write: every error names the line, the key and what is allowed.
//!
//! A file becomes a [`Tree`] that remembers where each value stands, trees merge, and a [`Section`]
//! hands out typed values by key. Keys nobody asked for are refused, the nearest known one suggested.

mod quantity;
mod section;
mod tree;

pub use quantity::{
    MAX_DURATION, bit_rate, byte_count, decibels, duration, flag, integer, level_dbm, line, loss, metres,
    name_of, number, numbers, one_of, queue_limit, ratio, text, texts, title, unit, within,
};
pub use section::{Asked, Log, Section};
pub use tree::{Node, Origin, Tree, Value};

/// What a value should have been; becomes an [`InputError`](crate::error::InputError) when the reader
/// adds key and line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// What is wrong.
    pub what: String,
    /// What is allowed.
    pub allowed: String,
}

impl Mismatch {
    /// A mismatch.
    pub fn new(what: impl Into<String>, allowed: impl Into<String>) -> Self {
        Self { what: what.into(), allowed: allowed.into() }
    }
}

/// Of `known`, the one most like `word`, if any is like it at all.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Two slips in a short word make another word.
    let limit = (word.chars().count() / 3).max(1) + 1;
    let edits = |name: &str| strsim::damerau_levenshtein(word, name);
    // `rate` for `ack-rate`, `wire` for `wired-10`: a part of the name is as good as one slip.
    let distance = |name: &str| {
        let part = name.split('-').map(|part| edits(part) + 1).min();
        part.map_or_else(|| edits(name), |part| part.min(edits(name)))
    };
    known
        .into_iter()
        .map(|name| (distance(name), name))
        .filter(|(edits, _)| *edits <= limit)
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, name)| name)
}
