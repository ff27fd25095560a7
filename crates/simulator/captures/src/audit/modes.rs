//! PHY modes of the frames in a capture, according to their radio headers.

use std::collections::BTreeMap;

use serde::Serialize;
use tacit_link::wifi::phy::Mode;
use tacit_theory::{Hop, hop};

use super::Audit;

/// TCP packets sent in one PHY mode.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SentAs {
    /// Format of the PPDU: "HT-mixed", "VHT", "HE SU", "EHT MU" and so on.
    pub format: &'static str,
    /// MCS index in the table of the standard; null for legacy rates.
    pub mcs: Option<u8>,
    /// Number of spatial streams.
    pub streams: u8,
    /// Channel width in MHz.
    pub width_mhz: u16,
    /// Guard interval in nanoseconds.
    pub guard_interval_ns: u16,
    /// Rate of the data field in Mb/s.
    pub rate_mbps: f64,
    /// TCP packets with payload.
    pub data_packets: u64,
    /// All TCP packets.
    pub packets: u64,
    #[serde(skip)]
    mode: Mode,
}

/// Packets by mode.
#[derive(Default)]
pub(super) struct Modes(BTreeMap<Key, Sent>);

/// Format, MCS, streams, width, guard interval, and the rate of modes without MCS: the fields that radio headers
/// distinguish.
type Key = (&'static str, Option<u8>, u8, u16, u16, u64);

struct Sent {
    mode: Mode,
    data_packets: u64,
    packets: u64,
}

impl Modes {
    pub fn count(&mut self, mode: &Mode, has_payload: bool) {
        let Mode { format, mcs, streams, width_mhz, guard_interval, .. } = *mode;
        let key = (format.name(), mcs, streams, width_mhz, guard_interval.nanos(), mode.rate().as_bps());
        let sent = self.0.entry(key).or_insert(Sent { mode: *mode, data_packets: 0, packets: 0 });
        sent.packets += 1;
        sent.data_packets += u64::from(has_payload);
    }

    /// The modes in descending order of data.
    pub fn finish(self) -> Vec<SentAs> {
        let mut all: Vec<SentAs> = self.0.into_values().map(SentAs::from).collect();
        all.sort_by_key(|sent| std::cmp::Reverse((sent.data_packets, sent.packets)));
        all
    }
}

impl From<Sent> for SentAs {
    fn from(sent: Sent) -> Self {
        let Sent { mode, data_packets, packets } = sent;
        Self {
            format: mode.format.name(),
            mcs: mode.mcs,
            streams: mode.streams,
            width_mhz: mode.width_mhz,
            guard_interval_ns: mode.guard_interval.nanos(),
            rate_mbps: mode.rate().as_mbps_f64(),
            data_packets,
            packets,
            mode,
        }
    }
}

impl Audit {
    /// The hop with the mode of most data in the capture, according to radio headers. Without radio headers, the hop of
    /// the HACK paper.
    pub fn hop(&self) -> Hop {
        self.sent_as.first().map_or_else(hop::usual, |most| Hop::new(most.mode.format.standard(), most.mode))
    }
}
