//! Reads TOML written by users. Every error names the line, the key and the allowed values.
//!
//! A file is parsed into a [`Tree`] that records the location of each value. Trees can be merged, and a [`Section`]
//! provides typed values by key. Keys that no reader requests are refused, with a suggestion of the nearest known key.

mod error;
mod quantity;
mod section;
pub mod table;
mod tree;

pub use error::InputError;
pub use quantity::{
    MAX_DURATION, bit_rate, byte_count, duration, flag, integer, level_dbm, line, metres, millidecibels,
    name_of, number, numbers, one_of, packets, ratio, text, texts, title, unit, within,
};
pub use section::{Asked, Log, Section};
pub use tree::{MAX_CLIENTS, Node, Origin, Tree, Value};

/// A wrong value and the allowed values. It becomes an [`InputError`] when the reader adds key and line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// Description of the error.
    pub what: String,
    /// The allowed values.
    pub allowed: String,
}

impl Mismatch {
    /// Creates a mismatch.
    pub fn new(what: impl Into<String>, allowed: impl Into<String>) -> Self {
        Self { what: what.into(), allowed: allowed.into() }
    }
}

/// The name in `known` that is most similar to `word`, if any is similar at all.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Two edits in a short word result in a different word.
    let limit = (word.chars().count() / 3).max(1) + 1;
    known
        .into_iter()
        .map(|name| (distance(word, name), name))
        .filter(|((edits, _), _)| *edits <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Distance between `name` and `word`: the number of edits, and the difference in length. With equal numbers of edits,
/// a wrong character is more likely than a superfluous one: `802.11ax` is closer to `802.11ac` than to `802.11a`.
fn distance(word: &str, name: &str) -> (usize, usize) {
    let edits = |name: &str| strsim::damerau_levenshtein(word, name);
    // `rate` for `ack-rate`, `wire` for `wired-10`: a match with a part of the name counts as one edit.
    let part = name.split('-').map(|part| edits(part) + 1).min();
    let edits = part.map_or_else(|| edits(name), |part| part.min(edits(name)));
    (edits, word.len().abs_diff(name.len()))
}

/// The names that could replace `word`, for messages: all if there are few, otherwise the ten most similar.
fn few<'a>(word: &str, known: &[&'a str]) -> String {
    const SHOWN: usize = 10;
    if known.len() <= SHOWN {
        return known.join(", ");
    }
    let mut near: Vec<&'a str> = known.to_vec();
    near.sort_by_key(|name| distance(word, name));
    format!("{} and {} more: docs/use/scenario.md has all", near[..SHOWN].join(", "), near.len() - SHOWN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_equal_slips_a_wrong_letter_is_likelier_than_one_too_many() {
        let standards = ["802.11a", "802.11b", "802.11g", "802.11n", "802.11ac"];
        assert_eq!(nearest("802.11ax", standards), Some("802.11ac"));
        assert_eq!(nearest("quic", standards), None);
    }

    #[test]
    fn of_many_names_ten_are_shown() {
        let names: Vec<String> = (0..50).map(|number| format!("key-{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let shown = few("key-33", &names);
        assert!(shown.starts_with("key-33, ") && shown.contains(" and 40 more"), "{shown}");
        assert_eq!(few("key-33", &names[..3]), "key-0, key-1, key-2");
    }
}
