//! The specification of a run: everything that its result depends on, small enough to store a million of them.

use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};
use tacit_sim::Setup;

use crate::brought;
use crate::estimate::Estimate;
use crate::scheme::{self, Scheme};
use crate::{InputError, Scenario, ScenarioError};

/// A run: a scenario, a scheme to apply, the number of clients, and the seed. Runs share their common parts.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
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
        self.changed.setup(clients, 1).map(|setup| Estimate::of(&setup))
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
    for words in [&mut scenario.text, &mut scenario.description, &mut scenario.invocation] {
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

/// The serialised form.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Written {
    /// Name of the scenario.
    scenario: String,
    /// The whole scenario as TOML, before applying the scheme.
    scenario_text: String,
    /// Its name on the command line.
    invocation: String,
    /// The scheme by name.
    scheme: String,
    clients: u32,
    x: Option<f64>,
    best_of: Option<f64>,
    seed: u64,
    #[serde(default)]
    wire: bool,
}

impl From<RunSpec> for Written {
    fn from(spec: RunSpec) -> Self {
        let scenario = spec.subject.scenario();
        Self {
            scenario: scenario.name.clone(),
            scenario_text: scenario.text.clone(),
            invocation: scenario.invocation.clone(),
            scheme: spec.subject.scheme.name.to_owned(),
            clients: spec.clients,
            x: spec.x,
            best_of: spec.best_of,
            seed: spec.seed,
            wire: spec.wire,
        }
    }
}

impl TryFrom<Written> for RunSpec {
    type Error = ScenarioError;

    fn try_from(written: Written) -> Result<Self, ScenarioError> {
        let parsed = Scenario::parse(&written.scenario, &written.scenario_text, &[])?;
        let scenario = Scenario { name: written.scenario, invocation: written.invocation, ..parsed };
        let subject = Subject::new(Arc::new(scenario), scheme::named("scheme", &written.scheme)?);
        subject.check(written.clients)?;
        let Written { clients, x, best_of, seed, wire, .. } = written;
        Ok(Self { subject: Arc::new(subject), clients, x, best_of, seed, wire })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_spec_survives_being_written_down() {
        for scheme in ["stock", "as-written"] {
            let spec = RunSpec {
                x: Some(0.1),
                seed: u64::MAX,
                ..spec("lte-synthetic", &["tcp.ack-every=3"], scheme)
            };
            let written = serde_json::to_string(&spec).unwrap();
            let read: RunSpec = serde_json::from_str(&written).unwrap();
            assert_eq!(read.content(), spec.content());
            assert_eq!((read.x, read.command()), (spec.x, spec.command()));
            assert_eq!(read.setup().unwrap(), spec.setup().unwrap());
            assert_eq!(serde_json::to_string(&read).unwrap(), written);
        }
        let written = serde_json::to_string(&spec("wired-10", &[], "stock")).unwrap();
        let error = serde_json::from_str::<RunSpec>(&written.replace("\"stock\"", "\"stork\"")).unwrap_err();
        assert!(error.to_string().contains("unknown scheme \"stork\""), "{error}");
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
