//! Time lines: the frames around an event in one run, drawn and counted.

pub(super) mod measure;
mod select;
pub(super) mod shown;
mod words;

use std::path::Path;

use tacit_sim::run_observed;

use super::figure::{self, Evidence, Figure, Findings, Kind};
use super::results::{Observable, Observed, Results, RunContext, file_name};
use super::schemes::scheme_of_table;
use measure::Measure;
use select::Selector;
use shown::Shown;
use tacit_runs::RunsError;
use tacit_runs::air::AirTrace;
use tacit_runs::store::Store;
use tacit_scenario::InputError;
use tacit_scenario::input::{Section, integer, text};
use tacit_scenario::scheme::Scheme;

/// Maximum number of PPDUs in a picture.
const MAX_FRAMES: u32 = 200;

/// `[timeline]`: one run, and which of its frames are shown.
#[derive(Clone, Debug)]
pub(super) struct Timeline {
    run: Observable,
    scheme: &'static Scheme,
    /// The event.
    at: Selector,
    /// Number of PPDUs shown before it.
    before: usize,
    /// Total number of PPDUs shown.
    frames: usize,
}

impl Timeline {
    pub fn read(section: Section<'_>) -> Result<Self, InputError> {
        let scheme = scheme_of_table(&section, "scheme", &section.required("scheme", text)?)?;
        let at = section.section("at")?;
        let frames = section.required("frames", integer(1..=MAX_FRAMES))?;
        let timeline = Self {
            run: Observable::read(&section)?,
            scheme,
            at: Selector::read(&at, "frame")?,
            before: section.or("before", 0, integer(0..=frames - 1))? as usize,
            frames: frames as usize,
        };
        at.finish()?;
        section.finish()?;
        Ok(timeline)
    }

    /// The part of its run that is shown, from `results`.
    ///
    /// # Errors
    /// If the scenario cannot be run, its results are missing, or nothing matches the selector.
    fn shown(&self, figure: &Figure, results: &Results<'_>) -> Result<Shown, RunsError> {
        let spec = self.run.spec(&[], self.scheme)?;
        let record = results.observed(&spec, figure.title.clone(), |setup| {
            let mut trace = AirTrace::default();
            let outcome = run_observed(setup, &mut trace)?;
            Ok((outcome, Observed { ppdus: trace.ppdus, ..Observed::default() }))
        })?;
        let ppdus = record.ppdus;
        let found = ppdus.iter().position(|ppdu| self.at.matches(ppdu));
        let at = found.ok_or_else(|| {
            let heard = ppdus.len();
            InputError::new(&figure.id, format!("none of {heard} PPDUs fits timeline.at"))
        })?;
        let from = at.saturating_sub(self.before);
        let ppdus = ppdus.into_iter().skip(from).take(self.frames).collect();
        Ok(Shown { ppdus, metrics: record.run.metrics })
    }
}

impl Kind for Timeline {
    fn curve_names(&self) -> Option<Vec<String>> {
        None
    }

    fn read_measure(&self, section: Section<'_>) -> Result<figure::Measure, InputError> {
        Measure::read(section).map(figure::Measure::Timeline)
    }

    fn is_stored(&self, figure: &Figure, directory: &Path) -> bool {
        !Store::existing(&directory.join(file_name(&figure.id, ""))).is_empty()
    }

    fn results(&self, figure: &Figure, making: RunContext<'_>) -> Result<Findings, RunsError> {
        let results = Results::new(making, &figure.id, &file_name(&figure.id, ""));
        let shown = self.shown(figure, &results)?;
        let picture = Some(shown.picture(&format!("{}: {}", figure.id, figure.title)));
        Ok(Findings { picture, ..Findings::new(Evidence::Frames(shown)) })
    }
}

#[cfg(test)]
mod tests {
    use crate::{Figure, Options, all, run};
    use tacit_runs::sweep::Control;

    #[test]
    fn every_time_line_that_comes_with_the_program_holds() {
        let is_timeline = |figure: &Figure| figure.kind_as::<super::Timeline>().is_some();
        let figures: Vec<Figure> = all().unwrap().into_iter().filter(is_timeline).collect();
        assert!(figures.len() >= 5);
        let directory = tempfile::tempdir().unwrap();
        let options =
            Options { quick: true, directory: Some(directory.path().to_owned()), ..Options::default() };
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
        assert!(error.contains("PPDUs fits timeline.at"), "{error}");
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
