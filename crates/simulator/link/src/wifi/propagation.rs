//! From the positions of stations to the SNR between them.

use core::fmt;

use super::phy::{Band, Mode};

/// Speed of light in metres per microsecond; divided by a frequency in MHz, it gives the wavelength in metres.
const LIGHT_M_PER_US: f64 = 299.792_458;
/// Thermal noise at 290 K, in dBm in a bandwidth of one hertz.
const THERMAL_NOISE_DBM_HZ: f64 = -173.975;

/// A power ratio in thousandths of a decibel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Decibels(i32);

impl Decibels {
    /// The ratio of `thousandths` of a decibel.
    pub const fn from_millis(thousandths: i32) -> Self {
        Self(thousandths)
    }

    /// The ratio of `db` decibels, rounded to a thousandth.
    pub fn from_db(db: f64) -> Self {
        // This saturates and turns NaN into zero; configuration checks refuse both.
        Self(libm::round(db * 1_000.0) as i32)
    }

    /// The ratio in decibels, for tables and reports.
    pub fn as_db(self) -> f64 {
        f64::from(self.0) / 1_000.0
    }

    /// The ratio as a plain number.
    pub fn as_ratio(self) -> f64 {
        libm::pow(10.0, self.as_db() / 10.0)
    }
}

impl fmt::Display for Decibels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} dB", self.as_db())
    }
}

/// A position in the plane.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Position {
    /// Metres to the east.
    pub x_m: f64,
    /// Metres to the north.
    pub y_m: f64,
}

impl Position {
    /// Distance in metres.
    pub fn distance_m(&self, other: &Self) -> f64 {
        libm::hypot(self.x_m - other.x_m, self.y_m - other.y_m)
    }
}

/// How received power falls with distance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PathLoss {
    /// Free space: power falls with the square of the distance (H. T. Friis, "A note on a simple transmission formula",
    /// Proceedings of the IRE 34(5), 1946).
    Friis,
    /// Free space up to a reference distance; beyond it, power falls with a given exponent of the distance.
    LogDistance {
        /// The exponent: 2 is free space, 3 to 4 is indoors.
        exponent: f64,
        /// Reference distance in metres.
        reference_m: f64,
    },
}

/// Parameters of the SNR other than distance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Propagation {
    /// How received power falls with distance.
    pub path_loss: PathLoss,
    /// Transmit power of all antennas including their gain, in dBm.
    pub tx_power_dbm: f64,
    /// Noise figure of the receiver, in dB.
    pub noise_figure_db: f64,
    /// Centre frequency of the channel, in MHz.
    pub frequency_mhz: f64,
}

impl Default for Propagation {
    /// Indoors in the 5 GHz band: exponent 3 beyond one metre, 16 dBm (40 mW), 7 dB, channel 36.
    fn default() -> Self {
        Self {
            path_loss: PathLoss::LogDistance { exponent: 3.0, reference_m: 1.0 },
            tx_power_dbm: 16.0,
            noise_figure_db: 7.0,
            frequency_mhz: Band::Ghz5.frequency_mhz().into(),
        }
    }
}

impl Propagation {
    /// The default for `band`: channel 6, 36 or 37.
    pub fn at(band: Band) -> Self {
        Self { frequency_mhz: band.frequency_mhz().into(), ..Self::default() }
    }

    /// Path loss over `distance_m`, in dB. Distances below one wavelength, where the model does not hold, count as one
    /// wavelength.
    pub fn path_loss_db(&self, distance_m: f64) -> f64 {
        let wavelength_m = LIGHT_M_PER_US / self.frequency_mhz;
        let free_space_db = |distance_m: f64| {
            20.0 * libm::log10(4.0 * core::f64::consts::PI * distance_m.max(wavelength_m) / wavelength_m)
        };
        match self.path_loss {
            PathLoss::LogDistance { exponent, reference_m } if distance_m > reference_m => {
                free_space_db(reference_m) + 10.0 * exponent * libm::log10(distance_m / reference_m)
            }
            PathLoss::Friis | PathLoss::LogDistance { .. } => free_space_db(distance_m),
        }
    }

    /// Noise of a receiver with a bandwidth of `width_mhz`, in dBm.
    pub fn noise_dbm(&self, width_mhz: u16) -> f64 {
        THERMAL_NOISE_DBM_HZ + 10.0 * libm::log10(f64::from(width_mhz) * 1e6) + self.noise_figure_db
    }

    /// SNR of the channel of `mode` at `distance_m` from the transmitter.
    pub fn snr(&self, mode: &Mode, distance_m: f64) -> Decibels {
        let received_dbm = self.tx_power_dbm - self.path_loss_db(distance_m);
        Decibels::from_db(received_dbm - self.noise_dbm(mode.width_mhz))
    }
}

#[cfg(test)]
mod tests {
    use tacit_packet::units::BitRate;

    use super::*;
    use crate::wifi::phy::Standard;

    fn close(a: f64, b: f64, within: f64) {
        assert!((a - b).abs() <= within, "{a} is not {b}");
    }

    #[test]
    fn known_losses() {
        let friis = Propagation { path_loss: PathLoss::Friis, ..Propagation::default() };
        // 32.45 + 20 log10(f / MHz) + 20 log10(d / km): ITU-R P.525.
        for (distance_m, expected_db) in [(1.0, 46.73), (10.0, 66.73), (100.0, 86.73), (1_000.0, 106.73)] {
            close(friis.path_loss_db(distance_m), expected_db, 0.02);
        }
        let indoors = Propagation::default();
        close(indoors.path_loss_db(1.0), 46.73, 0.02);
        close(indoors.path_loss_db(10.0), 76.73, 0.02);
        close(indoors.path_loss_db(20.0), 85.76, 0.02);
        close(indoors.path_loss_db(0.5), friis.path_loss_db(0.5), 1e-9);
        close(friis.path_loss_db(0.0), 21.98, 0.01);
    }

    #[test]
    fn twice_the_width_is_twice_the_noise() {
        let propagation = Propagation::default();
        close(propagation.noise_dbm(20), -93.96, 0.02);
        close(propagation.noise_dbm(40) - propagation.noise_dbm(20), 3.01, 0.01);
        let at = |standard, mbps| {
            let mode = Mode::for_rate(standard, BitRate::from_mbps(mbps)).unwrap();
            propagation.snr(&mode, 10.0).as_db()
        };
        close(at(Standard::A, 54), 16.0 - 76.73 + 93.96, 0.03);
        close(at(Standard::A, 54) - at(Standard::N, 150), 3.01, 0.01);
    }

    #[test]
    fn snr_falls_with_distance() {
        let mode = Mode::for_rate(Standard::N, BitRate::from_mbps(150)).unwrap();
        let propagation = Propagation::default();
        let snr: Vec<_> = (1..200).map(|m| propagation.snr(&mode, f64::from(m) / 2.0)).collect();
        assert!(snr.windows(2).all(|pair| pair[1] < pair[0]));
    }

    #[test]
    fn distances_are_straight() {
        let a = Position { x_m: 1.0, y_m: 2.0 };
        close(a.distance_m(&Position { x_m: 4.0, y_m: -2.0 }), 5.0, 1e-12);
    }

    #[test]
    fn decibels_convert() {
        close(Decibels::from_db(3.0103).as_ratio(), 2.0, 1e-3);
        assert_eq!(Decibels::from_db(-2.5), Decibels::from_millis(-2_500));
        assert_eq!(Decibels::from_millis(25_000).to_string(), "25 dB");
    }
}
