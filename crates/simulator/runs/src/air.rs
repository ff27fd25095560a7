//! The frames of a run, PPDU by PPDU: the observer that receives them, and their record in runs that are inspected
//! frame by frame.

mod positions;
mod ppdu;
mod trace;
mod watch;

use serde::{Deserialize, Serialize};

pub use positions::Positions;
pub use ppdu::{Kind, Ppdu, Rate};
pub use trace::{AirTrace, Window};
pub use watch::{Backlog, Watch};

/// A PPDU on the first channel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PpduRecord {
    /// Its link of multi-link devices, from 0.
    #[serde(default, skip_serializing_if = "is_first")]
    pub link: u8,
    /// Start time.
    pub at_ns: u64,
    /// Duration.
    pub duration_ns: u64,
    /// Number of the transmitting station; 0 is the access point.
    pub transmitter: u16,
    /// Number of the receiving station; null for broadcast.
    pub receiver: Option<u16>,
    /// Its kind, with the name used in figure files.
    pub kind: String,
    /// Number of MPDUs.
    pub mpdus: u32,
    /// Indexes, from 0, of the MPDUs that did not arrive.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<u32>,
    /// Another PPDU overlapped it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub collided: bool,
    /// Number of MPDUs that were retransmissions.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retries: u32,
    /// The More Data bit was set.
    #[serde(default, skip_serializing_if = "is_false")]
    pub more_data: bool,
    /// HACK's SYNC bit was set.
    #[serde(default, skip_serializing_if = "is_false")]
    pub sync: bool,
    /// Length of the compressed TCP ACKs appended to it, in bytes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub appended: u32,
    /// The appended bytes start with those that its transmitter appended before.
    #[serde(default, skip_serializing_if = "is_false")]
    pub again: bool,
    /// Duration of the idle channel before it.
    #[serde(default)]
    pub idle_before_ns: u64,
    /// Duration for which it reserves the medium after its end.
    #[serde(default)]
    pub reserves_ns: u64,
    /// Short name of the access category; empty if not recorded.
    #[serde(default)]
    pub category: String,
    /// Rate of its data field; 0 if not recorded.
    #[serde(default)]
    pub rate_bps: u64,
    /// MCS index; null for legacy rates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcs: Option<u8>,
    /// Number of spatial streams.
    #[serde(default)]
    pub streams: u8,
    /// Channel width.
    #[serde(default)]
    pub width_mhz: u16,
    /// First and last MAC sequence number of its MPDUs, or of the MPDUs that it requests or acknowledges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac: Option<[u16; 2]>,
    /// Number of MPDUs that a Block Ack acknowledges.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub acknowledged: u32,
    /// Length of the IP packets in it, in bytes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub bytes: u32,
    /// Number of the flow of its first packet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<u32>,
    /// It also carries packets of other flows.
    #[serde(default, skip_serializing_if = "is_false")]
    pub mixed: bool,
    /// Range of stream positions in that flow that its packets carry: the first, and one past the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<[u64; 2]>,
    /// Stream position up to which its packets acknowledge the flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledges: Option<u64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
const fn is_zero(value: &u32) -> bool {
    *value == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_first(link: &u8) -> bool {
    *link == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
const fn is_false(value: &bool) -> bool {
    !*value
}
