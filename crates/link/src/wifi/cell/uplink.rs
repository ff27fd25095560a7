//! Multi-user PPDUs triggered by the access point (802.11ax-2021 clause 26.5.2): a Basic Trigger, the users' PPDUs of
//! equal length, and a Multi-STA Block Ack; with polling, first a trigger for buffer status reports, and QoS Nulls.
//!
//! Each user's part is a separate [`Exchange`], as in the [downlink](super::downlink).

use tacit_proto::units::{Duration, Instant};

use super::progress::Progress;
use super::{Answer, Cell, even_shares};
use crate::packet::PayloadClass;
use crate::wifi::air::{Acknowledged, Frame, Outcome, StationId, Trigger, TriggerKind, TriggerUser};
use crate::wifi::airtime::AirtimeUse;
use crate::wifi::bitmap::AckBitmap;
use crate::wifi::functions::FunctionId;
use crate::wifi::mac::block_ack::Recipient;
use crate::wifi::mac::buffer_status::{BufferStatus, UplinkDemand};
use crate::wifi::mac::exchange::Exchange;
use crate::wifi::mac::noise::Noise;
use crate::wifi::mac::originator::{Need, Settled};
use crate::wifi::mac::plan::PpduPlan;
use crate::wifi::mac::sequence_distance;
use crate::wifi::ofdma::{OfdmaConfig, Triggers};
use crate::wifi::phy::{
    Format, MPDU_DELIMITER_LEN, Mode, MultiUser, MultiUserPpdu, QOS_NULL_LEN, multi_sta_block_ack_len,
    trigger_len,
};

/// Bytes of an MPDU with a packet of 1500 bytes, as a subframe of an A-MPDU.
const FULL_MPDU_LEN: u32 = 1_544;

/// Bytes of the length field before the bytes appended for one of several stations. Ours.
const LENGTH_LEN: u32 = 2;

/// A triggered user.
#[derive(Clone, Debug)]
struct Part {
    /// The access point's number for it.
    peer: usize,
    client: FunctionId,
    /// Mode of its PPDU.
    mode: Mode,
    /// Capacity of its part in bytes.
    bytes: u32,
    unit_index: u16,
    /// It received the last trigger.
    asked: bool,
    /// Its exchange; `None` if it only reports its buffer status.
    exchange: Option<Exchange>,
    /// Some of its PPDU arrived.
    heard: bool,
    /// The acknowledgment of it is lost.
    lost: bool,
    /// Bytes appended to that acknowledgment.
    appended: Vec<u8>,
    /// The packets it has left when it transmits.
    left: BufferStatus,
    /// MPDUs that it received before, for which TCP ACKs are expected.
    awaited: u32,
    /// Its modes of data and responses in single-user PPDUs.
    single: [Mode; 2],
    /// It took a random-access unit.
    random: bool,
    /// Another user took the same unit.
    collided: bool,
}

/// Random-access units of a trigger.
#[derive(Clone, Copy, Debug)]
struct RandomUnits {
    /// Index of the first one, after the units of triggered clients.
    first: u16,
    count: u16,
    /// Mode of a PPDU in one unit: that of the slowest client.
    mode: Mode,
}

/// Stage of a round: the PPDU on the air.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// A trigger for buffer status reports.
    Poll,
    /// QoS Nulls with these reports.
    Reports,
    /// The Basic Trigger.
    Trigger,
    /// The users' PPDUs.
    Data,
    /// The Multi-STA Block Ack.
    BlockAck,
}

/// A trigger, the responses, and their acknowledgment.
#[derive(Clone, Debug)]
pub(crate) struct Uplink {
    holder: FunctionId,
    ofdma: OfdmaConfig,
    parts: Vec<Part>,
    random: Option<RandomUnits>,
    stage: Stage,
    /// Start and end of the PPDU on the air.
    since: Instant,
    until: Instant,
    /// Longest duration of the users' PPDUs.
    longest: Duration,
    control_mode: Mode,
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
    ) -> Option<Uplink> {
        self.stations[id].trigger_due = false;
        let asked = self.whom_to_ask(at, id, ofdma);
        let offered = self.random_units(ofdma);
        if asked.is_empty() && (offered == 0 || ofdma.triggers != Triggers::RandomAccess) {
            return None;
        }
        let first = asked.len() as u16;
        let slowest = self.slowest_client(id, asked.first().copied()).filter(|_| offered > 0);
        let mut modes: Vec<Mode> = asked.iter().map(|peer| self.uplink_mode(id, *peer)).collect();
        modes.extend(slowest.into_iter().flat_map(|(_, mode)| std::iter::repeat_n(mode, offered)));
        let ppdu = self.shared_ppdu(MultiUser::Up, &modes)?;
        let random = slowest.and_then(|(_, mode)| {
            Some(RandomUnits { first, count: offered as u16, mode: mode.among_users(&ppdu)? })
        });
        let station = &self.stations[id];
        let addressed = asked.iter().copied().chain(slowest.map(|(peer, _)| peer));
        let controls = addressed.map(|peer| station.peers[peer].originator.control_mode);
        let control_mode = controls.min_by_key(Mode::rate)?;
        let parts = asked.iter().zip(&modes).zip(0..).map(|((peer, mode), unit_index)| {
            let client = station.peers[*peer].id;
            Some(Part::new(client, *peer, mode.among_users(&ppdu)?, unit_index))
        });
        let parts = parts.collect::<Option<Vec<_>>>()?;
        let sifs = self.rules.phy.sifs;
        let mut round = Uplink {
            holder: id,
            ofdma: *ofdma,
            parts,
            random,
            stage: Stage::Trigger,
            since: at,
            until: at,
            longest: Duration::ZERO,
            control_mode,
        };
        let trigger = control_mode.ppdu_duration(round.trigger_len(TriggerKind::Basic));
        // A Block Ack for all users, whether received or not.
        let window = self.rules.config.block_ack_window;
        let acks = multi_sta_block_ack_len(modes.iter().map(|_| Some(window)));
        let overhead = trigger + sifs + self.rules.response_after() + control_mode.ppdu_duration(acks);
        round.longest = self.ppdu_limit(id, overhead, limit);
        if round.shortest() > round.longest {
            // This does not fit in the rest of the TXOP either, so it needs a new access.
            self.stations[id].trigger_due = true;
            return None;
        }
        let polls = ofdma.polls && !round.parts.is_empty();
        round.send_trigger(at, if polls { TriggerKind::BufferStatusReport } else { TriggerKind::Basic });
        let station = &mut self.stations[id];
        station.begin_shared_access();
        station.counters.triggers += 1;
        Some(round)
    }

    /// No MPDU of a client's response to a trigger is known to have arrived: they are sent again, possibly in a
    /// single-user PPDU.
    fn fail_triggered(&mut self, exchange: &Exchange, noticed_at: Instant, next_idle: u64) {
        let oldest = self.rules.oldest_allowed(noticed_at);
        let retry_limit = self.rules.config.retry_limit;
        let station = &mut self.stations[exchange.from];
        station.counters.missed_link_acks += 1;
        let originator = &mut station.peers[exchange.peer()].originator;
        let settled: Settled = originator
            .settle_streams(|stream| stream.not_acknowledged(retry_limit, oldest, &mut self.holders));
        self.end_failed(exchange, settled, noticed_at, next_idle);
    }
}

impl Part {
    /// A triggered user.
    fn new(client: FunctionId, peer: usize, mode: Mode, unit_index: u16) -> Self {
        Self {
            peer,
            client,
            mode,
            bytes: 0,
            unit_index,
            asked: false,
            exchange: None,
            heard: false,
            lost: false,
            appended: Vec::new(),
            left: BufferStatus::default(),
            awaited: 0,
            single: [mode; 2],
            random: false,
            collided: false,
        }
    }

    /// Some of its PPDU arrived, even if it only said that it has nothing.
    fn arrived(&self) -> bool {
        self.heard || self.exchange.is_none() && !self.collided
    }

    /// Builds its part of a PPDU of `count` users to `holder`.
    fn fill(&mut self, cell: &mut Cell, holder: FunctionId, count: u16, [start, end]: [Instant; 2]) {
        let lifetime = cell.rules.config.lifetime;
        self.awaited = cell.stations[holder].peers[self.peer].uplink.awaited();
        let client = &mut cell.stations[self.client];
        let back = client.peer_index(holder);
        let originator = &client.peers[back].originator;
        let control = originator.control_mode;
        self.single = [originator.mode, control];
        let rate = Noise::ALONE + 1 + self.mode.resource_unit.map_or(0, |unit| unit as usize);
        let outgoing = client.triggered(
            start,
            lifetime,
            back,
            ([self.mode, control], self.bytes, rate),
            &mut cell.holders,
        );
        client.report_drained(&mut cell.outbox.drained);
        self.left = client.peers[back].originator.buffer_status();
        cell.stations[holder].counters.empty_answers += u64::from(outgoing.is_none());
        self.exchange = outgoing.map(|outgoing| {
            let response_len = multi_sta_block_ack_len(std::iter::once(Some(64)));
            let (ends, unit) = ([self.client, holder], (self.unit_index, count));
            Exchange::triggered(ends, outgoing, unit, [start, end], [end; 2], response_len)
        });
    }
}

impl Uplink {
    /// The PPDU of users to `holder` after the Block Acks with which they respond within `span`; given for each are the
    /// client, its number, its unit and the bytes before its data. `None` if no user has data.
    pub fn behind(
        cell: &mut Cell,
        holder: FunctionId,
        ofdma: &OfdmaConfig,
        users: &[(FunctionId, usize, Option<u16>, u32)],
        span: [Instant; 2],
    ) -> Option<Self> {
        let count = users.len() as u16;
        let mut parts = Vec::with_capacity(users.len());
        for (client, peer, unit_index, before) in users {
            let originator = &cell.stations[holder].peers[*peer].originator;
            let mut part = Part::new(*client, *peer, originator.control_mode, unit_index.unwrap_or_default());
            part.asked = true;
            part.bytes = part.mode.bytes_within(span[1] - span[0]).saturating_sub(*before);
            part.fill(cell, holder, count, span);
            parts.push(part);
        }
        if parts.iter().all(|part| part.exchange.is_none()) {
            // They report this with their Block Acks.
            for part in &parts {
                let nothing = PpduPlan::default();
                let uplink = &mut cell.stations[holder].peers[part.peer].uplink;
                uplink.answered(span[1], part.awaited, nothing, part.left);
            }
            return None;
        }
        let alone = parts.iter().filter_map(|part| {
            let client = &cell.stations[part.client];
            part.exchange.as_ref().map(|exchange| client.peers[exchange.peer()].originator.control_mode)
        });
        let control_mode = alone.min_by_key(Mode::rate)?;
        Some(Self {
            holder,
            ofdma: *ofdma,
            parts,
            random: None,
            stage: Stage::Data,
            since: span[0],
            until: span[1],
            longest: Duration::ZERO,
            control_mode,
        })
    }

    /// End of the trigger at its beginning.
    pub fn trigger_end(&self) -> Instant {
        self.until
    }

    /// The function whose access it is, and its class.
    pub fn account(&self) -> (FunctionId, PayloadClass) {
        (self.holder, PayloadClass::Data)
    }

    /// Mode of its triggers.
    pub fn control_mode(&self) -> &Mode {
        &self.control_mode
    }

    /// True if the access belongs to `function`, or it transmits in it.
    pub fn engages(&self, function: FunctionId) -> bool {
        self.holder == function
            || self.parts.iter().any(|part| part.client == function && part.exchange.is_some())
    }

    /// Until when other stations that received it defer.
    pub fn reserved_until(&self) -> Instant {
        self.until
    }

    /// Accounts the trigger as acquisition time, because it spares the users their own channel accesses.
    pub fn book_trigger(&self, cell: &mut Cell) {
        cell.charge(self.holder, PayloadClass::Data, AirtimeUse::Acquisition, self.until);
    }

    /// Sends a trigger of this kind at `at`.
    fn send_trigger(&mut self, at: Instant, kind: TriggerKind) {
        let len = self.trigger_len(kind);
        self.stage = if kind == TriggerKind::Basic { Stage::Trigger } else { Stage::Poll };
        self.since = at;
        self.until = at + self.control_mode.ppdu_duration(len);
    }

    fn trigger_len(&self, kind: TriggerKind) -> u32 {
        let users = self.parts.len() as u32 + u32::from(self.offered(kind).is_some());
        trigger_len(kind, users, self.ofdma.padding_bytes(&self.control_mode))
    }

    /// Random-access units in a trigger of this kind; none for reports.
    fn offered(&self, kind: TriggerKind) -> Option<RandomUnits> {
        self.random.filter(|_| kind == TriggerKind::Basic)
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
    fn null_duration(&self) -> Duration {
        let psdus = self.parts.iter().map(|part| (part.mode, QOS_NULL_LEN + MPDU_DELIMITER_LEN));
        MultiUserPpdu::duration(&psdus)
    }

    /// The PPDU on the air has ended: does what is due, and returns the next step.
    pub fn step(&mut self, cell: &mut Cell, next_idle: u64) -> Progress {
        match self.stage {
            Stage::Poll => {
                if !self.hear_trigger(cell, TriggerKind::BufferStatusReport) {
                    return self.give_up(cell, next_idle);
                }
                self.stage = Stage::Reports;
                self.since = self.until + cell.rules.phy.sifs;
                self.until = self.since + self.null_duration();
                cell.stations[self.holder].counters.answer_time += self.until - self.since;
                self.book_trigger(cell);
                Progress::Until(self.until)
            }
            Stage::Reports => self.reports_ended(cell),
            Stage::Trigger => self.trigger_ended(cell, next_idle),
            Stage::Data => self.data_ended(cell, next_idle),
            Stage::BlockAck => self.block_ack_ended(cell, next_idle),
        }
    }

    /// Draws which users received the trigger; returns false if none did.
    fn hear_trigger(&mut self, cell: &mut Cell, kind: TriggerKind) -> bool {
        let (len, since) = (self.trigger_len(kind), self.since);
        cell.stations[self.holder].counters.trigger_time += self.until - since;
        for part in &mut self.parts {
            let peer = &mut cell.stations[self.holder].peers[part.peer];
            part.asked = peer.hears(len, since);
        }
        if cell.air.is_kept() {
            let frame = Frame::Trigger(self.trigger(cell, kind));
            let reserves = cell.rules.phy.sifs + self.longest.min(self.planned(cell));
            cell.air.record_broadcast(
                self.holder,
                [self.since, self.until],
                self.control_mode,
                reserves,
                Outcome::Received,
                frame,
            );
        }
        self.parts.iter().any(|part| part.asked)
    }

    /// Planned duration of the users' PPDUs: enough for the most data that the access point knows of or expects for any
    /// user.
    fn planned(&self, cell: &Cell) -> Duration {
        let peers = &cell.stations[self.holder].peers;
        let psdus = self.parts.iter().map(|part| {
            let expected = peers[part.peer].uplink.expected_bytes();
            (part.mode, expected.max(QOS_NULL_LEN + MPDU_DELIMITER_LEN))
        });
        let random = self.random.map(|random| (random.mode, self.random_bytes()));
        MultiUserPpdu::duration(&psdus.chain(random))
    }

    /// The frame of the trigger.
    fn trigger(&self, cell: &Cell, kind: TriggerKind) -> Trigger {
        let users = self.parts.iter().map(|part| TriggerUser {
            station: cell.stations.station_of(part.client),
            mode: part.mode,
            unit_index: part.unit_index,
            units: 1,
            start: 0,
        });
        let random = self.offered(kind).map(|random| TriggerUser {
            station: StationId::AP,
            mode: random.mode,
            unit_index: random.first,
            units: random.count,
            start: 0,
        });
        let users: Vec<TriggerUser> = users.chain(random).collect();
        let lasts = match kind {
            TriggerKind::BufferStatusReport => self.null_duration(),
            _ => self.planned(cell).min(self.longest),
        };
        Trigger {
            kind,
            width_mhz: users.first().map_or(20, |user| user.mode.width_mhz),
            padding_bytes: self.ofdma.padding_bytes(&self.control_mode),
            l_sig_length: Mode::triggered_l_sig_length(lasts),
            users,
        }
    }

    /// The QoS Nulls have ended: the access point knows the queues and triggers their packets; nothing if all are empty
    /// and there is no random-access unit.
    fn reports_ended(&mut self, cell: &mut Cell) -> Progress {
        cell.charge(self.holder, PayloadClass::Data, AirtimeUse::Acquisition, self.until);
        let mut any = false;
        for part in self.parts.iter_mut().filter(|part| part.asked) {
            let client = &cell.stations[part.client];
            let left = client.peers[client.peer_index(self.holder)].originator.buffer_status();
            cell.stations[self.holder].peers[part.peer].uplink.reported(self.until, left);
            any |= !left.is_empty();
            let unit = (part.mode, part.unit_index);
            cell.air.record_null([part.client, self.holder], [self.since, self.until], unit, left);
        }
        if !any && self.random.is_none() {
            self.end(cell, true);
            return Progress::Over(self.until, true);
        }
        self.parts.retain(|part| {
            part.asked && !cell.stations[self.holder].peers[part.peer].uplink.expects_nothing(self.until)
        });
        self.send_trigger(self.until + cell.rules.phy.sifs, TriggerKind::Basic);
        self.book_trigger(cell);
        Progress::Until(self.until)
    }

    /// The Basic Trigger has ended: users that received it send data, or report that they have none.
    fn trigger_ended(&mut self, cell: &mut Cell, next_idle: u64) -> Progress {
        if !self.hear_trigger(cell, TriggerKind::Basic) && self.random.is_none() {
            return self.give_up(cell, next_idle);
        }
        let lasts = self.planned(cell).min(self.longest);
        let start = self.until + cell.rules.phy.sifs;
        let end = start + lasts;
        let count = self.parts.len() as u16 + self.random.map_or(0, |random| random.count);
        for part in self.parts.iter_mut().filter(|part| part.asked) {
            part.bytes = part.mode.bytes_within(lasts);
            part.fill(cell, self.holder, count, [start, end]);
        }
        if let Some(random) = self.random {
            self.fill_random(cell, &random, count, [start, end]);
        }
        if !self.parts.iter().any(|part| part.asked) {
            return self.give_up(cell, next_idle);
        }
        self.stage = Stage::Data;
        self.since = start;
        self.until = end;
        cell.stations[self.holder].counters.answer_time += lasts;
        cell.charge(self.holder, PayloadClass::Data, AirtimeUse::Acquisition, start);
        self.book_data(cell, start);
        Progress::Until(end)
    }

    /// Clients that were not triggered take random-access units; PPDUs in the same unit are lost.
    fn fill_random(&mut self, cell: &mut Cell, random: &RandomUnits, count: u16, span: [Instant; 2]) {
        let (len, asked) = (self.trigger_len(TriggerKind::Basic), self.parts.len());
        for peer in 0..cell.stations[self.holder].peers.len() {
            let entry = &mut cell.stations[self.holder].peers[peer];
            let (client, own) = (entry.id, entry.originator.mode);
            let understands = own.format == Format::HeSu && own.width_mhz == random.mode.width_mhz;
            // Unacknowledged data is sent once, in single-user PPDUs.
            if !understands || !entry.answered || self.parts[..asked].iter().any(|part| part.peer == peer) {
                continue;
            }
            let hears = entry.hears(len, self.since);
            let station = &mut cell.stations[client];
            let back = station.peer_index(self.holder);
            if !hears || station.peers[back].originator.need() != Need::Data {
                continue;
            }
            let access = station.random_access.as_mut();
            let Some(unit) = access.and_then(|access| access.offered(random.count)) else { continue };
            let mut part = Part::new(client, peer, random.mode, random.first + unit);
            (part.asked, part.random) = (true, true);
            part.bytes = random.mode.bytes_within(span[1] - span[0]);
            part.fill(cell, self.holder, count, span);
            self.parts.push(part);
        }
        let mut takers = vec![0_u32; usize::from(random.count)];
        let unit_of = |part: &Part| usize::from(part.unit_index - random.first);
        self.parts[asked..].iter().for_each(|part| takers[unit_of(part)] += 1);
        for part in self.parts[asked..].iter_mut().filter(|part| takers[unit_of(part)] > 1) {
            part.collided = true;
            part.exchange = part.exchange.map(|exchange| exchange.hidden_until(span[1]));
        }
    }

    /// Accounts the users' PPDUs, an equal share of the time for each: divided among new data, TCP ACKs and
    /// retransmissions by bytes; acquisition time for users without data.
    pub fn book_data(&self, cell: &mut Cell, since: Instant) {
        let mut at = since;
        let time = self.until.saturating_since(since);
        for (part, share) in self.parts.iter().zip(even_shares(time, self.parts.len())) {
            let end = at + share;
            let Some(exchange) = &part.exchange else {
                cell.charge(self.holder, PayloadClass::Data, AirtimeUse::Acquisition, end);
                at = end;
                continue;
            };
            let plan = *cell.stations.originator(exchange).plan();
            cell.book_data(part.client, exchange.outgoing.class(), [at, end], plan);
            at = end;
        }
    }

    /// The users' PPDUs have ended: the MPDUs that arrived are acknowledged.
    fn data_ended(&mut self, cell: &mut Cell, next_idle: u64) -> Progress {
        let (since, end) = (self.since, self.until);
        let mut any = false;
        for part in self.parts.iter_mut().filter(|part| part.asked) {
            match &part.exchange {
                Some(exchange) => part.heard = cell.receive(exchange),
                // A user without data sends no frame after its Block Ack.
                None if self.longest == Duration::ZERO || part.collided => {}
                None => {
                    let unit = (part.mode, part.unit_index);
                    cell.air.record_null([part.client, self.holder], [since, end], unit, part.left);
                }
            }
            let arrived = part.arrived();
            any |= arrived;
            if arrived {
                let plan = part.exchange.as_ref().map(|exchange| *cell.stations.originator(exchange).plan());
                let peer = &mut cell.stations[self.holder].peers[part.peer];
                peer.uplink.answered(end, part.awaited, plan.unwrap_or_default(), part.left);
            }
        }
        if !any {
            return self.give_up(cell, next_idle);
        }
        if !self.parts.iter().any(|part| part.heard) {
            // No user had data, so there is nothing to acknowledge.
            self.settle_unheard(cell, next_idle);
            self.end(cell, true);
            return Progress::Over(end, true);
        }
        let begin = end + cell.rules.response_after();
        let mut appended = 0;
        for part in self.parts.iter_mut().filter(|part| part.heard) {
            let Some(exchange) = &mut part.exchange else { continue };
            exchange.set_response([begin; 2]);
            let Answer { exchange: answered, lost, .. } =
                cell.with_appended(&mut part.appended, |cell| cell.answer(exchange, None));
            (*exchange, part.lost) = (answered, lost);
            if !part.appended.is_empty() {
                appended += LENGTH_LEN + part.appended.len() as u32;
            }
        }
        let windows = self.parts.iter().filter(|part| part.heard).map(|part| {
            let originator = cell.stations.originator(part.exchange.as_ref()?);
            let window = u32::from(originator.limits().recipient_window());
            (!self.has_all(cell, part)).then_some(window)
        });
        let len = multi_sta_block_ack_len(windows);
        self.since = begin;
        let plain_end = begin + self.control_mode.ppdu_duration(len);
        self.until = begin + self.control_mode.ppdu_duration(len + appended);
        for part in &mut self.parts {
            if let Some(exchange) = part.exchange.as_mut().filter(|_| part.heard) {
                exchange.set_response([begin, self.until]);
            }
        }
        self.stage = Stage::BlockAck;
        cell.charge(self.holder, PayloadClass::Data, AirtimeUse::LinkAck, plain_end);
        cell.charge(self.holder, PayloadClass::Ack, AirtimeUse::CompressedAck, self.until);
        Progress::Until(self.until)
    }

    /// The Block Ack has ended: each user handles it.
    fn block_ack_ended(&mut self, cell: &mut Cell, next_idle: u64) -> Progress {
        let at = self.until;
        if cell.air.is_kept() {
            let acknowledged = self.acknowledged(cell);
            let mode = self.control_mode;
            let outcome = Outcome::Received;
            let frame = Frame::MultiStaBlockAck(acknowledged);
            cell.air.record_broadcast(self.holder, [self.since, at], mode, Duration::ZERO, outcome, frame);
        }
        let mu_edca = self.ofdma.mu_edca.parameters(cell.stations[self.holder].category);
        for part in self.parts.iter_mut().filter(|part| part.heard) {
            let Some(exchange) = &part.exchange else { continue };
            if part.lost {
                cell.fail_triggered(exchange, at, next_idle);
                part.appended.clear();
                continue;
            }
            cell.with_appended(&mut part.appended, |cell| {
                cell.settle_response(exchange, false, next_idle);
            });
            part.appended.clear();
            if let Some((edca, timer)) = &mu_edca {
                cell.stations[part.client].contention.restrict(cell.rules.phy, edca, at + *timer);
                cell.stations[self.holder].peers[part.peer].uplink.restricted(at + *timer);
            }
        }
        self.settle_unheard(cell, next_idle);
        self.end(cell, true);
        Progress::Over(at, true)
    }

    /// Whether all MPDUs of `part` arrived, which is signalled without a bitmap (All Ack, 802.11ax-2021 clause 26.4.2).
    fn has_all(&self, cell: &Cell, part: &Part) -> bool {
        let (Some(exchange), Recipient::Block(recipient)) =
            (&part.exchange, &cell.stations[self.holder].peers[part.peer].recipient)
        else {
            return false;
        };
        let (start, bitmap) = recipient.block_ack();
        let mut sent = cell.stations.originator(exchange).in_flight();
        sent.all(|mpdu| bitmap.contains(sequence_distance(start, mpdu.sequence)))
    }

    /// Contents of the Block Ack.
    fn acknowledged(&self, cell: &Cell) -> Vec<Acknowledged> {
        let heard = self.parts.iter().filter(|part| part.heard);
        let each = heard.map(|part| {
            let recipient = &cell.stations[self.holder].peers[part.peer].recipient;
            let (start, bitmap) = match recipient {
                Recipient::Block(recipient) => recipient.block_ack(),
                _ => (0, AckBitmap::new(0)),
            };
            let station = cell.stations.station_of(part.client);
            Acknowledged { station, start, bitmap, appended: part.appended.clone() }
        });
        each.collect()
    }

    /// MPDUs that did not arrive are sent again.
    fn settle_unheard(&mut self, cell: &mut Cell, next_idle: u64) {
        for part in self.parts.iter().filter(|part| !part.heard) {
            if let Some(exchange) = &part.exchange {
                cell.fail_triggered(exchange, self.until, next_idle);
            }
        }
    }

    /// No response arrived, so the access failed.
    fn give_up(&mut self, cell: &mut Cell, next_idle: u64) -> Progress {
        let noticed_at = self.until + cell.rules.ack_timeout(&self.control_mode);
        self.settle_unheard(cell, next_idle);
        self.fail(cell, noticed_at, next_idle);
        Progress::Over(self.until, false)
    }

    /// Its first trigger collided, or no user responded; the access point notices at `noticed_at`.
    pub fn fail(&mut self, cell: &mut Cell, noticed_at: Instant, next_idle: u64) {
        cell.stations[self.holder].contention.failed(noticed_at, next_idle);
        self.end(cell, false);
    }

    /// Records a collided trigger, if frames are recorded.
    pub fn record_collided(&self, cell: &mut Cell) {
        if !cell.air.is_kept() {
            return;
        }
        let kind =
            if self.stage == Stage::Poll { TriggerKind::BufferStatusReport } else { TriggerKind::Basic };
        let frame = Frame::Trigger(self.trigger(cell, kind));
        let span = [self.since, self.until];
        cell.air.record_broadcast(
            self.holder,
            span,
            self.control_mode,
            Duration::ZERO,
            Outcome::Collided,
            frame,
        );
    }

    /// The access has ended. Users continue as before it.
    fn end(&mut self, cell: &mut Cell, succeeded: bool) {
        for part in &self.parts {
            if let Some(access) = cell.stations[part.client].random_access.as_mut().filter(|_| part.random) {
                access.settled(part.arrived() && !part.lost);
            }
            let Some(exchange) = &part.exchange else { continue };
            cell.end_part(exchange, part.single);
        }
        let station = &mut cell.stations[self.holder];
        station.transmitting = false;
        if succeeded {
            station.contention.succeeded();
        }
        cell.want_trigger(self.holder, self.until, &self.ofdma);
    }
}
