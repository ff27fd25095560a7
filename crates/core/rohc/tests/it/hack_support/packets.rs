//! Arbitrary legal pure ACKs of one flow.

use proptest::prelude::*;
use tacit_rohc::header::{Header, Ip, Options, flags};

use super::bytes_of;

/// Difference between an ACK and its predecessor.
#[derive(Clone, Debug)]
pub enum Change {
    /// Step in units of 1448 bytes, rise of both timestamps, change of the window.
    Usual {
        units: u32,
        value: u32,
        echo: u32,
        window: i16,
    },
    Ack(u32),
    Seq(u32),
    Window(u16),
    Timestamps(u32, u32),
    IpId(u16),
    Tos(u8),
    Ttl(u8),
    Flags(u8),
    Reserved(u8),
    Urgent(u16),
    Other(u32),
    /// SACK blocks: offset from the acknowledgment number and length, in units and odd bytes.
    Sack(Vec<(u16, u16, u8)>),
    NoTimestamps,
    Options(Vec<u8>),
}

pub fn change() -> impl Strategy<Value = Change> {
    let word = prop_oneof![any::<u32>(), 0u32..4000, (0u32..200).prop_map(u32::wrapping_neg)];
    let block = (0u16..40, 0u16..20, prop_oneof![4 => Just(0u8), 1 => any::<u8>()]);
    prop_oneof![
        12 => (0u32..20, 0u32..4, 0u32..4, prop_oneof![Just(0i16), -4i16..4])
            .prop_map(|(units, value, echo, window)| Change::Usual { units, value, echo, window }),
        2 => word.clone().prop_map(Change::Ack),
        1 => word.clone().prop_map(Change::Seq),
        1 => any::<u16>().prop_map(Change::Window),
        1 => (word.clone(), word).prop_map(|(value, echo)| Change::Timestamps(value, echo)),
        1 => any::<u16>().prop_map(Change::IpId),
        1 => any::<u8>().prop_map(Change::Tos),
        1 => any::<u8>().prop_map(Change::Ttl),
        1 => any::<u8>().prop_map(Change::Flags),
        1 => (0u8..16).prop_map(Change::Reserved),
        1 => any::<u16>().prop_map(Change::Urgent),
        1 => any::<u32>().prop_map(Change::Other),
        4 => prop::collection::vec(block, 0..=4).prop_map(Change::Sack),
        1 => Just(Change::NoTimestamps),
        1 => (0usize..=10).prop_flat_map(|words| prop::collection::vec(any::<u8>(), 4 * words)).prop_map(Change::Options),
    ]
}

/// The state of the flow, from which each ACK is generated.
#[derive(Clone, Debug)]
pub struct Receiver {
    header: Header,
    timestamps: Option<(u32, u32)>,
    sack: Vec<(u32, u32)>,
    raw: Option<Options>,
    random_id: Option<u32>,
}

impl Receiver {
    pub fn new(v6: bool, port: u16, start: u32) -> Self {
        let ip = if v6 {
            Ip::V6 { source: [0x20; 16], destination: [0xfd; 16], flow_label: 0x12345 }
        } else {
            Ip::V4 {
                source: [10, 0, 0, 2],
                destination: [192, 0, 2, 1],
                id: start as u16,
                dont_fragment: true,
            }
        };
        let header = Header {
            ip,
            dscp: 0,
            ip_ecn: 0,
            ttl: 64,
            source_port: port,
            destination_port: 443,
            seq: start.wrapping_mul(7),
            ack: start,
            reserved: 0,
            flags: flags::ACK,
            window: 1000,
            checksum: 0,
            urgent: 0,
            options: Options::NONE,
            payload_len: 0,
        };
        Self { header, timestamps: Some((start, !start)), sack: Vec::new(), raw: None, random_id: None }
    }

    /// From now on every IP-ID is random instead of sequential.
    pub fn randomise_id(&mut self, seed: u32) {
        self.random_id = Some(seed | 1);
    }

    pub fn apply(&mut self, change: &Change) {
        let header = &mut self.header;
        match change.clone() {
            Change::Usual { units, value, echo, window } => {
                header.ack = header.ack.wrapping_add(1448 * units);
                header.window = header.window.wrapping_add_signed(window);
                if let Some(timestamps) = &mut self.timestamps {
                    timestamps.0 = timestamps.0.wrapping_add(value);
                    timestamps.1 = timestamps.1.wrapping_add(echo);
                }
            }
            Change::Ack(by) => header.ack = header.ack.wrapping_add(by),
            Change::Seq(by) => header.seq = header.seq.wrapping_add(by),
            Change::Window(window) => header.window = window,
            Change::Timestamps(value, echo) => {
                let (v, e) = self.timestamps.unwrap_or_default();
                self.timestamps = Some((v.wrapping_add(value), e.wrapping_add(echo)));
            }
            Change::IpId(by) => {
                if let Ip::V4 { id, .. } = &mut header.ip {
                    *id = id.wrapping_add(by);
                }
            }
            Change::Tos(tos) => (header.dscp, header.ip_ecn) = (tos >> 2, tos & 3),
            Change::Ttl(ttl) => header.ttl = ttl,
            Change::Flags(bits) => header.flags = flags::ACK | bits & (flags::PSH | flags::ECE),
            Change::Reserved(reserved) => header.reserved = reserved,
            Change::Urgent(urgent) => header.urgent = urgent,
            Change::Other(value) => match &mut header.ip {
                Ip::V4 { dont_fragment, .. } => *dont_fragment ^= true,
                Ip::V6 { flow_label, .. } => *flow_label = value & 0xf_ffff,
            },
            Change::Sack(blocks) => {
                self.raw = None;
                let most = if self.timestamps.is_some() { 3 } else { 4 };
                let edge = |units: u16, odd: u8| u32::from(units) * 1448 + u32::from(odd);
                self.sack = blocks
                    .iter()
                    .take(most)
                    .map(|&(at, len, odd)| {
                        let start = header.ack.wrapping_add(edge(at, odd)).wrapping_sub(2896);
                        (start, start.wrapping_add(edge(len, 0)))
                    })
                    .collect();
            }
            Change::NoTimestamps => self.timestamps = None,
            Change::Options(bytes) => self.raw = Options::new(&bytes),
        }
    }

    /// The next ACK as a whole packet.
    pub fn packet(&mut self) -> Vec<u8> {
        if let Ip::V4 { id, .. } = &mut self.header.ip {
            *id = match &mut self.random_id {
                None => id.wrapping_add(1),
                Some(state) => {
                    *state ^= *state << 13;
                    *state ^= *state >> 17;
                    *state ^= *state << 5;
                    *state as u16
                }
            };
        }
        self.header.options = self.raw.unwrap_or_else(|| self.options());
        self.header.checksum = self.header.tcp_checksum(&[]);
        bytes_of(&self.header)
    }

    fn options(&self) -> Options {
        let mut bytes = Vec::new();
        if let Some((value, echo)) = self.timestamps {
            bytes.extend_from_slice(&[1, 1, 8, 10]);
            bytes.extend_from_slice(&value.to_be_bytes());
            bytes.extend_from_slice(&echo.to_be_bytes());
        }
        let room = (40 - bytes.len() - 4) / 8;
        let sack = &self.sack[..self.sack.len().min(room)];
        if !sack.is_empty() {
            bytes.extend_from_slice(&[1, 1, 5, 2 + 8 * sack.len() as u8]);
            for (start, end) in sack {
                bytes.extend_from_slice(&start.to_be_bytes());
                bytes.extend_from_slice(&end.to_be_bytes());
            }
        }
        Options::new(&bytes).unwrap()
    }
}
