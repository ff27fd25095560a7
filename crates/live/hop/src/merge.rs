//! Merges packets that arrive together before passing them to the kernel, as drivers of 802.11 cards do (GRO, through
//! NAPI).
//!
//! The packets of one connection in an aggregate become one large packet, so the receiving kernel processes it once and
//! wakes its reader once. This is done only with packets whose checksums this program computed, and which
//! [`offload`](crate::offload) could split again without changes other than in the IPv4 identification.

use std::ops::Range;

use crate::checksum;
use crate::checksum::{PROTOCOL_TCP, PROTOCOL_UDP};
use crate::offload::{Header, Large, UDP_HEADER};

/// Maximum number of connections whose packets are merged at the same time, equal to GRO's table (MAX_GRO_SKBS).
const TRAINS: usize = 8;
/// Maximum number of UDP datagrams in a merged packet (UDP_MAX_SEGMENTS).
const DATAGRAMS_MAX: u16 = 64;
/// Maximum length of an IP packet in bytes.
const PACKET_MAX: usize = 65_535;
/// Flags in byte 13 of the TCP header.
const ACK: u8 = 0x10;
const PSH: u8 = 0x08;

/// Kinds of packets to merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// UDP datagrams. Programs that did not enable UDP GRO receive them individually.
    Udp,
    /// Also TCP segments, which their receiver then acknowledges together.
    All,
}

/// Merges packets for a kernel.
#[derive(Debug)]
pub struct Merger {
    what: Merge,
    /// The first `open` of these are in use.
    trains: Vec<Train>,
    open: usize,
}

/// Consecutive packets of one connection.
#[derive(Debug, Default)]
struct Train {
    bytes: Vec<u8>,
    shape: Shape,
    packets: u16,
    /// No packet can follow a short one, or one with PSH.
    is_complete: bool,
}

/// Positions of the parts of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Shape {
    is_v4: bool,
    is_tcp: bool,
    transport_at: usize,
    payload_at: usize,
    /// Payload length of the first packet in bytes.
    size: usize,
}

/// Relation between a packet and a train.
enum Fit {
    /// The packet was appended.
    Joined,
    /// The packet is of the same connection but cannot be appended, so the train must be sent first.
    Breaks,
    /// The packet is of another connection.
    Stranger,
}

impl Merger {
    pub fn new(what: Merge) -> Self {
        Self { what, trains: Vec::new(), open: 0 }
    }

    /// Takes a packet whose checksum was computed by this program, and passes on the packets that must precede it.
    /// Returns false if it cannot be merged. The caller must then flush and pass it on itself, because it may belong to
    /// any connection.
    pub fn take(&mut self, packet: &[u8], mut give: impl FnMut(Option<Header>, &mut [u8])) -> bool {
        let Some(shape) = Shape::parse(packet).filter(|shape| self.what == Merge::All || !shape.is_tcp)
        else {
            return false;
        };
        let mut place = None;
        for (at, train) in self.trains[..self.open].iter_mut().enumerate() {
            match train.join(packet, &shape) {
                Fit::Joined => return true,
                Fit::Breaks => {
                    train.leave(&mut give);
                    place = Some(at);
                    break;
                }
                Fit::Stranger => {}
            }
        }
        if place.is_none() && self.open == TRAINS {
            self.flush(give);
        }
        let place = place.unwrap_or_else(|| {
            self.open += 1;
            self.open - 1
        });
        if place == self.trains.len() {
            self.trains.push(Train::default());
        }
        self.trains[place].begin(packet, shape);
        true
    }

    /// Passes on the merged packets: large ones with a header that describes how to split them, single ones unchanged.
    pub fn flush(&mut self, mut give: impl FnMut(Option<Header>, &mut [u8])) {
        for train in &mut self.trains[..self.open] {
            train.leave(&mut give);
        }
        self.open = 0;
    }
}

impl Train {
    fn begin(&mut self, packet: &[u8], shape: Shape) {
        self.bytes.clear();
        self.bytes.extend_from_slice(packet);
        (self.shape, self.packets) = (shape, 1);
        self.is_complete = shape.is_pushed(packet);
    }

    fn join(&mut self, packet: &[u8], shape: &Shape) -> Fit {
        if !self.shape.is_same_connection(&self.bytes, shape, packet) {
            return Fit::Stranger;
        }
        let follows = !self.is_complete
            && shape.payload_at == self.shape.payload_at
            && shape.size <= self.shape.size
            && self.bytes.len() + shape.size <= PACKET_MAX
            && (shape.is_tcp || self.packets < DATAGRAMS_MAX)
            && self.shape.headers_agree(&self.bytes, packet);
        if !follows {
            return Fit::Breaks;
        }
        self.is_complete = shape.size < self.shape.size || shape.is_pushed(packet);
        if shape.is_pushed(packet) {
            self.bytes[self.shape.transport_at + 13] |= PSH;
        }
        self.bytes.extend_from_slice(&packet[shape.payload_at..]);
        self.packets += 1;
        Fit::Joined
    }

    fn leave(&mut self, give: &mut impl FnMut(Option<Header>, &mut [u8])) {
        if self.packets == 1 {
            return give(None, &mut self.bytes);
        }
        let Shape { is_v4, is_tcp, transport_at, payload_at, size } = self.shape;
        let bytes = &mut self.bytes;
        let len = bytes.len();
        let word = |len: usize| (len as u16).to_be_bytes();
        if is_v4 {
            checksum::finish_ipv4(bytes, transport_at, len as u16);
        } else {
            bytes[4..6].copy_from_slice(&word(len - transport_at));
        }
        if !is_tcp {
            bytes[transport_at + 4..][..2].copy_from_slice(&word(len - transport_at));
        }
        let protocol = if is_tcp { PROTOCOL_TCP } else { PROTOCOL_UDP };
        let at = transport_at + if is_tcp { 16 } else { 6 };
        let pseudo = checksum::pseudo_header(bytes, protocol, len - transport_at);
        bytes[at..at + 2].copy_from_slice(&pseudo.to_be_bytes());
        let large = Large {
            is_v4,
            is_tcp,
            transport_at: transport_at as u16,
            payload_at: payload_at as u16,
            size: size as u16,
        };
        give(Some(Header::large(&large)), bytes);
    }
}

impl Shape {
    /// The shape of a complete packet with payload and without IP options or extensions. It must be UDP, or TCP with no
    /// flags other than ACK and PSH.
    fn parse(packet: &[u8]) -> Option<Self> {
        let word = |at: usize| Some(u16::from_be_bytes([*packet.get(at)?, *packet.get(at + 1)?]));
        let (is_v4, protocol, transport_at, len) = match *packet.first()? {
            // It must not be a fragment.
            0x45 if word(6)? & 0x3fff == 0 => (true, *packet.get(9)?, 20, usize::from(word(2)?)),
            first if first >> 4 == 6 => (false, *packet.get(6)?, 40, usize::from(word(4)?) + 40),
            _ => return None,
        };
        let (is_tcp, payload_at) = match protocol {
            PROTOCOL_TCP if packet.get(transport_at + 13)? & !PSH == ACK => {
                (true, transport_at + usize::from(packet.get(transport_at + 12)? >> 4) * 4)
            }
            PROTOCOL_UDP if usize::from(word(transport_at + 4)?) + transport_at == len => {
                (false, transport_at + UDP_HEADER)
            }
            _ => return None,
        };
        let is_whole = len == packet.len() && payload_at >= transport_at + UDP_HEADER && payload_at < len;
        is_whole.then(|| Self { is_v4, is_tcp, transport_at, payload_at, size: len - payload_at })
    }

    fn is_pushed(&self, packet: &[u8]) -> bool {
        self.is_tcp && packet[self.transport_at + 13] & PSH != 0
    }

    /// Whether addresses and ports are equal.
    fn is_same_connection(&self, one: &[u8], shape: &Self, other: &[u8]) -> bool {
        let addresses = if self.is_v4 { 12..20 } else { 8..40 };
        let ports = self.transport_at..self.transport_at + 4;
        (self.is_v4, self.is_tcp) == (shape.is_v4, shape.is_tcp)
            && one[addresses.clone()] == other[addresses]
            && one[ports.clone()] == other[ports]
    }

    /// Whether the headers allow `next` to be appended to `bytes` and split off again.
    fn headers_agree(&self, bytes: &[u8], next: &[u8]) -> bool {
        let same = |range: Range<usize>| bytes[range.clone()] == next[range];
        // All fields except lengths and IPv4 identification and checksum. Don't Fragment must be equal.
        let ip = if self.is_v4 { same(0..2) && same(6..10) } else { same(0..4) && same(6..8) };
        if !self.is_tcp {
            return ip;
        }
        let at = self.transport_at;
        let seq =
            |bytes: &[u8]| u32::from_be_bytes([bytes[at + 4], bytes[at + 5], bytes[at + 6], bytes[at + 7]]);
        let follows = seq(next) == seq(bytes).wrapping_add((bytes.len() - self.payload_at) as u32);
        // Acknowledgment number and header length; window; urgent pointer and options.
        ip && follows && same(at + 8..at + 13) && same(at + 14..at + 16) && same(at + 18..self.payload_at)
    }
}

#[cfg(test)]
mod tests {
    use etherparse::{PacketBuilder, TcpOptionElement};
    use proptest::prelude::*;

    use super::*;
    use crate::offload;

    /// A packet of connection `port`, whose payload starts at `number` in the stream.
    fn packet(is_v4: bool, is_tcp: bool, port: u16, number: u32, payload: &[u8]) -> Vec<u8> {
        let builder = match is_v4 {
            true => PacketBuilder::ipv4([198, 18, 0, 1], [198, 18, 0, 2], 64),
            false => PacketBuilder::ipv6([1; 16], [2; 16], 64),
        };
        let mut bytes = Vec::new();
        let timestamps = [TcpOptionElement::Timestamp(7, 8)];
        match is_tcp {
            true => {
                let tcp = builder.tcp(port, 9000, number, 500).ack(1).options(&timestamps).unwrap();
                tcp.write(&mut bytes, payload)
            }
            false => builder.udp(port, 9000).write(&mut bytes, payload),
        }
        .unwrap();
        bytes
    }

    /// Passes `packets` to a mock kernel. Returns the number of calls, and the packets after splitting.
    fn handed_over(what: Merge, packets: &[Vec<u8>]) -> (usize, Vec<Vec<u8>>) {
        let (mut merger, mut calls, mut out) = (Merger::new(what), 0, Vec::new());
        let mut give = |header: Option<Header>, bytes: &mut [u8]| {
            calls += 1;
            let header = header.unwrap_or_default();
            offload::packets(&header, bytes, |one| out.push(one.to_vec())).unwrap();
        };
        for packet in packets {
            if !merger.take(packet, &mut give) {
                merger.flush(&mut give);
                give(None, &mut packet.clone());
            }
        }
        merger.flush(&mut give);
        (calls, out)
    }

    /// The packet without the fields that splitting changes: IPv4 identification, and the checksum over it.
    fn known(packet: &[u8]) -> Vec<u8> {
        let mut bytes = packet.to_vec();
        if bytes.first() == Some(&0x45) && bytes.len() >= 20 {
            bytes[4..6].fill(0);
            bytes[10..12].fill(0);
        }
        bytes
    }

    fn assert_same(one: &[Vec<u8>], other: &[Vec<u8>]) {
        let sorted = |packets: &[Vec<u8>]| {
            let mut known: Vec<_> = packets.iter().map(|packet| known(packet)).collect();
            // Connections may overtake each other, but packets within a connection may not. So use a stable sort by IP
            // version, protocol and ports, which identify a connection.
            known.sort_by_key(|bytes| match bytes[0] >> 4 {
                4 => (bytes[0], bytes[9], bytes[20..24].to_vec()),
                _ => (bytes[0], bytes[6], bytes[40..44].to_vec()),
            });
            known
        };
        let (one, other) = (sorted(one), sorted(other));
        let differs = one.iter().zip(&other).find(|(one, other)| one != other);
        assert_eq!((one.len(), differs), (other.len(), None));
    }

    #[test]
    fn an_aggregate_of_a_connection_is_one_packet() {
        for (is_v4, is_tcp) in [(true, true), (true, false), (false, true), (false, false)] {
            let sizes = [1_000; 40].into_iter().chain([10]);
            let mut at = u32::MAX - 5_000;
            let packets = sizes.map(|size| {
                let one = packet(is_v4, is_tcp, 80, at, &vec![at as u8; size]);
                at = at.wrapping_add(size as u32);
                one
            });
            let packets: Vec<_> = packets.collect();
            let (calls, out) = handed_over(Merge::All, &packets);
            assert_eq!(calls, 1, "{is_v4} {is_tcp}");
            assert_same(&out, &packets);
            let calls = handed_over(Merge::Udp, &packets).0;
            assert_eq!(calls, if is_tcp { packets.len() } else { 1 });
        }
    }

    #[test]
    fn segments_that_do_not_follow_are_not_merged() {
        type Change = dyn Fn(&mut Vec<u8>);
        let first = packet(true, true, 80, 0, &[1; 100]);
        let next = |change: &Change| {
            let mut bytes = packet(true, true, 80, 100, &[2; 100]);
            change(&mut bytes);
            bytes
        };
        let calls = |next: Vec<u8>| handed_over(Merge::All, &[first.clone(), next]).0;
        assert_eq!(calls(next(&|_| {})), 1);
        assert_eq!(calls(next(&|bytes| bytes[33] |= PSH)), 1, "the last one may be pushed");
        let odd: [(&str, &Change); 12] = [
            ("another sequence number", &|bytes| bytes[27] += 1),
            ("another acknowledgment", &|bytes| bytes[31] += 1),
            ("another window", &|bytes| bytes[35] += 1),
            ("another timestamp", &|bytes| bytes[47] += 1),
            ("urgent", &|bytes| bytes[39] += 1),
            ("FIN", &|bytes| bytes[33] |= 1),
            ("CWR", &|bytes| bytes[33] |= 0x80),
            ("marked by a queue", &|bytes| bytes[1] |= 3),
            ("another time to live", &|bytes| bytes[8] -= 1),
            ("a fragment", &|bytes| bytes[6] |= 0x20),
            ("padding behind it", &|bytes| bytes.push(0)),
            ("longer than the first", &|bytes| *bytes = packet(true, true, 80, 100, &[3; 101])),
        ];
        for (what, change) in odd {
            let bytes = next(change);
            assert_eq!(calls(bytes.clone()), 2, "{what}");
            let packets = [first.clone(), bytes, packet(true, true, 80, 200, &[4; 100])];
            let (_, out) = handed_over(Merge::All, &packets);
            assert_eq!(out.len(), 3, "{what}");
        }
        let pushed = [next(&|bytes| bytes[33] |= PSH), packet(true, true, 80, 200, &[5; 100])];
        assert_eq!(handed_over(Merge::All, &pushed).0, 2, "nothing follows a pushed packet");
        let ack = packet(true, true, 80, 0, &[]);
        assert_eq!(handed_over(Merge::All, &[ack.clone(), ack]).0, 2, "ACKs are counted");
    }

    proptest! {
        #[test]
        fn the_kernel_gets_every_byte_that_arrives(
            arrivals in proptest::collection::vec((0_u16..12, any::<bool>(), 1_usize..4, 0_u8..20), 0..120),
        ) {
            let mut ends = [0_u32; 12];
            let mut packets = Vec::new();
            for (port, is_tcp, size, odd) in arrivals {
                let end = &mut ends[usize::from(port)];
                let mut bytes = packet(port % 3 != 0, is_tcp, port, *end, &vec![port as u8; size]);
                *end += size as u32;
                match odd {
                    0 => bytes.truncate(25),
                    1 => bytes[1] ^= 1,
                    2 => *end += 1,
                    _ => {}
                }
                packets.push(bytes);
            }
            let (calls, out) = handed_over(Merge::All, &packets);
            prop_assert!(calls <= packets.len());
            let whole = |packets: &[Vec<u8>]| {
                packets.iter().filter(|bytes| bytes.len() > 25).cloned().collect::<Vec<_>>()
            };
            // Checksums are still correct.
            assert_same(&whole(&out), &whole(&packets));
        }
    }
}
