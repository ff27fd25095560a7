//! A deterministic discrete-event world: hosts, flows and links under one scheduler.

mod apps;
pub mod capture;
mod carried;
mod clients;
mod digest;
mod drivers;
mod flow;
mod packets;
pub mod record;
mod scheduler;
pub mod setup;
mod topology;
pub mod transport;
mod wire_check;
mod world;

pub use carried::Carried;
pub use record::RunOutcome;
pub use setup::Setup;
pub use world::{Arrived, World};

use tacit_link::AirFrame;
use tacit_link::wifi::StationId;
use tacit_packet::Packet;
use tacit_packet::units::{Duration, Instant};

/// Observes a run without influencing it.
pub trait Observer<P = Packet>: Send {
    /// Called for each MPDU on the channel of basic service set `bss`, in order of transmission.
    fn on_air(&mut self, bss: usize, frame: &AirFrame<P>);

    /// Interval at which it samples flows and stations; `None` for never. Called once, before the run.
    ///
    /// Sampling is no event of the run: the digest is the same without it.
    fn looks_every(&self) -> Option<Duration> {
        None
    }

    /// Called at each sample for each flow.
    fn on_flow(&mut self, _point: &record::SeriesPoint) {}

    /// Called at each sample for each station of basic service set `bss`. `packets` were accepted by the station, and
    /// neither delivered nor given up.
    fn on_station(&mut self, _at: Instant, _bss: usize, _station: StationId, _packets: usize) {}
}

/// Why a run failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The setup is inconsistent.
    #[error("{0}")]
    Setup(String),
    /// An invariant was violated, which is a defect of this program.
    #[error("at {at}, seed {seed}: {what}")]
    Invariant {
        /// Time of the violation.
        at: Instant,
        /// Which invariant, and how.
        what: String,
        /// Seed of the run.
        seed: u64,
    },
}

/// Runs `setup` to its end.
///
/// # Errors
/// See [`RunError`].
pub fn run(setup: &Setup) -> Result<RunOutcome, RunError> {
    World::<Packet>::new(setup, None)?.run()
}

/// Runs `setup` to its end, and reports to `observer`; the outcome is the same as without it.
///
/// # Errors
/// See [`RunError`].
pub fn run_observed(setup: &Setup, observer: &mut dyn Observer) -> Result<RunOutcome, RunError> {
    World::new(setup, Some(observer))?.run()
}
