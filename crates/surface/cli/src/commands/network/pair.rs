//! `tacit keys pair`.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tacit_apps::node::{Home, Node, connect_to_any};
use tacit_apps::pair::{Code, Keys, PairError, Pairing, pair};
use tacit_apps::trust::{Peer, Store};
use tacit_apps::{PAIR_PORT, PROXY_PORT, SERVE_PORT};
use tacit_input::InputError;
use tacit_tack::{Config, Connection, Identity, PublicKey};
use tokio::io::AsyncWriteExt as _;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::remote::server;
use super::streams::{LAST_TIMEOUT, streams};
use super::{identity, signals};
use crate::output::{Failure, INTERRUPTED, NetworkFailure, note, print, print_json, printable};

/// Time for a client to open its stream (our choice).
const STREAM_TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum number of concurrent clients, each with one guess (our choice).
const CLIENTS_MAX: usize = 16;

/// The peers added by pairing, for `--json`.
#[derive(Serialize)]
struct Paired {
    known: Vec<Peer>,
}

fn print_peers(peers: Vec<Peer>, json: bool) -> Result<(), Failure> {
    if json {
        return print_json(&Paired { known: peers });
    }
    for peer in &peers {
        let role = if peer.is_client { "may connect to servers here" } else { "is known as a server" };
        print(&format!("{} {role}, key {}\n", printable(&peer.name), peer.key))?;
    }
    Ok(())
}

/// Prints a code and waits for a client that knows it.
pub fn show(store: &Store, listen: SocketAddr, seconds: u32, json: bool) -> Result<ExitCode, Failure> {
    let identity = identity::identity(store)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let node = Node::server(Home::OwnThread, listen, identity.clone(), Config::default(), |_| true)?;
    let code = Code::generate()?;
    let port = node.endpoint().local_addr().port();
    let place = if port == PAIR_PORT { "HOST".to_owned() } else { format!("HOST:{port}") };
    note(&format!("tacit: run on the other machine, with this one as HOST: tacit keys pair {place} {code}"));
    let pairing = Arc::new(Pairing::new(code));
    let found = runtime.block_on(async {
        tokio::select! {
            found = first(&node, store, &identity, &pairing) => found.map(Some),
            stopped = signals::stop() => stopped.map(|()| None),
            () = tokio::time::sleep(Duration::from_secs(seconds.into())) => Err(PairError::TimedOut.into()),
        }
    });
    drop(node);
    match found? {
        Some(peer) => print_peers(vec![peer], json)?,
        None => return Ok(ExitCode::from(INTERRUPTED)),
    }
    Ok(ExitCode::SUCCESS)
}

/// Waits for the first client that knows the code.
async fn first(
    node: &Node,
    store: &Store,
    identity: &Identity,
    pairing: &Arc<Pairing>,
) -> Result<Peer, Failure> {
    let (ends, mut ended) = mpsc::channel(CLIENTS_MAX);
    let mut running = 0;
    loop {
        tokio::select! {
            connection = node.endpoint().accept(), if running < CLIENTS_MAX => {
                let connection = connection.ok_or_else(|| Failure::Machine("the socket failed".into()))?;
                let keys = Keys { server: identity.public_key(), client: connection.peer() };
                let (pairing, store, ends) = (pairing.clone(), store.clone(), ends.clone());
                running += 1;
                tokio::spawn(async move {
                    let taken = take(&pairing, &store, keys, &connection).await;
                    // The receiver below may already have its peer and be gone.
                    let _ = ends.send(taken).await;
                });
            }
            Some(taken) = ended.recv() => {
                running -= 1;
                match taken {
                    Ok(peer) => return Ok(peer),
                    Err(Failure::Network(failure @ NetworkFailure::Pair(_))) => {
                        note(&format!("tacit: {}", failure.one_line()));
                        if pairing.is_spent() {
                            return Err(PairError::Guessed.into());
                        }
                    }
                    Err(failure) => return Err(failure),
                }
            }
        }
    }
}

/// Serves one client that may know the code; if it does, it is trusted from then on.
pub async fn take(
    pairing: &Pairing,
    store: &Store,
    keys: Keys,
    connection: &Connection,
) -> Result<Peer, Failure> {
    let accepted = timeout(STREAM_TIMEOUT, connection.accept_bi()).await;
    let (mut writer, mut reader) = match accepted {
        Ok(Ok(streams)) => streams,
        Ok(Err(error)) => return Err(PairError::from(std::io::Error::other(error)).into()),
        Err(_) => return Err(PairError::TimedOut.into()),
    };
    let peer = |name: &str| Peer { name: name.to_owned(), key: keys.client, is_client: true };
    let trust = |name: &str| -> Result<(), Failure> { Ok(store.trust(peer(name))?) };
    let taken = pairing.take(keys, &mut reader, &mut writer, trust).await;
    // The client must receive the result before the connection is closed.
    if writer.shutdown().await.is_ok() {
        let _ = timeout(LAST_TIMEOUT, connection.closed()).await;
    }
    taken.map(|name| peer(&name))
}

/// Proves to the machine at `host` that this one knows its code.
pub fn answer(
    store: &Store,
    host: &str,
    code: &str,
    name: Option<String>,
    json: bool,
) -> Result<ExitCode, Failure> {
    let code: Code = code.parse()?;
    let place = server(host, PAIR_PORT);
    let place = place.ok_or_else(|| InputError::new("HOST", format!("{host:?} is not HOST or HOST:PORT")))?;
    let name = name.unwrap_or_else(host_name);
    let identity = identity::identity(store)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let key = runtime.block_on(prove(&identity, &place, &code, &name))?;
    // The servers that may run on that machine, under the names used to connect to them.
    let bare = place.rsplit_once(':').map_or(place.as_str(), |(bare, _)| bare);
    let peers =
        [SERVE_PORT, PROXY_PORT].map(|port| Peer { name: format!("{bare}:{port}"), key, is_client: false });
    for peer in &peers {
        // A peer that is also a client remains one.
        let known = store.peers()?.into_iter().any(|known| known.name == peer.name && known.key == peer.key);
        if !known {
            store.trust(peer.clone())?;
        }
    }
    print_peers(peers.into(), json)?;
    Ok(ExitCode::SUCCESS)
}

/// Proves to the machine at `place` that this one, with the name `name`, knows its `code`. Returns the key of that machine.
pub async fn prove(identity: &Identity, place: &str, code: &Code, name: &str) -> Result<PublicKey, Failure> {
    let (node, connection) = connect_to_any(identity, &Config::default(), place).await?;
    let keys = Keys { server: connection.peer(), client: identity.public_key() };
    let (mut reader, mut writer) = streams(&connection).await?;
    let paired = pair(code, name, keys, &mut reader, &mut writer).await;
    connection.close(0, "");
    drop(node);
    paired.map(|()| keys.server).map_err(Failure::from)
}

/// The host name of this machine, reduced to characters allowed in peer names.
pub fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name: String =
        name.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_')).collect();
    if name.is_empty() { "client".to_owned() } else { name }
}
