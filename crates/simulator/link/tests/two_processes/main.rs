//! Access point and client of a TCP/HACK link as two processes that share only the medium: a socket pair that carries
//! frames. NIC, driver, codec, TCP and packet format are those used in simulation runs. A file arrives intact while a
//! tenth of the frames is lost, so every decompressed ACK must have come from its bytes.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test may")]

mod frames;
mod host;
mod station;

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};

use tacit_between::hack::{Coding, Config};
use tacit_link::random::Stream;

use self::frames::Medium;
use self::host::{HOSTS, Host};
use self::station::{Losses, Station};

/// Environment of a process: its station, the coding of ACKs, and the length of the file if it sends one.
const ROLE: &str = "TACIT_TEST_ROLE";
const CODING: &str = "TACIT_TEST_CODING";
const FILE_LEN: &str = "TACIT_TEST_FILE_LEN";

const LEN: usize = 12_345_678;

/// A file without repeated content.
fn file(len: usize) -> Vec<u8> {
    let mut draws = Stream::new(7, "file");
    (0..len.div_ceil(4)).flat_map(|_| draws.draw().to_be_bytes()).take(len).collect()
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

/// One station in its own process; its standard input is the medium.
#[test]
#[ignore = "a process for the test below, which starts two"]
fn station() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let air = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned().unwrap());
    let is_access_point = role == "access point";
    let here = HOSTS[usize::from(!is_access_point)];
    let content = std::env::var(FILE_LEN).ok().map(|len| file(len.parse().unwrap()));
    let coding = if std::env::var(CODING).unwrap() == "batch" { Coding::Batch } else { Coding::PerAck };
    let config = Config { coding, ..Config::default() };
    let losses = Losses { ppdus: 5, mpdus: 10 };
    let station = Station::new(Medium(air), Host::new(here, content), config, losses, Stream::new(1, &role));
    let (host, counts, driver) = station.run(is_access_point);
    let received = host.received();
    for (name, value) in [
        ("received", received.len() as u64),
        ("hash", hash(received)),
        ("timeouts", host.timeouts()),
        ("lost-mpdus", counts.lost_mpdus),
        ("lost-block-acks", counts.lost_block_acks),
        ("retries", counts.retries),
        ("requests", counts.requests),
        ("native", driver.native_acks),
        ("compressed", driver.compressed_acks),
        ("bytes", driver.compressed_bytes),
        ("reconstituted", driver.reconstituted_acks),
        ("duplicates", driver.duplicate_frames),
        ("failed", driver.failed_frames),
    ] {
        println!("\nreport {name} {value}");
    }
}

fn start(role: &str, air: UnixStream, coding: &str, sends: bool) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "station", "--ignored", "--nocapture", "--test-threads=1"]);
    command.env(ROLE, role).env(CODING, coding).env_remove(FILE_LEN);
    if sends {
        command.env(FILE_LEN, LEN.to_string());
    }
    command.stdin(Stdio::from(OwnedFd::from(air))).stdout(Stdio::piped()).spawn().unwrap()
}

/// The report that a process prints at its end.
fn report(child: Child) -> BTreeMap<String, u64> {
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}");
    let lines = said.lines().filter_map(|line| line.strip_prefix("report ")?.split_once(' '));
    lines.map(|(name, value)| (name.to_owned(), value.parse().unwrap())).collect()
}

#[test]
fn a_file_crosses_between_two_processes_that_share_only_frames() {
    for (coding, client_sends) in [("per ACK", false), ("batch", false), ("per ACK", true), ("batch", true)] {
        let (one, other) = UnixStream::pair().unwrap();
        let children =
            [start("access point", one, coding, !client_sends), start("client", other, coding, client_sends)];
        let [access_point, client] = children.map(report);
        let (sender, receiver) = if client_sends { (client, access_point) } else { (access_point, client) };
        let what = format!("{coding}, sent {sender:?}, received {receiver:?}");
        println!("{what}");
        assert_eq!(receiver["received"], LEN as u64, "{what}");
        assert_eq!(receiver["hash"], hash(&file(LEN)), "{what}");
        // Frames were lost, so MPDUs, Block Acks and the bytes appended to those were sent again.
        assert!(receiver["lost-mpdus"] > 500 && sender["retries"] > 500, "{what}");
        assert!(sender["lost-block-acks"] > 10 && sender["requests"] > 20, "{what}");
        assert!(sender["duplicates"] > 5, "{what}");
        // The receiver's ACKs were appended, and each was decompressed once.
        let (rode, native) = (receiver["compressed"], receiver["native"]);
        assert!(rode > 1_000 && rode > 9 * native, "{what}");
        assert!(sender["reconstituted"] <= rode && sender["reconstituted"] + 127 >= rode, "{what}");
        assert_eq!((sender["failed"], receiver["failed"], sender["timeouts"]), (0, 0, 0), "{what}");
    }
}
