//! The radiotap header (radiotap.org): how a frame was sent, little-endian, each field aligned to its
//! size from the start of the header.

use tacit_link::wifi::AirFrame;
use tacit_link::wifi::air::{AmpduPosition, Frame, Outcome};

const TSFT: u32 = 1 << 0;
const FLAGS: u32 = 1 << 1;
const RATE: u32 = 1 << 2;
const CHANNEL: u32 = 1 << 3;
const MCS: u32 = 1 << 19;
const AMPDU_STATUS: u32 = 1 << 20;

const FLAG_FCS_AT_END: u8 = 0x10;
const FLAG_BAD_FCS: u8 = 0x40;

/// Channel 36.
const FREQUENCY_MHZ: u16 = 5180;
const CHANNEL_OFDM: u16 = 0x0040;
const CHANNEL_5_GHZ: u16 = 0x0100;

/// Bandwidth, index, guard interval, format (HT-mixed), FEC (BCC), STBC (none), extension streams (none).
const MCS_ALL_KNOWN: u8 = 0x7f;
const MCS_FLAG_40_MHZ: u8 = 0x01;
const MCS_FLAG_SHORT_GUARD_INTERVAL: u8 = 0x04;

const AMPDU_LAST_KNOWN: u16 = 0x0004;
const AMPDU_IS_LAST: u16 = 0x0008;

pub(super) fn header<P>(out: &mut Vec<u8>, air: &AirFrame<P>) {
    let ampdu = match &air.frame {
        Frame::Data { ampdu, .. } => *ampdu,
        _ => None,
    };
    let start = out.len();
    let mut present = TSFT | FLAGS | CHANNEL;
    present |= if air.mode.mcs.is_some() { MCS } else { RATE };
    if ampdu.is_some() {
        present |= AMPDU_STATUS;
    }
    // Version, pad, length (filled in below), fields present.
    out.extend([0; 4]);
    out.extend(present.to_le_bytes());
    fields(out, start, air, ampdu);
    let len = (out.len() - start) as u16;
    out[start + 2..start + 4].copy_from_slice(&len.to_le_bytes());
}

fn fields<P>(out: &mut Vec<u8>, start: usize, air: &AirFrame<P>, ampdu: Option<AmpduPosition>) {
    out.extend((air.at.as_nanos() / 1_000).to_le_bytes());
    out.push(match air.outcome {
        Outcome::Received => FLAG_FCS_AT_END,
        Outcome::Collided | Outcome::Errored => FLAG_FCS_AT_END | FLAG_BAD_FCS,
    });
    if air.mode.mcs.is_none() {
        // In units of 500 kb/s; legacy rates end at 54 Mb/s.
        out.push((air.mode.rate().as_bps() / 500_000) as u8);
    }
    align(out, start, 2);
    out.extend(FREQUENCY_MHZ.to_le_bytes());
    out.extend((CHANNEL_OFDM | CHANNEL_5_GHZ).to_le_bytes());
    if let Some(index) = air.mode.mcs {
        let bandwidth = if air.mode.width_mhz == 40 { MCS_FLAG_40_MHZ } else { 0 };
        let guard = if air.mode.short_guard_interval { MCS_FLAG_SHORT_GUARD_INTERVAL } else { 0 };
        out.push(MCS_ALL_KNOWN);
        out.push(bandwidth | guard);
        out.push(index);
    }
    if let Some(position) = ampdu {
        align(out, start, 4);
        out.extend(position.reference.to_le_bytes());
        let last = if position.last { AMPDU_IS_LAST } else { 0 };
        out.extend((AMPDU_LAST_KNOWN | last).to_le_bytes());
        // Delimiter CRC, not known; reserved.
        out.extend([0; 2]);
    }
}

fn align(out: &mut Vec<u8>, start: usize, to: usize) {
    out.resize(start + (out.len() - start).next_multiple_of(to), 0);
}
