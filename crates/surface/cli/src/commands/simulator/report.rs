//! `tacit report`.

use std::process::ExitCode;

use tacit_analysis::plot::plot_directory;
use tacit_analysis::report::{redraw, write_all};
use tacit_runs::batches::Directory;
use tacit_scenario::InputError;

use super::compare::show;
use super::sweep::{plot_files, save};
use crate::args::ReportArgs;
use crate::output::{Failure, print_json, print_page};

pub fn run(args: &ReportArgs) -> Result<ExitCode, Failure> {
    if let Some(words) = &args.plot.plot {
        return plot(words, args);
    }
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

/// Only the plot of a stored sweep.
fn plot(words: &str, args: &ReportArgs) -> Result<ExitCode, Failure> {
    let files = plot_files(&args.plot)?;
    let [directory] = &args.directories[..] else {
        let what = format!("{} directories", args.directories.len());
        return Err(InputError::new("--plot", what).allowed("the directory of one tacit sweep").into());
    };
    let sweep = Directory::existing(directory)?.ok_or_else(|| {
        let what = format!("{} holds no sweep", directory.display());
        InputError::new("--plot", what).allowed("the directory of a tacit sweep")
    })?;
    let plot = plot_directory(words, &sweep)?;
    if args.json {
        print_json(&plot)?;
    } else {
        print_page(&plot.to_text())?;
    }
    save(&plot, &files)?;
    Ok(ExitCode::SUCCESS)
}
