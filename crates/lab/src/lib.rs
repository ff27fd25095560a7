//! The laboratory: scenarios, sweeps, results, comparisons, figures.
//!
//! TOML in ([`scenario`]), runs ([`plan`], [`sweep`]), files out ([`store`]), and what people look at
//! ([`compare`], [`report`], [`figure`]). Running, storing and drawing are separate steps: a report is
//! redrawn from its files without a run.

pub mod application;
pub mod audit;
pub mod bench;
pub mod bound;
pub mod cache;
pub mod capture;
pub mod chart;
pub mod compare;
pub mod error;
pub mod figure;
pub mod hop;
pub mod hop_record;
pub mod input;
pub mod metric;
pub mod plan;
pub mod record;
pub mod replay;
pub mod report;
pub mod rohc;
pub mod scenario;
pub mod scheme;
pub mod single;
pub mod station;
mod stats;
pub mod store;
pub mod sweep;
pub mod table;
pub mod theory;

pub use error::{InputError, LabError};
pub use scenario::Scenario;
pub use stats::Mean;
pub use tacit_sim::RunError;

/// Version of the package and commit it was built from.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("TACIT_COMMIT"), ")");
