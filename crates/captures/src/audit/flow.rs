//! Connections and what was counted of them, in bounded memory.

use std::collections::HashMap;
use std::net::SocketAddr;

use tacit_proto::counters;
use tacit_proto::tcp::Flags;

use super::summary::{FlowSummary, Summary};
use super::tcp::Tcp;

/// Connections told apart; the packets of any further ones are counted together.
pub(super) const MOST_FLOWS: usize = 65_536;

/// IPv4 and IPv6 packets of this size are what an unannounced segment size is taken from.
const ETHERNET_MTU: u32 = 1500;

counters! {
    /// Plain sums.
    pub(super) struct Counters {
        packets: u64,
        ip_bytes: u64,
        data_packets: u64,
        data_segments: u64,
        data_ip_bytes: u64,
        payload_bytes: u64,
        ack_packets: u64,
        ack_bytes: u64,
        sack_acks: u64,
        timestamp_acks: u64,
        window_updates: u64,
        duplicate_acks: u64,
        /// Octets that pure ACKs acknowledged for the first time.
        acked_bytes: u64,
    }
}

impl Counters {
    /// What one packet says without its past. `mss` is the size the handshake announced, if seen.
    fn count(&mut self, tcp: &Tcp, mss: Option<u16>) {
        self.packets += 1;
        self.ip_bytes += u64::from(tcp.ip_len);
        if tcp.payload_len > 0 {
            let segments = u64::from(tcp.payload_len.div_ceil(segment_payload(tcp, mss)));
            self.data_packets += 1;
            self.data_segments += segments;
            // On the link every segment has headers, though a super-segment shows them once.
            self.data_ip_bytes += u64::from(tcp.ip_len) + (segments - 1) * u64::from(tcp.header_len);
            self.payload_bytes += u64::from(tcp.payload_len);
        }
        if tcp.is_pure_ack() {
            self.ack_packets += 1;
            self.ack_bytes += u64::from(tcp.ip_len);
            self.sack_acks += u64::from(tcp.options.sack);
            self.timestamp_acks += u64::from(tcp.options.timestamps);
        }
    }
}

/// Payload octets of a full segment with this packet's options: from the handshake's MSS, else from
/// an Ethernet MTU.
fn segment_payload(tcp: &Tcp, mss: Option<u16>) -> u32 {
    let option_len = tcp.tcp_header_len - 20;
    let payload = match mss {
        Some(mss) => u32::from(mss).saturating_sub(option_len),
        None => ETHERNET_MTU.saturating_sub(tcp.header_len),
    };
    // A hostile MSS must not turn one packet into thousands of segments.
    payload.max(64)
}

/// Where a packet was captured: interface of the file, interface a cooked header names.
pub(super) type Interface = (u32, Option<u32>);

/// One direction of a connection.
#[derive(Clone, Copy, Debug, Default)]
struct Direction {
    counters: Counters,
    /// The interface that saw it first; others see copies.
    interface: Option<Interface>,
    /// Acknowledgment number and window of the last packet.
    last_ack: Option<(u32, u16)>,
    /// Highest acknowledgment number.
    highest_ack: Option<u32>,
    /// MSS option of its SYN: bounds what the *other* direction sends.
    mss: Option<u16>,
}

impl Direction {
    fn note_ack(&mut self, tcp: &Tcp) {
        if !tcp.flags.contains(Flags::ACK) {
            return;
        }
        // RFC 5681 section 2: a duplicate has the same number and window; with SACK the window may move.
        if let (true, Some((ack, window))) = (tcp.is_pure_ack(), self.last_ack)
            && ack == tcp.ack
        {
            if window == tcp.window || tcp.options.sack {
                self.counters.duplicate_acks += 1;
            } else {
                self.counters.window_updates += 1;
            }
        }
        let highest = self.highest_ack.unwrap_or(tcp.ack);
        let advance = tcp.ack.wrapping_sub(highest) as i32;
        if advance >= 0 {
            self.highest_ack = Some(tcp.ack);
            if tcp.is_pure_ack() {
                self.counters.acked_bytes += u64::from(advance.unsigned_abs());
            }
        }
        self.last_ack = Some((tcp.ack, tcp.window));
    }
}

/// Both ends, the smaller first.
type Key = (SocketAddr, SocketAddr);

#[derive(Clone, Debug)]
struct Flow {
    ends: Key,
    /// From the smaller end, from the larger end.
    directions: [Direction; 2],
    first_nanos: Option<i128>,
    last_nanos: Option<i128>,
    /// Sender and time of the latest SYN, until its handshake is complete.
    syn: Option<(usize, i128)>,
    handshake_rtt_nanos: Option<i128>,
}

impl Flow {
    fn new(ends: Key) -> Self {
        Self {
            ends,
            directions: [Direction::default(); 2],
            first_nanos: None,
            last_nanos: None,
            syn: None,
            handshake_rtt_nanos: None,
        }
    }

    /// Counts a packet of direction `way`; false when it is a copy seen on another interface.
    fn count(&mut self, way: usize, tcp: &Tcp, interface: Interface, at_nanos: Option<i128>) -> bool {
        if *self.directions[way].interface.get_or_insert(interface) != interface {
            return false;
        }
        if let Some(at) = at_nanos {
            self.first_nanos = Some(self.first_nanos.map_or(at, |first| first.min(at)));
            self.last_nanos = Some(self.last_nanos.map_or(at, |last| last.max(at)));
            self.time_handshake(way, tcp, at);
        }
        let peer_mss = self.directions[1 - way].mss;
        let direction = &mut self.directions[way];
        if tcp.flags.contains(Flags::SYN) {
            direction.mss = tcp.options.mss.or(direction.mss);
        }
        // A sender stays below its own MSS too, as a rule; the smaller of both is what is on the link.
        let mss = peer_mss.map(|peer| direction.mss.map_or(peer, |own| own.min(peer)));
        direction.counters.count(tcp, mss);
        direction.note_ack(tcp);
        true
    }

    /// From a SYN to the same end's first ACK: one whole round trip, wherever the capture was taken.
    fn time_handshake(&mut self, way: usize, tcp: &Tcp, at: i128) {
        if tcp.flags.contains(Flags::SYN) && !tcp.flags.contains(Flags::ACK) {
            self.syn = Some((way, at));
        } else if let Some((sender, sent_at)) = self.syn
            && sender == way
            && tcp.flags.contains(Flags::ACK)
        {
            self.handshake_rtt_nanos = Some((at - sent_at).max(0));
            self.syn = None;
        }
    }

    fn both_directions(&self) -> bool {
        self.directions.iter().all(|direction| direction.counters.packets > 0)
    }

    fn summary(&self) -> FlowSummary {
        let [from_first, from_second] = &self.directions;
        let sum = from_first.counters.plus(&from_second.counters);
        // The data direction: more payload, or, where only ACKs are seen, against them.
        let weight = |direction: &Direction, other: &Direction| {
            (direction.counters.payload_bytes, other.counters.ack_packets)
        };
        let (source, destination) = if weight(from_first, from_second) >= weight(from_second, from_first) {
            (self.ends.0, self.ends.1)
        } else {
            (self.ends.1, self.ends.0)
        };
        let nanos = self.first_nanos.zip(self.last_nanos).map(|(first, last)| last - first);
        FlowSummary {
            source: source.to_string(),
            destination: destination.to_string(),
            ip_version: if self.ends.0.is_ipv4() { 4 } else { 6 },
            handshake_rtt_ms: self.handshake_rtt_nanos.map(|nanos| nanos as f64 / 1e6),
            summary: Summary::new(&sum, self.both_directions().then_some(&sum), nanos),
        }
    }
}

/// The connections of a capture.
#[derive(Default)]
pub(super) struct FlowTable {
    /// Only looked up, never iterated: its order is random. Its hash is keyed, for hostile captures.
    by_key: HashMap<Key, u32>,
    flows: Vec<Flow>,
    untracked: Counters,
    first_nanos: Option<i128>,
    last_nanos: Option<i128>,
}

/// What [`FlowTable::finish`] finds.
pub(super) struct Finished {
    pub total: Summary,
    /// Most octets first.
    pub flows: Vec<FlowSummary>,
    pub untracked: Option<Summary>,
}

impl FlowTable {
    /// Counts a packet; false when it is a copy seen on another interface.
    pub fn count(&mut self, tcp: &Tcp, interface: Interface, at_nanos: Option<i128>) -> bool {
        let (source, destination) = (tcp.source, tcp.destination);
        let (key, way) =
            if source <= destination { ((source, destination), 0) } else { ((destination, source), 1) };
        let index = match self.by_key.get(&key) {
            Some(index) => Some(*index as usize),
            None if self.flows.len() < MOST_FLOWS => {
                self.by_key.insert(key, self.flows.len() as u32);
                self.flows.push(Flow::new(key));
                Some(self.flows.len() - 1)
            }
            None => None,
        };
        let counted = match index {
            Some(index) => self.flows[index].count(way, tcp, interface, at_nanos),
            None => {
                self.untracked.count(tcp, None);
                true
            }
        };
        if let (true, Some(at)) = (counted, at_nanos) {
            self.first_nanos = Some(self.first_nanos.map_or(at, |first| first.min(at)));
            self.last_nanos = Some(self.last_nanos.map_or(at, |last| last.max(at)));
        }
        counted
    }

    /// Sums up.
    pub fn finish(mut self) -> Finished {
        let mut all = self.untracked;
        let mut paired = Counters::default();
        for flow in &self.flows {
            for direction in &flow.directions {
                all = all.plus(&direction.counters);
                if flow.both_directions() {
                    paired = paired.plus(&direction.counters);
                }
            }
        }
        let octets = |flow: &Flow| -> u64 {
            flow.directions.iter().map(|direction| direction.counters.ip_bytes).sum()
        };
        self.flows.sort_by_key(|flow| core::cmp::Reverse((octets(flow), core::cmp::Reverse(flow.ends))));
        let nanos = self.first_nanos.zip(self.last_nanos).map(|(first, last)| last - first);
        let untracked = (self.untracked.packets > 0).then(|| Summary::new(&self.untracked, None, None));
        Finished {
            total: Summary::new(&all, (paired.packets > 0).then_some(&paired), nanos),
            flows: self.flows.iter().map(Flow::summary).collect(),
            untracked,
        }
    }
}
