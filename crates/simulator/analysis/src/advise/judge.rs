//! Decides which change is worthwhile, and which schemes need more runs for that decision.

use serde::Serialize;
use tacit_runs::aggregate::Group;
use tacit_scenario::Scenario;
use tacit_scenario::scheme::{self, Role, Scheme};

use super::arena::{Arena, EQUAL, Lead, Order};
use super::settings;
use super::sides::{CHANGES, FREQUENCIES, advised};
use crate::compare::{Row, are_files, goodput_of};

/// Advice for one queue.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// The unchanged link.
    pub today: Row,
    /// Index in `choices` of the smallest worthwhile change; `None` if there is none.
    pub first: Option<usize>,
    /// The change with the largest gain, if it exceeds that of `first` by at least [`WORTH`].
    pub most: Option<usize>,
    /// Other worthwhile changes that the runs do not separate from `most`, or from `first` if there is no `most`, as
    /// indexes in `choices`.
    pub most_not_separated_from: Vec<usize>,
    /// The best scheme of each side, from the smallest change to the largest.
    pub choices: Vec<Choice>,
}

/// The best result that one side can achieve alone.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Choice {
    /// The side that has to change, in a word or two.
    pub side: &'static str,
    /// The side that has to change, and what it changes.
    pub change: &'static str,
    /// The scheme.
    pub scheme: String,
    /// A description of one line.
    pub summary: &'static str,
    /// Costs that the runs do not reveal.
    pub cost: &'static str,
    /// What to type for it; empty if nothing of what there is does it.
    pub settings: Vec<String>,
    /// Whether it is worthwhile.
    pub verdict: Verdict,
    /// Schemes of the same side that the runs do not separate from it.
    pub not_separated_from: Vec<String>,
    /// Its runs.
    pub row: Row,
}

/// Value of a choice, based on the 95 % confidence interval of its gain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// No gain, or a gain below [`WORTH`] that may be random.
    Nothing,
    /// A gain below [`WORTH`].
    Little,
    /// The runs do not decide: the interval contains [`WORTH`].
    NotSeparated,
    /// A gain of at least [`WORTH`].
    Worth,
}

/// A gain in goodput below this is not worth a change.
pub const WORTH: f64 = 0.02;

/// Receivers compared by ACK frequency.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Frequencies {
    /// From the most ACKs to the fewest, and finally four per round trip.
    pub rows: Vec<Frequency>,
    /// Index of the best; if several are equal, the one with the lowest queueing delay.
    pub best: Option<usize>,
    /// Indexes of those that the runs do not separate from the best.
    pub not_separated_from: Vec<usize>,
}

/// Receivers with one ACK frequency.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Frequency {
    /// Full segments per ACK; null means one ACK per quarter of the minimum round-trip time.
    pub segments: Option<u32>,
    /// Its runs.
    pub row: Row,
}

/// The best among several schemes.
struct Standing<'n> {
    best: &'n str,
    /// Schemes that the runs do not separate from the one with the highest goodput.
    open: Vec<&'n str>,
}

impl Answer {
    /// The advice based on the runs in `arena`, of `scenario`.
    ///
    /// # Panics
    /// If the baseline did not run.
    pub(super) fn from_arena(arena: &Arena, scenario: &Scenario) -> Self {
        let stock = Scheme::with_role(Role::Baseline).name;
        let choices: Vec<Choice> = CHANGES
            .iter()
            .filter_map(|change| {
                let names: Vec<&str> = advised(change.side).map(|scheme| scheme.name).collect();
                let Standing { best, open } = standing(arena, &names)?;
                Some(Choice {
                    side: change.name,
                    change: change.change,
                    scheme: best.to_owned(),
                    summary: Scheme::known(best)?.summary,
                    settings: settings::commands(Scheme::known(best)?, scenario),
                    cost: change.cost,
                    verdict: Verdict::from_lead(&arena.lead(best, stock)?),
                    not_separated_from: open.into_iter().map(str::to_owned).collect(),
                    row: row(arena, best)?,
                })
            })
            .collect();
        let gain = |index: usize| choices[index].row.gain_over_stock.unwrap_or(0.0);
        let worth = |index: &usize| choices[*index].verdict == Verdict::Worth;
        let all: Vec<usize> = (0..choices.len()).filter(worth).collect();
        let first = all.first().copied();
        let top = all.iter().copied().max_by(|one, other| gain(*one).total_cmp(&gain(*other)));
        let most = top.filter(|top| first.is_some_and(|first| gain(*top) - gain(first) >= WORTH));
        let is_open = |shown: usize, other: &usize| {
            let scheme = |index: usize| choices[index].scheme.as_str();
            shown != *other && arena.is_open(scheme(shown), scheme(*other))
        };
        Self {
            today: row(arena, stock).expect("the baseline ran"),
            first,
            most,
            most_not_separated_from: most
                .or(first)
                .map(|shown| all.into_iter().filter(|other| is_open(shown, other)).collect())
                .unwrap_or_default(),
            choices,
        }
    }

    /// The choice with the largest gain among those that are worthwhile, or nearly so.
    pub(super) fn top(&self) -> Option<&Choice> {
        self.most.or(self.first).map(|index| &self.choices[index])
    }
}

impl Frequencies {
    pub(super) fn from_arena(arena: &Arena) -> Self {
        let rows: Vec<Frequency> = FREQUENCIES
            .iter()
            .filter_map(|(segments, scheme)| {
                Some(Frequency { segments: *segments, row: row(arena, scheme)? })
            })
            .collect();
        let names: Vec<&str> = FREQUENCIES.iter().map(|(_, scheme)| *scheme).collect();
        let standing = standing(arena, &names);
        let place = |name: &str| rows.iter().position(|frequency| frequency.row.scheme == name);
        let (best, not_separated_from) = match &standing {
            Some(Standing { best, open }) => {
                (place(best), open.iter().filter_map(|name| place(name)).collect())
            }
            None => (None, Vec::new()),
        };
        Self { rows, best, not_separated_from }
    }
}

impl Verdict {
    /// The verdict on a lead over the unchanged link.
    pub(super) fn from_lead(lead: &Lead) -> Self {
        match lead {
            lead if lead.least >= WORTH => Self::Worth,
            lead if lead.most >= WORTH => Self::NotSeparated,
            lead if lead.least > 0.0 => Self::Little,
            _ => Self::Nothing,
        }
    }
}

/// The schemes that need more runs, each with the index of its arena: their intervals overlap in a way that affects the
/// answer. If any scheme needs more runs, so does the baseline.
pub(super) fn not_separated(arenas: &[Arena]) -> Vec<(usize, &'static Scheme)> {
    let mut all = Vec::new();
    for (number, arena) in arenas.iter().enumerate() {
        let answer = Answer::from_arena(arena, arena.scenario());
        let mut open: Vec<&str> = Vec::new();
        for choice in &answer.choices {
            let ranked = matches!(choice.verdict, Verdict::Worth | Verdict::NotSeparated);
            let rivals = choice.not_separated_from.iter().filter(|_| ranked);
            if choice.verdict == Verdict::NotSeparated || !choice.not_separated_from.is_empty() && ranked {
                open.push(&choice.scheme);
            }
            open.extend(rivals.map(String::as_str));
        }
        if let Some(top) = answer.top().filter(|_| !answer.most_not_separated_from.is_empty()) {
            open.push(&top.scheme);
            open.extend(answer.most_not_separated_from.iter().map(|at| answer.choices[*at].scheme.as_str()));
        }
        let frequencies = Frequencies::from_arena(arena);
        if let Some(best) =
            frequencies.best.filter(|_| number == 0 && !frequencies.not_separated_from.is_empty())
        {
            let places = std::iter::once(best).chain(frequencies.not_separated_from.iter().copied());
            open.extend(places.map(|at| frequencies.rows[at].row.scheme.as_str()));
        }
        if open.is_empty() {
            continue;
        }
        let needed = |scheme: &&Scheme| scheme.role == Role::Baseline || open.contains(&scheme.name);
        all.extend(scheme::ALL.iter().filter(needed).map(|scheme| (number, scheme)));
    }
    all
}

/// Among the schemes `names` in `arena` whose goodput or speed equals the highest, the one with the lowest queueing delay.
fn standing<'n>(arena: &Arena, names: &[&'n str]) -> Option<Standing<'n>> {
    let ran: Vec<&str> = names.iter().copied().filter(|name| arena.seeds(name) > 0).collect();
    let merit = |name: &str| merit(&arena.group(name));
    let leader = ran.iter().copied().max_by(|one, other| merit(one).total_cmp(&merit(other)))?;
    let order = |name: &str| match name == leader {
        true => Order::Equal,
        false => arena.lead(leader, name).map_or(Order::Ahead, |lead| lead.order(EQUAL)),
    };
    let wait = |name: &str| {
        let mean = |metric| arena.group(name).mean_of(metric);
        mean("queue_delay_p95_us").or(mean("one_way_delay_p95_us")).unwrap_or(0.0)
    };
    let equal = ran.iter().copied().filter(|name| order(name) == Order::Equal);
    let best = equal.min_by(|one, other| wait(one).total_cmp(&wait(other)))?;
    Some(Standing { best, open: ran.into_iter().filter(|name| order(name) == Order::Open).collect() })
}

/// What a scheme is ranked by: its goodput, or the files that end per second; zero without runs.
fn merit(group: &Group<'_>) -> f64 {
    if are_files(group) {
        return group.mean_of("flow_completion_p50_s").map_or(0.0, |time| 1.0 / time);
    }
    goodput_bps(group)
}

/// Mean goodput; zero without runs.
pub(super) fn goodput_bps(group: &Group<'_>) -> f64 {
    goodput_of(group).unwrap_or(0.0)
}

pub(super) fn row(arena: &Arena, scheme: &str) -> Option<Row> {
    let of_role = |role| arena.group(Scheme::with_role(role).name);
    let group = arena.group(scheme);
    let clients = group.label()?.clients;
    Row::new(scheme, clients, &group, &of_role(Role::Baseline), &of_role(Role::Bound))
}
