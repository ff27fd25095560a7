//! `tacit proxy`.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tacit_apps::PROXY_PORT;
use tacit_apps::node::{self, Node, NodeError};
use tacit_apps::proxy::allow::AllowList;
use tacit_apps::proxy::relay::{self, Limits};
use tacit_apps::proxy::target::Target;
use tacit_apps::proxy::{Answer, ProxyError, ask, socks};
use tacit_tack::{Connection, RecvStream, SendStream};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use super::cp::{self, LAST_TIMEOUT};
use super::{keys, seen, serve};
use crate::args::ProxyArgs;
use crate::output::{Failure, note, printable};

/// For a program to say what it wants. Ours.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Where programs find SOCKS5 unless told (RFC 1928 section 3).
const SOCKS_PORT: u16 = 1080;

/// What connections to a listener are for.
#[derive(Clone)]
enum Purpose {
    Socks,
    Forward(Target),
}

pub fn run(args: &ProxyArgs) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = match &args.server {
        Some(server) => runtime.block_on(client(args, server)),
        None => runtime.block_on(server(args)),
    };
    runtime.shutdown_background();
    result.map(|()| ExitCode::SUCCESS)
}

async fn server(args: &ProxyArgs) -> Result<(), Failure> {
    let store = keys::store()?;
    let identity = keys::identity(&store)?;
    let own = identity.public();
    let listen = args.listen.unwrap_or_else(|| ([127, 0, 0, 1], PROXY_PORT).into());
    let node = Node::server(listen, identity, seen::config(&args.seen)?, serve::clients(&store, own, false))?;
    let address = node.endpoint().local_addr();
    note(&format!(
        "tacit: carrying connections at {address} to {} rules' targets, key {own}",
        args.allow.len()
    ));
    let allowed = Arc::new(AllowList(args.allow.clone()));
    let permits = Arc::new(Semaphore::new(args.connections as usize));
    let accept = async {
        while let Some(connection) = node.endpoint().accept().await {
            tokio::spawn(streams(connection, allowed.clone(), permits.clone()));
        }
    };
    tokio::select! {
        () = accept => Err(Failure::Machine("the socket failed".into())),
        stopped = serve::stop() => stopped,
    }
}

/// Serves the streams of a connection until it ends.
async fn streams(connection: Connection, allowed: Arc<AllowList>, permits: Arc<Semaphore>) {
    while let Ok((mut writer, mut reader)) = connection.accept().await {
        let (allowed, permits) = (allowed.clone(), permits.clone());
        tokio::spawn(async move {
            let Ok(_permit) = permits.acquire().await else { return };
            let relayed = relay::serve(&allowed, Limits::default(), &mut reader, &mut writer).await;
            // A stream that is dropped before its end is reset, as is right where an end broke: not where the answer was no.
            if let Err(ProxyError::Answer(_)) = relayed
                && writer.shutdown().await.is_ok()
            {
                let _ = tokio::time::timeout(LAST_TIMEOUT, writer.finished()).await;
            }
        });
    }
}

async fn client(args: &ProxyArgs, server: &str) -> Result<(), Failure> {
    let wrong = |what: String| Failure::Machine(what);
    let server =
        cp::server(server, PROXY_PORT).ok_or_else(|| wrong(format!("{server}: a server is HOST[:PORT]")))?;
    let mut listeners = Vec::new();
    if args.socks5 {
        let address = args.listen.unwrap_or_else(|| ([127, 0, 0, 1], SOCKS_PORT).into());
        listeners.push((listen(address, args.open).await?, Purpose::Socks));
    }
    for forward in &args.forward {
        let (local, target) =
            forward.split_once('=').ok_or_else(|| wrong(format!("{forward}: not LOCAL=TARGET")))?;
        let local = local.parse().map_err(|_| wrong(format!("{local}: an address here is ADDR:PORT")))?;
        let target = target.parse().map_err(|why| wrong(format!("{target}: {why}")))?;
        listeners.push((listen(local, args.open).await?, Purpose::Forward(target)));
    }
    let store = keys::store()?;
    let identity = keys::identity(&store)?;
    let (node, connection) =
        node::connect(&store, &identity, &seen::config(&args.seen)?, &server, |key| cp::ask(&server, key))
            .await?;
    let permits = Arc::new(Semaphore::new(args.connections as usize));
    for (listener, purpose) in listeners {
        let what = match &purpose {
            Purpose::Socks => "socks5".to_owned(),
            Purpose::Forward(target) => target.to_string(),
        };
        note(&format!("tacit: {what} at {} through {server}", listener.local_addr()?));
        tokio::spawn(programs(listener, purpose, connection.clone(), permits.clone()));
    }
    let ended = tokio::select! {
        error = connection.closed() => Err(NodeError::of_connection(&server, identity.public(), error).into()),
        stopped = serve::stop() => stopped,
    };
    connection.close(0, "");
    drop(connection);
    drop(node);
    ended
}

async fn listen(address: SocketAddr, open: bool) -> Result<TcpListener, Failure> {
    if !open && !address.ip().is_loopback() {
        return Err(Failure::Machine(format!("{address} lets other machines in: --open says that it may")));
    }
    let listener = TcpListener::bind(address).await;
    listener.map_err(|error| Failure::Machine(format!("nothing can listen at {address}: {error}")))
}

/// Carries connections of programs.
async fn programs(listener: TcpListener, purpose: Purpose, connection: Connection, permits: Arc<Semaphore>) {
    loop {
        let Ok(permit) = permits.clone().acquire_owned().await else { return };
        let Ok((tcp, _)) = listener.accept().await else {
            // No file descriptors left, mostly: some come back when connections end.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let (purpose, connection) = (purpose.clone(), connection.clone());
        tokio::spawn(async move {
            if let Err(error) = carry(tcp, purpose, &connection).await {
                note(&printable(&format!("tacit: {error}")));
            }
            drop(permit);
        });
    }
}

/// Carries one connection. Its stream is reset where this fails, for it is dropped before its end.
async fn carry(mut tcp: TcpStream, purpose: Purpose, connection: &Connection) -> Result<u64, ProxyError> {
    let is_socks = matches!(purpose, Purpose::Socks);
    let target = match purpose {
        Purpose::Forward(target) => target,
        Purpose::Socks => tokio::time::timeout(REQUEST_TIMEOUT, socks::request(&mut tcp))
            .await
            .map_err(|_| ProxyError::Idle)??,
    };
    let (asked, streams) = open(&target, connection).await;
    if is_socks {
        socks::reply(&mut tcp, asked).await?;
    }
    let Some((mut writer, mut reader)) = streams.filter(|_| asked == Answer::Connected) else {
        return Err(ProxyError::Protocol(format!("{target}: {asked}")));
    };
    relay::relay(tcp, &mut reader, &mut writer, Limits::default().idle).await
}

/// Asks the server's end for `target`, and gives its answer with the stream.
async fn open(target: &Target, connection: &Connection) -> (Answer, Option<(SendStream, RecvStream)>) {
    let Ok((mut writer, mut reader)) = connection.open().await else { return (Answer::Failed, None) };
    match ask(target, &mut reader, &mut writer).await {
        Ok(()) => (Answer::Connected, Some((writer, reader))),
        Err(ProxyError::Answer(answer)) => (answer, None),
        Err(_) => (Answer::Failed, None),
    }
}
