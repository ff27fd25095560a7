//! `[[wifi.link]]`: each link is `[wifi]` with the settings of its table over it.

use tacit_link::wifi::phy::Standard;
use tacit_link::wifi::{AccessCategory, LinkAcks, LinkId, LinkSet, StreamQueues, WindowShare};

use super::wifi::wifi_section;
use crate::error::InputError;
use crate::input::{Section, Tree};
use crate::keys::multi_link::{LIST, MAX_LINKS, MULTI_LINK, OF_A_LINK, SHARE, TABLE};
use crate::keys::{fill, wifi as keys};
use crate::{ApAcks, DirectPairs, MultiLinkPlan, RateChoice, Wifi};

/// Settings of `[wifi]` that say the same in two ways: a link that has one forgets the other.
const INSTEAD: [[&str; 2]; 2] = [[keys::RATE.name, keys::MCS.name], [keys::SNR.name, keys::DISTANCE.name]];

/// `[wifi]` and its links.
pub(super) fn wifi(root: &Section<'_>) -> Result<Option<Wifi>, InputError> {
    let section = root.section("wifi")?;
    let links = section.sections(LIST)?;
    let common = section.section(TABLE)?;
    let mut plan = MultiLinkPlan::default();
    fill(MULTI_LINK, &common, &mut plan)?;
    let is_said = common.is_present();
    common.finish()?;
    if links.is_empty() {
        if is_said {
            return Err(section.error(TABLE, "there is one link").allowed("with two or three [[wifi.link]]"));
        }
        return wifi_section(section);
    }
    if !(2..=MAX_LINKS as usize).contains(&links.len()) {
        let what = format!("{} of them", links.len());
        return Err(section.error(LIST, what).allowed(format!("2 or {MAX_LINKS} links, or none")));
    }
    let mut trees = Vec::new();
    for link in links {
        for key in OF_A_LINK {
            link.node(key);
        }
        let link_entries = link.entries().cloned().unwrap_or_default();
        link.finish()?;
        trees.push(over(&section, link_entries));
    }
    let read = |section: Section<'_>, tree: &Tree| -> Result<Wifi, InputError> {
        let wifi = wifi_section(section)?.expect("a section with entries is there");
        check(&root.section("wifi")?.with_entries(tree), &wifi, &plan)?;
        Ok(wifi)
    };
    let links = trees.len() as u8;
    let maps = AccessCategory::ALL.into_iter().map(|category| plan.map.get(category));
    let maps = maps.flat_map(|map| [("map", map.down), ("map", map.up)]);
    for (key, set) in maps.chain([("acks", plan.acks.possible())]) {
        if set != LinkSet::ALL && (links..MAX_LINKS as u8).any(|link| set.contains(LinkId(link))) {
            return Err(common_error(root, key, links));
        }
    }
    // The log has what the first link reads; that of others is in their tables.
    let first = read(section.with_entries(&trees[0]), &trees[0])?;
    let further = trees[1..].iter().map(|tree| read(section.with_entries(tree).unlogged(), tree));
    let further = further.collect::<Result<Vec<Wifi>, _>>()?;
    let multi_link = Some(Box::new(MultiLinkPlan { further, ..plan }));
    Ok(Some(Wifi { multi_link, ..first }))
}

/// The error that `key` of `[wifi.multi-link]` names a link that is not there.
fn common_error(root: &Section<'_>, key: &str, links: u8) -> InputError {
    let section = root.section("wifi").and_then(|wifi| wifi.section(TABLE));
    match section {
        Ok(section) => section.error(key, "no such link").allowed(format!("1 to {links}")),
        Err(error) => error,
    }
}

/// The entries of `section` without links, and those of a link over them.
fn over(section: &Section<'_>, link_entries: Tree) -> Tree {
    let mut tree = section.entries().cloned().unwrap_or_default();
    tree.entries.remove(LIST);
    tree.entries.remove(TABLE);
    for [one, other] in INSTEAD {
        for (given, forgotten) in [(one, other), (other, one)] {
            if link_entries.entries.contains_key(given) {
                tree.entries.remove(forgotten);
            }
        }
    }
    tree.entries.extend(link_entries.entries);
    tree
}

/// Refuses what does not go with several links.
fn check(section: &Section<'_>, wifi: &Wifi, plan: &MultiLinkPlan) -> Result<(), InputError> {
    let adapts = wifi.rate_control == RateChoice::Minstrel;
    let in_the_way = [
        (wifi.bss.standard != Standard::Be, keys::STANDARD.name, "has one link", "\"802.11be\""),
        (wifi.ofdma.acknowledgment.is_some(), keys::OFDMA, "is for one link here", "ofdma = \"off\""),
        (wifi.bss.stream_queues != StreamQueues::Joint, keys::STREAM_QUEUES, "are for one link", "\"joint\""),
        (
            !wifi.link_acks.are(LinkAcks::Normal),
            keys::LINK_ACKS,
            "lose the order of several links",
            "\"normal\"",
        ),
        (wifi.ap_acks != ApAcks::None, "ap-acks", "are for one link", "\"none\""),
        (wifi.direct.pairs != DirectPairs::default(), "direct-links", "are for one link", "\"none\""),
        (
            adapts && plan.share == WindowShare::Proportional,
            SHARE.name,
            "needs a rate that is known, and Minstrel changes it",
            "\"greedy\", or a fixed or an ideal rate",
        ),
    ];
    match in_the_way.into_iter().find(|(is_so, ..)| *is_so) {
        Some((_, key, what, allowed)) => Err(section.error(key, what).allowed(allowed)),
        None => Ok(()),
    }
}
