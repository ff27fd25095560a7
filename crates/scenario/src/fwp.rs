//! `[fwp]`: placeholders for the losses of a link without retransmissions, and their repair.

use tacit_proto::fwp::{self, Placeholders, repair};
use tacit_proto::units::{Bytes, Duration};
use tacit_sim::setup::{Download, Repairers};

/// Source of the bytes behind placeholders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepairFrom {
    /// The server, over HTTP (the paper's way).
    Server,
}

/// `[fwp]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FwpPlan {
    /// Source of the repair; `None` leaves clients without shims.
    pub repair: Option<RepairFrom>,
    /// How the shim recognises holes of the link.
    pub placeholders: Placeholders,
    /// How long a hole may be due to reordering.
    pub settle: Duration,
    /// Standard deviations by which losses may exceed the expected ones.
    pub margin: u32,
    /// Percent of a round trip after which a hole left to TCP is filled; 0 never.
    pub overdue: u32,
    /// Most unrepaired holes of a flow.
    pub holes_max: u32,
    /// Most bytes in those.
    pub hole_bytes_max: Bytes,
    /// After so long a hole no longer counts.
    pub patience: Duration,
    /// The round trip of a flow that has shown none.
    pub round_trip: Duration,
    /// Connections that repair.
    pub connections: u32,
    /// Bytes of a request.
    pub request_size: Bytes,
    /// Bytes of the head of an answer.
    pub head_size: Bytes,
    /// Most bytes of a range.
    pub range_max: Bytes,
    /// Bytes between holes that are asked for at once while requests are short.
    pub gap_max: Bytes,
    /// How long a hole may stay open.
    pub deadline: Duration,
    /// Bytes that may wait behind holes.
    pub reorder_buffer: Bytes,
}

impl FwpPlan {
    /// The shims' configuration; `None` for stock clients.
    pub fn shim(&self) -> Option<fwp::Config> {
        self.repair.map(|RepairFrom::Server| fwp::Config {
            settle: self.settle,
            margin_tenths: 10 * self.margin,
            overdue_percent: self.overdue,
            most_holes: self.holes_max,
            most_hole_bytes: self.hole_bytes_max,
            patience: self.patience,
            round_trip: self.round_trip,
            placeholders: self.placeholders,
            ..fwp::Config::USUAL
        })
    }

    /// The connections that repair another program's; `None` where nothing is repaired.
    pub fn repairers(&self) -> Option<Repairers> {
        let (download, flows) = self.download(None)?;
        Some(Repairers { connections: flows - 1, download })
    }

    /// The program of a download of `size` bytes, and its connections; `None` where nothing is repaired.
    pub fn download(&self, size: Option<Bytes>) -> Option<(Download, u32)> {
        self.repair?;
        let usual = repair::Config::default();
        let repair = repair::Config {
            deadline: self.deadline,
            request_max: self.range_max.0,
            gap_max: usual.gap_max.min(self.gap_max.0),
            gap_busy_max: self.gap_max.0,
            held_max: self.reorder_buffer.0,
            holes_max: self.holes_max as usize,
            ..usual
        };
        let download = Download { size, request: self.request_size, head: self.head_size, repair };
        Some((download, 1 + self.connections))
    }
}
