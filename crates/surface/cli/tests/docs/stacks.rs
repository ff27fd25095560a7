//! `docs/use/quic-stacks.md` has ACKs per 100 packets of live stacks beside those of their policies, written by a test.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::markdown::check_table;
use crate::root;

/// The line of the page before the table.
const BEGIN: &str = "<!-- written by a test from bench/peers/stacks.json and simulated runs -->\n";

/// Places of the bench, and their scenarios.
const PLACES: [(&str, &[&str]); 4] = [
    ("wlan-11n-300", &["wlan-11n-300"]),
    ("wlan-11ax-1200", &["wlan-11ax-1200"]),
    ("lte-slow-uplink", &["lte-slow-uplink"]),
    ("wire-lossy", &["wired-10", "--set", "wired.loss=1%"]),
];

/// How far a policy may be from its stack.
const TOLERANCE: f64 = 0.15;

/// A row of the bench and the policy of its receiver.
struct Pair {
    stack: &'static str,
    row: &'static str,
    policy: &'static str,
    /// The sender of the simulated run, which is a TCP.
    congestion: &'static str,
    /// Packets that the receiver's socket holds: Linux's default, unless the stack asks for more.
    socket: &'static str,
    /// Places where the two are further apart; the page says why.
    apart: &'static [&'static str],
}

/// 212,992 bytes, at 2,304 for each full-sized packet.
const DEFAULT: &str = "92";
const AMPLE: &str = "none";

const fn pair(stack: &'static str, row: &'static str, policy: &'static str) -> Pair {
    Pair { stack, row, policy, congestion: "cubic", socket: DEFAULT, apart: &[] }
}

const WIFI: &[&str] = &["wlan-11n-300", "wlan-11ax-1200"];
const WIFI_4: &[&str] = &["wlan-11n-300"];
const WIFI_6: &[&str] = &["wlan-11ax-1200"];

const PAIRS: [Pair; 13] = [
    Pair { socket: AMPLE, apart: WIFI_6, ..pair("quinn, windows of 64 MiB", "quinn-large", "quic-ack2") },
    Pair { apart: WIFI_4, ..pair("quinn", "quinn", "quic-ack2") },
    Pair { apart: WIFI_4, ..pair("noq", "noq", "quic-ack2") },
    Pair { socket: AMPLE, apart: WIFI, ..pair("quic-go", "quic-go", "quic-ack2") },
    Pair { apart: WIFI, ..pair("aioquic", "aioquic", "quic-ack2") },
    Pair { apart: WIFI_4, ..pair("quinn, asked for one per 11", "quinn-ack-frequency", "quic-ackfreq") },
    Pair { apart: WIFI_4, ..pair("noq, asked for one per 11", "noq-ack-frequency", "quic-ackfreq") },
    Pair { apart: WIFI, ..pair("quiche (Cloudflare)", "quiche", "quiche") },
    Pair { apart: WIFI_6, ..pair("s2n-quic", "s2n", "mvfst") },
    Pair {
        congestion: "bbr",
        apart: &["wlan-11n-300", "wlan-11ax-1200", "lte-slow-uplink"],
        ..pair("picoquic", "picoquic", "picoquic")
    },
    Pair { congestion: "bbr", apart: WIFI_4, ..pair("tquic", "tquic", "quic-ack2") },
    Pair { congestion: "bbr", apart: WIFI, ..pair("tquic, 10 packets", "tquic-ack-packets", "quic-ackfreq") },
    Pair { socket: AMPLE, apart: WIFI_6, ..pair("msquic", "msquic", "msquic") },
];

/// ACKs per 100 packets of a row, the median of its rounds.
fn live(stored: &Value, place: &str, row: &str) -> Option<f64> {
    let rows = stored["rows"].as_array()?;
    let row = rows.iter().find(|it| it["place"] == place && it["name"] == row)?;
    let rounds = row["rounds"].as_array()?.iter();
    let mut acks: Vec<f64> =
        rounds.filter_map(|round| round["bulk"]["measured"]["acks_per_100"].as_f64()).collect();
    acks.sort_by(f64::total_cmp);
    let upper = *acks.get(acks.len() / 2)?;
    let lower = *acks.get(acks.len().saturating_sub(1) / 2)?;
    Some(f64::midpoint(lower, upper))
}

/// The same of a simulated run.
fn simulated(scenario: &[&str], pair: &Pair) -> f64 {
    let mut run = Command::new(env!("CARGO_BIN_EXE_tacit"));
    run.arg("run").args(scenario).args(["--scheme", pair.policy, "--json"]);
    let sets = [format!("tcp.congestion={}", pair.congestion), format!("tcp.socket-packets={}", pair.socket)];
    let output = run.args(sets.iter().flat_map(|set| ["--set", set])).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).expect("a run's report");
    100.0 * report["metrics"]["acks_per_data_packet"].as_f64().expect("a number")
}

#[test]
fn policies_acknowledge_as_often_as_their_stacks_do_live() {
    let stored = fs::read_to_string(root().join("bench/peers/stacks.json")).unwrap();
    let stored: Value = serde_json::from_str(&stored).unwrap();
    let mut runs = BTreeMap::new();
    let mut table = format!(
        "| stack | policy | {} |\n",
        PLACES.map(|(place, _)| format!("`{place}` | policy")).join(" | ")
    );
    table += &format!("|{}\n", "---|".repeat(2 + 2 * PLACES.len()));
    let mut wrong = Vec::new();
    for pair in &PAIRS {
        table += &format!("| {} | `{}` |", pair.stack, pair.policy);
        for (place, scenario) in PLACES {
            let live = live(&stored, place, pair.row).unwrap_or_else(|| panic!("no {} at {place}", pair.row));
            let simulated = *runs
                .entry((place, pair.policy, pair.congestion, pair.socket))
                .or_insert_with(|| simulated(scenario, pair));
            let is_apart = (simulated / live - 1.0).abs() > TOLERANCE;
            let mark = if is_apart { "**" } else { "" };
            table += &format!(" {live:.1} | {mark}{simulated:.1}{mark} |");
            if is_apart != pair.apart.contains(&place) {
                wrong.push(format!("{} at {place}: {live:.2}, and the policy {simulated:.2}", pair.stack));
            }
        }
        table += "\n";
    }
    assert!(wrong.is_empty(), "further apart than the page says, or no more:\n{}", wrong.join("\n"));
    check_table(&root().join("docs/use/quic-stacks.md"), BEGIN, &table);
}
