//! Signal strength of captured frames.

use tacit_link::wifi::AirFrame;
use tacit_link::wifi::air::StationId;

use crate::Setup;
use crate::setup::BssSetup;

/// Received power between the stations of each basic service set, in dBm.
#[derive(Clone, Debug, Default)]
pub struct Signals(Vec<OfBss>);

#[derive(Clone, Debug)]
struct OfBss {
    /// Between the access point and each client, on each link.
    clients: Vec<Vec<Option<i8>>>,
    /// Over direct links: transmitter and receiver.
    direct: Vec<([StationId; 2], Option<i8>)>,
}

impl Signals {
    /// The received powers in `setup`.
    pub fn from_setup(setup: &Setup) -> Self {
        let of_bss = |bss: &BssSetup| OfBss {
            clients: (bss.config.links())
                .map(|link| link.stations.iter().map(|station| station.signal_dbm).collect())
                .collect(),
            direct: (bss.config.direct_links.iter())
                .map(|direct| ([direct.from, direct.to], direct.link.signal_dbm))
                .collect(),
        };
        Self(setup.bss.iter().map(of_bss).collect())
    }

    /// Power at which the receiver of `frame` hears it; `None` for a broadcast of the access point.
    pub fn of_frame<P>(&self, bss: usize, frame: &AirFrame<P>) -> Option<i8> {
        let OfBss { clients, direct } = self.0.get(bss)?;
        let client = match (frame.transmitter, frame.receiver) {
            (StationId::AP, receiver) => receiver?,
            (transmitter, Some(StationId::AP) | None) => transmitter,
            (from, Some(to)) => return direct.iter().find(|(ends, _)| *ends == [from, to])?.1,
        };
        // Clients are numbered from one.
        *clients.get(frame.link.index())?.get(client.index().checked_sub(1)?)?
    }
}
