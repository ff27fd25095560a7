//! `[wired]`, `[cellular]` and `[[hop]]`: the chain from the server to the clients.

use std::path::Path;
use std::sync::Arc;

use tacit_link::cellular::Trace;
use tacit_link::queue::{Discipline, QueueConfig};
use tacit_link::wired::{Distribution, Jitter, Order, PipeConfig, RateScript, Reordering, Service};
use tacit_packet::units::{Duration, Ratio};

use super::queue::{QueueHop, queue};
use crate::error::InputError;
use crate::input::{Mismatch, Node, Section, Tree, Value, integer, one_of, ratio};
use crate::keys::kind::{ANY_TIME, Kind as _, OrNone, Own, SOME_TIME, or};
use crate::keys::links::HopKind;
use crate::keys::{Key, fill, links};
use crate::traces;
use crate::{Hop, Link};

/// Maximum number of hops in a chain.
const MAX_HOPS: usize = 16;
/// Default delay of a reordered packet.
const REORDER_DELAY: Duration = Duration::from_millis(100);

/// The chain: `[[hop]]` in order, or otherwise `[wired]`, `[cellular]` and `[wifi]` in this order, as far as present.
/// With `[[hop]]`, the first two contain the defaults for hops of their kind.
pub(super) fn chain(root: &Section<'_>, has_wifi: bool) -> Result<Vec<Hop>, InputError> {
    let (wired_section, cellular_section) = (root.section(WIRED)?, root.section("cellular")?);
    let (has_wired, has_cellular) = (wired_section.is_present(), cellular_section.is_present());
    let usual_wire = wired(&wired_section, &Link::both_ways(&links::usual_wire()))?;
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

fn hop(
    section: &Section<'_>,
    usual_wire: &Link,
    usual_cellular: &Cellular,
    has_wifi: bool,
    before: &[Hop],
) -> Result<Hop, InputError> {
    match links::KIND.required(section)? {
        HopKind::Wired => wired(section, usual_wire).map(Box::new).map(Hop::Pipe),
        HopKind::Cellular => {
            Cellular::read(section, usual_cellular)?.link(section).map(Box::new).map(Hop::Pipe)
        }
        HopKind::Wifi if !has_wifi => {
            Err(section.error("kind", "there is no [wifi]").allowed("\"wifi\" with a table [wifi]"))
        }
        HopKind::Wifi if before.contains(&Hop::Wifi) => {
            Err(section.error("kind", "a second \"wifi\"").allowed("one hop of this kind"))
        }
        HopKind::Wifi => Ok(Hop::Wifi),
    }
}

/// A wired link. Keys that are missing in `section` are taken from `usual`.
fn wired(section: &Section<'_>, usual: &Link) -> Result<Link, InputError> {
    let usual = with_rtt(section, usual)?;
    each_way(section, &usual, |section, usual| {
        let pipe = PipeConfig { service: service(section, &usual.service)?, ..usual.clone() };
        common_keys(section, &pipe)
    })
}

/// `usual` with half of the round-trip time in each direction, if `section` has one.
fn with_rtt(section: &Section<'_>, usual: &Link) -> Result<Link, InputError> {
    let Some(rtt) = links::RTT.given(section)? else { return Ok(usual.clone()) };
    let has_delay = |section: &Section<'_>| section.node(links::DELAY_NAME).is_some();
    if has_delay(section) || has_delay(&section.section("down")?) || has_delay(&section.section("up")?) {
        let what = "given beside delay, which is one way of the same wire";
        return Err(section.error(links::RTT.name, what).allowed("rtt or delay"));
    }
    let down = rtt / 2;
    let (down, up) = (
        PipeConfig { delay: down, ..usual.down.clone() },
        PipeConfig { delay: rtt - down, ..usual.up.clone() },
    );
    Ok(Link { down, up })
}

/// The table of the wire.
pub(crate) const WIRED: &str = "wired";

/// A file that gives the wire's round-trip time replaces the delays of the base, and the other way round.
pub(crate) fn forget_other_delay(base: &mut Tree, tree: &Tree) {
    const WAYS: [&str; 2] = ["down", "up"];
    let (delay, rtt) = (links::DELAY_NAME, links::RTT.name);
    let Some(Value::Table(given)) = tree.entries.get(WIRED).map(|node| &node.value) else { return };
    let Some(Value::Table(wire)) = base.entries.get_mut(WIRED).map(|node| &mut node.value) else { return };
    let of_way = |way: &&str| match given.entries.get(*way).map(|node| &node.value) {
        Some(Value::Table(way)) => way.entries.contains_key(delay),
        _ => false,
    };
    if given.entries.contains_key(rtt) {
        wire.entries.remove(delay);
        for way in WAYS {
            if let Some(Value::Table(way)) = wire.entries.get_mut(way).map(|node| &mut node.value) {
                way.entries.remove(delay);
            }
        }
    } else if given.entries.contains_key(delay) || WAYS.iter().any(of_way) {
        wire.entries.remove(rtt);
    }
}

/// Reads both directions with `read`, then the overrides in `down` and `up`.
fn each_way(
    section: &Section<'_>,
    usual: &Link,
    read: impl Fn(&Section<'_>, &PipeConfig) -> Result<PipeConfig, InputError>,
) -> Result<Link, InputError> {
    let way = |key, usual| {
        let both = read(section, usual)?;
        let override_section = section.section(key)?;
        let pipe = read(&override_section, &both)?;
        override_section.finish().map(|()| pipe)
    };
    Ok(Link { down: way("down", &usual.down)?, up: way("up", &usual.up)? })
}

fn service(section: &Section<'_>, usual: &Service) -> Result<Service, InputError> {
    let rate = links::RATE.given(section)?;
    let Some(changes) = links::RATE_SCRIPT.given(section)? else {
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

/// Keys of both wired and cellular links.
fn common_keys(section: &Section<'_>, usual: &PipeConfig) -> Result<PipeConfig, InputError> {
    let mut pipe = usual.clone();
    fill(links::COMMON, section, &mut pipe)?;
    pipe.queue = queue_of(section, usual.queue)?;
    pipe.impairments.jitter = jitter(section, usual.impairments.jitter)?;
    pipe.impairments.reordering = reordering(section, usual.impairments.reordering)?;
    Ok(pipe)
}

/// The queue, from `queue` and `drop`. A limit alone keeps the rule for which packet a full queue drops, but replaces
/// any other discipline.
fn queue_of(section: &Section<'_>, usual: QueueConfig) -> Result<QueueConfig, InputError> {
    let given = queue(section, links::QUEUE.name, QueueHop::Wire)?;
    let drop = links::DROP.given(section)?;
    let mut queue = given.unwrap_or(usual);
    let is_limit = !matches!(section.node(links::QUEUE.name), Some(Node { value: Value::Table(_), .. }));
    if given.is_some() && is_limit && usual.discipline == Discipline::DropHead {
        queue.discipline = Discipline::DropHead;
    }
    let Some(drop) = drop else { return Ok(queue) };
    match queue.discipline {
        Discipline::DropTail | Discipline::DropHead => Ok(QueueConfig { discipline: drop, ..queue }),
        Discipline::CoDel(_) | Discipline::FqCoDel(_) | Discipline::DualPi2(_) => Err(section
            .error(links::DROP.name, "the queue has a discipline, which chooses its drops")
            .allowed("drop beside a queue that is a limit")),
    }
}

/// A duration, `"none"`, or `{ spread = …, distribution = …, order = … }`.
fn jitter(section: &Section<'_>, usual: Option<Jitter>) -> Result<Option<Jitter>, InputError> {
    let Some(node) = section.node(links::JITTER.name) else { return Ok(usual) };
    let even = |spread| Jitter { distribution: Distribution::Uniform(spread), order: Order::Kept };
    if !matches!(node.value, Value::Table(_)) {
        return section.or(links::JITTER.name, None, |value| {
            let also = "{ spread = \"5 ms\", distribution = \"normal\", order = \"free\" }";
            let spread = OrNone(ANY_TIME).read(value).map_err(|mismatch| or(mismatch, also))?;
            Ok(spread.map(even))
        });
    }
    let table = section.section(links::JITTER.name)?;
    let spread = table.required("spread", |value| ANY_TIME.read(value))?;
    let distributions =
        [("uniform", Distribution::Uniform(spread)), ("normal", Distribution::Normal(spread))];
    let distribution = table.or("distribution", Distribution::Uniform(spread), one_of(&distributions))?;
    let order = table.or("order", Order::Kept, one_of(&[("kept", Order::Kept), ("free", Order::Free)]))?;
    table.finish()?;
    Ok(Some(Jitter { distribution, order }))
}

/// `"none"`, or `{ chance = …, packets = …, delay = … }`.
fn reordering(section: &Section<'_>, usual: Option<Reordering>) -> Result<Option<Reordering>, InputError> {
    let Some(node) = section.node(links::REORDER.name) else { return Ok(usual) };
    if !matches!(node.value, Value::Table(_)) {
        return section.or(links::REORDER.name, None, |value| match value {
            Value::Text(text) if text == "none" => Ok(None),
            other => Err(Mismatch::new(
                format!("{other} has no distance"),
                "{ chance = \"1 %\", packets = 3 }, { chance = \"1 %\", delay = \"5 ms\" }, both, or \"none\"",
            )),
        });
    }
    let table = section.section(links::REORDER.name)?;
    let chance = table.required("chance", ratio)?;
    let packets = table.optional("packets", integer(1..=1_000))?;
    let delay = table.optional("delay", |value| SOME_TIME.read(value))?;
    if packets.is_none() && delay.is_none() {
        return Err(table.error("packets", "missing").allowed("packets, delay, or both"));
    }
    table.finish()?;
    let reordering = Reordering { chance, packets, delay: delay.unwrap_or(REORDER_DELAY) };
    Ok(Some(reordering).filter(|reordering| reordering.chance != Ratio::ZERO))
}

/// A cellular link whose traces may not be set yet.
#[derive(Clone)]
struct Cellular {
    down_trace: Option<Arc<Trace>>,
    up_trace: Option<Arc<Trace>>,
    link: Link,
}

impl Cellular {
    fn usual() -> Self {
        Self { down_trace: None, up_trace: None, link: Link::both_ways(&links::usual_cellular()) }
    }

    fn read(section: &Section<'_>, usual: &Self) -> Result<Self, InputError> {
        Ok(Self {
            down_trace: trace(section, &links::DOWN_TRACE)?.or_else(|| usual.down_trace.clone()),
            up_trace: trace(section, &links::UP_TRACE)?.or_else(|| usual.up_trace.clone()),
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
        down.service = Service::Trace(self.down_trace.ok_or_else(|| missing(links::DOWN_TRACE.name))?);
        up.service = Service::Trace(self.up_trace.ok_or_else(|| missing(links::UP_TRACE.name))?);
        Ok(Link { down, up })
    }
}

/// A trace, by name or by its path relative to the scenario file.
fn trace(section: &Section<'_>, key: &Key<Own<String>>) -> Result<Option<Arc<Trace>>, InputError> {
    let Some(name) = key.given(section)? else { return Ok(None) };
    if let Some(trace) = traces::find(&name) {
        return Ok(Some(Arc::new(trace)));
    }
    let directory = section.node(key.name).and_then(|node| node.origin.directory());
    let (path, trace) = traces::load(directory.unwrap_or(Path::new("")), &name);
    trace.map(Some).map_err(|error| match error {
        traces::LoadError::File(why) => section
            .error(key.name, format!("{}: {why}", path.display()))
            .allowed(format!("the path of a trace, from the scenario's file, or one of {}", traces::names())),
        traces::LoadError::Trace(error) => {
            InputError::new(format!("{}:{}", path.display(), error.line), error.what)
        }
    })
}
