//! Copies whose connection breaks: they connect again by themselves, and say what happened.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::chaos::can_unshare;
use crate::peers::{Server, Users, bytes, terminate};

const BIG: usize = 200_000_000;

/// Starts a server at the address of one that is gone.
fn again(users: &Users, gone: &Server) -> Server {
    users.start("server", &["serve", "served", "--write", "--listen", &gone.address], "tack://")
}

/// Waits until the files in `directory` have this many bytes, or `copy` is over.
fn wait_for(directory: &Path, count: u64, copy: &mut Child) {
    let there = || {
        let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
        entries.map(|entry| entry.metadata().map_or(0, |about| about.len())).sum::<u64>()
    };
    while there() < count {
        assert!(copy.try_wait().unwrap().is_none(), "it ended before {count} bytes were there");
        #[expect(clippy::disallowed_methods, reason = "waits for another process, which no event announces")]
        sleep(Duration::from_millis(1));
    }
}

#[test]
fn copies_outlive_their_server() {
    let users = Users::new();
    for directory in ["served", "back", "small"] {
        fs::create_dir_all(users.path(directory)).unwrap();
    }
    let content = bytes(BIG);
    fs::write(users.path("small/first"), b"first").unwrap();
    fs::write(users.path("small/second"), &content).unwrap();
    let mut server = users.serve(&["served", "--write"]);
    users.introduce(&server);
    let (up, down) = (server.at(""), server.at("small"));
    let ways = [
        (vec!["cp", "--json", "small", &up], users.path("served/small")),
        (vec!["cp", "--json", &down, "back"], users.path("back/small")),
    ];
    for (words, directory) in ways {
        fs::create_dir_all(&directory).unwrap();
        let mut copy = users.command("client", &words);
        let mut copy = copy.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        wait_for(&directory, 10_000_000, &mut copy);
        server.child.kill().unwrap();
        server.child.wait().unwrap();
        server = again(&users, &server);
        let output = copy.wait_with_output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{words:?}: {stderr}");
        assert!(stderr.contains("connecting again") && stderr.contains("again after"), "{stderr}");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((&report["reconnections"], &report["error"]), (&1.into(), &Value::Null), "{report}");
        // The summary counts both files and their directory in all attempts.
        let summary = &report["summary"];
        assert_eq!((&summary["failed"], &summary["skipped"]), (&0.into(), &0.into()), "{report}");
        assert!(summary["copied"].as_u64().unwrap() >= 2, "{report}");
        let actions = report["paths"].as_array().unwrap().iter().map(|path| &path["action"]);
        assert!(actions.clone().any(|action| action == "resumed"), "{report}");
        // It was received by this command, and not there before.
        assert_eq!(summary["resumed_bytes"], 0, "{report}");
        assert!(summary["received_bytes"].as_u64().unwrap() >= BIG as u64, "{report}");
        assert!(fs::read(directory.join("second")).unwrap() == content);
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 2, "nothing is left");
    }
}

/// SIGSTOP for 45 s, as a suspension of that machine: longer than the idle time of 30 s.
#[test]
#[ignore = "takes two minutes: ./ci.sh hops"]
fn copies_outlive_a_suspension_of_either_end() {
    const SUSPENSION: Duration = Duration::from_secs(45);
    let users = Users::new();
    fs::create_dir_all(users.path("served")).unwrap();
    fs::create_dir_all(users.path("back")).unwrap();
    let content = bytes(BIG);
    fs::write(users.path("served/big"), &content).unwrap();
    let server = users.serve(&["served"]);
    users.introduce(&server);
    for of_client in [true, false] {
        let _ = fs::remove_file(users.path("back/big"));
        let mut copy =
            users.command("client", &["cp", "--json", "--bwlimit", "20MB/s", &server.at("big"), "back"]);
        let mut copy = copy.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        wait_for(&users.path("back"), 1_000_000, &mut copy);
        let asleep = Pid::from_raw(if of_client { copy.id() } else { server.child.id() }.try_into().unwrap());
        kill(asleep, Signal::SIGSTOP).unwrap();
        #[expect(clippy::disallowed_methods, reason = "a suspension takes real time")]
        sleep(SUSPENSION);
        kill(asleep, Signal::SIGCONT).unwrap();
        let output = copy.wait_with_output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{stderr}");
        // A client that slept hears that it was forgotten; one whose server slept hears nothing for 30 s.
        let why = if of_client { "heard nothing for too long" } else { "the peer does not answer" };
        assert!(stderr.contains(why) && stderr.contains("again after"), "{of_client}: {stderr}");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((&report["reconnections"], &report["error"]), (&1.into(), &Value::Null), "{report}");
        assert!(fs::read(users.path("back/big")).unwrap() == content);
    }
}

/// A copy and a proxy that begin before their server does.
#[test]
fn the_first_connection_waits_for_the_server() {
    let users = Users::new();
    fs::create_dir_all(users.path("served")).unwrap();
    fs::write(users.path("served/file"), b"contents").unwrap();
    let mut server = users.serve(&["served"]);
    users.introduce(&server);
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    let mut copy = users.command("client", &["cp", &server.at("file"), "copied"]);
    let mut copy = copy.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut says = BufReader::new(copy.stderr.take().unwrap());
    let mut stderr = String::new();
    says.read_line(&mut stderr).unwrap();
    assert!(stderr.contains("reports it unreachable; trying for up to 30 s"), "{stderr}");
    let _again = again(&users, &server);
    says.read_to_string(&mut stderr).unwrap();
    assert!(copy.wait().unwrap().success(), "{stderr}");
    assert!(stderr.ends_with(&format!("tacit: connected to {}\n", server.address)), "{stderr}");
    assert_eq!(stderr.lines().count(), 2, "each is said once: {stderr}");
    assert_eq!(fs::read(users.path("copied")).unwrap(), b"contents");
}

#[test]
fn a_server_that_is_not_there_is_looked_for_half_a_minute() {
    let users = Users::new();
    fs::create_dir_all(users.path("served")).unwrap();
    let server = users.serve(&["served"]);
    users.introduce(&server);
    let address = server.at("file");
    drop(server);
    #[expect(clippy::disallowed_methods, reason = "how long users wait")]
    let begun = std::time::Instant::now();
    let stderr = users.refused("client", &["cp", "-q", &address, "."], 4);
    assert!(begun.elapsed() > Duration::from_secs(20), "{:?}", begun.elapsed());
    assert!(!stderr.contains("trying"), "-q: {stderr}");
}

/// A machine that wakes up: it has no route at first, and its server is there later.
#[test]
#[ignore = "namespaces are root's: ./ci.sh hops"]
fn the_first_connection_waits_for_a_network() {
    const SCRIPT: &str = "\
        \"$@\" 2>stderr & copy=$!
        until grep -q 'no way there from this machine: Network is unreachable' stderr; do
            kill -0 $copy || exit 99
            sleep 0.02
        done
        ip link set lo up
        XDG_CONFIG_HOME=$PWD/server $1 serve -q served --listen 127.0.0.1:4433 & server=$!
        wait $copy
        code=$?
        kill $server
        exit $code";
    if !can_unshare(&["--net"]) {
        return;
    }
    let users = Users::new();
    fs::create_dir_all(users.path("served")).unwrap();
    fs::write(users.path("served/file"), b"contents").unwrap();
    let (server, client) = (users.key("server"), users.key("client"));
    users.done("server", &["keys", "trust", "laptop", &client, "--client"]);
    users.done("client", &["keys", "trust", "127.0.0.1:4433", &server]);
    let mut command = Command::new("unshare");
    command.args(["--net", "sh", "-c", SCRIPT, "sh", env!("CARGO_BIN_EXE_tacit")]);
    command.args(["cp", "tack://127.0.0.1/file", "copied"]).current_dir(users.folder.path());
    let status = command.env("XDG_CONFIG_HOME", users.path("client")).status().unwrap();
    let stderr = fs::read_to_string(users.path("stderr")).unwrap();
    assert!(status.success(), "{status}: {stderr}");
    assert_eq!(fs::read(users.path("copied")).unwrap(), b"contents");
}

#[test]
fn an_interrupted_copy_says_what_it_has_done() {
    let users = Users::new();
    fs::create_dir_all(users.path("served")).unwrap();
    fs::create_dir_all(users.path("back")).unwrap();
    fs::write(users.path("served/big"), bytes(BIG)).unwrap();
    let server = users.serve(&["served"]);
    users.introduce(&server);
    let mut copy = users.command("client", &["cp", "--json", &server.at("big"), "back"]);
    let mut copy = copy.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for(&users.path("back"), 1_000_000, &mut copy);
    terminate(&copy);
    let output = copy.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["error"], "interrupted", "{report}");
    let received = report["summary"]["received_bytes"].as_u64().unwrap();
    assert!((1_000_000..BIG as u64).contains(&received), "{report}");
}

/// The first commands of a user make its key, each if no other has.
#[test]
fn first_commands_at_once_share_a_key() {
    let users = Users::new();
    fs::create_dir_all(users.path("served")).unwrap();
    fs::write(users.path("served/file"), b"contents").unwrap();
    let server = users.serve(&["served", "--anyone"]);
    let key = users.key("server");
    for round in 0..5 {
        let user = format!("new{round}");
        let peers = users.path(&user).join("tacit");
        fs::create_dir_all(&peers).unwrap();
        fs::write(peers.join("known-peers"), format!("{} {key}\n", server.address)).unwrap();
        let list = || {
            let mut command = users.command(&user, &["ls", &server.at("")]);
            command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
        };
        let commands: Vec<_> = (0..8).map(|_| list()).collect();
        for command in commands {
            let output = command.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
    }
}
