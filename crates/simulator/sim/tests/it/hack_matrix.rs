//! TCP/HACK with every combination that it supports: 802.11a and n, IPv4 and IPv6, NewReno and CUBIC, with and without
//! SACK, both directions, several flows per station and several stations.

use crate::common::*;
use tacit_between::hack::{self, Coding, Rule, Variant};
use tacit_congestion::Algorithm;
use tacit_link::AirFrame;
use tacit_link::wifi::StationId;
use tacit_link::wifi::air::Frame;
use tacit_link::wifi::phy::Standard;
use tacit_packet::units::{Bytes, Duration, Instant};
use tacit_packet::{IpVersion, Packet, Transport};
use tacit_sim::{Observer, RunOutcome, Setup, run, run_observed};
use tacit_tcp as tcp;

const VARIANTS: [Variant; 3] =
    [Variant::MoreData, Variant::Opportunistic, Variant::Timer(Duration::from_millis(20))];

/// A window of 256 kB: less than the queues hold, so that nothing is dropped and TCP has no timeout of its own.
fn tcp_config() -> tcp::Config {
    tcp::Config { receive_buffer: Bytes(256 << 10), ..tcp::Config::default() }
}

/// `clients` clients with `flows` downloads each, over links without losses.
fn lossless(
    standard: Standard,
    clients: u32,
    flows: usize,
    config: tcp::Config,
    driver: hack::Config,
) -> Setup {
    let mut setup = wlan(standard, usual_mbps(standard), clients, &bulk(config));
    setup.flows = setup.flows.iter().flat_map(|flow| vec![flow.clone(); flows]).collect();
    speak_hack(&mut setup, driver);
    // Packets in queues do not expire, not even at 11 Mb/s.
    setup.bss[0].config.lifetime = Duration::from_secs(10);
    for station in &mut setup.bss[0].config.stations {
        (station.downlink_queue, station.uplink_queue) = (packets(2_000).into(), packets(2_000).into());
    }
    setup.wired[0].forward.queue = packets(10_000).into();
    // The same number of packets at 11 Mb/s as at other rates.
    setup.duration = Duration::from_secs(if standard == Standard::B { 8 } else { 2 });
    setup.measure_from = Instant::ZERO;
    setup.sample_interval = Some(Duration::from_millis(100));
    setup
}

fn drivers(outcome: &RunOutcome) -> Vec<hack::Counters> {
    outcome.bss[0].stations.iter().filter_map(|station| station.driver.hack()).collect()
}

/// Guarantees of every run without losses, in addition to the invariants checked by the world: held ACKs cause no
/// timeout, and every flow makes progress.
#[track_caller]
fn keeps_its_promises(outcome: &RunOutcome, what: &str) {
    for flow in &outcome.flows {
        let sender = flow.sender.unwrap();
        assert_eq!((sender.timeouts, sender.packets_retransmitted), (Some(0), 0), "{what}: {}", flow.flow);
        assert!(flow.delivered_total > Bytes(500_000), "{what}: {}", flow.flow);
    }
    assert_eq!(drivers(outcome).iter().map(|driver| driver.failed_frames).sum::<u64>(), 0, "{what}");
}

#[test]
fn without_losses_no_variant_times_out_under_any_ip_congestion_control_or_coding() {
    for standard in Standard::ALL {
        for ip in [IpVersion::V4, IpVersion::V6] {
            for congestion in [Algorithm::NewReno, Algorithm::CUBIC] {
                for (variant, coding) in
                    VARIANTS.into_iter().zip([Coding::PerAck, Coding::PerAck, Coding::Batch])
                {
                    let config = tcp::Config { ip, congestion: congestion.into(), ..tcp_config() };
                    let driver = hack::Config { variant, coding, ..hack::Config::default() };
                    let what = format!("{standard:?} {ip:?} {congestion:?} {variant:?}");
                    let outcome = run(&lossless(standard, 2, 1, config, driver)).unwrap();
                    keeps_its_promises(&outcome, &what);
                    let rode: u64 = drivers(&outcome).iter().map(|driver| driver.compressed_acks).sum();
                    assert!(rode > 100, "{what}: {rode} ACKs rode");
                }
            }
        }
    }
}

/// With the airtime rule, too, the sender does not notice that most of its ACKs are missing: there are no
/// retransmissions, and with Linux's window growth as much data arrives as with the paper's rule.
#[test]
fn thinned_acks_are_not_missed_on_any_standard() {
    for standard in Standard::ALL {
        let mut config = tcp_config();
        config.congestion.byte_counting_limit = u32::MAX;
        let delivered_by = |rule| {
            let driver = hack::Config { rule, ..hack::Config::default() };
            let outcome = run(&lossless(standard, 2, 1, config, driver)).unwrap();
            keeps_its_promises(&outcome, &format!("{standard:?} {rule:?}"));
            let thinned = drivers(&outcome).iter().map(|driver| driver.thinned_acks).sum::<u64>();
            let rode = drivers(&outcome).iter().map(|driver| driver.compressed_acks).sum::<u64>();
            let delivered: u64 = outcome.flows.iter().map(|flow| flow.delivered_total.0).sum();
            (thinned, rode, delivered)
        };
        let (none, _, delivered) = delivered_by(Rule::Every);
        let (thinned, rode, thinly) = delivered_by(Rule::Airtime { one_in: 8 });
        assert_eq!(none, 0, "{standard:?}");
        // One MPDU at a time triggers one ACK at a time.
        let aggregates = standard.phy().aggregation.is_some();
        assert!(rode > 50 && (thinned > rode || !aggregates), "{standard:?}: {thinned} gave way to {rode}");
        assert!(thinly * 100 > delivered * 98, "{standard:?}: {thinly} bytes, not {delivered}");
    }
}

#[test]
fn several_flows_of_several_stations_ride_side_by_side() {
    for standard in [Standard::A, Standard::N] {
        let setup = lossless(standard, 3, 3, tcp_config(), hack::Config::default());
        let outcome = run(&Setup { wire: true, ..setup }).unwrap();
        keeps_its_promises(&outcome, &format!("{standard:?}"));
        for flow in &outcome.flows {
            let acks = flow.hack.unwrap();
            assert!(acks.compressed_acks > 5 * acks.native_acks, "{standard:?} {}: {acks:?}", flow.flow);
        }
    }
}

#[test]
fn both_directions_at_once_ride_on_each_others_acknowledgments() {
    for standard in [Standard::A, Standard::N] {
        let mut setup = lossless(standard, 2, 1, tcp_config(), hack::Config::default());
        let uploads = setup.flows.clone().into_iter().map(|mut flow| {
            std::mem::swap(&mut flow.source, &mut flow.sink);
            flow
        });
        setup.flows.extend(uploads.collect::<Vec<_>>());
        let outcome = run(&setup).unwrap();
        keeps_its_promises(&outcome, &format!("{standard:?}"));
        for driver in drivers(&outcome) {
            assert!(
                driver.compressed_acks > 100 && driver.reconstituted_acks > 100,
                "{standard:?} {driver:?}"
            );
        }
    }
}

/// Pure ACKs with SACK blocks that clients sent as packets.
#[derive(Default)]
struct NativeSacks(u64);

impl Observer for NativeSacks {
    fn on_air(&mut self, _: usize, frame: &AirFrame<Packet>) {
        if let (Frame::Data { payload, retry: false, .. }, true) =
            (&frame.frame, frame.transmitter != StationId::AP)
            && let Transport::Tcp(segment) = &payload.transport
            && payload.is_pure_ack()
        {
            self.0 += u64::from(!segment.sack.is_empty());
        }
    }
}

/// A queue that overflows while it remains full: every ACK of the next round trip is a duplicate with SACK blocks. (If
/// a window fits in one A-MPDU no more data is announced, and ACKs are sent as packets.)
#[test]
fn acks_with_sack_blocks_ride_too() {
    for standard in [Standard::A, Standard::N] {
        let sacks = |speaks: bool| {
            let mut setup = lossless(standard, 1, 1, tcp::Config::default(), hack::Config::default());
            setup.bss[0].config.stations[0].downlink_queue = packets(126).into();
            setup.duration = Duration::from_secs(6);
            if !speaks {
                be_stock(&mut setup);
            }
            let mut native = NativeSacks::default();
            let outcome = run_observed(&setup, &mut native).unwrap();
            let sender = outcome.flows[0].sender.unwrap();
            assert!(
                sender.fast_recoveries > Some(0) && sender.timeouts == Some(0),
                "{standard:?}: {sender:?}"
            );
            native.0
        };
        let (native, stock) = (sacks(true), sacks(false));
        assert!(stock > 50, "{standard:?}: {stock}");
        assert!(native * 5 < stock, "{standard:?}: {native} went as packets, {stock} without HACK");
    }
}

/// A station that goes out of reach leaves an unfinished exchange: held and retained ACKs, unanswered requests, a
/// window full of unacknowledged MPDUs.
#[test]
fn a_station_that_walks_away_and_comes_back_goes_on_and_disturbs_nobody() {
    for standard in [Standard::A, Standard::N] {
        let mut setup = lossless(standard, 2, 1, tcp_config(), hack::Config::default());
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        setup.bss[0].config.stations[0].away = Some((at(1_000), at(2_000)));
        setup.duration = Duration::from_secs(6);
        let outcome = run(&setup).unwrap();
        let delivered = |flow: u32, ms| {
            let point = outcome.series.iter().find(|point| point.flow.0 == flow && point.at == at(ms));
            point.unwrap().delivered_total
        };
        assert_eq!(delivered(0, 1_100), delivered(0, 2_000), "{standard:?}: out of reach");
        let (before, after) = (delivered(0, 1_000), delivered(0, 5_900) - delivered(0, 4_900));
        assert!(after.0 > before.0 / 2, "{standard:?}: {after} in a second, {before} in the first");
        assert!(outcome.flows[0].hack.unwrap().compressed_acks > 1_000);
        assert_eq!(outcome.flows[1].sender.unwrap().timeouts, Some(0), "{standard:?}");
    }
}

/// More flows than the driver has contexts for: flows with a context keep it, and the ACKs of others are sent as
/// packets.
#[test]
fn a_hundred_and_twenty_flows_of_a_client_leave_no_frame_undecoded() {
    let driver = hack::Config { coding: Coding::Batch, ..hack::Config::default() };
    let mut setup = lossless(Standard::N, 1, 120, tcp_config(), driver);
    setup.duration = Duration::from_secs(5);
    let outcome = run(&setup).unwrap();
    let [access_point, client] = drivers(&outcome)[..] else { panic!("two drivers") };
    assert_eq!(access_point.failed_frames, 0);
    assert!(client.compressed_acks > 0 && client.native_acks > 0, "{client:?}");
}

/// An opportunistic driver also queues an ACK as a packet, and removes it after it was appended; measuring may start in
/// between.
#[test]
fn no_count_of_a_measured_time_goes_below_zero() {
    for start_us in (300_000..330_000).step_by(500) {
        let driver = hack::Config { variant: Variant::Opportunistic, ..hack::Config::default() };
        let mut setup = lossless(Standard::N, 1, 1, tcp_config(), driver);
        let flow = &mut setup.flows[0];
        std::mem::swap(&mut flow.source, &mut flow.sink);
        setup.measure_from = Instant::ZERO + Duration::from_micros(start_us);
        setup.duration = Duration::from_micros(start_us + 20_000);
        for counted in drivers(&run(&setup).unwrap()) {
            assert!(counted.native_acks <= 1_000, "from {start_us} us: {counted:?}");
        }
    }
}
