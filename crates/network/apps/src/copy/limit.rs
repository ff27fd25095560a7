//! Streams with a rate limit.

use std::num::NonZeroU64;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

use super::gate::{Gate, Gated};

/// Longest burst, as time at the limited rate. Ours: too short to be noticed, but long enough that timers cost nothing.
const AT_ONCE: Duration = Duration::from_millis(20);

/// A gate that limits the rate of bytes; without a rate it lets all bytes pass.
#[derive(Debug)]
pub struct Limit {
    rate: Option<NonZeroU64>,
    /// When the next bytes may pass.
    next: Option<Pin<Box<Sleep>>>,
}

/// A stream limited to a rate in bytes per second; for a bidirectional stream, in both directions.
pub type Limited<S> = Gated<S, Limit>;

impl<S> Limited<S> {
    /// Limits `stream` to `rate`. Without a rate, `stream` is not limited.
    pub fn new(stream: S, rate: Option<NonZeroU64>) -> Self {
        Self::through(stream, Limit { rate, next: None })
    }
}

impl Gate for Limit {
    fn poll_room(&mut self, context: &mut Context<'_>) -> Poll<usize> {
        let Some(rate) = self.rate else { return Poll::Ready(usize::MAX) };
        if let Some(next) = &mut self.next {
            ready!(next.as_mut().poll(context));
        }
        let bytes = u128::from(rate.get()) * AT_ONCE.as_millis() / 1000;
        Poll::Ready(usize::try_from(bytes).unwrap_or(usize::MAX).max(1))
    }

    fn on_passed(&mut self, count: usize) {
        // A timer that is set again while it is due wakes its task at once: a stream without data would spin.
        let Some(rate) = self.rate.filter(|_| count > 0) else { return };
        let now = Instant::now();
        // Unused time is not made up for beyond one burst.
        let from = self.next.as_ref().map_or(now, |next| next.deadline().max(now - AT_ONCE));
        let ns = count as u128 * 1_000_000_000 / u128::from(rate.get());
        let next = from + Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX));
        match &mut self.next {
            Some(sleep) => sleep.as_mut().reset(next),
            None => self.next = Some(Box::pin(sleep_until(next))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    use tokio::io::{AsyncRead as _, AsyncReadExt as _, AsyncWriteExt as _, duplex};

    /// Counts how often a task is woken.
    #[derive(Default)]
    struct Wakeups(AtomicU64);

    impl std::task::Wake for Wakeups {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    #[test]
    fn a_reader_without_data_sleeps() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (mine, mut theirs) = duplex(1 << 20);
            let mut reader = Limited::new(mine, NonZeroU64::new(1_000_000));
            theirs.write_all(&[7; 1000]).await.unwrap();
            reader.read_exact(&mut [0; 1000]).await.unwrap();
            // The limit lets bytes pass again after 1 ms.
            tokio::time::sleep(Duration::from_millis(5)).await;
            let wakeups = Arc::new(Wakeups::default());
            let (waker, mut buffer) = (wakeups.clone().into(), [0; 16]);
            for _ in 0..100 {
                let mut into = tokio::io::ReadBuf::new(&mut buffer);
                let polled = Pin::new(&mut reader).poll_read(&mut Context::from_waker(&waker), &mut into);
                assert!(polled.is_pending());
                // The runtime's timers run.
                tokio::task::yield_now().await;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
            assert_eq!(wakeups.0.load(Relaxed), 0);
        });
    }

    #[test]
    fn no_more_than_the_rate_passes_either_way() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            for limits_reader in [true, false] {
                let (mine, theirs) = duplex(1 << 20);
                let rate = NonZeroU64::new(1_000_000);
                let mut reader = Limited::new(mine, rate.filter(|_| limits_reader));
                let mut writer = Limited::new(theirs, rate.filter(|_| !limits_reader));
                let begun = Instant::now();
                let writing = async { writer.write_all(&[7; 500_000]).await };
                let mut bytes = vec![0; 500_000];
                let (written, read) = tokio::join!(writing, reader.read_exact(&mut bytes));
                written.unwrap();
                read.unwrap();
                assert!(bytes.iter().all(|byte| *byte == 7));
                let span = begun.elapsed();
                // The last burst passes without a wait.
                assert!(span > Duration::from_millis(450), "{span:?}");
            }
        });
    }
}
