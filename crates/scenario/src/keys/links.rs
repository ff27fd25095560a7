//! `[wired]`, `[cellular]` and `[[hop]]`.

use tacit_link::queue::{AckFilter, Discipline};
use tacit_link::wired::PipeConfig;
use tacit_proto::units::{BitRate, Duration, Instant};

use super::kind::{ANY_TIME, Choice, Kind as _, Losses, Own, Rate, Share};
use super::{Field, Key, Keys, Said, Usual};
use crate::input::{Mismatch, Node, Value, text};
use crate::read::DEFAULT_QUEUE;

/// Most changes of a rate script.
const MAX_CHANGES: usize = 100_000;
/// One way over a mobile network without queues; what Winstein et al. (NSDI 2013) replay their traces with.
const CELLULAR_DELAY: Duration = Duration::from_millis(20);

/// The wire of a scenario that says nothing of it: fast enough not to matter.
pub(crate) fn usual_wire() -> PipeConfig {
    PipeConfig::new(BitRate::from_mbps(1_000), Duration::from_millis(1), DEFAULT_QUEUE.into())
}

/// What a mobile link is but for its traces.
pub(crate) fn usual_cellular() -> PipeConfig {
    PipeConfig { delay: CELLULAR_DELAY, ..usual_wire() }
}

pub(crate) const RATE: Key<Rate> =
    Key { name: "rate", kind: Rate, usual: Usual::Is("\"1Gbps\""), meaning: "of the wire" };

/// From when on which rate; none for nothing at all.
pub(crate) type RateChanges = Vec<(Instant, Option<BitRate>)>;

pub(crate) const RATE_SCRIPT: Key<Own<RateChanges>> = Key {
    name: "rate-script",
    kind: Own {
        read: rate_changes,
        write: |_| super::kind::NONE.to_owned(),
        allowed: "pairs of a time and a rate or `\"off\"`",
    },
    usual: Usual::Said("none"),
    meaning: "from each time on that rate: `[[\"5 s\", \"10Mbps\"], [\"7 s\", \"off\"], [\"8 s\", \"20Mbps\"]]`. What \
              a change finds half sent goes on at the new rate; the last one must be a rate",
};

/// What a wire has beside [`COMMON`].
pub(super) const WIRED: Keys<PipeConfig> = &[&RATE, &RATE_SCRIPT];

const fn trace(name: &'static str) -> Key<Own<String>> {
    Key {
        name,
        kind: Own { read: text, write: String::clone, allowed: "a name or path" },
        usual: Usual::Said("required"),
        meaning: "towards the clients and back: the path from the scenario's file, or a trace that comes with the \
                  program, `\"lte-synthetic.down\"` or `\"lte-synthetic.up\"`. Results have the whole path and the hash \
                  of the file behind it, `\"/home/me/a.down blake3:…\"`: then it must be that very trace",
    }
}

pub(crate) const DOWN_TRACE: Key<Own<String>> = trace("down-trace");
pub(crate) const UP_TRACE: Key<Own<String>> = trace("up-trace");

/// What a mobile link has beside [`COMMON`].
pub(super) const CELLULAR: Keys<PipeConfig> = &[&DOWN_TRACE, &UP_TRACE];

/// Filters that queues of wires and mobile links may have; no link replaces ACKs.
const ACK_FILTERS: Choice<AckFilter> = Choice(&[
    ("none", AckFilter::Off),
    ("cake", AckFilter::Cake),
    ("cake-aggressive", AckFilter::CakeAggressive),
]);

/// As `wired.ack-filter` has it.
pub(crate) fn ack_filter_text(filter: AckFilter) -> String {
    ACK_FILTERS.write(&filter)
}

pub(crate) const QUEUE: Said = Said {
    name: "queue",
    usual: Usual::Is("\"1000 packets\""),
    allowed: "a queue",
    meaning: "waiting packets; the one being sent does not count; a limit, or a table with a \
              [discipline](#queue-disciplines)",
};

pub(crate) const DROP: Key<Choice<Discipline>> = Key {
    name: "drop",
    kind: Choice(&[("tail", Discipline::DropTail), ("head", Discipline::DropHead)]),
    usual: Usual::Is("\"tail\""),
    meaning: "which packet a full queue drops: the one that comes, or those that waited longest; beside a limit",
};

pub(crate) const JITTER: Said = Said {
    name: "jitter",
    usual: Usual::Said("none"),
    allowed: "a duration, or `{ spread = \"5 ms\", distribution = \"uniform\", order = \"kept\" }`",
    meaning: "the delay varies by up to so much either way; `\"normal\"`: with that standard deviation, cut at 2.9 of \
              them; never below zero. `order = \"free\"` lets packets overtake one another, `\"kept\"` makes them wait \
              for the slower ones",
};

pub(crate) const REORDER: Said = Said {
    name: "reorder",
    usual: Usual::Said("none"),
    allowed: "`{ chance = \"1 %\", packets = 3, delay = \"10 ms\" }`",
    meaning: "that share of packets falls behind until `packets` others have overtaken them, or for `delay` (100 ms \
              unless it says), whichever ends first; without `packets` for `delay`",
};

const DIRECTION: &str = "what the direction towards the clients, or from them, has of its own";

type Pipe<K> = Field<PipeConfig, K>;

/// What wired and mobile links have in common.
pub(crate) const COMMON: Keys<PipeConfig> = &[
    &Pipe {
        name: "delay",
        kind: ANY_TIME,
        usual: Usual::Field,
        meaning: "one way; on a mobile link, behind the opportunity",
        of: |pipe| &mut pipe.delay,
    },
    &QUEUE,
    &DROP,
    &Pipe {
        name: "ack-filter",
        kind: ACK_FILTERS,
        usual: Usual::Field,
        meaning: "what becomes of pure TCP ACKs in the queue; see [simulator.md](../design/simulator.md#ack-filters)",
        of: |pipe| &mut pipe.ack_filter,
    },
    &Pipe {
        name: "loss",
        kind: Losses,
        usual: Usual::Field,
        meaning: "after transmission",
        of: |pipe| &mut pipe.loss,
    },
    &JITTER,
    &REORDER,
    &Pipe {
        name: "duplicate",
        kind: Share,
        usual: Usual::Field,
        meaning: "packets that come out twice, having been sent once",
        of: |pipe| &mut pipe.impairments.duplication,
    },
    &Said {
        name: "down",
        usual: Usual::Said("none"),
        allowed: "a table with these keys",
        meaning: DIRECTION,
    },
    &Said { name: "up", usual: Usual::Said("none"), allowed: "a table with these keys", meaning: DIRECTION },
];

/// What a hop is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum HopKind {
    Wired,
    Cellular,
    Wifi,
}

pub(crate) const KIND: Key<Choice<HopKind>> = Key {
    name: "kind",
    kind: Choice(&[("wired", HopKind::Wired), ("cellular", HopKind::Cellular), ("wifi", HopKind::Wifi)]),
    usual: Usual::Said("required"),
    meaning: "what the hop is; its other keys are those of that table",
};

pub(super) const HOP: Keys<()> = &[&KIND];

/// `[["5 s", "10Mbps"], ["7 s", "off"], …]`.
fn rate_changes(value: &Value) -> Result<RateChanges, Mismatch> {
    let wrong = |what: String| {
        Mismatch::new(
            what,
            "pairs of a time and a rate or \"off\", such as [[\"5 s\", \"10Mbps\"], [\"7 s\", \"off\"]]",
        )
    };
    let Value::List(items) = value else { return Err(wrong(format!("{value} is no list"))) };
    if items.len() > MAX_CHANGES {
        return Err(Mismatch::new(format!("{} changes", items.len()), format!("at most {MAX_CHANGES}")));
    }
    let one = |item: &Node| match &item.value {
        Value::List(pair) if pair.len() == 2 => {
            let at = ANY_TIME.read(&pair[0].value)?;
            let rate = match &pair[1].value {
                Value::Text(text) if text == "off" => None,
                other => Some(Rate.read(other)?),
            };
            Ok((Instant::ZERO + at, rate))
        }
        other => Err(wrong(format!("{other} is no pair"))),
    };
    items.iter().map(one).collect()
}
