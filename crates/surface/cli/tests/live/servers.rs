//! Servers that stall or reset in the middle of a body, behind a hop with FWP: `tacit fetch` ends in bounded time, and
//! the bytes it keeps are the server's.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use nix::libc::linger;
use nix::sys::socket::{setsockopt, sockopt};
use serde_json::Value;
use tempfile::TempDir;

use super::helper::words;
use super::player::byte;
use super::support::{machine, output_text, shell};

/// Bytes of the file.
const LEN: u64 = 2_000_000;
/// Position in the file at which long responses fail.
const BREAKS_AT: u64 = 600_000;
/// Responses with more bytes than this are long. No response that fills holes is.
const LONG: u64 = 500_000;

/// The requested range as first and last byte; for several ranges, the first one. `None` at the end of the connection.
fn request(reader: &mut BufReader<TcpStream>) -> Option<(u64, u64)> {
    let (mut line, mut range) = (String::new(), (0, LEN - 1));
    while reader.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
        let words = line.trim_end().to_ascii_lowercase();
        if words.is_empty() {
            return Some(range);
        }
        if let Some((first, last)) =
            words.strip_prefix("range: bytes=").and_then(|ranges| ranges.split(',').next()?.split_once('-'))
        {
            range = (first.parse().unwrap(), last.parse().unwrap_or(LEN - 1).min(LEN - 1));
        }
        line.clear();
    }
    None
}

/// Which long responses fail.
enum Broken {
    Never,
    /// Those that start at the same byte as the first long one: a hedged request starts at the same byte, a resumption
    /// later.
    First(OnceLock<u64>),
    Always,
}

impl Broken {
    fn named(name: &str) -> Self {
        match name {
            "never" => Self::Never,
            "first" => Self::First(OnceLock::new()),
            "always" => Self::Always,
            other => panic!("{other}"),
        }
    }

    fn includes(&self, first: u64) -> bool {
        match self {
            Self::Never => false,
            Self::First(known) => *known.get_or_init(|| first) == first,
            Self::Always => true,
        }
    }
}

/// Number of bytes that the peer has not acknowledged (`tx_queue` in proc(5)).
fn unacknowledged(stream: &TcpStream) -> u64 {
    let remote = format!(":{:04X}", stream.peer_addr().map_or(0, |peer| peer.port()));
    let sockets = fs::read_to_string("/proc/net/tcp").unwrap();
    let queue = sockets.lines().find_map(|line| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let (sent, _) = fields.get(4)?.split_once(':')?;
        fields[2].ends_with(&remote).then(|| u64::from_str_radix(sent, 16).unwrap())
    });
    // The socket no longer exists, because the client has gone.
    queue.unwrap_or(0)
}

/// Serves the requests of one connection. Long bodies selected by `broken` fail at [`BREAKS_AT`], or with their first
/// byte if they start after it, in the way that `way` says.
fn answer(mut stream: TcpStream, way: &str, broken: &Broken) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    while let Some((first, last)) = request(&mut reader) {
        let head = format!(
            "HTTP/1.1 206 Partial Content\r\nETag: \"v1\"\r\nContent-Range: bytes {first}-{last}/{LEN}\r\nContent-Length: {}\r\n\r\n",
            last - first + 1
        );
        let breaks = last - first > LONG && broken.includes(first);
        let end = if breaks { first.max(BREAKS_AT) } else { last + 1 };
        let bytes: Vec<u8> = head.bytes().chain((first..end).map(byte)).collect();
        // The reader gave up and closed the connection.
        if stream.write_all(&bytes).is_err() {
            return;
        }
        if breaks && way == "stall" {
            #[allow(clippy::disallowed_methods, reason = "this is the edge where time is real")]
            std::thread::sleep(Duration::from_secs(600));
        } else if breaks {
            while unacknowledged(&stream) > 0 {
                #[allow(clippy::disallowed_methods, reason = "this is the edge where time is real")]
                std::thread::sleep(Duration::from_millis(5));
            }
            // Closing without lingering sends a reset.
            setsockopt(&stream, sockopt::Linger, &linger { l_onoff: 1, l_linger: 0 }).unwrap();
            return;
        }
    }
}

#[test]
#[ignore = "runs inside a hop"]
fn serve() {
    let (way, broken) = (std::env::var("WAY").unwrap(), Broken::named(&std::env::var("BROKEN").unwrap()));
    let listener = TcpListener::bind("0.0.0.0:80").unwrap();
    std::thread::scope(|scope| {
        for stream in listener.incoming() {
            scope.spawn(|| answer(stream.unwrap(), &way, &broken));
        }
    });
}

/// Fetches a file from a server whose long responses fail as given by [`Broken`]. Returns the exit code, standard
/// error, and the report.
fn fetch(folder: &Path, way: &str, broken: &str) -> (i32, String, Value) {
    let script = "$TACIT fetch http://198.18.0.1/file -o got --timeout 4 --json > report.json 2> stderr; echo $? > code";
    let server = words("servers", "serve");
    let options = ["--json", "--scheme", "fwp", "--set", "wifi.mpdu-error={ down = \"10 %\", up = \"0 %\" }"];
    let mut all = options.to_vec();
    all.extend(["--", "sh", "-c", script, "--server", "--"]);
    all.extend(server.iter().map(String::as_str));
    let mut hop = shell(&all);
    hop.env("WAY", way).env("BROKEN", broken).env("TACIT", env!("CARGO_BIN_EXE_tacit"));
    let output = hop.current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{}", output_text(&output));
    let text = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
    let report = serde_json::from_str(&text("report.json")).unwrap_or(Value::Null);
    (text("code").trim().parse().unwrap(), text("stderr"), report)
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn content() -> Vec<u8> {
    (0..LEN).map(byte).collect()
}

#[test]
fn a_server_that_resets_or_stalls_once_is_gone_on_from() {
    let Some(_machine) = machine(&[]) else { return };
    for way in ["reset", "stall"] {
        let folder = folder();
        let (code, stderr, report) = fetch(folder.path(), way, "first");
        println!("{way}: {report:#}");
        assert_eq!(code, 0, "{way}: {stderr}");
        assert!(fs::read(folder.path().join("got")).unwrap() == content(), "{way}: the file is another one");
        assert_eq!(report["shim"], "registered", "{way}");
        assert!(report["repair"]["holes"].as_u64().unwrap() > 20, "{way}: {report}");
        assert_eq!(report["repair"]["resumed"], 1, "{way}: {report}");
        // The timeout of the program is 4 s, and TCP's first flights need some time in addition.
        assert!(report["duration_s"].as_f64().unwrap() < 15.0, "{way}: {report}");
    }
}

/// The bytes that are kept are the server's, and another run resumes with them.
#[test]
fn a_server_that_always_breaks_ends_it_with_one_error_and_what_came_is_kept() {
    let Some(_machine) = machine(&[]) else { return };
    for way in ["reset", "stall"] {
        let folder = folder();
        #[allow(clippy::disallowed_methods, reason = "this is the edge where time is real")]
        let begun = std::time::Instant::now();
        let (code, stderr, _) = fetch(folder.path(), way, "always");
        let took = begun.elapsed();
        println!("{way}: {took:?}, {stderr}");
        assert_eq!(code, 4, "{way}: {stderr}");
        assert_eq!(stderr.trim_end().lines().count(), 1, "{way}: {stderr}");
        assert!(took < Duration::from_secs(60), "{way}: {took:?}");
        assert!(!folder.path().join("got").exists(), "{way}");
        let kept = fs::read(folder.path().join("got.part")).unwrap();
        assert!(kept.len() > 100_000 && content().starts_with(&kept), "{way}: {} bytes", kept.len());
        let (code, stderr, report) = fetch(folder.path(), way, "never");
        assert_eq!(code, 0, "{way}: {stderr}");
        assert_eq!(report["resumed_bytes"], kept.len(), "{way}: {report}");
        assert!(fs::read(folder.path().join("got")).unwrap() == content(), "{way}: the file is another one");
    }
}
