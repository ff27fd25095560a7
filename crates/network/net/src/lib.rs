//! HTTP over a Wi-Fi hop that fills holes with placeholders (FWP, section V-D of its paper): a reader that completes
//! bodies with range requests. [`fetch`] downloads one file, [`proxy`] serves other programs.
//!
//! Design: `docs/design/fwp-http.md`. Without FWP's shim all requests are plain HTTP.

pub mod answers;
pub mod body;
pub mod byteranges;
pub mod client;
pub mod connection;
pub mod content_range;
mod digest;
mod entity;
pub mod error;
pub mod fetch;
pub mod flow;
pub mod head;
mod hedge;
mod part;
pub mod partial;
mod pool;
mod prover;
pub mod proxy;
pub mod reach;
pub mod relay;
mod repair;
pub mod report;
mod session;
mod store;
pub mod target;
mod tls;
mod unproven;
mod watched;

pub use error::NetError;

/// Runs `work` and the tasks it spawns on this thread.
///
/// # Errors
/// The errors of `work`, and those of the system if the runtime cannot start.
pub fn block_on<T>(work: impl Future<Output = Result<T, NetError>>) -> Result<T, NetError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| NetError::Argument(format!("no event loop: {error}")))?.block_on(work)
}
