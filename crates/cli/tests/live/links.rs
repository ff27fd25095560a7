//! Mobile links, impairments and chains under real programs.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::helper::{QUESTIONS, words};
use super::support::{machine, said, shell, skip, valid_report, waited_us};

/// A scenario in `directory`.
fn scenario(directory: &Path, text: &str) -> String {
    let path: PathBuf = directory.join("links.toml");
    fs::write(&path, text).unwrap();
    path.to_string_lossy().into_owned()
}

/// Longest that programs may have waited for a processor where a round trip is measured: of two on a round trip,
/// both ways, that is a millisecond and a half.
const WAITED_MAX_US: f64 = 400.0;

/// The round-trip times of small datagrams through a hop, copies included, in milliseconds; nothing where the
/// machine adds to them.
fn round_trips_ms(scenario: &str) -> Option<Vec<f64>> {
    let mut all = vec![scenario.to_owned(), "--json".into(), "--".into()];
    all.extend(words("helper", "udp_times"));
    all.extend(["--server".into(), "--".into()]);
    all.extend(words("helper", "udp_echo"));
    let output = shell(&all.iter().map(String::as_str).collect::<Vec<_>>()).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let waits = waited_us(&report);
    if report["valid"] != true || waits.iter().any(|us| *us > WAITED_MAX_US) {
        skip(&format!(
            "programs waited {waits:.0?} us for a processor, at most {WAITED_MAX_US} is judged; {}",
            report["reasons"]
        ));
        return None;
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let times = text.lines().filter_map(|line| line.strip_prefix("round trip ")?.strip_suffix(" us"));
    Some(times.map(|us| us.parse::<f64>().unwrap() / 1e3).collect())
}

#[test]
fn a_chain_is_as_long_as_its_links() {
    let Some(_machine) = machine(&[]) else { return };
    let directory = tempfile::tempdir().unwrap();
    // There and back: 2 (10 + 15 + 5) ms of delay, and up to 1 ms until an opportunity, twice.
    let mut text = String::new();
    for hop in [
        "kind = \"wired\"\ndelay = \"10 ms\"",
        "kind = \"cellular\"\ndelay = \"15 ms\"",
        "kind = \"wired\"\ndelay = \"5 ms\"",
    ] {
        text.push_str(&format!("[[hop]]\n{hop}\n"));
    }
    text.push_str("[cellular]\ndown-trace = \"even\"\nup-trace = \"even\"\n");
    fs::write(directory.path().join("even"), (1..=1_000).map(|ms| format!("{ms}\n")).collect::<String>())
        .unwrap();
    let Some(mut times) = round_trips_ms(&scenario(directory.path(), &text)) else { return };
    assert_eq!(times.len(), QUESTIONS as usize);
    times.sort_by(f64::total_cmp);
    let median = times[times.len() / 2];
    assert!(times[0] >= 60.0 && (60.0..64.0).contains(&median), "{times:?}");
}

#[test]
fn copies_and_jitter_reach_real_programs() {
    let Some(_machine) = machine(&[]) else { return };
    let directory = tempfile::tempdir().unwrap();
    let text =
        "[wired]\ndelay = \"20 ms\"\n[wired.up]\nduplicate = \"30 %\"\n[wired.down]\njitter = \"15 ms\"\n";
    let Some(times) = round_trips_ms(&scenario(directory.path(), text)) else { return };
    assert!((66..110).contains(&times.len()), "{} answers to {QUESTIONS} questions", times.len());
    let (least, most) =
        times.iter().fold((f64::MAX, 0.0_f64), |(least, most), ms| (least.min(*ms), most.max(*ms)));
    assert!(least >= 25.0 && most < 60.0 && most - least > 12.0, "{times:?}");
}

#[test]
fn a_download_gets_what_the_trace_and_the_rate_script_give() {
    let Some(_machine) = machine(&["iperf3"]) else { return };
    let directory = tempfile::tempdir().unwrap();
    // 3 of 4 ms: 9 Mb/s of IP packets, hence 8.69 of payload.
    let trace: String =
        (1..=4_000).filter(|ms| ms % 4 > 0 || *ms == 4_000).map(|ms| format!("{ms}\n")).collect();
    fs::write(directory.path().join("nine"), trace).unwrap();
    let cellular = "[cellular]\ndown-trace = \"nine\"\nup-trace = \"nine\"\nqueue = \"60 packets\"\n";
    // 12 Mb/s for the first second, then 6: of six seconds, 7.
    let script = "[wired]\nrate = \"12Mbps\"\nrate-script = [[\"1 s\", \"6Mbps\"]]\ndelay = \"10 ms\"\nqueue = \"60 packets\"\n";
    for (text, mbps) in [(cellular, 9.0), (script, 6.0)] {
        let path = scenario(directory.path(), text);
        let words = [
            &path,
            "--json",
            "--congestion",
            "cubic",
            "--",
            "iperf3",
            "-c",
            "198.18.0.1",
            "-R",
            "-t",
            "6",
            "--server",
            "--",
            "iperf3",
            "-s",
            "-1",
        ];
        let Some(report) = valid_report(&words) else { return };
        // The last seconds, without slow start and what an earlier rate left in the queue.
        let intervals = report["transfer"]["down"]["intervals"].as_array().unwrap();
        let rates: Vec<f64> =
            intervals.iter().map(|interval| interval["sum"]["bits_per_second"].as_f64().unwrap()).collect();
        let steady = rates[2..5].iter().sum::<f64>() / 3.0;
        let expected = mbps * 1e6 * 1_448.0 / 1_500.0;
        assert!((steady / expected - 1.0).abs() < 0.1, "{rates:?}, not {expected}");
    }
}
