//! The radiotap header (radiotap.org): how a frame was sent.

use tacit_link::wifi::AirFrame;
use tacit_link::wifi::air::{Outcome, StationId};
use tacit_link::wifi::phy::{Band, Coding, Format, GuardInterval, Mode, TrainingField};

use super::fields::{
    FIELDS, GUARD_INTERVALS, TLV_ALIGN, ampdu as ampdu_field, bit, channel, eht, flags, he, he_mu, mcs,
    number_of, tlv, u_sig, vht,
};

/// Appends the header for `air`, in `band`, received at `signal_dbm` if known.
pub(super) fn header<P>(out: &mut Vec<u8>, air: &AirFrame<P>, band: Band, signal_dbm: Option<i8>) {
    let start = out.len();
    let of_format = match air.mode.format {
        Format::Dsss | Format::Ofdm | Format::ErpOfdm => bit::RATE,
        Format::HtMixed => bit::MCS,
        Format::Vht => bit::VHT,
        Format::HeSu | Format::HeErSu | Format::HeMu | Format::HeTb => bit::HE,
        Format::EhtMu => bit::TLVS,
    };
    let mut present = 1 << bit::TSFT | 1 << bit::FLAGS | 1 << bit::CHANNEL | 1 << of_format;
    if air.mode.format == Format::HeMu {
        present |= 1 << bit::HE_MU;
    }
    if air.ampdu.is_some() {
        present |= 1 << bit::AMPDU_STATUS;
    }
    if signal_dbm.is_some() {
        present |= 1 << bit::DBM_ANTENNA_SIGNAL;
    }
    // Version, pad, length (filled in below), fields present.
    out.extend([0; 4]);
    out.extend(u32::to_le_bytes(present));
    fields(out, start, air, (band, signal_dbm));
    let len = (out.len() - start) as u16;
    out[start + 2..start + 4].copy_from_slice(&len.to_le_bytes());
}

fn fields<P>(out: &mut Vec<u8>, start: usize, air: &AirFrame<P>, (band, signal_dbm): (Band, Option<i8>)) {
    out.extend((air.at.as_nanos() / 1_000).to_le_bytes());
    let preamble = if air.mode.has_short_preamble() { flags::SHORT_PREAMBLE } else { 0 };
    out.push(match air.outcome {
        Outcome::Received => preamble | flags::FCS_AT_END,
        Outcome::Collided | Outcome::Errored => preamble | flags::FCS_AT_END | flags::BAD_FCS,
    });
    if air.mode.mcs.is_none() {
        // Legacy rates end at 54 Mb/s.
        out.push((air.mode.rate().as_bps() / 500_000) as u8);
    }
    align(out, start, bit::CHANNEL);
    let of_band = match band {
        Band::Ghz2_4 => channel::GHZ_2_4,
        Band::Ghz5 | Band::Ghz6 => channel::GHZ_5,
    };
    let kind = if air.mode.format == Format::Dsss { channel::CCK } else { channel::OFDM };
    out.extend(band.frequency_mhz().to_le_bytes());
    out.extend((kind | of_band).to_le_bytes());
    out.extend(signal_dbm.map(i8::cast_unsigned));
    if let Some(index) = air.mode.mcs.filter(|_| air.mode.format == Format::HtMixed) {
        let bandwidth = if air.mode.width_mhz == 40 { mcs::MHZ_40 } else { 0 };
        let guard =
            if air.mode.guard_interval == GuardInterval::Ns400 { mcs::SHORT_GUARD_INTERVAL } else { 0 };
        out.push(mcs::BANDWIDTH_KNOWN | mcs::INDEX_KNOWN | mcs::GUARD_INTERVAL_KNOWN | mcs::OTHERS_KNOWN);
        out.push(bandwidth | guard);
        out.push(index);
    }
    if let Some(position) = air.ampdu {
        align(out, start, bit::AMPDU_STATUS);
        out.extend(position.reference.to_le_bytes());
        let last = if position.last { ampdu_field::IS_LAST } else { 0 };
        let end_of_frame = match (air.mode.format, position.single) {
            (Format::HtMixed, _) => 0,
            (_, true) => ampdu_field::EOF_KNOWN | ampdu_field::EOF,
            (_, false) => ampdu_field::EOF_KNOWN,
        };
        out.extend((ampdu_field::LAST_KNOWN | last | end_of_frame).to_le_bytes());
        // Delimiter CRC, unknown; reserved.
        out.extend([0; 2]);
    }
    match air.mode.format {
        Format::Vht => {
            align(out, start, bit::VHT);
            very_high_throughput(out, &air.mode);
        }
        Format::HeSu | Format::HeErSu | Format::HeMu | Format::HeTb => {
            align(out, start, bit::HE);
            high_efficiency(out, &air.mode, air.unit_index);
            if air.mode.format == Format::HeMu {
                align(out, start, bit::HE_MU);
                allocation(out, &air.mode);
            }
        }
        Format::EhtMu => {
            own_length(out, start, tlv::U_SIG, &universal_signal(&air.mode, air.transmitter));
            own_length(out, start, tlv::EHT, &extremely_high_throughput(&air.mode));
        }
        _ => {}
    }
}

/// The VHT field: known bits, flags, bandwidth, MCS and streams of four users (only one is used), coding (BCC), group
/// and partial AID (unknown).
fn very_high_throughput(out: &mut Vec<u8>, mode: &Mode) {
    let known = vht::STBC_KNOWN | vht::GUARD_INTERVAL_KNOWN | vht::BEAMFORMED_KNOWN | vht::BANDWIDTH_KNOWN;
    out.extend(known.to_le_bytes());
    out.push(if mode.guard_interval == GuardInterval::Ns400 { vht::SHORT_GUARD_INTERVAL } else { 0 });
    out.push(number_of(&vht::BANDWIDTHS, &mode.width_mhz).unwrap_or_default());
    out.extend([mode.mcs.unwrap_or_default() << vht::MCS_SHIFT | mode.streams, 0, 0, 0]);
    // Coding, group, partial AID.
    out.extend([0; 4]);
}

/// The HE field, six words: known bits, MCS and coding, width, guard interval and LTF, streams.
fn high_efficiency(out: &mut Vec<u8>, mode: &Mode, unit_index: Option<u16>) {
    let format = match mode.format {
        Format::HeErSu => he::FORMAT_EXT_SU,
        Format::HeMu => he::FORMAT_MU,
        Format::HeTb => he::FORMAT_TB,
        _ => he::FORMAT_SU,
    };
    let (unit_known, unit) = match unit_index {
        Some(index) => (he::UNIT_KNOWN, index << he::UNIT_SHIFT),
        None => (0, 0),
    };
    let mcs = u16::from(mode.mcs.unwrap_or_default()) << he::MCS_SHIFT;
    let of_channel = || number_of(&he::BANDWIDTHS, &mode.width_mhz);
    let of_unit = mode.resource_unit.filter(|_| unit_index.is_some());
    let width = of_unit.and_then(|unit| number_of(&he::UNITS, &unit)).or_else(of_channel).unwrap_or_default();
    let coding = if is_ldpc(mode) { he::CODING_LDPC } else { 0 };
    let intervals = guard_interval(mode) << he::GUARD_INTERVAL_SHIFT | training(mode) << he::TRAINING_SHIFT;
    let words = [
        format | he::MCS_KNOWN | he::CODING_KNOWN | he::BANDWIDTH_KNOWN,
        he::GUARD_INTERVAL_KNOWN | unit_known | unit,
        mcs | coding,
        0,
        width | intervals,
        u16::from(mode.streams),
    ];
    out.extend(words.into_iter().flat_map(u16::to_le_bytes));
}

/// The HE-MU field: how each 20 MHz is divided.
fn allocation(out: &mut Vec<u8>, mode: &Mode) {
    let width = number_of(&he::BANDWIDTHS, &mode.width_mhz).unwrap_or_default();
    let known = he_mu::FIRST_KNOWN | if mode.width_mhz > 20 { he_mu::SECOND_KNOWN } else { 0 };
    out.extend(known.to_le_bytes());
    out.extend((he_mu::BANDWIDTH_KNOWN | width).to_le_bytes());
    let units = mode.resource_unit.and_then(|unit| number_of(&he_mu::ALLOCATIONS, &unit));
    out.extend([units.unwrap_or_default(); 2 * he_mu::OF_CHANNEL]);
}

/// The U-SIG field: version (EHT), width and direction; the kind of PPDU.
fn universal_signal(mode: &Mode, transmitter: StationId) -> [u32; 3] {
    let width = number_of(&u_sig::BANDWIDTHS, &mode.width_mhz).unwrap_or_default();
    let direction = if transmitter == StationId::AP { 0 } else { u_sig::UPLINK };
    let known = u_sig::VERSION_KNOWN | u_sig::BANDWIDTH_KNOWN | u_sig::UPLINK_KNOWN;
    [known | width << u_sig::BANDWIDTH_SHIFT | direction, u_sig::TYPE_SINGLE_USER, u_sig::TYPE_MASK]
}

/// The EHT field: known bits, guard interval and LTF, and MCS, coding and streams of the user.
fn extremely_high_throughput(mode: &Mode) -> [u32; 2 + eht::DATA_WORDS] {
    let mut words = [0; 2 + eht::DATA_WORDS];
    words[0] = eht::GUARD_INTERVAL_KNOWN;
    words[1] = u32::from(guard_interval(mode)) << eht::GUARD_INTERVAL_SHIFT
        | u32::from(training(mode)) << eht::TRAINING_SHIFT;
    let coding = if is_ldpc(mode) { eht::CODING_LDPC } else { 0 };
    words[1 + eht::DATA_WORDS] = eht::MCS_KNOWN
        | eht::CODING_KNOWN
        | eht::STREAMS_KNOWN
        | eht::DATA_FOR_USER
        | coding
        | u32::from(mode.mcs.unwrap_or_default()) << eht::MCS_SHIFT
        | u32::from(mode.streams - 1) << eht::STREAMS_SHIFT;
    words
}

/// Radiotap's code for a guard interval of HE or EHT.
fn guard_interval(mode: &Mode) -> u16 {
    (0..)
        .zip(GUARD_INTERVALS)
        .find(|(_, known)| *known == mode.guard_interval)
        .map_or(0, |(number, _)| number)
}

/// Radiotap's code for an HE-LTF or EHT-LTF; 0 is unknown.
fn training(mode: &Mode) -> u16 {
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

/// A field with its own type and length.
fn own_length(out: &mut Vec<u8>, start: usize, kind: u16, words: &[u32]) {
    align_to(out, start, TLV_ALIGN);
    out.extend(kind.to_le_bytes());
    out.extend(((4 * words.len()) as u16).to_le_bytes());
    out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
}

/// Pads to the start of the field of `bit`.
fn align(out: &mut Vec<u8>, start: usize, bit: u32) {
    let (_, to) = FIELDS[bit as usize];
    align_to(out, start, to);
}

fn align_to(out: &mut Vec<u8>, start: usize, to: usize) {
    out.resize(start + (out.len() - start).next_multiple_of(to), 0);
}
