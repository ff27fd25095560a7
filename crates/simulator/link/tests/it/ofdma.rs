//! Multi-user PPDUs: frames on the air, their outcome, and how much arrives.

mod hidden;
mod rates;
mod sharing;

use crate::common::{Channel, FULL, TestPacket, channel, saturate};
use tacit_link::loss::Loss;
use tacit_link::queue::QueueLimit;
use tacit_link::wifi::air::{AirFrame, Frame, Outcome, TriggerKind};
use tacit_link::wifi::phy::{Format, GuardInterval, Mode, ResourceUnit, Standard};
use tacit_link::wifi::{
    AirtimeUse, BssConfig, ExternalMuScheduler, LinkAcks, MuAcknowledgment, MuEdca, MuScheduler,
    MuSchedulerFactory, OfdmaConfig, ReadyUser, Sharing, StationConfig, StationId, Triggers, UplinkClient,
};
use tacit_packet::factory::{FactoryRef, Named};
use tacit_packet::units::{Duration, Instant, Ratio};

const AP: StationId = StationId::AP;

fn us(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

/// 802.11ax at 80 MHz with one stream at MCS 11; all clients with data share PPDUs.
fn config(clients: usize, acknowledgment: MuAcknowledgment) -> BssConfig {
    let client = StationConfig {
        downlink_queue: QueueLimit { packets: Some(1_024), bytes: None }.into(),
        ..StationConfig::new(Mode::he(11, 1, 80, GuardInterval::Ns800).unwrap())
    };
    BssConfig {
        beacon_interval: None,
        ofdma: Some(OfdmaConfig { acknowledgment, sharing: Sharing::Most, ..OfdmaConfig::USUAL }),
        ..BssConfig::new(Standard::Ax, vec![client; clients])
    }
}

/// Mb/s of UDP, with 1472 bytes per packet, to the clients of `config`, whose queues are never empty.
fn saturated_mbps(config: BssConfig) -> f64 {
    let clients = config.stations.len() as u16;
    let span = Duration::from_secs(2);
    let mut bss = channel(config, 1, "ofdma", span);
    let ids: Vec<_> = (1..=clients).map(|id| StationId(id).first_function()).collect();
    let delivered = saturate(&mut bss, span, |bss, now| {
        for id in &ids {
            while bss.has_room(AP.first_function(), *id, FULL.len()) {
                bss.enqueue(now, AP.first_function(), *id, FULL);
            }
        }
    });
    delivered as f64 * 1_472.0 * 8.0 / span.as_micros() as f64
}

/// Throughput with one access per cycle: AIFS and the mean backoff (43 and 67.5 us), the PPDU, the trigger and the
/// responses. PPDU durations follow the equations of 802.11ax-2021 clause 27.3.12: 62, 27 and 12 MPDUs per user for 4,
/// 8 and 16 users.
#[test]
fn saturated_users_get_what_the_cycle_holds() {
    for (clients, mpdus, mbps) in [(4, 62, 514.0), (8, 27, 447.0), (16, 12, 416.0)] {
        let measured = saturated_mbps(config(clients, MuAcknowledgment::MuBar));
        assert!(
            (measured / mbps - 1.0).abs() < 0.01,
            "{clients} users of {mpdus} MPDUs: {measured} for {mbps} Mb/s"
        );
    }
}

/// Sequential acknowledgments take longer than simultaneous ones, and a separate trigger longer than one inside the
/// PPDU.
#[test]
fn answers_at_once_are_the_quicker_ones() {
    let of = |acknowledgment| saturated_mbps(config(8, acknowledgment));
    let [requests, mu_bar, aggregated, ..] = MuAcknowledgment::ALL.map(of);
    assert!(requests < mu_bar && mu_bar < aggregated, "{requests}, {mu_bar}, {aggregated} Mb/s");
}

/// A QoS Null with a TRS Control field is shorter than a trigger with its padding; responses to it have at most MCS 3.
#[test]
fn a_trs_control_field_saves_the_trigger() {
    let of = |acknowledgment, block_ack_mcs| {
        let ofdma =
            OfdmaConfig { acknowledgment, block_ack_mcs, sharing: Sharing::Most, ..OfdmaConfig::USUAL };
        saturated_mbps(BssConfig { ofdma: Some(ofdma), ..config(16, acknowledgment) })
    };
    let [trs, faster] = [3, 11].map(|mcs| of(MuAcknowledgment::TriggeredResponseScheduling, mcs));
    assert_eq!(trs.to_bits(), faster.to_bits(), "its answers are no faster");
    assert!(trs > of(MuAcknowledgment::AggregatedMuBar, 3), "{trs} Mb/s");
    // A Block Ack of more than 32 symbols is requested by a trigger.
    let [trs, trigger] = [MuAcknowledgment::TriggeredResponseScheduling, MuAcknowledgment::AggregatedMuBar]
        .map(|acknowledgment| {
            let mut config = config(16, acknowledgment);
            for client in &mut config.stations {
                client.mode = Mode::he(0, 1, 20, GuardInterval::Ns800).unwrap();
            }
            config.ofdma = Some(OfdmaConfig { acknowledgment, sharing: Sharing::Most, ..OfdmaConfig::USUAL });
            saturated_mbps(config)
        });
    assert_eq!(trs.to_bits(), trigger.to_bits(), "units of 26 tones at MCS 0");
}

struct Harness {
    bss: Channel,
    now: Instant,
    frames: Vec<AirFrame<TestPacket>>,
    delivered: Vec<(StationId, u32)>,
}

impl Harness {
    fn new(config: BssConfig) -> Self {
        let mut bss = channel(config, 1, "ofdma", Duration::from_secs(10));
        bss.record_air();
        let now = Instant::ZERO + Duration::from_millis(1);
        Self { bss, now, frames: Vec::new(), delivered: Vec::new() }
    }

    /// Queues packets for `to` at the access point, numbered from `first`.
    fn send(&mut self, to: u16, numbers: std::ops::Range<u32>) {
        for number in numbers {
            let (from, to) = (AP.first_function(), StationId(to).first_function());
            assert!(self.bss.enqueue(self.now, from, to, TestPacket::full(number)));
        }
    }

    fn run(&mut self) {
        self.run_before(Instant::ZERO + Duration::from_secs(10));
    }

    fn run_before(&mut self, end: Instant) {
        while let Some(at) = self.bss.poll_timeout().filter(|at| *at < end) {
            assert!(at >= self.now, "time runs forward");
            self.now = at;
            self.bss.handle_timeout(at);
            while let Some(delivery) = self.bss.poll_deliver() {
                self.delivered.push((self.bss.station(delivery.to), delivery.payload.number));
            }
            while let Some(frame) = self.bss.poll_air() {
                self.frames.push(frame);
            }
            while self.bss.poll_drained().is_some() {}
            self.bss.check().unwrap();
        }
    }

    /// Frames from the second PPDU on. The first PPDU has a single user, because packets for that user arrived first.
    fn script(&self) -> Vec<String> {
        let name = |frame: &Frame<TestPacket>| match frame {
            Frame::Data { .. } => "data",
            Frame::Trigger(_) => "trigger",
            Frame::BlockAck { .. } => "block ack",
            Frame::BlockAckReq { .. } => "request",
            Frame::Ack { .. } => "ack",
            Frame::MultiStaBlockAck(_) => "multi-STA block ack",
            Frame::QosNull { .. } => "null",
            Frame::TriggeredResponse(_) => "null with TRS",
            Frame::ActionNoAck { .. } => "action",
            _ => "other",
        };
        let mut lines: Vec<String> = Vec::new();
        for frame in &self.frames {
            let who = frame.receiver.map_or("all".into(), |to| to.0.to_string());
            let lost = if frame.outcome == Outcome::Received { "" } else { ", lost" };
            let line = format!("{} {} -> {who}{lost}", name(&frame.frame), frame.transmitter.0);
            if lines.last() != Some(&line) {
                lines.push(line);
            }
        }
        lines
    }
}

fn harness(acknowledgment: MuAcknowledgment, change: impl FnOnce(&mut BssConfig)) -> Harness {
    let mut config = config(4, acknowledgment);
    change(&mut config);
    Harness::new(config)
}

/// A packet for the third client makes the access point contend; packets for the others arrive before it sends.
fn four_users(mut harness: Harness) -> Harness {
    harness.send(3, 0..1);
    harness.send(1, 0..10);
    harness.send(2, 0..5);
    harness.send(4, 0..1);
    harness.run();
    harness
}

#[test]
fn users_answer_a_trigger_at_once() {
    let harness = four_users(harness(MuAcknowledgment::MuBar, |_| {}));
    assert_eq!(
        harness.script(),
        [
            "data 0 -> 3",
            "data 0 -> 1",
            "data 0 -> 2",
            "data 0 -> 4",
            "trigger 0 -> all",
            "block ack 3 -> 0",
            "block ack 1 -> 0",
            "block ack 2 -> 0",
            "block ack 4 -> 0"
        ]
    );
    let data: Vec<_> =
        harness.frames.iter().filter(|frame| matches!(frame.frame, Frame::Data { .. })).collect();
    let (first, last) = (data[0], data[data.len() - 1]);
    assert_eq!((first.at, first.duration), (last.at, last.duration), "one PPDU, as long as its longest part");
    // Four users at 80 MHz: units of 242 tones.
    assert!(
        data.iter().all(|frame| frame.mode.format == Format::HeMu
            && frame.mode.resource_unit == Some(ResourceUnit::Tones242))
    );
    assert_eq!([first.unit_index, last.unit_index], [Some(0), Some(3)]);
    let answers: Vec<_> =
        harness.frames.iter().filter(|frame| matches!(frame.frame, Frame::BlockAck { .. })).collect();
    assert!(answers.iter().all(|frame| (frame.at, frame.duration, frame.mode.format)
        == (answers[0].at, answers[0].duration, Format::HeTb)));
    // SIFS, a trigger for four users with 48 bytes of padding, SIFS.
    assert_eq!(answers[0].at, first.at + first.duration + us(16 + 60 + 16));
    // 36 bytes at MCS 5 in 242 tones with 1.6 us: one symbol, with 48 us before it and at least 4 us of extension after
    // it.
    assert!((us(66)..us(80)).contains(&answers[0].duration), "{}", answers[0].duration);
}

/// Each user's A-MPDU ends with the request to which it responds.
#[test]
fn requests_within_a_mpdus_are_heard() {
    for acknowledgment in [
        MuAcknowledgment::AggregatedMuBar,
        MuAcknowledgment::Cascade,
        MuAcknowledgment::TriggeredResponseScheduling,
    ] {
        let harness = four_users(harness(acknowledgment, |_| {}));
        for user in 1..=4 {
            let is_part = |frame: &&AirFrame<TestPacket>| {
                frame.receiver == Some(StationId(user)) && frame.mode.format == Format::HeMu
            };
            let mpdus: Vec<_> = harness.frames.iter().filter(is_part).collect();
            let (request, data) = mpdus.split_last().unwrap();
            match (&request.frame, acknowledgment) {
                (Frame::Trigger(trigger), MuAcknowledgment::AggregatedMuBar) => {
                    assert_eq!(
                        (trigger.kind, trigger.users[0].station),
                        (TriggerKind::MuBar, StationId(user))
                    );
                    assert_eq!(trigger.users.len(), 1);
                }
                (Frame::Trigger(trigger), MuAcknowledgment::Cascade) => {
                    assert_eq!((trigger.kind, trigger.users.len()), (TriggerKind::Basic, 1));
                }
                (Frame::TriggeredResponse(response), MuAcknowledgment::TriggeredResponseScheduling) => {
                    assert_eq!(Some(response.unit_index), request.unit_index);
                    assert!((1..=32).contains(&response.symbols), "{}", response.symbols);
                }
                (other, _) => panic!("{acknowledgment:?}: {other:?}"),
            }
            assert!(data.iter().all(|mpdu| matches!(mpdu.frame, Frame::Data { .. })));
            let last: Vec<bool> = mpdus.iter().map(|mpdu| mpdu.ampdu.unwrap().last).collect();
            assert_eq!(last.iter().position(|last| *last), Some(mpdus.len() - 1), "{acknowledgment:?}");
            assert!(
                mpdus.iter().all(|mpdu| mpdu.ampdu.unwrap().reference == request.ampdu.unwrap().reference)
            );
        }
    }
}

/// Three users at 80 MHz would leave one unit unused: two users get half of the channel each, and the third has the
/// next turn.
#[test]
fn no_unit_is_left_over() {
    let mut harness = Harness::new(config(3, MuAcknowledgment::MuBar));
    for client in 1..=3 {
        harness.send(client, 0..10);
    }
    harness.run();
    assert_eq!(
        harness.script(),
        [
            "data 0 -> 1",
            "data 0 -> 2",
            "trigger 0 -> all",
            "block ack 1 -> 0",
            "block ack 2 -> 0",
            "data 0 -> 3",
            "block ack 3 -> 0"
        ]
    );
    let unit = |to| {
        let mut data = harness.frames.iter().filter(|frame| frame.receiver == Some(StationId(to)));
        data.next().unwrap().mode.resource_unit
    };
    assert_eq!([1, 2].map(unit), [Some(ResourceUnit::Tones484); 2]);
}

#[test]
fn users_answer_one_after_the_other() {
    let harness = four_users(harness(MuAcknowledgment::BlockAckRequests, |_| {}));
    assert_eq!(
        harness.script(),
        [
            "data 0 -> 3",
            "data 0 -> 1",
            "data 0 -> 2",
            "data 0 -> 4",
            "block ack 3 -> 0",
            "request 0 -> 1",
            "block ack 1 -> 0",
            "request 0 -> 2",
            "block ack 2 -> 0",
            "request 0 -> 4",
            "block ack 4 -> 0"
        ]
    );
}

/// If the response of one user is lost, it is asked alone and nothing is sent twice. If the data of another is lost, it
/// is sent again.
#[test]
fn losses_of_one_user_do_not_touch_the_others() {
    for acknowledgment in MuAcknowledgment::ALL {
        let harness = four_users(harness(acknowledgment, |config| {
            config.stations[0].link_ack_loss = Loss::Scripted([0].into());
            config.stations[1].downlink_loss = Loss::Scripted((1..4).collect());
        }));
        let of = |station| {
            let delivered = harness.delivered.iter().filter(|(to, _)| *to == StationId(station));
            delivered.map(|(_, number)| *number).collect::<Vec<_>>()
        };
        assert_eq!(of(1), (0..10).collect::<Vec<_>>(), "{acknowledgment:?}");
        assert_eq!(of(2), (0..5).collect::<Vec<_>>(), "{acknowledgment:?}");
        assert_eq!(of(3), [0], "{acknowledgment:?}");
        let counters = harness.bss.counters(AP);
        assert_eq!((counters.missed_link_acks, counters.retries), (1, 3), "{acknowledgment:?}");
        assert_eq!(counters.block_ack_requests, 1, "{acknowledgment:?}: one alone, whose answer was lost");
    }
}

/// No user responds: the access failed, and each user is asked for its Block Ack alone.
#[test]
fn an_access_without_any_answer_failed() {
    let harness = four_users(harness(MuAcknowledgment::MuBar, |config| {
        for station in &mut config.stations {
            station.link_ack_loss = Loss::Scripted([0].into());
        }
    }));
    let counters = harness.bss.counters(AP);
    assert_eq!((counters.shared_ppdus, counters.shared_parts), (1, 4));
    assert_eq!((counters.missed_link_acks, counters.block_ack_requests, counters.retries), (4, 4, 0));
    assert_eq!(harness.delivered.len(), 17);
}

/// Clients send too and collide with multi-user PPDUs: no packet is lost in the end, and all time is accounted for.
#[test]
fn collisions_lose_nothing_for_good() {
    for acknowledgment in MuAcknowledgment::ALL {
        for capture in [false, true] {
            let config = BssConfig { capture, ..config(6, acknowledgment) };
            let span = Duration::from_millis(400);
            let mut bss = channel(config, 7, "collisions", span);
            let ids: Vec<_> = (1..=6).map(|id| StationId(id).first_function()).collect();
            let ap = AP.first_function();
            saturate(&mut bss, span, |bss, now| {
                for id in &ids {
                    while bss.queued(ap, *id) < 40 {
                        bss.enqueue(now, ap, *id, FULL);
                    }
                    while bss.queued(*id, ap) < 2 {
                        bss.enqueue(now, *id, ap, FULL);
                    }
                }
            });
            let end = Instant::ZERO + span;
            let counters = bss.counters(AP);
            assert!(bss.collisions() > 20 && counters.shared_ppdus > 20, "{counters:?}");
            assert_eq!(counters.mpdus_dropped, 0);
            let airtime = bss.airtime(end);
            assert!(airtime.get(AirtimeUse::Collision) > Duration::ZERO);
        }
    }
}

/// An access point that triggers its clients.
fn asking(clients: usize, triggers: Triggers, mu_edca: MuEdca, polls: bool) -> BssConfig {
    let ofdma = OfdmaConfig { triggers, mu_edca, polls, ..OfdmaConfig::USUAL };
    BssConfig { ofdma: Some(ofdma), ..config(clients, MuAcknowledgment::MuBar) }
}

/// Uplink packets of each client, which the access point acknowledges.
struct Up {
    bss: Channel,
    now: Instant,
    frames: Vec<AirFrame<TestPacket>>,
    delivered: Vec<(StationId, u32)>,
}

impl Up {
    /// Runs with `count` packets for the access point at each client.
    fn run(config: BssConfig, count: u32) -> Self {
        let clients = config.stations.len() as u16;
        let mut bss = channel(config, 1, "asked", Duration::from_secs(10));
        bss.record_air();
        let mut up = Self { bss, now: Instant::ZERO, frames: Vec::new(), delivered: Vec::new() };
        for client in 1..=clients {
            for number in 0..count {
                let from = StationId(client).first_function();
                assert!(up.bss.enqueue(up.now, from, AP.first_function(), TestPacket::full(number)));
            }
        }
        while let Some(at) = up.bss.poll_timeout().filter(|at| *at < Instant::ZERO + Duration::from_secs(5)) {
            assert!(at >= up.now, "time runs forward");
            up.now = at;
            up.bss.handle_timeout(at);
            while let Some(delivery) = up.bss.poll_deliver() {
                up.delivered.push((up.bss.station(delivery.from), delivery.payload.number));
            }
            while let Some(frame) = up.bss.poll_air() {
                up.frames.push(frame);
            }
            while up.bss.poll_drained().is_some() {}
            up.bss.check().unwrap();
        }
        up
    }

    fn of(&self, client: u16) -> Vec<u32> {
        let own = self.delivered.iter().filter(|(from, _)| *from == StationId(client));
        own.map(|(_, number)| *number).collect()
    }

    fn count(&self, is: impl Fn(&Frame<TestPacket>) -> bool) -> usize {
        self.frames.iter().filter(|frame| is(&frame.frame)).count()
    }
}

/// The first client to win the medium reports that more packets wait. The access point triggers it and all others that
/// reported packets; clients that then do not contend send when they are triggered alone.
#[test]
fn clients_send_when_they_are_asked() {
    for polls in [false, true] {
        for mu_edca in [MuEdca::Off, MuEdca::OpenWrt, MuEdca::Silent] {
            let up = Up::run(asking(4, Triggers::AckAware, mu_edca, polls), 700);
            for client in 1..=4 {
                assert_eq!(up.of(client), (0..700).collect::<Vec<_>>(), "client {client}, {mu_edca:?}");
                assert!(up.bss.counters(StationId(client)).triggered_ppdus > 0, "client {client}");
            }
            let counters = up.bss.counters(AP);
            let of_kind = |kind| up.count(|frame| matches!(frame, Frame::Trigger(it) if it.kind == kind));
            assert!(counters.triggers > 0 && of_kind(TriggerKind::Basic) > 0);
            assert_eq!(of_kind(TriggerKind::BufferStatusReport) > 0, polls);
            assert!(up.count(|frame| matches!(frame, Frame::MultiStaBlockAck(_))) > 0);
        }
    }
}

/// PPDUs in response to a trigger begin together one SIFS after it and end together; one Block Ack, a SIFS later,
/// answers all of them.
#[test]
fn answers_begin_and_end_together() {
    let up = Up::run(asking(4, Triggers::Always, MuEdca::Silent, false), 400);
    let mut rounds = 0;
    for (at, frame) in up.frames.iter().enumerate() {
        let Frame::Trigger(trigger) = &frame.frame else { continue };
        if frame.outcome != Outcome::Received {
            continue;
        }
        let begin = frame.at + frame.duration + us(16);
        let answers: Vec<_> = up.frames[at..]
            .iter()
            .filter(|answer| answer.at == begin && answer.unit_index.is_some())
            .collect();
        let Some(first) = answers.first() else { continue };
        assert!(answers.iter().all(|answer| answer.duration == first.duration
            && answer.mode.format == Format::HeTb
            && answer.receiver == Some(AP)));
        let expected = (3 * (first.duration.as_nanos() - 20_000).div_ceil(4_000) - 5) as u32;
        assert_eq!(trigger.l_sig_length, expected, "the trigger said how long");
        let acks = up.frames[at..].iter().find(|frame| matches!(frame.frame, Frame::MultiStaBlockAck(_)));
        if answers.iter().any(|answer| matches!(answer.frame, Frame::Data { .. })) {
            assert_eq!(acks.unwrap().at, begin + first.duration + us(16));
            rounds += 1;
        }
    }
    assert!(rounds > 3, "{rounds}");
}

/// One client misses the joint Block Ack, and of another client's data nothing arrives: both send again, and no packet
/// is passed up twice.
#[test]
fn lost_uplink_mpdus_are_retransmitted_and_passed_up_once() {
    let mut config = asking(3, Triggers::Always, MuEdca::Silent, false);
    config.stations[0].link_ack_loss = Loss::Scripted((1..6).collect());
    config.stations[1].uplink_loss = Loss::Scripted((100..200).collect());
    let up = Up::run(config, 300);
    for client in 1..=3 {
        assert_eq!(up.of(client), (0..300).collect::<Vec<_>>(), "client {client}");
    }
    let counters = [1, 2, 3].map(|client| up.bss.counters(StationId(client)));
    assert!(counters[0].missed_link_acks >= 1 && counters[0].retries > 0, "{:?}", counters[0]);
    assert!(counters[1].retries >= 100, "{:?}", counters[1]);
    assert!(counters.iter().all(|counters| counters.mpdus_dropped == 0));
}

/// Clients that responded to a trigger do not contend for two seconds, so that there are no collisions once all were
/// triggered; without this rule they contend in addition.
#[test]
fn silent_clients_do_not_collide() {
    let collisions = |mu_edca| {
        let span = Duration::from_secs(1);
        let mut bss = channel(asking(8, Triggers::Always, mu_edca, false), 3, "silent", span);
        let ap = AP.first_function();
        let delivered = saturate(&mut bss, span, |bss, now| {
            for client in 1..=8 {
                let from = StationId(client).first_function();
                while bss.queued(from, ap) < 100 {
                    bss.enqueue(now, from, ap, FULL);
                }
            }
        });
        (bss.collisions(), delivered)
    };
    let (silent, asked) = collisions(MuEdca::Silent);
    let (beside, contending) = collisions(MuEdca::Off);
    assert!(10 * silent < beside, "{silent} and {beside}");
    assert!(asked > contending, "{asked} and {contending} packets");
}

/// Triggers with units for random access.
fn random_access(clients: usize, triggers: Triggers, random_access_units: u16) -> BssConfig {
    let config = asking(clients, triggers, MuEdca::Silent, false);
    BssConfig { ofdma: config.ofdma.map(|ofdma| OfdmaConfig { random_access_units, ..ofdma }), ..config }
}

/// Backoffs of up to seven end at each trigger with eight units. Two clients choose the same unit in at most one of
/// eight triggers, because their windows double after a collision. Six clients with three units collide about every
/// second time.
#[test]
fn clients_take_units_at_random() {
    let collided = |config: BssConfig| {
        let (clients, span) = (config.stations.len() as u16, Duration::from_secs(1));
        let mut bss = channel(config, 1, "random access", span);
        saturate(&mut bss, span, |bss, now| {
            for client in 1..=clients {
                let from = StationId(client).first_function();
                while bss.queued(from, AP.first_function()) < 100 {
                    bss.enqueue(now, from, AP.first_function(), FULL);
                }
            }
        });
        let counters = (1..=clients).map(|client| bss.counters(StationId(client)));
        let (sent, missed) = counters.fold((0, 0), |(sent, missed), counters| {
            (sent + counters.triggered_ppdus, missed + counters.missed_link_acks)
        });
        assert!(sent > 500, "{sent}");
        missed as f64 / sent as f64
    };
    assert!(collided(random_access(1, Triggers::RandomAccess, 8)) < f64::EPSILON, "there is no other client");
    let of_two = collided(random_access(2, Triggers::RandomAccess, 8));
    assert!((0.08..0.13).contains(&of_two), "{of_two}");
    let of_six = collided(random_access(6, Triggers::RandomAccess, 3));
    assert!((0.25..0.6).contains(&of_six), "{of_six}");
}

/// Clients unknown to the access point report their queues in such a unit and are then triggered.
#[test]
fn a_report_in_a_unit_at_random_makes_the_access_point_ask() {
    let up = Up::run(random_access(4, Triggers::AckAware, 2), 600);
    for client in 1..=4 {
        assert_eq!(up.of(client), (0..600).collect::<Vec<_>>(), "client {client}");
    }
    let offers = |frame: &Frame<TestPacket>| match frame {
        Frame::Trigger(trigger) => trigger.users.iter().any(|user| user.station == AP && user.units == 2),
        _ => false,
    };
    assert!(up.count(offers) > 3);
    assert!(up.count(|frame| matches!(frame, Frame::QosNull { .. })) > 0);
}

/// Uploads of four triggered clients: the time of the trigger, of responses as long as a report can request, and of the
/// Block Ack, plus AIFS and the mean backoff.
#[test]
fn saturated_clients_send_what_they_can_report() {
    let span = Duration::from_secs(2);
    let mut config = asking(4, Triggers::Always, MuEdca::Silent, false);
    for station in &mut config.stations {
        station.mode = Mode::he(9, 1, 80, GuardInterval::Ns800).unwrap();
    }
    let mut bss = channel(config, 1, "asked", span);
    let ap = AP.first_function();
    let delivered = saturate(&mut bss, span, |bss, now| {
        for client in 1..=4 {
            let from = StationId(client).first_function();
            while bss.queued(from, ap) < 300 {
                bss.enqueue(now, from, ap, FULL);
            }
        }
    });
    let rounds = bss.counters(AP).triggers;
    let (each_us, per_round) = (span.as_micros() / rounds, delivered / rounds);
    // 254 units of 256 bytes plus a quarter for headers are 52 MPDUs of 1544 bytes per client, 6.2 ms at 108.3 Mb/s,
    // cut to 5.484 ms.
    assert!((5_484 + 150..5_484 + 420).contains(&each_us), "{each_us} us a round");
    assert!((4 * 46..=4 * 48).contains(&per_round), "{per_round} packets a round");
}

/// Clients have packets for the access point when its PPDU ends. They follow the clients' Block Acks, and one Block Ack
/// answers all of them.
#[test]
fn data_comes_behind_block_acks() {
    let ofdma = OfdmaConfig {
        acknowledgment: MuAcknowledgment::Cascade,
        triggers: Triggers::AckAware,
        mu_edca: MuEdca::Silent,
        ..OfdmaConfig::USUAL
    };
    let config = BssConfig { ofdma: Some(ofdma), ..config(4, MuAcknowledgment::Cascade) };
    let span = Duration::from_millis(500);
    let mut bss = channel(config, 5, "cascade", span);
    bss.record_air();
    let ap = AP.first_function();
    let ids: Vec<_> = (1..=4).map(|id| StationId(id).first_function()).collect();
    let mut frames = Vec::new();
    saturate(&mut bss, span, |bss, now| {
        for id in &ids {
            while bss.queued(ap, *id) < 100 {
                bss.enqueue(now, ap, *id, FULL);
            }
            while bss.queued(*id, ap) < 3 {
                bss.enqueue(now, *id, ap, FULL);
            }
        }
        while let Some(frame) = bss.poll_air() {
            frames.push(frame);
        }
    });
    let is_answer = |frame: &&AirFrame<TestPacket>| frame.mode.format == Format::HeTb;
    let block_acks: Vec<_> = frames
        .iter()
        .filter(is_answer)
        .filter(|frame| matches!(frame.frame, Frame::BlockAck { .. }))
        .collect();
    let behind = frames.iter().filter(is_answer).filter(|frame| matches!(frame.frame, Frame::Data { .. }));
    let with_data =
        behind.filter(|data| block_acks.iter().any(|ack| (ack.at, ack.duration) == (data.at, data.duration)));
    let with_data = with_data.count();
    assert!(block_acks.len() > 100 && with_data > 100, "{} Block Acks, {with_data} MPDUs", block_acks.len());
    for client in 1..=4 {
        let counters = bss.counters(StationId(client));
        assert!(counters.triggered_ppdus > 20 && counters.mpdus_dropped == 0, "{counters:?}");
    }
    assert!(bss.collisions() < 10, "{}", bss.collisions());
}

/// Lets only clients with even numbers share PPDUs, and triggers the client to which the most data was sent.
struct EvenOnes;

impl MuScheduler for EvenOnes {
    fn downlink(&mut self, _: Instant, ready: &[ReadyUser], most: usize, users: &mut Vec<usize>) {
        let even = ready.iter().enumerate().filter(|(_, user)| user.client.0.is_multiple_of(2));
        users.extend(even.map(|(position, _)| position).take(most));
        // Indices that are out of range or repeated have no effect.
        users.extend([ready.len(), users.first().copied().unwrap_or(0)]);
    }

    fn uplink(&mut self, _: Instant, clients: &[UplinkClient], _: usize, asked: &mut Vec<usize>) {
        let most_sent = clients.iter().enumerate().max_by_key(|(_, client)| client.sent_mpdus);
        asked.extend(most_sent.filter(|(_, client)| client.sent_mpdus > 0).map(|(position, _)| position));
    }
}

impl Named for EvenOnes {
    fn name(&self) -> &str {
        "even ones"
    }
}

impl MuSchedulerFactory for EvenOnes {
    fn scheduler(&self) -> Box<dyn MuScheduler> {
        Box::new(Self)
    }
}

/// A custom scheduler decides which clients share a PPDU, which client gets one alone, and which are triggered.
#[test]
fn a_scheduler_from_outside_decides() {
    let mut config = config(4, MuAcknowledgment::MuBar);
    let scheduler: ExternalMuScheduler = FactoryRef(&EvenOnes);
    config.ofdma = Some(OfdmaConfig { scheduler: Some(scheduler), ..OfdmaConfig::USUAL });
    let mut harness = Harness::new(config);
    harness.send(3, 0..1);
    for client in 1..=4 {
        harness.send(client, 0..5);
    }
    harness.run();
    let users_of = |frame: &AirFrame<TestPacket>| match &frame.frame {
        Frame::Trigger(trigger) => {
            let users = trigger.users.iter().map(|user| user.station.0).collect::<Vec<_>>();
            Some((trigger.kind, users))
        }
        _ => None,
    };
    let triggers: Vec<_> = harness.frames.iter().filter_map(users_of).collect();
    let shared = triggers.iter().filter(|(kind, _)| *kind == TriggerKind::MuBar).collect::<Vec<_>>();
    assert_eq!(shared, [&(TriggerKind::MuBar, vec![2, 4])], "1 and 3 have PPDUs of their own");
    let asked = triggers.iter().filter(|(kind, _)| *kind == TriggerKind::Basic);
    assert!(asked.clone().count() >= 4, "{triggers:?}");
    assert!(asked.clone().all(|(_, users)| users.len() == 1), "one at a time: {triggers:?}");
    assert_eq!(harness.delivered.len(), 21, "all of it arrives");
}

/// Under No Ack, nothing follows the multi-user PPDU: no trigger and no Block Acks, and nothing is sent again.
#[test]
fn nothing_answers_what_is_sent_without_acknowledgment() {
    let unacknowledged = |config: &mut BssConfig| {
        config.stations.iter_mut().for_each(|station| station.link_acks.down = LinkAcks::None);
        config.stations[0].downlink_loss = Loss::Scripted((0..10).collect());
    };
    for acknowledgment in MuAcknowledgment::ALL {
        let harness = four_users(harness(acknowledgment, unacknowledged));
        let script = ["data 0 -> 3", "data 0 -> 1, lost", "data 0 -> 2", "data 0 -> 4"];
        assert_eq!(harness.script(), script, "{acknowledgment:?}");
        let to = |client: u16| harness.delivered.iter().filter(|(to, _)| to.0 == client).count();
        assert_eq!([to(1), to(2), to(3)], [0, 5, 1], "{acknowledgment:?}");
        let first_to = |client| harness.frames.iter().find(|frame| frame.receiver == Some(StationId(client)));
        assert_eq!(first_to(1).unwrap().at, first_to(2).unwrap().at, "both are in one PPDU");
    }
    // About 170 us are saved per cycle of 5.5 ms.
    let mbps = |acks: LinkAcks| {
        let mut config = config(4, MuAcknowledgment::MuBar);
        config.stations.iter_mut().for_each(|station| station.link_acks.down = acks);
        saturated_mbps(config)
    };
    let gain = mbps(LinkAcks::None) / mbps(LinkAcks::Normal);
    assert!((1.02..1.05).contains(&gain), "{gain}");
}

/// Acknowledged users and unacknowledged ones have separate PPDUs.
#[test]
fn acknowledged_and_unacknowledged_users_do_not_mix() {
    let harness = four_users(harness(MuAcknowledgment::MuBar, |config| {
        config.stations[0].link_acks.down = LinkAcks::None;
    }));
    let shares = |client: u16| {
        let mut own = harness.frames.iter().filter(|frame| frame.receiver == Some(StationId(client)));
        own.any(|frame| frame.unit_index.is_some())
    };
    assert_eq!([1, 2, 3, 4].map(shares), [false, true, false, true]);
    assert_eq!(harness.delivered.len(), 17);
}

/// In a cascade, the access point sends more data before the ACKs for its earlier data arrive. It also triggers the
/// ACKs for the last PPDU, although the client may not contend and has no other data to receive.
#[test]
fn the_last_data_of_a_cascade_is_acknowledged_on_request() {
    let ofdma = OfdmaConfig {
        acknowledgment: MuAcknowledgment::Cascade,
        triggers: Triggers::AckAware,
        mu_edca: MuEdca::Silent,
        ..OfdmaConfig::USUAL
    };
    let end = Instant::ZERO + Duration::from_secs(1);
    let config = BssConfig { ofdma: Some(ofdma), ..config(4, MuAcknowledgment::Cascade) };
    let mut bss = channel(config, 1, "cascade", Duration::from_secs(1));
    let ap = AP.first_function();
    let [others @ .., last] = [1, 2, 3, 4].map(|id| StationId(id).first_function());
    // Until then, the last client has as much to receive as the others; its responses make it stop contending.
    let alike_until = Instant::ZERO + Duration::from_millis(200);
    let mut round_trips = 0;
    let mut now = Instant::ZERO;
    while now < end {
        let saturated = others.iter().chain((now < alike_until).then_some(&last));
        for client in saturated {
            while bss.queued(ap, *client) < 200 {
                bss.enqueue(now, ap, *client, FULL);
            }
        }
        now = bss.poll_timeout().unwrap();
        bss.handle_timeout(now);
        while let Some(delivery) = bss.poll_deliver() {
            if delivery.to != ap {
                bss.enqueue(now, delivery.to, ap, FULL);
            } else if delivery.from == last && now > alike_until && bss.queued(last, ap) == 0 {
                // All its data is acknowledged: send one more packet.
                round_trips += u32::from(bss.queued(ap, last) == 0);
                bss.enqueue(now, ap, last, FULL);
            }
        }
        while bss.poll_drained().is_some() {}
    }
    assert!(round_trips > 20, "{round_trips} in a second");
}

/// Clients that need not acknowledge data are triggered for their TCP responses to it.
#[test]
fn answers_to_unacknowledged_data_are_asked_for() {
    let span = Duration::from_secs(1);
    let mut config = asking(2, Triggers::AckAware, MuEdca::Silent, false);
    config.stations.iter_mut().for_each(|station| station.link_acks.down = LinkAcks::None);
    let mut bss = channel(config, 1, "unacknowledged", span);
    let ap = AP.first_function();
    let clients = [1, 2].map(|id| StationId(id).first_function());
    let (mut now, mut round_trips) = (Instant::ZERO, 0);
    // Eight packets at a time per client, alone and together.
    for client in clients {
        (0..8).for_each(|_| assert!(bss.enqueue(now, ap, client, FULL)));
    }
    while now < Instant::ZERO + span {
        let Some(at) = bss.poll_timeout() else { break };
        now = at;
        bss.handle_timeout(now);
        while let Some(delivery) = bss.poll_deliver() {
            let (from, to) = if delivery.to == ap { (ap, delivery.from) } else { (delivery.to, ap) };
            round_trips += u32::from(from == ap);
            bss.enqueue(now, from, to, FULL);
        }
        while bss.poll_drained().is_some() {}
    }
    assert!(round_trips > 50, "{round_trips} in a second");
    let triggers = bss.counters(AP).triggers;
    assert!(triggers > 20, "{triggers}");
}
