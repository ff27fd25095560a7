//! Guarantees of the recovery choices, over randomly chosen whole transfers.

use proptest::prelude::*;
use tacit_congestion::Algorithm;
use tacit_congestion::cubic::{self, SlowStart};
use tacit_packet::units::{BitRate, Bytes, Duration};
use tacit_tcp::{Config, LossDetection, Profile, Recovery, State, Undo};

use crate::pipe::{Link, Pipe};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn pipe(config: Config, mbps: u64, delay: Duration) -> Pipe {
    let link = || Link::new(Some(BitRate::from_mbps(mbps)), delay);
    Pipe::new(config, config, link(), link())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 2))]

    /// Any part of the end of a flight is lost, up to all of it: the probe triggers SACKs, RACK finds the rest, and no
    /// timer expires.
    #[test]
    fn a_lost_tail_costs_no_timeout_with_rack_tlp(
        segments in 1u64..=10, lost in 1u64..=10, prr in any::<bool>(), undo in any::<bool>(),
    ) {
        let lost = lost.min(segments);
        let config = Config {
            loss_detection: LossDetection::RackTlp,
            recovery: if prr { Recovery::Prr } else { Recovery::Rfc6675 },
            undo: if undo { Undo::All } else { Undo::Never },
            ..Config::default()
        };
        let mut pipe = pipe(config, 100, ms(50));
        pipe.up.lose = (segments - lost..segments).collect();
        pipe.client.write(segments * 1448);
        pipe.run_for(ms(1_000));
        let counters = pipe.client.counters();
        prop_assert_eq!(pipe.server.counters().delivered_bytes, segments * 1448);
        prop_assert_eq!((counters.timeouts, counters.loss_probes), (0, 1));
        prop_assert_eq!(counters.segments_retransmitted, lost);
    }

    /// A path whose delay suddenly grows loses nothing. The timer expires, but the window is restored, and at most a
    /// few segments are sent twice.
    #[test]
    fn a_stall_costs_no_window_where_it_can_be_undone(
        stall_ms in 400u64..1_500, timestamps in any::<bool>(), rack in any::<bool>(), prr in any::<bool>(),
    ) {
        let config = Config {
            timestamps,
            undo: Undo::All,
            dsack: true,
            loss_detection: if rack { LossDetection::RackTlp } else { LossDetection::DupAck },
            recovery: if prr { Recovery::Prr } else { Recovery::Rfc6675 },
            send_buffer: Bytes(100 * 1448),
            ..Config::default()
        };
        let mut pipe = pipe(config, 20, ms(20));
        pipe.client.write(u64::MAX);
        pipe.run_for(ms(3_000));
        let before = pipe.client.counters();
        prop_assert_eq!(before.segments_retransmitted, 0);
        pipe.up.delay += ms(stall_ms);
        pipe.run_for(ms(10_000));
        let after = pipe.client.counters();
        // A probe may be answered before the timer expires.
        prop_assert!(after.timeouts >= 1 || rack, "{after:?}");
        prop_assert!(after.spurious_timeouts >= 1 || after.timeouts == 0, "{after:?}");
        prop_assert!(after.cwnd >= before.cwnd, "{} became {}", before.cwnd, after.cwnd);
        prop_assert!(after.segments_retransmitted <= after.timeouts + after.loss_probes, "{after:?}");
    }

    /// All of Linux's features together, with impairments in both directions: every byte arrives once and in order, and
    /// both ends close.
    #[test]
    fn the_linux_profile_survives_bad_weather(
        lose_one_in in prop::sample::select(vec![0u64, 8, 30, 200]),
        delay_one_in in prop::sample::select(vec![0u64, 3, 20]),
        double_one_in in prop::sample::select(vec![0u64, 5, 50]),
        ecn in any::<bool>(), seed in any::<u64>(), bytes in 0u64..600_000,
    ) {
        let mut pipe = pipe(Config { ecn, ..Profile::Linux.config() }, 20, ms(10));
        for (number, link) in [&mut pipe.up, &mut pipe.down].into_iter().enumerate() {
            link.lose_one_in = lose_one_in;
            link.delay_one_in = delay_one_in;
            link.double_one_in = double_one_in;
            link.jitter = ms(30);
            link.mark_above = Some(ms(5));
            link.random.0 = seed.wrapping_add(number as u64);
        }
        pipe.client.write(bytes);
        pipe.client.close();
        pipe.server.write(bytes / 3);
        pipe.server.close();
        prop_assert!(pipe.run_to_close(Duration::from_secs(3_600)));
        prop_assert_eq!(pipe.server.counters().delivered_bytes, bytes);
        prop_assert_eq!(pipe.client.counters().delivered_bytes, bytes / 3);
        prop_assert_eq!((pipe.client.state(), pipe.server.state()), (State::Closed, State::Closed));
    }
}

/// Slow start overshoots a short queue by far, and the window after the reduction is still too large: retransmissions
/// are lost again. RACK detects this; counting duplicates requires a timeout.
#[test]
fn retransmissions_lost_again_cost_no_timeout_with_rack() {
    let run = |loss_detection| {
        let congestion = Algorithm::Cubic(cubic::Config { slow_start: SlowStart::Standard }).into();
        let config = Config { loss_detection, congestion, ..Config::default() };
        let mut pipe = pipe(config, 50, ms(25));
        pipe.up.queue = ms(40);
        pipe.client.write(30_000_000);
        pipe.run_for(Duration::from_secs(20));
        assert_eq!(pipe.server.counters().delivered_bytes, 30_000_000);
        pipe.client.counters().timeouts
    };
    assert!(run(LossDetection::DupAck) > 0);
    assert_eq!(run(LossDetection::RackTlp), 0);
}
