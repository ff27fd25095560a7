//! Durations and rates of HE and EHT.

use tacit_packet::units::Duration;

use super::super::tables::HE_TRAINING_FIELDS;
use super::super::{Format, GuardInterval, HeOptions, Mode, MultiUser, MultiUserPpdu, ResourceUnit};
use super::*;
use Format::{EhtMu, HeErSu, HeSu};
use GuardInterval::{Ns800, Ns1600, Ns3200};
use MultiUser::{Down, Up};
use PacketExtension::{Us0, Us8, Us16, Us20};
use ResourceUnit::{Tones26, Tones52, Tones106, Tones242, Tones484};
use TrainingField::{Half, Quarter, Whole};

/// A PPDU: format, MHz, streams, MCS, guard interval, training field, extension and bytes. Expected values: its rate in
/// 100 kb/s, symbols and segments of the last one, nanoseconds with LDPC, nanoseconds with BCC and no extension,
/// nanoseconds in ns-3 3.44 (which has training fields of 8 us, no extension, and an EHT-SIG of 4 us), and LENGTH of
/// L-SIG.
type Known = (
    (Format, u16, u8, u8, GuardInterval, TrainingField, PacketExtension),
    u32,
    (u64, (u64, u64), u64, u64, Option<u64>, u32),
);

/// Computed from the equations of 802.11ax-2021 clause 27.3.12 by a separate script. A-MPDUs contain packets of 1500
/// bytes or TCP ACKs.
#[rustfmt::skip]
const KNOWN: [Known; 29] = [
    ((HeSu, 20, 1, 0, Ns800, Half, Us0), 1_542, (86, (106, 3), 1_484_800, 1_484_800, Some(1_485_600), 1_096)),
    ((HeSu, 20, 1, 11, Ns800, Half, Us16), 1_542, (1_434, (7, 2), 146_400, 138_400, Some(139_200), 91)),
    ((HeSu, 20, 1, 0, Ns3200, Whole, Us0), 1_542, (73, (106, 3), 1_748_000, 1_748_000, Some(1_740_000), 1_291)),
    ((HeSu, 40, 1, 7, Ns800, Half, Us8), 98_814, (1_721, (338, 4), 4_648_000, 4_640_000, Some(4_640_800), 3_466)),
    ((HeSu, 40, 2, 9, Ns1600, Half, Us8), 98_814, (4_333, (127, 3), 1_884_800, 1_880_800, Some(1_880_800), 1_396)),
    ((HeSu, 80, 1, 11, Ns800, Half, Us16), 94, (6_005, (1, 1), 60_800, 56_800, Some(57_600), 28)),
    ((HeSu, 80, 1, 11, Ns800, Half, Us0), 94, (6_005, (1, 1), 56_800, 56_800, Some(57_600), 25)),
    ((HeSu, 80, 1, 11, Ns800, Half, Us16), 3_070, (6_005, (4, 1), 101_600, 97_600, Some(98_400), 58)),
    ((HeSu, 80, 1, 11, Ns800, Half, Us0), 98_814, (6_005, (97, 4), 1_362_400, 1_362_400, Some(1_363_200), 1_003)),
    ((HeSu, 80, 1, 11, Ns800, Half, Us16), 98_814, (6_005, (97, 4), 1_378_400, 1_362_400, Some(1_363_200), 1_015)),
    ((HeSu, 80, 1, 11, Ns1600, Half, Us16), 98_814, (5_671, (97, 4), 1_456_800, 1_440_800, Some(1_440_800), 1_075)),
    ((HeSu, 80, 1, 11, Ns3200, Whole, Us16), 98_814, (5_104, (97, 4), 1_620_000, 1_604_000, Some(1_596_000), 1_195)),
    ((HeSu, 80, 1, 11, Ns800, Half, Us16), 395_262, (6_005, (388, 1), 5_324_000, 5_320_000, Some(5_320_800), 3_973)),
    ((HeSu, 80, 2, 11, Ns800, Half, Us16), 395_262, (12_010, (194, 3), 2_700_800, 2_688_800, Some(2_690_400), 2_008)),
    ((HeSu, 80, 2, 5, Ns800, Quarter, Us16), 154_398, (5_765, (158, 3), 2_204_800, 2_192_800, Some(2_200_800), 1_636)),
    ((HeSu, 80, 4, 8, Ns800, Whole, Us16), 395_262, (17_294, (135, 2), 1_934_400, 1_926_400, Some(1_904_000), 1_432)),
    ((HeSu, 80, 3, 10, Ns800, Half, Us16), 197_630, (16_213, (72, 3), 1_056_000, 1_044_000, Some(1_047_200), 772)),
    ((HeSu, 160, 1, 11, Ns800, Half, Us16), 395_262, (12_010, (194, 3), 2_693_600, 2_681_600, Some(2_682_400), 2_002)),
    ((HeSu, 160, 2, 11, Ns800, Half, Us16), 395_262, (24_020, (97, 4), 1_385_600, 1_369_600, Some(1_371_200), 1_021)),
    ((HeSu, 160, 2, 11, Ns1600, Half, Us16), 395_262, (22_685, (97, 4), 1_464_800, 1_448_800, Some(1_448_800), 1_081)),
    ((HeSu, 160, 2, 0, Ns800, Half, Us0), 1_542, (1_441, (7, 2), 145_600, 145_600, Some(147_200), 91)),
    ((HeSu, 160, 4, 11, Ns800, Half, Us16), 395_262, (48_039, (49, 2), 739_200, 731_200, Some(734_400), 535)),
    ((HeErSu, 20, 1, 0, Ns800, Half, Us0), 1_542, (86, (106, 3), 1_492_800, 1_492_800, Some(1_493_600), 1_103)),
    ((HeErSu, 20, 1, 2, Ns1600, Half, Us16), 1_542, (244, (36, 1), 574_400, 570_400, Some(570_400), 413)),
    ((EhtMu, 80, 1, 13, Ns800, Half, Us16), 395_262, (7_206, (323, 3), 4_456_000, 4_444_000, Some(4_440_800), 3_324)),
    ((EhtMu, 160, 2, 13, Ns800, Half, Us16), 790_526, (28_824, (162, 2), 2_269_600, 2_261_600, Some(2_259_200), 1_686)),
    ((EhtMu, 320, 2, 13, Ns800, Half, Us16), 1_581_054, (57_647, (162, 2), 2_269_600, 2_261_600, None, 1_686)),
    ((EhtMu, 320, 1, 12, Ns1600, Half, Us20), 790_526, (24_500, (180, 2), 2_656_000, 2_644_000, None, 1_974)),
    ((EhtMu, 320, 2, 13, Ns800, Half, Us16), 94, (57_647, (1, 1), 76_000, 72_000, None, 39)),
];

fn mode(known: &Known, coding: Coding, extension: PacketExtension) -> Mode {
    let (format, width_mhz, streams, mcs, interval, training, _) = known.0;
    let usual = match format {
        HeErSu => Mode::he_extended_range(mcs, interval),
        EhtMu => Mode::eht(mcs, streams, width_mhz, interval),
        _ => Mode::he(mcs, streams, width_mhz, interval),
    };
    usual.unwrap().with_options(HeOptions { training, coding, extension }).unwrap()
}

#[test]
fn ppdus_last_as_long_as_the_equations_say() {
    for known in &KNOWN {
        let ((.., extension), bytes, (rate, (count, segments), ldpc_ns, _, _, length)) = *known;
        let mode = mode(known, Coding::Ldpc, extension);
        assert_eq!((mode.rate().as_bps() + 50_000) / 100_000, rate, "{known:?}");
        let field = mode.data_field().unwrap();
        assert_eq!(field.symbols(mode.bits_per_symbol(), bytes), Symbols { count, segments }, "{known:?}");
        assert_eq!(mode.ppdu_duration(bytes).as_nanos(), ldpc_ns, "{known:?}");
        assert_eq!(mode.l_sig_length(bytes), Some(length), "{known:?}");
    }
}

/// The same PPDUs with the convolutional code and no extension, and as in ns-3.
#[test]
fn convolutional_ppdus_last_as_long_as_in_ns3() {
    for known in &KNOWN {
        let ((format, _, streams, _, interval, training, _), bytes, (_, _, _, bcc_ns, ns3_ns, _)) = *known;
        let mode = mode(known, Coding::Bcc, Us0);
        let lasts = mode.ppdu_duration(bytes);
        assert_eq!(lasts.as_nanos(), bcc_ns, "{known:?}");
        let fields = HE_TRAINING_FIELDS[usize::from(streams) - 1];
        let training = (training.duration() + interval.duration()) * fields;
        let eht_sig = Duration::from_micros(if format == EhtMu { 4 } else { 0 });
        let in_ns3 =
            lasts.saturating_sub(training).saturating_sub(eht_sig) + Duration::from_micros(8) * fields;
        assert!(ns3_ns.is_none_or(|ns3_ns| ns3_ns == in_ns3.as_nanos()), "{known:?}: {in_ns3}");
    }
}

/// 802.11ax-2021 tables 27-62 and following, and those of EHT: one stream, guard interval 0.8 us, in 100 kb/s.
#[test]
fn rates_are_the_tables() {
    let tables: [(u16, [u64; 14]); 5] = [
        (20, [86, 172, 258, 344, 516, 688, 774, 860, 1_032, 1_147, 1_290, 1_434, 1_549, 1_721]),
        (40, [172, 344, 516, 688, 1_032, 1_376, 1_549, 1_721, 2_065, 2_294, 2_581, 2_868, 3_097, 3_441]),
        (80, [360, 721, 1_081, 1_441, 2_162, 2_882, 3_243, 3_603, 4_324, 4_804, 5_404, 6_005, 6_485, 7_206]),
        (
            160,
            [
                721, 1_441, 2_162, 2_882, 4_324, 5_765, 6_485, 7_206, 8_647, 9_608, 10_809, 12_010, 12_971,
                14_412,
            ],
        ),
        (
            320,
            [
                1_441, 2_882, 4_324, 5_765, 8_647, 11_529, 12_971, 14_412, 17_294, 19_216, 21_618, 24_020,
                25_941, 28_824,
            ],
        ),
    ];
    let printed = |mode: Mode| (mode.rate().as_bps() + 50_000) / 100_000;
    for (width_mhz, rates) in tables {
        for (mcs, rate) in (0..).zip(rates) {
            let eht = Mode::eht(mcs, 1, width_mhz, Ns800).unwrap();
            assert_eq!(printed(eht), rate, "MCS {mcs} at {width_mhz} MHz");
            let he = Mode::he(mcs, 1, width_mhz, Ns800);
            assert_eq!(he.map(printed), (mcs < 12 && width_mhz < 320).then_some(rate));
        }
    }
    assert_eq!(Mode::he(11, 9, 80, Ns800), None);
    assert_eq!(Mode::he(11, 0, 80, Ns800), None);
    assert_eq!(Mode::he(0, 1, 80, GuardInterval::Ns400), None);
    assert_eq!(Mode::he_extended_range(3, Ns800), None);
}

/// The longest PSDU that fits is found, regardless of the segment where the limit is.
#[test]
fn bytes_within_inverts_the_duration_at_every_nanosecond() {
    let spare = [Us0, Us8, Us16, Us20];
    for (mcs, width_mhz, interval) in [(0, 20, Ns800), (9, 80, Ns1600), (11, 80, Ns800), (11, 160, Ns3200)] {
        for (coding, extension) in
            [Coding::Bcc, Coding::Ldpc].into_iter().flat_map(|code| spare.map(|us| (code, us)))
        {
            let options = HeOptions { training: Half, coding, extension };
            let mode = Mode::he(mcs, 1, width_mhz, interval).unwrap().with_options(options).unwrap();
            for limit_ns in (40_000..150_000).step_by(97).chain([5_484_000]) {
                let limit = Duration::from_nanos(limit_ns);
                let bytes = mode.bytes_within(limit);
                assert!(bytes == 0 || mode.ppdu_duration(bytes) <= limit, "{mode:?} {limit_ns}");
                assert!(mode.ppdu_duration(bytes + 1) > limit, "{mode:?} {limit_ns}: {bytes}");
            }
        }
    }
}

/// A user's part of a PPDU at 80 MHz: direction, users, unit, streams, MCS, guard interval, training field and bytes.
/// Expected values: its rate in 100 kb/s, symbols and segments of the last one, nanoseconds with LDPC and 16 us of
/// extension, nanoseconds with BCC and no extension, and LENGTH of L-SIG.
type KnownPart = (
    (MultiUser, usize, ResourceUnit, u8, u8, GuardInterval, TrainingField),
    u32,
    (u64, (u64, u64), u64, u64, u32),
);

/// From the same script, with HE-SIG-B at its MCS 0.
#[rustfmt::skip]
const KNOWN_PARTS: [KnownPart; 10] = [
    // A Block Ack of 64 bits; TCP ACKs; full packets; a Block Ack of 256 bits.
    ((Up, 1, Tones26, 1, 0, Ns1600, Half), 36, (8, (26, 2), 430_400, 422_400, 304)),
    ((Up, 1, Tones26, 1, 7, Ns1600, Half), 94, (83, (7, 3), 160_800, 148_800, 103)),
    ((Up, 1, Tones52, 1, 7, Ns1600, Half), 766, (167, (26, 3), 434_400, 422_400, 307)),
    ((Up, 1, Tones106, 1, 7, Ns1600, Half), 1_534, (354, (25, 1), 412_000, 408_000, 289)),
    ((Up, 1, Tones242, 1, 9, Ns1600, Half), 3_070, (1_083, (16, 3), 290_400, 278_400, 199)),
    ((Up, 1, Tones484, 2, 11, Ns3200, Whole), 98_814, (4_875, (102, 2), 1_712_000, 1_704_000, 1_264)),
    ((Up, 1, Tones242, 1, 3, Ns3200, Whole), 60, (293, (2, 1), 92_000, 88_000, 49)),
    ((Down, 4, Tones242, 1, 11, Ns800, Half), 49_406, (1_434, (203, 3), 2_832_000, 2_820_000, 2_105)),
    ((Down, 2, Tones484, 2, 11, Ns800, Half), 98_814, (5_735, (102, 2), 1_457_600, 1_449_600, 1_076)),
    ((Down, 16, Tones52, 1, 9, Ns1600, Half), 12_350, (222, (309, 4), 4_549_600, 4_533_600, 3_395)),
];

fn part(known: &KnownPart, coding: Coding, extension: PacketExtension) -> Mode {
    let (kind, users, unit, streams, mcs, guard_interval, training) = known.0;
    let options = HeOptions { training, coding, extension };
    let ppdu = MultiUserPpdu {
        kind,
        users,
        unit,
        training_streams: streams,
        lowest_mcs: 0,
        guard_interval,
        options,
    };
    Mode::he(mcs, streams, 80, Ns800).unwrap().among_users(&ppdu).unwrap()
}

#[test]
fn parts_last_as_long_as_the_equations_say() {
    for known in &KNOWN_PARTS {
        let (_, bytes, (rate, (count, segments), ldpc_ns, bcc_ns, length)) = *known;
        let mode = part(known, Coding::Ldpc, Us16);
        assert_eq!((mode.rate().as_bps() + 50_000) / 100_000, rate, "{known:?}");
        let field = mode.data_field().unwrap();
        assert_eq!(field.symbols(mode.bits_per_symbol(), bytes), Symbols { count, segments }, "{known:?}");
        assert_eq!(mode.ppdu_duration(bytes).as_nanos(), ldpc_ns, "{known:?}");
        assert_eq!(mode.l_sig_length(bytes), Some(length), "{known:?}");
        let users = known.0.1;
        assert_eq!(
            MultiUserPpdu::duration(&std::iter::repeat_n((mode, bytes), users)).as_nanos(),
            ldpc_ns,
            "alike, they last as long as one"
        );
        assert_eq!(part(known, Coding::Bcc, Us0).ppdu_duration(bytes).as_nanos(), bcc_ns, "{known:?}");
    }
}

/// A multi-user PPDU lasts as long as its longest part.
#[test]
fn the_longest_part_says_how_long_all_are() {
    let mode = part(&KNOWN_PARTS[7], Coding::Ldpc, Us16);
    let slower = part(&((Down, 4, Tones242, 1, 2, Ns800, Half), 0, KNOWN_PARTS[7].2), Coding::Ldpc, Us16);
    let parts = [(mode, 3_000), (slower, 3_000), (mode, 12_000)];
    assert_eq!(MultiUserPpdu::duration(&parts.into_iter()), slower.ppdu_duration(3_000));
    assert_eq!(MultiUserPpdu::duration(&[].into_iter()), Duration::ZERO);
    // One more MPDU for one user does not lengthen the PPDU.
    let longer = [(mode, 4_500), (slower, 3_000), (mode, 12_000)];
    assert_eq!(MultiUserPpdu::duration(&longer.into_iter()), slower.ppdu_duration(3_000));
}

/// A channel of 40 MHz has no unit of 996 tones, and other standards have no resource units.
#[test]
fn a_mode_outside_the_tables_is_none() {
    let ppdu = MultiUserPpdu {
        kind: Down,
        users: 2,
        unit: ResourceUnit::Tones996,
        training_streams: 1,
        lowest_mcs: 0,
        guard_interval: Ns800,
        options: HeOptions::usual(Ns800),
    };
    assert_eq!(Mode::he(0, 1, 40, Ns800).unwrap().among_users(&ppdu), None);
    assert!(Mode::he(0, 1, 80, Ns800).unwrap().among_users(&ppdu).is_some());
    assert_eq!(Mode::eht(0, 1, 80, Ns800).unwrap().among_users(&ppdu), None);
}
