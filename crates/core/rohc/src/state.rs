//! Conversion between a [`Header`] and the [`Values`] that CO packets carry.

use crate::chains::{ecn_bits, rsf_flags, rsf_index, set_ecn_bits};
use crate::formats::{Field, Values};
use crate::header::{Header, Ip, flags};
use crate::ip_id::{behavior, ip_id_from_offset, ip_id_offset};

/// Sets every field that depends on the header alone. The behaviour, MSN and stride must already be in `values`.
///
/// If a combination of RST, SYN and FIN has no index, [`Field::Rsf`] is set to 4.
#[inline]
pub(crate) fn observe(header: &Header, values: &mut Values) {
    values[Field::Seq] = header.seq;
    values[Field::Ack] = header.ack;
    values[Field::Window] = u32::from(header.window);
    values[Field::Ttl] = u32::from(header.ttl);
    values[Field::Dscp] = u32::from(header.dscp);
    values[Field::UrgentPointer] = u32::from(header.urgent);
    values[Field::EcnBits] = ecn_bits(header);
    values[Field::Psh] = u32::from(header.has(flags::PSH));
    values[Field::AckFlag] = u32::from(header.has(flags::ACK));
    values[Field::Urg] = u32::from(header.has(flags::URG));
    values[Field::KeptFlags] = kept_flags(header.flags);
    values[Field::Rsf] = rsf_index(header.flags).unwrap_or(4);
    match header.ip {
        Ip::V4 { id, dont_fragment, .. } => {
            values[Field::Df] = u32::from(dont_fragment);
            values[Field::IpIdOffset] = ip_id_offset(id, values[Field::Msn], values[Field::Behavior]);
        }
        Ip::V6 { .. } => {
            values[Field::Df] = 0;
            values[Field::IpIdOffset] = 0;
            values[Field::Behavior] = behavior::RANDOM;
        }
    }
    values[Field::PayloadLen] = u32::from(header.payload_len);
    scale(values);
}

/// The value of [`Field::KeptFlags`] for these flags.
pub(crate) const fn kept_flags(flags: u8) -> u32 {
    (flags >> 4 & 3) as u32
}

/// field_scaling of both the sequence number and the acknowledgment number (RFC 6846 section 6.4.8).
///
/// A packet without payload has no scaling factor for its sequence number, so the established one is kept.
pub(crate) fn scale(values: &mut Values) {
    let (ack, stride) = (values[Field::Ack], values[Field::Stride]);
    if let Some(scaled) = ack.checked_div(stride) {
        values[Field::AckScaled] = scaled;
        values[Field::AckResidue] = ack % stride;
    }
    let (seq, len) = (values[Field::Seq], values[Field::PayloadLen]);
    if let Some(scaled) = seq.checked_div(len) {
        values[Field::SeqScaled] = scaled;
        values[Field::SeqResidue] = seq % len;
    }
}

/// Writes the fields of a CO packet into `header`. Static fields are unchanged. An IP-ID from the irregular chain must
/// already be there.
pub(crate) fn reconstruct(values: &Values, header: &mut Header) {
    header.seq = values[Field::Seq];
    header.ack = values[Field::Ack];
    header.window = values[Field::Window] as u16;
    header.ttl = values[Field::Ttl] as u8;
    header.dscp = values[Field::Dscp] as u8;
    header.urgent = values[Field::UrgentPointer] as u16;
    header.flags = rsf_flags(values[Field::Rsf])
        | (values[Field::Psh] as u8) << 3
        | (values[Field::AckFlag] as u8) << 4
        | (values[Field::Urg] as u8) << 5;
    set_ecn_bits(header, values[Field::EcnBits]);
    if let Ip::V4 { id, dont_fragment, .. } = &mut header.ip {
        *dont_fragment = values[Field::Df] != 0;
        match values[Field::Behavior] {
            behavior::RANDOM => {}
            behavior::ZERO => *id = 0,
            sequential => *id = ip_id_from_offset(values[Field::IpIdOffset], values[Field::Msn], sequential),
        }
    }
}
