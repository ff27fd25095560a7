use super::super::parts::MIN_SEGMENTS;
use super::super::path::{MSS, Path, RTT};
use super::*;
use crate::control::CongestionControl as _;
use crate::rate::LostPacket;

fn start() -> Path<Bbr3> {
    let start = Start { seed: 1, rtt: Some(RTT), ..Start::default() };
    Path::new(Bbr3::new(crate::Config::default().window(MSS as u32), start))
}

/// One in `phase`, whose pipe has been full at 80 Mb/s, which are 100 segments in 10 ms, and that sends at that rate.
fn reached(phase: Phase) -> Path<Bbr3> {
    let mut path = start();
    for _ in 0..1_000 {
        if path.bbr.is_in(phase) {
            return path;
        }
        path.round(80);
    }
    panic!("never in {phase:?}");
}

/// A delivery after which `lost` bytes of a `window` in flight are declared lost.
fn losing(path: &mut Path<Bbr3>, window: u64, lost: u64) -> Delivery {
    let mut delivery = path.delivery(100 * MSS);
    (delivery.lost, delivery.in_flight) = (lost, window);
    delivery.repair = Repair::Fast;
    let sample = &mut delivery.sample;
    (sample.lost, sample.newly_lost, sample.tx_in_flight) = (lost, lost, window);
    if lost * 50 > window {
        let packet = LostPacket { size: MSS, tx_in_flight: window, lost, app_limited: false };
        sample.heavy_loss = Some(packet);
    }
    delivery
}

/// Section 5.3.1.2, 5.3.2: a plateau of three rounds, then half the rate until a product is in flight.
#[test]
fn startup_ends_by_the_plateau_and_drains() {
    let mut path = start();
    for mbps in [10, 20, 40, 80, 80, 80] {
        path.round(mbps);
        assert_eq!(path.bbr.common.mode, Mode::Startup, "{mbps}");
        assert_eq!(path.bbr.common.pacing_rate, paced(BitRate::from_mbps(mbps), STARTUP_GAIN));
    }
    let mut last = path.delivery(100 * MSS);
    last.in_flight = 200 * MSS;
    path.bbr.update(&last);
    assert_eq!(path.bbr.common.mode, Mode::Drain);
    assert_eq!(path.bbr.common.pacing_rate, paced(BitRate::from_mbps(80), UNIT / 2));
    path.round(80);
    assert_eq!(path.bbr.common.mode, Mode::ProbeBandwidth, "a product is in flight");
}

/// "BBR enters ProbeBW after 3 round-trips" (section 5.3.2).
#[test]
fn draining_takes_four_rounds_at_most() {
    let mut path = start();
    let mut modes = Vec::new();
    for _ in 0..10 {
        let mut delivery = path.delivery(100 * MSS);
        delivery.in_flight = 200 * MSS;
        path.bbr.update(&delivery);
        modes.push(path.bbr.common.mode);
    }
    let drained = modes.iter().filter(|mode| **mode == Mode::Drain).count();
    assert_eq!(drained, 4, "{modes:?}");
}

/// Section 5.3.1.3: more than 2 %, in six places, in a round of recovery.
#[test]
fn losses_end_startup_only_if_all_three_conditions_hold() {
    let ends = |events: u32, lost: u64, repair: Repair| {
        let mut path = start();
        path.round(10);
        for event in 1..=events {
            let mut delivery = losing(&mut path, 100 * MSS, lost);
            // All but the last belong to one round.
            if event < events {
                delivery.sample.prior_delivered = 0;
            }
            delivery.repair = repair;
            path.bbr.update(&delivery);
        }
        (path.bbr.common.mode != Mode::Startup).then_some(path.bbr.long.in_flight)
    };
    assert_eq!(ends(6, 3 * MSS, Repair::Fast), Some(Some(100 * MSS)), "with a bound: a product");
    assert_eq!(ends(5, 3 * MSS, Repair::Fast), None);
    assert_eq!(ends(6, 2 * MSS, Repair::Fast), None);
    assert_eq!(ends(6, 3 * MSS, Repair::Timeout), None);
}

/// The table of section 5.6.1.
#[test]
fn each_phase_has_its_gains() {
    let gains = |phase| {
        let bbr = reached(phase).bbr;
        (bbr.pacing_gain() * 100 / UNIT, bbr.cwnd_gain() * 100 / UNIT)
    };
    assert_eq!(gains(Phase::Down), (89, 200), "0.9 in 256ths");
    assert_eq!(gains(Phase::Cruise), (100, 200));
    assert_eq!(gains(Phase::Refill), (100, 200));
    assert_eq!(gains(Phase::Up), (125, 225));
}

/// Section 5.3.3.1: down until the queue is gone, and until there is headroom below the bound.
#[test]
fn cruising_begins_with_an_empty_queue_and_headroom() {
    let cruises = |in_flight: u64, bound: Option<u64>| {
        let mut path = reached(Phase::Down);
        path.bbr.long.in_flight = bound;
        path.bbr.is_time_to_cruise(in_flight)
    };
    // The product; a pacer's three bursts are less.
    assert!(cruises(100 * MSS, None) && !cruises(101 * MSS, None));
    let headroom = 100 * MSS - 100 * MSS * HEADROOM / UNIT;
    assert!(cruises(headroom, Some(100 * MSS)) && !cruises(headroom + 1, Some(100 * MSS)));
}

/// Section 5.3.3.8: 63 rounds, or fewer if fewer segments are in flight, and two to three seconds.
#[test]
fn probes_wait_as_reno_would_and_three_seconds_at_most() {
    let mut path = reached(Phase::Cruise);
    path.bbr.rounds_since_probe = 62;
    let soon = path.bbr.cycle_at + Duration::from_millis(1);
    assert!(!path.bbr.is_time_to_probe(soon));
    path.bbr.rounds_since_probe = 63;
    assert!(path.bbr.is_time_to_probe(soon));
    path.bbr.common.window.cwnd = 20 * MSS;
    path.bbr.rounds_since_probe = 20;
    assert!(path.bbr.is_time_to_probe(soon));
    path.bbr.rounds_since_probe = 19;
    assert!(!path.bbr.is_time_to_probe(soon));
    let mut waits = Vec::new();
    for _ in 0..100 {
        path.bbr.start_down(Instant::ZERO);
        waits.push(path.bbr.probe_wait);
        assert!(path.bbr.rounds_since_probe <= 1);
        assert!(path.bbr.is_time_to_probe(Instant::ZERO + path.bbr.probe_wait + Duration::from_nanos(1)));
    }
    let (least, most) = (waits.iter().min().unwrap(), waits.iter().max().unwrap());
    assert!(*least >= Duration::from_secs(2) && *most <= Duration::from_secs(3));
    assert!(*most - *least > Duration::from_millis(800), "spread: {least:?} to {most:?}");
}

/// Section 5.3.3.3: lasts one round and resets the short-term model. ProbeBW_UP follows.
#[test]
fn refilling_lasts_a_round_and_forgets_what_others_took() {
    let mut path = reached(Phase::Cruise);
    path.bbr.short.bandwidth = Some(BitRate::from_mbps(40));
    path.bbr.short.in_flight = Some(40 * MSS);
    assert_eq!(path.bbr.rate(), BitRate::from_mbps(40));
    path.bbr.rounds_since_probe = 63;
    path.round(80);
    assert!(path.bbr.is_in(Phase::Refill));
    assert_eq!(path.bbr.rate(), BitRate::from_mbps(80));
    assert_eq!(path.bbr.cwnd_bound(), None);
    let mut same_round = path.delivery(MSS);
    same_round.sample.prior_delivered = 0;
    path.bbr.update(&same_round);
    assert!(path.bbr.is_in(Phase::Refill));
    path.round(80);
    assert!(path.bbr.is_in(Phase::Up));
}

/// Section 5.3.3.7: a plateau of three rounds ends a probe; while the rate grows it continues.
#[test]
fn a_probe_lasts_while_the_rate_grows() {
    let mut path = reached(Phase::Up);
    for mbps in [100, 125, 157, 157, 157] {
        path.round(mbps);
        assert!(path.bbr.is_in(Phase::Up), "{mbps}");
    }
    path.round(157);
    assert!(path.bbr.is_in(Phase::Down));
    assert_eq!(path.bbr.bandwidth.largest(), BitRate::from_mbps(157));
}

/// Section 5.5.10.2: more than 2 % of what was in flight ends the probe, and bounds it, once.
#[test]
fn a_probe_that_loses_too_much_is_bounded() {
    let after = |window: u64, lost: u64| {
        let mut path = reached(Phase::Up);
        let delivery = losing(&mut path, window, lost);
        path.bbr.update(&delivery);
        path
    };
    let tolerable = after(150 * MSS, 3 * MSS);
    assert!(tolerable.bbr.is_in(Phase::Up) && tolerable.bbr.long.in_flight.is_none());
    let mut path = after(140 * MSS, 3 * MSS);
    assert!(path.bbr.is_in(Phase::Down));
    // 139 segments were in flight before the packet, two lost: the threshold was crossed 0.8 of a segment later.
    assert_eq!(path.bbr.long.in_flight, Some(139_000 + (139_000 - 2_000 * 50) / 49));
    let again = losing(&mut path, 50 * MSS, 5 * MSS);
    path.bbr.update(&again);
    assert!(path.bbr.long.in_flight > Some(139 * MSS), "once per probe");
    // Beta: not below 0.7 of a product of 100 segments.
    let low = after(50 * MSS, 3 * MSS).bbr.long.in_flight;
    assert_eq!(low, Some(100 * MSS * BETA / UNIT));
}

/// Section 5.5.10.3: by 0.7 at most, towards what was delivered in the round, and only where nothing probes.
#[test]
fn other_losses_cut_the_short_term_model_once_a_round() {
    let mut path = reached(Phase::Cruise);
    let mut delivery = losing(&mut path, 100 * MSS, 5 * MSS);
    path.bbr.update(&delivery);
    assert_eq!(path.bbr.short.bandwidth, None, "at the end of the round");
    let cwnd = path.bbr.common.window.cwnd;
    // The path delivers half.
    path.round(40);
    assert_eq!(path.bbr.short.bandwidth, Some(BitRate::from_mbps(80)), "the round delivered as much");
    assert_eq!(path.bbr.short.in_flight, Some((cwnd * BETA / UNIT).max(100 * MSS)));
    delivery = losing(&mut path, 50 * MSS, 5 * MSS);
    (delivery.sample.over, delivery.sample.newly_delivered) =
        (Some((tacit_packet::units::Bytes(50_000), RTT)), 50 * MSS);
    path.bbr.update(&delivery);
    path.round(40);
    assert_eq!(path.bbr.short.bandwidth, Some(cut(80)));
    assert_eq!(path.bbr.rate(), cut(80));
    assert!(path.bbr.common.window.cwnd <= path.bbr.short.in_flight.unwrap());
}

/// 0.7 of a rate.
fn cut(mbps: u64) -> BitRate {
    BitRate::from_bps(mbps * 1_000_000 * BETA / UNIT)
}

/// Sections 5.3.3.1 and 5.6.4.7: 15 % below the bound while cruising, the bound elsewhere.
#[test]
fn cruising_leaves_headroom() {
    for (phase, most) in [(Phase::Down, 100_000), (Phase::Cruise, 85_157), (Phase::Refill, 100_000)] {
        let mut path = reached(phase);
        path.bbr.long.in_flight = Some(100 * MSS);
        assert_eq!(path.bbr.cwnd_bound(), Some(most), "{phase:?}");
    }
}

/// Section 5.3.3.6: the probe after one that lost too much ends at the bound, and if that is well is followed by another.
#[test]
fn the_probe_after_losses_is_careful() {
    let mut path = reached(Phase::Up);
    let delivery = losing(&mut path, 120 * MSS, 5 * MSS);
    path.bbr.update(&delivery);
    assert!(path.bbr.is_in(Phase::Down) && path.bbr.lost_too_much);
    let bound = path.bbr.long.in_flight.unwrap();
    while !path.bbr.is_in(Phase::Up) {
        path.round(80);
    }
    let mut delivery = path.delivery(100 * MSS);
    (delivery.prior_in_flight, delivery.in_flight) = (0, bound - 1);
    path.bbr.update(&delivery);
    assert!(path.bbr.is_in(Phase::Up), "not at the bound yet");
    delivery = path.delivery(100 * MSS);
    (delivery.prior_in_flight, delivery.in_flight) = (0, bound);
    path.bbr.update(&delivery);
    assert!(path.bbr.is_in(Phase::Down) && path.bbr.was_precautionary);
    path.round(80);
    assert!(path.bbr.is_in(Phase::Refill), "nothing was lost: again at once");
}

/// Section 5.3.4: after five seconds without as small a round trip, half a product for 200 ms and a round.
#[test]
fn probing_the_round_trip_halves_what_is_in_flight() {
    let mut path = reached(Phase::Cruise);
    while path.bbr.common.mode != Mode::ProbeRtt {
        let mut delivery = path.delivery(100 * MSS);
        delivery.sample.rtt = Some(RTT * 2);
        path.bbr.update(&delivery);
        assert!(path.now < Instant::ZERO + Duration::from_millis(5_100));
    }
    assert!(path.now > Instant::ZERO + Duration::from_millis(5_000));
    assert_eq!(path.bbr.common.window.cwnd, 50 * MSS);
    assert!(path.bbr.holds_back());
    let begun = path.now;
    while path.bbr.common.mode == Mode::ProbeRtt {
        path.round(40);
    }
    let lasted = path.now - begun;
    assert!((Duration::from_millis(200)..Duration::from_millis(230)).contains(&lasted), "{lasted:?}");
    assert!(path.bbr.is_in(Phase::Cruise) && path.bbr.common.window.cwnd >= 100 * MSS);
}

/// The maximum of the latest two cycles.
#[test]
fn the_bandwidth_is_of_two_cycles() {
    let mut path = reached(Phase::Cruise);
    path.round(80);
    let cycle = path.bbr.cycle;
    while path.bbr.cycle < cycle + 2 {
        assert_eq!(path.bbr.bandwidth.largest(), BitRate::from_mbps(80), "cycle {}", path.bbr.cycle);
        path.round(40);
    }
    path.round(40);
    assert_eq!(path.bbr.bandwidth.largest(), BitRate::from_mbps(40));
}

/// Section 5.5.11: restores the bounds, and repeats a probe that losses ended.
#[test]
fn losses_that_were_none_are_undone() {
    let mut path = reached(Phase::Up);
    path.bbr.on_loss(0);
    let delivery = losing(&mut path, 120 * MSS, 5 * MSS);
    path.bbr.update(&delivery);
    assert!(path.bbr.is_in(Phase::Down) && path.bbr.long.in_flight.is_some());
    path.bbr.on_undo(0);
    assert!(path.bbr.is_in(Phase::Refill));
    assert_eq!((path.bbr.long.in_flight, path.bbr.short.in_flight), (None, None));
}

/// A timeout leaves one segment, and the end of its repair restores the window.
#[test]
fn the_window_comes_back_after_a_timeout() {
    let mut path = reached(Phase::Cruise);
    let before = path.bbr.common.window.cwnd;
    path.bbr.on_timeout(path.now, 0);
    assert_eq!(path.bbr.common.window.cwnd, MSS);
    let mut delivery = path.delivery(MSS);
    delivery.repair = Repair::Timeout;
    path.bbr.update(&delivery);
    assert_eq!(path.bbr.common.window.cwnd, MIN_SEGMENTS * MSS);
    delivery = path.delivery(MSS);
    path.bbr.update(&delivery);
    assert!(path.bbr.common.window.cwnd >= before);
}
