//! Repair with explicit examples, and compared with a model of one flag per byte.

use proptest::prelude::*;

use super::*;

const START: Instant = Instant::ZERO;

fn range(start: u64, end: u64) -> Range {
    Range::new(start, end).unwrap()
}

fn at(millis: u64) -> Instant {
    START + Duration::from_millis(millis)
}

fn small() -> Config {
    Config {
        parallel_max: 2,
        request_max: 40,
        gap_max: 2,
        gap_busy_max: 10,
        deadline: Duration::from_millis(1000),
        answer_timeout: Duration::from_millis(100),
        attempts_max: 3,
        retry_wait: Duration::from_millis(10),
        held_max: 100,
        holes_max: 50,
    }
}

fn repair() -> Repair {
    Repair::new(small(), range(0, 200))
}

fn asked(repair: &mut Repair, now: Instant) -> (RequestId, Range) {
    let request = repair.poll_request(now).expect("a request");
    (request.id, request.range)
}

#[test]
fn bytes_behind_a_hole_wait_for_it() {
    let mut repair = repair();
    repair.hole(START, range(10, 20));
    repair.arrived(START, 30);
    assert_eq!(repair.poll_release(START, 4), Some(range(0, 4)));
    assert_eq!(repair.poll_release(START, 100), Some(range(4, 10)));
    assert_eq!(repair.poll_release(START, 100), None);
    let (id, hole) = asked(&mut repair, START);
    assert_eq!(hole, range(10, 20));
    assert!(repair.answered(at(5), id, range(10, 15)));
    assert_eq!(repair.poll_release(at(5), 100), Some(range(10, 15)));
    assert!(!repair.answered(at(9), id, range(15, 20)));
    assert_eq!(repair.poll_release(at(9), 100), Some(range(15, 30)));
    assert_eq!(repair.poll_cancel(), None);
    let counters = repair.counters();
    assert_eq!((counters.holes, counters.hole_bytes, counters.repaired_bytes), (1, 10, 10));
    assert_eq!(counters.blocked_total, Duration::from_millis(9));
}

#[test]
fn close_holes_go_into_one_request_and_more_so_while_requests_are_scarce() {
    let mut repair = repair();
    for start in [10, 16, 24, 32] {
        repair.hole(START, range(start, start + 4));
    }
    // Four holes wait for two requests, so gaps of four bytes are worth including.
    assert_eq!(asked(&mut repair, START).1, range(10, 36));
    let mut repair = self::repair();
    repair.hole(START, range(10, 14));
    repair.hole(START, range(16, 20));
    repair.hole(START, range(26, 30));
    assert_eq!(asked(&mut repair, START).1, range(10, 30));
    let mut repair = self::repair();
    repair.hole(START, range(16, 20));
    repair.hole(START, range(26, 30));
    assert_eq!(asked(&mut repair, START).1, range(16, 20));
    assert_eq!(asked(&mut repair, START).1, range(26, 30));
    assert_eq!(repair.poll_request(START), None);
}

#[test]
fn a_long_hole_is_cut_and_no_more_requests_run_than_allowed() {
    let mut repair = repair();
    repair.hole(START, range(0, 100));
    let (first, cut) = asked(&mut repair, START);
    assert_eq!(cut, range(0, 40));
    assert_eq!(asked(&mut repair, START).1, range(40, 80));
    assert_eq!(repair.poll_request(START), None);
    assert!(!repair.answered(START, first, range(0, 40)));
    assert_eq!(asked(&mut repair, START).1, range(80, 100));
}

#[test]
fn holes_beyond_the_room_are_not_asked_for_yet() {
    let mut repair = repair();
    repair.hole(START, range(90, 130));
    assert_eq!(asked(&mut repair, START).1, range(90, 100));
    assert_eq!(repair.poll_request(START), None);
    repair.arrived(START, 100);
    assert_eq!(repair.room(), 0);
    repair.poll_release(START, 50);
    assert_eq!(repair.room(), 50);
    assert_eq!(asked(&mut repair, START).1, range(100, 130));
}

#[test]
fn a_short_answer_is_asked_for_again_at_once_and_a_failed_one_after_a_wait() {
    let mut repair = repair();
    repair.hole(START, range(10, 20));
    let (id, _) = asked(&mut repair, START);
    repair.answered(START, id, range(10, 13));
    repair.ended(START, id);
    let (id, rest) = asked(&mut repair, START);
    assert_eq!(rest, range(13, 20));
    repair.failed(START, id);
    assert_eq!(repair.poll_request(START), None);
    // The second attempt waits twice as long as the first one.
    assert_eq!(repair.poll_timeout(), Some(at(20)));
    let (id, rest) = asked(&mut repair, at(20));
    assert_eq!(rest, range(13, 20));
    repair.answered(at(20), id, rest);
    repair.ended(at(20), id);
    let counters = repair.counters();
    assert_eq!((counters.requests, counters.requests_short), (3, 2), "the last one was whole");
}

#[test]
fn attempts_are_counted_and_end_it() {
    let mut repair = repair();
    repair.hole(START, range(10, 20));
    repair.arrived(START, 40);
    for _ in 0..3 {
        let (id, _) = asked(&mut repair, START);
        repair.ended(START, id);
    }
    assert_eq!(repair.failure(), Some(Failure::Attempts(10)));
    assert_eq!(repair.poll_release(START, 100), None);
    assert_eq!(repair.poll_request(START), None);
    assert_eq!(repair.poll_timeout(), None);
}

#[test]
fn a_hole_that_stays_open_ends_it() {
    let mut repair = repair();
    repair.hole(START, range(10, 20));
    let (id, _) = asked(&mut repair, at(1));
    for millis in (50..1000).step_by(50) {
        // Bytes that were already there show that the connection works, but are not the answer.
        repair.answered(at(millis), id, range(20, 21));
        repair.handle_timeout(at(millis));
        assert_eq!(repair.failure(), None, "after {millis} ms");
    }
    repair.handle_timeout(at(1001));
    assert_eq!(repair.failure(), Some(Failure::Deadline(10)));
}

#[test]
fn a_request_that_goes_quiet_is_given_up() {
    let mut repair = repair();
    repair.hole(START, range(10, 20));
    let (id, _) = asked(&mut repair, START);
    assert_eq!(repair.poll_timeout(), Some(at(100)));
    repair.answered(at(60), id, range(10, 12));
    repair.handle_timeout(at(100));
    assert_eq!(repair.poll_cancel(), None);
    repair.handle_timeout(at(160));
    assert_eq!(repair.poll_cancel(), Some(id));
    assert!(!repair.answered(at(161), id, range(12, 15)), "no request waits for its answer");
    assert_eq!(asked(&mut repair, at(170)).1, range(15, 20), "the bytes of its answer are there");
    assert!(!repair.answered(at(171), id, range(15, 20)));
    assert!(!repair.is_missing(15) && repair.poll_cancel().is_some(), "and needs no second answer");
}

#[test]
fn a_late_original_cancels_the_request_for_it() {
    let mut repair = repair();
    repair.hole(START, range(10, 20));
    let (id, _) = asked(&mut repair, START);
    repair.late(START, range(5, 20));
    assert_eq!(repair.poll_cancel(), Some(id));
    assert_eq!(repair.counters().late_bytes, 10);
    assert!(!repair.answered(START, id, range(10, 20)));
    assert_eq!(repair.counters().repaired_bytes, 0);
    repair.arrived(START, 20);
    assert_eq!(repair.poll_release(START, 100), Some(range(0, 20)));
}

#[test]
fn a_late_piece_from_the_middle_leaves_both_sides_asked_for() {
    let mut repair = repair();
    repair.hole(START, range(10, 20));
    let (id, _) = asked(&mut repair, START);
    repair.late(START, range(13, 15));
    assert_eq!(repair.poll_cancel(), None);
    assert!(repair.answered(START, id, range(10, 13)));
    assert!(!repair.answered(START, id, range(13, 20)));
    assert_eq!((repair.counters().repaired_bytes, repair.counters().spare_bytes), (8, 2));
}

#[test]
fn too_many_holes_end_it() {
    let mut repair = Repair::new(Config { holes_max: 3, ..small() }, range(0, 200));
    for start in [0, 10, 20] {
        repair.hole(START, range(start, start + 5));
    }
    // Consecutive lost segments form one hole.
    repair.hole(START, range(25, 30));
    assert_eq!(repair.failure(), None);
    repair.hole(START, range(40, 50));
    assert_eq!(repair.failure(), Some(Failure::Holes));
}

/// The next step of the simulation; numbers are taken modulo the possible values.
#[derive(Clone, Debug)]
enum Step {
    Read { bytes: u64, holes: Vec<(u64, u64)> },
    Answer { which: usize, skip: u64, bytes: u64, over: bool },
    Fail { which: usize },
    Late { start: u64, bytes: u64 },
    Release { limit: u64 },
    Wait { millis: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (1..80_u64, prop::collection::vec((0..80_u64, 1..12_u64), 0..4))
            .prop_map(|(bytes, holes)| Step::Read { bytes, holes }),
        (any::<usize>(), 0..3_u64, 1..50_u64, any::<bool>())
            .prop_map(|(which, skip, bytes, over)| Step::Answer { which, skip, bytes, over }),
        any::<usize>().prop_map(|which| Step::Fail { which }),
        (0..2000_u64, 1..20_u64).prop_map(|(start, bytes)| Step::Late { start, bytes }),
        (1..60_u64).prop_map(|limit| Step::Release { limit }),
        (0..120_u64).prop_map(|millis| Step::Wait { millis }),
    ]
}

/// One flag per byte, and the requests in progress.
struct Model {
    good: Vec<bool>,
    read: u64,
    released: u64,
    /// Requests in progress, with how far each was answered.
    running: Vec<(RequestId, Range, u64)>,
}

impl Model {
    fn releasable(&self) -> u64 {
        (self.released..self.read).take_while(|byte| self.good[*byte as usize]).count() as u64
    }

    fn open(&self, range: Range) -> usize {
        self.good[range.start as usize..range.end as usize].iter().filter(|good| !**good).count()
    }

    /// Bytes before `read` are known: there is no unannounced hole before it.
    fn announce(&mut self, end: u64) {
        self.read = self.read.max(end);
    }
}

fn take_step(repair: &mut Repair, model: &mut Model, now: &mut Instant, step: Step) {
    match step {
        Step::Read { bytes, holes } => {
            let end = model.read + bytes.min(repair.room());
            for (start, len) in holes {
                let (start, end) = ((model.read + start).min(end), (model.read + start + len).min(end));
                if let Some(hole) = Range::new(start, end) {
                    repair.hole(*now, hole);
                    model.good[start as usize..end as usize].fill(false);
                }
            }
            repair.arrived(*now, end);
            model.announce(end);
        }
        Step::Answer { which, skip, bytes, over } => {
            let Some(which) = which.checked_rem(model.running.len()) else { return };
            let (id, asked, done) = model.running[which];
            let start = (done + skip).min(asked.end);
            let end = (start + bytes).min(asked.end);
            if let Some(piece) = Range::new(start, end) {
                model.good[start as usize..end as usize].fill(true);
                let more = repair.answered(*now, id, piece);
                assert!(!more || model.open(asked) > 0);
                model.running[which].2 = end;
                if !more {
                    model.running.remove(which);
                    return;
                }
            }
            if over || end == asked.end {
                model.running.remove(which);
                repair.ended(*now, id);
            }
        }
        Step::Fail { which } => {
            let Some(which) = which.checked_rem(model.running.len()) else { return };
            repair.failed(*now, model.running.remove(which).0);
        }
        Step::Late { start, bytes } => {
            let end = (start + bytes).min(model.read);
            let Some(late) = Range::new(start, end) else { return };
            repair.late(*now, late);
            model.good[start as usize..end as usize].fill(true);
        }
        Step::Release { limit } => {
            let free = model.releasable().min(limit);
            let released = repair.poll_release(*now, limit);
            assert_eq!(released, Range::new(model.released, model.released + free));
            model.released += free;
        }
        Step::Wait { millis } => {
            *now += Duration::from_millis(millis);
            repair.handle_timeout(*now);
        }
    }
}

#[test]
fn held_bytes_are_not_released_and_count_as_delay() {
    let mut repair = repair();
    repair.arrived(at(0), 100);
    repair.hold_from(at(0), Some(40));
    assert_eq!(repair.poll_release(at(0), 1000), Some(range(0, 40)));
    assert!(!repair.can_release() && repair.poll_release(at(10), 1000).is_none());
    // No released byte can be held back.
    repair.hold_from(at(20), Some(10));
    assert!(!repair.can_release());
    repair.hold_from(at(30), None);
    assert_eq!(repair.counters().blocked_max, Duration::from_millis(30));
    assert_eq!(repair.poll_release(at(30), 1000), Some(range(40, 100)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// With any answers, losses and delays: bytes are released in order and once, and only if they are there; requested
    /// bytes are missing, and in one request only; all limits are respected.
    #[test]
    fn repair_agrees_with_a_flag_per_byte(steps in prop::collection::vec(step(), 1..200)) {
        let config = Config {
            attempts_max: 1000, deadline: Duration::from_secs(1000), holes_max: 1000, ..small()
        };
        let body = range(0, 2000);
        let mut repair = Repair::new(config, body);
        let mut now = START;
        let mut model =
            Model { good: vec![true; 2100], read: 0, released: 0, running: Vec::new() };
        for step in steps {
            take_step(&mut repair, &mut model, &mut now, step);
            while let Some(id) = repair.poll_cancel() {
                model.running.retain(|(running, ..)| *running != id);
            }
            while let Some(Request { id, range }) = repair.poll_request(now) {
                prop_assert!(model.open(range) > 0, "{range:?} is there");
                prop_assert!(range.bytes() <= config.request_max);
                prop_assert!(range.end <= model.released + config.held_max);
                for (_, other, _) in &model.running {
                    prop_assert!(range.common(*other).is_none_or(|both| model.open(both) == 0));
                }
                model.running.push((id, range, range.start));
            }
            prop_assert!(model.running.len() <= config.parallel_max);
            prop_assert!(model.read - model.released <= config.held_max);
            prop_assert_eq!(repair.failure(), None);
            let open = Range::new(model.released, model.read).map_or(0, |held| model.open(held));
            let missing: u64 = repair.missing_in(body).map(Range::bytes).sum();
            prop_assert_eq!(missing, open as u64);
            let starts = |(start, _): (u64, &Part)| start;
            let unasked = repair.missing.iter().filter(|(_, part)| part.asked.is_none());
            prop_assert!(repair.missing.unasked().map(starts).eq(unasked.map(starts)));
            prop_assert_eq!(repair.can_release(), model.releasable() > 0);
        }
    }

    /// With a server that eventually answers, over a link that loses parts of answers, the whole body is completed.
    #[test]
    fn a_body_becomes_whole(
        holes in prop::collection::vec((0..3000_u64, 1..60_u64), 0..60),
        losses in prop::collection::vec(0..10_u8, 64),
    ) {
        let body = range(100, 3000);
        let config = Config { attempts_max: 100, holes_max: 1000, ..small() };
        let mut repair = Repair::new(config, body);
        let mut now = START;
        let mut holes = holes;
        holes.sort_unstable();
        let mut losses = losses.into_iter().cycle();
        let mut delivered = body.start;
        let mut rounds = 0;
        while !repair.is_done() {
            rounds += 1;
            prop_assert!(rounds < 10_000, "it goes on and on");
            let reached = repair.reached();
            let end = reached + repair.room().min(30);
            for (start, len) in &holes {
                if let Some(hole) = range(*start, start + len).common(Range { start: reached, end }) {
                    repair.hole(now, hole);
                }
            }
            repair.arrived(now, end);
            while let Some(Request { id, range: asked }) = repair.poll_request(now) {
                let mut piece = asked.start;
                while piece < asked.end {
                    let end = (piece + 10).min(asked.end);
                    // Four of ten are lost.
                    if losses.next().is_some_and(|draw| draw >= 4) {
                        repair.answered(now, id, range(piece, end));
                    }
                    piece = end;
                }
                repair.ended(now, id);
                prop_assert_eq!(repair.poll_cancel(), None);
            }
            while let Some(released) = repair.poll_release(now, 25) {
                prop_assert_eq!(released.start, delivered);
                delivered = released.end;
            }
            now += Duration::from_millis(1);
            repair.handle_timeout(now);
            prop_assert_eq!(repair.failure(), None);
        }
        prop_assert_eq!(delivered, body.end);
        let counters = repair.counters();
        prop_assert_eq!(counters.repaired_bytes, counters.hole_bytes);
        prop_assert!(counters.held_bytes_max <= config.held_max);
    }
}
