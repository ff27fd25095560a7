//! Time: a clock that starts at nothing, and a timer that comes to within some tens of microseconds, as pacing wants it.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::time::Instant as Wall;

use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use tacit_proto::units::{Duration, Instant};
use tokio::net::unix::pipe;

/// The time since an endpoint began.
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

    /// The time of day, for logs.
    #[cfg(feature = "qlog")]
    pub fn wall() -> std::time::SystemTime {
        #[expect(clippy::disallowed_methods, reason = "the edge, where time is read")]
        std::time::SystemTime::now()
    }

    pub fn now(&self) -> Instant {
        Instant::from_nanos(u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}

/// A timer of the system. The runtime's own come to the millisecond, in which a fast sender has a hundred packets to send.
pub(crate) struct Timer {
    timer: TimerFd,
    /// The timer as the runtime watches it: of a timer, as of a pipe, one reads bytes once there are some.
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

    /// Has it go off at `at`, or earlier: a time that it is set for stays where it comes first, for to set a timer costs
    /// more than to be woken once for nothing.
    pub fn set(&mut self, now: Instant, at: Option<Instant>) -> io::Result<()> {
        let Some(at) = at else { return Ok(()) };
        if self.set_for.is_some_and(|set_for| set_for <= at) {
            return Ok(());
        }
        self.set_for = Some(at);
        // A time of nothing would unset it.
        let wait = at.saturating_since(now).max(Duration::from_nanos(1));
        let wait = TimeSpec::from_duration(std::time::Duration::from_nanos(wait.as_nanos()));
        Ok(self.timer.set(Expiration::OneShot(wait), TimerSetTimeFlags::empty())?)
    }

    /// Waits until it goes off. Nothing is lost where this is given up.
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
