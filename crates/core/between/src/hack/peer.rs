//! A driver's state for one peer: the ACKs for it, their state, and how long they have waited.

use std::collections::VecDeque;

use tacit_rohc::hack::RETAINED_ACKS;

use super::airtime::{AckAirtime, Load};
use super::codec::{Decoder, Encoder};
use super::config::{Config, Variant};
use super::counters::FlowCounters;
use super::echoes::Echoes;
use super::packet::AckPacket;
use tacit_packet::FlowKey;
use tacit_packet::tcp::AckInfo;
use tacit_packet::units::{Duration, Instant};

/// State for one peer.
#[derive(Debug)]
pub(super) struct Peer<P> {
    pub encoder: Encoder,
    pub decoder: Decoder,
    /// The last PPDU announced more data.
    pub more_data: bool,
    /// ACKs that the peer's hosts have not echoed; only for the timestamp variant.
    pub echoes: Echoes,
    /// Airtime of its ACKs, if it is compared.
    pub airtime: Option<Box<dyn AckAirtime>>,
    /// ACKs that are not in a frame, in order of arrival. They wait for queued packets of their flow to arrive before
    /// they are compressed, for earlier ACKs to be proven (beyond the limit of unproven ACKs), or to be thinned out.
    pub postponed: VecDeque<Waiting<P>>,
    /// ACKs in the frame being built; all arrived at the same instant, so that each has its full turnaround time.
    pub building: Vec<P>,
    /// When that frame will be in the NIC.
    pub building_ready_at: Instant,
    /// Arrival of the oldest of them.
    pub building_oldest: Instant,
    /// Bytes of these ACKs as IP packets.
    pub building_bytes: u32,
    /// Frames being transferred to the NIC, in order.
    pub finished: VecDeque<Finished<P>>,
    /// Frames in the NIC that were not sent.
    pub fresh: VecDeque<Fresh<P>>,
    /// When the next frame will be in the NIC.
    pub job_at: Option<Instant>,
    /// When the oldest waiting ACK reaches its limit.
    pub hold_until: Option<Instant>,
    /// Pure ACKs per flow that are in the transmit queue or in the air.
    pub natives: Vec<(FlowKey, u32)>,
    /// Flows of ACKs that were appended but not proven.
    pub retained: Vec<FlowKey>,
    /// ACKs in each frame that was appended and not proven.
    pub retained_frames: VecDeque<usize>,
    /// Counters per flow; few flows have ACKs for one peer.
    pub flows: Vec<(FlowKey, FlowCounters)>,
}

/// An ACK that is in no frame.
#[derive(Debug)]
pub(super) struct Waiting<P> {
    pub packet: P,
    pub flow: FlowKey,
    /// Its fields, if a later ACK may replace it.
    pub info: Option<AckInfo>,
    /// Its arrival, or that of the first ACK that it replaced.
    pub since: Instant,
    /// Its number is higher than that of the previous ACK of its flow which waits or has waited with it: it is neither
    /// a duplicate nor a window update.
    pub advances: bool,
    /// Number of ACKs that it represents, including itself.
    pub stands_for: u32,
    /// When it will be in the NIC; `None` while no frame may contain it.
    pub ready_at: Option<Instant>,
}

/// A complete frame that reaches the NIC at `ready_at`; the oldest of its packets arrived at `oldest`.
#[derive(Debug)]
pub(super) struct Finished<P> {
    pub packets: Vec<P>,
    pub frame: Vec<u8>,
    pub ready_at: Instant,
    pub oldest: Instant,
    /// Bytes of its packets as IP packets.
    pub packet_bytes: u32,
}

/// A frame in the NIC.
#[derive(Debug)]
pub(super) struct Fresh<P> {
    pub packets: Vec<P>,
    pub bytes: usize,
    pub oldest: Instant,
    /// Bytes of its packets as IP packets.
    pub packet_bytes: u32,
}

/// Most ACKs that wait for a frame: about the length of a station's queue.
pub(super) const POSTPONED_ACKS: usize = 1024;

impl<P: AckPacket> Peer<P> {
    pub fn new(config: &Config) -> Self {
        Self {
            encoder: Encoder::new(config.coding, config.appended_limit),
            decoder: Decoder::new(),
            more_data: false,
            echoes: Echoes::default(),
            airtime: None,
            postponed: VecDeque::new(),
            building: Vec::new(),
            building_ready_at: Instant::ZERO,
            building_oldest: Instant::ZERO,
            building_bytes: 0,
            finished: VecDeque::new(),
            fresh: VecDeque::new(),
            job_at: None,
            hold_until: None,
            natives: Vec::new(),
            retained: Vec::new(),
            retained_frames: VecDeque::new(),
            flows: Vec::new(),
        }
    }

    /// Its next deadline.
    pub fn deadline(&self) -> Option<Instant> {
        [self.job_at, self.hold_until].into_iter().flatten().min()
    }

    /// Whether the peer will soon send data whose link-layer ACK can carry ACKs, if `variant` requires such a sign.
    pub fn will_send(&self, variant: Variant, now: Instant) -> bool {
        match variant {
            Variant::MoreData => self.more_data,
            Variant::TimestampEcho => self.more_data || self.echoes.data_is_due(now),
            Variant::Timer(_) | Variant::Opportunistic => true,
        }
    }

    /// True if no frame may contain `packet` yet.
    pub fn has_no_room_for(&self, packet: &P) -> bool {
        let flow = packet.flow_key();
        let gathered = self.postponed.iter().filter(|waiting| waiting.ready_at.is_some()).count();
        self.natives_of(flow) > 0
            || self.in_frames() + gathered >= RETAINED_ACKS
            || self.postponed.iter().any(|before| before.ready_at.is_none() && before.flow == flow)
    }

    /// Appends `newest` to the ACKs that wait for a frame, or replaces the last one of its flow, if that one may be
    /// appended in the same frame, contains no other information, and represents fewer than `one_in`. Returns true if
    /// it replaced one.
    pub fn gather(&mut self, mut newest: Waiting<P>, one_in: u32) -> bool {
        let last = self.postponed.iter_mut().rev().find(|waiting| waiting.flow == newest.flow);
        let infos = last.as_ref().and_then(|last| newest.info.zip(last.info));
        newest.advances = infos.is_some_and(|(new, old)| new.ack.after(old.ack));
        let says_as_much = infos.is_some_and(|(new, old)| new.stands_for(&old));
        let redundant = last.filter(|last| {
            says_as_much && last.advances && last.stands_for < one_in && last.ready_at == newest.ready_at
        });
        let Some(last) = redundant else {
            self.postponed.push_back(newest);
            return false;
        };
        *last = Waiting { since: last.since, stands_for: last.stands_for + 1, ..newest };
        true
    }

    /// ACKs that no frame could contain, because of packets of their flow or too many unproven ACKs, will be in the NIC
    /// at `at`, unless they are still blocked.
    pub fn unblock(&mut self, at: Instant) {
        let mut follows_one = false;
        for waiting in &mut self.postponed {
            let has_natives = self.natives.iter().any(|(flow, _)| *flow == waiting.flow);
            follows_one |= waiting.ready_at.is_none();
            // No ACK overtakes an earlier one of its flow.
            if !has_natives && follows_one {
                waiting.ready_at = waiting.ready_at.max(Some(at));
            }
        }
    }

    /// Number and size of the waiting ACKs, used to compare airtimes.
    pub fn load(&self) -> Load {
        let in_nic = self.fresh.iter().map(|fresh| (fresh.packets.len(), fresh.bytes, fresh.packet_bytes));
        let finished =
            self.finished.iter().map(|next| (next.packets.len(), next.frame.len(), next.packet_bytes));
        let none = Load { framed: 0, frame_bytes: 0, packet_bytes: 0, all: self.held() as u32 };
        in_nic.chain(finished).fold(none, |sum, (packets, bytes, packet_bytes)| Load {
            framed: sum.framed + packets as u32,
            frame_bytes: sum.frame_bytes + bytes as u32,
            packet_bytes: sum.packet_bytes + packet_bytes,
            ..sum
        })
    }

    /// ACKs passed to the codec that are not known to have reached the peer.
    pub fn in_frames(&self) -> usize {
        self.retained_frames.iter().sum::<usize>() + self.unsent()
    }

    /// ACKs that wait for a link-layer ACK or for a frame.
    pub fn held(&self) -> usize {
        self.postponed.len() + self.unsent()
    }

    /// ACKs passed to the codec that no link-layer ACK has carried.
    fn unsent(&self) -> usize {
        let in_nic = self.fresh.iter().map(|fresh| fresh.packets.len()).sum::<usize>();
        let on_their_way = self.finished.iter().map(|finished| finished.packets.len()).sum::<usize>();
        self.building.len() + on_their_way + in_nic
    }

    /// Arrival of the oldest of those.
    pub fn oldest_held(&self) -> Option<Instant> {
        let in_nic = self.fresh.iter().map(|fresh| fresh.oldest);
        let on_their_way = self.finished.iter().map(|finished| finished.oldest);
        let building = (!self.building.is_empty()).then_some(self.building_oldest);
        let postponed = self.postponed.front().map(|waiting| waiting.since);
        in_nic.chain(on_their_way).chain(building).chain(postponed).min()
    }

    /// Whether a timer ends the wait of the oldest ACK within `hold_max`.
    pub fn holds_until(&self, hold_max: Duration) -> bool {
        self.oldest_held()
            .is_none_or(|oldest| self.hold_until.is_some_and(|until| until <= oldest + hold_max))
    }

    /// When the next ACK will be in the NIC, among those in finished frames and those being gathered.
    pub fn next_job(&self) -> Option<Instant> {
        let gathered = self.postponed.iter().filter_map(|waiting| waiting.ready_at);
        self.finished.front().map(|next| next.ready_at).into_iter().chain(gathered).min()
    }

    /// Ends the frame being built.
    pub fn finish_frame(&mut self) {
        if self.building.is_empty() {
            return;
        }
        let mut frame = Vec::new();
        if self.encoder.finish_frame(&mut frame) > 0 {
            let packets = std::mem::take(&mut self.building);
            let packet_bytes = std::mem::take(&mut self.building_bytes);
            let (ready_at, oldest) = (self.building_ready_at, self.building_oldest);
            self.finished.push_back(Finished { packets, frame, ready_at, oldest, packet_bytes });
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
