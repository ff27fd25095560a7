//! Recommends an acknowledgment frequency or mechanism for a link, based on simulations of that link.
//!
//! Each answer is based on one comparison of schemes, and there is one answer per kind of queue, because a scheme that
//! helps with a short queue need not help with a long one. Schemes are grouped by the side that has to change, because
//! the user decides what can be changed: a receiver's ACK frequency is a setting, but TCP/HACK is new firmware at both
//! ends. Schemes are ranked only if their confidence intervals separate them. Otherwise they run with more seeds, up to
//! a limit, and are then reported as not separated.

mod arena;
mod judge;
mod limit;
mod settings;
mod sharing;
mod sides;
mod text;

use std::sync::Arc;

use serde::Serialize;
use tacit_packet::units::Duration;
use tacit_runs::RunsError;
use tacit_runs::plan::{Plan, SweepPoint};
use tacit_runs::store::Store;
use tacit_runs::sweep::Control;
use tacit_scenario::scheme::{self, Role, Scheme, Side};
use tacit_scenario::{InputError, MAX_SEEDS, Scenario};

pub use judge::{Answer, Choice, Frequencies, Frequency, Verdict, WORTH};
pub use limit::{Limit, LimitedBy, Queue, QueueKind};
pub use sharing::{Sharing, SharingKind, SharingSetting};
pub use sides::scenario_of;

use crate::compare::{self, Comparison, Options, Row};
use arena::{Arena, Rounds, SeedRequest};
use limit::BottleneckQueue;
use sides::FREQUENCIES;

/// The link and its traffic.
#[derive(Clone, Debug)]
pub struct Question {
    /// A scenario by name or path; [`scenario_of`] provides one for a PHY and a rate.
    pub scenario: String,
    /// Assignments to the scenario, as with `--set`.
    pub assignments: Vec<String>,
    /// Round-trip time without queueing; `None` for the scenario's.
    pub rtt: Option<Duration>,
    /// Number of clients; `None` for the scenario's first count.
    pub clients: Option<u32>,
    /// Whether clients upload; `None` for the scenario's direction.
    pub uploads: Option<bool>,
    /// Segments per ACK of current receivers; `None` for the scenario's receiver.
    pub segments_per_ack: Option<u32>,
    /// Initial number of seeds of every scheme; `None` for [`FIRST_SEEDS`].
    pub seeds: Option<u32>,
    /// Maximum number of seeds for schemes whose intervals do not separate them. `None` for [`MOST_SEEDS`], or half of
    /// that if `quick`; never less than `seeds`.
    pub max_seeds: Option<u32>,
    /// Fewer and shorter runs.
    pub quick: bool,
    /// Directory of the results; `None` stores nothing.
    pub directory: Option<std::path::PathBuf>,
}

/// Initial number of seeds: the smallest one with a useful interval.
pub const FIRST_SEEDS: u32 = 3;
/// Maximum number of seeds of schemes that are not separated.
pub const MOST_SEEDS: u32 = 12;

/// Recommended changes, with the runs that support them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// Number of clients.
    pub clients: u32,
    /// The bottleneck of the unchanged link.
    pub limit: Limit,
    /// The queue at the bottleneck; null if the limit is [`LimitedBy::Source`], or if no assignment can change the
    /// queue.
    pub queue: Option<Queue>,
    /// The answer with the unchanged queue.
    #[serde(flatten)]
    pub answer: Answer,
    /// The answers with other kinds of queues.
    pub other_queues: Vec<QueueAdvice>,
    /// What changes if one client alone makes a recommended change: rows of stock, then of the recommended schemes. Among one
    /// client more than asked for, if that is a single one. Empty if no client can change alone.
    pub adoption: Vec<Row>,
    /// With the unchanged queue: receivers that acknowledge a fixed number of segments.
    pub frequencies: Frequencies,
    /// Options of an 802.11ax access point with several clients, or of several links; null for others.
    pub sharing: Option<Sharing>,
    /// Minimum and maximum number of seeds over all schemes.
    pub seeds: [u32; 2],
    /// All runs with the unchanged queue.
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

/// Answers `question` by simulating every scheme that one side could change to.
///
/// # Errors
/// Same as [`compare::compare`].
pub fn advise(question: &Question, control: Control<'_>) -> Result<Advice, RunsError> {
    let options = question.options()?;
    let [first_seeds, most_seeds] = question.seeds()?;
    let scenario = Arc::new(compare::load(&options)?);
    let schemes = scheme::select("--schemes", &options.schemes)?;
    let clients = scenario.compared_counts(&options.clients)?;
    let [count] = clients[..] else { unreachable!("a question is of one number of clients") };
    let (stock, udp) = (Scheme::with_role(Role::Baseline), Scheme::with_role(Role::Bound));
    let warnings = report_warnings(&options, &scenario, (count, &schemes), control)?;
    // Opened after all input has been checked, so that invalid input leaves no directory behind.
    let store = options.directory.as_deref().map(Store::open).transpose()?;
    let mut rounds = Rounds::new(store.as_ref(), control);
    let mut arenas = vec![Arena::new(scenario.clone(), count)];
    let begin = |arena, schemes: &[&'static Scheme]| -> Vec<SeedRequest> {
        schemes.iter().map(|&scheme| SeedRequest { arena, scheme, seeds: first_seeds }).collect()
    };
    rounds.make(&mut arenas, &begin(0, &[stock, udp]))?;
    let (of_stock, of_udp) = (arenas[0].group(stock.name), arenas[0].group(udp.name));
    let mut limit = Limit::find(&scenario, &of_stock, &of_udp);
    let place = BottleneckQueue::find(&scenario, limit.resource, (count, judge::goodput_bps(&of_udp)));
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
    // The first arena has the unchanged queue and runs all schemes.
    for (number, arena) in arenas.iter().enumerate().skip(1) {
        let tried = if number < with_queues { &sides } else { &of_sharing };
        wanted.extend(begin(number, &arena.possible(tried)));
    }
    rounds.make(&mut arenas, &wanted)?;
    let mut seeds = first_seeds;
    // If no flow has anything to send, there is nothing to rank.
    while seeds < most_seeds && limit.by != LimitedBy::Source {
        let open = judge::not_separated(&arenas[..with_queues]);
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
    let comparison = Comparison::recorded(provenance, &records, store.as_ref())?;
    let answer = Answer::from_arena(&arenas[0], &scenario);
    let adoption = adoption(&options, (count, first_seeds), &answer, &mut rounds)?;
    let other_queues = others.into_iter().zip(&arenas[1..with_queues]);
    Ok(Advice {
        clients: count,
        limit,
        queue: place.map(|place| place.current),
        answer,
        adoption,
        other_queues: other_queues
            .map(|((queue, set), arena)| QueueAdvice {
                queue,
                set,
                answer: Answer::from_arena(arena, &scenario),
            })
            .collect(),
        frequencies: Frequencies::from_arena(&arenas[0]),
        sharing: Sharing::from_arenas(&scenario, count, &arenas[with_queues..]),
        seeds: [first_seeds, seeds],
        comparison,
    })
}

/// The rows of stock and of the recommended schemes where one client alone uses them. Stock runs again, because its results
/// are those of the same client and of the same others.
fn adoption(
    options: &Options,
    (clients, seeds): (u32, u32),
    answer: &Answer,
    rounds: &mut Rounds<'_>,
) -> Result<Vec<Row>, RunsError> {
    let clients = clients.max(2);
    let assignments = [options.assignments.as_slice(), &["clients.adopters=1".to_owned()]].concat();
    let scenario = compare::load(&Options { assignments, clients: vec![clients], ..options.clone() })?;
    let mut arenas = [Arena::new(Arc::new(scenario), clients)];
    let recommended = [answer.first, answer.most].into_iter().flatten();
    let recommended: Vec<&Scheme> =
        recommended.filter_map(|at| Scheme::known(&answer.choices[at].scheme)).collect();
    let possible = arenas[0].possible(&recommended);
    if possible.is_empty() {
        return Ok(Vec::new());
    }
    let schemes: Vec<&Scheme> = std::iter::once(Scheme::with_role(Role::Baseline)).chain(possible).collect();
    let wanted: Vec<SeedRequest> =
        schemes.iter().map(|&scheme| SeedRequest { arena: 0, scheme, seeds }).collect();
    rounds.make_apart(&mut arenas, &wanted)?;
    Ok(schemes.iter().filter_map(|scheme| judge::row(&arenas[0], scheme.name)).collect())
}

/// Whether the scheme is stock, or a change of one side.
fn is_of_a_side(scheme: &Scheme) -> bool {
    scheme.role == Role::Baseline || scheme.is_advised
}

/// Reports warnings about settings without effect.
fn report_warnings(
    options: &Options,
    scenario: &Arc<Scenario>,
    (clients, schemes): (u32, &[&'static Scheme]),
    control: Control<'_>,
) -> Result<Vec<String>, InputError> {
    let mut plan = Plan::default();
    for scheme in schemes {
        plan.push(scenario, scheme, clients, SweepPoint::default(), 1)?;
    }
    compare::warned(options, &plan, schemes, control)
}

impl Question {
    /// Initial and maximum number of seeds.
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
        let (mut from, mut length) = (scenario.run.measure_from, scenario.run.duration);
        if let Some(rtt) = self.rtt {
            assignments.push(format!("wired.delay={} us", rtt.as_micros() / 2));
            // A flow needs about sixty round trips to reach its final rate.
            let settled = (rtt * 60).max(from);
            (from, length) = (settled, length + settled.saturating_sub(from));
        }
        // What the first seconds of a trace ask for is not what the rest does.
        if let Some(period) = scenario.longest_trace() {
            length = length.max(from + period);
        }
        if from > scenario.run.measure_from {
            assignments.push(format!("run.measure-from={} ms", from.as_millis()));
        }
        if length > scenario.run.duration {
            assignments.push(format!("run.duration={} ms", length.as_millis()));
        }
        if let Some(uploads) = self.uploads {
            assignments.push(format!("traffic.kind={}", if uploads { "upload" } else { "download" }));
        }
        if let Some(segments) = self.segments_per_ack {
            assignments.push("tcp.ack-policy=delayed".to_owned());
            assignments.push(format!("tcp.ack-every={segments}"));
        }
        // The user's assignments take precedence.
        assignments.extend(self.assignments.iter().cloned());
        let is_possible = |scheme: &&Scheme| {
            scheme.is_advised && (scenario.wifi.is_some() || !scheme.side.is_some_and(Side::needs_wifi))
        };
        let of_sides = scheme::ALL.iter().filter(is_possible).map(|scheme| scheme.name);
        let frequencies = FREQUENCIES.iter().map(|(_, scheme)| *scheme);
        let stock = Scheme::with_role(Role::Baseline).name;
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
    /// The advice as text: the answer, the limit, then tables; in lines of at most `width` characters, where columns are left
    /// out that do not fit.
    pub fn to_text(&self, width: Option<usize>) -> String {
        text::laid_out(self, width)
    }
}

#[cfg(test)]
mod tests;
