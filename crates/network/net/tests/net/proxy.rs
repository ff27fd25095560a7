//! Clients of the proxy: the answers they get, and requests that are refused.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use tacit_net::NetError;
use tacit_net::connection::Settings;
use tacit_net::flow::ShimName;
use tacit_net::proxy::{Options, Proxy, Served};
use tokio::sync::oneshot;

use crate::bodies::{is_for_the_file, settings};
use crate::hop::{Hop, Losses};
use crate::server::{Reply, Server, content, good};

struct Running {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
    served: Arc<Mutex<Vec<Served>>>,
}

impl Running {
    fn with(options: Options) -> Self {
        let (stop, stopped) = oneshot::channel::<()>();
        let (address_sender, address_receiver) = std::sync::mpsc::channel();
        let served = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&served);
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let proxy = Proxy::listen(options).await.unwrap();
                address_sender.send(proxy.address()).unwrap();
                let stop = async {
                    let _ = stopped.await;
                };
                proxy.serve(stop, move |served| heard.lock().unwrap().push(served.clone())).await;
            });
        });
        Self { address: address_receiver.recv().unwrap(), stop: Some(stop), thread: Some(thread), served }
    }

    /// In front of `servers`, over the hop that `settings` name.
    fn before(servers: &[SocketAddr], settings: Settings) -> Self {
        Self::with(Options { ports: servers.iter().map(SocketAddr::port).collect(), ..options(settings) })
    }

    fn stop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }

    /// The proxy's answer to `request`, until it closes.
    fn ask(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
    }
}

fn options(settings: Settings) -> Options {
    Options {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        hosts: vec!["127.0.0.1".to_owned()],
        patience: Duration::from_secs(1),
        grace: Duration::from_millis(500),
        settings,
        ..Options::default()
    }
}

fn plain() -> Settings {
    settings(&ShimName::abstracted(b"tacit-test-nobody"))
}

/// Output of a program that is configured to use the proxy; `None` if it is not installed.
fn program(proxy: &Running, words: &[&str]) -> Option<(bool, Vec<u8>)> {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).env("http_proxy", format!("http://{}", proxy.address)).env_remove("no_proxy");
    match command.stderr(Stdio::null()).output() {
        Ok(output) => Some((output.status.success(), output.stdout)),
        Err(_) => {
            eprintln!("SKIPPED: {} is not installed", words[0]);
            None
        }
    }
}

#[test]
fn curl_and_wget_get_whole_files_over_a_lossy_hop() {
    let content = content(1_500_000);
    let hop =
        Hop::before(Server::serving(content.clone()).address, Losses { percent: 10, ..Losses::default() });
    let proxy = Running::before(&[hop.address], settings(&hop.shim));
    let url = format!("http://{}/file", hop.address);
    for words in [&["curl", "-sf", &url][..], &["wget", "-q", "-O", "-", &url]] {
        if let Some((done, output)) = program(&proxy, words) {
            assert!(done && output == content, "{words:?}");
            let served = proxy.served.lock().unwrap().pop().unwrap();
            assert!(served.repaired && served.holes > 0 && served.complete, "{served:?}");
            assert_eq!((served.status, served.bytes), (200, 1_500_000));
        }
    }
    // Short ranges, HEAD requests and conditional requests.
    if let Some((_, part)) = program(&proxy, &["curl", "-s", "-r", "5-9", &url]) {
        assert_eq!(part, content[5..10]);
    }
    if let Some((_, head)) = program(&proxy, &["curl", "-sI", &url]) {
        let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
        assert!(head.starts_with("http/1.1 200") && head.contains("content-length: 1500000"), "{head}");
        assert!(head.contains("via: 1.1 tacit"));
    }
    if let Some((done, both)) = program(&proxy, &["curl", "-sf", &url, &url]) {
        assert!(done && both.len() == 3_000_000, "one connection, two files");
    }
}

#[test]
fn a_part_that_a_program_asks_for_is_repaired_and_stays_a_part() {
    let content = content(1_500_000);
    let hop =
        Hop::before(Server::serving(content.clone()).address, Losses { percent: 10, ..Losses::default() });
    let proxy = Running::before(&[hop.address], settings(&hop.shim));
    let url = format!("http://{}/file", hop.address);
    let ask = |range: &str, more: &str| {
        let request = format!(
            "GET {url} HTTP/1.1\r\nHost: {}\r\nRange: {range}\r\n{more}Connection: close\r\n\r\n",
            hop.address
        );
        let mut stream = TcpStream::connect(proxy.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
        let head = String::from_utf8(answer[..end].to_vec()).unwrap().to_ascii_lowercase();
        (head, answer.split_off(end), proxy.served.lock().unwrap().pop().unwrap())
    };
    // An open range, one that ends early, one beyond the end, one from the beginning, and one with a matching
    // condition.
    for (range, start, end, more) in [
        ("bytes=200000-", 200_000, 1_500_000, ""),
        ("bytes=200001-1000000", 200_001, 1_000_001, ""),
        ("bytes=700000-9999999", 700_000, 1_500_000, "Accept-Encoding: identity;q=1, *;q=0\r\n"),
        ("bytes=0-", 0, 1_500_000, "If-Range: \"v1\"\r\n"),
    ] {
        let (head, bytes, served) = ask(range, more);
        assert!(head.starts_with("http/1.1 206"), "{range}: {head}");
        assert!(
            head.contains(&format!("content-range: bytes {start}-{}/1500000\r\n", end - 1)),
            "{range}: {head}"
        );
        assert!(bytes == content[start..end], "{range}: the bytes differ");
        assert!(served.repaired && served.holes > 0 && served.complete, "{range}: {served:?}");
    }
    // The file has changed, so the whole file is returned (RFC 9110 section 13.1.5).
    let (head, bytes, served) = ask("bytes=200000-", "If-Range: \"0\"\r\n");
    assert!(head.starts_with("http/1.1 200") && bytes == content, "{head}");
    assert!(served.complete, "{served:?}");
    // A request that only the server can answer is forwarded unchanged.
    let (_, bytes, served) = ask("bytes=-100000", "");
    assert!(bytes.len() == 100_000 || bytes == content, "{served:?}");
    assert!(!served.repaired && served.holes == 0, "{served:?}");
    let (_, bytes, served) = ask("bytes=0-99999", "Accept-Encoding: gzip\r\n");
    assert!(bytes == content[..100_000] && !served.repaired, "{served:?}");
}

#[test]
fn other_methods_pass_with_their_bodies() {
    let server = Server::new(|seen| {
        let text = format!(
            "{} {} {:?} {:?}",
            seen.method,
            seen.body.len(),
            seen.header("x-secret"),
            seen.header("via")
        );
        Reply::Bytes(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}", text.len()).into())
    });
    let proxy = Running::before(&[server.address], plain());
    let request = format!(
        "POST http://{}/ HTTP/1.1\r\nHost: x\r\nConnection: close, X-Secret\r\nX-Secret: 1\r\nContent-Length: 5\r\n\r\nhello",
        server.address
    );
    let answer = proxy.ask(&request);
    assert!(answer.ends_with("POST 5 None Some(\"1.1 tacit\")"), "{answer}");
}

/// tinyproxy#79, mitmproxy#2180: a client that sends `Expect: 100-continue` gets the refusal of a server that refuses
/// at once, and gets 100 (Continue) if the server does not refuse.
#[test]
fn a_program_that_expects_word_gets_it() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                if stream.read_exact(&mut byte).is_err() {
                    return;
                }
                head.push(byte[0]);
            }
            // Its body is not read.
            let answer = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno";
            let _ = stream.write_all(answer);
            thread::sleep(Duration::from_millis(200));
        }
    });
    let open = Server::new(|seen| {
        let text = seen.body.len().to_string();
        Reply::Bytes(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}", text.len()).into())
    });
    let proxy = Running::before(&[address, open.address], plain());
    let head = |address| {
        format!(
            "POST http://{address}/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: 20000000\r\n\r\n"
        )
    };
    let mut refused = TcpStream::connect(proxy.address).unwrap();
    refused.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    refused.write_all(head(address).as_bytes()).unwrap();
    let mut line = String::new();
    let mut reader = BufReader::new(&refused);
    while !line.starts_with("HTTP/1.1 4") {
        line.clear();
        assert!(reader.read_line(&mut line).unwrap() > 0, "it hears of the refusal");
    }
    assert!(line.starts_with("HTTP/1.1 401"), "{line}");
    let mut taken = TcpStream::connect(proxy.address).unwrap();
    taken.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    taken.write_all(head(open.address).as_bytes()).unwrap();
    let mut word = [0; 12];
    taken.read_exact(&mut word).unwrap();
    assert_eq!(&word, b"HTTP/1.1 100");
    taken.write_all(&vec![7; 20_000_000]).unwrap();
    let mut answer = String::new();
    taken.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with("20000000"), "{answer}");
}

#[test]
fn smuggled_requests_are_refused() {
    let server = Server::serving(b"hello".to_vec());
    let proxy = Running::before(&[server.address], plain());
    let line = format!("POST http://{}/ HTTP/1.1\r\nHost: x\r\n", server.address);
    for lines in [
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
        "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding: identity\r\n\r\n",
        "X: a\r\n b\r\n\r\n",
        "X: a\n\r\n",
        "X: a\rb\r\n\r\n",
        "X : a\r\n\r\n",
        "Host: y\r\n\r\n",
        "Content-Length: -1\r\n\r\n",
    ] {
        let answer = proxy.ask(&format!("{line}{lines}"));
        assert!(answer.starts_with("HTTP/1.1 400 "), "{lines:?}: {answer}");
    }
    assert_eq!(server.requests.load(Ordering::Relaxed), 0);
    // No request is read after a chunked body.
    let get = format!("GET http://{}/ HTTP/1.1\r\nHost: x\r\n\r\n", server.address);
    let answer = proxy.ask(&format!("{line}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n{get}"));
    assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer}");
    assert!(answer.to_ascii_lowercase().contains("connection: close"));
    // After a body of known length, one is.
    let close = format!("GET http://{}/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", server.address);
    assert_eq!(proxy.ask(&format!("{get}{close}")).matches("HTTP/1.1 200").count(), 2);
}

#[test]
fn it_is_no_open_relay() {
    let server = Server::serving(b"hello".to_vec());
    let port = server.address.port();
    let refused = |proxy: &Running, request: &str, status: &str, why: &str| {
        let answer = proxy.ask(&format!("{request} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}")) && answer.contains(why),
            "{request}: {answer}"
        );
    };
    let proxy = Running::with(Options { hosts: Vec::new(), ports: vec![port], ..options(plain()) });
    refused(&proxy, &format!("GET http://127.0.0.1:{port}/"), "403", "not a public address");
    refused(&proxy, &format!("GET http://localhost:{port}/"), "403", "not a public address");
    refused(&proxy, &format!("GET http://[::ffff:127.0.0.1]:{port}/"), "403", "not a public address");
    refused(&proxy, &format!("GET http://0.0.0.0:{port}/"), "403", "not a public address");
    refused(&proxy, "GET http://169.254.169.254/", "403", "not a public address");
    refused(&proxy, "GET http://127.0.0.1:22/", "403", "port 22");
    refused(&proxy, "CONNECT 127.0.0.1:443", "403", "not a public address");
    refused(&proxy, "CONNECT 127.0.0.1:22", "403", "port 22");
    refused(&proxy, "CONNECT 127.0.0.1:80", "403", "port 80");
    refused(&proxy, "CONNECT 127.0.0.1", "400", "HOST:PORT");
    refused(&proxy, "GET https://127.0.0.1/", "501", "encrypted");
    refused(&proxy, "GET /", "400", "proxy");
    refused(&proxy, &format!("TRACE http://127.0.0.1:{port}/"), "405", "TRACE");
    assert_eq!(server.requests.load(Ordering::Relaxed), 0);
    // A server that is named explicitly can be reached; the proxy itself cannot.
    let proxy = Running::with(Options { ports: (1..=u16::MAX).collect(), ..options(plain()) });
    refused(&proxy, &format!("GET http://127.0.0.1:{port}/"), "200", "hello");
    refused(&proxy, &format!("GET http://{}/", proxy.address), "403", "own");
    let open = Options { listen: SocketAddr::from(([0, 0, 0, 0], 0)), ..options(plain()) };
    let listened = crate::bodies::wait(async { Proxy::listen(open).await.map(|_| ()) });
    assert!(matches!(listened, Err(NetError::Argument(_))));
}

#[test]
fn those_who_are_slow_are_let_go() {
    let big = content(20_000_000);
    let server = Server::serving(big);
    let proxy = Running::before(&[server.address], plain());
    // A head that arrives one line at a time.
    let started = Instant::now();
    let mut slow = TcpStream::connect(proxy.address).unwrap();
    slow.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let mut trickle = slow.try_clone().unwrap();
    thread::spawn(move || {
        while trickle.write_all(b"X").is_ok() {
            thread::sleep(Duration::from_millis(100));
        }
    });
    let _ = slow.read_to_end(&mut Vec::new());
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    // A client that is silent, at first or after an answer.
    let small = Server::serving(b"hello".to_vec());
    let quick = Running::before(&[small.address], plain());
    for first in [String::new(), format!("GET http://{}/ HTTP/1.1\r\nHost: x\r\n\r\n", small.address)] {
        let started = Instant::now();
        let answer = quick.ask(&first);
        assert_eq!(answer.is_empty(), first.is_empty());
        assert!(started.elapsed() < Duration::from_secs(5), "{:?} after {first:?}", started.elapsed());
    }
    // A client that sends requests and does not read.
    let mut deaf = TcpStream::connect(proxy.address).unwrap();
    write!(deaf, "GET http://{}/ HTTP/1.1\r\nHost: x\r\n\r\n", server.address).unwrap();
    let started = Instant::now();
    while proxy.served.lock().unwrap().is_empty() {
        assert!(started.elapsed() < Duration::from_secs(10), "it is served for ever");
        thread::sleep(Duration::from_millis(50));
    }
    assert!(!proxy.served.lock().unwrap()[0].complete);
    // A server that never answers.
    let silent = Server::new(|_| Reply::Stall(Vec::new()));
    let proxy = Running::before(&[silent.address], plain());
    let request = format!("GET http://{}/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", silent.address);
    assert!(proxy.ask(&request).starts_with("HTTP/1.1 504"));
}

#[test]
fn more_programs_than_places_wait_for_their_turn() {
    let server = Server::serving(b"hello".to_vec());
    let ports = vec![server.address.port()];
    // The last client waits for all others.
    let patience = Duration::from_secs(30);
    let proxy = Options { connections_max: 2, ports, patience, ..options(plain()) };
    let proxy = Arc::new(Running::with(proxy));
    let request = format!("GET http://{}/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", server.address);
    let askers: Vec<_> = (0..20)
        .map(|_| {
            let (proxy, request) = (Arc::clone(&proxy), request.clone());
            thread::spawn(move || assert!(proxy.ask(&request).ends_with("hello")))
        })
        .collect();
    askers.into_iter().for_each(|asker| asker.join().unwrap());
}

/// A server that echoes its input, and closes when its client does.
fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let mut reader = stream.try_clone().unwrap();
                let _ = std::io::copy(&mut reader, &mut stream);
                let _ = stream.shutdown(std::net::Shutdown::Write);
            });
        }
    });
    address
}

/// A connection with a CONNECT request for `address`, `early` in the same segment as the request, and the head of the
/// answer.
fn tunnel(proxy: &Running, address: SocketAddr, early: &[u8]) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(proxy.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let request = format!("CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n\r\n");
    stream.write_all(&[request.as_bytes(), early].concat()).unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    (stream, String::from_utf8(head).unwrap())
}

/// The first report of the proxy.
fn first_served(proxy: &Running) -> Served {
    let began = Instant::now();
    loop {
        if let Some(served) = proxy.served.lock().unwrap().first() {
            return served.clone();
        }
        assert!(began.elapsed() < Duration::from_secs(10), "nothing is reported");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_tunnel_carries_bytes_both_ways_as_they_are() {
    let server = echo();
    let proxy = Running::before(&[server], plain());
    // Ambiguous heads inside a tunnel are forwarded, even directly after the request.
    let early = b"GET / HTTP/1.1\nContent-Length: 1\nContent-Length: 2\n\n";
    let (mut stream, head) = tunnel(&proxy, server, early);
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    // RFC 9110 section 9.3.6: a successful answer has no framing.
    for header in ["content-length", "transfer-encoding", "connection"] {
        assert!(!head.to_ascii_lowercase().contains(header), "{head}");
    }
    let content = content(1_000_000);
    let mut writer = stream.try_clone().unwrap();
    let sent = content.clone();
    let writing = thread::spawn(move || {
        writer.write_all(&sent).unwrap();
        writer.shutdown(std::net::Shutdown::Write).unwrap();
    });
    let mut back = Vec::new();
    stream.read_to_end(&mut back).unwrap();
    writing.join().unwrap();
    assert!(back == [&early[..], &content].concat());
    let served = first_served(&proxy);
    assert_eq!((served.method.as_str(), served.url, served.status), ("CONNECT", server.to_string(), 200));
    assert_eq!((served.bytes, served.complete, served.repaired), (back.len() as u64, true, false));
}

#[test]
fn a_tunnel_in_which_nothing_moves_is_closed() {
    let server = echo();
    let tunnel_idle_max = Duration::from_secs(2);
    let proxy = Running::with(Options { ports: vec![server.port()], tunnel_idle_max, ..options(plain()) });
    let (mut stream, _) = tunnel(&proxy, server, b"");
    // Occasional bytes keep it open beyond the limit.
    for _ in 0..8 {
        thread::sleep(tunnel_idle_max / 6);
        stream.write_all(b"x").unwrap();
        stream.read_exact(&mut [0]).unwrap();
    }
    assert_eq!(stream.read(&mut [0]).unwrap(), 0);
    let served = first_served(&proxy);
    assert!(!served.complete && served.bytes == 8, "{served:?}");
}

/// Open tunnels use no slot for requests, and a client beyond the limit gets the reason.
#[test]
fn tunnels_have_places_of_their_own() {
    let (server, tunnelled) = (Server::serving(b"hello".to_vec()), echo());
    let ports = vec![server.address.port(), tunnelled.port()];
    let proxy = Running::with(Options { connections_max: 2, ports, ..options(plain()) });
    let mut open: Vec<_> = (0..2).map(|_| tunnel(&proxy, tunnelled, b"").0).collect();
    let request = format!("GET http://{}/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", server.address);
    assert!(proxy.ask(&request).ends_with("hello"));
    let (_, head) = tunnel(&proxy, tunnelled, b"");
    assert!(head.starts_with("HTTP/1.1 503"), "{head}");
    // Closing a tunnel frees its slot.
    drop(open.pop());
    let began = Instant::now();
    let mut stream = loop {
        // On a busy machine the proxy may notice that later than the client's time limit.
        let (stream, head) = tunnel(&proxy, tunnelled, b"again");
        if head.starts_with("HTTP/1.1 200") {
            break stream;
        }
        assert!(began.elapsed() < Duration::from_secs(10), "{head}");
    };
    stream.read_exact(&mut [0; 5]).unwrap();
}

/// Incomplete heads use no slot, and a client beyond the limit gets the reason after a while.
#[test]
fn half_heads_cost_their_senders_alone() {
    let silent = Server::new(|_| Reply::Stall(Vec::new()));
    let server = Server::serving(b"hello".to_vec());
    let ports = vec![server.address.port(), silent.address.port()];
    let patience = Duration::from_secs(5);
    // Requests that the server does not answer hold their slots for longer than a waiting client's time limit.
    let settings = Settings { head_timeout: Duration::from_secs(30), ..plain() };
    let proxy = Running::with(Options { connections_max: 2, ports, patience, ..options(settings) });
    let connected = |bytes: String| {
        let mut stream = TcpStream::connect(proxy.address).unwrap();
        stream.write_all(bytes.as_bytes()).unwrap();
        stream
    };
    let half: Vec<_> = (0..64).map(|_| connected("GET http://".to_owned())).collect();
    let request = |address| format!("GET http://{address}/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    let began = Instant::now();
    assert!(proxy.ask(&request(server.address)).ends_with("hello"));
    assert!(began.elapsed() < patience, "{:?} beside half heads", began.elapsed());
    drop(half);
    let waiting: Vec<_> = (0..2).map(|_| connected(request(silent.address))).collect();
    let began = Instant::now();
    while silent.requests.load(Ordering::Relaxed) < 2 {
        assert!(began.elapsed() < Duration::from_secs(10), "not both have a place");
        thread::sleep(Duration::from_millis(20));
    }
    assert!(proxy.ask(&request(server.address)).starts_with("HTTP/1.1 503"));
    drop(waiting);
}

/// Idle kept-alive connections use no slot.
#[test]
fn idle_connections_cost_nobody_a_place() {
    let server = Server::serving(b"hello".to_vec());
    let ports = vec![server.address.port()];
    // How long an idle connection would otherwise keep its slot.
    let patience = Duration::from_secs(60);
    let proxy = Running::with(Options { connections_max: 2, ports, patience, ..options(plain()) });
    let kept = format!("GET http://{}/ HTTP/1.1\r\nHost: x\r\n\r\n", server.address);
    let again = |stream: &mut TcpStream| {
        stream.write_all(kept.as_bytes()).unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"hello") {
            let mut bytes = [0; 1024];
            let count = stream.read(&mut bytes).unwrap();
            assert!(count > 0, "closed after {:?}", String::from_utf8_lossy(&answer));
            answer.extend_from_slice(&bytes[..count]);
        }
    };
    let began = Instant::now();
    let mut idle: Vec<_> = (0..20).map(|_| TcpStream::connect(proxy.address).unwrap()).collect();
    idle.iter_mut().for_each(again);
    // All of them are still open.
    idle.iter_mut().rev().for_each(again);
    assert!(began.elapsed() < patience, "{:?}: some waited for others to end", began.elapsed());
}

/// Each GET is repaired over connections of its own, within the limit, and every body is complete.
#[test]
fn twenty_programs_at_once_get_whole_files_over_few_connections() {
    const PROGRAMS: u64 = 20;
    const PARALLEL: u64 = 3;
    let content = Arc::new(content(400_000));
    let server = Server::serving(content.to_vec());
    let hop = Hop::before(server.address, Losses { percent: 10, ..Losses::default() });
    let mut settings = settings(&hop.shim);
    settings.repair.parallel_max = PARALLEL as usize;
    let patience = Duration::from_secs(30);
    let proxy = Options { ports: vec![hop.address.port()], patience, ..options(settings) };
    let proxy = Arc::new(Running::with(proxy));
    let request = format!("GET http://{}/file HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", hop.address);
    let programs: Vec<_> = (0..PROGRAMS)
        .map(|_| {
            let (address, request, content) = (proxy.address, request.clone(), Arc::clone(&content));
            thread::spawn(move || {
                let mut stream = TcpStream::connect(address).unwrap();
                stream.write_all(request.as_bytes()).unwrap();
                let mut answer = Vec::new();
                stream.read_to_end(&mut answer).unwrap();
                assert!(answer.starts_with(b"HTTP/1.1 200"));
                assert!(answer.ends_with(&content), "{} bytes", answer.len());
            })
        })
        .collect();
    programs.into_iter().for_each(|program| program.join().unwrap());
    let served = proxy.served.lock().unwrap();
    assert_eq!(served.len() as u64, PROGRAMS);
    assert!(served.iter().all(|served| served.complete && served.repaired && served.holes > 0), "{served:?}");
    // Two more connections per client: the one that carries the body, and the one that checks whether the file has
    // changed.
    let most = hop.counts.open_max.load(Ordering::Relaxed);
    assert!(most <= PROGRAMS * (PARALLEL + 2), "{most} connections at once");
}

#[test]
fn a_body_that_cannot_be_made_whole_ends_early() {
    let content = content(500_000);
    let served = content.clone();
    let server = Server::new(move |seen| {
        if is_for_the_file(seen, served.len()) {
            good(seen, &served, "\"a\"")
        } else {
            good(seen, b"another", "\"b\"")
        }
    });
    let hop = Hop::before(server.address, Losses { percent: 20, ..Losses::default() });
    let proxy = Running::before(&[hop.address], settings(&hop.shim));
    let url = format!("http://{}/file", hop.address);
    if let Some((done, output)) = program(&proxy, &["curl", "-s", &url]) {
        assert!(!done, "curl sees that it is not whole");
        assert!(content.starts_with(&output) && output.len() < content.len());
    }
}

#[test]
fn it_stops_when_told_and_soon() {
    let server =
        Server::new(|_| Reply::Stall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegin".to_vec()));
    let mut proxy = Running::before(&[server.address], plain());
    let mut stream = TcpStream::connect(proxy.address).unwrap();
    write!(stream, "GET http://{}/ HTTP/1.1\r\nHost: x\r\n\r\n", server.address).unwrap();
    let mut begun = [0; 20];
    stream.read_exact(&mut begun).unwrap();
    let started = Instant::now();
    proxy.stop();
    assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
    assert!(TcpStream::connect(proxy.address).is_err());
}
