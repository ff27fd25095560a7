use tacit_packet::units::BitRate;

use super::super::phy::{GuardInterval, Standard};
use super::*;

fn mode(standard: Standard, mbps: u64) -> Mode {
    Mode::for_rate(standard, BitRate::from_mbps(mbps)).unwrap()
}

/// SNR of the channel at which 10 % of PSDUs of `bytes` bytes are lost.
fn snr_of_10_percent(mode: &Mode, bytes: u32) -> f64 {
    let lost = |snr| 1.0 - mpdu_success(mode, Decibels::from_millis(snr), bytes);
    let first = (-10_000..60_000).find(|snr| lost(*snr) <= 0.1);
    Decibels::from_millis(first.expect("some SNR is enough")).as_db()
}

/// 802.11-2020 table 17-18 gives the input level at which at most 10 % of 1000-byte PSDUs are lost with a noise figure
/// of 10 dB and an implementation margin of 5 dB (clause 17.3.10.2). Thermal noise in 20 MHz is -101 dBm, so a level L
/// corresponds to an SNR of L + 101 - 15.
#[test]
fn sensitivity_of_802_11a_is_met_within_about_a_decibel() {
    let levels_dbm = [
        (6, -82.0),
        (9, -81.0),
        (12, -79.0),
        (18, -77.0),
        (24, -74.0),
        (36, -70.0),
        (48, -66.0),
        (54, -65.0),
    ];
    for (mbps, level_dbm) in levels_dbm {
        let needed = snr_of_10_percent(&mode(Standard::A, mbps), 1000);
        let stated = level_dbm + 101.0 - 15.0;
        assert!((needed - stated).abs() <= 1.1, "{mbps} Mb/s: {needed} dB, the standard implies {stated}");
    }
}

/// 802.11-2020 table 19-23, likewise for 4096 bytes; 40 MHz has 3 dB more noise and a level 3 dB higher.
#[test]
fn sensitivity_of_802_11n_is_met_within_less_than_two_decibels() {
    let levels_dbm = [-79.0, -76.0, -74.0, -71.0, -67.0, -63.0, -62.0, -61.0];
    for (mcs, level_dbm) in (0..).zip(levels_dbm) {
        let needed = snr_of_10_percent(&Mode::ht(mcs, 1, true, GuardInterval::Ns400).unwrap(), 4096);
        let stated = level_dbm + 98.0 - 15.0;
        assert!((needed - stated).abs() <= 1.7, "MCS {mcs}: {needed} dB, the standard implies {stated}");
    }
}

/// 802.11-2020 table 21-25, likewise for 4096 bytes at 80 MHz.
#[test]
fn sensitivity_of_802_11ac_is_met_within_less_than_two_decibels() {
    let levels_dbm = [-76.0, -73.0, -71.0, -68.0, -64.0, -60.0, -59.0, -58.0, -53.0, -51.0];
    for (mcs, level_dbm) in (0..).zip(levels_dbm) {
        let needed = snr_of_10_percent(&Mode::vht(mcs, 1, 80, GuardInterval::Ns400).unwrap(), 4096);
        let stated = level_dbm + 95.0 - 15.0;
        assert!((needed - stated).abs() <= 2.0, "MCS {mcs}: {needed} dB, the standard implies {stated}");
    }
}

#[test]
fn needed_snr_is_a_known_answer() {
    // A change of this table changes every run that has an SNR.
    let mut table = String::new();
    for standard in Standard::ALL {
        let modes: Vec<Mode> = match standard {
            Standard::A | Standard::B => Mode::all(standard),
            // As 802.11a and b.
            Standard::G => Vec::new(),
            Standard::N => (0..8).filter_map(|mcs| Mode::ht(mcs, 1, true, GuardInterval::Ns400)).collect(),
            Standard::Ac => (0..10).filter_map(|mcs| Mode::vht(mcs, 1, 80, GuardInterval::Ns400)).collect(),
            Standard::Ax => (0..12).filter_map(|mcs| Mode::he(mcs, 1, 80, GuardInterval::Ns800)).collect(),
            // Beyond those of 802.11ax.
            Standard::Be => (12..14).filter_map(|mcs| Mode::eht(mcs, 1, 80, GuardInterval::Ns800)).collect(),
        };
        for mode in modes {
            table.push_str(&format!(
                "{:>8} {:>9}: 1000 B {:.2} dB, 1500 B {:.2} dB\n",
                standard.name(),
                mode.rate().to_string(),
                snr_of_10_percent(&mode, 1000),
                snr_of_10_percent(&mode, 1500),
            ));
        }
    }
    insta::assert_snapshot!(table);
}

/// Eb/N0 for one error in 10^5 bits, Gray mapping: BPSK and QPSK 9.6 dB, 16-QAM 13.4, 64-QAM 17.8, 256-QAM 22.5, 1024-QAM
/// 27.5, 4096-QAM 32.6.
#[test]
fn uncoded_errors_are_the_textbooks() {
    for (bits, eb_n0_db) in [(1, 9.6), (2, 9.6), (4, 13.4), (6, 17.8), (8, 22.5), (10, 27.5), (12, 32.6)] {
        let error = |eb_n0| uncoded_bit_error(bits, Decibels::from_db(eb_n0).as_ratio() * f64::from(bits));
        assert!(error(eb_n0_db - 0.1) > 1e-5 && error(eb_n0_db + 0.1) < 1e-5, "{bits} bits");
    }
}

/// The modes of `standard` that differ in their errors: streams and guard intervals have no influence.
fn told_apart(standard: Standard) -> Vec<Mode> {
    let mut modes = Mode::all(standard);
    modes.retain(|mode| mode.streams == 1 && mode.guard_interval <= GuardInterval::Ns800);
    modes
}

#[test]
fn success_grows_with_snr_and_falls_with_length_and_rate() {
    for standard in Standard::ALL {
        for mode in told_apart(standard) {
            let at = |snr, bytes| mpdu_success(&mode, Decibels::from_millis(snr), bytes);
            for snr in (-5_000..40_000).step_by(100) {
                assert!((0.0..=1.0).contains(&at(snr, 1538)));
                assert!(at(snr, 1538) <= at(snr + 100, 1538), "{mode:?} {snr}");
                assert!(at(snr, 1538) <= at(snr, 1537), "{mode:?} {snr}");
            }
        }
    }
    // BPSK 3/4 needs as much SNR as QPSK 1/2: 9 Mb/s has no advantage over 12.
    let rates = [6, 12, 18, 24, 36, 48, 54].map(|mbps| snr_of_10_percent(&mode(Standard::A, mbps), 1500));
    assert!(rates.windows(2).all(|pair| pair[0] < pair[1]), "{rates:?}");
}

#[test]
fn preambles_survive_where_data_does_and_not_far_below() {
    for standard in Standard::ALL {
        for mode in told_apart(standard) {
            let needed = Decibels::from_db(snr_of_10_percent(&mode, 1500));
            assert!(preamble_success(&mode, needed) > 0.99, "{mode:?}");
            // DSSS spreads each bit of its header over 11 chips.
            let useless = Decibels::from_db(if mode.format == Format::Dsss { -12.0 } else { -5.0 });
            assert!(preamble_success(&mode, useless) < 0.01, "{mode:?}");
        }
    }
}

#[test]
fn tables_hold_what_the_formula_gives() {
    let mode = mode(Standard::N, 150);
    let snr = Decibels::from_db(22.0);
    let mut table = ErrorTable::new(&mode, snr);
    for bytes in [1542, 94, 1542, 32, 5000] {
        let expected = Ratio::from_fraction(1.0 - mpdu_success(&mode, snr, bytes)).unwrap();
        assert_eq!(table.mpdu(bytes), expected);
    }
    assert_eq!(ErrorTable::new(&mode, Decibels::from_db(60.0)).mpdu(1538), Ratio::ZERO);
}

/// Counts wrong information bits on error paths by distance. It walks the trellis of the generators 133 and 171 from
/// each phase of the puncturing pattern until the paths return to state zero.
fn bit_weights(pattern: &[(bool, bool)], distances: usize) -> Vec<f64> {
    const STATES: usize = 64;
    let mut weights = vec![0.0; distances];
    for phase in 0..pattern.len() {
        // Indexed by state and distance: number of paths, and wrong bits on all of them.
        let mut front = vec![(0.0, 0.0); STATES * distances];
        let mut sources: Vec<(usize, bool)> = vec![(0, true)];
        let mut at = phase;
        for step in 0..200 {
            let mut next = vec![(0.0, 0.0); STATES * distances];
            let (first, second) = pattern[at];
            if step > 0 {
                sources = (1..STATES).flat_map(|state| [(state, false), (state, true)]).collect();
            }
            for (state, bit) in &sources {
                let register = usize::from(*bit) << 6 | state;
                let output = |generator: usize| (register & generator).count_ones() as usize & 1;
                let distance = usize::from(first) * output(0o133) + usize::from(second) * output(0o171);
                let to = register >> 1;
                for before in 0..distances - distance.min(distances) {
                    let (paths, bits) = if step == 0 {
                        if before == 0 { (1.0, 0.0) } else { continue }
                    } else {
                        front[state * distances + before]
                    };
                    let bits = bits + if *bit { paths } else { 0.0 };
                    if to == 0 {
                        weights[before + distance] += bits;
                    } else {
                        let entry = &mut next[to * distances + before + distance];
                        *entry = (entry.0 + paths, entry.1 + bits);
                    }
                }
            }
            front = next;
            at = (at + 1) % pattern.len();
        }
    }
    weights
}

/// 802.11-2020 figures 17-9, 19-11 and clause 17.3.5.6.
#[test]
fn spectra_are_those_of_the_punctured_code() {
    let patterns: [&[(bool, bool)]; 4] = [
        &[(true, true)],
        &[(true, true), (true, false)],
        &[(true, true), (true, false), (false, true)],
        &[(true, true), (true, false), (false, true), (true, false), (false, true)],
    ];
    for (code, pattern) in CODES.iter().zip(patterns) {
        let (from, step) = (code.free_distance as usize, code.step as usize);
        let counted = bit_weights(pattern, from + 9 * step);
        assert!(counted[..from].iter().all(|weight| *weight == 0.0), "{counted:?}");
        let counted: Vec<f64> = counted[from..].iter().copied().step_by(step).collect();
        for (i, (counted, published)) in counted.iter().zip(code.bit_weights).enumerate() {
            // From twice the free distance up, the published counts treat two consecutive errors within one period of
            // the pattern as one.
            let within = if i * step < from { 0.0 } else { 1e-2 * published };
            let off = (counted - published).abs();
            assert!(off <= within, "rate {}/{}: {counted}, not {published}", code.num, code.den);
        }
    }
}
