//! Which acknowledgment frequency or mechanism suits a link, from runs of that link.
//!
//! One comparison of schemes stands behind each answer. Schemes are grouped by who has to change, for that is what
//! a user can choose: a receiver's frequency is a setting, TCP/HACK is new firmware at both ends.

mod text;

use serde::Serialize;
use tacit_link::wifi::phy::Standard;
use tacit_proto::units::{BitRate, Duration};
use tacit_runs::RunsError;
use tacit_runs::sweep::Control;
use tacit_scenario::InputError;
use tacit_scenario::scheme::{self, Role, Scheme};
use tacit_theory::hop;

use crate::compare::{Comparison, Options, Row, compare};

/// The link and its traffic.
#[derive(Clone, Debug)]
pub struct Question {
    /// A scenario by name or path; [`scenario_for`] has one for a PHY and rate.
    pub scenario: String,
    /// Assignments on top of it, as of `--set`.
    pub assignments: Vec<String>,
    /// Round-trip time without queues; `None` is the scenario's.
    pub rtt: Option<Duration>,
    /// Clients; `None` is the scenario's first count.
    pub clients: Option<u32>,
    /// Clients send; `None` is as the scenario has it.
    pub uploads: Option<bool>,
    /// Segments per ACK of the receivers of today; `None` is the scenario's receiver.
    pub segments_per_ack: Option<u32>,
    /// Seeds; `None` is the scenario's.
    pub seeds: Option<u32>,
    /// Fewer and shorter runs.
    pub quick: bool,
    /// Where results are kept; `None` keeps nothing.
    pub directory: Option<std::path::PathBuf>,
}

/// What to do, and the runs that say so.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// Clients.
    pub clients: u32,
    /// The link as it is.
    pub today: Row,
    /// The smallest change that is worth it: its place in `choices`. None where nothing is.
    pub first: Option<usize>,
    /// The change that gains most, where it gains [`WORTH`] more than `first`.
    pub most: Option<usize>,
    /// The best of each side, from the smallest change to the largest.
    pub choices: Vec<Choice>,
    /// All runs.
    pub comparison: Comparison,
}

/// The best that one side can do alone.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Choice {
    /// Who has to change what.
    pub change: &'static str,
    /// The scheme.
    pub scheme: String,
    /// What it is.
    pub summary: &'static str,
    /// What the runs do not show.
    pub cost: &'static str,
    /// Whether it is worth it.
    pub verdict: Verdict,
    /// Its runs.
    pub row: Row,
}

/// What a choice is worth, by the lower end of its gain's 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// No gain that these runs can tell from chance.
    Nothing,
    /// A gain, of less than [`WORTH`].
    Little,
    /// A gain of [`WORTH`] and more.
    Worth,
}

/// A gain in goodput below this is not worth a change.
pub const WORTH: f64 = 0.02;
/// Goodputs that differ by less are equal: the delay decides.
const EQUAL: f64 = 0.01;

/// Who has to change.
struct Side {
    change: &'static str,
    cost: &'static str,
    schemes: &'static [&'static str],
    /// It takes a Wi-Fi hop.
    needs_wifi: bool,
}

/// From the smallest change to the largest.
const SIDES: &[Side] = &[
    Side {
        change: "receivers acknowledge less often",
        cost: "senders must pace, as bursts grow with the octets that an ACK frees; losses at the end of a transfer are told \
               later",
        schemes: &["tcp-l4", "tcp-l8", "tcp-l16", "quic-ackfreq", "chrome", "neqo", "picoquic", "tack-lite"],
        needs_wifi: false,
    },
    Side {
        change: "senders use another congestion control",
        cost: "receivers stay as they are; beside CUBIC in one queue shares are not equal",
        schemes: &["bbr", "rre"],
        needs_wifi: false,
    },
    Side {
        change: "software of access point or drivers",
        cost: "filters read TCP headers, which QUIC and VPNs hide; FastACK vouches for what a client may still lose",
        schemes: &["driver-replace", "driver-hold", "cake-ack-filter", "fastack"],
        needs_wifi: true,
    },
    Side {
        change: "both ends use another transport",
        cost: "both ends need it: `tacit proxy` carries TCP connections of others",
        schemes: &["tack"],
        needs_wifi: false,
    },
    Side {
        change: "both Wi-Fi chips, by an option of 802.11",
        cost: "reverse direction grants are optional in 802.11n and ac, and few chips have them",
        schemes: &["rdg"],
        needs_wifi: true,
    },
    Side {
        change: "firmware of both Wi-Fi chips",
        cost: "no vendor sells it; it reads TCP headers, which QUIC and VPNs hide",
        schemes: &["hack-more-data", "hack-batch"],
        needs_wifi: true,
    },
];

/// The scenario that is meant, and what is set on top of it: the one named, or the nearest to a PHY and a rate, which are
/// `802.11n` and `150Mbps` where nobody says.
///
/// # Errors
/// On a PHY or rate that there is not.
pub fn scenario_of(
    scenario: Option<&str>,
    phy: Option<&str>,
    rate: Option<&str>,
) -> Result<(String, Vec<String>), InputError> {
    if let Some(scenario) = scenario {
        return Ok((scenario.to_owned(), Vec::new()));
    }
    let rate = rate.unwrap_or("150Mbps");
    let hop = hop::parse(phy.unwrap_or("802.11n"), rate)?;
    Ok((scenario_for(hop.phy.standard, hop.data.rate()).to_owned(), vec![format!("wifi.rate={rate}")]))
}

/// The scenario that comes with the program whose rate of `standard` is nearest to `rate`.
pub fn scenario_for(standard: Standard, rate: BitRate) -> &'static str {
    let known: &[(u64, &str)] = match standard {
        Standard::A => &[(54, "wlan-11a-54")],
        Standard::B => &[(11, "wlan-11b-11")],
        Standard::G => &[(54, "wlan-11g-54")],
        Standard::N => &[(150, "wlan-11n-150"), (300, "wlan-11n-300"), (600, "wlan-11n-600")],
        Standard::Ac => &[
            (433, "wlan-11ac-433"),
            (867, "wlan-11ac-866"),
            (1_300, "wlan-11ac-1300"),
            (1_733, "wlan-11ac-1733"),
        ],
    };
    let apart = |mbps: u64| BitRate::from_mbps(mbps).as_bps().abs_diff(rate.as_bps());
    // No standard is without a scenario.
    known
        .iter()
        .min_by_key(|(mbps, _)| apart(*mbps))
        .map_or(crate::compare::DEFAULT_SCENARIO, |known| known.1)
}

/// Answers `question` by runs of every scheme that one side could change to.
///
/// # Errors
/// As [`compare`].
pub fn advise(question: &Question, control: Control<'_>) -> Result<Advice, RunsError> {
    let options = question.options()?;
    let comparison = compare(&options, control)?;
    Ok(Advice::of(comparison))
}

impl Question {
    fn options(&self) -> Result<Options, RunsError> {
        let scenario = tacit_scenario::Scenario::load(&self.scenario, &self.assignments)?;
        let mut assignments = Vec::new();
        if let Some(rtt) = self.rtt {
            assignments.push(format!("wired.delay={} us", rtt.as_micros() / 2));
            // A flow at its rate: sixty round trips for it to get there.
            let (from, usual) = (rtt * 60, scenario.run.measure_from);
            if from > usual {
                let end = from + (scenario.run.duration - usual);
                assignments.push(format!("run.measure-from={} ms", from.as_millis()));
                assignments.push(format!("run.duration={} ms", end.as_millis()));
            }
        }
        if let Some(uploads) = self.uploads {
            assignments.push(format!("traffic.kind={}", if uploads { "upload" } else { "download" }));
        }
        if let Some(segments) = self.segments_per_ack {
            assignments.push("tcp.ack-policy=delayed".to_owned());
            assignments.push(format!("tcp.ack-every={segments}"));
        }
        // What the user sets has the last word.
        assignments.extend(self.assignments.iter().cloned());
        let is_possible = |side: &&Side| scenario.wifi.is_some() || !side.needs_wifi;
        let schemes = SIDES.iter().filter(is_possible).flat_map(|side| side.schemes);
        let stock = Scheme::of_role(Role::Baseline).name;
        let clients = self.clients.or_else(|| scenario.compare.clients.first().copied());
        Ok(Options {
            scenario: self.scenario.clone(),
            assignments,
            clients: clients.into_iter().collect(),
            schemes: std::iter::once(&stock).chain(schemes).map(|&name| name.to_owned()).collect(),
            seeds: self.seeds,
            quick: self.quick,
            directory: self.directory.clone(),
            ..Options::default()
        })
    }
}

impl Advice {
    /// What a comparison of the schemes of all sides with stock advises.
    fn of(comparison: Comparison) -> Self {
        let named = |name: &str| comparison.rows.iter().find(|row| row.scheme == name);
        let today = named(Scheme::of_role(Role::Baseline).name).expect("stock is always compared").clone();
        let choices: Vec<Choice> = SIDES
            .iter()
            .filter_map(|side| {
                let row = best(side.schemes.iter().filter_map(|name| named(name)))?;
                let scheme = scheme::ALL.iter().find(|scheme| scheme.name == row.scheme)?;
                Some(Choice {
                    change: side.change,
                    scheme: row.scheme.clone(),
                    summary: scheme.summary,
                    cost: side.cost,
                    verdict: Verdict::of(row),
                    row: row.clone(),
                })
            })
            .collect();
        let gain = |index: usize| choices[index].row.gain_over_stock.unwrap_or(0.0);
        let worth = |index: &usize| choices[*index].verdict == Verdict::Worth;
        let first = (0..choices.len()).find(worth);
        let most = (0..choices.len()).filter(worth).max_by(|one, other| gain(*one).total_cmp(&gain(*other)));
        let most = most.filter(|most| first.is_some_and(|first| gain(*most) - gain(first) >= WORTH));
        Self { clients: today.clients, today, first, most, choices, comparison }
    }

    /// The advice laid out for a terminal.
    pub fn to_text(&self) -> String {
        text::laid_out(self)
    }
}

impl Verdict {
    /// Of one seed there is no interval, and the mean has to do.
    fn of(row: &Row) -> Self {
        let least = row.gain_over_stock.unwrap_or(0.0) - row.gain_over_stock_ci95.unwrap_or(0.0);
        match least {
            least if least >= WORTH => Self::Worth,
            least if least > 0.0 => Self::Little,
            _ => Self::Nothing,
        }
    }
}

/// Of the rows within [`EQUAL`] of the most goodput the one whose packets wait least; of those the first.
fn best<'a>(rows: impl Iterator<Item = &'a Row> + Clone) -> Option<&'a Row> {
    let most = rows.clone().map(|row| row.goodput_bps_mean).max_by(f64::total_cmp)?;
    let wait = |row: &Row| row.queue_delay_p95_us.or(row.one_way_delay_p95_us).unwrap_or(0.0);
    rows.filter(|row| row.goodput_bps_mean >= most * (1.0 - EQUAL))
        .min_by(|one, other| wait(one).total_cmp(&wait(other)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question() -> Question {
        Question {
            scenario: "wlan-11n-150".into(),
            // In so short runs CUBIC of Linux is still in its slow start.
            assignments: ["run.duration=3 s", "run.measure-from=1 s", "tcp.slow-start=hystart"]
                .map(str::to_owned)
                .to_vec(),
            rtt: None,
            clients: Some(2),
            uploads: None,
            segments_per_ack: Some(2),
            seeds: Some(5),
            quick: false,
            directory: None,
        }
    }

    /// Two clients that acknowledge every second segment, the HACK paper's case: TCP/HACK gains most, TACK at both ends is the
    /// smallest change that gains, and another congestion control is no help.
    #[test]
    fn the_smallest_change_and_the_largest_gain_are_told_apart() {
        let advice = advise(&question(), Control::unattended()).unwrap();
        let text = advice.to_text();
        assert_eq!(advice.choices.len(), SIDES.len());
        let named = |index: Option<usize>| index.map(|index| advice.choices[index].scheme.as_str());
        assert_eq!(named(advice.first), Some("tack"), "{text}");
        assert!(named(advice.most).is_some_and(|name| name.starts_with("hack-")), "{text}");
        assert_eq!(advice.choices[1].verdict, Verdict::Nothing, "{text}");
        assert!(
            text.contains("Smallest change that is worth it:\n  both ends use another transport"),
            "{text}"
        );
        assert!(text.contains("Most is gained by:\n  firmware of both Wi-Fi chips"), "{text}");
    }

    /// Its 50 kb/s of ACKs are the bottleneck of 8 Mb/s of data: fewer ACKs nearly double the goodput.
    #[test]
    fn a_slow_uplink_wants_fewer_acks() {
        let question = Question {
            scenario: "lte-slow-uplink".into(),
            assignments: Vec::new(),
            clients: None,
            seeds: Some(1),
            ..question()
        };
        let advice = advise(&question, Control::unattended()).unwrap();
        let first = &advice.choices[advice.first.unwrap()];
        assert_eq!((advice.first, first.verdict), (Some(0), Verdict::Worth));
        assert!(first.row.gain_over_stock > Some(0.5), "{}", advice.to_text());
        assert!(advice.to_text().contains("95 % of packets take up to"), "{}", advice.to_text());
    }

    #[test]
    fn what_gains_nothing_is_not_advised() {
        // UDP's bound is stock's: one client on a wire without Wi-Fi.
        let question = Question { scenario: "wired-10".into(), segments_per_ack: None, ..question() };
        let advice = advise(&question, Control::unattended()).unwrap();
        assert_eq!(advice.first, None, "{}", advice.to_text());
        assert!(advice.choices.iter().all(|choice| !choice.scheme.starts_with("hack")));
        assert!(advice.to_text().contains("Keep what there is"), "{}", advice.to_text());
    }

    #[test]
    fn the_user_has_the_last_word_and_long_paths_have_their_time() {
        let options = Question { rtt: Some(Duration::from_millis(200)), ..question() }.options().unwrap();
        assert_eq!(options.assignments[0], "wired.delay=100000 us");
        assert_eq!(options.assignments[1], "run.measure-from=12000 ms");
        assert_eq!(options.assignments[2], "run.duration=14000 ms");
        assert!(options.assignments.ends_with(&question().assignments));
    }

    #[test]
    fn every_rate_has_a_scenario_of_its_standard() {
        for (standard, mbps, name) in [
            (Standard::N, 65, "wlan-11n-150"),
            (Standard::N, 240, "wlan-11n-300"),
            (Standard::Ac, 2_340, "wlan-11ac-1733"),
            (Standard::Ac, 867, "wlan-11ac-866"),
            (Standard::B, 1, "wlan-11b-11"),
        ] {
            assert_eq!(scenario_for(standard, BitRate::from_mbps(mbps)), name);
        }
    }

    #[test]
    fn of_equals_the_one_whose_packets_wait_least_is_chosen() {
        let advice = advise(&question(), Control::unattended()).unwrap();
        let row = |mbps: f64, wait_ms: f64| Row {
            goodput_bps_mean: mbps * 1e6,
            queue_delay_p95_us: Some(wait_ms * 1e3),
            ..advice.today.clone()
        };
        let rows = [row(100.0, 9.0), row(99.5, 5.0), row(98.0, 1.0)];
        assert_eq!(best(rows.iter()), Some(&rows[1]));
        assert_eq!(best([].iter()), None);
    }

    #[test]
    fn a_verdict_is_by_the_lower_end_of_the_interval() {
        let advice = advise(&question(), Control::unattended()).unwrap();
        let row = |gain: f64, ci95: f64| Row {
            gain_over_stock: Some(gain),
            gain_over_stock_ci95: Some(ci95),
            ..advice.today.clone()
        };
        assert_eq!(Verdict::of(&row(0.05, 0.03)), Verdict::Worth);
        assert_eq!(Verdict::of(&row(0.05, 0.04)), Verdict::Little);
        assert_eq!(Verdict::of(&row(0.05, 0.06)), Verdict::Nothing);
    }
}
