//! The journal of an unfinished sweep: finished runs, one JSON object per line.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::write_whole;
use crate::error::LabError;
use crate::metric;
use crate::record::RunRecord;

/// An open journal.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
}

impl Journal {
    /// Opens the journal at `path`, dropping whatever a crash left half-written.
    pub(super) fn open(path: &Path) -> Result<Self, LabError> {
        let mut content = Vec::new();
        for record in read(path)? {
            content.extend(line(&record, path)?);
        }
        write_whole(path, &content)?;
        let file = OpenOptions::new().append(true).open(path).map_err(LabError::io(path))?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// Adds a finished run, in one write.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn append(&mut self, record: &RunRecord) -> Result<(), LabError> {
        let line = line(record, &self.path)?;
        self.file.write_all(&line).map_err(LabError::io(&self.path))
    }
}

fn line(record: &RunRecord, path: &Path) -> Result<Vec<u8>, LabError> {
    let mut line = serde_json::to_vec(record).map_err(LabError::store(path))?;
    line.push(b'\n');
    Ok(line)
}

/// The runs in the journal at `path`; none where there is no journal. Lines that are not whole, or of
/// a version with other metrics, are skipped: those runs are made again.
pub(super) fn read(path: &Path) -> Result<Vec<RunRecord>, LabError> {
    if !path.is_file() {
        return Ok(Vec::new());
    }
    let content = fs::read(path).map_err(LabError::io(path))?;
    let records = content.split(|octet| *octet == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
    Ok(records.filter(|record: &RunRecord| record.metrics.len() == metric::ALL.len()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Label;

    fn record(id: &str) -> RunRecord {
        let label =
            Label { scenario: "s".into(), scheme: "x".into(), clients: 1, x: None, best_of: None, seed: 1 };
        RunRecord {
            id: id.into(),
            label,
            scenario_text: String::new(),
            digest: String::new(),
            measured_s: 0.1 + 0.2,
            metrics: vec![Some(1.0 / 3.0); metric::ALL.len()],
            flows: Vec::new(),
            applications: Vec::new(),
            hops: Vec::new(),
            stations: Vec::new(),
            series: Vec::new(),
        }
    }

    #[test]
    fn a_line_cut_short_is_dropped() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("runs.jsonl");
        let mut journal = Journal::open(&path).unwrap();
        journal.append(&record("a")).unwrap();
        journal.append(&record("b")).unwrap();
        drop(journal);
        let content = fs::read(&path).unwrap();
        fs::write(&path, &content[..content.len() - 20]).unwrap();
        let mut journal = Journal::open(&path).unwrap();
        journal.append(&record("c")).unwrap();
        assert_eq!(read(&path).unwrap(), [record("a"), record("c")]);
    }
}
