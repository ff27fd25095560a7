//! Multi-link operation: known answers of saturated links, and what is common to them.

use crate::common::{Channel, FULL, channel, saturate};
use tacit_link::queue::QueueLimit;
use tacit_link::wifi::phy::{Coding, GuardInterval, HeOptions, Mode, PacketExtension, Standard};
use tacit_link::wifi::{BlockAckScope, BssConfig, MultiLinkConfig, StationConfig, StationId, WindowShare};
use tacit_proto::units::{BitRate, Duration, Instant};

const AP: StationId = StationId::AP;
const ONE: StationId = StationId(1);

/// Width in MHz, streams and MCS of a link.
type Width = (u16, u8, u8);

const W20: Width = (20, 1, 11);
const W40: Width = (40, 2, 11);
const W80: Width = (80, 1, 13);
const W80X2: Width = (80, 2, 13);
const W160: Width = (160, 2, 13);

/// 802.11be with the durations of ns-3: binary convolutional codes and no packet extension; Block Acks at 24 Mb/s.
fn link((width, streams, mcs): Width, window: u32) -> BssConfig {
    let plain = HeOptions {
        coding: Coding::Bcc,
        extension: PacketExtension::Us0,
        ..HeOptions::usual(GuardInterval::Ns800)
    };
    let mode = Mode::eht(mcs, streams, width, GuardInterval::Ns800).unwrap().with_options(plain).unwrap();
    let client = StationConfig {
        control_mode: Mode::ofdm(BitRate::from_mbps(24)),
        downlink_queue: QueueLimit { packets: Some(4096), bytes: None }.into(),
        ..StationConfig::new(mode)
    };
    BssConfig {
        beacon_interval: None,
        block_ack_window: window,
        ..BssConfig::new(Standard::Be, vec![client])
    }
}

fn links(widths: &[Width], window: u32, share: WindowShare, block_acks: BlockAckScope) -> BssConfig {
    let mut configs = widths.iter().map(|width| link(*width, window));
    let first = configs.next().unwrap();
    let common = MultiLinkConfig { share, block_acks, ..MultiLinkConfig::new(configs.collect()) };
    BssConfig { multi_link: (widths.len() > 1).then(|| Box::new(common)), ..first }
}

/// Goodput of saturated UDP from the access point in Mb/s, and the share of time for which each link was stalled.
fn udp(config: BssConfig) -> (f64, Vec<f64>) {
    let span = Duration::from_secs(2);
    let mut bss = channel(config, 1, "multi-link", span);
    let [from, to] = [AP, ONE].map(StationId::first_function);
    let fill = |bss: &mut Channel, now: Instant| {
        while bss.queued(from, to) < 3000 && bss.enqueue(now, from, to, FULL) {}
    };
    let packets = saturate(&mut bss, span, fill);
    let stalled = bss
        .links()
        .map(|link| bss.stalled(from, link, Instant::ZERO + span).as_secs_f64() / span.as_secs_f64());
    let stalled = stalled.collect();
    (packets as f64 * 1472.0 * 8.0 / span.as_secs_f64() / 1e6, stalled)
}

#[test]
fn links_alone_have_their_capacities() {
    for (width, window, mbps) in [
        (W20, 1024, 130.6),
        (W40, 1024, 521.5),
        (W80, 1024, 656.0),
        (W80X2, 1024, 1312.2),
        (W160, 1024, 2594.8),
        (W80, 256, 654.0),
    ] {
        let (goodput, _) = udp(links(&[width], window, WindowShare::Greedy, BlockAckScope::OwnLink));
        assert!((goodput / mbps - 1.0).abs() < 0.005, "{width:?}: {goodput:.1} for {mbps}");
    }
}

/// ../spec: closed forms of two links, most with a window that binds.
#[test]
fn several_links_share_one_window() {
    use BlockAckScope::{OwnLink, Shared};
    use WindowShare::{Greedy, Proportional};
    let mut wrong = Vec::new();
    for (widths, window, share, scope, mbps) in [
        ([W80, W80], 1024, Greedy, OwnLink, 1310.0),
        ([W80, W80], 1024, Greedy, Shared, 1310.0),
        ([W80, W80], 512, Greedy, OwnLink, 1086.0),
        ([W80, W80], 512, Proportional, OwnLink, 1305.0),
        ([W80, W80], 256, Greedy, OwnLink, 669.0),
        ([W80, W80], 256, Greedy, Shared, 669.0),
        ([W80, W80], 256, Proportional, OwnLink, 1247.0),
        ([W40, W160], 1024, Greedy, OwnLink, 2388.0),
        ([W40, W160], 1024, Greedy, Shared, 2640.0),
        ([W40, W160], 1024, Proportional, OwnLink, 3069.0),
        ([W20, W160], 1024, Greedy, OwnLink, 2406.0),
        ([W20, W160], 1024, Greedy, Shared, 2393.0),
        ([W20, W160], 1024, Proportional, OwnLink, 2712.0),
        ([W160, W160], 1024, Greedy, OwnLink, 2653.0),
        ([W160, W160], 1024, Greedy, Shared, 2653.0),
        ([W160, W160], 1024, Proportional, OwnLink, 4905.0),
    ] {
        let (goodput, stalled) = udp(links(&widths, window, share, scope));
        eprintln!("{widths:?} {window} {share:?} {scope:?}: {goodput:.1} for {mbps}, stalled {stalled:.2?}");
        if (goodput / mbps - 1.0).abs() >= 0.005 {
            wrong.push((widths, window, share, scope, goodput, mbps));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
