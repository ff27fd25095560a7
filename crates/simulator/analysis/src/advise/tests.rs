use std::sync::Mutex;

use tacit_link::wifi::phy::Standard;
use tacit_packet::units::BitRate;
use tacit_runs::sweep::Progress;

use super::arena::{Arena, Lead, Order};
use super::*;

fn question() -> Question {
    Question {
        scenario: "wlan-11n-150".into(),
        // CUBIC of Linux would still be in slow start in such short runs.
        assignments: ["run.duration=3 s", "run.measure-from=1 s", "tcp.slow-start=hystart"]
            .map(str::to_owned)
            .to_vec(),
        rtt: None,
        clients: Some(2),
        uploads: None,
        segments_per_ack: Some(2),
        seeds: Some(3),
        max_seeds: Some(5),
        quick: false,
        directory: None,
    }
}

/// Artificial runs: for each scheme, goodputs in Mb/s for seeds from 1 on, and the queueing delay in ms.
fn arena(schemes: &[(&'static str, &[f64], f64)]) -> Arena {
    let mut arena = Arena::new(Arc::new(Scenario::load("wlan-11n-150", &[]).unwrap()), 1);
    for (scheme, mbps, wait_ms) in schemes {
        arena.pretend(scheme, mbps, wait_ms * 1e3);
    }
    arena
}

/// Two clients that acknowledge every second segment, as in the HACK paper: TCP/HACK gains most, fewer ACKs are the
/// smallest change with a gain, and another congestion control does not help. Overlapping intervals cause more seeds.
#[test]
fn the_smallest_change_and_the_largest_gain_are_told_apart() {
    let advice = advise(&question(), Control::unattended()).unwrap();
    let text = advice.to_text(None);
    let answer = &advice.answer;
    assert_eq!(answer.choices.len(), sides::CHANGES.len());
    let named = |index: Option<usize>| index.map(|index| answer.choices[index].scheme.as_str());
    assert_eq!(answer.first, Some(0), "{text}");
    assert!(named(answer.most).is_some_and(|name| name.starts_with("hack-")), "{text}");
    assert_ne!(answer.choices[1].verdict, Verdict::Worth, "{text}");
    assert!(text.contains("Smallest change that is worth it:\n  receivers acknowledge less often"), "{text}");
    assert!(text.contains("Most is gained by:\n  firmware of both Wi-Fi chips"), "{text}");
    assert_eq!(advice.limit.by, LimitedBy::Channel, "{text}");
    let mut lines = text.lines();
    let result = lines.next().unwrap();
    assert!(
        result.starts_with("Smallest change that is worth it: ") && result.contains(" Most is gained by ")
    );
    assert!(lines.next().unwrap().starts_with("The Wi-Fi channel is the limit, in use 9"), "{text}");
    for width in [80, 120] {
        let narrow = advice.to_text(Some(width));
        let too_long = |line: &&str| line.chars().count() > width && !line.trim_start().starts_with("tacit ");
        assert_eq!(narrow.lines().find(too_long), None, "{narrow}");
    }
    let seeds = answer.choices.iter().map(|choice| choice.row.seeds);
    assert!(seeds.clone().all(|seeds| (3..=5).contains(&seeds)) && answer.today.seeds == 5, "{text}");
    let kinds: Vec<_> = advice.other_queues.iter().map(|other| other.queue.kind).collect();
    assert_eq!(kinds, [QueueKind::Short, QueueKind::FqCodel], "its own is ample: {text}");
    assert_eq!(advice.other_queues[0].set, ["wifi.ap-queue=64 packets"]);
    let every: Vec<_> = advice.frequencies.rows.iter().map(|frequency| frequency.segments).collect();
    assert_eq!(every, [Some(1), Some(2), Some(4), Some(8), Some(16), None], "{text}");
    let goodput = |at: usize| advice.frequencies.rows[at].row.goodput_bps_mean;
    assert!(goodput(0) < goodput(2) && goodput(2) < goodput(4), "fewer ACKs leave more of the air: {text}");
}

/// At 50 ms the scenario's queue is a fraction of a bandwidth-delay product. It is the limit, and other schemes help
/// with it than with a longer queue.
#[test]
fn a_short_queue_is_named_and_another_answers_otherwise() {
    let question = Question {
        rtt: Some(Duration::from_millis(50)),
        assignments: ["run.duration=8 s", "run.measure-from=4 s"].map(str::to_owned).to_vec(),
        clients: Some(1),
        segments_per_ack: None,
        max_seeds: Some(3),
        ..question()
    };
    let advice = advise(&question, Control::unattended()).unwrap();
    let queue = advice.queue.as_ref().unwrap();
    assert_eq!(queue.kind, QueueKind::Short, "{}", advice.to_text(None));
    assert!(queue.bandwidth_delay_products.is_some_and(|products| products < 0.5), "{queue:?}");
    assert_eq!(advice.limit.by, LimitedBy::Queue, "{}", advice.to_text(None));
    let ample = &advice.other_queues[0];
    assert_eq!(ample.queue.kind, QueueKind::Ample);
    assert!(ample.answer.today.goodput_bps_mean > 1.1 * advice.answer.today.goodput_bps_mean);
}

/// The 50 kb/s for ACKs are the bottleneck of 8 Mb/s of data, so fewer ACKs nearly double the goodput.
#[test]
fn a_slow_uplink_wants_fewer_acks() {
    let question = Question {
        scenario: "lte-slow-uplink".into(),
        assignments: Vec::new(),
        clients: None,
        seeds: Some(1),
        max_seeds: Some(1),
        ..question()
    };
    let advice = advise(&question, Control::unattended()).unwrap();
    let first = &advice.answer.choices[advice.answer.first.unwrap()];
    assert_eq!((advice.answer.first, first.verdict), (Some(0), Verdict::Worth));
    assert!(first.row.gain_over_stock > Some(0.5), "{}", advice.to_text(None));
    assert!(advice.to_text(None).contains("95 % of packets take up to"), "{}", advice.to_text(None));
    assert_eq!(advice.limit.by, LimitedBy::WayBack, "{}", advice.to_text(None));
    assert!(advice.other_queues.iter().all(|other| other.set[0].starts_with("wired.down.queue=")));
}

#[test]
fn schemes_without_gain_are_not_advised() {
    // UDP's bound is that of stock: one client on a wire without Wi-Fi.
    let question =
        Question { scenario: "wired-10".into(), segments_per_ack: None, max_seeds: Some(3), ..question() };
    let advice = advise(&question, Control::unattended()).unwrap();
    assert_eq!(advice.answer.first, None, "{}", advice.to_text(None));
    assert!(advice.answer.choices.iter().all(|choice| !choice.scheme.starts_with("hack")));
    assert!(advice.to_text(None).contains("Change nothing: "), "{}", advice.to_text(None));
    assert_eq!(advice.limit.by, LimitedBy::Link, "{}", advice.to_text(None));
}

/// A single video of 8 Mb/s: the channel is idle, and no queue or ACK frequency can change that.
#[test]
fn where_nobody_has_anything_to_send_that_is_said() {
    let mut assignments = question().assignments;
    assignments.push("traffic.application=streaming".to_owned());
    let question =
        Question { assignments, clients: Some(1), seeds: Some(2), max_seeds: Some(9), ..question() };
    let advice = advise(&question, Control::unattended()).unwrap();
    assert_eq!(advice.limit.by, LimitedBy::Source, "{}", advice.to_text(None));
    assert_eq!((advice.seeds, advice.other_queues.len()), ([2, 2], 0));
    assert!(advice.to_text(None).contains("The programs are the limit"), "{}", advice.to_text(None));
}

/// Progress reports describe a single sweep that grows.
#[test]
fn rounds_are_one_sweep_to_those_who_watch() {
    let totals = Mutex::new((0, 0));
    let progress = |progress: Progress<'_>| {
        let mut totals = totals.lock().unwrap();
        match progress {
            Progress::Started { total, reused } => {
                assert!(total >= totals.0 && reused == totals.1, "{total} {reused} {totals:?}");
                totals.0 = total;
            }
            Progress::Finished(_) => totals.1 += 1,
            Progress::Warning(_) | Progress::LongWait(_) => {}
        }
    };
    let question =
        Question { scenario: "wired-10".into(), clients: Some(1), max_seeds: Some(3), ..question() };
    advise(&question, Control { progress: &progress, ..Control::unattended() }).unwrap();
    let totals = totals.into_inner().unwrap();
    assert_eq!(totals.0, totals.1);
}

#[test]
fn the_user_has_the_last_word_and_long_paths_have_their_time() {
    let options = Question { rtt: Some(Duration::from_millis(200)), ..question() }.options().unwrap();
    assert_eq!(options.assignments[0], "wired.delay=100000 us");
    assert_eq!(options.assignments[1], "run.measure-from=12000 ms");
    assert_eq!(options.assignments[2], "run.duration=14000 ms");
    assert!(options.assignments.ends_with(&question().assignments));
}

#[test]
fn seeds_have_bounds() {
    let seeds = |seeds, max_seeds, quick| Question { seeds, max_seeds, quick, ..question() }.seeds();
    assert_eq!(seeds(None, None, false).unwrap(), [3, 12]);
    assert_eq!(seeds(None, None, true).unwrap(), [3, 6]);
    assert_eq!(seeds(Some(20), None, true).unwrap(), [20, 20]);
    let error = seeds(Some(5), Some(4), false).unwrap_err().to_string();
    assert_eq!(error, "--max-seeds: 4 is less than --seeds; allowed: 5 to 10000");
    assert!(seeds(Some(0), None, false).unwrap_err().to_string().contains("--seeds: 0 is out of range"));
}

#[test]
fn every_rate_has_a_scenario_of_its_standard() {
    for (standard, mbps, name) in [
        (Standard::N, 65, "wlan-11n-150"),
        (Standard::N, 240, "wlan-11n-300"),
        (Standard::Ac, 2_340, "wlan-11ac-1733"),
        (Standard::Ac, 867, "wlan-11ac-866"),
        (Standard::B, 1, "wlan-11b-11"),
    ] {
        assert_eq!(tacit_scenario::link::scenario_for(standard, BitRate::from_mbps(mbps)), name);
    }
}

#[test]
fn of_equals_the_one_whose_packets_wait_least_is_chosen() {
    let arena = arena(&[
        ("stock", &[80.0, 80.1, 80.2], 9.0),
        ("tcp-l4", &[100.0, 100.1, 100.2], 9.0),
        ("tcp-l8", &[99.5, 99.6, 99.7], 5.0),
        ("tcp-l16", &[98.0, 98.1, 98.2], 1.0),
    ]);
    let choice = &Answer::from_arena(&arena, arena.scenario()).choices[0];
    assert_eq!((choice.scheme.as_str(), choice.verdict), ("tcp-l8", Verdict::Worth));
    assert!(choice.not_separated_from.is_empty());
    assert!(judge::not_separated(&[arena]).is_empty());
}

#[test]
fn overlapping_schemes_are_not_ranked_and_run_more() {
    let arena = arena(&[
        ("stock", &[80.0, 80.1, 80.2], 9.0),
        ("tcp-l4", &[90.0, 99.0, 108.0], 9.0),
        ("tcp-l8", &[104.0, 95.0, 94.0], 9.0),
        ("tack", &[100.0, 100.1, 100.2], 9.0),
        ("bbr", &[78.0, 84.0, 82.0], 9.0),
        ("rdg", &[60.0, 60.1, 60.2], 9.0),
    ]);
    let answer = Answer::from_arena(&arena, arena.scenario());
    let choice = |scheme: &str| answer.choices.iter().find(|choice| choice.scheme == scheme).unwrap();
    assert_eq!(choice("tcp-l4").not_separated_from, ["tcp-l8"]);
    assert_eq!(choice("bbr").verdict, Verdict::NotSeparated, "its interval has 2 % in it");
    assert_eq!((choice("tack").verdict, choice("rdg").verdict), (Verdict::Worth, Verdict::Nothing));
    let more = judge::not_separated(&[arena]);
    let more: Vec<&str> = more.iter().map(|(_, scheme)| scheme.name).collect();
    assert_eq!(more, ["stock", "tcp-l4", "tcp-l8", "bbr"], "those alone, beside the baseline");
}

#[test]
fn a_verdict_is_by_both_ends_of_the_interval() {
    let verdict =
        |mean: f64, half: f64| Verdict::from_lead(&Lead { least: mean - half, mean, most: mean + half });
    assert_eq!(verdict(0.05, 0.03), Verdict::Worth);
    assert_eq!(verdict(0.05, 0.04), Verdict::NotSeparated);
    assert_eq!(verdict(0.01, 0.005), Verdict::Little);
    assert_eq!(verdict(0.01, 0.009_9), Verdict::Little);
    assert_eq!(verdict(-0.03, 0.04), Verdict::Nothing);
    assert_eq!(verdict(0.0, 0.03), Verdict::NotSeparated);
    let order = |mean: f64, half: f64| Lead { least: mean - half, mean, most: mean + half }.order(0.01);
    assert_eq!(
        [order(0.05, 0.01), order(0.05, 0.06), order(0.004, 0.005)],
        [Order::Ahead, Order::Open, Order::Equal]
    );
}

/// Files of 1 MB over a slow way back: fewer ACKs make them several times as fast. They end before measuring begins, where
/// goodput says nothing.
#[test]
fn files_are_judged_by_the_time_that_they_take() {
    let question = Question {
        scenario: "lte-slow-uplink".into(),
        assignments: ["traffic.size=1 MB", "wired.up.rate=20kbps"].map(str::to_owned).to_vec(),
        clients: None,
        segments_per_ack: None,
        seeds: Some(1),
        max_seeds: Some(1),
        ..question()
    };
    let advice = advise(&question, Control::unattended()).unwrap();
    let text = advice.to_text(None);
    let first = &advice.answer.choices[advice.answer.first.unwrap_or_else(|| panic!("{text}"))];
    let time = |row: &Row| row.means.flow_completion_p50_s.unwrap();
    let gain = time(&advice.answer.today) / time(&first.row) - 1.0;
    assert!((first.row.gain_over_stock.unwrap() - gain).abs() < 1e-9 && gain > 0.5, "{text}");
    assert!(advice.answer.today.goodput_bps_mean > 0.0, "{text}");
    assert_ne!(advice.limit.by, LimitedBy::Source, "{text}");
    assert!(text.contains("Today: files take "), "{text}");
}

/// A wire of 100 Mb/s before a channel that carries 130: A-MPDUs stay short, and fill the air with their preambles.
#[test]
fn a_wire_that_is_the_limit_is_named_although_the_air_is_full() {
    let mut assignments = question().assignments;
    assignments.extend(["wired.rate=100Mbps", "wired.queue=50 packets"].map(str::to_owned));
    let question = Question { assignments, segments_per_ack: None, max_seeds: Some(3), ..question() };
    let advice = advise(&question, Control::unattended()).unwrap();
    let text = advice.to_text(None);
    assert_eq!(advice.limit.resource, Some(crate::why::Resource::Link), "{text}");
    assert!(text.contains("wired or cellular link is"), "{text}");
    assert!(advice.other_queues.iter().all(|other| other.set[0].starts_with("wired.down.queue=")), "{text}");
}

/// One radio for two links is never idle, and each link is for half of the time.
#[test]
fn one_radio_for_two_links_is_the_limit() {
    let mut assignments = question().assignments;
    assignments.extend(["wifi.link[1].mcs=2", "wifi.link[2].mcs=1"].map(str::to_owned));
    let question = Question {
        scenario: "wlan-11be-mlo-laptop".into(),
        assignments,
        segments_per_ack: None,
        clients: Some(1),
        seeds: Some(1),
        max_seeds: Some(1),
        ..question()
    };
    let advice = advise(&question, Control::unattended()).unwrap();
    let text = advice.to_text(None);
    assert_eq!(advice.limit.by, LimitedBy::Radio, "{text}");
    assert!(advice.limit.busy.is_some_and(|busy| (0.9..=1.0).contains(&busy)), "{text}");
    assert!(text.contains("The one radio that clients have for their links is the limit"), "{text}");
}

#[test]
fn a_trace_is_run_whole() {
    let question = |set: &[&str]| Question {
        scenario: "lte-synthetic".into(),
        assignments: set.iter().map(|&text| text.to_owned()).collect(),
        ..question()
    };
    let options = question(&[]).options().unwrap();
    assert!(options.assignments.contains(&"run.duration=64000 ms".to_owned()), "{:?}", options.assignments);
    let short = Question { quick: true, ..question(&[]) }.options().unwrap();
    let scenario = compare::load(&short).unwrap();
    assert!(scenario.run.duration.saturating_sub(scenario.run.measure_from) >= Duration::from_secs(60));
    let longer = question(&["run.duration=9 s"]).options().unwrap();
    assert_eq!(compare::load(&longer).unwrap().run.duration.as_millis(), 9_000, "the user has the last word");
}

/// One client of two switches to what is recommended: its gain and the other's loss stand beside the advice.
#[test]
fn a_recommendation_says_what_one_client_gains_alone() {
    let arena = arena(&[("stock", &[80.0, 80.1, 80.2], 9.0), ("tack", &[100.0, 100.1, 100.2], 9.0)]);
    let answer = Answer::from_arena(&arena, arena.scenario());
    let options = question().options().unwrap();
    let mut rounds = Rounds::new(None, Control::unattended());
    let rows = adoption(&options, (1, 2), &answer, &mut rounds).unwrap();
    let names: Vec<_> =
        rows.iter().map(|row| (row.scheme.as_str(), row.clients, row.means.adopters)).collect();
    assert_eq!(names, [("stock", 2, Some(1.0)), ("tack", 2, Some(1.0))]);
    assert!(rows[1].adopter_gain_over_stock.is_some() && rows[1].other_gain_over_stock.is_some());
}
