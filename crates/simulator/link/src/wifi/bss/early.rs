//! Reception of MPDUs while the rest of their PPDU is still on the air, where a Block Ack on another link acknowledges
//! what any link has received ([`BlockAckScope::Shared`](crate::wifi::multi_link::BlockAckScope::Shared)).

use tacit_packet::units::Instant;

use super::links::Links;
use crate::wifi::air::Outcome;
use crate::wifi::mac::block_ack::Recipient;
use crate::wifi::mac::mpdu::MpduState;
use crate::wifi::mac::noise::Noise;
use crate::wifi::mac::plan::Outgoing;

impl Links {
    /// A data PPDU on `link`, the holder of queues and windows, ends at `at`: its recipients receive what other links have
    /// carried to them until then.
    pub(super) fn receive_early(&mut self, link: usize, at: Instant) {
        let Some(ended) = self.link(link).medium.data_on_air().filter(|exchange| exchange.end <= at).copied()
        else {
            return;
        };
        for other in (0..self.count()).filter(|other| *other != link) {
            let on_air = self.link(other).medium.data_on_air().copied();
            let Some(exchange) = on_air.filter(|on_air| (on_air.from, on_air.to) == (ended.from, ended.to))
            else {
                continue;
            };
            let (Outgoing::Data { peer, .. }, [holder, other]) = (exchange.outgoing, self.two(link, other))
            else {
                continue;
            };
            let back = holder.stations[exchange.to].peer_index(exchange.from);
            let [from, to] = holder.stations.ends(&exchange);
            let Recipient::Block(recipient) = &mut to.peers[back].recipient else { continue };
            let sending = &mut other.stations[exchange.from];
            let before = holder.outbox.delivered.len();
            let sender = &mut sending.peers[peer];
            let in_flight = MpduState::InFlight(sender.originator.role.link);
            let delimited = sender.originator.is_delimited();
            if let Some(noise) = &mut sender.noise {
                noise.use_rate(sender.originator.plan().rate);
            }
            let window = &mut from.peers[peer].originator.upper.window;
            for mpdu in window.iter_mut().filter(|mpdu| mpdu.state == in_flight && !mpdu.is_decided) {
                let bytes = sender.originator.early.bytes + sender.originator.subframe_len(mpdu.len);
                if exchange.start + sender.originator.mode.time_before(bytes) > at {
                    break;
                }
                let noisy = sender
                    .noise
                    .as_mut()
                    .is_some_and(|noise: &mut Noise| noise.breaks_mpdu(mpdu.len, delimited));
                let lost = sender.data_loss.takes() || noisy || sender.is_away(exchange.start);
                if sender.originator.early.mpdus == 0 {
                    other.air.begin_ppdu();
                }
                let outcome = if lost { Outcome::Errored } else { Outcome::Received };
                other.air.record_mpdu(
                    &exchange,
                    &sender.originator,
                    (&*mpdu, false),
                    outcome,
                    &mut holder.holders,
                );
                mpdu.is_decided = true;
                sender.originator.early.mpdus += 1;
                sender.originator.early.bytes = bytes;
                if !lost {
                    sender.originator.early.any_arrived = true;
                    let pass_up = &mut holder.outbox.deliver(&exchange);
                    recipient.receive(at, (mpdu.sequence, &mpdu.msdus), &mut holder.holders, pass_up);
                }
            }
            let arrived = (holder.outbox.delivered.len() - before) as u64;
            let bytes = holder.outbox.bytes_since(before);
            sending.counters.arrived += arrived;
            sending.counters.arrived_bytes += bytes;
            sending.peers[peer].log.arrived(arrived, bytes);
        }
    }
}
