//! The record of results: a file to which each finished run and each finished sweep is appended once.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use tacit_scenario::table::count;
use tacit_sim::capture::AtomicFile;

use super::contents::Contents;
use super::entry::{self, Entry, EntryLocation, Kind, State};
use crate::error::RunsError;
use crate::record::{RunRecord, RunSummary};

/// Results that belong to no finished sweep are removed when they exceed this size and that of the last sweep.
const LEFT_OVER: u64 = 64 << 20;

/// The record with the locations of its intact entries. Only the first damaged entry is stored, because a file may be
/// full of them.
#[derive(Debug)]
pub(crate) struct Log {
    pub path: PathBuf,
    pub file: File,
    lines: Vec<(Kind, EntryLocation)>,
    damaged: Option<Damaged>,
    /// The last entry is incomplete.
    torn: bool,
}

/// Entries that do not match their checksum.
#[derive(Clone, Copy, Debug)]
struct Damaged {
    /// Number of the first one, counted from 1.
    number: u64,
    offset: u64,
    others: u64,
}

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "record {} (at byte {})", self.number, self.offset)?;
        if self.others > 0 { write!(f, ", like {} more,", self.others) } else { Ok(()) }
    }
}

impl Log {
    /// Verifies every entry of the record at `path`.
    pub fn open(path: &Path) -> Result<Self, RunsError> {
        Self::from_file(path, File::open(path).map_err(RunsError::io(path))?)
    }

    /// Verifies every entry of the record in `file`, which is at `path`.
    pub fn from_file(path: &Path, file: File) -> Result<Self, RunsError> {
        if !file.metadata().map_err(RunsError::io(path))?.is_file() {
            return Err(RunsError::io(path)(io::Error::other("no regular file")));
        }
        let mut reader = BufReader::with_capacity(1 << 16, &file);
        let (mut lines, mut damaged, mut torn) = (Vec::new(), None::<Damaged>, false);
        let (mut number, mut offset) = (0, 0);
        while let Some(line) = entry::next(&mut reader, offset).map_err(RunsError::io(path))? {
            number += 1;
            offset += line.bytes;
            match (line.state, &mut damaged) {
                (State::Sound(kind), _) => lines.push((kind, line)),
                (State::Torn, _) => torn = true,
                (State::Damaged, Some(damaged)) => damaged.others += 1,
                (State::Damaged, none) => *none = Some(Damaged { number, offset: line.offset, others: 0 }),
            }
        }
        Ok(Self { path: path.to_owned(), file, lines, damaged, torn })
    }

    /// Verifies the record at `path`. A damaged entry is an error; an incomplete last entry is ignored.
    pub fn open_sound(path: &Path) -> Result<Self, RunsError> {
        let log = Self::open(path)?;
        match log.damaged {
            Some(damaged) => Err(RunsError::store(path)(format!(
                "{damaged} does not fit its checksum (the command that made it makes it again)"
            ))),
            None => Ok(log),
        }
    }

    /// True if no run was recorded after the last finished sweep.
    pub fn ends_with_a_sweep(&self) -> bool {
        self.lines.last().is_some_and(|(kind, _)| *kind == Kind::Sweep)
    }

    pub fn entries(&self, wanted: Kind) -> impl DoubleEndedIterator<Item = &EntryLocation> {
        self.lines.iter().filter(move |(kind, _)| *kind == wanted).map(|(_, line)| line)
    }

    /// All runs without their parts; `None` for one that this version cannot read or whose values are implausible.
    pub fn runs(&self) -> impl Iterator<Item = (&EntryLocation, Option<RunSummary>)> {
        // Texts shared by many runs are stored once.
        let mut texts: BTreeSet<Arc<str>> = BTreeSet::new();
        let mut shared = move |text: &mut Arc<str>| match texts.get(text) {
            Some(known) => *text = known.clone(),
            None => drop(texts.insert(text.clone())),
        };
        self.entries(Kind::Run).map(move |line| {
            match entry::read::<RunSummary, IgnoredAny>(&self.file, line) {
                Ok(Entry::Run(mut run)) if run.is_plausible() => {
                    shared(&mut run.scenario_text);
                    shared(&mut run.version);
                    (line, Some(run))
                }
                _ => (line, None),
            }
        })
    }

    /// A run with its parts.
    pub fn run(&self, line: &EntryLocation) -> Result<RunRecord, RunsError> {
        match entry::read::<RunRecord, IgnoredAny>(&self.file, line).map_err(RunsError::store(&self.path))? {
            Entry::Run(run) => Ok(run),
            Entry::Sweep(_) => Err(RunsError::store(&self.path)("a sweep where a run should be")),
        }
    }

    /// The run of a record that has no other entry; `None` if it has others, or a damaged one.
    pub fn only_run(&self) -> Option<RunRecord> {
        let [(Kind::Run, line)] = &self.lines[..] else { return None };
        if self.torn || self.damaged.is_some() {
            return None;
        }
        self.run(line).ok()
    }

    /// All finished sweeps, last one first.
    pub(super) fn sweeps(&self) -> impl Iterator<Item = Result<Contents, RunsError>> {
        self.entries(Kind::Sweep).rev().filter_map(|line| {
            match entry::read::<IgnoredAny, Contents>(&self.file, line) {
                Ok(Entry::Sweep(contents)) => Some(Ok(contents)),
                Ok(Entry::Run(_)) => None,
                Err(error) => Some(Err(RunsError::store(&self.path)(error))),
            }
        })
    }

    /// Rewrites the file with the intact entries that satisfy `wanted`.
    fn keep_only(&self, wanted: impl Fn(&EntryLocation) -> bool) -> Result<(), RunsError> {
        let write = || -> io::Result<()> {
            let mut out = AtomicFile::create(&self.path)?;
            let mut file = &self.file;
            for (_, line) in self.lines.iter().filter(|(_, line)| wanted(line)) {
                file.seek(SeekFrom::Start(line.offset))?;
                io::copy(&mut file.take(line.bytes), &mut out)?;
            }
            out.commit()
        };
        write().map_err(RunsError::io(&self.path))
    }

    /// Removes the entries that the last sweep does not need, if they take much space.
    pub fn compact(&self, needed: &BTreeSet<u64>) -> Result<(), RunsError> {
        let last = self.entries(Kind::Sweep).next_back().map(|line| line.offset);
        let wanted = |line: &EntryLocation| needed.contains(&line.offset) || Some(line.offset) == last;
        let (mut used, mut left_over) = (0, 0);
        for (_, line) in &self.lines {
            *if wanted(line) { &mut used } else { &mut left_over } += line.bytes;
        }
        if left_over > used.max(LEFT_OVER) { self.keep_only(wanted) } else { Ok(()) }
    }
}

/// The content of the record at `path` that has only these runs.
pub(crate) fn record_of<R: Serialize>(runs: &[R], path: &Path) -> Result<Vec<u8>, RunsError> {
    let lines = runs.iter().map(|run| entry::line(&Entry::Run::<_, ()>(run)));
    Ok(lines.collect::<Result<Vec<_>, _>>().map_err(RunsError::store(path))?.concat())
}

/// A record that is open for appending.
#[derive(Debug)]
pub struct Appender {
    path: PathBuf,
    file: File,
}

impl Appender {
    /// Opens the record at `path`, and creates it if it does not exist. Also returns its runs, without those of another
    /// version. Incomplete or damaged entries are removed and reported to `warn`.
    ///
    /// # Errors
    /// If it cannot be read or written.
    pub fn open<R: DeserializeOwned>(path: &Path, warn: &dyn Fn(&str)) -> Result<(Self, Vec<R>), RunsError> {
        let (appender, log) = Self::repaired(path, warn)?;
        let read = |line| match entry::read::<R, IgnoredAny>(&log.file, line) {
            Ok(Entry::Run(run)) => Some(run),
            _ => None,
        };
        Ok((appender, log.entries(Kind::Run).filter_map(read).collect()))
    }

    fn repaired(path: &Path, warn: &dyn Fn(&str)) -> Result<(Self, Log), RunsError> {
        let append = || OpenOptions::new().create(true).append(true).open(path).map_err(RunsError::io(path));
        let mut file = append()?;
        let mut log = Log::open(path)?;
        if let Some(damaged) = log.damaged {
            warn(&format!("{}: {damaged} was damaged and is dropped; its run is made again", path.display()));
        }
        if log.torn {
            let what = "the last record was cut short and is dropped; its run is made again";
            warn(&format!("{}: {what}", path.display()));
        }
        if log.torn || log.damaged.is_some() {
            log.keep_only(|_| true)?;
            log = Log::open(path)?;
            file = append()?;
        }
        Ok((Self { path: path.to_owned(), file }, log))
    }

    /// Appends a finished run with a single write.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn append(&mut self, run: &impl Serialize) -> Result<(), RunsError> {
        let lines = record_of(&[run], &self.path)?;
        self.file.write_all(&lines).map_err(RunsError::io(&self.path))
    }
}

/// Appends a finished sweep to the record at `path`.
pub(super) fn append_sweep(path: &Path, contents: &Contents) -> Result<(), RunsError> {
    let mut file = OpenOptions::new().append(true).open(path).map_err(RunsError::io(path))?;
    let line = entry::line(&Entry::Sweep::<(), _>(contents)).map_err(RunsError::store(path))?;
    file.write_all(&line).map_err(RunsError::io(path))
}

/// The record of results, open for appending.
#[derive(Debug)]
pub struct Writer {
    to: Appender,
    known: BTreeSet<String>,
}

impl Writer {
    /// Opens the record at `path`. Also returns its runs by id. Incomplete or damaged entries are removed and reported
    /// to `warn`.
    pub(super) fn open(
        path: &Path,
        warn: &dyn Fn(&str),
    ) -> Result<(Self, BTreeMap<String, RunSummary>), RunsError> {
        let (to, log) = Appender::repaired(path, warn)?;
        let mut runs = BTreeMap::new();
        let mut unread = 0;
        for (_, run) in log.runs() {
            match run {
                Some(run) => drop(runs.insert(run.id.clone(), run)),
                None => unread += 1,
            }
        }
        if unread > 0 {
            let what = format!("{} of another version, not used", count(unread, "record"));
            warn(&format!("{}: {what}", path.display()));
        }
        let known = runs.keys().cloned().collect();
        Ok((Self { to, known }, runs))
    }

    /// Appends a finished run with a single write, unless it is already recorded.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn append(&mut self, record: &RunRecord) -> Result<(), RunsError> {
        if self.known.insert(record.run.id.clone()) { self.to.append(record) } else { Ok(()) }
    }
}
