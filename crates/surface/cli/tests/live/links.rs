//! Mobile links, impairments and chains with real programs.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::helper::{QUESTIONS, words};
use super::support::{download, machine, output_text, shell, skip, valid_report, waited_us};

/// Writes a scenario in `directory`.
fn scenario(directory: &Path, text: &str) -> String {
    let path: PathBuf = directory.join("links.toml");
    fs::write(&path, text).unwrap();
    path.to_string_lossy().into_owned()
}

/// Maximum time that programs may have waited for a CPU in tests that measure a round trip. With two programs in a
/// round trip, in both directions, this amounts to about 1.5 ms.
const WAITED_MAX_US: f64 = 400.0;

/// Round-trip times of small datagrams through a hop, including duplicates.
struct RoundTrips {
    ms: Vec<f64>,
    /// The maximum delay that the machine may have added to one of them.
    machine: Machine,
}

/// The maximum delay that a machine may have added to a round trip, as measured at the same time, in milliseconds.
#[derive(Clone, Copy, Debug)]
struct Machine {
    /// Delay of both programs together.
    programs: f64,
    /// Delay of the hop, which a round trip passes twice.
    hop: f64,
}

impl Machine {
    fn new(report: &Value, programs_late_us: &[f64]) -> Self {
        let number = |name: &str| report["lateness"][name].as_f64().unwrap();
        Self {
            programs: programs_late_us.iter().sum::<f64>() / 1e3,
            hop: 2.0 * number("max_us") / 1e3 + number("slipped_s") * 1e3,
        }
    }

    /// An explanation of how the machine may have added `ms`; `None` if it was not that late.
    fn explains(self, ms: f64) -> Option<String> {
        (self.programs + self.hop >= ms).then(|| {
            format!("programs were late by up to {:.1} ms and the hop by {:.1} ms", self.programs, self.hop)
        })
    }

    /// Skips the test if the machine explains a deviation of `ms` milliseconds in one of `times`, and fails it
    /// otherwise.
    fn excuse(self, ms: f64, how: &str, times: &[f64]) {
        match self.explains(ms) {
            Some(reason) => skip(&format!("an answer took {ms:.1} ms {how}: {reason}")),
            None => panic!("{times:?}, and {self:?}"),
        }
    }
}

#[test]
fn delays_that_the_machine_can_add_are_no_fault_and_longer_ones_are() {
    let report = serde_json::json!({ "lateness": { "max_us": 900.0, "slipped_s": 0.001 } });
    let machine = Machine::new(&report, &[1_200.0, 900.0]);
    let reason = machine.explains(4.0).unwrap();
    assert_eq!(reason, "programs were late by up to 2.1 ms and the hop by 2.8 ms");
    assert_eq!(machine.explains(5.0), None);
}

/// Round trips through a hop; `None` if the machine delays all of them.
fn round_trips(scenario: &str) -> Option<RoundTrips> {
    let mut all = vec![scenario.to_owned(), "--json".into(), "--".into()];
    all.extend(words("helper", "udp_times"));
    all.extend(["--server".into(), "--".into()]);
    all.extend(words("helper", "udp_echo_lateness"));
    let output = shell(&all.iter().map(String::as_str).collect::<Vec<_>>()).output().unwrap();
    assert!(output.status.success(), "{}", output_text(&output));
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
    let values_us = |what: &str| -> Vec<f64> {
        let lines = text.lines().filter_map(|line| line.strip_prefix(what)?.strip_suffix(" us"));
        lines.map(|us| us.parse().unwrap()).collect()
    };
    let late_us = values_us("late by ");
    assert_eq!(late_us.len(), 2, "both programs tell: {text}");
    let ms = values_us("round trip ").into_iter().map(|us| us / 1e3).collect();
    Some(RoundTrips { ms, machine: Machine::new(&report, &late_us) })
}

#[test]
fn a_chain_is_as_long_as_its_links() {
    let Some(_machine) = machine(&[]) else { return };
    let directory = tempfile::tempdir().unwrap();
    // The round trip is 2 (10 + 15 + 5) ms of delay, plus up to 1 ms until a delivery opportunity in each direction.
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
    let Some(RoundTrips { ms: mut times, machine }) = round_trips(&scenario(directory.path(), &text)) else {
        return;
    };
    assert_eq!(times.len(), QUESTIONS as usize);
    times.sort_by(f64::total_cmp);
    let median = times[times.len() / 2];
    assert!((60.0..64.0).contains(&median), "{times:?}");
    // A packet received by a late hop is timed from when the hop was due.
    let short = 60.0 - times[0];
    if short > 0.0 {
        machine.excuse(short, "too little", &times);
    }
}

#[test]
fn copies_and_jitter_reach_real_programs() {
    let Some(_machine) = machine(&[]) else { return };
    let directory = tempfile::tempdir().unwrap();
    let text =
        "[wired]\ndelay = \"20 ms\"\n[wired.up]\nduplicate = \"30 %\"\n[wired.down]\njitter = \"15 ms\"\n";
    let Some(RoundTrips { ms: times, machine }) = round_trips(&scenario(directory.path(), text)) else {
        return;
    };
    assert!((66..110).contains(&times.len()), "{} answers to {QUESTIONS} questions", times.len());
    let mut sorted = times.clone();
    sorted.sort_by(f64::total_cmp);
    let part = |share: usize| sorted[sorted.len() * share / 100];
    assert!(sorted[0] >= 25.0 && part(90) - part(10) > 12.0, "{times:?}");
    // The slowest response takes 2 * 20 + 15 ms, plus 5 ms for the machine. A longer time is an error unless the
    // machine was late by that amount.
    let beyond = sorted[sorted.len() - 1] - 55.0;
    if beyond >= 5.0 {
        machine.excuse(beyond, "too long", &times);
    }
}

#[test]
fn a_download_gets_what_the_trace_and_the_rate_script_give() {
    let Some(_machine) = machine(&["iperf3"]) else { return };
    let directory = tempfile::tempdir().unwrap();
    // An opportunity in 3 of every 4 ms: 9 Mb/s of IP packets, which is 8.69 Mb/s of payload.
    let trace: String =
        (1..=4_000).filter(|ms| ms % 4 > 0 || *ms == 4_000).map(|ms| format!("{ms}\n")).collect();
    fs::write(directory.path().join("nine"), trace).unwrap();
    let cellular = "[cellular]\ndown-trace = \"nine\"\nup-trace = \"nine\"\nqueue = \"60 packets\"\n";
    // 12 Mb/s for the first second, then 6 Mb/s: 7 Mb/s on average over six seconds.
    let script = "[wired]\nrate = \"12Mbps\"\nrate-script = [[\"1 s\", \"6Mbps\"]]\ndelay = \"10 ms\"\nqueue = \"60 packets\"\n";
    for (text, mbps) in [(cellular, 9.0), (script, 6.0)] {
        let path = scenario(directory.path(), text);
        let words = download(&[&path, "--json", "--congestion", "cubic"], "6");
        let Some(report) = valid_report(&words) else { return };
        // The last seconds, without slow start and the queue from the earlier rate.
        let intervals = report["transfer"]["down"]["intervals"].as_array().unwrap();
        let rates: Vec<f64> =
            intervals.iter().map(|interval| interval["sum"]["bits_per_second"].as_f64().unwrap()).collect();
        let steady = rates[2..5].iter().sum::<f64>() / 3.0;
        let expected = mbps * 1e6 * 1_448.0 / 1_500.0;
        assert!((steady / expected - 1.0).abs() < 0.1, "{rates:?}, not {expected}");
    }
}
