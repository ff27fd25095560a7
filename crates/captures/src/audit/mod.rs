//! What the acknowledgments in a capture cost.
//!
//! Reads pcap and pcapng of any common link type as a stream, counts data and pure ACKs per TCP
//! connection, and says with [`theory`](tacit_theory) what those ACKs would cost on a Wi-Fi hop.
//! Captures are hostile input: memory is bounded, and whatever was read before a fault still counts.

mod flow;
mod observed;
mod predict;
mod summary;
mod tcp;
mod text;

pub use observed::Observed;
pub use predict::{Prediction, RatioSource, Scheme};
pub use summary::{FlowSummary, Summary};
pub use text::to_text;

use std::io::Read;
use std::path::Path;

use serde::Serialize;

use crate::capture::container::{Container, Fault, Record};
use crate::capture::link::{Heard, IpBytes, Verdict, ip_packets};
use crate::capture::{CaptureError, open, open_reader};
use flow::FlowTable;
use tcp::{NotTcp, Tcp};

/// A capture, counted.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Audit {
    /// The file, as given.
    pub name: String,
    /// "pcap" or "pcapng".
    pub format: &'static str,
    /// Packets in it.
    pub packets: u64,
    /// TCP packets counted.
    pub tcp_packets: u64,
    /// Packets that were not counted, by reason.
    pub skipped: Skipped,
    /// What a reader of the numbers should know.
    pub warnings: Vec<String>,
    /// All connections together.
    pub total: Summary,
    /// Every connection, most octets first.
    pub flows: Vec<FlowSummary>,
    /// Connections beyond the 65,536 that are told apart.
    pub untracked: Option<Summary>,
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
    /// Cut off before the end of the TCP header, or malformed.
    pub short: u64,
    /// Encrypted 802.11 data.
    pub protected: u64,
    /// 802.11 frames with a bad FCS.
    pub bad_fcs: u64,
    /// 802.11 retransmissions of frames that were captured before.
    pub wifi_copies: u64,
    /// Copies that another interface of the same capture saw.
    pub other_interface: u64,
    /// Of a link type that is not understood.
    pub link_type: u64,
}

/// An audit with its prediction: the JSON form.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The counts.
    #[serde(flatten)]
    pub audit: Audit,
    /// What they mean on a Wi-Fi hop.
    pub prediction: Option<Prediction>,
}

impl Report {
    /// The report laid out for a terminal.
    pub fn to_text(&self) -> String {
        to_text(&self.audit, self.prediction.as_ref())
    }
}

/// Audits the capture at `path`.
///
/// # Errors
/// [`CaptureError`] where not a single packet can be read; later faults are warnings in the result.
pub fn audit_file(path: &Path) -> Result<Audit, CaptureError> {
    count(open(path)?, &path.display().to_string())
}

/// Audits the capture that `reader` gives; `name` is for messages.
///
/// # Errors
/// As [`audit_file`].
pub fn audit_reader(reader: impl Read, name: &str) -> Result<Audit, CaptureError> {
    count(open_reader(reader, name)?, name)
}

fn count(mut container: Container<impl Read>, name: &str) -> Result<Audit, CaptureError> {
    let mut counting = Counting::default();
    let mut bytes = Vec::new();
    loop {
        let before = container.offset();
        match container.next(&mut bytes) {
            Ok(Some(record)) => counting.packet(&record, &bytes),
            Ok(None) => break,
            Err(fault) if counting.packets == 0 => {
                return Err(CaptureError::before_any_packet(fault, name, container.offset()));
            }
            Err(fault) => {
                counting.stopped_at(&fault, before);
                break;
            }
        }
        // A pcap file has one link type: no use reading on.
        if let (Some(link_type), "pcap") = (counting.unknown_link_type, container.format_name()) {
            return Err(CaptureError::LinkType { name: name.into(), link_type });
        }
    }
    match counting.unknown_link_type {
        Some(link_type) if counting.skipped.link_type == counting.packets => {
            Err(CaptureError::LinkType { name: name.into(), link_type })
        }
        _ => Ok(counting.finish(name, container.format_name())),
    }
}

#[derive(Default)]
struct Counting {
    packets: u64,
    tcp_packets: u64,
    untimed: u64,
    skipped: Skipped,
    unknown_link_type: Option<u16>,
    stopped: Option<String>,
    /// Link-layer ACKs with compressed TCP ACKs behind them, and the octets of these.
    hack_acks: u64,
    hack_octets: u64,
    heard: Heard,
    flows: FlowTable,
}

impl Counting {
    fn packet(&mut self, record: &Record, bytes: &[u8]) {
        self.packets += 1;
        self.untimed += u64::from(record.at_nanos.is_none());
        let mut ip_packet = |ip: IpBytes<'_>| match Tcp::parse(&ip) {
            Ok(tcp) => {
                if self.flows.count(&tcp, (record.interface, ip.interface), record.at_nanos) {
                    self.tcp_packets += 1;
                } else {
                    self.skipped.other_interface += 1;
                }
            }
            Err(NotTcp::Other) => self.skipped.not_tcp += 1,
            Err(NotTcp::Fragment) => self.skipped.fragments += 1,
            Err(NotTcp::Short) => self.skipped.short += 1,
        };
        let heard = &mut self.heard;
        match ip_packets(record.link_type, bytes, record.original_len, heard, &mut ip_packet) {
            Verdict::Read => {}
            Verdict::Copy => self.skipped.wifi_copies += 1,
            Verdict::Opaque => self.skipped.protected += 1,
            Verdict::BadFcs => self.skipped.bad_fcs += 1,
            Verdict::NotIp => self.skipped.not_ip += 1,
            Verdict::HackAck(octets) => {
                self.skipped.not_ip += 1;
                self.hack_acks += 1;
                self.hack_octets += octets as u64;
            }
            Verdict::Short => self.skipped.short += 1,
            Verdict::Unsupported => {
                self.skipped.link_type += 1;
                self.unknown_link_type.get_or_insert(record.link_type);
            }
        }
    }

    fn stopped_at(&mut self, fault: &Fault, offset: u64) {
        let what = fault.describe();
        self.stopped = Some(format!(
            "reading stopped at packet {} (byte {offset}): {what}; the {} packets before it are counted",
            self.packets + 1,
            self.packets
        ));
    }

    fn finish(self, name: &str, format: &'static str) -> Audit {
        let mut warnings = self.warnings();
        let finished = self.flows.finish();
        let total = &finished.total;
        if total.data_segments > total.data_packets {
            warnings.push(format!(
                "{} data packets stand for {} segments (GRO or TSO at the capturing host): the ratio per segment \
                 is what was on the link",
                total.data_packets, total.data_segments
            ));
        }
        Audit {
            name: name.to_owned(),
            format,
            packets: self.packets,
            tcp_packets: self.tcp_packets,
            skipped: self.skipped,
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
            (skipped.other_interface, "packets were seen on a second interface and are counted once"),
            (skipped.link_type, "packets are of a link type that is not understood"),
            (self.untimed, "packets have no time stamp"),
        ];
        let mut warnings: Vec<String> = self.stopped.iter().cloned().collect();
        if self.tcp_packets == 0 {
            warnings.push("there is no readable TCP packet".into());
        }
        if self.hack_acks > 0 {
            warnings.push(format!(
                "{} link-layer ACKs carry compressed TCP ACKs (TCP/HACK, {} octets), which are not counted: ratios are \
                 of the ACKs that went as packets",
                self.hack_acks, self.hack_octets
            ));
        }
        warnings.extend(
            counted.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")),
        );
        warnings
    }
}

#[cfg(test)]
mod tests;
