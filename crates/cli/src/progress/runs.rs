//! Progress of runs and of a capture that is read, and Ctrl-C.

use std::io::IsTerminal as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use indicatif::ProgressDrawTarget;
use tacit_captures::audit::Progress as Counted;
use tacit_runs::cache::Cache;
use tacit_runs::single::Reached;
use tacit_runs::sweep::{Control, Progress};
use tacit_scenario::table::count;

use super::bar;
use crate::output::{INTERRUPTED, note};

/// Set by the first Ctrl-C.
static STOP: AtomicBool = AtomicBool::new(false);

/// The first Ctrl-C sets [`STOP`], a second one ends the program.
fn handle_ctrl_c() {
    // Without a handler Ctrl-C ends the program at once: worse, but no reason to run nothing.
    let _ = ctrlc::set_handler(|| {
        if STOP.swap(true, Ordering::Relaxed) {
            std::process::exit(INTERRUPTED.into());
        }
    });
}

/// The user's cache, unless it is not wanted or there is no place for it.
pub fn cache(unwanted: bool) -> Option<Cache> {
    if unwanted { None } else { Cache::of_user() }
}

/// Runs `work` without a bar; warnings still reach the user.
pub fn quietly<T>(cache: Option<&Cache>, work: impl FnOnce(Control<'_>) -> T) -> T {
    let progress = |progress: Progress<'_>| {
        if let Progress::Warning(text) = progress {
            note(&format!("tacit: {text}"));
        }
    };
    let result = work(Control { progress: &progress, cache, ..Control::unattended() });
    if let Some(cache) = cache {
        cache.prune();
    }
    result
}

/// How long a run may take before its bar appears.
const PATIENCE: Duration = Duration::from_secs(1);

/// Makes one run of the simulated `length` with a bar, on a terminal and unless it is short. Without a length
/// there is the time that it took so far.
pub fn simulated<T>(length: Option<Duration>, work: impl FnOnce(Option<Reached<'_>>) -> T) -> T {
    if !std::io::stderr().is_terminal() {
        return work(None);
    }
    let template = match length {
        Some(_) => "{bar:32} {pos}/{len} s simulated, {eta} left",
        None => "{spinner} simulating, {elapsed}",
    };
    let bar = bar(length.map(|length| length.as_secs()), ProgressDrawTarget::hidden(), template);
    let (done, wait) = mpsc::channel::<()>();
    let shown = bar.clone();
    let patience = thread::spawn(move || {
        if wait.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            shown.set_draw_target(ProgressDrawTarget::stderr());
            shown.enable_steady_tick(PATIENCE / 4);
        }
    });
    let result = work(Some(&mut |reached| {
        if reached.as_secs() != bar.position() {
            bar.set_position(reached.as_secs());
        }
    }));
    drop(done);
    // It has nothing that could fail.
    let _ = patience.join();
    bar.finish_and_clear();
    result
}

/// Counts a capture that comes as it is made, with a running summary on a terminal. Ctrl-C goes to the program that
/// captures, too, and ends this one by the end of its input; a second one ends it at once.
pub fn counted_live<T>(work: impl FnOnce(&mut dyn FnMut(&Counted)) -> T) -> T {
    handle_ctrl_c();
    if !std::io::stderr().is_terminal() {
        return work(&mut |_| {});
    }
    let bar = bar(None, ProgressDrawTarget::stderr(), "{spinner} {elapsed}: {msg}");
    bar.enable_steady_tick(PATIENCE / 4);
    let result = work(&mut |counted| {
        bar.set_message(format!(
            "{} in {}: {} data, {} pure ACKs, {} not counted",
            count(counted.packets, "packet"),
            count(counted.connections, "connection"),
            counted.data_packets,
            counted.pure_acks,
            counted.not_counted
        ));
    });
    bar.finish_and_clear();
    result
}

/// Runs `work` with a progress bar (on a terminal only) and a Ctrl-C that stops between runs; a second
/// Ctrl-C ends the program at once.
pub fn watched<T>(cache: Option<&Cache>, work: impl FnOnce(Control<'_>) -> T) -> T {
    handle_ctrl_c();
    let bar = bar(None, ProgressDrawTarget::stderr(), "{bar:32} {pos}/{len} runs, {eta} left  {msg}");
    let progress = |progress: Progress<'_>| match progress {
        Progress::Started { total, reused } => {
            bar.set_length(total as u64);
            bar.set_position(reused as u64);
        }
        Progress::Finished(label) => {
            bar.set_message(format!("{}, {}", label.scheme, count(label.clients.into(), "client")));
            bar.inc(1);
        }
        Progress::Warning(text) => bar.suspend(|| note(&format!("tacit: {text}"))),
    };
    let result = work(Control { stop: &STOP, progress: &progress, cache });
    bar.finish_and_clear();
    result
}
