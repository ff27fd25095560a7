//! A connection to one server that is made again when it breaks.

use std::future::Future;
use std::time::Duration;

use tacit_tack::{Config, Connection, Identity};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::node::{self, Node, NodeError};
use crate::trust::Store;

/// The first wait before another attempt, which doubles each time, and the last. Ours.
const AGAIN_FIRST: Duration = Duration::from_millis(250);
const AGAIN_LAST: Duration = Duration::from_secs(15);

/// Where its users find the connection.
#[derive(Clone)]
pub struct Link(watch::Receiver<Option<Connection>>);

impl Link {
    /// The connection; where there is none, the next, if it comes in time.
    pub async fn connection(&mut self, patience: Duration) -> Option<Connection> {
        let there = timeout(patience, self.0.wait_for(Option::is_some)).await;
        there.ok()?.ok()?.clone()
    }
}

/// A change of the connection's state.
#[derive(Debug)]
pub enum LinkEvent<'a> {
    /// It broke, for this reason.
    Broken(&'a NodeError),
    /// An attempt failed; the next one comes after so long.
    RetryFailed(&'a NodeError, Duration),
    /// It is there again.
    Restored,
}

/// Keeps a connection that is there, and returns its link with the future that keeps it: that ends with the error which other
/// attempts would meet too, a server that refuses or has another key. `report` gets the events.
pub fn keep(
    first: (Node, Connection),
    store: Store,
    identity: Identity,
    config: Config,
    name: String,
    report: impl Fn(LinkEvent<'_>),
) -> (Link, impl Future<Output = NodeError>) {
    let (sender, receiver) = watch::channel(Some(first.1.clone()));
    let keeping = async move {
        let (mut node, mut connection) = first;
        loop {
            let why = connection.closed().await;
            sender.send_replace(None);
            let why = NodeError::of_connection(&name, identity.public_key(), why);
            if is_final(&why) {
                return why;
            }
            report(LinkEvent::Broken(&why));
            // Its thread is waited for, which takes a while.
            drop(tokio::task::spawn_blocking(move || drop(node)));
            (node, connection) = match again(&store, &identity, &config, &name, &report).await {
                Ok(made) => made,
                Err(error) => return error,
            };
            report(LinkEvent::Restored);
            sender.send_replace(Some(connection.clone()));
        }
    };
    (Link(receiver), keeping)
}

async fn again(
    store: &Store,
    identity: &Identity,
    config: &Config,
    name: &str,
    report: &impl Fn(LinkEvent<'_>),
) -> Result<(Node, Connection), NodeError> {
    let mut wait = AGAIN_FIRST;
    loop {
        // No user is asked: a server that the user did not trust at first is not trusted now.
        match node::connect(store, identity, config, name, |_| false).await {
            Err(error) if !is_final(&error) => {
                report(LinkEvent::RetryFailed(&error, wait));
                sleep(wait).await;
                wait = (wait * 2).min(AGAIN_LAST);
            }
            done => return done,
        }
    }
}

/// True for an error that another attempt would meet too.
fn is_final(error: &NodeError) -> bool {
    matches!(error, NodeError::Trust(_) | NodeError::Refused { .. } | NodeError::Io { .. })
}
