//! How strong a signal is.

use tacit_link::wifi::phy::Mode;
use tacit_link::wifi::{Decibels, Propagation};

/// How well the access point and a client, or two clients, hear each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Signal {
    /// So well.
    Snr(Decibels),
    /// As it follows from the distance in metres.
    Distance(f64),
}

impl Signal {
    /// The power that a receiver on the channel of `mode` hears, rounded to radiotap's whole dBm.
    pub fn received_dbm(&self, propagation: &Propagation, mode: &Mode) -> i8 {
        let dbm = self.snr(propagation, mode).as_db() + propagation.noise_dbm(mode.width_mhz);
        // Saturates.
        dbm.round() as i8
    }

    /// The SNR over the channel of `mode`.
    pub fn snr(&self, propagation: &Propagation, mode: &Mode) -> Decibels {
        match self {
            Self::Snr(snr) => *snr,
            Self::Distance(distance_m) => propagation.snr(mode, *distance_m),
        }
    }
}
