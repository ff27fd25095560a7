use super::super::path::{MSS, Path, RTT};
use super::*;
use crate::Repair;
use crate::control::CongestionControl as _;

fn start(seed: u32) -> Path<Bbr> {
    let start = Start { seed, rtt: Some(RTT), ..Start::default() };
    let window = crate::Config::default().window(MSS as u32);
    Path::new(Bbr::new(window, Config { policer: PolicerDetection::Off }, start))
}

/// One whose pipe has been full at 80 Mb/s, which are 100 segments in 10 ms, and that sends at that rate.
fn full() -> Path<Bbr> {
    let mut path = start(1);
    for _ in 0..20 {
        path.round(80);
    }
    assert_eq!(path.bbr.common.mode, Mode::ProbeBandwidth);
    path
}

/// Three rounds in a row without a quarter more, and of those that show the path's capacity.
#[test]
fn startup_ends_after_three_rounds_without_growth() {
    let mut path = start(1);
    for mbps in [10, 10, 10, 20, 20, 20] {
        path.round(mbps);
        assert!(!path.bbr.common.full.reached, "{mbps}");
    }
    for _ in 0..5 {
        path.app_limited_round(20);
        assert!(!path.bbr.common.full.reached, "the application had no more to send");
    }
    path.round(20);
    assert!(path.bbr.common.full.reached);
}

/// The first round of a recovery sends as much as left the network; its end restores the window.
#[test]
fn recovery_conserves_packets_and_gives_the_window_back() {
    let mut path = full();
    let before = path.bbr.common.window.cwnd;
    path.bbr.on_loss(0);
    let mut delivery = path.delivery(10 * MSS);
    (delivery.lost, delivery.in_flight, delivery.repair) = (MSS, 50 * MSS, Repair::Fast);
    path.bbr.on_delivery(&delivery);
    assert_eq!(path.bbr.common.window.cwnd, 60 * MSS);
    path.round(80);
    assert_eq!(path.bbr.common.window.cwnd, before);
}

/// After ten seconds without a smaller round trip four segments are in flight, for 200 ms and a round at least. Then
/// the window is restored.
#[test]
fn probing_the_round_trip_takes_200_ms_and_a_round() {
    let mut path = full();
    while path.bbr.common.mode != Mode::ProbeRtt {
        let mut delivery = path.delivery(100 * MSS);
        delivery.sample.rtt = Some(RTT * 2);
        path.bbr.on_delivery(&delivery);
        assert!(path.now < Instant::ZERO + Duration::from_millis(10_500));
    }
    let before = path.bbr.common.recovery.prior_cwnd;
    assert_eq!(path.bbr.common.window.cwnd, 4 * MSS);
    let mut acks = |wait_ms: u64, is_new_round: bool| {
        path.now += Duration::from_millis(wait_ms) - RTT;
        let mut delivery = path.delivery(4 * MSS);
        delivery.in_flight = 4 * MSS;
        if !is_new_round {
            delivery.sample.prior_delivered = 0;
        }
        path.bbr.on_delivery(&delivery);
        (path.bbr.common.mode == Mode::ProbeRtt, path.bbr.common.window.cwnd)
    };
    assert_eq!(acks(10, true), (true, 4 * MSS), "the pipe is empty from here on");
    assert_eq!(acks(199, false), (true, 4 * MSS));
    assert_eq!(acks(10, false), (true, 4 * MSS), "209 ms, but the round is not over");
    let (still, cwnd) = acks(10, true);
    assert!(!still && cwnd >= before, "{cwnd} after {before}");
}

/// Any phase but the one that drains the queue of the one before it.
#[test]
fn cycles_begin_anywhere_but_in_the_draining_phase() {
    let mut seen = [0; PACING_GAINS.len()];
    let mut path = start(1);
    for _ in 0..700 {
        path.bbr.probe_bandwidth(Instant::ZERO);
        seen[path.bbr.phase] += 1;
    }
    assert_eq!(seen[DRAINING], 0, "{seen:?}");
    assert!(seen.iter().enumerate().all(|(phase, count)| phase == DRAINING || *count > 50), "{seen:?}");
}

/// The phase that probes lasts until it has filled the pipe to 5/4 or lost something; the one that drains no longer than
/// the queue.
#[test]
fn phases_end_when_they_have_done_what_they_are_for() {
    let ends = |phase: usize, in_flight: u64, lost: u64, lasted: Duration| {
        let mut path = full();
        (path.bbr.phase, path.bbr.pacing_gain) = (phase, PACING_GAINS[phase]);
        let mut delivery = path.delivery(MSS);
        (delivery.prior_in_flight, delivery.lost) = (in_flight, lost);
        path.bbr.phase_at = Instant::ZERO;
        delivery.now = Instant::ZERO + lasted;
        path.bbr.update_phase(&delivery);
        path.bbr.phase != phase
    };
    let (shorter, longer) = (RTT / 2, RTT * 2);
    // The product is 100 segments; three bursts of up to 65 are added.
    assert!(!ends(0, 120 * MSS, 0, longer), "not filled yet");
    assert!(ends(0, 120 * MSS, MSS, longer), "a loss");
    assert!(ends(0, 400 * MSS, 0, longer), "filled");
    assert!(!ends(0, 400 * MSS, MSS, shorter));
    assert!(!ends(DRAINING, 400 * MSS, 0, shorter), "the queue is there");
    assert!(ends(DRAINING, 100 * MSS, 0, shorter), "it is gone");
    assert!(ends(DRAINING, 400 * MSS, 0, longer));
}
