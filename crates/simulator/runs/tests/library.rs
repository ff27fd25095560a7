//! A library that simulates runs inside another program. It is a separate test file, because the declaration applies to
//! the whole process.

use tacit_runs::identity::{Program, set_library};

#[test]
fn a_library_is_the_program_whoever_loaded_it() {
    let directory = tempfile::tempdir().unwrap();
    let library = directory.path().join("library.so");
    std::fs::write(&library, "bytes of a library").unwrap();
    set_library(&library);
    assert_eq!(Program::this(), Some(Program::from_bytes(b"bytes of a library")));
}
