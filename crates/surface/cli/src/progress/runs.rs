//! Progress of runs and of reading captures, and the handling of Ctrl-C.

use std::io::IsTerminal as _;
use std::sync::Once;
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

/// Whether the user knows that the runs take long.
static TOLD: Once = Once::new();

/// The first Ctrl-C sets [`STOP`], a second one ends the program.
fn handle_ctrl_c() {
    // Without a handler Ctrl-C ends the program immediately, which is acceptable.
    let _ = ctrlc::set_handler(|| {
        if STOP.swap(true, Ordering::Relaxed) {
            std::process::exit(INTERRUPTED.into());
        }
    });
}

/// The user's cache, unless it is unwanted or unavailable.
pub fn cache(unwanted: bool) -> Option<Cache> {
    if unwanted { None } else { Cache::for_user() }
}

/// Runs `work` without a bar. Warnings are still printed.
pub fn quietly<T>(cache: Option<&Cache>, work: impl FnOnce(Control<'_>) -> T) -> T {
    let progress = |progress: Progress<'_>| {
        if let Progress::Warning(text) | Progress::LongWait(text) = progress {
            note(&format!("tacit: {text}"));
        }
    };
    let result = work(Control { progress: &progress, cache, ..Control::unattended() });
    if let Some(cache) = cache {
        cache.prune();
    }
    result
}

/// Time after which the bar of a run appears.
const PATIENCE: Duration = Duration::from_secs(1);

/// Runs `work`, which simulates one run of the given length, with a bar on a terminal unless the run is short. Without
/// a length, the elapsed time is shown.
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
    // The thread cannot fail.
    let _ = patience.join();
    bar.finish_and_clear();
    result
}

/// Reads a capture while it is being recorded, with a running summary on a terminal. The first Ctrl-C also reaches the
/// capturing program and ends this one through the end of its input; a second one ends this program immediately.
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

/// Runs `work` with a progress bar (only on a terminal). Ctrl-C stops between runs; a second Ctrl-C ends the program
/// immediately.
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
        // Only the first sweep of a command says so.
        Progress::LongWait(text) => TOLD.call_once(|| bar.suspend(|| note(&format!("tacit: {text}")))),
    };
    let result = work(Control { stop: &STOP, progress: &progress, cache });
    bar.finish_and_clear();
    result
}
