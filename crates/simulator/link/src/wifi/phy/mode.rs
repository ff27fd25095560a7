//! Rates: modulation, coding, streams, width and guard interval, and the resulting frame durations.

use tacit_packet::units::{BitRate, Duration};

use super::Standard;
use super::high_efficiency::{DataField, HeChoice, HeOptions, Symbols};
use super::resource_unit::{ResourceUnit, SIG_B_MCS_MAX, sig_b_duration};
use super::symbol::{GuardInterval, Symbol};
use super::tables::{
    CHANNELS, DSSS, HE_MCS, HE_TRAINING_FIELDS, HT_MCS, LONG_TRAINING_FIELDS, MCS, Modulation, OFDM,
    OFDM_SUBCARRIERS, VHT_MCS, vht_encoders, vht_has,
};

/// Format of a PPDU.
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
    /// HE, single user (802.11ax-2021 clause 27).
    HeSu,
    /// HE, single user at long range: its SIG-A is sent twice.
    HeErSu,
    /// HE, several users, each on its own resource unit.
    HeMu,
    /// HE, response of several users to a trigger, each on its own resource unit.
    HeTb,
    /// EHT, here for a single user (802.11be clause 36).
    EhtMu,
}

impl Format {
    /// The standard's name for its PPDUs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dsss => "DSSS",
            Self::Ofdm => "OFDM",
            Self::ErpOfdm => "ERP-OFDM",
            Self::HtMixed => "HT-mixed",
            Self::Vht => "VHT",
            Self::HeSu => "HE SU",
            Self::HeErSu => "HE ER SU",
            Self::HeMu => "HE MU",
            Self::HeTb => "HE TB",
            Self::EhtMu => "EHT MU",
        }
    }

    /// The amendment that introduced it.
    pub const fn standard(self) -> Standard {
        match self {
            Self::Dsss => Standard::B,
            Self::Ofdm => Standard::A,
            Self::ErpOfdm => Standard::G,
            Self::HtMixed => Standard::N,
            Self::Vht => Standard::Ac,
            Self::HeSu | Self::HeErSu | Self::HeMu | Self::HeTb => Standard::Ax,
            Self::EhtMu => Standard::Be,
        }
    }

    /// Whether data in this format is QoS data in A-MPDUs under a Block Ack agreement.
    pub const fn aggregates(self) -> bool {
        !matches!(self, Self::Dsss | Self::Ofdm | Self::ErpOfdm)
    }
}

/// Duration of an HE or EHT symbol without guard interval (802.11ax-2021 table 27-12).
const HE_SYMBOL: Duration = Duration::from_nanos(12_800);

/// Duration of an HT or VHT symbol without guard interval (802.11-2020 table 19-6).
const HT_SYMBOL: Duration = Duration::from_nanos(3_200);

/// aSignalExtension of ERP-OFDM and of HT at 2.4 GHz (802.11-2020 clauses 18.3.2.4 and 19.3.2).
const SIGNAL_EXTENSION: Duration = Duration::from_micros(6);

/// PLCP preamble and header of DSSS (802.11-2020 clause 16.2.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preamble {
    /// 144 bits and 48 bits of header at 1 Mb/s: 192 us.
    #[default]
    Long,
    /// 72 bits at 1 Mb/s and a header of 48 bits at 2 Mb/s: 96 us. Not available at 1 Mb/s.
    Short,
}

/// Encoding of the data field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coded {
    /// DSSS and CCK.
    Dsss,
    /// OFDM, HT and VHT.
    Ofdm(Modulation),
    /// HE and EHT, whose last symbol is divided into four segments.
    Segmented(DataField),
}

/// A transmission mode: all that determines the duration of a PPDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode {
    /// Format of the PPDU.
    pub format: Format,
    coded: Coded,
    /// Spatial streams.
    pub streams: u8,
    /// Channel width in MHz.
    pub width_mhz: u16,
    /// The part of the channel used, in HE and EHT: the whole channel except in multi-user PPDUs.
    pub resource_unit: Option<ResourceUnit>,
    /// Guard interval between symbols.
    pub guard_interval: GuardInterval,
    /// MCS index in the standard's table: HT 0 to 31, VHT 0 to 9, HE 0 to 11, EHT 0 to 13; `None` for legacy rates.
    pub mcs: Option<u8>,
    preamble: Duration,
    /// Time after the last symbol for slow decoders (802.11-2020 clause 18.3.2.4); part of the PPDU.
    signal_extension: Duration,
    symbol: Symbol,
    /// SERVICE bits before the data.
    service_bits: u32,
    /// Tail bits after the data: 6 per BCC encoder.
    tail_bits: u32,
}

/// Common properties of all parts of a multi-user PPDU, or of the responses of several users to a trigger. All users
/// have units of the same size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MultiUserPpdu {
    /// Direction.
    pub kind: MultiUser,
    /// Number of users.
    pub users: usize,
    /// Resource unit of each user.
    pub unit: ResourceUnit,
    /// Largest number of streams of any user; all users have training fields for that number.
    pub training_streams: u8,
    /// Lowest MCS of any user. HE-SIG-B uses no higher one, and none above 5; the standard leaves the choice open.
    pub lowest_mcs: u8,
    /// Guard interval between symbols.
    pub guard_interval: GuardInterval,
    /// Training field, coding and packet extension.
    pub options: HeOptions,
}

/// Direction of a multi-user PPDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MultiUser {
    /// From the access point: HE MU.
    Down,
    /// To the access point, in response to its trigger: HE TB.
    Up,
}

impl MultiUser {
    /// Format of the PPDUs.
    pub const fn format(self) -> Format {
        match self {
            Self::Down => Format::HeMu,
            Self::Up => Format::HeTb,
        }
    }

    /// The guard interval if single-user PPDUs use `single`: responses to triggers have at least 1.6 us (802.11ax-2021
    /// clause 27.3.11.10).
    pub fn guard_interval(self, single: GuardInterval) -> GuardInterval {
        match self {
            Self::Down => single,
            Self::Up => single.max(GuardInterval::Ns1600),
        }
    }
}

impl MultiUserPpdu {
    /// The PPDU of users whose single-user modes are `modes`, with the options `he` for responses to triggers. Units
    /// have the largest size that gives each user one. Guard interval and training field are those of the first mode.
    /// `None` if there are no users, or more users than units.
    pub fn for_users(kind: MultiUser, modes: &[Mode], he: HeChoice) -> Option<Self> {
        let first = modes.first()?;
        let guard_interval = kind.guard_interval(first.guard_interval);
        let options = match kind {
            MultiUser::Down => first.he_options()?,
            MultiUser::Up => he.options(guard_interval).unwrap_or(HeOptions::usual(guard_interval)),
        };
        Some(Self {
            kind,
            users: modes.len(),
            unit: ResourceUnit::for_users(modes.len(), first.width_mhz)?,
            training_streams: modes.iter().map(|mode| mode.streams).max()?,
            lowest_mcs: modes.iter().filter_map(|mode| mode.mcs).min()?,
            guard_interval,
            options,
        })
    }

    /// Duration of HE-SIG-B in a channel of `width_mhz`; responses to triggers have none.
    fn sig_b(&self, width_mhz: u16) -> Duration {
        match self.kind {
            MultiUser::Down => {
                sig_b_duration(self.lowest_mcs.min(SIG_B_MCS_MAX), width_mhz, self.unit, self.users)
            }
            MultiUser::Up => Duration::ZERO,
        }
    }

    /// Duration of the PPDU of `parts`, each with a user's mode and the bytes of its PSDU. The user that needs most
    /// determines the number of symbols and segments; there is one more segment if LDPC needs it for any user
    /// (802.11ax-2021 clause 27.3.12.5). Zero if there are no parts.
    pub fn duration(parts: &(impl Iterator<Item = (Mode, u32)> + Clone)) -> Duration {
        let Some(symbols) = Self::symbols(parts) else { return Duration::ZERO };
        let lasts = |(mode, _): (Mode, u32)| {
            let data = mode.data_field()?.duration_of(mode.symbol, symbols);
            Some(mode.preamble + data + mode.signal_extension)
        };
        parts.clone().filter_map(lasts).max().unwrap_or(Duration::ZERO)
    }

    /// OFDM data symbols in the PPDU of `parts`; see [`duration`](Self::duration).
    pub fn symbol_count(parts: &(impl Iterator<Item = (Mode, u32)> + Clone)) -> u64 {
        Self::symbols(parts).map_or(0, |symbols| symbols.count)
    }

    fn symbols(parts: &(impl Iterator<Item = (Mode, u32)> + Clone)) -> Option<Symbols> {
        let fields = || parts.clone().filter_map(|(mode, bytes)| Some((*mode.data_field()?, mode, bytes)));
        let initial = |(field, mode, bytes): (DataField, Mode, u32)| {
            let symbols = field.initial_symbols(mode.symbol.bits, bytes);
            (symbols.count, symbols.segments)
        };
        let (count, segments) = fields().map(initial).max()?;
        let symbols = Symbols { count, segments };
        let takes_more = fields().any(|(field, mode, _)| field.takes_segment_more(mode.symbol.bits, symbols));
        Some(if takes_more { symbols.next_segment() } else { symbols })
    }
}

/// Parameters of an HE or EHT mode on a resource unit.
struct OfUnit {
    format: Format,
    mcs: u8,
    streams: u8,
    width_mhz: u16,
    unit: ResourceUnit,
    /// Number of streams for which there are training fields.
    training_streams: u8,
    guard_interval: GuardInterval,
}

impl OfUnit {
    /// The mode with `options`, whose SIG fields after L-SIG and RL-SIG last `signal`; `None` if the tables do not have
    /// it.
    fn mode(self, options: HeOptions, signal: Duration) -> Option<Mode> {
        let Self { format, mcs, streams, width_mhz, unit, training_streams, guard_interval } = self;
        if !GuardInterval::OF_HE.contains(&guard_interval) || streams == 0 {
            return None;
        }
        let modulation = *MCS.get(usize::from(mcs))?;
        let fields = *HE_TRAINING_FIELDS.get(usize::from(training_streams.max(streams)) - 1)?;
        let coded = |subcarriers: u32| subcarriers * modulation.bits_per_subcarrier * u32::from(streams);
        let data = |subcarriers: u32| coded(subcarriers) * modulation.code_num / modulation.code_den;
        let training = options.training.duration() + guard_interval.duration();
        let short_training_us = if format == Format::HeTb { 8 } else { 4 };
        Some(Mode {
            format,
            coded: Coded::Segmented(DataField {
                modulation,
                options,
                data_bits_short: data(unit.data_subcarriers_short()),
                coded_bits: coded(unit.data_subcarriers()),
                coded_bits_short: coded(unit.data_subcarriers_short()),
            }),
            streams,
            width_mhz,
            resource_unit: Some(unit),
            guard_interval,
            mcs: Some(mcs),
            // L-STF, L-LTF (16), L-SIG and RL-SIG (4 each), SIG fields, STF, LTFs.
            preamble: Duration::from_micros(16 + 4 + 4 + short_training_us) + signal + training * fields,
            signal_extension: Duration::ZERO,
            symbol: Symbol {
                duration: HE_SYMBOL + guard_interval.duration(),
                bits: data(unit.data_subcarriers()),
            },
            service_bits: 16,
            tail_bits: 0,
        })
    }
}

impl Mode {
    /// The legacy OFDM mode of `rate` (802.11-2020 clause 17); `None` if the rate does not exist.
    pub fn ofdm(rate: BitRate) -> Option<Self> {
        let (_, modulation) = *OFDM.iter().find(|(mbps, _)| BitRate::from_mbps(*mbps) == rate)?;
        Some(Self {
            format: Format::Ofdm,
            coded: Coded::Ofdm(modulation),
            streams: 1,
            width_mhz: 20,
            resource_unit: None,
            guard_interval: GuardInterval::Ns800,
            mcs: None,
            // Short and long training (16 us) and SIGNAL (4 us).
            preamble: Duration::from_micros(20),
            signal_extension: Duration::ZERO,
            symbol: Symbol {
                duration: Duration::from_micros(4),
                bits: OFDM_SUBCARRIERS * modulation.bits_per_subcarrier * modulation.code_num
                    / modulation.code_den,
            },
            service_bits: 16,
            tail_bits: 6,
        })
    }

    /// The ERP-OFDM mode of `rate` (802.11-2020 clause 18): legacy OFDM with a signal extension of 6 us.
    pub fn erp_ofdm(rate: BitRate) -> Option<Self> {
        Some(Self { format: Format::ErpOfdm, signal_extension: SIGNAL_EXTENSION, ..Self::ofdm(rate)? })
    }

    /// The DSSS or CCK mode of `rate` (802.11-2020 clauses 15 and 16); 1 Mb/s always has the long preamble.
    pub fn dsss(rate: BitRate, preamble: Preamble) -> Option<Self> {
        let (kbps, bits, per_us) = *DSSS.iter().find(|(kbps, ..)| BitRate::from_kbps(*kbps) == rate)?;
        let preamble = if kbps == 1_000 { Preamble::Long } else { preamble };
        Some(Self {
            format: Format::Dsss,
            coded: Coded::Dsss,
            streams: 1,
            width_mhz: 22,
            resource_unit: None,
            guard_interval: GuardInterval::Ns800,
            mcs: None,
            preamble: Duration::from_micros(match preamble {
                Preamble::Long => 192,
                Preamble::Short => 96,
            }),
            signal_extension: Duration::ZERO,
            symbol: Symbol { duration: Duration::from_micros(per_us), bits },
            service_bits: 0,
            tail_bits: 0,
        })
    }

    /// The HT-mixed mode of `mcs` 0 to 7 on `streams` 1 to 4; `None` if the table does not have it.
    pub fn ht(mcs: u8, streams: u8, forty_mhz: bool, guard_interval: GuardInterval) -> Option<Self> {
        if mcs >= HT_MCS {
            return None;
        }
        let width_mhz = if forty_mhz { 40 } else { 20 };
        let mut mode = Self::streamed(mcs, streams, width_mhz, guard_interval)?;
        mode.mcs = Some(mcs + HT_MCS * (streams - 1));
        // One encoder up to 300 Mb/s, two above that (802.11-2020 clause 19.3.11.4).
        mode.tail_bits = if mode.rate() > BitRate::from_mbps(300) { 12 } else { 6 };
        Some(mode)
    }

    /// This mode of HT or HE at 2.4 GHz, where it has a signal extension.
    pub(super) fn with_signal_extension(self) -> Self {
        Self { signal_extension: SIGNAL_EXTENSION, ..self }
    }

    /// Whether it is a mode of 2.4 GHz.
    pub const fn is_2_4_ghz(&self) -> bool {
        matches!(self.format, Format::Dsss) || self.signal_extension.as_nanos() > 0
    }

    /// The VHT mode of `mcs` 0 to 9 on `streams` 1 to 4 at 20, 40, 80 or 160 MHz; `None` if the tables do not have it:
    /// they omit some combinations (802.11-2020 clause 21.5).
    pub fn vht(mcs: u8, streams: u8, width_mhz: u16, guard_interval: GuardInterval) -> Option<Self> {
        if mcs >= VHT_MCS || !vht_has(width_mhz, streams, mcs) {
            return None;
        }
        let mut mode = Self::streamed(mcs, streams, width_mhz, guard_interval)?;
        mode.format = Format::Vht;
        // VHT-SIG-B, which HT does not have.
        mode.preamble += Duration::from_micros(4);
        mode.tail_bits = 6 * vht_encoders(width_mhz, streams, mcs, mode.symbol.bits);
        Some(mode)
    }

    /// The HE SU mode of `mcs` 0 to 11 on `streams` 1 to 8 at 20, 40, 80 or 160 MHz with default options; `None` if the
    /// tables do not have it (802.11ax-2021 clause 27.5).
    pub fn he(mcs: u8, streams: u8, width_mhz: u16, guard_interval: GuardInterval) -> Option<Self> {
        let options = HeOptions::usual(guard_interval);
        let mode = || Self::of_tones(Format::HeSu, mcs, streams, width_mhz, guard_interval, options);
        (mcs < HE_MCS && width_mhz <= 160).then(mode).flatten()
    }

    /// The HE ER SU mode of `mcs` 0 to 2: one stream over 20 MHz, with SIG-A sent twice.
    pub fn he_extended_range(mcs: u8, guard_interval: GuardInterval) -> Option<Self> {
        let options = HeOptions::usual(guard_interval);
        let mode = || Self::of_tones(Format::HeErSu, mcs, 1, 20, guard_interval, options);
        (mcs <= 2).then(mode).flatten()
    }

    /// The EHT mode of `mcs` 0 to 13 on `streams` 1 to 8 at 20 to 320 MHz, single user, default options;
    /// `None` if the tables do not have it.
    pub fn eht(mcs: u8, streams: u8, width_mhz: u16, guard_interval: GuardInterval) -> Option<Self> {
        let options = HeOptions::usual(guard_interval);
        Self::of_tones(Format::EhtMu, mcs, streams, width_mhz, guard_interval, options)
    }

    /// This HE SU mode as one user's part of an HE MU or HE TB PPDU; `None` for other modes, and if the channel has no
    /// such unit (802.11ax-2021 clauses 27.3.11 and 27.3.2).
    pub fn among_users(self, ppdu: &MultiUserPpdu) -> Option<Self> {
        let Self { format: Format::HeSu, mcs: Some(mcs), streams, width_mhz, signal_extension, .. } = self
        else {
            return None;
        };
        let MultiUserPpdu { unit, training_streams, guard_interval, options, .. } = *ppdu;
        let format = ppdu.kind.format();
        let signal = Duration::from_micros(8) + ppdu.sig_b(width_mhz);
        let of_unit = OfUnit { format, mcs, streams, width_mhz, unit, training_streams, guard_interval };
        (unit.count_in(width_mhz) > 0)
            .then(|| of_unit.mode(options, signal))
            .flatten()
            .map(|mode| Self { signal_extension, ..mode })
    }

    /// This mode with an MCS of at most `mcs` if it is HE SU; other modes are returned unchanged.
    pub fn at_most_mcs(self, mcs: u8) -> Self {
        let Self { format, streams, width_mhz, guard_interval, signal_extension, .. } = self;
        let slower = (format == Format::HeSu && self.mcs > Some(mcs))
            .then(|| Self::of_tones(format, mcs, streams, width_mhz, guard_interval, self.he_options()?))
            .flatten();
        slower.map_or(self, |slower| Self { signal_extension, ..slower })
    }

    /// This HE or EHT mode with `options`; `None` for other modes.
    pub fn with_options(self, options: HeOptions) -> Option<Self> {
        let Self { format, mcs, streams, width_mhz, guard_interval, signal_extension, .. } = self;
        let mode = Self::of_tones(format, mcs?, streams, width_mhz, guard_interval, options)?;
        Some(Self { signal_extension, ..mode })
    }

    /// The options of an HE or EHT mode; `None` for other modes.
    pub fn he_options(&self) -> Option<HeOptions> {
        self.data_field().map(|field| field.options)
    }

    /// Common part of HE and EHT modes with the whole channel for one user.
    fn of_tones(
        format: Format,
        mcs: u8,
        streams: u8,
        width_mhz: u16,
        guard_interval: GuardInterval,
        options: HeOptions,
    ) -> Option<Self> {
        let signal_us = match format {
            Format::HeSu => 8,
            Format::HeErSu => 16,
            // U-SIG, and EHT-SIG for one user: 52 bits at its MCS 0.
            Format::EhtMu => 8 + 8,
            _ => return None,
        };
        let unit = ResourceUnit::of_channel(width_mhz)?;
        let of_unit =
            OfUnit { format, mcs, streams, width_mhz, unit, training_streams: streams, guard_interval };
        of_unit.mode(options, Duration::from_micros(signal_us))
    }

    /// Common part of HT and VHT modes.
    fn streamed(mcs: u8, streams: u8, width_mhz: u16, guard_interval: GuardInterval) -> Option<Self> {
        if !GuardInterval::OF_HT.contains(&guard_interval) {
            return None;
        }
        let modulation = *MCS.get(usize::from(mcs))?;
        let training = *LONG_TRAINING_FIELDS.get(usize::from(streams).checked_sub(1)?)?;
        let channel = CHANNELS.iter().find(|channel| channel.width_mhz == width_mhz)?;
        let coded = channel.data_subcarriers * modulation.bits_per_subcarrier * u32::from(streams);
        Some(Self {
            format: Format::HtMixed,
            coded: Coded::Ofdm(modulation),
            streams,
            width_mhz,
            resource_unit: None,
            guard_interval,
            mcs: Some(mcs),
            // L-STF, L-LTF (16), L-SIG (4), HT-SIG or VHT-SIG-A (8), STF (4), LTFs (4 each).
            preamble: Duration::from_micros(16 + 4 + 8 + 4 + 4 * training),
            signal_extension: Duration::ZERO,
            symbol: Symbol {
                duration: HT_SYMBOL + guard_interval.duration(),
                bits: coded * modulation.code_num / modulation.code_den,
            },
            service_bits: 16,
            tail_bits: 6,
        })
    }

    /// Bit rate of the data field. Fractional bits per symbol of HE and EHT count, as in the standard's tables.
    pub const fn rate(&self) -> BitRate {
        let Symbol { duration, bits } = self.symbol;
        match &self.coded {
            Coded::Segmented(field) => field.rate(duration),
            _ => BitRate::from_bps(bits as u64 * 1_000_000_000 / duration.as_nanos()),
        }
    }

    /// Modulation and coding of OFDM; `None` for DSSS and CCK.
    pub const fn modulation(&self) -> Option<Modulation> {
        match &self.coded {
            Coded::Dsss => None,
            Coded::Ofdm(modulation) => Some(*modulation),
            Coded::Segmented(field) => Some(field.modulation),
        }
    }

    /// Duration of PHY preamble and header: everything before the data field.
    pub const fn preamble(&self) -> Duration {
        self.preamble
    }

    /// Whether it has the short preamble and header of DSSS.
    pub const fn has_short_preamble(&self) -> bool {
        matches!(self.format, Format::Dsss) && self.preamble.as_micros() == 96
    }

    /// aRxPHYStartDelay: time from the start of a PPDU of this format until a receiver detects it. 20 us for all OFDM,
    /// as at 5 GHz (802.11-2020 table 17-21); preamble and header for DSSS (table 16-4).
    pub const fn rx_start_delay(&self) -> Duration {
        match self.format {
            Format::Dsss => self.preamble,
            _ => Duration::from_micros(20),
        }
    }

    /// Unit to which the length of a data field is rounded up beyond symbols: 1 us for DSSS, the unit of its LENGTH
    /// field (802.11-2020 clause 16.3.4), and 4 us for OFDM, which matters with short guard intervals (clauses 19.4.3
    /// and 21.4.3).
    const fn granule_ns(&self) -> u64 {
        match self.format {
            Format::Dsss => 1_000,
            _ => 4_000,
        }
    }

    /// Duration of a PPDU that carries a PSDU of `bytes` bytes, including preamble and signal extension.
    ///
    /// 802.11-2020 clauses 16.3.4, 17.4.3, 18.5.3, 19.4.3 and 21.4.3: SERVICE bits, data and tail bits, rounded up to
    /// symbols, or to microseconds for DSSS. With the short guard interval the sum is rounded up to 4 us.
    ///
    /// HE and EHT: 802.11ax-2021 clause 27.4.3, without rounding after the last symbol.
    pub fn ppdu_duration(&self, bytes: u32) -> Duration {
        if let Coded::Segmented(field) = &self.coded {
            return self.preamble + field.duration(self.symbol, bytes) + self.signal_extension;
        }
        let bits = self.service_bits as u64 + 8 * bytes as u64 + self.tail_bits as u64;
        let data = match self.format {
            Format::Dsss => (bits * self.symbol.duration.as_nanos()).div_ceil(self.symbol.bits as u64),
            _ => bits.div_ceil(self.symbol.bits as u64) * self.symbol.duration.as_nanos(),
        };
        let data = data.next_multiple_of(self.granule_ns());
        Duration::from_nanos(self.preamble.as_nanos() + data + self.signal_extension.as_nanos())
    }

    /// Time from the start of a PPDU to the end of the first `bytes` bytes of its PSDU.
    pub const fn time_before(&self, bytes: u32) -> Duration {
        let symbols = (self.service_bits as u64 + 8 * bytes as u64) / self.symbol.bits as u64;
        Duration::from_nanos(self.preamble.as_nanos() + symbols * self.symbol.duration.as_nanos())
    }

    /// Most PSDU bytes in a PPDU of at most `limit`; zero if not even the preamble fits.
    pub fn bytes_within(&self, limit: Duration) -> u32 {
        let data = limit.saturating_sub(self.preamble).saturating_sub(self.signal_extension);
        if let Coded::Segmented(field) = &self.coded {
            return field.bytes_within(self.symbol, data);
        }
        let data = data.as_nanos() / self.granule_ns() * self.granule_ns();
        let bits = match self.format {
            Format::Dsss => data * self.symbol.bits as u64 / self.symbol.duration.as_nanos(),
            _ => data / self.symbol.duration.as_nanos() * self.symbol.bits as u64,
        };
        (bits.saturating_sub(self.service_bits as u64 + self.tail_bits as u64) / 8) as u32
    }

    /// Most PSDU bytes in `symbols` symbols of HE or EHT; zero for other formats.
    pub fn bytes_in_symbols(&self, symbols: u64) -> u32 {
        self.data_field().map_or(0, |field| field.bytes_in(self.symbol.bits, symbols))
    }

    /// Rate of the legacy mode with the same modulation (802.11-2020 table 10-10); the own rate for legacy modes.
    pub fn non_ht_reference_rate(&self) -> BitRate {
        let Some(modulation) = self.modulation() else { return self.rate() };
        let same = OFDM.iter().find(|(_, legacy)| *legacy == modulation);
        // 64-QAM 5/6 and 256-QAM have no legacy equivalent; the table gives 54.
        BitRate::from_mbps(same.map_or(54, |(mbps, _)| *mbps))
    }

    /// LENGTH in L-SIG of an HE or EHT PPDU of `bytes` bytes, from which older stations derive its duration
    /// (802.11ax-2021 clause 27.3.11.5); `None` for other formats.
    pub fn l_sig_length(&self, bytes: u32) -> Option<u32> {
        // The remainder of the division by three encodes the format.
        let m = match self.format {
            Format::HeSu | Format::HeTb => 2,
            Format::HeErSu | Format::HeMu => 1,
            Format::EhtMu => 0,
            _ => return None,
        };
        let behind =
            self.ppdu_duration(bytes).saturating_sub(self.signal_extension + Duration::from_micros(20));
        Some((3 * behind.as_nanos().div_ceil(4_000)) as u32 - 3 - m)
    }

    /// LENGTH in L-SIG of an HE TB PPDU of duration `duration`, which triggers announce (UL Length).
    pub const fn triggered_l_sig_length(duration: Duration) -> u32 {
        let behind = duration.as_nanos().saturating_sub(20_000);
        (3 * behind.div_ceil(4_000)).saturating_sub(3 + 2) as u32
    }

    /// Parameters of the last symbol, for HE and EHT.
    pub(super) const fn data_field(&self) -> Option<&DataField> {
        match &self.coded {
            Coded::Segmented(field) => Some(field),
            _ => None,
        }
    }

    /// Number of encoders, for tests.
    #[cfg(test)]
    pub(super) const fn encoders(&self) -> u32 {
        self.tail_bits / 6
    }

    /// Data bits per symbol, for tests.
    #[cfg(test)]
    pub(super) const fn bits_per_symbol(&self) -> u32 {
        self.symbol.bits
    }
}

#[cfg(test)]
#[path = "mode_tests.rs"]
mod tests;
