//! A symbol of the data field, and the guard interval between two.

use tacit_proto::units::Duration;

/// Between symbols of OFDM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GuardInterval {
    /// The short one of HT and VHT.
    Ns400,
    /// The long one of HT and VHT, the only one before, and the shortest of HE and EHT.
    Ns800,
    /// Of HE and EHT.
    Ns1600,
    /// Of HE and EHT.
    Ns3200,
}

impl GuardInterval {
    /// All of them, ascending.
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

    /// How long it is.
    pub const fn duration(self) -> Duration {
        Duration::from_nanos(self.nanos() as u64)
    }

    /// The same in nanoseconds.
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
    /// With its guard interval.
    pub duration: Duration,
    /// Data bits: N_DBPS.
    pub bits: u32,
}
