//! Failures of runs, captures and live hops.

use std::io;

use console::Term;
use tacit_captures::CaptureError;
use tacit_captures::rohc::RohcError;
use tacit_live::LiveError;
use tacit_runs::{RunError, RunsError};
use tacit_scenario::ScenarioError;

use super::{BAD_INPUT, FAILED, Failure, INTERRUPTED};

/// `tacit shell --require-valid`: the machine did not keep up, and the command's result says nothing.
pub const NOT_VALID: u8 = 122;
/// `tacit shell` has no status of its command: as `env` and `timeout` say it.
const NO_HOP: u8 = 125;
/// A command was found and cannot be run.
const NOT_EXECUTABLE: u8 = 126;
/// A command was not found.
const NOT_FOUND: u8 = 127;

/// Why a command about runs, captures or live hops ends without its result.
#[derive(Debug, thiserror::Error)]
pub enum SimulatorFailure {
    /// A scenario cannot be used.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// There are no results.
    #[error(transparent)]
    Runs(#[from] RunsError),
    /// A capture cannot be read.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// A capture cannot be compressed, or its compressed packets do not make one again.
    #[error(transparent)]
    Rohc(#[from] RohcError),
    /// The live hop says so.
    #[error(transparent)]
    Live(#[from] LiveError),
}

impl SimulatorFailure {
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Runs(RunsError::Run { source: RunError::Invariant { .. }, .. })
            | Self::Rohc(RohcError::RoundTrip { .. }) => FAILED,
            Self::Runs(RunsError::Interrupted { .. }) => INTERRUPTED,
            Self::Live(LiveError::Command { source, .. }) => match source.kind() {
                io::ErrorKind::NotFound => NOT_FOUND,
                _ => NOT_EXECUTABLE,
            },
            Self::Live(LiveError::Argument { .. } | LiveError::Unsupported { .. }) => BAD_INPUT,
            Self::Live(_) => NO_HOP,
            Self::Scenario(_) | Self::Runs(_) | Self::Capture(_) | Self::Rohc(_) => BAD_INPUT,
        }
    }
}

failures_of!(Simulator: ScenarioError, RunsError, CaptureError, RohcError, LiveError);

/// Characters per line of the terminal that standard output is; `None` where it is none.
pub fn terminal_width() -> Option<usize> {
    Term::stdout().size_checked().map(|(_, columns)| columns.into())
}
