//! How strong the frames of a capture are.

use tacit_link::wifi::AirFrame;
use tacit_link::wifi::air::StationId;

use crate::Setup;

/// What the access point and each client of each basic service set hear of each other, in dBm.
#[derive(Clone, Debug, Default)]
pub struct Signals(Vec<Vec<Option<i8>>>);

impl Signals {
    /// Those of `setup`.
    pub fn of(setup: &Setup) -> Self {
        let bss = setup.bss.iter();
        Self(bss.map(|bss| bss.config.stations.iter().map(|station| station.signal_dbm).collect()).collect())
    }

    /// At what power the addressee of `frame` hears it; what is for everybody has no such power.
    pub fn of_frame<P>(&self, bss: usize, frame: &AirFrame<P>) -> Option<i8> {
        let client = if frame.transmitter == StationId::AP { frame.receiver? } else { frame.transmitter };
        // Clients are numbered from one.
        *self.0.get(bss)?.get(client.index().checked_sub(1)?)?
    }
}
