//! The top level of a scenario, `[run]`, `[clients]` and `[compare]`.

use tacit_packet::units::Duration;

use super::entry::{About, Key, Keys, named};
use super::kind::{ANY_TIME, OrNone, Own, SOME_TIME, Span, Whole};
use crate::input::{Mismatch, Value, integer, line, title};
use crate::{MAX_CLIENTS, MAX_SEEDS, RunPlan};

pub(crate) const NAME: Key<Own<String>> = named("name")
    .means("name in results")
    .described("the file's name without its ending")
    .key(Own { read: title, write: String::clone, allowed: "a string, not empty, no control characters" });

pub(crate) const DESCRIPTION: Key<Own<String>> = named("description")
    .means("description in one line")
    .described("none")
    .key(Own { read: line, write: String::clone, allowed: "a string without control characters" });

pub(super) const TOP: Keys<()> = &[
    &named("base")
        .means("the scenario this one differs from")
        .described("none")
        .text("a bundled name, or a file beside this one"),
    &NAME,
    &DESCRIPTION,
];

/// The defaults.
pub(crate) const fn usual() -> RunPlan {
    RunPlan {
        duration: Duration::from_secs(14),
        measure_from: Duration::from_millis(3_500),
        start_spread: Duration::ZERO,
        seeds: 10,
        sample_interval: Some(Duration::from_millis(500)),
    }
}

pub(crate) const MEASURE_FROM: &str = "measure-from";

type Run = About<RunPlan>;

pub(crate) const RUN: Keys<RunPlan> = &[
    &Run::named("duration").means("length of a run").field(SOME_TIME, |run| &mut run.duration),
    &Run::named(MEASURE_FROM)
        .means("start of the measured window; a base's value is ignored in a shorter run")
        .described("4 s, or a quarter of a shorter run")
        .field(ANY_TIME, |run| &mut run.measure_from),
    &Run::named("start-spread")
        .means("each flow starts later by a random time up to this")
        .field(ANY_TIME, |run| &mut run.start_spread),
    &Run::named("seeds").means("seeds of `compare`").field(Whole(1, MAX_SEEDS), |run| &mut run.seeds),
    &Run::named("sample-interval")
        .means("interval of samples in the series")
        .field(OrNone(Span::from(Duration::from_millis(1))), |run| &mut run.sample_interval),
];

pub(crate) const COUNT: Key<Whole> = named("count")
    .means("clients without `--clients`; a base's is ignored in a file with more `[[client]]` tables")
    .described("as many as the `[[client]]` tables stand for, at least 1")
    .key(Whole(1, MAX_CLIENTS));

pub(crate) const STAGGER: Key<Span> = named("stagger")
    .means("client *i* starts *i* times this long after the first, not after `run.measure-from`")
    .is("\"0 ms\"")
    .key(ANY_TIME);

pub(crate) const ADOPTERS: Key<Whole> = named("adopters")
    .means("clients, from the first, that use the scheme; the others keep `stock`")
    .described("all")
    .key(Whole(0, MAX_CLIENTS));

pub(super) const CLIENTS: Keys<()> = &[&COUNT, &STAGGER, &ADOPTERS];

pub(crate) const COMPARED_CLIENTS: Key<Own<Vec<u32>>> = named("clients")
    .means("of `tacit compare` without `--clients`")
    .described("`[1, 10]`, or the clients that `[[client]]` lists")
    .key(Own {
        read: client_counts,
        write: |counts| format!("{counts:?}"),
        allowed: "counts from 1 to 1000",
    });

pub(super) const COMPARE: Keys<()> = &[&COMPARED_CLIENTS];

/// Client counts, as a list or a single number.
fn client_counts(value: &Value) -> Result<Vec<u32>, Mismatch> {
    let one = integer(1..=MAX_CLIENTS);
    match value {
        Value::List(items) if !items.is_empty() => items.iter().map(|item| one(&item.value)).collect(),
        other => one(other).map(|count| vec![count]).map_err(|_| {
            Mismatch::new(
                format!("{other} is no list of client counts"),
                format!("whole numbers from 1 to {MAX_CLIENTS}, such as [1, 10]"),
            )
        }),
    }
}
