//! `[fwp]`: placeholders for data lost on a link without retransmissions, and the repair of these losses.

use tacit_between::fwp::{self, repair};
use tacit_packet::units::{Bytes, Duration, Ratio};
use tacit_sim::setup::{Download, Repairers};

/// Source of the data that replaces placeholders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepairFrom {
    /// The server, over HTTP (the paper's way).
    Server,
}

/// `[fwp]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FwpPlan {
    /// Source of the repair; `None` means clients without shims.
    pub repair: Option<RepairFrom>,
    /// The other settings of the shims.
    pub shim: fwp::Config,
    /// Losses that [`Placeholders::Tcp`](fwp::Placeholders::Tcp) expects; `None` is what the driver counted in the same round trip.
    pub expected_loss: Option<Ratio>,
    /// Number of standard deviations by which the losses of a round trip may exceed the expected ones before they count
    /// as congestion.
    pub margin: u32,
    /// Number of connections used for repair.
    pub connections: u32,
    /// Length of a request.
    pub request_size: Bytes,
    /// Length of the head of a response.
    pub head_size: Bytes,
    /// Maximum length of a requested range.
    pub range_max: Bytes,
    /// Maximum gap between two holes that are requested as one range, while there are more holes than connections.
    pub gap_max: Bytes,
    /// Age of a hole at which the download fails.
    pub deadline: Duration,
    /// Capacity for data received after holes.
    pub reorder_buffer: Bytes,
}

impl FwpPlan {
    /// The configuration of the shims; `None` for stock clients.
    pub fn shim(&self) -> Option<fwp::Config> {
        self.repair.map(|RepairFrom::Server| fwp::Config {
            margin_tenths: 10 * self.margin,
            expected_ppm: self.expected_loss.map(|loss| loss.parts_per_billion() / 1000),
            ..self.shim
        })
    }

    /// The connections that repair the data of another program; `None` without repair.
    pub fn repairers(&self) -> Option<Repairers> {
        let (download, flows) = self.download(None)?;
        Some(Repairers { connections: flows - 1, download })
    }

    /// The program that downloads `size` bytes, and its number of connections; `None` without repair.
    pub fn download(&self, size: Option<Bytes>) -> Option<(Download, u32)> {
        self.repair?;
        let usual = repair::Config::default();
        let repair = repair::Config {
            deadline: self.deadline,
            request_max: self.range_max.0,
            gap_max: usual.gap_max.min(self.gap_max.0),
            gap_busy_max: self.gap_max.0,
            held_max: self.reorder_buffer.0,
            holes_max: self.shim.most_holes as usize,
            ..usual
        };
        let download = Download { size, request: self.request_size, head: self.head_size, repair };
        Some((download, 1 + self.connections))
    }
}
