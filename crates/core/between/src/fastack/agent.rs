//! The table of flows, and the handling of packets in both directions.

use super::flow::{Flow, Key, Outbox};
use super::{Config, Counters, Verdict};
use tacit_packet::tcp::{Flags, Segment};
use tacit_packet::units::Instant;
use tacit_packet::{Packet, Transport};

/// An access point's agent.
///
/// The contract is that of [`Endpoint`](tacit_packet::Endpoint), for an agent between two ends: after any call, drain
/// [`Agent::poll_up`] and [`Agent::poll_down`] to `None`, then read [`Agent::poll_timeout`]. A packet with a verdict is
/// forwarded before these.
#[derive(Clone, Debug)]
pub struct Agent {
    config: Config,
    /// Sorted by key.
    flows: Vec<Flow>,
    /// Flows with packets that the current link-layer acknowledgment settled; kept to reuse its capacity.
    settled: Vec<Key>,
    out: Outbox,
    /// No flow has a deadline before this.
    due: Option<Instant>,
}

impl Agent {
    /// An agent without flows.
    pub fn new(config: Config) -> Self {
        Self { config, flows: Vec::new(), settled: Vec::new(), out: Outbox::default(), due: None }
    }

    /// `packet` is about to be queued for a client. Packets other than TCP pass, and so does every flow whose handshake
    /// was not seen.
    pub fn handle_downlink(&mut self, now: Instant, packet: &Packet) -> Verdict {
        let Transport::Tcp(segment) = &packet.transport else { return Verdict::Pass };
        let key = Key::of_downlink(packet);
        if segment.flags.contains(Flags::SYN) {
            if let Some(flow) = self.flow_or_new(now, key) {
                flow.sender_syn(now, segment);
            }
            return Verdict::Pass;
        }
        let Some((flow, out)) = self.open_flow(now, key) else { return Verdict::Pass };
        if segment.flags.contains(Flags::RST) {
            self.forget(key);
            return Verdict::Pass;
        }
        flow.downlink(segment, out)
    }

    /// The client's NIC acknowledged the MPDU of `packet`, or the link gave it up. `last` is true for the last MPDU of
    /// one link-layer acknowledgment.
    pub fn handle_fate(&mut self, now: Instant, packet: &Packet, acknowledged: bool, last: bool) {
        if let Transport::Tcp(segment) = &packet.transport {
            self.settle(now, packet, segment, acknowledged);
        }
        if last {
            for index in 0..self.settled.len() {
                let key = self.settled[index];
                if let Some(flow) = find(&mut self.flows, key) {
                    flow.flush(&mut self.out);
                }
            }
            self.settled.clear();
        }
    }

    fn settle(&mut self, now: Instant, packet: &Packet, segment: &Segment, acknowledged: bool) {
        let key = Key::of_downlink(packet);
        let config = self.config;
        let Some((flow, out)) = self.open_flow(now, key) else { return };
        if !flow.settled(now, packet, segment, acknowledged, &config) {
            out.counters.uncached_segments += 1;
        }
        out.counters.cached_segments_max = out.counters.cached_segments_max.max(flow.cache.len() as u64);
        flow.answer(now, &config, out);
        let due = flow.due;
        self.wake_by(due);
        if self.settled.last() != Some(&key) && !self.settled.contains(&key) {
            self.settled.push(key);
        }
    }

    /// `packet` came from a client on its way to its destination.
    pub fn handle_uplink(&mut self, now: Instant, packet: &Packet) -> Verdict {
        let Transport::Tcp(segment) = &packet.transport else { return Verdict::Pass };
        let key = Key::of_uplink(packet);
        if segment.flags.contains(Flags::SYN) {
            if let Some(flow) = self.flow_or_new(now, key) {
                flow.client_syn(now, segment, packet.ip);
            }
            return Verdict::Pass;
        }
        let config = self.config;
        let Some((flow, out)) = self.open_flow(now, key) else { return Verdict::Pass };
        if segment.flags.contains(Flags::RST) {
            self.forget(key);
            return Verdict::Pass;
        }
        let verdict = flow.uplink(now, packet, segment, &config, out);
        let (due, over) = (flow.due, flow.is_over());
        self.wake_by(due);
        if over {
            self.forget(key);
        }
        verdict
    }

    /// A copy from [`Agent::poll_down`] found no room in the queue.
    pub fn handle_refused(&mut self, now: Instant, packet: &Packet) {
        let Transport::Tcp(segment) = &packet.transport else { return };
        if let Some((flow, out)) = self.open_flow(now, Key::of_downlink(packet)) {
            out.counters.refused_copies += 1;
            flow.cache.resent_anew(now, segment.seq);
        }
    }

    /// The next ACK for a sender. Drain it to `None`.
    pub fn poll_up(&mut self) -> Option<Packet> {
        self.out.up.pop_front()
    }

    /// The next copy for a client's queue; it needs no verdict. Drain it to `None`.
    pub fn poll_down(&mut self) -> Option<Packet> {
        self.out.down.pop_front()
    }

    /// When [`Agent::handle_timeout`] is due; may change after any call.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.due
    }

    /// Retransmits data that clients have left unacknowledged for too long. Early calls have no effect.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.due.is_none_or(|due| due > now) {
            return;
        }
        let (config, out) = (&self.config, &mut self.out);
        self.flows.retain_mut(|flow| {
            let kept = flow.due.is_none_or(|due| due > now) || flow.timed_out(now, config, out);
            out.counters.abandoned_flows += u64::from(!kept);
            kept
        });
        self.due = self.flows.iter().filter_map(|flow| flow.due).min();
    }

    /// Counts so far.
    pub fn counters(&self) -> Counters {
        self.out.counters
    }

    /// Verifies its state.
    ///
    /// # Errors
    /// A description of an inconsistency.
    pub fn check(&self) -> Result<(), String> {
        match self.flows.iter().find(|flow| !flow.is_sound(&self.config)) {
            Some(flow) => Err(format!("the books of {} are wrong", flow.key.flow)),
            None if self.flows.len() > self.config.flows as usize => Err("too many flows".to_owned()),
            None => Ok(()),
        }
    }

    fn wake_by(&mut self, due: Option<Instant>) {
        if due.is_some_and(|due| self.due.is_none_or(|known| due < known)) {
            self.due = due;
        }
    }

    /// A flow whose handshake was seen.
    fn open_flow(&mut self, now: Instant, key: Key) -> Option<(&mut Flow, &mut Outbox)> {
        let flow = find(&mut self.flows, key)?;
        flow.used_at = now;
        flow.is_open().then_some((flow, &mut self.out))
    }

    /// The flow of a SYN, created if it is new; `None` if there is no room.
    fn flow_or_new(&mut self, now: Instant, key: Key) -> Option<&mut Flow> {
        let place = match self.flows.binary_search_by_key(&key, |flow| flow.key) {
            Ok(place) => place,
            Err(_) if !self.make_room() => {
                self.out.counters.refused_flows += 1;
                return None;
            }
            Err(_) => {
                let place = self.flows.partition_point(|flow| flow.key < key);
                self.flows.insert(place, Flow::new(key, now));
                place
            }
        };
        self.flows.get_mut(place)
    }

    /// Makes room for one more flow: removes the least recently used flow whose client has acknowledged everything that
    /// was acknowledged for it. Its sender then knows as much as its client, so the agent is not needed.
    fn make_room(&mut self) -> bool {
        if self.flows.len() < self.config.flows as usize {
            return true;
        }
        let idle = self.flows.iter().enumerate().filter(|(_, flow)| !flow.has_unconfirmed_acks());
        let Some((oldest, _)) = idle.min_by_key(|(_, flow)| flow.used_at) else { return false };
        self.flows.remove(oldest);
        self.out.counters.evicted_flows += 1;
        true
    }

    fn forget(&mut self, key: Key) {
        if let Ok(place) = self.flows.binary_search_by_key(&key, |flow| flow.key) {
            self.flows.remove(place);
        }
    }
}

fn find(flows: &mut [Flow], key: Key) -> Option<&mut Flow> {
    let place = flows.binary_search_by_key(&key, |flow| flow.key).ok()?;
    flows.get_mut(place)
}
