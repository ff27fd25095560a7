use std::fs;
use std::sync::Arc;

use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::{Field, RowAccessor as _};
use proptest::prelude::*;
use serde_json::json;
use tacit_scenario::{Scenario, scheme};

use super::*;
use crate::plan::SweepPoint;
use crate::record::{Label, RunRecord};
use crate::sweep::tests::{ObservedSweep, run_observed};
use crate::sweep::{self, Control, Progress};

const SHORT: [&str; 2] = ["run.duration=300ms", "run.measure-from=100ms"];

fn plan(scenario: &str, extra: &[&str], seeds: u32) -> Plan {
    let assignments: Vec<String> = SHORT.iter().chain(extra).map(|&text| text.to_owned()).collect();
    let scenario = Arc::new(Scenario::load(scenario, &assignments).unwrap());
    let mut plan = Plan::default();
    plan.push(&scenario, &scheme::ALL[0], 2, SweepPoint { x: Some(2.5), best_of: None }, seeds).unwrap();
    plan
}

fn finished(directory: &Path, plan: &Plan) -> (Store, Vec<RunSummary>) {
    let store = Store::open(directory).unwrap();
    let runs = sweep::run(plan, Some(&store), Control::unattended()).unwrap();
    store.finish(&Provenance { scenario: "ü".into(), ..Provenance::default() }, &runs).unwrap();
    (store, runs)
}

/// A record of small artificial runs.
fn made_up(directory: &Path, runs: usize) -> Store {
    let store = Store::open(directory).unwrap();
    let (mut writer, _) = store.resume(&|text| panic!("{text}")).unwrap();
    let mut summaries = Vec::new();
    for number in 0..runs {
        let label = Label { scheme: "stock".into(), seed: number as u64, ..Label::default() };
        let run = RunSummary { id: format!("{number:032x}"), label, ..RunSummary::default() };
        writer.append(&RunRecord { run: run.clone(), ..RunRecord::default() }).unwrap();
        summaries.push(run);
    }
    store.finish(&Provenance::default(), &summaries).unwrap();
    store
}

#[test]
fn recorded_runs_are_read_back() {
    let directory = tempfile::tempdir().unwrap();
    let mut plan = plan("wlan-11n-150", &["traffic.application=request-response"], 2);
    plan.runs.extend(self::plan("wired-10", &["traffic.application=streaming"], 2).runs);
    let (store, runs) = finished(directory.path(), &plan);
    let (provenance, read) = store.read().unwrap();
    assert_eq!((provenance.scenario.as_str(), &read), ("ü", &runs));
    assert_eq!(read, sweep::run(&plan, None, Control::unattended()).unwrap());
    assert!(Arc::ptr_eq(&read[0].scenario_text, &read[1].scenario_text), "equal values are kept once");
    let mut names: Vec<_> =
        fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort_unstable();
    let mut expected: Vec<&str> = export::FILES.iter().map(|(name, _)| *name).chain([RECORD]).collect();
    expected.sort_unstable();
    assert_eq!(names, expected);
    // Repeating the sweep changes nothing.
    let before = fs::read(directory.path().join(RECORD)).unwrap();
    finished(directory.path(), &plan);
    assert_eq!(fs::read(directory.path().join(RECORD)).unwrap(), before);
}

#[test]
fn files_are_written_again_where_they_are_not_those_of_the_record() {
    let directory = tempfile::tempdir().unwrap();
    let plan = plan("wired-10", &[], 1);
    let (store, runs) = finished(directory.path(), &plan);
    let flows = directory.path().join("flows.parquet");
    let whole = fs::read(&flows).unwrap();
    let changed = |change: &dyn Fn()| {
        change();
        finished(directory.path(), &plan);
        let now = fs::read(&flows).unwrap();
        (now == whole, now)
    };
    // The record has the same age as the last exported file, so nothing is written.
    let age = |file: &Path| fs::metadata(file).unwrap().modified().unwrap();
    let mark = || {
        let recorded = age(&directory.path().join(RECORD));
        fs::write(&flows, b"as it was").unwrap();
        fs::File::options().append(true).open(&flows).unwrap().set_modified(recorded).unwrap();
    };
    assert_eq!(changed(&mark).1, b"as it was");
    // Files newer than the record indicate an interrupted export. Repeated, because after the first time the record has
    // their age.
    let newer = || {
        let later = age(&directory.path().join(RECORD)) + std::time::Duration::from_secs(1);
        fs::write(&flows, b"of another sweep").unwrap();
        fs::File::options().append(true).open(&flows).unwrap().set_modified(later).unwrap();
    };
    assert!(changed(&newer).0);
    assert!(changed(&|| {}).0);
    assert!(changed(&|| fs::remove_file(&flows).unwrap()).0);
    // Another sweep is exported again.
    store.finish(&Provenance { scenario: "another".into(), ..Provenance::default() }, &runs).unwrap();
    assert_ne!(fs::read(&flows).unwrap(), whole);
}

#[test]
fn a_row_of_another_label_points_at_the_same_run() {
    let directory = tempfile::tempdir().unwrap();
    let mut plan = plan("wired-10", &[], 1);
    let mut elsewhere = plan.runs[0].clone();
    elsewhere.x = Some(7.0);
    plan.runs.push(elsewhere);
    let (store, _) = finished(directory.path(), &plan);
    let (_, runs) = store.read().unwrap();
    assert_eq!(runs.iter().map(|run| run.label.x).collect::<Vec<_>>(), [Some(2.5), Some(7.0)]);
    let record = fs::read_to_string(directory.path().join(RECORD)).unwrap();
    assert_eq!(record.matches("\"run\":{").count(), 1, "a run is recorded once");
    let flows = SerializedFileReader::try_from(directory.path().join("flows.parquet").as_path()).unwrap();
    assert_eq!(flows.metadata().file_metadata().num_rows(), 2, "and so are its parts: two flows");
}

#[test]
fn parquet_files_say_what_the_record_says() {
    let directory = tempfile::tempdir().unwrap();
    let (_, runs) = finished(directory.path(), &plan("wlan-11n-150", &[], 3));
    let open = |name: &str| SerializedFileReader::try_from(directory.path().join(name).as_path()).unwrap();
    let reader = open(RUNS);
    let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
    assert_eq!(rows.len(), runs.len());
    for (row, run) in rows.iter().zip(&runs) {
        let (columns, values): (Vec<&String>, Vec<&Field>) = row.get_column_iter().unzip();
        let value = |name: &str| values[columns.iter().position(|column| *column == name).unwrap()];
        assert_eq!(value("run"), &Field::Str(run.id.clone()));
        assert_eq!(value("x"), &Field::Double(2.5));
        assert_eq!(value("seed"), &Field::Long(run.label.seed as i64));
        for metric in crate::metric::ALL {
            assert_eq!(value(metric.name), &run.metric(metric.name).map_or(Field::Null, Field::Double));
        }
    }
    let row = open("flows.parquet").get_row_iter(None).unwrap().next().unwrap().unwrap();
    assert_eq!(row.get_string(0).unwrap(), &runs[0].id);
    let pairs = reader.metadata().file_metadata().key_value_metadata().unwrap();
    assert!(pairs.iter().any(|pair| pair.key == "tacit.scenario" && pair.value.as_deref() == Some("ü")));
}

#[test]
fn a_run_cut_short_by_a_kill_is_dropped_and_made_again() {
    let directory = tempfile::tempdir().unwrap();
    let plan = plan("wired-10", &[], 3);
    let store = Store::open(directory.path()).unwrap();
    let whole = sweep::run(&plan, Some(&store), Control::unattended()).unwrap();
    let path = directory.path().join(RECORD);
    let content = fs::read(&path).unwrap();
    // Repeated, because the second kill affects a record that has been repaired.
    for cut in [20, 1] {
        fs::write(&path, &content[..content.len() - cut]).unwrap();
        let ObservedSweep { runs, simulated, warned, .. } = resumed(&plan, &store);
        assert_eq!((&runs, simulated), (&whole, 1));
        assert!(warned.len() == 1 && warned[0].contains("the last record was cut short"), "{warned:?}");
        assert_eq!(resumed(&plan, &store).simulated, 0);
    }
}

#[test]
fn a_damaged_record_is_named_and_made_again() {
    let directory = tempfile::tempdir().unwrap();
    let plan = plan("wired-10", &[], 3);
    let (store, whole) = finished(directory.path(), &plan);
    let path = directory.path().join(RECORD);
    let mut content = fs::read(&path).unwrap();
    let second = content.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    // Changes a digit of a result, so that it remains valid JSON.
    let digit = second + 300 + content[second + 300..].iter().position(u8::is_ascii_digit).unwrap();
    content[digit] ^= 1;
    fs::write(&path, content).unwrap();
    let error = store.read().unwrap_err().to_string();
    let expected = format!("{RECORD}: record 2 (at byte {second}) does not fit its checksum");
    assert!(error.contains(&expected), "{error}");
    assert!(store.select(&plan).is_err());
    let ObservedSweep { runs, simulated, warned, .. } = resumed(&plan, &store);
    assert_eq!((&runs, simulated), (&whole, 1));
    assert!(warned.len() == 1 && warned[0].contains("record 2 (at byte"), "{warned:?}");
    assert_eq!(store.read().unwrap().1, whole);
}

fn resumed(plan: &Plan, store: &Store) -> ObservedSweep {
    run_observed(plan, Some(store), None)
}

#[test]
fn stored_runs_are_found_whichever_program_made_them() {
    let directory = tempfile::tempdir().unwrap();
    let plan = plan("wired-10", &[], 2);
    let (store, runs) = finished(directory.path(), &plan);
    // Another program has different names for the same runs.
    let path = directory.path().join(RECORD);
    let (mut writer, known) = store.resume(&|text| panic!("{text}")).unwrap();
    let log = Log::open(&path).unwrap();
    let records: Vec<RunRecord> = log.runs().map(|(line, _)| log.run(line).unwrap()).collect();
    assert_eq!(known.len(), records.len());
    fs::remove_file(&path).unwrap();
    assert!(store.select(&plan).unwrap().iter().all(Option::is_none));
    drop(writer);
    (writer, _) = store.resume(&|text| panic!("{text}")).unwrap();
    for (number, record) in records.into_iter().enumerate() {
        let (id, version) = (format!("{number:032x}"), "0.0.1 (older)".into());
        let run = RunSummary { id, version, ..record.run };
        writer.append(&RunRecord { run, ..record }).unwrap();
    }
    let warnings = std::sync::Mutex::new(Vec::new());
    let progress = |progress: Progress<'_>| match progress {
        Progress::Warning(text) | Progress::LongWait(text) => warnings.lock().unwrap().push(text.to_owned()),
        _ => panic!("nothing is run"),
    };
    let control = Control { progress: &progress, ..Control::unattended() };
    let found = sweep::stored(&plan, &store, "tacit figure x", control).unwrap();
    let metrics = |runs: &[RunSummary]| runs.iter().map(|run| run.metrics.clone()).collect::<Vec<_>>();
    assert_eq!(metrics(&found), metrics(&runs));
    assert!(warnings.into_inner().unwrap()[0].contains("made by tacit 0.0.1 (older), this is "));

    let more = self::plan("wired-10", &[], 7);
    let error =
        sweep::stored(&more, &store, "tacit figure x", Control::unattended()).unwrap_err().to_string();
    let end = "5 of 7 runs are missing: wired-10 stock, clients 2, seed 3; wired-10 stock, clients 2, seed 4; \
               wired-10 stock, clients 2, seed 5; and 2 more; tacit figure x makes them";
    assert!(error.ends_with(end), "{error}");
}

#[test]
fn left_overs_go_when_they_are_more_than_all_else() {
    let directory = tempfile::tempdir().unwrap();
    let store = made_up(directory.path(), 3);
    let (mut writer, _) = store.resume(&|text| panic!("{text}")).unwrap();
    // A scenario of 40 MB is used, because a gibibyte would take too long.
    for number in 100..102 {
        let scenario_text = "x".repeat(40 << 20).into();
        let run = RunSummary { id: number.to_string(), scenario_text, ..RunSummary::default() };
        writer.append(&RunRecord { run, ..RunRecord::default() }).unwrap();
    }
    let (provenance, runs) = store.read().unwrap();
    store.finish(&provenance, &runs).unwrap();
    assert_eq!(store.read().unwrap().1, runs);
    let (_, known) = store.resume(&|text| panic!("{text}")).unwrap();
    assert_eq!(known.len(), 3);
}

#[test]
fn a_sweep_that_did_not_finish_is_no_report() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path()).unwrap();
    let error = store.read().unwrap_err().to_string();
    assert!(error.contains("runs.jsonl: "), "{error}");
    sweep::run(&plan("wired-10", &[], 2), Some(&store), Control::unattended()).unwrap();
    let error = store.read().unwrap_err().to_string();
    assert!(error.contains("2 runs of a sweep that did not finish"), "{error}");
}

/// Intact entries with unknown content: deeply nested, of another kind, empty, or not JSON.
#[test]
fn sound_entries_of_strangers_are_refused_or_left_alone() {
    let sealed = |body: &str| {
        let hash = blake3::hash(body.as_bytes()).to_hex();
        format!("{{\"blake3\":\"{hash}\",{body}\n")
    };
    let odd = |label: &str| {
        let row = format!("{{\"id\":\"{:032}\",\"label\":{label},\"scenario_text\":9}}", 0);
        format!("\"sweep\":{{\"provenance\":{{}},\"scenario_texts\":[],\"rows\":[{row}]}}}}")
    };
    let label = |scheme: &str, x: f64| {
        odd(&format!("{{\"scenario\":\"\",\"scheme\":\"{scheme}\",\"clients\":1,\"x\":{x:e},\"seed\":1}}"))
    };
    let deep = format!("\"sweep\":{}", "[".repeat(1_000_000));
    for (body, readable) in [
        ("\"run\":{}}", true),
        ("\"run\":[1,2,3]}", true),
        ("\"frames\":{\"id\":1}}", true),
        ("\"sweep\":{}}", false),
        ("\"sweep\":{\"provenance\":{},\"scenario_texts\":[],\"rows\":[{\"id\":\"x\"}]}}", false),
        (deep.as_str(), false),
        (label("stock", 1.0).as_str(), true),
        (label("stock", 1e300).as_str(), false),
        (label(&"x".repeat(65), 1.0).as_str(), false),
        ("\"sweep\":nonsense", false),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let store = made_up(directory.path(), 2);
        let path = directory.path().join(RECORD);
        fs::write(&path, fs::read_to_string(&path).unwrap() + &sealed(body)).unwrap();
        let read = store.read();
        assert_eq!(read.is_ok(), readable, "{body:.40}");
        if let Err(error) = read {
            let message = error.to_string();
            assert!(message.contains(RECORD) && message.lines().count() == 1, "{message}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Flipped, truncated, duplicated and inserted bytes: either the original contents are read, or a one-line error
    /// names the fault.
    #[test]
    fn a_damaged_directory_is_read_or_refused_in_one_line(
        places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0_u8..4), 1..4),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let store = made_up(directory.path(), 4);
        let written = store.read().unwrap();
        let path = directory.path().join(RECORD);
        let mut content = fs::read(&path).unwrap();
        for (place, byte, how) in places {
            let place = place.index(content.len().max(1));
            match how {
                0 if !content.is_empty() => content[place] = byte,
                1 => content.truncate(place),
                2 => drop(content.splice(place..place, std::iter::repeat_n(byte, 1_000))),
                _ => content.extend_from_within(place..),
            }
        }
        fs::write(&path, &content).unwrap();
        match store.read() {
            Ok(read) => prop_assert_eq!(&read, &written),
            Err(error) => {
                let message = error.to_string();
                prop_assert!(message.contains(RECORD) && message.lines().count() == 1, "{}", message);
            }
        }
        // Resuming repairs the record. It then contains only unmodified runs.
        let (_, known) = store.resume(&|_| {}).unwrap();
        for (id, run) in known {
            let original = written.1.iter().find(|other| other.id == id);
            prop_assert_eq!(Some(&run.metrics), original.map(|run| &run.metrics));
        }
        let (_, again) = store.resume(&|text| panic!("{text}")).unwrap();
        prop_assert!(again.len() <= written.1.len());
    }
}

#[test]
fn objects_are_rows_and_nested_ones_prefixes() {
    let rows =
        [json!({"name": "a", "gain": null, "air": {"data": 0.5}}), json!({"name": "b", "gain": 2.5, "n": 3})];
    let expected = [
        ("name", Column::Text(vec!["a".into(), "b".into()])),
        ("gain", Column::Number(vec![None, Some(2.5)])),
        ("air_data", Column::Number(vec![Some(0.5), None])),
        ("n", Column::Integer(vec![None, Some(3)])),
    ];
    assert_eq!(objects(&rows).columns, expected.map(|(name, column)| (name.to_owned(), column)));
}

#[test]
fn csv_quotes_what_needs_it_and_leaves_empty_what_is_missing() {
    let mut sheet = Sheet::default();
    sheet.text("name", ["plain", "a, \"b\"\nc", ""].into_iter());
    sheet.integer("count", [Some(3), None, Some(0)].into_iter());
    sheet.number("mean", [Some(0.1 + 0.2), Some(1e8), None].into_iter());
    let expected = "name,count,mean\nplain,3,0.30000000000000004\n\"a, \"\"b\"\"\nc\",,100000000.0\n,0,\n";
    assert_eq!(sheet.to_csv(), expected);
}

#[test]
fn csv_has_the_columns_and_values_of_parquet() {
    let directory = tempfile::tempdir().unwrap();
    let (store, runs) = finished(directory.path(), &plan("wlan-11n-150", &[], 2));
    let records: Vec<RunRecord> =
        runs.iter().map(|run| RunRecord { run: run.clone(), ..store.record(&run.id).unwrap() }).collect();
    for (file, _) in export::FILES {
        let name = file.strip_suffix(".parquet").unwrap();
        let text = sheet_of(name, &records).unwrap().to_csv();
        let mut csv = ::csv::Reader::from_reader(text.as_bytes());
        let names = csv.headers().unwrap().clone();
        let mut lines = csv.records().map(Result::unwrap);
        let reader = SerializedFileReader::try_from(directory.path().join(file).as_path()).unwrap();
        for row in reader.get_row_iter(None).unwrap().map(Result::unwrap) {
            let line = lines.next().unwrap();
            assert_eq!(names.len(), row.get_column_iter().count(), "{file}");
            for ((column, value), (name, cell)) in row.get_column_iter().zip(names.iter().zip(&line)) {
                let same = match value {
                    Field::Null => cell.is_empty(),
                    Field::Str(text) => text == cell,
                    Field::Long(number) => cell.parse() == Ok(*number),
                    Field::Double(number) => cell.parse() == Ok(*number),
                    _ => false,
                };
                assert!(same && column == name, "{file}: {column} is {value}, {name} is {cell}");
            }
        }
        assert!(lines.next().is_none(), "{file}");
    }
}

proptest! {
    #[test]
    fn csv_reads_back_as_what_was_written(
        rows in prop::collection::vec((".*", any::<Option<i64>>(), any::<Option<f64>>()), 1..5),
    ) {
        let columns = vec![
            ("text".to_owned(), Column::Text(rows.iter().map(|row| row.0.clone()).collect())),
            ("integer".to_owned(), Column::Integer(rows.iter().map(|row| row.1).collect())),
            ("number".to_owned(), Column::Number(rows.iter().map(|row| row.2).collect())),
        ];
        let text = Sheet { columns }.to_csv();
        let mut reader = ::csv::Reader::from_reader(text.as_bytes());
        let read: Vec<_> = reader.records().map(Result::unwrap).collect();
        prop_assert_eq!(read.len(), rows.len());
        for (line, (text, integer, number)) in read.iter().zip(&rows) {
            prop_assert_eq!(&line[0], text);
            prop_assert_eq!(line[1].parse().ok(), *integer);
            prop_assert_eq!(line[2].parse::<f64>().ok().map(f64::to_bits), number.map(f64::to_bits));
        }
    }
}

#[test]
fn rows_have_the_columns_of_the_one_that_has_all() {
    let (full, bare) = (json!({"name": "", "air": {"data": 0.0}}), json!({"name": "b", "air": null}));
    let mut sheet = Sheet::default();
    add_rows(&mut sheet, &full, [&bare].into_iter()).unwrap();
    let expected = [("name", Column::Text(vec!["b".into()])), ("air_data", Column::Number(vec![None]))];
    assert_eq!(sheet.columns, expected.map(|(name, column)| (name.to_owned(), column)));
}

/// Other programs access these columns by name and by position.
#[test]
fn parts_of_runs_have_the_columns_that_they_always_had() {
    let columns = |table: &str| -> String {
        let sheet = sheet_of(table, &[]).unwrap();
        sheet.columns.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(" ")
    };
    let label = "run scheme clients seed";
    assert_eq!(
        columns("flows"),
        format!(
            "{label} flow name source sink goodput_bps transfer_goodput_bps delivered_bytes started_s \
             completed_s duration_s retransmitted_segments rtos data_segments_sent acks_sent native_acks \
             compressed_acks thinned_acks compressed_bytes uncompressed_bytes"
        )
    );
    assert_eq!(
        columns("hops"),
        format!(
            "{label} kind from to offered delivered delivered_bytes dropped filtered_acks lost duplicated \
             queue_delay_p50_us queue_delay_p95_us queue_delay_max_us"
        )
    );
    let airtime = |part: &str| {
        let uses = [
            "data",
            "tcp_ack",
            "retransmission",
            "link_ack",
            "protection",
            "compressed_ack",
            "acquisition",
            "collision",
            "beacon",
        ];
        uses.map(|what| format!("{part}_{what}")).join(" ")
    };
    assert_eq!(
        columns("stations"),
        format!(
            "{label} bss host delivered_bytes data_ppdus data_mpdus ppdu_sizes unacknowledged \
             unacknowledged_arrived repair_requests repair_request_bytes repaired repair_given_up \
             delivered_first_try delivered_after_retry retries mpdus_dropped queue_drops queue_discards \
             queue_marks collided_ppdus missed_link_acks block_ack_requests rts missed_cts cts_to_self \
             reverse_grants reverse_ppdus reverse_mpdus burst_ppdus cf_ends shared_ppdus shared_parts \
             triggers triggered_ppdus tcp_acks_on_air tcp_ack_ppdus \
             link_acks augmented_link_acks augmented_within_aifs appended_bytes queue_mean_packets \
             queue_peak_packets queue_delay_p50_us queue_delay_p95_us queue_delay_max_us {} {} \
             hack_native_acks hack_compressed_acks hack_compressed_bytes hack_uncompressed_bytes hack_frames \
             hack_flushed_acks hack_refused_acks hack_thinned_acks hack_cheaper_acks hack_hold_limits \
             hack_reconstituted_acks hack_duplicate_frames hack_failed_frames hack_compression_ratio \
             fastack_forged_acks fastack_suppressed_acks fastack_raised_acks fastack_local_retransmissions \
             fastack_local_timeouts fastack_refused_copies fastack_answered_retransmissions \
             fastack_evicted_flows fastack_refused_flows fastack_abandoned_flows fastack_uncached_segments \
             fastack_cached_segments_max fwp_registered_flows fwp_segments fwp_lost_segments fwp_holes \
             fwp_overdue_holes fwp_placeholders fwp_placeholder_bytes fwp_congested_holes fwp_capped_holes fwp_untold_holes \
             fwp_other_holes fwp_late_segments fwp_swallowed_segments fwp_reordered_segments \
             fwp_switched_off fwp_switched_on fwp_failed_flows fwp_hole_bytes_max fwp_held_bytes_max",
            airtime("airtime_s"),
            airtime("tcp_ack_airtime_s")
        )
    );
}
