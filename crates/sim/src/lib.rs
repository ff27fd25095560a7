//! A deterministic discrete-event world: hosts, flows and links under one scheduler.

mod apps;
pub mod capture;
mod carried;
mod digest;
mod drivers;
mod flow;
pub mod record;
mod scheduler;
pub mod setup;
mod topology;
mod wire_check;
mod world;

pub use carried::Carried;
pub use record::RunOutcome;
pub use setup::Setup;
pub use world::{Arrived, World};

use tacit_link::AirFrame;
use tacit_link::wifi::StationId;
use tacit_proto::Packet;
use tacit_proto::units::{Duration, Instant};

/// Listens to a run without influencing it.
pub trait Observer<P = Packet> {
    /// Called for each MPDU on the channel of basic service set `bss`, in order of transmission.
    fn on_air(&mut self, bss: usize, frame: &AirFrame<P>);

    /// How often it wants to look at flows and stations; `None` for never. Asked once, before the run.
    ///
    /// A look is no event of the run: the digest is that of a run without.
    fn looks_every(&self) -> Option<Duration> {
        None
    }

    /// Called at each look for each flow.
    fn on_flow(&mut self, _point: &record::SeriesPoint) {}

    /// Called at each look for each station of basic service set `bss`, which has accepted `packets` and not yet
    /// delivered them or given them up.
    fn on_station(&mut self, _at: Instant, _bss: usize, _station: StationId, _packets: usize) {}
}

/// Why a run could not be made or did not end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The setup contradicts itself.
    #[error("{0}")]
    Setup(String),
    /// An invariant broke: a defect of this program.
    #[error("at {at}, seed {seed}: {what}")]
    Invariant {
        /// When.
        at: Instant,
        /// Which, and how.
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

/// Runs `setup` to its end while `observer` listens; the outcome is the same as without.
///
/// # Errors
/// See [`RunError`].
pub fn run_observed(setup: &Setup, observer: &mut dyn Observer) -> Result<RunOutcome, RunError> {
    World::new(setup, Some(observer))?.run()
}
