//! Commands on the two sides of a live hop.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tacit_sim::capture::AtomicFile;

use crate::address::{Block, Claim, Routes, kernel_has_ipv6};
use crate::clock::wall;
use crate::congestion;
use crate::error::LiveError;
use crate::hop::{self, Ended, Plan, Shared, Snapshot};
use crate::namespace::{Ending, Inside, Side, Streams, ip_batch, leave_the_hosts_network};
use crate::readers::listen_in;
use crate::report::{About, Report};
use crate::signals::{Signals, Terminal, somebody_else_has_the_terminal};
use crate::tun::{self, Tun, TunError};
use crate::waits::{Waits, Watcher};

/// Maximum time until a server listens.
const SERVER_PATIENCE: std::time::Duration = std::time::Duration::from_secs(5);
/// Interval between checks for that, in milliseconds.
const SERVER_LOOK: u16 = 20;
/// Interval between calls of watchers.
const WATCH_EVERY: std::time::Duration = std::time::Duration::from_secs(1);
/// Interval between checks of the commands, in milliseconds.
const LOOK_EVERY: u16 = 200;

/// Options of a live run.
#[derive(Debug)]
pub struct Options {
    /// The hop.
    pub plan: Plan,
    /// Name of its scenario.
    pub scenario: String,
    /// Name of its scheme.
    pub scheme: String,
    /// The command and its arguments; empty for an interactive shell.
    pub command: Vec<OsString>,
    /// The command on the other side; `None` leaves the caller's own network there.
    pub server: Option<Vec<OsString>>,
    /// File for the server's standard output; `None` discards it.
    pub server_log: Option<PathBuf>,
    /// Congestion control of both sides; `None` for the kernel's default.
    pub congestion: Option<String>,
    /// File for a capture of all frames.
    pub pcap: Option<PathBuf>,
    /// Destination of the command's standard output.
    pub output: Output,
    /// Called about once per second while the command runs.
    pub watch: Option<fn(&Snapshot)>,
}

/// Destination of a command's standard output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Output {
    /// Our standard output. The command also has our standard input.
    #[default]
    Ours,
    /// Our standard error. The command also has our standard input.
    ToError,
}

/// Runs the command through the hop until it ends.
///
/// Must be called while the process has a single thread, because it copies itself to create the sides.
///
/// # Errors
/// If the machine does not permit it, a command cannot be started, or the hop fails.
pub fn run(options: Options) -> Result<Report, LiveError> {
    options.check()?;
    // Done first, because opening a FIFO waits for its reader, and Ctrl-C must be able to interrupt that.
    let pcap = written(options.pcap.as_deref(), "--pcap", AtomicFile::create)?;
    let log = written(options.server_log.as_deref(), "--server-log", File::create)?;
    let signals = Signals::taken_over()?;
    let terminal = Terminal::look();
    let Sides { mut near, mut far, tuns, block } = Sides::make(&options, log)?;
    let running = RunningHop::start(options.plan.clone(), block, tuns, &near, pcap)?;
    if let (Some(far), Some(server)) = (&mut far, &options.server) {
        far.start(&name_of(server))?;
        wait_for_server(far);
    }
    near.start(&name_of(&options.command_or_shell()))?;
    let mut watched = Watched { near, far, waits: Default::default(), server_ended: None };
    let status = watched.until_the_end(&signals, &running, options.watch);
    terminal.take_back();
    // If the hop failed, its error is reported, because the command could only notice that no data moved.
    let ended = running.stop()?;
    let about = About {
        scenario: options.scenario,
        scheme: options.scheme,
        seed: options.plan.setup.seed,
        ack_mode: options.plan.ack_mode.to_string(),
        exit_status: status?,
        server_exit_status: watched.server_ended,
        waits: watched.waits(),
    };
    Ok(Report::new(about, &ended))
}

/// Opens the file that `argument` names.
fn written<'p, T>(
    path: Option<&'p Path>,
    argument: &'static str,
    create: impl FnOnce(&'p Path) -> io::Result<T>,
) -> Result<Option<T>, LiveError> {
    path.map(|path| create(path).map_err(LiveError::not_writable(argument, path))).transpose()
}

/// Both sides with configured networks, before their commands start.
struct Sides {
    near: Side,
    /// `None` for the network in which this process was started.
    far: Option<Side>,
    /// The near device, then the far one.
    tuns: [Tun; 2],
    /// Their addresses.
    block: Block,
}

impl Sides {
    fn make(options: &Options, log: Option<File>) -> Result<Self, LiveError> {
        let private = options.server.is_some();
        if private {
            leave_the_hosts_network()?;
        }
        // Held until the addresses are configured and therefore in use.
        let claim = if private { None } else { Some(Claim::wait()?) };
        let block = claim.as_ref().map_or_else(|| Ok(Block::first()), Block::free)?;
        let tuns = [make_device(private)?, make_device(private)?];
        let [near_device, far_device] = [tuns[0].name(), tuns[1].name()];
        let fds: Vec<_> = tuns.iter().map(AsFd::as_fd).chain(claim.as_ref().map(AsFd::as_fd)).collect();
        let routes =
            Routes { quickack: options.plan.ack_mode.quick(), congestion: options.congestion.clone() };
        let inside = |command: Vec<OsString>, script: String, environment, streams| Inside {
            script: format!("{LOOPBACK_UP}{script}"),
            sysctls: sysctls(),
            command,
            environment,
            streams,
        };
        let mut near = Side::make(
            inside(
                options.command_or_shell(),
                block.near_script(near_device, &routes),
                block.near_environment(),
                match options.output {
                    Output::Ours => Streams::Inherited,
                    Output::ToError => Streams::OutputToError,
                },
            ),
            &fds,
        )?;
        let far_script = block.far_script(far_device, &routes);
        let mut far = None;
        if let Some(server) = &options.server {
            let streams = Streams::Detached(log);
            let inside = inside(server.clone(), far_script.clone(), block.far_environment(), streams);
            far = Some(Side::make(inside, &[&fds[..], &[near.as_fd()]].concat())?);
        }
        near.configure(near_device)?;
        match &mut far {
            Some(far) => far.configure(far_device)?,
            None => ip_batch(&far_script)?,
        }
        Ok(Self { near, far, tuns, block })
    }
}

/// The loopback interface is down in a new network namespace. That of the host is not touched.
const LOOPBACK_UP: &str = "link set dev lo up\n";

/// Makes a device. With a server both are in networks of their own.
fn make_device(has_server: bool) -> Result<Tun, LiveError> {
    Tun::create().map_err(|error| refused(error, has_server))
}

fn refused(error: TunError, has_server: bool) -> LiveError {
    let (what, advice) = match &error {
        TunError::Open(source) => ("cannot open /dev/net/tun", tun::opening_advice(source)),
        TunError::Make(_) if has_server => {
            ("cannot make a TUN device", "run as root (tacit doctor says more)")
        }
        TunError::Make(_) => (
            "cannot make a TUN device",
            "run as root, or give a command for the other side with --server, which needs no device in this \
             network (tacit doctor says more)",
        ),
    };
    LiveError::Refused { what: what.to_owned(), source: error.into_source(), advice }
}

impl Options {
    /// Checks whether a hop can execute these options.
    ///
    /// # Errors
    /// If the plan has a setting that only simulations support, or the kernel lacks the congestion control.
    pub(crate) fn check(&self) -> Result<(), LiveError> {
        self.plan.check()?;
        self.congestion.as_deref().map_or(Ok(()), congestion::find)
    }

    fn command_or_shell(&self) -> Vec<OsString> {
        command_or_shell(self.command.clone())
    }
}

fn command_or_shell(command: Vec<OsString>) -> Vec<OsString> {
    if !command.is_empty() {
        return command;
    }
    vec![std::env::var_os("SHELL").filter(|shell| !shell.is_empty()).unwrap_or_else(|| "/bin/sh".into())]
}

fn name_of(command: &[OsString]) -> String {
    command.first().map_or_else(String::new, |program| program.to_string_lossy().into_owned())
}

/// Forwarding allows a hop inside a hop to reach hosts behind both.
fn sysctls() -> Vec<(String, String)> {
    let mut all = vec![("net/ipv4/ip_forward".to_owned(), "1".to_owned())];
    if kernel_has_ipv6() {
        all.push(("net/ipv6/conf/all/forwarding".to_owned(), "1".to_owned()));
    }
    all
}

// --- The hop's thread -----------------------------------------------------------------------------

struct RunningHop {
    thread: JoinHandle<Result<Ended, LiveError>>,
    stop: UnixStream,
    shared: Shared,
}

impl RunningHop {
    fn start(
        plan: Plan,
        block: Block,
        tuns: [Tun; 2],
        near: &Side,
        pcap: Option<AtomicFile>,
    ) -> Result<Self, LiveError> {
        // Created before the command starts, so that it already exists when a program looks for it.
        let readers = plan.shim().map(|_| listen_in(near.process()));
        let readers = readers.transpose().map_err(LiveError::io("the socket of FWP's readers"))?;
        let (stop, stopped) = UnixStream::pair().map_err(LiveError::io("socketpair"))?;
        let shared: Shared = Arc::new(Mutex::new(Snapshot::default()));
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("hop".to_owned())
            .spawn(move || hop::run(&plan, block, tuns, readers, &stopped, pcap, &theirs))
            .map_err(LiveError::io("a thread for the hop"))?;
        Ok(Self { thread, stop, shared })
    }

    fn stop(self) -> Result<Ended, LiveError> {
        drop(self.stop);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

// --- The commands ---------------------------------------------------------------------------------

/// Waits until a socket listens on the other side, the server ends, or the time is up.
fn wait_for_server(far: &mut Side) {
    let start = wall();
    while !listens(far) && start.elapsed() < SERVER_PATIENCE {
        let mut fds = [PollFd::new(far.as_fd(), PollFlags::POLLIN)];
        if poll(&mut fds, PollTimeout::from(SERVER_LOOK)).unwrap_or(1) > 0 {
            return;
        }
    }
}

/// Whether any socket in a side's network listens (TCP state 0A) or is bound (UDP).
fn listens(side: &Side) -> bool {
    let read =
        |table: &str| fs::read_to_string(format!("/proc/{}/net/{table}", side.process())).unwrap_or_default();
    let listens = |table: &str| {
        read(table).lines().skip(1).any(|line| line.split_ascii_whitespace().nth(3) == Some("0A"))
    };
    let bound = |table: &str| read(table).lines().nth(1).is_some();
    listens("tcp") || listens("tcp6") || bound("udp") || bound("udp6")
}

/// Placeholder for the exit status of a command whose hop failed. The hop's error is reported instead.
const HOP_BROKE: u8 = 125;

/// Both sides while the command runs.
struct Watched {
    near: Side,
    far: Option<Side>,
    /// Watcher of the near side, then that of the far one.
    waits: [Watcher; 2],
    /// The server's exit status, if it ended before the command.
    server_ended: Option<u8>,
}

impl Watched {
    /// Checks the commands, forwards signals and calls watchers, until the command or the hop ends. Returns the exit
    /// status.
    fn until_the_end(
        &mut self,
        signals: &Signals,
        running: &RunningHop,
        watch: Option<fn(&Snapshot)>,
    ) -> Result<u8, LiveError> {
        let (mut next_watch, mut watched_bytes) = (wall(), 0);
        loop {
            let mut fds = [
                PollFd::new(self.near.as_fd(), PollFlags::POLLIN),
                PollFd::new(signals.as_fd(), PollFlags::POLLIN),
            ];
            match poll(&mut fds, PollTimeout::from(LOOK_EVERY)) {
                Ok(_) | Err(nix::errno::Errno::EINTR) => {}
                Err(error) => return Err(LiveError::Io { what: "poll".to_owned(), source: error.into() }),
            }
            let [ended, signalled] = fds.map(|fd| fd.any().unwrap_or(true));
            self.look_at_server();
            if ended {
                return match self.near.ending() {
                    Ending::Exited(status) => Ok(status),
                    Ending::Gone => Err(LiveError::Setup {
                        what: "the command's side".to_owned(),
                        reason: "was killed".to_owned(),
                    }),
                };
            }
            if running.thread.is_finished() {
                return Ok(HOP_BROKE);
            }
            self.look();
            if signalled && let Some(signal) = signals.to_pass_on() {
                self.near.signal(signal);
            }
            if let Some(watch) = watch
                && wall() >= next_watch
            {
                next_watch = wall() + WATCH_EVERY;
                let snapshot = running.shared.lock().unwrap_or_else(PoisonError::into_inner).clone();
                // An interactive shell owns the terminal, and an idle hop has nothing to report.
                let bytes = snapshot.received.iter().sum::<u64>();
                if bytes > watched_bytes && !somebody_else_has_the_terminal() {
                    watched_bytes = bytes;
                    watch(&snapshot);
                }
            }
        }
    }

    /// Records the end of the server.
    fn look_at_server(&mut self) {
        let Some(far) = self.far.as_mut().filter(|_| self.server_ended.is_none()) else { return };
        let mut fds = [PollFd::new(far.as_fd(), PollFlags::POLLIN)];
        let is_over = poll(&mut fds, PollTimeout::ZERO).is_ok_and(|ready| ready > 0);
        if is_over {
            self.server_ended = Some(match far.ending() {
                Ending::Exited(status) => status,
                Ending::Gone => HOP_BROKE,
            });
        }
    }

    fn look(&mut self) {
        for (side, watcher) in [Some(&self.near), self.far.as_ref()].into_iter().zip(&mut self.waits) {
            if let Some(process) = side.and_then(|side| u32::try_from(side.process().as_raw()).ok()) {
                watcher.look(process);
            }
        }
    }

    fn waits(&self) -> Waits {
        let [command, server] = &self.waits;
        Waits { command: command.wait(), server: server.wait() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_command_there_is_a_shell() {
        assert_eq!(command_or_shell(vec!["true".into()]), ["true"]);
        assert_eq!(command_or_shell(Vec::new()).len(), 1);
    }

    #[test]
    fn advice_is_about_what_failed() {
        let denied = || io::Error::from_raw_os_error(nix::libc::EACCES);
        for has_server in [false, true] {
            let text = refused(TunError::Open(denied()), has_server).to_string();
            let expected =
                "cannot open /dev/net/tun: Permission denied (os error 13); chmod 0666 /dev/net/tun";
            assert!(text.starts_with(expected), "{text}");
            assert!(!text.contains("--server") && !text.contains("modprobe"), "{text}");
            let text = refused(TunError::Make(denied()), has_server).to_string();
            assert_eq!(text.contains("--server"), !has_server, "what was given is no advice: {text}");
        }
    }
}
