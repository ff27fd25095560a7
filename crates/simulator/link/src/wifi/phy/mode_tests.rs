use tacit_packet::units::{BitRate, Duration};

use super::super::{ModeChoice, Standard, Variant};
use super::*;

#[test]
fn rates_are_the_tables() {
    let mbps = |standard| {
        let mut rates: Vec<_> =
            Mode::all(standard).iter().map(|mode| mode.rate().as_bps() / 100_000).collect();
        rates.sort_unstable();
        rates.dedup();
        rates
    };
    assert_eq!(mbps(Standard::A), [60, 90, 120, 180, 240, 360, 480, 540]);
    let n = mbps(Standard::N);
    for rate in [65, 150, 300, 600, 1350, 1500, 3000, 4500, 6000] {
        assert!(n.contains(&rate), "{rate} is missing from {n:?}");
    }
}

#[test]
fn one_hundred_fifty_is_forty_mhz_short_guard_one_stream() {
    let mode = Mode::for_rate(Standard::N, BitRate::from_mbps(150)).unwrap();
    assert_eq!(
        (mode.mcs, mode.streams, mode.width_mhz, mode.guard_interval),
        (Some(7), 1, 40, GuardInterval::Ns400)
    );
}

#[test]
fn durations_known_from_the_standard() {
    let at = |standard, mbps| Mode::for_rate(standard, BitRate::from_mbps(mbps)).unwrap();
    let us = |mode: Mode, bytes| mode.ppdu_duration(bytes).as_micros();
    // 802.11a: 20 us, then 4 us per 4 * rate bits.
    assert_eq!(us(at(Standard::A, 54), 1536), 248);
    assert_eq!(us(at(Standard::A, 24), 14), 28);
    assert_eq!(us(at(Standard::A, 24), 32), 32);
    assert_eq!(us(at(Standard::A, 6), 14), 44);
    // 1500 bytes at 150 Mb/s: 80 us of data field (HACK paper section 1), 36 us of preamble, 4-us rounding.
    let n150 = at(Standard::N, 150);
    assert_eq!(n150.rate().time_for(tacit_packet::units::Bytes(1500)).as_micros(), 80);
    assert_eq!(us(n150, 1500), 36 + 84);
    // Two encoders above 300 Mb/s, four training fields at four streams.
    let n600 = at(Standard::N, 600);
    assert_eq!(n600.preamble().as_micros(), 48);
    assert_eq!(n600.encoders(), 2);
}

#[test]
fn bytes_within_inverts_the_duration() {
    for standard in Standard::ALL {
        for mode in Mode::all(standard) {
            for limit_us in [100, 1_000, 4_000] {
                let limit = Duration::from_micros(limit_us);
                let bytes = mode.bytes_within(limit);
                assert!(bytes == 0 || mode.ppdu_duration(bytes) <= limit, "{mode:?}");
                assert!(mode.ppdu_duration(bytes + 1) > limit, "{mode:?} {bytes}");
            }
        }
    }
}

#[test]
fn marketed_rates_are_the_highest_of_their_kind() {
    let kbps = |standard, mbps| {
        Mode::for_rate(standard, BitRate::from_mbps(mbps))
            .map(|mode| (mode.rate().as_bps() + 50_000) / 100_000)
    };
    assert_eq!(kbps(Standard::Ax, 1_200), Ok(12_010));
    assert_eq!(kbps(Standard::Ax, 574), Ok(5_735));
    assert_eq!(kbps(Standard::Ac, 867), Ok(8_667));
    assert_eq!(kbps(Standard::Be, 5_800), Ok(57_647));
    assert!(kbps(Standard::N, 149).is_err(), "150 is exact, and 149 nobody's name");
    assert!(kbps(Standard::A, 53).is_err());
}

#[test]
fn an_unknown_rate_names_the_known_ones() {
    let error = Mode::for_rate(Standard::A, BitRate::from_mbps(55)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "802.11a has no rate 55Mbps; it has 6Mbps, 9Mbps, 12Mbps, 18Mbps, 24Mbps, 36Mbps, 48Mbps, 54Mbps"
    );
    let error = Mode::for_rate(Standard::Be, BitRate::from_mbps(300)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "802.11be has no rate 300Mbps; it has 275.6Mbps, 286.8Mbps, 288.2Mbps, 292.5Mbps, 306.3Mbps, 307.1Mbps, 309.7Mbps, \
         324.3Mbps, the nearest of 452"
    );
}

/// 802.11-2020 table 21-30 and following, at 80 MHz and the short guard interval: the rates of one to four streams, and
/// of the widest channel.
#[test]
fn vht_rates_are_the_tables() {
    let rate = |mcs, streams, width, short| {
        Mode::vht(mcs, streams, width, short).map(|mode| (mode.rate().as_bps() + 50_000) / 100_000)
    };
    assert_eq!(
        (1..=4).map(|streams| rate(9, streams, 80, GuardInterval::Ns400).unwrap()).collect::<Vec<_>>(),
        [4_333, 8_667, 13_000, 17_333]
    );
    assert_eq!(rate(0, 1, 20, GuardInterval::Ns800), Some(65));
    assert_eq!(rate(8, 1, 20, GuardInterval::Ns400), Some(867));
    assert_eq!(rate(9, 1, 40, GuardInterval::Ns400), Some(2_000));
    assert_eq!(rate(9, 4, 160, GuardInterval::Ns400), Some(34_667));
    assert_eq!(rate(9, 3, 20, GuardInterval::Ns800), Some(2_600));
}

/// The combinations that clause 21.5 omits, and no others.
#[test]
fn vht_leaves_out_what_does_not_divide_among_encoders() {
    let mut missing = Vec::new();
    for width in [20, 40, 80, 160] {
        for streams in 1..=4 {
            for mcs in 0..10 {
                match Mode::vht(mcs, streams, width, GuardInterval::Ns400) {
                    None => missing.push((width, streams, mcs)),
                    // Clause 21.3.10.5.3: data bits and puncturing blocks divide evenly.
                    Some(mode) => {
                        let code = mode.modulation().unwrap();
                        let coded = mode.bits_per_symbol() * code.code_den / code.code_num;
                        assert_eq!(mode.bits_per_symbol() % mode.encoders(), 0, "{mode:?}");
                        assert_eq!(coded % (mode.encoders() * code.code_den), 0, "{mode:?}");
                    }
                }
            }
        }
    }
    assert_eq!(missing, [(20, 1, 9), (20, 2, 9), (20, 4, 9), (80, 3, 6), (160, 3, 9)]);
    assert!(
        Mode::vht(10, 1, 80, GuardInterval::Ns400).is_none()
            && Mode::vht(0, 5, 80, GuardInterval::Ns400).is_none()
    );
    assert!(
        Mode::vht(0, 0, 80, GuardInterval::Ns400).is_none()
            && Mode::vht(0, 1, 60, GuardInterval::Ns400).is_none()
    );
}

/// Computed by hand from clause 21.4.3: 36 us of preamble plus 4 per VHT-LTF, symbols of 3.6 us, with their sum rounded
/// up to 4 us.
#[test]
fn vht_durations_are_known() {
    let us = |mcs, streams, width, short, bytes| {
        Mode::vht(mcs, streams, width, short).unwrap().ppdu_duration(bytes).as_micros()
    };
    // 16 + 8 * 1542 + 12 bits at 3120 per symbol: 4 symbols, 14.4 us, 16 on the air.
    assert_eq!(us(9, 2, 80, GuardInterval::Ns400, 1_542), 36 + 8 + 16);
    // Without the short guard interval: 4 symbols of 4 us.
    assert_eq!(us(9, 2, 80, GuardInterval::Ns800, 1_542), 36 + 8 + 16);
    // 64 full packets, 98,812 bytes: 790,524 bits, 254 symbols, 914.4 us.
    assert_eq!(us(9, 2, 80, GuardInterval::Ns400, 63 * 1_544 + 4 + 1_538), 36 + 8 + 916);
    // One stream: 1560 bits per symbol, one training field, one encoder: 507 symbols, 1825.2 us.
    assert_eq!(us(9, 1, 80, GuardInterval::Ns400, 63 * 1_544 + 4 + 1_538), 36 + 4 + 1_828);
    // 160 MHz, four streams: 12,480 bits per symbol, 6 encoders; 64 symbols, 230.4 us.
    assert_eq!(us(9, 4, 160, GuardInterval::Ns400, 63 * 1_544 + 4 + 1_538), 36 + 16 + 232);
    // Three streams have as many training fields as four.
    assert_eq!(Mode::vht(0, 3, 20, GuardInterval::Ns800).unwrap().preamble(), Duration::from_micros(36 + 16));
    // Tables 21-30 and following: the encoders at 866.7, 1300 and 1733.3 Mb/s, and the one exception.
    let encoders =
        |mcs, streams, width| Mode::vht(mcs, streams, width, GuardInterval::Ns400).unwrap().encoders();
    assert_eq!(
        [encoders(9, 1, 80), encoders(9, 2, 80), encoders(9, 3, 80), encoders(9, 4, 80)],
        [1, 2, 3, 3]
    );
    assert_eq!(encoders(7, 4, 160), 6);
}

#[test]
fn dsss_durations_are_known() {
    let us = |kbps, preamble, bytes| {
        Mode::dsss(BitRate::from_kbps(kbps), preamble).unwrap().ppdu_duration(bytes).as_micros()
    };
    // 8200 bits at 11 Mb/s are 745.45 us, rounded up.
    assert_eq!(us(11_000, Preamble::Long, 1_025), 192 + 746);
    assert_eq!(us(11_000, Preamble::Long, 1_025), 938);
    assert_eq!(us(11_000, Preamble::Short, 1_025), 96 + 746);
    assert_eq!(us(5_500, Preamble::Long, 1_025), 192 + 1_491);
    assert_eq!(us(2_000, Preamble::Short, 14), 96 + 56);
    // 1 Mb/s has no short preamble.
    assert_eq!(us(1_000, Preamble::Short, 14), 192 + 112);
    assert!(Mode::dsss(BitRate::from_mbps(6), Preamble::Long).is_none());
}

#[test]
fn erp_ofdm_is_six_microseconds_longer() {
    for mbps in [6, 9, 12, 18, 24, 36, 48, 54] {
        let rate = BitRate::from_mbps(mbps);
        let [a, g] = [Mode::ofdm(rate).unwrap(), Mode::erp_ofdm(rate).unwrap()];
        for bytes in [14, 32, 1_536] {
            assert_eq!(g.ppdu_duration(bytes), a.ppdu_duration(bytes) + Duration::from_micros(6));
        }
    }
}

#[test]
fn a_rate_names_the_usual_way_to_send_it() {
    let of = |mbps: f64| {
        let rate = BitRate::from_kbps((mbps * 1e3) as u64);
        let mode = Mode::for_rate(Standard::Ac, rate).unwrap();
        (mode.mcs.unwrap(), mode.streams, mode.width_mhz, mode.guard_interval)
    };
    assert_eq!(of(433.3), (9, 1, 80, GuardInterval::Ns400));
    assert_eq!(of(866.7), (9, 2, 80, GuardInterval::Ns400));
    assert_eq!(of(1_300.0), (9, 3, 80, GuardInterval::Ns400));
    assert_eq!(of(1_733.3), (9, 4, 80, GuardInterval::Ns400));
    assert_eq!(of(780.0), (8, 2, 80, GuardInterval::Ns400));
    assert_eq!(of(200.0), (9, 1, 40, GuardInterval::Ns400));
    assert_eq!(of(6.5), (0, 1, 20, GuardInterval::Ns800));
    assert_eq!(of(2_340.0), (8, 3, 160, GuardInterval::Ns400));
}

#[test]
fn parameters_that_a_rate_leaves_open_can_be_set() {
    let choose = |standard, choice| Mode::choose(standard, Variant::for_standard(standard), choice);
    let rate = BitRate::from_kbps(866_700);
    let wide = ModeChoice { width_mhz: Some(160), ..ModeChoice::rate(rate) };
    let mode = choose(Standard::Ac, wide).unwrap();
    assert_eq!((mode.mcs, mode.streams, mode.width_mhz), (Some(9), 1, 160));
    let named = ModeChoice { mcs: Some(9), streams: Some(4), ..ModeChoice::default() };
    assert_eq!(choose(Standard::Ac, named).unwrap().rate().as_bps() / 100_000, 17_333);
    let long = ModeChoice {
        guard_interval: Some(GuardInterval::Ns800),
        ..ModeChoice::rate(BitRate::from_mbps(780))
    };
    assert_eq!(choose(Standard::Ac, long).unwrap().mcs, Some(9));
    let ht = ModeChoice { streams: Some(3), ..ModeChoice::rate(BitRate::from_mbps(90)) };
    assert_eq!(choose(Standard::N, ht).unwrap().streams, 3);
    // The tables omit MCS 6 of three streams at 80 MHz.
    let none = ModeChoice { mcs: Some(6), streams: Some(3), width_mhz: Some(80), ..ModeChoice::default() };
    let error = choose(Standard::Ac, none).unwrap_err();
    assert_eq!(error.what(), "802.11ac has no MCS 6 with 3 streams with 80 MHz");
    let error = choose(Standard::Ac, ModeChoice { streams: Some(1), ..ModeChoice::rate(rate) });
    assert_eq!(error.unwrap().width_mhz, 160);
}

/// Of several modes with a rate, the one with two streams, as clients have, is chosen: 2402 Mb/s is also four streams
/// at 80 MHz, and 5764.7 Mb/s also eight.
#[test]
fn rates_of_high_efficiency_mean_one_or_two_streams() {
    let of = |standard, kbps| {
        let mode = Mode::for_rate(standard, BitRate::from_kbps(kbps)).unwrap();
        (mode.mcs.unwrap(), mode.streams, mode.width_mhz, mode.guard_interval)
    };
    assert_eq!(of(Standard::Ax, 600_500), (11, 1, 80, GuardInterval::Ns800));
    assert_eq!(of(Standard::Ax, 1_201_000), (11, 2, 80, GuardInterval::Ns800));
    assert_eq!(of(Standard::Ax, 2_402_000), (11, 2, 160, GuardInterval::Ns800));
    assert_eq!(of(Standard::Ax, 4_803_900), (11, 4, 160, GuardInterval::Ns800));
    assert_eq!(of(Standard::Be, 5_764_700), (13, 2, 320, GuardInterval::Ns800));
}

/// If a basic service set chooses an option, all modes have it, and guard intervals that are not allowed with it are
/// omitted.
#[test]
fn training_and_packet_extension_are_chosen_for_all_modes() {
    use super::super::{HeChoice, PacketExtension, TrainingField};
    let of = |standard, training, extension| {
        let he = HeChoice { training, extension, ..HeChoice::USUAL };
        Mode::all_of(standard, Variant { he, ..Variant::for_standard(standard) })
    };
    let all = |training, extension| of(Standard::Ax, training, extension);
    let usual = Mode::all(Standard::Ax);
    assert_eq!(all(None, PacketExtension::Us16), usual);
    let short = all(Some(TrainingField::Quarter), PacketExtension::Us16);
    assert_eq!(3 * short.len(), usual.len());
    assert!(short.iter().all(|mode| mode.guard_interval == GuardInterval::Ns800));
    let of_half = all(Some(TrainingField::Half), PacketExtension::Us8);
    assert!(of_half.iter().all(|mode| mode.guard_interval != GuardInterval::Ns3200));
    // 256 packets at 1201 Mb/s use three of four segments in their last symbol.
    let duration = |modes: &[Mode]| {
        let is_it = |mode: &&Mode| {
            (mode.mcs, mode.streams, mode.width_mhz, mode.guard_interval)
                == (Some(11), 2, 80, GuardInterval::Ns800)
        };
        modes.iter().find(is_it).unwrap().ppdu_duration(395_262)
    };
    assert_eq!(duration(&usual), Duration::from_nanos(2_700_800));
    // Each of two streams has a training field of 3.2 instead of 6.4 us.
    assert_eq!(duration(&short), Duration::from_nanos(2_700_800 - 2 * 3_200));
    assert_eq!(duration(&of_half), Duration::from_nanos(2_700_800 - 8_000));
    let none = duration(&of(Standard::Be, None, PacketExtension::Us0));
    for (extension, us) in
        [(PacketExtension::Us8, 4), (PacketExtension::Us16, 12), (PacketExtension::Us20, 16)]
    {
        assert_eq!(duration(&of(Standard::Be, None, extension)) - none, Duration::from_micros(us));
    }
}
