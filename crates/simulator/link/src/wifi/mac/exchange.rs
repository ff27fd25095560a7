//! A transmission and its response, from the first frame to the last.

use tacit_packet::units::{Duration, Instant};

use super::peer::Peer;
use super::plan::Outgoing;
use super::protection::Handshake;
use super::rules::{HoldLimits, Rules};
use crate::wifi::functions::FunctionId;
use crate::wifi::ofdma::{HackCarrier, MuAcknowledgment, OfdmaConfig};
use crate::wifi::phy::{ACK_LEN, BLOCK_ACK_LEN, BLOCK_ACK_REQUEST_LEN, CONTROL_WRAPPER_LEN, Mode};

/// Response length of an exchange without a response.
const NO_RESPONSE: u32 = 0;

/// A transmission and its response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exchange {
    pub from: FunctionId,
    pub to: FunctionId,
    pub outgoing: Outgoing,
    pub handshake: Handshake,
    /// When the handshake begins; equal to `start` if there is none.
    pub begins: Instant,
    /// When the first frame ends.
    pub first_end: Instant,
    /// When the data begins.
    pub start: Instant,
    /// MPDUs that start before this collide with another PPDU.
    pub clear_from: Instant,
    pub end: Instant,
    pub response_at: Instant,
    response_len: u32,
    /// The PPDU grants the recipient a burst after its response; the response is then in a Control Wrapper.
    pub grants: bool,
    /// It reserves the rest of a TXOP, and not only itself.
    pub reserves_txop: bool,
    /// Number of users in the PPDU, including this one.
    users: u16,
    /// Index of this user's unit in the PPDU, from 0.
    unit_index: u16,
    /// When the response ends; computed for a plain response until the response starts.
    pub response_end: Instant,
    /// The Duration field: SIFS and a plain response, or the rest of the TXOP.
    pub reserves: Duration,
}

impl Exchange {
    /// The exchange of `from` to `peer` that begins at `at` with `handshake`, or with the handshake of the protection
    /// in use before `outgoing`. `from` may hold the channel within `hold_limits`.
    pub fn behind(
        rules: &Rules,
        handshake: Option<Handshake>,
        at: Instant,
        (from, hold_limits): (FunctionId, HoldLimits),
        (peer, outgoing): (&Peer, Outgoing),
    ) -> Self {
        let (mode, control) = (&peer.originator.mode, &peer.originator.control_mode);
        let (duration, mut response_len) = match outgoing {
            Outgoing::BlockAckRequest { .. } => {
                (control.ppdu_duration(BLOCK_ACK_REQUEST_LEN), peer.originator.block_ack_len())
            }
            Outgoing::RepairRequest { .. } => (control.ppdu_duration(peer.repair_request_len()), ACK_LEN),
            Outgoing::Data { .. } => {
                let plan = peer.originator.plan();
                let response = match plan.mpdus {
                    _ if !peer.originator.is_answered() => NO_RESPONSE,
                    1 => ACK_LEN,
                    _ if peer.originator.has_agreement() => peer.originator.block_ack_len(),
                    // One per stream, each acknowledged separately.
                    _ => ACK_LEN,
                };
                (mode.ppdu_duration(plan.bytes), response)
            }
        };
        let handshake =
            handshake.unwrap_or_else(|| rules.config.protection.handshake(&outgoing, &peer.originator));
        let grant = rules.grant(handshake, &outgoing).filter(|_| peer.may_be_granted());
        if grant.is_some() {
            // The Control Wrapper says whether a PPDU follows.
            response_len += CONTROL_WRAPPER_LEN;
        }
        let (first_end, start) = if handshake == Handshake::None {
            (at, at)
        } else if let (Handshake::Rts, Some(padding)) = (handshake, peer.originator.gate.padding) {
            let [first, all] = rules.phy.calling_time(control, padding);
            (at + first, at + all)
        } else {
            let guard = rules.protection_mode(mode, control);
            (at + handshake.first_duration(&guard), at + handshake.duration(&guard, rules.phy))
        };
        let padded = match (&outgoing, peer.originator.gate.ends_at) {
            (Outgoing::Data { .. }, Some(end)) => end,
            _ => start,
        };
        let end = (start + duration).max(padded);
        let (response_at, response) = if response_len == NO_RESPONSE {
            (end, Duration::ZERO)
        } else {
            (end + rules.response_after(), control.ppdu_duration(response_len))
        };
        let response_end = response_at + response;
        let txop_limit = grant.and(hold_limits.exchange).or(hold_limits.reserves);
        let reserves = match (grant, txop_limit) {
            (_, Some(limit)) => (at + limit).max(response_end) - end,
            (Some(grant), None) => response_end + grant - end,
            (None, None) if response == Duration::ZERO => Duration::ZERO,
            (None, None) => rules.phy.sifs + response,
        };
        Self {
            begins: at,
            first_end,
            clear_from: at,
            response_at,
            grants: grant.is_some(),
            reserves_txop: grant.is_some() || txop_limit.is_some(),
            response_end,
            reserves,
            ..Self::in_unit(handshake, [from, peer.id], outgoing, (0, 1), [start, end], response_len)
        }
    }

    /// The part of `from` and `to` in a PPDU with `users` users, in unit `unit_index`. The PPDU lasts from `start` to `end`; a
    /// response of `response_len` bytes follows at a time that is not known yet.
    pub fn in_unit(
        handshake: Handshake,
        [from, to]: [FunctionId; 2],
        outgoing: Outgoing,
        (unit_index, users): (u16, u16),
        [start, end]: [Instant; 2],
        response_len: u32,
    ) -> Self {
        Self {
            from,
            to,
            outgoing,
            handshake,
            begins: start,
            first_end: start,
            start,
            clear_from: start,
            end,
            response_at: end,
            response_len,
            grants: false,
            reserves_txop: false,
            users,
            unit_index,
            response_end: end,
            reserves: Duration::ZERO,
        }
    }

    /// Index of its unit in the PPDU, from 0; `None` if it uses the whole channel.
    pub fn unit_index(&self) -> Option<u16> {
        matches!(self.handshake, Handshake::Shared | Handshake::Triggered).then_some(self.unit_index)
    }

    /// Position of the compressed TCP ACKs in its response, under `rules`.
    pub fn carrier(&self, rules: &Rules) -> HackCarrier {
        match &rules.config.ofdma {
            Some(OfdmaConfig { acknowledgment, hack_carrier, .. })
                if self.handshake == Handshake::Shared
                    && *acknowledgment != MuAcknowledgment::BlockAckRequests =>
            {
                *hack_carrier
            }
            _ => HackCarrier::BlockAck,
        }
    }

    /// Whether it is a part of the responses to a Basic Trigger.
    pub fn is_triggered(&self) -> bool {
        self.handshake == Handshake::Triggered
    }

    /// Its part of a multi-user PPDU lasts until `end`, and the response over `response`.
    pub fn last_until(&mut self, end: Instant, response: [Instant; 2]) {
        self.end = end;
        self.set_response(response);
        self.reserves = self.response_end - end;
    }

    /// Sets the start and the end of the response.
    pub fn set_response(&mut self, [from, to]: [Instant; 2]) {
        (self.response_at, self.response_end) = (from, to);
    }

    /// Whether the exchange ends with its PPDU, without acknowledgment.
    pub fn is_no_ack(&self) -> bool {
        self.response_len == NO_RESPONSE
    }

    /// Airtime of its data, divided by the number of users of the PPDU; zero for other PPDUs.
    pub fn data_time(&self) -> Duration {
        if !matches!(self.outgoing, Outgoing::Data { .. }) {
            return Duration::ZERO;
        }
        let time = self.end - self.start;
        if self.users == 1 { time } else { time / u64::from(self.users) }
    }

    /// The addressee, as an index among the peers of the initiator.
    pub fn peer(&self) -> usize {
        self.outgoing.peer()
    }

    /// Holder of the TXOP that the exchange is part of.
    pub fn holder(&self) -> FunctionId {
        if self.handshake == Handshake::Granted { self.to } else { self.from }
    }

    /// It reserves the rest of its TXOP, which lasts until `until`.
    pub fn reserve_until(&mut self, until: Instant) {
        self.reserves_txop = true;
        self.reserves = until.max(self.response_end) - self.end;
    }

    /// Whether a Block Ack answers it.
    pub fn solicits_block_ack(&self) -> bool {
        self.response_len >= BLOCK_ACK_LEN
    }

    /// Until when other stations that received its frames defer.
    pub fn reserved_until(&self) -> Instant {
        self.response_end.max(self.end + self.reserves)
    }

    /// Length of the response in bytes if `appended` bytes are added to the standard's response.
    pub fn response_len(&self, appended: u32) -> u32 {
        self.response_len + appended
    }

    /// Appends `appended` bytes to the response, sent in mode `control`; returns by how much it becomes longer.
    pub fn append(&mut self, appended: u32, control: &Mode) -> Duration {
        let plain_end = self.response_end;
        self.response_end = self.response_at + control.ppdu_duration(self.response_len(appended));
        self.response_end - plain_end
    }

    /// When the response, sent in mode `control`, would end if nothing were appended.
    pub fn plain_response_end(&self, control: &Mode) -> Instant {
        self.response_at + control.ppdu_duration(self.response_len)
    }
}
