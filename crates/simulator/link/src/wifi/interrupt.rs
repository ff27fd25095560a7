//! Interrupts of a NIC to its driver.

use tacit_between::hack::{Response, SolicitedBy};

use super::functions::FunctionId;
use crate::packet::PacketRef;

/// An interrupt, for functions whose driver enabled it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interrupt {
    /// `function` received a PPDU from `from` and acknowledges it.
    Received {
        /// The receiving function.
        function: FunctionId,
        /// The sending function.
        from: FunctionId,
        /// Kind of the PPDU.
        heard: SolicitedBy,
        /// Value of the More Data bit.
        more_data: bool,
        /// The NIC's response.
        response: Response,
    },
    /// The acknowledgment that `function` received from `from` carried these bytes.
    Appended {
        /// The function whose transmission was acknowledged.
        function: FunctionId,
        /// The function that sent the acknowledgment.
        from: FunctionId,
        /// The appended bytes.
        bytes: Vec<u8>,
    },
    /// A pure TCP ACK that `function` sent to `to` as a packet left the window, in order.
    Settled {
        /// The sending function.
        function: FunctionId,
        /// The destination.
        to: FunctionId,
        /// The packet.
        payload: PacketRef,
        /// True if it was acknowledged, false if it was given up.
        delivered: bool,
    },
    /// A packet that `function` sent to `to` was acknowledged or given up, not necessarily in order; for functions that
    /// [enabled it](super::Bss::report_fates).
    Fate {
        /// The sending function.
        function: FunctionId,
        /// The destination.
        to: FunctionId,
        /// The packet.
        payload: PacketRef,
        /// True if its MPDU was acknowledged, false if it was given up.
        acknowledged: bool,
        /// True if this is the last packet decided at this time.
        last: bool,
    },
}

impl Interrupt {
    /// The packet that it is about, with its hold.
    pub fn packet(&self) -> Option<&PacketRef> {
        match self {
            Self::Received { .. } | Self::Appended { .. } => None,
            Self::Settled { payload, .. } | Self::Fate { payload, .. } => Some(payload),
        }
    }

    /// The function whose driver gets the interrupt.
    pub fn function(&self) -> FunctionId {
        match self {
            Self::Received { function, .. }
            | Self::Appended { function, .. }
            | Self::Settled { function, .. }
            | Self::Fate { function, .. } => *function,
        }
    }
}
