//! A forward proxy for programs without support for placeholders: it repairs responses to GET on the way.
//!
//! `CONNECT` opens a tunnel for TLS; nothing in it is repaired.
//!
//! It is not an open relay. By default it listens for programs of this machine, and reaches only public servers at HTTP
//! ports and servers that are named explicitly. The address is checked when the connection is opened. Memory per
//! connection is bounded (two heads, hyper's buffers, bytes that repair holds back), and so is the number of
//! connections.

mod forward;
mod guard;
mod headers;
mod patience;
mod served;
mod tunnel;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderValue};
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::connection::Settings;
use crate::error::NetError;
use crate::head::MAX_HEAD_LEN;
use crate::reach::Reach;
use forward::Forwarder;
use guard::Guarded;
pub use served::{OnServed, Served};

/// Ports for HTTP without TLS.
pub const PORTS: [u16; 5] = [80, 8000, 8008, 8080, 8888];

/// Settings of a proxy.
#[derive(Clone, Debug)]
pub struct Options {
    /// Address to listen at.
    pub listen: SocketAddr,
    /// Allows listening at an address that other machines can reach.
    pub open: bool,
    /// Servers that may be reached although their addresses are not public.
    pub hosts: Vec<String>,
    /// Ports that may be reached in addition to [`PORTS`] and, for tunnels, to 443.
    pub ports: Vec<u16>,
    /// Most requests in progress; there may be the same number of tunnels.
    pub connections_max: usize,
    /// Time limit for a client to send a head, and to accept data.
    pub patience: Duration,
    /// Time limit for a tunnel without a byte in either direction.
    pub tunnel_idle_max: Duration,
    /// Time limit for requests in progress after the proxy is stopped.
    pub grace: Duration,
    /// Settings for connections to servers.
    pub settings: Settings,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 3128)),
            open: false,
            hosts: Vec::new(),
            ports: Vec::new(),
            connections_max: 64,
            patience: Duration::from_secs(30),
            tunnel_idle_max: tunnel::IDLE_MAX,
            grace: Duration::from_secs(3),
            settings: Settings::default(),
        }
    }
}

/// Most connections that are idle or wait for a slot, in addition to those being served. Ours.
const WAITING_MAX: usize = 1024;

/// Most bytes of a body that may be held back: the bandwidth-delay product at 600 Mb/s and 40 ms (paper, Table I), plus
/// a third.
const HELD_MAX: u64 = 4 * 1024 * 1024;

/// A listening proxy.
#[derive(Debug)]
pub struct Proxy {
    listener: TcpListener,
    address: SocketAddr,
    options: Options,
}

impl Proxy {
    /// Starts to listen.
    ///
    /// # Errors
    /// If it cannot listen at the address, or the settings forbid it.
    pub async fn listen(options: Options) -> Result<Self, NetError> {
        let at = options.listen;
        if !at.ip().is_loopback() && !options.open {
            return Err(NetError::Argument(format!(
                "{at} lets other machines use this proxy: say --open if that is meant, or listen at 127.0.0.1"
            )));
        }
        let bound = TcpListener::bind(at).await.and_then(|listener| Ok((listener.local_addr()?, listener)));
        let (address, listener) =
            bound.map_err(|error| NetError::Argument(format!("cannot listen on {at}: {error}")))?;
        Ok(Self { listener, address, options })
    }

    /// The address it listens at.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until SIGINT or SIGTERM.
    ///
    /// # Errors
    /// If signals cannot be received.
    pub async fn serve_until_signal(
        self,
        on_served: impl Fn(&Served) + Send + Sync + 'static,
    ) -> Result<(), NetError> {
        let listen_for =
            |kind| signal(kind).map_err(|error: io::Error| NetError::Argument(error.to_string()));
        let (mut interrupt, mut terminate) =
            (listen_for(SignalKind::interrupt())?, listen_for(SignalKind::terminate())?);
        let stop = async move {
            tokio::select! {
                _ = interrupt.recv() => (),
                _ = terminate.recv() => (),
            }
        };
        self.serve(stop, on_served).await;
        Ok(())
    }

    /// Serves until `stop` resolves; requests in progress then have [`Options::grace`] to finish.
    pub async fn serve(
        self,
        stop: impl Future<Output = ()>,
        on_served: impl Fn(&Served) + Send + Sync + 'static,
    ) {
        let mut settings = self.options.settings.clone();
        settings.repair.held_max = settings.repair.held_max.min(HELD_MAX);
        let forwarder = Arc::new(Forwarder {
            settings: Arc::new(settings),
            reach: Arc::new(Reach::Public {
                also: self.options.hosts.iter().map(|host| host.to_ascii_lowercase()).collect(),
                hint: "; --allow-host with its name would allow it",
                proxy: Some(self.address),
            }),
            ports: PORTS.iter().chain(&self.options.ports).copied().collect(),
            on_served: Arc::new(on_served),
            places: Arc::new(Semaphore::new(self.options.connections_max)),
            patience: self.options.patience,
            tunnels: Arc::new(Semaphore::new(self.options.connections_max)),
            tunnel_ports: [&[tunnel::TLS_PORT], &*self.options.ports].concat(),
            tunnel_idle_max: self.options.tunnel_idle_max,
        });
        let (stopper, stopped) = watch::channel(());
        let open = Arc::new(Semaphore::new(2 * self.options.connections_max + WAITING_MAX));
        let mut tasks = JoinSet::new();
        tokio::pin!(stop);
        loop {
            let accepted = tokio::select! {
                () = &mut stop => break,
                accepted = self.listener.accept() => accepted,
            };
            while tasks.try_join_next().is_some() {}
            match accepted {
                Ok((tcp, _)) => {
                    // Too many connections are idle; this one is dropped, which closes it.
                    let Ok(is_open) = Arc::clone(&open).try_acquire_owned() else { continue };
                    let (forwarder, stopped) = (Arc::clone(&forwarder), stopped.clone());
                    let patience = self.options.patience;
                    tasks.spawn(async move {
                        serve_one(tcp, forwarder, stopped, patience).await;
                        drop(is_open);
                    });
                }
                // No file descriptor is free; wait until one is.
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
        drop(self.listener);
        drop(stopped);
        let _ = stopper.send(());
        let _ = timeout(self.options.grace, async { while tasks.join_next().await.is_some() {} }).await;
        tasks.shutdown().await;
    }
}

async fn serve_one(
    tcp: TcpStream,
    forwarder: Arc<Forwarder>,
    mut stopped: watch::Receiver<()>,
    patience: Duration,
) {
    let _ = tcp.set_nodelay(true);
    let (guarded, last) = Guarded::new(tcp, patience);
    let tunnels = tunnel::Slot::default();
    let slot = Arc::clone(&tunnels);
    let service = service_fn(move |request: Request<Incoming>| {
        let (forwarder, last, slot) = (Arc::clone(&forwarder), Arc::clone(&last), Arc::clone(&slot));
        async move {
            let is_connect = request.method() == Method::CONNECT;
            let mut response: Response<_> = forwarder.answer(request, &slot).await?;
            // The answer that opens a tunnel gets no `Connection` header, because the connection no longer carries
            // HTTP.
            if last.load(Ordering::Relaxed) && !(is_connect && response.status().is_success()) {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<_, std::convert::Infallible>(response)
        }
    });
    let connection = Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(patience)
        .max_buf_size(MAX_HEAD_LEN * 2)
        .serve_connection(TokioIo::new(guarded), service)
        .with_upgrades();
    tokio::pin!(connection);
    // Errors of a connection concern only its client.
    tokio::select! {
        _ = connection.as_mut() => (),
        _ = stopped.changed() => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
    if let Some(tunnel) = tunnel::take(&tunnels) {
        tunnel.run().await;
    }
}
