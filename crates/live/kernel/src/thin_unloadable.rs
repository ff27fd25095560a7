//! Replaces the thinner in the kernel in builds without a loader.

use std::os::fd::AsFd;

use tacit_hop::LiveError;
use tacit_hop::thin::{Counters, Device};
use tacit_proto::units::BitRate;

/// The thinner in the kernel, which this build cannot load.
#[derive(Debug)]
pub enum Thinner {}

impl Thinner {
    /// Always fails.
    ///
    /// # Errors
    /// Always.
    pub fn load(_device: &Device, _rate: Option<BitRate>) -> Result<Self, LiveError> {
        Err(crate::loaded::not_built_in("its eBPF"))
    }

    /// Thins until `stop` becomes readable.
    ///
    /// # Errors
    /// Never: this value cannot exist.
    pub fn run(self, _stop: &impl AsFd, _started: impl FnOnce()) -> Result<Counters, LiveError> {
        match self {}
    }
}

/// Always fails.
///
/// # Errors
/// Always.
pub fn check() -> Result<String, LiveError> {
    Err(crate::loaded::not_built_in("its eBPF"))
}
