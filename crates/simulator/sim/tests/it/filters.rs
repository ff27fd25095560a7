//! Gains of ACK filters, and completeness of files behind them.

use crate::common::*;
use tacit_between::ack_hold::{AckHoldConfig, HoldLaw};
use tacit_between::hack;
use tacit_link::loss::Loss;
use tacit_link::queue::AckFilter;
use tacit_link::wifi::phy::Standard;
use tacit_link::wired::Service;
use tacit_packet::units::{BitRate, Bytes, Duration, Instant};
use tacit_sim::setup::{ApDriver, ClientDriver, Traffic};
use tacit_sim::{RunOutcome, Setup, run};
use tacit_tcp as tcp;

/// A downlink of 8 Mb/s with ACKs over 50 kb/s, and a window of twice the bandwidth-delay product.
fn slow_uplink(filter: AckFilter) -> RunOutcome {
    let config = tcp::Config { receive_buffer: Bytes(128 << 10), ..tcp::Config::default() };
    let mut setup = wired(BitRate::from_mbps(8), Duration::from_millis(25), 100, Loss::None, bulk(config));
    setup.wired[0].backward.service = Service::Rate(BitRate::from_kbps(50));
    setup.wired[0].backward.ack_filter = filter;
    setup.duration = Duration::from_secs(40);
    setup.measure_from = Instant::ZERO + Duration::from_secs(10);
    run(&setup).unwrap()
}

#[test]
fn a_filter_at_a_slow_uplink_frees_the_downlink() {
    let plain = slow_uplink(AckFilter::Off);
    // An ACK of 52 bytes per two segments of 1448 bytes: 55.7 times the uplink.
    let bound = 50e3 / (52.0 * 8.0) * 2.0 * 1_448.0 * 8.0;
    assert!((0.9..1.01).contains(&(plain.goodput_bps() / bound)), "{} of {bound}", plain.goodput_bps());
    for filter in [AckFilter::Cake, AckFilter::CakeAggressive] {
        let filtered = slow_uplink(filter);
        let share = filtered.goodput_bps() / (8e6 * 1_448.0 / 1_500.0);
        assert!(share > 0.9, "{filter:?}: {share} of the downlink");
        let [down, up] = [0, 1].map(|pipe| filtered.pipes[pipe].counters);
        assert!(up.filtered_acks > up.delivered && up.dropped == 0, "{up:?}");
        assert_eq!(down.filtered_acks, 0);
        // Two or three packets wait, 8.3 ms each.
        assert!(filtered.pipes[1].queueing_delay_us.max < 30_000, "{:?}", filtered.pipes[1]);
    }
}

/// Unlike a filter of a queue, it holds one ACK before the queue, which is then empty.
#[test]
fn an_ack_that_waits_before_a_slow_uplink_frees_the_downlink() {
    let thinned = slow_uplink(AckFilter::Thin);
    let share = thinned.goodput_bps() / (8e6 * 1_448.0 / 1_500.0);
    println!("{share:.3} of the downlink; {:?}", thinned.pipes[1]);
    assert!(share > 0.9, "{share} of the downlink");
    let up = thinned.pipes[1].counters;
    assert!(up.filtered_acks > up.delivered && up.dropped == 0, "{up:?}");
    assert!(thinned.pipes[1].queueing_delay_us.p50 < 9_000, "{:?}", thinned.pipes[1]);
}

/// Where the uplink is fast, no ACK waits.
#[test]
fn a_fast_uplink_is_not_thinned() {
    let thinned = |filter| {
        let config = bulk(tcp::Config::default());
        let mut setup = wired(BitRate::from_mbps(8), Duration::from_millis(25), 100, Loss::None, config);
        setup.wired[0].backward.ack_filter = filter;
        setup.duration = Duration::from_secs(10);
        run(&setup).unwrap()
    };
    let (plain, thin) = (thinned(AckFilter::Off), thinned(AckFilter::Thin));
    assert_eq!(thin.pipes[1].counters.filtered_acks, 0);
    assert_eq!(plain.flows[0].delivered_total, thin.flows[0].delivered_total);
}

/// A download by each of ten stations, whose ACKs contend.
fn crowd(change: impl Fn(&mut Setup)) -> (RunOutcome, u64) {
    let mut setup = wlan(Standard::N, 150, 10, &bulk(tcp::Config::default()));
    change(&mut setup);
    let outcome = run(&setup).unwrap();
    let filtered = outcome.bss[0]
        .stations
        .iter()
        .map(|station| station.counters.filtered_acks + station.driver.held_and_dropped_acks());
    let filtered = filtered.sum();
    (outcome, filtered)
}

/// Pure ACKs on the air, and PPDUs that contain only pure ACKs.
fn acks_and_ppdus(outcome: &RunOutcome) -> [f64; 2] {
    let stations = || outcome.bss[0].stations.iter().map(|station| &station.counters);
    let sums: [u64; 2] = [
        stations().map(|counts| counts.tcp_acks_on_air).sum(),
        stations().map(|counts| counts.tcp_ack_ppdus).sum(),
    ];
    sums.map(|sum| sum as f64)
}

#[test]
fn filters_in_queues_thin_acks_and_gain_a_little() {
    let (stock, none) = crowd(|_| {});
    assert_eq!(none, 0);
    for filter in [AckFilter::Cake, AckFilter::CakeAggressive, AckFilter::Replace] {
        let (outcome, filtered) = crowd(|setup| setup.bss[0].config.station_ack_filter = filter);
        let [acks, ppdus] =
            [0, 1].map(|which| acks_and_ppdus(&outcome)[which] / acks_and_ppdus(&stock)[which]);
        let gain = outcome.goodput_bps() / stock.goodput_bps();
        println!("{filter:?}: {acks:.3} of the ACKs in {ppdus:.3} of the PPDUs, {gain:.3} of the goodput");
        assert!(filtered > 1_000 && acks < 0.3, "{filter:?}: {filtered} filtered, {acks} on the air");
        assert!((1.0..1.1).contains(&gain), "{filter:?}: {gain}");
    }
}

/// The segments of an aggregate are acknowledged in one PPDU; the ACKs that a driver holds back are sent later in
/// another one, which contends separately.
#[test]
fn acks_that_are_held_back_cost_more_ppdus_than_they_save() {
    let (stock, _) = crowd(|_| {});
    let (held, filtered) = crowd(|setup| {
        setup.bss[0]
            .set_drivers(ApDriver::Stock, ClientDriver::AckHold(HoldLaw::Fixed(AckHoldConfig::USUAL)));
    });
    let [acks, ppdus] = [0, 1].map(|which| acks_and_ppdus(&held)[which] / acks_and_ppdus(&stock)[which]);
    let gain = held.goodput_bps() / stock.goodput_bps();
    println!("{acks:.3} of the ACKs in {ppdus:.3} of the PPDUs, {gain:.3} of the goodput");
    assert!(filtered > 1_000 && acks < 0.3, "{filtered} filtered, {acks} on the air");
    assert!(ppdus > 1.2 && gain < 1.0, "{ppdus} of the PPDUs, {gain} of the goodput");
}

#[test]
fn thinning_at_stations_does_no_harm() {
    for stations in [1, 10] {
        let with = |driver| {
            let mut setup = wlan(Standard::N, 150, stations, &bulk(tcp::Config::default()));
            setup.bss[0].set_drivers(ApDriver::Stock, driver);
            run(&setup).unwrap().goodput_bps()
        };
        let gain = with(ClientDriver::AckHold(HoldLaw::Thin)) / with(ClientDriver::Stock);
        println!("{stations} stations: {gain:.3} of the goodput");
        assert!(gain > 0.99, "{stations} stations: {gain}");
    }
}

#[test]
fn a_queue_of_a_station_cannot_thin() {
    let mut setup = wlan(Standard::N, 150, 1, &bulk(tcp::Config::default()));
    setup.bss[0].config.station_ack_filter = AckFilter::Thin;
    assert!(run(&setup).unwrap_err().to_string().contains("not in a client's driver"));
}

#[test]
fn files_arrive_whole_behind_every_filter_and_loss() {
    let file = Traffic::Connection { config: tcp::Config::default().into(), size: Some(Bytes(2_000_000)) };
    for filter in [AckFilter::Cake, AckFilter::CakeAggressive, AckFilter::Replace, AckFilter::Thin] {
        let mut setup = wlan(Standard::N, 150, 3, &file);
        let config = &mut setup.bss[0].config;
        match filter {
            AckFilter::Thin => {
                setup.bss[0].set_drivers(ApDriver::Stock, ClientDriver::AckHold(HoldLaw::Thin));
            }
            _ => (config.ap_ack_filter, config.station_ack_filter) = (filter, filter),
        }
        setup.wired[0].backward.ack_filter = filter;
        setup.wired[0].backward.service = Service::Rate(BitRate::from_kbps(300));
        setup.wired[0].forward.loss = Loss::Scripted((100..4_000).step_by(90).collect());
        (setup.measure_from, setup.duration) = (Instant::ZERO, Duration::from_secs(20));
        let outcome = run(&setup).unwrap();
        assert!(outcome.flows.iter().all(|flow| flow.completed_at.is_some()), "{filter:?}");
        assert!(outcome.pipes[1].counters.filtered_acks > 100, "{filter:?}: {:?}", outcome.pipes[1]);
    }
}

#[test]
fn acks_do_not_ride_and_get_filtered_too() {
    let mut setup = wlan(Standard::N, 150, 1, &bulk(tcp::Config::default()));
    speak_hack(&mut setup, hack::Config::default());
    assert!(run(&setup).is_ok());
    setup.bss[0].config.station_ack_filter = AckFilter::Replace;
    assert!(run(&setup).unwrap_err().to_string().contains("filters the ACKs"));
}
