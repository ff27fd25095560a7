//! `tacit compare`.

use std::process::ExitCode;

use tacit_lab::compare::{Options, compare};

use crate::args::CompareArgs;
use crate::output::{Failure, print, print_json};
use crate::progress::watched;

pub fn run(args: CompareArgs) -> Result<ExitCode, Failure> {
    let options = Options {
        scenario: args.scenario,
        assignments: args.assignments,
        clients: args.clients,
        schemes: args.schemes,
        seeds: args.seeds,
        directory: (!args.no_report).then_some(args.report),
    };
    let comparison = watched(|control| compare(&options, control))?;
    if args.json {
        print_json(&comparison)?;
    } else {
        print(&comparison.to_text())?;
    }
    Ok(ExitCode::SUCCESS)
}
