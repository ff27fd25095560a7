//! Records as sheets, and sheets as records.

use std::collections::BTreeMap;

use super::sheet::{Column, Sheet};
use crate::application::ApplicationRecord;
use crate::metric;
use crate::record::{FlowRecord, Label, RunRecord, SampleRecord};

pub(super) fn runs(records: &[RunRecord]) -> Sheet {
    let mut sheet = Sheet::default();
    let labels = || records.iter().map(|record| &record.label);
    sheet.text("run", records.iter().map(|record| record.id.as_str()));
    sheet.text("scenario", labels().map(|label| label.scenario.as_str()));
    sheet.text("scheme", labels().map(|label| label.scheme.as_str()));
    sheet.integer("clients", labels().map(|label| Some(label.clients.into())));
    sheet.number("x", labels().map(|label| label.x));
    sheet.number("best_of", labels().map(|label| label.best_of));
    sheet.integer("seed", labels().map(|label| Some(label.seed)));
    sheet.text("scenario_text", records.iter().map(|record| record.scenario_text.as_str()));
    sheet.text("digest", records.iter().map(|record| record.digest.as_str()));
    sheet.number("measured_s", records.iter().map(|record| Some(record.measured_s)));
    for (index, metric) in metric::ALL.iter().enumerate() {
        let value = |record: &RunRecord| record.metrics.get(index).copied().flatten();
        sheet.number(metric.name, records.iter().map(value));
    }
    sheet
}

/// A sheet with a row for each part of a run, which says first whose part it is.
pub(super) fn labelled<'a>(runs: impl Iterator<Item = &'a RunRecord> + Clone) -> Sheet {
    let mut sheet = Sheet::default();
    sheet.text("run", runs.clone().map(|record| record.id.as_str()));
    sheet.text("scheme", runs.clone().map(|record| record.label.scheme.as_str()));
    sheet.integer("clients", runs.clone().map(|record| Some(record.label.clients.into())));
    sheet.integer("seed", runs.map(|record| Some(record.label.seed)));
    sheet
}

pub(super) fn flows(records: &[RunRecord]) -> Sheet {
    let rows: Vec<(&RunRecord, &FlowRecord)> =
        records.iter().flat_map(|record| record.flows.iter().map(move |flow| (record, flow))).collect();
    let mut sheet = labelled(rows.iter().map(|(record, _)| *record));
    let flows = || rows.iter().map(|(_, flow)| *flow);
    sheet.integer("flow", flows().map(|flow| Some(flow.flow.into())));
    sheet.integer("source", flows().map(|flow| Some(flow.source.into())));
    sheet.integer("sink", flows().map(|flow| Some(flow.sink.into())));
    sheet.number("goodput_bps", flows().map(|flow| Some(flow.goodput_bps)));
    sheet.number("transfer_goodput_bps", flows().map(|flow| Some(flow.transfer_goodput_bps)));
    sheet.integer("delivered_bytes", flows().map(|flow| Some(flow.delivered_bytes)));
    sheet.number("completed_s", flows().map(|flow| flow.completed_s));
    sheet.integer("retransmitted_segments", flows().map(|flow| flow.retransmitted_segments));
    sheet.integer("rtos", flows().map(|flow| flow.rtos));
    sheet.integer("data_segments_sent", flows().map(|flow| flow.data_segments_sent));
    sheet.integer("acks_sent", flows().map(|flow| flow.acks_sent));
    sheet.integer("native_acks", flows().map(|flow| flow.native_acks));
    sheet.integer("compressed_acks", flows().map(|flow| flow.compressed_acks));
    sheet.integer("compressed_octets", flows().map(|flow| flow.compressed_octets));
    sheet.integer("uncompressed_octets", flows().map(|flow| flow.uncompressed_octets));
    sheet
}

pub(super) fn applications(records: &[RunRecord]) -> Sheet {
    let rows: Vec<(&RunRecord, &ApplicationRecord)> = records
        .iter()
        .flat_map(|record| record.applications.iter().map(move |application| (record, application)))
        .collect();
    let mut sheet = labelled(rows.iter().map(|(record, _)| *record));
    let all = || rows.iter().map(|(_, application)| *application);
    sheet.text("name", all().map(|application| application.name.as_str()));
    sheet.text("application", all().map(|application| application.application.as_str()));
    sheet.integer("first_flow", all().map(|application| Some(application.first_flow.into())));
    sheet.integer("connections", all().map(|application| Some(application.connections.into())));
    sheet.integer("pages_completed", all().map(|application| application.pages_completed));
    sheet.number("page_load_p50_ms", all().map(|application| application.page_load_p50_ms));
    sheet.number("page_load_p95_ms", all().map(|application| application.page_load_p95_ms));
    sheet.number("page_load_mean_ms", all().map(|application| application.page_load_mean_ms));
    sheet.integer("on_periods", all().map(|application| application.on_periods));
    sheet.number("on_time_s", all().map(|application| application.on_time_s));
    sheet.integer("frames_played", all().map(|application| application.frames_played));
    sheet.integer("frames_damaged", all().map(|application| application.frames_damaged));
    sheet.integer("rebuffers", all().map(|application| application.rebuffers));
    sheet.number("rebuffering_s", all().map(|application| application.rebuffering_s));
    sheet.number("rebuffering_ratio", all().map(|application| application.rebuffering_ratio));
    sheet.number("start_up_ms", all().map(|application| application.start_up_ms));
    sheet
}

pub(super) fn series(records: &[RunRecord]) -> Sheet {
    let rows: Vec<(&RunRecord, &SampleRecord)> =
        records.iter().flat_map(|record| record.series.iter().map(move |sample| (record, sample))).collect();
    let mut sheet = labelled(rows.iter().map(|(record, _)| *record));
    let samples = || rows.iter().map(|(_, sample)| *sample);
    sheet.number("at_s", samples().map(|sample| Some(sample.at_s)));
    sheet.integer("flow", samples().map(|sample| Some(sample.flow.into())));
    sheet.integer("delivered_bytes", samples().map(|sample| Some(sample.delivered_bytes)));
    sheet.integer("congestion_window_bytes", samples().map(|sample| Some(sample.congestion_window_bytes)));
    sheet.integer("smoothed_rtt_us", samples().map(|sample| Some(sample.smoothed_rtt_us)));
    sheet
}

/// Puts the sheets of a sweep back together.
pub(super) fn records(
    runs: &Sheet,
    flows: &Sheet,
    applications: &Sheet,
    series: &Sheet,
) -> Result<Vec<RunRecord>, String> {
    let mut applications_of: BTreeMap<&str, Vec<ApplicationRecord>> = BTreeMap::new();
    let ids = Cells::new(applications, "run")?;
    for (row, application) in read_applications(applications)?.into_iter().enumerate() {
        applications_of.entry(ids.text(row)).or_default().push(application);
    }
    let mut flows_of: BTreeMap<&str, Vec<FlowRecord>> = BTreeMap::new();
    let mut samples_of: BTreeMap<&str, Vec<SampleRecord>> = BTreeMap::new();
    let ids = Cells::new(flows, "run")?;
    for (row, flow) in read_flows(flows)?.into_iter().enumerate() {
        flows_of.entry(ids.text(row)).or_default().push(flow);
    }
    let ids = Cells::new(series, "run")?;
    for (row, sample) in read_samples(series)?.into_iter().enumerate() {
        samples_of.entry(ids.text(row)).or_default().push(sample);
    }
    let cells = |name| Cells::new(runs, name);
    let (id, scenario, scheme, digest) =
        (cells("run")?, cells("scenario")?, cells("scheme")?, cells("digest")?);
    let (clients, x, best_of) = (cells("clients")?, cells("x")?, cells("best_of")?);
    let (seed, measured) = (cells("seed")?, cells("measured_s")?);
    let scenario_text = cells("scenario_text")?;
    let metrics = metric::ALL.iter().map(|metric| cells(metric.name)).collect::<Result<Vec<_>, _>>()?;
    let record = |row| RunRecord {
        id: id.text(row).to_owned(),
        label: Label {
            scenario: scenario.text(row).to_owned(),
            scheme: scheme.text(row).to_owned(),
            clients: clients.small(row),
            x: x.number(row),
            best_of: best_of.number(row),
            seed: seed.integer(row).unwrap_or_default(),
        },
        scenario_text: scenario_text.text(row).to_owned(),
        digest: digest.text(row).to_owned(),
        measured_s: measured.number(row).unwrap_or_default(),
        metrics: metrics.iter().map(|metric| metric.number(row)).collect(),
        flows: flows_of.get(id.text(row)).cloned().unwrap_or_default(),
        applications: applications_of.get(id.text(row)).cloned().unwrap_or_default(),
        hops: Vec::new(),
        stations: Vec::new(),
        series: samples_of.get(id.text(row)).cloned().unwrap_or_default(),
    };
    Ok((0..id.len()).map(record).collect())
}

fn read_flows(sheet: &Sheet) -> Result<Vec<FlowRecord>, String> {
    let cells = |name| Cells::new(sheet, name);
    let (flow, source, sink) = (cells("flow")?, cells("source")?, cells("sink")?);
    let (goodput, delivered, completed) =
        (cells("goodput_bps")?, cells("delivered_bytes")?, cells("completed_s")?);
    let (retransmitted, rtos) = (cells("retransmitted_segments")?, cells("rtos")?);
    let (data, acks) = (cells("data_segments_sent")?, cells("acks_sent")?);
    let (native, compressed) = (cells("native_acks")?, cells("compressed_acks")?);
    let (octets, uncompressed) = (cells("compressed_octets")?, cells("uncompressed_octets")?);
    let transfer = cells("transfer_goodput_bps")?;
    let record = |row| FlowRecord {
        flow: flow.small(row),
        source: source.small(row),
        sink: sink.small(row),
        goodput_bps: goodput.number(row).unwrap_or_default(),
        transfer_goodput_bps: transfer.number(row).unwrap_or_default(),
        delivered_bytes: delivered.integer(row).unwrap_or_default(),
        completed_s: completed.number(row),
        retransmitted_segments: retransmitted.integer(row),
        rtos: rtos.integer(row),
        data_segments_sent: data.integer(row),
        acks_sent: acks.integer(row),
        native_acks: native.integer(row),
        compressed_acks: compressed.integer(row),
        compressed_octets: octets.integer(row),
        uncompressed_octets: uncompressed.integer(row),
    };
    Ok((0..flow.len()).map(record).collect())
}

fn read_applications(sheet: &Sheet) -> Result<Vec<ApplicationRecord>, String> {
    let cells = |name| Cells::new(sheet, name);
    let (name, application) = (cells("name")?, cells("application")?);
    let (first_flow, connections) = (cells("first_flow")?, cells("connections")?);
    let (pages, p50) = (cells("pages_completed")?, cells("page_load_p50_ms")?);
    let (p95, mean) = (cells("page_load_p95_ms")?, cells("page_load_mean_ms")?);
    let (periods, on_time) = (cells("on_periods")?, cells("on_time_s")?);
    let (played, damaged) = (cells("frames_played")?, cells("frames_damaged")?);
    let (rebuffers, rebuffering) = (cells("rebuffers")?, cells("rebuffering_s")?);
    let (ratio, start_up) = (cells("rebuffering_ratio")?, cells("start_up_ms")?);
    let record = |row| ApplicationRecord {
        name: name.text(row).to_owned(),
        application: application.text(row).to_owned(),
        first_flow: first_flow.small(row),
        connections: connections.small(row),
        pages_completed: pages.integer(row),
        page_load_p50_ms: p50.number(row),
        page_load_p95_ms: p95.number(row),
        page_load_mean_ms: mean.number(row),
        on_periods: periods.integer(row),
        on_time_s: on_time.number(row),
        frames_played: played.integer(row),
        frames_damaged: damaged.integer(row),
        rebuffers: rebuffers.integer(row),
        rebuffering_s: rebuffering.number(row),
        rebuffering_ratio: ratio.number(row),
        start_up_ms: start_up.number(row),
    };
    Ok((0..name.len()).map(record).collect())
}

fn read_samples(sheet: &Sheet) -> Result<Vec<SampleRecord>, String> {
    let cells = |name| Cells::new(sheet, name);
    let (at, flow, delivered) = (cells("at_s")?, cells("flow")?, cells("delivered_bytes")?);
    let (window, rtt) = (cells("congestion_window_bytes")?, cells("smoothed_rtt_us")?);
    let record = |row| SampleRecord {
        at_s: at.number(row).unwrap_or_default(),
        flow: flow.small(row),
        delivered_bytes: delivered.integer(row).unwrap_or_default(),
        congestion_window_bytes: window.integer(row).unwrap_or_default(),
        smoothed_rtt_us: rtt.integer(row).unwrap_or_default(),
    };
    Ok((0..at.len()).map(record).collect())
}

/// A column by name; cells of another type than asked for read as absent.
pub(super) struct Cells<'a>(&'a Column);

impl<'a> Cells<'a> {
    pub fn new(sheet: &'a Sheet, name: &str) -> Result<Self, String> {
        let column = sheet.columns.iter().find(|(column, _)| column == name);
        column.map(|(_, column)| Self(column)).ok_or_else(|| format!("there is no column {name:?}"))
    }

    pub fn len(&self) -> usize {
        match self.0 {
            Column::Text(values) => values.len(),
            Column::Integer(values) => values.len(),
            Column::Number(values) => values.len(),
        }
    }

    pub fn text(&self, row: usize) -> &'a str {
        match self.0 {
            Column::Text(values) => values.get(row).map_or("", String::as_str),
            _ => "",
        }
    }

    fn integer(&self, row: usize) -> Option<u64> {
        match self.0 {
            Column::Integer(values) => {
                values.get(row).copied().flatten().and_then(|value| value.try_into().ok())
            }
            _ => None,
        }
    }

    fn small(&self, row: usize) -> u32 {
        self.integer(row).and_then(|value| value.try_into().ok()).unwrap_or_default()
    }

    fn number(&self, row: usize) -> Option<f64> {
        match self.0 {
            Column::Number(values) => values.get(row).copied().flatten(),
            _ => None,
        }
    }
}
