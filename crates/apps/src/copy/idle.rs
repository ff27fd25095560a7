//! Copies in which nothing comes or goes.

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

/// A copy in which nothing comes or goes for so long is ended. Ours: an end may have to hash a file before it says a word, of
/// some 500 GB in that time.
pub const IDLE: Duration = Duration::from_secs(600);

/// Bytes that passed streams.
#[derive(Clone, Debug, Default)]
pub struct ByteCounter(Arc<AtomicU64>);

/// A stream whose bytes are counted.
pub type CountedStream<S> = Gated<S, ByteCounter>;

impl ByteCounter {
    /// Counts those of `stream` too.
    pub fn counted<S>(&self, stream: S) -> CountedStream<S> {
        Gated::through(stream, self.clone())
    }

    /// Does `copy`, unless no bytes pass for `idle`.
    ///
    /// # Errors
    /// Those of `copy`, and where nothing passed.
    pub async fn watch<T>(
        &self,
        idle: Duration,
        copy: impl Future<Output = Result<T, CopyError>>,
    ) -> Result<T, CopyError> {
        let watch = async {
            let mut before = u64::MAX;
            // A copy that worked on its files for long comes to its own turn between the two looks.
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
