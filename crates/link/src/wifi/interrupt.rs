//! Interrupts of a NIC to its driver.

use tacit_proto::hack::{Heard, Response};

use super::functions::FunctionId;

/// An interrupt, for functions whose driver asked for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interrupt<P> {
    /// `function` received a PPDU from `from` and acknowledges it.
    Received {
        /// The receiver.
        function: FunctionId,
        /// The sender.
        from: FunctionId,
        /// Kind of the PPDU.
        heard: Heard,
        /// The More Data bit.
        more_data: bool,
        /// The NIC's response.
        response: Response,
    },
    /// The acknowledgment that `function` got from `from` carried these bytes.
    Appended {
        /// Whose transmission completed.
        function: FunctionId,
        /// The function that acknowledged it.
        from: FunctionId,
        /// The appended bytes.
        bytes: Vec<u8>,
    },
    /// A pure TCP ACK that `function` sent to `to` as a packet has left the window, in order.
    Settled {
        /// The sender.
        function: FunctionId,
        /// To whom.
        to: FunctionId,
        /// The packet.
        payload: P,
        /// Acknowledged, or given up.
        delivered: bool,
    },
    /// The fate of a packet that `function` sent to `to` is decided, in order or not; for functions that
    /// [asked](super::Bss::report_fates).
    Fate {
        /// The sender.
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
