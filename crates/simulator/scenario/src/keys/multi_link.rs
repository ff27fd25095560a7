//! `[[wifi.link]]` and `[wifi.multi-link]`.

use tacit_link::wifi::{BlockAckScope, BothWays, LinkId, LinkSet, WindowShare};

use super::kind::{Choice, Own};
use super::{Field, Key, Keys, TextKey, Usual, wifi};
use crate::MultiLinkPlan;
use crate::input::{Mismatch, Node, Tree, Value, integer};
use crate::markdown::to_text;

/// Most links of a device: one in each band.
pub(crate) const MAX_LINKS: u32 = 3;
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
pub(crate) const LINKS: TextKey = TextKey {
    name: LIST,
    usual: Usual::Described("one link"),
    allowed: "two or three tables `[[wifi.link]]`",
    meaning: "802.11be: the links of all stations, each with its own `band`, rate, signal and losses; see \
              [several links](#several-links)",
};

/// `[wifi.multi-link]`, as a key of `[wifi]`.
pub(crate) const COMMON: TextKey = TextKey {
    name: TABLE,
    usual: Usual::Nothing,
    allowed: "a table",
    meaning: "what several links have in common; see [below](#wifimulti-link)",
};

type Common<K> = Field<MultiLinkPlan, K>;

/// `[wifi.multi-link]`.
pub(crate) const MULTI_LINK: Keys<MultiLinkPlan> = &[
    &SHARE,
    &Common {
        name: "block-acks",
        kind: Choice(&[("own-link", BlockAckScope::OwnLink), ("shared", BlockAckScope::Shared)]),
        usual: Usual::Field,
        meaning: "what a Block Ack acknowledges: what arrived on its link, the least that 802.11be demands and what hardware knows a SIFS \
                  later; what arrived on any link, even in a PPDU that another link is still receiving, as in ns-3",
        of: |plan| &mut plan.block_acks,
    },
    &Common {
        name: "acks",
        kind: Own { read: ack_links, write: |links| set(*links, "\"any\""), allowed: ACKS_ALLOWED },
        usual: Usual::Field,
        meaning: "the link on which stations send pure TCP ACKs; a sender may choose the link of each packet",
        of: |plan| &mut plan.acks,
    },
    &Common {
        name: "map",
        kind: Own {
            read: map,
            write: |map| {
                format!("{{ down = {}, up = {} }}", set(map.down, "\"all\""), set(map.up, "\"all\""))
            },
            allowed: MAP_ALLOWED,
        },
        usual: Usual::Field,
        meaning: "the links that carry all other packets from the access point and to it (TID-to-link mapping). Not every driver can \
                  negotiate two different sets: Intel's offers one for both directions",
        of: |plan| &mut plan.map,
    },
];

pub(crate) const SHARE: Common<Choice<WindowShare>> = Common {
    name: "share",
    kind: Choice(&[("greedy", WindowShare::Greedy), ("proportional", WindowShare::Proportional)]),
    usual: Usual::Field,
    meaning: "how many MPDUs of the common Block Ack window a PPDU takes: as many as fit, as in ns-3; at most the window's part \
              that is the link's part of the sum of rates",
    of: |plan| &mut plan.share,
};

/// `links` of `[[client]]`.
pub(crate) const CLIENT_LINKS: Key<Own<LinkSet>> = Key {
    name: "links",
    kind: Own { read: list, write: |links| set(*links, "\"all\""), allowed: LIST_ALLOWED },
    usual: Usual::Described("all"),
    meaning: "the links of this client, such as one for an older device; with `[[wifi.link]]`",
};

const ACKS_ALLOWED: &str = "`\"any\"`, or the number of a link from 1";
const MAP_ALLOWED: &str = "`{ down = [2], up = [1] }`, or one of the two";
const LIST_ALLOWED: &str = "numbers of links from 1, such as `[1]`";

fn set(links: LinkSet, all: &str) -> String {
    if links == LinkSet::ALL {
        return all.to_owned();
    }
    let numbers = (0..MAX_LINKS as u8).filter(|link| links.contains(LinkId(*link)));
    format!("{:?}", numbers.map(|link| link + 1).collect::<Vec<_>>())
}

fn link(value: &Value) -> Result<LinkId, Mismatch> {
    integer(1..=MAX_LINKS)(value).map(|number| LinkId(number as u8 - 1))
}

fn list(value: &Value) -> Result<LinkSet, Mismatch> {
    let Value::List(items) = value else {
        return Err(Mismatch::new(format!("{value} is no list of links"), to_text(LIST_ALLOWED)));
    };
    if items.is_empty() {
        return Err(Mismatch::new("no link is in it", to_text(LIST_ALLOWED)));
    }
    items.iter().try_fold(LinkSet::NONE, |links, Node { value, .. }| Ok(links.with(link(value)?)))
}

fn ack_links(value: &Value) -> Result<LinkSet, Mismatch> {
    match value {
        Value::Text(text) if text == "any" => Ok(LinkSet::ALL),
        Value::Integer(_) => Ok(LinkSet::NONE.with(link(value)?)),
        Value::List(_) => list(value),
        other => Err(Mismatch::new(format!("{other} is no link"), to_text(ACKS_ALLOWED))),
    }
}

fn map(value: &Value) -> Result<BothWays<LinkSet>, Mismatch> {
    let Value::Table(Tree { entries }) = value else {
        return Err(Mismatch::new(format!("{value} is no map of directions to links"), to_text(MAP_ALLOWED)));
    };
    let mut map = BothWays::of(LinkSet::ALL);
    for (way, node) in entries {
        match way.as_str() {
            "down" => map.down = list(&node.value)?,
            "up" => map.up = list(&node.value)?,
            other => return Err(Mismatch::new(format!("{other} is no direction"), to_text(MAP_ALLOWED))),
        }
    }
    Ok(map)
}
