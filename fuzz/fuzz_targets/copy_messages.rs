//! Arbitrary messages of a client to `tacit serve --write` on one stream. Nothing may be written outside the served
//! directory.

#![no_main]

use std::cell::RefCell;
use std::fs;

use libfuzzer_sys::fuzz_target;
use tacit_apps::copy::session::Served;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

thread_local! {
    static SCENE: RefCell<Option<(TempDir, Runtime)>> = const { RefCell::new(None) };
}

fuzz_target!(|bytes: &[u8]| {
    SCENE.with_borrow_mut(|scene| {
        let (folder, runtime) = scene.get_or_insert_with(|| {
            let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
            (tempfile::tempdir().expect("a folder"), runtime)
        });
        let (served, beside) = (folder.path().join("served"), folder.path().join("beside"));
        fs::create_dir(&served).expect("it was removed");
        let server = Served::new(&served, true).expect("it is there");
        // Neither its responses nor whether it refuses is checked.
        let _ = runtime.block_on(server.serve(&mut &*bytes, &mut tokio::io::sink()));
        let names = fs::read_dir(folder.path()).expect("it is there").count();
        assert!(names == 1 && !beside.exists(), "something was written beside the served files");
        fs::remove_dir_all(&served).expect("it is ours");
    });
});
