//! A socket and its connections, for tokio.

use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU16;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tacit_proto::tack::packet::StreamId;
use tokio::net::{ToSocketAddrs, lookup_host};
use tokio::sync::Notify;

use crate::clock::Clock;
use crate::config::Config;
use crate::driver;
use crate::error::{ConnectionError, DatagramError};
use crate::eyeballs::race;
use crate::hub::{Clients, Hub};
use crate::identity::{Identity, PublicKey};
use crate::memory::Memory;
use crate::metrics::{Counters, Metrics};
use crate::session::{Bells, Expect, Session};
use crate::shard::Shard;
use crate::stream::{RecvStream, SendStream};

/// State shared by a socket of an endpoint, its connections and their streams.
pub(crate) struct Shared {
    hub: Mutex<Hub>,
    pub shard: Shard,
    pub clock: Clock,
    /// The driver has something to do.
    pub work: Notify,
    /// A client connected, or the endpoint closed. All shards have this one.
    pub accept: Arc<Notify>,
    /// A connection went, or the driver ended. All shards have this one.
    pub gone: Arc<Notify>,
    pub max_gso: usize,
    /// Octets that the system holds, out and in.
    pub buffers: [usize; 2],
}

impl Shared {
    /// The hub, whose lock nobody holds while waiting.
    pub fn hub(&self) -> MutexGuard<'_, Hub> {
        // A panic of another thread leaves every session as whole as each of its calls leaves it.
        self.hub.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A UDP address that opens and accepts connections.
///
/// Clones share the endpoint. Its sockets are closed when all clones, connections and streams are dropped.
#[derive(Clone)]
pub struct Endpoint {
    /// One at least.
    shards: Arc<[Arc<Shared>]>,
    /// Dropped with the last clone, which the driver notices.
    _alive: Arc<driver::Alive>,
    local: SocketAddr,
}

impl Endpoint {
    /// An endpoint that opens connections, on any port, with the address family of `remote`.
    ///
    /// # Errors
    /// If the system refuses a socket.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn client(remote: SocketAddr, identity: Identity, config: Config) -> io::Result<Self> {
        let any: SocketAddr = if remote.is_ipv4() {
            (std::net::Ipv4Addr::UNSPECIFIED, 0).into()
        } else {
            (std::net::Ipv6Addr::UNSPECIFIED, 0).into()
        };
        let config = Config { shards: NonZeroU16::MIN, ..config };
        Self::bind(any, identity, config, None)
    }

    /// An endpoint at `address` that also accepts connections. `clients` decides about each client after it has proved its
    /// key, and must not block.
    ///
    /// # Errors
    /// If the address is in use, or the system refuses a socket.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn server(
        address: SocketAddr,
        identity: Identity,
        config: Config,
        clients: Clients,
    ) -> io::Result<Self> {
        Self::bind(address, identity, config, Some(clients))
    }

    fn bind(
        address: SocketAddr,
        identity: Identity,
        config: Config,
        clients: Option<Clients>,
    ) -> io::Result<Self> {
        let of = config.shards.get();
        let sockets = driver::Socket::bind_all(address, of, clients.is_none())?;
        let local = sockets[0].local_addr()?;
        let clock = Clock::start();
        #[cfg(feature = "qlog")]
        let config = Config { qlog: config.qlog.map(|qlog| qlog.began(Clock::wall(), local)), ..config };
        let config = Config { max_connections: config.max_connections.div_ceil(of.into()), ..config };
        let (accept, gone) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let memory = Memory::of(&config);
        let shared = move |(index, socket): (u16, &driver::Socket)| {
            let shard = Shard { index, of };
            let (config, identity, memory) = (config.clone(), identity.clone(), memory.clone());
            let hub = Hub::new(config, identity, clients.clone(), local.port(), shard, memory);
            Arc::new(Shared {
                hub: Mutex::new(hub),
                shard,
                clock,
                work: Notify::new(),
                accept: accept.clone(),
                gone: gone.clone(),
                max_gso: socket.max_gso(),
                buffers: socket.buffers(),
            })
        };
        let shards: Arc<[_]> = (0..of).zip(&sockets).map(shared).collect();
        let alive = Arc::new(driver::Alive(shards.clone()));
        let group = Arc::new(driver::Group { shards: shards.clone(), sockets });
        for index in 0..shards.len() {
            tokio::spawn(driver::run(group.clone(), index, Arc::downgrade(&alive)));
        }
        Ok(Self { shards, _alive: alive, local })
    }

    /// Opens connections, and answers for what all shards have alike.
    fn first(&self) -> &Arc<Shared> {
        &self.shards[0]
    }

    /// The local address of the socket.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Opens a connection to a server with one or several addresses, such as `("box.example.org", 4433)` or a slice, and
    /// returns it with its new endpoint. Addresses are tried by Happy Eyeballs (RFC 8305), each from a socket of its own:
    /// families in turn, 250 ms apart. The system's resolver waits for both families.
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
            let endpoint = Self::client(remote, identity.clone(), config.clone());
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
                |bells| &bells.state,
                |session| {
                    session.alive()?;
                    Ok(session.is_connected().then_some(()))
                },
            )
            .await?;
        Ok(connection)
    }

    /// Asks the server at `remote` for its public key, without revealing this end's key.
    ///
    /// # Errors
    /// If the server does not answer.
    pub async fn learn(&self, remote: SocketAddr) -> Result<PublicKey, ConnectionError> {
        let connection = self.begin(remote, Expect::Learn)?;
        connection
            .wait(
                |bells| &bells.state,
                |session| match session.peer() {
                    Some(peer) => Ok(Some(peer)),
                    None => session.alive().map(|()| None),
                },
            )
            .await
    }

    fn begin(&self, remote: SocketAddr, expect: Expect) -> Result<Connection, ConnectionError> {
        let shared = self.first();
        let mut hub = shared.hub();
        if let Some(error) = &hub.failed {
            return Err(error.clone());
        }
        let id = hub.connect(shared.clock.now(), remote, expect);
        let connection = Connection::new(shared, &hub, id);
        drop(hub);
        shared.work.notify_one();
        connection
    }

    /// Accepts the next connection; `None` after the endpoint has failed.
    pub async fn accept(&self) -> Option<Connection> {
        loop {
            let mut told = pin!(self.first().accept.notified());
            told.as_mut().enable();
            for shared in self.shards.iter() {
                let mut hub = shared.hub();
                if let Some(id) = hub.accept() {
                    return Connection::new(shared, &hub, id).ok();
                }
                if hub.failed.is_some() {
                    return None;
                }
            }
            told.await;
        }
    }

    /// Waits until all connections are gone. A closed connection lingers for a while to answer its peer.
    pub async fn wait_idle(&self) {
        loop {
            let mut told = pin!(self.first().gone.notified());
            told.as_mut().enable();
            let is_idle = |shared: &Arc<Shared>| {
                let hub = shared.hub();
                hub.len() == 0 || hub.failed.is_some()
            };
            if self.shards.iter().all(is_idle) {
                return;
            }
            told.await;
        }
    }

    /// The counters so far.
    pub fn counters(&self) -> Counters {
        let counters = self.shards.iter().map(|shared| shared.hub().counters);
        counters.fold(Counters::default(), |sum, counters| sum.plus(&counters))
    }

    /// Counters and current readings.
    pub fn metrics(&self) -> Metrics {
        let of = |shared: &Arc<Shared>| Metrics { socket_buffers: shared.buffers, ..shared.hub().metrics() };
        let mut metrics = of(self.first());
        self.shards[1..].iter().for_each(|shared| metrics.add(&of(shared)));
        metrics
    }

    /// Number of connections, handshakes included.
    pub fn connections(&self) -> usize {
        self.shards.iter().map(|shared| shared.hub().len()).sum()
    }

    /// Largest number of datagrams per system call (GSO).
    pub fn max_gso(&self) -> usize {
        self.first().max_gso
    }
}

/// What is said of several failures: the first that is more than silence.
fn most_telling(failures: Vec<ConnectionError>) -> ConnectionError {
    if failures.is_empty() {
        return ConnectionError::NoAddress("the name stands for none".to_owned());
    }
    let told = failures.into_iter().find(|failure| *failure != ConnectionError::TimedOut);
    told.unwrap_or(ConnectionError::TimedOut)
}

/// Keeps a session alive: dropping the last handle closes the connection.
pub(crate) struct Handle {
    pub shared: Arc<Shared>,
    pub id: u32,
    bells: Arc<Bells>,
}

impl Handle {
    /// Does something to the session, which may leave it with something to send.
    pub fn with<T>(&self, act: impl FnOnce(&mut Session) -> T) -> Option<T> {
        let mut hub = self.shared.hub();
        let done = hub.session(self.id).map(act);
        drop(hub);
        self.shared.work.notify_one();
        done
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.with(|session| {
            session.handles = 0;
            session.close(0, "");
        });
    }
}

/// A connection to a peer. Clones share it; it is closed when all clones and streams are dropped.
#[derive(Clone)]
pub struct Connection {
    handle: Arc<Handle>,
    peer: Option<PublicKey>,
}

impl Connection {
    fn new(shared: &Arc<Shared>, hub: &Hub, id: u32) -> Result<Self, ConnectionError> {
        let session = hub.look(id).ok_or(ConnectionError::ClosedHere)?;
        let (bells, peer) = (session.bells.clone(), session.peer());
        Ok(Self { handle: Arc::new(Handle { shared: shared.clone(), id, bells }), peer })
    }

    /// Waits until `ready` gives something, and asks it again whenever the bell rings.
    async fn wait<T>(
        &self,
        bell: impl Fn(&Bells) -> &Notify,
        mut ready: impl FnMut(&mut Session) -> Result<Option<T>, ConnectionError>,
    ) -> Result<T, ConnectionError> {
        loop {
            let mut told = pin!(bell(&self.handle.bells).notified());
            told.as_mut().enable();
            match self.handle.with(&mut ready) {
                None => return Err(ConnectionError::ClosedHere),
                Some(Err(error)) => return Err(error),
                Some(Ok(Some(found))) => return Ok(found),
                Some(Ok(None)) => told.await,
            }
        }
    }

    fn streams(&self, id: StreamId) -> (SendStream, RecvStream) {
        (SendStream::new(self.handle.clone(), id), RecvStream::new(self.handle.clone(), id))
    }

    /// Opens a bidirectional stream. Waits while the peer's stream limit is reached. The peer accepts it after the first bytes.
    ///
    /// # Errors
    /// If the connection has ended.
    pub async fn open(&self) -> Result<(SendStream, RecvStream), ConnectionError> {
        let id = self.wait(|bells| &bells.open, Session::open).await?;
        Ok(self.streams(id))
    }

    /// Accepts the next stream that the peer opened.
    ///
    /// # Errors
    /// If the connection has ended.
    pub async fn accept(&self) -> Result<(SendStream, RecvStream), ConnectionError> {
        let id = self.wait(|bells| &bells.accept, Session::next_opened).await?;
        Ok(self.streams(id))
    }

    /// Sends an unreliable datagram, without waiting. If too many wait, the oldest is dropped.
    ///
    /// # Errors
    /// If it is too long for a packet, or the connection has ended.
    pub fn send_datagram(&self, octets: Bytes) -> Result<(), DatagramError> {
        self.handle
            .with(|session| session.send_datagram(octets))
            .unwrap_or(Err(ConnectionError::ClosedHere.into()))
    }

    /// Size of the largest datagram that fits a packet now, in bytes.
    pub fn max_datagram(&self) -> usize {
        self.handle.with(|session| session.max_datagram()).unwrap_or(0)
    }

    /// Receives the next datagram.
    ///
    /// # Errors
    /// If the connection has ended.
    pub async fn receive_datagram(&self) -> Result<Bytes, ConnectionError> {
        self.wait(|bells| &bells.datagram, Session::next_datagram).await
    }

    /// The public key that the peer has proved.
    ///
    /// # Panics
    /// Never: a connection exists only after the proof.
    pub fn peer(&self) -> PublicKey {
        let now = || self.handle.with(|session| session.peer()).flatten();
        self.peer.or_else(now).expect("the peer proved its key before there was a connection")
    }

    /// The peer's current address.
    pub fn remote_address(&self) -> Option<SocketAddr> {
        self.handle.with(|session| session.remote())
    }

    /// Counters and current readings of the connection.
    pub fn stats(&self) -> tacit_proto::transport::Stats {
        self.handle.with(|session| session.stats()).unwrap_or_default()
    }

    /// Closes the connection at once. The peer gets `code` and the first 64 bytes of `reason`. Data that has not arrived is
    /// lost: wait for the peer's confirmation first.
    pub fn close(&self, code: u32, reason: &str) {
        self.handle.with(|session| session.close(code, reason));
    }

    /// Waits until the connection has ended, and returns the reason.
    pub async fn closed(&self) -> ConnectionError {
        let ended = self.wait(|bells| &bells.state, |session| session.alive().map(|()| None::<()>)).await;
        ended.err().unwrap_or(ConnectionError::ClosedHere)
    }
}
