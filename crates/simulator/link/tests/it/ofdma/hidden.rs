//! Multi-user PPDUs that other frames overlap, mostly of clients that do not hear each other.

use super::*;

/// `config`, in which these clients do not hear each other.
fn hiding(pairs: &[(u16, u16)], config: BssConfig) -> BssConfig {
    BssConfig { hidden: pairs.iter().map(|(a, b)| (StationId(*a), StationId(*b))).collect(), ..config }
}

/// All clients hear the access point, which alone has data: the frames are those of clients that hear each other.
#[test]
fn a_round_alone_is_the_same() {
    let pairs: Vec<_> = (1..=4).flat_map(|a| (a + 1..=4).map(move |b| (a, b))).collect();
    for acknowledgment in MuAcknowledgment::ALL {
        let of = |config| {
            let harness = four_users(Harness::new(config));
            let when: Vec<_> = harness.frames.iter().map(|frame| (frame.at, frame.duration)).collect();
            (harness.script(), when, harness.bss.counters(AP), harness.delivered)
        };
        let together = of(config(4, acknowledgment));
        assert_eq!(of(hiding(&pairs, config(4, acknowledgment))), together, "{acknowledgment:?}");
    }
}

/// The first client sends while the access point does: users that hear both lose their parts and send no Block Ack for
/// them, the others receive theirs. What was lost is sent again.
#[test]
fn a_part_is_lost_where_another_frame_is_heard() {
    let mut harness = Harness::new(hiding(&[(1, 2), (1, 3)], config(5, MuAcknowledgment::AggregatedMuBar)));
    let (ap, first) = (AP.first_function(), StationId(1).first_function());
    harness.send(2, 0..3);
    harness.send(3, 0..3);
    harness.send(4, 0..3);
    harness.send(5, 0..3);
    assert!(harness.bss.enqueue(harness.now, first, ap, TestPacket::full(0)));
    harness.run();
    let begin = harness.frames[0].at;
    let outcome = |to: u16| {
        let mut part = harness.frames.iter().filter(|frame| frame.at == begin);
        part.find(|frame| frame.receiver == Some(StationId(to))).unwrap().outcome
    };
    assert_eq!([2, 3].map(outcome), [Outcome::Received; 2]);
    assert_eq!([4, 5].map(outcome), [Outcome::Errored; 2]);
    assert_eq!(outcome(0), Outcome::Collided, "the access point sends too");
    let answers = |frame: &&AirFrame<TestPacket>| frame.mode.format == Format::HeTb;
    let first_answers: Vec<_> = harness.frames.iter().filter(answers).take(2).collect();
    assert_eq!(first_answers.iter().map(|frame| frame.transmitter.0).collect::<Vec<_>>(), [2, 3]);
    for client in 2..=5 {
        let own = harness.delivered.iter().filter(|(to, _)| *to == StationId(client));
        assert_eq!(own.map(|(_, number)| *number).collect::<Vec<_>>(), [0, 1, 2], "client {client}");
    }
    assert!(harness.delivered.contains(&(AP, 0)));
}

/// A trigger reserves the medium to the end of the responses: a client that hears none of them does not send beside
/// them, although it has data all the time and is not asked.
#[test]
fn a_trigger_keeps_a_hidden_client_quiet() {
    let mut config = hiding(&[(1, 4), (2, 4), (3, 4)], asking(4, Triggers::Always, MuEdca::Silent, false));
    // It sends no HE PPDUs, so it is not triggered.
    config.stations[3].mode = Mode::all(Standard::N)[7];
    let span = Duration::from_secs(1);
    let mut bss = channel(config, 1, "hidden", span);
    bss.record_air();
    let mut frames = Vec::new();
    saturate(&mut bss, span, |bss, now| {
        for client in (1..=4).map(|id| StationId(id).first_function()) {
            while bss.queued(client, AP.first_function()) < 50 {
                bss.enqueue(now, client, AP.first_function(), FULL);
            }
        }
        frames.extend(std::iter::from_fn(|| bss.poll_air()));
    });
    let responses: Vec<_> = frames.iter().filter(|frame| frame.mode.format == Format::HeTb).collect();
    let own: Vec<_> = frames.iter().filter(|frame| frame.transmitter == StationId(4)).collect();
    let ended = |frame: &AirFrame<TestPacket>| frame.at + frame.duration;
    // While it sends itself, it hears no trigger.
    let hears = |trigger: &AirFrame<TestPacket>| {
        own.iter().all(|frame| ended(frame) <= trigger.at || ended(trigger) <= frame.at)
    };
    let mut inside = 0;
    let triggers = frames.iter().filter(|frame| matches!(frame.frame, Frame::Trigger(_)));
    for trigger in triggers.filter(|trigger| hears(trigger)) {
        let begin = ended(trigger) + us(16);
        let Some(response) = responses.iter().find(|response| response.at == begin) else { continue };
        inside += own.iter().filter(|frame| begin < frame.at && frame.at < ended(response)).count();
    }
    let arrived = own.iter().filter(|frame| frame.outcome == Outcome::Received).count();
    assert!(responses.len() > 1_000 && arrived > 1_000, "{} and {arrived}", responses.len());
    assert_eq!(inside, 0);
}

/// Saturated clients, some hidden from each other, in both directions and with every kind of acknowledgment; all of what
/// one client sends at a time is lost now and then. Each client keeps contending, none answers a trigger while it sends
/// something else, and all time is accounted for.
#[test]
fn overlaps_leave_no_client_behind() {
    for acknowledgment in MuAcknowledgment::ALL {
        for (triggers, random_access_units) in
            [(Triggers::Off, 0), (Triggers::AckAware, 2), (Triggers::Always, 0), (Triggers::RandomAccess, 4)]
        {
            let ofdma = OfdmaConfig {
                acknowledgment,
                triggers,
                random_access_units,
                polls: true,
                ..OfdmaConfig::USUAL
            };
            let mut config = BssConfig { ofdma: Some(ofdma), ..config(6, acknowledgment) };
            config.stations[1].uplink_loss = Loss::Bernoulli(Ratio::from_fraction(0.5).unwrap());
            let span = Duration::from_millis(300);
            let mut bss = channel(hiding(&[(1, 2), (3, 4), (1, 6)], config), 7, "overlaps", span);
            let ap = AP.first_function();
            saturate(&mut bss, span, |bss, now| {
                bss.check().unwrap();
                for id in (1..=6).map(|id| StationId(id).first_function()) {
                    while bss.queued(ap, id) < 40 {
                        bss.enqueue(now, ap, id, FULL);
                    }
                    while bss.queued(id, ap) < 2 {
                        bss.enqueue(now, id, ap, FULL);
                    }
                }
            });
            let counters = bss.counters(AP);
            assert!(bss.collisions() > 20 && counters.shared_ppdus > 20, "{counters:?}");
            assert_eq!(counters.mpdus_dropped, 0);
            // Up to the last event: later time is not yet charged to a station.
            let channel = bss.airtime(Instant::ZERO);
            let stations = (0..=6).map(|id| bss.station_airtime(StationId(id)));
            let charged: Duration = stations.flat_map(|own| AirtimeUse::ALL.map(|what| own.get(what))).sum();
            let unused = channel.get(AirtimeUse::Idle);
            assert_eq!(charged, channel.total() - unused, "{acknowledgment:?}, {triggers:?}");
        }
    }
}

/// A PPDU of several users that collided sets no NAV: a client that heard it waits EIFS, and not for the Block Acks. EIFS is
/// SIFS, an ACK at 6 Mb/s and AIFS: 16, 44 and 43 us; the backoff may be 0.
#[test]
fn eifs_follows_a_ppdu_of_several_users_that_collided() {
    let wait = |seed| {
        let mut bss =
            channel(config(6, MuAcknowledgment::AggregatedMuBar), seed, "eifs", Duration::from_secs(1));
        bss.record_air();
        let start = Instant::ZERO + Duration::from_millis(1);
        let ap = AP.first_function();
        for client in (1..=4).map(|id| StationId(id).first_function()) {
            assert!((0..3).all(|number| bss.enqueue(start, ap, client, TestPacket::full(number))));
        }
        assert!(bss.enqueue(start, StationId(5).first_function(), ap, TestPacket::ack(0)));
        bss.handle_timeout(start);
        assert!(bss.enqueue(start + us(20), StationId(6).first_function(), ap, FULL));
        while let Some(at) = bss.poll_timeout() {
            bss.handle_timeout(at);
            while bss.poll_deliver().is_some() {}
        }
        let frames: Vec<_> = std::iter::from_fn(|| bss.poll_air()).collect();
        let collided = frames.iter().filter(|frame| frame.at == start);
        let end = collided.map(|frame| frame.at + frame.duration).max().unwrap();
        let next = frames.iter().find(|frame| frame.at > end).unwrap();
        (next.transmitter == StationId(6)).then(|| next.at - end)
    };
    assert_eq!((1..=100).filter_map(wait).min(), Some(us(16 + 44 + 43)));
}
