//! Effective values of the settings that a scheme may change, or whose default depends on others.

use tacit_congestion::{Algorithm, bbr};
use tacit_link::wifi::phy::{HeOptions, Mode, Standard};
use tacit_link::wifi::{PathLoss, Protection, ReverseDirection};
use tacit_packet::units::Duration;
use tacit_tcp::{AckPolicy, ReceiveAutotuning};

use super::{Hop, Scenario, Wifi};
use crate::keys::kind::{Kind, NONE};
use crate::keys::tcp::ReceiveBuffer;
use crate::keys::{self, Key, links, tcp, wifi};

/// A setting with its effective value.
pub(super) struct Effective {
    /// Its key.
    pub key: &'static str,
    /// Its value as TOML, for keys that are not stored in a single field; [`NONE`] if it has no value.
    pub value: fn(&Scenario) -> String,
    /// Its origin, if it is neither given nor the default.
    pub from: Origin,
}

/// Settings that are not stored in a single field, or whose default depends on others.
fn all() -> impl Iterator<Item = &'static Effective> {
    [RUN, TCP, LINKS, WIFI, HACK].into_iter().flatten()
}

/// The value of `key` in `scenario`, and its origin if it is neither given nor the default. Returns `None` for keys
/// whose value is always the given one or the default.
pub(super) fn value_of(key: &str, scenario: &Scenario) -> Option<(String, &'static str)> {
    match all().find(|effective| effective.key == key) {
        Some(effective) => Some(((effective.value)(scenario), (effective.from)(scenario))),
        None => {
            let from = match key.split('.').next() {
                Some("tcp") => "tcp.profile",
                Some("wifi") => "wifi.standard",
                _ => "default",
            };
            keys::value(key, scenario).map(|value| (value, from))
        }
    }
}

/// The value in the notation of `key`; [`NONE`] for no value.
fn written<K: Kind>(key: &Key<K>, value: Option<&K::Value>) -> String {
    value.map_or_else(|| NONE.to_owned(), |value| key.kind.write(value))
}

/// A setting whose value comes from the setting `from`, or from schemes where that is `default`.
const fn effective(key: &'static str, from: Origin, value: fn(&Scenario) -> String) -> Effective {
    Effective { key, value, from }
}

type Origin = fn(&Scenario) -> &'static str;

const SCHEMES: Origin = |_| "default";
const PROFILE: Origin = |_| "tcp.profile";
const STANDARD: Origin = |_| "wifi.standard";
const RATE: Origin = |_| "wifi.rate";
const PATH_LOSS: Origin = |_| "wifi.path-loss";

const RUN: &[Effective] = &[
    Effective {
        key: "run.measure-from",
        value: |scenario| keys::value("run.measure-from", scenario).unwrap_or_default(),
        // 4 s, or a quarter of the run if it is shorter.
        from: |scenario| {
            if scenario.run.duration < Duration::from_secs(16) { "run.duration" } else { "default" }
        },
    },
    Effective {
        key: "clients.count",
        value: |scenario| scenario.clients.to_string(),
        from: |scenario| if scenario.overrides.is_empty() { "default" } else { "[[client]]" },
    },
];

const TCP: &[Effective] = &[
    effective("tcp.ack-policy", PROFILE, |scenario| tcp::policy_text(scenario.tcp.ack_policy)),
    effective("tcp.ack-every", SCHEMES, |scenario| match scenario.tcp.ack_policy {
        AckPolicy::Delayed(delayed) => delayed.every.to_string(),
        // Only delayed ACKs are counted in segments.
        AckPolicy::Linux(_) | AckPolicy::Packets(_) | AckPolicy::External(_) => {
            scenario.acks.delayed.every.to_string()
        }
    }),
    effective("tcp.congestion", PROFILE, |scenario| tcp::control_text(scenario.tcp.congestion.algorithm)),
    effective("tcp.slow-start", PROFILE, |scenario| {
        written(&tcp::SLOW_START, Some(&scenario.cubic.slow_start))
    }),
    effective("tcp.bbr-policer", PROFILE, |scenario| match scenario.tcp.congestion.algorithm {
        Algorithm::Bbr(bbr) => written(&tcp::BBR_POLICER, Some(&bbr.policer)),
        _ => written(&tcp::BBR_POLICER, Some(&bbr::Config::USUAL.policer)),
    }),
    effective("tcp.rre-target", PROFILE, |scenario| written(&tcp::RRE_TARGET, Some(&scenario.rre.target))),
    effective("tcp.rre-memory", PROFILE, |scenario| written(&tcp::RRE_MEMORY, Some(&scenario.rre.memory))),
    effective("tcp.receive-buffer", PROFILE, |scenario| {
        let size = match scenario.tcp.receive_autotuning {
            ReceiveAutotuning::Off => ReceiveBuffer::Size(scenario.tcp.receive_buffer),
            ReceiveAutotuning::UpTo(_) => ReceiveBuffer::Auto,
            ReceiveAutotuning::Rsfc(_) => ReceiveBuffer::Rsfc,
        };
        tcp::RECEIVE_BUFFER.kind.write(&size)
    }),
    Effective {
        key: "tcp.receive-buffer-max",
        value: |scenario| match scenario.tcp.receive_autotuning {
            ReceiveAutotuning::Off => NONE.to_owned(),
            ReceiveAutotuning::UpTo(most) | ReceiveAutotuning::Rsfc(most) => {
                written(&tcp::RECEIVE_BUFFER_MAX, Some(&most))
            }
        },
        from: |_| "tcp.receive-buffer",
    },
];

const LINKS: &[Effective] = &[effective("wired.ack-filter", SCHEMES, |scenario| {
    let links = scenario.hops.iter().filter_map(|hop| match hop {
        Hop::Pipe(link) => Some(link.down.ack_filter),
        Hop::Wifi => None,
    });
    links::ack_filter_text(links.into_iter().next().unwrap_or_default())
})];

const WIFI: &[Effective] = &[
    effective(
        "wifi.rate",
        |_| "wifi.mcs",
        |scenario| of_mode(scenario, |mode| Some(format!("\"{}\"", mode.rate()))),
    ),
    effective("wifi.mcs", RATE, |scenario| of_table(scenario, |mode| mode.mcs.map(|mcs| mcs.to_string()))),
    effective("wifi.streams", RATE, |scenario| of_table(scenario, |mode| Some(mode.streams.to_string()))),
    effective("wifi.channel-width", RATE, |scenario| {
        of_table(scenario, |mode| Some(written(&wifi::CHANNEL_WIDTH, Some(&mode.width_mhz))))
    }),
    effective("wifi.guard-interval", RATE, |scenario| {
        of_table(scenario, |mode| Some(written(&wifi::GUARD_INTERVAL, Some(&mode.guard_interval))))
    }),
    Effective {
        key: "wifi.slot",
        value: |scenario| {
            written(&wifi::SLOT, scenario.wifi.as_ref().filter(has_slots).map(|wifi| &wifi.bss.variant.slot))
        },
        from: |scenario| {
            let chooses = scenario.wifi.as_ref().is_some_and(|wifi| has_slots(&wifi));
            if chooses { "wifi.b-stations" } else { "wifi.standard" }
        },
    },
    effective("wifi.band", STANDARD, |scenario| {
        of_wifi(scenario, |wifi| Some(written(&wifi::BAND, Some(&wifi.bss.variant.band))))
    }),
    effective("wifi.preamble", STANDARD, |scenario| {
        let has_choice = |wifi: &&Wifi| wifi.bss.variant.is_2_4_ghz();
        let wifi = scenario.wifi.as_ref().filter(has_choice);
        written(&wifi::PREAMBLE, wifi.map(|wifi| &wifi.bss.variant.preamble))
    }),
    // If unset, it depends on the guard interval of each mode.
    effective("wifi.ltf", STANDARD, |scenario| {
        written(&wifi::LTF, scenario.wifi.as_ref().and_then(|wifi| wifi.bss.variant.he.training.as_ref()))
    }),
    effective("wifi.packet-extension", STANDARD, |scenario| {
        of_he(scenario, |options| written(&wifi::PACKET_EXTENSION, Some(&options.extension)))
    }),
    effective("wifi.coding", STANDARD, |scenario| {
        of_he(scenario, |options| written(&wifi::CODING, Some(&options.coding)))
    }),
    Effective {
        key: "wifi.protection",
        value: |scenario| {
            of_wifi(scenario, |wifi| {
                let without_threshold = match wifi.bss.protection {
                    Protection::None => Protection::None,
                    Protection::CtsToSelf { .. } => Protection::CtsToSelf { above: 0 },
                    Protection::RtsCts { .. } => Protection::RtsCts { above: 0 },
                };
                Some(written(&wifi::PROTECTION, Some(&without_threshold)))
            })
        },
        from: |scenario| match scenario.wifi.as_ref().map(|wifi| wifi.bss.protection) {
            Some(Protection::RtsCts { .. }) => "wifi.rts-threshold",
            _ => "wifi.b-stations",
        },
    },
    effective("wifi.txop-bursts", STANDARD, |scenario| {
        of_wifi(scenario, |wifi| {
            let has_txops = wifi.bss.standard.phy().aggregation.is_some();
            has_txops.then(|| keys::value("wifi.txop-bursts", scenario)).flatten()
        })
    }),
    effective("wifi.path-loss-exponent", PATH_LOSS, |scenario| {
        of_log_distance(scenario, |exponent, _| written(&wifi::PATH_LOSS_EXPONENT, Some(&exponent)))
    }),
    effective("wifi.reference-distance", PATH_LOSS, |scenario| {
        of_log_distance(scenario, |_, metres| written(&wifi::REFERENCE_DISTANCE, Some(&metres)))
    }),
    effective("wifi.reverse-direction", SCHEMES, |scenario| {
        let reverse = scenario.wifi.as_ref().map_or(ReverseDirection::Off, |wifi| wifi.bss.reverse_direction);
        written(&wifi::REVERSE_DIRECTION, Some(&(reverse != ReverseDirection::Off)))
    }),
];

/// Whether the standard has two slot times.
fn has_slots(wifi: &&Wifi) -> bool {
    wifi.bss.variant.is_2_4_ghz() && wifi.bss.standard != Standard::B
}

/// A value from the options of HE and EHT PPDUs.
fn of_he(scenario: &Scenario, value: impl FnOnce(&HeOptions) -> String) -> String {
    of_wifi(scenario, |wifi| wifi.mode.he_options().as_ref().map(value))
}

fn of_wifi(scenario: &Scenario, value: impl FnOnce(&Wifi) -> Option<String>) -> String {
    scenario.wifi.as_ref().and_then(value).unwrap_or_else(|| NONE.to_owned())
}

/// A value of the mode shared by all clients; ideal modes differ between clients.
fn of_mode(scenario: &Scenario, value: impl FnOnce(&Mode) -> Option<String>) -> String {
    of_wifi(scenario, |wifi| if wifi.follows_signal() { None } else { value(&wifi.mode) })
}

/// A value of the mode shared by all clients, if the standard has an MCS table.
fn of_table(scenario: &Scenario, value: impl FnOnce(&Mode) -> Option<String>) -> String {
    of_mode(scenario, |mode| mode.mcs.and_then(|_| value(mode)))
}

/// A value of the log-distance model. Free space has neither an exponent nor a reference distance.
fn of_log_distance(scenario: &Scenario, value: impl FnOnce(f64, f64) -> String) -> String {
    of_wifi(scenario, |wifi| match wifi.propagation.path_loss {
        PathLoss::LogDistance { exponent, reference_m } => Some(value(exponent, reference_m)),
        PathLoss::Friis => None,
    })
}

const HACK: &[Effective] = &[
    effective("hack.rule", STANDARD, |scenario| keys::value("hack.rule", scenario).unwrap_or_default()),
    effective(
        "hack.coding",
        |_| "hack.rule",
        |scenario| keys::value("hack.coding", scenario).unwrap_or_default(),
    ),
];
