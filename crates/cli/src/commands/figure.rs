//! `tacit figure`.

use std::process::ExitCode;

use serde::Serialize;
use tacit_lab::figure::{Figure, Options, Outcome, all, find};

use crate::args::FigureArgs;
use crate::output::{FAILED, Failure, note, print, print_json};
use crate::progress::{cache, watched};

#[derive(Serialize)]
struct Entry<'a> {
    id: &'a str,
    title: &'a str,
    paper: &'a str,
}

pub fn run(args: FigureArgs) -> Result<ExitCode, Failure> {
    if args.list {
        return list(args.json);
    }
    let figures =
        if args.all { all()? } else { args.ids.iter().map(|id| find(id)).collect::<Result<_, _>>()? };
    let options = Options {
        quick: args.quick,
        directory: (!args.no_report).then_some(args.report),
        program: std::env::current_exe().ok(),
    };
    let outcomes = watched(cache(args.no_cache).as_ref(), |control| {
        tacit_lab::figure::run(&figures, &options, control)
    })?;
    match outcomes.as_slice() {
        [one] if args.json && !args.all => print_json(one)?,
        several if args.json => print_json(&several)?,
        several => print(&several.iter().map(Outcome::to_text).collect::<Vec<_>>().join("\n"))?,
    }
    if let Some(directory) = &options.directory {
        note(&format!("figures: {}", directory.join("index.html").display()));
    }
    // Who asks for everything knows that not every machine can do it.
    let skipped = !args.all && outcomes.iter().any(|outcome| outcome.skipped.is_some());
    let failed = skipped || outcomes.iter().any(Outcome::fails);
    Ok(if failed { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
}

fn list(json: bool) -> Result<ExitCode, Failure> {
    let figures = all()?;
    if json {
        let entries: Vec<Entry<'_>> = figures
            .iter()
            .map(|figure| Entry { id: &figure.id, title: &figure.title, paper: &figure.paper })
            .collect();
        print_json(&entries)?;
    } else {
        let width = figures.iter().map(|figure| figure.id.len()).max().unwrap_or(0);
        let line = |figure: &Figure| format!("{:width$}  {} ({})\n", figure.id, figure.title, figure.paper);
        print(&figures.iter().map(line).collect::<String>())?;
    }
    Ok(ExitCode::SUCCESS)
}
