//! Detects copies in which no bytes move.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::sleep;

use super::CopyError;
use super::gate::{Gate, Gated};

/// A copy is ended after this time without a byte in either direction. Ours: an end may have to hash a file before it
/// sends a message, and can hash some 500 GB in this time.
pub const IDLE: Duration = Duration::from_secs(600);

/// Counts the bytes of streams.
#[derive(Clone, Debug, Default)]
pub struct ByteCounter(Arc<AtomicU64>);

/// A stream whose bytes are counted.
pub type CountedStream<S> = Gated<S, ByteCounter>;

impl ByteCounter {
    /// Also counts the bytes of `stream`.
    pub fn counted<S>(&self, stream: S) -> CountedStream<S> {
        Gated::through(stream, self.clone())
    }

    /// Runs `copy` until it completes or no bytes pass for `idle`.
    ///
    /// # Errors
    /// The errors of `copy`, or `TimedOut` if no bytes passed.
    pub async fn watch<T>(
        &self,
        idle: Duration,
        copy: impl Future<Output = Result<T, CopyError>>,
    ) -> Result<T, CopyError> {
        let watch = async {
            let mut before = u64::MAX;
            // Checks twice: a copy that blocked this thread for a long time gets to run between the two checks.
            let mut looks = 0;
            while looks < 2 {
                let now = self.0.load(Relaxed);
                looks = if now == before { looks + 1 } else { 0 };
                before = now;
                sleep(idle / 2).await;
            }
        };
        let (copy, watch) = (pin!(copy), pin!(watch));
        tokio::select! {
            biased;
            done = copy => done,
            () = watch => Err(io::Error::new(io::ErrorKind::TimedOut, "no data for too long").into()),
        }
    }
}

impl Gate for ByteCounter {
    fn poll_room(&mut self, _: &mut Context<'_>) -> Poll<usize> {
        Poll::Ready(usize::MAX)
    }

    fn on_passed(&mut self, count: usize) {
        self.0.fetch_add(count as u64, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    #[test]
    fn a_copy_ends_when_nothing_passes_and_not_while_something_does() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let idle = Duration::from_millis(200);
            let (mut mine, theirs) = duplex(64);
            let counter = ByteCounter::default();
            let mut counted = counter.counted(theirs);
            let slow = async {
                for _ in 0..20 {
                    mine.write_u8(1).await.unwrap();
                    sleep(idle / 8).await;
                }
                mine
            };
            let reading = counter.watch(idle, async {
                for _ in 0..20 {
                    counted.read_u8().await?;
                }
                Ok(())
            });
            let (_mine, read) = tokio::join!(slow, reading);
            read.unwrap();
            let silent = counter.watch(idle, async { Ok(counted.read_u8().await?) }).await;
            assert!(matches!(silent, Err(CopyError::Io(error)) if error.kind() == io::ErrorKind::TimedOut));
        });
    }
}
