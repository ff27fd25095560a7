//! Gains of TCP/HACK over Linux's own TCP.

use super::ack_ratio::Measured;
use super::figure::{Claim, Figure, Findings};
use super::form::Form;
use super::live_runs::{Made, MakeLive, TransferPoint, TransferReport};
use super::measure::{Curves, Measure};
use super::plot_data::PlotData;
use super::results::RunContext;
use super::schemes::scheme_of_table;
use super::transferred::{Point, Row, Transferred, row};
use super::transfers::{Arm, Transfers};
use super::value;
use tacit_runs::RunsError;
use tacit_runs::aggregate::gain;
use tacit_scenario::InputError;
use tacit_scenario::input::{Section, text, texts};
use tacit_scenario::scheme::Scheme;

/// Maximum effect of the machine's delays as a fraction of a claim's tolerance. If the effect is larger, it may explain
/// a missing gain.
pub const MACHINE_SHARE_MAX: f64 = 0.5;

/// Columns of every curve; the first one is drawn.
const COLUMNS: [&str; 4] = ["gain_percent", "ack_ratio", "stock_mbps", "hack_mbps"];
/// Average time that programs waited for a CPU, stored in addition to the columns of a live point.
const WAITS: [&str; 4] =
    ["stock_client_waited_us", "stock_server_waited_us", "hack_client_waited_us", "hack_server_waited_us"];
/// The variant in which simulated hosts are as slow as the programs were.
const SLOWED: &str = "slowed";

/// Minimum duration of a live run in seconds. The first and the last second are ignored.
const MIN_SECONDS: u32 = 4;

/// `form = "gains"`: pairs of iperf3 downloads, stock and HACK, compared with simulations of the same pairs.
#[derive(Clone, Debug)]
pub(super) struct Gains {
    /// For each of `acks`, the stock arm followed by the HACK arm.
    transfers: Transfers,
    /// ACK modes of receivers, as in `tacit shell --acks`. Each results in a pair of curves.
    acks: Vec<String>,
    stock: &'static Scheme,
    hack: &'static Scheme,
}

impl Gains {
    pub fn read(section: Section<'_>) -> Result<Self, InputError> {
        let scheme = |name: &str| scheme_of_table(&section, "hack", name);
        let (stock, hack) = (scheme("stock")?, scheme(&section.required("hack", text)?)?);
        let acks = section.required("acks", texts)?;
        let congestion = section.required("congestion", text)?;
        let pair = |acks: &String| [stock, hack].map(|scheme| Arm::iperf(scheme, acks, &congestion));
        let arms = acks.iter().flat_map(pair).collect();
        let quick = section.section("quick")?;
        let transfers = Transfers::once_each(&section, &quick, arms, MIN_SECONDS)?;
        quick.finish()?;
        section.finish()?;
        Ok(Self { transfers, acks, stock, hack })
    }

    /// The schemes, each with the columns for the waiting times of the client's and the server's programs.
    fn with_waits(&self) -> [(&'static Scheme, &'static [&'static str]); 2] {
        let (stock, hack) = WAITS.split_at(2);
        [(self.stock, stock), (self.hack, hack)]
    }

    /// The curves, without places where a run has no results.
    fn curves(&self, results: &Transferred, variant: Option<&str>) -> Curves {
        let mut curves = results.curves(&COLUMNS, self.names_of_curves(), variant);
        curves.curves.iter_mut().for_each(|curve| curve.points.retain(|(_, values)| values[0].is_some()));
        curves
    }

    /// The live points that `measure` depends on; it may also use the simulated curve.
    fn concerned<'a>(
        &'a self,
        results: &'a Transferred,
        measure: &'a Measure,
    ) -> impl Iterator<Item = &'a Point> {
        self.acks.iter().flat_map(move |acks| {
            let pair = [live_name(acks), simulated_name(acks)];
            let points = results.points.iter().filter(|point| point.variant.is_none());
            points.filter(move |point| point.curve == pair[0] && measure.reads(&pair, point.x))
        })
    }

    /// The waiting times of the programs in a live point.
    fn waits(&self, point: &Point) -> Vec<String> {
        let of = |(scheme, names): (&Scheme, &[&str])| {
            let mut ms = names.iter().map(|name| Some(point.runs.first()?.get(*name)? / 1e3));
            let (client, server) = (ms.next()??, ms.next()??);
            Some(format!("{} at {}: {client:.1} and {server:.1} ms", scheme.name, point.x))
        };
        self.with_waits().into_iter().filter_map(of).collect()
    }
}

/// Why a run cannot support a claim.
fn disturbance(run: &TransferReport) -> Option<&str> {
    let unknown = run.waited_us.is_none().then_some("nothing tells how long its programs waited");
    run.invalid.as_deref().or(unknown)
}

impl Form for Gains {
    const COLUMNS: &'static [&'static str] = &COLUMNS;
    const KEEPS: bool = false;

    fn names_of_curves(&self) -> Vec<String> {
        self.acks.iter().flat_map(|acks| [live_name(acks), simulated_name(acks)]).collect()
    }

    fn shortened(&self, quick: bool) -> Self {
        Self { transfers: self.transfers.shortened(quick), ..self.clone() }
    }

    /// Runs stock and HACK one after another at each place.
    fn measured(&self, make: &mut dyn MakeLive) -> Result<Made, RunsError> {
        let made = self.transfers.measured(make)?;
        let missing = made.iter().find_map(|place| place.runs.as_ref().err().cloned());
        Ok(missing.map_or(Ok(made), Err))
    }

    /// The live runs, for each pair the simulated pair, and a simulated pair in which hosts are as slow as the programs
    /// were.
    fn compared(&self, live: &[TransferPoint], _making: RunContext<'_>) -> Result<Transferred, RunsError> {
        let mut points = Vec::new();
        for (number, acks) in self.acks.iter().enumerate() {
            let of = |arm: usize| live.iter().filter(move |place| place.arm == arm);
            for (place, other) in of(2 * number).zip(of(2 * number + 1)) {
                let x = place.x;
                let [Some(stock), Some(hack)] =
                    [place, other].map(|place| place.runs.as_deref().ok()?.first())
                else {
                    continue;
                };
                let schemes = [(self.stock, stock), (self.hack, hack)];
                let disturbed = schemes.into_iter().filter_map(|(scheme, run)| {
                    Some(format!("{} at {x}: {}", scheme.name, disturbance(run)?))
                });
                let disturbed: Vec<String> = disturbed.collect();
                let waited = [stock, hack].map(|run| run.waited_us);
                let mut own =
                    row(&WAITS, waited.iter().flat_map(|of| of.map_or([None; 2], |of| of.map(Some))));
                let measured = Measured::of(stock).zip(Measured::of(hack));
                own.extend(measured.map(|(stock, hack)| gained(stock, hack)).unwrap_or_default());
                points.push(Point {
                    disturbed: (!disturbed.is_empty()).then(|| disturbed.join("; ")),
                    ..Point::simulated(live_name(acks), None, x, vec![own.clone()])
                });
                let Some((stock, hack)) = measured else { continue };
                let scenario = self.transfers.scenario_at(&self.transfers.arms[place.arm], None, x)?;
                let simulate = |variant, waits: [[f64; 2]; 2]| {
                    let stock = stock.simulated(&scenario, self.stock, waits[0])?;
                    let hack = hack.simulated(&scenario, self.hack, waits[1])?;
                    let runs = vec![gained(stock, hack)];
                    Ok::<_, RunsError>(Point::simulated(simulated_name(acks), variant, x, runs))
                };
                points.push(simulate(None, [[0.0; 2]; 2])?);
                points.push(Point::simulated(live_name(acks), Some(SLOWED), x, vec![own]));
                points.push(simulate(Some(SLOWED), waited.map(Option::unwrap_or_default))?);
            }
        }
        Ok(Transferred { points })
    }

    fn findings(self, _figure: &Figure, results: Transferred) -> Findings {
        let curves = self.curves(&results, None);
        let y = "HACK's gain over stock (%)".to_owned();
        let drawn = PlotData::new(self.transfers.x_label.clone(), y, curves);
        Findings {
            disturbance: Box::new(move |claim, measured| self.disturbance(&results, claim, measured)),
            ..Findings::of_curves(drawn)
        }
    }
}

impl Gains {
    /// What disturbed the points to which `claim` refers, or the delays of programs that may explain `measured`.
    fn disturbance(&self, results: &Transferred, claim: &Claim, measured: Option<f64>) -> Option<String> {
        let measure = claim.measure.of_curves()?;
        let concerned = || self.concerned(results, measure);
        let disturbed: Vec<&str> = concerned().filter_map(|point| point.disturbed.as_deref()).collect();
        if !disturbed.is_empty() {
            return Some(disturbed.join("; "));
        }
        let worth = (measure.of(&self.curves(results, Some(SLOWED)))? - measured?).abs();
        let most = claim.leeway() * MACHINE_SHARE_MAX;
        (worth > most).then(|| {
            format!(
                "programs waited for a processor ({}), which is worth {} {} in the simulator; at most {} is judged",
                concerned().flat_map(|point| self.waits(point)).collect::<Vec<_>>().join("; "),
                value(worth),
                claim.unit,
                value(most),
            )
        })
    }
}

/// The gain of HACK, with the other [`COLUMNS`].
fn gained(stock: Measured, hack: Measured) -> Row {
    let gain_percent = gain(hack.goodput_mbps, stock.goodput_mbps) * 100.0;
    row(&COLUMNS, [gain_percent, stock.ack_ratio, stock.goodput_mbps, hack.goodput_mbps].map(Some))
}

fn live_name(acks: &str) -> String {
    format!("live, acks {acks}")
}

fn simulated_name(acks: &str) -> String {
    format!("simulated, acks {acks}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mock::{self, machine, verdicts};
    use crate::{FigureOutcome, LiveRuns, TransferRun};

    /// A run with a steady rate and one ACK per two segments.
    fn report(mbps: f64) -> TransferReport {
        TransferReport {
            mbps: vec![7.0, mbps, mbps, 3.0],
            ack_ratio: Some(0.5),
            waited_us: Some([20.0, 40.0]),
            ..TransferReport::default()
        }
    }

    const FIGURE: &str = "\
title = \"t\"
paper = \"p\"
[transfers]
form = \"gains\"
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
unit = \"points\"
paper = 0
measure = { difference = \"live, acks 2\", over = \"simulated, acks 2\" }
tolerance = 5
[[claim]]
text = \"so it is at 150\"
unit = \"points\"
paper = 0
measure = { difference = \"live, acks 2\", over = \"simulated, acks 2\", x = 150 }
tolerance = 5
";

    /// The outcome of the figure on a machine with these results.
    fn result(quick: bool, give: impl Fn(&TransferRun) -> TransferReport) -> FigureOutcome {
        mock::outcome(FIGURE, quick, &mut machine(|run: &TransferRun| Ok(give(run))), None)
    }

    /// Approximately the simulator's results.
    fn right(run: &TransferRun) -> TransferReport {
        let at_150 = run.hop.assignments.iter().any(|assignment| assignment == "wifi.rate=150Mbps");
        report(match (at_150, run.hop.scheme) {
            (true, "stock") => 118.0,
            (true, _) => 132.0,
            (false, "stock") => 51.0,
            (false, _) => 56.0,
        })
    }

    #[test]
    fn results_of_an_idle_machine_are_judged() {
        let outcome = result(false, right);
        assert_eq!(verdicts(&outcome), ["pass", "pass"], "{outcome:?}");
        assert!(!outcome.fails() && !outcome.is_skipped());
    }

    #[test]
    fn a_wrong_result_of_an_idle_machine_fails() {
        let slow_hack =
            |run: &TransferRun| if run.hop.scheme == "stock" { right(run) } else { report(118.0) };
        let outcome = result(true, slow_hack);
        assert_eq!(verdicts(&outcome), ["FAIL", "FAIL"], "{outcome:?}");
        assert!(outcome.fails());
    }

    #[test]
    fn results_of_a_busy_machine_are_skipped_right_or_wrong() {
        for give in [right, |_: &TransferRun| report(100.0)] {
            let busy = |run: &TransferRun| TransferReport { invalid: Some("busy".into()), ..give(run) };
            let outcome = result(true, busy);
            assert_eq!(verdicts(&outcome), ["skipped", "skipped"], "{outcome:?}");
            assert!(!outcome.fails() && outcome.is_skipped());
            // The number is reported nevertheless.
            assert!(outcome.claims[0].measured.is_some());
            assert!(
                outcome.to_text().contains("stock at 150: busy; hack-more-data at 150: busy"),
                "{}",
                outcome.to_text()
            );
        }
    }

    #[test]
    fn gains_within_the_machines_delays_are_not_judged() {
        // Programs that wait 30 ms in each direction add more to the round trip than a full queue.
        for give in [right, |_: &TransferRun| report(100.0)] {
            let slow = |run: &TransferRun| TransferReport { waited_us: Some([30_000.0; 2]), ..give(run) };
            let outcome = result(true, slow);
            assert_eq!(verdicts(&outcome), ["skipped", "skipped"], "{outcome:?}");
            let reason = outcome.claims[0].skipped.as_deref().unwrap();
            assert!(
                reason.contains("stock at 150: 30.0 and 30.0 ms") && reason.contains("at most 2.5"),
                "{reason}"
            );
        }
        // Waiting times without effect on the simulated gain do not explain a difference.
        let wrong = |run: &TransferRun| TransferReport {
            waited_us: Some([200.0; 2]),
            ..report(if run.hop.scheme == "stock" { 118.0 } else { 110.0 })
        };
        assert_eq!(verdicts(&result(true, wrong)), ["FAIL", "FAIL"]);
    }

    #[test]
    fn a_machine_that_does_not_tell_its_delays_is_not_judged() {
        let outcome = result(true, |run| TransferReport { waited_us: None, ..right(run) });
        assert_eq!(verdicts(&outcome), ["skipped", "skipped"]);
    }

    #[test]
    fn a_claim_is_skipped_for_what_it_is_about_only() {
        let busy_at_60 = |run: &TransferRun| match run.hop.assignments.last().map(String::as_str) {
            Some("wifi.rate=60Mbps") => {
                TransferReport { invalid: Some("stood still".into()), ..TransferReport::default() }
            }
            _ => right(run),
        };
        assert_eq!(verdicts(&result(false, busy_at_60)), ["skipped", "pass"]);
    }

    #[test]
    fn kept_results_are_judged_as_they_were() {
        let directory = tempfile::tempdir().unwrap();
        let mut machine = machine(|run: &TransferRun| {
            let is_slow = run.hop.assignments.last().is_some_and(|last| last == "wifi.rate=60Mbps");
            let waited_us = if is_slow { Some([30_000.0; 2]) } else { right(run).waited_us };
            Ok(TransferReport { waited_us, ..right(run) })
        });
        let outcome = mock::outcome(FIGURE, false, &mut machine, Some(directory.path()));
        assert_eq!(verdicts(&outcome), ["skipped", "pass"], "{outcome:?}");
    }

    #[test]
    fn each_run_is_made_once_whatever_comes_of_it() {
        let made = std::cell::RefCell::new(Vec::new());
        result(true, |run| {
            made.borrow_mut().push(run.hop.scheme);
            TransferReport { invalid: Some("busy".into()), ..TransferReport::default() }
        });
        assert_eq!(*made.borrow(), ["stock", "hack-more-data"]);
    }

    #[test]
    fn without_live_hops_a_figure_says_why() {
        let mut never = machine(|_: &TransferRun| unreachable!("it has no live hops"));
        never.refuses = Some("no root");
        let outcome = mock::outcome(FIGURE, true, &mut never, None);
        assert_eq!((outcome.skipped.as_deref(), outcome.claims.len()), (Some("no root"), 0));
        assert_eq!(never.keeps, Some(false));
    }

    #[test]
    fn a_run_that_cannot_be_made_says_how_to_make_it() {
        let mut machine = machine(|_: &TransferRun| Err("no device".into()));
        let error = LiveRuns::make(&[mock::figure(FIGURE)], true, &mut machine).unwrap_err();
        let said = error.to_string();
        assert!(said.starts_with("tacit shell wlan-11n-150 --set 'run.duration=2 s'"), "{said}");
        assert!(said.ends_with("-R -t 4 --server -- iperf3 -s -1: no device"), "{said}");
    }
}
