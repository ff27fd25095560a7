//! `tacit compare`.

use std::path::Path;
use std::process::ExitCode;

use tacit_papers::compare::{Options, compare};
use tacit_papers::report::{self, Report};
use tacit_scenario::Scenario;

use crate::args::CompareArgs;
use crate::output::{Failure, note, print, print_json};
use crate::progress::{cache, watched};

pub fn run(args: &CompareArgs) -> Result<ExitCode, Failure> {
    let several = args.scenarios.len() > 1;
    let mut reports = Vec::new();
    let mut drawn = None;
    let cache = cache(args.no_cache);
    let directories = directories(args)?;
    for (scenario, directory) in args.scenarios.iter().zip(directories) {
        let options = Options {
            scenario: scenario.clone(),
            assignments: args.assignments.clone(),
            clients: args.clients.clone(),
            schemes: args.schemes.clone(),
            seeds: args.seeds,
            quick: args.quick,
            directory: (!args.no_report).then_some(directory),
        };
        let comparison = watched(cache.as_ref(), |control| compare(&options, control))?;
        if let Some(directory) = &options.directory {
            drawn = Some(report::write(&comparison, directory)?);
        }
        reports.push(Report::Comparison(Box::new(comparison)));
    }
    if several && !args.no_report {
        drawn = Some(report::write_all(&reports, &args.report)?);
    }
    show(&reports, args.json, drawn.as_deref())?;
    Ok(ExitCode::SUCCESS)
}

/// Where the results of each scenario go: of several each into a directory of its own. Every scenario is read
/// before the first is run.
fn directories(args: &CompareArgs) -> Result<Vec<std::path::PathBuf>, Failure> {
    let mut directories = Vec::new();
    for (scenario, number) in args.scenarios.iter().zip(1..) {
        let name = Scenario::load(scenario, &args.assignments)?.name.replace(['/', '\\'], "-");
        let mut directory = args.report.clone();
        if args.scenarios.len() > 1 {
            directory.push(&name);
        }
        if directories.contains(&directory) {
            directory.set_file_name(format!("{name}-{number}"));
        }
        directories.push(directory);
    }
    Ok(directories)
}

/// Prints reports and says where they are drawn.
pub fn show(reports: &[Report], json: bool, drawn: Option<&Path>) -> Result<(), Failure> {
    match reports {
        [one] if json => print_json(one)?,
        several if json => print_json(&several)?,
        several => print(&several.iter().map(Report::to_text).collect::<Vec<_>>().join("\n"))?,
    }
    if let Some(path) = drawn {
        note(&format!("report: {}", path.display()));
    }
    Ok(())
}
