//! Runs: a [`plan`] of them, their simulation in a [`sweep`] or individually ([`single`]), and their records
//! ([`record`], [`store`]).
//!
//! This crate neither draws nor evaluates; see `tacit-analysis`.

pub mod aggregate;
pub mod air;
pub mod application;
pub mod batches;
pub mod bench;
pub mod bound;
pub mod cache;
pub mod caveats;
mod checksum;
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
pub mod threshold;
pub mod track;

pub use error::RunsError;
pub use tacit_sim::RunError;

/// Version of the package, and the commit from which it was built.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("TACIT_COMMIT"), ")");

/// How to cite results of `version`.
pub fn citation(version: &str) -> String {
    format!("{}, tacit, version {version}, {}.", env!("CARGO_PKG_AUTHORS"), env!("CARGO_PKG_REPOSITORY"))
}

#[cfg(test)]
mod tests {
    /// CITATION.cff must agree with the package.
    #[test]
    fn the_citation_file_fits_the_package() {
        let file = include_str!("../../../../CITATION.cff");
        for field in [env!("CARGO_PKG_VERSION"), env!("CARGO_PKG_REPOSITORY"), env!("CARGO_PKG_AUTHORS")] {
            assert!(file.contains(field), "{field}");
            assert!(super::citation(super::VERSION).contains(field), "{field}");
        }
    }
}
