//! Fields of radiotap headers (radiotap.org): constants shared by writers and readers.
//!
//! Numbers are little-endian, and each field is aligned relative to the start of the header. Modules are named after
//! fields, and contain their bits.

use tacit_link::wifi::phy::{GuardInterval, ResourceUnit};

/// Bits of a present word.
pub mod bit {
    /// Start time of the frame in microseconds.
    pub const TSFT: u32 = 0;
    /// See [`flags`](super::flags).
    pub const FLAGS: u32 = 1;
    /// In units of 500 kb/s: rates before HT.
    pub const RATE: u32 = 2;
    /// Frequency in MHz and [`channel`](super::channel).
    pub const CHANNEL: u32 = 3;
    /// Power in dBm.
    pub const DBM_ANTENNA_SIGNAL: u32 = 5;
    /// See [`mcs`](super::mcs).
    pub const MCS: u32 = 19;
    /// See [`ampdu`](super::ampdu).
    pub const AMPDU_STATUS: u32 = 20;
    /// See [`vht`](super::vht).
    pub const VHT: u32 = 21;
    /// See [`he`](super::he).
    pub const HE: u32 = 23;
    /// See [`he_mu`](super::he_mu).
    pub const HE_MU: u32 = 24;
    /// Fields with their own type and length follow the other fields.
    pub const TLVS: u32 = 28;
    /// The next word is in the radiotap namespace again.
    pub const RADIOTAP_NAMESPACE: u32 = 29;
    /// The next word is in a vendor namespace.
    pub const VENDOR_NAMESPACE: u32 = 30;
    /// Another word follows.
    pub const MORE: u32 = 31;
}

/// Alignment of fields with their own type and length.
pub const TLV_ALIGN: usize = 4;

/// Types of those fields.
pub mod tlv {
    /// See [`u_sig`](super::u_sig).
    pub const U_SIG: u16 = 33;
    /// See [`eht`](super::eht).
    pub const EHT: u16 = 34;
}

/// Size and alignment of the fields for bits 0 to 27.
pub const FIELDS: [(usize, usize); 28] = [
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

/// Flags of a frame.
pub mod flags {
    /// Short preamble of DSSS.
    pub const SHORT_PREAMBLE: u8 = 0x02;
    /// The frame includes its FCS.
    pub const FCS_AT_END: u8 = 0x10;
    /// The MAC header is padded to a multiple of 4.
    pub const DATA_PAD: u8 = 0x20;
    /// The FCS check failed.
    pub const BAD_FCS: u8 = 0x40;
}

/// Flags of a channel.
pub mod channel {
    /// DSSS and CCK.
    pub const CCK: u16 = 0x0020;
    /// OFDM.
    pub const OFDM: u16 = 0x0040;
    /// 2.4 GHz band.
    pub const GHZ_2_4: u16 = 0x0080;
    /// 5 GHz band, and 6 GHz as in the Linux kernel.
    pub const GHZ_5: u16 = 0x0100;
}

/// HT: one byte each for known bits, flags and index.
pub mod mcs {
    /// Known: the width.
    pub const BANDWIDTH_KNOWN: u8 = 0x01;
    /// Known: the index.
    pub const INDEX_KNOWN: u8 = 0x02;
    /// Known: the guard interval.
    pub const GUARD_INTERVAL_KNOWN: u8 = 0x04;
    /// Known: format (0 is HT-mixed), FEC (0 is BCC), STBC, extension streams.
    pub const OTHERS_KNOWN: u8 = 0x08 | 0x10 | 0x20 | 0x40;
    /// Flags: mask of the width.
    pub const BANDWIDTH_MASK: u8 = 0x03;
    /// Flags: 40 MHz.
    pub const MHZ_40: u8 = 0x01;
    /// Flags: the short guard interval.
    pub const SHORT_GUARD_INTERVAL: u8 = 0x04;
}

/// A-MPDUs: a reference number, then these flags.
pub mod ampdu {
    /// Known: whether it is the last MPDU.
    pub const LAST_KNOWN: u16 = 0x0004;
    /// The last MPDU.
    pub const IS_LAST: u16 = 0x0008;
    /// End of frame: the delimiter bit of a single MPDU.
    pub const EOF: u16 = 0x0040;
    /// Known: end of frame.
    pub const EOF_KNOWN: u16 = 0x0080;
}

/// VHT: two bytes of known bits, then flags, width, and MCS and streams of four users.
pub mod vht {
    /// Known: STBC.
    pub const STBC_KNOWN: u16 = 0x0001;
    /// Known: the guard interval.
    pub const GUARD_INTERVAL_KNOWN: u16 = 0x0004;
    /// Known: beamforming.
    pub const BEAMFORMED_KNOWN: u16 = 0x0020;
    /// Known: the width.
    pub const BANDWIDTH_KNOWN: u16 = 0x0040;
    /// Flags: the short guard interval.
    pub const SHORT_GUARD_INTERVAL: u8 = 0x04;
    /// Mask of the width.
    pub const BANDWIDTH_MASK: u8 = 0x1f;
    /// Widths in MHz without side bands, and their codes.
    pub const BANDWIDTHS: [(u16, u8); 4] = [(20, 0), (40, 1), (80, 4), (160, 11)];
    /// Per user: position of the MCS, above the streams.
    pub const MCS_SHIFT: u8 = 4;
}

/// HE: six words.
pub mod he {
    use super::ResourceUnit;

    /// First word: mask of the format,
    pub const FORMAT_MASK: u16 = 0x0003;
    /// for a single user,
    pub const FORMAT_SU: u16 = 0;
    /// for a single user with extended range,
    pub const FORMAT_EXT_SU: u16 = 1;
    /// for several users,
    pub const FORMAT_MU: u16 = 2;
    /// and for a trigger-based PPDU.
    pub const FORMAT_TB: u16 = 3;
    /// Known: the MCS.
    pub const MCS_KNOWN: u16 = 0x0020;
    /// Known: the coding.
    pub const CODING_KNOWN: u16 = 0x0080;
    /// Known: the width.
    pub const BANDWIDTH_KNOWN: u16 = 0x4000;
    /// Second word. Known: the guard interval,
    pub const GUARD_INTERVAL_KNOWN: u16 = 0x0002;
    /// and the index of the resource unit,
    pub const UNIT_KNOWN: u16 = 0x4000;
    /// which begins at this position.
    pub const UNIT_SHIFT: u16 = 8;
    /// Third word: position of the MCS,
    pub const MCS_SHIFT: u16 = 8;
    /// its mask,
    pub const MCS_MASK: u16 = 0x0f;
    /// and LDPC.
    pub const CODING_LDPC: u16 = 0x2000;
    /// Fifth word: mask of the width,
    pub const BANDWIDTH_MASK: u16 = 0x0f;
    /// Widths in MHz and their codes; other codes are resource units.
    pub const BANDWIDTHS: [(u16, u16); 4] = [(20, 0), (40, 1), (80, 2), (160, 3)];
    /// Resource units and their codes.
    pub const UNITS: [(ResourceUnit, u16); 7] = [
        (ResourceUnit::Tones26, 4),
        (ResourceUnit::Tones52, 5),
        (ResourceUnit::Tones106, 6),
        (ResourceUnit::Tones242, 7),
        (ResourceUnit::Tones484, 8),
        (ResourceUnit::Tones996, 9),
        (ResourceUnit::Tones2x996, 10),
    ];
    /// Position of the guard interval code, see [`GUARD_INTERVALS`](super::GUARD_INTERVALS),
    pub const GUARD_INTERVAL_SHIFT: u16 = 4;
    /// and of the LTF code.
    pub const TRAINING_SHIFT: u16 = 6;
    /// Sixth word: mask of the streams.
    pub const STREAMS_MASK: u16 = 0x0f;
}

/// HE MU, in addition to the HE field: two words of flags, and the units of each 20 MHz in two content channels.
pub mod he_mu {
    use super::ResourceUnit;

    /// First word. Known: the units in the first content channel,
    pub const FIRST_KNOWN: u16 = 0x0100;
    /// and in the second.
    pub const SECOND_KNOWN: u16 = 0x0200;
    /// Second word: the width, with the first codes of [`he`](super::he). Known: the width.
    pub const BANDWIDTH_KNOWN: u16 = 0x0004;
    /// Number of 20 MHz channels per content channel.
    pub const OF_CHANNEL: usize = 4;
    /// Codes for a 20 MHz channel, or the wider unit it belongs to, divided into units of this size (802.11ax-2021
    /// table 27-26).
    pub const ALLOCATIONS: [(ResourceUnit, u8); 6] = [
        (ResourceUnit::Tones26, 0b0000_0000),
        (ResourceUnit::Tones52, 0b0111_0000),
        (ResourceUnit::Tones106, 0b0110_0000),
        (ResourceUnit::Tones242, 0b1100_0000),
        (ResourceUnit::Tones484, 0b1100_1000),
        (ResourceUnit::Tones996, 0b1101_0000),
    ];
}

/// U-SIG: a common part, a version-dependent part, and a mask of known bits for the latter.
pub mod u_sig {
    /// Known: the PHY version; 0 is EHT.
    pub const VERSION_KNOWN: u32 = 0x0000_0001;
    /// Known: the width.
    pub const BANDWIDTH_KNOWN: u32 = 0x0000_0002;
    /// Known: the direction.
    pub const UPLINK_KNOWN: u32 = 0x0000_0004;
    /// Position of the width,
    pub const BANDWIDTH_SHIFT: u32 = 15;
    /// its mask,
    pub const BANDWIDTH_MASK: u32 = 0x07;
    /// and widths in MHz with their codes: the first one for 320 MHz is that of channels 31, 95 and 159 (320 MHz-1).
    pub const BANDWIDTHS: [(u16, u32); 6] = [(20, 0), (40, 1), (80, 2), (160, 3), (320, 4), (320, 5)];
    /// Direction to the access point.
    pub const UPLINK: u32 = 0x0004_0000;
    /// Second word: mask of PPDU Type And Compression Mode,
    pub const TYPE_MASK: u32 = 0x0000_00c0;
    /// and its value for a single user.
    pub const TYPE_SINGLE_USER: u32 = 0x0000_0040;
}

/// EHT: a word of known bits, nine words of data, and one word per user.
pub mod eht {
    /// Known: the guard interval.
    pub const GUARD_INTERVAL_KNOWN: u32 = 0x0000_0004;
    /// Words of data.
    pub const DATA_WORDS: usize = 9;
    /// First word: position of the guard interval code, see [`GUARD_INTERVALS`](super::GUARD_INTERVALS),
    pub const GUARD_INTERVAL_SHIFT: u32 = 7;
    /// and of the LTF code.
    pub const TRAINING_SHIFT: u32 = 9;
    /// Per user. Known: the MCS,
    pub const MCS_KNOWN: u32 = 0x0000_0002;
    /// the coding,
    pub const CODING_KNOWN: u32 = 0x0000_0004;
    /// and the streams, which are counted from 0.
    pub const STREAMS_KNOWN: u32 = 0x0000_0010;
    /// The frame is for this user.
    pub const DATA_FOR_USER: u32 = 0x0000_0080;
    /// LDPC.
    pub const CODING_LDPC: u32 = 0x0008_0000;
    /// Position of the MCS,
    pub const MCS_SHIFT: u32 = 20;
    /// its mask,
    pub const MCS_MASK: u32 = 0x0f;
    /// position of the streams,
    pub const STREAMS_SHIFT: u32 = 24;
    /// and their mask.
    pub const STREAMS_MASK: u32 = 0x0f;
}

/// Guard intervals of HE and EHT in the order of their codes.
pub const GUARD_INTERVALS: [GuardInterval; 3] = GuardInterval::OF_HE;
/// Mask of the code.
pub const GUARD_INTERVAL_MASK: u16 = 0x03;

/// The code of `what` in a table of values and codes; the first one if there are several.
pub fn number_of<T: PartialEq, N: Copy>(table: &[(T, N)], what: &T) -> Option<N> {
    table.iter().find(|(known, _)| known == what).map(|(_, number)| *number)
}

/// The value of the code `number` in such a table.
pub fn named<T: Copy, N: PartialEq>(table: &[(T, N)], number: &N) -> Option<T> {
    table.iter().find(|(_, known)| known == number).map(|(what, _)| *what)
}
