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
    MAX_DURATION, argument, bit_rate, byte_count, duration, flag, integer, level_dbm, line, metres,
    millidecibels, name_of, number, numbers, one_of, packets, parse_rtt, ratio, text, texts, title, unit,
    within, within_limits,
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
        .filter(|((likeness, edits, _), _)| *likeness < Likeness::Edits || *edits <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// `, did you mean "NAME"?` for the end of a message about `word`, or nothing if no name in `known` is similar.
pub fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, known).map_or(String::new(), |name| format!(", did you mean {name:?}?"))
}

/// How a name resembles a word, closest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Likeness {
    /// `802.11AX` for `802.11ax`.
    Case,
    /// `hack` for `hack-more-data`.
    Beginning,
    /// `reno` for `newreno`.
    Part,
    /// `sctp` for `tcp`.
    Edits,
}

/// Distance between `name` and `word`: likeness, the number of edits, and the difference in length. With equal numbers
/// of edits, a wrong character is more likely than a superfluous one: `802.11ae` is closer to `802.11ac` than to
/// `802.11a`. Names that begin with the word are equally close, so that the first of them is taken.
fn distance(word: &str, name: &str) -> (Likeness, usize, usize) {
    /// Shorter words are parts of too many names.
    const LEAST_PART: usize = 3;
    let (word, name) = (word.to_lowercase(), name.to_lowercase());
    let likeness = match word.len() {
        _ if word == name => Likeness::Case,
        LEAST_PART.. if name.starts_with(&word) => Likeness::Beginning,
        // `60 MHz` is no part of `160 MHz`.
        LEAST_PART.. if name.contains(&word) && !word.starts_with(|first: char| first.is_ascii_digit()) => {
            Likeness::Part
        }
        _ => Likeness::Edits,
    };
    if likeness == Likeness::Beginning {
        return (likeness, 0, 0);
    }
    let edits = |name: &str| strsim::damerau_levenshtein(&word, name);
    // `wire` for `wired-10`: a match with a part of the name counts as one edit.
    let part = name.split('-').map(|part| edits(part) + 1).min();
    let edits = part.map_or_else(|| edits(&name), |part| part.min(edits(&name)));
    (likeness, edits, word.len().abs_diff(name.len()))
}

/// The names that could replace `word`, for messages: all if there are few, otherwise the ten most similar and
/// `whole`, which says where all of them are.
pub fn few<'a>(word: &str, known: &[&'a str], whole: &str) -> String {
    const SHOWN: usize = 10;
    if known.len() <= SHOWN {
        return known.join(", ");
    }
    let mut near: Vec<&'a str> = known.to_vec();
    near.sort_by_key(|name| distance(word, name));
    format!("{} and {} more: {whole}", near[..SHOWN].join(", "), near.len() - SHOWN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_equal_slips_a_wrong_letter_is_likelier_than_one_too_many() {
        let standards = ["802.11a", "802.11b", "802.11g", "802.11n", "802.11ac"];
        assert_eq!(nearest("802.11ae", standards), Some("802.11ac"));
        assert_eq!(nearest("quic", standards), None);
    }

    #[test]
    fn a_word_in_other_case_or_within_a_name_comes_before_edits() {
        let standards = ["802.11a", "802.11ac", "802.11ax", "802.11be"];
        assert_eq!(nearest("802.11AX", standards), Some("802.11ax"));
        let schemes = ["stock", "hack-more-data", "hack-echo", "tack", "neqo", "newreno", "tcp-l2"];
        assert_eq!(
            nearest("hack", schemes),
            Some("hack-more-data"),
            "the first that begins with it, not tack"
        );
        assert_eq!(nearest("reno", schemes), Some("newreno"), "not neqo");
        assert_eq!(nearest("Reno", schemes), Some("newreno"));
        assert_eq!(nearest("tcp-l3", schemes), Some("tcp-l2"));
        assert_eq!(nearest("x", schemes), None, "one letter is in many names");
        assert_eq!(did_you_mean("STOCK", schemes), ", did you mean \"stock\"?");
        assert_eq!(did_you_mean("quicksilver", schemes), "");
    }

    #[test]
    fn of_many_names_ten_are_shown() {
        let names: Vec<String> = (0..50).map(|number| format!("key-{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let shown = few("key-33", &names, "page.md has all");
        assert!(shown.starts_with("key-33, ") && shown.ends_with(" and 40 more: page.md has all"), "{shown}");
        assert_eq!(few("key-33", &names[..3], "page.md has all"), "key-0, key-1, key-2");
    }
}
