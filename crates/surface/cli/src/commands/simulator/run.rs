//! `tacit run`.

use std::process::ExitCode;
use std::slice;
use std::time::Duration;

use tacit_runs::metric;
use tacit_runs::single::{Options, prepare};
use tacit_runs::store::{Sheet, sheet_of};

use crate::args::RunArgs;
use crate::gate::Gate;
use crate::output::{FAILED, Failure, note, print, print_answer, print_json};
use crate::progress::{cache, quietly, simulated};

pub fn run(args: RunArgs) -> Result<ExitCode, Failure> {
    let mut gate = Gate::new(&args.gate, metric::ALL.iter().map(|metric| metric.name))?;
    let (scenario, assignments) =
        args.link.scenario(args.scenario.as_deref(), &args.assignments, args.clients)?;
    let prepared = prepare(&Options {
        scenario,
        assignments,
        scheme: args.scheme,
        clients: args.clients,
        seed: args.seed,
        wire: args.wire,
        quick: args.quick,
    })?;
    // The text output includes the warnings.
    for warning in prepared.warnings.iter().filter(|_| args.json || args.csv.is_some()) {
        note(&format!("tacit: warning: {warning}"));
    }
    let record = simulated(prepared.watched_length(), |reached| match &args.pcap {
        Some(path) => prepared.run_captured(path, reached),
        None => quietly(cache(args.no_cache).as_ref(), |control| prepared.run_recorded(control, reached)),
    })?;
    let csv = args.csv.and_then(|name| sheet_of(&name, slice::from_ref(&record))).map(to_csv);
    let single = prepared.single(record);
    match csv {
        Some(csv) => {
            for caveat in single.warnings.iter().skip(prepared.warnings.len()) {
                note(&format!("tacit: warning: {caveat}"));
            }
            print(&csv)?;
        }
        None if args.json => print_json(&single)?,
        None => print_answer(&single.to_text(args.width.limit()))?,
    }
    let name = single
        .scheme
        .as_ref()
        .map_or(single.scenario.clone(), |scheme| format!("{} {scheme}", single.scenario));
    gate.judge(&name, single.scheme.as_deref(), &single.readings());
    let whole = gate.end(&name, Duration::from_secs_f64(single.measured_s), &single.provenance.command)?;
    Ok(if whole { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

/// Omits the text of the scenario, which has many lines and is the same in each row.
fn to_csv(sheet: Sheet) -> String {
    sheet.without("scenario_text").to_csv()
}
