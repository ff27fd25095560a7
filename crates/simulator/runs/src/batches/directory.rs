//! The directory of a sweep in batches. Each batch is a Parquet or CSV file whose name identifies its runs.
//!
//! `sweep.json` contains the sweep. Files are renamed to their final name when they are complete, so every batch file
//! is complete. A sweep that was killed therefore continues with the missing batches, and if two workers simulate the
//! same batch, only one file remains. `BLAKE3SUMS` has one line per file in the format of b3sum.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Serialize;
use tacit_scenario::{InputError, bounded};

use super::{Batches, Written};
use crate::error::RunsError;
use crate::record::RunSummary;
use crate::store::write_whole;
use crate::sweep::{Control, Progress};

/// File name of the sweep.
pub(super) const SWEEP: &str = "sweep.json";
/// Directory name of the batches.
const RUNS: &str = "runs";
/// File name of the checksums.
pub(super) const SUMS: &str = "BLAKE3SUMS";
/// Maximum size of a sweep file in bytes: enough for ten thousand places with scenarios of several kilobytes. A million
/// checksums take no more.
pub(super) const MAX_SWEEP: u64 = 256 << 20;

/// Format of the batch files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Includes the provenance as metadata.
    #[default]
    Parquet,
    /// Only rows. [`StoredSweep`](super::StoredSweep) can read them.
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
#[derive(Clone, Debug)]
pub struct Directory {
    path: PathBuf,
    format: Format,
}

/// Reads the runs of a batch, which has these assignments.
pub type Reader<'a> = &'a mut dyn FnMut(&[String], &[RunSummary]);

impl Directory {
    /// Opens `path` for `sweep`, and creates it if it does not exist. Batches are Parquet files.
    ///
    /// # Errors
    /// If it contains another sweep or a sweep of another program, or cannot be read or written.
    pub fn open(path: &Path, sweep: &Batches) -> Result<Self, RunsError> {
        let file = path.join(SWEEP);
        let text = sweep.to_text();
        match bounded::read(&file, MAX_SWEEP) {
            Ok(Some(there)) if there == text.as_bytes() => {}
            Ok(there) => return Err(taken(&file, there.as_deref().unwrap_or_default())),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                fs::create_dir_all(path).map_err(RunsError::io(path))?;
                write_whole(&file, text.as_bytes())?;
            }
            Err(error) => return Err(RunsError::io(&file)(error)),
        }
        Ok(Self { path: path.to_owned(), format: Format::default() })
    }

    /// The same directory with batch files in `format`. Files in other formats are kept but ignored.
    #[must_use]
    pub fn with_format(self, format: Format) -> Self {
        Self { format, ..self }
    }

    /// Path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Path of the directory with the batch files.
    pub fn runs(&self) -> PathBuf {
        self.path.join(RUNS)
    }

    /// The missing batches, and the number of runs that exist.
    ///
    /// # Errors
    /// Same as [`Batches::ids`].
    pub fn missing(&self, sweep: &Batches) -> Result<(Vec<Range<usize>>, usize), RunsError> {
        let mut there = 0;
        let mut missing = Vec::new();
        for batch in sweep.batches() {
            if self.file(sweep, &batch)?.is_file() {
                there += batch.len();
            } else {
                missing.push(batch);
            }
        }
        Ok((missing, there))
    }

    /// The file of a batch. Its name consists of the place, the scheme, the first run, and a hash of the names of its
    /// runs.
    ///
    /// # Errors
    /// Same as [`Batches::ids`].
    pub fn file(&self, sweep: &Batches, batch: &Range<usize>) -> Result<PathBuf, RunsError> {
        let mut hash = blake3::Hasher::new();
        for id in sweep.ids(batch.clone())? {
            hash.update(id.to_string().as_bytes());
        }
        let hash = &hash.finalize().to_hex()[..16];
        let name = format!("{}{hash}.{}", name_of_batch(sweep, batch.start), self.format.extension());
        Ok(self.path.join(name))
    }

    /// Stores a batch that another machine returned as a Parquet file.
    ///
    /// # Errors
    /// If it is not a Parquet file, or cannot be written.
    pub fn keep(&self, sweep: &Batches, batch: &Range<usize>, parquet: &[u8]) -> Result<(), RunsError> {
        const MAGIC: &[u8] = b"PAR1";
        if !(parquet.starts_with(MAGIC) && parquet.ends_with(MAGIC)) {
            let what = format!("runs {} to {} are no Parquet file", batch.start, batch.end);
            return Err(InputError::new("sweep", what).into());
        }
        self.write(sweep, batch, parquet)
    }

    pub(super) fn write(
        &self,
        sweep: &Batches,
        batch: &Range<usize>,
        content: &[u8],
    ) -> Result<(), RunsError> {
        let file = self.file(sweep, batch)?;
        let folder = file.parent().unwrap_or(&self.path);
        fs::create_dir_all(folder).map_err(RunsError::io(folder))?;
        // Written before the file, so that every file has a checksum even if the writer is killed.
        self.note_sum(&file, content)?;
        write_whole(&file, content)
    }

    /// Appends the checksum of `file`, which will have this content.
    fn note_sum(&self, file: &Path, content: &[u8]) -> Result<(), RunsError> {
        let sums = self.path.join(SUMS);
        let name = file.strip_prefix(&self.path).unwrap_or(file).display();
        let line = format!("{}  {name}\n", blake3::hash(content));
        // A single write, so that the lines of two writers are not interleaved.
        let mut to =
            OpenOptions::new().append(true).create(true).open(&sums).map_err(RunsError::io(&sums))?;
        to.write_all(line.as_bytes()).map_err(RunsError::io(&sums))
    }

    /// Simulates the missing batches one after another, each on all cores.
    ///
    /// # Errors
    /// Same as [`Batches::make`]. Also if a file cannot be written. Finished batches are kept.
    pub fn complete(&self, sweep: &Batches, control: Control<'_>) -> Result<Swept, RunsError> {
        self.complete_and_read(sweep, control, None)
    }

    /// Like [`Directory::complete`], and passes all runs to `read`, a batch at a time. Those whose files exist come from
    /// the cache, or are simulated again.
    ///
    /// # Errors
    /// Same as [`Directory::complete`].
    pub fn complete_and_read(
        &self,
        sweep: &Batches,
        control: Control<'_>,
        mut read: Option<Reader<'_>>,
    ) -> Result<Swept, RunsError> {
        let (missing, reused) = self.missing(sweep)?;
        let total = sweep.runs();
        (control.progress)(Progress::Started { total, reused });
        let of_batch = |progress: Progress<'_>| match progress {
            // Only the start of the whole sweep is reported, not that of each batch.
            Progress::Started { .. } => {}
            other => (control.progress)(other),
        };
        let mut finished = reused;
        let there = |batch: &Range<usize>| !missing.contains(batch);
        let wanted = sweep.batches().filter(|batch| read.is_some() || !there(batch)).collect::<Vec<_>>();
        for batch in &wanted {
            let made = sweep.make(batch.clone(), Control { progress: &of_batch, ..control });
            let made = made.map_err(|error| match error {
                RunsError::Interrupted { .. } => {
                    RunsError::Interrupted { finished, total, resume_from: Some(self.path.clone()) }
                }
                other => other,
            })?;
            if let Some(read) = &mut read {
                read(&sweep.place_of(batch.start).at, &made);
            }
            if there(batch) {
                continue;
            }
            self.write(sweep, batch, &sweep.file(batch.start, &made, self.format)?)?;
            finished += batch.len();
        }
        Ok(Swept { directory: self.path.clone(), runs: total, reused, files: sweep.batches().count() })
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

/// The file name of the batch that starts with run `first`, relative to the directory and without the hash.
pub(super) fn name_of_batch(sweep: &Batches, first: usize) -> String {
    let place = first / sweep.runs_of_place();
    let scheme = sweep.schemes[first / sweep.runs_of_subject() % sweep.schemes.len()].name;
    format!("{RUNS}/{place:05}-{scheme}/{first:09}-")
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
