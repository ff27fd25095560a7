//! The page as a whole, from results that were not measured.

use super::*;

/// As the parts keep them: two pairs, with and without the optional fields.
fn canned<P: Part>(outcome: &str) -> Stored<P> {
    let text = format!(
        r#"{{
          "machine": {{ "processor": "A", "cores": 2, "memory_mb": 16000, "kernel": "6.1", "rust": "rustc 1", "cxx": "c++ 12" }},
          "run": {{ "began": "2026-01-02 03:04", "version": "0.1.0 (abc)", "took_s": 60, "niceness": -10, "load": [0.5, 2.25],
                   "others": 0.25, "commands": ["rustc"] }},
          "outcome": {outcome}
        }}"#
    );
    serde_json::from_str(&text).unwrap()
}

const SIMULATORS: &str = r#"{ "measured": { "ns3_version": "3.37", "rows": [
    { "name": "11n-150-tcp-1", "what": "one download",
      "ns3": [{ "goodput_bps": 110e6, "simulated_s": 10, "cpu_s": 4 }, { "goodput_bps": 100e6, "simulated_s": 10, "cpu_s": 6 }],
      "tacit": [{ "goodput_bps": 111.1e6, "simulated_s": 10, "cpu_s": 0.04 }, { "goodput_bps": 99e6, "simulated_s": 10, "cpu_s": 0.03 }] },
    { "name": "11n-150-tcp-10", "what": "ten downloads",
      "ns3": [{ "goodput_bps": 100e6, "simulated_s": 10, "cpu_s": 9 }, { "goodput_bps": 100e6, "simulated_s": 10, "cpu_s": 9 }],
      "tacit": [{ "goodput_bps": 95e6, "simulated_s": 10, "cpu_s": 0.03 }, { "goodput_bps": 96e6, "simulated_s": 10, "cpu_s": 0.03 }] }
] } }"#;

/// Results of a codec, with these bytes and nanoseconds.
fn stats(bytes: f64, ns: [f64; 2]) -> String {
    format!(
        r#"{{ "packets": 100, "bytes_per_packet": {bytes}, "compress_ns_per_packet": {}, "decompress_ns_per_packet": {},
             "failures": 0, "wrong": 0, "version": "2.3.1" }}"#,
        ns[0], ns[1]
    )
}

fn codecs(librohc: &[String], recorded: &str) -> String {
    format!(
        r#"{{ "measured": {{ "real": true, "rows": [ {{ "name": "acks", "strict": [{}, {}], "hack": [{}], "hack_batch": [{}],
             "librohc": [{}], "recorded": {recorded} }} ] }} }}"#,
        stats(9.5, [20.0, 25.0]),
        stats(9.5, [30.0, 35.0]),
        stats(4.25, [60.0, 50.0]),
        stats(0.5, [80.0, 70.0]),
        librohc.join(", ")
    )
}

fn round(mbps: u32, cpu: f64, p50: u32, not_valid: &str) -> String {
    format!(
        r#"{{ "mbps": {mbps}, "cpu_s_per_gb": {{ "sender": {}, "receiver": {} }}, "acks_per_100": null, "request_p50_us": {p50}, "request_p99_us": 900,
             "not_valid": [{not_valid}] }}"#,
        cpu * 0.75,
        cpu * 0.25
    )
}

fn transports() -> String {
    let row = |stack: &str, rounds: [String; 2], memory: &str| {
        format!(r#"{{ "stack": "{stack}", "rounds": [{}], "resident_mb": {memory} }}"#, rounds.join(", "))
    };
    let late = r#""stood still""#;
    format!(
        r#"{{ "measured": {{ "quinn_version": "0.11", "s2n_version": "1.9", "loopback": [{}, {}], "veth": {{ "measured": [{}, {}] }}, "hop": {{ "measured": [{}, {}] }} }} }}"#,
        row("tack", [round(4_000, 1.0, 50, ""), round(5_000, 1.0, 60, "")], "100"),
        row("tcp", [round(8_000, 0.5, 25, ""), round(8_000, 0.25, 30, "")], "null"),
        row("tack", [round(3_000, 2.0, 80, ""), round(3_000, 2.0, 80, "")], "null"),
        row("tcp", [round(6_000, 1.0, 60, ""), round(6_000, 1.0, 60, "")], "null"),
        row("tack", [round(220, 3.0, 2_000, ""), round(200, 3.0, 2_000, "")], "null"),
        row("tcp", [round(231, 1.5, 2_000, ""), round(2, 9.0, 2_000, late)], "null"),
    )
}

const LATENESS: &str = r#"{ "measured": { "rows": [ { "scenario": "wlan-11n-150", "simulated_mbps": 125, "again": 1, "samples": [
    { "mbps": 120, "p50_us": 6, "p99_us": 80, "p99_9_us": 400, "stalls": 0, "stalled_ms": 0, "processor": 0.25, "not_valid": "" },
    { "mbps": null, "p50_us": 8, "p99_us": 90, "p99_9_us": 2000, "stalls": 9, "stalled_ms": 60, "processor": 0.5, "not_valid": "it was late" }
] } ] } }"#;

/// The page of four parts' results, on the first part's machine.
fn page_of(simulators: &str, codecs: &str, transports: &str, lateness: &str) -> String {
    let simulators = canned::<Simulators>(simulators);
    let machine = &simulators.machine;
    let parts = [
        section(machine, Some(&simulators)),
        section(machine, Some(&canned::<Codecs>(codecs))),
        section(machine, Some(&canned::<Transports>(transports))),
        section(machine, Some(&canned::<Lateness>(lateness))),
    ];
    page(machine, &parts)
}

#[test]
fn all_that_can_be_measured_is_on_the_page() {
    let librohc = [stats(10.5, [250.0, 300.0]), stats(10.5, [300.0, 350.0])];
    let recorded = r#"{ "librohc": 10.5, "ours_alike": 9.75, "ours": 9.5 }"#;
    insta::assert_snapshot!(page_of(SIMULATORS, &codecs(&librohc, recorded), &transports(), LATENESS));
}

#[test]
fn missing_peers_are_said_to_be_skipped() {
    let skipped = r#"{ "skipped": "no ns-3 here" }"#;
    let no_hops = r#"{ "skipped": "no live hops on this machine" }"#;
    let text = page_of(skipped, &codecs(&[], "null"), &transports(), no_hops);
    for expected in [
        "## The simulator beside ns-3\n\n**Skipped: no ns-3 here.**\n",
        "**librohc is not installed here: its times were not measured.**",
        "**There are no recorded packets of librohc on this machine.**",
        "## How late a live hop is\n\n**Skipped: no live hops on this machine.**\n",
    ] {
        // Lines end where they are full.
        let [text, expected] = [text.as_str(), expected].map(|text| text.replace('\n', " "));
        assert!(text.contains(&expected), "{expected:?} is not in\n{text}");
    }
}

#[test]
fn results_of_another_machine_or_none_are_not_taken_for_this_ones() {
    let stored = canned::<Simulators>(SIMULATORS);
    let other = Machine { cores: 64, ..stored.machine.clone() };
    assert!(section(&other, Some(&stored)).contains("**Not measured on this machine.**"));
    assert!(section::<Simulators>(&other, None).contains("**Not measured.**"));
}

#[test]
fn kept_results_are_read_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("simulators.json");
    assert!(read::<Simulators>(&path).unwrap().is_none());
    let stored = canned::<Simulators>(SIMULATORS);
    keep(&path, &serde_json::to_string(&stored).unwrap()).unwrap();
    let again = read::<Simulators>(&path).unwrap().unwrap();
    assert_eq!(section(&stored.machine, Some(&again)), section(&stored.machine, Some(&stored)));
    keep(&path, "{}").unwrap();
    let error = read::<Simulators>(&path).unwrap_err().to_string();
    assert!(error.contains("simulators.json"), "{error}");
}

#[test]
fn the_page_in_the_book_has_the_sections_that_are_written() {
    let committed = include_str!("../../../../docs/validation/peers.md");
    let headings =
        |text: &str| text.lines().filter(|line| line.starts_with('#')).map(str::to_owned).collect::<Vec<_>>();
    let written = page_of(SIMULATORS, &codecs(&[], "null"), &transports(), LATENESS);
    assert_eq!(headings(committed), headings(&written));
}
