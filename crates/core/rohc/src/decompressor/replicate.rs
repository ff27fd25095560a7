//! IR-CR: replicates a context from another one (RFC 6846 sections 7.2 and 8.2, RFC 4164).

use alloc::boxed::Box;

use super::context::{Context, Fault, check_crc8};
use super::{DecompressErrorKind, Decompressor};
use crate::chains::rsf_flags;
use crate::cid::read_large;
use crate::crc::CRC7;
use crate::formats::{Field, Values};
use crate::header::{Header, Ip, MAX_HEADER_LEN};
use crate::ip_id::behavior;
use crate::layers::chains::read_replicate;
use crate::layers::{Layers, MAX_LAYERS_LEN};
use crate::lsb::Lsb;
use crate::wire::{Coder, Reader, Short};

impl Decompressor {
    pub(super) fn replicate(
        &mut self,
        cid: u16,
        packet: &[u8],
        crc_at: usize,
        out: &mut [u8],
    ) -> Result<usize, DecompressErrorKind> {
        let mut reader = Reader::new(packet.get(crc_at + 1..).ok_or(DecompressErrorKind::Malformed)?);
        let (base_cid, crc7) = self.base(cid, &mut reader).map_err(Fault::from)?;
        let base = self.contexts.get(usize::from(base_cid)).ok_or(DecompressErrorKind::Cid)?;
        let base = base.as_deref().filter(|base| !base.damaged).ok_or(DecompressErrorKind::NoContext)?;
        let (mut header, kept, items, generics) = base.parts();
        let mut items = *items;
        let mut values = Values::inherit(kept);
        let scratch = &mut *self.scratch;
        scratch.generics = *generics;
        base.lend_layers(scratch);
        layers_replicate(&mut reader, &mut header, &mut values, &mut scratch.layers).map_err(Fault::from)?;
        let list = tcp_replicate(&mut reader, &mut header, &mut values).map_err(Fault::from)?;
        values[Field::Ack] = header.ack;
        if list {
            let brought =
                items.read_list(&mut reader, &mut scratch.generics, &mut values).map_err(Fault::from)?;
            items
                .read_irregular(brought, &mut reader, &mut scratch.generics, &mut values)
                .map_err(Fault::from)?;
        }
        if !items.build(&scratch.generics, &values, &mut header.options) {
            return Err(DecompressErrorKind::Malformed);
        }
        let payload = reader.rest;
        check_crc8(packet, crc_at, packet.len() - payload.len())?;
        verify(&header, &scratch.layers, payload, crc7)?;
        let slot = &mut self.contexts[usize::from(cid)];
        let context = slot.get_or_insert_with(|| Box::new(Context::EMPTY));
        Ok(context.establish(header, &mut values, items, scratch, payload, out)?)
    }

    /// Reads the byte `B CRC7`, and the base CID that follows if B = 1. Returns the base CID and the CRC-7.
    fn base(&self, cid: u16, reader: &mut Reader<'_>) -> Result<(u16, u8), Short> {
        let byte = reader.next()?;
        let base = match (byte & 0x80 != 0, self.config.cids.is_large()) {
            (false, _) => cid,
            (true, true) => read_large(reader)?,
            (true, false) => match reader.next()? {
                base @ 0..=15 => u16::from(base),
                _ => return Err(Short),
            },
        };
        Ok((base, byte & 0x7f))
    }
}

/// Verifies the CRC-7 over the header to be delivered.
fn verify(header: &Header, layers: &Layers, payload: &[u8], crc7: u8) -> Result<(), Fault> {
    let mut header = *header;
    header.payload_len = u16::try_from(payload.len()).map_err(|_| Fault::Malformed)?;
    let mut bytes = [0; MAX_LAYERS_LEN + MAX_HEADER_LEN];
    let len = layers.emit(&header, &mut bytes).ok_or(Fault::Malformed)?;
    if CRC7.check(&bytes[..len]) == crc7 { Ok(()) } else { Err(Fault::Crc) }
}

/// Reads the replicate chain up to TCP. `layers` contains the layers of the base on entry, and those of the packet on
/// return.
fn layers_replicate(
    reader: &mut Reader<'_>,
    header: &mut Header,
    values: &mut Values,
    layers: &mut Layers,
) -> Result<(), Short> {
    if layers.is_empty() {
        return ip_replicate(reader, header, values);
    }
    let base = layers.clone();
    layers.clear();
    let (outer, behind) = base.all().split_at(base.outer());
    for layer in outer {
        read_replicate(reader, layer, base.bytes_of(layer), layers)?;
    }
    layers.set_outer(outer.len());
    ip_replicate(reader, header, values)?;
    for layer in behind {
        read_replicate(reader, layer, base.bytes_of(layer), layers)?;
    }
    Ok(())
}

/// Reads ipv4_innermost_replicate or ipv6_replicate, relative to the base context.
fn ip_replicate(reader: &mut Reader<'_>, header: &mut Header, values: &mut Values) -> Result<(), Short> {
    match &mut header.ip {
        Ip::V4 { id, dont_fragment, .. } => {
            let byte = reader.next()?;
            let tos = reader.next()?;
            if byte >> 4 != 0 {
                return Err(Short);
            }
            values[Field::Behavior] = u32::from(byte >> 2);
            *dont_fragment = byte & 1 != 0;
            header.dscp = tos >> 2;
            header.ip_ecn = tos & 3;
            if values[Field::Behavior] == behavior::ZERO {
                *id = 0;
            } else {
                reader.u16(id)?;
            }
            if byte & 2 != 0 {
                reader.u8(&mut header.ttl)?;
            }
        }
        Ip::V6 { flow_label, .. } => {
            let tos = reader.next()?;
            header.dscp = tos >> 2;
            header.ip_ecn = tos & 3;
            let byte = reader.next()?;
            *flow_label = match byte {
                0 => 0,
                0x10..=0x1f => {
                    let mut low = 0;
                    reader.u16(&mut low)?;
                    u32::from(byte & 0xf) << 16 | u32::from(low)
                }
                _ => return Err(Short),
            };
        }
    }
    Ok(())
}

/// port_replicate.
fn port(reader: &mut Reader<'_>, kind: u8, port: &mut u16) -> Result<(), Short> {
    match kind {
        0 => Ok(()),
        1 => {
            *port = Lsb::new(8, 64).decode16(*port, u32::from(reader.next()?));
            Ok(())
        }
        2 => reader.u16(port),
        _ => Err(Short),
    }
}

/// Reads tcp_replicate up to the list of options. Returns whether a list follows.
fn tcp_replicate(reader: &mut Reader<'_>, header: &mut Header, values: &mut Values) -> Result<bool, Short> {
    let first = reader.next()?;
    let second = reader.next()?;
    if first & 0x80 != 0 {
        return Err(Short);
    }
    // URG, ACK and PSH are at the same positions as in the TCP header. ECN bits keep the base's value unless they
    // follow.
    header.flags = header.flags & 0xc0 | second & 0x38 | rsf_flags(u32::from(second >> 1 & 3));
    let ecn_used = second & 1 != 0;
    values[Field::EcnUsed] = u32::from(ecn_used);
    reader.low(2, &mut values[Field::Msn])?;
    reader.u32(&mut header.seq)?;
    port(reader, first >> 3 & 3, &mut header.source_port)?;
    port(reader, first >> 1 & 3, &mut header.destination_port)?;
    if first & 0x40 != 0 {
        reader.u16(&mut header.window)?;
    }
    if second & 0x40 != 0 {
        reader.u16(&mut header.urgent)?;
    }
    if second & 0x80 != 0 {
        reader.u32(&mut header.ack)?;
    }
    if ecn_used {
        let byte = reader.next()?;
        header.reserved = byte >> 2 & 0xf;
        header.flags = header.flags & 0x3f | byte << 6;
    }
    reader.u16(&mut header.checksum)?;
    if first & 1 != 0 {
        reader.low(2, &mut values[Field::Stride])?;
    }
    Ok(first & 0x20 != 0)
}
