//! Clients that only receive: their behaviour when data stops arriving.

use super::*;

/// A server that sends continuously to a client that reads.
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

    /// Bytes that the client reads within `millis` milliseconds; the server writes a few bytes in each.
    fn run(&mut self, millis: u64) -> usize {
        let mut read = 0;
        for _ in 0..millis {
            // A restarted server does not know the connection.
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
    // The round-trip time is 10 ms.
    pull.run(100);
    let alive = pull.net.client.session(pull.client).unwrap().alive();
    assert_eq!(alive, Err(ConnectionError::ServerRestarted));
}

/// The path's address changes every half second, either the host or only its port; a transfer continues at each of
/// them.
#[test]
fn a_pull_goes_on_wherever_the_client_is() {
    for same_host in [true, false] {
        let mut pull = Pull::new();
        pull.run(200);
        for turn in 0..20u8 {
            pull.net.client_at = address(if same_host { 1 } else { 10 + turn }, 2000 + u16::from(turn));
            // Packets in flight to the old address, and a few round trips of silence, take less than half of the time.
            let read = pull.run(500);
            assert!(read > 250_000, "{read} bytes of 512,000 in turn {turn}");
        }
    }
}

/// A stream that is idle for now costs one probe, and a stream that has ended costs none.
#[test]
fn a_peer_that_has_nothing_to_send_is_asked_once() {
    let mut pull = Pull::new();
    pull.run(100);
    pull.net.run(Duration::from_millis(500));
    pull.net.seen.clear();
    pull.net.run(Duration::from_secs(9));
    assert!(pull.net.seen.is_empty(), "{} datagrams", pull.net.seen.len());
}
