//! Two sockets in one process, with a link between them: `tokio`'s clock is the link's.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tacit_sim::RunError;
use tokio::sync::Notify;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::Instant;

use crate::{Builder, End, Testlink, TestlinkError};

/// Datagrams that may wait for [`Socket::recv`] at an end. Later ones are lost, as behind a full receive buffer.
pub const MOST_WAITING: usize = 4096;

/// What both sockets and the task between them share.
#[derive(Debug)]
struct Shared {
    link: Mutex<Testlink>,
    began: Instant,
    /// A datagram was sent, so the link may have something to do earlier.
    sent: Notify,
    /// Why the link ended.
    failed: OnceLock<RunError>,
}

impl Shared {
    fn link(&self) -> MutexGuard<'_, Testlink> {
        // A panic elsewhere ends that test; the link has no state that it could have left half done.
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Time of the link.
    fn now(&self) -> Duration {
        self.began.elapsed()
    }
}

/// An end of a link as an unreliable, unordered datagram socket, like a connected UDP socket.
///
/// [`Builder::sockets`] makes both. Where a runtime's clock is paused, time passes as fast as the machine computes it,
/// and equal programs with equal seeds have equal results.
#[derive(Debug)]
pub struct Socket {
    end: End,
    shared: Arc<Shared>,
    arrived: Receiver<Vec<u8>>,
}

impl Socket {
    /// Sends a datagram of up to [`crate::MOST_BYTES`] to the other end. It never waits.
    ///
    /// # Errors
    /// As [`Testlink::send`].
    pub fn send(&self, datagram: impl Into<Vec<u8>>) -> Result<(), TestlinkError> {
        self.shared.link().send(self.shared.now(), self.end, datagram)?;
        self.shared.sent.notify_one();
        Ok(())
    }

    /// The next datagram from the other end. It waits for ever where none comes: give it a timeout.
    ///
    /// A call that is dropped loses no datagram.
    ///
    /// # Errors
    /// As [`Testlink::advance`], and [`TestlinkError::Ended`].
    pub async fn recv(&mut self) -> Result<Vec<u8>, TestlinkError> {
        self.arrived.recv().await.ok_or_else(|| self.ended())
    }

    /// The next datagram, if it has already arrived.
    ///
    /// # Errors
    /// As [`Socket::recv`].
    pub fn try_recv(&mut self) -> Result<Option<Vec<u8>>, TestlinkError> {
        match self.arrived.try_recv() {
            Ok(datagram) => Ok(Some(datagram)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(self.ended()),
        }
    }

    fn ended(&self) -> TestlinkError {
        self.shared.failed.get().map_or(TestlinkError::Ended, |error| error.clone().into())
    }
}

impl Builder {
    /// The link as a socket for the client and one for the server. Its time begins now.
    ///
    /// tokio's timers have a resolution of a millisecond: a datagram is received at the first whole millisecond of the
    /// clock after its arrival. The order of arrivals is exact.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tacit_testlink::Testlink;
    /// use tokio::time::{Instant, timeout};
    ///
    /// # async fn a_test() -> Result<(), Box<dyn std::error::Error>> {
    /// let (mut client, mut server) = Testlink::over("lte-synthetic").seed(7).sockets()?;
    /// tokio::spawn(async move {
    ///     while let Ok(datagram) = server.recv().await {
    ///         server.send(datagram).unwrap();
    ///     }
    /// });
    /// let began = Instant::now();
    /// client.send(*b"ping")?;
    /// assert_eq!(timeout(Duration::from_secs(5), client.recv()).await??, b"ping");
    /// assert!(began.elapsed() > Duration::from_millis(20), "{:?}", began.elapsed());
    /// # Ok(())
    /// # }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    /// # runtime.block_on(a_test())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Builder::build`].
    ///
    /// # Panics
    /// Outside of a tokio runtime with time.
    pub fn sockets(&self) -> Result<(Socket, Socket), TestlinkError> {
        let link = Mutex::new(self.build()?);
        let shared =
            Arc::new(Shared { link, began: Instant::now(), sent: Notify::new(), failed: OnceLock::new() });
        let (to_client, at_client) = channel(MOST_WAITING);
        let (to_server, at_server) = channel(MOST_WAITING);
        tokio::spawn(carry(Arc::clone(&shared), to_client, to_server));
        let socket = |end, arrived| Socket { end, shared: Arc::clone(&shared), arrived };
        Ok((socket(End::Client, at_client), socket(End::Server, at_server)))
    }
}

/// Moves the link's time until both sockets are gone.
async fn carry(shared: Arc<Shared>, to_client: Sender<Vec<u8>>, to_server: Sender<Vec<u8>>) {
    loop {
        let due = shared.link().next_event();
        let until_due = async {
            match due {
                Some(due) => tokio::time::sleep_until(shared.began + due).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = shared.sent.notified() => {}
            () = until_due => {}
            () = async { tokio::join!(to_client.closed(), to_server.closed()); } => return,
        }
        let mut link = shared.link();
        if let Err(error) = link.step(shared.now()) {
            // The sockets find it when the channels are closed. Nothing else sets it.
            let _ = shared.failed.set(error);
            return;
        }
        while let Some((end, datagram)) = link.receive() {
            let to = match end {
                End::Client => &to_client,
                End::Server => &to_server,
            };
            // A full buffer loses it, and so does a socket that is gone.
            let _ = to.try_send(datagram);
        }
    }
}
