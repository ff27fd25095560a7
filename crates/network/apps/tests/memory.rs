//! Memory for the longest list that a receiver accepts. A separate test program, because it measures the memory of the
//! process.

use std::fs;

use tacit_apps::copy::session::Served;
use tacit_apps::copy::wire::{self, ENTRIES_MAX, Entry, Kind, Message, NAMES_BYTES_MAX, Timestamp, Work};
use tacit_apps::copy::{CopyError, Options};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader, BufWriter, duplex, split};

/// Peak memory of this process in bytes; `None` if the system does not report it.
fn peak_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()? * 1024)
}

#[test]
fn a_list_as_long_as_is_taken_stays_below_1_gib() {
    let to = tempfile::tempdir().unwrap();
    let options = Options { dry_run: true, delete: true, ..Options::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let outcome = runtime.block_on(async {
        let (mine, theirs) = duplex(1 << 20);
        let (mut reader, writer) = split(mine);
        let saying = async {
            let mut writer = BufWriter::with_capacity(1 << 16, writer);
            let work = Work::Push { path: String::new(), is_directory: true };
            wire::write(&mut writer, &Message::hello()).await?;
            wire::write(&mut writer, &Message::Ask { work, options }).await?;
            let width = NAMES_BYTES_MAX / ENTRIES_MAX - 20;
            for number in 0..ENTRIES_MAX {
                let path = format!("{number:0width$}");
                let entry = Entry { path, kind: Kind::Directory, mtime: Timestamp::default(), mode: 0o755 };
                wire::write(&mut writer, &Message::Entry(entry)).await?;
            }
            wire::write(&mut writer, &Message::EntriesEnd { is_top_listed: true }).await?;
            writer.flush().await?;
            Ok::<_, CopyError>(writer)
        };
        let hearing = async {
            let mut buffer = vec![0; 1 << 16];
            while reader.read(&mut buffer).await? > 0 {}
            Ok::<_, CopyError>(())
        };
        let serving = async {
            let (reader, mut writer) = split(theirs);
            let mut reader = BufReader::with_capacity(1 << 16, reader);
            let outcome = Served::new(to.path(), true)?.serve(&mut reader, &mut writer).await;
            writer.shutdown().await?;
            outcome
        };
        tokio::try_join!(saying, hearing, serving).map(|(_, (), outcome)| outcome)
    });
    let outcome = outcome.unwrap();
    assert_eq!((outcome.summary.copied, outcome.summary.failed), (ENTRIES_MAX as u64, 0));
    let Some(peak) = peak_bytes() else {
        eprintln!("SKIPPED: the system does not say how much memory a process had");
        return;
    };
    println!("{} MiB at most", peak >> 20);
    assert!(peak < 1 << 30, "{} MiB", peak >> 20);
}
