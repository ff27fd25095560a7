//! Counts running activities, and waits for their end.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tokio::sync::Notify;

/// Number of running activities, and the tasks that wait until there are none.
#[derive(Debug, Default)]
pub struct Running {
    count: AtomicU64,
    ended: Notify,
}

/// A running activity; ends on drop.
#[derive(Debug)]
pub struct Run<'a>(&'a Running);

impl Running {
    /// Starts an activity.
    pub fn begin(&self) -> Run<'_> {
        self.count.fetch_add(1, Relaxed);
        Run(self)
    }

    /// Number of running activities.
    pub fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }

    /// Waits until no activity is running.
    pub async fn idle(&self) {
        loop {
            let ended = self.ended.notified();
            if self.count() == 0 {
                return;
            }
            ended.await;
        }
    }
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Relaxed);
        self.0.ended.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn the_end_of_the_last_is_waited_for() {
        let running = Running::default();
        running.idle().await;
        let (first, second) = (running.begin(), running.begin());
        drop(first);
        assert_eq!(running.count(), 1);
        assert!(timeout(Duration::from_millis(10), running.idle()).await.is_err(), "one still runs");
        let end = async { drop(second) };
        tokio::join!(running.idle(), end);
        assert_eq!(running.count(), 0);
    }
}
