//! Progress of a multi-user access.

use tacit_proto::units::Instant;

/// Progress of a multi-user access.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Progress {
    /// It continues until this time.
    Until(Instant),
    /// It ended at this time, and succeeded or not.
    Over(Instant, bool),
}
