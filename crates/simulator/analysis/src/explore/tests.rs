//! The frames on the page equal those in the run.

use std::collections::BTreeMap;
use std::fs;

use data_encoding::BASE64;
use miniz_oxide::inflate::decompress_to_vec_zlib;
use serde_json::Value;
use tacit_link::wifi::StationId;
use tacit_runs::air::Kind;

use super::columns::{Layout, decode};
use super::data::FLAGS;
use super::*;

/// A page, and the data that a reader can extract from it.
struct Read {
    html: String,
    written: WrittenPage,
    known: Value,
    sides: Vec<BTreeMap<&'static str, Vec<u64>>>,
}

fn short(scenario: &str, assignments: &[&str]) -> Options {
    Options {
        scenario: scenario.into(),
        assignments: assignments.iter().map(|&text| text.to_owned()).collect(),
        seed: 1,
        ..Options::default()
    }
}

fn read(options: &Options) -> Read {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(FILE);
    let written = prepare(options).unwrap().write(&path, None).unwrap();
    let html = fs::read_to_string(&path).unwrap();
    assert_eq!(written.bytes, html.len() as u64);
    let between = |from: &str| html.split_once(from).unwrap().1.split_once("</script>").unwrap().0;
    let known: Value =
        serde_json::from_str(between(r#"<script id="known" type="application/json">"#)).unwrap();
    let side = |(number, about): (usize, &Value)| {
        let bytes = between(&format!(r#"<script id="bytes-{number}" type="text/plain">"#));
        let bytes = decompress_to_vec_zlib(&BASE64.decode(bytes.as_bytes()).unwrap()).unwrap();
        let whole = |value: &Value| usize::try_from(value.as_u64().unwrap()).unwrap();
        let text = |value: &Value| value.as_str().map(|text| &*text.to_owned().leak());
        let layout = |layout: &Value| Layout {
            name: text(&layout["name"]).unwrap(),
            rows: whole(&layout["rows"]),
            width: whole(&layout["width"]),
            steps: layout["steps"].as_bool().unwrap(),
            by: text(&layout["by"]),
        };
        let layouts: Vec<Layout> = about["columns"].as_array().unwrap().iter().map(layout).collect();
        decode(&layouts, &bytes)
    };
    let sides = known["sides"].as_array().unwrap().iter().enumerate().map(side).collect();
    Read { html, written, known, sides }
}

#[test]
fn a_page_holds_every_frame_as_it_was_heard() {
    let options =
        short("wlan-11n-150", &["run.duration=400ms", "run.measure-from=100ms", "wifi.mpdu-error=5 %"]);
    let page = read(&Options { clients: Some(2), ..options.clone() });
    let schemes = page.known["sides"].as_array().unwrap().iter().zip(DEFAULT_SCHEMES).zip(&page.sides);
    for ((about, scheme), columns) in schemes {
        assert_eq!(about["scheme"], scheme);
        let run = single::prepare(&single::Options {
            scenario: options.scenario.clone(),
            assignments: options.assignments.clone(),
            scheme: Some(scheme.to_owned()),
            clients: Some(2),
            seed: 1,
            ..single::Options::default()
        });
        let mut watch = Watch::new(Window::WHOLE, Duration::from_millis(2), None);
        let (single, _) = run.unwrap().run_observed(&mut watch).unwrap();
        assert_eq!(about["digest"], single.digest);
        assert!(watch.trace.ppdus.len() > 100);
        assert_eq!(columns["at"].len(), watch.trace.ppdus.len());
        let mut which_lost = columns["which_lost"].iter();
        for (row, ppdu) in watch.trace.ppdus.iter().enumerate() {
            let value = |name: &str| columns[name][row];
            assert_eq!(value("at"), ppdu.at.as_nanos());
            assert_eq!(value("duration"), ppdu.duration.as_nanos());
            assert_eq!(value("idle"), ppdu.idle_before.as_nanos());
            assert_eq!(value("nav"), ppdu.reserves.as_nanos());
            assert_eq!(value("from"), u64::from(ppdu.transmitter.0));
            assert_eq!(value("to").checked_sub(1), ppdu.receiver.map(|station| u64::from(station.0)));
            assert_eq!(Kind::NAMES[value("kind") as usize].1, ppdu.kind);
            assert_eq!(value("lost"), ppdu.lost() as u64);
            assert_eq!(value("appended"), ppdu.appended as u64);
            assert_eq!(value("flow").checked_sub(1), ppdu.flow.map(|flow| u64::from(flow.0)));
            let count = value("sequence_count");
            let sequence = (count > 0).then(|| [value("sequence"), value("sequence") + count]);
            assert_eq!(sequence, ppdu.sequence);
            for (bit, (name, is_set)) in FLAGS.iter().enumerate() {
                assert_eq!(value("flags") >> bit & 1 == 1, is_set(ppdu), "{name}");
            }
            assert_eq!(ppdu.acknowledges.unwrap_or(value("acknowledges")), value("acknowledges"));
            if !ppdu.is_lost() {
                let which: Vec<u64> = ppdu.which_lost().map(u64::from).collect();
                assert_eq!(which_lost.by_ref().take(which.len()).copied().collect::<Vec<_>>(), which);
            }
        }
        assert_eq!(columns["delivered"].len(), watch.points.len());
        assert_eq!(columns["delivered"].last(), watch.points.last().map(|point| &point.delivered_total.0));
    }
}

/// The frames on the page, counted independently, agree with the run's metrics.
#[test]
fn frames_of_the_page_add_up_to_the_metrics_of_the_run() {
    // Enough clients to cause collisions. Runs count a frame at its start, but observers receive it at its end. Frames
    // that start in the last second of a run and end after it are only on the page of a longer run.
    let options =
        Options { clients: Some(6), ..short("wlan-11n-150", &["run.duration=1s", "run.measure-from=0s"]) };
    let longer = Options {
        assignments: ["run.duration=1100ms", "run.measure-from=0s"].map(String::from).into(),
        length: Some("1s".into()),
        ..options.clone()
    };
    let page = read(&longer);
    for (scheme, columns) in DEFAULT_SCHEMES.iter().zip(&page.sides) {
        let run = single::prepare(&single::Options {
            scenario: options.scenario.clone(),
            assignments: options.assignments.clone(),
            scheme: Some((*scheme).to_owned()),
            clients: options.clients,
            seed: 1,
            ..single::Options::default()
        });
        let single = run.unwrap().run(tacit_runs::sweep::Control::unattended()).unwrap();
        let counted = |name: &str| (single.metrics.get(name).unwrap() * single.measured_s).round() as u64;
        let rows = || 0..columns["at"].len();
        let is = |row: usize, kind: Kind| columns["kind"][row] == kind.place() as u64;
        let mut collisions: Vec<u64> =
            rows().filter(|row| columns["flags"][*row] & 1 == 1).map(|row| columns["at"][row]).collect();
        collisions.dedup();
        assert!(collisions.len() > 3 || *scheme != "stock", "{scheme}");
        assert_eq!(collisions.len() as u64, counted("collisions_per_s"), "{scheme}");
        let acks: u64 = rows().filter(|row| is(*row, Kind::TcpAck)).map(|row| columns["mpdus"][row]).sum();
        assert_eq!(acks, counted("tcp_acks_on_air_per_s"), "{scheme}");
        let retries: u64 = columns["retries"].iter().sum();
        assert_eq!(retries, counted("retries_per_s"), "{scheme}");
        let augmented = columns["appended"].iter().filter(|bytes| **bytes > 0).count() as u64;
        assert_eq!(
            augmented,
            single
                .metrics
                .get("augmented_link_acks_per_s")
                .map_or(0, |_| counted("augmented_link_acks_per_s"))
        );
        assert_eq!(augmented > 0, *scheme != "stock");
        let from_ap =
            |row: &usize| columns["from"][*row] == u64::from(StationId::AP.0) && is(*row, Kind::Data);
        assert_eq!(rows().filter(from_ap).count() as u64, single.stations[0].counters.data_ppdus);
    }
}

#[test]
fn equal_runs_make_equal_pages() {
    let options = short("wlan-11n-150", &["run.duration=200ms", "run.measure-from=50ms"]);
    assert_eq!(read(&options).html, read(&options).html);
}

/// Issue: less than 5 MB for 10 s. 802.11a without aggregation has the most PPDUs per second, 802.11ac the most MPDUs.
#[test]
fn ten_seconds_of_two_schemes_take_less_than_5_mb() {
    for (scenario, most) in [("wlan-11a-54", 5_000_000), ("wlan-11ac-866", 5_000_000)] {
        let options = short(scenario, &["run.duration=10s", "run.measure-from=1s"]);
        let page = read(&Options { clients: Some(2), ..options });
        let frames: usize = page.written.schemes.iter().map(|scheme| scheme.frames).sum();
        println!("{scenario}: {frames} frames, {} bytes", page.written.bytes);
        assert!(page.written.bytes < most && frames > 10_000, "{scenario}: {frames}, {}", page.written.bytes);
    }
}

#[test]
fn a_page_needs_nothing_else() {
    let page = read(&short("wlan-11n-150", &["run.duration=100ms", "run.measure-from=20ms"]));
    for fetched in
        ["src=", "url(", "@import", "<link", "fetch(", "XMLHttpRequest", "import(", "http://", "https://"]
    {
        assert!(!page.html.contains(fetched), "{fetched}");
    }
    assert!(page.html.contains("default-src 'none'"));
}

#[test]
fn names_of_a_scenario_are_text_whatever_they_say() {
    let evil = "</script><script>evil()</script><!--<img onerror=evil()>&'";
    let page = read(&short(
        "wlan-11n-150",
        &[
            "run.duration=100ms",
            "run.measure-from=20ms",
            &format!("name={evil:?}"),
            &format!("description={evil:?}"),
        ],
    ));
    assert_eq!(page.known["scenario"], evil, "it is there");
    for markup in ["<script>evil", "<!--", "<img"] {
        assert!(!page.html.contains(markup), "{markup}");
    }
    assert_eq!(page.html.matches("</script>").count(), 4, "two of bytes, one of JSON, one that draws");
}

#[test]
fn a_part_of_a_run_may_be_kept() {
    let options = short("wlan-11n-150", &["run.duration=300ms", "run.measure-from=50ms"]);
    let page = read(&Options {
        schemes: vec!["stock".into()],
        from: Some("100ms".into()),
        length: Some("50 ms".into()),
        ..options
    });
    let at = &page.sides[0]["at"];
    assert!(at.len() > 20 && at.iter().all(|at| (100_000_000..150_000_000).contains(at)));
    assert!(page.html.contains("--from 100ms --for '50 ms'"), "the command that makes it says so");
}

#[test]
fn subjects_that_cannot_be_explored_are_refused_with_the_allowed_ones() {
    let good = short("wlan-11n-150", &["run.duration=100ms", "run.measure-from=20ms"]);
    let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    for (options, expected) in [
        (
            short("wired-10", &[]),
            "tacit explore: wired-10 has no Wi-Fi, hence nothing on the air to look at; allowed: scenarios with [wifi]",
        ),
        (
            Options { schemes: names(&["stock", "udp", "tack"]), ..good.clone() },
            "stock,udp,tack are 3 schemes",
        ),
        (Options { schemes: names(&["stock", "stock"]), ..good.clone() }, "stock twice"),
        (Options { schemes: names(&["stork"]), ..good.clone() }, "unknown scheme \"stork\""),
        (Options { from: Some("1s".into()), ..good.clone() }, "--from"),
        (Options { length: Some("0s".into()), ..good.clone() }, "--for"),
        (Options { length: Some("long".into()), ..good.clone() }, "--for"),
        (
            Options { against: names(&["wifi.protection=none"]), ..good.clone() },
            "--against wifi.protection=none: changes nothing: both runs would be the same",
        ),
        (
            Options { against: names(&["run.duration=200ms"]), ..good.clone() },
            "--against run.duration=200ms: the runs differ in run.duration, run.measure-from or clients.count; \
             allowed: other keys; these with --set, for both",
        ),
        (
            Options { against: names(&["wifi.protection=rts"]), ..good },
            "unknown \"rts\", did you mean \"rts-cts\"",
        ),
    ] {
        let error = prepare(&options).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn two_set_ups_stand_side_by_side_under_one_scheme_or_two() {
    let against = vec!["wifi.protection=rts-cts".to_owned()];
    let options = short("wlan-11n-150", &["run.duration=100ms", "run.measure-from=20ms"]);
    let page = read(&Options { against: against.clone(), ..options.clone() });
    let [one, other] = &page.written.schemes[..] else { panic!("two runs") };
    assert_eq!((one.scheme.as_str(), other.scheme.as_str()), ("stock", "stock"));
    assert_eq!((&one.set[..], &other.set[..]), (&[][..], &against[..]));
    assert_ne!(one.digest, other.digest);
    let label = |side: usize| page.known["sides"][side]["scheme"].as_str().unwrap().to_owned();
    assert_eq!([label(0), label(1)], ["stock", "stock, wifi.protection=rts-cts"]);
    // Only the second run has RTS.
    let rts = Kind::NAMES.iter().position(|(name, _)| *name == "rts").unwrap() as u64;
    let count = |side: usize| page.sides[side]["kind"].iter().filter(|kind| **kind == rts).count();
    assert!(count(0) == 0 && count(1) > 10, "{} {}", count(0), count(1));
    assert!(page.html.contains("--schemes stock --clients 1 --seed 1 --against wifi.protection=rts-cts"));
    let schemes = vec!["stock".to_owned(), "tack".to_owned()];
    let page = read(&Options { against, schemes, ..options });
    assert_eq!(page.known["sides"][1]["scheme"], "tack, wifi.protection=rts-cts");
}

#[test]
fn a_file_that_cannot_be_written_is_said_before_the_run() {
    let directory = tempfile::tempdir().unwrap();
    // A run that would take years.
    let options = short("wlan-11n-150", &["run.duration=3600s", "run.measure-from=1s"]);
    let path = directory.path().join("missing").join("page.html");
    let error = prepare(&options).unwrap().write(&path, None).unwrap_err().to_string();
    assert!(error.contains("missing/page.html"), "{error}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn schemes_side_by_side_never_have_one_colour() {
    for pair in [["stock", "udp"], ["hack-batch", "hack-timer"], ["tack", "tack-l1"]] {
        let inks = inks(&pair);
        assert_ne!(inks[0], inks[1], "{pair:?}");
    }
}

#[test]
fn a_comparison_has_one_pair_that_is_looked_at_first() {
    let compare = "tacit compare 'my net.toml' --clients 1,10 --schemes stock,tcp-l4,hack-more-data --seeds 5 --set a=b --quick";
    let explore = "tacit explore 'my net.toml' --schemes stock,hack-more-data --clients 10 --set a=b --quick";
    assert_eq!(beside(compare).as_deref(), Some(explore));
    let few = "tacit compare x --clients 2 --schemes tack,udp --seeds 1";
    assert_eq!(beside(few).as_deref(), Some("tacit explore x --schemes tack --clients 2"));
    assert_eq!(beside("tacit figure hack/fig10"), None);
}
