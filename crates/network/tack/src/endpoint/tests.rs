//! Concurrent users of connections that share a socket.

use std::net::Ipv4Addr;
use std::sync::mpsc;
use std::thread::JoinHandle;

use tokio::time::timeout;

use super::*;
use crate::StreamError;

const PATIENCE: Duration = Duration::from_secs(20);
/// Shorter than the time after which an idle connection does anything by itself.
const SOON: Duration = Duration::from_secs(5);

/// A user's call that takes a long time.
struct LongCall {
    thread: JoinHandle<()>,
    end: mpsc::Sender<()>,
}

impl LongCall {
    /// Starts the call, and returns once it is running.
    fn begin(connection: &Connection) -> Self {
        let ((end, ended), (began, begins)) = (mpsc::channel(), mpsc::channel());
        let handle = connection.handle.clone();
        let thread = std::thread::spawn(move || {
            handle.with(|_| {
                began.send(()).unwrap();
                // If the test failed, the sender is gone and this returns as well.
                let _ = ended.recv();
            });
        });
        begins.recv().unwrap();
        Self { thread, end }
    }

    fn end(self) {
        self.end.send(()).unwrap();
        self.thread.join().unwrap();
    }
}

/// Echoes each stream.
async fn echo(connection: Connection) {
    while let Ok((mut send, mut recv)) = connection.accept_bi().await {
        tokio::spawn(async move {
            tokio::io::copy(&mut recv, &mut send).await.unwrap();
            send.finish().unwrap();
            let _ = send.finished().await;
        });
    }
}

async fn is_echoed(connection: &Connection, bytes: &[u8]) {
    let (mut send, mut recv) = connection.open_bi().await.unwrap();
    let write = async {
        send.write_all(bytes).await.unwrap();
        send.finish().unwrap();
    };
    let ((), read) = tokio::join!(write, recv.read_to_end(bytes.len()));
    assert!(read.unwrap() == bytes, "other bytes came back");
}

/// Two connections of one client, and the server's ends of them.
async fn two() -> (Endpoint, Endpoint, PublicKey, [Connection; 2], [Connection; 2]) {
    let identity = Identity::generate();
    let key = identity.public_key();
    let at = (Ipv4Addr::LOCALHOST, 0).into();
    let server = Endpoint::server(at, identity, Config::default(), |_| true).unwrap();
    let client = Endpoint::client(at, Identity::generate(), Config::default()).unwrap();
    let connect = async || {
        let (there, here) = tokio::join!(server.accept(), client.connect(server.local_addr(), key));
        (there.unwrap(), here.unwrap())
    };
    let ((there, here), (other_there, other_here)) = (connect().await, connect().await);
    (server, client, key, [here, other_here], [there, other_there])
}

/// A thread stays in a call on one connection while another connection transfers megabytes and a third one is opened:
/// first at the server's end, then at the client's. Afterwards the busy connection has all data that arrived meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_call_of_one_connection_holds_up_no_other() {
    let (server, client, key, [busy, other], [busy_there, other_there]) = two().await;
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|at| (at * 7 / 3) as u8).collect();
    tokio::spawn(echo(other_there));
    for held in [&busy_there, &busy] {
        let sender = if std::ptr::eq(held, &busy) { &busy_there } else { &busy };
        let (mut send, _recv) = sender.open_bi().await.unwrap();
        let call = LongCall::begin(held);
        send.write_all(&bytes[..100_000]).await.unwrap();
        send.finish().unwrap();
        let beside = async {
            is_echoed(&other, &bytes).await;
            let (there, here) = tokio::join!(server.accept(), client.connect(server.local_addr(), key));
            here.unwrap().close(0, "");
            there.unwrap().closed().await;
        };
        timeout(PATIENCE, beside).await.expect("others wait for the call");
        call.end();
        let read = async {
            let (_send, mut recv) = held.accept_bi().await.unwrap();
            recv.read_to_end(bytes.len()).await.unwrap()
        };
        assert!(timeout(PATIENCE, read).await.expect("the busy one goes on") == bytes[..100_000]);
    }
}

/// A reader waits while another user's call has locked the session, and that call panics. The driver has skipped the
/// datagram, and only the mark of the call brings it back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_leaves_its_mark_when_it_ends() {
    let (_server, _client, _, [here, _other], [there, _other_there]) = two().await;
    let mut reading = pin!(there.read_datagram());
    let waits = timeout(Duration::from_millis(50), &mut reading).await;
    assert!(waits.is_err(), "nothing was sent yet");
    let handle = there.handle.clone();
    let (began, begins) = mpsc::channel();
    let (end, ended) = mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        handle.with(|_| {
            began.send(()).unwrap();
            let _ = ended.recv();
            panic!("as the test wants it");
        });
    });
    begins.recv().unwrap();
    here.send_datagram(Bytes::from_static(b"late")).unwrap();
    // By then the driver has found the session locked.
    tokio::time::sleep(Duration::from_millis(50)).await;
    // The peer sends no probe that would wake the driver later.
    let silence = LongCall::begin(&here);
    drop(end);
    assert!(thread.join().is_err());
    let read = timeout(SOON, reading).await.expect("the driver came back");
    assert_eq!(read.unwrap(), b"late"[..]);
    silence.end();
}

/// A sender that does not wait loses what does not fit in the queue, and can see how much that is.
#[tokio::test]
async fn datagrams_that_wait_for_room_are_not_dropped() {
    const MANY: usize = 1_000;
    let (_server, _client, _, [here, _other], [there, _other_there]) = two().await;
    let room = here.datagram_send_buffer_space();
    assert!((1..MANY).contains(&room), "{room}");
    // The driver does not run between these calls.
    for _ in 0..MANY {
        here.send_datagram(Bytes::from_static(b"at once")).unwrap();
    }
    assert_eq!(here.datagram_send_buffer_space(), 0);
    assert_eq!(here.stats().datagrams_unsent, (MANY - room) as u64);
    let sending = async {
        for _ in 0..MANY {
            here.send_datagram_wait(Bytes::from_static(b"in turn")).await.unwrap();
        }
    };
    let reading = async {
        loop {
            there.read_datagram().await.unwrap();
        }
    };
    tokio::select! {
        sent = timeout(PATIENCE, sending) => sent.expect("there is room again and again"),
        () = reading => {}
    }
    assert_eq!(here.stats().datagrams_unsent, (MANY - room) as u64, "none was dropped");
    let too_long = Bytes::from(vec![0; here.max_datagram_size() + 1]);
    let refused = timeout(PATIENCE, here.send_datagram_wait(too_long)).await.expect("it does not wait");
    assert!(matches!(refused, Err(SendDatagramError::TooLarge { .. })), "{refused:?}");
    here.close(0, "");
    let ended = here.send_datagram_wait(Bytes::new()).await;
    assert!(matches!(ended, Err(SendDatagramError::Connection(_))), "{ended:?}");
}

/// quinn#1564: a read hung where another task closed the connection. quinn#645: so did the wait for the end of a stream.
#[tokio::test]
async fn whoever_waits_for_a_stream_hears_that_the_connection_was_closed_here() {
    for _ in 0..50 {
        let (_server, _client, _, [here, _other], [there, _other_there]) = two().await;
        let (mut send, mut recv) = here.open_bi().await.unwrap();
        send.write_all(b"a part").await.unwrap();
        send.finish().unwrap();
        let (_send_there, _recv_there) = there.accept_bi().await.unwrap();
        // The peer reads nothing, so neither is over.
        let mut buffer = [0; 8];
        let waits = async { tokio::join!(recv.read(&mut buffer), send.finished(), here.accept_bi()) };
        let closes = async {
            tokio::task::yield_now().await;
            here.close(7, "enough");
        };
        let ((read, finished, accepted), ()) =
            timeout(SOON, async { tokio::join!(waits, closes) }).await.expect("all three return");
        let closed = StreamError::Connection(ConnectionError::LocallyClosed);
        assert_eq!((read, accepted.err()), (Err(closed), Some(ConnectionError::LocallyClosed)));
        // The peer may have all bytes before it hears.
        assert!(matches!(finished, Ok(()) | Err(StreamError::Connection(_))), "{finished:?}");
    }
}

/// quinn#1061: a stream that was stopped when its end had arrived kept its place for ever.
#[tokio::test]
async fn streams_that_are_stopped_behind_their_end_leave_their_places() {
    let (_server, _client, _, [here, _other], [there, _other_there]) = two().await;
    let answering = tokio::spawn(async move {
        while let Ok((mut send, mut recv)) = there.accept_bi().await {
            // Its first byte opened the stream.
            recv.read_exact(&mut [0]).await.unwrap();
            send.write_all(b"an answer that is not read whole").await.unwrap();
            send.finish().unwrap();
        }
    });
    let streams = Config::default().transport.max_streams;
    let opening = async {
        for _ in 0..4 * streams {
            let (mut send, mut recv) = here.open_bi().await.unwrap();
            send.write_all(b"?").await.unwrap();
            send.finish().unwrap();
            recv.read_exact(&mut [0; 2]).await.unwrap();
            recv.stop(1);
        }
    };
    timeout(PATIENCE, opening).await.expect("more streams than may be open at once");
    here.close(0, "");
    answering.await.unwrap();
}
