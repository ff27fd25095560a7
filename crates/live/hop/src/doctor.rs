//! Checks whether this machine can run live hops.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::process::{Command, Stdio};
use std::time::Duration;

use hdrhistogram::Histogram;
use nix::libc;
use nix::sched::{CloneFlags, unshare};
use nix::sys::time::TimeSpec;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork, geteuid};
use serde::Serialize;

use crate::clock::wall;
use crate::namespace::leave_the_hosts_network;
use crate::tun::{self, TUN_FILE, Tun, TunError};

/// Number of sleeps to measure, and their nominal duration.
const SLEEPS: u32 = 200;
const SLEEP: Duration = Duration::from_millis(1);

/// The capabilities of the machine.
#[derive(Clone, Debug, Serialize)]
pub struct Diagnosis {
    /// Whether `tacit shell … --server` works here.
    pub live: bool,
    /// The checks, in order of importance.
    pub checks: Vec<Check>,
    /// Lateness of a sleep of 1 ms in microseconds: median, 99th percentile, maximum.
    pub sleep_late_us: [u64; 3],
    /// Congestion controls available for `--congestion`.
    pub congestion_controls: Vec<String>,
    /// Number of processors.
    pub processors: usize,
}

/// The result of one check.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// What was checked.
    pub name: &'static str,
    /// Whether it works.
    pub works: bool,
    /// The finding, or advice.
    pub found: String,
    /// The feature that requires it.
    pub needed_for: &'static str,
    /// Whether live hops require it.
    pub required: bool,
}

/// Examines this machine. Takes about half a second and leaves nothing behind.
///
/// Must be called while the process has a single thread, because some checks run in a copy of it.
pub fn examine() -> Diagnosis {
    let checks = vec![
        check("tun", "every live hop", true, open_tun()),
        check("ip", "every live hop", true, find_ip()),
        check(
            "private networks",
            "tacit shell with --server",
            true,
            private_networks(|| {
                leave_the_hosts_network().map_err(|error| io::Error::other(error.to_string()))?;
                Tun::create().map_err(TunError::into_source)?;
                unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNET)
                    .map_err(io::Error::from)
            }),
        ),
        check(
            "devices in this network",
            "tacit shell without --server",
            false,
            in_a_copy(|| Tun::create().map(drop).map_err(TunError::into_source)),
        ),
    ];
    Diagnosis {
        live: checks.iter().all(|check| check.works || !check.required),
        checks,
        sleep_late_us: sleep_lateness_us(),
        congestion_controls: congestion_controls(),
        processors: std::thread::available_parallelism().map_or(1, usize::from),
    }
}

fn check(name: &'static str, needed_for: &'static str, required: bool, tried: io::Result<String>) -> Check {
    let works = tried.is_ok();
    let found = tried.unwrap_or_else(|error| error.to_string());
    Check { name, works, found, needed_for, required }
}

fn open_tun() -> io::Result<String> {
    let advice = |error| io::Error::other(format!("{TUN_FILE}: {error}; {}", tun::opening_advice(&error)));
    tun::open(0).map(|_| TUN_FILE.to_owned()).map_err(advice)
}

/// Tries private networks, and names the setting that forbids them to users other than root.
fn private_networks(attempt: impl FnOnce() -> io::Result<()>) -> io::Result<String> {
    in_a_copy(attempt).map_err(|error| {
        let read = |path: &str| fs::read_to_string(path).ok();
        match obstacle(read).filter(|_| !geteuid().is_root()) {
            Some(advice) => io::Error::other(format!("{error}; {advice}")),
            None => error,
        }
    })
}

/// The setting, read by `read`, that denies namespaces to users other than root, and how to change it.
fn obstacle(read: impl Fn(&str) -> Option<String>) -> Option<&'static str> {
    // Of Ubuntu from 23.10 on, of Debian's kernels, and of every kernel (namespaces(7)).
    let settings = [
        (
            "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
            "1",
            "AppArmor forbids it: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
        ),
        (
            "/proc/sys/kernel/unprivileged_userns_clone",
            "0",
            "the kernel forbids it: sysctl -w kernel.unprivileged_userns_clone=1",
        ),
        (
            "/proc/sys/user/max_user_namespaces",
            "0",
            "the kernel forbids it: sysctl -w user.max_user_namespaces=15000",
        ),
    ];
    let forbids = |(path, value, _): &&(&str, &str, _)| read(path).is_some_and(|read| read.trim() == *value);
    settings.iter().find(forbids).map(|(_, _, advice)| *advice)
}

fn find_ip() -> io::Result<String> {
    let output = Command::new("ip").arg("-Version").stdin(Stdio::null()).output();
    let output = output.map_err(|error| io::Error::other(format!("ip: {error}; install iproute2")))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().trim_start_matches("ip utility, ").to_owned())
}

/// Runs `attempt` in a copy of this process. Its devices and namespaces disappear when the copy ends.
fn in_a_copy(attempt: impl FnOnce() -> io::Result<()>) -> io::Result<String> {
    // SAFETY: there is one thread, so no lock in the copy stays held for ever.
    match unsafe { fork() }? {
        ForkResult::Child => {
            let code = attempt().map_or_else(|error| error.raw_os_error().unwrap_or(libc::EPERM), |()| 0);
            // SAFETY: ends this process without running the exit handlers that the parent registered.
            unsafe { libc::_exit(code) }
        }
        ForkResult::Parent { child } => match waitpid(child, None)? {
            WaitStatus::Exited(_, 0) => Ok("works".to_owned()),
            WaitStatus::Exited(_, code) => Err(io::Error::from_raw_os_error(code)),
            other => Err(io::Error::other(format!("{other:?}"))),
        },
    }
}

fn sleep_lateness_us() -> [u64; 3] {
    let Ok(mut late_us) = Histogram::<u64>::new(3) else { return [0; 3] };
    for _ in 0..SLEEPS {
        let start = wall();
        // Interrupted sleeps are too short and count as punctual.
        let _ = nix::poll::ppoll(&mut [], Some(TimeSpec::from_duration(SLEEP)), None);
        let late = start.elapsed().saturating_sub(SLEEP);
        late_us.saturating_record(u64::try_from(late.as_micros()).unwrap_or(u64::MAX));
    }
    [late_us.value_at_quantile(0.5), late_us.value_at_quantile(0.99), late_us.max()]
}

fn congestion_controls() -> Vec<String> {
    let listed = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    listed.unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

impl Diagnosis {
    /// As text. `hanging` breaks the words behind a lead into lines.
    pub fn to_text(&self, hanging: impl Fn(&str, &str) -> String) -> String {
        let mut text = String::new();
        for check in &self.checks {
            let mark = if check.works { "yes" } else { "NO " };
            let lead = format!("{mark}  {:<24} ", check.name);
            text.push_str(&hanging(&lead, &format!("{} ({})", check.found, check.needed_for)));
        }
        let [p50, p99, max] = self.sleep_late_us;
        let _ = writeln!(
            text,
            "     a sleep of 1 ms ends late by {p50} us (median), {p99} us (p99), {max} us (most)"
        );
        let _ = writeln!(
            text,
            "     {} processors; a hop takes part of one, its commands the rest",
            self.processors
        );
        let _ = writeln!(text, "     congestion control: {}", self.congestion_controls.join(", "));
        text.push_str(if self.live { "Live hops work here.\n" } else { "Live hops do not work here.\n" });
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_setting_that_forbids_namespaces_is_named() {
        let obstacle_for = |path: &'static str, value: &'static str| {
            obstacle(|asked| (asked == path).then(|| format!("{value}\n")))
        };
        let apparmor = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns";
        assert!(
            obstacle_for(apparmor, "1")
                .unwrap()
                .contains("sysctl -w kernel.apparmor_restrict_unprivileged_userns=0")
        );
        assert_eq!(obstacle_for(apparmor, "0"), None);
        assert!(
            obstacle_for("/proc/sys/kernel/unprivileged_userns_clone", "0").unwrap().contains("_clone=1")
        );
        assert!(
            obstacle_for("/proc/sys/user/max_user_namespaces", "0").unwrap().contains("max_user_namespaces")
        );
        assert_eq!(obstacle(|_| None), None, "a kernel without any of them");
    }

    /// A device file of mode 0600 is there: neither the module nor `--server` would help.
    #[test]
    fn a_device_file_without_access_is_no_missing_module() {
        let denied = io::Error::from_raw_os_error(libc::EACCES);
        assert!(tun::opening_advice(&denied).starts_with("chmod 0666 /dev/net/tun"));
        for code in [libc::ENOENT, libc::ENODEV] {
            assert_eq!(tun::opening_advice(&io::Error::from_raw_os_error(code)), "modprobe tun");
        }
    }
}
