//! Computes or runs figures, holds the claims against the results, draws.

use std::path::{Path, PathBuf};

use super::file::{CLIENTS, Claim, Figure, Measure, Source, Sweep};
use super::live::{self, Live};
use super::measure::{Curve, Curves, same};
use super::timeline::Timeline;
use super::{ClaimOutcome, Outcome, page};
use crate::chart::{Line, LineChart, standalone};
use crate::compare::quoted;
use crate::error::LabError;
use crate::metric;
use crate::plan::{self, Place, Plan};
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
    /// The `tacit` program, for figures of live hops; `None` skips those.
    pub program: Option<PathBuf>,
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
        let outcome = |claims, svg, skipped| Outcome {
            id: figure.id.clone(),
            title: figure.title.clone(),
            paper: figure.paper.clone(),
            claims,
            svg,
            skipped,
        };
        if let (Source::Live(_), Some(obstacle)) =
            (&figure.source, Live::obstacle(options.program.as_deref()))
        {
            pictures.push(String::new());
            outcomes.push(outcome(Vec::new(), None, Some(obstacle)));
            continue;
        }
        let (svg, claims) = match &figure.source {
            Source::Curves { theory, sweep } => {
                let theory = theory.as_deref().map(from_theory);
                let drawn = match sweep {
                    Some(sweep) => with_theory(from_sweep(figure, sweep, options, control)?, theory),
                    None => theory.expect("the figure file was checked: it has one or the other"),
                };
                from_curves(figure, &drawn)
            }
            Source::Timeline(timeline) => from_timeline(figure, timeline)?,
            Source::Live(live) => {
                let drawn = from_live(live, options)?;
                if let Some(directory) = &options.directory {
                    let points = live::points_json(&figure.id, &drawn.curves);
                    write_whole(
                        &directory.join(file_name(&figure.id, ".json")),
                        points.to_string().as_bytes(),
                    )?;
                }
                from_curves(figure, &drawn)
            }
        };
        let path =
            options.directory.as_deref().map(|directory| directory.join(file_name(&figure.id, ".svg")));
        if let Some(path) = &path {
            write_whole(path, standalone(&svg).as_bytes())?;
        }
        pictures.push(svg);
        outcomes.push(outcome(claims, path, None));
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

fn from_live(live: &Live, options: &Options) -> Result<Drawn, LabError> {
    let live = if options.quick { live.quick() } else { live.clone() };
    let program = options.program.as_deref().unwrap_or(Path::new("tacit"));
    Ok(Drawn {
        x: live.x_label.clone(),
        y: "HACK's gain over stock (%)".to_owned(),
        curves: live.run(program)?,
    })
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

/// Adds what theory says of the same x.
fn with_theory(mut drawn: Drawn, theory: Option<Drawn>) -> Drawn {
    let swept: Vec<f64> =
        drawn.curves.curves.iter().flat_map(|curve| curve.points.iter().map(|(x, _)| *x)).collect();
    for mut curve in theory.into_iter().flat_map(|theory| theory.curves.curves) {
        curve.points.retain(|(x, _)| swept.iter().any(|other| same(*x, *other)));
        drawn.curves.curves.push(curve);
    }
    drawn
}

fn from_sweep(
    figure: &Figure,
    sweep: &Sweep,
    options: &Options,
    control: Control<'_>,
) -> Result<Drawn, LabError> {
    let sweep = &if options.quick { sweep.quick() } else { sweep.clone() };
    let base = Scenario::load(&sweep.scenario, &sweep.assignments)?;
    let seeds = sweep.seeds.unwrap_or(base.run.seeds);
    let plan = plan(sweep, &base, seeds)?;
    let store = match &options.directory {
        Some(directory) => Some(Store::open(&directory.join(file_name(&figure.id, "")))?),
        None => None,
    };
    let records = sweep::run(&plan, store.as_ref(), control)?;
    if let Some(store) = &store {
        store.write(&provenance(figure, sweep, &base, options, &records), &records)?;
    }
    Ok(Drawn {
        x: sweep.x_label.clone(),
        y: sweep.y_label.clone(),
        curves: curves(figure, sweep, seeds, &records),
    })
}

/// Runs by x, then value of the second axis, then scheme, then seed: the order [`curves`] relies on.
fn plan(sweep: &Sweep, base: &Scenario, seeds: u32) -> Result<Plan, LabError> {
    let mut plan = Plan::default();
    for x in &sweep.axis.values {
        for best_of in second_values(sweep) {
            let (scenario, clients) = at(sweep, *x, best_of, base)?;
            for scheme in &sweep.schemes {
                plan.push_at(&scenario, scheme, clients, Place { x: Some(*x), best_of }, seeds)?;
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
fn at(sweep: &Sweep, x: f64, best_of: Option<f64>, base: &Scenario) -> Result<(Scenario, u32), LabError> {
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
        x_label: sweep.x_label.clone(),
        y_label: sweep.y_label.clone(),
        column: sweep.column.clone(),
    }
}

/// One curve per scheme, averaged over seeds; the plotted column first, then every one a claim needs.
/// With a second axis it is the envelope: at each x all columns of the value that gives most of the
/// first.
fn curves<'a>(figure: &'a Figure, sweep: &Sweep, seeds: u32, records: &[RunRecord]) -> Curves {
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
    let (seconds, schemes) = (second_values(sweep).len(), sweep.schemes.len());
    let group = |x: usize, second: usize, scheme: usize| {
        let first = ((x * seconds + second) * schemes + scheme) * seeds as usize;
        let of = &records[first..first + seeds as usize];
        columns.iter().map(|column| mean(of, column)).collect::<Vec<_>>()
    };
    let curve = |name: String, point: &dyn Fn(usize) -> Vec<Option<f64>>| {
        let points = sweep.axis.values.iter().enumerate().map(|(index, x)| (*x, point(index))).collect();
        Curve { name, points }
    };
    let best = |x: usize, scheme: usize| {
        let all = (0..seconds).map(|second| group(x, second, scheme));
        let of = |columns: &[Option<f64>]| columns[0].unwrap_or(f64::NEG_INFINITY);
        // Of equals the first.
        all.reduce(|best, other| if of(&other) > of(&best) { other } else { best }).unwrap_or_default()
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

/// Mean of a column over the seeds of a place.
fn mean(of: &[RunRecord], column: &str) -> Option<f64> {
    let (metric, factor) = metric::resolve_column(column)?;
    let name = metric::ALL.get(metric)?.name;
    Some(Mean::of(of.iter().filter_map(|record| record.metric(name)))?.mean * factor)
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
        let options = Options { quick: true, directory: Some(directory.path().to_owned()), program: None };
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
                &options,
                Control::unattended(),
            )
            .unwrap()
        };
        let goodput = |drawn: &Drawn, name: &str| -> Vec<f64> {
            let curve = drawn.curves.curves.iter().find(|curve| curve.name == name).unwrap();
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
    fn claims_about_curves_that_are_not_there_are_refused() {
        let text = SWEEP.replace("over = \"stock\"", "over = \"tcp-l8\"");
        let error = Figure::parse("x", "x.toml", &text).unwrap_err().to_string();
        assert!(error.contains("measures \"tcp-l8\", which is not swept"), "{error}");
        let text = SWEEP.replace("tcp_acks_on_air_per_s", "tcp_acks");
        assert!(Figure::parse("x", "x.toml", &text).unwrap_err().to_string().contains("is no metric"));
    }
}
