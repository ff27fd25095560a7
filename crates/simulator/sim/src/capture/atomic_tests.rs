#![cfg(unix)]

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::AtomicFile;
use super::atomic::unnamed;
use super::tests::Scratch;

/// Both ways of writing: unnamed if the system can, and as on systems that cannot.
const WAYS: [fn(&Path) -> io::Result<AtomicFile>; 2] =
    [AtomicFile::create, |path| AtomicFile::create_with(path, |_| Err(io::ErrorKind::Unsupported.into()))];

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn an_atomic_file_appears_whole_or_not_at_all() {
    for create in WAYS {
        let scratch = Scratch::new("atomic");
        let path = scratch.0.join("run.pcapng");
        let mut dropped = create(&path).unwrap();
        dropped.write_all(&[0; 100_000]).unwrap();
        drop(dropped);
        assert_eq!(names(&scratch.0), [""; 0]);
        let mut whole = create(&path).unwrap();
        whole.write_all(b"whole").unwrap();
        assert!(!path.exists());
        whole.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        assert_eq!(names(&scratch.0), ["run.pcapng"]);
    }
}

#[test]
fn the_old_file_stays_until_the_new_one_is_whole() {
    for create in WAYS {
        let scratch = Scratch::new("atomic-there");
        let path = scratch.0.join("run.pcapng");
        fs::write(&path, b"old content").unwrap();
        let mut dropped = create(&path).unwrap();
        dropped.write_all(&[0; 100_000]).unwrap();
        drop(dropped);
        assert_eq!(fs::read(&path).unwrap(), b"old content");
        let mut new = create(&path).unwrap();
        new.write_all(b"new").unwrap();
        new.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(names(&scratch.0), ["run.pcapng"]);
    }
}

#[test]
fn of_two_writers_at_once_the_last_to_finish_wins() {
    for create in WAYS {
        let scratch = Scratch::new("atomic-two");
        let path = scratch.0.join("run.pcapng");
        // Left by a killed process with the same ID, on a system where files need a name.
        fs::write(scratch.0.join(format!("run.pcapng.tmp-{}", std::process::id())), b"old").unwrap();
        let (mut first, mut second) = (create(&path).unwrap(), create(&path).unwrap());
        second.write_all(b"second").unwrap();
        second.commit().unwrap();
        first.write_all(b"first").unwrap();
        first.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"first");
        assert_eq!(names(&scratch.0).len(), 2);
    }
}

#[test]
fn a_directory_is_refused_at_once() {
    for create in WAYS {
        let scratch = Scratch::new("atomic-directory");
        assert!(create(&scratch.0).is_err());
        assert!(create(&scratch.0.join("none").join("run.pcapng")).is_err());
        // A file that was created meanwhile cannot be replaced; nothing remains beside it.
        let path = scratch.0.join("run.pcapng");
        let file = create(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(file.commit().is_err());
        assert_eq!(names(&scratch.0), ["run.pcapng"]);
    }
}

#[test]
fn permissions_are_those_of_any_new_file() {
    let scratch = Scratch::new("atomic-mode");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
    let usual = scratch.0.join("usual");
    File::create(&usual).unwrap();
    for create in WAYS {
        let path = scratch.0.join("run.pcapng");
        create(&path).unwrap().commit().unwrap();
        assert_eq!(mode(&path), mode(&usual));
    }
}

#[test]
fn links_are_followed_and_stay() {
    for create in WAYS {
        let scratch = Scratch::new("atomic-links");
        let (results, links) = (scratch.0.join("results"), scratch.0.join("links"));
        fs::create_dir(&results).unwrap();
        fs::create_dir(&links).unwrap();
        fs::write(results.join("there"), b"old").unwrap();
        // Links to a file, to that link, and to a file that does not exist yet.
        symlink("../results/there", links.join("once")).unwrap();
        symlink(links.join("once"), links.join("twice")).unwrap();
        symlink("../results/new", links.join("dangling")).unwrap();
        for (link, target) in [("twice", "there"), ("dangling", "new")] {
            let mut file = create(&links.join(link)).unwrap();
            file.write_all(link.as_bytes()).unwrap();
            file.commit().unwrap();
            assert!(fs::symlink_metadata(links.join(link)).unwrap().is_symlink());
            assert_eq!(fs::read(results.join(target)).unwrap(), link.as_bytes());
        }
        assert_eq!(names(&results), ["new", "there"]);
        symlink("circle", links.join("circle")).unwrap();
        assert!(create(&links.join("circle")).is_err());
    }
}

#[test]
fn devices_and_pipes_are_written_to_and_stay() {
    for create in WAYS {
        let scratch = Scratch::new("atomic-devices");
        let link = scratch.0.join("null");
        symlink("/dev/null", &link).unwrap();
        for path in [Path::new("/dev/null"), &link] {
            let mut file = create(path).unwrap();
            file.write_all(b"away").unwrap();
            file.commit().unwrap();
            assert!(fs::metadata(path).unwrap().file_type().is_char_device());
        }
        assert_eq!(names(&scratch.0), ["null"]);
        // Like /dev/stdout when the output is a pipe.
        let (mut reader, writer) = io::pipe().unwrap();
        let mut file = create(Path::new(&format!("/dev/fd/{}", writer.as_raw_fd()))).unwrap();
        file.write_all(b"through").unwrap();
        file.commit().unwrap();
        drop(writer);
        let mut read = String::new();
        reader.read_to_string(&mut read).unwrap();
        assert_eq!(read, "through");
    }
}

#[test]
fn a_fifo_passes_on_what_is_written() {
    for create in WAYS {
        let scratch = Scratch::new("atomic-fifo");
        let path = scratch.0.join("fifo");
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let from = path.clone();
        let reader = std::thread::spawn(move || fs::read(from).unwrap());
        let mut file = create(&path).unwrap();
        file.write_all(b"through").unwrap();
        file.commit().unwrap();
        assert_eq!(reader.join().unwrap(), b"through");
        assert!(fs::metadata(&path).unwrap().file_type().is_fifo());
        assert_eq!(names(&scratch.0), ["fifo"]);
    }
}

/// Environment variable that tells the writer below where to write.
const WRITER: &str = "TACIT_TEST_WRITES_TO";

#[test]
#[ignore = "a process for the test below, which starts and kills it"]
fn writer() {
    let Some(path) = std::env::var_os(WRITER).map(PathBuf::from) else { return };
    let mut file = AtomicFile::create(&path).unwrap();
    file.write_all(&[0; 100_000]).unwrap();
    println!("\nhalf");
    std::thread::park();
}

#[test]
fn a_killed_writer_leaves_nothing() {
    let scratch = Scratch::new("atomic-killed");
    if let Err(error) = unnamed::open(&scratch.0) {
        eprintln!("SKIPPED: {}: no files without a name: {error}", scratch.0.display());
        return;
    }
    let path = scratch.0.join("run.pcapng");
    for there in [None, Some(b"old content")] {
        if let Some(content) = there {
            fs::write(&path, content).unwrap();
        }
        let before = names(&scratch.0);
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "--nocapture", "capture::atomic_tests::writer"])
            .env(WRITER, &path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.map_while(Result::ok).any(|line| line == "half"));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(names(&scratch.0), before);
        assert_eq!(fs::read(&path).ok().as_deref(), there.map(|content| &content[..]));
    }
}
