//! Compares the live hop with the simulator: each case runs in both, and Linux must perform in the live hop like the
//! simulator's TCP in the simulated one.

use serde_json::Value;

use super::support::{
    disturbed, download, machine, print_line, simulated_bps, skip, valid_report, waited_us,
};

/// Tolerance between the goodput of both arms (issue: 5 %).
const GOODPUT_TOLERANCE: f64 = 0.05;
/// Tolerance between the gain of HACK over stock in both arms, as an absolute difference of fractions.
const GAIN_TOLERANCE: f64 = 0.05;
/// Duration of a live transfer in seconds. The first second is slow start and is ignored, like the last one.
const LIVE_SECONDS: &str = "5";
/// Number of seeds in the simulated arm.
const SEEDS: u32 = 3;
/// Delay of the wire in both scenarios, in microseconds.
const WIRE_DELAY_US: f64 = 1_000.0;

/// The simulated arm's TCP: Linux's, with the ACK frequency to which the hop thins the kernel's ACKs.
pub const LINUX: [&str; 6] =
    ["--set", "tcp.profile=linux", "--set", "tcp.ack-policy=delayed", "--set", "tcp.ack-every=2"];

const SCHEMES: [&str; 2] = ["stock", "hack-more-data"];

/// A hop and a congestion control.
struct Case {
    scenario: &'static str,
    assignments: &'static [&'static str],
    /// Its name in Linux.
    congestion: &'static str,
}

/// The simulator's name of a Linux congestion control.
pub fn simulated_name(congestion: &str) -> &str {
    if congestion == "reno" { "newreno" } else { congestion }
}

/// Results of one run with each scheme.
#[derive(Clone, Copy, Debug)]
struct Live {
    goodput_bps: [f64; 2],
    waits_us: [[f64; 2]; 2],
}

impl Case {
    fn words(&self, scheme: &'static str) -> Vec<&'static str> {
        let mut words = vec![self.scenario, "--scheme", scheme];
        words.extend(self.assignments.iter().flat_map(|assignment| ["--set", *assignment]));
        words
    }

    /// Payload bits per second of one download with each scheme and one ACK per two segments; `None` if the machine
    /// does not keep up.
    fn live(&self, seconds: &str) -> Option<Live> {
        let mut live = Live { goodput_bps: [0.0; 2], waits_us: [[0.0; 2]; 2] };
        for (number, scheme) in SCHEMES.into_iter().enumerate() {
            let mut words = self.words(scheme);
            words.extend(["--json", "--acks", "2", "--congestion", self.congestion]);
            let report = valid_report(&download(&words, seconds))?;
            let down = &report["transfer"]["down"];
            live.goodput_bps[number] = steady_bps(down);
            live.waits_us[number] = waited_us(&report);
            print_line(&format!(
                "live {} {:?} {} {scheme}: {:.1} Mb/s, {:.2} ACKs per segment, late p99 {} us, waits {:.0?} us",
                self.scenario,
                self.assignments,
                self.congestion,
                steady_bps(down) / 1e6,
                down["end"]["ack_ratio"].as_f64().unwrap_or(0.0),
                report["lateness"]["p99_us"],
                live.waits_us[number],
            ));
        }
        Some(live)
    }

    /// The simulated downloads, with hosts whose response time for each scheme is `waits_us`.
    fn simulated(&self, waits_us: [[f64; 2]; 2]) -> [f64; 2] {
        let congestion = format!("tcp.congestion={}", simulated_name(self.congestion));
        [0, 1].map(|number| {
            let mut words = self.words(SCHEMES[number]);
            words.extend(LINUX.iter().chain(&["--set", congestion.as_str()]));
            simulated_bps(&words, WIRE_DELAY_US, waits_us[number], SEEDS)
        })
    }
}

/// The result of a comparison.
#[derive(Clone, Debug, PartialEq)]
enum Verdict {
    Agree,
    Differ(String),
    /// The machine affected the live arm too much.
    Disturbed(String),
}

/// Compares the arms. `simulated` assumes an ideal machine, `slowed` includes the waiting times of the machine's
/// programs.
fn verdict(live: &Live, simulated: [f64; 2], slowed: [f64; 2]) -> Verdict {
    let gain = |[stock, hack]: [f64; 2]| hack / stock - 1.0;
    let compared = |arm: [f64; 2]| {
        [
            ("goodput of stock", arm[0] / simulated[0] - 1.0, GOODPUT_TOLERANCE),
            ("goodput of HACK", arm[1] / simulated[1] - 1.0, GOODPUT_TOLERANCE),
            ("gain", gain(arm) - gain(simulated), GAIN_TOLERANCE),
        ]
    };
    let judged = compared(slowed)
        .into_iter()
        .find_map(|(what, worth, tolerance)| disturbed(what, &live.waits_us, worth.abs(), tolerance));
    if let Some(reason) = judged {
        return Verdict::Disturbed(reason);
    }
    let differs = compared(live.goodput_bps).into_iter().find(|(_, by, tolerance)| by.abs() > *tolerance);
    differs.map_or(Verdict::Agree, |(what, by, _)| {
        Verdict::Differ(format!(
            "{what} differs by {:+.1} %: live {live:?}, simulated {simulated:?}",
            by * 100.0
        ))
    })
}

/// Without the first and the last second.
pub fn steady_bps(way: &Value) -> f64 {
    let intervals = way["intervals"].as_array().unwrap();
    let steady = &intervals[1..intervals.len() - 1];
    steady.iter().map(|interval| interval["sum"]["bits_per_second"].as_f64().unwrap()).sum::<f64>()
        / steady.len() as f64
}

/// Twice the rate and twice the queue, because the processing time of a slow machine's programs matters here: see
/// docs/experiments/live.md.
const AT_300: &[&str] = &["wifi.rate=300Mbps", "wifi.ap-queue=252 packets"];

/// The test of one case.
fn arms_agree(case: &Case) {
    let Some(_machine) = machine(&["iperf3"]) else { return };
    let Some(live) = case.live(LIVE_SECONDS) else { return };
    let (simulated, slowed) = (case.simulated([[0.0; 2]; 2]), case.simulated(live.waits_us));
    let gain = |[stock, hack]: [f64; 2]| (hack / stock - 1.0) * 100.0;
    print_line(&format!(
        "{} {:?} {}: stock {:.1} Mb/s simulated, {:.1} live ({:+.1} %); HACK {:+.1} % simulated, {:+.1} % live",
        case.scenario,
        case.assignments,
        case.congestion,
        simulated[0] / 1e6,
        live.goodput_bps[0] / 1e6,
        (live.goodput_bps[0] / simulated[0] - 1.0) * 100.0,
        gain(simulated),
        gain(live.goodput_bps),
    ));
    match verdict(&live, simulated, slowed) {
        Verdict::Agree => {}
        Verdict::Disturbed(reason) => skip(&reason),
        Verdict::Differ(how) => panic!("{how}"),
    }
}

const IDLE: [[f64; 2]; 2] = [[15.0, 40.0]; 2];

#[test]
fn an_idle_machine_is_judged() {
    let right = Live { goodput_bps: [118e6, 132e6], waits_us: IDLE };
    let simulated = [117e6, 132.5e6];
    assert_eq!(verdict(&right, simulated, [116.8e6, 132.4e6]), Verdict::Agree);
    let too_slow = Live { goodput_bps: [110e6, 124e6], ..right };
    let no_gain = Live { goodput_bps: [118e6, 126.5e6], ..right };
    for wrong in [too_slow, no_gain] {
        assert!(matches!(verdict(&wrong, simulated, [116.8e6, 132.4e6]), Verdict::Differ(_)), "{wrong:?}");
    }
}

#[test]
fn a_busy_machine_is_not_judged_right_or_wrong() {
    let simulated = [117e6, 132.5e6];
    for goodput_bps in [[118e6, 132e6], [90e6, 132e6]] {
        let live = Live { goodput_bps, waits_us: [[1_500.0, 3_000.0]; 2] };
        let slowed = [113e6, 132e6];
        let Verdict::Disturbed(reason) = verdict(&live, simulated, slowed) else { panic!("{live:?}") };
        assert!(reason.contains("worth 3.42 % of goodput of stock"), "{reason}");
        // If the simulated goodput does not depend on the delays, they do not explain a difference.
        assert!(!matches!(verdict(&live, simulated, simulated), Verdict::Disturbed(_)));
    }
}

#[test]
fn cubic_over_802_11a_at_54() {
    arms_agree(&Case { scenario: "wlan-11a-54", assignments: &[], congestion: "cubic" });
}

#[test]
fn cubic_over_802_11b_at_11() {
    arms_agree(&Case { scenario: "wlan-11b-11", assignments: &[], congestion: "cubic" });
}

#[test]
fn cubic_over_802_11g_at_54() {
    arms_agree(&Case { scenario: "wlan-11g-54", assignments: &[], congestion: "cubic" });
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

/// Two links of 72 and 144 Mb/s, in the least rates of their widths, so that machines keep up. Their A-MPDUs are short: an
/// A-MPDU may have 600 ACKs, and a kernel takes 3 us for each.
const SLOW_LINKS: &[&str] = &["wifi.link[1].mcs=0", "wifi.link[2].mcs=0", "wifi.ampdu-mpdus=32"];

#[test]
fn cubic_over_two_links_of_802_11be() {
    arms_agree(&Case { scenario: "wlan-11be-mlo-5-6", assignments: SLOW_LINKS, congestion: "cubic" });
}

#[test]
fn cubic_over_one_radio_for_two_links() {
    arms_agree(&Case { scenario: "wlan-11be-mlo-laptop", assignments: SLOW_LINKS, congestion: "cubic" });
}

/// Only measured and reported: how HACK affects a paced sender is a result, not a requirement.
#[test]
fn bbr_is_measured() {
    let Some(_machine) = machine(&["iperf3"]) else { return };
    for (scenario, assignments) in [("wlan-11a-54", &[][..]), ("wlan-11n-150", &[]), ("wlan-11n-150", AT_300)]
    {
        let case = Case { scenario, assignments, congestion: "bbr" };
        let Some(Live { goodput_bps: [stock, hack], .. }) = case.live("3") else { return };
        let gain = (hack / stock - 1.0) * 100.0;
        print_line(&format!(
            "{scenario} {assignments:?} bbr: stock {:.1} Mb/s live, HACK {gain:+.1} %",
            stock / 1e6
        ));
        assert!(stock > 1e6 && gain > -50.0, "{stock} b/s, gain {gain} %");
    }
}
