//! Invariants of FWP's shim under any input.

use proptest::prelude::*;
use tacit_between::fwp::{Config, Placeholders, Readers, Shim};
use tacit_packet::tcp::{Flags, Segment, Timestamps};
use tacit_packet::units::{Bytes, Duration, FlowId, HostId, Instant, SeqNumber};
use tacit_packet::{FlowKey, IpHeader, Packet, Transport};

const WINDOW: u16 = 600;
const STREAM: usize = 4000;

/// The next event.
#[derive(Clone, Debug)]
enum Step {
    /// Data of the stream arrives, first or again, and the link lost `missing` frames before it.
    Text {
        offset: u32,
        len: u32,
        fin: bool,
        stamp: u8,
        missing: u8,
    },
    /// The host acknowledges everything it has.
    Ack,
    Allow(u32, u32),
    Repaired(u32, u32),
    /// This number of ms passes.
    Wait(u8),
    /// From now on the reader cannot be informed, or can be again.
    Deaf(bool),
    Stop,
}

fn step() -> impl Strategy<Value = Step> {
    let offset = 0_u32..STREAM as u32;
    prop_oneof![
        8 => (offset.clone(), 0_u32..300, prop::bool::weighted(0.02), any::<u8>(), 0_u8..4).prop_map(
            |(offset, len, fin, stamp, missing)| Step::Text { offset, len, fin, stamp, missing },
        ),
        3 => Just(Step::Ack),
        1 => (offset.clone(), 0_u32..4000).prop_map(|(start, len)| Step::Allow(start, start + len)),
        1 => (offset, 0_u32..500).prop_map(|(start, len)| Step::Repaired(start, start + len)),
        2 => any::<u8>().prop_map(Step::Wait),
        1 => any::<bool>().prop_map(Step::Deaf),
        1 => prop::bool::weighted(0.1).prop_map(|stops| if stops { Step::Stop } else { Step::Ack }),
    ]
}

/// Data in a sender's order, some of it lost, duplicated or late: the cases in which a shim has most to do.
fn stream() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec((prop::bool::weighted(0.8), 0_u8..4, 1_u32..200), 1..60).prop_map(|sent| {
        let mut steps = vec![Step::Allow(0, STREAM as u32)];
        let (mut offset, mut late) = (0, Vec::new());
        for (stamp, (arrives, kind, len)) in (0..).zip(sent) {
            let text = Step::Text { offset, len, fin: false, stamp, missing: kind };
            match (arrives, kind) {
                (true, 0) => steps.extend([text.clone(), text]),
                (true, _) => steps.push(text),
                (false, 0) => late.push(text),
                (false, _) => {}
            }
            if kind == 3 {
                steps.extend(late.drain(..).chain([Step::Ack, Step::Wait(kind)]));
            }
            offset += len;
        }
        steps
    })
}

/// One byte of the stream at the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Byte {
    allowed: bool,
    announced: bool,
    placed: u32,
    /// The host's TCP has it, and the source of its first copy: sender or shim.
    has: bool,
    first_was_placed: bool,
    sent: bool,
}

#[derive(Debug)]
struct Host {
    bytes: Vec<Byte>,
    deaf: bool,
    edge: usize,
}

impl Readers for Host {
    fn hole(&mut self, _: FlowKey, start: u64, end: u64) -> bool {
        if self.deaf {
            return false;
        }
        for byte in &mut self.bytes[start as usize..end as usize] {
            assert!(byte.allowed, "{start}..{end} is not allowed");
            assert!(!byte.announced, "{start}..{end} was announced before");
            byte.announced = true;
        }
        true
    }
    fn late(&mut self, _: FlowKey, start: u64, end: u64, _: &[u8]) {
        let text = &self.bytes[start as usize..end as usize];
        assert!(text.iter().all(|byte| byte.announced), "{start}..{end} was no hole");
    }
    fn switched(&mut self, _: FlowKey, _: bool) {}
}

impl Host {
    fn takes(&mut self, packet: &Packet, first: SeqNumber) {
        let Transport::Tcp(segment) = packet.transport else { panic!("TCP") };
        let start = (segment.seq - first) as usize;
        for (place, byte) in self.bytes.iter_mut().enumerate().skip(start).take(segment.payload_len as usize)
        {
            if segment.placeholder {
                assert!(byte.announced, "byte {place} was announced before");
                assert!(place < self.edge, "byte {place} is in the window");
                byte.placed += 1;
                assert_eq!(byte.placed, 1, "byte {place} is placed once");
            } else {
                assert!(byte.sent, "byte {place} was sent");
            }
            if !byte.has && place < self.edge {
                byte.has = true;
                byte.first_was_placed = segment.placeholder;
            }
        }
    }

    fn next(&self) -> usize {
        self.bytes.iter().position(|byte| !byte.has).unwrap_or(self.bytes.len())
    }
}

fn obeys(config: Config, initial: u32, steps: &[Step]) {
    let (flow, server, client) = (FlowId(1), HostId(0), HostId(1));
    let key = FlowKey::simulated(flow, server);
    let first = SeqNumber(initial) + 1;
    let packet = |source: HostId, segment| Packet {
        flow,
        source,
        destination: if source == server { client } else { server },
        ip: IpHeader::default(),
        transport: Transport::Tcp(segment),
    };
    let mut shim: Shim<Packet> = Shim::new(config);
    let mut host = Host { bytes: vec![Byte::default(); 2 * STREAM], deaf: false, edge: usize::from(WINDOW) };
    let mut now = Instant::ZERO;
    let syn = Segment { seq: SeqNumber(initial), flags: Flags::SYN, ..Segment::default() };
    shim.handle_down(now, packet(server, syn), &mut host);
    shim.register(key, [1; 16]).unwrap();
    let mut stopped = false;
    for step in std::iter::once(&Step::Ack).chain(steps) {
        match *step {
            Step::Text { offset, len, fin, stamp, missing } => {
                let flags = if fin { Flags::ACK | Flags::FIN } else { Flags::ACK };
                let timestamps = (stamp > 9).then(|| Timestamps { value: stamp.into(), echo_reply: 0 });
                let segment = Segment { seq: first + offset, payload_len: len, flags, timestamps, ..syn };
                let text = offset as usize..(offset + len) as usize;
                shim.link_lost(missing.into());
                host.bytes[text].iter_mut().for_each(|byte| byte.sent = true);
                if let Some(passed) = shim.handle_down(now, packet(server, segment), &mut host) {
                    host.takes(&passed, first);
                }
            }
            Step::Ack => {
                let next = host.next();
                host.edge = host.edge.max(next + usize::from(WINDOW));
                let ack = first + next as u32;
                let segment = Segment { ack, flags: Flags::ACK, window: WINDOW, ..Segment::default() };
                shim.handle_up(now, &packet(client, segment));
            }
            Step::Allow(start, end) => {
                shim.allow(key, start.into(), end.into());
                let end = (end as usize).min(host.bytes.len());
                host.bytes[(start as usize).min(end)..end].iter_mut().for_each(|byte| byte.allowed = true);
            }
            Step::Repaired(start, end) => shim.repaired(key, start.into(), end.into()),
            Step::Wait(ms) => now += Duration::from_millis(ms.into()),
            Step::Deaf(deaf) => host.deaf = deaf,
            Step::Stop => {
                shim.stop(key);
                stopped = true;
            }
        }
        if shim.poll_timeout().is_some_and(|due| due <= now) {
            shim.handle_timeout(now, &mut host);
        }
        let placed_before = host.bytes.iter().filter(|byte| byte.placed > 0).count();
        while let Some(passed) = shim.poll_down() {
            host.takes(&passed, first);
        }
        let placed = host.bytes.iter().filter(|byte| byte.placed > 0).count();
        assert!(!stopped || placed == placed_before, "no flow wants placeholders any more");
        assert_eq!(placed, host.bytes.iter().filter(|byte| byte.announced).count(), "announced is placed");
        assert!(host.bytes.iter().all(|byte| !byte.first_was_placed || byte.announced));
        shim.check().unwrap();
        assert_eq!(shim.counters().placeholder_bytes, placed as u64);
    }
}

fn config() -> impl Strategy<Value = Config> {
    let overdue = prop_oneof![Just(0_u32), Just(1), Just(150)];
    let margin = prop_oneof![Just(0_u32), Just(30), Just(10_000)];
    let placeholders = prop_oneof![
        1 => Just((Placeholders::Driver, None)),
        2 => prop::option::of(0_u32..1_000_000).prop_map(|expected_ppm| (Placeholders::Tcp, expected_ppm)),
    ];
    (0_u64..20, margin, overdue, 1_u32..40, 1_u64..4000, placeholders).prop_map(
        |(settle, margin_tenths, overdue_percent, most_holes, bytes, (placeholders, expected_ppm))| Config {
            settle: Duration::from_millis(settle.saturating_sub(10)),
            margin_tenths,
            overdue_percent,
            most_holes,
            most_hole_bytes: Bytes(bytes),
            placeholders,
            expected_ppm,
            ..Config::USUAL
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn each_byte_is_placed_once_announced_allowed_and_in_the_window(
        config in config(),
        initial in prop_oneof![any::<u32>(), Just(u32::MAX - 1000)],
        steps in prop::collection::vec(step(), 1..80),
    ) {
        obeys(config, initial, &steps);
    }

    #[test]
    fn a_stream_with_losses_doubles_and_late_segments_obeys_too(
        config in config(),
        steps in stream().prop_filter("within the stream", |steps| steps.iter().all(|step| {
            !matches!(step, Step::Text { offset, len, .. } if offset + len > 2 * STREAM as u32)
        })),
    ) {
        obeys(config, 0, &steps);
    }
}
