//! Commands that report on the program or on an earlier run.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Command as Program;

use assert_cmd::Command;
use nix::pty::{Winsize, openpty};
use serde_json::Value;

fn tacit(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("tacit").unwrap();
    command.current_dir(directory).env("TACIT_CACHE_DIR", directory.join("cache")).args(arguments);
    command
}

fn stdout(command: &mut Command) -> String {
    String::from_utf8(command.assert().success().get_output().stdout.clone()).unwrap()
}

const SHORT: [&str; 4] = ["--set", "run.duration=300ms", "--set", "run.measure-from=100ms"];

#[test]
fn explain_names_value_unit_meaning_and_origin() {
    let directory = tempfile::tempdir().unwrap();
    let arguments = ["explain", "wlan-11n-150", "wifi", "--set", "wifi.retry-limit=3", "--json"];
    let explained: Value = serde_json::from_str(&stdout(&mut tacit(directory.path(), &arguments))).unwrap();
    let setting =
        |key: &str| explained["settings"].as_array().unwrap().iter().find(|row| row["key"] == key).unwrap();
    assert_eq!(setting("wifi.retry-limit")["origin"], "--set");
    assert_eq!(setting("wifi.lifetime")["unit"], "ms");
    assert!(setting("wifi.lifetime")["meaning"].as_str().unwrap().contains("MPDU"));
    let text = stdout(&mut tacit(directory.path(), &["explain", "wired-10", "--scheme", "tcp-l8"]));
    let line = text.lines().find(|line| line.starts_with("tcp.ack-every")).unwrap();
    assert!(line.contains("scheme tcp-l8"), "{line}");
    tacit(directory.path(), &["explain", "wired-10", "tcp.sak"]).assert().code(2);
}

/// The words of a link make what `run` runs; the first word beside them is a key.
#[test]
fn explain_and_shell_understand_the_words_of_a_link() {
    let directory = tempfile::tempdir().unwrap();
    let link = "--wifi 6 --width 80MHz --streams 2 --rtt 30ms --clients 3 --uploads 1";
    let link: Vec<&str> = link.split(' ').collect();
    let words = |first: &[&'static str], last: &[&'static str]| [first, &link[..], last].concat();
    let explained = stdout(&mut tacit(
        directory.path(),
        &words(&["explain", "wifi", "wired.delay", "clients.count"], &["--json"]),
    ));
    let explained: Value = serde_json::from_str(&explained).unwrap();
    let value_of = |key: &str| {
        let rows = explained["settings"].as_array().unwrap();
        let row = rows.iter().find(|row| row["key"] == key).unwrap_or_else(|| panic!("no {key}"));
        row["value"].as_str().unwrap().trim_matches('"').to_owned()
    };
    assert!(value_of("wifi.rate").starts_with("1201"), "{}", value_of("wifi.rate"));
    let given = ["wifi.channel-width", "wired.delay", "clients.count"].map(value_of);
    assert_eq!(given, ["80 MHz", "15000 us", "3"]);
    let short = ["run.duration=300ms", "run.measure-from=100ms", "clients.stagger=20ms"];
    let short: Vec<&str> = short.iter().flat_map(|set| ["--set", *set]).chain(["--json"]).collect();
    let run: Value =
        serde_json::from_str(&stdout(&mut tacit(directory.path(), &words(&["run"], &short)))).unwrap();
    assert_eq!(explained["scenario"], run["scenario"]);
    let refused = |arguments: &[&'static str]| {
        let output = tacit(directory.path(), arguments).assert().code(2).get_output().stderr.clone();
        String::from_utf8(output).unwrap()
    };
    for command in ["explain", "shell"] {
        let unknown = refused(&[command, "--wifi", "8"]);
        assert!(unknown.contains("--wifi: unknown \"8\""), "{unknown}");
    }
    let both = refused(&["shell", "wlan-11n-150", "--wifi", "6", "--", "true"]);
    assert!(both.contains("describes a link beside the scenario wlan-11n-150"), "{both}");
    let counts = refused(&["shell", "--clients", "2", "--background", "1", "--", "true"]);
    assert!(counts.contains("cannot be used with"), "{counts}");
}

#[test]
fn explain_fills_the_lines_of_a_terminal() {
    let directory = tempfile::tempdir().unwrap();
    for columns in [50, 90] {
        let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        let terminal = openpty(Some(&size), None).unwrap();
        let mut child = Program::new(env!("CARGO_BIN_EXE_tacit"))
            .args(["explain", "wlan-11n-150", "wifi.ap-acks"])
            .current_dir(directory.path())
            .stdout(terminal.slave)
            .spawn()
            .unwrap();
        let mut shown = String::new();
        // When nothing has the terminal open for writing, reading from it returns an error instead of an end of file.
        let mut screen = BufReader::new(fs::File::from(terminal.master));
        while screen.read_line(&mut shown).is_ok_and(|bytes| bytes > 0) {}
        assert!(child.wait().unwrap().success());
        assert!(shown.contains("fastack.md"), "{shown}");
        let longest = shown.lines().map(|line| line.trim_end().chars().count()).max().unwrap();
        let columns = usize::from(columns);
        assert!((columns - 10..=columns).contains(&longest), "{columns}: {shown}");
    }
}

#[test]
fn advice_comes_with_its_runs_and_takes_what_a_capture_says() {
    let directory = tempfile::tempdir().unwrap();
    let short = ["--set", "run.duration=600 ms", "--set", "run.measure-from=200 ms"];
    let run =
        ["run", "hack-2014-11n-150", "--clients", "3", "--set", "tcp.ack-every=8", "--pcap", "air.pcapng"];
    tacit(directory.path(), &[&run[..], &short].concat()).assert().success();
    let advise = [
        "advise",
        "--rate",
        "65Mbps",
        "--capture",
        "air.pcapng",
        "--seeds",
        "2",
        "--max-seeds",
        "3",
        "--json",
        "--report",
        "runs",
    ];
    let advice = stdout(&mut tacit(directory.path(), &[&advise[..], &short].concat()));
    let advice: Value = serde_json::from_str(&advice).unwrap();
    assert_eq!(advice["observed"]["receivers"], 3);
    // During slow start and at the ends of bursts there are more ACKs.
    let per_ack = advice["observed"]["segments_per_ack"].as_u64().unwrap();
    assert!((4..=8).contains(&per_ack), "{per_ack}");
    assert_eq!((&advice["clients"], &advice["today"]["scheme"]), (&3.into(), &"stock".into()));
    let choices = advice["choices"].as_array().unwrap();
    assert_eq!(choices.len(), 6);
    for choice in choices {
        let rows = advice["comparison"]["rows"].as_array().unwrap();
        assert!(rows.contains(&choice["row"]), "{choice}");
    }
    assert_eq!(advice["frequencies"]["rows"].as_array().unwrap().len(), 6);
    assert!(advice["limit"]["by"].is_string() && advice["queue"]["kind"].is_string(), "{}", advice["limit"]);
    for other in advice["other_queues"].as_array().unwrap() {
        assert_eq!(other["choices"].as_array().unwrap().len(), 6, "{other}");
    }
    assert!(directory.path().join("runs/index.html").is_file());
    for (wrong, expected) in [
        (&["why", "runs", "--schemes", "stock"][..], "stock is not two schemes"),
        (&["why", "runs", "--quick"], "runs is a results directory"),
        (&["advise", "--rate", "3Mbps"], "--rate: 802.11n has no rate 3Mbps"),
        (&["advise", "--seeds", "5", "--max-seeds", "4"], "--max-seeds: 4 is less than --seeds"),
        (&["advise", "--rtt", "3"], "--rtt: \"3\" is not a duration"),
        (&["advise", "--capture", "runs/index.html"], "is neither pcap nor pcapng"),
        (&["advise", "wired-10", "--rate", "54Mbps"], "describes a link beside the scenario wired-10"),
    ] {
        let output = tacit(directory.path(), wrong).assert().code(2).get_output().stderr.clone();
        let error = String::from_utf8(output).unwrap();
        assert!(error.contains(expected), "{error}");
    }
}

/// `tcpdump -w - | tacit audit -` results in the same counts as the file.
#[test]
fn an_audit_reads_standard_input() {
    let directory = tempfile::tempdir().unwrap();
    let run = [&["run", "wlan-11n-150", "--pcap", "air.pcapng"][..], &SHORT].concat();
    tacit(directory.path(), &run).assert().success();
    let of_file = stdout(&mut tacit(directory.path(), &["audit", "air.pcapng"]));
    let mut piped = tacit(directory.path(), &["audit", "-"]);
    piped.write_stdin(fs::read(directory.path().join("air.pcapng")).unwrap());
    assert_eq!(stdout(&mut piped).replace("standard input: ", "air.pcapng: "), of_file);
    let nothing = tacit(directory.path(), &["audit", "-"]).write_stdin("").assert().code(2);
    let stderr = String::from_utf8_lossy(&nothing.get_output().stderr).into_owned();
    assert!(stderr.contains("standard input: is empty; a pcap or pcapng file is needed"), "{stderr}");
}

#[test]
fn a_run_says_what_it_was_asked_for_in_vain() {
    let directory = tempfile::tempdir().unwrap();
    let run = |set: &[&str]| {
        let mut arguments =
            vec!["run", "hack-2014-11n-150", "--json", "--scheme", "tcp-l8", "--clients", "3"];
        arguments.extend(SHORT);
        arguments.extend(set);
        let output = tacit(directory.path(), &arguments).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        (serde_json::from_slice::<Value>(&output.stdout).unwrap()["warnings"].clone(), stderr)
    };
    let in_vain = "--set tcp.ack-every=4 changes nothing under tcp-l8: see tacit explain hack-2014-11n-150 tcp.ack-every";
    let late = "1 of 3 flows start after measuring began at 100ms, the last at 200ms: run.measure-from, \
                run.start-spread and start say when";
    let third = ["--set", "client[3].start=200 ms"];
    let (warnings, stderr) = run(&[&["--set", "tcp.ack-every=4"][..], &third].concat());
    assert_eq!(warnings, serde_json::json!([in_vain, late]));
    assert_eq!(stderr, format!("tacit: warning: {in_vain}\ntacit: warning: {late}\n"));
    assert_eq!(run(&["--set", "clients.stagger=10 ms"]), (serde_json::json!([]), String::new()));
}

#[test]
fn a_live_hop_says_at_once_what_only_simulations_can_do() {
    let directory = tempfile::tempdir().unwrap();
    let arguments = ["shell", "wlan-11n-150", "--scheme", "fastack", "--", "true"];
    let assert = tacit(directory.path(), &arguments).assert().code(2);
    let error = String::from_utf8(assert.get_output().stderr.clone()).unwrap();
    assert!(
        error.contains("wifi.ap-acks") && error.contains("allowed: \"none\", or a simulation"),
        "{error}"
    );
}

#[test]
fn completions_are_shell_programs() {
    let directory = tempfile::tempdir().unwrap();
    for (shell, mark) in [
        ("bash", "complete -F"),
        ("zsh", "#compdef tacit"),
        ("fish", "complete -c tacit"),
        ("elvish", "edit:completion"),
    ] {
        let script = stdout(&mut tacit(directory.path(), &["completions", shell]));
        assert!(script.contains(mark) && script.contains("compare"), "{shell}");
        let path = directory.path().join(shell);
        fs::write(&path, &script).unwrap();
        // Each of these shells that is installed must accept the script.
        if let Ok(checked) = Program::new(shell).arg("-n").arg(&path).output() {
            assert!(checked.status.success(), "{shell}: {}", String::from_utf8_lossy(&checked.stderr));
        }
    }
    tacit(directory.path(), &["completions", "tcl"]).assert().code(2);
}

#[test]
fn every_command_has_a_manual_page_that_renders() {
    let directory = tempfile::tempdir().unwrap();
    let listed = stdout(&mut tacit(directory.path(), &["man", "--dir", "man1", "--json"]));
    let files: Vec<String> = serde_json::from_str(&listed).unwrap();
    for page in ["tacit.1", "tacit-compare.1", "tacit-replay.1", "tacit-rohc-stats.1"] {
        assert!(files.iter().any(|file| file.ends_with(&format!("/{page}"))), "{page} of {files:?}");
    }
    for file in &files {
        let page = fs::read_to_string(directory.path().join(file)).unwrap();
        assert!(page.contains(".TH") && page.contains(".SH NAME"), "{file}");
        let rendered = Program::new("groff")
            .args(["-K", "utf8", "-man", "-Tutf8", "-ww", file])
            .current_dir(&directory)
            .output();
        if let Ok(rendered) = rendered {
            assert!(rendered.status.success() && rendered.stderr.is_empty(), "{file}: {rendered:?}");
        }
    }
    assert!(stdout(&mut tacit(directory.path(), &["man"])).contains(".TH tacit 1"));
}

#[test]
fn a_run_replays_the_same_or_says_what_differs() {
    let directory = tempfile::tempdir().unwrap();
    let mut arguments = vec!["run", "wlan-11n-150", "--json", "--scheme", "tcp-l4"];
    arguments.extend(SHORT);
    let result = stdout(&mut tacit(directory.path(), &arguments));
    let path = directory.path().join("result.json");
    fs::write(&path, &result).unwrap();
    let replayed = stdout(&mut tacit(directory.path(), &["replay", "result.json"]));
    assert!(replayed.contains("same, digest"), "{replayed}");
    // The command in the result reproduces the result.
    let value: Value = serde_json::from_str(&result).unwrap();
    let command = value["provenance"]["command"].as_str().unwrap();
    let mut words: Vec<&str> = command.split(' ').skip(1).collect();
    words.extend(["--json", "--no-cache"]);
    assert_eq!(stdout(&mut tacit(directory.path(), &words)), result, "{command}");

    let digest = value["digest"].as_str().unwrap();
    fs::write(&path, result.replace(digest, "0000000000000000")).unwrap();
    let output = tacit(directory.path(), &["replay", "result.json", "--json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let differs: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&differs["same"], &differs["digest"]), (&false.into(), &digest.into()));
    fs::write(&path, "{}").unwrap();
    tacit(directory.path(), &["replay", "result.json"]).assert().code(2);
}

#[test]
fn compared_runs_are_not_made_again() {
    let directory = tempfile::tempdir().unwrap();
    let mut arguments = vec!["compare", "--json", "--clients", "1", "--seeds", "2", "--no-report"];
    arguments.extend(SHORT);
    let first = stdout(&mut tacit(directory.path(), &arguments));
    let entries = || {
        let shelves = fs::read_dir(directory.path().join("cache/runs")).unwrap();
        let files = shelves.flat_map(|shelf| fs::read_dir(shelf.unwrap().path()).unwrap());
        files.map(|file| file.unwrap().path()).collect::<Vec<_>>()
    };
    let entry_count = entries().len();
    assert!(entry_count >= 20, "{entry_count} entries");
    assert_eq!(stdout(&mut tacit(directory.path(), &arguments)), first);
    assert_eq!(entries().len(), entry_count);
    // A damaged entry is reported and has no other effect.
    let damaged = &entries()[0];
    fs::write(damaged, "nonsense").unwrap();
    let output = tacit(directory.path(), &arguments).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), first);
    assert!(String::from_utf8(output.stderr).unwrap().contains("corrupted"));
    let elsewhere = tempfile::tempdir().unwrap();
    arguments.push("--no-cache");
    assert_eq!(stdout(&mut tacit(elsewhere.path(), &arguments)), first);
    assert!(!elsewhere.path().join("cache").exists());
}

#[test]
fn quick_runs_are_short_and_few_unless_told_otherwise() {
    let directory = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| -> Value {
        serde_json::from_str(&stdout(&mut tacit(directory.path(), arguments))).unwrap()
    };
    let quick = run(&["run", "wired-10", "--quick", "--json"]);
    assert_eq!(quick["measured_s"], 4.0);
    // The thirtieth client starts at 2.9 s. The measurement starts a second later and takes 3 s.
    let many = run(&["run", "wlan-11n-150", "--clients", "30", "--quick", "--json"]);
    assert_eq!(many["measured_s"], 3.0);
    let overridden = run(&["run", "wired-10", "--quick", "--set", "run.duration=2s", "--json"]);
    assert_eq!(overridden["measured_s"], 1.0);
    let compared = run(&[
        "compare",
        "wired-10",
        "--quick",
        "--clients",
        "1",
        "--schemes",
        "tcp-l4",
        "--no-report",
        "--json",
    ]);
    assert_eq!(compared["rows"][0]["seeds"], 3);
}

#[test]
fn several_scenarios_make_one_page() {
    let directory = tempfile::tempdir().unwrap();
    let mut arguments =
        vec!["compare", "wlan-11n-150", "wired-10", "--json", "--clients", "1", "--seeds", "1"];
    arguments.extend(["--schemes", "tcp-l4", "--report", "both"]);
    arguments.extend(SHORT);
    let compared: Value = serde_json::from_str(&stdout(&mut tacit(directory.path(), &arguments))).unwrap();
    assert_eq!(compared.as_array().unwrap().len(), 2);
    let page = || fs::read_to_string(directory.path().join("both/index.html")).unwrap();
    let drawn = page();
    assert!(drawn.contains("wlan-11n-150") && drawn.contains("wired-10"));
    fs::remove_file(directory.path().join("both/index.html")).unwrap();
    let arguments = ["report", "both/wlan-11n-150", "both/wired-10", "--report", "both", "--json"];
    let redrawn: Value = serde_json::from_str(&stdout(&mut tacit(directory.path(), &arguments))).unwrap();
    assert_eq!(redrawn, compared);
    assert_eq!(page(), drawn);
    // A scenario that does not exist is reported before anything is run.
    tacit(directory.path(), &["compare", "wired-10", "wired-11", "--report", "none"]).assert().code(2);
    assert!(!directory.path().join("none").exists());
}

/// A published crate contains the texts of its licences as files; symbolic links would become files of one line.
#[test]
fn published_crates_carry_the_licences() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let core = ["ack", "between", "congestion", "packet", "rohc", "tack-proto", "tcp"]
        .map(|name| format!("core/{name}"));
    for krate in core.iter().map(String::as_str).chain(["network/net", "network/quinn", "network/tack"]) {
        for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
            let copied = fs::read(root.join("crates").join(krate).join(licence)).unwrap();
            assert!(copied == fs::read(root.join(licence)).unwrap(), "{krate}/{licence}");
        }
    }
}
