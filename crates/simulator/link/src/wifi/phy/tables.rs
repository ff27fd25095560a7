//! The rate tables of the standard: modulation, coding, subcarriers and the parameters of each combination.

/// Modulation and code rate of one spatial stream of OFDM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modulation {
    /// Coded bits per subcarrier: 1 BPSK, 2 QPSK, 4 16-QAM, 6 64-QAM, 8 256-QAM, 10 1024-QAM, 12 4096-QAM.
    pub bits_per_subcarrier: u32,
    /// Code rate numerator.
    pub code_num: u32,
    /// Code rate denominator.
    pub code_den: u32,
}

const fn modulation(bits_per_subcarrier: u32, code_num: u32, code_den: u32) -> Modulation {
    Modulation { bits_per_subcarrier, code_num, code_den }
}

/// 802.11-2020 table 17-4: rate in Mb/s and its modulation.
pub(super) const OFDM: [(u64, Modulation); 8] = [
    (6, modulation(1, 1, 2)),
    (9, modulation(1, 3, 4)),
    (12, modulation(2, 1, 2)),
    (18, modulation(2, 3, 4)),
    (24, modulation(4, 1, 2)),
    (36, modulation(4, 3, 4)),
    (48, modulation(6, 2, 3)),
    (54, modulation(6, 3, 4)),
];

/// MCS 0 to 13 for every stream count: EHT has all of them, HE the first twelve (802.11ax-2021 clause 27.5), VHT ten
/// (802.11-2020 tables 21-30 and following) and HT eight (tables 19-27 to 19-41).
pub(super) const MCS: [Modulation; 14] = [
    modulation(1, 1, 2),
    modulation(2, 1, 2),
    modulation(2, 3, 4),
    modulation(4, 1, 2),
    modulation(4, 3, 4),
    modulation(6, 2, 3),
    modulation(6, 3, 4),
    modulation(6, 5, 6),
    modulation(8, 3, 4),
    modulation(8, 5, 6),
    modulation(10, 3, 4),
    modulation(10, 5, 6),
    modulation(12, 3, 4),
    modulation(12, 5, 6),
];
/// Number of them in HT.
pub(super) const HT_MCS: u8 = 8;
/// Number of them in VHT.
pub(super) const VHT_MCS: u8 = 10;
/// Number of them in HE.
pub(super) const HE_MCS: u8 = 12;
/// Number of them in EHT.
pub(super) const EHT_MCS: u8 = 14;

/// Kb/s of DSSS and HR/DSSS (802.11-2020 clauses 15.2.3.3 and 16.2.3.4), with data bits and the microseconds they take.
pub(super) const DSSS: [(u64, u32, u64); 4] = [(1_000, 1, 1), (2_000, 2, 1), (5_500, 11, 2), (11_000, 11, 1)];

/// Data subcarriers of 802.11a and ERP-OFDM.
pub(super) const OFDM_SUBCARRIERS: u32 = 48;

/// A channel of HT or VHT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Channel {
    /// Width in MHz.
    pub width_mhz: u16,
    /// Data subcarriers (802.11-2020 tables 19-6 and 21-5).
    pub data_subcarriers: u32,
}

/// All channels.
pub(super) const CHANNELS: [Channel; 4] = [
    Channel { width_mhz: 20, data_subcarriers: 52 },
    Channel { width_mhz: 40, data_subcarriers: 108 },
    Channel { width_mhz: 80, data_subcarriers: 234 },
    Channel { width_mhz: 160, data_subcarriers: 468 },
];

/// HE-LTFs or EHT-LTFs by stream count (802.11ax-2021 clause 27.3.11.10).
pub(super) const HE_TRAINING_FIELDS: [u64; 8] = [1, 2, 4, 4, 6, 6, 8, 8];

/// HT-LTFs or VHT-LTFs by stream count (802.11-2020 tables 19-13 and 21-13).
pub(super) const LONG_TRAINING_FIELDS: [u64; 4] = [1, 2, 4, 4];

/// Whether VHT has MCS `mcs` on `streams` at `width_mhz`: tables 21-30 to 21-57 omit combinations whose coded bits do
/// not divide evenly among the encoders.
pub(super) const fn vht_has(width_mhz: u16, streams: u8, mcs: u8) -> bool {
    !matches!((width_mhz, streams, mcs), (20, 1 | 2 | 4, 9) | (80, 3, 6) | (160, 3, 9))
}

/// BCC encoders of VHT: one per 540 Mb/s at the long guard interval, `bits_per_symbol` in 4 us. Tables 21-30 to 21-57
/// agree, with one exception for these stream counts.
pub(super) const fn vht_encoders(width_mhz: u16, streams: u8, mcs: u8, bits_per_symbol: u32) -> u32 {
    match (width_mhz, streams, mcs) {
        (160, 4, 7) => 6,
        _ => bits_per_symbol.div_ceil(540 * 4),
    }
}
