//! Copies and proxies over streams in memory.

mod copy;
mod proxy;
