//! FastACK's agent, packet by packet: data to the client, its fate on the link, the client's ACKs, and the ACKs that
//! the sender gets. Numbers are stream bytes from 0; segments have 1000 bytes.

use tacit_between::fastack::{Agent, Config, Verdict};
use tacit_packet::tcp::{Flags, SackBlocks, SackRange, Segment, Timestamps};
use tacit_packet::units::{Duration, FlowId, HostId, Instant, SeqNumber};
use tacit_packet::{Ecn, IpHeader, Packet, Transport};

const SENDER: HostId = HostId(0);
const CLIENT: HostId = HostId(2);
const LEN: u32 = 1_000;
/// The client's window, unscaled by its shift of 2.
const WINDOW: u32 = 40_000;
const SCALE: u8 = 2;

/// An agent between a sender and a client; it has seen their handshake.
struct Script {
    agent: Agent,
    now: Instant,
    flow: FlowId,
    /// Sequence number of the sender's byte 0, and of the client's.
    first: SeqNumber,
    client_first: SeqNumber,
    /// The timestamp clocks of both ends.
    sender_clock: u32,
    client_clock: u32,
}

impl Script {
    fn new() -> Self {
        Self::with(Config::USUAL, SeqNumber(1))
    }

    fn with(config: Config, first: SeqNumber) -> Self {
        let mut script = Self {
            agent: Agent::new(config),
            now: Instant::ZERO,
            flow: FlowId(7),
            first,
            client_first: SeqNumber(9_001),
            sender_clock: 100,
            client_clock: 5_000,
        };
        script.handshake();
        script
    }

    fn handshake(&mut self) {
        let syn = Segment {
            seq: self.first - 1,
            flags: Flags::SYN,
            window_scale: Some(7),
            sack_permitted: true,
            timestamps: Some(Timestamps { value: self.sender_clock, echo_reply: 0 }),
            ..Segment::default()
        };
        let answer = Segment {
            seq: self.client_first - 1,
            ack: self.first,
            flags: Flags::SYN | Flags::ACK,
            window: WINDOW as u16,
            window_scale: Some(SCALE),
            timestamps: Some(Timestamps { value: self.client_clock, echo_reply: self.sender_clock }),
            ..syn
        };
        let down = self.packet(SENDER, CLIENT, syn);
        assert_eq!(self.agent.handle_downlink(self.now, &down), Verdict::Pass);
        let up = self.packet(CLIENT, SENDER, answer);
        assert_eq!(self.agent.handle_uplink(self.now, &up), Verdict::Pass);
    }

    fn wait(&mut self, millis: u64) {
        self.now += Duration::from_millis(millis);
        self.agent.handle_timeout(self.now);
    }

    fn packet(&self, source: HostId, destination: HostId, segment: Segment) -> Packet {
        let (flow, ip) = (self.flow, IpHeader::default());
        Packet { flow, source, destination, ip, transport: Transport::Tcp(segment) }
    }

    /// The sender's segment of `LEN` bytes starting at `at`.
    fn data(&self, at: u32) -> Segment {
        Segment {
            seq: self.first + at,
            ack: self.client_first,
            payload_len: LEN,
            window: 1_000,
            flags: Flags::ACK,
            timestamps: Some(Timestamps { value: self.sender_clock, echo_reply: self.client_clock }),
            ..Segment::default()
        }
    }

    /// The segment arrives at the agent on its way to the client.
    fn down(&mut self, segment: Segment) -> Verdict {
        let packet = self.packet(SENDER, CLIENT, segment);
        self.agent.handle_downlink(self.now, &packet)
    }

    fn sends(&mut self, at: &[u32]) {
        for at in at {
            assert_eq!(self.down(self.data(*at)), Verdict::Pass);
        }
    }

    /// A Block Ack reports the fate of `segments`: whether the client's NIC has each.
    fn block_ack(&mut self, segments: &[(Segment, bool)]) {
        for (index, (segment, acknowledged)) in segments.iter().enumerate() {
            let packet = self.packet(SENDER, CLIENT, *segment);
            self.agent.handle_fate(self.now, &packet, *acknowledged, index + 1 == segments.len());
        }
        self.agent.check().unwrap();
    }

    /// The segments at these offsets are sent and reach the NIC in one A-MPDU.
    fn delivers(&mut self, at: &[u32]) {
        self.sends(at);
        let segments: Vec<_> = at.iter().map(|at| (self.data(*at), true)).collect();
        self.block_ack(&segments);
    }

    /// A pure ACK of the client: number and blocks as byte offsets, with its full window.
    fn ack(&self, at: u32, blocks: &[(u32, u32)]) -> Segment {
        let mut sack = SackBlocks::EMPTY;
        for (start, end) in blocks {
            assert!(sack.push(SackRange { start: self.first + *start, end: self.first + *end }));
        }
        Segment {
            seq: self.client_first,
            ack: self.first + at,
            window: (WINDOW >> SCALE) as u16,
            flags: Flags::ACK,
            timestamps: Some(Timestamps { value: self.client_clock, echo_reply: 100 }),
            sack,
            ..Segment::default()
        }
    }

    /// The client sends `segment`; returns what is forwarded.
    fn client_sends(&mut self, segment: Segment) -> Option<Segment> {
        let packet = self.packet(CLIENT, SENDER, segment);
        let verdict = self.agent.handle_uplink(self.now, &packet);
        self.agent.check().unwrap();
        match verdict {
            Verdict::Pass => Some(segment),
            Verdict::Drop => None,
            Verdict::Replace(packet) => Some(segment_of(&packet)),
        }
    }

    /// Forged ACKs: number and window in bytes.
    fn forged(&mut self) -> Vec<(u32, u32)> {
        let all =
            std::iter::from_fn(|| self.agent.poll_up()).map(|packet| segment_of(&packet)).collect::<Vec<_>>();
        all.iter().map(|ack| (ack.ack - self.first, u32::from(ack.window) << SCALE)).collect()
    }

    fn numbers(&mut self) -> Vec<u32> {
        self.forged().into_iter().map(|(number, _)| number).collect()
    }

    /// Offsets of retransmitted copies.
    fn copies(&mut self) -> Vec<u32> {
        let all = std::iter::from_fn(|| self.agent.poll_down()).map(|packet| segment_of(&packet));
        all.map(|segment| segment.seq - self.first).collect()
    }
}

fn segment_of(packet: &Packet) -> Segment {
    let Transport::Tcp(segment) = packet.transport else { panic!("TCP") };
    segment
}

#[test]
fn a_block_ack_answers_for_the_client_two_segments_at_a_time() {
    let mut s = Script::new();
    s.sends(&[0, 1_000, 2_000, 3_000, 4_000]);
    assert_eq!(s.numbers(), [0; 0], "nothing is acknowledged before the link says so");
    let segments: Vec<_> = (0..5).map(|n| (s.data(n * 1_000), true)).collect();
    s.block_ack(&segments);
    assert_eq!(s.numbers(), [2_000, 4_000, 5_000]);
    // The client's own ACKs contain no more information.
    for number in [2_000, 4_000, 5_000] {
        assert_eq!(s.client_sends(s.ack(number, &[])), None);
    }
    assert_eq!((s.agent.counters().forged_acks, s.agent.counters().suppressed_acks), (3, 3));
    assert_eq!(s.agent.poll_timeout().map(|due| due > s.now), Some(true), "early wake-ups do no harm");
    s.wait(10_000);
    assert_eq!(s.copies(), [0; 0], "all is acknowledged, and nothing kept");
}

#[test]
fn a_hole_after_the_retry_limit_is_the_senders_to_fill() {
    let mut s = Script::new();
    s.sends(&[0, 1_000, 2_000, 3_000, 4_000]);
    let fates = [true, false, true, true, true];
    let segments: Vec<_> = (0..5).map(|n| (s.data(n * 1_000), fates[n as usize])).collect();
    s.block_ack(&segments);
    assert_eq!(s.numbers(), [1_000], "not past the segment that was given up");
    // The client's own first ACK of that number is no news, but its duplicates are, with their SACK blocks.
    assert_eq!(s.client_sends(s.ack(1_000, &[])), None);
    for blocks in [(2_000, 3_000), (2_000, 4_000), (2_000, 5_000)] {
        let duplicate = s.ack(1_000, &[blocks]);
        assert_eq!(s.client_sends(duplicate), Some(duplicate));
    }
    assert_eq!(s.copies(), [0; 0], "the agent never had it");
    // The sender fills the hole; data that waited behind it is acknowledged at once, with one ACK (RFC 5681 section
    // 4.2).
    s.wait(1);
    s.delivers(&[1_000]);
    assert_eq!(s.numbers(), [5_000]);
    assert_eq!(s.client_sends(s.ack(5_000, &[])), None);
}

#[test]
fn duplicates_without_sack_pass_too() {
    let mut s = Script::new();
    s.sends(&[0, 1_000, 2_000, 3_000, 4_000]);
    let segments: Vec<_> = (0..5).map(|n| (s.data(n * 1_000), n != 0)).collect();
    s.block_ack(&segments);
    assert_eq!(s.numbers(), [0; 0]);
    for _ in 0..4 {
        assert!(s.client_sends(s.ack(0, &[])).is_some());
    }
}

#[test]
fn losses_behind_the_clients_nic_are_retransmitted_from_the_cache() {
    let mut s = Script::new();
    s.delivers(&[0, 1_000, 2_000, 3_000, 4_000]);
    assert_eq!(s.numbers(), [2_000, 4_000, 5_000]);
    // The client's host drops the second segment. Its sender considers it delivered and must not learn of the loss.
    s.sender_clock += 50;
    s.sends(&[5_000]);
    assert_eq!(s.client_sends(s.ack(1_000, &[(2_000, 3_000)])), None);
    assert_eq!(s.client_sends(s.ack(1_000, &[(2_000, 4_000)])), None);
    assert_eq!(s.copies(), [0; 0], "two segments above it may have overtaken it");
    assert_eq!(s.client_sends(s.ack(1_000, &[(2_000, 5_000)])), None);
    let copy = s.agent.poll_down().map(|packet| segment_of(&packet)).unwrap();
    assert_eq!((copy.seq, copy.payload_len), (s.first + 1_000, LEN));
    assert_eq!(
        copy.timestamps.unwrap().value,
        150,
        "with a clock that the client does not take for an old one"
    );
    // One copy is enough while its fate is unknown; the client's silence afterwards causes another one.
    assert_eq!(s.client_sends(s.ack(1_000, &[(2_000, 5_000)])), None);
    assert_eq!(s.copies(), [0; 0]);
    s.block_ack(&[(copy, false)]);
    s.client_sends(s.ack(1_000, &[(2_000, 5_000)]));
    assert_eq!(s.copies(), [1_000], "the link gave it up: again");
    s.block_ack(&[(copy, true)]);
    assert_eq!(s.client_sends(s.ack(5_000, &[])), None);
    assert_eq!(s.numbers(), [0; 0]);
    assert_eq!(s.agent.counters().local_retransmissions, 2);
}

#[test]
fn duplicates_made_before_a_segment_arrived_do_not_count_against_it() {
    let mut s = Script::new();
    s.sends(&[0, 1_000, 2_000, 3_000]);
    let segments: Vec<_> = (0..4).map(|n| (s.data(n * 1_000), n != 0)).collect();
    s.block_ack(&segments);
    s.delivers(&[0]);
    assert_eq!(s.numbers(), [2_000, 4_000]);
    // These ACKs were sent before the first segment reached the NIC.
    for blocks in [(1_000, 2_000), (1_000, 3_000), (1_000, 4_000), (1_000, 4_000)] {
        assert_eq!(s.client_sends(s.ack(0, &[blocks])), None);
    }
    assert_eq!(s.copies(), [0; 0]);
}

#[test]
fn the_last_segment_is_sent_again_when_the_client_stays_silent() {
    let mut s = Script::new();
    s.delivers(&[0]);
    assert_eq!(s.numbers(), [1_000]);
    s.wait(299);
    assert_eq!(s.copies(), [0; 0]);
    s.wait(1);
    assert_eq!(s.copies(), [0]);
    s.wait(599);
    assert_eq!(s.copies(), [0; 0], "the next one waits for twice as long");
    s.wait(1);
    assert_eq!(s.copies(), [0]);
    assert_eq!(s.client_sends(s.ack(1_000, &[])), None);
    // Duplicate data triggers a duplicate ACK, which is not forwarded to the sender.
    assert!(s.client_sends(s.ack(1_000, &[(0, 1_000)])).is_none(), "as a report of a duplicate segment");
    assert_eq!(s.agent.counters().local_timeouts, 2);
}

#[test]
fn a_client_that_never_answers_is_given_up() {
    let mut s = Script::with(Config { tries: 3, ..Config::USUAL }, SeqNumber(1));
    s.delivers(&[0]);
    for _ in 0..100 {
        s.wait(1_000);
    }
    assert_eq!(s.copies().len(), 3);
    assert_eq!((s.agent.counters().abandoned_flows, s.agent.poll_timeout()), (1, None));
}

#[test]
fn without_sack_holes_are_filled_one_after_the_other() {
    let mut s = Script::new();
    s.delivers(&[0, 1_000, 2_000, 3_000, 4_000, 5_000]);
    s.wait(60);
    for _ in 0..4 {
        assert_eq!(s.client_sends(s.ack(0, &[])), None);
    }
    assert_eq!(s.copies(), [0]);
    // Part of the missing data arrives: the next hole begins there.
    assert_eq!(s.client_sends(s.ack(3_000, &[])), None);
    assert_eq!(s.copies(), [3_000]);
    assert_eq!(s.client_sends(s.ack(6_000, &[])), None);
    assert_eq!(s.copies(), [0; 0]);
    // That hole is repaired. The next loss is a separate one; data that has just arrived may still be queued in the
    // host.
    s.delivers(&[6_000, 7_000, 8_000, 9_000]);
    for (wait, copies) in [(49, vec![]), (1, vec![6_000])] {
        s.wait(wait);
        for _ in 0..4 {
            assert!(s.client_sends(s.ack(6_000, &[])).is_none());
        }
        assert_eq!(s.copies(), copies);
    }
}

/// A copy that finds no room in the queue was never sent. As after one that arrived, the client's ACKs of three later
/// segments cause another copy.
#[test]
fn a_copy_that_was_refused_is_tried_again() {
    let mut s = Script::new();
    s.delivers(&[0, 1_000, 2_000, 3_000]);
    s.client_sends(s.ack(0, &[(1_000, 4_000)]));
    let copy = s.agent.poll_down().unwrap();
    s.agent.handle_refused(s.now, &copy);
    assert_eq!(s.agent.counters().refused_copies, 1);
    s.delivers(&[4_000, 5_000, 6_000]);
    s.client_sends(s.ack(0, &[(1_000, 7_000)]));
    assert_eq!(s.copies(), [0]);
}

/// As its sender would send it now: with its latest clock, although an older segment was overtaken, and not ECN-capable
/// (RFC 3168 section 6.1.5).
#[test]
fn a_copy_is_not_marked_capable_and_its_clock_does_not_go_back() {
    let mut s = Script::new();
    let mut first = s.packet(SENDER, CLIENT, s.data(0));
    first.ip.ecn = Ecn::Ect0;
    s.agent.handle_downlink(s.now, &first);
    s.agent.handle_fate(s.now, &first, true, true);
    for clock in [150, 120] {
        s.sender_clock = clock;
        s.sends(&[clock * 1_000]);
    }
    s.wait(300);
    let copy = s.agent.poll_down().unwrap();
    assert_eq!(copy.ip.ecn, Ecn::NotEct);
    assert_eq!(segment_of(&copy).timestamps.unwrap().value, 150);
}

#[test]
fn no_more_window_is_promised_than_the_client_did() {
    let mut s = Script::new();
    s.delivers(&[0, 1_000, 2_000, 3_000]);
    // The window ends at 40,000, as in the client's last ACK.
    assert_eq!(s.forged(), [(2_000, 38_000), (4_000, 36_000)]);
    // The application stops reading: the end of the window does not move, and the window shrinks.
    let narrower = Segment { window: (38_000_u32 >> SCALE) as u16, ..s.ack(2_000, &[]) };
    assert_eq!(s.client_sends(narrower), None);
    s.delivers(&[4_000, 5_000]);
    assert_eq!(s.forged(), [(6_000, 34_000)]);
}

/// With a scale of 2, windows are multiples of four: rounded up, one would end beyond the client's.
#[test]
fn windows_are_rounded_down() {
    let mut s = Script::new();
    let odd = Segment { payload_len: 999, ..s.data(0) };
    assert_eq!(s.down(odd), Verdict::Pass);
    s.block_ack(&[(odd, true)]);
    assert_eq!(s.forged(), [(999, 39_000)]);
}

#[test]
fn an_ack_that_was_overtaken_does_not_take_the_window_back() {
    let mut s = Script::new();
    s.delivers(&[0, 1_000]);
    s.forged();
    assert_eq!(s.client_sends(s.ack(2_000, &[])), None);
    assert_eq!(s.client_sends(Segment { window: 0, ..s.ack(1_000, &[]) }), None);
    s.delivers(&[2_000, 3_000]);
    assert_eq!(s.forged(), [(4_000, 38_000)]);
}

#[test]
fn a_sender_that_knows_of_little_window_hears_of_more_at_once() {
    let mut s = Script::new();
    let all: Vec<u32> = (0..40).map(|n| n * 1_000).collect();
    s.delivers(&all);
    assert_eq!(
        s.forged().last(),
        Some(&(40_000, 0)),
        "the client's buffer is full, as far as the agent knows"
    );
    // No data in flight could be acknowledged: without this ACK the sender would wait for its probe.
    let update = s.client_sends(s.ack(2_000, &[])).unwrap();
    assert_eq!((update.ack - s.first, update.window), (40_000, (2_000_u32 >> SCALE) as u16));
    // A probe confirms this state.
    let probe = Segment { seq: s.first + 39_999, payload_len: 0, ..s.data(0) };
    assert_eq!(s.down(probe), Verdict::Pass);
    assert_eq!(s.forged(), [(40_000, 2_000)]);
}

#[test]
fn a_closed_window_opens_by_the_clients_own_word() {
    let mut s = Script::new();
    s.delivers(&[0, 1_000]);
    s.forged();
    let closed = Segment { window: 0, ..s.ack(2_000, &[]) };
    assert_eq!(s.client_sends(closed), Some(closed), "a window taken back is news");
    // A byte that probes the closed window reaches the NIC. The client may discard it.
    let probe = Segment { payload_len: 1, ..s.data(2_000) };
    assert_eq!(s.down(probe), Verdict::Pass);
    s.block_ack(&[(probe, true)]);
    assert_eq!(s.forged(), []);
    // A probe without data: the answer is forwarded although it contains no news.
    assert_eq!(s.down(Segment { seq: s.first + 1_999, payload_len: 0, ..s.data(0) }), Verdict::Pass);
    assert_eq!(s.client_sends(closed), Some(closed));
    let open = s.ack(2_000, &[]);
    assert_eq!(s.client_sends(open), Some(open));
}

#[test]
fn sacks_above_what_is_answered_for_go_up_with_a_later_number() {
    let mut s = Script::new();
    // The client's host loses the first segment, the link the fifth.
    s.sends(&[0, 1_000, 2_000, 3_000, 4_000, 5_000]);
    let segments: Vec<_> = (0..6).map(|n| (s.data(n * 1_000), n != 4)).collect();
    s.block_ack(&segments);
    assert_eq!(s.numbers(), [2_000, 4_000]);
    let client_ack = s.ack(0, &[(5_000, 6_000), (1_000, 4_000)]);
    let forwarded = s.client_sends(client_ack).unwrap();
    assert_eq!(forwarded.ack, s.first + 4_000);
    assert_eq!(forwarded.sack.as_slice(), [SackRange { start: s.first + 5_000, end: s.first + 6_000 }]);
    assert_eq!(s.client_sends(client_ack), None, "once");
    assert_eq!(s.copies(), [0], "and the hole below is filled from the cache");
}

#[test]
fn echoes_follow_the_segment_that_an_ack_begins_with() {
    let mut s = Script::new();
    s.delivers(&[0]);
    s.agent.poll_up();
    s.sends(&[1_000]);
    let first = s.data(1_000);
    s.sender_clock = 130;
    s.client_clock = 5_040;
    s.sends(&[2_000]);
    // The client's last known timestamp, regardless of the current time.
    assert_eq!(s.client_sends(s.ack(1_000, &[])), None);
    s.block_ack(&[(first, true), (s.data(2_000), true)]);
    let ack = segment_of(&s.agent.poll_up().unwrap());
    assert_eq!(ack.timestamps, Some(Timestamps { value: 5_040, echo_reply: 100 }));
    s.delivers(&[3_000]);
    let ack = segment_of(&s.agent.poll_up().unwrap());
    assert_eq!(ack.timestamps, Some(Timestamps { value: 5_040, echo_reply: 130 }));
    // An ACK that was overtaken does not turn the clock back.
    s.client_clock = 5_020;
    assert_eq!(s.client_sends(s.ack(2_000, &[])), None);
    s.delivers(&[4_000]);
    assert_eq!(segment_of(&s.agent.poll_up().unwrap()).timestamps.unwrap().value, 5_040);
}

#[test]
fn data_of_the_client_carries_what_was_answered_for() {
    let mut s = Script::new();
    s.delivers(&[0, 1_000]);
    assert_eq!(s.numbers(), [2_000]);
    let data = Segment { payload_len: 300, flags: Flags::ACK | Flags::PSH, ..s.ack(0, &[]) };
    let heard = s.client_sends(data).unwrap();
    assert_eq!((heard.payload_len, heard.seq, heard.ack), (300, data.seq, s.first + 2_000));
    // Later forged ACKs do not go back behind it.
    s.delivers(&[2_000]);
    assert_eq!(segment_of(&s.agent.poll_up().unwrap()).seq, s.client_first + 300);
}

#[test]
fn congestion_marks_are_echoed_until_the_sender_answers() {
    let mut s = Script::new();
    let echo = |s: &mut Script, at: u32, ecn: Ecn, flags: Flags| {
        let segment = Segment { flags: Flags::ACK | flags, ..s.data(at) };
        let mut packet = s.packet(SENDER, CLIENT, segment);
        packet.ip.ecn = ecn;
        s.agent.handle_downlink(s.now, &packet);
        s.agent.handle_fate(s.now, &packet, true, true);
        segment_of(&s.agent.poll_up().unwrap()).flags.contains(Flags::ECE)
    };
    assert!(!echo(&mut s, 0, Ecn::Ect0, Flags::NONE));
    assert!(echo(&mut s, 1_000, Ecn::Ce, Flags::NONE));
    assert!(echo(&mut s, 2_000, Ecn::Ect0, Flags::NONE));
    assert!(!echo(&mut s, 3_000, Ecn::Ect0, Flags::CWR));
}

#[test]
fn the_end_of_the_stream_is_the_clients_to_acknowledge() {
    let mut s = Script::new();
    s.delivers(&[0]);
    s.numbers();
    let last = Segment { flags: Flags::ACK | Flags::FIN, ..s.data(1_000) };
    assert_eq!(s.down(last), Verdict::Pass);
    s.block_ack(&[(last, true)]);
    assert_eq!(s.numbers(), [0; 0]);
    let ack = s.ack(2_001, &[]);
    assert_eq!(s.client_sends(ack), Some(ack));
    // Then the flow is removed, and every packet passes.
    let late = s.ack(1_000, &[]);
    assert_eq!(s.client_sends(late), Some(late));
    assert_eq!(s.agent.poll_timeout().filter(|due| *due <= s.now), None);
}

#[test]
fn a_reset_ends_it_from_either_side() {
    for from_client in [true, false] {
        let mut s = Script::new();
        s.delivers(&[0, 1_000]);
        s.numbers();
        let reset = Segment { flags: Flags::RST | Flags::ACK, ..s.ack(0, &[]) };
        if from_client {
            assert_eq!(s.client_sends(reset), Some(reset));
        } else {
            assert_eq!(s.down(Segment { flags: Flags::RST, payload_len: 0, ..s.data(2_000) }), Verdict::Pass);
        }
        s.wait(60_000);
        assert_eq!(s.copies(), [0; 0]);
    }
}

#[test]
fn old_segments_that_the_sender_repeats_are_acknowledged_at_once() {
    let mut s = Script::new();
    s.delivers(&[0, 1_000]);
    assert_eq!(s.numbers(), [2_000]);
    // That ACK was lost on the wire.
    assert_eq!(s.down(s.data(0)), Verdict::Drop);
    assert_eq!(s.numbers(), [2_000]);
    assert_eq!(s.agent.counters().answered_retransmissions, 1);
}

#[test]
fn numbers_wrap_around() {
    let mut s = Script::with(Config::USUAL, SeqNumber(u32::MAX - 2_500));
    s.delivers(&[0, 1_000, 2_000, 3_000]);
    assert_eq!(s.numbers(), [2_000, 4_000]);
    s.client_sends(s.ack(1_000, &[(2_000, 4_000)]));
    s.delivers(&[4_000]);
    assert_eq!(s.numbers(), [5_000]);
    assert_eq!(s.client_sends(s.ack(1_000, &[(2_000, 5_000)])), None);
    assert_eq!(s.copies(), [1_000]);
    assert_eq!(s.client_sends(s.ack(5_000, &[])), None);
    s.agent.check().unwrap();
}

#[test]
fn a_full_cache_leaves_the_rest_to_the_client() {
    let cache = tacit_packet::units::Bytes(3_000);
    let mut s = Script::with(Config { cache, ..Config::USUAL }, SeqNumber(1));
    s.delivers(&[0, 1_000, 2_000, 3_000, 4_000]);
    assert_eq!(s.numbers(), [2_000, 3_000]);
    assert_eq!(s.agent.counters().uncached_segments, 2);
    assert_eq!(s.client_sends(s.ack(2_000, &[])), None);
    // Data that the agent did not acknowledge is acknowledged by the client itself; after that the agent works as
    // before.
    let client_ack = s.ack(4_000, &[]);
    assert_eq!(s.client_sends(client_ack), Some(client_ack));
    let client_ack = s.ack(5_000, &[]);
    assert_eq!(s.client_sends(client_ack), Some(client_ack));
    s.delivers(&[5_000, 6_000]);
    assert_eq!(s.numbers(), [7_000]);
    assert_eq!(s.agent.counters().cached_segments_max, 3);
}

#[test]
fn segments_behind_a_hole_make_room_for_its_repair() {
    let cache = tacit_packet::units::Bytes(2_000);
    let mut s = Script::with(Config { cache, ..Config::USUAL }, SeqNumber(1));
    s.sends(&[0, 1_000, 2_000]);
    s.block_ack(&[(s.data(0), false), (s.data(1_000), true), (s.data(2_000), true)]);
    s.delivers(&[0]);
    assert_eq!(s.numbers(), [2_000]);
}

#[test]
fn of_the_flows_that_owe_nothing_the_one_not_used_for_longest_makes_room() {
    let mut s = Script::with(Config { flows: 2, ..Config::USUAL }, SeqNumber(1));
    let first = s.flow;
    s.wait(1);
    s.flow = FlowId(8);
    s.handshake();
    s.wait(1);
    s.flow = first;
    s.client_sends(s.ack(0, &[]));
    s.wait(1);
    s.flow = FlowId(9);
    s.handshake();
    s.flow = first;
    s.delivers(&[0, 1_000]);
    assert_eq!(s.numbers(), [2_000], "the first is still known");
}

#[test]
fn a_flow_makes_room_for_another_only_when_it_owes_nothing() {
    let mut s = Script::with(Config { flows: 2, ..Config::USUAL }, SeqNumber(1));
    s.delivers(&[0]);
    let owing = s.flow;
    for flow in [8, 9] {
        s.now += Duration::from_millis(1);
        s.flow = FlowId(flow);
        s.handshake();
    }
    // The second flow made room for the third. The first could not: its sender got ACKs for data that its client has
    // not acknowledged.
    assert_eq!((s.agent.counters().evicted_flows, s.agent.counters().refused_flows), (1, 0));
    s.flow = FlowId(8);
    let client_ack = s.ack(0, &[]);
    assert_eq!(s.client_sends(client_ack), Some(client_ack));
    s.flow = FlowId(9);
    s.delivers(&[0]);
    s.flow = FlowId(10);
    s.handshake();
    assert_eq!(s.agent.counters().refused_flows, 2, "both SYNs of it");
    s.flow = owing;
    assert_eq!(s.client_sends(s.ack(1_000, &[])), None);
}

#[test]
fn a_connection_whose_handshake_was_not_seen_is_left_alone() {
    let mut s = Script::new();
    s.flow = FlowId(99);
    s.delivers(&[0, 1_000]);
    assert_eq!(s.numbers(), [0; 0]);
    let client_ack = s.ack(2_000, &[]);
    assert_eq!(s.client_sends(client_ack), Some(client_ack));
}

#[test]
fn the_same_ports_may_begin_anew() {
    let mut s = Script::new();
    s.delivers(&[0, 1_000]);
    s.numbers();
    s.first = SeqNumber(70_001);
    s.client_first = SeqNumber(80_001);
    s.handshake();
    s.delivers(&[0, 1_000]);
    assert_eq!(s.numbers(), [2_000]);
}
