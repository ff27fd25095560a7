//! Sockets over a link under tokio's paused clock.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::time::Duration;

use tacit_testlink::{Builder, MOST_BYTES, MOST_WAITING, Socket, Testlink, TestlinkError};
use tokio::time::{Instant, sleep, timeout};

fn slow() -> Builder {
    // 10 Mb/s and 20 ms each way, and room for what the tests send at once.
    Testlink::over("wired-10").set("wired.rate=10Mbps").set("wired.delay=20 ms").set("wired.queue=10 MB")
}

fn numbered(number: u32) -> Vec<u8> {
    let mut bytes = vec![7; 1000];
    bytes[..4].copy_from_slice(&number.to_be_bytes());
    bytes
}

fn number(datagram: &[u8]) -> u32 {
    assert!(datagram.len() == 1000 && datagram[4..].iter().all(|byte| *byte == 7), "its content changed");
    u32::from_be_bytes(datagram[..4].try_into().unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_round_trip_takes_the_time_of_the_link_and_none_of_the_machine() {
    let (mut client, mut server) = slow().sockets().unwrap();
    let answering = tokio::spawn(async move {
        let asked = server.recv().await.unwrap();
        server.send(asked).unwrap();
        server
    });
    let began = Instant::now();
    client.send(numbered(3)).unwrap();
    let back = timeout(Duration::from_secs(60), client.recv()).await.expect("the link stands still");
    assert_eq!(number(&back.unwrap()), 3);
    // 2 × (20 ms and 822 us), each received at the next millisecond.
    assert_eq!(began.elapsed(), Duration::from_millis(42));
    answering.await.unwrap();
    // An hour without a datagram, which a test would not outlast if the machine's clock decided.
    assert!(timeout(Duration::from_secs(3600), client.recv()).await.is_err());
}

/// Arrivals of 300 datagrams in bursts, by time, of a program in which both ends send.
async fn program(builder: &Builder) -> Vec<(Duration, bool, u32)> {
    let (mut client, mut server) = builder.sockets().unwrap();
    let began = Instant::now();
    let mut arrived = Vec::new();
    for burst in 0..10 {
        for within in 0..15 {
            client.send(numbered(100 * burst + within)).unwrap();
            server.send(numbered(100 * burst + within)).unwrap();
        }
        let end = sleep(Duration::from_millis(7));
        tokio::pin!(end);
        loop {
            tokio::select! {
                biased;
                datagram = client.recv() => arrived.push((began.elapsed(), true, number(&datagram.unwrap()))),
                datagram = server.recv() => arrived.push((began.elapsed(), false, number(&datagram.unwrap()))),
                () = &mut end => break,
            }
        }
    }
    arrived
}

#[tokio::test(start_paused = true)]
async fn equal_seeds_have_equal_arrivals_and_others_have_not() {
    let link = Testlink::over("lossy-11n-150").set("wired.delay=2 ms").background(2);
    let first = program(&link.clone().seed(1)).await;
    assert!(first.len() > 100, "{}", first.len());
    assert_eq!(first, program(&link.clone().seed(1)).await);
    assert_ne!(first, program(&link.clone().seed(2)).await);
}

#[tokio::test(start_paused = true)]
async fn sockets_carry_what_the_link_carries() {
    let builder = slow();
    let (client, mut server) = builder.sockets().unwrap();
    for number in 0..200 {
        client.send(numbered(number)).unwrap();
    }
    let mut by_socket = Vec::new();
    while let Ok(datagram) = timeout(Duration::from_secs(1), server.recv()).await {
        by_socket.push(number(&datagram.unwrap()));
    }
    assert_eq!(by_socket, (0..200).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_loses_no_datagram() {
    let (client, mut server) = slow().sockets().unwrap();
    for number in 0..50 {
        client.send(numbered(number)).unwrap();
    }
    let mut got = Vec::new();
    while got.len() < 50 {
        // Every one of these ends before a datagram comes, or with it.
        if let Ok(datagram) = timeout(Duration::from_micros(300), server.recv()).await {
            got.push(number(&datagram.unwrap()));
        }
    }
    assert_eq!(got, (0..50).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn a_datagram_that_has_not_arrived_is_not_there() {
    let (client, mut server) = slow().sockets().unwrap();
    client.send(numbered(1)).unwrap();
    assert!(server.try_recv().unwrap().is_none());
    sleep(Duration::from_millis(20)).await;
    assert!(server.try_recv().unwrap().is_none());
    // It arrives after 20.8 ms, so the clock's timer has run at 21 ms.
    sleep(Duration::from_millis(2)).await;
    assert_eq!(server.try_recv().unwrap().map(|datagram| number(&datagram)), Some(1));
    assert!(server.try_recv().unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn an_end_that_does_not_read_has_a_buffer_with_a_limit() {
    let (client, mut server) = slow().sockets().unwrap();
    let count = MOST_WAITING + 100;
    for _ in 0..count {
        client.send(vec![0; 100]).unwrap();
    }
    sleep(Duration::from_secs(10)).await;
    let mut waiting = 0;
    while server.try_recv().unwrap().is_some() {
        waiting += 1;
    }
    assert_eq!(waiting, MOST_WAITING);
    // There is room again.
    client.send(numbered(9)).unwrap();
    assert_eq!(number(&server.recv().await.unwrap()), 9);
}

#[tokio::test(start_paused = true)]
async fn the_other_end_may_be_gone() {
    let (client, server) = slow().sockets().unwrap();
    drop(server);
    client.send(numbered(1)).unwrap();
    sleep(Duration::from_secs(1)).await;
    client.send(numbered(2)).unwrap();
    assert!(matches!(client.send(vec![0; MOST_BYTES + 1]), Err(TestlinkError::TooLong(1473))));
}

#[test]
fn a_link_ends_with_its_runtime() {
    let runtime =
        || tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let (_client, mut server): (Socket, Socket) = runtime().block_on(async { slow().sockets() }).unwrap();
    let error = runtime().block_on(server.recv()).unwrap_err();
    assert!(matches!(error, TestlinkError::Ended), "{error}");
}
