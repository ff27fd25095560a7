//! One file per command.

mod bench;
mod compare;
mod report;
mod run;
mod scenarios;

use std::process::ExitCode;

use clap::Parser as _;

use crate::args::{Cli, Command};
use crate::output::Failure;

/// Does what the user asked for.
pub fn dispatch(command: Option<Command>) -> Result<ExitCode, Failure> {
    match command {
        // The main job, with the defaults its arguments declare.
        None => dispatch(Cli::parse_from(["tacit", "compare"]).command),
        Some(Command::Compare(args)) => compare::run(args),
        Some(Command::Run(args)) => run::run(args),
        Some(Command::Report(args)) => report::run(&args),
        Some(Command::Scenarios(args)) => scenarios::run(&args),
        Some(Command::Bench(args)) => bench::run(&args),
    }
}
