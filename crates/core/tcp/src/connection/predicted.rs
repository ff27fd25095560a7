//! Header prediction (V. Jacobson, R. Braden and D. Borman, RFC 1323 appendix A; RFC 7323 section 4.3 keeps its rule):
//! without losses nearly every segment is the next data or acknowledges the next data, and can be processed without all
//! the checks of SEGMENT ARRIVES. All other segments are processed by the full procedure.

use super::arrival::before;
use super::{Connection, State};
use crate::sender::Timer;
use tacit_packet::endpoint::Event;
use tacit_packet::tcp::{Flags, Segment};
use tacit_packet::units::Instant;

impl Connection {
    /// Processes `segment` if it is the predicted one, with the same result as
    /// [`arrive_in_others`](Self::arrive_in_others). Otherwise returns false and changes nothing.
    pub(super) fn arrive_as_predicted(&mut self, now: Instant, segment: &Segment) -> bool {
        if !self.is_next_in_order(segment) || !self.sender.is_plain() {
            return false;
        }
        let ack = self.sender.snd_una.nearest(segment.ack);
        let predicted = if segment.payload_len > 0 {
            ack == self.sender.snd_una
                && self.sender.board.is_empty()
                && self.receiver.is_ready_for(segment.payload_len)
        } else {
            ack > self.sender.snd_una && ack <= self.sender.snd_nxt
        };
        if !predicted {
            return false;
        }
        self.note_stamp(now, segment);
        let window = u64::from(segment.window) << self.agreed.send_scale;
        self.sender.take_window(window, self.receiver.rcv_nxt, ack, &mut self.timers);
        if segment.payload_len == 0 {
            let all_acked = self.sender.on_plain_ack(now, ack, &mut self.timers, &mut self.counters);
            if all_acked {
                self.events.push_back(Event::SendDone);
            }
        } else {
            self.timers.clear(Timer::Retransmit);
            let decision = self.receiver.receive_next(now, segment.payload_len, &mut self.counters);
            self.schedule_ack(decision);
        }
        true
    }

    /// RFC 7323 section 5.3 R3 for a segment at RCV.NXT.
    fn note_stamp(&mut self, now: Instant, segment: &Segment) {
        if let Some(stamps) = segment.timestamps
            && self.receiver.rcv_nxt <= self.stamps.last_ack_sent
        {
            self.stamps.recent = stamps.value;
            self.stamps.recent_at = now;
        }
    }

    /// True if the state is ESTABLISHED and the segment is at RCV.NXT, with an ACK and timestamps that do not go back,
    /// and nothing else.
    fn is_next_in_order(&self, segment: &Segment) -> bool {
        let plain = Flags(segment.flags.0 & !Flags::PSH.0) == Flags::ACK && segment.sack.is_empty();
        let stamps_go_on = segment.timestamps.is_some_and(|stamps| !before(stamps.value, self.stamps.recent));
        plain
            && segment.seq == self.receiver.rcv_nxt.wire()
            && self.state == State::Established
            && self.agreed.timestamps
            && !self.agreed.ecn
            && stamps_go_on
    }
}
