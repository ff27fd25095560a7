//! Live hops: what TCP/HACK gives Linux's own TCP, measured through `tacit shell`.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::file::{Axis, read_axis};
use super::measure::{Curve, Curves};
use crate::error::{InputError, LabError};
use crate::input::{Section, integer, numbers, text, texts};
use crate::scenario::Scenario;
use crate::scheme::{self, Scheme};

/// Runs that fell behind real time are made again so many times.
const ATTEMPTS: u32 = 4;
/// Longest live run.
const MAX_SECONDS: u32 = 600;
/// The program that moves the data.
const IPERF: &str = "iperf3";
/// Most segments per ACK that the simulated arm is run with.
const MAX_SEGMENTS_PER_ACK: f64 = 64.0;

/// Columns of every curve; the first is drawn.
pub(super) const COLUMNS: [&str; 4] = ["gain_percent", "ack_ratio", "stock_mbps", "hack_mbps"];

/// `[live]`: pairs of live runs, stock and HACK, beside the same pairs simulated.
#[derive(Clone, Debug)]
pub(super) struct Live {
    scenario: String,
    assignments: Vec<String>,
    stock: &'static Scheme,
    hack: &'static Scheme,
    /// How receivers acknowledge, as `tacit shell --acks` takes it: a pair of curves each.
    acks: Vec<String>,
    congestion: String,
    axis: Axis,
    pub x_label: String,
    seconds: u32,
    quick: Quick,
}

/// What `--quick` changes.
#[derive(Clone, Debug)]
struct Quick {
    x: Option<Vec<f64>>,
    seconds: Option<u32>,
}

/// One live run.
#[derive(Clone, Copy, Debug)]
struct Measured {
    goodput_mbps: f64,
    ack_ratio: f64,
}

/// The points of live curves as they were measured: `figure`, `version`, `curves`, each with its `name` and
/// `points`, each with `x` and every column.
pub(super) fn points_json(id: &str, curves: &Curves) -> Value {
    let curve = |curve: &Curve| {
        let point = |(x, values): &(f64, Vec<Option<f64>>)| {
            let mut point = serde_json::Map::new();
            point.insert("x".to_owned(), (*x).into());
            for (column, value) in curves.columns.iter().zip(values) {
                point.insert(column.clone(), (*value).into());
            }
            Value::Object(point)
        };
        serde_json::json!({ "name": curve.name, "points": curve.points.iter().map(point).collect::<Vec<_>>() })
    };
    serde_json::json!({
        "figure": id,
        "version": crate::VERSION,
        "curves": curves.curves.iter().map(curve).collect::<Vec<_>>(),
    })
}

impl Live {
    pub fn read(section: Section<'_>) -> Result<Self, InputError> {
        let scheme = |name: &str| {
            let found = scheme::select("", &[name.to_owned()]);
            // One name selects one scheme.
            found
                .map(|found| found[0])
                .map_err(|error| section.error("hack", error.what).allowed(error.allowed.unwrap_or_default()))
        };
        let x = section.section("x")?;
        let axis = read_axis(&x, x.required("key", text)?)?;
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

    /// The runs as `--quick` makes them.
    pub fn quick(&self) -> Self {
        let mut quick = self.clone();
        if let Some(x) = &self.quick.x {
            quick.axis.values.clone_from(x);
        }
        quick.seconds = self.quick.seconds.unwrap_or(self.seconds);
        quick
    }

    /// Names of the curves that claims may speak of.
    pub fn curve_names(&self) -> Vec<String> {
        self.acks.iter().flat_map(|acks| [live_name(acks), simulated_name(acks)]).collect()
    }

    /// Why `program` cannot make live runs here; `None` where it can.
    pub fn obstacle(program: Option<&Path>) -> Option<String> {
        let Some(program) = program else { return Some("no program to make live hops with".to_owned()) };
        let runs = |command: &mut Command| {
            let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
            status.is_ok_and(|status| status.success())
        };
        if !runs(Command::new(program).arg("doctor")) {
            return Some("live hops do not work here; tacit doctor says why".to_owned());
        }
        if !runs(Command::new(IPERF).arg("--version")) {
            return Some(format!("{IPERF} is not installed"));
        }
        None
    }

    /// Makes the runs; points whose runs kept falling behind are left out.
    pub fn run(&self, program: &Path) -> Result<Curves, LabError> {
        let mut curves = Vec::new();
        for acks in &self.acks {
            let mut live = Curve { name: live_name(acks), points: Vec::new() };
            let mut simulated = Curve { name: simulated_name(acks), points: Vec::new() };
            for x in &self.axis.values {
                let pair =
                    (self.live(program, self.stock, acks, *x)?, self.live(program, self.hack, acks, *x)?);
                let (Some(stock), Some(hack)) = pair else { continue };
                live.points.push((*x, columns(stock, hack)));
                let stock = self.simulated(self.stock, stock.ack_ratio, *x)?;
                let hack = self.simulated(self.hack, hack.ack_ratio, *x)?;
                simulated.points.push((*x, columns(stock, hack)));
            }
            curves.extend([live, simulated]);
        }
        Ok(Curves { columns: COLUMNS.map(str::to_owned).to_vec(), curves })
    }

    fn live(
        &self,
        program: &Path,
        scheme: &Scheme,
        acks: &str,
        x: f64,
    ) -> Result<Option<Measured>, LabError> {
        let mut words = vec!["shell".to_owned(), self.scenario.clone(), "--json".to_owned()];
        for assignment in self.assignments.iter().chain([&self.axis.assignment(x)]) {
            words.extend(["--set".to_owned(), assignment.clone()]);
        }
        let seconds = self.seconds.to_string();
        let rest = [
            "--scheme",
            scheme.name,
            "--acks",
            acks,
            "--congestion",
            &self.congestion,
            "--",
            IPERF,
            "-c",
            "198.18.0.1",
            "-R",
            "-t",
            &seconds,
            "--server",
            "--",
            IPERF,
            "-s",
            "-1",
        ];
        words.extend(rest.map(str::to_owned));
        for _ in 0..ATTEMPTS {
            let output = Command::new(program).args(&words).stdin(Stdio::null()).output();
            let output = output.map_err(LabError::io(program))?;
            let failed = || LabError::Program {
                command: format!("tacit {}", words.join(" ")),
                said: last_line(&output.stderr),
            };
            let report: Value = serde_json::from_slice(&output.stdout).map_err(|_| failed())?;
            if !output.status.success() {
                return Err(failed());
            }
            if let Some(measured) = Measured::of(&report) {
                return Ok(Some(measured));
            }
        }
        Ok(None)
    }

    /// The same download, simulated, with the ACK ratio that was measured: receivers acknowledge every so
    /// many segments, so it lies between two of them.
    fn simulated(&self, scheme: &Scheme, ack_ratio: f64, x: f64) -> Result<Measured, LabError> {
        let (fewer, share) = bracket(ack_ratio);
        let more_acks = self.simulated_every(scheme, fewer, x)?;
        let fewer_acks = if share > 0.0 { self.simulated_every(scheme, fewer + 1, x)? } else { more_acks };
        Ok(Measured { goodput_mbps: more_acks + (fewer_acks - more_acks) * share, ack_ratio })
    }

    /// Goodput in Mb/s with an ACK for `segments`.
    fn simulated_every(&self, scheme: &Scheme, segments: u32, x: f64) -> Result<f64, LabError> {
        let mut assignments = self.assignments.clone();
        assignments.push(self.axis.assignment(x));
        let mut scenario = scheme.applied_to(&Scenario::load(&self.scenario, &assignments)?);
        scenario.tcp.ack_policy = scenario.tcp.ack_policy.with_every(segments);
        let setup = scenario.setup(1, 1)?;
        let outcome = tacit_sim::run(&setup).map_err(|source| LabError::Run {
            run: format!("{}, seed 1", scenario.name),
            command: scenario.run_command(Some(scheme.name), scenario.clients, 1),
            source,
        })?;
        Ok(outcome.goodput_bps() / 1e6)
    }
}

impl Measured {
    /// Without the first second, which is slow start, and the last, which is not whole. `None` of a run
    /// that is not valid.
    fn of(report: &Value) -> Option<Self> {
        let down = report.get("transfer")?.get("down")?;
        let intervals = down.get("intervals")?.as_array()?;
        let steady = intervals.get(1..intervals.len().checked_sub(1)?)?;
        let rates: Option<Vec<f64>> =
            steady.iter().map(|interval| interval.pointer("/sum/bits_per_second")?.as_f64()).collect();
        let rates = rates.filter(|rates| !rates.is_empty())?;
        Some(Self {
            goodput_mbps: rates.iter().sum::<f64>() / rates.len() as f64 / 1e6,
            ack_ratio: down.pointer("/end/ack_ratio")?.as_f64()?,
        })
    }
}

fn live_name(acks: &str) -> String {
    format!("live, acks {acks}")
}

fn simulated_name(acks: &str) -> String {
    format!("simulated, acks {acks}")
}

/// In the order of [`COLUMNS`].
fn columns(stock: Measured, hack: Measured) -> Vec<Option<f64>> {
    let gain = (hack.goodput_mbps / stock.goodput_mbps - 1.0) * 100.0;
    vec![Some(gain), Some(stock.ack_ratio), Some(stock.goodput_mbps), Some(hack.goodput_mbps)]
}

/// Segments per ACK with at least this ratio, and how far it is from there to one segment more.
fn bracket(ack_ratio: f64) -> (u32, f64) {
    let segments = (1.0 / ack_ratio.max(1.0 / MAX_SEGMENTS_PER_ACK)).max(1.0);
    let fewer = segments.floor();
    let (above, below) = (1.0 / fewer, 1.0 / (fewer + 1.0));
    (fewer as u32, ((above - ack_ratio.min(1.0)) / (above - below)).clamp(0.0, 1.0))
}

fn last_line(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets).lines().last().unwrap_or("said nothing").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_written_with_the_names_of_their_columns() {
        let curve = Curve { name: "live".into(), points: vec![(150.0, vec![Some(7.5), None])] };
        let curves = Curves { columns: vec!["gain_percent".into(), "ack_ratio".into()], curves: vec![curve] };
        let json = points_json("hack/live", &curves);
        let point = serde_json::json!({ "x": 150.0, "gain_percent": 7.5, "ack_ratio": null });
        assert_eq!(json["curves"][0]["points"][0], point);
        assert_eq!((&json["figure"], &json["curves"][0]["name"]), (&"hack/live".into(), &"live".into()));
    }

    #[test]
    fn the_first_and_the_last_second_do_not_count() {
        let second = |rate: u32| format!("{{\"sum\": {{\"bits_per_second\": {rate}000000}}}}");
        let report = format!(
            "{{\"transfer\": {{\"down\": {{\"intervals\": [{}, {}, {}, {}], \"end\": {{\"ack_ratio\": 0.5}}}}}}}}",
            second(7),
            second(100),
            second(110),
            second(3)
        );
        let measured = Measured::of(&serde_json::from_str(&report).unwrap()).unwrap();
        assert!((measured.goodput_mbps - 105.0).abs() < 1e-9, "{measured:?}");
        assert!(Measured::of(&serde_json::json!({ "transfer": null })).is_none());
    }

    #[test]
    fn the_simulator_acknowledges_as_the_kernel_did() {
        assert_eq!(bracket(1.0), (1, 0.0));
        assert_eq!(bracket(1.3), (1, 0.0));
        assert_eq!(bracket(0.75), (1, 0.5));
        assert_eq!(bracket(0.5), (2, 0.0));
        let (segments, share) = bracket(0.4);
        assert!(segments == 2 && (share - 0.6).abs() < 1e-9, "{segments} {share}");
        assert_eq!(bracket(0.0), (64, 1.0));
    }

    #[test]
    fn without_a_program_there_is_an_obstacle() {
        assert!(Live::obstacle(None).is_some());
        assert!(Live::obstacle(Some(Path::new("/nonexistent"))).is_some());
    }
}
