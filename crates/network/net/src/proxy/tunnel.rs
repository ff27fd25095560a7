//! Tunnels (RFC 9110 section 9.3.6): TLS records are forwarded unchanged. Nothing in them can be repaired.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;

use super::served::{OnServed, Served};
use crate::relay::{Direction, relay};

/// The port of HTTP over TLS (RFC 9110 section 4.2.2), the only port for tunnels unless the user allows others.
pub const TLS_PORT: u16 = 443;

/// A tunnel is closed after this time without a byte; programs keep idle connections for minutes. tinyproxy has the
/// same default.
pub const IDLE_MAX: Duration = Duration::from_secs(600);

/// A tunnel whose answer is being sent to the client.
pub struct Tunnel {
    pub upgrade: OnUpgrade,
    pub server: TcpStream,
    pub idle_max: Duration,
    pub report: Report,
}

/// The report of a tunnel, written when it is dropped.
pub struct Report {
    pub served: Served,
    pub on_served: OnServed,
    /// Bytes from the server that the client accepted.
    pub to_program: Arc<AtomicU64>,
    /// Released together with the tunnel.
    pub _place: OwnedSemaphorePermit,
}

impl Drop for Report {
    fn drop(&mut self) {
        self.served.bytes = self.to_program.load(Ordering::Relaxed);
        (self.on_served)(&self.served);
    }
}

/// Where a request leaves its tunnel for the task that serves the connection.
pub type Slot = Arc<Mutex<Option<Tunnel>>>;

/// Takes the tunnel out of `slot`, if a request opened one.
pub fn take(slot: &Slot) -> Option<Tunnel> {
    slot.lock().unwrap_or_else(PoisonError::into_inner).take()
}

impl Tunnel {
    /// Forwards bytes in both directions until both ends have closed theirs, one fails, or no byte is forwarded for
    /// [`Tunnel::idle_max`].
    pub async fn run(self) {
        let Self { upgrade, server, idle_max, mut report } = self;
        let Ok(program) = upgrade.await else { return };
        let to_program = Arc::clone(&report.to_program);
        let forwarded = |direction, bytes| {
            if direction == Direction::ToFirst {
                to_program.fetch_add(bytes, Ordering::Relaxed);
            }
        };
        report.served.complete = relay(TokioIo::new(program), server, idle_max, forwarded).await.is_ok();
    }
}
