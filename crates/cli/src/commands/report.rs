//! `tacit report`.

use std::process::ExitCode;

use tacit_lab::report::redraw;

use super::compare::show;
use crate::args::ReportArgs;
use crate::output::Failure;

pub fn run(args: &ReportArgs) -> Result<ExitCode, Failure> {
    let (comparison, path) = redraw(&args.directory)?;
    show(&comparison, args.json, Some(&path))?;
    Ok(ExitCode::SUCCESS)
}
