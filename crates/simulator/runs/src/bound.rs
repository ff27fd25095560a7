//! A scenario in which two hosts are real.

use tacit_packet::units::{Duration, HostId};
use tacit_sim::Setup;

use crate::error::RunsError;
use crate::single::{Options, load, prepare_scenario};
use tacit_scenario::{InputError, MAX_CLIENTS, Scenario};

/// Hosts, links and background flows of a live hop.
#[derive(Clone, Debug)]
pub struct Bound {
    /// The run. It includes the flows of all clients except the first.
    pub setup: Setup,
    /// The first client, which the local command replaces.
    pub near: HostId,
    /// The server, which the other side replaces.
    pub far: HostId,
    /// Name of the scenario.
    pub scenario: String,
    /// Name of the scheme; `as written` if there is none.
    pub scheme: String,
}

/// Loads a scenario for a live hop, with `background` simulated clients in addition to the real one. They all start at
/// the same time as the real one, because applications in a live hop have no predefined duration relative to which a
/// client could start late.
///
/// # Errors
/// If any input is not allowed.
pub fn bind(options: &Options, background: u32) -> Result<Bound, RunsError> {
    InputError::check_range("--background", background, 0..=MAX_CLIENTS - 1)?;
    let mut scenario = load(options)?;
    scenario.stagger = Duration::ZERO;
    let prepared =
        prepare_scenario(scenario, &Options { clients: Some(background + 1), ..options.clone() }, |_| {})?;
    let (scenario, mut setup) = prepared.into_parts();
    let near = Scenario::first_client(&setup);
    setup.retain_flows(|flow| flow.source != near && flow.sink != near);
    let scheme = options.scheme.clone().unwrap_or_else(|| "as written".to_owned());
    Ok(Bound { setup, near, far: Scenario::SERVER, scenario, scheme })
}

#[cfg(test)]
mod tests {
    use tacit_packet::units::Instant;

    use super::*;

    fn options(scenario: &str) -> Options {
        Options { scenario: scenario.to_owned(), seed: 1, ..Options::default() }
    }

    #[test]
    fn the_first_clients_flows_make_room() {
        let bound = bind(&options("wlan-11n-150"), 2).unwrap();
        assert_eq!(bound.setup.hosts[bound.near.0 as usize], "client-1");
        assert_eq!(bound.setup.hosts[bound.far.0 as usize], "server");
        let sinks: Vec<_> = bound.setup.flows.iter().map(|flow| flow.sink.0).collect();
        assert_eq!(sinks, [bound.near.0 + 1, bound.near.0 + 2]);
        assert!(bind(&options("wlan-11n-150"), 0).unwrap().setup.flows.is_empty());
    }

    #[test]
    fn background_clients_start_with_the_hop_however_many() {
        let bound = bind(&options("wlan-11n-150"), 200).unwrap();
        assert_eq!(bound.setup.flows.len(), 200);
        assert!(bound.setup.flows.iter().all(|flow| flow.start == Instant::ZERO));
        let error = bind(&options("wlan-11n-150"), u32::MAX).unwrap_err().to_string();
        assert_eq!(error, "--background: 4294967295 is out of range; allowed: 0 to 999");
    }

    #[test]
    fn a_wire_has_ends_too() {
        let bound = bind(&options("wired-10"), 0).unwrap();
        assert_eq!(bound.setup.hosts[bound.near.0 as usize], "client");
        assert!(bound.setup.flows.is_empty());
    }
}
