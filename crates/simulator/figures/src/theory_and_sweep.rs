//! Curves over an axis: a closed form of [`tacit_theory`], a sweep, or both.

use std::path::Path;

use super::figure::{Figure, Findings, Kind, VariantNames};
use super::measure::{Curve, Curves, Measure, same};
use super::plot_data::PlotData;
use super::results::{RunContext, file_name};
use super::sweep::Sweep;
use super::swept::swept;
use super::variant::Depends;
use tacit_runs::RunsError;
use tacit_runs::store::Store;
use tacit_scenario::InputError;
use tacit_scenario::input::{Section, one_of};

/// `[theory]` and `[sweep]`; at least one is present.
#[derive(Debug)]
pub(super) struct TheoryAndSweep {
    /// The ID of a figure in [`tacit_theory`].
    theory: Option<String>,
    sweep: Option<Sweep>,
}

impl TheoryAndSweep {
    pub fn read(theory: Section<'_>, sweep: Section<'_>) -> Result<Self, InputError> {
        let mut read = Self { theory: None, sweep: None };
        if theory.is_present() {
            let known = tacit_theory::IDS.map(|id| (id, id));
            read.theory = Some(theory.required("figure", one_of(&known))?.to_owned());
            theory.finish()?;
        }
        if sweep.is_present() {
            read.sweep = Some(Sweep::read(sweep)?);
        }
        Ok(read)
    }

    /// Names of the curves from closed forms.
    fn theory_names(&self) -> Vec<String> {
        let theory = self.theory.as_deref().and_then(|id| tacit_theory::figure(id).ok());
        theory.into_iter().flat_map(|theory| theory.series).map(|series| series.name).collect()
    }
}

impl Kind for TheoryAndSweep {
    fn curve_names(&self) -> Option<Vec<String>> {
        let mut names = self.sweep.as_ref().map(Sweep::curve_names).unwrap_or_default();
        names.extend(self.theory_names());
        Some(names)
    }

    fn variants(&self) -> Vec<VariantNames<'_>> {
        let Some(sweep) = &self.sweep else { return Vec::new() };
        let names = sweep.variants.iter().map(|variant| VariantNames {
            name: &variant.name,
            curves: Some(
                sweep.varied(variant).curve_names().into_iter().chain(self.theory_names()).collect(),
            ),
        });
        names.collect()
    }

    fn places(&self, variant: Option<&str>) -> Option<Vec<f64>> {
        self.sweep.as_ref().map(|sweep| sweep.places(variant))
    }

    fn is_at_one_x(&self) -> bool {
        self.sweep.as_ref().is_some_and(|sweep| sweep.axis.values.len() == 1)
    }

    fn depends(&self) -> Option<&Depends> {
        self.sweep.as_ref()?.depends.as_ref()
    }

    fn makes_in_short(&self, measure: &Measure) -> bool {
        self.sweep.as_ref().is_none_or(|sweep| sweep.quick().makes(sweep, measure))
    }

    fn is_stored(&self, figure: &Figure, directory: &Path) -> bool {
        self.sweep.is_none() || !Store::existing(&directory.join(file_name(&figure.id, ""))).is_empty()
    }

    fn results(&self, figure: &Figure, making: RunContext<'_>) -> Result<Findings, RunsError> {
        let theory = self.theory.as_deref().map(from_theory);
        let drawn = match &self.sweep {
            Some(sweep) => with_theory(swept(figure, sweep, making)?, theory),
            None => {
                making.made_by([tacit_runs::VERSION]);
                theory.expect("the figure file was checked: it has one or the other")
            }
        };
        Ok(Findings::from_curves(drawn))
    }
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

/// Adds the closed forms at the same x to the sweep and to every variant, because a closed form may describe a variant.
fn with_theory(mut drawn: PlotData, theory: Option<PlotData>) -> PlotData {
    let swept: Vec<f64> =
        drawn.curves.curves.iter().flat_map(|curve| curve.points.iter().map(|(x, _)| *x)).collect();
    for mut curve in theory.into_iter().flat_map(|theory| theory.curves.curves) {
        curve.points.retain(|(x, _)| swept.iter().any(|other| same(*x, *other)));
        let PlotData { seeds, curves, variants, .. } = &mut drawn;
        let of_seeds = seeds.iter_mut().flat_map(|seed| {
            std::iter::once(&mut seed.curves).chain(seed.variants.iter_mut().map(|(_, curves)| curves))
        });
        let drawn = std::iter::once(curves).chain(variants.iter_mut().map(|(_, curves)| curves));
        drawn.chain(of_seeds).for_each(|curves| curves.curves.push(curve.clone()));
    }
    drawn
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::{Options, run};
    use tacit_runs::sweep::Control;

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
            let sweep = figure.kind_as::<TheoryAndSweep>().and_then(|kind| kind.sweep.as_ref()).unwrap();
            let making = RunContext {
                options: &options,
                control: Control::unattended(),
                versions: &RefCell::default(),
            };
            swept(&figure, sweep, making).unwrap()
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
        // The closed form has no SNR at these values, except that 15 and 60 Mb/s happen to match.
        let with_theory = with_theory(full, Some(from_theory("hack/fig1b")));
        assert_eq!(with_theory.curves.curves.last().unwrap().points.len(), 2);
        let outcomes = run(&[figure], &Options::default(), Control::unattended()).unwrap();
        assert!(outcomes[0].claims[0].pass, "{outcomes:?}");
    }
}
