//! The directory of a sweep in batches. Each batch has a record of its runs, and a Parquet or CSV file of them for other
//! programs. Their names identify the runs.
//!
//! `sweep.json` contains the sweep. Files are renamed to their final name when they are complete. A sweep that was killed
//! therefore continues with the missing batches, and if two workers simulate the same batch, only one file remains.

use std::fs;
use std::io::ErrorKind;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Serialize;
use tacit_scenario::{InputError, bounded};

use super::record_file::{RECORD, RUNS, hash_of, name_of_batch, named, read};
use super::{Batches, Written, from_text, to_text};
use crate::error::RunsError;
use crate::record::RunSummary;
use crate::store::write_whole;
use crate::sweep::{Control, Progress};

/// File name of the sweep.
pub(super) const SWEEP: &str = "sweep.json";
/// Maximum size of a sweep file in bytes: enough for ten thousand places with scenarios of several kilobytes.
pub(super) const MAX_SWEEP: u64 = 256 << 20;

/// Format of the files for other programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Includes the provenance as metadata.
    #[default]
    Parquet,
    /// Only rows.
    Csv,
}

impl Format {
    /// File name extension.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::Csv => "csv",
        }
    }
}

/// A directory that holds the batches of one sweep.
#[derive(Debug)]
pub struct Directory {
    pub(super) path: PathBuf,
    pub(super) sweep: Batches,
    format: Format,
}

/// Reads the runs of a batch, which has these assignments.
pub type Reader<'a> = &'a mut dyn FnMut(&[String], &[RunSummary]);

impl Directory {
    /// Opens `path` for `sweep`, and creates it if it does not exist. The files for other programs are Parquet.
    ///
    /// # Errors
    /// If it contains another sweep or a sweep of another program, or cannot be read or written.
    pub fn open(path: &Path, sweep: Batches) -> Result<Self, RunsError> {
        let file = path.join(SWEEP);
        let text = to_text(&sweep.written);
        match bounded::read(&file, MAX_SWEEP) {
            Ok(Some(there)) if there == text.as_bytes() => {}
            Ok(there) => return Err(taken(&file, there.as_deref().unwrap_or_default())),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                fs::create_dir_all(path).map_err(RunsError::io(path))?;
                write_whole(&file, text.as_bytes())?;
            }
            Err(error) => return Err(RunsError::io(&file)(error)),
        }
        Ok(Self { path: path.to_owned(), sweep, format: Format::default() })
    }

    /// Opens `path` for reading, also with a sweep of another build of tacit; `None` if it has no sweep.
    ///
    /// # Errors
    /// If the description of the sweep is damaged or cannot be read.
    pub fn existing(path: &Path) -> Result<Option<Self>, RunsError> {
        let file = path.join(SWEEP);
        let bytes = match bounded::read(&file, MAX_SWEEP) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            read => read.map_err(RunsError::io(&file))?,
        };
        let wrong = || InputError::new(file.display(), "no text, or too long a one");
        let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok()).ok_or_else(wrong)?;
        let sweep = Batches::from_written(from_text::<Written>(&text)?)?;
        Ok(Some(Self { path: path.to_owned(), sweep, format: Format::default() }))
    }

    /// The sweep.
    pub const fn sweep(&self) -> &Batches {
        &self.sweep
    }

    /// The same directory with files in `format`. Files in other formats are kept but ignored.
    #[must_use]
    pub fn with_format(self, format: Format) -> Self {
        Self { format, ..self }
    }

    /// Path of the directory with the batch files.
    pub fn runs(&self) -> PathBuf {
        self.path.join(RUNS)
    }

    /// The batches without a record that is whole or without their file, and the number of runs of the others.
    ///
    /// # Errors
    /// Same as [`Batches::ids`].
    pub fn missing(&self) -> Result<(Vec<Range<usize>>, usize), RunsError> {
        let mut there = 0;
        let mut missing = Vec::new();
        for batch in self.sweep.batches() {
            match self.complete_batch(&self.record(&batch)?, &batch) {
                Some(runs) => there += runs.len(),
                None => missing.push(batch),
            }
        }
        Ok((missing, there))
    }

    /// The runs of a batch whose record is whole and that has its file.
    fn complete_batch(&self, record: &Path, batch: &Range<usize>) -> Option<Vec<RunSummary>> {
        self.beside(record).is_file().then(|| self.read(record, batch))??.ok()
    }

    /// The file of a batch for other programs.
    ///
    /// # Errors
    /// Same as [`Batches::ids`].
    pub fn file(&self, batch: &Range<usize>) -> Result<PathBuf, RunsError> {
        Ok(self.beside(&self.record(batch)?))
    }

    /// The file for other programs beside a record.
    fn beside(&self, record: &Path) -> PathBuf {
        record.with_extension(self.format.extension())
    }

    /// The record of a batch. Its name consists of the place, the scheme, the first run, and a hash of the names of its
    /// runs.
    ///
    /// # Errors
    /// Same as [`Batches::ids`].
    pub fn record(&self, batch: &Range<usize>) -> Result<PathBuf, RunsError> {
        let hash = hash_of(self.sweep.ids(batch.clone())?.iter());
        Ok(self.path.join(format!("{}{hash}.{RECORD}", name_of_batch(&self.sweep, batch.start))))
    }

    /// The runs of the record of a batch, or what is wrong with it; `None` if it does not exist.
    fn read(&self, record: &Path, batch: &Range<usize>) -> Option<Result<Vec<RunSummary>, RunsError>> {
        record.exists().then(|| read(record, batch, &self.sweep.place_of(batch.start).scenario_text))
    }

    /// Stores a batch that another machine returned, see [`Order::make`](super::Order::make).
    ///
    /// # Errors
    /// If it is not the record of this batch, or cannot be written.
    pub fn keep(&self, batch: &Range<usize>, record: &[u8]) -> Result<(), RunsError> {
        let path = self.record(batch)?;
        write_whole(&path, record)?;
        let Some(runs) = self.read(&path, batch).and_then(Result::ok) else {
            fs::remove_file(&path).map_err(RunsError::io(&path))?;
            return Err(InputError::new("sweep", format!("no record of {} came", named(batch))).into());
        };
        self.sweep.export(&self.beside(&path), batch.start, &runs, self.format)
    }

    /// Simulates the missing batches one after another, each on all cores.
    ///
    /// # Errors
    /// Same as [`Batches::make`]. Also if a file cannot be written. Finished batches are kept.
    pub fn complete(&self, control: Control<'_>) -> Result<Swept, RunsError> {
        self.complete_and_read(control, None)
    }

    /// Like [`Directory::complete`], and passes all runs to `read`, a batch at a time.
    ///
    /// # Errors
    /// Same as [`Directory::complete`].
    pub fn complete_and_read(
        &self,
        control: Control<'_>,
        mut read: Option<Reader<'_>>,
    ) -> Result<Swept, RunsError> {
        let total = self.sweep.runs();
        let mut reused = 0;
        // The batches to simulate, and complete ones behind them that the reader gets later, in order.
        let mut rest = Vec::new();
        for batch in self.sweep.batches() {
            let record = self.record(&batch)?;
            let runs = self.complete_batch(&record, &batch);
            let is_complete = runs.is_some();
            reused += if is_complete { batch.len() } else { 0 };
            match (runs, &mut read) {
                (Some(runs), Some(read)) if rest.is_empty() => {
                    read(&self.sweep.place_of(batch.start).at, &runs);
                }
                (Some(_), None) => {}
                _ => rest.push((batch, record, is_complete)),
            }
        }
        (control.progress)(Progress::Started { total, reused });
        let of_batch = |progress: Progress<'_>| match progress {
            // Only the start of the whole sweep is reported, not that of each batch.
            Progress::Started { .. } => {}
            other => (control.progress)(other),
        };
        let mut finished = reused;
        for (batch, record, is_complete) in &rest {
            let recorded = self.read(record, batch);
            if let Some(Err(_)) = &recorded {
                let what = format!("{}: damaged, its runs are made again", record.display());
                (control.progress)(Progress::Warning(&what));
            }
            let runs = match recorded.and_then(Result::ok) {
                Some(runs) => runs,
                None => {
                    let runs = self.sweep.make(batch.clone(), Control { progress: &of_batch, ..control });
                    let runs = runs.map_err(|error| match error {
                        RunsError::Interrupted { .. } => {
                            RunsError::Interrupted { finished, total, resume_from: Some(self.path.clone()) }
                        }
                        other => other,
                    })?;
                    write_whole(record, &self.sweep.record(&runs)?)?;
                    runs
                }
            };
            if let Some(read) = &mut read {
                read(&self.sweep.place_of(batch.start).at, &runs);
            }
            if !is_complete {
                self.sweep.export(&self.beside(record), batch.start, &runs, self.format)?;
                finished += batch.len();
            }
        }
        Ok(Swept { directory: self.path.clone(), runs: total, reused, files: self.sweep.batches().count() })
    }
}

/// A complete sweep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Swept {
    /// The directory.
    pub directory: PathBuf,
    /// Number of runs.
    pub runs: usize,
    /// Number of runs that already existed.
    pub reused: usize,
    /// Number of files in the subdirectory `runs`.
    pub files: usize,
}

/// The error that `file` contains a sweep other than the requested one.
fn taken(file: &Path, there: &[u8]) -> RunsError {
    let written: Option<Written> = serde_json::from_slice(there).ok();
    let by_another = written.is_some_and(|written| written.check_program().is_err());
    let what = if by_another {
        "a sweep of another build of tacit is kept here, whose runs may come out otherwise"
    } else {
        "another sweep is kept here"
    };
    InputError::new(file.display(), what).allowed("a directory for each sweep").into()
}
