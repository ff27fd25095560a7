//! Clients with one radio for several links: known answers, and frames by hand.

use crate::common::{Channel, FULL, TestPacket, channel};
use crate::multi_link::{Script, W80, full, links, udp};
use tacit_link::loss::Loss;
use tacit_link::wifi::air::{Frame, Outcome};
use tacit_link::wifi::{
    AckLinks, BlockAckScope, BothWays, BssConfig, ClientLinks, Emlsr, LinkId, LinkMap, LinkMode, LinkSet,
    RadioReturn, StationId, WindowShare,
};
use tacit_packet::units::{Duration, Instant};

const AP: StationId = StationId::AP;
const ONE: StationId = StationId(1);

fn emlsr(padding_us: u64, transition_us: u64) -> Emlsr {
    let [padding, transition] = [padding_us, transition_us].map(Duration::from_micros);
    Emlsr { padding, transition, ..Emlsr::USUAL }
}

/// Two links of 80 MHz, and a client with one radio for both.
fn single_radio(emlsr: Emlsr) -> BssConfig {
    let mut config = links(&[W80, W80], 1024, WindowShare::Greedy, BlockAckScope::OwnLink);
    let client = ClientLinks { links: LinkSet::ALL, mode: LinkMode::SingleRadio(emlsr) };
    config.multi_link.as_mut().unwrap().clients = vec![client];
    config
}

/// Packets of a PPDU of 5,484 us on a link of 80 MHz.
pub(crate) const PPDU: u32 = 316;

/// What the client sends for the data that it received.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Feedback {
    /// A TCP ACK for two packets.
    Acks,
    /// As many bytes on its Block Acks as it received pairs of packets.
    Hack,
}

/// Goodput of TCP in Mb/s: the access point has `ppdu` packets to send whenever the ACKs of the last one have arrived.
pub(crate) fn tcp(config: BssConfig, feedback: Feedback, ppdu: u32) -> f64 {
    let span = Duration::from_secs(2);
    let end = Instant::ZERO + span;
    let mut bss = channel(config, 1, "multi-link", span);
    let [ap, client] = [AP, ONE].map(StationId::first_function);
    if feedback == Feedback::Hack {
        bss.enable_hack(client, None);
    }
    let offer = |bss: &mut Channel, now, packets| (0..packets).all(|_| bss.enqueue(now, ap, client, FULL));
    // Compressed ACKs ride on the Block Ack of the next PPDU.
    let window = if feedback == Feedback::Hack { 3 * ppdu } else { ppdu };
    assert!(offer(&mut bss, Instant::ZERO, window));
    let (mut packets, mut last) = (0, Instant::ZERO);
    while let Some(now) = bss.poll_timeout().filter(|now| *now < end) {
        assert!(now >= last, "time runs forward");
        last = now;
        bss.handle_timeout(now);
        let (mut arrived, mut acks) = (0, 0);
        while let Some(interrupt) = bss.poll_interrupt() {
            if let tacit_link::wifi::Interrupt::Appended { bytes, .. } = interrupt {
                acks += bytes.len() as u32;
            }
        }
        while let Some(delivery) = bss.poll_deliver() {
            if bss.station(delivery.to) == ONE { arrived += 1 } else { acks += 1 }
        }
        while bss.poll_drained().is_some() {}
        packets += u64::from(arrived);
        for number in 0..arrived / 2 {
            if feedback == Feedback::Acks {
                assert!(bss.enqueue(now, client, ap, TestPacket::ack(number)));
            }
        }
        if feedback == Feedback::Hack && arrived > 0 {
            let (nic, peer) = bss.nic(client, ap).unwrap();
            nic.add(peer, &vec![7; arrived as usize / 2]);
        }
        assert!(offer(&mut bss, now, 2 * acks));
    }
    bss.check().unwrap();
    packets as f64 * 1448.0 * 8.0 / span.as_secs_f64() / 1e6
}

/// Cycles of an exchange at a time, without beacons and collisions. Formulas in the order of the columns: a UDP PPDU is 5,474.4 us
/// and costs an initial control frame of 32 us and padding, CTS 44, three SIFS, Block Ack 72, and the transition delay, but no
/// backoff; ACKs cost 312.8 at once where the radio is back at once, and AIFS, a mean backoff and another transition delay where
/// it is not; compressed ACKs cost 53.
#[test]
fn one_radio_costs_a_call_and_a_transition() {
    let mut wrong = Vec::new();
    for (padding, transition, expected) in [
        (0, 0, [656.3, 611.8, 600.7, 639.6]),
        (32, 64, [645.3, 602.1, 585.3, 629.0]),
        (128, 128, [627.9, 586.7, 565.1, 612.2]),
        (256, 256, [601.9, 563.6, 533.5, 587.1]),
    ] {
        let usual = emlsr(padding, transition);
        // The closed form has no RTS of a client that was deaf.
        let synchronised = Emlsr { medium_sync: Duration::ZERO, ..usual };
        let at_once = Emlsr { radio_return: RadioReturn::After(Duration::ZERO), ..usual };
        let found = [
            udp(single_radio(usual)).0,
            tcp(single_radio(at_once), Feedback::Acks, PPDU),
            tcp(single_radio(synchronised), Feedback::Acks, PPDU),
            tcp(single_radio(usual), Feedback::Hack, PPDU),
        ];
        for (what, (found, expected)) in
            ["UDP", "TCP (a)", "TCP (b)", "HACK"].iter().zip(found.into_iter().zip(expected))
        {
            if (found / expected - 1.0_f64).abs() >= 0.005 {
                wrong.push(format!("{padding}, {transition}: {what} {found:.1} for {expected}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn at_us(frame: &tacit_link::wifi::air::AirFrame<TestPacket>) -> u64 {
    frame.at.saturating_since(Instant::ZERO).as_micros()
}

/// Frames of `script` that are no repeated MPDUs.
fn times_us(script: &Script) -> Vec<u64> {
    let mut times: Vec<u64> = script.frames.iter().map(at_us).collect();
    times.dedup();
    times
}

/// The second exchange of a TXOP follows a SIFS after the first, with no other initial control frame.
#[test]
fn a_client_is_called_once_in_a_txop() {
    let mut config = single_radio(emlsr(32, 64));
    let common = config.multi_link.as_mut().unwrap();
    common.map = BothWays { down: LinkSet::NONE.with(LinkId(0)), up: LinkSet::ALL }.into();
    config.txop_limit = Some(Duration::from_millis(4));
    config.bursts = tacit_link::wifi::Bursts::WithinLimit;
    config.ampdu_mpdus = Some(100);
    let mut script = Script::new(config);
    script.send(AP, ONE, full(0..200));
    script.run();
    assert_eq!(script.story(), "1:I 1:C 1:D 1:B 1:D 1:B");
    assert_eq!(script.delivered.len(), 200);
}

/// The Block Ack of the first link is missing. Its request goes there, behind an initial control frame of its own.
#[test]
fn a_request_begins_with_a_call_too() {
    let mut config = single_radio(emlsr(32, 64));
    config.stations[0].link_ack_loss = Loss::Scripted([0].into());
    let mut script = Script::new(config);
    script.send(AP, ONE, full(0..100));
    script.run();
    assert_eq!(script.story(), "1:I 1:C 1:D 1:B! 1:I 1:C 1:R 1:B");
    assert_eq!(script.bss.counters(AP).retries, 0);
}

/// While a client returns to listening the access point calls it on no link, and serves another.
#[test]
fn others_are_served_while_a_client_returns_to_listening() {
    let mut config = single_radio(emlsr(0, 256));
    let second = config.stations[0].clone();
    config.stations.push(second.clone());
    let common = config.multi_link.as_mut().unwrap();
    common.further[0].stations.push(second);
    common.clients.push(ClientLinks::ALL);
    let mut script = Script::new(config);
    // One link has the first client's turn, and the other the second's.
    script.send(AP, ONE, full(0..700));
    script.send(AP, StationId(2), full(0..700));
    script.run();
    let data = |to| {
        let mut at: Vec<_> = script
            .frames
            .iter()
            .filter(|frame| frame.receiver == Some(to) && matches!(frame.frame, Frame::Data { .. }))
            .map(|frame| (frame.at, frame.at + frame.duration))
            .collect();
        at.dedup();
        at
    };
    let (radio, other) = (data(ONE), data(StationId(2)));
    // CTS, three SIFS, the call of 32 us, a Block Ack of 72 us, and the transition.
    let gaps = radio.windows(2).map(|pair| pair[1].0.saturating_since(pair[0].1).as_micros());
    assert!(
        gaps.clone().all(|gap| gap >= 16 + 72 + 256 + 32 + 16 + 44 + 16),
        "{:?}",
        gaps.collect::<Vec<_>>()
    );
    let meets =
        |(from, until): &(Instant, Instant)| other.iter().any(|(start, end)| start < until && from < end);
    assert!(radio.iter().any(meets), "both are served at once: {radio:?}, {other:?}");
    assert_eq!(script.delivered.len(), 1400);
}

/// The client sends at home, on the last of equal links, without a call. The access point calls it meanwhile on the other link, before
/// the first MPDU tells it better: no CTS comes, and it calls again when the client listens again.
#[test]
fn a_call_that_meets_an_uplink_ppdu_fails() {
    let mut script = Script::new(single_radio(emlsr(32, 64)));
    script.send(ONE, AP, full(0..100));
    script.send(AP, ONE, full(0..10));
    script.run();
    assert_eq!(script.story(), "1:I! 2:D 2:B 1:I 1:C 1:D 1:B", "{:?}", times_us(&script));
    let counters = script.bss.counters(AP);
    assert_eq!((counters.icfs, counters.icf_failures, counters.retries), (2, 1, 0));
    assert_eq!(script.delivered.len(), 110);
}

/// The client was deaf at home for a PPDU of the other link: it begins with an RTS. When no CTS comes, it waits for the end of the medium
/// synchronisation delay; a frame that it hears ends that delay.
#[test]
fn a_client_that_was_deaf_begins_with_an_rts() {
    let deaf = |cts_lost: bool| {
        let mut config = single_radio(emlsr(32, 64));
        let common = config.multi_link.as_mut().unwrap();
        common.map = BothWays { down: LinkSet::NONE.with(LinkId(0)), up: LinkSet::ALL }.into();
        if cts_lost {
            // It hears neither RTS nor data: it is out of range at home until then.
            common.further[0].stations[0].away =
                Some((Instant::ZERO, Instant::ZERO + Duration::from_millis(4)));
        }
        let mut script = Script::new(config);
        script.send(AP, ONE, full(0..100));
        while script.delivered.is_empty() {
            assert!(script.step());
        }
        script.send(ONE, AP, full(0..10));
        script.run();
        script
    };
    let script = deaf(false);
    assert_eq!(script.story(), "1:I 1:C 1:D 1:B 2:r 2:C 2:D 2:B");
    let script = deaf(true);
    assert_eq!(script.story(), "1:I 1:C 1:D 1:B 2:r! 2:D 2:B");
    let [rts, data] = [
        |frame: &Frame<TestPacket>| matches!(frame, Frame::Rts),
        |frame: &Frame<TestPacket>| matches!(frame, Frame::Data { .. }),
    ]
    .map(|kind| script.frames.iter().rfind(|frame| frame.link == LinkId(1) && kind(&frame.frame)).unwrap());
    let block_ack = script.frames.iter().find(|frame| matches!(frame.frame, Frame::BlockAck { .. })).unwrap();
    let back = block_ack.at + block_ack.duration + Duration::from_micros(64);
    assert!(rts.at >= back, "it contends when its radio is back");
    assert!(data.at >= back + Duration::from_micros(5_472), "{} for {back}", data.at);
}

/// With one radio, only `acks` and `map` of the access point matter; what the client sends goes where its radio rests, which they choose.
#[test]
fn a_client_with_one_radio_sends_at_home() {
    for (acks, home) in [(LinkSet::ALL, LinkId(1)), (LinkSet::NONE.with(LinkId(0)), LinkId(0))] {
        let mut config = single_radio(emlsr(32, 64));
        let common = config.multi_link.as_mut().unwrap();
        (common.acks, common.map) = (AckLinks::Among(acks), LinkMap::ALL);
        let mut script = Script::new(config);
        script.send(ONE, AP, full(0..1000));
        script.run();
        assert!(script.frames.iter().all(|frame| frame.link == home && frame.outcome == Outcome::Received));
        assert_eq!(script.delivered.len(), 1000);
    }
}

/// The Block Ack that carried compressed ACKs is lost on the first link. Data on the second proves nothing: it has the SYNC bit, and its Block
/// Ack carries them again. The data after that proves them, on any link.
#[test]
fn data_on_another_link_proves_no_lost_block_ack() {
    let mut config = single_radio(emlsr(32, 64));
    config.stations[0].link_ack_loss = Loss::Scripted([0].into());
    let mut script = Script::new(config);
    let client = ONE.first_function();
    script.bss.enable_hack(client, None);
    let (nic, peer) = script.bss.nic(client, AP.first_function()).unwrap();
    nic.add(peer, &[7; 200]);
    script.send(AP, ONE, full(0..1200));
    script.run();
    let block_acks = script.frames.iter().filter_map(|frame| match &frame.frame {
        Frame::BlockAck { appended, .. } => {
            Some((frame.link.0 + 1, frame.outcome == Outcome::Received, appended.len()))
        }
        _ => None,
    });
    let block_acks: Vec<_> = block_acks.collect();
    assert_eq!(block_acks[..2], [(1, false, 200), (2, true, 200)], "{}", script.story());
    assert!(block_acks[2..].iter().any(|(link, _, appended)| *link == 1 && *appended == 0), "{block_acks:?}");
    let syncs = script.frames.iter().filter_map(|frame| match &frame.frame {
        Frame::Data { sync, .. } => Some((frame.link.0 + 1, *sync)),
        _ => None,
    });
    let mut syncs: Vec<_> = syncs.collect();
    syncs.dedup();
    assert_eq!(syncs[..2], [(1, false), (2, true)], "{}", script.story());
}
