//! Which acknowledgment frequency or mechanism suits a link, from runs of that link.
//!
//! One comparison of schemes stands behind each answer, and one answer behind each kind of queue, for a scheme that helps
//! with a short queue need not help with a long one. Schemes are grouped by the side that has to change, for that is the
//! user's choice: a receiver's frequency is a setting, TCP/HACK is new firmware at both ends. Nothing is ranked that the
//! confidence intervals do not tell apart: such schemes run with more seeds, up to a bound, and are then said to be not
//! separated.

mod arena;
mod judge;
mod limit;
mod sharing;
mod sides;
mod text;

use std::sync::Arc;

use serde::Serialize;
use tacit_proto::units::Duration;
use tacit_runs::RunsError;
use tacit_runs::plan::{Plan, SweepPoint};
use tacit_runs::store::Store;
use tacit_runs::sweep::{Control, Progress};
use tacit_scenario::scheme::{self, Role, Scheme};
use tacit_scenario::{InputError, MAX_SEEDS, Scenario};

pub use judge::{Answer, Choice, Frequencies, Frequency, Verdict, WORTH};
pub use limit::{Limit, LimitedBy, Queue, QueueKind};
pub use sharing::{Sharing, SharingSetting};
pub use sides::{scenario_for, scenario_of};

use crate::compare::{self, Comparison, Options};
use arena::{Arena, Rounds, SeedRequest};
use limit::BottleneckQueue;
use sides::{FREQUENCIES, SIDES};

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
    /// Seeds that every scheme begins with; `None` is [`FIRST_SEEDS`].
    pub seeds: Option<u32>,
    /// Most seeds of schemes that their intervals do not tell apart; `None` is [`MOST_SEEDS`], or half of that where it is to
    /// be quick, and never less than `seeds`.
    pub max_seeds: Option<u32>,
    /// Fewer and shorter runs.
    pub quick: bool,
    /// Where results are kept; `None` keeps nothing.
    pub directory: Option<std::path::PathBuf>,
}

/// Seeds that schemes begin with: the fewest with an interval that is worth a look.
pub const FIRST_SEEDS: u32 = 3;
/// Most seeds of schemes that are not told apart.
pub const MOST_SEEDS: u32 = 12;

/// Recommended changes, and the runs behind them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// Clients.
    pub clients: u32,
    /// The bottleneck of the link as it is.
    pub limit: Limit,
    /// The queue before that; null where nothing but [`LimitedBy::Source`] limits, or no assignment reaches it.
    pub queue: Option<Queue>,
    /// With the queue as it is.
    #[serde(flatten)]
    pub answer: Answer,
    /// With queues of other kinds.
    pub other_queues: Vec<QueueAdvice>,
    /// With the queue as it is, receivers that acknowledge this number of segments.
    pub frequencies: Frequencies,
    /// Options of an access point of 802.11ax that serves several clients; null for others.
    pub sharing: Option<Sharing>,
    /// Fewest and most seeds of a scheme.
    pub seeds: [u32; 2],
    /// All runs with the queue as it is.
    pub comparison: Comparison,
}

/// The answer with another queue.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QueueAdvice {
    /// The queue.
    pub queue: Queue,
    /// Assignments that set it.
    pub set: Vec<String>,
    /// The answer.
    #[serde(flatten)]
    pub answer: Answer,
}

/// Answers `question` by runs of every scheme that one side could change to.
///
/// # Errors
/// As [`compare::compare`].
pub fn advise(question: &Question, control: Control<'_>) -> Result<Advice, RunsError> {
    let options = question.options()?;
    let [first_seeds, most_seeds] = question.seeds()?;
    let scenario = Arc::new(compare::load(&options)?);
    let schemes = scheme::select("--schemes", &options.schemes)?;
    let clients = scenario.compared_counts(&options.clients)?;
    let [count] = clients[..] else { unreachable!("a question is of one number of clients") };
    let (stock, udp) = (Scheme::of_role(Role::Baseline), Scheme::of_role(Role::Bound));
    let warnings = told_warnings(&options, &scenario, (count, &schemes), control)?;
    // After all that can be wrong with the input: it leaves no directory behind.
    let store = options.directory.as_deref().map(Store::open).transpose()?;
    let mut rounds = Rounds::new(store.as_ref(), control);
    let mut arenas = vec![Arena::new(scenario.clone(), count)];
    let begin = |arena, schemes: &[&'static Scheme]| -> Vec<SeedRequest> {
        schemes.iter().map(|&scheme| SeedRequest { arena, scheme, seeds: first_seeds }).collect()
    };
    rounds.make(&mut arenas, &begin(0, &[stock, udp]))?;
    let (of_stock, of_udp) = (arenas[0].group(stock.name), arenas[0].group(udp.name));
    let mut limit = Limit::of(&scenario, &of_stock, &of_udp);
    let place = BottleneckQueue::of(&scenario, limit.resource, (count, judge::goodput_bps(&of_udp)));
    let place = place.filter(|_| limit.by != LimitedBy::Source);
    let mut others = Vec::new();
    for queue in place.iter().flat_map(BottleneckQueue::others) {
        let Some((set, changed)) = place.as_ref().and_then(|place| place.with(&options, &queue)) else {
            continue;
        };
        arenas.push(Arena::new(Arc::new(changed), count));
        others.push((queue, set));
    }
    let with_queues = arenas.len();
    if limit.by != LimitedBy::Source {
        let settings = sharing::scenarios(&options, &scenario, count).into_iter();
        arenas.extend(settings.map(|scenario| Arena::new(Arc::new(scenario), count)));
    }
    let mut wanted = begin(0, &schemes);
    let sides: Vec<_> = schemes.iter().copied().filter(|scheme| is_of_a_side(scheme)).collect();
    let of_sharing = sharing::schemes();
    // The first arena, the queue as it is, has all schemes.
    for (number, arena) in arenas.iter().enumerate().skip(1) {
        let tried = if number < with_queues { &sides } else { &of_sharing };
        wanted.extend(begin(number, &arena.possible(tried)));
    }
    rounds.make(&mut arenas, &wanted)?;
    let mut seeds = first_seeds;
    // Where no flow has anything to send there is nothing to rank.
    while seeds < most_seeds && limit.by != LimitedBy::Source {
        let open = judge::not_told_apart(&arenas[..with_queues]);
        if open.is_empty() {
            break;
        }
        seeds = most_seeds.min(seeds + (seeds * 2 / 3).max(2));
        let more = open.into_iter().map(|(arena, scheme)| SeedRequest { arena, scheme, seeds });
        rounds.make(&mut arenas, &more.collect::<Vec<_>>())?;
    }
    if let Some(longer) = others.iter().position(|(queue, _)| queue.kind == QueueKind::Ample) {
        limit.judge_queue(&arenas[0], &arenas[longer + 1], stock.name);
    }
    let records = arenas[0].records();
    let provenance =
        compare::provenance(&options, &scenario, &schemes, (&clients, seeds), &warnings, &records)?;
    if let Some(store) = &store {
        store.finish(&provenance, &records)?;
    }
    let mut comparison = Comparison::from_records(provenance, &records);
    if let Some(store) = &store {
        comparison.take_completions(store, &records)?;
    }
    let other_queues = others.into_iter().zip(&arenas[1..with_queues]);
    Ok(Advice {
        clients: count,
        limit,
        queue: place.map(|place| place.own),
        answer: Answer::of(&arenas[0]),
        other_queues: other_queues
            .map(|((queue, set), arena)| QueueAdvice { queue, set, answer: Answer::of(arena) })
            .collect(),
        frequencies: Frequencies::of(&arenas[0]),
        sharing: Sharing::of(&arenas[with_queues..]),
        seeds: [first_seeds, seeds],
        comparison,
    })
}

/// Whether it is stock, or a change of one side.
fn is_of_a_side(scheme: &Scheme) -> bool {
    scheme.role == Role::Baseline || SIDES.iter().any(|side| side.schemes.contains(&scheme.name))
}

/// Tells watchers about requests that the runs will not show.
fn told_warnings(
    options: &Options,
    scenario: &Arc<Scenario>,
    (clients, schemes): (u32, &[&'static Scheme]),
    control: Control<'_>,
) -> Result<Vec<String>, InputError> {
    let mut plan = Plan::default();
    for scheme in schemes {
        plan.push(scenario, scheme, clients, SweepPoint::default(), 1)?;
    }
    let warnings = compare::warnings(options, &plan, schemes)?;
    for warning in &warnings {
        (control.progress)(Progress::Warning(&format!("warning: {warning}")));
    }
    Ok(warnings)
}

impl Question {
    /// Seeds to begin with, and at most.
    fn seeds(&self) -> Result<[u32; 2], InputError> {
        let first = self.seeds.unwrap_or(FIRST_SEEDS);
        let usual = if self.quick { MOST_SEEDS / 2 } else { MOST_SEEDS };
        let most = self.max_seeds.unwrap_or(usual.max(first));
        for (option, seeds) in [("--seeds", first), ("--max-seeds", most)] {
            InputError::check_range(option, seeds, 1..=MAX_SEEDS)?;
        }
        if most < first {
            return Err(InputError::new("--max-seeds", format!("{most} is less than --seeds"))
                .allowed(format!("{first} to {MAX_SEEDS}")));
        }
        Ok([first, most])
    }

    fn options(&self) -> Result<Options, RunsError> {
        let scenario = Scenario::load(&self.scenario, &self.assignments)?;
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
        // The user's settings have the last word.
        assignments.extend(self.assignments.iter().cloned());
        let is_possible = |side: &&sides::Side| scenario.wifi.is_some() || !side.needs_wifi;
        let of_sides = SIDES.iter().filter(is_possible).flat_map(|side| side.schemes.iter().copied());
        let frequencies = FREQUENCIES.iter().map(|(_, scheme)| *scheme);
        let stock = Scheme::of_role(Role::Baseline).name;
        let mut schemes: Vec<&str> = std::iter::once(stock).chain(of_sides).chain(frequencies).collect();
        schemes.sort_by_key(|name| Scheme::position(name));
        schemes.dedup();
        let clients = self.clients.or_else(|| scenario.compare.clients.first().copied());
        Ok(Options {
            scenario: self.scenario.clone(),
            assignments,
            clients: clients.into_iter().collect(),
            schemes: schemes.into_iter().map(str::to_owned).collect(),
            seeds: self.seeds,
            quick: self.quick,
            directory: self.directory.clone(),
            ..Options::default()
        })
    }
}

impl Advice {
    /// The advice laid out for a terminal.
    pub fn to_text(&self) -> String {
        text::laid_out(self)
    }
}

#[cfg(test)]
mod tests;
