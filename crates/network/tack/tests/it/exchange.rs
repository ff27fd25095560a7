//! Two endpoints on loopback.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use tacit_tack::{
    Config, CongestionControl, Connection, ConnectionError, Endpoint, Identity, Reached, ReadExactError,
    ReadToEndError, SendDatagramError, StreamError,
};
use tokio::time::timeout;

const SOON: Duration = Duration::from_secs(20);

fn loopback() -> SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

fn any() -> SocketAddr {
    ([0, 0, 0, 0], 0).into()
}

async fn pair() -> (Endpoint, Endpoint, Connection, Connection) {
    pair_with(&Config::default()).await
}

async fn pair_with(config: &Config) -> (Endpoint, Endpoint, Connection, Connection) {
    let (server_identity, client_identity) = (Identity::generate(), Identity::generate());
    let (server_key, client_key) = (server_identity.public_key(), client_identity.public_key());
    let server =
        Endpoint::server(loopback(), server_identity, config.clone(), move |key| *key == client_key).unwrap();
    let client = Endpoint::client(any(), client_identity, config.clone()).unwrap();
    let (there, here) = tokio::join!(server.accept(), client.connect(server.local_addr(), server_key));
    let (there, here) = (there.unwrap(), here.unwrap());
    assert_eq!((there.peer(), here.peer()), (client_key, server_key));
    (server, client, there, here)
}

#[tokio::test]
async fn bytes_cross_both_ways_and_streams_end() {
    timeout(SOON, async {
        let (_server, _client, there, here) = pair().await;
        let bytes: Vec<u8> = (0..3_000_000u32).map(|place| (place * 7 / 3) as u8).collect();
        let echo = tokio::spawn(async move {
            let (mut send, mut receive) = there.accept_bi().await.unwrap();
            let copied = tokio::io::copy(&mut receive, &mut send).await.unwrap();
            send.finish().unwrap();
            send.finished().await.unwrap();
            (there, copied)
        });
        let (mut send, mut receive) = here.open_bi().await.unwrap();
        let writing = async {
            send.write_all(&bytes).await.unwrap();
            send.finish().unwrap();
        };
        let (_, read) = tokio::join!(writing, receive.read_to_end(bytes.len()));
        assert!(read.unwrap() == bytes, "the bytes came back changed");
        let (there, copied) = echo.await.unwrap();
        assert_eq!(copied, bytes.len() as u64);
        here.close(7, "all there");
        assert_eq!(
            there.closed().await,
            ConnectionError::ApplicationClosed { code: 7, reason: "all there".to_owned() }
        );
    })
    .await
    .unwrap();
}

/// Another machine of the same user: its user compares no keys, and no second handshake follows.
#[tokio::test]
async fn a_server_with_the_clients_own_key_is_connected_at_once() {
    timeout(SOON, async {
        let identity = Identity::generate();
        let key = identity.public_key();
        let server = Endpoint::server(loopback(), identity.clone(), Config::default(), |_| true).unwrap();
        let client = Endpoint::client(any(), identity, Config::default()).unwrap();
        let (there, here) = tokio::join!(server.accept(), client.reach(server.local_addr()));
        let Ok(Reached::Connection(here)) = here else { panic!("no connection") };
        assert_eq!((there.unwrap().peer(), here.peer()), (key, key));
        assert_eq!(server.metrics().counters.handshakes_begun, 1);
    })
    .await
    .unwrap();
}

/// A host has several addresses, and left to itself the system answers from the first one of the route back: no client takes that
/// for an answer.
#[tokio::test]
async fn a_server_at_all_addresses_answers_from_the_one_that_was_asked() {
    timeout(SOON, async {
        for unspecified in ["0.0.0.0:0", "[::]:0"] {
            let identity = Identity::generate();
            let key = identity.public_key();
            let server =
                Endpoint::server(unspecified.parse().unwrap(), identity, Config::default(), |_| true);
            let server = server.unwrap();
            let client = Endpoint::client(any(), Identity::generate(), Config::default()).unwrap();
            let asked = SocketAddr::from(([127, 0, 0, 2], server.local_addr().port()));
            let (there, here) = tokio::join!(server.accept(), client.connect(asked, key));
            let (there, here) = (there.unwrap(), here.unwrap());
            assert_eq!(here.remote_address(), asked, "{unspecified}");
            // Batches too.
            let bytes = vec![7; 3_000_000];
            let (mut out, _) = there.open_bi().await.unwrap();
            let sent = bytes.clone();
            let writer = tokio::spawn(async move {
                out.write_all(&sent).await.unwrap();
                out.finish().unwrap();
            });
            let (_, mut back) = here.accept_bi().await.unwrap();
            let mut read = vec![0; bytes.len()];
            back.read_exact(&mut read).await.unwrap();
            assert!(read == bytes, "{unspecified}");
            writer.await.unwrap();
        }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_client_that_is_not_known_hears_that_it_may_not() {
    timeout(SOON, async {
        let server_identity = Identity::generate();
        let key = server_identity.public_key();
        let server = Endpoint::server(loopback(), server_identity, Config::default(), |_| false).unwrap();
        let client = Endpoint::client(any(), Identity::generate(), Config::default()).unwrap();
        let found = client.reach(server.local_addr()).await.unwrap();
        assert!(matches!(found, Reached::Key(found) if found == key));
        match client.connect(server.local_addr(), key).await {
            Err(ConnectionError::ApplicationClosed { .. }) => {}
            Ok(connection) => {
                let why = connection.closed().await;
                assert!(matches!(why, ConnectionError::ApplicationClosed { .. }), "{why:?}");
            }
            Err(other) => panic!("{other:?}"),
        }
        let other = Identity::generate().public_key();
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
            assert_eq!(there.read_datagram().await.unwrap(), vec![number; 100]);
        }
        let longest = here.max_datagram_size();
        let sent = here.send_datagram(Bytes::from(vec![0; longest + 1]));
        assert_eq!(sent, Err(SendDatagramError::TooLarge { len: longest + 1, max: longest }));
    })
    .await
    .unwrap();
}

/// The network reports that no program listens at a port, and the client returns this error instead of a timeout. The
/// hub's tests check in simulated time how soon.
#[tokio::test]
async fn a_server_that_is_not_there_is_told_at_once() {
    timeout(SOON, async {
        let client = Endpoint::client(any(), Identity::generate(), Config::default()).unwrap();
        let gone = std::net::UdpSocket::bind(loopback()).unwrap().local_addr().unwrap();
        let key = Identity::generate().public_key();
        let error = client.connect(gone, key).await.err();
        assert_eq!(error, Some(ConnectionError::Unreachable));
    })
    .await
    .unwrap();
}

/// Transfers `len` bytes to the server and back.
async fn echoed(config: &Config, len: usize) -> (Endpoint, Endpoint, Connection, Connection) {
    let (server, client, there, here) = pair_with(config).await;
    let echo = async {
        let (mut send, mut recv) = there.accept_bi().await.unwrap();
        let mut piece = [0; 10_000];
        while let Some(len) = recv.read(&mut piece).await.unwrap() {
            send.write_all(&piece[..len]).await.unwrap();
        }
        send.finish().unwrap();
        send.finished().await.unwrap();
    };
    let request = async {
        let (mut send, mut recv) = here.open_bi().await.unwrap();
        let writing = async {
            send.write_all(&vec![3; len]).await.unwrap();
            send.finish().unwrap();
        };
        let (_, read) = tokio::join!(writing, recv.read_to_end(len));
        assert!(read.unwrap() == vec![3; len], "the bytes came back changed");
    };
    tokio::join!(echo, request);
    (server, client, there, here)
}

#[tokio::test]
async fn every_congestion_control_moves_data() {
    use CongestionControl::{Bbr, Cubic, NewReno, TackBbr};
    timeout(SOON, async {
        for control in [TackBbr, Bbr, Cubic, NewReno] {
            let mut config = Config::default();
            config.congestion_control(control);
            let (_server, _client, _there, here) = echoed(&config, 1 << 20).await;
            let stats = here.stats();
            assert!(stats.bytes_sent >= 1 << 20 && stats.acks_received > 0, "{control:?}: {stats:?}");
        }
    })
    .await
    .unwrap();
}

/// Data is transferred with the extreme values of every setting.
#[tokio::test]
async fn no_setting_stops_a_connection() {
    timeout(SOON, async {
        let mut least = Config::default();
        least
            .receive_window(0)
            .max_receive_window(0)
            .min_stream_window(0)
            .max_stream_window(0)
            .send_window(0);
        least.max_concurrent_bidi_streams(0).initial_mtu(0).max_mtu(0).ecn(false);
        least.acks_per_rtt(0).packets_per_ack(0).min_ack_interval(Duration::ZERO);
        echoed(&least, 1 << 16).await;
        let mut most = Config::default();
        most.receive_window(u64::MAX).max_receive_window(u64::MAX).min_stream_window(u64::MAX);
        most.max_stream_window(u64::MAX).send_window(u64::MAX).max_memory(u64::MAX);
        most.max_concurrent_bidi_streams(u16::MAX).max_mtu(u16::MAX);
        most.acks_per_rtt(u8::MAX).packets_per_ack(u8::MAX).min_ack_interval(Duration::MAX);
        most.max_idle_timeout(Duration::MAX).keep_alive_interval(Some(Duration::MAX));
        echoed(&most, 1 << 16).await;
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn streams_say_how_they_ended() {
    timeout(SOON, async {
        let (_server, _client, there, here) = pair().await;
        let (mut send, _) = here.open_bi().await.unwrap();
        send.write_all(b"0123456789").await.unwrap();
        send.finish().unwrap();
        assert_eq!(send.write(b"more").await, Err(StreamError::Closed));
        let (_, mut recv) = there.accept_bi().await.unwrap();
        let mut piece = [0; 4];
        recv.read_exact(&mut piece).await.unwrap();
        assert_eq!(&piece, b"0123");
        assert_eq!(recv.read_exact(&mut [0; 7]).await, Err(ReadExactError::FinishedEarly(6)));
        assert_eq!(recv.read(&mut piece).await, Ok(None));

        let (mut send, _) = here.open_bi().await.unwrap();
        send.write_all(&[0; 1001]).await.unwrap();
        send.finish().unwrap();
        let (_, mut recv) = there.accept_bi().await.unwrap();
        assert_eq!(recv.read_to_end(1000).await, Err(ReadToEndError::TooLong(1000)));

        let (mut send, _) = here.open_bi().await.unwrap();
        send.write_all(b"part").await.unwrap();
        let (_, mut recv) = there.accept_bi().await.unwrap();
        recv.read_exact(&mut piece).await.unwrap();
        send.reset(5);
        assert_eq!(recv.read(&mut piece).await, Err(StreamError::Reset(5)));
    })
    .await
    .unwrap();
}

/// After an endpoint is closed, both ends of all connections get the reason, and no more connections can be opened,
/// even if handles still exist.
#[tokio::test]
async fn a_closed_endpoint_has_no_connections() {
    timeout(SOON, async {
        let (server, client, there, here) = pair().await;
        // A connection that no task accepts.
        let waits = client.connect(server.local_addr(), here.peer()).await.unwrap();
        assert_eq!(here.close_reason(), None);
        server.close(9, "going away");
        server.wait_idle().await;
        assert!(server.accept().await.is_none());
        let closed = ConnectionError::ApplicationClosed { code: 9, reason: "going away".to_owned() };
        assert_eq!((here.closed().await, waits.closed().await), (closed.clone(), closed.clone()));
        assert_eq!(
            (here.close_reason(), there.close_reason()),
            (Some(closed), Some(ConnectionError::LocallyClosed))
        );
        // This client gets no answer, so it alone has a short idle timeout.
        let mut config = Config::default();
        config.max_idle_timeout(Duration::from_millis(500));
        let late = Endpoint::client(any(), Identity::generate(), config).unwrap();
        let refused = late.connect(server.local_addr(), here.peer()).await.err();
        assert_eq!(refused, Some(ConnectionError::TimedOut));
        let refused = server.connect(client.local_addr(), there.peer()).await.err();
        assert_eq!(refused, Some(ConnectionError::LocallyClosed));
        drop((here, there, waits));
        while server.open_connections() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .unwrap();
}
