//! `tacit cp`.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::num::NonZeroU64;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use serde::Serialize;
use tacit_apps::copy::limit::Limited;
use tacit_apps::copy::sender::Source;
use tacit_apps::copy::session::{pull, pull_into, push};
use tacit_apps::copy::wire::Direction;
use tacit_apps::copy::{self, Action, CopyError, CopyReport, Earlier, Options, Progress};
use tacit_apps::link::{Link, LinkEvent};
use tacit_input::table::significant;
use tacit_tack::{Connection, ConnectionError, SendStream};
use tokio::io::{AsyncWriteExt as _, BufReader, BufWriter};

use super::client::Client;
use super::copy_summary::summary_line;
use super::remote::{Remote, SCHEME, remote};
use super::streams::{LAST_TIMEOUT, READ_BYTES, WRITE_BYTES, streams};
use super::{seen, signals};
use crate::args::CpArgs;
use crate::output::{FAILED, Failure, INTERRUPTED, NetworkFailure, note, print, print_json, printable};
use crate::progress::{self, ByteBar};

/// In place of a file name: standard input or output.
const STANDARD: &str = "-";
/// Time to wait for another connection after one broke (our choice).
const RECONNECT_TIMEOUT: Duration = Duration::from_secs(600);
/// Silence after which the progress line says so (our choice).
const SILENCE_TOLD: Duration = Duration::from_secs(5);
/// Interval between updates of the progress bar.
const DRAWN_EVERY: Duration = Duration::from_millis(100);
/// Sources and destination of a copy, and its direction.
#[derive(Debug, PartialEq, Eq)]
enum Plan {
    Push {
        sources: Vec<String>,
        to: Remote,
    },
    /// The paths for each server.
    Pull {
        from: Vec<(String, Vec<String>)>,
        to: String,
    },
}

/// The result of a copy for `--json`.
#[derive(Serialize)]
struct Report<'a> {
    direction: Direction,
    server: String,
    dry_run: bool,
    duration_s: f64,
    throughput_bps: f64,
    /// How often the connection broke.
    reconnections: u64,
    /// Why the copy did not end; what it did not report is not among `paths`.
    error: Option<String>,
    #[serde(flatten)]
    outcome: &'a CopyReport,
}

/// One copy to or from one server.
enum Job {
    Push {
        /// What is sent; `None` once it was.
        source: Option<Source>,
        /// Its paths, from which a broken copy is begun again; none for standard input.
        paths: Vec<String>,
        to: String,
    },
    Pull(Vec<String>, String),
    /// Copies the file to standard output.
    PullInto(String),
}

impl Job {
    /// True if the copy can begin again after its connection broke.
    fn can_repeat(&self) -> bool {
        match self {
            Self::Push { paths, .. } => !paths.is_empty(),
            Self::Pull(..) => true,
            Self::PullInto(_) => false,
        }
    }
}

/// What the progress line says about the connection.
#[derive(Default)]
struct Outages {
    /// Lines that are not printed yet.
    lines: RefCell<Vec<String>>,
    /// Since when there has been no connection.
    since: Cell<Option<Instant>>,
    /// How often the connection broke.
    count: Cell<u64>,
    /// The number of bytes at the last change, and its time.
    moved: Cell<(u64, Option<Instant>)>,
}

impl Outages {
    fn on_event(&self, server: &str, event: &LinkEvent<'_>) {
        let line = match event {
            LinkEvent::Broken(why) => {
                self.since.set(Some(now()));
                self.count.set(self.count.get() + 1);
                let minutes = RECONNECT_TIMEOUT.as_secs() / 60;
                format!("tacit: {why}; connecting again for up to {minutes} minutes")
            }
            LinkEvent::RetryFailed(why, wait) => {
                let (why, wait_s) = (why.to_string(), wait.as_secs_f64());
                tracing::info!(target: "tacit::copy", ?why, wait_s, "no connection to the server");
                return;
            }
            LinkEvent::Restored => {
                let since = self.since.take().map_or(Duration::ZERO, |since| since.elapsed());
                format!("tacit: connected to {server} again after {} s", since.as_secs())
            }
        };
        self.lines.borrow_mut().push(printable(&line));
    }

    /// What the progress line says while nothing happens.
    fn status(&self, bytes: u64) -> String {
        if let Some(since) = self.since.get() {
            return format!(", no connection for {} s", since.elapsed().as_secs());
        }
        let (before, at) = self.moved.get();
        match at.filter(|_| before == bytes).map(|at| at.elapsed()) {
            None => self.moved.set((bytes, Some(now()))),
            Some(silence) if silence >= SILENCE_TOLD => {
                return format!(", nothing for {} s", silence.as_secs());
            }
            Some(_) => (),
        }
        String::new()
    }
}

#[expect(clippy::disallowed_methods, reason = "a copy happens in real time")]
fn now() -> Instant {
    Instant::now()
}

pub fn run(args: &CpArgs) -> Result<ExitCode, Failure> {
    seen::begin(&args.seen);
    let plan = plan(&args.paths).map_err(CopyError::Argument)?;
    let direction = match &plan {
        Plan::Push { .. } => Direction::Push,
        Plan::Pull { .. } => Direction::Pull,
    };
    let options = Options {
        checksum: args.checksum,
        delete: args.delete,
        dry_run: args.dry_run,
        exclude: args.exclude.clone(),
    };
    // Reports missing sources before connecting.
    let jobs = jobs(plan, args)?;
    let servers: Vec<_> = jobs.iter().map(|(server, _)| server.clone()).collect();
    let to_stdout = jobs.iter().any(|(_, job)| matches!(job, Job::PullInto(_)));
    tacit_apps::open_many_files();
    let client = Client::new(&args.seen)?;
    for Remote { server, code, .. } in args.paths.iter().filter_map(|path| remote(path).ok().flatten()) {
        code.map_or(Ok(()), |code| client.accept_invitation(&server, &code))?;
    }
    let begun = now();
    let (progress, outages) = (Progress::default(), Outages::default());
    let (mut all, mut reported) = (CopyReport::default(), BTreeSet::new());
    let mut stopped = None;
    for (server, job) in jobs {
        let copied = client.copy(&server, job, &options, args, (&progress, &outages), &mut reported);
        match copied {
            Ok(Some(outcome)) => add(&mut all, outcome),
            Ok(None) => stopped = Some(Ok(())),
            Err(failure) => stopped = Some(Err(failure)),
        }
        if stopped.is_some() {
            // What the copy that was stopped has transferred.
            all.summary.received_bytes += progress.done_bytes.load(Relaxed);
            break;
        }
    }
    // A read of standard input may block forever.
    client.runtime.shutdown_background();
    let duration_s = begun.elapsed().as_secs_f64();
    let throughput_bps = all.summary.received_bytes as f64 * 8.0 / duration_s.max(1e-9);
    if args.json {
        let (dry_run, server, outcome) = (args.dry_run, servers.join(" "), &all);
        let error = stopped.as_ref().map(|how| match how {
            Ok(()) => "interrupted".to_owned(),
            Err(failure) => printable(&failure.to_string()),
        });
        let reconnections = outages.count.get();
        let report =
            Report { direction, server, dry_run, duration_s, throughput_bps, reconnections, error, outcome };
        match to_stdout {
            true => note(&serde_json::to_string(&report).map_err(std::io::Error::from)?),
            false => print_json(&report)?,
        }
    }
    if let Some(how) = stopped {
        return ended(how, &progress);
    }
    // Standard output carries the file.
    let is_quiet = args.quiet || args.json || to_stdout;
    print_outcome(&all, args, is_quiet, &reported, duration_s, throughput_bps)?;
    let has_failed = all.summary.failed > 0 || args.strict && all.summary.skipped > 0;
    Ok(if has_failed { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
}

/// Handles copies that ended without a result, because of a signal or a failure.
fn ended(how: Result<(), Failure>, progress: &Progress) -> Result<ExitCode, Failure> {
    let resumes = "received data is kept; repeat the command to resume";
    let Err(failure) = how else {
        note(&format!("tacit: interrupted; {resumes}"));
        return Ok(ExitCode::from(INTERRUPTED));
    };
    let is_io = matches!(failure, Failure::Network(NetworkFailure::Copy(CopyError::Io(_))));
    if is_io && progress.done_bytes.load(Relaxed) > 0 {
        note(&format!("tacit: {resumes}"));
    }
    Err(failure)
}

/// Determines which of `paths` are local and which are on a server.
fn plan(paths: &[String]) -> Result<Plan, String> {
    let Some((to, from)) = paths.split_last() else { return Err("nothing to copy".into()) };
    if from.iter().any(String::is_empty) {
        return Err("a SRC has no name".into());
    }
    let remotes = from.iter().map(|path| remote(path)).collect::<Result<Vec<_>, _>>()?;
    match (remote(to)?, remotes.iter().flatten().count()) {
        (Some(to), 0) => Ok(Plan::Push { sources: from.to_vec(), to }),
        (None, here) if here == from.len() => {
            let mut from: Vec<(String, Vec<String>)> = Vec::new();
            for Remote { server, path, .. } in remotes.into_iter().flatten() {
                match from.iter_mut().find(|(known, _)| *known == server) {
                    Some((_, paths)) => paths.push(path),
                    None => from.push((server, vec![path])),
                }
            }
            Ok(Plan::Pull { from, to: to.clone() })
        }
        _ => Err(format!("either DEST or all SRC are {SCHEME}[CODE@]HOST[:PORT]/PATH, and the others local")),
    }
}

/// One job per server.
fn jobs(plan: Plan, args: &CpArgs) -> Result<Vec<(String, Job)>, CopyError> {
    let wrong = |why: &str| Err(CopyError::Argument(why.to_owned()));
    match plan {
        Plan::Push { sources, to } if sources.iter().any(|source| source == STANDARD) => {
            if sources.len() > 1 || args.delete || args.checksum || args.dry_run {
                return wrong("- must be the only SRC, without --delete, --checksum and --dry-run");
            }
            let source = Some(Source::stream(Box::new(tokio::io::stdin())));
            Ok(vec![(to.server, Job::Push { source, paths: Vec::new(), to: to.path })])
        }
        Plan::Push { sources, to } => {
            let source = Some(Source::named(&sources)?);
            Ok(vec![(to.server, Job::Push { source, paths: sources, to: to.path })])
        }
        Plan::Pull { from, to } if to == STANDARD => match &from[..] {
            [(server, paths)] if paths.len() == 1 && !args.delete && !args.checksum && !args.dry_run => {
                Ok(vec![(server.clone(), Job::PullInto(paths[0].clone()))])
            }
            _ => wrong("- takes one file, without --delete, --checksum and --dry-run"),
        },
        Plan::Pull { from, .. } if from.len() > 1 && args.delete => {
            wrong("--delete takes SRC of one server only; it would delete the files of the others")
        }
        Plan::Pull { to, .. } if to.is_empty() => wrong("DEST has no name"),
        Plan::Pull { from, to } => {
            // Several sources require a directory.
            let is_directory = from.len() > 1 && !to.ends_with('/');
            let to = if is_directory { format!("{to}/") } else { to };
            Ok(from.into_iter().map(|(server, paths)| (server, Job::Pull(paths, to.clone()))).collect())
        }
    }
}

impl Client {
    /// Carries out `job`; `None` if a signal stopped it. Adds failures that were already printed to `reported`.
    fn copy(
        &self,
        server: &str,
        job: Job,
        options: &Options,
        args: &CpArgs,
        (progress, outages): (&Progress, &Outages),
        reported: &mut BTreeSet<(String, Option<String>)>,
    ) -> Result<Option<CopyReport>, Failure> {
        let (link, keeping) = self.keep(server, args.quiet, |event| outages.on_event(server, &event))?;
        let rate = args.bwlimit.and_then(NonZeroU64::new);
        let to_stdout = matches!(job, Job::PullInto(_));
        let copying = link.clone();
        let copy = async {
            let mut keeping = std::pin::pin!(keeping);
            let ended = tokio::select! {
                biased;
                outcome = copy_over(copying, job, options, rate, progress) => {
                    outcome.map(Some).map_err(|error| self.explain_refusal(server, error))
                }
                why = &mut keeping => Err(why.into()),
                stopped = signals::stop() => stopped.map(|()| None),
            };
            // Before `keeping` is dropped: with it goes the endpoint, once the server knows.
            link.close();
            ended
        };
        progress::show_bytes(!args.quiet && !args.json && !to_stdout, |bar| {
            self.runtime.block_on(async {
                let mut copy = std::pin::pin!(copy);
                loop {
                    let done = tokio::time::timeout(DRAWN_EVERY, &mut copy).await;
                    draw(bar, progress, outages, args.quiet, reported);
                    if let Ok(done) = done {
                        return done;
                    }
                }
            })
        })
    }
}

/// Carries out `job`, again and again while its connection breaks and another one is there in time.
async fn copy_over(
    mut link: Link,
    mut job: Job,
    options: &Options,
    rate: Option<NonZeroU64>,
    progress: &Progress,
) -> Result<CopyReport, CopyError> {
    let mut earlier = Earlier::default();
    let mut broken = std::io::Error::from(std::io::ErrorKind::NotConnected);
    while let Some(connection) = link.next(RECONNECT_TIMEOUT).await {
        match copy(&mut job, options, rate, progress, &connection).await {
            Err(CopyError::Io(error)) if job.can_repeat() && is_broken(&connection) => {
                earlier.add(progress);
                broken = error;
            }
            copied => {
                let mut outcome = copied?;
                earlier.complete(progress, &mut outcome.summary);
                return Ok(outcome);
            }
        }
    }
    Err(broken.into())
}

/// True if the connection broke. A server that stops closes its connections.
fn is_broken(connection: &Connection) -> bool {
    let reason = connection.close_reason();
    reason.is_some_and(|reason| !matches!(reason, ConnectionError::ApplicationClosed { .. }))
}

/// Updates the bar, and prints files that have failed, and connections that broke, since the last update.
fn draw(
    bar: &ByteBar,
    progress: &Progress,
    outages: &Outages,
    is_quiet: bool,
    reported: &mut BTreeSet<(String, Option<String>)>,
) {
    let total_bytes = Some(progress.total_bytes.load(Relaxed)).filter(|bytes| *bytes > 0);
    let done_bytes = progress.done_bytes.load(Relaxed);
    bar.draw(done_bytes, total_bytes);
    bar.set_message(&outages.status(done_bytes));
    for line in outages.lines.take().into_iter().filter(|_| !is_quiet) {
        bar.note(&line);
    }
    for copy::Report { path, reason, .. } in progress.take_failures() {
        bar.note(&failed(&path, reason.as_deref()));
        reported.insert((path, reason));
    }
}

fn failed(path: &str, reason: Option<&str>) -> String {
    printable(&format!("tacit: {path}: {}", reason.unwrap_or("no reason given")))
}

async fn copy(
    job: &mut Job,
    options: &Options,
    rate: Option<NonZeroU64>,
    progress: &Progress,
    connection: &Connection,
) -> Result<CopyReport, CopyError> {
    let (reader, writer) = streams(connection).await?;
    // Only the direction that carries file contents is limited; the other one carries little data.
    let is_push = matches!(job, Job::Push { .. });
    let reader = Limited::new(reader, rate.filter(|_| !is_push));
    let writer = Limited::new(writer, rate.filter(|_| is_push));
    let mut reader = BufReader::with_capacity(READ_BYTES, reader);
    let mut writer = BufWriter::with_capacity(WRITE_BYTES, writer);
    match job {
        Job::Push { source, paths, to } => {
            let source = source.take().map_or_else(|| Source::named(&paths[..]), Ok)?;
            let outcome = push(source, to, options, progress, &mut reader, &mut writer).await?;
            // The server has received everything and sent its summary. It waits for the end of the stream.
            writer.shutdown().await?;
            Ok(outcome)
        }
        Job::Pull(paths, to) => {
            let outcome = pull(paths, Path::new(to), options, progress, &mut reader, &mut writer).await?;
            finish(writer).await;
            Ok(outcome)
        }
        Job::PullInto(path) => {
            let outcome =
                pull_into(path, &mut tokio::io::stdout(), progress, &mut reader, &mut writer).await?;
            finish(writer).await;
            Ok(outcome)
        }
    }
}

/// Waits until the server has acknowledged the summary. All data has arrived, so a failure here does not matter.
async fn finish(mut writer: BufWriter<Limited<SendStream>>) {
    if writer.shutdown().await.is_ok() {
        let _ = tokio::time::timeout(LAST_TIMEOUT, writer.get_mut().get_mut().finished()).await;
    }
}

fn add(all: &mut CopyReport, one: CopyReport) {
    let (sum, summary) = (&mut all.summary, one.summary);
    sum.copied += summary.copied;
    sum.unchanged += summary.unchanged;
    sum.deleted += summary.deleted;
    sum.skipped += summary.skipped;
    sum.failed += summary.failed;
    sum.received_bytes += summary.received_bytes;
    sum.resumed_bytes += summary.resumed_bytes;
    all.paths.extend(one.paths);
}

/// Prints the result of a copy. Failed and skipped paths are always printed, except those in `reported`.
fn print_outcome(
    outcome: &CopyReport,
    args: &CpArgs,
    is_quiet: bool,
    reported: &BTreeSet<(String, Option<String>)>,
    duration_s: f64,
    throughput_bps: f64,
) -> Result<(), Failure> {
    let lists = (args.dry_run || args.verbose) && !is_quiet;
    for report in &outcome.paths {
        let copy::Report { path, action, reason } = report;
        match action {
            Action::Failed if reported.contains(&(path.clone(), reason.clone())) => (),
            Action::Failed => note(&failed(path, reason.as_deref())),
            Action::Skipped if args.quiet && !args.strict => (),
            Action::Skipped => {
                let reason = reason.as_deref().unwrap_or_default();
                note(&printable(&format!("tacit: {path}: skipped: {reason}")));
            }
            Action::Deleted if lists => print(&format!("delete {}\n", printable(path)))?,
            Action::Copied | Action::Resumed if lists => print(&format!("copy {}\n", printable(path)))?,
            Action::Deleted | Action::Copied | Action::Resumed => (),
        }
    }
    if is_quiet {
        return Ok(());
    }
    let would = if args.dry_run { "would be: " } else { "" };
    let rate = match outcome.summary.received_bytes {
        0 => String::new(),
        _ => format!(" in {} s, {} Mb/s", significant(duration_s), significant(throughput_bps / 1e6)),
    };
    print(&format!("{would}{}{rate}\n", summary_line(&outcome.summary)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_side_is_on_servers() {
        let plan = |words: &[&str]| plan(&words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>());
        assert!(
            matches!(plan(&["a", "b", "tack://h/"]), Ok(Plan::Push { sources, .. }) if sources == ["a", "b"])
        );
        let Ok(Plan::Pull { from, .. }) = plan(&["tack://h/a", "tack://i/b", "tack://h/c", "."]) else {
            panic!("it is one")
        };
        let paths = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        assert_eq!(from, [("h:4433".to_owned(), paths(&["a", "c"])), ("i:4433".to_owned(), paths(&["b"]))]);
        for wrong in
            [&["a", "b"][..], &["", "tack://h/"], &["tack://h/a", "tack://h/b"], &["tack://h/a", "b", "c"]]
        {
            assert!(plan(wrong).is_err(), "{wrong:?}");
        }
    }
}
