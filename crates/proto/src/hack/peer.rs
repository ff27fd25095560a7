//! What a driver knows of one peer: the ACKs on their way to it, in which state, and since when.

use std::collections::VecDeque;

use tacit_rohc::hack::RETAINED_ACKS;

use super::codec::{Decoder, Encoder};
use super::counters::FlowCounters;
use super::driver::{AckPacket, Config, Variant};
use super::echoes::Echoes;
use crate::FlowKey;
use crate::units::{Duration, Instant};

/// State for one peer.
#[derive(Debug)]
pub(super) struct Peer<P> {
    pub encoder: Encoder,
    pub decoder: Decoder,
    /// The last PPDU said that more data follows.
    pub more_data: bool,
    /// Which ACKs the peer's hosts have not echoed; of the timestamp variant alone.
    pub echoes: Echoes,
    /// Behind packets of their flow that are queued or in the air, to be compressed once those arrived; or beyond what
    /// may be unproven, once some of that is proven. In the order they came, with the time.
    pub postponed: VecDeque<(Instant, P)>,
    /// In the frame being built: all of one instant, so that each has its whole turnaround.
    pub building: Vec<P>,
    pub building_since: Instant,
    /// Since when the oldest of them waits.
    pub building_oldest: Instant,
    /// Frames on their way to the NIC, in order.
    pub finished: VecDeque<Finished<P>>,
    /// In the NIC, not sent.
    pub fresh: VecDeque<Fresh<P>>,
    /// When the next frame will be in the NIC.
    pub job_at: Option<Instant>,
    /// When the oldest ACK that waits has waited for too long.
    pub hold_until: Option<Instant>,
    /// Pure ACKs in the transmit queue or in the air, by flow.
    pub natives: Vec<(FlowKey, u32)>,
    /// Flows of ACKs that were appended and are not proven to have arrived, and how many those are.
    pub retained: Vec<FlowKey>,
    pub retained_acks: usize,
    /// Counters by flow; few flows have ACKs for one peer.
    pub flows: Vec<(FlowKey, FlowCounters)>,
}

/// A frame that is made and reaches the NIC at `ready_at`; the oldest of its packets came at `oldest`.
#[derive(Debug)]
pub(super) struct Finished<P> {
    pub packets: Vec<P>,
    pub frame: Vec<u8>,
    pub ready_at: Instant,
    pub oldest: Instant,
}

/// A frame that lies in the NIC.
#[derive(Debug)]
pub(super) struct Fresh<P> {
    pub packets: Vec<P>,
    pub bytes: usize,
    pub oldest: Instant,
}

/// Most ACKs that wait before any frame holds them: about what a station's queue would take.
pub(super) const POSTPONED_ACKS: usize = 1024;

impl<P: AckPacket> Peer<P> {
    pub fn new(config: &Config) -> Self {
        Self {
            encoder: Encoder::new(config.coding, config.appended_limit),
            decoder: Decoder::new(),
            more_data: false,
            echoes: Echoes::default(),
            postponed: VecDeque::new(),
            building: Vec::new(),
            building_since: Instant::ZERO,
            building_oldest: Instant::ZERO,
            finished: VecDeque::new(),
            fresh: VecDeque::new(),
            job_at: None,
            hold_until: None,
            natives: Vec::new(),
            retained: Vec::new(),
            retained_acks: 0,
            flows: Vec::new(),
        }
    }

    /// Whether the peer is about to send what an ACK can wait for, as far as `variant` asks for a sign of it.
    pub fn will_send(&self, variant: Variant, now: Instant) -> bool {
        match variant {
            Variant::MoreData => self.more_data,
            Variant::TimestampEcho => self.more_data || self.echoes.data_is_due(now),
            Variant::Timer(_) | Variant::Opportunistic => true,
        }
    }

    /// True where no frame may take `packet` yet.
    pub fn has_no_room_for(&self, packet: &P) -> bool {
        let flow = packet.flow_key();
        self.natives_of(flow) > 0
            || self.in_frames() >= RETAINED_ACKS
            || self.postponed.iter().any(|(_, before)| before.flow_key() == flow)
    }

    /// ACKs given to the codec that the peer is not known to have.
    pub fn in_frames(&self) -> usize {
        let in_nic = self.fresh.iter().map(|fresh| fresh.packets.len()).sum::<usize>();
        let on_their_way = self.finished.iter().map(|finished| finished.packets.len()).sum::<usize>();
        self.retained_acks + self.building.len() + on_their_way + in_nic
    }

    /// ACKs that wait for an acknowledgment to ride on, or for a frame.
    pub fn held(&self) -> usize {
        self.postponed.len() + self.in_frames() - self.retained_acks
    }

    /// Since when the oldest of those waits.
    pub fn oldest_held(&self) -> Option<Instant> {
        let in_nic = self.fresh.iter().map(|fresh| fresh.oldest);
        let on_their_way = self.finished.iter().map(|finished| finished.oldest);
        let building = (!self.building.is_empty()).then_some(self.building_oldest);
        let postponed = self.postponed.front().map(|(since, _)| *since);
        in_nic.chain(on_their_way).chain(building).chain(postponed).min()
    }

    /// Ends the frame being built; it reaches the NIC a turnaround after its packets came.
    pub fn finish_frame(&mut self, turnaround: Duration) {
        if self.building.is_empty() {
            return;
        }
        let mut frame = Vec::new();
        if self.encoder.finish_frame(&mut frame) > 0 {
            let packets = std::mem::take(&mut self.building);
            let (ready_at, oldest) = (self.building_since + turnaround, self.building_oldest);
            self.finished.push_back(Finished { packets, frame, ready_at, oldest });
        }
    }

    pub fn natives_of(&self, flow: FlowKey) -> u32 {
        self.natives.iter().find(|(key, _)| *key == flow).map_or(0, |(_, count)| *count)
    }

    pub fn all_natives(&self) -> u32 {
        self.natives.iter().map(|(_, count)| count).sum()
    }

    pub fn native_queued(&mut self, flow: FlowKey) {
        match self.natives.iter_mut().find(|(key, _)| *key == flow) {
            Some((_, count)) => *count += 1,
            None => self.natives.push((flow, 1)),
        }
    }

    pub fn native_gone(&mut self, flow: FlowKey) {
        let Some(at) = self.natives.iter().position(|(key, _)| *key == flow) else { return };
        self.natives[at].1 -= 1;
        if self.natives[at].1 == 0 {
            self.natives.swap_remove(at);
        }
    }
}
