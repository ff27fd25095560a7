//! Golden vectors: the core's outputs, step by step, on simple paths. They are stored in `vectors/rre/*.txt` for
//! implementations in other languages; `TACIT_WRITE_VECTORS=1` writes them.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::{env, fs};

use tacit_congestion::rre::{Core, Parameters, State, Trust};

use crate::event::{Event, FORMAT};
use crate::path::{BEGIN_US, MSS, Path, Run, World};

const SECOND_US: u64 = 1_000_000;

/// A file of vectors and its check: the file alone would only repeat the core's output, including its errors.
struct Vector {
    name: &'static str,
    about: &'static str,
    path: Path,
    holds: fn(&Run),
}

fn mbps(rate: f64) -> u64 {
    (rate * 125_000.0) as u64
}

/// Payload delivered between the two times, relative to the maximum at `rate`.
fn share(run: &Run, rate: u64, from_us: u64, to_us: u64) -> f64 {
    let by = |at_us: u64| {
        run.steps.iter().rev().find(|step| step.at_us < BEGIN_US + at_us).map_or(0, |step| step.delivered)
    };
    let could = rate as f64 * (to_us - from_us) as f64 / 1e6 * MSS as f64 / 1_500.0;
    (by(to_us) - by(from_us)) as f64 / could
}

/// The final receive rate relative to `rate`, in hundredths.
fn found(run: &Run, rate: u64) -> u64 {
    run.steps[run.steps.len() - 1].core.receive_rate() * 100 / rate
}

fn states(run: &Run) -> BTreeSet<&'static str> {
    run.steps.iter().map(|step| step.core.state().name()).collect()
}

/// The 95th percentile of the core's estimate of the buffer delay, from `from_us` on.
fn queue_p95_us(run: &Run, from_us: u64) -> u64 {
    let mut waits: Vec<_> =
        run.steps.iter().filter(|step| step.at_us >= BEGIN_US + from_us).map(|step| step.queue_us).collect();
    waits.sort_unstable();
    waits[waits.len() * 95 / 100]
}

fn trusts(run: &Run, tick_us: u32) {
    assert_eq!(run.steps[run.steps.len() - 1].core.clock(), (Trust::Trusted, tick_us));
}

/// At 2 Mb/s from the start: the rate is found, and the buffer delay remains short.
fn starts(run: &Run, tick_us: u32) {
    trusts(run, tick_us);
    let found = found(run, mbps(2.0));
    assert!((85..=110).contains(&found), "{found} % of the rate was found");
    let (used, waits_us) =
        (share(run, mbps(2.0), 2 * SECOND_US, 5 * SECOND_US), queue_p95_us(run, 2 * SECOND_US));
    assert!(used > 0.9, "{used} used");
    assert!(waits_us < 150_000, "{waits_us} us of queue");
}

fn with_tick(tick_us: u64) -> Path {
    Path { tick_us, first_value: u32::MAX - (2 * SECOND_US / tick_us) as u32, ..Path::new(mbps(2.0)) }
}

/// A queueing delay of ACKs that grows to 3 s and then ends.
fn slow_acks(since_us: u64) -> u64 {
    match since_us {
        0..1_000_000 => 0,
        1_000_000..5_000_000 => (since_us - SECOND_US) * 3 / 4,
        _ => 3_000_000,
    }
}

fn vectors() -> Vec<Vector> {
    let mut vectors = starting();
    vectors.extend(changing());
    vectors.extend(losing());
    vectors.extend(crowded());
    vectors.extend(deceiving());
    vectors
}

fn starting() -> Vec<Vector> {
    vec![
        Vector {
            name: "start-1ms",
            about: "Start and steady state: 2 Mb/s, 40 ms, a receiver whose clock ticks each millisecond and wraps.",
            path: with_tick(1_000),
            holds: |run| starts(run, 1_000),
        },
        Vector {
            name: "start-2ms",
            about: "Start and steady state with ticks of 2 ms.",
            path: with_tick(2_000),
            holds: |run| starts(run, 2_000),
        },
        Vector {
            name: "start-4ms",
            about: "Start and steady state with ticks of 4 ms.",
            path: with_tick(4_000),
            holds: |run| starts(run, 4_000),
        },
        Vector {
            name: "start-10ms",
            about: "Start and steady state with ticks of 10 ms.",
            path: with_tick(10_000),
            holds: |run| starts(run, 10_000),
        },
        Vector {
            name: "start-100ms",
            about: "Start and steady state with ticks of 100 ms.",
            path: Path { duration_us: 8 * SECOND_US, ..with_tick(100_000) },
            holds: |run| {
                trusts(run, 100_000);
                let used = share(run, mbps(2.0), 4 * SECOND_US, 8 * SECOND_US);
                assert!(used > 0.8, "{used} used");
            },
        },
        Vector {
            name: "target",
            about: "A buffer delay of 20 ms is asked for, at 2 Mb/s.",
            path: Path { target_us: 20_000, ..Path::new(mbps(2.0)) },
            holds: |run| {
                let (used, waits_us) =
                    (share(run, mbps(2.0), SECOND_US, 5 * SECOND_US), queue_p95_us(run, SECOND_US));
                assert!(used > 0.9 && waits_us < 60_000, "{used} used, {waits_us} us of queue");
            },
        },
        Vector {
            name: "long-path",
            about: "1 Mb/s, 600 ms.",
            path: Path { delay_us: 300_000, duration_us: 15 * SECOND_US, ..Path::new(mbps(1.0)) },
            holds: |run| {
                let used = share(run, mbps(1.0), 5 * SECOND_US, 15 * SECOND_US);
                assert!(used > 0.85, "{used} used");
            },
        },
        Vector {
            name: "thinned",
            about: "The way back passes the newest ACK each 100 ms and no other, at 2 Mb/s.",
            path: Path { ack_turn_us: 100_000, duration_us: 8 * SECOND_US, ..Path::new(mbps(2.0)) },
            holds: |run| {
                let used = share(run, mbps(2.0), 2 * SECOND_US, 8 * SECOND_US);
                assert!(used > 0.9, "{used} used");
            },
        },
    ]
}

fn changing() -> Vec<Vector> {
    vec![
        Vector {
            name: "rate-falls",
            about: "4 Mb/s become 0.4 after 2 s.",
            path: Path {
                rates: vec![(0, mbps(4.0)), (2 * SECOND_US, mbps(0.4))],
                duration_us: 12 * SECOND_US,
                ..Path::new(0)
            },
            holds: |run| {
                let found = found(run, mbps(0.4));
                assert!((70..=130).contains(&found), "{found} % of the rate was found");
                assert!(queue_p95_us(run, 8 * SECOND_US) < 200_000, "{}", queue_p95_us(run, 8 * SECOND_US));
            },
        },
        Vector {
            name: "rate-rises",
            about: "0.4 Mb/s become 4 after 4 s.",
            path: Path {
                rates: vec![(0, mbps(0.4)), (4 * SECOND_US, mbps(4.0))],
                duration_us: 10 * SECOND_US,
                ..Path::new(0)
            },
            holds: |run| {
                let used = share(run, mbps(4.0), 8 * SECOND_US, 10 * SECOND_US);
                assert!(used > 0.85, "{used} used 4 s after the rise");
            },
        },
        Vector {
            name: "acks-wait",
            about: "On the way of the ACKs a queue grows from nothing to 3 s, at 1 Mb/s.",
            path: Path { ack_queue_us: slow_acks, duration_us: 12 * SECOND_US, ..Path::new(mbps(1.0)) },
            holds: |run| {
                let used = share(run, mbps(1.0), 8 * SECOND_US, 12 * SECOND_US);
                assert!(used > 0.85, "{used} used behind 3 s of ACKs");
                let waits_us = queue_p95_us(run, 4 * SECOND_US);
                assert!(waits_us < 600_000, "{waits_us} us of queue while a change takes 3 s to be seen");
            },
        },
        Vector {
            name: "idle",
            about: "Nothing to send from 2 s to 4 s, at 2 Mb/s.",
            path: Path {
                has_data: |since_us| !(2 * SECOND_US..4 * SECOND_US).contains(&since_us),
                duration_us: 6 * SECOND_US,
                ..Path::new(mbps(2.0))
            },
            holds: |run| {
                assert!(run.steps.iter().any(|step| matches!(step.event, Event::TransmitStart(_))));
                let used = share(run, mbps(2.0), 4 * SECOND_US + 200_000, 6 * SECOND_US);
                assert!(used > 0.9, "{used} used after the pause");
                assert_eq!(run.timeouts, 0);
            },
        },
        Vector {
            name: "stale",
            about: "0.5 Mb/s for 14 s: the smallest delay is looked for anew.",
            path: Path { duration_us: 14 * SECOND_US, ..Path::new(mbps(0.5)) },
            holds: |run| assert!(share(run, mbps(0.5), 2 * SECOND_US, 14 * SECOND_US) > 0.9),
        },
    ]
}

fn losing() -> Vec<Vector> {
    vec![
        Vector {
            name: "short-buffer",
            about: "2 Mb/s with a buffer of ten packets, 60 ms.",
            path: Path { queue: 15_000, ..Path::new(mbps(2.0)) },
            holds: |run| {
                assert!(run.steps.iter().any(|step| matches!(step.event, Event::Ack(ack) if ack.lost > 0)));
                let used = share(run, mbps(2.0), SECOND_US, 5 * SECOND_US);
                assert!(used > 0.85, "{used} used");
            },
        },
        Vector {
            name: "random-loss",
            about: "One transmission of 50 is lost where no buffer is in use, at 2 Mb/s.",
            path: Path { lose: |order| order % 50 == 49, ..Path::new(mbps(2.0)) },
            holds: |run| {
                let used = share(run, mbps(2.0), SECOND_US, 5 * SECOND_US);
                assert!(used > 0.85, "{used} used");
            },
        },
        Vector {
            name: "outage",
            about: "Nothing passes from 2 s to 5 s: timeouts and silence, then 2 Mb/s again.",
            path: Path {
                rates: vec![(0, mbps(2.0)), (2 * SECOND_US, 0), (5 * SECOND_US, mbps(2.0))],
                duration_us: 13 * SECOND_US,
                ..Path::new(0)
            },
            holds: |run| {
                assert!(run.timeouts > 0);
                assert!(run.steps.iter().any(|step| matches!(step.event, Event::Silence(_))));
                let used = share(run, mbps(2.0), 11 * SECOND_US, 13 * SECOND_US);
                assert!(used > 0.9, "{used} used 6 s after the outage");
            },
        },
        Vector {
            name: "undo",
            about: "All ACKs wait 800 ms longer from 2 s on: the timeout is needless, and undone.",
            path: Path {
                ack_queue_us: |since_us| if since_us < 2 * SECOND_US { 0 } else { 800_000 },
                ..Path::new(mbps(1.0))
            },
            holds: |run| {
                let undone =
                    run.steps.iter().find(|step| matches!(step.event, Event::Undo(_))).expect("undone");
                assert!(undone.core.window() > MSS);
                let used = share(run, mbps(1.0), 4 * SECOND_US, 5 * SECOND_US);
                assert!(used > 0.75, "{used} used after it");
            },
        },
        Vector {
            name: "first-train-lost",
            about: "The first ten packets are lost, at 1 Mb/s.",
            path: Path { lose: |order| order < 10, duration_us: 8 * SECOND_US, ..Path::new(mbps(1.0)) },
            holds: |run| {
                let used = share(run, mbps(1.0), 6 * SECOND_US, 8 * SECOND_US);
                assert!(used > 0.85, "{used} used after 6 s");
            },
        },
    ]
}

fn crowded() -> Vec<Vector> {
    vec![
        Vector {
            name: "others-fill",
            about: "From 2 s to 20 s others keep 30 to 45 packets waiting, in a saw of 5 s, at 2 Mb/s: the sender competes, and stops.",
            path: Path {
                duration_us: 30 * SECOND_US,
                queue: 60 * 1_500,
                others: |since_us| match since_us / SECOND_US {
                    2..20 => 45_000 + since_us % (5 * SECOND_US) * 22_500 / (5 * SECOND_US),
                    _ => 0,
                },
                ..Path::new(mbps(2.0))
            },
            holds: |run| {
                let state_at = |at_us: u64| {
                    let step = run.steps.iter().take_while(|step| step.at_us - BEGIN_US < at_us).last();
                    step.expect("it has begun").core.state()
                };
                assert!(states(run).contains("compete"));
                assert!(matches!(state_at(19 * SECOND_US), State::Compete | State::Refresh));
                // Other flows take all the room in the queue.
                let kept = share(run, mbps(2.0), 14 * SECOND_US, 20 * SECOND_US);
                assert!(kept > 0.2, "{kept} kept");
                assert!(!matches!(state_at(29 * SECOND_US), State::Compete));
                let (used, waits_us) = (
                    share(run, mbps(2.0), 24 * SECOND_US, 30 * SECOND_US),
                    queue_p95_us(run, 24 * SECOND_US),
                );
                assert!(used > 0.9 && waits_us < 100_000, "{used} used, {waits_us} us of queue");
            },
        },
        Vector {
            name: "path-longer",
            about: "From 3 s on the path is 100 ms longer, at 2 Mb/s: that is no queue, and no flow competes.",
            path: Path {
                duration_us: 40 * SECOND_US,
                more_delay_us: |since_us| if since_us < 3 * SECOND_US { 0 } else { 100_000 },
                ..Path::new(mbps(2.0))
            },
            holds: |run| {
                let used = share(run, mbps(2.0), 30 * SECOND_US, 40 * SECOND_US);
                assert!(used > 0.85, "{used} used");
                assert!(queue_p95_us(run, 30 * SECOND_US) < 150_000);
            },
        },
    ]
}

/// From 6 s to 10 s a fair part of 1 Mb/s is used, with any clock, and the queue is bounded.
fn keeps_sending(run: &Run) {
    let used = share(run, mbps(1.0), 6 * SECOND_US, 10 * SECOND_US);
    assert!(used > 0.5, "{used} used");
    assert!(run.longest_queue_us < 2_000_000, "{} us of queue", run.longest_queue_us);
}

fn deceiving() -> Vec<Vector> {
    let path = || Path { duration_us: 10 * SECOND_US, ..Path::new(mbps(1.0)) };
    let after = |change: fn(u64) -> Option<u64>| Path { clock_us: change, ..path() };
    const CHANGE_US: u64 = BEGIN_US + 2 * SECOND_US;
    vec![
        Vector {
            name: "clock-back",
            about: "The receiver's clock steps back by an hour after 2 s, at 1 Mb/s.",
            path: after(|at| Some(at + if at < CHANGE_US { 3_600 * SECOND_US } else { 0 })),
            holds: keeps_sending,
        },
        Vector {
            name: "clock-ahead",
            about: "The receiver's clock steps ahead by a second after 2 s, at 1 Mb/s.",
            path: after(|at| Some(at + if at < CHANGE_US { 0 } else { SECOND_US })),
            holds: keeps_sending,
        },
        Vector {
            name: "clock-stops",
            about: "The receiver's clock stops after 2 s, at 1 Mb/s.",
            path: after(|at| Some(at.min(CHANGE_US))),
            holds: keeps_sending,
        },
        Vector {
            name: "clock-slow",
            about: "The receiver's clock goes at half the speed after 2 s, at 1 Mb/s.",
            path: after(|at| Some(at.min(CHANGE_US) + at.saturating_sub(CHANGE_US) / 2)),
            holds: keeps_sending,
        },
        Vector {
            name: "clock-fast",
            about: "The receiver's clock goes at twice the speed after 2 s, at 1 Mb/s: half seems to arrive, and less is sent.",
            path: after(|at| Some(at + at.saturating_sub(CHANGE_US))),
            holds: |run| {
                // Two segments per 100 ms are always sent: 0.23 of the rate.
                let used = share(run, mbps(1.0), 3 * SECOND_US, 10 * SECOND_US);
                assert!(used > 0.2, "{used} used");
            },
        },
        Vector {
            name: "timestamps-vanish",
            about: "After 2 s ACKs have no timestamps any more, at 1 Mb/s.",
            path: after(|at| Some(at).filter(|at| *at < CHANGE_US)),
            holds: |run| {
                keeps_sending(run);
                let (trust, _) = run.steps[run.steps.len() - 1].core.clock();
                assert_eq!(trust, Trust::Refused);
            },
        },
        Vector {
            name: "no-timestamps",
            about: "No ACK has timestamps, at 1 Mb/s.",
            path: after(|_| None),
            holds: keeps_sending,
        },
    ]
}

fn directory() -> PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../vectors/rre")
}

fn text(vector: &Vector, run: &Run) -> String {
    let lines = run.steps.iter().map(|step| step.event.line(&step.core) + "\n");
    format!("# {}\n{FORMAT}{}", vector.about, lines.collect::<String>())
}

#[test]
fn each_path_leaves_its_vector() {
    let mut names = BTreeSet::new();
    let mut wrong = Vec::new();
    for vector in vectors() {
        let run = World::run(vector.path.clone());
        let (text, file) = (text(&vector, &run), directory().join(vector.name).with_extension("txt"));
        names.insert(format!("{}.txt", vector.name));
        if env::var_os("TACIT_WRITE_VECTORS").is_some() {
            fs::write(&file, &text).expect("the vector is written");
        }
        let kept = fs::read_to_string(&file).unwrap_or_default();
        if let Some((number, (is, was))) =
            (1..).zip(text.lines().zip(kept.lines())).find(|(_, (is, was))| is != was)
        {
            wrong.push(format!("{}, line {number}:\n  is  {is}\n  was {was}", vector.name));
        } else if text != kept {
            wrong.push(format!("{}: of another length", vector.name));
        }
    }
    let files = fs::read_dir(directory()).expect("the directory of vectors");
    let files = files.map(|file| file.expect("a file").file_name().to_string_lossy().into_owned());
    let kept: BTreeSet<String> = files.filter(|name| name.ends_with(".txt")).collect();
    assert_eq!(kept, names, "each file has its path, and each path its file");
    let how = "TACIT_WRITE_VECTORS=1 cargo test -p tacit-congestion --test rre writes them";
    assert!(wrong.is_empty(), "{}\n{how}", wrong.join("\n"));
}

/// A program that reads only the files can do the same check.
#[test]
fn the_text_says_all() {
    for file in fs::read_dir(directory()).expect("the directory of vectors") {
        let file = file.expect("a file").path();
        if file.extension().is_none_or(|extension| extension != "txt") {
            continue;
        }
        let text = fs::read_to_string(&file).expect("a text");
        let mut core = Core::new(Parameters::default(), 0);
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let event = Event::parse(line).unwrap_or_else(|| panic!("{}: {line}", file.display()));
            event.happen(&mut core);
            assert_eq!(event.line(&core), line, "{}", file.display());
        }
    }
}

#[test]
fn the_vectors_show_what_they_are_for() {
    let mut seen = BTreeSet::new();
    let mut wrong = Vec::new();
    for vector in vectors() {
        let run = World::run(vector.path.clone());
        seen.extend(states(&run));
        let held = std::panic::catch_unwind(|| (vector.holds)(&run));
        if let Err(panic) = held {
            wrong.push(format!("{}: {:?}", vector.name, panic.downcast_ref::<String>()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(seen.len(), State::ALL.len(), "only {seen:?}");
}

/// The sending rate is at most twice the receive rate, except for the minimum of two segments per round trip.
#[test]
fn no_path_sees_a_burst() {
    for vector in vectors() {
        for step in World::run(vector.path.clone()).steps {
            let core = &step.core;
            if core.state() != State::Start && core.receive_rate() > 0 {
                let most = (2 * core.receive_rate()).max(2 * MSS * SECOND_US / 100_000);
                assert!(core.rate() <= most, "{} at {}: {core:?}", vector.name, step.at_us);
            }
        }
    }
}
