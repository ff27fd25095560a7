//! Rates: modulation, coding, streams, width and guard interval, and the duration they give a frame.

use core::fmt;

use tacit_proto::units::{BitRate, Duration};

use super::Standard;

/// Modulation and code rate of one spatial stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modulation {
    /// Coded bits per subcarrier: 1 BPSK, 2 QPSK, 4 16-QAM, 6 64-QAM.
    pub bits_per_subcarrier: u32,
    /// Code rate numerator.
    pub code_num: u32,
    /// Code rate denominator.
    pub code_den: u32,
}

const fn modulation(bits_per_subcarrier: u32, code_num: u32, code_den: u32) -> Modulation {
    Modulation { bits_per_subcarrier, code_num, code_den }
}

/// 802.11-2020 table 17-4: rate in Mb/s and its modulation.
const OFDM: [(u64, Modulation); 8] = [
    (6, modulation(1, 1, 2)),
    (9, modulation(1, 3, 4)),
    (12, modulation(2, 1, 2)),
    (18, modulation(2, 3, 4)),
    (24, modulation(4, 1, 2)),
    (36, modulation(4, 3, 4)),
    (48, modulation(6, 2, 3)),
    (54, modulation(6, 3, 4)),
];

/// 802.11-2020 tables 19-27 to 19-41: MCS 0 to 7 of each stream count.
const HT: [Modulation; 8] = [
    modulation(1, 1, 2),
    modulation(2, 1, 2),
    modulation(2, 3, 4),
    modulation(4, 1, 2),
    modulation(4, 3, 4),
    modulation(6, 2, 3),
    modulation(6, 3, 4),
    modulation(6, 5, 6),
];

/// Data subcarriers: 802.11a, HT 20 MHz, HT 40 MHz.
const OFDM_SUBCARRIERS: u32 = 48;
const HT20_SUBCARRIERS: u32 = 52;
const HT40_SUBCARRIERS: u32 = 108;

/// One way to send a PPDU: everything its duration depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode {
    modulation: Modulation,
    /// Spatial streams.
    pub streams: u8,
    /// Channel width in MHz.
    pub width_mhz: u16,
    /// Guard interval of 400 ns instead of 800.
    pub short_guard_interval: bool,
    /// MCS index within the standard's table (`None` for legacy OFDM).
    pub mcs: Option<u8>,
    preamble: Duration,
    symbol: Duration,
    bits_per_symbol: u32,
    /// BCC encoders: each adds 6 tail bits.
    encoders: u32,
}

/// A rate that the standard's table does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownRate {
    /// Which table.
    pub standard: Standard,
    /// What was asked for.
    pub rate: BitRate,
    /// What the table holds, ascending.
    pub allowed: Vec<BitRate>,
}

impl fmt::Display for UnknownRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} has no rate {}; it has", self.standard.name(), self.rate)?;
        for (i, rate) in self.allowed.iter().enumerate() {
            write!(f, "{} {rate}", if i == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl std::error::Error for UnknownRate {}

impl Mode {
    /// The legacy OFDM mode of `rate` (802.11-2020 clause 17); `None` where there is none.
    pub fn ofdm(rate: BitRate) -> Option<Self> {
        let (_, modulation) = *OFDM.iter().find(|(mbps, _)| BitRate::from_mbps(*mbps) == rate)?;
        Some(Self {
            modulation,
            streams: 1,
            width_mhz: 20,
            short_guard_interval: false,
            mcs: None,
            // Short and long training (16 us) and SIGNAL (4 us).
            preamble: Duration::from_micros(20),
            symbol: Duration::from_micros(4),
            bits_per_symbol: OFDM_SUBCARRIERS * modulation.bits_per_subcarrier * modulation.code_num
                / modulation.code_den,
            encoders: 1,
        })
    }

    /// The HT-mixed mode of `mcs` 0 to 7 on `streams` 1 to 4; `None` outside the table.
    pub fn ht(mcs: u8, streams: u8, forty_mhz: bool, short_guard_interval: bool) -> Option<Self> {
        let modulation = *HT.get(usize::from(mcs))?;
        // HT-LTFs per stream count (802.11-2020 table 19-13).
        let long_training_fields = *[1, 2, 4, 4].get(usize::from(streams).checked_sub(1)?)?;
        let subcarriers = if forty_mhz { HT40_SUBCARRIERS } else { HT20_SUBCARRIERS };
        let coded = subcarriers * modulation.bits_per_subcarrier * u32::from(streams);
        let bits_per_symbol = coded * modulation.code_num / modulation.code_den;
        let symbol = Duration::from_nanos(if short_guard_interval { 3_600 } else { 4_000 });
        let mut mode = Self {
            modulation,
            streams,
            width_mhz: if forty_mhz { 40 } else { 20 },
            short_guard_interval,
            mcs: Some(mcs + 8 * (streams - 1)),
            // L-STF, L-LTF (16), L-SIG (4), HT-SIG (8), HT-STF (4), HT-LTF (4 each).
            preamble: Duration::from_micros(16 + 4 + 8 + 4 + 4 * long_training_fields),
            symbol,
            bits_per_symbol,
            encoders: 1,
        };
        // One encoder up to 300 Mb/s, two above (802.11-2020 clause 19.3.11.4).
        if mode.rate() > BitRate::from_mbps(300) {
            mode.encoders = 2;
        }
        Some(mode)
    }

    /// Every mode of `standard` that a rate can name: fewest streams first, then 40 MHz with short
    /// guard interval, the set the papers use, before narrower and longer ones.
    pub fn all(standard: Standard) -> Vec<Self> {
        match standard {
            Standard::A => {
                OFDM.iter().filter_map(|(mbps, _)| Self::ofdm(BitRate::from_mbps(*mbps))).collect()
            }
            Standard::N => {
                let mut modes = Vec::new();
                for streams in 1..=4 {
                    for (forty, short) in [(true, true), (true, false), (false, true), (false, false)] {
                        modes.extend((0..8).filter_map(|mcs| Self::ht(mcs, streams, forty, short)));
                    }
                }
                modes
            }
        }
    }

    /// The mode of `standard` whose rate is `rate`, exact to the 0.1 Mb/s that tables print.
    ///
    /// # Errors
    /// [`UnknownRate`], naming the rates there are.
    pub fn for_rate(standard: Standard, rate: BitRate) -> Result<Self, UnknownRate> {
        let printed = |rate: BitRate| (rate.as_bps() + 50_000) / 100_000;
        let modes = Self::all(standard);
        if let Some(mode) = modes.iter().find(|mode| printed(mode.rate()) == printed(rate)) {
            return Ok(*mode);
        }
        let mut allowed: Vec<_> =
            modes.iter().map(|mode| BitRate::from_bps(printed(mode.rate()) * 100_000)).collect();
        allowed.sort_unstable();
        allowed.dedup();
        Err(UnknownRate { standard, rate, allowed })
    }

    /// Bits per second in the data field.
    pub const fn rate(&self) -> BitRate {
        BitRate::from_bps(self.bits_per_symbol as u64 * 1_000_000_000 / self.symbol.as_nanos())
    }

    /// Modulation and coding.
    pub const fn modulation(&self) -> Modulation {
        self.modulation
    }

    /// PHY preamble and header: everything before the data field.
    pub const fn preamble(&self) -> Duration {
        self.preamble
    }

    /// Duration of a PPDU that carries `octets` of PSDU, preamble included.
    ///
    /// 802.11-2020 clauses 17.4.3 and 19.4.3: 16 SERVICE bits, the octets, 6 tail bits per encoder,
    /// rounded up to symbols; with the short guard interval the sum is rounded up to 4 us.
    pub const fn ppdu_duration(&self, octets: u32) -> Duration {
        let bits = 16 + 8 * octets as u64 + 6 * self.encoders as u64;
        let symbols = bits.div_ceil(self.bits_per_symbol as u64);
        let data = (symbols * self.symbol.as_nanos()).next_multiple_of(4_000);
        Duration::from_nanos(self.preamble.as_nanos() + data)
    }

    /// Time from the start of a PPDU to the octet after the first `octets` of its PSDU.
    pub const fn time_before(&self, octets: u32) -> Duration {
        let symbols = (16 + 8 * octets as u64) / self.bits_per_symbol as u64;
        Duration::from_nanos(self.preamble.as_nanos() + symbols * self.symbol.as_nanos())
    }

    /// Most octets of PSDU whose PPDU lasts at most `limit`; zero when not even the preamble fits.
    pub const fn octets_within(&self, limit: Duration) -> u32 {
        let data = limit.saturating_sub(self.preamble).as_nanos() / 4_000 * 4_000;
        let bits = data / self.symbol.as_nanos() * self.bits_per_symbol as u64;
        (bits.saturating_sub(16 + 6 * self.encoders as u64) / 8) as u32
    }

    /// Rate of the legacy OFDM mode with the same modulation (802.11-2020 table 10-10).
    pub fn non_ht_reference_rate(&self) -> BitRate {
        let same = OFDM.iter().find(|(_, modulation)| *modulation == self.modulation);
        // 64-QAM 5/6 has no twin below HT: the table gives 54.
        BitRate::from_mbps(same.map_or(54, |(mbps, _)| *mbps))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_the_tables() {
        let mbps = |standard| {
            let mut rates: Vec<_> =
                Mode::all(standard).iter().map(|mode| mode.rate().as_bps() / 100_000).collect();
            rates.sort_unstable();
            rates.dedup();
            rates
        };
        assert_eq!(mbps(Standard::A), [60, 90, 120, 180, 240, 360, 480, 540]);
        let n = mbps(Standard::N);
        for rate in [65, 150, 300, 600, 1350, 1500, 3000, 4500, 6000] {
            assert!(n.contains(&rate), "{rate} is missing from {n:?}");
        }
    }

    #[test]
    fn one_hundred_fifty_is_forty_mhz_short_guard_one_stream() {
        let mode = Mode::for_rate(Standard::N, BitRate::from_mbps(150)).unwrap();
        assert_eq!(
            (mode.mcs, mode.streams, mode.width_mhz, mode.short_guard_interval),
            (Some(7), 1, 40, true)
        );
    }

    #[test]
    fn durations_known_from_the_standard() {
        let at = |standard, mbps| Mode::for_rate(standard, BitRate::from_mbps(mbps)).unwrap();
        let us = |mode: Mode, octets| mode.ppdu_duration(octets).as_micros();
        // 802.11a: 20 us, then 4 us per 4 * rate bits.
        assert_eq!(us(at(Standard::A, 54), 1536), 248);
        assert_eq!(us(at(Standard::A, 24), 14), 28);
        assert_eq!(us(at(Standard::A, 24), 32), 32);
        assert_eq!(us(at(Standard::A, 6), 14), 44);
        // 1500 octets at 150 Mb/s: 80 us of data field (HACK paper section 1), 36 of preamble, 4-us rounding.
        let n150 = at(Standard::N, 150);
        assert_eq!(n150.rate().time_for(tacit_proto::units::Bytes(1500)).as_micros(), 80);
        assert_eq!(us(n150, 1500), 36 + 84);
        // Two encoders above 300 Mb/s, four training fields at four streams.
        let n600 = at(Standard::N, 600);
        assert_eq!(n600.preamble().as_micros(), 48);
        assert_eq!(n600.encoders, 2);
    }

    #[test]
    fn octets_within_inverts_the_duration() {
        for standard in Standard::ALL {
            for mode in Mode::all(standard) {
                for limit_us in [100, 1_000, 4_000] {
                    let limit = Duration::from_micros(limit_us);
                    let octets = mode.octets_within(limit);
                    assert!(octets == 0 || mode.ppdu_duration(octets) <= limit, "{mode:?}");
                    assert!(mode.ppdu_duration(octets + 1) > limit, "{mode:?} {octets}");
                }
            }
        }
    }

    #[test]
    fn an_unknown_rate_names_the_known_ones() {
        let error = Mode::for_rate(Standard::A, BitRate::from_mbps(55)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "802.11a has no rate 55Mbps; it has 6Mbps, 9Mbps, 12Mbps, 18Mbps, 24Mbps, 36Mbps, 48Mbps, 54Mbps"
        );
    }
}
