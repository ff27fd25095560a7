//! The observer of a run that is explored: frames on the air, and the state of flows and queues from moment to moment.

use tacit_link::AirFrame;
use tacit_link::wifi::StationId;
use tacit_proto::Packet;
use tacit_proto::units::{Duration, Instant};
use tacit_sim::Observer;
use tacit_sim::record::SeriesPoint;

use super::{AirTrace, Window};
use crate::single::Reached;

/// Packets that a station of the first channel has accepted and not yet delivered or given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backlog {
    /// When.
    pub at: Instant,
    /// The station.
    pub station: StationId,
    /// How many.
    pub packets: usize,
}

/// Listens to the first channel of a run and looks at flows and queues now and then.
pub struct Watch<'a> {
    /// The frames on the air.
    pub trace: AirTrace,
    /// How the flows stood, by time, then flow.
    pub points: Vec<SeriesPoint>,
    /// How much waited, by time, then station.
    pub backlogs: Vec<Backlog>,
    window: Window,
    every: Duration,
    reached: Option<Reached<'a>>,
}

impl<'a> Watch<'a> {
    /// One that keeps the frames in `window`, with a look every `every`; `reached`, if there is one, is told the time of
    /// each frame on the air.
    pub fn new(window: Window, every: Duration, reached: Option<Reached<'a>>) -> Self {
        let trace = AirTrace::of(window);
        Self { trace, points: Vec::new(), backlogs: Vec::new(), window, every, reached }
    }

    /// The window of time that is kept.
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
