//! A hop that is killed leaves nothing behind.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::support::{machine, shell, tacit};

/// Number of different times at which hops are killed.
const KILLS: u32 = 50;
const KILLS_AT_ONCE: usize = 5;

/// What a hop or a congestion control could leave behind on a machine.
#[derive(Debug, PartialEq, Eq)]
pub struct Machine {
    devices: String,
    routes: String,
    rules: String,
    namespaces: BTreeSet<String>,
    processes: usize,
    congestion_controls: String,
    control_groups: BTreeSet<PathBuf>,
}

/// Control groups of `tacit rre run` below the one in which this process runs.
fn control_groups() -> BTreeSet<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let root = mounts.lines().find_map(|line| {
        let words: Vec<_> = line.split(' ').collect();
        (words[2] == "cgroup2").then(|| PathBuf::from(words[1]))
    });
    let group = fs::read_to_string("/proc/self/cgroup").unwrap();
    let group = group.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    let groups = root.and_then(|root| fs::read_dir(root.join(group)).ok());
    let ours = groups.into_iter().flatten().flatten().map(|entry| entry.path());
    ours.filter(|path| path.to_string_lossy().contains("/tacit-rre-")).collect()
}

/// Whether the arguments of a process identify it as ours.
fn is_ours(arguments: &str, mark: &str) -> bool {
    arguments.contains(mark)
}

impl Machine {
    pub fn now(mark: &str) -> Self {
        let ip = |words: &[&str]| {
            let output = Command::new("ip").args(words).output().unwrap();
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        let mut namespaces = BTreeSet::new();
        let mut processes = 0;
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            if !entry.file_name().to_string_lossy().starts_with(|first: char| first.is_ascii_digit()) {
                continue;
            }
            let arguments = fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default();
            processes += usize::from(is_ours(&arguments, mark));
            for kind in ["net", "mnt", "pid", "user"] {
                if let Ok(name) = fs::read_link(entry.path().join("ns").join(kind)) {
                    namespaces.insert(name.to_string_lossy().into_owned());
                }
            }
        }
        Self {
            devices: ip(&["-o", "-br", "link"]),
            routes: ip(&["route", "show", "table", "all"]),
            rules: ip(&["rule"]),
            namespaces,
            processes,
            congestion_controls: fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")
                .unwrap(),
            control_groups: control_groups(),
        }
    }

    /// The state of the machine once the kernel has cleaned up, or after two seconds. Namespaces that other programs had
    /// `before` may be gone.
    pub fn settled(before: &Self, mark: &str) -> Self {
        let now = || {
            let mut now = Self::now(mark);
            now.namespaces.extend(before.namespaces.iter().cloned());
            now
        };
        for _ in 0..100 {
            let now = now();
            if now == *before {
                return now;
            }
            std::thread::park_timeout(Duration::from_millis(20));
        }
        now()
    }
}

#[test]
fn killed_at_any_moment_it_leaves_nothing_behind() {
    let Some(_machine) = machine(&["ip"]) else { return };
    // A duration that no other process sleeps for.
    let mark = format!("9{:05}.5", std::process::id() % 100_000);
    let before = Machine::now(&mark);
    let orphan = format!("sleep {mark} & setsid sleep {mark} & sleep {mark}");
    let kills: Vec<u32> = (0..KILLS).collect();
    // Several at the same time, because the kernel needs a moment to clean up, independent of the amount.
    for kills in kills.chunks(KILLS_AT_ONCE) {
        let start = |kill: &u32| {
            let mut words = vec!["-q", "--scheme", "hack-more-data", "--", "sh", "-c", &orphan];
            if kill % 2 == 1 {
                words.extend(["--server", "--", "sh", "-c", &orphan]);
            }
            let child = shell(&words).stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            // From the first system calls to a hop in operation.
            (child, Duration::from_micros(u64::from(*kill) * 6_000 + 500))
        };
        let hops: Vec<_> = kills.iter().map(start).collect();
        let mut waited = Duration::ZERO;
        for (mut child, moment) in hops {
            std::thread::park_timeout(moment - waited);
            waited = moment;
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert_eq!(Machine::settled(&before, &mark), before, "kills {kills:?}");
    }
}

#[test]
fn a_commands_children_end_with_it() {
    let Some(_machine) = machine(&["ip"]) else { return };
    let mark = format!("8{:05}.5", std::process::id() % 100_000);
    let before = Machine::now(&mark);
    let status = shell(&["-q", "--", "sh", "-c", &format!("setsid sleep {mark} & exit 3")]).status().unwrap();
    assert_eq!(status.code(), Some(3));
    assert_eq!(Machine::settled(&before, &mark), before);
}

/// A figure's live runs are processes of `tacit shell`, which end with the program.
#[test]
fn a_figure_that_is_killed_during_a_live_run_leaves_nothing_behind() {
    let Some(_machine) = machine(&["ip", "iperf3"]) else { return };
    let mark = "no process has this in its arguments";
    let before = Machine::now(mark);
    let figure = ["figure", "hack/live", "--quick", "--no-report", "--no-cache"];
    let mut child = tacit().args(figure).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // The doctor's probes also leave traces, but only for a moment; a run leaves them for seconds.
    let mut changed = 0;
    while changed < 20 {
        assert!(child.try_wait().unwrap().is_none(), "it ended without a live run");
        std::thread::park_timeout(Duration::from_millis(50));
        changed = if Machine::now(mark).namespaces == before.namespaces { 0 } else { changed + 1 };
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(Machine::settled(&before, mark), before);
}
