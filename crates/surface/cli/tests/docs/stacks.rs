//! `docs/use/quic-stacks.md` has ACKs per 100 packets of live stacks beside those of their policies, written by a test.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;
use std::sync::Mutex;

use serde_json::Value;

use crate::markdown::check_table;
use crate::{features, root};

/// The line of the page before the table.
const BEGIN: &str =
    "<!-- written by a test from bench/peers/policies.toml, stacks.json and simulated runs -->\n";

/// The line of the page before the table of captures.
const CAPTURES: &str = "<!-- written by a test from the captures of tacit-tcp's ACK policies -->\n";

/// A line per capture: row, place, packets of a burst, ACKs per 100 packets of the stack, and of its policy. A test of the policies
/// writes it.
const CAPTURED: &str = "crates/core/tcp/src/ack_policy/captures-acks.txt";

/// Rows of the bench, the policies of their receivers, and why some are further apart than others.
const POLICIES: &str = "bench/peers/policies.toml";

/// Places of the bench, and their scenarios. Downloads of Wi-Fi are as steady after a second as after four.
const PLACES: [(&str, &[&str]); 4] = [
    ("wlan-11n-300", &["wlan-11n-300", "--set", "run.duration=4 s", "--set", "run.measure-from=1 s"]),
    ("wlan-11ax-1200", &["wlan-11ax-1200", "--set", "run.duration=4 s", "--set", "run.measure-from=1 s"]),
    ("lte-slow-uplink", &["lte-slow-uplink"]),
    ("wire-lossy", &["wired-10", "--set", "wired.loss=1%"]),
];

/// How far a policy may be from its stack.
const TOLERANCE: f64 = 0.15;

/// What every simulated run has, unless its row has another: the default of Linux for a socket, 212,992 bytes, at 2,304 for
/// each full-sized packet.
const USUAL: [&str; 2] = ["tcp.congestion=cubic", "tcp.socket-packets=92"];

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

/// Arguments of `tacit run`.
type Run = Vec<String>;

/// A run of `row`, where `more` is set as well.
fn run_of(scenario: &[&str], row: &Value, more: &Value) -> Run {
    let sets = USUAL.into_iter().chain(texts(&row["set"])).chain(texts(more)).flat_map(|set| ["--set", set]);
    let words = scenario.iter().copied().chain(["--scheme", text(&row["policy"])]).chain(sets);
    words.map(str::to_owned).collect()
}

/// ACKs per 100 packets of a simulated run.
fn simulated(run: &Run) -> f64 {
    let output =
        Command::new(env!("CARGO_BIN_EXE_tacit")).arg("run").args(run).arg("--json").output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{run:?}: {}", String::from_utf8_lossy(&output.stderr)));
    100.0 * report["metrics"]["acks_per_data_packet"].as_f64().expect("a number")
}

/// The same of each run, as many at once as there are processors.
fn all_simulated(runs: BTreeSet<Run>) -> BTreeMap<Run, f64> {
    let (left, done) = (Mutex::new(runs), Mutex::new(BTreeMap::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(run) = { left.lock().unwrap().pop_first() } {
                    let acks = simulated(&run);
                    done.lock().unwrap().insert(run, acks);
                }
            });
        }
    });
    done.into_inner().unwrap()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{POLICIES}: a text in place of {value}"))
}

fn texts(value: &Value) -> impl Iterator<Item = &str> {
    value.as_array().into_iter().flatten().map(text)
}

/// The scenario of a place.
fn scenario_of(place: &str) -> &'static [&'static str] {
    PLACES
        .iter()
        .find(|(name, _)| *name == place)
        .unwrap_or_else(|| panic!("{POLICIES}: no place is {place}"))
        .1
}

/// Each reason with each of its rows and places.
fn reasons(policies: &features::Table) -> Vec<(&Value, &Value, &str)> {
    let rows = policies["row"].as_array().unwrap();
    let row_of = |name: &str| {
        let row = rows.iter().find(|row| row["name"] == name);
        row.unwrap_or_else(|| panic!("{POLICIES}: no row is {name}"))
    };
    let all = policies["apart"].as_array().unwrap().iter();
    all.flat_map(|reason| {
        let at =
            texts(&reason["rows"]).flat_map(|row| texts(&reason["places"]).map(move |place| (row, place)));
        at.map(move |(row, place)| (reason, row_of(row), place))
    })
    .collect()
}

/// How far `simulated` is from `live`.
fn is_apart(simulated: f64, live: f64) -> bool {
    (simulated / live - 1.0).abs() > TOLERANCE
}

#[test]
fn policies_acknowledge_as_often_as_their_stacks_do_live() {
    let stored = fs::read_to_string(root().join("bench/peers/stacks.json")).unwrap();
    let stored: Value = serde_json::from_str(&stored).unwrap();
    let policies = features::table(POLICIES);
    let rows = policies["row"].as_array().unwrap();
    let reasons = reasons(&policies);
    let of_table =
        rows.iter().flat_map(|row| PLACES.map(|(_, scenario)| run_of(scenario, row, &Value::Null)));
    let of_reasons =
        reasons.iter().map(|(reason, row, place)| run_of(scenario_of(place), row, &reason["shown"]));
    let simulated = all_simulated(of_table.chain(of_reasons).collect());

    let mut page = format!(
        "| stack | policy | {} |\n",
        PLACES.map(|(place, _)| format!("`{place}` | policy")).join(" | ")
    );
    page += &format!("|{}\n", "---|".repeat(2 + 2 * PLACES.len()));
    let mut wrong = Vec::new();
    for row in rows {
        let name = text(&row["name"]);
        page += &format!("| {} | `{}` |", text(&row["stack"]), text(&row["policy"]));
        for (place, scenario) in PLACES {
            // Some rows are measured over Wi-Fi alone.
            let Some(live) = live(&stored, place, name) else {
                page += " – | – |";
                continue;
            };
            let simulated = simulated[&run_of(scenario, row, &Value::Null)];
            let is_apart = is_apart(simulated, live);
            let mark = if is_apart { "**" } else { "" };
            page += &format!(" {live:.1} | {mark}{simulated:.1}{mark} |");
            if is_apart != reasons.iter().any(|(_, other, at)| *other == row && *at == place) {
                wrong.push(format!("{name} at {place}: {live:.2}, and the policy {simulated:.2}"));
            }
        }
        page += "\n";
    }
    page += "\nWhat is apart, and why:\n\n";
    for reason in policies["apart"].as_array().unwrap() {
        page += &format!("* {}", text(&reason["why"]).trim());
        if !reason["shown"].is_null() {
            page += &shown(reason, &reasons, &stored, &simulated, &mut wrong);
        }
        page += "\n";
    }
    // What is wrong is said before that the page lacks it.
    if wrong.is_empty() || std::env::var_os("TACIT_WRITE_DOCS").is_some() {
        check_table(&root().join("docs/use/quic-stacks.md"), BEGIN, &page);
    }
    assert!(wrong.is_empty(), "further apart than {POLICIES} says, or no more:\n{}", wrong.join("\n"));
}

/// What a policy has where its reason is taken away.
fn shown(
    reason: &Value,
    reasons: &[(&Value, &Value, &str)],
    stored: &Value,
    simulated: &BTreeMap<Run, f64>,
    wrong: &mut Vec<String>,
) -> String {
    let sets = texts(&reason["shown"]).map(|set| format!("`{set}`")).collect::<Vec<_>>().join(" and ");
    let mut values = Vec::new();
    for (_, row, place) in reasons.iter().filter(|(other, ..)| other == &reason) {
        let name = text(&row["name"]);
        let live = live(stored, place, name).expect("a row");
        let simulated = simulated[&run_of(scenario_of(place), row, &reason["shown"])];
        if is_apart(simulated, live) {
            wrong.push(format!("{name} at {place} with {sets}: {live:.2}, and the policy {simulated:.2}"));
        }
        values.push(format!("{simulated:.1}"));
    }
    format!(" With {sets} the policy has {}.", values.join(" and "))
}

#[test]
fn the_table_of_captures_is_that_of_the_policies_test() {
    let captured = fs::read_to_string(root().join(CAPTURED)).unwrap();
    let policies = features::table(POLICIES);
    let rows = policies["row"].as_array().unwrap();
    let mut table =
        "| stack | place | packets of a burst | ACKs per 100 | the policy's |\n|---|---|---|---|---|\n"
            .to_owned();
    for line in captured.lines() {
        let words: Vec<_> = line.split(' ').collect();
        let [name, place, rest @ ..] = words.as_slice() else { panic!("{line}") };
        let row = rows.iter().find(|row| row["name"] == *name).expect("a row of the table");
        table += &format!("| {} | `{place}` | {} |\n", text(&row["stack"]), rest.join(" | "));
    }
    check_table(&root().join("docs/use/quic-stacks.md"), CAPTURES, &table);
}
