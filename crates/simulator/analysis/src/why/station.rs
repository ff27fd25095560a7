//! The account of a single station. It is idle, or its packets wait for channel access, or they are being transmitted.
//! The latter two are split by their result: goodput, other bytes, or nothing.

use tacit_runs::record::RunSummary;

use super::{Share, Use};

/// A use of a station's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StationUse {
    /// Waiting for channel access that resulted in goodput.
    Wait,
    /// Exchanges that resulted in goodput.
    Serve,
    /// Waiting and exchanges for bytes that are not goodput: headers, repair, and duplicates.
    Overhead,
    /// Waiting and exchanges for packets that did not arrive.
    Lost,
    /// The rest.
    Idle,
}

impl StationUse {
    /// Its fraction of the station's time in a run.
    pub fn share(self, run: &RunSummary) -> f64 {
        let share = |name| run.metric(name).unwrap_or(0.0);
        let (waiting, served) = (share("first_host_waiting_share"), share("first_host_served_share"));
        let lost = share("first_host_lost_share");
        // Bytes that arrived before the window may count as goodput within it.
        let useful = share("first_host_useful_share").min(1.0);
        match self {
            Self::Wait => waiting * (1.0 - lost) * useful,
            Self::Serve => served * (1.0 - lost) * useful,
            Self::Overhead => (waiting + served) * (1.0 - lost) * (1.0 - useful),
            Self::Lost => (waiting + served) * lost,
            Self::Idle => share("first_host_idle_share"),
        }
    }
}

/// The uses of a station's time, ending with idle time.
pub(super) fn uses() -> Vec<Use> {
    let part = |name, share, evidence| Use { name, share: Share::Station(share), evidence };
    vec![
        part(
            "waiting for its turn on the channel",
            StationUse::Wait,
            &["first_host_packets_per_ppdu", "accesses_per_s", "other_hosts_goodput_bps"],
        ),
        part("its turns on the channel", StationUse::Serve, &["first_host_packets_per_ppdu"]),
        part(
            "headers, repair and duplicates",
            StationUse::Overhead,
            &[
                "first_host_useful_share",
                "tcp_retransmitted_share",
                "fwp_placeholder_share",
                "repair_requests",
            ],
        ),
        part(
            "packets that did not arrive",
            StationUse::Lost,
            &["first_host_lost_share", "missed_link_acks_per_s"],
        ),
        part(
            "nothing waited for the station",
            StationUse::Idle,
            &[
                "first_host_idle_share",
                "queue_drops_per_s",
                "tcp_fast_recoveries",
                "tcp_rtos",
                "fwp_overdue_holes",
            ],
        ),
    ]
}
