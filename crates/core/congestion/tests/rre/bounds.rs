//! Invariants of the core for any input, including numbers that no path would give, in any order.

use proptest::prelude::*;
use tacit_congestion::rre::{Ack, Client, Core, Parameters, State};

use crate::event::Event;

/// The largest rate and window, and the longest round-trip time that counts for the minimum rate (core.rs).
const MAX_RATE: u64 = 12_500_000_000;
const MAX_WINDOW: u64 = 0x7fff_ffff;
const LEAST_RATE_US: u64 = 100_000;

/// Any number, often a small one or an extreme one.
fn number() -> impl Strategy<Value = u32> {
    prop_oneof![
        any::<u32>(),
        any::<u32>().prop_flat_map(|mask| (0..=mask.count_ones()).prop_map(move |shift| mask >> shift)),
        0_u32..20_000,
        Just(0),
        Just(u32::MAX),
        Just(1 << 31),
    ]
}

/// Steps of local time: usually forward, sometimes zero; up to 35 years.
fn time() -> impl Strategy<Value = u64> {
    prop_oneof![6 => 0_u64..30_000_000, 3 => 0_u64..3_600_000_000, 1 => 0_u64..1 << 50]
}

fn ack() -> impl Strategy<Value = Ack> {
    let numbers = (number(), number(), number(), number(), number(), number(), number());
    (time(), any::<[bool; 4]>(), numbers).prop_map(
        |(now_us, [stamped, advanced, limited, repairing], numbers)| {
            let (value, echo, delivered, lost, in_flight, rtt_us, smoothed_rtt_us) = numbers;
            Ack {
                now_us,
                stamped,
                value,
                echo,
                advanced,
                delivered,
                lost,
                in_flight,
                rtt_us,
                smoothed_rtt_us,
                limited,
                repairing,
            }
        },
    )
}

/// ACKs as a path delivers them, except for the randomly chosen fields.
fn likely_ack() -> impl Strategy<Value = Ack> {
    (0_u64..400_000, 0_u32..300, 0_u32..40, any::<[bool; 2]>(), 0_u32..64).prop_map(
        |(apart_us, behind, packets, [limited, repairing], loss)| Ack {
            now_us: apart_us,
            stamped: true,
            value: behind,
            echo: behind / 2,
            advanced: loss != 0,
            delivered: packets * 1_448,
            lost: if loss == 1 { 1_448 } else { 0 },
            in_flight: packets * 1_448,
            rtt_us: 50_000 + behind * 1_000,
            smoothed_rtt_us: 50_000 + behind * 1_000,
            limited,
            repairing,
        },
    )
}

fn event(ack: impl Strategy<Value = Ack> + 'static) -> impl Strategy<Value = Event> {
    prop_oneof![
        30 => ack.prop_map(Event::Ack),
        1 => (time(), number(), number()).prop_map(|(now, value, echo)| Event::Handshake(now, value, echo)),
        2 => time().prop_map(Event::Timeout),
        1 => time().prop_map(Event::Undo),
        1 => time().prop_map(Event::TransmitStart),
        1 => time().prop_map(Event::Silence),
        1 => (time(), any::<bool>()).prop_map(|(now, repeated)| Event::Recall(now, repeated)),
    ]
}

fn parameters() -> impl Strategy<Value = Parameters> {
    let usual = Parameters {
        mss: 1_448,
        initial_window: 14_480,
        handshake_rtt_us: 50_000,
        sender_tick_us: 1_000,
        target_us: 0,
    };
    let any_at_all = [number(), number(), number(), number(), number()].prop_map(
        |[mss, initial_window, handshake_rtt_us, sender_tick_us, target_us]| Parameters {
            mss,
            initial_window,
            handshake_rtt_us,
            sender_tick_us,
            target_us,
        },
    );
    prop_oneof![Just(usual), any_at_all]
}

/// Limits that always hold. The minimum rate is two segments per round-trip time of at least 100 ms.
fn hold_bounds(core: &Core, parameters: &Parameters) {
    let mss = u64::from(parameters.mss.clamp(1, 65_535));
    let least_rate = 2 * mss * 1_000_000 / LEAST_RATE_US;
    assert!(core.rate() > 0 || mss < 3, "{core:?}");
    assert!(core.rate() <= MAX_RATE, "{core:?}");
    assert!((mss..=MAX_WINDOW).contains(&core.window()), "{core:?}");
    assert!(core.receive_rate() <= MAX_RATE, "{core:?}");
    if core.state() != State::Start && core.receive_rate() > 0 {
        let most = (2 * core.receive_rate()).max(least_rate);
        assert!(core.rate() <= most, "more than {most}: {core:?}");
    }
}

fn run(parameters: Parameters, events: Vec<Event>) {
    let mut core = Core::new(parameters, 1_000_000);
    let mut client = Client::default();
    let mss = u64::from(parameters.mss.clamp(1, 65_535));
    hold_bounds(&core, &parameters);
    for event in events {
        let before = core.rate();
        let collapsed = core.window() == mss;
        event.happen_to(&mut core, &mut client);
        match event {
            Event::Ack(ack) => assert!(!collapsed || ack.delivered > 0 || core.window() == mss, "{core:?}"),
            Event::Timeout(_) => assert_eq!(core.window(), mss, "one segment after a timeout"),
            Event::Silence(_) => {
                assert!(core.rate() <= before.max(2 * mss * 1_000_000 / LEAST_RATE_US), "{core:?}");
            }
            Event::Start(..)
            | Event::Handshake(..)
            | Event::Undo(_)
            | Event::TransmitStart(_)
            | Event::Recall(..) => {}
        }
        assert!(core.silent_at_us() > 0);
        hold_bounds(&core, &parameters);
    }
}

/// Converts the time and the clocks of [`likely_ack`], which are steps, to absolute readings.
fn running(events: Vec<Event>) -> Vec<Event> {
    let (mut now_us, mut sent_us) = (2_000_000, 1_900_000_u64);
    let mut on = |event| match event {
        Event::Ack(ack) => {
            now_us += ack.now_us;
            let sent_now_us = now_us - u64::from(ack.value) * 1_000;
            sent_us = if ack.advanced { sent_now_us.max(sent_us) } else { sent_us };
            let value = ((now_us - u64::from(ack.echo) * 1_000) / 1_000) as u32;
            Event::Ack(Ack { now_us, value, echo: (sent_us / 1_000) as u32, ..ack })
        }
        Event::Handshake(_, value, echo) => Event::Handshake(now_us, value, echo),
        Event::Timeout(_) => Event::Timeout(now_us),
        Event::Undo(_) => Event::Undo(now_us),
        Event::TransmitStart(_) => Event::TransmitStart(now_us),
        Event::Silence(_) => Event::Silence(now_us),
        Event::Start(_, parameters) => Event::Start(now_us, parameters),
        Event::Recall(_, repeated) => Event::Recall(now_us, repeated),
    };
    events.into_iter().map(&mut on).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn nothing_that_is_said_breaks_a_bound(
        parameters in parameters(),
        events in prop::collection::vec(event(ack()), 0..200),
    ) {
        run(parameters, events);
    }

    #[test]
    fn nothing_that_a_path_does_breaks_a_bound(
        parameters in parameters(),
        events in prop::collection::vec(event(likely_ack()), 0..400),
    ) {
        run(parameters, running(events));
    }
}
