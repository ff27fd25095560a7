//! Live runs that figures want, and what came of them.
//!
//! This room makes no live runs: a figure says which it wants, and the caller brings the program that makes them
//! ([`MakeLive`]). They are made before all else, because they fork a process that must have a single thread.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::shell_hop::ShellHop;
use tacit_proto::units::Bytes;
use tacit_runs::RunsError;

/// Sorts of live runs, by the programs that they take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiveSort {
    /// Downloads by iperf3, of `[live]`.
    Iperf,
    /// Downloads of a file beside an upload, of `[downloads]`.
    Downloads,
    /// Transfers by the programs of each arm, of `[transfers]`.
    Transfers,
}

/// Who makes live runs. An error of a run is one line.
pub trait MakeLive {
    /// Why this machine makes none of this sort; asked before the first of them.
    ///
    /// # Errors
    /// Where what keeps them cannot be opened.
    fn skip_reason(&mut self, _sort: LiveSort) -> Result<Option<String>, RunsError> {
        Ok(None)
    }

    /// Makes a run of iperf3.
    ///
    /// # Errors
    /// Where it cannot be made.
    fn iperf(&mut self, _run: &LiveRun) -> Result<LiveReport, String> {
        Err(NOT_MADE.to_owned())
    }

    /// Makes runs of downloads, all of them at the same time.
    ///
    /// # Errors
    /// Where one cannot be made.
    fn downloads(&mut self, _runs: &[DownloadRun]) -> Result<Vec<DownloadReport>, String> {
        Err(NOT_MADE.to_owned())
    }

    /// Why transfers like this one cannot be made here: a program is not there.
    fn missing(&mut self, _run: &TransferRun) -> Option<String> {
        None
    }

    /// Makes a transfer.
    ///
    /// # Errors
    /// Where it cannot be made.
    fn transfer(&mut self, _run: &TransferRun) -> Result<TransferReport, String> {
        Err(NOT_MADE.to_owned())
    }
}

const NOT_MADE: &str = "nothing here makes such runs";

/// What the live runs of figures gave, or why there are none.
#[derive(Clone, Debug, Default)]
pub struct LiveRuns {
    pub(super) pairs: PerFigure<Pair>,
    pub(super) downloads: PerFigure<SenderDownloads>,
    pub(super) transfers: PerFigure<TransferPoint>,
}

/// What a machine made for each figure that wants it, by the figure's id, or why it did not.
#[derive(Clone, Debug)]
pub(super) struct PerFigure<T>(pub BTreeMap<String, Result<Vec<T>, String>>);

impl<T> Default for PerFigure<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T> PerFigure<T> {
    /// What was made for figure `id`; nothing of what was not made.
    pub fn get(&self, id: &str) -> &[T] {
        self.0.get(id).and_then(|runs| runs.as_deref().ok()).unwrap_or_default()
    }

    /// Why there is nothing for figure `id`.
    pub fn skip_reason(&self, id: &str) -> Option<String> {
        match self.0.get(id) {
            Some(Ok(_)) => None,
            Some(Err(skip_reason)) => Some(skip_reason.clone()),
            None => Some("no live runs were made".to_owned()),
        }
    }
}

/// A live run that a figure wants: iperf3 downloads through a hop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveRun {
    /// The hop; its scheme is one of the table.
    pub hop: ShellHop,
    /// How long iperf3 downloads.
    pub seconds: u32,
}

/// What came of a live run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LiveReport {
    /// Goodput of each full second in Mb/s; none where the run is not valid.
    pub mbps: Vec<f64>,
    /// ACKs per segment.
    pub ack_ratio: Option<f64>,
    /// How long the client's and the server's programs waited for a processor, on average, in microseconds;
    /// none where the kernel does not tell.
    pub waited_us: Option<[f64; 2]>,
    /// Why the run is not valid: what the machine did to it, and how much of that a run bears.
    pub invalid: Option<String>,
}

impl LiveReport {
    /// Why nothing can be claimed of it.
    pub(super) fn disturbance(&self) -> Option<&str> {
        let unknown = self.waited_us.is_none().then_some("nothing tells how long its programs waited");
        self.invalid.as_deref().or(unknown)
    }
}

/// Stock and HACK at one place of a figure.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    pub acks: String,
    pub x: f64,
    pub stock: LiveReport,
    pub hack: LiveReport,
}

impl LiveRun {
    /// What iperf3 is told on the client's side.
    pub fn client_words(&self) -> Vec<String> {
        let seconds = self.seconds.to_string();
        ["iperf3", "-c", "198.18.0.1", "-R", "-t", &seconds].map(str::to_owned).to_vec()
    }

    /// What it is told on the server's.
    pub fn server_words(&self) -> Vec<String> {
        ["iperf3", "-s", "-1"].map(str::to_owned).to_vec()
    }

    /// The command that makes it.
    pub fn command(&self) -> String {
        self.hop.command(&self.client_words().join(" "), &self.server_words().join(" "))
    }
}

/// A live run that a figure wants: downloads beside an upload, one started after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DownloadRun {
    /// The hop, with the congestion control of both sides' routes; `rre` comes by [`Self::server_script`].
    pub hop: ShellHop,
    /// Congestion control of the server: one of the kernel's, or `rre`.
    pub sender: &'static str,
    /// Length of the file in bytes.
    pub bytes: u32,
    /// How many downloads.
    pub count: u32,
    /// When the first starts after the upload did, and how long after one the next starts, in milliseconds.
    pub first_ms: u32,
    /// See `first_ms`.
    pub slot_ms: u32,
    /// Size of the receiver's buffer where the scenario has one; `None` leaves it to the kernel's autotuning.
    pub receive_buffer: Option<Bytes>,
}

/// What came of a live run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DownloadReport {
    /// The downloads, in any order; those that did not end are not there.
    pub downloads: Vec<Download>,
    /// Why the run is not valid: what the machine did to it.
    pub invalid: Option<String>,
}

/// How long a download took, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Download {
    /// Until it had ended.
    pub total_s: f64,
    /// Of that, until the connection was there.
    pub connected_s: f64,
}

/// The live downloads of a sender.
#[derive(Clone, Debug)]
pub(super) struct SenderDownloads {
    pub downloads: Vec<Download>,
    /// Why nothing is claimed of them.
    pub disturbed: Option<String>,
}

/// Who says what a live run carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoodputSource {
    /// The program on the client's side, in a line of JSON.
    Client,
    /// The hop, of TCP: what its receiver acknowledged.
    Hop,
}

/// A live run that a figure wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransferRun {
    /// The hop.
    pub hop: ShellHop,
    /// What runs on the server's side, with places for [`Self::filled`].
    pub server: Vec<String>,
    /// What runs on the client's.
    pub client: Vec<String>,
    /// How long the run lasts, at most.
    pub seconds: u32,
    /// Length of the file that is there, in bytes; zero where there is none.
    pub bytes: u64,
    /// Whose numbers count.
    pub goodput_source: GoodputSource,
}

/// What came of a live run.
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
    /// Bytes that crossed, for what they cost.
    pub bytes: Option<u64>,
    /// Processor seconds of the programs of both sides.
    pub cpu_s: Option<f64>,
    /// Why the run is not valid: what the machine did to it.
    pub invalid: Option<String>,
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

impl TransferRun {
    /// `words` with their places filled in: `{peer}`, `{seconds}` and `{bytes}`, and what `own` names.
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
