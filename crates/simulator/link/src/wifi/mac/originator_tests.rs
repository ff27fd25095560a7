//! An originator's shortcuts give the same result as its general paths, and its requests use the right rate.

use proptest::prelude::*;
use tacit_packet::units::{BitRate, Duration, Instant};

use super::super::rate_control::Rate;
use super::*;
use crate::queue::{Discipline, QueueLimit};
use crate::random::Stream;
use crate::wifi::LinkId;
use crate::wifi::bitmap::AckBitmap;
use crate::wifi::config::AmsduLimit;
use crate::wifi::phy::{GuardInterval, Standard};

/// A new packet.
fn packet(len: u32, is_ack: bool, holders: &mut Holders) -> PacketRef {
    let class = if is_ack { PayloadClass::Ack } else { PayloadClass::Data };
    PacketRef { id: holders.insert(), len, class, ..PacketRef::default() }
}

const LIFETIME: Duration = Duration::from_millis(20);

fn originator(discipline: Discipline, max_mpdus: Option<u32>, joins: bool) -> Originator {
    let phy = Standard::N.phy();
    let mode = Mode::for_rate(Standard::N, BitRate::from_mbps(15)).expect("802.11n has it");
    let control = phy.control_mode(&mode);
    let amsdu = joins.then_some(AmsduLimit::Bytes3839);
    let limits =
        AggregationLimits::new(phy, phy.mac_header_len(), [&mode, &control], (max_mpdus, 64), amsdu, None);
    let limit = QueueLimit { packets: Some(40), bytes: None };
    Originator::new(mode, control, limits, LinkAcks::Normal, QueueConfig { limit, discipline })
}

/// An operation on an originator.
#[derive(Clone, Copy, Debug)]
enum Step {
    Enqueue {
        count: u32,
        len: u32,
        is_ack: bool,
    },
    Wait(u64),
    /// Builds a PPDU from packets queued at least this many microseconds ago.
    Build(u64),
    /// A Block Ack arrives; these bits of its bitmap are cleared.
    Acknowledge(u64),
    AskForAll,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let missing =
        prop_oneof![3 => Just(0_u64), 1 => any::<u64>(), 1 => (0_u32..64).prop_map(|bit| 1_u64 << bit)];
    let step = prop_oneof![
        4 => (1_u32..8, 1_u32..1_500, any::<bool>())
            .prop_map(|(count, len, is_ack)| Step::Enqueue { count, len, is_ack }),
        2 => (0_u64..15_000).prop_map(Step::Wait),
        4 => prop_oneof![3 => Just(0), 1 => 0_u64..15_000].prop_map(Step::Build),
        4 => missing.prop_map(Step::Acknowledge),
        1 => Just(Step::AskForAll),
    ];
    prop::collection::vec(step, 0..60)
}

/// All observable state of the originator, and the holders of its packets.
fn describe((originator, holders): &(Originator, Holders)) -> String {
    format!("{originator:?} {holders:?}")
}

/// Fills a PPDU from the queue; returns its contents, the number of packets and their total wait.
fn fill(
    (originator, holders): &mut (Originator, Holders),
    now: Instant,
    queued_by: Instant,
    is_short: bool,
) -> (String, u64, Duration) {
    let (mut waits, mut time) = (Waits::new(), Duration::ZERO);
    let mut delays = Delays { holders, waits: &mut waits, time: &mut time };
    let mut plan = PpduPlan::default();
    if is_short {
        originator.fill_in_order(now, (queued_by, LIFETIME), &mut plan, &mut delays);
    }
    originator.fill_from_queue(now, (queued_by, LIFETIME), &mut plan, &mut delays);
    (format!("{plan:?}"), waits.histogram().len(), time)
}

/// Runs the steps; returns how many PPDUs were settled by the shortcut.
fn compare(originator: Originator, steps: Vec<Step>) -> u32 {
    let mut state = (originator, Holders::default());
    let (mut now, mut short_acks) = (Instant::ZERO + Duration::from_secs(1), 0);
    for step in steps {
        let before = state.clone();
        let (originator, holders) = &mut state;
        match step {
            Step::Enqueue { count, len, is_ack } => {
                for _ in 0..count {
                    let packet = packet(len, is_ack, holders);
                    if !originator.enqueue(now, packet, holders).0 {
                        holders.release(packet);
                    }
                }
            }
            Step::Wait(us) => now += Duration::from_micros(us),
            Step::Build(_) if originator.in_flight().next().is_some() => {}
            Step::Build(us) => {
                let queued_by = now - Duration::from_micros(us);
                if originator.upper.waiting == 0 {
                    let (mut short, mut long) = (before.clone(), before);
                    let filled = [(&mut short, true), (&mut long, false)]
                        .map(|(one, is_short)| fill(one, now, queued_by, is_short));
                    assert_eq!(filled[0], filled[1]);
                    assert_eq!(describe(&short), describe(&long));
                }
                let (mut waits, mut time) = (Waits::new(), Duration::ZERO);
                let mut delays = Delays { holders, waits: &mut waits, time: &mut time };
                originator.assemble(now, (queued_by, LIFETIME), 0, &mut delays);
            }
            Step::Acknowledge(missing) => {
                let start = originator.window_start();
                let bitmap = AckBitmap::of_64(!missing);
                let acked = |sequence| bitmap.contains(sequence_distance(start, sequence));
                let (mut short, mut long) = (before.clone(), before.clone());
                let settled = short.0.settle_all(acked, &mut short.1);
                short_acks += u32::from(settled.is_some_and(|settled| settled.mpdus > 0));
                match settled {
                    Some(settled) => {
                        let each = long.0.settle_each((acked, false), (3, now - LIFETIME), &mut long.1);
                        assert_eq!(format!("{settled:?}"), format!("{each:?}"));
                        assert_eq!(describe(&short), describe(&long));
                    }
                    None => assert_eq!(describe(&short), describe(&before)),
                }
                originator.block_acknowledged(start, &bitmap, 3, now - LIFETIME, holders);
                originator.request_due = false;
            }
            Step::AskForAll => originator.upper.untold = None,
        }
        let (originator, holders) = &state;
        holders.check(|see| originator.each_held(see)).expect("it releases what it no longer has");
    }
    short_acks
}

#[test]
fn mpdus_acknowledged_together_are_settled_together() {
    let steps = [
        Step::Enqueue { count: 6, len: 1_500, is_ack: false },
        Step::Build(0),
        Step::Acknowledge(0),
        Step::Enqueue { count: 2, len: 52, is_ack: true },
        Step::Build(0),
        Step::Acknowledge(0),
    ];
    assert_eq!(compare(originator(Discipline::DropTail, None, false), steps.to_vec()), 2);
}

/// Rates are tried whose control rate a distant peer cannot decode. The request for their Block Ack uses the control
/// rate of a rate that works.
#[test]
fn a_block_ack_is_asked_for_at_the_surest_control_rate() {
    let phy = Standard::N.phy();
    let rates = (0..8).filter_map(|mcs| Mode::ht(mcs, 1, true, GuardInterval::Ns400)).map(|mode| {
        let control_mode = phy.control_mode(&mode);
        let limits =
            AggregationLimits::new(phy, phy.mac_header_len(), [&mode, &control_mode], (None, 64), None, None);
        Rate { mode, control_mode, limits }
    });
    let lowest = rates.clone().next().expect("802.11n has rates");
    let mut originator = originator(Discipline::DropTail, None, false);
    let overhead = Duration::from_micros(160);
    originator.adapt_rate(Minstrel::new(rates, overhead, 7, Stream::new(1, "rates")));
    let (mut waits, mut time) = (Waits::new(), Duration::ZERO);
    let mut now = Instant::ZERO + LIFETIME;
    let mut tried_mbps = Vec::new();
    let holders = &mut Holders::default();
    for _ in 0..200 {
        now += Duration::from_millis(5);
        originator.enqueue(now, packet(1_500, false, holders), holders);
        originator.build(now, LIFETIME, &mut Delays { holders, waits: &mut waits, time: &mut time });
        let start = originator.window_start();
        if originator.mode.rate() == lowest.mode.rate() {
            let settled =
                originator.block_acknowledged(start, &AckBitmap::of_64(u64::MAX), 7, now - LIFETIME, holders);
            originator.report_rate(settled);
        } else {
            tried_mbps.push(originator.control_mode.rate().as_bps() / 1_000_000);
            originator.report_rate(Settled::default());
            originator.block_ack_missed();
            assert_eq!(originator.control_mode.rate(), lowest.control_mode.rate());
            originator.block_acknowledged(start, &AckBitmap::new(64), 7, now - LIFETIME, holders);
        }
    }
    assert!(tried_mbps.contains(&12) && tried_mbps.contains(&24), "{tried_mbps:?}");
}

/// Rate control would see more MPDUs arrive than this link's PPDU had: a chance above 100 %.
#[test]
fn a_block_ack_for_several_links_counts_mpdus_of_its_own() {
    let mut originator = originator(Discipline::DropTail, None, false);
    originator.role.settles_others = true;
    let (mut waits, mut time) = (Waits::new(), Duration::ZERO);
    let holders = &mut Holders::default();
    let now = Instant::ZERO + LIFETIME;
    for _ in 0..3 {
        originator.enqueue(now, packet(1_500, false, holders), holders);
    }
    originator.build(now, LIFETIME, &mut Delays { holders, waits: &mut waits, time: &mut time });
    originator.upper.window[0].state = MpduState::InFlight(LinkId(1));
    let start = originator.window_start();
    let settled =
        originator.block_acknowledged(start, &AckBitmap::of_64(u64::MAX), 7, now - LIFETIME, holders);
    assert_eq!((settled.mpdus, settled.first_try), (2, 3));
}

proptest! {
    #[test]
    fn the_short_ways_lead_where_the_long_ones_do(
        discipline in prop_oneof![
            3 => Just(Discipline::DropTail),
            1 => Just(Discipline::DropHead),
            1 => Just(Discipline::CoDel(crate::queue::CoDelConfig::MAC80211)),
        ],
        max_mpdus in prop::option::of(1_u32..6),
        joins in prop::bool::weighted(0.2),
        reports_acks in prop::bool::weighted(0.2),
        steps in steps(),
    ) {
        let mut originator = originator(discipline, max_mpdus, joins);
        if reports_acks {
            originator.report_acks();
        }
        compare(originator, steps);
    }
}
