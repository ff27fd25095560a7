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
    /// Payload bits per second of one download under `scheme`, with one ACK per two segments, in the
    /// `attempt`-th try; `None` where the machine does not keep up.
    fn goodput_bps(&self, arm: Arm, scheme: &str, attempt: u32) -> Option<f64> {
        let seed = attempt.to_string();
        let mut words = vec![self.scenario, "--json", "--scheme", scheme];
        words.extend(["--seed", &seed]);
        words.extend(self.assignments.iter().flat_map(|assignment| ["--set", *assignment]));
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

    /// Goodput of stock and of HACK.
    fn pair(&self, arm: Arm, attempt: u32) -> Option<[f64; 2]> {
        let stock = self.goodput_bps(arm, "stock", attempt)?;
        Some([stock, self.goodput_bps(arm, "hack-more-data", attempt)?])
    }
}

/// Means over pairs of stock and HACK.
#[derive(Debug, Default)]
struct Means {
    sums: [f64; 2],
    pairs: u32,
}

impl Means {
    fn add(&mut self, pair: [f64; 2]) {
        self.sums = [self.sums[0] + pair[0], self.sums[1] + pair[1]];
        self.pairs += 1;
    }

    fn stock(&self) -> f64 {
        self.sums[0] / f64::from(self.pairs)
    }

    fn hack(&self) -> f64 {
        self.sums[1] / f64::from(self.pairs)
    }

    fn gain(&self) -> f64 {
        self.sums[1] / self.sums[0] - 1.0
    }

    /// Goodput within its tolerance for both, the gain within its own.
    fn agree_with(&self, other: &Self) -> bool {
        let close = |one: f64, other: f64| (one / other - 1.0).abs() <= GOODPUT_TOLERANCE;
        close(self.stock(), other.stock())
            && close(self.hack(), other.hack())
            && (self.gain() - other.gain()).abs() <= GAIN_TOLERANCE
    }
}

/// Without the first second and the last.
pub fn steady_bps(way: &Value) -> f64 {
    let intervals = way["intervals"].as_array().unwrap();
    let steady = &intervals[1..intervals.len() - 1];
    steady.iter().map(|interval| interval["sum"]["bits_per_second"].as_f64().unwrap()).sum::<f64>()
        / steady.len() as f64
}

/// Five seconds of Reno are two or three of its cycles: where the first pair of runs is outside, the means
/// over more of them count.
const MOST_PAIRS: u32 = 5;

/// Twice the rate, twice the queue, or the time that a slow machine's programs take shows: see
/// docs/design/live.md.
const AT_300: &[&str] = &["wifi.rate=300Mbps", "wifi.ap-queue=252 packets"];

/// The body of every case.
fn arms_agree(case: &Case) {
    let Some(_machine) = machine(&["iperf3"]) else { return };
    let (mut simulated, mut live) = (Means::default(), Means::default());
    for seed in 1..=MOST_PAIRS {
        simulated.add(case.pair(Arm::Simulated, seed).unwrap());
    }
    for attempt in 1..=MOST_PAIRS {
        let Some(pair) = case.pair(Arm::Live, attempt) else { return };
        live.add(pair);
        if live.agree_with(&simulated) {
            break;
        }
    }
    say(&format!(
        "{} {:?} {}, {} pairs: stock {:.1} Mb/s simulated, {:.1} live ({:+.1} %); HACK {:+.1} % simulated, {:+.1} % live",
        case.scenario,
        case.assignments,
        case.congestion,
        live.pairs,
        simulated.stock() / 1e6,
        live.stock() / 1e6,
        (live.stock() / simulated.stock() - 1.0) * 100.0,
        simulated.gain() * 100.0,
        live.gain() * 100.0,
    ));
    assert!(live.agree_with(&simulated), "{live:?} live, {simulated:?} simulated");
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
    let assignments = AT_300;
    arms_agree(&Case { scenario: "wlan-11n-150", assignments, congestion: "cubic" });
}

#[test]
fn reno_over_802_11n_at_300() {
    let assignments = AT_300;
    arms_agree(&Case { scenario: "wlan-11n-150", assignments, congestion: "reno" });
}

/// Measured and reported: how a paced sender takes to HACK is a finding, not a promise.
#[test]
fn bbr_is_measured() {
    let Some(_machine) = machine(&["iperf3"]) else { return };
    for (scenario, assignments) in [("wlan-11a-54", &[][..]), ("wlan-11n-150", &[]), ("wlan-11n-150", AT_300)]
    {
        let case = Case { scenario, assignments, congestion: "bbr" };
        let Some([stock, hack]) = case.pair(Arm::Live, 1) else { return };
        let gain = (hack / stock - 1.0) * 100.0;
        say(&format!(
            "{scenario} {assignments:?} bbr: stock {:.1} Mb/s live, HACK {gain:+.1} %",
            stock / 1e6
        ));
        assert!(stock > 1e6 && gain > -50.0, "{stock} b/s, gain {gain} %");
    }
}
