//! Multi-user PPDUs triggered by the access point (802.11ax-2021 clause 26.5.2): a Basic Trigger, the users' PPDUs of
//! equal length, and a Multi-STA Block Ack; with polling, first a trigger for buffer status reports, and QoS Nulls.

use tacit_packet::units::{Duration, Instant};

use super::{Sequence, SequenceFrame, User, Users};
use crate::wifi::air::{Acknowledged, Frame, Outcome, StationId, TriggerKind, TriggerUser};
use crate::wifi::bitmap::AckBitmap;
use crate::wifi::cell::Cell;
use crate::wifi::cell::sequence::{MultiUser, RandomUnits};
use crate::wifi::functions::FunctionId;
use crate::wifi::mac::aggregation::AggregationLimits;
use crate::wifi::mac::block_ack::Recipient;
use crate::wifi::mac::buffer_status::UplinkDemand;
use crate::wifi::mac::exchange::Exchange;
use crate::wifi::mac::originator::{Need, UnitPart};
use crate::wifi::mac::plan::PpduPlan;
use crate::wifi::mac::protection::Handshake;
use crate::wifi::mac::sequence_distance;
use crate::wifi::ofdma::{OfdmaConfig, Triggers};
use crate::wifi::phy::{
    Format, MPDU_DELIMITER_LEN, Mode, MultiUser as Way, MultiUserPpdu, QOS_NULL_LEN, ResourceUnit,
    multi_sta_block_ack_len,
};

/// Bytes of an MPDU with a packet of 1500 bytes, as a subframe of an A-MPDU.
const FULL_MPDU_LEN: u32 = 1_544;

/// Bytes of the length field before the bytes appended for one of several stations. Ours.
const LENGTH_LEN: u32 = 2;

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
    ) -> Option<Sequence> {
        self.stations[id].trigger_due = false;
        let mut triggered = self.clients_to_trigger(at, id, ofdma);
        let offered = self.random_units(ofdma);
        // Where rates adapt, the channel may be narrower than usual.
        let width_mhz = triggered.first().map(|peer| self.uplink_mode(id, *peer).width_mhz);
        let units = width_mhz.map_or(0, |width_mhz| ResourceUnit::Tones26.count_in(width_mhz));
        triggered.truncate(units.saturating_sub(offered));
        if triggered.is_empty() && (offered == 0 || ofdma.triggers != Triggers::RandomAccess) {
            return None;
        }
        let first = triggered.len() as u16;
        let slowest = self.slowest_client(id, triggered.first().copied()).filter(|_| offered > 0);
        let mut modes: Vec<Mode> = triggered.iter().map(|peer| self.choose_uplink(at, id, *peer)).collect();
        modes.extend(slowest.into_iter().flat_map(|(_, mode)| std::iter::repeat_n(mode, offered)));
        let ppdu = self.shared_ppdu(Way::Up, &modes)?;
        let station = &self.stations[id];
        let addressed = triggered.iter().copied().chain(slowest.map(|(peer, _)| peer));
        let controls = addressed.map(|peer| station.peers[peer].originator.steady_modes()[1]);
        let control_mode = controls.min_by_key(Mode::rate)?;
        let modes = modes.iter().map(|mode| mode.among_users(&ppdu)).collect::<Option<Vec<Mode>>>()?;
        let users = triggered.iter().zip(0..);
        let users = users.map(|(peer, unit_index)| User::new(station.peers[*peer].id, *peer, unit_index));
        let random = modes.get(usize::from(first)).map(|mode| RandomUnits {
            first,
            count: offered as u16,
            mode: *mode,
        });
        // A Block Ack for all users, whether received or not.
        let window = self.rules.config.block_ack_window;
        let acks = multi_sta_block_ack_len(modes.iter().map(|_| Some(window)));
        // The first trigger is sent below.
        let frame = SequenceFrame::Trigger(TriggerKind::Basic);
        let mut sequence = Sequence::several(id, *ofdma, (frame, at), users.collect(), (control_mode, modes));
        sequence.multi_user_mut().random = random;
        let trigger = control_mode.ppdu_duration(sequence.trigger_len(TriggerKind::Basic));
        let overhead =
            trigger + self.rules.phy.sifs + self.rules.response_after() + control_mode.ppdu_duration(acks);
        let longest = self.ppdu_limit(id, overhead, limit);
        sequence.multi_user_mut().longest = longest;
        if sequence.shortest() > longest {
            // What does not fit into the rest of a TXOP needs a new access; what does not fit into a whole one is never sent.
            self.stations[id].trigger_due = limit.is_some();
            return None;
        }
        let polls = ofdma.polls && !sequence.users.is_empty();
        sequence.send_trigger(at, if polls { TriggerKind::BufferStatusReport } else { TriggerKind::Basic });
        let station = &mut self.stations[id];
        station.begin_multi_user_access();
        station.counters.triggers += 1;
        Some(sequence)
    }
}

impl Cell {
    /// The access point acknowledged the triggered data of `exchange` at `at`: for a time the sender, its `peer`, uses the MU EDCA
    /// parameters.
    pub fn apply_mu_edca(&mut self, exchange: &Exchange, peer: usize, at: Instant) {
        let access_point = &mut self.stations[exchange.to];
        let mu_edca = self.rules.config.ofdma.map(|ofdma| ofdma.mu_edca);
        let Some((edca, timer)) = mu_edca.and_then(|mu_edca| mu_edca.parameters(access_point.category))
        else {
            return;
        };
        access_point.peers[peer].uplink.restricted(at + timer);
        self.stations[exchange.from].contention.restrict(self.rules.phy, &edca, at + timer);
    }

    /// Reports to the access point's rate control for `peer` that `delivered` MPDUs of the triggered PPDU of `exchange` arrived.
    pub fn report_triggered_rate(&mut self, exchange: &Exchange, peer: usize, delivered: u32) {
        let plan = *self.stations.originator(exchange).plan();
        if let Some(rates) = &mut self.stations[exchange.to].peers[peer].triggered_rates {
            rates.report(&plan, delivered);
        }
    }
}

impl User {
    /// Some of its PPDU arrived, even if it only said that it has nothing.
    pub(super) fn has_arrived(&self) -> bool {
        self.data_arrived || self.exchange.is_none() && !self.collided
    }

    /// Builds its part in `mode`, with at most `bytes` bytes, of a PPDU of `count` users to `holder`. `rate` has the limits and the noise
    /// index of the mode, if it is not the client's own.
    fn fill(
        &mut self,
        cell: &mut Cell,
        holder: FunctionId,
        mode: Mode,
        (bytes, count, rate): (u32, u16, Option<(Option<AggregationLimits>, usize)>),
        [start, end]: [Instant; 2],
    ) {
        let lifetime = cell.rules.config.lifetime;
        let Some(unit) = mode.resource_unit else { return };
        self.awaited = cell.stations[holder].peers[self.peer].uplink.awaited();
        let client = &mut cell.stations[self.client];
        let back = client.peer_index(holder);
        let originator = &client.peers[back].originator;
        let control = originator.control_mode;
        let (limits, rate) = rate.unwrap_or_else(|| (None, originator.rate_in(unit)));
        let part = UnitPart { modes: [mode, control], bytes, rate, limits };
        let outgoing = client.triggered(start, lifetime, back, part, &mut cell.holders);
        client.report_drained(&mut cell.outbox.drained);
        self.queue = Some(client.peers[back].originator.buffer_status());
        cell.stations[holder].counters.empty_answers += u64::from(outgoing.is_none());
        self.exchange = outgoing.map(|outgoing| {
            let response_len = multi_sta_block_ack_len(std::iter::once(Some(64)));
            let (ends, unit) = ([self.client, holder], (self.unit_index, count));
            Exchange::in_unit(Handshake::Triggered, ends, outgoing, unit, [start, end], response_len)
        });
    }

    /// The access point knows at `at` what it has left, after its PPDU of this `plan`.
    fn note_queue(&self, cell: &mut Cell, holder: FunctionId, at: Instant, plan: PpduPlan) {
        let uplink = &mut cell.stations[holder].peers[self.peer].uplink;
        uplink.received_triggered(at, self.awaited, plan, self.queue.unwrap_or_default());
    }
}

impl Sequence {
    /// The PPDU of the users after the Block Acks with which they respond. `None` if no user has data.
    pub(super) fn data_after_block_acks(&self, cell: &mut Cell) -> Option<Self> {
        let MultiUser { ofdma, responses: span, modes, .. } = self.multi_user();
        // Unacknowledged data is sent once, in single-user PPDUs.
        let may_send = |user: &&User| {
            user.responds && user.exchange.as_ref().is_some_and(|down| cell.stations.peer(down).answered)
        };
        let users: Vec<&User> = self.users.iter().filter(may_send).collect();
        let count = users.len() as u16;
        let behind = users.into_iter().map(|user| {
            let appended = ofdma.carried_len(user.appended.len() as u32);
            let before = user.exchange.map_or(0, |down| down.response_len(appended)).next_multiple_of(4);
            let mode = self.multi_user().mode(user);
            let bytes = mode.bytes_within(span[1] - span[0]).saturating_sub(before);
            let mut behind = User::new(user.client, user.peer, user.unit_index);
            behind.responds = true;
            // The access point chose the mode for its own data.
            let rate = user.exchange.as_ref().map(|down| (None, cell.stations.originator(down).plan().rate));
            behind.fill(cell, self.initiator, mode, (bytes, count, rate), *span);
            behind
        });
        let users: Vec<User> = behind.collect();
        if users.iter().all(|user| user.exchange.is_none()) {
            // They report this with their Block Acks.
            users.iter().for_each(|user| user.note_queue(cell, self.initiator, span[1], PpduPlan::default()));
            return None;
        }
        let alone = users.iter().filter_map(|user| {
            let client = &cell.stations[user.client];
            user.exchange.as_ref().map(|exchange| client.peers[exchange.peer()].originator.control_mode)
        });
        let control_mode = alone.min_by_key(Mode::rate)?;
        let (frame, modes) = ((SequenceFrame::TriggeredData, span[0]), (control_mode, modes.clone()));
        Some(Self { until: span[1], ..Self::several(self.initiator, *ofdma, frame, users, modes) })
    }

    /// PSDU bytes of a random-access unit: a full MPDU if clients have no other access, otherwise TCP ACKs or a buffer
    /// status report.
    fn random_bytes(&self) -> u32 {
        match self.multi_user().ofdma.triggers {
            Triggers::RandomAccess => FULL_MPDU_LEN,
            _ => UplinkDemand::UNKNOWN_BYTES,
        }
    }

    /// Shortest duration of the users' PPDUs.
    fn shortest(&self) -> Duration {
        let random = self.multi_user().random.map(|random| random.mode.ppdu_duration(self.random_bytes()));
        self.null_duration().max(random.unwrap_or_default())
    }

    /// Duration of the users' QoS Nulls.
    pub(super) fn null_duration(&self) -> Duration {
        let psdus =
            self.users.iter().map(|user| (self.multi_user().mode(user), QOS_NULL_LEN + MPDU_DELIMITER_LEN));
        MultiUserPpdu::duration(&psdus)
    }

    /// Duration of the users' PPDUs: enough for the most data that the access point knows of or expects for any user, within the
    /// limit.
    pub fn triggered_duration(&self, cell: &Cell) -> Duration {
        let peers = &cell.stations[self.initiator].peers;
        let psdus = self.users.iter().map(|user| {
            let expected = peers[user.peer].uplink.expected_bytes();
            (self.multi_user().mode(user), expected.max(QOS_NULL_LEN + MPDU_DELIMITER_LEN))
        });
        let MultiUser { random, longest, .. } = self.multi_user();
        let random = random.map(|random| (random.mode, self.random_bytes()));
        MultiUserPpdu::duration(&psdus.chain(random)).min(*longest)
    }

    /// The trigger for reports has ended: users that received it send them.
    pub(super) fn report_buffer_status(&mut self, cell: &mut Cell, next_idle: u64) -> Option<Instant> {
        if !self.users.iter().any(|user| user.responds) {
            return self.give_up(cell, next_idle);
        }
        let (start, lasts) = (self.until + cell.rules.phy.sifs, self.null_duration());
        cell.stations[self.initiator].counters.answer_time += lasts;
        self.send(SequenceFrame::BufferStatusReports, start, start + lasts)
    }

    /// The QoS Nulls have ended: the access point knows the queues and triggers their packets; nothing if all are empty
    /// and there is no random-access unit.
    pub fn reports_ended(&mut self, cell: &mut Cell, next_idle: u64) -> Option<Instant> {
        let (initiator, at) = (self.initiator, self.until);
        let mut any = self.multi_user().random.is_some();
        for user in self.users.iter().filter(|user| user.responds && !user.overlapped) {
            let client = &cell.stations[user.client];
            let queue = client.peers[client.peer_index(initiator)].originator.buffer_status();
            cell.stations[initiator].peers[user.peer].uplink.reported(at, queue);
            any |= !queue.is_empty();
            let unit = (self.multi_user().mode(user), user.unit_index);
            cell.air.record_null([user.client, initiator], [self.since, at], unit, queue);
        }
        if !any {
            return self.succeed(cell, next_idle);
        }
        if let Users::Several(users) = &mut self.users {
            let peers = &cell.stations[initiator].peers;
            users.retain(|user| user.responds && !peers[user.peer].uplink.expects_nothing(at));
        }
        self.send_trigger(at + cell.rules.phy.sifs, TriggerKind::Basic)
    }

    /// The Basic Trigger has ended: users that received it send data, or report that they have none.
    pub(super) fn send_triggered_data(&mut self, cell: &mut Cell, next_idle: u64) -> Option<Instant> {
        let lasts = self.triggered_duration(cell);
        let start = self.until + cell.rules.phy.sifs;
        let span = [start, start + lasts];
        let (initiator, random) = (self.initiator, self.multi_user().random);
        let count = self.users.len() as u16 + random.map_or(0, |random| random.count);
        let Self { users, multi_user: Some(multi_user), .. } = self else { return None };
        for user in users.iter_mut().filter(|user| user.responds) {
            let mode = multi_user.mode(user);
            let rates = cell.stations[initiator].peers[user.peer].triggered_rates.as_ref();
            let chosen = rates.zip(mode.resource_unit).map(|(rates, unit)| rates.chosen(unit));
            let rate = chosen.map(|(limits, rate)| (Some(limits), rate));
            user.adapts = rate.is_some();
            user.fill(cell, initiator, mode, (mode.bytes_within(lasts), count, rate), span);
        }
        if let Some(random) = random {
            let users = self.random_users(cell, &random, count, span);
            if let Users::Several(all) = &mut self.users {
                all.extend(users);
            }
        }
        if !self.users.iter().any(|user| user.responds) {
            return self.give_up(cell, next_idle);
        }
        cell.stations[initiator].counters.answer_time += lasts;
        self.send(SequenceFrame::TriggeredData, start, start + lasts)
    }

    /// Clients that were not triggered take random-access units; PPDUs in the same unit are lost.
    fn random_users(
        &self,
        cell: &mut Cell,
        random: &RandomUnits,
        count: u16,
        span: [Instant; 2],
    ) -> Vec<User> {
        let (initiator, len) = (self.initiator, self.trigger_len(TriggerKind::Basic));
        let mut users: Vec<User> = Vec::new();
        for peer in 0..cell.stations[initiator].peers.len() {
            let entry = &mut cell.stations[initiator].peers[peer];
            let (client, mode) = (entry.id, entry.originator.steady_modes()[0]);
            let understands = mode.format == Format::HeSu && mode.width_mhz == random.mode.width_mhz;
            // Unacknowledged data is sent once, in single-user PPDUs.
            if !understands || !entry.answered || self.users.iter().any(|user| user.peer == peer) {
                continue;
            }
            let decodes =
                entry.decodes(len, self.since) && !self.multi_user().missed_trigger.contains(&client);
            let station = &mut cell.stations[client];
            let back = station.peer_index(initiator);
            if !decodes || station.peers[back].originator.need() != Need::Data {
                continue;
            }
            let access = station.random_access.as_mut();
            let Some(unit) = access.and_then(|access| access.offered(random.count)) else { continue };
            let mut user = User::new(client, peer, random.first + unit);
            (user.responds, user.random) = (true, true);
            let bytes = random.mode.bytes_within(span[1] - span[0]);
            user.fill(cell, initiator, random.mode, (bytes, count, None), span);
            users.push(user);
        }
        let mut takers = vec![0_u32; usize::from(random.count)];
        let unit_of = |user: &User| usize::from(user.unit_index - random.first);
        users.iter().for_each(|user| takers[unit_of(user)] += 1);
        for user in users.iter_mut().filter(|user| takers[unit_of(user)] > 1) {
            user.collided = true;
            user.exchange.iter_mut().for_each(|exchange| exchange.clear_from = span[1]);
        }
        users
    }

    /// The users' PPDUs have ended: the MPDUs that arrived are acknowledged.
    pub fn triggered_data_ended(&mut self, cell: &mut Cell, next_idle: u64) -> Option<Instant> {
        let (initiator, end) = (self.initiator, self.until);
        let Self { users, multi_user: Some(multi_user), since, .. } = self else { return None };
        // A user without data sends no frame after its Block Ack.
        let is_cascade = multi_user.longest == Duration::ZERO;
        let mut any = false;
        for user in users.iter_mut().filter(|user| user.responds) {
            match &user.exchange {
                Some(exchange) => user.data_arrived = cell.receive(exchange),
                None if is_cascade || user.collided => {}
                None => {
                    let mode = multi_user.mode(user);
                    let (ends, unit) = ([user.client, initiator], (mode, user.unit_index));
                    cell.air.record_null(ends, [*since, end], unit, user.queue.unwrap_or_default());
                }
            }
            if user.has_arrived() {
                any = true;
                let plan = user.exchange.as_ref().map(|exchange| *cell.stations.originator(exchange).plan());
                user.note_queue(cell, initiator, end, plan.unwrap_or_default());
            }
        }
        if !any {
            return self.give_up(cell, next_idle);
        }
        if !self.users.iter().any(|user| user.data_arrived) {
            // No user had data, so there is nothing to acknowledge.
            self.settle_users(cell, next_idle, |_| true);
            return self.succeed(cell, next_idle);
        }
        self.send_multi_sta_block_ack(cell)
    }

    /// The access point sends a Block Ack for the users' PPDUs.
    fn send_multi_sta_block_ack(&mut self, cell: &mut Cell) -> Option<Instant> {
        let begin = self.until + cell.rules.response_after();
        let mut appended = 0;
        for user in self.users.iter_mut().filter(|user| user.data_arrived) {
            user.exchange.iter_mut().for_each(|exchange| exchange.set_response([begin; 2]));
            cell.acknowledge(user, None);
            if !user.appended.is_empty() {
                appended += LENGTH_LEN + user.appended.len() as u32;
            }
        }
        let windows = self.users.iter().filter(|user| user.data_arrived).map(|user| {
            let originator = cell.stations.originator(user.exchange.as_ref()?);
            let window = u32::from(originator.limits().recipient_window());
            (!self.has_all(cell, user)).then_some(window)
        });
        let len = multi_sta_block_ack_len(windows);
        let multi_user = self.multi_user_mut();
        let [plain_end, end] =
            [len, len + appended].map(|len| begin + multi_user.control_mode.ppdu_duration(len));
        multi_user.plain_end = plain_end;
        for user in self.users.iter_mut().filter(|user| user.data_arrived) {
            user.exchange.iter_mut().for_each(|exchange| exchange.set_response([begin, end]));
        }
        self.send(SequenceFrame::MultiStaBlockAck, begin, end)
    }

    /// The Block Ack has ended: each user handles it. MPDUs that did not arrive are sent again.
    pub fn multi_sta_block_ack_ended(&mut self, cell: &mut Cell, next_idle: u64) -> Option<Instant> {
        if cell.air.is_kept() {
            let frame = Frame::MultiStaBlockAck(self.acknowledged(cell));
            let (span, mode) = ([self.since, self.until], self.multi_user().control_mode);
            cell.air.record_broadcast(self.initiator, span, mode, Duration::ZERO, Outcome::Received, frame);
        }
        self.settle_users(cell, next_idle, |user| user.data_arrived);
        self.settle_users(cell, next_idle, |_| true);
        self.succeed(cell, next_idle)
    }

    /// Whether all MPDUs of `user` arrived, which is signalled without a bitmap (All Ack, 802.11ax-2021 clause 26.4.2).
    fn has_all(&self, cell: &Cell, user: &User) -> bool {
        let (Some(exchange), Recipient::Block(recipient)) =
            (&user.exchange, &cell.stations[self.initiator].peers[user.peer].recipient)
        else {
            return false;
        };
        let (start, bitmap) = recipient.block_ack();
        let mut sent = cell.stations.originator(exchange).in_flight();
        sent.all(|mpdu| bitmap.contains(sequence_distance(start, mpdu.sequence)))
    }

    /// Contents of the Block Ack.
    fn acknowledged(&self, cell: &Cell) -> Vec<Acknowledged> {
        let arrived = self.users.iter().filter(|user| user.data_arrived);
        let each = arrived.map(|user| {
            let recipient = &cell.stations[self.initiator].peers[user.peer].recipient;
            let (start, bitmap) = match recipient {
                Recipient::Block(recipient) => recipient.block_ack(),
                _ => (0, AckBitmap::new(0)),
            };
            let station = cell.stations.station_of(user.client);
            Acknowledged { station, start, bitmap, appended: user.appended.clone() }
        });
        each.collect()
    }
}
