//! Results of each program in a run, in flat form.

use serde::{Deserialize, Serialize};
use tacit_packet::units::Duration;
use tacit_scenario::table::{TextTable, number, number_or_dash};
use tacit_sim::RunOutcome;
use tacit_sim::record::{
    ApplicationOutcome, ApplicationResult, Downloaded, OnOffTimes, PageLoads, VideoPlayed,
};

/// Results of a program in the measured window. Values that do not apply to its kind are null.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ApplicationRecord {
    /// Its name.
    pub name: String,
    /// `request-response`, `on-off`, `streaming` or `download`.
    pub application: String,
    /// Number of its first flow. Those of its other connections follow.
    pub first_flow: u32,
    /// Number of flows.
    pub connections: u32,
    /// Number of completed pages.
    pub pages_completed: Option<u64>,
    /// Median page load time, from the request for the document to the last byte. Null without a completed page.
    pub page_load_p50_ms: Option<f64>,
    /// 95th percentile of the page load time. Null without a completed page.
    pub page_load_p95_ms: Option<f64>,
    /// Mean page load time. Null without a completed page.
    pub page_load_mean_ms: Option<f64>,
    /// All page load times in ascending order.
    #[serde(default)]
    pub page_loads_ms: Vec<f64>,
    /// Number of times that it started to send.
    pub on_periods: Option<u64>,
    /// Total duration of its on periods.
    pub on_time_s: Option<f64>,
    /// Number of frames played.
    pub frames_played: Option<u64>,
    /// Number of these with missing bytes.
    pub frames_damaged: Option<u64>,
    /// Number of times that the play-out buffer became empty.
    pub rebuffers: Option<u64>,
    /// Total time that playback was stalled for this reason.
    pub rebuffering_s: Option<f64>,
    /// Stalled time divided by the time from the first frame to the last.
    pub rebuffering_ratio: Option<f64>,
    /// From the start of the source to the first frame played.
    pub start_up_ms: Option<f64>,
    /// Bytes of a repaired download that its user received in order.
    pub released_bytes: Option<u64>,
    /// Number of holes in it and in the responses that repair it.
    pub holes: Option<u64>,
    /// Number of bytes in these holes.
    pub placeholder_bytes: Option<u64>,
    /// Number of these bytes whose original arrived later.
    pub late_bytes: Option<u64>,
    /// Number of requests for bytes in holes.
    pub repair_requests: Option<u64>,
    /// Number of these whose response left some bytes missing.
    pub repeated_repairs: Option<u64>,
    /// Median time from the detection of a hole to the release of its last byte.
    pub repair_delay_p50_ms: Option<f64>,
    /// 95th percentile of the time from the detection of a hole to the release of its last byte.
    pub repair_delay_p95_ms: Option<f64>,
    /// Bytes of requests, response heads and response bodies, divided by the bytes that the user received: the overhead
    /// of repair on the path from the server.
    pub internet_overhead: Option<f64>,
    /// Bytes of requests and response heads, divided by the bytes that the user received: the overhead of repair over
    /// HTTP on the Wi-Fi.
    pub wireless_overhead: Option<f64>,
    /// Maximum number of bytes buffered after holes, in the whole run.
    pub held_peak_bytes: Option<u64>,
    /// Whether the download failed.
    pub failed: Option<bool>,
}

/// The records of the programs in `outcome`.
pub fn application_records(outcome: &RunOutcome) -> Vec<ApplicationRecord> {
    outcome.applications.iter().map(ApplicationRecord::new).collect()
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

impl ApplicationRecord {
    fn new(outcome: &ApplicationOutcome) -> Self {
        let record = Self {
            name: outcome.name.clone(),
            first_flow: outcome.flows.first().map_or(0, |flow| flow.0),
            connections: u32::try_from(outcome.flows.len()).unwrap_or(u32::MAX),
            ..Self::default()
        };
        match &outcome.result {
            ApplicationResult::Pages(loads) => record.with_pages(loads),
            ApplicationResult::OnOff(times) => record.with_times(times),
            ApplicationResult::Stream(video) => record.with_video(video),
            ApplicationResult::Download(got) => record.with_download(got),
        }
    }

    fn with_pages(self, loads: &PageLoads) -> Self {
        Self {
            application: "request-response".to_owned(),
            pages_completed: Some(loads.load_times.len() as u64),
            page_load_p50_ms: loads.percentile(50).map(ms),
            page_load_p95_ms: loads.percentile(95).map(ms),
            page_load_mean_ms: loads.mean_s().map(|mean| mean * 1e3),
            page_loads_ms: loads.load_times.iter().copied().map(ms).collect(),
            ..self
        }
    }

    fn with_times(self, times: &OnOffTimes) -> Self {
        Self {
            application: "on-off".to_owned(),
            on_periods: Some(times.periods),
            on_time_s: Some(times.on_time.as_secs_f64()),
            ..self
        }
    }

    fn with_video(self, video: &VideoPlayed) -> Self {
        Self {
            application: "streaming".to_owned(),
            frames_played: Some(video.frames_played),
            frames_damaged: Some(video.frames_damaged),
            rebuffers: Some(video.rebuffers),
            rebuffering_s: Some(video.rebuffering.as_secs_f64()),
            rebuffering_ratio: video.rebuffering_ratio(),
            start_up_ms: video.start_up.map(ms),
            ..self
        }
    }

    fn with_download(self, got: &Downloaded) -> Self {
        let delay = |us: u64| (got.repair_delay_us.count > 0).then_some(us as f64 / 1e3);
        Self {
            application: "download".to_owned(),
            released_bytes: Some(got.released.0),
            holes: Some(got.holes),
            placeholder_bytes: Some(got.hole_bytes.0),
            late_bytes: Some(got.late_bytes.0),
            repair_requests: Some(got.repair_requests),
            repeated_repairs: Some(got.repeated_repairs),
            repair_delay_p50_ms: delay(got.repair_delay_us.p50),
            repair_delay_p95_ms: delay(got.repair_delay_us.p95),
            internet_overhead: got.internet_overhead(),
            wireless_overhead: got.wireless_overhead(),
            held_peak_bytes: Some(got.held_peak.0),
            failed: Some(got.failure.is_some()),
            ..self
        }
    }

    /// One line with the results that matter to the user.
    fn summary(&self) -> String {
        if let Some(pages) = self.pages_completed {
            let ms = |value| number_or_dash(value, 1);
            return format!(
                "{pages} pages in {} ms median, {} ms 95th percentile, {} ms mean",
                ms(self.page_load_p50_ms),
                ms(self.page_load_p95_ms),
                ms(self.page_load_mean_ms)
            );
        }
        if let (Some(periods), Some(on_time)) = (self.on_periods, self.on_time_s) {
            return format!("on {periods} times, {} s in all", number(on_time, 2));
        }
        if let (Some(holes), Some(requests)) = (self.holes, self.repair_requests) {
            return format!(
                "{} MB in order, {holes} holes, {requests} repairs, {} ms median until repaired, {} ms 95th percentile{}",
                number_or_dash(self.released_bytes.map(|bytes| bytes as f64 / 1e6), 1),
                number_or_dash(self.repair_delay_p50_ms, 1),
                number_or_dash(self.repair_delay_p95_ms, 1),
                if self.failed == Some(true) { "; given up" } else { "" },
            );
        }
        format!(
            "{} frames, {} damaged; waited {} times, {} % of the time; first frame after {} ms",
            number_or_dash(self.frames_played.map(|count| count as f64), 0),
            number_or_dash(self.frames_damaged.map(|count| count as f64), 0),
            number_or_dash(self.rebuffers.map(|count| count as f64), 0),
            number_or_dash(self.rebuffering_ratio.map(|ratio| ratio * 100.0), 1),
            number_or_dash(self.start_up_ms, 1)
        )
    }
}

/// The programs as a text table; empty if there are none.
pub(crate) fn to_text(records: &[ApplicationRecord]) -> String {
    if records.is_empty() {
        return String::new();
    }
    let mut table = TextTable::new(&[["application"], ["flows"], ["seen by its user"]]);
    for record in records {
        let last = record.first_flow + record.connections.saturating_sub(1);
        let flows = match record.connections {
            1 => last.to_string(),
            _ => format!("{} to {last}", record.first_flow),
        };
        table.push(vec![record.name.clone(), flows, record.summary()]);
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use tacit_scenario::Scenario;

    use super::*;
    use crate::metric;

    const HOUSEHOLD: &str = include_str!("../../scenario/tests/household.toml");

    #[test]
    fn a_run_says_what_its_users_saw() {
        let scenario = Scenario::parse("household.toml", HOUSEHOLD, &[]).unwrap();
        let outcome = tacit_sim::run(&scenario.setup(3, 1).unwrap()).unwrap();
        let records = application_records(&outcome);
        let value_of = |name: &str| metric::ALL[metric::position(name).unwrap()].value(&outcome);
        let pages: u64 = records.iter().filter_map(|record| record.pages_completed).sum();
        assert!(pages > 5, "{records:?}");
        assert_eq!(value_of("pages_completed"), Some(pages as f64));
        let [.., video, _] = &records[..] else { panic!("{records:?}") };
        // One second is buffered from 500 ms on, and the rest is played at 30 frames per second.
        let frames = video.frames_played.unwrap();
        assert!((130..=136).contains(&frames), "{video:?}");
        assert_eq!((video.rebuffers, video.frames_damaged), (Some(0), Some(0)));
        assert_eq!(value_of("rebuffering_ratio"), Some(0.0));
        let slowest = value_of("page_load_p95_ms").unwrap();
        assert!(slowest >= value_of("page_load_p50_ms").unwrap() && slowest < 500.0, "{slowest}");
    }
}
