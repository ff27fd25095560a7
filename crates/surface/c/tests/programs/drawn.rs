//! Random streams as text for `tests/c/vectors.c`, with what the Rust crates make of them behind each ` = `.

use std::fmt::Write as _;
use std::io::{BufWriter, Write as _};
use std::process::{Command, Stdio};
use std::thread;

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use tacit::tacit_rohc_config;
use tacit_rohc::hack::{Coding, Compressor, Decompressor, Limits, Report};

use crate::in_rust::{self, Event, Flows, HackLink, event, law_draws, law_events};
use crate::packets::{Change, Receiver, change};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

/// The same, where nothing has a sign.
fn word(bytes: &[u8]) -> String {
    if bytes.is_empty() { "-".to_owned() } else { hex(bytes) }
}

fn outcomes(report: &Report) -> String {
    let counts = [
        ("delivered", report.frames - report.duplicates - report.failures()),
        ("duplicate", report.duplicates),
        ("malformed", report.malformed),
        ("no-context", report.no_context),
        ("gap", report.gap),
        ("stale", report.stale),
        ("check", report.check),
    ];
    let seen = counts.iter().filter(|(_, count)| *count > 0);
    seen.map(|(name, count)| format!("{name}={count}")).collect::<Vec<_>>().join(" ")
}

/// The ends of a link under HACK, and their events so far.
struct Hack {
    compressor: Compressor,
    decompressor: Decompressor,
    flows: Flows,
    text: String,
}

impl Hack {
    fn new(batch: bool, v6: bool) -> Self {
        let coding = if batch { Coding::Batch } else { Coding::PerAck };
        let name = if batch { "batch" } else { "per-ack" };
        Self {
            compressor: Compressor::new(coding, Limits::default()),
            decompressor: Decompressor::new(Limits::default()),
            flows: Flows::new(v6),
            text: format!("compressor coding {name}\ndecompressor contexts {}\n", Limits::default().contexts),
        }
    }

    fn write_line(&mut self, line: &str) {
        self.text += line;
        self.text.push('\n');
    }
}

impl HackLink for Hack {
    fn flows(&mut self) -> &mut Flows {
        &mut self.flows
    }

    fn push(&mut self, packet: &[u8]) {
        let answer = match self.compressor.push(packet) {
            Ok(()) => "taken".to_owned(),
            Err(refusal) => format!("refused: {refusal}"),
        };
        self.write_line(&format!("compressor push {} = {answer}", hex(packet)));
    }

    /// Text has room enough.
    fn frame(&mut self, _room: usize) -> Vec<u8> {
        let mut frames = Vec::new();
        self.compressor.finish_frame(&mut frames);
        self.write_line(&format!("compressor frame = {}", hex(&frames)));
        frames
    }

    fn arrive(&mut self, frames: &[u8]) {
        let mut acks = Vec::new();
        let report = self.decompressor.receive(frames, &mut |packet| acks.push(hex(packet)));
        self.write_line(&format!("decompressor receive {} = {}", hex(frames), outcomes(&report)));
        for ack in acks {
            self.write_line(&format!("decompressor ack {ack}"));
        }
    }

    fn native(&mut self, packet: &[u8]) {
        self.decompressor.note_native(packet);
        self.write_line(&format!("decompressor native {}", hex(packet)));
    }

    fn native_confirmed(&mut self, packet: &[u8]) {
        self.compressor.note_native(packet);
        self.write_line(&format!("compressor native {}", hex(packet)));
    }

    fn invalidate(&mut self, packet: Option<&[u8]>) {
        match packet {
            Some(packet) => self.compressor.invalidate(packet),
            None => self.compressor.invalidate_all(),
        }
        self.write_line(&format!("compressor invalidate {}", hex(packet.unwrap_or_default())));
    }
}

/// Packets of three flows through both ends of ROHC-TCP; some are lost.
fn rohc(config: &tacit_rohc_config, changes: &[(usize, Change, bool)], garbage: &[u8]) -> String {
    let (mut compressor, mut decompressor) = in_rust::rohc(config);
    let mut text = format!(
        "rohc new {} {} {} {} {} {}\n",
        config.max_cid,
        config.large_cids,
        config.repeat,
        config.feedback,
        config.verify_tcp_checksum,
        config.seed
    );
    let mut flows: Vec<Receiver> = (0..3).map(|port| Receiver::new(port == 1, port, 7)).collect();
    let mut receive = |rohc: &[u8], compressor: &mut tacit_rohc::Compressor| {
        let mut out = vec![0; 200];
        let done = decompressor.decompress(rohc, &mut out);
        let len = done.map_or(0, |done| done.len);
        let answer = done.map_or_else(|error| error.feedback, |done| done.feedback);
        let elements = answer.as_ref().map_or(&[][..], |answer| answer.as_bytes());
        let ignored = compressor.feedback(elements);
        let kind = if done.is_ok() { "restored" } else { "refused" };
        format!("rohc receive {} = {kind} {} {} {ignored}\n", word(rohc), word(&out[..len]), word(elements))
    };
    let mut now_ms = 0;
    let packets = changes.iter().map(|(flow, change, lost)| {
        flows[*flow].apply(change);
        (flows[*flow].packet(), *lost)
    });
    for (packet, lost) in packets.chain([(garbage.to_vec(), false)]) {
        now_ms += 700;
        let mut out = vec![0; packet.len() + tacit::TACIT_ROHC_GROWTH];
        compressor.set_time(std::time::Duration::from_millis(now_ms));
        let compressed = compressor.compress(&packet, &mut out);
        let kind = if compressed.is_ok() { "made" } else { "refused" };
        let rohc = &out[..compressed.map_or(0, |compressed| compressed.len)];
        writeln!(text, "rohc compress {now_ms} {} = {kind} {}", word(&packet), word(rohc)).unwrap();
        if !lost {
            text += &receive(rohc, &mut compressor);
        }
    }
    text += &receive(garbage, &mut compressor);
    text
}

/// Packets at a law with this rule (beta, every, wait) and path (round trip, way back, start-up).
fn law(draws: &[(u64, u32, u8)], rule: (u8, u8, u64), path: (u64, u64, bool)) -> String {
    let mut law = in_rust::Law::new(1448);
    law.rule(rule.0, rule.1, rule.2);
    law.path(path.0, path.1, path.2);
    let mut text = format!("law new 1448\nlaw rule {} {} {}\n", rule.0, rule.1, rule.2);
    writeln!(text, "law path {} {} {}", path.0, path.1, u8::from(path.2)).unwrap();
    for event in law_events(draws) {
        law.packet(event.now, event.bytes);
        writeln!(text, "law packet {} {}", event.now, event.bytes).unwrap();
        let (answer, due) = law.due(event.now);
        writeln!(text, "law due {} = {answer} {due}", event.now).unwrap();
        if answer == tacit::TACIT_ACK_NOW || event.sends {
            law.sent(event.now, event.rate, event.delay);
            let delay = event.delay.map_or_else(|| "-".to_owned(), |delay| delay.to_string());
            writeln!(text, "law sent {} {} {delay}", event.now, event.rate).unwrap();
        }
    }
    text
}

/// A stream of each part.
fn streams() -> impl Strategy<Value = String> {
    let hack = (prop::collection::vec(event(), 1..80), any::<bool>(), any::<bool>()).prop_map(
        |(events, batch, v6)| {
            let mut ends = Hack::new(batch, v6);
            (0..4).for_each(|flow| ends.happen(&Event::Native(flow)));
            events.iter().for_each(|event| ends.happen(event));
            ends.happen(&Event::Frame(0));
            ends.text
        },
    );
    let config = (0u16..4, any::<bool>(), 1u8..=8, any::<bool>(), any::<u64>()).prop_map(
        |(max_cid, large, repeat, feedback, seed)| tacit_rohc_config {
            max_cid,
            large_cids: large.into(),
            repeat,
            feedback: feedback.into(),
            verify_tcp_checksum: repeat % 2,
            seed,
        },
    );
    let changes = prop::collection::vec((0usize..3, change(), any::<bool>()), 1..60);
    let rohc = (config, changes, prop::collection::vec(any::<u8>(), 0..60))
        .prop_map(|(config, changes, garbage)| rohc(&config, &changes, &garbage));
    let rule = (2u8..=64, 1u8..=40, prop_oneof![Just(0u64), Just(25_000_000)]);
    let path = (
        prop_oneof![Just(0u64), 100_000..400_000_000u64],
        prop_oneof![3 => Just(0u64), 1 => 0u64..200_000_000],
        any::<bool>(),
    );
    let law = (law_draws(), rule, path).prop_map(|(draws, rule, path)| law(&draws, rule, path));
    (hack, rohc, law).prop_map(|(hack, rohc, law)| hack + &rohc + &law)
}

/// Plays this number of streams of each part to `vectors`, which compares every answer. They are the same each time.
pub fn play(vectors: &mut Command, count: u32) {
    let mut child = vectors
        .arg("/dev/stdin")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = BufWriter::new(child.stdin.take().unwrap());
    let writer = thread::spawn(move || {
        let mut runner =
            TestRunner::new_with_rng(Config::default(), TestRng::deterministic_rng(RngAlgorithm::ChaCha));
        let strategy = streams();
        for _ in 0..count {
            let text = strategy.new_tree(&mut runner).unwrap().current();
            // A program that has failed reads no further, and says why.
            if pipe.write_all(text.as_bytes()).is_err() {
                return;
            }
        }
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let output_text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{vectors:?} ends with {}: {output_text}", output.status);
    println!("{vectors:?}: {count} streams of each part: {}", output_text.trim());
}
