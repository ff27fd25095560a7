//! How strong a client's signal is: keys of `[wifi]` and `[[client]]`.

use tacit_link::wifi::phy::{Mode, Standard};
use tacit_link::wifi::{Decibels, PathLoss, Position, Propagation};

use crate::error::InputError;
use crate::input::{Mismatch, Node, Section, Value, decibels, level_dbm, metres, number, one_of, within};

/// The exponents of measured places lie well within, tunnels and factories included.
const EXPONENTS: std::ops::RangeInclusive<f64> = 1.0..=8.0;
/// From antennas side by side to a directional link.
const DISTANCES_M: std::ops::RangeInclusive<f64> = 0.1..=100_000.0;

/// How well the access point and a client hear each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Signal {
    /// So well.
    Snr(Decibels),
    /// As it follows from the distance in metres.
    Distance(f64),
}

impl Signal {
    /// The SNR over the channel of `mode`.
    pub fn snr(&self, propagation: &Propagation, mode: &Mode) -> Decibels {
        match self {
            Self::Snr(snr) => *snr,
            Self::Distance(distance_m) => propagation.snr(mode, *distance_m),
        }
    }
}

/// `snr` or `distance`.
pub(super) fn signal(section: &Section<'_>) -> Result<Option<Signal>, InputError> {
    let range = Decibels::from_millis(-20_000)..=Decibels::from_millis(100_000);
    let snr = section.optional("snr", within(range, decibels))?;
    let distance = section.optional("distance", within(DISTANCES_M, metres))?;
    match (snr, distance) {
        (Some(_), Some(_)) => {
            Err(section.error("distance", "stands beside snr").allowed("either of them, not both"))
        }
        (snr, distance) => Ok(snr.map(Signal::Snr).or(distance.map(Signal::Distance))),
    }
}

/// What a distance means.
pub(super) fn propagation(section: &Section<'_>, standard: Standard) -> Result<Propagation, InputError> {
    let usual = Propagation::at(standard);
    let laws = [("log-distance", true), ("friis", false)];
    let with_exponent = section.or("path-loss", true, one_of(&laws))?;
    let exponent = section.optional("path-loss-exponent", within(EXPONENTS, number))?;
    let reference_m = section.optional("reference-distance", within(DISTANCES_M, metres))?;
    let path_loss = match (with_exponent, usual.path_loss) {
        (true, PathLoss::LogDistance { exponent: usual_exponent, reference_m: usual_reference }) => {
            PathLoss::LogDistance {
                exponent: exponent.unwrap_or(usual_exponent),
                reference_m: reference_m.unwrap_or(usual_reference),
            }
        }
        _ if exponent.is_some() => return Err(only_with_log_distance(section, "path-loss-exponent")),
        _ if reference_m.is_some() => return Err(only_with_log_distance(section, "reference-distance")),
        _ => PathLoss::Friis,
    };
    Ok(Propagation {
        path_loss,
        tx_power_dbm: section.or("tx-power", usual.tx_power_dbm, within(-30.0..=60.0, level_dbm))?,
        noise_figure_db: section
            .optional("noise-figure", within(Decibels::default()..=Decibels::from_millis(40_000), decibels))?
            .map_or(usual.noise_figure_db, Decibels::as_db),
        frequency_mhz: usual.frequency_mhz,
    })
}

fn only_with_log_distance(section: &Section<'_>, key: &str) -> InputError {
    section.error(key, "free space has none").allowed("only with path-loss = \"log-distance\"")
}

/// A place, the access point being at the origin: metres to the east and to the north.
pub(super) fn position(value: &Value) -> Result<Position, Mismatch> {
    let wrong = || Mismatch::new(format!("{value} is no place"), "[\"3 m\", \"-4 m\"], up to 100 km away");
    let Value::List(items) = value else { return Err(wrong()) };
    let [x, y] = items.as_slice() else { return Err(wrong()) };
    let coordinate = |item: &Node| match &item.value {
        Value::Text(text) if text.trim().starts_with('-') => {
            metres(&Value::Text(text.trim()[1..].to_owned())).map(|x| -x)
        }
        other => metres(other),
    };
    let position =
        Position { x_m: coordinate(x).map_err(|_| wrong())?, y_m: coordinate(y).map_err(|_| wrong())? };
    let distance_m = position.distance_m(&Position::default());
    if DISTANCES_M.contains(&distance_m) { Ok(position) } else { Err(wrong()) }
}
