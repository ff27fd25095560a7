//! Stands for the loader in builds without it.

use std::fs::File;
use std::io;

use tacit_live::LiveError;

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
    /// Refuses.
    ///
    /// # Errors
    /// Always.
    pub fn load(_settings: Settings) -> Result<Self, LiveError> {
        Err(not_built_in())
    }

    /// Its name.
    pub fn name(&self) -> &str {
        match *self {}
    }

    /// Makes the sockets of a cgroup use it.
    ///
    /// # Errors
    /// Never: there is no control.
    pub fn use_in(&mut self, _cgroup: &File) -> Result<(), LiveError> {
        match *self {}
    }

    /// Sockets that the kernel did not let use it.
    pub fn refused_sockets(&self) -> u64 {
        match *self {}
    }
}

/// Refuses.
///
/// # Errors
/// Always.
pub fn check() -> Result<String, LiveError> {
    Err(not_built_in())
}

/// Refuses.
///
/// # Errors
/// Always.
pub fn check_status() -> Result<String, LiveError> {
    Err(not_built_in())
}

/// Refuses.
///
/// # Errors
/// Always.
pub fn read_flows() -> Result<Vec<Flow>, LiveError> {
    Err(not_built_in())
}
