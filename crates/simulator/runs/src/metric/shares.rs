//! Goodput of flows and hosts relative to others.

use tacit_packet::units::Instant;
use tacit_sim::record::FlowOutcome;

use super::view::{View, nearest_rank_s};

impl<'a> View<'a> {
    /// Number of flows without goodput and without a program, either because they `were_over` before the window or for
    /// another reason.
    pub fn flows_without_goodput(&self, were_over: bool) -> f64 {
        let mut of_programs: Vec<_> =
            self.outcome.applications.iter().flat_map(|program| &program.flows).collect();
        of_programs.sort_unstable();
        let is_silent = |flow: &&FlowOutcome| {
            flow.delivered.0 == 0
                && flow.completed_at.is_some() == were_over
                && of_programs.binary_search(&&flow.flow).is_err()
        };
        self.outcome.flows.iter().filter(is_silent).count() as f64
    }

    pub fn first_flow_share(&self) -> Option<f64> {
        let flows = &self.users_flows;
        let sum: u64 = flows.iter().map(|flow| flow.delivered.0).sum();
        Some(flows.first()?.delivered.0 as f64 * flows.len() as f64 / sum as f64)
    }

    /// Goodput of the host that receives the first flow, and the mean over the other receiving hosts; `None` without
    /// others.
    pub fn first_host_and_others(&self) -> Option<(f64, f64)> {
        let first = self.outcome.flows.first()?.sink;
        let mut others: Vec<_> = self.outcome.flows.iter().map(|flow| flow.sink).collect();
        others.sort_unstable();
        others.dedup();
        let others = others.len().checked_sub(1).filter(|others| *others > 0)? as f64;
        let flows = self.outcome.flows.iter().filter(|flow| flow.sink == first);
        let first_goodput: f64 = flows.map(|flow| flow.goodput_bps(self.outcome.measured)).sum();
        Some((first_goodput, (self.outcome.goodput_bps() - first_goodput) / others))
    }

    /// For each interval between samples, the percentage of all delivered bytes that went to the host of the first
    /// flow, in ascending order. Includes repair connections and placeholder bytes, because these crossed the path.
    pub fn first_host_shares(&self) -> Option<Vec<f64>> {
        let (flows, series) = (&self.outcome.flows, &self.outcome.series);
        let first = flows.first()?.sink;
        let end = series.last()?.at;
        let measured = series.iter().filter(|point| end.saturating_since(point.at) <= self.outcome.measured);
        // For each sample time, the bytes of the first host and of all hosts.
        let mut totals: Vec<(Instant, [u64; 2])> = Vec::new();
        for point in measured {
            if totals.last().is_none_or(|(at, _)| *at != point.at) {
                totals.push((point.at, [0; 2]));
            }
            let Some((_, [first_bytes, all])) = totals.last_mut() else { continue };
            *all += point.delivered_total.0;
            if flows.iter().any(|flow| flow.flow == point.flow && flow.sink == first) {
                *first_bytes += point.delivered_total.0;
            }
        }
        let share = |two: &[(Instant, [u64; 2])]| {
            let [(_, before), (_, after)] = two else { return None };
            let [first_bytes, all] = [0, 1].map(|which| after[which] - before[which]);
            (all > 0).then(|| first_bytes as f64 * 100.0 / all as f64)
        };
        let mut shares: Vec<f64> = totals.windows(2).filter_map(share).collect();
        shares.sort_unstable_by(f64::total_cmp);
        (!shares.is_empty()).then_some(shares)
    }

    /// This percentile of the shares.
    pub fn first_host_share(&self, percent: usize) -> Option<f64> {
        let shares = self.first_host_shares()?;
        shares.get((shares.len() - 1) * percent / 100).copied()
    }

    /// Jain's index of the flows' goodput: 1 if all are equal, 1/n if one flow has everything.
    pub fn fairness(&self) -> Option<f64> {
        jain(self.users_flows.iter().map(|flow| flow.delivered.0 as f64))
    }

    /// Jain's index of the goodput of flows while they were active.
    pub fn transfer_fairness(&self) -> Option<f64> {
        jain(self.users_flows.iter().map(|flow| flow.transfer_goodput_bps()))
    }

    /// The completion time that this percentage (1 to 100) of the flows did not exceed, by the nearest-rank method.
    pub fn completion_s(&self, percent: usize) -> Option<f64> {
        nearest_rank_s(&self.completion_times, percent)
    }

    /// Whether any flow has a fixed size.
    pub fn has_sized_flows(&self) -> bool {
        self.users_flows.iter().any(|flow| flow.is_sized)
    }
}

/// Jain's index of `shares`: from one over their number, where one has all, to 1. Not finite without any.
pub fn jain(shares: impl Iterator<Item = f64> + Clone) -> Option<f64> {
    let (count, sum) = shares.clone().fold((0.0, 0.0), |(count, sum), share| (count + 1.0, sum + share));
    let squares: f64 = shares.map(|share| share * share).sum();
    Some(sum * sum / (count * squares))
}

#[cfg(test)]
mod tests {
    use crate::metric::tests::{is_close, outcome, value_of};

    /// Three downloads of 1 MB over 8 Mb/s. The last one starts later; the first two share the wire and take twice as
    /// long.
    #[test]
    fn completion_times_are_from_each_flows_own_start() {
        let outcome = outcome(
            "[run]\nduration = \"12 s\"\nmeasure-from = \"1 s\"\n\
             [wired]\nrate = \"8Mbps\"\ndelay = \"1 ms\"\n\
             [traffic]\nsize = \"1 MB\"\n\
             [[flow]]\n[[flow]]\n[[flow]]\nstart = \"6 s\"\n",
        );
        is_close(value_of("flows_completed", &outcome), 3.0, 0.0);
        is_close(value_of("flow_completion_p50_s", &outcome), 2.1, 0.3);
        is_close(value_of("flow_completion_p99_s", &outcome), 2.1, 0.3);
        let longest = value_of("flow_completion_p99_s", &outcome).unwrap();
        let mean = value_of("flow_completion_mean_s", &outcome).unwrap();
        assert!(mean < longest, "the late one has the wire for itself: {mean} of {longest}");
        // Together they received 3 MB in the approximately three seconds in which at least one of them was active.
        is_close(value_of("transfer_goodput_bps", &outcome), 7.5e6, 0.5e6);
        assert!(value_of("transfer_fairness", &outcome).unwrap() < 0.95);
    }

    #[test]
    fn the_share_of_the_first_flow_is_over_the_mean() {
        let flow = |rate: &str| format!("[[flow]]\ntransport = \"udp\"\nudp-rate = \"{rate}\"\n");
        let flows = |rates: &[&str]| {
            let flows: String = rates.iter().map(|rate| flow(rate)).collect();
            outcome(&format!("[run]\nduration = \"4 s\"\n[wired]\nrate = \"100Mbps\"\n{flows}"))
        };
        is_close(value_of("first_flow_share", &flows(&["6Mbps", "2Mbps"])), 1.5, 0.01);
        is_close(value_of("first_flow_share", &flows(&["2Mbps", "6Mbps", "4Mbps"])), 0.5, 0.01);
        is_close(value_of("first_flow_share", &flows(&["6Mbps"])), 1.0, 0.0);
    }

    #[test]
    fn hosts_are_compared_whatever_flows_they_read() {
        let clients = "[[flow]]\nclient = 1\ntransport = \"udp\"\nudp-rate = \"6Mbps\"\n\
                       [[flow]]\nclient = 2\ntransport = \"udp\"\nudp-rate = \"2Mbps\"\nstop = \"2 s\"\n\
                       [[flow]]\nclient = 2\ntransport = \"udp\"\nudp-rate = \"2Mbps\"\n";
        let wifi = "[wifi]\nstandard = \"802.11n\"\nrate = \"150Mbps\"\n";
        let run = "[run]\nduration = \"5 s\"\nmeasure-from = \"1 s\"\nsample-interval = \"1 s\"\n";
        let text = format!("{run}{wifi}{clients}");
        let scenario = tacit_scenario::Scenario::parse("metric.toml", &text, &[]).unwrap();
        let outcome = tacit_sim::run(&scenario.setup(2, 1).unwrap()).unwrap();
        is_close(value_of("first_host_speedup", &outcome), 2.4, 0.02);
        is_close(value_of("other_hosts_goodput_bps", &outcome), 2.5e6, 3e4);
        is_close(value_of("first_host_share_least", &outcome), 60.0, 0.5);
        is_close(value_of("first_host_share_p10", &outcome), 60.0, 0.5);
        is_close(value_of("first_host_share_p75", &outcome), 75.0, 0.5);
        is_close(value_of("first_host_share_most", &outcome), 75.0, 0.5);
    }

    #[test]
    fn connections_that_repair_are_nobodys_share() {
        let text = "[run]\nduration = \"3 s\"\nmeasure-from = \"1 s\"\n[wifi]\nstandard = \"802.11n\"\nrate = \"150Mbps\"\n\
                    mpdu-error = { down = \"5 %\" }\n[clients]\nstagger = \"0 ms\"\n";
        let scenario = tacit_scenario::Scenario::parse("metric.toml", text, &[]).unwrap();
        let fwp = tacit_scenario::scheme::find("", "fwp").unwrap().applied_to(&scenario);
        let outcome = tacit_sim::run(&fwp.setup(2, 1).unwrap()).unwrap();
        assert!(outcome.flows.len() > 2 * 6, "{}", outcome.flows.len());
        // Of two equal clients, neither has everything. Relative to the mean over all connections, each would have
        // more.
        is_close(value_of("first_flow_share", &outcome), 1.0, 0.9);
        assert!(value_of("fairness", &outcome).unwrap() >= 0.5);
    }
}
