//! `[wired]`, `[cellular]` and `[[hop]]`.

use tacit_link::queue::{AckFilter, Discipline};
use tacit_link::wired::PipeConfig;
use tacit_proto::units::{BitRate, Duration, Instant};

use super::kind::{ANY_TIME, Choice, Kind as _, Losses, Own, Rate, Share, Span};
use super::{Field, Key, Keys, TextKey, Usual};
use crate::input::{Mismatch, Node, Value, text};
use crate::read::DEFAULT_QUEUE;

/// Maximum number of changes in a rate script.
const MAX_CHANGES: usize = 100_000;
/// One-way delay of a mobile network without queues. Winstein et al. (NSDI 2013) use it when replaying their traces.
const CELLULAR_DELAY: Duration = Duration::from_millis(20);

/// The default wired link: fast enough not to matter.
pub(crate) fn usual_wire() -> PipeConfig {
    PipeConfig::new(BitRate::from_mbps(1_000), Duration::from_millis(1), DEFAULT_QUEUE.into())
}

/// The defaults of a mobile link, without its traces.
pub(crate) fn usual_cellular() -> PipeConfig {
    PipeConfig { delay: CELLULAR_DELAY, ..usual_wire() }
}

pub(crate) const RATE: Key<Rate> =
    Key { name: "rate", kind: Rate, usual: Usual::Is("\"1Gbps\""), meaning: "of the wire" };

/// The rate from each time on; `None` means that the link is down.
pub(crate) type RateChanges = Vec<(Instant, Option<BitRate>)>;

pub(crate) const RATE_SCRIPT: Key<Own<RateChanges>> = Key {
    name: "rate-script",
    kind: Own {
        read: rate_changes,
        write: |_| super::kind::NONE.to_owned(),
        allowed: "pairs of a time and a rate or `\"off\"`",
    },
    usual: Usual::Described("none"),
    meaning: "rate from each time on: `[[\"5 s\", \"10Mbps\"], [\"7 s\", \"off\"], [\"8 s\", \"20Mbps\"]]`. A packet \
              in transmission continues at the new rate; the last entry must be a rate",
};

/// The name of the one-way delay in [`COMMON`].
pub(crate) const DELAY_NAME: &str = "delay";

pub(crate) const RTT: Key<Span> = Key {
    name: "rtt",
    kind: ANY_TIME,
    usual: Usual::Described("twice `delay`"),
    meaning: "round-trip time of the wire, half of it each way, in place of `delay`",
};

/// Keys of a wired link in addition to [`COMMON`].
pub(super) const WIRED: Keys<PipeConfig> = &[&RATE, &RATE_SCRIPT, &RTT];

const fn trace(name: &'static str) -> Key<Own<String>> {
    Key {
        name,
        kind: Own { read: text, write: String::clone, allowed: "a name or path" },
        usual: Usual::Described("required"),
        meaning: "traces towards the clients and back: a path relative to the scenario's file, or a bundled trace, \
                  `\"lte-synthetic.down\"` or `\"lte-synthetic.up\"`. Results have the whole path followed by the file's \
                  hash, `\"/home/me/a.down blake3:…\"`; with a hash, the file must match it",
    }
}

pub(crate) const DOWN_TRACE: Key<Own<String>> = trace("down-trace");
pub(crate) const UP_TRACE: Key<Own<String>> = trace("up-trace");

/// Keys of a mobile link in addition to [`COMMON`].
pub(super) const CELLULAR: Keys<PipeConfig> = &[&DOWN_TRACE, &UP_TRACE];

/// ACK filters for queues of wired and mobile links. These links have no driver that replaces ACKs.
const ACK_FILTERS: Choice<AckFilter> = Choice(&[
    ("none", AckFilter::Off),
    ("cake", AckFilter::Cake),
    ("cake-aggressive", AckFilter::CakeAggressive),
    ("thin", AckFilter::Thin),
]);

/// The filter as written in `wired.ack-filter`.
pub(crate) fn ack_filter_text(filter: AckFilter) -> String {
    ACK_FILTERS.write(&filter)
}

pub(crate) const QUEUE: TextKey = TextKey {
    name: "queue",
    usual: Usual::Is("\"1000 packets\""),
    allowed: "a queue",
    meaning: "waiting packets, without the one in transmission: a limit, or a table with a \
              [discipline](#queue-disciplines)",
};

pub(crate) const DROP: Key<Choice<Discipline>> = Key {
    name: "drop",
    kind: Choice(&[("tail", Discipline::DropTail), ("head", Discipline::DropHead)]),
    usual: Usual::Is("\"tail\""),
    meaning: "packet that a full queue drops: the arriving one, or the oldest; only with a limit",
};

pub(crate) const JITTER: TextKey = TextKey {
    name: "jitter",
    usual: Usual::Described("none"),
    allowed: "a duration, or `{ spread = \"5 ms\", distribution = \"uniform\", order = \"kept\" }`",
    meaning: "the delay varies uniformly by up to this much either way; `\"normal\"`: with this standard deviation, \
              cut at 2.9 of them; never below zero. `order = \"free\"` lets packets overtake, `\"kept\"` makes them \
              wait",
};

pub(crate) const REORDER: TextKey = TextKey {
    name: "reorder",
    usual: Usual::Described("none"),
    allowed: "`{ chance = \"1 %\", packets = 3, delay = \"10 ms\" }`",
    meaning: "this share of packets is held back until `packets` others have passed, or for `delay` (default 100 \
              ms), whichever is first; without `packets`, for `delay`",
};

const DIRECTION: &str = "overrides for the direction towards the clients, or from them";

type Pipe<K> = Field<PipeConfig, K>;

/// Keys of both wired and mobile links.
pub(crate) const COMMON: Keys<PipeConfig> = &[
    &Pipe {
        name: DELAY_NAME,
        kind: ANY_TIME,
        usual: Usual::Field,
        meaning: "one-way delay; on a mobile link, after the opportunity",
        of: |pipe| &mut pipe.delay,
    },
    &QUEUE,
    &DROP,
    &Pipe {
        name: "ack-filter",
        kind: ACK_FILTERS,
        usual: Usual::Field,
        meaning: "filter of pure TCP ACKs in the queue; see [simulator.md](../design/simulator.md#ack-filters)",
        of: |pipe| &mut pipe.ack_filter,
    },
    &Pipe {
        name: "loss",
        kind: Losses,
        usual: Usual::Field,
        meaning: "loss process after transmission",
        of: |pipe| &mut pipe.loss,
    },
    &JITTER,
    &REORDER,
    &Pipe {
        name: "duplicate",
        kind: Share,
        usual: Usual::Field,
        meaning: "share of packets delivered twice, but transmitted once",
        of: |pipe| &mut pipe.impairments.duplication,
    },
    &TextKey {
        name: "down",
        usual: Usual::Described("none"),
        allowed: "a table with these keys",
        meaning: DIRECTION,
    },
    &TextKey {
        name: "up",
        usual: Usual::Described("none"),
        allowed: "a table with these keys",
        meaning: DIRECTION,
    },
];

/// Kind of a hop.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum HopKind {
    Wired,
    Cellular,
    Wifi,
}

pub(crate) const KIND: Key<Choice<HopKind>> = Key {
    name: "kind",
    kind: Choice(&[("wired", HopKind::Wired), ("cellular", HopKind::Cellular), ("wifi", HopKind::Wifi)]),
    usual: Usual::Described("required"),
    meaning: "type of the hop; its other keys are those of that table",
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
        other => Err(wrong(format!("{other} is not a pair"))),
    };
    items.iter().map(one).collect()
}
