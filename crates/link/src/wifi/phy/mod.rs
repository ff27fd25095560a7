//! The 802.11 physical layer as data: timing, rates, and how long a frame lasts.
//!
//! Nothing above this module knows what a symbol is. A standard is a row of [`Phy`] constants and
//! a table of [`Mode`]s; adding one adds rows.

mod frame;
mod mode;

pub use frame::{
    ACK_LEN, BLOCK_ACK_LEN, BLOCK_ACK_REQUEST_LEN, FCS_LEN, LLC_SNAP_LEN, MAC_HEADER_LEN, MPDU_DELIMITER_LEN,
    QOS_MAC_HEADER_LEN, mpdu_len, subframe_len,
};
pub use mode::{Mode, Modulation, UnknownRate};

use tacit_proto::units::{BitRate, Bytes, Duration};

/// An 802.11 amendment this model knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standard {
    /// 802.11a: OFDM, 5 GHz, 20 MHz (802.11-2020 clause 17).
    A,
    /// 802.11n: HT-mixed, 5 GHz (802.11-2020 clause 19).
    N,
}

impl Standard {
    /// All of them, in the order they were published.
    pub const ALL: [Self; 2] = [Self::A, Self::N];

    /// The name users write.
    pub const fn name(self) -> &'static str {
        match self {
            Self::A => "802.11a",
            Self::N => "802.11n",
        }
    }

    /// The standard called `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|standard| standard.name() == name)
    }

    /// Its timing and limits.
    pub const fn phy(self) -> &'static Phy {
        match self {
            Self::A => &Phy::A,
            Self::N => &Phy::N,
        }
    }
}

/// Timing and limits of a standard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phy {
    /// Which standard.
    pub standard: Standard,
    /// aSlotTime.
    pub slot: Duration,
    /// aSIFSTime.
    pub sifs: Duration,
    /// Slots after SIFS before backoff: 2 is DIFS, 3 is AIFS\[BE\] (802.11-2020 table 9-155).
    pub aifs_slots: u32,
    /// Whether a backoff counts the slot in which another station takes the medium: EDCA does
    /// (802.11-2020 clause 10.23.2.4), DCF does not (clause 10.3.4.3).
    pub counts_busy_slot: bool,
    /// aCWmin: the backoff counter is drawn from 0..=CW.
    pub cw_min: u32,
    /// aCWmax.
    pub cw_max: u32,
    /// QoS data frames and block acknowledgment with A-MPDU.
    pub aggregation: Option<AmpduLimits>,
}

/// What an A-MPDU may hold at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AmpduLimits {
    /// Octets of the whole A-MPDU.
    pub bytes: Bytes,
    /// MPDUs: the Block Ack window (802.11-2020 clause 10.25.6).
    pub mpdus: u32,
    /// Longest PPDU in the air (aPPDUMaxTime).
    pub ppdu: Duration,
}

impl Phy {
    /// 802.11-2020 table 17-21 and DIFS of clause 10.3.2.3.
    const A: Self = Self {
        standard: Standard::A,
        slot: Duration::from_micros(9),
        sifs: Duration::from_micros(16),
        aifs_slots: 2,
        counts_busy_slot: false,
        cw_min: 15,
        cw_max: 1023,
        aggregation: None,
    };

    /// 802.11-2020 table 19-25, EDCA best effort of table 9-155, A-MPDU limit of clause 9.4.2.55.3.
    const N: Self = Self {
        standard: Standard::N,
        slot: Duration::from_micros(9),
        sifs: Duration::from_micros(16),
        aifs_slots: 3,
        counts_busy_slot: true,
        cw_min: 15,
        cw_max: 1023,
        aggregation: Some(AmpduLimits {
            bytes: Bytes(65_535),
            mpdus: 64,
            // The 12-bit length of L-SIG ends here (clause 19.4.3).
            ppdu: Duration::from_micros(5_484),
        }),
    };

    /// Idle time before backoff: DIFS or AIFS\[BE\].
    pub fn aifs(&self) -> Duration {
        self.sifs + self.slot * u64::from(self.aifs_slots)
    }

    /// Idle time before a beacon: SIFS and one slot (802.11-2020 clause 10.3.2.3.4).
    pub fn pifs(&self) -> Duration {
        self.sifs + self.slot
    }

    /// How long a transmitter waits after its PPDU for the start of a response: SIFS, a slot, and
    /// the time a receiver needs to notice one (802.11-2020 clause 10.3.2.11; aRxPHYStartDelay of
    /// OFDM, table 17-21).
    pub fn ack_timeout(&self) -> Duration {
        self.sifs + self.slot + Duration::from_micros(20)
    }

    /// Header octets of a data MPDU before LLC/SNAP: QoS data where the standard aggregates.
    pub const fn mac_header_len(&self) -> u32 {
        if self.aggregation.is_some() { QOS_MAC_HEADER_LEN } else { MAC_HEADER_LEN }
    }

    /// Rates every station must receive, lowest first: control frames use them.
    pub const BASIC_RATES: [BitRate; 3] =
        [BitRate::from_mbps(6), BitRate::from_mbps(12), BitRate::from_mbps(24)];

    /// The mode of the control response to a frame sent at `data`: the highest basic rate not above
    /// the non-HT reference rate of its modulation (802.11-2020 clause 10.6.6.5.2 and table 10-10).
    pub fn control_mode(&self, data: &Mode) -> Mode {
        let reference = data.non_ht_reference_rate();
        let rate = Self::BASIC_RATES.into_iter().rev().find(|rate| *rate <= reference);
        Mode::ofdm(rate.unwrap_or(Self::BASIC_RATES[0])).expect("basic rates are OFDM rates")
    }

    /// Extended interframe space: SIFS, an ACK at the lowest basic rate, then DIFS or AIFS
    /// (802.11-2020 clause 10.3.2.3.7).
    pub fn eifs(&self) -> Duration {
        let slowest = Mode::ofdm(Self::BASIC_RATES[0]).expect("basic rates are OFDM rates");
        self.sifs + slowest.ppdu_duration(ACK_LEN) + self.aifs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aifs_is_what_the_standard_says() {
        assert_eq!(Standard::A.phy().aifs(), Duration::from_micros(34));
        assert_eq!(Standard::N.phy().aifs(), Duration::from_micros(43));
        assert_eq!(Standard::A.phy().eifs(), Duration::from_micros(16 + 44 + 34));
    }

    #[test]
    fn control_responses_use_the_reference_rate() {
        let phy = Standard::N.phy();
        let control = |mbps: u64| {
            let mode = Mode::for_rate(Standard::N, BitRate::from_mbps(mbps)).unwrap();
            phy.control_mode(&mode).rate().as_bps() / 1_000_000
        };
        assert_eq!([control(15), control(30), control(45), control(60), control(150)], [6, 12, 12, 24, 24]);
    }
}
