//! Layers in the static, dynamic, replicate and irregular chains (RFC 6846 section 8.2).

use super::{
    ETHERTYPE_V4, ETHERTYPE_V6, Kind, Layer, Layers, gre, mine_len, set_traffic_class, traffic_class,
};
use crate::ip_id::behavior;
use crate::lsb::Lsb;
use crate::wire::{Coder, Reader, Short, Writer};

/// lsb_7_or_31.
const SEQUENCE_SHORT: Lsb = Lsb::new(7, 8);
const SEQUENCE_LONG: Lsb = Lsb::new(31, 256);

/// The form of lsb_7_or_31 that encodes `value` with every one of these references: `true` for the short form, `None`
/// if neither fits.
pub(crate) fn sequence_form(references: &[u32], value: u32) -> Option<bool> {
    let fits = |lsb: Lsb| references.iter().all(|&reference| lsb.fits(reference, value));
    if fits(SEQUENCE_SHORT) { Some(true) } else { fits(SEQUENCE_LONG).then_some(false) }
}

/// Offset of the sequence number of a layer, if it has one.
pub(crate) fn sequence_at(kind: Kind, bytes: &[u8]) -> Option<usize> {
    match kind {
        Kind::Ah => Some(8),
        Kind::Gre if bytes[0] & gre::SEQUENCE != 0 => Some(bytes.len() - 4),
        _ => None,
    }
}

/// The sequence number of a layer.
pub(crate) fn sequence(kind: Kind, bytes: &[u8]) -> Option<u32> {
    let at = sequence_at(kind, bytes)?;
    bytes[at..].first_chunk().map(|word| u32::from_be_bytes(*word))
}

fn room(bytes: &mut [u8], range: core::ops::Range<usize>) -> Result<&mut [u8], Short> {
    bytes.get_mut(range).ok_or(Short)
}

/// Codes the static item of a layer other than IP, at the start of `bytes`. Returns the length of the layer in the
/// packet. Static items of IP headers are coded together with that of the innermost one.
pub(crate) fn static_layer(coder: &mut impl Coder, kind: Kind, bytes: &mut [u8]) -> Result<usize, Short> {
    match kind {
        Kind::V4 | Kind::V6 => Err(Short),
        Kind::HopByHop | Kind::Destination => {
            coder.bytes(room(bytes, 0..2)?)?;
            let len = 8 + 8 * usize::from(bytes[1]);
            room(bytes, 0..len).map(|_| len)
        }
        Kind::Routing => {
            coder.bytes(room(bytes, 0..2)?)?;
            let len = 8 + 8 * usize::from(bytes[1]);
            coder.bytes(room(bytes, 2..len)?)?;
            Ok(len)
        }
        Kind::Ah => {
            coder.bytes(room(bytes, 0..2)?)?;
            let len = ah_len(bytes)?;
            coder.bytes(&mut room(bytes, 0..len)?[4..8])?;
            Ok(len)
        }
        Kind::Gre => static_gre(coder, bytes),
        Kind::Mine => {
            coder.bytes(room(bytes, 0..2)?)?;
            let len = mine_len(bytes[1]);
            coder.bytes(room(bytes, 4..len)?)?;
            Ok(len)
        }
    }
}

/// Length of an AH in bytes. One that is too short for a sequence number is an error (RFC 4302 section 2.2).
fn ah_len(bytes: &[u8]) -> Result<usize, Short> {
    if bytes[1] == 0 { Err(Short) } else { Ok(8 + 4 * usize::from(bytes[1])) }
}

fn static_gre(coder: &mut impl Coder, bytes: &mut [u8]) -> Result<usize, Short> {
    let head = room(bytes, 0..4)?;
    let is_v6 = [head[2], head[3]] == ETHERTYPE_V6;
    let mut byte = u8::from(is_v6) << 7 | head[0] >> 1 & 0x40 | head[0] & 0x30;
    coder.u8(&mut byte)?;
    if byte & 0xf != 0 {
        return Err(Short);
    }
    let flags = byte << 1 & gre::CHECKSUM | byte & (gre::KEY | gre::SEQUENCE);
    let [high, low] = if byte & 0x80 != 0 { ETHERTYPE_V6 } else { ETHERTYPE_V4 };
    head.copy_from_slice(&[flags, 0, high, low]);
    let len = gre::len(flags);
    room(bytes, 0..len)?;
    if flags & gre::KEY != 0 {
        coder.bytes(&mut bytes[gre::key_at(flags)..][..4])?;
    }
    Ok(len)
}

/// Codes the dynamic item of a layer.
pub(crate) fn dynamic_layer(
    coder: &mut impl Coder,
    layer: &mut Layer,
    bytes: &mut [u8],
) -> Result<(), Short> {
    match layer.kind {
        Kind::V4 => {
            let mut first = bytes[6] >> 4 & 4 | layer.behavior;
            coder.u8(&mut first)?;
            // An outer IP-ID is never sequential (RFC 6846 section 6.1.2).
            if first & !4 != behavior::RANDOM as u8 && first & !4 != behavior::ZERO as u8 {
                return Err(Short);
            }
            layer.behavior = first & 3;
            bytes[6] = (first & 4) << 4;
            coder.bytes(&mut bytes[1..2])?;
            coder.bytes(&mut bytes[8..9])?;
            ip_id(coder, layer, bytes)
        }
        Kind::V6 => {
            code_traffic_class(coder, bytes)?;
            coder.bytes(&mut bytes[7..8])
        }
        Kind::HopByHop | Kind::Destination => coder.bytes(&mut bytes[2..]),
        Kind::Ah => {
            coder.bytes(&mut bytes[2..4])?;
            coder.bytes(&mut bytes[8..])
        }
        Kind::Gre => {
            gre_checksum(coder, bytes)?;
            gre_sequence(coder, bytes)
        }
        Kind::Routing | Kind::Mine => Ok(()),
    }
}

/// ip_id_enc_dyn and ip_id_enc_irreg, for random or zero behaviour.
fn ip_id(coder: &mut impl Coder, layer: &Layer, bytes: &mut [u8]) -> Result<(), Short> {
    if u32::from(layer.behavior) == behavior::ZERO {
        bytes[4..6].fill(0);
        return Ok(());
    }
    coder.bytes(&mut bytes[4..6])
}

fn code_traffic_class(coder: &mut impl Coder, bytes: &mut [u8]) -> Result<(), Short> {
    let mut class = traffic_class(bytes);
    coder.u8(&mut class)?;
    set_traffic_class(bytes, class);
    Ok(())
}

/// optional_checksum.
fn gre_checksum(coder: &mut impl Coder, bytes: &mut [u8]) -> Result<(), Short> {
    if bytes[0] & gre::CHECKSUM != 0 { coder.bytes(&mut bytes[4..6]) } else { Ok(()) }
}

/// The sequence number verbatim, if there is one.
fn gre_sequence(coder: &mut impl Coder, bytes: &mut [u8]) -> Result<(), Short> {
    match sequence_at(Kind::Gre, bytes) {
        Some(at) => coder.bytes(&mut bytes[at..]),
        None => Ok(()),
    }
}

/// Codes the irregular item of a layer. `ttl` is the ttl_irregular_chain_flag.
pub(crate) fn irregular_layer(
    coder: &mut impl Coder,
    layer: &Layer,
    bytes: &mut [u8],
    ecn_used: bool,
    ttl: bool,
) -> Result<(), Short> {
    match layer.kind {
        Kind::V4 => {
            ip_id(coder, layer, bytes)?;
            if ecn_used {
                coder.bytes(&mut bytes[1..2])?;
            }
            if ttl { coder.bytes(&mut bytes[8..9]) } else { Ok(()) }
        }
        Kind::V6 => {
            if ecn_used {
                code_traffic_class(coder, bytes)?;
            }
            if ttl { coder.bytes(&mut bytes[7..8]) } else { Ok(()) }
        }
        Kind::Ah => {
            lsb_7_or_31(coder, layer.short_sequence, &mut bytes[8..12])?;
            coder.bytes(&mut bytes[12..])
        }
        Kind::Gre => {
            gre_checksum(coder, bytes)?;
            match sequence_at(Kind::Gre, bytes) {
                Some(at) => lsb_7_or_31(coder, layer.short_sequence, &mut bytes[at..]),
                None => Ok(()),
            }
        }
        Kind::HopByHop | Kind::Routing | Kind::Destination | Kind::Mine => Ok(()),
    }
}

/// lsb_7_or_31 of four bytes. For a reader, these bytes contain the reference on entry.
fn lsb_7_or_31(coder: &mut impl Coder, short: bool, bytes: &mut [u8]) -> Result<(), Short> {
    let word = bytes.first_chunk_mut::<4>().ok_or(Short)?;
    let reference = u32::from_be_bytes(*word);
    let mut sent =
        if short { [word[3] & 0x7f, 0, 0, 0] } else { [word[0] | 0x80, word[1], word[2], word[3]] };
    coder.bytes(&mut sent[..1])?;
    let value = if sent[0] & 0x80 == 0 {
        SEQUENCE_SHORT.decode(reference, u32::from(sent[0]))
    } else {
        coder.bytes(&mut sent[1..])?;
        SEQUENCE_LONG.decode(reference, SEQUENCE_LONG.encode(u32::from_be_bytes(sent)))
    };
    // A writer passes the value itself, which decodes to itself when used as the reference.
    *word = value.to_be_bytes();
    Ok(())
}

/// Discriminators of replicate items: without changed fields, and with them.
const REPLICATE_0: u8 = 0x00;
const REPLICATE_1: u8 = 0x80;

/// Writes the replicate item of a layer relative to a base that [`replicates`] it.
pub(crate) fn write_replicate(writer: &mut Writer<'_>, layer: &Layer, bytes: &mut [u8]) -> Result<(), Short> {
    match layer.kind {
        Kind::V4 => {
            writer.put(&[layer.behavior << 2 | 2 | bytes[6] >> 6, bytes[1]])?;
            ip_id(writer, layer, bytes)?;
            writer.put(&bytes[8..9])
        }
        Kind::V6 => {
            writer.put(&[traffic_class(bytes)])?;
            match bytes[1..4] {
                [high, 0, 0] if high & 0xf == 0 => writer.put(&[0]),
                _ => writer.put(&[0x10 | bytes[1] & 0xf, bytes[2], bytes[3]]),
            }
        }
        Kind::HopByHop | Kind::Routing | Kind::Destination | Kind::Mine => writer.put(&[REPLICATE_0]),
        Kind::Gre => {
            writer.put(&[REPLICATE_0])?;
            gre_checksum(writer, bytes)?;
            gre_sequence(writer, bytes)
        }
        Kind::Ah => {
            writer.put(&[REPLICATE_0])?;
            writer.put(&bytes[8..])
        }
    }
}

/// True if [`write_replicate`] can encode every difference between `layers` and `base`.
pub(crate) fn replicates(base: &Layers, layers: &Layers) -> bool {
    base.is_same_flow(layers)
        && base.all().iter().zip(layers.all()).all(|(one, other)| {
            let (one, other, kind) = (base.bytes_of(one), layers.bytes_of(other), other.kind);
            match kind {
                Kind::V6 => one[7] == other[7],
                Kind::HopByHop | Kind::Destination => one == other,
                Kind::Ah => one[2..4] == other[2..4],
                _ => true,
            }
        })
}

/// Reads the replicate item of a layer of the base, and appends the resulting layer.
pub(crate) fn read_replicate(
    reader: &mut Reader<'_>,
    layer: &Layer,
    base: &[u8],
    layers: &mut Layers,
) -> Result<(), Short> {
    let mut behavior = layer.behavior;
    layers.append(layer.kind, |bytes| {
        room(bytes, 0..base.len())?.copy_from_slice(base);
        match layer.kind {
            Kind::V4 => {
                let first = reader.next()?;
                behavior = first >> 2;
                if !matches!(u32::from(behavior), behavior::RANDOM | behavior::ZERO) {
                    return Err(Short);
                }
                bytes[6] = (first & 1) << 6;
                bytes[1] = reader.next()?;
                ip_id(reader, &Layer { behavior, ..*layer }, bytes)?;
                if first & 2 != 0 {
                    bytes[8] = reader.next()?;
                }
                Ok(base.len())
            }
            Kind::V6 => {
                let class = reader.next()?;
                let label = match reader.next()? {
                    0 => [0; 3],
                    high @ 0x10..=0x1f => [high & 0xf, reader.next()?, reader.next()?],
                    _ => return Err(Short),
                };
                bytes[1..4].copy_from_slice(&label);
                set_traffic_class(bytes, class);
                Ok(base.len())
            }
            _ => replicate_other(reader, layer.kind, base.len(), bytes),
        }
    })?;
    let last = layers.count() - 1;
    layers.get_mut(last).0.behavior = behavior;
    Ok(())
}

/// The replicate item of a layer other than IP. `bytes` starts with the `len` bytes of the base.
fn replicate_other(
    reader: &mut Reader<'_>,
    kind: Kind,
    len: usize,
    bytes: &mut [u8],
) -> Result<usize, Short> {
    let discriminator = reader.next()?;
    match (kind, discriminator) {
        (Kind::HopByHop | Kind::Routing | Kind::Destination | Kind::Mine, REPLICATE_0) => Ok(len),
        (Kind::Gre, REPLICATE_0) => {
            gre_checksum(reader, &mut bytes[..len])?;
            gre_sequence(reader, &mut bytes[..len])?;
            Ok(len)
        }
        (Kind::Ah, REPLICATE_0) => {
            reader.bytes(&mut bytes[8..len])?;
            Ok(len)
        }
        (Kind::HopByHop | Kind::Routing | Kind::Destination, REPLICATE_1) => {
            let new = 8 + 8 * usize::from(reader.next()?);
            let value = room(bytes, 0..new)?;
            value[1] = ((new - 8) / 8) as u8;
            reader.bytes(&mut value[2..])?;
            clear(bytes, new, len);
            Ok(new)
        }
        (Kind::Gre, 0x80..=0x87) => {
            let flags = discriminator << 5 & gre::CHECKSUM
                | discriminator << 4 & gre::KEY
                | discriminator << 4 & gre::SEQUENCE;
            bytes[4..len].fill(0);
            bytes[0] = flags;
            let new = room(bytes, 0..gre::len(flags))?;
            gre_checksum(reader, new)?;
            if flags & gre::KEY != 0 {
                reader.bytes(&mut new[gre::key_at(flags)..][..4])?;
            }
            gre_sequence(reader, new)?;
            Ok(gre::len(flags))
        }
        (Kind::Mine, REPLICATE_1) => {
            bytes[1] = reader.next()?;
            let new = mine_len(bytes[1]);
            reader.bytes(room(bytes, 4..new)?)?;
            clear(bytes, new, len);
            Ok(new)
        }
        (Kind::Ah, REPLICATE_1) => {
            bytes[1] = reader.next()?;
            let new = ah_len(bytes)?;
            reader.bytes(room(bytes, 2..new)?)?;
            clear(bytes, new, len);
            Ok(new)
        }
        _ => Err(Short),
    }
}

/// Clears the excess bytes if the base was longer, because only zeros may follow the layers.
fn clear(bytes: &mut [u8], new: usize, old: usize) {
    if new < old {
        bytes[new..old].fill(0);
    }
}
