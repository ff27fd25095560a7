//! One direction of a connection: the data acknowledged to its sender, the data that its client's TCP has, and the rest between.

use std::collections::VecDeque;

use super::cache::{Cache, Cached};
use super::{Config, Counters, Verdict};
use crate::packet::{Ecn, IpHeader, Packet, Transport};
use crate::tcp::{Flags, SackBlocks, Segment, Timestamps};
use crate::units::{FlowId, HostId, Instant, SeqNumber};

/// "the maximum scale exponent is limited to 14" (RFC 7323 section 2.3).
const MAX_SCALE: u8 = 14;

/// Silence is answered with copies at most this often doubled: 300 ms become 19 s.
const MAX_BACKOFF: u32 = 6;

/// Which direction of which connection.
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

/// Packets that an agent gives out, and its counters.
#[derive(Clone, Debug, Default)]
pub(super) struct Outbox {
    pub up: VecDeque<Packet>,
    pub down: VecDeque<Packet>,
    pub counters: Counters,
}

/// Content of one end's SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Syn {
    /// The number after it.
    next: SeqNumber,
    scale: Option<u8>,
    window: u16,
    clock: Option<u32>,
}

impl Syn {
    fn of(segment: &Segment) -> Self {
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
    /// Shift of the windows that the client offers.
    pub(super) scale: u8,
    /// The end of the data that the client's own ACKs cover.
    pub(super) client_acked: SeqNumber,
    /// The end of the data that may be acknowledged: the client's TCP has it, or its NIC has and there is a copy.
    pub(super) answered: SeqNumber,
    /// The ACK number last sent to the sender.
    pub(super) acked_to_sender: SeqNumber,
    /// The end of the data that has been seen going down.
    pub(super) highest: SeqNumber,
    /// The end of the window that the client offered last.
    pub(super) edge: SeqNumber,
    /// The end of the window that the sender was told last.
    pub(super) told_edge: SeqNumber,
    /// The largest window the client has offered, and the largest segment seen.
    pub(super) largest_window: u32,
    pub(super) largest_segment: u32,
    /// Segments answered for that the sender has not been told of.
    untold_segments: u32,
    /// The client's next byte, its clock and the headers of its packets: those of a forged ACK.
    pub(super) client_next: SeqNumber,
    pub(super) client_clock: Option<u32>,
    pub(super) client_ip: IpHeader,
    /// TS.Recent (RFC 7323 section 4.3), as a client has it that has received all that is answered for.
    pub(super) recent: Option<u32>,
    /// The echo of congestion marks of such a client (RFC 3168 section 6.1.3).
    pub(super) echoes_congestion: bool,
    /// The latest segment of the sender: a copy sent again carries its fields.
    sender_latest: Segment,
    /// Where the stream ends, FIN included.
    fin_end: Option<SeqNumber>,
    /// Duplicate ACKs in a row.
    pub(super) duplicates: u32,
    /// Duplicate ACKs that copies sent again may cause.
    pub(super) caused_duplicates: u32,
    /// Without SACK: holes below are filled one after the other.
    pub(super) repairs_until: Option<SeqNumber>,
    /// The blocks that went up last.
    pub(super) last_sack: SackBlocks,
    /// The sender asked whether the window is open, or the client there.
    pub(super) probed: bool,
    pub(super) cache: Cache,
    /// Copies in a row that the client left unanswered.
    tries: u32,
    /// When the client has been silent for too long.
    pub due: Option<Instant>,
    /// When it was last used.
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

    /// Both SYNs were seen: without their options nothing can be said in the client's name.
    pub fn is_open(&self) -> bool {
        self.sender_syn.is_some() && self.client_syn.is_some()
    }

    /// Data was acknowledged that the client's own TCP has not: only the agent has it.
    pub fn owes(&self) -> bool {
        self.client_acked.before(self.answered)
    }

    /// The client has acknowledged the end of the stream.
    pub fn is_over(&self) -> bool {
        self.fin_end.is_some_and(|end| !self.client_acked.before(end))
    }

    /// Everything that was acknowledged for the client and that its TCP has not is kept, within the limits; the sender
    /// was told no more than is answered for.
    pub fn is_sound(&self, config: &Config) -> bool {
        self.acked_to_sender.before_eq(self.answered)
            && self.client_acked.before_eq(self.answered)
            && self.cache.holds(self.client_acked, self.answered, config.cache.0)
    }

    /// A SYN of the sender, going down.
    pub fn sender_syn(&mut self, now: Instant, segment: &Segment) {
        self.take_syns(now, Some(Syn::of(segment)), self.client_syn);
    }

    /// A SYN of the client, going up.
    pub fn client_syn(&mut self, now: Instant, segment: &Segment, ip: IpHeader) {
        self.client_ip = ip;
        self.take_syns(now, self.sender_syn, Some(Syn::of(segment)));
    }

    fn take_syns(&mut self, now: Instant, sender: Option<Syn>, client: Option<Syn>) {
        let changed = |known: Option<Syn>, new: Option<Syn>| {
            known.zip(new).is_some_and(|(known, new)| known.next != new.next)
        };
        if changed(self.sender_syn, sender) || changed(self.client_syn, client) {
            // Another connection on the same ports: its handshake has just begun.
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
        // Windows are scaled where both ends said so (RFC 7323 section 2.2).
        self.scale = sender.scale.and(client.scale).unwrap_or(0).min(MAX_SCALE);
        let first = sender.next;
        (self.client_acked, self.answered, self.acked_to_sender, self.highest) = (first, first, first, first);
        self.edge = first + u32::from(client.window);
        self.told_edge = self.edge;
        self.largest_window = u32::from(client.window);
        self.client_next = client.next;
        (self.client_clock, self.recent) = (client.clock, sender.clock);
    }

    /// A segment of the sender goes down.
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
            // Told already, but that was lost. The client has it, or there is a copy.
            out.counters.answered_retransmissions += 1;
            self.tell(out);
            return Verdict::Drop;
        } else if segment.payload_len == 0 && segment.seq.before(self.acked_to_sender) {
            self.probed = !self.owes();
            if !self.probed {
                // The client misses something below, so it may not mind data above.
                self.tell(out);
            }
        }
        Verdict::Pass
    }

    /// The MPDU of a segment was acknowledged, or given up.
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
        // Data beyond the window is a probe, which a client need not take.
        if !arrived || end.after(self.edge) {
            return true;
        }
        self.largest_segment = self.largest_segment.max(segment.payload_len);
        self.cache.insert(now, packet.clone(), [start, end], config.cache.0)
    }

    /// Answers for all data that continues the answered data, with an ACK for each `ack_every` segments.
    pub fn answer(&mut self, now: Instant, config: &Config, out: &mut Outbox) {
        while let Some(copy) = self.cache.promise(self.answered, self.edge) {
            let Transport::Tcp(segment) = copy.packet.transport else { break };
            let (packet_ecn, end) = (copy.packet.ip.ecn, copy.end);
            // Data that waited behind a hole gets one ACK when that is filled (RFC 5681 section 4.2).
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
        if self.due.is_none() && self.owes() {
            self.due = Some(now + config.patience);
        }
    }

    /// RFC 7323 section 4.3 rule (2): the stamp of the segment that the next ACK begins with.
    fn note_stamp(&mut self, segment: &Segment) {
        let (Some(stamps), Some(recent)) = (segment.timestamps, self.recent) else { return };
        if segment.seq.before_eq(self.acked_to_sender) && SeqNumber(recent).before_eq(SeqNumber(stamps.value))
        {
            self.recent = Some(stamps.value);
        }
    }

    /// Nothing more comes with this link-layer acknowledgment: the rest is told.
    pub fn flush(&mut self, out: &mut Outbox) {
        if self.acked_to_sender != self.answered {
            self.forge(out);
        }
    }

    fn forge(&mut self, out: &mut Outbox) {
        out.counters.forged_acks += 1;
        self.tell(out);
    }

    /// Sends an ACK in the client's name.
    pub fn tell(&mut self, out: &mut Outbox) {
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

    /// `packet` with `segment`, which acknowledges all that is answered for.
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

    /// The rest of the window that the client offered, rounded down: the client's window ends where it said.
    pub(super) fn window_field(&self) -> u16 {
        let left = if self.edge.after(self.answered) { self.edge - self.answered } else { 0 };
        u16::try_from(left >> self.scale).unwrap_or(u16::MAX)
    }

    /// The sender hears of `segment`.
    pub(super) fn note_told(&mut self, segment: &Segment) {
        self.acked_to_sender = segment.ack;
        self.told_edge = segment.ack + (u32::from(segment.window) << self.scale);
        self.untold_segments = 0;
    }

    /// The client's TCP moved on, or was sent something again: patience begins anew.
    pub(super) fn wait_anew(&mut self, now: Instant, config: &Config) {
        let patience = config.patience * (1 << self.tries.min(MAX_BACKOFF));
        self.due = self.owes().then(|| now + patience);
    }

    /// The client acknowledged more.
    pub(super) fn moved_on(&mut self, now: Instant, config: &Config) {
        self.tries = 0;
        self.wait_anew(now, config);
    }

    /// The client has been silent for too long; false when it is given up.
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

    /// Sends the client again the first data that its TCP misses.
    pub(super) fn resend_first(&mut self, out: &mut Outbox) {
        let latest = self.sender_latest;
        if let Some(copy) = self.cache.first() {
            resend(copy, &latest, out);
            self.caused_duplicates += 1;
        }
    }

    /// Sends the client again all that its SACKs show missing.
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

/// A copy as its sender would send it now: latest acknowledgment, window and clock, else the client's TCP might take it
/// for an old duplicate (RFC 7323 section 5); not ECN-capable (RFC 3168 section 6.1.5).
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
