//! A scenario of which two hosts are real.

use tacit_proto::units::HostId;
use tacit_sim::Setup;

use crate::error::LabError;
use crate::scenario::Scenario;
use crate::single::{Options, prepare};

/// Hosts, links and background flows of a live hop.
#[derive(Clone, Debug)]
pub struct Bound {
    /// The run: the first client's flows are not in it, those of the others are.
    pub setup: Setup,
    /// The first client, which the command takes the place of.
    pub near: HostId,
    /// The server, which the other side takes the place of.
    pub far: HostId,
    /// Name of the scenario.
    pub scenario: String,
    /// Name of the scheme; `as written` for none.
    pub scheme: String,
}

/// Reads a scenario for a live hop with `background` simulated clients beside the real one.
///
/// # Errors
/// On input that is not allowed.
pub fn bind(options: &Options, background: u32) -> Result<Bound, LabError> {
    let clients = background.saturating_add(1);
    let prepared = prepare(&Options { clients: Some(clients), ..options.clone() })?;
    let (scenario, mut setup) = prepared.into_parts();
    let near = Scenario::first_client(&setup);
    setup.retain_flows(|flow| flow.source != near && flow.sink != near);
    let scheme = options.scheme.clone().unwrap_or_else(|| "as written".to_owned());
    Ok(Bound { setup, near, far: Scenario::SERVER, scenario, scheme })
}

#[cfg(test)]
mod tests {
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
    fn a_wire_has_ends_too() {
        let bound = bind(&options("wired-10"), 0).unwrap();
        assert_eq!(bound.setup.hosts[bound.near.0 as usize], "client");
        assert!(bound.setup.flows.is_empty());
    }
}
