//! A file server, and a proxy with both of its ends, each behind a relay.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::peers::{Users, scraped, value};
use crate::weather::{Relay, Weather};

/// Time to wait after the last actor has stopped. Connections of killed programs are given up after the idle timeout of
/// 30 s.
const IDLE_PATIENCE: Duration = Duration::from_secs(60);

/// Memory and descriptors of a program.
#[derive(Debug)]
pub struct Held {
    pub name: &'static str,
    pub resident_kb: u64,
    pub descriptors: usize,
}

/// A running program, and the address of its metrics.
struct Running {
    child: Child,
    metrics: String,
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have been stopped already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub struct Site {
    pub users: Users,
    files: Mutex<Running>,
    carrier: Mutex<Running>,
    programs: Running,
    files_at: SocketAddr,
    carrier_at: SocketAddr,
    to_files: Relay,
    to_carrier: Relay,
    /// Address of the SOCKS5 proxy.
    pub socks: String,
}

const METRICS: [&str; 2] = ["--metrics", "127.0.0.1:0"];

/// Starts a program that prints its address after the text `before`, and the address of its metrics.
fn start(mut command: Command, before: &str) -> (Running, String) {
    // Resident memory equals used memory only if glibc returns free memory.
    command.envs([("MALLOC_ARENA_MAX", "1"), ("MALLOC_TRIM_THRESHOLD_", "131072")]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut says = BufReader::new(child.stderr.take().unwrap());
    let (mut metrics, mut address) = (None, None);
    while metrics.is_none() || address.is_none() {
        let mut line = String::new();
        assert!(says.read_line(&mut line).unwrap() > 0, "{command:?} ended");
        let behind = |before: &str| {
            let rest = line.split(before).nth(1)?;
            rest.split(['/', ' ', '\n']).next().map(str::to_owned)
        };
        metrics = metrics.or(behind("metrics at http://"));
        address = address.or(behind(before));
    }
    // Keeps reading its output, so that it does not block.
    std::thread::spawn(move || std::io::copy(&mut says, &mut std::io::sink()));
    (Running { child, metrics: metrics.unwrap() }, address.unwrap())
}

impl Site {
    pub fn new(seed: u64) -> Self {
        let users = Users::new();
        fs::create_dir_all(users.path("served")).unwrap();
        users.key("server");
        let (files, files_at) = start(Self::files(&users, "127.0.0.1:0"), "tack://");
        let (carrier, carrier_at) = start(Self::carrier(&users, "127.0.0.1:0"), "connections at ");
        let [files_at, carrier_at] = [files_at, carrier_at].map(|at| at.parse().unwrap());
        let to_files = Relay::before(files_at, seed);
        let to_carrier = Relay::before(carrier_at, seed + 7);
        let (client, server) = (users.key("client"), users.key("server"));
        users.done("server", &["keys", "trust", "laptop", &client, "--client"]);
        for relay in [&to_files, &to_carrier] {
            users.done("client", &["keys", "trust", &relay.address.to_string(), &server]);
        }
        let at = to_carrier.address.to_string();
        let words = [&["proxy", &at, "--socks5", "--listen", "127.0.0.1:0"][..], &METRICS].concat();
        let (programs, socks) = start(users.command("client", &words), "socks5 at ");
        Self {
            users,
            files: Mutex::new(files),
            carrier: Mutex::new(carrier),
            programs,
            files_at,
            carrier_at,
            to_files,
            to_carrier,
            socks,
        }
    }

    fn files(users: &Users, at: &str) -> Command {
        users.command("server", &[&["serve", "served", "--write", "--listen", at][..], &METRICS].concat())
    }

    fn carrier(users: &Users, at: &str) -> Command {
        let words = ["proxy", "--serve", "--listen", at, "--allow", "127.0.0.1:*"];
        users.command("server", &[&words[..], &METRICS].concat())
    }

    /// The URL of the served `path` through the relay.
    pub fn at(&self, path: &str) -> String {
        format!("tack://{}/{path}", self.to_files.address)
    }

    pub fn set(&self, weather: Weather) {
        self.to_files.set(weather);
        self.to_carrier.set(weather);
    }

    fn pids(&self) -> [u32; 3] {
        let pid_of = |running: &Mutex<Running>| running.lock().unwrap().child.id();
        [pid_of(&self.files), pid_of(&self.carrier), self.programs.child.id()]
    }

    /// Stops one of the programs for a while.
    pub fn pause(&self, which: u64, ms: u64) {
        let pid = Pid::from_raw(self.pids()[which as usize % 3].try_into().unwrap());
        kill(pid, Signal::SIGSTOP).unwrap();
        sleep(Duration::from_millis(ms));
        kill(pid, Signal::SIGCONT).unwrap();
    }

    /// Kills one of the servers and restarts it at its address.
    pub fn restart(&self, is_files: bool) {
        let (running, at) =
            if is_files { (&self.files, self.files_at) } else { (&self.carrier, self.carrier_at) };
        let mut running = running.lock().unwrap();
        running.child.kill().unwrap();
        running.child.wait().unwrap();
        let at = at.to_string();
        let (command, before) = match is_files {
            true => (Self::files(&self.users, &at), "tack://"),
            false => (Self::carrier(&self.users, &at), "connections at "),
        };
        *running = start(command, before).0;
    }

    /// Waits until the servers have no connections except the proxy's, and the proxy carries none.
    pub fn wait_idle(&self) {
        let pages = [&self.files, &self.carrier].map(|running| running.lock().unwrap().metrics.clone());
        let until = Instant::now() + IDLE_PATIENCE;
        loop {
            let files = value(&scraped(&pages[0]), "tacit_tack_connections");
            let page = scraped(&pages[1]);
            let (carriers, streams) =
                (value(&page, "tacit_tack_connections"), value(&page, "tacit_tack_streams"));
            if files < 0.5 && carriers < 1.5 && streams < 1.5 {
                return;
            }
            assert!(
                Instant::now() < until,
                "{files} connections of copies, {carriers} of the proxy with {streams} streams stay"
            );
            sleep(Duration::from_millis(200));
        }
    }

    /// Memory and descriptors of each program. The sockets of the last metrics request are closed a moment later, so
    /// this waits until there are no more descriptors than in `first`, or for ten seconds.
    pub fn held(&self, first: Option<&[Held]>) -> Vec<Held> {
        let names = ["serve", "proxy --serve", "proxy --socks5"];
        let mut looks = 20;
        loop {
            sleep(Duration::from_millis(500));
            looks -= 1;
            let now: Vec<_> = names.into_iter().zip(self.pids()).map(|(name, pid)| held(name, pid)).collect();
            let has_more = |(now, first): (&Held, &Held)| now.descriptors > first.descriptors;
            if looks == 0 || !first.is_some_and(|first| now.iter().zip(first).any(has_more)) {
                return now;
            }
        }
    }
}

fn held(name: &'static str, pid: u32) -> Held {
    let process = Path::new("/proc").join(pid.to_string());
    let status = fs::read_to_string(process.join("status")).unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let resident_kb = resident.trim().trim_end_matches(" kB").parse().unwrap();
    Held { name, resident_kb, descriptors: fs::read_dir(process.join("fd")).unwrap().count() }
}
