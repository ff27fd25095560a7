//! Flow completion times of a comparison, for drawing.

use std::collections::BTreeSet;

use serde::Serialize;

use super::Comparison;
use tacit_runs::RunsError;
use tacit_runs::record::RunSummary;
use tacit_runs::store::Store;

/// Completion times of a scheme's completed flows, over all seeds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CompletionTimes {
    /// Name of the scheme.
    pub scheme: String,
    /// Number of clients.
    pub clients: u32,
    /// Steps of the cumulative distribution, at most [`MAX_STEPS`]: seconds, and the fraction of flows that took at
    /// most this time.
    pub steps: Vec<(f64, f64)>,
}

/// Maximum number of steps in a distribution: every half per cent. Our choice; a picture cannot show more.
pub const MAX_STEPS: usize = 200;

impl Comparison {
    /// Reads the flow completion times of `records` from `store`, which must contain them.
    pub(crate) fn take_completions(
        &mut self,
        store: &Store,
        records: &[RunSummary],
    ) -> Result<(), RunsError> {
        let is_sized = |run: &&RunSummary| run.metric("flow_completion_p50_s").is_some();
        // Those with the receiver of 2014 belong to another scenario.
        let of_ours = |run: &&RunSummary| run.label.scenario == self.scenario;
        let runs: Vec<&RunSummary> = records.iter().filter(is_sized).filter(of_ours).collect();
        if runs.is_empty() {
            return Ok(());
        }
        let ids: BTreeSet<&str> = runs.iter().map(|run| run.id.as_str()).collect();
        let times = store.completion_times(&ids)?;
        for row in &self.rows {
            let of_row = runs
                .iter()
                .filter(|run| (&run.label.scheme, run.label.clients) == (&row.scheme, row.clients));
            let took = of_row.filter_map(|run| times.get(&run.id)).flatten().copied().collect();
            let steps = steps(took);
            if !steps.is_empty() {
                let (scheme, clients) = (row.scheme.clone(), row.clients);
                self.completions.push(CompletionTimes { scheme, clients, steps });
            }
        }
        Ok(())
    }
}

/// Steps of the distribution of `values`. If there are many, only those at equally spaced fractions, by the
/// nearest-rank method.
fn steps(mut values: Vec<f64>) -> Vec<(f64, f64)> {
    values.sort_unstable_by(f64::total_cmp);
    let (count, kept) = (values.len(), values.len().min(MAX_STEPS));
    let ranks = (1..=kept).map(|step| (step * count).div_ceil(kept));
    let shares = ranks.map(|rank| (values[rank - 1], rank as f64 / count as f64));
    // The distribution starts at zero.
    values.first().map(|least| (*least, 0.0)).into_iter().chain(shares).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distribution_has_few_steps_whatever_it_is_of() {
        assert_eq!(steps(Vec::new()), []);
        assert_eq!(steps(vec![3.0, 1.0]), [(1.0, 0.0), (1.0, 0.5), (3.0, 1.0)]);
        let many = steps((1..=10_001).map(f64::from).collect());
        assert_eq!(many.len(), MAX_STEPS + 1);
        assert_eq!(many.last(), Some(&(10_001.0, 1.0)));
        assert!(many.windows(2).all(|two| two[0].0 <= two[1].0 && two[0].1 < two[1].1));
    }
}
