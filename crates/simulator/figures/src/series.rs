//! The state of a flow over time: one sampled run per curve.

use std::path::Path;

use super::draw::{concerned, marks_of};
use super::figure::{Figure, Findings, Kind};
use super::measure::{Curve, Curves};
use super::plot_data::PlotData;
use super::results::{Observable, Observed, Results, RunContext, file_name, slug};
use super::schemes::read_scheme;
use tacit_analysis::chart::{Line, LineChart, Panel, Strip, StripChart, Views, stacked};
use tacit_runs::RunsError;
use tacit_runs::store::Store;
use tacit_runs::track::{TrackRecord, track};
use tacit_scenario::InputError;
use tacit_scenario::input::{Mismatch, Section, Value, integer, text, texts};
use tacit_scenario::scheme::Scheme;

/// Name of the curve of the links on the path.
const LINK: &str = "link";
/// Name of the panel that shows states instead of curves.
const STATE: &str = "state";
/// Prefix of a column that is 1 while the flow is in the named state, and 0 otherwise.
const IN_STATE: &str = "in ";

/// A value derived from each sample.
struct Column {
    name: &'static str,
    label: &'static str,
    /// The value at the given index. Earlier samples are needed to compute differences.
    value: fn(&[TrackRecord], usize) -> Option<f64>,
}

const COLUMNS: [Column; 5] = [
    Column { name: "goodput_mbps", label: "goodput (Mb/s)", value: goodput_mbps },
    Column {
        name: "queueing_ms",
        label: "queueing (ms)",
        value: |all, at| Some(all[at].queueing_ns as f64 / 1e6),
    },
    Column {
        name: "pacing_mbps",
        label: "pacing (Mb/s)",
        value: |all, at| Some(all[at].pacing_bps? as f64 / 1e6),
    },
    Column {
        name: "window_kb",
        label: "window (kB)",
        value: |all, at| Some(all[at].window_bytes as f64 / 1e3),
    },
    Column {
        name: "rtt_ms",
        label: "smoothed RTT (ms)",
        value: |all, at| Some(all[at].smoothed_rtt_ns as f64 / 1e6),
    },
];

/// `[series]`: its runs, and the panels drawn from them.
#[derive(Clone, Debug)]
pub(super) struct Series {
    run: Observable,
    every: String,
    /// Index of the flow in the run.
    flow: usize,
    curves: Vec<Run>,
    /// Names of columns, or [`STATE`].
    panels: Vec<String>,
}

/// `[[series.curve]]`: one of the runs.
#[derive(Clone, Debug)]
struct Run {
    name: String,
    assignments: Vec<String>,
    scheme: &'static Scheme,
    /// Index of the flow, if it differs from that of the other curves.
    flow: Option<usize>,
}

impl Series {
    pub fn read(section: Section<'_>) -> Result<Self, InputError> {
        let curves = section.sections("curve")?.into_iter().map(Run::read).collect::<Result<Vec<_>, _>>()?;
        if curves.is_empty() {
            return Err(section.error("curve", "there is none").allowed("a [[series.curve]] for each run"));
        }
        let panels = section.or("panels", vec!["goodput_mbps".to_owned()], panels)?;
        let series = Self {
            run: Observable::read(&section)?,
            every: section.or("every", "100 ms".to_owned(), text)?,
            flow: section.or("flow", 1, integer(1..=u32::MAX))? as usize - 1,
            curves,
            panels,
        };
        section.finish()?;
        Ok(series)
    }

    /// The samples of its runs. `results` returns the store for each run's directory.
    ///
    /// # Errors
    /// If a scenario cannot be run, or its results are missing.
    fn tracks<'a>(
        &self,
        figure: &Figure,
        results: impl Fn(&str) -> Results<'a>,
    ) -> Result<Vec<Vec<TrackRecord>>, RunsError> {
        let of_run = |run: &Run| {
            let results = results(&run.directory(figure));
            let interval = format!("run.sample-interval={}", self.every);
            let spec = self.run.spec(&[run.assignments.as_slice(), &[interval]].concat(), run.scheme)?;
            let flow = run.flow.unwrap_or(self.flow);
            let description = format!("{}: {}", figure.title, run.name);
            let record = results.observed(&spec, description, |setup| {
                let outcome = tacit_sim::run(setup)?;
                let track = track(setup, &outcome, flow);
                Ok((outcome, Observed { track, ..Observed::default() }))
            })?;
            if record.track.is_empty() {
                let what = format!("run {:?} has no flow {}", run.name, flow + 1);
                return Err(InputError::new(&figure.id, what).into());
            }
            Ok(record.track)
        };
        self.curves.iter().map(of_run).collect()
    }

    /// The curves of `tracks` over time in seconds: the columns of the panels, and those that claims need.
    fn drawn(&self, figure: &Figure, tracks: &[Vec<TrackRecord>]) -> PlotData {
        let columns = figure.columns(self.panels.iter().map(String::as_str).filter(|panel| *panel != STATE));
        let curve = |name: &str, track: &[TrackRecord], value: &dyn Fn(&str, usize) -> Option<f64>| Curve {
            name: name.to_owned(),
            points: (0..track.len())
                .map(|at| (seconds(&track[at]), columns.iter().map(|column| value(column, at)).collect()))
                .collect(),
            ..Curve::default()
        };
        let mut curves: Vec<Curve> = self
            .curves
            .iter()
            .zip(tracks)
            .map(|(run, track)| curve(&run.name, track, &|column, at| value(track, column, at)))
            .collect();
        if let Some(track) = tracks.first() {
            let link = |column: &str, at: usize| {
                let is_rate = column == "goodput_mbps" || column == "pacing_mbps";
                track[at].link_bps.filter(|_| is_rate).map(|bps| bps as f64 / 1e6)
            };
            curves.push(curve(LINK, track, &link));
        }
        let label = columns.first().map_or("", |column| label(column));
        PlotData::new("time (s)".to_owned(), label.to_owned(), Curves { columns, curves })
    }

    /// The picture, with the panels below each other.
    fn picture(&self, figure: &Figure, drawn: &PlotData, tracks: &[Vec<TrackRecord>]) -> Views {
        let last = self.panels.len() - 1;
        let x = |panel: usize| if panel == last { drawn.x.clone() } else { String::new() };
        let mut columns = 0;
        let mut lines = Vec::new();
        let mut strips = Vec::new();
        for (place, panel) in self.panels.iter().enumerate() {
            if panel == STATE {
                lines.push(None);
                strips.push(self.strips(x(place), tracks));
            } else {
                lines.push(Some(chart(figure, drawn, columns, x(place))));
                columns += 1;
            }
        }
        let mut strips = strips.iter();
        let panels: Vec<Panel<'_>> = lines
            .iter()
            .filter_map(|chart| match chart {
                Some(chart) => Some(Panel::Lines(chart)),
                None => strips.next().map(Panel::Strips),
            })
            .collect();
        let alt = format!("{}: {}", figure.id, figure.title);
        Views::new(|width| stacked(&alt, &panels, width))
    }

    fn strips(&self, x: String, tracks: &[Vec<TrackRecord>]) -> StripChart {
        let strip = |(run, track): (&Run, &Vec<TrackRecord>)| {
            let mut states: Vec<(f64, String)> = Vec::new();
            for sample in track {
                let state = sample.state.as_deref().unwrap_or("none");
                if states.last().is_none_or(|(_, last)| last != state) {
                    states.push((seconds(sample), state.to_owned()));
                }
            }
            Strip { name: run.name.clone(), states }
        };
        let end = tracks.iter().filter_map(|track| track.last()).map(seconds).fold(0.0, f64::max);
        // Curves leave the same margin on the right.
        StripChart { x, end: end * 1.05, strips: self.curves.iter().zip(tracks).map(strip).collect() }
    }
}

impl Kind for Series {
    fn curve_names(&self) -> Option<Vec<String>> {
        Some(self.curves.iter().map(|run| run.name.clone()).chain([LINK.to_owned()]).collect())
    }

    fn check_column(&self, name: &str, root: &Section<'_>) -> Result<(), InputError> {
        if name.starts_with(IN_STATE) || COLUMNS.iter().any(|column| column.name == name) {
            return Ok(());
        }
        Err(root.error("claim", format!("{name:?} is no column of a series")))
    }

    fn is_stored(&self, figure: &Figure, directory: &Path) -> bool {
        let first = self.curves.first().map_or_else(String::new, |run| run.directory(figure));
        !Store::existing(&directory.join(first)).is_empty()
    }

    fn results(&self, figure: &Figure, making: RunContext<'_>) -> Result<Findings, RunsError> {
        let tracks = self.tracks(figure, |directory| Results::new(making, &figure.id, directory))?;
        let drawn = self.drawn(figure, &tracks);
        let picture = Some(self.picture(figure, &drawn, &tracks));
        Ok(Findings { picture, ..Findings::from_curves(drawn) })
    }
}

impl Run {
    fn read(section: Section<'_>) -> Result<Self, InputError> {
        let run = Self {
            name: section.required("name", text)?,
            assignments: section.or("set", Vec::new(), texts)?,
            scheme: read_scheme(&section)?,
            flow: section.optional("flow", integer(1..=u32::MAX))?.map(|number| number as usize - 1),
        };
        section.finish()?;
        Ok(run)
    }

    fn directory(&self, figure: &Figure) -> String {
        file_name(&figure.id, &format!("-{}", slug(&self.name)))
    }
}

fn seconds(sample: &TrackRecord) -> f64 {
    sample.at_ns as f64 / 1e9
}

/// Goodput since the previous sample, or since the start.
fn goodput_mbps(all: &[TrackRecord], at: usize) -> Option<f64> {
    let before = at.checked_sub(1).map_or((0, 0), |before| (all[before].at_ns, all[before].delivered_bytes));
    let nanos = all[at].at_ns.checked_sub(before.0).filter(|nanos| *nanos > 0)?;
    Some((all[at].delivered_bytes - before.1) as f64 * 8e3 / nanos as f64)
}

fn value(track: &[TrackRecord], column: &str, at: usize) -> Option<f64> {
    if let Some(state) = column.strip_prefix(IN_STATE) {
        return Some(f64::from(u8::from(track[at].state.as_deref() == Some(state))));
    }
    COLUMNS.iter().find(|known| known.name == column).and_then(|known| (known.value)(track, at))
}

fn label(column: &str) -> &str {
    COLUMNS.iter().find(|known| known.name == column).map_or(column, |known| known.label)
}

/// The panel of the column with index `column`. The first panel has the marks of claims.
fn chart(figure: &Figure, drawn: &PlotData, column: usize, x: String) -> LineChart {
    let line = |curve: &Curve| Line {
        name: curve.name.clone(),
        points: curve.points.iter().filter_map(|(x, columns)| Some((*x, columns[column]?))).collect(),
        ..Line::default()
    };
    let (marks, marks_name) =
        if column == 0 { marks_of(figure, &drawn.curves) } else { (Vec::new(), String::new()) };
    LineChart {
        x,
        y: label(&drawn.curves.columns[column]).to_owned(),
        lines: drawn.curves.curves.iter().map(line).collect(),
        dense: true,
        concerned: concerned(figure),
        marks,
        marks_name,
        ..LineChart::default()
    }
}

fn panels(value: &Value) -> Result<Vec<String>, Mismatch> {
    let panels = texts(value)?;
    let is_column = |name: &String| COLUMNS.iter().any(|column| column.name == name);
    match panels.iter().find(|name| !is_column(name) && *name != STATE) {
        None if panels.first().is_some_and(is_column) => Ok(panels),
        wrong => {
            let known: Vec<&str> = COLUMNS.iter().map(|column| column.name).chain([STATE]).collect();
            let what = wrong
                .map_or("the first panel has no curves".to_owned(), |name| format!("{name:?} is no panel"));
            Err(Mismatch::new(what, known.join(", ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, run};
    use tacit_runs::sweep::Control;

    /// A link of 12 Mb/s that drops to 6 Mb/s after two seconds.
    const SERIES: &str = "\
title = \"t\"
paper = \"p\"
[series]
scenario = \"wired-10\"
set = [\"run.duration=4s\", \"run.measure-from=0s\", \"wired.queue=100 packets\", \"tcp.slow-start=hystart\",
       \"wired.down.rate=12Mbps\", \"wired.down.rate-script=[[\\\"2 s\\\", \\\"6Mbps\\\"]]\"]
panels = [\"goodput_mbps\", \"queueing_ms\", \"pacing_mbps\", \"state\"]
[[series.curve]]
name = \"CUBIC\"
[[series.curve]]
name = \"BBR\"
scheme = \"bbr\"
[[claim]]
text = \"the link's rate, before and after\"
paper = 6
measure = { value = \"link\", x-from = 2.05 }
tolerance = 0
[[claim]]
text = \"no more than that arrives\"
paper = 12
measure = { value = \"CUBIC\", take = \"most\" }
bound = \"at-most\"
tolerance = 0
[[claim]]
text = \"nor much less\"
paper = 5.5
measure = { value = \"CUBIC\", x-from = 3 }
bound = \"at-least\"
tolerance = 0
[[claim]]
text = \"CUBIC keeps the queue of 200 ms standing\"
paper = 100
measure = { value = \"CUBIC\", column = \"queueing_ms\", x-from = 3, take = \"least\" }
bound = \"at-least\"
tolerance = 0
[[claim]]
text = \"and starts slowly\"
paper = 1
measure = { value = \"CUBIC\", column = \"in slow start\", x = 0.1 }
tolerance = 0
[[claim]]
text = \"BBR paces near the rate\"
paper = 8
measure = { value = \"BBR\", column = \"pacing_mbps\", x-from = 3.5 }
tolerance = 1
";

    #[test]
    fn a_series_shows_how_flows_fare_over_time() {
        let directory = tempfile::tempdir().unwrap();
        let figure = || Figure::parse("test/series", "series.toml", SERIES).unwrap();
        let options = Options { directory: Some(directory.path().to_owned()), ..Options::default() };
        let outcome = &run(&[figure()], &options, Control::unattended()).unwrap()[0];
        assert!(outcome.claims.iter().all(|claim| claim.pass), "{}", outcome.to_text());
        let svg = std::fs::read_to_string(outcome.svg.as_ref().unwrap()).unwrap();
        for shown in ["queueing (ms)", "slow start", "startup", "probe bandwidth", "link"] {
            assert!(svg.contains(shown), "{shown}");
        }
        // Judges the stored results again.
        let options = Options { from: options.directory, ..Options::default() };
        let again = &run(&[figure()], &options, Control::unattended()).unwrap()[0];
        assert_eq!(again.claims, outcome.claims);
    }

    #[test]
    fn series_without_such_a_column_are_refused() {
        for (from, to, expected) in [
            ("\"queueing_ms\", \"pacing_mbps\"", "\"queuing_ms\"", "\"queuing_ms\" is no panel"),
            ("panels = [\"goodput_mbps\", ", "panels = [\"state\", ", "the first panel has no curves"),
            (
                "column = \"queueing_ms\"",
                "column = \"wired_drops\"",
                "\"wired_drops\" is no column of a series",
            ),
            ("value = \"BBR\"", "value = \"Reno\"", "\"Reno\" is measured, but not swept"),
            ("scheme = \"bbr\"", "scheme = \"bbq\"", "unknown scheme \"bbq\""),
        ] {
            let error = Figure::parse("x", "x.toml", &SERIES.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(error.contains(expected), "{expected}: {error}");
        }
        let figure = Figure::parse("x", "x.toml", &SERIES.replace("panels =", "flow = 2\npanels =")).unwrap();
        let error = run(&[figure], &Options::default(), Control::unattended()).unwrap_err().to_string();
        assert!(error.contains("has no flow 2"), "{error}");
    }
}
