//! The report of a live run.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use tacit_between::{fwp, hack};
use tacit_link::packet::PayloadClass;
use tacit_link::wifi::{AirtimeUse, StationAirtime};
use tacit_packet::units::Duration;

use crate::clock::Punctuality;
use crate::hop::Ended;
use crate::meter::{Direction, Meter};
use crate::waits::Waits;

/// Maximum fraction of stopped time in a run with results. Throughput would be wrong by the same fraction.
const SLIPPED_SHARE_MAX: f64 = 0.01;
/// Maximum 99th percentile of lateness in a run with results, in microseconds. Otherwise kernels would observe delays
/// that the medium does not have.
const LATENESS_P99_MAX_US: f64 = 1_000.0;
/// Minimum number of events for this percentile to be meaningful.
const EVENTS_MIN: u64 = 1_000;
/// Minimum duration for reporting CPU utilisation; that of a shorter run is dominated by its start.
const PROCESSOR_SECONDS_MIN: f64 = 0.5;

/// A finished live run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// Name of the scenario.
    pub scenario: String,
    /// Name of the scheme.
    pub scheme: String,
    /// Seed of all random draws.
    pub seed: u64,
    /// ACK mode of receivers: kernel, packet, or 1 in a number of packets.
    pub ack_mode: String,
    /// Whether the numbers below characterise the hop, rather than a busy machine.
    pub valid: bool,
    /// The reasons, if it is not valid.
    pub reasons: Vec<String>,
    /// Exit status of the command.
    pub exit_status: u8,
    /// Exit status of the server, if it ended before the command; null if it did not, or if there was none.
    #[serde(default)]
    pub server_exit_status: Option<u8>,
    /// Duration in seconds.
    pub seconds: f64,
    /// Statistics of the traffic; null if the run is not valid.
    pub transfer: Option<Transfer>,
    /// Per channel, fractions of its time by use; null if the run is not valid.
    pub airtime: Option<Vec<Shares>>,
    /// Per channel, the fraction of its time that each station used, access point first: its PPDUs, the waits before them
    /// and their link-layer ACKs. Null if the run is not valid.
    #[serde(default)]
    pub station_airtime: Option<Vec<Vec<f64>>>,
    /// Statistics of each station that uses TCP/HACK, access point first.
    pub hack: Vec<HackReport>,
    /// Counters of FWP's shim on the command's side; null if there is none.
    pub fwp: Option<fwp::Counters>,
    /// Lateness of events.
    pub lateness: Punctuality,
    /// Time that commands waited for a CPU.
    pub waits: Waits,
    /// Number of packets that a side's kernel refused, or passed on in a form that cannot be sent.
    pub refused_packets: u64,
    /// CPU seconds of the hop's thread.
    pub cpu_s: f64,
    /// CPU seconds of the hop's thread per gigabit received; null if nothing was received.
    pub cpu_s_per_gbit: Option<f64>,
}

/// Statistics of both directions.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Transfer {
    /// To the command's side.
    pub down: Way,
    /// From the command's side.
    pub up: Way,
}

/// One direction. Field names are those of iperf3's JSON if it has them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Way {
    /// Completed seconds.
    pub intervals: Vec<IntervalSum>,
    /// Totals.
    pub end: WayEnd,
}

/// One second.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct IntervalSum {
    /// The sum of all connections.
    pub sum: Sum,
}

/// Totals at the end.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct WayEnd {
    /// Data that entered the hop, including retransmitted segments.
    pub sum_sent: Sum,
    /// Data that receivers have: acknowledged TCP, or delivered UDP.
    pub sum_received: Sum,
    /// Packets of any kind that entered the hop.
    pub packets_sent: u64,
    /// Packets that left the hop.
    pub packets_received: u64,
    /// Packets that did not leave the hop: dropped by queues, lost on the air, or in transit at the end.
    pub packets_dropped: u64,
    /// Delay of packets through the hop on the medium's clock; null if no packet left.
    pub delay: Option<Delay>,
    /// Retransmitted TCP segments.
    pub retransmits: u64,
    /// TCP segments with data that left the hop.
    pub data_segments: u64,
    /// Pure TCP ACKs sent by their receiver.
    pub pure_acks: u64,
    /// Pure ACKs per segment; null without data.
    pub ack_ratio: Option<f64>,
}

/// Percentiles of a delay, in milliseconds.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Delay {
    /// Median.
    pub p50_ms: f64,
    /// 95th percentile.
    pub p95_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
    /// Maximum.
    pub max_ms: f64,
}

/// Bytes in an interval.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Sum {
    /// Start in seconds since the start of the run.
    pub start: f64,
    /// End in seconds since the start of the run.
    pub end: f64,
    /// `end - start`.
    pub seconds: f64,
    /// Payload bytes.
    pub bytes: u64,
    /// Payload bits per second.
    pub bits_per_second: f64,
}

/// Fractions of a channel's time by [`AirtimeUse`]. They add up to 1.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shares(Vec<(&'static str, f64)>);

impl Serialize for Shares {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().copied())
    }
}

impl<'de> Deserialize<'de> for Shares {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let shares = BTreeMap::<String, f64>::deserialize(deserializer)?;
        let known = AirtimeUse::ALL.iter().map(|what| what.name());
        Ok(Self(known.filter_map(|name| shares.get(name).map(|share| (name, *share))).collect()))
    }
}

/// Statistics of a station's TCP/HACK driver.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct HackReport {
    /// Number of the channel.
    pub channel: usize,
    /// Number of the station; 0 is the access point.
    pub station: usize,
    /// Its counters.
    #[serde(flatten)]
    pub counters: hack::Counters,
}

/// Properties of the run that are unknown to the hop.
#[derive(Clone, Debug)]
pub struct About {
    /// Name of the scenario.
    pub scenario: String,
    /// Name of the scheme.
    pub scheme: String,
    /// Seed of all random draws.
    pub seed: u64,
    /// ACK mode of receivers.
    pub ack_mode: String,
    /// Exit status of the command.
    pub exit_status: u8,
    /// Exit status of the server, if it ended before the command; null if it did not, or if there was none.
    pub server_exit_status: Option<u8>,
    /// Time that commands waited for a CPU.
    pub waits: Waits,
}

/// Quantities of each direction for conditions. The names end in the units.
const READINGS: [&str; 8] = [
    "goodput_bps",
    "delay_p50_ms",
    "delay_p95_ms",
    "delay_p99_ms",
    "delay_max_ms",
    "loss_share",
    "retransmits",
    "ack_ratio",
];

impl WayEnd {
    /// The values of [`READINGS`].
    fn readings(&self) -> [Option<f64>; READINGS.len()] {
        let delay = |value: fn(&Delay) -> f64| self.delay.as_ref().map(value);
        let lost = || self.packets_dropped as f64 / self.packets_sent as f64;
        [
            Some(self.sum_received.bits_per_second),
            delay(|delay| delay.p50_ms),
            delay(|delay| delay.p95_ms),
            delay(|delay| delay.p99_ms),
            delay(|delay| delay.max_ms),
            (self.packets_sent > 0).then(lost),
            Some(self.retransmits as f64),
            self.ack_ratio,
        ]
    }
}

impl Transfer {
    /// Quantities for conditions: of each direction, as `down_delay_p95_ms`, and, without a prefix, those of the
    /// direction that carried more.
    pub fn readings(&self) -> Vec<(String, Option<f64>)> {
        let (down, up) = (&self.down.end, &self.up.end);
        let busier = if up.sum_received.bytes > down.sum_received.bytes { up } else { down };
        let values = [busier, down, up].into_iter().flat_map(WayEnd::readings);
        Self::reading_names().into_iter().zip(values).collect()
    }

    /// The names of [`readings`](Self::readings).
    pub fn reading_names() -> Vec<String> {
        let names = |prefix: &'static str| READINGS.iter().map(move |name| format!("{prefix}{name}"));
        ["", "down_", "up_"].into_iter().flat_map(names).collect()
    }
}

impl Report {
    /// Creates the report of a hop that has ended.
    pub fn new(about: About, ended: &Ended) -> Self {
        let reasons = reasons_against(ended);
        let valid = reasons.is_empty();
        let received: u64 = WAYS.iter().map(|way| ended.meter.totals(*way).received).sum();
        let gigabits = received as f64 * 8.0 / 1e9;
        let cpu_s = ended.cpu.as_secs_f64();
        Self {
            scenario: about.scenario,
            scheme: about.scheme,
            seed: about.seed,
            ack_mode: about.ack_mode,
            valid,
            reasons,
            exit_status: about.exit_status,
            server_exit_status: about.server_exit_status,
            seconds: ended.lasted.as_secs_f64(),
            transfer: valid.then(|| Transfer {
                down: Way::new(&ended.meter, Direction::Down),
                up: Way::new(&ended.meter, Direction::Up),
            }),
            airtime: valid.then(|| shares(ended)),
            station_airtime: valid.then(|| station_shares(ended)),
            hack: hack_reports(ended),
            fwp: ended.fwp,
            lateness: ended.punctuality,
            waits: about.waits,
            refused_packets: ended.refused_packets,
            cpu_s,
            cpu_s_per_gbit: (received > 0).then(|| cpu_s / gigabits),
        }
    }

    /// As text.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        let _ = writeln!(
            text,
            "tacit: {} ({}), {:.1} s, ACKs as {}",
            self.scenario,
            self.scheme,
            self.seconds,
            match self.ack_mode.as_str() {
                "kernel" => "the kernel sends them".to_owned(),
                "packet" => "one per packet".to_owned(),
                packets => format!("one per {packets} packets"),
            }
        );
        if let Some(transfer) = &self.transfer {
            let ways = [("down", &transfer.down), ("up", &transfer.up)];
            let most = ways.iter().map(|(_, way)| way.end.sum_sent.bytes).max().unwrap_or(0);
            // The requests of a client do not count as an upload.
            let counts = |way: &Way| way.end.sum_sent.bytes > most / 1_000;
            for (name, way) in ways.into_iter().filter(|(_, way)| counts(way)) {
                way.write(name, &mut text);
            }
        }
        for (number, shares) in self.airtime.iter().flatten().enumerate() {
            let used = shares.0.iter().filter(|(_, share)| *share >= 0.000_5);
            let used: Vec<_> = used.map(|(name, share)| format!("{name} {:.1} %", share * 100.0)).collect();
            let _ = writeln!(
                text,
                "  air{:<6}{}",
                if number == 0 { String::new() } else { number.to_string() },
                used.join(", ")
            );
        }
        for hack in &self.hack {
            hack.write(&mut text);
        }
        if let Some(fwp) = &self.fwp {
            let _ = writeln!(
                text,
                "  FWP      {} flows registered; {} placeholders in {} holes, {} came late; off {} times",
                fwp.registered_flows, fwp.placeholders, fwp.holes, fwp.late_segments, fwp.switched_off
            );
        }
        let late = &self.lateness;
        let _ = writeln!(
            text,
            "  lateness p50 {:.0} us, p99 {:.0} us, p99.9 {:.0} us; stood still {} times, {:.1} ms; processor {}",
            late.p50_us,
            late.p99_us,
            late.p99_9_us,
            late.slips,
            late.slipped_s * 1e3,
            processor_share(self.cpu_s, self.seconds),
        );
        let waits = [("command", self.waits.command), ("server", self.waits.server)];
        let waits = waits.map(|(who, wait)| Some(format!("{who} {:.0} us", wait?.mean_us)));
        let waits: Vec<_> = waits.into_iter().flatten().collect();
        if !waits.is_empty() {
            let _ = writeln!(text, "  waits    for a processor, on average: {}", waits.join(", "));
        }
        if self.valid {
            text.push_str("  valid\n");
        } else {
            let _ = writeln!(text, "  NOT VALID, so no numbers: {}", self.reasons.join("; "));
        }
        text
    }
}

const WAYS: [Direction; 2] = [Direction::Down, Direction::Up];

/// CPU utilisation in percent, or `–` if the run was too short.
fn processor_share(cpu_s: f64, seconds: f64) -> String {
    if seconds < PROCESSOR_SECONDS_MIN {
        return "–".to_owned();
    }
    format!("{:.1} %", 100.0 * cpu_s / seconds)
}

fn reasons_against(ended: &Ended) -> Vec<String> {
    let mut reasons = Vec::new();
    let (late, seconds) = (&ended.punctuality, ended.lasted.as_secs_f64());
    if late.slipped_s > SLIPPED_SHARE_MAX * (seconds + late.slipped_s) {
        reasons.push(format!(
            "the machine stood still for {:.0} ms of {seconds:.1} s, more than {:.0} %",
            late.slipped_s * 1e3,
            SLIPPED_SHARE_MAX * 100.0
        ));
    }
    if late.events >= EVENTS_MIN && late.p99_us > LATENESS_P99_MAX_US {
        reasons.push(format!(
            "one event in a hundred was more than {:.1} ms late, beyond {:.1} ms",
            late.p99_us / 1e3,
            LATENESS_P99_MAX_US / 1e3
        ));
    }
    reasons.extend(ended.unbalanced.clone());
    reasons
}

impl Way {
    fn new(meter: &Meter, direction: Direction) -> Self {
        let totals = meter.totals(direction);
        let at = |instant: Option<tacit_packet::units::Instant>| {
            instant.map_or(0.0, |at| Duration::from_nanos(at.as_nanos()).as_secs_f64())
        };
        let (start, end) = (at(totals.first), at(totals.last.or(totals.first)));
        let intervals = meter.intervals().iter().enumerate().map(|(second, interval)| {
            let start = second as f64;
            IntervalSum { sum: Sum::new(start, start + 1.0, interval.received[direction as usize]) }
        });
        Self {
            intervals: intervals.collect(),
            end: WayEnd {
                sum_sent: Sum::new(start, end, totals.payload_in),
                sum_received: Sum::new(start, end, totals.received),
                packets_sent: totals.packets_in,
                packets_received: totals.packets_out,
                packets_dropped: totals.packets_in.saturating_sub(totals.packets_out),
                delay: Delay::new(meter.delays_us(direction)),
                retransmits: totals.retransmitted_segments,
                data_segments: totals.data_segments_out,
                pure_acks: meter.totals(direction.reverse()).pure_acks_in,
                ack_ratio: meter.ack_ratio(direction),
            },
        }
    }

    fn write(&self, name: &str, text: &mut String) {
        let end = &self.end;
        let _ = write!(
            text,
            "  {name:<8} {:.2} Mb/s over {:.1} s ({:.1} MB)",
            end.sum_received.bits_per_second / 1e6,
            end.sum_received.seconds,
            end.sum_received.bytes as f64 / 1e6
        );
        if let Some(ratio) = end.ack_ratio {
            let _ = write!(text, ", {ratio:.2} ACKs per segment, {} sent again", end.retransmits);
        }
        text.push('\n');
        if let Some(Delay { p50_ms, p95_ms, p99_ms, .. }) = end.delay {
            let _ = writeln!(
                text,
                "           delay p50 {p50_ms:.1} ms, p95 {p95_ms:.1} ms, p99 {p99_ms:.1} ms; {} of {} packets dropped",
                end.packets_dropped, end.packets_sent
            );
        }
    }
}

impl Delay {
    fn new(delays_us: &Histogram<u64>) -> Option<Self> {
        let ms = |quantile: f64| delays_us.value_at_quantile(quantile) as f64 / 1e3;
        let max_ms = delays_us.max() as f64 / 1e3;
        (!delays_us.is_empty()).then(|| Self { p50_ms: ms(0.5), p95_ms: ms(0.95), p99_ms: ms(0.99), max_ms })
    }
}

impl Sum {
    fn new(start: f64, end: f64, bytes: u64) -> Self {
        let seconds = end - start;
        let bits_per_second = if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 };
        Self { start, end, seconds, bytes, bits_per_second }
    }
}

impl HackReport {
    fn write(&self, text: &mut String) {
        let counters = &self.counters;
        let acks = counters.native_acks + counters.compressed_acks + counters.thinned_acks;
        if acks == 0 {
            return;
        }
        let who = if self.station == 0 { "AP".to_owned() } else { format!("client {}", self.station) };
        let _ = write!(
            text,
            "  HACK     {who}: {} of {acks} ACKs rode on link-layer ACKs",
            counters.compressed_acks
        );
        if counters.compressed_acks > 0 {
            let _ = write!(
                text,
                ", {:.2} B each",
                counters.compressed_bytes as f64 / counters.compressed_acks as f64
            );
        }
        if counters.thinned_acks > 0 {
            let _ = write!(text, "; {} gave way to those", counters.thinned_acks);
        }
        if counters.cheaper_acks > 0 {
            let _ = write!(text, "; {} were cheaper as packets", counters.cheaper_acks);
        }
        text.push('\n');
    }
}

fn shares(ended: &Ended) -> Vec<Shares> {
    let channels = ended.outcome.bss.iter();
    channels
        .map(|channel| {
            let total = channel.airtime.total().as_secs_f64();
            let share = |what: AirtimeUse| {
                if total > 0.0 { channel.airtime.get(what).as_secs_f64() / total } else { 0.0 }
            };
            Shares(AirtimeUse::ALL.iter().map(|what| (what.name(), share(*what))).collect())
        })
        .collect()
}

fn station_shares(ended: &Ended) -> Vec<Vec<f64>> {
    let channels = ended.outcome.bss.iter();
    channels
        .map(|channel| {
            let total = channel.airtime.total().as_secs_f64();
            let used = |airtime: &StationAirtime| {
                [PayloadClass::Data, PayloadClass::Ack]
                    .map(|class| airtime.of_class(class).total().as_secs_f64())
            };
            let share = |airtime| if total > 0.0 { used(airtime).iter().sum::<f64>() / total } else { 0.0 };
            channel.stations.iter().map(|station| share(&station.airtime)).collect()
        })
        .collect()
}

fn hack_reports(ended: &Ended) -> Vec<HackReport> {
    let mut reports = Vec::new();
    for (channel, bss) in ended.outcome.bss.iter().enumerate() {
        for (station, outcome) in bss.stations.iter().enumerate() {
            reports.extend(outcome.driver.hack().map(|counters| HackReport { channel, station, counters }));
        }
    }
    reports
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_run_says_nothing_of_the_processor() {
        assert_eq!(processor_share(0.004, 0.001), "–");
        assert_eq!(processor_share(0.004, 0.0), "–");
        assert_eq!(processor_share(0.5, 2.0), "25.0 %");
    }
}
