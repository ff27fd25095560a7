//! Static, dynamic, replicate and irregular chains and the tail of co_common: one description for both directions.

use crate::formats::{ContextFields, Field, Values};
use crate::header::{Header, Ip, flags, read_v4, read_v6};
use crate::ip_id::{behavior, ip_id_from_offset, ip_id_offset};
use crate::layers::chains::{dynamic_layer, irregular_layer, static_layer};
use crate::layers::{Kind, Layers, Next, Version, protocol};
use crate::lsb::Lsb;
use crate::wire::{Coder, Reader, Short, Writer};

const RSF: u8 = flags::RST | flags::SYN | flags::FIN;

/// All headers of a packet.
pub(crate) struct Chain<'a> {
    /// TCP and the innermost IP header.
    pub(crate) header: &'a mut Header,
    /// All other headers, if there are any.
    pub(crate) layers: Option<&'a mut Layers>,
}

/// The index for RST, SYN and FIN flags, `None` for combinations (rsf_index_enc).
pub(crate) const fn rsf_index(flags: u8) -> Option<u32> {
    match flags & RSF {
        0 => Some(0),
        flags::RST => Some(1),
        flags::SYN => Some(2),
        flags::FIN => Some(3),
        _ => None,
    }
}

/// The flags for an index of [`rsf_index`].
pub(crate) const fn rsf_flags(index: u32) -> u8 {
    [0, flags::RST, flags::SYN, flags::FIN][index as usize & 3]
}

/// IP ECN, TCP reserved flags, CWR and ECE in the byte of the irregular chain.
pub(crate) const fn ecn_bits(header: &Header) -> u32 {
    ((header.ip_ecn & 3) << 6 | (header.reserved & 0xf) << 2 | header.flags >> 6) as u32
}

/// Sets the header fields that [`ecn_bits`] gathers.
pub(crate) const fn set_ecn_bits(header: &mut Header, bits: u32) {
    header.ip_ecn = (bits >> 6) as u8 & 3;
    header.reserved = (bits >> 2) as u8 & 0xf;
    header.flags = header.flags & 0x3f | (bits as u8) << 6;
}

/// Writes the static chain: an item for each layer and IP header, and tcp_static.
pub(crate) fn write_static_chain(writer: &mut Writer<'_>, chain: &mut Chain<'_>) -> Result<(), Short> {
    let Chain { header, layers } = chain;
    match layers {
        None => static_ip(writer, header, &mut { protocol::TCP })?,
        Some(layers) => {
            for index in 0..layers.outer() {
                write_static_layer(writer, header, layers, index)?;
            }
            static_ip(writer, header, &mut layers.inner_protocol())?;
            for index in layers.outer()..layers.count() {
                write_static_layer(writer, header, layers, index)?;
            }
        }
    }
    ports(writer, header)
}

fn write_static_layer(
    writer: &mut Writer<'_>,
    header: &Header,
    layers: &mut Layers,
    index: usize,
) -> Result<(), Short> {
    let (layer, bytes) = layers.get_mut(index);
    let (ip, mut next) = match (bytes.first_chunk(), bytes.first_chunk()) {
        (Some(v4), _) if layer.kind == Kind::V4 => (read_v4(v4).0, bytes[9]),
        (_, Some(v6)) if layer.kind == Kind::V6 => (read_v6(v6).0, bytes[6]),
        _ => return static_layer(writer, layer.kind, bytes).map(|_| ()),
    };
    static_ip(writer, &mut Header { ip, ..*header }, &mut next)
}

/// Reads a static chain. The innermost IP header is stored in `header.ip`, all others in `layers`.
pub(crate) fn read_static_chain(
    reader: &mut Reader<'_>,
    header: &mut Header,
    layers: &mut Layers,
) -> Result<(), Short> {
    layers.clear();
    let mut expected = None;
    loop {
        let behind = layers.count();
        let mut number = 0;
        static_ip(reader, header, &mut number)?;
        let version = Version::from_ip(&header.ip);
        if expected.is_some_and(|expected| expected != version) {
            return Err(Short);
        }
        let mut next = Next::from_protocol(number, version);
        while let Some(Next::Layer(kind)) = next {
            let bytes = layers.append(kind, |room| static_layer(reader, kind, room))?;
            next = Next::behind(kind, bytes, version);
        }
        match next {
            Some(Next::Ip(inner)) => {
                layers.insert_ip(behind, &header.ip, number)?;
                expected = Some(inner);
            }
            Some(Next::Tcp) => {
                layers.set_outer(behind);
                return ports(reader, header);
            }
            _ => return Err(Short),
        }
    }
}

/// tcp_static.
fn ports(coder: &mut impl Coder, header: &mut Header) -> Result<(), Short> {
    coder.u16(&mut header.source_port)?;
    coder.u16(&mut header.destination_port)
}

/// ipv4_static or ipv6_static with the protocol number `next`. A reader sets `header.ip` to the version it finds.
fn static_ip(coder: &mut impl Coder, header: &mut Header, next: &mut u8) -> Result<(), Short> {
    let mut first = match header.ip {
        Ip::V4 { .. } => 0,
        Ip::V6 { flow_label: 0, .. } => 0x80,
        Ip::V6 { flow_label, .. } => 0x90 | (flow_label >> 16) as u8 & 0xf,
    };
    coder.u8(&mut first)?;
    match first {
        0 => static_v4(coder, header, next),
        0x80..=0x9f => static_v6(coder, header, first, next),
        _ => Err(Short),
    }
}

fn static_v4(coder: &mut impl Coder, header: &mut Header, next: &mut u8) -> Result<(), Short> {
    let (mut from, mut to, id, dont_fragment) = match header.ip {
        Ip::V4 { source, destination, id, dont_fragment } => (source, destination, id, dont_fragment),
        Ip::V6 { .. } => ([0; 4], [0; 4], 0, false),
    };
    coder.u8(next)?;
    coder.bytes(&mut from)?;
    coder.bytes(&mut to)?;
    header.ip = Ip::V4 { source: from, destination: to, id, dont_fragment };
    Ok(())
}

fn static_v6(coder: &mut impl Coder, header: &mut Header, first: u8, next: &mut u8) -> Result<(), Short> {
    let (mut from, mut to, label) = match header.ip {
        Ip::V6 { source, destination, flow_label } => (source, destination, flow_label),
        Ip::V4 { .. } => ([0; 16], [0; 16], 0),
    };
    let flow_label = flow_label_rest(coder, first, label)?;
    coder.u8(next)?;
    coder.bytes(&mut from)?;
    coder.bytes(&mut to)?;
    header.ip = Ip::V6 { source: from, destination: to, flow_label };
    Ok(())
}

/// The rest of fl_enc after its first byte, which ends in a discriminator bit and four bits of the label.
fn flow_label_rest(coder: &mut impl Coder, first: u8, label: u32) -> Result<u32, Short> {
    if first & 0x10 == 0 {
        return if first & 0xf == 0 { Ok(0) } else { Err(Short) };
    }
    let mut low = label as u16;
    coder.u16(&mut low)?;
    Ok(u32::from(first & 0xf) << 16 | u32::from(low))
}

/// The dynamic items of layers, ipv4_innermost_dynamic or ipv6_dynamic, and tcp_dynamic up to the list of options.
pub(crate) fn dynamic_chain(
    coder: &mut impl Coder,
    chain: &mut Chain<'_>,
    values: &mut Values,
) -> Result<(), Short> {
    let Chain { header, layers } = chain;
    match layers {
        None => dynamic_ip(coder, header, values)?,
        Some(layers) => {
            for index in 0..layers.outer() {
                let (layer, bytes) = layers.get_mut(index);
                dynamic_layer(coder, layer, bytes)?;
            }
            dynamic_ip(coder, header, values)?;
            for index in layers.outer()..layers.count() {
                let (layer, bytes) = layers.get_mut(index);
                dynamic_layer(coder, layer, bytes)?;
            }
        }
    }
    tcp_dynamic(coder, header, values)
}

/// ipv4_innermost_dynamic or ipv6_dynamic.
fn dynamic_ip(coder: &mut impl Coder, header: &mut Header, values: &mut Values) -> Result<(), Short> {
    if let Ip::V4 { dont_fragment, .. } = &mut header.ip {
        let mut byte = u8::from(*dont_fragment) << 2 | values[Field::Behavior] as u8;
        coder.u8(&mut byte)?;
        if byte > 7 {
            return Err(Short);
        }
        *dont_fragment = byte & 4 != 0;
        values[Field::Behavior] = u32::from(byte & 3);
    } else {
        values[Field::Behavior] = behavior::RANDOM;
    }
    traffic_class(coder, header)?;
    coder.u8(&mut header.ttl)?;
    if let Ip::V4 { id, .. } = &mut header.ip {
        ip_id_dynamic(coder, id, values[Field::Behavior])?;
    }
    Ok(())
}

fn traffic_class(coder: &mut impl Coder, header: &mut Header) -> Result<(), Short> {
    let mut byte = header.dscp << 2 | header.ip_ecn;
    coder.u8(&mut byte)?;
    header.dscp = byte >> 2;
    header.ip_ecn = byte & 3;
    Ok(())
}

fn ip_id_dynamic(coder: &mut impl Coder, id: &mut u16, behavior: u32) -> Result<(), Short> {
    if behavior == behavior::ZERO {
        *id = 0;
        return Ok(());
    }
    coder.u16(id)
}

fn tcp_dynamic(coder: &mut impl Coder, header: &mut Header, values: &mut Values) -> Result<(), Short> {
    let stride = values[Field::Stride] as u16;
    let mut byte = (values[Field::EcnUsed] as u8) << 7
        | u8::from(stride != 0) << 6
        | u8::from(header.ack == 0) << 5
        | u8::from(header.urgent == 0) << 4
        | header.reserved;
    coder.u8(&mut byte)?;
    values[Field::EcnUsed] = u32::from(byte >> 7);
    header.reserved = byte & 0xf;
    coder.u8(&mut header.flags)?;
    let mut msn = values[Field::Msn] as u16;
    coder.u16(&mut msn)?;
    values[Field::Msn] = u32::from(msn);
    coder.u32(&mut header.seq)?;
    unless_zero(byte & 0x20 != 0, &mut header.ack, |ack| coder.u32(ack))?;
    coder.u16(&mut header.window)?;
    coder.u16(&mut header.checksum)?;
    unless_zero(byte & 0x10 != 0, &mut header.urgent, |urgent| coder.u16(urgent))?;
    // Without the flag the stride does not change. An IR sets it to 0, see `Context`.
    if byte & 0x40 != 0 {
        let mut stride = stride;
        coder.u16(&mut stride)?;
        values[Field::Stride] = u32::from(stride);
    }
    Ok(())
}

/// zero_or_irreg: a value of 0 is not sent.
fn unless_zero<T: Default>(
    zero: bool,
    value: &mut T,
    code: impl FnOnce(&mut T) -> Result<(), Short>,
) -> Result<(), Short> {
    if zero {
        *value = T::default();
        return Ok(());
    }
    code(value)
}

/// static_or_irreg for a field in [`Values`]: `bytes` bytes verbatim when the indicator is set.
fn if_indicated(
    coder: &mut impl Coder,
    values: &mut Values,
    indicator: Field,
    field: Field,
    bytes: usize,
) -> Result<(), Short> {
    if values[indicator] != 0 { coder.low(bytes, &mut values[field]) } else { Ok(()) }
}

/// The optional fields of co_common, up to the list of options. A reader takes its references from `kept`; a writer
/// ignores `kept`. The indicators in `values` determine which fields are present.
pub(crate) fn common_tail(
    coder: &mut impl Coder,
    values: &mut Values,
    kept: &ContextFields,
) -> Result<(), Short> {
    for (indicator, field) in [(Field::SeqIndicator, Field::Seq), (Field::AckIndicator, Field::Ack)] {
        match values[indicator] {
            0 => {}
            3 => coder.low(4, &mut values[field])?,
            kind => {
                let reference = kept[field as usize];
                coder.lsb(VARIABLE_LENGTH[kind as usize - 1], u32::MAX, reference, &mut values[field])?;
            }
        }
    }
    if_indicated(coder, values, Field::StrideIndicator, Field::Stride, 2)?;
    if_indicated(coder, values, Field::WindowIndicator, Field::Window, 2)?;
    if values[Field::Behavior] <= behavior::SWAPPED {
        common_ip_id(coder, values, kept)?;
    }
    if_indicated(coder, values, Field::UrgentIndicator, Field::UrgentPointer, 2)?;
    if values[Field::DscpIndicator] != 0 {
        let mut padded = values[Field::Dscp] << 2;
        coder.low(1, &mut padded)?;
        values[Field::Dscp] = padded >> 2;
    }
    if_indicated(coder, values, Field::TtlIndicator, Field::Ttl, 1)
}

/// variable_length_32_enc for the indicators 1 and 2. Indicator 0 sends nothing, 3 sends all 32 bits.
pub(crate) const VARIABLE_LENGTH: [Lsb; 2] = [Lsb::new(8, 63), Lsb::new(16, 16383)];
/// The short form of optional_ip_id_lsb.
pub(crate) const IP_ID_SHORT: Lsb = Lsb::new(8, 3);

/// optional_ip_id_lsb. The long form is the IP-ID verbatim.
fn common_ip_id(coder: &mut impl Coder, values: &mut Values, kept: &ContextFields) -> Result<(), Short> {
    if values[Field::IpIdIndicator] == 0 {
        let reference = kept[Field::IpIdOffset as usize];
        return coder.lsb(IP_ID_SHORT, 0xffff, reference, &mut values[Field::IpIdOffset]);
    }
    let (msn, behavior) = (values[Field::Msn], values[Field::Behavior]);
    let mut id = ip_id_from_offset(values[Field::IpIdOffset], msn, behavior);
    coder.u16(&mut id)?;
    values[Field::IpIdOffset] = ip_id_offset(id, msn, behavior);
    Ok(())
}

/// The irregular items of layers, ipv4_innermost_irregular and tcp_irregular: the part between the base header and the
/// irregular items of the options.
#[inline]
pub(crate) fn irregular_chain(
    coder: &mut impl Coder,
    chain: &mut Chain<'_>,
    values: &mut Values,
) -> Result<(), Short> {
    let Chain { header, layers } = chain;
    match layers {
        None => irregular_ip(coder, header, values)?,
        Some(layers) => {
            irregular_layers(coder, values, layers, 0..layers.outer())?;
            irregular_ip(coder, header, values)?;
            irregular_layers(coder, values, layers, layers.outer()..layers.count())?;
        }
    }
    if values[Field::EcnUsed] != 0 {
        coder.low(1, &mut values[Field::EcnBits])?;
    }
    coder.u16(&mut header.checksum)
}

fn irregular_ip(coder: &mut impl Coder, header: &mut Header, values: &Values) -> Result<(), Short> {
    match &mut header.ip {
        Ip::V4 { id, .. } if values[Field::Behavior] == behavior::RANDOM => coder.u16(id),
        _ => Ok(()),
    }
}

#[cold]
fn irregular_layers(
    coder: &mut impl Coder,
    values: &Values,
    layers: &mut Layers,
    range: core::ops::Range<usize>,
) -> Result<(), Short> {
    for index in range {
        let (layer, bytes) = layers.get_mut(index);
        irregular_layer(coder, layer, bytes, values[Field::EcnUsed] != 0, values[Field::TtlOuter] != 0)?;
    }
    Ok(())
}
