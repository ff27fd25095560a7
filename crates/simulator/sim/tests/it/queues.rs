//! Effects of the access point's queue on the flows that share it.

use crate::common::*;
use tacit_link::QueueConfig;
use tacit_link::queue::{CoDelConfig, Discipline, FqCoDelConfig};
use tacit_link::wifi::phy::Standard;
use tacit_packet::IpVersion;
use tacit_packet::units::{BitRate, Bytes};
use tacit_sim::setup::{Setup, Traffic};
use tacit_sim::{RunOutcome, run};
use tacit_tcp as tcp;

/// One download, and a low-rate flow of datagrams to the same client, through a queue of 200 packets at 13 Mb/s.
fn shared(discipline: Discipline) -> Setup {
    let mut setup = wlan(Standard::N, 13, 1, &bulk(tcp::Config::default()));
    let mut trickle = setup.flows[0].clone();
    trickle.traffic = Traffic::Udp {
        ip: IpVersion::V4,
        payload: Bytes(172),
        rate: Some(BitRate::from_kbps(69)),
        report_after: None,
        send_buffer: None,
    };
    setup.flows.push(trickle);
    setup.bss[0].config.stations[0].downlink_queue = QueueConfig { limit: packets(200), discipline };
    setup
}

fn access_point(outcome: &RunOutcome) -> &tacit_sim::record::StationOutcome {
    &outcome.bss[0].stations[0]
}

#[test]
fn codel_keeps_the_rate_and_not_the_queue() {
    let tail = run(&shared(Discipline::DropTail)).unwrap();
    let codel = run(&shared(Discipline::CoDel(CoDelConfig::MAC80211))).unwrap();
    let fq = run(&shared(Discipline::FqCoDel(FqCoDelConfig::MAC80211))).unwrap();
    let delay_us = |outcome: &RunOutcome| access_point(outcome).queueing_delay_us.p50;
    assert!(delay_us(&tail) > 60_000, "{} us without CoDel", delay_us(&tail));
    for managed in [&codel, &fq] {
        assert!(delay_us(managed) < 40_000, "{} us", delay_us(managed));
        assert!(access_point(managed).counters.queue_discards > 0);
        let kept = managed.flows[0].delivered.0 as f64 / tail.flows[0].delivered.0 as f64;
        assert!(kept > 0.95, "{kept} of the goodput");
    }
    assert_eq!(access_point(&tail).counters.queue_discards, 0);
}

#[test]
fn drop_tail_is_the_default_and_changes_nothing() {
    let setup = shared(Discipline::DropTail);
    let mut plain = setup.clone();
    plain.bss[0].config.stations[0].downlink_queue = packets(200).into();
    assert_eq!(run(&setup).unwrap().digest, run(&plain).unwrap().digest);
}

#[test]
fn ecn_flows_lose_nothing_where_others_lose() {
    let through_codel = |ecn: bool| {
        let config = tcp::Config { ecn, ..tcp::Config::default() };
        let mut setup = shared(Discipline::CoDel(CoDelConfig::MAC80211));
        setup.flows[0].traffic = bulk(config);
        run(&setup).unwrap()
    };
    let (plain, capable) = (through_codel(false), through_codel(true));
    let retransmitted = |outcome: &RunOutcome| outcome.flows[0].sender.unwrap().packets_retransmitted;
    assert_eq!(access_point(&plain).queue_marks, 0);
    assert!(retransmitted(&plain) > 0);
    assert!(access_point(&capable).queue_marks > 0);
    assert_eq!(retransmitted(&capable), 0);
    // A mark has the same effect as a loss (RFC 3168 section 6.1.2), so the queue is equally short.
    let delay_us = access_point(&capable).queueing_delay_us.p50;
    assert!(delay_us < 40_000, "{delay_us} us");
    let kept = capable.flows[0].delivered.0 as f64 / plain.flows[0].delivered.0 as f64;
    assert!(kept > 0.98, "{kept} of the goodput");
}
