//! Configuration of the BBR of TACK.

use super::super::parts::RTT_MIN_LIFETIME;
use tacit_packet::units::Duration;

/// Bound on the bytes in flight beside twice the bandwidth-delay product and the arrivals of a TACK interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bounds {
    /// Nothing else. In the first round of a recovery packets are conserved, as in version 1.
    Product,
    /// Losses: of more than 2 % in a round beside those that the path makes at any rate. After them no more than 0.7 of the
    /// former bytes in flight are allowed, and a product at least (after BBRv3, draft-ietf-ccwg-bbr). Other losses change
    /// nothing.
    Loss,
}

/// When the gain cycle asks for more than the path is known to carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probes {
    /// Once a cycle.
    OncePerCycle,
    /// And again at once, when the last time found an eighth more and has been drained.
    WhileTheyFind,
}

/// How long the gain cycle drains the queue of its probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drains {
    /// As long as the probe lasted.
    AsLongAsProbes,
    /// And on until no more than a bandwidth-delay product is in flight (after BBRv3), three times as long at most: the queue
    /// that an estimate somewhat too high has built in a cycle goes too.
    UntilEmpty,
}

/// How the smallest round-trip time is looked for when it has not been seen for long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeRtt {
    /// How long that is.
    pub after: Duration,
    /// How much of the rate, and of the bandwidth-delay product in flight, is kept up meanwhile, in 256ths. 0: a packet
    /// per TACK interval, and four in flight.
    pub share: u16,
}

impl ProbeRtt {
    /// One packet per TACK interval after ten seconds (successor paper section VI-D).
    pub const PAPER: Self = Self { after: RTT_MIN_LIFETIME, share: 0 };
    /// Three quarters of the rate each 2.5 s (its tuning for Miracast).
    pub const MIRACAST: Self = Self { after: Duration::from_millis(2_500), share: 192 };
    /// Half of it, as BBRv3 does, after ten seconds.
    pub const USUAL: Self = Self { after: RTT_MIN_LIFETIME, share: 128 };
}

/// Options of the BBR of TACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TackConfig {
    /// TACK intervals in a cycle of gains, 8 at least: four that ask for a quarter more, four that drain it, and the rest.
    pub cycle: u8,
    /// TACK intervals with reports for which a rate is remembered, 1 to 40.
    pub filter: u8,
    /// When the cycle probes.
    pub probes: Probes,
    /// And how long it drains.
    pub drains: Drains,
    /// How the round-trip time is probed; `None` for not at all.
    pub probe_rtt: Option<ProbeRtt>,
    /// The bound on bytes in flight.
    pub bounds: Bounds,
}

impl TackConfig {
    /// As the successor paper has it (section VI-D).
    pub const PAPER: Self = Self {
        cycle: 32,
        filter: 40,
        probes: Probes::OncePerCycle,
        drains: Drains::AsLongAsProbes,
        probe_rtt: Some(ProbeRtt::PAPER),
        bounds: Bounds::Product,
    };
    /// Keeps goodput up over Wi-Fi and behind losses too.
    pub const USUAL: Self = Self {
        probes: Probes::WhileTheyFind,
        drains: Drains::UntilEmpty,
        probe_rtt: Some(ProbeRtt::USUAL),
        bounds: Bounds::Loss,
        ..Self::PAPER
    };
    /// The successor paper's tuning for Miracast, which follows a rate twice as fast.
    pub const MIRACAST: Self =
        Self { cycle: 16, filter: 20, probe_rtt: Some(ProbeRtt::MIRACAST), ..Self::USUAL };
}
