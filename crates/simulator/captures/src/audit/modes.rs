//! PHY modes of the frames in a capture, according to their radio headers.

use std::collections::BTreeMap;

use serde::Serialize;
use tacit_link::wifi::phy::Mode;
use tacit_theory::{Hop, hop};

use super::Audit;

/// TCP packets sent in one PHY mode.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SentAs {
    /// Number of the interface in the file, from 0: a link of a multi-link device has one of its own.
    pub interface: u32,
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

/// Interface, format, MCS, streams, width, guard interval, and the rate of modes without MCS: the fields that radio headers
/// distinguish.
type Key = (u32, &'static str, Option<u8>, u8, u16, u16, u64);

struct Sent {
    mode: Mode,
    data_packets: u64,
    packets: u64,
}

impl Modes {
    pub fn count(&mut self, interface: u32, mode: &Mode, has_payload: bool) {
        let Mode { format, mcs, streams, width_mhz, guard_interval, .. } = *mode;
        let key =
            (interface, format.name(), mcs, streams, width_mhz, guard_interval.nanos(), mode.rate().as_bps());
        let sent = self.0.entry(key).or_insert(Sent { mode: *mode, data_packets: 0, packets: 0 });
        sent.packets += 1;
        sent.data_packets += u64::from(has_payload);
    }

    /// The modes in descending order of data.
    pub fn finish(self) -> Vec<SentAs> {
        let mut all: Vec<_> =
            self.0.into_iter().map(|((interface, ..), sent)| SentAs::new(interface, &sent)).collect();
        all.sort_by_key(|sent| std::cmp::Reverse((sent.data_packets, sent.packets)));
        all
    }
}

impl SentAs {
    fn new(interface: u32, sent: &Sent) -> Self {
        let Sent { mode, data_packets, packets } = *sent;
        Self {
            interface,
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
    /// The hop with the mode of most data in the capture, according to radio headers; one per interface, most data first, where
    /// a connection's data came over several. Without radio headers, the hop of the HACK paper.
    pub fn hops(&self) -> Vec<Hop> {
        let mut interfaces: Vec<u32> = Vec::new();
        let carries_data = |sent: &&SentAs| sent.data_packets > 0 || self.sent_as[0].data_packets == 0;
        let mut hops = Vec::new();
        for most in self.sent_as.iter().filter(carries_data) {
            let is_new =
                !interfaces.contains(&most.interface) && (self.shares_links || interfaces.is_empty());
            if is_new {
                interfaces.push(most.interface);
                hops.push(Hop::new(most.mode.format.standard(), most.mode));
            }
        }
        if hops.is_empty() { vec![hop::usual()] } else { hops }
    }
}
