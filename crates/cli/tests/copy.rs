//! `tacit keys`, `serve`, `cp` and `proxy` as their users meet them, over loopback.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
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
        self.start("server", &words, "tack://")
    }

    /// Starts what says where it listens behind `before`.
    fn start(&self, user: &str, words: &[&str], before: &str) -> Server {
        let mut child = self.command(user, words).stderr(Stdio::piped()).spawn().unwrap();
        let mut says = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        says.read_line(&mut line).unwrap();
        let address = line.split(before).nth(1).unwrap_or_else(|| panic!("{line}"));
        let address = address.split(['/', ' ']).next().unwrap().to_owned();
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
    server.says.read_to_string(&mut log).unwrap();
    assert!(log.contains("this user: from /file: 1 copied"), "{log}");
    users.refused("client", &["cp", &server.at("file"), "."], 4);
}

/// Asks a SOCKS5 proxy for a port of this machine; gives the stream and the reply code.
fn socks(proxy: &str, port: u16) -> (TcpStream, u8) {
    let mut tcp = TcpStream::connect(proxy).unwrap();
    // RFC 1928 sections 3 and 4: no authentication; CONNECT to an IPv4 address.
    tcp.write_all(&[5, 1, 0]).unwrap();
    let mut chosen = [0; 2];
    tcp.read_exact(&mut chosen).unwrap();
    assert_eq!(chosen, [5, 0]);
    tcp.write_all(&[&[5, 1, 0, 1, 127, 0, 0, 1][..], &port.to_be_bytes()].concat()).unwrap();
    let mut reply = [0; 10];
    tcp.read_exact(&mut reply).unwrap();
    (tcp, reply[1])
}

/// Sends `octets`, ends that way, and reads to the end what comes back.
fn echoed(mut tcp: TcpStream, octets: &[u8]) -> Vec<u8> {
    let mut writer = tcp.try_clone().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            writer.write_all(octets).unwrap();
            writer.shutdown(Shutdown::Write).unwrap();
        });
        let mut back = Vec::new();
        tcp.read_to_end(&mut back).unwrap();
        back
    })
}

#[test]
fn connections_of_programs_go_to_what_the_server_allows_and_nowhere_else() {
    let users = Users::new();
    let echo = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = echo.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for tcp in echo.incoming().flatten() {
            // One whose program has gone ends.
            std::thread::spawn(move || {
                std::io::copy(&mut &tcp, &mut &tcp).map(|_| tcp.shutdown(Shutdown::Write))
            });
        }
    });
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let other_port = other.local_addr().unwrap().port();
    users.key("server");
    let rule = format!("127.0.0.1:{port}");
    let words = ["proxy", "--serve", "--listen", "127.0.0.1:0", "--allow", &rule];
    let server = users.start("server", &words, "connections at ");
    users.introduce(&server);
    let words = ["proxy", &server.address, "--socks5", "--listen", "127.0.0.1:0"];
    let proxy = users.start("client", &words, "socks5 at ");
    let content = octets(3_000_000);
    let (tcp, answer) = socks(&proxy.address, port);
    assert_eq!(answer, 0);
    assert!(echoed(tcp, &content) == content);
    // RFC 1928 section 6: not allowed by the ruleset.
    assert_eq!(socks(&proxy.address, other_port).1, 2);
    let forward = format!("127.0.0.1:0={rule}");
    let words = ["proxy", &server.address, "--forward", &forward];
    let forwarded = users.start("client", &words, &format!("{rule} at "));
    assert!(echoed(TcpStream::connect(&forwarded.address).unwrap(), &content) == content);
    users.refused("client", &["proxy", &server.address, "--socks5", "--listen", "0.0.0.0:0"], 2);
    users.refused("client", &["proxy", "--serve", "--allow", "example.org"], 2);
    let words = ["proxy", &server.address, "--socks5", "--listen", "127.0.0.1:0"];
    assert!(users.refused("other", &words, 2).contains("is not known"));
}
