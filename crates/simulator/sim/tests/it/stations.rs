//! Data between clients: over two hops through the access point, or over one direct hop.

use crate::common::*;
use tacit_between::fastack;
use tacit_between::hack::{Config, Variant};
use tacit_link::loss::Loss;
use tacit_link::wifi::phy::{Mode, Standard};
use tacit_link::wifi::{AirtimeUse, BssConfig, Decibels, DirectLink, RateControl, StationId, StreamQueues};
use tacit_packet::IpVersion;
use tacit_packet::units::{BitRate, Bytes, Duration, Ratio};
use tacit_sim::setup::{ApDriver, FlowSetup, Setup, Traffic};
use tacit_sim::{RunError, RunOutcome, run};
use tacit_tack_proto as tack;
use tacit_tcp as tcp;

/// `clients` clients, each sending `traffic` to the next one.
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

/// Gives each pair of clients in `setup` that exchange data a direct link like the first client's link to the access
/// point.
fn link_directly(setup: &mut Setup) {
    let set = &mut setup.bss[0];
    let link = set.config.stations[0].clone();
    let station =
        |host| StationId(1 + set.clients.iter().position(|client| client.host == host).unwrap() as u16);
    for flow in &setup.flows {
        let [a, b] = [flow.source, flow.sink].map(station);
        for (from, to) in [(a, b), (b, a)] {
            let links = &mut set.config.direct_links;
            if !links.iter().any(|known| (known.from, known.to) == (from, to)) {
                links.push(DirectLink { from, to, link: link.clone() });
            }
        }
    }
}

/// [`one_way`] over a direct link.
fn direct(standard: Standard, mbps: u64, traffic: &Traffic) -> Setup {
    let mut setup = one_way(standard, mbps, traffic);
    link_directly(&mut setup);
    setup
}

fn goodput_mbps(outcome: &RunOutcome) -> f64 {
    outcome.flows.iter().map(|flow| flow.goodput_bps(outcome.measured)).sum::<f64>() / 1e6
}

/// Datagrams at a rate that both paths can carry: the same number arrives, with two transmissions each instead of one.
#[test]
fn each_datagram_is_on_the_air_twice() {
    let rate = BitRate::from_mbps(5);
    let datagrams = Traffic::Udp {
        ip: IpVersion::V4,
        payload: Bytes(1_472),
        rate: Some(rate),
        report_after: None,
        send_buffer: None,
    };
    let download = run(&wlan(Standard::A, 54, 1, &datagrams)).unwrap();
    let relayed = run(&one_way(Standard::A, 54, &datagrams)).unwrap();
    assert!((goodput_mbps(&relayed) / goodput_mbps(&download) - 1.0).abs() < 0.002);
    let data = |outcome: &RunOutcome| outcome.bss[0].airtime.get(AirtimeUse::Data).as_secs_f64();
    let ratio = data(&relayed) / data(&download);
    assert!((ratio - 2.0).abs() < 0.01, "{ratio}");
}

/// Two hops on one channel: about half of a download's rate, regardless of the wire.
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

/// An ACK is appended from the receiver to the access point, and again from there to the sender.
#[test]
fn compressed_acks_ride_on_both_hops() {
    let stock = one_way(Standard::N, 150, &bulk(tcp::Config::default()));
    let mut hack = stock.clone();
    speak_hack(&mut hack, Config::default());
    let (stock, hack) = (run(&stock).unwrap(), run(&hack).unwrap());
    let gain = goodput_mbps(&hack) / goodput_mbps(&stock) - 1.0;
    println!("{:.1} to {:.1} Mb/s", goodput_mbps(&stock), goodput_mbps(&hack));
    assert!(gain > 0.03, "{gain}");
    let hack_driver = |station: usize| hack.bss[0].stations[station].driver.hack().unwrap();
    let [ap, sender, receiver] = [0, 1, 2].map(hack_driver);
    assert!(receiver.compressed_acks > 5_000 && sender.compressed_acks == 0);
    // On the second hop ACKs are sent as packets if the sender has no queue of data.
    assert!(ap.compressed_acks * 2 > receiver.compressed_acks, "{ap:?} {receiver:?}");
}

/// With losses on both hops no ACK is invented, which the world checks, and the transfer continues.
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

// --- Direct links ----------------------------------------------------------------------------------------------------------

/// The same frames on the air as for a download, and the access point sends only beacons.
#[test]
fn a_datagram_is_on_the_air_once_where_there_is_a_direct_link() {
    let datagrams = Traffic::Udp {
        ip: IpVersion::V4,
        payload: Bytes(1_472),
        rate: Some(BitRate::from_mbps(5)),
        report_after: None,
        send_buffer: None,
    };
    for (standard, mbps) in [(Standard::A, 54), (Standard::N, 150)] {
        let download = run(&wlan(standard, mbps, 1, &datagrams)).unwrap();
        let direct = run(&direct(standard, mbps, &datagrams)).unwrap();
        let used = |outcome: &RunOutcome, what| outcome.bss[0].airtime.get(what).as_secs_f64();
        for what in [AirtimeUse::Data, AirtimeUse::LinkAck] {
            let ratio = used(&direct, what) / used(&download, what);
            assert!((ratio - 1.0).abs() < 0.001, "{standard:?}: {ratio} of {what:?}");
        }
        assert!((goodput_mbps(&direct) / goodput_mbps(&download) - 1.0).abs() < 0.001);
        let access_point = &direct.bss[0].stations[0].counters;
        assert_eq!((access_point.data_ppdus, access_point.link_acks), (0, 0), "{standard:?}");
    }
}

/// One hop: the same rate as a download without a wire's limit, twice the rate through the access point, with every
/// PHY.
#[test]
fn tcp_over_a_direct_link_gets_what_a_download_gets() {
    for (standard, mbps) in
        [(Standard::A, 54), (Standard::B, 11), (Standard::G, 54), (Standard::N, 150), (Standard::Ac, 390)]
    {
        let traffic = bulk(tcp::Config::default());
        let mut download = wlan(standard, mbps, 1, &traffic);
        // The queue of a client's data.
        let station = &mut download.bss[0].config.stations[0];
        station.downlink_queue = station.uplink_queue;
        let download = goodput_mbps(&run(&download).unwrap());
        let relayed = goodput_mbps(&run(&one_way(standard, mbps, &traffic)).unwrap());
        let outcome = run(&direct(standard, mbps, &traffic)).unwrap();
        let direct = goodput_mbps(&outcome);
        println!(
            "{standard:?}: {download:.1} Mb/s from the server, {relayed:.1} relayed, {direct:.1} directly"
        );
        assert!((0.97..1.03).contains(&(direct / download)), "{standard:?}: {direct} for {download}");
        assert!((1.7..2.4).contains(&(direct / relayed)), "{standard:?}: {direct} for {relayed}");
        assert_eq!(
            outcome.bss[0].stations[0].counters.data_ppdus, 0,
            "{standard:?}: the access point relays"
        );
    }
}

/// Other traffic of the same stations has its own queues and goes through the access point.
#[test]
fn packets_to_other_clients_go_through_the_access_point() {
    let mut setup = direct(Standard::N, 150, &bulk(tcp::Config::default()));
    let download = setup.flows[0].clone();
    let ends = [(SERVER, client(0)), (client(1), SERVER), (client(0), client(2))];
    setup.hosts.push("client2".into());
    setup.bss[0].clients.push(client(2).into());
    let station = setup.bss[0].config.stations[0].clone();
    setup.bss[0].config.stations.push(station);
    setup.flows.extend(ends.map(|(source, sink)| FlowSetup { source, sink, ..download.clone() }));
    let outcome = run(&setup).unwrap();
    for flow in &outcome.flows {
        assert!(flow.goodput_bps(outcome.measured) > 5e6, "{} to {}", flow.source, flow.sink);
    }
    // The access point handles three of the four flows, and receives each of their packets once.
    let arrived = |from: usize| outcome.bss[0].stations[from].counters.arrived_bytes;
    let direct = outcome.flows[0].delivered.0;
    assert!(arrived(0) > 0 && arrived(1) > direct, "{} {} {direct}", arrived(0), arrived(1));
}

/// ACKs can be appended to a client's link-layer ACKs as well as to an access point's.
#[test]
fn compressed_acks_ride_on_a_direct_link() {
    let stock = direct(Standard::N, 150, &bulk(tcp::Config::default()));
    let mut hack = stock.clone();
    speak_hack(&mut hack, Config::default());
    let (stock, hack) = (run(&stock).unwrap(), run(&hack).unwrap());
    let gain = goodput_mbps(&hack) / goodput_mbps(&stock) - 1.0;
    println!("{:.1} to {:.1} Mb/s", goodput_mbps(&stock), goodput_mbps(&hack));
    assert!(gain > 0.05, "{gain}");
    let hack_driver = |station: usize| hack.bss[0].stations[station].driver.hack().unwrap();
    let [ap, sender, receiver] = [0, 1, 2].map(hack_driver);
    assert!(receiver.compressed_acks > 10_000 && sender.compressed_acks + ap.compressed_acks == 0);
}

#[test]
fn losses_on_direct_links_leave_every_scheme_whole() {
    let tenth = || Loss::Bernoulli(Ratio::from_fraction(0.1).unwrap());
    let variants = [Variant::MoreData, Variant::Opportunistic, Variant::Timer(Duration::from_millis(5))];
    let schemes = variants.map(|variant| Some(Config { variant, ..Config::default() }));
    for (seed, scheme) in (1..).zip(schemes.into_iter().chain([None])) {
        let mut setup = ring(Standard::N, 150, 3, &bulk(tcp::Config::default()));
        link_directly(&mut setup);
        (setup.seed, setup.duration) = (seed, Duration::from_secs(4));
        for DirectLink { link, .. } in &mut setup.bss[0].config.direct_links {
            (link.uplink_loss, link.link_ack_loss) = (tenth(), tenth());
        }
        if let Some(config) = scheme {
            speak_hack(&mut setup, config);
        }
        let outcome = run(&setup).unwrap();
        let (access_point, clients) = outcome.bss[0].stations.split_first().unwrap();
        assert_eq!(access_point.counters.data_ppdus, 0);
        assert!(clients.iter().all(|client| client.counters.retries > 100), "seed {seed}: nothing is lost");
        for flow in &outcome.flows {
            let mbps = flow.goodput_bps(outcome.measured) / 1e6;
            assert!(mbps > 6.0, "seed {seed}, {scheme:?}: {mbps}");
        }
    }
}

/// The more a direct link loses, the less it carries, with either rate control; losses on other links do not matter.
#[test]
fn a_direct_link_has_its_own_losses() {
    for rate_control in [RateControl::Fixed, RateControl::Minstrel] {
        let at = |direct_db: f64, access_point_db: f64| {
            let mut setup = direct(Standard::N, 65, &bulk(tcp::Config::default()));
            let config = &mut setup.bss[0].config;
            config.rate_control = rate_control;
            config
                .direct_links
                .iter_mut()
                .for_each(|link| link.link.snr = Some(Decibels::from_db(direct_db)));
            config
                .stations
                .iter_mut()
                .for_each(|station| station.snr = Some(Decibels::from_db(access_point_db)));
            goodput_mbps(&run(&setup).unwrap())
        };
        // Between 20.5 and 18 dB Minstrel uses one rate, which has no losses there.
        let falling = [40.0, 22.0, 20.0, 16.0].map(|db| at(db, 40.0));
        println!("{rate_control:?}: {falling:?}");
        assert!(falling.is_sorted_by(|nearer, farther| *nearer >= farther * 0.99), "{falling:?}");
        assert!(falling[3] < falling[0] * 0.8, "{falling:?}");
        assert!((at(40.0, 0.0) / falling[0] - 1.0).abs() < 0.01);
    }
}

/// One end has four streams and the other one: the response to 600 Mb/s is as robust as that to 150 Mb/s.
#[test]
fn the_ends_of_a_direct_link_send_at_rates_of_their_own() {
    for rate_control in [RateControl::Fixed, RateControl::Minstrel] {
        let mut setup = direct(Standard::N, 150, &bulk(tcp::Config::default()));
        let config = &mut setup.bss[0].config;
        config.rate_control = rate_control;
        for link in &mut config.direct_links {
            link.link.snr = Some(Decibels::from_db(40.0));
        }
        let faster = Mode::for_rate(Standard::N, BitRate::from_mbps(600)).unwrap();
        config.direct_links[0].link.mode = faster;
        let mbps = goodput_mbps(&run(&setup).unwrap());
        assert!(mbps > 200.0, "{rate_control:?}: {mbps}");
    }
}

/// With an aggregate per spatial stream, an end has a scoreboard for each stream of the other end (seed 430067678 of the
/// random worlds).
#[test]
fn the_ends_of_a_direct_link_receive_as_many_streams_as_the_other_sends() {
    let mut setup = ring(Standard::N, 150, 2, &bulk(tcp::Config::default()));
    link_directly(&mut setup);
    let config = &mut setup.bss[0].config;
    config.stream_queues = StreamQueues::Independent;
    config.direct_links[0].link.mode = Mode::for_rate(Standard::N, BitRate::from_mbps(300)).unwrap();
    assert_eq!([0, 1].map(|end| config.direct_links[end].link.mode.streams), [2, 1]);
    let outcome = run(&setup).unwrap();
    for flow in &outcome.flows {
        let mbps = flow.goodput_bps(outcome.measured) / 1e6;
        assert!(mbps > 40.0, "{mbps}");
    }
}

/// Two pairs that do not hear each other acknowledge at the same time: each acknowledgment carries its own ACKs (seed
/// 440027227 of the random worlds). Every run checks that no frame of ACKs is lost.
#[test]
fn compressed_acks_of_hidden_exchanges_stay_apart() {
    let mut setup = ring(Standard::N, 150, 4, &bulk(tcp::Config::default()));
    setup.flows.retain(|flow| [client(0), client(2)].contains(&flow.source));
    link_directly(&mut setup);
    for (a, b) in [(1, 3), (1, 4), (2, 3), (2, 4)] {
        setup.bss[0].config.hidden.push((StationId(a), StationId(b)));
    }
    speak_hack(&mut setup, Config::default());
    let outcome = run(&setup).unwrap();
    for station in [2, 4] {
        assert!(outcome.bss[0].stations[station].driver.hack().unwrap().compressed_acks > 1_000);
    }
}

/// Unused direct links change nothing.
#[test]
fn a_link_without_traffic_is_none() {
    let without = ring(Standard::N, 150, 3, &bulk(tcp::Config::default()));
    let mut with = without.clone();
    link_directly(&mut with);
    let download = |mut setup: Setup| {
        setup.flows.iter_mut().for_each(|flow| flow.source = SERVER);
        run(&setup).unwrap()
    };
    let (without, with) = (download(without), download(with));
    assert_eq!(with.digest, without.digest);
}

#[test]
fn direct_links_join_two_clients_that_hear_each_other_both_ways() {
    let good = direct(Standard::N, 150, &bulk(tcp::Config::default()));
    let refused = |change: &dyn Fn(&mut BssConfig)| {
        let mut setup = good.clone();
        change(&mut setup.bss[0].config);
        match run(&setup) {
            Err(RunError::Setup(what)) => what,
            other => panic!("{:?}", other.map(|outcome| outcome.digest)),
        }
    };
    let one_way = refused(&|config| config.direct_links.truncate(1));
    assert_eq!(one_way, "basic service set 0 has a direct link from 1 to 2, which have not one each way");
    let to_access_point = refused(&|config| config.direct_links[0].to = StationId::AP);
    assert!(to_access_point.ends_with("a direct link from 1 to 0, which are not two of its clients"));
    let twice = refused(&|config| config.direct_links.push(config.direct_links[0].clone()));
    assert!(twice.contains("one each way"), "{twice}");
    let hidden = refused(&|config| config.hidden = vec![(StationId(2), StationId(1))]);
    assert!(hidden.ends_with("which do not hear each other"), "{hidden}");
}
