//! Evaluation of runs: comparisons and explanations of their results, advice, charts, reports, and pages that show
//! frames.
//!
//! Everything here is computed from results of runs. A report can be drawn again from its files without simulation.

pub mod advise;
pub mod chart;
pub mod compare;
pub mod explore;
pub mod plot;
pub mod report;
pub mod why;

/// The different ones of `items`, in order of first appearance.
pub fn first_seen<T: PartialEq>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for item in items {
        if !seen.contains(&item) {
            seen.push(item);
        }
    }
    seen
}
