//! `HoldLaw::Thin`: which ACKs wait for a busy uplink, for how long, and that a sender finally learns the same.

use proptest::prelude::*;
use tacit_between::ack_hold::{AckHold, HoldLaw, Offered, QueueCounts};
use tacit_packet::FlowKey;
use tacit_packet::tcp::{Flags, SackBlocks, SackRange, Segment, Timestamps};
use tacit_packet::units::{Bytes, Duration, FlowId, HostId, Instant, SeqNumber};

const MSS: u16 = 1_460;
/// After the first 100 segments.
const LATER: u32 = 200_000;

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

fn key(flow: u32) -> FlowKey {
    FlowKey::simulated(FlowId(flow), HostId(1))
}

fn ack(number: u32) -> Segment {
    Segment { ack: SeqNumber(number), flags: Flags::ACK, window: 60_000, ..Segment::default() }
}

fn sacking(number: u32, blocks: &[(u32, u32)]) -> Segment {
    let mut sack = SackBlocks::EMPTY;
    for (start, end) in blocks {
        assert!(sack.push(SackRange { start: SeqNumber(*start), end: SeqNumber(*end) }));
    }
    Segment { sack, ..ack(number) }
}

/// A host behind an uplink of 50 kb/s, and what it sends.
struct Host {
    hold: AckHold<(u32, Segment)>,
    now: Instant,
    passed: Vec<(u64, u32, Segment)>,
}

impl Host {
    /// The rate of the uplink is known from ten packets of 50 bytes.
    fn new() -> Self {
        let mut host = Self { hold: AckHold::new(HoldLaw::Thin), now: Instant::ZERO, passed: Vec::new() };
        (0..10).for_each(|_| host.send_other(50));
        let counts = |sent, waiting| QueueCounts { sent: Bytes(sent), waiting: Bytes(waiting) };
        host.hold.observe(at(0), counts(50, 450));
        host.hold.observe(at(32), counts(250, 250));
        host.hold.observe(at(80), counts(500, 0));
        host.now = at(1_000);
        host
    }

    /// `Host::new` with the flow 1 after its handshake, of `round_trip_ms`, and its first 100 segments; the uplink has
    /// nothing to send.
    fn with_flow(round_trip_ms: u64) -> Self {
        let mut host = Self::new();
        host.open(1, round_trip_ms);
        host
    }

    /// The same, and the uplink is busy for long.
    fn busy() -> Self {
        let mut host = Self::with_flow(80);
        host.send_other(100_000);
        host
    }

    fn open(&mut self, flow: u32, round_trip_ms: u64) {
        let syn = Segment { flags: Flags::SYN, mss: Some(MSS), window_scale: Some(7), ..Segment::default() };
        self.send(flow, syn);
        self.now += Duration::from_millis(round_trip_ms);
        self.receive(flow, Segment { flags: Flags::SYN | Flags::ACK, ..syn });
        self.send(flow, ack(1));
        self.send(flow, ack(LATER));
        self.now += Duration::from_millis(100);
        self.passed.clear();
    }

    fn send_other(&mut self, len: u32) {
        // An ACK of an unknown flow.
        let offered = Offered { key: FlowKey::default(), segment: Some(ack(0)), len };
        let replaced = self.hold.offer(self.now, offered, (0, ack(0)), &mut |_| {});
        assert!(replaced.is_none());
    }

    fn send(&mut self, flow: u32, segment: Segment) {
        let (ms, passed) = (self.now.as_nanos() / 1_000_000, &mut self.passed);
        let offered = Offered { key: key(flow), segment: Some(segment), len: 50 };
        let pass = &mut |(flow, segment)| passed.push((ms, flow, segment));
        self.hold.offer(self.now, offered, (flow, segment), pass);
    }

    fn receive(&mut self, flow: u32, segment: Segment) {
        self.hold.on_reverse_segment(self.now, key(flow), &segment);
    }

    /// Waits, and does what is due in between.
    fn wait(&mut self, ms: u64) {
        let end = self.now + Duration::from_millis(ms);
        while let Some(due) = self.hold.poll_timeout().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            let (ms, passed) = (self.now.as_nanos() / 1_000_000, &mut self.passed);
            self.hold.handle_timeout(self.now, &mut |(flow, segment)| passed.push((ms, flow, segment)));
        }
        self.now = end;
    }

    /// The numbers that passed since the last call.
    fn numbers(&mut self) -> Vec<u32> {
        self.passed.drain(..).map(|(_, _, segment)| segment.ack.0 - LATER).collect()
    }
}

#[test]
fn an_uplink_with_nothing_to_send_gets_every_ack() {
    let mut host = Host::with_flow(80);
    for number in [1, 2, 3] {
        host.send(1, ack(LATER + number * 2_920));
        host.wait(10);
    }
    assert_eq!(host.numbers(), [2_920, 5_840, 8_760]);
    assert_eq!(host.hold.dropped(), 0);
}

/// An ACK of 50 bytes takes 8 ms.
#[test]
fn the_newest_leaves_once_the_uplink_is_free() {
    let mut host = Host::with_flow(80);
    let start = host.now.as_nanos() / 1_000_000;
    for number in 0..9 {
        host.send(1, ack(LATER + 1_000 + number));
        host.wait(2);
    }
    host.wait(100);
    let times: Vec<_> =
        host.passed.iter().map(|(ms, _, segment)| (ms - start, segment.ack.0 - LATER)).collect();
    assert_eq!(times, [(0, 1_000), (8, 1_003), (16, 1_007), (24, 1_008)]);
    assert_eq!(host.hold.dropped(), 5);
}

#[test]
fn none_waits_longer_than_a_quarter_of_the_round_trip_or_100_ms() {
    for (round_trip_ms, longest_ms) in [(80, 20), (200, 50), (600, 100)] {
        let mut host = Host::with_flow(round_trip_ms);
        host.send_other(100_000);
        let start = host.now.as_nanos() / 1_000_000;
        host.send(1, ack(LATER + 1));
        host.wait(longest_ms / 2);
        host.send(1, ack(LATER + 2));
        host.wait(1_000);
        let left: Vec<_> = host.passed.iter().map(|(ms, _, segment)| (ms - start, segment.ack.0)).collect();
        assert_eq!(left, [(longest_ms, LATER + 2)], "counted from the first that was held");
    }
}

/// The round trip that counts contains the queues: data echoes the ACK that it answers.
#[test]
fn the_round_trip_is_read_off_timestamps() {
    let mut host = Host::with_flow(8);
    let stamped = |number, value, echo_reply| Segment {
        timestamps: Some(Timestamps { value, echo_reply }),
        ..ack(number)
    };
    for round in 0..60 {
        host.send(1, stamped(LATER + round, 100 + round, 7));
        host.wait(160);
        let data = Segment { seq: SeqNumber(LATER + round), payload_len: 1, ..stamped(9, 8, 100 + round) };
        host.receive(1, data);
    }
    host.send_other(100_000);
    host.passed.clear();
    let start = host.now.as_nanos() / 1_000_000;
    host.send(1, stamped(LATER + 1_000, 900, 8));
    host.wait(500);
    let waited = host.passed[0].0 - start;
    assert!((38..=40).contains(&waited), "{waited} of a quarter of 160 ms");
}

/// Nothing is known of a flow that began before, so its ACKs pass.
#[test]
fn a_flow_without_a_round_trip_time_is_left_alone() {
    let mut host = Host::new();
    host.send_other(100_000);
    for number in [1, LATER, LATER + 1, LATER + 2] {
        host.send(3, ack(number));
    }
    assert_eq!(host.passed.len(), 4);
}

#[test]
fn slow_start_gets_the_acks_of_100_segments_and_again_after_a_pause() {
    let mut host = Host::new();
    host.open(1, 80);
    host.send_other(10_000_000);
    host.send(1, ack(LATER + 10));
    host.wait(2_000);
    assert_eq!(host.numbers(), [10], "held, for it is no beginning");
    let begins = LATER + 10;
    for segments in [1, 50, 99, 100] {
        host.send(1, ack(begins + segments * u32::from(MSS)));
        assert_eq!(host.passed.len(), 1, "after {segments} segments");
        host.numbers();
    }
    host.send(1, ack(begins + 101 * u32::from(MSS)));
    assert_eq!(host.numbers(), [], "held");
}

#[test]
fn whatever_says_more_than_a_number_passes_at_once_behind_the_held_one() {
    let flagged = |flags| Segment { flags: Flags::ACK | flags, ..ack(LATER + 20) };
    let telling = [
        flagged(Flags::SYN),
        flagged(Flags::FIN),
        flagged(Flags::RST),
        flagged(Flags::URG),
        flagged(Flags::PSH),
        flagged(Flags::ECE),
        flagged(Flags::CWR),
        Segment { payload_len: 5, ..ack(LATER + 20) },
        sacking(LATER + 20, &[(LATER + 100, LATER + 200)]),
        ack(LATER + 10),
        Segment { window: 61_000, ..ack(LATER + 10) },
        ack(LATER + 5),
    ];
    for segment in telling {
        let mut host = Host::busy();
        host.send(1, ack(LATER + 10));
        assert!(host.passed.is_empty());
        host.send(1, segment);
        assert_eq!(host.numbers(), [10, segment.ack.0 - LATER], "{segment:?}");
    }
    for segment in telling.into_iter().take(9).chain([ack(LATER), ack(LATER - 5)]) {
        let mut host = Host::busy();
        host.send(1, segment);
        assert_eq!(host.passed.len(), 1, "{segment:?}, with nothing held");
    }
    let mut host = Host::busy();
    host.send(1, ack(LATER + 10));
    let offered = Offered { key: key(1), segment: None, len: 50 };
    let mut passed = Vec::new();
    host.hold.offer(host.now, offered, (9, ack(0)), &mut |(flow, _)| passed.push(flow));
    assert_eq!(passed, [1, 9], "what is not understood");
}

#[test]
fn an_ack_that_fills_a_hole_passes_at_once() {
    let mut host = Host::busy();
    host.send(1, sacking(LATER, &[(LATER + 100, LATER + 200)]));
    host.send(1, ack(LATER + 200));
    host.send(1, ack(LATER + 210));
    assert_eq!(host.numbers(), [0, 200], "and the next one is held");
}

#[test]
fn an_ack_that_must_pass_replaces_the_held_one() {
    let mut host = Host::busy();
    host.receive(
        1,
        Segment { seq: SeqNumber(LATER), payload_len: 49, flags: Flags::FIN, ..Segment::default() },
    );
    for number in [20, 40, 50, 60] {
        host.send(1, ack(LATER + number));
    }
    assert_eq!(host.numbers(), [50], "the end of all data; the next one is held");
    assert_eq!(host.hold.dropped(), 2);
}

/// Linux sets PSH on the last segment of each packet that it cuts, so at low rates it would free every ACK.
#[test]
fn an_ack_of_pushed_data_is_held() {
    let mut host = Host::busy();
    for number in [20, 40, 60] {
        let (seq, flags) = (SeqNumber(LATER + number - 20), Flags::ACK | Flags::PSH);
        host.receive(1, Segment { seq, payload_len: 20, flags, ..Segment::default() });
        host.send(1, ack(LATER + number));
    }
    assert_eq!((host.numbers(), host.hold.dropped()), (vec![], 2));
}

/// The sender would lose the later timestamp, and a place for two ACKs would lose one of them.
#[test]
fn an_ack_whose_clock_goes_back_replaces_nothing() {
    let mut host = Host::busy();
    for (number, value) in [(10, 7), (20, 6)] {
        let timestamps = Some(Timestamps { value, echo_reply: value });
        host.send(1, Segment { timestamps, ..ack(LATER + number) });
    }
    assert_eq!((host.numbers(), host.hold.dropped()), (vec![10, 20], 0));
}

#[test]
fn probes_are_answered_at_once() {
    let mut host = Host::busy();
    host.send(1, ack(LATER + 10));
    // A keep-alive repeats the byte before the next one.
    host.receive(1, Segment { seq: SeqNumber(LATER + 9), flags: Flags::ACK, ..Segment::default() });
    host.send(1, ack(LATER + 20));
    host.send(1, ack(LATER + 30));
    assert_eq!(host.numbers(), [20]);
}

#[test]
fn a_window_that_was_nearly_closed_or_is_a_quarter_larger_is_told_at_once() {
    let passes = |windows: [u16; 2], advance: u32| {
        let mut host = Host::busy();
        // A duplicate passes, with its window.
        host.send(1, Segment { window: windows[0], ..ack(LATER) });
        host.send(1, Segment { window: windows[1], ..ack(LATER + advance) });
        host.passed.len() == 2
    };
    // Shifted by 7.
    assert!(!passes([10_000, 10_000], 10), "nothing new");
    assert!(passes([20, 10_000], 10), "2,560 bytes are less than two segments");
    assert!(passes([10_000, 20], 10), "and so they are afterwards");
    assert!(passes([10_000, 12_500], 10), "a quarter more");
    assert!(!passes([10_000, 12_000], 10));
    assert!(passes([10_000, 9_000], 10), "it shrank by more than was received");
    assert!(passes([400, 400], 13_000), "a quarter of 51,200 bytes");
    assert!(!passes([400, 400], 12_000));
}

/// An upload that keeps the queue full would else leave ever more data before an ACK that is held.
#[test]
fn data_overtakes_no_ack_and_none_is_held_behind_it() {
    let mut host = Host::with_flow(80);
    host.send_other(100);
    host.send(1, ack(LATER + 10));
    let data = Offered { key: key(7), segment: None, len: 50 };
    let mut passed = Vec::new();
    host.hold.offer(host.now, data, (7, ack(0)), &mut |(flow, _)| passed.push(flow));
    assert_eq!(passed, [1, 7]);
    host.send(1, ack(LATER + 20));
    assert_eq!(host.numbers(), [20], "it is behind the data in the queue");
    host.wait(100);
    host.send_other(100);
    host.send(1, ack(LATER + 30));
    assert_eq!(host.numbers(), [], "there are only ACKs again");
}

/// A sender without pacing answers an ACK with as many segments at once.
#[test]
fn an_ack_stands_for_64_segments_at_most() {
    let mut host = Host::busy();
    host.send(1, ack(LATER + 63 * u32::from(MSS)));
    assert_eq!(host.numbers(), []);
    host.send(1, ack(LATER + 64 * u32::from(MSS)));
    assert_eq!(host.numbers(), [64 * u32::from(MSS)]);
}

#[test]
fn flows_take_turns_at_the_uplink_the_one_that_waited_longest_first() {
    let mut host = Host::new();
    for flow in [1, 2, 3] {
        host.open(flow, 200);
    }
    host.send_other(50);
    for flow in [2, 3, 1] {
        host.send(flow, ack(LATER + 10));
        host.wait(1);
    }
    host.send(2, ack(LATER + 20));
    let start = host.now.as_nanos() / 1_000_000;
    host.wait(100);
    let turns: Vec<_> =
        host.passed.iter().map(|(ms, flow, segment)| (ms - start, *flow, segment.ack.0)).collect();
    assert_eq!(turns, [(5, 2, LATER + 20), (13, 3, LATER + 10), (21, 1, LATER + 10)]);
}

/// Half of the increase of the number, window, what else it says, time until the next in ms.
type Step = (u32, u16, u32, u64);

fn stream(steps: &[Step]) -> Vec<(u64, u32, Segment)> {
    let (mut numbers, mut ms) = ([LATER; 2], 0);
    let mut make = |place: usize, &(step, window, kind, later): &Step| {
        let flow = place % 2;
        numbers[flow] += step / 2 * 1_000;
        ms += later;
        let number = numbers[flow];
        let blocks: &[(u32, u32)] = if kind == 0 { &[(number + 500, number + 900)] } else { &[] };
        let flags = Flags::ACK | if kind == 1 { Flags::ECE } else { Flags::NONE };
        let timestamps = Some(Timestamps { value: 5 + ms as u32 / 3, echo_reply: 4 + ms as u32 / 4 });
        let payload_len = u32::from(kind == 2);
        let segment =
            Segment { flags, payload_len, timestamps, window: 50_000 + window, ..sacking(number, blocks) };
        (ms, flow as u32 + 1, segment)
    };
    steps.iter().enumerate().map(|(place, step)| make(place, step)).collect()
}

/// What a sender knows in the end: the number, the window with it, how often it came again, the latest timestamps, the
/// flags and the blocks that came, and the number of segments with data.
fn learnt(segments: &[Segment]) -> impl PartialEq + std::fmt::Debug {
    let last = segments.iter().map(|segment| segment.ack.0).max();
    let of_last = || segments.iter().filter(|segment| Some(segment.ack.0) == last);
    let repeats = of_last().count();
    let window = of_last().next_back().map(|segment| segment.window);
    let stamps = segments.iter().map(|segment| segment.timestamps.map(|t| (t.value, t.echo_reply))).max();
    let telling = |segment: &&Segment| {
        segment.flags != Flags::ACK || !segment.sack.is_empty() || segment.payload_len > 0
    };
    (last, repeats, window, stamps, segments.iter().filter(telling).copied().collect::<Vec<_>>())
}

proptest! {
    #[test]
    fn thinning_never_changes_what_the_sender_finally_learns(
        steps in proptest::collection::vec((0_u32..6, 0_u16..3, 0_u32..12, 0_u64..9), 1..80),
        other in 0_u32..3_000,
    ) {
        let mut host = Host::new();
        host.open(1, 80);
        host.open(2, 200);
        host.send_other(other);
        let start = host.now;
        let sent = stream(&steps);
        for (ms, flow, segment) in &sent {
            let due = start + Duration::from_millis(*ms);
            host.wait(due.saturating_since(host.now).as_millis());
            host.send(*flow, *segment);
        }
        host.wait(100);
        prop_assert_eq!(host.hold.iter().count(), 0, "an ACK is held for ever");
        prop_assert_eq!(host.passed.len() as u64 + host.hold.dropped(), sent.len() as u64);
        for (flow, longest_ms) in [(1, 20), (2, 50)] {
            let all: Vec<_> = sent.iter().filter(|sent| sent.1 == flow).map(|sent| sent.2).collect();
            let some: Vec<_> = host.passed.iter().filter(|passed| passed.1 == flow).map(|passed| passed.2).collect();
            let (whole, thinned) = (learnt(&all), learnt(&some));
            prop_assert!(whole == thinned, "flow {}: {:?}, not {:?}", flow, thinned, whole);
            // Each number, or a later one, is known in time.
            for (ms, _, segment) in sent.iter().filter(|sent| sent.1 == flow) {
                let latest = start.as_nanos() / 1_000_000 + ms + longest_ms;
                let known = host.passed.iter().any(|(at, sender_flow, passed)| {
                    *sender_flow == flow && *at <= latest && segment.ack.before_eq(passed.ack)
                });
                prop_assert!(known, "{} of flow {} is late", segment.ack, flow);
            }
        }
    }
}
