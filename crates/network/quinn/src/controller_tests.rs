use super::*;
use crate::delivery::bytes_in;
use crate::model::{Model, PACKET_BYTES, Path, Seen, start};

/// Longer than most peers wait unasked, and short enough for the queue of a device.
const MAX_ACK_DELAY: Duration = Duration::from_millis(10);
const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
/// 220 Mb/s, the throughput of 802.11n at a PHY rate of 300 Mb/s.
const RATE: u64 = 27_500_000;
/// Propagation round-trip times in ms.
const ROUND_TRIPS: [u32; 3] = [10, 80, 200];

fn path(rtt_ms: u32) -> Path {
    Path {
        rate_bytes_per_s: RATE,
        rtt: MS * rtt_ms,
        // Linux's default device queue.
        queue_bytes: 1_000 * PACKET_BYTES,
        max_ack_delay: MAX_ACK_DELAY,
        lost_per_mille: 0,
        acks_lost_per_mille: 0,
    }
}

/// Bytes that arrive between the departure of a packet and its ACK.
fn arriving(path: &Path) -> u64 {
    bytes_in(path.rate_bytes_per_s, path.rtt + path.max_ack_delay)
}

/// Delivery rate in percent of the path's rate.
fn percent(seen: &Seen, path: &Path) -> u64 {
    seen.bytes_per_s() * 100 / path.rate_bytes_per_s
}

/// A model after startup, and before the first search for the minimum round-trip time.
fn settled(path: Path) -> (Model, Seen) {
    let mut model = Model::new(path);
    model.run(SECOND * 5);
    let seen = model.run(SECOND * 4);
    (model, seen)
}

#[test]
fn the_rate_of_a_bottleneck_is_found_and_little_waits() {
    for rtt_ms in ROUND_TRIPS {
        let path = path(rtt_ms);
        let (model, seen) = settled(path);
        assert!(percent(&seen, &path) >= 98, "{rtt_ms} ms: {} %", percent(&seen, &path));
        let measured = model.controller.rate.max();
        assert!((RATE * 99 / 100..RATE * 102 / 100).contains(&measured), "{rtt_ms} ms: {measured} bytes/s");
        // The standing queue, the bytes that an ACK interval sends in a burst, and a sixteenth for a probe.
        let most = bytes_in(RATE, (STANDING_QUEUE + path.max_ack_delay) * 17 / 16 + path.rtt / 16);
        let waiting = seen.waiting_percentile(95);
        assert!(waiting <= most, "{rtt_ms} ms: {waiting} bytes wait, of {most}");
    }
}

#[test]
fn losses_at_random_are_no_reason_to_send_less() {
    for rtt_ms in ROUND_TRIPS {
        for lost_per_mille in [10, 50] {
            let path = Path { lost_per_mille, ..path(rtt_ms) };
            let (_, seen) = settled(path);
            let name = format!("{rtt_ms} ms and {lost_per_mille} of 1,000");
            assert!(percent(&seen, &path) >= 97, "{name}: {} %", percent(&seen, &path));
            // Each loss is reported at once, so no room for an ACK interval is needed.
            let path_holds = bytes_in(RATE, path.rtt);
            assert!(seen.window_min >= path_holds, "{name}: {} bytes", seen.window_min);
        }
    }
}

#[test]
fn room_is_kept_for_the_interval_that_there_is() {
    for rtt_ms in ROUND_TRIPS {
        for delay_ms in [0, 5, 25, 50] {
            let path = Path { max_ack_delay: MS * delay_ms, ..path(rtt_ms) };
            let (_, seen) = settled(path);
            let name = format!("{rtt_ms} ms and {delay_ms} ms");
            assert!(percent(&seen, &path) >= 97, "{name}: {} %", percent(&seen, &path));
            assert!(seen.window_min >= arriving(&path), "{name}: {} bytes", seen.window_min);
            // And no more than that, plus a standing queue that a probe enlarges.
            let most = bytes_in(RATE, path.rtt + path.max_ack_delay + STANDING_QUEUE + MS) * 5 / 4;
            assert!(seen.window_max <= most, "{name}: {} bytes, of {most}", seen.window_max);
        }
    }
}

#[test]
fn lost_acks_cost_little() {
    for rtt_ms in ROUND_TRIPS {
        let path = Path { acks_lost_per_mille: 100, ..path(rtt_ms) };
        let (_, seen) = settled(path);
        assert!(percent(&seen, &path) >= 96, "{rtt_ms} ms: {} %", percent(&seen, &path));
    }
}

#[test]
fn a_burst_of_losses_leaves_room_for_what_arrives() {
    let path = path(80);
    let (mut model, _) = settled(path);
    model.outage_until = Some(model.now + MS * 40);
    let seen = model.run(SECOND);
    assert!(seen.lost_bytes > bytes_in(RATE, MS * 20), "{} bytes lost", seen.lost_bytes);
    // Half of the path ran empty, and refills at the pace of arrivals: quinn's pace is 5/4 of the window.
    assert!(seen.window_min >= bytes_in(RATE, path.rtt) / 5 * 4, "{} bytes", seen.window_min);
    // The outage, and the same time again until losses are detected and repaired.
    assert!(percent(&seen, &path) >= 90, "{} %", percent(&seen, &path));
}

/// RFC 9002 section 7.6.2.
#[test]
fn persistent_congestion_starts_anew() {
    let path = path(80);
    let (mut model, _) = settled(path);
    model.controller.congestion(true, 100 * PACKET_BYTES);
    assert_eq!(model.controller.window(), 2 * PACKET_BYTES);
    model.run(SECOND * 3);
    assert!(percent(&model.run(SECOND), &path) >= 97);
}

/// RFC 3168 section 5: the response to a mark is that to a loss, so the queue at the router drains.
#[test]
fn a_mark_ends_the_standing_queue() {
    let path = path(80);
    let (mut model, seen) = settled(path);
    let mut window_max = 0;
    for _ in 0..20 {
        model.controller.congestion(false, 0);
        window_max = model.run(path.rtt).window_max;
    }
    assert_eq!(model.controller.phase, Phase::Drain);
    assert!(window_max < seen.window_max, "{window_max}");
    assert!(window_max >= arriving(&path), "{window_max}");
}

/// A burst after an ACK does not fit in a queue of 5 ms: with full room, more would be lost than arrives.
#[test]
fn a_short_queue_takes_the_room_away() {
    for rtt_ms in ROUND_TRIPS {
        let path = Path { queue_bytes: 100 * PACKET_BYTES, ..path(rtt_ms) };
        let (_, seen) = settled(path);
        let lost = seen.lost_bytes * 100 / seen.delivered_bytes;
        assert!(lost <= 20, "{rtt_ms} ms: {lost} % lost");
        assert!(percent(&seen, &path) >= 80, "{rtt_ms} ms: {} %", percent(&seen, &path));
    }
}

#[test]
fn twice_the_interval_is_queue_enough() {
    for rtt_ms in [10, 80] {
        let path = Path { queue_bytes: 2 * bytes_in(RATE, MAX_ACK_DELAY), ..path(rtt_ms) };
        let (_, seen) = settled(path);
        assert!(percent(&seen, &path) >= 98, "{rtt_ms} ms: {} %", percent(&seen, &path));
        assert!(
            seen.lost_bytes <= seen.delivered_bytes / 1_000,
            "{rtt_ms} ms: {} bytes lost",
            seen.lost_bytes
        );
    }
}

#[test]
fn a_path_that_becomes_four_times_faster_is_filled() {
    let slow = Path { rate_bytes_per_s: RATE / 4, ..path(40) };
    let (mut model, _) = settled(slow);
    model.path = path(40);
    model.run(SECOND * 3);
    let seen = model.run(SECOND);
    assert!(percent(&seen, &model.path) >= 95, "{} %", percent(&seen, &model.path));
}

#[test]
fn a_path_that_becomes_four_times_slower_is_not_flooded() {
    let (mut model, _) = settled(path(40));
    model.path.rate_bytes_per_s = RATE / 4;
    model.run(SECOND * 4);
    let seen = model.run(SECOND);
    let most = bytes_in(RATE / 4, (STANDING_QUEUE + MAX_ACK_DELAY) * 2);
    assert!(seen.waiting_percentile(95) <= most, "{} of {most}", seen.waiting_percentile(95));
}

#[test]
fn a_longer_way_is_noticed() {
    let (mut model, _) = settled(path(20));
    model.path.rtt = MS * 60;
    model.run(SECOND * 15);
    let seen = model.run(SECOND * 5);
    assert!(percent(&seen, &model.path) >= 95, "{} %", percent(&seen, &model.path));
}

#[test]
fn queueing_is_not_taken_for_the_path() {
    let path = path(40);
    let mut model = Model::new(path);
    model.run(SECOND * 60);
    let min_rtt = model.controller.min_rtt.unwrap().value;
    assert!(min_rtt <= path.rtt + STANDING_QUEUE, "{min_rtt:?}");
}

#[test]
fn a_slow_path_has_a_window_of_some_packets() {
    // 1 Mb/s.
    let path = Path { rate_bytes_per_s: 125_000, ..path(40) };
    let mut model = Model::new(path);
    model.run(SECOND * 10);
    let seen = model.run(SECOND * 10);
    assert!(percent(&seen, &path) >= 95, "{} %", percent(&seen, &path));
    assert!(seen.window_min >= WINDOW_PACKETS_MIN * PACKET_BYTES);
    assert!(seen.window_max <= 16 * PACKET_BYTES, "{} bytes", seen.window_max);
}

/// The rate of an application that sends little is no measure of the path.
#[test]
fn a_pause_of_the_application_is_not_a_slow_path() {
    let (mut model, seen) = settled(path(10));
    let controller = &mut model.controller;
    let mut now = model.now;
    for number in 0..100 {
        controller.on_sent(now, PACKET_BYTES, number);
        controller.acked(now, PACKET_BYTES, true);
        controller.end_acks(now + MS * 20, 0);
        now += MS * 50;
    }
    assert!(controller.window() >= seen.window_min, "{}", controller.window());
}

/// A controller of a path of 20 ms that has sent `packets` of the first round, and the time.
fn first_round(packets: u64) -> (TackController, Instant) {
    let (now, mut controller) = (start(), TackController::new(PACKET_BYTES as u16));
    for number in 0..packets {
        controller.on_sent(now, PACKET_BYTES, number);
    }
    controller.measure_rtt(now, MS * 20);
    (controller, now)
}

/// RFC 9002 section 7.8: a window that was not used may not grow.
#[test]
fn slow_start_grows_by_what_is_acknowledged_unless_the_application_sends_too_little() {
    for (app_limited, grown) in [(false, 4 * PACKET_BYTES), (true, 0)] {
        let (mut controller, sent) = first_round(4);
        let before = controller.window();
        for _ in 0..4 {
            controller.acked(sent, PACKET_BYTES, app_limited);
        }
        assert_eq!(controller.window() - before, grown, "{app_limited}");
    }
}

/// Startup ends by losses that noise does not explain. Of five packets one is more than one in eight, and may be chance.
#[test]
fn more_than_one_packet_in_eight_is_a_heavy_loss_unless_it_is_one_alone() {
    for (acked, lost, is_heavy) in [(4, 1, false), (4, 2, true), (14, 2, false), (13, 2, true)] {
        let (mut controller, sent) = first_round(acked + lost);
        controller.congestion(false, lost * PACKET_BYTES);
        for _ in 0..acked {
            controller.acked(sent, PACKET_BYTES, false);
        }
        controller.end_acks(sent + MS * 20, PACKET_BYTES);
        let starts = matches!(controller.phase, Phase::Startup { .. });
        assert_eq!(starts, !is_heavy, "{lost} lost of {}", acked + lost);
        assert_eq!(controller.room_steps, if is_heavy { ROOM_STEPS / 2 } else { ROOM_STEPS });
    }
}

/// A round trip of 20 ms in which ten packets are acknowledged, from `now` on. Returns when it is over.
fn ten_packets(controller: &mut TackController, now: Instant) -> Instant {
    for number in 0..10 {
        controller.on_sent(now, PACKET_BYTES, number);
    }
    let over = now + MS * 20;
    controller.measure_rtt(over, MS * 20);
    for _ in 0..10 {
        controller.acked(now, PACKET_BYTES, false);
    }
    controller.end_acks(over, PACKET_BYTES);
    over
}

/// BBR's cycle of gains has eight phases (draft-cardwell-iccrg-bbr-congestion-control-00 section 4.3.4.2).
#[test]
fn of_eight_rounds_two_look_for_more_and_one_drains() {
    let (mut controller, mut now) = first_round(0);
    let mut phases = String::new();
    for _ in 0..44 {
        now = ten_packets(&mut controller, now);
        phases.push(match controller.phase {
            Phase::Startup { .. } => 's',
            Phase::Cruise { .. } => 'c',
            Phase::Probe { .. } => 'p',
            Phase::Drain => 'd',
            Phase::ProbeRtt { .. } => 'r',
        });
    }
    // The first round has a rate, and three no more of it.
    assert_eq!(phases, format!("sss{}", "dcccccpp".repeat(5)) + "d");
}

#[test]
fn a_probe_has_found_more_where_half_of_its_added_bytes_arrived() {
    for (sixteenths, found, next) in [
        (1, 32_999, None),
        (1, 33_000, Some(2)),
        (2, 33_999, None),
        (2, 34_000, Some(4)),
        (4, 35_999, None),
        (4, 36_000, Some(4)),
    ] {
        let mut controller = TackController::new(1_000);
        controller.rate.add(found);
        let expected = next.map_or(Phase::Drain, |sixteenths| Phase::Probe {
            sixteenths,
            rate_before: found,
            rounds: 0,
        });
        assert_eq!(controller.judge_probe(sixteenths, 32_000), expected, "{found} bytes/s");
    }
}

/// At 1 MB/s and 20 ms there are 20,000 bytes on the path, 10,000 between ACKs, and 5,000 in the standing queue.
#[test]
fn the_window_is_what_arrives_and_what_its_phase_adds() {
    let window = |phase, room_steps, lost_bytes| {
        let mut controller = TackController::new(1_000);
        controller.rate.add(1_000_000);
        controller.ack_gap.add(MS * 10);
        controller.measure_rtt(start(), MS * 20);
        controller.last_round = Round { acked_bytes: 1_000, lost_bytes, ..Round::default() };
        (controller.window, controller.phase, controller.room_steps) = (1_000_000, phase, room_steps);
        controller.set_window();
        controller.window()
    };
    let cruise = Phase::Cruise { rounds: 0 };
    assert_eq!(window(STARTUP, 8, 0), 1_000_000, "slow start limits itself by what is acknowledged");
    assert_eq!(window(Phase::Startup { best_rate: 0, rounds_without_growth: 1 }, 8, 0), 2 * 35_000);
    assert_eq!(window(cruise, 8, 0), 35_000 + 3_000);
    let probe = Phase::Probe { sixteenths: 2, rate_before: 0, rounds: 0 };
    assert_eq!(window(probe, 8, 0), 35_000 + 2 * (35_000 / 16) + 3_000);
    assert_eq!(window(Phase::Drain, 8, 0), 30_000 + 3_000);
    assert_eq!(window(Phase::ProbeRtt { since: None, batches: 0, smallest: None }, 8, 0), 10_000);
    // Heavy losses take the room for ACKs and queue, in eight steps.
    assert_eq!(window(cruise, 4, 0), 20_000 + 5_000 + 2_500 + 3_000);
    assert_eq!(window(cruise, 0, 0), 20_000 + 3_000);
    // Bytes in flight that will not arrive have room, up to one in eight.
    assert_eq!(window(Phase::Drain, 8, 100), 30_000 + 3_000 + 3_000);
    assert_eq!(window(Phase::Drain, 8, 900), 30_000 + 30_000 / 8 + 3_000);
}

/// RFC 9002 section 5.3, computed forwards and backwards.
#[test]
fn a_sample_is_known_by_what_it_changed() {
    let (mut smoothed, min) = (MS * 50, MS * 40);
    for sample in [MS * 40, MS * 90, MS * 41 + Duration::from_nanos(7), MS * 300] {
        let before = smoothed;
        smoothed = (before * 7 + sample) / 8;
        let known = last_sample(before, smoothed, min).unwrap();
        assert!(sample.abs_diff(known) < Duration::from_nanos(8), "{known:?} for {sample:?}");
    }
    assert_eq!(last_sample(smoothed, smoothed, min), None);
    // Before the first sample there is a default value (RFC 9002 section 6.2.2), which the first sample replaces.
    assert_eq!(last_sample(MS * 333, MS * 40, MS * 40), Some(MS * 40));
}

#[test]
fn quinn_is_told_the_window_and_its_pace() {
    let mut controller = TackController::new(1_200);
    // RFC 9002 section 7.2.
    assert_eq!(controller.initial_window(), 12_000);
    assert_eq!(TackController::new(9_000).initial_window(), 18_000);
    assert_eq!(controller.metrics().congestion_window, 12_000);
    assert_eq!(controller.metrics().pacing_rate, None, "no round trip is known");
    controller.smoothed_rtt = Some(MS * 10);
    // 12,000 bytes per 10 ms are 9.6 Mb/s; pacing uses 5/4 of that.
    assert_eq!(controller.metrics().pacing_rate, Some(12_000_000));
}

#[test]
fn losses_that_quinn_tells_of_are_heard() {
    let mut controller = TackController::new(1_200);
    controller.on_congestion_event(start(), start(), false, 2_400);
    assert_eq!((controller.round.lost_bytes, controller.round.marked), (2_400, false));
    controller.on_congestion_event(start(), start(), false, 0);
    assert_eq!((controller.round.lost_bytes, controller.round.marked), (2_400, true));
    controller.on_congestion_event(start(), start(), true, 1_200);
    assert_eq!(controller.window(), 2_400, "RFC 9002 section 7.6.2");
}

#[test]
fn a_packet_always_fits_into_the_window() {
    let mut controller = TackController::new(1_200);
    controller.congestion(true, 0);
    controller.on_mtu_update(9_000);
    assert_eq!(controller.window(), 18_000);
}

#[test]
fn acks_of_nothing_that_is_known_change_nothing() {
    let (now, mut controller) = (start(), TackController::new(1_200));
    controller.end_acks(now, 0);
    controller.acked(now, 0, false);
    controller.end_acks(now, 0);
    assert_eq!(controller.window(), controller.initial_window());
}
