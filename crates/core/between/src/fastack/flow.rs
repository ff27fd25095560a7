//! One direction of a connection: the data acknowledged to its sender, the data that its client's TCP has, and the
//! copies of what is in between.

use std::collections::VecDeque;

use super::cache::{Cache, Cached};
use super::{Config, Counters, Verdict};
use tacit_packet::tcp::{Flags, SackBlocks, Segment, Timestamps};
use tacit_packet::units::{FlowId, HostId, Instant, SeqNumber};
use tacit_packet::{Ecn, IpHeader, Packet, Transport};

/// "the maximum scale exponent is limited to 14" (RFC 7323 section 2.3).
const MAX_SCALE: u8 = 14;

/// Most doublings of the time until the next copy is sent to a silent client: 300 ms become 19 s.
const MAX_BACKOFF: u32 = 6;

/// Identifies one direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub flow: FlowId,
    /// The sender of data.
    pub sender: HostId,
    /// The host behind the access point.
    pub client: HostId,
}

impl Key {
    pub fn of_downlink(packet: &Packet) -> Self {
        Self { flow: packet.flow, sender: packet.source, client: packet.destination }
    }

    pub fn of_uplink(packet: &Packet) -> Self {
        Self { flow: packet.flow, sender: packet.destination, client: packet.source }
    }
}

/// Packets that an agent sends, and its counters.
#[derive(Clone, Debug, Default)]
pub(super) struct Outbox {
    pub up: VecDeque<Packet>,
    pub down: VecDeque<Packet>,
    pub counters: Counters,
}

/// Content of one end's SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Syn {
    /// The sequence number after it.
    next: SeqNumber,
    scale: Option<u8>,
    window: u16,
    clock: Option<u32>,
}

impl Syn {
    fn from_segment(segment: &Segment) -> Self {
        Self {
            next: segment.seq + 1,
            scale: segment.window_scale,
            window: segment.window,
            clock: segment.timestamps.map(|stamps| stamps.value),
        }
    }
}

/// A direction of a connection.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    pub key: Key,
    sender_syn: Option<Syn>,
    client_syn: Option<Syn>,
    /// Shift of the client's windows.
    pub(super) scale: u8,
    /// End of the data covered by the client's own ACKs.
    pub(super) client_acked: SeqNumber,
    /// End of the data that may be acknowledged: the client's TCP has it, or its NIC has it and there is a copy.
    pub(super) answered: SeqNumber,
    /// Last ACK number sent to the sender.
    pub(super) acked_to_sender: SeqNumber,
    /// End of the data that was seen on its way to the client.
    pub(super) highest: SeqNumber,
    /// End of the window that the client last offered.
    pub(super) edge: SeqNumber,
    /// End of the window last sent to the sender.
    pub(super) told_edge: SeqNumber,
    /// The largest window the client has offered, and the largest segment seen.
    pub(super) largest_window: u32,
    pub(super) largest_segment: u32,
    /// Segments that may be acknowledged, but whose ACK was not sent yet.
    untold_segments: u32,
    /// The client's next byte, its clock and its packet headers, as a forged ACK needs them.
    pub(super) client_next: SeqNumber,
    pub(super) client_clock: Option<u32>,
    pub(super) client_ip: IpHeader,
    /// TS.Recent (RFC 7323 section 4.3) of a client that has received everything that may be acknowledged.
    pub(super) recent: Option<u32>,
    /// Such a client's echo of congestion marks (RFC 3168 section 6.1.3).
    pub(super) echoes_congestion: bool,
    /// The sender's latest segment: a retransmitted copy carries its fields.
    sender_latest: Segment,
    /// End of the stream, including the FIN.
    fin_end: Option<SeqNumber>,
    /// Duplicate ACKs in a row.
    pub(super) duplicates: u32,
    /// Expected duplicate ACKs caused by retransmitted copies.
    pub(super) caused_duplicates: u32,
    /// Without SACK: holes below this are filled one after the other.
    pub(super) repairs_until: Option<SeqNumber>,
    /// The SACK blocks last sent to the sender.
    pub(super) last_sack: SackBlocks,
    /// The sender has probed a closed window, or the client a half-open connection.
    pub(super) probed: bool,
    pub(super) cache: Cache,
    /// Copies in a row that the client left unanswered.
    tries: u32,
    /// When the client counts as silent for too long.
    pub due: Option<Instant>,
    /// Time of its last use.
    pub used_at: Instant,
}

impl Flow {
    pub fn new(key: Key, now: Instant) -> Self {
        let none = SeqNumber(0);
        Self {
            key,
            sender_syn: None,
            client_syn: None,
            scale: 0,
            client_acked: none,
            answered: none,
            acked_to_sender: none,
            highest: none,
            edge: none,
            told_edge: none,
            largest_window: 0,
            largest_segment: 0,
            untold_segments: 0,
            client_next: none,
            client_clock: None,
            client_ip: IpHeader::default(),
            recent: None,
            echoes_congestion: false,
            sender_latest: Segment::default(),
            fin_end: None,
            duplicates: 0,
            caused_duplicates: 0,
            repairs_until: None,
            last_sack: SackBlocks::EMPTY,
            probed: false,
            cache: Cache::default(),
            tries: 0,
            due: None,
            used_at: now,
        }
    }

    /// True if both SYNs were seen; without their options no ACK can be forged.
    pub fn is_open(&self) -> bool {
        self.sender_syn.is_some() && self.client_syn.is_some()
    }

    /// True if data was acknowledged that the client's own TCP has not acknowledged; only the agent has it.
    pub fn has_unconfirmed_acks(&self) -> bool {
        self.client_acked.before(self.answered)
    }

    /// The client has acknowledged the end of the stream.
    pub fn is_over(&self) -> bool {
        self.fin_end.is_some_and(|end| !self.client_acked.before(end))
    }

    /// Checks that all data that was acknowledged for the client, and that its TCP lacks, is cached within the limits,
    /// and that the sender got no ACK for other data.
    pub fn is_sound(&self, config: &Config) -> bool {
        self.acked_to_sender.before_eq(self.answered)
            && self.client_acked.before_eq(self.answered)
            && self.cache.holds(self.client_acked, self.answered, config.cache.0)
    }

    /// The sender's SYN, on its way to the client.
    pub fn sender_syn(&mut self, now: Instant, segment: &Segment) {
        self.take_syns(now, Some(Syn::from_segment(segment)), self.client_syn);
    }

    /// The client's SYN, on its way to the sender.
    pub fn client_syn(&mut self, now: Instant, segment: &Segment, ip: IpHeader) {
        self.client_ip = ip;
        self.take_syns(now, self.sender_syn, Some(Syn::from_segment(segment)));
    }

    fn take_syns(&mut self, now: Instant, sender: Option<Syn>, client: Option<Syn>) {
        let changed = |known: Option<Syn>, new: Option<Syn>| {
            known.zip(new).is_some_and(|(known, new)| known.next != new.next)
        };
        if changed(self.sender_syn, sender) || changed(self.client_syn, client) {
            // Another connection on the same ports; its handshake has just begun.
            let (sender_is_new, ip) = (changed(self.sender_syn, sender), self.client_ip);
            *self = Self::new(self.key, now);
            self.client_ip = ip;
            (self.sender_syn, self.client_syn) = if sender_is_new { (sender, None) } else { (None, client) };
            return;
        }
        let was_open = self.is_open();
        (self.sender_syn, self.client_syn) = (sender, client);
        if let (Some(sender), Some(client), false) = (sender, client, was_open) {
            self.open(sender, client);
        }
    }

    fn open(&mut self, sender: Syn, client: Syn) {
        // Windows are scaled if both ends offered it (RFC 7323 section 2.2).
        self.scale = sender.scale.and(client.scale).unwrap_or(0).min(MAX_SCALE);
        let first = sender.next;
        (self.client_acked, self.answered, self.acked_to_sender, self.highest) = (first, first, first, first);
        self.edge = first + u32::from(client.window);
        self.told_edge = self.edge;
        self.largest_window = u32::from(client.window);
        self.client_next = client.next;
        (self.client_clock, self.recent) = (client.clock, sender.clock);
    }

    /// A segment of the sender is on its way to the client.
    pub fn downlink(&mut self, segment: &Segment, out: &mut Outbox) -> Verdict {
        let newer = |known: u32, seen: u32| SeqNumber(known).before_eq(SeqNumber(seen));
        let known = self.sender_latest.timestamps.map_or(0, |stamps| stamps.value);
        if segment
            .timestamps
            .is_none_or(|stamps| self.sender_latest.timestamps.is_none() || newer(known, stamps.value))
        {
            self.sender_latest = *segment;
        }
        let end = segment.seq + segment.sequence_len();
        self.highest = self.highest.max(end);
        if segment.flags.contains(Flags::FIN) {
            self.fin_end = Some(end);
        } else if segment.payload_len > 0 && end.before_eq(self.acked_to_sender) {
            // Already acknowledged, but that ACK was lost. The client has the data, or there is a copy.
            out.counters.answered_retransmissions += 1;
            self.send_ack(out);
            return Verdict::Drop;
        } else if segment.payload_len == 0 && segment.seq.before(self.acked_to_sender) {
            self.probed = !self.has_unconfirmed_acks();
            if !self.probed {
                // The client lacks earlier data, so an ACK may still be needed.
                self.send_ack(out);
            }
        }
        Verdict::Pass
    }

    /// The MPDU of a segment was acknowledged, or the link gave it up.
    pub fn settled(
        &mut self,
        now: Instant,
        packet: &Packet,
        segment: &Segment,
        arrived: bool,
        config: &Config,
    ) -> bool {
        let other = Flags::SYN | Flags::FIN | Flags::RST | Flags::URG;
        let (start, end) = (segment.seq, segment.seq + segment.payload_len);
        if segment.payload_len == 0 || segment.flags.intersects(other) || end.before_eq(self.client_acked) {
            return true;
        }
        if end.before_eq(self.answered) {
            match arrived {
                true => self.cache.resent_anew(now, start),
                false => self.cache.resent_lost(start),
            }
            return true;
        }
        // Data beyond the window is a probe, which a client may discard.
        if !arrived || end.after(self.edge) {
            return true;
        }
        self.largest_segment = self.largest_segment.max(segment.payload_len);
        self.cache.insert(now, packet.clone(), [start, end], config.cache.0)
    }

    /// Acknowledges all data that continues the acknowledged data, with one ACK per `ack_every` segments.
    pub fn answer(&mut self, now: Instant, config: &Config, out: &mut Outbox) {
        while let Some(copy) = self.cache.promise(self.answered, self.edge) {
            let Transport::Tcp(segment) = copy.packet.transport else { break };
            let (packet_ecn, end) = (copy.packet.ip.ecn, copy.end);
            // Data that waited behind a hole gets one ACK when the hole is filled (RFC 5681 section 4.2).
            self.untold_segments += u32::from(copy.at == now);
            self.note_stamp(&segment);
            self.answered = end;
            if segment.flags.contains(Flags::CWR) {
                self.echoes_congestion = false;
            }
            self.echoes_congestion |= packet_ecn == Ecn::Ce;
            if self.untold_segments >= config.ack_every {
                self.forge(out);
            }
        }
        if self.due.is_none() && self.has_unconfirmed_acks() {
            self.due = Some(now + config.patience);
        }
    }

    /// RFC 7323 section 4.3 rule (2): the timestamp of the segment with which the next ACK begins.
    fn note_stamp(&mut self, segment: &Segment) {
        let (Some(stamps), Some(recent)) = (segment.timestamps, self.recent) else { return };
        if segment.seq.before_eq(self.acked_to_sender) && SeqNumber(recent).before_eq(SeqNumber(stamps.value))
        {
            self.recent = Some(stamps.value);
        }
    }

    /// The link-layer acknowledgment contains nothing more: sends the remaining ACK.
    pub fn flush(&mut self, out: &mut Outbox) {
        if self.acked_to_sender != self.answered {
            self.forge(out);
        }
    }

    fn forge(&mut self, out: &mut Outbox) {
        out.counters.forged_acks += 1;
        self.send_ack(out);
    }

    /// Forges an ACK of the client.
    pub fn send_ack(&mut self, out: &mut Outbox) {
        let segment = Segment { seq: self.client_next, flags: Flags::ACK, ..Segment::default() };
        let packet = Packet {
            flow: self.key.flow,
            source: self.key.client,
            destination: self.key.sender,
            ip: IpHeader { ecn: Ecn::NotEct, ..self.client_ip },
            transport: Transport::Tcp(segment),
        };
        let packet = self.speak_for(&packet, segment);
        out.up.push_back(packet);
    }

    /// `packet` with `segment`, which acknowledges everything that may be acknowledged.
    pub(super) fn speak_for(&mut self, packet: &Packet, mut segment: Segment) -> Packet {
        segment.ack = self.answered;
        segment.window = self.window_field();
        segment.flags = Flags(segment.flags.0 & !Flags::ECE.0);
        if self.echoes_congestion {
            segment.flags |= Flags::ECE;
        }
        segment.timestamps =
            self.client_clock.zip(self.recent).map(|(value, echo_reply)| Timestamps { value, echo_reply });
        self.note_told(&segment);
        Packet { transport: Transport::Tcp(segment), ..*packet }
    }

    /// The rest of the window that the client offered, rounded down so that the window ends no later than the client
    /// said.
    pub(super) fn window_field(&self) -> u16 {
        let left = if self.edge.after(self.answered) { self.edge - self.answered } else { 0 };
        u16::try_from(left >> self.scale).unwrap_or(u16::MAX)
    }

    /// Records that the sender gets `segment`.
    pub(super) fn note_told(&mut self, segment: &Segment) {
        self.acked_to_sender = segment.ack;
        self.told_edge = segment.ack + (u32::from(segment.window) << self.scale);
        self.untold_segments = 0;
    }

    /// The client's TCP made progress, or a copy was sent: restarts the timer.
    pub(super) fn wait_anew(&mut self, now: Instant, config: &Config) {
        let patience = config.patience * (1 << self.tries.min(MAX_BACKOFF));
        self.due = self.has_unconfirmed_acks().then(|| now + patience);
    }

    /// The client acknowledged more data.
    pub(super) fn moved_on(&mut self, now: Instant, config: &Config) {
        self.tries = 0;
        self.wait_anew(now, config);
    }

    /// The client was silent for too long; returns false if the flow is abandoned.
    pub fn timed_out(&mut self, now: Instant, config: &Config, out: &mut Outbox) -> bool {
        if self.tries >= config.tries {
            return false;
        }
        self.tries += 1;
        out.counters.local_timeouts += 1;
        self.repairs_until = Some(self.answered);
        self.resend_first(out);
        self.wait_anew(now, config);
        true
    }

    /// Retransmits the first data that the client's TCP lacks.
    pub(super) fn resend_first(&mut self, out: &mut Outbox) {
        let latest = self.sender_latest;
        if let Some(copy) = self.cache.first() {
            resend(copy, &latest, out);
            self.caused_duplicates += 1;
        }
    }

    /// Retransmits all data that the client's SACKs show as missing.
    pub(super) fn resend_lost(&mut self, out: &mut Outbox) {
        let latest = self.sender_latest;
        let mut copies = 0;
        self.cache.for_each_lost(|copy| {
            resend(copy, &latest, out);
            copies += 1;
        });
        self.caused_duplicates += copies;
    }
}

/// A copy as its sender would send it now, with the latest acknowledgment, window and timestamp, because the client's
/// TCP might otherwise discard it as an old duplicate (RFC 7323 section 5). It is not ECN-capable (RFC 3168 section
/// 6.1.5).
fn resend(copy: &mut Cached, latest: &Segment, out: &mut Outbox) {
    copy.resent = true;
    let Transport::Tcp(segment) = copy.packet.transport else { return };
    let segment = Segment {
        ack: latest.ack,
        window: latest.window,
        timestamps: segment.timestamps.and(latest.timestamps),
        ..segment
    };
    let ip = IpHeader { ecn: Ecn::NotEct, ..copy.packet.ip };
    out.counters.local_retransmissions += 1;
    out.down.push_back(Packet { ip, transport: Transport::Tcp(segment), ..copy.packet });
}
