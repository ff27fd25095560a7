//! TCP over several links of 802.11be.

use crate::common::*;
use tacit_between::hack;
use tacit_congestion::Algorithm;
use tacit_congestion::cubic::{self, SlowStart};
use tacit_link::loss::Loss;
use tacit_link::wifi::phy::{GuardInterval, Mode, Standard};
use tacit_link::wifi::{BssConfig, MultiLinkConfig, StationConfig, WindowShare};
use tacit_packet::units::{BitRate, Bytes, Duration, Instant};
use tacit_sim::setup::{Setup, Traffic};
use tacit_sim::{RunOutcome, run};
use tacit_tcp::{self as tcp, AckPolicy};

/// A download over a link of 160 MHz at MCS 13 and one of a twentieth of its rate.
fn fast_and_slow() -> Setup {
    let link = |mcs| {
        let station = StationConfig {
            downlink_queue: packets(4096).into(),
            ..StationConfig::new(Mode::eht(mcs, 2, 160, GuardInterval::Ns800).unwrap())
        };
        BssConfig::new(Standard::Be, vec![station])
    };
    let common = MultiLinkConfig { share: WindowShare::Proportional, ..MultiLinkConfig::new(vec![link(0)]) };
    let config = tcp::Config {
        congestion: Algorithm::Cubic(cubic::Config { slow_start: SlowStart::Standard }).into(),
        ack_policy: AckPolicy::every(2),
        receive_buffer: Bytes(64 << 20),
        send_buffer: Bytes(64 << 20),
        ..tcp::Config::default()
    };
    let mut setup = wlan(Standard::Be, 86, 1, &Traffic::Connection { config: config.into(), size: None });
    let wire = pipe(BitRate::from_mbps(10_000), Duration::from_millis(1), packets(20_000), Loss::None);
    (setup.wired[0].forward, setup.wired[0].backward) = (wire.clone(), wire);
    setup.bss[0].config = BssConfig { multi_link: Some(Box::new(common)), ..link(13) };
    setup.duration = Duration::from_secs(4);
    setup.measure_from = Instant::ZERO + Duration::from_secs(2);
    setup
}

fn goodput_mbps(outcome: &RunOutcome) -> f64 {
    outcome.goodput_bps() / 1e6
}

/// The last PPDU of the slow link ends after the fast link has carried the rest. Where its More Data bits said what was true when
/// it was filled, the client held its ACKs for a Block Ack that never came, to the limit of holds: 50 Mb/s.
#[test]
fn compressed_acks_do_not_wait_for_a_link_that_has_nothing_to_send() {
    let stock = run(&fast_and_slow()).unwrap();
    let mut with_hack = fast_and_slow();
    speak_hack(&mut with_hack, hack::Config::default());
    let with_hack = run(&with_hack).unwrap();
    let [stock, hack] = [&stock, &with_hack].map(goodput_mbps);
    assert!(hack > stock, "{hack:.0} Mb/s with HACK, {stock:.0} without");
    let acks = with_hack.flows[0].hack.unwrap();
    assert!(acks.compressed_acks > 1_000, "{acks:?}");
}

/// While a Block Ack is on the air of the slow link, the fast one carries more ACKs than a number of 8 bits distinguishes. Frames
/// that this Block Ack carries, too, were taken for later ones when they arrived behind the others: the run ended with an error.
#[test]
fn frames_on_a_slow_link_do_not_arrive_behind_a_turn_of_their_numbers() {
    let mut setup = fast_and_slow();
    setup.bss[0].config.block_ack_window = 1024;
    speak_hack(&mut setup, hack::Config::default());
    let outcome = run(&setup).unwrap();
    assert!(outcome.flows[0].hack.unwrap().compressed_acks > 10_000);
}

/// What each link carried adds up, and so does its time.
#[test]
fn links_add_up() {
    let outcome = run(&fast_and_slow()).unwrap();
    let bss = &outcome.bss[0];
    let links: u64 = bss.links.iter().map(|link| link.counts.stations.data_mpdus).sum();
    let stations: u64 = bss.stations.iter().map(|station| station.counters.data_mpdus).sum();
    assert_eq!(links, stations);
    assert!(bss.links.iter().all(|link| link.airtime.total() == outcome.measured));
    assert_eq!(bss.airtime.total(), outcome.measured * 2);
    assert!(bss.links.iter().all(|link| link.counts.stations.data_ppdus > 100));
}

/// Clients that send and receive on all links at once (STR) do what they did before others could not: stock TCP's digest is from then.
#[test]
fn modes_change_nothing_where_all_links_work_at_once() {
    let mut with_hack = fast_and_slow();
    speak_hack(&mut with_hack, hack::Config::default());
    let digests = [fast_and_slow(), with_hack].map(|setup| format!("{:016x}", run(&setup).unwrap().digest));
    assert_eq!(digests, ["1888e709055c2936", "b9c97cb6b64b202c"]);
}
