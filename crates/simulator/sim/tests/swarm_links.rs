//! Random chains of links with random flows: links may impair packets in any way, but none appears or disappears
//! without being counted, files arrive completely, and equal worlds give equal results.
//!
//! A failure prints the world and the command that replays it.
#![allow(clippy::unwrap_used, reason = "in tests")]

mod common;

use std::sync::Arc;

use common::swarm::{Swarm, assert_failures_can_be_replayed, seeds};
use common::*;
use tacit_between::ack_hold::{AckHoldConfig, HoldLaw};
use tacit_between::fastack;
use tacit_link::cellular::Trace;
use tacit_link::loss::Loss;
use tacit_link::queue::{AckFilter, CoDelConfig, Discipline, FqCoDelConfig, QueueConfig, QueueLimit};
use tacit_link::random::Stream;
use tacit_link::wifi::AccessCategory;
use tacit_link::wifi::phy::Standard;
use tacit_link::wired::{
    Distribution, Impairments, Jitter, Order, PipeConfig, RateScript, Reordering, Service,
};
use tacit_packet::IpVersion;
use tacit_packet::udp::ReportAfter;
use tacit_packet::units::{BitRate, Bytes, Duration, HostId, Instant, Ratio};
use tacit_sim::setup::{ApDriver, ClientDriver, FlowSetup, Setup, Traffic, WiredSetup};
use tacit_sim::{RunOutcome, run};
use tacit_tcp::{self as tcp, AckPolicy};

/// Bytes of each file.
const FILE: Bytes = Bytes(150_000);

fn pick<T: Clone>(draw: &mut Stream, choices: &[T]) -> T {
    choices[draw.up_to(choices.len() as u32 - 1) as usize].clone()
}

fn millis(draw: &mut Stream, most: u32) -> Duration {
    Duration::from_micros(u64::from(draw.up_to(most * 1_000)))
}

fn percent(draw: &mut Stream, most: u32) -> Ratio {
    Ratio::from_parts_per_billion(draw.up_to(most * 10_000_000)).unwrap()
}

fn random_service(draw: &mut Stream) -> Service {
    let rate = |draw: &mut Stream| BitRate::from_mbps(u64::from(pick(draw, &[2_u32, 10, 100])));
    match draw.up_to(3) {
        0 => {
            let mut at = Instant::ZERO;
            let changes = (0..draw.up_to(6)).map(|_| {
                at += Duration::from_millis(u64::from(1 + draw.up_to(800)));
                (at, (draw.up_to(3) > 0).then(|| rate(draw)))
            });
            let mut changes: Vec<_> = changes.collect();
            changes.push((at + Duration::from_millis(50), Some(rate(draw))));
            Service::Script(RateScript::new(rate(draw), changes).unwrap())
        }
        1 => {
            let (period, most) = (100 + draw.up_to(2_000), 1 + draw.up_to(2));
            let per_millisecond = (1..=period).flat_map(|ms| {
                let count = if ms == period { 1 } else { draw.up_to(most) };
                (0..count).map(move |_| ms)
            });
            Service::Trace(Arc::new(Trace::new(per_millisecond.collect()).unwrap()))
        }
        _ => Service::Rate(rate(draw)),
    }
}

fn random_impairments(draw: &mut Stream) -> Impairments {
    let spread = millis(draw, 30);
    let distribution = pick(draw, &[Distribution::Uniform(spread), Distribution::Normal(spread)]);
    let jitter = Jitter { distribution, order: pick(draw, &[Order::Kept, Order::Free]) };
    let reordering = Reordering {
        chance: percent(draw, 5),
        packets: pick(draw, &[None, Some(1), Some(3), Some(20)]),
        delay: Duration::from_nanos(1) + millis(draw, 50),
    };
    Impairments {
        jitter: (draw.up_to(2) == 0).then_some(jitter),
        reordering: (draw.up_to(2) == 0).then_some(reordering),
        duplication: if draw.up_to(2) == 0 { percent(draw, 10) } else { Ratio::ZERO },
    }
}

fn random_pipe(draw: &mut Stream) -> PipeConfig {
    PipeConfig {
        service: random_service(draw),
        delay: millis(draw, 40),
        queue: QueueConfig {
            limit: QueueLimit {
                packets: pick(draw, &[Some(20), Some(200), None]),
                bytes: pick(draw, &[Some(Bytes(30_000)), None]),
            },
            discipline: pick(
                draw,
                &[
                    Discipline::DropTail,
                    Discipline::DropHead,
                    Discipline::CoDel(CoDelConfig::INTERNET),
                    Discipline::FqCoDel(FqCoDelConfig { flows: 2, ..FqCoDelConfig::MAC80211 }),
                ],
            ),
        },
        ack_filter: pick(
            draw,
            &[AckFilter::Off, AckFilter::Cake, AckFilter::CakeAggressive, AckFilter::Replace],
        ),
        loss: if draw.up_to(1) == 0 { Loss::Bernoulli(percent(draw, 1)) } else { Loss::None },
        impairments: if draw.up_to(1) == 0 { random_impairments(draw) } else { Impairments::NONE },
    }
}

fn random_traffic(draw: &mut Stream) -> Traffic {
    let ack_policy = AckPolicy::every(pick(draw, &[1, 2, 8]));
    let config = tcp::Config {
        ip: pick(draw, &[IpVersion::V4, IpVersion::V6]),
        ack_policy,
        timestamps: draw.up_to(3) > 0,
        sack: draw.up_to(3) > 0,
        ..tcp::Config::default()
    };
    match draw.up_to(5) {
        0 => Traffic::Udp {
            ip: IpVersion::V4,
            payload: Bytes(u64::from(100 + draw.up_to(1_300))),
            rate: Some(BitRate::from_kbps(300)),
            report_after: pick(draw, &[None, Some(ReportAfter::Time(Duration::from_millis(20)))]),
            send_buffer: pick(draw, &[None, Some(Bytes(3_000))]),
        },
        _ => Traffic::Connection { config: config.into(), size: Some(FILE) },
    }
}

/// One to four links in a row, possibly with a basic service set at the end.
fn random_setup(seed: u64) -> Setup {
    let draw = &mut Stream::new(seed, "swarm of links");
    let mut setup = wlan(Standard::N, 150, 1 + draw.up_to(2), &bulk(tcp::Config::default()));
    let set = &mut setup.bss[0];
    let filters = [AckFilter::Off, AckFilter::Cake, AckFilter::CakeAggressive, AckFilter::Replace];
    (set.config.ap_ack_filter, set.config.station_ack_filter) = (pick(draw, &filters), pick(draw, &filters));
    let hold =
        pick(draw, &[ClientDriver::Stock, ClientDriver::AckHold(HoldLaw::Fixed(AckHoldConfig::USUAL))]);
    // A separate random stream, so that older seeds keep the rest of their worlds.
    let thinning = &mut Stream::new(seed, "swarm links thinning");
    let hold = if thinning.up_to(3) == 0 { ClientDriver::AckHold(HoldLaw::Thin) } else { hold };
    let draws = &mut Stream::new(seed, "swarm links access point's acks");
    let acks = pick(draws, &[ApDriver::Stock, ApDriver::FastAck(fastack::Config::USUAL)]);
    set.set_drivers(acks, hold);
    let mut ends: Vec<HostId> = set.clients.iter().map(|client| client.host).collect();
    if draw.up_to(2) == 0 {
        setup.bss.clear();
        ends = vec![AP];
    }
    setup.wired.clear();
    let links = 1 + draw.up_to(3);
    let mut at = SERVER;
    for number in 1..=links {
        let next = if number == links { AP } else { HostId(setup.hosts.len() as u32) };
        if next != AP {
            setup.hosts.push(format!("router-{number}"));
        }
        setup.wired.push(WiredSetup {
            a: at,
            b: next,
            forward: random_pipe(draw),
            backward: random_pipe(draw),
        });
        at = next;
    }
    for pipe in setup.wired.iter_mut().flat_map(|link| [&mut link.forward, &mut link.backward]) {
        if thinning.up_to(3) == 0 {
            pipe.ack_filter = AckFilter::Thin;
        }
    }
    let mut flow = |end: &HostId| {
        let ends = if draw.up_to(1) == 0 { (SERVER, *end) } else { (*end, SERVER) };
        let start = Instant::ZERO + millis(draw, 2_000);
        let access_category = AccessCategory::BestEffort;
        let traffic = random_traffic(draw);
        FlowSetup { source: ends.0, sink: ends.1, start, stop: None, access_category, traffic, user: 0 }
    };
    setup.flows = ends.iter().flat_map(|end| [flow(end), flow(end)]).collect();
    setup.duration = Duration::from_secs(120);
    setup.measure_from = Instant::ZERO;
    setup.sample_interval = Some(Duration::from_millis(100));
    setup.seed = seed;
    setup
}

fn outcome_of(seed: u64, setup: &Setup) -> RunOutcome {
    run(setup).unwrap_or_else(|error| panic!("seed {seed}: {error}"))
}

fn check(seed: u64, setup: &Setup) -> RunOutcome {
    let outcome = outcome_of(seed, setup);
    for (flow, result) in setup.flows.iter().zip(&outcome.flows) {
        match &flow.traffic {
            Traffic::Connection { .. } => {
                assert_eq!(result.delivered_total, FILE, "seed {seed}: {} is not whole", result.flow);
            }
            Traffic::Udp { .. } => assert!(result.delivered_total > Bytes(0), "seed {seed}: {}", result.flow),
        }
    }
    for pipe in &outcome.pipes {
        let counters = &pipe.counters;
        let gone = counters.dropped + counters.lost + counters.filtered_acks;
        let left = counters.offered + counters.duplicated - counters.delivered - gone;
        assert!(left < 1_000, "seed {seed}: {left} packets are still in {pipe:?}");
    }
    outcome
}

#[test]
fn files_arrive_whole_over_two_hundred_random_chains() {
    let seeds = seeds(200);
    let worlds = seeds.end - seeds.start;
    let mut counted = [0; 4];
    Swarm::new(&files_arrive_whole_over_two_hundred_random_chains, random_setup).check(
        seeds,
        |seed, setup| {
            for pipe in check(seed, setup).pipes {
                let counters = pipe.counters;
                let seen = [counters.dropped, counters.lost, counters.duplicated, counters.filtered_acks];
                counted.iter_mut().zip(seen).for_each(|(sum, seen)| *sum += seen);
            }
        },
    );
    let enough = counted.iter().all(|sum| *sum > 100);
    assert!(worlds < 200 || enough, "drops, losses, copies, filtered ACKs: {counted:?}");
}

/// The chain of `seed` with TACK instead of TCP, except for one connection in three.
fn setup_over_tack(seed: u64) -> Setup {
    let mut setup = random_setup(seed);
    tack::carry_over(&mut setup, seed);
    setup
}

#[test]
fn files_arrive_whole_over_tack() {
    let mut carried = 0;
    let seeds = seeds(150);
    let worlds = seeds.end - seeds.start;
    Swarm::new(&files_arrive_whole_over_tack, setup_over_tack).check(seeds, |seed, setup| {
        carried += tack::carried(setup);
        check(seed, setup);
    });
    assert!(worlds < 150 || carried > 200, "{carried} flows");
}

#[test]
fn equal_chains_make_equal_runs() {
    Swarm::new(&equal_chains_make_equal_runs, random_setup).check(seeds(20), |seed, setup| {
        assert_eq!(outcome_of(seed, setup).digest, outcome_of(seed, setup).digest, "seed {seed}");
    });
}

#[test]
fn a_failure_prints_its_world_and_the_command_that_replays_it() {
    for swarm in [
        Swarm::new(&files_arrive_whole_over_two_hundred_random_chains, random_setup),
        Swarm::new(&files_arrive_whole_over_tack, setup_over_tack),
        Swarm::new(&equal_chains_make_equal_runs, random_setup),
    ] {
        assert_failures_can_be_replayed(&swarm);
    }
}
