//! Capture by the access point of frames that overlap when some stations are hidden from each other.

use crate::wifi::air::StationId;
use crate::wifi::config::BssConfig;
use crate::wifi::error_rate::mpdu_success;
use crate::wifi::phy::Mode;
use crate::wifi::propagation::Decibels;

/// The noise power, as the unit of all powers.
const ONE: u64 = 1 << 16;
/// Frames of a mode are received at the SNR at which nine of ten MPDUs of 1000 bytes arrive, the condition for which
/// receivers are rated (802.11-2020 clause 17.3.10.2).
const RATED: (u32, f64) = (1_000, 0.9);
/// Range of SNR to search, in tenths of a decibel.
const SEARCHED: core::ops::Range<i32> = -200..600;

/// The powers at which the access point receives its clients, relative to its noise, and the powers that its modes
/// need.
#[derive(Clone, Debug)]
pub(crate) struct Capture {
    powers: Vec<u64>,
    /// Computed when first needed.
    needs: Vec<(Mode, u64)>,
}

impl Capture {
    /// `None` without [`BssConfig::capture`], or if the SNR of a client is unknown.
    pub fn new(config: &BssConfig) -> Option<Self> {
        let snr = config.stations.iter().map(|station| station.snr.map(ratio));
        let clients: Vec<u64> = snr.collect::<Option<_>>().filter(|_| config.capture)?;
        Some(Self { powers: [0].into_iter().chain(clients).collect(), needs: Vec::new() })
    }

    /// Received power of a client at the access point.
    pub fn power(&self, client: StationId) -> u64 {
        self.powers[client.index()]
    }

    /// Whether the access point receives a frame of `mode` from `client` above noise and `interference`.
    pub fn stands_out(&mut self, client: StationId, mode: &Mode, interference: u64) -> bool {
        let others = u128::from(ONE) + u128::from(interference);
        u128::from(self.power(client)) * u128::from(ONE) >= u128::from(self.need(mode)) * others
    }

    fn need(&mut self, mode: &Mode) -> u64 {
        if let Some((_, need)) = self.needs.iter().find(|(known, _)| known == mode) {
            return *need;
        }
        let arrives = |tenths: i32| {
            let (bytes, share) = RATED;
            mpdu_success(mode, Decibels::from_millis(tenths * 100), bytes) >= share
        };
        let (mut too_low, mut enough) = (SEARCHED.start, SEARCHED.end);
        while enough - too_low > 1 {
            let middle = (too_low + enough) / 2;
            if arrives(middle) { enough = middle } else { too_low = middle }
        }
        let need = ratio(Decibels::from_millis(enough * 100));
        self.needs.push((*mode, need));
        need
    }
}

/// As a multiple of [`ONE`]; saturates.
fn ratio(db: Decibels) -> u64 {
    (db.as_ratio() * ONE as f64) as u64
}

#[cfg(test)]
mod tests {
    use tacit_packet::units::BitRate;

    use super::*;
    use crate::wifi::config::StationConfig;
    use crate::wifi::phy::Standard;

    /// SNR required by the rates of 802.11a, from docs/references/wifi-model.md.
    #[test]
    fn a_mode_needs_what_the_error_model_says() {
        for (mbps, db) in [(6, 3.0), (9, 5.8), (12, 6.0), (18, 8.8), (24, 12.5), (54, 21.6)] {
            let mode = Mode::for_rate(Standard::A, BitRate::from_mbps(mbps)).unwrap();
            let at = |db: f64| {
                let station = StationConfig { snr: Some(Decibels::from_db(db)), ..StationConfig::new(mode) };
                let config = BssConfig { capture: true, ..BssConfig::new(Standard::A, vec![station]) };
                Capture::new(&config).unwrap().stands_out(StationId(1), &mode, 0)
            };
            assert!(at(db + 0.2) && !at(db - 0.2), "{mbps} Mb/s at {db} dB");
        }
    }
}
