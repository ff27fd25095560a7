//! Who shares a PPDU, and whom the access point asks after it.

use super::*;

/// 80 MHz with `clients`, whose access point chooses how many share a PPDU.
fn choosing(clients: usize, triggers: Triggers) -> BssConfig {
    let ofdma = OfdmaConfig { triggers, mu_edca: MuEdca::Silent, ..OfdmaConfig::USUAL };
    BssConfig { ofdma: Some(ofdma), ..config(clients, MuAcknowledgment::MuBar) }
}

fn users_of_ppdus(harness: &Harness) -> Vec<usize> {
    let triggers = harness.frames.iter().filter_map(|frame| match &frame.frame {
        Frame::Trigger(trigger) if trigger.kind == TriggerKind::MuBar => Some(trigger.users.len()),
        _ => None,
    });
    triggers.collect()
}

/// Eight users with 106 tones each have 848 of 996 tones, four have 968: 514 Mb/s are the cycle of four users, and 447
/// those of eight (`saturated_users_get_what_the_cycle_holds`).
#[test]
fn saturated_users_share_what_wastes_the_fewest_tones() {
    for clients in [4, 8, 16] {
        let chosen = saturated_mbps(choosing(clients, Triggers::Off));
        assert!((chosen / 514.0 - 1.0).abs() < 0.01, "{clients} clients: {chosen} Mb/s");
        for sharing in [Sharing::Goodput, Sharing::Most] {
            let mut config = config(clients, MuAcknowledgment::MuBar);
            config.ofdma = config.ofdma.map(|ofdma| OfdmaConfig { sharing, ..ofdma });
            assert!(saturated_mbps(config) <= chosen * 1.001, "{clients} clients: none is above it");
        }
    }
}

/// A user with one packet would leave most of its unit empty while the other sends a hundred.
#[test]
fn a_user_with_little_data_does_not_leave_half_of_the_channel_empty() {
    let shares = |few: u32| {
        let mut harness = Harness::new(choosing(2, Triggers::Off));
        // The access point contends for the first packet; the others arrive before it sends again.
        harness.send(1, 0..1);
        harness.send(1, 1..100);
        harness.send(2, 0..few);
        harness.run();
        assert_eq!(harness.delivered.len() as u32, 100 + few);
        users_of_ppdus(&harness)
    };
    assert_eq!(shares(100), [2], "both have much: they share");
    assert_eq!(shares(1), [], "one has next to nothing: each has the whole channel");
}

/// Eight clients with a packet each share one PPDU: the overhead is what counts.
#[test]
fn users_with_little_data_each_share_one_ppdu() {
    let mut harness = Harness::new(choosing(8, Triggers::Off));
    for client in 1..=8 {
        harness.send(client, 0..1);
    }
    harness.run();
    assert_eq!(users_of_ppdus(&harness), [8]);
}

/// A silent client that sends ten packets a second is not one of those that `nist` asks. Its Block Ack says that a
/// packet waits, and the access point asks for it at its next access.
#[test]
fn a_packet_that_a_block_ack_reports_is_asked_for() {
    for triggers in [Triggers::Nist, Triggers::AckAware, Triggers::Always] {
        let mut harness = Harness::new(choosing(2, triggers));
        for round in 0..10 {
            let at = |round: u64| Instant::ZERO + Duration::from_millis(1 + 100 * round);
            harness.now = at(round);
            let up = [StationId(1).first_function(), AP.first_function()];
            harness.send(1, 0..300);
            harness.send(2, 0..300);
            assert!(harness.bss.enqueue(harness.now, up[0], up[1], TestPacket::full(round as u32)));
            harness.run_before(at(round + 1));
        }
        let reports = harness.frames.iter().filter(|frame| {
            matches!(frame.frame, Frame::QosNull { queue_size } if queue_size > 0)
                && frame.transmitter == StationId(1)
        });
        assert!(reports.count() > 0, "{triggers:?}: its Block Acks report it");
        assert!(harness.bss.counters(StationId(1)).triggered_ppdus > 0, "{triggers:?}");
        let up = harness.delivered.iter().filter(|(to, _)| *to == AP).count();
        assert_eq!(up, 10, "{triggers:?}");
    }
}

/// Clients that only receive report empty queues with their Block Acks: once an access point that always asks has learnt
/// that no ACKs come, it sends data instead.
#[test]
fn nobody_is_asked_while_all_report_that_nothing_waits() {
    for clients in [2, 8, 16] {
        let span = Duration::from_secs(3);
        let mut bss = channel(choosing(clients, Triggers::Always), 3, "always", span);
        let ids: Vec<_> = (1..=clients as u16).map(|id| StationId(id).first_function()).collect();
        let so_far = |bss: &Channel| (bss.counters(AP).triggers, bss.counters(AP).shared_ppdus);
        let mut before = (0, 0);
        saturate(&mut bss, span, |bss, now| {
            for id in &ids {
                while bss.has_room(AP.first_function(), *id, FULL.len()) {
                    bss.enqueue(now, AP.first_function(), *id, FULL);
                }
            }
            if now < Instant::ZERO + Duration::from_secs(2) {
                before = so_far(bss);
            }
        });
        let after = so_far(&bss);
        assert!(after.1 > before.1 + 100, "{clients} clients: {before:?}, {after:?}");
        assert_eq!(after.0, before.0, "{clients} clients: triggers");
    }
}
