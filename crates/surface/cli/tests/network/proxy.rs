//! `tacit proxy` as seen by its users, over loopback.

use std::io::{BufRead as _, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::peers::{Server, Users, bytes, echo, echoed, socks, terminate};

/// A server that carries connections to the targets of `rule`, and a client that takes SOCKS 5 from programs.
fn socks_proxy(users: &Users, rule: &str) -> (Server, Server) {
    users.key("server");
    let words = ["proxy", "--serve", "--listen", "127.0.0.1:0", "--allow", rule];
    let server = users.start("server", &words, "connections at ");
    users.introduce(&server);
    let words = ["proxy", &server.address, "--socks5", "--listen", "127.0.0.1:0"];
    let proxy = users.start("client", &words, "socks5 at ");
    (server, proxy)
}

#[test]
fn connections_of_programs_go_to_what_the_server_allows_and_nowhere_else() {
    let users = Users::new();
    let port = echo();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let other_port = other.local_addr().unwrap().port();
    let rule = format!("127.0.0.1:{port}");
    let (server, proxy) = socks_proxy(&users, &rule);
    let content = bytes(3_000_000);
    let (tcp, answer) = socks(&proxy.address, port);
    assert_eq!(answer, 0);
    assert!(echoed(tcp, &content) == content);
    // RFC 1928 section 6: not allowed by the ruleset.
    assert_eq!(socks(&proxy.address, other_port).1, 2);
    let forward = format!("127.0.0.1:0={rule}");
    let words = ["proxy", &server.address, "--forward", &forward];
    let forwarded = users.start("client", &words, &format!("{rule} at "));
    assert!(echoed(TcpStream::connect(&forwarded.address).unwrap(), &content) == content);
    users.refused("client", &["proxy", &server.address, "--socks5", "--listen", "0.0.0.0:0"], 2);
    users.refused("client", &["proxy", "--serve", "--allow", "example.org"], 2);
    let words = ["proxy", &server.address, "--socks5", "--listen", "127.0.0.1:0"];
    assert!(users.refused("other", &words, 2).contains("is unknown"));
}

#[test]
fn a_server_that_was_killed_is_found_again_and_what_it_carried_is_reset() {
    let users = Users::new();
    let port = echo();
    users.key("server");
    let rule = format!("127.0.0.1:{port}");
    let words = ["proxy", "--serve", "--listen", "127.0.0.1:0", "--allow", &rule, "--json"];
    let mut server = users.start("server", &words, "connections at ");
    users.introduce(&server);
    let words = ["proxy", &server.address, "--socks5", "--listen", "127.0.0.1:0", "--json"];
    let mut proxy = users.start("client", &words, "socks5 at ");
    let (mut carried, answer) = socks(&proxy.address, port);
    assert_eq!(answer, 0);
    carried.write_all(b"half of it").unwrap();
    carried.read_exact(&mut [0; 10]).unwrap();
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    // The connection breaks in the middle with a reset, not with an end or silence.
    let broke = carried.read(&mut [0; 10]).unwrap_err();
    assert_eq!(broke.kind(), std::io::ErrorKind::ConnectionReset);
    let words = ["proxy", "--serve", "--listen", &server.address, "--allow", &rule];
    let again = users.start("server", &words, "connections at ");
    assert_eq!(again.address, server.address);
    // The reply arrives as soon as the server's end is reachable again.
    let (tcp, answer) = socks(&proxy.address, port);
    assert_eq!(answer, 0);
    assert!(echoed(tcp, &bytes(100_000)) == bytes(100_000));
    terminate(&proxy.child);
    assert_eq!(proxy.child.wait().unwrap().code(), Some(0));
    let mut stdout = String::new();
    proxy.child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
    let lines: Vec<Value> = stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2, "{stdout}");
    assert_eq!((&lines[0]["bytes"], lines[0]["error"].is_string()), (&20.into(), true), "{stdout}");
    assert_eq!((&lines[1]["bytes"], lines[1]["error"].is_null()), (&200_000.into(), true), "{stdout}");
    assert_eq!(lines[1]["target"], rule);
}

#[test]
fn a_proxy_that_is_stopped_waits_for_what_it_carries_and_resets_the_rest() {
    let users = Users::new();
    let port = echo();
    users.key("server");
    let rule = format!("127.0.0.1:{port}");
    let words = ["proxy", "--serve", "--listen", "127.0.0.1:0", "--allow", &rule];
    let server = users.start("server", &words, "connections at ");
    users.introduce(&server);
    let words = ["proxy", &server.address, "--socks5", "--listen", "127.0.0.1:0", "--grace", "2"];
    let mut proxy = users.start("client", &words, "socks5 at ");
    let (mut ends, _) = socks(&proxy.address, port);
    let (mut stays, _) = socks(&proxy.address, port);
    for tcp in [&mut ends, &mut stays] {
        tcp.write_all(b"x").unwrap();
        tcp.read_exact(&mut [0]).unwrap();
    }
    terminate(&proxy.child);
    assert!(echoed(ends, b"begun before") == b"begun before");
    assert_eq!(stays.read(&mut [0]).unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
    assert_eq!(proxy.child.wait().unwrap().code(), Some(0));
}

/// A server on a local port that sends endlessly to every client.
fn flood() -> u16 {
    let flood = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = flood.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut tcp in flood.incoming().flatten() {
            std::thread::spawn(move || while tcp.write_all(&[7; 1 << 16]).is_ok() {});
        }
    });
    port
}

#[test]
fn programs_that_stop_reading_hold_no_other() {
    let users = Users::new();
    let (port, flood_port) = (echo(), flood());
    let (_server, proxy) = socks_proxy(&users, "127.0.0.1:*");
    let mut stalled = Vec::new();
    for more in [1, 15, 48] {
        for _ in 0..more {
            let (tcp, answer) = socks(&proxy.address, flood_port);
            assert_eq!(answer, 0);
            stalled.push(tcp);
        }
        #[expect(clippy::disallowed_methods, reason = "waits for other processes, which no event announces")]
        std::thread::sleep(Duration::from_millis(500));
        let (tcp, answer) = socks(&proxy.address, port);
        assert_eq!(answer, 0);
        tcp.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        assert!(echoed(tcp, &bytes(300_000)) == bytes(300_000), "beside {}", stalled.len());
    }
    // They continue where they stopped.
    for mut tcp in stalled {
        tcp.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut read = [0; 100_000];
        tcp.read_exact(&mut read).unwrap();
        assert!(read.iter().all(|byte| *byte == 7));
    }
}

/// s2n-quic#3093: each stream that was stopped with data on the way kept its share of the connection's window, until nothing moved.
#[test]
fn programs_that_leave_in_the_middle_take_no_window_with_them() {
    let users = Users::new();
    let (port, flood_port) = (echo(), flood());
    let (_server, proxy) = socks_proxy(&users, "127.0.0.1:*");
    // Together they leave more behind than the 64 MiB that wait for all readers.
    for number in 0..400 {
        let (mut tcp, answer) = socks(&proxy.address, flood_port);
        assert_eq!(answer, 0, "{number}");
        tcp.read_exact(&mut [0; 1000]).unwrap();
    }
    let (tcp, answer) = socks(&proxy.address, port);
    assert_eq!(answer, 0);
    tcp.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    assert!(echoed(tcp, &bytes(10_000_000)) == bytes(10_000_000));
}

/// quinn#774, node#63304: many echoes at once, in pieces of odd lengths, by readers that pause.
#[test]
fn echoes_in_odd_pieces_come_back_whole() {
    const PIECES: [usize; 10] = [60_000, 12, 1_000_000, 50_000, 1_600, 20_000, 1_000_000, 30_000, 1, 100];
    let users = Users::new();
    let port = echo();
    let (_server, proxy) = socks_proxy(&users, "127.0.0.1:*");
    let content = bytes(PIECES.iter().sum());
    std::thread::scope(|scope| {
        for number in 0..20 {
            let (content, proxy) = (&content, &proxy.address);
            scope.spawn(move || {
                let (mut tcp, answer) = socks(proxy, port);
                assert_eq!(answer, 0);
                let mut writer = tcp.try_clone().unwrap();
                scope.spawn(move || {
                    let mut left = &content[..];
                    for at in 0..PIECES.len() {
                        let (piece, rest) = left.split_at(PIECES[(at + number) % PIECES.len()]);
                        writer.write_all(piece).unwrap();
                        left = rest;
                    }
                    writer.shutdown(std::net::Shutdown::Write).unwrap();
                });
                let (mut back, mut piece) = (Vec::new(), vec![0; 100 + 7_000 * number]);
                loop {
                    match tcp.read(&mut piece).unwrap() {
                        0 => break,
                        count => back.extend_from_slice(&piece[..count]),
                    }
                }
                assert!(back == *content, "{number}");
            });
        }
    });
}

#[test]
fn above_the_limit_programs_hear_no_and_half_requests_take_no_place() {
    let users = Users::new();
    let port = echo();
    users.key("server");
    let words =
        ["proxy", "--serve", "--listen", "127.0.0.1:0", "--allow", "127.0.0.1:*", "--connections", "2"];
    for (limited, limit) in [("the server", &[][..]), ("this end", &["--connections", "2"][..])] {
        // A separate server, because connections of the killed proxy still occupy places on the first one for a while.
        let server = users.start("server", &words, "connections at ");
        users.introduce(&server);
        let listening = ["proxy", &server.address, "--socks5", "--listen", "127.0.0.1:0"];
        let proxy = users.start("client", &[&listening[..], limit].concat(), "socks5 at ");
        // These connections have not sent their requests.
        let half: Vec<_> = (0..64)
            .map(|_| {
                let mut tcp = TcpStream::connect(&proxy.address).unwrap();
                tcp.write_all(&[5]).unwrap();
                tcp
            })
            .collect();
        let carried: Vec<_> = (0..2).map(|_| socks(&proxy.address, port)).collect();
        assert!(carried.iter().all(|(_, answer)| *answer == 0), "{limited}");
        // RFC 1928 section 6: general failure.
        assert_eq!(socks(&proxy.address, port).1, 1, "{limited}");
        // Both directions end before the next one asks.
        for (tcp, _) in carried {
            assert!(echoed(tcp, b"").is_empty(), "{limited}");
        }
        assert_eq!(socks(&proxy.address, port).1, 0, "{limited}");
        drop(half);
    }
}

#[test]
fn five_hundred_programs_at_once_get_their_own_bytes_back() {
    const PROGRAMS: usize = 500;
    // Both ends of each connection are in this process, which may hold 1,024 files at first.
    tacit_apps::open_many_files();
    let users = Users::new();
    let port = echo();
    users.key("server");
    let limit = ["--connections", "500"];
    let words = ["proxy", "--serve", "--listen", "127.0.0.1:0", "--allow", "127.0.0.1:*"];
    let server = users.start("server", &[&words[..], &limit].concat(), "connections at ");
    users.introduce(&server);
    let words = ["proxy", &server.address, "--socks5", "--listen", "127.0.0.1:0"];
    let proxy = users.start("client", &[&words[..], &limit].concat(), "socks5 at ");
    let carried: Vec<_> = (0..PROGRAMS)
        .map(|program| {
            let (tcp, answer) = socks(&proxy.address, port);
            assert_eq!(answer, 0, "program {program}");
            tcp
        })
        .collect();
    std::thread::scope(|scope| {
        for (program, tcp) in carried.into_iter().enumerate() {
            scope.spawn(move || {
                let sent: Vec<u8> = bytes(100_000).into_iter().map(|byte| byte ^ program as u8).collect();
                assert!(echoed(tcp, &sent) == sent, "program {program} got others' bytes");
            });
        }
    });
}

#[test]
fn a_proxy_that_runs_out_of_file_descriptors_says_so() {
    let users = Users::new();
    let port = echo();
    users.key("server");
    let words = ["proxy", "--serve", "--listen", "127.0.0.1:0", "--allow", "127.0.0.1:*"];
    let server = users.start("server", &words, "connections at ");
    users.introduce(&server);
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 48 && exec \"$@\"", "sh", env!("CARGO_BIN_EXE_tacit")]);
    command.args(["proxy", &server.address, "--socks5", "--listen", "127.0.0.1:0"]);
    command.env("XDG_CONFIG_HOME", users.path("client"));
    let mut proxy = users.started(command, "socks5 at ");
    let held: Vec<_> = (0..64).map(|_| TcpStream::connect(&proxy.address).unwrap()).collect();
    let mut line = String::new();
    proxy.says.read_line(&mut line).unwrap();
    let wanted = "tacit: connections of programs wait: Too many open files (os error 24); the limit is 48";
    assert!(line.starts_with(wanted), "{line}");
    drop(held);
    assert_eq!(socks(&proxy.address, port).1, 0, "descriptors are there again");
}

/// hysteria#623: a target that does not answer held the connections of all programs behind it.
#[test]
fn a_target_that_does_not_answer_holds_no_other() {
    let users = Users::new();
    let port = echo();
    // Without a call of accept, and with a full queue, the kernel answers no further SYN.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    nix::sys::socket::listen(&silent, nix::sys::socket::Backlog::new(0).unwrap()).unwrap();
    let address = silent.local_addr().unwrap();
    let mut queued = Vec::new();
    while let Ok(tcp) = TcpStream::connect_timeout(&address, Duration::from_millis(300)) {
        queued.push(tcp);
    }
    let (_server, proxy) = socks_proxy(&users, "127.0.0.1:*");
    std::thread::scope(|scope| {
        let waiting = (0..20).map(|_| scope.spawn(|| socks(&proxy.address, address.port()).1));
        let waiting: Vec<_> = waiting.collect();
        for _ in 0..20 {
            let (tcp, answer) = socks(&proxy.address, port);
            assert_eq!((answer, echoed(tcp, b"hello")), (0, b"hello".to_vec()));
        }
        assert!(!waiting.iter().any(|waiting| waiting.is_finished()), "the test wants them to wait");
        // RFC 1928 section 6: host unreachable.
        for waiting in waiting {
            assert_eq!(waiting.join().unwrap(), 4);
        }
    });
}
