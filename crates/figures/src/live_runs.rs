//! Live runs that figures want, and their results.
//!
//! This room makes no live runs: a figure says which it wants, and the caller brings the program that makes them
//! ([`MakeLive`]). They are made before all else, because they fork a process that must have a single thread.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::shell_hop::ShellHop;
use tacit_runs::RunsError;

/// Maker of live runs. An error of a run is one line.
pub trait MakeLive {
    /// Why this machine makes none; asked before the first run of each figure. `keeps` tells that its runs are kept.
    ///
    /// # Errors
    /// Where the store that keeps them cannot be opened.
    fn skip_reason(&mut self, _keeps: bool) -> Result<Option<String>, RunsError> {
        Ok(None)
    }

    /// Why runs like this one cannot be made here: a program is not there.
    fn missing(&mut self, _run: &TransferRun) -> Option<String> {
        None
    }

    /// Makes `runs`, all of them at the same time; a report for each.
    ///
    /// # Errors
    /// Where one cannot be made.
    fn make(&mut self, runs: &[TransferRun]) -> Result<Vec<TransferReport>, String>;
}

impl dyn MakeLive + '_ {
    /// Makes one run.
    ///
    /// # Errors
    /// Where it cannot be made.
    pub(super) fn one(&mut self, run: &TransferRun) -> Result<TransferReport, RunsError> {
        let reports = self.all(std::slice::from_ref(run), || run.command())?;
        Ok(reports.into_iter().next().unwrap_or_default())
    }

    /// Makes all `runs` at the same time; `command` tells how.
    ///
    /// # Errors
    /// Where one cannot be made.
    pub(super) fn all(
        &mut self,
        runs: &[TransferRun],
        command: impl Fn() -> String,
    ) -> Result<Vec<TransferReport>, RunsError> {
        let failed = |said: String| RunsError::Program { command: command(), said };
        let reports = self.make(runs).map_err(failed)?;
        if reports.len() < runs.len() {
            return Err(failed("gave fewer reports than runs".to_owned()));
        }
        Ok(reports)
    }
}

/// Results of the live runs of figures, by the figures' ids.
#[derive(Clone, Debug, Default)]
pub struct LiveRuns(pub(super) BTreeMap<String, Made>);

/// The live runs of a figure, or why this machine made none.
pub(super) type Made = Result<Vec<TransferPoint>, String>;

impl LiveRuns {
    /// The live runs of figure `id`; nothing where none were made.
    pub(super) fn get(&self, id: &str) -> &[TransferPoint] {
        self.0.get(id).and_then(|made| made.as_deref().ok()).unwrap_or_default()
    }

    /// Why there is nothing for figure `id`.
    pub(super) fn skip_reason(&self, id: &str) -> Option<String> {
        match self.0.get(id) {
            Some(made) => made.as_ref().err().cloned(),
            None => Some("no live runs were made".to_owned()),
        }
    }
}

/// The live runs of an arm at one place, or why there are none.
#[derive(Clone, Debug)]
pub(super) struct TransferPoint {
    /// Place of the arm in the file.
    pub arm: usize,
    pub variant: Option<String>,
    pub x: f64,
    pub runs: Result<Vec<TransferReport>, String>,
}

/// Source of a live run's goodput.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoodputSource {
    /// The program on the client's side, in a line of JSON.
    Client,
    /// The hop, of TCP: the bytes that its receiver acknowledged.
    Hop,
    /// The client's side, in a line for each of several downloads: `took`, the seconds it took, and those until it was
    /// connected.
    Downloads,
}

/// A live run that a figure wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransferRun {
    /// The hop.
    pub hop: ShellHop,
    /// The command on the server's side, with places for [`Self::filled`].
    pub server: Vec<String>,
    /// The command on the client's.
    pub client: Vec<String>,
    /// Programs that those start, beside the first words.
    pub programs: &'static [&'static str],
    /// How long the run lasts, at most.
    pub seconds: u32,
    /// Length of the file that is there, in bytes; zero where there is none.
    pub bytes: u64,
    /// Whose numbers count.
    pub goodput_source: GoodputSource,
    /// Where it is valid it is kept, and not made again.
    pub kept: bool,
}

/// Results of a live run. A run that is kept is kept without the values that only other runs are asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TransferReport {
    /// Goodput of each full second in Mb/s.
    pub mbps: Vec<f64>,
    /// Bytes of a file and the seconds it took.
    pub file: Option<(u64, f64)>,
    /// Packets with data that reached the client.
    pub data_packets: Option<u64>,
    /// Packets that the client sent.
    pub ack_packets: Option<u64>,
    /// Bytes that crossed, as the measure of their cost.
    pub bytes: Option<u64>,
    /// Processor seconds of the programs of both sides.
    pub cpu_s: Option<f64>,
    /// Why the run is not valid: the disturbance by the machine, and how much of that a run bears.
    pub invalid: Option<String>,
    /// TCP's pure ACKs per segment with data.
    #[serde(skip)]
    pub ack_ratio: Option<f64>,
    /// How long the client's and the server's programs waited for a processor, on average, in microseconds;
    /// none where the kernel does not tell.
    #[serde(skip)]
    pub waited_us: Option<[f64; 2]>,
    /// Several downloads, in any order; those that did not end are not there.
    #[serde(skip)]
    pub downloads: Vec<Download>,
}

/// How long a download took, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Download {
    /// Until it had ended.
    pub total_s: f64,
    /// Of that, until the connection was there.
    pub connected_s: f64,
}

impl TransferRun {
    /// `words` with their places filled in: `{peer}`, `{seconds}` and `{bytes}`, and those that `own` names.
    pub fn filled(&self, words: &[String], own: &[(&str, &str)]) -> Vec<String> {
        let (seconds, bytes) = (self.seconds.to_string(), self.bytes.to_string());
        let known = [("{peer}", "198.18.0.1"), ("{seconds}", &*seconds), ("{bytes}", &*bytes)];
        let fill = |word: &String| {
            let places = known.iter().chain(own);
            places.fold(word.clone(), |word, (place, with)| word.replace(place, with))
        };
        words.iter().map(fill).collect()
    }

    /// The command that makes it.
    pub fn command(&self) -> String {
        let words = |words: &[String]| self.filled(words, &[]).join(" ");
        self.hop.command(&words(&self.client), &words(&self.server))
    }
}
