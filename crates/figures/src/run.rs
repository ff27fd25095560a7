//! Computes or runs figures, holds the claims against the results, draws.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::arms::{Annotation, Points};
use super::claim::Range;
use super::downloads::{DownloadRuns, Samples};
use super::draw::picture;
use super::file::{CLIENTS, Claim, Figure, Measure, Source, Sweep};
use super::live::{Live, LiveRuns};
use super::measure::{self, Curve, Curves, same};
use super::plot_data::PlotData;
use super::results::{Results, RunContext};
use super::series::Series;
use super::table::MeasuredTable;
use super::timeline::Timeline;
use super::transferred::Transferred;
use super::transfers::{TransferRuns, Transfers};
use super::variant::Dependence;
use super::{ClaimOutcome, FigureOutcome, page, value};
use tacit_analysis::chart::{standalone, table_picture};
use tacit_runs::RunsError;
use tacit_runs::aggregate::{Column, Group};
use tacit_runs::plan::{self, Plan, SweepPoint};
use tacit_runs::record::RunSummary;
use tacit_runs::store::{Provenance, Store, write_whole};
use tacit_runs::sweep::Control;
use tacit_scenario::Scenario;

/// How to run figures.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Fewer and shorter runs, as the files say.
    pub quick: bool,
    /// Where pictures and results go; `None` keeps nothing.
    pub directory: Option<PathBuf>,
    /// Where results are read instead of made: nothing is run.
    pub from: Option<PathBuf>,
    /// Every figure was asked for: those without results in `from` are skipped.
    pub all: bool,
    /// What figures of live hops are made of; see [`LiveRuns::make`].
    pub live: LiveRuns,
    /// What figures of downloads through live hops are made of; see [`DownloadRuns::make`].
    pub downloads: DownloadRuns,
    /// What figures of transfers through live hops are made of; see [`TransferRuns::make`].
    pub transfers: TransferRuns,
}

/// Runs `figures`, and draws them and a page of all of them where a directory is given.
///
/// # Errors
/// As a sweep: on a failed run, an interruption, or a directory that cannot be written. A claim that
/// fails is no error.
pub fn run(
    figures: &[Figure],
    options: &Options,
    control: Control<'_>,
) -> Result<Vec<FigureOutcome>, RunsError> {
    let mut outcomes = Vec::new();
    let mut pictures = Vec::new();
    for figure in figures {
        let versions = RefCell::new(BTreeSet::new());
        let making = RunContext { options, control, versions: &versions };
        let outcome = |result: FigureResult, svg, skipped| FigureOutcome {
            id: figure.id.clone(),
            title: figure.title.clone(),
            paper: figure.paper.clone(),
            note: figure.note.clone(),
            table: result.table,
            depends: result.depends,
            claims: result.claims,
            in_full_only: result.in_full_only,
            measurements: result.measurements,
            made_by: versions.borrow().iter().cloned().collect(),
            svg,
            skipped,
        };
        if options.from.is_none() || matches!(figure.source, Source::Curves { sweep: None, .. }) {
            versions.borrow_mut().insert(tacit_runs::VERSION.to_owned());
        }
        if let Some(skip_reason) = skip_reason(figure, options) {
            pictures.push(String::new());
            outcomes.push(outcome(FigureResult::default(), None, Some(skip_reason)));
            continue;
        }
        if let (Some(from), true) = (&options.from, figure.source.is_live()) {
            making.note_saved_version(&from.join(file_name(&figure.id, ".json")));
        }
        let result = match &figure.source {
            Source::Curves { theory, sweep } => {
                let theory = theory.as_deref().map(from_theory);
                let drawn = match sweep {
                    Some(sweep) => with_theory(from_sweep(figure, sweep, making)?, theory),
                    None => theory.expect("the figure file was checked: it has one or the other"),
                };
                from_curves(figure, drawn, options.quick)
            }
            Source::Timeline(timeline) => from_timeline(figure, timeline, making)?,
            Source::Series(series) => from_series(figure, series, making)?,
            Source::Live(live) => {
                let points = match &options.from {
                    Some(from) => Points::read(&from.join(file_name(&figure.id, ".json")))?,
                    None => options.live.points(&figure.id, live)?,
                };
                keep(options, &figure.id, || points.to_json(&figure.id))?;
                from_live(figure, live, points, options.quick)
            }
            Source::Downloads(_) => {
                let samples = match &options.from {
                    Some(from) => Samples::read(&from.join(file_name(&figure.id, ".json")))?,
                    None => options.downloads.samples(&figure.id),
                };
                keep(options, &figure.id, || samples.to_json(&figure.id))?;
                from_downloads(figure, &samples, options.quick)
            }
            Source::Transfers(transfers) => {
                let transfers = transfers.shortened(options.quick);
                let results = match &options.from {
                    Some(from) => Transferred::read(&from.join(file_name(&figure.id, ".json")))?,
                    None => Transferred::new(&transfers, options.transfers.places(&figure.id), control)?,
                };
                keep(options, &figure.id, || results.to_json(&figure.id))?;
                from_transfers(figure, &transfers, &results, options.quick)
            }
        };
        let mut result = match options.quick {
            true => result.in_short(figure, |measure| figure.source.makes_in_short(measure)),
            false => result,
        };
        let path =
            options.directory.as_deref().map(|directory| directory.join(file_name(&figure.id, ".svg")));
        if let Some(path) = &path {
            write_whole(path, standalone(&result.svg).as_bytes())?;
        }
        pictures.push(std::mem::take(&mut result.svg));
        outcomes.push(outcome(result, path, None));
    }
    if let Some(directory) = &options.directory {
        page::write(directory, &outcomes, &pictures)?;
    }
    Ok(outcomes)
}

/// Why a figure is not made: this machine cannot, or there is nothing to read.
fn skip_reason(figure: &Figure, options: &Options) -> Option<String> {
    let Some(from) = &options.from else {
        return match &figure.source {
            Source::Live(_) => options.live.skip_reason(&figure.id),
            Source::Downloads(_) => options.downloads.skip_reason(&figure.id),
            Source::Transfers(_) => options.transfers.skip_reason(&figure.id),
            _ => None,
        };
    };
    let name = file_name(&figure.id, "");
    let made = match &figure.source {
        Source::Curves { sweep: None, .. } => true,
        Source::Series(series) => !Store::existing(&from.join(series.first_directory(figure))).is_empty(),
        Source::Live(_) | Source::Downloads(_) | Source::Transfers(_) => from.join(name + ".json").exists(),
        Source::Curves { .. } | Source::Timeline(_) => !Store::existing(&from.join(name)).is_empty(),
    };
    (options.all && !made)
        .then(|| format!("no results in {}; tacit figure {} makes them", from.display(), figure.id))
}

/// Writes what live runs of figure `id` gave, where it was made now and is to be kept.
fn keep(options: &Options, id: &str, results: impl FnOnce() -> serde_json::Value) -> Result<(), RunsError> {
    if let (Some(directory), None) = (&options.directory, &options.from) {
        write_whole(&directory.join(file_name(id, ".json")), results().to_string().as_bytes())?;
    }
    Ok(())
}

/// What a figure's files are called.
pub(super) fn file_name(id: &str, end: &str) -> String {
    format!("{}{end}", id.replace('/', "-"))
}

/// What a figure comes to.
#[derive(Default)]
struct FigureResult {
    svg: String,
    claims: Vec<ClaimOutcome>,
    table: Option<MeasuredTable>,
    depends: Option<Dependence>,
    in_full_only: usize,
    measurements: Vec<String>,
}

impl FigureResult {
    /// Leaves out claims that quick runs do not judge: those that say so, and those about what is not made.
    fn in_short(mut self, figure: &Figure, makes: impl Fn(&measure::Measure) -> bool) -> Self {
        let mut result = figure.claims.iter().map(|claim| match &claim.measure {
            _ if claim.is_left_out() => false,
            Measure::Curves(measure) => makes(measure),
            Measure::Timeline(_) => true,
        });
        let before = self.claims.len();
        self.claims.retain(|_| result.next().unwrap_or(true));
        self.in_full_only = before - self.claims.len();
        self
    }
}

fn from_curves(figure: &Figure, drawn: PlotData, quick: bool) -> FigureResult {
    let measure = |measure: &Measure| match measure {
        Measure::Curves(measure) => (drawn.measured(measure), drawn.over_seeds(measure)),
        Measure::Timeline(_) => (None, None),
    };
    let mut claims = claims(figure, quick, measure);
    for (outcome, claim) in claims.iter_mut().zip(&figure.claims) {
        let Measure::Curves(measure) = &claim.measure else { continue };
        if let Some((_, Some(cell))) = drawn.measured_at(measure) {
            (outcome.at, outcome.interval) = (Some(cell.x), cell.interval);
        }
    }
    let table = figure.table.as_ref().map(|table| table.measured(|measure| drawn.measured(measure)));
    let svg = match &table {
        Some(table) => table_picture(&format!("{}: {}", figure.id, figure.title), &table.grid()),
        None => picture(figure, &drawn),
    };
    FigureResult { svg, claims, table, depends: drawn.depends, ..FigureResult::default() }
}

fn from_timeline(
    figure: &Figure,
    timeline: &Timeline,
    making: RunContext<'_>,
) -> Result<FigureResult, RunsError> {
    let results = Results::new(making, &figure.id, &file_name(&figure.id, ""));
    let shown = timeline.shown(figure, &results)?;
    let measure = |measure: &Measure| match measure {
        Measure::Curves(_) => (None, None),
        Measure::Timeline(measure) => (measure.of(&shown), None),
    };
    let svg = shown.picture(&format!("{}: {}", figure.id, figure.title));
    Ok(FigureResult { svg, claims: claims(figure, making.options.quick, measure), ..FigureResult::default() })
}

fn from_series(figure: &Figure, series: &Series, making: RunContext<'_>) -> Result<FigureResult, RunsError> {
    let tracks = series.tracks(figure, |directory| Results::new(making, &figure.id, directory))?;
    let drawn = series.drawn(figure, &tracks);
    let svg = series.picture(figure, &drawn, &tracks);
    Ok(FigureResult { svg, ..from_curves(figure, drawn, making.options.quick) })
}

/// Of a claim's tolerance, what the machine's own delays may be worth: beyond that, what is missing can be theirs.
pub const MACHINE_SHARE_MAX: f64 = 0.5;

fn from_live(figure: &Figure, live: &Live, points: Points, quick: bool) -> FigureResult {
    let Points { curves, slowed, disturbed, waits } = points;
    let drawn = PlotData::new(live.x_label.clone(), "HACK's gain over stock (%)".to_owned(), curves);
    let mut result = from_curves(figure, drawn, quick);
    for (outcome, claim) in result.claims.iter_mut().zip(&figure.claims) {
        let Measure::Curves(measure) = &claim.measure else { continue };
        let said = |places: &[Annotation]| {
            let about = places.iter().filter(|place| place.concerns(measure));
            about.map(|place| place.said.as_str()).collect::<Vec<_>>().join("; ")
        };
        let worth =
            measure.of(&slowed).zip(outcome.measured).map(|(slowed, measured)| (slowed - measured).abs());
        let most = claim.leeway() * MACHINE_SHARE_MAX;
        let reason = match (said(&disturbed), worth) {
            (disturbed, Some(worth)) if disturbed.is_empty() && worth > most => format!(
                "programs waited for a processor ({}), which is worth {} {} in the simulator; at most {} is judged",
                said(&waits),
                value(worth),
                claim.unit,
                value(most),
            ),
            (disturbed, _) => disturbed,
        };
        if !reason.is_empty() {
            outcome.skip(reason);
        }
    }
    result
}

fn from_downloads(figure: &Figure, samples: &Samples, quick: bool) -> FigureResult {
    let drawn = PlotData::new(String::new(), String::new(), samples.curves());
    let mut result = from_curves(figure, drawn, quick);
    result.svg = samples.picture(figure);
    for (outcome, claim) in result.claims.iter_mut().zip(&figure.claims) {
        if let Measure::Curves(measure) = &claim.measure
            && let Some(reason) = samples.disturbance(measure)
        {
            outcome.skip(reason.to_owned());
        }
    }
    result
}

fn from_transfers(
    figure: &Figure,
    transfers: &Transfers,
    results: &Transferred,
    quick: bool,
) -> FigureResult {
    let mut drawn = PlotData::new(
        transfers.x_label.clone(),
        "goodput (Mb/s)".to_owned(),
        results.curves(transfers, None),
    );
    let variants = transfers.variant_names();
    drawn.variants = variants.map(|name| (name.to_owned(), results.curves(transfers, Some(name)))).collect();
    let mut result = from_curves(figure, drawn, quick);
    result.measurements = results.measurements();
    for (outcome, claim) in result.claims.iter_mut().zip(&figure.claims) {
        if let Measure::Curves(measure) = &claim.measure
            && let Some(reason) = results.disturbance(measure)
        {
            outcome.skip(reason);
        }
    }
    result
}

/// The claims judged; `measure` gives what is measured, and in which range it lies over single seeds.
fn claims(
    figure: &Figure,
    quick: bool,
    measure: impl Fn(&Measure) -> (Option<f64>, Option<Range>),
) -> Vec<ClaimOutcome> {
    let outcome = |claim: &Claim| {
        let (measured, over_seeds) = measure(&claim.measure);
        claim.judge(measured, over_seeds, quick)
    };
    figure.claims.iter().map(outcome).collect()
}

fn from_theory(id: &str) -> PlotData {
    let figure = tacit_theory::figure(id).expect("the figure file was checked against tacit_theory::IDS");
    let curve = |series: &tacit_theory::Series| Curve {
        name: series.name.clone(),
        points: series.points.iter().map(|(x, y)| (*x, vec![Some(*y)])).collect(),
        ..Curve::default()
    };
    let curves = figure.series.iter().map(curve).collect();
    let curves = Curves { columns: vec![String::new()], curves };
    PlotData::new(figure.x.to_owned(), figure.y.to_owned(), curves)
}

/// Adds what theory says of the same x.
fn with_theory(mut drawn: PlotData, theory: Option<PlotData>) -> PlotData {
    let swept: Vec<f64> =
        drawn.curves.curves.iter().flat_map(|curve| curve.points.iter().map(|(x, _)| *x)).collect();
    for mut curve in theory.into_iter().flat_map(|theory| theory.curves.curves) {
        curve.points.retain(|(x, _)| swept.iter().any(|other| same(*x, *other)));
        drawn.seeds.iter_mut().for_each(|seed| seed.curves.curves.push(curve.clone()));
        drawn.curves.curves.push(curve);
    }
    drawn
}

fn from_sweep(figure: &Figure, sweep: &Sweep, making: RunContext<'_>) -> Result<PlotData, RunsError> {
    let sweep = if making.options.quick { sweep.quick() } else { sweep.clone() };
    let plain = simulate(figure, &sweep, None, making)?;
    let labels = || (sweep.x_label.clone(), sweep.y_label.clone());
    let new = |curves| PlotData::new(labels().0, labels().1, curves);
    let mut drawn = new(plain.curves);
    drawn.seeds = plain.seeds.into_iter().map(new).collect();
    drawn.average = sweep.average;
    let mut varied = Vec::new();
    for variant in &sweep.variants {
        let made = simulate(figure, &variant.of(&sweep), Some(&variant.name), making)?;
        drawn.variants.push((variant.name.clone(), made.curves));
        for (drawn, curves) in drawn.seeds.iter_mut().zip(made.seeds) {
            drawn.variants.push((variant.name.clone(), curves));
        }
        varied.push((variant.name.as_str(), made.records));
    }
    let varied: Vec<(&str, &[RunSummary])> =
        varied.iter().map(|(name, records)| (*name, records.as_slice())).collect();
    drawn.depends = sweep.depends.as_ref().map(|depends| depends.table(&sweep, &plain.records, &varied));
    Ok(drawn)
}

/// The runs of a sweep, or of one variant of it.
struct SweepRuns {
    /// Means over the seeds.
    curves: Curves,
    /// Of each seed alone; nothing where there are not several.
    seeds: Vec<Curves>,
    records: Vec<RunSummary>,
}

/// Makes the runs of a sweep, or of one variant of it, and keeps them in a directory of their own.
fn simulate(
    figure: &Figure,
    sweep: &Sweep,
    variant: Option<&str>,
    making: RunContext<'_>,
) -> Result<SweepRuns, RunsError> {
    let base = Scenario::load(&sweep.scenario, &sweep.assignments)?;
    let seeds = sweep.seeds.unwrap_or(base.run.seeds) as usize;
    let plan = plan(sweep, &base, seeds as u32)?;
    let end = variant.map_or(String::new(), |name| format!("-{}", slug(name)));
    let results = Results::new(making, &figure.id, &file_name(&figure.id, &end));
    let records =
        results.runs(&plan, |runs| provenance(figure, sweep, variant, &base, results.command(), runs))?;
    // All seeds of a place follow each other.
    let places = || records.chunks(seeds);
    let alone = |seed: usize| {
        let runs: Vec<&[RunSummary]> = places().filter_map(|place| place.get(seed..=seed)).collect();
        curves(figure, sweep, &runs)
    };
    Ok(SweepRuns {
        curves: curves(figure, sweep, &places().collect::<Vec<_>>()),
        seeds: if seeds > 1 { (0..seeds).map(alone).collect() } else { Vec::new() },
        records,
    })
}

/// A name as part of a file's: letters and digits, one hyphen between words.
pub(super) fn slug(name: &str) -> String {
    let words = name.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-").to_lowercase()
}

/// Runs by x, then value of the second axis, then scheme, then seed: the order [`curves`] relies on.
fn plan(sweep: &Sweep, base: &Scenario, seeds: u32) -> Result<Plan, RunsError> {
    let mut plan = Plan::default();
    for x in &sweep.axis.values {
        for best_of in second_values(sweep) {
            let (scenario, clients) = at(sweep, *x, best_of, base)?;
            let scenario = Arc::new(scenario);
            for scheme in &sweep.schemes {
                plan.push(&scenario, scheme, clients, SweepPoint { x: Some(*x), best_of }, seeds)?;
            }
        }
    }
    Ok(plan)
}

/// Values of the second axis; a sweep without one has a single place on it.
fn second_values(sweep: &Sweep) -> Vec<Option<f64>> {
    match &sweep.best_of {
        Some(best_of) => best_of.axis.values.iter().copied().map(Some).collect(),
        None => vec![None],
    }
}

/// The scenario and its clients at one place of the axes.
fn at(sweep: &Sweep, x: f64, best_of: Option<f64>, base: &Scenario) -> Result<(Scenario, u32), RunsError> {
    let mut assignments = sweep.assignments.clone();
    if sweep.axis.key != CLIENTS {
        assignments.push(sweep.axis.assignment(x));
        assignments.extend_from_slice(sweep.axis.also(x));
    }
    if let (Some(value), Some(best_of)) = (best_of, &sweep.best_of) {
        assignments.push(best_of.axis.assignment(value));
    }
    if assignments.len() == sweep.assignments.len() {
        return Ok((base.clone(), x as u32));
    }
    let scenario = Scenario::load(&sweep.scenario, &assignments)?;
    let clients = if sweep.axis.key == CLIENTS { x as u32 } else { scenario.clients };
    Ok((scenario, clients))
}

fn provenance(
    figure: &Figure,
    sweep: &Sweep,
    variant: Option<&str>,
    base: &Scenario,
    command: String,
    records: &[RunSummary],
) -> Provenance {
    let seeds = records.iter().map(|record| record.label.seed).max().unwrap_or(0);
    Provenance {
        scenario: base.name.clone(),
        description: match variant {
            Some(variant) => format!("{}: {variant}", figure.title),
            None => figure.title.clone(),
        },
        scenario_text: base.text.clone(),
        seeds: format!("1 to {seeds}"),
        version: tacit_runs::VERSION.to_owned(),
        command,
        schemes: sweep.schemes.iter().map(|scheme| scheme.name).collect::<Vec<_>>().join(","),
        digest: plan::combined_digest(records),
        // Its file says what it depends on.
        conditions: String::new(),
        warnings: String::new(),
        x_label: sweep.x_label.clone(),
        y_label: sweep.y_label.clone(),
        column: sweep.column.clone(),
    }
}

/// One curve per scheme, averaged over the runs of each of `places`; the plotted column first, then every one a claim needs.
/// With a second axis it is the envelope: at each x all columns of the value that gives most of the
/// first.
fn curves<'a>(figure: &Figure, sweep: &Sweep, places: &[&'a [RunSummary]]) -> Curves {
    let mut columns = vec![sweep.column.clone()];
    for column in figure.columns() {
        if !columns.iter().any(|known| known == column) {
            columns.push(column.to_owned());
        }
    }
    let (seconds, schemes) = (second_values(sweep).len(), sweep.schemes.len());
    let group =
        |x: usize, second: usize, scheme: usize| Group::of(places[(x * seconds + second) * schemes + scheme]);
    let middle = |group: &Group<'_>, column: &str| sweep.middle(group, Column::named(column)?);
    let means =
        |group: &Group<'_>| columns.iter().map(|column| Some(middle(group, column)?.0)).collect::<Vec<_>>();
    let ci95 = |group: &Group<'_>| middle(group, &sweep.column)?.1;
    let curve = |name: String, group: &dyn Fn(usize) -> Group<'a>| {
        let groups: Vec<Group<'_>> = (0..sweep.axis.values.len()).map(group).collect();
        let points = sweep.axis.values.iter().copied().zip(groups.iter().map(means)).collect();
        Curve { name, points, ci95: groups.iter().map(ci95).collect() }
    };
    let best = |x: usize, scheme: usize| {
        let all = (0..seconds).map(|second| group(x, second, scheme));
        let best = Column::named(&sweep.column).and_then(|column| Group::best(all, column));
        best.unwrap_or_default()
    };
    let mut curves = Vec::new();
    for (index, scheme) in sweep.schemes.iter().enumerate() {
        curves.push(curve(scheme.name.to_owned(), &|x| best(x, index)));
        let Some(best_of) = &sweep.best_of else { continue };
        if best_of.curves.iter().any(|shown| shown.name == scheme.name) {
            for (second, value) in best_of.axis.values.iter().enumerate() {
                curves.push(curve(best_of.curve_name(scheme, *value), &|x| group(x, second, index)));
            }
        }
    }
    Curves { columns, curves }
}

/// Where [`run`] writes its page.
pub(super) fn page_path(directory: &Path) -> PathBuf {
    directory.join("index.html")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;

    const SWEEP: &str = include_str!("../tests/sweep.toml");

    #[test]
    fn a_sweep_is_run_measured_and_drawn() {
        let directory = tempfile::tempdir().unwrap();
        let figure = Figure::parse("test/sweep", "sweep.toml", SWEEP).unwrap();
        let options =
            Options { quick: true, directory: Some(directory.path().to_owned()), ..Options::default() };
        let outcomes = run(&[figure], &options, Control::unattended()).unwrap();
        let claims = &outcomes[0].claims;
        assert!(claims[0].pass && claims[0].measured.unwrap() > 1.0, "{claims:?}");
        assert_eq!((claims[1].verdict, claims[1].measured), (Verdict::Missed, Some(0.0)));
        let over_seeds = claims[0].over_seeds.unwrap();
        assert!(over_seeds.low < over_seeds.high && over_seeds.high < 2.0, "{over_seeds:?}");
        assert!((over_seeds.low..over_seeds.high).contains(&claims[0].measured.unwrap()), "{claims:?}");
        assert!(!outcomes[0].fails());
        assert!(directory.path().join("test-sweep.svg").is_file());
        assert!(page_path(directory.path()).is_file());
        let (provenance, records) = Store::existing(&directory.path().join("test-sweep")).read().unwrap();
        assert_eq!((records.len(), provenance.command.as_str()), (8, "tacit figure test/sweep --quick"));
    }

    /// Wire delays of 1 and 5 ms; the variant has one place of its own, and a slower wire.
    const VARIANTS: &str = "\
title = \"t\"
paper = \"p\"
note = \"what it assumes\"
[sweep]
scenario = \"wlan-11n-150\"
set = [\"run.duration=400ms\", \"run.measure-from=100ms\"]
schemes = [\"stock\", \"udp\"]
x = { key = \"wired.delay\", unit = \"ms\", values = [1, 5] }
seeds = 2
quick = { seeds = 1 }
depends = { gain = \"udp\", over = \"stock\", plain = \"as it is\" }
[[sweep.variant]]
name = \"a slow wire\"
set = [\"wired.rate=10Mbps\"]
x = { values = [5] }
[[claim]]
text = \"UDP fills the slow wire\"
paper = 9.8
measure = { value = \"udp\", x = 5, variant = \"a slow wire\" }
tolerance = \"2 %\"
[[claim]]
text = \"and much more the fast one\"
paper = 10
source = \"arithmetic\"
measure = { ratio = \"udp\", over = \"udp\", x = 5 }
bound = \"at-most\"
tolerance = 0
";

    #[test]
    fn a_variant_is_run_beside_the_sweep_and_compared_with_it() {
        let directory = tempfile::tempdir().unwrap();
        let figure = Figure::parse("test/variants", "variants.toml", VARIANTS).unwrap();
        let options = Options { directory: Some(directory.path().to_owned()), ..Options::default() };
        let outcome = &run(&[figure], &options, Control::unattended()).unwrap()[0];
        assert!(!outcome.fails(), "{outcome:?}");
        let depends = outcome.depends.as_ref().unwrap();
        assert_eq!((depends.x.as_slice(), depends.rows.len()), (&[1.0, 5.0][..], 2));
        let [plain, slow] = &depends.rows[..] else { panic!("{depends:?}") };
        assert_eq!((plain.name.as_str(), slow.name.as_str()), ("as it is", "a slow wire"));
        // The variant has one place; where it was run its gain follows from its own two curves.
        assert_eq!(slow.cells[0], None);
        let cell = slow.cells[1].unwrap();
        let (from, to) = (cell.from.unwrap(), cell.to.unwrap());
        assert!((cell.value - (to / from - 1.0) * 100.0).abs() < 1e-9 && to < 10.0, "{cell:?}");
        assert!(cell.ci95.is_some() && plain.cells[1].unwrap().to.unwrap() > 100.0);
        let text = outcome.to_text();
        for line in [
            "  what it assumes\n",
            "arithmetic <= 10, measured 1 ",
            "  a slow wire",
            "gain of udp over stock (%)",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        let (provenance, records) =
            Store::existing(&directory.path().join("test-variants-a-slow-wire")).read().unwrap();
        assert_eq!((records.len(), provenance.description.as_str()), (4, "t: a slow wire"));
        let page = std::fs::read_to_string(page_path(directory.path())).unwrap();
        assert!(page.contains("What it depends on") && page.contains("what it assumes"));
    }

    #[test]
    fn the_quick_form_leaves_out_claims_about_what_it_does_not_make_and_counts_them() {
        let text = VARIANTS.replace("quick = { seeds = 1 }", "quick = { seeds = 1, x = [1] }");
        let figure = Figure::parse("test/variants", "variants.toml", &text).unwrap();
        let options = Options { quick: true, ..Options::default() };
        let outcome = &run(&[figure], &options, Control::unattended()).unwrap()[0];
        assert_eq!((outcome.claims.len(), outcome.in_full_only), (0, 2), "{outcome:?}");
        assert!(outcome.to_text().contains("  2 claims more in whole runs, without --quick\n"));
    }

    #[test]
    fn variants_that_contradict_the_sweep_are_refused() {
        for (from, to, said) in [
            (
                "variant = \"a slow wire\" }",
                "variant = \"a fast wire\" }",
                "no variant \"a fast wire\"; allowed: a slow wire",
            ),
            (
                "x = { values = [5] }",
                "schemes = [\"stock\"]",
                "\"udp\" is not swept in variant \"a slow wire\"",
            ),
            (
                "[[claim]]",
                "[[sweep.variant]]\nname = \"a slow wire\"\nset = []\n[[claim]]",
                "stands there twice",
            ),
            (
                "seeds = 2",
                "seeds = 2\nbest-of = { key = \"wifi.rate\", unit = \"Mbps\", values = [150] }",
                "best-of has no variants",
            ),
            (
                "depends = { gain = \"udp\", over",
                "depends = { value = \"udp\", over",
                "either gain and over, or value",
            ),
            (
                "depends = { gain = \"udp\"",
                "depends = { gain = \"tcp\"",
                "\"tcp\" is measured, but not swept",
            ),
        ] {
            let text = VARIANTS.replacen(from, to, 1);
            let error = Figure::parse("x", "x.toml", &text).unwrap_err().to_string();
            assert!(error.contains(said), "{said}: {error}");
        }
    }

    const TABLE: &str = "\
title = \"t\"
paper = \"p\"
[theory]
figure = \"hack/fig1a\"
[table]
columns = [\"measured here\", \"printed only\"]
[[table.row]]
name = \"54 Mb/s\"
cells = [{ paper = 30.2, measure = { value = \"UDP\", x = 54 } }, { paper = 1 }]
";

    #[test]
    fn a_table_shows_what_is_measured_beside_what_is_printed() {
        let figure = Figure::parse("test/table", "table.toml", TABLE).unwrap();
        let outcome = &run(&[figure], &Options::default(), Control::unattended()).unwrap()[0];
        let cells = &outcome.table.as_ref().unwrap().rows[0].cells;
        assert!((cells[0].measured.unwrap() - 29.93).abs() < 0.01 && cells[1].measured.is_none());
        assert!(outcome.to_text().contains("29.93 (30.2)"), "{}", outcome.to_text());
        let error =
            Figure::parse("x", "x.toml", &TABLE.replace(", { paper = 1 }", "")).unwrap_err().to_string();
        assert!(error.contains("1 cells under 2 columns"), "{error}");
    }

    const ENVELOPE: &str = "\
title = \"t\"
paper = \"p\"
[theory]
figure = \"hack/fig1b\"
[sweep]
scenario = \"wlan-11n-150\"
set = [\"run.duration=300ms\", \"run.measure-from=100ms\"]
schemes = [\"udp\"]
x = { key = \"wifi.snr\", unit = \" dB\", values = [8, 15, 60] }
best-of = { key = \"wifi.rate\", unit = \"Mbps\", values = [15, 30, 150], curves = [\"udp\"] }
seeds = 1
quick = { x = [8, 60], best-of = [15, 150] }
[[claim]]
text = \"the best is never worse than one of them\"
paper = 1
measure = { ratio = \"udp\", over = \"udp 15Mbps\", take = \"least\" }
bound = \"at-least\"
tolerance = 0
";

    #[test]
    fn an_envelope_takes_the_best_at_each_place() {
        let figure = Figure::parse("test/envelope", "envelope.toml", ENVELOPE).unwrap();
        let drawn = |quick| {
            let options = Options { quick, ..Options::default() };
            from_sweep(
                &figure,
                match &figure.source {
                    Source::Curves { sweep: Some(sweep), .. } => sweep,
                    _ => panic!("a sweep"),
                },
                RunContext {
                    options: &options,
                    control: Control::unattended(),
                    versions: &RefCell::default(),
                },
            )
            .unwrap()
        };
        let goodput = |drawn: &PlotData, name: &str| -> Vec<f64> {
            let curve = drawn.curves.named(name).unwrap();
            curve.points.iter().map(|(_, columns)| columns[0].unwrap()).collect()
        };
        let full = drawn(false);
        let best = goodput(&full, "udp");
        assert_eq!(best[0].to_bits(), goodput(&full, "udp 30Mbps")[0].to_bits());
        assert_eq!(best[2].to_bits(), goodput(&full, "udp 150Mbps")[2].to_bits());
        assert!(goodput(&full, "udp 150Mbps")[0] < 1.0);
        let quick = drawn(true);
        assert_eq!(goodput(&quick, "udp"), [goodput(&full, "udp 15Mbps")[0], best[2]]);
        // Theory knows no SNR of these values, except by chance a rate of 15 or 60 Mb/s.
        let with_theory = with_theory(full, Some(from_theory("hack/fig1b")));
        assert_eq!(with_theory.curves.curves.last().unwrap().points.len(), 2);
        let outcomes = run(&[figure], &Options::default(), Control::unattended()).unwrap();
        assert!(outcomes[0].claims[0].pass, "{outcomes:?}");
    }

    #[test]
    fn claims_that_stand_there_twice_or_are_about_what_is_not_there_are_refused() {
        let text = SWEEP.replace("over = \"stock\"", "over = \"tcp-l8\"");
        let error = Figure::parse("x", "x.toml", &text).unwrap_err().to_string();
        assert!(error.contains("\"tcp-l8\" is measured, but not swept"), "{error}");
        let text = SWEEP.replace("UDP has no ACKs", "UDP is faster");
        let error = Figure::parse("x", "x.toml", &text).unwrap_err().to_string();
        assert!(error.contains("\"UDP is faster\" stands there twice"), "{error}");
        let text = SWEEP.replace("tcp_acks_on_air_per_s", "tcp_acks");
        assert!(Figure::parse("x", "x.toml", &text).unwrap_err().to_string().contains("is no metric"));
    }
}
