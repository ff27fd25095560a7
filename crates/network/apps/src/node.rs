//! An endpoint with a thread for itself, or in the runtime of the program.

use std::io;
use std::net::SocketAddr;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tacit_tack::happy_eyeballs::{local_for, race, source_for};
use tacit_tack::{Config, Connection, ConnectionError, Endpoint, Identity, PublicKey, Reached};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::trust::{Store, TrustError};

/// Time limit for a server to answer. Ours.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit for the final packets of closed connections. Ours.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The system refuses a socket or a thread.
    #[error("{what}: {source}")]
    Io {
        /// The operation.
        what: String,
        /// The reason.
        source: io::Error,
    },
    /// A name has no address.
    #[error("{name}: {source}")]
    Resolve {
        /// The name.
        name: String,
        /// The reason.
        source: io::Error,
    },
    /// The system has no route to an address of the server.
    #[error("{name}: no way there from this machine: {source}")]
    NoRoute {
        /// The server.
        name: String,
        /// The reason.
        source: io::Error,
    },
    /// The peer is not trusted.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// The server does not admit this user.
    #[error("refused by {name}: {text}; to be admitted, run there: tacit keys trust NAME {key} --client")]
    Refused {
        /// The server.
        name: String,
        /// Its message.
        text: String,
        /// This user's key.
        key: PublicKey,
    },
    /// The connection failed.
    #[error("{name}: {source}")]
    Connection {
        /// The peer.
        name: String,
        /// The reason.
        source: ConnectionError,
    },
}

impl NodeError {
    /// The error for `source`, from a connection to the server `name` by the user with `key`.
    pub fn of_connection(name: &str, key: PublicKey, source: ConnectionError) -> Self {
        match source {
            ConnectionError::ApplicationClosed { reason, .. } if !reason.is_empty() => {
                Self::Refused { name: name.to_owned(), text: reason, key }
            }
            source => Self::Connection { name: name.to_owned(), source },
        }
    }

    /// True if a resolver has answered that the name does not exist. Without a network it reports a temporary failure.
    pub(crate) fn is_unknown_name(&self) -> bool {
        // The standard library keeps the text of getaddrinfo(3) alone. These are glibc's, then musl's. Another text only
        // means that the name is looked up again.
        const UNKNOWN: [&str; 4] = [
            "Name or service not known",
            "No address associated with hostname",
            "Name does not resolve",
            "Name has no usable address",
        ];
        let Self::Resolve { source, .. } = self else { return false };
        let text = source.to_string();
        source.kind() == io::ErrorKind::InvalidInput || UNKNOWN.iter().any(|unknown| text.ends_with(unknown))
    }

    /// True if this machine had no path on which a packet could leave.
    pub(crate) fn is_local(&self) -> bool {
        matches!(self, Self::NoRoute { .. } | Self::Resolve { .. })
    }
}

/// Where an endpoint runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// On a thread of its own, so that reading, writing and hashing files on other threads never delays packets.
    OwnThread,
    /// In the runtime of the caller, whose tasks never block. A message needs no change of threads then; a round trip through a proxy
    /// would have four.
    ThisRuntime,
}

/// An endpoint, with its thread if it has one, which ends when this is dropped.
pub struct Node {
    endpoint: Endpoint,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Node {
    /// Listens at `address` for clients whose key `authorize` accepts.
    ///
    /// # Errors
    /// If the address is in use, or the system refuses a socket or a thread.
    ///
    /// # Panics
    /// With [`Home::ThisRuntime`], outside a tokio runtime.
    pub fn server(
        home: Home,
        address: SocketAddr,
        identity: Identity,
        config: Config,
        authorize: impl Fn(&PublicKey) -> bool + Send + Sync + 'static,
    ) -> Result<Self, NodeError> {
        Self::start(home, move || Endpoint::server(address, identity, config, authorize))
            .map_err(|source| NodeError::Io { what: format!("cannot listen on {address}"), source })
    }

    fn client(home: Home, remote: SocketAddr, identity: Identity, config: Config) -> Result<Self, NodeError> {
        Self::start(home, move || Endpoint::client(local_for(remote), identity, config))
            .map_err(|source| NodeError::Io { what: format!("no socket to {remote}"), source })
    }

    fn start(home: Home, bind: impl FnOnce() -> io::Result<Endpoint> + Send + 'static) -> io::Result<Self> {
        match home {
            Home::OwnThread => Self::on_own_thread(bind),
            Home::ThisRuntime => Ok(Self { endpoint: bind()?, stop: None, thread: None }),
        }
    }

    fn on_own_thread(bind: impl FnOnce() -> io::Result<Endpoint> + Send + 'static) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let (bound, endpoint) = std::sync::mpsc::sync_channel(1);
        let thread = thread::Builder::new().name("tack".into()).spawn(move || {
            runtime.block_on(async {
                let endpoint = bind();
                let alive = endpoint.as_ref().ok().cloned();
                // `start` below waits for it.
                let _ = bound.send(endpoint);
                let Some(endpoint) = alive else { return };
                let _ = stopped.await;
                wait_closed(&endpoint).await;
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

/// Waits until the peers of `endpoint`, whose connections are closed, know that. A thread of a [`Node`] does so by itself.
pub async fn wait_closed(endpoint: &Endpoint) {
    let _ = timeout(CLOSE_TIMEOUT, endpoint.wait_idle()).await;
}

impl Drop for Node {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            // A panic of that thread was already printed.
            let _ = thread.join();
        }
    }
}

/// What a client needs to connect to one server.
#[derive(Clone)]
pub struct Connector {
    /// Where its endpoints run.
    pub home: Home,
    /// Keys of servers.
    pub store: Store,
    /// The client's key.
    pub identity: Identity,
    /// Settings of endpoints.
    pub config: Config,
    /// The server, as HOST:PORT.
    pub server: String,
}

impl Connector {
    /// Connects at the first of the server's addresses that answers (RFC 8305). The server must have the known key, or one
    /// that `ask` accepts. A server with the client's own key is accepted without asking, because the holder of the private
    /// key is the same user.
    ///
    /// # Errors
    /// If no address answers, or the server's key is not trusted.
    pub async fn connect(
        &self,
        ask: impl FnOnce(PublicKey) -> bool,
    ) -> Result<(Node, Connection), NodeError> {
        let Self { home, store, identity, config, server } = self;
        // A known key is required in the handshake, so an attacker that answers faster cannot impersonate the server.
        let (node, address, reached) = reach(*home, identity, config, server, store.key_of(server)?).await?;
        let key = match reached {
            Reached::Connection(connection) => return Ok((node, connection)),
            Reached::Key(key) => key,
        };
        if key != identity.public_key() {
            store.judge(server, key, || ask(key))?;
        }
        let connection = connect_as(&node, identity, server, address, key).await?;
        Ok((node, connection))
    }
}

/// Connects to any machine that answers as `name`; its key is not checked.
///
/// # Errors
/// If none of its addresses answers.
pub async fn connect_to_any(
    identity: &Identity,
    config: &Config,
    name: &str,
) -> Result<(Node, Connection), NodeError> {
    let (node, address, reached) = reach(Home::OwnThread, identity, config, name, None).await?;
    let connection = match reached {
        Reached::Connection(connection) => connection,
        Reached::Key(key) => connect_as(&node, identity, name, address, key).await?,
    };
    Ok((node, connection))
}

/// Tries the addresses of `name`. If its key is `known` or this end's own, returns a connection to it; otherwise returns the key of
/// the first server that answers.
async fn reach(
    home: Home,
    identity: &Identity,
    config: &Config,
    name: &str,
    known: Option<PublicKey>,
) -> Result<(Node, SocketAddr, Reached), NodeError> {
    let addresses = tokio::net::lookup_host(name).await;
    let addresses = addresses.map_err(|source| NodeError::Resolve { name: name.to_owned(), source })?;
    let failed = |source| NodeError::of_connection(name, identity.public_key(), source);
    let reached = race(addresses, async |address| {
        source_for(address).map_err(|source| NodeError::NoRoute { name: name.to_owned(), source })?;
        let node = Node::client(home, address, identity.clone(), config.clone())?;
        let reached = match known {
            Some(key) => timeout(CONNECT_TIMEOUT, node.endpoint.connect(address, key)).await.map(|there| {
                let found = |error: &ConnectionError| match error {
                    ConnectionError::WrongPeer { found, .. } => Some(*found),
                    _ => None,
                };
                there.map(Reached::Connection).or_else(|error| found(&error).map(Reached::Key).ok_or(error))
            }),
            None => timeout(CONNECT_TIMEOUT, node.endpoint.reach(address)).await,
        };
        let reached = reached.unwrap_or(Err(ConnectionError::TimedOut)).map_err(failed)?;
        Ok((node, address, reached))
    });
    reached.await.map_err(|failures| {
        // An answer of a server or the network explains more than silence, and silence more than an address without a route.
        let rank = |failure: &NodeError| match failure {
            NodeError::NoRoute { .. } => 2,
            NodeError::Connection { source: ConnectionError::TimedOut, .. } => 1,
            _ => 0,
        };
        failures.into_iter().min_by_key(rank).unwrap_or_else(|| failed(ConnectionError::TimedOut))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_does_not_exist_is_not_one_that_cannot_be_looked_up() {
        let resolve = |text: &str| {
            let source = io::Error::other(format!("failed to lookup address information: {text}"));
            NodeError::Resolve { name: "box".into(), source }
        };
        assert!(resolve("Name or service not known").is_unknown_name());
        // Without a network: glibc, then musl.
        for later in ["Temporary failure in name resolution", "Try again"] {
            assert!(!resolve(later).is_unknown_name(), "{later}");
        }
    }

    /// A name that really is looked up, with the library that this is linked with. RFC 6761 section 6.4: it never exists.
    #[tokio::test]
    async fn the_resolver_is_understood() {
        let source = tokio::net::lookup_host("tacit.invalid:4433").await.map(|_| ()).unwrap_err();
        let why = NodeError::Resolve { name: "tacit.invalid".into(), source };
        // The machine of this test may have no network.
        assert_ne!(why.is_unknown_name(), why.to_string().contains("emporary failure"), "{why}");
    }
}
