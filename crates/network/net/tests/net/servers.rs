//! Third-party servers, and readers that play video while they download.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tacit_net::flow::ShimName;
use tempfile::TempDir;

use crate::bodies::{patient, read, read_with, settings};
use crate::hop::{Hop, Losses};
use crate::server::content;

/// Time limit for a server to start.
const START_MAX: Duration = Duration::from_secs(10);

/// A server process that ends with its test.
struct Running {
    child: Child,
    address: SocketAddr,
    _folder: TempDir,
}

impl Drop for Running {
    fn drop(&mut self) {
        // After it was waited for, its process ID may belong to another process.
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        // nginx forwards the signal to its workers.
        let pid = nix::unistd::Pid::from_raw(self.child.id() as i32);
        let _ = nix::sys::signal::kill(pid, nix::sys::signal::SIGTERM);
        let _ = self.child.wait();
    }
}

/// Starts `words` with `file` in a folder. In `words`, `{folder}` stands for that folder and `{port}` for the port.
fn start(words: &[&str], file: &[u8], configuration: &str) -> Option<Running> {
    let folder = TempDir::new().unwrap();
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let fill = |text: &str| {
        text.replace("{folder}", &folder.path().display().to_string())
            .replace("{port}", &address.port().to_string())
    };
    std::fs::write(folder.path().join("file"), file).unwrap();
    std::fs::write(folder.path().join("configuration"), fill(configuration)).unwrap();
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap());
    let mut command = Command::new(words[0]);
    command.args(words[1..].iter().map(|word| fill(word))).env("PATH", path).current_dir(folder.path());
    let Ok(child) = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn() else {
        eprintln!("SKIPPED: {} is not installed", words[0]);
        return None;
    };
    let mut running = Running { child, address, _folder: folder };
    let started = Instant::now();
    loop {
        // The port was free a moment ago, but another program may have taken it since.
        let is_ready = serves(address, file);
        let ended = running.child.try_wait().unwrap();
        assert!(ended.is_none(), "{words:?} ended: {ended:?}");
        if is_ready {
            return Some(running);
        }
        assert!(started.elapsed() < START_MAX, "{words:?} does not serve its file");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// True if `address` serves `file`, by its length and first bytes; with a rate limit the rest would take seconds.
fn serves(address: SocketAddr, file: &[u8]) -> bool {
    let ask = || {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(START_MAX))?;
        stream.write_all(b"GET /file HTTP/1.0\r\n\r\n")?;
        let mut answer = Vec::new();
        stream.take(4096).read_to_end(&mut answer)?;
        Ok::<_, std::io::Error>(answer)
    };
    let Ok(answer) = ask() else { return false };
    let Some(end) = answer.windows(4).position(|four| four == b"\r\n\r\n") else { return false };
    let (head, bytes) = answer.split_at(end + 4);
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let has_length = head.contains(&format!("\r\ncontent-length: {}\r\n", file.len()));
    has_length && !bytes.is_empty() && file.starts_with(bytes)
}

fn nginx(file: &[u8], more: &str) -> Option<Running> {
    let configuration = format!(
        "daemon off; pid {{folder}}/pid; error_log {{folder}}/errors; events {{}}\nhttp {{ access_log off; {more} server {{ \
         listen 127.0.0.1:{{port}}; root {{folder}}; }} }}\n"
    );
    start(&["nginx", "-c", "{folder}/configuration"], file, &configuration)
}

#[test]
fn nginx_is_repaired_from() {
    let content = content(3_000_000);
    let Some(server) = nginx(&content, "") else { return };
    for percent in [10, 40] {
        let hop = Hop::before(server.address, Losses { percent, ..Losses::default() });
        let found = read_with(hop.address, patient(&hop.shim)).unwrap();
        assert!(found.error.is_none(), "{:?}", found.error);
        assert!(found.bytes == content && found.is_repaired && !found.repaired.fell_back);
        assert!(found.repaired.counters.holes > 50, "{:?}", found.repaired);
    }
}

#[test]
fn nginx_that_closes_often_or_has_no_ranges_is_read_from() {
    let content = content(1_000_000);
    // Three requests per connection; the whole file in answer to several ranges; no ranges at all.
    for (more, repaired) in
        [("keepalive_requests 3;", true), ("max_ranges 1;", true), ("max_ranges 0;", false)]
    {
        let Some(server) = nginx(&content, more) else { return };
        let hop = Hop::before(server.address, Losses { percent: 15, ..Losses::default() });
        let found = read_with(hop.address, patient(&hop.shim)).unwrap();
        assert!(found.error.is_none() && found.bytes == content, "{more}: {:?}", found.error);
        assert_eq!(found.repaired.counters.holes > 0, repaired, "{more}");
        assert!(!found.repaired.fell_back, "{more}");
    }
}

#[test]
fn pythons_server_has_no_ranges_and_is_read_as_it_is() {
    let content = content(1_000_000);
    let words = ["python3", "-m", "http.server", "{port}", "--bind", "127.0.0.1", "--directory", "{folder}"];
    let Some(server) = start(&words, &content, "") else { return };
    let hop = Hop::before(server.address, Losses { percent: 20, ..Losses::default() });
    let found = read(&hop);
    assert!(found.error.is_none() && found.bytes == content, "{:?}", found.error);
    assert_eq!(found.repaired.counters.holes, 0);
    let found = read_with(server.address, settings(&ShimName::abstracted(b"tacit-test-nobody"))).unwrap();
    assert!(found.bytes == content);
}

/// Total stall time of a player that starts once `buffer` of its stream has arrived, plays `rate` bytes per second, and
/// buffers as much again when it runs dry.
fn stalled(arrivals: &[(Duration, usize)], rate: f64, buffer: Duration) -> Duration {
    let (mut played_until, mut stalls) = (None::<Duration>, Duration::ZERO);
    let mut bytes = 0;
    for (at, len) in arrivals {
        bytes += len;
        let media = Duration::from_secs_f64(bytes as f64 / rate);
        played_until = match played_until {
            // When the playback of `media` would end without a stall.
            Some(begun)
                if begun + media.saturating_sub(Duration::from_secs_f64(*len as f64 / rate)) < *at =>
            {
                let dry = *at - (begun + media - Duration::from_secs_f64(*len as f64 / rate));
                stalls += dry;
                Some(begun + dry)
            }
            None if media >= buffer => Some(*at),
            other => other,
        };
    }
    stalls
}

/// The paper's players buffer 8 s (live) and 30 s (on demand); repair must not stall either.
#[test]
fn players_do_not_stand_still_for_repairs() {
    let content = content(4_000_000);
    // At this rate the file is 40 s of video; it is received at five times that rate.
    let rate = 100_000.0;
    let configuration = "limit_rate 500k;";
    let Some(server) = nginx(&content, configuration) else { return };
    let hop = Hop::before(server.address, Losses { percent: 10, ..Losses::default() });
    let (target, settings) = (format!("http://{}/file", hop.address), settings(&hop.shim));
    let arrivals = crate::bodies::wait(async {
        let connector = tacit_net::connection::Connector::new(
            std::sync::Arc::new(settings),
            std::sync::Arc::new(tacit_net::reach::Reach::All),
            tacit_net::target::Target::parse(&target).unwrap(),
        );
        let headers = hyper::HeaderMap::new();
        let mut answer =
            tacit_net::client::get(&std::sync::Arc::new(connector), &headers, true).await.unwrap();
        let (started, mut arrivals) = (Instant::now(), Vec::new());
        while let Some(bytes) = answer.body.next().await.unwrap() {
            arrivals.push((started.elapsed(), bytes.len()));
        }
        assert!(answer.body.repaired().counters.holes > 50);
        println!("longest delay {:?}", answer.body.repaired().counters.blocked_max);
        arrivals
    });
    let bytes: usize = arrivals.iter().map(|(_, len)| len).sum();
    assert_eq!(bytes, content.len());
    for buffer in [8, 30] {
        let stalls = stalled(&arrivals, rate, Duration::from_secs(buffer));
        println!("{buffer} s of buffer: stood still for {stalls:?}");
        assert_eq!(stalls, Duration::ZERO, "with {buffer} s of buffer");
    }
    // Check of the method: a player without a buffer that plays faster than the download stalls.
    assert!(stalled(&arrivals, 1e6, Duration::ZERO) > Duration::from_secs(1));
}
