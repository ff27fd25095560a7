//! Replaces the loader in builds without it.

use std::fs::File;
use std::io;

use tacit_hop::LiveError;

use crate::Settings;
use crate::flows::Flow;

fn not_built_in() -> LiveError {
    crate::refused(
        "tacit rre",
        io::Error::from(io::ErrorKind::Unsupported),
        "this tacit was built without it: install libelf-dev, zlib1g-dev and pkg-config, and build with --features rre",
    )
}

/// The congestion control, which this build cannot load.
#[derive(Debug)]
pub enum Control {}

impl Control {
    /// Always fails.
    ///
    /// # Errors
    /// Always.
    pub fn load(_settings: Settings) -> Result<Self, LiveError> {
        Err(not_built_in())
    }

    /// The name of this instance.
    pub fn name(&self) -> &str {
        match *self {}
    }

    /// Makes the sockets of a cgroup use it.
    ///
    /// # Errors
    /// Never: this value cannot exist.
    pub fn use_in(&mut self, _cgroup: &File) -> Result<(), LiveError> {
        match *self {}
    }

    /// Number of sockets that the kernel did not permit to use it.
    pub fn refused_sockets(&self) -> u64 {
        match *self {}
    }
}

/// Always fails.
///
/// # Errors
/// Always.
pub fn check() -> Result<String, LiveError> {
    Err(not_built_in())
}

/// Always fails.
///
/// # Errors
/// Always.
pub fn check_status() -> Result<String, LiveError> {
    Err(not_built_in())
}

/// Always fails.
///
/// # Errors
/// Always.
pub fn read_flows() -> Result<Vec<Flow>, LiveError> {
    Err(not_built_in())
}
