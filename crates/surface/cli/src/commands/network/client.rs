//! The client role of this user.

use std::io::{BufRead as _, IsTerminal as _};

use tacit_apps::copy::CopyError;
use tacit_apps::link::{self, Link, LinkEvent};
use tacit_apps::node::{Connector, Home, Node, NodeError};
use tacit_apps::pair::{Code, PairError};
use tacit_apps::trust::{Peer, Store};
use tacit_tack::{Config, Connection, ConnectionError, Identity, PublicKey, StreamError};
use tokio::runtime::Runtime;

use super::pair::{host_name, prove};
use super::{identity, seen};
use crate::args::LogArgs;
use crate::output::{Failure, NetworkFailure, note, printable};

/// Asks the user whether to trust `key`. Returns false without a terminal.
fn confirm_key(server: &str, key: PublicKey) -> bool {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return false;
    }
    note(&format!(
        "{} is unknown. Its key is\n  {key}\nCompare it with `tacit keys show` on the server. Is it the same? (yes/no)",
        printable(server)
    ));
    let mut answer = String::new();
    // No answer means no.
    let _ = std::io::stdin().lock().read_line(&mut answer);
    answer.trim().eq_ignore_ascii_case("yes")
}

/// Opens the first connection, and says once if that takes more than one attempt, unless `is_quiet`: see [`link::open`].
pub async fn open(connector: &Connector, is_quiet: bool) -> Result<(Node, Connection), NodeError> {
    let server = &connector.server;
    let mut has_failed = false;
    let failed = |why: &NodeError, _| {
        if !std::mem::replace(&mut has_failed, true) && !is_quiet {
            let seconds = link::OPEN_TIMEOUT.as_secs();
            note(&printable(&format!("tacit: {why}; trying for up to {seconds} s")));
        }
    };
    let confirm = |key| confirm_key(server, key);
    let opened = link::open(connector, confirm, failed).await?;
    if has_failed && !is_quiet {
        note(&printable(&format!("tacit: connected to {server}")));
    }
    Ok(opened)
}

/// A client that uses this user's key.
pub struct Client {
    store: Store,
    identity: Identity,
    config: Config,
    pub runtime: Runtime,
}

/// A connection, which is closed when this value is dropped.
pub struct Reached {
    pub connection: Connection,
    // Declared last, because it must outlive the connection.
    _node: Node,
}

impl Drop for Reached {
    fn drop(&mut self) {
        self.connection.close(0, "");
    }
}

impl Client {
    /// Creates a client with this user's key.
    pub fn new(seen: &LogArgs) -> Result<Self, Failure> {
        let store = identity::store()?;
        let identity = identity::identity(&store)?;
        let config = seen::config(seen)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { store, identity, config, runtime })
    }

    /// Accepts the invitation of `server`: each end knows the other's key from then on. Nothing is done where the server is
    /// known already, as when a command with a code is repeated: a code is good for one machine.
    pub fn accept_invitation(&self, server: &str, code: &Code) -> Result<(), Failure> {
        if self.store.key_of(server)?.is_some() {
            return Ok(());
        }
        let proved = self.runtime.block_on(prove(&self.identity, server, code, &host_name()));
        let key = proved.map_err(|failure| match failure {
            // A server whose invitation has ended closes the connection, before or after the first bytes.
            Failure::Network(
                NetworkFailure::Pair(PairError::Stream(error)) | NetworkFailure::Copy(error),
            ) => self.explain_refusal(server, error),
            failure => failure,
        })?;
        Ok(self.store.trust(Peer { name: server.to_owned(), key, is_client: false })?)
    }

    /// Connects to `server`.
    pub fn reach(&self, server: &str) -> Result<Reached, Failure> {
        let (node, connection) = self.open(server, false)?;
        Ok(Reached { connection, _node: node })
    }

    /// Connects to `server`, and keeps the connection: see [`link::keep`].
    pub fn keep<'a>(
        &self,
        server: &str,
        is_quiet: bool,
        report: impl Fn(LinkEvent<'_>) + 'a,
    ) -> Result<(Link, impl Future<Output = NodeError> + 'a), Failure> {
        let first = self.open(server, is_quiet)?;
        Ok(link::keep(self.connector(server), first, report))
    }

    fn open(&self, server: &str, is_quiet: bool) -> Result<(Node, Connection), NodeError> {
        self.runtime.block_on(open(&self.connector(server), is_quiet))
    }

    fn connector(&self, server: &str) -> Connector {
        let (store, identity, config) = (self.store.clone(), self.identity.clone(), self.config.clone());
        Connector { home: Home::OwnThread, store, identity, config, server: server.to_owned() }
    }

    /// Distinguishes a server that refuses this user's key from one that has gone. The client learns of the refusal
    /// only after it is connected.
    pub fn explain_refusal(&self, server: &str, error: CopyError) -> Failure {
        if let CopyError::Io(io) = &error
            && let Some(StreamError::Connection(closed @ ConnectionError::ApplicationClosed { reason, .. })) =
                io.get_ref().and_then(|source| source.downcast_ref())
            && !reason.is_empty()
        {
            return NodeError::of_connection(server, self.identity.public_key(), closed.clone()).into();
        }
        error.into()
    }
}
