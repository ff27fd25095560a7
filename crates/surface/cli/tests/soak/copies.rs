//! Trees that are mirrored in both directions, by programs that are killed and stopped.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::site::Site;
use crate::weather::Draws;
use crate::{World, add};

/// Time in which a copy must end, successfully or not, beside the longest outage. A connection attempt takes up to 10 s, a silent
/// connection is given up after 30 s, and between two storms there is enough time to transfer these trees.
const BOUND: Duration = Duration::from_secs(180);
/// Time of a failed attempt to connect.
const ATTEMPT: Duration = Duration::from_secs(10);
/// Time after which a copy gives up that has not reached its server yet: half a minute, and a suspension. One that has reached it
/// looks for it ten minutes, so that only a signal ends it before it is whole.
const LOOKING: Duration = Duration::from_secs(45);
/// Maximum number of consecutive failures of the same copy, beside those during an outage.
const ATTEMPTS_MAX: u64 = 30;

type Files = BTreeMap<String, Vec<u8>>;

/// The files in a directory, without partially received ones.
fn read(directory: &Path) -> Files {
    let Ok(entries) = fs::read_dir(directory) else { return Files::new() };
    let mut files = Files::new();
    for entry in entries {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if name.ends_with(".tacit-part") {
            continue;
        }
        // A file that disappears meanwhile is ignored.
        if let Ok(bytes) = fs::read(entry.path()) {
            files.insert(name, bytes);
        }
    }
    files
}

/// Changes, creates and removes some files.
fn change(draws: &mut Draws, files: &mut Files) {
    for _ in 0..1 + draws.below(6) {
        let name = format!("file{}", draws.below(12));
        if draws.happens(20) {
            files.remove(&name);
            continue;
        }
        let most: usize = [100, 10_000, 300_000, 4_000_000][draws.below(4) as usize];
        let count = draws.below(most as u64) as usize;
        files.insert(name, draws.bytes(count));
    }
}

fn write(directory: &Path, files: &Files) {
    let _ = fs::remove_dir_all(directory);
    fs::create_dir_all(directory).unwrap();
    for (name, bytes) in files {
        fs::write(directory.join(name), bytes).unwrap();
    }
}

fn signal(child: &Child, signal: Signal) {
    // It may have exited.
    let _ = kill(Pid::from_raw(child.id().try_into().unwrap()), signal);
}

/// How a copy ended.
struct Ended {
    /// `None` if it was killed.
    code: Option<i32>,
    stderr: String,
    /// It was killed or terminated before.
    is_signalled: bool,
}

/// Runs a copy, which may be killed, stopped or terminated.
fn run(world: &World, mut command: Command, draws: &mut Draws) -> Ended {
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let (ill, at, for_ms) = (draws.below(10), draws.below(1_500), draws.below(4_000));
    let begun = Instant::now();
    let (mut is_ill, mut is_signalled) = (ill < 4, false);
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            let mut stderr = String::new();
            child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
            return Ended { code: status.code(), stderr, is_signalled };
        }
        if is_ill && begun.elapsed() >= Duration::from_millis(at) {
            is_ill = false;
            is_signalled = ill < 3;
            match ill {
                0 | 1 => {
                    add(&world.done.copies_killed);
                    signal(&child, Signal::SIGKILL);
                }
                2 => signal(&child, Signal::SIGTERM),
                _ => {
                    signal(&child, Signal::SIGSTOP);
                    sleep(Duration::from_millis(for_ms));
                    signal(&child, Signal::SIGCONT);
                }
            }
        }
        if begun.elapsed() > BOUND + world.outage {
            signal(&child, Signal::SIGKILL);
            panic!("{command:?} hangs for {:?}", begun.elapsed());
        }
        sleep(Duration::from_millis(5));
    }
}

/// One mirror: source, destination, and the command to copy.
struct Mirror<'a> {
    words: Vec<String>,
    to: PathBuf,
    before: Files,
    after: &'a Files,
}

impl Mirror<'_> {
    /// Repeats the copy until it succeeds. `None` if the soak is over.
    fn copy(&self, world: &World, site: &Site, draws: &mut Draws) -> Option<()> {
        let attempts = ATTEMPTS_MAX + world.outage.as_secs() / ATTEMPT.as_secs();
        for _ in 0..attempts {
            let turn = world.turn()?;
            let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
            let begun = Instant::now();
            let Ended { code, stderr, is_signalled } =
                run(world, site.users.command("client", &words), draws);
            add(&world.done.copies);
            let took = begun.elapsed();
            let is_expected = match code {
                Some(0) => true,
                None | Some(130) => is_signalled,
                // There was no path to the server.
                Some(4) => took < LOOKING,
                Some(_) => false,
            };
            assert!(is_expected, "{:?}: {code:?} after {took:?}: {stderr}", self.words);
            if code == Some(4) {
                add(&world.done.copies_without_server);
            }
            let found = read(&self.to);
            if code == Some(0) {
                assert!(found == *self.after, "{:?}: {}", self.words, differences(&found, self.after));
                return Some(());
            }
            assert!(code.is_none() || !stderr.is_empty(), "{:?}: {code:?} without a word", self.words);
            add(&world.done.copies_failed);
            for (name, bytes) in &found {
                let is_whole = [&self.before, self.after].map(|files| files.get(name) == Some(bytes));
                assert!(
                    is_whole.contains(&true),
                    "{:?}: {name} is neither old nor new after {stderr}",
                    self.words
                );
            }
            drop(turn);
        }
        panic!("{:?} failed {attempts} times", self.words);
    }
}

fn differences(found: &Files, wanted: &Files) -> String {
    let mut text = String::new();
    for name in found.keys().chain(wanted.keys()) {
        let [is, should] = [found, wanted].map(|files| files.get(name));
        if is != should {
            let len = |bytes: Option<&Vec<u8>>| bytes.map(Vec::len);
            text.push_str(&format!("{name}: {:?} bytes, not {:?}; ", len(is), len(should)));
        }
    }
    text
}

/// Repeatedly mirrors a changing tree to the server, and from there to another directory.
pub fn lane(world: &World, site: &Site, lane: u64) {
    let mut draws = Draws::new(world.seed, lane);
    let (here, there, back) = (format!("here{lane}"), format!("lane{lane}"), format!("back{lane}"));
    let mut files = Files::new();
    let words = |words: &[&str]| -> Vec<String> {
        ["cp", "-q", "--delete"].iter().chain(words).map(|word| (*word).to_owned()).collect()
    };
    loop {
        change(&mut draws, &mut files);
        write(&site.users.path(&here), &files);
        let served = site.users.path("served").join(&there);
        let pushed = Mirror {
            words: words(&[&format!("{here}/"), &site.at(&there)]),
            before: read(&served),
            to: served,
            after: &files,
        };
        if pushed.copy(world, site, &mut draws).is_none() {
            return;
        }
        let to = site.users.path(&back);
        let pulled = Mirror {
            words: words(&[&site.at(&format!("{there}/")), &format!("{back}/")]),
            before: read(&to),
            to,
            after: &files,
        };
        if pulled.copy(world, site, &mut draws).is_none() {
            return;
        }
    }
}

/// Copies from the server to a disk that lacks room for one of three files.
pub fn full_disks(world: &World, site: &Site, lane: u64) {
    if !Command::new("unshare").args(["--mount", "true"]).output().is_ok_and(|tried| tried.status.success()) {
        eprintln!("SKIPPED: disks that are full: unshare --mount does not work here");
        return;
    }
    let mut draws = Draws::new(world.seed, lane);
    let (tree, disk) = (format!("tree{lane}"), format!("disk{lane}"));
    let served = site.users.path("served").join(&tree);
    let files: Files = [("a", 1_000), ("big", 3_000_000), ("z", 300_000)]
        .map(|(name, count)| (name.to_owned(), draws.bytes(count)))
        .into();
    write(&served, &files);
    fs::create_dir_all(site.users.path(&disk)).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=1m tmpfs {disk} || exit 99; \"$@\"; code=$?; for name in $(ls {disk}/{tree} 2>/dev/null); \
         do cmp {disk}/{tree}/$name served/{tree}/$name || exit 98; [ $name != big ] || exit 97; done; \
         [ $code != 1 ] || [ -e {disk}/{tree}/z ] || exit 96; exit $code"
    );
    loop {
        let Some(turn) = world.turn() else { return };
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", &script, "sh", env!("CARGO_BIN_EXE_tacit"), "cp", "-q"]);
        command.args([&site.at(&tree), &disk]).current_dir(site.users.folder.path());
        command.env("XDG_CONFIG_HOME", site.users.path("client"));
        // Never killed, because the signal would reach the shell instead of the copy.
        let (code, stderr) = run_well(world, command);
        assert!(matches!(code, Some(1 | 3 | 4)), "{code:?}: {stderr}");
        if code == Some(1) {
            assert!(stderr.contains("big: ") && stderr.contains("No space left on device"), "{stderr}");
            add(&world.done.disks_full);
        }
        drop(turn);
        world.sleep(draws.below(4_000));
    }
}

fn run_well(world: &World, mut command: Command) -> (Option<i32>, String) {
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            let mut stderr = String::new();
            child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
            return (status.code(), stderr);
        }
        if begun.elapsed() > BOUND + world.outage {
            signal(&child, Signal::SIGKILL);
            panic!("{command:?} hangs for {:?}", begun.elapsed());
        }
        sleep(Duration::from_millis(5));
    }
}
