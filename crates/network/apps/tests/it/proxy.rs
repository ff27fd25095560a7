//! TCP connections over an in-memory stream, and SOCKS5.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::time::Duration;

use proptest::prelude::*;
use tacit_apps::metrics::ProxyCounts;
use tacit_apps::proxy::allow::AllowList;
use tacit_apps::proxy::relay::{Limits, RelayReport, relay, serve};
use tacit_apps::proxy::{ProxyError, ReplyCode, read_target, request_target, socks};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex, split};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime
        .block_on(async { tokio::time::timeout(Duration::from_secs(60), work).await.expect("no deadlock") })
}

/// Connects through a server end with `rule` to `port` of this machine, sends `hello`, closes that direction and reads
/// to the end.
async fn echoed(rule: &str, port: u16, limits: Limits) -> (Result<Vec<u8>, ProxyError>, RelayReport) {
    let (mine, theirs) = duplex(64);
    let (mut reader, mut writer) = split(mine);
    let (mut their_reader, mut their_writer) = split(theirs);
    let allowed = AllowList(vec![rule.parse().unwrap()]);
    let target = format!("127.0.0.1:{port}").parse().unwrap();
    let client = async {
        request_target(&target, &mut reader, &mut writer).await?;
        writer.write_all(b"hello").await?;
        writer.shutdown().await?;
        let mut heard = Vec::new();
        reader.read_to_end(&mut heard).await?;
        Ok(heard)
    };
    let server = async {
        let counts = ProxyCounts::default();
        let result =
            serve(&allowed, limits, &Semaphore::new(1), &mut their_reader, &mut their_writer, &counts).await;
        their_writer.shutdown().await.unwrap();
        result
    };
    tokio::join!(client, server)
}

#[test]
fn bytes_go_both_ways_after_one_way_has_ended() {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = async {
            let (mut tcp, _) = listener.accept().await.unwrap();
            let mut heard = Vec::new();
            tcp.read_to_end(&mut heard).await.unwrap();
            heard.reverse();
            tcp.write_all(&heard).await.unwrap();
        };
        let ((client, relayed), ()) = tokio::join!(echoed("127.0.0.1:*", port, Limits::default()), server);
        assert_eq!(client.unwrap(), b"olleh");
        assert_eq!((relayed.bytes, relayed.error.is_none()), (10, true));
    });
}

#[test]
fn a_target_that_no_rule_names_is_not_connected_to() {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (client, _) = echoed("*:*", port, Limits::default()).await;
        assert!(matches!(client, Err(ProxyError::ReplyCode(ReplyCode::NotAllowed))));
        let accepted = tokio::time::timeout(Duration::from_millis(50), listener.accept()).await;
        assert!(accepted.is_err());
        drop(listener);
        let (client, _) = echoed("127.0.0.1:*", port, Limits::default()).await;
        assert!(matches!(client, Err(ProxyError::ReplyCode(ReplyCode::Refused))));
    });
}

/// At the limit of connections, the next one is refused after a while with that reason. A connection that does not send
/// its target uses no slot.
#[test]
fn above_the_limit_connections_are_refused_and_half_requests_take_no_place() {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let target = format!("127.0.0.1:{}", listener.local_addr().unwrap().port()).parse().unwrap();
        let allowed = AllowList(vec!["127.0.0.1:*".parse().unwrap()]);
        let (places, counts) = (Semaphore::new(1), ProxyCounts::default());
        let limits = Limits { place: Duration::from_millis(50), ..Limits::default() };
        let serving = async |stream| {
            let (mut reader, mut writer) = split(stream);
            serve(&allowed, limits, &places, &mut reader, &mut writer, &counts).await
        };
        let (_half, half) = duplex(64);
        let (first, first_there) = duplex(64);
        let (second, second_there) = duplex(64);
        let asking = async {
            let (mut reader, mut writer) = split(first);
            request_target(&target, &mut reader, &mut writer).await.unwrap();
            let (mut reader, mut writer) = split(second);
            let refused = request_target(&target, &mut reader, &mut writer).await;
            assert!(matches!(refused, Err(ProxyError::ReplyCode(ReplyCode::Busy))), "{refused:?}");
        };
        tokio::select! {
            () = asking => {}
            _ = async { tokio::join!(serving(half), serving(first_there), serving(second_there)) } => panic!(),
        }
    });
}

#[test]
fn an_idle_connection_is_ended() {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let limits = Limits { idle: Duration::from_millis(50), ..Limits::default() };
        let (_, relayed) = echoed("127.0.0.1:*", port, limits).await;
        assert!(matches!(relayed.error, Some(ProxyError::Idle)));
    });
}

/// The target that SOCKS5 reads from `bytes`, and its answers to the program.
fn socks_of(bytes: &[u8]) -> (Result<String, ProxyError>, Vec<u8>) {
    run(async {
        let (mut mine, mut theirs) = duplex(4096);
        mine.write_all(bytes).await.unwrap();
        mine.shutdown().await.unwrap();
        let target = socks::request(&mut theirs).await.map(|target| target.to_string());
        drop(theirs);
        let mut answer = Vec::new();
        mine.read_to_end(&mut answer).await.unwrap();
        (target, answer)
    })
}

#[test]
fn socks_takes_names_and_addresses_and_says_no_to_the_rest() {
    let connect = |rest: &[u8]| [&[5, 1, 0, 5, 1, 0], rest].concat();
    assert_eq!(socks_of(&connect(b"\x03\x0bexample.org\x00\x50")).0.unwrap(), "example.org:80");
    assert_eq!(socks_of(&connect(&[1, 10, 0, 0, 1, 1, 187])).0.unwrap(), "10.0.0.1:443");
    let v6 = [&[4][..], &std::net::Ipv6Addr::LOCALHOST.octets(), &[0, 22]].concat();
    assert_eq!(socks_of(&connect(&v6)).0.unwrap(), "[::1]:22");
    let refused = |bytes: &[u8]| {
        let (target, answer) = socks_of(bytes);
        assert!(target.is_err());
        answer
    };
    assert!(refused(&[4, 1]).is_empty());
    assert_eq!(refused(&[5, 1, 2]), [5, 0xff]);
    assert_eq!(refused(&[5, 1, 0, 5, 2, 0, 1])[3], 7, "BIND");
    assert_eq!(refused(&connect(&[9]))[3], 8);
    assert_eq!(refused(&connect(b"\x03\x03a b\x00\x50"))[3], 1);
    assert_eq!(refused(&connect(b"\x03\x05127.1\x00\x50"))[3], 1);
    // Resolvers read it as 127.0.0.1.
    assert_eq!(refused(&connect(b"\x03\x0a0X7f000001\x00\x50"))[3], 1);
}

proptest! {
    #[test]
    fn no_bytes_make_parsers_panic_and_targets_survive_being_written(bytes: Vec<u8>, tail: Vec<u8>) {
        let _ = socks_of(&bytes);
        let _ = socks_of(&[&[5, 1, 0, 5, 1, 0, 3], &tail[..]].concat());
        if let Ok(target) = run(read_target(&mut &bytes[..])) {
            prop_assert_eq!(target.to_string().parse(), Ok(target));
        }
    }
}

/// A reply that is sent in two writes would wait in the kernel until the program acknowledges the first, some 40 ms.
#[test]
fn carried_connections_do_not_wait_for_full_segments() {
    use std::os::fd::AsFd as _;
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (program, accepted) = tokio::join!(tokio::net::TcpStream::connect(address), listener.accept());
        let (mut program, tcp) = (program.unwrap(), accepted.unwrap().0);
        let socket = tcp.as_fd().try_clone_to_owned().unwrap();
        let (mine, theirs) = duplex(64);
        let (mut reader, mut writer) = split(theirs);
        let bytes = std::sync::atomic::AtomicU64::new(0);
        let carrying = relay(tcp, &mut reader, &mut writer, Limits::default().idle, &bytes);
        let talking = async {
            let (mut from, mut to) = split(mine);
            to.write_all(b"x").await.unwrap();
            program.read_u8().await.unwrap();
            let nodelay = rustix::net::sockopt::tcp_nodelay(&socket).unwrap();
            to.shutdown().await.unwrap();
            program.shutdown().await.unwrap();
            from.read_to_end(&mut Vec::new()).await.unwrap();
            nodelay
        };
        let (carried, nodelay) = tokio::join!(carrying, talking);
        carried.1.unwrap();
        assert!(nodelay);
    });
}
