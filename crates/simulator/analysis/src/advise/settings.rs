//! Recommendations as settings that people can type.

use tacit_packet::units::Duration;
use tacit_scenario::Scenario;
use tacit_scenario::scheme::{Scheme, Side};
use tacit_tcp::{AckPolicy, DelayLimit, PacketLimit, Reordering};

/// How a program asks for an ACK frequency, or sets its own.
struct Stack {
    name: &'static str,
    /// The option; what there is instead, where there is none.
    option: &'static str,
    /// The file that has it, from the root of the stack's repository, and its name there.
    source: &'static str,
}

/// Stacks of QUIC, as of November 2026. `docs/use/quic-stacks.md` has a section for each.
const STACKS: [Stack; 12] = [
    Stack {
        name: "quinn",
        option: "TransportConfig::ack_frequency_config: ack_eliciting_threshold, max_ack_delay, reordering_threshold",
        source: "quinn-proto/src/config/transport.rs AckFrequencyConfig",
    },
    Stack {
        name: "noq",
        option: "TransportConfig::ack_frequency_config, as in quinn; its controllers hear of the request",
        source: "noq-proto/src/congestion.rs on_ack_frequency_update",
    },
    Stack {
        name: "mvfst",
        option: "TransportSettings: rxPacketsBeforeAckBeforeInit, rxPacketsBeforeAckAfterInit",
        source: "quic/state/TransportSettings.h rxPacketsBeforeAckAfterInit",
    },
    Stack {
        name: "msquic",
        option: "on by default: a sender that its batches limit asks for an ACK per batch; QUIC_SETTINGS: MaxAckDelayMs",
        source: "src/core/send.c QuicConnUpdatePeerPacketTolerance",
    },
    Stack {
        name: "tquic",
        option: "Config::set_ack_eliciting_threshold, of the receiver itself; set_max_ack_delay, of its peer",
        source: "src/lib.rs set_ack_eliciting_threshold",
    },
    Stack {
        name: "s2n-quic",
        option: "provider::limits: with_max_ack_delay; an ACK per 10 packets is fixed",
        source: "quic/s2n-quic-transport/src/ack/ack_manager.rs packet_tolerance",
    },
    Stack {
        name: "lsquic",
        option: "es_delayed_acks = 1: it asks its peer for 0.8 to 2.5 ACKs a round trip",
        source: "include/lsquic.h es_delayed_acks",
    },
    Stack {
        name: "picoquic",
        option: "on by default: a quarter of a round trip's packets, up to 32 or 64, or RTT_min/4",
        source: "picoquic/frames.c picoquic_compute_ack_gap_and_delay",
    },
    Stack {
        name: "neqo",
        option: "on by default: 4 ACKs a round trip (ConnectionParameters::ack_ratio)",
        source: "neqo-transport/src/connection/params.rs ack_ratio",
    },
    Stack {
        name: "quiche (Google)",
        option: "on by default: after 100 packets every 10, or a quarter of the round trip",
        source: "quiche/quic/core/quic_constants.h kMaxRetransmittablePacketsBeforeAck",
    },
    Stack {
        name: "quic-go",
        option: "none: an ACK per 2 packets",
        source: "internal/ackhandler/received_packet_tracker.go packetsBeforeAck",
    },
    Stack {
        name: "quiche (Cloudflare)",
        option: "none: an ACK per packet",
        source: "github.com/cloudflare/quiche/issues/1538",
    },
];

/// The options of QUIC stacks, one line each, with their sources.
pub(super) fn stacks() -> impl Iterator<Item = String> {
    STACKS.iter().map(|Stack { name, option, source }| format!("{name}: {option} ({source})"))
}

/// What to type for `scheme` in `scenario`.
pub(super) fn commands(scheme: &Scheme, scenario: &Scenario) -> Vec<String> {
    match (scheme.side, scheme.name) {
        (Some(Side::Receivers), "thin") => vec!["tacit thin DEVICE, on the receivers".to_owned()],
        (Some(Side::Receivers), _) => receiver(scheme.applied_to(scenario).tcp.ack_policy, scenario),
        (Some(Side::Senders), "rre") => vec!["tacit rre run -- COMMAND, on the sender".to_owned()],
        (Some(Side::Senders), name) => {
            vec![format!("sysctl net.ipv4.tcp_congestion_control={name}, on the sender")]
        }
        (Some(Side::Software), "cake-ack-filter") => {
            vec!["tc qdisc replace dev DEV root cake ack-filter, on the clients".to_owned()]
        }
        (Some(Side::Software), "driver-hold") => vec![
            "bcmdhd for PCIe: dhd -i wlan0 tcpack_suppress 3 (TCPACK_SUP_HOLD); ath9k, mt76 and iwlwifi have no \
             such option"
                .to_owned(),
        ],
        (Some(Side::Software), "driver-replace") => {
            vec!["bcmdhd for SDIO: dhd -i wlan0 tcpack_suppress 1 (TCPACK_SUP_REPLACE), on the clients".to_owned()]
        }
        (Some(Side::Software), _) => vec!["no product for sale has it".to_owned()],
        (Some(Side::Transport), _) => vec!["tacit proxy and tacit serve, at the two ends".to_owned()],
        (Some(Side::ChipOption | Side::Firmware), _) | (None, _) => Vec::new(),
    }
}

/// A receiver's policy as the three numbers of QUIC's extension, and that it is simulated with a TCP sender.
fn receiver(policy: AckPolicy, scenario: &Scenario) -> Vec<String> {
    let ms = |time: Duration| format!("{} ms", time.as_micros() as f64 / 1e3);
    let quarter = scenario.round_trip() / 4;
    let (threshold, delay, reordering) = match policy {
        AckPolicy::Delayed(delayed) => (delayed.every.to_string(), ms(delayed.delay), 1),
        AckPolicy::Packets(packets) => {
            let threshold = match packets.packets {
                PacketLimit::Every(packets) => packets.to_string(),
                PacketLimit::OnceBursts { asked, .. } => asked.to_string(),
                PacketLimit::Unbounded => "the largest".to_owned(),
                PacketLimit::QuarterWindow { least, most } => {
                    format!("a quarter of the window, {least} to {most}")
                }
                PacketLimit::QuarterWindowByRttMin { below, shorter, longer } => {
                    let most = if scenario.round_trip() < below { shorter } else { longer };
                    format!("a quarter of the window, 2 to {most}")
                }
            };
            let delay = match packets.delay {
                DelayLimit::Fixed(delay) => delay,
                DelayLimit::QuarterRttMin { least, most } | DelayLimit::QuarterRtt { least, most } => {
                    quarter.max(least).min(most)
                }
            };
            let reordering = match packets.reordering {
                Reordering::Immediate | Reordering::FirstAboveGap(_) => 1,
                Reordering::Threshold(threshold) => threshold,
            };
            (threshold, ms(delay), reordering)
        }
        AckPolicy::Linux(_) | AckPolicy::External(_) => return Vec::new(),
    };
    vec![
        format!(
            "ACK_FREQUENCY: threshold {threshold}, max ack delay {delay}, reordering threshold {reordering}"
        ),
        "of TCP no setting asks a receiver for it; the sender in these runs is a TCP".to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use tacit_scenario::scheme;

    use super::*;

    fn typed(name: &str, set: &[&str]) -> Vec<String> {
        let set: Vec<String> = set.iter().map(|&text| text.to_owned()).collect();
        let scenario = Scenario::load("wlan-11n-150", &set).expect("a bundled scenario");
        commands(scheme::find("", name).expect("a scheme"), &scenario)
    }

    #[test]
    fn receivers_are_three_numbers_of_the_extension() {
        let frequency = |name, set| typed(name, set).remove(0);
        assert_eq!(
            frequency("quic-ackfreq", &["tcp.ackfreq-packets=50", "tcp.ackfreq-delay=7 ms"]),
            "ACK_FREQUENCY: threshold 50, max ack delay 7 ms, reordering threshold 3"
        );
        let far = ["wired.delay=20 ms"];
        assert_eq!(
            frequency("tack-lite", &far),
            "ACK_FREQUENCY: threshold the largest, max ack delay 10 ms, reordering threshold 3"
        );
        assert_eq!(
            frequency("picoquic", &far),
            "ACK_FREQUENCY: threshold a quarter of the window, 2 to 64, max ack delay 10 ms, reordering threshold 1"
        );
        assert!(frequency("tcp-l8", &[]).contains("threshold 8, max ack delay 40 ms"));
        assert!(typed("chrome", &[])[1].contains("the sender in these runs is a TCP"));
    }

    #[test]
    fn every_stack_has_a_section_with_its_option_and_source() {
        let page = include_str!("../../../../../docs/use/quic-stacks.md");
        for Stack { name, option, source } in &STACKS {
            let named =
                source.split_once(' ').is_some_and(|(file, name)| file.contains('/') && !name.is_empty());
            assert!(named || source.starts_with("github.com/"), "{name}: {source}");
            let section = format!("## {name}\n\n* To set: {option}.\n* Source: `{source}`.\n");
            let (_, rest) = page.split_once(&section).unwrap_or_else(|| panic!("the page lacks\n{section}"));
            let lines = rest.split("\n## ").next().map_or(0, |rest| rest.trim().lines().count());
            assert!((1..=8).contains(&lines), "{name}: {lines} lines, and ten with those two are allowed");
        }
        let page = include_str!("../../../../../docs/use/schemes.md");
        let mut drivers = ["driver-hold", "driver-replace"].into_iter().flat_map(|name| typed(name, &[]));
        // The modes of `enum` in bcmdhd's dhd.h; the chips, `dhd_tcpack_suppress_set` of its dhd_ip.c.
        assert!(drivers.all(|set| {
            page.contains(&format!("`{}`", &set[set.find("dhd -i").unwrap()..set.find(" (TCP").unwrap()]))
        }));
    }

    #[test]
    fn every_advised_scheme_that_needs_no_chips_has_something_to_type() {
        for scheme in scheme::ALL.iter().filter(|scheme| scheme.is_advised) {
            assert_eq!(typed(scheme.name, &[]).is_empty(), scheme.needs_chips(), "{}", scheme.name);
        }
        assert_eq!(typed("bbr", &[]), ["sysctl net.ipv4.tcp_congestion_control=bbr, on the sender"]);
    }
}
