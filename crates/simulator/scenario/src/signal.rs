//! The strength of a signal.

use tacit_link::wifi::phy::Mode;
use tacit_link::wifi::{Decibels, Propagation};

/// Signal quality between the access point and a client, or between two clients.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Signal {
    /// A fixed SNR.
    Snr(Decibels),
    /// The SNR that results from this distance in metres.
    Distance(f64),
}

impl Signal {
    /// The received power on the channel of `mode`, rounded to whole dBm as in radiotap.
    pub fn received_dbm(&self, propagation: &Propagation, mode: &Mode) -> i8 {
        let dbm = self.snr(propagation, mode).as_db() + propagation.noise_dbm(mode.width_mhz);
        // The conversion saturates.
        dbm.round() as i8
    }

    /// The SNR on the channel of `mode`.
    pub fn snr(&self, propagation: &Propagation, mode: &Mode) -> Decibels {
        match self {
            Self::Snr(snr) => *snr,
            Self::Distance(distance_m) => propagation.snr(mode, *distance_m),
        }
    }
}
