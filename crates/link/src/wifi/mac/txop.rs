//! What a TXOP holds besides the exchange it was won for: further ones of its holder (802.11-2012 clause 9.19.2.4,
//! 802.11-2020 clause 10.23.2.8), a PPDU the other way that the holder granted (RD protocol, 802.11-2012 clause 9.25,
//! 802.11-2020 clause 10.29), and its end before what it reserved is over (802.11-2012 clause 9.19.2.7, 802.11-2020
//! clause 10.23.2.10).

use tacit_proto::units::{Duration, Instant};

use super::exchange::{Exchange, Phase, ends};
use super::originator::Room;
use super::protection::Handshake;
use super::station::{Outgoing, Station};
use crate::payload::Payload;
use crate::wifi::air::{AirFrame, Frame, Outcome, StationId};
use crate::wifi::airtime::AirtimeUse;
use crate::wifi::bss::Bss;
use crate::wifi::category::AccessCategory;
use crate::wifi::config::{BssConfig, ReverseDirection};
use crate::wifi::phy::CF_END_LEN;

/// Of a TXOP with a limit the holder's own PPDU leaves this part to who answers, if it grants: more than the TCP ACKs
/// for what it sends take, and our choice, for the standard leaves it to implementations.
pub(crate) const GRANTED_PART: u64 = 8;

/// Time that a TXOP reserved and did not use, nor give back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reservation {
    pub until: Instant,
    /// Who was in the TXOP.
    ends: [StationId; 2],
}

impl Reservation {
    /// What is left of the TXOP of `exchange`.
    pub fn left_by(exchange: &Exchange) -> Self {
        Self { until: exchange.reserved_until(), ends: [exchange.from, exchange.to] }
    }
}

impl Default for Reservation {
    /// None.
    fn default() -> Self {
        Self { until: Instant::ZERO, ends: [StationId::AP; 2] }
    }
}

/// Whether any TXOP holds more than an exchange.
pub(in crate::wifi) fn may_go_on<P>(config: &BssConfig, stations: &[Station<P>]) -> bool {
    config.reverse_direction != ReverseDirection::Off
        || stations.iter().any(|station| station.burst_limit.is_some())
}

/// What follows an exchange in its TXOP.
pub(super) enum Next {
    /// The PPDU of who answered, or another of the holder.
    Exchange(Exchange),
    /// A CF-End of the holder at this time.
    End { at: Instant },
    /// Nothing: what is reserved is left as it is.
    Nothing,
}

impl<P: Payload> Bss<P> {
    /// What who begins with `handshake` and `outgoing` grants if its TXOP has no limit: something for each data PPDU
    /// of a holder.
    #[inline]
    pub(super) fn grant(&self, handshake: Handshake, outgoing: &Outgoing) -> Option<Duration> {
        match (self.config.reverse_direction, outgoing) {
            (ReverseDirection::Granted { limit, .. }, Outgoing::Data { .. })
                if handshake != Handshake::Granted =>
            {
                Some(limit)
            }
            _ => None,
        }
    }

    /// What follows the response to `exchange`: a reverse PPDU, the holder's next exchange, or its end.
    ///
    /// When it is `lost` on its addressee, that changes nothing for who sent it: the reverse PPDU follows. Without one
    /// a holder who got no response does not know that the TXOP is its own, and backs off.
    pub(super) fn after_response(&mut self, exchange: &Exchange, lost: bool) -> Next {
        let is_own = exchange.handshake != Handshake::Granted;
        if is_own && exchange.handshake != Handshake::Continued {
            let holder = &mut self.stations[exchange.from.index()];
            holder.burst_until = holder.burst_limit.map_or(Instant::ZERO, |limit| exchange.begins + limit);
        }
        if exchange.grants() {
            self.stations[exchange.from.index()].counters.reverse_grants += 1;
            if let Some(reverse) = self.reverse_exchange(exchange) {
                if lost {
                    // A failure ends the burst.
                    self.stations[exchange.from.index()].burst_until = Instant::ZERO;
                }
                return Next::Exchange(reverse);
            }
        }
        if is_own && lost {
            return Next::Nothing;
        }
        if let Some(next) = self.continued_exchange(exchange) {
            return Next::Exchange(next);
        }
        self.end_of_txop(exchange, exchange.response_end + self.phy.sifs)
    }

    /// The reverse PPDU did not arrive: its holder goes on when the medium has been idle for PIFS (error recovery of
    /// the RD protocol).
    pub(super) fn after_lost_reverse(&self, exchange: &Exchange) -> Next {
        // Neither it nor the response before it: the holder backs off already.
        if self.stations[exchange.to.index()].contention.failed_before(self.idle.number + 1) {
            return Next::Nothing;
        }
        self.end_of_txop(exchange, exchange.end + self.phy.pifs())
    }

    /// A CF-End at `at`, if that gives back more than it takes.
    fn end_of_txop(&self, exchange: &Exchange, at: Instant) -> Next {
        if at + self.cf_end_duration(exchange) < exchange.reserved_until() {
            Next::End { at }
        } else {
            Next::Nothing
        }
    }

    /// How long a CF-End lasts, sent as responses between the two are.
    pub(super) fn cf_end_duration(&self, exchange: &Exchange) -> Duration {
        let peer = &self.stations[exchange.from.index()].peers[exchange.outgoing.peer()];
        peer.originator.control_mode.ppdu_duration(CF_END_LEN)
    }

    /// What who answered `exchange` sends its holder one SIFS later, if there is something and it fits.
    fn reverse_exchange(&mut self, exchange: &Exchange) -> Option<Exchange> {
        let ReverseDirection::Granted { turnaround, .. } = self.config.reverse_direction else { return None };
        let (now, lifetime) = (exchange.response_end, self.config.lifetime);
        let start = now + self.phy.sifs;
        let response_after = self.phy.sifs + self.config.link_ack_delay;
        let room = Room {
            time: exchange.reserved_until().saturating_since(start + response_after),
            queued_by: Instant::ZERO + now.saturating_since(Instant::ZERO).saturating_sub(turnaround),
        };
        let [_, to] = ends(&mut self.stations, exchange);
        let peer = to.peer_index(exchange.from);
        let outgoing = to.outgoing_within(now, lifetime, peer, room);
        to.report_drained(&mut self.drained);
        let outgoing = outgoing?;
        to.count_granted(&outgoing);
        if let Some(response) = self.air.as_mut().and_then(|air| air.back_mut()) {
            response.more_ppdu = Some(true);
        }
        let mut reverse = self.exchange_behind(Some(Handshake::Granted), start, exchange.to, outgoing);
        reverse.reserves = exchange.reserved_until() - reverse.end;
        Some(reverse)
    }

    /// The response is over, and more is reserved.
    #[inline(never)]
    pub(super) fn go_on_after_response(&mut self, exchange: &Exchange, lost: bool) {
        let next = self.after_response(exchange, lost);
        self.go_on(&next, exchange, exchange.response_end);
    }

    /// Nothing of the PPDU arrived: there is no response.
    #[inline(never)]
    pub(super) fn go_on_without_response(&mut self, exchange: &Exchange) {
        if exchange.handshake == Handshake::Granted {
            self.go_on(&self.after_lost_reverse(exchange), exchange, exchange.end);
            return;
        }
        if exchange.grants() {
            self.reservation = Reservation::left_by(exchange);
        }
        self.go_idle(exchange.end, exchange.response_end);
    }

    /// What the holder of the TXOP of `exchange` sends a SIFS after its response, if there is something and it fits.
    fn continued_exchange(&mut self, exchange: &Exchange) -> Option<Exchange> {
        let holder = holder(exchange);
        let (now, lifetime) = (exchange.response_end, self.config.lifetime);
        let start = now + self.phy.sifs;
        let response_after = self.phy.sifs + self.config.link_ack_delay;
        let station = &mut self.stations[holder.index()];
        let until = station.burst_until;
        let left = until.saturating_since(start);
        if left == Duration::ZERO {
            return None;
        }
        let own = match self.config.reverse_direction {
            ReverseDirection::Off => left,
            ReverseDirection::Granted { .. } => left - left / GRANTED_PART,
        };
        let room = Room { time: own.saturating_sub(response_after), queued_by: now };
        let outgoing = station.next_outgoing_within(now, lifetime, room);
        station.report_drained(&mut self.drained);
        let outgoing = outgoing?;
        station.count_continued(&outgoing);
        station.transmitting = true;
        let mut next = self.exchange_behind(Some(Handshake::Continued), start, holder, outgoing);
        if next.grants() {
            next.reserves = until.max(next.response_end) - next.end;
        }
        Some(next)
    }

    /// Lets `next` follow `exchange`, which is over at `at`, where everybody hears everybody.
    fn go_on(&mut self, next: &Next, exchange: &Exchange, at: Instant) {
        match *next {
            Next::Exchange(next) => {
                let class = next.outgoing.class();
                self.charge(next.from, class, AirtimeUse::Acquisition, next.start);
                self.start_data(next);
            }
            Next::End { at } => {
                let until = at + self.cf_end_duration(exchange);
                let class = exchange.outgoing.class();
                self.charge(holder(exchange), class, AirtimeUse::Protection, until);
                self.reservation = Reservation::default();
                self.count_cf_end(exchange, at, until);
                self.phase = Phase::Broadcast { until };
            }
            Next::Nothing => {
                if exchange.reserved_until() > at {
                    self.reservation = Reservation::left_by(exchange);
                }
                self.go_idle(at, at);
            }
        }
    }

    /// In the idle period that begins bystanders keep off until what is reserved is over. Its ends do not: frames
    /// to a station do not set its NAV.
    #[inline(never)]
    pub(in crate::wifi) fn keep_reservation(&mut self) {
        let Reservation { until, ends } = self.reservation;
        self.reserved_until = self.reserved_until.max(until);
        self.idle.countdown_from = self.idle.countdown_from.max(until + self.phy.aifs());
        for end in ends {
            self.stations[end.index()].contention.exempt(self.idle.number);
        }
    }

    /// A CF-End goes out.
    pub(super) fn count_cf_end(&mut self, exchange: &Exchange, at: Instant, until: Instant) {
        let transmitter = holder(exchange);
        self.stations[transmitter.index()].counters.cf_ends += 1;
        let peer = &self.stations[exchange.from.index()].peers[exchange.outgoing.peer()];
        if let Some(air) = &mut self.air {
            air.push_back(AirFrame {
                at,
                duration: until - at,
                mode: peer.originator.control_mode,
                reserves: Duration::ZERO,
                transmitter,
                receiver: None,
                category: AccessCategory::default(),
                outcome: Outcome::Received,
                more_ppdu: None,
                frame: Frame::CfEnd,
            });
        }
    }
}

/// Who holds the TXOP that `exchange` is part of.
pub(super) fn holder(exchange: &Exchange) -> StationId {
    if exchange.handshake == Handshake::Granted { exchange.to } else { exchange.from }
}
