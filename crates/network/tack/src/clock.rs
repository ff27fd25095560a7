//! A clock that starts at zero, and a timer that is accurate to some tens of microseconds, as pacing requires.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::time::Instant as Wall;

use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use tacit_packet::units::{Duration, Instant};
use tokio::net::unix::pipe;

/// Measures the time since an endpoint was created.
#[derive(Clone, Copy)]
pub(crate) struct Clock {
    start: Wall,
}

impl Clock {
    pub fn start() -> Self {
        #[expect(clippy::disallowed_methods, reason = "the edge, where time is read")]
        let start = Wall::now();
        Self { start }
    }

    /// The wall-clock time, for logs.
    #[cfg(feature = "qlog")]
    pub fn wall() -> std::time::SystemTime {
        #[expect(clippy::disallowed_methods, reason = "the edge, where time is read")]
        std::time::SystemTime::now()
    }

    pub fn now(&self) -> Instant {
        Instant::from_nanos(u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}

/// A system timer. The runtime's own timers have millisecond resolution, and a fast sender sends a hundred packets per
/// millisecond.
pub(crate) struct Timer {
    timer: TimerFd,
    /// The timer as the runtime watches it: like a pipe, a timer becomes readable.
    watched: pipe::Receiver,
    set_for: Option<Instant>,
}

impl Timer {
    pub fn new() -> io::Result<Self> {
        let timer =
            TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC)?;
        let watched = File::from(timer.as_fd().try_clone_to_owned()?);
        Ok(Self { timer, watched: pipe::Receiver::from_file_unchecked(watched)?, set_for: None })
    }

    /// Sets the timer to `at`, unless it is already set to an earlier time. An unnecessary wake-up costs less than
    /// setting the timer again.
    pub fn set(&mut self, now: Instant, at: Option<Instant>) -> io::Result<()> {
        let Some(at) = at else { return Ok(()) };
        if self.set_for.is_some_and(|set_for| set_for <= at) {
            return Ok(());
        }
        self.set_for = Some(at);
        // A wait of zero would disarm the timer.
        let wait = at.saturating_since(now).max(Duration::from_nanos(1));
        let wait = TimeSpec::from_duration(std::time::Duration::from_nanos(wait.as_nanos()));
        Ok(self.timer.set(Expiration::OneShot(wait), TimerSetTimeFlags::empty())?)
    }

    /// Waits until the timer expires. Cancel safe.
    pub async fn expired(&mut self) -> io::Result<()> {
        loop {
            self.watched.readable().await?;
            match self.watched.try_read(&mut [0; 8]) {
                Ok(_) => {
                    self.set_for = None;
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }
}
