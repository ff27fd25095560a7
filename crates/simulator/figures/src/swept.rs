//! Executes the runs of a sweep and computes its curves.

use std::sync::Arc;

use super::axis::CLIENTS;
use super::figure::Figure;
use super::measure::{Curve, Curves};
use super::plot_data::PlotData;
use super::results::{Results, RunContext, file_name, slug};
use super::sweep::Sweep;
use tacit_runs::RunsError;
use tacit_runs::aggregate::{Column, Group};
use tacit_runs::plan::{Plan, SweepPoint};
use tacit_runs::record::RunSummary;
use tacit_runs::store::Provenance;
use tacit_scenario::Scenario;

/// The curves of the runs of `sweep` and of its variants.
pub(super) fn swept(figure: &Figure, sweep: &Sweep, making: RunContext<'_>) -> Result<PlotData, RunsError> {
    let sweep = if making.options.quick { sweep.quick() } else { sweep.clone() };
    let plain = simulate(figure, &sweep, None, making)?;
    let labels = || (sweep.x_label.clone(), sweep.y_label.clone());
    let new = |curves| PlotData::new(labels().0, labels().1, curves);
    let mut drawn = new(plain.curves);
    drawn.seeds = plain.seeds.into_iter().map(new).collect();
    drawn.average = sweep.average;
    let mut varied = Vec::new();
    for variant in &sweep.variants {
        let simulated = simulate(figure, &sweep.varied(variant), Some(&variant.name), making)?;
        drawn.variants.push((variant.name.clone(), simulated.curves));
        for (drawn, curves) in drawn.seeds.iter_mut().zip(simulated.seeds) {
            drawn.variants.push((variant.name.clone(), curves));
        }
        varied.push((variant.name.as_str(), simulated.records));
    }
    let varied: Vec<(&str, &[RunSummary])> =
        varied.iter().map(|(name, records)| (*name, records.as_slice())).collect();
    drawn.depends = sweep.depends.as_ref().map(|depends| depends.table(&sweep, &plain.records, &varied));
    Ok(drawn)
}

/// The runs of a sweep, or of one variant of it.
struct SweepRuns {
    /// Averages over the seeds.
    curves: Curves,
    /// For each seed; empty without several seeds.
    seeds: Vec<Curves>,
    records: Vec<RunSummary>,
}

/// Executes the runs of a sweep or of one variant, and stores them in a separate directory.
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
    let records = results.runs(&plan, |runs| provenance(figure, sweep, variant, &base, &results, runs))?;
    // The runs of a place are consecutive, one per seed.
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

/// Runs ordered by x, then second axis, then scheme, then seed. [`curves`] relies on this order.
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

/// Values of the second axis. A sweep without one has a single place there.
fn second_values(sweep: &Sweep) -> Vec<Option<f64>> {
    match &sweep.best_of {
        Some(best_of) => best_of.axis.values.iter().copied().map(Some).collect(),
        None => vec![None],
    }
}

/// The scenario and number of clients at one place of the axes.
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
    results: &Results<'_>,
    records: &[RunSummary],
) -> Provenance {
    let description = match variant {
        Some(variant) => format!("{}: {variant}", figure.title),
        None => figure.title.clone(),
    };
    let seeds = format!("1 to {}", records.iter().map(|record| record.label.seed).max().unwrap_or(0));
    let schemes = sweep.schemes.iter().map(|scheme| scheme.name).collect::<Vec<_>>().join(",");
    // The figure's file contains all settings, so there are no further conditions.
    Provenance {
        x_label: sweep.x_label.clone(),
        y_label: sweep.y_label.clone(),
        column: sweep.column.clone(),
        ..results.provenance(base, description, seeds, schemes, records)
    }
}

/// One curve per scheme, averaged over the runs of each of `places`. The first column is the plotted one, followed by
/// those that claims need. With a second axis, the curve is the envelope: at each x, all columns of the value with the
/// highest first column.
fn curves<'a>(figure: &Figure, sweep: &Sweep, places: &[&'a [RunSummary]]) -> Curves {
    let columns = figure.columns(std::iter::once(sweep.column.as_str()));
    let (seconds, schemes) = (second_values(sweep).len(), sweep.schemes.len());
    let group = |x: usize, second: usize, scheme: usize| {
        Group::new(places[(x * seconds + second) * schemes + scheme])
    };
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

#[cfg(test)]
mod tests {
    use crate::page::page_path;
    use crate::{Figure, Options, Verdict, run};
    use tacit_runs::store::Store;
    use tacit_runs::sweep::Control;

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
        assert_eq!(claims[2].measured, Some(over_seeds.low), "the least of single seeds");
        assert!((over_seeds.low..over_seeds.high).contains(&claims[0].measured.unwrap()), "{claims:?}");
        assert!(!outcomes[0].fails());
        assert!(directory.path().join("test-sweep.svg").is_file());
        assert!(page_path(directory.path()).is_file());
        let (provenance, records) = Store::existing(&directory.path().join("test-sweep")).read().unwrap();
        assert_eq!((records.len(), provenance.command.as_str()), (8, "tacit figure test/sweep --quick"));
    }

    /// Wire delays of 1 and 5 ms. The variant has a single place and a slower wire.
    const VARIANTS: &str = "\
title = \"t\"
paper = \"p\"
note = \"its assumptions\"
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
        // The variant was run at one place. Its gain there is that between its own two curves.
        assert_eq!(slow.cells[0], None);
        let cell = slow.cells[1].unwrap();
        let (from, to) = (cell.from.unwrap(), cell.to.unwrap());
        assert!((cell.value - (to / from - 1.0) * 100.0).abs() < 1e-9 && to < 10.0, "{cell:?}");
        assert!(cell.ci95.is_some() && plain.cells[1].unwrap().to.unwrap() > 100.0);
        let text = outcome.to_text();
        for line in [
            "  its assumptions\n",
            "arithmetic <= 10, measured 1\n",
            "  a slow wire",
            "gain of udp over stock (%)",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        let (provenance, records) =
            Store::existing(&directory.path().join("test-variants-a-slow-wire")).read().unwrap();
        assert_eq!((records.len(), provenance.description.as_str()), (4, "t: a slow wire"));
        let page = std::fs::read_to_string(page_path(directory.path())).unwrap();
        assert!(page.contains("Dependence: ") && page.contains("its assumptions"));
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
    fn the_quick_form_runs_the_schemes_that_it_names() {
        let judged = "text = \"UDP fills the slow wire\"";
        let with_schemes = "set = [\"wired.rate=10Mbps\"]\nschemes = [\"stock\"]\nx = { values = [1] }\n\
                   [[sweep.variant]]\nname = \"slow\"\nset = [\"wired.rate=20Mbps\"]";
        let text = VARIANTS
            .replace("set = [\"wired.rate=10Mbps\"]", with_schemes)
            .replace("quick = { seeds = 1 }", "quick = { seeds = 1, schemes = [\"udp\"] }")
            .replace("depends = { gain = \"udp\", over = \"stock\", plain = \"as it is\" }\n", "")
            .replace("paper = 9.8\n", "paper = 19.6\n")
            .replace("variant = \"a slow wire\" }", "variant = \"slow\" }");
        assert!(text.contains(judged), "{text}");
        let directory = tempfile::tempdir().unwrap();
        let figure = Figure::parse("test/quick", "quick.toml", &text).unwrap();
        let options =
            Options { quick: true, directory: Some(directory.path().to_owned()), ..Options::default() };
        let outcome = &run(&[figure], &options, Control::unattended()).unwrap()[0];
        assert_eq!((outcome.claims.len(), outcome.in_full_only), (2, 0), "{outcome:?}");
        assert!(!outcome.fails(), "{outcome:?}");
        let schemes = |name: &str| -> Vec<String> {
            let (_, records) = Store::existing(&directory.path().join(name)).read().unwrap();
            records.iter().map(|record| record.label.scheme.to_string()).collect()
        };
        assert_eq!(schemes("test-quick"), ["udp", "udp"]);
        assert_eq!(schemes("test-quick-slow"), ["udp"]);
        assert!(!directory.path().join("test-quick-a-slow-wire").exists(), "its only scheme is not run");

        let unknown = text.replace("schemes = [\"udp\"] }", "schemes = [\"tack\"] }");
        let error = Figure::parse("test/quick", "quick.toml", &unknown).unwrap_err().to_string();
        assert!(error.contains("quick.schemes: \"tack\" is not swept; allowed: stock, udp"), "{error}");
        let without = text.replace("schemes = [\"udp\"] }", "schemes = [\"stock\"] }");
        let figure = Figure::parse("test/quick", "quick.toml", &without).unwrap();
        let options = Options { quick: true, ..Options::default() };
        let outcome = &run(&[figure], &options, Control::unattended()).unwrap()[0];
        assert_eq!((outcome.claims.len(), outcome.in_full_only), (0, 2), "{outcome:?}");
    }

    #[test]
    fn variants_that_contradict_the_sweep_are_refused() {
        for (from, to, expected) in [
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
            assert!(error.contains(expected), "{expected}: {error}");
        }
    }
}
