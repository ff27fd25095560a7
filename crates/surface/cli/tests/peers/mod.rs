//! Users with keys, and the programs they run.

#![allow(dead_code, reason = "each test program uses some of it")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Two users with one directory of keys each, in a temporary directory.
pub struct Users {
    pub folder: tempfile::TempDir,
}

/// A server that is stopped at the end of the test.
pub struct Server {
    pub child: Child,
    pub address: String,
    /// Its standard error, kept open so that the server can always write to it.
    pub says: BufReader<std::process::ChildStderr>,
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have been stopped already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Users {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn command(&self, user: &str, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tacit"));
        command.args(words).current_dir(self.folder.path()).stdin(Stdio::null());
        command.env("XDG_CONFIG_HOME", self.path(user));
        command
    }

    pub fn tacit(&self, user: &str, words: &[&str]) -> Output {
        self.command(user, words).output().unwrap()
    }

    /// Runs a command that must succeed. Returns its standard output.
    pub fn done(&self, user: &str, words: &[&str]) -> String {
        let output = self.tacit(user, words);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{words:?}: {stderr}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a command that must exit with `code`. Returns its standard error.
    pub fn refused(&self, user: &str, words: &[&str], code: i32) -> String {
        let output = self.tacit(user, words);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{words:?}: {stderr}");
        stderr
    }

    pub fn key(&self, user: &str) -> String {
        if !self.path(user).join("tacit/identity").exists() {
            self.done(user, &["keys", "make"]);
        }
        self.done(user, &["keys", "show"]).trim().to_owned()
    }

    /// Starts a server of the user `server` on a free port.
    pub fn serve(&self, words: &[&str]) -> Server {
        self.key("server");
        let words = [&["serve"], words, &["--listen", "127.0.0.1:0"]].concat();
        self.start("server", &words, "tack://")
    }

    /// Starts a server that prints its address after the text `before`.
    pub fn start(&self, user: &str, words: &[&str], before: &str) -> Server {
        self.started(self.command(user, words), before)
    }

    /// Does the same with `command`.
    pub fn started(&self, mut command: Command, before: &str) -> Server {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut says = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        says.read_line(&mut line).unwrap();
        let address = line.split(before).nth(1).unwrap_or_else(|| panic!("{line}"));
        let address = address.split(['/', ' ']).next().unwrap().to_owned();
        Server { child, address, says }
    }

    /// Makes client and server trust each other.
    pub fn introduce(&self, server: &Server) {
        let client = self.key("client");
        self.done("server", &["keys", "trust", "laptop", &client, "--client"]);
        self.done("client", &["keys", "trust", &server.address, &self.key("server")]);
    }
}

impl Server {
    pub fn at(&self, path: &str) -> String {
        format!("tack://{}/{path}", self.address)
    }
}

pub fn bytes(count: usize) -> Vec<u8> {
    (0..count as u64).map(|at| (at.wrapping_mul(at) / 7) as u8).collect()
}

/// Requests a local port from a SOCKS5 proxy. Returns the stream and the reply code.
pub fn socks(proxy: &str, port: u16) -> (TcpStream, u8) {
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

/// Sends `bytes`, closes that direction, and reads the response to its end.
pub fn echoed(mut tcp: TcpStream, bytes: &[u8]) -> Vec<u8> {
    let mut writer = tcp.try_clone().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            writer.write_all(bytes).unwrap();
            writer.shutdown(Shutdown::Write).unwrap();
        });
        let mut back = Vec::new();
        tcp.read_to_end(&mut back).unwrap();
        back
    })
}

/// An echo server on a local port, which runs until the end of the test.
pub fn echo() -> u16 {
    let echo = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = echo.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for tcp in echo.incoming().flatten() {
            // A connection ends when its program has gone.
            std::thread::spawn(move || {
                std::io::copy(&mut &tcp, &mut &tcp).map(|_| tcp.shutdown(Shutdown::Write))
            });
        }
    });
    port
}

/// Asks a program to terminate.
pub fn terminate(child: &Child) {
    kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGTERM).unwrap();
}

/// The metrics at `address`, as Prometheus receives them.
pub fn scraped(address: &str) -> String {
    let mut tcp = TcpStream::connect(address).unwrap();
    tcp.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut text = String::new();
    tcp.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
    assert!(head.to_lowercase().contains("content-type: text/plain; version=0.0.4"), "{head}");
    body.to_owned()
}

/// The value of a metric. `name` includes its labels.
pub fn value(page: &str, name: &str) -> f64 {
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in {page}")).parse().unwrap()
}
