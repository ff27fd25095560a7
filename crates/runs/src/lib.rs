//! Runs: a [`plan`] of them, made in a [`sweep`] or one by one ([`single`]), and what is kept of each
//! ([`record`], [`store`]).
//!
//! Nothing here draws or judges: see `tacit-papers`.

pub mod aggregate;
pub mod air;
pub mod application;
pub mod bench;
pub mod bound;
pub mod cache;
mod error;
pub mod hop_record;
pub mod identity;
pub mod metric;
pub mod plan;
pub mod record;
pub mod replay;
pub mod single;
pub mod station;
pub mod store;
pub mod sweep;
pub mod track;

pub use error::RunsError;
pub use tacit_sim::RunError;

/// Version of the package and commit it was built from.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("TACIT_COMMIT"), ")");
