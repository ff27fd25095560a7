//! Paths that carry less than the 1,228 bytes of a usual first packet, without a word about it.

use super::*;
use crate::handshake::{INITIATION_LEN, SHORT_INITIATION_LEN};

/// Bytes of UDP payload in IPv4 packets of 1,000 bytes and of 576.
const NARROW: [usize; 2] = [972, 548];
/// Bytes of a transfer: what a stream takes at once.
const LEN: usize = 256 << 10;

impl Net {
    /// Kinds of the handshake datagrams, with their lengths.
    fn handshake_seen(&self) -> Vec<(u8, usize)> {
        let of_handshake = self.seen.iter().filter(|(.., bytes)| is_handshake(bytes));
        of_handshake.map(|(.., bytes)| (bytes[0], bytes.len())).collect()
    }
}

/// What a server answers to `bytes` at once.
fn answer(net: &mut Net, bytes: &[u8]) -> Vec<Vec<u8>> {
    net.server.handle(net.now, client_address(), Ecn::NotEct, &mut bytes.to_vec());
    let mut answers = Vec::new();
    let mut answer = Vec::new();
    while net.server.poll_transmit(net.now, &mut answer).is_some() {
        answers.push(std::mem::take(&mut answer));
    }
    answers
}

#[test]
fn a_connection_is_opened_on_a_narrow_path_and_carries_data() {
    for longest in NARROW {
        let mut net = Net::new();
        net.longest = longest;
        let client = net.connect();
        // Two of full length, after 250 and 750 ms; a Retry and an answer.
        net.run(Duration::from_millis(800));
        assert!(net.client.get(client).unwrap().is_connected(), "{longest}");
        let session = net.client.session(client).unwrap();
        let stream = session.open().unwrap().unwrap();
        assert_eq!(session.write(stream, &payload(200_000)), Ok(Some(200_000)));
        session.end_stream(stream).unwrap();
        net.run(Duration::from_secs(5));
        assert!(net.read() == (payload(200_000), true), "{longest}");
        let too_long = net.seen.iter().filter(|(.., bytes)| bytes.len() > longest).count();
        assert!(
            too_long < 40,
            "{too_long} datagrams that cannot pass: packets begin short, and few probes are longer"
        );
    }
}

/// The server begins with short packets, too: it is the first to send data here.
#[test]
fn a_server_on_a_narrow_path_begins_with_short_packets() {
    let mut net = Net::new();
    net.longest = 548;
    let client = net.connect();
    net.run(Duration::from_millis(800));
    let server = net.server.accept().expect("a client connected");
    let session = net.server.session(server).unwrap();
    let stream = session.open().unwrap().unwrap();
    assert_eq!(session.write(stream, &payload(2_000)), Ok(Some(2_000)));
    session.end_stream(stream).unwrap();
    net.run(Duration::from_millis(100));
    let session = net.client.session(client).unwrap();
    assert!(read_opened(session) == (payload(2_000), true), "within a few round trips, without a timeout");
}

#[test]
fn a_path_of_usual_length_sees_no_short_initiation() {
    let mut net = Net::new();
    net.connect();
    net.run(Duration::from_secs(1));
    let lens: Vec<usize> = net.handshake_seen().into_iter().map(|(_, len)| len).collect();
    assert_eq!(lens.first(), Some(&INITIATION_LEN));
    assert!(!lens.contains(&SHORT_INITIATION_LEN), "{lens:?}");
}

/// RFC 9000 section 8.1: a short initiation may come from a forged address, and pays for little.
#[test]
fn a_short_initiation_gets_a_retry_and_no_state() {
    let mut net = Net::new();
    net.longest = 0;
    net.connect();
    net.run(Duration::from_secs(1));
    // In a batch behind a longer one it would be lost with that.
    let lens: Vec<usize> = net.handshake_seen().into_iter().map(|(_, len)| len).collect();
    assert_eq!(lens[..4], [INITIATION_LEN, INITIATION_LEN, SHORT_INITIATION_LEN, INITIATION_LEN]);
    let short = net.seen.iter().map(|(.., bytes)| bytes.clone()).find(|bytes| bytes.len() < INITIATION_LEN);
    let short = short.expect("the client tries a short one within a second");
    for _ in 0..100 {
        let answers = answer(&mut net, &short);
        assert_eq!(answers.iter().map(|answer| answer[0]).collect::<Vec<_>>(), [kind::RETRY]);
        assert!(answers[0].len() < short.len() / 3);
    }
    assert_eq!((net.server.len(), net.server.metrics().handshakes_open), (0, 0));
    // Any shorter one is no initiation.
    assert_eq!(answer(&mut net, &short[..SHORT_INITIATION_LEN - 1]), Vec::<Vec<u8>>::new());
}

/// Two probe timeouts pass until the sender knows, of a round trip, the wait for an acknowledgment and more each.
#[test]
fn a_path_that_becomes_narrow_stands_still_for_two_probe_timeouts() {
    for longest in NARROW {
        let mut net = Net::new();
        net.one_way = Duration::from_millis(10);
        net.per_byte[0] = Duration::from_nanos(400);
        let mut bulk = Bulk::begin(&mut net);
        let (mut still, mut stillest, mut rates) = (0, 0, Vec::new());
        for step in 0..400 {
            if step == 100 {
                net.longest = longest;
            }
            let before = bulk.read;
            bulk.step(&mut net);
            still = if bulk.read == before { still + 1 } else { 0 };
            stillest = stillest.max(if step < 20 { 0 } else { still });
            rates.push(bulk.read - before);
        }
        let mean = |from: usize| rates[from..from + 50].iter().sum::<usize>() / 50;
        println!("{longest}: {stillest} * 10 ms, then {} of {} bytes", mean(200), mean(50));
        assert!(stillest <= 40, "{longest}: {stillest} * 10 ms");
        assert!(mean(200) >= mean(50) * 8 / 10, "{longest}: {} of {} bytes in 10 ms", mean(200), mean(50));
    }
}

/// The server has many holes to report when the path becomes narrow: its TACKs of full length pass no more.
#[test]
fn a_path_that_becomes_narrow_amid_losses_carries_the_rest() {
    for longest in NARROW {
        let mut net = Net::new();
        net.per_byte[0] = Duration::from_micros(2);
        net.one_way = Duration::from_millis(50);
        net.begin(LEN);
        net.lose = |order| scattered(order).is_multiple_of(4);
        net.run(Duration::from_millis(300));
        net.longest = longest;
        net.run(Duration::from_secs(25));
        let (read, ended) = net.read();
        assert!(read == payload(LEN) && ended, "{longest}: {} bytes", read.len());
    }
}

/// A challenge of full length does not reach the new address.
#[test]
fn a_client_moves_on_a_narrow_path() {
    for longest in NARROW {
        let mut net = Net::new();
        net.longest = longest;
        let (client, _) = net.begin(LEN);
        net.per_byte[0] = Duration::from_micros(2);
        net.run(Duration::from_millis(100));
        net.client_at = address(1, 1001);
        net.run(Duration::from_secs(20));
        assert!(net.read() == (payload(LEN), true), "{longest}");
        assert!(net.client.session(client).unwrap().alive().is_ok());
        assert_eq!(net.server.metrics().counters.paths_changed, 1, "{longest}");
    }
}

/// Short packets pass, so neither end times out by itself.
#[test]
fn a_path_that_carries_no_data_at_all_ends_the_connection_and_says_why() {
    for is_push in [true, false] {
        let mut net = Net::new();
        net.per_byte[0] = Duration::from_micros(2);
        let client = net.connect();
        net.run(Duration::from_secs(1));
        let server = net.server.accept().expect("a client connected");
        let sender = if is_push { net.client.session(client) } else { net.server.session(server) }.unwrap();
        let stream = sender.open().unwrap().unwrap();
        assert_eq!(sender.write(stream, &payload(LEN)), Ok(Some(LEN)));
        // The link to the client is fast: the server has sent its first window, and nothing of it is acknowledged.
        net.run(Duration::from_millis(if is_push { 50 } else { 7 }));
        net.longest = 400;
        net.seen.clear();
        let idle = Config::default().transport.idle_timeout;
        net.run(idle - Duration::from_secs(1));
        assert_eq!(net.client.get(client).unwrap().alive(), Ok(()), "a path may change for a while");
        net.run(Duration::from_secs(5));
        for alive in [net.client.get(client).unwrap().alive(), net.server.get(server).unwrap().alive()] {
            assert_eq!(alive, Err(ConnectionError::PathTooNarrow), "{is_push}");
        }
        // Twenty a second: neither end is busy.
        assert!(net.seen.len() < 20 * 34, "{} datagrams in vain", net.seen.len());
    }
    assert_eq!(
        ConnectionError::PathTooNarrow.to_string(),
        "the path carries no packets of 576 bytes: its MTU is smaller"
    );
}
