//! A client's third message, which tells the server who it is.

use super::*;

/// A response that comes again says that the message was lost: the client does not wait for its own timer.
#[test]
fn a_client_says_its_last_message_again_when_the_servers_answer_comes_again() {
    let mut net = Net::new();
    // The initiation is datagram 0, the response 1.
    net.lose = |order| order == 2;
    net.connect();
    net.run(Duration::from_millis(20));
    let sent = |net: &Net, wanted: u8| -> Vec<Vec<u8>> {
        net.seen.iter().map(|(.., bytes)| bytes.clone()).filter(|bytes| bytes[0] == wanted).collect()
    };
    let (mut responses, finishes) = (sent(&net, kind::RESPONSE), sent(&net, kind::FINISH));
    assert_eq!((responses.len(), finishes.len()), (1, 1));
    assert!(net.server.accept().is_none(), "the message was lost");
    net.client.handle(net.now, server_address(), Ecn::NotEct, &mut responses[0]);
    let mut again = Vec::new();
    net.client.poll_transmit(net.now, &mut again);
    assert_eq!(again, finishes[0]);
}

/// Nothing that follows can be read before it is there, so each probe brings it again.
#[test]
fn a_last_message_that_is_lost_leaves_again_with_the_first_probe() {
    let mut net = Net::new();
    net.lose = |order| order == 2;
    let client = net.connect();
    net.run(Duration::from_millis(11));
    let session = net.client.session(client).unwrap();
    let stream = session.open().unwrap().expect("the response came at 10 ms");
    session.write(stream, &payload(100)).unwrap();
    // The round trip of 10 ms, its variance, and 25 ms that an acknowledgment may wait: the probe leaves at 65 ms.
    net.run(Duration::from_millis(64));
    assert_eq!(net.read().0, payload(100), "after 75 ms");
}

/// A client whose third message alone is lost until `millis`, with the milliseconds until its 100 bytes are there or it has ended.
fn without_finish(lose_at: fn(Instant, u8) -> bool) -> (u64, Result<(), ConnectionError>) {
    let mut net = Net::new();
    net.lose_at = lose_at;
    let client = net.connect();
    net.run(Duration::from_millis(11));
    let session = net.client.session(client).unwrap();
    let stream = session.open().unwrap().expect("the response came at 10 ms");
    session.write(stream, &payload(100)).unwrap();
    for millis in 11..60_000 {
        let alive = net.client.session(client).unwrap().alive();
        if net.server.has_accepted() || alive.is_err() {
            return (millis, alive);
        }
        net.run(Duration::from_millis(1));
    }
    panic!("a client waits for ever");
}

fn millis_of(now: Instant) -> u64 {
    (now - Instant::ZERO).as_nanos() / 1_000_000
}

/// A server waits ten seconds for it. One that has forgotten the client resets it.
#[test]
fn a_last_message_that_is_lost_for_seconds_still_arrives_and_later_the_client_hears_that() {
    let (there, alive) = without_finish(|now, first| first == kind::FINISH && millis_of(now) < 8_000);
    assert!(there < 9_600 && alive.is_ok(), "{there} ms, {alive:?}");
    let (over, alive) = without_finish(|now, first| first == kind::FINISH && millis_of(now) < 11_000);
    assert_eq!(alive, Err(ConnectionError::ServerRestarted));
    assert!((10_000..13_000).contains(&over), "{over} ms");
}

/// The message proves who the client is, wherever it comes from. Where it comes from is proved afterwards, as of any client that moves.
#[test]
fn a_client_that_moves_before_its_last_message_is_served() {
    for moved in [address(1, 7777), address(7, 7777)] {
        let mut net = Net::new();
        net.lose = |order| order == 2;
        let client = net.connect();
        net.run(Duration::from_millis(11));
        net.client_at = moved;
        let session = net.client.session(client).unwrap();
        let stream = session.open().unwrap().expect("the response came at 10 ms");
        session.write(stream, &payload(100_000)).unwrap();
        session.end_stream(stream).unwrap();
        net.run(Duration::from_secs(2));
        let server = net.server.accept().expect("a client connected");
        let session = net.server.session(server).unwrap();
        assert_eq!((session.remote(), read_opened(session)), (moved, (payload(100_000), true)));
    }
}

/// Which copy of an initiation was answered is not known, so there is no round-trip time. It is guessed from the last copy: the
/// initial timeout of a second for all that follows would make a copy over a lossy path take several.
#[test]
fn what_is_lost_behind_a_repeated_initiation_is_repeated_soon() {
    let mut net = Net::new();
    net.lose_at = |now, _| {
        let millis = (now - Instant::ZERO).as_nanos() / 1_000_000;
        millis == 0 || (256..280).contains(&millis)
    };
    let client = net.connect();
    net.run(Duration::from_millis(270));
    let session = net.client.session(client).unwrap();
    let stream = session.open().unwrap().expect("the response came at 260 ms");
    session.write(stream, &payload(100)).unwrap();
    net.run(Duration::from_millis(90));
    assert_eq!(net.read().0, payload(100), "after 360 ms");
}

/// After the first second an end that cannot get through takes no more of the air than a SYN (RFC 6298).
#[test]
fn an_initiation_is_repeated_steadily_for_a_second_before_the_wait_doubles() {
    let mut net = Net::new();
    net.lose = |_| true;
    net.connect();
    let mut times = Vec::new();
    for millis in 0..3_000 {
        net.run(Duration::from_millis(1));
        let whole = |(_, _, bytes): &(SocketAddr, SocketAddr, Vec<u8>)| bytes.len() == 1200;
        times.extend(net.seen.drain(..).any(|seen| whole(&seen)).then_some(millis));
    }
    assert_eq!(times, [0, 249, 499, 749, 999, 1499, 2499]);
}
