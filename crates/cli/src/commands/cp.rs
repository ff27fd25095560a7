//! `tacit cp`.

use std::io::{BufRead as _, IsTerminal as _};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use serde::Serialize;
use tacit_apps::SERVE_PORT;
use tacit_apps::copy::sender::Source;
use tacit_apps::copy::session::{pull, push};
use tacit_apps::copy::wire::Direction;
use tacit_apps::copy::{Action, CopyError, Options, Outcome, Progress, Summary};
use tacit_apps::node;
use tacit_scenario::table::{count, octets};
use tacit_tack::{Connection, PublicKey};
use tokio::io::{AsyncWriteExt as _, BufReader, BufWriter};

use super::{keys, serve};
use crate::args::CpArgs;
use crate::output::{FAILED, Failure, INTERRUPTED, note, print, print_json, printable};
use crate::progress;

/// What begins the name of a file on a server.
const SCHEME: &str = "tack://";
/// How often the bar is drawn.
const DRAWN_EVERY: Duration = Duration::from_millis(100);
/// Octets that are read or written at once: a piece of contents.
const BUFFER_OCTETS: usize = 64 * 1024;

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

pub fn run(args: CpArgs) -> Result<ExitCode, Failure> {
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
            return Err(CopyError::Argument(format!("{to}: several SRC need a directory that is there")).into());
        }
        Plan::Pull { .. } => None,
    };
    let store = keys::store()?;
    let identity = keys::identity(&store)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (node, connection) =
        runtime.block_on(node::connect(&store, &identity, &server, |key| ask(&server, key)))?;
    let begun = Instant::now();
    let progress = Progress::default();
    let copy = async {
        tokio::select! {
            outcome = copy(&plan, source, options, &progress, &connection) => Ok(Some(outcome?)),
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
            if matches!(failure, Failure::Copy(CopyError::Io(_))) && progress.done_octets.load(Relaxed) > 0 {
                note(&format!("tacit: {resumes}"));
            }
            return Err(failure);
        }
    };
    let throughput_bps = outcome.summary.received_octets as f64 * 8.0 / duration_s.max(1e-9);
    if args.json {
        let dry_run = args.dry_run;
        print_json(&Report { direction, server: &server, dry_run, duration_s, throughput_bps, outcome: &outcome })?;
    }
    say(&outcome, &args, duration_s, throughput_bps)?;
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
            Ok(Plan::Pull { server, paths: remotes.into_iter().map(|remote| remote.path).collect(), to: to.clone() })
        }
        _ => Err(format!("either DEST or all SRC are {SCHEME}HOST[:PORT]/PATH, the others are here")),
    }
}

/// The place on a server that `text` names; `None` for one here.
fn remote(text: &str) -> Result<Option<Remote>, String> {
    let Some(rest) = text.strip_prefix(SCHEME) else { return Ok(None) };
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let wrong = || format!("{text}: a place on a server is {SCHEME}HOST[:PORT]/PATH");
    let is_bare = host.rsplit(']').next().is_some_and(|end| !end.contains(':'));
    let server = if is_bare { format!("{host}:{SERVE_PORT}") } else { host.to_owned() };
    let (name, port) = server.rsplit_once(':').ok_or_else(wrong)?;
    let is_one = !name.is_empty() && (!name.contains(':') || name.starts_with('['));
    if !is_one || name.contains(['@', ' ', '?', '#']) || !port.parse::<u16>().is_ok_and(|port| port > 0) {
        return Err(wrong());
    }
    Ok(Some(Remote { server: server.to_ascii_lowercase(), path: path.trim_start_matches('/').to_owned() }))
}

/// Asks whether to trust `key`; no without a terminal.
fn ask(server: &str, key: PublicKey) -> bool {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return false;
    }
    note(&format!("{} is not known. Its key is\n  {key}\nTacit keys show prints it there. Is it the same? (yes/no)", printable(server)));
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
            all = push(source, &to.path, options, progress, &mut reader, &mut writer)
                .await
                .map_err(|error| said_by(connection, error))?;
            finish(writer).await?;
        }
        (Plan::Pull { paths, to, .. }, _) => {
            for path in paths {
                let (mut reader, mut writer) = streams(connection).await?;
                let outcome = pull(path, Path::new(to), options, progress, &mut reader, &mut writer)
                    .await
                    .map_err(|error| said_by(connection, error))?;
                finish(writer).await?;
                add(&mut all, outcome);
            }
        }
        (Plan::Push { .. }, None) => (),
    }
    Ok(all)
}

type Streams = (BufReader<tacit_tack::RecvStream>, BufWriter<tacit_tack::SendStream>);

async fn streams(connection: &Connection) -> Result<Streams, CopyError> {
    let (writer, reader) = connection.open().await.map_err(|error| refused(&error))?;
    Ok((BufReader::with_capacity(BUFFER_OCTETS, reader), BufWriter::with_capacity(BUFFER_OCTETS, writer)))
}

/// Waits until the server has all that was written.
async fn finish(mut writer: BufWriter<tacit_tack::SendStream>) -> Result<(), CopyError> {
    writer.shutdown().await?;
    Ok(writer.get_mut().finished().await.map_err(std::io::Error::from)?)
}
