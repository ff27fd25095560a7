//! Clients with one radio for several links: known answers, and frames by hand.

use crate::common::{Channel, FULL, TestPacket, channel};
use crate::multi_link::{Script, W80, full, links, udp};
use tacit_link::loss::Loss;
use tacit_link::wifi::air::{Frame, Outcome};
use tacit_link::wifi::{
    BlockAckScope, BothWays, BssConfig, ClientLinks, Emlsr, LinkId, LinkMode, LinkSet, RadioReturn,
    StationId, WindowShare,
};
use tacit_proto::units::{Duration, Instant};

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
const PPDU: u32 = 316;

/// What the client sends for the data that it received.
enum Feedback {
    /// A TCP ACK for two packets.
    Acks,
    /// As many bytes on its Block Acks as it received pairs of packets.
    Hack,
}

/// Goodput of TCP in Mb/s: the access point has a PPDU to send whenever the ACKs of the last one have arrived.
fn tcp(config: BssConfig, feedback: Feedback) -> f64 {
    let span = Duration::from_secs(2);
    let end = Instant::ZERO + span;
    let mut bss = channel(config, 1, "multi-link", span);
    let [ap, client] = [AP, ONE].map(StationId::first_function);
    if matches!(feedback, Feedback::Hack) {
        bss.enable_hack(client, None);
    }
    let offer = |bss: &mut Channel, now, packets| (0..packets).all(|_| bss.enqueue(now, ap, client, FULL));
    // Compressed ACKs ride on the Block Ack of the next PPDU.
    let window = if matches!(feedback, Feedback::Hack) { 3 * PPDU } else { PPDU };
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
            if matches!(feedback, Feedback::Acks) {
                assert!(bss.enqueue(now, client, ap, TestPacket::ack(number)));
            }
        }
        if matches!(feedback, Feedback::Hack) && arrived > 0 {
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
            tcp(single_radio(at_once), Feedback::Acks),
            tcp(single_radio(synchronised), Feedback::Acks),
            tcp(single_radio(usual), Feedback::Hack),
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
