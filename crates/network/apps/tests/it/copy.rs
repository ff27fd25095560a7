//! Copies over an in-memory stream: complete ones, resumed ones, and hostile peers.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use crate::ends::{
    END, FILE, bytes, entry, fetched, halves, hostile, opened, pulled, pushed, pushed_to, run, sent,
    sent_from,
};
use tacit_apps::copy::sender::Source;
use tacit_apps::copy::session::{Served, pull, pull_into};
use tacit_apps::copy::wire::{self, Kind, Message};
use tacit_apps::copy::{Action, CopyError, Options, Progress, Rights};

/// A temporary directory that contains `tree`, and an empty one.
fn folders() -> (tempfile::TempDir, tempfile::TempDir) {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let tree = from.path().join("tree");
    fs::create_dir_all(tree.join("in/ner")).unwrap();
    fs::write(tree.join("empty"), b"").unwrap();
    fs::write(tree.join("in/big"), bytes(300_000)).unwrap();
    fs::write(tree.join("in/ner/small"), b"small").unwrap();
    fs::set_permissions(tree.join("in/ner/small"), fs::Permissions::from_mode(0o4751)).unwrap();
    symlink("../empty", tree.join("in/link")).unwrap();
    let old = UNIX_EPOCH + Duration::new(1_000_000_000, 123_456_789);
    for path in ["in/big", "in/ner/small", "in/ner", "in"] {
        fs::File::open(tree.join(path)).unwrap().set_modified(old).unwrap();
    }
    (from, to)
}

#[test]
fn a_tree_arrives_with_contents_links_permissions_and_times_and_then_nothing_is_left_to_do() {
    let (from, to) = folders();
    let tree = from.path().join("tree");
    let outcome = pushed(&tree, to.path(), Options::default());
    assert_eq!((outcome.summary.copied, outcome.summary.failed), (7, 0), "{outcome:?}");
    let there = to.path().join("tree");
    assert_eq!(fs::read(there.join("in/big")).unwrap(), bytes(300_000));
    assert_eq!(fs::read_link(there.join("in/link")).unwrap(), Path::new("../empty"));
    assert_eq!(fs::metadata(there.join("in/ner/small")).unwrap().permissions().mode() & 0o7777, 0o751);
    for path in ["in/big", "in/ner", "in"] {
        let time = |root: &Path| fs::metadata(root.join(path)).unwrap().modified().unwrap();
        assert_eq!(time(&tree), time(&there), "{path}");
    }
    let again = pushed(&tree, to.path(), Options { delete: true, ..Options::default() });
    assert_eq!((again.summary.unchanged, again.summary.received_bytes), (7, 0));
    assert_eq!(again.paths, []);
}

/// More files than one batch syncs, each with its own name and contents.
#[test]
fn thousands_of_files_arrive_and_leave_nothing_beside_them() {
    const FILES: usize = 2_500;
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let content = |number: usize| format!("{number} of them").into_bytes();
    for number in 0..FILES {
        fs::write(from.path().join(format!("file{number}")), content(number)).unwrap();
    }
    let outcome = pushed(&from.path().join("."), to.path(), Options::default());
    assert_eq!((outcome.summary.copied, outcome.summary.failed), (FILES as u64, 0), "{outcome:?}");
    for number in 0..FILES {
        assert_eq!(fs::read(to.path().join(format!("file{number}"))).unwrap(), content(number));
    }
    assert_eq!(fs::read_dir(to.path()).unwrap().count(), FILES);
    let again = pushed(&from.path().join("."), to.path(), Options::default());
    assert_eq!((again.summary.unchanged, again.paths.len()), (FILES as u64, 0));
}

#[test]
fn a_served_tree_is_fetched_in_part_and_nothing_outside_it_is() {
    let (from, to) = folders();
    symlink("/etc", from.path().join("tree/out")).unwrap();
    let outcome = pulled(&from.path().join("tree"), "in/ner", to.path()).unwrap();
    assert_eq!(outcome.summary.copied, 2);
    assert_eq!(fs::read(to.path().join("ner/small")).unwrap(), b"small");
    for path in ["../tree", "/etc/passwd", "in//big", "out/passwd", "nothing"] {
        assert!(
            matches!(pulled(&from.path().join("tree"), path, to.path()), Err(CopyError::Refused(_))),
            "{path}"
        );
    }
    // oc-rsync#7510: `current -> releases/today` is how many deploy.
    symlink("in", from.path().join("tree/current")).unwrap();
    for (path, arrives) in
        [("current/", "ner/small"), ("current/ner", "ner/small"), ("current/n*", "ner/small")]
    {
        let to = tempfile::tempdir().unwrap();
        pulled(&from.path().join("tree"), path, to.path()).unwrap();
        assert_eq!(fs::read(to.path().join(arrives)).unwrap(), b"small", "{path}");
    }
    pulled(&from.path().join("tree"), "current", to.path()).unwrap();
    assert_eq!(fs::read_link(to.path().join("current")).unwrap(), Path::new("in"), "the link itself");
    let one = from.path().join("tree/in/big");
    assert!(pulled(&one, "link", to.path()).is_err(), "it stands beside the file that is served");
    assert_eq!(pulled(&one, "", to.path()).unwrap().summary.received_bytes, 300_000);
}

/// Name of the partial file of `name`.
fn partial_name(name: &str) -> String {
    format!(".{}.tacit-part", &blake3::hash(name.as_bytes()).to_hex().as_str()[..16])
}

#[test]
fn a_copy_goes_on_where_an_earlier_one_stopped_unless_that_left_other_bytes() {
    for (is_ours, received) in [(true, 100_000), (false, 300_000)] {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(from.path().join("big"), bytes(300_000)).unwrap();
        let mut left = bytes(200_000);
        left[77] ^= u8::from(!is_ours);
        fs::write(to.path().join(partial_name("big")), left).unwrap();
        let outcome = pushed(&from.path().join("big"), to.path(), Options::default());
        assert_eq!(outcome.summary.received_bytes, received);
        assert_eq!(outcome.paths[0].action, if is_ours { Action::Resumed } else { Action::Copied });
        assert_eq!(fs::read(to.path().join("big")).unwrap(), bytes(300_000));
        assert_eq!(fs::read_dir(to.path()).unwrap().count(), 1, "nothing is left");
    }
}

#[test]
fn equal_size_and_time_hide_a_change_from_all_but_the_checksum() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for (dir, text) in [(&from, "new"), (&to, "old")] {
        fs::write(dir.path().join("file"), text).unwrap();
        fs::File::open(dir.path().join("file")).unwrap().set_modified(UNIX_EPOCH).unwrap();
    }
    let file = from.path().join("file");
    assert_eq!(pushed(&file, to.path(), Options::default()).summary.unchanged, 1);
    assert_eq!(pushed(&file, to.path(), Options { checksum: true, ..Options::default() }).summary.copied, 1);
    assert_eq!(fs::read(to.path().join("file")).unwrap(), b"new");
}

#[test]
fn delete_removes_what_the_source_has_not_and_a_dry_run_only_says_so() {
    let (from, to) = folders();
    let tree = from.path().join("tree");
    pushed(&tree, to.path(), Options::default());
    fs::create_dir_all(to.path().join("tree/in/old/er")).unwrap();
    fs::write(to.path().join("tree/in/old/er/file"), b"").unwrap();
    fs::write(to.path().join("beside"), b"").unwrap();
    symlink(to.path().join("beside"), to.path().join("tree/in/old/link")).unwrap();
    let dry = pushed(&tree, to.path(), Options { delete: true, dry_run: true, ..Options::default() });
    assert_eq!(dry.summary.deleted, 4, "{dry:?}");
    assert!(to.path().join("tree/in/old/er/file").exists());
    let wet = pushed(&tree, to.path(), Options { delete: true, ..Options::default() });
    assert_eq!(wet, dry);
    assert!(!to.path().join("tree/in/old").exists());
    assert!(to.path().join("beside").exists());
}

#[test]
fn names_and_links_that_lead_out_are_refused_one_by_one() {
    let (to, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    symlink(outside.path(), to.path().join("door")).unwrap();
    let link = |target: &str| Kind::Symlink { target: target.into() };
    let long = "x".repeat(256);
    let bad = vec![
        entry("", FILE),
        entry("..", Kind::Directory),
        entry("a/../../b", Kind::Directory),
        entry("/tmp/evil", Kind::Directory),
        entry("nul\0", Kind::Directory),
        entry("a//b", Kind::Directory),
        entry(&long, Kind::Directory),
        entry("door/through", Kind::Directory),
        entry("x.tacit-part", Kind::Directory),
    ];
    let out = ["/etc", "../up", "door/../../up", ""].map(|target| entry("link", link(target)));
    let (count, out_count) = (bad.len() as u64, out.len() as u64);
    let good = [entry("good", Kind::Directory), entry("good", Kind::Directory), END];
    let outcome = hostile(to.path(), bad.into_iter().chain(out).chain(good).collect(), &[]).unwrap();
    let summary = outcome.summary;
    assert_eq!((summary.copied, summary.failed, summary.skipped), (1, count + 1, out_count), "{outcome:?}");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    assert_eq!(fs::read_dir(to.path()).unwrap().count(), 2);
    // The link itself is replaced; its target is unchanged.
    assert_eq!(hostile(to.path(), vec![entry("door", Kind::Directory), END], &[]).unwrap().summary.copied, 1);
    assert!(fs::symlink_metadata(to.path().join("door")).unwrap().is_dir());
    assert!(outside.path().exists());
}

fn contents(bytes: &[u8], blake3: &str) -> Vec<u8> {
    run(async {
        let mut raw = Vec::new();
        wire::write(&mut raw, &opened(3)).await.unwrap();
        wire::write_piece(&mut raw, bytes).await.unwrap();
        wire::write_piece(&mut raw, &[]).await.unwrap();
        let end = Message::ContentsEnd { blake3: blake3.into(), failure: None, has_vanished: false };
        wire::write(&mut raw, &end).await.unwrap();
        raw
    })
}

#[test]
fn contents_that_are_too_long_too_short_or_altered_make_no_file() {
    let to = tempfile::tempdir().unwrap();
    let hash = |bytes: &[u8]| blake3::hash(bytes).to_hex().to_string();
    let copy =
        |bytes: &[u8], hash: &str| hostile(to.path(), vec![entry("f", FILE), END], &contents(bytes, hash));
    assert!(matches!(copy(b"four", &hash(b"four")), Err(CopyError::Protocol(_))));
    assert_eq!(copy(b"12", &hash(b"12")).unwrap().summary.failed, 1);
    assert_eq!(copy(b"123", &hash(b"124")).unwrap().summary.failed, 1);
    assert!(!to.path().join("f").exists());
    assert_eq!(copy(b"123", &hash(b"123")).unwrap().summary.copied, 1);
    assert_eq!(fs::read(to.path().join("f")).unwrap(), b"123");
}

/// oc-rsync#7657: neither is it written through, nor does it hinder the file for ever.
#[test]
fn a_partial_file_that_is_a_link_or_has_a_second_name_is_replaced() {
    let (to, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let victim = outside.path().join("victim");
    let partial = to.path().join(partial_name("f"));
    fs::write(&victim, b"victim").unwrap();
    let obstructions: [&dyn Fn(); 3] =
        [&|| symlink(&victim, &partial).unwrap(), &|| fs::hard_link(&victim, &partial).unwrap(), &|| {
            fs::create_dir(&partial).unwrap();
        }];
    for (at, obstruct) in obstructions.iter().enumerate() {
        obstruct();
        let content = format!("12{at}").into_bytes();
        let hash = blake3::hash(&content).to_hex().to_string();
        let outcome = hostile(to.path(), vec![entry("f", FILE), END], &contents(&content, &hash)).unwrap();
        assert_eq!(outcome.summary.copied, 1, "{at}: {outcome:?}");
        assert_eq!(fs::read(to.path().join("f")).unwrap(), content);
        assert_eq!(fs::read(&victim).unwrap(), b"victim");
        fs::remove_file(to.path().join("f")).unwrap();
        assert_eq!(fs::read_dir(to.path()).unwrap().count(), 0);
    }
}

#[test]
fn a_message_that_is_too_long_or_unknown_ends_the_copy() {
    let to = tempfile::tempdir().unwrap();
    let too_long = u32::MAX.to_be_bytes().to_vec();
    assert!(matches!(hostile(to.path(), vec![], &too_long), Err(CopyError::Limit { .. })));
    let mut unknown = 23u32.to_be_bytes().to_vec();
    unknown.extend(br#"{"say":"ready","new":0}"#);
    assert!(matches!(hostile(to.path(), vec![], &unknown), Err(CopyError::Protocol(_))));
    assert!(matches!(hostile(to.path(), vec![Message::WantsEnd], &[]), Err(CopyError::Protocol(_))));
}

#[test]
fn a_copy_that_broke_in_the_middle_of_a_file_leaves_what_the_next_one_goes_on_with() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(from.path().join("big"), bytes(300_000)).unwrap();
    let raw = run(async {
        let mut raw = Vec::new();
        wire::write(&mut raw, &opened(300_000)).await.unwrap();
        wire::write_piece(&mut raw, &bytes(60_000)).await.unwrap();
        raw
    });
    let big = entry("big", Kind::File { size_bytes: 300_000, blake3: None });
    assert!(matches!(hostile(to.path(), vec![big, END], &raw), Err(CopyError::Io(_))));
    assert!(!to.path().join("big").exists(), "it is not whole");
    let outcome = pushed(&from.path().join("big"), to.path(), Options::default());
    assert_eq!((outcome.summary.resumed_bytes, outcome.summary.received_bytes), (60_000, 240_000));
    assert_eq!(fs::read(to.path().join("big")).unwrap(), bytes(300_000));
}

#[test]
fn a_file_that_another_copy_is_writing_is_left_to_it() {
    let to = tempfile::tempdir().unwrap();
    let hash = blake3::hash(b"123").to_hex().to_string();
    let copy = || hostile(to.path(), vec![entry("f", FILE), END], &contents(b"123", &hash)).unwrap().summary;
    let other = fs::File::create(to.path().join(partial_name("f"))).unwrap();
    rustix::fs::flock(&other, rustix::fs::FlockOperation::LockExclusive).unwrap();
    assert_eq!(copy().failed, 1);
    drop(other);
    assert_eq!(copy().copied, 1);
}

#[test]
fn a_copy_to_a_new_name_gets_that_name() {
    let (from, to) = folders();
    let tree = from.path().join("tree");
    pushed_to(&tree.join("in/big"), to.path(), "new").unwrap();
    assert_eq!(fs::read(to.path().join("new")).unwrap(), bytes(300_000));
    pushed_to(&tree.join("empty"), to.path(), "new").unwrap();
    assert_eq!(fs::read(to.path().join("new")).unwrap(), b"", "a file that is there is replaced");
    pushed_to(&tree, to.path(), "other").unwrap();
    assert_eq!(fs::read(to.path().join("other/in/ner/small")).unwrap(), b"small");
    pushed_to(&tree, to.path(), "made/").unwrap();
    assert!(to.path().join("made/tree/in").is_dir(), "a slash names a directory");
    pushed_to(&tree.join("empty"), to.path(), "on/the/way").unwrap();
    assert!(to.path().join("on/the/way").is_file());
    assert!(pushed_to(&tree, to.path(), "new/").is_err(), "a file is no directory");
    pulled(&tree, "in/ner/small", &to.path().join("fetched")).unwrap();
    assert_eq!(fs::read(to.path().join("fetched")).unwrap(), b"small");
    pulled(&tree, "in/", &to.path().join("contents")).unwrap();
    assert_eq!(fs::read(to.path().join("contents/ner/small")).unwrap(), b"small");
    pulled(&tree, "in", &to.path().join("none/new")).unwrap();
    assert_eq!(fs::read(to.path().join("none/new/ner/small")).unwrap(), b"small");
    assert!(pulled(&tree, "in", &to.path().join("fetched/")).is_err(), "a file is no directory");
}

#[test]
fn a_file_that_cannot_be_kept_stops_at_once_and_others_go_on() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let contents = format!("{}/", from.path().display());
    for name in ["a", "big", "z"] {
        fs::write(from.path().join(name), bytes(if name == "big" { 20_000_000 } else { 1000 })).unwrap();
    }
    let other = fs::File::create(to.path().join(partial_name("big"))).unwrap();
    rustix::fs::flock(&other, rustix::fs::FlockOperation::LockExclusive).unwrap();
    for pushes in [true, false] {
        let outcome = match pushes {
            true => sent(&contents, to.path(), "", Options::default()),
            false => pulled(from.path(), "", to.path()),
        };
        let outcome = outcome.unwrap();
        let failed: Vec<_> = outcome.paths.iter().filter(|report| report.action == Action::Failed).collect();
        assert_eq!((failed.len(), &*failed[0].path), (1, "big"), "{outcome:?}");
        assert_eq!(failed[0].reason.as_deref(), Some("another copy is writing it"));
        // At most the buffers between the ends, and the bytes sent between two checks for stop requests.
        assert!(outcome.summary.received_bytes < 3_000_000, "{outcome:?}");
        assert_eq!(outcome.summary.copied, 2);
        for name in ["a", "z"] {
            fs::remove_file(to.path().join(name)).unwrap();
        }
    }
}

#[test]
fn a_file_that_has_no_place_is_told_before_contents_come() {
    let to = tempfile::tempdir().unwrap();
    fs::write(to.path().join("file"), "").unwrap();
    for path in ["none/f", "file/f"] {
        // If the receiver wanted it, the copy would fail, because no contents are sent.
        let outcome = hostile(to.path(), vec![entry(path, FILE), END], &[]).unwrap();
        assert_eq!((outcome.summary.failed, outcome.summary.received_bytes), (1, 0), "{outcome:?}");
    }
}

#[test]
fn a_server_cannot_send_what_was_not_asked_for() {
    // Reported failures and received names if a server is asked for `asked`, to `destination`, but lists `sent`.
    let pulled = |asked: &[&str], destination: &str, sent: &[&str]| {
        let to = tempfile::tempdir().unwrap();
        let destination = to.path().join(destination);
        let outcome = run(async {
            let (mine, theirs) = tokio::io::duplex(1 << 20);
            let (mut reader, mut writer) = halves(mine);
            let (mut their_reader, mut their_writer) = halves(theirs);
            let asked: Vec<_> = asked.iter().map(|&path| path.to_owned()).collect();
            let (options, progress) = (Options::default(), Progress::default());
            let client = pull(&asked, &destination, &options, &progress, &mut reader, &mut writer);
            let serving = async {
                wire::read(&mut their_reader).await.unwrap();
                wire::read(&mut their_reader).await.unwrap();
                wire::write(&mut their_writer, &Message::Ready { name: None }).await.unwrap();
                for path in sent {
                    wire::write(&mut their_writer, &entry(path, Kind::Directory)).await.unwrap();
                }
                wire::write(&mut their_writer, &END).await.unwrap();
            };
            tokio::join!(client, serving).0.unwrap()
        });
        let mut names: Vec<_> = fs::read_dir(to.path()).unwrap().map(|it| it.unwrap().file_name()).collect();
        names.sort();
        (outcome.summary.failed, names)
    };
    for (asked, destination, sent, failed, names) in [
        (&["a/photos"][..], ".", &["photos", "photos/x", ".ssh"][..], 1, &["photos"][..]),
        (&["a/*.d"], ".", &["x.d", "x.e"], 1, &["x.d"]),
        (&["a", "b"], "./", &["a", "b", "c"], 1, &["a", "b"]),
        (&["a"], "new", &["new", "a", ".profile"], 2, &["new"]),
        (&["a/"], "./", &["whatever"], 0, &["whatever"]),
    ] {
        let (count, there) = pulled(asked, destination, sent);
        assert_eq!(
            (count, there.iter().map(|name| name.to_str().unwrap()).collect::<Vec<_>>()),
            (failed, names.to_vec())
        );
    }
}

#[test]
fn patterns_are_expanded_where_the_files_are_unless_a_file_has_that_name() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for name in ["a1.jpg", "a2.jpg", ".a3.jpg", "b.png", "[x]", "x"] {
        fs::create_dir_all(from.path().join("in/er")).unwrap();
        fs::write(from.path().join("in").join(name), name).unwrap();
    }
    fs::write(from.path().join("in/er/deep.jpg"), "").unwrap();
    let names = |paths: &[&str]| {
        let to = tempfile::tempdir().unwrap();
        let destination = format!("{}/new/", to.path().display());
        fetched(from.path(), paths, Path::new(&destination), Options::default())?;
        let names =
            fs::read_dir(&destination).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.collect();
        names.sort();
        Ok::<_, CopyError>(names)
    };
    assert_eq!(names(&["in/*.jpg"]).unwrap(), ["a1.jpg", "a2.jpg"]);
    assert_eq!(names(&["*/*/d*"]).unwrap(), ["deep.jpg"]);
    assert_eq!(names(&["in/.a*", "in/b.png"]).unwrap(), [".a3.jpg", "b.png"]);
    assert_eq!(names(&["in/[x]"]).unwrap(), ["[x]"]);
    assert_eq!(names(&["in/[!a.]"]).unwrap(), ["x"]);
    assert!(names(&["in/*.gif"]).is_err() && names(&["in/b.png", "*/b.png"]).is_err());
    // Several files cannot be stored under one file name.
    assert!(pulled(from.path(), "in/*.jpg", &to.path().join("one")).is_err());
}

#[test]
fn a_drop_box_takes_what_is_new_and_shows_nothing() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let dropped = |path: &Path, options: Options| {
        let source = Source::named(&[path]).unwrap();
        sent_from(source, to.path(), "", options, Some(Rights::Drop)).0
    };
    let drop_in = |path: &Path| dropped(path, Options::default()).unwrap();
    fs::write(from.path().join("file"), b"new").unwrap();
    fs::create_dir(from.path().join("dir")).unwrap();
    fs::write(from.path().join("dir/inner"), b"new").unwrap();
    symlink("file", from.path().join("link")).unwrap();
    fs::create_dir(to.path().join("dir")).unwrap();
    fs::set_permissions(to.path().join("dir"), fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(to.path().join("dir/theirs"), b"theirs").unwrap();
    let mirror = Options { delete: true, ..Options::default() };
    assert!(matches!(dropped(&from.path().join("dir"), mirror), Err(CopyError::Refused(_))));
    for first in [true, false] {
        for (name, path) in [("file", "file"), ("dir", "dir/inner")] {
            let outcome = drop_in(&from.path().join(name));
            let summary = outcome.summary;
            let wanted = if first { (1, 0, 0) } else { (0, 1, 0) };
            assert_eq!((summary.copied, summary.failed, summary.deleted), wanted, "{outcome:?}");
            assert_eq!(fs::read(to.path().join(path)).unwrap(), b"new");
        }
        // Another user's file of the same size and time gives the same answer, so a client learns nothing about it.
        fs::write(from.path().join("file"), b"two").unwrap();
    }
    assert_eq!(drop_in(&from.path().join("link")).summary.failed, 1);
    assert_eq!(fs::read(to.path().join("dir/theirs")).unwrap(), b"theirs");
    assert_eq!(fs::metadata(to.path().join("dir")).unwrap().permissions().mode() & 0o777, 0o700);
    // Another user's partial file of this name is neither reported nor resumed.
    fs::write(from.path().join("big"), bytes(300_000)).unwrap();
    fs::write(to.path().join(partial_name("big")), bytes(200_000)).unwrap();
    assert_eq!(drop_in(&from.path().join("big")).summary.received_bytes, 300_000);
}

#[test]
fn a_stream_arrives_under_the_name_that_is_given_and_goes_out_again() {
    let to = tempfile::tempdir().unwrap();
    let stream = |bytes: Vec<u8>| Source::stream(Box::new(std::io::Cursor::new(bytes)));
    for count in [0, 5, 300_000] {
        let (client, server) =
            sent_from(stream(bytes(count)), to.path(), "in/archive", Options::default(), None);
        assert_eq!(client.unwrap(), server.unwrap());
        assert_eq!(fs::read(to.path().join("in/archive")).unwrap(), bytes(count));
        let mut out = Vec::new();
        let outcome = run(async {
            let (mine, theirs) = tokio::io::duplex(64);
            let (mut reader, mut writer) = halves(mine);
            let (mut their_reader, mut their_writer) = halves(theirs);
            let (served, progress) = (Served::new(to.path(), false).unwrap(), Progress::default());
            let getting = pull_into("in/archive", &mut out, &progress, &mut reader, &mut writer);
            tokio::join!(getting, served.serve(&mut their_reader, &mut their_writer)).0.unwrap()
        });
        assert_eq!((outcome.summary.copied, outcome.summary.failed), (1, 0));
        assert!(out == bytes(count));
    }
    let (client, _) = sent_from(stream(bytes(5)), to.path(), "in", Options::default(), None);
    assert!(matches!(client, Err(CopyError::Argument(_))), "a directory is no name");
}

#[test]
fn ends_of_other_versions_refuse_each_other_in_words() {
    let to = tempfile::tempdir().unwrap();
    // The hello of version 1, and of a later version.
    for version in [1, 4] {
        let hello = format!(
            r#"{{"say":"hello","version":{version},"direction":"push","path":"","options":{{"checksum":false,"delete":false,"dry_run":false}}}}"#
        );
        let answer = run(async {
            let mut raw = Vec::new();
            wire::write_piece(&mut raw, hello.as_bytes()).await.unwrap();
            let mut answer = Vec::new();
            let served = Served::new(to.path(), true).unwrap();
            served.serve(&mut &*raw, &mut answer).await.unwrap_err();
            wire::read(&mut &*answer).await.unwrap()
        });
        let reason = format!("version {version} of the protocol is asked for, this is 3");
        assert_eq!(answer, Message::Refused { reason });
    }
}

#[test]
fn holes_and_times_that_cannot_be_end_the_copy() {
    let to = tempfile::tempdir().unwrap();
    let begun = run(async {
        let mut raw = Vec::new();
        wire::write(&mut raw, &opened(3)).await.unwrap();
        raw
    });
    for hole in [0x8000_0000u32, 0x8000_0000 | ((16 << 20) + 1), u32::MAX] {
        let raw = [&begun[..], &hole.to_be_bytes()].concat();
        let result = hostile(to.path(), vec![entry("f", FILE), END], &raw);
        assert!(matches!(result, Err(CopyError::Limit { .. })), "{hole:x}");
    }
    let longer = [&begun[..], &(0x8000_0000u32 | 4).to_be_bytes()].concat();
    let result = hostile(to.path(), vec![entry("f", FILE), END], &longer);
    assert!(matches!(result, Err(CopyError::Protocol(_))));
    // UTIME_NOW of Linux, which is not a time.
    let entry = r#"{"say":"entry","path":"f","kind":"directory","mtime":[0,1073741823],"mode":493}"#;
    let raw = [&(entry.len() as u32).to_be_bytes()[..], entry.as_bytes()].concat();
    assert!(matches!(hostile(to.path(), vec![], &raw), Err(CopyError::Protocol(_))));
}
