//! Compares the output of `contrib/wireshark/tacit.lua` with the program's own counts. tshark is installed by
//! `./ci.sh setup`; without it the tests are skipped and report this.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use assert_cmd::cargo::CommandCargoExt as _;
use serde_json::Value;

fn tacit(directory: &Path, arguments: &[&str]) -> Value {
    let mut command = Command::cargo_bin("tacit").unwrap();
    command.current_dir(directory).env("TACIT_CACHE_DIR", directory.join("cache")).args(arguments);
    let output = command.arg("--json").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// tshark's output for `file` with the dissector; `None` if tshark is not installed.
fn tshark(directory: &Path, file: &str, arguments: &[&str]) -> Option<String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../contrib/wireshark/tacit.lua");
    let script = format!("lua_script:{}", script.display());
    let mut command = Command::new("tshark");
    command.current_dir(directory).args(["-X", &script, "-r", file]).args(arguments);
    match command.output() {
        Ok(output) => {
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert!(!stderr.contains("Lua"), "{stderr}");
            Some(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        Err(error) => {
            eprintln!("SKIPPED: tshark: {error}");
            None
        }
    }
}

/// A run with a capture of all frames. Returns its results.
fn captured(directory: &Path, scheme: &str) -> Value {
    let set = ["--set", "run.duration=600 ms", "--set", "run.measure-from=0 s", "--pcap", "air.pcapng"];
    let run = ["run", "hack-2014-11n-150", "--clients", "2", "--scheme", scheme];
    tacit(directory, &[&run[..], &set].concat())
}

#[test]
fn acks_that_ride_on_link_layer_acks_are_found_byte_by_byte() {
    let directory = tempfile::tempdir().unwrap();
    for scheme in ["hack-more-data", "hack-batch", "tack-hack"] {
        let run = captured(directory.path(), scheme);
        let stations = run["bss"].as_array().map_or_else(
            || run["stations"].as_array().unwrap().clone(),
            |bss| bss.iter().flat_map(|bss| bss["stations"].as_array().unwrap().clone()).collect(),
        );
        let counted = |key: &str| stations.iter().map(|station| station[key].as_u64().unwrap()).sum::<u64>();
        let fields = ["bytes", "frames", "acks"].map(|name| format!("tacit.hack.{name}"));
        let mut arguments = vec!["-Y", "tacit_hack", "-T", "fields"];
        arguments.extend(fields.iter().flat_map(|field| ["-e", field]));
        let Some(lines) = tshark(directory.path(), "air.pcapng", &arguments) else { return };
        let rows: Vec<Vec<u64>> =
            lines.lines().map(|line| line.split('\t').map(|cell| cell.parse().unwrap()).collect()).collect();
        let sum = |column: usize| rows.iter().map(|row| row[column]).sum::<u64>();
        assert_eq!(rows.len() as u64, counted("augmented_link_acks"), "{scheme}");
        assert_eq!(sum(0), counted("appended_bytes"), "{scheme}");
        assert!(sum(1) >= rows.len() as u64, "{scheme}: every one has a frame at least");
        // The ACKs of a batch are coded together, so their number cannot be determined without the context.
        let acks = sum(2);
        // TACKs are so rare that each link-layer ACK carries a single one.
        let link_acks = rows.len() as u64;
        let fits = match scheme {
            "hack-batch" => acks == 0,
            "tack-hack" => acks >= link_acks && link_acks > 0,
            _ => acks > link_acks,
        };
        assert!(fits, "{scheme}: {acks} ACKs in {link_acks} link-layer ACKs");
        let wrong = tshark(directory.path(), "air.pcapng", &["-Y", "tacit.hack.malformed"]).unwrap();
        assert_eq!(wrong, "", "{scheme}");
    }
}

#[test]
fn an_audit_says_what_acks_it_could_not_count() {
    let directory = tempfile::tempdir().unwrap();
    for (scheme, is_warned) in [("stock", false), ("hack-more-data", true)] {
        captured(directory.path(), scheme);
        let audit = tacit(directory.path(), &["audit", "air.pcapng"]);
        let warnings = audit["warnings"].as_array().unwrap();
        let warned =
            warnings.iter().any(|text| text.as_str().unwrap().contains("compressed TCP ACKs (TCP/HACK, "));
        assert_eq!(warned, is_warned, "{scheme}: {warnings:?}");
    }
}

/// 16 dBm minus 76.7 dB of path loss over 10 m, in both directions. Beacons are broadcast, so no signal is given.
#[test]
fn frames_say_how_strong_they_are_where_that_is_known() {
    let directory = tempfile::tempdir().unwrap();
    let short = ["--set", "run.duration=200 ms", "--set", "run.measure-from=0 s", "--pcap", "air.pcapng"];
    for (set, heard) in
        [("wifi.distance=10 m", "-61"), ("wifi.distance=20 m", "-70"), ("wifi.capture=true", "")]
    {
        let run = ["run", "wlan-11n-150", "--set", "wifi.rate=15Mbps", "--set", set];
        tacit(directory.path(), &[&run[..], &short].concat());
        let arguments = ["-T", "fields", "-e", "wlan.fc.type_subtype", "-e", "radiotap.dbm_antsignal"];
        let Some(lines) = tshark(directory.path(), "air.pcapng", &arguments) else { return };
        assert!(lines.lines().count() > 50, "{set}: {}", lines.lines().count());
        for line in lines.lines() {
            let (kind, signal) = line.split_once('\t').unwrap();
            let is_beacon = matches!(kind, "8" | "0x0008");
            assert_eq!(signal, if is_beacon { "" } else { heard }, "{set}: {line}");
        }
    }
}

#[test]
fn every_rohc_packet_is_named_as_the_codec_counts_it() {
    let directory = tempfile::tempdir().unwrap();
    captured(directory.path(), "stock");
    let stats = tacit(directory.path(), &["rohc", "stats", "air.pcapng"]);
    for (cids, preference) in [("small", "FALSE"), ("large", "TRUE")] {
        tacit(directory.path(), &["rohc", "compress", "air.pcapng", "out.pcap", "--cid", cids]);
        let preference = format!("tacit_rohc.large:{preference}");
        let arguments = ["-o", &preference, "-T", "fields", "-e", "tacit.rohc.type"];
        let Some(types) = tshark(directory.path(), "out.pcap", &arguments) else { return };
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        types.lines().for_each(|name| *counts.entry(name).or_default() += 1);
        let expected: BTreeMap<&str, u64> = stats["formats"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(name, count)| (name.as_str(), count.as_u64().unwrap()))
            .collect();
        assert_eq!(counts, expected, "{cids} CIDs");
        assert!(expected.len() > 3, "{expected:?}");
    }
    // The first packet is an IR, which identifies its flow.
    let arguments = [
        "-c",
        "1",
        "-T",
        "fields",
        "-e",
        "tacit.rohc.srcport",
        "-e",
        "tacit.rohc.dstport",
        "-e",
        "tacit.rohc.crc8",
    ];
    let first =
        tshark(directory.path(), "out.pcap", &[&["-o", "tacit_rohc.large:TRUE"], &arguments[..]].concat());
    assert_eq!(first.unwrap().split('\t').filter(|cell| !cell.trim().is_empty()).count(), 3);
}

/// The byte ranges of frames in a capture written by tacit: pcap records after 24 bytes, or enhanced packet blocks of
/// pcapng.
fn frames(file: &[u8]) -> Vec<std::ops::Range<usize>> {
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap()) as usize;
    let (mut at, mut found) = (0, Vec::new());
    let is_pcap = file.starts_with(&[0x4d, 0x3c, 0xb2, 0xa1]);
    if is_pcap {
        at = 24;
    }
    while at + 16 <= file.len() {
        let (from, len, next) = match (is_pcap, word(at)) {
            (true, _) => (at + 16, word(at + 8), at + 16 + word(at + 8)),
            (false, 6) => (at + 28, word(at + 20), at + word(at + 4)),
            (false, _) => (at, 0, at + word(at + 4)),
        };
        found.push(from..from + len);
        at = next;
    }
    found.retain(|frame| !frame.is_empty());
    found
}

/// For arbitrary bytes in frames, the dissector reports malformed data and continues.
#[test]
fn garbage_is_no_error_of_the_dissector() {
    let directory = tempfile::tempdir().unwrap();
    captured(directory.path(), "hack-more-data");
    tacit(directory.path(), &["rohc", "compress", "air.pcapng", "out.pcap"]);
    // Radiotap and Block Ack headers, or the Ethernet header, stay intact; otherwise the dissector would not be called.
    for (name, sound_bytes, malformed) in
        [("air.pcapng", 50, "tacit.hack.malformed"), ("out.pcap", 14, "tacit.rohc.malformed")]
    {
        let sound = fs::read(directory.path().join(name)).unwrap();
        let places = frames(&sound);
        assert!(places.len() > 500, "{}", places.len());
        for round in 0..3_usize {
            let mut bytes = sound.clone();
            for (number, place) in places.iter().enumerate() {
                for at in place.clone().skip(sound_bytes).step_by(1 + (number + round) % 7) {
                    bytes[at] = bytes[at].wrapping_mul(31).wrapping_add((at + number * 7 + round) as u8);
                }
            }
            fs::write(directory.path().join("bad"), bytes).unwrap();
            let Some(text) = tshark(directory.path(), "bad", &["-V"]) else { return };
            assert!(!text.contains("Lua Error"), "{name}, round {round}");
            let wrong = tshark(directory.path(), "bad", &["-Y", malformed]).unwrap();
            assert!(wrong.lines().count() > 3, "{name}, round {round}: {}", wrong.lines().count());
        }
    }
}
