//! A symbol of the data field, and the guard interval between symbols.

use tacit_packet::units::Duration;

/// Guard interval between OFDM symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GuardInterval {
    /// The short one of HT and VHT.
    Ns400,
    /// The long one of HT and VHT, the only one of older standards, and the shortest of HE and EHT.
    Ns800,
    /// HE and EHT only.
    Ns1600,
    /// HE and EHT only.
    Ns3200,
}

impl GuardInterval {
    /// All values, ascending.
    pub const ALL: [Self; 4] = [Self::Ns400, Self::Ns800, Self::Ns1600, Self::Ns3200];
    /// Those of HT and VHT, the short one first.
    pub const OF_HT: [Self; 2] = [Self::Ns400, Self::Ns800];
    /// Those of HE and EHT, ascending.
    pub const OF_HE: [Self; 3] = [Self::Ns800, Self::Ns1600, Self::Ns3200];

    /// The name users write.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ns400 => "short",
            Self::Ns800 => "long",
            Self::Ns1600 => "1.6 us",
            Self::Ns3200 => "3.2 us",
        }
    }

    /// Its duration.
    pub const fn duration(self) -> Duration {
        Duration::from_nanos(self.nanos() as u64)
    }

    /// Its duration in nanoseconds.
    pub const fn nanos(self) -> u16 {
        match self {
            Self::Ns400 => 400,
            Self::Ns800 => 800,
            Self::Ns1600 => 1_600,
            Self::Ns3200 => 3_200,
        }
    }
}

/// A symbol of the data field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Symbol {
    /// Duration with guard interval.
    pub duration: Duration,
    /// Data bits: N_DBPS.
    pub bits: u32,
}
