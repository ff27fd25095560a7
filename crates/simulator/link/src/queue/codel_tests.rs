use super::*;
use tacit_packet::Ecn;

/// A full packet.
fn numbered(number: u32, capable: bool) -> PacketRef {
    let ecn = if capable { Ecn::Ect0 } else { Ecn::NotEct };
    PacketRef { id: number, len: 1_500, ecn, ..PacketRef::default() }
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// A queue with the settings of RFC 8289, and the fate of its packets.
struct Harness {
    queue: CoDel,
    arrived: u32,
    dropped: Vec<(u64, u32)>,
    marked: Vec<u32>,
}

impl Harness {
    fn new() -> Self {
        let queue = CoDel::new(QueueLimit::default(), CoDelConfig::INTERNET);
        Self { queue, arrived: 0, dropped: Vec::new(), marked: Vec::new() }
    }

    fn arrive(&mut self, ms: u64, count: u32, capable: bool) {
        for _ in 0..count {
            let number = self.arrived;
            self.arrived += 1;
            assert!(self.queue.push(at(ms), numbered(number, capable)));
        }
    }

    /// Takes one packet at `ms`.
    fn take(&mut self, ms: u64) -> Option<u32> {
        let dropped = &mut self.dropped;
        self.queue.front(at(ms), &mut |payload: PacketRef| dropped.push((ms, payload.id)))?;
        let payload = self.queue.pop()?.payload;
        if payload.ecn == Ecn::Ce {
            self.marked.push(payload.id);
        }
        Some(payload.id)
    }

    /// In each millisecond one packet arrives and one is taken, behind a standing queue.
    fn keep_up(&mut self, from_ms: u64, to_ms: u64, capable: bool) {
        for ms in from_ms..to_ms {
            self.arrive(ms, 1, capable);
            self.take(ms).unwrap();
        }
    }
}

#[test]
fn the_control_law_is_the_interval_over_the_square_root() {
    // RFC 8289 section 5.6 with an interval of 100 ms; square roots to ten digits.
    let known = [
        (1, 100_000_000),
        (2, 70_710_678),
        (3, 57_735_026),
        (4, 50_000_000),
        (10, 31_622_776),
        (100, 10_000_000),
        (10_000, 1_000_000),
        (1_000_000, 100_000),
    ];
    for (count, nanos) in known {
        let got = pause(Duration::from_millis(100), count).as_nanos();
        assert!(got.abs_diff(nanos) <= 1, "count {count}: {got} ns instead of {nanos}");
    }
}

#[test]
fn newton_finds_every_root() {
    let exact = |count: u32| (f64::from(count).sqrt().recip() * 2_f64.powi(32)) as i64;
    let counts = (2..5_000).chain((1..32).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << bit) + 1]));
    for count in counts.filter(|count| *count > 1).chain([u32::MAX]) {
        let off = (i64::from(inverse_sqrt(count)) - exact(count)).abs();
        assert!(off <= 4, "count {count}: {off} / 2^32 off");
    }
}

#[test]
fn a_short_burst_passes() {
    let mut h = Harness::new();
    h.arrive(0, 50, false);
    // The delay is above 5 ms from the sixth packet on, but not for 100 ms.
    let taken: Vec<_> = (0..50).filter_map(|ms| h.take(ms)).collect();
    assert_eq!(taken, (0..50).collect::<Vec<_>>());
    assert!(h.dropped.is_empty());
}

#[test]
fn a_standing_queue_is_dropped_from_ever_more_often() {
    let mut h = Harness::new();
    // A persistent queue of 20 ms.
    h.arrive(0, 20, false);
    h.keep_up(0, 400, false);
    let times: Vec<_> = h.dropped.iter().map(|(ms, _)| *ms).collect();
    // The packet taken at 5 ms is the first that waited 5 ms. The first drop is an interval later, then one after 100,
    // 70.7, 57.7 and 50 ms, each at the next whole millisecond.
    assert_eq!(times, [105, 205, 276, 334, 384]);
    // Packets are dropped at the head: at 105 ms packet 105 is dropped, and the one behind it is sent.
    assert_eq!(h.dropped[0].1, 105);
}

#[test]
fn dropping_ends_when_the_queue_does() {
    let mut h = Harness::new();
    h.arrive(0, 20, false);
    h.keep_up(0, 250, false);
    assert_eq!(h.dropped.len(), 2);
    // The sender stops: the queue drains, and later packets are not affected.
    let mut ms = 250;
    while h.take(ms).is_some() {
        ms += 1;
    }
    h.arrive(300, 3, false);
    h.keep_up(300, 390, false);
    assert_eq!(h.dropped.len(), 2);
}

/// Times of drops for a queue that exists for 400 ms, is empty, and returns at `back_ms` for 300 ms.
fn drops_after_coming_back(back_ms: u64) -> Vec<u64> {
    let mut h = Harness::new();
    h.arrive(0, 20, false);
    h.keep_up(0, 400, false);
    let before = h.dropped.len();
    let mut ms = 400;
    while h.take(ms).is_some() {
        ms += 1;
    }
    h.arrive(back_ms, 20, false);
    h.keep_up(back_ms, back_ms + 300, false);
    h.dropped[before..].iter().map(|(ms, _)| *ms).collect()
}

#[test]
fn a_queue_that_comes_back_soon_meets_the_rate_it_had() {
    // Empty for 50 ms: the first drop comes after an interval as usual, the second sooner than after one.
    let times = drops_after_coming_back(450);
    assert_eq!(times[0], 555);
    // Four of the five drops belong to the previous dropping period: 100 / sqrt(4).
    assert_eq!(times[1], 605, "{times:?}");
}

/// Sixteen intervals later the learnt count has expired: the interval starts from its full length again (RFC 8289
/// section 4.2).
#[test]
fn a_queue_that_comes_back_late_begins_anew() {
    assert_eq!(drops_after_coming_back(2_450)[..2], [2_555, 2_655]);
}

/// One packet that did not wait restarts the interval: the delay must be above target for a whole interval.
#[test]
fn a_moment_without_a_queue_starts_the_interval_over() {
    let mut h = Harness::new();
    h.arrive(0, 20, false);
    h.keep_up(0, 60, false);
    // All packets except the newest leave at once, then the queue returns.
    for _ in 0..18 {
        h.take(60);
    }
    h.arrive(60, 20, false);
    h.keep_up(60, 160, false);
    assert!(h.dropped.is_empty(), "{:?}", h.dropped);
    h.keep_up(160, 180, false);
    assert_eq!(h.dropped.len(), 1);
}

/// A link that stalls makes up for drops that were due meanwhile, at 205, 276, 334 and 384 ms; but a packet can be
/// marked only once.
#[test]
fn drops_that_were_due_in_a_stall_are_made_up_for_and_marks_are_not() {
    for capable in [false, true] {
        let mut h = Harness::new();
        h.arrive(0, 40, capable);
        h.keep_up(0, 120, capable);
        assert_eq!(h.dropped.len() + h.marked.len(), 1);
        assert!(h.take(400).is_some());
        let (drops, marks) = if capable { (0, 2) } else { (5, 0) };
        assert_eq!((h.dropped.len(), h.queue.marks()), (drops, marks));
    }
}

#[test]
fn the_packet_decided_on_still_takes_its_room() {
    let limit = QueueLimit { packets: None, bytes: Some(Bytes(3_000)) };
    let mut h = Harness { queue: CoDel::new(limit, CoDelConfig::INTERNET), ..Harness::new() };
    h.arrive(0, 2, false);
    h.queue.front(at(0), &mut |_| {});
    assert!(!h.queue.has_room(Bytes(1_500)));
    h.queue.pop();
    assert!(h.queue.has_room(Bytes(1_500)));
}

#[test]
fn ect_packets_are_marked_and_stay() {
    let mut h = Harness::new();
    h.arrive(0, 20, true);
    h.keep_up(0, 400, true);
    assert!(h.dropped.is_empty());
    // The same packets as those dropped in the test above, shifted by those that now remain.
    assert_eq!(h.marked, [105, 205, 276, 334, 384]);
    assert_eq!(h.queue.marks(), 5);
}

#[test]
fn one_packet_is_no_queue() {
    let mut h = Harness::new();
    for ms in 0..50 {
        // Each packet waits for 20 ms, with one more behind it.
        h.arrive(20 * ms, 1, false);
        if ms > 0 {
            assert!(h.take(20 * ms).is_some());
        }
    }
    assert!(h.dropped.is_empty());
}

#[test]
fn retracted_packets_are_gone_wherever_they_are() {
    let mut h = Harness::new();
    h.arrive(0, 4, false);
    h.queue.front(at(0), &mut |_| {});
    assert_eq!(h.queue.retract(|payload| payload.id % 2 == 0), 2);
    assert_eq!(h.queue.len(), 2);
    assert_eq!([h.take(1), h.take(2), h.take(3)], [Some(1), Some(3), None]);
}
