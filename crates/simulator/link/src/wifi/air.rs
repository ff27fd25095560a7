//! The channel as an ideal observer receives it: every frame, for captures and timelines.

use tacit_packet::units::{Duration, Instant};

use super::bitmap::AckBitmap;
use super::category::AccessCategory;
use super::link_set::LinkId;
use super::phy::Mode;
pub use super::phy::TriggerKind;

/// A station's index within its basic service set; the access point is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StationId(pub u16);

impl StationId {
    /// The access point.
    pub const AP: Self = Self(0);

    /// Index into per-station tables.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Whether, or why not, the intended receiver got a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Received with a correct FCS.
    Received,
    /// Another PPDU overlapped it.
    Collided,
    /// The error model destroyed it.
    Errored,
}

/// Position of an MPDU in an A-MPDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AmpduPosition {
    /// A number shared by all MPDUs of one A-MPDU, different for consecutive A-MPDUs.
    pub reference: u32,
    /// This is the last MPDU of the A-MPDU.
    pub last: bool,
    /// It is the only MPDU, and its delimiter indicates this (S-MPDU of VHT).
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
        /// SYNC bit (HACK paper section 3.4): the transmitter continued without the last acknowledgment. No standard
        /// header has it.
        sync: bool,
        /// The IP packet.
        payload: P,
        /// Further packets, if the MPDU carries an A-MSDU.
        rest: Vec<P>,
    },
    /// ACK.
    Ack {
        /// Bytes appended to it (TCP/HACK); empty for a stock ACK.
        appended: Vec<u8>,
    },
    /// Compressed Block Ack.
    BlockAck {
        /// Starting sequence number.
        start: u16,
        /// Bit i acknowledges sequence number start + i.
        bitmap: AckBitmap,
        /// Bytes appended to it (TCP/HACK); empty for a stock Block Ack.
        appended: Vec<u8>,
    },
    /// Block Ack Request.
    BlockAckReq {
        /// Starting sequence number.
        start: u16,
    },
    /// Trigger, to which several users respond at the same time.
    Trigger(Trigger),
    /// Block Ack for several stations.
    MultiStaBlockAck(Vec<Acknowledged>),
    /// QoS Null of a client, which reports its queue size.
    QosNull {
        /// Queue Size, in units of 256 bytes (802.11-2020 clause 9.2.4.5.6).
        queue_size: u8,
    },
    /// QoS Null of the access point with a TRS Control field, to which its receiver responds.
    TriggeredResponse(TriggeredResponse),
    /// Action No Ack frame with compressed TCP ACKs, after a Block Ack in response to a trigger.
    ActionNoAck {
        /// The compressed ACKs.
        content: Vec<u8>,
    },
    /// Request to send.
    Rts,
    /// Clear to send, to the sender of an RTS or to the sender itself (CTS-to-self).
    Cts,
    /// Ends a TXOP before its reservation expires.
    CfEnd,
    /// Beacon.
    Beacon,
}

/// A trigger frame (802.11ax-2021 clause 9.3.1.22).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trigger {
    /// Its variant: the response it requests.
    pub kind: TriggerKind,
    /// Channel width of the responses, in MHz.
    pub width_mhz: u16,
    /// Padding bytes after the last user.
    pub padding_bytes: u32,
    /// LENGTH of L-SIG in the responses.
    pub l_sig_length: u32,
    /// Users that respond.
    pub users: Vec<TriggerUser>,
}

/// A TRS Control field (802.11ax-2021 clause 9.2.4.6a.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TriggeredResponse {
    /// OFDM symbols of data in the response.
    pub symbols: u64,
    /// Mode of the response, including its resource unit.
    pub mode: Mode,
    /// Index of the unit among those of its size in the channel, from 0.
    pub unit_index: u16,
}

/// One station's part of a Block Ack for several stations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acknowledged {
    /// The station whose data it acknowledges.
    pub station: StationId,
    /// Starting sequence number.
    pub start: u16,
    /// Bit i acknowledges sequence number start + i.
    pub bitmap: AckBitmap,
    /// Bytes appended for this station (TCP/HACK); empty for a stock Block Ack.
    pub appended: Vec<u8>,
}

/// A user that responds to a trigger, and the parameters of its response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriggerUser {
    /// The user; the access point stands for any client that takes a unit (UORA, 802.11ax-2021 clause 26.5.4).
    pub station: StationId,
    /// Mode of its response, including its resource unit.
    pub mode: Mode,
    /// Index of the unit among those of its size in the channel, from 0.
    pub unit_index: u16,
    /// Number of units from that one on; more than one only for random access.
    pub units: u16,
    /// Starting sequence number of the requested Block Ack, if there is one.
    pub start: u16,
}

/// One MPDU on the air.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AirFrame<P> {
    /// The link of multi-link devices; the first one without them.
    pub link: LinkId,
    /// Start of the PPDU that carries it.
    pub at: Instant,
    /// Duration of that PPDU.
    pub duration: Duration,
    /// Rate and format of that PPDU.
    pub mode: Mode,
    /// Its Duration field: how long the medium is reserved after it.
    pub reserves: Duration,
    /// The transmitter.
    pub transmitter: StationId,
    /// The receiver address; `None` for a broadcast.
    pub receiver: Option<StationId>,
    /// The access category of the exchange it belongs to.
    pub category: AccessCategory,
    /// Whether the receiver got it.
    pub outcome: Outcome,
    /// The RDG/More PPDU subfield of its HT Control field, if it has one (802.11-2020 clause 9.2.4.6): a grant if sent
    /// by the TXOP holder; if sent by the responder, the announcement that a PPDU follows.
    pub more_ppdu: Option<bool>,
    /// Index of its unit among those of `mode` in the channel, from 0, if several users share the PPDU.
    pub unit_index: Option<u16>,
    /// Its A-MPDU, if any.
    pub ampdu: Option<AmpduPosition>,
    /// The frame itself.
    pub frame: Frame<P>,
}

impl<P> Frame<P> {
    /// The packets of a data frame.
    pub fn packets(&self) -> impl Iterator<Item = &P> {
        let (first, rest) = match self {
            Self::Data { payload, rest, .. } => (Some(payload), &rest[..]),
            _ => (None, &[][..]),
        };
        first.into_iter().chain(rest)
    }

    /// The same frame with `each` of its packets.
    fn map<Q>(self, mut each: impl FnMut(P) -> Q) -> Frame<Q> {
        match self {
            Self::Data { sequence, retry, more_data, sync, payload, rest } => {
                let payload = each(payload);
                let rest = rest.into_iter().map(each).collect();
                Frame::Data { sequence, retry, more_data, sync, payload, rest }
            }
            Self::Ack { appended } => Frame::Ack { appended },
            Self::BlockAck { start, bitmap, appended } => Frame::BlockAck { start, bitmap, appended },
            Self::BlockAckReq { start } => Frame::BlockAckReq { start },
            Self::Trigger(trigger) => Frame::Trigger(trigger),
            Self::MultiStaBlockAck(acknowledged) => Frame::MultiStaBlockAck(acknowledged),
            Self::QosNull { queue_size } => Frame::QosNull { queue_size },
            Self::TriggeredResponse(response) => Frame::TriggeredResponse(response),
            Self::ActionNoAck { content } => Frame::ActionNoAck { content },
            Self::Rts => Frame::Rts,
            Self::Cts => Frame::Cts,
            Self::CfEnd => Frame::CfEnd,
            Self::Beacon => Frame::Beacon,
        }
    }
}

impl<P> AirFrame<P> {
    /// The same MPDU with `each` of its packets: contents in the place of handles.
    pub fn map<Q>(self, each: impl FnMut(P) -> Q) -> AirFrame<Q> {
        AirFrame {
            link: self.link,
            at: self.at,
            duration: self.duration,
            mode: self.mode,
            reserves: self.reserves,
            transmitter: self.transmitter,
            receiver: self.receiver,
            category: self.category,
            outcome: self.outcome,
            more_ppdu: self.more_ppdu,
            unit_index: self.unit_index,
            ampdu: self.ampdu,
            frame: self.frame.map(each),
        }
    }
}
