//! What noise does to frames on the way to a peer, where its SNR is known.

use tacit_proto::units::Ratio;

use crate::random::Stream;
use crate::wifi::error_rate::ErrorTable;
use crate::wifi::phy::{MPDU_DELIMITER_LEN, Mode};
use crate::wifi::propagation::Decibels;

/// The noise on one way of a link. Every draw is an integer against a chance computed once.
#[derive(Clone, Debug)]
pub(crate) struct Noise {
    data: ErrorTable,
    control: ErrorTable,
    stream: Stream,
}

impl Noise {
    pub fn new(data: &Mode, control: &Mode, snr: Decibels, stream: Stream) -> Self {
        Self { data: ErrorTable::new(data, snr), control: ErrorTable::new(control, snr), stream }
    }

    /// True when the receiver does not understand the header of a data PPDU, hence nothing of it.
    #[inline]
    pub fn hides_data(&mut self) -> bool {
        self.stream.hit(self.data.preamble())
    }

    /// True when an MPDU of `len` octets is not understood in a PPDU whose header is; in an A-MPDU it
    /// goes with its delimiter.
    #[inline]
    pub fn breaks_mpdu(&mut self, len: u32, aggregated: bool) -> bool {
        let chance = self.data.mpdu(if aggregated { len + MPDU_DELIMITER_LEN } else { len });
        self.stream.hit(chance)
    }

    /// True when a control frame of `len` octets is not understood, header or frame.
    #[inline]
    pub fn takes_control(&mut self, len: u32) -> bool {
        let preamble: Ratio = self.control.preamble();
        let frame = self.control.mpdu(len);
        // Both are drawn, so that the length of one frame does not move the draws of the next.
        self.stream.hit(preamble) | self.stream.hit(frame)
    }
}
