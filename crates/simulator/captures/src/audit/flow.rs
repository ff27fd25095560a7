//! Connections and their counters, in bounded memory.

use std::collections::HashMap;
use std::net::SocketAddr;

use tacit_packet::tcp::Flags;

use super::copies::{Copies, Interface};
use super::segment::{Counters, Segment};
use super::summary::{FlowSummary, Summary};
use super::tcp::Tcp;

/// Maximum number of connections that are counted separately. Packets of further ones are counted together.
pub(super) const MOST_FLOWS: usize = 65_536;

/// One direction of a connection.
#[derive(Clone, Copy, Debug, Default)]
struct Direction {
    counters: Counters,
    /// Sequence number after the last byte sent.
    next_seq: Option<u32>,
    /// IPv4 identification of the last packet, and whether it has ever changed.
    ip_id: Option<u16>,
    ids_vary: bool,
    /// Whether the last packet was of this kind, to which the next packet of the other end responds.
    last_was_keep_alive: bool,
    last_was_probe: bool,
    /// Acknowledgment number and window of the last packet.
    last_ack: Option<(u32, Option<u16>)>,
    /// Highest acknowledgment number.
    highest_ack: Option<u32>,
    /// MSS option of its SYN, which limits the segments of the *other* direction.
    mss: Option<u16>,
}

impl Direction {
    /// Kind of the next segment in this direction. `peer` is the other direction.
    fn kind(&self, tcp: &Tcp, peer: &Self) -> Segment {
        let opens_or_closes =
            [Flags::SYN, Flags::FIN, Flags::RST].iter().any(|flag| tcp.flags.contains(*flag));
        if !opens_or_closes && tcp.flags.contains(Flags::ACK) && tcp.payload_len <= 1 {
            let is_next = self.next_seq == Some(tcp.seq);
            if self.next_seq == Some(tcp.seq.wrapping_add(1)) {
                return Segment::KeepAlive;
            }
            if tcp.payload_len == 1 && is_next && peer.last_ack.is_some_and(|(_, window)| window == Some(0)) {
                return Segment::ZeroWindowProbe;
            }
        }
        if tcp.payload_len > 0 {
            return Segment::Data;
        }
        match self.last_ack {
            _ if !tcp.is_pure_ack() => Segment::Other,
            Some((ack, window)) if ack == tcp.ack => match window == tcp.window {
                true if peer.last_was_keep_alive => Segment::KeepAliveAck,
                true if peer.last_was_probe && window == Some(0) => Segment::ZeroWindowProbeAck,
                // RFC 5681 section 2: a duplicate ACK has the same number and window. With SACK the window may change.
                is_same => match is_same || tcp.options.sack {
                    true => Segment::DuplicateAck,
                    false => Segment::WindowUpdate,
                },
            },
            _ if peer.last_was_keep_alive => Segment::KeepAliveAck,
            _ => Segment::Ack,
        }
    }

    /// Updates the state for a segment of this kind.
    fn note(&mut self, tcp: &Tcp, kind: Segment) {
        self.last_was_keep_alive = kind == Segment::KeepAlive;
        self.last_was_probe = kind == Segment::ZeroWindowProbe;
        let phantom =
            [Flags::SYN, Flags::FIN].iter().filter(|flag| tcp.flags.contains(**flag)).count() as u32;
        let behind = tcp.seq.wrapping_add(tcp.payload_len).wrapping_add(phantom);
        // The byte of a window probe does not count as sent until it is accepted.
        if kind != Segment::ZeroWindowProbe
            && self
                .next_seq
                .is_none_or(|next| behind.wrapping_sub(next) as i32 > 0 || tcp.flags.contains(Flags::SYN))
        {
            self.next_seq = Some(behind);
        }
        if tcp.flags.contains(Flags::ACK) {
            self.note_ack(tcp, kind);
        }
    }

    fn note_ack(&mut self, tcp: &Tcp, kind: Segment) {
        let highest = self.highest_ack.unwrap_or(tcp.ack);
        let advance = tcp.ack.wrapping_sub(highest) as i32;
        if advance >= 0 {
            self.highest_ack = Some(tcp.ack);
            if kind == Segment::Ack {
                self.counters.acked_bytes += u64::from(advance.unsigned_abs());
            }
        }
        self.last_ack = Some((tcp.ack, tcp.window));
    }

    /// Whether its sender numbers its packets, judging by those up to this one.
    fn ids_vary(&mut self, tcp: &Tcp) -> bool {
        self.ids_vary |= self.ip_id.zip(tcp.ip_id).is_some_and(|(last, id)| last != id);
        self.ip_id = tcp.ip_id;
        self.ids_vary
    }
}

/// Both ends, in ascending order.
type Key = (SocketAddr, SocketAddr);

#[derive(Clone, Debug)]
struct Flow {
    ends: Key,
    /// The direction from the smaller end, and that from the larger end.
    directions: [Direction; 2],
    first_nanos: Option<i128>,
    last_nanos: Option<i128>,
    /// Sender and time of the latest SYN whose handshake is not complete.
    syn: Option<(usize, i128)>,
    handshake_rtt_nanos: Option<i128>,
    /// The interface of the first packet with data.
    data_interface: Option<u32>,
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
            data_interface: None,
        }
    }

    /// Counts a packet in direction `way`.
    fn count(&mut self, way: usize, tcp: &Tcp, at_nanos: Option<i128>) {
        if let Some(at) = at_nanos {
            self.first_nanos = Some(self.first_nanos.map_or(at, |first| first.min(at)));
            self.last_nanos = Some(self.last_nanos.map_or(at, |last| last.max(at)));
            self.time_handshake(way, tcp, at);
        }
        let peer = self.directions[1 - way];
        let direction = &mut self.directions[way];
        if tcp.flags.contains(Flags::SYN) {
            direction.mss = tcp.options.mss.or(direction.mss);
        }
        // Usually a sender also respects its own MSS, so the smaller of the two is the one in effect on the link.
        let mss = peer.mss.map(|peer| direction.mss.map_or(peer, |ours| ours.min(peer)));
        let kind = direction.kind(tcp, &peer);
        direction.counters.count(tcp, kind, mss);
        direction.note(tcp, kind);
        let other = &mut self.directions[1 - way];
        (other.last_was_keep_alive, other.last_was_probe) = (false, false);
    }

    /// Measures from a SYN to the first ACK from the same end: one full round trip, regardless of where the capture was
    /// taken.
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
        // The data direction is the one with more payload, or, if only ACKs are visible, the opposite of the ACKs'
        // direction.
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
    /// Only looked up, never iterated, because its order is random. The hash is keyed, because captures are untrusted.
    by_key: HashMap<Key, u32>,
    flows: Vec<Flow>,
    copies: Copies,
    untracked: Counters,
    first_nanos: Option<i128>,
    last_nanos: Option<i128>,
    shares_links: bool,
}

/// Results of [`FlowTable::finish`].
pub(super) struct Finished {
    pub total: Summary,
    /// In descending order of bytes.
    pub flows: Vec<FlowSummary>,
    pub untracked: Option<Summary>,
    /// Whether the data of a connection came over several interfaces, as that of multi-link devices does.
    pub shares_links: bool,
}

impl FlowTable {
    /// Counts a packet. Returns false if it is a copy of an earlier one.
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
        let ids_vary = index.is_some_and(|index| self.flows[index].directions[way].ids_vary(tcp));
        if self.copies.is_copy(tcp, interface, at_nanos, ids_vary) {
            return false;
        }
        match index {
            Some(index) => {
                let flow = &mut self.flows[index];
                flow.count(way, tcp, at_nanos);
                if tcp.payload_len > 0 {
                    self.shares_links |= *flow.data_interface.get_or_insert(interface.0) != interface.0;
                }
            }
            None => {
                let kind = Direction::default().kind(tcp, &Direction::default());
                self.untracked.count(tcp, kind, None);
            }
        }
        if let Some(at) = at_nanos {
            self.first_nanos = Some(self.first_nanos.map_or(at, |first| first.min(at)));
            self.last_nanos = Some(self.last_nanos.map_or(at, |last| last.max(at)));
        }
        true
    }

    /// Number of connections so far.
    pub fn connections(&self) -> usize {
        self.flows.len()
    }

    /// Computes the totals.
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
        let bytes = |flow: &Flow| -> u64 {
            flow.directions.iter().map(|direction| direction.counters.ip_bytes).sum()
        };
        self.flows.sort_by_key(|flow| core::cmp::Reverse((bytes(flow), core::cmp::Reverse(flow.ends))));
        let nanos = self.first_nanos.zip(self.last_nanos).map(|(first, last)| last - first);
        let untracked = (self.untracked.packets > 0).then(|| Summary::new(&self.untracked, None, None));
        Finished {
            total: Summary::new(&all, (paired.packets > 0).then_some(&paired), nanos),
            flows: self.flows.iter().map(Flow::summary).collect(),
            untracked,
            shares_links: self.shares_links,
        }
    }
}
