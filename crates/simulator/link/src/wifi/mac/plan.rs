//! A PPDU being assembled: contents and addressee.

use tacit_packet::units::Bytes;

use super::mpdu::Mpdu;
use crate::packet::{PacketRef, PayloadClass};
use crate::wifi::air::Frame;
use crate::wifi::airtime::AirtimeUse;

/// Contents of a PPDU being assembled.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PpduPlan {
    pub mpdus: u32,
    /// Packets in its MPDUs.
    pub msdus: u32,
    /// Bytes of the PSDU.
    pub bytes: u32,
    /// Bytes of the PSDU including padding after the last subframe.
    pub padded_bytes: u32,
    /// Bytes of the MPDUs without delimiters and padding.
    pub mpdu_bytes: u32,
    /// Part of `mpdu_bytes` in retransmitted MPDUs.
    pub retry_bytes: u32,
    /// Part of `mpdu_bytes` for pure TCP ACKs on their first transmission.
    pub ack_bytes: u32,
    /// Bytes of the packets that `ack_bytes` covers.
    pub ack_packet_bytes: u32,
    pub retries: u32,
    pub tcp_acks: u32,
    /// Index of the rate, if it adapts.
    pub rate: usize,
    /// Packets dropped from the queue because of their age.
    pub expired: u32,
    /// Packets that the queue's discipline dropped.
    pub discarded: u32,
    /// More packets are queued for this destination than this PPDU carries.
    pub more_data: bool,
    /// The SYNC bit (HACK paper section 3.4): the last acknowledgment did not arrive, but data transmission continues.
    pub sync: bool,
}

impl PpduPlan {
    /// [`PayloadClass::Ack`] for a PPDU that carries only pure TCP ACKs.
    pub fn class(&self) -> PayloadClass {
        if self.tcp_acks == self.msdus { PayloadClass::Ack } else { PayloadClass::Data }
    }

    /// The use of the majority of its bytes.
    pub fn main_use(&self) -> AirtimeUse {
        if 2 * self.retry_bytes > self.mpdu_bytes {
            AirtimeUse::Retransmission
        } else if self.class() == PayloadClass::Ack {
            AirtimeUse::TcpAck
        } else {
            AirtimeUse::Data
        }
    }

    /// Fast version of [`count`](Self::count) for an MPDU of `len` bytes on its first transmission, with one packet of
    /// `bytes` bytes and class `class`.
    pub fn count_fresh(&mut self, len: u32, bytes: Bytes, class: PayloadClass) {
        self.msdus += 1;
        self.mpdu_bytes += len;
        if class == PayloadClass::Ack {
            self.tcp_acks += 1;
            self.ack_bytes += len;
            self.ack_packet_bytes += bytes.0 as u32;
        }
    }

    pub fn count(&mut self, mpdu: &Mpdu) {
        let (msdus, acks) = (mpdu.msdus.count(), mpdu.msdus.acks());
        self.msdus += msdus;
        self.tcp_acks += acks;
        self.mpdu_bytes += mpdu.len;
        if mpdu.retries > 0 {
            self.retries += 1;
            self.retry_bytes += mpdu.len;
        } else if acks == msdus {
            self.ack_bytes += mpdu.len;
            self.ack_packet_bytes += mpdu.bytes;
        }
    }

    /// The frame that `mpdu` of this PPDU is on the air.
    pub fn frame_of(&self, mpdu: &Mpdu) -> Frame<PacketRef> {
        let (first, rest) = mpdu.msdus.parts();
        Frame::Data {
            sequence: mpdu.sequence,
            retry: mpdu.retries > 0,
            more_data: self.more_data,
            sync: self.sync,
            payload: *first,
            rest: rest.to_vec(),
        }
    }
}

/// A PPDU that a station is about to send.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Outgoing {
    /// A Block Ack Request to this peer, following a PPDU of this class.
    BlockAckRequest { peer: usize, class: PayloadClass },
    /// A report to this peer which of its MPDUs arrived, so that it sends the missing ones again.
    RepairRequest { peer: usize },
    /// Data of this class to this peer: the PPDU that its originator built last.
    Data { peer: usize, class: PayloadClass },
}

impl Outgoing {
    /// The peer to which it is addressed.
    pub fn peer(&self) -> usize {
        match self {
            Self::BlockAckRequest { peer, .. } | Self::RepairRequest { peer } | Self::Data { peer, .. } => {
                *peer
            }
        }
    }

    /// Class of the packets that it carries or asks about.
    pub fn class(&self) -> PayloadClass {
        match self {
            Self::BlockAckRequest { class, .. } | Self::Data { class, .. } => *class,
            Self::RepairRequest { .. } => PayloadClass::Data,
        }
    }
}
