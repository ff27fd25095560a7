//! Simulates a download with the ACK ratio of a live one. The simulated hosts may be as slow as the machine's programs
//! were.

use std::thread;

use super::live_runs::TransferReport;
use tacit_packet::units::Duration;
use tacit_runs::RunsError;
use tacit_runs::aggregate::Mean;
use tacit_scenario::scheme::Scheme;
use tacit_scenario::{Hop, InputError, Scenario};

/// Maximum number of segments per ACK in the simulated arm.
const MAX_SEGMENTS_PER_ACK: f64 = 64.0;
/// Number of seeds in the simulated arm. The goodput of stock differs by 2 % between seeds.
const SIMULATED_SEEDS: u64 = 3;

/// Results of the steady part of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    pub goodput_mbps: f64,
    pub ack_ratio: f64,
}

/// Adds the waiting times of the client's and the server's programs to the delay of the packets they send.
fn slow_the_hosts(scenario: &mut Scenario, [client_us, server_us]: [f64; 2]) -> Result<(), InputError> {
    let wire = scenario.hops.iter_mut().find_map(|hop| match hop {
        Hop::Pipe(link) => Some(link),
        Hop::Wifi => None,
    });
    let Some(wire) = wire else {
        let what = format!("{} has no wire whose delay could stand for the waits of programs", scenario.name);
        return Err(InputError::new("transfers", what).allowed("scenarios with one"));
    };
    wire.up.delay += Duration::from_nanos((client_us * 1e3) as u64);
    wire.down.delay += Duration::from_nanos((server_us * 1e3) as u64);
    Ok(())
}

impl Measured {
    /// Ignores the first second, which is slow start, and the last one, which is incomplete. `None` if the run has no
    /// results.
    pub fn of(report: &TransferReport) -> Option<Self> {
        let steady = report.mbps.get(1..report.mbps.len().checked_sub(1)?)?;
        let goodput = Mean::of(steady.iter().copied())?;
        Some(Self { goodput_mbps: goodput.mean, ack_ratio: report.ack_ratio? })
    }

    /// Simulates the download with the measured ACK ratio. Receivers acknowledge a whole number of segments, so the
    /// result is interpolated between two runs.
    pub fn simulated(
        self,
        scenario: &Scenario,
        scheme: &Scheme,
        waits_us: [f64; 2],
    ) -> Result<Self, RunsError> {
        let (fewer, share) = bracket(self.ack_ratio);
        let every = |segments| simulated_every(scenario, scheme, segments, waits_us);
        let more_acks = every(fewer)?;
        let fewer_acks = if share > 0.0 { every(fewer + 1)? } else { more_acks };
        Ok(Self { goodput_mbps: more_acks + (fewer_acks - more_acks) * share, ..self })
    }
}

/// Mean goodput in Mb/s with one ACK per `segments`.
fn simulated_every(
    scenario: &Scenario,
    scheme: &Scheme,
    segments: u32,
    waits_us: [f64; 2],
) -> Result<f64, RunsError> {
    let mut scenario = scheme.applied_to(scenario);
    scenario.tcp.ack_policy = scenario.tcp.ack_policy.with_every(segments);
    slow_the_hosts(&mut scenario, waits_us)?;
    let setups: Vec<_> =
        (1..=SIMULATED_SEEDS).map(|seed| scenario.setup(1, seed)).collect::<Result<_, _>>()?;
    let outcomes = thread::scope(|scope| {
        let runs: Vec<_> = setups.iter().map(|setup| scope.spawn(|| tacit_sim::run(setup))).collect();
        let join = |run: thread::ScopedJoinHandle<'_, _>| {
            run.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        runs.into_iter().map(join).collect::<Vec<_>>()
    });
    let mut sum = 0.0;
    for (outcome, seed) in outcomes.into_iter().zip(1..) {
        let outcome = outcome.map_err(|source| RunsError::Run {
            run: format!("{}, seed {seed}", scenario.name),
            command: scenario.run_command(Some(scheme.name), scenario.clients, seed),
            source,
        })?;
        sum += outcome.goodput_bps() / 1e6;
    }
    Ok(sum / SIMULATED_SEEDS as f64)
}

/// The largest number of segments per ACK with at least this ratio, and the fraction of the way to the next number.
fn bracket(ack_ratio: f64) -> (u32, f64) {
    let segments = (1.0 / ack_ratio.max(1.0 / MAX_SEGMENTS_PER_ACK)).max(1.0);
    let fewer = segments.floor();
    let (above, below) = (1.0 / fewer, 1.0 / (fewer + 1.0));
    (fewer as u32, ((above - ack_ratio.min(1.0)) / (above - below)).clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_and_the_last_second_do_not_count() {
        let report = TransferReport {
            mbps: vec![7.0, 100.0, 110.0, 3.0],
            ack_ratio: Some(0.5),
            ..TransferReport::default()
        };
        let measured = Measured::of(&report).unwrap();
        assert!((measured.goodput_mbps - 105.0).abs() < 1e-9, "{measured:?}");
        assert!(Measured::of(&TransferReport::default()).is_none());
        assert!(Measured::of(&TransferReport { mbps: vec![1.0, 2.0], ..report }).is_none());
    }

    #[test]
    fn the_simulator_acknowledges_as_the_kernel_did() {
        assert_eq!(bracket(1.0), (1, 0.0));
        assert_eq!(bracket(1.3), (1, 0.0));
        assert_eq!(bracket(0.75), (1, 0.5));
        assert_eq!(bracket(0.5), (2, 0.0));
        let (segments, share) = bracket(0.4);
        assert!(segments == 2 && (share - 0.6).abs() < 1e-9, "{segments} {share}");
        assert_eq!(bracket(0.0), (64, 1.0));
    }

    #[test]
    fn a_hosts_wait_is_on_the_way_of_what_it_sends() {
        let mut scenario = Scenario::load("wlan-11n-150", &[]).unwrap();
        slow_the_hosts(&mut scenario, [250.0, 1_000.0]).unwrap();
        let Hop::Pipe(wire) = &scenario.hops[0] else { panic!("{:?}", scenario.hops) };
        assert_eq!((wire.up.delay.as_micros(), wire.down.delay.as_micros()), (1_250, 2_000));
        scenario.hops.remove(0);
        assert!(slow_the_hosts(&mut scenario, [1.0; 2]).is_err());
    }
}
