//! Errors about wrong input: on one line, before anything runs.

use std::fs;
use std::path::Path;

use assert_cmd::Command;

/// The single line on standard error of a command that refuses its input.
fn refused(directory: &Path, arguments: &[&str]) -> String {
    let mut command = Command::cargo_bin("tacit").unwrap();
    let output =
        command.current_dir(directory).env("TACIT_CACHE_DIR", directory).args(arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    assert!(output.stdout.is_empty(), "{arguments:?} printed a result");
    let line = String::from_utf8(output.stderr).unwrap();
    assert_eq!(line.lines().count(), 1, "{line}");
    line.trim_end().to_owned()
}

#[test]
fn names_that_are_nearly_right_are_suggested() {
    let directory = tempfile::tempdir().unwrap();
    let line_of = |arguments: &[&str]| refused(directory.path(), arguments);
    for (arguments, meant) in [
        (&["compare", "--schemes", "hack"][..], "hack-more-data"),
        (&["run", "wlan-11n-150", "--scheme", "reno"], "newreno"),
        (&["run", "wlan-11n-150", "--set", "tcp.congestion=Reno"], "newreno"),
        (&["run", "wlan-11n-150", "--fail-if", "goodput > 3"], "goodput_bps"),
    ] {
        let line = line_of(arguments);
        assert!(line.contains(&format!(", did you mean \"{meant}\"?; allowed: ")), "{arguments:?}: {line}");
        assert!(line.len() < 400, "{arguments:?}: {line}");
    }
}

#[test]
fn a_sweep_names_its_own_option_and_limits_have_units() {
    let directory = tempfile::tempdir().unwrap();
    let line_of = |arguments: &[&str]| refused(directory.path(), arguments);
    for command in ["sweep", "compare"] {
        let line = line_of(&[command, "wlan-11n-150", "--sweep", "wifi.distance=5 m,0 m"]);
        assert_eq!(line, "tacit: --sweep wifi.distance: \"0 m\" is out of range; allowed: 0.1 m to 100 km");
        let line =
            line_of(&[command, "wlan-11n-150", "--sweep", "wired.delay=1ms", "--set", "wifi.distance=0 m"]);
        assert!(line.starts_with("tacit: --set wifi.distance: "), "{line}");
    }
}

#[test]
fn a_misspelt_key_of_a_figure_points_to_the_page_about_figures() {
    let directory = tempfile::tempdir().unwrap();
    let text = "title = \"t\"\npaper = \"p\"\n[sweep]\nscenario = \"wlan-11n-150\"\nschemes = [\"udp\"]\nsead = 3\n\
                x = { key = \"wifi.rate\", unit = \"Mbps\", values = [65] }\n";
    fs::write(directory.path().join("my.toml"), text).unwrap();
    let line = refused(directory.path(), &["figure", "my.toml"]);
    assert!(
        line.starts_with("tacit: my.toml:6: unknown key \"sead\" in [sweep], did you mean \"seeds\"?"),
        "{line}"
    );
    assert!(line.ends_with("docs/use/figure.md has all"), "{line}");
}

#[test]
fn what_no_machine_holds_is_refused_before_it_runs() {
    let directory = tempfile::tempdir().unwrap();
    let unlimited = "base = \"wlan-11n-150\"\n[run]\nduration = \"1 s\"\nmeasure-from = \"200 ms\"\n[wifi]\nap-queue = \"unlimited\"\n\
                     [wired]\nrate = \"1000Gbps\"\n[traffic]\ntransport = \"udp\"\n";
    fs::write(directory.path().join("unlimited.toml"), unlimited).unwrap();
    let udp = ["--schemes", "udp", "--clients", "1"];
    for arguments in [vec!["run", "unlimited.toml"], [&["compare", "unlimited.toml"], &udp[..]].concat()] {
        let line = refused(directory.path(), &arguments);
        assert!(line.starts_with("tacit: an unlimited queue: "), "{line}");
        assert!(line.contains("MiB of memory; allowed: 1024 MiB: a limit for each queue"), "{line}");
    }
    let hour = ["run", "wired-10", "--set", "run.duration=60min", "--set", "run.sample-interval=1ms"];
    let line = refused(directory.path(), &hour);
    assert!(line.starts_with("tacit: run.sample-interval: 3,600,000 samples take about"), "{line}");
}

#[test]
fn a_report_that_cannot_be_written_is_noticed_before_the_runs() {
    let directory = tempfile::tempdir().unwrap();
    // A scenario that would run for minutes, on a path through a file.
    fs::write(directory.path().join("file"), "").unwrap();
    let long = ["run", "wlan-11n-150", "--set", "run.duration=60min", "--junit", "file/run.xml"];
    let line = refused(directory.path(), &long);
    assert!(line.starts_with("tacit: --junit: file/run.xml: "), "{line}");
    assert!(line.ends_with("; allowed: a file that can be written"), "{line}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "nothing is left");
}

/// Every condition is about the whole run: CI systems show its time beside each.
#[test]
fn each_condition_has_the_time_of_the_run() {
    let directory = tempfile::tempdir().unwrap();
    let run = "run wlan-11n-150 --quick --set run.duration=1s --set run.measure-from=200ms --no-cache \
               --junit new/run.xml --fail-if goodput_mbps<1 --fail-if retry_share>99";
    let mut command = Command::cargo_bin("tacit").unwrap();
    command.current_dir(directory.path()).args(run.split_whitespace()).assert().success();
    let xml = fs::read_to_string(directory.path().join("new/run.xml")).unwrap();
    let times: Vec<&str> = xml.split("time=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert_eq!(times.len(), 3, "{xml}");
    assert!(times.iter().all(|time| *time == times[0]), "{times:?}");
}
