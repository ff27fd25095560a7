//! Probability that a frame arrives intact over additive white Gaussian noise, from SNR, modulation and code rate.
//!
//! The chain is that of the NIST model: bit errors of the uncoded constellation, then the union bound of hard-decision
//! Viterbi decoding (G. Pei, T. Henderson, "Validation of OFDM error rate model in ns-3", Boeing, 2010), then
//! independent errors over the bits of the frame.
//!
//! **Which SNR.** Stations know the SNR of the channel: received power over the noise in the bandwidth they receive,
//! such as 20 or 40 MHz. The constellation sees the SNR of one subcarrier's symbol, Es/N0. All power is on the used
//! subcarriers, and the receiver's FFT removes the noise between and beside them. Es/N0 is therefore the SNR of the
//! channel times the FFT points per used subcarrier: 64/52 (+0.90 dB) for 802.11a, 64/56 (+0.58 dB) for HT and VHT at
//! 20 MHz, 128/114 (+0.50 dB) at 40 MHz, 256/242 (+0.24 dB) at 80 MHz and 512/484 (the same) at 160 MHz. HE and EHT
//! have four times the points: 256/242 (+0.24 dB) at 20 and 40 MHz, 1024/996 (+0.12 dB) from 80 MHz up. The guard
//! interval has no influence, because power is constant through it. Each spatial stream is assumed to have this SNR. A
//! DSSS chip sees the noise of 11 of the 22 MHz, +3.01 dB; `dsss` computes its errors.
//!
//! Control frames in a 40 MHz channel are non-HT duplicates (802.11-2020 clause 17.3.5.6): each half carries a copy
//! with half the power against half the noise, hence with the same SNR.
//!
//! All results are floats that become a [`Ratio`] of losses; they use `libm` so that every machine computes the same
//! values.

use tacit_packet::units::Ratio;

mod dsss;

use super::phy::{Format, Mode, Modulation};
use super::propagation::Decibels;

/// Bits of the legacy SIGNAL field, BPSK 1/2 at 6 Mb/s (802.11-2020 clause 17.3.4).
const L_SIG_BITS: f64 = 24.0;
/// Bits of HT-SIG and of VHT-SIG-A, the same modulation (802.11-2020 clauses 19.3.9.4.3 and 21.3.8.3.3).
const HT_SIG_BITS: f64 = 48.0;
/// Bits of VHT-SIG-B with its tail at 20, 40 and from 80 MHz on, the same modulation (table 21-14).
const VHT_SIG_B_BITS: [f64; 3] = [26.0, 27.0, 29.0];
/// Bits of HE-SIG-A and of U-SIG, the same modulation (802.11ax-2021 clause 27.3.11.7).
const HE_SIG_A_BITS: f64 = 52.0;
/// Bits of EHT-SIG for one user.
const EHT_SIG_BITS: f64 = 52.0;
/// Bits of the DSSS header, DBPSK at 1 Mb/s or DQPSK at 2 Mb/s (802.11-2020 clause 16.2.3).
const DSSS_HEADER_BITS: f64 = 48.0;
/// The code of rate 1/2 with the generators (133, 171); the other rates are punctured from it.
const HEADER: Modulation = Modulation { bits_per_subcarrier: 1, code_num: 1, code_den: 2 };

/// A punctured code: the number of information bits in its pattern, its free distance, and the number of wrong
/// information bits on all error paths of that distance and of each following one.
struct Code {
    num: u32,
    den: u32,
    free_distance: u32,
    /// Distance from one weight to the next.
    step: u32,
    bit_weights: [f64; 9],
}

/// The K = 7 code of 802.11 and its puncturings. Rate 1/2: P. Frenger, P. Orten, T. Ottosson, "Convolutional codes with
/// optimum distance spectrum", IEEE Communications Letters 3(11), 1999. The others: D. Haccoun, G. Begin, "High-rate
/// punctured convolutional codes for Viterbi and sequential decoding", IEEE Transactions on Communications 37(11),
/// 1989. A test recomputes the weights.
const CODES: [Code; 4] = [
    Code {
        num: 1,
        den: 2,
        free_distance: 10,
        step: 2,
        bit_weights: [
            36.0,
            211.0,
            1_404.0,
            11_633.0,
            77_433.0,
            502_690.0,
            3_322_763.0,
            21_292_910.0,
            134_365_911.0,
        ],
    },
    Code {
        num: 2,
        den: 3,
        free_distance: 6,
        step: 1,
        bit_weights: [3.0, 70.0, 285.0, 1_276.0, 6_160.0, 27_128.0, 117_019.0, 498_860.0, 2_103_891.0],
    },
    Code {
        num: 3,
        den: 4,
        free_distance: 5,
        step: 1,
        bit_weights: [
            42.0,
            201.0,
            1_492.0,
            10_469.0,
            62_935.0,
            379_644.0,
            2_253_373.0,
            13_073_811.0,
            75_152_755.0,
        ],
    },
    Code {
        num: 5,
        den: 6,
        free_distance: 4,
        step: 1,
        bit_weights: [
            92.0,
            528.0,
            8_694.0,
            79_453.0,
            792_114.0,
            7_375_573.0,
            67_884_974.0,
            610_875_423.0,
            5_427_275_376.0,
        ],
    },
];

/// Probability of a bit error in the constellation with Gray mapping, from nearest neighbours only.
/// `bits_per_subcarrier` is one that the tables use: 1, 2, 4, 6, 8, 10 or 12 coded bits.
fn uncoded_bit_error(bits_per_subcarrier: u32, symbol_snr: f64) -> f64 {
    // J. Proakis, "Digital Communications", the chapter on optimum receivers: Q(x) = erfc(x / sqrt 2) / 2.
    let (neighbours, distance) = match bits_per_subcarrier {
        1 => (1.0, 1.0),
        2 => (1.0, 2.0),
        4 => (3.0 / 4.0, 10.0),
        6 => (7.0 / 12.0, 42.0),
        8 => (15.0 / 32.0, 170.0),
        10 => (31.0 / 80.0, 682.0),
        _ => (21.0 / 64.0, 2_730.0),
    };
    neighbours * 0.5 * libm::erfc(libm::sqrt(symbol_snr / distance))
}

/// Probability of a bit error after decoding at `symbol_snr`, which is Es/N0 as a ratio; at most 1/2.
fn coded_bit_error(modulation: &Modulation, symbol_snr: f64) -> f64 {
    let uncoded = uncoded_bit_error(modulation.bits_per_subcarrier, symbol_snr);
    let code = CODES
        .iter()
        .find(|code| (code.num, code.den) == (modulation.code_num, modulation.code_den))
        .expect("802.11 has four code rates");
    // The Chernoff bound on choosing a path at distance d instead of the sent one is D^d / 2.
    let d = libm::sqrt(4.0 * uncoded * (1.0 - uncoded));
    let mut power = libm::pow(d, f64::from(code.free_distance));
    let ratio = libm::pow(d, f64::from(code.step));
    let mut sum = 0.0;
    for weight in code.bit_weights {
        sum += weight * power;
        power *= ratio;
    }
    (sum / f64::from(2 * code.num)).min(0.5)
}

/// Es/N0 of `mode`, as a ratio, if the SNR of the channel is `snr`.
fn symbol_snr(mode: &Mode, snr: Decibels) -> f64 {
    let (points, in_use) = match (mode.format, mode.width_mhz) {
        (Format::Dsss, _) => (22.0, 11.0),
        (Format::Ofdm | Format::ErpOfdm, _) => (64.0, 52.0),
        _ if mode.resource_unit.is_some() && mode.width_mhz <= 40 => (256.0, 242.0),
        _ if mode.resource_unit.is_some() => (1_024.0, 996.0),
        (_, 160) => (512.0, 484.0),
        (_, 80) => (256.0, 242.0),
        (_, 40) => (128.0, 114.0),
        (_, _) => (64.0, 56.0),
    };
    snr.as_ratio() * points / in_use
}

/// Probability of a bit error in the data of `mode` if the SNR of the channel is `snr`.
fn bit_error(mode: &Mode, snr: Decibels) -> f64 {
    let symbol_snr = symbol_snr(mode, snr);
    match mode.modulation() {
        Some(modulation) => coded_bit_error(&modulation, symbol_snr),
        None => dsss::bit_error(mode.rate().as_bps() / 1_000, symbol_snr),
    }
}

/// Probability that all `bits` arrive correctly if each is wrong with probability `bit_error`.
fn all_right(bit_error: f64, bits: f64) -> f64 {
    libm::exp(bits * libm::log1p(-bit_error))
}

/// Probability that an MPDU of `bytes` bytes sent in `mode` arrives intact if the SNR of the channel is `snr`, given
/// that the receiver decoded the preamble.
pub fn mpdu_success(mode: &Mode, snr: Decibels, bytes: u32) -> f64 {
    all_right(bit_error(mode, snr), f64::from(bytes) * 8.0)
}

/// Probability that a receiver decodes the headers before the data of a PPDU sent in `mode`: SIGNAL, then HT-SIG,
/// VHT-SIG or a later one if the format has it; the PLCP header for DSSS.
pub fn preamble_success(mode: &Mode, snr: Decibels) -> f64 {
    let bits = match mode.format {
        Format::Dsss => {
            let kbps = if mode.has_short_preamble() { 2_000 } else { 1_000 };
            return all_right(dsss::bit_error(kbps, symbol_snr(mode, snr)), DSSS_HEADER_BITS);
        }
        Format::Ofdm | Format::ErpOfdm => L_SIG_BITS,
        Format::HtMixed => L_SIG_BITS + HT_SIG_BITS,
        Format::Vht => {
            let [narrow, forty, wide] = VHT_SIG_B_BITS;
            let sig_b = match mode.width_mhz {
                20 => narrow,
                40 => forty,
                _ => wide,
            };
            L_SIG_BITS + HT_SIG_BITS + sig_b
        }
        // The model ignores the gain from the copies of L-SIG and from an extended SIG-A. HE-SIG-B has an MCS no higher
        // than that of any user's data, so it is assumed to be decoded with the data.
        Format::HeSu | Format::HeErSu | Format::HeMu | Format::HeTb => L_SIG_BITS + HE_SIG_A_BITS,
        Format::EhtMu => L_SIG_BITS + HE_SIG_A_BITS + EHT_SIG_BITS,
    };
    all_right(coded_bit_error(&HEADER, symbol_snr(mode, snr)), bits)
}

/// Loss ratios of one mode at one SNR; each length is computed at its first use.
#[derive(Clone, Debug)]
pub(crate) struct ErrorTable {
    bit_error: f64,
    preamble: Ratio,
    by_bytes: Vec<Option<Ratio>>,
}

impl ErrorTable {
    pub fn new(mode: &Mode, snr: Decibels) -> Self {
        Self {
            bit_error: bit_error(mode, snr),
            preamble: loss(preamble_success(mode, snr)),
            by_bytes: Vec::new(),
        }
    }

    /// Share of PPDUs whose preamble is not decoded.
    pub fn preamble(&self) -> Ratio {
        self.preamble
    }

    /// Share of MPDUs of `bytes` bytes that do not arrive intact.
    pub fn mpdu(&mut self, bytes: u32) -> Ratio {
        match self.by_bytes.get(bytes as usize) {
            Some(Some(known)) => *known,
            _ => self.learn(bytes),
        }
    }

    #[cold]
    fn learn(&mut self, bytes: u32) -> Ratio {
        let index = bytes as usize;
        if self.by_bytes.len() <= index {
            self.by_bytes.resize(index + 1, None);
        }
        let ratio = loss(all_right(self.bit_error, f64::from(bytes) * 8.0));
        self.by_bytes[index] = Some(ratio);
        ratio
    }
}

fn loss(success: f64) -> Ratio {
    Ratio::from_fraction(1.0 - success).expect("a chance lies between 0 and 1")
}

#[cfg(test)]
#[path = "error_rate_tests.rs"]
mod tests;
