//! Progress of a sweep on a terminal, and Ctrl-C.

use std::sync::atomic::{AtomicBool, Ordering};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tacit_lab::cache::Cache;
use tacit_lab::sweep::{Control, Progress};
use tacit_lab::table::count;

use crate::output::{INTERRUPTED, note};

/// Set by the first Ctrl-C.
static STOP: AtomicBool = AtomicBool::new(false);

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

/// Runs `work` with a progress bar (on a terminal only) and a Ctrl-C that stops between runs; a second
/// Ctrl-C ends the program at once.
pub fn watched<T>(cache: Option<&Cache>, work: impl FnOnce(Control<'_>) -> T) -> T {
    // Without a handler Ctrl-C ends the program at once: worse, but no reason to run nothing.
    let _ = ctrlc::set_handler(|| {
        if STOP.swap(true, Ordering::Relaxed) {
            std::process::exit(INTERRUPTED.into());
        }
    });
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{bar:32} {pos}/{len} runs, {eta} left  {msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
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
