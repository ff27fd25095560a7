//! Effect of noise on frames to a peer, where its SNR is known.

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
    /// Data and control tables of the other rates; the place of those in use holds the ones before.
    others: Vec<(ErrorTable, ErrorTable)>,
    rate: usize,
    /// Where the rates begin that the peer sends at, whose control rates answers have: 0 where both send at the same.
    answered_from: usize,
    stream: Stream,
}

impl Noise {
    /// The rate of PPDUs to one user alone; those of units follow, ascending.
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

    /// The noise of a link whose rate changes between `rates`: data, control, and the SNR over the channel of data. It
    /// begins with the first.
    ///
    /// # Panics
    /// Without a rate.
    pub fn of_rates(rates: &[(Mode, Mode, Decibels)], stream: Stream) -> Self {
        let (data, control, snr) = rates[0];
        Self { others: tables(rates).collect(), ..Self::new(&data, &control, snr, stream) }
    }

    /// The same, towards a peer that itself sends at the rates of `answered`.
    pub fn answering(mut self, answered: &[(Mode, Mode, Decibels)]) -> Self {
        self.answered_from = self.others.len();
        self.others.extend(tables(answered));
        self
    }

    /// The next frame answers one that the peer sent at this rate of its own.
    #[inline]
    pub fn answer_rate(&mut self, rate: usize) {
        self.use_rate(self.answered_from + rate);
    }

    /// The next frames are of this rate.
    #[inline]
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

    /// True when the receiver does not understand the header of a data PPDU, hence nothing of it.
    #[inline]
    pub fn hides_data(&mut self) -> bool {
        self.stream.hit(self.data.preamble())
    }

    /// True when an MPDU of `len` bytes is not understood in a PPDU whose header is; in an A-MPDU it
    /// goes with its delimiter.
    #[inline]
    pub fn breaks_mpdu(&mut self, len: u32, aggregated: bool) -> bool {
        let chance = self.data.mpdu(if aggregated { len + MPDU_DELIMITER_LEN } else { len });
        self.stream.hit(chance)
    }

    /// True when a control frame of `len` bytes is not understood, header or frame.
    #[inline]
    pub fn takes_control(&mut self, len: u32) -> bool {
        let preamble: Ratio = self.control.preamble();
        let frame = self.control.mpdu(len);
        // Both are drawn, so that the length of one frame does not move the draws of the next.
        self.stream.hit(preamble) | self.stream.hit(frame)
    }
}

/// Data and control tables of each rate.
fn tables(rates: &[(Mode, Mode, Decibels)]) -> impl Iterator<Item = (ErrorTable, ErrorTable)> {
    rates.iter().map(|(data, control, snr)| (ErrorTable::new(data, *snr), ErrorTable::new(control, *snr)))
}
