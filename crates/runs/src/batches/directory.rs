//! The directory of a sweep of batches: a file for each batch, Parquet or CSV, whose name says which runs are in it.
//!
//! `sweep.json` is the sweep. A batch that is there is whole, for files appear under their names when they are; so a sweep that
//! was killed goes on with the batches that are missing, and a batch that two workers made is one file. `BLAKE3SUMS` has a line
//! for each, as b3sum prints and checks them.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Serialize;
use tacit_scenario::{InputError, bounded};

use super::{Batches, Written};
use crate::error::RunsError;
use crate::store::write_whole;
use crate::sweep::{Control, Progress};

/// The sweep as text.
pub(super) const SWEEP: &str = "sweep.json";
/// The batches.
const RUNS: &str = "runs";
/// The checksums of batches.
pub(super) const SUMS: &str = "BLAKE3SUMS";
/// Largest sweep in bytes: ten thousand places of scenarios of some kilobytes. A million checksums have no more.
pub(super) const MAX_SWEEP: u64 = 256 << 20;

/// Format of the files of batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// With where the runs come from in its metadata.
    #[default]
    Parquet,
    /// Rows alone, which [`StoredSweep`](super::StoredSweep) reads.
    Csv,
}

impl Format {
    /// End of the files' names.
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

impl Directory {
    /// Opens `path` for `sweep`, making it where it is not there. Batches are Parquet files.
    ///
    /// # Errors
    /// Where it holds another sweep, or one of another program; and where it cannot be read or written.
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

    /// The same with batches in files of `format`; those of other formats stay, and count for nothing.
    #[must_use]
    pub fn with_format(self, format: Format) -> Self {
        Self { format, ..self }
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Files of batches are below it.
    pub fn runs(&self) -> PathBuf {
        self.path.join(RUNS)
    }

    /// The batches that are not there yet, and how many runs are.
    ///
    /// # Errors
    /// As [`Batches::ids`].
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

    /// The file of a batch: its place and scheme, its first run, and a hash of the names of its runs.
    ///
    /// # Errors
    /// As [`Batches::ids`].
    pub fn file(&self, sweep: &Batches, batch: &Range<usize>) -> Result<PathBuf, RunsError> {
        let mut hash = blake3::Hasher::new();
        for id in sweep.ids(batch.clone())? {
            hash.update(id.to_string().as_bytes());
        }
        let hash = &hash.finalize().to_hex()[..16];
        let name = format!("{}{hash}.{}", name_of_batch(sweep, batch.start), self.format.extension());
        Ok(self.path.join(name))
    }

    /// Keeps a batch that was made somewhere as a Parquet file.
    ///
    /// # Errors
    /// Where it is no Parquet file, or cannot be written.
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
        // Before the file: one that is there has its checksum, whenever its writer is killed.
        self.note_sum(&file, content)?;
        write_whole(&file, content)
    }

    /// Notes the checksum of `file`, which will have `content`.
    fn note_sum(&self, file: &Path, content: &[u8]) -> Result<(), RunsError> {
        let sums = self.path.join(SUMS);
        let name = file.strip_prefix(&self.path).unwrap_or(file).display();
        let line = format!("{}  {name}\n", blake3::hash(content));
        // In one write, for lines of two writers do not mix then.
        let mut to =
            OpenOptions::new().append(true).create(true).open(&sums).map_err(RunsError::io(&sums))?;
        to.write_all(line.as_bytes()).map_err(RunsError::io(&sums))
    }

    /// Makes the batches that are missing, one after the other, each on all cores.
    ///
    /// # Errors
    /// As [`Batches::make`]; and where a file cannot be written. Batches that were finished stay.
    pub fn complete(&self, sweep: &Batches, control: Control<'_>) -> Result<Swept, RunsError> {
        let (missing, reused) = self.missing(sweep)?;
        let total = sweep.runs();
        (control.progress)(Progress::Started { total, reused });
        let of_batch = |progress: Progress<'_>| match progress {
            // The sweep has started already.
            Progress::Started { .. } => {}
            other => (control.progress)(other),
        };
        let mut finished = reused;
        for batch in &missing {
            let made = sweep.make(batch.clone(), Control { progress: &of_batch, ..control });
            let made = made.map_err(|error| match error {
                RunsError::Interrupted { .. } => {
                    RunsError::Interrupted { finished, total, resume_from: Some(self.path.clone()) }
                }
                other => other,
            })?;
            self.write(sweep, batch, &sweep.file(&made, self.format)?)?;
            finished += batch.len();
        }
        Ok(Swept { directory: self.path.clone(), runs: total, reused, files: sweep.batches().count() })
    }
}

/// A sweep that is whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Swept {
    /// Where it is kept.
    pub directory: PathBuf,
    /// Its runs.
    pub runs: usize,
    /// Those that were there already.
    pub reused: usize,
    /// Files below `runs` of the directory.
    pub files: usize,
}

/// How the name of the file begins that has the batch from run `first` on: below the directory, up to the hash.
pub(super) fn name_of_batch(sweep: &Batches, first: usize) -> String {
    let place = first / sweep.runs_of_place();
    format!("{RUNS}/{place:05}-{}/{first:09}-", sweep.scheme(first))
}

/// `file` holds `there`, which is not the sweep that is asked for.
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
