//! Progress of an access with several users.

use tacit_proto::units::Instant;

/// Progress of an access with several users.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Progress {
    /// More, until then.
    Until(Instant),
    /// Nothing: it was over at this time, and succeeded or not.
    Over(Instant, bool),
}
