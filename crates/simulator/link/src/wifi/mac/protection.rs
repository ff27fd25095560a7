//! Frames before a data PPDU that make other stations defer: RTS and CTS, or CTS-to-self (802.11-2020 clauses 10.3.2.8,
//! 10.3.2.9 and 10.27).

use tacit_packet::units::Duration;

use super::originator::Originator;
use super::plan::Outgoing;
use crate::wifi::config::Protection;
use crate::wifi::phy::{CTS_LEN, Format, Mode, Phy, RTS_LEN};

/// How an exchange begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handshake {
    /// It begins with its data, or with a Block Ack Request.
    None,
    /// It begins with a CTS-to-self; data follows even if the CTS is lost.
    CtsToSelf,
    /// It begins with an RTS, or with an initial control frame for a client with one radio for several links; data follows
    /// the CTS.
    Rts,
    /// It begins with its own PPDU, one SIFS after an acknowledgment to the holder of a TXOP that granted it.
    Granted,
    /// It begins with its own PPDU, one SIFS after another exchange of the sender's TXOP.
    Continued,
    /// It begins with its part of a multi-user PPDU: the outcome of the access is that of all users together.
    Shared,
    /// It begins with its part of the responses to a Basic Trigger.
    Triggered,
}

/// The frame of a handshake that is on the air.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    CtsToSelf,
    Rts,
    /// The CTS in response to an RTS.
    Cts,
}

impl Protection {
    /// The handshake that may precede data.
    const fn kind(self) -> Handshake {
        match self {
            Self::None => Handshake::None,
            Self::CtsToSelf { .. } => Handshake::CtsToSelf,
            Self::RtsCts { .. } => Handshake::Rts,
        }
    }

    /// The longest time it takes of a TXOP before data in mode `data` with responses in mode `control`.
    pub(crate) fn longest(self, phy: &Phy, data: &Mode, control: &Mode) -> Duration {
        self.kind().duration(&phy.protection_mode(data).unwrap_or(*control), phy)
    }

    /// The handshake before `outgoing` of `originator`.
    pub(crate) fn handshake(self, outgoing: &Outgoing, originator: &Originator) -> Handshake {
        if originator.gate.calls_first() {
            return Handshake::Rts;
        }
        let Outgoing::Data { .. } = outgoing else { return Handshake::None };
        let (mode, plan) = (&originator.mode, originator.plan());
        match self {
            // Stations of 802.11b need no protection from PPDUs that they can decode.
            Self::CtsToSelf { above } if plan.bytes > above && mode.format != Format::Dsss => self.kind(),
            Self::RtsCts { above } if plan.bytes > above => self.kind(),
            Self::None | Self::RtsCts { .. } | Self::CtsToSelf { .. } => Handshake::None,
        }
    }
}

impl Handshake {
    /// Whether the outcome of the exchange changes its sender's contention window.
    pub fn is_own_access(self) -> bool {
        !matches!(self, Self::Granted | Self::Shared | Self::Triggered)
    }

    /// Whether the exchange continues a TXOP after a gap of SIFS.
    pub fn continues(self) -> bool {
        matches!(self, Self::Granted | Self::Continued)
    }

    /// The first frame of the handshake.
    pub fn first(self) -> Option<Step> {
        match self {
            Self::None | Self::Granted | Self::Continued | Self::Shared | Self::Triggered => None,
            Self::CtsToSelf => Some(Step::CtsToSelf),
            Self::Rts => Some(Step::Rts),
        }
    }

    /// Duration of the first frame in `mode`.
    pub fn first_duration(self, mode: &Mode) -> Duration {
        match self {
            Self::None | Self::Granted | Self::Continued | Self::Shared | Self::Triggered => Duration::ZERO,
            Self::CtsToSelf => mode.ppdu_duration(CTS_LEN),
            Self::Rts => mode.ppdu_duration(RTS_LEN),
        }
    }

    /// From the start of the handshake to that of the data.
    pub fn duration(self, mode: &Mode, phy: &Phy) -> Duration {
        match self {
            Self::None | Self::Granted | Self::Continued | Self::Shared | Self::Triggered => Duration::ZERO,
            Self::CtsToSelf => self.first_duration(mode) + phy.sifs,
            Self::Rts => self.first_duration(mode) + phy.sifs + mode.ppdu_duration(CTS_LEN) + phy.sifs,
        }
    }
}

/// Direction of a handshake frame.
#[derive(Clone, Copy)]
pub(crate) enum Direction {
    /// From the sender of the data.
    Forward,
    /// To the sender of the data.
    Back,
}
