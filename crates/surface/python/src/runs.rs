//! Runs, comparisons, and their results.

use std::path::PathBuf;

use pyo3::prelude::*;
use serde::Serialize;
use serde_json::Value;
use tacit_analysis::advise::{Advice, Question, advise as advice, scenario_of};
use tacit_analysis::compare::{Comparison, Mix, Options, compare as compared};
use tacit_analysis::report::{Report, redraw, table_html, write};
use tacit_analysis::why::{Scope, explain_directory, explain_scenario};
use tacit_captures::audit::{Observed, audit_file};
use tacit_runs::single;
use tacit_runs::store::{objects, sheet_of, table_names};
use tacit_runs::sweep::Control;
use tacit_scenario::input::parse_rtt;
use tacit_scenario::{InputError, MAX_CLIENTS};

use crate::answer::{Answer, PlainAnswer, rows};
use crate::error::{Failure, Outcome};
use crate::external::ExternalMaker;
use crate::own::{Externals, OwnScheme};
use crate::watch::{on_all_cores, watched};

/// Runs a scenario once. `acks`, `controller` and `scheduler` are callables that create policies, controllers and
/// schedulers in Python; if any is given, nothing is cached.
#[pyfunction]
#[pyo3(signature = (scenario, assignments, *, scheme, clients, seed, quick, wire, cache, acks, controller, scheduler, pcap))]
#[expect(clippy::too_many_arguments, reason = "they are keywords of Python's")]
pub fn run(
    py: Python<'_>,
    scenario: String,
    assignments: Vec<String>,
    scheme: Option<String>,
    clients: Option<u32>,
    seed: u64,
    quick: bool,
    wire: bool,
    cache: bool,
    acks: Option<Bound<'_, PyAny>>,
    controller: Option<Bound<'_, PyAny>>,
    scheduler: Option<Bound<'_, PyAny>>,
    pcap: Option<PathBuf>,
) -> PyResult<Answer> {
    let options = single::Options { scenario, assignments, scheme, clients, seed, wire, quick };
    let make_external = |make: Option<Bound<'_, PyAny>>| make.as_ref().map(ExternalMaker::new).transpose();
    let brought = Externals {
        acks: make_external(acks)?,
        controller: make_external(controller)?,
        scheduler: make_external(scheduler)?,
    };
    let mut accepted = Ok(());
    let prepared = single::prepare_changed(&options, |scenario| accepted = brought.put_in(scenario));
    let mut prepared = prepared.map_err(|error| Failure::from(error).raised(py))?;
    accepted?;
    let names: Vec<&str> = brought.all().map(ExternalMaker::name).collect();
    if let Some(name) = names.first() {
        prepared
            .warnings
            .push(format!("made with {name}, which Python brought: the command alone makes another run"));
    }
    let cache = cache && names.is_empty();
    let answer = watched(py, cache, None, |control| {
        let record = match &pcap {
            Some(path) => prepared.run_captured(path, None)?,
            None => prepared.run_recorded(control, None)?,
        };
        let record_alone = std::slice::from_ref(&record);
        let sheets: Vec<_> =
            table_names().filter_map(|name| Some((name, sheet_of(name, record_alone)?))).collect();
        let single = prepared.single(record);
        let answer = PlainAnswer::new(&single, single.to_text(None))?;
        Ok(sheets.into_iter().fold(answer, |answer, (name, sheet)| answer.with(name, sheet)))
    });
    // A Python exception is more informative than the result of the run after it.
    brought.check()?;
    answer?.answered(py)
}

fn plain_answer(comparison: &Comparison) -> Outcome<PlainAnswer> {
    Ok(PlainAnswer::new(comparison, Report::Comparison(Box::new(comparison.clone())).to_text(None))?
        .with("rows", rows(&comparison.rows)?)
        .with_html(table_html(comparison)))
}

/// Compares schemes in a scenario. If a directory is given, results are stored there and a report is written.
#[pyfunction]
#[pyo3(signature = (scenario, assignments, *, clients, schemes, own, mix, seeds, quick, directory, cache, progress))]
#[expect(clippy::too_many_arguments, reason = "they are keywords of Python's")]
pub fn compare(
    py: Python<'_>,
    scenario: String,
    assignments: Vec<String>,
    clients: Vec<u32>,
    schemes: Vec<String>,
    own: Vec<Bound<'_, PyAny>>,
    mix: Option<&str>,
    seeds: Option<u32>,
    quick: bool,
    directory: Option<PathBuf>,
    cache: bool,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<Answer> {
    let mix =
        mix.map(|mix| Mix::parse("mix", mix)).transpose().map_err(|error| Failure::from(error).raised(py))?;
    let at = mix.iter().map(Mix::assignment).collect();
    let options = Options { scenario, assignments, clients, schemes, seeds, quick, directory, at };
    let options = match mix {
        Some(mix) => mix.apply(options),
        None => options,
    };
    let own_schemes = OwnScheme::bring(py, &own)?;
    own_schemes.iter().try_for_each(|scheme| scheme.try_on(py, &options.scenario, &options.assignments))?;
    let work = |control: Control<'_>| {
        let comparison = on_all_cores(|| Ok(compared(&options, control)?))?;
        if let Some(directory) = &options.directory {
            write(&comparison, directory)?;
        }
        plain_answer(&comparison)
    };
    // No other process can make runs of these classes.
    let answer = watched(py, cache && own_schemes.is_empty(), progress.as_ref(), work);
    own_schemes.iter().try_for_each(|scheme| scheme.externals.check())?;
    answer?.answered(py)
}

/// Reads the results in a directory and draws their report again.
#[pyfunction]
pub fn report(py: Python<'_>, directory: PathBuf) -> PyResult<Answer> {
    let work = |_: Control<'_>| {
        let (reports, _) = redraw(&directory)?;
        match &reports[..] {
            [Report::Comparison(comparison)] => plain_answer(comparison),
            [report @ Report::Sweep(sweep)] => {
                Ok(PlainAnswer::new(sweep, report.to_text(None))?.with("rows", rows(&sweep.rows)?))
            }
            several => {
                let what = format!("a sweep of {} places", several.len());
                let allowed = "tacit.sweep(…), whose results have the rows of all places";
                Err(InputError::new(directory.display(), what).allowed(allowed).into())
            }
        }
    };
    watched(py, false, None, work)?.answered(py)
}

/// Explains why one scheme has more goodput than another, in a scenario, which is simulated, or in a directory of
/// results.
#[pyfunction]
#[pyo3(signature = (scenario, assignments, *, clients, schemes, station, seeds, quick, directory, cache, progress))]
#[expect(clippy::too_many_arguments, reason = "they are keywords of Python's")]
pub fn why(
    py: Python<'_>,
    scenario: String,
    assignments: Vec<String>,
    clients: Vec<u32>,
    schemes: Vec<String>,
    station: bool,
    seeds: Option<u32>,
    quick: bool,
    directory: Option<PathBuf>,
    cache: bool,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<Answer> {
    let options = Options { scenario, assignments, clients, schemes, seeds, quick, ..Options::default() };
    let scope = if station { Scope::FirstStation } else { Scope::Bottleneck };
    let work = |control: Control<'_>| {
        let why = match &directory {
            Some(directory) => explain_directory(directory, &options.schemes, scope)?,
            None => on_all_cores(|| Ok(explain_scenario(&options, scope, control)?))?,
        };
        let parts = why.accounts.iter().flat_map(|account| {
            let part = |part| {
                serde_json::to_value(part).map(|mut value| {
                    value["clients"] = account.clients.into();
                    value
                })
            };
            account.parts.iter().map(part)
        });
        let parts =
            parts.collect::<Result<Vec<Value>, _>>().map_err(|error| Failure::Other(error.to_string()))?;
        Ok(PlainAnswer::new(&why, why.to_text(None))?.with("parts", objects(&parts)))
    };
    watched(py, cache, progress.as_ref(), work)?.answered(py)
}

/// The result as printed by the command line.
#[derive(Serialize)]
struct Advised<'a> {
    #[serde(flatten)]
    advice: &'a Advice,
    observed: Option<Observed>,
}

/// Recommends an ACK frequency or mechanism for a link.
#[pyfunction]
#[pyo3(signature = (scenario, assignments, *, phy, rate, rtt, clients, uploads, capture, seeds, max_seeds, quick, cache, progress))]
#[expect(clippy::too_many_arguments, reason = "they are keywords of Python's")]
pub fn advise(
    py: Python<'_>,
    scenario: Option<String>,
    assignments: Vec<String>,
    phy: Option<String>,
    rate: Option<String>,
    rtt: Option<String>,
    clients: Option<u32>,
    uploads: bool,
    capture: Option<PathBuf>,
    seeds: Option<u32>,
    max_seeds: Option<u32>,
    quick: bool,
    cache: bool,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<Answer> {
    let work = |control: Control<'_>| {
        let observed =
            capture.as_deref().map(|path| Ok::<_, Failure>(audit_file(path)?.observed())).transpose()?;
        let (scenario, mut set) = scenario_of(scenario.as_deref(), phy.as_deref(), rate.as_deref())?;
        set.extend(assignments.iter().cloned());
        let rtt = rtt.as_deref().map(parse_rtt).transpose()?;
        let seen = observed.as_ref();
        let question = Question {
            scenario,
            assignments: set,
            rtt: rtt.or_else(|| seen?.rtt),
            clients: clients.or_else(|| Some((seen?.receivers as u32).clamp(1, MAX_CLIENTS))),
            uploads: uploads.then_some(true),
            segments_per_ack: seen.and_then(|seen| seen.segments_per_ack),
            seeds,
            max_seeds,
            quick,
            directory: None,
        };
        let advice = on_all_cores(|| Ok(advice(&question, control)?))?;
        let text = advice.to_text(None);
        let choices = rows(&advice.answer.choices)?;
        let runs = rows(&advice.comparison.rows)?;
        Ok(PlainAnswer::new(&Advised { advice: &advice, observed }, text)?
            .with("choices", choices)
            .with("rows", runs))
    };
    watched(py, cache, progress.as_ref(), work)?.answered(py)
}
