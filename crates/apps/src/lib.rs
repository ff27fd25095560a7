//! What runs over a connection of streams: [`copy`] moves trees of files, [`proxy`] carries TCP connections, [`trust`] keeps keys.
//! All of it takes any stream of octets, so that tests need no transport.

pub mod copy;
pub mod proxy;
pub mod trust;
