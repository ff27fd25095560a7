//! Saturation throughput against Bianchi's model of DCF (IEEE JSAC 18(3), 2000).
//!
//! Everybody has something to send to the access point all the time. The model assumes that frames
//! are never given up and that after a collision everybody waits as long as after a success, so the
//! channel is set up that way: no retry limit, no EIFS.

use crate::common::{BLOB, Blob, channel, short_queue};
use tacit_link::wifi::phy::{ACK_LEN, Mode, Standard, mpdu_len};
use tacit_link::wifi::{BssConfig, StationConfig, StationId};
use tacit_proto::units::{BitRate, Duration, Instant};

fn mode(standard: Standard) -> Mode {
    let kbps = match standard {
        Standard::A | Standard::G => 54_000,
        Standard::B => 11_000,
        Standard::N => 150_000,
        Standard::Ac => 866_700,
    };
    Mode::for_rate(standard, BitRate::from_kbps(kbps)).unwrap()
}

/// Bits of payload per second that `stations` get through in `span`.
fn simulate(standard: Standard, stations: u16, span: Duration) -> f64 {
    let station = StationConfig { uplink_queue: short_queue(), ..StationConfig::new(mode(standard)) };
    let config = BssConfig {
        ampdu_mpdus: Some(1),
        beacon_interval: None,
        retry_limit: u32::MAX,
        lifetime: Duration::from_secs(3600),
        eifs: false,
        ..BssConfig::new(standard, vec![station; usize::from(stations)])
    };
    let end = Instant::ZERO + span;
    let mut bss = channel(config, 1, "bianchi", span);
    for id in (1..=stations).map(|id| StationId(id).first_function()) {
        while bss.enqueue(Instant::ZERO, id, StationId::AP.first_function(), Blob) {}
    }
    let mut delivered = 0_u64;
    while let Some(now) = bss.poll_timeout().filter(|now| *now < end) {
        bss.handle_timeout(now);
        while bss.poll_deliver().is_some() {
            delivered += 1;
        }
        while let Some((id, _)) = bss.poll_drained() {
            while bss.enqueue(now, id, StationId::AP.first_function(), Blob) {}
        }
    }
    bss.check().unwrap();
    assert_eq!(bss.airtime(end).total(), span);
    (delivered * BLOB * 8) as f64 / span.as_secs_f64()
}

/// Bianchi's throughput, equations 7, 9 and 13, for basic access.
fn model(standard: Standard, stations: u16) -> f64 {
    let (phy, mode) = (standard.phy(), mode(standard));
    let n = f64::from(stations);
    let window = f64::from(phy.cw_min + 1);
    let stages = f64::from((phy.cw_max + 1).ilog2() - (phy.cw_min + 1).ilog2());
    let tau_of = |p: f64| {
        2.0 * (1.0 - 2.0 * p)
            / ((1.0 - 2.0 * p) * (window + 1.0) + p * window * (1.0 - (2.0 * p).powf(stages)))
    };
    // tau falls as p grows and p grows with tau: bisect the crossing.
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
    let data = us(mode.ppdu_duration(single + mpdu_len(phy.mac_header_len(), BLOB as u32)));
    let ack = us(phy.control_mode(&mode).ppdu_duration(ACK_LEN));
    let good = data + us(phy.sifs) + ack + us(phy.aifs());
    let bad = data + us(phy.aifs());
    let slot = (1.0 - some) * us(phy.slot) + success * good + (some - success) * bad;
    success * BLOB as f64 * 8.0 / slot * 1e6
}

#[test]
fn saturation_throughput_is_bianchis() {
    for standard in Standard::ALL {
        for stations in [1, 2, 5, 10, 20, 50] {
            let simulated = simulate(standard, stations, Duration::from_secs(20));
            let model = model(standard, stations);
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
