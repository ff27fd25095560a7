//! The data field of HE and EHT PPDUs: its symbols, the segments of the last symbol, and the packet extension after it
//! (802.11ax-2021 clauses 27.3.12 and 27.3.13).
//!
//! The last symbol has four segments. The transmitter pads the data to the end of a segment before encoding; the rest
//! of the symbol gives the receiver processing time. The number of segments in use is the pre-FEC padding factor, `a`.

use tacit_packet::units::{BitRate, Duration};

use super::symbol::{GuardInterval, Symbol};
use super::tables::Modulation;

/// The channel code of a data field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// Convolutional code, with one encoder at every rate.
    Bcc,
    /// Low-density parity check; mandatory from 40 MHz, MCS 10 or five streams up, and the default for all here.
    Ldpc,
}

/// The longest time that a receiver requests after the last symbol (its nominal packet padding). The packet extension
/// has this length if `a` is 4, and 4 us less per unused segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketExtension {
    /// No padding.
    Us0,
    /// 8 us.
    Us8,
    /// 16 us: MediaTek's Linux driver requests it at every constellation.
    Us16,
    /// 20 us, EHT only.
    Us20,
}

impl PacketExtension {
    /// All values, ascending.
    pub const ALL: [Self; 4] = [Self::Us0, Self::Us8, Self::Us16, Self::Us20];

    /// The nominal packet padding, in microseconds.
    pub const fn micros(self) -> u64 {
        match self {
            Self::Us0 => 0,
            Self::Us8 => 8,
            Self::Us16 => 16,
            Self::Us20 => 20,
        }
    }

    /// Packet extension after a last symbol with `segments` segments in use.
    const fn behind(self, segments: u64) -> Duration {
        Duration::from_micros(self.micros().saturating_sub(4 * (SEGMENTS - segments)))
    }
}

/// Duration of a training symbol as a fraction of a data symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrainingField {
    /// 1x HE-LTF: a quarter, 3.2 us.
    Quarter,
    /// 2x HE-LTF: half, 6.4 us.
    Half,
    /// 4x HE-LTF: 12.8 us.
    Whole,
}

impl TrainingField {
    /// All values, ascending.
    pub const ALL: [Self; 3] = [Self::Quarter, Self::Half, Self::Whole];

    /// The standard's name without HE-LTF or EHT-LTF.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Quarter => "1x",
            Self::Half => "2x",
            Self::Whole => "4x",
        }
    }

    /// The one that is mandatory with `guard_interval`; if there are two, the longer one: 2x, or 4x with 3.2 us.
    const fn usual(guard_interval: GuardInterval) -> Self {
        match guard_interval {
            GuardInterval::Ns3200 => Self::Whole,
            _ => Self::Half,
        }
    }

    /// Whether HE SU PPDUs allow it with `guard_interval` (802.11ax-2021 clause 27.3.11.10): 1x with 0.8 us, 2x with
    /// 0.8 and 1.6 us, 4x with 3.2 us, and, as an option of receivers, 4x with 0.8 us.
    pub const fn goes_with(self, guard_interval: GuardInterval) -> bool {
        match self {
            Self::Quarter => matches!(guard_interval, GuardInterval::Ns800),
            Self::Half => matches!(guard_interval, GuardInterval::Ns800 | GuardInterval::Ns1600),
            Self::Whole => matches!(guard_interval, GuardInterval::Ns800 | GuardInterval::Ns3200),
        }
    }

    /// Duration without the guard interval.
    pub const fn duration(self) -> Duration {
        match self {
            Self::Quarter => Duration::from_nanos(3_200),
            Self::Half => Duration::from_nanos(6_400),
            Self::Whole => Duration::from_nanos(12_800),
        }
    }
}

/// Segments in a symbol.
const SEGMENTS: u64 = 4;
/// SERVICE bits before the data.
const SERVICE_BITS: u64 = 16;
/// Tail bits that terminate a convolutional code.
const TAIL_BITS: u64 = 6;

/// Options of HE and EHT in addition to MCS, streams, width and guard interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeOptions {
    /// Training field.
    pub training: TrainingField,
    /// Channel code.
    pub coding: Coding,
    /// Padding that the receiver requests.
    pub extension: PacketExtension,
}

impl HeOptions {
    /// Default options with `guard_interval`: the 2x HE-LTF, or 4x with 3.2 us; LDPC; 16 us of packet extension.
    pub const fn usual(guard_interval: GuardInterval) -> Self {
        let HeChoice { coding, extension, .. } = HeChoice::USUAL;
        Self { training: TrainingField::usual(guard_interval), coding, extension }
    }
}

/// A basic service set's choice of [`HeOptions`] for all guard intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeChoice {
    /// Training field; `None` for the default of each guard interval.
    pub training: Option<TrainingField>,
    /// Channel code.
    pub coding: Coding,
    /// Padding that receivers request.
    pub extension: PacketExtension,
}

impl HeChoice {
    /// Default training fields, LDPC and 16 us of packet extension.
    pub const USUAL: Self = Self { training: None, coding: Coding::Ldpc, extension: PacketExtension::Us16 };

    /// This choice within the options of HE: a packet extension of 20 us exists only in EHT.
    pub const fn before_eht(self) -> Self {
        let extension = match self.extension {
            PacketExtension::Us20 => PacketExtension::Us16,
            extension => extension,
        };
        Self { extension, ..self }
    }

    /// The options of PPDUs with `guard_interval`; `None` if the training field is not allowed with it.
    pub fn options(self, guard_interval: GuardInterval) -> Option<HeOptions> {
        let training = self.training.unwrap_or(TrainingField::usual(guard_interval));
        let Self { coding, extension, .. } = self;
        training.goes_with(guard_interval).then_some(HeOptions { training, coding, extension })
    }
}

/// How a data field fills its last symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DataField {
    pub modulation: Modulation,
    /// Options, with the training field that precedes the data.
    pub options: HeOptions,
    /// Data bits of each of the first three segments: N_DBPS,short.
    pub data_bits_short: u32,
    /// Coded bits of a symbol: N_CBPS.
    pub coded_bits: u32,
    /// Coded bits of each of the first three segments: N_CBPS,short.
    pub coded_bits_short: u32,
}

/// A number of symbols, and the number of segments used in the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Symbols {
    pub count: u64,
    pub segments: u64,
}

impl Symbols {
    pub const fn next_segment(self) -> Self {
        match self.segments {
            SEGMENTS => Self { count: self.count + 1, segments: 1 },
            segments => Self { segments: segments + 1, ..self },
        }
    }

    const fn segment_before(self) -> Self {
        match self.segments {
            1 => Self { count: self.count - 1, segments: SEGMENTS },
            segments => Self { segments: segments - 1, ..self },
        }
    }
}

impl DataField {
    /// Bit rate with symbols of duration `symbol`.
    pub const fn rate(&self, symbol: Duration) -> BitRate {
        let Modulation { code_num, code_den, .. } = self.modulation;
        let bits = self.coded_bits as u64 * code_num as u64 * 1_000_000_000;
        BitRate::from_bps(bits / (code_den as u64 * symbol.as_nanos()))
    }

    const fn overhead_bits(&self) -> u64 {
        match self.options.coding {
            Coding::Bcc => SERVICE_BITS + TAIL_BITS,
            Coding::Ldpc => SERVICE_BITS,
        }
    }

    /// Bits in `symbols`, if a whole symbol holds `whole` bits and each of its first three segments `short`.
    const fn held(symbols: Symbols, whole: u32, short: u32) -> u64 {
        let last = if symbols.segments == SEGMENTS { whole as u64 } else { symbols.segments * short as u64 };
        (symbols.count - 1) * whole as u64 + last
    }

    /// Symbols of `data_bits` that a PSDU of `bytes` bytes takes.
    pub fn symbols(&self, data_bits: u32, bytes: u32) -> Symbols {
        let symbols = self.initial_symbols(data_bits, bytes);
        if self.takes_segment_more(data_bits, symbols) { symbols.next_segment() } else { symbols }
    }

    /// The same before LDPC may add a segment: N_SYM,init and a_init.
    pub fn initial_symbols(&self, data_bits: u32, bytes: u32) -> Symbols {
        let bits = self.overhead_bits() + 8 * u64::from(bytes);
        let whole = u64::from(data_bits);
        let excess = bits % whole;
        let segments = match excess {
            0 => SEGMENTS,
            _ => excess.div_ceil(u64::from(self.data_bits_short)).min(SEGMENTS),
        };
        Symbols { count: bits.div_ceil(whole), segments }
    }

    /// Whether the code needs one segment more than `symbols` has.
    pub fn takes_segment_more(&self, data_bits: u32, symbols: Symbols) -> bool {
        self.options.coding == Coding::Ldpc && self.needs_segment_more(data_bits, symbols)
    }

    /// Whether LDPC would puncture its code words too much (802.11-2020 clause 19.3.11.7.5). Payload and available bits
    /// count up to the last segment in use.
    fn needs_segment_more(&self, data_bits: u32, symbols: Symbols) -> bool {
        let (num, den) = (u64::from(self.modulation.code_num), u64::from(self.modulation.code_den));
        let payload = Self::held(symbols, data_bits, self.data_bits_short);
        let available = Self::held(symbols, self.coded_bits, self.coded_bits_short);
        let (words, length) = self.code_words(payload, available);
        let shortened = (words * length * num / den).saturating_sub(payload);
        let punctured = (words * length).saturating_sub(available).saturating_sub(shortened);
        let parity = words * length * (den - num);
        let is_much = 10 * punctured * den > parity && 10 * shortened * (den - num) < 12 * punctured * num;
        is_much || 10 * punctured * den > 3 * parity
    }

    /// Number and length in bits of the code words that carry `payload` in `available` bits (802.11-2020 table 19-16).
    fn code_words(&self, payload: u64, available: u64) -> (u64, u64) {
        let (num, den) = (u64::from(self.modulation.code_num), u64::from(self.modulation.code_den));
        let pick = |longer: u64, room: u64, shorter: u64| {
            if available * den >= payload * den + room * (den - num) { longer } else { shorter }
        };
        match available {
            0..=648 => (1, pick(1_296, 912, 648)),
            649..=1_296 => (1, pick(1_944, 1_464, 1_296)),
            1_297..=1_944 => (1, 1_944),
            1_945..=2_592 => (2, pick(1_944, 2_916, 1_296)),
            _ => ((payload * den).div_ceil(1_944 * num), 1_944),
        }
    }

    /// Duration of the data field for `bytes` bytes in symbols like `symbol`, including the packet extension.
    pub fn duration(&self, symbol: Symbol, bytes: u32) -> Duration {
        self.duration_of(symbol, self.symbols(symbol.bits, bytes))
    }

    /// Duration of `symbols` like `symbol`, including the packet extension.
    pub fn duration_of(&self, symbol: Symbol, symbols: Symbols) -> Duration {
        symbol.duration * symbols.count + self.options.extension.behind(symbols.segments)
    }

    /// Most bytes with a data field of at most `limit`.
    pub fn bytes_within(&self, symbol: Symbol, limit: Duration) -> u32 {
        let most = limit.as_nanos() / symbol.duration.as_nanos();
        self.most_bytes(symbol.bits, most, |bytes| self.duration(symbol, bytes) <= limit)
    }

    /// Most bytes with a data field of at most `most` symbols of `data_bits` bits.
    pub fn bytes_in(&self, data_bits: u32, most: u64) -> u32 {
        self.most_bytes(data_bits, most, |bytes| self.symbols(data_bits, bytes).count <= most)
    }

    /// Most bytes in `most` symbols of `data_bits` bits for which `fits` holds.
    fn most_bytes(&self, data_bits: u32, most: u64, fits: impl Fn(u32) -> bool) -> u32 {
        let mut symbols = Symbols { count: most, segments: SEGMENTS };
        // All PSDUs that end in the same segment last equally long, and no longer than those that end in the next.
        while symbols.count > 0 {
            let bits = Self::held(symbols, data_bits, self.data_bits_short);
            if let Some(bits) = bits.checked_sub(self.overhead_bits()) {
                let bytes = (bits / 8) as u32;
                if fits(bytes) {
                    return bytes;
                }
            }
            symbols = symbols.segment_before();
        }
        0
    }
}

#[cfg(test)]
#[path = "high_efficiency_tests.rs"]
mod tests;
