//! Tunnels and extension headers around a packet, written byte by byte; the fuzz targets use them, too.
#![allow(dead_code, clippy::unwrap_used)]

/// A header around the innermost IP header or behind it.
#[derive(Clone, Debug)]
pub enum Part {
    V4 {
        tos: u8,
        ttl: u8,
        id: u16,
        dont_fragment: bool,
    },
    V6 {
        class: u8,
        hop_limit: u8,
        label: u32,
    },
    /// Flags as in RFC 2890. The checksum is arbitrary.
    Gre {
        flags: u8,
        checksum: u16,
        key: u32,
        sequence: u32,
    },
    Ah {
        reserved: u16,
        spi: u32,
        sequence: u32,
        icv: Vec<u8>,
    },
    /// With this original destination and source address (RFC 2004); without the source if it is `None`.
    Mine {
        destination: [u8; 4],
        source: Option<[u8; 4]>,
    },
    /// Protocol number 0, 43 or 60, and the bytes after next header and length: 6 plus a multiple of 8.
    Options {
        number: u8,
        value: Vec<u8>,
    },
}

/// Inserts headers into `packet`, which has plain IP and TCP headers, before its IP header and after it.
pub fn wrap(packet: &[u8], outer: &[Part], behind: &[Part]) -> Vec<u8> {
    let ip_len = if packet[0] >> 4 == 4 { 20 } else { 40 };
    let mut body = packet[ip_len..].to_vec();
    let mut next = 6;
    for part in behind.iter().rev() {
        (body, next) = before(part, next, body);
    }
    let mut ip = packet[..ip_len].to_vec();
    ip[if ip_len == 20 { 9 } else { 6 }] = next;
    body = set_lengths(ip, body);
    next = if ip_len == 20 { 4 } else { 41 };
    for part in outer.iter().rev() {
        (body, next) = before(part, next, body);
    }
    body
}

/// Puts a header before its payload. Returns the bytes and the protocol number of the header.
fn before(part: &Part, next: u8, body: Vec<u8>) -> (Vec<u8>, u8) {
    let mut bytes = Vec::new();
    match part {
        Part::V4 { tos, ttl, id, dont_fragment } => {
            bytes.extend([0x45, *tos, 0, 0]);
            bytes.extend(id.to_be_bytes());
            bytes.extend([u8::from(*dont_fragment) << 6, 0, *ttl, next, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2]);
            (set_lengths(bytes, body), 4)
        }
        Part::V6 { class, hop_limit, label } => {
            bytes.extend((6 << 28 | u32::from(*class) << 20 | label).to_be_bytes());
            bytes.extend([0, 0, next, *hop_limit]);
            bytes.extend([0x20; 16]);
            bytes.extend([0x21; 16]);
            (set_lengths(bytes, body), 41)
        }
        Part::Gre { flags, checksum, key, sequence } => {
            let protocol: u16 = if next == 4 { 0x0800 } else { 0x86dd };
            bytes.extend([flags & 0xb0, 0]);
            bytes.extend(protocol.to_be_bytes());
            if flags & 0x80 != 0 {
                bytes.extend(checksum.to_be_bytes());
                bytes.extend([0, 0]);
            }
            if flags & 0x20 != 0 {
                bytes.extend(key.to_be_bytes());
            }
            if flags & 0x10 != 0 {
                bytes.extend(sequence.to_be_bytes());
            }
            bytes.extend(body);
            (bytes, 47)
        }
        Part::Ah { reserved, spi, sequence, icv } => {
            bytes.extend([next, (1 + icv.len() / 4) as u8]);
            bytes.extend(reserved.to_be_bytes());
            bytes.extend(spi.to_be_bytes());
            bytes.extend(sequence.to_be_bytes());
            bytes.extend(icv);
            bytes.extend(body);
            (bytes, 51)
        }
        Part::Mine { destination, source } => {
            bytes.extend([next, u8::from(source.is_some()) << 7, 0, 0]);
            bytes.extend(destination);
            bytes.extend(source.iter().flatten());
            let sum = checksum(&bytes);
            bytes[2..4].copy_from_slice(&sum.to_be_bytes());
            bytes.extend(body);
            (bytes, 55)
        }
        Part::Options { number, value } => {
            bytes.extend([next, (value.len() / 8) as u8]);
            bytes.extend(value);
            bytes.extend(body);
            (bytes, *number)
        }
    }
}

/// An IP header with its length fields set, followed by its payload.
fn set_lengths(mut ip: Vec<u8>, body: Vec<u8>) -> Vec<u8> {
    if ip[0] >> 4 == 4 {
        let len = (20 + body.len()) as u16;
        ip[2..4].copy_from_slice(&len.to_be_bytes());
        ip[10..12].fill(0);
        let sum = checksum(&ip);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
    } else {
        ip[4..6].copy_from_slice(&(body.len() as u16).to_be_bytes());
    }
    ip.extend(body);
    ip
}

/// The Internet checksum (RFC 1071).
fn checksum(bytes: &[u8]) -> u16 {
    let mut sum: u32 = bytes.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !sum as u16
}

/// Chooses the headers before and after the innermost IP header. `v6` is the version of the innermost one.
pub fn stack(choice: u32, v6: bool) -> (Vec<Part>, Vec<Part>) {
    let number = choice.wrapping_mul(0x9e37_79b9);
    let v4 = Part::V4 {
        tos: number as u8,
        ttl: 64,
        id: (number >> 8) as u16 * (choice as u16 >> 7 & 1),
        dont_fragment: true,
    };
    let outer_v6 = Part::V6 {
        class: number as u8,
        hop_limit: 64,
        label: if choice & 0x100 != 0 { number >> 12 } else { 0 },
    };
    let gre = Part::Gre { flags: number as u8, checksum: 7, key: number, sequence: number };
    let ah = Part::Ah { reserved: 0, spi: number, sequence: number, icv: vec![1; 12] };
    let mine = Part::Mine { destination: [9, 8, 7, 6], source: (choice & 0x40 != 0).then_some([6, 7, 8, 9]) };
    let options = |number: u8, len: usize| Part::Options { number, value: vec![number; len] };
    let routing = Part::Options { number: 43, value: [&[4, 1, 0, 0, 0, 0][..], &[0x33; 16]].concat() };
    let outer = match choice & 7 {
        0 | 1 => vec![],
        2 => vec![v4],
        3 => vec![outer_v6],
        4 => vec![v4, gre],
        5 => vec![outer_v6, options(0, 6), options(60, 14), gre],
        6 => vec![v4.clone(), ah.clone(), v4],
        _ => vec![outer_v6, v4, ah.clone(), gre],
    };
    let behind = match (choice >> 3 & 7, v6) {
        (0 | 1, _) => vec![],
        (2, _) => vec![ah],
        (3..=4, false) => vec![mine],
        (_, false) => vec![ah.clone(), ah],
        (3, true) => vec![options(0, 6), options(43, 22)],
        (4, true) => vec![options(60, 6)],
        (5, true) => vec![routing],
        _ => vec![options(0, 6), ah, options(60, 22)],
    };
    (outer, behind)
}

/// Changes a field of one header: `kind` determines the field and the header, `amount` the difference.
pub fn change(parts: &mut [Part], kind: u8, amount: u32) {
    if parts.is_empty() {
        return;
    }
    let at = amount as usize % parts.len();
    match (&mut parts[at], kind % 4) {
        (Part::V4 { ttl, .. }, 0) => *ttl = (amount >> 8) as u8,
        (Part::V4 { tos, .. }, 1) => *tos = (amount >> 8) as u8,
        (Part::V4 { id, .. }, 2) => *id = (amount >> 8) as u16,
        (Part::V4 { dont_fragment, .. }, _) => *dont_fragment = amount & 0x100 != 0,
        (Part::V6 { hop_limit, .. }, 0) => *hop_limit = (amount >> 8) as u8,
        (Part::V6 { class, .. }, 1) => *class = (amount >> 8) as u8,
        (Part::V6 { label, .. }, _) => *label = amount >> 8 & 0xf_ffff,
        (Part::Gre { sequence, .. } | Part::Ah { sequence, .. }, 0) => *sequence = amount,
        (Part::Gre { sequence, .. } | Part::Ah { sequence, .. }, 1) => {
            *sequence = sequence.wrapping_add(amount % 300);
        }
        (Part::Gre { checksum, .. }, _) => *checksum = (amount >> 8) as u16,
        (Part::Ah { icv, .. }, 2) => icv.fill((amount >> 8) as u8),
        (Part::Ah { reserved, .. }, _) => *reserved = (amount >> 8) as u16,
        (Part::Options { value, .. }, 0..=2) => value.fill((amount >> 8) as u8),
        (Part::Options { value, .. }, _) => value.resize(6 + 8 * (amount as usize >> 8 & 3), 5),
        (Part::Mine { .. }, _) => {}
    }
}

/// Applies the changes that occur in every packet: IP-IDs and sequence numbers.
pub fn next(parts: &mut [Part]) {
    for part in parts {
        match part {
            Part::V4 { id, .. } if *id != 0 => *id = id.wrapping_add(1),
            Part::Gre { sequence, .. } | Part::Ah { sequence, .. } => *sequence = sequence.wrapping_add(1),
            _ => {}
        }
    }
}
