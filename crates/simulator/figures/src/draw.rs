//! Draws curves, with marks for the claims about them and a panel of gains.

use super::claim::Reference;
use super::figure::{Claim, Figure, Gain};
use super::measure::{Curve, Curves, Measure, same};
use super::plot_data::PlotData;
use tacit_analysis::chart::{DotChart, Line, LineChart, Mark, Panel, Views, stacked};
use tacit_runs::aggregate;
use tacit_runs::store::Sheet;

/// The figure: the curves, then the gain, then the variants.
pub(super) fn picture(figure: &Figure, drawn: &PlotData) -> Views {
    let alt = format!("{}: {}", figure.id, figure.title);
    if figure.plot.cdf {
        let charts = distributions(figure, drawn);
        let panels: Vec<Panel<'_>> = charts.iter().map(Panel::Lines).collect();
        return Views::new(|width| stacked(&alt, &panels, width));
    }
    let (marks, marks_name) = marks_of(figure, &drawn.curves);
    let curves = LineChart { marks, marks_name, ..curves_chart(figure, drawn, &drawn.curves) };
    let gain = figure.plot.gain.as_ref().map(|gain| gain_panel(figure, drawn, gain));
    let variants = figure.plot.panels.iter().filter_map(|name| {
        let (_, curves) = drawn.variants.iter().find(|(known, _)| known == name)?;
        // The first panel names the quantity, because a panel is too low for both names.
        Some(LineChart { y: name.clone(), ..curves_chart(figure, drawn, curves) })
    });
    let mut charts: Vec<LineChart> = [curves].into_iter().chain(gain).chain(variants).collect();
    // The x axis is labelled once, below all panels.
    let above = charts.len() - 1;
    charts.iter_mut().take(above).for_each(|chart| chart.x = String::new());
    let ranked: Vec<Option<Vec<DotChart>>> =
        charts.iter().map(|chart| LineChart { x: drawn.x.clone(), ..chart.clone() }.ranked()).collect();
    let panels = charts.iter().zip(&ranked).flat_map(|(chart, ranked)| match ranked {
        Some(dots) => dots.iter().map(Panel::Dots).collect(),
        None => vec![Panel::Lines(chart)],
    });
    let panels: Vec<Panel<'_>> = panels.collect();
    Views::new(|width| stacked(&alt, &panels, width))
}

/// The plotted points as a table.
pub(super) fn points(figure: &Figure, drawn: &PlotData) -> Sheet {
    curves_chart(figure, drawn, &drawn.curves).sheet()
}

/// Distributions of the plotted column over the seeds: of the sweep itself, then of the variants with panels.
fn distributions(figure: &Figure, drawn: &PlotData) -> Vec<LineChart> {
    let panels = figure.plot.panels.iter().map(|name| Some(name.as_str()));
    let names: Vec<Option<&str>> = [None].into_iter().chain(panels).collect();
    let last = names.len() - 1;
    let chart = |(index, variant): (usize, Option<&str>)| {
        let curves = drawn.curves.curves.iter();
        let line = |curve: &Curve| {
            let values = drawn.seed_curves(variant).filter_map(|curves| curves.named(&curve.name));
            let values = values.filter_map(|curve| line(curve).points.first().map(|(_, value)| *value));
            distribution(&curve.name, values.collect())
        };
        LineChart {
            x: if index == last { drawn.y.clone() } else { String::new() },
            y: variant.unwrap_or("runs with no more (%)").to_owned(),
            lines: curves.map(line).collect(),
            ..distribution_chart(figure)
        }
    };
    names.into_iter().enumerate().map(chart).collect()
}

/// An empty chart for cumulative distributions.
pub(super) fn distribution_chart(figure: &Figure) -> LineChart {
    LineChart {
        log_x: figure.plot.log_x,
        dense: true,
        steps: true,
        concerned: concerned(figure),
        ..LineChart::default()
    }
}

/// For each of `values`, the percentage of values that are not larger.
pub(super) fn distribution(name: &str, mut values: Vec<f64>) -> Line {
    values.sort_unstable_by(f64::total_cmp);
    let count = values.len() as f64;
    let points =
        values.into_iter().zip(1_u32..).map(|(value, rank)| (value, f64::from(rank) / count * 100.0));
    Line { name: name.to_owned(), points: points.collect(), ..Line::default() }
}

fn curves_chart(figure: &Figure, drawn: &PlotData, curves: &Curves) -> LineChart {
    LineChart {
        x: drawn.x.clone(),
        y: drawn.y.clone(),
        log_x: figure.plot.log_x,
        log_y: figure.plot.log_y,
        lines: curves.curves.iter().map(line).collect(),
        concerned: concerned(figure),
        ..LineChart::default()
    }
}

/// Marks for claims about the plotted curves, and their sources.
pub(super) fn marks_of(figure: &Figure, curves: &Curves) -> (Vec<Mark>, String) {
    named(marks(figure, curves))
}

fn line(curve: &Curve) -> Line {
    let plotted = |(x, columns): &(f64, Vec<Option<f64>>)| Some((*x, columns.first().copied().flatten()?));
    let is_plotted = |index: &usize| curve.points.get(*index).and_then(plotted).is_some();
    let ci95 = curve.ci95.iter().copied().enumerate().filter(|(index, _)| is_plotted(index));
    Line {
        name: curve.name.clone(),
        points: curve.points.iter().filter_map(plotted).collect(),
        ci95: ci95.map(|(_, ci)| ci).collect(),
    }
}

/// The curves that the panel of gains and the claims refer to.
pub(super) fn concerned(figure: &Figure) -> Vec<String> {
    let gain = figure.plot.gain.iter().flat_map(|gain| [gain.curve.as_str(), &gain.over]);
    let measures = figure.claims.iter().filter_map(|claim| claim.measure.as_curves());
    gain.chain(measures.flat_map(Measure::curves)).map(str::to_owned).collect()
}

/// Whether a claimed gain is shown in the panel of gains.
fn in_panel(figure: &Figure, claim: &Claim) -> bool {
    let Some(measure) = claim.measure.as_curves() else { return false };
    let panel = figure.plot.gain.as_ref().map(|gain| (gain.curve.as_str(), gain.over.as_str()));
    panel.is_some() && measure.gain() == panel && measure.plotted().is_some()
}

/// A mark and its source.
type LabelledMark<'a> = (Mark, &'a str);

/// Marks for claims about the drawn curves. A claimed gain becomes the value it implies for its curve.
fn marks<'a>(figure: &'a Figure, curves: &Curves) -> Vec<LabelledMark<'a>> {
    let mark = |claim: &'a Claim| {
        let measure = claim.measure.as_curves()?;
        let (name, (from, to)) = measure.plotted()?;
        let line = curves.curves.iter().position(|curve| curve.name == name)?;
        let (from, to) = ends(curves.curves[line].points.iter().map(|(x, _)| *x), from, to)?;
        // The mean of gains over several places has no position in this picture.
        if !same(from, to) && measure.curves().count() > 1 {
            return None;
        }
        let at = |value: f64| measure.implied(curves, from, value);
        let reference = claim.reference()?;
        let (low, high) = reference.ends();
        let mark = Mark { line, from, to, y: at(reference.value)?, low: at(low)?, high: at(high)? };
        Some((mark, reference.source.as_str()))
    };
    figure.claims.iter().filter(|claim| !in_panel(figure, claim)).filter_map(mark).collect()
}

/// The first and the last place within a range.
fn ends(places: impl Iterator<Item = f64>, from: f64, to: f64) -> Option<(f64, f64)> {
    let mut inside = places.filter(|x| (from..=to).contains(x));
    let first = inside.next()?;
    Some((first, inside.last().unwrap_or(first)))
}

/// The first mark for each curve and place, and the names of the sources.
fn named(labelled: Vec<LabelledMark<'_>>) -> (Vec<Mark>, String) {
    let mut marks: Vec<Mark> = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    for (mark, source) in labelled {
        let there =
            |other: &Mark| other.line == mark.line && same(other.from, mark.from) && same(other.to, mark.to);
        if marks.iter().any(there) {
            continue;
        }
        marks.push(mark);
        if !names.contains(&source) {
            names.push(source);
        }
    }
    (marks, names.join(", "))
}

fn gain_panel(figure: &Figure, drawn: &PlotData, gain: &Gain) -> LineChart {
    let curve = |name: &str| drawn.curves.named(name).map(line);
    let (gained, over) = (curve(&gain.curve).unwrap_or_default(), curve(&gain.over).unwrap_or_default());
    let gain_at = |(x, value): &(f64, f64)| {
        let (_, base) = over.points.iter().find(|(other, base)| same(*x, *other) && *base > 0.0)?;
        Some((*x, aggregate::gain(*value, *base) * 100.0))
    };
    let points: Vec<(f64, f64)> = gained.points.iter().filter_map(gain_at).collect();
    let mark = |claim: &Claim, reference: &Reference| {
        let measure = claim.measure.as_curves()?;
        let (_, (from, to)) = measure.plotted()?;
        let (from, to) = ends(points.iter().map(|(x, _)| *x), from, to)?;
        let (low, high) = reference.ends();
        Some(Mark { line: 0, from, to, y: reference.value, low, high })
    };
    let claims = figure.claims.iter().filter(|claim| in_panel(figure, claim));
    let claims = claims.filter_map(|claim| Some((claim, claim.reference()?)));
    let (marks, marks_name) = named(
        claims
            .filter_map(|(claim, reference)| Some((mark(claim, reference)?, reference.source.as_str())))
            .collect(),
    );
    LineChart {
        x: drawn.x.clone(),
        y: "gain (%)".to_owned(),
        log_x: figure.plot.log_x,
        lines: vec![Line { name: format!("{} over {}", gain.curve, gain.over), points, ..Line::default() }],
        marks,
        marks_name,
        ..LineChart::default()
    }
}
