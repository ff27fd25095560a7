//! The thinner decides identically in Rust and in the C code that runs in the kernel: all verdicts, what packets are read as,
//! and the whole state are equal.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod compiled;

use std::fs::File;
use std::path::Path;
use std::process::Command;

use tacit_between::ack_hold::{QueueCounts, ThinFlow, Uplink};
use tacit_packet::tcp::{AckInfo, Segment};
use tacit_packet::units::{Bytes, Instant};
use tacit_packet::wire;

use compiled::{Draws, compiled};

/// Number of random sequences, and of events in each.
const SEQUENCES: u64 = 400;
const EVENTS: usize = 1_000;
/// `thin_told` of `bpf/thin_words.h`.
const TOLD_BYTES: usize = 168;
const OCTETS_MAX: usize = 132;
/// `THIN_PASS`.
const PASS: u64 = u64::MAX;
/// Verdict, segment, uplink and flow.
const WORDS: usize = 1 + 13 + 8 + 17;

/// An input of the core.
#[derive(Clone, Debug)]
enum Event {
    /// The host sends this IP packet, which has `len` bytes on the uplink.
    Offer { now: u64, len: u32, packet: Vec<u8> },
    /// One that was held goes to the queue.
    Passed { now: u64, len: u32, packet: Vec<u8> },
    /// It arrived.
    Heard { now: u64, packet: Vec<u8> },
    /// The queue has sent some bytes, and others wait.
    Queue { now: u64, sent: u64, waiting: u64 },
}

impl Event {
    fn bytes(&self) -> Vec<u8> {
        let (kind, now, sent, waiting, len, packet): (u32, u64, u64, u64, u32, &[u8]) = match self {
            Self::Offer { now, len, packet } => (0, *now, 0, 0, *len, packet),
            Self::Passed { now, len, packet } => (1, *now, 0, 0, *len, packet),
            Self::Heard { now, packet } => (2, *now, 0, 0, 0, packet),
            Self::Queue { now, sent, waiting } => (3, *now, *sent, *waiting, 0, &[]),
        };
        let mut bytes: Vec<u8> = [now, sent, waiting].iter().flat_map(|word| word.to_ne_bytes()).collect();
        bytes.extend([kind, len, packet.len() as u32].iter().flat_map(|word| word.to_ne_bytes()));
        bytes.extend(packet);
        bytes.resize(TOLD_BYTES, 0);
        bytes
    }

    /// A line of a vector: the kind and its numbers, and the packet in hexadecimal.
    fn parse(line: &str) -> Self {
        let mut words = line.split(" = ").next().unwrap().split(' ');
        let kind = words.next().unwrap();
        let mut number = || words.next().unwrap().parse::<u64>().unwrap();
        let now = number();
        match kind {
            "queue" => Self::Queue { now, sent: number(), waiting: number() },
            "heard" => Self::Heard { now, packet: unhex(words.next().unwrap()) },
            _ => {
                let len = number() as u32;
                let packet = unhex(words.next().unwrap());
                match kind {
                    "offer" => Self::Offer { now, len, packet },
                    "passed" => Self::Passed { now, len, packet },
                    _ => panic!("no event: {line}"),
                }
            }
        }
    }

    fn line(&self) -> String {
        match self {
            Self::Offer { now, len, packet } => format!("offer {now} {len} {}", hex(packet)),
            Self::Passed { now, len, packet } => format!("passed {now} {len} {}", hex(packet)),
            Self::Heard { now, packet } => format!("heard {now} {}", hex(packet)),
            Self::Queue { now, sent, waiting } => format!("queue {now} {sent} {waiting}"),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

/// The core in Rust.
#[derive(Default)]
struct Core {
    flow: ThinFlow,
    uplink: Uplink,
}

impl Core {
    fn happen(&mut self, event: &Event) -> [u64; WORDS] {
        let (mut verdict, mut read) = (0, None);
        match event {
            Event::Queue { now, sent, waiting } => {
                let counts = QueueCounts { sent: Bytes(*sent), waiting: Bytes(*waiting) };
                self.uplink.observe(Instant::from_nanos(*now), counts);
            }
            Event::Heard { now, packet } => {
                read = wire::segment(packet).map(|(_, segment)| segment);
                if let Some(segment) = &read {
                    self.flow.on_reverse_segment(Instant::from_nanos(*now), segment);
                }
            }
            Event::Offer { now, len, packet } => {
                read = wire::segment(packet).map(|(_, segment)| segment);
                let now = Instant::from_nanos(*now);
                let hold = read.as_ref().and_then(|segment| {
                    self.flow.longest_hold(
                        now,
                        &self.uplink,
                        segment,
                        AckInfo::from_segment(segment).as_ref(),
                    )
                });
                verdict = hold.map_or(PASS, |hold| hold.as_nanos());
                if hold.is_none() {
                    self.pass(now, *len, read.as_ref());
                }
            }
            Event::Passed { now, len, packet } => {
                read = wire::segment(packet).map(|(_, segment)| segment);
                self.pass(Instant::from_nanos(*now), *len, read.as_ref());
            }
        }
        let words = [&[verdict][..], &segment_words(read), &self.uplink.words(), &self.flow.words()].concat();
        words.try_into().unwrap()
    }

    fn pass(&mut self, now: Instant, len: u32, segment: Option<&Segment>) {
        if let Some(segment) = segment {
            self.flow.note_passed(now, segment);
        }
        self.uplink.note_queued(now, len);
        if segment.is_none_or(|segment| AckInfo::from_segment(segment).is_none()) {
            self.uplink.note_data();
        }
    }
}

fn segment_words(segment: Option<Segment>) -> [u64; 13] {
    let Some(segment) = segment else { return [0; 13] };
    let stamps = segment.timestamps.unwrap_or_default();
    [
        segment.seq.0.into(),
        segment.ack.0.into(),
        segment.payload_len.into(),
        segment.window.into(),
        segment.flags.0.into(),
        segment.timestamps.is_some().into(),
        stamps.value.into(),
        stamps.echo_reply.into(),
        (!segment.sack.is_empty()).into(),
        segment.mss.is_some().into(),
        segment.mss.unwrap_or(0).into(),
        segment.window_scale.is_some().into(),
        segment.window_scale.unwrap_or(0).into(),
    ]
}

// --- Streams --------------------------------------------------------------------------------------

/// A TCP segment to be written.
#[derive(Clone, Default)]
struct Written {
    is_v6: bool,
    seq: u32,
    ack: u32,
    flags: u8,
    window: u16,
    payload_len: u32,
    options: Vec<u8>,
}

impl Written {
    /// The IP packet, without its payload: the length states it. Only as much of the payload as is looked at is there.
    fn packet(&self) -> Vec<u8> {
        let mut options = self.options.clone();
        options.resize(options.len().next_multiple_of(4).min(40), 1);
        let tcp_len = 20 + options.len();
        let mut tcp = vec![0; 20];
        tcp[..4].copy_from_slice(&[0x30, 0x39, 0x1f, 0x40]);
        tcp[4..8].copy_from_slice(&self.seq.to_be_bytes());
        tcp[8..12].copy_from_slice(&self.ack.to_be_bytes());
        tcp[12] = (tcp_len as u8 / 4) << 4;
        tcp[13] = self.flags;
        tcp[14..16].copy_from_slice(&self.window.to_be_bytes());
        tcp.extend(options);
        let mut ip = if self.is_v6 {
            let mut ip = vec![0x60, 0, 0, 0, 0, 0, 6, 64];
            ip.extend([0x20, 1, 0xd, 0xb8].iter().cycle().take(32));
            ip[4..6].copy_from_slice(&((tcp_len as u32 + self.payload_len) as u16).to_be_bytes());
            ip
        } else {
            let mut ip = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 6, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
            ip[2..4].copy_from_slice(&((20 + tcp_len as u32 + self.payload_len) as u16).to_be_bytes());
            ip
        };
        ip.extend(tcp);
        ip.resize((ip.len() + self.payload_len as usize).min(OCTETS_MAX), 0);
        ip
    }
}

/// A client's ACKs, a server's data, and an uplink that drains.
struct Stream {
    draws: Draws,
    now: u64,
    /// Bits per second.
    rate: u64,
    sent: u64,
    waiting: u64,
    is_v6: bool,
    has_timestamps: bool,
    number: u32,
    base: u32,
    held: Vec<Vec<u8>>,
    events: Vec<Event>,
}

impl Stream {
    fn new(seed: u64) -> Self {
        let mut draws = Draws(seed);
        let rate = [8_000, 20_000, 50_000, 100_000, 400_000, 10_000_000][draws.within(0, 5) as usize];
        Self {
            now: draws.within(1, 1 << 40),
            rate,
            sent: draws.within(0, 1 << 40),
            waiting: 0,
            is_v6: draws.one_in(3),
            has_timestamps: !draws.one_in(5),
            number: draws.next() as u32,
            base: draws.next() as u32,
            held: Vec::new(),
            events: Vec::new(),
            draws,
        }
    }

    /// Mostly full; some are such that whole segments are a quarter of it.
    fn window(&mut self) -> u16 {
        match self.draws.within(0, 39) {
            0 => self.draws.next() as u16,
            1..=19 => (5_840 * self.draws.within(1, 10) + 500 * self.draws.within(0, 1)) as u16,
            _ => 60_000,
        }
    }

    fn stamps(&mut self, value_ns: u64, echo_ns: u64) -> Vec<u8> {
        let mut option = vec![1, 1, 8, 10];
        option.extend((self.base.wrapping_add((value_ns / 1_000_000) as u32)).to_be_bytes());
        option.extend((self.base.wrapping_add((echo_ns / 1_000_000) as u32)).to_be_bytes());
        if self.has_timestamps { option } else { Vec::new() }
    }

    fn pass_time(&mut self) {
        let apart = match self.draws.within(0, 99) {
            0 => self.draws.within(0, 3_000_000_000),
            1..=30 => self.draws.within(0, 20_000_000),
            _ => self.draws.within(0, 2_000_000),
        };
        self.now += apart;
        let drained = (self.rate * apart / 8_000_000_000).min(self.waiting);
        (self.waiting, self.sent) = (self.waiting - drained, self.sent + drained);
    }

    fn offer(&mut self, written: &Written, core: &mut Core) {
        let packet = self.mutated(written.packet());
        let len = 14 + self.draws.within(40, 60) as u32 + written.payload_len;
        let event = Event::Offer { now: self.now, len, packet: packet.clone() };
        let verdict = core.happen(&event)[0];
        self.events.push(event);
        if verdict == PASS {
            self.waiting += u64::from(len);
        } else {
            self.held.push(packet);
        }
    }

    /// A few packets have something that no TCP sends.
    fn mutated(&mut self, mut packet: Vec<u8>) -> Vec<u8> {
        if self.draws.one_in(50) {
            let at = self.draws.within(0, packet.len() as u64 - 1) as usize;
            packet[at] = self.draws.next() as u8;
        }
        if self.draws.one_in(200) {
            let len = self.draws.within(1, packet.len() as u64) as usize;
            packet.truncate(len);
        }
        packet
    }

    fn step(&mut self, core: &mut Core) {
        self.pass_time();
        let later = self.draws.within(1, 4) * 1_460;
        let (now, back) = (self.now, self.now.saturating_sub(self.draws.within(0, 400_000_000)));
        let stamps = self.stamps(now, back);
        let mut written = Written {
            is_v6: self.is_v6,
            flags: 0x10,
            ack: self.number,
            window: self.window(),
            options: stamps,
            ..Written::default()
        };
        match self.draws.within(0, 199) {
            0..=119 => {
                self.number = self.number.wrapping_add(later as u32);
                written.ack = self.number;
                self.offer(&written, core);
            }
            120..=126 => self.offer(&written, core),
            127..=130 => {
                written.options.truncate(0);
                let blocks = self.draws.within(0, 4) as u8;
                written.options.extend([5, 2 + 8 * blocks]);
                written.options.extend((0..8 * blocks).map(|at| at.wrapping_mul(37)));
                self.offer(&written, core);
            }
            131..=134 => {
                written.flags = self.draws.next() as u8;
                self.offer(&written, core);
            }
            135..=138 => {
                written.payload_len = self.draws.within(1, 1_448) as u32;
                self.offer(&written, core);
            }
            139 => self.syn(core),
            140..=150 => {
                let (sent, waiting) = (self.sent, self.waiting);
                self.apply(Event::Queue { now, sent, waiting }, core);
            }
            151..=165 => {
                if let Some(packet) = self.held.pop() {
                    self.waiting += 66;
                    self.apply(Event::Passed { now, len: 66, packet }, core);
                }
            }
            _ => {
                written.seq = self.number.wrapping_add(self.draws.within(0, 40) as u32 * 1_448);
                if self.draws.one_in(30) {
                    written.seq = self.number.wrapping_sub(self.draws.within(0, 3) as u32);
                    written.flags |= self.draws.next() as u8 & 1;
                }
                written.payload_len = if self.draws.one_in(9) { 0 } else { 1_448 };
                let packet = written.packet();
                let packet = self.mutated(packet);
                self.apply(Event::Heard { now, packet }, core);
            }
        }
    }

    fn apply(&mut self, event: Event, core: &mut Core) {
        core.happen(&event);
        self.events.push(event);
    }

    fn syn(&mut self, core: &mut Core) {
        let mut options = vec![2, 4, 5, 0xb4, 4, 2];
        options.extend([3, 3, self.draws.within(0, 16) as u8]);
        options.extend(self.stamps(self.now, 0));
        let syn = Written {
            is_v6: self.is_v6,
            flags: 2,
            window: 60_000,
            seq: self.number,
            options: options.clone(),
            ..Written::default()
        };
        self.offer(&syn, core);
        self.now += self.draws.within(1_000_000, 300_000_000);
        if self.draws.one_in(3) {
            options.truncate(4);
        }
        let answer = Written { flags: 0x12, ack: self.number.wrapping_add(1), options, ..syn };
        self.apply(Event::Heard { now: self.now, packet: answer.packet() }, core);
    }
}

/// A complete sequence of events, which depends on the core's verdicts.
fn stream(seed: u64) -> Vec<Event> {
    let (mut stream, mut core) = (Stream::new(seed), Core::default());
    stream.syn(&mut core);
    while stream.events.len() < EVENTS {
        stream.step(&mut core);
    }
    stream.events
}

// --- Comparisons ----------------------------------------------------------------------------------

fn on_the_host(program: &Path, directory: &Path, events: &[Event]) -> Vec<[u64; WORDS]> {
    let file = directory.join("events");
    std::fs::write(&file, events.iter().flat_map(Event::bytes).collect::<Vec<u8>>()).unwrap();
    let output = Command::new(program).stdin(File::open(&file).unwrap()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let word = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().unwrap());
    let answers = output.stdout.chunks_exact(8 * WORDS);
    answers.map(|answer| answer.chunks(8).map(word).collect::<Vec<_>>().try_into().unwrap()).collect()
}

/// Compares both after each event; returns how many ACKs were to wait.
fn compare(number: u64, events: &[Event], answers: &[[u64; WORDS]]) -> usize {
    assert_eq!(answers.len(), events.len(), "sequence {number}");
    let (mut core, mut held) = (Core::default(), 0);
    for (step, (event, in_c)) in events.iter().zip(answers).enumerate() {
        let in_rust = core.happen(event);
        assert_eq!(*in_c, in_rust, "sequence {number}, event {step}: {}", event.line());
        held += usize::from(matches!(event, Event::Offer { .. }) && in_rust[0] != PASS);
    }
    held
}

#[test]
fn random_streams_of_segments_leave_the_same_in_both() {
    let directory = tempfile::tempdir().unwrap();
    let Some(program) = compiled("thin_host", directory.path()) else { return };
    let held = (0..SEQUENCES).map(|seed| {
        let events = stream(seed);
        compare(seed, &events, &on_the_host(&program, directory.path(), &events))
    });
    let held: usize = held.sum();
    assert!(held > 5_000, "only {held} ACKs were to wait");
}

/// The sequences of `vectors/thin`, which hold what other implementations are to answer.
#[test]
fn the_golden_vectors_leave_the_same_in_both() {
    let directory = tempfile::tempdir().unwrap();
    let program = compiled("thin_host", directory.path());
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../vectors/thin");
    for seed in 0..4 {
        let file = vectors.join(format!("stream-{seed}.txt"));
        if std::env::var_os("TACIT_WRITE_VECTORS").is_some() {
            std::fs::write(&file, vector(seed)).unwrap();
        }
        let text = std::fs::read_to_string(&file).unwrap();
        let lines: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let events: Vec<_> = lines.iter().map(|line| Event::parse(line)).collect();
        let mut core = Core::default();
        for (line, event) in lines.iter().zip(&events) {
            assert_eq!(*line, answered(event, &core.happen(event)), "{}", file.display());
        }
        if let Some(program) = &program {
            compare(seed, &events, &on_the_host(program, directory.path(), &events));
        }
    }
}

/// A line of a vector, with the answer.
fn answered(event: &Event, words: &[u64; WORDS]) -> String {
    let verdict = if words[0] == PASS { "pass".to_owned() } else { words[0].to_string() };
    let (rate, free_at, round_trip) = (words[14], words[20], words[34]);
    format!("{} = {verdict} {rate} {free_at} {round_trip}", event.line())
}

fn vector(seed: u64) -> String {
    let mut text = "# Times are in nanoseconds, rates in bits per second, packets in hexadecimal. Each line is an event, and after =\n\
                    # the core's answer. Events:\n\
                    # offer NOW LENGTH-ON-THE-UPLINK PACKET, passed NOW LENGTH PACKET, heard NOW PACKET, queue NOW SENT WAITING\n\
                    # Then: VERDICT UPLINK-RATE UPLINK-FREE-AT ROUND-TRIP\n"
        .to_owned();
    let mut core = Core::default();
    for event in stream(1_000 + seed).iter().take(400) {
        let words = core.happen(event);
        text += &answered(event, &words);
        text += "\n";
    }
    text
}
