//! Frame exchange sequences: the frames of a channel access or of a part of a TXOP, mostly with one user, and what follows
//! each of them. The medium decides whether other frames overlap them.

use tacit_packet::units::{Duration, Instant};

use super::users::{User, Users};
use super::{Cell, even_shares};
use crate::packet::PayloadClass;
use crate::wifi::air::{Outcome, TriggerKind};
use crate::wifi::airtime::AirtimeUse;
use crate::wifi::functions::FunctionId;
use crate::wifi::mac::exchange::Exchange;
use crate::wifi::mac::peer::Peer;
use crate::wifi::mac::plan::{Outgoing, PpduPlan};
use crate::wifi::mac::protection::{Direction, Handshake, Step};
use crate::wifi::ofdma::{MuAcknowledgment, OfdmaConfig};
use crate::wifi::phy::{CTS_LEN, Mode, RTS_LEN, trigger_len};

/// A frame of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SequenceFrame {
    /// A frame of the handshake.
    Protection(Step),
    /// The PPDU of the initiator to its users.
    Data,
    /// A trigger of this kind.
    Trigger(TriggerKind),
    /// The Block Ack Request to this user of a multi-user PPDU.
    BlockAckRequest(usize),
    /// The acknowledgment of this user alone.
    Response(usize),
    /// Those of several users, in HE TB PPDUs.
    TriggeredResponses,
    /// QoS Nulls of the users with their buffer status.
    BufferStatusReports,
    /// Data of the users in HE TB PPDUs.
    TriggeredData,
    /// The Multi-STA Block Ack for it.
    MultiStaBlockAck,
    CfEnd,
}

/// Frames that follow each other, the first of which began an access or a part of a TXOP.
#[derive(Clone, Debug)]
pub(crate) struct Sequence {
    /// The function that sends data to the users or triggers them. It is charged for the airtime.
    pub(super) initiator: FunctionId,
    pub(super) class: PayloadClass,
    /// The frame on the air, or due.
    pub frame: SequenceFrame,
    /// Start and end of that frame.
    pub(super) since: Instant,
    pub(super) until: Instant,
    pub(super) users: Users,
    /// Present if the frames are those for several users, even if only one has data.
    pub(super) multi_user: Option<Box<MultiUser>>,
}

/// The part of a sequence that only those for several users have.
#[derive(Clone, Debug)]
pub(crate) struct MultiUser {
    pub ofdma: OfdmaConfig,
    /// Mode of triggers and of frames to a single user.
    pub control_mode: Mode,
    /// Modes of the users' responses and triggered PPDUs, by resource unit.
    pub modes: Vec<Mode>,
    /// Start and end of simultaneous responses to the initiator's data.
    pub responses: [Instant; 2],
    /// End of the acknowledgments without compressed ACKs.
    pub plain_end: Instant,
    /// Units of its triggers for random access.
    pub random: Option<RandomUnits>,
    /// Clients at which another frame overlapped a trigger with such units.
    pub missed_trigger: Vec<FunctionId>,
    /// Longest duration of the users' PPDUs.
    pub longest: Duration,
    /// Data of users after their Block Acks.
    pub cascade: Option<Box<Sequence>>,
}

impl MultiUser {
    /// Mode of the response or triggered PPDU of `user`.
    pub fn mode(&self, user: &User) -> Mode {
        self.modes[usize::from(user.unit_index)]
    }
}

/// Random-access units of a trigger.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RandomUnits {
    /// Index of the first one, after the units of triggered clients.
    pub first: u16,
    pub count: u16,
    /// Mode of a PPDU in one unit: that of the slowest client.
    pub mode: Mode,
}

impl User {
    /// The sender of its data handles the acknowledgment, or its absence noticed at `noticed_at`.
    fn settle(&mut self, cell: &mut Cell, noticed_at: Instant, next_idle: u64) {
        let Some(exchange) = &self.exchange else { return };
        self.settled = true;
        let is_triggered = exchange.is_triggered();
        if !if is_triggered { self.data_arrived && !self.lost } else { self.responds } {
            if self.adapts && !self.data_arrived {
                cell.report_triggered_rate(exchange, self.peer, 0);
            }
            cell.fail(exchange, noticed_at, next_idle);
            return;
        }
        let appended = self.appended.len() as u32;
        let settled = cell.settle_response(exchange, self.lost, &mut self.appended, next_idle);
        self.appended.clear();
        if self.lost {
            return;
        }
        if is_triggered {
            cell.apply_mu_edca(exchange, self.peer, noticed_at);
        }
        if self.adapts {
            cell.report_triggered_rate(exchange, self.peer, settled.mpdus);
        }
        if exchange.handshake != Handshake::Shared {
            return;
        }
        let station = &mut cell.stations[exchange.from];
        station.counters.count_room(self.room, appended, self.holds_more);
        let Peer { room, uplink, .. } = &mut station.peers[self.peer];
        room.answered(appended, self.holds_more);
        room.delivered(settled.mpdus);
        let is_data = exchange.outgoing.class() == PayloadClass::Data;
        if appended > 0 && is_data {
            uplink.appended_acks_arrived(noticed_at);
        }
        if let Some(queue) = self.queue {
            uplink.reported_with_block_ack(noticed_at, queue);
        }
        if is_data {
            uplink.sent(settled.mpdus);
        }
    }
}

impl Sequence {
    /// The sequence of `exchange`.
    #[inline]
    pub fn single_user(exchange: Exchange) -> Self {
        let frame = exchange.handshake.first().map_or(SequenceFrame::Data, SequenceFrame::Protection);
        Self {
            initiator: exchange.from,
            class: exchange.outgoing.class(),
            frame,
            since: exchange.begins,
            until: if frame == SequenceFrame::Data { exchange.end } else { exchange.first_end },
            users: Users::One(User {
                exchange: Some(exchange),
                ..User::new(exchange.to, exchange.peer(), 0)
            }),
            multi_user: None,
        }
    }

    /// The exchanges of its users that have data.
    pub(super) fn exchanges(&self) -> impl Iterator<Item = &Exchange> {
        self.users.iter().filter_map(|user| user.exchange.as_ref())
    }

    /// The exchange of its only user; `None` if its frames are those for several.
    pub fn only_exchange(&self) -> Option<&Exchange> {
        match &self.users {
            Users::One(user) => user.exchange.as_ref(),
            Users::Several(_) => None,
        }
    }

    /// Whether its frames are those for several users.
    pub fn is_multi_user(&self) -> bool {
        self.multi_user.is_some()
    }

    /// True if it is an access of `function`, or carries its data.
    pub fn engages(&self, function: FunctionId) -> bool {
        let cascade = self.multi_user.as_ref().and_then(|multi_user| multi_user.cascade.as_ref());
        self.initiator == function
            || self.exchanges().any(|exchange| exchange.from == function)
            || cascade.is_some_and(|cascade| cascade.engages(function))
    }

    /// The TXOP holder.
    pub fn holder(&self) -> FunctionId {
        self.only_exchange().map_or(self.initiator, Exchange::holder)
    }

    /// The function whose airtime it is, and its class.
    pub fn account(&self) -> (FunctionId, PayloadClass) {
        (self.initiator, self.class)
    }

    /// Whether the initiator sends its frame, and not the users.
    fn is_from_initiator(&self) -> bool {
        use SequenceFrame::{BufferStatusReports, Protection, Response, TriggeredData, TriggeredResponses};
        let is_from_users = matches!(
            self.frame,
            Protection(Step::Cts) | Response(_) | TriggeredResponses | BufferStatusReports | TriggeredData
        );
        !is_from_users
    }

    /// Functions that send its frame.
    pub fn transmitters(&self) -> impl Iterator<Item = FunctionId> {
        let is_from_initiator = self.is_from_initiator();
        let sends = move |(index, user): &(usize, &User)| match self.frame {
            SequenceFrame::Protection(_) => true,
            SequenceFrame::Response(one) => one == *index,
            _ => user.responds,
        };
        let holder = is_from_initiator.then(|| match self.frame {
            SequenceFrame::CfEnd => self.holder(),
            _ => self.initiator,
        });
        let users = self.users.iter().enumerate().filter(move |user| !is_from_initiator && sends(user));
        holder.into_iter().chain(users.map(|(_, user)| user.client))
    }

    /// Functions that take part in it while its frame is due or on the air: after a CTS, a grant or a trigger the users do too.
    pub fn participants(&self) -> impl Iterator<Item = FunctionId> {
        let is_agreed =
            |exchange: &Exchange| matches!(exchange.handshake, Handshake::Rts | Handshake::Granted);
        let waits = move |user: &&User| match self.frame {
            SequenceFrame::Data => user.exchange.as_ref().is_some_and(is_agreed),
            SequenceFrame::MultiStaBlockAck => user.responds,
            _ => false,
        };
        let initiator = Some(self.initiator).filter(|_| self.frame != SequenceFrame::CfEnd);
        let waiting = self.users.iter().filter(waits).map(|user| user.client);
        initiator.into_iter().chain(waiting).chain(self.transmitters())
    }

    /// The function whose NAV its frame does not set, if there is one.
    pub fn receiver(&self) -> Option<FunctionId> {
        let exchange = self.only_exchange()?;
        Some(match self.frame {
            SequenceFrame::Protection(Step::Rts) | SequenceFrame::Data => exchange.to,
            _ => exchange.from,
        })
    }

    /// Until when stations that received its frame defer; `None` for a CF-End, after which they do not.
    pub fn reserves_until(&self, cell: &Cell) -> Option<Instant> {
        let end = self.until;
        let planned = || self.exchanges().map(Exchange::reserved_until).max().unwrap_or(end);
        Some(match (self.frame, &self.multi_user) {
            (SequenceFrame::CfEnd, _) => return None,
            (SequenceFrame::Protection(Step::Rts), _) => end + cell.rts_reserves(self.only_exchange()?),
            (SequenceFrame::Data, _) | (_, None) => planned(),
            (SequenceFrame::Trigger(TriggerKind::MuBar), Some(multi_user)) => multi_user.responses[1],
            (SequenceFrame::Trigger(_), Some(_)) => end + cell.rules.phy.sifs + self.triggered_duration(cell),
            (SequenceFrame::BlockAckRequest(index), _) => self.users[index].response_after(cell, end)?[1],
            _ => end,
        })
    }

    /// The two ends of the TXOP, if its frame reserves the rest of it.
    pub fn txop_ends(&self) -> Option<[FunctionId; 2]> {
        let exchange = self.only_exchange().filter(|exchange| exchange.reserves_txop)?;
        (self.frame != SequenceFrame::Protection(Step::Rts)).then_some([exchange.from, exchange.to])
    }

    // --- Accounts ---------------------------------------------------------------------------

    /// Use of its frame, and of the gap before it. For a PPDU with several uses, it is the one with the largest share.
    pub fn present_use(&self, cell: &Cell) -> AirtimeUse {
        use SequenceFrame as Frame;
        match self.frame {
            Frame::Protection(_) | Frame::CfEnd => AirtimeUse::Protection,
            Frame::Data | Frame::TriggeredData => {
                self.data_plan(cell).map_or(AirtimeUse::LinkAck, |plan| plan.main_use())
            }
            Frame::Trigger(TriggerKind::Basic | TriggerKind::BufferStatusReport)
            | Frame::BufferStatusReports => AirtimeUse::Acquisition,
            _ => AirtimeUse::LinkAck,
        }
    }

    /// The data of all users together; `None` if they have none.
    // Called once an exchange: left to the compiler, a run with single packets costs half a percent more.
    #[inline(always)]
    fn data_plan(&self, cell: &Cell) -> Option<PpduPlan> {
        match self.only_exchange() {
            Some(exchange) => plan(cell, exchange),
            None => self.exchanges().filter_map(|exchange| plan(cell, exchange)).reduce(beside),
        }
    }

    /// Accounts its frame until its end, or until before that, and the gap before it.
    pub fn book(&self, cell: &mut Cell, until: Instant) {
        use SequenceFrame as Frame;
        let (account, class) = self.account();
        match self.frame {
            Frame::Protection(_) => cell.charge(account, class, AirtimeUse::Protection, until),
            Frame::CfEnd => cell.charge(self.holder(), class, AirtimeUse::Protection, until),
            Frame::Data => {
                let continues = |exchange: &Exchange| exchange.handshake.continues();
                let gap_use = match self.only_exchange().is_none_or(continues) {
                    true => AirtimeUse::Acquisition,
                    false => AirtimeUse::Protection,
                };
                if self.since > cell.accounts.booked_until() {
                    cell.charge(account, class, gap_use, self.since.min(until));
                }
                match self.data_plan(cell) {
                    Some(plan) => cell.book_data(account, class, ([self.since, self.until], until), plan),
                    None => cell.charge(account, class, AirtimeUse::LinkAck, until),
                }
            }
            Frame::Trigger(TriggerKind::MuBar) | Frame::BlockAckRequest(_) => {
                cell.charge(account, class, AirtimeUse::LinkAck, until);
            }
            // Triggers spare the users their own channel accesses.
            Frame::Trigger(_) | Frame::BufferStatusReports => {
                cell.charge(account, class, AirtimeUse::Acquisition, until);
            }
            Frame::Response(index) => {
                let Some(exchange) = &self.users[index].exchange else { return };
                let plain_end = exchange.plain_response_end(cell.stations.control_mode(exchange));
                cell.charge(account, class, AirtimeUse::LinkAck, until.min(plain_end));
                cell.charge(exchange.to, PayloadClass::Ack, AirtimeUse::CompressedAck, until);
            }
            Frame::TriggeredResponses => self.book_triggered_responses(cell, until),
            Frame::TriggeredData => {
                cell.charge(account, class, AirtimeUse::Acquisition, self.since.min(until));
                self.book_triggered_data(cell, self.since, until);
            }
            Frame::MultiStaBlockAck => {
                let plain_end = self.multi_user().plain_end;
                cell.charge(account, class, AirtimeUse::LinkAck, until.min(plain_end));
                cell.charge(account, PayloadClass::Ack, AirtimeUse::CompressedAck, until);
            }
        }
    }

    /// Accounts simultaneous responses: the time beyond plain Block Acks is charged to the users that appended bytes.
    fn book_triggered_responses(&self, cell: &mut Cell, until: Instant) {
        let MultiUser { plain_end, cascade, .. } = self.multi_user();
        cell.charge(self.initiator, self.class, AirtimeUse::LinkAck, until.min(*plain_end));
        if let Some(cascade) = cascade {
            cascade.book_triggered_data(cell, *plain_end, until);
            return;
        }
        let spent = cell.accounts.book(AirtimeUse::CompressedAck, until);
        for (user, share) in self.users.iter().zip(even_shares(spent, self.users.len())) {
            cell.stations[user.client].airtime.spend(PayloadClass::Ack, AirtimeUse::CompressedAck, share);
        }
    }

    /// Accounts the users' PPDUs from `since` to `until`, an equal share of the time for each: divided among new data, TCP ACKs
    /// and retransmissions by bytes; acquisition time for users without data.
    fn book_triggered_data(&self, cell: &mut Cell, since: Instant, until: Instant) {
        let mut at = since;
        let time = self.until.saturating_since(since);
        for (user, share) in self.users.iter().zip(even_shares(time, self.users.len())) {
            let end = at + share;
            match &user.exchange {
                None => {
                    let account = self.initiator;
                    cell.charge(account, PayloadClass::Data, AirtimeUse::Acquisition, end.min(until));
                }
                Some(exchange) => {
                    let plan = *cell.stations.originator(exchange).plan();
                    cell.book_data(user.client, exchange.outgoing.class(), ([at, end], end.min(until)), plan);
                }
            }
            at = end;
        }
    }

    // --- Frames -----------------------------------------------------------------------------

    /// Sends `frame` from `at` to `until`; returns `at`.
    pub(super) fn send(&mut self, frame: SequenceFrame, at: Instant, until: Instant) -> Option<Instant> {
        (self.frame, self.since, self.until) = (frame, at, until);
        self.users.iter_mut().for_each(|user| user.overlapped = false);
        if let Some(multi_user) = &mut self.multi_user {
            multi_user.missed_trigger.clear();
        }
        Some(at)
    }

    /// Its frame begins; returns when it ends.
    pub fn begin_frame(&self, cell: &mut Cell) -> Instant {
        match (self.frame, self.only_exchange()) {
            (SequenceFrame::Protection(step @ (Step::Rts | Step::CtsToSelf)), Some(exchange)) => {
                let calls = cell.stations.originator(exchange).gate.padding.is_some();
                cell.stations[exchange.from].count_handshake(step, calls);
            }
            (SequenceFrame::CfEnd, Some(exchange)) => cell.send_cf_end(exchange, [self.since, self.until]),
            _ => {}
        }
        self.until
    }

    /// Frames of other sequences overlapped its frame: each receiver hears it alone from `clear_from` on.
    pub fn overlap(&mut self, cell: &mut Cell, clear_from: &dyn Fn(FunctionId) -> Instant) {
        use SequenceFrame as Frame;
        let (frame, since, until, initiator) = (self.frame, self.since, self.until, self.initiator);
        let is_to_users =
            self.is_from_initiator() && !matches!(frame, Frame::Protection(Step::CtsToSelf) | Frame::CfEnd);
        let mut any = false;
        for (index, user) in self.users.iter_mut().enumerate() {
            let clear_from = clear_from(if is_to_users { user.client } else { initiator });
            user.overlapped = clear_from > since;
            let is_concerned = match frame {
                Frame::BlockAckRequest(one) | Frame::Response(one) => one == index,
                Frame::MultiStaBlockAck => user.data_arrived,
                Frame::TriggeredResponses | Frame::BufferStatusReports | Frame::TriggeredData => {
                    user.responds
                }
                _ => true,
            };
            if !user.overlapped || !is_concerned {
                continue;
            }
            any = true;
            match frame {
                Frame::Data | Frame::TriggeredData => {
                    user.exchange.iter_mut().for_each(|exchange| exchange.clear_from = clear_from);
                    user.collided |= clear_from == until;
                }
                Frame::Response(_) | Frame::TriggeredResponses | Frame::MultiStaBlockAck => user.lost = true,
                // Its receiver acts as if it had not been sent.
                _ => {}
            }
        }
        let Some(multi_user) = &mut self.multi_user else { return };
        if let Some(cascade) = &mut multi_user.cascade {
            cascade.overlap(cell, clear_from);
        }
        if multi_user.random.is_some() {
            let clients = cell.stations[initiator].peers.iter().map(|peer| peer.id);
            multi_user.missed_trigger = clients.filter(|client| clear_from(*client) > since).collect();
        }
        cell.stations[initiator].counters.collided_ppdus += u64::from(any);
    }

    /// Its frame has ended. Its receiver is `ready` to respond if it takes part in no other sequence, and no NAV forbids it.
    /// `next_idle` is the idle period that would now begin at the holder. Returns when the next frame begins: if this sequence is
    /// over, the first frame of the next one in the TXOP.
    pub fn frame_ended(&mut self, cell: &mut Cell, ready: bool, next_idle: u64) -> Option<Instant> {
        match self.frame {
            SequenceFrame::Protection(step) => self.protection_ended(cell, step, ready, next_idle),
            SequenceFrame::Data => self.data_ended(cell, ready, next_idle),
            SequenceFrame::Trigger(kind) => self.trigger_ended(cell, kind, next_idle),
            SequenceFrame::BlockAckRequest(index) => self.block_ack_request_ended(cell, index, next_idle),
            SequenceFrame::Response(index) => self.response_ended(cell, index, next_idle),
            SequenceFrame::TriggeredResponses => self.settle_all(cell, next_idle),
            SequenceFrame::BufferStatusReports => self.reports_ended(cell, next_idle),
            SequenceFrame::TriggeredData => self.triggered_data_ended(cell, next_idle),
            SequenceFrame::MultiStaBlockAck => self.multi_sta_block_ack_ended(cell, next_idle),
            SequenceFrame::CfEnd => None,
        }
    }

    /// A handshake frame ended.
    fn protection_ended(
        &mut self,
        cell: &mut Cell,
        step: Step,
        ready: bool,
        next_idle: u64,
    ) -> Option<Instant> {
        let Users::One(User { exchange: Some(exchange), overlapped, .. }) = &self.users else { return None };
        let clear = !overlapped;
        let understood = match step {
            Step::CtsToSelf => true,
            Step::Rts => {
                let calls = cell.stations.originator(exchange).gate.padding.is_some();
                let len = if calls { trigger_len(TriggerKind::MuRts, 1, 0) } else { RTS_LEN };
                clear && cell.decodes_control(exchange, len, exchange.begins, Direction::Forward)
            }
            Step::Cts => {
                clear && cell.decodes_control(exchange, CTS_LEN, exchange.first_end, Direction::Back)
            }
        };
        let outcome = match (clear, understood) {
            (true, true) => Outcome::Received,
            (true, false) => Outcome::Errored,
            (false, _) => Outcome::Collided,
        };
        cell.air.record_handshake(exchange, cell.stations.originator(exchange), &cell.rules, step, outcome);
        let (start, end, sifs) = (exchange.start, exchange.end, cell.rules.phy.sifs);
        match step {
            Step::Rts if understood && ready => {
                self.send(SequenceFrame::Protection(Step::Cts), self.until + sifs, start - sifs)
            }
            Step::Cts | Step::CtsToSelf if understood => {
                cell.handshake_done(exchange);
                self.send(SequenceFrame::Data, start, end)
            }
            Step::Rts | Step::Cts | Step::CtsToSelf => {
                cell.fail_protection(exchange, self.until, next_idle);
                None
            }
        }
    }

    /// The PPDU has ended: the users receive the MPDUs that arrived, and acknowledge them.
    fn data_ended(&mut self, cell: &mut Cell, ready: bool, next_idle: u64) -> Option<Instant> {
        let is_alone = !self.is_multi_user();
        // The request may be an MPDU in each A-MPDU.
        let request_inside = self.request_inside_len();
        for index in 0..self.users.len() {
            let user = &mut self.users[index];
            let Some(exchange) = &user.exchange else { continue };
            if is_alone && (user.collided || !ready) {
                cell.collided(exchange);
            } else {
                user.data_arrived = cell.receive(exchange);
            }
            if let Some(len) = request_inside {
                self.receive_request_inside(cell, index, len);
            }
        }
        let phy = cell.rules.phy;
        match self.acknowledgment() {
            None => self.settle_no_ack(cell, next_idle),
            Some(MuAcknowledgment::BlockAckRequests) if self.users[0].data_arrived => self.respond(cell, 0),
            Some(MuAcknowledgment::BlockAckRequests) if is_alone => self.give_up(cell, next_idle),
            Some(MuAcknowledgment::BlockAckRequests) => {
                self.request_block_ack(cell, 1, self.until + phy.pifs(), next_idle)
            }
            Some(MuAcknowledgment::MuBar) => self.send_trigger(self.until + phy.sifs, TriggerKind::MuBar),
            Some(
                MuAcknowledgment::AggregatedMuBar
                | MuAcknowledgment::Cascade
                | MuAcknowledgment::TriggeredResponseScheduling,
            ) => self.requests_ended(cell, next_idle),
        }
    }

    /// How its users acknowledge its data; `None` if they do not. A single one responds at once, like the first of several that are
    /// requested one by one.
    fn acknowledgment(&self) -> Option<MuAcknowledgment> {
        if self.exchanges().any(Exchange::is_no_ack) {
            return None;
        }
        let multi_user = self.multi_user.as_ref();
        Some(
            multi_user
                .map_or(MuAcknowledgment::BlockAckRequests, |multi_user| multi_user.ofdma.acknowledgment),
        )
    }

    /// The user with this index responds alone to the frame that has ended.
    pub(super) fn respond(&mut self, cell: &mut Cell, index: usize) -> Option<Instant> {
        let user = &mut self.users[index];
        user.responds = true;
        cell.acknowledge(user, None);
        let Exchange { response_at, response_end, .. } = *user.exchange.as_ref()?;
        self.send(SequenceFrame::Response(index), response_at, response_end)
    }

    /// A user has responded alone: the next one gets a Block Ack Request, or all are settled.
    fn response_ended(&mut self, cell: &mut Cell, index: usize, next_idle: u64) -> Option<Instant> {
        self.users[index].settle(cell, self.until, next_idle);
        if !self.is_multi_user() {
            return self.end(cell, !self.users[0].lost, next_idle);
        }
        self.request_block_ack(cell, index + 1, self.until + cell.rules.phy.sifs, next_idle)
    }

    // --- Outcome ----------------------------------------------------------------------------

    /// Settles those of its users that are not settled and for which `is_due` is true.
    pub(super) fn settle_users(&mut self, cell: &mut Cell, next_idle: u64, is_due: impl Fn(&User) -> bool) {
        for user in self.users.iter_mut().filter(|user| !user.settled && is_due(user)) {
            user.settle(cell, self.until, next_idle);
        }
    }

    /// The last response has ended: settles each user, and the access.
    pub(super) fn settle_all(&mut self, cell: &mut Cell, next_idle: u64) -> Option<Instant> {
        self.settle_users(cell, next_idle, |_| true);
        if self.users.iter().any(|user| user.responds && !user.lost) {
            return self.succeed(cell, next_idle);
        }
        if self.is_multi_user() {
            cell.stations[self.initiator].contention.failed(self.until, next_idle);
        }
        self.end(cell, false, next_idle)
    }

    /// No acknowledgment follows.
    fn settle_no_ack(&mut self, cell: &mut Cell, next_idle: u64) -> Option<Instant> {
        for exchange in self.exchanges() {
            if self.is_multi_user() {
                cell.note_downlink(exchange);
            }
            cell.settle_no_ack(exchange);
        }
        self.end(cell, true, next_idle)
    }

    /// No response to the frame that has ended arrives. The initiator does not wait to the end of the time in the Duration field,
    /// which bystanders respect.
    pub(super) fn give_up(&mut self, cell: &mut Cell, next_idle: u64) -> Option<Instant> {
        let control_mode = match (&self.multi_user, self.only_exchange()) {
            (Some(multi_user), _) => &multi_user.control_mode,
            (None, exchange) => cell.stations.control_mode(exchange?),
        };
        let noticed_at = self.until + cell.rules.ack_timeout(control_mode);
        for user in self.users.iter_mut() {
            let is_triggered = user.exchange.as_ref().is_some_and(Exchange::is_triggered);
            user.settle(cell, if is_triggered { self.until } else { noticed_at }, next_idle);
        }
        if self.is_multi_user() {
            cell.stations[self.initiator].contention.failed(noticed_at, next_idle);
            return self.end(cell, false, next_idle);
        }
        if self.only_exchange()?.handshake == Handshake::Granted {
            return self.recover_from_lost_reverse(cell, next_idle);
        }
        None
    }

    /// The access has ended in success.
    pub(super) fn succeed(&mut self, cell: &mut Cell, next_idle: u64) -> Option<Instant> {
        if self.is_multi_user() {
            cell.stations[self.initiator].contention.succeeded();
        }
        self.end(cell, true, next_idle)
    }

    /// All users are settled; one or more responses `arrived`. Returns when the next sequence of the TXOP begins.
    fn end(&mut self, cell: &mut Cell, arrived: bool, next_idle: u64) -> Option<Instant> {
        if self.is_multi_user() {
            return self.end_multi_user(cell, arrived, next_idle);
        }
        if cell.rules.has_triggers {
            cell.note_single_user(self.only_exchange()?);
        }
        if cell.rules.may_continue_txop { self.continue_txop(cell, !arrived) } else { None }
    }
}

impl Cell {
    /// The sequence with which `id` begins its channel access at `at`; `None` if all its packets have expired.
    pub fn begin_access(&mut self, at: Instant, id: FunctionId) -> Option<Sequence> {
        if self.may_serve_several(id)
            && let Some(sequence) = self.begin_multi_user(at, id, None)
        {
            return Some(sequence);
        }
        let outgoing = self.stations[id].begin_access(at, &self.rules, &mut self.holders);
        self.stations[id].report_drained(&mut self.outbox.drained);
        Some(Sequence::single_user(self.stations[id].exchange(&self.rules, None, at, outgoing?)))
    }

    /// For how long an RTS reserves the medium if no data follows: stations that heard it may then reset their NAV
    /// (802.11-2020 clause 10.3.2.4).
    pub fn rts_reserves(&self, exchange: &Exchange) -> Duration {
        let phy = self.rules.phy;
        let cts = self.handshake_mode(exchange);
        phy.sifs * 2 + cts.ppdu_duration(CTS_LEN) + cts.rx_start_delay() + phy.slot * 2
    }

    /// The PPDU of `exchange` collided, or its receiver is not ready for it.
    fn collided(&mut self, exchange: &Exchange) {
        self.stations[exchange.from].counters.collided_ppdus += 1;
        let originator = self.stations.originator(exchange);
        self.air.record_collided_data(exchange, originator, &mut self.holders);
    }
}

/// The data of `exchange`, if it is that.
fn plan(cell: &Cell, exchange: &Exchange) -> Option<PpduPlan> {
    let is_data = matches!(exchange.outgoing, Outgoing::Data { .. });
    is_data.then(|| *cell.stations.originator(exchange).plan())
}

fn beside(mut all: PpduPlan, plan: PpduPlan) -> PpduPlan {
    all.put_beside(&plan);
    all
}
