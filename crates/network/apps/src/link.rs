//! A connection to one server that is reopened when it breaks.

use std::future::Future;
use std::time::Duration;

use tacit_tack::{Connection, ConnectionError, Endpoint, PublicKey};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use crate::node::{Connector, Node, NodeError, wait_closed};

/// Delays before the next attempt: the first one, and the upper limit of its doubling. Ours.
const AGAIN_FIRST: Duration = Duration::from_millis(250);
const AGAIN_LAST: Duration = Duration::from_secs(15);
/// The upper limit where an attempt sends no packet, and while a user waits for the first connection. Ours.
const AGAIN_SOON: Duration = Duration::from_secs(2);
/// Time for which [`open`] tries. Ours: as long as an open connection may be silent. A machine that wakes up has joined its
/// Wi-Fi by then.
pub const OPEN_TIMEOUT: Duration = Duration::from_secs(30);

/// Gives its users the current connection.
#[derive(Clone)]
pub struct Link {
    current: watch::Receiver<Current>,
    /// The number of the connection that [`next`](Self::next) has returned.
    taken: u64,
}

/// The current connection, and the number of connections so far.
struct Current {
    connection: Option<Connection>,
    endpoint: Endpoint,
    number: u64,
}

impl Link {
    /// The connection; if there is none, waits for the next one for at most `patience`.
    pub async fn connection(&mut self, patience: Duration) -> Option<Connection> {
        self.connection_after(0, patience).await
    }

    /// A connection that this did not return before. Waits for it for at most `patience`.
    pub async fn next(&mut self, patience: Duration) -> Option<Connection> {
        self.connection_after(self.taken, patience).await
    }

    async fn connection_after(&mut self, taken: u64, patience: Duration) -> Option<Connection> {
        let is_next = |current: &Current| current.number > taken && current.connection.is_some();
        let there = timeout(patience, self.current.wait_for(is_next)).await.ok()?.ok()?;
        self.taken = there.number;
        there.connection.clone()
    }

    /// Closes the current connection.
    pub fn close(&self) {
        if let Some(connection) = &self.current.borrow().connection {
            connection.close(0, "");
        }
    }

    /// Closes the current connection, and waits until the server knows.
    pub async fn end(&self) {
        self.close();
        let endpoint = self.current.borrow().endpoint.clone();
        wait_closed(&endpoint).await;
    }
}

/// A change of the connection's state.
#[derive(Debug)]
pub enum LinkEvent<'a> {
    /// The connection broke; the reason is given.
    Broken(&'a NodeError),
    /// An attempt failed; the next one follows after this delay.
    RetryFailed(&'a NodeError, Duration),
    /// The connection was reopened.
    Restored,
}

/// Keeps a connection open. Returns its link, and a future that must be polled to keep it; the future ends with an
/// error that further attempts would meet as well, such as a server that refuses or has another key. `report` receives
/// the events.
pub fn keep(
    connector: Connector,
    first: (Node, Connection),
    report: impl Fn(LinkEvent<'_>),
) -> (Link, impl Future<Output = NodeError>) {
    let (endpoint, connection) = (first.0.endpoint().clone(), Some(first.1.clone()));
    let (sender, current) = watch::channel(Current { connection, endpoint, number: 1 });
    let keeping = async move {
        let (mut node, mut connection) = first;
        loop {
            let why = connection.closed().await;
            sender.send_modify(|current| current.connection = None);
            let why = NodeError::of_connection(&connector.server, connector.identity.public_key(), why);
            if is_final(&why) {
                return why;
            }
            report(LinkEvent::Broken(&why));
            // Dropping a node joins its thread, which takes a while.
            drop(tokio::task::spawn_blocking(move || drop(node)));
            // The user is not asked again: a server that was not trusted at first is not trusted now.
            let failed = |why: &NodeError, wait| report(LinkEvent::RetryFailed(why, wait));
            let reconnected = attempts(&connector, |_| false, None, failed).await;
            (node, connection) = match reconnected {
                Ok(reconnected) => reconnected,
                Err(error) => return error,
            };
            report(LinkEvent::Restored);
            sender.send_modify(|current| {
                let (endpoint, connection) = (node.endpoint().clone(), Some(connection.clone()));
                *current = Current { connection, endpoint, number: current.number + 1 };
            });
        }
    };
    (Link { current, taken: 0 }, keeping)
}

/// Opens the first connection, as [`Connector::connect`] does. Tries again for up to [`OPEN_TIMEOUT`] where a later attempt may
/// succeed: there is no network yet, or the server does not answer yet. `failed` receives the failures that another attempt
/// follows.
///
/// # Errors
/// The last failure, or the first one that will not change, such as a name that does not exist.
pub async fn open(
    connector: &Connector,
    ask: impl FnMut(PublicKey) -> bool,
    failed: impl FnMut(&NodeError, Duration),
) -> Result<(Node, Connection), NodeError> {
    attempts(connector, ask, Some(OPEN_TIMEOUT), failed).await
}

async fn attempts(
    connector: &Connector,
    mut ask: impl FnMut(PublicKey) -> bool,
    patience: Option<Duration>,
    mut failed: impl FnMut(&NodeError, Duration),
) -> Result<(Node, Connection), NodeError> {
    let (begun, mut wait) = (Instant::now(), AGAIN_FIRST);
    loop {
        let why = match connector.connect(&mut ask).await {
            Err(why) if !is_final(&why) => why,
            done => return done,
        };
        // In another network, such as that of a hotel before its login, a name may be unknown for a while.
        if patience.is_some_and(|patience| why.is_unknown_name() || begun.elapsed() + wait > patience) {
            return Err(why);
        }
        failed(&why, wait);
        sleep(wait).await;
        let is_soon = patience.is_some() || why.is_local();
        wait = (wait * 2).min(if is_soon { AGAIN_SOON } else { AGAIN_LAST });
    }
}

/// True if further attempts would fail with the same error.
fn is_final(error: &NodeError) -> bool {
    let will_not_change = matches!(
        error,
        NodeError::Connection { source: ConnectionError::PathTooNarrow | ConnectionError::OtherVersion, .. }
    );
    will_not_change || matches!(error, NodeError::Trust(_) | NodeError::Refused { .. } | NodeError::Io { .. })
}
