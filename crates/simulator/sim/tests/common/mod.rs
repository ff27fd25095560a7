//! Setups shared by the tests.
#![allow(dead_code, reason = "each test binary uses its own part")]
#![allow(clippy::unwrap_used, reason = "set-ups for tests")]

pub mod fwp;
pub mod swarm;
pub mod tack;

use tacit_between::hack;
use tacit_link::loss::Loss;
use tacit_link::queue::QueueLimit;
use tacit_link::wifi::phy::{Mode, Standard};
use tacit_link::wifi::{AccessCategory, BssConfig, StationConfig};
use tacit_link::wired::PipeConfig;
use tacit_packet::IpVersion;
use tacit_packet::units::{BitRate, Bytes, Duration, HostId, Instant};
use tacit_sim::setup::{ApDriver, BssSetup, ClientDriver, FlowSetup, Setup, Traffic, WiredSetup};
use tacit_tcp as tcp;

pub const SERVER: HostId = HostId(0);
pub const AP: HostId = HostId(1);

pub fn packets(limit: u32) -> QueueLimit {
    QueueLimit { packets: Some(limit), bytes: None }
}

pub fn pipe(rate: BitRate, delay: Duration, queue: QueueLimit, loss: Loss) -> PipeConfig {
    PipeConfig { loss, ..PipeConfig::new(rate, delay, queue.into()) }
}

/// Jain's index of fairness: (sum x)^2 / (n sum x^2).
pub fn jain(rates: &[f64]) -> f64 {
    let sum: f64 = rates.iter().sum();
    sum * sum / (rates.len() as f64 * rates.iter().map(|rate| rate * rate).sum::<f64>())
}

/// The client numbered from 0.
pub fn client(index: u32) -> HostId {
    HostId(2 + index)
}

/// TCP bulk data.
pub fn bulk(config: tcp::Config) -> Traffic {
    Traffic::Connection { config: config.into(), size: None }
}

/// Gives all stations TCP/HACK.
pub fn speak_hack(setup: &mut Setup, config: hack::Config) {
    setup.bss[0].set_drivers(ApDriver::Hack(config), ClientDriver::Hack(config));
}

/// Removes the drivers of all stations.
pub fn be_stock(setup: &mut Setup) {
    setup.bss[0].set_drivers(ApDriver::Stock, ClientDriver::Stock);
}

/// Saturating UDP in packets of `ip_len` bytes.
pub fn saturating(ip_len: u64) -> Traffic {
    Traffic::Udp {
        ip: IpVersion::V4,
        payload: Bytes(ip_len - 28),
        rate: None,
        report_after: None,
        send_buffer: None,
    }
}

/// A rate of `standard`: a fast one with one stream and an integer number of Mb/s.
pub fn usual_mbps(standard: Standard) -> u64 {
    match standard {
        Standard::A | Standard::G => 54,
        Standard::B => 11,
        Standard::N => 150,
        Standard::Ac => 390,
        Standard::Ax => 129,
        Standard::Be => 86,
    }
}

/// A server behind a 500 Mb/s link of 1 ms, an access point, and `clients` clients with one download each, started 50
/// ms apart.
pub fn wlan(standard: Standard, mbps: u64, clients: u32, traffic: &Traffic) -> Setup {
    let mode = Mode::for_rate(standard, BitRate::from_mbps(mbps)).unwrap();
    let station = StationConfig {
        downlink_queue: packets(126).into(),
        uplink_queue: packets(1000).into(),
        ..StationConfig::new(mode)
    };
    let wire = pipe(BitRate::from_mbps(500), Duration::from_millis(1), packets(1000), Loss::None);
    let mut hosts = vec!["server".to_string(), "ap".to_string()];
    hosts.extend((0..clients).map(|n| format!("client{n}")));
    Setup {
        hosts,
        wired: vec![WiredSetup { a: SERVER, b: AP, forward: wire.clone(), backward: wire }],
        bss: vec![BssSetup {
            access_point: AP.into(),
            clients: (0..clients).map(|n| client(n).into()).collect(),
            config: BssConfig::new(standard, vec![station; clients as usize]),
        }],
        flows: (0..clients)
            .map(|n| FlowSetup {
                source: SERVER,
                sink: client(n),
                start: Instant::ZERO + Duration::from_millis(50) * u64::from(n),
                stop: None,
                traffic: traffic.clone(),
                access_category: AccessCategory::BestEffort,
                user: n,
            })
            .collect(),
        applications: Vec::new(),
        duration: Duration::from_secs(6),
        measure_from: Instant::ZERO + Duration::from_secs(2),
        seed: 1,
        wire: false,
        sample_interval: None,
        adopters: None,
    }
}

/// Two hosts on one wire, with a queue of `queue_packets` in each direction and a loss model towards the sink.
pub fn wired(rate: BitRate, delay: Duration, queue_packets: u32, loss: Loss, traffic: Traffic) -> Setup {
    let forward = pipe(rate, delay, packets(queue_packets), loss);
    let backward = pipe(rate, delay, packets(10_000), Loss::None);
    let link = WiredSetup { a: HostId(0), b: HostId(1), forward, backward };
    wires(vec!["source".into(), "sink".into()], vec![link], traffic)
}

/// Hosts connected by wires, and one flow from the first to the last.
pub fn wires(hosts: Vec<String>, wired: Vec<WiredSetup>, traffic: Traffic) -> Setup {
    let sink = HostId(hosts.len() as u32 - 1);
    Setup {
        hosts,
        wired,
        bss: Vec::new(),
        flows: vec![FlowSetup {
            source: HostId(0),
            sink,
            start: Instant::ZERO,
            stop: None,
            traffic,
            access_category: AccessCategory::BestEffort,
            user: 0,
        }],
        applications: Vec::new(),
        duration: Duration::from_secs(10),
        measure_from: Instant::ZERO + Duration::from_secs(2),
        seed: 1,
        wire: false,
        sample_interval: None,
        adopters: None,
    }
}
