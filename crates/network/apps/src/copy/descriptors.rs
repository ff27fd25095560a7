//! Shares the file descriptors of this process among its copies: files stay open until they are synced, and one sync of many
//! files takes little longer than one of a few.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rustix::process::{Resource, getrlimit};

/// Most files of one set of a copy: those that are synced together while the same number arrives. Ours.
const FILES_MAX: u64 = 1024;
/// File descriptors reserved for other purposes. Ours.
const OTHERS: u64 = 256;
/// Such sets of a copy: files that arrive, files that are synced, and parts of earlier copies.
const SETS: u64 = 3;

/// Descriptors that copies of this process may have open.
static LENT: AtomicU64 = AtomicU64::new(0);

/// The descriptors of one copy; given back on drop.
#[derive(Debug)]
pub(super) struct Share<'a> {
    lent: &'a AtomicU64,
    files: u64,
}

impl Share<'static> {
    /// Half of the descriptors that other copies leave, as far as one copy has use for them.
    pub fn of_process() -> Self {
        Self::take(&LENT, getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX))
    }
}

impl<'a> Share<'a> {
    fn take(lent: &'a AtomicU64, open_max: u64) -> Self {
        let half = |lent: u64| open_max.saturating_sub(OTHERS).saturating_sub(lent) / 2;
        let files = |lent: u64| (half(lent) / SETS).clamp(1, FILES_MAX);
        let before = lent.fetch_update(Relaxed, Relaxed, |lent| Some(lent + SETS * files(lent)));
        // The update always has a value.
        let (Ok(before) | Err(before)) = before;
        Self { lent, files: files(before) }
    }

    /// Most files of each set.
    pub fn files_max(&self) -> usize {
        self.files as usize
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        self.lent.fetch_sub(SETS * self.files, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::super::COPIES_MAX;
    use super::*;

    #[test]
    fn a_copy_takes_half_of_what_others_leave_and_gives_it_back() {
        let lent = AtomicU64::new(0);
        let (first, second) = (Share::take(&lent, 4096), Share::take(&lent, 4096));
        assert_eq!([&first, &second].map(Share::files_max), [640, 320]);
        drop(first);
        assert_eq!(Share::take(&lent, 4096).files_max(), 480, "half of 4096 - 256 - 3 * 320, in three");
        drop(second);
        assert_eq!(lent.into_inner(), 0);
        assert_eq!(Share::take(&AtomicU64::new(0), u64::MAX).files_max(), 1024);
    }

    #[test]
    fn all_copies_of_a_server_together_stay_below_the_limit() {
        for open_max in [0, 300, 1024, 4096, 20_000, 1 << 20] {
            let lent = AtomicU64::new(0);
            let shares: Vec<_> = (0..COPIES_MAX).map(|_| Share::take(&lent, open_max)).collect();
            let open: usize = shares.iter().map(|share| 3 * share.files_max()).sum();
            // Each needs one of each set; the reserve has room for them.
            let least = 3 * COPIES_MAX;
            assert!(open as u64 <= open_max.saturating_sub(OTHERS) + least as u64, "{open} of {open_max}");
            assert!(least < OTHERS as usize && shares.iter().all(|share| share.files_max() > 0));
        }
    }
}
