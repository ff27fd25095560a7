//! The 802.11 physical layer as data: timing, rates, and durations of frames.
//!
//! Above this module, only OFDMA deals with symbols. A standard consists of one row of [`Phy`] constants and a table of
//! [`Mode`]s, so adding a standard adds rows.

mod choice;
mod frame;
mod high_efficiency;
mod mode;
mod resource_unit;
mod symbol;
mod tables;

pub use choice::{ModeChoice, Part, UnknownRate};
pub use frame::{
    ACK_LEN, ACTION_NO_ACK_LEN, AMSDU_SUBFRAME_HEADER_LEN, BLOCK_ACK_LEN, BLOCK_ACK_REQUEST_LEN, CF_END_LEN,
    CONTROL_WRAPPER_LEN, CTS_LEN, FCS_LEN, HT_CONTROL_LEN, LLC_SNAP_LEN, MAC_HEADER_LEN, MPDU_DELIMITER_LEN,
    QOS_MAC_HEADER_LEN, QOS_NULL_LEN, RTS_LEN, TriggerKind, amsdu_subframe_len, bitmap_bits, block_ack_len,
    mpdu_len, mu_bar_len, multi_sta_block_ack_len, subframe_len, trigger_len,
};
pub use high_efficiency::{Coding, HeChoice, HeOptions, PacketExtension, TrainingField};
pub use mode::{Format, Mode, MultiUser, MultiUserPpdu, Preamble};
pub use resource_unit::ResourceUnit;
pub use symbol::GuardInterval;
pub use tables::Modulation;

use tacit_packet::units::{BitRate, Bytes, Duration};

/// An 802.11 amendment of this model, in the order of publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standard {
    /// 802.11a: OFDM, 5 GHz, 20 MHz (802.11-2020 clause 17).
    A,
    /// 802.11b: DSSS and CCK, 2.4 GHz (802.11-2020 clauses 15 and 16).
    B,
    /// 802.11g: ERP-OFDM in addition to the rates of 802.11b, 2.4 GHz (802.11-2020 clause 18).
    G,
    /// 802.11n: HT-mixed, 5 or 2.4 GHz (802.11-2020 clause 19).
    N,
    /// 802.11ac: VHT, 5 GHz (802.11-2020 clause 21).
    Ac,
    /// 802.11ax: HE, 5, 2.4 or 6 GHz (802.11ax-2021 clause 27).
    Ax,
    /// 802.11be: EHT, 6, 5 or 2.4 GHz (802.11be clause 36).
    Be,
}

impl Standard {
    /// All standards, in the order of publication.
    pub const ALL: [Self; 7] = [Self::A, Self::B, Self::G, Self::N, Self::Ac, Self::Ax, Self::Be];

    /// The name users write.
    pub const fn name(self) -> &'static str {
        match self {
            Self::A => "802.11a",
            Self::B => "802.11b",
            Self::G => "802.11g",
            Self::N => "802.11n",
            Self::Ac => "802.11ac",
            Self::Ax => "802.11ax",
            Self::Be => "802.11be",
        }
    }

    /// Whether the standard works in `band`.
    pub const fn has_band(self, band: Band) -> bool {
        match band {
            Band::Ghz2_4 => matches!(self, Self::B | Self::G | Self::N | Self::Ax | Self::Be),
            Band::Ghz5 => matches!(self, Self::A | Self::N | Self::Ac | Self::Ax | Self::Be),
            Band::Ghz6 => matches!(self, Self::Ax | Self::Be),
        }
    }

    /// Whether an access point of this standard serves clients of `other`. It serves its own standard. From 802.11n on
    /// it also serves older ones with QoS, because times and channel access are the same within a band. Standards
    /// without QoS contend differently, and this model does not mix the two.
    pub const fn serves(self, other: Self) -> bool {
        let have_qos = self.phy().aggregation.is_some() && other.phy().aggregation.is_some();
        self as u8 == other as u8 || have_qos && (other as u8) < self as u8
    }

    /// Timing and limits in the default variant.
    pub const fn phy(self) -> &'static Phy {
        self.phy_as(Variant::for_standard(self))
    }

    /// Timing and limits in `variant`; variants differ in these only at 2.4 GHz.
    pub const fn phy_as(self, variant: Variant) -> &'static Phy {
        let preamble = matches!(variant.preamble, Preamble::Short) as usize;
        let slot = matches!(variant.slot, SlotTime::Short) as usize;
        let basic = matches!(variant.basic_rates, BasicRates::Ofdm) as usize;
        let of_erp = 4 * slot + 2 * basic + preamble;
        match self {
            Self::A => &Phy::A,
            Self::B => &Phy::B[preamble],
            Self::G => &Phy::G[of_erp],
            Self::N if variant.is_2_4_ghz() => &Phy::N_2_4[of_erp],
            Self::N => &Phy::N,
            Self::Ac => &Phy::AC,
            Self::Ax if variant.is_2_4_ghz() => &Phy::AX_2_4[of_erp],
            Self::Ax => &Phy::AX,
            Self::Be if variant.is_2_4_ghz() => &Phy::BE_2_4[of_erp],
            Self::Be => &Phy::BE,
        }
    }
}

/// aSlotTime of ERP (802.11-2020 table 18-5); short only if every station supports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotTime {
    /// 9 us.
    Short,
    /// 20 us.
    Long,
}

/// The rates that every station of a basic service set must receive; control frames and beacons use them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BasicRates {
    /// 6, 12 and 24 Mb/s; stations of 802.11b cannot join.
    Ofdm,
    /// 1, 2, 5.5 and 11 Mb/s.
    Dsss,
}

/// Frequency bands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Band {
    /// 2.4 GHz.
    Ghz2_4,
    /// 5 GHz.
    Ghz5,
    /// 6 GHz: no DSSS, HT and VHT, and no stations older than 802.11ax. Times and basic rates are those of 5 GHz.
    Ghz6,
}

impl Band {
    /// All bands, ascending.
    pub const ALL: [Self; 3] = [Self::Ghz2_4, Self::Ghz5, Self::Ghz6];

    /// The name users write.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ghz2_4 => "2.4 GHz",
            Self::Ghz5 => "5 GHz",
            Self::Ghz6 => "6 GHz",
        }
    }

    /// The widest channel in the band, in MHz.
    pub const fn widest_mhz(self) -> u16 {
        match self {
            Self::Ghz2_4 => 40,
            Self::Ghz5 => 160,
            Self::Ghz6 => 320,
        }
    }

    /// Centre frequency of the primary channel used for captures and path loss, in MHz: channel 6, 36 or 37.
    pub const fn frequency_mhz(self) -> u16 {
        match self {
            Self::Ghz2_4 => 2_437,
            Self::Ghz5 => 5_180,
            Self::Ghz6 => 6_135,
        }
    }
}

/// A basic service set's choices among the options of its standard: the band, further options at 2.4 GHz, and the
/// training field, coding and extension of HE and EHT PPDUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant {
    /// The band; only 802.11n, ax and be have a choice.
    pub band: Band,
    /// Slot time; 802.11b has only the long one.
    pub slot: SlotTime,
    /// Preamble of DSSS frames.
    pub preamble: Preamble,
    /// Basic rates; 802.11b has only its own.
    pub basic_rates: BasicRates,
    /// Options of HE and EHT PPDUs.
    pub he: HeChoice,
}

impl Variant {
    /// The default variant of `standard`: the long preamble, which every receiver supports; for 802.11g, no stations of
    /// 802.11b.
    pub const fn for_standard(standard: Standard) -> Self {
        let (slot, basic_rates) = match standard {
            Standard::B => (SlotTime::Long, BasicRates::Dsss),
            _ => (SlotTime::Short, BasicRates::Ofdm),
        };
        let band = match standard {
            Standard::B | Standard::G => Band::Ghz2_4,
            Standard::A | Standard::N | Standard::Ac | Standard::Ax => Band::Ghz5,
            Standard::Be => Band::Ghz6,
        };
        Self { band, slot, preamble: Preamble::Long, basic_rates, he: HeChoice::USUAL }
    }

    /// Whether it is at 2.4 GHz, which has further options.
    pub const fn is_2_4_ghz(self) -> bool {
        matches!(self.band, Band::Ghz2_4)
    }
}

/// Timing and limits of a standard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phy {
    /// The standard.
    pub standard: Standard,
    /// aSlotTime.
    pub slot: Duration,
    /// aSIFSTime.
    pub sifs: Duration,
    /// Slots after SIFS before backoff: 2 is DIFS, 3 is AIFS\[BE\] (802.11-2020 table 9-155).
    pub aifs_slots: u32,
    /// Whether a backoff counts the slot in which another station takes the medium. EDCA counts it (802.11-2020 clause
    /// 10.23.2.4), DCF does not (clause 10.3.4.3).
    pub counts_busy_slot: bool,
    /// aCWmin: the backoff counter is drawn from 0..=CW.
    pub cw_min: u32,
    /// aCWmax.
    pub cw_max: u32,
    /// Limits of A-MPDUs with QoS data and block acknowledgment; `None` if the standard has none.
    pub aggregation: Option<AmpduLimits>,
    /// Options of 2.4 GHz operation.
    pub variant: Variant,
}

/// Limits of an A-MPDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AmpduLimits {
    /// Most bytes in an A-MPDU.
    pub bytes: Bytes,
    /// Most MPDUs in an A-MPDU: the Block Ack window (802.11-2020 clause 10.25.6).
    pub mpdus: u32,
    /// Longest PPDU on the air (aPPDUMaxTime).
    pub ppdu: Duration,
    /// Form of a PPDU with one MPDU.
    pub single: SingleMpdu,
    /// Most bytes in an MPDU.
    pub mpdu: u32,
}

/// A PPDU with one MPDU, in standards with A-MPDUs. In both cases an ACK answers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SingleMpdu {
    /// The MPDU without a delimiter.
    Plain,
    /// An A-MPDU whose delimiter says that it contains one MPDU. VHT has no other form (S-MPDU, 802.11-2020 clauses
    /// 9.7.1 and 10.12.7).
    Delimited,
}

impl SingleMpdu {
    /// Bytes before the MPDU.
    pub const fn overhead(self) -> u32 {
        match self {
            Self::Plain => 0,
            Self::Delimited => MPDU_DELIMITER_LEN,
        }
    }
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
        variant: Variant::for_standard(Standard::A),
    };

    /// 802.11-2020 tables 15-5 and 16-4, by preamble: long, short.
    const B: [Self; 2] = [Self::b(Preamble::Long), Self::b(Preamble::Short)];

    const fn b(preamble: Preamble) -> Self {
        Self {
            standard: Standard::B,
            slot: Duration::from_micros(20),
            sifs: Duration::from_micros(10),
            cw_min: 31,
            variant: Variant { preamble, ..Variant::for_standard(Standard::B) },
            ..Self::A
        }
    }

    /// 802.11-2020 table 18-5, by slot time (long, short), basic rates (DSSS, OFDM) and preamble (long,
    /// short).
    const G: [Self; 8] = [
        Self::g(SlotTime::Long, BasicRates::Dsss, Preamble::Long),
        Self::g(SlotTime::Long, BasicRates::Dsss, Preamble::Short),
        Self::g(SlotTime::Long, BasicRates::Ofdm, Preamble::Long),
        Self::g(SlotTime::Long, BasicRates::Ofdm, Preamble::Short),
        Self::g(SlotTime::Short, BasicRates::Dsss, Preamble::Long),
        Self::g(SlotTime::Short, BasicRates::Dsss, Preamble::Short),
        Self::g(SlotTime::Short, BasicRates::Ofdm, Preamble::Long),
        Self::g(SlotTime::Short, BasicRates::Ofdm, Preamble::Short),
    ];

    const fn g(slot: SlotTime, basic_rates: BasicRates, preamble: Preamble) -> Self {
        Self::erp(Self::A, Standard::G, slot, basic_rates, preamble)
    }

    /// `phy` with ERP timing: a SIFS of 10 us and the slot time in `slot`.
    const fn erp(
        phy: Self,
        standard: Standard,
        slot: SlotTime,
        basic_rates: BasicRates,
        preamble: Preamble,
    ) -> Self {
        Self {
            standard,
            slot: Duration::from_micros(match slot {
                SlotTime::Short => 9,
                SlotTime::Long => 20,
            }),
            sifs: Duration::from_micros(10),
            variant: Variant { band: Band::Ghz2_4, slot, preamble, basic_rates, he: HeChoice::USUAL },
            ..phy
        }
    }

    /// 802.11n at 2.4 GHz has SIFS and slot times of ERP (802.11-2020 table 19-25). The order is that of 802.11g.
    const N_2_4: [Self; 8] = Self::N.at_2_4_ghz();
    const AX_2_4: [Self; 8] = Self::AX.at_2_4_ghz();
    const BE_2_4: [Self; 8] = Self::BE.at_2_4_ghz();

    const fn at_2_4_ghz(self) -> [Self; 8] {
        let mut all = Self::G;
        let mut at = 0;
        while at < all.len() {
            let Variant { slot, preamble, basic_rates, .. } = all[at].variant;
            all[at] = Self::erp(self, self.standard, slot, basic_rates, preamble);
            at += 1;
        }
        all
    }

    /// 802.11-2020 table 19-25, EDCA best effort of table 9-155, A-MPDU limit of clause 9.4.2.55.3.
    const N: Self = Self {
        standard: Standard::N,
        aifs_slots: 3,
        counts_busy_slot: true,
        aggregation: Some(AmpduLimits {
            bytes: Bytes(65_535),
            mpdus: 64,
            // The longest duration that the 12-bit length of L-SIG allows (clause 19.4.3).
            ppdu: Duration::from_micros(5_484),
            single: SingleMpdu::Plain,
            // The delimiter's length field has 12 bits (clauses 9.7.1 and 10.12.2).
            mpdu: 4_095,
        }),
        variant: Variant::for_standard(Standard::N),
        ..Self::A
    };

    /// 802.11-2020 table 21-29, EDCA best effort of table 9-155, A-MPDU limit of clause 9.4.2.157.2.
    const AC: Self = Self {
        standard: Standard::Ac,
        aggregation: Some(AmpduLimits {
            bytes: Bytes(1_048_575),
            mpdus: 64,
            ppdu: Duration::from_micros(5_484),
            single: SingleMpdu::Delimited,
            // The middle of three sizes that receivers may announce (clause 9.4.2.157.2).
            mpdu: 7_991,
        }),
        variant: Variant::for_standard(Standard::Ac),
        ..Self::N
    };

    /// 802.11ax-2021 table 27-61 has the timing of 802.11ac; the longest A-MPDU that receivers may announce (clause
    /// 26.6), and the largest Block Ack window.
    const AX: Self = Self {
        standard: Standard::Ax,
        aggregation: Some(AmpduLimits {
            bytes: Bytes(6_500_631),
            mpdus: 256,
            ppdu: Duration::from_micros(5_484),
            single: SingleMpdu::Delimited,
            mpdu: 11_454,
        }),
        variant: Variant::for_standard(Standard::Ax),
        ..Self::AC
    };

    /// Like 802.11ax, with longer A-MPDUs and windows.
    const BE: Self = Self {
        standard: Standard::Be,
        aggregation: Some(AmpduLimits {
            bytes: Bytes(15_523_200),
            mpdus: 1_024,
            ppdu: Duration::from_micros(5_484),
            single: SingleMpdu::Delimited,
            mpdu: 11_454,
        }),
        variant: Variant::for_standard(Standard::Be),
        ..Self::AX
    };

    /// Most MPDUs in a PPDU; 1 if the standard does not aggregate.
    pub fn max_mpdus(&self) -> u32 {
        self.aggregation.map_or(1, |limits| limits.mpdus)
    }

    /// Idle time before backoff: DIFS or AIFS\[BE\].
    pub fn aifs(&self) -> Duration {
        self.sifs + self.slot * u64::from(self.aifs_slots)
    }

    /// Idle time before a beacon: SIFS and one slot (802.11-2020 clause 10.3.2.3.4).
    pub fn pifs(&self) -> Duration {
        self.sifs + self.slot
    }

    /// `time`, rounded to whole slots.
    pub fn to_slots(&self, time: Duration) -> Duration {
        let slots = (time + self.slot / 2).as_nanos() / self.slot.as_nanos();
        self.slot * slots
    }

    /// How long a transmitter waits after its PPDU for the start of a response in mode `control`: SIFS, one slot, and
    /// the time a receiver needs to detect it (802.11-2020 clause 10.3.2.11).
    pub fn ack_timeout(&self, control: &Mode) -> Duration {
        self.sifs + self.slot + control.rx_start_delay()
    }

    /// Header bytes of a data MPDU before LLC/SNAP: those of QoS data if the standard aggregates.
    pub const fn mac_header_len(&self) -> u32 {
        if self.aggregation.is_some() { QOS_MAC_HEADER_LEN } else { MAC_HEADER_LEN }
    }

    /// The control mode of this standard at `rate`: legacy OFDM, and at 2.4 GHz the mode in that band's table.
    pub fn legacy_mode(&self, rate: BitRate) -> Option<Mode> {
        let dsss = || Mode::dsss(rate, self.variant.preamble);
        match self.standard {
            Standard::B => dsss(),
            _ if self.variant.is_2_4_ghz() => Mode::erp_ofdm(rate).or_else(dsss),
            _ => Mode::ofdm(rate),
        }
    }

    /// Basic rates of OFDM: the mandatory ones.
    pub const OFDM_BASIC_RATES: [BitRate; 3] =
        [BitRate::from_mbps(6), BitRate::from_mbps(12), BitRate::from_mbps(24)];
    /// Basic rates of DSSS: all of 802.11b.
    pub const DSSS_BASIC_RATES: [BitRate; 4] =
        [BitRate::from_mbps(1), BitRate::from_mbps(2), BitRate::from_kbps(5_500), BitRate::from_mbps(11)];

    /// The mode of the control response to a frame sent in `data`: the highest basic or mandatory rate of the same
    /// kind, DSSS or OFDM, that does not exceed the non-HT reference rate of its modulation (802.11-2020 clause
    /// 10.6.6.5.2 and table 10-10).
    pub fn control_mode(&self, data: &Mode) -> Mode {
        let reference = data.non_ht_reference_rate();
        let rates: &[BitRate] = match data.format {
            Format::Dsss => &Self::DSSS_BASIC_RATES,
            _ => &Self::OFDM_BASIC_RATES,
        };
        let rate = rates.iter().rev().find(|rate| **rate <= reference).unwrap_or(&rates[0]);
        self.legacy_mode(*rate).expect("basic rates are rates of the standard")
    }

    /// The mode of protection frames before PPDUs in mode `data`, if stations of 802.11b could not decode those PPDUs:
    /// the highest of the basic rates that those stations support. `None` otherwise.
    pub fn protection_mode(&self, data: &Mode) -> Option<Mode> {
        let foreign = matches!(self.variant.basic_rates, BasicRates::Dsss) && data.format != Format::Dsss;
        foreign.then(|| self.legacy_mode(Self::DSSS_BASIC_RATES[3])).flatten()
    }

    /// Modes of an initial control frame and of the CTS after it, where a client answers in mode `control`: at most
    /// 24 Mb/s, and 6 Mb/s (802.11be clause 35.3.17).
    pub fn calling_modes(&self, control: &Mode) -> [Mode; 2] {
        let legacy = |mbps| self.legacy_mode(BitRate::from_mbps(mbps)).unwrap_or(*control);
        let mbps = [24, 12].into_iter().find(|mbps| BitRate::from_mbps(*mbps) <= control.rate());
        [legacy(mbps.unwrap_or(6)), legacy(6)]
    }

    /// How long an initial control frame with `padding` lasts, and from its start to that of the data behind the CTS.
    pub fn calling_time(&self, control: &Mode, padding: Duration) -> [Duration; 2] {
        let [call, answer] = self.calling_modes(control);
        let lasts = call.ppdu_duration(trigger_len(TriggerKind::MuRts, 1, 0)) + padding;
        [lasts, lasts + self.sifs + answer.ppdu_duration(CTS_LEN) + self.sifs]
    }

    /// The mode of beacons: the lowest basic rate.
    pub fn beacon_mode(&self) -> Mode {
        let rate = match self.variant.basic_rates {
            BasicRates::Ofdm => Self::OFDM_BASIC_RATES[0],
            BasicRates::Dsss => Self::DSSS_BASIC_RATES[0],
        };
        self.legacy_mode(rate).expect("basic rates are rates of the standard")
    }

    /// Extended interframe space: SIFS, an ACK at the lowest mandatory rate of the PHY, then DIFS or AIFS (802.11-2020
    /// clause 10.3.2.3.7). At 2.4 GHz that rate is always 1 Mb/s, independent of the basic rates.
    pub fn eifs(&self) -> Duration {
        let rate =
            if self.variant.is_2_4_ghz() { Self::DSSS_BASIC_RATES[0] } else { Self::OFDM_BASIC_RATES[0] };
        let slowest = self.legacy_mode(rate).expect("mandatory rates are rates of the standard");
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
        assert_eq!(Standard::Ac.phy().aifs(), Duration::from_micros(43));
        assert_eq!(Standard::B.phy().aifs(), Duration::from_micros(50));
        assert_eq!(Standard::G.phy().aifs(), Duration::from_micros(28));
        let long = Variant { slot: SlotTime::Long, ..Variant::for_standard(Standard::G) };
        assert_eq!(Standard::G.phy_as(long).aifs(), Duration::from_micros(50));
        let at_2_4 = Variant { band: Band::Ghz2_4, ..Variant::for_standard(Standard::N) };
        assert_eq!(Standard::N.phy_as(at_2_4).aifs(), Duration::from_micros(10 + 3 * 9));
        let long = Variant { slot: SlotTime::Long, ..at_2_4 };
        assert_eq!(Standard::N.phy_as(long).aifs(), Duration::from_micros(10 + 3 * 20));
    }

    /// Computed by hand: 32 us of HT-mixed preamble and one HT-LTF of 4 us. 16 + 8 * 1538 + 6 bits at 260 bits (MCS 7,
    /// 20 MHz) per symbol of 4 us are 48 symbols. The signal extension is 6 us, as for the ACK, which is ERP-OFDM. With
    /// 540 bits per symbol (40 MHz) there are 23 symbols.
    #[test]
    fn high_throughput_at_2_4_ghz_has_the_times_of_erp() {
        let variant = Variant { band: Band::Ghz2_4, ..Variant::for_standard(Standard::N) };
        let phy = Standard::N.phy_as(variant);
        let mode = |width_mhz| {
            let choice = ModeChoice {
                mcs: Some(7),
                streams: Some(1),
                width_mhz: Some(width_mhz),
                guard_interval: Some(GuardInterval::Ns800),
                ..ModeChoice::default()
            };
            Mode::choose(Standard::N, variant, choice).unwrap()
        };
        let data = mode(20);
        assert_eq!(data.rate(), BitRate::from_mbps(65));
        assert_eq!(data.ppdu_duration(1538).as_micros(), 36 + 48 * 4 + 6);
        assert_eq!(mode(40).ppdu_duration(1538).as_micros(), 36 + 23 * 4 + 6);
        assert_eq!(data.bytes_within(Duration::from_micros(36 + 48 * 4 + 6)), (48 * 260 - 22) / 8);
        let control = phy.control_mode(&data);
        assert_eq!((control.format, control.rate()), (Format::ErpOfdm, BitRate::from_mbps(24)));
        assert_eq!(control.ppdu_duration(BLOCK_ACK_LEN).as_micros(), 32 + 6);
        assert_eq!(phy.ack_timeout(&control).as_micros(), 10 + 9 + 20);
        assert_eq!(phy.eifs().as_micros(), 10 + 304 + 37);
        assert_eq!(phy.aggregation, Standard::N.phy().aggregation);
        let mixed = Variant { slot: SlotTime::Long, basic_rates: BasicRates::Dsss, ..variant };
        let mixed = Standard::N.phy_as(mixed);
        assert_eq!(mixed.protection_mode(&data).unwrap().rate(), BitRate::from_mbps(11));
        assert_eq!(mixed.beacon_mode().rate(), BitRate::from_mbps(1));
        assert_eq!(
            Mode::choose(
                Standard::N,
                Variant::for_standard(Standard::N),
                ModeChoice::rate(BitRate::from_mbps(65))
            )
            .unwrap()
            .ppdu_duration(1538)
            .as_micros(),
            36 + 48 * 4,
            "there is none at 5 GHz"
        );
    }

    /// SIFS, an ACK of 14 bytes at the lowest mandatory rate (44 us at 6 Mb/s; 192 + 112 us at 1 Mb/s with the long
    /// preamble), then DIFS or AIFS.
    #[test]
    fn eifs_is_what_the_standard_says_of_each_phy() {
        let eifs = |standard: Standard| standard.phy().eifs().as_micros();
        assert_eq!(eifs(Standard::A), 16 + 44 + 34);
        assert_eq!(eifs(Standard::N), 16 + 44 + 43);
        assert_eq!(eifs(Standard::Ac), 16 + 44 + 43);
        assert_eq!(eifs(Standard::B), 10 + 304 + 50);
        assert_eq!(eifs(Standard::G), 10 + 304 + 28);
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

    #[test]
    fn control_responses_are_of_the_kind_of_the_data() {
        let control = |standard: Standard, kbps: u64| {
            let mode = Mode::for_rate(standard, BitRate::from_kbps(kbps)).unwrap();
            let control = standard.phy().control_mode(&mode);
            (control.format, control.rate().as_bps() / 1_000, control.ppdu_duration(ACK_LEN).as_micros())
        };
        // The response to 256-QAM is at 24 Mb/s, as for all modulations from 16-QAM up.
        assert_eq!(control(Standard::Ac, 866_700), (Format::Ofdm, 24_000, 28));
        assert_eq!(control(Standard::G, 54_000), (Format::ErpOfdm, 24_000, 28 + 6));
        assert_eq!(control(Standard::G, 11_000), (Format::Dsss, 11_000, 192 + 11));
        assert_eq!(control(Standard::B, 5_500), (Format::Dsss, 5_500, 192 + 21));
        assert_eq!(control(Standard::B, 1_000), (Format::Dsss, 1_000, 192 + 112));
    }

    #[test]
    fn beacons_go_at_the_lowest_basic_rate() {
        let beacon = |standard: Standard| standard.phy().beacon_mode().rate();
        assert_eq!(beacon(Standard::B), BitRate::from_mbps(1));
        assert_eq!(beacon(Standard::G), BitRate::from_mbps(6));
        let mixed = Variant { basic_rates: BasicRates::Dsss, ..Variant::for_standard(Standard::G) };
        assert_eq!(Standard::G.phy_as(mixed).beacon_mode().rate(), BitRate::from_mbps(1));
        assert_eq!(beacon(Standard::Ac), BitRate::from_mbps(6));
    }
}
