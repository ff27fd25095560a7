//! Applications over a connection of streams: [`copy`] moves trees of files, [`proxy`] carries TCP connections, [`trust`] keeps
//! keys, [`pair`] brings them from one machine to another, [`node`] connects, [`running`] counts activities. All but [`node`] and
//! [`link`] take any stream of bytes, so that tests need no transport.

pub mod copy;
pub mod link;
pub mod metrics;
pub mod node;
pub mod pair;
pub mod proxy;
pub mod running;
pub mod trust;

/// Where a server listens unless it is told: this machine only, so that nothing is open to others by accident. The port is
/// unassigned.
pub const SERVE_ADDRESS: &str = "127.0.0.1:4433";
/// The port of [`SERVE_ADDRESS`].
pub const SERVE_PORT: u16 = 4433;
/// The port of a pairing unless it is told: unassigned, too.
pub const PAIR_PORT: u16 = 4435;
/// The port of a proxy's server end unless it is told: unassigned, too.
pub const PROXY_PORT: u16 = 4434;
