//! Live runs for figures.

use std::io::{self, IsTerminal as _};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use anyhow::Context as _;
use tacit_figures::{
    Download, DownloadReport, DownloadRun, Figure, LiveReport, LiveRun, LiveRuns, LiveSort, MakeLive,
    TransferReport, TransferRun,
};
use tacit_live::shell;
use tacit_live::{AckMode, Oracle, Report, Wait, apart, doctor};
use tacit_runs::RunsError;
use tacit_runs::bound::bind;
use tacit_runs::single;

use super::shell::through;
use super::transfers::TransferRunner;
use crate::output::note;

/// The program that moves the data.
const IPERF: &str = "iperf3";
/// Those that downloads need besides, and how each is asked whether it is there.
const FOR_DOWNLOADS: [[&str; 2]; 2] = [["nginx", "-v"], ["curl", "--version"]];

/// Makes the live runs of `figures`, those that this machine can. Must happen before there is a second thread. Valid transfers
/// are kept in `directory`, and those that are there already are not made again.
pub fn made(figures: &[Figure], quick: bool, directory: Option<&Path>) -> Result<LiveRuns, RunsError> {
    LiveRuns::make(figures, quick, &mut LiveRunner { transfers: TransferRunner::default(), directory })
}

/// Makes live runs on this machine.
struct LiveRunner<'d> {
    transfers: TransferRunner,
    directory: Option<&'d Path>,
}

impl MakeLive for LiveRunner<'_> {
    fn skip_reason(&mut self, sort: LiveSort) -> Result<Option<String>, RunsError> {
        Ok(match sort {
            LiveSort::Iperf => no_iperf(),
            LiveSort::Downloads => no_iperf().or_else(no_downloads),
            LiveSort::Transfers => {
                self.transfers.keep_in(self.directory)?;
                no_hops()
            }
        })
    }

    fn iperf(&mut self, run: &LiveRun) -> Result<LiveReport, String> {
        if io::stderr().is_terminal() {
            note(&format!("tacit: {}", run.command()));
        }
        make(run)
    }

    fn downloads(&mut self, runs: &[DownloadRun]) -> Result<Vec<DownloadReport>, String> {
        if io::stderr().is_terminal() {
            let count: u32 = runs.iter().map(|run| run.count).sum();
            note(&format!(
                "tacit: {count} downloads through {} hops like: {}",
                runs.len(),
                runs[0].command()
            ));
        }
        download(runs).map_err(|error| format!("{error:#}"))
    }

    fn missing(&mut self, run: &TransferRun) -> Option<String> {
        self.transfers.missing(run)
    }

    fn transfer(&mut self, run: &TransferRun) -> Result<TransferReport, String> {
        self.transfers.make(run)
    }
}

/// Why there are no downloads here, besides iperf3.
fn no_downloads() -> Option<String> {
    let missing = FOR_DOWNLOADS.into_iter().find(|[program, ask]| !is_there(program, ask));
    let rre = tacit_kernel::check();
    match missing {
        Some([program, _]) => Some(format!("{program} is not installed")),
        None => rre.err().map(|error| format!("tacit rre does not work here: {error}")),
    }
}

/// Why there are no runs of iperf3 here.
fn no_iperf() -> Option<String> {
    no_hops().or_else(|| (!is_there(IPERF, "--version")).then(|| format!("{IPERF} is not installed")))
}

/// Why there are no live hops here.
pub fn no_hops() -> Option<String> {
    let works = doctor::examine().live;
    (!works).then(|| "live hops do not work here; see tacit doctor".to_owned())
}

/// Whether `program` runs when it is asked what it is.
fn is_there(program: &str, ask: &str) -> bool {
    let mut asked = Command::new(program);
    asked.arg(ask).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    asked.status().is_ok_and(|status| status.success())
}

/// Makes all `runs` at the same time, each by a process of this program.
fn download(runs: &[DownloadRun]) -> anyhow::Result<Vec<DownloadReport>> {
    let tacit = std::env::current_exe().context("this program's file")?;
    let tacit = tacit.to_str().context("this program's file has no name in UTF-8")?;
    let directory = tempfile::tempdir().context("a temporary directory")?;
    let start = |(run, number): (&DownloadRun, u32)| {
        let own = directory.path().join(number.to_string());
        std::fs::create_dir(&own).context("a directory for a server")?;
        let server = run.server_script(tacit, &own.to_string_lossy());
        let mut shell = Command::new(tacit);
        shell.args(["shell", "--json"]).args(run.hop.words()).arg("--server-log").arg(own.join("log"));
        shell.args(["--", "sh", "-c", &run.client_script(), "--server", "--", "sh", "-c", &server]);
        watched(&mut shell).spawn().context("tacit shell")
    };
    let started: Vec<_> = runs.iter().zip(1..).map(start).collect::<Result<_, _>>()?;
    // All are read to their ends: what they say is a line for each download.
    let ended: Vec<_> = started.into_iter().map(std::process::Child::wait_with_output).collect();
    ended.into_iter().map(|output| of_downloads(&output.context("tacit shell")?)).collect()
}

/// What a shell of downloads said: its report, and what its command wrote.
fn of_downloads(output: &Output) -> anyhow::Result<DownloadReport> {
    let ShellOutput { invalid, said, .. } = ShellOutput::of(output)?;
    let download = |line: &str| {
        let (total, connected) = line.strip_prefix("took ")?.split_once(' ')?;
        Some(Download { total_s: total.parse().ok()?, connected_s: connected.parse().ok()? })
    };
    Ok(DownloadReport { downloads: said.lines().filter_map(download).collect(), invalid })
}

/// A shell whose report and whose command's words are read.
pub fn watched(shell: &mut Command) -> &mut Command {
    shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped())
}

/// What a shell said.
pub struct ShellOutput {
    pub report: serde_json::Value,
    /// Why the run is not valid.
    pub invalid: Option<String>,
    /// What its command wrote.
    pub said: String,
}

impl ShellOutput {
    pub fn of(output: &Output) -> anyhow::Result<Self> {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).with_context(|| {
            format!("tacit shell: {}", said.trim_end().lines().last().unwrap_or("said nothing"))
        })?;
        let reasons = report["reasons"].as_array().into_iter().flatten();
        let reasons: Vec<&str> = reasons.filter_map(serde_json::Value::as_str).collect();
        let invalid = (report["valid"] != true).then(|| reasons.join(", "));
        Ok(Self { report, invalid, said })
    }
}

fn make(run: &LiveRun) -> Result<LiveReport, String> {
    let bound = bind(
        &single::Options {
            scenario: run.hop.scenario.clone(),
            assignments: run.hop.assignments.clone(),
            scheme: Some(run.hop.scheme.to_owned()),
            seed: 1,
            ..single::Options::default()
        },
        0,
    );
    let bound = bound.map_err(|error| error.to_string())?;
    let ack_mode = run.hop.acks.as_deref().map_or(Ok(AckMode::Kernel), str::parse)?;
    let words = |words: Vec<String>| words.into_iter().map(Into::into).collect();
    let report = apart::run(shell::Options {
        server: Some(words(run.server_words())),
        congestion: run.hop.congestion.clone(),
        output: shell::Output::Dropped,
        ..through(bound, ack_mode, Oracle::Watch, words(run.client_words()))
    });
    let report = report.map_err(|error| error.to_string())?;
    match report.exit_status {
        0 => Ok(live_report(&report)),
        status => Err(format!("its client ended with {status}")),
    }
}

/// What a figure wants of a report.
fn live_report(report: &Report) -> LiveReport {
    let down = report.transfer.as_ref().map(|transfer| &transfer.down);
    let mbps = down.into_iter().flat_map(|down| &down.intervals);
    let waited = |wait: Option<Wait>| wait.map(|wait| wait.mean_us);
    LiveReport {
        mbps: mbps.map(|interval| interval.sum.bits_per_second / 1e6).collect(),
        ack_ratio: down.and_then(|down| down.end.ack_ratio),
        waited_us: waited(report.waits.command)
            .zip(waited(report.waits.server))
            .map(|(near, far)| [near, far]),
        invalid: (!report.valid).then(|| report.reasons.join(", ")),
    }
}
