//! IR-CR: replicates the context of a new flow from that of another flow between the same hosts (RFC 6846 sections
//! 5.2.3, 7.2 and 8.2, RFC 4164).

use super::history::History;
use super::options::Table;
use crate::chains::Chain;
use crate::cid::{Cid, write_large};
use crate::crc::{CRC7, CRC8};
use crate::formats::{Field, Values};
use crate::header::{Header, Ip, flags};
use crate::ip_id::behavior;
use crate::layers::Layers;
use crate::layers::chains::write_replicate;
use crate::lsb::Lsb;
use crate::wire::{Coder, Short, Writer};

const PROFILE_TCP: u8 = 6;
/// The short form of port_replicate.
const PORT_SHORT: Lsb = Lsb::new(8, 64);

/// The context of a packet, and the context it may be replicated from.
#[derive(Clone, Copy)]
pub(crate) struct ContextChoice {
    pub(crate) cid: Cid,
    pub(crate) base: Option<Base>,
    /// The current time, for refreshes.
    pub(crate) now_ms: u64,
}

/// The base context of an IR-CR packet: its static chain, and the other fields whose value at the peer is certain.
#[derive(Clone, Copy)]
pub(crate) struct Base {
    pub(crate) cid: u16,
    /// Source and destination port.
    pub(crate) ports: [u16; 2],
    /// The hop limit, if the peer can hold no other value.
    hop_limit: Option<u8>,
    /// All references of the peer have zero ECN bits.
    without_ecn: bool,
}

impl Base {
    /// Makes a base from a confirmed context with this history.
    pub(crate) fn new(cid: u16, ports: [u16; 2], history: &History) -> Option<Self> {
        let hop_limit = history.latest()?[Field::Ttl as usize];
        Some(Self {
            cid,
            ports,
            hop_limit: history.all(Field::Ttl, hop_limit).then_some(hop_limit as u8),
            without_ecn: history.all(Field::EcnBits, 0),
        })
    }

    /// True if an IR-CR can encode this header. It cannot encode combinations of RST, SYN and FIN, which have no index,
    /// or a change of the IPv6 hop limit, which it does not carry.
    pub(crate) fn serves(&self, header: &Header, values: &Values) -> bool {
        let hop_limit = matches!(header.ip, Ip::V4 { .. }) || self.hop_limit == Some(header.ttl);
        let none = header.reserved == 0 && header.flags & (flags::ECE | flags::CWR) == 0;
        let ecn = self.without_ecn && none || values[Field::EcnUsed] != 0;
        values[Field::Rsf] <= 3 && hop_limit && ecn
    }

    /// Writes an IR-CR packet up to its payload; `bytes` is the uncompressed header.
    ///
    /// Sends every field that could have changed in the base since it was confirmed, changed or not.
    pub(super) fn write_ir_cr(
        &self,
        bytes: &[u8],
        chain: &mut Chain<'_>,
        values: &mut Values,
        table: &mut Table,
        cid: Cid,
        writer: &mut Writer<'_>,
    ) -> Result<(), Short> {
        cid.write_before(writer)?;
        writer.put(&[0xfc])?;
        cid.write_after(writer)?;
        writer.put(&[PROFILE_TCP, 0])?;
        let crc_at = writer.len - 1;
        writer.put(&[0x80 | CRC7.check(bytes)])?;
        match cid.space.is_large() {
            true => write_large(self.cid, writer)?,
            false => writer.put(&[self.cid as u8])?,
        }
        let Chain { header, layers } = chain;
        match layers {
            None => ip_replicate(header, values, writer)?,
            Some(layers) => layers_replicate(header, values, layers, writer)?,
        }
        tcp_replicate(self, header, values, writer)?;
        table.write_list(u16::MAX, values, writer)?;
        let crc = CRC8.check(writer.written());
        writer.written()[crc_at] = crc;
        Ok(())
    }
}

/// Writes the replicate chain up to TCP, relative to a base that
/// [`Tunnel::replicates`](super::tunnel::Tunnel::replicates) it.
fn layers_replicate(
    header: &Header,
    values: &Values,
    layers: &mut Layers,
    writer: &mut Writer<'_>,
) -> Result<(), Short> {
    for index in 0..layers.count() {
        if index == layers.outer() {
            ip_replicate(header, values, writer)?;
        }
        let (layer, bytes) = layers.get_mut(index);
        write_replicate(writer, layer, bytes)?;
    }
    if layers.outer() == layers.count() { ip_replicate(header, values, writer) } else { Ok(()) }
}

/// ipv4_innermost_replicate or ipv6_replicate.
fn ip_replicate(header: &Header, values: &Values, writer: &mut Writer<'_>) -> Result<(), Short> {
    let tos = header.dscp << 2 | header.ip_ecn;
    match header.ip {
        Ip::V4 { id, dont_fragment, .. } => {
            let behavior = values[Field::Behavior];
            writer.put(&[(behavior as u8) << 2 | 2 | u8::from(dont_fragment), tos])?;
            if behavior != behavior::ZERO {
                writer.put(&id.to_be_bytes())?;
            }
            writer.put(&[header.ttl])
        }
        Ip::V6 { flow_label: 0, .. } => writer.put(&[tos, 0]),
        Ip::V6 { flow_label, .. } => {
            writer.put(&[tos, 0x10 | (flow_label >> 16) as u8 & 0xf])?;
            writer.put(&(flow_label as u16).to_be_bytes())
        }
    }
}

/// Writes tcp_replicate up to the list of options, which is always present.
fn tcp_replicate(
    base: &Base,
    header: &Header,
    values: &mut Values,
    writer: &mut Writer<'_>,
) -> Result<(), Short> {
    let ports = [header.source_port, header.destination_port];
    let [source, destination] = [0, 1].map(|end| match ports[end] {
        port if port == base.ports[end] => 0,
        port if PORT_SHORT.fits16(base.ports[end], port) => 1,
        _ => 2,
    });
    let ecn_used = values[Field::EcnUsed] as u8;
    let flag_bits = header.flags & (flags::URG | flags::ACK | flags::PSH);
    writer.put(&[
        0x60 | source << 3 | destination << 1 | 1,
        0xc0 | flag_bits | (values[Field::Rsf] as u8) << 1 | ecn_used,
    ])?;
    writer.low(2, &mut values[Field::Msn])?;
    writer.put(&header.seq.to_be_bytes())?;
    for (kind, port) in [source, destination].into_iter().zip(ports) {
        writer.put(&port.to_be_bytes()[2 - usize::from(kind)..])?;
    }
    writer.put(&header.window.to_be_bytes())?;
    writer.put(&header.urgent.to_be_bytes())?;
    writer.put(&header.ack.to_be_bytes())?;
    if ecn_used != 0 {
        writer.put(&[header.reserved << 2 | header.flags >> 6])?;
    }
    writer.put(&header.checksum.to_be_bytes())?;
    writer.low(2, &mut values[Field::Stride])
}
