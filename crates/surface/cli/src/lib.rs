//! The `tacit` program: parses its arguments, calls a library crate, and prints the result.

mod args;
mod commands;
#[cfg(feature = "simulator")]
mod gate;
mod output;
mod progress;

use std::process::ExitCode;

use clap::Parser;

/// Runs the program with the arguments of this process; its exit code.
#[must_use]
pub fn run() -> ExitCode {
    let cli = match args::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return output::explain_usage(&error),
    };
    commands::dispatch(cli.command).unwrap_or_else(|error| output::report_failure(&error))
}
