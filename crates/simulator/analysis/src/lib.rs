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
