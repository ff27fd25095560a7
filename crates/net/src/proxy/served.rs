//! A line of the access log: one request that the proxy served.

use std::sync::Arc;

use serde::Serialize;

/// A request that the proxy served.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Served {
    /// Its method.
    pub method: String,
    /// For which address.
    pub url: String,
    /// The answer's status.
    pub status: u16,
    /// Bytes of its body that the program took; of a tunnel, those from the server.
    pub bytes: u64,
    /// True where the body came to its end, or both ends closed their tunnel.
    pub complete: bool,
    /// True where holes in it were repaired.
    pub repaired: bool,
    /// Holes in it.
    pub holes: u64,
    /// Requests for them.
    pub requests: u64,
}

/// Called for every answer.
pub type OnServed = Arc<dyn Fn(&Served) + Send + Sync>;
