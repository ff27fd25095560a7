//! Time lines: the frames around an event of one run, drawn and counted.

mod select;
mod story;
mod words;

use tacit_sim::run_observed;

use crate::chart::timeline::TimelineChart;
use crate::error::{InputError, LabError};
use crate::input::{Mismatch, Section, integer, text, texts};
use crate::metric;
use crate::scenario::{MAX_CLIENTS, Scenario};
use crate::scheme::{self, Scheme};
use select::Selector;
use story::{Ppdu, Story};

/// Most PPDUs in a picture.
const MAX_FRAMES: u32 = 200;
/// Largest seed; a figure needs one that works, not many.
const MAX_SEED: u32 = 10_000;

/// `[timeline]`: one run, and which of its frames are shown.
#[derive(Clone, Debug)]
pub(super) struct Timeline {
    scenario: String,
    assignments: Vec<String>,
    scheme: &'static Scheme,
    seed: u32,
    clients: u32,
    /// The event.
    at: Selector,
    /// PPDUs shown before it.
    before: usize,
    /// PPDUs shown in all.
    frames: usize,
}

/// What a claim over a time line measures.
#[derive(Clone, Debug)]
pub(super) enum Measure {
    /// How many of the PPDUs shown are such.
    Count(Selector),
    /// A metric of the run: its place in the table, and its factor.
    Metric(usize, f64),
}

/// The frames shown and the run they come from.
pub(super) struct Shown {
    ppdus: Vec<Ppdu>,
    outcome: tacit_sim::Outcome,
}

impl Timeline {
    pub fn read(section: Section<'_>) -> Result<Self, InputError> {
        let name = section.required("scheme", text)?;
        let schemes = scheme::select("", &[name]).map_err(|error| {
            section.error("scheme", error.what).allowed(error.allowed.unwrap_or_default())
        })?;
        let at = section.section("at")?;
        let frames = section.required("frames", integer(1..=MAX_FRAMES))?;
        let timeline = Self {
            scenario: section.required("scenario", text)?,
            assignments: section.or("set", Vec::new(), texts)?,
            // One name selects one scheme.
            scheme: schemes[0],
            seed: section.or("seed", 1, integer(1..=MAX_SEED))?,
            clients: section.or("clients", 1, integer(1..=MAX_CLIENTS))?,
            at: Selector::read(&at, "frame")?,
            before: section.or("before", 0, integer(0..=frames - 1))? as usize,
            frames: frames as usize,
        };
        at.finish()?;
        section.finish()?;
        Ok(timeline)
    }

    /// Runs, and keeps what is shown.
    ///
    /// # Errors
    /// Where the scenario cannot be run, or nothing matches the selector.
    pub fn run(&self, id: &str) -> Result<Shown, LabError> {
        let scenario = self.scheme.applied_to(&Scenario::load(&self.scenario, &self.assignments)?);
        let setup = scenario.setup(self.clients, u64::from(self.seed))?;
        let mut story = Story::default();
        let outcome = run_observed(&setup, &mut story).map_err(|source| LabError::Run {
            run: format!("figure {id}, seed {}", self.seed),
            command: format!("tacit figure {id}"),
            source,
        })?;
        let found = story.ppdus.iter().position(|ppdu| self.at.matches(ppdu));
        let at = found.ok_or_else(|| {
            let heard = story.ppdus.len();
            InputError::new(id, format!("none of {heard} PPDUs is what timeline.at describes"))
        })?;
        let from = at.saturating_sub(self.before);
        let ppdus = story.ppdus.into_iter().skip(from).take(self.frames).collect();
        Ok(Shown { ppdus, outcome })
    }
}

impl Measure {
    pub fn read(section: Section<'_>) -> Result<Self, InputError> {
        let measure = match section.optional("metric", known_metric)? {
            Some((metric, factor)) => Self::Metric(metric, factor),
            None => {
                if section.node("count").is_none() {
                    return Err(section.error("count", "one of count and metric is needed"));
                }
                Self::Count(Selector::read(&section, "count")?)
            }
        };
        section.finish()?;
        Ok(measure)
    }

    pub fn of(&self, shown: &Shown) -> Option<f64> {
        match self {
            Self::Count(selector) => {
                Some(shown.ppdus.iter().filter(|ppdu| selector.matches(ppdu)).count() as f64)
            }
            Self::Metric(metric, factor) => Some(metric::ALL.get(*metric)?.of(&shown.outcome)? * factor),
        }
    }
}

fn known_metric(value: &crate::input::Value) -> Result<(usize, f64), Mismatch> {
    let name = text(value)?;
    metric::resolve_column(&name).ok_or_else(|| {
        let known = metric::ALL.iter().map(|metric| metric.name).collect::<Vec<_>>().join(", ");
        Mismatch::new(format!("{name:?} is no metric"), known)
    })
}

impl Shown {
    /// The picture; `title` opens its description.
    pub fn picture(&self, title: &str) -> String {
        TimelineChart {
            alt: format!("{title}. {}", words::tell(&self.ppdus)),
            lanes: words::lanes(&self.ppdus),
            exchanges: words::exchanges(&self.ppdus),
            legend: words::legend(&self.ppdus),
        }
        .to_svg()
    }
}

#[cfg(test)]
mod tests {
    use crate::figure::{Figure, Options, all, run};
    use crate::sweep::Control;

    #[test]
    fn every_time_line_that_comes_with_the_program_holds() {
        let is_timeline = |figure: &Figure| matches!(figure.source, super::super::file::Source::Timeline(_));
        let figures: Vec<Figure> = all().unwrap().into_iter().filter(is_timeline).collect();
        assert!(figures.len() >= 5);
        let directory = tempfile::tempdir().unwrap();
        let options = Options { quick: true, directory: Some(directory.path().to_owned()), program: None };
        for outcome in run(&figures, &options, Control::unattended()).unwrap() {
            assert!(outcome.claims.len() >= 4, "{}", outcome.id);
            assert!(outcome.claims.iter().all(|claim| claim.pass), "{}", outcome.to_text());
            let svg = std::fs::read_to_string(outcome.svg.unwrap()).unwrap();
            assert!(svg.contains("client 1 sends a"), "told in words too");
        }
    }

    const TIMELINE: &str = "\
title = \"t\"
paper = \"p\"
[timeline]
scenario = \"wlan-11n-150\"
scheme = \"stock\"
set = [\"run.duration=50ms\", \"run.measure-from=0ms\"]
at = { frame = \"data\" }
frames = 5
";

    #[test]
    fn a_selector_that_nothing_matches_is_an_error() {
        let text = TIMELINE.replace("\"data\"", "\"data\", sync = true");
        let figure = Figure::parse("t/none", "none.toml", &text).unwrap();
        let error = run(&[figure], &Options::default(), Control::unattended()).unwrap_err().to_string();
        assert!(error.contains("is what timeline.at describes"), "{error}");
    }

    #[test]
    fn claims_about_curves_do_not_fit_time_lines() {
        for (measure, expected) in [
            ("value = \"stock\"", "one of count and metric"),
            ("count = \"dta\"", "did you mean \"data\""),
            ("metric = \"luck\"", "is no metric"),
            ("metric = \"tcp_rtos\", sync = true", "sync"),
        ] {
            let claim =
                format!("[[claim]]\ntext = \"c\"\npaper = 1\ntolerance = 0\nmeasure = {{ {measure} }}\n");
            let error = Figure::parse("t", "t.toml", &format!("{TIMELINE}{claim}")).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
