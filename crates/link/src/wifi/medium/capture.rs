//! Capture by the access point of frames that overlap where some stations are hidden from each other.

use crate::wifi::air::StationId;
use crate::wifi::config::BssConfig;
use crate::wifi::error_rate::mpdu_success;
use crate::wifi::phy::Mode;
use crate::wifi::propagation::Decibels;

/// One, as a ratio of powers: the noise, in which powers are counted.
const ONE: u64 = 1 << 16;
/// Reception of a frame at the SNR that its mode needs: nine of ten MPDUs of 1000 bytes arrive, at which receivers are
/// rated (802.11-2020 clause 17.3.10.2).
const RATED: (u32, f64) = (1_000, 0.9);
/// Where to look for that SNR, in tenths of a decibel.
const SEARCHED: core::ops::Range<i32> = -200..600;

/// The powers at which the access point hears its clients, over its noise, and those that its modes need.
#[derive(Clone, Debug)]
pub(crate) struct Capture {
    powers: Vec<u64>,
    /// Found so far.
    needs: Vec<(Mode, u64)>,
}

impl Capture {
    /// `None` without [`BssConfig::capture`], or where the SNR of a client is not known.
    pub fn new(config: &BssConfig) -> Option<Self> {
        let snr = config.stations.iter().map(|station| station.snr.map(ratio));
        let clients: Vec<u64> = snr.collect::<Option<_>>().filter(|_| config.capture)?;
        Some(Self { powers: [0].into_iter().chain(clients).collect(), needs: Vec::new() })
    }

    /// Of a client at the access point.
    pub fn power(&self, client: StationId) -> u64 {
        self.powers[client.index()]
    }

    /// Whether a frame of `mode` from `client` stands out of noise and `interference`.
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
    use tacit_proto::units::BitRate;

    use super::*;
    use crate::wifi::config::StationConfig;
    use crate::wifi::phy::Standard;

    /// SNR that the rates of 802.11a need, as docs/references/wifi-model.md has it.
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
