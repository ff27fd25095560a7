//! Results of each hop in a run, per direction.

use serde::{Deserialize, Serialize};
use tacit_link::wifi::StationId;
use tacit_link::wired::{PipeCounters, Service};
use tacit_packet::units::{Bytes, HostId};
use tacit_sim::record::{Percentiles, PipeOutcome, StationOutcome};
use tacit_sim::{RunOutcome, Setup};

/// One direction of a hop in the measured window. Each `offered` or `duplicated` packet was delivered, dropped,
/// filtered or lost, or was in transit at the start or end of the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HopRecord {
    /// `wired`, `cellular` or `wifi`.
    pub kind: String,
    /// Name of the sending host.
    pub from: String,
    /// Name of the receiving host. Null for an access point, which sends to all of its clients, and for a client with
    /// direct links.
    pub to: Option<String>,
    /// Fate of packets. Delivered packets arrived. Dropped packets were rejected or removed by the queue. Filtered
    /// packets are pure ACKs that a later one replaced. Lost packets were lost in transit; on Wi-Fi, these are packets
    /// that did not arrive and were given up because of the retry limit or lifetime, or that were sent without
    /// acknowledgment.
    #[serde(flatten)]
    pub counters: PipeCounters,
    /// Queueing delays.
    #[serde(flatten)]
    pub queue_delays: QueueDelays,
}

/// Time from queueing to first transmission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueDelays {
    /// Median.
    #[serde(rename = "queue_delay_p50_us")]
    pub p50_us: u64,
    /// 95th percentile.
    #[serde(rename = "queue_delay_p95_us")]
    pub p95_us: u64,
    /// Maximum.
    #[serde(rename = "queue_delay_max_us")]
    pub max_us: u64,
}

impl From<&Percentiles> for QueueDelays {
    fn from(delay_us: &Percentiles) -> Self {
        Self { p50_us: delay_us.p50, p95_us: delay_us.p95, max_us: delay_us.max }
    }
}

/// The hops of `outcome`, which results from `setup`: wired links in both directions, then channels, each with the
/// access point first.
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
    HopRecord {
        kind: kind.to_owned(),
        from: name(pipe.from),
        to: Some(name(pipe.to)),
        counters: pipe.counters,
        queue_delays: QueueDelays::from(&pipe.queueing_delay_us),
    }
}

fn station_record(station: &StationOutcome, from: String, to: Option<String>) -> HopRecord {
    let counters = &station.counters;
    // Losses that were sent before the measured window may have been repaired within it.
    let unacknowledged_lost = counters.unacknowledged.saturating_sub(counters.unacknowledged_arrived);
    let given_up = counters.mpdus_dropped + unacknowledged_lost;
    let settled = counters.delivered_first_try
        + counters.delivered_after_retry
        + counters.unacknowledged
        + counters.mpdus_dropped;
    let held_and_dropped = station.driver.held_and_dropped_acks();
    HopRecord {
        kind: "wifi".to_owned(),
        from,
        to,
        counters: PipeCounters {
            offered: counters.accepted + counters.queue_drops + held_and_dropped,
            delivered: counters.arrived,
            delivered_bytes: Bytes(counters.arrived_bytes),
            dropped: counters.queue_drops + counters.queue_discards,
            filtered_acks: counters.filtered_acks + held_and_dropped,
            // A sender that misses link-layer ACKs discards packets that have arrived.
            lost: given_up.min(settled.saturating_sub(counters.arrived)),
            duplicated: 0,
        },
        queue_delays: QueueDelays::from(&station.queueing_delay_us),
    }
}

#[cfg(test)]
mod tests {
    use crate::single::Options;
    use crate::single::tests::simulate;

    #[test]
    fn every_direction_of_a_chain_is_told_and_adds_up() {
        let text = "base = \"wlan-11n-150\"\n[run]\nduration = \"3 s\"\nmeasure-from = \"0 s\"\n\
                    [[hop]]\nkind = \"wired\"\nrate = \"20Mbps\"\nduplicate = \"1 %\"\nloss = \"0.1 %\"\n\
                    [[hop]]\nkind = \"cellular\"\ndown-trace = \"lte-synthetic.down\"\nup-trace = \"lte-synthetic.up\"\n";
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("chain.toml");
        std::fs::write(&path, text).unwrap();
        let single = simulate(path.to_str().unwrap(), &[], Options::default());
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
            let counted = &hop.counters;
            let accounted = counted.delivered + counted.dropped + counted.filtered_acks + counted.lost;
            let given = counted.offered + counted.duplicated;
            assert!(accounted <= given && given - accounted < 1_100, "{hop:?}");
            assert!(counted.offered > 100, "{hop:?}");
        }
        let [wire, _, cell, ..] = &single.hops[..] else { panic!("hops") };
        assert!(wire.counters.duplicated > 10 && wire.counters.lost > 0, "{wire:?}");
        assert_eq!(
            wire.counters.delivered, cell.counters.offered,
            "packets that leave one hop enter the next"
        );
        assert!(cell.queue_delays.p95_us > cell.queue_delays.p50_us);
        assert!(single.to_text(None).contains("router-1"));
    }

    /// A client with direct links sends not only to its access point, and the access point carries none of its traffic.
    #[test]
    fn a_station_with_direct_links_sends_to_several() {
        let assignments = [
            "traffic.kind=station-to-station",
            "traffic.peer=2",
            "wifi.direct-links=all",
            "run.duration=2 s",
        ];
        let single =
            simulate("wlan-11n-150", &assignments, Options { clients: Some(2), ..Options::default() });
        let wifi: Vec<_> = single.hops.iter().filter(|hop| hop.kind == "wifi").collect();
        assert!(wifi.iter().all(|hop| hop.to.is_none()), "{wifi:?}");
        assert_eq!(wifi[0].counters.offered, 0);
        assert!(
            wifi[1].counters.delivered > wifi[2].counters.delivered && wifi[2].counters.delivered > 100,
            "{wifi:?}"
        );
        assert!(single.to_text(None).contains("client-1  ap, clients"), "{}", single.to_text(None));
    }

    /// Packets that arrived are counted by the receiver even if the sender assumes that they are lost, because no Block
    /// Ack is ever received.
    #[test]
    fn arrivals_count_where_no_block_ack_comes_back() {
        let assignments = ["wifi.link-ack-error=100 %", "run.duration=3 s", "run.measure-from=1 s"];
        let single = simulate("wlan-11n-150", &assignments, Options::default());
        let flow = &single.flows[0];
        let hop = single.hops.iter().find(|hop| hop.kind == "wifi" && hop.from == "ap").unwrap();
        assert!(flow.goodput_bps > 1e6, "{flow:?}");
        // Headers count for the hop, and some packets that arrive are sent twice.
        assert!(hop.counters.delivered_bytes.0 as f64 * 8.0 > flow.goodput_bps * 2.0, "{hop:?}");
        assert!(hop.counters.delivered > 0 && hop.counters.lost < hop.counters.delivered, "{hop:?}");
    }
}
