//! Memory limit of a server over all clients: it never uses more, and the client that uses least is not affected.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::net::{Ipv4Addr, SocketAddr};

use std::time::Duration;

use tacit_tack::{Config, Connection, Endpoint, Identity, RecvStream, SendStream, StreamError};
use tokio::time::{sleep, timeout};

const PATIENCE: Duration = Duration::from_secs(60);
const CLIENTS: usize = 40;
const STREAMS: usize = 8;
const MAX: u64 = 24 << 20;

/// Writes on [`STREAMS`] streams that no task reads, until they are reset or accept no more data. Returns the remaining
/// streams and the number of reset ones.
async fn writes(connection: Connection) -> (Vec<(SendStream, RecvStream)>, usize) {
    let bytes = vec![1; 64 << 10];
    let mut streams = Vec::new();
    for _ in 0..STREAMS {
        streams.push(connection.open_bi().await.unwrap());
    }
    let (mut standing, mut given_up) = (Vec::new(), 0);
    for (mut send, receive) in streams {
        let written = timeout(Duration::from_secs(2), async {
            loop {
                if let Err(error) = send.write_all(&bytes).await {
                    return error;
                }
            }
        });
        match written.await {
            Ok(error) => {
                assert_eq!(
                    error,
                    StreamError::Stopped(StreamError::OUT_OF_MEMORY_CODE),
                    "the writer hears why"
                );
                given_up += 1;
            }
            Err(_) => standing.push((send, receive)),
        }
    }
    (standing, given_up)
}

#[tokio::test]
async fn forty_clients_whose_streams_nobody_reads_fill_no_more_than_max_memory() {
    let identity = Identity::generate();
    let key = identity.public_key();
    let mut config = Config::default();
    config.max_memory(MAX);
    let at: SocketAddr = (Ipv4Addr::LOCALHOST, 0).into();
    let server = Endpoint::server(at, identity, config, |_| true).unwrap();
    let address = server.local_addr();
    let accepting = server.clone();
    let serving = tokio::spawn(async move {
        let mut unread = Vec::new();
        while let Some(connection) = accepting.accept().await {
            unread.push(tokio::spawn(async move {
                let mut streams = Vec::new();
                while let Ok((send, mut receive)) = connection.accept_bi().await {
                    let mut first = [0];
                    // The stream may already be reset.
                    if receive.read_exact(&mut first).await.is_err() {
                        continue;
                    }
                    if first == [0] {
                        // A stream that gets an answer.
                        tokio::spawn(async move {
                            let (mut send, mut receive) = (send, receive);
                            tokio::io::copy(&mut receive, &mut send).await.unwrap();
                            send.finish().unwrap();
                            let _ = send.finished().await;
                        });
                    } else {
                        streams.push((send, receive));
                    }
                }
                streams
            }));
        }
    });
    let watched = server.clone();
    let watching = tokio::spawn(async move {
        let mut most = 0;
        loop {
            let metrics = watched.metrics();
            most = most.max(metrics.bytes_held);
            // Most bytes that one batch of received datagrams may add.
            assert!(metrics.bytes_held <= MAX + (4 << 20), "{} bytes are held", metrics.bytes_held);
            if metrics.counters.streams_given_up > 0 && most > MAX / 2 {
                return most;
            }
            sleep(Duration::from_millis(1)).await;
        }
    });
    let mut endpoints = Vec::new();
    let mut writing = Vec::new();
    for _ in 0..CLIENTS {
        let client =
            Endpoint::client((Ipv4Addr::UNSPECIFIED, 0).into(), Identity::generate(), Config::default())
                .unwrap();
        let connection = client.connect(address, key).await.unwrap();
        writing.push(tokio::spawn(writes(connection.clone())));
        endpoints.push((client, connection));
    }
    let most = timeout(PATIENCE, watching).await.expect("memory fills and something is given up").unwrap();
    assert!(most > MAX / 2, "the test fills it");
    // Another client still gets its answers.
    let client =
        Endpoint::client((Ipv4Addr::UNSPECIFIED, 0).into(), Identity::generate(), Config::default()).unwrap();
    let connection = client.connect(address, key).await.unwrap();
    for _ in 0..20 {
        let (mut send, mut receive) = connection.open_bi().await.unwrap();
        let bytes = vec![0; 10_000];
        send.write_all(&bytes).await.unwrap();
        send.finish().unwrap();
        let back = timeout(PATIENCE, receive.read_to_end(bytes.len())).await.unwrap().unwrap();
        assert_eq!(back.len(), bytes.len() - 1);
    }
    let (mut standing, mut given_up) = (Vec::new(), 0);
    for writing in writing {
        let (streams, count) = timeout(PATIENCE, writing).await.unwrap().unwrap();
        standing.extend(streams);
        given_up += count;
    }
    assert!(given_up > 0, "a writer heard that its stream was given up");
    assert!(server.metrics().bytes_held <= MAX);
    // After both ends drop their handles, all memory is released.
    serving.abort();
    drop((standing, endpoints, client, connection));
    let emptied = async {
        while server.metrics().bytes_held > 0 {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, emptied).await.expect("held memory is given back");
}
