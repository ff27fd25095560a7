//! What people look at: advice, comparisons and why they come out so, figures with the claims of papers, charts and reports.
//!
//! Everything here reads results of runs; a report is redrawn from its files without a run.

pub mod advise;
pub mod chart;
pub mod compare;
pub mod explore;
pub mod figure;
pub mod report;
pub mod why;
