//! The runs of a sweep: scenario x scheme x clients x seed.

use std::ops::RangeInclusive;
use std::sync::Arc;

use tacit_scenario::scheme::Scheme;
use tacit_scenario::{InputError, RunSpec, Scenario, Subject};

use crate::record::RunSummary;

/// The runs of a sweep, in the order in which results are shown. Each is only a [`RunSpec`] until it is simulated.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The runs.
    pub runs: Vec<RunSpec>,
}

/// The coordinates of a run on the axes of its sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SweepPoint {
    /// On the axis that is drawn.
    pub x: Option<f64>,
    /// On the axis over which the best value is chosen.
    pub best_of: Option<f64>,
}

impl Plan {
    /// Adds `scenario` with `scheme` at a sweep point, for seeds 1 to `seeds`. All schemes use the same seeds and
    /// therefore the same random draws.
    ///
    /// # Errors
    /// If the scenario cannot have this number of clients.
    pub fn push(
        &mut self,
        scenario: &Arc<Scenario>,
        scheme: &'static Scheme,
        clients: u32,
        place: SweepPoint,
        seeds: u32,
    ) -> Result<(), InputError> {
        self.push_seeds(scenario, scheme, clients, place, 1..=u64::from(seeds))
    }

    /// Like [`Plan::push`] with a range of seeds: earlier seeds have already been simulated.
    ///
    /// # Errors
    /// If the scenario cannot have this number of clients.
    pub fn push_seeds(
        &mut self,
        scenario: &Arc<Scenario>,
        scheme: &'static Scheme,
        clients: u32,
        place: SweepPoint,
        seeds: RangeInclusive<u64>,
    ) -> Result<(), InputError> {
        let subject = Arc::new(Subject::new(scenario.clone(), scheme));
        subject.check(clients)?;
        self.runs.extend(seeds.map(|seed| RunSpec {
            x: place.x,
            best_of: place.best_of,
            ..RunSpec::new(subject.clone(), clients, seed)
        }));
        Ok(())
    }
}

/// One hash over the digests of all `records`, in order.
pub fn combined_digest(records: &[RunSummary]) -> String {
    let mut hash = blake3::Hasher::new();
    for record in records {
        hash.update(record.digest.as_bytes());
        hash.update(b"\n");
    }
    let mut digest = [0; 16];
    hash.finalize_xof().fill(&mut digest);
    format!("{:032x}", u128::from_be_bytes(digest))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use tacit_scenario::scheme;

    use super::*;
    use crate::identity::run_id;

    #[test]
    fn every_scheme_has_the_same_seeds_at_the_same_place() {
        let scenario = Arc::new(Scenario::load("wlan-11n-150", &[]).unwrap());
        let mut plan = Plan::default();
        for scheme in &scheme::ALL[..2] {
            plan.push(&scenario, scheme, 1, SweepPoint { x: Some(2.5), best_of: None }, 3).unwrap();
        }
        let runs: Vec<_> = plan.runs.iter().map(|run| (run.subject.scheme().name, run.seed, run.x)).collect();
        let x = Some(2.5);
        assert_eq!(
            runs,
            [
                ("stock", 1, x),
                ("stock", 2, x),
                ("stock", 3, x),
                ("hack-more-data", 1, x),
                ("hack-more-data", 2, x),
                ("hack-more-data", 3, x)
            ]
        );
        assert_eq!(plan.runs.iter().map(run_id).collect::<BTreeSet<_>>().len(), runs.len());
    }

    #[test]
    fn a_plan_of_a_million_runs_is_small() {
        let set = ["clients.stagger=10 ms".to_owned()];
        let scenario = Arc::new(Scenario::load("wlan-11n-150", &set).unwrap());
        let mut plan = Plan::default();
        plan.push(&scenario, &scheme::ALL[0], 100, SweepPoint::default(), 1_000_000).unwrap();
        let bytes = plan.runs.capacity() * size_of::<RunSpec>();
        assert!(bytes < 100 << 20, "{bytes}");
        let shared = |run: &RunSpec| Arc::ptr_eq(&run.subject, &plan.runs[0].subject);
        assert!(plan.runs.iter().all(shared));
    }

    #[test]
    fn invalid_runs_are_refused_before_anything_runs() {
        let late = ["clients.stagger=1 s", "run.duration=5 s", "run.measure-from=4 s"].map(str::to_owned);
        let scenario = Arc::new(Scenario::load("wlan-11n-150", &late).unwrap());
        let mut plan = Plan::default();
        plan.push(&scenario, &scheme::ALL[0], 5, SweepPoint::default(), 1).unwrap();
        let error = plan.push(&scenario, &scheme::ALL[0], 6, SweepPoint::default(), 1).unwrap_err();
        assert!(error.to_string().contains("client 6: starts at 5s"), "{error}");
    }
}
