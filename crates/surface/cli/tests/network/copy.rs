//! `tacit keys`, `serve` and `cp` as seen by their users, over loopback.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::peers::{Users, bytes, scraped, terminate, value};
use serde_json::Value;

fn make_tree(tree: &Path) {
    fs::create_dir_all(tree.join("in/none")).unwrap();
    fs::write(tree.join("empty"), b"").unwrap();
    fs::write(tree.join("in/big"), bytes(20_000_000)).unwrap();
    for name in ["-n", "a b", "new\nline", "\u{1b}[31mred", "ünï", "$HOME;*"] {
        fs::write(tree.join("in").join(name), name).unwrap();
    }
    symlink("../empty", tree.join("in/link")).unwrap();
}

/// Every path below `root` with its kind, contents and time, sorted.
fn listed(root: &Path) -> Vec<(PathBuf, String, u128)> {
    let mut paths = Vec::new();
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let about = path.symlink_metadata().unwrap();
            let what = match () {
                () if about.is_symlink() => format!("-> {}", fs::read_link(&path).unwrap().display()),
                () if about.is_dir() => "directory".into(),
                () => format!("{:?}", fs::read(&path).unwrap()),
            };
            let changed = about.modified().unwrap().duration_since(std::time::UNIX_EPOCH).unwrap();
            let changed = if about.is_symlink() { 0 } else { changed.as_nanos() };
            if about.is_dir() {
                open.push(path.clone());
            }
            paths.push((path.strip_prefix(root).unwrap().to_owned(), what, changed));
        }
    }
    paths.sort();
    paths
}

fn same(one: &Path, other: &Path) {
    assert!(listed(one) == listed(other), "{} and {} differ", one.display(), other.display());
}

#[test]
fn a_tree_goes_there_and_back() {
    let users = Users::new();
    make_tree(&users.path("tree"));
    fs::create_dir_all(users.path("served")).unwrap();
    fs::create_dir_all(users.path("back")).unwrap();
    let server = users.serve(&["served", "--write"]);
    users.introduce(&server);
    let report: Value =
        serde_json::from_str(&users.done("client", &["cp", "--json", "tree", &server.at("")])).unwrap();
    assert_eq!(
        (&report["summary"]["copied"], &report["summary"]["failed"], &report["direction"]),
        (&12.into(), &0.into(), &"push".into()),
        "{report}"
    );
    same(&users.path("tree"), &users.path("served/tree"));
    let stdout = users.done("client", &["cp", &server.at("tree"), "back"]);
    assert!(stdout.starts_with("12 copied, 0 unchanged; 19.07 MiB in "), "{stdout}");
    same(&users.path("tree"), &users.path("back/tree"));
    let stdout = users.done("client", &["cp", &server.at("tree"), "back"]);
    assert_eq!(stdout, "0 copied, 12 unchanged; 0 B\n");
    // If the destination does not exist, it is the new name.
    users.done("client", &["cp", "-q", "tree/in/big", &server.at("renamed")]);
    users.done("client", &["cp", "-q", &server.at("renamed"), "fetched"]);
    assert!(fs::read(users.path("fetched")).unwrap() == bytes(20_000_000));
    // A file that no longer exists in the source.
    fs::remove_file(users.path("tree/in/a b")).unwrap();
    let would = users.done("client", &["cp", "-n", "--delete", "tree", &server.at("")]);
    assert!(would.contains("delete tree/in/a b\n") && users.path("served/tree/in/a b").exists(), "{would}");
    users.done("client", &["cp", "--delete", "tree", &server.at("")]);
    same(&users.path("tree"), &users.path("served/tree"));
}

/// Kills `copy` once a large part of `big` is in `directory`. Returns the number of bytes there.
fn killed(mut copy: Child, directory: &Path) -> u64 {
    let left = || {
        let names = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
        names.map(|entry| entry.metadata().unwrap().len()).sum::<u64>()
    };
    while left() < 10_000_000 {
        assert!(copy.try_wait().unwrap().is_none(), "it ended before it was killed");
        #[expect(clippy::disallowed_methods, reason = "waits for another process, which no event announces")]
        sleep(Duration::from_millis(1));
    }
    copy.kill().unwrap();
    copy.wait().unwrap();
    assert!(!directory.join("big").exists(), "it was whole before it was killed");
    left()
}

#[test]
fn a_killed_copy_resumes() {
    let users = Users::new();
    fs::create_dir_all(users.path("served")).unwrap();
    fs::create_dir_all(users.path("back")).unwrap();
    let content = bytes(300_000_000);
    fs::write(users.path("served/big"), &content).unwrap();
    let server = users.serve(&["served"]);
    users.introduce(&server);
    let child = users.command("client", &["cp", "-q", &server.at("big"), "back"]).spawn().unwrap();
    let before = killed(child, &users.path("back"));
    let report: Value =
        serde_json::from_str(&users.done("client", &["cp", "--json", &server.at("big"), "back"])).unwrap();
    let (resumed, received) = (&report["summary"]["resumed_bytes"], &report["summary"]["received_bytes"]);
    assert_eq!((resumed, received), (&before.into(), &(300_000_000 - before).into()), "{report}");
    assert_eq!(report["paths"][0]["action"], "resumed");
    assert!(fs::read(users.path("back/big")).unwrap() == content);
    assert_eq!(fs::read_dir(users.path("back")).unwrap().count(), 1, "nothing is left");
}

#[test]
fn a_killed_upload_resumes_at_once() {
    let users = Users::new();
    fs::create_dir_all(users.path("served")).unwrap();
    let content = bytes(300_000_000);
    fs::write(users.path("big"), &content).unwrap();
    let mut server = users.serve(&["served", "--write"]);
    users.introduce(&server);
    let child = users.command("client", &["cp", "-q", "big", &server.at("")]).spawn().unwrap();
    killed(child, &users.path("served"));
    let report: Value =
        serde_json::from_str(&users.done("client", &["cp", "--json", "big", &server.at("")])).unwrap();
    assert_eq!(report["paths"][0]["action"], "resumed", "{report}");
    assert!(fs::read(users.path("served/big")).unwrap() == content);
    assert_eq!(fs::read_dir(users.path("served")).unwrap().count(), 1, "nothing is left");
    terminate(&server.child);
    server.child.wait().unwrap();
    let mut log = String::new();
    server.says.read_to_string(&mut log).unwrap();
    // The copy must not have waited until the server gave up the silent connection after 30 s. The duration of the rest
    // is not checked: on a busy machine, 300 MB may take that long.
    assert!(log.contains("another copy of this user continues the file"), "{log}");
}

#[test]
fn nobody_is_trusted_who_was_not_named() {
    let users = Users::new();
    fs::create_dir_all(users.path("served")).unwrap();
    fs::write(users.path("served/file"), b"abc").unwrap();
    let server = users.serve(&["served"]);
    let (file, key) = (server.at("file"), users.key("server"));
    // An unknown server, without a terminal.
    let stderr = users.refused("client", &["cp", &file, "."], 2);
    assert!(stderr.contains("is unknown") && stderr.contains(&key), "{stderr}");
    // An unknown client.
    users.done("client", &["keys", "trust", &server.address, &key]);
    let stderr = users.refused("client", &["cp", &file, "."], 3);
    assert!(stderr.contains("not allowed") && stderr.contains(&users.key("client")), "{stderr}");
    // A peer known as a server must not connect as a client.
    users.done("server", &["keys", "trust", "laptop", &users.key("client")]);
    users.refused("client", &["cp", &file, "."], 3);
    // Trusted while the server runs.
    users.done("server", &["keys", "trust", "laptop", &users.key("client"), "--client"]);
    users.done("client", &["cp", &file, "."]);
    assert_eq!(fs::read(users.path("file")).unwrap(), b"abc");
    // The directory is served read-only, and nothing outside of it is served.
    let stderr = users.refused("client", &["cp", "file", &server.at("")], 3);
    assert!(stderr.contains("reading only"), "{stderr}");
    users.refused("client", &["cp", &server.at("../client"), "."], 3);
    assert!(!users.path("client/client").exists());
    // A changed key.
    users.done("client", &["keys", "forget", &server.address]);
    let other = users.key("other");
    users.done("client", &["keys", "trust", &server.address, &other]);
    let stderr = users.refused("client", &["cp", &file, "."], 2);
    assert!(stderr.contains(&key) && stderr.contains(&other), "{stderr}");
    users.refused("client", &["keys", "trust", &server.address, &key], 2);
    users.refused("client", &["keys", "forget", "nobody"], 1);
    users.refused("client", &["keys", "make"], 2);
}

#[test]
fn one_user_needs_no_introduction_and_anyone_may_read_where_that_is_said() {
    let users = Users::new();
    fs::create_dir_all(users.path("served")).unwrap();
    fs::write(users.path("served/file"), b"abc").unwrap();
    let mut server = users.serve(&["served", "--anyone"]);
    users.done("server", &["cp", &server.at("file"), "mine"]);
    users.done("client", &["keys", "trust", &server.address, &users.key("server")]);
    users.done("client", &["cp", &server.at("file"), "yours"]);
    assert_eq!(fs::read(users.path("mine")).unwrap(), fs::read(users.path("yours")).unwrap());
    terminate(&server.child);
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
    let mut log = String::new();
    server.says.read_to_string(&mut log).unwrap();
    assert!(log.contains("this user: from /file: 1 copied"), "{log}");
}

#[test]
fn prometheus_qlog_and_logs_say_what_copies_did() {
    let users = Users::new();
    fs::create_dir_all(users.path("served")).unwrap();
    fs::create_dir_all(users.path("qlogs")).unwrap();
    fs::write(users.path("served/big"), bytes(5_000_000)).unwrap();
    let words = ["served", "--write", "--metrics", "127.0.0.1:0", "--qlog", "qlogs", "--log", "info"];
    let mut server = users.serve(&[&words[..], &["--log-format", "json"]].concat());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut server.says, &mut line).unwrap();
    let metrics = line.split("http://").nth(1).unwrap_or_else(|| panic!("{line}"));
    let metrics = metrics.trim_end().trim_end_matches("/metrics").to_owned();
    users.introduce(&server);
    users.done("client", &["cp", "-q", &server.at("big"), "."]);
    users.done("client", &["cp", "-q", "big", &server.at("again")]);
    users.refused("client", &["cp", &server.at("none"), "."], 3);
    users.key("other");
    users.done("other", &["keys", "trust", &server.address, &users.key("server")]);
    users.refused("other", &["cp", &server.at("big"), "."], 3);
    // A command that has ended has told the server, which otherwise would keep its connection for the idle time of 30 s.
    let page = scraped(&metrics);
    let metric = |name: &str| value(&page, name);
    assert!(metric("tacit_tack_connections") < 0.5, "{page}");
    assert!((metric("tacit_copies_total{direction=\"pull\",result=\"done\"}") - 1.0).abs() < 0.5);
    assert!((metric("tacit_copies_total{direction=\"push\",result=\"done\"}") - 1.0).abs() < 0.5);
    assert!((metric("tacit_copies_total{direction=\"pull\",result=\"refused\"}") - 1.0).abs() < 0.5);
    assert!((metric("tacit_copied_bytes_total{direction=\"pull\"}") - 5e6).abs() < 0.5);
    assert!((metric("tacit_copied_bytes_total{direction=\"push\"}") - 5e6).abs() < 0.5);
    assert!((metric("tacit_tack_refusals_total{reason=\"key\"}") - 1.0).abs() < 0.5);
    assert!(metric("tacit_tack_connections_total") >= 3.0);
    assert!(metric("tacit_tack_data_bytes_total{direction=\"sent\"}") >= 5e6);
    assert!(metric("tacit_tack_data_bytes_total{direction=\"received\"}") >= 5e6);
    assert!(metric("tacit_udp_bytes_total{direction=\"sent\"}") >= 5e6);
    // The page consists of metric families: help, type, and then lines of this family only.
    let mut family = String::new();
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert_eq!(name.ends_with("_total"), kind == "counter", "{line}");
            family = name.to_owned();
        } else if !line.starts_with('#') {
            let (name, number) = line.rsplit_once(' ').unwrap();
            assert!(name.starts_with(&family) && number.parse::<f64>().is_ok(), "{line}");
        }
    }
    terminate(&server.child);
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
    let mut log = String::new();
    server.says.read_to_string(&mut log).unwrap();
    let lines: Vec<Value> = log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let count_logged = |target: &str, message: &str| {
        lines.iter().filter(|line| line["target"] == target && line["message"] == message).count()
    };
    assert_eq!(count_logged("tacit::copy", "a copy is done"), 2, "{log}");
    assert!(count_logged("tacit_tack::connection", "connected") >= 3, "{log}");
    let qlogs: Vec<_> = fs::read_dir(users.path("qlogs")).unwrap().collect();
    assert_eq!(qlogs.len(), 3, "one for each connection that was taken");
    for qlog in qlogs {
        let text = fs::read_to_string(qlog.unwrap().path()).unwrap();
        assert!(text.starts_with('\u{1e}') && text.contains("transport:packet_sent"));
    }
}

#[test]
fn a_file_of_arguments_is_checked_and_used() {
    let users = Users::new();
    fs::create_dir_all(users.path("served")).unwrap();
    fs::write(users.path("served/file"), b"abc").unwrap();
    users.key("server");
    let config = |text: &str| fs::write(users.path("serve.toml"), text).unwrap();
    config("path = \"served\"\nlisten = \"127.0.0.1:0\"\nanyone = true\n");
    users.done("server", &["serve", "--config", "serve.toml", "--check"]);
    let server = users.start("server", &["serve", "--config", "serve.toml"], "tack://");
    users.done("server", &["cp", &server.at("file"), "mine"]);
    let refused = |text: &str| {
        config(text);
        users.refused("server", &["serve", "--config", "serve.toml", "--check"], 2)
    };
    assert!(refused("path = \"served\"\nlissten = 1\n").contains("serve.toml:2: unknown key \"lissten\""));
    assert!(refused("path = \"nowhere\"\n").contains("nowhere"));
    assert!(refused("listen = \"127.0.0.1:0\"\n").contains("PATH"));
    assert!(refused("path = \"served\"\nquiet = true\njson = true\n").contains("cannot be used with"));
    let metrics = refused("path = \"served\"\nmetrics = \"0.0.0.0:0\"\n");
    assert!(metrics.contains("--metrics-open"), "{metrics}");
    fs::write(users.path("server/tacit/known-peers"), "no line\n").unwrap();
    assert!(refused("path = \"served\"\n").contains("known-peers, line 1"));
    users.refused("server", &["serve", "--config", "nowhere.toml"], 2);
    users.refused("client", &["keys", "trust", "name", "no-key"], 2);
}

#[test]
fn an_unknown_server_is_asked_about_on_a_terminal() {
    let users = Users::new();
    fs::create_dir_all(users.path("served")).unwrap();
    fs::write(users.path("served/file"), b"abc").unwrap();
    let server = users.serve(&["served", "--anyone"]);
    let file = server.at("file");
    let on_terminal = |answer: &str| {
        let pty = nix::pty::openpty(None, None).unwrap();
        let mut command = users.command("client", &["cp", &file, "."]);
        command.stdin(pty.slave.try_clone().unwrap()).stdout(Stdio::null()).stderr(pty.slave);
        let mut child = command.spawn().unwrap();
        // The terminal ends when no process has it open.
        drop(command);
        let mut terminal = fs::File::from(pty.master);
        let mut shown = String::new();
        let mut piece = [0; 1024];
        while let Ok(count @ 1..) = terminal.read(&mut piece) {
            let asked = shown.contains("(yes/no)");
            shown.push_str(std::str::from_utf8(&piece[..count]).unwrap());
            if !asked && shown.contains("(yes/no)") {
                terminal.write_all(answer.as_bytes()).unwrap();
            }
        }
        (child.wait().unwrap().code(), shown)
    };
    let (code, shown) = on_terminal("y\n");
    assert_eq!(code, Some(2), "{shown}");
    assert!(shown.contains(&users.key("server")), "{shown}");
    assert!(!users.path("file").exists());
    let (code, shown) = on_terminal("yes\n");
    assert_eq!(code, Some(0), "{shown}");
    // The server is known from now on.
    fs::remove_file(users.path("file")).unwrap();
    users.done("client", &["cp", &file, "."]);
    assert!(users.done("client", &["keys", "list"]).contains(&server.address));
}

#[test]
fn a_server_that_is_stopped_lets_copies_end_as_long_as_grace_says() {
    // Only whether it may finish is checked, not how long 300 MB take on a busy machine.
    for (grace, code) in [("3600", 0), ("0", 4)] {
        let users = Users::new();
        fs::create_dir_all(users.path("served")).unwrap();
        fs::write(users.path("big"), bytes(300_000_000)).unwrap();
        let mut server = users.serve(&["served", "--write", "--grace", grace]);
        users.introduce(&server);
        let mut child = users.command("client", &["cp", "-q", "big", &server.at("")]).spawn().unwrap();
        let has_begun = || fs::read_dir(users.path("served")).unwrap().count() > 0;
        while !has_begun() {
            assert!(child.try_wait().unwrap().is_none(), "it ended before it began");
            #[expect(
                clippy::disallowed_methods,
                reason = "waits for another process, which no event announces"
            )]
            sleep(Duration::from_millis(1));
        }
        #[expect(clippy::disallowed_methods, reason = "how long users wait")]
        let begun = std::time::Instant::now();
        terminate(&server.child);
        assert_eq!(child.wait().unwrap().code(), Some(code), "--grace {grace}");
        assert_eq!(server.child.wait().unwrap().code(), Some(0));
        assert_eq!(users.path("served/big").exists(), code == 0);
        // The client is notified of the shutdown and does not wait for the idle timeout of 30 s.
        assert!(code == 0 || begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
        let mut stderr = String::new();
        server.says.read_to_string(&mut stderr).unwrap();
        assert!(stderr.contains("waiting up to") && stderr.contains("running copies: 1"), "{stderr}");
    }
}
