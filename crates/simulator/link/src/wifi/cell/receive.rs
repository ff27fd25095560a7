//! Reception of PPDUs other than a single acknowledged aggregate: unacknowledged data, and parallel aggregates.

use super::outbox::Delivery;
use super::{Cell, earliest};
use crate::packet::PacketRef;
use crate::wifi::air::Outcome;
use crate::wifi::mac::block_ack::Recipient;
use crate::wifi::mac::exchange::Exchange;
use crate::wifi::mac::noise::Noise;
use crate::wifi::mac::peer::Peer;

impl Cell {
    /// [`receive_data`](Self::receive_data) for a PPDU with one aggregate per spatial stream.
    pub(super) fn receive_each(&mut self, exchange: &Exchange, peer: usize) -> bool {
        let [from, to] = self.stations.ends(exchange);
        let back = to.peer_index(exchange.from);
        let recipient = &mut to.peers[back].recipient;
        let sender = &mut from.peers[peer];
        let away = sender.is_away(exchange.start);
        let Peer { originator, data_loss, stream_losses, noise, .. } = sender;
        let plan = originator.plan();
        let delimited = originator.is_delimited();
        if let Some(noise) = noise {
            noise.use_rate(plan.rate);
        }
        let unheard = noise.as_mut().is_some_and(Noise::hides_data) || away;
        let count = stream_losses.len() as u32 + 1;
        let losses = std::iter::once(data_loss).chain(stream_losses);
        let mut left = plan.mpdus;
        let mut any_arrived = false;
        for ((stream, loss), recipient) in originator.streams().zip(losses).zip(recipient.each_stream()) {
            let mut bytes_before = 0;
            for mpdu in stream.in_flight() {
                left -= 1;
                let noisy =
                    unheard || noise.as_mut().is_some_and(|noise| noise.breaks_mpdu(mpdu.len, delimited));
                let lost = loss.takes() || noisy;
                // A byte of one stream takes as long as a byte on every stream.
                let starts_at = exchange.start + originator.mode.time_before(bytes_before * count);
                bytes_before += stream.subframe_len(mpdu.len);
                let errored = lost || starts_at < exchange.clear_from;
                let outcome = if errored { Outcome::Errored } else { Outcome::Received };
                self.air.record_mpdu(exchange, originator, (mpdu, left == 0), outcome, &mut self.holders);
                if errored {
                    continue;
                }
                any_arrived = true;
                let mut missing = recipient.missing_before(mpdu.sequence);
                let (mut passed_up, mut bytes) = (0, 0);
                let received = (mpdu.sequence, &mpdu.msdus);
                recipient.receive(exchange.end, received, &mut self.holders, &mut |payload: PacketRef| {
                    passed_up += 1;
                    bytes += payload.len().0;
                    let missing = std::mem::take(&mut missing);
                    let (to, from) = (exchange.to, exchange.from);
                    self.outbox.delivered.push_back(Delivery { to, from, missing, payload });
                });
                from.counters.arrived_bytes += bytes;
                if exchange.is_no_ack() && passed_up > 0 {
                    from.counters.unacknowledged_arrived += passed_up;
                    from.counters.delivered_bytes += u64::from(mpdu.bytes);
                    to.counters.repaired += u64::from(mpdu.retries > 0);
                }
            }
        }
        let gap_ends = recipient.gap_since().map(|since| since + self.rules.config.reorder_timeout);
        self.reorder_check = earliest(self.reorder_check, gap_ends);
        if let Recipient::Deferred(recipient) = recipient {
            to.counters.repair_given_up += recipient.take_given_up();
            self.reorder_check = earliest(self.reorder_check, recipient.due());
        }
        any_arrived
    }
}
