//! Options of an 802.11ax access point with several clients: OFDMA, and how ACKs are returned with it.

use serde::Serialize;
use tacit_link::wifi::phy::Standard;
use tacit_scenario::Scenario;
use tacit_scenario::scheme::{Role, Scheme};

use super::arena::{Arena, EQUAL, Lead, Order};
use super::judge::{goodput_bps, row};
use crate::compare::{Options, Row, load};

/// A setting of the access point.
struct Setting {
    name: &'static str,
    set: &'static [&'static str],
}

/// From the behaviour of current access points to behaviour that no product has.
const SETTINGS: [Setting; 6] = [
    Setting { name: "no OFDMA", set: &["wifi.ofdma=off", "wifi.triggers=off"] },
    Setting { name: "downlink OFDMA", set: &["wifi.ofdma=mu-bar", "wifi.triggers=off"] },
    Setting {
        name: "and clients are asked",
        set: &["wifi.ofdma=mu-bar", "wifi.triggers=ack-aware", "wifi.mu-edca=off"],
    },
    Setting {
        name: "and contend less",
        set: &["wifi.ofdma=mu-bar", "wifi.triggers=ack-aware", "wifi.mu-edca=openwrt"],
    },
    Setting {
        name: "and are silent otherwise",
        set: &["wifi.ofdma=mu-bar", "wifi.triggers=ack-aware", "wifi.mu-edca=silent"],
    },
    Setting {
        name: "and answer with data",
        set: &["wifi.ofdma=cascade", "wifi.triggers=ack-aware", "wifi.mu-edca=silent"],
    },
];

/// Schemes other than stock that run with each setting.
const BESIDE_STOCK: [&str; 2] = ["tack", "hack-batch"];

/// Options of the access point.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sharing {
    /// The settings, from the behaviour of current access points to behaviour that no product has.
    pub settings: Vec<SharingSetting>,
    /// Index of the setting with the highest goodput of stock clients.
    pub best: usize,
    /// Indexes of settings that the runs do not separate from the best, or that are equal to it.
    pub as_good: Vec<usize>,
}

/// A setting, and the goodput of clients with it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SharingSetting {
    /// Behaviour of the access point.
    pub name: &'static str,
    /// Assignments that result in this behaviour.
    pub set: Vec<String>,
    /// Stock clients, then TACK, then TCP/HACK.
    pub rows: Vec<Row>,
}

/// One scenario per setting, if the link is 802.11ax with several clients and allows them; otherwise empty.
pub(super) fn scenarios(options: &Options, scenario: &Scenario, clients: u32) -> Vec<Scenario> {
    let is_ax = scenario.wifi.as_ref().is_some_and(|wifi| wifi.bss.standard == Standard::Ax);
    if !is_ax || clients < 2 {
        return Vec::new();
    }
    let with = |setting: &Setting| {
        let set = setting.set.iter().map(|&set| set.to_owned());
        let assignments = options.assignments.iter().cloned().chain(set).collect();
        let scenario = load(&Options { assignments, ..options.clone() }).ok()?;
        scenario.check(clients).ok().map(|()| scenario)
    };
    SETTINGS.iter().map(with).collect::<Option<Vec<_>>>().unwrap_or_default()
}

/// The schemes that run with each setting.
pub(super) fn schemes() -> Vec<&'static Scheme> {
    let stock = Scheme::of_role(Role::Baseline);
    let beside = tacit_scenario::scheme::ALL.iter().filter(|scheme| BESIDE_STOCK.contains(&scheme.name));
    std::iter::once(stock).chain(beside).collect()
}

impl Sharing {
    /// The results of `arenas`, one per setting; `None` if empty.
    pub(super) fn of(arenas: &[Arena]) -> Option<Self> {
        let stock = Scheme::of_role(Role::Baseline).name;
        let rows = |arena: &Arena| -> Vec<Row> {
            std::iter::once(stock).chain(BESIDE_STOCK).filter_map(|scheme| row(arena, scheme)).collect()
        };
        let settings = SETTINGS.iter().zip(arenas).map(|(setting, arena)| SharingSetting {
            name: setting.name,
            set: setting.set.iter().map(|&set| set.to_owned()).collect(),
            rows: rows(arena),
        });
        let settings: Vec<SharingSetting> = settings.collect();
        let goodput = |place: &usize| goodput_bps(&arenas[*place].group(stock));
        let best = (0..arenas.len()).max_by(|one, other| goodput(one).total_cmp(&goodput(other)))?;
        let is_as_good = |place: &usize| {
            let lead = Lead::of(&arenas[best].group(stock), &arenas[*place].group(stock));
            *place != best && lead.is_some_and(|lead| lead.order(EQUAL) != Order::Ahead)
        };
        let as_good = (0..arenas.len()).filter(is_as_good).collect();
        Some(Self { settings, best, as_good })
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
        assert_eq!(count(&options(&[]), 4), SETTINGS.len());
        assert_eq!(count(&options(&[]), 1), 0, "one client shares with no other");
        assert_eq!(count(&Options { scenario: "wlan-11ac-866".into(), ..options(&[]) }, 4), 0);
        assert_eq!(count(&options(&["wifi.rate-control=minstrel", "wifi.distance=10 m"]), 4), 0);
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
        let sharing = Sharing::of(&arenas).expect("there are settings");
        assert_eq!((sharing.best, sharing.as_good), (4, vec![0]));
        assert_eq!(Sharing::of(&[]), None);
    }
}
