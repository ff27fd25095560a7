//! Answers that may reach a client before the server's: from impersonators that are faster, from the network, and from
//! a server that is full.

use super::*;
use crate::error::Busy;
use crate::session::{ANSWERS, HALF_OPEN, MAX_ANSWER};

impl Net {
    /// The datagrams in flight to the server.
    fn on_their_way(&mut self) -> Vec<Vec<u8>> {
        self.drain();
        let to_server = self
            .in_flight
            .iter()
            .map(|Reverse(in_flight)| in_flight)
            .filter(|in_flight| in_flight.3 == server_address());
        to_server.map(|in_flight| in_flight.4.clone()).collect()
    }

    fn send_to_client(&mut self, bytes: &[u8]) {
        self.client.handle(self.now, server_address(), Ecn::NotEct, &mut bytes.to_vec());
    }

    fn state_of(&mut self, client: u32) -> (bool, Result<(), ConnectionError>) {
        let session = self.client.session(client).unwrap();
        (session.is_connected(), session.alive())
    }
}

/// A server with another key that sees the client's datagrams and answers before the real server.
struct Twin(Hub);

impl Twin {
    fn new() -> Self {
        Self(server(&Config::default(), &Identity::generate()))
    }

    fn answers(&mut self, net: &mut Net) {
        for mut bytes in net.on_their_way() {
            self.0.handle(net.now, net.client_at, Ecn::NotEct, &mut bytes);
            let mut answer = Vec::new();
            while self.0.poll_transmit(net.now, &mut answer).is_some() {
                net.send_to_client(&answer);
                answer.clear();
            }
        }
    }
}

#[test]
fn a_twin_ahead_of_the_server_keeps_nobody_from_it() {
    let mut net = Net::new();
    let client = net.connect();
    let mut twin = Twin::new();
    for _ in 0..100 {
        twin.answers(&mut net);
        net.run(Duration::from_millis(3));
    }
    assert_eq!(net.state_of(client), (true, Ok(())));
    assert_eq!(net.client.get(client).unwrap().peer(), Some(net.server_identity.public_key()));
    assert!(net.server.accept().is_some());
}

#[test]
fn a_server_with_another_key_is_reported_within_a_second() {
    let mut net = Net::new();
    let expected = net.server_identity.public_key();
    let other = Identity::generate();
    net.server = server(&Config::default(), &other);
    let client = net.connect();
    net.run(Duration::from_secs(1));
    let found = other.public_key();
    assert_eq!(net.state_of(client), (false, Err(ConnectionError::WrongPeer { expected, found })));
}

#[test]
fn forged_first_datagrams_retries_and_refusals_keep_nobody_from_the_server() {
    let mut net = Net::new();
    let client = net.connect();
    let first = net.on_their_way().pop().expect("a client begins");
    // Datagrams with the client's address and number, but another ephemeral key; and the client's own datagram, twice.
    let mut forged = first.clone();
    forged[10..42].iter_mut().for_each(|byte| *byte ^= 0x55);
    for bytes in [forged, first.clone(), first] {
        net.server.handle(net.now, net.client_at, Ecn::NotEct, &mut bytes.clone());
    }
    let addressed = |kind, body: &[u8]| datagram(kind, ConnectionId(client), body);
    for number in 0..20 {
        net.send_to_client(&addressed(kind::RETRY, &[number; crate::token::LEN]));
        net.send_to_client(&addressed(kind::BUSY, &[1 + number % 2]));
        net.send_to_client(&addressed(kind::RESPONSE, &[number; 120]));
    }
    net.client.on_unreachable(net.now, server_address(), &net.seen[0].2.clone(), true);
    net.run(Duration::from_secs(2));
    assert_eq!(net.state_of(client), (true, Ok(())));
}

/// The constants with which an initiation pays for its answers follow from the waits of the core.
#[test]
fn one_initiation_gets_as_many_answers_as_it_pays_for() {
    let mut net = Net::new();
    net.lose = |order| order > 0;
    net.connect();
    net.run(HALF_OPEN + Duration::from_secs(2));
    let answers = net.seen.iter().filter(|(from, ..)| *from == server_address());
    let lens: Vec<usize> = answers.map(|(.., bytes)| bytes.len()).collect();
    assert!(lens.len() == ANSWERS && lens.iter().all(|len| *len <= MAX_ANSWER), "{lens:?}");
}

/// A server whose sending is slower than its receiving.
#[test]
fn answers_to_strangers_that_cannot_leave_take_no_memory() {
    let mut net = Net::new();
    net.connect();
    let first = net.on_their_way().pop().expect("a client begins");
    for port in 0..20_000 {
        net.server.handle(net.now, address(50, port), Ecn::NotEct, &mut first.clone());
    }
    assert_eq!(net.server.counters.retries_sent, 20_000 - RETRY_FROM as u64);
    let waiting = net.server.outbox.waiting().count();
    assert!(waiting <= 2_000, "{waiting} answers wait");
}

/// The first datagram is not authenticated: any host that sees it can send a twin ahead of it that differs in one bit.
#[test]
fn a_twin_of_the_first_datagram_that_differs_in_any_bit_keeps_nobody_from_the_server() {
    let len = {
        let mut net = Net::new();
        net.connect();
        let first = net.on_their_way().pop().expect("a client begins");
        first.iter().rposition(|byte| *byte != 0).expect("it is not empty") + 1
    };
    for bit in 0..8 * len {
        let mut net = Net::new();
        let client = net.connect();
        let first = net.on_their_way().pop().expect("a client begins");
        let mut twin = first.clone();
        twin[bit / 8] ^= 1 << (bit % 8);
        net.server.handle(net.now, net.client_at, Ecn::NotEct, &mut twin);
        net.run(Duration::from_secs(2));
        assert_eq!(net.state_of(client), (true, Ok(())), "byte {}, bit {}", bit / 8, bit % 8);
    }
}

#[test]
fn a_connection_comes_about_where_half_of_all_datagrams_are_lost() {
    for seed in 0..40 {
        let mut net = Net::new();
        net.order = seed * 1_000;
        net.lose = |order| scattered(order).is_multiple_of(2);
        let client = net.connect();
        net.run(Duration::from_secs(10));
        assert_eq!(net.state_of(client), (true, Ok(())), "{seed}");
    }
}

#[test]
fn a_server_that_is_full_says_so() {
    let mut net = Net::with(&Config { max_connections: 1, ..Config::default() });
    let first = net.connect();
    net.run(Duration::from_secs(1));
    assert_eq!(net.state_of(first), (true, Ok(())));
    let second = net.connect();
    net.run(Duration::from_secs(1));
    let full = Err(ConnectionError::Busy(Busy::Connections));
    assert_eq!(net.state_of(second), (false, full));
    // A closed connection frees its slot.
    let server = net.server.accept().expect("the first connected");
    for (hub, id) in [(&mut net.client, first), (&mut net.server, server)] {
        let session = hub.session(id).unwrap();
        session.close(0, "");
        session.handles = 0;
    }
    net.run(Duration::from_secs(1));
    let third = net.connect();
    net.run(Duration::from_secs(1));
    assert_eq!(net.state_of(third), (true, Ok(())));
}

/// The sixth byte of a client's first datagram is its protocol version.
#[test]
fn a_client_of_another_version_is_told() {
    let mut net = Net::new();
    let client = net.connect();
    let mut older = net.on_their_way().pop().expect("a client begins");
    older[5] = 2;
    net.server.handle(net.now, net.client_at, Ecn::NotEct, &mut older);
    let mut answer = Vec::new();
    assert!(net.server.poll_transmit(net.now, &mut answer).is_some());
    assert_eq!(answer, datagram(kind::BUSY, ConnectionId(client), &[OTHER_VERSION]));
    assert_eq!(net.server.len(), 0);

    // The client's view of a server that sends only this answer.
    net.lose = |_| true;
    net.in_flight.clear();
    net.send_to_client(&answer);
    net.run(Duration::from_secs(1));
    assert_eq!(net.state_of(client), (false, Err(ConnectionError::OtherVersion)));
}

/// For this time, each datagram to the server is answered by an ICMP error, genuine or forged: no program listens (`refused`), or
/// there is no route.
fn refuse_all(net: &mut Net, time: Duration, refused: bool) {
    let until = net.now + time;
    while net.now < until {
        net.run(Duration::from_millis(10));
        for (_, to, bytes) in std::mem::take(&mut net.seen) {
            if to == server_address() {
                net.client.on_unreachable(net.now, to, &bytes, refused);
            }
        }
    }
}

#[test]
fn a_port_where_nobody_listens_is_told_within_a_second() {
    for refused in [true, false] {
        let mut net = Net::new();
        net.lose = |_| true;
        let client = net.connect();
        refuse_all(&mut net, Duration::from_secs(1), refused);
        assert_eq!(net.state_of(client), (false, Err(ConnectionError::Unreachable)));
    }
}

#[test]
fn a_server_that_is_there_belies_the_network() {
    let mut net = Net::new();
    let (client, _) = net.begin(100_000);
    refuse_all(&mut net, Duration::from_secs(3), true);
    assert_eq!(net.state_of(client), (true, Ok(())));
    // A server that is gone does not answer. Nothing was in progress, so the next probe detects it.
    net.lose = |_| true;
    refuse_all(&mut net, Duration::from_secs(11), true);
    assert_eq!(net.state_of(client), (true, Err(ConnectionError::Unreachable)));
}

/// An ICMP error without `refused` (no route to the host) may be temporary: an established connection survives it.
#[test]
fn a_connection_outlives_a_path_that_is_gone_for_a_while() {
    let mut net = Net::new();
    let (client, _) = net.begin(100_000);
    net.lose = |_| true;
    refuse_all(&mut net, Duration::from_secs(5), false);
    net.lose = |_| false;
    net.run(Duration::from_secs(20));
    assert_eq!(net.state_of(client), (true, Ok(())));
}
