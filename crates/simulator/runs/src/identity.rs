//! The name of a run: a hash of everything its result depends on.

use std::fmt;
use std::fs::File;
use std::io::Seek;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use object::{Object, ReadCache};
use tacit_scenario::RunSpec;

/// The name of a run and its result. Equal names mean equal results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunId([u8; 16]);

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

/// Identifies the program that simulates runs: by its build ID, which the linker hashes from its contents, or else by its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program(blake3::Hash);

/// The library that simulates runs, if the executable is another program.
static LIBRARY: OnceLock<PathBuf> = OnceLock::new();

/// Declares that runs are simulated by the library at `path`, which is loaded into another program, such as an
/// interpreter. Only the first call has an effect, and only before the first call of [`Program::this`].
pub fn set_library(path: &Path) {
    // Later calls pass the same path, because a library is loaded once.
    let _ = LIBRARY.set(path.to_owned());
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.to_hex())
    }
}

impl Program {
    /// This program, identified by its executable and its version. `None` if it cannot read its executable. If [`set_library`] was called, the library is used instead of the executable.
    pub fn this() -> Option<Self> {
        static THIS: OnceLock<Option<Program>> = OnceLock::new();
        *THIS.get_or_init(|| {
            let file = LIBRARY.get().cloned().or_else(|| std::env::current_exe().ok())?;
            hash_of_build(&File::open(file).ok()?).map(Self::from_hash)
        })
    }

    /// The program with these bytes.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self::from_hash(blake3::hash(bytes))
    }

    fn from_hash(content: blake3::Hash) -> Self {
        let mut hash = blake3::Hasher::new();
        hash.update(content.as_bytes());
        hash.update(crate::VERSION.as_bytes());
        Self(hash.finalize())
    }

    /// The name of the run of `spec` by this program.
    pub fn id(&self, spec: &RunSpec) -> RunId {
        let mut hash = blake3::Hasher::new();
        hash.update(self.0.as_bytes());
        hash.update(&spec.content());
        let mut id = [0; 16];
        hash.finalize_xof().fill(&mut id);
        RunId(id)
    }
}

/// The name of the run of `spec` by the current program. Based on its version alone if the program cannot read its
/// executable.
pub fn run_id(spec: &RunSpec) -> RunId {
    Program::this().unwrap_or_else(|| Program::from_bytes(b"")).id(spec)
}

/// Of the build ID, which stands in a few hundred bytes, or of all bytes of a file without one.
fn hash_of_build(file: &File) -> Option<blake3::Hash> {
    if let Some(id) = build_id(file) {
        return Some(blake3::hash(&id));
    }
    let mut file = file;
    file.rewind().ok()?;
    let mut hash = blake3::Hasher::new();
    hash.update_reader(file).ok()?;
    Some(hash.finalize())
}

fn build_id(file: &File) -> Option<Vec<u8>> {
    let parts = ReadCache::new(file);
    let parsed = object::File::parse(&parts).ok()?;
    parsed.build_id().ok()?.map(<[u8]>::to_vec)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::io::{Read, Write};
    use std::sync::Arc;

    use tacit_scenario::{Scenario, Subject, scheme};

    use super::*;

    #[test]
    fn a_program_is_its_build_id_and_a_file_without_one_its_bytes() {
        let mut program = File::open(std::env::current_exe().unwrap()).unwrap();
        let id = build_id(&program).expect("Linux linkers write one");
        assert_eq!(hash_of_build(&program), Some(blake3::hash(&id)));
        // The first bytes say that it is an executable; the rest is missing.
        let mut start = [0; 4096];
        program.rewind().unwrap();
        program.read_exact(&mut start).unwrap();
        let mut cut = tempfile::tempfile().unwrap();
        cut.write_all(&start).unwrap();
        assert_eq!(hash_of_build(&cut), Some(blake3::hash(&start)));
    }

    #[test]
    fn another_program_another_seed_and_another_setting_are_other_runs() {
        let spec = |assignments: &[String], seed| {
            let scenario = Arc::new(Scenario::load("wired-10", assignments).unwrap());
            RunSpec::new(Arc::new(Subject::new(scenario, &scheme::AS_WRITTEN)), 1, seed)
        };
        let (program, rebuilt) = (Program::from_bytes(b"a program"), Program::from_bytes(b"a program!"));
        let ids = [
            program.id(&spec(&[], 1)),
            program.id(&spec(&[], 77)),
            program.id(&spec(&["run.sample-interval=none".to_owned()], 1)),
            rebuilt.id(&spec(&[], 1)),
        ];
        assert_eq!(BTreeSet::from(ids).len(), ids.len());
        assert_eq!(program.id(&spec(&[], 1)), ids[0]);
        assert_eq!(ids[0].to_string().len(), 32);
    }
}
