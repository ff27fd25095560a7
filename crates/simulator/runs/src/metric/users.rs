//! What each client has: by direction, the least of all, and in groups where only some clients use a scheme.

use std::collections::BTreeMap;

use tacit_packet::Stats;
use tacit_packet::units::Duration;
use tacit_scenario::Scenario;
use tacit_sim::record::FlowOutcome;

use super::view::View;

/// A group of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Users {
    /// Those that use the scheme of the run, if only some clients do.
    Adopters,
    /// The others.
    Others,
}

impl View<'_> {
    /// Goodput of the flows to clients, or from them; `None` without such flows.
    pub fn direction_bps(&self, is_download: bool) -> Option<f64> {
        let is_of_it = |flow: &&FlowOutcome| {
            let end = if is_download { flow.source } else { flow.sink };
            end == Scenario::SERVER
        };
        let flows = self.outcome.flows.iter().filter(is_of_it);
        flows.map(|flow| flow.goodput_bps(self.outcome.measured)).reduce(|sum, more| sum + more)
    }

    /// Goodput of the client that has least.
    pub fn least_client_bps(&self) -> Option<f64> {
        least(self.clients_bps(|_| true))
    }

    /// Mean goodput of a client of the group.
    pub fn group_bps(&self, group: Users) -> Option<f64> {
        let clients = self.clients_bps(self.members(group)?);
        Some(clients.iter().sum::<f64>() / clients.len() as f64)
    }

    /// Goodput of the client of the group that has least.
    pub fn group_least_bps(&self, group: Users) -> Option<f64> {
        least(self.clients_bps(self.members(group)?))
    }

    /// Data packets that the group's sources sent again, over those they sent; none where they sent nothing.
    pub fn group_retransmitted_share(&self, group: Users) -> Option<f64> {
        let is_member = self.members(group)?;
        let sum = |count: fn(&Stats) -> u64| {
            let flows = self.outcome.flows.iter().filter(|flow| is_member(flow.user));
            flows.filter_map(|flow| flow.sender.as_ref()).map(count).reduce(|sum, more| sum + more)
        };
        let sent = sum(|end| end.data_packets_sent).filter(|sent| *sent > 0)?;
        Some(sum(|end| end.packets_retransmitted)? as f64 / sent as f64)
    }

    /// Median completion time of the group's files, by the nearest-rank method.
    pub fn group_completion_p50_s(&self, group: Users) -> Option<f64> {
        let is_member = self.members(group)?;
        let flows = self.users_flows().into_iter().filter(|flow| is_member(flow.user));
        let mut times: Vec<Duration> = flows.filter_map(FlowOutcome::completion_time).collect();
        times.sort_unstable();
        Some(times.get(times.len().div_ceil(2).checked_sub(1)?)?.as_secs_f64())
    }

    /// Whether a client belongs to the group; `None` if the run has no groups.
    fn members(&self, group: Users) -> Option<impl Fn(u32) -> bool + use<>> {
        let adopters = self.outcome.adopters?;
        Some(move |user: u32| (user < adopters) == (group == Users::Adopters))
    }

    /// Goodput of each client with a flow among those that `is_member` selects.
    fn clients_bps(&self, is_member: impl Fn(u32) -> bool) -> Vec<f64> {
        let mut clients: BTreeMap<u32, f64> = BTreeMap::new();
        for flow in self.outcome.flows.iter().filter(|flow| is_member(flow.user)) {
            *clients.entry(flow.user).or_default() += flow.goodput_bps(self.outcome.measured);
        }
        clients.into_values().collect()
    }
}

fn least(values: Vec<f64>) -> Option<f64> {
    values.into_iter().reduce(f64::min)
}

#[cfg(test)]
mod tests {
    use crate::metric::tests::{is_close, outcome_of, value_of};

    /// Two clients over one wire: the first loads 6 Mb/s and sends 1, the second loads 2.
    #[test]
    fn clients_are_told_apart_by_their_flows_and_directions() {
        let text = |clients: &str| {
            format!(
                "[run]\nduration = \"4 s\"\nmeasure-from = \"1 s\"\n[clients]\n{clients}\n\
                 [wired]\nrate = \"20Mbps\"\ndelay = \"5 ms\"\n[traffic]\ntransport = \"udp\"\n\
                 [[flow]]\nclient = 1\nudp-rate = \"6Mbps\"\n[[flow]]\nclient = 1\nkind = \"upload\"\nudp-rate = \"1Mbps\"\n\
                 [[flow]]\nclient = 2\nudp-rate = \"2Mbps\"\n"
            )
        };
        let together = outcome_of(2, &text(""));
        for (name, mbps) in
            [("download_goodput_bps", 8.0), ("upload_goodput_bps", 1.0), ("least_client_goodput_bps", 2.0)]
        {
            is_close(value_of(name, &together), mbps * 1e6, 0.05e6);
        }
        assert_eq!(value_of("adopter_goodput_bps", &together), None, "no groups");
        let apart = outcome_of(2, &text("adopters = 1"));
        is_close(value_of("adopter_goodput_bps", &apart), 7e6, 0.05e6);
        is_close(value_of("other_goodput_bps", &apart), 2e6, 0.05e6);
        is_close(value_of("other_least_goodput_bps", &apart), 2e6, 0.05e6);
        let nobody = outcome_of(2, &text("adopters = 0"));
        assert_eq!(value_of("adopter_goodput_bps", &nobody), None);
        is_close(value_of("other_goodput_bps", &nobody), 4.5e6, 0.05e6);
    }
}
