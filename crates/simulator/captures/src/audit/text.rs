//! An audit as text.

use super::{Audit, Counted, Prediction, RatioSource, Summary};
use tacit_scenario::table::{Page, count, number, significant};

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

/// The audit and, if given, the prediction as text: the result, then counts; in lines of at most `width` characters.
pub fn to_text(audit: &Audit, prediction: Option<&Prediction>, width: Option<usize>) -> String {
    let mut page = Page::new(width);
    page.line(prediction.map_or_else(|| NO_PREDICTION.to_owned(), headline));
    page.gap();
    head(&mut page, audit);
    sent_as(&mut page, audit);
    section(&mut page, "all connections", &audit.total);
    for flow in audit.flows.iter().take(FLOWS_SHOWN) {
        let rtt = flow.handshake_rtt_ms.map_or(String::new(), |ms| format!(", handshake {ms:.3} ms"));
        let title = format!("{} -> {} (IPv{}{rtt})", flow.source, flow.destination, flow.ip_version);
        section(&mut page, &title, &flow.summary);
    }
    let more = audit.flows.len().saturating_sub(FLOWS_SHOWN);
    if more > 0 {
        page.gap();
        page.line(format!("... and {}", count(more as u64, "more connection")));
    }
    if let Some(others) = &audit.untracked {
        section(&mut page, "connections beyond the limit, together", others);
    }
    if let Some(prediction) = prediction {
        predicted(&mut page, prediction);
    }
    page.finish()
}

/// What there is to say of a capture without usable ACKs.
const NO_PREDICTION: &str =
    "no prediction: the capture does not show how often data is acknowledged (no pure ACK that advances)";

/// What the ACKs cost, and the scheme of the ends and the one of the chips that gain most.
fn headline(prediction: &Prediction) -> String {
    let mut text = format!(
        "The capture's ACKs take {:.1} % of the airtime of {} at {} Mb/s{}.",
        prediction.ack_airtime_share * 100.0,
        prediction.phy,
        significant(prediction.rate_mbps),
        on_links(prediction)
    );
    let best = |needs_chips: bool| {
        let able = prediction.schemes.iter().filter(|row| row.needs_chips == Some(needs_chips));
        let best = able.max_by(|one, other| one.gain_percent.total_cmp(&other.gain_percent));
        best.filter(|row| row.gain_percent > 0.05)
            .map(|row| format!("{}, {:+.1} %", row.scheme, row.gain_percent))
    };
    match (best(false), best(true)) {
        (Some(soft), Some(hard)) => {
            text.push_str(&format!(" Best without new hardware: {soft}; with: {hard}."));
        }
        (Some(soft), None) => text.push_str(&format!(" Best: {soft}, without new hardware.")),
        (None, Some(hard)) => text.push_str(&format!(" Best: {hard}, with new hardware; none without.")),
        (None, None) => text.push_str(" No scheme gains anything."),
    }
    text
}

fn on_links(prediction: &Prediction) -> String {
    if prediction.links > 1 { format!(" on {} links", prediction.links) } else { String::new() }
}

fn head(page: &mut Page, audit: &Audit) {
    page.line(format!(
        "{}: {}, {}, {} of them TCP in {}",
        audit.name,
        audit.format,
        count(audit.packets, "packet"),
        number(audit.tcp_packets as f64, 0),
        count(audit.flows.len() as u64, "connection")
    ));
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
        page.line(format!("out of tunnels: {}", kinds(&audit.tunnels)));
    }
    if !audit.not_tcp.is_empty() {
        page.line(format!("not TCP: {}", kinds(&audit.not_tcp)));
    }
    for warning in &audit.warnings {
        page.line(format!("warning: {warning}"));
    }
}

fn sent_as(page: &mut Page, audit: &Audit) {
    if audit.sent_as.is_empty() {
        return;
    }
    page.gap();
    // Links of multi-link devices are interfaces of the file.
    let is_one = audit.sent_as.iter().all(|sent| sent.interface == audit.sent_as[0].interface);
    let on = |interface: &str| if is_one { String::new() } else { format!("  {interface:>9}") };
    page.line(format!(
        "{}  {:<10} {:>3} {:>7} {:>4} {:>6} {:>8} {:>12} {:>10}",
        on("interface"),
        "sent as",
        "MCS",
        "streams",
        "MHz",
        "GI us",
        "Mb/s",
        "data packets",
        "others"
    ));
    for sent in audit.sent_as.iter().take(MODES_SHOWN) {
        page.line(format!(
            "{}  {:<10} {:>3} {:>7} {:>4} {:>6.1} {:>8.1} {:>12} {:>10}",
            on(&sent.interface.to_string()),
            sent.format,
            sent.mcs.map_or("-".into(), |mcs| mcs.to_string()),
            sent.streams,
            sent.width_mhz,
            f64::from(sent.guard_interval_ns) / 1e3,
            sent.rate_mbps,
            sent.data_packets,
            sent.packets - sent.data_packets
        ));
    }
    let more = audit.sent_as.len().saturating_sub(MODES_SHOWN);
    if more > 0 {
        page.line(format!("  ... and {}", count(more as u64, "more mode")));
    }
}

fn section(page: &mut Page, title: &str, summary: &Summary) {
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
    page.gap();
    page.line(title);
    for (label, value) in LABELS.iter().zip(values) {
        page.line(format!("  {label:<22} {value:>12}"));
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
        page.line(format!("  {label:<22} {count:>12}"));
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

fn predicted(page: &mut Page, prediction: &Prediction) {
    let source = match prediction.acks_per_segment_source {
        RatioSource::Counted => "counted",
        RatioSource::AckStride => "from the bytes each ACK acknowledged",
    };
    page.gap();
    page.line(format!(
        "on {} at {} Mb/s{} (link ACKs {} Mb/s), saturated, lossless, no contenders",
        prediction.phy,
        prediction.rate_mbps,
        on_links(prediction),
        prediction.control_rate_mbps
    ));
    page.line(format!(
        "  {} B packets with {} B payload, {} B ACKs, {:.3} ACKs per segment ({source}); TACK at {} ms RTT",
        prediction.packet_bytes,
        prediction.payload_bytes,
        prediction.ack_bytes,
        prediction.acks_per_segment,
        prediction.rtt_ms
    ));
    page.line(format!(
        "  the capture's ACKs take {:.1} % of the airtime, {:.3} s in all",
        prediction.ack_airtime_share * 100.0,
        prediction.ack_airtime_s
    ));
    page.line(format!(
        "  {:<24} {:>12} {:>8} {:>10} {:>14}",
        "scheme", "goodput Mb/s", "gain %", "ACKs/s", "ACK airtime %"
    ));
    for row in &prediction.schemes {
        page.line(format!(
            "  {:<24} {:>12.1} {:>+8.1} {:>10.0} {:>14.1}",
            row.scheme,
            row.goodput_mbps,
            row.gain_percent,
            row.acks_per_second,
            row.feedback_airtime_share * 100.0
        ));
    }
}
