//! Runs with results that are known in advance.

use crate::common::*;
use tacit_link::PayloadClass;
use tacit_link::loss::Loss;
use tacit_link::wifi::phy::Standard;
use tacit_link::wifi::{Airtime, AirtimeUse};
use tacit_link::wired::Service;
use tacit_packet::units::{BitRate, Bytes, Duration, Instant};
use tacit_sim::record::StationOutcome;
use tacit_sim::setup::Traffic;
use tacit_sim::{Setup, run};
use tacit_tcp as tcp;

/// Payload of a full segment: 1500 bytes minus IPv4, TCP and timestamps.
const MSS: f64 = 1448.0;

#[track_caller]
fn assert_near(measured: f64, expected: f64, tolerance: f64) {
    let deviation = measured / expected - 1.0;
    assert!(deviation.abs() <= tolerance, "{measured:.0} is {:+.2} % off {expected:.0}", deviation * 100.0);
}

#[test]
fn goodput_is_the_smaller_of_window_per_round_trip_and_bottleneck() {
    for (window_kb, delay_ms, mbps) in
        [(64, 10, 100), (64, 40, 20), (256, 10, 100), (1024, 50, 50), (2048, 20, 1000), (16, 5, 10)]
    {
        let window = window_kb << 10;
        let rate = BitRate::from_mbps(mbps);
        let config = tcp::Config { receive_buffer: Bytes(window), ..tcp::Config::default() };
        let delay = Duration::from_millis(delay_ms);
        let setup = wired(rate, delay, 10_000, Loss::None, bulk(config));
        // A window of whole pairs of segments, because each ACK is for two; the round trip includes the transmission of
        // one segment and its ACK.
        let in_flight = (window as f64 / (2.0 * MSS)).floor() * 2.0 * MSS;
        let round_trip = 2.0 * delay.as_secs_f64() + 1566.0 * 8.0 / rate.as_bps() as f64;
        let by_window = in_flight * 8.0 / round_trip;
        let by_link = rate.as_bps() as f64 * MSS / 1500.0;
        let outcome = run(&setup).unwrap();
        println!(
            "{window_kb} KiB over {delay_ms} ms at {mbps} Mb/s: {:.3} Mb/s",
            outcome.goodput_bps() / 1e6
        );
        assert_near(outcome.goodput_bps(), by_window.min(by_link), 0.02);
    }
}

#[test]
fn a_file_arrives_whole_and_the_connection_ends() {
    let size = Bytes(25_000_000);
    let traffic = Traffic::Connection { config: tcp::Config::default().into(), size: Some(size) };
    let setup = wlan(Standard::N, 150, 1, &traffic);
    let outcome = run(&setup).unwrap();
    assert_eq!(outcome.flows[0].delivered_total, size);
    let took = outcome.flows[0].completed_at.unwrap() - Instant::ZERO;
    assert!((1.6..2.2).contains(&took.as_secs_f64()), "{took}");
}

#[test]
fn constant_bit_rate_is_constant() {
    let traffic = Traffic::Udp {
        ip: tacit_packet::IpVersion::V6,
        payload: Bytes(1000),
        rate: Some(BitRate::from_mbps(8)),
        report_after: None,
        send_buffer: None,
    };
    let outcome = run(&wlan(Standard::A, 54, 2, &traffic)).unwrap();
    for flow in &outcome.flows {
        assert_near(flow.goodput_bps(outcome.measured), 8e6, 0.001);
    }
}

/// Ten full queues hold more than 500 ms of channel time: if a station does not get the channel for that long, all of
/// its packets have expired by its turn, and its queue is filled again.
#[test]
fn saturating_uploads_outlive_their_packets() {
    let mut setup = wlan(Standard::N, 150, 10, &saturating(1500));
    for flow in &mut setup.flows {
        (flow.source, flow.sink) = (flow.sink, flow.source);
    }
    let outcome = run(&setup).unwrap();
    let expired: u64 = outcome.bss[0].stations.iter().map(|station| station.counters.mpdus_dropped).sum();
    assert!(expired > 1_000, "{expired} packets were too old");
    for flow in &outcome.flows {
        let mbps = flow.goodput_bps(outcome.measured) / 1e6;
        assert!(mbps > 2.0, "{mbps} Mb/s");
    }
}

#[test]
fn saturating_flows_share_evenly() {
    let outcome = run(&wlan(Standard::N, 150, 5, &saturating(1500))).unwrap();
    let mean = outcome.goodput_bps() / 5.0;
    for flow in &outcome.flows {
        assert_near(flow.goodput_bps(outcome.measured), mean, 0.02);
    }
}

#[test]
fn airtime_adds_up_to_the_window_exactly() {
    for standard in Standard::ALL {
        let mut setup = wlan(standard, usual_mbps(standard), 3, &bulk(tcp::Config::default()));
        // A window that starts and ends in the middle of exchanges.
        setup.measure_from = Instant::from_nanos(1_234_567_891);
        setup.duration = Duration::from_nanos(3_456_789_123);
        let outcome = run(&setup).unwrap();
        let airtime = outcome.bss[0].airtime;
        let sum: Duration = AirtimeUse::ALL.into_iter().map(|what| airtime.get(what)).sum();
        assert_eq!(sum, outcome.measured);
        assert!(airtime.get(AirtimeUse::TcpAck) > Duration::ZERO);
    }
}

/// Airtime is charged to stations completely, and only once.
#[test]
fn airtime_of_stations_adds_up_to_that_of_the_channel() {
    for standard in Standard::ALL {
        let setup = wlan(standard, usual_mbps(standard), 3, &bulk(tcp::Config::default()));
        let outcome = run(&setup).unwrap();
        let channel = &outcome.bss[0];
        for what in AirtimeUse::ALL {
            let spent: Duration = channel.stations.iter().map(|station| station.airtime.get(what)).sum();
            let booked = channel.airtime.get(what);
            match what {
                AirtimeUse::Idle => assert_eq!(spent, Duration::ZERO, "no station is charged for quiet"),
                // An access that is cut off by the end of the run has neither a winner nor a responder.
                AirtimeUse::Acquisition => {
                    assert!(
                        spent <= booked && booked - spent < Duration::from_micros(500),
                        "{spent} {booked}"
                    );
                }
                _ => assert_eq!(spent, booked, "{what:?}"),
            }
        }
        let [access_point, clients @ ..] = &channel.stations[..] else { panic!("stations") };
        let acks = |station: &StationOutcome| *station.airtime.of_class(PayloadClass::Ack);
        assert_eq!(acks(access_point), Airtime::default(), "downloads are acknowledged by the clients");
        for client in clients {
            assert!(acks(client).get(AirtimeUse::Acquisition) > Duration::ZERO);
            // A retry takes more slots than a first attempt, and no wait is longer than all drawn slots together.
            assert!(acks(client).get(AirtimeUse::Acquisition) < client.counters.tcp_ack_backoff * 2);
            assert_eq!(client.airtime.of_class(PayloadClass::Data).get(AirtimeUse::Data), Duration::ZERO);
        }
    }
}

/// One ACK per pair of segments of 1500 bytes at 54 Mb/s, without contention: the airtime of each ACK equals the
/// calculated value.
#[test]
fn an_ack_costs_its_bytes_a_backoff_and_a_link_layer_ack() {
    let mut setup = wlan(Standard::A, 54, 1, &bulk(tcp::Config::default()));
    setup.bss[0].config.beacon_interval = None;
    // A wire so slow that no data waits at the access point while an ACK does.
    setup.wired[0].forward.service = Service::Rate(BitRate::from_mbps(1));
    setup.duration = Duration::from_secs(20);
    let client = &run(&setup).unwrap().bss[0].stations[1];
    let acks = client.counters.tcp_ack_ppdus;
    assert!(acks > 500, "{acks}");
    assert_eq!(client.counters.tcp_ack_bytes, acks * 52, "IPv4, TCP and timestamps");
    assert_eq!(client.counters.tcp_ack_byte_time.as_nanos() / acks, (52_u64 * 8 * 1_000).div_ceil(54));
    let airtime = client.airtime.of_class(PayloadClass::Ack);
    // 16 + 8 * 88 + 6 bits in four symbols of 216 bits; SIFS and an ACK of 28 us.
    assert_eq!(airtime.get(AirtimeUse::TcpAck), Duration::from_micros(36) * acks);
    assert_eq!(airtime.get(AirtimeUse::LinkAck), Duration::from_micros(16 + 28) * acks);
    // Without contention it only waits for its own backoff; the mean of 0 to 15 slots is 7.5.
    let acquisition = airtime.get(AirtimeUse::Acquisition);
    assert_eq!(acquisition, client.counters.tcp_ack_backoff);
    assert_near((acquisition.as_nanos() / acks) as f64, 34_000.0 + 7.5 * 9_000.0, 0.05);
}

#[test]
fn uploads_work_like_downloads() {
    let mut setup = wlan(Standard::N, 150, 2, &bulk(tcp::Config::default()));
    let down = run(&setup).unwrap().goodput_bps();
    for flow in &mut setup.flows {
        std::mem::swap(&mut flow.source, &mut flow.sink);
    }
    let up = run(&setup).unwrap().goodput_bps();
    // Two uploading stations contend, whereas one access point serves two clients alternately.
    assert!((0.8..1.15).contains(&(up / down)), "{up} up, {down} down");
}

#[test]
fn a_stopped_flow_gives_way() {
    let mut setup = wlan(Standard::N, 150, 2, &bulk(tcp::Config::default()));
    setup.flows[1].stop = Some(Instant::ZERO + Duration::from_secs(1));
    let outcome = run(&setup).unwrap();
    assert_eq!(outcome.flows[1].delivered, Bytes(0), "stopped before measuring began");
    assert!(outcome.flows[0].goodput_bps(outcome.measured) > 100e6);
}

#[test]
fn setups_that_contradict_themselves_are_refused() {
    let good = wlan(Standard::N, 150, 1, &bulk(tcp::Config::default()));
    let refusal = |change: fn(&mut Setup)| {
        let mut setup = good.clone();
        change(&mut setup);
        run(&setup).unwrap_err().to_string()
    };
    assert_eq!(
        [
            refusal(|setup| setup.measure_from = Instant::ZERO + Duration::from_secs(60)),
            refusal(|setup| setup.sample_interval = Some(Duration::ZERO)),
            refusal(|setup| setup.flows[0].sink = tacit_packet::units::HostId(9)),
            refusal(|setup| setup.flows[0].sink = SERVER),
            refusal(|setup| setup.wired.clear()),
            refusal(|setup| setup.bss[0].clients.clear()),
        ],
        [
            "measuring starts at or after the end of the run",
            "a sample interval of zero",
            "flow 0 joins hosts that do not exist: there are 3",
            "flow 0 goes from host0 to itself",
            "there is no way from host0 to host2",
            "basic service set 0 has 0 clients and settings for 1",
        ]
    );
}
