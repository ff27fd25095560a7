//! How late events of live hops are, while iperf3 downloads through them.

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::spread::Spread;
use super::table::{Table, dash, filled, middle, whole};
use super::tools::{json, stdout_of, tacit};
use super::{Measurement, Name, Part, Plan};
use crate::hop::reasons;

const SCENARIOS: [&str; 4] = ["wlan-11n-150", "wlan-11n-300", "wlan-11ac-866", "wlan-11ax-2402"];
const SECONDS: &str = "5";
const QUICK_SECONDS: &str = "1";

/// A hop's report on itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Nothing where the run is not valid.
    mbps: Option<f64>,
    p50_us: f64,
    p99_us: f64,
    p99_9_us: f64,
    stalls: u64,
    stalled_ms: f64,
    /// Of one processor.
    processor: f64,
    /// Empty where the run is valid.
    not_valid: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    scenario: String,
    /// Goodput of the same download in the simulator.
    simulated_mbps: f64,
    samples: Vec<Sample>,
    /// Runs that were repeated because the machine was too slow for them.
    again: usize,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Lateness {
    rows: Vec<Row>,
}

impl Part for Lateness {
    const NAME: Name = Name::Lateness;
    const HEADING: &'static str = "How late a live hop is";

    fn measure(plan: &Plan) -> Result<Measurement<Self>> {
        let no_iperf3 = stdout_of("iperf3", &["--version"]).is_none().then(|| "no iperf3 here".to_owned());
        if let Some(why) = no_iperf3.or_else(no_hops) {
            return Ok(Measurement::Skipped(why));
        }
        let seconds = if plan.quick() { QUICK_SECONDS } else { SECONDS };
        let mut rows = SCENARIOS
            .map(|scenario| Row::simulate(scenario, seconds))
            .into_iter()
            .collect::<Result<Vec<_>>>()?;
        for _ in 0..plan.pairs {
            for row in &mut rows {
                row.samples.push(Sample::measure(&row.scenario, seconds)?);
            }
        }
        for row in &mut rows {
            for sample in row.samples.iter_mut().filter(|sample| !sample.not_valid.is_empty()) {
                *sample = Sample::measure(&row.scenario, seconds)?;
                row.again += 1;
            }
        }
        Ok(Measurement::Measured(Self { rows }))
    }

    fn text(&self) -> String {
        let mut table = Table::new(&[
            "",
            "down, Mb/s",
            "over the simulator's, %",
            "p50, us",
            "p99, us",
            "p99.9, us",
            "stood still, times",
            "ms",
            "one processor, %",
            "valid",
        ]);
        for row in &self.rows {
            let column = |value: fn(&Sample) -> f64| Spread::from_values(row.samples.iter().map(value));
            let beside =
                row.samples.iter().filter_map(|sample| Some(sample.mbps? / row.simulated_mbps - 1.0));
            let valid = row.samples.iter().filter(|sample| sample.not_valid.is_empty()).count();
            let again = if row.again > 0 { format!(", {} made again", row.again) } else { String::new() };
            table.push(&[
                format!("`{}`", row.scenario),
                middle(Spread::from_values(row.samples.iter().filter_map(|sample| sample.mbps)), 0),
                Spread::from_values(beside).map_or_else(dash, Spread::percent),
                whole(column(|sample| sample.p50_us), 0),
                whole(column(|sample| sample.p99_us), 0),
                whole(column(|sample| sample.p99_9_us), 0),
                middle(column(|sample| sample.stalls as f64), 0),
                middle(column(|sample| sample.stalled_ms), 1),
                middle(column(|sample| sample.processor * 100.0), 0),
                format!("{valid} of {}{again}", row.samples.len()),
            ]);
        }
        let how = format!(
            "`tacit shell` with `iperf3 -R` for {SECONDS} s: goodput, beside that of a TCP download as long in the simulator; how late events of the medium were, \
             how often and for how long the medium stood still (more than 2 ms late), and the hop's share of one \
             processor ([shell](../use/shell.md#the-report))."
        );
        format!("{}\n{}{}", filled(&how), table.text(), self.why_not())
    }
}

impl Lateness {
    /// Why runs are not valid, each reason once.
    fn why_not(&self) -> String {
        let not_valid = self.rows.iter().flat_map(|row| {
            let samples = row.samples.iter().filter(|sample| !sample.not_valid.is_empty());
            samples.map(|sample| format!("* `{}`: {}\n", row.scenario, sample.not_valid))
        });
        let lines: String = not_valid.collect();
        if lines.is_empty() { lines } else { format!("\n**Not valid, twice:**\n\n{lines}") }
    }
}

impl Row {
    /// Of no live runs yet.
    fn simulate(scenario: &str, seconds: &str) -> Result<Self> {
        let mut run = tacit()?;
        run.args(["run", scenario, "--json", "--set", &format!("run.duration={seconds} s")]);
        let report: Value = json(run.args(["--set", "run.measure-from=0 s"]))?;
        let goodput_bps = report["goodput_bps"].as_f64().with_context(|| format!("{scenario}: {report}"))?;
        Ok(Self {
            scenario: scenario.to_owned(),
            simulated_mbps: goodput_bps / 1e6,
            samples: Vec::new(),
            again: 0,
        })
    }
}

impl Sample {
    fn measure(scenario: &str, seconds: &str) -> Result<Self> {
        let mut shell = tacit()?;
        shell.args(["shell", scenario, "--json", "--", "iperf3", "-c", "198.18.0.1", "-R", "-t", seconds]);
        let report: Value = json(shell.args(["--server", "--", "iperf3", "-s", "-1"]))?;
        Self::read(&report).with_context(|| format!("{scenario}: {report}"))
    }

    /// Of a report of `tacit shell`.
    fn read(report: &Value) -> Option<Self> {
        let late = &report["lateness"];
        let valid = report["valid"].as_bool()?;
        let received = &report["transfer"]["down"]["end"]["sum_received"];
        Some(Self {
            mbps: received["bits_per_second"].as_f64().map(|bps| bps / 1e6),
            p50_us: late["p50_us"].as_f64()?,
            p99_us: late["p99_us"].as_f64()?,
            p99_9_us: late["p99_9_us"].as_f64()?,
            stalls: late["slips"].as_u64()?,
            stalled_ms: late["slipped_s"].as_f64()? * 1e3,
            processor: report["cpu_s"].as_f64()? / report["seconds"].as_f64()?,
            not_valid: if valid { String::new() } else { reasons(report) },
        })
    }
}

/// Why there are no live hops here, if there are none.
pub fn no_hops() -> Option<String> {
    let mut probe = tacit().ok()?;
    let words = ["shell", "wlan-11n-150", "-q", "--", "true", "--server", "--", "sleep", "1"];
    let output = probe.args(words).output().ok()?;
    let why = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
    (output.status.code() == Some(125)).then(|| format!("no live hops on this machine: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_of_a_hop_is_read() {
        let report = serde_json::json!({
            "valid": true, "reasons": [], "seconds": 5.0, "cpu_s": 1.25,
            "transfer": { "down": { "end": { "sum_received": { "bits_per_second": 223e6 } } } },
            "lateness": { "p50_us": 6.4, "p99_us": 76.0, "p99_9_us": 991.0, "slips": 4, "slipped_s": 0.001 },
        });
        let sample = Sample {
            mbps: Some(223.0),
            p50_us: 6.4,
            p99_us: 76.0,
            p99_9_us: 991.0,
            stalls: 4,
            stalled_ms: 1.0,
            processor: 0.25,
            not_valid: String::new(),
        };
        assert_eq!(Sample::read(&report), Some(sample));
    }

    #[test]
    fn a_run_that_is_not_valid_has_no_goodput_but_a_reason() {
        let report = serde_json::json!({
            "valid": false, "reasons": ["stood still for 7 %"], "seconds": 5.0, "cpu_s": 1.25, "transfer": null,
            "lateness": { "p50_us": 6.4, "p99_us": 76.0, "p99_9_us": 991.0, "slips": 4, "slipped_s": 0.001 },
        });
        let sample = Sample::read(&report).unwrap();
        assert_eq!((sample.mbps, sample.not_valid.as_str()), (None, "stood still for 7 %"));
        assert_eq!(Sample::read(&serde_json::json!({})), None);
    }
}
