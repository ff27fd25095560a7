//! A figure file, read.

use super::arms;
use super::downloads::Downloads;
use super::live::Live;
use super::measure;
use super::series::Series;
use super::table::Table;
use super::timeline::{self, Timeline};
use super::transferred;
use super::transfers::Transfers;
use super::variant::{self, Depends, Variant};
use tacit_runs::aggregate::{Column, Group};
use tacit_runs::metric;
use tacit_scenario::input::{Mismatch, Section, Tree, Value, flag, integer, numbers, one_of, text, texts};
use tacit_scenario::scheme::{self, Scheme};
use tacit_scenario::{InputError, MAX_CLIENTS, MAX_SEEDS};

/// A figure: what to compute or run, how to draw it, and what is claimed of it.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Paper and figure.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// Where it comes from.
    pub paper: String,
    /// What a reader has to know to judge it: what it assumes, why it comes out so.
    pub note: Option<String>,
    /// A figure of [`tacit_theory`].
    pub(super) source: Source,
    pub(super) plot: Plot,
    pub(super) table: Option<Table>,
    pub(super) claims: Vec<Claim>,
}

/// `[plot]`: how curves are drawn.
#[derive(Clone, Debug)]
pub(super) struct Plot {
    pub log_x: bool,
    pub log_y: bool,
    /// A panel below the curves: the gain of one over another.
    pub gain: Option<Gain>,
    /// Variants with a panel each below the curves.
    pub panels: Vec<String>,
    /// Cumulative distributions over the seeds in place of curves over x; of a sweep at a single x.
    pub cdf: bool,
}

/// The gain of the first curve over the second.
#[derive(Clone, Debug)]
pub(super) struct Gain {
    pub of: String,
    pub over: String,
}

/// Where a figure comes from.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// Curves: a figure of [`tacit_theory`], a sweep, or both; at least one is there.
    Curves { theory: Option<String>, sweep: Option<Box<Sweep>> },
    /// The frames around an event of one run.
    Timeline(Box<Timeline>),
    /// How flows of single runs fare over time.
    Series(Box<Series>),
    /// Real programs through live hops.
    Live(Box<Live>),
    /// Downloads through live hops.
    Downloads(Box<Downloads>),
    /// Transfers through live hops.
    Transfers(Box<Transfers>),
}

/// Simulations: one curve per scheme over one axis.
#[derive(Clone, Debug)]
pub(super) struct Sweep {
    pub scenario: String,
    pub assignments: Vec<String>,
    pub schemes: Vec<&'static Scheme>,
    pub axis: Axis,
    /// A second axis: at each x the value that gives most of `column` counts.
    pub best_of: Option<BestOf>,
    pub column: String,
    pub x_label: String,
    pub y_label: String,
    pub seeds: Option<u32>,
    /// How the seeds of a place become one number.
    pub average: Average,
    /// Its runs with something changed, beside those as they are.
    pub variants: Vec<Variant>,
    /// What is shown of the variants.
    pub depends: Option<Depends>,
    quick: Quick,
}

/// How the runs of a place, which differ in their seeds, become one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Average {
    Mean,
    /// Of gains and ratios the median of those of equal seeds.
    Median,
}

/// What `--quick` changes.
#[derive(Clone, Debug)]
struct Quick {
    seeds: Option<u32>,
    assignments: Vec<String>,
    x: Option<Vec<f64>>,
    best_of: Option<Vec<f64>>,
}

/// The axis that is searched for the best at each x.
#[derive(Clone, Debug)]
pub(super) struct BestOf {
    pub axis: Axis,
    /// Of these schemes each value is a curve of its own, beside the best.
    pub curves: Vec<&'static Scheme>,
}

impl BestOf {
    /// Name of the curve of a scheme at one value.
    pub fn curve_name(&self, scheme: &Scheme, value: f64) -> String {
        format!("{} {value}{}", scheme.name, self.axis.unit)
    }
}

impl Sweep {
    /// The sweep as `--quick` runs it.
    pub fn quick(&self) -> Self {
        let mut quick = self.clone();
        quick.seeds = self.quick.seeds.or(self.seeds);
        quick.assignments.extend(self.quick.assignments.iter().cloned());
        if let Some(x) = &self.quick.x {
            quick.axis.values.clone_from(x);
            quick.variants.iter_mut().for_each(|variant| variant.restrict(x));
        }
        if let (Some(values), Some(best_of)) = (&self.quick.best_of, &mut quick.best_of) {
            best_of.axis.values.clone_from(values);
        }
        quick
    }

    /// Whether these runs, some of those of `whole`, have all that `measure` takes.
    pub fn makes(&self, whole: &Self, measure: &measure::Measure) -> bool {
        let made = |variant: Option<&str>| {
            let variant = self.variants.iter().find(|known| Some(known.name.as_str()) == variant);
            measure.is_within(&variant.map_or(self.axis.clone(), |variant| variant.of(self).axis).values)
        };
        // Each value of a second axis is a curve; what theory says is always there.
        let (own, all) = (self.curve_names(), whole.curve_names());
        let is_left_out =
            |curve: &str| all.iter().any(|name| name == curve) && !own.iter().any(|name| name == curve);
        let variants = [measure.variant(), measure.over_variant().or(measure.variant())];
        variants.into_iter().all(made) && !measure.curves().any(is_left_out)
    }

    /// One number of the runs of a place, and half the width of its 95 % confidence interval.
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

    /// The gain of the runs of a place over others, as a fraction, likewise.
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

    /// What a column is called: the plotted one has a label.
    pub fn y_label_of(&self, column: &str) -> String {
        if column == self.column { self.y_label.clone() } else { column.to_owned() }
    }

    fn curve_names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.schemes.iter().map(|scheme| scheme.name.to_owned()).collect();
        if let Some(best_of) = &self.best_of {
            for scheme in &best_of.curves {
                names.extend(best_of.axis.values.iter().map(|value| best_of.curve_name(scheme, *value)));
            }
        }
        names
    }
}

/// What varies along x.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    /// `clients`, or a key of the scenario.
    pub key: String,
    pub values: Vec<f64>,
    /// Follows the value in an assignment.
    pub unit: String,
    /// What else changes at each of `values`; empty for nothing anywhere.
    pub also: Vec<(f64, Vec<String>)>,
}

impl Axis {
    /// What puts a scenario at `value`.
    pub fn assignment(&self, value: f64) -> String {
        format!("{}={value}{}", self.key, self.unit)
    }

    /// What goes with it.
    pub fn also(&self, value: f64) -> &[String] {
        let with = self.also.iter().find(|(at, _)| measure::same(*at, value));
        with.map_or(&[], |(_, assignments)| assignments.as_slice())
    }
}

/// The axis key that stands for the number of clients.
pub(super) const CLIENTS: &str = "clients";

/// A claim of a figure.
pub(super) type Claim = super::claim::Claim<Measure>;

/// What a claim measures: one kind for curves, one for time lines.
#[derive(Clone, Debug)]
pub(super) enum Measure {
    Curves(measure::Measure),
    Timeline(timeline::Measure),
}

impl Figure {
    /// Reads a figure file; `source` names it in messages.
    ///
    /// # Errors
    /// Where the text is not TOML, or says something that is not allowed.
    pub fn parse(id: &str, source: &str, toml: &str) -> Result<Self, InputError> {
        let tree = Tree::parse(source, toml)?;
        let root = Section::root(source, &tree);
        let kind = read_source(&root)?;
        let source = root.or("source", "paper".to_owned(), text)?;
        let claims = root.sections("claim")?.into_iter().map(|claim| read_claim(claim, &kind, &source));
        let claims: Vec<Claim> = claims.collect::<Result<_, _>>()?;
        let twice = |at: &usize| claims[..*at].iter().any(|before| before.text == claims[*at].text);
        if let Some(at) = (0..claims.len()).find(twice) {
            return Err(root.error("claim", format!("{:?} stands there twice", claims[at].text)));
        }
        let figure = Self {
            id: id.to_owned(),
            title: root.required("title", text)?,
            paper: root.required("paper", text)?,
            note: root.optional("note", text)?,
            source: kind,
            plot: read_plot(root.section("plot")?)?,
            table: Table::read(root.section("table")?)?,
            claims,
        };
        figure.check_names(&root)?;
        root.finish()?;
        Ok(figure)
    }

    /// What is measured of curves: by the claims, and by the cells of the table.
    pub(super) fn measures(&self) -> impl Iterator<Item = &measure::Measure> {
        let claims = self.claims.iter().filter_map(|claim| match &claim.measure {
            Measure::Curves(measure) => Some(measure),
            Measure::Timeline(_) => None,
        });
        claims.chain(self.table.iter().flat_map(Table::measures))
    }

    /// Columns that are measured beside the plotted one.
    pub(super) fn columns(&self) -> impl Iterator<Item = &str> {
        self.measures().filter_map(measure::Measure::column)
    }

    /// Claims, tables and panels may only speak of curves and columns that the figure has.
    fn check_names(&self, root: &Section<'_>) -> Result<(), InputError> {
        let mut names = match &self.source {
            Source::Curves { sweep: Some(sweep), .. } => sweep.curve_names(),
            Source::Curves { sweep: None, .. } => Vec::new(),
            Source::Series(series) => series.curve_names(),
            Source::Live(live) => live.curve_names(),
            Source::Downloads(downloads) => downloads.curve_names(),
            Source::Transfers(transfers) => transfers.curve_names(),
            Source::Timeline(_) => return Ok(()),
        };
        if let Source::Curves { theory: Some(id), .. } = &self.source
            && let Ok(theory) = tacit_theory::figure(id)
        {
            names.extend(theory.series.into_iter().map(|series| series.name));
        }
        let swept = |name: &str| {
            let known = names.iter().any(|known| known == name);
            if known {
                Ok(())
            } else {
                Err(root.error("claim", format!("{name:?} is measured, but not swept")))
            }
        };
        let variants = self.variant_names();
        for measure in self.measures() {
            if let Some(name) = measure.over_variant() {
                self.check_variant(root, name, measure)?;
            }
            match (measure.variant(), &self.source) {
                (Some(name), Source::Transfers(_)) if variants.contains(&name) => {
                    measure.curves().try_for_each(swept)?;
                }
                (Some(name), _) => self.check_variant(root, name, measure)?,
                (None, _) => measure.curves().try_for_each(swept)?,
            }
        }
        if let Some(gain) = &self.plot.gain {
            [&gain.of, &gain.over].into_iter().try_for_each(|name| swept(name))?;
        }
        if let Some(name) = self.plot.panels.iter().find(|name| !variants.contains(&name.as_str())) {
            return Err(root.error("plot", format!("panels: no variant {name:?}")));
        }
        let is_at_one_x = self.sweep().is_some_and(|sweep| sweep.axis.values.len() == 1);
        if self.plot.cdf && !is_at_one_x {
            return Err(root
                .error("plot", "cdf: not the seeds of a single x")
                .allowed("a [sweep] with one value of x"));
        }
        let depends = self.sweep().and_then(|sweep| sweep.depends.as_ref());
        depends.into_iter().flat_map(Depends::curves).try_for_each(swept)?;
        for name in self.columns().chain(depends.and_then(Depends::column)) {
            if let Source::Series(_) = self.source {
                if !Series::has_column(name) {
                    return Err(root.error("claim", format!("{name:?} is no column of a series")));
                }
            } else if !self.source.has_own_column(name) {
                column(&Value::Text(name.to_owned()))
                    .map_err(|mismatch| root.error("claim", mismatch.what).allowed(mismatch.allowed))?;
            }
        }
        Ok(())
    }

    fn check_variant(
        &self,
        root: &Section<'_>,
        name: &str,
        measure: &measure::Measure,
    ) -> Result<(), InputError> {
        let variants = self.sweep().map_or(&[][..], |sweep| &sweep.variants);
        let Some((sweep, variant)) = self.sweep().zip(variants.iter().find(|variant| variant.name == name))
        else {
            let known = self.variant_names().join(", ");
            return Err(root.error("claim", format!("no variant {name:?}")).allowed(known));
        };
        let names = variant.of(sweep).curve_names();
        match measure.curves().find(|curve| !names.iter().any(|known| known == curve)) {
            Some(curve) => Err(root.error("claim", format!("{curve:?} is not swept in variant {name:?}"))),
            None => Ok(()),
        }
    }

    pub(super) fn sweep(&self) -> Option<&Sweep> {
        match &self.source {
            Source::Curves { sweep, .. } => sweep.as_deref(),
            Source::Timeline(_)
            | Source::Series(_)
            | Source::Live(_)
            | Source::Downloads(_)
            | Source::Transfers(_) => None,
        }
    }

    /// Names of what is made beside the curves that are drawn first.
    fn variant_names(&self) -> Vec<&str> {
        match &self.source {
            Source::Transfers(transfers) => transfers.variant_names().collect(),
            _ => {
                let variants = self.sweep().map_or(&[][..], |sweep| &sweep.variants);
                variants.iter().map(|variant| variant.name.as_str()).collect()
            }
        }
    }
}

impl Source {
    /// Whether it is made of real programs through live hops.
    pub const fn is_live(&self) -> bool {
        match self {
            Self::Live(_) | Self::Downloads(_) | Self::Transfers(_) => true,
            Self::Curves { .. } | Self::Timeline(_) | Self::Series(_) => false,
        }
    }

    /// Whether the quick form has all that `measure` takes.
    pub fn makes_in_short(&self, measure: &measure::Measure) -> bool {
        match self {
            Self::Curves { sweep: Some(sweep), .. } => sweep.quick().makes(sweep, measure),
            Self::Transfers(transfers) => transfers.shortened(true).makes(measure),
            Self::Curves { sweep: None, .. }
            | Self::Timeline(_)
            | Self::Series(_)
            | Self::Live(_)
            | Self::Downloads(_) => true,
        }
    }

    /// Whether `name` is a column of this kind of figure, beside the metrics of runs.
    fn has_own_column(&self, name: &str) -> bool {
        match self {
            Self::Live(_) => arms::COLUMNS.contains(&name),
            Self::Downloads(_) => Downloads::has_column(name),
            Self::Transfers(_) => transferred::COLUMNS.contains(&name),
            Self::Curves { .. } | Self::Timeline(_) | Self::Series(_) => false,
        }
    }
}

fn read_plot(section: Section<'_>) -> Result<Plot, InputError> {
    let gain = section.section("gain")?;
    let plot = Plot {
        log_x: section.or("log-x", false, flag)?,
        log_y: section.or("log-y", false, flag)?,
        panels: section.or("panels", Vec::new(), texts)?,
        cdf: section.or("cdf", false, flag)?,
        gain: match gain.is_present() {
            true => Some(Gain { of: gain.required("of", text)?, over: gain.required("over", text)? }),
            false => None,
        },
    };
    gain.finish()?;
    section.finish()?;
    Ok(plot)
}

fn read_source(root: &Section<'_>) -> Result<Source, InputError> {
    let (theory, sweep, timeline) =
        (root.section("theory")?, root.section("sweep")?, root.section("timeline")?);
    let (series, live) = (root.section("series")?, root.section("live")?);
    let (downloads, transfers) = (root.section("downloads")?, root.section("transfers")?);
    let curves = theory.is_present() || sweep.is_present();
    let others = [&timeline, &series, &live, &downloads, &transfers].map(Section::is_present);
    if others.into_iter().chain([curves]).filter(|present| *present).count() != 1 {
        let needed = "[theory] or [sweep] or both are needed, or [timeline], [series], [live], [downloads] or \
                      [transfers] alone";
        return Err(root.error("theory", needed));
    }
    if transfers.is_present() {
        return Ok(Source::Transfers(Box::new(Transfers::read(transfers)?)));
    }
    if downloads.is_present() {
        return Ok(Source::Downloads(Box::new(Downloads::read(downloads)?)));
    }
    if live.is_present() {
        return Ok(Source::Live(Box::new(Live::read(live)?)));
    }
    if series.is_present() {
        return Ok(Source::Series(Box::new(Series::read(series)?)));
    }
    if timeline.is_present() {
        return Ok(Source::Timeline(Box::new(Timeline::read(timeline)?)));
    }
    let (mut figure, mut swept) = (None, None);
    if theory.is_present() {
        let known = tacit_theory::IDS.map(|id| (id, id));
        figure = Some(theory.required("figure", one_of(&known))?.to_owned());
        theory.finish()?;
    }
    if sweep.is_present() {
        swept = Some(Box::new(read_sweep(sweep)?));
    }
    Ok(Source::Curves { theory: figure, sweep: swept })
}

/// The values of `key` that `section` lists.
pub(super) fn read_axis(section: &Section<'_>, key: String) -> Result<Axis, InputError> {
    let values = section.required("values", numbers)?;
    let also = read_also(section, &values)?;
    Ok(Axis { key, values, unit: section.or("unit", String::new(), text)?, also })
}

/// What else changes at each of `values`.
pub(super) fn read_also(
    section: &Section<'_>,
    values: &[f64],
) -> Result<Vec<(f64, Vec<String>)>, InputError> {
    let also = section.or("also", Vec::new(), lists_of_texts)?;
    if !also.is_empty() && also.len() != values.len() {
        return Err(section
            .error("also", format!("{} lists for {} values", also.len(), values.len()))
            .allowed("a list of assignments for each value"));
    }
    Ok(values.iter().copied().zip(also).collect())
}

fn lists_of_texts(value: &Value) -> Result<Vec<Vec<String>>, Mismatch> {
    let wrong = || Mismatch::new(format!("{value} is no list of lists"), "[[\"a=1\"], [\"a=2\"]]");
    let Value::List(items) = value else { return Err(wrong()) };
    items.iter().map(|item| texts(&item.value).map_err(|_| wrong())).collect()
}

fn read_best_of(section: Section<'_>) -> Result<Option<BestOf>, InputError> {
    if !section.is_present() {
        return Ok(None);
    }
    let axis = read_axis(&section, section.required("key", text)?)?;
    if axis.values.is_empty() || axis.key == CLIENTS {
        return Err(section.error("values", "the best of nothing").allowed("values of a scenario key"));
    }
    let names = section.or("curves", Vec::new(), texts)?;
    let curves = if names.is_empty() { Ok(Vec::new()) } else { scheme::select("", &names) };
    let curves = curves
        .map_err(|error| section.error("curves", error.what).allowed(error.allowed.unwrap_or_default()))?;
    section.finish()?;
    Ok(Some(BestOf { axis, curves }))
}

/// Schemes by name; the scenario as it is written is one too.
pub(super) fn read_schemes(section: &Section<'_>) -> Result<Vec<&'static Scheme>, InputError> {
    let mut names = section.or("schemes", Vec::new(), texts)?;
    let before = names.len();
    names.retain(|name| name != scheme::AS_WRITTEN.name);
    let as_written = names.len() < before;
    if as_written && names.is_empty() {
        return Ok(vec![&scheme::AS_WRITTEN]);
    }
    let mut schemes = scheme::select("", &names)
        .map_err(|error| section.error("schemes", error.what).allowed(error.allowed.unwrap_or_default()))?;
    if as_written {
        schemes.push(&scheme::AS_WRITTEN);
    }
    Ok(schemes)
}

/// The scheme that `scheme` names; the scenario as it is written unless it is given.
pub(super) fn read_scheme(section: &Section<'_>) -> Result<&'static Scheme, InputError> {
    let name = section.or("scheme", scheme::AS_WRITTEN.name.to_owned(), text)?;
    scheme::named("", &name)
        .map_err(|error| section.error("scheme", error.what).allowed(error.allowed.unwrap_or_default()))
}

fn read_sweep(section: Section<'_>) -> Result<Sweep, InputError> {
    let schemes = read_schemes(&section)?;
    let x = section.section("x")?;
    let axis = read_axis(&x, x.or("key", CLIENTS.to_owned(), text)?)?;
    let counts_clients = axis.key == CLIENTS;
    check_places(counts_clients, &x, &axis.values)?;
    x.finish()?;
    let quick = section.section("quick")?;
    let seeds = integer(1..=MAX_SEEDS);
    let averages = [("mean", Average::Mean), ("median", Average::Median)];
    let best_of = read_best_of(section.section("best-of")?)?;
    if let Some(scheme) = best_of
        .iter()
        .flat_map(|best_of| &best_of.curves)
        .find(|scheme| !schemes.iter().any(|swept| swept.name == scheme.name))
    {
        return Err(section.error("best-of", format!("curves of {:?}, which is not swept", scheme.name)));
    }
    let variants = variant::read_all(&section, |x, values| check_places(counts_clients, x, values))?;
    if !variants.is_empty() && best_of.is_some() {
        return Err(section.error("variant", "a sweep with best-of has no variants"));
    }
    let sweep = Sweep {
        depends: Depends::read(section.section("depends")?)?,
        variants,
        scenario: section.required("scenario", text)?,
        assignments: section.or("set", Vec::new(), texts)?,
        schemes,
        x_label: section.or("x-label", axis.key.clone(), text)?,
        axis,
        best_of,
        column: section.or("column", "goodput_mbps".to_owned(), column)?,
        y_label: section.or("y-label", "goodput (Mb/s)".to_owned(), text)?,
        seeds: section.optional("seeds", &seeds)?,
        average: section.or("average", Average::Mean, one_of(&averages))?,
        quick: Quick {
            seeds: quick.optional("seeds", &seeds)?,
            assignments: quick.or("set", Vec::new(), texts)?,
            x: quick.optional("x", numbers)?,
            best_of: quick.optional("best-of", numbers)?,
        },
    };
    quick.finish()?;
    section.finish()?;
    Ok(sweep)
}

/// Values of the axis; where it counts clients they are such counts.
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

/// A metric by name; `_mbps` is a `_bps` metric in millions.
fn column(value: &Value) -> Result<String, Mismatch> {
    let name = text(value)?;
    if metric::resolve_column(&name).is_some() {
        return Ok(name);
    }
    let known = metric::ALL.iter().map(|metric| metric.name).collect::<Vec<_>>().join(", ");
    Err(Mismatch::new(format!("{name:?} is no metric"), known))
}

fn read_claim(section: Section<'_>, source: &Source, said_by: &str) -> Result<Claim, InputError> {
    super::claim::Claim::read(section, said_by, |measure| match source {
        Source::Timeline(_) => timeline::Measure::read(measure).map(Measure::Timeline),
        Source::Curves { .. }
        | Source::Series(_)
        | Source::Live(_)
        | Source::Downloads(_)
        | Source::Transfers(_) => measure::Measure::read(measure).map(Measure::Curves),
    })
}
