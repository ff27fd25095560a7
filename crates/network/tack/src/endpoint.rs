//! A socket and its connections, for tokio.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU16;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tacit_packet::tack::packet::StreamId;
use tokio::net::{ToSocketAddrs, lookup_host};
use tokio::sync::Notify;

use crate::admission::Clients;
use crate::clock::Clock;
use crate::config::Config;
use crate::driver;
use crate::error::{ConnectionError, SendDatagramError};
use crate::handle::Handle;
use crate::happy_eyeballs::{local_for, race};
use crate::hub::Hub;
use crate::identity::{Identity, PublicKey};
use crate::memory::Memory;
use crate::metrics::{Counters, Metrics};
use crate::radio;
use crate::session::{Expect, Notifiers, Session};
use crate::shard::Shard;
use crate::shared::Shared;
use crate::socket::Socket;
use crate::stats::ConnectionStats;
use crate::stream::{RecvStream, SendStream};

/// What [`Endpoint::reach`] found.
#[derive(Clone, Debug)]
pub enum Reached {
    /// A connection to a server with this end's own key.
    Connection(Connection),
    /// The key of another server.
    Key(PublicKey),
}

/// A UDP address that opens and accepts connections.
///
/// Clones share the endpoint. Its sockets are closed when all clones, connections and streams are dropped. All methods
/// that create an endpoint need a tokio runtime with I/O and time.
#[derive(Clone)]
pub struct Endpoint {
    /// At least one.
    shards: Arc<[Arc<Shared>]>,
    /// Dropped with the last clone, which the driver notices.
    _alive: Arc<driver::Alive>,
    local: SocketAddr,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("local_addr", &self.local).finish_non_exhaustive()
    }
}

impl Endpoint {
    /// Creates an endpoint that opens connections, bound to `local`. To let the system choose port and address, use
    /// `0.0.0.0:0` for servers with IPv4 addresses and `[::]:0` for servers with IPv6 addresses.
    ///
    /// # Errors
    /// If the address is in use, or the system refuses a socket.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn client(local: SocketAddr, identity: Identity, config: Config) -> io::Result<Self> {
        let config = Config { shards: NonZeroU16::MIN, ..config };
        Self::bind(local, identity, config, None)
    }

    /// Creates an endpoint bound to `local` that also accepts connections. `authorize` decides about each client, by
    /// the public key that the client has proved to have. It must not block.
    ///
    /// # Errors
    /// If the address is in use, or the system refuses a socket.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn server(
        local: SocketAddr,
        identity: Identity,
        config: Config,
        authorize: impl Fn(&PublicKey) -> bool + Send + Sync + 'static,
    ) -> io::Result<Self> {
        Self::bind(local, identity, config, Some(Arc::new(authorize)))
    }

    fn bind(
        address: SocketAddr,
        identity: Identity,
        config: Config,
        clients: Option<Clients>,
    ) -> io::Result<Self> {
        let shard_count = config.shards.get();
        let sockets = Socket::bind_all(address, shard_count, clients.is_none())?;
        let local = sockets[0].local_addr()?;
        let clock = Clock::start();
        #[cfg(feature = "qlog")]
        let config = Config { qlog: config.qlog.map(|qlog| qlog.began(Clock::wall(), local)), ..config };
        let config =
            Config { max_connections: config.max_connections.div_ceil(shard_count.into()), ..config };
        let (accept, connection_ended) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let memory = Memory::new(&config);
        let shared = move |(index, socket): (u16, &Socket)| {
            let shard = Shard { index, count: shard_count };
            let (config, identity, memory) = (config.clone(), identity.clone(), memory.clone());
            let hub = Hub::new(config, identity, clients.clone(), local.port(), shard, memory);
            let (accept, connection_ended) = (accept.clone(), connection_ended.clone());
            Arc::new(Shared::new(hub, shard, clock, accept, connection_ended, socket))
        };
        let shards: Arc<[_]> = (0..shard_count).zip(&sockets).map(shared).collect();
        let alive = Arc::new(driver::Alive(shards.clone()));
        let group = Arc::new(driver::Group { shards: shards.clone(), sockets });
        for index in 0..shards.len() {
            tokio::spawn(driver::run(group.clone(), index, Arc::downgrade(&alive)));
        }
        Ok(Self { shards, _alive: alive, local })
    }

    /// The shard that opens connections and holds state shared by all shards.
    fn first(&self) -> &Arc<Shared> {
        &self.shards[0]
    }

    /// The local address.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Opens a connection to a server with one or several addresses, such as `("box.example.org", 4433)` or a slice, and
    /// returns it with its new endpoint. Addresses are tried by Happy Eyeballs (RFC 8305), each from a socket of its own:
    /// families in turn, 250 ms apart. The name is resolved for both families first.
    ///
    /// # Errors
    /// If the name has no address, or no attempt succeeds: the first error other than a timeout.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O and time.
    pub async fn connect_to(
        name: impl ToSocketAddrs,
        server: PublicKey,
        identity: &Identity,
        config: &Config,
    ) -> Result<(Self, Connection), ConnectionError> {
        let addresses = lookup_host(name).await;
        let addresses = addresses.map_err(|error| ConnectionError::NoAddress(error.to_string()))?;
        let reached = race(addresses, async |remote| {
            let endpoint = Self::client(local_for(remote), identity.clone(), config.clone());
            let endpoint = endpoint.map_err(|error| ConnectionError::Endpoint(error.to_string()))?;
            let connection = endpoint.connect(remote, server).await?;
            Ok((endpoint, connection))
        });
        reached.await.map_err(most_telling)
    }

    /// Opens a connection to the server at `remote`, which must have the key `server`.
    ///
    /// # Errors
    /// If the server does not answer, has another key, or refuses.
    pub async fn connect(
        &self,
        remote: SocketAddr,
        server: PublicKey,
    ) -> Result<Connection, ConnectionError> {
        let connection = self.begin(remote, Expect::Key(server))?;
        connection
            .wait(
                |notifiers| &notifiers.state,
                |session| {
                    session.alive()?;
                    Ok(session.is_connected().then_some(()))
                },
            )
            .await?;
        Ok(connection)
    }

    /// Asks the server at `remote` for its public key, and does not reveal this end's key. Nothing vouches for the answer: compare
    /// it with a key from another source, or remember it, as ssh does. A server that has this end's own key is the same user's, who
    /// keeps it secret: it gets a connection at once, which saves a round trip.
    ///
    /// # Errors
    /// If the server does not answer.
    pub async fn reach(&self, remote: SocketAddr) -> Result<Reached, ConnectionError> {
        let connection = self.begin(remote, Expect::Own)?;
        let key = connection
            .wait(
                |notifiers| &notifiers.state,
                |session| match (session.peer(), session.is_connected()) {
                    (_, true) => Ok(Some(None)),
                    (Some(peer), false) => Ok(Some(Some(peer))),
                    (None, false) => session.alive().map(|()| None),
                },
            )
            .await?;
        Ok(key.map_or(Reached::Connection(connection), Reached::Key))
    }

    fn begin(&self, remote: SocketAddr, expect: Expect) -> Result<Connection, ConnectionError> {
        let shared = self.first();
        let own_queue = radio::own_queue(remote);
        let mut hub = shared.hub();
        if let Some(error) = hub.ended() {
            return Err(error);
        }
        hub.set_own_queue(own_queue);
        let id = hub.connect(shared.clock.now(), remote, expect);
        let connection = Connection::new(shared, &hub, id);
        drop(hub);
        shared.work.notify_one();
        connection
    }

    /// Accepts the next connection; `None` after the endpoint was closed or its socket failed.
    ///
    /// Cancel safe: a connection that was not returned is returned by the next call.
    pub async fn accept(&self) -> Option<Connection> {
        loop {
            let mut notified = pin!(self.first().accept.notified());
            notified.as_mut().enable();
            for shared in self.shards.iter() {
                let mut hub = shared.hub();
                if let Some(id) = hub.accept() {
                    return Connection::new(shared, &hub, id).ok();
                }
                if hub.ended().is_some() {
                    return None;
                }
            }
            notified.await;
        }
    }

    /// Closes all connections, as [`Connection::close`] does, and accepts and opens no more.
    ///
    /// [`wait_idle`](Self::wait_idle) waits until the peers have been notified.
    pub fn close(&self, code: u32, reason: &str) {
        for shared in self.shards.iter() {
            shared.hub().close(code, reason);
            shared.work.notify_one();
        }
        let first = self.first();
        first.accept.notify_waiters();
        first.connection_ended.notify_waiters();
    }

    /// Waits until no connection is open, and the final packets to all peers were sent.
    pub async fn wait_idle(&self) {
        loop {
            let mut notified = pin!(self.first().connection_ended.notified());
            notified.as_mut().enable();
            let is_idle = |shared: &Arc<Shared>| {
                let hub = shared.hub();
                hub.is_idle() || hub.failed.is_some()
            };
            if self.shards.iter().all(is_idle) {
                return;
            }
            notified.await;
        }
    }

    /// Counters since the endpoint was created. Cheaper than [`metrics`](Self::metrics).
    pub fn counters(&self) -> Counters {
        let counters = self.shards.iter().map(|shared| shared.hub().counters);
        counters.fold(Counters::default(), |sum, counters| sum.plus(&counters))
    }

    /// Counters and current readings: of the endpoint, and summed over its connections.
    pub fn metrics(&self) -> Metrics {
        let shard_metrics =
            |shared: &Arc<Shared>| Metrics { socket_buffers: shared.buffers, ..shared.hub().metrics() };
        let mut metrics = shard_metrics(self.first());
        self.shards[1..].iter().for_each(|shared| metrics.add(&shard_metrics(shared)));
        metrics
    }

    /// Number of connections, including handshakes and closed connections that still have handles.
    pub fn open_connections(&self) -> usize {
        self.shards.iter().map(|shared| shared.hub().len()).sum()
    }
}

/// The first failure that is not a timeout, if there is one.
fn most_telling(failures: Vec<ConnectionError>) -> ConnectionError {
    if failures.is_empty() {
        return ConnectionError::NoAddress("the name has none".to_owned());
    }
    let error = failures.into_iter().find(|failure| *failure != ConnectionError::TimedOut);
    error.unwrap_or(ConnectionError::TimedOut)
}

/// A connection to a peer.
///
/// Clones share it. When all clones and streams are dropped it is closed with code 0.
#[derive(Clone)]
pub struct Connection {
    handle: Arc<Handle>,
    peer: Option<PublicKey>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("id", &self.handle.slot.id)
            .field("remote_address", &self.remote_address())
            .field("peer", &self.peer)
            .finish_non_exhaustive()
    }
}

impl Connection {
    fn new(shared: &Arc<Shared>, hub: &Hub, id: u32) -> Result<Self, ConnectionError> {
        let slot = hub.slot(id).ok_or(ConnectionError::LocallyClosed)?;
        let peer = slot.lock().peer();
        Ok(Self { handle: Arc::new(Handle::new(shared.clone(), slot)), peer })
    }

    /// Waits until `ready` returns a value. It is called again after each notification.
    async fn wait<T, E>(
        &self,
        notifier: impl Fn(&Notifiers) -> &Notify,
        mut ready: impl FnMut(&mut Session) -> Result<Option<T>, E>,
    ) -> Result<T, E> {
        loop {
            let mut notified = pin!(notifier(&self.handle.slot.notifiers).notified());
            notified.as_mut().enable();
            match self.handle.with(&mut ready)? {
                Some(found) => return Ok(found),
                None => notified.await,
            }
        }
    }

    fn streams(&self, id: StreamId) -> (SendStream, RecvStream) {
        (SendStream::new(self.handle.clone(), id), RecvStream::new(self.handle.clone(), id))
    }

    /// Opens a bidirectional stream. Waits while the peer's limit of streams is reached. The peer accepts the stream
    /// once its first bytes or its end have arrived.
    ///
    /// # Errors
    /// If the connection has ended.
    pub async fn open_bi(&self) -> Result<(SendStream, RecvStream), ConnectionError> {
        let id = self.wait(|notifiers| &notifiers.open, Session::open).await?;
        Ok(self.streams(id))
    }

    /// Accepts the next stream that the peer opened.
    ///
    /// Cancel safe: a stream that was not returned is returned by the next call.
    ///
    /// # Errors
    /// If the connection has ended and all streams from before were accepted.
    pub async fn accept_bi(&self) -> Result<(SendStream, RecvStream), ConnectionError> {
        let id = self.wait(|notifiers| &notifiers.accept, Session::next_opened).await?;
        Ok(self.streams(id))
    }

    /// Queues an unreliable datagram without waiting. If too many are queued, the oldest is dropped and counted
    /// ([`datagrams_unsent`](ConnectionStats::datagrams_unsent)).
    ///
    /// # Errors
    /// If it does not fit a packet ([`max_datagram_size`](Self::max_datagram_size)), or the connection has ended.
    pub fn send_datagram(&self, data: Bytes) -> Result<(), SendDatagramError> {
        self.handle.with(|session| session.send_datagram(data))
    }

    /// Queues an unreliable datagram, and waits while that would drop an older one.
    ///
    /// Cancel safe: nothing was queued if it did not return.
    ///
    /// # Errors
    /// If it does not fit a packet ([`max_datagram_size`](Self::max_datagram_size)), or the connection has ended.
    pub async fn send_datagram_wait(&self, data: Bytes) -> Result<(), SendDatagramError> {
        self.wait(|notifiers| &notifiers.datagram_room, |session| session.send_datagram_in_room(&data)).await
    }

    /// Number of datagrams that [`send_datagram`](Self::send_datagram) takes now before it drops one.
    pub fn datagram_send_buffer_space(&self) -> usize {
        self.handle.with(|session| session.datagram_room())
    }

    /// Size in bytes of the largest datagram that currently fits in a packet. It grows when path MTU discovery
    /// succeeds.
    pub fn max_datagram_size(&self) -> usize {
        self.handle.with(|session| session.max_datagram())
    }

    /// Receives the next datagram. If datagrams arrive faster than they are read, the oldest of 256 is dropped.
    ///
    /// # Errors
    /// If the connection has ended and all datagrams received before that were read.
    pub async fn read_datagram(&self) -> Result<Bytes, ConnectionError> {
        self.wait(|notifiers| &notifiers.datagram, Session::next_datagram).await
    }

    /// The public key that the peer has proved to have.
    ///
    /// # Panics
    /// Never: a connection exists only after the proof.
    pub fn peer(&self) -> PublicKey {
        let now = || self.handle.with(|session| session.peer());
        self.peer.or_else(now).expect("the peer proved its key before there was a connection")
    }

    /// The peer's address, which changes when a client moves to another network.
    pub fn remote_address(&self) -> SocketAddr {
        self.handle.with(|session| session.remote())
    }

    /// Smoothed round-trip time; `None` before the first measurement.
    pub fn rtt(&self) -> Option<Duration> {
        self.stats().rtt
    }

    /// Counters and current readings of the connection.
    pub fn stats(&self) -> ConnectionStats {
        self.handle.with(|session| session.connection_stats())
    }

    /// Closes the connection at once. The peer gets `code` and the first 64 bytes of `reason`
    /// ([`ApplicationClosed`](ConnectionError::ApplicationClosed)).
    ///
    /// Data that has not arrived is lost. To deliver all of it, wait for the peer's confirmation, for example with
    /// [`SendStream::finished`], or let the peer close.
    pub fn close(&self, code: u32, reason: &str) {
        self.handle.with(|session| session.close(code, reason));
    }

    /// Waits until the connection has ended, and returns the reason.
    pub async fn closed(&self) -> ConnectionError {
        let ended =
            self.wait(|notifiers| &notifiers.state, |session| session.alive().map(|()| None::<()>)).await;
        ended.err().unwrap_or(ConnectionError::LocallyClosed)
    }

    /// The reason why the connection ended; `None` while it is open.
    pub fn close_reason(&self) -> Option<ConnectionError> {
        self.handle.with(|session| session.end().cloned())
    }
}

#[cfg(test)]
mod tests;
