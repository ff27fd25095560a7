//! What was on the air in a run, as it is kept for those that are looked at frame by frame.

use serde::{Deserialize, Serialize};

/// A PPDU of the first channel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PpduRecord {
    /// When it began.
    pub at_ns: u64,
    /// How long it took.
    pub duration_ns: u64,
    /// Number of the station that sent it; 0 is the access point.
    pub transmitter: u16,
    /// Number of the station it was for; null for all.
    pub receiver: Option<u16>,
    /// What it was, by the name that figure files use.
    pub kind: String,
    /// MPDUs in it.
    pub mpdus: u32,
    /// Those of them that did not arrive, from 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<u32>,
    /// MPDUs that were retransmissions.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retries: u32,
    /// The More Data bit was set.
    #[serde(default, skip_serializing_if = "is_false")]
    pub more_data: bool,
    /// HACK's SYNC bit was set.
    #[serde(default, skip_serializing_if = "is_false")]
    pub sync: bool,
    /// Octets of compressed TCP ACKs on it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub appended: u32,
    /// They began with what its sender appended before.
    #[serde(default, skip_serializing_if = "is_false")]
    pub again: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
const fn is_zero(value: &u32) -> bool {
    *value == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
const fn is_false(value: &bool) -> bool {
    !*value
}
