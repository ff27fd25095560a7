//! Access categories of EDCA (802.11-2020 clause 10.23.2).

use tacit_packet::units::Duration;

use super::phy::Phy;

/// An access category, in order of increasing urgency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AccessCategory {
    /// AC_BK.
    Background,
    /// AC_BE; the only category if there is no EDCA.
    #[default]
    BestEffort,
    /// AC_VI.
    Video,
    /// AC_VO.
    Voice,
}

/// The edition of the standard for TXOP limits. Other parameters are the same in all editions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TxopLimits {
    /// 802.11-2012 table 8-105: 3.008 and 1.504 ms for video and voice, none for the others. The same since 802.11e,
    /// and still used by access points: hostapd's defaults are the same.
    #[default]
    Ieee2012,
    /// The defaults of 802.11-2016 (table 9-137) and of 802.11-2020 (table 9-155): 4.096 and 2.080 ms for video and
    /// voice, 2.528 ms for best effort and background.
    Ieee2020,
}

impl TxopLimits {
    /// The limit of `category` with OFDM PHYs; `None` for one PPDU of any length, which the standard encodes as zero.
    pub const fn limit(self, category: AccessCategory) -> Option<Duration> {
        use AccessCategory::{Background, BestEffort, Video, Voice};
        let micros = match (self, category) {
            (Self::Ieee2012, Background | BestEffort) => return None,
            (Self::Ieee2012, Video) => 3_008,
            (Self::Ieee2012, Voice) => 1_504,
            (Self::Ieee2020, Background | BestEffort) => 2_528,
            (Self::Ieee2020, Video) => 4_096,
            (Self::Ieee2020, Voice) => 2_080,
        };
        Some(Duration::from_micros(micros))
    }
}

/// Contention parameters of an access category (802.11-2012 table 8-105, 802.11-2016 table 9-137, 802.11-2020 table
/// 9-155).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EdcaParameters {
    /// AIFSN: slots after SIFS before the backoff.
    pub aifs_slots: u32,
    /// Smallest contention window.
    pub cw_min: u32,
    /// Largest contention window.
    pub cw_max: u32,
}

/// Contention parameters that an access point announces to its stations instead of the defaults (the EDCA Parameter Set
/// element, 802.11-2020 clause 9.4.2.28), or that a station uses regardless of them. `None` leaves the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EdcaOverride {
    /// AIFSN. DCF has none, because its DIFS is fixed.
    pub aifs_slots: Option<u32>,
    /// Smallest contention window.
    pub cw_min: Option<u32>,
    /// Largest contention window.
    pub cw_max: Option<u32>,
}

impl EdcaOverride {
    /// `usual` with these values instead; if only one window limit is set, the other is adjusted to it.
    pub fn over(self, usual: EdcaParameters) -> EdcaParameters {
        let cw_min = self.cw_min.unwrap_or_else(|| self.cw_max.unwrap_or(usual.cw_min).min(usual.cw_min));
        EdcaParameters {
            aifs_slots: self.aifs_slots.unwrap_or(usual.aifs_slots),
            cw_min,
            cw_max: self.cw_max.unwrap_or_else(|| usual.cw_max.max(cw_min)),
        }
    }
}

/// A value per access category, in order of increasing urgency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerCategory<T>(pub [T; 4]);

impl<T: Copy> PerCategory<T> {
    /// The same `value` for all.
    pub const fn same(value: T) -> Self {
        Self([value; 4])
    }

    /// The value for `category`.
    pub const fn get(&self, category: AccessCategory) -> T {
        self.0[category as usize]
    }
}

impl AccessCategory {
    /// All categories, in order of increasing urgency.
    pub const ALL: [Self; 4] = [Self::Background, Self::BestEffort, Self::Video, Self::Voice];

    /// Its name in configurations.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Background => "bk",
            Self::BestEffort => "be",
            Self::Video => "vi",
            Self::Voice => "vo",
        }
    }

    /// The first user priority of the category, which is the TID of its frames (802.11-2020 table 10-1).
    pub const fn tid(self) -> u8 {
        match self {
            Self::Background => 1,
            Self::BestEffort => 0,
            Self::Video => 4,
            Self::Voice => 6,
        }
    }

    /// The category for packets with this Differentiated Services Code Point (RFC 8325 figure 1; RFC 8622 section 11
    /// for LE). Unassigned values are best effort.
    pub const fn of_dscp(dscp: u8) -> Self {
        match dscp {
            // LE; CS1, low-priority data.
            1 | 8 => Self::Background,
            // CS3, AF31 to AF33, CS4, AF41 to AF43, CS5: video, conferences and signalling.
            24 | 26 | 28 | 30 | 32 | 34 | 36 | 38 | 40 => Self::Video,
            // VOICE-ADMIT, EF, CS6 and CS7: telephony and network control.
            44 | 46 | 48 | 56 => Self::Voice,
            _ => Self::BestEffort,
        }
    }

    /// The default parameters for `phy`; for best effort they are given by `phy`, which means DCF if there is no EDCA.
    pub const fn parameters(self, phy: &Phy) -> EdcaParameters {
        let (cw_min, cw_max) = (phy.cw_min, phy.cw_max);
        match self {
            Self::Background => EdcaParameters { aifs_slots: 7, cw_min, cw_max },
            Self::BestEffort => EdcaParameters { aifs_slots: phy.aifs_slots, cw_min, cw_max },
            Self::Video => EdcaParameters { aifs_slots: 2, cw_min: cw_min.div_ceil(2) - 1, cw_max: cw_min },
            Self::Voice => {
                EdcaParameters { aifs_slots: 2, cw_min: (cw_min + 1) / 4 - 1, cw_max: cw_min.div_ceil(2) - 1 }
            }
        }
    }
}

/// A setting for data from the access point to a client, and for data to the access point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BothWays<T> {
    /// From the access point.
    pub down: T,
    /// To the access point.
    pub up: T,
}

impl<T: Copy + PartialEq> BothWays<T> {
    /// `value` in both directions.
    pub const fn same(value: T) -> Self {
        Self { down: value, up: value }
    }

    /// True if it is `value` in both directions.
    pub fn are(&self, value: T) -> bool {
        self.down == value && self.up == value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wifi::phy::Standard;

    #[test]
    fn code_points_map_as_rfc_8325_says() {
        let (default, le, cs1, cs2, af11, af21, af31, af41) = (0, 1, 8, 16, 10, 18, 26, 34);
        let (cs4, cs5, va, ef, cs6) = (32, 40, 44, 46, 48);
        for (expected, dscps) in [
            (AccessCategory::Background, vec![le, cs1]),
            (AccessCategory::BestEffort, vec![default, cs2, af11, af21, 63]),
            (AccessCategory::Video, vec![af31, af41, cs4, cs5]),
            (AccessCategory::Voice, vec![va, ef, cs6]),
        ] {
            for dscp in dscps {
                assert_eq!(AccessCategory::of_dscp(dscp), expected, "DSCP {dscp}");
            }
        }
    }

    #[test]
    fn the_defaults_are_the_standards_table() {
        let phy = Standard::N.phy();
        let row = |category: AccessCategory| {
            let EdcaParameters { aifs_slots, cw_min, cw_max } = category.parameters(phy);
            let limit = |edition: TxopLimits| edition.limit(category).map_or(0, Duration::as_micros);
            (aifs_slots, cw_min, cw_max, limit(TxopLimits::Ieee2012), limit(TxopLimits::Ieee2020))
        };
        let table = AccessCategory::ALL.map(row);
        assert_eq!(
            table,
            [
                (7, 15, 1023, 0, 2_528),
                (3, 15, 1023, 0, 2_528),
                (2, 7, 15, 3_008, 4_096),
                (2, 3, 7, 1_504, 2_080)
            ]
        );
    }
}
