//! Cases from users of rsync, scp and croc, tested with `tacit serve`, `cp`, `ls` and `keys pair` over loopback.

use std::fs::{self, Permissions};
use std::io::{BufRead as _, Read as _, Write as _};
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::peers::{Server, Users, bytes};
use serde_json::Value;

/// The unprivileged user.
const NOBODY: u32 = 65534;

/// Two users, and a writable server of one of them.
fn writable() -> (Users, Server) {
    let users = Users::new();
    fs::create_dir_all(users.path("served")).unwrap();
    let server = users.serve(&["served", "--write"]);
    users.introduce(&server);
    (users, server)
}

/// Names in a directory, sorted.
fn names(directory: &Path) -> Vec<String> {
    let names =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

fn fifo(path: &Path) {
    nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).unwrap();
}

#[test]
fn mirrors_converge() {
    let (users, server) = writable();
    // oc-rsync#7701, openmediavault#86, xcat#5217; the FIFO is the third case in copy_mirror.sh.
    for (source, dest, paths) in [("a/", "a", &["keep"][..]), ("b", "", &["x"]), ("c", "", &["file"])] {
        let name = source.trim_end_matches('/');
        fs::create_dir_all(users.path(name)).unwrap();
        for path in paths {
            fs::write(users.path(name).join(path), b"new").unwrap();
        }
        let there = users.path("served").join(name);
        fs::create_dir_all(there.join("x/inner")).unwrap();
        fs::write(there.join("old"), b"").unwrap();
        if source == "c" {
            fifo(&users.path("c/pipe"));
        }
        let output = users.tacit("client", &["cp", "--delete", source, &server.at(dest)]);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{source}: {stderr}");
        assert_eq!(names(&there), paths, "{source}");
        assert_eq!(stderr.contains("tacit: c/pipe: skipped: a FIFO"), source == "c", "{stderr}");
        let again = users.done("client", &["cp", "--delete", source, &server.at(dest)]);
        assert!(again.starts_with("0 copied"), "{again}");
    }
    assert!(users.refused("client", &["cp", "--strict", "-q", "c", &server.at("")], 1).contains("a FIFO"));
    assert_eq!(users.refused("client", &["cp", "-q", "c", &server.at("")], 0), "");
}

#[test]
fn a_new_file_in_a_read_only_directory_that_the_copy_made() {
    let users = Users::new();
    if !nix::unistd::geteuid().is_root() {
        eprintln!("SKIPPED in part: as this user, not as another one");
    }
    let as_nobody = |mut command: Command| {
        if nix::unistd::geteuid().is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    };
    fs::create_dir_all(users.path("served")).unwrap();
    fs::create_dir_all(users.path("tree/shut/inner")).unwrap();
    fs::write(users.path("tree/shut/one"), b"1").unwrap();
    let shut = |mode| fs::set_permissions(users.path("tree/shut"), Permissions::from_mode(mode)).unwrap();
    if nix::unistd::geteuid().is_root() {
        for path in ["", "served", "tree", "tree/shut", "tree/shut/inner", "tree/shut/one"] {
            chown(users.path(path), Some(NOBODY), Some(NOBODY)).unwrap();
        }
    }
    shut(0o555);
    assert!(as_nobody(users.command("server", &["keys", "make"])).output().unwrap().status.success());
    let words = ["serve", "served", "--write", "--listen", "127.0.0.1:0"];
    let server = users.started(as_nobody(users.command("server", &words)), "tack://");
    // The same user does not need to be trusted.
    let copy = || {
        let output = as_nobody(users.command("server", &["cp", "--delete", "tree", &server.at("")])).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let there = users.path("served/tree/shut");
        assert_eq!(fs::metadata(&there).unwrap().permissions().mode() & 0o777, 0o555);
        names(&there)
    };
    assert_eq!(copy(), ["inner", "one"]);
    shut(0o755);
    fs::write(users.path("tree/shut/two"), b"2").unwrap();
    fs::set_permissions(users.path("tree/shut/two"), Permissions::from_mode(0o644)).unwrap();
    fs::remove_file(users.path("tree/shut/one")).unwrap();
    shut(0o555);
    assert_eq!(copy(), ["inner", "two"]);
    // Everything is removed, although the owner has no write permission there.
    shut(0o755);
    fs::rename(users.path("tree/shut"), users.path("elsewhere")).unwrap();
    let output =
        as_nobody(users.command("server", &["cp", "--delete", "tree", &server.at("")])).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(names(&users.path("served/tree")), [""; 0]);
}

#[test]
#[ignore = "mounting is root's: ./ci.sh hops"]
fn a_full_disk_stops_the_file_that_it_has_no_room_for_and_no_other() {
    let users = Users::new();
    let can_mount = Command::new("unshare").args(["-m", "true"]).output();
    if !can_mount.is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: mounting a small file system takes root");
        return;
    }
    users.key("server");
    for directory in ["served", "tree"] {
        fs::create_dir_all(users.path(directory)).unwrap();
    }
    for (name, count) in [("a", 100_000), ("big", 100_000_000), ("z", 2_000_000)] {
        fs::write(users.path("tree").join(name), bytes(count)).unwrap();
    }
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", "mount -t tmpfs -o size=4m none served && exec \"$0\" \"$@\""]);
    command.arg(env!("CARGO_BIN_EXE_tacit")).args(["serve", "served", "--write", "--listen", "127.0.0.1:0"]);
    command
        .current_dir(users.folder.path())
        .stdin(Stdio::null())
        .env("XDG_CONFIG_HOME", users.path("server"));
    let server = users.started(command, "tack://");
    users.introduce(&server);
    let output = users.tacit("client", &["cp", "--json", "tree/", &server.at("")]);
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(stderr.matches("tacit: big: No space left on device").count(), 1, "{stderr}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["summary"]["copied"], &report["summary"]["failed"]), (&2.into(), &1.into()));
    // The copy must fail before all of it has been transferred.
    assert!(report["summary"]["received_bytes"].as_u64().unwrap() < 60_000_000, "{report}");
    let listed = users.done("client", &["ls", &server.at("")]);
    assert_eq!(listed.lines().count(), 2, "the file without room is gone: {listed}");
}

#[test]
fn a_server_lists_what_it_has() {
    let (users, server) = writable();
    fs::create_dir_all(users.path("served/in/er")).unwrap();
    for name in ["in/a.jpg", "in/b.jpg", "in/c.png", "in/er/d.jpg"] {
        fs::write(users.path("served").join(name), b"abc").unwrap();
    }
    symlink("a.jpg", users.path("served/in/link")).unwrap();
    fifo(&users.path("served/in/pipe"));
    let shown = |words: &[&str]| {
        let at: Vec<_> = words
            .iter()
            .map(|word| if word.starts_with('-') { (*word).into() } else { server.at(word) })
            .collect();
        let words: Vec<_> = ["ls"].into_iter().chain(at.iter().map(String::as_str)).collect();
        let text = users.done("client", &words);
        text.lines().map(|line| line.split_whitespace().last().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(shown(&[""]), ["in/"]);
    assert_eq!(
        shown(&["in"]),
        ["a.jpg", "b.jpg", "c.png", "er/", "a.jpg"],
        "the last one is where the link points"
    );
    assert_eq!(shown(&["in/*.jpg"]), ["a.jpg", "b.jpg"]);
    assert_eq!(shown(&["-r", "in/er", "in/c.png"]), ["d.jpg", "c.png"]);
    assert_eq!(shown(&["-r", ""]).len(), 7);
    let listed = users.done("client", &["ls", "--json", &server.at("in/a.jpg")]);
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!((&listed[0]["kind"], &listed[0]["size_bytes"]), (&"file".into(), &3.into()));
    users.refused("client", &["ls", &server.at("none")], 3);
    users.refused("client", &["ls", "here"], 2);
}

#[test]
fn words_of_rsync_and_scp_are_understood() {
    let (users, server) = writable();
    fs::create_dir_all(users.path("tree/tmp")).unwrap();
    for name in ["a.c", "a.o", "tmp/x"] {
        fs::write(users.path("tree").join(name), bytes(300_000)).unwrap();
    }
    let to = server.at("on/the/way/");
    let stdout = users.done("client", &["cp", "-av", "--exclude", "*.o", "--exclude=tmp/", "tree", &to]);
    assert!(stdout.starts_with("copy tree\ncopy tree/a.c\n2 copied"), "{stdout}");
    assert_eq!(names(&users.path("served/on/the/way/tree")), ["a.c"]);
    // The server expands patterns, and the rate limit is respected.
    #[expect(clippy::disallowed_methods, reason = "how long users wait")]
    let begun = std::time::Instant::now();
    users.done("client", &["cp", "-r", "--bwlimit", "300kB/s", &server.at("on/*/way/tree/*.c"), "new/"]);
    assert!(begun.elapsed() > Duration::from_millis(700), "{:?}", begun.elapsed());
    assert!(fs::read(users.path("new/a.c")).unwrap() == bytes(300_000));
    let stderr = users.refused("client", &["cp", "--bwlimit", "fast", "tree", &to], 2);
    assert!(stderr.contains("a rate is a number with"), "{stderr}");
    assert!(users.refused("client", &["cp", &server.at("*.gif"), "."], 3).contains("nothing matches"));
}

#[test]
fn standard_input_and_output_are_files_too() {
    let (users, server) = writable();
    let content = bytes(3_000_000);
    let mut copy = users.command("client", &["cp", "-", &server.at("in/archive")]);
    let mut copy = copy.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    copy.stdin.take().unwrap().write_all(&content).unwrap();
    assert!(copy.wait().unwrap().success());
    assert!(fs::read(users.path("served/in/archive")).unwrap() == content);
    let output = users.tacit("client", &["cp", &server.at("in/archive"), "-"]);
    assert!(output.status.success() && output.stdout == content);
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    for (words, code, why) in [
        (&["-", &server.at("in")][..], 2, "a directory on the server"),
        (&["-", "tree", &server.at("")], 2, "the only SRC"),
        (&[&server.at("in"), "-"], 2, "a directory; only one file"),
        (&[&server.at("in/archive"), &server.at("in/archive"), "-"], 2, "one file"),
        (&["--delete", &server.at("in/archive"), "-"], 2, "without --delete"),
    ] {
        let stderr = users.refused("client", &[&["cp"], words].concat(), code);
        assert!(stderr.contains(why), "{words:?}: {stderr}");
    }
}

#[test]
fn sources_may_be_on_several_servers() {
    let users = Users::new();
    for name in ["one", "two"] {
        fs::create_dir_all(users.path(name)).unwrap();
        fs::write(users.path(name).join(name), name).unwrap();
    }
    let (one, two) = (users.serve(&["one"]), users.serve(&["two"]));
    users.introduce(&one);
    users.introduce(&two);
    let stdout = users.done("client", &["cp", &one.at("one"), &two.at("two"), "both"]);
    assert!(stdout.starts_with("2 copied"), "{stdout}");
    assert_eq!(names(&users.path("both")), ["one", "two"]);
    users.refused("client", &["cp", "--delete", &one.at(""), &two.at(""), "both"], 2);
}

#[test]
fn a_drop_box_takes_files_of_anyone_and_shows_none() {
    let users = Users::new();
    fs::create_dir_all(users.path("served")).unwrap();
    fs::write(users.path("served/theirs"), b"theirs").unwrap();
    fs::write(users.path("file"), b"abc").unwrap();
    let server = users.serve(&["served", "--anyone", "--write"]);
    users.key("client");
    users.done("client", &["keys", "trust", &server.address, &users.key("server")]);
    users.done("client", &["cp", "file", &server.at("")]);
    assert_eq!(fs::read(users.path("served/file")).unwrap(), b"abc");
    fs::write(users.path("file"), b"other").unwrap();
    let stderr = users.refused("client", &["cp", "file", &server.at("")], 1);
    assert!(stderr.contains("overwrites nothing"), "{stderr}");
    for words in [&["cp", &server.at("theirs"), "."][..], &["ls", &server.at("")]] {
        assert!(users.refused("client", words, 3).contains("shows none"));
    }
    // The server's own user and known clients have all rights.
    users.done("server", &["cp", "file", &server.at("")]);
    assert_eq!(users.done("server", &["ls", &server.at("")]).lines().count(), 2);
}

#[test]
fn a_short_code_lets_two_machines_know_each_other() {
    let users = Users::new();
    fs::create_dir_all(users.path("served")).unwrap();
    fs::write(users.path("served/file"), b"abc").unwrap();
    let mut waiting = users.command("server", &["keys", "pair", "--listen", "127.0.0.1:0"]);
    let mut waiting = waiting.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut says = std::io::BufReader::new(waiting.stderr.take().unwrap());
    let mut line = String::new();
    // A key is created first.
    while !line.contains("tacit keys pair") {
        line.clear();
        assert!(says.read_line(&mut line).unwrap() > 0);
    }
    let words: Vec<_> = line.trim().rsplit(' ').take(2).collect();
    let (code, place) = (words[0], words[1].replace("HOST", "127.0.0.1"));
    let wrong = if code == "000-000-000" { "000-000-001" } else { "000-000-000" };
    let stderr = users.refused("client", &["keys", "pair", &place, wrong], 1);
    assert!(stderr.contains("wrong code"), "{stderr}");
    assert!(users.done("client", &["keys", "list"]).is_empty(), "a wrong code trusts no client");
    let stdout = users.done("client", &["keys", "pair", &place, code, "--name", "laptop"]);
    assert!(
        stdout.contains("127.0.0.1:4433 is known as a server") && stdout.contains(&users.key("server")),
        "{stdout}"
    );
    assert!(waiting.wait().unwrap().success());
    let mut stdout = String::new();
    waiting.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
    assert!(stdout.contains("laptop may connect") && stdout.contains(&users.key("client")), "{stdout}");
    // The client may connect, and the server is known at the default port of servers.
    let server = users.serve(&["served"]);
    let known = users.done("client", &["keys", "list"]);
    assert!(known.contains("127.0.0.1:4433") && known.contains("127.0.0.1:4434"), "{known}");
    users.done("client", &["keys", "trust", &server.address, &users.key("server")]);
    users.done("client", &["cp", &server.at("file"), "got"]);
    assert_eq!(fs::read(users.path("got")).unwrap(), b"abc");
    users.refused("client", &["keys", "pair", "127.0.0.1"], 2);
    users.refused("client", &["keys", "pair", "127.0.0.1", "12"], 2);
}

/// croc needs two commands: one here, and one paste there.
#[test]
fn one_command_on_either_machine_shares_a_file() {
    let users = Users::new();
    fs::create_dir_all(users.path("served")).unwrap();
    fs::write(users.path("served/file"), b"abc").unwrap();
    let mut server = users.serve(&["served", "--invite"]);
    let mut line = String::new();
    while !line.trim_start().starts_with("tacit cp") {
        line.clear();
        assert!(server.says.read_line(&mut line).unwrap() > 0);
    }
    let command = line.trim().strip_prefix("tacit ").unwrap().to_owned();
    let code =
        command.split(['/', '@']).find(|part| part.len() == 11).expect("a code of nine digits").to_owned();
    // Another code, or none, is no way in; neither is a listing.
    let wrong = if code == "000-000-000" { "000-000-001" } else { "000-000-000" };
    let stderr =
        users.refused("client", &["cp", &server.at("file").replace("//", &format!("//{wrong}@")), "got"], 1);
    assert!(stderr.contains("wrong code"), "{stderr}");
    users.refused("client", &["ls", &server.at("")], 2);
    assert!(!users.path("got").exists());
    // The printed command, and again.
    let words: Vec<&str> = command.split(' ').collect();
    for _ in 0..2 {
        users.done("client", &words);
        assert_eq!(fs::read(users.path("file")).unwrap(), b"abc");
    }
    assert!(users.done("server", &["keys", "list"]).contains(&users.key("client")));
    assert!(users.done("client", &["keys", "list"]).contains(&users.key("server")));
    // The code is spent. The server refuses before the client has asked, or after: the client says the same.
    for _ in 0..3 {
        let stderr = users.refused("third", &words, 3);
        assert!(stderr.contains("not allowed; to be admitted, run there"), "{stderr}");
    }
    assert!(!users.done("server", &["keys", "list"]).contains(&users.key("third")));
    users.refused("client", &["serve", "served", "--invite", "--anyone"], 2);
}

#[test]
fn the_directory_of_keys_is_its_owners_whatever_the_umask() {
    let users = Users::new();
    for umask in ["000", "022", "077"] {
        let script = format!("umask {umask}; exec \"$0\" keys make");
        let mut command = Command::new("sh");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_tacit")]).env("XDG_CONFIG_HOME", users.path(umask));
        assert!(command.output().unwrap().status.success());
        let mode =
            |path: &str| fs::metadata(users.path(umask).join(path)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("tacit"), mode("tacit/identity")), (0o700, 0o600), "umask {umask}");
    }
}

/// wormhole#476.
#[test]
fn names_that_terminals_mind_are_copied_and_escaped() {
    let (users, server) = writable();
    let deep = "d/".repeat(120);
    fs::create_dir_all(users.path("odd").join(&deep)).unwrap();
    let longest = "x".repeat(255);
    let odd =
        ["back\rspace", "red\u{1b}[31m", "two\nlines", "bell\u{7}", "\u{202e}txt.exe", longest.as_str()];
    let deep = format!("{deep}last");
    for name in odd.into_iter().chain([deep.as_str()]) {
        fs::write(users.path("odd").join(name), name).unwrap();
    }
    fifo(&users.path("odd/pi\u{1b}pe"));
    let output = users.tacit("client", &["cp", "-v", "odd", &server.at("")]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    for name in odd.into_iter().chain([deep.as_str()]) {
        assert_eq!(fs::read_to_string(users.path("served/odd").join(name)).unwrap(), name, "{name:?}");
    }
    let listed = users.tacit("client", &["ls", "-r", &server.at("odd")]);
    assert!(listed.status.success());
    for bytes in [output.stdout, output.stderr, listed.stdout] {
        let is_harmless = |byte: &u8| *byte == b'\n' || !byte.is_ascii_control();
        assert!(bytes.iter().all(is_harmless), "{:?}", String::from_utf8_lossy(&bytes));
    }
}

/// All copies are served, some after others.
#[test]
fn a_hundred_copies_at_once_are_as_good_as_one() {
    let (users, server) = writable();
    let content = bytes(300_000);
    fs::write(users.path("served/file"), &content).unwrap();
    let copies: Vec<_> = (0..100)
        .map(|number| {
            let to = format!("copy{number}");
            let mut command = users.command("client", &["cp", "-q", &server.at("file"), &to]);
            (to, command.stderr(Stdio::piped()).spawn().unwrap())
        })
        .collect();
    for (to, copy) in copies {
        let output = copy.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(fs::read(users.path(&to)).unwrap() == content, "{to}");
    }
}

/// rsync#670, rsync#233, gulp-rsync#54, cocalc#516: names with punctuation, blanks at their ends, or a dash in front.
#[test]
fn names_that_look_like_patterns_or_flags_are_names() {
    let (users, server) = writable();
    let names = [
        "who?", "w*", "[ab]", "-v", "--delete", "end ", " ", "~", "a:b", "tack:", "C:\\x", "#1", "%20",
        "$HOME", "a;b", "x y",
    ];
    fs::create_dir_all(users.path("odd")).unwrap();
    for name in names {
        fs::write(users.path("odd").join(name), name).unwrap();
        fs::create_dir_all(users.path("odd").join(format!("dir{name}"))).unwrap();
        fs::write(users.path("odd").join(format!("dir{name}/in{name}")), name).unwrap();
    }
    // Files that the names would match as patterns.
    for other in ["whoX", "wide", "a"] {
        fs::write(users.path("odd").join(other), "another").unwrap();
    }
    users.done("client", &["cp", "odd", &server.at("")]);
    for name in names {
        let there = users.path("served/odd");
        assert_eq!(fs::read_to_string(there.join(name)).unwrap(), name);
        assert_eq!(fs::read_to_string(there.join(format!("dir{name}/in{name}"))).unwrap(), name);
        // One of them, by its name: an existing path is not a pattern.
        users.done("client", &["cp", &server.at(&format!("odd/{name}")), "one"]);
        assert_eq!(fs::read_to_string(users.path("one")).unwrap(), name);
        fs::remove_file(users.path("one")).unwrap();
    }
    let mut here = users.command("client", &["cp", "--", "--delete", &server.at("flag")]);
    assert!(here.current_dir(users.path("odd")).status().unwrap().success());
    assert_eq!(fs::read_to_string(users.path("served/flag")).unwrap(), "--delete");
}

/// rsync#410: a name can look like a message, which scripts that filter messages take for one.
#[test]
fn a_name_that_imitates_a_message_stays_on_its_line() {
    let (users, server) = writable();
    let name = "\ntacit: x: skipped: it vanished";
    fs::create_dir_all(users.path("odd")).unwrap();
    fs::write(users.path("odd").join(name), "1").unwrap();
    let output = users.tacit("client", &["cp", "-v", "odd", &server.at("")]);
    let (out, stderr) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success(), "{stderr}");
    let mut lines = out.lines().chain(stderr.lines());
    assert!(lines.all(|line| !line.starts_with("tacit: x")), "{out}{stderr}");
    assert_eq!(fs::read_to_string(users.path("served/odd").join(name)).unwrap(), "1");
}

/// rsync#761, rclone#4402: a link to the directory that it is in, as /bin/X11 of Debian was copied again and again.
#[test]
fn links_that_lead_in_circles_are_links() {
    let (users, server) = writable();
    fs::create_dir_all(users.path("bin/deep")).unwrap();
    fs::write(users.path("bin/program"), "1").unwrap();
    for (link, target) in [("X11", "."), ("deep/up", ".."), ("self", "self"), ("deep/down", "../deep")] {
        symlink(target, users.path("bin").join(link)).unwrap();
    }
    for to in [server.at(""), server.at("again/")] {
        let stdout = users.done("client", &["cp", "bin", &to]);
        // Two directories, a file, four links.
        assert!(stdout.starts_with("7 copied"), "{stdout}");
    }
    for (link, target) in [("X11", "."), ("deep/up", ".."), ("self", "self"), ("deep/down", "../deep")] {
        let there = users.path("served/bin").join(link);
        assert_eq!(fs::read_link(&there).unwrap().to_str(), Some(target), "{link}");
    }
    let stdout = users.done("client", &["cp", "bin", &server.at("")]);
    assert!(stdout.starts_with("0 copied"), "{stdout}");
}

/// croc#362, croc#363: a link without a target hindered the copy, and one that was copied alone made its target as an empty file.
#[test]
fn links_are_copied_without_their_targets() {
    let (users, server) = writable();
    fs::create_dir_all(users.path("links")).unwrap();
    symlink("nowhere", users.path("links/dangling")).unwrap();
    fs::write(users.path("links/target"), b"1").unwrap();
    symlink("target", users.path("links/link")).unwrap();
    users.done("client", &["cp", "links/dangling", "links/link", &server.at("")]);
    assert_eq!(names(&users.path("served")), ["dangling", "link"]);
    users.done("client", &["cp", &server.at("dangling"), &server.at("link"), "back/"]);
    assert_eq!(names(&users.path("back")), ["dangling", "link"]);
    assert_eq!(fs::read_link(users.path("back/dangling")).unwrap().to_str(), Some("nowhere"));
}

/// croc#618: a file arrived without any permission.
#[test]
fn permissions_arrive_as_they_are() {
    let (users, server) = writable();
    fs::create_dir_all(users.path("modes")).unwrap();
    // A sender that is not root cannot read without permission.
    let modes = [0o400, 0o444, 0o600, 0o640, 0o755, 0o777];
    for mode in modes {
        let path = users.path("modes").join(format!("{mode:o}"));
        fs::write(&path, b"1").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    }
    users.done("client", &["cp", "modes", &server.at("")]);
    for mode in modes {
        let about = fs::metadata(users.path("served/modes").join(format!("{mode:o}"))).unwrap();
        assert_eq!(about.permissions().mode() & 0o7777, mode, "{mode:o}");
    }
}

/// rsync#603: a link at the destination was removed when the copy began, and programs had neither for as long as it took.
#[test]
fn a_link_at_the_destination_stays_until_the_file_is_whole() {
    let (users, server) = writable();
    fs::write(users.path("big"), bytes(50_000_000)).unwrap();
    fs::write(users.path("served/target"), b"old").unwrap();
    symlink("target", users.path("served/big")).unwrap();
    let mut copy = users.command("client", &["cp", "-q", "--bwlimit", "2MB/s", "big", &server.at("")]);
    let mut copy = copy.stderr(Stdio::null()).spawn().unwrap();
    let part = || names(&users.path("served")).into_iter().find(|name| name.ends_with(".tacit-part"));
    while part().is_none() {
        assert!(copy.try_wait().unwrap().is_none(), "it ended before it began");
        #[expect(clippy::disallowed_methods, reason = "waits for another process, which no event announces")]
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(fs::read(users.path("served/big")).unwrap(), b"old", "through the link");
    copy.kill().unwrap();
    copy.wait().unwrap();
    assert_eq!(fs::read(users.path("served/big")).unwrap(), b"old", "through the link");
    users.done("client", &["cp", "-q", "big", &server.at("")]);
    assert!(fs::read(users.path("served/big")).unwrap() == bytes(50_000_000));
    assert_eq!(fs::read(users.path("served/target")).unwrap(), b"old");
    assert_eq!(part(), None);
}

/// A file that is being executed cannot be opened for writing (ETXTBSY).
#[test]
fn a_program_is_replaced_while_it_runs() {
    let (users, server) = writable();
    // By another process: a test on another thread that starts a program would inherit this one's descriptor for writing.
    let copied = Command::new("cp").arg("/bin/sleep").arg(users.path("served/program")).status().unwrap();
    assert!(copied.success());
    fs::write(users.path("program"), b"#!/bin/sh\n").unwrap();
    let mut running = Command::new(users.path("served/program")).arg("1000").spawn().unwrap();
    users.done("client", &["cp", "program", &server.at("")]);
    assert!(running.try_wait().unwrap().is_none(), "it runs on");
    running.kill().unwrap();
    running.wait().unwrap();
    assert_eq!(fs::read(users.path("served/program")).unwrap(), b"#!/bin/sh\n");
}
