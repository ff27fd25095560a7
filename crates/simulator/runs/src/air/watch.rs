//! The observer of a run that is explored: it records frames, and samples flows and queues.

use tacit_link::AirFrame;
use tacit_link::wifi::StationId;
use tacit_packet::Packet;
use tacit_packet::units::{Duration, Instant};
use tacit_sim::Observer;
use tacit_sim::record::SeriesPoint;

use super::{AirTrace, Window};
use crate::single::Reached;

/// Number of packets that a station of the first channel has accepted but not yet delivered or discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backlog {
    /// Time of the sample.
    pub at: Instant,
    /// The station.
    pub station: StationId,
    /// Number of packets.
    pub packets: usize,
}

/// Records the first channel of a run, and samples flows and queues at intervals.
pub struct Watch<'a> {
    /// The frames on the air.
    pub trace: AirTrace,
    /// Samples of the flows, ordered by time, then flow.
    pub points: Vec<SeriesPoint>,
    /// Samples of the backlogs, ordered by time, then station.
    pub backlogs: Vec<Backlog>,
    window: Window,
    every: Duration,
    reached: Option<Reached<'a>>,
}

impl<'a> Watch<'a> {
    /// Creates a watch that keeps the frames in `window` and takes a sample every `every`. `reached`, if given, is
    /// called with the time of each frame.
    pub fn new(window: Window, every: Duration, reached: Option<Reached<'a>>) -> Self {
        let trace = AirTrace::new(window);
        Self { trace, points: Vec::new(), backlogs: Vec::new(), window, every, reached }
    }

    /// The time window that is kept.
    pub const fn window(&self) -> Window {
        self.window
    }

    fn is_kept(&self, at: Instant) -> bool {
        (self.window.from..=self.window.until).contains(&at)
    }
}

impl Observer for Watch<'_> {
    fn on_air(&mut self, bss: usize, frame: &AirFrame<Packet>) {
        if let Some(reached) = &mut self.reached {
            reached(std::time::Duration::from_nanos(frame.at.as_nanos()));
        }
        self.trace.on_air(bss, frame);
    }

    fn looks_every(&self) -> Option<Duration> {
        Some(self.every)
    }

    fn on_flow(&mut self, point: &SeriesPoint) {
        if self.is_kept(point.at) {
            self.points.push(*point);
        }
    }

    fn on_station(&mut self, at: Instant, bss: usize, station: StationId, packets: usize) {
        if bss == 0 && self.is_kept(at) {
            self.backlogs.push(Backlog { at, station, packets });
        }
    }
}
