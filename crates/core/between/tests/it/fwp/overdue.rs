//! Holes that were left to TCP, whose retransmissions do not arrive.

use super::*;

/// The tests of overdue holes use one and a half round trips.
const HASTY: Config = Config { overdue_percent: 150, ..BY_TCP };
const ROUND_TRIP: Duration = Duration::from_millis(40);
const OVERDUE: Duration = Duration::from_millis(60);
/// If the sender does not answer.
const SILENT: Duration = Duration::from_millis(120);

impl Script {
    /// Registered; segment 0 arrived a `round_trip` after the host's ACK. The link lost a frame of another flow.
    fn after_a(round_trip: Duration, config: Config) -> Self {
        let mut script = Self::registered(Config { placeholders: Placeholders::Driver, ..config });
        script.later(round_trip);
        script.shim.link_lost(1);
        script.segments([0]);
        script
    }

    /// The host repeats its ACK of `offset`, and a `round_trip` later segment `number` answers it.
    fn answers(&mut self, offset: u64, round_trip: Duration, number: u64) {
        self.host_clock += 1;
        self.ack(offset);
        assert_eq!(self.later(round_trip), []);
        self.echo = self.host_clock;
        self.shim.link_lost(0);
        assert_eq!(self.segments([number]), [sent(number)]);
    }
}

/// Segment 1 was lost on the wire and left to TCP; segments 0 and `behind` have arrived.
fn with_a_hole_left(behind: impl IntoIterator<Item = u64>) -> Script {
    let mut script = Script::after_a(ROUND_TRIP, HASTY);
    for number in behind {
        script.shim.link_lost(0);
        assert_eq!(script.segments([number]), [sent(number)]);
    }
    assert_eq!((script.take_messages(), script.counters().congested_holes), (vec![], 1));
    script
}

#[test]
fn a_hole_left_to_tcp_is_filled_when_its_retransmission_is_overdue() {
    let mut script = with_a_hole_left([2]);
    script.answers(1000, ROUND_TRIP, 3);
    assert_eq!(script.later(OVERDUE - ROUND_TRIP - MS), [], "it may still come");
    script.now += MS;
    // New data half a round trip after the answer: by then the sender has retransmitted the segments that it knew to be
    // lost.
    assert_eq!(script.segments([4]), [sent(4)]);
    assert_eq!(script.shim.poll_timeout(), Some(script.now));
    assert_eq!(script.later(Duration::ZERO), [placed(1)]);
    assert_eq!(script.take_messages(), [hole(1, 2)], "its reader asks the server");
    assert_eq!(script.shim.poll_timeout(), None);
    let counters = script.counters();
    assert_eq!((counters.overdue_holes, counters.holes, counters.placeholders), (1, 0, 1));
    assert_eq!(script.later(MS * 1000), [], "once");
    // A later retransmission needs an ACK, and its bytes are reported.
    assert_eq!(script.segments([1, 5]), [sent(1), sent(5)]);
    assert_eq!(script.take_messages(), [Late(1000, 2000)]);
}

#[test]
fn a_retransmission_beyond_a_hole_shows_that_the_holes_own_is_lost() {
    // Holes 1 and 3.
    let mut script = with_a_hole_left([2]);
    assert_eq!(script.segments([4]), [sent(4)]);
    script.answers(1000, ROUND_TRIP, 5);
    assert_eq!(script.later(OVERDUE - ROUND_TRIP - MS), []);
    script.now += MS;
    assert_eq!(script.segments([3]), [sent(3)], "the sender begins with the lowest, and 1 did not come");
    assert_eq!(script.later(Duration::ZERO), [placed(1)]);
    // While the sender retransmits lower segments, a hole waits for its turn.
    let mut script = with_a_hole_left([2]);
    assert_eq!(script.segments([4]), [sent(4)]);
    script.answers(1000, ROUND_TRIP, 5);
    assert_eq!(script.segments([1]), [sent(1)]);
    assert_eq!(script.later(OVERDUE - MS), [], "3 may follow");
    assert_eq!(script.later(MS), [placed(3)], "silence");
}

#[test]
fn a_retransmission_in_time_leaves_nothing_to_fill() {
    let mut script = with_a_hole_left([2]);
    script.answers(1000, ROUND_TRIP, 3);
    assert_eq!(script.later(OVERDUE - ROUND_TRIP - MS), []);
    assert_eq!(script.segments([1]), [sent(1)]);
    assert_eq!(script.later(MS * 1000), []);
    assert_eq!((script.take_messages(), script.counters().overdue_holes), (vec![], 0));
}

#[test]
fn repaired_parts_of_a_hole_get_no_placeholder() {
    let mut script = with_a_hole_left([5, 6]);
    assert_eq!(script.segments([2, 4]), [sent(2), sent(4)], "two of four come again");
    assert_eq!(script.later(SILENT), [placed(1), placed(3)]);
    assert_eq!(script.take_messages(), [hole(1, 2), hole(3, 4)]);
}

#[test]
fn each_hole_has_its_own_time() {
    let mut script = with_a_hole_left([2]);
    script.answers(1000, ROUND_TRIP, 4);
    assert_eq!(script.later(OVERDUE - ROUND_TRIP), []);
    // New data overtakes the retransmission of segment 1; the sender does not know of hole 3 yet.
    assert_eq!(script.segments([5]), [sent(5)]);
    assert_eq!(script.later(Duration::ZERO), [placed(1)]);
    assert_eq!(script.later(SILENT - MS), []);
    assert_eq!(script.later(MS), [placed(3)]);
    assert_eq!(script.take_messages(), [hole(1, 2), hole(3, 4)]);
}

#[test]
fn overdue_is_one_and_a_half_of_the_round_trips_that_the_flow_has() {
    let mut script = Script::after_a(MS * 100, HASTY);
    assert_eq!(script.segments([2]), [sent(2)]);
    script.answers(1000, MS * 100, 3);
    assert_eq!(script.later(MS * 50 - MS), []);
    assert_eq!(
        script.segments([4]),
        [sent(4)],
        "too early to fill, and half a round trip needs a millisecond more"
    );
    script.now += MS;
    assert_eq!(script.segments([5]), [sent(5)]);
    assert_eq!(script.later(Duration::ZERO), [placed(1)]);
}

/// The ACK of a placeholder that echoes a segment from before the retransmission would mean that nothing was lost (RFC
/// 3522).
#[test]
fn an_overdue_hole_waits_for_the_answer_to_its_duplicate_acks() {
    // New data this soon after the first answer may have been sent before the sender declared the hole lost.
    let mut script = with_a_hole_left([2]);
    script.answers(1000, MS * 80, 3);
    assert_eq!(script.segments([4]), [sent(4)]);
    assert_eq!(script.later(MS * 22), [], "half of the smoothed round trip of 45 ms");
    script.now += MS;
    assert_eq!(script.segments([5]), [sent(5)]);
    assert_eq!(script.later(Duration::ZERO), [placed(1)]);
    // Segments that were sent before the sender knew of the hole are no answer.
    let mut script = with_a_hole_left([2, 3, 4, 5]);
    assert_eq!(script.later(SILENT - MS), []);
    assert_eq!(script.later(MS), [placed(1)], "the sender is silent and waits for a timer");
    // Without timestamps there is neither such an answer nor such a misinterpretation.
    let mut script = Script::after_a(ROUND_TRIP, HASTY);
    script.clock = None;
    script.ack(1000);
    script.segments([2]);
    assert_eq!(script.later(OVERDUE - MS), []);
    assert_eq!(script.later(MS), [placed(1)]);
}

#[test]
fn while_32_kib_of_overdue_holes_wait_for_repair_no_timer_runs_for_others() {
    let mut script = Script::after_a(ROUND_TRIP, HASTY);
    let (first, second) = (1_000 + (32 << 10), 40_000);
    for behind in [first, second] {
        script.shim.link_lost(0);
        script.data(behind, MSS);
    }
    script.later(SILENT);
    assert_eq!(script.counters().overdue_holes, 1);
    assert_eq!(script.shim.poll_timeout(), None);
    assert_eq!(script.take_messages(), [Hole(1_000, first)]);
    script.shim.repaired(script.key(), 1_000, first);
    script.later(MS);
    assert_eq!(script.take_messages(), [Hole(first + u64::from(MSS), second)]);
}

#[test]
fn a_late_placeholder_is_as_new_as_the_last_segment_that_the_host_took() {
    let mut script = with_a_hole_left([2, 3, 4]);
    let newest = script.clock.unwrap() - 1;
    script.now += SILENT;
    script.shim.handle_timeout(script.now, &mut script.reader);
    let packet = script.shim.poll_down().unwrap();
    let Transport::Tcp(segment) = packet.transport else { panic!("TCP") };
    // Older timestamps would be dropped as old duplicates (PAWS, RFC 7323 section 5.3).
    assert_eq!(segment.timestamps, Some(Timestamps { value: newest, echo_reply: 5 }));
    assert!(segment.placeholder && segment.flags == Flags::ACK && segment.window == 99);
}

#[test]
fn an_overdue_hole_stays_with_tcp_where_nothing_may_stand_in_it() {
    let not_filled = |script: &mut Script| {
        assert_eq!(script.later(SILENT), []);
        assert_eq!((script.take_messages(), script.counters().overdue_holes), (vec![], 0));
    };
    // The reader has stopped, cannot be informed, or is gone.
    let mut script = with_a_hole_left([2]);
    script.shim.stop(script.key());
    not_filled(&mut script);
    let mut script = with_a_hole_left([2]);
    script.reader.deaf = true;
    not_filled(&mut script);
    let mut script = with_a_hole_left([2]);
    script.shim.unregister(script.key());
    not_filled(&mut script);
    // The head of an answer is not allowed to contain placeholders.
    let mut script = Script::new(Config { placeholders: Placeholders::Driver, ..Config::USUAL });
    script.shim.register(script.key(), [7; 16]).unwrap();
    script.shim.allow(script.key(), 2000, u64::MAX);
    script.ack(0);
    script.later(ROUND_TRIP);
    script.shim.link_lost(1);
    script.segments([0]);
    script.shim.link_lost(0);
    script.segments([2]);
    not_filled(&mut script);
    // Never filled, if configured so.
    let mut script = Script::after_a(ROUND_TRIP, Config { overdue_percent: 0, ..Config::USUAL });
    script.segments([2]);
    assert_eq!(script.shim.poll_timeout(), None);
    not_filled(&mut script);
}

#[test]
fn a_link_that_loses_nothing_lost_no_retransmission_either() {
    let mut script = Script::registered(Config::USUAL);
    script.shim.link_lost(0);
    script.segments([0, 2]);
    assert_eq!(script.later(MS * 1000), []);
    let mut script = Script::registered(expecting(0));
    script.segments([0, 2]);
    assert_eq!(script.later(MS * 1000), []);
    assert_eq!(script.counters().congested_holes, 1);
}

#[test]
fn holes_left_to_tcp_are_filled_once_tcp_has_seen_them() {
    let mut script = Script::registered(Config { margin_tenths: 0, ..HASTY });
    script.later(ROUND_TRIP);
    script.segments((0..20).filter(|number| number % 5 != 1));
    script.now += ROUND_TRIP;
    script.segments([20, 22]);
    script.take_messages();
    assert_eq!(script.counters().congested_holes, 1);
    assert_eq!(script.later(SILENT), [placed(21)]);
    assert_eq!(script.take_messages(), [hole(21, 22)]);
}

#[test]
fn data_behind_an_overdue_hole_goes_on_with_it() {
    let mut script = Script::after_a(ROUND_TRIP, Config { settle: MS * 50, ..HASTY });
    script.shim.link_lost(0);
    assert_eq!(script.segments([2]), []);
    assert_eq!(script.later(MS * 50), [sent(2)], "1 is congestion's");
    assert_eq!(script.later(SILENT), [placed(1)]);
    assert_eq!(script.segments([3]), [sent(3)]);
}
