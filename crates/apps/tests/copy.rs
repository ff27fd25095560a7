//! Copies over a stream in memory: what arrives, what resumes, and what hostile peers get.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod ends;

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use ends::{END, FILE, entry, hostile, octets, opened, pulled, pushed, pushed_to, run};
use tacit_apps::copy::wire::{self, Kind, Message};
use tacit_apps::copy::{Action, CopyError, Options};

/// A directory with `tree` in it and an empty one.
fn folders() -> (tempfile::TempDir, tempfile::TempDir) {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let tree = from.path().join("tree");
    fs::create_dir_all(tree.join("in/ner")).unwrap();
    fs::write(tree.join("empty"), b"").unwrap();
    fs::write(tree.join("in/big"), octets(300_000)).unwrap();
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
    assert_eq!(fs::read(there.join("in/big")).unwrap(), octets(300_000));
    assert_eq!(fs::read_link(there.join("in/link")).unwrap(), Path::new("../empty"));
    assert_eq!(fs::metadata(there.join("in/ner/small")).unwrap().permissions().mode() & 0o7777, 0o751);
    for path in ["in/big", "in/ner", "in"] {
        let time = |root: &Path| fs::metadata(root.join(path)).unwrap().modified().unwrap();
        assert_eq!(time(&tree), time(&there), "{path}");
    }
    let again = pushed(&tree, to.path(), Options { delete: true, ..Options::default() });
    assert_eq!((again.summary.unchanged, again.summary.received_octets), (7, 0));
    assert_eq!(again.paths, []);
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
    let one = from.path().join("tree/in/big");
    assert!(pulled(&one, "link", to.path()).is_err(), "it stands beside the file that is served");
    assert_eq!(pulled(&one, "", to.path()).unwrap().summary.received_octets, 300_000);
}

/// The name that what is left of `name` has.
fn partial_name(name: &str) -> String {
    format!(".{}.tacit-part", &blake3::hash(name.as_bytes()).to_hex().as_str()[..16])
}

#[test]
fn a_copy_goes_on_where_an_earlier_one_stopped_unless_that_left_other_octets() {
    for (is_ours, received) in [(true, 100_000), (false, 300_000)] {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(from.path().join("big"), octets(300_000)).unwrap();
        let mut left = octets(200_000);
        left[77] ^= u8::from(!is_ours);
        fs::write(to.path().join(partial_name("big")), left).unwrap();
        let outcome = pushed(&from.path().join("big"), to.path(), Options::default());
        assert_eq!(outcome.summary.received_octets, received);
        assert_eq!(outcome.paths[0].action, if is_ours { Action::Resumed } else { Action::Copied });
        assert_eq!(fs::read(to.path().join("big")).unwrap(), octets(300_000));
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
    // What is there is replaced by its name, and what it points at stays.
    assert_eq!(hostile(to.path(), vec![entry("door", Kind::Directory), END], &[]).unwrap().summary.copied, 1);
    assert!(fs::symlink_metadata(to.path().join("door")).unwrap().is_dir());
    assert!(outside.path().exists());
}

fn contents(octets: &[u8], blake3: &str) -> Vec<u8> {
    run(async {
        let mut raw = Vec::new();
        wire::write(&mut raw, &opened(3)).await.unwrap();
        wire::write_piece(&mut raw, octets).await.unwrap();
        wire::write_piece(&mut raw, &[]).await.unwrap();
        let end = Message::ContentsEnd { blake3: blake3.into(), failure: None };
        wire::write(&mut raw, &end).await.unwrap();
        raw
    })
}

#[test]
fn contents_that_are_too_long_too_short_or_altered_make_no_file() {
    let to = tempfile::tempdir().unwrap();
    let hash = |octets: &[u8]| blake3::hash(octets).to_hex().to_string();
    let copy =
        |octets: &[u8], hash: &str| hostile(to.path(), vec![entry("f", FILE), END], &contents(octets, hash));
    assert!(matches!(copy(b"four", &hash(b"four")), Err(CopyError::Protocol(_))));
    assert_eq!(copy(b"12", &hash(b"12")).unwrap().summary.failed, 1);
    assert_eq!(copy(b"123", &hash(b"124")).unwrap().summary.failed, 1);
    assert!(!to.path().join("f").exists());
    assert_eq!(copy(b"123", &hash(b"123")).unwrap().summary.copied, 1);
    assert_eq!(fs::read(to.path().join("f")).unwrap(), b"123");
}

#[test]
fn a_partial_file_that_is_a_link_or_has_a_second_name_is_not_written_through() {
    let (to, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let victim = outside.path().join("victim");
    let partial = to.path().join(partial_name("f"));
    let copy = || {
        let hash = blake3::hash(b"123").to_hex().to_string();
        fs::write(&victim, b"").unwrap();
        hostile(to.path(), vec![entry("f", FILE), END], &contents(b"123", &hash)).unwrap()
    };
    symlink(&victim, &partial).unwrap();
    assert_eq!(copy().summary.failed, 1);
    fs::remove_file(&partial).unwrap();
    fs::hard_link(&victim, &partial).unwrap();
    assert_eq!(copy().summary.failed, 1);
    assert_eq!(fs::read(&victim).unwrap(), b"");
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
    fs::write(from.path().join("big"), octets(300_000)).unwrap();
    let raw = run(async {
        let mut raw = Vec::new();
        wire::write(&mut raw, &opened(300_000)).await.unwrap();
        wire::write_piece(&mut raw, &octets(60_000)).await.unwrap();
        raw
    });
    let big = entry("big", Kind::File { size_octets: 300_000, blake3: None });
    assert!(matches!(hostile(to.path(), vec![big, END], &raw), Err(CopyError::Io(_))));
    assert!(!to.path().join("big").exists(), "it is not whole");
    let outcome = pushed(&from.path().join("big"), to.path(), Options::default());
    assert_eq!((outcome.summary.resumed_octets, outcome.summary.received_octets), (60_000, 240_000));
    assert_eq!(fs::read(to.path().join("big")).unwrap(), octets(300_000));
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
fn what_is_copied_to_a_name_that_is_not_there_gets_it() {
    let (from, to) = folders();
    let tree = from.path().join("tree");
    pushed_to(&tree.join("in/big"), to.path(), "new").unwrap();
    assert_eq!(fs::read(to.path().join("new")).unwrap(), octets(300_000));
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
