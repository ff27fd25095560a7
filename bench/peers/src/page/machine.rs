//! The machine of the measurements, and other programs that ran meanwhile.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{JoinHandle, available_parallelism};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::table::Table;
use super::tools::stdout_of;

/// Share of the processors from which on others are named.
const OTHERS_NAMED_FROM: f64 = 0.05;
/// Between looks at running processes.
const LOOK: Duration = Duration::from_secs(5);

/// A machine, and the compilers on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    pub processor: String,
    pub cores: usize,
    pub memory_mb: u64,
    pub kernel: String,
    pub rust: String,
    pub cxx: String,
}

impl Machine {
    pub fn this() -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let first = |text: Option<String>| {
            text.and_then(|text| text.lines().next().map(str::to_owned)).unwrap_or_else(|| "none".to_owned())
        };
        Self {
            processor: field(&cpuinfo, "model name").unwrap_or("not told").to_owned(),
            cores: available_parallelism().map_or(1, usize::from),
            memory_mb: memory_mb(&meminfo),
            kernel: kernel.trim().to_owned(),
            rust: first(stdout_of("rustc", &["--version"])),
            cxx: first(stdout_of("c++", &["--version"])),
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new(&["", ""]);
        table.push(&["processor", &format!("{}, {} cores", self.processor, self.cores)]);
        table.push(&["memory", &format!("{} MB", self.memory_mb)]);
        table.push(&["kernel", &format!("Linux {}", self.kernel)]);
        table.push(&["compilers", &format!("{}; {}", self.rust, self.cxx)]);
        to.write_str(&table.text())
    }
}

/// The first value of `name: value` lines.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let value = |line: &'a str| Some(line.strip_prefix(name)?.trim_start().strip_prefix(':')?.trim());
    text.lines().find_map(value)
}

/// `MemTotal` (proc_meminfo(5): in units of 1024 bytes).
fn memory_mb(meminfo: &str) -> u64 {
    let kib =
        field(meminfo, "MemTotal").and_then(|value| value.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1_024 / 1_000_000
}

/// When a part was measured, by which version, and which other programs ran.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Run {
    /// UTC.
    pub began: String,
    pub version: String,
    pub took_s: u64,
    /// Of this program and of those that it started.
    pub niceness: i64,
    /// Load averages over a minute, at the start and at the end.
    pub load: [f64; 2],
    /// Share of all processors that went to programs that this did not start.
    pub others: Option<f64>,
    /// Commands seen to run that this did not start.
    pub commands: BTreeSet<String>,
}

impl fmt::Display for Run {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { began, version, took_s, niceness, load: [before, after], .. } = self;
        write!(
            to,
            "{began} UTC, tacit {version}, in {took_s} s, at niceness {niceness}; load average {before:.1} before,"
        )?;
        write!(to, " {after:.1} after.")?;
        let Some(others) = self.others else { return Ok(()) };
        write!(to, " Other programs had {:.0} % of the processors", others * 100.0)?;
        if others >= OTHERS_NAMED_FROM && !self.commands.is_empty() {
            let commands = self.commands.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>();
            write!(to, ", among them {}", commands.join(", "))?;
        }
        to.write_str(".")
    }
}

/// Looks at the machine from a start to an end.
pub struct Watch {
    began: String,
    from: Instant,
    load: f64,
    busy: Option<Busy>,
    looks: JoinHandle<BTreeSet<String>>,
    ended: Sender<()>,
}

impl Watch {
    #[expect(clippy::disallowed_methods, reason = "an edge that measures")]
    pub fn start() -> Self {
        let (ended, end) = channel();
        let looks = std::thread::spawn(move || {
            let mut commands = others_running();
            while end.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                commands.extend(others_running());
            }
            commands
        });
        Self {
            began: stdout_of("date", &["-u", "+%F %H:%M"]).unwrap_or_default(),
            from: Instant::now(),
            load: load(),
            busy: Busy::now(),
            looks,
            ended,
        }
    }

    pub fn end(self) -> Run {
        // The thread waits for this; it has no other end.
        drop(self.ended);
        Run {
            began: self.began,
            version: tacit_runs::VERSION.to_owned(),
            took_s: self.from.elapsed().as_secs(),
            niceness: niceness(&fs::read_to_string("/proc/self/stat").unwrap_or_default()).unwrap_or(0),
            load: [self.load, load()],
            others: self.busy.zip(Busy::now()).and_then(|(before, after)| after.others_since(before)),
            commands: self.looks.join().unwrap_or_default(),
        }
    }
}

/// Of a `/proc/PID/stat` (proc_pid_stat(5)).
fn niceness(stat: &str) -> Option<i64> {
    stat.rsplit_once(") ")?.1.split_whitespace().nth(16)?.parse().ok()
}

fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0.0)
}

/// Processor time in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Busy {
    /// Of all processors, idle or not.
    all: u64,
    idle: u64,
    /// Of this program and those it started that have ended.
    this_program: u64,
}

impl Busy {
    fn now() -> Option<Self> {
        let stat = fs::read_to_string("/proc/stat").ok()?;
        Self::read(&stat, &fs::read_to_string("/proc/self/stat").ok()?)
    }

    /// Of `/proc/stat` and `/proc/self/stat` (proc_stat(5), proc_pid_stat(5)).
    fn read(stat: &str, self_stat: &str) -> Option<Self> {
        // user, nice, system, idle, iowait, irq, softirq, steal; guests are in user.
        let ticks = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
        let ticks = ticks.map(|word| word.parse().ok()).collect::<Option<Vec<u64>>>()?;
        // utime, stime, cutime and cstime, counted from the state, which follows a name that may have blanks.
        let fields = self_stat.rsplit_once(") ")?.1.split_whitespace().skip(11).take(4);
        let this_program = fields.map(|word| word.parse::<u64>().ok()).sum::<Option<u64>>()?;
        Some(Self { all: ticks.get(..8)?.iter().sum(), idle: ticks[3] + ticks[4], this_program })
    }

    fn others_since(self, before: Self) -> Option<f64> {
        let all = self.all.checked_sub(before.all).filter(|all| *all > 0)?;
        let busy = all.saturating_sub(self.idle.saturating_sub(before.idle));
        let others = busy.saturating_sub(self.this_program.saturating_sub(before.this_program));
        Some(others as f64 / all as f64)
    }
}

/// Whose children are threads of the kernel.
const KTHREADD: u32 = 2;

/// Names of programs that run now and that this did not start.
fn others_running() -> BTreeSet<String> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    // `thread-self` is there too, whose number is no process's.
    let numbered = entries.filter(|entry| entry.file_name().to_string_lossy().parse::<u32>().is_ok());
    let stats = numbered.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
    let processes: Vec<_> = stats.filter_map(|stat| Process::read(&stat)).collect();
    others(&processes, std::process::id())
}

struct Process {
    id: u32,
    parent: u32,
    name: String,
    runs: bool,
}

impl Process {
    /// Of a `/proc/PID/stat` (proc_pid_stat(5)).
    fn read(stat: &str) -> Option<Self> {
        let (id, rest) = stat.split_once(" (")?;
        let (name, rest) = rest.rsplit_once(") ")?;
        let mut rest = rest.split_whitespace();
        let runs = rest.next()? == "R";
        Some(Self { id: id.parse().ok()?, parent: rest.next()?.parse().ok()?, name: name.to_owned(), runs })
    }
}

/// Names of those that run and are neither `self_pid`, nor below it, nor the kernel's.
fn others(processes: &[Process], self_pid: u32) -> BTreeSet<String> {
    let mut ours = BTreeSet::from([self_pid, KTHREADD]);
    // A child of one of ours is one; a pass for each generation.
    loop {
        let before = ours.len();
        ours.extend(
            processes
                .iter()
                .filter(|process| ours.contains(&process.parent))
                .map(|process| process.id)
                .collect::<Vec<_>>(),
        );
        if ours.len() == before {
            break;
        }
    }
    let others = processes.iter().filter(|process| process.runs && !ours.contains(&process.id));
    // A process that runs from no file (`memfd:…`) has a name that tells a reader nothing.
    let others = others.filter(|process| !process.name.contains(':'));
    others.map(|process| process.name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_neither_idle_nor_own_is_of_other_programs() {
        let self_stat = |ticks| format!("7 (a b) c) S 1 7 7 0 -1 4 0 0 0 0 {ticks} 0 0 1 20");
        let read = |stat: &str, ticks| Busy::read(stat, &self_stat(ticks)).unwrap();
        let before = read("cpu  100 0 50 800 50 0 0 0 0 0\ncpu0 1 2 3", "10 0 0");
        assert_eq!(before, Busy { all: 1_000, idle: 850, this_program: 10 });
        // Of a thousand ticks 400 were idle, and 50 of the 600 busy ones were ours.
        let after = read("cpu  500 100 150 1150 100 0 0 0 0 0", "20 10 30");
        assert_eq!(after.others_since(before), Some(0.55));
        assert_eq!(before.others_since(before), None);
    }

    #[test]
    fn this_program_is_not_one_of_the_others() {
        // This thread runs, and has a number of its own.
        let self_name = fs::read_to_string("/proc/self/comm").unwrap_or_default();
        let found = std::thread::spawn(others_running).join().unwrap();
        assert!(!found.contains(self_name.trim()), "{self_name} in {found:?}");
    }

    #[test]
    fn niceness_is_the_nineteenth_field() {
        assert_eq!(niceness("7 (a b) S 1 7 7 0 -1 4 0 0 0 0 1 2 3 4 10 -10 1 0 99"), Some(-10));
    }

    #[test]
    fn only_programs_that_run_and_are_not_ours_are_named() {
        let stats = [
            "1 (init) S 0 1",
            "9 (tacit-peers) R 1 9",
            "12 (rustc) R 3 12",
            "13 (cargo) S 3 13",
            // Started by one that is started by this.
            "15 (iperf3) R 14 14",
            "14 (tacit) S 9 14",
            "16 (kworker/u8:0) R 2 0",
            "17 (memfd:x) R 1 17",
        ];
        let processes = stats.map(|stat| Process::read(stat).unwrap());
        assert_eq!(others(&processes, 9), BTreeSet::from(["rustc".to_owned()]));
    }

    #[test]
    fn the_machine_is_described_by_what_the_kernel_tells() {
        assert_eq!(field("vendor_id\t: X\nmodel name\t: A B 3: 4\n", "model name"), Some("A B 3: 4"));
        assert_eq!(memory_mb("MemTotal:        1000000 kB\nMemFree: 5 kB"), 1_024);
    }
}
