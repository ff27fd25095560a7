//! ACK policies and controllers that a program supplies.

use tacit_congestion::external::{Acknowledged, Control, Steering};
use tacit_congestion::{Algorithm, Pacing, external as control};
use tacit_packet::factory::{FactoryRef, Named};
use tacit_packet::units::{BitRate, Bytes, Duration, Instant};
use tacit_tcp::ack_policy::external as acks;
use tacit_tcp::ack_policy::external::{Acknowledge, Arrival};
use tacit_tcp::{AckDecision, AckPolicy, Config};

use crate::pipe::{Link, Pipe};
use crate::script::{Script, plain};

/// Every third segment, or 30 ms after the first; a gap is acknowledged at once.
struct EveryThird;

#[derive(Default)]
struct Counting(u32);

impl Named for EveryThird {
    fn name(&self) -> &'static str {
        "every third"
    }
}

impl acks::Factory for EveryThird {
    fn acknowledge(&self) -> Box<dyn Acknowledge> {
        Box::<Counting>::default()
    }
}

impl Acknowledge for Counting {
    fn on_data(&mut self, arrival: &Arrival) -> AckDecision {
        assert_eq!(arrival.in_order, arrival.waiting == Bytes(0), "{arrival:?}");
        self.0 += 1;
        match self.0 {
            _ if !arrival.in_order => AckDecision::Now,
            1 => AckDecision::At(arrival.now + Duration::from_millis(30)),
            2 => AckDecision::Wait,
            _ => AckDecision::Now,
        }
    }

    fn on_timer(&mut self, _now: Instant) -> AckDecision {
        AckDecision::Now
    }

    fn on_ack_sent(&mut self) {
        self.0 = 0;
    }
}

#[test]
fn a_policy_of_one_s_own_says_when_to_acknowledge() {
    let ack_policy = AckPolicy::External(FactoryRef(&EveryThird));
    Script::connected(Config { ack_policy, ..plain() }).run(
        "+0  < . 1:1001(1000) ack 1
         +1  < . 1001:2001(1000) ack 1
         +1  < . 2001:3001(1000) ack 1
         +0  > . 1:1(0) ack 3001
         +1  < . 3001:4001(1000) ack 1
         +30 > . 1:1(0) ack 4001
         # Above a gap, and the bytes that fill it while something still waits.
         +1  < . 6001:7001(1000) ack 1
         +0  > . 1:1(0) ack 4001 <sack 6001:7001>
         +1  < . 4001:5001(1000) ack 1
         +0  > . 1:1(0) ack 5001 <sack 6001:7001>",
    );
}

/// A time in the past counts as now: a policy that returns one is not called repeatedly.
#[test]
fn a_time_that_is_over_is_now() {
    struct Late;
    struct Yesterday;
    impl Named for Late {
        fn name(&self) -> &'static str {
            "late"
        }
    }

    impl acks::Factory for Late {
        fn acknowledge(&self) -> Box<dyn Acknowledge> {
            Box::new(Yesterday)
        }
    }
    impl Acknowledge for Yesterday {
        fn on_data(&mut self, _arrival: &Arrival) -> AckDecision {
            AckDecision::At(Instant::ZERO)
        }
        fn on_timer(&mut self, _now: Instant) -> AckDecision {
            panic!("no timer was set")
        }
        fn on_ack_sent(&mut self) {}
    }
    let ack_policy = AckPolicy::External(FactoryRef(&Late));
    Script::connected(Config { ack_policy, ..plain() }).run(
        "+1 < . 1:1001(1000) ack 1
         +0 > . 1:1(0) ack 1001",
    );
}

/// Always returns this.
#[derive(Clone, Copy)]
struct Constant(Steering);

impl Named for Constant {
    fn name(&self) -> &'static str {
        "constant"
    }
}

impl control::Factory for Constant {
    fn control(&self, _mss: Bytes, _initial_window: Bytes) -> (Box<dyn Control>, Steering) {
        (Box::new(*self), self.0)
    }
}

impl Control for Constant {
    fn on_ack(&mut self, ack: &Acknowledged) -> Steering {
        assert!(ack.prior_in_flight >= ack.in_flight || ack.delivered == Bytes(0), "{ack:?}");
        self.0
    }

    fn on_loss(&mut self, _in_flight: Bytes) -> Steering {
        self.0
    }

    fn on_timeout(&mut self, _now: Instant, _in_flight: Bytes) -> Steering {
        self.0
    }
}

/// Bytes that a sender with this controller has delivered after 10 s, with a round-trip time of 40 ms and unlimited
/// room.
fn delivered(factory: &'static Constant, pacing: Pacing) -> u64 {
    let algorithm = Algorithm::External(FactoryRef(factory));
    let config =
        Config { congestion: tacit_congestion::Config { pacing, ..algorithm.into() }, ..Config::default() };
    let way = || Link::new(None, Duration::from_millis(20));
    let mut pipe = Pipe::new(config, config, way(), way());
    pipe.client.write(u64::MAX);
    pipe.run_for(Duration::from_secs(10));
    pipe.server.delivered_bytes()
}

/// 250 round trips of 40 ms, including the handshake.
#[test]
fn a_window_of_one_s_own_brings_a_window_a_round_trip() {
    static WINDOW: Constant = Constant(Steering { window: Bytes(20 * 1448), pacing: None });
    let windows = delivered(&WINDOW, Pacing::Off) as f64 / (20.0 * 1448.0);
    assert!((247.0..=250.0).contains(&windows), "{windows}");
}

/// Except for the round trip of the handshake, and half of one at the end.
#[test]
fn a_rate_of_one_s_own_is_the_rate() {
    const RATE: BitRate = BitRate::from_mbps(8);
    static PACED: Constant = Constant(Steering { window: Bytes(1 << 20), pacing: Some(RATE) });
    let share = delivered(&PACED, Pacing::Auto) as f64 / RATE.amount_in(Duration::from_secs(10)).0 as f64;
    assert!((0.98..=1.0).contains(&share), "{share}");
}

/// A window below one segment counts as one segment, because the sender would otherwise never get another ACK.
#[test]
fn a_window_of_nothing_is_one_segment() {
    static NOTHING: Constant = Constant(Steering { window: Bytes(0), pacing: Some(BitRate::from_bps(0)) });
    let windows = delivered(&NOTHING, Pacing::Off) as f64 / 1448.0;
    // Single segments wait for delayed ACKs once the receiver no longer acknowledges each.
    assert!((100.0..=250.0).contains(&windows), "{windows}");
}
