//! Files get their name when they are complete and correct. Bytes of earlier attempts are neither wasted nor mixed with
//! others.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sha2::Digest as _;
use tacit_net::NetError;
use tacit_net::fetch::{Options, fetch};
use tacit_net::flow::ShimName;
use tacit_net::report::{Report, Shim, Verified};
use tempfile::TempDir;

use crate::bodies::{patient, settings, wait};
use crate::hop::{Hop, Losses};
use crate::server::{Reply, Seen, Server, content, good};

fn options(url: &str, file: &Path) -> Options {
    Options {
        url: url.to_owned(),
        destination: Some(file.to_owned()),
        restart: false,
        sha256: None,
        settings: settings(&ShimName::abstracted(b"tacit-test-nobody")),
    }
}

fn run(options: &Options) -> Result<Report, NetError> {
    wait(fetch(options, &mut |_, _| ()))
}

fn names(folder: &TempDir) -> Vec<String> {
    let entries = fs::read_dir(folder.path()).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_file_over_a_lossy_hop_is_whole_and_accounted_for() {
    let (content, folder) = (content(2_000_000), TempDir::new().unwrap());
    let hop =
        Hop::before(Server::serving(content.clone()).address, Losses { percent: 10, ..Losses::default() });
    let file = folder.path().join("file");
    let mut options = options(&format!("http://{}/file", hop.address), &file);
    options.settings = patient(&hop.shim);
    // Without hedged requests: the hop also counts placeholders of answers that nothing reads.
    options.settings.repair.parallel_max = 1;
    let report = run(&options).unwrap();
    assert!(fs::read(&file).unwrap() == content);
    assert_eq!(names(&folder), ["file"]);
    assert_eq!((report.bytes, report.shim, report.resumed_bytes), (2_000_000, Shim::Registered, 0));
    let repair = report.repair.unwrap();
    assert!(repair.holes > 0 && repair.requests > 0);
    assert_eq!(repair.placeholder_bytes, hop.counts.hole_bytes.load(Ordering::Relaxed));
    assert_eq!(repair.expected_fer, Some(0.1));
    // Every lost byte crosses the Internet path twice, and so do the bytes between holes.
    let lost = repair.placeholder_bytes as f64 / 2e6;
    let spare = repair.spare_bytes as f64 / 2e6;
    let internet = report.internet_overhead.unwrap();
    assert!(internet > lost && internet < lost + spare + 0.1, "{internet} of {lost} and {spare}");
    assert!(report.wireless_overhead.unwrap() < spare + 0.1);
}

#[test]
fn checksums_are_computed_and_held_to() {
    let folder = TempDir::new().unwrap();
    let server = Server::serving(b"abc".to_vec());
    let file = folder.path().join("file");
    let mut options = options(&format!("http://{}/abc", server.address), &file);
    // FIPS 180-2, appendix B.1.
    let abc = "BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD";
    options.sha256 = Some("0".repeat(64));
    assert!(matches!(run(&options), Err(NetError::Checksum { .. })));
    assert_eq!(names(&folder), [""; 0], "a wrong file is not kept");
    options.sha256 = Some("abc".to_owned());
    assert!(matches!(run(&options), Err(NetError::Argument(_))));
    options.sha256 = Some(abc.to_owned());
    assert_eq!(run(&options).unwrap().sha256, abc.to_ascii_lowercase());
    assert_eq!(fs::read(&file).unwrap(), b"abc");
}

/// A server that cuts its first answer in the middle and has the content `new` afterwards.
fn interrupted(folder: &TempDir, old: &[u8], new: &[u8], tags: [&'static str; 2]) -> (Server, Options) {
    let new = new.to_vec();
    broken(folder, old, tags[0], move |seen| good(seen, &new, tags[1]))
}

/// The same, with `answer` as the reply of every later request.
fn broken(
    folder: &TempDir,
    old: &[u8],
    tag: &'static str,
    answer: impl Fn(&Seen) -> Reply + Send + Sync + 'static,
) -> (Server, Options) {
    let old = old.to_vec();
    let works = Arc::new(AtomicBool::new(false));
    let switch = Arc::clone(&works);
    let server = Server::new(move |seen| {
        if works.load(Ordering::Relaxed) {
            return answer(seen);
        }
        match good(seen, &old, tag) {
            Reply::Bytes(bytes) if seen.number == 0 => Reply::Last(bytes[..bytes.len() / 2].to_vec()),
            _ => Reply::Last(Vec::new()),
        }
    });
    let options = options(&format!("http://{}/file", server.address), &folder.path().join("file"));
    assert!(matches!(run(&options), Err(NetError::Broken(_) | NetError::Connect { .. })));
    switch.store(true, Ordering::Relaxed);
    (server, options)
}

#[test]
fn an_interrupted_download_resumes() {
    let (content, folder) = (content(400_000), TempDir::new().unwrap());
    let (_server, options) = interrupted(&folder, &content, &content, ["\"a\"", "\"a\""]);
    assert_eq!(names(&folder), ["file.part", "file.part.json"]);
    let report = run(&options).unwrap();
    assert!(fs::read(folder.path().join("file")).unwrap() == content);
    assert!(report.resumed_bytes > 100_000, "{}", report.resumed_bytes);
    assert_eq!(report.bytes, 400_000);
    assert_eq!(names(&folder), ["file"]);
}

#[test]
fn another_file_of_that_name_is_begun_anew() {
    let (old, folder) = (content(400_000), TempDir::new().unwrap());
    let new: Vec<u8> = old.iter().map(|byte| !byte).collect();
    let (_server, options) = interrupted(&folder, &old, &new, ["\"a\"", "\"b\""]);
    let report = run(&options).unwrap();
    assert!(fs::read(folder.path().join("file")).unwrap() == new, "not a mix");
    assert_eq!(report.resumed_bytes, 0);
}

#[test]
fn restart_resumes_nothing() {
    let (content, folder) = (content(400_000), TempDir::new().unwrap());
    let (_server, mut options) = interrupted(&folder, &content, &content, ["\"a\"", "\"a\""]);
    options.restart = true;
    assert_eq!(run(&options).unwrap().resumed_bytes, 0);
}

#[test]
fn a_part_that_is_not_what_came_is_noticed_and_what_nobody_noted_comes_again() {
    let content = content(400_000);
    for (what, damage) in [
        ("a byte", Box::new(|part: &mut Vec<u8>| part[77] ^= 1) as Box<dyn Fn(&mut Vec<u8>)>),
        ("its end", Box::new(|part| part.truncate(1000))),
        ("all of it", Box::new(|part| part.fill(0))),
        ("more behind it", Box::new(|part| part.extend([0; 1000]))),
    ] {
        let folder = TempDir::new().unwrap();
        let (_server, options) = interrupted(&folder, &content, &content, ["\"a\"", "\"a\""]);
        let part = folder.path().join("file.part");
        let mut bytes = fs::read(&part).unwrap();
        let before = bytes.len() as u64;
        damage(&mut bytes);
        fs::write(&part, bytes).unwrap();
        let report = run(&options).unwrap();
        assert!(fs::read(folder.path().join("file")).unwrap() == content, "{what}");
        let is_more = what == "more behind it";
        assert_eq!(
            (report.was_damaged, report.resumed_bytes),
            (!is_more, if is_more { before } else { 0 }),
            "{what}"
        );
        let text = report.to_text();
        assert!(text.contains(if is_more { "--sha256" } else { "was damaged" }), "{text}");
    }
}

#[test]
fn a_digest_of_the_server_is_held_against_and_finds_a_part_of_another_file() {
    let (content, folder) = (content(400_000), TempDir::new().unwrap());
    let digest = data_encoding::BASE64.encode(&sha2::Sha256::digest(&content));
    let wanted = content.clone();
    // The server sent a wrong first half under the same tag; only the digest reveals it.
    let other: Vec<u8> = content.iter().map(|byte| !byte).collect();
    let line = format!("Repr-Digest: sha-256=:{digest}:");
    let (_server, options) =
        broken(&folder, &other, "\"a\"", move |seen| with_line(good(seen, &content, "\"a\""), &line));
    let report = run(&options).unwrap();
    assert!(fs::read(folder.path().join("file")).unwrap() == wanted, "not a mix");
    assert_eq!((report.was_damaged, report.verified), (true, Some(Verified::Server)));
    // A file that does not match its digest is not kept.
    let server = Server::new(|seen| {
        with_line(good(seen, b"abc", "\"a\""), "Digest: SHA-256=RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=")
    });
    let options = self::options(&format!("http://{}/file", server.address), &folder.path().join("abc"));
    assert!(matches!(run(&options), Err(NetError::Checksum { .. })));
    assert_eq!(names(&folder), ["file"]);
}

/// `reply` with an additional header line.
fn with_line(reply: Reply, line: &str) -> Reply {
    let Reply::Bytes(bytes) = reply else { return reply };
    let end = bytes.windows(2).position(|pair| pair == b"\r\n").unwrap();
    Reply::Bytes([&bytes[..end], b"\r\n", line.as_bytes(), &bytes[end..]].concat())
}

#[test]
fn without_a_strong_validator_nothing_is_left_to_go_on_with() {
    let (content, folder) = (content(400_000), TempDir::new().unwrap());
    let (_server, options) = interrupted(&folder, &content, &content, ["W/\"a\"", "W/\"a\""]);
    assert_eq!(names(&folder), [""; 0]);
    assert_eq!(run(&options).unwrap().resumed_bytes, 0);
}

#[test]
fn a_file_that_changes_while_it_comes_is_begun_anew() {
    let (old, folder) = (content(600_000), TempDir::new().unwrap());
    let new: Vec<u8> = old.iter().map(|byte| !byte).collect();
    let wanted = new.clone();
    let server = Server::new(move |seen| match seen.number {
        0 => match good(seen, &old, "\"a\"") {
            Reply::Bytes(bytes) => Reply::Last(bytes[..300_000].to_vec()),
            other => other,
        },
        _ => good(seen, &new, "\"b\""),
    });
    let file = folder.path().join("file");
    run(&options(&format!("http://{}/file", server.address), &file)).unwrap();
    assert!(fs::read(&file).unwrap() == wanted);
}

#[test]
fn redirects_are_followed_so_far() {
    let folder = TempDir::new().unwrap();
    let server = Server::new(|seen| {
        let to = |location: &str| {
            Reply::Bytes(
                format!("HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n").into(),
            )
        };
        match seen.path.as_str() {
            "/loop" => to("/loop"),
            "/ftp" => to("ftp://localhost/x"),
            "/relative/x" => to("../file"),
            "/file" => good(seen, b"found", "\"a\""),
            _ => Reply::Bytes(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_vec()),
        }
    });
    let file = folder.path().join("file");
    let get = |path: &str| run(&options(&format!("http://{}{path}", server.address), &file));
    assert!(matches!(get("/loop"), Err(NetError::Redirects(10))));
    assert!(matches!(get("/ftp"), Err(NetError::Url { .. })));
    assert!(matches!(get("/nothing"), Err(NetError::Status { .. })));
    assert_eq!(names(&folder), [""; 0], "failures leave nothing");
    let report = get("/relative/x").unwrap();
    assert_eq!(fs::read(&file).unwrap(), b"found");
    assert!(report.found_at.ends_with("/file"));
}

#[test]
fn devices_stay_and_two_do_not_write_one_file() {
    let folder = TempDir::new().unwrap();
    let server = Server::serving(content(1000));
    let url = format!("http://{}/file", server.address);
    run(&options(&url, Path::new("/dev/null"))).unwrap();
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
    assert!(matches!(run(&options(&url, folder.path())), Err(NetError::File { .. })));
    let missing = folder.path().join("no/such/folder");
    assert!(matches!(run(&options(&url, &missing)), Err(NetError::File { .. })));
    let file = folder.path().join("file");
    let part = fs::File::create(folder.path().join("file.part")).unwrap();
    let lock = nix::fcntl::Flock::lock(part, nix::fcntl::FlockArg::LockExclusiveNonblock).unwrap();
    assert!(matches!(run(&options(&url, &file)), Err(NetError::Busy { .. })));
    drop(lock);
    run(&options(&url, &file)).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", folder.path().join("link.part")).unwrap();
    let link = folder.path().join("link");
    assert!(
        matches!(run(&options(&url, &link)), Err(NetError::File { .. })),
        "a planted link is not followed"
    );
}
