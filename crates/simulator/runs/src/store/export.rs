//! Exports results as Parquet files for other programs. This program only reads its own record.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::SystemTime;

use super::contents::Contents;
use super::flat;
use super::log::Log;
use super::sheet::{Sheet, SheetWriter};
use super::tables;
use crate::application::ApplicationRecord;
use crate::error::RunsError;
use crate::hop_record::HopRecord;
use crate::record::{FlowRecord, RunRecord, SampleRecord};
use crate::station::StationRecord;

/// File name of the table of runs.
pub(crate) const RUNS: &str = "runs.parquet";

/// Converts runs to rows.
type MakeSheet = fn(&[RunRecord]) -> Sheet;

/// Each file, and the function that creates its rows.
pub(super) const FILES: [(&str, MakeSheet); 6] = [
    (RUNS, tables::runs),
    ("flows.parquet", flat::sheet::<FlowRecord>),
    ("applications.parquet", flat::sheet::<ApplicationRecord>),
    ("hops.parquet", flat::sheet::<HopRecord>),
    ("stations.parquet", flat::sheet::<StationRecord>),
    ("series.parquet", flat::sheet::<SampleRecord>),
];

/// The names of the tables, which are the file names without extension.
pub fn table_names() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(file, _)| table_name(file))
}

fn table_name(file: &str) -> &str {
    file.trim_end_matches(".parquet")
}

/// The rows of `records` in the table `name`; `None` if there is no such table.
pub fn sheet_of(name: &str, records: &[RunRecord]) -> Option<Sheet> {
    let (_, make) = FILES.iter().find(|(file, _)| table_name(file) == name)?;
    Some(make(records))
}

/// Modification time of the newest of the files in `directory`; `None` if one is missing.
fn written(directory: &Path) -> Option<SystemTime> {
    let times = FILES.iter().map(|(name, _)| fs::metadata(directory.join(name)).ok()?.modified().ok());
    times.collect::<Option<Vec<_>>>()?.into_iter().max()
}

/// True if the files in `directory` belong to the last sweep in the record at `path`. Files are written before the
/// record, so those of an interrupted export are newer than the record.
pub(super) fn is_current(path: &Path, directory: &Path) -> bool {
    let recorded = fs::metadata(path).and_then(|about| about.modified()).ok();
    written(directory).is_some_and(|written| recorded.is_some_and(|recorded| written <= recorded))
}

/// Sets the time of the record at `path` to that of the files in `directory`, after exporting its last sweep again.
pub(super) fn mark_current(path: &Path, directory: &Path) -> Result<(), RunsError> {
    let Some(written) = written(directory) else { return Ok(()) };
    let record = fs::File::options().append(true).open(path);
    record.and_then(|record| record.set_modified(written)).map_err(RunsError::io(path))
}

/// Number of bytes of records to load into memory before writing a row group to each file.
const GROUP: u64 = 64 << 20;

/// Exports the entries that `contents` lists from `log` to `directory`. Returns the offsets of these entries.
pub(super) fn export(log: &Log, contents: &Contents, directory: &Path) -> Result<BTreeSet<u64>, RunsError> {
    export_in_groups(log, contents, directory, GROUP)
}

fn export_in_groups(
    log: &Log,
    contents: &Contents,
    directory: &Path,
    group_bytes: u64,
) -> Result<BTreeSet<u64>, RunsError> {
    let wanted: BTreeSet<&str> = contents.rows.iter().map(|row| row.id.as_str()).collect();
    let mut lines = BTreeMap::new();
    for (line, run) in log.runs() {
        if let Some(run) = run.filter(|run| wanted.contains(run.id.as_str())) {
            lines.insert(run.id, *line);
        }
    }
    let mut files = Vec::new();
    for (name, sheet) in FILES {
        let path = directory.join(name);
        files.push((SheetWriter::create(&path, &sheet(&[]), &contents.provenance)?, sheet));
    }
    let (mut group, mut bytes) = (Vec::new(), 0);
    let mut exported = BTreeSet::new();
    for (number, row) in contents.rows.iter().enumerate() {
        let line = lines.get(&row.id).ok_or_else(|| {
            RunsError::store(&log.path)(format!("run {} of the sweep that finished is not in it", row.id))
        })?;
        let mut record = log.run(line)?;
        (record.run.label, record.run.scenario_text) = (row.label.clone(), contents.text(row));
        if !exported.insert((&row.id, &row.label.scheme)) {
            // Rows of the same run refer to its parts by id and scheme. The files contain the parts once.
            record = RunRecord { run: record.run, ..RunRecord::default() };
        }
        group.push(record);
        bytes += line.bytes;
        if bytes >= group_bytes && number + 1 < contents.rows.len() {
            write_group(&mut files, &group)?;
            (group, bytes) = (Vec::new(), 0);
        }
    }
    // At least one group, because some readers would see no columns in a file without rows.
    write_group(&mut files, &group)?;
    for (file, _) in files {
        file.finish()?;
    }
    Ok(lines.values().map(|line| line.offset).collect())
}

fn write_group(files: &mut [(SheetWriter, MakeSheet)], group: &[RunRecord]) -> Result<(), RunsError> {
    files.iter_mut().try_for_each(|(file, sheet)| file.write(&sheet(group)))
}
