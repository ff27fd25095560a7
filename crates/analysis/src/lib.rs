//! Evaluation of runs: comparisons and why they come out so, advice, charts, reports, and pages of frames on the air.
//!
//! Everything here reads results of runs; a report is redrawn from its files without a run.

pub mod advise;
pub mod chart;
pub mod compare;
pub mod explore;
pub mod report;
pub mod why;
