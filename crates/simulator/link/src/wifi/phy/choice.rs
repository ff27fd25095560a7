//! Choice of a mode by a user: a rate, and further values if the rate is ambiguous.

use core::fmt;

use tacit_packet::units::BitRate;

use super::mode::{Mode, Preamble};
use super::symbol::GuardInterval;
use super::tables::{DSSS, EHT_MCS, HE_MCS, HT_MCS, OFDM, VHT_MCS};
use super::{Standard, Variant};

/// Values that a user gives to choose a mode. Of the modes that have all of them, the first in [`Mode::all_of`] is
/// chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModeChoice {
    /// Bit rate of the data field, compared after rounding to the 0.1 Mb/s that tables print.
    pub rate: Option<BitRate>,
    /// Index in the standard's table: HT 0 to 31, VHT 0 to 9, HE to 11, EHT to 13.
    pub mcs: Option<u8>,
    /// Spatial streams.
    pub streams: Option<u8>,
    /// Channel width in MHz.
    pub width_mhz: Option<u16>,
    /// Guard interval.
    pub guard_interval: Option<GuardInterval>,
}

/// The error for a rate that is not in the standard's table, or not with the other values given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownRate {
    /// The standard of the table.
    pub standard: Standard,
    /// The choice that failed.
    pub choice: ModeChoice,
    /// The rates that fit the other values of the choice, ascending; all rates of the standard if no rate fits.
    pub allowed: Vec<BitRate>,
    /// For each value given in addition to the rate, the values that the rest of the choice allows; a part is omitted
    /// if there are none.
    pub instead: Vec<(Part, Vec<u16>)>,
}

/// A value that a choice may give in addition to a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// MCS index in the table.
    Mcs,
    /// Spatial streams.
    Streams,
    /// Channel width, in MHz.
    WidthMhz,
    /// Guard interval, in nanoseconds.
    GuardInterval,
}

impl Part {
    /// All parts.
    pub const ALL: [Self; 4] = [Self::Mcs, Self::Streams, Self::WidthMhz, Self::GuardInterval];

    /// The value of this part for `mode`.
    fn value(self, mode: &Mode) -> Option<u16> {
        match self {
            Self::Mcs => mode.mcs.map(u16::from),
            Self::Streams => Some(mode.streams.into()),
            Self::WidthMhz => Some(mode.width_mhz),
            Self::GuardInterval => Some(mode.guard_interval.nanos()),
        }
    }
}

impl UnknownRate {
    /// The error message without the allowed values.
    pub fn what(&self) -> String {
        format!("{} has no {}", self.standard.name(), self.choice)
    }

    /// The allowed rates as text; if there are more than sixteen, only the eight nearest to the requested rate.
    pub fn rates(&self) -> String {
        const FEW: usize = 16;
        const NEAREST: usize = 8;
        let listed = |rates: &[BitRate]| rates.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let Some(asked) = self.choice.rate.filter(|_| self.allowed.len() > FEW) else {
            return listed(&self.allowed);
        };
        let mut rates = self.allowed.clone();
        rates.sort_by_key(|rate| rate.as_bps().abs_diff(asked.as_bps()));
        rates.truncate(NEAREST);
        rates.sort_unstable();
        format!("{}, the nearest of {}", listed(&rates), self.allowed.len())
    }
}

impl fmt::Display for UnknownRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; it has {}", self.what(), self.rates())
    }
}

impl std::error::Error for UnknownRate {}

impl fmt::Display for ModeChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        parts.extend(self.rate.map(|rate| format!("rate {rate}")));
        parts.extend(self.mcs.map(|mcs| format!("MCS {mcs}")));
        parts.extend(self.streams.map(|streams| format!("{streams} stream{}", plural(streams))));
        parts.extend(self.width_mhz.map(|width| format!("{width} MHz")));
        parts.extend(self.guard_interval.map(|interval| format!("{} guard interval", interval.name())));
        f.write_str(&parts.join(" with "))
    }
}

const fn plural(count: u8) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// The rate in units of 0.1 Mb/s, as tables print it.
const fn printed(rate: BitRate) -> u64 {
    (rate.as_bps() + 50_000) / 100_000
}

impl ModeChoice {
    /// A choice that gives only the rate.
    pub const fn rate(rate: BitRate) -> Self {
        Self { rate: Some(rate), mcs: None, streams: None, width_mhz: None, guard_interval: None }
    }

    fn has(&self, part: Part) -> bool {
        match part {
            Part::Mcs => self.mcs.is_some(),
            Part::Streams => self.streams.is_some(),
            Part::WidthMhz => self.width_mhz.is_some(),
            Part::GuardInterval => self.guard_interval.is_some(),
        }
    }

    fn without(mut self, part: Part) -> Self {
        match part {
            Part::Mcs => self.mcs = None,
            Part::Streams => self.streams = None,
            Part::WidthMhz => self.width_mhz = None,
            Part::GuardInterval => self.guard_interval = None,
        }
        self
    }

    /// For each part given, the values that the rest of the choice allows, ascending.
    fn instead(&self, modes: &[Mode]) -> Vec<(Part, Vec<u16>)> {
        let values = |part: Part| {
            let rest = self.without(part);
            let fitting = modes.iter().filter(|mode| rest.fits_rate(mode) && rest.fits_rest(mode));
            let mut values: Vec<u16> = fitting.filter_map(|mode| part.value(mode)).collect();
            values.sort_unstable();
            values.dedup();
            (part, values)
        };
        let parts = Part::ALL.into_iter().filter(|part| self.has(*part));
        parts.map(values).filter(|(_, values)| !values.is_empty()).collect()
    }

    /// The mode that is sold under a rate: products name the highest rate of a width and a number of streams, rounded to a megabit per
    /// second (867 for 866.7) or to a rounder number (1200 for 1201, 5800 for 5764.7).
    fn marketed(&self, modes: &[Mode]) -> Option<Mode> {
        /// Numbers that end in a zero are rounded by this much.
        const PER_THOUSAND: u64 = 7;
        const MBPS: u64 = 1_000_000;
        let asked = self.rate?.as_bps();
        let apart = |mode: &Mode| mode.rate().as_bps().abs_diff(asked);
        let is_top = |mode: &Mode| {
            let is_faster = |other: &Mode| {
                (other.streams, other.width_mhz) == (mode.streams, mode.width_mhz)
                    && other.rate() > mode.rate()
            };
            !modes.iter().any(is_faster)
        };
        let is_round = asked.is_multiple_of(10 * MBPS);
        let is_near =
            |mode: &Mode| apart(mode) < MBPS || is_round && apart(mode) * 1_000 <= asked * PER_THOUSAND;
        let near = modes.iter().filter(|mode| is_near(mode) && self.fits_rest(mode));
        near.filter(|mode| is_top(mode)).min_by_key(|mode| apart(mode)).copied()
    }

    fn fits_rate(&self, mode: &Mode) -> bool {
        self.rate.is_none_or(|rate| printed(rate) == printed(mode.rate()))
    }

    fn fits_rest(&self, mode: &Mode) -> bool {
        self.mcs.is_none_or(|mcs| mode.mcs == Some(mcs))
            && self.streams.is_none_or(|streams| mode.streams == streams)
            && self.width_mhz.is_none_or(|width| mode.width_mhz == width)
            && self.guard_interval.is_none_or(|interval| mode.guard_interval == interval)
    }
}

impl Mode {
    /// Every mode of `standard` in its default variant; see [`Mode::all_of`].
    pub fn all(standard: Standard) -> Vec<Self> {
        Self::all_of(standard, Variant::for_standard(standard))
    }

    /// Every mode of `standard`. If several have the same rate, the one that the rate alone selects comes first: the
    /// widths used in the papers before others, short guard intervals before long ones, fewer streams before more.
    pub fn all_of(standard: Standard, variant: Variant) -> Vec<Self> {
        match standard {
            Standard::A => ofdm_rates().filter_map(Self::ofdm).collect(),
            Standard::B => dsss_modes(variant.preamble).collect(),
            Standard::G => {
                ofdm_rates().filter_map(Self::erp_ofdm).chain(dsss_modes(variant.preamble)).collect()
            }
            Standard::N => {
                let mut modes = Vec::new();
                for streams in 1..=4 {
                    for forty in [true, false] {
                        for interval in GuardInterval::OF_HT {
                            modes.extend(
                                (0..HT_MCS).filter_map(|mcs| Self::ht(mcs, streams, forty, interval)),
                            );
                        }
                    }
                }
                if variant.is_2_4_ghz() {
                    modes.iter_mut().for_each(|mode| *mode = mode.with_signal_extension());
                }
                modes
            }
            Standard::Ac => {
                let mut modes = Vec::new();
                for width_mhz in [80, 40, 20, 160] {
                    for interval in GuardInterval::OF_HT {
                        for streams in 1..=4 {
                            let mcs = 0..VHT_MCS;
                            modes.extend(mcs.filter_map(|mcs| Self::vht(mcs, streams, width_mhz, interval)));
                        }
                    }
                }
                modes
            }
            Standard::Ax => {
                let variant = Variant { he: variant.he.before_eht(), ..variant };
                of_tones(&[80, 40, 20, 160], HE_MCS, variant, Self::he)
            }
            Standard::Be => of_tones(&[80, 40, 20, 160, 320], EHT_MCS, variant, Self::eht),
        }
    }

    /// The mode of `standard` with the rate `rate`, compared after rounding to the 0.1 Mb/s that tables print.
    ///
    /// # Errors
    /// [`UnknownRate`], with the existing rates.
    pub fn for_rate(standard: Standard, rate: BitRate) -> Result<Self, UnknownRate> {
        Self::choose(standard, Variant::for_standard(standard), ModeChoice::rate(rate))
    }

    /// Every mode of `standard` that has the values of `choice`, in the order of [`Mode::all_of`].
    pub fn fitting(standard: Standard, variant: Variant, choice: ModeChoice) -> Vec<Self> {
        let mut modes = Self::all_of(standard, variant);
        modes.retain(|mode| choice.fits_rate(mode) && choice.fits_rest(mode));
        modes
    }

    /// The modes in [`Mode::and_lesser`] with the same format and guard interval, from which rate control chooses.
    pub fn and_slower(&self, standard: Standard, variant: Variant) -> Vec<Self> {
        let kind = |mode: &Self| (mode.format, mode.guard_interval);
        let mut modes = self.and_lesser(standard, variant);
        modes.retain(|mode| kind(mode) == kind(self));
        modes
    }

    /// The modes of `standard` available to a station with this mode: at most its streams and its width, any guard
    /// interval. Only this mode if the table has none.
    pub fn and_lesser(&self, standard: Standard, variant: Variant) -> Vec<Self> {
        let mut modes = Self::all_of(standard, variant);
        modes.retain(|mode| mode.streams <= self.streams && mode.width_mhz <= self.width_mhz);
        if modes.is_empty() { vec![*self] } else { modes }
    }

    /// The mode of `standard` that `choice` selects.
    ///
    /// # Errors
    /// [`UnknownRate`], with the existing rates.
    pub fn choose(standard: Standard, variant: Variant, choice: ModeChoice) -> Result<Self, UnknownRate> {
        let modes = Self::all_of(standard, variant);
        if let Some(mode) = modes.iter().find(|mode| choice.fits_rate(mode) && choice.fits_rest(mode)) {
            return Ok(*mode);
        }
        if let Some(mode) = choice.marketed(&modes) {
            return Ok(mode);
        }
        let rates = |fits: &dyn Fn(&Self) -> bool| {
            let fitting = modes.iter().filter(|mode| fits(mode));
            let mut rates: Vec<_> =
                fitting.map(|mode| BitRate::from_bps(printed(mode.rate()) * 100_000)).collect();
            rates.sort_unstable();
            rates.dedup();
            rates
        };
        let mut allowed = rates(&|mode| choice.fits_rest(mode));
        if allowed.is_empty() {
            allowed = rates(&|_| true);
        }
        Err(UnknownRate { standard, choice, allowed, instead: choice.instead(&modes) })
    }
}

/// The modes of HE or EHT. One and two streams come first, as in phones and laptops, then three and four. Widths are
/// those of `widths_mhz` that the band has, in that order. The shortest guard interval comes first, among those allowed
/// with the training field in `variant`.
fn of_tones(
    widths_mhz: &[u16],
    mcs: u8,
    variant: Variant,
    mode: fn(u8, u8, u16, GuardInterval) -> Option<Mode>,
) -> Vec<Mode> {
    let mut modes = Vec::new();
    for streams in [1..=2, 3..=4, 5..=8] {
        for width_mhz in widths_mhz.iter().filter(|width_mhz| **width_mhz <= variant.band.widest_mhz()) {
            for interval in GuardInterval::OF_HE {
                let Some(options) = variant.he.options(interval) else { continue };
                for streams in streams.clone() {
                    let mode = |mcs| mode(mcs, streams, *width_mhz, interval)?.with_options(options);
                    modes.extend((0..mcs).filter_map(mode));
                }
            }
        }
    }
    if variant.is_2_4_ghz() {
        modes.iter_mut().for_each(|mode| *mode = mode.with_signal_extension());
    }
    modes
}

fn ofdm_rates() -> impl Iterator<Item = BitRate> {
    OFDM.iter().map(|(mbps, _)| BitRate::from_mbps(*mbps))
}

fn dsss_modes(preamble: Preamble) -> impl Iterator<Item = Mode> {
    DSSS.iter().filter_map(move |(kbps, ..)| Mode::dsss(BitRate::from_kbps(*kbps), preamble))
}
