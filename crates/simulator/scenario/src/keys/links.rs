//! `[wired]`, `[cellular]` and `[[hop]]`.

use tacit_link::queue::{AckFilter, Discipline};
use tacit_link::wired::PipeConfig;
use tacit_packet::units::{BitRate, Duration, Instant};

use super::entry::{About, Key, Keys, TextKey, named};
use super::kind::{ANY_TIME, Choice, Kind as _, Losses, Own, Rate, Share, Span};
use super::queue::DEFAULT_QUEUE;
use crate::input::{Mismatch, Node, Value, text};

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

pub(crate) const RATE: Key<Rate> = named("rate").means("of the wire").is("\"1Gbps\"").key(Rate);

/// The rate from each time on; `None` means that the link is down.
pub(crate) type RateChanges = Vec<(Instant, Option<BitRate>)>;

pub(crate) const RATE_SCRIPT: Key<Own<RateChanges>> = named("rate-script")
    .means("rate from each time on: `[[\"5 s\", \"10Mbps\"], [\"7 s\", \"off\"], [\"8 s\", \"20Mbps\"]]`")
    .described("none")
    .key(Own {
        read: rate_changes,
        write: |_| super::kind::NONE.to_owned(),
        allowed: "pairs of a time and a rate or `\"off\"`",
    });

/// The name of the one-way delay in [`COMMON`].
pub(crate) const DELAY_NAME: &str = "delay";

pub(crate) const RTT: Key<Span> =
    named("rtt").means("half of it each way, in place of `delay`").described("twice `delay`").key(ANY_TIME);

/// Keys of a wired link in addition to [`COMMON`].
pub(super) const WIRED: Keys<PipeConfig> = &[&RATE, &RATE_SCRIPT, &RTT];

const fn trace(name: &'static str) -> Key<Own<String>> {
    named(name)
        .means(
            "a path relative to the scenario's file, or `\"lte-synthetic.down\"`, \
             `\"lte-synthetic.up\"`; a hash behind the path (`blake3:…`) must match",
        )
        .described("required")
        .key(Own { read: text, write: String::clone, allowed: "a name or path" })
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

pub(crate) const QUEUE: TextKey = named("queue")
    .means("a limit of waiting packets, or a table with a [discipline](#queue-disciplines)")
    .is("\"1000 packets\"")
    .text("a queue");

pub(crate) const DROP: Key<Choice<Discipline>> = named("drop")
    .means("what a full queue drops: the arriving packet, or the oldest")
    .is("\"tail\"")
    .key(Choice(&[("tail", Discipline::DropTail), ("head", Discipline::DropHead)]));

pub(crate) const JITTER: TextKey = named("jitter")
    .means(
        "the delay varies uniformly by up to this either way, or normally with this standard \
         deviation; `order = \"free\"` lets packets overtake",
    )
    .described("none")
    .text("a duration, or `{ spread = \"5 ms\", distribution = \"uniform\", order = \"kept\" }`");

pub(crate) const REORDER: TextKey = named("reorder")
    .means("share of packets held back until `packets` others have passed, or for `delay` (100 ms)")
    .described("none")
    .text("`{ chance = \"1 %\", packets = 3, delay = \"10 ms\" }`");

const DIRECTION: &str = "overrides for the direction towards the clients, or from them";

type Pipe = About<PipeConfig>;

/// Keys of both wired and mobile links.
pub(crate) const COMMON: Keys<PipeConfig> = &[
    &Pipe::named(DELAY_NAME)
        .means("one-way delay; on a mobile link, after the opportunity")
        .field(ANY_TIME, |pipe| &mut pipe.delay),
    &QUEUE,
    &DROP,
    &Pipe::named("ack-filter")
        .means("filter of pure TCP ACKs in the queue; see [simulator.md](../design/simulator.md#ack-filters)")
        .field(ACK_FILTERS, |pipe| &mut pipe.ack_filter),
    &Pipe::named("loss").means("loss process after transmission").field(Losses, |pipe| &mut pipe.loss),
    &JITTER,
    &REORDER,
    &Pipe::named("duplicate")
        .means("share of packets delivered twice")
        .field(Share, |pipe| &mut pipe.impairments.duplication),
    &named("down").means(DIRECTION).described("none").text("a table with these keys"),
    &named("up").means(DIRECTION).described("none").text("a table with these keys"),
];

/// Kind of a hop.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum HopKind {
    Wired,
    Cellular,
    Wifi,
}

pub(crate) const KIND: Key<Choice<HopKind>> = named("kind")
    .means("type of the hop; its other keys are those of that table")
    .described("required")
    .key(Choice(&[("wired", HopKind::Wired), ("cellular", HopKind::Cellular), ("wifi", HopKind::Wifi)]));

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
