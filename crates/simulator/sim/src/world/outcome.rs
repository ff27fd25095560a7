//! Results of a world.

use tacit_link::wifi::{Airtime, StationId};
use tacit_packet::units::{Bytes, Instant};

use super::{Channel, Wire, World, stations};
use crate::Carried;
use crate::flow::{Feeder, Flow};
use crate::record::{
    BssOutcome, FlowOutcome, LinkOutcome, Percentiles, PipeOutcome, RunOutcome, StationOutcome,
};
use crate::setup::Traffic;

impl<P: Carried> World<'_, P> {
    /// Bytes for the user of `flow` that arrived since measuring started, each counted once; bytes that the user got in
    /// order since the start; and when all of them were delivered. Counted at TCP, unless a program hands on other
    /// data.
    ///
    /// Bytes count when they arrive. If they counted when the gap before them is filled, a window that begins with a
    /// gap could show more than its channel carried in it.
    pub(super) fn user_got(&self, flow: &Flow) -> (u64, u64, Option<Instant>) {
        let program = match flow.feeder {
            Feeder::Own => None,
            Feeder::Program { number, .. } => self.programs[number as usize].app.user_got(flow.id),
        };
        program.unwrap_or_else(|| (flow.arrived_since(), flow.delivered(), flow.completed_at))
    }

    /// Results from the start of measuring until now.
    pub fn outcome(&self) -> RunOutcome {
        let measured = self.now.saturating_since(self.setup.measure_from);
        let mut digest = self.digest;
        for flow in &self.flows {
            digest.mix(flow.delivered());
        }
        let flows = self.flows.iter().map(|flow| {
            let stats = flow.stats();
            let (delivered, delivered_total, completed_at) = self.user_got(flow);
            FlowOutcome {
                flow: flow.id,
                source: flow.setup.source,
                sink: flow.setup.sink,
                user: flow.setup.user,
                delivered: Bytes(delivered),
                delivered_total: Bytes(delivered_total),
                completed_at,
                started_at: flow.setup.start,
                is_sized: matches!(flow.setup.traffic, Traffic::Connection { size: Some(_), .. }),
                lasted: completed_at.unwrap_or(self.now).saturating_since(flow.setup.start),
                sender: stats.map(|(source, _)| source),
                receiver: stats.map(|(_, sink)| sink),
                reports: flow.reports(),
                hack: self
                    .channels
                    .iter()
                    .filter_map(|channel| {
                        channel.drivers.flow_counters(flow.id, [flow.setup.source, flow.setup.sink])
                    })
                    .reduce(|sum, more| sum.plus(&more)),
            }
        });
        let ways = self
            .setup
            .wired
            .iter()
            .flat_map(|link| [(link.a, link.b, &link.forward), (link.b, link.a, &link.backward)]);
        let pipes = self.wires.iter().zip(ways);
        let pipes = pipes.map(|(Wire { pipe, before, .. }, (from, to, config))| PipeOutcome {
            from,
            to,
            counters: pipe.counters().since(before),
            queueing_delay_us: Percentiles::from(&pipe.queueing_delay_us()),
            l4s_queueing_delay_us: Some(pipe.l4s_queueing_delay_us())
                .filter(|delays| !delays.is_empty())
                .map(|delays| Percentiles::from(&delays)),
            delay: config.delay,
            capacity: config.service.capacity(self.setup.measure_from, self.now),
        });
        let channels = self.channels.iter().zip(&self.setup.bss);
        let bss = channels.map(|(Channel { bss: channel, drivers, hosts, before, .. }, set)| {
            let stations = stations(set).zip(hosts).zip(&before.stations).map(|((station, host), before)| {
                let delays_us = channel.queueing_delay_us(station);
                StationOutcome {
                    host: *host,
                    counters: channel.counters(station).since(before),
                    driver: drivers.counters(station),
                    airtime: channel.station_airtime(station),
                    queueing_delay_us: Percentiles::from(&delays_us),
                    queueing_delays_us: counts(&delays_us),
                    queueing_time: channel.queueing_time(station),
                    down: channel.turns(StationId::AP, station, self.now),
                    up: channel.turns(station, StationId::AP, self.now),
                    queue_peak_packets: channel.queue_peak(station) as u64,
                    queue_marks: channel.queue_marks(station),
                    ppdu_sizes: channel.ppdu_sizes(station),
                }
            });
            let links = channel.links().zip(&before.links).map(|(link, before)| LinkOutcome {
                airtime: channel.airtime_on(link, self.now),
                counts: channel.link_counts(link).since(before),
                stalled: channel.stalled(StationId::AP.first_function(), link, self.now),
            });
            let links: Vec<LinkOutcome> = links.collect();
            let mut held = hdrhistogram::Histogram::new(2).expect("the library allows 2 digits");
            for station in super::stations(set) {
                for (from, to) in [(StationId::AP, station), (station, StationId::AP)] {
                    held.add(channel.reorder_delay_us(from, to)).expect("the histogram grows as needed");
                }
            }
            BssOutcome {
                reorder_delay_us: Percentiles::from(&held),
                airtime: links.iter().fold(Airtime::default(), |sum, link| sum.plus(&link.airtime)),
                links,
                radios: channel.radio_times(self.now),
                stations: stations.collect(),
            }
        });
        RunOutcome {
            digest: digest.value(),
            events: self.events,
            measured,
            flows: flows.collect(),
            applications: self.programs.iter().map(|program| program.app.outcome(self.now)).collect(),
            bss: bss.collect(),
            pipes: pipes.collect(),
            series: self.series.clone(),
            adopters: self.setup.adopters,
        }
    }
}

/// The distinct values, ascending, and how often each occurred.
fn counts(delays: &hdrhistogram::Histogram<u64>) -> Vec<(u64, u64)> {
    let recorded = delays.iter_recorded();
    recorded.map(|step| (step.value_iterated_to(), step.count_since_last_iteration())).collect()
}
