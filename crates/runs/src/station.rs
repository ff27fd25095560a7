//! What each station of a run did, flat and in JSON.

use std::collections::BTreeMap;

use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tacit_link::payload::PayloadClass;
use tacit_link::wifi::{Airtime, AirtimeUse};
use tacit_proto::{fastack, fwp, hack};
use tacit_sim::RunOutcome;
use tacit_sim::record::StationOutcome;

/// What a station sent, waited and spent in the measured window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StationRecord {
    /// Number of the channel.
    pub bss: u32,
    /// Number of the host; the access point is the first station of its channel.
    pub host: u32,
    /// Bytes of IP packets that reached others, counted where they arrive.
    pub delivered_bytes: u64,
    /// PPDUs of data sent, collided ones included.
    pub data_ppdus: u64,
    /// MPDUs in them.
    pub data_mpdus: u64,
    /// PPDUs of data by the number of their MPDUs: the first entry counts those of one.
    pub ppdu_sizes: Vec<u64>,
    /// Packets sent that nobody acknowledges (`link-acks = "none"`).
    pub unacknowledged: u64,
    /// Of them, those that arrived.
    pub unacknowledged_arrived: u64,
    /// Requests sent for what did not (`link-acks = "deferred"`).
    pub repair_requests: u64,
    /// Bytes of them.
    pub repair_request_bytes: u64,
    /// MPDUs that arrived because it asked.
    pub repaired: u64,
    /// MPDUs that it gave up asking for.
    pub repair_given_up: u64,
    /// MPDUs delivered on their first transmission.
    pub delivered_first_try: u64,
    /// MPDUs delivered after one retransmission or more.
    pub delivered_after_retry: u64,
    /// MPDU transmissions that were retransmissions.
    pub retries: u64,
    /// MPDUs given up: retry limit or lifetime.
    pub mpdus_dropped: u64,
    /// Packets its queues refused.
    pub queue_drops: u64,
    /// Packets its queues took and dropped later, by CoDel or for another flow's sake.
    pub queue_discards: u64,
    /// Packets its queues marked with ECN instead; whole run.
    pub queue_marks: u64,
    /// PPDUs that collided.
    pub collided_ppdus: u64,
    /// ACKs and Block Acks that did not come back.
    pub missed_link_acks: u64,
    /// Block Ack Requests sent.
    pub block_ack_requests: u64,
    /// RTS sent.
    pub rts: u64,
    /// RTS that no CTS answered.
    pub missed_cts: u64,
    /// CTS sent to the sender itself.
    pub cts_to_self: u64,
    /// Reverse direction grants that reached who may use them.
    pub reverse_grants: u64,
    /// PPDUs sent in the TXOP of another that granted it.
    pub reverse_ppdus: u64,
    /// MPDUs in them.
    pub reverse_mpdus: u64,
    /// PPDUs sent a SIFS after another exchange of the same TXOP.
    pub burst_ppdus: u64,
    /// TXOPs ended with a CF-End.
    pub cf_ends: u64,
    /// Pure TCP ACKs on the air, retransmissions included.
    pub tcp_acks_on_air: u64,
    /// PPDUs of nothing but those.
    pub tcp_ack_ppdus: u64,
    /// ACKs and Block Acks sent.
    pub link_acks: u64,
    /// Of them, those that carried compressed ACKs.
    pub augmented_link_acks: u64,
    /// Of those, lengthened by no more than AIFS.
    pub augmented_within_aifs: u64,
    /// Bytes appended, repeated ones included.
    pub appended_bytes: u64,
    /// Mean number of packets in its queues.
    pub queue_mean_packets: f64,
    /// Most packets that waited at once in one queue.
    pub queue_peak_packets: u64,
    /// Time from queueing to first transmission: median.
    pub queue_delay_p50_us: u64,
    /// Time from queueing to first transmission: 95th percentile.
    pub queue_delay_p95_us: u64,
    /// Time from queueing to first transmission: longest.
    pub queue_delay_max_us: u64,
    /// Seconds of the channel's time that it is charged for, by use.
    pub airtime_s: AirtimeSeconds,
    /// Of them, those for PPDUs of nothing but TCP ACKs, and for what rode on its link-layer ACKs.
    pub tcp_ack_airtime_s: AirtimeSeconds,
    /// What its TCP/HACK driver did; null for a stock station.
    pub hack: Option<DriverRecord>,
    /// What it acknowledged in its clients' stead; null where it does not.
    pub fastack: Option<fastack::Counters>,
    /// What its FWP shim did; null where there is none.
    pub fwp: Option<fwp::Counters>,
}

/// What a TCP/HACK driver did in the measured window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DriverRecord {
    /// What it counted.
    #[serde(flatten)]
    pub counters: hack::Counters,
    /// Bytes of compressed ACKs as IP packets over those they took; null where nothing was compressed.
    pub compression_ratio: Option<f64>,
}

/// Seconds by use of airtime; idle time is nobody's.
#[derive(Clone, Debug, PartialEq)]
pub struct AirtimeSeconds(Vec<(AirtimeUse, f64)>);

impl AirtimeSeconds {
    fn new(seconds: impl Fn(AirtimeUse) -> f64) -> Self {
        let charged = AirtimeUse::ALL.into_iter().filter(|what| *what != AirtimeUse::Idle);
        Self(charged.map(|what| (what, seconds(what))).collect())
    }
}

impl Default for AirtimeSeconds {
    /// No time on anything.
    fn default() -> Self {
        Self::new(|_| 0.0)
    }
}

impl From<&Airtime> for AirtimeSeconds {
    fn from(airtime: &Airtime) -> Self {
        Self::new(|what| airtime.get(what).as_secs_f64())
    }
}

impl Serialize for AirtimeSeconds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (what, seconds) in &self.0 {
            map.serialize_entry(what.name(), seconds)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for AirtimeSeconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let seconds = BTreeMap::<String, f64>::deserialize(deserializer)?;
        Ok(Self::new(|what| seconds.get(what.name()).copied().unwrap_or_default()))
    }
}

/// The stations of `outcome`, channel by channel, access points first.
pub fn station_records(outcome: &RunOutcome) -> Vec<StationRecord> {
    let measured_s = outcome.measured.as_secs_f64();
    let channels = outcome.bss.iter().zip(0..);
    let stations =
        channels.flat_map(|(bss, number)| bss.stations.iter().map(move |station| (number, station)));
    stations.map(|(bss, station)| StationRecord::new(bss, station, measured_s)).collect()
}

impl StationRecord {
    fn new(bss: u32, station: &StationOutcome, measured_s: f64) -> Self {
        let counters = &station.counters;
        let largest = station.ppdu_sizes.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
        Self {
            bss,
            host: station.host.0,
            delivered_bytes: counters.arrived_bytes,
            data_ppdus: counters.data_ppdus,
            data_mpdus: counters.data_mpdus,
            ppdu_sizes: station.ppdu_sizes[..largest].to_vec(),
            unacknowledged: counters.unacknowledged,
            unacknowledged_arrived: counters.unacknowledged_arrived,
            repair_requests: counters.repair_requests,
            repair_request_bytes: counters.repair_request_bytes,
            repaired: counters.repaired,
            repair_given_up: counters.repair_given_up,
            delivered_first_try: counters.delivered_first_try,
            delivered_after_retry: counters.delivered_after_retry,
            retries: counters.retries,
            mpdus_dropped: counters.mpdus_dropped,
            queue_drops: counters.queue_drops,
            queue_discards: counters.queue_discards,
            queue_marks: station.queue_marks,
            collided_ppdus: counters.collided_ppdus,
            missed_link_acks: counters.missed_link_acks,
            block_ack_requests: counters.block_ack_requests,
            rts: counters.rts,
            missed_cts: counters.missed_cts,
            cts_to_self: counters.cts_to_self,
            reverse_grants: counters.reverse_grants,
            reverse_ppdus: counters.reverse_ppdus,
            reverse_mpdus: counters.reverse_mpdus,
            burst_ppdus: counters.burst_ppdus,
            cf_ends: counters.cf_ends,
            tcp_acks_on_air: counters.tcp_acks_on_air,
            tcp_ack_ppdus: counters.tcp_ack_ppdus,
            link_acks: counters.link_acks,
            augmented_link_acks: counters.augmented_link_acks,
            augmented_within_aifs: counters.augmented_within_aifs,
            appended_bytes: counters.appended_bytes,
            queue_mean_packets: station.queueing_time.as_secs_f64() / measured_s,
            queue_peak_packets: station.queue_peak_packets,
            queue_delay_p50_us: station.queueing_delay_us.p50,
            queue_delay_p95_us: station.queueing_delay_us.p95,
            queue_delay_max_us: station.queueing_delay_us.max,
            airtime_s: AirtimeSeconds::new(|what| station.airtime.get(what).as_secs_f64()),
            tcp_ack_airtime_s: AirtimeSeconds::from(station.airtime.of(PayloadClass::Ack)),
            hack: station.driver.hack().as_ref().map(DriverRecord::new),
            fastack: station.driver.fastack(),
            fwp: station.driver.fwp(),
        }
    }
}

impl DriverRecord {
    fn new(counters: &hack::Counters) -> Self {
        let ratio = counters.uncompressed_bytes as f64 / counters.compressed_bytes as f64;
        Self { counters: *counters, compression_ratio: Some(ratio).filter(|ratio| ratio.is_finite()) }
    }
}
