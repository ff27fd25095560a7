//! TCP/HACK in a station: its driver; the NIC is in the channel.

use tacit_between::hack::{Action, Config, Counters, Driver, FlowCounters, Rides};
use tacit_link::PacketRef;
use tacit_link::wifi::{Bss, FunctionId, Interrupt, Peers};
use tacit_packet::FlowKey;
use tacit_packet::units::{FlowId, HostId, Instant};

use super::DriverRequest;
use crate::Carried;
use crate::packets::Packets;

/// The driver of one function.
#[derive(Debug)]
pub(super) struct HackDriver<P> {
    driver: Driver<P>,
    function: FunctionId,
    peers: Peers,
    /// Which peers have TCP/HACK, as learnt at association.
    capable: Vec<bool>,
    before: Counters,
}

impl<P: Carried> HackDriver<P> {
    pub fn new(
        config: Config,
        function: FunctionId,
        peers: Peers,
        channel: &Bss,
        speaks: impl Fn(FunctionId) -> bool,
    ) -> Self {
        let mut driver = Driver::new(config, peers.count());
        for (number, peer) in peers.iter().enumerate() {
            driver.compare_airtime(number, Box::new(channel.ack_times(function, peer)));
        }
        Self {
            driver,
            function,
            capable: peers.iter().map(speaks).collect(),
            peers,
            before: Counters::default(),
        }
    }

    /// The host sends `packet` to `to`. Returns it if `to` does not have TCP/HACK.
    pub fn outgoing(
        &mut self,
        now: Instant,
        to: FunctionId,
        packet: PacketRef,
        packets: &mut Packets<P>,
    ) -> Option<PacketRef> {
        let peer = self.peers.index(to);
        if !self.capable[peer] {
            return Some(packet);
        }
        self.driver.handle_outgoing(now, peer, packets.take(packet));
        None
    }

    /// `packet` arrived from `from` as a packet.
    pub fn incoming(&mut self, now: Instant, from: FunctionId, packet: &P) {
        self.driver.handle_incoming(now, self.peers.index(from), packet);
    }

    /// Handles an interrupt of the NIC.
    pub fn interrupt(
        &mut self,
        now: Instant,
        interrupt: &Interrupt,
        packets: &Packets<P>,
        addresses: &P::Addresses,
    ) {
        let (driver, peers) = (&mut self.driver, &self.peers);
        match interrupt {
            Interrupt::Received { from, heard, more_data, response, .. } => {
                driver.handle_received(now, peers.index(*from), *heard, *more_data, *response);
            }
            Interrupt::Appended { from, bytes, .. } => {
                let read = |bytes: &[u8]| P::from_bytes(bytes, addresses);
                driver.handle_appended(peers.index(*from), bytes, read);
            }
            Interrupt::Settled { to, payload, delivered, .. } => {
                driver.handle_settled(now, peers.index(*to), &packets.copy(*payload), *delivered);
            }
            Interrupt::Fate { .. } => {}
        }
    }

    /// Packets for `to` are being sent.
    pub fn drained(&mut self, to: FunctionId) {
        self.driver.handle_drained(self.peers.index(to));
    }

    /// The next reconstituted ACK.
    pub fn pass_up(&mut self) -> Option<DriverRequest<P>> {
        let (peer, packet) = self.driver.poll_reconstituted()?;
        Some(DriverRequest::PassUp { from: self.peers.id(peer), packet })
    }

    /// Carries out what the driver asks of the channel.
    pub fn carry_out(&mut self, now: Instant, channel: &mut Bss, packets: &mut Packets<P>) {
        let function = self.function;
        while let Some(action) = self.driver.poll_action() {
            match action {
                Action::Send(peer, packet) => {
                    let ack = (packet.rides() != Rides::Never).then(|| packet.clone());
                    let packet = packets.insert(packet);
                    if !channel.enqueue(now, function, self.peers.id(peer), packet, &mut packets.holders)
                        && let Some(ack) = ack
                    {
                        self.driver.handle_settled(now, peer, &ack, false);
                    }
                }
                Action::Descriptor(peer, frame) => {
                    if let Some((nic, peer)) = channel.nic(function, self.peers.id(peer)) {
                        nic.add(peer, &frame);
                    }
                }
                Action::ClearFresh(peer) => {
                    if let Some((nic, peer)) = channel.nic(function, self.peers.id(peer)) {
                        nic.clear_fresh(peer);
                    }
                }
                Action::ClearRetained(peer) => {
                    if let Some((nic, peer)) = channel.nic(function, self.peers.id(peer)) {
                        nic.clear_retained(peer);
                    }
                }
                Action::Retract(peer, acks) => self.retract(peer, &acks, channel, packets),
            }
        }
    }

    /// Removes from the queue those of `acks` that are still in it.
    fn retract(&mut self, peer: usize, acks: &[P], channel: &mut Bss, packets: &mut Packets<P>) {
        let mut gone = Vec::new();
        packets.with_holders(|packets, holders| {
            let unwanted = |packet: &PacketRef| {
                let packet = packets.copy(*packet);
                let unwanted = acks.contains(&packet);
                gone.extend(unwanted.then_some(packet));
                unwanted
            };
            channel.retract(self.function, self.peers.id(peer), unwanted, holders);
        });
        gone.iter().for_each(|packet| self.driver.handle_retracted(peer, packet));
    }

    pub fn poll_timeout(&self) -> Option<Instant> {
        self.driver.poll_timeout()
    }

    pub fn handle_timeout(&mut self, now: Instant) {
        self.driver.handle_timeout(now);
    }

    pub fn start_measuring(&mut self) {
        self.before = self.driver.counters();
    }

    /// Counters since measuring started.
    pub fn counters(&self) -> Counters {
        let mut now = self.driver.counters();
        // An ACK that was queued before and then appended is subtracted from the earlier count, not from this window's.
        now.native_acks = now.native_acks.max(self.before.native_acks);
        now.since(&self.before)
    }

    /// Counters of both directions of a flow since the start of the run.
    pub fn flow_counters(&self, flow: FlowId, ends: [HostId; 2]) -> FlowCounters {
        let [one, other] = ends.map(|end| self.driver.flow_counters(FlowKey::simulated(flow, end)));
        one.plus(&other)
    }

    /// Checks that the codec has lost no appended ACK.
    pub fn check(&self) -> Result<(), String> {
        match self.driver.counters().failed_frames {
            0 => Ok(()),
            failed => Err(format!("{failed} frames of ACKs could not be decoded")),
        }
    }
}
