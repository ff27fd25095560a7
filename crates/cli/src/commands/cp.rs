//! `tacit cp`.

use std::io::{BufRead as _, IsTerminal as _};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use indicatif::HumanBytes;
use serde::Serialize;
use tacit_apps::SERVE_PORT;
use tacit_apps::copy::sender::Source;
use tacit_apps::copy::session::{pull, push};
use tacit_apps::copy::wire::Direction;
use tacit_apps::copy::{Action, CopyError, Options, Outcome, Progress, Summary, open_many_files};
use tacit_apps::node::{self, NodeError};
use tacit_scenario::table::significant;
use tacit_tack::{Connection, ConnectionError, PublicKey, StreamError};
use tokio::io::{AsyncWriteExt as _, BufReader, BufWriter};

use super::{keys, seen, serve};
use crate::args::CpArgs;
use crate::output::{FAILED, Failure, INTERRUPTED, NetworkFailure, note, print, print_json, printable};
use crate::progress;

/// What begins the name of a file on a server.
const SCHEME: &str = "tack://";
/// How often the bar is drawn.
const DRAWN_EVERY: Duration = Duration::from_millis(100);
/// Octets that are read or written at once: a piece of contents.
pub const BUFFER_OCTETS: usize = 64 * 1024;

/// For the last message of a copy to arrive. Ours.
pub const LAST_TIMEOUT: Duration = Duration::from_secs(10);

/// A place on a server.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Remote {
    /// HOST:PORT.
    server: String,
    path: String,
}

/// What is copied, and which way.
#[derive(Debug, PartialEq, Eq)]
enum Plan {
    Push { sources: Vec<String>, to: Remote },
    Pull { server: String, paths: Vec<String>, to: String },
}

/// What a copy came to, for `--json`.
#[derive(Serialize)]
struct Report<'a> {
    direction: Direction,
    server: &'a str,
    dry_run: bool,
    duration_s: f64,
    throughput_bps: f64,
    #[serde(flatten)]
    outcome: &'a Outcome,
}

pub fn run(args: &CpArgs) -> Result<ExitCode, Failure> {
    seen::begin(&args.seen);
    let plan = plan(&args.paths).map_err(CopyError::Argument)?;
    let options = Options { checksum: args.checksum, delete: args.delete, dry_run: args.dry_run };
    let (direction, server) = match &plan {
        Plan::Push { to, .. } => (Direction::Push, to.server.clone()),
        Plan::Pull { server, .. } => (Direction::Pull, server.clone()),
    };
    // What is not here is said before anyone is asked for anything.
    let source = match &plan {
        Plan::Push { sources, .. } => Some(Source::named(sources)?),
        Plan::Pull { paths, to, .. } if paths.len() > 1 && !Path::new(to).is_dir() => {
            return Err(
                CopyError::Argument(format!("{to}: several SRC need a directory that is there")).into()
            );
        }
        Plan::Pull { .. } => None,
    };
    open_many_files();
    let store = keys::store()?;
    let identity = keys::identity(&store)?;
    let config = seen::config(&args.seen)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (node, connection) =
        runtime.block_on(node::connect(&store, &identity, &config, &server, |key| ask(&server, key)))?;
    #[expect(clippy::disallowed_methods, reason = "a copy happens in real time")]
    let now = Instant::now;
    let begun = now();
    let progress = Progress::default();
    let copy = async {
        tokio::select! {
            outcome = copy(&plan, source, options, &progress, &connection) => {
                Ok(Some(outcome.map_err(|error| said_by(&server, identity.public(), error))?))
            }
            stopped = serve::stop() => stopped.map(|()| None),
        }
    };
    let copied: Result<_, Failure> = progress::of_octets(!args.quiet && !args.json, |drawn| {
        runtime.block_on(async {
            let mut copy = std::pin::pin!(copy);
            loop {
                let done = tokio::time::timeout(DRAWN_EVERY, &mut copy).await;
                let total_octets = Some(progress.total_octets.load(Relaxed)).filter(|octets| *octets > 0);
                drawn(progress.done_octets.load(Relaxed), total_octets);
                if let Ok(done) = done {
                    return done;
                }
            }
        })
    });
    let duration_s = begun.elapsed().as_secs_f64();
    connection.close(0, "");
    drop(connection);
    drop(node);
    let resumes = "what came is kept: the same command goes on with it";
    let outcome = match copied {
        Ok(Some(outcome)) => outcome,
        Ok(None) => {
            note(&format!("tacit: interrupted; {resumes}"));
            return Ok(ExitCode::from(INTERRUPTED));
        }
        Err(failure) => {
            let is_io = matches!(failure, Failure::Network(NetworkFailure::Copy(CopyError::Io(_))));
            if is_io && progress.done_octets.load(Relaxed) > 0 {
                note(&format!("tacit: {resumes}"));
            }
            return Err(failure);
        }
    };
    let throughput_bps = outcome.summary.received_octets as f64 * 8.0 / duration_s.max(1e-9);
    if args.json {
        let dry_run = args.dry_run;
        print_json(&Report {
            direction,
            server: &server,
            dry_run,
            duration_s,
            throughput_bps,
            outcome: &outcome,
        })?;
    }
    say(&outcome, args, duration_s, throughput_bps)?;
    Ok(if outcome.summary.failed > 0 { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
}

/// Which of `paths` are where.
fn plan(paths: &[String]) -> Result<Plan, String> {
    let Some((to, from)) = paths.split_last() else { return Err("nothing to copy".into()) };
    let remotes = from.iter().map(|path| remote(path)).collect::<Result<Vec<_>, _>>()?;
    match (remote(to)?, remotes.iter().flatten().count()) {
        (Some(to), 0) => Ok(Plan::Push { sources: from.to_vec(), to }),
        (None, here) if here == from.len() => {
            let remotes: Vec<_> = remotes.into_iter().flatten().collect();
            let server = remotes.first().map(|first| first.server.clone()).unwrap_or_default();
            if remotes.iter().any(|remote| remote.server != server) {
                return Err("all SRC must be on one server".into());
            }
            Ok(Plan::Pull {
                server,
                paths: remotes.into_iter().map(|remote| remote.path).collect(),
                to: to.clone(),
            })
        }
        _ => Err(format!("either DEST or all SRC are {SCHEME}HOST[:PORT]/PATH, the others are here")),
    }
}

/// The place on a server that `text` names; `None` for one here.
fn remote(text: &str) -> Result<Option<Remote>, String> {
    let Some(rest) = text.strip_prefix(SCHEME) else { return Ok(None) };
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let wrong = || format!("{text}: a place on a server is {SCHEME}HOST[:PORT]/PATH");
    let server = server(host, SERVE_PORT).ok_or_else(wrong)?;
    Ok(Some(Remote { server, path: path.trim_start_matches('/').to_owned() }))
}

/// HOST:PORT of `host`, which may have a port already; `None` where it is no host.
pub fn server(host: &str, port: u16) -> Option<String> {
    let is_bare = host.rsplit(']').next().is_some_and(|end| !end.contains(':'));
    let server = if is_bare { format!("{host}:{port}") } else { host.to_owned() };
    let (name, port) = server.rsplit_once(':')?;
    let is_one = !name.is_empty() && (!name.contains(':') || name.starts_with('['));
    let is_host =
        is_one && !name.contains(['@', ' ', '?', '#', '/']) && port.parse().is_ok_and(|port: u16| port > 0);
    is_host.then(|| server.to_ascii_lowercase())
}

/// Asks whether to trust `key`; no without a terminal.
pub fn ask(server: &str, key: PublicKey) -> bool {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return false;
    }
    note(&format!(
        "{} is not known. Its key is\n  {key}\nThere, tacit keys show prints it. Is it the same? (yes/no)",
        printable(server)
    ));
    let mut answer = String::new();
    // No answer is no yes.
    let _ = std::io::stdin().lock().read_line(&mut answer);
    answer.trim().eq_ignore_ascii_case("yes")
}

/// Copies, each source that is there over a stream of its own, one after another.
async fn copy(
    plan: &Plan,
    source: Option<Source>,
    options: Options,
    progress: &Progress,
    connection: &Connection,
) -> Result<Outcome, CopyError> {
    let mut all = Outcome::default();
    match (plan, source) {
        (Plan::Push { to, .. }, Some(source)) => {
            let (mut reader, mut writer) = streams(connection).await?;
            all = push(source, &to.path, options, progress, &mut reader, &mut writer).await?;
            // The server has everything: it has summed up. It waits for the end.
            writer.shutdown().await?;
        }
        (Plan::Pull { paths, to, .. }, _) => {
            for path in paths {
                let (mut reader, mut writer) = streams(connection).await?;
                let outcome = pull(path, Path::new(to), options, progress, &mut reader, &mut writer).await?;
                finish(writer).await;
                add(&mut all, outcome);
            }
        }
        (Plan::Push { .. }, None) => (),
    }
    Ok(all)
}

type Streams = (BufReader<tacit_tack::RecvStream>, BufWriter<tacit_tack::SendStream>);

async fn streams(connection: &Connection) -> Result<Streams, CopyError> {
    let (writer, reader) =
        connection.open().await.map_err(|error| std::io::Error::from(StreamError::from(error)))?;
    Ok((BufReader::with_capacity(BUFFER_OCTETS, reader), BufWriter::with_capacity(BUFFER_OCTETS, writer)))
}

/// Waits until the server has the summary. All is here, whether it hears so or not.
async fn finish(mut writer: BufWriter<tacit_tack::SendStream>) {
    if writer.shutdown().await.is_ok() {
        let _ = tokio::time::timeout(LAST_TIMEOUT, writer.get_mut().finished()).await;
    }
}

/// Tells a server that refuses this user's key from one that is gone: a client hears of it when it is connected already.
fn said_by(server: &str, key: PublicKey, error: CopyError) -> Failure {
    if let CopyError::Io(io) = &error
        && let Some(StreamError::Connection(closed @ ConnectionError::Closed { text, .. })) =
            io.get_ref().and_then(|source| source.downcast_ref())
        && !text.is_empty()
    {
        return NodeError::of_connection(server, key, closed.clone()).into();
    }
    error.into()
}

fn add(all: &mut Outcome, one: Outcome) {
    let (sum, summary) = (&mut all.summary, one.summary);
    sum.copied += summary.copied;
    sum.unchanged += summary.unchanged;
    sum.deleted += summary.deleted;
    sum.failed += summary.failed;
    sum.received_octets += summary.received_octets;
    sum.resumed_octets += summary.resumed_octets;
    all.paths.extend(one.paths);
}

/// A summary in one line.
pub fn said(summary: &Summary) -> String {
    let mut text = format!("{} copied, {} unchanged", summary.copied, summary.unchanged);
    for (number, what) in [(summary.deleted, "deleted"), (summary.failed, "failed")] {
        if number > 0 {
            text.push_str(&format!(", {number} {what}"));
        }
    }
    text.push_str(&format!("; {}", HumanBytes(summary.received_octets)));
    if summary.resumed_octets > 0 {
        text.push_str(&format!(", {} were there", HumanBytes(summary.resumed_octets)));
    }
    text
}

/// Prints what a copy came to: what failed in any case.
fn say(outcome: &Outcome, args: &CpArgs, duration_s: f64, throughput_bps: f64) -> Result<(), Failure> {
    for report in &outcome.paths {
        let path = printable(&report.path);
        match report.action {
            Action::Failed => {
                let reason = printable(report.reason.as_deref().unwrap_or("not said why"));
                note(&format!("tacit: {path}: {reason}"));
            }
            Action::Deleted if args.dry_run && !args.quiet && !args.json => {
                print(&format!("delete {path}\n"))?;
            }
            _ if args.dry_run && !args.quiet && !args.json => print(&format!("copy {path}\n"))?,
            _ => (),
        }
    }
    if args.quiet || args.json {
        return Ok(());
    }
    let would = if args.dry_run { "would be: " } else { "" };
    let rate = match outcome.summary.received_octets {
        0 => String::new(),
        _ => format!(" in {} s, {} Mb/s", significant(duration_s), significant(throughput_bps / 1e6)),
    };
    print(&format!("{would}{}{rate}\n", said(&outcome.summary)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_on_a_server_has_a_host_a_port_and_a_path() {
        for (text, server, path) in [
            ("tack://box/a/b", "box:4433", "a/b"),
            ("tack://Box:99", "box:99", ""),
            ("tack://[::1]/", "[::1]:4433", ""),
            ("tack://[::1]:99//a/", "[::1]:99", "a/"),
        ] {
            let wanted = Remote { server: server.into(), path: path.into() };
            assert_eq!(remote(text), Ok(Some(wanted)), "{text}");
        }
        for wrong in
            ["tack://", "tack:///a", "tack://box:0/a", "tack://::1/a", "tack://me@box/a", "tack://box:x/"]
        {
            assert!(remote(wrong).is_err(), "{wrong}");
        }
        assert_eq!(remote("a:b/c"), Ok(None), "a file here may have any name");
    }

    #[test]
    fn one_side_is_on_one_server() {
        let plan = |words: &[&str]| plan(&words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>());
        assert!(
            matches!(plan(&["a", "b", "tack://h/"]), Ok(Plan::Push { sources, .. }) if sources == ["a", "b"])
        );
        assert!(
            matches!(plan(&["tack://h/a", "tack://h/b", "."]), Ok(Plan::Pull { paths, .. }) if paths == ["a", "b"])
        );
        for wrong in [
            &["a", "b"][..],
            &["tack://h/a", "tack://h/b"],
            &["tack://h/a", "b", "c"],
            &["tack://h/a", "tack://i/b", "c"],
        ] {
            assert!(plan(wrong).is_err(), "{wrong:?}");
        }
    }
}
