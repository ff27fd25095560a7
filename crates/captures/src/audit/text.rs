//! An audit as text.

use std::fmt::Write as _;

use super::{Audit, Counted, Prediction, RatioSource, Summary};
use tacit_scenario::table::{count, number};

/// Maximum number of kinds of other packets shown. The JSON form contains all.
const KINDS_SHOWN: usize = 8;
/// Maximum number of modes shown. The JSON form contains all.
const MODES_SHOWN: usize = 8;
/// Maximum number of connections shown. The JSON form contains all.
const FLOWS_SHOWN: usize = 10;

const LABELS: [&str; 12] = [
    "data packets",
    "data segments",
    "payload",
    "pure ACKs",
    "ACK ratio",
    "ACK ratio per segment",
    "ACK bytes (IP)",
    "bytes per ACK",
    "with SACK",
    "duplicates",
    "with timestamps",
    "duration",
];

/// The audit and, if given, the prediction, formatted for a terminal.
pub fn to_text(audit: &Audit, prediction: Option<&Prediction>) -> String {
    let mut out = String::new();
    head(&mut out, audit);
    sent_as(&mut out, audit);
    section(&mut out, "all connections", &audit.total);
    for flow in audit.flows.iter().take(FLOWS_SHOWN) {
        let rtt = flow.handshake_rtt_ms.map_or(String::new(), |ms| format!(", handshake {ms:.3} ms"));
        let title = format!("{} -> {} (IPv{}{rtt})", flow.source, flow.destination, flow.ip_version);
        section(&mut out, &title, &flow.summary);
    }
    let more = audit.flows.len().saturating_sub(FLOWS_SHOWN);
    if more > 0 {
        let _ = writeln!(out, "\n... and {}", count(more as u64, "more connection"));
    }
    if let Some(others) = &audit.untracked {
        section(&mut out, "connections beyond the limit, together", others);
    }
    match prediction {
        Some(prediction) => predicted(&mut out, prediction),
        None => out.push_str(
            "\nno prediction: the capture does not show how often data is acknowledged (no pure ACK that advances)\n",
        ),
    }
    out
}

fn head(out: &mut String, audit: &Audit) {
    let _ = writeln!(
        out,
        "{}: {}, {}, {} of them TCP in {}",
        audit.name,
        audit.format,
        count(audit.packets, "packet"),
        number(audit.tcp_packets as f64, 0),
        count(audit.flows.len() as u64, "connection")
    );
    let kinds = |kinds: &[Counted]| {
        let mut parts: Vec<String> =
            kinds.iter().take(KINDS_SHOWN).map(|kind| format!("{} {}", kind.packets, kind.kind)).collect();
        let more = kinds.len().saturating_sub(KINDS_SHOWN);
        if more > 0 {
            parts.push(count(more as u64, "more kind"));
        }
        parts.join(", ")
    };
    if !audit.tunnels.is_empty() {
        let _ = writeln!(out, "out of tunnels: {}", kinds(&audit.tunnels));
    }
    if !audit.not_tcp.is_empty() {
        let _ = writeln!(out, "not TCP: {}", kinds(&audit.not_tcp));
    }
    for warning in &audit.warnings {
        let _ = writeln!(out, "warning: {warning}");
    }
}

fn sent_as(out: &mut String, audit: &Audit) {
    if audit.sent_as.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "\n  {:<10} {:>3} {:>7} {:>4} {:>6} {:>8} {:>12} {:>10}",
        "sent as", "MCS", "streams", "MHz", "GI us", "Mb/s", "data packets", "others"
    );
    for sent in audit.sent_as.iter().take(MODES_SHOWN) {
        let _ = writeln!(
            out,
            "  {:<10} {:>3} {:>7} {:>4} {:>6.1} {:>8.1} {:>12} {:>10}",
            sent.format,
            sent.mcs.map_or("-".into(), |mcs| mcs.to_string()),
            sent.streams,
            sent.width_mhz,
            f64::from(sent.guard_interval_ns) / 1e3,
            sent.rate_mbps,
            sent.data_packets,
            sent.packets - sent.data_packets
        );
    }
    let more = audit.sent_as.len().saturating_sub(MODES_SHOWN);
    if more > 0 {
        let _ = writeln!(out, "  ... and {}", count(more as u64, "more mode"));
    }
}

fn section(out: &mut String, title: &str, summary: &Summary) {
    let percent = |share: Option<f64>| share.map_or("-".into(), |share| format!("{:.1} %", share * 100.0));
    let no_ratio = if summary.both_directions { "- (no data)" } else { "- (one direction only)" };
    let ratio = |ratio: Option<f64>| ratio.map_or(no_ratio.into(), |ratio| format!("{ratio:.3}"));
    let values: [String; 12] = [
        summary.data_packets.to_string(),
        summary.data_segments.to_string(),
        bytes(summary.payload_bytes),
        summary.ack_packets.to_string(),
        ratio(summary.ack_ratio),
        ratio(summary.ack_ratio_per_segment),
        bytes(summary.ack_bytes),
        summary.mean_ack_stride_bytes.map_or("-".into(), |stride| format!("{stride:.0}")),
        percent(summary.sack_share),
        percent(summary.duplicate_ack_share),
        percent(summary.timestamps_share),
        summary.duration_s.map_or("-".into(), |seconds| format!("{seconds:.3} s")),
    ];
    let _ = writeln!(out, "\n{title}");
    for (label, value) in LABELS.iter().zip(values) {
        let _ = writeln!(out, "  {label:<22} {value:>12}");
    }
    // Counters that are zero in most captures.
    let rare = [
        ("window updates", summary.window_updates),
        ("keep-alives", summary.keep_alives),
        ("answers to keep-alives", summary.keep_alive_acks),
        ("zero-window probes", summary.zero_window_probes),
        ("answers to probes", summary.zero_window_probe_acks),
    ];
    for (label, count) in rare.iter().filter(|(_, count)| *count > 0) {
        let _ = writeln!(out, "  {label:<22} {count:>12}");
    }
}

fn bytes(count: u64) -> String {
    match count {
        0..10_000 => format!("{count} B"),
        10_000..10_000_000 => format!("{:.1} kB", count as f64 / 1e3),
        10_000_000..10_000_000_000 => format!("{:.1} MB", count as f64 / 1e6),
        _ => format!("{:.1} GB", count as f64 / 1e9),
    }
}

fn predicted(out: &mut String, prediction: &Prediction) {
    let source = match prediction.acks_per_segment_source {
        RatioSource::Counted => "counted",
        RatioSource::AckStride => "from the bytes each ACK acknowledged",
    };
    let _ = writeln!(
        out,
        "\non {} at {} Mb/s (link ACKs {} Mb/s), saturated, lossless, no contenders",
        prediction.phy, prediction.rate_mbps, prediction.control_rate_mbps
    );
    let _ = writeln!(
        out,
        "  {} B packets with {} B payload, {} B ACKs, {:.3} ACKs per segment ({source}); TACK at {} ms RTT",
        prediction.packet_bytes,
        prediction.payload_bytes,
        prediction.ack_bytes,
        prediction.acks_per_segment,
        prediction.rtt_ms
    );
    let _ = writeln!(
        out,
        "  the capture's ACKs take {:.1} % of the airtime, {:.3} s in all",
        prediction.ack_airtime_share * 100.0,
        prediction.ack_airtime_s
    );
    let _ = writeln!(
        out,
        "  {:<24} {:>12} {:>8} {:>10} {:>14}",
        "scheme", "goodput Mb/s", "gain %", "ACKs/s", "ACK airtime %"
    );
    for row in &prediction.schemes {
        let _ = writeln!(
            out,
            "  {:<24} {:>12.1} {:>+8.1} {:>10.0} {:>14.1}",
            row.scheme,
            row.goodput_mbps,
            row.gain_percent,
            row.acks_per_second,
            row.feedback_airtime_share * 100.0
        );
    }
}
