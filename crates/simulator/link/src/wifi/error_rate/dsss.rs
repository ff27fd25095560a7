//! Errors of DSSS and CCK, which have no convolutional code.
//!
//! The expressions are those of IEEE Std 802.15.2-2003 clause 5.3 (also in IEEE Std 802.15.4-2006 annex E.4.1): DBPSK
//! and DQPSK behind a Barker sequence of 11 chips, and for CCK the union bound over the distances between code words. A
//! test recomputes those distances.

/// Distances of CCK at 5.5 Mb/s: how many of the 15 wrong code words have it, and the factor that it applies to the
/// chip SNR.
const CCK_5_5: [(f64, f64); 2] = [(14.0, 8.0), (1.0, 16.0)];
/// Distances of CCK at 11 Mb/s: how many of the 255 wrong code words have it, and the factor that it applies to the
/// chip SNR.
const CCK_11: [(f64, f64); 6] =
    [(24.0, 4.0), (16.0, 6.0), (174.0, 8.0), (16.0, 10.0), (24.0, 12.0), (1.0, 16.0)];

/// Tail of the standard normal distribution beyond the square root of `x`.
fn q_of_sqrt(x: f64) -> f64 {
    0.5 * libm::erfc(libm::sqrt(x / 2.0))
}

fn cck(distances: &[(f64, f64)], bits: i32, chip_snr: f64) -> f64 {
    let wrong_word: f64 = distances.iter().map(|(words, factor)| words * q_of_sqrt(factor * chip_snr)).sum();
    let words = libm::ldexp(1.0, bits);
    // Half of the bits of a wrong word are wrong, as with orthogonal signals.
    wrong_word * words / 2.0 / (words - 1.0)
}

/// Probability of a bit error at `kbps` and `chip_snr`, the energy of a chip over the noise density; at most 1/2.
pub(super) fn bit_error(kbps: u64, chip_snr: f64) -> f64 {
    let error = match kbps {
        1_000 => q_of_sqrt(11.0 * chip_snr),
        2_000 => q_of_sqrt(5.5 * chip_snr),
        5_500 => cck(&CCK_5_5, 4, chip_snr),
        _ => cck(&CCK_11, 8, chip_snr),
    };
    error.min(0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Squared distances from the word whose `phases` are all zero to every other word, with the number of words at
    /// each. Phases are in quarter turns; 802.11-2020 equation 16-1.
    fn distances(words: &[[i32; 4]]) -> Vec<(f64, f64)> {
        let chips = |[p1, p2, p3, p4]: [i32; 4]| {
            [
                p1 + p2 + p3 + p4,
                p1 + p3 + p4,
                p1 + p2 + p4,
                p1 + p4 + 2,
                p1 + p2 + p3,
                p1 + p3,
                p1 + p2 + 2,
                p1,
            ]
        };
        let mut counts: Vec<(i32, f64)> = Vec::new();
        for word in &words[1..] {
            // |e^(j a) - e^(j b)|^2 is 0, 2, 4 or 2 for 0 to 3 quarter turns between them.
            let turns = chips(words[0]).into_iter().zip(chips(*word)).map(|(a, b)| (a - b).rem_euclid(4));
            let squared: i32 = turns.map(|turns| [0, 2, 4, 2][turns as usize]).sum();
            match counts.iter_mut().find(|(known, _)| *known == squared) {
                Some((_, count)) => *count += 1.0,
                None => counts.push((squared, 1.0)),
            }
        }
        counts.sort_unstable_by_key(|(squared, _)| *squared);
        // The probability of choosing a word at distance d instead of the sent one is Q(sqrt(d^2 / 2N0)).
        counts.into_iter().map(|(squared, count)| (count, f64::from(squared) / 2.0)).collect()
    }

    #[test]
    fn distances_are_those_of_the_code_words() {
        let quarter = 0..4;
        let all: Vec<[i32; 4]> = quarter
            .clone()
            .flat_map(|p1| quarter.clone().map(move |p2| (p1, p2)))
            .flat_map(|(p1, p2)| (0..16).map(move |rest| [p1, p2, rest / 4, rest % 4]))
            .collect();
        assert_eq!(distances(&all), CCK_11);
        // Table 16-7, at 5.5 Mb/s: the second phase is one or three quarters, the third is zero, the last is zero or a
        // half.
        let some: Vec<[i32; 4]> = quarter
            .flat_map(|p1| [1, 3].map(|p2| (p1, p2)))
            .flat_map(|(p1, p2)| [0, 2].map(|p4| [p1, p2, 0, p4]))
            .collect();
        assert_eq!(distances(&some), CCK_5_5);
    }

    /// Points on the curves of IEEE Std 802.15.2-2003, derived from Q(4.2649) = 1e-5: one bit in 10^5 is wrong at chip
    /// SNRs of 18.19 / 11 and 18.19 / 5.5, which are 2.18 and 5.19 dB.
    #[test]
    fn one_bit_in_a_hundred_thousand() {
        let at_db = |kbps, db: f64| bit_error(kbps, libm::pow(10.0, db / 10.0));
        for (kbps, db) in [(1_000, 2.18), (2_000, 5.19)] {
            assert!(at_db(kbps, db - 0.05) > 1e-5 && at_db(kbps, db + 0.05) < 1e-5, "{kbps} kb/s");
        }
        // CCK at 11 Mb/s sends 8 bits in 8 chips, so Eb/N0 is the chip SNR. It gains about 2 dB over uncoded QPSK,
        // which needs 9.6 dB (C. Heegard et al., IEEE Communications Magazine 39(11), 2001).
        let needed = (0..2_000).map(|i| f64::from(i) / 100.0).find(|db| at_db(11_000, *db) <= 1e-5).unwrap();
        assert!((7.3..7.9).contains(&needed), "{needed}");
    }

    #[test]
    fn errors_fall_with_snr_and_grow_with_rate_of_a_kind() {
        for db in (-200..150).map(|tenths| f64::from(tenths) / 10.0) {
            let errors = |db: f64| {
                [1_000, 2_000, 5_500, 11_000].map(|kbps| bit_error(kbps, libm::pow(10.0, db / 10.0)))
            };
            let (here, above) = (errors(db), errors(db + 0.1));
            assert!(here.iter().zip(above).all(|(here, above)| *here >= above && *here <= 0.5));
            // Between the two kinds the order differs: these expressions detect CCK coherently and Barker sequences
            // differentially, so 5.5 Mb/s needs less than 2 Mb/s.
            let [one, two, five, eleven] = here;
            assert!(one <= two && (db < 0.0 || five <= eleven), "{db} dB: {here:?}");
        }
    }
}
