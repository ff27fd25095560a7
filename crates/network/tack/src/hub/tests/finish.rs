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
    let of = |net: &Net, wanted: u8| -> Vec<Vec<u8>> {
        net.seen.iter().map(|(.., bytes)| bytes.clone()).filter(|bytes| bytes[0] == wanted).collect()
    };
    let (mut responses, finishes) = (of(&net, kind::RESPONSE), of(&net, kind::FINISH));
    assert_eq!((responses.len(), finishes.len()), (1, 1));
    assert!(net.server.accept().is_none(), "the message was lost");
    net.client.handle(net.now, server_address(), Ecn::NotEct, &mut responses[0]);
    let mut again = Vec::new();
    net.client.poll_transmit(net.now, &mut again);
    assert_eq!(again, finishes[0]);
}

/// Which copy of an initiation was answered is not known, so there is no round-trip time. The initial timeout of a second for
/// all that follows would make a copy over a lossy path take several.
#[test]
fn what_is_lost_behind_a_repeated_initiation_is_repeated_soon() {
    let mut net = Net::new();
    net.lose_at = |now| {
        let millis = (now - Instant::ZERO).as_nanos() / 1_000_000;
        millis == 0 || (256..280).contains(&millis)
    };
    let client = net.connect();
    net.run(Duration::from_millis(270));
    let session = net.client.session(client).unwrap();
    let stream = session.open().unwrap().expect("the response came at 260 ms");
    session.write(stream, &payload(100)).unwrap();
    net.run(Duration::from_millis(330));
    assert_eq!(net.read().0, payload(100), "after 600 ms");
}
