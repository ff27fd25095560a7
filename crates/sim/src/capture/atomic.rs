//! A file that appears whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Writes next to its destination and takes its name only on [`AtomicFile::commit`]; dropped before
/// that, it leaves nothing behind.
pub struct AtomicFile {
    file: Option<BufWriter<File>>,
    temporary: PathBuf,
    destination: PathBuf,
}

impl AtomicFile {
    /// Opens `NAME.tmp-PID` beside `destination`.
    ///
    /// # Errors
    /// When it cannot be created: no such directory, no permission, or another writer of this process
    /// has it.
    pub fn create(destination: &Path) -> io::Result<Self> {
        let mut name = destination.as_os_str().to_owned();
        name.push(format!(".tmp-{}", std::process::id()));
        let temporary = PathBuf::from(name);
        // create_new: never through a link that somebody else placed there.
        let file = OpenOptions::new().write(true).create_new(true).open(&temporary)?;
        let file = Some(BufWriter::new(file));
        Ok(Self { file, temporary, destination: destination.to_owned() })
    }

    /// Flushes and renames into place.
    ///
    /// # Errors
    /// When either fails; nothing is left behind then.
    pub fn commit(mut self) -> io::Result<()> {
        if let Some(mut file) = self.file.take() {
            let renamed = file.flush().and_then(|()| fs::rename(&self.temporary, &self.destination));
            if renamed.is_err() {
                self.file = Some(file);
            }
            return renamed;
        }
        Ok(())
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.as_mut().map_or(Ok(0), |file| file.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            // Nobody is left to tell if this fails.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}
