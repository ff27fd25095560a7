use std::fs;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::swept::quantity;
use super::*;
use crate::record::Label;
use crate::sweep::Progress;

fn sweep() -> Batches {
    sweep_of(3)
}

fn sweep_of(seeds: u32) -> Batches {
    let short = ["run.duration=200ms", "run.measure-from=50ms", "clients.stagger=10ms"].map(str::to_owned);
    let places = ["5 m", "20 m"].map(|value| vec![format!("wifi.distance={value}")]);
    let schemes = ["stock".to_owned(), "hack-batch".to_owned()];
    Batches::new("wlan-11n-150", &short, &places, &schemes, &[1, 2], Some(seeds)).unwrap()
}

#[test]
fn runs_are_numbered_by_place_scheme_clients_and_seed() {
    let sweep = sweep();
    assert_eq!(sweep.runs(), 2 * 2 * 2 * 3);
    let label = |run| Label::for_run(&sweep.spec(run).unwrap());
    let parts = |label: Label| (label.x, label.scheme, label.clients, label.seed);
    assert_eq!(parts(label(0)), (Some(5.0), "stock".into(), 1, 1));
    assert_eq!(parts(label(5)), (Some(5.0), "stock".into(), 2, 3));
    assert_eq!(parts(label(6)), (Some(5.0), "hack-batch".into(), 1, 1));
    assert_eq!(parts(label(23)), (Some(20.0), "hack-batch".into(), 2, 3));
    let ids: BTreeSet<RunId> = sweep.ids(0..24).unwrap().into_iter().collect();
    assert_eq!(ids.len(), 24);
    assert!(sweep.ids(20..25).is_err());
}

#[test]
fn a_sweep_read_from_text_makes_the_same_runs() {
    let sweep = sweep();
    let read = Batches::from_written(from_text(&to_text(&sweep.written)).unwrap()).unwrap();
    assert_eq!(read.ids(0..24).unwrap(), sweep.ids(0..24).unwrap());
    let runs = read.make(5..8, Control::unattended()).unwrap();
    assert_eq!(runs, sweep.make(5..8, Control::unattended()).unwrap());
    let ids: Vec<String> = sweep.ids(5..8).unwrap().iter().map(RunId::to_string).collect();
    assert_eq!(runs.iter().map(|run| run.id.as_str()).collect::<Vec<_>>(), ids);
    let back: Vec<RunSummary> = serde_json::from_str(&serde_json::to_string(&runs).unwrap()).unwrap();
    assert_eq!(back, runs);
    let columns: Vec<String> =
        sweep.table(5, &runs).unwrap().columns.into_iter().map(|(name, _)| name).collect();
    assert!(columns.contains(&"wifi.distance_m".to_owned()), "{columns:?}");
}

#[test]
fn swept_quantities_are_numbers_in_one_unit_of_their_kind() {
    assert_eq!(["5 m", "10m"].map(quantity), [Some((5.0, "_m")), Some((10.0, "_m"))]);
    assert_eq!(["500 us", "5ms"].map(quantity), [Some((0.0005, "_s")), Some((0.005, "_s"))]);
    assert_eq!(["6.5Mbps", "1 Gb/s"].map(quantity), [Some((6_500_000.0, "_bps")), Some((1e9, "_bps"))]);
    assert_eq!(["4", "1.5 %"].map(quantity), [Some((4.0, "")), Some((1.5, "_percent"))]);
    assert_eq!(["ideal", "true", "802.11n"].map(quantity), [None; 3]);
}

/// Each file has the runs of one place, but the name of a column must not depend on the file.
#[test]
fn every_file_of_a_sweep_has_the_same_columns() {
    let names = |losses: [&str; 2]| {
        let places = losses.map(|loss| vec![format!("wifi.mpdu-error={loss}")]);
        let sweep = Batches::new("wlan-11n-150", &[], &places, &["stock".to_owned()], &[1], Some(1)).unwrap();
        let columns = |run: usize| {
            let order = Order::parse(&sweep.order(&(run..run + 1)).unwrap().to_text()).unwrap().sweep;
            order
                .columns
                .into_iter()
                .map(|column| column.key + &column.unit.unwrap_or_default())
                .collect::<Vec<_>>()
        };
        assert_eq!(columns(0), columns(1), "{losses:?}");
        columns(0).concat()
    };
    assert_eq!(names(["1 %", "5%"]), "wifi.mpdu-error_percent");
    assert_eq!(names(["{ down = \"2 %\", up = \"1 %\" }", "5 %"]), "wifi.mpdu-error");
}

#[test]
fn a_sweep_may_mix_numbers_and_words() {
    let place = tempfile::tempdir().unwrap();
    let short = ["run.duration=200ms", "run.measure-from=50ms", "wifi.snr=30 dB"].map(str::to_owned);
    let places = ["6.5Mbps", "ideal"].map(|rate| vec![format!("wifi.rate={rate}")]);
    let sweep = Batches::new("wlan-11n-150", &short, &places, &["stock".to_owned()], &[1], Some(1)).unwrap();
    let runs = sweep.make(0..2, Control::unattended()).unwrap();
    assert_ne!(runs[0].digest, runs[1].digest);
    let names = sweep.table(0, &runs).unwrap().columns.into_iter().map(|(name, _)| name);
    assert_eq!(names.filter(|name| name.starts_with("wifi.")).collect::<Vec<_>>(), ["wifi.rate"]);
    let directory = Directory::open(&place.path().join("mixed"), sweep).unwrap();
    assert_eq!(directory.complete(Control::unattended()).unwrap().files, 2);
}

#[test]
fn a_sweep_as_csv_has_the_columns_of_its_tables() {
    let place = tempfile::tempdir().unwrap();
    let sweep = sweep_of(1);
    let directory = Directory::open(place.path(), sweep_of(1)).unwrap().with_format(Format::Csv);
    let swept = directory.complete(Control::unattended()).unwrap();
    assert_eq!((swept.runs, swept.reused, swept.files), (8, 0, 4));
    let runs = sweep.make(6..8, Control::unattended()).unwrap();
    let table = sweep.table(6, &runs).unwrap();
    let file = directory.file(&(6..8)).unwrap();
    assert_eq!(file.extension().unwrap(), "csv");
    let mut csv = csv::Reader::from_path(&file).unwrap();
    let names: Vec<_> = csv.headers().unwrap().iter().map(str::to_owned).collect();
    assert_eq!(names, table.columns.into_iter().map(|(name, _)| name).collect::<Vec<_>>());
    let lines: Vec<_> = csv.records().map(Result::unwrap).collect();
    let value = |line: usize, name: &str| &lines[line][names.iter().position(|at| at == name).unwrap()];
    assert_eq!(lines.len(), 2);
    for (line, run) in runs.iter().enumerate() {
        assert_eq!((value(line, "run"), value(line, "digest")), (run.id.as_str(), run.digest.as_str()));
        assert_eq!((value(line, "scheme"), value(line, "wifi.distance_m")), ("hack-batch", "20.0"));
        for (metric, measured) in crate::metric::ALL.iter().zip(&run.metrics) {
            assert_eq!(value(line, metric.name).parse().ok(), *measured, "{}", metric.name);
        }
    }
    // Files in another format do not count. Their content comes from the records.
    assert_eq!(directory.missing().unwrap(), (Vec::new(), 8));
    let parquet = directory.with_format(Format::Parquet);
    assert_eq!(parquet.missing().unwrap().1, 0);
    let simulated = complete_observed(&parquet).0;
    assert_eq!((parquet.missing().unwrap(), simulated), ((Vec::new(), 8), 0));
}

#[test]
fn another_program_s_sweep_is_refused() {
    let mut other = sweep();
    other.written.program = "another".into();
    let error = Order::parse(&other.order(&(0..6)).unwrap().to_text()).unwrap_err().to_string();
    assert!(error.contains("another build of tacit"), "{error}");
}

#[test]
fn batches_cover_the_sweep_once_and_keep_to_a_subject() {
    let sweep = sweep_of(100);
    let batches: Vec<_> = sweep.batches().collect();
    assert_eq!(batches[..4], [0..64, 64..128, 128..192, 192..200], "100 seeds, two counts of clients");
    assert_eq!(
        batches.iter().flat_map(Clone::clone).collect::<Vec<_>>(),
        (0..sweep.runs()).collect::<Vec<_>>()
    );
}

#[test]
fn an_order_makes_the_same_file_wherever_it_goes() {
    let place = tempfile::tempdir().unwrap();
    let sweep = sweep();
    let directory = Directory::open(place.path(), self::sweep()).unwrap();
    for batch in sweep.batches() {
        let order = sweep.order(&batch).unwrap().to_text();
        assert!(order.len() < 2 * sweep.written.places[0].scenario_text.len() + 1000, "one place travels");
        let there = Order::parse(&order).unwrap().make(Control::unattended()).unwrap();
        let runs = sweep.make(batch.clone(), Control::unattended()).unwrap();
        assert!(there == sweep.record(&runs).unwrap());
        directory.keep(&batch, &there).unwrap();
        let here = place.path().join("here");
        sweep.export(&here, batch.start, &runs, Format::Parquet).unwrap();
        assert!(fs::read(directory.file(&batch).unwrap()).unwrap() == fs::read(here).unwrap());
    }
    assert_eq!(directory.missing().unwrap(), (Vec::new(), 24));
    assert!(sweep.order(&(11..13)).is_err(), "two places");
    assert!(sweep.order(&(3..3)).is_err());
    let hostile = sweep.order(&(0..6)).unwrap().to_text().replace("\"seeds\":3", "\"seeds\":4000000000");
    assert!(Order::parse(&hostile).unwrap().make(Control::unattended()).is_err());
}

#[test]
fn a_sweep_that_was_stopped_goes_on_with_what_is_missing() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("sweep");
    let directory = Directory::open(&path, sweep()).unwrap();
    let (stop, finished) = (AtomicBool::new(false), AtomicUsize::new(0));
    let progress = |progress: Progress<'_>| {
        if matches!(progress, Progress::Finished(_)) && finished.fetch_add(1, Ordering::Relaxed) == 7 {
            stop.store(true, Ordering::Relaxed);
        }
    };
    let control = Control { stop: &stop, progress: &progress, cache: None };
    // On one thread, because otherwise all runs of the second batch could start before its second run has finished.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let error = pool.install(|| directory.complete(control)).unwrap_err();
    let RunsError::Interrupted { finished, total, .. } = error else { panic!("{error}") };
    assert_eq!((finished, total), (6, 24), "the first batch");

    // A reopened directory contains the batch. A batch that arrived twice exists once.
    let directory = Directory::open(&path, sweep()).unwrap();
    let first = directory.file(&(0..6)).unwrap();
    let bytes = fs::read(&first).unwrap();
    let record = fs::read(directory.record(&(0..6)).unwrap()).unwrap();
    directory.keep(&(0..6), &record).unwrap();
    let swept = directory.complete(Control::unattended()).unwrap();
    assert_eq!((swept.runs, swept.reused, swept.files), (24, 6, 4));
    assert_eq!(directory.missing().unwrap(), (Vec::new(), 24));
    let folders = fs::read_dir(directory.runs()).unwrap().count();
    assert_eq!(folders, 4, "a folder for each place and scheme");
    assert_eq!(fs::read(&first).unwrap(), bytes);
}

/// How many runs it takes to complete the sweep, and the warnings.
fn complete_observed(directory: &Directory) -> (usize, Vec<String>) {
    let (simulated, warned) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let progress = |progress: Progress<'_>| match progress {
        Progress::Finished(_) => drop(simulated.fetch_add(1, Ordering::Relaxed)),
        Progress::Warning(text) => warned.lock().unwrap().push(text.to_owned()),
        Progress::Started { .. } | Progress::LongWait(_) => {}
    };
    directory.complete(Control { progress: &progress, ..Control::unattended() }).unwrap();
    (simulated.into_inner(), warned.into_inner().unwrap())
}

#[test]
fn every_run_is_read_whether_its_file_is_there_or_not() {
    let place = tempfile::tempdir().unwrap();
    let directory = Directory::open(place.path(), sweep()).unwrap();
    let mut passes = Vec::new();
    // The last pass begins without the second batch.
    for reused in [0, 24, 18] {
        if reused == 18 {
            fs::remove_file(directory.record(&(6..12)).unwrap()).unwrap();
        }
        let mut seen = Vec::new();
        let mut read = |at: &[String], runs: &[RunSummary]| {
            seen.extend(runs.iter().map(|run| (at.to_vec(), run.clone())));
        };
        let swept = directory.complete_and_read(Control::unattended(), Some(&mut read)).unwrap();
        assert_eq!((swept.reused, seen.len()), (reused, 24));
        passes.push(seen);
    }
    assert!(passes.iter().all(|pass| *pass == passes[0]), "in order, whatever is there");
    let (at, run) = &passes[0][5];
    assert_eq!((at.concat().as_str(), run.label.clients), ("wifi.distance=5 m", 2));
}

#[test]
fn a_directory_holds_one_sweep() {
    let place = tempfile::tempdir().unwrap();
    Directory::open(place.path(), sweep()).unwrap();
    let error = Directory::open(place.path(), sweep_of(4)).unwrap_err().to_string();
    assert!(
        error.contains("sweep.json: another sweep is kept here; allowed: a directory for each"),
        "{error}"
    );
    let file = place.path().join("sweep.json");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace(&this_program(), "another")).unwrap();
    let error = Directory::open(place.path(), sweep()).unwrap_err().to_string();
    assert!(error.contains("a sweep of another build of tacit"), "{error}");
    fs::write(&file, text).unwrap();
    let directory = Directory::open(place.path(), sweep()).unwrap();
    let others = sweep().make(6..12, Control::unattended()).unwrap();
    for record in [b"{\"blake3\":\"cut".to_vec(), sweep().record(&others).unwrap()] {
        let error = directory.keep(&(0..6), &record).unwrap_err();
        assert!(error.to_string().contains("no record of runs 0 to 5 came"), "{error}");
        assert_eq!(directory.missing().unwrap().1, 0);
    }
}

/// A finished sweep of 24 runs, in four files.
fn kept(path: &Path) -> Batches {
    let sweep = sweep();
    csv_files(path).complete(Control::unattended()).unwrap();
    sweep
}

fn csv_files(path: &Path) -> Directory {
    Directory::open(path, sweep()).unwrap().with_format(Format::Csv)
}

fn places(path: &Path) -> Result<Vec<StoredPlace>, RunsError> {
    Directory::existing(path)?.expect("a sweep was kept").places().collect()
}

#[test]
fn a_kept_sweep_is_read_as_it_was_made() {
    let place = tempfile::tempdir().unwrap();
    assert!(Directory::existing(place.path()).unwrap().is_none());
    let sweep = kept(place.path());
    let read = places(place.path()).unwrap();
    assert_eq!(
        read.iter().map(|place| place.at.concat()).collect::<Vec<_>>(),
        ["wifi.distance=5 m", "wifi.distance=20 m"]
    );
    let plan = Plan { runs: sweep.specs(0..24).unwrap() };
    let expected = sweep::run(&plan, None, Control::unattended()).unwrap();
    let runs: Vec<_> = read.iter().flat_map(|place| place.runs.clone()).collect();
    assert_eq!(runs, expected);
    let Provenance { command, seeds, version, scenario_text, .. } = &read[1].provenance;
    assert!(command.contains("--set 'wifi.distance=20 m'"), "{command}");
    assert!(command.ends_with(" --clients 1,2 --schemes stock,hack-batch --seeds 3"), "{command}");
    assert_eq!(seeds, "1 to 3");
    assert!(version.contains(&this_program()[..16]), "{version}");
    assert_eq!(*scenario_text, sweep.written.places[1].scenario_text);
}

#[test]
fn a_sweep_of_another_build_is_read_and_what_is_damaged_or_missing_is_named() {
    let place = tempfile::tempdir().unwrap();
    kept(place.path());
    let directory = Directory::open(place.path(), sweep()).unwrap().with_format(Format::Csv);
    let file = directory.record(&(6..12)).unwrap();
    let description = place.path().join("sweep.json");
    let text = fs::read_to_string(&description).unwrap();
    fs::write(&description, text.replace(&this_program(), "another")).unwrap();
    assert_eq!(places(place.path()).unwrap().len(), 2);

    let whole = fs::read(&file).unwrap();
    let refused = |part: &str| {
        let error = places(place.path()).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    };
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 1;
    fs::write(&file, damaged).unwrap();
    refused(&format!("{}: record ", file.display()));
    refused("does not fit its checksum");
    let (missing, there) = directory.missing().unwrap();
    assert_eq!((missing.first(), missing.len(), there), (Some(&(6..12)), 1, 18));
    let (simulated, warned) = complete_observed(&directory);
    assert!(
        simulated == 6 && warned[0].contains("damaged, its runs are made again"),
        "{simulated} {warned:?}"
    );
    assert_eq!(fs::read(&file).unwrap(), whole);
    fs::remove_file(&file).unwrap();
    refused("runs 6 to 11 have no record");
    fs::write(&description, "{").unwrap();
    refused("sweep");
}

/// Records that were swapped, of two schemes or two places, and one with a line twice: each line has its checksum.
#[test]
fn a_record_of_other_runs_is_made_again() {
    let place = tempfile::tempdir().unwrap();
    let sweep = kept(place.path());
    let directory = csv_files(place.path());
    let runs = sweep.make(0..6, Control::unattended()).unwrap();
    let doubled = [&runs[..5], &runs[..1]].concat();
    let record = directory.record(&(0..6)).unwrap();
    let whole = fs::read(&record).unwrap();
    let others = [6..12, 12..18].map(|batch| fs::read(directory.record(&batch).unwrap()).unwrap());
    for content in others.into_iter().chain([sweep.record(&doubled).unwrap()]) {
        fs::write(&record, content).unwrap();
        let error = places(place.path()).unwrap_err().to_string();
        assert!(error.contains("other runs than runs 0 to 5"), "{error}");
        let (simulated, warned) = complete_observed(&directory);
        assert!(
            simulated == 6 && warned[0].contains("damaged, its runs are made again"),
            "{simulated} {warned:?}"
        );
        assert!(fs::read(&record).unwrap() == whole);
    }
}

/// Each has correct checksums.
#[test]
fn a_batch_that_has_other_rows_than_it_must_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let sweep = kept(place.path());
    let record = csv_files(place.path()).record(&(0..6)).unwrap();
    let runs = sweep.make(0..6, Control::unattended()).unwrap();
    let whole = sweep.record(&runs).unwrap();
    let mut odd = runs.clone();
    odd[3].metrics[0] = Some(1e30);
    let strange = String::from_utf8(whole.clone()).unwrap().replace("digest", "other");
    for (content, expected) in [
        (sweep.record(&runs[..2]).unwrap(), "2 runs that this version reads, not runs 0 to 5"),
        (whole[..whole.len() - 1].to_vec(), "5 runs that this version reads, not runs 0 to 5"),
        (Vec::new(), "0 runs that this version reads, not runs 0 to 5"),
        (sweep.record(&odd).unwrap(), "5 runs that this version reads, not runs 0 to 5"),
        (strange.into_bytes(), "like 5 more, does not fit its checksum"),
    ] {
        fs::write(&record, content).unwrap();
        let error = places(place.path()).unwrap_err().to_string();
        assert!(error.contains(expected), "{expected}: {error}");
    }
}
