//! What a NIC tells its driver.

use tacit_proto::hack::{Heard, Response};

use super::functions::FunctionId;

/// An interrupt, for functions whose driver asked for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interrupt<P> {
    /// `function` received a PPDU from `from` and acknowledges it.
    Received {
        /// Who received.
        function: FunctionId,
        /// Who sent.
        from: FunctionId,
        /// What.
        heard: Heard,
        /// The More Data bit.
        more_data: bool,
        /// What the NIC did.
        response: Response,
    },
    /// The acknowledgment that `function` got from `from` carried these bytes.
    Appended {
        /// Whose transmission completed.
        function: FunctionId,
        /// Who acknowledged it.
        from: FunctionId,
        /// What rode along.
        bytes: Vec<u8>,
    },
    /// A pure TCP ACK that `function` sent to `to` as a packet has left the window, in order.
    Settled {
        /// Who sent.
        function: FunctionId,
        /// To whom.
        to: FunctionId,
        /// The packet.
        payload: P,
        /// Acknowledged, or given up.
        delivered: bool,
    },
    /// What became of a packet that `function` sent to `to` is decided, in order or not; for functions that
    /// [asked](super::Bss::report_fates).
    Fate {
        /// Who sent.
        function: FunctionId,
        /// To whom.
        to: FunctionId,
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
    pub fn function(&self) -> FunctionId {
        match self {
            Self::Received { function, .. }
            | Self::Appended { function, .. }
            | Self::Settled { function, .. }
            | Self::Fate { function, .. } => *function,
        }
    }
}
