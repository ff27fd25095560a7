//! Failures that users of other programs reported: docs/validation/reports.md.

use super::*;

/// s2n-quic#360: an interop case that lost the client's second to seventh datagram. Of their server, too little had come to be allowed more.
#[test]
fn a_handshake_survives_the_loss_of_the_clients_second_to_seventh_datagram() {
    let mut net = Net::new();
    let client = net.connect();
    let mut number = 0;
    for _ in 0..2_000 {
        net.drain();
        // Each is here once: it arrives within one round.
        let launched = std::mem::take(&mut net.in_flight).into_sorted_vec().into_iter().rev();
        let arrive = launched.filter(|Reverse((_, _, from, ..))| {
            number += u32::from(*from == client_address());
            *from != client_address() || !(2..=7).contains(&number)
        });
        net.in_flight = arrive.collect();
        net.run(net.one_way);
    }
    assert_eq!(net.client.get(client).unwrap().alive(), Ok(()));
    assert!(net.client.get(client).unwrap().is_connected());
    assert!(net.server.accept().is_some());
}

/// quic-go#1597: a connection whose handshake had a Retry ended after 80 s, whatever was sent.
#[test]
fn a_connection_that_began_with_a_retry_stays() {
    let mut net = Net::new();
    net.longest = crate::handshake::SHORT_INITIATION_LEN;
    let client = net.connect();
    net.run(Duration::from_secs(2));
    assert!(net.seen.iter().any(|(.., bytes)| bytes[0] == kind::RETRY), "the test wants one");
    net.run(Duration::from_secs(600));
    let session = net.client.session(client).unwrap();
    let stream = session.open().unwrap().unwrap();
    assert_eq!(session.write(stream, b"still there"), Ok(Some(11)));
    session.end_stream(stream).unwrap();
    net.run(Duration::from_secs(1));
    assert_eq!(net.read(), (b"still there".to_vec(), true));
}

/// quic-go#1275: one end of a path that was cut noticed it by its keep-alives, and the other waited for ever.
#[test]
fn both_ends_of_a_path_that_was_cut_notice_it() {
    let mut net = Net::new();
    let client = net.connect();
    net.run(Duration::from_secs(1));
    let server = net.server.accept().unwrap();
    net.lose = |_| true;
    net.run(Config::default().transport.idle_timeout + Duration::from_secs(1));
    assert_eq!(net.client.get(client).unwrap().alive(), Err(ConnectionError::TimedOut));
    assert_eq!(net.server.get(server).unwrap().alive(), Err(ConnectionError::TimedOut));
}
