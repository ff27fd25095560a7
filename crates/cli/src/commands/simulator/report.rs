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
        let (report, path) = redraw(directory)?;
        reports.push(report);
        drawn = Some(path);
    }
    if reports.len() > 1 {
        drawn = Some(write_all(&reports, &args.report)?);
    }
    show(&reports, args.json, drawn.as_deref())?;
    Ok(ExitCode::SUCCESS)
}
