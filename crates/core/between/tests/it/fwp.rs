//! FWP's shim, packet by packet: one script per case.

mod overdue;

use tacit_between::fwp::control::Refusal;
use tacit_between::fwp::{Config, Counters, Placeholders, Readers, Shim};
use tacit_packet::tcp::{Flags, Segment, Timestamps};
use tacit_packet::units::{Bytes, Duration, FlowId, HostId, Instant, SeqNumber};
use tacit_packet::{Ecn, FlowKey, IpHeader, Packet, Transport};

const MSS: u32 = 1000;
const SERVER: HostId = HostId(0);
const HOST: HostId = HostId(1);

/// Messages to a reader.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ToReader {
    Hole(u64, u64),
    Late(u64, u64),
    Switched(bool),
}
use ToReader::{Hole, Late, Switched};

#[derive(Debug, Default)]
struct Reader {
    messages: Vec<ToReader>,
    deaf: bool,
}

impl Readers for Reader {
    fn hole(&mut self, _: FlowKey, start: u64, end: u64) -> bool {
        if !self.deaf {
            self.messages.push(Hole(start, end));
        }
        !self.deaf
    }
    fn late(&mut self, _: FlowKey, start: u64, end: u64, bytes: &[u8]) {
        assert!(bytes.is_empty(), "simulated packets carry lengths alone");
        self.messages.push(Late(start, end));
    }
    fn switched(&mut self, _: FlowKey, on: bool) {
        self.messages.push(Switched(on));
    }
}

/// A shim below the TCP of `HOST`, a connection of `flow` that begins at `initial`, and a clock in milliseconds.
struct Script {
    shim: Shim<Packet>,
    reader: Reader,
    flow: FlowId,
    initial: SeqNumber,
    now: Instant,
    /// The sender's timestamp clock.
    clock: Option<u32>,
    /// The host's timestamp clock, and the value of it that the sender echoes.
    host_clock: u32,
    echo: u32,
}

/// The shim of the paper: statistics of TCP's segments, over a link that loses one frame in ten.
const BY_TCP: Config = expecting(100_000);

const fn expecting(ppm: u32) -> Config {
    Config { placeholders: Placeholders::Tcp, expected_ppm: Some(ppm), ..Config::USUAL }
}

/// Data that the host got: offset, length, whether it is a placeholder.
type Got = (u64, u32, bool);

impl Script {
    fn new(config: Config) -> Self {
        let mut script = Self {
            shim: Shim::new(config),
            reader: Reader::default(),
            flow: FlowId(3),
            initial: SeqNumber(u32::MAX - 1500),
            now: Instant::ZERO,
            clock: Some(1000),
            host_clock: 5,
            echo: 5,
        };
        script.open();
        script
    }

    /// Registered, everything allowed, with a window of 64 KB.
    fn registered(config: Config) -> Self {
        let mut script = Self::new(config);
        script.shim.register(script.key(), [7; 16]).unwrap();
        script.shim.allow(script.key(), 0, u64::MAX);
        script.ack(0);
        script
    }

    fn usual() -> Self {
        Self::registered(BY_TCP)
    }

    fn key(&self) -> FlowKey {
        FlowKey::simulated(self.flow, SERVER)
    }

    fn packet(&self, source: HostId, segment: Segment) -> Packet {
        let destination = if source == SERVER { HOST } else { SERVER };
        let ip = IpHeader { ecn: Ecn::Ce, ..IpHeader::default() };
        Packet { flow: self.flow, source, destination, ip, transport: Transport::Tcp(segment) }
    }

    fn open(&mut self) {
        let syn = Segment { flags: Flags::SYN, window_scale: Some(7), ..Segment::default() };
        self.shim.handle_up(self.now, &self.packet(HOST, syn));
        let answer =
            Segment { seq: self.initial, flags: Flags::SYN | Flags::ACK, window_scale: Some(2), ..syn };
        let answer = self.packet(SERVER, answer);
        let passed = self.shim.handle_down(self.now, answer.clone(), &mut self.reader);
        assert_eq!(passed, Some(answer), "a handshake passes as it is");
    }

    /// The host acknowledges `offset`, with a window of 512 * 128 bytes.
    fn ack(&mut self, offset: u64) {
        let segment = Segment {
            ack: self.number(offset),
            flags: Flags::ACK,
            window: 512,
            timestamps: self.clock.map(|echo_reply| Timestamps { value: self.host_clock, echo_reply }),
            ..Segment::default()
        };
        self.shim.handle_up(self.now, &self.packet(HOST, segment));
    }

    fn number(&self, offset: u64) -> SeqNumber {
        self.initial + 1 + offset as u32
    }

    fn text(&self, offset: u64, len: u32) -> Segment {
        Segment {
            seq: self.number(offset),
            ack: SeqNumber(77),
            payload_len: len,
            window: 99,
            flags: Flags::ACK | Flags::PSH,
            timestamps: self.clock.map(|value| Timestamps { value, echo_reply: self.echo }),
            ..Segment::default()
        }
    }

    /// Delivers a segment of `len` bytes at `offset`; returns the data that the host gets as a result.
    fn data(&mut self, offset: u64, len: u32) -> Vec<Got> {
        self.down(self.text(offset, len))
    }

    /// The same for complete segments with these numbers.
    fn segments(&mut self, numbers: impl IntoIterator<Item = u64>) -> Vec<Got> {
        numbers.into_iter().flat_map(|number| self.data(number * u64::from(MSS), MSS)).collect()
    }

    fn down(&mut self, segment: Segment) -> Vec<Got> {
        let packet = self.packet(SERVER, segment);
        self.clock = self.clock.map(|clock| clock + 1);
        let passed = self.shim.handle_down(self.now, packet.clone(), &mut self.reader);
        if let Some(passed) = passed {
            assert_eq!(passed, packet, "a packet passes unchanged");
            assert_eq!(self.shim.poll_down(), None);
            return vec![self.got(&passed)];
        }
        self.drained()
    }

    fn drained(&mut self) -> Vec<Got> {
        let mut all = Vec::new();
        while let Some(packet) = self.shim.poll_down() {
            all.push(self.got(&packet));
        }
        self.shim.check().unwrap();
        all
    }

    fn got(&self, packet: &Packet) -> Got {
        let Transport::Tcp(segment) = packet.transport else { panic!("TCP") };
        if segment.placeholder {
            assert_eq!((segment.flags, packet.ip.ecn), (Flags::ACK, Ecn::Ect0), "no PSH, no mark");
            assert_eq!((segment.window, segment.ack), (99, SeqNumber(77)), "as in the segment after it");
        }
        (u64::from(segment.seq - self.number(0)), segment.payload_len, segment.placeholder)
    }

    fn later(&mut self, time: Duration) -> Vec<Got> {
        self.now += time;
        self.shim.handle_timeout(self.now, &mut self.reader);
        self.drained()
    }

    fn take_messages(&mut self) -> Vec<ToReader> {
        std::mem::take(&mut self.reader.messages)
    }

    fn counters(&self) -> Counters {
        self.shim.counters()
    }
}

/// Segment `number` as sent; `placed` is a placeholder in its place.
fn sent(number: u64) -> Got {
    (number * u64::from(MSS), MSS, false)
}
fn placed(number: u64) -> Got {
    (number * u64::from(MSS), MSS, true)
}
fn hole(first: u64, end: u64) -> ToReader {
    Hole(first * u64::from(MSS), end * u64::from(MSS))
}

const MS: Duration = Duration::from_millis(1);

#[test]
fn a_hole_is_filled_at_once_and_told_before() {
    let mut script = Script::usual();
    assert_eq!(script.segments([0]), [sent(0)]);
    assert_eq!(script.segments([2]), [placed(1), sent(2)], "across the wrap of numbers");
    assert_eq!(script.take_messages(), [hole(1, 2)]);
    assert_eq!(script.segments([3]), [sent(3)]);
    let counters = script.counters();
    assert_eq!((counters.holes, counters.placeholders, counters.placeholder_bytes), (1, 1, 1000));
    assert_eq!((counters.segments, counters.lost_segments), (3, 1));
}

#[test]
fn the_order_of_telling_and_placing_is_that_of_the_calls() {
    // If the reader were informed only while the placeholder is generated, a reader on another thread would be informed
    // too late.
    struct Watches<'s>(&'s std::cell::Cell<bool>);
    impl Readers for Watches<'_> {
        fn hole(&mut self, _: FlowKey, _: u64, _: u64) -> bool {
            self.0.set(true);
            true
        }
        fn late(&mut self, _: FlowKey, _: u64, _: u64, _: &[u8]) {}
        fn switched(&mut self, _: FlowKey, _: bool) {}
    }
    let mut script = Script::usual();
    script.segments([0]);
    let informed = std::cell::Cell::new(false);
    let packet = script.packet(SERVER, script.text(2000, MSS));
    assert_eq!(script.shim.handle_down(script.now, packet, &mut Watches(&informed)), None);
    assert!(informed.get(), "before anything can be polled");
}

#[test]
fn placeholders_have_at_most_a_segment_and_the_stamps_of_what_follows() {
    let mut script = Script::usual();
    script.segments([0]);
    let packet = script.packet(SERVER, script.text(3500, MSS));
    assert_eq!(script.shim.handle_down(script.now, packet, &mut script.reader), None);
    let placed_packets: Vec<_> = std::iter::from_fn(|| script.shim.poll_down()).collect();
    let stamps = placed_packets.iter().map(|packet| match packet.transport {
        Transport::Tcp(segment) => segment.timestamps,
        _ => panic!("TCP"),
    });
    assert!(stamps.clone().all(|stamp| stamp == stamps.clone().next_back().unwrap() && stamp.is_some()));
    let got: Vec<_> = placed_packets.iter().map(|packet| script.got(packet)).collect();
    assert_eq!(got, [(1000, 1000, true), (2000, 1000, true), (3000, 500, true), (3500, 1000, false)]);
    assert_eq!(script.take_messages(), [Hole(1000, 3500)]);
}

#[test]
fn several_holes_in_a_round_trip_are_filled_one_by_one() {
    let mut script = Script::registered(expecting(500_000));
    assert_eq!(script.segments([0, 2, 4, 5]), [sent(0), placed(1), sent(2), placed(3), sent(4), sent(5)]);
    assert_eq!(script.take_messages(), [hole(1, 2), hole(3, 4)]);
}

#[test]
fn a_hole_at_the_tail_is_left_to_the_senders_timeout() {
    let mut script = Script::usual();
    script.segments([0, 1]);
    // Segment 2 is lost and nothing follows; the sender's timer retransmits it.
    assert_eq!(script.later(MS * 300), []);
    assert_eq!(script.segments([2]), [sent(2)]);
    assert_eq!(script.take_messages(), []);
}

#[test]
fn a_fin_shows_a_hole_and_is_never_placed_itself() {
    let mut script = Script::usual();
    script.segments([0]);
    let fin = Segment { flags: Flags::ACK | Flags::FIN, ..script.text(2000, 0) };
    assert_eq!(script.down(fin), [placed(1), (2000, 0, false)]);
    assert_eq!(script.take_messages(), [hole(1, 2)]);
    let mut lost_fin = Script::usual();
    lost_fin.segments([0]);
    assert_eq!(lost_fin.later(MS * 500), [], "the shim makes no missing FIN");
}

#[test]
fn late_originals_are_told_and_go_no_further() {
    let mut script = Script::usual();
    script.segments([0]);
    let late = script.text(1000, MSS);
    assert_eq!(script.segments([2]), [placed(1), sent(2)]);
    script.take_messages();
    assert_eq!(script.down(late), [], "TCP would answer with a duplicate ACK");
    assert_eq!(script.take_messages(), [Late(1000, 2000)]);
    assert_eq!(script.counters().swallowed_segments, 1);
}

#[test]
fn late_originals_are_known_behind_a_hole_that_tcp_repairs() {
    let mut script = Script::new(expecting(900_000));
    script.shim.register(script.key(), [7; 16]).unwrap();
    script.shim.allow(script.key(), 2000, u64::MAX);
    script.ack(0);
    assert_eq!(script.segments([0, 2]), [sent(0), sent(2)]);
    let late = script.text(3000, MSS);
    assert_eq!(script.segments([4]), [placed(3), sent(4)]);
    script.take_messages();
    assert_eq!(script.down(late), []);
    assert_eq!(script.take_messages(), [Late(3000, 4000)]);
    assert_eq!(script.segments([1, 6]), [sent(1), placed(5), sent(6)]);
}

#[test]
fn retransmissions_ask_for_an_ack_and_pass() {
    let mut script = Script::usual();
    script.segments([0, 2]);
    script.take_messages();
    assert_eq!(script.segments([1]), [sent(1)], "its stamp is later than that of the segment after the hole");
    assert_eq!(script.take_messages(), [Late(1000, 2000)]);
    // Without timestamps they cannot be distinguished, so the segment passes.
    let mut script = Script::usual();
    script.clock = None;
    script.segments([0, 2]);
    assert_eq!(script.segments([1]), [sent(1)]);
}

#[test]
fn resegmented_text_is_told_where_it_was_missing_and_passes_where_it_is_new() {
    let mut script = Script::usual();
    script.segments([0, 2]);
    script.take_messages();
    assert_eq!(script.data(1500, 2000), [(1500, 2000, false)]);
    assert_eq!(script.take_messages(), [Late(1500, 2000)]);
    assert_eq!(script.data(3500, MSS), [(3500, MSS, false)], "nothing is missing");
    assert_eq!(script.take_messages(), []);
}

#[test]
fn overlapping_and_repeated_text_shows_no_hole() {
    let mut script = Script::usual();
    script.segments([0]);
    assert_eq!(script.data(500, MSS), [(500, MSS, false)]);
    assert_eq!(script.data(500, MSS), [(500, MSS, false)]);
    assert_eq!(script.data(1500, MSS), [(1500, MSS, false)]);
    assert_eq!(script.take_messages(), []);
    assert_eq!(script.counters().lost_segments, 0);
}

#[test]
fn within_the_settling_time_reordering_is_no_hole() {
    let mut script = Script::registered(Config { settle: MS * 5, ..BY_TCP });
    assert_eq!(script.segments([0]), [sent(0)]);
    assert_eq!(script.segments([2, 3]), []);
    assert_eq!(script.later(MS * 4), []);
    assert_eq!(script.segments([1]), [sent(1), sent(2), sent(3)]);
    assert_eq!(script.take_messages(), []);
    assert_eq!((script.counters().reordered_segments, script.counters().lost_segments), (2, 0));
    // A hole that remains is filled after its settling time, and waiting segments follow in order.
    assert_eq!(script.segments([6, 5, 8]), []);
    assert_eq!(script.shim.poll_timeout(), Some(script.now + MS * 5));
    assert_eq!(script.later(MS * 5), [placed(4), sent(5), sent(6), placed(7), sent(8)]);
    assert_eq!(script.take_messages(), [hole(4, 5), hole(7, 8)]);
    assert_eq!(script.shim.poll_timeout(), None);
}

#[test]
fn nothing_is_filled_outside_what_is_allowed() {
    let mut script = Script::new(expecting(900_000));
    script.shim.register(script.key(), [7; 16]).unwrap();
    script.ack(0);
    script.segments([0]);
    script.shim.allow(script.key(), 5000, 6000);
    script.shim.allow(script.key(), 6000, 7500);
    assert_eq!(script.segments([2]), [sent(2)], "TCP repairs it");
    assert_eq!(script.segments([4]), [sent(4)], "and this");
    assert_eq!(
        script.segments([7]),
        [placed(5), placed(6), sent(7)],
        "despite the bytes that TCP repairs before it"
    );
    assert_eq!(script.segments([1, 3, 4]), [sent(1), sent(3), sent(4)]);
    assert_eq!(script.segments([9]), [sent(9)], "half of 8 is not allowed");
    assert_eq!(script.take_messages(), [hole(5, 7)]);
    assert_eq!(script.counters().other_holes, 3);
}

#[test]
fn nothing_is_filled_beyond_the_window() {
    let mut script = Script::usual();
    script.segments([0]);
    // The window ends at 65,536.
    assert_eq!(script.data(65_537, MSS), [(65_537, MSS, false)]);
    assert_eq!(script.take_messages(), []);
    assert_eq!(script.data(1000, MSS), [(1000, MSS, false)], "data that the host drops moves nothing");
    assert_eq!(script.data(3000, MSS), [(2000, 1000, true), (3000, MSS, false)]);
}

#[test]
fn a_closed_window_and_probes_show_no_hole() {
    let mut script = Script::usual();
    script.segments([0]);
    let shut = Segment { ack: script.number(1000), flags: Flags::ACK, ..Segment::default() };
    script.shim.handle_up(script.now, &script.packet(HOST, shut));
    for probe in [script.text(999, 0), script.text(999, 1), script.text(5000, 0)] {
        let offset = u64::from(probe.seq - script.number(0));
        assert_eq!(
            script.down(probe),
            [(offset, probe.payload_len, false)],
            "a keep-alive or a window probe"
        );
    }
    assert_eq!(script.take_messages(), []);
}

#[test]
fn the_garbage_of_a_keep_alive_is_not_told_as_true() {
    let mut script = Script::usual();
    script.segments([0]);
    let text = script.text(2000, 1);
    assert_eq!(script.down(text), [placed(1), (2000, 1, false)]);
    script.take_messages();
    let garbage = script.text(1999, 1);
    assert_eq!(script.down(garbage), [(1999, 1, false)]);
    assert_eq!(script.take_messages(), []);
}

#[test]
fn a_sender_that_skips_bytes_gets_no_more_than_the_caps() {
    let caps = Config { most_holes: 2, most_hole_bytes: Bytes(5000), ..expecting(1_000_000) };
    let mut script = Script::registered(caps);
    script.segments([0]);
    assert_eq!(script.data(7000, MSS), [(7000, MSS, false)], "6 segments at once");
    assert_eq!(script.take_messages(), []);
    let mut script = Script::registered(caps);
    script.segments([0, 2, 4, 6]);
    assert_eq!(script.take_messages(), [hole(1, 2), hole(3, 4)], "a third is TCP's");
    assert_eq!(script.counters().capped_holes, 1);
    script.segments([5]);
    script.shim.repaired(script.key(), 1000, 2000);
    assert_eq!(script.segments([8]), [placed(7), sent(8)], "one was repaired");
    script.segments([10, 9]);
    script.now += BY_TCP.patience;
    assert_eq!(script.segments([12]), [placed(11), sent(12)], "the others are given up");
}

#[test]
fn losses_that_the_link_does_not_explain_are_left_to_tcp() {
    let mut script = Script::registered(Config { margin_tenths: 0, ..BY_TCP });
    script.segments((0..20).filter(|number| number % 5 != 1));
    assert_eq!(script.take_messages().len(), 4, "the round trip is not over");
    script.now += MS * 40;
    assert_eq!(script.segments([20]), [sent(20)]);
    assert_eq!(script.take_messages(), [Switched(false)]);
    assert_eq!(script.segments([22]), [sent(22)], "duplicate ACKs leave");
    assert_eq!(script.counters().congested_holes, 1);
    // TCP repairs the holes, and after a round trip with few losses the switch is on again.
    script.segments(std::iter::once(21).chain(23..40));
    script.now += MS * 40;
    assert_eq!(script.segments([40, 42]), [sent(40), placed(41), sent(42)]);
    assert_eq!(script.take_messages(), [Switched(true), hole(41, 42)]);
}

#[test]
fn a_link_without_errors_explains_no_hole() {
    let mut script = Script::registered(expecting(0));
    assert_eq!(script.segments([0, 2]), [sent(0), sent(2)]);
    assert_eq!((script.take_messages(), script.counters().congested_holes), (vec![], 1));
}

#[test]
fn a_hole_that_cannot_be_told_is_not_filled() {
    let mut script = Script::usual();
    script.reader.deaf = true;
    assert_eq!(script.segments([0, 2]), [sent(0), sent(2)]);
    assert_eq!(script.counters().untold_holes, 1);
}

#[test]
fn a_reset_goes_through_and_ends_it() {
    let mut script = Script::registered(Config { settle: MS * 5, ..BY_TCP });
    script.segments([0, 2]);
    let reset = Segment { flags: Flags::RST, ..script.text(3000, 0) };
    assert_eq!(script.down(reset), [sent(2), (3000, 0, false)]);
    assert_eq!(script.segments([5]), [sent(5)], "of no flow any more");
}

#[test]
fn another_connection_between_the_same_ends_is_not_registered() {
    let mut script = Script::usual();
    script.segments([0]);
    script.open();
    assert_eq!(script.segments([2]), [placed(1), sent(2)], "a SYN sent again changes nothing");
    script.initial = SeqNumber(5);
    script.open();
    assert_eq!(script.segments([0, 2]), [sent(0), sent(2)]);
}

#[test]
fn flows_that_nobody_registered_pass_as_they_are() {
    let mut script = Script::new(BY_TCP);
    script.shim.allow(script.key(), 0, u64::MAX);
    assert_eq!(script.segments([0, 2, 1, 9]), [sent(0), sent(2), sent(1), sent(9)]);
    assert_eq!(script.counters(), Counters::default());
}

#[test]
fn two_flows_have_each_their_own_holes() {
    let mut script = Script::usual();
    script.segments([0]);
    (script.flow, script.initial) = (FlowId(4), SeqNumber(9));
    script.open();
    script.shim.register(script.key(), [8; 16]).unwrap();
    script.shim.allow(script.key(), 0, u64::MAX);
    script.ack(0);
    assert_eq!(script.segments([0, 3]), [sent(0), placed(1), placed(2), sent(3)]);
    (script.flow, script.initial) = (FlowId(3), SeqNumber(u32::MAX - 1500));
    assert_eq!(script.segments([1]), [sent(1)]);
}

#[test]
fn a_reader_that_stops_or_goes_away_gets_no_more_placeholders() {
    let mut script = Script::usual();
    script.segments([0]);
    script.shim.stop(script.key());
    assert_eq!(script.segments([2, 1]), [sent(2), sent(1)]);
    let mut script = Script::registered(Config { settle: MS * 5, ..BY_TCP });
    script.segments([0, 2]);
    script.shim.unregister(script.key());
    assert_eq!(script.drained(), [sent(2)], "the segment that waited goes on");
    assert_eq!(script.segments([4]), [sent(4)]);
}

#[test]
fn a_refused_registration_says_why() {
    let mut script = Script::new(Config { flows: 1, ..BY_TCP });
    let other = FlowKey::simulated(FlowId(9), SERVER);
    assert_eq!(script.shim.register(other, [0; 16]), Err(Refusal::Elsewhere));
    script.shim.register(script.key(), [0; 16]).unwrap();
    assert_eq!(script.shim.register(script.key(), [0; 16]), Err(Refusal::Taken));
    assert_eq!(script.shim.register(other, [0; 16]), Err(Refusal::Room));
}

/// Segment numbers beyond 2^31 and beyond 2^32 bytes.
const FAR: [u64; 2] = [3_000_000, 5_000_000];

impl Script {
    /// The host acknowledges everything up to segment `number` in steps, because no host's window is 2 GiB.
    fn proceed(&mut self, from: u64, number: u64) {
        for number in (from..number).step_by(500_000).chain([number]) {
            self.ack(number * u64::from(MSS));
        }
    }

    /// Registers the flow, and loses segment `number` + 1.
    fn register_and_lose(&mut self, number: u64) {
        self.shim.register(self.key(), [7; 16]).unwrap();
        self.shim.allow(self.key(), 0, u64::MAX);
        self.ack(number * u64::from(MSS));
        let got = self.segments([number, number + 2]);
        assert_eq!(got.iter().map(|got| got.2).collect::<Vec<_>>(), [false, true, false]);
        assert_eq!(self.take_messages(), [hole(number + 1, number + 2)]);
    }
}

#[test]
fn a_connection_that_is_far_may_be_registered() {
    for far in FAR {
        let mut script = Script::new(BY_TCP);
        script.proceed(0, far);
        // A repeated SYN arrives late, without effect.
        script.open();
        script.register_and_lose(far);
    }
}

#[test]
fn a_connection_may_be_registered_again() {
    for far in FAR {
        let mut script = Script::usual();
        assert_eq!(script.segments([0, 2]), [sent(0), placed(1), sent(2)]);
        assert_eq!(script.take_messages(), [hole(1, 2)]);
        script.shim.repaired(script.key(), 0, 3 * u64::from(MSS));
        script.shim.unregister(script.key());
        script.proceed(3, far);
        script.register_and_lose(far);
        // While the flow is registered the shim knows the position itself.
        script.proceed(far + 3, 2 * far);
        script.shim.repaired(script.key(), 0, u64::MAX);
        script.shim.unregister(script.key());
        script.register_and_lose(2 * far);
    }
}

#[test]
fn a_flow_that_left_placeholders_behind_may_not_register_again() {
    let mut script = Script::usual();
    script.segments([0, 2]);
    script.shim.unregister(script.key());
    assert_eq!(script.shim.register(script.key(), [7; 16]), Err(Refusal::Elsewhere));
    let mut script = Script::usual();
    script.shim.fail(script.key());
    script.shim.unregister(script.key());
    assert_eq!(script.shim.register(script.key(), [7; 16]), Err(Refusal::Elsewhere), "it is being reset");
    let mut script = Script::usual();
    script.segments([0]);
    script.down(Segment { flags: Flags::RST, ..script.text(1000, 0) });
    assert_eq!(script.shim.register(script.key(), [7; 16]), Err(Refusal::Elsewhere), "it is gone");
}

#[test]
fn the_oldest_handshake_makes_room() {
    let mut script = Script::new(Config { flows: 1, ..BY_TCP });
    for flow in 4..8 {
        script.flow = FlowId(flow);
        script.open();
    }
    let register = |script: &mut Script, flow| {
        script.flow = FlowId(flow);
        script.shim.register(script.key(), [0; 16])
    };
    assert_eq!(register(&mut script, 3), Err(Refusal::Elsewhere));
    assert_eq!(register(&mut script, 4), Ok(()));
}

#[test]
fn before_the_host_has_said_where_it_stands_nothing_is_missing() {
    let mut script = Script::new(expecting(900_000));
    script.shim.register(script.key(), [7; 16]).unwrap();
    script.shim.allow(script.key(), 0, u64::MAX);
    assert_eq!(script.segments([0, 2]), [sent(0), sent(2)]);
    script.ack(1000);
    assert_eq!(script.segments([1]), [sent(1)], "TCP repairs it");
    assert_eq!(script.segments([4]), [placed(3), sent(4)]);
}

#[test]
fn failing_resets_the_connection_at_the_host() {
    let mut script = Script::usual();
    script.segments([0, 2]);
    script.shim.fail(script.key());
    let reset = script.shim.poll_down().unwrap();
    let Transport::Tcp(segment) = reset.transport else { panic!("TCP") };
    assert_eq!((segment.seq, segment.flags), (script.number(3000), Flags::RST));
    assert_eq!((reset.source, reset.destination), (SERVER, HOST));
    // A host that dropped the reset answers with the number that it expects (RFC 5961).
    script.ack(1000);
    assert_eq!(script.drained(), [(1000, 0, false)]);
    assert_eq!(script.counters().failed_flows, 1);
    assert_eq!(script.segments([4]), [sent(4)], "no more placeholders");
}

#[test]
fn where_the_driver_says_what_the_link_lost_no_statistics_are_needed() {
    let mut script = Script::registered(Config::USUAL);
    let after = |script: &mut Script, lost, number| {
        script.shim.link_lost(lost);
        script.segments([number])
    };
    after(&mut script, 0, 0);
    assert_eq!(after(&mut script, 1, 2), [placed(1), sent(2)], "the link lost the missing segment");
    assert_eq!(after(&mut script, 0, 4), [sent(4)], "it did not");
    after(&mut script, 0, 3);
    assert_eq!(after(&mut script, 1, 7), [sent(7)], "nor all of it");
    after(&mut script, 0, 5);
    after(&mut script, 0, 6);
    assert_eq!(script.counters().congested_holes, 2);
    // Lost frames of one flow may be missing before another flow's packet.
    script.shim.link_lost(2);
    assert_eq!(after(&mut script, 0, 10), [placed(8), placed(9), sent(10)]);
    assert_eq!(script.counters().switched_off, 0, "at any loss rate");
}

#[test]
fn reports_of_the_driver_decide_for_settled_holes() {
    let config = Config { placeholders: Placeholders::Driver, settle: MS * 5, ..BY_TCP };
    let mut script = Script::registered(config);
    script.segments([0]);
    script.shim.link_lost(1);
    assert_eq!(script.segments([2]), [], "it waits");
    script.shim.link_lost(0);
    assert_eq!(script.segments([3, 5]), []);
    // Retransmitted by the access point: no frame is missing before it.
    assert_eq!(script.segments([1]), [sent(1), sent(2), sent(3)]);
    assert_eq!(script.later(MS * 5), [sent(5)], "4 is congestion's: no frame was missing before 5");
}
