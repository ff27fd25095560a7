//! The results of transfers by several programs, live and simulated.

use std::path::Path;
use std::sync::Arc as Shared;

use super::downloads;
use super::figure::{Claim, Figure, Findings, Kind, VariantNames};
use super::live_runs::{LiveOutcome, MakeLive, TransferPoint, TransferReport};
use super::measure::{Curves, Measure, same};
use super::metrics::check_metric;
use super::plot_data::PlotData;
use super::results::{Options, RunContext};
use super::saved;
use super::transferred::{Point, Row, Transferred, row};
use super::transfers::{Arm, Transfers};
use tacit_runs::RunsError;
use tacit_runs::aggregate::{Mean, gain};
use tacit_runs::plan::{self, Plan};
use tacit_runs::record::RunSummary;
use tacit_runs::sweep;
use tacit_scenario::input::Section;
use tacit_scenario::scheme::Scheme;
use tacit_scenario::{InputError, Scenario};

/// Columns of every curve, except with downloads; the first one is drawn. The simulator has no value for the packets of one flow among
/// several, nor for CPU time.
pub(super) const COLUMNS: [&str; 9] = [
    "goodput_mbps",
    "ack_ratio",
    "data_packets",
    "ack_packets",
    "cpu_s_per_gb",
    "file_s",
    "dropped_share",
    "jain",
    GAIN_PERCENT,
];

/// The column of an arm with `over`: the gain of each run over that of the other arm with the same seed.
const GAIN_PERCENT: &str = "gain_percent";

impl Kind for Transfers {
    fn curve_names(&self) -> Option<Vec<String>> {
        Some(self.curve_names())
    }

    fn variants(&self) -> Vec<VariantNames<'_>> {
        self.variant_names().map(|name| VariantNames { name, curves: None }).collect()
    }

    fn check_column(&self, name: &str, root: &Section<'_>) -> Result<(), InputError> {
        if self.columns().contains(&name) { Ok(()) } else { check_metric(name, root) }
    }

    fn places(&self, variant: Option<&str>) -> Option<Vec<f64>> {
        Some(self.values(variant))
    }

    fn makes_in_short(&self, measure: &Measure) -> bool {
        let short = self.shortened(true);
        let variant = measure.variant();
        if variant.is_some_and(|name| !short.variant_names().any(|known| known == name)) {
            return false;
        }
        let curves = short.curve_names();
        let places = short.values(variant);
        measure.is_within(&places, &places)
            && measure.curves().all(|curve| curves.iter().any(|name| name == curve))
    }

    fn make_live(&self, quick: bool, make: &mut dyn MakeLive) -> Result<Option<LiveOutcome>, RunsError> {
        Ok(Some(match make.skip_reason()? {
            Some(skip_reason) => Err(skip_reason),
            None => Ok(self.shortened(quick).measured(make)?),
        }))
    }

    fn skip_reason(&self, id: &str, options: &Options) -> Option<String> {
        options.live.skip_reason(id)
    }

    fn is_stored(&self, figure: &Figure, directory: &Path) -> bool {
        saved::is_there(&figure.id, directory)
    }

    fn results(&self, figure: &Figure, making: RunContext<'_>) -> Result<Findings, RunsError> {
        let transfers = self.shortened(making.options.quick);
        let live = making.options.live.get(&figure.id);
        let results = saved::read_or_make(&figure.id, making, || transfers.compared(live, making))?;
        Ok(transfers.findings(figure, results))
    }
}

impl Transfers {
    /// Columns of every curve.
    fn columns(&self) -> &'static [&'static str] {
        if self.downloads.is_some() { &downloads::COLUMNS } else { &COLUMNS }
    }

    /// The live runs together with the simulated ones.
    fn compared(&self, live: &[TransferPoint], making: RunContext<'_>) -> Result<Transferred, RunsError> {
        let mut points: Vec<Point> = live.iter().map(|place| live_point(self, place)).collect();
        if let Some(downloads) = self.downloads {
            for (arm, scheme) in self.arms.iter().filter_map(|arm| Some((arm, arm.simulated?))) {
                let assignments = self.assignments_at(arm, None, 0.0);
                let rows = downloads.simulated(self.files(), (&self.scenario, &assignments), scheme)?;
                points.push(Point::simulated(arm.simulated_name(), None, 0.0, rows));
            }
            return Ok(Transferred { points });
        }
        let mut plan = Plan::default();
        for variant in self.parts() {
            for x in self.values(variant) {
                for arm in &self.arms {
                    let Some(scheme) = arm.simulated else { continue };
                    points.push(Point::simulated(arm.simulated_name(), variant, x, Vec::new()));
                    push(&mut plan, self, (arm, scheme), variant, x)?;
                }
            }
        }
        let summaries = sweep::run(&plan, None, making.control)?;
        let simulated = points[live.len()..].iter_mut();
        for (point, runs) in simulated.zip(summaries.chunks(self.seeds as usize)) {
            let variant = point.variant.as_deref();
            point.runs = runs.iter().map(|run| simulated_row(self, variant, run)).collect();
        }
        add_gains(self, &mut points);
        Ok(Transferred { points })
    }

    /// The curves of `results`, and what disturbed them.
    fn findings(self, figure: &Figure, results: Transferred) -> Findings {
        let names = self.curve_names();
        let curves = |variant| -> Curves {
            match self.downloads {
                Some(_) => downloads::ranked(&results, names.clone()),
                None => results.curves(&COLUMNS, names.clone(), variant),
            }
        };
        let y = if self.downloads.is_some() { "seconds" } else { "goodput (Mb/s)" };
        let mut drawn = PlotData::new(self.x_label.clone(), y.to_owned(), curves(None));
        drawn.variants = self.variant_names().map(|name| (name.to_owned(), curves(Some(name)))).collect();
        Findings {
            picture: self.downloads.map(|_| downloads::picture(&results, &names, figure)),
            // The picture as text.
            measurements: results.points.iter().map(|point| self.line(point)).collect(),
            disturbance: Box::new(move |claim, _| self.disturbance(&results, claim)),
            ..Findings::from_curves(drawn)
        }
    }

    /// What disturbed the points to which `claim` refers.
    fn disturbance(&self, results: &Transferred, claim: &Claim) -> Option<String> {
        let measure = claim.measure.as_curves()?;
        let concerned = |point: &&Point| {
            let curve = std::slice::from_ref(&point.curve);
            let reads = |x: f64| measure.reads(curve, x);
            point.variant.as_deref() == measure.variant()
                && if self.downloads.is_some() {
                    // Every share depends on all downloads.
                    self.values(None).into_iter().any(reads)
                } else {
                    reads(point.x)
                }
        };
        let disturbances = results
            .points
            .iter()
            .filter(concerned)
            .filter_map(|point| Some(format!("{}: {}", self.place(point), point.disturbed.as_ref()?)));
        let disturbances: Vec<String> = disturbances.collect();
        (!disturbances.is_empty()).then(|| disturbances.join("; "))
    }

    /// A point as text.
    fn line(&self, point: &Point) -> String {
        let columns = self.columns();
        let medians = columns.iter().zip(point.medians(columns));
        let measurements: Vec<String> =
            medians.filter_map(|(name, value)| Some(format!("{name} {}", super::value(value?)))).collect();
        let variant = point.variant.as_ref().map_or(String::new(), |name| format!(", {name}"));
        let disturbed = point.disturbed.as_ref().map_or(String::new(), |why| format!("; DISTURBED: {why}"));
        format!("{}{variant}: {}{disturbed}", self.place(point), measurements.join(", "))
    }

    /// The curve of a point and its place on the axis.
    fn place(&self, point: &Point) -> String {
        match self.downloads {
            Some(_) => point.curve.clone(),
            None => format!("{} at {}", point.curve, point.x),
        }
    }
}

/// The live runs of an arm at one place (x value).
fn live_point(transfers: &Transfers, place: &TransferPoint) -> Point {
    let reports = place.runs.as_deref().unwrap_or_default();
    let skip_reason = place.runs.as_ref().err();
    let invalid: Vec<&str> = reports.iter().filter_map(|report| report.invalid.as_deref()).collect();
    let attempts = match transfers.attempts() {
        1 => String::new(),
        several => format!(" after {several} attempts"),
    };
    let disturbed = invalid
        .first()
        .map(|first| format!("{} of {} runs not valid{attempts}: {first}", invalid.len(), reports.len()));
    Point {
        curve: transfers.arms[place.arm].live_name(),
        variant: place.variant.clone(),
        x: place.x,
        runs: match transfers.downloads {
            Some(_) if skip_reason.is_none() => downloads::rows(
                transfers.files(),
                reports.iter().flat_map(|report| report.downloads.clone()).collect(),
            ),
            _ => reports.iter().map(|report| live_row(transfers, report)).collect(),
        },
        disturbed: skip_reason.cloned().or(disturbed),
    }
}

/// Adds the gains of the arms with `over`. A gain over a disturbed run is disturbed.
fn add_gains(transfers: &Transfers, points: &mut [Point]) {
    for arm in &transfers.arms {
        let Some(over) = arm.over.map(|index| &transfers.arms[index]) else { continue };
        for name in [Arm::live_name, Arm::simulated_name] {
            let bases: Vec<Point> =
                points.iter().filter(|point| point.curve == name(over)).cloned().collect();
            for point in points.iter_mut().filter(|point| point.curve == name(arm)) {
                let is_base = |base: &&Point| same(base.x, point.x) && base.variant == point.variant;
                let Some(base) = bases.iter().find(is_base) else { continue };
                for (run, base) in point.runs.iter_mut().zip(&base.runs) {
                    let goodputs = run.get(COLUMNS[0]).zip(base.get(COLUMNS[0]));
                    let gain = goodputs.map(|(goodput, base)| gain(*goodput, *base) * 100.0);
                    run.extend(
                        gain.filter(|gain| gain.is_finite()).map(|gain| (GAIN_PERCENT.to_owned(), gain)),
                    );
                }
                point.disturbed = point.disturbed.take().or_else(|| base.disturbed.clone());
            }
        }
    }
}

/// Results of a live run.
fn live_row(transfers: &Transfers, report: &TransferReport) -> Row {
    let steady = report.mbps.get(transfers.length.from_s as usize..).unwrap_or_default();
    let goodput = match (transfers.length.megabytes, report.file) {
        (Some(_), file) => file.map(|(bytes, seconds)| bytes as f64 * 8e-6 / seconds),
        (None, _) => Mean::from_values(steady.iter().copied()).map(|mean| mean.mean),
    };
    let file_s = transfers.length.megabytes.and(report.file).map(|(_, seconds)| seconds);
    let (data, acks) =
        (report.data_packets.map(|count| count as f64), report.ack_packets.map(|count| count as f64));
    let gigabytes = report.bytes.map(|bytes| bytes as f64 / 1e9);
    let columns = [
        goodput,
        acks.zip(data).map(|(acks, data)| acks / data),
        data,
        acks,
        report.cpu_s.zip(gigabytes).map(|(cpu_s, gigabytes)| cpu_s / gigabytes),
        file_s,
        report.dropped_share,
        report.jain,
    ];
    row(&COLUMNS, columns)
}

/// Results of a simulated run.
fn simulated_row(transfers: &Transfers, variant: Option<&str>, run: &RunSummary) -> Row {
    let file = transfers.length.megabytes.is_some();
    let goodput = if file { "first_flow_transfer_goodput_bps" } else { "first_flow_goodput_bps" };
    let goodput_bps = run.metric(goodput);
    let file_s = goodput_bps.filter(|_| file).map(|bps| transfers.length.bytes() as f64 * 8.0 / bps);
    // The ACKs of background stations cannot be separated.
    let acks = run.metric("acks_per_data_packet").filter(|_| transfers.background(variant) == 0);
    row(&COLUMNS, [goodput_bps.map(|bps| bps / 1e6), acks, None, None, None, file_s, None, None])
}

/// Adds the simulated runs of a place, with the duration and the seeds of the live ones.
fn push(
    plan: &mut Plan,
    transfers: &Transfers,
    (arm, scheme): (&Arm, &'static Scheme),
    variant: Option<&str>,
    x: f64,
) -> Result<(), RunsError> {
    let length = transfers.length;
    let mut assignments = transfers.assignments_at(arm, variant, x);
    assignments.push(format!("run.duration={} s", length.seconds));
    assignments.push(format!("run.measure-from={} s", length.from_s));
    let background = transfers.background(variant);
    let clients = background + 1;
    if length.megabytes.is_some() {
        let file = format!("{{name=\"file\",client=1,size=\"{} B\"}}", length.bytes());
        let others: Vec<String> = (2..=clients).map(|client| client.to_string()).collect();
        let others = match background {
            0 => String::new(),
            _ => format!(",{{name=\"others\",client=[{}]}}", others.join(",")),
        };
        assignments.push(format!("flow=[{file}{others}]"));
    }
    let scenario = Shared::new(together(Scenario::load(&transfers.scenario, &assignments)?));
    let place = plan::SweepPoint { x: Some(x), best_of: None };
    plan.push(&scenario, scheme, clients, place, transfers.seeds)?;
    Ok(())
}

/// Makes all clients start with the hop, as in a live run.
fn together(mut scenario: Scenario) -> Scenario {
    scenario.stagger = tacit_packet::units::Duration::ZERO;
    scenario
}
