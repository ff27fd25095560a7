//! Radiotap headers (radiotap.org): where the frame starts, whether it was received intact, and its PHY mode.
//!
//! The lengths and positions of fields are checked against the length of the header. A mode that is in no table is
//! ignored.

use tacit_link::wifi::phy::{GuardInterval, Mode, Preamble};
use tacit_packet::units::BitRate;
use tacit_sim::capture::fields::{
    self, FIELDS, GUARD_INTERVAL_MASK, GUARD_INTERVALS, TLV_ALIGN, bit, channel, flags, named, tlv, u_sig,
};

/// The parsed fields of a header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Radiotap {
    /// Length of the header in bytes.
    pub len: usize,
    flags: u8,
    /// PHY mode of the frame; `None` if the header does not contain one, or one that is in no table.
    pub mode: Option<Mode>,
}

impl Radiotap {
    /// True if the frame ends in an FCS.
    pub const fn has_fcs(&self) -> bool {
        self.flags & flags::FCS_AT_END != 0
    }

    /// True if the FCS was wrong.
    pub const fn has_bad_fcs(&self) -> bool {
        self.flags & flags::BAD_FCS != 0
    }

    /// True if the MAC header is padded to a multiple of 4 bytes.
    pub const fn is_padded(&self) -> bool {
        self.flags & flags::DATA_PAD != 0
    }

    /// Parses the header at the start of `frame`; `None` if it is truncated.
    pub fn parse(frame: &[u8]) -> Option<Self> {
        let len = usize::from(u16_at(frame, 2)?);
        let header = frame.get(..len)?;
        let mut at = 4;
        while u32_at(header, at)? & 1 << bit::MORE != 0 {
            at += 4;
        }
        let mut fields = Fields { header, at: at + 4, radio: Radio::default() };
        let words = header.get(4..at + 4)?;
        let mut is_vendors = false;
        for word in words.chunks_exact(4) {
            let word = u32::from_le_bytes(*word.first_chunk()?);
            let whole = if is_vendors { Some(()) } else { fields.of_word(word) };
            // After a field that is truncated or has an unknown length, the position of the next field is unknown.
            if whole.is_none() {
                break;
            }
            is_vendors = word & 1 << bit::VENDOR_NAMESPACE != 0
                || is_vendors && word & 1 << bit::RADIOTAP_NAMESPACE == 0;
            if word & 1 << bit::VENDOR_NAMESPACE != 0 && fields.skip_vendors().is_none() {
                break;
            }
        }
        let radio = fields.radio;
        Some(Self { len, flags: radio.flags.unwrap_or_default(), mode: radio.mode() })
    }
}

/// Reads the fields of a header in order.
struct Fields<'h> {
    header: &'h [u8],
    at: usize,
    radio: Radio,
}

impl<'h> Fields<'h> {
    /// Reads the fields indicated by `word`; `None` if a field of unknown length ends the sequence.
    fn of_word(&mut self, word: u32) -> Option<()> {
        for (number, (len, align)) in (0..).zip(FIELDS) {
            if word & 1 << number != 0 {
                let field = self.next(len, align)?;
                self.radio.note(number, field);
            }
        }
        if word & 1 << bit::TLVS != 0 {
            self.tlvs();
            return None;
        }
        Some(())
    }

    fn next(&mut self, len: usize, align: usize) -> Option<&'h [u8]> {
        let from = self.at.next_multiple_of(align);
        let field = self.header.get(from..from + len)?;
        self.at = from + len;
        Some(field)
    }

    /// Skips vendor fields: OUI, sub-namespace and length (radiotap.org, vendor namespace).
    fn skip_vendors(&mut self) -> Option<()> {
        let namespace = self.next(6, 2)?;
        let len = usize::from(u16_at(namespace, 4)?);
        self.next(len, 1).map(|_| ())
    }

    /// Reads fields with their own type and length, up to the end of the header.
    fn tlvs(&mut self) {
        while let Some(head) = self.next(4, TLV_ALIGN) {
            let (Some(kind), Some(len)) = (u16_at(head, 0), u16_at(head, 2)) else { return };
            let Some(value) = self.next(len.into(), 1) else { return };
            match kind {
                tlv::U_SIG => self.radio.u_sig = value.first_chunk().map(|word| u32::from_le_bytes(*word)),
                tlv::EHT => self.radio.eht = eht(value),
                _ => {}
            }
        }
    }
}

/// MCS, streams and guard interval of an EHT field.
type Eht = (u8, u8, GuardInterval);

/// The fields that describe the PHY mode.
#[derive(Default)]
struct Radio {
    flags: Option<u8>,
    /// In units of 500 kb/s.
    rate: Option<u8>,
    channel_flags: Option<u16>,
    field: Option<Mode>,
    u_sig: Option<u32>,
    eht: Option<Eht>,
}

impl Radio {
    /// Stores the field of bit `number`. Only the first of each kind counts, because later words describe individual
    /// antennas.
    fn note(&mut self, number: u32, field: &[u8]) {
        let byte = || field.first().copied();
        match number {
            bit::FLAGS => self.flags = self.flags.or_else(byte),
            bit::RATE => self.rate = self.rate.or_else(byte),
            bit::CHANNEL => self.channel_flags = self.channel_flags.or_else(|| u16_at(field, 2)),
            bit::MCS => self.field = self.field.or_else(|| ht(field)),
            bit::VHT => self.field = self.field.or_else(|| vht(field)),
            bit::HE => self.field = self.field.or_else(|| he(field)),
            _ => {}
        }
    }

    fn mode(&self) -> Option<Mode> {
        self.field.or_else(|| self.eht()).or_else(|| self.legacy())
    }

    fn eht(&self) -> Option<Mode> {
        let (common, (mcs, streams, interval)) = self.u_sig.zip(self.eht)?;
        let width_mhz =
            named(&u_sig::BANDWIDTHS, &(common >> u_sig::BANDWIDTH_SHIFT & u_sig::BANDWIDTH_MASK))?;
        (common & u_sig::BANDWIDTH_KNOWN != 0).then(|| Mode::eht(mcs, streams, width_mhz, interval)).flatten()
    }

    fn legacy(&self) -> Option<Mode> {
        let rate = BitRate::from_kbps(500 * u64::from(self.rate?));
        if self.channel_flags.unwrap_or_default() & channel::GHZ_2_4 == 0 {
            return Mode::ofdm(rate);
        }
        let is_short = self.flags.unwrap_or_default() & flags::SHORT_PREAMBLE != 0;
        let preamble = if is_short { Preamble::Short } else { Preamble::Long };
        Mode::dsss(rate, preamble).or_else(|| Mode::erp_ofdm(rate))
    }
}

/// The MCS field: known, flags, index.
fn ht(field: &[u8]) -> Option<Mode> {
    use fields::mcs::{
        BANDWIDTH_KNOWN, BANDWIDTH_MASK, GUARD_INTERVAL_KNOWN, INDEX_KNOWN, MHZ_40, SHORT_GUARD_INTERVAL,
    };
    const STREAM_MCS: u8 = 8;
    const KNOWN: u8 = BANDWIDTH_KNOWN | INDEX_KNOWN | GUARD_INTERVAL_KNOWN;
    let [known, flags, index] = *field.first_chunk()?;
    let interval = ht_interval(flags & SHORT_GUARD_INTERVAL != 0);
    let is_40_mhz = flags & BANDWIDTH_MASK == MHZ_40;
    let mode = || Mode::ht(index % STREAM_MCS, index / STREAM_MCS + 1, is_40_mhz, interval);
    (known & KNOWN == KNOWN).then(mode).flatten()
}

/// The VHT field: known, flags, bandwidth, MCS and streams of four users, and others.
fn vht(field: &[u8]) -> Option<Mode> {
    use fields::vht::{
        BANDWIDTH_KNOWN, BANDWIDTH_MASK, BANDWIDTHS, GUARD_INTERVAL_KNOWN, MCS_SHIFT, SHORT_GUARD_INTERVAL,
    };
    const KNOWN: u16 = GUARD_INTERVAL_KNOWN | BANDWIDTH_KNOWN;
    let width_mhz = named(&BANDWIDTHS, &(field.get(3)? & BANDWIDTH_MASK))?;
    let interval = ht_interval(field.get(2)? & SHORT_GUARD_INTERVAL != 0);
    let user = field.get(4)?;
    let mode = || Mode::vht(user >> MCS_SHIFT, user & 0x0f, width_mhz, interval);
    (u16_at(field, 0)? & KNOWN == KNOWN).then(mode).flatten()
}

const fn ht_interval(is_short: bool) -> GuardInterval {
    if is_short { GuardInterval::Ns400 } else { GuardInterval::Ns800 }
}

/// The HE field, six words: known, known, MCS, spatial reuse, width and guard interval, streams. Only for single-user
/// PPDUs.
fn he(field: &[u8]) -> Option<Mode> {
    use fields::he::{
        BANDWIDTH_KNOWN, BANDWIDTH_MASK, BANDWIDTHS, FORMAT_EXT_SU, FORMAT_MASK, FORMAT_SU,
        GUARD_INTERVAL_KNOWN, GUARD_INTERVAL_SHIFT, MCS_KNOWN, MCS_MASK, MCS_SHIFT, STREAMS_MASK,
    };
    const KNOWN: u16 = MCS_KNOWN | BANDWIDTH_KNOWN;
    let word = |i: usize| u16_at(field, 2 * i);
    let known = word(0)?;
    let (mcs, streams) = ((word(2)? >> MCS_SHIFT & MCS_MASK) as u8, (word(5)? & STREAMS_MASK) as u8);
    let interval = he_interval(word(4)? >> GUARD_INTERVAL_SHIFT)?;
    if known & KNOWN != KNOWN || word(1)? & GUARD_INTERVAL_KNOWN == 0 {
        return None;
    }
    let width_mhz = named(&BANDWIDTHS, &(word(4)? & BANDWIDTH_MASK))?;
    match known & FORMAT_MASK {
        FORMAT_SU => Mode::he(mcs, streams, width_mhz, interval),
        FORMAT_EXT_SU => Mode::he_extended_range(mcs, interval),
        _ => None,
    }
}

/// The EHT field: a word of known flags, nine data words, and one word per user. One of the users is the frame's.
fn eht(field: &[u8]) -> Option<Eht> {
    use fields::eht::{
        DATA_FOR_USER, DATA_WORDS, GUARD_INTERVAL_KNOWN, GUARD_INTERVAL_SHIFT, MCS_KNOWN, MCS_MASK,
        MCS_SHIFT, STREAMS_KNOWN, STREAMS_MASK, STREAMS_SHIFT,
    };
    const FIRST_USER: usize = 4 * (1 + DATA_WORDS);
    const KNOWN: u32 = MCS_KNOWN | STREAMS_KNOWN;
    let interval = he_interval((u32_at(field, 4)? >> GUARD_INTERVAL_SHIFT) as u16)?;
    let users = || {
        let words = field.get(FIRST_USER..)?.chunks_exact(4);
        Some(words.filter_map(|word| u32_at(word, 0)))
    };
    let user = users()?.find(|user| user & DATA_FOR_USER != 0).or_else(|| users()?.next())?;
    let is_known = u32_at(field, 0)? & GUARD_INTERVAL_KNOWN != 0 && user & KNOWN == KNOWN;
    let (mcs, streams) = (user >> MCS_SHIFT & MCS_MASK, user >> STREAMS_SHIFT & STREAMS_MASK);
    is_known.then_some((mcs as u8, streams as u8 + 1, interval))
}

/// The guard interval of HE or EHT for the number in the low bits of `code`.
fn he_interval(code: u16) -> Option<GuardInterval> {
    GUARD_INTERVALS.get(usize::from(code & GUARD_INTERVAL_MASK)).copied()
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|field| u16::from_le_bytes(*field))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|field| u32::from_le_bytes(*field))
}

#[cfg(test)]
#[path = "radiotap_tests.rs"]
mod tests;
