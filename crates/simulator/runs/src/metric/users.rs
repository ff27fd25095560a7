//! Metrics of some flows: those of a direction, the first, those of the clients that use a scheme.

use std::collections::BTreeMap;

use tacit_packet::Stats;
use tacit_packet::units::Duration;
use tacit_scenario::Scenario;
use tacit_sim::record::FlowOutcome;

use super::view::{View, completion_times, nearest_rank_s};

impl<'a> View<'a> {
    /// Goodput of the flows to clients, or from them; `None` without such flows.
    pub fn direction_bps(&self, is_download: bool) -> Option<f64> {
        let is_of_it = |flow: &&FlowOutcome| {
            let end = if is_download { flow.source } else { flow.sink };
            end == Scenario::SERVER
        };
        let flows = self.outcome.flows.iter().filter(is_of_it);
        flows.map(|flow| flow.goodput_bps(self.outcome.measured)).reduce(|sum, more| sum + more)
    }

    pub fn first_flow(&self) -> Option<Flows<'a>> {
        let first = self.outcome.flows.first()?.flow;
        Some(self.select(|flow| flow.flow == first))
    }

    pub fn last_flow(&self) -> Option<Flows<'a>> {
        let last = self.outcome.flows.last()?.flow;
        Some(self.select(|flow| flow.flow == last))
    }

    /// Flows of the clients that use the scheme of the run, if only some clients do.
    pub fn adopter(&self) -> Option<Flows<'a>> {
        let adopters = self.outcome.adopters?;
        Some(self.select(|flow| flow.user < adopters))
    }

    /// Flows of the other clients.
    pub fn other(&self) -> Option<Flows<'a>> {
        let adopters = self.outcome.adopters?;
        Some(self.select(|flow| flow.user >= adopters))
    }

    pub fn select(&self, is_selected: impl Fn(&FlowOutcome) -> bool) -> Flows<'a> {
        let read = self.users_flows.iter().copied().filter(|flow| is_selected(flow)).collect();
        let all = self.outcome.flows.iter().filter(|flow| is_selected(flow)).collect();
        Flows { all, read, measured: self.outcome.measured }
    }
}

/// Some flows of a run.
pub(super) struct Flows<'a> {
    all: Vec<&'a FlowOutcome>,
    /// Those that users read.
    read: Vec<&'a FlowOutcome>,
    measured: Duration,
}

impl Flows<'_> {
    /// Mean goodput of a client.
    pub fn goodput_bps(&self) -> f64 {
        let clients = self.clients_bps();
        clients.iter().sum::<f64>() / clients.len() as f64
    }

    /// Goodput of the client that has least.
    pub fn least_goodput_bps(&self) -> Option<f64> {
        self.clients_bps().into_iter().reduce(f64::min)
    }

    /// Goodput of the first of them while it was under way.
    pub fn transfer_goodput_bps(&self) -> Option<f64> {
        Some(self.all.first()?.transfer_goodput_bps())
    }

    pub fn bytes(&self) -> f64 {
        self.all.iter().map(|flow| flow.delivered.0).sum::<u64>() as f64
    }

    /// Data packets that their sources sent again, over those they sent; none where they sent nothing.
    pub fn retransmitted_share(&self) -> Option<f64> {
        let sum = |count: fn(&Stats) -> u64| {
            let senders = self.all.iter().filter_map(|flow| flow.sender.as_ref());
            senders.map(count).reduce(|sum, more| sum + more)
        };
        let sent = sum(|end| end.data_packets_sent).filter(|sent| *sent > 0)?;
        Some(sum(|end| end.packets_retransmitted)? as f64 / sent as f64)
    }

    /// Median completion time, by the nearest-rank method.
    pub fn completion_p50_s(&self) -> Option<f64> {
        nearest_rank_s(&completion_times(self.read.iter().copied()), 50)
    }

    fn clients_bps(&self) -> Vec<f64> {
        let mut clients: BTreeMap<u32, f64> = BTreeMap::new();
        for flow in &self.all {
            *clients.entry(flow.user).or_default() += flow.goodput_bps(self.measured);
        }
        clients.into_values().collect()
    }
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
