//! Repeats the runs of a stored comparison.

use tacit_analysis::compare::{self, compare};
use tacit_runs::replay::{Replay, replay};
use tacit_runs::sweep::Control;

#[test]
fn each_row_of_a_comparison_replays() {
    let directory = tempfile::tempdir().unwrap();
    let options = compare::Options {
        scenario: "wlan-11n-150".into(),
        assignments: ["run.duration=300ms", "run.measure-from=100ms"].map(String::from).to_vec(),
        clients: vec![2],
        schemes: vec!["tcp-l4".into()],
        seeds: Some(2),
        directory: Some(directory.path().to_owned()),
        ..compare::Options::default()
    };
    compare(&options, Control::unattended()).unwrap();
    // Stock and UDP are the reference schemes for tcp-l4.
    let rows: Vec<Replay> = (1..=6).map(|row| replay(directory.path(), Some(row)).unwrap()).collect();
    assert!(rows.iter().all(|row| row.same), "{rows:?}");
    let schemes: Vec<_> = rows.iter().map(|row| row.scheme.as_deref().unwrap()).collect();
    assert_eq!(schemes, ["stock", "stock", "tcp-l4", "tcp-l4", "udp", "udp"]);
    assert!(replay(&directory.path().join("runs.parquet"), Some(6)).unwrap().same);
    for (row, expected) in [(None, "has 6 runs"), (Some(0), "out of range"), (Some(7), "1 to 6")] {
        let error = replay(directory.path(), row).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let error = replay(&directory.path().join("flows.parquet"), None).unwrap_err().to_string();
    assert!(error.contains("not a result of runs"), "{error}");
}
