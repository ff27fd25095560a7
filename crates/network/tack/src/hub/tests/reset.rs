//! A restarted server, and which hosts can report the restart.

use super::*;

fn forgotten() -> Result<(), ConnectionError> {
    Err(ConnectionError::ServerRestarted)
}

impl Net {
    fn start_the_server_again(&mut self) {
        self.server = server(&Config::default(), &self.server_identity);
    }

    fn alive(&mut self, client: u32) -> Result<(), ConnectionError> {
        self.client.session(client).unwrap().alive()
    }

    /// Datagrams that the client has sent.
    fn sent_by_client(&self) -> usize {
        self.seen.iter().filter(|(_, to, _)| *to == server_address()).count()
    }
}

#[test]
fn a_server_that_was_started_again_says_so_at_once() {
    let mut net = Net::new();
    let (client, stream) = net.begin(200_000);
    net.run(Duration::from_millis(12));
    net.start_the_server_again();
    net.run(Duration::from_millis(12));
    assert_eq!(net.alive(client), forgotten(), "a round trip is 10 ms");
    let refused = net.client.session(client).unwrap().write(stream, b"more");
    assert_eq!(refused, Err(ConnectionError::ServerRestarted.into()));
    let before = net.sent_by_client();
    net.run(Duration::from_secs(60));
    assert_eq!(net.sent_by_client(), before, "no peer is there to hear more");
    assert_eq!(net.client.poll_timeout(), None);
    // The next connection is established at once, and the old one is removed when its user drops it.
    net.begin(1_000);
    net.run(Duration::from_secs(1));
    assert!(net.read() == (payload(1_000), true));
    assert_eq!(net.client.reset_sources.len(), 2);
    net.client.session(client).unwrap().handles = 0;
    net.run(Duration::from_secs(1));
    assert_eq!((net.client.len(), net.client.reset_sources.len()), (1, 1));
}

/// The client has nothing to send, so it learns of the restart with its next probe.
#[test]
fn a_client_at_rest_hears_it_with_its_next_probe() {
    let mut net = Net::new();
    let client = net.connect();
    net.run(Duration::from_secs(1));
    net.start_the_server_again();
    net.run(Config::default().transport.keep_alive.unwrap() + Duration::from_millis(100));
    assert_eq!(net.alive(client), forgotten());
}

#[test]
fn an_end_that_was_lost_is_said_again_by_a_server_that_forgot() {
    let mut net = Net::new();
    let client = net.connect();
    net.run(Duration::from_secs(1));
    let at_server = net.server.accept().unwrap();
    let session = net.server.session(at_server).unwrap();
    session.close(3, "done");
    session.handles = 0;
    net.lose = |_| true;
    net.run(Duration::from_millis(100));
    net.lose = |_| false;
    assert_eq!((net.alive(client), net.server.len()), (Ok(()), 0));
    net.run(Duration::from_secs(11));
    assert_eq!(net.alive(client), forgotten());
}

#[test]
fn nobody_but_the_server_can_say_it() {
    let mut net = Net::new();
    let (client, _) = net.begin(200_000);
    net.run(Duration::from_millis(12));
    let number = net.client.get(client).unwrap().reset_source().unwrap().1;
    let tokens = |identity: &Identity, port| Resets::new(identity, port);
    let (from, of_client) = (server_address(), client_address().ip());
    let right = tokens(&net.server_identity, from.port()).token(ConnectionId(number), of_client).0;
    let mut reject = |from: SocketAddr, number: u32, token: &[u8]| {
        let mut bytes = datagram(kind::RESET, ConnectionId(number), token);
        net.client.handle(net.now, from, Ecn::NotEct, &mut bytes);
        assert!(net.client.get(client).unwrap().alive().is_ok(), "{from}, {number:x}, {token:x?}");
    };
    for bit in 0..128 {
        let mut wrong = right;
        wrong[bit / 8] ^= 1 << (bit % 8);
        reject(from, number, &wrong);
    }
    reject(from, number, &right[..15]);
    reject(from, number, &[&right[..], &[0]].concat());
    reject(from, number, &[]);
    reject(from, number ^ 1, &right);
    reject(attacker_address(), number, &right);
    // Tokens from other requests: an attacker's from its own address, at this port and at another server of this user,
    // and another server's.
    let identity = net.server_identity.clone();
    for (identity, port, ip) in [
        (&identity, from.port(), attacker_address().ip()),
        (&identity, from.port() + 1, of_client),
        (&Identity::generate(), from.port(), of_client),
    ] {
        let other = tokens(identity, port).token(ConnectionId(number), ip).0;
        let mut bytes = datagram(kind::RESET, ConnectionId(number), &other);
        net.client.handle(net.now, from, Ecn::NotEct, &mut bytes);
        assert_eq!(net.alive(client), Ok(()));
    }
    net.run(Duration::from_secs(20));
    assert!(net.read() == (payload(200_000), true));
    // The token was the right one.
    let mut bytes = datagram(kind::RESET, ConnectionId(number), &right);
    net.client.handle(net.now, from, Ecn::NotEct, &mut bytes);
    assert_eq!(net.alive(client), forgotten());
}

/// A host that asks about unknown connections gets less than it sends, and rarely. Resets are not answered, and neither
/// a server that has the connection nor a client sends one.
#[test]
fn answers_are_few_and_go_to_nobody_who_answers() {
    let mut net = Net::new();
    let client = net.connect();
    net.run(Duration::from_secs(1));
    let known = net.server.accept().unwrap();
    let answered = |net: &mut Net, bytes: &[u8]| {
        let before = net.to_attacker;
        net.attack(attacker_address(), bytes.to_vec());
        net.run(Duration::from_millis(6));
        net.to_attacker - before
    };
    let packet = |number: u32, len: usize| [&[0x30], &number.to_be_bytes()[..], &vec![7; len - 5]].concat();
    assert_eq!(answered(&mut net, &packet(known ^ 1, 25)), 21, "25 bytes are a packet and its tag");
    assert_eq!(answered(&mut net, &packet(known ^ 1, 24)), 0);
    assert_eq!(answered(&mut net, &packet(known, 1200)), 0);
    assert_eq!(answered(&mut net, &packet(0, 1200)), 0);
    assert_eq!(answered(&mut net, &datagram(kind::RESET, ConnectionId(known ^ 1), &[7; 100])), 0);
    assert_eq!(answered(&mut net, &datagram(kind::FINISH, ConnectionId(known ^ 1), &[7; 100])), 0);
    for number in 0..10_000u32 {
        net.attack(attacker_address(), packet(number.wrapping_add(known).wrapping_add(1), 100));
    }
    let before = net.to_attacker;
    net.run(Duration::from_millis(6));
    let answers = (net.to_attacker - before) / 21;
    assert!((90..=110).contains(&answers), "{answers}");
    let mut bytes = packet(client ^ 1, 1200);
    net.client.handle(net.now, server_address(), Ecn::NotEct, &mut bytes);
    assert_eq!(net.client.counters.resets_sent, 0);
}

/// The token is bound to the client's address: the client got one for its new address with the path challenge.
#[test]
fn a_client_that_has_moved_hears_it_too() {
    let mut net = Net::new();
    let client = net.connect();
    net.run(Duration::from_secs(1));
    for host in [7, 8] {
        net.client_at = address(host, 7777);
        net.run(Duration::from_secs(15));
    }
    net.start_the_server_again();
    // The client has nothing to send, so it learns of the restart with its next probe.
    net.run(Duration::from_secs(10));
    assert_eq!(net.alive(client), forgotten());
}
