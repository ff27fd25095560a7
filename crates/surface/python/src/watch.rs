//! Runs long operations without holding the interpreter. Ctrl-C stops between runs, and progress is reported.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rayon::ThreadPoolBuilder;
use tacit_runs::cache::Cache;
use tacit_runs::sweep::{Control, Progress};

use crate::error::{Failure, Outcome};

/// Interval at which the interpreter checks for Ctrl-C.
const PATIENCE: Duration = Duration::from_millis(50);

/// Progress events for Python: `("started", runs, reused)`, `("finished", 1, 0)`, `("warning", text)`.
enum Event {
    Started(usize, usize),
    Finished,
    Warning(String),
}

/// Runs `work` on a separate thread. `progress` is called with (kind, count, count or text).
pub fn watched<T: Send>(
    py: Python<'_>,
    use_cache: bool,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(Control<'_>) -> Outcome<T> + Send,
) -> PyResult<T> {
    let cache = if use_cache { Cache::for_user() } else { None };
    let stop = AtomicBool::new(false);
    let (sender, receiver) = mpsc::channel();
    // The receiver is used without holding the interpreter, so it must be `Sync`, although no other thread uses it.
    let receiver = Mutex::new(receiver);
    let listening = progress.is_some();
    let result = thread::scope(|scope| {
        let (stop, cache) = (&stop, cache.as_ref());
        let worker = scope.spawn(move || {
            let progress = |progress: Progress<'_>| {
                let event = match progress {
                    Progress::Started { total, reused } => Event::Started(total, reused),
                    Progress::Finished(_) => Event::Finished,
                    Progress::Warning(text) | Progress::LongWait(text) => Event::Warning(text.to_owned()),
                };
                if listening {
                    // The receiver no longer exists if Python has raised an exception.
                    let _ = sender.send(event);
                }
            };
            let control = Control { stop, progress: &progress, cache };
            // Attaching the thread once avoids doing so in each call of a policy.
            let result = Python::attach(|py| py.detach(|| work(control)));
            if let Some(cache) = cache {
                cache.prune();
            }
            result
        });
        let mut raised = None;
        loop {
            let (event, ended) = py.detach(|| {
                match receiver.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(PATIENCE) {
                    Ok(event) => (Some(event), false),
                    Err(RecvTimeoutError::Timeout) => (None, worker.is_finished()),
                    Err(RecvTimeoutError::Disconnected) => (None, true),
                }
            });
            let reported = event.map_or(Ok(()), |event| report_to_python(progress, event));
            if let Err(error) = reported.and_then(|()| py.check_signals())
                && raised.is_none()
            {
                stop.store(true, Ordering::Relaxed);
                raised = Some(error);
            }
            if ended {
                break;
            }
        }
        (py.detach(|| worker.join()), raised)
    });
    match result {
        (_, Some(raised)) => Err(raised),
        (Ok(result), None) => result.map_err(|failure| failure.raised(py)),
        (Err(_), None) => Err(PyRuntimeError::new_err("a run panicked: a defect of tacit")),
    }
}

/// Runs `work` with one thread per core. The threads end with it, because a permanent pool would exist without its
/// threads in a process forked by Python.
pub fn on_all_cores<T: Send>(work: impl FnOnce() -> Outcome<T> + Send) -> Outcome<T> {
    let pool = ThreadPoolBuilder::new().build().map_err(|error| Failure::Other(error.to_string()))?;
    pool.install(work)
}

fn report_to_python(progress: Option<&Bound<'_, PyAny>>, event: Event) -> PyResult<()> {
    let Some(progress) = progress else { return Ok(()) };
    match event {
        Event::Started(runs, reused) => progress.call1(("started", runs, reused))?,
        Event::Finished => progress.call1(("finished", 1, 0))?,
        Event::Warning(text) => progress.call1(("warning", text, 0))?,
    };
    Ok(())
}
