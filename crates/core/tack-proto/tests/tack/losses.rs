//! Packet scripts of the law of losses: with and without a queue, packets that overtake each other, another path, reports that
//! are lost.

use tacit_congestion::{Algorithm, Pacing};
use tacit_packet::tack::packet::Body;
use tacit_tack_proto::{AckClock, Config};

use crate::lines::Lines;
use crate::script::{Script, at_ms, steady};

/// A receiver by the paper's clock past its start-up on a path of 80 ms: data up to number 2 arrived, 5 ms after it left, and
/// its TACK left at 40 ms.
fn receiver() -> Lines {
    let mut script = Script::established(Config { ack_clock: AckClock::PAPER, ..Config::default() });
    script.data(at_ms(20), 2, 0, steady(80));
    assert_eq!(script.takes(at_ms(40)).len(), 1);
    Lines::new(script, at_ms(40))
}

/// 4 of 44 packets are lost, and none of those that come waited.
#[test]
fn losses_without_a_queue_are_told_as_the_paths_own() {
    receiver().run(
        "+1  < 3-22
         +1  < 25-44
         +0  > iack 22..25
         +1  < 47
         +4  > tack cum 23 missing 23-24,45-46 base 22",
    );
}

/// The same of packets that waited for 10 ms, beside some that did not.
#[test]
fn losses_in_a_queue_are_not() {
    receiver().run(
        "+1  < 3-22 owd 15
         +1  < 25-44 owd 15
         +0  > iack 22..25
         +1  < 47 owd 15
         +4  > tack cum 23 missing 23-24,45-46 base 0",
    );
}

/// The first hole counts as lost at once, and its packet comes 8 ms later: others wait for 10 ms.
#[test]
fn packets_that_overtake_each_other_are_waited_for() {
    receiver().run(
        "+1  < 3-40
         +1  < 42
         +0  > iack 40..42
         +8  < 41 owd 13
         +2  < 44
         +5  < 43 owd 10
         +0  < 46
         +3  > tack cum 45 missing none base 0
         +7  > iack 44..46",
    );
}

/// A packet each millisecond; each tenth is late by 150 ms, longer than any hole settles: 1443 bytes in a millisecond
/// arrive.
#[test]
fn packets_that_were_reported_missing_are_of_the_rate_that_arrives() {
    let mut script = Script::established(Config { ack_clock: AckClock::PAPER, ..Config::default() });
    script.data(at_ms(20), 2, 0, steady(20));
    let mut rates = Vec::new();
    for step in 0..400u32 {
        let number = match (3 + step) % 10 {
            3 => (3 + step).checked_sub(150),
            _ => Some(3 + step),
        };
        let now = at_ms(30 + u64::from(step));
        if let Some(number) = number {
            script.data(now, number, number - 2, None);
        }
        let announced = script.takes(now).into_iter().filter_map(|body| match body {
            Body::Tack(tack) if step >= 200 => Some(tack.rate_kbps),
            _ => None,
        });
        rates.extend(announced);
    }
    assert!(rates.len() > 10 && rates.iter().all(|rate| *rate == 11_544), "{rates:?}");
}

/// A sender with CUBIC's window that heeds marks, on a path of 20 ms.
fn sender(algorithm: Algorithm) -> Lines {
    let mut config = Config { ecn: true, ..Config::default() };
    config.congestion.algorithm = algorithm;
    config.congestion.pacing = Pacing::Off;
    Lines::new(Script::established(config), at_ms(10))
}

/// The IACK that first reported the hole was lost: the TACK reports it, and those behind it cause no second repair.
#[test]
fn a_hole_of_which_the_first_report_was_lost_is_repaired_once() {
    sender(Algorithm::CUBIC).run(
        "+0  write 10
         +0  > data 1-10
         +20 < tack cum 3 missing 3 acked 4-10 got 9
         +0  > data 11
         +1  < tack cum 3 missing 3 acked 4-10 got 9
         +9  silence
         +10 < tack cum 12 got 10
         +9  silence",
    );
}

/// One mark halves nothing twice: it is counted from the first TACK of a path on.
#[test]
fn marks_of_the_path_before_say_nothing_of_the_next() {
    let window = |text: &str| {
        let mut lines = sender(Algorithm::CUBIC);
        lines.run("+0 write 10\n+0 > data 1-10");
        lines.run_open(text);
        lines.script.end.stats().cwnd
    };
    let marked = window("+20 < tack cum 11 got 10 ce 4");
    let unmarked = window("+20 < tack cum 11 got 10");
    let moved = window("+20 path\n+0 < tack cum 11 got 10 ce 4");
    let moved_unmarked = window("+20 path\n+0 < tack cum 11 got 10");
    assert!(marked < unmarked, "{marked:?} {unmarked:?}");
    assert_eq!(moved, moved_unmarked);
}
