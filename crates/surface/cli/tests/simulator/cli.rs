//! The program as seen by its users: arguments in; text, JSON, files and exit codes out.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use assert_cmd::Command;
use serde_json::Value;

/// Options that shorten a comparison to milliseconds.
const SHORT: [&str; 4] = ["--set", "run.duration=300ms", "--set", "run.measure-from=100ms"];

fn tacit(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("tacit").unwrap();
    // A separate cache, so that runs of other tests are not reused.
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join(directory.file_name().unwrap());
    command.current_dir(directory).env("TACIT_CACHE_DIR", cache).args(arguments);
    command
}

fn json(command: &mut Command) -> Value {
    let output = command.assert().success().get_output().stdout.clone();
    serde_json::from_slice(&output).unwrap()
}

/// Exit code and the single line on standard error.
fn failure(directory: &Path, arguments: &[&str]) -> (i32, String) {
    let output = tacit(directory, arguments).output().unwrap();
    assert!(output.stdout.is_empty(), "{arguments:?} printed a result");
    let line = String::from_utf8(output.stderr).unwrap();
    assert_eq!(line.lines().count(), 1, "{line}");
    (output.status.code().unwrap(), line.trim_end().to_owned())
}

fn empty() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn compare_has_the_promised_keys_and_files() {
    let directory = empty();
    let mut arguments = vec!["compare", "--json", "--clients", "1,2", "--seeds", "2"];
    arguments.extend(SHORT);
    let result = json(&mut tacit(directory.path(), &arguments));
    assert_eq!(result["scenario"], "wlan-11n-150");
    let rows = result["rows"].as_array().unwrap();
    // Eleven schemes, two client counts.
    assert_eq!(rows.len(), 22);
    for row in rows {
        for key in [
            "scheme",
            "clients",
            "goodput_bps_mean",
            "goodput_bps_ci95",
            "gain_over_stock",
            "share_of_udp",
            "tcp_acks_on_air_per_s",
            "acks_per_data_packet",
            "collisions_per_s",
            "ampdu_mean",
            "airtime",
            "queue_delay_p50_us",
            "queue_delay_p95_us",
            "retry_share",
        ] {
            assert!(!row[key].is_null() || row["scheme"] == "udp", "{key} in {row}");
        }
        if row["scheme"] == "stock" {
            assert_eq!(row["gain_over_stock"], 0.0);
        }
    }
    let names: Vec<_> = rows.iter().take(11).map(|row| row["scheme"].as_str().unwrap()).collect();
    let hack = ["hack-more-data", "hack-batch", "hack-opportunistic", "hack-timer"];
    assert_eq!(
        names,
        [&["stock"], &hack[..], &["tcp-l1", "tcp-l4", "tcp-l8", "tcp-l16", "tack", "udp"]].concat()
    );
    let mut files: Vec<String> = fs::read_dir(directory.path().join("tacit-report"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort_unstable();
    assert_eq!(
        files,
        [
            "applications.parquet",
            "flows.parquet",
            "hops.parquet",
            "index.html",
            "runs.jsonl",
            "runs.parquet",
            "series.parquet",
            "stations.parquet"
        ]
    );
}

/// Column names and lines of a command's output.
fn csv(command: &mut Command) -> (Vec<String>, Vec<csv::StringRecord>) {
    let output = command.assert().success().get_output().stdout.clone();
    let mut reader = csv::Reader::from_reader(output.as_slice());
    let names = reader.headers().unwrap().iter().map(str::to_owned).collect();
    (names, reader.records().map(Result::unwrap).collect())
}

/// Whether a CSV field and a JSON value are equal.
fn is_same(field: &str, value: &Value) -> bool {
    match value {
        Value::Null => field.is_empty(),
        Value::String(text) => field == text,
        value => field.parse().ok() == value.as_f64(),
    }
}

#[test]
fn compare_as_csv_has_the_rows_of_json() {
    let directory = empty();
    let compare = |form: &'static str, more: &[&str]| {
        let words =
            ["compare", form, "--clients", "1,2", "--seeds", "2", "--schemes", "stock", "--no-report"];
        let mut command = tacit(directory.path(), &words);
        command.args(SHORT).args(more);
        command
    };
    let (names, lines) = csv(&mut compare("--csv", &[]));
    let rows = json(&mut compare("--json", &[]))["rows"].as_array().unwrap().clone();
    assert_eq!((lines.len(), rows.len()), (2, 2));
    for (line, row) in lines.iter().zip(&rows) {
        let keys = row.as_object().unwrap().iter().flat_map(|(key, value)| match value {
            Value::Object(parts) => {
                parts.iter().map(|(part, value)| (format!("{key}_{part}"), value)).collect()
            }
            value => vec![(key.clone(), value)],
        });
        let keys: Vec<_> = keys.collect();
        assert_eq!((names[0].as_str(), &line[0]), ("scenario", "wlan-11n-150"));
        assert_eq!(names[1..], keys.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>());
        for ((key, value), field) in keys.iter().zip(line.iter().skip(1)) {
            assert!(is_same(field, value), "{key} is {value}, not {field}");
        }
    }
    let (names, lines) = csv(&mut compare("--csv", &["--sweep", "wifi.distance=5 m,20m"]));
    assert_eq!(names[..3], ["scenario", "wifi.distance_m", "scheme"]);
    let places: Vec<_> = lines.iter().map(|line| (&line[1], &line[3])).collect();
    assert_eq!(places, [("5.0", "1"), ("5.0", "2"), ("20.0", "1"), ("20.0", "2")]);
}

/// The columns are the same for every scenario.
#[test]
fn csv_of_a_wire_has_empty_fields_for_what_is_of_wifi() {
    let directory = empty();
    let words = [
        "compare",
        "wired-10",
        "wlan-11n-150",
        "--csv",
        "--clients",
        "1",
        "--seeds",
        "1",
        "--schemes",
        "stock",
    ];
    let (names, lines) = csv(tacit(directory.path(), &words).args(SHORT));
    let idle = names.iter().position(|name| name == "airtime_idle").unwrap();
    assert_eq!([&lines[0][0], &lines[1][0]], ["wired-10", "wlan-11n-150"]);
    assert_eq!(&lines[0][idle], "");
    assert!(lines[1][idle].parse::<f64>().unwrap() < 1.0);
}

#[test]
fn a_run_as_csv_has_the_values_of_json() {
    let directory = empty();
    let run = |form: &str| {
        let mut command = tacit(directory.path(), &["run", "wlan-11n-150", "--clients", "2", form]);
        command.args(SHORT);
        command
    };
    let whole = json(&mut run("--json"));
    let (names, lines) = csv(&mut run("--csv"));
    assert_eq!(names[..4], ["run", "scenario", "scheme", "clients"]);
    assert_eq!(lines.len(), 1);
    let value = |name: &str| &lines[0][names.iter().position(|at| at == name).unwrap()];
    assert_eq!(value("digest"), whole["digest"]);
    for (name, measured) in whole["metrics"].as_object().unwrap() {
        assert!(is_same(value(name), measured), "{name} is {measured}, not {}", value(name));
    }
    let text = run("--csv").assert().success().get_output().stdout.clone();
    assert_eq!(String::from_utf8(text).unwrap().lines().count(), 2, "a line per row");
    for (table, key) in [("flows", "flows"), ("stations", "stations"), ("hops", "hops")] {
        let (names, lines) = csv(&mut run(&format!("--csv={table}")));
        let parts = whole[key].as_array().unwrap();
        assert_eq!(lines.len(), parts.len(), "{table}");
        for (line, part) in lines.iter().zip(parts) {
            for (name, field) in names.iter().zip(line) {
                if let Some(value) = part.get(name).filter(|value| !value.is_array()) {
                    assert!(is_same(field, value), "{table}: {name} is {value}, not {field}");
                }
            }
        }
    }
}

#[test]
fn a_sweep_is_parquet_or_csv() {
    let directory = empty();
    let words = ["sweep", "wired-10", "--seeds", "2", "--sweep", "wired.rate=5Mbps,10Mbps", "--format"];
    let sweep = |format: &str| {
        let mut command = tacit(directory.path(), &words);
        command.arg(format).args(SHORT);
        command
    };
    let output = sweep("csv").assert().success().get_output().clone();
    assert_eq!(output.stdout, b"4 runs in 2 files, 0 of them reused\n");
    assert_eq!(output.stderr, b"results: tacit-sweep/runs/**/*.csv\n");
    let again = sweep("csv").assert().success().get_output().stdout.clone();
    assert_eq!(again, b"4 runs in 2 files, 4 of them reused\n");
    let folder = directory.path().join("tacit-sweep/runs/00001-as-written");
    let mut files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let file = files.find(|path| path.extension().unwrap() == "csv").expect("beside its record");
    let mut reader = csv::Reader::from_path(&file).unwrap();
    let rate = reader.headers().unwrap().iter().position(|name| name == "wired.rate_bps").unwrap();
    let rates: Vec<_> = reader.records().map(|line| line.unwrap()[rate].to_owned()).collect();
    assert_eq!(rates, ["10000000.0", "10000000.0"]);
}

#[test]
fn a_sweep_warns_of_places_where_nothing_arrives() {
    let directory = empty();
    let distances = "wifi.distance=5 m,20 m,21 m,22 m,23 m,24 m,25 m,26 m";
    let words = ["sweep", "wlan-11n-150", "--seeds", "1", "--schemes", "udp", "--sweep", distances];
    let stderr = tacit(directory.path(), &words).args(SHORT).assert().success().get_output().stderr.clone();
    let stderr = String::from_utf8(stderr).unwrap();
    let warnings: Vec<&str> = stderr.lines().filter(|line| line.starts_with("tacit: warning: ")).collect();
    assert_eq!(warnings.len(), 6, "{stderr}");
    assert!(
        warnings[0].starts_with("tacit: warning: wifi.distance=20 m: client 1 is out of reach"),
        "{stderr}"
    );
    assert_eq!(warnings[5], "tacit: warning: 2 more of this kind");
}

#[test]
fn the_report_of_a_sweep_is_the_comparison_at_its_places() {
    let directory = empty();
    let options =
        ["--seeds", "2", "--clients", "1,2", "--schemes", "stock,udp", "--sweep", "wired.rate=5Mbps,10Mbps"];
    let stdout_of =
        |command: &[&str]| tacit(directory.path(), command).assert().success().get_output().stdout.clone();
    stdout_of(&[&["sweep", "wired-10", "--out", "kept"], &options[..], &SHORT[..]].concat());
    let compared = [&["compare", "wired-10", "--no-report"], &options[..], &SHORT[..]].concat();
    assert_eq!(stdout_of(&["report", "kept"]), stdout_of(&compared), "with a table of all places");
    let json = stdout_of(&["report", "kept", "--json"]);
    assert_eq!(json, stdout_of(&[&compared[..], &["--json"]].concat()));
    let parts: Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(parts[1]["at"][0], "wired.rate=10Mbps");
    let page = fs::read_to_string(directory.path().join("kept/index.html")).unwrap();
    assert!(page.contains("wired.rate=5Mbps") && page.contains("wired.rate=10Mbps"));
}

#[test]
fn a_sweep_is_plotted_in_the_format_of_the_file() {
    let directory = empty();
    let options =
        ["wired-10", "--seeds", "2", "--schemes", "stock,udp", "--sweep", "wired.rate=5Mbps,10Mbps"];
    let plotted = ["--plot", "goodput:wired.rate", "-o", "a.svg", "-o", "a.pdf", "-o", "a.csv"];
    let sweep =
        |more: &[&str]| tacit(directory.path(), &[&["sweep"], &options[..], &SHORT[..], more].concat());
    let output =
        sweep(&[&["--format", "csv"], &plotted[..]].concat()).assert().success().get_output().clone();
    assert!(String::from_utf8(output.stderr).unwrap().starts_with("plot: a.svg\nplot: a.pdf\nplot: a.csv\n"));
    let read = |name: &str| fs::read(directory.path().join(name)).unwrap();
    let (svg, csv) = (String::from_utf8(read("a.svg")).unwrap(), read("a.csv"));
    for text in ["wired-10: goodput over wired.rate", "wired.rate (Mbps)", "goodput (Mb/s)", "stock", "udp"] {
        assert!(svg.contains(&format!(">{text}</text>")), "{text}");
    }
    assert!(read("a.pdf").starts_with(b"%PDF-"));
    let mut reader = csv::Reader::from_reader(&csv[..]);
    assert_eq!(
        reader.headers().unwrap(),
        ["scheme", "wired.rate (Mbps)", "goodput (Mb/s)", "ci95", "seeds"].as_slice()
    );
    assert_eq!(reader.records().count(), 4, "two schemes at two rates");
    // The same from what is there: without a run, and by the report.
    sweep(&[&["--format", "csv"], &plotted[..2], &["-o", "b.csv"][..]].concat()).assert().success();
    tacit(directory.path(), &["report", "tacit-sweep", "--plot", "goodput", "-o", "c.csv"])
        .assert()
        .success();
    assert_eq!((&read("b.csv"), &read("c.csv")), (&csv, &csv));
    for (words, expected) in [
        (&["--plot", "goodput:wired.delay"][..], "wired.delay is not swept; allowed: goodput:wired.rate"),
        (&["--plot", "goodput", "-o", "a.png"], "a.png ends in no format of plots"),
        (&["--plot", "godput"], "did you mean"),
    ] {
        let error = sweep(words).assert().code(2).get_output().stderr.clone();
        assert!(String::from_utf8(error).unwrap().contains(expected), "{expected}");
    }
}

#[test]
fn a_report_is_redrawn_without_running() {
    let directory = empty();
    let mut arguments = vec!["compare", "--seeds", "1", "--clients", "1", "--report", "out"];
    arguments.extend(SHORT);
    let first = tacit(directory.path(), &arguments).assert().success().get_output().stdout.clone();
    let page = directory.path().join("out/index.html");
    let drawn = fs::read(&page).unwrap();
    fs::remove_file(&page).unwrap();
    let again = tacit(directory.path(), &["report", "out"]).assert().success().get_output().stdout.clone();
    assert_eq!(again, first);
    assert_eq!(fs::read(&page).unwrap(), drawn);
}

#[test]
fn a_figure_is_judged_again_without_running() {
    let directory = empty();
    let figure = |options: &[&str]| {
        let mut command = tacit(directory.path(), &["figure", "hack/fig6", "--quick"]);
        command.args(options);
        command
    };
    let nothing = figure(&["--from", "f"]).assert().code(2).get_output().stderr.clone();
    let expected = "tacit: f/hack-fig6: 1 of 1 runs are missing: ";
    assert!(String::from_utf8(nothing).unwrap().starts_with(expected));
    let all = tacit(directory.path(), &["figure", "--all", "--from", "f"])
        .assert()
        .code(2)
        .get_output()
        .stderr
        .clone();
    assert_eq!(String::from_utf8(all).unwrap(), "tacit: f: No such file or directory (os error 2)\n");
    assert!(!directory.path().join("f").exists());
    let report = json(&mut figure(&["--json", "--report", "f"]));
    // A cache without the run, and a deleted page.
    let page = directory.path().join("f/index.html");
    let drawn = fs::read(&page).unwrap();
    fs::remove_file(&page).unwrap();
    let judged =
        json(figure(&["--json", "--from", "f"]).env("TACIT_CACHE_DIR", directory.path().join("other")));
    assert_eq!(judged, report);
    assert_eq!(fs::read(&page).unwrap(), drawn);
    assert!(!directory.path().join("other").exists() && !directory.path().join("tacit-report").exists());
    let judged = json(&mut figure(&["--json", "--from", "f", "--no-report"]));
    assert_eq!((&judged["claims"], judged["svg"].is_null()), (&report["claims"], true));
}

#[test]
fn equal_runs_have_equal_digests() {
    let directory = empty();
    let run = |extra: &[&str]| {
        let mut arguments = vec!["run", "wlan-11n-150", "--json"];
        arguments.extend(SHORT);
        arguments.extend(extra);
        json(&mut tacit(directory.path(), &arguments))
    };
    let plain = run(&[]);
    assert!(plain["goodput_bps"].as_f64().unwrap() > 1e7);
    assert!(plain["flows"].as_array().unwrap().len() == 1 && plain["airtime"].is_object());
    assert_eq!(run(&[]), plain);
    assert_eq!(run(&["--wire"])["digest"], plain["digest"]);
    assert_ne!(run(&["--seed", "2"])["digest"], plain["digest"]);
    let captured = run(&["--pcap", "air.pcapng"]);
    assert_eq!(captured["digest"], plain["digest"]);
    // Section header block of pcapng.
    assert_eq!(fs::read(directory.path().join("air.pcapng")).unwrap()[..4], [0x0a, 0x0d, 0x0d, 0x0a]);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "only the capture is left");
}

#[test]
fn a_capture_that_nobody_reads_to_its_end_is_said_in_one_sentence() {
    let directory = empty();
    let mut arguments = vec!["run", "wlan-11n-150", "--pcap", "/dev/stdout"];
    arguments.extend(SHORT);
    let mut run = std::process::Command::new(env!("CARGO_BIN_EXE_tacit"));
    let mut run = run.args(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(run.stdout.take());
    let output = run.wait_with_output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "tacit: --pcap: /dev/stdout: the program that reads the capture stopped before its end\n"
    );
    assert_eq!(output.status.code(), Some(2));
    arguments[3] = "/dev/full";
    let full = tacit(directory.path(), &arguments).output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&full.stderr),
        "tacit: --pcap: /dev/full: No space left on device (os error 28)\n"
    );
}

#[test]
fn a_cache_that_cannot_be_written_is_said_once() {
    let directory = empty();
    fs::write(directory.path().join("file"), "").unwrap();
    let mut compare = tacit(directory.path(), &["compare", "wlan-11n-150", "--quick", "--clients", "1"]);
    let output = compare.env("TACIT_CACHE_DIR", directory.path().join("file")).output().unwrap();
    assert!(output.status.success());
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(stderr.matches("not cached").count(), 1, "{stderr}");
    assert!(stderr.contains("tacit: results are not cached from here on: "), "{stderr}");
}

#[test]
fn captures_of_runs_can_be_audited() {
    let directory = empty();
    let mut arguments = vec!["run", "hack-2014-11n-150", "--pcap", "air.pcapng"];
    arguments.extend(SHORT);
    tacit(directory.path(), &arguments).assert().success();
    let audit = json(&mut tacit(directory.path(), &["audit", "air.pcapng", "--json"]));
    let total = &audit["total"];
    for key in ["data_packets", "ack_packets", "ack_ratio", "ack_bytes"] {
        assert!(total[key].as_f64().unwrap() > 0.0, "{key}: {total}");
    }
    let ratio = total["ack_ratio"].as_f64().unwrap();
    assert!((0.45..0.6).contains(&ratio), "one ACK per two segments, not {ratio}");
    assert!(audit["flows"].is_array() && audit["prediction"].is_object());
}

#[test]
fn theory_and_figures_speak_json() {
    let directory = empty();
    let theory =
        json(&mut tacit(directory.path(), &["theory", "--phy", "802.11a", "--rate", "54Mbps", "--json"]));
    for key in ["udp", "tcp", "hack"] {
        assert!(theory["goodput_bps"][key].as_f64().unwrap() > 2e7, "{theory}");
    }
    let one = json(&mut tacit(directory.path(), &["figure", "hack/fig1a", "--json", "--no-report"]));
    assert_eq!(one["id"], "hack/fig1a");
    for claim in one["claims"].as_array().unwrap() {
        for key in ["text", "paper", "measured", "tolerance", "pass"] {
            assert!(!claim[key].is_null(), "{key} in {claim}");
        }
    }
    let listed = json(&mut tacit(directory.path(), &["figure", "--list", "--json"]));
    let several = ["figure", "tack/fig8", "hack/fig1b", "--json", "--report", "f"];
    let outcomes = json(&mut tacit(directory.path(), &several));
    assert_eq!((&outcomes[0]["id"], &outcomes[1]["id"]), (&"tack/fig8".into(), &"hack/fig1b".into()));
    assert!(listed.as_array().unwrap().iter().any(|figure| figure["id"] == "tack/fig8"));
    assert!(directory.path().join("f/index.html").is_file());
    assert!(directory.path().join("f/hack-fig1b.svg").is_file());
}

#[test]
fn the_exit_code_tells_whether_a_claim_failed() {
    let directory = empty();
    // An 802.11n link at 65 Mb/s carries about 60 Mb/s, so one bound holds and the other does not. A stated deviation
    // is accepted only within its range.
    let deviation = |measured| format!("deviation = \"the link has 65 Mb/s\"\nmeasured = {measured}");
    for (at_least, deviation, code, verdict) in [
        (30, String::new(), 0, "pass"),
        (70, String::new(), 1, "fail"),
        (70, deviation("[50, 65]"), 0, "missed"),
        (70, deviation("[65, 69]"), 1, "fail"),
        (100_000, "deviation = \"because\"".into(), 2, ""),
    ] {
        let text = format!(
            "title = \"One download\"\npaper = \"ours\"\n\
             [sweep]\nscenario = \"wlan-11n-150\"\nset = [\"run.duration=400 ms\"]\nschemes = [\"stock\"]\nseeds = 1\n\
             x = {{ key = \"wifi.rate\", unit = \"Mbps\", values = [65] }}\n\
             [[claim]]\ntext = \"goodput\"\npaper = {at_least}\nunit = \"Mb/s\"\n\
             measure = {{ value = \"stock\", x = 65 }}\nbound = \"at-least\"\ntolerance = 0\n{deviation}\n"
        );
        fs::write(directory.path().join("mine.toml"), text).unwrap();
        let output =
            tacit(directory.path(), &["figure", "mine.toml", "--json", "--no-report"]).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "at least {at_least}: {stderr}");
        if code == 2 {
            assert!(
                stderr.contains("measured = [1, 2.5] beside it") && stderr.lines().count() == 1,
                "{stderr}"
            );
            continue;
        }
        let outcome: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(outcome["claims"][0]["pass"], at_least == 30, "{outcome:#}");
        assert_eq!(outcome["claims"][0]["verdict"], verdict, "{outcome:#}");
    }
}

/// One condition is met, one is not, and one refers to a missing scheme: exit code 1, one line each, and a file for CI.
#[test]
fn conditions_end_with_1_and_are_written_for_ci() {
    let directory = empty();
    let mut arguments =
        vec!["compare", "--no-report", "--clients", "1", "--seeds", "1", "--schemes", "stock,hack-batch"];
    arguments.extend(SHORT);
    let passes = [&arguments[..], &["--fail-if", "hack-batch.goodput_mbps < 1 Mb/s"]].concat();
    tacit(directory.path(), &passes).assert().code(0).stderr("");
    arguments.extend([
        "--fail-if",
        "goodput_mbps > 1",
        "--fail-if",
        "retry_share > 99 %",
        "--fail-if",
        "udp.retry_share > 2",
    ]);
    arguments.extend(["--junit", "<&>.xml"]);
    let output = tacit(directory.path(), &arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).unwrap();
    let lines: Vec<&str> = stderr.lines().collect();
    assert_eq!(lines.len(), 3, "{stderr}");
    assert!(
        lines[0].starts_with("tacit: broken: wlan-11n-150, 1 client, stock: goodput_mbps is "),
        "{stderr}"
    );
    assert!(
        lines[1].starts_with("tacit: broken: wlan-11n-150, 1 client, hack-batch: goodput_mbps is "),
        "{stderr}"
    );
    assert_eq!(lines[2], "tacit: broken: tacit compare: no results of udp");
    let xml = fs::read_to_string(directory.path().join("<&>.xml")).unwrap();
    assert!(xml.contains(r#"tests="5" skipped="0" failures="2" errors="1""#), "{xml}");
    assert!(
        xml.contains(r#"name="goodput_mbps &lt;= 1" classname="wlan-11n-150, 1 client, stock""#),
        "{xml}"
    );
    assert!(xml.contains("<system-out>tacit compare wlan-11n-150 "), "{xml}");
}

#[test]
fn a_run_is_held_against_its_metrics() {
    let directory = empty();
    let with = |condition: &'static str| {
        let mut arguments = vec!["run", "wired-10", "--fail-if", condition, "--junit", "run.xml"];
        arguments.extend(SHORT);
        let output = tacit(directory.path(), &arguments).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(with("goodput_kbps < 100").0, 0);
    let (code, stderr) = with("airtime_idle > 0");
    assert_eq!(code, 1, "a metric without a value is no pass");
    assert!(stderr.contains("airtime_idle has no value here"), "{stderr}");
    let (code, stderr) = with("goodput_mps < 1");
    assert_eq!((code, stderr.lines().count()), (2, 1));
    assert!(stderr.contains("nothing is called goodput_mps, did you mean \"goodput_bps\"?"), "{stderr}");
}

#[test]
fn bad_input_is_one_line_and_exit_code_2() {
    let directory = empty();
    fs::write(directory.path().join("my.toml"), "base = \"wlan-11n-150\"\n[wifi]\nrat = \"65Mbps\"\n")
        .unwrap();
    fs::write(directory.path().join("junk.pcap"), "junk").unwrap();
    for (arguments, expected) in [
        (
            &["run", "my.toml"][..],
            "tacit: my.toml:3: unknown key \"rat\" in [wifi], did you mean \"rate\"?; allowed: ",
        ),
        (&["compare", "nowhere"], "tacit: scenario: no scenario or file \"nowhere\"; allowed: "),
        (
            &["compare", "--schemes", "stok"],
            "tacit: --schemes: unknown scheme \"stok\", did you mean \"stock\"?; ",
        ),
        (&["compare", "--clients", "0"], "tacit: --clients: 0 is out of range; allowed: 1 to 1000"),
        (&["compare", "--seeds", "0"], "tacit: --seeds: 0 is out of range; allowed: 1 to 10000"),
        (&["compare", "--clients", "many"], "tacit: invalid value 'many' for '--clients <N,…>'"),
        (&["comapre"], "tacit: unrecognized subcommand 'comapre'; tip: "),
        (&["audit", "nowhere.pcap"], "tacit: nowhere.pcap: cannot open: "),
        (&["audit", "junk.pcap"], "tacit: junk.pcap: "),
        (&["theory", "--rate", "7Mbps"], "tacit: --rate: 802.11n has no rate 7Mbps; allowed: 6.5Mbps, "),
        (
            &["figure", "hack/fig1c"],
            "tacit: figure: no figure \"hack/fig1c\", did you mean \"hack/fig1a\"?; ",
        ),
        (&["report", "nowhere"], "tacit: nowhere/runs.jsonl: "),
        (
            &["sweep", "wired-10", "--format", "csv", "--dask", "tcp://localhost:1"],
            "tacit: --format: workers of Dask give no csv files; allowed: parquet with --dask",
        ),
        (&["run", "wired-10", "--pcap", "x"], "tacit: --pcap: wired-10 has no Wi-Fi to capture; allowed: "),
    ] {
        let (code, line) = failure(directory.path(), arguments);
        assert_eq!(code, 2, "{arguments:?}: {line}");
        assert!(line.starts_with(expected), "{arguments:?}: {line}");
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2, "nothing is left behind");
}

#[test]
fn usage_errors_are_one_sentence() {
    let directory = empty();
    for (arguments, expected) in [
        (
            &["run"][..],
            "tacit: the following required arguments were not provided: <SCENARIO>; see tacit run --help",
        ),
        (
            &["figure", "x", "--list", "--all"],
            "tacit: the argument '[ID]...' cannot be used with: --list, --all; see tacit figure --help",
        ),
        (
            &["run", "wired-10", "--seed", "many"],
            "tacit: invalid value 'many' for '--seed <N>': invalid digit found in string; see tacit --help",
        ),
        (
            &["run", "wired-10", "--sed", "1"],
            "tacit: unexpected argument '--sed' found; tip: a similar argument exists: '--seed'; \
             see tacit run --help",
        ),
        (
            &["rplay"],
            "tacit: unrecognized subcommand 'rplay'; tip: a similar subcommand exists: 'replay'; \
             see tacit --help",
        ),
        (&["rohc"], "tacit: a command is missing; see tacit rohc --help"),
        (
            &["compare", "--csv", "--json"],
            "tacit: the argument '--csv' cannot be used with '--json'; see tacit compare --help",
        ),
        (
            &["run", "wired-10", "--json", "--csv"],
            "tacit: the argument '--json' cannot be used with '--csv[=<TABLE>]'; see tacit run --help",
        ),
        (
            &["run", "wired-10", "--csv=metrics"],
            "tacit: invalid value 'metrics' for '--csv[=<TABLE>]'; \
             [possible values: runs, flows, applications, hops, stations, series]; \
             tip: a similar value exists: 'series'; see tacit --help",
        ),
        (
            &["sweep", "--format", "nonsense"],
            "tacit: invalid value 'nonsense' for '--format <FORMAT>'; [possible values: parquet, csv]; \
             see tacit --help",
        ),
    ] {
        assert_eq!(failure(directory.path(), arguments), (2, expected.to_owned()), "{arguments:?}");
    }
    let (_, line) = failure(directory.path(), &["completions", "tcsh"]);
    assert!(line.contains("'<SHELL>'; [possible values: bash, "), "{line}");
}

#[test]
fn one_scenario_is_toml_or_json_that_holds_it() {
    let directory = empty();
    let output = tacit(directory.path(), &["scenarios", "wlan-web"]).assert().success();
    let toml = String::from_utf8(output.get_output().stdout.clone()).unwrap();
    let whole = json(&mut tacit(directory.path(), &["scenarios", "wlan-web", "--json"]));
    assert_eq!((&whole["name"], &whole["scenario_text"]), (&"wlan-web".into(), &toml.into()));
}

#[test]
fn version_names_the_commit() {
    let directory = empty();
    let output = tacit(directory.path(), &["--version"]).assert().success().get_output().stdout.clone();
    let text = String::from_utf8(output).unwrap();
    assert!(text.starts_with("tacit 0.") && text.contains('('), "{text}");
}

#[cfg(unix)]
#[test]
fn a_reader_that_stops_early_is_no_failure() {
    use std::process::{Command as Process, Stdio};
    let directory = empty();
    let mut child = Process::new(env!("CARGO_BIN_EXE_tacit"))
        .current_dir(directory.path())
        .args(["scenarios", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
}

#[cfg(unix)]
#[test]
fn an_interrupted_comparison_resumes() {
    use std::process::{Command as Process, Stdio};
    use std::time::Duration;
    let directory = empty();
    let arguments =
        ["compare", "--clients", "2", "--seeds", "300", "--schemes", "stock", "--report", "out", "--json"];
    let mut child = Process::new(env!("CARGO_BIN_EXE_tacit"))
        .current_dir(directory.path())
        .env("TACIT_CACHE_DIR", directory.path().join("cache"))
        .args(arguments)
        .args(SHORT)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let record = directory.path().join("out/runs.jsonl");
    while fs::read_to_string(&record).map_or(0, |text| text.lines().count()) < 5 {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it could be interrupted");
        #[expect(clippy::disallowed_methods, reason = "waits for another process, which no event announces")]
        std::thread::sleep(Duration::from_millis(1));
    }
    Process::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let interrupted = child.wait_with_output().unwrap();
    assert_eq!(interrupted.status.code(), Some(130));
    let stderr = String::from_utf8(interrupted.stderr).unwrap();
    assert!(
        stderr.ends_with("runs finished and kept in out; the same command again makes the others\n"),
        "{stderr}"
    );
    let kept = fs::read_to_string(&record).unwrap().lines().count();
    assert!((5..600).contains(&kept), "{kept}");
    assert!(!directory.path().join("out/runs.parquet").exists());

    let mut again = tacit(directory.path(), &arguments);
    let rows = json(again.args(SHORT));
    assert_eq!(rows["rows"][0]["seeds"], 300);
    // Stock and UDP once per seed, and the sweep.
    assert_eq!(fs::read_to_string(&record).unwrap().lines().count(), 2 * 300 + 1);
}

/// Links of a multi-link device are interfaces of the capture, and the connection's packets count once.
#[test]
fn the_audit_of_a_connection_over_two_links_adds_both() {
    let directory = empty();
    let mut arguments = vec!["run", "wlan-11be-mlo-5-6", "--pcap", "air.pcapng"];
    arguments.extend(["--set", "run.duration=60ms", "--set", "run.measure-from=30ms"]);
    tacit(directory.path(), &arguments).assert().success();
    let audit = json(&mut tacit(directory.path(), &["audit", "air.pcapng", "--json"]));
    let sent_as = audit["sent_as"].as_array().unwrap();
    let mut by_interface: Vec<_> =
        sent_as.iter().map(|sent| (&sent["interface"], &sent["width_mhz"])).collect();
    by_interface.sort_by_key(|(interface, _)| interface.as_u64());
    assert_eq!(by_interface, [(&0.into(), &80.into()), (&1.into(), &160.into())]);
    let sum = |key: &str| sent_as.iter().map(|sent| sent[key].as_u64().unwrap()).sum::<u64>();
    assert_eq!(audit["tcp_packets"], sum("packets"));
    assert_eq!((&audit["shares_links"], &audit["prediction"]["links"]), (&true.into(), &2.into()));
    let rate = audit["prediction"]["rate_mbps"].as_f64().unwrap();
    assert!((rate - 3_602.9).abs() < 0.1, "{rate}");
    let one = json(&mut tacit(
        directory.path(),
        &["audit", "air.pcapng", "--json", "--phy", "n", "--rate", "150Mbps"],
    ));
    assert_eq!(one["prediction"]["links"], 1, "of the hop that was named");
}

/// A cell with an 802.11ac and an 802.11ax client: each receives PPDUs of its own format, and tshark reads both. tshark
/// is installed by `./ci.sh setup`; without it the test is skipped and reports this.
#[test]
fn a_capture_of_a_mixed_cell_has_both_formats() {
    let directory = empty();
    let scenario =
        "base = \"wlan-11ax-1200\"\n[[client]]\nstandard = \"802.11ac\"\nrate = \"866.7Mbps\"\n[[client]]\n";
    fs::write(directory.path().join("mixed.toml"), scenario).unwrap();
    let mut arguments = vec!["run", "mixed.toml", "--clients", "2", "--pcap", "air.pcapng"];
    arguments.extend(["--set", "run.duration=400ms", "--set", "run.measure-from=200ms"]);
    tacit(directory.path(), &arguments).assert().success();
    let audit = json(&mut tacit(directory.path(), &["audit", "air.pcapng", "--json"]));
    let sent_as = audit["sent_as"].as_array().unwrap();
    let mut formats: Vec<_> = sent_as.iter().map(|sent| sent["format"].as_str().unwrap()).collect();
    formats.sort_unstable();
    assert_eq!(formats, ["HE SU", "VHT"]);
    assert_eq!(
        audit["prediction"]["phy"],
        if sent_as[0]["format"] == "VHT" { "802.11ac" } else { "802.11ax" }
    );
    let tshark = |filter: &str| {
        let mut command = std::process::Command::new("tshark");
        let output = command.args(["-r", "air.pcapng", "-Y", filter]).current_dir(directory.path()).output();
        match output {
            Ok(output) => Some(String::from_utf8_lossy(&output.stdout).lines().count()),
            Err(error) => {
                eprintln!("SKIPPED: tshark: {error}");
                None
            }
        }
    };
    let Some(wrong) = tshark("(_ws.malformed || _ws.expert.severity >= error) && radiotap.flags.badfcs == 0")
    else {
        return;
    };
    assert_eq!(wrong, 0);
    let address_filter = |address: u8| format!("wlan.addr == 02:00:00:00:00:0{address}");
    assert!(tshark(&format!("radiotap.vht.bw == 4 && {}", address_filter(1))).unwrap() > 100);
    assert!(tshark(&format!("radiotap.he.data_6.nsts == 2 && {}", address_filter(2))).unwrap() > 100);
    assert_eq!(tshark(&format!("radiotap.vht.bw == 4 && {}", address_filter(2))), Some(0));
    assert_eq!(tshark(&format!("radiotap.he.data_6.nsts == 2 && {}", address_filter(1))), Some(0));
}

#[test]
fn captures_of_the_air_open_in_tshark() {
    let directory = empty();
    for scheme in ["stock", "hack-more-data"] {
        let mut arguments = vec!["run", "lossy-11n-150", "--scheme", scheme, "--clients", "2"];
        arguments.extend([
            "--set",
            "run.duration=400ms",
            "--set",
            "run.measure-from=100ms",
            "--pcap",
            "air.pcapng",
        ]);
        tacit(directory.path(), &arguments).assert().success();
        // A frame that did not arrive has a wrong FCS on purpose, which tshark reports as an error.
        let wrong = "(_ws.malformed || _ws.expert.severity >= error) && radiotap.flags.badfcs == 0";
        let tshark = |filter: &str| {
            let mut command = std::process::Command::new("tshark");
            command.args(["-r", "air.pcapng", "-Y", filter]).current_dir(directory.path()).output()
        };
        let output = match tshark(wrong) {
            Ok(output) => output,
            Err(error) => {
                eprintln!("SKIPPED: tshark: {error}");
                return;
            }
        };
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let malformed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(
            malformed.lines().count(),
            0,
            "{scheme}: {}",
            malformed.lines().next().unwrap_or_default()
        );
        let data = tshark("tcp.len == 1448").unwrap();
        assert!(String::from_utf8_lossy(&data.stdout).lines().count() > 100, "{scheme}");
    }
}
