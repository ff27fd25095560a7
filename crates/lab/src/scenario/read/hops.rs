//! `[wired]`, `[cellular]` and `[[hop]]`: the chain from the server to the clients.

use std::path::Path;
use std::sync::Arc;

use tacit_link::cellular::Trace;
use tacit_link::queue::AckFilter;
use tacit_link::wired::{
    Distribution, Impairments, Jitter, Order, Overflow, PipeConfig, RateScript, Reordering, Service,
};
use tacit_proto::units::{BitRate, Duration, Instant, Ratio};

use super::{DEFAULT_QUEUE, or_none, span};
use crate::error::InputError;
use crate::input::{
    MAX_DURATION, Mismatch, Node, Section, Value, bit_rate, duration, integer, loss, name_of, one_of,
    queue_limit, ratio, text, within,
};
use crate::scenario::traces;
use crate::scenario::{Hop, Link};

/// Most hops of a chain.
const MAX_HOPS: usize = 16;
/// Most changes of a rate script.
const MAX_CHANGES: usize = 100_000;
/// One way over a mobile network without queues; what Winstein et al. (NSDI 2013) replay their traces with.
const CELLULAR_DELAY: Duration = Duration::from_millis(20);
/// How long a reordered packet waits for the others, unless the scenario says.
const REORDER_DELAY: Duration = Duration::from_millis(100);

/// The chain: `[[hop]]` in its order, or else what there is of `[wired]`, `[cellular]` and `[wifi]`, in
/// this order. Beside `[[hop]]` the first two say what hops of their kind have unless they say otherwise.
pub(super) fn chain(root: &Section<'_>, has_wifi: bool) -> Result<Vec<Hop>, InputError> {
    let (wired_section, cellular_section) = (root.section("wired")?, root.section("cellular")?);
    let (has_wired, has_cellular) = (wired_section.is_present(), cellular_section.is_present());
    let usual_wire = wired(&wired_section, &Link::both_ways(&default_wire()))?;
    let usual_cellular = Cellular::read(&cellular_section, &Cellular::usual())?;
    let list = root.sections("hop")?;
    let mut hops = Vec::new();
    if list.is_empty() {
        if has_wired || !has_cellular {
            hops.push(Hop::Pipe(Box::new(usual_wire)));
        }
        if has_cellular {
            hops.push(Hop::Pipe(Box::new(usual_cellular.link(&cellular_section)?)));
        }
    } else {
        if list.len() > MAX_HOPS {
            let what = format!("{} hops", list.len());
            return Err(root.error("hop", what).allowed(format!("at most {MAX_HOPS}")));
        }
        for section in list {
            hops.push(hop(&section, &usual_wire, &usual_cellular, has_wifi, &hops)?);
            section.finish()?;
        }
    }
    wired_section.finish()?;
    cellular_section.finish()?;
    if has_wifi && !hops.contains(&Hop::Wifi) {
        hops.push(Hop::Wifi);
    }
    Ok(hops)
}

#[derive(Clone, Copy)]
enum Kind {
    Wired,
    Cellular,
    Wifi,
}

fn hop(
    section: &Section<'_>,
    usual_wire: &Link,
    usual_cellular: &Cellular,
    has_wifi: bool,
    before: &[Hop],
) -> Result<Hop, InputError> {
    let kinds = [("wired", Kind::Wired), ("cellular", Kind::Cellular), ("wifi", Kind::Wifi)];
    match section.required("kind", one_of(&kinds))? {
        Kind::Wired => wired(section, usual_wire).map(Box::new).map(Hop::Pipe),
        Kind::Cellular => Cellular::read(section, usual_cellular)?.link(section).map(Box::new).map(Hop::Pipe),
        Kind::Wifi if !has_wifi => Err(section
            .error("kind", "there is no [wifi]")
            .allowed("\"wifi\" beside [wifi], which describes it")),
        Kind::Wifi if before.contains(&Hop::Wifi) => {
            Err(section.error("kind", "a second \"wifi\"").allowed("one hop of this kind"))
        }
        Kind::Wifi => Ok(Hop::Wifi),
    }
}

/// The wire of a scenario that says nothing of it: fast enough not to matter.
const fn default_wire() -> PipeConfig {
    PipeConfig::new(BitRate::from_mbps(1_000), Duration::from_millis(1), DEFAULT_QUEUE)
}

/// A wired link; what `section` does not say is as in `usual`.
fn wired(section: &Section<'_>, usual: &Link) -> Result<Link, InputError> {
    each_way(section, usual, |section, usual| {
        let pipe = PipeConfig { service: service(section, &usual.service)?, ..usual.clone() };
        common_keys(section, &pipe)
    })
}

/// Reads both directions with `read`, then what `down` and `up` say of their own.
fn each_way(
    section: &Section<'_>,
    usual: &Link,
    read: impl Fn(&Section<'_>, &PipeConfig) -> Result<PipeConfig, InputError>,
) -> Result<Link, InputError> {
    let way = |key, usual| {
        let both = read(section, usual)?;
        let own = section.section(key)?;
        let pipe = read(&own, &both)?;
        own.finish().map(|()| pipe)
    };
    Ok(Link { down: way("down", &usual.down)?, up: way("up", &usual.up)? })
}

fn service(section: &Section<'_>, usual: &Service) -> Result<Service, InputError> {
    let rate = section.optional("rate", bit_rate)?;
    let Some(changes) = section.optional("rate-script", rate_changes)? else {
        return Ok(rate.map_or_else(|| usual.clone(), Service::Rate));
    };
    let first = match (rate, usual) {
        (Some(rate), _) => rate,
        (None, Service::Rate(rate)) => *rate,
        (None, Service::Script(script)) => script.first(),
        (None, Service::Trace(_)) => return Err(section.error("rate", "not given")),
    };
    let script = RateScript::new(first, changes).ok_or_else(|| {
        section
            .error("rate-script", "is out of order, or ends with \"off\"")
            .allowed("times that rise, and a rate at the end")
    })?;
    Ok(Service::Script(script))
}

/// `[["5 s", "10Mbps"], ["7 s", "off"], …]`.
fn rate_changes(value: &Value) -> Result<Vec<(Instant, Option<BitRate>)>, Mismatch> {
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
            let at = span(&pair[0].value)?;
            let rate = match &pair[1].value {
                Value::Text(text) if text == "off" => None,
                other => Some(bit_rate(other)?),
            };
            Ok((Instant::ZERO + at, rate))
        }
        other => Err(wrong(format!("{other} is no pair"))),
    };
    items.iter().map(one).collect()
}

/// Filters that queues of wires and mobile links may have.
const ACK_FILTERS: [(&str, AckFilter); 3] =
    [("none", AckFilter::Off), ("cake", AckFilter::Cake), ("cake-aggressive", AckFilter::CakeAggressive)];

/// What users call a filter; no link replaces ACKs.
pub(in crate::scenario) fn ack_filter_name(filter: AckFilter) -> &'static str {
    name_of(&ACK_FILTERS, &filter).unwrap_or("none")
}

/// What wired and cellular links have in common.
fn common_keys(section: &Section<'_>, usual: &PipeConfig) -> Result<PipeConfig, InputError> {
    let overflows = [("tail", Overflow::DropTail), ("head", Overflow::DropHead)];
    Ok(PipeConfig {
        service: usual.service.clone(),
        delay: section.or("delay", usual.delay, span)?,
        queue: section.or("queue", usual.queue, queue_limit)?,
        overflow: section.or("drop", usual.overflow, one_of(&overflows))?,
        ack_filter: section.or("ack-filter", usual.ack_filter, one_of(&ACK_FILTERS))?,
        loss: section.or("loss", usual.loss.clone(), loss)?,
        impairments: Impairments {
            jitter: jitter(section, usual.impairments.jitter)?,
            reordering: reordering(section, usual.impairments.reordering)?,
            duplication: section.or("duplicate", usual.impairments.duplication, ratio)?,
        },
    })
}

/// A duration, `"none"`, or `{ spread = …, distribution = …, order = … }`.
fn jitter(section: &Section<'_>, usual: Option<Jitter>) -> Result<Option<Jitter>, InputError> {
    let Some(node) = section.node("jitter") else { return Ok(usual) };
    let even = |spread| Jitter { distribution: Distribution::Uniform(spread), order: Order::Kept };
    if !matches!(node.value, Value::Table(_)) {
        return section.or("jitter", None, |value| {
            or_none(span)(value).map(|spread| spread.map(even)).map_err(|mut mismatch| {
                mismatch
                    .allowed
                    .push_str(", or { spread = \"5 ms\", distribution = \"normal\", order = \"free\" }");
                mismatch
            })
        });
    }
    let table = section.section("jitter")?;
    let spread = table.required("spread", span)?;
    let distributions =
        [("uniform", Distribution::Uniform(spread)), ("normal", Distribution::Normal(spread))];
    let distribution = table.or("distribution", Distribution::Uniform(spread), one_of(&distributions))?;
    let order = table.or("order", Order::Kept, one_of(&[("kept", Order::Kept), ("free", Order::Free)]))?;
    table.finish()?;
    Ok(Some(Jitter { distribution, order }))
}

/// `"none"`, or `{ chance = …, packets = …, delay = … }`.
fn reordering(section: &Section<'_>, usual: Option<Reordering>) -> Result<Option<Reordering>, InputError> {
    let Some(node) = section.node("reorder") else { return Ok(usual) };
    if !matches!(node.value, Value::Table(_)) {
        return section.or("reorder", None, |value| match value {
            Value::Text(text) if text == "none" => Ok(None),
            other => Err(Mismatch::new(
                format!("{other} does not say how far"),
                "{ chance = \"1 %\", packets = 3 }, { chance = \"1 %\", delay = \"5 ms\" }, both, or \"none\"",
            )),
        });
    }
    let table = section.section("reorder")?;
    let chance = table.required("chance", ratio)?;
    let packets = table.optional("packets", integer(1..=1_000))?;
    let delay = table.optional("delay", within(Duration::from_nanos(1)..=MAX_DURATION, duration))?;
    if packets.is_none() && delay.is_none() {
        return Err(table.error("packets", "not given").allowed("packets, delay, or both"));
    }
    table.finish()?;
    let reordering = Reordering { chance, packets, delay: delay.unwrap_or(REORDER_DELAY) };
    Ok(Some(reordering).filter(|reordering| reordering.chance != Ratio::ZERO))
}

/// A cellular link of which the traces may be missing yet.
#[derive(Clone)]
struct Cellular {
    down_trace: Option<Arc<Trace>>,
    up_trace: Option<Arc<Trace>>,
    link: Link,
}

impl Cellular {
    fn usual() -> Self {
        let pipe = PipeConfig { delay: CELLULAR_DELAY, ..default_wire() };
        Self { down_trace: None, up_trace: None, link: Link::both_ways(&pipe) }
    }

    fn read(section: &Section<'_>, usual: &Self) -> Result<Self, InputError> {
        Ok(Self {
            down_trace: trace(section, "down-trace")?.or_else(|| usual.down_trace.clone()),
            up_trace: trace(section, "up-trace")?.or_else(|| usual.up_trace.clone()),
            link: each_way(section, &usual.link, common_keys)?,
        })
    }

    fn link(self, section: &Section<'_>) -> Result<Link, InputError> {
        let missing = |key| {
            section
                .error(key, "not given")
                .allowed(format!("the path of a trace, or one of {}", traces::names()))
        };
        let Link { mut down, mut up } = self.link;
        down.service = Service::Trace(self.down_trace.ok_or_else(|| missing("down-trace"))?);
        up.service = Service::Trace(self.up_trace.ok_or_else(|| missing("up-trace"))?);
        Ok(Link { down, up })
    }
}

/// A trace by name, or by its path from the scenario's file.
fn trace(section: &Section<'_>, key: &'static str) -> Result<Option<Arc<Trace>>, InputError> {
    let Some(name) = section.optional(key, text)? else { return Ok(None) };
    if let Some(trace) = traces::find(&name) {
        return Ok(Some(Arc::new(trace)));
    }
    let directory = section.node(key).and_then(|node| node.origin.directory());
    let path = directory.unwrap_or(Path::new("")).join(&name);
    traces::load(&path).map(Some).map_err(|error| match error {
        traces::LoadError::File(why) => section
            .error(key, format!("{}: {why}", path.display()))
            .allowed(format!("the path of a trace, from the scenario's file, or one of {}", traces::names())),
        traces::LoadError::Trace(error) => {
            InputError::new(format!("{}:{}", path.display(), error.line), error.what)
        }
    })
}
