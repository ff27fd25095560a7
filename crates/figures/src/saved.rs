//! Results of live hops as a figure keeps them: a file of JSON beside its picture.

use std::fs::File;
use std::io::{self, BufReader, Read as _};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::results::{RunContext, file_name};
use tacit_runs::RunsError;
use tacit_runs::store::write_whole;

/// Longest file of results that is read.
const MAX_SAVED_BYTES: u64 = 16 << 20;

#[derive(Serialize)]
struct Saved<'a, R> {
    figure: &'a str,
    version: &'a str,
    #[serde(flatten)]
    results: &'a R,
}

/// The results of figure `id`: read where `making` says from where, else made and kept.
///
/// # Errors
/// Where they cannot be made or kept; where there are none to read, or they are damaged.
pub(super) fn read_or_made<R: Serialize + DeserializeOwned>(
    id: &str,
    making: RunContext<'_>,
    make: impl FnOnce() -> Result<R, RunsError>,
) -> Result<R, RunsError> {
    if let Some(from) = &making.options.from {
        let path = path(id, from);
        making.made_by(version_of(&path));
        return read(&path);
    }
    let results = make()?;
    if let Some(directory) = &making.options.directory {
        let path = path(id, directory);
        let json = to_json(id, &results).map_err(io::Error::from).map_err(RunsError::io(&path))?;
        write_whole(&path, json.to_string().as_bytes())?;
    }
    Ok(results)
}

/// Whether `directory` has results of figure `id`.
pub(super) fn is_there(id: &str, directory: &Path) -> bool {
    path(id, directory).exists()
}

fn path(id: &str, directory: &Path) -> PathBuf {
    directory.join(file_name(id, ".json"))
}

/// As figure `id` keeps them.
pub(super) fn to_json<R: Serialize>(id: &str, results: &R) -> serde_json::Result<Value> {
    serde_json::to_value(Saved { figure: id, version: tacit_runs::VERSION, results })
}

/// Those that were kept in the file at `path`.
///
/// # Errors
/// Where there are none, or they are damaged.
pub(super) fn read<R: DeserializeOwned>(path: &Path) -> Result<R, RunsError> {
    let file = File::open(path).map_err(RunsError::io(path))?;
    serde_json::from_reader(BufReader::new(file.take(MAX_SAVED_BYTES)))
        .map_err(|error| RunsError::Store { path: path.to_owned(), what: error.to_string() })
}

/// Which version made the results at `path`; none where they do not name it.
fn version_of(path: &Path) -> Option<String> {
    #[derive(Deserialize)]
    struct Maker {
        version: String,
    }
    read::<Maker>(path).ok().map(|maker| maker.version)
}
