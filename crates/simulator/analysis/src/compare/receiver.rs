//! Compares the receiver of 2014 with a current one, to show how much of a gain is due to the receiver.

use std::sync::Arc;

use tacit_runs::plan::{Plan, SweepPoint};
use tacit_scenario::scheme::{Role, Scheme};
use tacit_scenario::{InputError, Scenario, ScenarioError, Transport};
use tacit_tcp::AckPolicy;

use super::{Options, load};

/// Assignments that select the receiver with which TCP/HACK was measured.
pub(crate) const OF_2014: [&str; 3] = ["tcp.profile=classic", "tcp.ack-policy=delayed", "tcp.ack-every=2"];

/// The name of a scenario with this receiver in results.
pub(super) fn name_in_2014(scenario: &str) -> String {
    format!("{scenario}, receiver of 2014")
}

/// A scenario with the receiver of 2014, and its schemes: the baseline, and one TCP/HACK scheme.
pub(super) struct Twin {
    scenario: Arc<Scenario>,
    schemes: [&'static Scheme; 2],
}

impl Twin {
    /// The twin of a comparison over Wi-Fi that includes TCP/HACK and Linux's receiver; `None` for others.
    ///
    /// # Errors
    /// Same as [`Scenario::load`].
    pub fn find(
        options: &Options,
        scenario: &Scenario,
        shown: &[&'static Scheme],
    ) -> Result<Option<Self>, ScenarioError> {
        let baseline = Scheme::with_role(Role::Baseline);
        let is_of_today = matches!(baseline.applied_to(scenario).tcp.ack_policy, AckPolicy::Linux(_))
            && scenario.wifi.is_some();
        let rides = |scheme: &&&'static Scheme| {
            let changed = scheme.applied_to(scenario);
            changed.hack.variant.is_some() && changed.traffic.transport == Transport::Tcp
        };
        let Some(hack) = shown.iter().find(rides).filter(|_| is_of_today) else { return Ok(None) };
        let mut assignments = options.assignments.clone();
        assignments.extend(OF_2014.map(str::to_owned));
        let twin = load(&Options { assignments, ..options.clone() })?;
        let twin = Scenario { name: name_in_2014(&scenario.name), ..twin };
        Ok(Some(Self { scenario: Arc::new(twin), schemes: [baseline, *hack] }))
    }

    /// Adds its runs to `plan`.
    ///
    /// # Errors
    /// If the scenario cannot have this number of clients.
    pub fn push(&self, plan: &mut Plan, clients: u32, seeds: u32) -> Result<(), InputError> {
        for scheme in self.schemes {
            plan.push(&self.scenario, scheme, clients, SweepPoint::default(), seeds)?;
        }
        Ok(())
    }

    /// Number of schemes it runs.
    pub fn schemes(&self) -> usize {
        self.schemes.len()
    }
}
