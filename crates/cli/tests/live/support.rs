//! What the tests of live hops share.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

/// Hops measure time: one at once.
static ONE_AT_ONCE: Mutex<()> = Mutex::new(());
static SKIPPED: AtomicUsize = AtomicUsize::new(0);

/// Runs that fell behind are made again so many times.
const ATTEMPTS: usize = 4;

/// Says past the capture of the test harness.
pub fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

fn skip(reason: &str) {
    let number = SKIPPED.fetch_add(1, Ordering::Relaxed) + 1;
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    say(&format!("SKIPPED ({number} live tests so far): {test}: {reason}"));
}

/// The right to use the machine; `None` where it cannot do what the test needs.
pub fn machine(programs: &[&str]) -> Option<MutexGuard<'static, ()>> {
    let guard = ONE_AT_ONCE.lock().unwrap_or_else(PoisonError::into_inner);
    if nix_uid() != 0 {
        skip("needs root");
        return None;
    }
    if !tacit().arg("doctor").output().unwrap().status.success() {
        skip("tacit doctor says that live hops do not work here");
        return None;
    }
    let missing: Vec<_> = programs.iter().filter(|program| !is_installed(program)).collect();
    if !missing.is_empty() {
        skip(&format!("not installed: {missing:?}"));
        return None;
    }
    Some(guard)
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

/// Standard output and error as text, for messages.
pub fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// The report of `tacit shell --json` with these words; the last one where the machine kept falling
/// behind.
pub fn report(words: &[&str]) -> Value {
    let mut last = Value::Null;
    for _ in 0..ATTEMPTS {
        let output = shell(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", said(&output));
        last = serde_json::from_slice(&output.stdout).unwrap();
        if last["valid"] == true {
            return last;
        }
    }
    last
}

/// The same, but nothing where the machine kept falling behind, which is said.
pub fn valid_report(words: &[&str]) -> Option<Value> {
    let report = report(words);
    if report["valid"] == true {
        return Some(report);
    }
    skip(&format!("this machine does not keep up with {words:?}: {}", report["reasons"]));
    None
}
