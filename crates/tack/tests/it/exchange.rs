//! Two endpoints on loopback.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tacit_tack::{Config, Connection, ConnectionError, Endpoint, Identity};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

const SOON: Duration = Duration::from_secs(20);

fn loopback() -> SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

async fn pair() -> (Endpoint, Endpoint, Connection, Connection) {
    let (server_identity, client_identity) = (Identity::generate(), Identity::generate());
    let (server_key, client_key) = (server_identity.public(), client_identity.public());
    let server = Endpoint::server(
        loopback(),
        server_identity,
        Config::default(),
        Arc::new(move |key| *key == client_key),
    )
    .unwrap();
    let client = Endpoint::client(server.local_addr(), client_identity, Config::default()).unwrap();
    let (there, here) = tokio::join!(server.accept(), client.connect(server.local_addr(), server_key));
    let (there, here) = (there.unwrap(), here.unwrap());
    assert_eq!((there.peer(), here.peer()), (client_key, server_key));
    (server, client, there, here)
}

#[tokio::test]
async fn octets_cross_both_ways_and_streams_end() {
    timeout(SOON, async {
        let (_server, _client, there, here) = pair().await;
        let octets: Vec<u8> = (0..3_000_000u32).map(|place| (place * 7 / 3) as u8).collect();
        let echo = tokio::spawn(async move {
            let (mut send, mut receive) = there.accept().await.unwrap();
            let copied = tokio::io::copy(&mut receive, &mut send).await.unwrap();
            send.shutdown().await.unwrap();
            send.finished().await.unwrap();
            (there, copied)
        });
        let (mut send, mut receive) = here.open().await.unwrap();
        let writing = async {
            send.write_all(&octets).await.unwrap();
            send.shutdown().await.unwrap();
        };
        let mut read = Vec::new();
        let (_, len) = tokio::join!(writing, receive.read_to_end(&mut read));
        assert_eq!(len.unwrap(), octets.len());
        assert!(read == octets, "the octets came back changed");
        let (there, copied) = echo.await.unwrap();
        assert_eq!(copied, octets.len() as u64);
        here.close(7, "all there");
        assert_eq!(there.closed().await, ConnectionError::Closed { code: 7, text: "all there".to_owned() });
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_client_that_is_not_known_hears_that_it_may_not() {
    timeout(SOON, async {
        let server_identity = Identity::generate();
        let key = server_identity.public();
        let server =
            Endpoint::server(loopback(), server_identity, Config::default(), Arc::new(|_| false)).unwrap();
        let client = Endpoint::client(server.local_addr(), Identity::generate(), Config::default()).unwrap();
        assert_eq!(client.learn(server.local_addr()).await.unwrap(), key);
        match client.connect(server.local_addr(), key).await {
            Err(ConnectionError::Closed { .. }) => {}
            Ok(connection) => {
                let why = connection.closed().await;
                assert!(matches!(why, ConnectionError::Closed { .. }), "{why:?}");
            }
            Err(other) => panic!("{other:?}"),
        }
        let other = Identity::generate().public();
        let wrong = client.connect(server.local_addr(), other).await.err();
        assert_eq!(wrong, Some(ConnectionError::WrongPeer { expected: other, found: key }));
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn datagrams_cross() {
    timeout(SOON, async {
        let (_server, _client, there, here) = pair().await;
        for number in 0..10u8 {
            here.send_datagram(Bytes::from(vec![number; 100])).unwrap();
            assert_eq!(there.receive_datagram().await.unwrap(), vec![number; 100]);
        }
        let longest = here.max_datagram();
        assert!(here.send_datagram(Bytes::from(vec![0; longest + 1])).is_err());
    })
    .await
    .unwrap();
}

/// A port where nobody listens, and a server that ends under its connection without a word, are told in less than a second.
#[tokio::test]
async fn a_server_that_is_not_there_is_told_at_once() {
    timeout(SOON, async {
        let began = tokio::time::Instant::now();
        let client = Endpoint::client(loopback(), Identity::generate(), Config::default()).unwrap();
        let gone = std::net::UdpSocket::bind(loopback()).unwrap().local_addr().unwrap();
        let key = Identity::generate().public();
        let error = client.connect(gone, key).await.err();
        assert_eq!(error, Some(ConnectionError::Unreachable));
        assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    })
    .await
    .unwrap();
}
