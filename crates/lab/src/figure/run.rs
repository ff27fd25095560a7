//! Computes or runs figures, holds the claims against the results, draws.

use std::path::{Path, PathBuf};

use super::file::{Axis, CLIENTS, Claim, Figure, Measure, Source, Sweep, resolve_column};
use super::measure::{Curve, Curves};
use super::timeline::Timeline;
use super::{ClaimOutcome, Outcome, page};
use crate::chart::{Line, LineChart, standalone};
use crate::compare::quoted;
use crate::error::LabError;
use crate::metric;
use crate::plan::{self, Plan};
use crate::record::RunRecord;
use crate::scenario::Scenario;
use crate::stats::Mean;
use crate::store::{Provenance, Store, write_whole};
use crate::sweep::{self, Control};
use crate::theory;

/// How to run figures.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Fewer and shorter runs, as the files say.
    pub quick: bool,
    /// Where pictures and results go; `None` keeps nothing.
    pub directory: Option<PathBuf>,
}

/// Curves with what their axes mean.
struct Drawn {
    x: String,
    y: String,
    curves: Curves,
}

/// Runs `figures`, and draws them and a page of all of them where a directory is given.
///
/// # Errors
/// As a sweep: on a failed run, an interruption, or a directory that cannot be written. A claim that
/// fails is no error.
pub fn run(figures: &[Figure], options: &Options, control: Control<'_>) -> Result<Vec<Outcome>, LabError> {
    let mut outcomes = Vec::new();
    let mut pictures = Vec::new();
    for figure in figures {
        let (svg, claims) = match &figure.source {
            Source::Theory(id) => from_curves(figure, &from_theory(id)),
            Source::Sweep(sweep) => from_curves(figure, &from_sweep(figure, sweep, options, control)?),
            Source::Timeline(timeline) => from_timeline(figure, timeline)?,
        };
        let path =
            options.directory.as_deref().map(|directory| directory.join(file_name(&figure.id, ".svg")));
        if let Some(path) = &path {
            write_whole(path, standalone(&svg).as_bytes())?;
        }
        pictures.push(svg);
        outcomes.push(Outcome {
            id: figure.id.clone(),
            title: figure.title.clone(),
            paper: figure.paper.clone(),
            claims,
            svg: path,
        });
    }
    if let Some(directory) = &options.directory {
        page::write(directory, &outcomes, &pictures)?;
    }
    Ok(outcomes)
}

fn file_name(id: &str, end: &str) -> String {
    format!("{}{end}", id.replace('/', "-"))
}

/// Picture and claims.
type Judged = (String, Vec<ClaimOutcome>);

fn from_curves(figure: &Figure, drawn: &Drawn) -> Judged {
    let measure = |measure: &Measure| match measure {
        Measure::Curves(measure) => measure.of(&drawn.curves),
        Measure::Timeline(_) => None,
    };
    (picture(figure, drawn), claims(figure, measure))
}

fn from_timeline(figure: &Figure, timeline: &Timeline) -> Result<Judged, LabError> {
    let shown = timeline.run(&figure.id)?;
    let measure = |measure: &Measure| match measure {
        Measure::Curves(_) => None,
        Measure::Timeline(measure) => measure.of(&shown),
    };
    let picture = shown.picture(&format!("{}: {}", figure.id, figure.title));
    Ok((picture, claims(figure, measure)))
}

fn claims(figure: &Figure, measure: impl Fn(&Measure) -> Option<f64>) -> Vec<ClaimOutcome> {
    let outcome = |claim: &Claim| {
        let measured = measure(&claim.measure);
        ClaimOutcome {
            text: claim.text.clone(),
            paper: claim.paper,
            measured,
            tolerance: claim.tolerance,
            unit: claim.unit.clone(),
            pass: measured.is_some_and(|measured| claim.holds(measured)),
            deviation: claim.deviation.clone(),
        }
    };
    figure.claims.iter().map(outcome).collect()
}

fn from_theory(id: &str) -> Drawn {
    let figure = theory::figure(id).expect("the figure file was checked against theory::IDS");
    let curve = |series: &theory::Series| Curve {
        name: series.name.clone(),
        points: series.points.iter().map(|(x, y)| (*x, vec![Some(*y)])).collect(),
    };
    let curves = figure.series.iter().map(curve).collect();
    Drawn {
        x: figure.x.to_owned(),
        y: figure.y.to_owned(),
        curves: Curves { columns: vec![String::new()], curves },
    }
}

fn from_sweep(
    figure: &Figure,
    sweep: &Sweep,
    options: &Options,
    control: Control<'_>,
) -> Result<Drawn, LabError> {
    let mut assignments = sweep.assignments.clone();
    if options.quick {
        assignments.extend(sweep.quick_assignments.iter().cloned());
    }
    let base = Scenario::load(&sweep.scenario, &assignments)?;
    let quick_seeds = sweep.quick_seeds.filter(|_| options.quick);
    let seeds = quick_seeds.or(sweep.seeds).unwrap_or(base.run.seeds);
    let plan = plan(sweep, &base, &assignments, seeds)?;
    let store = match &options.directory {
        Some(directory) => Some(Store::open(&directory.join(file_name(&figure.id, "")))?),
        None => None,
    };
    let records = sweep::run(&plan, store.as_ref(), control)?;
    if let Some(store) = &store {
        store.write(&provenance(figure, sweep, &base, options, &records), &records)?;
    }
    Ok(Drawn { x: sweep.x_label.clone(), y: sweep.y_label.clone(), curves: curves(figure, sweep, &records) })
}

fn plan(sweep: &Sweep, base: &Scenario, assignments: &[String], seeds: u32) -> Result<Plan, LabError> {
    let mut plan = Plan::default();
    for x in &sweep.axis.values {
        let (scenario, clients) = at(&sweep.axis, *x, base, &sweep.scenario, assignments)?;
        for scheme in &sweep.schemes {
            plan.push(&scenario, scheme, clients, Some(*x), seeds)?;
        }
    }
    Ok(plan)
}

/// The scenario and its clients at one place of the axis.
fn at(
    axis: &Axis,
    x: f64,
    base: &Scenario,
    name: &str,
    assignments: &[String],
) -> Result<(Scenario, u32), LabError> {
    if axis.key == CLIENTS {
        return Ok((base.clone(), x as u32));
    }
    let mut assignments = assignments.to_vec();
    assignments.push(format!("{}={x}{}", axis.key, axis.unit));
    let scenario = Scenario::load(name, &assignments)?;
    let clients = scenario.clients;
    Ok((scenario, clients))
}

fn provenance(
    figure: &Figure,
    sweep: &Sweep,
    base: &Scenario,
    options: &Options,
    records: &[RunRecord],
) -> Provenance {
    let seeds = records.iter().map(|record| record.label.seed).max().unwrap_or(0);
    let quick = if options.quick { " --quick" } else { "" };
    Provenance {
        scenario: base.name.clone(),
        description: figure.title.clone(),
        scenario_text: base.text.clone(),
        seeds: format!("1 to {seeds}"),
        version: crate::VERSION.to_owned(),
        command: format!("tacit figure {}{quick}", quoted(&figure.id)),
        schemes: sweep.schemes.iter().map(|scheme| scheme.name).collect::<Vec<_>>().join(","),
        digest: plan::combined_digest(records),
    }
}

/// One curve per scheme, averaged over seeds; the plotted column first, then every one a claim needs.
fn curves<'a>(figure: &'a Figure, sweep: &Sweep, records: &[RunRecord]) -> Curves {
    let mut columns = vec![sweep.column.clone()];
    let of_claim = |claim: &'a Claim| match &claim.measure {
        Measure::Curves(measure) => measure.column(),
        Measure::Timeline(_) => None,
    };
    for column in figure.claims.iter().filter_map(of_claim) {
        if !columns.iter().any(|known| known == column) {
            columns.push(column.to_owned());
        }
    }
    let value = |of: &[&RunRecord], column: &String| {
        let (metric, factor) = resolve_column(column)?;
        let name = metric::ALL.get(metric)?.name;
        Some(Mean::of(of.iter().filter_map(|record| record.metric(name)))?.mean * factor)
    };
    let curve = |scheme: &&crate::scheme::Scheme| {
        let point = |x: &f64| {
            let here = |record: &&RunRecord| {
                record.label.scheme == scheme.name
                    && record.label.x.is_some_and(|other| other.total_cmp(x).is_eq())
            };
            let of: Vec<&RunRecord> = records.iter().filter(here).collect();
            (*x, columns.iter().map(|column| value(&of, column)).collect())
        };
        Curve { name: scheme.name.to_owned(), points: sweep.axis.values.iter().map(point).collect() }
    };
    let curves = sweep.schemes.iter().map(curve).collect();
    Curves { columns, curves }
}

fn picture(figure: &Figure, drawn: &Drawn) -> String {
    let line = |curve: &Curve| Line {
        name: curve.name.clone(),
        points: curve
            .points
            .iter()
            .filter_map(|(x, columns)| Some((*x, columns.first().copied().flatten()?)))
            .collect(),
    };
    LineChart {
        alt: format!("{}: {}", figure.id, figure.title),
        x: drawn.x.clone(),
        y: drawn.y.clone(),
        log_x: figure.log_x,
        log_y: figure.log_y,
        lines: drawn.curves.curves.iter().map(line).collect(),
    }
    .to_svg()
}

/// Where [`run`] writes its page.
pub(super) fn page_path(directory: &Path) -> PathBuf {
    directory.join("index.html")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SWEEP: &str = "\
title = \"t\"
paper = \"p\"
[sweep]
scenario = \"wlan-11n-150\"
set = [\"run.duration=400ms\", \"run.measure-from=100ms\"]
schemes = [\"stock\", \"udp\"]
x = { key = \"wifi.rate\", unit = \"Mbps\", values = [65, 150] }
seeds = 2
quick = { seeds = 1 }
[[claim]]
text = \"UDP is faster\"
paper = 1
measure = { ratio = \"udp\", over = \"stock\", x = 150 }
bound = \"at-least\"
tolerance = 0
[[claim]]
text = \"UDP has no ACKs\"
paper = 5
measure = { value = \"udp\", column = \"tcp_acks_on_air_per_s\" }
tolerance = 1
deviation = \"it never has\"
";

    #[test]
    fn a_sweep_is_run_measured_and_drawn() {
        let directory = tempfile::tempdir().unwrap();
        let figure = Figure::parse("test/sweep", "sweep.toml", SWEEP).unwrap();
        let options = Options { quick: true, directory: Some(directory.path().to_owned()) };
        let outcomes = run(&[figure], &options, Control::unattended()).unwrap();
        let claims = &outcomes[0].claims;
        assert!(claims[0].pass && claims[0].measured.unwrap() > 1.0, "{claims:?}");
        assert_eq!((claims[1].pass, claims[1].measured, claims[1].fails()), (false, Some(0.0), false));
        assert!(!outcomes[0].fails());
        assert!(directory.path().join("test-sweep.svg").is_file());
        assert!(page_path(directory.path()).is_file());
        let (provenance, records) = Store::existing(&directory.path().join("test-sweep")).read().unwrap();
        assert_eq!((records.len(), provenance.command.as_str()), (4, "tacit figure test/sweep --quick"));
    }

    #[test]
    fn claims_about_curves_that_are_not_there_are_refused() {
        let text = SWEEP.replace("over = \"stock\"", "over = \"tcp-l8\"");
        let error = Figure::parse("x", "x.toml", &text).unwrap_err().to_string();
        assert!(error.contains("measures \"tcp-l8\", which is not swept"), "{error}");
        let text = SWEEP.replace("tcp_acks_on_air_per_s", "tcp_acks");
        assert!(Figure::parse("x", "x.toml", &text).unwrap_err().to_string().contains("is no metric"));
    }
}
