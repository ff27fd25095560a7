//! `tacit run`.

use std::process::ExitCode;

use tacit_runs::single::{Options, prepare};

use crate::args::RunArgs;
use crate::output::{Failure, note, print, print_json};
use crate::progress::{cache, quietly, simulated};

pub fn run(args: RunArgs) -> Result<ExitCode, Failure> {
    let prepared = prepare(&Options {
        scenario: args.scenario,
        assignments: args.assignments,
        scheme: args.scheme,
        clients: args.clients,
        seed: args.seed,
        wire: args.wire,
        quick: args.quick,
    })?;
    // Text has them itself.
    for warning in prepared.warnings.iter().filter(|_| args.json) {
        note(&format!("tacit: warning: {warning}"));
    }
    let single = simulated(prepared.watched_length(), |reached| match &args.pcap {
        Some(path) => prepared.run_captured(path, reached),
        None => quietly(cache(args.no_cache).as_ref(), |control| prepared.run_watched(control, reached)),
    })?;
    if args.json {
        print_json(&single)?;
    } else {
        print(&single.to_text())?;
    }
    Ok(ExitCode::SUCCESS)
}
