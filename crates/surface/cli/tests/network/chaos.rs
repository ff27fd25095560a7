//! Copies under adverse conditions: full disks, files that change, programs that are killed, and clocks that differ. A
//! file is complete or absent, an error states the cause, and the next copy resumes.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::peers::{Server, Users, bytes, scraped, value};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

#[expect(clippy::disallowed_methods, reason = "waits for another process, which no event announces")]
fn wait_ms(millis: u64) {
    sleep(Duration::from_millis(millis));
}

/// Whether `unshare` works here with these arguments. A test that is skipped reports this.
pub fn can_unshare(words: &[&str]) -> bool {
    let tried = Command::new("unshare").args(words).arg("true").output();
    let can = tried.is_ok_and(|tried| tried.status.success());
    if !can {
        let test = std::thread::current().name().unwrap_or("a test").to_owned();
        // Bypasses the capture of the test harness.
        let _ = writeln!(std::io::stderr(), "SKIPPED {test}: unshare {} does not work here", words.join(" "));
    }
    can
}

/// Mounts a separate file system of `$2` bytes at `$1` for the script. The other arguments remain in `$@`.
const SMALL_DISK: &str = "mount -t tmpfs -o size=$2 tmpfs \"$1\" && disk=$1 && shift 2";

/// A command of `user` in a shell script that sees a small disk.
fn on_a_small_disk(
    users: &Users,
    user: &str,
    script: &str,
    disk: &Path,
    size: &str,
    words: &[&str],
) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &format!("{SMALL_DISK}; {script}"), "sh"]).arg(disk).arg(size);
    command.arg(env!("CARGO_BIN_EXE_tacit")).args(words).stdin(Stdio::null());
    command.current_dir(users.folder.path()).env("XDG_CONFIG_HOME", users.path(user));
    command
}

/// The destination disk is too small. Files that fit arrive. One that does not fit is reported and does not appear
/// under its name; it is copied once there is room.
#[test]
#[ignore = "mounts and namespaces are root's: ./ci.sh hops"]
fn a_disk_that_is_full_here() {
    if !can_unshare(&["--mount"]) {
        return;
    }
    let users = Users::new();
    for directory in ["served/tree", "disk"] {
        fs::create_dir_all(users.path(directory)).unwrap();
    }
    let sizes = [("a", 1_000), ("big", 3_000_000), ("z", 900_000)];
    for (name, size) in sizes {
        fs::write(users.path("served/tree").join(name), bytes(size)).unwrap();
    }
    let server = users.serve(&["served"]);
    users.introduce(&server);
    let script = "\"$@\"; echo status $?; ls -A $disk/tree; cmp $disk/tree/a served/tree/a; \
                  mount -o remount,size=8m $disk; \"$@\"; echo status $?; diff -r served/tree $disk/tree && echo alike";
    let words = ["cp", "-q", &server.at("tree"), "disk"];
    let output =
        on_a_small_disk(&users, "client", script, &users.path("disk"), "1m", &words).output().unwrap();
    let (out, stderr) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    let mut lines = out.lines();
    assert_eq!(lines.next(), Some("status 1"), "{out}{stderr}");
    let names: Vec<_> = lines.by_ref().take_while(|line| !line.starts_with("status")).collect();
    assert_eq!(names, ["a", "z"], "files with room are there, and nothing is left of the rest");
    assert!(stderr.contains("tree/big: ") && stderr.contains("No space left on device"), "{stderr}");
    assert!(out.ends_with("status 0\nalike\n"), "{out}{stderr}");
    assert!(fs::read_dir(users.path("disk")).unwrap().next().is_none(), "the disk was the script's own");
}

#[test]
#[ignore = "mounts and namespaces are root's: ./ci.sh hops"]
fn a_disk_that_is_full_there() {
    if !can_unshare(&["--mount"]) {
        return;
    }
    let users = Users::new();
    fs::create_dir_all(users.path("disk")).unwrap();
    for (name, size) in [("small", 10_000), ("big", 3_000_000)] {
        fs::write(users.path(name), bytes(size)).unwrap();
    }
    users.key("server");
    let words = ["serve", "disk", "--write", "--listen", "127.0.0.1:0"];
    let server = on_a_small_disk(&users, "server", "exec \"$@\"", &users.path("disk"), "1m", &words);
    let server = users.started(server, "tack://");
    users.introduce(&server);
    users.done("client", &["cp", "-q", "small", &server.at("")]);
    for _ in 0..2 {
        let stderr = users.refused("client", &["cp", "-q", "big", &server.at("")], 1);
        assert!(stderr.contains("big: ") && stderr.contains("No space left on device"), "{stderr}");
        let stderr = users.refused("client", &["cp", "-q", &server.at("big"), "fetched"], 3);
        assert!(stderr.contains("No such file"), "{stderr}");
    }
    // The server keeps running.
    users.done("client", &["cp", "-q", &server.at("small"), "fetched"]);
    assert!(fs::read(users.path("fetched")).unwrap() == bytes(10_000));
}

/// Starts a copy of `big` and waits until it has transferred data.
fn begun(users: &Users, server: &Server, to: &str) -> Child {
    fs::create_dir_all(users.path(to)).unwrap();
    let mut command = users.command("client", &["cp", "-q", &server.at("big"), to]);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let come = || {
        let names = fs::read_dir(users.path(to)).unwrap().map(|entry| entry.unwrap());
        names.map(|entry| entry.metadata().map_or(0, |about| about.len())).sum::<u64>()
    };
    while come() < 1_000_000 && child.try_wait().unwrap().is_none() {
        wait_ms(1);
    }
    child
}

/// The exit code of a copy, and its standard error.
fn ended(mut child: Child) -> (Option<i32>, String) {
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    (child.wait().unwrap().code(), stderr)
}

#[test]
fn a_file_that_changes_while_it_is_read() {
    const LEN: usize = 60_000_000;
    let users = Users::new();
    fs::create_dir_all(users.path("served")).unwrap();
    let big = users.path("served/big");
    let server = users.serve(&["served"]);
    users.introduce(&server);
    let write = || fs::OpenOptions::new().write(true).open(&big).unwrap();
    let grow = || write().set_len(LEN as u64 + 1).unwrap();
    let shrink = || write().set_len(LEN as u64 / 2).unwrap();
    let write_over = || write().write_all(b"something else").unwrap();
    let replace = || {
        fs::write(users.path("served/new"), b"quite another one").unwrap();
        fs::rename(users.path("served/new"), &big).unwrap();
    };
    let remove = || fs::remove_file(&big).unwrap();
    let before = bytes(LEN);
    let changes: [(&str, &dyn Fn(), bool); 5] = [
        // Appended bytes are left for the next copy.
        ("grows", &grow, false),
        ("shrinks", &shrink, true),
        ("is written over", &write_over, true),
        // A reader that has the file open reads the old one to its end.
        ("is replaced", &replace, false),
        ("is removed", &remove, false),
    ];
    for (what, change, is_seen) in changes {
        fs::write(&big, &before).unwrap();
        let copy = begun(&users, &server, what);
        change();
        let (code, stderr) = ended(copy);
        let come = fs::read(users.path(what).join("big")).ok();
        if code == Some(0) {
            // The copy had read the file before the change, or the change came too late.
            assert!(come.is_some_and(|come| come == before), "{what}: neither the old one nor an error");
        } else {
            assert!(is_seen && code == Some(1) && come.is_none(), "{what}: {code:?}, {stderr}");
            let why = if what == "shrinks" { "shrank" } else { "changed" };
            assert!(stderr.contains(&format!("it {why} while it was read")), "{what}: {stderr}");
        }
        if big.exists() {
            users.done("client", &["cp", "-q", &server.at("big"), what]);
            assert!(fs::read(users.path(what).join("big")).unwrap() == fs::read(&big).unwrap(), "{what}");
        }
    }
}

/// The clocks of the ends are 11 days apart, and one of them stops for a while, as on a laptop that sleeps. Only
/// elapsed time on the local clock matters.
#[test]
#[ignore = "mounts and namespaces are root's: ./ci.sh hops"]
fn clocks_that_differ_and_stand_still() {
    let users = Users::new();
    fs::create_dir_all(users.path("served")).unwrap();
    let big = bytes(100_000_000);
    fs::write(users.path("served/big"), &big).unwrap();
    let server = users.serve(&["served"]);
    users.introduce(&server);
    let other_clock = ["--time", "--fork", "--monotonic", "1000000", "--boottime", "1000000"];
    if can_unshare(&other_clock) {
        let mut command = Command::new("unshare");
        command.args(other_clock).arg(env!("CARGO_BIN_EXE_tacit"));
        command.args(["cp", "-q", &server.at("big"), "ahead"]).current_dir(users.folder.path());
        command.env("XDG_CONFIG_HOME", users.path("client"));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(fs::read(users.path("ahead")).unwrap() == big);
    }
    let copy = begun(&users, &server, "stopped");
    let pid = Pid::from_raw(copy.id().try_into().unwrap());
    kill(pid, Signal::SIGSTOP).unwrap();
    wait_ms(5_000);
    kill(pid, Signal::SIGCONT).unwrap();
    let (code, stderr) = ended(copy);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(fs::read(users.path("stopped/big")).unwrap() == big);
}

/// Number of open descriptors of a process, and its memory in kB.
fn held(server: &Server) -> (usize, u64) {
    let process = Path::new("/proc").join(server.child.id().to_string());
    let status = fs::read_to_string(process.join("status")).unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let resident = resident.trim().trim_end_matches(" kB").parse().unwrap();
    (fs::read_dir(process.join("fd")).unwrap().count(), resident)
}

#[test]
fn a_thousand_copies_that_are_killed_leave_nothing() {
    const LANES: u64 = 8;
    const EACH: u64 = 125;
    let users = Users::new();
    fs::create_dir_all(users.path("served")).unwrap();
    let big = bytes(20_000_000);
    fs::write(users.path("served/big"), &big).unwrap();
    let mut server = users.serve(&["served", "--write", "--metrics", "127.0.0.1:0"]);
    let mut line = String::new();
    std::io::BufRead::read_line(&mut server.says, &mut line).unwrap();
    let metrics = line.split("http://").nth(1).unwrap_or_else(|| panic!("{line}")).trim_end();
    let metrics = metrics.trim_end_matches("/metrics").to_owned();
    users.introduce(&server);
    users.done("client", &["cp", "-q", &server.at("big"), "first"]);
    #[expect(clippy::disallowed_methods, reason = "how long copies take here")]
    let begun = std::time::Instant::now();
    std::thread::scope(|scope| {
        for lane in 0..LANES {
            let (users, server) = (&users, &server);
            scope.spawn(move || {
                users.done("client", &["cp", "-q", "first", &server.at(&format!("up{lane}"))])
            });
        }
    });
    // Killed at times from before it has a socket until after the last byte, while many other copies run.
    let longest_ms = (begun.elapsed().as_millis() as u64).clamp(120, 2_000);
    let (open_before, _) = held(&server);
    std::thread::scope(|scope| {
        for lane in 0..LANES {
            let (users, server) = (&users, &server);
            let to = format!("lane{lane}");
            fs::create_dir_all(users.path(&to)).unwrap();
            scope.spawn(move || {
                for cycle in 0..EACH {
                    let words = if cycle % 2 == 0 {
                        ["cp".into(), "-q".into(), server.at("big"), to.clone()]
                    } else {
                        ["cp".into(), "-q".into(), "first".into(), server.at(&format!("up{lane}"))]
                    };
                    let words = words.each_ref().map(String::as_str);
                    let mut copy = users.command("client", &words).stderr(Stdio::null()).spawn().unwrap();
                    wait_ms((lane * EACH + cycle) * 7919 % longest_ms);
                    copy.kill().unwrap();
                    copy.wait().unwrap();
                }
            });
        }
    });
    let (_, resident_kb) = held(&server);
    assert!(resident_kb < 400_000, "{resident_kb} kB");
    let page = scraped(&metrics);
    assert!(value(&page, "tacit_tack_connections_total") > 100.0, "most were killed before they connected");
    for directory in (0..LANES).map(|lane| users.path(&format!("lane{lane}"))).chain([users.path("served")]) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let is_part = path.to_str().unwrap().ends_with(".tacit-part");
            assert!(is_part || fs::read(&path).unwrap() == big, "{}: half a file", path.display());
        }
    }
    // Their connections are given up after 30 s. Until then they may occupy the whole server.
    for lane in 0..LANES {
        users.done("client", &["cp", "-q", &server.at("big"), &format!("lane{lane}")]);
        users.done("client", &["cp", "-q", "first", &server.at(&format!("up{lane}"))]);
        assert!(fs::read(users.path(&format!("lane{lane}/big"))).unwrap() == big);
        assert!(fs::read(users.path(&format!("served/up{lane}"))).unwrap() == big);
        assert_eq!(fs::read_dir(users.path(&format!("lane{lane}"))).unwrap().count(), 1, "nothing is left");
    }
    let mut patience_ms = 60_000;
    while value(&scraped(&metrics), "tacit_tack_connections") > 0.5 {
        assert!(patience_ms > 0, "connections stay");
        patience_ms -= 500;
        wait_ms(500);
    }
    // The socket of the last metrics request is closed a moment later.
    let mut patience_ms = 10_000;
    while held(&server).0 > open_before {
        assert!(patience_ms > 0, "{} files are open, {open_before} were before", held(&server).0);
        patience_ms -= 100;
        wait_ms(100);
    }
    let (_, resident_kb) = held(&server);
    assert!(resident_kb < 400_000, "{resident_kb} kB");
    assert_eq!(fs::read_dir(users.path("served")).unwrap().count(), 1 + LANES as usize, "nothing is left");
}
