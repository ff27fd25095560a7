//! `tacit fetch` and `tacit http-proxy` as seen by their users, without a hop.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;

use serde_json::Value;

/// A server with one file.
fn server(content: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut line = String::new();
            let _ = BufReader::new(stream.try_clone().unwrap()).read_line(&mut line);
            let (status, body) =
                if line.contains("/file ") { ("200 OK", content) } else { ("404 Not Found", &b""[..]) };
            let head =
                format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            let _ = stream.write_all(&[head.as_bytes(), body].concat());
        }
    });
    address
}

fn tacit(folder: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tacit")).args(words).current_dir(folder).output().unwrap()
}

fn refused(folder: &Path, words: &[&str], code: i32, why: &str) {
    let output = tacit(folder, words);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{words:?}: {stderr}");
    assert!(
        stderr.lines().count() == 1 && stderr.starts_with("tacit: ") && stderr.contains(why),
        "{words:?}: {stderr}"
    );
    assert!(output.stdout.is_empty());
}

#[test]
fn a_file_is_fetched_and_its_checksum_told() {
    let (folder, address) = (tempfile::tempdir().unwrap(), server(b"abc"));
    let url = format!("http://{address}/file");
    let output = tacit(folder.path(), &["fetch", &url, "--json"]);
    assert!(output.status.success() && output.stderr.is_empty(), "no progress but on a terminal");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    // FIPS 180-2, appendix B.1.
    assert_eq!(report["sha256"], "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_eq!(
        (&report["bytes"], &report["shim"], &report["file"]),
        (&3.into(), &"none".into(), &"file".into())
    );
    assert_eq!(fs::read(folder.path().join("file")).unwrap(), b"abc");
    let output = tacit(folder.path(), &["fetch", &url, "-o", "-", "-q"]);
    assert_eq!((output.stdout.as_slice(), output.stderr.as_slice()), (&b"abc"[..], &b""[..]));
}

#[test]
fn a_failed_fetch_says_one_line() {
    let (folder, address) = (tempfile::tempdir().unwrap(), server(b"abc"));
    let (file, none) = (format!("http://{address}/file"), format!("http://{address}/none"));
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let zeros = "0".repeat(64);
    for (words, code, why) in [
        (&["ftp://example.org/x"][..], 2, "http://"),
        (&["example.org/x"], 2, "http://"),
        (&["http://example.org/"], 2, "-o FILE"),
        (&["http://a b/"], 2, "spaces"),
        (&["http://user:pass@example.org/x"], 2, "in the clear"),
        (&[&file, "-o", "no/such/folder"], 2, "no/such/folder"),
        (&[&file, "-o", "."], 2, "directory"),
        (&[&file, "--sha256", "abc"], 2, "64"),
        (&[&file, "--timeout", "0"], 2, "--timeout"),
        (&[&file, "--sha256", &zeros], 1, "SHA-256"),
        (&[&none], 3, "404"),
        (&[&format!("http://{closed}/x")], 4, "no connection"),
        (&["http://no.such.host.invalid/x"], 4, "no.such.host.invalid"),
    ] {
        refused(folder.path(), &[&["fetch"], words].concat(), code, why);
    }
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_server_that_breaks_at_one_place_each_time_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/file", listener.local_addr().unwrap());
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut line = String::new();
            let _ = BufReader::new(stream.try_clone().unwrap()).read_line(&mut line);
            // aria2#2393: the server does not support ranges but claims to.
            let head =
                "HTTP/1.1 200 OK\r\nETag: \"x\"\r\nAccept-Ranges: bytes\r\nContent-Length: 300\r\n\r\n";
            let _ = stream.write_all(&[head.as_bytes(), &[b'x'; 20]].concat());
        }
    });
    #[expect(clippy::disallowed_methods, reason = "how long users wait")]
    let begun = std::time::Instant::now();
    refused(folder.path(), &["fetch", &url, "--timeout", "4"], 4, "the connection broke");
    assert!(begun.elapsed() < std::time::Duration::from_secs(30), "{:?}", begun.elapsed());
}

/// A proxy that is killed if the test fails.
struct Proxy(Child);

impl Proxy {
    /// Starts a proxy that may connect to `host` at `port`. Returns it with its lines of output.
    fn before(host: &str, port: u16) -> (Self, impl Iterator<Item = String>) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tacit"));
        command.args(["http-proxy", "--listen", "127.0.0.1:0", "--json", "--allow-host", host]);
        command.arg("--allow-port").arg(port.to_string());
        let mut proxy = Self(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
        let lines = BufReader::new(proxy.0.stderr.take().unwrap());
        (proxy, lines.lines().map_while(Result::ok))
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.0.kill();
    }
}

#[test]
fn a_proxy_says_where_it_is_and_stops_when_told() {
    let address = server(b"abc");
    let (mut proxy, mut lines) = Proxy::before("127.0.0.1", address.port());
    let line = lines.next().unwrap();
    let proxy_address = line.strip_prefix("tacit: http_proxy=http://").unwrap();
    let mut stream = std::net::TcpStream::connect(proxy_address).unwrap();
    write!(stream, "GET http://{address}/file HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with("abc"), "{answer}");
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(proxy.0.id() as i32), nix::sys::signal::SIGTERM)
        .unwrap();
    assert!(proxy.0.wait().unwrap().success());
    let mut stdout = String::new();
    proxy.0.stdout.as_mut().unwrap().read_to_string(&mut stdout).unwrap();
    let served: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(
        (&served["status"], &served["bytes"], &served["complete"]),
        (&200.into(), &3.into(), &true.into())
    );
}

#[test]
fn https_passes_through_the_proxy_unrepaired() {
    if Command::new("curl").arg("--version").output().is_err() {
        eprintln!("SKIPPED: curl is not installed");
        return;
    }
    let port = tls_server(b"abc").port();
    let (mut proxy, mut lines) = Proxy::before("localhost", port);
    let proxy_url = lines.next().unwrap().strip_prefix("tacit: http_proxy=").unwrap().to_owned();
    assert!(lines.next().unwrap().contains("https passes unrepaired"));
    let authority = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tls/ca.pem");
    let mut curl = Command::new("curl");
    curl.args(["-sS", "--max-time", "20", "--cacert"])
        .arg(authority)
        .arg(format!("https://localhost:{port}/file"));
    let output = curl.env("https_proxy", proxy_url).env_remove("no_proxy").output().unwrap();
    assert_eq!(output.stdout, b"abc", "{}", String::from_utf8_lossy(&output.stderr));
    let mut line = String::new();
    BufReader::new(proxy.0.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let served: Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&served["method"], &served["repaired"]), (&"CONNECT".into(), &false.into()));
    assert!(served["bytes"].as_u64().unwrap() > 3, "TLS has more bytes than the file: {served}");
}

#[test]
fn a_proxy_for_everybody_is_not_made_by_accident() {
    let folder = tempfile::tempdir().unwrap();
    refused(folder.path(), &["http-proxy", "--listen", "0.0.0.0:0"], 2, "--open");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let holder = TcpListener::bind(taken).unwrap();
    refused(folder.path(), &["http-proxy", "--listen", &taken.to_string()], 2, "cannot listen");
    drop(holder);
}

/// A server that serves `content` at `/file` over TLS, with a certificate for `localhost` from a test authority.
/// `/plain` redirects to `http`.
fn tls_server(content: &'static [u8]) -> SocketAddr {
    use rustls::pki_types::pem::PemObject as _;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tls");
    let certificate = CertificateDer::from_pem_file(folder.join("server.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(folder.join("server.key")).unwrap();
    let provider = std::sync::Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.unwrap().with_no_client_auth().with_single_cert(vec![certificate], key).unwrap();
    let config = std::sync::Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for tcp in listener.incoming().flatten() {
            let session = rustls::ServerConnection::new(config.clone()).unwrap();
            let mut stream = BufReader::new(rustls::StreamOwned::new(session, tcp));
            let mut line = String::new();
            // A client that does not trust the certificate sends no request.
            let Ok(_) = stream.read_line(&mut line) else { continue };
            let head = match line.split(' ').nth(1) {
                Some("/file") => {
                    format!("HTTP/1.1 200 OK\r\nETag: \"a\"\r\nContent-Length: {}\r\n\r\n", content.len())
                }
                _ => "HTTP/1.1 302 Found\r\nLocation: http://localhost/x\r\nContent-Length: 0\r\n\r\n"
                    .to_owned(),
            };
            let body = if head.contains("302") { &b""[..] } else { content };
            let _ = stream.get_mut().write_all(&[head.as_bytes(), body].concat());
            stream.get_mut().conn.send_close_notify();
            let _ = stream.get_mut().flush();
        }
    });
    address
}

#[test]
fn https_is_fetched_as_it_is_from_the_server_that_it_names() {
    let (folder, address) = (tempfile::tempdir().unwrap(), tls_server(b"abc"));
    let authority = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tls/ca.pem");
    let fetch = |url: &str, trusts: bool| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tacit"));
        command.args(["fetch", url, "-O"]).current_dir(folder.path());
        // The root certificates of this platform, in OpenSSL's location.
        let roots =
            if trusts { authority.as_path() } else { Path::new("/etc/ssl/certs/ca-certificates.crt") };
        command.env("SSL_CERT_FILE", roots).env_remove("SSL_CERT_DIR");
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
    };
    let port = address.port();
    let (code, text) = fetch(&format!("https://localhost:{port}/file"), true);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("over TLS"), "{text}");
    assert_eq!(fs::read(folder.path().join("file")).unwrap(), b"abc");
    fs::remove_file(folder.path().join("file")).unwrap();
    // Another name, an untrusted authority, and no TLS at all.
    let (code, text) = fetch(&format!("https://ip6-localhost.invalid:{port}/file"), true);
    assert_eq!(code, Some(4), "{text}");
    let (code, text) = fetch(&format!("https://localhost:{port}/file"), false);
    assert!(code == Some(4) && text.contains("no TLS with localhost"), "{text}");
    let (code, text) = fetch(&format!("https://{}/file", server(b"abc")), true);
    assert!(code == Some(4) && text.contains("no TLS with 127.0.0.1"), "{text}");
    let (code, text) = fetch(&format!("https://localhost:{port}/plain"), true);
    assert!(code == Some(3) && text.contains("http://localhost/x"), "{text}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "failures leave nothing");
}
