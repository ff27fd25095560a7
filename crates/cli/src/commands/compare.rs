//! `tacit compare`.

use std::path::Path;
use std::process::ExitCode;

use tacit_lab::compare::{Comparison, Options, compare};
use tacit_lab::report;

use crate::args::CompareArgs;
use crate::output::{Failure, note, print, print_json};
use crate::progress::{cache, watched};

pub fn run(args: CompareArgs) -> Result<ExitCode, Failure> {
    let options = Options {
        scenario: args.scenario,
        assignments: args.assignments,
        clients: args.clients,
        schemes: args.schemes,
        seeds: args.seeds,
        quick: args.quick,
        directory: (!args.no_report).then_some(args.report),
    };
    let comparison = watched(cache(args.no_cache).as_ref(), |control| compare(&options, control))?;
    let drawn =
        options.directory.as_deref().map(|directory| report::write(&comparison, directory)).transpose()?;
    show(&comparison, args.json, drawn.as_deref())?;
    Ok(ExitCode::SUCCESS)
}

/// Prints a comparison and says where its report is.
pub fn show(comparison: &Comparison, json: bool, report: Option<&Path>) -> Result<(), Failure> {
    if json {
        print_json(comparison)?;
    } else {
        print(&comparison.to_text())?;
    }
    if let Some(path) = report {
        note(&format!("report: {}", path.display()));
    }
    Ok(())
}
