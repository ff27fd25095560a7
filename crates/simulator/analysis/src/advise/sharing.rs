//! Options that come together: OFDMA of an 802.11ax access point with several clients, and how ACKs are returned with it; the use
//! of several links of 802.11be.

use serde::Serialize;
use tacit_link::wifi::phy::Standard;
use tacit_scenario::Scenario;
use tacit_scenario::scheme::{Role, Scheme};

use super::arena::{Arena, EQUAL, Lead, Order};
use super::judge::{goodput_bps, row};
use crate::compare::{Options, Row, load};

/// A setting: its name and assignments.
type Setting = (String, Vec<String>);

/// From the behaviour of current access points to behaviour that no product has.
const OFDMA: [(&str, &[&str]); 6] = [
    ("no OFDMA", &["wifi.ofdma=off", "wifi.triggers=off"]),
    ("downlink OFDMA", &["wifi.ofdma=mu-bar", "wifi.triggers=off"]),
    ("and clients are asked", &["wifi.ofdma=mu-bar", "wifi.triggers=ack-aware", "wifi.mu-edca=off"]),
    ("and contend less", &["wifi.ofdma=mu-bar", "wifi.triggers=ack-aware", "wifi.mu-edca=openwrt"]),
    ("and are silent otherwise", &["wifi.ofdma=mu-bar", "wifi.triggers=ack-aware", "wifi.mu-edca=silent"]),
    ("and answer with data", &["wifi.ofdma=cascade", "wifi.triggers=ack-aware", "wifi.mu-edca=silent"]),
];

/// The uses of `links` links: all in two shares of the window, ACKs on each, and each alone.
fn uses_of_links(links: usize) -> Vec<Setting> {
    let setting = |name: &str, set: &[String]| (name.to_owned(), set.to_vec());
    let share = |share: &str| format!("wifi.multi-link.share={share}");
    let mut all = vec![
        setting("all links, greedy shares", &[share("greedy")]),
        setting("all links, proportional shares", &[share("proportional")]),
    ];
    for link in 1..=links {
        let acks = format!("wifi.multi-link.acks={link}");
        all.push(setting(&format!("ACKs on link {link}"), &[acks]));
    }
    for link in 1..=links {
        let map = format!("wifi.multi-link.map={{ down = [{link}], up = [{link}] }}");
        all.push(setting(&format!("link {link} alone"), &[map, format!("wifi.multi-link.acks={link}")]));
    }
    all
}

/// Schemes other than stock that run with each setting.
const BESIDE_STOCK: [&str; 2] = ["tack", "hack-batch"];

/// Options that come together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sharing {
    /// "ofdma" or "links".
    #[serde(rename = "of")]
    pub kind: SharingKind,
    /// The settings, from the behaviour of current access points to behaviour that no product has.
    pub settings: Vec<SharingSetting>,
    /// Index of the setting with the highest goodput of stock clients.
    pub best: usize,
    /// Indexes of settings that the runs do not separate from the best, or that are equal to it.
    pub as_good: Vec<usize>,
}

/// What clients or flows share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SharingKind {
    /// OFDMA of an access point with several clients.
    Ofdma,
    /// Several links.
    Links,
}

/// A setting, and the goodput of clients with it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SharingSetting {
    /// Its behaviour.
    pub name: String,
    /// Assignments that result in this behaviour.
    pub set: Vec<String>,
    /// Stock clients, then TACK, then TCP/HACK.
    pub rows: Vec<Row>,
}

/// The settings for a scenario: uses of its links if it has several, OFDMA if it is 802.11ax with several clients.
fn settings(scenario: &Scenario, clients: u32) -> Option<(SharingKind, Vec<Setting>)> {
    let wifi = scenario.wifi.as_ref()?;
    if let Some(links) = &wifi.multi_link {
        return Some((SharingKind::Links, uses_of_links(links.further.len() + 1)));
    }
    let owned = |(name, set): &(&str, &[&str])| -> Setting {
        ((*name).to_owned(), set.iter().map(|&set| set.to_owned()).collect())
    };
    let has_ofdma = wifi.bss.standard == Standard::Ax && clients > 1;
    has_ofdma.then(|| (SharingKind::Ofdma, OFDMA.iter().map(owned).collect()))
}

/// One scenario per setting, if there are some and all are possible; otherwise empty.
pub(super) fn scenarios(options: &Options, scenario: &Scenario, clients: u32) -> Vec<Scenario> {
    let with = |(_, set): Setting| {
        let assignments = options.assignments.iter().cloned().chain(set).collect();
        let scenario = load(&Options { assignments, ..options.clone() }).ok()?;
        scenario.check(clients).ok().map(|()| scenario)
    };
    let all =
        settings(scenario, clients).map(|(_, all)| all.into_iter().map(with).collect::<Option<Vec<_>>>());
    all.flatten().unwrap_or_default()
}

/// The schemes that run with each setting.
pub(super) fn schemes() -> Vec<&'static Scheme> {
    let stock = Scheme::with_role(Role::Baseline);
    let beside = tacit_scenario::scheme::ALL.iter().filter(|scheme| BESIDE_STOCK.contains(&scheme.name));
    std::iter::once(stock).chain(beside).collect()
}

impl Sharing {
    /// The results of `arenas`, one per setting; `None` if empty.
    pub(super) fn from_arenas(scenario: &Scenario, clients: u32, arenas: &[Arena]) -> Option<Self> {
        let (kind, all) = settings(scenario, clients)?;
        let stock = Scheme::with_role(Role::Baseline).name;
        let rows = |arena: &Arena| -> Vec<Row> {
            std::iter::once(stock).chain(BESIDE_STOCK).filter_map(|scheme| row(arena, scheme)).collect()
        };
        let settings = all.into_iter().zip(arenas);
        let settings = settings.map(|((name, set), arena)| SharingSetting { name, set, rows: rows(arena) });
        let settings: Vec<SharingSetting> = settings.collect();
        let goodput = |place: &usize| goodput_bps(&arenas[*place].group(stock));
        let best = (0..arenas.len()).max_by(|one, other| goodput(one).total_cmp(&goodput(other)))?;
        let is_as_good = |place: &usize| {
            let lead = Lead::between(&arenas[best].group(stock), &arenas[*place].group(stock));
            *place != best && lead.is_some_and(|lead| lead.order(EQUAL) != Order::Ahead)
        };
        let as_good = (0..arenas.len()).filter(is_as_good).collect();
        Some(Self { kind, settings, best, as_good })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn options(set: &[&str]) -> Options {
        let assignments = set.iter().map(|&set| set.to_owned()).collect();
        Options { scenario: "wlan-11ax-1200".into(), assignments, ..Options::default() }
    }

    #[test]
    fn settings_are_for_several_clients_of_802_11ax() {
        let count = |options: &Options, clients| {
            let scenario = load(options).expect("a bundled scenario");
            scenarios(options, &scenario, clients).len()
        };
        assert_eq!(count(&options(&[]), 4), OFDMA.len());
        assert_eq!(count(&options(&[]), 1), 0, "one client shares with no other");
        assert_eq!(count(&Options { scenario: "wlan-11ac-866".into(), ..options(&[]) }, 4), 0);
        assert_eq!(count(&options(&["wifi.rate-control=minstrel", "wifi.distance=10 m"]), 4), OFDMA.len());
        assert_eq!(
            count(&options(&["wifi.stream-queues=independent"]), 4),
            0,
            "a user has one queue for all streams"
        );
    }

    #[test]
    fn several_links_are_used_together_for_acks_and_alone() {
        let options = Options { scenario: "wlan-11be-mlo-phone".into(), ..options(&[]) };
        let scenario = load(&options).expect("a bundled scenario");
        let (kind, all) = settings(&scenario, 1).expect("it has two links");
        let names: Vec<_> = all.iter().map(|(name, _)| name.as_str()).collect();
        let expected = [
            "all links, greedy shares",
            "all links, proportional shares",
            "ACKs on link 1",
            "ACKs on link 2",
            "link 1 alone",
            "link 2 alone",
        ];
        assert_eq!((kind, &names[..]), (SharingKind::Links, &expected[..]));
        assert_eq!(scenarios(&options, &scenario, 1).len(), expected.len(), "each is possible");
    }

    #[test]
    fn the_best_setting_is_named_with_what_is_as_good() {
        let scenario = Arc::new(load(&options(&[])).expect("a bundled scenario"));
        let arena = |mbps: [f64; 3]| {
            let mut arena = Arena::new(scenario.clone(), 4);
            arena.pretend("stock", &mbps, 1_000.0);
            arena
        };
        let arenas = [
            arena([850.0, 851.0, 849.0]),
            arena([690.0, 700.0, 680.0]),
            arena([750.0, 740.0, 760.0]),
            arena([800.0, 810.0, 790.0]),
            arena([850.0, 852.0, 851.0]),
            arena([600.0, 602.0, 601.0]),
        ];
        let sharing = Sharing::from_arenas(&scenario, 4, &arenas).expect("there are settings");
        assert_eq!((sharing.best, sharing.as_good), (4, vec![0]));
        assert_eq!(sharing.kind, SharingKind::Ofdma);
        assert_eq!(Sharing::from_arenas(&scenario, 4, &[]), None);
    }
}
