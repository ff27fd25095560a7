//! The specification of a run: everything that its result depends on, small enough to store a million of them.

use std::sync::{Arc, OnceLock};

use tacit_sim::Setup;

use crate::brought;
use crate::estimate::Estimate;
use crate::scheme::Scheme;
use crate::{InputError, Scenario};

/// A run: a scenario, a scheme to apply, the number of clients, and the seed. Runs share their common parts.
#[derive(Clone, Debug)]
pub struct RunSpec {
    /// The scenario and the scheme.
    pub subject: Arc<Subject>,
    /// Number of clients.
    pub clients: u32,
    /// Position on the axis of a sweep, if any. Like `best_of`, it does not affect the run.
    pub x: Option<f64>,
    /// Value of the key that a sweep optimises, if any.
    pub best_of: Option<f64>,
    /// Seed of all random draws.
    pub seed: u64,
    /// Encode and decode every packet in transit.
    pub wire: bool,
}

/// A scenario with a scheme: the common part of any number of runs.
#[derive(Debug)]
pub struct Subject {
    scenario: Arc<Scenario>,
    scheme: &'static Scheme,
    /// The scenario after applying the scheme, without its TOML, description and invocation.
    changed: Scenario,
    content: OnceLock<blake3::Hash>,
}

impl Subject {
    /// Creates the subject of `scenario` with `scheme`.
    pub fn new(scenario: Arc<Scenario>, scheme: &'static Scheme) -> Self {
        let mut changed = scheme.applied_to(&scenario);
        without_words(&mut changed);
        changed.adopted_mut().map(without_words);
        Self { scenario, scheme, changed, content: OnceLock::new() }
    }

    /// Applies `change` to the scenario after the scheme. This allows changes that no file can express. Results must
    /// not be stored under names derived from this subject, because another process could not interpret them.
    #[must_use]
    pub fn changed_by(mut self, change: impl FnOnce(&mut Scenario)) -> Self {
        change(&mut self.changed);
        self
    }

    /// The scenario before applying the scheme.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// The scheme.
    pub fn scheme(&self) -> &'static Scheme {
        self.scheme
    }

    /// Checks whether a run with this number of clients is possible.
    ///
    /// # Errors
    /// If the scenario cannot have this number of clients, or the run needs too much memory.
    pub fn check(&self, clients: u32) -> Result<(), InputError> {
        self.changed.check(clients)?;
        self.estimate(clients)?.check()
    }

    /// What a run with this number of clients takes.
    ///
    /// # Errors
    /// If the scenario cannot have this number of clients.
    pub fn estimate(&self, clients: u32) -> Result<Estimate, InputError> {
        // The draws of a seed hardly change it.
        self.changed.setup(clients, 1).map(|setup| Estimate::for_setup(&setup))
    }

    /// Hash of every value in the scenario under this scheme, including the traces of links. It is equal for two
    /// scenarios that differ only in notation, and for two schemes with the same effect.
    fn content(&self) -> blake3::Hash {
        *self.content.get_or_init(|| {
            let mut bare = self.changed.clone();
            without_defaults(&mut bare);
            bare.adopted_mut().map(without_defaults);
            blake3::hash(format!("{bare:?}{}", brought::mark(self.scheme.name)).as_bytes())
        })
    }
}

/// Removes the TOML, description and invocation.
fn without_words(scenario: &mut Scenario) {
    scenario.text = Arc::default();
    for words in [&mut scenario.description, &mut scenario.invocation] {
        *words = String::new();
    }
}

/// Removes the name and the default numbers of seeds and clients, on which no run depends.
fn without_defaults(scenario: &mut Scenario) {
    scenario.name = String::new();
    scenario.run.seeds = 0;
    scenario.compare.clients = Vec::new();
    scenario.clients = 0;
}

impl RunSpec {
    /// Creates the run of `subject` with `clients` clients and this seed.
    pub fn new(subject: Arc<Subject>, clients: u32, seed: u64) -> Self {
        Self { subject, clients, x: None, best_of: None, seed, wire: false }
    }

    /// The input of the simulator.
    ///
    /// # Errors
    /// If the scenario cannot have this number of clients.
    pub fn setup(&self) -> Result<Setup, InputError> {
        let setup = self.subject.changed.setup(self.clients, self.seed)?;
        Ok(Setup { wire: self.wire, ..setup })
    }

    /// The command that simulates it.
    pub fn command(&self) -> String {
        self.subject.scenario.run_command(self.subject.scheme.argument(), self.clients, self.seed)
    }

    /// Hash of everything that its result depends on, except the program. Specs with equal hashes result in equal
    /// setups.
    pub fn content(&self) -> [u8; blake3::OUT_LEN] {
        let mut hash = blake3::Hasher::new();
        hash.update(self.subject.content().as_bytes());
        hash.update(&self.clients.to_le_bytes());
        hash.update(&self.seed.to_le_bytes());
        hash.update(&[self.wire.into()]);
        hash.finalize().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheme;

    fn spec(scenario: &str, assignments: &[&str], scheme: &str) -> RunSpec {
        let assignments: Vec<String> = assignments.iter().map(|&text| text.to_owned()).collect();
        let scenario = Scenario::load(scenario, &assignments).unwrap();
        let subject = Subject::new(Arc::new(scenario), scheme::named("", scheme).unwrap());
        RunSpec::new(Arc::new(subject), 2, 1)
    }

    #[test]
    fn a_spec_becomes_the_setup_of_its_scenario() {
        let spec = spec("wlan-11n-150", &[], "hack-batch");
        let scenario = Scenario::load("wlan-11n-150", &[]).unwrap();
        let changed = scheme::find("", "hack-batch").unwrap().applied_to(&scenario);
        assert_eq!(spec.setup().unwrap(), changed.setup(2, 1).unwrap());
        assert_eq!(spec.command(), "tacit run wlan-11n-150 --scheme hack-batch --clients 2 --seed 1");
        assert!(RunSpec { wire: true, ..spec }.setup().unwrap().wire);
    }

    #[test]
    fn content_is_what_the_result_depends_on_and_nothing_else() {
        let one = spec("wlan-11n-150", &[], "stock");
        let same = [
            spec("wlan-11n-150", &["name=other", "description=another"], "stock"),
            spec("wlan-11n-150", &["run.seeds=3", "compare.clients=[7]", "clients.count=5"], "stock"),
            // The stock scheme is TCP as configured in the scenario.
            spec("wlan-11n-150", &[], "as-written"),
            RunSpec { x: Some(3.0), best_of: Some(1.0), ..one.clone() },
        ];
        for (number, other) in same.iter().enumerate() {
            assert_eq!(other.content(), one.content(), "{number}");
        }
        let others = [
            RunSpec { seed: 2, ..one.clone() },
            RunSpec { clients: 3, ..one.clone() },
            RunSpec { wire: true, ..one.clone() },
            spec("wlan-11n-150", &["wifi.retry-limit=6"], "stock"),
            spec("wlan-11n-150", &[], "tcp-l4"),
        ];
        for (number, other) in others.iter().enumerate() {
            assert_ne!(other.content(), one.content(), "{number}");
        }
    }
}
