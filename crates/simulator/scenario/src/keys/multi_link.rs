//! `[[wifi.link]]` and `[wifi.multi-link]`.

use tacit_link::wifi::{
    AccessCategory, AckLinks, BlockAckScope, BothWays, Emlsr, LinkId, LinkMap, LinkSet, RadioReturn,
    WindowShare,
};
use tacit_packet::units::Duration;

use super::entry::{About, Field, Key, Keys, TextKey, named};
use super::kind::{Choice, Given, Own, Span};
use super::wifi;
use crate::input::{Mismatch, Node, Tree, Value, duration, integer, within};
use crate::markdown::to_text;
use crate::{ClientOverride, LinkUse, MultiLinkPlan};

/// Most links of a device.
pub(crate) const MAX_LINKS: u32 = tacit_between::hack::MOST_LINKS as u32;
/// The table of settings that all links have in common.
pub(crate) const TABLE: &str = "multi-link";
/// The list of links.
pub(crate) const LIST: &str = "link";
/// The settings of `[wifi]` that a link may have for itself.
pub(crate) const OF_A_LINK: [&str; 15] = [
    "band",
    wifi::RATE.name,
    wifi::MCS.name,
    wifi::STREAMS.name,
    wifi::CHANNEL_WIDTH.name,
    wifi::GUARD_INTERVAL.name,
    wifi::ACK_RATE.name,
    wifi::SNR.name,
    wifi::DISTANCE.name,
    wifi::MPDU_ERROR.name,
    wifi::LINK_ACK_ERROR.name,
    "txop-limit",
    wifi::CW_MIN,
    wifi::CW_MAX,
    wifi::PROTECTION.name,
];

/// `[[wifi.link]]`.
pub(crate) const LINKS: TextKey = named(LIST)
    .means("802.11be: see [several links](#several-links)")
    .described("one link")
    .text("two or three tables `[[wifi.link]]`");

/// `[wifi.multi-link]`, as a key of `[wifi]`.
pub(crate) const COMMON: TextKey =
    named(TABLE).means("see [below](#wifimulti-link)").optional().text("a table");

/// The keys of `[wifi]` that are tables of links.
pub(crate) const IN_WIFI: Keys<()> = &[&LINKS, &COMMON];

type Common = About<MultiLinkPlan>;

/// `[wifi.multi-link]`.
pub(crate) const MULTI_LINK: Keys<MultiLinkPlan> = &[
    &Common::named("mode")
        .means(
            "what clients do at once: send and receive on each link; send on one or receive on \
             others; use only the fastest; exchange frames on one at a time, listening on all",
        )
        .field(MODES, |plan| &mut plan.mode),
    &Common::named("padding")
        .means("`\"emlsr\"`: padding of the frames that call a client to a link")
        .field(Own { read: padding, write: time, allowed: PADDINGS }, |plan| &mut plan.emlsr.padding),
    &Common::named("transition")
        .means("`\"emlsr\"`: how long a client hears nothing on any link after an exchange")
        .field(Own { read: transition, write: time, allowed: TRANSITIONS }, |plan| {
            &mut plan.emlsr.transition
        }),
    &Common::named("radio-return")
        .means(
            "`\"emlsr\"`: when a client contends again: after `transition`, with a backoff that \
             stood still; or after this time, with one that ran",
        )
        .field(Own { read: radio_return, write: write_return, allowed: RETURNS }, |plan| {
            &mut plan.emlsr.radio_return
        }),
    &Common::named("medium-sync")
        .means(
            "`\"emlsr\"`, `\"nstr\"`: time in which a client that heard nothing for 72 us begins \
             at most one TXOP, with an RTS",
        )
        .field(Span::up_to(Duration::from_millis(9)), |plan| &mut plan.emlsr.medium_sync),
    &SHARE,
    &Common::named("block-acks")
        .means("acknowledge what arrived on its link; or on any, as in ns-3")
        .field(Choice(&[("own-link", BlockAckScope::OwnLink), ("shared", BlockAckScope::Shared)]), |plan| {
            &mut plan.block_acks
        }),
    &Common::named("acks")
        .means("links for pure TCP ACKs; `\"idlest\"`: the client's least busy one in the latest 102.4 ms")
        .field(Own { read: ack_links, write: write_ack_links, allowed: ACKS_ALLOWED }, |plan| &mut plan.acks),
    &Common::named("map")
        .means("links for all other packets, by direction and access category (TID-to-link mapping)")
        .field(Own { read: map, write: write_map, allowed: MAP_ALLOWED }, |plan| &mut plan.map),
];

pub(crate) const SHARE: Field<MultiLinkPlan, Choice<WindowShare>> = Common::named("share")
    .means(
        "MPDUs of the common window in a PPDU: as many as fit, as in ns-3; at most the link's part \
         of the sum of rates",
    )
    .field(Choice(&[("greedy", WindowShare::Greedy), ("proportional", WindowShare::Proportional)]), |plan| {
        &mut plan.share
    });

/// `links` of `[[client]]`.
pub(crate) const CLIENT_LINKS: Key<Own<LinkSet>> = named("links")
    .means("the links of this client; with `[[wifi.link]]`")
    .described("all")
    .key(Own { read: list, write: |links| set(*links, ALL), allowed: LIST_ALLOWED });

/// `mode` of `[[client]]`.
pub(crate) const CLIENT_MODE: Field<ClientOverride, Given<Choice<LinkUse>>> =
    About::<ClientOverride>::named("mode")
        .means("what this client can do on its links at once; with `[[wifi.link]]`")
        .described("as in `[wifi.multi-link]`")
        .field(Given(MODES), |client| &mut client.link_use);

const MODES: Choice<LinkUse> = Choice(&[
    ("str", LinkUse::Simultaneous),
    ("nstr", LinkUse::SendOrReceive),
    ("mlsr", LinkUse::Fastest),
    ("emlsr", LinkUse::SingleRadio),
]);
const PADDINGS: &str = "`\"0 us\"`, `\"32 us\"`, `\"64 us\"`, `\"128 us\"`, `\"256 us\"`";
const TRANSITIONS: &str = "`\"0 us\"`, `\"16 us\"`, `\"32 us\"`, `\"64 us\"`, `\"128 us\"`, `\"256 us\"`";
const RETURNS: &str = "`\"as-transition\"`, or up to 256 us";
const AS_TRANSITION: &str = "as-transition";
const ANY: &str = "any";
const IDLEST: &str = "idlest";
const ACKS_ALLOWED: &str = "`\"any\"`, `\"idlest\"`, or numbers of links from 1";
const MAP_ALLOWED: &str =
    "`{ down = [2], up = [1] }`, one of the two, or also categories: `{ vo = [1], vi = { up = [2] } }`";
const ALL: &str = "all";
const LIST_ALLOWED: &str = "`\"all\"`, or numbers of links from 1, such as `[1]`";

fn padding(value: &Value) -> Result<Duration, Mismatch> {
    coded(value, &Emlsr::PADDINGS_US, PADDINGS)
}

fn transition(value: &Value) -> Result<Duration, Mismatch> {
    coded(value, &Emlsr::TRANSITIONS_US, TRANSITIONS)
}

/// A time that a field of 802.11be has a code for.
fn coded(value: &Value, known_us: &[u64], allowed: &str) -> Result<Duration, Mismatch> {
    let time = duration(value)?;
    if known_us.iter().any(|us| Duration::from_micros(*us) == time) {
        return Ok(time);
    }
    Err(Mismatch::new(format!("{time} has no code in 802.11be"), to_text(allowed)))
}

fn time(time: &Duration) -> String {
    format!("\"{} us\"", time.as_micros())
}

fn radio_return(value: &Value) -> Result<RadioReturn, Mismatch> {
    match value {
        Value::Text(text) if text == AS_TRANSITION => Ok(RadioReturn::WithTransition),
        other => within(Duration::ZERO..=Duration::from_micros(256), duration)(other)
            .map(RadioReturn::After)
            .map_err(|_| Mismatch::new(format!("{other} is no such time"), to_text(RETURNS))),
    }
}

fn write_return(radio_return: &RadioReturn) -> String {
    match radio_return {
        RadioReturn::WithTransition => format!("\"{AS_TRANSITION}\""),
        RadioReturn::After(after) => time(after),
    }
}

fn set(links: LinkSet, all: &str) -> String {
    if links == LinkSet::ALL {
        return format!("\"{all}\"");
    }
    let numbers = (0..MAX_LINKS as u8).filter(|link| links.contains(LinkId(*link)));
    format!("{:?}", numbers.map(|link| link + 1).collect::<Vec<_>>())
}

fn link(value: &Value) -> Result<LinkId, Mismatch> {
    integer(1..=MAX_LINKS)(value).map(|number| LinkId(number as u8 - 1))
}

fn list(value: &Value) -> Result<LinkSet, Mismatch> {
    let items = match value {
        Value::List(items) => items,
        Value::Text(text) if text == ALL => return Ok(LinkSet::ALL),
        other => return Err(Mismatch::new(format!("{other} is no list of links"), to_text(LIST_ALLOWED))),
    };
    if items.is_empty() {
        return Err(Mismatch::new("no link is in it", to_text(LIST_ALLOWED)));
    }
    items.iter().try_fold(LinkSet::NONE, |links, Node { value, .. }| Ok(links.with(link(value)?)))
}

fn ack_links(value: &Value) -> Result<AckLinks, Mismatch> {
    match value {
        Value::Text(text) if text == ANY => Ok(AckLinks::ANY),
        Value::Text(text) if text == IDLEST => Ok(AckLinks::Idlest),
        Value::Integer(_) => Ok(AckLinks::Among(LinkSet::NONE.with(link(value)?))),
        Value::List(_) => list(value).map(AckLinks::Among),
        other => Err(Mismatch::new(format!("{other} is no link"), to_text(ACKS_ALLOWED))),
    }
}

fn write_ack_links(acks: &AckLinks) -> String {
    match acks {
        AckLinks::Among(links) => set(*links, ANY),
        AckLinks::Idlest => format!("\"{IDLEST}\""),
    }
}

fn map(value: &Value) -> Result<LinkMap, Mismatch> {
    let table = table(value)?;
    let category = |name: &str| AccessCategory::ALL.into_iter().find(|category| category.name() == name);
    let (categories, common): (Vec<_>, Vec<_>) =
        table.entries.iter().partition(|(name, _)| category(name).is_some());
    let common = common.into_iter().try_fold(BothWays::same(LinkSet::ALL), direction)?;
    let mut map = LinkMap::from(common);
    for (name, node) in categories {
        let Some(category) = category(name) else { continue };
        *map.get_mut(category) = match &node.value {
            Value::Table(_) => self::table(&node.value)?.entries.iter().try_fold(common, direction)?,
            links => BothWays::same(list(links)?),
        };
    }
    Ok(map)
}

/// `links` with an entry for a direction.
fn direction(links: BothWays<LinkSet>, (way, node): (&String, &Node)) -> Result<BothWays<LinkSet>, Mismatch> {
    match way.as_str() {
        "down" => Ok(BothWays { down: list(&node.value)?, ..links }),
        "up" => Ok(BothWays { up: list(&node.value)?, ..links }),
        other => Err(Mismatch::new(
            format!("{other} is no direction and no access category"),
            to_text(MAP_ALLOWED),
        )),
    }
}

fn table(value: &Value) -> Result<&Tree, Mismatch> {
    match value {
        Value::Table(tree) => Ok(tree),
        other => {
            Err(Mismatch::new(format!("{other} is no map of directions to links"), to_text(MAP_ALLOWED)))
        }
    }
}

/// The links of best effort, and those of each category that has others.
fn write_map(map: &LinkMap) -> String {
    let ways =
        |links: BothWays<LinkSet>| format!("down = {}, up = {}", set(links.down, ALL), set(links.up, ALL));
    let common = map.get(AccessCategory::BestEffort);
    let differing = AccessCategory::ALL.into_iter().filter(|category| map.get(*category) != common);
    let differing =
        differing.map(|category| format!(", {} = {{ {} }}", category.name(), ways(map.get(category))));
    format!("{{ {}{} }}", ways(common), differing.collect::<String>())
}
