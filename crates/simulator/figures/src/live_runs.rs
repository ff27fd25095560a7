//! The live runs that figures need, and their results.
//!
//! This crate does not execute live runs. A figure describes the runs it needs, and the caller provides an
//! implementation of [`MakeLive`]. Live runs come before everything else: simulations would take processors from them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::shell_hop::ShellHop;
use tacit_runs::RunsError;

/// Executes live runs. Errors of a run are one line.
pub trait MakeLive {
    /// Why this machine cannot execute any; called before the first run of each figure.
    ///
    /// # Errors
    /// If the store cannot be opened.
    fn skip_reason(&mut self) -> Result<Option<String>, RunsError> {
        Ok(None)
    }

    /// Why such a run cannot be executed here: a program is missing.
    fn missing(&mut self, _run: &TransferRun) -> Option<String> {
        None
    }

    /// Executes `runs` at the same time. Returns one report per run.
    ///
    /// # Errors
    /// If a run cannot be executed.
    fn make(&mut self, runs: &[TransferRun]) -> Result<Vec<TransferReport>, String>;
}

impl dyn MakeLive + '_ {
    /// Executes `runs` at the same time.
    ///
    /// # Errors
    /// If a run cannot be executed.
    pub(super) fn all(&mut self, runs: &[TransferRun]) -> Result<Vec<TransferReport>, RunsError> {
        let failed = |message: String| {
            let command = match runs {
                [run] => run.command(),
                several => several.first().map_or_else(String::new, |run| run.hop.command("…", "…")),
            };
            RunsError::Program { command, message }
        };
        let reports = self.make(runs).map_err(failed)?;
        if reports.len() < runs.len() {
            return Err(failed("gave fewer reports than runs".to_owned()));
        }
        Ok(reports)
    }
}

/// Results of the live runs of figures, by figure ID.
#[derive(Clone, Debug, Default)]
pub struct LiveRuns(pub(super) BTreeMap<String, LiveOutcome>);

/// The live runs of a figure, or the reason why this machine executed none.
pub(super) type LiveOutcome = Result<Vec<TransferPoint>, String>;

impl LiveRuns {
    /// The live runs of figure `id`; empty if there are none.
    pub(super) fn get(&self, id: &str) -> &[TransferPoint] {
        self.0.get(id).and_then(|outcome| outcome.as_deref().ok()).unwrap_or_default()
    }

    /// Why figure `id` has no live runs.
    pub(super) fn skip_reason(&self, id: &str) -> Option<String> {
        match self.0.get(id) {
            Some(outcome) => outcome.as_ref().err().cloned(),
            None => Some("no live runs were made".to_owned()),
        }
    }
}

/// The live runs of an arm at one place, or the reason why there are none.
#[derive(Clone, Debug)]
pub(super) struct TransferPoint {
    /// Index of the arm in the file.
    pub arm: usize,
    pub variant: Option<String>,
    pub x: f64,
    pub runs: Result<Vec<TransferReport>, String>,
}

/// Where the goodput of a live run comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoodputSource {
    /// The program on the client's side, which prints a line of JSON.
    Client,
    /// The hop, for TCP: the bytes that the receiver acknowledged.
    Hop,
    /// The client's side, with one line per download: `took`, the total seconds, and the seconds until it was
    /// connected.
    Downloads,
}

/// A live run that a figure needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransferRun {
    /// The hop.
    pub hop: ShellHop,
    /// The command on the server's side, with placeholders for [`Self::filled`].
    pub server: Vec<String>,
    /// The command on the client's side.
    pub client: Vec<String>,
    /// Programs that the commands start, in addition to their first words.
    pub programs: &'static [&'static str],
    /// Maximum duration of the run.
    pub seconds: u32,
    /// Length of the file to transfer, in bytes; 0 if there is none.
    pub bytes: u64,
    /// Where the goodput comes from.
    pub goodput_source: GoodputSource,
}

/// Results of a live run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TransferReport {
    /// Goodput of each full second in Mb/s.
    pub mbps: Vec<f64>,
    /// Length of a file in bytes, and the duration of its transfer in seconds.
    pub file: Option<(u64, f64)>,
    /// Packets with data that reached the receiver.
    pub data_packets: Option<u64>,
    /// Packets that the receiver sent.
    pub ack_packets: Option<u64>,
    /// Share of the sender's packets that did not leave the hop.
    #[serde(default)]
    pub dropped_share: Option<f64>,
    /// Jain's index of the connections, where there are several.
    #[serde(default)]
    pub jain: Option<f64>,
    /// Transferred bytes, to which costs are related.
    pub bytes: Option<u64>,
    /// CPU seconds of the programs on both sides.
    pub cpu_s: Option<f64>,
    /// Why the run is not valid: the disturbance by the machine, and the acceptable amount.
    pub invalid: Option<String>,
    /// Several downloads in any order, without those that did not finish.
    #[serde(default)]
    pub downloads: Vec<Download>,
}

/// Duration of a download in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Download {
    /// Total duration.
    pub total_s: f64,
    /// The part of it until the connection was established.
    pub connected_s: f64,
}

impl TransferRun {
    /// `words` with `{peer}`, `{seconds}`, `{bytes}` and the placeholders in `others` replaced.
    pub fn filled(&self, words: &[String], others: &[(&str, &str)]) -> Vec<String> {
        let (seconds, bytes) = (self.seconds.to_string(), self.bytes.to_string());
        let known = [("{peer}", "198.18.0.1"), ("{seconds}", &*seconds), ("{bytes}", &*bytes)];
        let fill = |word: &String| {
            let places = known.iter().chain(others);
            places.fold(word.clone(), |word, (place, with)| word.replace(place, with))
        };
        words.iter().map(fill).collect()
    }

    /// The command that executes it.
    pub fn command(&self) -> String {
        let words = |words: &[String]| self.filled(words, &[]).join(" ");
        self.hop.command(&words(&self.client), &words(&self.server))
    }
}
