//! PPDUs of an access point to several users, and the responses (802.11ax-2021 clauses 26.5.1 and 26.4.4).
//!
//! Each user's part is a separate [`Exchange`], so that reception, acknowledgment and outcome are implemented once. The
//! round contains the common parts: the access, the PPDU (as long as its longest part), the trigger, and responses of
//! equal length.

mod outline;
mod sharing;

use tacit_proto::units::{Duration, Instant};

use self::outline::{answer_len, data_room};
use super::progress::Progress;
use super::uplink::Uplink;
use super::{Answer, Cell, even_shares};
use crate::packet::{PacketRef, PayloadClass};
use crate::wifi::air::{Frame, Outcome, Trigger, TriggerKind, TriggerUser, TriggeredResponse};
use crate::wifi::airtime::AirtimeUse;
use crate::wifi::functions::FunctionId;
use crate::wifi::mac::buffer_status::BufferStatus;
use crate::wifi::mac::exchange::Exchange;
use crate::wifi::mac::noise::Noise;
use crate::wifi::mac::peer::Peer;
use crate::wifi::mac::plan::{Outgoing, PpduPlan};
use crate::wifi::mac::protection::Direction;
use crate::wifi::mu_scheduler::{ReadyUser, SchedulerHandle};
use crate::wifi::ofdma::{MuAcknowledgment, OfdmaConfig};
use crate::wifi::phy::{BLOCK_ACK_REQUEST_LEN, Format, Mode, MultiUserPpdu, mu_bar_len, subframe_len};

/// One user's part of a round.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    exchange: Exchange,
    /// Modes of data and responses in single-user PPDUs.
    single: [Mode; 2],
    /// Bytes in its response in addition to the Block Ack: for compressed ACKs, and for data of its own.
    room: u32,
    data_room: u32,
    /// Some of its data arrived.
    heard: bool,
    /// It responds, or has responded.
    answers: bool,
    /// Its response is lost.
    lost: bool,
    /// Its outcome is decided.
    settled: bool,
    /// More is waiting than the response has room for.
    holds_more: bool,
    /// The queue that it reports with its response; `None` without a report.
    left: Option<BufferStatus>,
    /// Bytes appended to its response.
    appended: Vec<u8>,
}

/// Stage of a round: the PPDU on the air.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The PPDU of all users.
    Data,
    /// The trigger after it.
    Trigger,
    /// The responses of all users.
    Answers,
    /// The Block Ack Request to this part.
    Request(usize),
    /// The Block Ack of this part alone.
    Answer(usize),
}

/// A multi-user PPDU and the responses to it.
#[derive(Clone, Debug)]
pub(crate) struct Downlink {
    holder: FunctionId,
    class: PayloadClass,
    ofdma: OfdmaConfig,
    /// Its users acknowledge their data.
    is_answered: bool,
    parts: Vec<Part>,
    stage: Stage,
    /// Start and end of the PPDU on the air.
    since: Instant,
    until: Instant,
    /// Start and end of simultaneous responses.
    answers: [Instant; 2],
    /// Their end without room for compressed ACKs.
    plain_end: Instant,
    /// Mode of the trigger and of frames to a single user.
    control_mode: Mode,
    /// Data of users after their Block Acks.
    cascade: Option<Box<Uplink>>,
}

impl Cell {
    /// The multi-user PPDU that `id` sends at `at`, within `limit` including its responses if given; `None` if fewer
    /// than two users are next.
    pub(super) fn begin_downlink(
        &mut self,
        at: Instant,
        id: FunctionId,
        ofdma: &OfdmaConfig,
        limit: Option<Duration>,
    ) -> Option<Downlink> {
        let mut users = std::mem::take(&mut self.users);
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
                rate: originator.mode.rate(),
            }
        });
        let ready: Vec<ReadyUser> = ready.collect();
        let chosen = scheduler.downlink(at, &ready, self.rules.most_users);
        users.extend(chosen.into_iter().map(|position| peers[position]));
        self.stations[id].take_chosen(at, users);
    }

    fn fill_downlink(
        &mut self,
        at: Instant,
        id: FunctionId,
        ofdma: &OfdmaConfig,
        (users, limit): (&[usize], Option<Duration>),
    ) -> Option<Downlink> {
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
        let mut parts = std::mem::take(&mut self.spare_parts);
        parts.clear();
        let (lifetime, count) = (self.rules.config.lifetime, users.len() as u16);
        let mut psdus = Vec::with_capacity(users.len());
        let mut class = PayloadClass::Ack;
        for ((index, peer), (modes, room)) in (0..).zip(users).zip(outline.modes.iter().zip(&outline.rooms)) {
            let station = &mut self.stations[id];
            let originator = &station.peers[*peer].originator;
            let single = [originator.mode, originator.control_mode];
            let bytes = modes[0].bytes_within(limit).saturating_sub(trigger_subframe);
            let rate = Noise::ALONE + 1 + outline.unit as usize;
            let data_room = data_room(ofdma, &station.peers[*peer], at);
            let Some(outgoing) =
                station.part_of(at, lifetime, *peer, (*modes, bytes, rate), &mut self.holders)
            else {
                let originator = &mut station.peers[*peer].originator;
                [originator.mode, originator.control_mode] = single;
                station.send_alone(*peer, at);
                continue;
            };
            station.count_shared(&outgoing);
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
            parts.push(Part {
                exchange,
                single,
                room: *room,
                data_room,
                heard: false,
                answers: false,
                lost: false,
                settled: false,
                holds_more: false,
                left: None,
                appended: Vec::new(),
            });
        }
        if parts.is_empty() {
            self.spare_parts = parts;
            return None;
        }
        let end = at + MultiUserPpdu::duration(&psdus.iter().copied());
        let mut round = Downlink {
            holder: id,
            class,
            ofdma: *ofdma,
            is_answered: outline.is_answered,
            parts,
            stage: Stage::Data,
            since: at,
            until: end,
            answers: [end; 2],
            plain_end: end,
            control_mode: outline.control_mode,
            cascade: None,
        };
        round.plan_answers(self, end);
        let reserved = end + outline.answered_after;
        for part in &mut round.parts {
            let Exchange { from, to, outgoing, .. } = part.exchange;
            let index = part.exchange.unit_index().unwrap_or_default();
            let answers = match ofdma.acknowledgment {
                MuAcknowledgment::BlockAckRequests => [reserved; 2],
                _ => round.answers,
            };
            let response_len = part.exchange.response_len(0);
            part.exchange =
                Exchange::shared([from, to], outgoing, (index, count), [at, end], answers, response_len);
        }
        self.stations[id].begin_shared_access();
        self.stations[id].counters.count_shared_ppdu(outline.unit, &psdus, end - at);
        Some(round)
    }
}

impl Downlink {
    /// End of the PPDU.
    pub fn data_end(&self) -> Instant {
        self.parts.first().map_or(self.until, |part| part.exchange.end)
    }

    /// The function whose access it is, and its class.
    pub fn account(&self) -> (FunctionId, PayloadClass) {
        (self.holder, self.class)
    }

    /// Mode of its trigger.
    pub fn control_mode(&self) -> &Mode {
        &self.control_mode
    }

    /// Time until which the access point transmits without needing a response.
    pub fn alone_until(&self, cell: &Cell) -> Instant {
        self.data_end() + self.trigger_time(cell)
    }

    /// Time from the end of the data to the end of the trigger after it; zero without one.
    fn trigger_time(&self, cell: &Cell) -> Duration {
        match self.is_answered {
            true => cell.trigger_time(&self.ofdma, self.parts.len(), &self.control_mode),
            false => Duration::ZERO,
        }
    }

    /// True if the access belongs to `function`, or it transmits in it.
    pub fn engages(&self, function: FunctionId) -> bool {
        self.holder == function || self.cascade.as_ref().is_some_and(|cascade| cascade.engages(function))
    }

    /// The users' data after their Block Acks, once it has ended.
    pub fn take_cascade(&mut self) -> Option<Uplink> {
        self.cascade.take().map(|cascade| *cascade)
    }

    /// Until when other stations that received it defer.
    pub fn reserved_until(&self) -> Instant {
        self.answers[1].max(self.until)
    }

    /// Sets start and end of simultaneous responses; the data ends at `end`.
    fn plan_answers(&mut self, cell: &Cell, end: Instant) {
        if !self.is_answered {
            self.answers = [end; 2];
            return;
        }
        let begin = end + self.trigger_time(cell) + cell.rules.response_after();
        let [with_room, plain] = [true, false]
            .map(|with_room| begin + MultiUserPpdu::duration(&self.answer_psdus(cell, with_room)));
        self.answers = [begin, with_room];
        self.plain_end = plain;
    }

    /// Bytes in the response of `part` in addition to the Block Ack.
    fn room_of(&self, part: &Part) -> u32 {
        self.ofdma.carried_len(part.room) + part.data_room
    }

    /// Accounts the PPDU, by the bytes of all users together.
    pub fn book_data(&self, cell: &mut Cell, start: Instant) {
        let mut all = PpduPlan::default();
        for part in &self.parts {
            all.put_beside(cell.stations.originator(&part.exchange).plan());
        }
        cell.book_data(self.holder, self.class, [start, self.data_end()], all);
    }

    /// The start of the PPDU, before `clear_from`, was hidden by other PPDUs; for `deaf` stations the whole PPDU was.
    pub fn hide_until(&mut self, cell: &Cell, clear_from: Instant, deaf: impl Fn(FunctionId) -> bool) {
        let end = self.data_end();
        for part in &mut self.parts {
            let is_deaf =
                cell.stations.numbers().of_station(cell.stations.station_of(part.exchange.to)).any(&deaf);
            part.exchange = part.exchange.hidden_until(if is_deaf { end } else { clear_from });
        }
    }

    /// The PPDU on the air has ended: does what is due, and returns the next step. `next_idle` is the idle period that
    /// would now begin.
    pub fn step(&mut self, cell: &mut Cell, next_idle: u64) -> Progress {
        match self.stage {
            Stage::Data => self.data_ended(cell, next_idle),
            Stage::Trigger => {
                let trigger_end = self.until;
                self.hear_trigger(cell, trigger_end);
                self.answer_at_once(cell, next_idle)
            }
            Stage::Answers => {
                self.book_answers(cell);
                self.settle_all(cell, next_idle)
            }
            Stage::Request(index) => self.request_ended(cell, index, next_idle),
            Stage::Answer(index) => {
                let until = self.until;
                let Part { exchange, appended, .. } = &self.parts[index];
                let (to, is_longer) = (exchange.to, !appended.is_empty());
                let plain_end = exchange.plain_response_end(cell.stations.control_mode(exchange));
                cell.charge(self.holder, self.class, AirtimeUse::LinkAck, plain_end);
                if is_longer {
                    cell.charge(to, PayloadClass::Ack, AirtimeUse::CompressedAck, until);
                }
                self.parts[index].settle(cell, until, next_idle);
                // The access continues.
                cell.stations[self.holder].transmitting = true;
                self.ask_next(cell, index + 1, until + cell.rules.phy.sifs, next_idle)
            }
        }
    }

    /// The PPDU has ended: its users receive the MPDUs that arrived.
    fn data_ended(&mut self, cell: &mut Cell, next_idle: u64) -> Progress {
        // The request may be an MPDU in each A-MPDU; a user that received any other MPDU knows that there is one.
        let request_inside = self.request_inside_len();
        for index in 0..self.parts.len() {
            let part = &mut self.parts[index];
            part.heard = cell.receive(&part.exchange);
            let Some(len) = request_inside else { continue };
            let [from, _] = cell.stations.ends(&part.exchange);
            let noise = from.peers[part.exchange.peer()].noise.as_mut();
            let noisy = noise.is_some_and(|noise| noise.breaks_mpdu(len, true));
            part.answers = part.heard && !noisy;
            let outcome = if part.answers { Outcome::Received } else { Outcome::Errored };
            self.record_request_inside(cell, index, outcome);
        }
        let end = self.data_end();
        if !self.is_answered {
            return self.settle_unanswered(cell);
        }
        match self.ofdma.acknowledgment {
            MuAcknowledgment::MuBar => {
                let until = end + self.trigger_time(cell);
                cell.stations[self.holder].counters.trigger_time += until - end - cell.rules.phy.sifs;
                cell.charge(self.holder, self.class, AirtimeUse::LinkAck, until);
                self.stage = Stage::Trigger;
                self.until = until;
                Progress::Until(until)
            }
            MuAcknowledgment::AggregatedMuBar
            | MuAcknowledgment::Cascade
            | MuAcknowledgment::TriggeredResponseScheduling => {
                self.take_requests(cell, end);
                self.answer_at_once(cell, next_idle)
            }
            MuAcknowledgment::BlockAckRequests => {
                let [first, ..] = &mut self.parts[..] else { return Progress::Over(end, false) };
                if !first.heard {
                    return self.ask_next(cell, 1, end + cell.rules.phy.pifs(), next_idle);
                }
                self.answer_alone(cell, 0, end)
            }
        }
    }

    /// No acknowledgment follows.
    fn settle_unanswered(&mut self, cell: &mut Cell) -> Progress {
        for Part { exchange, .. } in &self.parts {
            let peer = exchange.peer();
            let station = &mut cell.stations[exchange.from];
            let mpdus = station.peers[peer].originator.plan().mpdus;
            if exchange.outgoing.class() == PayloadClass::Data {
                station.peers[peer].uplink.sent(mpdus);
            }
            cell.settle_unanswered(exchange);
        }
        self.end(cell);
        Progress::Over(self.until, true)
    }

    /// The trigger after the PPDU ends at `at`: users that received it respond.
    fn hear_trigger(&mut self, cell: &mut Cell, at: Instant) {
        let len = mu_bar_len(self.parts.len() as u32, self.ofdma.padding_bytes(&self.control_mode));
        let sent_at = self.data_end() + cell.rules.phy.sifs;
        for part in &mut self.parts {
            part.answers = cell.hears(&part.exchange, len, sent_at, Direction::Forward);
        }
        self.take_requests(cell, at);
        if cell.air.is_kept() {
            let frame = Frame::Trigger(self.trigger(cell, TriggerKind::MuBar, &self.parts));
            let reserves = self.answers[1] - at;
            let (span, outcome) = ([sent_at, at], Outcome::Received);
            cell.air.record_broadcast(self.holder, span, self.control_mode, reserves, outcome, frame);
        }
    }

    /// Users that respond to a trigger learn the start of the window from it.
    fn take_requests(&self, cell: &mut Cell, at: Instant) {
        for part in self.parts.iter().filter(|part| part.answers) {
            cell.take_request(&part.exchange, at);
        }
    }

    /// Bytes of the MPDU within each A-MPDU that requests the response; `None` without one.
    fn request_inside_len(&self) -> Option<u32> {
        self.ofdma.request_inside_len(&self.control_mode).filter(|_| self.is_answered)
    }

    /// Records the request within the A-MPDU of the part with this index, if frames are recorded.
    fn record_request_inside(&self, cell: &mut Cell, index: usize, outcome: Outcome) {
        if !cell.air.is_kept() {
            return;
        }
        let part = &self.parts[index];
        let frame = match self.ofdma.acknowledgment {
            MuAcknowledgment::BlockAckRequests | MuAcknowledgment::MuBar => return,
            MuAcknowledgment::AggregatedMuBar => {
                Frame::Trigger(self.trigger(cell, TriggerKind::MuBar, std::slice::from_ref(part)))
            }
            MuAcknowledgment::Cascade => {
                Frame::Trigger(self.trigger(cell, TriggerKind::Basic, std::slice::from_ref(part)))
            }
            MuAcknowledgment::TriggeredResponseScheduling => Frame::TriggeredResponse(TriggeredResponse {
                symbols: MultiUserPpdu::symbol_count(&self.answer_psdus(cell, true)),
                mode: cell.stations.originator(&part.exchange).control_mode,
                unit_index: part.exchange.unit_index().unwrap_or_default(),
            }),
        };
        let mode = cell.stations.originator(&part.exchange).mode;
        cell.air.record_inside(&part.exchange, mode, outcome, frame);
    }

    /// Modes and bytes of simultaneous responses, with or without room after the Block Acks.
    fn answer_psdus(&self, cell: &Cell, with_room: bool) -> impl Iterator<Item = (Mode, u32)> + Clone {
        self.parts.iter().map(move |part| {
            let room = if with_room { self.room_of(part) } else { 0 };
            let originator = cell.stations.originator(&part.exchange);
            (originator.control_mode, part.exchange.response_len(room))
        })
    }

    /// The frame of a trigger for the users of `parts`.
    fn trigger(&self, cell: &Cell, kind: TriggerKind, parts: &[Part]) -> Trigger {
        let users = parts.iter().map(|part| {
            let originator = cell.stations.originator(&part.exchange);
            TriggerUser {
                station: cell.stations.station_of(part.exchange.to),
                mode: originator.control_mode,
                unit_index: part.exchange.unit_index().unwrap_or_default(),
                units: 1,
                start: originator.window_start(),
            }
        });
        let users: Vec<TriggerUser> = users.collect();
        let longest = self.answer_psdus(cell, true).filter_map(|(mode, bytes)| mode.l_sig_length(bytes));
        Trigger {
            kind,
            width_mhz: users.first().map_or(20, |user| user.mode.width_mhz),
            padding_bytes: self.ofdma.padding_bytes(&self.control_mode),
            l_sig_length: longest.max().unwrap_or_default(),
            users,
        }
    }

    /// All responding users transmit at the same time; if there is none, the access has failed.
    fn answer_at_once(&mut self, cell: &mut Cell, next_idle: u64) -> Progress {
        for part in self.parts.iter_mut().filter(|part| part.answers) {
            let room = part.room as usize;
            part.exchange.set_response(self.answers);
            part.answer(cell, Some(room));
            if self.ofdma.reports_with_block_acks() {
                part.report(cell);
            }
        }
        if self.parts.iter().any(|part| part.answers) {
            self.stage = Stage::Answers;
            self.until = self.answers[1];
            cell.stations[self.holder].counters.answer_time += self.answers[1] - self.answers[0];
            if self.ofdma.acknowledgment == MuAcknowledgment::Cascade {
                // Unacknowledged data is sent once, in single-user PPDUs.
                let acknowledged = |part: &&Part| cell.stations.peer(&part.exchange).answered;
                let behind = self.parts.iter().filter(|part| part.answers).filter(acknowledged).map(|part| {
                    let Exchange { from, to, .. } = part.exchange;
                    let appended = self.ofdma.carried_len(part.appended.len() as u32);
                    let used = part.exchange.response_len(appended).next_multiple_of(4);
                    (to, cell.stations[from].peer_index(to), part.exchange.unit_index(), used)
                });
                let behind: Vec<_> = behind.collect();
                self.cascade =
                    Uplink::behind(cell, self.holder, &self.ofdma, &behind, self.answers).map(Box::new);
            }
            return Progress::Until(self.until);
        }
        let noticed_at = self.until + cell.rules.ack_timeout(&self.control_mode);
        self.fail(cell, noticed_at, next_idle);
        Progress::Over(self.until, false)
    }

    /// The part with this index responds alone; the frame it responds to ended at `end`.
    fn answer_alone(&mut self, cell: &mut Cell, index: usize, end: Instant) -> Progress {
        let begin = end + cell.rules.response_after();
        let part = &mut self.parts[index];
        part.answers = true;
        let len = part.exchange.response_len(0);
        let lasts = cell.stations.control_mode(&part.exchange).ppdu_duration(len);
        part.exchange.set_response([begin, begin + lasts]);
        part.answer(cell, None);
        self.until = part.exchange.response_end;
        self.stage = Stage::Answer(index);
        Progress::Until(self.until)
    }

    /// Requests the Block Ack of the part with this index at `at`; if there is no such part, all are settled.
    fn ask_next(&mut self, cell: &mut Cell, index: usize, at: Instant, next_idle: u64) -> Progress {
        if index >= self.parts.len() {
            return self.settle_all(cell, next_idle);
        }
        self.since = at;
        self.until = at + self.control_mode.ppdu_duration(BLOCK_ACK_REQUEST_LEN);
        cell.charge(self.holder, self.class, AirtimeUse::LinkAck, self.until);
        self.stage = Stage::Request(index);
        Progress::Until(self.until)
    }

    fn request_ended(&mut self, cell: &mut Cell, index: usize, next_idle: u64) -> Progress {
        let (start, end) = (self.since, self.until);
        let part = &self.parts[index].exchange;
        let request = Exchange::shared(
            [part.from, part.to],
            Outgoing::Request { peer: part.peer(), class: self.class },
            (0, 1),
            [start, end],
            [end; 2],
            part.response_len(0),
        );
        if cell.receive(&request) {
            return self.answer_alone(cell, index, end);
        }
        // No response arrives: the access point continues after the medium was idle for PIFS.
        self.ask_next(cell, index + 1, end + cell.rules.phy.pifs(), next_idle)
    }

    /// Accounts simultaneous responses: the time beyond plain Block Acks is charged to the users that appended bytes.
    fn book_answers(&self, cell: &mut Cell) {
        cell.charge(self.holder, self.class, AirtimeUse::LinkAck, self.plain_end);
        if let Some(cascade) = &self.cascade {
            cascade.book_data(cell, self.plain_end);
            return;
        }
        let spent = cell.accounts.book(AirtimeUse::CompressedAck, self.answers[1]);
        for (part, share) in self.parts.iter().zip(even_shares(spent, self.parts.len())) {
            let airtime = &mut cell.stations[part.exchange.to].airtime;
            airtime.spend(PayloadClass::Ack, AirtimeUse::CompressedAck, share);
        }
    }

    /// The last response has ended: settles each part, and the access.
    fn settle_all(&mut self, cell: &mut Cell, next_idle: u64) -> Progress {
        for part in self.parts.iter_mut().filter(|part| !part.settled) {
            part.settle(cell, self.until, next_idle);
        }
        let any = self.parts.iter().any(|part| part.answers && !part.lost);
        self.end(cell);
        let contention = &mut cell.stations[self.holder].contention;
        if any {
            contention.succeeded();
        } else {
            contention.failed(self.until, next_idle);
        }
        Progress::Over(self.until, any)
    }

    /// No response arrives; the access point notices at `noticed_at`.
    pub fn fail(&mut self, cell: &mut Cell, noticed_at: Instant, next_idle: u64) {
        if !self.is_answered {
            // It cannot notice.
            self.settle_unanswered(cell);
            return;
        }
        for part in &self.parts {
            cell.fail(&part.exchange, noticed_at, next_idle);
        }
        self.end(cell);
        cell.stations[self.holder].contention.failed(noticed_at, next_idle);
    }

    /// Records the frames of a collided PPDU, if frames are recorded.
    pub fn record_collided(&self, cell: &mut Cell) {
        for (index, part) in self.parts.iter().enumerate() {
            let originator = cell.stations.originator(&part.exchange);
            cell.air.record_collided_data(&part.exchange, originator, &mut cell.holders);
            if self.request_inside_len().is_some() {
                self.record_request_inside(cell, index, Outcome::Collided);
            }
        }
    }

    /// From now on single-user PPDUs are sent as before.
    fn end(&mut self, cell: &mut Cell) {
        for part in &self.parts {
            cell.end_part(&part.exchange, part.single);
        }
        cell.stations[self.holder].transmitting = false;
        cell.spare_parts = std::mem::take(&mut self.parts);
        cell.want_trigger(self.holder, self.until, &self.ofdma);
    }
}

impl Part {
    /// Builds its acknowledgment.
    fn answer(&mut self, cell: &mut Cell, room: Option<usize>) {
        let Answer { exchange, lost, holds_more } =
            cell.with_appended(&mut self.appended, |cell| cell.answer(&self.exchange, room));
        (self.exchange, self.lost, self.holds_more) = (exchange, lost, holds_more);
    }

    /// Adds a report of its queue to its acknowledgment.
    fn report(&mut self, cell: &mut Cell) {
        let Exchange { from, to, response_at, response_end, .. } = self.exchange;
        let client = &cell.stations[to];
        let left = client.peers[client.peer_index(from)].originator.buffer_status();
        self.left = Some(left);
        let unit = (
            cell.stations.originator(&self.exchange).control_mode,
            self.exchange.unit_index().unwrap_or_default(),
        );
        if !self.lost {
            cell.air.record_null([to, from], [response_at, response_end], unit, left);
        }
    }

    /// The access point handles its response, or its absence noticed at `noticed_at`.
    fn settle(&mut self, cell: &mut Cell, noticed_at: Instant, next_idle: u64) {
        self.settled = true;
        if !self.answers {
            cell.fail(&self.exchange, noticed_at, next_idle);
            return;
        }
        let appended = self.appended.len() as u32;
        let settled = cell.with_appended(&mut self.appended, |cell| {
            cell.settle_response(&self.exchange, self.lost, next_idle)
        });
        self.appended.clear();
        if !self.lost {
            let peer = self.exchange.peer();
            cell.stations[self.exchange.from].counters.count_room(self.room, appended, self.holds_more);
            let room = &mut cell.stations[self.exchange.from].peers[peer].room;
            room.answered(appended, self.holds_more);
            room.delivered(settled.mpdus);
            let uplink = &mut cell.stations[self.exchange.from].peers[peer].uplink;
            let is_data = self.exchange.outgoing.class() == PayloadClass::Data;
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
}

/// Whether data for `peer` may share a PPDU with data for `first`: both are HE, not too long for a unit, and have equal
/// parameters except MCS and streams. Unacknowledged data is only combined with unacknowledged data, because responses
/// to the others would cost the time that it saves.
fn goes_with(first: &Peer, peer: &Peer) -> bool {
    let (mode, of_first) = (&peer.originator.mode, &first.originator.mode);
    mode.format == Format::HeSu
        && !peer.goes_alone
        && (mode.width_mhz, mode.guard_interval, mode.he_options())
            == (of_first.width_mhz, of_first.guard_interval, of_first.he_options())
        && peer.originator.may_share()
        && peer.originator.is_answered() == first.originator.is_answered()
}
