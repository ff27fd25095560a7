//! FAKE. Placeholder numbers so that the lab can be tried before the world exists. Dropped at merge.

use tacit_link::wifi::StationCounters;
use tacit_proto::tcp;
use tacit_proto::units::{Bytes, Duration, FlowId, HostId, Instant};

use crate::record::*;
use crate::setup::Traffic;
use crate::{Observer, Outcome, RunError, Setup};

struct Noise(u64);
impl Noise {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// FAKE.
///
/// # Errors
/// Never.
pub fn run(setup: &Setup) -> Result<Outcome, RunError> {
    let mut noise = Noise(setup.seed.wrapping_mul(0x9e3779b97f4a7c15) + 1);
    let measured = (Instant::ZERO + setup.duration) - setup.measure_from;
    let seconds = measured.as_secs_f64();
    let line =
        setup.bss.first().map_or(setup.wired[0].forward.rate, |bss| bss.config.stations[0].mode.rate());
    let acks_per_packet = match &setup.flows[0].traffic {
        Traffic::Tcp { config, .. } => 1.0 / f64::from(config.ack_policy.every),
        Traffic::Udp { .. } => 0.0,
    };
    let n = setup.flows.len() as f64;
    let goodput =
        line.as_bps() as f64 * (0.9 - 0.18 * acks_per_packet - 0.0008 * n) * (0.995 + 0.01 * noise.next());
    let packets = goodput * seconds / 8.0 / 1448.0;
    let acks = packets * acks_per_packet;
    let tcp_run = acks > 0.0;
    let flows = (0..setup.flows.len())
        .map(|i| {
            let counters = tcp_run.then(|| tcp::Counters {
                data_segments_sent: (packets / n * 1.3) as u64,
                retransmitted_segments: (packets / n * 0.001) as u64,
                acks_sent: (acks / n * 1.3) as u64,
                data_segments_received: (packets / n * 1.3) as u64,
                rtos: 0,
                ..tcp::Counters::default()
            });
            FlowOutcome {
                flow: FlowId(i as u32),
                source: setup.flows[i].source,
                sink: setup.flows[i].sink,
                delivered: Bytes((goodput * seconds / 8.0 / n) as u64),
                delivered_total: Bytes((goodput * seconds / 8.0 / n * 1.3) as u64),
                completed_at: None,
                sender: counters,
                receiver: counters,
            }
        })
        .collect();
    let bss = setup
        .bss
        .iter()
        .map(|bss| {
            let ap = StationOutcome {
                host: bss.access_point,
                counters: StationCounters {
                    data_ppdus: (packets / 35.0) as u64,
                    data_mpdus: packets as u64,
                    delivered_first_try: (packets * 0.97) as u64,
                    delivered_after_retry: (packets * 0.03) as u64,
                    retries: (packets * 0.03) as u64,
                    delivered_bytes: (packets * 1500.0) as u64,
                    ..StationCounters::default()
                },
                queueing_delay_us: Percentiles {
                    count: 1,
                    p50: 9_000,
                    p95: 12_500,
                    p99: 14_000,
                    max: 20_000,
                },
            };
            let mut stations = vec![ap];
            stations.extend(bss.clients.iter().map(|host| StationOutcome {
                host: *host,
                counters: StationCounters {
                    data_ppdus: (acks / 17.0 / n) as u64,
                    data_mpdus: (acks / n) as u64,
                    tcp_acks_on_air: (acks / n) as u64,
                    tcp_ack_ppdus: (acks / 17.0 / n) as u64,
                    ..StationCounters::default()
                },
                queueing_delay_us: Percentiles::default(),
            }));
            BssOutcome {
                airtime: fake_airtime(measured, acks_per_packet),
                accesses: (packets / 35.0 + acks / 17.0) as u64,
                collisions: (acks / 17.0 * 0.08) as u64,
                stations,
            }
        })
        .collect();
    let mut series = Vec::new();
    if let Some(step) = setup.sample_interval {
        let mut at = Instant::ZERO + step;
        while at <= Instant::ZERO + setup.duration {
            for i in 0..setup.flows.len() {
                series.push(SeriesPoint {
                    at,
                    flow: FlowId(i as u32),
                    delivered_total: Bytes((goodput / 8.0 / n * at.as_nanos() as f64 / 1e9) as u64),
                    congestion_window: Bytes(200_000),
                    smoothed_rtt: Duration::from_millis(12),
                });
            }
            at += step;
        }
    }
    let _ = HostId(0);
    Ok(Outcome {
        digest: (noise.next() * 1e18) as u64,
        events: packets as u64,
        measured,
        flows,
        bss,
        pipes: setup.wired.iter().flat_map(|_| [PipeOutcome::default(); 2]).collect(),
        series,
    })
}

/// FAKE.
///
/// # Errors
/// Never.
pub fn run_observed(setup: &Setup, _: &mut dyn Observer) -> Result<Outcome, RunError> {
    run(setup)
}

fn fake_airtime(measured: Duration, acks_per_packet: f64) -> tacit_link::wifi::Airtime {
    let share = |f: f64| Duration::from_nanos((measured.as_nanos() as f64 * f) as u64);
    let ack = 0.1 * acks_per_packet;
    let collision = 0.04 * acks_per_packet;
    let rest = [0.0, ack, 0.02, 0.045, 0.08, collision, 0.002, 0.001].map(share);
    let data = measured.saturating_sub(rest.iter().copied().sum());
    tacit_link::wifi::Airtime::fake([data, rest[1], rest[2], rest[3], rest[4], rest[5], rest[6], rest[7]])
}
