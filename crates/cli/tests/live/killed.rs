//! A hop that is killed leaves nothing behind.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::support::{machine, shell};

/// Kills at so many different moments.
const KILLS: u32 = 50;

/// What a machine has that a hop could leave behind.
#[derive(Debug, PartialEq, Eq)]
struct Machine {
    devices: String,
    routes: String,
    rules: String,
    namespaces: BTreeSet<String>,
    processes: usize,
}

/// Arguments of processes that tell ours from others.
fn is_ours(arguments: &str, mark: &str) -> bool {
    arguments.contains(mark)
}

impl Machine {
    fn now(mark: &str) -> Self {
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
        }
    }

    /// The machine once the kernel has cleared up, or after two seconds.
    fn settled(before: &Self, mark: &str) -> Self {
        for _ in 0..100 {
            let now = Self::now(mark);
            if now == *before {
                return now;
            }
            std::thread::park_timeout(Duration::from_millis(20));
        }
        Self::now(mark)
    }
}

#[test]
fn killed_at_any_moment_it_leaves_nothing_behind() {
    let Some(_machine) = machine(&["ip"]) else { return };
    // A number of seconds that nobody else sleeps for.
    let mark = format!("9{:05}.5", std::process::id() % 100_000);
    let before = Machine::now(&mark);
    let orphan = format!("sleep {mark} & setsid sleep {mark} & sleep {mark}");
    for kill in 0..KILLS {
        let mut words = vec!["-q", "--scheme", "hack-more-data", "--", "sh", "-c", &orphan];
        if kill % 2 == 1 {
            words.extend(["--server", "--", "sh", "-c", &orphan]);
        }
        let mut child = shell(&words).stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // From the first system calls to a hop at work.
        std::thread::park_timeout(Duration::from_micros(u64::from(kill) * 6_000 + 500));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(Machine::settled(&before, &mark), before, "kill {kill}");
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
