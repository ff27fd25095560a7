//! PPDUs of an access point to several users, and the responses (802.11ax-2021 clauses 26.5.1 and 26.4.4).

use tacit_packet::units::{Duration, Instant};

use super::outline::{answer_len, data_room};
use super::{Progress, Round, Stage, User};
use crate::packet::{PacketRef, PayloadClass};
use crate::wifi::air::{Frame, Outcome, TriggerKind, TriggeredResponse};
use crate::wifi::airtime::AirtimeUse;
use crate::wifi::cell::{Cell, even_shares};
use crate::wifi::functions::FunctionId;
use crate::wifi::mac::exchange::Exchange;
use crate::wifi::mac::peer::Peer;
use crate::wifi::mac::plan::{Outgoing, PpduPlan};
use crate::wifi::mu_scheduler::{ReadyUser, SchedulerHandle};
use crate::wifi::ofdma::{MuAcknowledgment, OfdmaConfig};
use crate::wifi::phy::{BLOCK_ACK_REQUEST_LEN, Format, Mode, MultiUserPpdu, ResourceUnit, subframe_len};

impl Cell {
    /// The multi-user PPDU that `id` sends at `at`, within `limit` including its responses if given; `None` if fewer
    /// than two users are next.
    pub(super) fn begin_downlink(
        &mut self,
        at: Instant,
        id: FunctionId,
        ofdma: &OfdmaConfig,
        limit: Option<Duration>,
    ) -> Option<Round> {
        let mut users = std::mem::take(&mut self.users);
        self.stations[id].peers.iter_mut().for_each(|peer| peer.originator.update_rate(at));
        match self.stations[id].mu_scheduler.clone() {
            None => {
                self.stations[id].take_ready(self.rules.most_users, goes_with, &mut users);
                let served = self.users_to_serve(at, id, ofdma, &users, limit);
                self.stations[id].serve(at, served, &mut users);
            }
            Some(scheduler) => self.take_scheduled(at, id, &scheduler, &mut users),
        }
        let round = if users.is_empty() { None } else { self.fill_downlink(at, id, ofdma, (&users, limit)) };
        self.users = users;
        self.stations[id].report_drained(&mut self.outbox.drained);
        round
    }

    /// Takes the users that `scheduler` chooses for the PPDU at `at`.
    fn take_scheduled(
        &mut self,
        at: Instant,
        id: FunctionId,
        scheduler: &SchedulerHandle,
        users: &mut Vec<usize>,
    ) {
        users.clear();
        let station = &self.stations[id];
        let peers = station.ready_users(goes_with);
        if peers.is_empty() {
            return;
        }
        let ready = peers.iter().map(|peer| {
            let Peer { id, originator, .. } = &station.peers[*peer];
            ReadyUser {
                client: self.stations.station_of(*id),
                packets: originator.backlog() as u32,
                bytes: originator.unsettled().map(PacketRef::len).sum(),
                oldest: at.saturating_since(originator.oldest_at().unwrap_or(at)),
                rate: originator.steady_modes()[0].rate(),
            }
        });
        let ready: Vec<ReadyUser> = ready.collect();
        let width_mhz = station.peers[peers[0]].originator.steady_modes()[0].width_mhz;
        let most = self.rules.most_users.min(ResourceUnit::Tones26.count_in(width_mhz));
        let chosen = scheduler.downlink(at, &ready, most);
        users.extend(chosen.into_iter().map(|position| peers[position]));
        self.stations[id].take_chosen(at, users);
    }

    fn fill_downlink(
        &mut self,
        at: Instant,
        id: FunctionId,
        ofdma: &OfdmaConfig,
        (users, limit): (&[usize], Option<Duration>),
    ) -> Option<Round> {
        let mut outline = self.outline(at, id, ofdma, users)?;
        let mut ofdma = *ofdma;
        if ofdma.acknowledgment == MuAcknowledgment::TriggeredResponseScheduling
            && self.answer_symbols(id, &ofdma, users, &outline) > OfdmaConfig::TRS_SYMBOLS
        {
            ofdma.acknowledgment = MuAcknowledgment::AggregatedMuBar;
            outline = self.outline(at, id, &ofdma, users)?;
        }
        let ofdma = &ofdma;
        let limit = self.longest_shared(id, &outline, limit);
        let request = ofdma.request_inside_len(&outline.control_mode).filter(|_| outline.is_answered);
        let trigger_subframe = request.map_or(0, subframe_len);
        let mut shared = std::mem::take(&mut self.spare_users);
        shared.clear();
        let (lifetime, count) = (self.rules.config.lifetime, users.len() as u16);
        let mut psdus = Vec::with_capacity(users.len());
        let mut class = PayloadClass::Ack;
        for ((index, peer), (modes, room)) in (0..).zip(users).zip(outline.modes.iter().zip(&outline.rooms)) {
            let station = &mut self.stations[id];
            let originator = &station.peers[*peer].originator;
            let bytes = modes[0].bytes_within(limit).saturating_sub(trigger_subframe);
            let rate = originator.rate_in(outline.unit);
            let data_room = data_room(ofdma, &station.peers[*peer], at);
            let Some(outgoing) =
                station.part_of(at, lifetime, *peer, (*modes, bytes, rate), &mut self.holders)
            else {
                station.send_alone(*peer, at);
                continue;
            };
            station.counters.shared_parts += 1;
            if outgoing.class() == PayloadClass::Data {
                class = PayloadClass::Data;
            }
            let entry = &station.peers[*peer];
            let plan = entry.originator.plan();
            psdus.push((
                modes[0],
                if trigger_subframe > 0 { plan.padded_bytes + trigger_subframe } else { plan.bytes },
            ));
            let response_len = match ofdma.acknowledgment {
                _ if !outline.is_answered => 0,
                MuAcknowledgment::BlockAckRequests => entry.originator.block_ack_len(),
                _ => answer_len(ofdma, entry),
            };
            let exchange =
                Exchange::shared([id, entry.id], outgoing, (index, count), [at; 2], [at; 2], response_len);
            shared.push(User {
                exchange: Some(exchange),
                room: *room,
                data_room,
                ..User::new(entry.id, *peer, modes[1], index)
            });
        }
        if shared.is_empty() {
            self.spare_users = shared;
            return None;
        }
        let end = at + MultiUserPpdu::duration(&psdus.iter().copied());
        let mut round = Round {
            class,
            is_answered: outline.is_answered,
            until: end,
            ..Round::new(id, *ofdma, (Stage::Data, at), shared, outline.control_mode)
        };
        round.plan_answers(self);
        let answers = match ofdma.acknowledgment {
            MuAcknowledgment::BlockAckRequests => [end + outline.answered_after; 2],
            _ => round.answers,
        };
        round
            .users
            .iter_mut()
            .flat_map(|user| &mut user.exchange)
            .for_each(|part| part.last_until(end, answers));
        self.stations[id].begin_shared_access();
        self.stations[id].counters.count_shared_ppdu(outline.unit, &psdus, end - at);
        Some(round)
    }
}

impl Round {
    /// Time from the end of the data to the end of the trigger after it; zero without one.
    pub(super) fn trigger_time(&self, cell: &Cell) -> Duration {
        match self.is_answered {
            true => cell.trigger_time(&self.ofdma, self.users.len(), &self.control_mode),
            false => Duration::ZERO,
        }
    }

    /// Sets start and end of simultaneous responses to the data on the air.
    fn plan_answers(&mut self, cell: &Cell) {
        self.answers = [self.until; 2];
        self.plain_end = self.until;
        if !self.is_answered {
            return;
        }
        let begin = self.until + self.trigger_time(cell) + cell.rules.response_after();
        let [with_room, plain] =
            [true, false].map(|with_room| begin + MultiUserPpdu::duration(&self.answer_psdus(with_room)));
        self.answers = [begin, with_room];
        self.plain_end = plain;
    }

    /// Accounts the data, by the bytes of all users together.
    pub(super) fn book_data(&self, cell: &mut Cell, start: Instant) {
        let mut all = PpduPlan::default();
        for exchange in self.exchanges() {
            all.put_beside(cell.stations.originator(exchange).plan());
        }
        cell.book_data(self.holder, self.class, ([start, self.until], self.until), all);
    }

    /// The PPDU has ended: its users receive the MPDUs that arrived.
    pub(super) fn data_ended(&mut self, cell: &mut Cell, next_idle: u64) -> Progress {
        // The request may be an MPDU in each A-MPDU; a user that received any other MPDU knows that there is one.
        let request_inside = self.request_inside_len();
        for index in 0..self.users.len() {
            let user = &mut self.users[index];
            let Some(exchange) = &user.exchange else { continue };
            user.heard = cell.receive(exchange);
            let Some(len) = request_inside else { continue };
            let [from, _] = cell.stations.ends(exchange);
            let noise = from.peers[user.peer].noise.as_mut();
            let noisy = noise.is_some_and(|noise| noise.breaks_mpdu(len, true));
            user.answers = user.heard && !noisy;
            let outcome = if user.answers { Outcome::Received } else { Outcome::Errored };
            self.record_request_inside(cell, index, outcome);
        }
        if !self.is_answered {
            return self.settle_unanswered(cell);
        }
        let end = self.until;
        match self.ofdma.acknowledgment {
            MuAcknowledgment::MuBar => {
                self.send_trigger(end + cell.rules.phy.sifs, TriggerKind::MuBar);
                cell.charge(self.holder, self.class, AirtimeUse::LinkAck, self.until);
                Progress::GoesOn
            }
            MuAcknowledgment::AggregatedMuBar
            | MuAcknowledgment::Cascade
            | MuAcknowledgment::TriggeredResponseScheduling => {
                self.take_requests(cell);
                self.answer_at_once(cell, next_idle)
            }
            MuAcknowledgment::BlockAckRequests if self.users[0].heard => self.answer_alone(cell, 0),
            MuAcknowledgment::BlockAckRequests => {
                self.ask_next(cell, 1, end + cell.rules.phy.pifs(), next_idle)
            }
        }
    }

    /// No acknowledgment follows.
    pub(super) fn settle_unanswered(&mut self, cell: &mut Cell) -> Progress {
        for exchange in self.exchanges() {
            let peer = exchange.peer();
            let station = &mut cell.stations[exchange.from];
            let mpdus = station.peers[peer].originator.plan().mpdus;
            if exchange.outgoing.class() == PayloadClass::Data {
                station.peers[peer].uplink.sent(mpdus);
            }
            cell.settle_unanswered(exchange);
        }
        self.end(cell);
        Progress::Over { at: self.until, succeeded: true }
    }

    /// Users that respond to the request that has ended learn the start of the window from it.
    pub(super) fn take_requests(&self, cell: &mut Cell) {
        for exchange in
            self.users.iter().filter(|user| user.answers).filter_map(|user| user.exchange.as_ref())
        {
            cell.take_request(exchange, self.until);
        }
    }

    /// Bytes of the MPDU within each A-MPDU that requests the response; `None` without one.
    fn request_inside_len(&self) -> Option<u32> {
        self.ofdma.request_inside_len(&self.control_mode).filter(|_| self.is_answered)
    }

    /// Records the request within the A-MPDU of the user with this index, if frames are recorded.
    fn record_request_inside(&self, cell: &mut Cell, index: usize, outcome: Outcome) {
        let user = &self.users[index];
        let Some(exchange) = user.exchange.as_ref().filter(|_| cell.air.is_kept()) else { return };
        let trigger = |kind| Frame::Trigger(self.trigger(cell, kind, std::slice::from_ref(user)));
        let frame = match self.ofdma.acknowledgment {
            MuAcknowledgment::BlockAckRequests | MuAcknowledgment::MuBar => return,
            MuAcknowledgment::AggregatedMuBar => trigger(TriggerKind::MuBar),
            MuAcknowledgment::Cascade => trigger(TriggerKind::Basic),
            MuAcknowledgment::TriggeredResponseScheduling => Frame::TriggeredResponse(TriggeredResponse {
                symbols: MultiUserPpdu::symbol_count(&self.answer_psdus(true)),
                mode: user.mode,
                unit_index: user.unit_index,
            }),
        };
        let mode = cell.stations.originator(exchange).mode;
        cell.air.record_inside(exchange, mode, outcome, frame);
    }

    /// Modes and bytes of simultaneous responses, with or without room after the Block Acks.
    pub(super) fn answer_psdus(&self, with_room: bool) -> impl Iterator<Item = (Mode, u32)> + Clone {
        self.users.iter().filter_map(move |user| {
            let room = if with_room { self.ofdma.carried_len(user.room) + user.data_room } else { 0 };
            user.exchange.as_ref().map(|exchange| (user.mode, exchange.response_len(room)))
        })
    }

    /// All responding users transmit at the same time; if there is none, the access has failed.
    pub(super) fn answer_at_once(&mut self, cell: &mut Cell, next_idle: u64) -> Progress {
        if !self.users.iter().any(|user| user.answers) {
            return self.give_up(cell, next_idle);
        }
        for user in self.users.iter_mut().filter(|user| user.answers) {
            user.exchange.iter_mut().for_each(|exchange| exchange.set_response(self.answers));
            user.acknowledge(cell, Some(user.room as usize));
            if self.ofdma.reports_with_block_acks() {
                user.report(cell);
            }
        }
        self.stage = Stage::Answers;
        [self.since, self.until] = self.answers;
        cell.stations[self.holder].counters.answer_time += self.until - self.since;
        if self.ofdma.acknowledgment == MuAcknowledgment::Cascade {
            self.cascade = self.behind_block_acks(cell).map(Box::new);
        }
        Progress::GoesOn
    }

    /// The user with this index responds alone to the frame that has ended.
    fn answer_alone(&mut self, cell: &mut Cell, index: usize) -> Progress {
        let begin = self.until + cell.rules.response_after();
        let user = &mut self.users[index];
        user.answers = true;
        if let Some(exchange) = &mut user.exchange {
            let lasts = user.mode.ppdu_duration(exchange.response_len(0));
            exchange.set_response([begin, begin + lasts]);
        }
        user.acknowledge(cell, None);
        self.since = begin;
        self.until = user.exchange.map_or(begin, |exchange| exchange.response_end);
        self.stage = Stage::Answer(index);
        Progress::GoesOn
    }

    /// A user has responded alone: the next one is asked.
    pub(super) fn answer_ended(&mut self, cell: &mut Cell, index: usize, next_idle: u64) -> Progress {
        let until = self.until;
        let user = &mut self.users[index];
        if let Some(exchange) = &user.exchange {
            let plain_end = exchange.plain_response_end(&user.mode);
            cell.charge(self.holder, self.class, AirtimeUse::LinkAck, plain_end);
            if !user.appended.is_empty() {
                cell.charge(exchange.to, PayloadClass::Ack, AirtimeUse::CompressedAck, until);
            }
        }
        user.settle_answer(cell, until, next_idle);
        // The access continues.
        cell.stations[self.holder].transmitting = true;
        self.ask_next(cell, index + 1, until + cell.rules.phy.sifs, next_idle)
    }

    /// Requests the Block Ack of the user with this index at `at`; if there is no such user, all are settled.
    fn ask_next(&mut self, cell: &mut Cell, index: usize, at: Instant, next_idle: u64) -> Progress {
        if index >= self.users.len() {
            return self.settle_all(cell, next_idle);
        }
        self.since = at;
        self.until = at + self.control_mode.ppdu_duration(BLOCK_ACK_REQUEST_LEN);
        cell.charge(self.holder, self.class, AirtimeUse::LinkAck, self.until);
        self.stage = Stage::Request(index);
        Progress::GoesOn
    }

    /// A Block Ack Request has ended.
    pub(super) fn request_ended(&mut self, cell: &mut Cell, index: usize, next_idle: u64) -> Progress {
        let (user, end) = (&self.users[index], self.until);
        let request = Exchange::shared(
            [self.holder, user.client],
            Outgoing::Request { peer: user.peer, class: self.class },
            (0, 1),
            [self.since, end],
            [end; 2],
            user.exchange.map_or(0, |exchange| exchange.response_len(0)),
        );
        if !user.spoilt && cell.receive(&request) {
            return self.answer_alone(cell, index);
        }
        // No response arrives: the access point continues after the medium was idle for PIFS.
        self.ask_next(cell, index + 1, end + cell.rules.phy.pifs(), next_idle)
    }

    /// Simultaneous responses have ended.
    pub(super) fn answers_ended(&mut self, cell: &mut Cell, next_idle: u64) -> Progress {
        self.book_answers(cell);
        self.settle_all(cell, next_idle)
    }

    /// Accounts simultaneous responses: the time beyond plain Block Acks is charged to the users that appended bytes.
    fn book_answers(&self, cell: &mut Cell) {
        cell.charge(self.holder, self.class, AirtimeUse::LinkAck, self.plain_end);
        if let Some(cascade) = &self.cascade {
            cascade.book_triggered(cell, self.plain_end);
            return;
        }
        let spent = cell.accounts.book(AirtimeUse::CompressedAck, self.answers[1]);
        for (user, share) in self.users.iter().zip(even_shares(spent, self.users.len())) {
            cell.stations[user.client].airtime.spend(PayloadClass::Ack, AirtimeUse::CompressedAck, share);
        }
    }

    /// The last response has ended: settles each part, and the access.
    fn settle_all(&mut self, cell: &mut Cell, next_idle: u64) -> Progress {
        for user in self.users.iter_mut().filter(|user| !user.settled) {
            user.settle_answer(cell, self.until, next_idle);
        }
        if self.users.iter().any(|user| user.answers && !user.lost) {
            return self.succeed(cell);
        }
        self.end(cell);
        cell.stations[self.holder].contention.failed(self.until, next_idle);
        Progress::Over { at: self.until, succeeded: false }
    }
}

impl User {
    /// Adds a report of its queue to its acknowledgment.
    fn report(&mut self, cell: &mut Cell) {
        let Some(Exchange { from, to, response_at, response_end, .. }) = self.exchange else { return };
        let client = &cell.stations[to];
        let left = client.peers[client.peer_index(from)].originator.buffer_status();
        self.left = Some(left);
        if !self.lost {
            let unit = (self.mode, self.unit_index);
            cell.air.record_null([to, from], [response_at, response_end], unit, left);
        }
    }

    /// The access point handles its response, or its absence noticed at `noticed_at`.
    fn settle_answer(&mut self, cell: &mut Cell, noticed_at: Instant, next_idle: u64) {
        let appended = self.appended.len() as u32;
        let settled = self.settle(cell, self.answers, noticed_at, next_idle);
        let (Some(exchange), Some(settled)) = (self.exchange, settled) else { return };
        let station = &mut cell.stations[exchange.from];
        station.counters.count_room(self.room, appended, self.holds_more);
        let Peer { room, uplink, .. } = &mut station.peers[self.peer];
        room.answered(appended, self.holds_more);
        room.delivered(settled.mpdus);
        let is_data = exchange.outgoing.class() == PayloadClass::Data;
        if appended > 0 && is_data {
            uplink.acknowledged_inside(noticed_at);
        }
        if let Some(left) = self.left {
            uplink.reported_with_block_ack(noticed_at, left);
        }
        if is_data {
            uplink.sent(settled.mpdus);
        }
    }
}

/// Whether data for `peer` may share a PPDU with data for `first`: both are HE, not too long for a unit, try no rate, and
/// have equal parameters except MCS and streams. Unacknowledged data is only combined with unacknowledged data, because responses
/// to the others would cost the time that it saves.
fn goes_with(first: &Peer, peer: &Peer) -> bool {
    let [mode, of_first] = [peer, first].map(|peer| peer.originator.steady_modes()[0]);
    mode.format == Format::HeSu
        && !peer.goes_alone
        && !peer.originator.wants_try()
        && (mode.width_mhz, mode.guard_interval, mode.he_options())
            == (of_first.width_mhz, of_first.guard_interval, of_first.he_options())
        && peer.originator.may_share()
        && peer.originator.is_answered() == first.originator.is_answered()
}
