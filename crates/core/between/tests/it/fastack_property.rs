//! FastACK's agent with random losses everywhere: in the air, behind the client's NIC, on the uplink, and on the wire.

use std::collections::VecDeque;

use proptest::prelude::*;
use tacit_between::fastack::{Agent, Config, Verdict};
use tacit_packet::tcp::{Flags, SackBlocks, SackRange, Segment, Timestamps};
use tacit_packet::units::{Bytes, Duration, FlowId, HostId, Instant, SeqNumber};
use tacit_packet::{IpHeader, Packet, Transport};

const SENDER: HostId = HostId(0);
const CLIENT: HostId = HostId(2);
const LEN: u32 = 100;
/// Segments the client's buffer holds.
const WINDOW: u32 = 30;
/// The sequence numbers wrap early.
const FIRST: SeqNumber = SeqNumber(u32::MAX - 2_000);

/// The next event.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// The sender sends this number of new segments, within the window.
    Send(u32),
    /// The link decides on the next `count` packets. Bit i of `acknowledged` says whether the i-th is acknowledged, and
    /// bit i of `taken` whether the client's host accepts it.
    Air { count: u32, acknowledged: u8, taken: u8 },
    /// The client's next packet arrives at the access point, or is lost.
    Up { lost: bool },
    /// Two packets of the client are swapped.
    Overtake,
    /// The next packet arrives at the sender, or is lost on the wire.
    Wire { lost: bool },
    /// This number of milliseconds passes.
    Wait(u64),
    /// The sender retransmits data that is not acknowledged.
    Repeat,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1_u32..8).prop_map(Step::Send),
        5 => (1_u32..8, any::<u8>(), any::<u8>(), any::<u8>())
            .prop_map(|(count, a, b, taken)| Step::Air { count, acknowledged: a | b, taken }),
        4 => (0_u8..6).prop_map(|draw| Step::Up { lost: draw == 0 }),
        1 => Just(Step::Overtake),
        4 => (0_u8..6).prop_map(|draw| Step::Wire { lost: draw == 0 }),
        1 => (1_u64..400).prop_map(Step::Wait),
        1 => Just(Step::Repeat),
    ]
}

/// Both ends, the link between them, and the state for the invariants.
struct World {
    agent: Agent,
    config: Config,
    now: Instant,
    /// At the sender, in segments: sent, acknowledged, and the end of the window.
    sent: u32,
    heard: u32,
    edge: u32,
    air: VecDeque<Segment>,
    up: VecDeque<Segment>,
    wire: VecDeque<Segment>,
    /// Which segments the client's NIC acknowledged, and which its TCP has.
    at_nic: Vec<bool>,
    at_client: Vec<bool>,
    sack: bool,
    clock: u32,
    /// The latest timestamp of the client that was forwarded, and the highest number in a forged ACK.
    clock_up: u32,
    number_up: u32,
}

impl World {
    fn new(sack: bool, config: Config) -> Self {
        let mut world = Self {
            agent: Agent::new(config),
            config,
            now: Instant::ZERO,
            sent: 0,
            heard: 0,
            edge: WINDOW,
            air: VecDeque::new(),
            up: VecDeque::new(),
            wire: VecDeque::new(),
            at_nic: Vec::new(),
            at_client: Vec::new(),
            sack,
            clock: 1,
            clock_up: 0,
            number_up: 0,
        };
        let syn = Segment { seq: FIRST - 1, flags: Flags::SYN, ..world.segment(0) };
        let syn = Segment { payload_len: 0, ..syn };
        let (agent, down) = (&mut world.agent, packet(SENDER, CLIENT, syn));
        assert_eq!(agent.handle_downlink(Instant::ZERO, &down), Verdict::Pass);
        let answer = Segment { flags: Flags::SYN | Flags::ACK, ack: FIRST, seq: SeqNumber(0), ..world.ack() };
        let up = packet(CLIENT, SENDER, answer);
        assert_eq!(world.agent.handle_uplink(Instant::ZERO, &up), Verdict::Pass);
        world
    }

    fn segment(&self, number: u32) -> Segment {
        Segment {
            seq: FIRST + number * LEN,
            ack: SeqNumber(1),
            payload_len: LEN,
            flags: Flags::ACK,
            timestamps: Some(Timestamps { value: self.clock, echo_reply: self.clock }),
            ..Segment::default()
        }
    }

    fn has(&self) -> u32 {
        self.at_client.iter().take_while(|has| **has).count() as u32
    }

    fn at_nic(&self) -> u32 {
        self.at_nic.iter().take_while(|has| **has).count() as u32
    }

    /// The client's current ACK.
    fn ack(&self) -> Segment {
        let mut sack = SackBlocks::EMPTY;
        let mut number = self.has() as usize;
        while self.sack && number < self.at_client.len() && sack.as_slice().len() < 3 {
            let held = self.at_client[number..].iter().take_while(|has| **has).count();
            if held > 0 {
                let edges = [number, number + held].map(|edge| FIRST + edge as u32 * LEN);
                sack.push(SackRange { start: edges[0], end: edges[1] });
            }
            number += held.max(1);
        }
        Segment {
            seq: SeqNumber(1),
            ack: FIRST + self.has() * LEN,
            window: (WINDOW * LEN) as u16,
            flags: Flags::ACK,
            timestamps: Some(Timestamps { value: self.clock, echo_reply: self.clock }),
            sack,
            ..Segment::default()
        }
    }

    fn send(&mut self, number: u32) {
        let segment = self.segment(number);
        if self.agent.handle_downlink(self.now, &packet(SENDER, CLIENT, segment)) == Verdict::Pass {
            self.air.push_back(segment);
        }
        self.drain();
    }

    fn air(&mut self, count: u32, acknowledged: u8, taken: u8) {
        let count = (count as usize).min(self.air.len());
        for index in 0..count {
            let segment = self.air.pop_front().unwrap();
            let arrived = acknowledged >> (index % 8) & 1 != 0;
            let number = ((segment.seq - FIRST) / LEN) as usize;
            if arrived {
                self.at_nic[number] = true;
            }
            let down = packet(SENDER, CLIENT, segment);
            self.agent.handle_fate(self.now, &down, arrived, index + 1 == count);
            if arrived && taken >> (index % 8) & 1 != 0 {
                self.at_client[number] = true;
                self.up.push_back(self.ack());
            }
        }
        self.drain();
    }

    fn up(&mut self, lost: bool) {
        let Some(segment) = self.up.pop_front().filter(|_| !lost) else { return };
        match self.agent.handle_uplink(self.now, &packet(CLIENT, SENDER, segment)) {
            // Its own packets may overtake each other, with or without an agent.
            Verdict::Pass => self.check_upward(segment, false),
            Verdict::Drop => {}
            Verdict::Replace(packet) => self.check_upward(segment_of(&packet), true),
        }
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(packet) = self.agent.poll_up() {
            self.check_upward(segment_of(&packet), true);
        }
        while let Some(packet) = self.agent.poll_down() {
            self.air.push_back(segment_of(&packet));
        }
        self.agent.check().unwrap();
        let kept = self.agent.counters().cached_segments_max * u64::from(LEN);
        assert!(kept <= self.config.cache.0, "{kept} bytes are kept");
    }

    /// Checks that the sender gets only true information.
    fn check_upward(&mut self, segment: Segment, rewritten: bool) {
        let number = (segment.ack - FIRST) / LEN;
        assert!(number <= self.at_nic(), "{number} acknowledged, {} at the NIC", self.at_nic());
        assert!(number >= self.number_up, "{number} after {}", self.number_up);
        let end = (segment.ack + u32::from(segment.window) - FIRST) / LEN;
        assert!(end <= self.has() + WINDOW, "a window to {end}, where the client has {}", self.has());
        let clock = segment.timestamps.unwrap().value;
        assert!(
            !rewritten || clock >= self.clock_up,
            "the clock goes back from {} to {clock}",
            self.clock_up
        );
        for block in segment.sack.as_slice() {
            let [start, end] = [block.start, block.end].map(|edge| ((edge - FIRST) / LEN) as usize);
            assert!(self.at_client[start..end].iter().all(|has| *has), "a block the client has not");
            assert!(block.start.after(segment.ack), "a block below the number");
        }
        (self.number_up, self.clock_up) = (number, self.clock_up.max(clock));
        self.wire.push_back(segment);
    }

    fn wire(&mut self, lost: bool) {
        let Some(segment) = self.wire.pop_front().filter(|_| !lost) else { return };
        self.heard = self.heard.max((segment.ack - FIRST) / LEN);
        self.edge = (segment.ack + u32::from(segment.window) - FIRST) / LEN;
    }

    fn step(&mut self, step: Step) {
        self.clock += 1;
        match step {
            Step::Send(count) => {
                for _ in 0..count {
                    if self.sent < self.edge {
                        self.at_nic.push(false);
                        self.at_client.push(false);
                        self.sent += 1;
                        self.send(self.sent - 1);
                    }
                }
            }
            Step::Air { count, acknowledged, taken } => self.air(count, acknowledged, taken),
            Step::Up { lost } => self.up(lost),
            Step::Overtake if self.up.len() > 1 => self.up.swap(0, 1),
            Step::Overtake => {}
            Step::Wire { lost } => self.wire(lost),
            Step::Wait(millis) => {
                self.now += Duration::from_millis(millis);
                self.agent.handle_timeout(self.now);
                self.drain();
            }
            Step::Repeat if self.heard < self.sent => self.send(self.heard),
            Step::Repeat => {}
        }
    }

    /// From now on nothing is lost; checks that neither end waits forever.
    fn finish(&mut self) {
        for _ in 0..2_000 {
            while !self.air.is_empty() {
                self.step(Step::Air { count: 8, acknowledged: 0xff, taken: 0xff });
            }
            while !self.up.is_empty() {
                self.step(Step::Up { lost: false });
            }
            while !self.wire.is_empty() {
                self.step(Step::Wire { lost: false });
            }
            if self.has() == self.sent && self.heard == self.sent {
                return;
            }
            self.step(Step::Wait(500));
            self.step(Step::Repeat);
        }
        panic!("{} sent, the sender heard of {}, the client has {}", self.sent, self.heard, self.has());
    }
}

fn packet(source: HostId, destination: HostId, segment: Segment) -> Packet {
    let ip = IpHeader::default();
    Packet { flow: FlowId(0), source, destination, ip, transport: Transport::Tcp(segment) }
}

fn segment_of(packet: &Packet) -> Segment {
    let Transport::Tcp(segment) = packet.transport else { panic!("TCP") };
    segment
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// No byte is acknowledged that is not at the client's NIC; the ACKs that the sender gets never go back and never
    /// exceed the client's window; and in the end both ends have everything.
    #[test]
    fn nothing_untrue_is_said_and_nothing_is_lost(
        sack in any::<bool>(),
        most in prop_oneof![Just(200_u64), Just(1_000), Just(1 << 20)],
        every in 1_u32..4,
        steps in prop::collection::vec(step(), 1..200),
    ) {
        let config = Config { cache: Bytes(most), ack_every: every, tries: 1_000, ..Config::USUAL };
        let mut world = World::new(sack, config);
        for step in steps {
            world.step(step);
        }
        world.finish();
    }
}
