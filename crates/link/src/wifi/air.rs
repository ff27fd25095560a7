//! The air as an ideal observer hears it: every frame, for captures and time lines.

use tacit_proto::units::{Duration, Instant};

use super::bitmap::AckBitmap;
use super::category::AccessCategory;
use super::phy::Mode;
pub use super::phy::TriggerKind;

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
        /// The IP packet.
        payload: P,
        /// The others, where the MPDU carries an A-MSDU.
        rest: Vec<P>,
    },
    /// ACK.
    Ack {
        /// Bytes appended to it (TCP/HACK); empty on a stock one.
        appended: Vec<u8>,
    },
    /// Compressed Block Ack.
    BlockAck {
        /// Starting sequence number.
        start: u16,
        /// Bit i acknowledges sequence number start + i.
        bitmap: AckBitmap,
        /// Bytes appended to it (TCP/HACK); empty on a stock one.
        appended: Vec<u8>,
    },
    /// Block Ack Request.
    BlockAckReq {
        /// Starting sequence number.
        start: u16,
    },
    /// Trigger, which several users answer at once.
    Trigger(Trigger),
    /// Block Ack for several stations at once.
    MultiStaBlockAck(Vec<Acknowledged>),
    /// QoS Null of a client, which reports its queue.
    QosNull {
        /// Queue Size, in units of 256 bytes (802.11-2020 clause 9.2.4.5.6).
        queue_size: u8,
    },
    /// QoS Null of the access point with a TRS Control field, which its receiver answers.
    TriggeredResponse(TriggeredResponse),
    /// Action No Ack frame with compressed TCP ACKs, behind a Block Ack that answers a trigger.
    ActionNoAck {
        /// The compressed ACKs.
        content: Vec<u8>,
    },
    /// Request to send.
    Rts,
    /// Clear to send, to the sender of an RTS or to itself (CTS-to-self).
    Cts,
    /// End of a TXOP before its reservation is over.
    CfEnd,
    /// Beacon.
    Beacon,
}

/// A trigger frame (802.11ax-2021 clause 9.3.1.22).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trigger {
    /// Its variant: the response that it asks for.
    pub kind: TriggerKind,
    /// Channel width of the answers, in MHz.
    pub width_mhz: u16,
    /// Bytes behind the last user.
    pub padding_bytes: u32,
    /// LENGTH of L-SIG in the answers.
    pub l_sig_length: u32,
    /// Users that answer.
    pub users: Vec<TriggerUser>,
}

/// A TRS Control field (802.11ax-2021 clause 9.2.4.6a.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TriggeredResponse {
    /// OFDM symbols of data in the answer.
    pub symbols: u64,
    /// How the answer is sent: its mode, unit included.
    pub mode: Mode,
    /// Which of the units of this size in the channel, from 0.
    pub unit_index: u16,
}

/// One station's part of a Block Ack for several stations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acknowledged {
    /// Whose data it is about.
    pub station: StationId,
    /// Starting sequence number.
    pub start: u16,
    /// Bit i acknowledges sequence number start + i.
    pub bitmap: AckBitmap,
    /// Bytes appended for this station (TCP/HACK); empty on a stock one.
    pub appended: Vec<u8>,
}

/// A user that answers a trigger, and the form of its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriggerUser {
    /// The user; the access point for any client that takes a unit (UORA, 802.11ax-2021 clause 26.5.4).
    pub station: StationId,
    /// How: its mode, unit included.
    pub mode: Mode,
    /// Which of the units of this size in the channel, from 0.
    pub unit_index: u16,
    /// Units from that one on: more than one of random access alone.
    pub units: u16,
    /// Starting sequence number of the Block Ack asked for, if one is.
    pub start: u16,
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
    /// Its Duration field: how long the medium is reserved after it.
    pub reserves: Duration,
    /// The transmitter.
    pub transmitter: StationId,
    /// The addressee; `None` for a broadcast.
    pub receiver: Option<StationId>,
    /// The access category of the exchange it belongs to.
    pub category: AccessCategory,
    /// Whether the addressee got it.
    pub outcome: Outcome,
    /// The RDG/More PPDU subfield of its HT Control field, if it has one (802.11-2020 clause 9.2.4.6): from the holder of
    /// a TXOP a grant, from the responder that a PPDU follows.
    pub more_ppdu: Option<bool>,
    /// Which of the units of `mode` in the channel it has, from 0, where several users share the PPDU.
    pub unit_index: Option<u16>,
    /// Its A-MPDU, if any.
    pub ampdu: Option<AmpduPosition>,
    /// The frame itself.
    pub frame: Frame<P>,
}
