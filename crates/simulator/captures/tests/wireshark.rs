//! `contrib/wireshark/tacit.lua` identifies every packet of a ROHC channel in the same way as the codec that generated
//! it. tshark is installed by `./ci.sh setup`; without it the tests are skipped and report this.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use tacit_rohc::header::{Header, Ip, Options, flags};
use tacit_rohc::{Channel, ChannelConfig, CidSpace, CompressorConfig, DecompressorConfig};

/// The pure ACK with this number in the flow from this port, over IPv4 or IPv6.
fn ack(v6: bool, port: u16, number: u32) -> Vec<u8> {
    let mut area = vec![1, 1, 8, 10];
    area.extend((1_000 + number / 4).to_be_bytes());
    area.extend((2_000 + number / 4).to_be_bytes());
    let ip = if v6 {
        Ip::V6 { source: [0xfd; 16], destination: [0xfc; 16], flow_label: u32::from(port) }
    } else {
        let id = 7 * u32::from(port) + number;
        Ip::V4 { source: [10, 0, 0, 2], destination: [10, 0, 0, 1], id: id as u16, dont_fragment: true }
    };
    let mut header = Header {
        ip,
        dscp: 0,
        ip_ecn: 0,
        ttl: 64,
        source_port: port,
        destination_port: 80,
        seq: 1,
        ack: number * 2_896,
        reserved: 0,
        flags: flags::ACK,
        // The window changes occasionally, and each change is sent twice.
        window: 500 + (number / 16) as u16,
        checksum: 0,
        urgent: 0,
        options: Options::new(&area).unwrap(),
        payload_len: 0,
    };
    header.checksum = header.tcp_checksum(&[]);
    let mut packet = vec![0; header.len()];
    header.emit(&mut packet).unwrap();
    packet
}

/// An IPv4 packet that is not TCP and is sent with profile 0x0000.
const NO_TCP: [u8; 20] = [0x45, 0, 0, 20, 0, 0, 0, 0, 64, 1, 0x66, 0xe5, 10, 0, 0, 1, 10, 0, 0, 2];

/// Frames of a channel in both directions, with the name of each.
#[derive(Default)]
struct Recording {
    pcap: Vec<u8>,
    names: Vec<String>,
}

impl Recording {
    fn new() -> Self {
        let mut pcap = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0];
        pcap.extend([0; 8]);
        pcap.extend([0, 0, 4, 0, 1, 0, 0, 0]);
        Self { pcap, names: Vec::new() }
    }

    fn note(&mut self, from: u8, frame: &[u8], name: &str) {
        let len = (14 + frame.len() as u32).to_le_bytes();
        self.pcap.extend([[0; 4], [0; 4], len, len].as_flattened());
        self.pcap.extend([0x02, 0, 0, 0, 0, 1 - from, 0x02, 0, 0, 0, 0, from, 0x22, 0xf1]);
        self.pcap.extend_from_slice(frame);
        self.names.push(name.to_owned());
    }
}

/// Sends a packet from end `from` to the other one.
fn send(heard: &mut Recording, ends: &mut [Channel; 2], from: usize, packet: &[u8]) {
    let mut frames = Vec::new();
    let sent = ends[from].send(packet, |frame| frames.push(frame.to_vec())).unwrap();
    for frame in &frames {
        let name = match frame[0] {
            0xfe | 0xff => "segment",
            _ => sent.format.name(),
        };
        heard.note(from as u8, frame, name);
        ends[1 - from].receive(frame, |_| {}).unwrap();
    }
}

fn ends(cids: CidSpace, feedback: bool, frame_bytes: usize) -> [Channel; 2] {
    let config = ChannelConfig {
        cids,
        compressor: CompressorConfig { refresh_ir_dyn: 12, replicate: true, ..CompressorConfig::default() },
        decompressor: DecompressorConfig { feedback, ..DecompressorConfig::default() },
        frame_bytes,
        reconstructed_bytes: 4_096,
        ..ChannelConfig::default()
    };
    [Channel::new(config), Channel::new(config)]
}

/// Output of tshark for `pcap`, one line per frame; `None`, with a message, if tshark is not installed.
fn tshark(directory: &Path, pcap: &[u8], arguments: &[&str]) -> Option<String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../contrib/wireshark/tacit.lua");
    let file = directory.join("rohc.pcap");
    fs::write(&file, pcap).unwrap();
    let mut command = Command::new("tshark");
    command.arg("-X").arg(format!("lua_script:{}", script.display())).arg("-r").arg(file).args(arguments);
    match command.output() {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Some(String::from_utf8(output.stdout).unwrap())
        }
        Err(error) => {
            eprintln!("SKIPPED: tshark: {error}");
            None
        }
    }
}

#[test]
fn every_packet_of_a_channel_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let mut seen = BTreeSet::new();
    for (cids, preference) in [
        (CidSpace::Small { max: 15 }, "tacit_rohc.large:FALSE"),
        (CidSpace::Large { max: 300 }, "tacit_rohc.large:TRUE"),
    ] {
        // Without feedback, dynamic parts are refreshed. With feedback, which is piggybacked on packets, flows are
        // replicated from others.
        for feedback in [false, true] {
            let mut heard = Recording::new();
            let mut ends = ends(cids, feedback, usize::MAX);
            for number in 0..60 {
                for (flow, v6) in [(0, false), (1, true), (2, true), (3, false)] {
                    // The last two flows start once the first two are confirmed.
                    if number >= 10 * (flow / 2) {
                        send(&mut heard, &mut ends, 0, &ack(v6, 4_000 + flow as u16, number));
                    }
                }
                if number % 9 == 0 {
                    send(&mut heard, &mut ends, 0, &NO_TCP);
                }
                // The other direction has separate contexts with the same CIDs.
                if number % 3 == 0 {
                    send(&mut heard, &mut ends, 1, &ack(number % 2 == 0, 80, number));
                }
                let mut answer = [0; 64];
                let bytes = ends[1].take_feedback(&mut answer);
                if bytes > 0 {
                    heard.note(1, &answer[..bytes], "feedback");
                    ends[0].receive(&answer[..bytes], |_| {}).unwrap();
                }
            }
            let fields =
                ["-o", preference, "-T", "fields", "-e", "tacit.rohc.type", "-e", "_ws.expert.message"];
            let Some(lines) = tshark(directory.path(), &heard.pcap, &fields) else { return };
            let expected: String = heard.names.iter().map(|name| format!("{name}\t\n")).collect();
            assert_eq!(lines, expected, "{cids:?}, feedback {feedback}");
            let wrong =
                tshark(directory.path(), &heard.pcap, &["-o", preference, "-Y", "tacit.rohc.crc8.good == 0"]);
            assert_eq!(wrong.unwrap(), "");
            seen.extend(heard.names);
        }
    }
    for name in ["IR", "IR-DYN", "IR-CR", "co_common", "uncompressed IR", "uncompressed", "feedback"] {
        assert!(seen.contains(name), "{name} is not among {seen:?}");
    }
    for set in ["rnd_", "seq_"] {
        assert!(seen.iter().any(|name| name.starts_with(set)), "{seen:?}");
    }
}

#[test]
fn segments_are_named_and_what_is_in_them_is_not_known() {
    let directory = tempfile::tempdir().unwrap();
    let mut heard = Recording::new();
    let mut ends = ends(CidSpace::Small { max: 15 }, false, 30);
    for number in 0..6 {
        send(&mut heard, &mut ends, 0, &ack(false, 4_000, number));
    }
    let fields = ["-T", "fields", "-e", "tacit.rohc.type", "-e", "tacit.rohc.segment.final"];
    let Some(lines) = tshark(directory.path(), &heard.pcap, &fields) else { return };
    let (segments, others): (Vec<_>, Vec<_>) = lines.lines().partition(|line| line.starts_with("segment\t"));
    assert_eq!(segments.len(), heard.names.iter().filter(|name| *name == "segment").count());
    assert!(segments.contains(&"segment\t0") && segments.contains(&"segment\t1"), "{lines}");
    // Their IR was segmented, so that a CO packet could belong to either set of formats.
    let either = heard.names.iter().filter(|name| name.starts_with("seq_"));
    assert_eq!(others.iter().filter(|line| line.contains(" or seq_")).count(), either.count(), "{lines}");
}

#[test]
fn padding_and_what_an_ir_says_are_shown() {
    let directory = tempfile::tempdir().unwrap();
    let mut heard = Recording::new();
    let mut frames = Vec::new();
    let [mut here, _] = ends(CidSpace::Small { max: 15 }, false, usize::MAX);
    here.send(&ack(true, 4_000, 5), |frame| frames.push([&[0xe0, 0xe0], frame].concat())).unwrap();
    heard.note(0, &frames[0], "IR");
    heard.note(0, &[0xe0; 3], "padding");
    // A damaged IR has no effect.
    frames[0][30] ^= 1;
    heard.note(0, &frames[0], "IR");
    let names = ["type", "padding", "src6", "srcport", "dstport", "ack", "window", "options", "crc8.good"];
    let names = names.map(|name| format!("tacit.rohc.{name}"));
    let mut fields = vec!["-T", "fields"];
    fields.extend(names.iter().flat_map(|name| ["-e", name]));
    let Some(lines) = tshark(directory.path(), &heard.pcap, &fields) else { return };
    let rows: Vec<Vec<&str>> = lines.lines().map(|line| line.split('\t').collect()).collect();
    let address = ["fdfd"; 8].join(":");
    let expected = ["IR", "2", &address, "4000", "80", "14480", "500", "NOP, NOP, timestamps", "1"];
    assert_eq!(rows[0], expected);
    assert_eq!(rows[1], ["padding", "3", "", "", "", "", "", "", ""]);
    assert_eq!((rows[2][0], rows[2][8]), ("IR", "0"));
}
