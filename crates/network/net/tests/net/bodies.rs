//! Bodies arrive exactly as the server has them, or not at all.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hyper::HeaderMap;
use tacit_net::NetError;
use tacit_net::body::RepairStats;
use tacit_net::client::get;
use tacit_net::connection::{Connector, Settings};
use tacit_net::flow::ShimName;
use tacit_net::partial::RangeError;
use tacit_net::reach::Reach;
use tacit_net::target::Target;

use crate::hop::{Hop, Losses, MARKER};
use crate::server::{Reply, Seen, Server, content, good};

/// Runs `work` to its end.
pub fn wait<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(Duration::from_secs(60), work).await.expect("it hangs") })
}

pub fn settings(shim: &ShimName) -> Settings {
    let mut settings = Settings { shim: shim.clone(), ..Settings::default() };
    settings.repair.deadline = tacit_packet::units::Duration::from_secs(3);
    settings.idle_timeout = Duration::from_secs(2);
    settings.head_timeout = Duration::from_secs(4);
    settings
}

/// Waits at most ten seconds for `condition`.
fn wait_until(condition: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(10);
    while !condition() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Settings with time limits that a slow machine meets, too.
pub fn patient(shim: &ShimName) -> Settings {
    let mut settings = settings(shim);
    settings.repair.deadline = tacit_packet::units::Duration::from_secs(30);
    settings
}

/// The same without hedged requests: no connections are opened beyond the first ones.
fn unhedged(shim: &ShimName) -> Settings {
    let mut settings = patient(shim);
    settings.repair.parallel_max = 4;
    settings
}

pub struct Read {
    pub bytes: Vec<u8>,
    pub status: u16,
    pub is_repaired: bool,
    pub repaired: RepairStats,
    pub error: Option<NetError>,
}

pub fn read_with(address: SocketAddr, settings: Settings) -> Result<Read, NetError> {
    wait(async {
        let target = Target::parse(&format!("http://{address}/file")).unwrap();
        let connector = Arc::new(Connector::new(Arc::new(settings), Arc::new(Reach::All), target));
        let mut answer = get(&connector, &HeaderMap::new(), true).await?;
        let mut bytes = Vec::new();
        let error = loop {
            match answer.body.next().await {
                Ok(Some(piece)) => bytes.extend_from_slice(&piece),
                Ok(None) => break None,
                Err(error) => break Some(error),
            }
        };
        let (status, is_repaired, repaired) =
            (answer.status.as_u16(), answer.is_repaired, answer.body.repaired());
        Ok(Read { bytes, status, is_repaired, repaired, error })
    })
}

pub fn read(hop: &Hop) -> Read {
    read_with(hop.address, settings(&hop.shim)).unwrap()
}

fn assert_same(found: &Read, content: &[u8]) {
    assert!(found.error.is_none(), "{:?}", found.error);
    assert_eq!(found.bytes.len(), content.len());
    assert!(found.bytes == content, "the bytes differ");
}

/// As if the segment with the head of the long answer were lost for good.
#[test]
fn a_long_answer_whose_head_is_late_is_asked_for_on_another_connection() {
    let content = content(3_000_000);
    let (served, is_first) = (content.clone(), AtomicBool::new(true));
    let server = Server::new(move |seen| {
        let is_long = seen.range(served.len()).is_some_and(|(first, last)| last - first > 1_000_000);
        match is_long && is_first.swap(false, Ordering::Relaxed) {
            true => Reply::Stall(Vec::new()),
            false => good(seen, &served, "\"v1\""),
        }
    });
    let hop = Hop::before(server.address, Losses { percent: 10, ..Losses::default() });
    let found = read(&hop);
    assert_same(&found, &content);
    // The hedged request succeeded before the time limit for heads, after which the body would be resumed.
    assert_eq!((found.is_repaired, found.repaired.resumed), (true, 0));
}

/// The delay may come from a slow server instead of a loss.
#[test]
fn a_long_answer_that_is_always_late_is_taken() {
    let content = content(1_000_000);
    let served = content.clone();
    let server = Server::new(move |seen| {
        if seen.range(served.len()).is_some_and(|(first, last)| last - first > 500_000) {
            std::thread::sleep(Duration::from_millis(300));
        }
        good(seen, &served, "\"v1\"")
    });
    let hop = Hop::before(server.address, Losses { percent: 10, ..Losses::default() });
    let found = read(&hop);
    assert_same(&found, &content);
    assert_eq!((found.is_repaired, found.repaired.resumed), (true, 0));
}

#[test]
fn bodies_are_identical_at_every_loss() {
    let content = content(3_000_000);
    let server = Server::serving(content.clone());
    for percent in [0, 1, 10, 20, 40] {
        let hop = Hop::before(server.address, Losses { percent, ..Losses::default() });
        // The hop also counts placeholders of answers that nothing reads.
        let found = read_with(hop.address, unhedged(&hop.shim)).unwrap();
        assert_same(&found, &content);
        assert!(found.is_repaired);
        assert_eq!(found.status, 200);
        let counters = found.repaired.counters;
        assert!(percent == 0 || counters.holes > 0, "{percent} %: no hole");
        assert_eq!(counters.hole_bytes, counters.repaired_bytes + counters.late_bytes);
        assert!(!found.repaired.fell_back);
        let lost = hop.counts.hole_bytes.load(Ordering::Relaxed);
        assert!(lost >= counters.hole_bytes && (percent < 10 || lost > 3_000_000 * percent / 200), "{lost}");
        // The shim is informed on a separate socket, possibly after the last byte was read.
        let repaired = || hop.counts.repaired_bytes.load(Ordering::Relaxed);
        wait_until(|| repaired() >= lost * 9 / 10);
        assert!(
            repaired() <= lost && repaired() >= lost * 9 / 10,
            "{} of {lost}: the shim hears of repairs",
            repaired()
        );
        println!("{percent} %: {counters:?}, {} connections", hop.counts.connections.load(Ordering::Relaxed));
    }
}

#[test]
fn connections_for_holes_are_no_more_than_asked_for() {
    let content = content(2_000_000);
    let server = Server::serving(content.clone());
    for parallel in [1, 2, 8] {
        let hop = Hop::before(server.address, Losses { percent: 30, ..Losses::default() });
        // A single connection is slow, which does not matter here.
        let mut settings = patient(&hop.shim);
        settings.repair.parallel_max = parallel;
        let found = read_with(hop.address, settings).unwrap();
        assert_same(&found, &content);
        assert!(found.repaired.counters.repaired_bytes > 0 && !found.repaired.fell_back);
        // Two more connections: the one that carries the body, and the one that checks whether the file has changed.
        let most = hop.counts.open_max.load(Ordering::Relaxed);
        assert!(most <= parallel as u64 + 2, "{most} connections at once, of {parallel} for holes");
    }
}

/// The server is slow with the head of the body. Hedged requests count towards the limit on connections.
#[test]
fn hedged_requests_are_among_the_connections_asked_for() {
    // Four connections are opened for holes before the body is requested, and hedges use up to two of the rest.
    for (parallel, expected) in [(1, 1), (4, 1), (5, 2), (6, 3), (16, 3)] {
        let content = content(2_000_000);
        let asked = Arc::new(AtomicU64::new(0));
        let (served, counted) = (content.clone(), Arc::clone(&asked));
        let server = Server::new(move |seen| {
            if seen.range(served.len()).is_some_and(|(first, last)| last - first > 1_500_000) {
                counted.fetch_add(1, Ordering::Relaxed);
                // Leaves a surplus connection time to appear.
                wait_until(|| counted.load(Ordering::Relaxed) >= expected);
                std::thread::sleep(Duration::from_millis(500));
            }
            good(seen, &served, "\"v1\"")
        });
        let hop = Hop::before(server.address, Losses { percent: 10, ..Losses::default() });
        // A body that falls back is requested once more.
        let mut settings = patient(&hop.shim);
        settings.repair.parallel_max = parallel;
        assert_same(&read_with(hop.address, settings).unwrap(), &content);
        assert_eq!(asked.load(Ordering::Relaxed), expected, "requests for the body, {parallel} connections");
        let most = hop.counts.open_max.load(Ordering::Relaxed);
        assert!(most <= parallel as u64 + 2, "{most} connections at once, of {parallel} for holes");
    }
}

#[test]
fn a_file_of_markers_is_a_file_like_any_other() {
    let content: Vec<u8> = MARKER.iter().copied().cycle().take(500_000).collect();
    let hop =
        Hop::before(Server::serving(content.clone()).address, Losses { percent: 20, ..Losses::default() });
    assert_same(&read(&hop), &content);
}

#[test]
fn originals_that_come_late_spare_requests() {
    let content = content(2_000_000);
    let losses = Losses { percent: 10, late_one_in: 1, ..Losses::default() };
    let hop = Hop::before(Server::serving(content.clone()).address, losses);
    let found = read(&hop);
    assert_same(&found, &content);
    assert!(found.repaired.counters.late_bytes > 0, "{:?}", found.repaired);
}

#[test]
fn small_and_empty_files_arrive() {
    for len in [0, 1, 13_999, 14_000, 14_001, 20_000] {
        let content = content(len);
        let hop = Hop::before(
            Server::serving(content.clone()).address,
            Losses { percent: 30, ..Losses::default() },
        );
        assert_same(&read(&hop), &content);
    }
}

#[test]
fn without_a_shim_or_with_one_that_refuses_everything_is_plain() {
    let content = content(1_000_000);
    let server = Server::serving(content.clone());
    let found = read_with(server.address, settings(&ShimName::abstracted(b"tacit-test-nobody"))).unwrap();
    assert_same(&found, &content);
    assert!(!found.is_repaired);
    assert_eq!(server.requests.load(Ordering::Relaxed), 1, "one plain request");
    let hop = Hop::before(server.address, Losses { percent: 20, refuses: true, ..Losses::default() });
    let found = read(&hop);
    assert_same(&found, &content);
    assert!(!found.is_repaired);
}

#[test]
fn a_body_whose_connection_breaks_is_resumed() {
    let content = content(1_000_000);
    let server = Server::serving(content.clone());
    let losses = Losses { percent: 10, breaks_after: Some(300_000), ..Losses::default() };
    let hop = Hop::before(server.address, losses);
    // Without hedged requests: an answer that nothing reads could break instead.
    let found = read_with(hop.address, unhedged(&hop.shim)).unwrap();
    assert_same(&found, &content);
    assert_eq!(found.repaired.resumed, 1);
    // Without a shim, resuming needs only the validator.
    let hop = Hop::before(server.address, losses);
    let found = read_with(hop.address, settings(&ShimName::abstracted(b"tacit-test-nobody"))).unwrap();
    assert_same(&found, &content);
    assert_eq!(found.repaired.resumed, 1);
}

/// A server that claims to support ranges, but sends everything from the start each time and always cuts it at the same
/// place. An answer without new bytes is no progress, so the server is given up as early as a silent one.
#[test]
fn a_server_that_cuts_each_answer_at_the_same_place_is_given_up() {
    let server = Server::new(|_| {
        let head = "HTTP/1.1 200 OK\r\nETag: \"x\"\r\nAccept-Ranges: bytes\r\nContent-Length: 300\r\n\r\n";
        Reply::Last([head.as_bytes(), &[b'x'; 20]].concat())
    });
    let began = Instant::now();
    let found = read_with(server.address, settings(&ShimName::abstracted(b"tacit-test-nobody"))).unwrap();
    assert!(found.error.is_some() && found.bytes.len() <= 20);
    let (took, requests) = (began.elapsed(), server.requests.load(Ordering::Relaxed));
    assert!(took < Duration::from_secs(8) && requests <= 7, "{took:?}, asked {requests} times");
}

#[test]
fn placeholders_where_none_may_stand_are_never_read() {
    let content = content(300_000);
    let server = Server::serving(content.clone());
    // Placeholders in heads, in the first part and at the end of bodies are not allowed, and are refused. Their bytes
    // are requested again, and in the end are received over TCP.
    let hop = Hop::before(server.address, Losses { percent: 15, anywhere: true, ..Losses::default() });
    match read_with(hop.address, settings(&hop.shim)) {
        Ok(found) => match found.error {
            None => assert_same(&found, &content),
            Some(_) => assert!(content.starts_with(&found.bytes)),
        },
        Err(error) => assert!(matches!(error, NetError::Misplaced), "{error}"),
    }
}

/// How a server answers.
type Way = fn(&Seen, &[u8]) -> Reply;

/// True for the two requests that fetch a file of `complete` bytes over a lossy hop: for its first bytes, and for the
/// rest. Both are repeated if their answers are late, so request numbers cannot identify them.
pub fn is_for_the_file(seen: &Seen, complete: usize) -> bool {
    const FIRST_BYTES: usize = 1000;
    let range = seen.range(complete);
    range == Some((0, FIRST_BYTES - 1)) || range == Some((FIRST_BYTES, complete - 1))
}

/// Reads from a server that answers requests for the file correctly, and all others as `then` does.
fn after_first(content: &[u8], then: impl Fn(&Seen, &[u8]) -> Reply + Send + Sync + 'static) -> (Hop, Read) {
    let served = content.to_vec();
    let server = Server::new(move |seen| match is_for_the_file(seen, served.len()) {
        true => good(seen, &served, "\"v1\""),
        false => then(seen, &served),
    });
    let hop = Hop::before(server.address, Losses { percent: 10, ..Losses::default() });
    let found = read_with(hop.address, patient(&hop.shim)).unwrap();
    (hop, found)
}

fn partial(seen: &Seen, content: &[u8], range: impl Fn(usize, usize) -> String, extra: &str) -> Reply {
    let (first, last) = seen.ranges(content.len()).unwrap()[0];
    let head = format!(
        "HTTP/1.1 206 Partial Content\r\n{extra}Content-Range: {}\r\nContent-Length: {}\r\n\r\n",
        range(first, last),
        last - first + 1
    );
    Reply::Bytes([head.as_bytes(), &content[first..=last]].concat())
}

#[test]
fn a_file_that_changes_half_way_is_never_mixed() {
    let content = content(500_000);
    // Another tag; a tag kept with If-Range ignored but another length; 416; 412.
    let ways: [Way; 5] = [
        |seen, content| good(seen, &vec![7; content.len()], "\"v2\""),
        |seen, content| partial(seen, content, |a, b| format!("bytes {a}-{b}/500000"), "ETag: \"v2\"\r\n"),
        |seen, content| partial(seen, content, |a, b| format!("bytes {a}-{b}/500001"), "ETag: \"v1\"\r\n"),
        |_, _| {
            Reply::Bytes(b"HTTP/1.1 416 No\r\nContent-Range: bytes */3\r\nContent-Length: 0\r\n\r\n".to_vec())
        },
        |_, _| Reply::Bytes(b"HTTP/1.1 412 No\r\nContent-Length: 0\r\n\r\n".to_vec()),
    ];
    for then in ways {
        let (_, found) = after_first(&content, then);
        assert!(matches!(found.error, Some(NetError::Range(RangeError::Changed))), "{:?}", found.error);
        assert!(content.starts_with(&found.bytes));
        assert!(found.bytes.len() < content.len());
    }
}

/// A hop that loses a tenth of the segments, and every head of an answer to a repair request.
fn headless(server: &Server) -> Hop {
    Hop::before(server.address, Losses { percent: 10, heads: true, ..Losses::default() })
}

/// Correct replies, with heads longer than the lost segment, so that parts follow that segment.
fn with_long_heads(seen: &Seen, content: &[u8], tag: &str) -> Reply {
    let Reply::Bytes(bytes) = good(seen, content, tag) else { panic!("it answers and goes on") };
    let end = bytes.windows(4).position(|text| text == b"\r\n\r\n").unwrap() + 2;
    let more = format!("X: {}\r\n", "x".repeat(3000));
    Reply::Bytes([&bytes[..end], more.as_bytes(), &bytes[end..]].concat())
}

/// True for repair requests, except the probe of how the server answers several ranges.
fn is_for_holes(seen: &Seen) -> bool {
    seen.ranges(usize::MAX).is_some_and(|ranges| ranges.len() > 1 && ranges[1] != (1, 1))
}

/// RFC 9110 section 13.1.5 forbids ignoring `If-Range`. A server that ignores it and changes the file reveals this only
/// in heads, which are lost here. No bytes of the new file may be handed on, and the body must not end as if it were
/// complete.
#[test]
fn a_server_that_ignores_if_range_is_found_out_without_heads() {
    let old = content(2_000_000);
    let new = vec![7; old.len()];
    for changes_at in [1, 2] {
        let (holes, contents) = (AtomicU64::new(0), [old.clone(), new.clone()]);
        let server = Server::new(move |seen| {
            let asked = holes.fetch_add(u64::from(is_for_holes(seen)), Ordering::Relaxed);
            let seen = Seen {
                headers: seen.headers.iter().filter(|(name, _)| name != "if-range").cloned().collect(),
                ..seen.clone()
            };
            let is_new = asked + u64::from(is_for_holes(&seen)) >= changes_at;
            with_long_heads(&seen, &contents[usize::from(is_new)], if is_new { "\"v2\"" } else { "\"v1\"" })
        });
        let found = read(&headless(&server));
        assert!(matches!(found.error, Some(NetError::Range(RangeError::Changed))), "{:?}", found.error);
        assert!(found.bytes.len() < old.len() && old.starts_with(&found.bytes), "{changes_at}");
    }
}

#[test]
fn bytes_without_a_validated_head_wait_for_one() {
    let content = content(500_000);
    for head_status in [200, 405] {
        let (served, heads) = (content.clone(), Arc::new(AtomicU64::new(0)));
        let counted = Arc::clone(&heads);
        let server = Server::new(move |seen| {
            counted.fetch_add(u64::from(seen.method == "HEAD"), Ordering::Relaxed);
            if seen.method == "HEAD" && head_status != 200 {
                return Reply::Bytes(b"HTTP/1.1 405 No\r\nContent-Length: 0\r\n\r\n".to_vec());
            }
            with_long_heads(seen, &served, "\"v1\"")
        });
        let hop = headless(&server);
        let found = read_with(hop.address, patient(&hop.shim)).unwrap();
        assert_same(&found, &content);
        let heads = heads.load(Ordering::Relaxed);
        assert!(heads > 0 && found.repaired.counters.holes > 0, "{heads}, {:?}", found.repaired);
        // If the server refuses HEAD, the file is read over a connection without placeholders.
        assert_eq!(found.repaired.fell_back, head_status != 200);
    }
}

#[test]
fn repairs_that_lie_fall_back_to_tcp_or_end_it() {
    let content = content(500_000);
    // Answers to repair requests are shifted, longer, in two parts, coded, or the whole file; the final plain request
    // is answered correctly.
    let plain = |seen: &Seen, content: &[u8]| {
        // An open-ended range with a start near the beginning asks for the rest of the file.
        let (first, last) = seen.range(content.len())?;
        (last + 1 == content.len() && last - first > 300_000).then(|| good(seen, content, "\"v1\""))
    };
    let multipart = |_: &Seen, _: &[u8]| {
        let head = "HTTP/1.1 206 Partial Content\r\nContent-Type: multipart/byteranges; boundary=x\r\nContent-Length: 3\r\n\r\n--x";
        Reply::Bytes(head.as_bytes().to_vec())
    };
    let lie = |seen: &Seen, content: &[u8]| {
        let (first, last) = seen.ranges(content.len()).unwrap()[0];
        let head = format!(
            "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes {}-{}/{}\r\nContent-Length: {}\r\n\r\n",
            first + 1,
            last,
            content.len(),
            last - first
        );
        Reply::Bytes([head.as_bytes(), &content[first..last]].concat())
    };
    let coded = |seen: &Seen, content: &[u8]| {
        partial(seen, content, |a, b| format!("bytes {a}-{b}/500000"), "Content-Encoding: gzip\r\n")
    };
    let ways: [(Way, RangeError); 3] =
        [(multipart, RangeError::Multipart), (lie, RangeError::Wrong), (coded, RangeError::Coded)];
    for (then, expected) in ways {
        let (_, found) = after_first(&content, move |seen, content| {
            plain(seen, content).unwrap_or_else(|| then(seen, content))
        });
        // The first hole is near the beginning, so the rest is long enough to be taken as the plain request.
        assert_same(&found, &content);
        assert!(found.repaired.fell_back, "{:?}", found.repaired);
        // If the plain request fails as well, the error says so.
        let (_, found) = after_first(&content, then);
        assert!(
            matches!(&found.error, Some(NetError::Range(error)) if *error == expected),
            "{:?}, not {expected:?}",
            found.error
        );
        assert!(content.starts_with(&found.bytes) && found.bytes.len() < content.len());
    }
}

#[test]
fn whole_answers_with_the_same_validator_are_used_for_holes() {
    let content = content(400_000);
    let (_, found) = after_first(&content, |seen, content| {
        let seen = Seen { headers: Vec::new(), ..seen.clone() };
        match good(&seen, content, "\"v1\"") {
            Reply::Bytes(bytes) => Reply::Last(bytes),
            other => other,
        }
    });
    assert_same(&found, &content);
    assert!(!found.repaired.fell_back);
    assert!(found.repaired.counters.repaired_bytes > 0);
}

#[test]
fn repairs_that_stall_or_break_are_made_again() {
    let content = content(300_000);
    let (_, found) = after_first(&content, |seen, content| match seen.number % 4 {
        0 => Reply::Last(b"HTTP/1.1 206 Par".to_vec()),
        2 if seen.number % 8 == 2 => Reply::Bytes(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n".to_vec()),
        2 => match good(seen, content, "\"v1\"") {
            // The head and a little more.
            Reply::Bytes(bytes) => Reply::Last(bytes[..bytes.len().min(400)].to_vec()),
            other => other,
        },
        _ => good(seen, content, "\"v1\""),
    });
    assert_same(&found, &content);
    assert!(found.repaired.counters.requests_short > 0);
}

#[test]
fn a_stall_ends_after_a_while() {
    let content = content(300_000);
    let served = content.clone();
    let server = Server::new(move |seen| match good(seen, &served, "W/\"weak\"") {
        Reply::Bytes(bytes) => Reply::Stall(bytes[..bytes.len().min(100_000)].to_vec()),
        other => other,
    });
    let found = read_with(server.address, settings(&ShimName::abstracted(b"tacit-test-nobody"))).unwrap();
    assert!(matches!(found.error, Some(NetError::Timeout(_))), "{:?}", found.error);
    assert!(content.starts_with(&found.bytes) && !found.bytes.is_empty());
}

#[test]
fn bodies_that_cannot_be_repaired_have_no_placeholders() {
    let content = content(400_000);
    let head = "HTTP/1.1 200 OK\r\n";
    let (served, chunk) = (content.clone(), format!("{:x}\r\n", content.len()));
    let chunked =
        [format!("{head}Transfer-Encoding: chunked\r\n\r\n{chunk}").as_bytes(), &served, b"\r\n0\r\n\r\n"]
            .concat();
    let closed = [format!("{head}ETag: \"a\"\r\n\r\n").as_bytes(), &served].concat();
    let sized =
        |lines: &str| [format!("{head}{lines}Content-Length: 400000\r\n\r\n").as_bytes(), &content].concat();
    let weak = sized("ETag: W/\"a\"\r\nAccept-Ranges: bytes\r\n");
    let no_ranges = sized("ETag: \"a\"\r\n");
    for bytes in [chunked, closed, weak, no_ranges] {
        let server = Server::new(move |_| Reply::Last(bytes.clone()));
        let hop = Hop::before(server.address, Losses { percent: 30, ..Losses::default() });
        let found = read(&hop);
        assert_same(&found, &content);
        assert_eq!(hop.counts.holes.load(Ordering::Relaxed), 0);
    }
}

#[test]
fn answers_that_could_be_read_in_two_ways_are_refused() {
    for head in [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\nContent-Length: 5\n\nhello",
        "HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 5\r\n\r\nhello",
    ] {
        let server = Server::new(move |_| Reply::Last(head.into()));
        let result = read_with(server.address, settings(&ShimName::default()));
        assert!(matches!(result.err(), Some(NetError::Head(_))), "{head:?}");
    }
    let server = Server::new(|_| {
        Reply::Last(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\n\r\n".into())
    });
    let found = read_with(server.address, settings(&ShimName::default()));
    assert!(found.is_err() || found.is_ok_and(|found| found.bytes == b"hello" || found.error.is_some()));
    let huge =
        Server::new(|_| Reply::Endless(b"HTTP/1.1 200 OK\r\n".to_vec(), b"X: aaaaaaaaaaaaaaa\r\n".to_vec()));
    assert!(read_with(huge.address, settings(&ShimName::default())).is_err());
}
