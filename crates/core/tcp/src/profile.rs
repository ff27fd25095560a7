//! Named configurations.

use super::ack_policy::AckPolicy;
use super::autotune::ReceiveAutotuning;
use super::config::{Config, Unstamped};
use super::prr::Recovery;
use super::rack::LossDetection;
use super::undo::Undo;
use tacit_congestion::{Algorithm, cubic};
use tacit_packet::units::Duration;

/// A named set of options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// The rules of the RFCs up to 6675, with CUBIC and HyStart: [`Config::default`].
    #[default]
    Classic,
    /// A current Linux host with its defaults, within what is modelled.
    Linux,
}

impl Profile {
    /// The configuration with this name.
    pub fn config(self) -> Config {
        match self {
            Self::Classic => Config::default(),
            Self::Linux => Config {
                congestion: tacit_congestion::Config {
                    // hystart = 1, and bictcp_update()'s 5 % per round trip before the first loss.
                    algorithm: Algorithm::Cubic(cubic::Config::LINUX),
                    // tcp_slow_start() counts all acknowledged segments, without a limit.
                    byte_counting_limit: u32::MAX,
                    ..tacit_congestion::Config::default()
                },
                ack_policy: AckPolicy::linux(),
                // tcp_recovery = 1.
                loss_detection: LossDetection::RackTlp,
                recovery: Recovery::Prr,
                // tcp_dsack = 1, tcp_frto = 2, tcp_timestamps = 1.
                dsack: true,
                unstamped: Unstamped::Taken,
                undo: Undo::All,
                // tcp_ecn = 2 accepts but never offers ECN, so two such hosts do not use it.
                ecn: false,
                receive_buffer: ReceiveAutotuning::LINUX_START,
                receive_autotuning: ReceiveAutotuning::LINUX,
                // sk_pacing_shift = 7, which mac80211 gives the sockets of a station (tx_sk_pacing_shift).
                small_queues: Some(Duration::from_millis(8)),
                // TCP_RTO_MIN.
                rto_min: Duration::from_millis(200),
                // Initial window and send buffer are already Linux's.
                ..Config::default()
            },
        }
    }
}
