//! Bounds the memory for lists of paths over all copies of a server, because the number of paths is under the client's
//! control.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::CopyError;

/// Most bytes of all lists together: two lists of the maximum length. Ours.
const ALL_BYTES_MAX: u64 = 2 << 30;
/// Bytes per path in addition to its name, which is stored twice. Measured by tests/memory.rs, rounded up.
const PATH_BYTES: u64 = 512;

/// Memory used by all lists, in bytes.
#[derive(Debug, Default)]
pub(super) struct Lists(AtomicU64);

/// Memory used by the lists of one copy; released on drop.
#[derive(Debug)]
pub(super) struct ListBudget<'a> {
    lists: &'a Lists,
    bytes: u64,
}

impl Lists {
    /// A budget for the lists of one copy.
    pub fn list_budget(&self) -> ListBudget<'_> {
        ListBudget { lists: self, bytes: 0 }
    }
}

impl ListBudget<'_> {
    /// Adds a path whose text has this length in bytes.
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
