//! `tacit report`.

use std::process::ExitCode;

use tacit_analysis::report::{redraw, write_all};

use super::compare::show;
use crate::args::ReportArgs;
use crate::output::Failure;

pub fn run(args: &ReportArgs) -> Result<ExitCode, Failure> {
    let mut reports = Vec::new();
    let mut drawn = None;
    for directory in &args.directories {
        let (of_directory, path) = redraw(directory)?;
        reports.extend(of_directory);
        drawn = Some(path);
    }
    if args.directories.len() > 1 {
        drawn = Some(write_all(&reports, &args.report)?);
    }
    show(&reports, args.json, args.width.limit(), drawn.as_deref())?;
    Ok(ExitCode::SUCCESS)
}
