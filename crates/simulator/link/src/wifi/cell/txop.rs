//! Contents of a TXOP after its first exchange: further exchanges of its holder (802.11-2012 clause 9.19.2.4,
//! 802.11-2020 clause 10.23.2.8), a PPDU in the opposite direction that the holder granted (RD protocol, 802.11-2012
//! clause 9.25, 802.11-2020 clause 10.29), and its early end (802.11-2012 clause 9.19.2.7, 802.11-2020 clause
//! 10.23.2.10).

use tacit_packet::units::{Duration, Instant};

use super::Cell;
use super::sequence::{Sequence, SequenceFrame};
use crate::wifi::config::ReverseDirection;
use crate::wifi::mac::exchange::Exchange;
use crate::wifi::mac::originator::Room;
use crate::wifi::mac::protection::Handshake;

/// Fraction of a limited TXOP that the holder's own PPDU leaves to the responder if it grants: more than the TCP ACKs
/// for its data need. Our choice, because the standard leaves it to implementations.
pub(crate) const GRANTED_PART: u64 = 8;

impl Sequence {
    /// When the frame begins that follows the response to its only exchange in the TXOP: a reverse PPDU, the holder's next
    /// exchange, or a CF-End.
    ///
    /// If the response is `lost`, its sender does not know, so the reverse PPDU follows. Otherwise a holder without a
    /// response does not know that it has the TXOP, and backs off.
    pub(super) fn continue_txop(&mut self, cell: &mut Cell, lost: bool) -> Option<Instant> {
        let exchange = *self.only_exchange()?;
        let is_own = exchange.handshake != Handshake::Granted;
        let holder = &mut cell.stations[exchange.from];
        if is_own && exchange.handshake != Handshake::Continued {
            let limit = holder.hold_limits.burst;
            holder.burst_until = limit.map_or(Instant::ZERO, |limit| exchange.begins + limit);
        }
        if exchange.grants {
            holder.counters.reverse_grants += 1;
            if let Some(reverse) = reverse_exchange(cell, &exchange) {
                if lost {
                    // A failure ends the burst.
                    cell.stations[exchange.from].burst_until = Instant::ZERO;
                }
                return self.continue_with(reverse);
            }
        }
        if is_own && lost {
            return None;
        }
        match continued_exchange(cell, &exchange) {
            Some(next) => self.continue_with(next),
            None => self.end_txop(cell, cell.rules.phy.sifs),
        }
    }

    fn continue_with(&mut self, exchange: Exchange) -> Option<Instant> {
        *self = Self::single_user(exchange);
        Some(self.since)
    }

    /// The reverse PPDU did not arrive. The holder continues after the medium was idle for PIFS (error recovery of the
    /// RD protocol). `next_idle` is the idle period that would now begin.
    pub(super) fn recover_from_lost_reverse(&mut self, cell: &Cell, next_idle: u64) -> Option<Instant> {
        // The response before it did not arrive either: the holder is already in backoff.
        if cell.stations[self.holder()].contention.failed_before(next_idle) {
            return None;
        }
        self.end_txop(cell, cell.rules.phy.pifs())
    }

    /// A CF-End `gap` after its last frame, if it releases more time than it takes.
    fn end_txop(&mut self, cell: &Cell, gap: Duration) -> Option<Instant> {
        let exchange = self.only_exchange()?;
        let at = self.until + gap;
        let until = at + cell.cf_end_duration(exchange);
        if until < exchange.reserved_until() { self.send(SequenceFrame::CfEnd, at, until) } else { None }
    }
}

/// The PPDU of the responder of `exchange` to the holder one SIFS later, if there is data and it fits.
fn reverse_exchange(cell: &mut Cell, exchange: &Exchange) -> Option<Exchange> {
    let rules = &cell.rules;
    let ReverseDirection::Granted { turnaround, .. } = rules.config.reverse_direction else { return None };
    let (now, lifetime) = (exchange.response_end, rules.config.lifetime);
    let start = now + rules.phy.sifs;
    let room = Room {
        time: exchange.reserved_until().saturating_since(start + rules.response_after()),
        queued_by: Instant::ZERO + now.saturating_since(Instant::ZERO).saturating_sub(turnaround),
    };
    let answerer = &mut cell.stations[exchange.to];
    let peer = answerer.peer_index(exchange.from);
    let outgoing = answerer.outgoing_within(now, lifetime, peer, room, &mut cell.holders);
    answerer.report_drained(&mut cell.outbox.drained);
    let outgoing = outgoing?;
    answerer.count_granted(&outgoing);
    cell.air.ppdu_follows();
    let mut reverse = answerer.exchange(rules, Some(Handshake::Granted), start, outgoing);
    reverse.reserve_until(exchange.reserved_until());
    Some(reverse)
}

/// The next exchange of the TXOP holder a SIFS after the response, if there is data and it fits.
fn continued_exchange(cell: &mut Cell, exchange: &Exchange) -> Option<Exchange> {
    let rules = &cell.rules;
    let holder = exchange.holder();
    let (now, lifetime) = (exchange.response_end, rules.config.lifetime);
    let start = now + rules.phy.sifs;
    let station = &mut cell.stations[holder];
    let until = station.burst_until;
    let left = until.saturating_since(start);
    if left == Duration::ZERO {
        return None;
    }
    let time = match rules.config.reverse_direction {
        ReverseDirection::Off => left,
        ReverseDirection::Granted { .. } => left - left / GRANTED_PART,
    };
    let room = Room { time: time.saturating_sub(rules.response_after()), queued_by: now };
    let outgoing = station.next_outgoing_within(now, lifetime, room, &mut cell.holders);
    station.report_drained(&mut cell.outbox.drained);
    let outgoing = outgoing?;
    station.count_continued(&outgoing);
    station.transmitting = true;
    let mut next = station.exchange(rules, Some(Handshake::Continued), start, outgoing);
    if next.reserves_txop {
        next.reserve_until(until);
    }
    Some(next)
}
