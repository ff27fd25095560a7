//! What a run takes, estimated from above before it starts: packets, and memory for what it keeps.

use tacit_link::queue::QueueConfig;
use tacit_packet::units::{Bytes, HostId, Instant};
use tacit_sim::setup::{FlowSetup, Setup, Traffic};

use crate::InputError;
use crate::table::number;

/// Maximum memory of a run in bytes. Several runs share the machine.
const MOST_MEMORY: u64 = 1 << 30;
/// Memory of a packet in a queue in bytes: 70 as measured, and twice that while the queue grows.
const PACKET_MEMORY: u64 = 140;
/// Memory of a sample in bytes: 250 as measured, and more while the list grows.
const SAMPLE_MEMORY: u64 = 400;
/// Packets that a processor simulates per second: those of a download at 150 Mb/s.
const PACKETS_PER_SECOND: u64 = 5_000_000;
/// Time of all runs in seconds from which users want to know it.
const LONG_SECONDS: u64 = 60;
/// Bytes of IPv4 and UDP headers, the shortest before a datagram's payload.
const DATAGRAM_HEADERS: u64 = 28;
/// Bytes of a full packet of the other transports.
const FULL_PACKET: u64 = 1_500;

/// Upper estimates of what a run takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// Packets that the hosts send, acknowledgments included.
    pub packets: u64,
    /// Packets in queues without a limit.
    queued: u64,
    /// Samples of the series.
    samples: u64,
}

impl Estimate {
    /// The estimate for a run.
    pub fn for_setup(setup: &Setup) -> Self {
        let (mut packets, mut queued) = (0_u64, 0_u64);
        for flow in &setup.flows {
            let sent = sent(setup, flow);
            match &flow.traffic {
                Traffic::Udp { .. } => {
                    packets = packets.saturating_add(sent);
                    queued = queued.saturating_add(if may_queue_all(setup, flow) { sent } else { 0 });
                }
                // As many acknowledgments as packets. A window bounds what is in a queue.
                Traffic::Connection { .. } => packets = packets.saturating_add(sent.saturating_mul(2)),
            }
        }
        let times = setup
            .sample_interval
            .map_or(0, |interval| setup.duration.as_nanos() / interval.as_nanos().max(1));
        Self { packets, queued, samples: times.saturating_mul(setup.flows.len() as u64) }
    }

    /// Refuses a run that needs too much memory.
    ///
    /// # Errors
    /// If it does, with the settings to change.
    pub fn check(&self) -> Result<(), InputError> {
        let refuse = |place: &str, count: u64, what: &str, bytes: u64, allowed: &str| {
            let most = MOST_MEMORY >> 20;
            let what = format!("{} {what} take about {} MiB of memory", grouped(count), grouped(bytes >> 20));
            Err(InputError::new(place, what).allowed(format!("{most} MiB: {allowed}")))
        };
        let queued_bytes = self.queued.saturating_mul(PACKET_MEMORY);
        if queued_bytes > MOST_MEMORY {
            let change = "a limit for each queue (wifi.ap-queue, wifi.station-queue, wired.queue), a lower wired.rate, \
                          or a shorter run.duration";
            return refuse("an unlimited queue", self.queued, "datagrams in it", queued_bytes, change);
        }
        let sample_bytes = self.samples.saturating_mul(SAMPLE_MEMORY);
        if sample_bytes > MOST_MEMORY {
            let change = "a longer run.sample-interval, or a shorter run.duration";
            return refuse("run.sample-interval", self.samples, "samples", sample_bytes, change);
        }
        Ok(())
    }
}

/// What to tell users before runs that send `packets` packets in all; `None` if they will hardly wait.
pub fn long_wait(packets: u64) -> Option<String> {
    let seconds = packets / PACKETS_PER_SECOND;
    (seconds >= LONG_SECONDS).then(|| {
        let minutes = seconds.div_ceil(60);
        format!(
            "up to {} million packets: some {} minutes of one processor; run.duration, a lower wired.rate or larger \
             datagrams shorten it",
            grouped(packets / 1_000_000),
            grouped(minutes)
        )
    })
}

fn grouped(count: u64) -> String {
    number(count as f64, 0)
}

/// Number of packets that the source of a flow sends at most.
fn sent(setup: &Setup, flow: &FlowSetup) -> u64 {
    let end = flow.stop.unwrap_or(Instant::ZERO + setup.duration);
    let time = end.saturating_since(flow.start);
    // Flows of one source share its link.
    let sharing = setup.flows.iter().filter(|other| other.source == flow.source).count() as u64;
    let by_link = |packet_len: u64, from: HostId, share: u64| {
        capacity(setup, from, flow.start, end).map(|bytes| bytes.0 / packet_len / share.max(1))
    };
    match &flow.traffic {
        Traffic::Udp { payload, rate: Some(rate), .. } => {
            time.as_nanos() / rate.time_for(*payload).as_nanos().max(1)
        }
        Traffic::Udp { payload, rate: None, .. } => {
            by_link(payload.0 + DATAGRAM_HEADERS, flow.source, sharing).unwrap_or(0)
        }
        Traffic::Connection { size, .. } => {
            // A connection follows the slower of the links at its ends.
            let ends = [by_link(FULL_PACKET, flow.source, sharing), by_link(FULL_PACKET, flow.sink, 1)];
            let most = ends.into_iter().flatten().min().unwrap_or(0);
            size.map_or(most, |size| most.min(size.0.div_ceil(FULL_PACKET)))
        }
    }
}

/// Bytes that the fastest link at `host` transmits between two times.
fn capacity(setup: &Setup, host: HostId, from: Instant, to: Instant) -> Option<Bytes> {
    let wired = setup.wired.iter().flat_map(|wire| [(wire.a, &wire.forward), (wire.b, &wire.backward)]);
    let wired = wired.filter(|(end, _)| *end == host).map(|(_, pipe)| pipe.service.capacity(from, to));
    let wireless = setup.bss.iter().filter(|bss| bss.hosts().any(|other| other == host)).map(|bss| {
        let rates = bss.config.stations.iter().map(|station| station.mode.rate());
        rates.max().map_or(Bytes(0), |rate| rate.amount_in(to.saturating_since(from)))
    });
    wired.chain(wireless).max()
}

/// Whether a queue behind the first one of a flow has no limit.
fn may_queue_all(setup: &Setup, flow: &FlowSetup) -> bool {
    let is_unlimited = |queue: &QueueConfig| queue.limit.packets.is_none() && queue.limit.bytes.is_none();
    let wires = setup.wired.iter().flat_map(|wire| [(wire.a, &wire.forward), (wire.b, &wire.backward)]);
    let on_wires = wires.filter(|(from, _)| *from != flow.source && *from != flow.sink);
    let on_air = setup.bss.iter().flat_map(|bss| {
        let stations = bss.clients.iter().zip(&bss.config.stations);
        stations.filter(|(client, _)| client.host == flow.sink).map(|(_, station)| &station.downlink_queue)
    });
    on_wires.map(|(_, pipe)| &pipe.queue).chain(on_air).any(is_unlimited)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scenario;

    fn estimate(scenario: &str, set: &[&str]) -> Estimate {
        let set: Vec<String> = set.iter().map(|&text| text.to_owned()).collect();
        let scenario = Scenario::load(scenario, &set).unwrap();
        Estimate::for_setup(&scenario.setup(scenario.clients, 1).unwrap())
    }

    #[test]
    fn a_queue_that_grows_without_end_is_refused_before_the_run() {
        let unlimited = ["wifi.ap-queue=unlimited", "wired.rate=1000Gbps", "traffic.transport=udp"];
        let error = estimate("wlan-11n-150", &unlimited).check().unwrap_err().to_string();
        assert!(error.starts_with("an unlimited queue: "), "{error}");
        for part in ["datagrams in it take about", "allowed: 1024 MiB: a limit for each queue (wifi.ap-queue"]
        {
            assert!(error.contains(part), "{error}");
        }
        assert_eq!(estimate("wlan-11n-150", &unlimited[1..]).check(), Ok(()), "a limit");
        let slower = [unlimited[0], "wired.rate=200Mbps", unlimited[2]];
        assert_eq!(estimate("wlan-11n-150", &slower).check(), Ok(()));
        assert_eq!(
            estimate("wlan-11n-150", &unlimited[..2]).check(),
            Ok(()),
            "a window bounds what TCP queues"
        );
    }

    #[test]
    fn an_hour_in_samples_of_a_millisecond_is_refused() {
        let hour = ["run.duration=60min", "run.sample-interval=1ms"];
        let error = estimate("wlan-11n-150", &hour).check().unwrap_err().to_string();
        let expected = "run.sample-interval: 3,600,000 samples take about 1,373 MiB of memory; allowed: 1024 MiB: a longer \
                        run.sample-interval, or a shorter run.duration";
        assert_eq!(error, expected);
        assert_eq!(
            estimate("wlan-11n-150", &["run.duration=60min", "run.sample-interval=2ms"]).check(),
            Ok(())
        );
    }

    #[test]
    fn tiny_datagrams_on_a_fast_wire_are_a_long_wait() {
        let tiny = ["traffic.transport=udp", "traffic.udp-payload=8 B", "wired.rate=1000Gbps"];
        let packets = estimate("wlan-11n-150", &tiny).packets;
        assert!(long_wait(packets).unwrap().contains("million packets: some "), "{packets}");
        let usual = estimate("wlan-11n-150", &[]).packets;
        assert_eq!(long_wait(usual), None, "{usual}");
    }
}
