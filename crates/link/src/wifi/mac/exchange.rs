//! What happens on the channel once somebody has won it: transmission, response, or collision.

use tacit_proto::hack::Heard;
use tacit_proto::units::{Bytes, Duration, Instant};

use super::block_ack::Recipient;
use super::noise::Noise;
use super::originator::Settled;
use super::protection::{Handshake, Step};
use super::station::{Outgoing, Peer, Station};
use crate::payload::{Payload, PayloadClass};
use crate::wifi::air::{AirFrame, AmpduPosition, Frame, Outcome, StationId};
use crate::wifi::airtime::AirtimeUse;
use crate::wifi::bss::{Bss, Delivery, earliest, even_shares};
use crate::wifi::category::AccessCategory;
use crate::wifi::interrupt::Interrupt;
use crate::wifi::phy::{ACK_LEN, BLOCK_ACK_LEN, BLOCK_ACK_REQUEST_LEN, CONTROL_WRAPPER_LEN, subframe_len};

/// Octets of a beacon: header 24, fixed fields 12, a short SSID, rates and the usual elements, FCS.
pub(super) const BEACON_LEN: u32 = 110;

/// Responses to a reverse direction grant say whether a PPDU follows.
const WRAPPED_ACK_LEN: u32 = ACK_LEN + CONTROL_WRAPPER_LEN;
const WRAPPED_BLOCK_ACK_LEN: u32 = BLOCK_ACK_LEN + CONTROL_WRAPPER_LEN;

/// What the channel is doing.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Phase {
    /// Nothing.
    Idle,
    /// A frame before a PPDU is in the air alone.
    Protection { exchange: Exchange, step: Step, until: Instant },
    /// A PPDU is in the air alone.
    Transmission(Exchange),
    /// Its link-layer acknowledgment is.
    Response { exchange: Exchange, lost: bool },
    /// Several PPDUs are in the air; until the last one ends.
    Collision { until: Instant },
    /// A frame to everybody is in the air: a beacon, or the end of a TXOP.
    Broadcast { until: Instant },
}

/// A transmission and the response to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exchange {
    pub from: StationId,
    pub to: StationId,
    pub outgoing: Outgoing,
    pub handshake: Handshake,
    /// When the handshake begins; without one this is `start`.
    pub begins: Instant,
    /// When its first frame ends.
    pub first_end: Instant,
    /// When the data begins.
    pub start: Instant,
    /// What starts before this is hidden behind another PPDU.
    clear_from: Instant,
    pub end: Instant,
    pub response_at: Instant,
    response_len: u32,
    /// When the response ends; stock length until the response starts.
    pub response_end: Instant,
    /// What its Duration field says: SIFS and a stock response, or what is left of the TXOP.
    pub reserves: Duration,
}

impl Outgoing {
    /// What a recipient sees of it: kind, More Data, SYNC.
    fn seen_by_recipient<P: Payload>(&self, peer: &Peer<P>) -> (Heard, bool, bool) {
        match self {
            Self::Request { .. } => (Heard::BlockAckRequest, false, false),
            Self::Data { .. } => {
                let plan = peer.originator.plan();
                let mut numbers = peer.originator.in_flight().map(|mpdu| mpdu.sequence);
                let heard = match plan.mpdus {
                    1 => Heard::Single { sequence: numbers.next().unwrap_or_default() },
                    _ => Heard::Ampdu,
                };
                (heard, plan.more_data, plan.sync)
            }
        }
    }

    pub(crate) fn peer(&self) -> usize {
        match self {
            Self::Request { peer, .. } | Self::Data { peer, .. } => *peer,
        }
    }

    /// Whether it is on account of pure TCP ACKs alone.
    pub(crate) fn class(&self) -> PayloadClass {
        match self {
            Self::Request { class, .. } | Self::Data { class, .. } => *class,
        }
    }
}

impl<P: Payload> Bss<P> {
    pub(crate) fn start_transmission(&mut self, at: Instant, from: StationId, outgoing: Outgoing) {
        self.accesses += 1;
        let exchange = self.exchange(at, from, outgoing);
        if exchange.handshake.first().is_none() {
            self.start_data(exchange);
        } else {
            self.start_protection(exchange);
        }
    }

    /// What the exchange is about goes out.
    #[inline]
    pub(super) fn start_data(&mut self, exchange: Exchange) {
        let (from, outgoing) = (exchange.from, exchange.outgoing);
        match outgoing {
            Outgoing::Request { .. } => {
                self.charge(from, outgoing.class(), AirtimeUse::LinkAck, exchange.end);
            }
            Outgoing::Data { peer, class } => self.book_data(&exchange, peer, class),
        }
        self.phase = Phase::Transmission(exchange);
    }

    /// Books the time up to `until` as `what`, on account of `station` and its PPDUs of `class`.
    #[inline]
    pub(super) fn charge(
        &mut self,
        station: StationId,
        class: PayloadClass,
        what: AirtimeUse,
        until: Instant,
    ) {
        let spent = self.ledger.book(what, until);
        self.stations[station.index()].airtime.spend(class, what, spent);
    }

    /// The exchange that `from` begins at `at`, at an access of its own.
    #[inline(never)]
    pub(super) fn exchange(&self, at: Instant, from: StationId, outgoing: Outgoing) -> Exchange {
        self.exchange_behind(None, at, from, outgoing)
    }

    /// The same behind `handshake`, if it is not for the protection in use to say.
    // Always: an exchange is large, and most are of one kind.
    #[inline(always)]
    pub(super) fn exchange_behind(
        &self,
        handshake: Option<Handshake>,
        at: Instant,
        from: StationId,
        outgoing: Outgoing,
    ) -> Exchange {
        let station = &self.stations[from.index()];
        let peer = &station.peers[outgoing.peer()];
        let (mode, control) = (&peer.originator.mode, &peer.originator.control_mode);
        let (duration, mut response_len) = match outgoing {
            Outgoing::Request { .. } => (control.ppdu_duration(BLOCK_ACK_REQUEST_LEN), BLOCK_ACK_LEN),
            Outgoing::Data { .. } => {
                let plan = peer.originator.plan();
                let response = if plan.mpdus > 1 { BLOCK_ACK_LEN } else { ACK_LEN };
                (mode.ppdu_duration(plan.octets), response)
            }
        };
        let handshake =
            handshake.unwrap_or_else(|| self.config.protection.handshake(&outgoing, &peer.originator));
        let grant = self.grant(handshake, &outgoing);
        if grant.is_some() {
            response_len += CONTROL_WRAPPER_LEN;
        }
        let (first_end, start) = if handshake == Handshake::None {
            (at, at)
        } else {
            let guard = self.protection_mode(mode, control);
            (at + handshake.first_duration(&guard), at + handshake.duration(&guard, self.phy))
        };
        let end = start + duration;
        let (response_at, response) = if self.is_unanswered() {
            (end, Duration::ZERO)
        } else {
            (end + self.phy.sifs + self.config.link_ack_delay, control.ppdu_duration(response_len))
        };
        let response_end = response_at + response;
        let reserves = match (grant, station.txop_limit) {
            (None, _) if response == Duration::ZERO => Duration::ZERO,
            (None, _) => self.phy.sifs + response,
            (Some(_), Some(limit)) => (at + limit).max(response_end) - end,
            (Some(grant), None) => response_end + grant - end,
        };
        Exchange {
            from,
            to: peer.id,
            outgoing,
            handshake,
            begins: at,
            first_end,
            start,
            clear_from: at,
            end,
            response_at,
            response_len,
            response_end,
            reserves,
        }
    }

    /// Books a data PPDU, shared among fresh data, TCP ACKs and retransmissions by octets.
    fn book_data(&mut self, exchange: &Exchange, peer: usize, class: PayloadClass) {
        let Exchange { from, start, end, .. } = *exchange;
        let plan = self.stations[from.index()].peers[peer].originator.plan();
        let nanos = (end - start).as_nanos();
        let share =
            |octets: u32| Duration::from_nanos(nanos * u64::from(octets) / u64::from(plan.mpdu_octets));
        let acks_from = start + share(plan.retry_octets);
        let data_from = acks_from + share(plan.ack_octets);
        self.charge(from, class, AirtimeUse::Retransmission, acks_from);
        self.charge(from, class, AirtimeUse::TcpAck, data_from);
        self.charge(from, class, AirtimeUse::Data, end);
    }

    /// The PPDU is over: what arrived is passed up and acknowledged.
    pub(crate) fn transmission_ended(&mut self, exchange: &Exchange) {
        let heard = self.receive(exchange);
        if self.is_unanswered() {
            self.settle_unanswered(exchange);
            self.after_exchange(exchange, false);
            return;
        }
        if !heard {
            // The sender times out before the time reserved by the Duration field is over, which
            // bystanders keep.
            self.fail(exchange, exchange.end + self.ack_timeout(exchange));
            self.go_on_without_response(exchange);
            return;
        }
        let (exchange, lost) = self.answer(exchange);
        self.phase = Phase::Response { exchange, lost };
    }

    /// Takes in what arrived. True when any did.
    pub(super) fn receive(&mut self, exchange: &Exchange) -> bool {
        match exchange.outgoing {
            Outgoing::Request { peer, .. } => self.receive_request(exchange, peer),
            Outgoing::Data { peer, .. } => self.receive_data(exchange, peer),
        }
    }

    /// Puts the acknowledgment together; returns the exchange with its length, and whether it is lost.
    pub(super) fn answer(&mut self, exchange: &Exchange) -> (Exchange, bool) {
        let [from, to] = ends(&mut self.stations, exchange);
        let back = to.peer_index(exchange.from);
        to.counters.link_acks += 1;
        self.appended.clear();
        let (heard, more_data, sync) =
            exchange.outgoing.seen_by_recipient(&from.peers[exchange.outgoing.peer()]);
        let mut exchange = *exchange;
        if let Some(response) = to.hook.link_ack(back, heard, sync, &mut self.appended) {
            let (station, from) = (exchange.to, exchange.from);
            self.interrupts.push_back(Interrupt::Received { station, from, heard, more_data, response });
        }
        if !self.appended.is_empty() {
            let octets = self.appended.len() as u32;
            let control = &from.peers[exchange.outgoing.peer()].originator.control_mode;
            let plain_end = exchange.response_end;
            exchange.response_end =
                exchange.response_at + control.ppdu_duration(exchange.response_len + octets);
            to.counters.augmented_link_acks += 1;
            to.counters.appended_octets += u64::from(octets);
            to.counters.appended_octet_time += control.rate().time_for(Bytes(u64::from(octets)));
            to.counters.augmented_within_aifs +=
                u64::from(exchange.response_end - plain_end <= self.phy.aifs());
        }
        let len = exchange.response_len + self.appended.len() as u32;
        let peer = &mut to.peers[back];
        if let (Some(noise), Outgoing::Data { peer, .. }) = (&mut peer.noise, &exchange.outgoing) {
            noise.use_rate(from.peers[*peer].originator.plan().rate);
        }
        let noisy = peer.noise.as_mut().is_some_and(|noise| noise.takes_control(len));
        let lost = peer.link_ack_loss.takes() || noisy || peer.is_away(exchange.response_at);
        (exchange, lost)
    }

    fn receive_request(&mut self, exchange: &Exchange, peer: usize) -> bool {
        let [from, to] = ends(&mut self.stations, exchange);
        let sender = &mut from.peers[peer];
        let start = sender.originator.window_start();
        let mode = sender.originator.control_mode;
        let noisy = sender.noise.as_mut().is_some_and(|noise| noise.takes_control(BLOCK_ACK_REQUEST_LEN));
        if noisy || sender.is_away(exchange.start) {
            self.record(exchange, mode, Outcome::Errored, Frame::BlockAckReq { start });
            return false;
        }
        let back = to.peer_index(exchange.from);
        let Recipient::Block(recipient) = &mut to.peers[back].recipient else {
            unreachable!("only a Block Ack agreement makes requests");
        };
        let delivered = &mut self.delivered;
        recipient.request(exchange.end, start, &mut |payload| {
            delivered.push_back(Delivery { station: exchange.to, from: exchange.from, payload });
        });
        self.record(exchange, mode, Outcome::Received, Frame::BlockAckReq { start });
        true
    }

    /// Draws whether the PPDU is understood at all, then which MPDUs arrived and takes those in. True when any did.
    fn receive_data(&mut self, exchange: &Exchange, peer: usize) -> bool {
        self.ampdu_reference = self.ampdu_reference.wrapping_add(1);
        let reference = self.ampdu_reference;
        let unanswered = self.is_unanswered();
        let [from, to] = ends(&mut self.stations, exchange);
        let back = to.peer_index(exchange.from);
        let recipient = &mut to.peers[back].recipient;
        let sender = &mut from.peers[peer];
        let delivered = &mut self.delivered;
        let mut pass_up =
            |payload| delivered.push_back(Delivery { station: exchange.to, from: exchange.from, payload });
        let mut heard = false;
        let plan = sender.originator.plan();
        let mut left = plan.mpdus;
        let mut octets_before = 0;
        let delimited = sender.originator.is_delimited();
        if let Some(noise) = &mut sender.noise {
            noise.use_rate(plan.rate);
        }
        let unheard = sender.noise.as_mut().is_some_and(Noise::hides_data) || sender.is_away(exchange.start);
        for mpdu in sender.originator.in_flight() {
            left -= 1;
            let noisy =
                unheard || sender.noise.as_mut().is_some_and(|noise| noise.breaks_mpdu(mpdu.len, delimited));
            let lost = sender.data_loss.takes() || noisy;
            let starts_at = exchange.start + sender.originator.mode.time_before(octets_before);
            octets_before += subframe_len(mpdu.len);
            let errored = lost || starts_at < exchange.clear_from;
            heard |= !errored;
            if let Some(air) = &mut self.air {
                let ampdu = delimited.then_some(AmpduPosition {
                    reference,
                    last: left == 0,
                    single: plan.mpdus == 1,
                });
                let outcome = if errored { Outcome::Errored } else { Outcome::Received };
                let frame = mpdu.frame(plan, ampdu);
                air.push_back(exchange.air_frame(sender.originator.mode, outcome, frame));
            }
            if !errored {
                if unanswered {
                    from.counters.unacknowledged_arrived += u64::from(mpdu.msdus.count());
                    from.counters.delivered_bytes += mpdu.msdus.octets();
                }
                recipient.receive(exchange.end, mpdu.sequence, &mpdu.msdus, &mut pass_up);
            }
        }
        let gap_ends = recipient.gap_since().map(|since| since + self.config.reorder_timeout);
        self.reorder_check = earliest(self.reorder_check, gap_ends);
        heard
    }

    /// The acknowledgment is over: the originator settles what was in flight.
    pub(crate) fn response_ended(&mut self, exchange: &Exchange, lost: bool) {
        let at = exchange.response_end;
        let plain_end = at - self.appended_duration(exchange);
        self.charge(exchange.from, exchange.outgoing.class(), AirtimeUse::LinkAck, plain_end);
        self.charge(exchange.to, PayloadClass::Ack, AirtimeUse::CompressedAck, at);
        self.settle_response(exchange, lost);
        self.after_exchange(exchange, lost);
    }

    /// An exchange is over to its last frame.
    #[inline]
    fn after_exchange(&mut self, exchange: &Exchange, lost: bool) {
        if self.may_go_on {
            self.go_on_after_response(exchange, lost);
        } else {
            self.go_idle(exchange.response_end, exchange.response_end);
        }
    }

    /// What the originator makes of an acknowledgment, or of a lost one.
    pub(super) fn settle_response(&mut self, exchange: &Exchange, lost: bool) {
        let at = exchange.response_end;
        let oldest = self.oldest_allowed(at);
        let retry_limit = self.config.retry_limit;
        let [from, to] = ends(&mut self.stations, exchange);
        let back = to.peer_index(exchange.from);
        let block_ack = match &to.peers[back].recipient {
            Recipient::Block(recipient) if exchange.response_len >= BLOCK_ACK_LEN => {
                Some(recipient.block_ack())
            }
            _ => None,
        };
        let originator = &mut from.peers[exchange.outgoing.peer()].originator;
        if let Some(air) = &mut self.air {
            let appended = self.appended.clone();
            let frame = match block_ack {
                Some((start, bitmap)) => Frame::BlockAck { start, bitmap, appended },
                None => Frame::Ack { appended },
            };
            air.push_back(exchange.response_air_frame(originator.control_mode, lost, frame));
        }
        if lost {
            self.fail(exchange, at);
        } else {
            let settled = match block_ack {
                Some((start, bitmap)) => originator.block_acknowledged(start, bitmap, retry_limit, oldest),
                None => originator.acknowledged(),
            };
            if let Outgoing::Data { .. } = &exchange.outgoing {
                originator.report_rate(settled);
            }
            from.count_settled(settled);
            // A response burst is no access of its own.
            if exchange.handshake != Handshake::Granted {
                from.contention.succeeded();
            }
            from.finish(exchange.outgoing.peer());
            if !self.appended.is_empty() {
                let (station, from) = (exchange.from, exchange.to);
                let octets = std::mem::take(&mut self.appended);
                self.interrupts.push_back(Interrupt::Appended { station, from, octets });
            }
            self.report_settled(exchange);
        }
    }

    /// No acknowledgment came; the sender notices at `noticed_at`. Call before [`Bss::go_idle`].
    pub(super) fn fail(&mut self, exchange: &Exchange, noticed_at: Instant) {
        if self.is_unanswered() {
            self.settle_unanswered(exchange);
            return;
        }
        let oldest = self.oldest_allowed(noticed_at);
        let retry_limit = self.config.retry_limit;
        let station = &mut self.stations[exchange.from.index()];
        station.counters.missed_link_acks += 1;
        let peer = &mut station.peers[exchange.outgoing.peer()];
        let agreement = matches!(peer.recipient, Recipient::Block(_));
        if let Outgoing::Data { .. } = &exchange.outgoing {
            peer.originator.report_rate(Settled::default());
        }
        let settled = match exchange.outgoing {
            Outgoing::Request { .. } => peer.originator.request_missed(retry_limit),
            Outgoing::Data { .. } if peer.originator.plan().mpdus > 1 => {
                peer.originator.block_ack_missed();
                Settled::default()
            }
            Outgoing::Data { .. } => peer.originator.not_acknowledged(retry_limit, oldest, agreement),
        };
        self.end_failed(exchange, settled, noticed_at);
    }

    /// An exchange that failed is over: `settled` is what its sender, who notices at `noticed_at`, gives up. Call
    /// before [`Bss::go_idle`].
    pub(super) fn end_failed(&mut self, exchange: &Exchange, settled: Settled, noticed_at: Instant) {
        let next_idle = self.idle.number + 1;
        let station = &mut self.stations[exchange.from.index()];
        station.count_settled(settled);
        if exchange.handshake != Handshake::Granted {
            station.contention.failed(noticed_at, next_idle);
            if settled.dropped > 0 {
                station.contention.gave_up();
            }
        }
        station.finish(exchange.outgoing.peer());
        self.report_settled(exchange);
    }

    /// Tells drivers that asked of packets that were acknowledged or given up, and of pure ACKs that left the window.
    pub(super) fn report_settled(&mut self, exchange: &Exchange) {
        let (station, to) = (exchange.from, exchange.to);
        let originator = &mut self.stations[station.index()].peers[exchange.outgoing.peer()].originator;
        while let Some((payload, delivered)) = originator.poll_settled_ack() {
            self.interrupts.push_back(Interrupt::Settled { station, to, payload, delivered });
        }
        while let Some((payload, acknowledged, last)) = originator.fates.poll() {
            self.interrupts.push_back(Interrupt::Fate { station, to, payload, acknowledged, last });
        }
    }

    /// By how much what is appended lengthens the response on the air.
    pub(super) fn appended_duration(&self, exchange: &Exchange) -> Duration {
        let peer = &self.stations[exchange.from.index()].peers[exchange.outgoing.peer()];
        let plain = peer.originator.control_mode.ppdu_duration(exchange.response_len);
        exchange.response_end - exchange.response_at - plain
    }

    /// MPDUs queued before this are given up instead of retried.
    fn oldest_allowed(&self, now: Instant) -> Instant {
        Instant::ZERO + now.saturating_since(Instant::ZERO).saturating_sub(self.config.lifetime)
    }

    pub(super) fn ack_timeout(&self, exchange: &Exchange) -> Duration {
        let peer = &self.stations[exchange.from.index()].peers[exchange.outgoing.peer()];
        self.phy.ack_timeout(&peer.originator.control_mode) + self.config.link_ack_delay
    }

    pub(crate) fn start_collision(&mut self, at: Instant, winners: &[(StationId, Outgoing)]) {
        self.accesses += 1;
        self.collisions += 1;
        let mut colliding = std::mem::take(&mut self.colliding);
        colliding.clear();
        colliding.extend(winners.iter().map(|(from, outgoing)| self.exchange(at, *from, *outgoing)));
        let mut until = at;
        for exchange in &colliding {
            until = until.max(exchange.alone_until());
            self.stations[exchange.from.index()].counters.collided_ppdus += 1;
        }
        let spent = self.ledger.book(AirtimeUse::Collision, until);
        for (exchange, share) in colliding.iter().zip(even_shares(spent, colliding.len())) {
            let airtime = &mut self.stations[exchange.from.index()].airtime;
            airtime.spend(exchange.outgoing.class(), AirtimeUse::Collision, share);
        }
        self.colliding = colliding;
        self.phase = Phase::Collision { until };
    }

    /// The last of the colliding PPDUs is over. Those who sent time out, each from its own end;
    /// those who heard noise wait EIFS.
    pub(crate) fn collision_ended(&mut self, until: Instant) {
        let colliding = std::mem::take(&mut self.colliding);
        let captured = if self.config.capture { captured(&colliding, self.station_count()) } else { None };
        let lost = |exchange: &&Exchange| captured.is_none_or(|captured| captured.from != exchange.from);
        for exchange in colliding.iter().filter(lost) {
            self.record_collided(exchange);
        }
        for exchange in colliding.iter().filter(lost) {
            if exchange.handshake == Handshake::CtsToSelf {
                self.record_collided_data(exchange);
            }
            match exchange.handshake {
                Handshake::Rts => self.fail_protection(exchange, exchange.first_end),
                _ => self.fail(exchange, exchange.end + self.ack_timeout(exchange)),
            }
        }
        self.colliding = colliding;
        match captured {
            Some(exchange) => self.transmission_ended(&exchange),
            None => {
                let wait = if self.config.eifs { self.phy.eifs() } else { self.phy.aifs() };
                self.go_idle_for(until, until, until + wait);
            }
        }
    }

    pub(crate) fn start_beacon(&mut self, at: Instant) {
        self.book_idle(self.idle_use(), at);
        let until = at + self.phy.beacon_mode().ppdu_duration(BEACON_LEN);
        for id in &self.active {
            self.stations[id.index()].contention.freeze(&self.idle, at, self.phy);
        }
        self.charge(StationId::AP, PayloadClass::Data, AirtimeUse::Beacon, until);
        self.count_beacon(at, until);
        self.phase = Phase::Broadcast { until };
    }

    /// The next beacon has its turn; this one is heard.
    pub(super) fn count_beacon(&mut self, at: Instant, until: Instant) {
        if let (Some(target), Some(interval)) = (&mut self.next_beacon, self.config.beacon_interval) {
            *target += interval;
        }
        let mode = self.phy.beacon_mode();
        if let Some(air) = &mut self.air {
            air.push_back(AirFrame {
                at,
                duration: until - at,
                mode,
                reserves: Duration::ZERO,
                transmitter: StationId::AP,
                receiver: None,
                category: AccessCategory::default(),
                outcome: Outcome::Received,
                more_ppdu: None,
                frame: Frame::Beacon,
            });
        }
    }
}

impl Exchange {
    /// Whether what is sent lets its recipient send too: nothing else is answered in a Control Wrapper.
    #[inline]
    pub fn grants(&self) -> bool {
        matches!(self.response_len, WRAPPED_ACK_LEN | WRAPPED_BLOCK_ACK_LEN)
    }

    /// Until when others keep off who heard it.
    #[inline]
    pub fn reserved_until(&self) -> Instant {
        self.response_end.max(self.end + self.reserves)
    }

    /// Until when its sender goes on without an answer.
    fn alone_until(&self) -> Instant {
        if self.handshake == Handshake::Rts { self.first_end } else { self.end }
    }
}

/// The one of `colliding` that goes on after all others have ended, unless its addressee was sending
/// too; what it holds is clear from then on. `stations` tells functions of one station.
fn captured(colliding: &[Exchange], stations: u16) -> Option<Exchange> {
    let longest = colliding.iter().max_by_key(|exchange| exchange.alone_until())?;
    let others = || colliding.iter().filter(|other| other.from != longest.from);
    let clear_from = others().map(Exchange::alone_until).max()?;
    let deaf = others().any(|other| other.from.0 % stations == longest.to.0 % stations);
    // An RTS is one frame, and its beginning is lost.
    let whole = longest.handshake != Handshake::Rts;
    (whole && clear_from < longest.end && !deaf).then_some(Exchange { clear_from, ..*longest })
}

/// The stations at both ends of an exchange.
pub(super) fn ends<'a, P>(stations: &'a mut [Station<P>], exchange: &Exchange) -> [&'a mut Station<P>; 2] {
    stations
        .get_disjoint_mut([exchange.from.index(), exchange.to.index()])
        .expect("an exchange has two ends, both in the set")
}
