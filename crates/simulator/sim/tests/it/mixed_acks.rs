//! Stations with and without link-layer ACKs on one channel.

use crate::common::*;
use tacit_between::hack;
use tacit_link::Loss;
use tacit_link::wifi::phy::Standard;
use tacit_link::wifi::{AmsduLimit, BothWays, LinkAcks, Protection, StreamQueues};
use tacit_packet::units::{Duration, Ratio};
use tacit_sim::setup::ClientDriver;
use tacit_sim::{Setup, run};
use tacit_tcp as tcp;

const UPLINK_ONLY: BothWays<LinkAcks> = BothWays { down: LinkAcks::None, up: LinkAcks::Normal };

/// 20 downloads that lose 1 % of MPDUs; every other one has no acknowledgments on its downlink.
fn twenty() -> Setup {
    let mut setup = wlan(Standard::N, 150, 20, &bulk(tcp::Config::default()));
    for (station, number) in setup.bss[0].config.stations.iter_mut().zip(0..) {
        station.downlink_loss = Loss::Bernoulli(Ratio::from_parts_per_billion(10_000_000).unwrap());
        if number % 2 == 0 {
            station.link_acks = UPLINK_ONLY;
        }
    }
    setup.duration = Duration::from_secs(4);
    setup
}

/// TCP/HACK works together with clients without Block Acks: ACKs of clients with Block Acks are appended, those of the
/// others are packets, and only the others' TCP sees the channel's losses.
#[test]
fn hack_works_beside_clients_without_acknowledgments() {
    let mut setup = twenty();
    speak_hack(&mut setup, hack::Config::default());
    let set = &mut setup.bss[0];
    for (client, station) in set.clients.iter_mut().zip(&set.config.stations) {
        if station.link_acks == UPLINK_ONLY {
            client.driver = ClientDriver::Stock;
        }
    }
    let outcome = run(&setup).unwrap();
    let clients = outcome.bss[0].stations[1..].iter();
    for ((client, flow), number) in clients.zip(&outcome.flows).zip(0..) {
        let sender = flow.sender.unwrap();
        if number % 2 == 0 {
            assert!(
                client.driver.hack().is_none() && sender.packets_retransmitted > 0,
                "{number}: {sender:?}"
            );
        } else {
            assert!(client.driver.hack().unwrap().compressed_acks > 10, "{number}");
            assert_eq!(sender.timeouts, Some(0), "{number}");
        }
    }
    // Without acknowledgment the access point counts an MPDU as sent.
    let access_point = &outcome.bss[0].stations[0].counters;
    assert!(access_point.unacknowledged > 100 && access_point.retries > 100, "{access_point:?}");
}

/// Counts are consistent and every client gets some throughput, with aggregates of any kind. It is low without
/// acknowledgments: aggregates that collide with ACKs of 20 clients are lost completely, and only TCP notices.
#[test]
fn twenty_mixed_clients_all_get_something() {
    for (ampdu_mpdus, amsdu) in
        [(None, None), (Some(32), None), (Some(1), Some(AmsduLimit::Bytes7935)), (Some(1), None)]
    {
        for stream_queues in [StreamQueues::Joint, StreamQueues::Independent] {
            let mut setup = twenty();
            let config = &mut setup.bss[0].config;
            (config.ampdu_mpdus, config.amsdu) = (ampdu_mpdus, amsdu);
            config.stream_queues = stream_queues;
            let outcome = run(&setup).unwrap();
            for flow in &outcome.flows {
                assert!(
                    flow.delivered_total.0 > 20_000,
                    "{ampdu_mpdus:?} {amsdu:?} {stream_queues:?}: {flow:?}"
                );
            }
        }
    }
}

/// Collisions destroy whole aggregates, which the MAC does not retransmit. With RTS they only destroy the RTS.
#[test]
fn an_rts_saves_aggregates_from_collisions() {
    let lost = |protection| {
        let mut setup = twenty();
        setup.bss[0].config.protection = protection;
        let outcome = run(&setup).unwrap();
        let access_point = &outcome.bss[0].stations[0].counters;
        1.0 - access_point.unacknowledged_arrived as f64 / access_point.unacknowledged as f64
    };
    let [bare, behind_rts] = [Protection::None, Protection::RtsCts { above: 0 }].map(lost);
    assert!(bare > 0.1, "{bare}");
    assert!((0.005..0.02).contains(&behind_rts), "{behind_rts}: the channel loses 1 %");
}

/// Incompatible settings are refused, and the error names the client.
#[test]
fn schemes_that_need_link_acks_are_refused_for_stations_without() {
    let mut setup = twenty();
    speak_hack(&mut setup, hack::Config::default());
    let error = run(&setup).unwrap_err().to_string();
    assert!(error.contains("client 1 of basic service set 0"), "{error}");
    let mut setup = twenty();
    setup.bss[0].config.stream_queues = StreamQueues::Independent;
    setup.bss[0].config.rate_control = tacit_link::wifi::RateControl::Minstrel;
    setup.bss[0].config.stations.iter_mut().for_each(|station| station.link_acks = BothWays::default());
    assert!(run(&setup).unwrap_err().to_string().contains("spatial stream"));
}
