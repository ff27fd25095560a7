//! `[sweep]`: simulations over an axis, as configured in the file.

use super::axis::{Axis, CLIENTS};
use super::measure::Measure;
use super::metrics::metric_column;
use super::schemes::{read_schemes, selected};
use super::variant::{self, Depends, Variant};
use tacit_runs::aggregate::{Column, Group};
use tacit_scenario::input::{Section, integer, numbers, one_of, text, texts};
use tacit_scenario::scheme::Scheme;
use tacit_scenario::{InputError, MAX_CLIENTS, MAX_SEEDS};

/// Simulations: one curve per scheme over one axis.
#[derive(Clone, Debug)]
pub(super) struct Sweep {
    pub scenario: String,
    pub assignments: Vec<String>,
    pub schemes: Vec<&'static Scheme>,
    pub axis: Axis,
    /// A second axis: at each x, the value with the highest `column` is used.
    pub best_of: Option<BestOf>,
    pub column: String,
    pub x_label: String,
    pub y_label: String,
    pub seeds: Option<u32>,
    /// How the seeds of a place are reduced to one number.
    pub average: Average,
    /// Variants: the same runs with different settings.
    pub variants: Vec<Variant>,
    /// The table of the variants.
    pub depends: Option<Depends>,
    quick: Quick,
}

/// How the runs of a place, which differ in the seed, are reduced to one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Average {
    Mean,
    /// The median; for gains and ratios, that of the values of equal seeds.
    Median,
}

/// Settings of `--quick`.
#[derive(Clone, Debug)]
struct Quick {
    seeds: Option<u32>,
    assignments: Vec<String>,
    /// The schemes to run; claims about the others are not judged.
    schemes: Option<Vec<&'static Scheme>>,
    x: Option<Vec<f64>>,
    best_of: Option<Vec<f64>>,
}

/// The axis that is searched for the best value at each x.
#[derive(Clone, Debug)]
pub(super) struct BestOf {
    pub axis: Axis,
    /// For these schemes, each value has its own curve in addition to that of the best value.
    pub curves: Vec<&'static Scheme>,
}

impl BestOf {
    /// Name of the curve of a scheme at one value.
    pub fn curve_name(&self, scheme: &Scheme, value: f64) -> String {
        format!("{} {value}{}", scheme.name, self.axis.unit)
    }
}

impl Sweep {
    pub fn read(section: Section<'_>) -> Result<Self, InputError> {
        let schemes = read_schemes(&section)?;
        let x = section.section("x")?;
        let axis = Axis::read(&x, x.or("key", CLIENTS.to_owned(), text)?)?;
        let counts_clients = axis.key == CLIENTS;
        check_places(counts_clients, &x, &axis.values)?;
        x.finish()?;
        let quick = section.section("quick")?;
        let seeds = integer(1..=MAX_SEEDS);
        let averages = [("mean", Average::Mean), ("median", Average::Median)];
        let best_of = read_best_of(section.section("best-of")?)?;
        let mut curves = best_of.iter().flat_map(|best_of| &best_of.curves);
        if let Some(scheme) = curves.find(|scheme| !is_in(&schemes, scheme)) {
            return Err(section.error("best-of", format!("curves of {:?}, which is not swept", scheme.name)));
        }
        let quick_schemes = read_quick_schemes(&quick, &schemes)?;
        let variants = variant::read_all(&section, |x, values| check_places(counts_clients, x, values))?;
        if !variants.is_empty() && best_of.is_some() {
            return Err(section.error("variant", "a sweep with best-of has no variants"));
        }
        let sweep = Self {
            depends: Depends::read(section.section("depends")?)?,
            variants,
            scenario: section.required("scenario", text)?,
            assignments: section.or("set", Vec::new(), texts)?,
            schemes,
            x_label: section.or("x-label", axis.key.clone(), text)?,
            axis,
            best_of,
            column: section.or("column", "goodput_mbps".to_owned(), metric_column)?,
            y_label: section.or("y-label", "goodput (Mb/s)".to_owned(), text)?,
            seeds: section.optional("seeds", &seeds)?,
            average: section.or("average", Average::Mean, one_of(&averages))?,
            quick: Quick {
                seeds: quick.optional("seeds", &seeds)?,
                assignments: quick.or("set", Vec::new(), texts)?,
                schemes: quick_schemes,
                x: quick.optional("x", numbers)?,
                best_of: quick.optional("best-of", numbers)?,
            },
        };
        quick.finish()?;
        section.finish()?;
        Ok(sweep)
    }

    /// The sweep with the settings of `--quick`.
    pub fn quick(&self) -> Self {
        let mut quick = self.clone();
        quick.seeds = self.quick.seeds.or(self.seeds);
        quick.assignments.extend(self.quick.assignments.iter().cloned());
        if let Some(schemes) = &self.quick.schemes {
            let is_run = |scheme: &&Scheme| !is_in(&self.schemes, scheme) || is_in(schemes, scheme);
            quick.schemes.retain(is_run);
            quick.best_of.iter_mut().for_each(|best_of| best_of.curves.retain(is_run));
            quick.variants.retain_mut(|variant| variant.restrict_schemes(is_run));
        }
        if let Some(x) = &self.quick.x {
            quick.axis.values.clone_from(x);
            quick.variants.iter_mut().for_each(|variant| variant.restrict(x));
        }
        if let (Some(values), Some(best_of)) = (&self.quick.best_of, &mut quick.best_of) {
            best_of.axis.values.clone_from(values);
        }
        quick
    }

    /// The sweep that executes the runs of `variant`.
    pub fn varied(&self, variant: &Variant) -> Self {
        let mut varied = self.clone();
        varied.assignments.extend(variant.assignments.iter().cloned());
        if !variant.schemes.is_empty() {
            varied.schemes.clone_from(&variant.schemes);
        }
        if !variant.values.is_empty() {
            varied.axis = Axis { values: variant.values.clone(), also: variant.also.clone(), ..varied.axis };
        }
        (varied.variants, varied.depends) = (Vec::new(), None);
        varied
    }

    /// The values of x in a variant, or as drawn.
    pub fn places(&self, variant: Option<&str>) -> Vec<f64> {
        let variant = self.variants.iter().find(|known| Some(known.name.as_str()) == variant);
        variant.map_or(self.axis.clone(), |variant| self.varied(variant).axis).values
    }

    /// Whether these runs, a subset of `whole`, suffice for `measure`.
    pub fn makes(&self, whole: &Self, measure: &Measure) -> bool {
        // Each value of a second axis has a curve. Curves of closed forms always exist.
        let (kept, all) = (self.curve_names(), whole.curve_names());
        let is_left_out =
            |curve: &str| all.iter().any(|name| name == curve) && !kept.iter().any(|name| name == curve);
        let [places, other_places] = measure.variants().map(|variant| self.places(variant));
        measure.is_within(&places, &other_places) && !measure.curves().any(is_left_out)
    }

    /// The number for the runs of a place, and half the width of its 95 % confidence interval.
    pub fn middle(&self, runs: &Group<'_>, column: Column) -> Option<(f64, Option<f64>)> {
        Some(match self.average {
            Average::Mean => {
                let mean = runs.mean(column)?;
                (mean.mean, mean.ci95)
            }
            Average::Median => {
                let median = runs.median(column)?;
                (median.median, median.ci95())
            }
        })
    }

    /// The gain of the runs of a place over others as a fraction, with the same kind of interval.
    pub fn gain(&self, runs: &Group<'_>, over: &Group<'_>, column: Column) -> Option<(f64, Option<f64>)> {
        Some(match self.average {
            Average::Mean => {
                let gain = runs.gain_over(over, column)?;
                (gain.of_means, gain.ci95)
            }
            Average::Median => {
                let median = runs.median_gain_over(over, column)?;
                (median.median, median.ci95())
            }
        })
    }

    /// Label of a column. Only the plotted column has a separate label.
    pub fn y_label_of(&self, column: &str) -> String {
        if column == self.column { self.y_label.clone() } else { column.to_owned() }
    }

    pub fn curve_names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.schemes.iter().map(|scheme| scheme.name.to_owned()).collect();
        if let Some(best_of) = &self.best_of {
            for scheme in &best_of.curves {
                names.extend(best_of.axis.values.iter().map(|value| best_of.curve_name(scheme, *value)));
            }
        }
        names
    }
}

fn is_in(schemes: &[&Scheme], scheme: &Scheme) -> bool {
    schemes.iter().any(|other| other.name == scheme.name)
}

/// The schemes that the quick form runs, if not all.
fn read_quick_schemes(
    quick: &Section<'_>,
    swept: &[&'static Scheme],
) -> Result<Option<Vec<&'static Scheme>>, InputError> {
    if !quick.has("schemes") {
        return Ok(None);
    }
    let schemes = read_schemes(quick)?;
    match schemes.iter().find(|scheme| !is_in(swept, scheme)) {
        Some(scheme) => {
            let names: Vec<&str> = swept.iter().map(|scheme| scheme.name).collect();
            Err(quick.error("schemes", format!("{:?} is not swept", scheme.name)).allowed(names.join(", ")))
        }
        None => Ok(Some(schemes)),
    }
}

fn read_best_of(section: Section<'_>) -> Result<Option<BestOf>, InputError> {
    if !section.is_present() {
        return Ok(None);
    }
    let axis = Axis::read(&section, section.required("key", text)?)?;
    if axis.values.is_empty() || axis.key == CLIENTS {
        return Err(section.error("values", "the best of nothing").allowed("values of a scenario key"));
    }
    let names = section.or("curves", Vec::new(), texts)?;
    let curves = if names.is_empty() { Vec::new() } else { selected(&section, "curves", &names)? };
    section.finish()?;
    Ok(Some(BestOf { axis, curves }))
}

/// Checks the values of the axis. If it counts clients, they must be valid counts.
fn check_places(counts_clients: bool, x: &Section<'_>, values: &[f64]) -> Result<(), InputError> {
    let whole =
        |value: &f64| value.fract().abs() < f64::EPSILON && (1.0..=f64::from(MAX_CLIENTS)).contains(value);
    if counts_clients && !values.iter().all(whole) {
        return Err(x
            .error("values", "there are no such client counts")
            .allowed(format!("1 to {MAX_CLIENTS}")));
    }
    Ok(())
}
