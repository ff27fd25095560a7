//! Copies that are repeated after an interrupt: who owns a part, and what becomes of parts.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::ends::{END, FILE, bytes, entry, halves, hostile, opened, pushed, run, sent, sent_while};
use tacit_apps::copy::sender::Source;
use tacit_apps::copy::session::{Request, Served, list, push};
use tacit_apps::copy::wire::{self, Kind, Listing, Message, Work};
use tacit_apps::copy::{Action, CopyError, Options, Progress, Report, Summary};
use tokio::io::{AsyncWriteExt as _, DuplexStream, duplex};

const MIRROR: Options = Options { checksum: false, delete: true, dry_run: false, exclude: Vec::new() };

fn part_name(name: &str) -> String {
    format!(".{}.tacit-part", &blake3::hash(name.as_bytes()).to_hex().as_str()[..16])
}

/// Names in `folder`, sorted.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = entries.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

/// Serves one request of the user `owner`.
async fn serve_for(
    served: &Served,
    owner: &str,
    stream: DuplexStream,
) -> Result<tacit_apps::copy::CopyReport, CopyError> {
    let (mut reader, mut writer) = halves(stream);
    let mut request = Request::read(&mut reader).await?;
    request.owner = Some(owner.to_owned());
    served.answer(request, &mut reader, &mut writer).await
}

/// Begins to push files `f0` to `f9` of 3 bytes, sends four and a half of them, and falls silent.
async fn begin_push(stream: &mut DuplexStream, mtime: SystemTime) {
    let since = mtime.duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let time = wire::Timestamp::new(since.as_secs() as i64, since.subsec_nanos()).unwrap();
    let work = Work::Push { path: String::new(), is_directory: true };
    wire::write(stream, &Message::hello()).await.unwrap();
    wire::write(stream, &Message::Ask { work, options: Options::default() }).await.unwrap();
    for index in 0..10 {
        let Message::Entry(mut entry) = entry(&format!("f{index}"), FILE) else { unreachable!() };
        entry.mtime = time;
        wire::write(stream, &Message::Entry(entry)).await.unwrap();
    }
    wire::write(stream, &END).await.unwrap();
    for index in 0..5 {
        let (size_bytes, mtime) = (Some(3), Some(time));
        wire::write(stream, &Message::Contents { index, offset_bytes: 0, size_bytes, mtime }).await.unwrap();
        if index == 4 {
            wire::write_piece(stream, b"ab").await.unwrap();
            break;
        }
        wire::write_piece(stream, b"abc").await.unwrap();
        wire::write_piece(stream, &[]).await.unwrap();
        let blake3 = blake3::hash(b"abc").to_hex().to_string();
        let end = Message::ContentsEnd { blake3, failure: None, has_vanished: false };
        wire::write(stream, &end).await.unwrap();
    }
    stream.flush().await.unwrap();
}

/// `owner` repeats what the user `first` has begun. Returns the outcomes of the old and of the new copy.
fn repeated(
    owner: &str,
) -> (Result<tacit_apps::copy::CopyReport, CopyError>, tacit_apps::copy::CopyReport, Vec<String>) {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for index in 0..10 {
        fs::write(from.path().join(format!("f{index}")), b"abc").unwrap();
        let file = File::open(from.path().join(format!("f{index}"))).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000)).unwrap();
    }
    let served = Served::new(to.path(), true).unwrap();
    let (old, new) = run(async {
        let (mut old, old_there) = duplex(1 << 20);
        begin_push(&mut old, SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000)).await;
        let old_copy = serve_for(&served, "first", old_there);
        let again = async {
            // The part of `f4` shows that the old copy holds five of them.
            while !to.path().join(part_name("f4")).exists() {
                tokio::task::yield_now().await;
            }
            let (mine, theirs) = duplex(1 << 16);
            let (mut reader, mut writer) = halves(mine);
            let source = Source::named(&[format!("{}/", from.path().display())]).unwrap();
            let (options, progress) = (Options::default(), Progress::default());
            let client = push(source, "", &options, &progress, &mut reader, &mut writer);
            let (client, server) = tokio::join!(client, serve_for(&served, owner, theirs));
            server.unwrap();
            // If it still runs, the old copy ends now.
            drop(old);
            client.unwrap()
        };
        tokio::join!(old_copy, again)
    });
    (old, new, names(to.path()))
}

#[test]
fn a_repeated_copy_ends_the_old_one_and_plans_with_what_it_left() {
    let (old, new, names) = repeated("first");
    let old = old.unwrap_err().to_string();
    assert_eq!(old, "another copy of this user continues the files");
    // The old copy gave four files their names before the new one looked.
    assert_eq!((new.summary.unchanged, new.summary.copied, new.summary.failed), (4, 6, 0), "{new:?}");
    assert_eq!(new.summary.resumed_bytes, 2, "{new:?}");
    assert_eq!(names, (0..10).map(|index| format!("f{index}")).collect::<Vec<_>>());
}

#[test]
fn a_copy_of_another_user_is_left_alone() {
    let (old, new, _) = repeated("second");
    assert!(!old.unwrap_err().to_string().contains("another copy"));
    // Of the five files that the old copy holds it names four when it likes. The fifth is half there.
    let Summary { copied, unchanged, failed, .. } = new.summary;
    assert_eq!((copied, unchanged + failed), (5, 5), "{new:?}");
    let half = new.paths.iter().find(|report| report.path == "f4").unwrap();
    assert_eq!(half.action, Action::Failed);
    assert!(
        new.paths.iter().all(|report| report
            .reason
            .as_deref()
            .is_none_or(|reason| reason == "another copy is writing it"))
    );
}

#[test]
fn there_is_no_part_before_the_first_byte_of_a_file() {
    let to = tempfile::tempdir().unwrap();
    let raw = run(async {
        let mut raw = Vec::new();
        wire::write(&mut raw, &opened(3)).await.unwrap();
        raw
    });
    hostile(to.path(), vec![entry("f", FILE), END], &raw).unwrap_err();
    assert_eq!(names(to.path()), [""; 0]);
}

#[test]
fn a_file_that_vanished_from_the_source_is_skipped() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(from.path().join("a"), bytes(300_000)).unwrap();
    fs::write(from.path().join("z"), b"z").unwrap();
    let source = format!("{}/", from.path().display());
    let outcome = sent_while(source.as_ref(), to.path(), || fs::remove_file(from.path().join("z")).unwrap());
    let summary = outcome.summary;
    assert_eq!((summary.copied, summary.skipped, summary.failed), (1, 1, 0), "{outcome:?}");
    let gone = Report { path: "z".into(), action: Action::Skipped, reason: Some("it vanished".into()) };
    assert!(outcome.paths.contains(&gone), "{outcome:?}");
    assert_eq!(names(to.path()), ["a"]);
}

/// A part at `at` that was last written `days` ago.
fn make_part(at: &Path, days: u64) {
    fs::write(at, b"part").unwrap();
    let then = File::open(at).unwrap().metadata().unwrap().modified().unwrap();
    File::open(at).unwrap().set_modified(then - Duration::from_secs(days * 24 * 3600)).unwrap();
}

#[test]
fn parts_without_a_source_go_with_delete_or_after_a_week() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(from.path().join("file"), b"contents").unwrap();
    let source = format!("{}/", from.path().display());
    let (young, old, locked) = (part_name("young"), part_name("old"), part_name("locked"));
    make_part(&to.path().join(&young), 6);
    make_part(&to.path().join(&old), 8);
    make_part(&to.path().join(&locked), 8);
    make_part(&to.path().join("theirs.tacit-part"), 8);
    let lock = File::open(to.path().join(&locked)).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let dry = Options { dry_run: true, ..Options::default() };
    for options in [dry, Options::default()] {
        let outcome = sent(&source, to.path(), "", options).unwrap();
        let deleted: Vec<_> = outcome.paths.iter().filter(|it| it.action == Action::Deleted).collect();
        assert_eq!((deleted.len(), &deleted[0].path), (1, &old), "{outcome:?}");
    }
    let mut kept = vec!["file".to_owned(), "theirs.tacit-part".into(), young.clone(), locked];
    kept.sort();
    assert_eq!(names(to.path()), kept);
    let outcome = sent(&source, to.path(), "", MIRROR).unwrap();
    assert_eq!(outcome.summary.deleted, 1, "{outcome:?}");
    kept.retain(|name| *name != young);
    assert_eq!(names(to.path()), kept);
}

#[test]
fn a_mirror_keeps_the_part_of_a_file_that_failed() {
    let to = tempfile::tempdir().unwrap();
    let raw = run(async {
        let mut raw = Vec::new();
        wire::write(&mut raw, &opened(3)).await.unwrap();
        wire::write_piece(&mut raw, b"ab").await.unwrap();
        wire::write_piece(&mut raw, &[]).await.unwrap();
        let (blake3, failure) = (String::new(), Some("it cannot be read".to_owned()));
        wire::write(&mut raw, &Message::ContentsEnd { blake3, failure, has_vanished: false }).await.unwrap();
        raw
    });
    make_part(&to.path().join(part_name("other")), 0);
    let end = Message::EntriesEnd { is_top_listed: true };
    let outcome = crate::ends::hostile_with(to.path(), MIRROR, vec![entry("f", FILE), end], &raw).unwrap();
    assert_eq!((outcome.summary.failed, outcome.summary.deleted), (1, 1), "{outcome:?}");
    assert_eq!(names(to.path()), [part_name("f")]);
}

#[test]
fn names_of_parts_in_the_source_are_skipped_aloud() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(from.path().join(".x.tacit-part"), b"x").unwrap();
    for source in [format!("{}/", from.path().display()), format!("{}/.x.tacit-part", from.path().display())]
    {
        let outcome = pushed(source.as_ref(), to.path(), Options::default());
        assert_eq!((outcome.summary.skipped, outcome.summary.failed), (1, 0), "{outcome:?}");
        assert_eq!(outcome.paths[0].path, ".x.tacit-part");
        assert_eq!(outcome.paths[0].reason.as_deref(), Some("a part of an interrupted copy"));
    }
    let exclude = vec!["*.tacit-part".parse().unwrap()];
    let options = Options { exclude, ..Options::default() };
    let outcome = sent(format!("{}/", from.path().display()), to.path(), "", options).unwrap();
    assert_eq!(outcome.summary.skipped, 0, "{outcome:?}");
}

#[test]
fn parts_are_listed_and_counted_on_request() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("in")).unwrap();
    fs::write(root.path().join("in/file"), b"file").unwrap();
    make_part(&root.path().join("in").join(part_name("big")), 0);
    let served = Served::new(root.path(), true).unwrap();
    assert_eq!(served.parts(), (1, 4));
    for with_parts in [false, true] {
        let found = run(async {
            let (mine, theirs) = duplex(1 << 16);
            let (mut reader, mut writer) = halves(mine);
            let (mut their_reader, mut their_writer) = halves(theirs);
            let mut found = Vec::new();
            let listing = Listing { paths: vec![String::new()], is_recursive: true, with_parts };
            let options = Options::default();
            let listing = list(listing, &options, &mut reader, &mut writer, |entry| {
                found.push(entry.unwrap());
                Ok::<_, CopyError>(())
            });
            let serving = served.serve(&mut their_reader, &mut their_writer);
            let (listed, served) = tokio::join!(listing, serving);
            listed.unwrap();
            served.unwrap();
            found
        });
        let files = found.iter().filter(|entry| matches!(entry.kind, Kind::File { .. }));
        let names: Vec<_> = files.map(|entry| entry.path.clone()).collect();
        let part = format!("in/{}", part_name("big"));
        assert_eq!(names, if with_parts { vec![part, "in/file".into()] } else { vec!["in/file".into()] });
    }
}
