//! pcapng blocks, little-endian (draft-ietf-opsawg-pcapng).

use tacit_packet::units::Instant;

const SECTION_HEADER: u32 = 0x0A0D_0D0A;
const BYTE_ORDER_MAGIC: u32 = 0x1A2B_3C4D;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;

const OPTION_END: u16 = 0;
const OPTION_INTERFACE_NAME: u16 = 2;
const OPTION_USER_APPLICATION: u16 = 4;
const OPTION_TIME_RESOLUTION: u16 = 9;
/// Timestamps are in units of 10^-9 s.
const NANOSECONDS: u8 = 9;

/// Appends the block at the start of a file.
pub fn section_header(out: &mut Vec<u8>) {
    block(out, SECTION_HEADER, |out| {
        out.extend(BYTE_ORDER_MAGIC.to_le_bytes());
        // Version 1.0; the length of the section is unknown.
        out.extend(1u16.to_le_bytes());
        out.extend(0u16.to_le_bytes());
        out.extend(u64::MAX.to_le_bytes());
        option(out, OPTION_USER_APPLICATION, b"tacit");
        option(out, OPTION_END, &[]);
    });
}

/// Appends the description of the next interface; timestamps of its packets are in nanoseconds.
pub fn interface_description(out: &mut Vec<u8>, link_type: u16, name: &[u8]) {
    block(out, INTERFACE_DESCRIPTION, |out| {
        out.extend(link_type.to_le_bytes());
        out.extend([0; 2]);
        // No snap length.
        out.extend(0u32.to_le_bytes());
        option(out, OPTION_INTERFACE_NAME, name);
        option(out, OPTION_TIME_RESOLUTION, &[NANOSECONDS]);
        option(out, OPTION_END, &[]);
    });
}

/// Appends a packet of `interface`, counted from 0, that consists of `parts`; time zero is 1970-01-01 00:00 UTC.
pub fn enhanced_packet(out: &mut Vec<u8>, interface: u32, at: Instant, parts: &[&[u8]]) {
    let nanos = at.as_nanos();
    let len = parts.iter().map(|part| part.len() as u32).sum();
    block(out, ENHANCED_PACKET, |out| {
        for field in [interface, (nanos >> 32) as u32, nanos as u32, len, len] {
            out.extend(field.to_le_bytes());
        }
        parts.iter().for_each(|part| out.extend_from_slice(part));
        pad(out);
    });
}

/// Type, length, body, length. The body's length is a multiple of 4.
fn block(out: &mut Vec<u8>, kind: u32, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend(kind.to_le_bytes());
    out.extend([0; 4]);
    body(out);
    let total = ((out.len() - start + 4) as u32).to_le_bytes();
    out[start + 4..start + 8].copy_from_slice(&total);
    out.extend(total);
}

fn option(out: &mut Vec<u8>, code: u16, value: &[u8]) {
    out.extend(code.to_le_bytes());
    out.extend((value.len() as u16).to_le_bytes());
    out.extend_from_slice(value);
    pad(out);
}

/// Blocks are multiples of 4, so alignment within the file is alignment within the block.
fn pad(out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(4), 0);
}
