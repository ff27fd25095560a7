//! Saturation throughput against Bianchi's model of DCF (IEEE JSAC 18(3), 2000).
//!
//! Every station always has a packet for the access point. The model assumes that frames are never given up and that
//! the wait after a collision is as long as after a success. The channel is therefore configured without a retry limit
//! and without EIFS.

use crate::common::{FULL, FULL_LEN, channel, short_queue};
use tacit_link::wifi::phy::{ACK_LEN, Mode, Standard, mpdu_len};
use tacit_link::wifi::{
    AccessCategory, BssConfig, EdcaOverride, EdcaParameters, Eifs, PerCategory, StationConfig, StationId,
};
use tacit_packet::units::{BitRate, Duration, Instant};

fn mode(standard: Standard) -> Mode {
    let kbps = match standard {
        Standard::A | Standard::G => 54_000,
        Standard::B => 11_000,
        Standard::N => 150_000,
        Standard::Ac => 866_700,
        Standard::Ax | Standard::Be => 1_201_000,
    };
    Mode::for_rate(standard, BitRate::from_kbps(kbps)).unwrap()
}

/// The default contention parameters.
fn usual(standard: Standard) -> EdcaParameters {
    AccessCategory::BestEffort.parameters(standard.phy())
}

/// Payload bits per second of all `stations` during `span`, contending with `edca`.
fn simulate(standard: Standard, edca: EdcaParameters, stations: u16, span: Duration) -> f64 {
    let own = EdcaOverride {
        aifs_slots: Some(edca.aifs_slots),
        cw_min: Some(edca.cw_min),
        cw_max: Some(edca.cw_max),
    };
    let station = StationConfig {
        uplink_queue: short_queue(),
        edca: PerCategory::same(own),
        ..StationConfig::new(mode(standard))
    };
    let config = BssConfig {
        ampdu_mpdus: Some(1),
        beacon_interval: None,
        retry_limit: u32::MAX,
        lifetime: Duration::from_secs(3600),
        eifs: Eifs::Never,
        ..BssConfig::new(standard, vec![station; usize::from(stations)])
    };
    let end = Instant::ZERO + span;
    let mut bss = channel(config, 1, "bianchi", span);
    for id in (1..=stations).map(|id| StationId(id).first_function()) {
        while bss.enqueue(Instant::ZERO, id, StationId::AP.first_function(), FULL) {}
    }
    let mut delivered = 0_u64;
    while let Some(now) = bss.poll_timeout().filter(|now| *now < end) {
        bss.handle_timeout(now);
        while bss.poll_deliver().is_some() {
            delivered += 1;
        }
        while let Some((id, _)) = bss.poll_drained() {
            while bss.enqueue(now, id, StationId::AP.first_function(), FULL) {}
        }
    }
    bss.check().unwrap();
    assert_eq!(bss.airtime(end).total(), span);
    (delivered * FULL_LEN * 8) as f64 / span.as_secs_f64()
}

/// Bianchi's throughput for basic access, equations 7, 9 and 13.
fn model(standard: Standard, edca: EdcaParameters, stations: u16) -> f64 {
    let (phy, mode) = (standard.phy(), mode(standard));
    let n = f64::from(stations);
    let window = f64::from(edca.cw_min + 1);
    let stages = f64::from((edca.cw_max + 1).ilog2() - (edca.cw_min + 1).ilog2());
    let aifs = phy.sifs + phy.slot * u64::from(edca.aifs_slots);
    let tau_of = |p: f64| {
        2.0 * (1.0 - 2.0 * p)
            / ((1.0 - 2.0 * p) * (window + 1.0) + p * window * (1.0 - (2.0 * p).powf(stages)))
    };
    // tau falls as p grows and p grows with tau, so bisection finds the intersection.
    let (mut low, mut high) = (0.0_f64, 0.999);
    for _ in 0..100 {
        let p = (low + high) / 2.0;
        if 1.0 - (1.0 - tau_of(p)).powf(n - 1.0) > p { low = p } else { high = p }
    }
    let tau = tau_of(low);
    let some = 1.0 - (1.0 - tau).powf(n);
    let success = n * tau * (1.0 - tau).powf(n - 1.0);
    let us = |span: Duration| span.as_nanos() as f64 / 1e3;
    let single = phy.aggregation.map_or(0, |limits| limits.single.overhead());
    let data = us(mode.ppdu_duration(single + mpdu_len(phy.mac_header_len(), FULL_LEN as u32)));
    let ack = us(phy.control_mode(&mode).ppdu_duration(ACK_LEN));
    let good = data + us(phy.sifs) + ack + us(aifs);
    let bad = data + us(aifs);
    let slot = (1.0 - some) * us(phy.slot) + success * good + (some - success) * bad;
    success * FULL_LEN as f64 * 8.0 / slot * 1e6
}

#[test]
fn saturation_throughput_is_bianchis() {
    for standard in Standard::ALL {
        for stations in [1, 2, 5, 10, 20, 50] {
            let simulated = simulate(standard, usual(standard), stations, Duration::from_secs(20));
            let model = model(standard, usual(standard), stations);
            let deviation = simulated / model - 1.0;
            println!(
                "{} {stations:>2} stations: model {:6.3} Mb/s, simulated {:6.3} Mb/s, {:+.2} %",
                standard.name(),
                model / 1e6,
                simulated / 1e6,
                deviation * 100.0
            );
            assert!(deviation.abs() < 0.02, "{} with {stations} stations: {deviation:+.4}", standard.name());
        }
    }
}

/// Windows and AIFSN other than the standard's, DCF's and EDCA's. The model assumes that the backoffs of different
/// stations are independent, which does not hold for small windows: `edca.rs` counts their slots.
#[test]
fn other_windows_have_bianchis_throughput_too() {
    let of = |aifs_slots, cw_min, cw_max| EdcaParameters { aifs_slots, cw_min, cw_max };
    let cases = [
        (Standard::A, of(2, 31, 1023)),
        (Standard::N, of(2, 127, 127)),
        (Standard::N, of(2, 63, 1023)),
        (Standard::N, of(7, 31, 255)),
        (Standard::N, of(3, 255, 255)),
    ];
    for (standard, edca) in cases {
        for stations in [1, 2, 5, 20] {
            let simulated = simulate(standard, edca, stations, Duration::from_secs(20));
            let model = model(standard, edca, stations);
            let deviation = simulated / model - 1.0;
            println!("{} {edca:?} {stations:>2} stations: {:+.2} %", standard.name(), deviation * 100.0);
            assert!(deviation.abs() < 0.02, "{edca:?} with {stations} stations: {deviation:+.4}");
        }
    }
}

/// A single station never collides: AIFS, half of CWmin in slots, data, SIFS, ACK.
#[test]
fn a_station_alone_waits_for_aifs_and_half_of_its_window() {
    for (aifs_slots, cw_min) in [(1, 0), (2, 3), (3, 15), (9, 127), (15, 1023)] {
        let edca = EdcaParameters { aifs_slots, cw_min, cw_max: 1023 };
        let simulated = simulate(Standard::N, edca, 1, Duration::from_secs(20));
        // 1538 bytes at 150 Mb/s take 120 us, an ACK at 24 Mb/s 28 us.
        let slots_us = 9.0 * (f64::from(aifs_slots) + f64::from(cw_min) / 2.0);
        let expected = (FULL_LEN * 8) as f64 / (16.0 + slots_us + 120.0 + 16.0 + 28.0) * 1e6;
        assert!((simulated / expected - 1.0).abs() < 0.01, "{edca:?}: {simulated} {expected}");
    }
}
