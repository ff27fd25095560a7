//! Rates: modulation, coding, streams, width and guard interval, and the duration they give a frame.

use tacit_proto::units::{BitRate, Duration};

use super::tables::{
    CHANNELS, DSSS, HT_MCS, LONG_TRAINING_FIELDS, MCS, Modulation, OFDM, OFDM_SUBCARRIERS, vht_encoders,
    vht_has,
};

/// What a PPDU looks like on the air.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// DSSS and CCK, 2.4 GHz (802.11-2020 clauses 15 and 16).
    Dsss,
    /// Legacy OFDM, 5 GHz (clause 17).
    Ofdm,
    /// Legacy OFDM at 2.4 GHz, with its signal extension (clause 18).
    ErpOfdm,
    /// HT-mixed (clause 19).
    HtMixed,
    /// VHT (clause 21).
    Vht,
}

impl Format {
    /// Whether data of this format is QoS data in A-MPDUs under a Block Ack agreement.
    pub const fn aggregates(self) -> bool {
        matches!(self, Self::HtMixed | Self::Vht)
    }
}

/// Between symbols of OFDM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GuardInterval {
    /// The short one of HT and VHT.
    Ns400,
    /// The long one of HT and VHT, and the only one before.
    Ns800,
}

impl GuardInterval {
    /// All of them, ascending.
    pub const ALL: [Self; 2] = Self::OF_HT;
    /// Those of HT and VHT, the short one first.
    pub const OF_HT: [Self; 2] = [Self::Ns400, Self::Ns800];

    /// The name users write.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ns400 => "short",
            Self::Ns800 => "long",
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
        }
    }
}

/// A symbol of HT and VHT without its guard interval (802.11-2020 table 19-6).
const HT_SYMBOL: Duration = Duration::from_nanos(3_200);

/// aSignalExtension of ERP-OFDM and of HT at 2.4 GHz (802.11-2020 clauses 18.3.2.4 and 19.3.2).
const SIGNAL_EXTENSION: Duration = Duration::from_micros(6);

/// PLCP preamble and header of DSSS (802.11-2020 clause 16.2.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preamble {
    /// 144 bits and 48 bits of header at 1 Mb/s: 192 us.
    #[default]
    Long,
    /// 72 bits at 1 Mb/s and 48 bits of header at 2 Mb/s: 96 us. 1 Mb/s has none.
    Short,
}

/// One way to send a PPDU: everything its duration depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode {
    /// What the PPDU looks like.
    pub format: Format,
    /// `None` for DSSS and CCK.
    modulation: Option<Modulation>,
    /// Spatial streams.
    pub streams: u8,
    /// Channel width in MHz.
    pub width_mhz: u16,
    /// Between symbols.
    pub guard_interval: GuardInterval,
    /// MCS index within the standard's table: HT 0 to 31, VHT 0 to 9; `None` for legacy rates.
    pub mcs: Option<u8>,
    preamble: Duration,
    /// After the last symbol, for slow decoders (802.11-2020 clause 18.3.2.4); a part of the PPDU.
    signal_extension: Duration,
    symbol: Duration,
    bits_per_symbol: u32,
    /// SERVICE bits before the octets.
    service_bits: u32,
    /// Tail bits after them: 6 for each BCC encoder.
    tail_bits: u32,
}

impl Mode {
    /// The legacy OFDM mode of `rate` (802.11-2020 clause 17); `None` where there is none.
    pub fn ofdm(rate: BitRate) -> Option<Self> {
        let (_, modulation) = *OFDM.iter().find(|(mbps, _)| BitRate::from_mbps(*mbps) == rate)?;
        Some(Self {
            format: Format::Ofdm,
            modulation: Some(modulation),
            streams: 1,
            width_mhz: 20,
            guard_interval: GuardInterval::Ns800,
            mcs: None,
            // Short and long training (16 us) and SIGNAL (4 us).
            preamble: Duration::from_micros(20),
            signal_extension: Duration::ZERO,
            symbol: Duration::from_micros(4),
            bits_per_symbol: OFDM_SUBCARRIERS * modulation.bits_per_subcarrier * modulation.code_num
                / modulation.code_den,
            service_bits: 16,
            tail_bits: 6,
        })
    }

    /// The ERP-OFDM mode of `rate` (802.11-2020 clause 18): legacy OFDM with a signal extension of 6 us.
    pub fn erp_ofdm(rate: BitRate) -> Option<Self> {
        Some(Self { format: Format::ErpOfdm, signal_extension: SIGNAL_EXTENSION, ..Self::ofdm(rate)? })
    }

    /// The DSSS or CCK mode of `rate` (802.11-2020 clauses 15 and 16); 1 Mb/s has the long preamble
    /// whatever is asked for.
    pub fn dsss(rate: BitRate, preamble: Preamble) -> Option<Self> {
        let (kbps, bits, per_us) = *DSSS.iter().find(|(kbps, ..)| BitRate::from_kbps(*kbps) == rate)?;
        let preamble = if kbps == 1_000 { Preamble::Long } else { preamble };
        Some(Self {
            format: Format::Dsss,
            modulation: None,
            streams: 1,
            width_mhz: 22,
            guard_interval: GuardInterval::Ns800,
            mcs: None,
            preamble: Duration::from_micros(match preamble {
                Preamble::Long => 192,
                Preamble::Short => 96,
            }),
            signal_extension: Duration::ZERO,
            symbol: Duration::from_micros(per_us),
            bits_per_symbol: bits,
            service_bits: 0,
            tail_bits: 0,
        })
    }

    /// The HT-mixed mode of `mcs` 0 to 7 on `streams` 1 to 4; `None` outside the table.
    pub fn ht(mcs: u8, streams: u8, forty_mhz: bool, guard_interval: GuardInterval) -> Option<Self> {
        if mcs >= HT_MCS {
            return None;
        }
        let width_mhz = if forty_mhz { 40 } else { 20 };
        let mut mode = Self::streamed(mcs, streams, width_mhz, guard_interval)?;
        mode.mcs = Some(mcs + HT_MCS * (streams - 1));
        // One encoder up to 300 Mb/s, two above (802.11-2020 clause 19.3.11.4).
        mode.tail_bits = if mode.rate() > BitRate::from_mbps(300) { 12 } else { 6 };
        Some(mode)
    }

    /// This HT-mixed mode as it is at 2.4 GHz: with a signal extension.
    pub(super) fn ht_at_2_4_ghz(self) -> Self {
        Self { signal_extension: SIGNAL_EXTENSION, ..self }
    }

    /// Whether it is sent at 2.4 GHz here, not at 5 GHz.
    pub const fn is_2_4_ghz(&self) -> bool {
        matches!(self.format, Format::Dsss) || self.signal_extension.as_nanos() > 0
    }

    /// The VHT mode of `mcs` 0 to 9 on `streams` 1 to 4 at 20, 40, 80 or 160 MHz; `None` outside the
    /// tables, which leave out some combinations (802.11-2020 clause 21.5).
    pub fn vht(mcs: u8, streams: u8, width_mhz: u16, guard_interval: GuardInterval) -> Option<Self> {
        if !vht_has(width_mhz, streams, mcs) {
            return None;
        }
        let mut mode = Self::streamed(mcs, streams, width_mhz, guard_interval)?;
        mode.format = Format::Vht;
        // VHT-SIG-B more than HT.
        mode.preamble += Duration::from_micros(4);
        mode.tail_bits = 6 * vht_encoders(width_mhz, streams, mcs, mode.bits_per_symbol);
        Some(mode)
    }

    /// What HT and VHT have in common.
    fn streamed(mcs: u8, streams: u8, width_mhz: u16, guard_interval: GuardInterval) -> Option<Self> {
        let modulation = *MCS.get(usize::from(mcs))?;
        let training = *LONG_TRAINING_FIELDS.get(usize::from(streams).checked_sub(1)?)?;
        let channel = CHANNELS.iter().find(|channel| channel.width_mhz == width_mhz)?;
        let coded = channel.data_subcarriers * modulation.bits_per_subcarrier * u32::from(streams);
        Some(Self {
            format: Format::HtMixed,
            modulation: Some(modulation),
            streams,
            width_mhz,
            guard_interval,
            mcs: Some(mcs),
            // L-STF, L-LTF (16), L-SIG (4), HT-SIG or VHT-SIG-A (8), STF (4), LTFs (4 each).
            preamble: Duration::from_micros(16 + 4 + 8 + 4 + 4 * training),
            signal_extension: Duration::ZERO,
            symbol: HT_SYMBOL + guard_interval.duration(),
            bits_per_symbol: coded * modulation.code_num / modulation.code_den,
            service_bits: 16,
            tail_bits: 6,
        })
    }

    /// Bits per second in the data field.
    pub const fn rate(&self) -> BitRate {
        BitRate::from_bps(self.bits_per_symbol as u64 * 1_000_000_000 / self.symbol.as_nanos())
    }

    /// Modulation and coding of OFDM; `None` for DSSS and CCK.
    pub const fn modulation(&self) -> Option<Modulation> {
        self.modulation
    }

    /// PHY preamble and header: everything before the data field.
    pub const fn preamble(&self) -> Duration {
        self.preamble
    }

    /// Whether preamble and header are the short ones of DSSS.
    pub const fn has_short_preamble(&self) -> bool {
        matches!(self.format, Format::Dsss) && self.preamble.as_micros() == 96
    }

    /// aRxPHYStartDelay: how long after its start a receiver knows that a PPDU of this format comes.
    /// 20 us for all of OFDM as at 5 GHz (802.11-2020 table 17-21); preamble and header for DSSS
    /// (table 16-4).
    pub const fn rx_start_delay(&self) -> Duration {
        match self.format {
            Format::Dsss => self.preamble,
            _ => Duration::from_micros(20),
        }
    }

    /// What the length of a data field is rounded up to beyond symbols: 1 us for DSSS, whose LENGTH field
    /// counts them (802.11-2020 clause 16.3.4), 4 us for OFDM, where short guard intervals need it
    /// (clauses 19.4.3 and 21.4.3).
    const fn granule_ns(&self) -> u64 {
        match self.format {
            Format::Dsss => 1_000,
            _ => 4_000,
        }
    }

    /// Duration of a PPDU that carries `octets` of PSDU, preamble and signal extension included.
    ///
    /// 802.11-2020 clauses 16.3.4, 17.4.3, 18.5.3, 19.4.3 and 21.4.3: SERVICE bits, the octets, tail bits,
    /// rounded up to symbols, or to microseconds for DSSS; with the short guard interval the sum is
    /// rounded up to 4 us.
    pub const fn ppdu_duration(&self, octets: u32) -> Duration {
        let bits = self.service_bits as u64 + 8 * octets as u64 + self.tail_bits as u64;
        let data = match self.format {
            Format::Dsss => (bits * self.symbol.as_nanos()).div_ceil(self.bits_per_symbol as u64),
            _ => bits.div_ceil(self.bits_per_symbol as u64) * self.symbol.as_nanos(),
        };
        let data = data.next_multiple_of(self.granule_ns());
        Duration::from_nanos(self.preamble.as_nanos() + data + self.signal_extension.as_nanos())
    }

    /// Time from the start of a PPDU to the octet after the first `octets` of its PSDU.
    pub const fn time_before(&self, octets: u32) -> Duration {
        let symbols = (self.service_bits as u64 + 8 * octets as u64) / self.bits_per_symbol as u64;
        Duration::from_nanos(self.preamble.as_nanos() + symbols * self.symbol.as_nanos())
    }

    /// Most octets of PSDU whose PPDU lasts at most `limit`; zero when not even the preamble fits.
    pub const fn octets_within(&self, limit: Duration) -> u32 {
        let data = limit.saturating_sub(self.preamble).saturating_sub(self.signal_extension).as_nanos();
        let data = data / self.granule_ns() * self.granule_ns();
        let bits = match self.format {
            Format::Dsss => data * self.bits_per_symbol as u64 / self.symbol.as_nanos(),
            _ => data / self.symbol.as_nanos() * self.bits_per_symbol as u64,
        };
        (bits.saturating_sub(self.service_bits as u64 + self.tail_bits as u64) / 8) as u32
    }

    /// Rate of the legacy mode with the same modulation (802.11-2020 table 10-10); its own for legacy
    /// modes.
    pub fn non_ht_reference_rate(&self) -> BitRate {
        let Some(modulation) = self.modulation else { return self.rate() };
        let same = OFDM.iter().find(|(_, legacy)| *legacy == modulation);
        // 64-QAM 5/6 and 256-QAM have no twin below HT: the table gives 54.
        BitRate::from_mbps(same.map_or(54, |(mbps, _)| *mbps))
    }

    /// Encoders, for tests.
    #[cfg(test)]
    pub(super) const fn encoders(&self) -> u32 {
        self.tail_bits / 6
    }

    /// Data bits per symbol, for tests.
    #[cfg(test)]
    pub(super) const fn bits_per_symbol(&self) -> u32 {
        self.bits_per_symbol
    }
}

#[cfg(test)]
#[path = "mode_tests.rs"]
mod tests;
