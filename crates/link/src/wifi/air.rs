//! What an ideal observer hears: every frame on the air, for captures and time lines.

use tacit_proto::units::{Duration, Instant};

use super::bitmap::AckBitmap;
use super::category::AccessCategory;
use super::phy::Mode;

/// A station's index within its basic service set; the access point is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StationId(pub u16);

impl StationId {
    /// The access point.
    pub const AP: Self = Self(0);

    /// As an index into per-station tables.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Why the intended receiver did not get a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Received with a correct FCS.
    Received,
    /// Another PPDU overlapped it.
    Collided,
    /// The error model hit it.
    Errored,
}

/// Where an MPDU stands in an A-MPDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AmpduPosition {
    /// A number that all MPDUs of one A-MPDU share, and the next has another.
    pub reference: u32,
    /// This is the last MPDU of the A-MPDU.
    pub last: bool,
    /// It is the only one, and its delimiter says so (S-MPDU of VHT).
    pub single: bool,
}

/// A frame by type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame<P> {
    /// Data (QoS data where the standard aggregates).
    Data {
        /// MAC sequence number, 12 bits.
        sequence: u16,
        /// Retry bit.
        retry: bool,
        /// More Data bit.
        more_data: bool,
        /// SYNC bit (HACK paper section 3.4): the transmitter moved on without the last
        /// acknowledgment. No standard header has it.
        sync: bool,
        /// Its A-MPDU, if any.
        ampdu: Option<AmpduPosition>,
        /// The IP packet.
        payload: P,
        /// The others, where the MPDU carries an A-MSDU.
        rest: Vec<P>,
    },
    /// ACK.
    Ack {
        /// What rides on it (TCP/HACK); empty on a stock one.
        appended: Vec<u8>,
    },
    /// Compressed Block Ack.
    BlockAck {
        /// Starting sequence number.
        start: u16,
        /// Bit i acknowledges sequence number start + i.
        bitmap: AckBitmap,
        /// What rides on it (TCP/HACK); empty on a stock one.
        appended: Vec<u8>,
    },
    /// Block Ack Request.
    BlockAckReq {
        /// Starting sequence number.
        start: u16,
    },
    /// Request to send.
    Rts,
    /// Clear to send, to who asked or to the sender itself.
    Cts,
    /// End of a TXOP before what it reserved is over.
    CfEnd,
    /// Beacon.
    Beacon,
}

/// One MPDU on the air.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AirFrame<P> {
    /// Start of the PPDU that carries it.
    pub at: Instant,
    /// Length of that PPDU in time.
    pub duration: Duration,
    /// Rate and format of that PPDU.
    pub mode: Mode,
    /// What its Duration field says: how long the medium is reserved after it.
    pub reserves: Duration,
    /// Who sends.
    pub transmitter: StationId,
    /// Who is addressed; `None` is everybody.
    pub receiver: Option<StationId>,
    /// The access category of the exchange it belongs to.
    pub category: AccessCategory,
    /// Whether the addressee got it.
    pub outcome: Outcome,
    /// The RDG/More PPDU subfield of its HT Control field, if it has one (802.11-2020 clause 9.2.4.6): from the
    /// holder of a TXOP a grant, from who answers that a PPDU follows.
    pub more_ppdu: Option<bool>,
    /// What it is.
    pub frame: Frame<P>,
}
