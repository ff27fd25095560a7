//! Multi-user PPDUs triggered by the access point (802.11ax-2021 clause 26.5.2): a Basic Trigger, the users' PPDUs of
//! equal length, and a Multi-STA Block Ack; with polling, first a trigger for buffer status reports, and QoS Nulls.

use tacit_packet::units::{Duration, Instant};

use super::{Progress, Round, Stage, User};
use crate::packet::PayloadClass;
use crate::wifi::air::{Acknowledged, Frame, Outcome, StationId, TriggerKind, TriggerUser};
use crate::wifi::airtime::AirtimeUse;
use crate::wifi::bitmap::AckBitmap;
use crate::wifi::cell::{Cell, even_shares};
use crate::wifi::functions::FunctionId;
use crate::wifi::mac::block_ack::Recipient;
use crate::wifi::mac::buffer_status::UplinkDemand;
use crate::wifi::mac::exchange::Exchange;
use crate::wifi::mac::originator::Need;
use crate::wifi::mac::plan::PpduPlan;
use crate::wifi::mac::sequence_distance;
use crate::wifi::ofdma::{OfdmaConfig, Triggers};
use crate::wifi::phy::{
    Format, MPDU_DELIMITER_LEN, Mode, MultiUser, MultiUserPpdu, QOS_NULL_LEN, ResourceUnit,
    multi_sta_block_ack_len,
};

/// Bytes of an MPDU with a packet of 1500 bytes, as a subframe of an A-MPDU.
const FULL_MPDU_LEN: u32 = 1_544;

/// Bytes of the length field before the bytes appended for one of several stations. Ours.
const LENGTH_LEN: u32 = 2;

/// Random-access units of a trigger.
#[derive(Clone, Copy, Debug)]
pub(super) struct RandomUnits {
    /// Index of the first one, after the units of triggered clients.
    first: u16,
    count: u16,
    /// Mode of a PPDU in one unit: that of the slowest client.
    mode: Mode,
}

impl RandomUnits {
    /// Their entry in a trigger.
    pub fn as_trigger_user(self) -> TriggerUser {
        TriggerUser {
            station: StationId::AP,
            mode: self.mode,
            unit_index: self.first,
            units: self.count,
            start: 0,
        }
    }
}

impl Cell {
    /// The access that `id` begins at `at`, within `limit` if given, to trigger clients; `None` if none is to be
    /// triggered.
    pub(super) fn begin_uplink(
        &mut self,
        at: Instant,
        id: FunctionId,
        ofdma: &OfdmaConfig,
        limit: Option<Duration>,
    ) -> Option<Round> {
        self.stations[id].trigger_due = false;
        let mut asked = self.whom_to_ask(at, id, ofdma);
        let offered = self.random_units(ofdma);
        // Where rates adapt, the channel may be narrower than usual.
        let width_mhz = asked.first().map(|peer| self.uplink_mode(id, *peer).width_mhz);
        let units = width_mhz.map_or(0, |width_mhz| ResourceUnit::Tones26.count_in(width_mhz));
        asked.truncate(units.saturating_sub(offered));
        if asked.is_empty() && (offered == 0 || ofdma.triggers != Triggers::RandomAccess) {
            return None;
        }
        let first = asked.len() as u16;
        let slowest = self.slowest_client(id, asked.first().copied()).filter(|_| offered > 0);
        let mut modes: Vec<Mode> = asked.iter().map(|peer| self.uplink_mode(id, *peer)).collect();
        modes.extend(slowest.into_iter().flat_map(|(_, mode)| std::iter::repeat_n(mode, offered)));
        let ppdu = self.shared_ppdu(MultiUser::Up, &modes)?;
        let station = &self.stations[id];
        let addressed = asked.iter().copied().chain(slowest.map(|(peer, _)| peer));
        let controls = addressed.map(|peer| station.peers[peer].originator.steady_modes()[1]);
        let control_mode = controls.min_by_key(Mode::rate)?;
        let users = asked.iter().zip(&modes).zip(0..).map(|((peer, mode), unit_index)| {
            let client = station.peers[*peer].id;
            Some(User::new(client, *peer, mode.among_users(&ppdu)?, unit_index))
        });
        let users = users.collect::<Option<Vec<_>>>()?;
        // The first trigger is sent below.
        let stage = Stage::Trigger(TriggerKind::Basic);
        let mut round = Round::new(id, *ofdma, (stage, at), users, control_mode);
        round.random = slowest.and_then(|(_, mode)| {
            Some(RandomUnits { first, count: offered as u16, mode: mode.among_users(&ppdu)? })
        });
        let trigger = control_mode.ppdu_duration(round.trigger_len(TriggerKind::Basic));
        // A Block Ack for all users, whether received or not.
        let window = self.rules.config.block_ack_window;
        let acks = multi_sta_block_ack_len(modes.iter().map(|_| Some(window)));
        let overhead =
            trigger + self.rules.phy.sifs + self.rules.response_after() + control_mode.ppdu_duration(acks);
        round.longest = self.ppdu_limit(id, overhead, limit);
        if round.shortest() > round.longest {
            // What does not fit into the rest of a TXOP needs a new access; what does not fit into a whole one is never sent.
            self.stations[id].trigger_due = limit.is_some();
            return None;
        }
        let polls = ofdma.polls && !round.users.is_empty();
        round.send_trigger(at, if polls { TriggerKind::BufferStatusReport } else { TriggerKind::Basic });
        let station = &mut self.stations[id];
        station.begin_shared_access();
        station.counters.triggers += 1;
        Some(round)
    }
}

impl User {
    /// Some of its PPDU arrived, even if it only said that it has nothing.
    pub(super) fn has_arrived(&self) -> bool {
        self.heard || self.exchange.is_none() && !self.collided
    }

    /// Builds its part, with at most `bytes` bytes, of a PPDU of `count` users to `holder`. `rate` is the noise index of
    /// its mode, if that is not the client's own.
    fn fill(
        &mut self,
        cell: &mut Cell,
        holder: FunctionId,
        (bytes, count, rate): (u32, u16, Option<usize>),
        [start, end]: [Instant; 2],
    ) {
        let lifetime = cell.rules.config.lifetime;
        let Some(unit) = self.mode.resource_unit else { return };
        self.awaited = cell.stations[holder].peers[self.peer].uplink.awaited();
        let client = &mut cell.stations[self.client];
        let back = client.peer_index(holder);
        let originator = &client.peers[back].originator;
        let control = originator.control_mode;
        let part = ([self.mode, control], bytes, rate.unwrap_or_else(|| originator.rate_in(unit)));
        let outgoing = client.triggered(start, lifetime, back, part, &mut cell.holders);
        client.report_drained(&mut cell.outbox.drained);
        self.left = Some(client.peers[back].originator.buffer_status());
        cell.stations[holder].counters.empty_answers += u64::from(outgoing.is_none());
        self.exchange = outgoing.map(|outgoing| {
            let response_len = multi_sta_block_ack_len(std::iter::once(Some(64)));
            let (ends, unit) = ([self.client, holder], (self.unit_index, count));
            Exchange::shared(ends, outgoing, unit, [start, end], [end; 2], response_len).triggered()
        });
    }

    /// The access point knows at `at` what it has left, after its PPDU of this `plan`.
    fn note_left(&self, cell: &mut Cell, holder: FunctionId, at: Instant, plan: PpduPlan) {
        let uplink = &mut cell.stations[holder].peers[self.peer].uplink;
        uplink.answered(at, self.awaited, plan, self.left.unwrap_or_default());
    }
}

impl Round {
    /// The PPDU of the users after the Block Acks with which they respond. `None` if no user has data.
    pub(super) fn behind_block_acks(&self, cell: &mut Cell) -> Option<Self> {
        let span = self.answers;
        // Unacknowledged data is sent once, in single-user PPDUs.
        let may_send = |user: &&User| {
            user.answers && user.exchange.as_ref().is_some_and(|down| cell.stations.peer(down).answered)
        };
        let users: Vec<&User> = self.users.iter().filter(may_send).collect();
        let count = users.len() as u16;
        let behind = users.into_iter().map(|user| {
            let appended = self.ofdma.carried_len(user.appended.len() as u32);
            let before = user.exchange.map_or(0, |down| down.response_len(appended)).next_multiple_of(4);
            let bytes = user.mode.bytes_within(span[1] - span[0]).saturating_sub(before);
            let mut behind = User::new(user.client, user.peer, user.mode, user.unit_index);
            behind.answers = true;
            // The access point chose the mode for its own data.
            let rate = user.exchange.as_ref().map(|down| cell.stations.originator(down).plan().rate);
            behind.fill(cell, self.holder, (bytes, count, rate), span);
            behind
        });
        let users: Vec<User> = behind.collect();
        if users.iter().all(|user| user.exchange.is_none()) {
            // They report this with their Block Acks.
            users.iter().for_each(|user| user.note_left(cell, self.holder, span[1], PpduPlan::default()));
            return None;
        }
        let alone = users.iter().filter_map(|user| {
            let client = &cell.stations[user.client];
            user.exchange.as_ref().map(|exchange| client.peers[exchange.peer()].originator.control_mode)
        });
        let control_mode = alone.min_by_key(Mode::rate)?;
        let round = Self::new(self.holder, self.ofdma, (Stage::Triggered, span[0]), users, control_mode);
        Some(Self { until: span[1], ..round })
    }

    /// Accounts the trigger as acquisition time, because it spares the users their own channel accesses.
    pub(super) fn book_trigger(&self, cell: &mut Cell) {
        cell.charge(self.holder, PayloadClass::Data, AirtimeUse::Acquisition, self.until);
    }

    /// PSDU bytes of a random-access unit: a full MPDU if clients have no other access, otherwise TCP ACKs or a buffer
    /// status report.
    fn random_bytes(&self) -> u32 {
        match self.ofdma.triggers {
            Triggers::RandomAccess => FULL_MPDU_LEN,
            _ => UplinkDemand::UNKNOWN_BYTES,
        }
    }

    /// Shortest duration of the users' PPDUs.
    fn shortest(&self) -> Duration {
        let random = self.random.map(|random| random.mode.ppdu_duration(self.random_bytes()));
        self.null_duration().max(random.unwrap_or_default())
    }

    /// Duration of the users' QoS Nulls.
    pub(super) fn null_duration(&self) -> Duration {
        let psdus = self.users.iter().map(|user| (user.mode, QOS_NULL_LEN + MPDU_DELIMITER_LEN));
        MultiUserPpdu::duration(&psdus)
    }

    /// Planned duration of the users' PPDUs: enough for the most data that the access point knows of or expects for any
    /// user.
    pub(super) fn planned(&self, cell: &Cell) -> Duration {
        let peers = &cell.stations[self.holder].peers;
        let psdus = self.users.iter().map(|user| {
            let expected = peers[user.peer].uplink.expected_bytes();
            (user.mode, expected.max(QOS_NULL_LEN + MPDU_DELIMITER_LEN))
        });
        let random = self.random.map(|random| (random.mode, self.random_bytes()));
        MultiUserPpdu::duration(&psdus.chain(random))
    }

    /// The trigger for reports has ended: users that received it send them.
    pub(super) fn report(&mut self, cell: &mut Cell, next_idle: u64) -> Progress {
        if !self.users.iter().any(|user| user.answers) {
            return self.give_up(cell, next_idle);
        }
        self.stage = Stage::Reports;
        self.since = self.until + cell.rules.phy.sifs;
        self.until = self.since + self.null_duration();
        cell.stations[self.holder].counters.answer_time += self.until - self.since;
        self.book_trigger(cell);
        Progress::GoesOn
    }

    /// The QoS Nulls have ended: the access point knows the queues and triggers their packets; nothing if all are empty
    /// and there is no random-access unit.
    pub(super) fn reports_ended(&mut self, cell: &mut Cell) -> Progress {
        self.book_trigger(cell);
        let mut any = false;
        for user in self.users.iter_mut().filter(|user| user.answers && !user.spoilt) {
            let client = &cell.stations[user.client];
            let left = client.peers[client.peer_index(self.holder)].originator.buffer_status();
            cell.stations[self.holder].peers[user.peer].uplink.reported(self.until, left);
            any |= !left.is_empty();
            let unit = (user.mode, user.unit_index);
            cell.air.record_null([user.client, self.holder], [self.since, self.until], unit, left);
        }
        if !any && self.random.is_none() {
            return self.succeed(cell);
        }
        self.users.retain(|user| {
            user.answers && !cell.stations[self.holder].peers[user.peer].uplink.expects_nothing(self.until)
        });
        self.send_trigger(self.until + cell.rules.phy.sifs, TriggerKind::Basic);
        self.book_trigger(cell);
        Progress::GoesOn
    }

    /// The Basic Trigger has ended: users that received it send data, or report that they have none.
    pub(super) fn respond(&mut self, cell: &mut Cell, next_idle: u64) -> Progress {
        let lasts = self.planned(cell).min(self.longest);
        let start = self.until + cell.rules.phy.sifs;
        let span = [start, start + lasts];
        let count = self.users.len() as u16 + self.random.map_or(0, |random| random.count);
        for user in self.users.iter_mut().filter(|user| user.answers) {
            let bytes = user.mode.bytes_within(lasts);
            user.fill(cell, self.holder, (bytes, count, None), span);
        }
        if let Some(random) = self.random {
            self.fill_random(cell, &random, count, span);
        }
        if !self.users.iter().any(|user| user.answers) {
            return self.give_up(cell, next_idle);
        }
        self.stage = Stage::Triggered;
        [self.since, self.until] = span;
        cell.stations[self.holder].counters.answer_time += lasts;
        cell.charge(self.holder, PayloadClass::Data, AirtimeUse::Acquisition, start);
        self.book_triggered(cell, start);
        Progress::GoesOn
    }

    /// Clients that were not triggered take random-access units; PPDUs in the same unit are lost.
    fn fill_random(&mut self, cell: &mut Cell, random: &RandomUnits, count: u16, span: [Instant; 2]) {
        let (len, asked) = (self.trigger_len(TriggerKind::Basic), self.users.len());
        for peer in 0..cell.stations[self.holder].peers.len() {
            let entry = &mut cell.stations[self.holder].peers[peer];
            let (client, own) = (entry.id, entry.originator.steady_modes()[0]);
            let understands = own.format == Format::HeSu && own.width_mhz == random.mode.width_mhz;
            // Unacknowledged data is sent once, in single-user PPDUs.
            if !understands || !entry.answered || self.users[..asked].iter().any(|user| user.peer == peer) {
                continue;
            }
            let hears = entry.hears(len, self.since) && !self.deaf.contains(&client);
            let station = &mut cell.stations[client];
            let back = station.peer_index(self.holder);
            if !hears || station.peers[back].originator.need() != Need::Data {
                continue;
            }
            let access = station.random_access.as_mut();
            let Some(unit) = access.and_then(|access| access.offered(random.count)) else { continue };
            let mut user = User::new(client, peer, random.mode, random.first + unit);
            (user.answers, user.random) = (true, true);
            let bytes = random.mode.bytes_within(span[1] - span[0]);
            user.fill(cell, self.holder, (bytes, count, None), span);
            self.users.push(user);
        }
        let mut takers = vec![0_u32; usize::from(random.count)];
        let unit_of = |user: &User| usize::from(user.unit_index - random.first);
        self.users[asked..].iter().for_each(|user| takers[unit_of(user)] += 1);
        for user in self.users[asked..].iter_mut().filter(|user| takers[unit_of(user)] > 1) {
            user.collided = true;
            user.exchange = user.exchange.map(|exchange| exchange.hidden_until(span[1]));
        }
    }

    /// Accounts the users' PPDUs, an equal share of the time for each: divided among new data, TCP ACKs and
    /// retransmissions by bytes; acquisition time for users without data.
    pub(super) fn book_triggered(&self, cell: &mut Cell, since: Instant) {
        let mut at = since;
        let time = self.until.saturating_since(since);
        for (user, share) in self.users.iter().zip(even_shares(time, self.users.len())) {
            let end = at + share;
            match &user.exchange {
                None => cell.charge(self.holder, PayloadClass::Data, AirtimeUse::Acquisition, end),
                Some(exchange) => {
                    let plan = *cell.stations.originator(exchange).plan();
                    cell.book_data(user.client, exchange.outgoing.class(), ([at, end], end), plan);
                }
            }
            at = end;
        }
    }

    /// The users' PPDUs have ended: the MPDUs that arrived are acknowledged.
    pub(super) fn triggered_ended(&mut self, cell: &mut Cell, next_idle: u64) -> Progress {
        let end = self.until;
        let mut any = false;
        for user in self.users.iter_mut().filter(|user| user.answers) {
            match &user.exchange {
                Some(exchange) => user.heard = cell.receive(exchange),
                // A user without data sends no frame after its Block Ack.
                None if self.longest == Duration::ZERO || user.collided => {}
                None => {
                    let (ends, unit) = ([user.client, self.holder], (user.mode, user.unit_index));
                    let left = user.left.unwrap_or_default();
                    cell.air.record_null(ends, [self.since, end], unit, left);
                }
            }
            if user.has_arrived() {
                any = true;
                let plan = user.exchange.as_ref().map(|exchange| *cell.stations.originator(exchange).plan());
                user.note_left(cell, self.holder, end, plan.unwrap_or_default());
            }
        }
        if !any {
            return self.give_up(cell, next_idle);
        }
        if !self.users.iter().any(|user| user.heard) {
            // No user had data, so there is nothing to acknowledge.
            self.settle_unheard(cell, next_idle);
            return self.succeed(cell);
        }
        self.acknowledge_all(cell)
    }

    /// The access point sends a Block Ack for the users' PPDUs.
    fn acknowledge_all(&mut self, cell: &mut Cell) -> Progress {
        let begin = self.until + cell.rules.response_after();
        let mut appended = 0;
        for user in self.users.iter_mut().filter(|user| user.heard) {
            user.exchange.iter_mut().for_each(|exchange| exchange.set_response([begin; 2]));
            user.acknowledge(cell, None);
            if !user.appended.is_empty() {
                appended += LENGTH_LEN + user.appended.len() as u32;
            }
        }
        let windows = self.users.iter().filter(|user| user.heard).map(|user| {
            let originator = cell.stations.originator(user.exchange.as_ref()?);
            let window = u32::from(originator.limits().recipient_window());
            (!self.has_all(cell, user)).then_some(window)
        });
        let len = multi_sta_block_ack_len(windows);
        let plain_end = begin + self.control_mode.ppdu_duration(len);
        self.stage = Stage::BlockAck;
        self.since = begin;
        self.until = begin + self.control_mode.ppdu_duration(len + appended);
        for user in self.users.iter_mut().filter(|user| user.heard) {
            user.exchange.iter_mut().for_each(|exchange| exchange.set_response([begin, self.until]));
        }
        cell.charge(self.holder, PayloadClass::Data, AirtimeUse::LinkAck, plain_end);
        cell.charge(self.holder, PayloadClass::Ack, AirtimeUse::CompressedAck, self.until);
        Progress::GoesOn
    }

    /// The Block Ack has ended: each user handles it.
    pub(super) fn block_ack_ended(&mut self, cell: &mut Cell, next_idle: u64) -> Progress {
        let at = self.until;
        if cell.air.is_kept() {
            let frame = Frame::MultiStaBlockAck(self.acknowledged(cell));
            let (mode, outcome) = (self.control_mode, Outcome::Received);
            cell.air.record_broadcast(self.holder, [self.since, at], mode, Duration::ZERO, outcome, frame);
        }
        let mu_edca = self.ofdma.mu_edca.parameters(cell.stations[self.holder].category);
        for user in self.users.iter_mut().filter(|user| user.heard) {
            let settled = user.settle(cell, !user.lost, at, next_idle);
            if let (Some(_), Some((edca, timer))) = (settled, &mu_edca) {
                cell.stations[user.client].contention.restrict(cell.rules.phy, edca, at + *timer);
                cell.stations[self.holder].peers[user.peer].uplink.restricted(at + *timer);
            }
        }
        self.settle_unheard(cell, next_idle);
        self.succeed(cell)
    }

    /// Whether all MPDUs of `user` arrived, which is signalled without a bitmap (All Ack, 802.11ax-2021 clause 26.4.2).
    fn has_all(&self, cell: &Cell, user: &User) -> bool {
        let (Some(exchange), Recipient::Block(recipient)) =
            (&user.exchange, &cell.stations[self.holder].peers[user.peer].recipient)
        else {
            return false;
        };
        let (start, bitmap) = recipient.block_ack();
        let mut sent = cell.stations.originator(exchange).in_flight();
        sent.all(|mpdu| bitmap.contains(sequence_distance(start, mpdu.sequence)))
    }

    /// Contents of the Block Ack.
    fn acknowledged(&self, cell: &Cell) -> Vec<Acknowledged> {
        let heard = self.users.iter().filter(|user| user.heard);
        let each = heard.map(|user| {
            let recipient = &cell.stations[self.holder].peers[user.peer].recipient;
            let (start, bitmap) = match recipient {
                Recipient::Block(recipient) => recipient.block_ack(),
                _ => (0, AckBitmap::new(0)),
            };
            let station = cell.stations.station_of(user.client);
            Acknowledged { station, start, bitmap, appended: user.appended.clone() }
        });
        each.collect()
    }

    /// MPDUs that did not arrive are sent again.
    fn settle_unheard(&mut self, cell: &mut Cell, next_idle: u64) {
        for user in self.users.iter_mut().filter(|user| !user.heard) {
            user.settle(cell, false, self.until, next_idle);
        }
    }
}
