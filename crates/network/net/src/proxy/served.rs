//! An entry of the access log.

use std::sync::Arc;

use serde::Serialize;

/// A request that the proxy served.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Served {
    /// Its method.
    pub method: String,
    /// Its URL.
    pub url: String,
    /// The answer's status.
    pub status: u16,
    /// Bytes of the body that the client accepted; for a tunnel, bytes from the server.
    pub bytes: u64,
    /// True if the body was complete, or both ends closed the tunnel.
    pub complete: bool,
    /// True if holes in the body were repaired.
    pub repaired: bool,
    /// Holes in the body.
    pub holes: u64,
    /// Repair requests for them.
    pub requests: u64,
}

/// Called for every answer.
pub type OnServed = Arc<dyn Fn(&Served) + Send + Sync>;
