//! One body per case, a simulated arm and a live arm: the live hop is the simulator's, so what Linux gets
//! through it is what the simulator's TCP gets.

use serde_json::Value;

use super::support::{machine, say, tacit, valid_report};

/// Between the arms' goodput (issue: 5 %).
const GOODPUT_TOLERANCE: f64 = 0.05;
/// Between the arms' gain of HACK over stock, in points.
const GAIN_TOLERANCE: f64 = 0.05;
/// Seconds of a live transfer; the first is slow start and does not count.
const LIVE_SECONDS: &str = "5";

/// A hop and a congestion control.
struct Case {
    scenario: &'static str,
    assignments: &'static [&'static str],
    /// As Linux calls it.
    congestion: &'static str,
}

/// What the simulator calls a congestion control of Linux, where it has it.
fn simulated_name(congestion: &str) -> &str {
    if congestion == "reno" { "newreno" } else { congestion }
}

/// Where a case is tried.
#[derive(Clone, Copy, Debug)]
enum Arm {
    Simulated,
    Live,
}

impl Case {
    /// Payload bits per second of one download under `scheme`, with one ACK per two segments; `None`
    /// where the machine does not keep up.
    fn goodput_bps(&self, arm: Arm, scheme: &str) -> Option<f64> {
        let mut words = vec![self.scenario, "--json", "--scheme", scheme];
        words.extend(self.assignments.iter().flat_map(|assignment| ["--set", assignment]));
        match arm {
            Arm::Simulated => {
                let congestion = format!("tcp.congestion={}", simulated_name(self.congestion));
                let output = tacit().arg("run").args(&words).args(["--set", &congestion]).output().unwrap();
                let run: Value = serde_json::from_slice(&output.stdout).unwrap();
                run["goodput_bps"].as_f64()
            }
            Arm::Live => {
                words.extend([
                    "--acks",
                    "2",
                    "--congestion",
                    self.congestion,
                    "--",
                    "iperf3",
                    "-c",
                    "198.18.0.1",
                ]);
                words.extend(["-R", "-t", LIVE_SECONDS, "--server", "--", "iperf3", "-s", "-1"]);
                let report = valid_report(&words)?;
                let down = &report["transfer"]["down"];
                say(&format!(
                    "live {} {:?} {} {scheme}: {:.1} Mb/s, {:.2} ACKs per segment, late p99 {} us",
                    self.scenario,
                    self.assignments,
                    self.congestion,
                    steady_bps(down) / 1e6,
                    down["end"]["ack_ratio"].as_f64().unwrap_or(0.0),
                    report["lateness"]["p99_us"]
                ));
                Some(steady_bps(down))
            }
        }
    }

    /// Stock's goodput and HACK's gain over it.
    fn measured(&self, arm: Arm) -> Option<(f64, f64)> {
        let stock = self.goodput_bps(arm, "stock")?;
        let hack = self.goodput_bps(arm, "hack-more-data")?;
        Some((stock, hack / stock - 1.0))
    }
}

/// Without the first second and the last.
fn steady_bps(way: &Value) -> f64 {
    let intervals = way["intervals"].as_array().unwrap();
    let steady = &intervals[1..intervals.len() - 1];
    steady.iter().map(|interval| interval["sum"]["bits_per_second"].as_f64().unwrap()).sum::<f64>()
        / steady.len() as f64
}

/// The body of every case.
fn arms_agree(case: &Case) {
    let Some(_machine) = machine(&["iperf3"]) else { return };
    let (simulated, simulated_gain) = case.measured(Arm::Simulated).unwrap();
    let Some((live, live_gain)) = case.measured(Arm::Live) else { return };
    say(&format!(
        "{} {:?} {}: stock {:.1} Mb/s simulated, {:.1} live ({:+.1} %); HACK {:+.1} % simulated, {:+.1} % live",
        case.scenario,
        case.assignments,
        case.congestion,
        simulated / 1e6,
        live / 1e6,
        (live / simulated - 1.0) * 100.0,
        simulated_gain * 100.0,
        live_gain * 100.0,
    ));
    assert!((live / simulated - 1.0).abs() <= GOODPUT_TOLERANCE, "{live} live, {simulated} simulated");
    let simulated_hack = simulated * (1.0 + simulated_gain);
    let live_hack = live * (1.0 + live_gain);
    assert!(
        (live_hack / simulated_hack - 1.0).abs() <= GOODPUT_TOLERANCE,
        "{live_hack} live, {simulated_hack} simulated"
    );
    assert!(
        (live_gain - simulated_gain).abs() <= GAIN_TOLERANCE,
        "{live_gain} live, {simulated_gain} simulated"
    );
}

#[test]
fn cubic_over_802_11a_at_54() {
    arms_agree(&Case { scenario: "wlan-11a-54", assignments: &[], congestion: "cubic" });
}

#[test]
fn reno_over_802_11a_at_54() {
    arms_agree(&Case { scenario: "wlan-11a-54", assignments: &[], congestion: "reno" });
}

#[test]
fn cubic_over_802_11n_at_150() {
    arms_agree(&Case { scenario: "wlan-11n-150", assignments: &[], congestion: "cubic" });
}

#[test]
fn reno_over_802_11n_at_150() {
    arms_agree(&Case { scenario: "wlan-11n-150", assignments: &[], congestion: "reno" });
}

#[test]
fn cubic_over_802_11n_at_300() {
    let assignments = &["wifi.rate=300Mbps"];
    arms_agree(&Case { scenario: "wlan-11n-150", assignments, congestion: "cubic" });
}

#[test]
fn reno_over_802_11n_at_300() {
    let assignments = &["wifi.rate=300Mbps"];
    arms_agree(&Case { scenario: "wlan-11n-150", assignments, congestion: "reno" });
}

/// Measured and reported: how a paced sender takes to HACK is a finding, not a promise.
#[test]
fn bbr_is_measured() {
    let Some(_machine) = machine(&["iperf3"]) else { return };
    for (scenario, assignments) in
        [("wlan-11a-54", &[][..]), ("wlan-11n-150", &[]), ("wlan-11n-150", &["wifi.rate=300Mbps"])]
    {
        let case = Case { scenario, assignments, congestion: "bbr" };
        let Some((stock, gain)) = case.measured(Arm::Live) else { return };
        say(&format!(
            "{scenario} {assignments:?} bbr: stock {:.1} Mb/s live, HACK {:+.1} %",
            stock / 1e6,
            gain * 100.0
        ));
        assert!(stock > 1e6 && gain > -0.5, "{stock} b/s, gain {gain}");
    }
}
