//! Cost of the acknowledgments in a capture.
//!
//! Reads pcap and pcapng of any common link type as a stream, counts data and pure ACKs per TCP connection, and
//! computes with [`theory`](tacit_theory) what these ACKs cost on a Wi-Fi hop. Captures are untrusted input: memory is
//! bounded, and if a fault is found, everything before it still counts.

mod copies;
mod flow;
mod modes;
mod observed;
mod predict;
mod segment;
mod summary;
mod tcp;
mod text;

pub use modes::SentAs;
pub use observed::Observed;
pub use predict::{Prediction, RatioSource, Scheme};
pub use summary::{FlowSummary, Summary};
pub use text::to_text;

use std::io::Read;
use std::path::Path;

use serde::Serialize;

use crate::capture::container::{Container, Fault, Record};
use crate::capture::link::{IpBytes, Kind, Kinds, RetryFilter, Sink, Verdict, ip_packets, kind_of};
use crate::capture::{CaptureError, open, open_reader};
use flow::FlowTable;
use modes::Modes;
use tcp::{NotTcp, Tcp};

/// The counts of a capture.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Audit {
    /// Name of the file as given.
    pub name: String,
    /// "pcap" or "pcapng".
    pub format: &'static str,
    /// Number of packets in it.
    pub packets: u64,
    /// Number of TCP packets counted.
    pub tcp_packets: u64,
    /// Packets that were not counted, by reason.
    pub skipped: Skipped,
    /// Kinds of packets and frames without TCP, most frequent first.
    pub not_tcp: Vec<Counted>,
    /// TCP packets counted inside tunnels, by innermost tunnel, most frequent first.
    pub tunnels: Vec<Counted>,
    /// PHY modes of 802.11 frames with TCP, if their radiotap headers include them, most data first.
    pub sent_as: Vec<SentAs>,
    /// Whether the data of a connection came over several interfaces, as that of multi-link devices does.
    pub shares_links: bool,
    /// Caveats about the numbers.
    pub warnings: Vec<String>,
    /// The sum over all connections.
    pub total: Summary,
    /// Every connection, in descending order of bytes.
    pub flows: Vec<FlowSummary>,
    /// The sum over connections beyond the first 65,536.
    pub untracked: Option<Summary>,
}

/// Number of packets of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Counted {
    /// The kind's name.
    pub kind: String,
    /// Number of packets.
    pub packets: u64,
}

/// Packets that were not counted, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// Frames that carry no IP: ARP, beacons, link-layer ACKs.
    pub not_ip: u64,
    /// IP but not TCP.
    pub not_tcp: u64,
    /// IP fragments after the first.
    pub fragments: u64,
    /// Truncated before the end of the TCP header, or malformed.
    pub short: u64,
    /// Encrypted 802.11 data.
    pub protected: u64,
    /// 802.11 frames with a bad FCS.
    pub bad_fcs: u64,
    /// 802.11 retransmissions of frames captured earlier.
    pub wifi_copies: u64,
    /// Copies of packets captured earlier: identical headers within 200 ms.
    pub copies: u64,
    /// Packets with more nested headers than the parser follows.
    pub too_deep: u64,
    /// Packets of an unsupported link type.
    pub link_type: u64,
}

/// An audit with its prediction, in the form of the JSON output.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The counts.
    #[serde(flatten)]
    pub audit: Audit,
    /// Predicted cost on a Wi-Fi hop.
    pub prediction: Option<Prediction>,
}

impl Report {
    /// The report as text: the result, then counts; in lines of at most `width` characters.
    pub fn to_text(&self, width: Option<usize>) -> String {
        to_text(&self.audit, self.prediction.as_ref(), width)
    }
}

/// Audits the capture at `path`.
///
/// # Errors
/// [`CaptureError`] if no packet can be read. Later faults become warnings in the result.
pub fn audit_file(path: &Path) -> Result<Audit, CaptureError> {
    count(open(path)?, &path.display().to_string(), &mut |_| {})
}

/// Audits the capture from `reader`; `name` is used in messages.
///
/// # Errors
/// Same as [`audit_file`].
pub fn audit_reader(reader: impl Read, name: &str) -> Result<Audit, CaptureError> {
    audit_live(reader, name, &mut |_| {})
}

/// Progress of an audit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Packets read.
    pub packets: u64,
    /// TCP packets counted.
    pub tcp_packets: u64,
    /// TCP packets with payload.
    pub data_packets: u64,
    /// TCP packets without payload whose only purpose is an acknowledgment.
    pub pure_acks: u64,
    /// Packets that were not counted.
    pub not_counted: u64,
    /// Number of connections.
    pub connections: u64,
}

/// Audits the capture from `reader`, and calls `progress` after every packet.
///
/// # Errors
/// Same as [`audit_file`].
pub fn audit_live(
    reader: impl Read,
    name: &str,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Audit, CaptureError> {
    count(open_reader(reader, name)?, name, progress)
}

fn count(
    mut container: Container<impl Read>,
    name: &str,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Audit, CaptureError> {
    let mut counting = Counting::default();
    let mut bytes = Vec::new();
    loop {
        let before = container.offset();
        match container.next(&mut bytes) {
            Ok(Some(record)) => {
                counting.packet(&record, &bytes);
                progress(&counting.progress);
            }
            Ok(None) => break,
            Err(fault) if counting.progress.packets == 0 => {
                return Err(CaptureError::before_any_packet(fault, name, container.offset()));
            }
            Err(fault) => {
                counting.stopped_at(&fault, before);
                break;
            }
        }
        // A pcap file has a single link type, so all further packets would be unreadable too.
        if let (Some(link_type), "pcap") = (counting.unknown_link_type, container.format_name()) {
            return Err(CaptureError::LinkType { name: name.into(), link_type });
        }
    }
    match counting.unknown_link_type {
        Some(link_type) if counting.skipped.link_type == counting.progress.packets => {
            Err(CaptureError::LinkType { name: name.into(), link_type })
        }
        _ => {
            counting.late_fractions = container.late_fractions();
            Ok(counting.finish(name, container.format_name()))
        }
    }
}

#[derive(Default)]
struct Counting {
    progress: Progress,
    untimed: u64,
    late_fractions: Option<u64>,
    skipped: Skipped,
    not_tcp: Kinds,
    tunnels: Kinds,
    modes: Modes,
    unknown_link_type: Option<u16>,
    stopped: Option<String>,
    /// Link-layer ACKs with appended compressed TCP ACKs, and the length of these in bytes.
    hack_acks: u64,
    hack_bytes: u64,
    heard: RetryFilter,
    flows: FlowTable,
}

/// Receives the packets of one frame.
struct Packets<'c> {
    counting: &'c mut Counting,
    record: Record,
}

impl Sink for Packets<'_> {
    fn packet(&mut self, ip: IpBytes<'_>) {
        let counting = &mut *self.counting;
        match Tcp::parse(&ip) {
            Ok(tcp) => {
                if !counting.flows.count(&tcp, (self.record.interface, ip.interface), self.record.at_nanos) {
                    counting.skipped.copies += 1;
                    return;
                }
                if let Some(tunnel) = ip.tunnel {
                    counting.tunnels.count(Kind::Named(tunnel));
                }
                if let Some(mode) = &ip.mode {
                    counting.modes.count(self.record.interface, mode, tcp.payload_len > 0);
                }
                counting.progress.tcp_packets += 1;
                counting.progress.data_packets += u64::from(tcp.payload_len > 0);
                counting.progress.pure_acks += u64::from(tcp.is_pure_ack());
                counting.progress.connections = counting.flows.connections() as u64;
            }
            Err(NotTcp::Other) => {
                counting.skipped.not_tcp += 1;
                counting.not_tcp.count(kind_of(ip.bytes));
            }
            Err(NotTcp::Fragment) => counting.skipped.fragments += 1,
            Err(NotTcp::Short) => counting.skipped.short += 1,
        }
    }
}

impl Counting {
    fn packet(&mut self, record: &Record, bytes: &[u8]) {
        self.progress.packets += 1;
        self.untimed += u64::from(record.at_nanos.is_none());
        let mut heard = std::mem::take(&mut self.heard);
        let mut packets = Packets { counting: self, record: *record };
        let verdict = ip_packets(record.link_type, bytes, record.original_len, &mut heard, &mut packets);
        self.heard = heard;
        match verdict {
            Verdict::Read => {}
            Verdict::Copy => self.skipped.wifi_copies += 1,
            Verdict::Opaque => self.skipped.protected += 1,
            Verdict::BadFcs => self.skipped.bad_fcs += 1,
            Verdict::NotIp(kind) => {
                self.skipped.not_ip += 1;
                self.not_tcp.count(kind);
            }
            Verdict::HackAck(len) => {
                self.skipped.not_ip += 1;
                self.not_tcp.count(Kind::Named("TCP/HACK's link-layer ACKs"));
                self.hack_acks += 1;
                self.hack_bytes += len as u64;
            }
            Verdict::Short => self.skipped.short += 1,
            Verdict::TooDeep => self.skipped.too_deep += 1,
            Verdict::Unsupported => {
                self.skipped.link_type += 1;
                self.unknown_link_type.get_or_insert(record.link_type);
            }
        }
        self.progress.not_counted = self.progress.packets.saturating_sub(self.progress.tcp_packets);
    }

    fn stopped_at(&mut self, fault: &Fault, offset: u64) {
        let what = fault.describe();
        self.stopped = Some(format!(
            "reading stopped at packet {} (byte {offset}): {what}; the {} packets before it are counted",
            self.progress.packets + 1,
            self.progress.packets
        ));
    }

    fn finish(self, name: &str, format: &'static str) -> Audit {
        let mut warnings = self.warnings();
        let finished = self.flows.finish();
        let total = &finished.total;
        if total.data_segments > total.data_packets {
            warnings.push(format!(
                "{} data packets stand for {} segments (GRO or TSO at the capturing host): the ratio per segment \
                 is the one on the link",
                total.data_packets, total.data_segments
            ));
        }
        Audit {
            name: name.to_owned(),
            format,
            packets: self.progress.packets,
            tcp_packets: self.progress.tcp_packets,
            skipped: self.skipped,
            not_tcp: counted(&self.not_tcp),
            tunnels: counted(&self.tunnels),
            sent_as: self.modes.finish(),
            shares_links: finished.shares_links,
            warnings,
            total: finished.total,
            flows: finished.flows,
            untracked: finished.untracked,
        }
    }

    fn warnings(&self) -> Vec<String> {
        let skipped = &self.skipped;
        let counted = [
            (skipped.short, "packets are cut off before the end of the TCP header, or malformed"),
            (skipped.fragments, "IP fragments show no TCP header and are not counted"),
            (skipped.protected, "802.11 frames are encrypted: their contents are unknown"),
            (skipped.bad_fcs, "802.11 frames have a bad FCS and are not counted"),
            (skipped.wifi_copies, "802.11 retransmissions of frames already captured are not counted"),
            (
                skipped.copies,
                "packets are copies of others (same headers within 200 ms) and are not counted again",
            ),
            (skipped.too_deep, "packets have more headers around each other than are followed"),
            (skipped.link_type, "packets are of a link type that is not understood"),
            (self.untimed, "packets have no time stamp"),
        ];
        let mut warnings: Vec<String> = self.stopped.iter().cloned().collect();
        if self.progress.tcp_packets == 0 {
            warnings.push("there is no readable TCP packet".into());
        }
        if let Some(first) = self.late_fractions {
            warnings.push(format!(
                "microseconds beyond 999,999: the file says microseconds and holds nanoseconds; they are read as such from \
                 packet {first} on"
            ));
        }
        if self.hack_acks > 0 {
            warnings.push(format!(
                "{} link-layer ACKs carry compressed TCP ACKs (TCP/HACK, {} bytes), which are not counted: ratios are \
                 of the ACKs that went as packets",
                self.hack_acks, self.hack_bytes
            ));
        }
        warnings.extend(
            counted.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")),
        );
        warnings
    }
}

fn counted(kinds: &Kinds) -> Vec<Counted> {
    kinds.by_count().into_iter().map(|(kind, packets)| Counted { kind, packets }).collect()
}

#[cfg(test)]
mod tests;
