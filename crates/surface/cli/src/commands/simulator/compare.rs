//! `tacit compare`.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use tacit_analysis::compare::{Comparison, Mix, Options, Row, compare, overview};
use tacit_analysis::report::{self, Report};
use tacit_runs::batches::{add_swept, grid};
use tacit_runs::metric::AirtimeShares;
use tacit_runs::store::{Sheet, add_rows};
use tacit_scenario::table::count;
use tacit_scenario::{Scenario, scheme, warnings};

use crate::args::CompareArgs;
use crate::gate::Gate;
use crate::output::{FAILED, Failure, note, print, print_answer, print_json};
use crate::progress::{cache, watched};

pub fn run(args: &CompareArgs) -> Result<ExitCode, Failure> {
    let known = Row::default().readings();
    let mut gate = Gate::new(&args.gate, known.iter().map(|reading| reading.name.as_str()))?;
    let (mut commands, mut measured_s) = (Vec::new(), 0.0);
    let mut reports = Vec::new();
    let mut drawn = None;
    let cache = cache(args.no_cache);
    let parts = parts(args)?;
    let several = parts.len() > 1;
    for Part { scenario, assignments, at, directory, mix } in parts {
        let directory = (!args.no_report).then_some(directory);
        let options = Options { scenario, assignments, at, directory, ..options(args, mix) };
        let comparison = watched(cache.as_ref(), |control| compare(&options, control))?;
        if let Some(directory) = &options.directory {
            drawn = Some(report::write(&comparison, directory)?);
        }
        for row in &comparison.rows {
            let at = comparison.at.iter().map(|set| format!(" {set}")).collect::<String>();
            let clients = count(row.clients.into(), "client");
            let subject = format!("{}{at}, {clients}, {}", comparison.scenario, row.scheme);
            gate.judge(&subject, Some(&row.scheme), &row.readings());
        }
        measured_s += comparison.measured_s * comparison.rows.iter().map(|row| row.seeds as f64).sum::<f64>();
        commands.push(comparison.provenance.command.clone());
        reports.push(Report::Comparison(Box::new(comparison)));
    }
    if several && !args.no_report {
        drawn = Some(report::write_all(&reports, &args.report)?);
    }
    if args.csv {
        show_csv(&comparisons(&reports), drawn.as_deref())?;
    } else {
        show(&reports, args.json, args.width.limit(), drawn.as_deref())?;
    }
    let whole = gate.end("tacit compare", Duration::from_secs_f64(measured_s), &commands.join("\n"))?;
    Ok(if whole { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

/// The options of all comparisons, without scenario, assignments and directory.
fn options(args: &CompareArgs, mix: Option<Mix>) -> Options {
    let options = Options {
        clients: args.clients.clone(),
        schemes: args.schemes.clone(),
        seeds: args.seeds,
        quick: args.quick,
        ..Options::default()
    };
    match mix {
        Some(mix) => mix.apply(options),
        None => options,
    }
}

/// One of several comparisons.
struct Part {
    scenario: String,
    /// The assignments without those of the sweep point.
    assignments: Vec<String>,
    /// The settings of the sweep point.
    at: Vec<String>,
    /// Directory of its results. If there are several comparisons, each has its own.
    directory: PathBuf,
    /// Which clients use which scheme, if they differ.
    mix: Option<Mix>,
}

/// The comparisons to run. All scenarios are loaded before the first run.
fn parts(args: &CompareArgs) -> Result<Vec<Part>, Failure> {
    let mixes = args.mixes.iter().map(|text| Mix::parse("--mix", text)).collect::<Result<Vec<_>, _>>()?;
    let mixes: Vec<Option<Mix>> =
        if mixes.is_empty() { vec![None] } else { mixes.into_iter().map(Some).collect() };
    let places = grid(&args.sweeps)?;
    let several = args.scenarios.len().max(1) * mixes.len() * places.len() > 1;
    let mut parts: Vec<Part> = Vec::new();
    let most = options(args, mixes[0]).clients.into_iter().max();
    let names: Vec<Option<&str>> = match args.scenarios.as_slice() {
        [] => vec![None],
        names => names.iter().map(|name| Some(name.as_str())).collect(),
    };
    for name in names {
        let (scenario, base) = args.link.scenario(name, &args.assignments, most)?;
        for mix in &mixes {
            let Options { schemes, clients, .. } = options(args, *mix);
            let schemes = scheme::select("--schemes", &schemes)?;
            warnings::check_sweep(&scenario, &base, &places, &schemes, &clients)?;
        }
        for (mix, at) in mixes.iter().flat_map(|mix| places.iter().map(move |at| (mix, at))) {
            let at: Vec<String> = mix.iter().map(Mix::assignment).chain(at.iter().cloned()).collect();
            let assignments = [base.as_slice(), &at].concat();
            let plain = |text: &str| text.replace(['/', '\\', ' '], "-");
            let here = Scenario::load(&scenario, &assignments).map_err(|error| error.at_place(&at))?;
            let name = plain(&here.name);
            let name = at.iter().fold(name, |name, point| format!("{name}-{}", plain(point)));
            let mut directory = args.report.clone();
            if several {
                directory.push(&name);
            }
            if parts.iter().any(|part| part.directory == directory) {
                directory.set_file_name(format!("{name}-{}", parts.len() + 1));
            }
            parts.push(Part {
                scenario: scenario.clone(),
                assignments: base.clone(),
                at,
                directory,
                mix: *mix,
            });
        }
    }
    Ok(parts)
}

fn comparisons(reports: &[Report]) -> Vec<&Comparison> {
    reports.iter().filter_map(Report::comparison).collect()
}

/// Prints reports, with a table of all places where they are of a sweep, and says where they are drawn.
pub fn show(
    reports: &[Report],
    json: bool,
    width: Option<usize>,
    drawn: Option<&Path>,
) -> Result<(), Failure> {
    match reports {
        [one] if json => print_json(one)?,
        several if json => print_json(&several)?,
        several => {
            let text = |report: &Report| report.to_text(width);
            print_answer(&several.iter().map(text).collect::<Vec<_>>().join("\n"))?;
            let mut swept = comparisons(several);
            swept.retain(|comparison| !comparison.at.is_empty());
            if swept.len() > 1 {
                print(&format!("\n{}", overview(&swept)))?;
            }
        }
    }
    report_path(drawn);
    Ok(())
}

/// Prints the rows of all comparisons as one table on standard output, and late warnings on standard error.
fn show_csv(comparisons: &[&Comparison], drawn: Option<&Path>) -> Result<(), Failure> {
    for comparison in comparisons {
        let reported = comparison.provenance.warnings.lines().count();
        for warning in comparison.warnings.iter().skip(reported) {
            note(&format!("tacit: warning: {warning}"));
        }
    }
    print(&sheet(comparisons)?.to_csv())?;
    report_path(drawn);
    Ok(())
}

fn report_path(drawn: Option<&Path>) {
    if let Some(path) = drawn {
        note(&format!("report: {}", path.display()));
    }
}

/// The rows of comparisons: the scenario, the settings of the sweep point, and the row as in JSON.
fn sheet(comparisons: &[&Comparison]) -> Result<Sheet, Failure> {
    let rows =
        comparisons.iter().flat_map(|comparison| comparison.rows.iter().map(move |row| (comparison, row)));
    let mut sheet = Sheet::default();
    sheet.text("scenario", rows.clone().map(|(comparison, _)| comparison.scenario.as_str()));
    let places: Vec<&[String]> = rows.clone().map(|(comparison, _)| comparison.at.as_slice()).collect();
    add_swept(&mut sheet, &places);
    let full = Row { airtime: Some(AirtimeShares(Default::default())), ..Row::default() };
    add_rows(&mut sheet, &full, rows.map(|(_, row)| row)).map_err(io::Error::from)?;
    Ok(sheet)
}
