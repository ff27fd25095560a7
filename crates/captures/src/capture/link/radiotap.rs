//! Radiotap headers (radiotap.org): where the frame begins, whether it was received whole, and how it was sent.
//!
//! Whatever a header says of a field's length or place is held against its own length; a mode that no table has is none.

use tacit_link::wifi::phy::{GuardInterval, Mode, Preamble};
use tacit_proto::units::BitRate;

/// Bits of a present word, and the fields of them that are read.
const FLAGS: u32 = 1;
const RATE: u32 = 2;
const CHANNEL: u32 = 3;
const MCS: u32 = 19;
const VHT: u32 = 21;
const HE: u32 = 23;
const TLVS: u32 = 28;
const RADIOTAP_NAMESPACE: u32 = 29;
const VENDOR_NAMESPACE: u32 = 30;
const MORE: u32 = 31;
const TLV_U_SIG: u16 = 33;
const TLV_EHT: u16 = 34;

/// Bytes and alignment of the fields of bits 0 to 27.
const FIELDS: [(usize, usize); 28] = [
    (8, 8),  // TSFT
    (1, 1),  // flags
    (1, 1),  // rate
    (4, 2),  // channel
    (2, 2),  // FHSS
    (1, 1),  // signal in dBm
    (1, 1),  // noise in dBm
    (2, 2),  // lock quality
    (2, 2),  // TX attenuation
    (2, 2),  // TX attenuation in dB
    (1, 1),  // TX power in dBm
    (1, 1),  // antenna
    (1, 1),  // signal in dB
    (1, 1),  // noise in dB
    (2, 2),  // RX flags
    (2, 2),  // TX flags
    (1, 1),  // RTS retries
    (1, 1),  // data retries
    (8, 4),  // extended channel
    (3, 1),  // MCS
    (8, 4),  // A-MPDU status
    (12, 2), // VHT
    (12, 8), // timestamp
    (12, 2), // HE
    (12, 2), // HE-MU
    (6, 2),  // HE-MU of other users
    (1, 1),  // PSDU of no length
    (4, 2),  // L-SIG
];

const FLAG_SHORT_PREAMBLE: u8 = 0x02;
const FLAG_FCS: u8 = 0x10;
const FLAG_DATA_PAD: u8 = 0x20;
const FLAG_BAD_FCS: u8 = 0x40;

/// What a header says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Radiotap {
    /// Bytes of the header.
    pub len: usize,
    flags: u8,
    /// How the frame was sent; `None` where the header does not say, or says what no table has.
    pub mode: Option<Mode>,
}

impl Radiotap {
    /// An FCS ends the frame.
    pub const fn has_fcs(&self) -> bool {
        self.flags & FLAG_FCS != 0
    }

    /// It did not agree.
    pub const fn has_bad_fcs(&self) -> bool {
        self.flags & FLAG_BAD_FCS != 0
    }

    /// The MAC header is padded to a multiple of 4.
    pub const fn is_padded(&self) -> bool {
        self.flags & FLAG_DATA_PAD != 0
    }

    /// Reads the header that `frame` begins with; `None` where it is cut off.
    pub fn parse(frame: &[u8]) -> Option<Self> {
        let len = usize::from(u16_at(frame, 2)?);
        let header = frame.get(..len)?;
        let mut at = 4;
        while u32_at(header, at)? & 1 << MORE != 0 {
            at += 4;
        }
        let mut fields = Fields { header, at: at + 4, radio: Radio::default() };
        let words = header.get(4..at + 4)?;
        let mut is_vendors = false;
        for word in words.chunks_exact(4) {
            let word = u32::from_le_bytes(*word.first_chunk()?);
            let whole = if is_vendors { Some(()) } else { fields.of_word(word) };
            // Of a field whose length is unknown, or that is cut off, the place of the next is unknown, too.
            if whole.is_none() {
                break;
            }
            is_vendors =
                word & 1 << VENDOR_NAMESPACE != 0 || is_vendors && word & 1 << RADIOTAP_NAMESPACE == 0;
            if word & 1 << VENDOR_NAMESPACE != 0 && fields.skip_vendors().is_none() {
                break;
            }
        }
        let radio = fields.radio;
        Some(Self { len, flags: radio.flags.unwrap_or_default(), mode: radio.mode() })
    }
}

/// A header's fields, read in their order.
struct Fields<'h> {
    header: &'h [u8],
    at: usize,
    radio: Radio,
}

impl<'h> Fields<'h> {
    /// The fields that `word` names; `None` where they end before their length is known.
    fn of_word(&mut self, word: u32) -> Option<()> {
        for (bit, (len, align)) in (0..).zip(FIELDS) {
            if word & 1 << bit != 0 {
                let field = self.next(len, align)?;
                self.radio.note(bit, field);
            }
        }
        if word & 1 << TLVS != 0 {
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

    /// A vendor's fields: OUI, what they are, and their length (radiotap.org, vendor namespace).
    fn skip_vendors(&mut self) -> Option<()> {
        let namespace = self.next(6, 2)?;
        let len = usize::from(u16_at(namespace, 4)?);
        self.next(len, 1).map(|_| ())
    }

    /// Fields of their own type and length up to the end of the header, each padded to 4.
    fn tlvs(&mut self) {
        while let Some(head) = self.next(4, 4) {
            let (Some(kind), Some(len)) = (u16_at(head, 0), u16_at(head, 2)) else { return };
            let Some(value) = self.next(len.into(), 1) else { return };
            match kind {
                TLV_U_SIG => self.radio.u_sig = value.first_chunk().map(|word| u32::from_le_bytes(*word)),
                TLV_EHT => self.radio.eht = eht(value),
                _ => {}
            }
        }
    }
}

/// MCS, streams and guard interval of an EHT field.
type Eht = (u8, u8, GuardInterval);

/// What the fields say of how a frame was sent.
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
    /// Takes the field of bit `bit`. The first of each kind counts: later words have those of single antennas.
    fn note(&mut self, bit: u32, field: &[u8]) {
        let byte = || field.first().copied();
        match bit {
            FLAGS => self.flags = self.flags.or_else(byte),
            RATE => self.rate = self.rate.or_else(byte),
            CHANNEL => self.channel_flags = self.channel_flags.or_else(|| u16_at(field, 2)),
            MCS => self.field = self.field.or_else(|| ht(field)),
            VHT => self.field = self.field.or_else(|| vht(field)),
            HE => self.field = self.field.or_else(|| he(field)),
            _ => {}
        }
    }

    fn mode(&self) -> Option<Mode> {
        self.field.or_else(|| self.eht()).or_else(|| self.legacy())
    }

    fn eht(&self) -> Option<Mode> {
        const BANDWIDTH_KNOWN: u32 = 0x0000_0002;
        const WIDTHS_MHZ: [u16; 6] = [20, 40, 80, 160, 320, 320];
        let (common, (mcs, streams, interval)) = self.u_sig.zip(self.eht)?;
        let width_mhz = *WIDTHS_MHZ.get((common >> 15 & 7) as usize)?;
        (common & BANDWIDTH_KNOWN != 0).then(|| Mode::eht(mcs, streams, width_mhz, interval)).flatten()
    }

    fn legacy(&self) -> Option<Mode> {
        const CHANNEL_2_4_GHZ: u16 = 0x0080;
        let rate = BitRate::from_kbps(500 * u64::from(self.rate?));
        if self.channel_flags.unwrap_or_default() & CHANNEL_2_4_GHZ == 0 {
            return Mode::ofdm(rate);
        }
        let is_short = self.flags.unwrap_or_default() & FLAG_SHORT_PREAMBLE != 0;
        let preamble = if is_short { Preamble::Short } else { Preamble::Long };
        Mode::dsss(rate, preamble).or_else(|| Mode::erp_ofdm(rate))
    }
}

/// The MCS field: known, flags, index.
fn ht(field: &[u8]) -> Option<Mode> {
    const STREAM_MCS: u8 = 8;
    /// Bandwidth, index and guard interval are known.
    const KNOWN: u8 = 0x07;
    let [known, flags, index] = *field.first_chunk()?;
    let interval = if flags & 0x04 == 0 { GuardInterval::Ns800 } else { GuardInterval::Ns400 };
    let mode = || Mode::ht(index % STREAM_MCS, index / STREAM_MCS + 1, flags & 0x03 == 1, interval);
    (known & KNOWN == KNOWN).then(mode).flatten()
}

/// The VHT field: known, flags, bandwidth, MCS and streams of four users, and more.
fn vht(field: &[u8]) -> Option<Mode> {
    /// Guard interval and bandwidth.
    const KNOWN: u16 = 0x0004 | 0x0040;
    let width_mhz = match field.get(3)? & 0x1f {
        0 => 20,
        1 => 40,
        4 => 80,
        11 => 160,
        _ => return None,
    };
    let interval = if field.get(2)? & 0x04 == 0 { GuardInterval::Ns800 } else { GuardInterval::Ns400 };
    let user = field.get(4)?;
    let mode = || Mode::vht(user >> 4, user & 0x0f, width_mhz, interval);
    (u16_at(field, 0)? & KNOWN == KNOWN).then(mode).flatten()
}

/// The HE field, six words: known, known, MCS, spatial reuse, width and guard interval, streams. Of PPDUs for one user.
fn he(field: &[u8]) -> Option<Mode> {
    const FORMAT_SINGLE_USER: u16 = 0;
    const FORMAT_EXTENDED_RANGE: u16 = 1;
    /// MCS and bandwidth, in the first word.
    const KNOWN: u16 = 0x0020 | 0x4000;
    /// In the second.
    const GUARD_INTERVAL_KNOWN: u16 = 0x0002;
    let word = |i: usize| u16_at(field, 2 * i);
    let (known, mcs, streams) = (word(0)?, (word(2)? >> 8 & 0x0f) as u8, (word(5)? & 0x0f) as u8);
    let interval = he_interval(word(4)? >> 4)?;
    if known & KNOWN != KNOWN || word(1)? & GUARD_INTERVAL_KNOWN == 0 {
        return None;
    }
    let width_mhz = match word(4)? & 0x0f {
        code @ 0..=3 => 20 << code,
        // A part of the channel.
        _ => return None,
    };
    match known & 0x03 {
        FORMAT_SINGLE_USER => Mode::he(mcs, streams, width_mhz, interval),
        FORMAT_EXTENDED_RANGE => Mode::he_extended_range(mcs, interval),
        _ => None,
    }
}

/// The EHT field: a word of what is known, nine of data, one for each user, of which one is the frame's.
fn eht(field: &[u8]) -> Option<Eht> {
    const GUARD_INTERVAL_KNOWN: u32 = 0x0000_0004;
    const FIRST_USER: usize = 4 * 10;
    /// MCS and streams.
    const KNOWN: u32 = 0x0000_0002 | 0x0000_0010;
    const DATA_FOR_USER: u32 = 0x0000_0080;
    let interval = he_interval((u32_at(field, 4)? >> 7) as u16)?;
    let users = || {
        let words = field.get(FIRST_USER..)?.chunks_exact(4);
        Some(words.filter_map(|word| u32_at(word, 0)))
    };
    let user = users()?.find(|user| user & DATA_FOR_USER != 0).or_else(|| users()?.next())?;
    let is_known = u32_at(field, 0)? & GUARD_INTERVAL_KNOWN != 0 && user & KNOWN == KNOWN;
    is_known.then_some(((user >> 20 & 0x0f) as u8, (user >> 24 & 0x0f) as u8 + 1, interval))
}

/// The guard interval of HE or EHT whose number the two low bits of `code` are.
const fn he_interval(code: u16) -> Option<GuardInterval> {
    match code & 3 {
        0 => Some(GuardInterval::Ns800),
        1 => Some(GuardInterval::Ns1600),
        2 => Some(GuardInterval::Ns3200),
        _ => None,
    }
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
