//! Effect of noise on frames to a peer with a known SNR.

use tacit_packet::units::Ratio;

use crate::random::Stream;
use crate::wifi::error_rate::ErrorTable;
use crate::wifi::phy::{MPDU_DELIMITER_LEN, Mode};
use crate::wifi::propagation::Decibels;

/// The noise in one direction of a link. Each draw compares an integer with a probability computed in advance.
#[derive(Clone, Debug)]
pub(crate) struct Noise {
    data: ErrorTable,
    control: ErrorTable,
    /// Tables for data and control of the rates not in use. The entry at the index of the current rate holds the tables
    /// of the first one.
    others: Vec<(ErrorTable, ErrorTable)>,
    rate: usize,
    /// Index of the first rate in the list of the peer's own rates, which set the control rates of responses; 0 if both
    /// ends use the same rates.
    answered_from: usize,
    stream: Stream,
}

impl Noise {
    /// The rate of single-user PPDUs if it is fixed. Behind the rates of such PPDUs follow the rates of the resource units,
    /// in ascending order, of each.
    pub const ALONE: usize = 0;

    pub fn new(data: &Mode, control: &Mode, snr: Decibels, stream: Stream) -> Self {
        Self {
            data: ErrorTable::new(data, snr),
            control: ErrorTable::new(control, snr),
            others: Vec::new(),
            rate: 0,
            answered_from: 0,
            stream,
        }
    }

    /// The noise of a link that switches between `rates`. Each has its data mode, its control mode and the SNR of the
    /// data channel. The first is used until a change.
    ///
    /// # Panics
    /// If `rates` is empty.
    pub fn of_rates(rates: &[(Mode, Mode, Decibels)], stream: Stream) -> Self {
        let (data, control, snr) = rates[0];
        Self { others: tables(rates).collect(), ..Self::new(&data, &control, snr, stream) }
    }

    /// Extends the noise to a peer that itself sends at the rates `answered`.
    pub fn answering(mut self, answered: &[(Mode, Mode, Decibels)]) -> Self {
        self.answered_from = self.others.len();
        self.others.extend(tables(answered));
        self
    }

    /// The next frame responds to one that the peer sent at this rate of its own.
    pub fn use_response_rate(&mut self, rate: usize) {
        self.use_rate(self.answered_from + rate);
    }

    /// The following frames use this rate.
    pub fn use_rate(&mut self, rate: usize) {
        if rate != self.rate {
            self.swap_rate(rate);
        }
    }

    #[cold]
    fn swap_rate(&mut self, rate: usize) {
        let Self { data, control, others, .. } = self;
        let swap = |entry: &mut (ErrorTable, ErrorTable), data: &mut ErrorTable, control: &mut ErrorTable| {
            std::mem::swap(&mut entry.0, data);
            std::mem::swap(&mut entry.1, control);
        };
        swap(&mut others[self.rate], data, control);
        swap(&mut others[rate], data, control);
        self.rate = rate;
    }

    /// True if the receiver does not decode the header of a data PPDU, and hence none of its MPDUs.
    pub fn hides_data(&mut self) -> bool {
        self.stream.hit(self.data.preamble())
    }

    /// True if an MPDU of `len` bytes is not decoded in a PPDU whose header was; in an A-MPDU, `len` includes the
    /// delimiter.
    pub fn breaks_mpdu(&mut self, len: u32, aggregated: bool) -> bool {
        let chance = self.data.mpdu(if aggregated { len + MPDU_DELIMITER_LEN } else { len });
        self.stream.hit(chance)
    }

    /// True if a control frame of `len` bytes is not decoded, be it the header or the frame.
    pub fn takes_control(&mut self, len: u32) -> bool {
        let preamble: Ratio = self.control.preamble();
        let frame = self.control.mpdu(len);
        // Both are drawn, so that the length of one frame does not affect the draws of the next.
        self.stream.hit(preamble) | self.stream.hit(frame)
    }
}

/// Tables for data and control of each rate.
fn tables(rates: &[(Mode, Mode, Decibels)]) -> impl Iterator<Item = (ErrorTable, ErrorTable)> {
    rates.iter().map(|(data, control, snr)| (ErrorTable::new(data, *snr), ErrorTable::new(control, *snr)))
}
