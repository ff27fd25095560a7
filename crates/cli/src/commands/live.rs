//! Live runs for figures.

use std::io::{self, IsTerminal as _};
use std::process::{Command, Stdio};

use tacit_live::shell::{self, Output};
use tacit_live::{Oracle, Report, Wait, apart, doctor};
use tacit_papers::figure::{Figure, LiveReport, LiveRun, LiveRuns, needs_live};
use tacit_runs::RunsError;
use tacit_runs::bound::bind;
use tacit_runs::single;

use super::shell::through;
use crate::output::note;

/// The program that moves the data.
const IPERF: &str = "iperf3";

/// Makes the live runs of `figures`, where there are any and this machine can. Must happen before there is a
/// second thread.
pub fn measured(figures: &[Figure], quick: bool) -> Result<LiveRuns, RunsError> {
    if !needs_live(figures) {
        return Ok(LiveRuns::default());
    }
    LiveRuns::make(figures, quick, obstacle().as_deref(), &mut |run| {
        if io::stderr().is_terminal() {
            note(&format!("tacit: {}", run.command()));
        }
        make(run)
    })
}

/// Why there are no live runs here.
fn obstacle() -> Option<String> {
    if !doctor::examine().live {
        return Some("live hops do not work here; tacit doctor says why".to_owned());
    }
    let version = Command::new(IPERF)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    (!version.is_ok_and(|status| status.success())).then(|| format!("{IPERF} is not installed"))
}

fn make(run: &LiveRun) -> Result<LiveReport, String> {
    let bound = bind(
        &single::Options {
            scenario: run.scenario.clone(),
            assignments: run.assignments.clone(),
            scheme: Some(run.scheme.to_owned()),
            seed: 1,
            ..single::Options::default()
        },
        0,
    );
    let bound = bound.map_err(|error| error.to_string())?;
    let words = |words: Vec<String>| words.into_iter().map(Into::into).collect();
    let report = apart::run(shell::Options {
        server: Some(words(run.server_words())),
        congestion: Some(run.congestion.clone()),
        output: Output::Dropped,
        ..through(bound, run.acks.parse()?, Oracle::Watch, words(run.client_words()))
    });
    let report = report.map_err(|error| error.to_string())?;
    match report.exit_status {
        0 => Ok(told(&report)),
        status => Err(format!("its client ended with {status}")),
    }
}

/// What a figure wants of a report.
fn told(report: &Report) -> LiveReport {
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
