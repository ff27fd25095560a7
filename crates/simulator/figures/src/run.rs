//! Runs figures or reads their results, judges the claims, and draws.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;

use super::draw::{picture, points};
use super::figure::{Claim, Figure, Findings};
use super::live_runs::{LiveRuns, MakeLive};
use super::measure::Measure;
use super::page::Drawing;
use super::plot_data::PlotData;
use super::results::{Options, RunContext, file_name};
use super::table::MeasuredTable;
use super::{ClaimOutcome, Curve, FigureOutcome, page, value};
use tacit_analysis::chart::{Views, table_picture};
use tacit_runs::RunsError;
use tacit_runs::store::write_whole;
use tacit_runs::sweep::Control;

impl LiveRuns {
    /// Executes the live runs of those `figures` that have any.
    ///
    /// # Errors
    /// If a run cannot be executed.
    pub fn make(figures: &[Figure], quick: bool, make: &mut dyn MakeLive) -> Result<Self, RunsError> {
        let mut all = Self::default();
        for figure in figures {
            if let Some(outcome) = figure.kind.make_live(quick, make)? {
                all.0.insert(figure.id.clone(), outcome);
            }
        }
        Ok(all)
    }
}

/// Runs `figures`. If a directory is given, draws each of them and a page of all.
///
/// # Errors
/// On a failed run, an interruption, or a directory that cannot be read or written. A claim that fails is not an error.
pub fn run(
    figures: &[Figure],
    options: &Options,
    control: Control<'_>,
) -> Result<Vec<FigureOutcome>, RunsError> {
    if let Some(from) = options.from.as_ref().filter(|_| options.all) {
        // If the directory did not exist, all figures would be skipped and a page be written to a new directory.
        fs::read_dir(from).map_err(RunsError::io(from))?;
    }
    let mut outcomes = Vec::new();
    let mut drawings = Vec::new();
    for figure in figures {
        let (outcome, drawing) = outcome(figure, options, control)?;
        outcomes.push(outcome);
        drawings.push(drawing);
    }
    if let Some(directory) = &options.directory {
        page::write(directory, &outcomes, &drawings)?;
    }
    Ok(outcomes)
}

/// The outcome of a figure, and its drawing, unless the figure is skipped.
fn outcome(
    figure: &Figure,
    options: &Options,
    control: Control<'_>,
) -> Result<(FigureOutcome, Option<Drawing>), RunsError> {
    let versions = RefCell::new(BTreeSet::new());
    let making = RunContext { options, control, versions: &versions };
    if options.from.is_none() {
        making.made_by([tacit_runs::VERSION]);
    }
    let mut outcome = FigureOutcome {
        id: figure.id.clone(),
        title: figure.title.clone(),
        paper: figure.paper.clone(),
        note: figure.note.clone(),
        table: None,
        depends: None,
        claims: Vec::new(),
        in_full_only: 0,
        measurements: Vec::new(),
        not_claimed: None,
        made_by: Vec::new(),
        svg: None,
        skipped: skip_reason(figure, options),
    };
    let mut drawing = None;
    if outcome.skipped.is_none() {
        let findings = figure.kind.results(figure, making)?;
        let curves = findings.curves();
        let table = figure.table.as_ref().zip(curves);
        outcome.table = table.map(|(table, curves)| table.measured(|measure| curves.measured(measure)));
        outcome.depends = curves.and_then(|curves| curves.depends.clone());
        outcome.measurements = findings.measurements.clone();
        outcome.not_claimed = curves.and_then(|curves| not_claimed(figure, curves));
        outcome.claims = judged(figure, &findings, options.quick);
        outcome.in_full_only = figure.claims.len() - outcome.claims.len();
        let views = drawn(figure, &findings, outcome.table.as_ref());
        let file = views.as_ref().and_then(Views::on_paper).zip(options.directory.as_ref());
        if let Some((picture, directory)) = file {
            let path = directory.join(file_name(&figure.id, ".svg"));
            write_whole(&path, picture.to_svg_file().as_bytes())?;
            outcome.svg = Some(path);
        }
        drawing = views.map(|views| Drawing { views, points: curves.map(|curves| points(figure, curves)) });
    }
    outcome.made_by = versions.into_inner().into_iter().collect();
    Ok((outcome, drawing))
}

/// Why a figure is skipped: this machine cannot produce it, or there are no results to read.
fn skip_reason(figure: &Figure, options: &Options) -> Option<String> {
    let Some(from) = &options.from else { return figure.kind.skip_reason(&figure.id, options) };
    (options.all && !figure.kind.is_stored(figure, from))
        .then(|| format!("no results in {}; tacit figure {} makes them", from.display(), figure.id))
}

/// Judges the claims. Quick runs leave out claims that say so, and claims about runs that are not included.
fn judged(figure: &Figure, findings: &Findings, quick: bool) -> Vec<ClaimOutcome> {
    let makes = |claim: &Claim| {
        let measure = claim.measure.as_curves();
        !claim.is_left_out() && measure.is_none_or(|measure| figure.kind.makes_in_short(measure))
    };
    let outcome = |claim: &Claim| {
        let measured = findings.measured(&claim.measure);
        let mut outcome = claim.judge(measured.number, measured.over_seeds, quick);
        if let Some(cell) = measured.cell {
            (outcome.at, outcome.interval) = (Some(cell.x), cell.interval);
        }
        if let Some(reason) = (findings.disturbance)(claim, outcome.measured) {
            outcome.skip(reason);
        }
        outcome
    };
    figure.claims.iter().filter(|claim| !quick || makes(claim)).map(outcome).collect()
}

/// Words by which the curves of the four systems are named.
const SYSTEMS: [&str; 4] = ["tack", "hack", "rre", "fwp"];

/// Points that are drawn of the four systems beside a rival, and that no claim measures.
fn not_claimed(figure: &Figure, drawn: &PlotData) -> Option<String> {
    let is_ours = |curve: &Curve| {
        let name = curve.name.to_lowercase();
        name.split(|sign: char| !sign.is_alphabetic()).any(|word| SYSTEMS.contains(&word))
    };
    let curves = &drawn.curves.curves;
    if curves.iter().all(is_ours) {
        return None;
    }
    let measures: Vec<&Measure> = figure.measures().filter(|measure| measure.variant().is_none()).collect();
    let gaps = |curve: &Curve| {
        let is_claimed =
            |x: f64| measures.iter().any(|measure| measure.reads(std::slice::from_ref(&curve.name), x));
        let points =
            || curve.points.iter().filter(|(_, columns)| columns.first().copied().flatten().is_some());
        let open: Vec<String> = points().filter(|(x, _)| !is_claimed(*x)).map(|(x, _)| value(*x)).collect();
        match open.len() {
            0 => None,
            all if all == points().count() => Some(curve.name.clone()),
            // A course over time.
            many if many > 8 => Some(format!("{} at {many} of {} places", curve.name, points().count())),
            _ => Some(format!("{} at {}", curve.name, open.join(", "))),
        }
    };
    let open: Vec<String> = curves.iter().filter(|curve| is_ours(curve)).filter_map(gaps).collect();
    (!open.is_empty()).then(|| format!("Not claimed: {}.", open.join("; ")))
}

/// The picture; `None` for a figure without curves, table and frames.
fn drawn(figure: &Figure, findings: &Findings, table: Option<&MeasuredTable>) -> Option<Views> {
    findings.picture.clone().or_else(|| match table {
        Some(table) => {
            Some(Views::one(table_picture(&format!("{}: {}", figure.id, figure.title), &table.table())))
        }
        None => findings.curves().map(|curves| picture(figure, curves)),
    })
}
