//! Live hops for figures: whether they work on this machine, and the report of a run.

use std::fmt::Display;
use std::process::{Command, Output, Stdio};

use anyhow::{Context as _, ensure};
use tacit_figures::TransferRun;
use tacit_hop::{AckMode, Oracle, apart, doctor, shell};
use tacit_runs::bound::bind;
use tacit_runs::single;

use super::shell::through;

/// Why live hops do not work here; `None` if they do.
pub fn no_hops() -> Option<String> {
    let works = doctor::examine().live;
    (!works).then(|| "live hops do not work here; see tacit doctor".to_owned())
}

/// Configures a shell so that its report and the output of its command can be read.
pub fn watched(shell: &mut Command) -> &mut Command {
    shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped())
}

/// Output of `tacit shell`.
pub struct ShellOutput {
    pub report: serde_json::Value,
    /// Why the run is not valid.
    pub invalid: Option<String>,
    /// Standard error of the shell and its command.
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

    /// Runs `run` in a copy of this process. Returns its output without that of its programs.
    pub fn of_a_copy(run: &TransferRun) -> anyhow::Result<Self> {
        let options = single::Options {
            scenario: run.hop.scenario.clone(),
            assignments: run.hop.assignments.clone(),
            scheme: Some(run.hop.scheme.to_owned()),
            seed: run.hop.seed.unwrap_or(1),
            ..single::Options::default()
        };
        let said = |error: &dyn Display| anyhow::Error::msg(error.to_string());
        let bound = bind(&options, run.hop.background).map_err(|error| said(&error))?;
        let ack_mode = run.hop.acks.as_deref().map_or(Ok(AckMode::Kernel), str::parse);
        let ack_mode = ack_mode.map_err(anyhow::Error::msg)?;
        let words = |words| run.filled(words, &[]).into_iter().map(Into::into).collect();
        let report = apart::run(shell::Options {
            server: Some(words(&run.server)),
            congestion: run.hop.congestion.clone(),
            output: shell::Output::Dropped,
            ..through(bound, ack_mode, Oracle::Watch, words(&run.client))
        });
        let report = report.map_err(|error| said(&error))?;
        ensure!(report.exit_status == 0, "its client ended with {}", report.exit_status);
        let invalid = (!report.valid).then(|| report.reasons.join(", "));
        Ok(Self { report: serde_json::to_value(&report)?, invalid, said: String::new() })
    }
}
