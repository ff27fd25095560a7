//! What a NIC tells its driver.

use tacit_proto::hack::{Heard, Response};

use super::air::StationId;

/// An interrupt, for stations whose driver asked for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interrupt<P> {
    /// `station` received a PPDU from `from` and acknowledges it.
    Received {
        /// Who received.
        station: StationId,
        /// Who sent.
        from: StationId,
        /// What.
        heard: Heard,
        /// The More Data bit.
        more_data: bool,
        /// What the NIC did.
        response: Response,
    },
    /// The acknowledgment that `station` got from `from` carried these octets.
    Appended {
        /// Whose transmission completed.
        station: StationId,
        /// Who acknowledged it.
        from: StationId,
        /// What rode along.
        octets: Vec<u8>,
    },
    /// A pure TCP ACK that `station` sent to `to` as a packet has left the window, in order.
    Settled {
        /// Who sent.
        station: StationId,
        /// To whom.
        to: StationId,
        /// The packet.
        payload: P,
        /// Acknowledged, or given up.
        delivered: bool,
    },
    /// What became of a packet that `station` sent to `to` is decided, in order or not; for stations that
    /// [asked](super::Bss::report_fates).
    Fate {
        /// Who sent.
        station: StationId,
        /// To whom.
        to: StationId,
        /// The packet.
        payload: P,
        /// Its MPDU was acknowledged, or given up.
        acknowledged: bool,
        /// Nothing more was decided with it.
        last: bool,
    },
}

impl<P> Interrupt<P> {
    /// Whose driver it is for.
    pub fn station(&self) -> StationId {
        match self {
            Self::Received { station, .. }
            | Self::Appended { station, .. }
            | Self::Settled { station, .. }
            | Self::Fate { station, .. } => *station,
        }
    }
}
