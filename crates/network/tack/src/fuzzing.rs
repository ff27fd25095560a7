//! Entry points of fuzz targets: datagrams of an unauthenticated sender, and packets of a peer that has the keys.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::sync::Arc;

use tacit_packet::Ecn;
use tacit_packet::tack::packet::ConnectionId;
use tacit_packet::tack::wire;
use tacit_packet::units::{Duration, Instant};

use crate::admission::Clients;
use crate::config::Config;
use crate::datagram::kind;
use crate::handshake::INITIATION_LEN;
use crate::hub::Hub;
use crate::identity::Identity;
use crate::memory::Memory;
use crate::session::Expect;
use crate::shard::Shard;

/// A client that has sent its first datagram, and a server that has not received it.
struct Pair {
    now: Instant,
    client: Hub,
    server: Hub,
    client_id: u32,
}

fn address(host: u8) -> SocketAddr {
    ([192, 0, 2, host], 1000).into()
}

/// The datagrams in `bytes`, each preceded by its length in two bytes.
fn datagrams(mut bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    std::iter::from_fn(move || {
        let (len, rest) = bytes.split_first_chunk()?;
        let len = usize::from(u16::from_be_bytes(*len)) % 2000;
        let (datagram, rest) = rest.split_at(len.min(rest.len()));
        bytes = rest;
        Some(datagram.to_vec())
    })
}

fn hub(identity: Identity, clients: Option<Clients>, port: u16) -> Hub {
    let config = Config::default();
    Hub::new(config.clone(), identity, clients, port, Shard::ONLY, Memory::new(&config))
}

impl Pair {
    fn new() -> Self {
        let identity = Identity::generate();
        let key = identity.public_key();
        let mut client = hub(Identity::generate(), None, 1000);
        let server = hub(identity, Some(Arc::new(|_| true)), 2000);
        let client_id = client.connect(Instant::ZERO, address(2), Expect::Key(key));
        Self { now: Instant::ZERO, client, server, client_id }
    }

    /// Delivers datagrams until neither end sends more.
    fn settle(&mut self) {
        for _ in 0..100 {
            let (mut up, mut down) = (Vec::new(), Vec::new());
            let sent = self.client.poll_transmit(self.now, &mut up).is_some();
            let answered = self.server.poll_transmit(self.now, &mut down).is_some();
            if sent {
                self.server.handle(self.now, address(1), Ecn::NotEct, &mut up);
            }
            if answered {
                self.client.handle(self.now, address(2), Ecn::NotEct, &mut down);
            }
            if !sent && !answered {
                break;
            }
        }
    }

    fn is_up(&self) -> bool {
        self.client
            .get(self.client_id)
            .is_some_and(|session| session.is_connected() && session.alive().is_ok())
    }
}

/// A sender without keys sends `bytes`, as datagrams, to a server and to a client that waits for its answer.
///
/// # Panics
/// If a server sends more than three times the bytes it received, or a client accepts them as an answer.
pub fn anybody(bytes: &[u8]) {
    let mut pair = Pair::new();
    let mut first = Vec::new();
    pair.client.poll_transmit(pair.now, &mut first);
    let (mut received, mut sent) = (0, 0);
    for mut datagram in datagrams(bytes) {
        if datagram.first() == Some(&kind::INITIATION) {
            datagram.resize(INITIATION_LEN, 0);
        }
        pair.now += Duration::from_millis(1);
        received += datagram.len();
        pair.server.handle(pair.now, address(66), Ecn::NotEct, &mut datagram.clone());
        pair.client.handle(pair.now, address(2), Ecn::NotEct, &mut datagram);
        let mut answer = Vec::new();
        while pair.server.poll_transmit(pair.now, &mut answer).is_some() {}
        sent += answer.len();
        while pair.client.poll_transmit(pair.now, &mut answer).is_some() {}
    }
    assert!(sent <= 3 * received, "{sent} bytes for {received}");
    assert!(!pair.is_up());
}

thread_local! {
    static CONNECTED: RefCell<Option<Pair>> = const { RefCell::new(None) };
}

/// A peer with keys sends `bytes` to a client, as packets with a tag of zeros in place of encryption.
///
/// # Panics
/// If the two do not connect.
pub fn peer(bytes: &[u8]) {
    CONNECTED.with_borrow_mut(|connected| {
        let mut pair = connected.take().filter(Pair::is_up).unwrap_or_else(|| {
            let mut pair = Pair::new();
            pair.settle();
            assert!(pair.is_up(), "a handshake without losses fails");
            pair
        });
        for datagram in datagrams(bytes) {
            pair.now += Duration::from_millis(1);
            let Ok((mut packet, content)) = wire::decode(&datagram) else { continue };
            packet.connection = ConnectionId(pair.client_id);
            let Some(session) = pair.client.session(pair.client_id) else { break };
            session.take(pair.now, address(2).into(), Ecn::NotEct, &packet, content, Some(datagram.len()));
            while let Ok(Some(stream)) = session.next_opened() {
                session.drop_receiving(stream);
            }
            let mut sent = Vec::new();
            while pair.client.poll_transmit(pair.now, &mut sent).is_some() {}
            assert!(sent.len() < 1 << 20, "{} bytes for {}", sent.len(), datagram.len());
        }
        *connected = Some(pair);
    });
}
