//! Captures that this program or others used to misread: `../shared/cases/captures`, and similar ones.

use std::path::PathBuf;

use tacit_packet::units::Duration;

use super::super::*;
use super::{n150, pcap};

/// The audit of a case; `None`, with a message, if the captures are not available.
fn case(name: &str) -> Option<Audit> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/cases/captures").join(name);
    if !path.exists() {
        eprintln!("SKIPPED: no {}", path.display());
        return None;
    }
    Some(audit_file(&path).unwrap())
}

/// tshark counts 20 data packets and 10 pure ACKs in each capture.
#[test]
fn no_packet_that_was_seen_once_is_a_copy() {
    for name in [
        "alternate-interfaces.pcapng",
        "two-sections.pcapng",
        "pppoe-pfc.pcap",
        "gre.pcap",
        "prism.pcap",
        "keepalives.pcap",
        "pppoe-length.pcap",
        "cisco-metadata.pcap",
        "l2tp.pcap",
    ] {
        let Some(audit) = case(name) else { return };
        assert_eq!((audit.total.data_packets, audit.total.ack_packets), (20, 10), "{name}: {audit:?}");
        assert_eq!((audit.total.duplicate_ack_share, audit.skipped.copies), (Some(0.0), 0), "{name}");
    }
}

#[test]
fn tunnels_are_told() {
    let Some(audit) = case("gre.pcap") else { return };
    assert_eq!(audit.tunnels, [Counted { kind: "GRE".into(), packets: 30 }]);
    assert!(to_text(&audit, None, None).contains("out of tunnels: 30 GRE"));
    let Some(audit) = case("pppoe-pfc.pcap") else { return };
    assert_eq!(audit.tunnels, [Counted { kind: "PPPoE".into(), packets: 30 }]);
    let Some(audit) = case("l2tp.pcap") else { return };
    assert_eq!(audit.tunnels, [Counted { kind: "L2TP".into(), packets: 30 }]);
}

#[test]
fn keep_alives_and_answers_are_kinds_of_their_own() {
    let Some(audit) = case("keepalives.pcap") else { return };
    assert_eq!((audit.total.keep_alives, audit.total.keep_alive_acks), (10, 10));
}

/// Without a pure ACK there is no basis for a prediction.
#[test]
fn without_acks_nothing_is_predicted() {
    let Some(audit) = case("syn-only.pcap") else { return };
    let prediction = audit.predict(&[n150()], Duration::from_millis(20));
    assert_eq!(prediction, None);
    let report = Report { audit, prediction };
    assert!(report.to_text(None).contains("no prediction: "), "{}", report.to_text(None));
    assert!(!report.to_text(None).contains("airtime"));
    assert_eq!(serde_json::to_value(&report).unwrap()["prediction"], serde_json::Value::Null);
}

/// A capture with nanoseconds whose header indicates microseconds (ntopng issue 5728) has the same duration as one with
/// a correct header.
#[test]
fn nanoseconds_under_the_magic_number_of_microseconds_are_told() {
    let packets = super::conversation();
    let right = pcap(false, true, 1, 262_144, &packets);
    let mut wrong = right.clone();
    wrong[..4].copy_from_slice(&0xa1b2_c3d4_u32.to_le_bytes());
    let (right, wrong) =
        (audit_reader(&right[..], "right").unwrap(), audit_reader(&wrong[..], "wrong").unwrap());
    assert_eq!(wrong.total.duration_s, right.total.duration_s);
    assert!(wrong.warnings[0].contains("they are read as such from packet 1 on"), "{:?}", wrong.warnings);
}

/// Two identical ACKs without IPv4 identification are two duplicates if captured on one interface, and one packet if
/// captured on two.
#[test]
fn equal_acks_without_numbers_are_copies_only_across_interfaces() {
    let ack = super::ethernet(false, 1, 1449, 500, false, 0);
    let mut table = FlowTable::default();
    let tcp = Tcp::parse(&IpBytes {
        bytes: &ack[14..],
        on_link: ack.len() as u32 - 14,
        interface: None,
        tunnel: None,
        mode: None,
    });
    let mut tcp = tcp.unwrap();
    let mut count =
        |interface: u32, at_ms: i128| table.count(&tcp, (interface, None), Some(at_ms * 1_000_000));
    assert!(count(0, 0) && count(0, 1));
    assert!(!count(1, 2), "the same on another interface");
    assert!(count(1, 300), "later than any copy");
    // A sender that numbers its packets does not send two with the same number.
    tcp.ip_id = Some(7);
    table.count(&tcp, (0, None), Some(400_000_000));
    tcp.ip_id = Some(8);
    assert!(table.count(&tcp, (0, None), Some(401_000_000)));
    assert!(!table.count(&tcp, (0, None), Some(402_000_000)));
}

#[test]
fn zero_window_probes_and_their_answers_are_no_data_and_no_acks() {
    let payload =
        |from_server, seq, ack, window, bytes| super::ethernet(from_server, seq, ack, window, false, bytes);
    let packets = [
        payload(true, 1, 1, 500, 100),
        payload(false, 1, 101, 0, 0),
        payload(true, 101, 1, 500, 1),
        payload(false, 1, 101, 0, 0),
        payload(true, 101, 1, 500, 1),
        payload(false, 1, 101, 0, 0),
        payload(false, 1, 101, 400, 0),
        payload(true, 101, 1, 500, 100),
        payload(false, 1, 201, 400, 0),
    ];
    let audit = audit_reader(&pcap(false, false, 1, 200, &packets)[..], "probes").unwrap();
    let total = audit.total;
    assert_eq!((total.data_packets, total.ack_packets), (2, 2));
    assert_eq!((total.zero_window_probes, total.zero_window_probe_acks, total.window_updates), (2, 2, 1));
}

/// Of the three packets in each of these seeds of the fuzz target, the third is a pure ACK.
#[test]
fn tunnels_and_tags_count_as_what_they_carry() {
    let seeds = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/corpus/audit");
    for name in ["pppoe-length", "cisco-metadata", "l2tp", "l2tpv3", "hsr"] {
        let audit = audit_file(&seeds.join(name)).unwrap();
        let total = &audit.total;
        assert_eq!((audit.packets, audit.tcp_packets), (3, 3), "{name}: {audit:?}");
        assert_eq!((total.data_packets, total.payload_bytes, total.ack_packets), (2, 200, 1), "{name}");
    }
}

/// The counts of every available capture equal those of tshark, which `./ci.sh setup` installs.
#[test]
fn every_capture_counts_as_in_tshark() {
    let crate_directory = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let shared = crate_directory.join("../../../../shared");
    // Not L2TPv3, for which tshark needs the control connection, and not xz, which few versions read.
    let seeds = ["pppoe-length", "cisco-metadata", "l2tp", "hsr", "hsr.gz", "hsr.zst"];
    let mut captures =
        Vec::from(seeds.map(|seed| crate_directory.join("../../../fuzz/corpus/audit").join(seed)));
    for directory in [shared.join("data/captures"), shared.join("cases/captures")] {
        let Ok(entries) = std::fs::read_dir(&directory) else {
            eprintln!("SKIPPED: no {}", directory.display());
            continue;
        };
        let is_pcap =
            |path: &PathBuf| path.extension().is_some_and(|e| e.to_string_lossy().starts_with("pcap"));
        captures.extend(entries.map(|entry| entry.unwrap().path()).filter(is_pcap));
    }
    for path in captures {
        let tshark = std::process::Command::new("tshark")
            .arg("-r")
            .arg(&path)
            .args(["-Y", "tcp", "-T", "fields", "-E", "occurrence=l", "-e", "tcp.len", "-e", "tcp.flags"])
            .output();
        let Ok(output) = tshark else {
            eprintln!("SKIPPED: no tshark");
            return;
        };
        let lines = String::from_utf8(output.stdout).unwrap();
        let pure_ack = |line: &&str| *line == "0\t0x0010";
        let (mut data, mut acks, mut all) = (0, 0, 0);
        for line in lines.lines() {
            all += 1;
            data += u64::from(!line.starts_with("0\t"));
            acks += u64::from(pure_ack(&line));
        }
        let audit = audit_file(&path).unwrap();
        let total = &audit.total;
        let kinds = total.window_updates + total.keep_alives + total.keep_alive_acks;
        let name = path.display();
        assert_eq!(audit.tcp_packets + audit.skipped.copies, all, "{name}");
        assert_eq!(total.data_packets + total.zero_window_probes, data, "{name}");
        assert_eq!(total.ack_packets + kinds + total.zero_window_probe_acks, acks, "{name}");
    }
}
