//! `tacit proxy`.

use std::future::Future;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use tacit_apps::PROXY_PORT;
use tacit_apps::link::{self, Link, LinkEvent};
use tacit_apps::metrics::{Page, ProxyCounts};
use tacit_apps::node::{Connector, Home, Node, wait_closed};
use tacit_apps::proxy::allow::AllowList;
use tacit_apps::proxy::relay::{self, Limits, PLACE_TIMEOUT, RelayReport};
use tacit_apps::proxy::target::Target;
use tacit_apps::proxy::{ProxyError, ReplyCode, request_target, socks};
use tacit_input::InputError;
use tacit_tack::{Connection, RecvStream, SendStream};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::client;
use super::clients::{clients, name_of};
use super::streams::LAST_TIMEOUT;
use super::{identity, remote, seen, signals};
use crate::args::ProxyArgs;
use crate::output::{Failure, note, print, printable};

/// Time for a program to send its request (our choice).
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Silence after which the other end is considered gone. Our choice; short, because programs wait for it.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);
/// Time to wait for a reconnection before a program is refused (our choice).
const LINK_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of program connections that wait to be carried or have not sent their request, in addition to those
/// being carried. Further ones are reset immediately. Our choice.
const WAITING_MAX: usize = 1024;
/// Maximum number of bytes buffered for programs that do not read: the window reserved for all streams of a connection
/// together, and the range for one stream. The same amount may be borrowed in addition. Our choice.
const UNREAD_MAX: u64 = 64 << 20;
const UNREAD_OF_STREAM: std::ops::RangeInclusive<u64> = 16 << 10..=256 << 10;
/// Time for relayed connections to be reset when the TACK connection ends (our choice).
const BREAK_TIMEOUT: Duration = Duration::from_millis(500);
/// Time between two notes that programs wait (our choice).
const TELL_EVERY: Duration = Duration::from_secs(60);
/// Default port of SOCKS5 (RFC 1928 section 3).
const SOCKS_PORT: u16 = 1080;

/// Purpose of a listener.
#[derive(Clone)]
enum Purpose {
    Socks,
    Forward(Target),
}

pub fn run(args: &ProxyArgs) -> Result<ExitCode, Failure> {
    seen::check(&args.metrics)?;
    let plan = args.server.as_ref().map(|server| plan(args, server)).transpose()?;
    if args.file.check {
        seen::config(&args.seen)?;
        identity::check(&identity::store()?)?;
        return Ok(ExitCode::SUCCESS);
    }
    seen::begin(&args.seen);
    tacit_apps::open_many_files();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = match plan {
        Some(plan) => runtime.block_on(client(args, plan)),
        None => runtime.block_on(server(args)),
    };
    // Connections that are still being carried are reset when their sockets are closed.
    runtime.shutdown_background();
    result.map(|()| ExitCode::SUCCESS)
}

/// Configuration of the transport, with one stream for each connection of a program.
fn config(args: &ProxyArgs) -> Result<tacit_tack::Config, Failure> {
    let mut config = seen::config_within(&args.seen, &args.memory)?;
    let of_stream = (UNREAD_MAX / u64::from(args.connections.max(1)))
        .clamp(*UNREAD_OF_STREAM.start(), *UNREAD_OF_STREAM.end());
    config
        .max_idle_timeout(IDLE_TIMEOUT)
        .keep_alive_interval(Some(IDLE_TIMEOUT / 4))
        .max_concurrent_bidi_streams(u16::try_from(args.connections).unwrap_or(u16::MAX))
        .min_stream_window(of_stream);
    Ok(config)
}

/// State shared by all connections.
struct Proxy {
    counts: ProxyCounts,
    /// Permits for connections being carried, and for connections that wait.
    places: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    /// The proxy is stopping and accepts no more connections.
    is_closing: AtomicBool,
    /// When it was last reported that programs wait.
    reported_at: Mutex<Option<Instant>>,
    /// Becomes true when connections to the other end must be closed.
    closed: watch::Sender<bool>,
    json: bool,
}

/// The result of a connection for `--json`.
#[derive(Serialize)]
struct ConnectionLogLine<'a> {
    client: Option<&'a str>,
    target: Option<String>,
    bytes: u64,
    duration_s: f64,
    error: Option<String>,
}

/// What helps against `error`, if this program has too many open files.
fn descriptors_hint(error: &std::io::Error) -> String {
    match tacit_apps::descriptors_max().filter(|_| tacit_apps::is_lack_of_descriptors(error)) {
        Some(max) => format!("; the limit is {max} (ulimit -Hn)"),
        None => String::new(),
    }
}

impl Proxy {
    fn new(args: &ProxyArgs) -> Arc<Self> {
        Arc::new(Self {
            counts: ProxyCounts::default(),
            places: Arc::new(Semaphore::new(args.connections as usize)),
            waiting: Arc::new(Semaphore::new(WAITING_MAX)),
            is_closing: AtomicBool::new(false),
            reported_at: Mutex::new(None),
            closed: watch::Sender::new(false),
            json: args.json,
        })
    }

    /// Carries a connection and reports the result.
    async fn carrying(&self, client: Option<&str>, work: impl Future<Output = RelayReport>) -> RelayReport {
        #[expect(clippy::disallowed_methods, reason = "connections are carried in real time")]
        let begun = Instant::now();
        let running = self.counts.running.begin();
        let carried = work.await;
        drop(running);
        self.counts.on_end(carried.error.as_ref());
        let (duration_s, bytes) = (begun.elapsed().as_secs_f64(), carried.bytes);
        let target = carried.target.as_ref().map(ToString::to_string);
        let error = carried.error.as_ref().map(ToString::to_string);
        tracing::info!(target: "tacit::proxy", ?client, to = ?target, bytes, duration_s, ?error, "carried");
        if self.json {
            let line = ConnectionLogLine { client, target, bytes, duration_s, error };
            if let Ok(line) = serde_json::to_string(&line) {
                // The reader of standard output may have exited; the proxy keeps running.
                let _ = print(&format!("{line}\n"));
            }
        } else if let (None, Some(error)) = (client, error) {
            let target = target.map_or(String::new(), |target| format!("{target}: "));
            note(&printable(&format!("tacit: {target}{error}")));
        }
        carried
    }

    /// Says, at most once in [`TELL_EVERY`], why connections of programs wait.
    fn on_accept_error(&self, error: &std::io::Error) {
        #[expect(clippy::disallowed_methods, reason = "connections are carried in real time")]
        let now = Instant::now();
        let mut reported_at = self.reported_at.lock().unwrap_or_else(PoisonError::into_inner);
        if reported_at.is_none_or(|last| now.duration_since(last) >= TELL_EVERY) {
            *reported_at = Some(now);
            note(&format!("tacit: connections of programs wait: {error}{}", descriptors_hint(error)));
        }
    }

    /// Stops accepting connections and waits for those being carried.
    async fn end(&self, grace: u32) -> Result<(), Failure> {
        self.is_closing.store(true, Relaxed);
        tokio::select! {
            () = self.counts.running.idle() => Ok(()),
            () = tokio::time::sleep(Duration::from_secs(grace.into())) => Ok(()),
            stopped = signals::stop() => stopped,
        }
    }
}

async fn server(args: &ProxyArgs) -> Result<(), Failure> {
    let store = identity::store()?;
    let config = config(args)?;
    let metrics = seen::listen(&args.metrics).await?;
    let identity = identity::identity(&store)?;
    let local_key = identity.public_key();
    let listen = args.listen.unwrap_or_else(|| ([127, 0, 0, 1], PROXY_PORT).into());
    let node =
        Node::server(Home::ThisRuntime, listen, identity, config, clients(&store, local_key, || false))?;
    let address = node.endpoint().local_addr();
    note(&format!(
        "tacit: carrying connections at {address} to the targets of {} rules, key {local_key}",
        args.allow.len()
    ));
    let allowed = Arc::new(AllowList(args.allow.clone()));
    let proxy = Proxy::new(args);
    let (endpoint, counted) = (node.endpoint().clone(), proxy.clone());
    seen::serve(metrics, move || {
        let mut page = Page::default();
        page.endpoint(&endpoint.metrics());
        counted.counts.write(&mut page);
        page.into_text()
    });
    let accept = async {
        while let Some(connection) = node.endpoint().accept().await {
            let name = name_of(&store, local_key, connection.peer());
            tokio::spawn(streams(connection, name, allowed.clone(), proxy.clone()));
        }
    };
    tokio::select! {
        () = accept => return Err(Failure::Machine("the socket failed".into())),
        stopped = signals::stop() => stopped?,
    }
    proxy.end(args.grace).await?;
    // Notifies clients; connections that are still being carried are reset.
    proxy.closed.send_replace(true);
    let _ = tokio::time::timeout(BREAK_TIMEOUT, proxy.counts.running.idle()).await;
    wait_closed(node.endpoint()).await;
    Ok(())
}

/// Serves the streams of a connection until it ends.
async fn streams(connection: Connection, name: String, allowed: Arc<AllowList>, proxy: Arc<Proxy>) {
    let mut closed = proxy.closed.subscribe();
    loop {
        let accepted = tokio::select! {
            accepted = connection.accept_bi() => accepted,
            _ = closed.wait_for(|closed| *closed) => return connection.close(0, ""),
        };
        let Ok((mut writer, mut reader)) = accepted else { return };
        if proxy.is_closing.load(Relaxed) {
            // The client's end receives a reset.
            continue;
        }
        let (allowed, proxy, name) = (allowed.clone(), proxy.clone(), name.clone());
        tokio::spawn(async move {
            let (limits, places) = (Limits::default(), &proxy.places);
            let work = relay::serve(&allowed, limits, places, &mut reader, &mut writer, &proxy.counts);
            let carried = proxy.carrying(Some(&name), work).await;
            // A stream that is dropped before its end is reset. This is correct if one end failed, but not if the
            // request was refused.
            if let Some(ProxyError::ReplyCode(_)) = carried.error
                && writer.shutdown().await.is_ok()
            {
                let _ = tokio::time::timeout(LAST_TIMEOUT, writer.finished()).await;
            }
        });
    }
}

/// Server and listeners of the client's end.
struct Plan {
    /// The server as HOST:PORT.
    server: String,
    listeners: Vec<(SocketAddr, Purpose)>,
}

fn plan(args: &ProxyArgs, server: &str) -> Result<Plan, InputError> {
    let server = remote::server(server, PROXY_PORT).ok_or_else(|| {
        InputError::new("SERVER", format!("{server:?} is not an address")).allowed("HOST[:PORT]")
    })?;
    let mut listeners = Vec::new();
    if args.socks5 {
        let address = args.listen.unwrap_or_else(|| ([127, 0, 0, 1], SOCKS_PORT).into());
        listeners.push((local(address, "--listen", args.open)?, Purpose::Socks));
    }
    for forward in &args.forward {
        let wrong = |what: String| InputError::new("--forward", format!("{forward}: {what}"));
        let (here, target) = forward
            .split_once('=')
            .ok_or_else(|| wrong("it has no =".into()).allowed("ADDR:PORT=HOST:PORT"))?;
        let here =
            here.parse().map_err(|_| wrong(format!("{here} is not a local address")).allowed("ADDR:PORT"))?;
        let target = target.parse().map_err(|why| wrong(format!("{target}: {why}")))?;
        listeners.push((local(here, "--forward", args.open)?, Purpose::Forward(target)));
    }
    Ok(Plan { server, listeners })
}

/// Checks `address`. Addresses other than loopback require `open`.
fn local(address: SocketAddr, argument: &str, open: bool) -> Result<SocketAddr, InputError> {
    if open || address.ip().is_loopback() {
        return Ok(address);
    }
    Err(InputError::new(argument, format!("{address} lets other machines in: --open says that it may")))
}

async fn client(args: &ProxyArgs, plan: Plan) -> Result<(), Failure> {
    let config = config(args)?;
    let metrics = seen::listen(&args.metrics).await?;
    let mut listeners = Vec::new();
    for (address, purpose) in plan.listeners {
        listeners.push((listen(address).await?, purpose));
    }
    let server = plan.server;
    let store = identity::store()?;
    let identity = identity::identity(&store)?;
    let connector = Connector { home: Home::ThisRuntime, store, identity, config, server: server.clone() };
    let first = client::open(&connector, false).await?;
    let proxy = Proxy::new(args);
    proxy.counts.links.fetch_add(1, Relaxed);
    let counted = proxy.clone();
    seen::serve(metrics, move || {
        let mut page = Page::default();
        counted.counts.write(&mut page);
        page.into_text()
    });
    let reporting = proxy.clone();
    let (link, keeping) = link::keep(connector, first, move |happened| report_event(&reporting, &happened));
    for (listener, purpose) in listeners {
        let what = match &purpose {
            Purpose::Socks => "socks5".to_owned(),
            Purpose::Forward(target) => target.to_string(),
        };
        note(&format!("tacit: {what} at {} through {server}", listener.local_addr()?));
        tokio::spawn(programs(listener, purpose, link.clone(), proxy.clone()));
    }
    {
        let mut keeping = std::pin::pin!(keeping);
        tokio::select! {
            why = &mut keeping => return Err(why.into()),
            stopped = signals::stop() => stopped?,
        }
        tokio::select! {
            why = keeping => return Err(why.into()),
            ended = proxy.end(args.grace) => ended?,
        }
        link.end().await;
        // Connections that are still being carried are aborted with a reset.
        let _ = tokio::time::timeout(BREAK_TIMEOUT, proxy.counts.running.idle()).await;
    }
    Ok(())
}

/// Reports state changes of the connection.
fn report_event(proxy: &Proxy, happened: &LinkEvent<'_>) {
    match happened {
        LinkEvent::Broken(why) => note(&printable(&format!("tacit: {why}; trying again"))),
        LinkEvent::RetryFailed(why, wait) => {
            let (why, wait_s) = (why.to_string(), wait.as_secs_f64());
            tracing::info!(target: "tacit::proxy", ?why, wait_s, "no connection to the server");
        }
        LinkEvent::Restored => {
            proxy.counts.links.fetch_add(1, Relaxed);
            note("tacit: reconnected to the server");
        }
    }
}

async fn listen(address: SocketAddr) -> Result<TcpListener, Failure> {
    let listener = TcpListener::bind(address).await;
    let wrong = |error| InputError::new(address, format!("cannot listen on it: {error}"));
    Ok(listener.map_err(wrong)?)
}

/// Accepts and carries connections of programs until the proxy is stopped.
async fn programs(listener: TcpListener, purpose: Purpose, link: Link, proxy: Arc<Proxy>) {
    loop {
        let tcp = match listener.accept().await {
            Ok((tcp, _)) => tcp,
            Err(error) => {
                proxy.on_accept_error(&error);
                // File descriptors become available when connections end.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        if proxy.is_closing.load(Relaxed) {
            return;
        }
        let Ok(waits) = proxy.waiting.clone().try_acquire_owned() else {
            let _ = tcp.set_zero_linger();
            note("tacit: a connection was reset: too many are waiting");
            continue;
        };
        let (purpose, link, proxy) = (purpose.clone(), link.clone(), proxy.clone());
        tokio::spawn(async move { proxy.carrying(None, carry(tcp, purpose, link, &proxy, waits)).await });
    }
}

/// Carries one connection. On failure its stream is dropped before its end and therefore reset.
async fn carry(
    mut tcp: TcpStream,
    purpose: Purpose,
    link: Link,
    proxy: &Proxy,
    waits: OwnedSemaphorePermit,
) -> RelayReport {
    let is_socks = matches!(purpose, Purpose::Socks);
    let target = match purpose {
        Purpose::Forward(target) => target,
        Purpose::Socks => match tokio::time::timeout(REQUEST_TIMEOUT, socks::request(&mut tcp)).await {
            Ok(Ok(target)) => target,
            Ok(Err(error)) => return RelayReport::failed(None, error),
            Err(_) => return RelayReport::failed(None, ProxyError::Idle),
        },
    };
    // A program that has not sent its request does not occupy a place.
    let place = tokio::time::timeout(PLACE_TIMEOUT, proxy.places.acquire()).await;
    let (answer, streams) = match &place {
        Ok(Ok(_)) => open(&target, link).await,
        Ok(Err(_)) | Err(_) => (ReplyCode::Busy, None),
    };
    drop(waits);
    proxy.counts.on_answer(answer);
    if is_socks && let Err(error) = socks::reply(&mut tcp, answer).await {
        return RelayReport::failed(Some(target), error);
    }
    let Some((mut writer, mut reader)) = streams.filter(|_| answer == ReplyCode::Connected) else {
        if !is_socks {
            // Without a protocol for replies, a reset indicates that there is no connection.
            let _ = tcp.set_zero_linger();
        }
        return RelayReport::failed(Some(target), ProxyError::ReplyCode(answer));
    };
    let (bytes, result) =
        relay::relay(tcp, &mut reader, &mut writer, Limits::default().idle, &proxy.counts.bytes).await;
    RelayReport { target: Some(target), answer: Some(answer), bytes, error: result.err() }
}

/// Requests `target` from the server's end. Returns its reply, and the streams on success. If there is no connection,
/// waits for one.
async fn open(target: &Target, mut link: Link) -> (ReplyCode, Option<(SendStream, RecvStream)>) {
    let Some(connection) = link.connection(LINK_TIMEOUT).await else { return (ReplyCode::Failed, None) };
    // The server's end may allow fewer streams than this one.
    let opened = match tokio::time::timeout(PLACE_TIMEOUT, connection.open_bi()).await {
        Ok(opened) => opened,
        Err(_) => return (ReplyCode::Busy, None),
    };
    let Ok((mut writer, mut reader)) = opened else { return (ReplyCode::Failed, None) };
    match request_target(target, &mut reader, &mut writer).await {
        Ok(()) => (ReplyCode::Connected, Some((writer, reader))),
        Err(ProxyError::ReplyCode(answer)) => (answer, None),
        Err(_) => (ReplyCode::Failed, None),
    }
}
