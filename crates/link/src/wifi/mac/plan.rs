//! A PPDU under construction: contents and addressee.

use tacit_proto::units::Bytes;

use super::mpdu::Mpdu;
use crate::payload::{Payload, PayloadClass};
use crate::wifi::air::Frame;
use crate::wifi::airtime::AirtimeUse;

/// Contents of a PPDU under construction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PpduPlan {
    pub mpdus: u32,
    /// Packets in them.
    pub msdus: u32,
    /// Bytes of the PSDU.
    pub bytes: u32,
    /// Bytes of the PSDU if the last subframe were padded too.
    pub padded_bytes: u32,
    /// Bytes of the MPDUs alone.
    pub mpdu_bytes: u32,
    /// Of them, bytes of MPDUs sent before.
    pub retry_bytes: u32,
    /// Of them, bytes of pure TCP ACKs on their first transmission.
    pub ack_bytes: u32,
    /// Bytes of the packets in those.
    pub ack_packet_bytes: u32,
    pub retries: u32,
    pub tcp_acks: u32,
    /// Number of the rate, where it adapts.
    pub rate: usize,
    /// Packets dropped from the queue because they were too old.
    pub expired: u32,
    /// Packets that the queue's discipline dropped.
    pub discarded: u32,
    /// Packets remain queued for this destination beyond this PPDU.
    pub more_data: bool,
    /// The SYNC bit (HACK paper section 3.4): the last acknowledgment never came, and data goes on.
    pub sync: bool,
}

impl PpduPlan {
    /// [`PayloadClass::Ack`] for a PPDU of nothing but pure TCP ACKs.
    pub fn class(&self) -> PayloadClass {
        if self.tcp_acks == self.msdus { PayloadClass::Ack } else { PayloadClass::Data }
    }

    /// The use of most of its bytes.
    pub fn main_use(&self) -> AirtimeUse {
        if 2 * self.retry_bytes > self.mpdu_bytes {
            AirtimeUse::Retransmission
        } else if self.class() == PayloadClass::Ack {
            AirtimeUse::TcpAck
        } else {
            AirtimeUse::Data
        }
    }

    /// [`count`](Self::count) for an MPDU of `len` bytes on its first transmission that carries one packet, of `bytes`
    /// and `class`.
    #[inline]
    pub fn count_fresh(&mut self, len: u32, bytes: Bytes, class: PayloadClass) {
        self.msdus += 1;
        self.mpdu_bytes += len;
        if class == PayloadClass::Ack {
            self.tcp_acks += 1;
            self.ack_bytes += len;
            self.ack_packet_bytes += bytes.0 as u32;
        }
    }

    // Always: a call here builds each MPDU twice.
    #[inline(always)]
    pub fn count<P: Payload>(&mut self, mpdu: &Mpdu<P>) {
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

    /// `mpdu` of it as it is heard on the air.
    pub fn frame_of<P: Clone>(&self, mpdu: &Mpdu<P>) -> Frame<P> {
        let (first, rest) = mpdu.msdus.parts();
        Frame::Data {
            sequence: mpdu.sequence,
            retry: mpdu.retries > 0,
            more_data: self.more_data,
            sync: self.sync,
            payload: first.clone(),
            rest: rest.to_vec(),
        }
    }
}

/// A PPDU that a station is about to send.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Outgoing {
    /// A Block Ack Request to this peer, after a PPDU of this class.
    Request { peer: usize, class: PayloadClass },
    /// To this peer, which of its MPDUs arrived, so that it sends the rest again.
    Ask { peer: usize },
    /// Data to this peer, of this class: the PPDU that its originator built last.
    Data { peer: usize, class: PayloadClass },
}

impl Outgoing {
    /// Whom it is for.
    #[inline]
    pub fn peer(&self) -> usize {
        match self {
            Self::Request { peer, .. } | Self::Ask { peer } | Self::Data { peer, .. } => *peer,
        }
    }

    /// Whether it is on account of pure TCP ACKs alone.
    #[inline]
    pub fn class(&self) -> PayloadClass {
        match self {
            Self::Request { class, .. } | Self::Data { class, .. } => *class,
            Self::Ask { .. } => PayloadClass::Data,
        }
    }
}
