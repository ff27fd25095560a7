//! FWP's shim in a client: hides holes in registered flows from its TCP, and informs the flows' readers.

use std::collections::VecDeque;

use tacit_between::fwp::{Config, Counters, Readers, Shim};
use tacit_link::PacketRef;
use tacit_packet::units::{FlowId, HostId, Instant};
use tacit_packet::{FlowKey, Packet};

use super::DriverRequest;
use crate::Carried;
use crate::packets::Packets;

/// A reader's request to the shim (`between::fwp::control` without encoding).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReaderRequest {
    Register,
    Allow(u64, u64),
    Repaired(u64, u64),
    Stop,
    /// Bytes that cannot be repaired were acknowledged: the connection must be reset.
    Fail,
}

/// A shim's message to a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToReader {
    Hole(u64, u64),
    Late(u64, u64),
    Switched,
}

/// A client's shim.
#[derive(Debug)]
pub(crate) struct ClientShim {
    /// Its host.
    pub host: HostId,
    shim: Shim<Packet>,
    notes: Notes,
    before: Counters,
}

/// Messages to readers, in order.
#[derive(Debug, Default)]
struct Notes {
    /// Registered flows.
    flows: Vec<(FlowKey, FlowId)>,
    messages: VecDeque<(FlowId, ToReader)>,
}

impl Notes {
    fn note(&mut self, key: FlowKey, message: ToReader) {
        if let Some((_, flow)) = self.flows.iter().find(|(known, _)| *known == key) {
            self.messages.push_back((*flow, message));
        }
    }
}

impl Readers for Notes {
    fn hole(&mut self, key: FlowKey, start: u64, end: u64) -> bool {
        self.note(key, ToReader::Hole(start, end));
        true
    }

    fn late(&mut self, key: FlowKey, start: u64, end: u64, _: &[u8]) {
        self.note(key, ToReader::Late(start, end));
    }

    fn switched(&mut self, key: FlowKey, _: bool) {
        self.note(key, ToReader::Switched);
    }
}

impl ClientShim {
    /// The shim of `host`.
    pub fn new(config: Config, host: HostId) -> Self {
        Self { host, shim: Shim::new(config), notes: Notes::default(), before: Counters::default() }
    }

    /// The reader of `flow`, with data from `source`, sends a request.
    pub fn request(&mut self, flow: FlowId, source: HostId, request: ReaderRequest) {
        let key = FlowKey::simulated(flow, source);
        match request {
            ReaderRequest::Register => {
                // Simulated bytes have no content, so the nonce does not matter.
                if self.shim.register(key, [0; 16]).is_ok() {
                    self.notes.flows.push((key, flow));
                }
            }
            ReaderRequest::Allow(start, end) => self.shim.allow(key, start, end),
            ReaderRequest::Repaired(start, end) => self.shim.repaired(key, start, end),
            ReaderRequest::Stop => self.shim.stop(key),
            ReaderRequest::Fail => self.shim.fail(key),
        }
    }

    /// The host sends `packet`.
    pub fn outgoing<P: Carried>(&mut self, now: Instant, packet: &P) {
        if let Some(packet) = packet.simulated() {
            self.shim.handle_up(now, packet);
        }
    }

    /// `packet` arrived for the host, and `missing` frames before it did not. Returns it if it is passed on unchanged,
    /// with nothing before it.
    pub fn incoming<P: Carried>(
        &mut self,
        now: Instant,
        packet: PacketRef,
        missing: u16,
        packets: &mut Packets<P>,
    ) -> Option<PacketRef> {
        self.shim.link_lost(missing);
        let Some(simulated) = packets.simulated(packet) else { return Some(packet) };
        if self.shim.handle_down(now, simulated, &mut self.notes).is_none() {
            packets.holders.release(packet);
            return None;
        }
        Some(packet)
    }

    /// Its next request: readers are informed before any packet is passed up.
    pub fn poll<P: Carried>(&mut self) -> Option<DriverRequest<P>> {
        match self.notes.messages.pop_front() {
            Some((flow, message)) => Some(DriverRequest::Tell { flow, message }),
            None => self.shim.poll_down().map(|packet| DriverRequest::Deliver { packet: packet.into() }),
        }
    }

    pub fn poll_timeout(&self) -> Option<Instant> {
        self.shim.poll_timeout()
    }

    pub fn handle_timeout(&mut self, now: Instant) {
        self.shim.handle_timeout(now, &mut self.notes);
    }

    pub fn start_measuring(&mut self) {
        self.before = self.shim.counters();
    }

    /// Counters since measuring started.
    pub fn counters(&self) -> Counters {
        self.shim.counters().since(&self.before)
    }

    pub fn check(&self) -> Result<(), String> {
        self.shim.check()
    }
}
