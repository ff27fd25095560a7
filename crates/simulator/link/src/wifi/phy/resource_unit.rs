//! Resource units of HE and EHT: the tones of a channel that a user gets, and the field that tells users their units
//! (HE-SIG-B).

use tacit_packet::units::Duration;

/// A resource unit by its tones (802.11ax-2021 tables 27-12 and 27-33 and clause 27.3.2.2; 802.11be table 36-19).
/// Single-user PPDUs use the unit of the whole channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ResourceUnit {
    /// 26 tones, about 2 MHz.
    Tones26,
    /// 52 tones, about 4 MHz.
    Tones52,
    /// 106 tones, about 8 MHz.
    Tones106,
    /// 242 tones: 20 MHz.
    Tones242,
    /// 484 tones: 40 MHz.
    Tones484,
    /// 996 tones: 80 MHz.
    Tones996,
    /// Twice 996 tones: 160 MHz.
    Tones2x996,
    /// Four times 996 tones: 320 MHz, EHT only.
    Tones4x996,
}

/// Parameters of a resource unit in the standard.
struct Row {
    unit: ResourceUnit,
    tones: u16,
    /// N_SD.
    data: u32,
    /// N_SD,short.
    data_short: u32,
    /// Width of the channel that it fills; `None` below 20 MHz.
    width_mhz: Option<u16>,
}

const fn row(unit: ResourceUnit, tones: u16, data: u32, data_short: u32, width_mhz: Option<u16>) -> Row {
    Row { unit, tones, data, data_short, width_mhz }
}

const ROWS: [Row; 8] = [
    row(ResourceUnit::Tones26, 26, 24, 6, None),
    row(ResourceUnit::Tones52, 52, 48, 12, None),
    row(ResourceUnit::Tones106, 106, 102, 24, None),
    row(ResourceUnit::Tones242, 242, 234, 60, Some(20)),
    row(ResourceUnit::Tones484, 484, 468, 120, Some(40)),
    row(ResourceUnit::Tones996, 996, 980, 240, Some(80)),
    row(ResourceUnit::Tones2x996, 1_992, 1_960, 492, Some(160)),
    row(ResourceUnit::Tones4x996, 3_984, 3_920, 984, Some(320)),
];

impl ResourceUnit {
    /// All units, ascending.
    pub const ALL: [Self; 8] = {
        let mut all = [Self::Tones26; 8];
        let mut index = 0;
        while index < all.len() {
            all[index] = ROWS[index].unit;
            index += 1;
        }
        all
    };

    const fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// The unit of a whole channel of `width_mhz`; `None` if HE and EHT have no such channel.
    pub fn of_channel(width_mhz: u16) -> Option<Self> {
        ROWS.iter().find(|row| row.width_mhz == Some(width_mhz)).map(|row| row.unit)
    }

    /// Number of tones, including pilots.
    pub const fn tones(self) -> u16 {
        self.row().tones
    }

    /// Data subcarriers: N_SD.
    pub(super) const fn data_subcarriers(self) -> u32 {
        self.row().data
    }

    /// Data subcarriers of a quarter of a symbol: N_SD,short.
    pub(super) const fn data_subcarriers_short(self) -> u32 {
        self.row().data_short
    }

    /// Number of these units in a channel of `width_mhz` (802.11ax-2021 clause 27.3.2.2): 9, 4, 2 and 1 in 20 MHz; from
    /// 80 MHz up there is also a middle unit of 26 tones.
    pub const fn count_in(self, width_mhz: u16) -> usize {
        let channels = (width_mhz / 20) as usize;
        match self {
            Self::Tones26 => 9 * channels + channels / 4,
            Self::Tones52 => 4 * channels,
            Self::Tones106 => 2 * channels,
            Self::Tones242 => channels,
            Self::Tones484 => channels / 2,
            Self::Tones996 => channels / 4,
            Self::Tones2x996 => channels / 8,
            Self::Tones4x996 => channels / 16,
        }
    }

    /// The largest unit that a channel of `width_mhz` has at least `users` of; `None` if no unit is small enough.
    pub fn for_users(users: usize, width_mhz: u16) -> Option<Self> {
        Self::ALL.into_iter().rev().find(|unit| unit.count_in(width_mhz) >= users.max(1))
    }

    /// How many of `users` to serve together so that no unit of the channel remains unused. With three users at 80 MHz
    /// it is two, each with half of the channel.
    pub fn users_that_fill(users: usize, width_mhz: u16) -> usize {
        let counts = Self::ALL.into_iter().map(|unit| unit.count_in(width_mhz));
        counts.filter(|count| *count <= users).max().unwrap_or_default()
    }
}

/// Bits per HE-SIG-B symbol for MCS 0 to 5 (802.11ax-2021 clause 27.3.11.8): 52 tones in 20 MHz.
const SIG_B_SYMBOL_BITS: [u32; 6] = [26, 52, 78, 104, 156, 208];
/// Highest MCS of HE-SIG-B.
pub(super) const SIG_B_MCS_MAX: u8 = 5;
/// Duration of an HE-SIG-B symbol.
const SIG_B_SYMBOL: Duration = Duration::from_micros(4);
/// CRC and tail after the common field and after each user block.
const CRC_AND_TAIL_BITS: u32 = 4 + 6;
/// Bits of a user field: station, streams, MCS, coding.
const USER_BITS: u32 = 21;

/// Duration of HE-SIG-B at `mcs` in a PPDU with `users`, each with a `unit` of a channel of `width_mhz` (802.11ax-2021
/// clause 27.3.11.8). From 40 MHz up there are two content channels, and the longer one counts. Users of units of up to
/// 242 tones are listed in the channel of their own 20 MHz; users of larger units are divided evenly.
pub(super) fn sig_b_duration(mcs: u8, width_mhz: u16, unit: ResourceUnit, users: usize) -> Duration {
    let channels = usize::from(width_mhz / 20);
    let longer = if channels == 1 {
        users
    } else if unit <= ResourceUnit::Tones242 {
        // Units are assigned in ascending order; odd-numbered 20 MHz channels are in the first content channel.
        let each = unit.count_in(20);
        let first = (0..channels).step_by(2).map(|channel| users.saturating_sub(channel * each).min(each));
        // The middle unit of 26 tones is in the first too.
        first.sum::<usize>() + users.saturating_sub(channels * each)
    } else {
        users.div_ceil(2)
    } as u32;
    let allocation = match width_mhz {
        20 | 40 => 8,
        // Plus one bit for the middle unit.
        80 => 2 * 8 + 1,
        _ => 4 * 8 + 1,
    };
    let pairs = longer / 2 * (2 * USER_BITS + CRC_AND_TAIL_BITS);
    let last = longer % 2 * (USER_BITS + CRC_AND_TAIL_BITS);
    let bits = allocation + CRC_AND_TAIL_BITS + pairs + last;
    let of_symbol = SIG_B_SYMBOL_BITS[usize::from(mcs.min(SIG_B_MCS_MAX))];
    SIG_B_SYMBOL * u64::from(bits.div_ceil(of_symbol))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 802.11ax-2021 table 27-8 and following.
    #[test]
    fn a_channel_has_as_many_units_as_the_standard_says() {
        let counts = |unit: ResourceUnit| [20, 40, 80, 160].map(|width_mhz| unit.count_in(width_mhz));
        assert_eq!(counts(ResourceUnit::Tones26), [9, 18, 37, 74]);
        assert_eq!(counts(ResourceUnit::Tones52), [4, 8, 16, 32]);
        assert_eq!(counts(ResourceUnit::Tones106), [2, 4, 8, 16]);
        assert_eq!(counts(ResourceUnit::Tones242), [1, 2, 4, 8]);
        assert_eq!(counts(ResourceUnit::Tones484), [0, 1, 2, 4]);
        assert_eq!(counts(ResourceUnit::Tones996), [0, 0, 1, 2]);
        assert_eq!(counts(ResourceUnit::Tones2x996), [0, 0, 0, 1]);
    }

    #[test]
    fn users_get_the_largest_units_of_which_there_are_enough() {
        let of = |users| ResourceUnit::for_users(users, 80);
        assert_eq!([of(1), of(2), of(3), of(4)].map(Option::unwrap), {
            use ResourceUnit::*;
            [Tones996, Tones484, Tones242, Tones242]
        });
        assert_eq!([of(5), of(8), of(9), of(16)].map(Option::unwrap), {
            use ResourceUnit::*;
            [Tones106, Tones106, Tones52, Tones52]
        });
        assert_eq!(of(37), Some(ResourceUnit::Tones26));
        assert_eq!(of(38), None);
    }

    #[test]
    fn users_served_at_once_leave_no_unit_over() {
        let of = |users| ResourceUnit::users_that_fill(users, 80);
        assert_eq!(
            [0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 36, 37, 50].map(of),
            [0, 1, 2, 2, 4, 4, 4, 8, 8, 16, 16, 37, 37]
        );
        assert_eq!(ResourceUnit::users_that_fill(3, 20), 2);
    }

    /// At 80 MHz, with four users of 242 tones and with sixteen of 52, at MCS 0 to 5.
    #[test]
    fn sig_b_lasts_as_long_as_its_longer_content_channel() {
        let us = |unit, users| [0, 1, 2, 3, 4, 5].map(|mcs| sig_b_duration(mcs, 80, unit, users).as_micros());
        assert_eq!(us(ResourceUnit::Tones242, 4), [16, 8, 8, 4, 4, 4]);
        assert_eq!(us(ResourceUnit::Tones52, 16), [40, 20, 16, 12, 8, 8]);
    }
}
