//! The data of the page for a run with one scheme: frames and samples as columns, and everything else as JSON.

use std::collections::BTreeMap;

use data_encoding::BASE64;
use miniz_oxide::deflate::compress_to_vec_zlib;
use serde::Serialize;
use tacit_link::wifi::{AccessCategory, BssConfig, EdcaParameters, LinkMode, StationId};
use tacit_packet::units::Duration;
use tacit_runs::air::{Kind, Ppdu, Rate, Watch};
use tacit_runs::single::Single;
use tacit_sim::record::ApplicationResult;
use tacit_sim::{RunOutcome, Setup};

use super::columns::{Coding, Column, Layout, encode};

/// Compression level of zlib. Level 9 takes four times as long for a gain of one per cent.
const LEVEL: u8 = 7;

/// A Boolean property of a PPDU: its name on the page, and a function that determines it.
type Flag = (&'static str, fn(&Ppdu) -> bool);

/// Bits of the column `flags`.
pub(super) const FLAGS: [Flag; 6] = [
    ("collided", |ppdu| ppdu.collided),
    ("moreData", |ppdu| ppdu.more_data),
    ("sync", |ppdu| ppdu.sync),
    ("again", |ppdu| ppdu.again),
    ("mixed", |ppdu| ppdu.mixed),
    ("acknowledges", |ppdu| ppdu.acknowledges.is_some()),
];

/// One scheme's part of the page, without its bytes.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Side {
    pub scheme: String,
    pub summary: String,
    /// The colour as a CSS value.
    pub ink: String,
    pub digest: String,
    pub goodput_bps: f64,
    pub command: String,
    pub duration_ns: u64,
    pub measure_from_ns: u64,
    /// Start and end of the time window.
    pub from_ns: u64,
    pub until_ns: u64,
    /// Number of PPDUs omitted because of the limit.
    pub left_out: u64,
    pub ppdus: usize,
    /// The stations, access point first, on each link.
    pub stations: Vec<String>,
    /// Number of links, and of stations on each.
    pub links: usize,
    pub hosts: usize,
    /// Most MPDUs between the start of the Block Ack window and its end.
    pub block_ack_window: u32,
    /// How long a reorder buffer waits for a missing MPDU.
    pub reorder_ns: u64,
    /// For each station, how long its one radio takes to return to listening on all links; 0 without such a radio.
    pub transition_ns: Vec<u64>,
    pub flows: Vec<Flow>,
    pub standard: &'static str,
    pub sifs_ns: u64,
    pub slot_ns: u64,
    /// Names of the access categories.
    pub categories: Vec<&'static str>,
    /// AIFS of each category, by station.
    pub aifs_ns: Vec<[u64; 4]>,
    /// If the channel was idle for more slots than this, the largest contention window, no station had anything to
    /// send.
    pub most_slots: u32,
    pub rates: Vec<RateOf>,
    pub kinds: Vec<&'static str>,
    pub flags: Vec<&'static str>,
    /// Airtime in the measured window, by use.
    pub airtime: Vec<(&'static str, f64)>,
    /// For each station: queueing delays in microseconds, ascending, each with the number of packets.
    pub waits_us: Vec<Vec<(u64, u64)>>,
    /// Completion times of flows and pages, ascending.
    pub completions_s: Vec<f64>,
    pub columns: Vec<Layout>,
    pub warnings: Vec<String>,
}

/// A flow, referred to by its index.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Flow {
    pub name: String,
    pub goodput_bps: f64,
}

/// A rate, referred to by its index.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct RateOf {
    pub bps: u64,
    pub mcs: Option<u8>,
    pub streams: u8,
    pub width_mhz: u16,
}

/// The results of one run.
pub(super) struct RunData<'a> {
    pub setup: &'a Setup,
    pub watch: &'a Watch<'a>,
    pub single: &'a Single,
    pub outcome: &'a RunOutcome,
    pub ink: String,
    /// Its label on the page.
    pub label: String,
    pub summary: &'a str,
}

impl RunData<'_> {
    /// The data of the page, and its columns, compressed and in base64.
    pub fn to_side(&self) -> (Side, String) {
        let (rates, columns) = self.columns();
        let (layouts, bytes) = encode(&columns);
        let config = &self.setup.bss[0].config;
        let phy = config.phy();
        let edca = |station| AccessCategory::ALL.map(|category| config.edca(station, category));
        let edca: Vec<_> = (0..=config.stations.len() as u16).map(|at| edca(StationId(at))).collect();
        let (count, links) = (edca.len(), config.links().count());
        let aifs = |edca: &EdcaParameters| (phy.sifs + phy.slot * u64::from(edca.aifs_slots)).as_nanos();
        let hosts: Vec<&str> =
            self.setup.bss[0].hosts().map(|host| self.setup.hosts[host.0 as usize].as_str()).collect();
        // A lane for each station on each link.
        let lane = |(link, number): (&BssConfig, usize), host: &str| match links {
            1 => host.to_owned(),
            _ => format!("{host}, link {number}: {}", link.variant.band.name()),
        };
        let lanes = config.links().zip(1..).flat_map(|link| hosts.iter().map(move |host| lane(link, host)));
        let airtime = self.single.airtime.map(|shares| shares.0);
        let uses = tacit_link::wifi::AirtimeUse::ALL;
        let side = Side {
            scheme: self.label.clone(),
            summary: self.summary.to_owned(),
            ink: self.ink.clone(),
            digest: self.single.digest.clone(),
            goodput_bps: self.single.goodput_bps,
            command: self.single.provenance.command.clone(),
            duration_ns: self.setup.duration.as_nanos(),
            measure_from_ns: self.setup.measure_from.as_nanos(),
            from_ns: self.watch.window().from.as_nanos(),
            until_ns: self.watch.window().until.as_nanos(),
            left_out: self.watch.trace.left_out,
            ppdus: self.watch.trace.ppdus.len(),
            stations: lanes.collect(),
            links,
            hosts: count,
            block_ack_window: config.block_ack_window,
            reorder_ns: config.reorder_timeout.as_nanos(),
            transition_ns: (0..count).map(|station| transition(config, station).as_nanos()).collect(),
            flows: self
                .single
                .flows
                .iter()
                .map(|flow| Flow { name: flow.name.clone(), goodput_bps: flow.goodput_bps })
                .collect(),
            standard: config.standard.name(),
            sifs_ns: phy.sifs.as_nanos(),
            slot_ns: phy.slot.as_nanos(),
            categories: AccessCategory::ALL.map(AccessCategory::name).into(),
            aifs_ns: edca
                .iter()
                .cycle()
                .take(count * links)
                .map(|categories| categories.each_ref().map(aifs))
                .collect(),
            most_slots: edca.iter().flatten().map(|edca| edca.cw_max).max().unwrap_or(0),
            rates: rates.iter().map(RateOf::from).collect(),
            kinds: Kind::NAMES.map(|(name, _)| name).into(),
            flags: FLAGS.map(|(name, _)| name).into(),
            airtime: airtime
                .map(|shares| uses.into_iter().map(tacit_link::wifi::AirtimeUse::name).zip(shares).collect())
                .unwrap_or_default(),
            // The queues of all links are shown with the first.
            waits_us: self.outcome.bss[0]
                .stations
                .iter()
                .map(|at| at.queueing_delays_us.clone())
                .chain(std::iter::repeat_with(Vec::new))
                .take(count * links)
                .collect(),
            completions_s: self.completions(),
            columns: layouts,
            warnings: self.single.warnings.clone(),
        };
        (side, BASE64.encode(&compress_to_vec_zlib(&bytes, LEVEL)))
    }

    /// Completion times of flows and of pages.
    fn completions(&self) -> Vec<f64> {
        let flows = self.single.flows.iter().filter_map(|flow| flow.duration_s);
        let pages = self.outcome.applications.iter().flat_map(|application| match &application.result {
            ApplicationResult::Pages(pages) => pages.load_times.as_slice(),
            _ => &[],
        });
        let mut all: Vec<f64> = flows.chain(pages.map(|time| time.as_secs_f64())).collect();
        all.sort_by(f64::total_cmp);
        all
    }

    fn columns(&self) -> (Vec<Rate>, Vec<Column>) {
        let mut ppdus: Vec<&Ppdu> = self.watch.trace.ppdus.iter().collect();
        // With hidden stations, frames are observed in the order in which they end.
        ppdus.sort_by_key(|ppdu| ppdu.at);
        let mut rates: Vec<Rate> = ppdus.iter().map(|ppdu| ppdu.rate).collect();
        rates.sort_unstable();
        rates.dedup();
        let mut columns = ppdu_columns(&ppdus, &rates, self.setup.bss[0].config.stations.len() as u64 + 1);
        columns.extend(self.point_columns());
        columns.extend(self.backlog_columns());
        (rates, columns)
    }

    fn point_columns(&self) -> Vec<Column> {
        let points = &self.watch.points;
        let column = |name, coding, value: fn(&tacit_sim::record::SeriesPoint) -> u64| Column {
            name,
            coding,
            values: points.iter().map(value).collect(),
        };
        let by_flow = Coding::StepBy("point_flow");
        vec![
            column("point_flow", Coding::Plain, |point| u64::from(point.flow.0)),
            column("point_at", Coding::Step, |point| point.at.as_nanos()),
            column("delivered", by_flow, |point| point.delivered_total.0),
            column("window", by_flow, |point| point.congestion_window.0),
            column("rtt", by_flow, |point| point.smoothed_rtt.as_nanos()),
            column("acknowledged", by_flow, |point| point.acknowledged_total.0),
            column("resent", by_flow, |point| point.packets_retransmitted),
            column("queueing", by_flow, |point| point.queueing.as_nanos()),
        ]
    }

    fn backlog_columns(&self) -> Vec<Column> {
        let backlogs = &self.watch.backlogs;
        vec![
            Column {
                name: "backlog_station",
                coding: Coding::Plain,
                values: backlogs.iter().map(|backlog| u64::from(backlog.station.0)).collect(),
            },
            Column {
                name: "backlog_at",
                coding: Coding::Step,
                values: backlogs.iter().map(|backlog| backlog.at.as_nanos()).collect(),
            },
            Column {
                name: "backlog",
                coding: Coding::StepBy("backlog_station"),
                values: backlogs.iter().map(|backlog| backlog.packets as u64).collect(),
            },
        ]
    }
}

/// How long the one radio of `station` takes to return to listening; zero without such a radio.
fn transition(config: &BssConfig, station: usize) -> Duration {
    let client = station.checked_sub(1).and_then(|client| config.multi_link.as_ref()?.clients.get(client));
    match client.map(|client| client.mode) {
        Some(LinkMode::SingleRadio(emlsr)) => emlsr.transition,
        _ => Duration::ZERO,
    }
}

impl From<&Rate> for RateOf {
    fn from(rate: &Rate) -> Self {
        Self { bps: rate.rate.as_bps(), mcs: rate.mcs, streams: rate.streams, width_mhz: rate.width_mhz }
    }
}

/// The value in each row. If a row has none, the last value of its flow is repeated, which takes almost no space;
/// another column indicates that it is missing.
fn carried(ppdus: &[&Ppdu], value: impl Fn(&Ppdu) -> Option<u64>) -> Vec<u64> {
    let mut last: BTreeMap<u64, u64> = BTreeMap::new();
    let carry = |ppdu: &&Ppdu| {
        let known = last.entry(flow_of(ppdu)).or_default();
        *known = value(ppdu).unwrap_or(*known);
        *known
    };
    ppdus.iter().map(carry).collect()
}

/// 0 means no flow.
fn flow_of(ppdu: &Ppdu) -> u64 {
    ppdu.flow.map_or(0, |flow| u64::from(flow.0) + 1)
}

/// The columns of `ppdus`, on links with this number of stations each.
fn ppdu_columns(ppdus: &[&Ppdu], rates: &[Rate], stations: u64) -> Vec<Column> {
    let column = |name, coding, value: &dyn Fn(&Ppdu) -> u64| Column {
        name,
        coding,
        values: ppdus.iter().map(|ppdu| value(ppdu)).collect(),
    };
    let plain = |name, value: &dyn Fn(&Ppdu) -> u64| column(name, Coding::Plain, value);
    let by_flow = |name, values| Column { name, coding: Coding::StepBy("flow"), values };
    let rate_of = |ppdu: &Ppdu| rates.binary_search(&ppdu.rate).expect("all rates are listed") as u64;
    let flags = |ppdu: &Ppdu| {
        let bits = FLAGS.iter().enumerate().filter(|(_, (_, is_set))| is_set(ppdu));
        bits.map(|(bit, _)| 1 << bit).sum()
    };
    let place = |ppdu: &Ppdu| ppdu.category as u64;
    let lane = |ppdu: &Ppdu, station: StationId| u64::from(ppdu.link.0) * stations + u64::from(station.0);
    let mac_count =
        |ppdu: &Ppdu| ppdu.mac.map_or(0, |[first, last]| u64::from((4096 + last - first) % 4096) + 1);
    vec![
        column("at", Coding::Step, &|ppdu| ppdu.at.as_nanos()),
        plain("duration", &|ppdu| ppdu.duration.as_nanos()),
        plain("idle", &|ppdu| ppdu.idle_before.as_nanos()),
        plain("nav", &|ppdu| ppdu.reserves.as_nanos()),
        plain("from", &|ppdu| lane(ppdu, ppdu.transmitter)),
        // 0 means broadcast.
        plain("to", &|ppdu| ppdu.receiver.map_or(0, |station| lane(ppdu, station) + 1)),
        plain("kind", &|ppdu| ppdu.kind.place() as u64),
        plain("flags", &flags),
        plain("category", &place),
        plain("rate", &rate_of),
        plain("mpdus", &|ppdu| ppdu.arrived.len() as u64),
        plain("lost", &|ppdu| ppdu.lost() as u64),
        plain("retries", &|ppdu| ppdu.retries as u64),
        plain("appended", &|ppdu| ppdu.appended as u64),
        plain("bytes", &|ppdu| u64::from(ppdu.bytes)),
        plain("acked", &|ppdu| u64::from(ppdu.acknowledged)),
        column("mac", Coding::StepBy("from"), &|ppdu| ppdu.mac.map_or(0, |[first, _]| u64::from(first))),
        plain("mac_count", &mac_count),
        plain("flow", &flow_of),
        by_flow("sequence", carried(ppdus, |ppdu| ppdu.sequence.map(|[from, _]| from))),
        plain("sequence_count", &|ppdu| ppdu.sequence.map_or(0, |[from, to]| to - from)),
        by_flow("acknowledges", carried(ppdus, |ppdu| ppdu.acknowledges)),
        Column {
            name: "which_lost",
            coding: Coding::Plain,
            // If all MPDUs of a PPDU were lost, the count suffices.
            values: ppdus
                .iter()
                .filter(|ppdu| !ppdu.is_lost())
                .flat_map(|ppdu| ppdu.which_lost())
                .map(u64::from)
                .collect(),
        },
    ]
}
