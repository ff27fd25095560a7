//! HTTP over a Wi-Fi hop that fills holes with placeholders (FWP, §V-D of its paper): bodies are made whole by range
//! requests before anybody reads them. [`fetch`] writes one file, [`proxy`] serves programs that know nothing of it.
//!
//! Rules and reasons stand in `docs/design/fwp-http.md`. Where no shim listens everything is plain HTTP.

pub mod body;
pub mod client;
pub mod connection;
pub mod error;
pub mod flow;
pub mod head;
pub mod partial;
pub mod reach;
mod session;
mod store;
pub mod target;
mod watched;

pub use error::NetError;
