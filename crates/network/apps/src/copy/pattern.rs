//! Name patterns as in shells and rsync: `*` is any number of characters, `?` is one character, `[…]` is one of a set.

use serde::{Deserialize, Serialize};

use super::wire::PATH_BYTES_MAX;

/// True if `pattern` matches `name`, which contains no slash. The time is at most proportional to the product of their
/// lengths.
pub fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut at, mut from) = (0, 0);
    // Position of the last star, and the end of the text it has matched: only the last star needs to be retried.
    let mut star: Option<(usize, usize)> = None;
    while from < name.len() {
        let next = match pattern.get(at) {
            Some('*') => {
                star = Some((at, from));
                at += 1;
                continue;
            }
            Some('[') => one_of(&pattern[at..], name[from]),
            Some('?') => Some((true, 1)),
            Some('\\') if at + 1 < pattern.len() => Some((pattern[at + 1] == name[from], 2)),
            Some(&c) => Some((c == name[from], 1)),
            None => None,
        };
        // An unclosed bracket stands for itself.
        let (is_same, length) = next.unwrap_or((pattern.get(at) == Some(&name[from]), 1));
        match (is_same && at < pattern.len(), star) {
            (true, _) => (at, from) = (at + length, from + 1),
            (false, Some((star_at, reach))) => {
                star = Some((star_at, reach + 1));
                (at, from) = (star_at + 1, reach + 1);
            }
            (false, None) => return false,
        }
    }
    pattern[at..].iter().all(|&c| c == '*')
}

/// True if `pattern` contains wildcards.
pub fn is_pattern(pattern: &str) -> bool {
    pattern.contains(['*', '?', '['])
}

/// Whether `c` is in the set at the start of `pattern`, and the length of the set; `None` if the set is not closed.
fn one_of(pattern: &[char], c: char) -> Option<(bool, usize)> {
    let is_negated = matches!(pattern.get(1), Some('!' | '^'));
    let first = 1 + usize::from(is_negated);
    // A closing bracket in the first position is an element of the set.
    let end = first + 1 + pattern.get(first + 1..)?.iter().position(|&c| c == ']')?;
    let set = &pattern[first..end];
    let mut is_in = false;
    let mut at = 0;
    while at < set.len() {
        match set[at..] {
            [low, '-', high, ..] => {
                is_in |= (low..=high).contains(&c);
                at += 3;
            }
            _ => {
                is_in |= set[at] == c;
                at += 1;
            }
        }
    }
    Some((is_in != is_negated, end + 1))
}

/// A pattern for paths that are neither sent nor deleted. `NAME` matches that name anywhere, `A/B` matches that path as
/// it arrives at the destination. A trailing slash restricts the pattern to directories. `**` in a path is any number
/// of names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Exclude(String);

impl TryFrom<String> for Exclude {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let names = text.trim_matches('/');
        if names.is_empty() || text.len() > PATH_BYTES_MAX || text.contains('\0') {
            let shown: String = text.chars().take(80).collect();
            return Err(format!("{shown:?} is no pattern of a name or path"));
        }
        if names.split('/').filter(|name| *name == "**").count() > DEEP_MAX {
            return Err(format!("more than {DEEP_MAX} ** in one pattern"));
        }
        Ok(Self(text))
    }
}

/// Most `**` in one pattern, because each one multiplies the time for matching. Ours.
const DEEP_MAX: usize = 2;

impl From<Exclude> for String {
    fn from(exclude: Exclude) -> Self {
        exclude.0
    }
}

impl std::str::FromStr for Exclude {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.to_owned().try_into()
    }
}

impl Exclude {
    /// True for the file or directory at `path`, but not for paths below it.
    pub fn matches(&self, path: &str, is_directory: bool) -> bool {
        if self.0.ends_with('/') && !is_directory {
            return false;
        }
        let pattern = self.0.trim_end_matches('/');
        match pattern.contains('/') {
            false => matches(pattern, path.rsplit('/').next().unwrap_or_default()),
            true => {
                let names: Vec<&str> = pattern.trim_start_matches('/').split('/').collect();
                matches_path(&names, &path.split('/').collect::<Vec<_>>())
            }
        }
    }
}

fn matches_path(pattern: &[&str], path: &[&str]) -> bool {
    match (pattern, path) {
        ([], []) => true,
        (["**", rest @ ..], _) => (0..=path.len()).any(|skip| matches_path(rest, &path[skip..])),
        ([first, rest @ ..], [name, below @ ..]) => matches(first, name) && matches_path(rest, below),
        _ => false,
    }
}

/// True if one of `excludes` matches `path`.
pub fn excludes(excludes: &[Exclude], path: &str, is_directory: bool) -> bool {
    excludes.iter().any(|exclude| exclude.matches(path, is_directory))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_matched_as_shells_do() {
        for (pattern, yes, no) in [
            ("*.jpg", &["a.jpg", ".jpg", "ü.jpg"][..], &["a.jpeg", "jpg", "a.jpg.x"][..]),
            ("a?c", &["abc", "aüc"], &["ac", "abbc"]),
            ("[a-c]x", &["ax", "cx"], &["dx", "x"]),
            ("[!a-c]", &["d", "-"], &["a", "dd"]),
            ("[]x]", &["]", "x"], &["[", ""]),
            ("[a", &["[a"], &["a"]),
            ("a*b*c", &["abc", "a__b__c", "abcbc"], &["acb", "ab"]),
            ("\\*", &["*"], &["a"]),
            ("", &[], &["a"]),
            ("**", &["", "a"], &[]),
        ] {
            for name in yes {
                assert!(matches(pattern, name), "{pattern} {name}");
            }
            for name in no {
                assert!(!matches(pattern, name), "{pattern} {name}");
            }
        }
    }

    #[test]
    fn a_pattern_made_to_be_slow_is_not() {
        let (pattern, name) = ("*a".repeat(1000), "a".repeat(2000) + "b");
        assert!(!matches(&pattern, &name));
    }

    #[test]
    fn excluded_patterns_are_names_or_paths() {
        let excludes = |pattern: &str, path, is_directory| {
            pattern.parse::<Exclude>().unwrap().matches(path, is_directory)
        };
        assert!(excludes("*.o", "src/deep/a.o", false) && excludes("src", "src", true));
        assert!(!excludes("src/", "a/src", false) && excludes("src/", "a/src", true));
        assert!(excludes("/tree/tmp", "tree/tmp", true) && !excludes("/tree/tmp", "a/tree/tmp", true));
        assert!(excludes("tree/*/x", "tree/a/x", false) && !excludes("tree/*/x", "tree/a/b/x", false));
        assert!(excludes("**/x/y", "a/b/x/y", false) && excludes("a/**", "a/b/c", false));
        for wrong in ["", "/", "//", "a\0", "**/a/**/b/**"] {
            assert!(wrong.parse::<Exclude>().is_err(), "{wrong:?}");
        }
    }
}
