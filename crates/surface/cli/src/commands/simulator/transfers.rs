//! Live runs for figures: transfers through live hops.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use tacit_figures::{Download, Figure, GoodputSource, LiveRuns, MakeLive, TransferReport, TransferRun};
use tacit_hop::{doctor, parent};
use tacit_runs::RunsError;
use tacit_runs::store::Appender;

use super::shell::is_program;
use crate::output::note;

/// The program that drives other transports.
const PEERS: &str = "tacit-peers";
/// The command that builds it.
const PEERS_MADE_BY: &str =
    "cargo build --release --manifest-path bench/peers/Cargo.toml --target-dir target";

/// Prefix of a server command that uses RRE.
const RRE: &str = " rre run -- ";

/// Executes the live runs of `figures` that this machine supports.
/// Results are stored in `directory`, and stored runs are not repeated.
pub fn run_live(figures: &[Figure], quick: bool, directory: Option<&Path>) -> Result<LiveRuns, RunsError> {
    LiveRuns::make(figures, quick, &mut TransferRunner { directory, ..TransferRunner::default() })
}

/// Executes live runs on this machine.
#[derive(Default)]
struct TransferRunner<'d> {
    directory: Option<&'d Path>,
    run_log: Option<RunLog>,
    /// Why live hops do not work here; unset until this has been determined.
    no_hops: Option<Option<String>>,
    /// Reasons that have been reported. Each is reported once.
    reported: Vec<String>,
}

/// Stored results of transfers, a record of their own.
struct RunLog {
    log: Appender,
    known: BTreeMap<String, TransferReport>,
    peers: Option<String>,
}

/// A stored run.
#[derive(Serialize, Deserialize)]
struct LoggedRun {
    /// Version of the program that executed it. Runs of other versions are repeated.
    version: String,
    /// BLAKE3 of `tacit-peers`, for runs that use it. Runs of other builds are repeated.
    #[serde(default)]
    peers: Option<String>,
    command: String,
    report: TransferReport,
}

impl RunLog {
    fn open(directory: &Path) -> Result<Self, RunsError> {
        std::fs::create_dir_all(directory).map_err(RunsError::io(directory))?;
        let warn = |text: &str| note(&format!("tacit: {text}"));
        let (log, runs) = Appender::open::<LoggedRun>(&directory.join("transfers.jsonl"), &warn)?;
        let peers = Programs::find().ok().and_then(|programs| hash_of(&programs.peers));
        let current = runs
            .into_iter()
            .filter(|run| run.version == tacit_runs::VERSION && (run.peers.is_none() || run.peers == peers));
        let known = current.map(|run| (run.command, run.report)).collect();
        Ok(Self { log, known, peers })
    }

    fn keep(&mut self, run: &TransferRun, report: &TransferReport) -> Result<(), RunsError> {
        let (version, command) = (tacit_runs::VERSION.to_owned(), run.command());
        let peers = self.peers.clone().filter(|_| needs_peers(run));
        self.log.append(&LoggedRun { version, peers, command, report: report.clone() })
    }
}

/// Values of the placeholders `{tacit}` and `{peers}`.
struct Programs {
    tacit: PathBuf,
    peers: PathBuf,
}

impl Programs {
    fn find() -> anyhow::Result<Self> {
        let tacit = std::env::current_exe().context("this program's file")?;
        let beside = tacit.with_file_name(PEERS);
        let peers = if beside.is_file() { beside } else { PEERS.into() };
        Ok(Self { tacit, peers })
    }

    /// A warning if `tacit-peers` was built before this program, because its TACK may be older.
    fn stale(&self) -> Option<String> {
        let built = |program: &Path| program.metadata().and_then(|data| data.modified()).ok();
        let older = built(&self.peers)? < built(&self.tacit)?;
        older.then(|| format!("{PEERS} is older than this program; update it with {PEERS_MADE_BY}"))
    }

    fn fill(&self, run: &TransferRun, words: &[String], directory: &Path) -> Vec<String> {
        let names = [self.tacit.as_path(), self.peers.as_path(), directory].map(Path::to_string_lossy);
        let file = directory.join("file");
        let [tacit, peers, directory] = &names;
        let values = [
            ("{tacit}", &**tacit),
            ("{peers}", peers),
            ("{dir}", directory),
            ("{file}", &file.to_string_lossy()),
        ];
        run.filled(words, &values)
    }
}

impl MakeLive for TransferRunner<'_> {
    fn skip_reason(&mut self) -> Result<Option<String>, RunsError> {
        if self.run_log.is_none() {
            self.run_log = self.directory.map(RunLog::open).transpose()?;
        }
        Ok(self.no_hops.get_or_insert_with(no_hops).clone())
    }

    fn missing(&mut self, run: &TransferRun) -> Option<String> {
        let reason = skip_reason(run)?;
        self.report(&format!("SKIPPED: {reason}"));
        Some(reason)
    }

    fn make(&mut self, runs: &[TransferRun]) -> Result<Vec<TransferReport>, String> {
        if let Some(known) = runs.iter().map(|run| self.known(run).cloned()).collect() {
            return Ok(known);
        }
        if io::stderr().is_terminal() {
            note(&match runs {
                [run] => format!("tacit: {}", run.command()),
                several => {
                    let like = several[0].hop.command("…", "…");
                    format!("tacit: {} hops at the same time like: {like}", several.len())
                }
            });
        }
        if runs.iter().any(needs_peers)
            && let Some(warning) = Programs::find().ok().and_then(|programs| programs.stale())
        {
            self.report(&warning);
        }
        let reports = make(runs).map_err(|error| format!("{error:#}"))?;
        if let Some(run_log) = &mut self.run_log {
            for (run, report) in runs.iter().zip(&reports).filter(|(_, report)| report.invalid.is_none()) {
                run_log.keep(run, report).map_err(|error| error.to_string())?;
            }
        }
        Ok(reports)
    }
}

impl TransferRunner<'_> {
    /// The stored result of an equal run.
    fn known(&self, run: &TransferRun) -> Option<&TransferReport> {
        self.run_log.as_ref()?.known.get(&run.command())
    }

    fn report(&mut self, message: &str) {
        if !self.reported.iter().any(|before| before == message) {
            note(&format!("tacit: {message}"));
            self.reported.push(message.to_owned());
        }
    }
}

/// Why such a run is not possible: a program is missing, or the kernel lacks a congestion control.
fn skip_reason(run: &TransferRun) -> Option<String> {
    let programs = match Programs::find() {
        Ok(programs) => programs,
        Err(error) => return Some(format!("{error:#}")),
    };
    let congestion = run.hop.congestion.as_deref().map(tacit_hop::congestion::find);
    if let Some(Err(error)) = congestion {
        return Some(error.to_string());
    }
    if needs_peers(run) && !is_program(&programs.peers) {
        return Some(format!("{PEERS} is not beside this program and not on the path: {PEERS_MADE_BY}"));
    }
    let first = [&run.server, &run.client].map(|words| words.iter().take(1).cloned().collect::<Vec<_>>());
    let first = first.iter().flat_map(|words| programs.fill(run, words, Path::new("")));
    let named = run.programs.iter().map(|program| (*program).to_owned());
    let missing = named.chain(first).map(PathBuf::from).find(|program| !is_program(program));
    if let Some(program) = missing {
        return Some(format!("{} is not installed", program.display()));
    }
    let rre = run.server.iter().any(|word| word.contains(RRE)).then(tacit_kernel::check);
    rre?.err().map(|error| format!("tacit rre does not work here: {error}"))
}

/// True if `tacit-peers` drives one end of this run.
fn needs_peers(run: &TransferRun) -> bool {
    run.server.iter().chain(&run.client).any(|word| word.contains("{peers}"))
}

/// BLAKE3 of a file, if it is readable.
fn hash_of(file: &Path) -> Option<String> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(File::open(file).ok()?).ok()?;
    Some(hasher.finalize().to_hex().to_string())
}

/// Why live hops do not work here; `None` if they do.
fn no_hops() -> Option<String> {
    let works = doctor::examine().live;
    (!works).then(|| "live hops do not work here; see tacit doctor".to_owned())
}

/// Configures a shell so that its report and the output of its command can be read, and that it ends with this process.
fn watched(shell: &mut Command) -> &mut Command {
    parent::end_with_this(shell).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped())
}

/// Output of `tacit shell`.
struct ShellOutput {
    report: serde_json::Value,
    /// Why the run is not valid.
    invalid: Option<String>,
    /// Standard error of the shell and its command.
    stderr: String,
}

impl ShellOutput {
    fn parse(output: &Output) -> anyhow::Result<Self> {
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).with_context(|| {
            format!("tacit shell: {}", stderr.trim_end().lines().last().unwrap_or("said nothing"))
        })?;
        let reasons = report["reasons"].as_array().into_iter().flatten();
        let reasons: Vec<&str> = reasons.filter_map(serde_json::Value::as_str).collect();
        let invalid = (report["valid"] != true).then(|| reasons.join(", "));
        Ok(Self { report, invalid, stderr })
    }
}

/// The JSON object that a client prints, on one or several lines. The field names are those of `tacit fetch --json`.
#[derive(Deserialize)]
struct ClientReport {
    bytes: u64,
    duration_s: f64,
    /// Rate in each full second.
    #[serde(default)]
    mbps: Vec<f64>,
    /// Jain's index of several connections.
    jain: Option<f64>,
}

impl ClientReport {
    /// The last report in a client's output. A report starts at the beginning of a line.
    fn last_of(stderr: &str) -> Option<Self> {
        let ends = stderr.match_indices('\n').map(|(at, _)| at + 1);
        let begins: Vec<usize> = std::iter::once(0).chain(ends).collect();
        begins.into_iter().rev().map(|at| &stderr[at..]).filter(|rest| rest.starts_with('{')).find_map(
            |rest| serde_json::Deserializer::from_str(rest).into_iter::<Self>().next().and_then(Result::ok),
        )
    }
}

/// Executes `runs` at the same time, each in a process of this program.
fn make(runs: &[TransferRun]) -> anyhow::Result<Vec<TransferReport>> {
    let programs = Programs::find()?;
    let directory = tempfile::tempdir().context("a temporary directory")?;
    let start = |(run, number): (&TransferRun, usize)| {
        let run_directory = directory.path().join(number.to_string());
        std::fs::create_dir(&run_directory).context("a directory for a run")?;
        std::fs::write(run_directory.join("nginx.conf"), nginx_config(&run_directory.to_string_lossy()))
            .context("a server's file")?;
        if run.bytes > 0 {
            // The content of the file does not affect the path.
            let file = File::create(run_directory.join("file")).context("the file")?;
            file.set_len(run.bytes).context("the file")?;
        }
        let mut shell = Command::new(&programs.tacit);
        shell
            .args(["shell", "--json"])
            .args(run.hop.words())
            .arg("--server-log")
            .arg(run_directory.join("log"));
        shell.arg("--").args(programs.fill(run, &run.client, &run_directory));
        shell.args(["--server", "--"]).args(programs.fill(run, &run.server, &run_directory));
        watched(&mut shell).spawn().context("tacit shell")
    };
    let started: Vec<Child> = runs.iter().zip(0..).map(start).collect::<Result<_, _>>()?;
    // Waiting for them one after another is safe, because their output is short.
    let ended: Vec<_> = started.into_iter().map(Child::wait_with_output).collect();
    let outputs = ended.into_iter().map(|output| ShellOutput::parse(&output.context("tacit shell")?));
    runs.iter().zip(outputs).map(|(run, output)| report(run, &output?)).collect()
}

/// Configuration of an nginx that serves the files in `directory` on port 8001 and writes nowhere else.
fn nginx_config(directory: &str) -> String {
    format!(
        "daemon off; user root; pid {directory}/pid; error_log {directory}/errors; events {{}} \
         http {{ access_log off; client_body_temp_path {directory}/t; proxy_temp_path {directory}/t; \
         fastcgi_temp_path {directory}/t; uwsgi_temp_path {directory}/t; scgi_temp_path {directory}/t; \
         server {{ listen 198.18.0.1:8001; root {directory}; }} }}"
    )
}

/// The values for a figure from the output of a shell and its command.
fn report(run: &TransferRun, output: &ShellOutput) -> anyhow::Result<TransferReport> {
    let ShellOutput { report, invalid, stderr } = output;
    if let Some(status) = report["exit_status"].as_u64().filter(|status| *status != 0) {
        let last = stderr.trim_end().lines().last().unwrap_or_default();
        let invalid = Some(format!("its client ended with {status}: {last}"));
        return Ok(TransferReport { invalid, ..TransferReport::default() });
    }
    let (down, up) = (&report["transfer"]["down"], &report["transfer"]["up"]);
    let received = |way: &serde_json::Value| way["end"]["sum_received"]["bytes"].as_u64();
    // An upload's data goes up.
    let (data, acks) = if received(up) > received(down) { (up, down) } else { (down, up) };
    let ran_s = |side: &str| report["waits"][side]["ran_s"].as_f64();
    let hop_bytes = received(data);
    let count = |key: &str| data["end"][key].as_u64();
    let mut transfer = TransferReport {
        data_packets: count("packets_received"),
        ack_packets: acks["end"]["packets_sent"].as_u64(),
        dropped_share: count("packets_dropped")
            .zip(count("packets_sent"))
            .filter(|(_, sent)| *sent > 0)
            .map(|(dropped, sent)| dropped as f64 / sent as f64),
        bytes: hop_bytes,
        cpu_s: ran_s("command").zip(ran_s("server")).map(|(command, server)| command + server),
        invalid: invalid.clone(),
        ..TransferReport::default()
    };
    match run.goodput_source {
        GoodputSource::Client => {
            let line = ClientReport::last_of(stderr)
                .context("its client wrote no JSON with bytes and duration_s")?;
            transfer.bytes = Some(line.bytes);
            transfer.file = Some((line.bytes, line.duration_s));
            transfer.mbps = line.mbps;
            transfer.jain = line.jain;
        }
        GoodputSource::Hop => {
            let intervals = data["intervals"].as_array().into_iter().flatten();
            let bps = intervals.filter_map(|interval| interval["sum"]["bits_per_second"].as_f64());
            transfer.mbps = bps.map(|bps| bps / 1e6).collect();
            transfer.file = hop_bytes.zip(data["end"]["sum_received"]["seconds"].as_f64());
        }
        GoodputSource::Downloads => transfer.downloads = stderr.lines().filter_map(download).collect(),
    }
    Ok(transfer)
}

/// Parses the line of one of several downloads.
fn download(line: &str) -> Option<Download> {
    let (total, connected) = line.strip_prefix("took ")?.split_once(' ')?;
    Some(Download { total_s: total.parse().ok()?, connected_s: connected.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use tacit_figures::ShellHop;

    fn run() -> TransferRun {
        TransferRun {
            hop: ShellHop {
                scheme: "stock",
                acks: Some("kernel".into()),
                seed: Some(1),
                ..ShellHop::new("wlan-11n-150", Vec::new())
            },
            server: vec!["sh".into(), "-c".into(), "exec {peers} tcp send".into()],
            client: vec!["sh".into()],
            programs: &[],
            seconds: 3,
            bytes: 0,
            goodput_source: GoodputSource::Client,
        }
    }

    fn seeded(seed: u64) -> TransferRun {
        let run = run();
        TransferRun { hop: ShellHop { seed: Some(seed), ..run.hop }, ..run }
    }

    fn output(report: &str, stderr: &str) -> ShellOutput {
        let report: serde_json::Value = serde_json::from_str(report).unwrap();
        ShellOutput { report, invalid: None, stderr: stderr.to_owned() }
    }

    const REPORT: &str = r#"{"exit_status": 0, "waits": {"command": {"ran_s": 0.5}, "server": {"ran_s": 0.25}},
        "transfer": {"down": {"intervals": [{"sum": {"bits_per_second": 8e6}}],
                              "end": {"packets_sent": 125, "packets_received": 100, "packets_dropped": 25,
                                      "sum_received": {"bytes": 7000, "seconds": 2.0}}},
                     "up": {"end": {"packets_sent": 3}}}}"#;

    #[test]
    fn the_client_says_what_arrived_and_the_hop_how() {
        let line = "noise\n{\"bytes\":5000,\"duration_s\":1.5,\"mbps\":[1.0,2.0],\"jain\":0.75,\"more\":1}\ntrailing";
        let client = report(&run(), &output(REPORT, line)).unwrap();
        let expected = TransferReport {
            mbps: vec![1.0, 2.0],
            file: Some((5_000, 1.5)),
            data_packets: Some(100),
            ack_packets: Some(3),
            dropped_share: Some(0.2),
            jain: Some(0.75),
            bytes: Some(5_000),
            cpu_s: Some(0.75),
            ..TransferReport::default()
        };
        assert_eq!(client, expected);
        let hop = report(&TransferRun { goodput_source: GoodputSource::Hop, ..run() }, &output(REPORT, ""))
            .unwrap();
        assert_eq!((hop.mbps, hop.file, hop.bytes), (vec![8.0], Some((7_000, 2.0)), Some(7_000)));
        assert!(report(&run(), &output(REPORT, "no line")).is_err());
    }

    #[test]
    fn the_data_of_an_upload_goes_up() {
        let upload = REPORT.replace("down", "before").replace("up", "down").replace("before", "up");
        let line = "{\"bytes\":5000,\"duration_s\":1.5}";
        let report = report(&run(), &output(&upload, line)).unwrap();
        let counts = (report.data_packets, report.ack_packets, report.dropped_share);
        assert_eq!(counts, (Some(100), Some(3), Some(0.2)));
    }

    #[test]
    fn json_over_several_lines_is_read() {
        let stderr = "{\"bytes\":1,\"duration_s\":1}\n{\n  \"bytes\": 5000,\n  \"duration_s\": 1.5,\n  \"repair\": {\n  }\n}\n{no";
        let output = report(&run(), &output(REPORT, stderr)).unwrap();
        assert_eq!(output.file, Some((5_000, 1.5)));
    }

    #[test]
    fn a_client_that_fails_is_told() {
        let failed = report(&run(), &output(r#"{"exit_status": 1}"#, "x\nError: no route\n")).unwrap();
        assert_eq!(failed.invalid.as_deref(), Some("its client ended with 1: Error: no route"));
    }

    #[test]
    fn valid_runs_are_kept_whatever_was_cut_short() {
        let directory = tempfile::tempdir().unwrap();
        let transfer = TransferReport { mbps: vec![1.5], ..TransferReport::default() };
        RunLog::open(directory.path()).unwrap().keep(&run(), &transfer).unwrap();
        let mut run_log = RunLog::open(directory.path()).unwrap();
        assert_eq!(run_log.known.get(&run().command()), Some(&transfer));
        let file = File::options().append(true).open(directory.path().join("transfers.jsonl"));
        file.unwrap().write_all(b"{\"blake3\":").unwrap();
        run_log = RunLog::open(directory.path()).unwrap();
        run_log.keep(&seeded(2), &transfer).unwrap();
        assert_eq!(RunLog::open(directory.path()).unwrap().known.len(), 2);
        // A run that used another build of tacit-peers is repeated.
        run_log.peers = Some("another".into());
        run_log.keep(&seeded(3), &transfer).unwrap();
        assert_eq!(RunLog::open(directory.path()).unwrap().known.len(), 2);
    }

    #[test]
    fn a_program_that_is_named_anywhere_is_looked_for() {
        // Tests are not in the directory of the program.
        let missing = skip_reason(&run());
        assert!(missing.is_none_or(|reason| reason.contains(PEERS_MADE_BY)));
        let gone =
            TransferRun { client: vec!["tacit-no-such-program".into()], server: vec!["sh".into()], ..run() };
        assert_eq!(skip_reason(&gone).as_deref(), Some("tacit-no-such-program is not installed"));
    }
}
