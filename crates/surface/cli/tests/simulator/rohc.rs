//! `tacit rohc` as seen by its users.

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use serde_json::Value;

fn tacit(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("tacit").unwrap();
    command.current_dir(directory).arg("rohc").args(arguments);
    command
}

fn json(directory: &Path, arguments: &[&str]) -> Value {
    let output = tacit(directory, arguments).assert().success().get_output().stdout.clone();
    serde_json::from_slice(&output).unwrap()
}

/// The single line on standard error of a command that fails with code 2 and leaves no files behind.
fn failure(directory: &Path, arguments: &[&str]) -> String {
    let before = fs::read_dir(directory).unwrap().count();
    let output = tacit(directory, arguments).output().unwrap();
    let line = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{line}");
    assert_eq!(fs::read_dir(directory).unwrap().count(), before, "{arguments:?} left something behind");
    assert_eq!(line.lines().count(), 1, "{line}");
    line
}

fn checksum(bytes: &[u8], start: u32) -> [u8; 2] {
    let sum =
        bytes.chunks(2).fold(start, |sum, word| sum + u32::from(u16::from_be_bytes([word[0], word[1]])));
    let sum = (sum & 0xffff) + (sum >> 16);
    (!(((sum & 0xffff) + (sum >> 16)) as u16)).to_be_bytes()
}

/// A pure ACK over IPv4 without options.
fn ack(number: u16) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 2, 10, 0, 0, 1];
    packet[4..6].copy_from_slice(&number.to_be_bytes());
    let ip_sum = checksum(&packet, 0);
    packet[10..12].copy_from_slice(&ip_sum);
    packet.extend([0x9c, 0x40, 0, 80, 0, 0, 0, 1]);
    packet.extend((u32::from(number) * 2_896).to_be_bytes());
    packet.extend([0x50, 0x10, 1, 0xf4, 0, 0, 0, 0]);
    let tcp_sum = checksum(&packet[12..], 6 + 20);
    packet[36..38].copy_from_slice(&tcp_sum);
    packet
}

/// A classic pcap file of raw IP with zero timestamps, as written by `decompress`.
fn pcap(packets: &[Vec<u8>]) -> Vec<u8> {
    let mut file =
        vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 101, 0, 0, 0];
    for packet in packets {
        file.extend([0; 8]);
        file.extend((packet.len() as u32).to_le_bytes());
        file.extend((packet.len() as u32).to_le_bytes());
        file.extend(packet);
    }
    file
}

/// A directory with `acks.pcap`, which contains fifty ACKs of one flow.
fn prepared() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let packets: Vec<_> = (0..50).map(ack).collect();
    fs::write(directory.path().join("acks.pcap"), pcap(&packets)).unwrap();
    directory
}

#[test]
fn stats_have_the_promised_keys() {
    let directory = prepared();
    for (codec, packets, most) in [("strict", 50, 8.0), ("hack", 49, 3.5), ("hack-batch", 49, 1.5)] {
        let stats = json(directory.path(), &["stats", "acks.pcap", "--codec", codec, "--json"]);
        assert_eq!(stats["packets"], packets);
        let bytes = stats["bytes_per_packet"].as_f64().unwrap();
        assert!(bytes <= most, "{codec}: {bytes}");
        assert!((stats["compressed_bytes"].as_f64().unwrap() / f64::from(packets) - bytes).abs() < 1e-9);
        assert!(stats["formats"].as_object().unwrap().values().all(Value::is_u64));
        assert_eq!((&stats["failures"], &stats["wrong"]), (&Value::from(0), &Value::from(0)));
        for key in ["compress_ns_per_packet", "decompress_ns_per_packet"] {
            assert!(stats[key].as_f64().unwrap() > 0.0, "{key}");
        }
    }
    let text =
        tacit(directory.path(), &["stats", "acks.pcap"]).assert().success().get_output().stdout.clone();
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("packets compressed") && text.contains("seq_4"), "{text}");
}

#[test]
fn a_capture_goes_there_and_back() {
    let directory = prepared();
    for cid in ["small", "large"] {
        let summary = json(
            directory.path(),
            &["compress", "acks.pcap", "a.rohc", "--repeat", "3", "--cid", cid, "--json"],
        );
        assert_eq!(summary["packets"], 50);
        tacit(directory.path(), &["decompress", "a.rohc", "b.pcap", "--cid", cid]).assert().success();
        let read = |name: &str| fs::read(directory.path().join(name)).unwrap();
        assert_eq!(read("b.pcap"), read("acks.pcap"));
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 3, "nothing temporary is left");
}

#[test]
fn another_implementations_file_is_set_beside_ours() {
    let directory = prepared();
    tacit(directory.path(), &["compress", "acks.pcap", "theirs.rohc", "--repeat", "4"]).assert().success();
    let compared = json(directory.path(), &["compare", "acks.pcap", "theirs.rohc", "--json"]);
    for (key, value) in [("packets", 50), ("failures", 0), ("wrong", 0), ("not_compressed", 0)] {
        assert_eq!(compared[key], value, "{key}");
    }
    assert!(compared["rohc_bytes"].as_u64() < compared["other_bytes"].as_u64(), "{compared}");
    assert_eq!((&compared["formats"]["IR"], &compared["other_formats"]["IR"]), (&2.into(), &4.into()));
    let text = tacit(directory.path(), &["compare", "acks.pcap", "theirs.rohc"]).assert().success();
    let text = String::from_utf8(text.get_output().stdout.clone()).unwrap();
    assert!(text.contains("ours") && text.contains("theirs") && text.contains("seq_4"), "{text}");
    // Files that do not match this capture: one packet less, and other packets.
    let fewer: Vec<_> = (0..49).map(ack).collect();
    fs::write(directory.path().join("fewer.pcap"), pcap(&fewer)).unwrap();
    let line = failure(directory.path(), &["compare", "fewer.pcap", "theirs.rohc"]);
    assert!(line.contains("fewer TCP packets") && line.contains("one ROHC packet for each"), "{line}");
    let others: Vec<_> = (7..57).map(ack).collect();
    fs::write(directory.path().join("others.pcap"), pcap(&others)).unwrap();
    let wrong = tacit(directory.path(), &["compare", "others.pcap", "theirs.rohc"]).output().unwrap();
    assert_eq!(wrong.status.code(), Some(1));
}

#[test]
fn bad_input_is_one_line_and_leaves_nothing() {
    let directory = prepared();
    let at = directory.path();
    let whole = fs::read(at.join("acks.pcap")).unwrap();
    fs::write(at.join("cut.pcap"), &whole[..24 + 56 * 9 + 20]).unwrap();
    fs::write(at.join("none.pcap"), &whole[..24]).unwrap();
    fs::write(at.join("text.pcap"), "a capture, they said").unwrap();
    fs::write(at.join("cut.rohc"), [9, 0, 1]).unwrap();
    fs::write(at.join("noise.rohc"), [3, 0, 1, 2, 3]).unwrap();
    fs::write(at.join("empty.rohc"), []).unwrap();
    for (arguments, words) in [
        (&["stats", "acks.pcap", "--codec", "gzip"][..], "allowed: strict, hack, hack-batch"),
        (&["stats", "missing.pcap"], "missing.pcap: cannot open"),
        (&["stats", "text.pcap"], "text.pcap: is neither pcap nor pcapng"),
        (&["stats", "none.pcap"], "none.pcap: no TCP packet"),
        (&["stats", "none.pcap", "--codec", "hack"], "no pure ACK"),
        (
            &["stats", "cut.pcap", "--codec", "hack"],
            "cut.pcap: packet 10 (byte 528): the file ends inside it",
        ),
        (&["compress", "cut.pcap", "x.rohc"], "cut.pcap: packet 10 (byte 528): the file ends inside it"),
        (&["compress", "none.pcap", "x.rohc"], "none.pcap: no TCP packet"),
        (&["compress", "acks.pcap", "acks.pcap"], "is also the input"),
        (&["compress", "acks.pcap", "no/such/place"], "no/such/place"),
        (&["compress", "acks.pcap", "x.rohc", "--repeat", "9"], "allowed: 1 to 8"),
        (&["compress", "acks.pcap", "x.rohc", "--cid", "tiny"], "allowed: small, large"),
        (&["decompress", "missing.rohc", "x.pcap"], "missing.rohc: cannot open"),
        (&["decompress", "cut.rohc", "x.pcap"], "cut.rohc: packet 1 (byte 0): the file ends inside it"),
        (&["decompress", "noise.rohc", "x.pcap"], "noise.rohc: packet 1 (byte 0): no context"),
        (&["decompress", "empty.rohc", "x.pcap"], "empty.rohc: is empty"),
        (&["decompress", ".", "x.pcap"], "directory"),
    ] {
        let line = failure(at, arguments);
        assert!(line.contains(words), "{arguments:?}: {line}");
    }
    assert_eq!(fs::read(at.join("acks.pcap")).unwrap(), whole);
}
