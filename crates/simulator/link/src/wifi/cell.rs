//! State shared by all stations of a channel, including hidden ones: transmissions, responses, their outcome, and
//! accounting. The [medium](super::medium) decides which station may send, and when.

mod accounts;
mod air_log;
mod build;
mod multi_user;
mod outbox;
mod receive;
mod repair;
mod sequence;
mod stations;
mod txop;
mod users;

use tacit_between::hack::{Solicited, SolicitedBy};
use tacit_packet::units::{Bytes, Duration, Instant};

pub(crate) use self::accounts::{Accounts, even_shares};
use self::air_log::AirLog;
pub use self::outbox::Delivery;
use self::outbox::Outbox;
pub(crate) use self::sequence::{Sequence, SequenceFrame};
pub(crate) use self::stations::Stations;
use self::users::User;
use super::air::{Frame, Outcome, StationId};
use super::airtime::AirtimeUse;
use super::functions::FunctionId;
use super::interrupt::Interrupt;
use super::link_set::LinkId;
use super::mac::block_ack::Recipient;
use super::mac::exchange::Exchange;
use super::mac::noise::Noise;
use super::mac::originator::{Originator, Settled};
use super::mac::peer::Peer;
use super::mac::plan::{Outgoing, PpduPlan};
use super::mac::protection::{Direction, Handshake};
use super::mac::rules::Rules;
use super::ofdma::HackCarrier;
use super::phy::{ACTION_NO_ACK_LEN, BLOCK_ACK_REQUEST_LEN, CF_END_LEN, Mode};
use crate::packet::{Holders, PayloadClass};

/// Bytes of a beacon: header 24, fixed fields 12, a short SSID, rates and common elements, FCS.
const BEACON_LEN: u32 = 110;

/// State that the stations of a channel share.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub rules: Rules,
    pub stations: Stations,
    pub accounts: Accounts,
    pub air: AirLog,
    pub outbox: Outbox,
    /// Lent by the caller while the channel's time moves: see [`Bss::handle_timeout`](super::Bss::handle_timeout).
    pub holders: Holders,
    /// Users of the next multi-user PPDU; kept to reuse its capacity.
    users: Vec<usize>,
    /// Those of the last one; kept to reuse their capacity.
    spare_users: Vec<User>,
    /// When the next beacon is due.
    pub next_beacon: Option<Instant>,
    /// No gap in a reorder buffer times out before this, and no repair request is due before this.
    pub reorder_check: Option<Instant>,
    /// Functions that start to contend without a packet from a host.
    pub contending: Vec<FunctionId>,
}

impl Cell {
    /// Stations with empty queues. The names of random streams are derived from `seed`, `name` and `station_names`, the
    /// access point first; results count in the window `measure`.
    pub fn new(
        rules: Rules,
        seed: u64,
        name: &str,
        station_names: &[&str],
        measure: (Instant, Instant),
    ) -> Self {
        let stations = build::build_stations(&rules, seed, name, station_names);
        Self {
            accounts: Accounts::new(measure),
            air: AirLog::new(rules.link(), stations.numbers(), rules.config.categories.clone()),
            outbox: Outbox::default(),
            holders: Holders::default(),
            users: Vec::new(),
            spare_users: Vec::new(),
            next_beacon: rules.config.beacon_interval.map(|interval| Instant::ZERO + interval),
            reorder_check: None,
            contending: Vec::new(),
            stations,
            rules,
        }
    }

    /// Accounts the time up to `until` as `what`, to `station` and its PPDUs of `class`.
    pub fn charge(&mut self, station: FunctionId, class: PayloadClass, what: AirtimeUse, until: Instant) {
        self.accounts.charge(&mut self.stations[station].airtime, class, what, until);
    }

    /// Accounts a data PPDU of `from` and `class` with this start and end, `until` then: divided among retransmissions, TCP
    /// ACKs and new data by their bytes in `plan`.
    pub fn book_data(
        &mut self,
        from: FunctionId,
        class: PayloadClass,
        ([start, end], until): ([Instant; 2], Instant),
        plan: PpduPlan,
    ) {
        let nanos = (end - start).as_nanos();
        let all = u64::from(plan.mpdu_bytes.max(1));
        let share = |bytes: u32| Duration::from_nanos(nanos * u64::from(bytes) / all);
        let acks_from = start + share(plan.retry_bytes);
        let data_from = acks_from + share(plan.ack_bytes);
        self.charge(from, class, AirtimeUse::Retransmission, acks_from.min(until));
        self.charge(from, class, AirtimeUse::TcpAck, data_from.min(until));
        self.charge(from, class, AirtimeUse::Data, until);
    }

    // --- Reception --------------------------------------------------------------------------

    /// Draws whether a control frame of the handshake is received.
    pub fn decodes_control(
        &mut self,
        exchange: &Exchange,
        len: u32,
        sent_at: Instant,
        way: Direction,
    ) -> bool {
        let [from, to] = self.stations.ends(exchange);
        let peer = match way {
            Direction::Forward => &mut from.peers[exchange.peer()],
            Direction::Back => {
                let back = to.peer_index(exchange.from);
                &mut to.peers[back]
            }
        };
        peer.decodes(len, sent_at)
    }

    /// Receives the frames of a finished PPDU that arrived. Returns true if any did.
    pub fn receive(&mut self, exchange: &Exchange) -> bool {
        let before = self.outbox.delivered.len();
        let bytes_before = self.stations[exchange.from].counters.arrived_bytes;
        let any_arrived = match exchange.outgoing {
            Outgoing::BlockAckRequest { peer, .. } => self.receive_block_ack_request(exchange, peer),
            Outgoing::RepairRequest { peer } => self.receive_repair_request(exchange, peer),
            Outgoing::Data { peer, .. } => self.receive_data(exchange, peer),
        };
        let arrived = (self.outbox.delivered.len() - before) as u64;
        let station = &mut self.stations[exchange.from];
        station.counters.arrived += arrived;
        let bytes = station.counters.arrived_bytes - bytes_before;
        station.peers[exchange.peer()].log.arrived(arrived, bytes);
        any_arrived
    }

    fn receive_block_ack_request(&mut self, exchange: &Exchange, peer: usize) -> bool {
        let sender = &mut self.stations[exchange.from].peers[peer];
        let start = sender.originator.window_start();
        let mode = sender.originator.control_mode;
        let arrived = sender.decodes(BLOCK_ACK_REQUEST_LEN, exchange.start);
        if arrived {
            self.advance_window(exchange, exchange.end);
        }
        let outcome = if arrived { Outcome::Received } else { Outcome::Errored };
        self.air.record(exchange, mode, outcome, Frame::BlockAckReq { start });
        arrived
    }

    /// The recipient of `exchange` learns at `at` the start of its sender's window.
    fn advance_window(&mut self, exchange: &Exchange, at: Instant) {
        let [from, to] = self.stations.ends(exchange);
        let back = to.peer_index(exchange.from);
        let recipients = to.peers[back].recipient.each_stream();
        for (stream, recipient) in from.peers[exchange.peer()].originator.streams().zip(recipients) {
            let Recipient::Block(recipient) = recipient else {
                unreachable!("only a Block Ack agreement makes requests");
            };
            let before = self.outbox.delivered.len();
            recipient.request(at, stream.window_start(), &mut self.outbox.deliver(exchange));
            from.counters.arrived_bytes += self.outbox.bytes_since(before);
        }
    }

    /// Draws whether the preamble is understood and which MPDUs arrived, and receives those. Returns true if any
    /// arrived.
    fn receive_data(&mut self, exchange: &Exchange, peer: usize) -> bool {
        let early = self.stations.originator(exchange).early;
        if early.mpdus == 0 {
            self.air.begin_ppdu();
        }
        if exchange.is_no_ack() || self.stations.originator(exchange).has_stream_queues() {
            return self.receive_each(exchange, peer);
        }
        let [from, to] = self.stations.ends(exchange);
        let back = to.peer_index(exchange.from);
        let recipient = &mut to.peers[back].recipient;
        let sender = &mut from.peers[peer];
        let mut any_arrived = early.any_arrived;
        sender.originator.renew_more_data();
        let plan = sender.originator.plan();
        let mut left = plan.mpdus - early.mpdus;
        let mut bytes_before = early.bytes;
        let delimited = sender.originator.is_delimited();
        if let Some(noise) = &mut sender.noise {
            noise.use_rate(plan.rate);
        }
        let unheard = sender.noise.as_mut().is_some_and(Noise::hides_data) || sender.is_away(exchange.start);
        let is_clear = exchange.start >= exchange.clear_from
            && sender.noise.is_none()
            && sender.data_loss.is_none()
            && early.mpdus == 0;
        let mut taken = 0;
        if matches!(recipient, Recipient::Block(_)) && is_clear && !unheard && !self.air.is_kept() {
            // If no MPDU can be lost, only the arrived bytes need to be counted. Otherwise packets are measured one by
            // one; the last one examined may not be accepted.
            let (mut bytes, mut last) = (0, 0);
            let mpdus = sender.originator.in_flight().map(|mpdu| {
                bytes += u64::from(std::mem::replace(&mut last, mpdu.bytes));
                (mpdu.sequence, &mpdu.msdus)
            });
            let pass_up = &mut self.outbox.deliver(exchange);
            taken = recipient.receive_in_order(mpdus, &mut self.holders, pass_up);
            let took_all = taken == plan.mpdus as usize;
            from.counters.arrived_bytes += bytes + if took_all { u64::from(last) } else { 0 };
            any_arrived = taken > 0;
        }
        let (before, mut arrived_bytes) = (self.outbox.delivered.len(), 0);
        for mpdu in sender.originator.in_flight().skip(taken) {
            if mpdu.is_decided {
                continue;
            }
            left -= 1;
            let noisy =
                unheard || sender.noise.as_mut().is_some_and(|noise| noise.breaks_mpdu(mpdu.len, delimited));
            let lost = sender.data_loss.takes() || noisy;
            let starts_at = exchange.start + sender.originator.mode.time_before(bytes_before);
            bytes_before += sender.originator.subframe_len(mpdu.len);
            let errored = lost || starts_at < exchange.clear_from;
            any_arrived |= !errored;
            let outcome = if errored { Outcome::Errored } else { Outcome::Received };
            self.air.record_mpdu(exchange, &sender.originator, (mpdu, left == 0), outcome, &mut self.holders);
            if !errored {
                arrived_bytes += u64::from(mpdu.bytes);
                let pass_up = &mut self.outbox.deliver(exchange);
                recipient.receive(exchange.end, (mpdu.sequence, &mpdu.msdus), &mut self.holders, pass_up);
            }
        }
        from.counters.arrived_bytes += match recipient {
            // Either the whole MPDU, or nothing if it is a duplicate.
            Recipient::Immediate { .. } if self.outbox.delivered.len() == before => 0,
            Recipient::Immediate { .. } => arrived_bytes,
            _ => self.outbox.bytes_since(before),
        };
        let gap_ends = recipient.gap_since().map(|since| since + self.rules.config.reorder_timeout);
        self.reorder_check = earliest(self.reorder_check, gap_ends);
        any_arrived
    }

    /// Passes up MPDUs that have waited behind a gap for too long.
    pub fn give_up_gaps(&mut self, at: Instant) {
        let timeout = self.rules.config.reorder_timeout;
        let delivered = &mut self.outbox.delivered;
        let before = delivered.len();
        self.reorder_check = None;
        for station in self.stations.iter_mut() {
            let id = station.id;
            for peer in &mut station.peers {
                let (to, from) = (id, peer.id);
                for recipient in peer.recipient.each_stream() {
                    let Recipient::Block(recipient) = recipient else { continue };
                    if recipient.gap_since().is_some_and(|since| since + timeout <= at) {
                        let mut pass_up =
                            |payload| delivered.push_back(Delivery { to, from, missing: 0, payload });
                        recipient.give_up_gap(at, &mut pass_up);
                    }
                    let next = recipient.gap_since().map(|since| since + timeout);
                    self.reorder_check = earliest(self.reorder_check, next);
                }
            }
        }
        for Delivery { from, to, payload, .. } in self.outbox.delivered.range(before..) {
            let station = &mut self.stations[*from];
            let (peer, bytes) = (station.peer_index(*to), payload.len().0);
            station.counters.arrived += 1;
            station.counters.arrived_bytes += bytes;
            station.peers[peer].log.arrived(1, bytes);
        }
        self.request_repairs(at);
    }

    // --- Answers ----------------------------------------------------------------------------

    /// The acknowledgment of the data of `user` is sent next, with the bytes appended to it: at most `room` if its length is fixed.
    fn acknowledge(&mut self, user: &mut User, room: Option<usize>) {
        let User { exchange: Some(exchange), appended, .. } = user else { return };
        let [from, to] = self.stations.ends(exchange);
        let back = to.peer_index(exchange.from);
        to.counters.link_acks += 1;
        appended.clear();
        let sender = &from.peers[exchange.peer()];
        let (solicited_by, more_data, sync) = seen_by_recipient(&exchange.outgoing, sender);
        let control = &sender.originator.control_mode;
        // A client with one radio exchanges frames on one link at a time, as if it had one.
        let has_one_radio = sender.originator.gate.padding.is_some();
        let link = if has_one_radio { LinkId::FIRST } else { sender.originator.role.link };
        let overlaps = !to.peers[back].originator.upper.appending.without(link).is_empty();
        let solicited = Solicited { by: solicited_by, sync, overlaps };
        user.holds_more = false;
        if let Some(response) = to.hook.link_ack(link, back, solicited, room, appended) {
            let (function, from) = (exchange.to, exchange.from);
            user.holds_more = response.holds_more;
            self.outbox.interrupts.push_back(Interrupt::Received {
                function,
                from,
                heard: solicited_by,
                more_data,
                response,
            });
        }
        let bytes = appended.len() as u32;
        if bytes > 0 {
            // If `room` is given, the length already includes it.
            let longer = if room.is_some() { Duration::ZERO } else { exchange.append(bytes, control) };
            to.counters.augmented_link_acks += 1;
            to.counters.appended_bytes += u64::from(bytes);
            to.counters.appended_byte_time += control.rate().time_for(Bytes(u64::from(bytes)));
            to.counters.augmented_within_aifs += u64::from(longer <= self.rules.phy.aifs());
        }
        let peer = &mut to.peers[back];
        let originator = &mut peer.originator;
        if bytes > 0 && originator.role.is_one_of_several {
            originator.upper.appending = originator.upper.appending.with(originator.role.link);
        }
        if let (Some(noise), Outgoing::Data { .. }) = (&mut peer.noise, &exchange.outgoing) {
            // To triggered data the access point responds at a rate of its own.
            let data_rate = sender.originator.plan().rate;
            noise.use_response_rate(if user.adapts { originator.steady_rate() } else { data_rate });
        }
        // A separate MPDU may be lost alone.
        let is_behind = bytes > 0 && exchange.carrier(&self.rules) == HackCarrier::OwnMpdu;
        let behind = is_behind.then_some(ACTION_NO_ACK_LEN + bytes);
        let inside = if is_behind { 0 } else { bytes };
        let noise = peer.noise.as_mut();
        let mut lens = std::iter::once(exchange.response_len(inside)).chain(behind);
        let noisy = noise.is_some_and(|noise| lens.any(|len| noise.takes_control(len)));
        let lost_behind = is_behind && peer.link_ack_loss.takes();
        user.lost = peer.link_ack_loss.takes() || lost_behind || noisy || peer.is_away(exchange.response_at);
    }

    // --- Outcome ----------------------------------------------------------------------------

    /// The originator handles an acknowledgment with `appended`, or a lost one. `next_idle` is the idle period that would now begin at
    /// the initiator of the exchange. Returns the settled MPDUs.
    pub fn settle_response(
        &mut self,
        exchange: &Exchange,
        lost: bool,
        appended: &mut Vec<u8>,
        next_idle: u64,
    ) -> Settled {
        let at = exchange.response_end;
        let oldest = self.rules.oldest_allowed(at);
        let retry_limit = self.rules.config.retry_limit;
        let [from, to] = self.stations.ends(exchange);
        let back = to.peer_index(exchange.from);
        let block_ack = match &mut to.peers[back].recipient {
            Recipient::Block(recipient) if exchange.solicits_block_ack() => Some(recipient.block_ack()),
            streams @ Recipient::Streams(_) if exchange.solicits_block_ack() => Some(streams.scoreboard()),
            _ => None,
        };
        let Originator { role, upper, .. } = &mut to.peers[back].originator;
        upper.appending = upper.appending.without(role.link);
        let originator = &mut from.peers[exchange.peer()].originator;
        self.air.record_response(exchange, originator.control_mode, lost, block_ack, (appended, &self.rules));
        to.spend_airtime(back, exchange);
        if lost {
            self.fail(exchange, at, next_idle);
            return Settled::default();
        }
        let holders = &mut self.holders;
        let settled = match block_ack {
            None if matches!(exchange.outgoing, Outgoing::RepairRequest { .. }) => {
                originator.repair_requested()
            }
            _ if originator.has_stream_queues() => {
                let recipients = to.peers[back].recipient.each_stream();
                originator.acknowledged_by_stream(recipients, retry_limit, oldest, holders)
            }
            Some((start, bitmap)) => {
                originator.block_acknowledged(start, &bitmap, retry_limit, oldest, holders)
            }
            None => originator.acknowledged(holders),
        };
        // The rates of responses to triggers are the access point's.
        if matches!(exchange.outgoing, Outgoing::Data { .. }) && !exchange.is_triggered() {
            originator.report_rate(settled);
        }
        from.count_settled(settled);
        from.spend_airtime(exchange.peer(), exchange);
        if exchange.handshake.is_own_access() {
            from.contention.succeeded();
        }
        from.finish(exchange, at);
        if !appended.is_empty() {
            let (function, from) = (exchange.from, exchange.to);
            let bytes = std::mem::take(appended);
            self.outbox.interrupts.push_back(Interrupt::Appended { function, from, bytes });
        }
        self.report_settled(exchange);
        settled
    }

    /// A PPDU of unacknowledged data has ended. Its sender does not wait for a response, discards the MPDUs whether or
    /// not they arrived, and uses the contention window of a success, because it cannot detect a failure (802.11-2020
    /// clause 10.3.2.14).
    pub fn settle_no_ack(&mut self, exchange: &Exchange) {
        let peer = exchange.peer();
        let station = &mut self.stations[exchange.from];
        let sent = station.peers[peer].originator.settle_no_ack(exchange.end, &mut self.holders);
        station.counters.unacknowledged += u64::from(sent);
        station.spend_airtime(peer, exchange);
        station.contention.succeeded();
        station.finish(exchange, exchange.end);
    }

    /// No acknowledgment arrived; the sender notices at `noticed_at`, and `next_idle` is the idle period that begins
    /// for it.
    pub fn fail(&mut self, exchange: &Exchange, noticed_at: Instant, next_idle: u64) {
        if exchange.is_no_ack() {
            self.settle_no_ack(exchange);
            return;
        }
        let oldest = self.rules.oldest_allowed(noticed_at);
        let retry_limit = self.rules.config.retry_limit;
        let station = &mut self.stations[exchange.from];
        station.counters.missed_link_acks += 1;
        station.spend_airtime(exchange.peer(), exchange);
        let peer = &mut station.peers[exchange.peer()];
        let is_data = matches!(exchange.outgoing, Outgoing::Data { .. });
        if is_data && !exchange.is_triggered() {
            peer.originator.report_rate(Settled::default());
        }
        let holders = &mut self.holders;
        let settled = match exchange.outgoing {
            Outgoing::BlockAckRequest { .. } => {
                peer.originator.settle_streams(|stream| stream.request_missed(retry_limit, holders))
            }
            Outgoing::RepairRequest { .. } => peer.originator.repair_requested(),
            // A response to a trigger is sent again, possibly in a single-user PPDU.
            Outgoing::Data { .. } if exchange.solicits_block_ack() && !exchange.is_triggered() => {
                peer.originator.block_ack_missed();
                Settled::default()
            }
            Outgoing::Data { .. } => {
                peer.originator.settle_streams(|stream| stream.not_acknowledged(retry_limit, oldest, holders))
            }
        };
        self.end_failed(exchange, settled, noticed_at, next_idle);
    }

    /// No CTS arrived, or none was understood by `heard_until`. The sender notices, and `next_idle` is the idle period
    /// that begins for it.
    pub fn fail_protection(&mut self, exchange: &Exchange, heard_until: Instant, next_idle: u64) {
        let timeout = self.rules.phy.ack_timeout(&self.handshake_mode(exchange));
        let noticed_at = heard_until.max(exchange.first_end + timeout);
        let limit = self.rules.config.short_retry_limit;
        let station = &mut self.stations[exchange.from];
        station.counters.missed_cts += 1;
        let originator = &mut station.peers[exchange.peer()].originator;
        station.counters.icf_failures += u64::from(originator.gate.padding.is_some());
        let (retry_limit, holders) = (self.rules.config.retry_limit, &mut self.holders);
        let settled = match exchange.outgoing {
            Outgoing::BlockAckRequest { .. } => originator.request_missed(retry_limit, holders),
            _ => originator.settle_streams(|stream| stream.rts_missed(limit, holders)),
        };
        self.end_failed(exchange, settled, noticed_at, next_idle);
    }

    /// A failed exchange has ended: its sender, which notices at `noticed_at`, gives up the `settled` MPDUs.
    fn end_failed(&mut self, exchange: &Exchange, settled: Settled, noticed_at: Instant, next_idle: u64) {
        let station = &mut self.stations[exchange.from];
        station.count_settled(settled);
        if exchange.handshake.is_own_access() {
            station.contention.failed(noticed_at, next_idle);
            if settled.dropped > 0 {
                station.contention.gave_up();
            }
        }
        station.finish(exchange, noticed_at);
        self.report_settled(exchange);
    }

    /// Reports to drivers that requested it the packets that were acknowledged or given up, and pure ACKs that left the
    /// window.
    fn report_settled(&mut self, exchange: &Exchange) {
        let (function, to) = (exchange.from, exchange.to);
        let originator = &mut self.stations[function].peers[exchange.peer()].originator;
        while let Some((payload, delivered)) = originator.poll_settled_ack() {
            self.outbox.interrupts.push_back(Interrupt::Settled { function, to, payload, delivered });
        }
        while let Some((payload, acknowledged, last)) = originator.upper.fates.poll() {
            self.outbox.interrupts.push_back(Interrupt::Fate { function, to, payload, acknowledged, last });
        }
    }

    // --- Control frames ---------------------------------------------------------------------

    /// Mode of the handshake frames of `exchange`; that of the CTS behind an initial control frame.
    pub fn handshake_mode(&self, exchange: &Exchange) -> Mode {
        let originator = self.stations.originator(exchange);
        if originator.gate.padding.is_some() {
            return self.rules.phy.calling_modes(&originator.control_mode)[1];
        }
        self.rules.protection_mode(&originator.mode, &originator.control_mode)
    }

    /// The handshake of `exchange` has ended, and its data follows after a SIFS.
    pub fn handshake_done(&mut self, exchange: &Exchange) {
        if exchange.handshake == Handshake::Rts {
            let station = &mut self.stations[exchange.from];
            station.peers[exchange.peer()].originator.rts_answered();
            station.count_access(&exchange.outgoing, self.rules.phy);
        }
    }

    /// Duration of a CF-End, sent in the response mode of the two.
    pub fn cf_end_duration(&self, exchange: &Exchange) -> Duration {
        self.stations.control_mode(exchange).ppdu_duration(CF_END_LEN)
    }

    /// The TXOP holder of `exchange` sends a CF-End in this `span`.
    fn send_cf_end(&mut self, exchange: &Exchange, span: [Instant; 2]) {
        let transmitter = exchange.holder();
        self.stations[transmitter].counters.cf_ends += 1;
        let mode = *self.stations.control_mode(exchange);
        self.air.record_broadcast(transmitter, span, mode, Duration::ZERO, Outcome::Received, Frame::CfEnd);
    }

    /// Sends a beacon at `at` and schedules the next one; returns when it ends.
    pub fn send_beacon(&mut self, at: Instant) -> Instant {
        let mode = self.rules.phy.beacon_mode();
        let until = at + mode.ppdu_duration(BEACON_LEN);
        if let (Some(target), Some(interval)) = (&mut self.next_beacon, self.rules.config.beacon_interval) {
            *target += interval;
        }
        let access_point = StationId::AP.first_function();
        let (reserves, outcome) = (Duration::ZERO, Outcome::Received);
        self.air.record_broadcast(access_point, [at, until], mode, reserves, outcome, Frame::Beacon);
        until
    }
}

/// `outgoing` as its recipient sees it: kind, More Data, SYNC.
fn seen_by_recipient(outgoing: &Outgoing, peer: &Peer) -> (SolicitedBy, bool, bool) {
    match outgoing {
        Outgoing::BlockAckRequest { .. } | Outgoing::RepairRequest { .. } => {
            (SolicitedBy::BlockAckRequest, false, false)
        }
        Outgoing::Data { .. } => {
            let plan = peer.originator.plan();
            let mut numbers = peer.originator.in_flight().map(|mpdu| mpdu.sequence);
            let solicited_by = match plan.mpdus {
                1 => SolicitedBy::Single { sequence: numbers.next().unwrap_or_default() },
                _ => SolicitedBy::Ampdu,
            };
            (solicited_by, plan.more_data, plan.sync)
        }
    }
}

/// The smaller of two optional values.
pub(crate) fn earliest<T: Ord>(a: Option<T>, b: Option<T>) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
