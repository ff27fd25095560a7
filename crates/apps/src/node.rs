//! An endpoint on a thread of its own, so that files that are read, written and hashed elsewhere never keep a packet waiting.

use std::io;
use std::net::SocketAddr;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tacit_tack::happy_eyeballs::{local_for, race};
use tacit_tack::{Config, Connection, ConnectionError, Endpoint, Identity, PublicKey};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::trust::{Store, TrustError};

/// For a server to answer at one of its addresses. Ours.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// For the ends of connections to reach their peers. Ours.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The system gives no socket or thread.
    #[error("{what}: {source}")]
    Io {
        /// The operation.
        what: String,
        /// Why.
        source: io::Error,
    },
    /// A name has no address.
    #[error("{name}: {source}")]
    Resolve {
        /// The name.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// The peer is not trusted.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// The server does not take this user.
    #[error("refused by {name}: {text}; to be admitted, run there: tacit keys trust NAME {key} --client")]
    Refused {
        /// The server.
        name: String,
        /// Its message.
        text: String,
        /// This user's key.
        key: PublicKey,
    },
    /// There is no connection.
    #[error("{name}: {source}")]
    Connection {
        /// The peer.
        name: String,
        /// Why.
        source: ConnectionError,
    },
}

impl NodeError {
    /// Why the server `name` is not connected to, or no more, by the user with `key`.
    pub fn of_connection(name: &str, key: PublicKey, source: ConnectionError) -> Self {
        match source {
            ConnectionError::ApplicationClosed { reason, .. } if !reason.is_empty() => {
                Self::Refused { name: name.to_owned(), text: reason, key }
            }
            source => Self::Connection { name: name.to_owned(), source },
        }
    }
}

/// The server found at an address.
enum Found {
    /// The server that is known.
    Connection(Connection),
    /// One with this key, which is to be judged.
    Key(PublicKey),
}

/// An endpoint and its thread, which ends with it.
pub struct Node {
    endpoint: Endpoint,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Node {
    /// Listens at `address` for clients whose key `authorize` accepts.
    ///
    /// # Errors
    /// Where the address is taken, or the system gives no socket or thread.
    pub fn server(
        address: SocketAddr,
        identity: Identity,
        config: Config,
        authorize: impl Fn(&PublicKey) -> bool + Send + Sync + 'static,
    ) -> Result<Self, NodeError> {
        Self::start(move || Endpoint::server(address, identity, config, authorize))
            .map_err(|source| NodeError::Io { what: format!("cannot listen on {address}"), source })
    }

    fn client(remote: SocketAddr, identity: Identity, config: Config) -> Result<Self, NodeError> {
        Self::start(move || Endpoint::client(local_for(remote), identity, config))
            .map_err(|source| NodeError::Io { what: format!("no socket to {remote}"), source })
    }

    fn start(bind: impl FnOnce() -> io::Result<Endpoint> + Send + 'static) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let (bound, endpoint) = std::sync::mpsc::sync_channel(1);
        let thread = thread::Builder::new().name("tack".into()).spawn(move || {
            runtime.block_on(async {
                let endpoint = bind();
                let alive = endpoint.as_ref().ok().cloned();
                // `start`, below, waits for it.
                let _ = bound.send(endpoint);
                let Some(endpoint) = alive else { return };
                let _ = stopped.await;
                let _ = timeout(CLOSE_TIMEOUT, endpoint.wait_idle()).await;
            });
        })?;
        let endpoint = endpoint.recv().map_err(|_| io::Error::other("the thread ended"))??;
        Ok(Self { endpoint, stop: Some(stop), thread: Some(thread) })
    }

    /// The endpoint.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed.
            let _ = thread.join();
        }
    }
}

/// Connects to the server `name` (HOST:PORT), at the first of its addresses that answers (RFC 8305). It must have the key that
/// is known, or one that `ask` takes. A server with the key of `identity` itself needs neither: the holder of the private key is
/// the same user.
///
/// # Errors
/// Where no address of it answers, or its key is not trusted.
pub async fn connect(
    store: &Store,
    identity: &Identity,
    config: &Config,
    name: &str,
    ask: impl FnOnce(PublicKey) -> bool,
) -> Result<(Node, Connection), NodeError> {
    // An attacker that is faster than a known server cannot take its place.
    let (node, address, reached) = reach(identity, config, name, store.key_of(name)?).await?;
    let key = match reached {
        Found::Connection(connection) => return Ok((node, connection)),
        Found::Key(key) => key,
    };
    if key != identity.public_key() {
        store.judge(name, key, || ask(key))?;
    }
    let connection = connect_as(&node, identity, name, address, key).await?;
    Ok((node, connection))
}

/// Connects to any machine that answers as `name`: its key is not judged.
///
/// # Errors
/// Where no address of it answers.
pub async fn connect_to_any(
    identity: &Identity,
    config: &Config,
    name: &str,
) -> Result<(Node, Connection), NodeError> {
    let (node, address, reached) = reach(identity, config, name, None).await?;
    let connection = match reached {
        Found::Connection(connection) => connection,
        Found::Key(key) => connect_as(&node, identity, name, address, key).await?,
    };
    Ok((node, connection))
}

/// The first address of `name` that answers: connected to where its key is `known`.
async fn reach(
    identity: &Identity,
    config: &Config,
    name: &str,
    known: Option<PublicKey>,
) -> Result<(Node, SocketAddr, Found), NodeError> {
    let addresses = tokio::net::lookup_host(name).await;
    let addresses = addresses.map_err(|source| NodeError::Resolve { name: name.to_owned(), source })?;
    let failed = |source| NodeError::of_connection(name, identity.public_key(), source);
    let reached = race(addresses, async |address| {
        let node = Node::client(address, identity.clone(), config.clone())?;
        let reached = match known {
            Some(key) => timeout(CONNECT_TIMEOUT, node.endpoint.connect(address, key)).await.map(|there| {
                let found = |error: &ConnectionError| match error {
                    ConnectionError::WrongPeer { found, .. } => Some(*found),
                    _ => None,
                };
                there.map(Found::Connection).or_else(|error| found(&error).map(Found::Key).ok_or(error))
            }),
            None => timeout(CONNECT_TIMEOUT, node.endpoint.server_key(address))
                .await
                .map(|key| key.map(Found::Key)),
        };
        let reached = reached.unwrap_or(Err(ConnectionError::TimedOut)).map_err(failed)?;
        Ok((node, address, reached))
    });
    reached.await.map_err(|failures| {
        let is_silence = |failure: &NodeError| {
            matches!(failure, NodeError::Connection { source: ConnectionError::TimedOut, .. })
        };
        let told = failures.into_iter().find(|failure| !is_silence(failure));
        told.unwrap_or_else(|| failed(ConnectionError::TimedOut))
    })
}

async fn connect_as(
    node: &Node,
    identity: &Identity,
    name: &str,
    address: SocketAddr,
    key: PublicKey,
) -> Result<Connection, NodeError> {
    let connection = timeout(CONNECT_TIMEOUT, node.endpoint.connect(address, key)).await;
    let connection = connection.unwrap_or(Err(ConnectionError::TimedOut));
    connection.map_err(|source| NodeError::of_connection(name, identity.public_key(), source))
}
