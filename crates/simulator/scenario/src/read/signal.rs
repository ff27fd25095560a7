//! The signal of a client: keys of `[wifi]` and `[[client]]`.

use tacit_link::wifi::{Decibels, PathLoss, Propagation};

use crate::Signal;
use crate::error::InputError;
use crate::input::Section;
use crate::keys::kind::{Distance, PowerRatio};
use crate::keys::{Key, wifi as keys};

/// `snr` or `distance`.
pub(super) fn signal(section: &Section<'_>) -> Result<Option<Signal>, InputError> {
    one_of(section, &keys::SNR, &keys::DISTANCE)
}

/// `direct-snr` or `direct-distance`.
pub(super) fn direct_signal(section: &Section<'_>) -> Result<Option<Signal>, InputError> {
    one_of(section, &keys::DIRECT_SNR, &keys::DIRECT_DISTANCE)
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

/// Path loss and noise, without the power of the transmitters.
pub(super) fn propagation(section: &Section<'_>, usual: Propagation) -> Result<Propagation, InputError> {
    let with_exponent = keys::PATH_LOSS.or(section, true)?;
    let exponent = keys::PATH_LOSS_EXPONENT.given(section)?;
    let reference_m = keys::REFERENCE_DISTANCE.given(section)?;
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
    let noise_figure_db = keys::NOISE_FIGURE.given(section)?.map_or(usual.noise_figure_db, Decibels::as_db);
    Ok(Propagation { path_loss, noise_figure_db, ..usual })
}

fn only_with_log_distance(section: &Section<'_>, key: &str) -> InputError {
    section.error(key, "free space has no exponent").allowed("path-loss = \"log-distance\"")
}
