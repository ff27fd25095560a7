use super::*;
use tacit_packet::Ecn;

fn sent(number: u32, ecn: Ecn) -> PacketRef {
    PacketRef { id: number, len: 1_500, ecn, ..PacketRef::default() }
}

const CONFIG: DualPi2Config = DualPi2Config::INTERNET;

fn at(us: u64) -> Instant {
    Instant::ZERO + Duration::from_micros(us)
}

fn queue() -> DualPi2 {
    DualPi2::new(QueueLimit::default(), CONFIG)
}

fn share(probability: u64) -> f64 {
    probability as f64 / ONE as f64
}

/// p' after each update, for delays of the classic queue at the updates.
fn base_after(delays_ms: &[u64]) -> Vec<f64> {
    let mut control = Control::default();
    let step = |ms: &u64| {
        control.update(&CONFIG, Duration::from_millis(*ms));
        share(control.base)
    };
    delays_ms.iter().map(step).collect()
}

/// Appendix A.1 by hand: Tupdate = 15 ms, alpha = 0.1 * 0.015 / 0.01 = 0.15 Hz, beta = 0.3 / 0.1 = 3 Hz.
#[test]
fn the_base_probability_follows_the_law_of_the_rfc() {
    let near =
        |found: f64, expected: f64| assert!((found - expected).abs() < 1e-8, "{found} is not {expected}");
    let steps = base_after(&[25, 25, 40, 20]);
    // 0.15 * (0.025 - 0.015) + 3 * 0.025.
    near(steps[0], 0.0765);
    near(steps[1], 0.0765 + 0.0015);
    near(steps[2], 0.078 + 0.15 * 0.025 + 3.0 * 0.015);
    near(steps[3], 0.12675 + 0.15 * 0.005 - 3.0 * 0.02);
    let ends = base_after(&[0, 10_000, 0]);
    assert_eq!(ends, [0.0, 1.0, 0.0], "between 0 and 1");
}

#[test]
fn classic_packets_are_dropped_by_the_square_and_l4s_marked_by_the_double() {
    let control = Control { base: ONE / 10, ..Control::default() };
    assert!((share(control.classic()) - 0.01).abs() < 1e-8);
    assert!((share(control.coupled(&CONFIG)) - 0.2).abs() < 1e-8);
    for (us, expected) in [(799, 0.0), (800, 0.0), (900, 0.25), (1_000, 0.5), (1_200, 1.0), (9_000, 1.0)] {
        assert!((share(ramp(&CONFIG, Duration::from_micros(us))) - expected).abs() < 1e-8, "{us} us");
    }
}

#[test]
fn a_likelihood_recurs_evenly() {
    let mut count = 0;
    let hits: Vec<usize> = (0..20).filter(|_| recurs(&mut count, ONE / 4 + 1)).collect();
    assert_eq!(hits, [3, 7, 11, 15, 19]);
}

/// Takes everything that waits at `us`; returns the packets, and the numbers of those that were dropped.
fn drain(queue: &mut DualPi2, us: u64) -> (Vec<PacketRef>, Vec<u32>) {
    let (mut out, mut dropped) = (Vec::new(), Vec::new());
    while queue.front(at(us), &mut |sent: PacketRef| dropped.push(sent.id)).is_some() {
        out.extend(queue.pop().map(|queued| queued.payload));
    }
    (out, dropped)
}

#[test]
fn l4s_packets_are_marked_beyond_the_threshold_and_never_dropped() {
    let mut queue = queue();
    for number in 0..10 {
        queue.push(at(0), sent(number, Ecn::Ect1));
    }
    let (out, dropped) = drain(&mut queue, 2_000);
    let marked: Vec<u32> = out.iter().filter(|sent| sent.ecn == Ecn::Ce).map(|sent| sent.id).collect();
    // The first only makes the count full. The last is alone, which is no queue.
    assert_eq!((marked, dropped), ((1..9).collect(), vec![]));
    assert_eq!(queue.marks(), 8);
}

#[test]
fn a_classic_packet_does_not_delay_l4s_but_does_not_starve() {
    let mut queue = queue();
    for number in 0..40 {
        queue.push(at(0), sent(number, Ecn::Ect0));
        queue.push(at(0), sent(100 + number, Ecn::Ect1));
    }
    let (out, _) = drain(&mut queue, 100);
    let classic: Vec<usize> = (0..out.len()).filter(|place| out[*place].id < 100).collect();
    assert_eq!(classic[..2], [15, 31], "every sixteenth while both wait");
    assert_eq!(out.len(), 80);
}

#[test]
fn what_is_not_capable_is_dropped_where_others_are_marked() {
    for (ecn, is_marked) in [(Ecn::NotEct, false), (Ecn::Ect0, true)] {
        let mut queue = queue();
        queue.control.base = ONE / 3;
        for number in 0..100 {
            queue.push(at(1), sent(number, ecn));
        }
        // One update, with a delay of 15 ms: p' rises by 0.045.
        let (out, dropped) = drain(&mut queue, 15_001);
        let marked = out.iter().filter(|sent| sent.ecn == Ecn::Ce).count();
        let expected = ((1.0_f64 / 3.0 + 0.045).powi(2) * 100.0) as usize;
        assert_eq!((marked, dropped.len()), if is_marked { (expected, 0) } else { (0, expected) });
    }
}

/// With p' of a half, marks alone no longer control L4S (A.2).
#[test]
fn an_overload_drops_from_both() {
    let mut queue = queue();
    queue.control.base = ONE / 2 + ONE / 10;
    for number in 0..100 {
        queue.push(at(1), sent(number, Ecn::Ect1));
    }
    let (out, dropped) = drain(&mut queue, 2);
    assert!((30..=36).contains(&dropped.len()), "{}", dropped.len());
    let (last, others) = out.split_last().unwrap();
    assert!(others.iter().all(|sent| sent.ecn == Ecn::Ce));
    assert_eq!(last.ecn, Ecn::Ect1, "one packet is no queue");
}

/// L4S traffic that does not answer marks must not fill the queue: its own delay raises p', until it is dropped.
#[test]
fn l4s_that_ignores_marks_is_dropped_in_the_end() {
    let mut queue = queue();
    let mut lost = 0;
    // Two packets come per millisecond, and one leaves.
    for ms in 0..2_000 {
        for part in 0..2 {
            queue.push(at(1_000 * ms + part), sent(0, Ecn::Ect1));
        }
        if queue.front(at(1_000 * ms + 500), &mut |_| lost += 1).is_some() {
            queue.pop();
        }
    }
    assert!(lost > 500, "{lost}");
    assert!(queue.len() < 500, "{}", queue.len());
}

/// The last packet is no queue: it leaves even if each packet of a queue is dropped, which the second is the first to be.
#[test]
fn an_overload_leaves_the_last_packet() {
    let mut queue = queue();
    queue.control.base = ONE;
    for number in 0..10 {
        queue.push(at(1), sent(number, Ecn::NotEct));
    }
    let (out, dropped) = drain(&mut queue, 2);
    assert_eq!((out.len(), dropped.len()), (2, 8));
}

#[test]
fn a_long_silence_is_passed_over() {
    let mut queue = queue();
    let hour = 3_600_000_000;
    queue.push(at(hour), sent(0, Ecn::Ect0));
    assert!(queue.control.update_at > at(hour));
    assert_eq!(drain(&mut queue, hour + 1).0.len(), 1);
}
