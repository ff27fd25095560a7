//! `tacit figure`.

use std::io;
use std::path::Path;
use std::process::ExitCode;

use serde::Serialize;
use tacit_figures::{Figure, FigureOutcome, LiveRuns, Options, Tally, all, find};
use tacit_runs::RunsError;
use tacit_runs::store::write_whole;
use tacit_scenario::{InputError, bounded};

use super::transfers;
use crate::args::FigureArgs;
use crate::output::{FAILED, Failure, listing, note, print, print_json, terminal_width};
use crate::progress::{cache, watched};

/// Default directory of figures.
const DEFAULT_DIRECTORY: &str = "tacit-report/figures";

#[derive(Serialize)]
struct Entry<'a> {
    id: &'a str,
    title: &'a str,
    paper: Option<&'a str>,
}

pub fn run(args: FigureArgs) -> Result<ExitCode, Failure> {
    if args.list {
        return list(args.json);
    }
    let figures =
        if args.all { all()? } else { args.ids.iter().map(|id| find(id)).collect::<Result<_, _>>()? };
    let report = args.report.or_else(|| args.from.clone()).unwrap_or_else(|| DEFAULT_DIRECTORY.into());
    let directory = (!args.no_report).then_some(report);
    // Must run before any thread is started.
    let live = match args.from {
        None => transfers::run_live(&figures, args.quick, directory.as_deref())?,
        Some(_) => LiveRuns::default(),
    };
    let options = Options { quick: args.quick, directory, from: args.from, all: args.all, live };
    let outcomes =
        watched(cache(args.no_cache).as_ref(), |control| tacit_figures::run(&figures, &options, control))?;
    match outcomes.as_slice() {
        [one] if args.json && !args.all => print_json(one)?,
        several if args.json => print_json(&several)?,
        several => {
            let text = |figure: &FigureOutcome| figure.to_text_within(terminal_width());
            print(&several.iter().map(text).collect::<Vec<_>>().join("\n"))?;
            if several.len() > 1 {
                print(&format!("\n{}\n", Tally::new(several)))?;
            }
        }
    }
    if let Some(file) = &args.summary {
        let page = tacit_figures::summary(&figures, &outcomes, before(file)?.as_deref());
        let page = page.map_err(RunsError::from)?;
        write_whole(file, page.as_bytes())?;
        note(&format!("summary: {}", file.display()));
    }
    if let Some(directory) = &options.directory {
        note(&format!("figures: {}", directory.join("index.html").display()));
    }
    // A user who requests all figures knows that not every machine can run all of them.
    let skipped = !args.all && outcomes.iter().any(FigureOutcome::is_skipped);
    let failed = skipped || outcomes.iter().any(FigureOutcome::fails);
    Ok(if failed { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
}

/// The current content of the page to be rewritten, if it exists.
fn before(file: &Path) -> Result<Option<String>, Failure> {
    /// Maximum size of the page in bytes.
    const MAX_PAGE: u64 = 4 << 20;
    let bytes = match bounded::read(file, MAX_PAGE) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(RunsError::io(file)(error).into()),
    };
    let page = bytes.and_then(|bytes| String::from_utf8(bytes).ok()).ok_or_else(|| {
        InputError::new("--summary", format!("{} is not a page of figures", file.display()))
            .allowed(format!("a page of up to {MAX_PAGE} bytes to replace, or a new file"))
    });
    Ok(Some(page.map_err(RunsError::from)?))
}

fn list(json: bool) -> Result<ExitCode, Failure> {
    let figures = all()?;
    if json {
        let entries: Vec<Entry<'_>> = figures
            .iter()
            .map(|figure| Entry { id: &figure.id, title: &figure.title, paper: figure.paper.as_deref() })
            .collect();
        print_json(&entries)?;
    } else {
        let text =
            |figure: &Figure| format!("{} ({})", figure.title, figure.paper.as_deref().unwrap_or_default());
        print(&listing(figures.iter().map(|figure| (figure.id.as_str(), text(figure)))))?;
    }
    Ok(ExitCode::SUCCESS)
}
