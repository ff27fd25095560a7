//! Code that the tests of live hops share.

use std::fs;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use serde_json::Value;
use tacit_figures::MACHINE_SHARE_MAX;

/// Hops that measure time, or a hop's traces on a machine, have it to themselves; others share it.
static MACHINE: RwLock<()> = RwLock::new(());
static SKIPPED: AtomicUsize = AtomicUsize::new(0);

/// Names a file for a line per live test that had all it needs (`ran NAME`), and one per test that found that its
/// machine does not allow a verdict (`SKIPPED NAME: reason`): the harness would count both as passed.
const TALLY_VARIABLE: &str = "TACIT_LIVE_TALLY";

/// Says past the capture of the test harness.
pub fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

fn test_name() -> String {
    std::thread::current().name().unwrap_or("a test").to_owned()
}

fn tally(line: &str) {
    if let Some(path) = std::env::var_os(TALLY_VARIABLE) {
        let file = OpenOptions::new().append(true).create(true).open(path);
        // One write, so that lines of several tests stay whole.
        file.unwrap().write_all(format!("{line}\n").as_bytes()).unwrap();
    }
}

/// This test has no verdict, and why.
pub fn skip(reason: &str) {
    let number = SKIPPED.fetch_add(1, Ordering::Relaxed) + 1;
    let test = test_name();
    say(&format!("SKIPPED {test}: {reason} ({number} live tests skipped so far)"));
    tally(&format!("SKIPPED {test}: {reason}"));
}

/// The machine without other hops of ours; `None` where it lacks something that the test needs.
pub fn machine(programs: &[&str]) -> Option<RwLockWriteGuard<'static, ()>> {
    let guard = MACHINE.write().unwrap_or_else(PoisonError::into_inner);
    is_able(programs).then_some(guard)
}

/// The machine beside others that do not mind either: for tests whose outcome does not depend on time, and that
/// leave the host's network alone.
pub fn shared_machine(programs: &[&str]) -> Option<RwLockReadGuard<'static, ()>> {
    let guard = MACHINE.read().unwrap_or_else(PoisonError::into_inner);
    is_able(programs).then_some(guard)
}

fn is_able(programs: &[&str]) -> bool {
    let missing: Vec<_> = programs.iter().filter(|program| !is_installed(program)).collect();
    if nix_uid() != 0 {
        skip("needs root");
    } else if !tacit().arg("doctor").output().unwrap().status.success() {
        skip("tacit doctor says that live hops do not work here");
    } else if !missing.is_empty() {
        skip(&format!("not installed: {missing:?}"));
    } else {
        tally(&format!("ran {}", test_name()));
        return true;
    }
    false
}

/// The user this process runs as.
fn nix_uid() -> u32 {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata("/proc/self").unwrap().uid()
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var("PATH").unwrap_or_default();
    path.split(':').chain(["/usr/sbin", "/sbin"]).any(|directory| Path::new(directory).join(program).exists())
}

/// The program under test.
pub fn tacit() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tacit"));
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{path}:/usr/sbin:/sbin")).env_remove("TACIT_DEPTH");
    command
}

/// `tacit shell` with these words.
pub fn shell(words: &[&str]) -> Command {
    let mut command = tacit();
    command.arg("shell").args(words);
    command
}

/// A copy of the program that any user may run.
pub fn tacit_for_all(directory: &Path) -> PathBuf {
    fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).unwrap();
    let copy = directory.join("tacit");
    fs::copy(env!("CARGO_BIN_EXE_tacit"), &copy).unwrap();
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).unwrap();
    copy
}

/// Standard error and output as text, for messages. A report is long, and logs keep the beginning of a message.
pub fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout))
}

/// The words of a hop with these `options`, through which iperf3 downloads for so long.
pub fn download<'a>(options: &[&'a str], seconds: &'a str) -> Vec<&'a str> {
    let client = ["--", "iperf3", "-c", "198.18.0.1", "-R", "-t", seconds];
    let server = ["--server", "--", "iperf3", "-s", "-1"];
    [options, &client, &server].concat()
}

/// The report of one `tacit shell --json` with these words.
pub fn report(words: &[&str]) -> Value {
    reports(&[words]).remove(0)
}

/// The reports of hops that run at once, each with its words.
pub fn reports(words: &[&[&str]]) -> Vec<Value> {
    let start = |words: &&[&str]| {
        shell(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let hops: Vec<_> = words.iter().map(start).collect();
    let ended = hops.into_iter().zip(words).map(|(hop, words)| {
        let output = hop.wait_with_output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", said(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    });
    ended.collect()
}

/// The report of one run; nothing where the machine did not keep up, which is said. There is no second try: a
/// result that is asked for until it pleases is none.
pub fn valid_report(words: &[&str]) -> Option<Value> {
    valid_reports(&[words])?.pop()
}

/// The reports of hops that run at once; nothing where one of them is not valid, which is said.
pub fn valid_reports(words: &[&[&str]]) -> Option<Vec<Value>> {
    let reports = reports(words);
    let invalid = reports.iter().zip(words).find(|(report, _)| report["valid"] != true);
    match invalid {
        Some((report, words)) => {
            skip(&format!("this machine does not keep up with {words:?}: {}", report["reasons"]));
            None
        }
        None => Some(reports),
    }
}

/// How long the command's and the server's programs waited for a processor, on average, in microseconds.
pub fn waited_us(report: &Value) -> [f64; 2] {
    ["command", "server"].map(|side| {
        let wait = &report["waits"][side]["mean_us"];
        // A kernel that does not tell has to be taken for one that makes them wait for ever.
        wait.as_f64().unwrap_or(f64::INFINITY)
    })
}

/// Why the measurement of a live run has no verdict: its machine's delays are `worth` too much of the
/// `tolerance`. `None` where it has one.
pub fn disturbed(what: &str, waits_us: &[[f64; 2]], worth: f64, tolerance: f64) -> Option<String> {
    let most = tolerance * MACHINE_SHARE_MAX;
    // NaN is too much as well.
    (worth.is_nan() || worth > most).then(|| {
        let waits: Vec<_> =
            waits_us.iter().map(|[command, server]| format!("{command:.0} and {server:.0} us")).collect();
        format!(
            "programs waited {} for a processor, which is worth {:.2} % of {what}; at most {:.2} % is judged",
            waits.join(", "),
            worth * 100.0,
            most * 100.0
        )
    })
}

/// Goodput in bits per second of `tacit run --json` with these words, whose wire has `delay_us` and its hosts take
/// `waits_us` to answer, client and server; the mean over `seeds`.
pub fn simulated_bps(words: &[&str], delay_us: f64, waits_us: [f64; 2], seeds: u32) -> f64 {
    if !waits_us.iter().all(|wait| wait.is_finite()) {
        return f64::NAN;
    }
    // Both ways have one delay, and round trips have both.
    let delay = format!("wired.delay={:.0} us", delay_us + (waits_us[0] + waits_us[1]) / 2.0);
    let start = |seed: u32| {
        let mut run = tacit();
        run.arg("run").args(words).args(["--json", "--seed", &seed.to_string(), "--set", &delay]);
        run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let runs: Vec<_> = (1..=seeds).map(start).collect();
    let goodput = |run: Child| {
        let output = run.wait_with_output().unwrap();
        let run: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", said(&output)));
        run["goodput_bps"].as_f64().unwrap()
    };
    runs.into_iter().map(goodput).sum::<f64>() / f64::from(seeds)
}

#[test]
fn little_that_a_machine_did_is_judged_and_much_is_not() {
    let waits = [[20.0, 40.0], [30.0, 50.0]];
    assert_eq!(disturbed("goodput", &waits, 0.02, 0.05), None);
    let reason = disturbed("goodput", &waits, 0.03, 0.05).unwrap();
    assert_eq!(
        reason,
        "programs waited 20 and 40 us, 30 and 50 us for a processor, which is worth 3.00 % of goodput; at \
         most 2.50 % is judged"
    );
    assert!(disturbed("goodput", &[waited_us(&Value::Null)], f64::NAN, 0.05).is_some());
}
