//! Data from client to client: both hops go through the access point.

use crate::common::*;
use tacit_link::loss::Loss;
use tacit_link::wifi::AirtimeUse;
use tacit_link::wifi::phy::Standard;
use tacit_proto::hack::{Config, Variant};
use tacit_proto::packet::IpVersion;
use tacit_proto::units::{BitRate, Bytes, Duration, Ratio};
use tacit_proto::{fastack, tack, tcp};
use tacit_sim::setup::{ApDriver, Setup, Traffic};
use tacit_sim::{RunOutcome, run};

/// `clients` clients, each of which sends `traffic` to the next.
fn ring(standard: Standard, mbps: u64, clients: u32, traffic: &Traffic) -> Setup {
    let mut setup = wlan(standard, mbps, clients, traffic);
    for (flow, index) in setup.flows.iter_mut().zip(0..) {
        (flow.source, flow.sink) = (client(index), client((index + 1) % clients));
    }
    setup
}

/// The first client sends `traffic` to the second.
fn one_way(standard: Standard, mbps: u64, traffic: &Traffic) -> Setup {
    let mut setup = ring(standard, mbps, 2, traffic);
    setup.flows.truncate(1);
    setup
}

fn goodput_mbps(outcome: &RunOutcome) -> f64 {
    outcome.flows.iter().map(|flow| flow.goodput_bps(outcome.measured)).sum::<f64>() / 1e6
}

/// Datagrams at a rate that both can carry: as many arrive, and each is on the air twice instead of once.
#[test]
fn each_datagram_is_on_the_air_twice() {
    let rate = BitRate::from_mbps(5);
    let datagrams =
        Traffic::Udp { ip: IpVersion::V4, payload: Bytes(1_472), rate: Some(rate), report_after: None };
    let download = run(&wlan(Standard::A, 54, 1, &datagrams)).unwrap();
    let relayed = run(&one_way(Standard::A, 54, &datagrams)).unwrap();
    assert!((goodput_mbps(&relayed) / goodput_mbps(&download) - 1.0).abs() < 0.002);
    let data = |outcome: &RunOutcome| outcome.bss[0].airtime.get(AirtimeUse::Data).as_secs_f64();
    let ratio = data(&relayed) / data(&download);
    assert!((ratio - 2.0).abs() < 0.01, "{ratio}");
}

/// Two hops on one channel: about half of a download, and the wire has no part in it.
#[test]
fn tcp_gets_about_half() {
    for (standard, mbps) in [(Standard::A, 54), (Standard::N, 150), (Standard::Ac, 390)] {
        let traffic = bulk(tcp::Config::default());
        let download = goodput_mbps(&run(&wlan(standard, mbps, 1, &traffic)).unwrap());
        let outcome = run(&one_way(standard, mbps, &traffic)).unwrap();
        let relayed = goodput_mbps(&outcome);
        println!("{standard:?}: {download:.1} Mb/s from the server, {relayed:.1} from client to client");
        assert!((0.4..0.6).contains(&(relayed / download)), "{standard:?}: {relayed} of {download}");
        assert!(outcome.pipes.iter().all(|pipe| pipe.counters.delivered == 0), "{standard:?}");
    }
}

/// An ACK rides from the receiver to the access point, and again from there to the sender.
#[test]
fn compressed_acks_ride_on_both_hops() {
    let stock = one_way(Standard::N, 150, &bulk(tcp::Config::default()));
    let mut hack = stock.clone();
    speak_hack(&mut hack, Config::default());
    let (stock, hack) = (run(&stock).unwrap(), run(&hack).unwrap());
    let gain = goodput_mbps(&hack) / goodput_mbps(&stock) - 1.0;
    println!("{:.1} to {:.1} Mb/s", goodput_mbps(&stock), goodput_mbps(&hack));
    assert!(gain > 0.03, "{gain}");
    let of = |station: usize| hack.bss[0].stations[station].driver.hack().unwrap();
    let [ap, sender, receiver] = [0, 1, 2].map(of);
    assert!(receiver.compressed_acks > 5_000 && sender.compressed_acks == 0);
    // On the second hop ACKs go as packets where the sender's data is short of a queue.
    assert!(ap.compressed_acks * 2 > receiver.compressed_acks, "{ap:?} {receiver:?}");
}

/// Whatever is lost on either hop, no ACK is made that nobody sent, and the data goes on. The world checks the first.
#[test]
fn losses_on_both_hops_leave_every_scheme_whole() {
    let tenth = || Loss::Bernoulli(Ratio::from_fraction(0.1).unwrap());
    let variants = [Variant::MoreData, Variant::Opportunistic, Variant::Timer(Duration::from_millis(5))];
    let schemes = variants.map(|variant| Some(Config { variant, ..Config::default() }));
    for (seed, scheme) in (1..).zip(schemes.into_iter().chain([None]).cycle().take(12)) {
        let mut setup = ring(Standard::N, 150, 3, &bulk(tcp::Config::default()));
        setup.seed = seed;
        setup.duration = Duration::from_secs(4);
        for station in &mut setup.bss[0].config.stations {
            station.downlink_loss = tenth();
            station.uplink_loss = tenth();
            station.link_ack_loss = tenth();
        }
        if let Some(config) = scheme {
            speak_hack(&mut setup, config);
        }
        let outcome = run(&setup).unwrap();
        for flow in &outcome.flows {
            assert!(
                flow.goodput_bps(outcome.measured) > 3e6,
                "seed {seed}, {scheme:?}: {:?}",
                flow.delivered
            );
        }
    }
}

#[test]
fn fastack_answers_the_client_that_sends() {
    let mut setup = one_way(Standard::N, 150, &bulk(tcp::Config::default()));
    let stock = run(&setup).unwrap();
    setup.bss[0].access_point.driver = ApDriver::FastAck(fastack::Config::USUAL);
    let outcome = run(&setup).unwrap();
    let counters = outcome.bss[0].stations[0].driver.fastack().unwrap();
    println!("{:.1} to {:.1} Mb/s, {counters:?}", goodput_mbps(&stock), goodput_mbps(&outcome));
    assert!(counters.forged_acks > 1_000, "{counters:?}");
    assert!(goodput_mbps(&outcome) > 0.9 * goodput_mbps(&stock));
}

#[test]
fn tack_needs_fewer_acks_on_both_hops() {
    let stock = run(&one_way(Standard::N, 150, &bulk(tcp::Config::default()))).unwrap();
    let traffic = Traffic::Connection { config: tack::Config::default().into(), size: None };
    let tack = run(&one_way(Standard::N, 150, &traffic)).unwrap();
    let acks = |outcome: &RunOutcome| outcome.flows[0].receiver.unwrap().acks_sent;
    assert!(goodput_mbps(&tack) > goodput_mbps(&stock), "{} {}", goodput_mbps(&tack), goodput_mbps(&stock));
    assert!(acks(&tack) * 10 < acks(&stock), "{} {}", acks(&tack), acks(&stock));
}
