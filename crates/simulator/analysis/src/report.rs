//! Comparisons and sweeps as a self-contained HTML file without scripts, external fonts or network access.

pub mod figure;
pub mod page;
mod style;
pub(crate) mod sweep;

use std::path::{Path, PathBuf};

use maud::{Markup, html};
use serde::Serialize;
use tacit_link::wifi::AirtimeUse;

pub use sweep::{PlotFormat, Sweep, SweepRow};

use crate::chart::{Bar, BarChart, Dot, DotChart, Ink, Line, LineChart, Part};
use crate::compare::{
    Comparison, CompletionTimes, Row, adoption_table, airtime_label, beside, goodput, numbers_table,
    who_switches,
};
use crate::explore;
use crate::plot;
use figure::{Shown, block, scroller, table_markup};
use tacit_runs::RunsError;
use tacit_runs::batches::Directory;
use tacit_runs::store::{Provenance, Store, write_whole};
use tacit_scenario::brought;
use tacit_scenario::scheme::{self, Role, Scheme};
use tacit_scenario::table::{count, number};

/// File name of the report in a directory of results.
pub const FILE: &str = "index.html";

/// A report, whose kind depends on the results in its directory.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Report {
    /// A comparison of schemes at one or more client counts.
    Comparison(Box<Comparison>),
    /// Schemes along an axis.
    Sweep(Box<Sweep>),
}

/// Writes the report of `comparison` to `directory`. Returns its path.
///
/// # Errors
/// If it cannot be written.
pub fn write(comparison: &Comparison, directory: &Path) -> Result<PathBuf, RunsError> {
    write_page(&Report::Comparison(Box::new(comparison.clone())), directory)
}

/// Draws the report of the results in `directory` again without running anything. A sweep in batches results in one
/// comparison per sweep point.
///
/// # Errors
/// If there are no results, or the report cannot be written.
pub fn redraw(directory: &Path) -> Result<(Vec<Report>, PathBuf), RunsError> {
    let reports = match Directory::existing(directory)? {
        Some(sweep) => {
            let comparison = |place| Ok(Report::Comparison(Box::new(Comparison::from_place(place?)?)));
            sweep.places().map(comparison).collect::<Result<Vec<_>, RunsError>>()?
        }
        None => vec![stored(directory)?],
    };
    let path = match &reports[..] {
        [report] => write_page(report, directory)?,
        several => write_all(several, directory)?,
    };
    Ok((reports, path))
}

/// The report of the last finished sweep in a store.
fn stored(directory: &Path) -> Result<Report, RunsError> {
    let store = Store::existing(directory);
    let (provenance, records) = store.read()?;
    if records.iter().any(|record| record.label.x.is_some()) {
        return Ok(Report::Sweep(Box::new(Sweep::from_records(provenance, &records))));
    }
    let mut comparison = Comparison::from_records(provenance, &records);
    comparison.take_completions(&store, &records)?;
    Ok(Report::Comparison(Box::new(comparison)))
}

/// Writes a page for several reports to `directory`: an index, then one part per report. Returns its path.
///
/// # Errors
/// If it cannot be written.
pub fn write_all(reports: &[Report], directory: &Path) -> Result<PathBuf, RunsError> {
    let path = directory.join(FILE);
    write_whole(&path, index(reports).into_string().as_bytes())?;
    Ok(path)
}

fn write_page(report: &Report, directory: &Path) -> Result<PathBuf, RunsError> {
    let path = directory.join(FILE);
    let title = format!("{}: acknowledgment schemes compared", report.heading());
    let header = html! { p.kicker { "tacit compare" } h1 { (report.heading()) } (report.lead()) };
    write_whole(&path, page::document(&title, &header, &report.sections()).into_string().as_bytes())?;
    Ok(path)
}

fn index(reports: &[Report]) -> Markup {
    let comparisons: Vec<&Comparison> = reports.iter().filter_map(Report::comparison).collect();
    let swept =
        if comparisons.len() == reports.len() { plot::from_comparisons(&comparisons) } else { Vec::new() };
    let title = match (swept.first(), reports.first()) {
        (Some(_), Some(first)) => {
            let places = count(reports.len() as u64, "setting");
            format!("{}: acknowledgment schemes compared at {places}", first.heading())
        }
        _ => format!("Acknowledgment schemes compared in {}", count(reports.len() as u64, "scenario")),
    };
    let main = html! {
        @if !swept.is_empty() {
            section {
                h2 { "Goodput" }
                @for sweep in &swept { (sweep.figures()) }
            }
        }
        section {
            h2 { "Contents" }
            ol { @for (report, number) in reports.iter().zip(1..) {
                li { a href=(format!("#part-{number}")) { (report.heading()) } ": " (report.provenance().description) }
            } }
        }
        @for (report, number) in reports.iter().zip(1..) {
            article id=(format!("part-{number}")) {
                h1 { (report.heading()) }
                (report.lead())
                (report.sections())
            }
        }
    };
    page::document(&title, &html! { p.kicker { "tacit report" } h1 { (title) } }, &main)
}

impl Report {
    /// The comparison, if it is one.
    pub fn comparison(&self) -> Option<&Comparison> {
        match self {
            Self::Comparison(comparison) => Some(comparison),
            Self::Sweep(_) => None,
        }
    }

    fn heading(&self) -> &str {
        match self {
            Self::Comparison(comparison) => &comparison.scenario,
            Self::Sweep(sweep) => &sweep.scenario,
        }
    }

    fn provenance(&self) -> &Provenance {
        match self {
            Self::Comparison(comparison) => &comparison.provenance,
            Self::Sweep(sweep) => &sweep.provenance,
        }
    }

    /// The introduction below the heading.
    fn lead(&self) -> Markup {
        html! {
            p.lead { (self.provenance().description) }
            @if let Self::Comparison(comparison) = self {
                p.note { (setting(comparison)) }
                @if !comparison.conditions.is_empty() {
                    p.note { "With " code { (comparison.conditions.join(", ")) } "." }
                }
                @for warning in &comparison.warnings { p.note { strong { "Warning: " } (warning) } }
            }
        }
    }

    fn sections(&self) -> Markup {
        html! {
            @match self {
                Self::Comparison(comparison) => {
                    (goodput_section(comparison))
                    (adoption_section(comparison))
                    @if comparison.rows.iter().any(|row| row.airtime.is_some()) {
                        (airtime_section(comparison)) (delay_section(comparison))
                    }
                    @if !comparison.completions.is_empty() { (completion_section(comparison)) }
                    (table_section(comparison))
                    (schemes_section(comparison))
                }
                Self::Sweep(sweep) => { (sweep.sections()) }
            }
            (provenance_section(self.provenance()))
        }
    }

    /// As text.
    pub fn to_text(&self, width: Option<usize>) -> String {
        match self {
            Self::Comparison(comparison) => comparison.to_text(width),
            Self::Sweep(sweep) => sweep.to_text(),
        }
    }
}

fn setting(comparison: &Comparison) -> String {
    let seeds = comparison.rows.iter().map(|row| row.seeds).max().unwrap_or(0);
    format!(
        "{}, {} s measured in each, the same draws for every scheme. ± and whiskers: 95 % confidence interval.",
        count(seeds as u64, "seed"),
        number(comparison.measured_s, if comparison.measured_s < 10.0 { 1 } else { 0 })
    )
}

/// One chart per client count, side by side if there is room.
fn panels(comparison: &Comparison, chart: impl Fn(&[&Row]) -> Shown) -> Markup {
    html! {
        div.panels {
            @for clients in comparison.client_counts() {
                figure {
                    figcaption { (count(clients.into(), "client")) }
                    (chart(&ranked(comparison, clients)).markup())
                }
            }
        }
    }
}

/// The rows of a client count, the largest goodput first. All charts and tables have this order.
fn ranked(comparison: &Comparison, clients: u32) -> Vec<&Row> {
    let mut rows: Vec<&Row> = comparison.rows_of(clients).collect();
    rows.sort_by(|a, b| b.goodput_bps_mean.total_cmp(&a.goodput_bps_mean));
    rows
}

/// Alternative text of a chart of one client count.
fn alt(what: &str, rows: &[&Row], comparison: &Comparison) -> String {
    let clients = rows.first().map_or(0, |row| row.clients);
    format!("{}, {}: {what}", comparison.scenario, count(clients.into(), "client"))
}

fn goodput_section(comparison: &Comparison) -> Markup {
    // A common axis makes all panels comparable.
    let also: Vec<f64> = comparison.rows.iter().map(|row| row.goodput_bps_mean / 1e6).collect();
    let chart = |rows: &[&Row]| {
        let dot = |row: &&Row| Dot {
            name: row.scheme.clone(),
            label: goodput(row),
            value: row.goodput_bps_mean / 1e6,
            interval: row.goodput_bps_ci95.map(|ci| ci / 1e6),
            reference: None,
        };
        let chart = DotChart {
            alt: alt("goodput per scheme, the largest on top", rows, comparison),
            axis: "goodput, Mb/s".to_owned(),
            also: also.clone(),
            dots: rows.iter().map(dot).collect(),
            baseline: Some(Scheme::with_role(Role::Baseline).name.to_owned()),
            ..DotChart::default()
        };
        Shown::dots(&chart)
    };
    html! {
        section {
            h2 { "Goodput" }
            p { "Payload that reached the receiving applications in order, all flows together. "
                "The axis need not begin at zero." }
            (panels(comparison, chart))
            @for clients in comparison.client_counts() {
                @if let Some(line) = beside(comparison, clients) {
                    p.note { (count(clients.into(), "client")) " " (line) }
                }
            }
        }
    }
}

/// What clients that switch gain and what the others lose; nothing where all use the schemes.
fn adoption_section(comparison: &Comparison) -> Markup {
    let mixed = comparison.client_counts().into_iter().filter_map(|clients| {
        let rows: Vec<&Row> = comparison.rows_of(clients).collect();
        Some((who_switches(&rows)?, adoption_table(&rows)))
    });
    let mixed: Vec<_> = mixed.collect();
    html! {
        @if !mixed.is_empty() {
            section {
                h2 { "Who switches" }
                @for (title, table) in &mixed {
                    p { (title) "." }
                    (scroller(title, &table_markup(None, table)))
                }
            }
        }
    }
}

/// Colours of the uses of airtime, in the order of `AirtimeUse::ALL`.
const AIRTIME_INKS: [Ink; AirtimeUse::ALL.len()] = [
    Ink::Series(0),
    Ink::Series(1),
    Ink::Series(2),
    Ink::Series(3),
    Ink::Series(9),
    Ink::Series(8),
    Ink::Series(4),
    Ink::Series(5),
    Ink::Series(6),
    Ink::Series(7),
];

/// Labels of the uses of airtime in reports, and their colours on a light background, in the order of
/// [`AirtimeUse::ALL`].
pub fn airtime_looks() -> impl Iterator<Item = (AirtimeUse, &'static str, &'static str)> {
    AirtimeUse::ALL.into_iter().zip(AIRTIME_INKS).map(|(what, ink)| (what, airtime_label(what), ink.light()))
}

fn airtime_section(comparison: &Comparison) -> Markup {
    let chart = |rows: &[&Row]| {
        let bar = |row: &&Row| {
            let shares = row.airtime.map_or([0.0; AirtimeUse::ALL.len()], |airtime| airtime.0);
            let part = |(share, ink): (f64, Ink)| Part { length: share * 100.0, ink };
            Bar {
                name: row.scheme.clone(),
                parts: shares.into_iter().zip(AIRTIME_INKS).map(part).collect(),
                ..Bar::default()
            }
        };
        let chart = BarChart {
            alt: alt("airtime by use, per scheme", rows, comparison),
            axis: "% of the time".to_owned(),
            parts: AirtimeUse::ALL.map(|what| airtime_label(what).to_owned()).into(),
            axis_end: Some(100.0),
            bars: rows.iter().map(bar).collect(),
        };
        Shown::bars(&chart)
    };
    html! {
        section {
            h2 { "Where the time goes" }
            p { "Every moment of the channel, booked once." }
            ul.legend {
                @for (what, ink) in AirtimeUse::ALL.into_iter().zip(AIRTIME_INKS) {
                    li { span.swatch style=(format!("background:{}", ink.css())) {} (airtime_label(what)) }
                }
            }
            (panels(comparison, chart))
        }
    }
}

fn delay_section(comparison: &Comparison) -> Markup {
    let chart = |rows: &[&Row]| {
        let bar = |row: &&Row| {
            let (p50, p95) = (
                row.means.queue_delay_p50_us.unwrap_or(0.0) / 1e3,
                row.means.queue_delay_p95_us.unwrap_or(0.0) / 1e3,
            );
            Bar {
                name: row.scheme.clone(),
                label: format!("{} / {}", number(p50, 1), number(p95, 1)),
                parts: vec![
                    Part { length: p50, ink: Ink::Series(0) },
                    Part { length: p95 - p50, ink: Ink::Series(4) },
                ],
            }
        };
        let chart = BarChart {
            alt: alt("queueing delay per scheme", rows, comparison),
            axis: "wait before the first transmission, ms".to_owned(),
            parts: vec!["median".to_owned(), "up to the 95th percentile".to_owned()],
            bars: rows.iter().map(bar).collect(),
            ..BarChart::default()
        };
        Shown::bars(&chart)
    };
    html! {
        section {
            h2 { "Queueing delay" }
            p { "In the queue of the station that sends most: the access point, for downloads." }
            ul.legend {
                li { span.swatch style=(format!("background:{}", Ink::Series(0).css())) {} "median" }
                li { span.swatch style=(format!("background:{}", Ink::Series(4).css())) {} "up to the 95th percentile" }
            }
            (panels(comparison, chart))
        }
    }
}

/// Flow completion times as cumulative distributions, one chart per client count.
fn completion_section(comparison: &Comparison) -> Markup {
    let line = |times: &CompletionTimes| {
        let points = times.steps.iter().map(|(seconds, share)| (*seconds, share * 100.0)).collect();
        Line { name: times.scheme.clone(), points, ..Line::default() }
    };
    let mut counts: Vec<u32> = comparison.completions.iter().map(|times| times.clients).collect();
    counts.dedup();
    let chart = |clients: u32| LineChart {
        alt: format!(
            "{}, {}: flow completion times per scheme, cumulative",
            comparison.scenario,
            count(clients.into(), "client")
        ),
        x: "flow completion time, s".to_owned(),
        y: "flows that took no longer, %".to_owned(),
        lines: comparison.completions.iter().filter(|times| times.clients == clients).map(line).collect(),
        dense: true,
        steps: true,
        ..LineChart::default()
    };
    html! {
        section {
            h2 { "Flow completion times" }
            p {
                "Each from the flow's own start until its receiver had everything; the flows of all seeds that came to "
                "their end."
            }
            div.panels {
                @for clients in counts {
                    figure {
                        figcaption { (count(clients.into(), "client")) }
                        (Shown::lines(&chart(clients)).markup())
                    }
                }
            }
        }
    }
}

fn table_section(comparison: &Comparison) -> Markup {
    html! {
        section {
            h2 { "Numbers" }
            (scroller("Numbers", &table(comparison)))
        }
    }
}

/// Only the report's table of results, for other pages.
pub fn table_html(comparison: &Comparison) -> String {
    table(comparison).into_string()
}

fn table(comparison: &Comparison) -> Markup {
    let ranked_rows = |clients| ranked(comparison, clients);
    let rows: Vec<&Row> = comparison.client_counts().into_iter().flat_map(ranked_rows).collect();
    table_markup(None, &numbers_table(&rows))
}

fn schemes_section(comparison: &Comparison) -> Markup {
    let shown = |scheme: &&Scheme| comparison.rows.iter().any(|row| row.scheme == scheme.name);
    html! {
        section {
            h2 { "Schemes" }
            dl {
                @for scheme in scheme::ALL.iter().chain(brought::all()).filter(shown) {
                    dt { (scheme.name) }
                    dd { (scheme.summary) }
                }
            }
        }
    }
}

fn provenance_section(provenance: &Provenance) -> Markup {
    html! {
        section {
            h2 { "The same again" }
            (block("Command", &provenance.command))
            @if let Some(command) = explore::beside(&provenance.command) {
                p { "The air in one of these runs, frame by frame:" }
                (block("Command", &command))
            }
            dl {
                dt { "version" } dd { "tacit " (provenance.version) }
                dt { "seeds" } dd { (provenance.seeds) }
                dt { "digest" } dd { code { (provenance.digest) } }
            }
            p.note {
                "To cite it: " (tacit_runs::citation(&provenance.version)) " Cite the papers of the schemes that you use "
                "with it; the table of schemes names them."
            }
            p.note {
                "Equal versions, scenarios and seeds give equal digests. The numbers of every run, flow and sample "
                "are beside this file in runs.parquet, flows.parquet and series.parquet."
            }
            details {
                summary { "The whole scenario" }
                (block("The whole scenario", provenance.scenario_text.trim()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tacit_runs::record::{Label, RunRecord, RunSummary};

    use super::*;
    use crate::compare::{DEFAULT_SCENARIO, Options, compare};
    use tacit_runs::sweep::Control;

    #[test]
    fn the_report_is_whole_and_redrawn_from_its_files() {
        let directory = tempfile::tempdir().unwrap();
        let options = Options {
            scenario: DEFAULT_SCENARIO.into(),
            assignments: vec!["run.duration=300ms".into(), "run.measure-from=100ms".into()],
            clients: vec![1, 2],
            seeds: Some(2),
            directory: Some(directory.path().to_owned()),
            ..Options::default()
        };
        let comparison = compare(&options, Control::unattended()).unwrap();
        let path = write(&comparison, directory.path()).unwrap();
        let drawn = std::fs::read_to_string(&path).unwrap();
        for scheme in scheme::by_default() {
            assert!(drawn.contains(scheme.name) && drawn.contains(scheme.summary), "{}", scheme.name);
        }
        assert!(drawn.contains("ap-queue = &quot;126 packets&quot;"));
        assert!(drawn.contains(&comparison.provenance.digest));
        let explore = "tacit explore wlan-11n-150 --schemes stock,hack-more-data --clients 2 \
                       --set run.duration=300ms --set run.measure-from=100ms";
        assert!(drawn.contains(explore), "the command that shows its frames");
        // The file is self-contained: nothing is fetched.
        for fetched in ["<script", "<link", "src=", "url(", "@import"] {
            assert!(!drawn.contains(fetched), "{fetched}");
        }
        std::fs::remove_file(&path).unwrap();
        let (again, path) = redraw(directory.path()).unwrap();
        assert_eq!(again, [Report::Comparison(Box::new(comparison))]);
        assert_eq!(std::fs::read_to_string(path).unwrap(), drawn);
    }

    #[test]
    fn completion_times_of_flows_with_an_end_are_drawn_and_redrawn() {
        let directory = tempfile::tempdir().unwrap();
        let options = Options {
            scenario: "wired-10".into(),
            assignments: vec![
                "traffic.size=100 kB".into(),
                "run.duration=2s".into(),
                "run.measure-from=0s".into(),
            ],
            clients: vec![2],
            schemes: vec!["stock".into(), "tcp-l4".into()],
            seeds: Some(2),
            directory: Some(directory.path().to_owned()),
            ..Options::default()
        };
        let comparison = compare(&options, Control::unattended()).unwrap();
        let schemes: Vec<&str> = comparison.completions.iter().map(|times| times.scheme.as_str()).collect();
        assert_eq!(schemes, ["stock", "tcp-l4"]);
        for times in &comparison.completions {
            assert_eq!(times.steps.len(), 1 + 2 * 2, "two clients, two seeds: {:?}", times.steps);
            let rows = comparison.rows.iter().find(|row| row.scheme == times.scheme).unwrap();
            let (least, largest) = (times.steps[0].0, times.steps[4].0);
            assert!((least..=largest).contains(&rows.means.flow_completion_p50_s.unwrap()), "{times:?}");
        }
        let json = serde_json::to_value(&comparison).unwrap();
        let least = json["flow_completion_cdfs"][1]["steps"][0].as_array().unwrap();
        assert_eq!(
            (least[0].as_f64(), least[1].as_f64()),
            (Some(comparison.completions[1].steps[0].0), Some(0.0))
        );
        let path = write(&comparison, directory.path()).unwrap();
        let drawn = std::fs::read_to_string(&path).unwrap();
        assert!(drawn.contains("<h2>Flow completion times</h2>"));
        assert_eq!(redraw(directory.path()).unwrap().0, [Report::Comparison(Box::new(comparison))]);
        assert_eq!(std::fs::read_to_string(path).unwrap(), drawn);
    }

    #[test]
    fn several_reports_make_one_page_with_an_index() {
        let directory = tempfile::tempdir().unwrap();
        let reports: Vec<Report> = ["wlan-11n-150", "wired-10"]
            .map(|scenario| {
                let directory = directory.path().join(scenario);
                let options = Options {
                    scenario: scenario.into(),
                    assignments: vec!["run.duration=300ms".into(), "run.measure-from=100ms".into()],
                    clients: vec![1],
                    schemes: vec!["tcp-l4".into()],
                    seeds: Some(1),
                    directory: Some(directory.clone()),
                    ..Options::default()
                };
                compare(&options, Control::unattended()).unwrap();
                redraw(&directory).unwrap().0
            })
            .concat();
        let drawn = std::fs::read_to_string(write_all(&reports, directory.path()).unwrap()).unwrap();
        for (number, scenario) in [(1, "wlan-11n-150"), (2, "wired-10")] {
            assert!(drawn.contains(&format!("<a href=\"#part-{number}\">{scenario}</a>")), "{scenario}");
            assert!(drawn.contains(&format!("<article id=\"part-{number}\">")), "{scenario}");
        }
        assert_eq!(drawn.matches("<h2>Goodput</h2>").count(), 2, "different scenarios are no sweep");
        assert_eq!(drawn.matches("<h2>Where the time goes</h2>").count(), 1, "a wire has no airtime");
    }

    /// Two places of a sweep, each with two client counts.
    fn swept() -> Vec<Report> {
        let place = |delay: &str, goodput: f64| {
            let row = |scheme: &str, clients: u32, gain: f64| Row {
                scheme: scheme.into(),
                clients,
                seeds: 3,
                goodput_bps_mean: goodput * gain * 1e6,
                goodput_bps_ci95: Some(1e6),
                ..Row::default()
            };
            let rows =
                vec![row("stock", 1, 1.0), row("udp", 1, 1.2), row("stock", 4, 0.8), row("udp", 4, 1.1)];
            let provenance = Provenance { scenario: "s".into(), ..Provenance::default() };
            let at = vec![format!("wired.delay={delay}")];
            Report::Comparison(Box::new(Comparison { at, rows, ..Comparison::from_records(provenance, &[]) }))
        };
        vec![place("1 ms", 50.0), place("20 ms", 30.0)]
    }

    #[test]
    fn a_sweeps_report_begins_with_curves_and_every_chart_can_be_saved() {
        let directory = tempfile::tempdir().unwrap();
        let page = std::fs::read_to_string(write_all(&swept(), directory.path()).unwrap()).unwrap();
        let main = &page[page.find("<main>").unwrap()..];
        let (curves, rest) = main.split_once("<h2>Contents</h2>").unwrap();
        for clients in ["1 client", "4 clients"] {
            let title = format!(">s: goodput over wired.delay ({clients})</text>");
            assert_eq!(curves.matches(&title).count(), 3, "drawn for three widths: {clients}");
        }
        assert!(curves.contains(">wired.delay (ms)</text>") && curves.contains(">udp</text>"));
        for (kind, start) in [("text/csv", "name,"), ("image/svg+xml", "<svg"), ("application/pdf", "%PDF-1")]
        {
            let link = format!("href=\"data:{kind};base64,");
            assert_eq!(curves.matches(&link).count(), 2, "{kind}");
            let data = curves.split(&link).nth(1).unwrap().split('"').next().unwrap();
            let file = data_encoding::BASE64.decode(data.as_bytes()).unwrap();
            assert!(file.starts_with(start.as_bytes()), "{kind}");
        }
        // Charts and tables have one order, the largest first.
        let table = rest.split("<tbody>").nth(1).unwrap();
        assert!(table.find("udp").unwrap() < table.find("stock").unwrap());
        // What scrolls takes the keyboard.
        assert_eq!(
            page.matches("class=\"scroll\"").count(),
            page.matches("class=\"scroll\" tabindex=\"0\" role=\"region\"").count()
        );
        assert_eq!(page.matches("<pre").count(), page.matches("<pre tabindex=\"0\"").count());
    }

    /// A directory with a finished sweep of `runs`, valid or not.
    fn recorded(runs: &[RunSummary], provenance: &Provenance) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        let (mut writer, _) = store.resume(&|text| panic!("{text}")).unwrap();
        for run in runs {
            writer.append(&RunRecord { run: run.clone(), ..RunRecord::default() }).unwrap();
        }
        store.finish(provenance, runs).unwrap();
        directory
    }

    #[test]
    fn the_strangest_numbers_that_are_read_are_drawn() {
        let numbers = [0.0, -1.0, 1e-300, 1e18, -1e18, 5e6];
        let names = ["stock".to_owned(), "udp".to_owned(), "x".repeat(64), "\u{0}<b>&\"".to_owned()];
        for (round, x) in numbers.iter().flat_map(|x| [None, Some(*x)]).enumerate() {
            let run = |index: usize| RunSummary {
                id: format!("{index:032x}"),
                label: Label {
                    scheme: names[(index + round) % names.len()].clone(),
                    clients: 1,
                    x,
                    seed: index as u64 % 2,
                    ..Label::default()
                },
                metrics: vec![
                    Some(numbers[(index * 3 + round) % numbers.len()]);
                    tacit_runs::metric::ALL.len()
                ],
                ..RunSummary::default()
            };
            let schemes = names.join(",");
            let provenance = Provenance { schemes, x_label: "x".repeat(5_000), ..Provenance::default() };
            for runs in [(0..8).map(run).collect(), vec![run(round)]] {
                let directory = recorded(&runs, &provenance);
                redraw(directory.path()).unwrap();
            }
        }
    }

    #[test]
    fn a_sweep_is_drawn_as_curves_of_the_best_at_each_place() {
        let record = |scheme: &str, x, best_of, goodput: f64| {
            let label = Label {
                scenario: "s".into(),
                scheme: scheme.into(),
                clients: 1,
                x: Some(x),
                best_of,
                seed: 1,
            };
            let mut metrics = vec![None; tacit_runs::metric::ALL.len()];
            metrics[tacit_runs::metric::position("goodput_bps").unwrap()] = Some(goodput);
            let id = format!("{scheme} {x} {best_of:?}");
            RunSummary { id, label, metrics, ..RunSummary::default() }
        };
        let records = [
            record("udp", 2.0, None, 9e6),
            record("stock", 2.0, Some(54.0), 5e6),
            record("stock", 2.0, Some(24.0), 6e6),
            record("stock", 1.0, Some(54.0), 7e6),
        ];
        let provenance = Provenance {
            description: "over distance".into(),
            x_label: "distance (m)".into(),
            ..Provenance::default()
        };
        let directory = recorded(&records, &provenance);
        let (report, path) = redraw(directory.path()).unwrap();
        let [Report::Sweep(sweep)] = &report[..] else { panic!("a sweep") };
        let rows: Vec<_> = sweep.rows.iter().map(|row| (row.scheme.as_str(), row.x, row.best_of)).collect();
        assert_eq!(rows, [("stock", 1.0, Some(54.0)), ("stock", 2.0, Some(24.0)), ("udp", 2.0, None)]);
        let text = sweep.to_text();
        let [head, units] = [2, 3].map(|line| text.lines().nth(line).unwrap().split_whitespace());
        assert_eq!(head.collect::<Vec<_>>(), ["scheme", "distance", "goodput", "±", "seeds"]);
        assert_eq!(units.collect::<Vec<_>>(), ["m", "Mb/s", "Mb/s"]);
        let drawn = std::fs::read_to_string(path).unwrap();
        for expected in ["over distance", "distance (m)", "goodput (Mb/s)", "<svg"] {
            assert!(drawn.contains(expected), "{expected}");
        }
    }
}
