//! TCP-RRE over bad networks: data keeps flowing, the rate recovers, and there are no bursts.

use tacit_congestion::Algorithm;
use tacit_packet::units::{BitRate, Duration, Instant};
use tacit_tcp::{Config, Profile};

use crate::pipe::{Link, Pipe};

const RATE: BitRate = BitRate::from_mbps(8);
const PAYLOAD_SHARE: f64 = 1448.0 / 1500.0;
/// When the network becomes bad, and when it becomes good again.
const BAD_MS: u64 = 6_000;
const GOOD_MS: u64 = 12_000;

/// One endless flow over [`RATE`] and 40 ms.
struct Flow {
    pipe: Pipe,
    started: bool,
}

impl Flow {
    fn new() -> Self {
        let config = Config { congestion: Algorithm::RRE.into(), ..Profile::Linux.config() };
        let link = || Link::new(Some(RATE), Duration::from_millis(20));
        let mut pipe = Pipe::new(config, config, link(), link());
        pipe.client.write(u64::MAX);
        Self { pipe, started: false }
    }

    /// Share of `rate` delivered until `until_ms`. Checks that the sending rate, after the start phase, is never above
    /// twice the fastest rate that the link had.
    fn used(&mut self, rate: BitRate, until_ms: u64) -> f64 {
        let (from, before) = (self.pipe.now, self.pipe.server.delivered_bytes());
        let until = Instant::ZERO + Duration::from_millis(until_ms);
        while self.pipe.now < until {
            self.pipe.run_for(Duration::from_millis(20).min(until.saturating_since(self.pipe.now)));
            let stats = self.pipe.client.stats();
            self.started |= stats.congestion_state.is_some_and(|state| state != "start");
            let pacing = stats.pacing_rate.unwrap_or_default();
            let (now, state) = (self.pipe.now, stats.congestion_state);
            assert!(
                !self.started || pacing.as_bps() <= 2 * RATE.as_bps(),
                "{pacing:?} at {now} in {state:?}"
            );
        }
        let bytes = self.pipe.server.delivered_bytes() - before;
        let could = rate.as_bps() as f64 / 8.0 * self.pipe.now.saturating_since(from).as_secs_f64();
        bytes as f64 / could / PAYLOAD_SHARE
    }
}

fn is_bad(now: Instant) -> bool {
    (BAD_MS..GOOD_MS).contains(&(now.saturating_since(Instant::ZERO).as_nanos() / 1_000_000))
}

/// Maps the time and the receiver's right timestamp to the delivered one.
type Restamp = fn(Instant, u32) -> Option<u32>;

/// How many milliseconds the network has been bad; constant after it is good again.
fn bad_ms(now: Instant) -> u32 {
    let since = now.saturating_since(Instant::ZERO + Duration::from_millis(BAD_MS));
    since.min(Duration::from_millis(GOOD_MS - BAD_MS)).as_millis() as u32
}

/// The receiver's clock is wrong for 6 s. Each entry has the minimum share of the link used in the last 4 of them, and
/// the seconds after them until 0.8 of it is used again. The minimum of two segments per 100 ms is 0.029 of the link.
/// No clock steps back far, because PAWS (RFC 7323 section 5) would drop such ACKs at any sender.
const CLOCKS: [(&str, Restamp, f64, u64); 7] = [
    // deviation: the missing second makes ticks of 1 ms look like 2 ms until it is less than a twentieth of the time.
    (
        "back by a second",
        |now, value| Some(value.wrapping_sub(if bad_ms(now) > 0 { 1_000 } else { 0 })),
        0.025,
        15,
    ),
    (
        "ahead by a minute",
        |now, value| Some(value.wrapping_add(if bad_ms(now) > 0 { 60_000 } else { 0 })),
        0.9,
        1,
    ),
    ("ahead again and again", |now, value| Some(value.wrapping_add(bad_ms(now) / 500 * 10_000)), 0.025, 5),
    ("stops", |now, value| Some(if is_bad(now) { value.wrapping_sub(bad_ms(now)) } else { value }), 0.7, 1),
    // deviation: for a long time after it the ticks are taken for 2 ms.
    ("half as fast", |now, value| Some(value.wrapping_sub(bad_ms(now) / 2)), 0.9, 60),
    // Less seems to arrive than really does, which harms only the owner of the clock.
    ("twice as fast", |now, value| Some(value.wrapping_add(bad_ms(now))), 0.025, 8),
    ("ten times as fast", |now, value| Some(value.wrapping_add(9 * bad_ms(now))), 0.025, 8),
];

/// With any clock of the receiver data keeps flowing, no burst is sent, and the rate recovers.
#[test]
fn a_wrong_clock_is_survived() {
    let mut wrong = Vec::new();
    for (what, restamp, least, recovers_s) in CLOCKS {
        let mut flow = Flow::new();
        flow.pipe.down.restamp = Some(restamp);
        flow.used(RATE, 3_000);
        let before = flow.used(RATE, BAD_MS);
        flow.used(RATE, BAD_MS + 2_000);
        let during = flow.used(RATE, GOOD_MS);
        let recovered_s = (0..100).find(|second| flow.used(RATE, GOOD_MS + 1_000 * (second + 1)) >= 0.8);
        println!("{what}: {before:.2} before, {during:.3} during, recovered after {recovered_s:?} s");
        if before < 0.9 || during < least || recovered_s.is_none_or(|seconds| seconds > recovers_s) {
            wrong.push(format!(
                "{what}: {before:.2} before, {during:.3} during, recovered after {recovered_s:?} s"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Linux accepts segments that have lost their timestamps: the arrival times of ACKs are used until the clock is back.
#[test]
fn timestamps_that_vanish_on_the_way_are_survived() {
    let mut flow = Flow::new();
    flow.pipe.down.restamp = Some(|now, value| (!is_bad(now)).then_some(value));
    let before = flow.used(RATE, BAD_MS);
    flow.used(RATE, BAD_MS + 2_000);
    let during = flow.used(RATE, GOOD_MS);
    flow.used(RATE, GOOD_MS + 15_000);
    let after = flow.used(RATE, GOOD_MS + 20_000);
    println!("vanished: {before:.2} before, {during:.2} during, {after:.2} after");
    assert!(before > 0.9 && during > 0.7 && after > 0.8, "{before:.2}, {during:.2}, {after:.2}");
}

/// Without timestamps from the start the arrival times of ACKs are used.
#[test]
fn without_timestamps_the_link_is_used() {
    let mut flow = Flow::new();
    let config = Config { congestion: Algorithm::RRE.into(), ..Profile::Linux.config() };
    let link = || Link::new(Some(RATE), Duration::from_millis(20));
    flow.pipe = Pipe::new(config, Config { timestamps: false, ..config }, link(), link());
    flow.pipe.client.write(u64::MAX);
    flow.used(RATE, 3_000);
    let used = flow.used(RATE, 10_000);
    assert!(used > 0.85, "{used:.2} used");
}

/// Nothing passes in either direction for 3 s: 3 s after that most of the link is used, and 6 s after it all.
#[test]
fn silence_is_survived() {
    let mut flow = Flow::new();
    flow.used(RATE, BAD_MS);
    (flow.pipe.up.lose_one_in, flow.pipe.down.lose_one_in) = (1, 1);
    flow.used(RATE, BAD_MS + 3_000);
    (flow.pipe.up.lose_one_in, flow.pipe.down.lose_one_in) = (0, 0);
    let first = flow.used(RATE, BAD_MS + 6_000);
    let then = flow.used(RATE, BAD_MS + 9_000);
    let later = flow.used(RATE, BAD_MS + 14_000);
    println!("silence: {first:.2}, {then:.2}, {later:.2}");
    assert!(then > 0.8 && later > 0.95, "{first:.2}, {then:.2}, {later:.2}");
}

/// The link fails for 2 s and returns at a tenth of its rate; later the full rate is restored.
#[test]
fn a_link_that_comes_back_slower_is_followed() {
    let slow = BitRate::from_bps(800_000);
    let mut flow = Flow::new();
    flow.used(RATE, BAD_MS);
    flow.pipe.up.lose_one_in = 1;
    flow.used(RATE, BAD_MS + 2_000);
    (flow.pipe.up.lose_one_in, flow.pipe.up.rate) = (0, Some(slow));
    let first = flow.used(slow, BAD_MS + 6_000);
    let then = flow.used(slow, BAD_MS + 12_000);
    flow.pipe.up.rate = Some(RATE);
    let rising = flow.used(RATE, BAD_MS + 18_000);
    let risen = flow.used(RATE, BAD_MS + 24_000);
    println!("tenth: {first:.2}, {then:.2}, then tenfold {rising:.2}, {risen:.2}");
    assert!(then > 0.85 && risen > 0.85, "{first:.2}, {then:.2}, {rising:.2}, {risen:.2}");
}

/// One packet in 20 is late by up to 30 ms, in each direction.
#[test]
fn reordering_costs_little() {
    let mut flow = Flow::new();
    for link in [&mut flow.pipe.up, &mut flow.pipe.down] {
        (link.delay_one_in, link.jitter) = (20, Duration::from_millis(30));
    }
    flow.used(RATE, 3_000);
    let used = flow.used(RATE, 10_000);
    println!("reordering: {used:.2}");
    assert!(used > 0.8, "{used:.2} used");
}

/// One packet in 50 and one ACK in 10 is lost, while no buffer is in use.
#[test]
fn losses_of_the_link_cost_little() {
    let mut flow = Flow::new();
    (flow.pipe.up.lose_one_in, flow.pipe.down.lose_one_in) = (50, 10);
    flow.used(RATE, 3_000);
    let used = flow.used(RATE, 10_000);
    println!("losses: {used:.2}");
    assert!(used > 0.8, "{used:.2} used");
}

/// The return path has 1/400 of the rate, 20 kb/s or 48 ACKs per second, and half a second of buffer.
#[test]
fn a_thin_way_of_the_acks_does_not_slow_the_data() {
    let mut flow = Flow::new();
    (flow.pipe.down.rate, flow.pipe.down.queue) =
        (Some(BitRate::from_bps(20_000)), Duration::from_millis(500));
    flow.used(RATE, 6_000);
    let used = flow.used(RATE, 16_000);
    println!("asymmetry: {used:.2}");
    assert!(used > 0.9, "{used:.2} used");
}
