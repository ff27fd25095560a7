//! Memory of lists of paths, over all copies of a server: a client says how many paths there are.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::CopyError;

/// Bytes of all lists at once: two of the longest that a copy may have. Ours.
const ALL_BYTES_MAX: u64 = 2 << 30;
/// Bytes that a path takes beside its name, which is held twice. Measured by tests/memory.rs, and rounded up.
const PATH_BYTES: u64 = 512;

/// Memory of all lists, in bytes.
#[derive(Debug, Default)]
pub(super) struct Lists(AtomicU64);

/// Memory of the lists of one copy, until this is dropped.
#[derive(Debug)]
pub(super) struct ListBudget<'a> {
    lists: &'a Lists,
    bytes: u64,
}

impl Lists {
    /// Room for the lists of a copy.
    pub fn list_budget(&self) -> ListBudget<'_> {
        ListBudget { lists: self, bytes: 0 }
    }
}

impl ListBudget<'_> {
    /// Takes a path with this length of text in bytes.
    pub fn add(&mut self, text_bytes: usize) -> Result<(), CopyError> {
        let bytes = PATH_BYTES + 2 * text_bytes as u64;
        self.bytes += bytes;
        if self.lists.0.fetch_add(bytes, Relaxed) + bytes > ALL_BYTES_MAX {
            let (what, max) =
                ("bytes of lists, of all copies of this server together,", ALL_BYTES_MAX as usize);
            return Err(CopyError::Limit { what, max });
        }
        Ok(())
    }
}

impl Drop for ListBudget<'_> {
    fn drop(&mut self) {
        self.lists.0.fetch_sub(self.bytes, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::super::wire::{ENTRIES_MAX, NAMES_BYTES_MAX};
    use super::*;

    #[test]
    fn two_of_the_longest_lists_fit_and_what_is_dropped_gives_its_room_back() {
        let lists = Lists::default();
        let longest = || {
            let mut list_budget = lists.list_budget();
            for _ in 0..ENTRIES_MAX {
                list_budget.add(NAMES_BYTES_MAX / ENTRIES_MAX)?;
            }
            Ok::<_, CopyError>(list_budget)
        };
        let two = [longest().unwrap(), longest().unwrap()];
        assert!(matches!(longest(), Err(CopyError::Limit { .. })));
        drop(two);
        longest().unwrap();
    }
}
