//! Flows of arbitrary legal headers; the fuzz targets use them, too.
#![allow(dead_code, clippy::unwrap_used)]

use tacit_rohc::header::{Header, Ip, MAX_OPTIONS_LEN, Options};

/// A change to a header between two packets: its kind, and a number that determines the amount.
pub type Change = (u8, u32);
/// The changes before each packet.
pub type Script = Vec<Vec<Change>>;

fn first(v6: bool) -> Header {
    let ip = if v6 {
        Ip::V6 { source: [1; 16], destination: [2; 16], flow_label: 0 }
    } else {
        Ip::V4 { source: [10, 0, 0, 1], destination: [10, 0, 0, 2], id: 65_500, dont_fragment: true }
    };
    Header {
        ip,
        dscp: 0,
        ip_ecn: 0,
        ttl: 64,
        source_port: 1,
        destination_port: 2,
        seq: 0xffff_8000,
        ack: 0xffff_0000,
        reserved: 0,
        flags: 0x10,
        window: 65_000,
        checksum: 0,
        urgent: 0,
        options: Options::new(&[1, 1, 8, 10, 0xff, 0xff, 0xff, 0xf0, 0xff, 0xff, 0xff, 0xe0]).unwrap(),
        payload_len: 0,
    }
}

/// The packets of a script, each with a payload of sequentially numbered bytes.
pub fn packets(script: &Script, v6: bool) -> Vec<Vec<u8>> {
    let mut header = first(v6);
    let mut id_step = 1u16;
    script
        .iter()
        .enumerate()
        .map(|(at, changes)| {
            if let Ip::V4 { id, .. } = &mut header.ip {
                *id = id.wrapping_add(id_step);
            }
            header.seq = header.seq.wrapping_add(u32::from(header.payload_len));
            for &change in changes {
                apply(&mut header, &mut id_step, change);
            }
            header.checksum = (at as u16).wrapping_mul(40503);
            let mut packet = vec![0; header.len()];
            header.emit(&mut packet).unwrap();
            packet.extend((0..header.payload_len).map(|byte| byte as u8));
            packet
        })
        .collect()
}

fn apply(header: &mut Header, id_step: &mut u16, (kind, amount): Change) {
    let small = amount as u16;
    match kind {
        0..=2 => header.ack = header.ack.wrapping_add(1448 * (amount % 4)),
        3 => header.ack = amount,
        4 => header.seq = header.seq.wrapping_add(amount),
        5 => header.payload_len = small % 1400,
        6 => header.payload_len = 1000,
        7 => header.window = header.window.wrapping_add(small % 16),
        8 => header.window = small,
        9 => header.ttl = amount as u8,
        10 => header.dscp = amount as u8 & 0x3f,
        11 => header.ip_ecn = amount as u8 & 3,
        12 => header.flags = amount as u8,
        13 => header.flags = 0x10 | amount as u8 & 0x08,
        14 => header.reserved = amount as u8 & 0xf,
        15 => header.urgent = small,
        16..=18 => shift_timestamps(header, amount),
        19..=21 => header.options = options(amount, header.ack),
        _ => change_ip(&mut header.ip, id_step, kind, amount),
    }
}

fn change_ip(ip: &mut Ip, id_step: &mut u16, kind: u8, amount: u32) {
    match (ip, kind) {
        (Ip::V4 { id, .. }, 22) => *id = amount as u16,
        (Ip::V4 { dont_fragment, .. }, 23) => *dont_fragment = amount & 1 != 0,
        (Ip::V4 { id, .. }, _) => {
            *id_step = [0, 1, 256, 1, 0x5a31, 3][amount as usize % 6];
            if *id_step == 0 {
                *id = 0;
            }
        }
        (Ip::V6 { flow_label, .. }, 22) => *flow_label = amount & 0xf_ffff,
        _ => {}
    }
}

/// Adds to both timestamps, if there are any.
fn shift_timestamps(header: &mut Header, amount: u32) {
    let mut area = header.options.as_bytes().to_vec();
    if let Some(at) = area.windows(2).position(|pair| pair == [8, 10])
        && at + 10 <= area.len()
    {
        for (place, step) in [(at + 2, amount), (at + 6, amount / 3)] {
            let old = u32::from_be_bytes(area[place..place + 4].try_into().unwrap());
            area[place..place + 4].copy_from_slice(&old.wrapping_add(step).to_be_bytes());
        }
    }
    header.options = Options::new(&area).unwrap();
}

/// One of many option areas; `amount` chooses kinds and contents.
pub fn options(amount: u32, ack: u32) -> Options {
    let mut area = Vec::new();
    let mut left = amount;
    let number = amount.wrapping_mul(0x9e37_79b9);
    while left != 0 && area.len() < 30 {
        let mut option = Vec::new();
        match left % 11 {
            0 => option.push(1),
            1 => option.extend([2, 4, 5, amount as u8]),
            2 => option.extend([3, 3, amount as u8 & 15]),
            3 => option.extend([4, 2]),
            4 | 5 => {
                option.extend([1, 1, 8, 10]);
                option.extend(number.to_be_bytes());
                option.extend((number / 5).to_be_bytes());
            }
            6 | 7 => {
                let blocks = 1 + (left / 11 % 3) as u8;
                option.extend([5, 2 + 8 * blocks]);
                for edge in 0..u32::from(blocks) * 2 {
                    option.extend(ack.wrapping_add(edge.wrapping_mul(number >> (number % 30))).to_be_bytes());
                }
            }
            8 => option.extend([30, 4, number as u8, 7]),
            9 => {
                option.extend([253, 3 + (left % 3) as u8, 1, 2, 3].into_iter().take(3 + (left % 3) as usize));
            }
            _ => option.extend([8, 2]),
        }
        left /= 11;
        if area.len() + option.len() <= MAX_OPTIONS_LEN {
            area.extend(option);
        }
    }
    let padding = if amount & 1 != 0 { 1 } else { 0 };
    while area.len() % 4 != 0 {
        area.push(padding);
    }
    Options::new(&area).unwrap()
}
