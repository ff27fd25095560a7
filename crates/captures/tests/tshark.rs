//! What `tacit audit` counts is what tshark counts, over every capture beside this checkout: `../shared/data` and
//! `../shared/cases`. tshark comes with `./ci.sh setup`; where it or the captures are missing the test says so and is skipped.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tacit_captures::audit::audit_file;

/// TCP packets of a capture by kind.
#[derive(Debug, Default, PartialEq)]
struct Counts {
    tcp: u64,
    /// With payload, or nothing but a segment number before what is expected.
    data: u64,
    keep_alives: u64,
    keep_alive_acks: u64,
    zero_window_probes: u64,
    zero_window_probe_acks: u64,
    /// The rest without payload, SYN, FIN and RST apart, and window updates: tshark takes the ACK that ends a handshake for one.
    acks: u64,
}

/// As tshark counts them: of a packet in tunnels the innermost segment.
fn counted_by_tshark(path: &Path) -> Option<Counts> {
    const KINDS: [&str; 4] = ["keep_alive", "keep_alive_ack", "zero_window_probe", "zero_window_probe_ack"];
    let mut command = Command::new("tshark");
    command.arg("-r").arg(path).args(["-Y", "tcp", "-T", "fields", "-E", "occurrence=l"]);
    command.args(["-e", "tcp.len", "-e", "tcp.flags"]);
    for kind in KINDS {
        command.args(["-e".to_owned(), format!("tcp.analysis.{kind}")]);
    }
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => {
            eprintln!("SKIPPED: tshark: {error}");
            return None;
        }
    };
    assert!(output.status.success(), "{}: {}", path.display(), String::from_utf8_lossy(&output.stderr));
    let mut counts = Counts::default();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [len, flags, kinds @ ..] = &fields[..] else { panic!("{line}") };
        let flags = u32::from_str_radix(flags.trim_start_matches("0x"), 16).unwrap();
        let is = |at: usize| kinds.get(at).is_some_and(|said| !said.is_empty());
        const FIN_SYN_RST: u32 = 0x07;
        counts.tcp += 1;
        let count = match () {
            () if is(0) => &mut counts.keep_alives,
            () if is(1) => &mut counts.keep_alive_acks,
            () if is(2) => &mut counts.zero_window_probes,
            () if is(3) => &mut counts.zero_window_probe_acks,
            () if len.parse::<u64>().unwrap() > 0 => &mut counts.data,
            () if flags & FIN_SYN_RST == 0 => &mut counts.acks,
            () => continue,
        };
        *count += 1;
    }
    Some(counts)
}

fn counted_by_audit(path: &Path) -> Counts {
    let audit = serde_json::to_value(audit_file(path).unwrap()).unwrap();
    let total = |name: &str| audit["total"][name].as_u64().unwrap();
    Counts {
        tcp: audit["tcp_packets"].as_u64().unwrap(),
        data: total("data_packets"),
        keep_alives: total("keep_alives"),
        keep_alive_acks: total("keep_alive_acks"),
        zero_window_probes: total("zero_window_probes"),
        zero_window_probe_acks: total("zero_window_probe_acks"),
        acks: total("ack_packets") + total("window_updates"),
    }
}

/// Every pcap and pcapng file below `directory`.
fn captures(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten().map(Result::unwrap) {
        let path = entry.path();
        match path.extension().and_then(|extension| extension.to_str()) {
            _ if path.is_dir() => found.extend(captures(&path)),
            Some("pcap" | "pcapng") => found.push(path),
            _ => {}
        }
    }
    found.sort();
    found
}

#[test]
fn an_audit_counts_what_tshark_counts() {
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let all: Vec<PathBuf> = ["data", "cases"].iter().flat_map(|part| captures(&shared.join(part))).collect();
    if all.is_empty() {
        eprintln!("SKIPPED: no captures below {}", shared.display());
        return;
    }
    for path in all {
        let Some(expected) = counted_by_tshark(&path) else { return };
        assert_eq!(counted_by_audit(&path), expected, "{}", path.display());
    }
}
