//! A transmission and the response to it, from its first frame to its last.

use tacit_proto::units::{Duration, Instant};

use super::peer::Peer;
use super::plan::Outgoing;
use super::protection::Handshake;
use super::rules::{HoldLimits, Rules};
use crate::payload::Payload;
use crate::wifi::functions::FunctionId;
use crate::wifi::ofdma::{HackCarrier, MuAcknowledgment, OfdmaConfig};
use crate::wifi::phy::{ACK_LEN, BLOCK_ACK_LEN, BLOCK_ACK_REQUEST_LEN, CONTROL_WRAPPER_LEN, Mode};

/// Bytes of a response that is not sent.
const UNANSWERED: u32 = 0;

/// A transmission and the response to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exchange {
    pub from: FunctionId,
    pub to: FunctionId,
    pub outgoing: Outgoing,
    pub handshake: Handshake,
    /// When the handshake begins; without one this is `start`.
    pub begins: Instant,
    /// When its first frame ends.
    pub first_end: Instant,
    /// When the data begins.
    pub start: Instant,
    /// MPDUs that start before this are hidden behind another PPDU.
    clear_from: Instant,
    pub end: Instant,
    pub response_at: Instant,
    response_len: u32,
    grants: bool,
    /// Users that share its PPDU, one alone included.
    users: u16,
    /// Which of their units is its own, from 0.
    unit_index: u16,
    /// When the response ends; stock length until the response starts.
    pub response_end: Instant,
    /// Its Duration field: SIFS and a stock response, or the rest of the TXOP.
    pub reserves: Duration,
}

impl Exchange {
    /// The exchange of `from`, which may hold the channel within `hold_limits`, that begins at `at` with `handshake`, or
    /// with that of the protection in use before `outgoing`, to `peer`.
    // Always: an exchange is large, and most are of one kind.
    #[inline(always)]
    pub fn behind<P: Payload>(
        rules: &Rules,
        handshake: Option<Handshake>,
        at: Instant,
        (from, hold_limits): (FunctionId, HoldLimits),
        (peer, outgoing): (&Peer<P>, Outgoing),
    ) -> Self {
        let (mode, control) = (&peer.originator.mode, &peer.originator.control_mode);
        let (duration, mut response_len) = match outgoing {
            Outgoing::Request { .. } => {
                (control.ppdu_duration(BLOCK_ACK_REQUEST_LEN), peer.originator.block_ack_len())
            }
            Outgoing::Ask { .. } => (control.ppdu_duration(peer.ask_len()), ACK_LEN),
            Outgoing::Data { .. } => {
                let plan = peer.originator.plan();
                let response = match plan.mpdus {
                    _ if !peer.originator.is_answered() => UNANSWERED,
                    1 => ACK_LEN,
                    _ if peer.originator.has_agreement() => peer.originator.block_ack_len(),
                    // One on each stream, each acknowledged on its own.
                    _ => ACK_LEN,
                };
                (mode.ppdu_duration(plan.bytes), response)
            }
        };
        let handshake =
            handshake.unwrap_or_else(|| rules.config.protection.handshake(&outgoing, &peer.originator));
        let grant = rules.grant(handshake, &outgoing).filter(|_| peer.may_be_granted());
        if grant.is_some() {
            // Which says whether a PPDU follows.
            response_len += CONTROL_WRAPPER_LEN;
        }
        let (first_end, start) = if handshake == Handshake::None {
            (at, at)
        } else {
            let guard = rules.protection_mode(mode, control);
            (at + handshake.first_duration(&guard), at + handshake.duration(&guard, rules.phy))
        };
        let end = start + duration;
        let (response_at, response) = if response_len == UNANSWERED {
            (end, Duration::ZERO)
        } else {
            (end + rules.response_after(), control.ppdu_duration(response_len))
        };
        let response_end = response_at + response;
        let reserves = match (grant, hold_limits.exchange) {
            (None, _) if response == Duration::ZERO => Duration::ZERO,
            (None, _) => rules.phy.sifs + response,
            (Some(_), Some(limit)) => (at + limit).max(response_end) - end,
            (Some(grant), None) => response_end + grant - end,
        };
        Self {
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
            grants: grant.is_some(),
            users: 1,
            unit_index: 0,
            response_end,
            reserves,
        }
    }

    /// The part of `from` and `to` in a PPDU of `users`, in the unit of this index, on the air from the first instant of `ppdu` to the second, which a
    /// response of `response_len` bytes answers within `response`.
    pub fn shared(
        [from, to]: [FunctionId; 2],
        outgoing: Outgoing,
        (unit_index, users): (u16, u16),
        ppdu: [Instant; 2],
        response: [Instant; 2],
        response_len: u32,
    ) -> Self {
        let ([start, end], [response_at, response_end]) = (ppdu, response);
        Self {
            from,
            to,
            outgoing,
            handshake: Handshake::Shared,
            begins: start,
            first_end: start,
            start,
            clear_from: start,
            end,
            response_at,
            response_len,
            grants: false,
            users,
            unit_index,
            response_end,
            reserves: response_end - end,
        }
    }

    /// The part of `from` and `to` in answers to a trigger; see [`shared`](Self::shared).
    pub fn triggered(
        ends: [FunctionId; 2],
        outgoing: Outgoing,
        unit: (u16, u16),
        ppdu: [Instant; 2],
        response: [Instant; 2],
        response_len: u32,
    ) -> Self {
        let handshake = Handshake::Triggered;
        Self { handshake, ..Self::shared(ends, outgoing, unit, ppdu, response, response_len) }
    }

    /// Which of the units of its PPDU is its own, from 0; `None` for all of the channel.
    pub fn unit_index(&self) -> Option<u16> {
        matches!(self.handshake, Handshake::Shared | Handshake::Triggered).then_some(self.unit_index)
    }

    /// Where compressed TCP ACKs are in its response, under `rules`.
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

    /// Its response is on the air from the first instant to the second.
    pub fn set_response(&mut self, [from, to]: [Instant; 2]) {
        (self.response_at, self.response_end) = (from, to);
    }

    /// Whether it ends with its PPDU, without an acknowledgment.
    #[inline]
    pub fn is_unanswered(&self) -> bool {
        self.response_len == UNANSWERED
    }

    /// How long its data is on the air, or its share of that where users have it at once; zero for other PPDUs.
    #[inline]
    pub fn data_time(&self) -> Duration {
        if !matches!(self.outgoing, Outgoing::Data { .. }) {
            return Duration::ZERO;
        }
        let time = self.end - self.start;
        if self.users == 1 { time } else { time / u64::from(self.users) }
    }

    /// Whether it asks for data that did not arrive.
    #[inline]
    pub fn asks_for_repair(&self) -> bool {
        matches!(self.outgoing, Outgoing::Ask { .. })
    }

    /// The addressee, among the peers of the initiator.
    #[inline]
    pub fn peer(&self) -> usize {
        self.outgoing.peer()
    }

    /// Holder of the TXOP that it is part of.
    #[inline]
    pub fn holder(&self) -> FunctionId {
        if self.handshake == Handshake::Granted { self.to } else { self.from }
    }

    /// Whether its PPDU lets the recipient send too, in a burst behind its response: that comes in a Control Wrapper.
    #[inline]
    pub fn grants(&self) -> bool {
        self.grants
    }

    /// Whether a Block Ack answers it.
    #[inline]
    pub fn asks_for_block_ack(&self) -> bool {
        self.response_len >= BLOCK_ACK_LEN
    }

    /// Until when other stations that heard it keep off.
    #[inline]
    pub fn reserved_until(&self) -> Instant {
        self.response_end.max(self.end + self.reserves)
    }

    /// Until when its sender goes on without an answer.
    pub fn alone_until(&self) -> Instant {
        if self.handshake == Handshake::Rts { self.first_end } else { self.end }
    }

    /// The exchange with the MPDUs that start before `clear_from` hidden behind others.
    pub fn hidden_until(self, clear_from: Instant) -> Self {
        Self { clear_from, ..self }
    }

    /// Whether an MPDU that starts at `at` is not hidden behind another PPDU.
    #[inline]
    pub fn is_clear(&self, at: Instant) -> bool {
        at >= self.clear_from
    }

    /// Bytes of the response, `appended` of them beyond those of the standard.
    #[inline]
    pub fn response_len(&self, appended: u32) -> u32 {
        self.response_len + appended
    }

    /// Lengthens the response, sent in mode `control`, by `appended` bytes; returns by how much it ends later.
    pub fn append(&mut self, appended: u32, control: &Mode) -> Duration {
        let plain_end = self.response_end;
        self.response_end = self.response_at + control.ppdu_duration(self.response_len(appended));
        self.response_end - plain_end
    }

    /// When the response, sent in mode `control`, would end if nothing were appended to it.
    #[inline]
    pub fn plain_response_end(&self, control: &Mode) -> Instant {
        self.response_at + control.ppdu_duration(self.response_len)
    }
}
