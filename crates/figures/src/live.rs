//! Live hops: what TCP/HACK gives Linux's own TCP.

use super::axis::Axis;
use super::live_run::LiveRun;
use super::schemes::scheme_of_table;
use super::shell_hop::ShellHop;
use tacit_scenario::InputError;
use tacit_scenario::input::{Section, integer, numbers, text, texts};
use tacit_scenario::scheme::Scheme;

/// Longest live run.
const MAX_SECONDS: u32 = 600;
/// `[live]`: pairs of live runs, stock and HACK, beside the same pairs simulated.
#[derive(Clone, Debug)]
pub(super) struct Live {
    pub(super) scenario: String,
    assignments: Vec<String>,
    pub(super) stock: &'static Scheme,
    pub(super) hack: &'static Scheme,
    /// How receivers acknowledge, as `tacit shell --acks` takes it: a pair of curves each.
    pub(super) acks: Vec<String>,
    congestion: String,
    pub(super) axis: Axis,
    pub(super) x_label: String,
    seconds: u32,
    quick: Quick,
}

/// What `--quick` changes.
#[derive(Clone, Debug)]
struct Quick {
    x: Option<Vec<f64>>,
    seconds: Option<u32>,
}

impl Live {
    pub fn read(section: Section<'_>) -> Result<Self, InputError> {
        let scheme = |name: &str| scheme_of_table(&section, "hack", name);
        let x = section.section("x")?;
        let axis = Axis::read(&x, x.required("key", text)?)?;
        x.finish()?;
        let quick = section.section("quick")?;
        let seconds = integer(4..=MAX_SECONDS);
        let live = Self {
            scenario: section.required("scenario", text)?,
            assignments: section.or("set", Vec::new(), texts)?,
            stock: scheme("stock")?,
            hack: scheme(&section.required("hack", text)?)?,
            acks: section.required("acks", texts)?,
            congestion: section.required("congestion", text)?,
            x_label: section.or("x-label", axis.key.clone(), text)?,
            axis,
            seconds: section.required("seconds", &seconds)?,
            quick: Quick { x: quick.optional("x", numbers)?, seconds: quick.optional("seconds", &seconds)? },
        };
        quick.finish()?;
        section.finish()?;
        Ok(live)
    }

    /// As it is made, `quick` or in full.
    pub fn shortened(&self, quick: bool) -> Self {
        let mut shortened = self.clone();
        if !quick {
            return shortened;
        }
        if let Some(x) = &self.quick.x {
            shortened.axis.values.clone_from(x);
        }
        shortened.seconds = self.quick.seconds.unwrap_or(self.seconds);
        shortened
    }

    pub(super) fn live_run(&self, scheme: &Scheme, acks: &str, x: f64) -> LiveRun {
        let hop = ShellHop {
            scheme: scheme.name,
            acks: Some(acks.to_owned()),
            congestion: Some(self.congestion.clone()),
            ..ShellHop::new(&self.scenario, self.assignments_at(x))
        };
        LiveRun { hop, seconds: self.seconds }
    }

    /// What is changed in the scenario at `x`.
    pub(super) fn assignments_at(&self, x: f64) -> Vec<String> {
        self.assignments.iter().cloned().chain([self.axis.assignment(x)]).collect()
    }
}

pub(super) fn live_name(acks: &str) -> String {
    format!("live, acks {acks}")
}

pub(super) fn simulated_name(acks: &str) -> String {
    format!("simulated, acks {acks}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Figure, FigureOutcome, LiveReport, LiveRuns, LiveSort, MakeLive, Options, run};
    use tacit_runs::RunsError;
    use tacit_runs::sweep::Control;

    /// Makes runs of iperf3, unless it says why not.
    struct Iperf<F>(Result<F, &'static str>);

    impl<F: Fn(&LiveRun) -> Result<LiveReport, String>> MakeLive for Iperf<F> {
        fn skip_reason(&mut self, sort: LiveSort) -> Result<Option<String>, RunsError> {
            assert_eq!(sort, LiveSort::Iperf);
            Ok(self.0.as_ref().err().map(|reason| (*reason).to_owned()))
        }

        fn iperf(&mut self, run: &LiveRun) -> Result<LiveReport, String> {
            self.0.as_ref().map_err(|reason| (*reason).to_owned())?(run)
        }
    }

    /// A run with one segment in two acknowledged, at a steady rate.
    fn report(mbps: f64) -> LiveReport {
        LiveReport {
            mbps: vec![7.0, mbps, mbps, 3.0],
            ack_ratio: Some(0.5),
            waited_us: Some([20.0, 40.0]),
            invalid: None,
        }
    }

    const FIGURE: &str = "\
title = \"t\"
paper = \"p\"
[live]
scenario = \"wlan-11n-150\"
set = [\"run.duration=2 s\", \"run.measure-from=1 s\"]
hack = \"hack-more-data\"
acks = [\"2\"]
congestion = \"cubic\"
seconds = 4
x = { key = \"wifi.rate\", unit = \"Mbps\", values = [60, 150] }
quick = { x = [150] }
[[claim]]
text = \"the live gain is the simulated one\"
paper = 0
measure = { difference = \"live, acks 2\", over = \"simulated, acks 2\" }
tolerance = 5
[[claim]]
text = \"so it is at 150\"
paper = 0
measure = { difference = \"live, acks 2\", over = \"simulated, acks 2\", x = 150 }
tolerance = 5
";

    /// The figure's outcome where a machine gives these numbers.
    fn result(quick: bool, give: impl Fn(&LiveRun) -> LiveReport) -> FigureOutcome {
        let figures = [Figure::parse("test/live", "live.toml", FIGURE).unwrap()];
        let live = LiveRuns::make(&figures, quick, &mut Iperf(Ok(|run: &LiveRun| Ok(give(run))))).unwrap();
        let options = Options { quick, live, ..Options::default() };
        run(&figures, &options, Control::unattended()).unwrap().remove(0)
    }

    /// What the simulator gives, about.
    fn right(run: &LiveRun) -> LiveReport {
        let at_150 = run.hop.assignments.iter().any(|assignment| assignment == "wifi.rate=150Mbps");
        report(match (at_150, run.hop.scheme) {
            (true, "stock") => 118.0,
            (true, _) => 132.0,
            (false, "stock") => 51.0,
            (false, _) => 56.0,
        })
    }

    fn verdicts(outcome: &FigureOutcome) -> Vec<&str> {
        outcome.claims.iter().map(|claim| claim.verdict.word()).collect()
    }

    #[test]
    fn what_an_idle_machine_measured_is_judged() {
        let outcome = result(false, right);
        assert_eq!(verdicts(&outcome), ["pass", "pass"], "{outcome:?}");
        assert!(!outcome.fails() && !outcome.is_skipped());
    }

    #[test]
    fn a_wrong_result_of_an_idle_machine_fails() {
        let slow_hack = |run: &LiveRun| if run.hop.scheme == "stock" { right(run) } else { report(118.0) };
        let outcome = result(true, slow_hack);
        assert_eq!(verdicts(&outcome), ["FAIL", "FAIL"], "{outcome:?}");
        assert!(outcome.fails());
    }

    #[test]
    fn what_a_busy_machine_measured_is_skipped_right_or_wrong() {
        for give in [right, |_: &LiveRun| report(100.0)] {
            let busy = |run: &LiveRun| LiveReport { invalid: Some("busy".into()), ..give(run) };
            let outcome = result(true, busy);
            assert_eq!(verdicts(&outcome), ["skipped", "skipped"], "{outcome:?}");
            assert!(!outcome.fails() && outcome.is_skipped());
            // The number is told all the same.
            assert!(outcome.claims[0].measured.is_some());
            assert!(
                outcome.to_text().contains("stock at 150: busy; hack-more-data at 150: busy"),
                "{}",
                outcome.to_text()
            );
        }
    }

    #[test]
    fn what_the_machines_delays_may_have_done_is_not_judged() {
        // Programs that wait for 30 ms each way are a longer round trip than the queue is deep.
        for give in [right, |_: &LiveRun| report(100.0)] {
            let slow = |run: &LiveRun| LiveReport { waited_us: Some([30_000.0; 2]), ..give(run) };
            let outcome = result(true, slow);
            assert_eq!(verdicts(&outcome), ["skipped", "skipped"], "{outcome:?}");
            let reason = outcome.claims[0].skipped.as_deref().unwrap();
            assert!(
                reason.contains("stock at 150: 30.0 and 30.0 ms") && reason.contains("at most 2.5"),
                "{reason}"
            );
        }
        // What the simulator does not mind is no excuse.
        let wrong = |run: &LiveRun| LiveReport {
            waited_us: Some([200.0; 2]),
            ..report(if run.hop.scheme == "stock" { 118.0 } else { 110.0 })
        };
        assert_eq!(verdicts(&result(true, wrong)), ["FAIL", "FAIL"]);
    }

    #[test]
    fn a_machine_that_does_not_tell_its_delays_is_not_judged() {
        let outcome = result(true, |run| LiveReport { waited_us: None, ..right(run) });
        assert_eq!(verdicts(&outcome), ["skipped", "skipped"]);
    }

    #[test]
    fn a_claim_is_skipped_for_what_it_is_about_only() {
        let busy_at_60 = |run: &LiveRun| match run.hop.assignments.last().map(String::as_str) {
            Some("wifi.rate=60Mbps") => {
                LiveReport { invalid: Some("stood still".into()), ..LiveReport::default() }
            }
            _ => right(run),
        };
        assert_eq!(verdicts(&result(false, busy_at_60)), ["skipped", "pass"]);
    }

    #[test]
    fn what_was_kept_is_judged_as_it_was() {
        let directory = tempfile::tempdir().unwrap();
        let figures = [Figure::parse("test/live", "live.toml", FIGURE).unwrap()];
        let give = |run: &LiveRun| match run.hop.assignments.last().map(String::as_str) {
            Some("wifi.rate=60Mbps") => LiveReport { waited_us: Some([30_000.0; 2]), ..right(run) },
            _ => right(run),
        };
        let live = LiveRuns::make(&figures, false, &mut Iperf(Ok(|run: &LiveRun| Ok(give(run))))).unwrap();
        let at = || Some(directory.path().to_owned());
        let options = Options { live, directory: at(), ..Options::default() };
        let outcomes = run(&figures, &options, Control::unattended()).unwrap();
        assert_eq!(verdicts(&outcomes[0]), ["skipped", "pass"], "{outcomes:?}");
        let options = Options { from: at(), directory: at(), ..Options::default() };
        assert_eq!(run(&figures, &options, Control::unattended()).unwrap(), outcomes);
    }

    #[test]
    fn each_run_is_made_once_whatever_comes_of_it() {
        let made = std::cell::RefCell::new(Vec::new());
        result(true, |run| {
            made.borrow_mut().push(run.hop.scheme);
            LiveReport { invalid: Some("busy".into()), ..LiveReport::default() }
        });
        assert_eq!(*made.borrow(), ["stock", "hack-more-data"]);
    }

    #[test]
    fn without_live_hops_a_figure_says_why() {
        let figures = [Figure::parse("test/live", "live.toml", FIGURE).unwrap()];
        let mut never = Iperf::<fn(&LiveRun) -> Result<LiveReport, String>>(Err("no root"));
        let live = LiveRuns::make(&figures, true, &mut never).unwrap();
        let options = Options { quick: true, live, ..Options::default() };
        let outcome = run(&figures, &options, Control::unattended()).unwrap().remove(0);
        assert_eq!((outcome.skipped.as_deref(), outcome.claims.len()), (Some("no root"), 0));
    }

    #[test]
    fn a_run_that_cannot_be_made_says_how_to_make_it() {
        let figures = [Figure::parse("test/live", "live.toml", FIGURE).unwrap()];
        let error = LiveRuns::make(&figures, true, &mut Iperf(Ok(|_: &LiveRun| Err("no device".into()))))
            .unwrap_err();
        let said = error.to_string();
        assert!(said.starts_with("tacit shell wlan-11n-150 --set 'run.duration=2 s'"), "{said}");
        assert!(said.ends_with("-R -t 4 --server -- iperf3 -s -1: no device"), "{said}");
    }
}
