//! The frames of a run, PPDU by PPDU: the observer that receives them, and their record in runs that are inspected
//! frame by frame.

mod positions;
mod ppdu;
mod stored;
mod trace;
mod watch;

pub use positions::Positions;
pub use ppdu::{Kind, Ppdu, Rate};
pub use trace::{AirTrace, Window};
pub use watch::{Backlog, Watch};
