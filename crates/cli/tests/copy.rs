//! `tacit keys`, `serve` and `cp` as their users meet them, over loopback.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// Two users, each with a directory of keys, in a folder of their own.
struct Users {
    folder: tempfile::TempDir,
}

/// A server that is stopped with the test.
struct Server {
    child: Child,
    address: String,
    /// What it says, so that it is never told that nobody reads.
    says: BufReader<std::process::ChildStderr>,
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have been stopped already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Users {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, user: &str, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tacit"));
        command.args(words).current_dir(self.folder.path()).stdin(Stdio::null());
        command.env("XDG_CONFIG_HOME", self.path(user));
        command
    }

    fn tacit(&self, user: &str, words: &[&str]) -> Output {
        self.command(user, words).output().unwrap()
    }

    /// Standard output of a command that succeeds.
    fn done(&self, user: &str, words: &[&str]) -> String {
        let output = self.tacit(user, words);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{words:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Standard error of a command that ends with `code`.
    fn refused(&self, user: &str, words: &[&str], code: i32) -> String {
        let output = self.tacit(user, words);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{words:?}: {said}");
        said
    }

    fn key(&self, user: &str) -> String {
        if !self.path(user).join("tacit/identity").exists() {
            self.done(user, &["keys", "make"]);
        }
        self.done(user, &["keys", "show"]).trim().to_owned()
    }

    /// Starts a server of `server`'s on a free port.
    fn serve(&self, words: &[&str]) -> Server {
        self.key("server");
        let words = [&["serve"], words, &["--listen", "127.0.0.1:0"]].concat();
        let mut child = self.command("server", &words).stderr(Stdio::piped()).spawn().unwrap();
        let mut says = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        says.read_line(&mut line).unwrap();
        let address = line.split("tack://").nth(1).unwrap_or_else(|| panic!("{line}"));
        let address = address.split('/').next().unwrap().to_owned();
        Server { child, address, says }
    }

    /// Lets the two know each other.
    fn introduce(&self, server: &Server) {
        let client = self.key("client");
        self.done("server", &["keys", "trust", "laptop", &client, "--client"]);
        self.done("client", &["keys", "trust", &server.address, &self.key("server")]);
    }
}

impl Server {
    fn at(&self, path: &str) -> String {
        format!("tack://{}/{path}", self.address)
    }
}

fn octets(count: usize) -> Vec<u8> {
    (0..count as u64).map(|at| (at.wrapping_mul(at) / 7) as u8).collect()
}

fn make_tree(tree: &Path) {
    fs::create_dir_all(tree.join("in/none")).unwrap();
    fs::write(tree.join("empty"), b"").unwrap();
    fs::write(tree.join("in/big"), octets(20_000_000)).unwrap();
    for name in ["-n", "a b", "new\nline", "\u{1b}[31mred", "ünï", "$HOME;*"] {
        fs::write(tree.join("in").join(name), name).unwrap();
    }
    symlink("../empty", tree.join("in/link")).unwrap();
}

/// Every path below `root` with its kind, contents and time, in order.
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
    let said = users.done("client", &["cp", &server.at("tree"), "back"]);
    assert!(said.starts_with("12 copied, 0 unchanged; 19.07 MiB in "), "{said}");
    same(&users.path("tree"), &users.path("back/tree"));
    let said = users.done("client", &["cp", &server.at("tree"), "back"]);
    assert_eq!(said, "0 copied, 12 unchanged; 0 B\n");
    // Names are new ones where nothing is.
    users.done("client", &["cp", "-q", "tree/in/big", &server.at("renamed")]);
    users.done("client", &["cp", "-q", &server.at("renamed"), "fetched"]);
    assert!(fs::read(users.path("fetched")).unwrap() == octets(20_000_000));
    // What the source has no more.
    fs::remove_file(users.path("tree/in/a b")).unwrap();
    let would = users.done("client", &["cp", "-n", "--delete", "tree", &server.at("")]);
    assert!(would.contains("delete tree/in/a b\n") && users.path("served/tree/in/a b").exists(), "{would}");
    users.done("client", &["cp", "--delete", "tree", &server.at("")]);
    same(&users.path("tree"), &users.path("served/tree"));
}

#[test]
fn a_copy_that_was_killed_is_gone_on_with() {
    let users = Users::new();
    fs::create_dir_all(users.path("served")).unwrap();
    fs::create_dir_all(users.path("back")).unwrap();
    let content = octets(300_000_000);
    fs::write(users.path("served/big"), &content).unwrap();
    let server = users.serve(&["served"]);
    users.introduce(&server);
    let mut child = users.command("client", &["cp", "-q", &server.at("big"), "back"]).spawn().unwrap();
    let left = || {
        let names = fs::read_dir(users.path("back")).unwrap().map(|entry| entry.unwrap());
        names.map(|entry| entry.metadata().unwrap().len()).sum::<u64>()
    };
    while left() < 10_000_000 {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it was killed");
        #[expect(clippy::disallowed_methods, reason = "waits for another process, which no event announces")]
        sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!users.path("back/big").exists(), "it was whole before it was killed");
    let before = left();
    let report: Value =
        serde_json::from_str(&users.done("client", &["cp", "--json", &server.at("big"), "back"])).unwrap();
    let (resumed, received) = (&report["summary"]["resumed_octets"], &report["summary"]["received_octets"]);
    assert_eq!((resumed, received), (&before.into(), &(300_000_000 - before).into()), "{report}");
    assert_eq!(report["paths"][0]["action"], "resumed");
    assert!(fs::read(users.path("back/big")).unwrap() == content);
    assert_eq!(fs::read_dir(users.path("back")).unwrap().count(), 1, "nothing is left");
}

#[test]
fn nobody_is_trusted_who_was_not_named() {
    let users = Users::new();
    fs::create_dir_all(users.path("served")).unwrap();
    fs::write(users.path("served/file"), b"abc").unwrap();
    let server = users.serve(&["served"]);
    let (file, key) = (server.at("file"), users.key("server"));
    // A server that is not known, without a terminal.
    let said = users.refused("client", &["cp", &file, "."], 2);
    assert!(said.contains("is not known") && said.contains(&key), "{said}");
    // A client that is not known.
    users.done("client", &["keys", "trust", &server.address, &key]);
    let said = users.refused("client", &["cp", &file, "."], 3);
    assert!(said.contains("not allowed") && said.contains(&users.key("client")), "{said}");
    // Known as a server, it may not connect.
    users.done("server", &["keys", "trust", "laptop", &users.key("client")]);
    users.refused("client", &["cp", &file, "."], 3);
    // Trusted while the server runs.
    users.done("server", &["keys", "trust", "laptop", &users.key("client"), "--client"]);
    users.done("client", &["cp", &file, "."]);
    assert_eq!(fs::read(users.path("file")).unwrap(), b"abc");
    // It is served for reading only, and nothing outside is.
    let said = users.refused("client", &["cp", "file", &server.at("")], 3);
    assert!(said.contains("reading only"), "{said}");
    users.refused("client", &["cp", &server.at("../client"), "."], 3);
    assert!(!users.path("client/client").exists());
    // A key that has changed.
    users.done("client", &["keys", "forget", &server.address]);
    let other = users.key("other");
    users.done("client", &["keys", "trust", &server.address, &other]);
    let said = users.refused("client", &["cp", &file, "."], 2);
    assert!(said.contains(&key) && said.contains(&other), "{said}");
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
    users.refused("client", &["serve", "served", "--anyone", "--write"], 2);
    kill(Pid::from_raw(server.child.id().try_into().unwrap()), Signal::SIGTERM).unwrap();
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
    let mut log = String::new();
    std::io::Read::read_to_string(&mut server.says, &mut log).unwrap();
    assert!(log.contains("this user: from /file: 1 copied"), "{log}");
    users.refused("client", &["cp", &server.at("file"), "."], 4);
}
