//! The table of flows, and the handling of packets in both directions.

use std::collections::VecDeque;

use super::control::{NONCE_LEN, Refusal};
use super::flow::{Fate, Flow, Outbox};
use super::handshake::Handshakes;
use super::packet::SegmentPacket;
use super::readers::Readers;
use super::switch::{Limit, LinkFrames};
use super::{Config, Counters, Marker};
use tacit_packet::FlowKey;
use tacit_packet::tcp::{Flags, Segment};
use tacit_packet::units::Instant;

/// Handshakes remembered per possible flow, because it is known only later which connections are registered.
const HANDSHAKES_PER_FLOW: usize = 4;

/// What the link is assumed to have carried and lost before its driver has counted anything: readers of the first connection
/// expect losses, without which no link would need placeholders.
const PRIOR: LinkFrames = LinkFrames { arrived: 9, lost: 1 };

/// The shim of a receiver.
///
/// The contract is that of [`Endpoint`](tacit_packet::Endpoint), applied to a stage between a link and a host: after any call, drain
/// [`Shim::poll_down`] to `None`, then read [`Shim::poll_timeout`]. A flow is identified by the key of the direction
/// that carries data, and positions in its stream count from 0.
#[derive(Clone, Debug)]
pub struct Shim<P> {
    config: Config,
    /// Registered flows, sorted by key.
    flows: Vec<Flow<P>>,
    /// Connections that may be registered.
    handshakes: Handshakes<P>,
    link: LinkFrames,
    /// Those before the newest packet and the frames missing directly before it.
    link_before: LinkFrames,
    out: Outbox<P>,
    /// No flow has a deadline before this.
    due: Option<Instant>,
}

impl<P: SegmentPacket> Shim<P> {
    /// A shim without flows.
    pub fn new(config: Config) -> Self {
        Self {
            handshakes: Handshakes::new(HANDSHAKES_PER_FLOW * config.flows as usize),
            config,
            flows: Vec::new(),
            link: LinkFrames::NONE,
            link_before: LinkFrames::NONE,
            out: Outbox { down: VecDeque::new(), counters: Counters::default() },
            due: None,
        }
    }

    /// The link's losses in frames per million, as configured or as the driver counted them so far. Before it has counted much,
    /// this is near one in ten.
    pub fn link_loss_ppm(&self) -> u32 {
        self.config.expected_ppm.unwrap_or_else(|| self.link.plus(PRIOR).lost_ppm())
    }

    /// The link lost `frames` directly before the next packet. Call this before each packet. If the configuration relies on the
    /// driver, holes that these frames explain are due to the link, and others are congestion.
    pub fn link_lost(&mut self, frames: u16) {
        self.link_before = self.link;
        self.link = self.link.plus(LinkFrames { arrived: 1, lost: frames.into() });
    }

    fn limit(&self) -> Limit {
        let Config { expected_ppm, margin_tenths, placeholders, .. } = self.config;
        Limit { expected_ppm, margin_tenths, placeholders, link: self.link, link_before: self.link_before }
    }

    /// Registers the flow `key`, with placeholders generated from `nonce`. Its SYN must have passed.
    ///
    /// # Errors
    /// Why the flow is refused.
    pub fn register(&mut self, key: FlowKey, nonce: [u8; NONCE_LEN]) -> Result<(), Refusal> {
        let Err(place) = self.place_of(key) else { return Err(Refusal::Taken) };
        if self.flows.len() >= self.config.flows as usize {
            return Err(Refusal::Room);
        }
        let handshake = self.handshakes.take(key).ok_or(Refusal::Elsewhere)?;
        let flow = Flow::new(handshake, Marker::new(nonce)).ok_or(Refusal::Elsewhere)?;
        self.flows.insert(place, flow);
        self.out.counters.registered_flows += 1;
        Ok(())
    }

    /// Allows placeholders in `start..end` of the stream.
    pub fn allow(&mut self, key: FlowKey, start: u64, end: u64) {
        if let Some(flow) = self.flow(key) {
            flow.allow(start, end);
        }
    }

    /// The reader has the original bytes of `start..end`, or no longer needs them.
    pub fn repaired(&mut self, key: FlowKey, start: u64, end: u64) {
        if let Some(flow) = self.flow(key) {
            flow.repaired(start, end);
            // Overdue holes that waited for this may be due.
            self.reckon_due();
        }
    }

    /// Stops placeholders in the flow `key`.
    pub fn stop(&mut self, key: FlowKey) {
        let Ok(place) = self.place_of(key) else { return };
        self.flows[place].stop(&mut self.out);
    }

    /// Unregisters the flow `key`. It may be registered again if all of its placeholders were repaired.
    pub fn unregister(&mut self, key: FlowKey) {
        let Ok(place) = self.place_of(key) else { return };
        self.flows[place].stop(&mut self.out);
        if let Some(handshake) = self.flows.remove(place).into_handshake() {
            self.handshakes.remember(handshake);
        }
    }

    /// Resets the connection at the host because a hole of the flow `key` cannot be repaired, so that no placeholder is
    /// taken for data. The host informs the sender when its next segment arrives.
    pub fn fail(&mut self, key: FlowKey) {
        let Ok(place) = self.place_of(key) else { return };
        self.flows[place].fail(&mut self.out);
    }

    /// Handles a `packet` for the host, and returns it if it passes unchanged. Everything else for the host is in
    /// [`Shim::poll_down`].
    pub fn handle_down(&mut self, now: Instant, packet: P, readers: &mut impl Readers) -> Option<P> {
        let Some(segment) = packet.segment() else { return Some(packet) };
        let key = packet.flow_key();
        if segment.flags.contains(Flags::SYN) {
            return Some(self.syn_down(key, &segment, packet));
        }
        let Ok(place) = self.place_of(key) else { return Some(packet) };
        if segment.flags.contains(Flags::RST) {
            self.flows[place].stop(&mut self.out);
            self.flows.remove(place);
            self.out.down.push_back(packet);
            return None;
        }
        let limit = self.limit();
        let flow = &mut self.flows[place];
        let fate = flow.down(now, packet, &segment, (&self.config, limit), &mut self.out, readers);
        if self.due.is_some() || flow.poll_timeout(&self.config).is_some() {
            self.reckon_due();
        }
        match fate {
            Fate::Passes(packet) if self.out.down.is_empty() => Some(packet),
            Fate::Passes(packet) => {
                self.out.down.push_back(packet);
                None
            }
            Fate::Taken => None,
        }
    }

    /// Handles a `packet` from the host, which passes unchanged.
    pub fn handle_up(&mut self, now: Instant, packet: &P) {
        let Some(segment) = packet.segment() else { return };
        let key = packet.reverse_key();
        if segment.flags.contains(Flags::SYN) {
            return self.handshakes.syn_up(key, &segment);
        }
        let Ok(place) = self.place_of(key) else { return self.handshakes.follow(key, &segment) };
        if segment.flags.contains(Flags::RST) {
            self.flows.remove(place);
            return;
        }
        self.flows[place].up(now, &segment, &mut self.out);
    }

    /// The next packet for the host. Drain it to `None`.
    pub fn poll_down(&mut self) -> Option<P> {
        self.out.down.pop_front()
    }

    /// The time for the next [`Shim::handle_timeout`]; it may change after any call.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.due
    }

    /// Decides holes that have had time to settle, and fills holes left to TCP whose retransmission is overdue. Early
    /// calls have no effect.
    pub fn handle_timeout(&mut self, now: Instant, readers: &mut impl Readers) {
        if self.due.is_none_or(|due| due > now) {
            return;
        }
        let limit = self.limit();
        for flow in &mut self.flows {
            flow.settle(now, (&self.config, limit), &mut self.out, readers);
            flow.fill_overdue(now, (&self.config, limit), &mut self.out, readers);
        }
        self.reckon_due();
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
        if self.flows.len() > self.config.flows as usize {
            return Err("too many flows".to_owned());
        }
        let unsound = self.flows.iter().find(|flow| !flow.is_sound(&self.config));
        unsound.map_or(Ok(()), |flow| Err(format!("the books of {:?} are wrong", flow.key)))
    }

    /// A sender's SYN arrived.
    fn syn_down(&mut self, key: FlowKey, segment: &Segment, packet: P) -> P {
        let first = segment.seq + 1;
        if let Ok(place) = self.place_of(key) {
            // A repeated SYN, or another connection with the same addresses, which is not registered.
            if self.flows[place].begins_at(first) {
                return packet;
            }
            self.flows.remove(place);
        }
        let like = packet.forged(&Segment::default(), None);
        self.handshakes.syn_down(key, segment, like);
        packet
    }

    fn reckon_due(&mut self) {
        self.due = self.flows.iter().filter_map(|flow| flow.poll_timeout(&self.config)).min();
    }

    fn place_of(&self, key: FlowKey) -> Result<usize, usize> {
        self.flows.binary_search_by_key(&key, |flow| flow.key)
    }

    fn flow(&mut self, key: FlowKey) -> Option<&mut Flow<P>> {
        let place = self.place_of(key).ok()?;
        self.flows.get_mut(place)
    }
}
