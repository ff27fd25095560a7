//! The sides that could change, and scenarios for links.

use tacit_scenario::ScenarioError;
use tacit_scenario::link::LinkWords;
use tacit_scenario::scheme::{self, Scheme, Side};

use crate::compare::DEFAULT_SCENARIO;

/// What a change of a side is, and what it costs.
pub(super) struct Change {
    pub side: Side,
    /// The side in a word or two.
    pub name: &'static str,
    pub change: &'static str,
    /// Costs that runs do not reveal.
    pub cost: &'static str,
}

/// The changes, from the smallest to the largest.
pub(super) const CHANGES: [Change; Side::ALL.len()] = [
    Change {
        side: Side::Receivers,
        name: "receivers",
        change: "receivers acknowledge less often",
        cost: "senders must pace, as bursts grow with the bytes that an ACK frees; losses at the end of a transfer are reported \
               later",
    },
    Change {
        side: Side::Senders,
        name: "senders",
        change: "senders use another congestion control",
        cost: "receivers stay as they are; beside CUBIC in one queue shares are not equal",
    },
    Change {
        side: Side::Software,
        name: "access point, drivers",
        change: "software of access point or drivers",
        cost: "filters read TCP headers, which QUIC and VPNs hide; FastACK vouches for segments that a client may still lose",
    },
    Change {
        side: Side::Transport,
        name: "both ends",
        change: "both ends use another transport",
        cost: "both ends need it: `tacit proxy` carries TCP connections of others",
    },
    Change {
        side: Side::ChipOption,
        name: "both chips",
        change: "both Wi-Fi chips, by an option of 802.11",
        cost: "reverse direction grants are optional in 802.11n and ac, and few chips have them",
    },
    Change {
        side: Side::Firmware,
        name: "firmware of both",
        change: "firmware of both Wi-Fi chips",
        cost: "no vendor sells it; it reads TCP headers, which QUIC and VPNs hide",
    },
];

/// The schemes to try that change this side.
pub(super) fn advised(side: Side) -> impl Iterator<Item = &'static Scheme> {
    scheme::ALL.iter().filter(move |scheme| scheme.is_advised && scheme.side == Some(side))
}

/// Receivers that acknowledge a fixed number of segments, and finally one that acknowledges four times per round trip.
pub(super) const FREQUENCIES: &[(Option<u32>, &str)] = &[
    (Some(1), "tcp-l1"),
    (Some(2), "tcp-l2"),
    (Some(4), "tcp-l4"),
    (Some(8), "tcp-l8"),
    (Some(16), "tcp-l16"),
    (None, "tack-lite"),
];

/// The scenario to use, and additional assignments: either the named scenario, or the one nearest to a PHY and rate,
/// which default to `802.11n` and `150Mbps`.
///
/// # Errors
/// If the PHY or rate does not exist.
pub fn scenario_of(
    scenario: Option<&str>,
    phy: Option<&str>,
    rate: Option<&str>,
) -> Result<(String, Vec<String>), ScenarioError> {
    let words = LinkWords { wifi: phy, rate, ..LinkWords::default() };
    words.scenario(scenario, DEFAULT_SCENARIO, None)
}
