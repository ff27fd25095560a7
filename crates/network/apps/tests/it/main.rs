//! Copies and proxies over in-memory streams.
#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

mod copy;
mod ends;
mod mirror;
mod proxy;
mod repeat;
