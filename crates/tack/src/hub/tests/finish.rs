//! A client's third message, which tells the server who it is.

use super::*;

/// The client has nothing to say, so that no packet of its own repeats a message that was lost.
#[test]
fn a_client_says_its_last_message_again_when_the_servers_answer_comes_again() {
    let mut net = Net::new();
    // The initiation is datagram 0, the response 1.
    net.lose = |order| order == 2;
    net.connect();
    net.run(Duration::from_millis(20));
    let is = |wanted: u8| move |(_, _, bytes): &&(SocketAddr, SocketAddr, Vec<u8>)| bytes[0] == wanted;
    assert_eq!(net.seen.iter().filter(is(kind::FINISH)).count(), 1);
    assert!(net.server.accept().is_none(), "the message was lost");
    while net.seen.iter().filter(is(kind::RESPONSE)).count() < 2 {
        net.run(Duration::from_millis(1));
    }
    net.run(net.one_way * 2);
    assert_eq!(net.seen.iter().filter(is(kind::FINISH)).count(), 2);
    assert!(net.server.accept().is_some());
}
