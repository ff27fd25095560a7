//! Frames before a data PPDU that keep others off: RTS and CTS, or a CTS to oneself (802.11-2020
//! clauses 10.3.2.8, 10.3.2.9 and 10.27).

use tacit_proto::units::Duration;

use super::originator::Originator;
use super::plan::Outgoing;
use crate::payload::Payload;
use crate::wifi::config::Protection;
use crate::wifi::phy::{CTS_LEN, Format, Mode, Phy, RTS_LEN};

/// How an exchange begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handshake {
    /// With its data, or with a Block Ack Request.
    None,
    /// With a CTS to the sender itself; data follows even if that is lost.
    CtsToSelf,
    /// With an RTS; data follows the CTS.
    Rts,
    /// With its own PPDU, one SIFS after an acknowledgment to the holder of a TXOP, which granted it.
    Granted,
    /// With its own PPDU, one SIFS after another exchange of the sender's TXOP.
    Continued,
    /// With its part of a PPDU of several users: the outcome of the access is that of all users at once.
    Shared,
    /// With its part of the answers to a Basic Trigger.
    Triggered,
}

/// Which frame of a handshake is in the air.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    CtsToSelf,
    Rts,
    /// In answer to an RTS.
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

    /// How much of a TXOP it may take before data in mode `data` with responses in mode `control`.
    pub(crate) fn longest(self, phy: &Phy, data: &Mode, control: &Mode) -> Duration {
        self.kind().duration(&phy.protection_mode(data).unwrap_or(*control), phy)
    }

    /// The handshake before `outgoing` of `originator`.
    pub(crate) fn handshake<P: Payload>(self, outgoing: &Outgoing, originator: &Originator<P>) -> Handshake {
        let Outgoing::Data { .. } = outgoing else { return Handshake::None };
        let (mode, plan) = (&originator.mode, originator.plan());
        match self {
            // Stations of 802.11b need no warning of PPDUs that they understand themselves.
            Self::CtsToSelf { above } if plan.bytes > above && mode.format != Format::Dsss => self.kind(),
            Self::RtsCts { above } if plan.bytes > above => self.kind(),
            Self::None | Self::RtsCts { .. } | Self::CtsToSelf { .. } => Handshake::None,
        }
    }
}

impl Handshake {
    /// Whether the outcome of the exchange moves the contention window of its sender.
    pub fn is_own_access(self) -> bool {
        !matches!(self, Self::Granted | Self::Shared | Self::Triggered)
    }

    /// Its first frame.
    pub fn first(self) -> Option<Step> {
        match self {
            Self::None | Self::Granted | Self::Continued | Self::Shared | Self::Triggered => None,
            Self::CtsToSelf => Some(Step::CtsToSelf),
            Self::Rts => Some(Step::Rts),
        }
    }

    /// How long its first frame lasts in `mode`.
    pub fn first_duration(self, mode: &Mode) -> Duration {
        match self {
            Self::None | Self::Granted | Self::Continued | Self::Shared | Self::Triggered => Duration::ZERO,
            Self::CtsToSelf => mode.ppdu_duration(CTS_LEN),
            Self::Rts => mode.ppdu_duration(RTS_LEN),
        }
    }

    /// From its start to that of the data.
    pub fn duration(self, mode: &Mode, phy: &Phy) -> Duration {
        match self {
            Self::None | Self::Granted | Self::Continued | Self::Shared | Self::Triggered => Duration::ZERO,
            Self::CtsToSelf => self.first_duration(mode) + phy.sifs,
            Self::Rts => self.first_duration(mode) + phy.sifs + mode.ppdu_duration(CTS_LEN) + phy.sifs,
        }
    }
}

/// Which way a frame of the handshake goes.
#[derive(Clone, Copy)]
pub(crate) enum Direction {
    /// From the sender of data.
    Forward,
    /// To it.
    Back,
}
