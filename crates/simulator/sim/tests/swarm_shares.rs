//! Worlds, by seed, in which the access point always has packets for every client: clients at the same rate share the
//! goodput evenly, with any TXOP limit and any size of aggregates and bursts.
#![allow(clippy::unwrap_used, reason = "constants within range")]

mod common;

use common::swarm::{Swarm, assert_failures_can_be_replayed, seeds};
use common::*;
use tacit_link::random::Stream;
use tacit_link::wifi::phy::Standard;
use tacit_link::wifi::{AccessCategory, Bursts, ReverseDirection};
use tacit_packet::units::{Duration, Instant};
use tacit_sim::run;
use tacit_sim::setup::Setup;

fn pick<T: Clone>(draw: &mut Stream, from: &[T]) -> T {
    from[draw.up_to(from.len() as u32 - 1) as usize].clone()
}

/// Saturating datagrams to 2 to 20 clients.
fn world(seed: u64) -> Setup {
    let draw = &mut Stream::new(seed, "swarm shares");
    let standard = pick(draw, &[Standard::A, Standard::N, Standard::N, Standard::N, Standard::Ac]);
    // Two thirds of the worlds of 802.11ac use a later standard. Uses its own random stream.
    let standard = match (standard, Stream::new(seed, "swarm shares standards").up_to(2)) {
        (Standard::Ac, 1) => Standard::Ax,
        (Standard::Ac, 2) => Standard::Be,
        (drawn, _) => drawn,
    };
    let clients = pick(draw, &[2, 2, 3, 4, 5, 10, 20]);
    let traffic = saturating(pick(draw, &[300, 1_000, 1_500]));
    let mut setup = wlan(standard, usual_mbps(standard), clients, &traffic);
    setup.seed = seed;
    // All flows have started by then.
    setup.measure_from = Instant::ZERO + Duration::from_millis(1_500);
    setup.duration = Duration::from_millis(4_500);
    let config = &mut setup.bss[0].config;
    let millis = |count| Some(Duration::from_millis(count));
    config.txop_limit = pick(draw, &[None, millis(1), millis(2), millis(4), millis(4)]);
    config.ampdu_mpdus = pick(draw, &[None, None, None, Some(1), Some(8)]);
    if standard.phy().aggregation.is_some() {
        config.bursts =
            pick(draw, &[Bursts::Never, Bursts::ByCategory, Bursts::WithinLimit, Bursts::MultipleProtection]);
        let category =
            pick(draw, &[AccessCategory::BestEffort, AccessCategory::BestEffort, AccessCategory::Video]);
        config.categories = vec![category];
        for flow in &mut setup.flows {
            flow.access_category = category;
        }
        if draw.up_to(3) == 0 {
            config.reverse_direction = ReverseDirection::Granted {
                turnaround: Duration::ZERO,
                limit: ReverseDirection::USUAL_LIMIT,
            };
        }
    }
    setup
}

/// True if Jain's index of fairness is at least 0.99 (R. Jain, D. Chiu, W. Hawe, DEC-TR-301, 1984), computed with
/// integers.
fn is_fair(shares: &[u64]) -> bool {
    let sum: u128 = shares.iter().map(|share| u128::from(*share)).sum();
    let squares: u128 = shares.iter().map(|share| u128::from(*share).pow(2)).sum();
    sum * sum * 100 >= 99 * shares.len() as u128 * squares
}

#[test]
fn an_index_of_one_is_equal_shares() {
    assert!(is_fair(&[5, 5, 5]) && is_fair(&[100, 121]) && !is_fair(&[100, 123]) && !is_fair(&[0, 1]));
}

#[test]
fn clients_of_a_busy_access_point_share() {
    Swarm::new(&clients_of_a_busy_access_point_share, world).check(seeds(60), |seed, setup| {
        let outcome = run(setup).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let shares: Vec<_> = outcome.flows.iter().map(|flow| flow.delivered.0).collect();
        assert!(shares.iter().all(|share| *share > 0), "seed {seed}: {shares:?}");
        assert!(is_fair(&shares), "seed {seed}: {shares:?}");
    });
}

#[test]
fn a_failure_prints_its_world_and_the_command_that_replays_it() {
    assert_failures_can_be_replayed(&Swarm::new(&clients_of_a_busy_access_point_share, world));
}
