//! Judges figures again from stored results. Nothing is run.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::path::Path;

use tacit_figures::{ClaimOutcome, Figure, FigureOutcome, Options, run};
use tacit_runs::RunsError;
use tacit_runs::record::{RunRecord, RunSummary};
use tacit_runs::store::Store;
use tacit_runs::sweep::{Control, Progress};

const SWEEP: &str = include_str!("sweep.toml");

const TIMELINE: &str = "\
title = \"t\"
paper = \"p\"
[timeline]
scenario = \"wlan-11n-150\"
scheme = \"stock\"
set = [\"run.duration=100ms\", \"run.measure-from=0ms\"]
at = { frame = \"data\", from = \"ap\", after = \"50 ms\" }
frames = 5
[[claim]]
text = \"Block Acks\"
paper = 2
measure = { count = \"block-ack\" }
tolerance = 0.5
[[claim]]
text = \"no timeouts\"
paper = 0
measure = { metric = \"tcp_rtos\" }
tolerance = 0
";

fn figures() -> Vec<Figure> {
    let theory = "title = \"t\"\npaper = \"p\"\n[theory]\nfigure = \"hack/fig1a\"\n";
    let texts = [("test/sweep", SWEEP), ("test/timeline", TIMELINE), ("test/theory", theory)];
    texts.map(|(id, text)| Figure::parse(id, "test.toml", text).unwrap()).into()
}

fn simulate(directory: &Path) -> Vec<FigureOutcome> {
    let options = Options { quick: true, directory: Some(directory.to_owned()), ..Options::default() };
    run(&figures(), &options, Control::unattended()).unwrap()
}

/// Judges the results stored in `from`; any run that starts fails the test.
fn judged(figures: &[Figure], from: &Path, to: &Path) -> Result<Vec<FigureOutcome>, RunsError> {
    let progress = |progress: Progress<'_>| match progress {
        Progress::Started { .. } | Progress::Finished(_) => panic!("nothing is run"),
        Progress::Warning(_) | Progress::LongWait(_) => {}
    };
    let options = Options {
        quick: true,
        directory: Some(to.to_owned()),
        from: Some(from.to_owned()),
        ..Options::default()
    };
    run(figures, &options, Control { progress: &progress, ..Control::unattended() })
}

fn claims(outcomes: &[FigureOutcome]) -> Vec<&ClaimOutcome> {
    outcomes.iter().flat_map(|outcome| &outcome.claims).collect()
}

/// Copies the results in `from` as if another program, with other run ids, had produced them and been killed before the
/// end.
fn of_another_program(from: &Path, to: &Path) {
    for name in ["test-sweep", "test-timeline"] {
        let stored = Store::existing(&from.join(name));
        let (mut writer, _) = Store::open(&to.join(name)).unwrap().resume(&|text| panic!("{text}")).unwrap();
        for (number, run) in stored.read().unwrap().1.iter().enumerate() {
            let record = stored.record(&run.id).unwrap();
            let (id, version) = (format!("{number:032x}"), "0.0.1 (older)".into());
            let run = RunSummary { id, version, ..record.run };
            writer.append(&RunRecord { run, ..record }).unwrap();
        }
    }
}

#[test]
fn verdicts_and_pictures_come_again_from_what_is_stored() {
    let (first, other, again) = (tempfile::tempdir(), tempfile::tempdir(), tempfile::tempdir());
    let (first, other, again) = (first.unwrap(), other.unwrap(), again.unwrap());
    let outcomes = simulate(first.path());
    let verdicts: Vec<bool> = claims(&outcomes).iter().map(|claim| claim.pass).collect();
    assert_eq!(verdicts, [true, false, true, true, true]);
    of_another_program(first.path(), other.path());
    for from in [first.path(), other.path()] {
        let judged = judged(&figures(), from, again.path()).unwrap();
        assert_eq!(claims(&judged), claims(&outcomes));
        for (before, after) in outcomes.iter().zip(&judged) {
            let read = |outcome: &FigureOutcome| fs::read(outcome.svg.as_ref().unwrap()).unwrap();
            assert_eq!(read(after), read(before), "{}", before.id);
        }
        assert!(again.path().join("index.html").is_file());
    }
}

#[test]
fn claims_and_pictures_are_those_of_the_file_as_it_is_now() {
    let directory = tempfile::tempdir().unwrap();
    simulate(directory.path());
    let missed = "deviation = \"it never has\"\nmeasured = [0, 0]\n";
    let sweep = SWEEP
        .replace("paper = 5", "paper = 0")
        .replace("tolerance = 1\n", "tolerance = 0\n")
        .replace(missed, "")
        .replace("title = \"t\"", "title = \"anew\"")
        + "[plot]\nlog-y = true\n[[claim]]\ntext = \"and fair\"\npaper = 1\ntolerance = 0.1\n\
           measure = { value = \"stock\", column = \"fairness\" }\n";
    let timeline = TIMELINE.replace("frames = 5", "frames = 9").replace("paper = 2", "paper = 3");
    let figures = [("test/sweep", sweep), ("test/timeline", timeline)]
        .map(|(id, text)| Figure::parse(id, "test.toml", &text).unwrap());
    let judged = judged(&figures, directory.path(), directory.path()).unwrap();
    assert!(claims(&judged).iter().all(|claim| claim.pass), "{judged:?}");
    assert_eq!(judged[0].claims.len(), 4);
    assert!(fs::read_to_string(judged[0].svg.as_ref().unwrap()).unwrap().contains("anew"));
}

#[test]
fn missing_results_are_named_instead_of_run() {
    let directory = tempfile::tempdir().unwrap();
    simulate(directory.path());
    let more = SWEEP.replace("quick = { seeds = 2 }", "quick = { seeds = 3 }");
    let more = Figure::parse("test/sweep", "test.toml", &more).unwrap();
    let error = judged(&[more], directory.path(), directory.path()).unwrap_err();
    assert!(matches!(error, RunsError::Missing { total: 12, .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("test-sweep: 4 of 12 runs are missing: wlan-11n-150 stock, clients 1, seed 3; "));
    assert!(text.ends_with("; and 1 more; tacit figure test/sweep --quick makes them"), "{text}");

    // All figures are requested, so those without results are skipped.
    let never = SWEEP.replace("title = \"t\"", "title = \"never made\"");
    let never = [Figure::parse("test/never", "test.toml", &never).unwrap()];
    let from = Some(directory.path().to_owned());
    let options = Options { quick: true, from, all: true, ..Options::default() };
    let skipped = run(&never, &options, Control::unattended()).unwrap();
    assert!(skipped[0].skipped.as_ref().unwrap().starts_with("no results in "), "{skipped:?}");
    let error = run(&never, &Options { all: false, ..options }, Control::unattended()).unwrap_err();
    assert!(error.to_string().contains("8 of 8 runs are missing"), "{error}");
}

#[test]
fn results_made_in_short_are_told_from_whole_ones() {
    let directory = tempfile::tempdir().unwrap();
    simulate(directory.path());
    let shorter = SWEEP.replace("duration=400ms", "duration=500ms");
    let options = Options { from: Some(directory.path().to_owned()), ..Options::default() };
    let figure = Figure::parse("test/sweep", "test.toml", &shorter).unwrap();
    let error = run(&[figure], &options, Control::unattended()).unwrap_err().to_string();
    assert!(error.ends_with(
        "tacit figure test/sweep makes them, the stored runs come from tacit figure test/sweep --quick"
    ));
}

#[test]
fn damaged_results_are_named() {
    let directory = tempfile::tempdir().unwrap();
    simulate(directory.path());
    let path = directory.path().join("test-timeline/runs.jsonl");
    let mut content = fs::read(&path).unwrap();
    let middle = content.len() / 2;
    content[middle] ^= 1;
    fs::write(&path, content).unwrap();
    let error = judged(&figures(), directory.path(), directory.path()).unwrap_err().to_string();
    assert!(error.contains("test-timeline/runs.jsonl: record 1 (at byte 0) does not fit"), "{error}");
}
