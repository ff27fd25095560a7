//! One file per command.

mod completions;
#[cfg(feature = "network")]
mod network;
#[cfg(feature = "simulator")]
mod simulator;

use std::process::ExitCode;

use crate::args::Command;
use crate::output::Failure;

/// Runs the user's command.
pub fn dispatch(command: Option<Command>) -> Result<ExitCode, Failure> {
    match command {
        None => dispatch_default(),
        #[cfg(feature = "simulator")]
        Some(Command::Simulator(command)) => simulator::dispatch(command),
        #[cfg(feature = "network")]
        Some(Command::Network(command)) => network::dispatch(command),
        Some(Command::Completions(args)) => completions::completions(&args),
        Some(Command::Man(args)) => completions::man(&args),
    }
}

/// Runs the default command with its default arguments.
#[cfg(feature = "simulator")]
fn dispatch_default() -> Result<ExitCode, Failure> {
    use clap::Parser as _;
    dispatch(crate::args::Cli::parse_from(["tacit", "compare"]).command)
}

#[cfg(not(feature = "simulator"))]
fn dispatch_default() -> Result<ExitCode, Failure> {
    Err(tacit_input::InputError::new("tacit", "a command is missing; see tacit --help").into())
}
