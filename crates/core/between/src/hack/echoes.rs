//! Timestamps of ACKs as implicit ACKs of ACKs (HACK paper section 5; RFC 7323 section 3): predicts when the data
//! arrives that an ACK triggered.

use std::collections::VecDeque;

use super::packet::{AckPacket, FlowTimestamps};
use tacit_packet::FlowKey;
use tacit_packet::units::{Duration, Instant};

/// Most tracked flows of a peer. Ours.
const FLOWS: usize = 64;
/// Most timestamps per flow that wait for an echo; beyond that the newest replaces the previous one. Ours.
const UNECHOED: usize = 64;

/// The ACKs that reached the peer and were not echoed by any segment.
#[derive(Debug, Default)]
pub(super) struct Echoes {
    flows: Vec<Flow>,
}

#[derive(Debug)]
struct Flow {
    key: FlowKey,
    /// TSvals of ACKs, and when the first ACK with each reached the peer; oldest first.
    unechoed: VecDeque<(u32, Instant)>,
    /// Smoothed time from an ACK to the data that echoes it (smoothed like RFC 6298's round-trip time).
    delay: Option<Duration>,
    last_sent: Instant,
}

impl Flow {
    /// An ACK waits if data should arrive within half the usual echo time, which senders hardly notice compared with a
    /// whole round trip. A sender in slow start, whose next data is a round trip away, gets its ACKs at once. Ours.
    fn patience(&self) -> Option<Duration> {
        self.delay.map(|delay| delay / 2)
    }

    fn expects_data(&self, now: Instant) -> bool {
        let Some((_, sent)) = self.unechoed.front() else { return false };
        let (Some(delay), Some(patience)) = (self.delay, self.patience()) else { return false };
        let due = *sent + delay;
        // Data that is overdue by this time is no longer expected.
        due <= now + patience && now <= due + patience
    }
}

impl Echoes {
    /// Whether data triggered by some ACK should arrive soon.
    pub fn data_is_due(&self, now: Instant) -> bool {
        self.flows.iter().any(|flow| flow.expects_data(now))
    }

    /// The longest time that an ACK may wait for it.
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

    /// The flow with that key; if there is no room, it replaces the flow with the oldest last ACK.
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
