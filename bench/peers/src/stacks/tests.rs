//! Results that were not measured, as a page.

use clap::Parser;

use super::*;
use crate::{All, Cli};

/// As `--json` keeps them.
const STORED: &str = r#"{
  "machine": { "processor": "A", "cores": 2, "memory_mb": 16000, "kernel": "6.1", "rust": "rustc 1", "cxx": "c++ 12" },
  "rows": [
    ROW("wlan-11n-300", "tcp", "Linux 6.1", 220.0, "measured": [0.031, 0.030, 0.032]),
    ROW("wlan-11n-300", "quinn", "0.11.12", 210.0, "measured": [0.040, 0.041, 0.042]),
    ROW("wlan-11n-300", "tacit-quinn", "0.11.12", 230.0, "measured": [0.050, 0.051, 0.052]),
    ROW("wire-lossy", "quinn", "0.11.12", 3.0, "skipped": "it was late")
  ],
  "left_out": { "s2n": "this tacit-peers was compiled without it: `--features s2n`" }
}"#;

fn stored() -> Stored {
    let mut text = String::new();
    for line in STORED.lines() {
        let Some(row) = line.trim().strip_prefix("ROW(") else {
            text += line;
            continue;
        };
        let (row, comma) = row.rsplit_once(')').unwrap();
        let [place, name, version, mbps, times] = row.splitn(5, ", ").collect::<Vec<_>>().try_into().unwrap();
        let bulk =
            format!(r#""mbps": {mbps}, "acks_per_100": 2.5, "ack_airtime": 0.04, "cpu_s_per_gb": 5.25"#);
        text += &format!(
            r#"{{ "place": {place}, "name": {name}, "version": {version}, "setting": "nothing",
                "run": {{ "began": "2026-01-02 03:04", "version": "0.1.0 (abc)", "took_s": 60, "niceness": -10,
                         "load": [0.5, 2.25], "others": 0.25, "commands": ["rustc"] }},
                "rounds": [{{ "bulk": {{ "measured": {{ {bulk} }} }}, "times_s": [{{ {times} }}, {{ {times} }}, {{ {times} }}] }}]
            }}{comma}"#
        );
    }
    serde_json::from_str(&text).unwrap()
}

#[test]
fn a_page_has_rows_claims_versions_and_what_is_missing() {
    insta::assert_snapshot!(report::page(&stored()));
}

#[test]
fn kept_results_give_the_same_page() {
    let kept = serde_json::to_string(&stored()).unwrap();
    let again: Stored = serde_json::from_str(&kept).unwrap();
    assert_eq!(report::page(&again), report::page(&stored()));
}

#[test]
fn newer_rows_take_the_places_of_older_ones_in_the_rosters_order() {
    let mut rows = stored().rows;
    let newer = Row { version: "0.12".to_owned(), ..rows[1].clone() };
    let first = Row { name: "tack".to_owned(), ..rows[1].clone() };
    merge(&mut rows, vec![newer, first]);
    let names: Vec<_> =
        rows.iter().map(|row| (row.place.as_str(), row.name.as_str(), row.version.as_str())).collect();
    assert_eq!(
        names,
        [
            ("wlan-11n-300", "tcp", "Linux 6.1"),
            ("wlan-11n-300", "tack", "0.11.12"),
            ("wlan-11n-300", "quinn", "0.12"),
            ("wlan-11n-300", "tacit-quinn", "0.11.12"),
            ("wire-lossy", "quinn", "0.11.12"),
        ]
    );
}

#[test]
fn rows_and_places_are_named_on_the_command_line() {
    let parse = |words: &str| Cli::try_parse_from(words.split_whitespace());
    let cli = parse("tacit-peers stacks quinn s2n-bbr --places wire-lossy,wlan-11n-300 --rounds 3").unwrap();
    let Some(All::Stacks(arguments)) = cli.all else { panic!("another task") };
    assert_eq!(arguments.rows.iter().map(|row| row.name).collect::<Vec<_>>(), ["quinn", "s2n-bbr"]);
    assert_eq!(
        arguments.places.iter().map(|place| place.name).collect::<Vec<_>>(),
        ["wire-lossy", "wlan-11n-300"]
    );
    let refused = |words: &str| parse(words).unwrap_err().to_string();
    let error = refused("tacit-peers stacks lsquic");
    assert!(error.contains("there are tcp, tcp-bbr, tack, quinn,"), "{error}");
    assert!(refused("tacit-peers stacks --places mars").contains("there are wlan-11n-300, wlan-11ax-1200,"));
    assert!(refused("tacit-peers stack wire-lossy").contains("CLIENT"));
    assert!(parse("tacit-peers stack wire-lossy -- a {bytes} --server -- b -c").is_ok());
    // The page is of what is kept.
    assert!(refused("tacit-peers stacks --page page.md").contains("--json"));
}

#[test]
fn names_of_rows_and_places_differ() {
    let rows: std::collections::BTreeSet<_> = ROSTER.iter().map(|row| row.name).collect();
    let places: std::collections::BTreeSet<_> = PLACES.iter().map(|place| place.name).collect();
    assert_eq!((rows.len(), places.len()), (ROSTER.len(), PLACES.len()));
}

#[test]
fn the_page_in_the_book_is_that_of_the_results_beside_it() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR"));
    let stored = read(&directory.join("stacks.json")).unwrap();
    let page = fs::read_to_string(directory.join("../../docs/validation/quic-stacks.md")).unwrap();
    assert_eq!(report::page(&stored), page, "tacit-peers stacks --again --json … --page … writes it");
}
