//! The top level of a scenario, `[run]`, `[clients]` and `[compare]`.

use tacit_proto::units::Duration;

use super::kind::{ANY_TIME, OrNone, Own, SOME_TIME, Span, Whole};
use super::{Field, Key, Keys, TextKey, Usual};
use crate::input::{Mismatch, Value, integer, line, title};
use crate::{MAX_CLIENTS, MAX_SEEDS, RunPlan};

pub(crate) const NAME: Key<Own<String>> = Key {
    name: "name",
    kind: Own { read: title, write: String::clone, allowed: "a string, not empty, no control characters" },
    usual: Usual::Described("the file's name without its ending"),
    meaning: "name in results",
};

pub(crate) const DESCRIPTION: Key<Own<String>> = Key {
    name: "description",
    kind: Own { read: line, write: String::clone, allowed: "a string without control characters" },
    usual: Usual::Described("none"),
    meaning: "description in one line",
};

pub(super) const TOP: Keys<()> = &[
    &TextKey {
        name: "base",
        usual: Usual::Described("none"),
        allowed: "a bundled name, or a file beside this one",
        meaning: "the scenario this one differs from",
    },
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

type Run<K> = Field<RunPlan, K>;

pub(crate) const RUN: Keys<RunPlan> = &[
    &Run {
        name: "duration",
        kind: SOME_TIME,
        usual: Usual::Field,
        meaning: "length of a run",
        of: |run| &mut run.duration,
    },
    &Run {
        name: MEASURE_FROM,
        kind: ANY_TIME,
        usual: Usual::Described("4 s, or a quarter of a shorter run"),
        meaning: "start of the measured window, before `duration`; a base's value is ignored if the run is made \
                  shorter",
        of: |run| &mut run.measure_from,
    },
    &Run {
        name: "start-spread",
        kind: ANY_TIME,
        usual: Usual::Field,
        meaning: "each flow starts later by a random time up to this one",
        of: |run| &mut run.start_spread,
    },
    &Run {
        name: "seeds",
        kind: Whole(1, MAX_SEEDS),
        usual: Usual::Field,
        meaning: "number of seeds, for `compare`",
        of: |run| &mut run.seeds,
    },
    &Run {
        name: "sample-interval",
        kind: OrNone(Span::from(Duration::from_millis(1))),
        usual: Usual::Field,
        meaning: "interval of samples in the series",
        of: |run| &mut run.sample_interval,
    },
];

pub(crate) const COUNT: Key<Whole> = Key {
    name: "count",
    kind: Whole(1, MAX_CLIENTS),
    usual: Usual::Described("as many as the `[[client]]` tables stand for, at least 1"),
    meaning: "number of clients of `tacit run` without `--clients`; a base's value is ignored in a file with more \
              `[[client]]` tables",
};

pub(crate) const STAGGER: Key<Span> = Key {
    name: "stagger",
    kind: ANY_TIME,
    usual: Usual::Is("\"0 ms\""),
    meaning: "client *i* starts *i* times this long after the first; an error where that is after `run.measure-from`, unless \
              all of the run counts (`0 s`) or the client has a `start`",
};

pub(crate) const ADOPTERS: Key<Whole> = Key {
    name: "adopters",
    kind: Whole(0, MAX_CLIENTS),
    usual: Usual::Described("all"),
    meaning: "number of clients, from the first, that use the scheme of a run; the others keep `stock`. Not for schemes that \
              change the access point or a link; `stock` and `udp` are always of all",
};

pub(super) const CLIENTS: Keys<()> = &[&COUNT, &STAGGER, &ADOPTERS];

pub(crate) const COMPARED_CLIENTS: Key<Own<Vec<u32>>> = Key {
    name: "clients",
    kind: Own {
        read: client_counts,
        write: |counts| format!("{counts:?}"),
        allowed: "counts from 1 to 1000",
    },
    usual: Usual::Described("`[1, 10]`, or the clients that `[[client]]` lists"),
    meaning: "client counts of `tacit compare` without `--clients`",
};

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
