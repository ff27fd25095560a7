//! Code shared by the tests of live hops.

use std::fs;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use serde_json::Value;

/// Tests that measure time or the traces of a hop have the machine to themselves; others share it.
static MACHINE: RwLock<()> = RwLock::new(());
static SKIPPED: AtomicUsize = AtomicUsize::new(0);

/// Names a file that receives a line per live test: `ran NAME` if everything it needs was available, or
/// `SKIPPED NAME: reason` if its machine does not allow a verdict. The test harness would count both as passed.
const TALLY_VARIABLE: &str = "TACIT_LIVE_TALLY";

/// Prints a line in spite of the capture of the test harness.
pub fn print_line(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

fn test_name() -> String {
    std::thread::current().name().unwrap_or("a test").to_owned()
}

fn tally(line: &str) {
    if let Some(path) = std::env::var_os(TALLY_VARIABLE) {
        let file = OpenOptions::new().append(true).create(true).open(path);
        // A single write keeps the lines of concurrent tests intact.
        file.unwrap().write_all(format!("{line}\n").as_bytes()).unwrap();
    }
}

/// Records that this test has no verdict, and why.
pub fn skip(reason: &str) {
    let number = SKIPPED.fetch_add(1, Ordering::Relaxed) + 1;
    let test = test_name();
    print_line(&format!("SKIPPED {test}: {reason} ({number} live tests skipped so far)"));
    tally(&format!("SKIPPED {test}: {reason}"));
}

/// Exclusive use of the machine; `None` if it lacks something that the test needs.
pub fn machine(programs: &[&str]) -> Option<RwLockWriteGuard<'static, ()>> {
    let guard = MACHINE.write().unwrap_or_else(PoisonError::into_inner);
    is_able(programs).then_some(guard)
}

/// Shared use of the machine, for tests whose outcome does not depend on time and that do not change the host's
/// network.
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

/// The user ID of this process.
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

/// `tacit shell` with these arguments.
pub fn shell(words: &[&str]) -> Command {
    let mut command = tacit();
    command.arg("shell").args(words);
    command
}

/// A copy of the program that any user may execute.
pub fn tacit_for_all(directory: &Path) -> PathBuf {
    fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).unwrap();
    let copy = directory.join("tacit");
    fs::copy(env!("CARGO_BIN_EXE_tacit"), &copy).unwrap();
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).unwrap();
    copy
}

/// Standard error and output as text, for messages. Standard error is first, because a report is long and logs keep the
/// beginning of a message.
pub fn output_text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout))
}

/// The arguments of a hop with these `options` and an iperf3 download of `seconds`.
pub fn download<'a>(options: &[&'a str], seconds: &'a str) -> Vec<&'a str> {
    let client = ["--", "iperf3", "-c", "198.18.0.1", "-R", "-t", seconds];
    let server = ["--server", "--", "iperf3", "-s", "-1"];
    [options, &client, &server].concat()
}

/// The report of one `tacit shell --json` with these arguments.
pub fn report(words: &[&str]) -> Value {
    reports(&[words]).remove(0)
}

/// The reports of concurrent hops, each with its arguments.
pub fn reports(words: &[&[&str]]) -> Vec<Value> {
    let start = |words: &&[&str]| {
        shell(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let hops: Vec<_> = words.iter().map(start).collect();
    let ended = hops.into_iter().zip(words).map(|(hop, words)| {
        let output = hop.wait_with_output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", output_text(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    });
    ended.collect()
}

/// The report of one run; `None` if the machine did not keep up, which is recorded. There is no second attempt, because
/// repeating a measurement until it succeeds would bias it.
pub fn valid_report(words: &[&str]) -> Option<Value> {
    valid_reports(&[words])?.pop()
}

/// The reports of concurrent hops; `None` if one of them is not valid, which is recorded.
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

/// Average time that the programs of the command and of the server waited for a CPU, in microseconds.
pub fn waited_us(report: &Value) -> [f64; 2] {
    ["command", "server"].map(|side| {
        let wait = &report["waits"][side]["mean_us"];
        // If the kernel does not report it, assume the worst.
        wait.as_f64().unwrap_or(f64::INFINITY)
    })
}

/// Largest effect of the machine's delays as a fraction of a tolerance. A larger one may explain a wrong measurement.
const MACHINE_SHARE_MAX: f64 = 0.5;

/// Why a live measurement has no verdict: the effect `worth` of the machine's delays is too large relative to
/// `tolerance`. `None` if it has a verdict.
pub fn disturbed(what: &str, waits_us: &[[f64; 2]], worth: f64, tolerance: f64) -> Option<String> {
    let most = tolerance * MACHINE_SHARE_MAX;
    // NaN counts as too large.
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

/// Mean goodput in bits per second of `tacit run --json` with these arguments over `seeds`. The delay of the wire is
/// `delay_us`, and the client and server take `waits_us` to respond.
pub fn simulated_bps(words: &[&str], delay_us: f64, waits_us: [f64; 2], seeds: u32) -> f64 {
    if !waits_us.iter().all(|wait| wait.is_finite()) {
        return f64::NAN;
    }
    // Both directions have the same delay, and a round trip includes both.
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
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", output_text(&output)));
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
