//! What the settings come to that a scheme may change, or whose default depends on others.

use tacit_link::wifi::phy::{Mode, Standard};
use tacit_link::wifi::{LinkAcks, PathLoss, Protection, ReverseDirection};
use tacit_proto::tcp::{AckPolicy, DelayedAcks, Pacing, ReceiveAutotuning};
use tacit_proto::units::{Bytes, Duration};

use super::read::tcp::{
    CONTROLS, DETECTIONS, NO_COUNTING_LIMIT, POLICERS, RECOVERIES, SLOW_STARTS, UNDOS, VERSIONS,
};
use super::read::wifi::{BURSTS, PREAMBLES, SHORT_GUARD_INTERVAL, SLOTS, WIDTHS_MHZ};
use super::{ApAcks, Hop, Scenario, Transport, Wifi, WifiAckFilter, read};
use crate::input::name_of;

/// A setting as the scenario has it.
pub(super) struct Effective {
    /// Its key.
    pub key: &'static str,
    /// Its value as TOML; [`NONE`] where it has none.
    pub value: fn(&Scenario) -> String,
    /// Where it comes from if it is not given and not the default.
    pub from: fn(&Scenario) -> &'static str,
}

/// No value, and none that could be written.
const NONE: &str = "none";

/// Everything there is of these.
pub(super) fn all() -> impl Iterator<Item = &'static Effective> {
    [RUN, TCP, TRAFFIC, LINKS, WIFI].into_iter().flatten()
}

fn quoted(text: impl std::fmt::Display) -> String {
    format!("\"{text}\"")
}

fn named<T: PartialEq>(choices: &[(&'static str, T)], value: &T) -> String {
    name_of(choices, value).map_or(NONE.to_owned(), quoted)
}

/// In the largest unit that leaves no fraction.
fn size(bytes: Bytes) -> String {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10), ("B", 0)];
    let fits = |(_, shift): &(_, u32)| bytes.0.trailing_zeros() >= *shift && bytes.0 > 0;
    let (unit, shift) = units.into_iter().find(fits).unwrap_or(("B", 0));
    format!("\"{} {unit}\"", bytes.0 >> shift)
}

/// With a space before the unit, as the reference has it.
fn time(duration: Duration) -> String {
    let text = duration.to_string();
    let unit = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    format!("\"{} {}\"", &text[..unit], &text[unit..])
}

const fn changed_by_schemes(key: &'static str, value: fn(&Scenario) -> String) -> Effective {
    Effective { key, value, from: |_| "default" }
}

const fn of_profile(key: &'static str, value: fn(&Scenario) -> String) -> Effective {
    Effective { key, value, from: |_| "tcp.profile" }
}

const fn of_standard(key: &'static str, value: fn(&Scenario) -> String) -> Effective {
    Effective { key, value, from: |_| "wifi.standard" }
}

const fn of_rate(key: &'static str, value: fn(&Scenario) -> String) -> Effective {
    Effective { key, value, from: |_| "wifi.rate" }
}

const RUN: &[Effective] = &[
    Effective {
        key: "run.measure-from",
        value: |scenario| time(scenario.run.measure_from),
        // 4 s, or a quarter of a shorter run.
        from: |scenario| {
            if scenario.run.duration < Duration::from_secs(16) { "run.duration" } else { "default" }
        },
    },
    Effective {
        key: "clients.count",
        value: |scenario| scenario.clients.to_string(),
        from: |scenario| if scenario.overrides.is_empty() { "default" } else { "[[client]]" },
    },
    changed_by_schemes("hack.variant", |scenario| quoted(read::hack::variant_name(scenario.hack.variant))),
    changed_by_schemes("hack.coding", |scenario| quoted(read::hack::coding_name(scenario.hack.coding))),
];

/// Every key of `[tcp]` but the knobs of policies, which no profile changes.
const TCP: &[Effective] = &[
    of_profile("tcp.ip", |scenario| named(&VERSIONS, &scenario.tcp.ip)),
    of_profile("tcp.mtu", |scenario| size(scenario.tcp.mtu)),
    of_profile("tcp.congestion", |scenario| named(&CONTROLS, &scenario.tcp.congestion)),
    of_profile("tcp.slow-start", |scenario| named(&SLOW_STARTS, &scenario.tcp.slow_start)),
    of_profile("tcp.pacing", |scenario| match scenario.tcp.pacing {
        Pacing::Auto => quoted("auto"),
        Pacing::On => true.to_string(),
        Pacing::Off => false.to_string(),
    }),
    of_profile("tcp.bbr-policer", |scenario| named(&POLICERS, &scenario.tcp.bbr_policer)),
    of_profile("tcp.byte-counting-limit", |scenario| match scenario.tcp.byte_counting_limit {
        NO_COUNTING_LIMIT => quoted("none"),
        limit => limit.to_string(),
    }),
    of_profile("tcp.ack-policy", |scenario| quoted(read::tcp::policy_name(scenario.tcp.ack_policy))),
    changed_by_schemes("tcp.ack-every", |scenario| match scenario.tcp.ack_policy {
        AckPolicy::Delayed(delayed) => delayed.every.to_string(),
        // Only delayed ACKs count segments so.
        AckPolicy::Linux(_) | AckPolicy::Packets(_) => DelayedAcks::default().every.to_string(),
    }),
    of_profile("tcp.timestamps", |scenario| scenario.tcp.timestamps.to_string()),
    of_profile("tcp.sack", |scenario| scenario.tcp.sack.to_string()),
    of_profile("tcp.ecn", |scenario| scenario.tcp.ecn.to_string()),
    of_profile("tcp.dsack", |scenario| scenario.tcp.dsack.to_string()),
    of_profile("tcp.loss-detection", |scenario| named(&DETECTIONS, &scenario.tcp.loss_detection)),
    of_profile("tcp.recovery", |scenario| named(&RECOVERIES, &scenario.tcp.recovery)),
    of_profile("tcp.undo", |scenario| named(&UNDOS, &scenario.tcp.undo)),
    of_profile("tcp.receive-buffer", |scenario| match scenario.tcp.receive_autotuning {
        ReceiveAutotuning::Off => size(scenario.tcp.receive_buffer),
        ReceiveAutotuning::UpTo(_) => quoted("auto"),
    }),
    Effective {
        key: "tcp.receive-buffer-max",
        value: |scenario| match scenario.tcp.receive_autotuning {
            ReceiveAutotuning::Off => NONE.to_owned(),
            ReceiveAutotuning::UpTo(most) => size(most),
        },
        from: |_| "tcp.receive-buffer",
    },
    of_profile("tcp.send-buffer", |scenario| size(scenario.tcp.send_buffer)),
    of_profile("tcp.initial-window", |scenario| scenario.tcp.initial_window.to_string()),
    of_profile("tcp.rto-min", |scenario| time(scenario.tcp.rto_min)),
    of_profile("tcp.time-wait", |scenario| time(scenario.tcp.time_wait)),
];

const TRAFFIC: &[Effective] = &[
    changed_by_schemes("traffic.transport", |scenario| match scenario.traffic.transport {
        Transport::Tcp => quoted("tcp"),
        Transport::Udp => quoted("udp"),
    }),
    changed_by_schemes("traffic.application", |scenario| quoted(scenario.traffic.application.name())),
    changed_by_schemes("traffic.udp-rate", |scenario| match scenario.traffic.udp_rate {
        Some(rate) => quoted(rate),
        None => quoted("saturating"),
    }),
];

const LINKS: &[Effective] = &[changed_by_schemes("wired.ack-filter", |scenario| {
    let links = scenario.hops.iter().filter_map(|hop| match hop {
        Hop::Pipe(link) => Some(link.down.ack_filter),
        Hop::Wifi => None,
    });
    quoted(read::hops::ack_filter_name(links.into_iter().next().unwrap_or_default()))
})];

const WIFI: &[Effective] = &[
    Effective {
        key: "wifi.rate",
        value: |scenario| of_mode(scenario, |mode| quoted(mode.rate())),
        from: |_| "wifi.mcs",
    },
    of_rate("wifi.mcs", |scenario| of_table(scenario, |mode| mode.mcs.map(|mcs| mcs.to_string()))),
    of_rate("wifi.streams", |scenario| of_table(scenario, |mode| Some(mode.streams.to_string()))),
    of_rate("wifi.channel-width", |scenario| {
        of_table(scenario, |mode| Some(named(&WIDTHS_MHZ, &mode.width_mhz)))
    }),
    of_rate("wifi.guard-interval", |scenario| {
        of_table(scenario, |mode| Some(named(&SHORT_GUARD_INTERVAL, &mode.short_guard_interval)))
    }),
    Effective {
        key: "wifi.slot",
        value: |scenario| {
            of_wifi(scenario, |wifi| {
                (wifi.standard == Standard::G).then(|| named(&SLOTS, &wifi.variant.slot))
            })
        },
        from: |scenario| {
            let is_g = scenario.wifi.as_ref().is_some_and(|wifi| wifi.standard == Standard::G);
            if is_g { "wifi.b-stations" } else { "wifi.standard" }
        },
    },
    of_standard("wifi.preamble", |scenario| {
        of_wifi(scenario, |wifi| {
            wifi.standard.is_2_4_ghz().then(|| named(&PREAMBLES, &wifi.variant.preamble))
        })
    }),
    Effective {
        key: "wifi.protection",
        value: |scenario| {
            of_wifi(scenario, |wifi| Some(quoted(read::wifi::protection_name(wifi.protection))))
        },
        from: |scenario| match scenario.wifi.as_ref().map(|wifi| wifi.protection) {
            Some(Protection::RtsCts { .. }) => "wifi.rts-threshold",
            _ => "wifi.b-stations",
        },
    },
    of_standard("wifi.txop-bursts", |scenario| {
        of_wifi(scenario, |wifi| {
            wifi.standard.phy().aggregation.is_some().then(|| named(&BURSTS, &wifi.bursts))
        })
    }),
    Effective {
        key: "wifi.path-loss-exponent",
        value: |scenario| of_log_distance(scenario, |exponent, _| exponent.to_string()),
        from: |_| "wifi.path-loss",
    },
    Effective {
        key: "wifi.reference-distance",
        value: |scenario| of_log_distance(scenario, |_, metres| quoted(format!("{metres} m"))),
        from: |_| "wifi.path-loss",
    },
    changed_by_schemes("wifi.ack-filter", |scenario| {
        let filter = scenario.wifi.as_ref().map_or(WifiAckFilter::Off, |wifi| wifi.ack_filter);
        quoted(read::wifi::ack_filter_name(filter))
    }),
    changed_by_schemes("wifi.link-acks", |scenario| {
        let acks = scenario.wifi.as_ref().map_or(LinkAcks::Normal, |wifi| wifi.link_acks);
        quoted(read::wifi::link_acks_name(acks))
    }),
    changed_by_schemes("wifi.reverse-direction", |scenario| {
        let reverse = scenario.wifi.as_ref().map_or(ReverseDirection::Off, |wifi| wifi.reverse_direction);
        quoted(read::wifi::reverse_direction_name(reverse))
    }),
    changed_by_schemes("wifi.ap-acks", |scenario| {
        let acks = scenario.wifi.as_ref().map_or(ApAcks::None, |wifi| wifi.ap_acks);
        quoted(read::wifi::ap_acks_name(acks))
    }),
];

fn of_wifi(scenario: &Scenario, value: impl FnOnce(&Wifi) -> Option<String>) -> String {
    scenario.wifi.as_ref().and_then(value).unwrap_or_else(|| NONE.to_owned())
}

/// Of the mode that all clients have; ideal ones differ.
fn of_mode(scenario: &Scenario, value: impl FnOnce(&Mode) -> String) -> String {
    of_wifi(scenario, |wifi| wifi.ideal.is_none().then(|| value(&wifi.mode)))
}

/// The same, where the standard has MCS.
fn of_table(scenario: &Scenario, value: impl FnOnce(&Mode) -> Option<String>) -> String {
    let has_mcs = |mode: &Mode| mode.mcs.and_then(|_| value(mode)).unwrap_or_else(|| NONE.to_owned());
    of_mode(scenario, has_mcs)
}

/// Free space has neither exponent nor reference distance.
fn of_log_distance(scenario: &Scenario, value: impl FnOnce(f64, f64) -> String) -> String {
    of_wifi(scenario, |wifi| match wifi.propagation.path_loss {
        PathLoss::LogDistance { exponent, reference_m } => Some(value(exponent, reference_m)),
        PathLoss::Friis => None,
    })
}
