//! Timestamps of ACKs as implicit ACKs of ACKs (HACK paper section 5; RFC 7323 section 3): when the data comes that an ACK
//! provoked.

use std::collections::VecDeque;

use super::packet::{AckPacket, FlowTimestamps};
use crate::FlowKey;
use crate::units::{Duration, Instant};

/// Most flows of a peer that are followed. Ours.
const FLOWS: usize = 64;
/// Most timestamps of a flow that wait for their echo: beyond it the newest takes the place of the one before. Ours.
const UNECHOED: usize = 64;

/// The ACKs that reached the peer and that no segment has echoed.
#[derive(Debug, Default)]
pub(super) struct Echoes {
    flows: Vec<Flow>,
}

#[derive(Debug)]
struct Flow {
    key: FlowKey,
    /// TSval of ACKs, and when the first with it reached the peer; the oldest first.
    unechoed: VecDeque<(u32, Instant)>,
    /// From an ACK to the data that echoes it, smoothed as RFC 6298 smooths round trips.
    delay: Option<Duration>,
    last_sent: Instant,
}

impl Flow {
    /// An ACK waits for data that comes within half the time of an echo. Senders do not feel that beside a whole round
    /// trip; a sender in slow start, whose next data is a round trip away, gets its ACKs at once. Ours.
    fn patience(&self) -> Option<Duration> {
        self.delay.map(|delay| delay / 2)
    }

    fn expects_data(&self, now: Instant) -> bool {
        let Some((_, sent)) = self.unechoed.front() else { return false };
        let (Some(delay), Some(patience)) = (self.delay, self.patience()) else { return false };
        let due = *sent + delay;
        // Data overdue by as much is not believed in.
        due <= now + patience && now <= due + patience
    }
}

impl Echoes {
    /// Whether data is about to come that some ACK provoked.
    pub fn data_is_due(&self, now: Instant) -> bool {
        self.flows.iter().any(|flow| flow.expects_data(now))
    }

    /// The longest that an ACK may wait for it.
    pub fn patience(&self) -> Duration {
        self.flows.iter().filter_map(Flow::patience).max().unwrap_or(Duration::ZERO)
    }

    /// An ACK has reached the peer.
    pub fn note_sent(&mut self, now: Instant, packet: &impl AckPacket) {
        let Some(FlowTimestamps { timestamps, .. }) = packet.timestamps() else { return };
        let flow = self.flow_of(now, packet.flow_key());
        flow.last_sent = now;
        if flow.unechoed.back().is_none_or(|(newest, _)| timestamps.is_later_than(*newest)) {
            if flow.unechoed.len() == UNECHOED {
                flow.unechoed.pop_back();
            }
            flow.unechoed.push_back((timestamps.value, now));
        }
    }

    /// A packet arrived from the peer.
    pub fn note_received(&mut self, now: Instant, packet: &impl AckPacket) {
        let Some(FlowTimestamps { reverse, timestamps }) = packet.timestamps() else { return };
        let Some(flow) = self.flows.iter_mut().find(|flow| flow.key == reverse) else { return };
        while let Some((value, sent)) = flow.unechoed.front().copied()
            && timestamps.echoes(value)
        {
            flow.unechoed.pop_front();
            if value == timestamps.echo_reply {
                let took = now - sent;
                flow.delay = Some(flow.delay.map_or(took, |delay| (delay * 7 + took) / 8));
            }
        }
    }

    /// The flow of that key: a new one in the place of that whose last ACK is the oldest, where there is no room.
    fn flow_of(&mut self, now: Instant, key: FlowKey) -> &mut Flow {
        let at = self.flows.iter().position(|flow| flow.key == key).unwrap_or_else(|| {
            if self.flows.len() == FLOWS {
                let oldest = (0..FLOWS).min_by_key(|at| self.flows[*at].last_sent).unwrap_or(0);
                self.flows.swap_remove(oldest);
            }
            self.flows.push(Flow { key, unechoed: VecDeque::new(), delay: None, last_sent: now });
            self.flows.len() - 1
        });
        &mut self.flows[at]
    }
}
