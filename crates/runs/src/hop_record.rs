//! What happened on each hop of a run, direction by direction.

use serde::{Deserialize, Serialize};
use tacit_link::wifi::StationId;
use tacit_link::wired::Service;
use tacit_proto::units::HostId;
use tacit_sim::record::{Percentiles, PipeOutcome, StationOutcome};
use tacit_sim::{RunOutcome, Setup};

/// One direction of a hop in the measured window. `offered` and `duplicated` packets are delivered, dropped,
/// filtered, lost, or were on their way when the window began or ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HopRecord {
    /// `wired`, `cellular` or `wifi`.
    pub kind: String,
    /// Name of the host that sends.
    pub from: String,
    /// Name of the host that receives; null for an access point, which sends to all its clients, and for a client with
    /// direct links.
    pub to: Option<String>,
    /// Packets offered to its queue.
    pub offered: u64,
    /// Packets that came out, counted where they arrive.
    pub delivered: u64,
    /// Bytes of those.
    pub delivered_bytes: u64,
    /// Packets its queue refused or threw out.
    pub dropped: u64,
    /// Pure ACKs that a filter dropped because a later one says it all.
    pub filtered_acks: u64,
    /// Packets lost on the way; for Wi-Fi, given up and not arrived: retry limit or lifetime, or sent unacknowledged in
    /// vain.
    pub lost: u64,
    /// Copies made on the way.
    pub duplicated: u64,
    /// Time from queueing to first transmission: median.
    pub queue_delay_p50_us: u64,
    /// Time from queueing to first transmission: 95th percentile.
    pub queue_delay_p95_us: u64,
    /// Time from queueing to first transmission: longest.
    pub queue_delay_max_us: u64,
}

/// The hops of `outcome`, which came of `setup`: wires forth and back, then channels, access points first.
pub fn hop_records(setup: &Setup, outcome: &RunOutcome) -> Vec<HopRecord> {
    let name = |host: HostId| setup.hosts[host.0 as usize].clone();
    let services = setup.wired.iter().flat_map(|link| [&link.forward.service, &link.backward.service]);
    let pipes = outcome.pipes.iter().zip(services);
    let pipes = pipes.map(|(pipe, service)| pipe_record(pipe, service, &name));
    let stations = outcome.bss.iter().zip(&setup.bss).flat_map(|(bss, set)| {
        let access_point = bss.stations.first().map(|station| name(station.host));
        let direct = &set.config.direct_links;
        let sends_to_several =
            |id: &StationId| *id == StationId::AP || direct.iter().any(|link| link.from == *id);
        let ends =
            (0..).map(StationId).map(move |id| access_point.clone().filter(|_| !sends_to_several(&id)));
        bss.stations.iter().zip(ends)
    });
    pipes.chain(stations.map(|(station, to)| station_record(station, name(station.host), to))).collect()
}

fn pipe_record(pipe: &PipeOutcome, service: &Service, name: &impl Fn(HostId) -> String) -> HopRecord {
    let kind = match service {
        Service::Rate(_) | Service::Script(_) => "wired",
        Service::Trace(_) => "cellular",
    };
    let counters = &pipe.counters;
    HopRecord {
        offered: counters.offered,
        delivered: counters.delivered,
        delivered_bytes: counters.delivered_bytes.0,
        dropped: counters.dropped,
        filtered_acks: counters.filtered_acks,
        lost: counters.lost,
        duplicated: counters.duplicated,
        ..HopRecord::new(kind, name(pipe.from), Some(name(pipe.to)), &pipe.queueing_delay_us)
    }
}

fn station_record(station: &StationOutcome, from: String, to: Option<String>) -> HopRecord {
    let counters = &station.counters;
    // What was sent before measuring began may have been repaired since.
    let unacknowledged_lost = counters.unacknowledged.saturating_sub(counters.unacknowledged_arrived);
    let given_up = counters.mpdus_dropped + unacknowledged_lost;
    let settled = counters.delivered_first_try
        + counters.delivered_after_retry
        + counters.unacknowledged
        + counters.mpdus_dropped;
    HopRecord {
        offered: counters.accepted + counters.queue_drops + station.driver.held_and_dropped_acks(),
        delivered: counters.arrived,
        delivered_bytes: counters.arrived_bytes,
        dropped: counters.queue_drops + counters.queue_discards,
        filtered_acks: counters.filtered_acks + station.driver.held_and_dropped_acks(),
        // A sender that hears no link-layer ACK gives up what has arrived.
        lost: given_up.min(settled.saturating_sub(counters.arrived)),
        ..HopRecord::new("wifi", from, to, &station.queueing_delay_us)
    }
}

impl HopRecord {
    /// One that counted nothing.
    fn new(kind: &'static str, from: String, to: Option<String>, delay_us: &Percentiles) -> Self {
        Self {
            kind: kind.to_owned(),
            from,
            to,
            offered: 0,
            delivered: 0,
            delivered_bytes: 0,
            dropped: 0,
            filtered_acks: 0,
            lost: 0,
            duplicated: 0,
            queue_delay_p50_us: delay_us.p50,
            queue_delay_p95_us: delay_us.p95,
            queue_delay_max_us: delay_us.max,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::single::{Options, prepare};

    #[test]
    fn every_direction_of_a_chain_is_told_and_adds_up() {
        let text = "base = \"wlan-11n-150\"\n[run]\nduration = \"3 s\"\nmeasure-from = \"0 s\"\n\
                    [[hop]]\nkind = \"wired\"\nrate = \"20Mbps\"\nduplicate = \"1 %\"\nloss = \"0.1 %\"\n\
                    [[hop]]\nkind = \"cellular\"\ndown-trace = \"lte-synthetic.down\"\nup-trace = \"lte-synthetic.up\"\n";
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("chain.toml");
        std::fs::write(&path, text).unwrap();
        let scenario = path.to_str().unwrap().to_owned();
        let single = prepare(&Options { scenario, seed: 1, ..Options::default() })
            .unwrap()
            .run(crate::sweep::Control::unattended())
            .unwrap();
        let ends: Vec<_> =
            single.hops.iter().map(|hop| (hop.kind.as_str(), &*hop.from, hop.to.as_deref())).collect();
        assert_eq!(
            ends,
            [
                ("wired", "server", Some("router-1")),
                ("wired", "router-1", Some("server")),
                ("cellular", "router-1", Some("ap")),
                ("cellular", "ap", Some("router-1")),
                ("wifi", "ap", None),
                ("wifi", "client-1", Some("ap")),
            ]
        );
        for hop in &single.hops {
            let accounted = hop.delivered + hop.dropped + hop.filtered_acks + hop.lost;
            let given = hop.offered + hop.duplicated;
            assert!(accounted <= given && given - accounted < 1_100, "{hop:?}");
            assert!(hop.offered > 100, "{hop:?}");
        }
        let [wire, _, cell, ..] = &single.hops[..] else { panic!("hops") };
        assert!(wire.duplicated > 10 && wire.lost > 0, "{wire:?}");
        assert_eq!(wire.delivered, cell.offered, "what leaves one hop enters the next");
        assert!(cell.queue_delay_p95_us > cell.queue_delay_p50_us);
        assert!(single.to_text().contains("router-1"));
    }

    /// Over a direct link a client is no hop to its access point, and the access point carries nothing.
    #[test]
    fn who_has_direct_links_sends_to_several() {
        let assignments = [
            "traffic.kind=station-to-station",
            "traffic.peer=2",
            "wifi.direct-links=all",
            "run.duration=2 s",
        ];
        let single = prepare(&Options {
            scenario: "wlan-11n-150".into(),
            assignments: assignments.map(str::to_owned).to_vec(),
            clients: Some(2),
            seed: 1,
            ..Options::default()
        })
        .unwrap()
        .run(crate::sweep::Control::unattended())
        .unwrap();
        let wifi: Vec<_> = single.hops.iter().filter(|hop| hop.kind == "wifi").collect();
        assert!(wifi.iter().all(|hop| hop.to.is_none()), "{wifi:?}");
        assert_eq!(wifi[0].offered, 0);
        assert!(wifi[1].delivered > wifi[2].delivered && wifi[2].delivered > 100, "{wifi:?}");
        assert!(single.to_text().contains("client-1  ap, clients"), "{}", single.to_text());
    }

    /// A receiver counts what its sender takes for lost: no Block Ack ever comes back.
    #[test]
    fn what_arrives_counts_where_no_block_ack_comes_back() {
        let assignments = ["wifi.link-ack-error=100 %", "run.duration=3 s", "run.measure-from=1 s"];
        let single = prepare(&Options {
            scenario: "wlan-11n-150".into(),
            assignments: assignments.map(str::to_owned).to_vec(),
            seed: 1,
            ..Options::default()
        })
        .unwrap()
        .run(crate::sweep::Control::unattended())
        .unwrap();
        let flow = &single.flows[0];
        let hop = single.hops.iter().find(|hop| hop.kind == "wifi" && hop.from == "ap").unwrap();
        assert!(flow.goodput_bps > 1e6, "{flow:?}");
        // Headers are the hop's, and some of what arrives is sent twice.
        assert!(hop.delivered_bytes as f64 * 8.0 > flow.goodput_bps * 2.0, "{hop:?}");
        assert!(hop.delivered > 0 && hop.lost < hop.delivered, "{hop:?}");
    }
}
