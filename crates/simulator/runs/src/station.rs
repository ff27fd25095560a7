//! Results of each station in a run, in flat form and as JSON.

use std::collections::BTreeMap;

use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tacit_between::{fastack, fwp, hack};
use tacit_link::PayloadClass;
use tacit_link::wifi::{Airtime, AirtimeUse, StationCounters};
use tacit_sim::RunOutcome;
use tacit_sim::record::StationOutcome;

use crate::hop_record::QueueDelays;

/// Counters, delays and airtime of a station in the measured window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct StationRecord {
    /// Number of the channel.
    pub bss: u32,
    /// Number of the host. The access point is the first station of its channel.
    pub host: u32,
    /// Its counters.
    #[serde(flatten)]
    pub counters: StationCounters,
    /// Number of data PPDUs by their number of MPDUs, starting with one MPDU.
    pub ppdu_sizes: Vec<u64>,
    /// Packets that its queues marked with ECN instead of dropping them, over the whole run.
    pub queue_marks: u64,
    /// Mean number of packets in its queues.
    pub queue_mean_packets: f64,
    /// Maximum number of packets in one queue.
    pub queue_peak_packets: u64,
    /// Queueing delays.
    #[serde(flatten)]
    pub queue_delays: QueueDelays,
    /// Channel time charged to it, in seconds by use.
    pub airtime_s: AirtimeSeconds,
    /// The part of this for PPDUs with only TCP ACKs, and for ACKs appended to its link-layer ACKs.
    pub tcp_ack_airtime_s: AirtimeSeconds,
    /// Results of its TCP/HACK driver; null for a stock driver.
    pub hack: Option<DriverRecord>,
    /// Counters of the ACKs that it sent on behalf of its clients; null if it sends none.
    pub fastack: Option<fastack::Counters>,
    /// Counters of its FWP shim; null if there is none.
    pub fwp: Option<fwp::Counters>,
}

/// Fields that are not counters of a station but are placed among them in files and tables: the name of each, and the
/// name of the preceding field.
const AMONG_COUNTERS: [(&str, &str); 2] = [("ppdu_sizes", "data_mpdus"), ("queue_marks", "queue_discards")];

impl Serialize for StationRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut record = Self::serialize(self, serde_json::value::Serializer).map_err(S::Error::custom)?;
        if let Some(fields) = record.as_object_mut() {
            for (name, before) in AMONG_COUNTERS {
                let place = fields.keys().position(|key| key == before);
                if let Some((place, value)) = place.zip(fields.shift_remove(name)) {
                    fields.shift_insert(place + 1, name.to_owned(), value);
                }
            }
        }
        record.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for StationRecord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::deserialize(deserializer)
    }
}

/// Results of a TCP/HACK driver in the measured window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DriverRecord {
    /// Its counters.
    #[serde(flatten)]
    pub counters: hack::Counters,
    /// Length of the ACKs as IP packets divided by their compressed length; null if nothing was compressed.
    pub compression_ratio: Option<f64>,
}

/// Seconds by use of airtime. Idle time belongs to no station.
#[derive(Clone, Debug, PartialEq)]
pub struct AirtimeSeconds(Vec<(AirtimeUse, f64)>);

impl AirtimeSeconds {
    fn new(seconds: impl Fn(AirtimeUse) -> f64) -> Self {
        let charged = AirtimeUse::ALL.into_iter().filter(|what| *what != AirtimeUse::Idle);
        Self(charged.map(|what| (what, seconds(what))).collect())
    }
}

impl Default for AirtimeSeconds {
    /// Zero time for every use.
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
        serializer.collect_map(self.0.iter().map(|(what, seconds)| (what.name(), seconds)))
    }
}

impl<'de> Deserialize<'de> for AirtimeSeconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let seconds = BTreeMap::<String, f64>::deserialize(deserializer)?;
        Ok(Self::new(|what| seconds.get(what.name()).copied().unwrap_or_default()))
    }
}

/// The stations of `outcome` by channel, access points first.
pub fn station_records(outcome: &RunOutcome) -> Vec<StationRecord> {
    let measured_s = outcome.measured.as_secs_f64();
    let channels = outcome.bss.iter().zip(0..);
    let stations =
        channels.flat_map(|(bss, number)| bss.stations.iter().map(move |station| (number, station)));
    stations.map(|(bss, station)| StationRecord::new(bss, station, measured_s)).collect()
}

impl StationRecord {
    fn new(bss: u32, station: &StationOutcome, measured_s: f64) -> Self {
        let largest = station.ppdu_sizes.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
        Self {
            bss,
            host: station.host.0,
            counters: station.counters.recorded(),
            ppdu_sizes: station.ppdu_sizes[..largest].to_vec(),
            queue_marks: station.queue_marks,
            queue_mean_packets: station.queueing_time.as_secs_f64() / measured_s,
            queue_peak_packets: station.queue_peak_packets,
            queue_delays: QueueDelays::from(&station.queueing_delay_us),
            airtime_s: AirtimeSeconds::new(|what| station.airtime.get(what).as_secs_f64()),
            tcp_ack_airtime_s: AirtimeSeconds::from(station.airtime.of_class(PayloadClass::Ack)),
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
