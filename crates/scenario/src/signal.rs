//! How strong a client's signal is: keys of `[wifi]` and `[[client]]`.

use tacit_link::wifi::phy::Mode;
use tacit_link::wifi::{Decibels, PathLoss, Position, Propagation};

use crate::error::InputError;
use crate::input::{Mismatch, Node, Section, Value, metres};
use crate::keys::kind::{Distance, PowerRatio};
use crate::keys::{Key, wifi};

/// How well the access point and a client, or two clients, hear each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Signal {
    /// So well.
    Snr(Decibels),
    /// As it follows from the distance in metres.
    Distance(f64),
}

impl Signal {
    /// The power that a receiver on the channel of `mode` hears, rounded to what radiotap can say.
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

/// `snr` or `distance`.
pub(super) fn signal(section: &Section<'_>) -> Result<Option<Signal>, InputError> {
    one_of(section, &wifi::SNR, &wifi::DISTANCE)
}

/// `direct-snr` or `direct-distance`.
pub(super) fn direct_signal(section: &Section<'_>) -> Result<Option<Signal>, InputError> {
    one_of(section, &wifi::DIRECT_SNR, &wifi::DIRECT_DISTANCE)
}

fn one_of(
    section: &Section<'_>,
    snr: &Key<PowerRatio>,
    distance: &Key<Distance>,
) -> Result<Option<Signal>, InputError> {
    match (snr.given(section)?, distance.given(section)?) {
        (Some(_), Some(_)) => {
            let what = format!("conflicts with {}", snr.name);
            Err(section.error(distance.name, what).allowed("one of the two"))
        }
        (snr, distance) => Ok(snr.map(Signal::Snr).or(distance.map(Signal::Distance))),
    }
}

/// What a distance means, but for the power of transmitters.
pub(super) fn propagation(section: &Section<'_>, usual: Propagation) -> Result<Propagation, InputError> {
    let with_exponent = wifi::PATH_LOSS.or(section, true)?;
    let exponent = wifi::PATH_LOSS_EXPONENT.given(section)?;
    let reference_m = wifi::REFERENCE_DISTANCE.given(section)?;
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
    let noise_figure_db = wifi::NOISE_FIGURE.given(section)?.map_or(usual.noise_figure_db, Decibels::as_db);
    Ok(Propagation { path_loss, noise_figure_db, ..usual })
}

fn only_with_log_distance(section: &Section<'_>, key: &str) -> InputError {
    section.error(key, "free space has no exponent").allowed("path-loss = \"log-distance\"")
}

/// A place, the access point being at the origin: metres to the east and to the north.
pub(super) fn position(value: &Value) -> Result<Position, Mismatch> {
    let wrong =
        || Mismatch::new(format!("{value} is not a position"), "[\"3 m\", \"-4 m\"], up to 100 km away");
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
    if Distance::METRES.contains(&distance_m) { Ok(position) } else { Err(wrong()) }
}
