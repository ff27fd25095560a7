//! The radiotap header (radiotap.org): how a frame was sent, little-endian, each field aligned to its
//! size from the start of the header.

use tacit_link::wifi::AirFrame;
use tacit_link::wifi::air::{AmpduPosition, Frame, Outcome, StationId};
use tacit_link::wifi::phy::{Band, Coding, Format, GuardInterval, Mode, TrainingField};

const TSFT: u32 = 1 << 0;
const FLAGS: u32 = 1 << 1;
const RATE: u32 = 1 << 2;
const CHANNEL: u32 = 1 << 3;
const DBM_ANTENNA_SIGNAL: u32 = 1 << 5;
const MCS: u32 = 1 << 19;
const AMPDU_STATUS: u32 = 1 << 20;
const VHT: u32 = 1 << 21;
const HE: u32 = 1 << 23;
/// Behind the other fields come some that say their own type and length.
const TLVS: u32 = 1 << 28;
const TLV_U_SIG: u16 = 33;
const TLV_EHT: u16 = 34;

const FLAG_SHORT_PREAMBLE: u8 = 0x02;
const FLAG_FCS_AT_END: u8 = 0x10;
const FLAG_BAD_FCS: u8 = 0x40;

const CHANNEL_CCK: u16 = 0x0020;
const CHANNEL_OFDM: u16 = 0x0040;
const CHANNEL_2_4_GHZ: u16 = 0x0080;
/// Of 6 GHz too, as the Linux kernel has it.
const CHANNEL_5_GHZ: u16 = 0x0100;

/// Bandwidth, index, guard interval, format (HT-mixed), FEC (BCC), STBC (none), extension streams (none).
const MCS_ALL_KNOWN: u8 = 0x7f;
const MCS_FLAG_40_MHZ: u8 = 0x01;
const MCS_FLAG_SHORT_GUARD_INTERVAL: u8 = 0x04;

/// STBC (none), guard interval, beamforming (none), bandwidth.
const VHT_KNOWN: u16 = 0x0001 | 0x0004 | 0x0020 | 0x0040;
const VHT_FLAG_SHORT_GUARD_INTERVAL: u8 = 0x04;
/// Radiotap's numbers of 20, 40, 80 and 160 MHz without side bands.
const VHT_BANDWIDTHS: [(u16, u8); 4] = [(20, 0), (40, 1), (80, 4), (160, 11)];

/// Words of the HE field: of the first
const HE_FORMAT_EXT_SU: u16 = 1;
const HE_MCS_KNOWN: u16 = 0x0020;
const HE_CODING_KNOWN: u16 = 0x0080;
const HE_BANDWIDTH_KNOWN: u16 = 0x4000;
/// of the second
const HE_GUARD_INTERVAL_KNOWN: u16 = 0x0002;
/// of the third
const HE_MCS_SHIFT: u16 = 8;
const HE_CODING_LDPC: u16 = 0x2000;
/// and of the fifth.
const HE_BANDWIDTHS: [(u16, u16); 4] = [(20, 0), (40, 1), (80, 2), (160, 3)];
const HE_GUARD_INTERVAL_SHIFT: u16 = 4;
const HE_TRAINING_SHIFT: u16 = 6;

/// Words of the U-SIG field: its common part,
const U_SIG_VERSION_KNOWN: u32 = 0x0000_0001;
const U_SIG_BANDWIDTH_KNOWN: u32 = 0x0000_0002;
const U_SIG_UPLINK_KNOWN: u32 = 0x0000_0004;
const U_SIG_BANDWIDTH_SHIFT: u32 = 15;
/// 320 MHz is that of channels 31, 95 and 159 (320 MHz-1).
const U_SIG_BANDWIDTHS: [(u16, u32); 5] = [(20, 0), (40, 1), (80, 2), (160, 3), (320, 4)];
const U_SIG_UPLINK: u32 = 0x0004_0000;
/// and the part that depends on the version, of which a third word says what is known: PPDU Type And Compression Mode is that of
/// a single user.
const U_SIG_TYPE_MASK: u32 = 0x0000_00c0;
const U_SIG_TYPE_SINGLE_USER: u32 = 0x0000_0040;

/// Words of the EHT field: of what is known,
const EHT_GUARD_INTERVAL_KNOWN: u32 = 0x0000_0004;
/// of the first of nine with data,
const EHT_DATA_WORDS: usize = 9;
const EHT_GUARD_INTERVAL_SHIFT: u32 = 7;
const EHT_TRAINING_SHIFT: u32 = 9;
/// and of the only user. Streams are counted from 0.
const EHT_MCS_KNOWN: u32 = 0x0000_0002;
const EHT_CODING_KNOWN: u32 = 0x0000_0004;
const EHT_STREAMS_KNOWN: u32 = 0x0000_0010;
const EHT_DATA_FOR_USER: u32 = 0x0000_0080;
const EHT_CODING_LDPC: u32 = 0x0008_0000;
const EHT_MCS_SHIFT: u32 = 20;
const EHT_STREAMS_SHIFT: u32 = 24;

const AMPDU_LAST_KNOWN: u16 = 0x0004;
const AMPDU_IS_LAST: u16 = 0x0008;
/// End of frame, the bit of a delimiter whose MPDU is the only one.
const AMPDU_EOF: u16 = 0x0040;
const AMPDU_EOF_KNOWN: u16 = 0x0080;

/// Appends the header of `air`, in `band`, heard at `signal_dbm` if that is known.
pub(super) fn header<P>(out: &mut Vec<u8>, air: &AirFrame<P>, band: Band, signal_dbm: Option<i8>) {
    let ampdu = match &air.frame {
        Frame::Data { ampdu, .. } => *ampdu,
        _ => None,
    };
    let start = out.len();
    let mut present = TSFT | FLAGS | CHANNEL;
    present |= match air.mode.format {
        Format::Dsss | Format::Ofdm | Format::ErpOfdm => RATE,
        Format::HtMixed => MCS,
        Format::Vht => VHT,
        Format::HeSu | Format::HeErSu => HE,
        Format::EhtMu => TLVS,
    };
    if ampdu.is_some() {
        present |= AMPDU_STATUS;
    }
    if signal_dbm.is_some() {
        present |= DBM_ANTENNA_SIGNAL;
    }
    // Version, pad, length (filled in below), fields present.
    out.extend([0; 4]);
    out.extend(present.to_le_bytes());
    fields(out, start, air, ampdu, (band, signal_dbm));
    let len = (out.len() - start) as u16;
    out[start + 2..start + 4].copy_from_slice(&len.to_le_bytes());
}

fn fields<P>(
    out: &mut Vec<u8>,
    start: usize,
    air: &AirFrame<P>,
    ampdu: Option<AmpduPosition>,
    (band, signal_dbm): (Band, Option<i8>),
) {
    out.extend((air.at.as_nanos() / 1_000).to_le_bytes());
    let preamble = if air.mode.has_short_preamble() { FLAG_SHORT_PREAMBLE } else { 0 };
    out.push(match air.outcome {
        Outcome::Received => preamble | FLAG_FCS_AT_END,
        Outcome::Collided | Outcome::Errored => preamble | FLAG_FCS_AT_END | FLAG_BAD_FCS,
    });
    if air.mode.mcs.is_none() {
        // In units of 500 kb/s; legacy rates end at 54 Mb/s.
        out.push((air.mode.rate().as_bps() / 500_000) as u8);
    }
    align(out, start, 2);
    let of_band = match band {
        Band::Ghz2_4 => CHANNEL_2_4_GHZ,
        Band::Ghz5 | Band::Ghz6 => CHANNEL_5_GHZ,
    };
    let kind = if air.mode.format == Format::Dsss { CHANNEL_CCK } else { CHANNEL_OFDM };
    out.extend(band.frequency_mhz().to_le_bytes());
    out.extend((kind | of_band).to_le_bytes());
    out.extend(signal_dbm.map(i8::cast_unsigned));
    if let Some(index) = air.mode.mcs.filter(|_| air.mode.format == Format::HtMixed) {
        let bandwidth = if air.mode.width_mhz == 40 { MCS_FLAG_40_MHZ } else { 0 };
        let guard =
            if air.mode.guard_interval == GuardInterval::Ns400 { MCS_FLAG_SHORT_GUARD_INTERVAL } else { 0 };
        out.push(MCS_ALL_KNOWN);
        out.push(bandwidth | guard);
        out.push(index);
    }
    if let Some(position) = ampdu {
        align(out, start, 4);
        out.extend(position.reference.to_le_bytes());
        let last = if position.last { AMPDU_IS_LAST } else { 0 };
        let end_of_frame = match (air.mode.format, position.single) {
            (Format::HtMixed, _) => 0,
            (_, true) => AMPDU_EOF_KNOWN | AMPDU_EOF,
            (_, false) => AMPDU_EOF_KNOWN,
        };
        out.extend((AMPDU_LAST_KNOWN | last | end_of_frame).to_le_bytes());
        // Delimiter CRC, not known; reserved.
        out.extend([0; 2]);
    }
    match air.mode.format {
        Format::Vht => {
            align(out, start, 2);
            vht(out, &air.mode);
        }
        Format::HeSu | Format::HeErSu => {
            align(out, start, 2);
            high_efficiency(out, &air.mode);
        }
        Format::EhtMu => {
            align(out, start, 4);
            tlv(out, TLV_U_SIG, &u_sig(&air.mode, air.transmitter));
            tlv(out, TLV_EHT, &extremely_high_throughput(&air.mode));
        }
        _ => {}
    }
}

/// The VHT field: what is known, flags, bandwidth, MCS and streams of four users of which one is there,
/// coding (BCC), group and partial AID (not known).
fn vht(out: &mut Vec<u8>, mode: &Mode) {
    let bandwidth = VHT_BANDWIDTHS.into_iter().find(|(width, _)| *width == mode.width_mhz);
    out.extend(VHT_KNOWN.to_le_bytes());
    out.push(if mode.guard_interval == GuardInterval::Ns400 { VHT_FLAG_SHORT_GUARD_INTERVAL } else { 0 });
    out.push(bandwidth.map_or(0, |(_, number)| number));
    out.extend([mode.mcs.unwrap_or_default() << 4 | mode.streams, 0, 0, 0]);
    // Coding, group, partial AID.
    out.extend([0; 4]);
}

/// The HE field, six words: what is known, MCS and coding, width, guard interval and training, streams.
fn high_efficiency(out: &mut Vec<u8>, mode: &Mode) {
    let format = if mode.format == Format::HeErSu { HE_FORMAT_EXT_SU } else { 0 };
    let mcs = u16::from(mode.mcs.unwrap_or_default()) << HE_MCS_SHIFT;
    let width = HE_BANDWIDTHS.into_iter().find(|(width, _)| *width == mode.width_mhz);
    let coding = if is_ldpc(mode) { HE_CODING_LDPC } else { 0 };
    let intervals =
        he_guard_interval(mode) << HE_GUARD_INTERVAL_SHIFT | he_training(mode) << HE_TRAINING_SHIFT;
    let words = [
        format | HE_MCS_KNOWN | HE_CODING_KNOWN | HE_BANDWIDTH_KNOWN,
        HE_GUARD_INTERVAL_KNOWN,
        mcs | coding,
        0,
        width.map_or(0, |(_, number)| number) | intervals,
        u16::from(mode.streams),
    ];
    out.extend(words.into_iter().flat_map(u16::to_le_bytes));
}

/// The U-SIG field: version (EHT), width and direction; what kind of PPDU.
fn u_sig(mode: &Mode, transmitter: StationId) -> [u32; 3] {
    let width = U_SIG_BANDWIDTHS.into_iter().find(|(width, _)| *width == mode.width_mhz);
    let width = width.map_or(0, |(_, number)| number << U_SIG_BANDWIDTH_SHIFT);
    let direction = if transmitter == StationId::AP { 0 } else { U_SIG_UPLINK };
    let known = U_SIG_VERSION_KNOWN | U_SIG_BANDWIDTH_KNOWN | U_SIG_UPLINK_KNOWN;
    [known | width | direction, U_SIG_TYPE_SINGLE_USER, U_SIG_TYPE_MASK]
}

/// The EHT field: what is known, guard interval and training, and MCS, coding and streams of the user.
fn extremely_high_throughput(mode: &Mode) -> [u32; 2 + EHT_DATA_WORDS] {
    let mut words = [0; 2 + EHT_DATA_WORDS];
    words[0] = EHT_GUARD_INTERVAL_KNOWN;
    words[1] = u32::from(he_guard_interval(mode)) << EHT_GUARD_INTERVAL_SHIFT
        | u32::from(he_training(mode)) << EHT_TRAINING_SHIFT;
    let coding = if is_ldpc(mode) { EHT_CODING_LDPC } else { 0 };
    words[1 + EHT_DATA_WORDS] = EHT_MCS_KNOWN
        | EHT_CODING_KNOWN
        | EHT_STREAMS_KNOWN
        | EHT_DATA_FOR_USER
        | coding
        | u32::from(mode.mcs.unwrap_or_default()) << EHT_MCS_SHIFT
        | u32::from(mode.streams - 1) << EHT_STREAMS_SHIFT;
    words
}

/// Radiotap's number of a guard interval of HE or EHT.
const fn he_guard_interval(mode: &Mode) -> u16 {
    match mode.guard_interval {
        GuardInterval::Ns400 | GuardInterval::Ns800 => 0,
        GuardInterval::Ns1600 => 1,
        GuardInterval::Ns3200 => 2,
    }
}

/// Radiotap's number of an HE-LTF or EHT-LTF; 0 is not known.
fn he_training(mode: &Mode) -> u16 {
    match mode.he_options().map(|options| options.training) {
        None => 0,
        Some(TrainingField::Quarter) => 1,
        Some(TrainingField::Half) => 2,
        Some(TrainingField::Whole) => 3,
    }
}

fn is_ldpc(mode: &Mode) -> bool {
    mode.he_options().is_some_and(|options| options.coding == Coding::Ldpc)
}

/// A field of its own type and length.
fn tlv(out: &mut Vec<u8>, kind: u16, words: &[u32]) {
    out.extend(kind.to_le_bytes());
    out.extend(((4 * words.len()) as u16).to_le_bytes());
    out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
}

fn align(out: &mut Vec<u8>, start: usize, to: usize) {
    out.resize(start + (out.len() - start).next_multiple_of(to), 0);
}
