//! The frames on the air in a run, PPDU by PPDU: the observer that hears them, and their record in runs that are looked at
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
    /// Its kind, by the name that figure files use.
    pub kind: String,
    /// MPDUs in it.
    pub mpdus: u32,
    /// Those of them that did not arrive, from 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<u32>,
    /// Another PPDU overlapped it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub collided: bool,
    /// MPDUs that were retransmissions.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retries: u32,
    /// The More Data bit was set.
    #[serde(default, skip_serializing_if = "is_false")]
    pub more_data: bool,
    /// HACK's SYNC bit was set.
    #[serde(default, skip_serializing_if = "is_false")]
    pub sync: bool,
    /// Bytes of compressed TCP ACKs on it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub appended: u32,
    /// They began with the bytes that its transmitter appended before.
    #[serde(default, skip_serializing_if = "is_false")]
    pub again: bool,
    /// For how long nothing was on the air before it.
    #[serde(default)]
    pub idle_before_ns: u64,
    /// For how long it reserves the medium after its end.
    #[serde(default)]
    pub reserves_ns: u64,
    /// Access category by its short name; empty where it was not kept.
    #[serde(default)]
    pub category: String,
    /// Rate of its data field; 0 where it was not kept.
    #[serde(default)]
    pub rate_bps: u64,
    /// MCS index; null for legacy rates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcs: Option<u8>,
    /// Spatial streams.
    #[serde(default)]
    pub streams: u8,
    /// Channel width.
    #[serde(default)]
    pub width_mhz: u16,
    /// First and last MAC sequence number: of its MPDUs, or of those it asks for or acknowledges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac: Option<[u16; 2]>,
    /// MPDUs that a Block Ack acknowledges.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub acknowledged: u32,
    /// Bytes of IP packets in it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub bytes: u32,
    /// Number of the flow of its first packet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<u32>,
    /// It carries packets of other flows too.
    #[serde(default, skip_serializing_if = "is_false")]
    pub mixed: bool,
    /// Positions in that flow that its packets carry: the first, and the one past the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<[u64; 2]>,
    /// The position up to which its packets acknowledge the flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledges: Option<u64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
const fn is_zero(value: &u32) -> bool {
    *value == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
const fn is_false(value: &bool) -> bool {
    !*value
}
