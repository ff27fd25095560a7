//! Stored results of live hops: a JSON file next to the picture of the figure.

use std::fs::File;
use std::io::{self, BufReader, Read as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::results::{RunContext, file_name};
use super::transferred::Transferred;
use tacit_runs::RunsError;
use tacit_runs::store::write_whole;

/// Maximum size of a results file in bytes.
const MAX_SAVED_BYTES: u64 = 16 << 20;

/// Contents of a file.
#[derive(Serialize, Deserialize)]
pub(super) struct Saved {
    #[serde(default)]
    figure: String,
    /// The version that produced the results; `None` if not recorded.
    version: Option<String>,
    #[serde(flatten)]
    pub results: Transferred,
}

/// The results of figure `id`: read or produced and stored, depending on `making`.
///
/// # Errors
/// If they cannot be produced or stored, or are to be read but are missing or damaged.
pub(super) fn read_or_make(
    id: &str,
    making: RunContext<'_>,
    make: impl FnOnce() -> Result<Transferred, RunsError>,
) -> Result<Transferred, RunsError> {
    if let Some(from) = &making.options.from {
        let saved = read(&path(id, from))?;
        making.made_by(saved.version);
        return Ok(saved.results);
    }
    let results = make()?;
    if let Some(directory) = &making.options.directory {
        let path = path(id, directory);
        let json = to_json(id, &results).map_err(io::Error::from).map_err(RunsError::io(&path))?;
        write_whole(&path, json.to_string().as_bytes())?;
    }
    Ok(results)
}

/// Whether `directory` contains results of figure `id`.
pub(super) fn is_there(id: &str, directory: &Path) -> bool {
    path(id, directory).exists()
}

fn path(id: &str, directory: &Path) -> PathBuf {
    directory.join(file_name(id, ".json"))
}

/// The results of figure `id` in the stored form.
pub(super) fn to_json(id: &str, results: &Transferred) -> serde_json::Result<Value> {
    let version = Some(tacit_runs::VERSION.to_owned());
    serde_json::to_value(Saved { figure: id.to_owned(), version, results: results.clone() })
}

/// Reads the results in the file at `path`.
///
/// # Errors
/// If the file is missing or damaged.
pub(super) fn read(path: &Path) -> Result<Saved, RunsError> {
    let file = File::open(path).map_err(RunsError::io(path))?;
    serde_json::from_reader(BufReader::new(file.take(MAX_SAVED_BYTES)))
        .map_err(|error| RunsError::Store { path: path.to_owned(), what: error.to_string() })
}
