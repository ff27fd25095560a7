//! What a sweep runs: scenario x scheme x clients x seed, each run named by its content.

use std::fmt::Write as _;
use std::fs;
use std::sync::{Arc, OnceLock};
use std::time::UNIX_EPOCH;

use tacit_sim::Setup;

use crate::error::InputError;
use crate::record::{Label, RunRecord};
use crate::scenario::Scenario;
use crate::scheme::Scheme;

/// A run that is to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedRun {
    /// Hash of the setup, its seed and the program's version: equal ids give equal results.
    pub id: String,
    /// Which.
    pub label: Label,
    /// The scenario as TOML, before the scheme.
    pub scenario_text: Arc<str>,
    /// The command that makes it again.
    pub command: String,
    /// Everything it depends on.
    pub setup: Setup,
}

/// The runs of a sweep, in the order results are shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The runs.
    pub runs: Vec<PlannedRun>,
}

/// Where on a sweep's axes a run stands.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Place {
    /// On the axis that is drawn.
    pub x: Option<f64>,
    /// On the one of which the best counts.
    pub best_of: Option<f64>,
}

impl Plan {
    /// Adds `scenario` under `scheme`, once per seed 1 to `seeds`. Every scheme gets the same seeds,
    /// hence the same draws.
    ///
    /// # Errors
    /// Where the scenario cannot have this many clients.
    pub fn push(
        &mut self,
        scenario: &Scenario,
        scheme: &Scheme,
        clients: u32,
        x: Option<f64>,
        seeds: u32,
    ) -> Result<(), InputError> {
        self.push_at(scenario, scheme, clients, Place { x, best_of: None }, seeds)
    }

    /// The same, at a place of a sweep.
    ///
    /// # Errors
    /// As [`Plan::push`].
    pub fn push_at(
        &mut self,
        scenario: &Scenario,
        scheme: &Scheme,
        clients: u32,
        place: Place,
        seeds: u32,
    ) -> Result<(), InputError> {
        let Place { x, best_of } = place;
        let changed = scheme.applied_to(scenario);
        let scenario_text: Arc<str> = scenario.text.as_str().into();
        for seed in 1..=u64::from(seeds) {
            let setup = changed.setup(clients, seed)?;
            let command = scenario.run_command(Some(scheme.name), clients, seed);
            let (scenario, scheme) = (scenario.name.clone(), scheme.name.to_owned());
            let label = Label { scenario, scheme, clients, x, best_of, seed };
            let (id, scenario_text) = (content_id(&label, &setup), scenario_text.clone());
            self.runs.push(PlannedRun { id, label, scenario_text, command, setup });
        }
        Ok(())
    }
}

/// The id of the run of `setup` by this program. The label is part of it: two schemes may come to the
/// same setup, and their rows are still two.
pub fn content_id(label: &Label, setup: &Setup) -> String {
    let mut hash = Fnv128::new();
    let _ = write!(hash, "{}\n{label:?}\n{setup:?}", build_identity());
    format!("{:032x}", hash.state)
}

/// One hash for the digests of all `records`, in order.
pub fn combined_digest(records: &[RunRecord]) -> String {
    let mut hash = Fnv128::new();
    for record in records {
        let _ = writeln!(hash, "{}", record.digest);
    }
    format!("{:032x}", hash.state)
}

/// What makes two builds of this program the same for results: version, commit, and the time of the
/// build, so that no result of older code is ever taken for one of newer.
fn build_identity() -> &'static str {
    static IDENTITY: OnceLock<String> = OnceLock::new();
    IDENTITY.get_or_init(|| {
        let built = std::env::current_exe().and_then(fs::metadata).and_then(|file| file.modified()).ok();
        let stamp = built.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        format!("{} {}", crate::VERSION, stamp.map_or(0, |stamp| stamp.as_nanos()))
    })
}

/// FNV-1a with 128 bits: the same on every machine and in every release of the language.
struct Fnv128 {
    state: u128,
}

impl Fnv128 {
    const fn new() -> Self {
        Self { state: 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d }
    }
}

impl std::fmt::Write for Fnv128 {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        for octet in text.bytes() {
            self.state =
                (self.state ^ u128::from(octet)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheme;

    #[test]
    fn the_hash_is_fnv_1a() {
        let mut hash = Fnv128::new();
        hash.write_str("a").unwrap();
        assert_eq!(format!("{:032x}", hash.state), "d228cb696f1a8caf78912b704e4a8964");
    }

    #[test]
    fn ids_follow_content() {
        let scenario = Scenario::load("wlan-11n-150", &[]).unwrap();
        let mut plan = Plan::default();
        for scheme in scheme::ALL {
            plan.push(&scenario, scheme, 1, None, 3).unwrap();
        }
        let mut ids: Vec<&str> = plan.runs.iter().map(|run| run.id.as_str()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 3 * scheme::ALL.len());
        let mut again = Plan::default();
        again.push(&scenario, &scheme::ALL[0], 1, None, 3).unwrap();
        assert_eq!(again.runs[..], plan.runs[..3]);
    }
}
