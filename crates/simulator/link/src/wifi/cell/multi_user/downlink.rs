//! PPDUs of an access point to several users, and the responses (802.11ax-2021 clauses 26.5.1 and 26.4.4).

use tacit_packet::units::{Duration, Instant};

use super::outline::{data_room, triggered_response_len};
use super::{Sequence, SequenceFrame, User};
use crate::packet::{PacketRef, PayloadClass};
use crate::wifi::air::{Frame, Outcome, TriggerKind, TriggeredResponse};
use crate::wifi::cell::Cell;
use crate::wifi::cell::sequence::MultiUser;
use crate::wifi::functions::FunctionId;
use crate::wifi::mac::exchange::Exchange;
use crate::wifi::mac::originator::UnitPart;
use crate::wifi::mac::peer::Peer;
use crate::wifi::mac::plan::Outgoing;
use crate::wifi::mac::protection::Handshake;
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
    ) -> Option<Sequence> {
        let mut users = std::mem::take(&mut self.users);
        self.stations[id].peers.iter_mut().for_each(|peer| peer.originator.update_rate(at));
        match self.stations[id].mu_scheduler.clone() {
            None => {
                self.stations[id].take_ready(self.rules.most_users, may_share_ppdu, &mut users);
                let served = self.users_to_serve(at, id, ofdma, &users, limit);
                self.stations[id].serve(at, served, &mut users);
            }
            Some(scheduler) => self.take_scheduled(at, id, &scheduler, &mut users),
        }
        let sequence =
            if users.is_empty() { None } else { self.fill_downlink(at, id, ofdma, (&users, limit)) };
        self.users = users;
        self.stations[id].report_drained(&mut self.outbox.drained);
        sequence
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
        let peers = station.ready_users(may_share_ppdu);
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
    ) -> Option<Sequence> {
        let mut outline = self.outline(at, id, ofdma, users)?;
        let mut ofdma = *ofdma;
        let planned = (&outline.modes[..], &outline.rooms[..]);
        if ofdma.acknowledgment == MuAcknowledgment::TriggeredResponseScheduling
            && MultiUserPpdu::symbol_count(&self.block_ack_psdus(id, &ofdma, users, planned))
                > OfdmaConfig::TRS_SYMBOLS
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
            let part = UnitPart { modes: *modes, bytes, rate, limits: None };
            let Some(outgoing) = station.data_in_unit(at, lifetime, *peer, part, &mut self.holders) else {
                station.defer_to_whole_channel(*peer, at);
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
                _ => triggered_response_len(ofdma, entry),
            };
            let (ends, unit) = ([id, entry.id], (index, count));
            let exchange = Exchange::in_unit(Handshake::Shared, ends, outgoing, unit, [at; 2], response_len);
            shared.push(User {
                exchange: Some(exchange),
                room: *room,
                data_room,
                ..User::new(entry.id, *peer, index)
            });
        }
        if shared.is_empty() {
            self.spare_users = shared;
            return None;
        }
        let end = at + MultiUserPpdu::duration(&psdus.iter().copied());
        let modes = (outline.control_mode, outline.modes.iter().map(|modes| modes[1]).collect());
        let mut sequence =
            Sequence { class, ..Sequence::several(id, *ofdma, (SequenceFrame::Data, at), shared, modes) };
        sequence.plan_responses(self, end, outline.response_time);
        self.stations[id].begin_multi_user_access();
        self.stations[id].counters.count_shared_ppdu(outline.unit, &psdus, end - at);
        Some(sequence)
    }
}

impl Sequence {
    /// Time from the end of the data to the end of the trigger after it; zero without one.
    fn trigger_time(&self, cell: &Cell) -> Duration {
        let MultiUser { ofdma, control_mode, .. } = self.multi_user();
        cell.trigger_time(ofdma, self.users.len(), control_mode)
    }

    /// Sets the `end` of the data on the air, and the times of the responses, the last of which ends `response_time` later.
    fn plan_responses(&mut self, cell: &Cell, end: Instant, response_time: Duration) {
        self.until = end;
        let is_answered = !self.users.iter().flat_map(|user| &user.exchange).any(Exchange::is_no_ack);
        let begin = end + self.trigger_time(cell) + cell.rules.response_after();
        let [with_room, plain] = [true, false].map(|with_room| match is_answered {
            true => begin + MultiUserPpdu::duration(&self.response_psdus(with_room)),
            false => end,
        });
        let responses = if is_answered { [begin, with_room] } else { [end; 2] };
        let multi_user = self.multi_user_mut();
        (multi_user.responses, multi_user.plain_end) = (responses, plain);
        let one_by_one = multi_user.ofdma.acknowledgment == MuAcknowledgment::BlockAckRequests;
        for exchange in self.users.iter_mut().flat_map(|user| &mut user.exchange) {
            exchange.last_until(end, if one_by_one { [end + response_time; 2] } else { responses });
        }
        if one_by_one {
            self.users[0].set_response_after(cell, end);
        }
    }

    /// Draws whether the user with this index received the request of `len` bytes in the A-MPDU of its data. A user that received any
    /// other MPDU expects one.
    pub fn receive_request_inside(&mut self, cell: &mut Cell, index: usize, len: u32) {
        let user = &mut self.users[index];
        let noise = cell.stations[self.initiator].peers[user.peer].noise.as_mut();
        let noisy = noise.is_some_and(|noise| noise.breaks_mpdu(len, true));
        user.responds = user.data_arrived && !noisy;
        let outcome = if user.responds { Outcome::Received } else { Outcome::Errored };
        self.record_request_inside(cell, index, outcome);
    }

    /// Bytes of the MPDU within each A-MPDU that requests the response; `None` without one.
    pub fn request_inside_len(&self) -> Option<u32> {
        let MultiUser { ofdma, control_mode, .. } = self.multi_user.as_deref()?;
        let is_answered = !self.exchanges().any(Exchange::is_no_ack);
        ofdma.request_inside_len(control_mode).filter(|_| is_answered)
    }

    /// Records the request within the A-MPDU of the user with this index, if frames are recorded.
    fn record_request_inside(&self, cell: &mut Cell, index: usize, outcome: Outcome) {
        let user = &self.users[index];
        let Some(exchange) = user.exchange.as_ref().filter(|_| cell.air.is_kept()) else { return };
        let trigger = |kind| Frame::Trigger(self.trigger(cell, kind, std::slice::from_ref(user)));
        let frame = match self.multi_user().ofdma.acknowledgment {
            MuAcknowledgment::BlockAckRequests | MuAcknowledgment::MuBar => return,
            MuAcknowledgment::AggregatedMuBar => trigger(TriggerKind::MuBar),
            MuAcknowledgment::Cascade => trigger(TriggerKind::Basic),
            MuAcknowledgment::TriggeredResponseScheduling => Frame::TriggeredResponse(TriggeredResponse {
                symbols: MultiUserPpdu::symbol_count(&self.response_psdus(true)),
                mode: self.multi_user().mode(user),
                unit_index: user.unit_index,
            }),
        };
        let mode = cell.stations.originator(exchange).mode;
        cell.air.record_inside(exchange, mode, outcome, frame);
    }

    /// Modes and bytes of simultaneous responses, with or without room after the Block Acks.
    pub(super) fn response_psdus(&self, with_room: bool) -> impl Iterator<Item = (Mode, u32)> + Clone {
        let multi_user = self.multi_user();
        self.users.iter().filter_map(move |user| {
            let room = if with_room { multi_user.ofdma.carried_len(user.room) + user.data_room } else { 0 };
            user.exchange.as_ref().map(|exchange| (multi_user.mode(user), exchange.response_len(room)))
        })
    }

    /// The request of simultaneous responses has ended: users that received it move their windows to its start, and respond.
    pub fn requests_ended(&mut self, cell: &mut Cell, next_idle: u64) -> Option<Instant> {
        if !self.users.iter().any(|user| user.responds) {
            return self.give_up(cell, next_idle);
        }
        let Self { users, multi_user: Some(multi_user), .. } = self else { return None };
        let MultiUser { ofdma, responses: [begin, end], .. } = &**multi_user;
        let (ofdma, begin, end) = (*ofdma, *begin, *end);
        for exchange in users.iter().filter(|user| user.responds).filter_map(|user| user.exchange.as_ref()) {
            cell.advance_window(exchange, self.until);
        }
        for user in users.iter_mut().filter(|user| user.responds) {
            user.exchange.iter_mut().for_each(|exchange| exchange.set_response([begin, end]));
            cell.acknowledge(user, Some(user.room as usize));
            if ofdma.reports_with_block_acks() {
                user.report(cell, multi_user.mode(user));
            }
        }
        cell.stations[self.initiator].counters.answer_time += end - begin;
        if ofdma.acknowledgment == MuAcknowledgment::Cascade {
            self.multi_user_mut().cascade = self.data_after_block_acks(cell).map(Box::new);
        }
        self.send(SequenceFrame::TriggeredResponses, begin, end)
    }

    /// Requests the Block Ack of the user with this index at `at`; if there is no such user, all are settled.
    pub fn request_block_ack(
        &mut self,
        cell: &mut Cell,
        index: usize,
        at: Instant,
        next_idle: u64,
    ) -> Option<Instant> {
        if index >= self.users.len() {
            return self.settle_all(cell, next_idle);
        }
        // The access continues.
        cell.stations[self.initiator].transmitting = true;
        let until = at + self.multi_user().control_mode.ppdu_duration(BLOCK_ACK_REQUEST_LEN);
        self.send(SequenceFrame::BlockAckRequest(index), at, until)
    }

    /// A Block Ack Request has ended.
    pub fn block_ack_request_ended(
        &mut self,
        cell: &mut Cell,
        index: usize,
        next_idle: u64,
    ) -> Option<Instant> {
        let end = self.until;
        let user = &mut self.users[index];
        let request = Exchange::in_unit(
            Handshake::Shared,
            [self.initiator, user.client],
            Outgoing::BlockAckRequest { peer: user.peer, class: self.class },
            (0, 1),
            [self.since, end],
            user.exchange.map_or(0, |exchange| exchange.response_len(0)),
        );
        if !user.overlapped && cell.receive(&request) {
            user.set_response_after(cell, end);
            return self.respond(cell, index);
        }
        // No response arrives: the access point continues after the medium was idle for PIFS.
        self.request_block_ack(cell, index + 1, end + cell.rules.phy.pifs(), next_idle)
    }
}

impl User {
    /// Start and end of its response, without appended bytes, if it responds alone to a frame that ends at `end`.
    pub fn response_after(&self, cell: &Cell, end: Instant) -> Option<[Instant; 2]> {
        let exchange = self.exchange.as_ref()?;
        let lasts = cell.stations.control_mode(exchange).ppdu_duration(exchange.response_len(0));
        let begin = end + cell.rules.response_after();
        Some([begin, begin + lasts])
    }

    fn set_response_after(&mut self, cell: &Cell, end: Instant) {
        if let (Some(response), Some(exchange)) = (self.response_after(cell, end), &mut self.exchange) {
            exchange.set_response(response);
        }
    }

    /// Adds a report of its queue to its acknowledgment.
    fn report(&mut self, cell: &mut Cell, mode: Mode) {
        let Some(Exchange { from, to, response_at, response_end, .. }) = self.exchange else { return };
        let client = &cell.stations[to];
        let queue = client.peers[client.peer_index(from)].originator.buffer_status();
        self.queue = Some(queue);
        if !self.lost {
            let unit = (mode, self.unit_index);
            cell.air.record_null([to, from], [response_at, response_end], unit, queue);
        }
    }
}

/// Whether data for `peer` may share a PPDU with data for `first`: both are HE, not too long for a unit, try no rate, and
/// have equal parameters except MCS and streams. Unacknowledged data is only combined with unacknowledged data, because responses
/// to the others would cost the time that it saves.
fn may_share_ppdu(first: &Peer, peer: &Peer) -> bool {
    let [mode, of_first] = [peer, first].map(|peer| peer.originator.steady_modes()[0]);
    mode.format == Format::HeSu
        && !peer.needs_whole_channel
        && !peer.originator.wants_try()
        && (mode.width_mhz, mode.guard_interval, mode.he_options())
            == (of_first.width_mhz, of_first.guard_interval, of_first.he_options())
        && peer.originator.may_share()
        && peer.originator.is_answered() == first.originator.is_answered()
}
