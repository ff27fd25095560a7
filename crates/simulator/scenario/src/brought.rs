//! Schemes that a program brings along for as long as it keeps them, such as classes in Python.

use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use crate::scheme::table::{ALL, AS_WRITTEN, Scheme};
use crate::{InputError, Scenario};

type Change = Arc<dyn Fn(&mut Scenario) + Send + Sync>;

struct Entry {
    scheme: &'static Scheme,
    change: Change,
    /// Differs from that of every other entry of any process.
    mark: u64,
}

static ENTRIES: RwLock<Vec<Entry>> = RwLock::new(Vec::new());

fn entries() -> RwLockReadGuard<'static, Vec<Entry>> {
    ENTRIES.read().unwrap_or_else(PoisonError::into_inner)
}

/// A scheme that exists until this value is dropped. Until then its name selects it, as those of the table do.
///
/// Names of its runs are never used again, not even by a scheme of the same name, because no file tells what it changes.
pub struct BroughtScheme {
    scheme: &'static Scheme,
}

impl BroughtScheme {
    /// Adds the scheme `name`: `base`, and then `change`. Its description remains in memory until the process ends.
    ///
    /// # Errors
    /// If the name is empty or has other characters than letters, digits, `-` and `_`, or if there is a scheme of this
    /// name.
    pub fn new(
        name: &str,
        base: &'static Scheme,
        change: impl Fn(&mut Scenario) + Send + Sync + 'static,
    ) -> Result<Self, InputError> {
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
        if name.is_empty() || !name.chars().all(is_plain) {
            return Err(InputError::new("--schemes", format!("{name:?} is no name of a scheme"))
                .allowed("letters, digits, - and _"));
        }
        let mut entries = ENTRIES.write().unwrap_or_else(PoisonError::into_inner);
        let is_taken = |known: &Scheme| known.name == name;
        if ALL.iter().chain([&AS_WRITTEN]).any(is_taken) || entries.iter().any(|entry| is_taken(entry.scheme))
        {
            return Err(InputError::new("--schemes", format!("there is a scheme {name:?} already"))
                .allowed("another name"));
        }
        let summary = "brought by the program that made these runs: the command alone cannot make them";
        let scheme: &'static Scheme =
            Box::leak(Box::new(base.under_another_name(Box::leak(name.into()), summary)));
        // Keyed randomly.
        let mark = RandomState::new().hash_one(entries.len());
        entries.push(Entry { scheme, change: Arc::new(change), mark });
        Ok(Self { scheme })
    }

    /// The scheme.
    pub fn scheme(&self) -> &'static Scheme {
        self.scheme
    }
}

impl fmt::Debug for BroughtScheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BroughtScheme").field(&self.scheme.name).finish()
    }
}

impl Drop for BroughtScheme {
    fn drop(&mut self) {
        let mut entries = ENTRIES.write().unwrap_or_else(PoisonError::into_inner);
        entries.retain(|entry| !std::ptr::eq(entry.scheme, self.scheme));
    }
}

/// All schemes that are there now, in the order in which they were brought.
pub fn all() -> Vec<&'static Scheme> {
    entries().iter().map(|entry| entry.scheme).collect()
}

/// Changes `scenario` as the scheme `name` does, if it was brought.
pub(crate) fn apply(name: &str, scenario: &mut Scenario) {
    // Not under the lock: the change may take other locks, such as that of an interpreter.
    let change = entries().iter().find(|entry| entry.scheme.name == name).map(|entry| entry.change.clone());
    if let Some(change) = change {
        change(scenario);
    }
}

/// What distinguishes the runs of the scheme `name` from those of every other scheme; empty if it was not brought.
pub(crate) fn mark(name: &str) -> String {
    let entries = entries();
    let found = entries.iter().find(|entry| entry.scheme.name == name);
    found.map_or(String::new(), |entry| format!("{:016x}", entry.mark))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tacit_packet::units::Bytes;

    use super::*;
    use crate::scheme::{Role, find, select};
    use crate::{RunSpec, Subject};

    #[test]
    fn a_brought_scheme_is_one_by_its_name_while_it_is_kept() {
        let bring = || {
            BroughtScheme::new("my-own", find("", "hack-batch").unwrap(), |scenario| {
                scenario.tcp.mtu = Bytes(700);
            })
        };
        assert!(find("", "my-own").is_err());
        let brought = bring().unwrap();
        let scheme = select("", &["stock".into(), "my-own".into()]).unwrap()[1];
        assert_eq!((scheme.name, scheme.role), ("my-own", Role::Candidate));
        let scenario = Arc::new(Scenario::load("wlan-11n-150", &[]).unwrap());
        let changed = scheme.applied_to(&scenario);
        assert_eq!((changed.tcp.mtu, changed.hack.variant.is_some()), (Bytes(700), true));
        let content = || {
            let subject = Subject::new(scenario.clone(), find("", "my-own").unwrap());
            RunSpec::new(Arc::new(subject), 1, 1).content()
        };
        let first = content();
        assert_eq!(first, content());
        assert_eq!(bring().unwrap_err().what, "there is a scheme \"my-own\" already");
        drop(brought);
        assert!(find("", "my-own").is_err());
        let _again = bring().unwrap();
        assert_ne!(content(), first, "another program may change something else");
        for wrong in ["", "stock", "as-written", "two words", "a,b"] {
            assert!(BroughtScheme::new(wrong, &AS_WRITTEN, |_| {}).is_err(), "{wrong}");
        }
    }
}
