//! Clients that only receive: their behaviour when no data comes any more.

use super::*;

/// A server that sends without end to a client that reads.
struct Pull {
    net: Net,
    client: u32,
    server: u32,
    stream: StreamId,
    chunk: Vec<u8>,
}

impl Pull {
    fn new() -> Self {
        let mut net = Net::new();
        let client = net.connect();
        net.run(Duration::from_secs(1));
        let session = net.client.session(client).unwrap();
        let stream = session.open().unwrap().expect("it may be opened");
        session.write(stream, b"all of it").unwrap();
        net.run(Duration::from_millis(20));
        let server = net.server.accept().expect("a client connected");
        assert_eq!(net.server.session(server).unwrap().next_opened(), Ok(Some(stream)));
        Self { net, client, server, stream, chunk: payload(1 << 10) }
    }

    /// Bytes that the client reads in so many milliseconds, in which the server writes a few each.
    fn run(&mut self, millis: u64) -> usize {
        let mut read = 0;
        for _ in 0..millis {
            // A server that was started again knows nothing of it.
            if let Some(session) = self.net.server.session(self.server) {
                let _ = session.write(self.stream, &self.chunk);
            }
            self.net.run(Duration::from_millis(1));
            self.net.seen.clear();
            let session = self.net.client.session(self.client).unwrap();
            let receiving = &mut session.buffers(self.stream).unwrap().receiving;
            let mut len = 0;
            while !receiving.peek().is_empty() {
                len += receiving.peek().len();
                receiving.take(receiving.peek().len());
            }
            session.on_read(self.stream, len);
            read += len;
        }
        read
    }
}

#[test]
fn a_client_that_pulls_hears_within_a_few_round_trips_that_the_server_was_started_again() {
    let mut pull = Pull::new();
    assert!(pull.run(200) > 150_000);
    pull.net.server = server(&Config::default(), &pull.net.server_identity);
    // A round trip is 10 ms.
    pull.run(100);
    let alive = pull.net.client.session(pull.client).unwrap().alive();
    assert_eq!(alive, Err(ConnectionError::ServerRestarted));
}

/// A path whose address changes every half second, of a host or of its port alone: a pull goes on in each of them.
#[test]
fn a_pull_goes_on_wherever_the_client_is() {
    for same_host in [true, false] {
        let mut pull = Pull::new();
        pull.run(200);
        for turn in 0..20u8 {
            pull.net.client_at = address(if same_host { 1 } else { 10 + turn }, 2000 + u16::from(turn));
            // Packets on their way to the old address, and a few round trips of silence, are less than half of the time.
            let read = pull.run(500);
            assert!(read > 250_000, "{read} bytes of 512,000 in turn {turn}");
        }
    }
}

/// A stream on which nothing is to come for now costs one question, and one that ended none.
#[test]
fn a_peer_that_has_nothing_to_send_is_asked_once() {
    let mut pull = Pull::new();
    pull.run(100);
    pull.net.run(Duration::from_millis(500));
    pull.net.seen.clear();
    pull.net.run(Duration::from_secs(9));
    assert!(pull.net.seen.is_empty(), "{} datagrams", pull.net.seen.len());
}
