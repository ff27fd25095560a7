//! Runs schemes at several settings, and adds seeds for those that the runs do not separate.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use tacit_runs::RunsError;
use tacit_runs::aggregate::Group;
use tacit_runs::plan::{Plan, SweepPoint};
use tacit_runs::record::RunSummary;
use tacit_runs::store::Store;
use tacit_runs::sweep::{self, Control, Progress};
use tacit_scenario::Scenario;
use tacit_scenario::scheme::Scheme;

use crate::compare::gain_over;

/// Goodputs with a smaller relative difference count as equal.
pub(super) const EQUAL: f64 = 0.01;

/// A scenario with its runs so far.
#[derive(Debug)]
pub(super) struct Arena {
    scenario: Arc<Scenario>,
    clients: u32,
    /// Runs by scheme, for seeds from 1 on.
    runs: BTreeMap<&'static str, Vec<RunSummary>>,
}

impl Arena {
    pub fn new(scenario: Arc<Scenario>, clients: u32) -> Self {
        Self { scenario, clients, runs: BTreeMap::new() }
    }

    /// Adds artificial runs of `scheme` with these goodputs in Mb/s and a queueing delay of `wait_us`.
    #[cfg(test)]
    pub fn pretend(&mut self, scheme: &'static str, mbps: &[f64], wait_us: f64) {
        use tacit_runs::metric;
        use tacit_runs::record::Label;
        let run = |(mbps, seed): (&f64, u64)| {
            let mut metrics = vec![None; metric::ALL.len()];
            for (name, value) in [("goodput_bps", mbps * 1e6), ("queue_delay_p95_us", wait_us)] {
                metrics[metric::position(name).expect("it is a metric")] = Some(value);
            }
            let label = Label { scheme: scheme.into(), clients: self.clients, seed, ..Label::default() };
            RunSummary { label, measured_s: 1.0, metrics, ..RunSummary::default() }
        };
        let runs = mbps.iter().zip(1..).map(run).collect();
        self.runs.insert(scheme, runs);
    }

    /// Its scenario.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// The runs of a scheme; empty if it did not run here.
    pub fn group(&self, scheme: &str) -> Group<'_> {
        Group::new(self.runs.get(scheme).into_iter().flatten())
    }

    pub fn seeds(&self, scheme: &str) -> u32 {
        self.runs.get(scheme).map_or(0, |runs| runs.len() as u32)
    }

    /// The lead of `one` over `other`, if both ran here.
    pub fn lead(&self, one: &str, other: &str) -> Option<Lead> {
        Lead::between(&self.group(one), &self.group(other))
    }

    /// Whether the runs do not determine which of the two has more goodput by a relevant amount.
    pub fn is_open(&self, one: &str, other: &str) -> bool {
        let lead = self.lead(one, other).filter(|lead| lead.mean >= 0.0).or_else(|| self.lead(other, one));
        lead.is_some_and(|lead| lead.order(EQUAL) == Order::Open)
    }

    /// All runs, grouped by scheme.
    pub fn records(&self) -> Vec<RunSummary> {
        let mut all: Vec<_> = self.runs.iter().collect();
        all.sort_by_key(|(name, _)| Scheme::position(name));
        all.into_iter().flat_map(|(_, runs)| runs.clone()).collect()
    }

    /// Those of `schemes` that are possible in this scenario.
    pub fn possible(&self, schemes: &[&'static Scheme]) -> Vec<&'static Scheme> {
        let is_possible = |scheme: &&&'static Scheme| {
            let mut plan = Plan::default();
            plan.push(&self.scenario, scheme, self.clients, SweepPoint::default(), 1).is_ok()
        };
        schemes.iter().filter(is_possible).copied().collect()
    }
}

/// A scheme and the number of seeds to run in an arena.
#[derive(Clone, Copy, Debug)]
pub(super) struct SeedRequest {
    pub arena: usize,
    pub scheme: &'static Scheme,
    pub seeds: u32,
}

/// Executes rounds of runs and reports them as a single sweep.
pub(super) struct Rounds<'a> {
    control: Control<'a>,
    /// Stores the runs of the first arena.
    store: Option<&'a Store>,
    /// Number of runs in earlier rounds.
    finished: usize,
}

impl<'a> Rounds<'a> {
    pub fn new(store: Option<&'a Store>, control: Control<'a>) -> Self {
        Self { control, store, finished: 0 }
    }

    /// Like [`Rounds::make`], and keeps nothing in the store.
    ///
    /// # Errors
    /// Same as [`Rounds::make`].
    pub fn make_apart(&mut self, arenas: &mut [Arena], wanted: &[SeedRequest]) -> Result<(), RunsError> {
        let store = self.store.take();
        let result = self.make(arenas, wanted);
        self.store = store;
        result
    }

    /// Executes those `wanted` runs that have not been executed yet.
    ///
    /// # Errors
    /// Same as [`sweep::run`]. Also if a scheme is not possible in a scenario.
    pub fn make(&mut self, arenas: &mut [Arena], wanted: &[SeedRequest]) -> Result<(), RunsError> {
        let plans = arenas.iter().enumerate().map(|(number, arena)| {
            let mut plan = Plan::default();
            for SeedRequest { scheme, seeds, .. } in wanted.iter().filter(|wanted| wanted.arena == number) {
                let missing: RangeInclusive<u64> =
                    u64::from(arena.seeds(scheme.name)) + 1..=u64::from(*seeds);
                plan.push_seeds(&arena.scenario, scheme, arena.clients, SweepPoint::default(), missing)?;
            }
            Ok(plan)
        });
        let plans = plans.collect::<Result<Vec<Plan>, RunsError>>()?;
        let all = self.finished + plans.iter().map(|plan| plan.runs.len()).sum::<usize>();
        for (number, (arena, plan)) in arenas.iter_mut().zip(&plans).enumerate() {
            let finished = self.finished;
            let forward = self.control.progress;
            let progress = |progress: Progress<'_>| match progress {
                Progress::Started { reused, .. } => {
                    forward(Progress::Started { total: all, reused: finished + reused });
                }
                other => forward(other),
            };
            let store = self.store.filter(|_| number == 0);
            let control = Control { progress: &progress, ..self.control };
            for run in sweep::run(plan, store, control)? {
                let scheme = Scheme::position(&run.label.scheme);
                // All schemes are in the table.
                let name = tacit_scenario::scheme::ALL.get(scheme).map_or("", |scheme| scheme.name);
                arena.runs.entry(name).or_default().push(run);
            }
            self.finished += plan.runs.len();
        }
        Ok(())
    }
}

/// Fraction by which one goodput exceeds another, or by which files are faster, based on runs with the same seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Lead {
    /// Lower end of the 95 % confidence interval.
    pub least: f64,
    /// Value based on means.
    pub mean: f64,
    /// Upper end.
    pub most: f64,
}

/// The result of comparing two schemes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// The first has more.
    Ahead,
    /// The first does not have more by a relevant amount.
    Equal,
    /// The runs do not decide.
    Open,
}

impl Lead {
    /// `None` if the groups have no seed in common, or there is nothing to compare. With one seed there is no interval,
    /// and both ends equal the mean.
    pub fn between(one: &Group<'_>, other: &Group<'_>) -> Option<Self> {
        let gain = gain_over(&one.with_seeds_of(other), &other.with_seeds_of(one))?;
        let half = gain.ci95.unwrap_or(0.0);
        Some(Self { least: gain.of_means - half, mean: gain.of_means, most: gain.of_means + half })
    }

    /// The order, where a lead below `counts` is irrelevant.
    pub fn order(&self, counts: f64) -> Order {
        match self {
            lead if lead.most < counts => Order::Equal,
            lead if lead.least > 0.0 => Order::Ahead,
            _ => Order::Open,
        }
    }
}
