//! TCP segments in IP packets of other senders.

use super::headers::{Fragment, Headers, TcpOption, Transport};
use super::options;
use crate::tcp::{Flags, SackRange, Segment};
use crate::units::SeqNumber;

/// Length of an IPv6 header without extension headers.
const IPV6_HEADER_LEN: u32 = 40;

/// The TCP segment in `bytes`, an IP packet, and its headers.
///
/// `None` if anything in it is not understood: a fragment, an extension header such as that of IPsec, an unknown TCP
/// option, one that is out of place, or a reserved bit, which AccECN uses.
pub fn segment(bytes: &[u8]) -> Option<(Headers, Segment)> {
    let headers = Headers::read(bytes)?;
    let len = headers.stated_len.filter(|len| *len as usize <= bytes.len())?;
    let first = *bytes.first()?;
    let plain_len = if first >> 4 == 4 { u32::from(first & 0x0f) * 4 } else { IPV6_HEADER_LEN };
    let Transport::Tcp(tcp) = &headers.transport else { return None };
    if headers.fragment != Fragment::Whole || headers.header_len != plain_len || tcp.reserved != 0 {
        return None;
    }
    let mut segment = Segment {
        seq: SeqNumber(tcp.seq),
        ack: SeqNumber(tcp.ack),
        payload_len: len.checked_sub(headers.header_len + tcp.header_len)?,
        window: tcp.window,
        flags: tcp.flags,
        ..Segment::default()
    };
    let opens = tcp.flags.contains(Flags::SYN);
    for option in tcp.options() {
        let option = option.ok()?;
        match (option.kind, option.value) {
            (TcpOption::TIMESTAMPS, _) => segment.timestamps = Some(option.timestamps()?),
            (TcpOption::SACK, value) => {
                let (blocks, []) = value.as_chunks::<8>() else { return None };
                for block in blocks {
                    let [start, end] = [&block[..4], &block[4..]].map(|half| {
                        SeqNumber(half.iter().fold(0, |word, byte| word << 8 | u32::from(*byte)))
                    });
                    segment.sack.push(SackRange { start, end }).then_some(())?;
                }
            }
            (options::MSS, [high, low]) if opens => segment.mss = Some(u16::from_be_bytes([*high, *low])),
            (options::WINDOW_SCALE, [scale]) if opens => segment.window_scale = Some(*scale),
            (options::SACK_PERMITTED, []) if opens => segment.sack_permitted = true,
            _ => return None,
        }
    }
    Some((headers, segment))
}
