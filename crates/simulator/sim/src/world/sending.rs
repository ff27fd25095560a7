//! How packets of hosts reach the first queue on their way, and sources that keep one full.

use tacit_link::PacketRef;
use tacit_link::wifi::{AccessCategory, FunctionId, Offered};
use tacit_packet::Packet;
use tacit_packet::units::{Bytes, HostId};

use super::{Channel, World, no_way};
use crate::Carried;
use crate::flow::End;
use crate::setup::FlowSetup;
use crate::topology::{Port, Topology};

/// Packets that a saturating source keeps in a wire's queue without a limit.
const SATURATION_PACKETS: usize = 256;

impl<P: Carried> World<'_, P> {
    /// Sends a packet of a flow; as bytes give it back, where the setup asks for that.
    pub(super) fn send_new(&mut self, host: HostId, packet: Packet) {
        let packet = match &mut self.wire {
            None => Ok(packet),
            Some(check) => check.pass(&packet),
        };
        match packet {
            Ok(packet) => {
                let packet = self.packets.insert(packet.into());
                self.send(host, packet);
            }
            Err(what) => self.broken = Some(what),
        }
    }

    pub(super) fn send(&mut self, host: HostId, packet: PacketRef) {
        match self.way_out(host, packet) {
            Some(port) => self.offer(port, packet),
            None => {
                let destination = self.packets.take(packet).destination();
                self.broken = Some(no_way(host, destination).to_string());
            }
        }
    }

    /// Where `host` sends `packet`.
    pub(super) fn way_out(&self, host: HostId, packet: PacketRef) -> Option<Port> {
        let port = self.topology.next_hop(host, self.packets.content(packet).destination())?;
        if self.has_categories { self.way_out_in_category(port, packet) } else { Some(port) }
    }

    /// Where `packet` goes from `port`, where several categories are in use.
    #[inline(never)]
    fn way_out_in_category(&self, port: Port, packet: PacketRef) -> Option<Port> {
        let packet = self.packets.content(packet);
        let flow = packet.flow().map(|flow| &self.flows[flow.0 as usize].setup);
        let category = flow.map_or_else(|| packet.access_category(), |flow| flow.access_category);
        Some(in_category(port, &self.channels, category))
    }

    fn offer(&mut self, port: Port, packet: PacketRef) {
        match port {
            Port::Pipe(index) => {
                let pipe = &mut self.wires[index as usize].pipe;
                let was_busy = pipe.is_busy();
                pipe.enqueue(self.now, packet, &mut self.packets.holders);
                if !was_busy {
                    self.scheduler.wake(index, pipe.poll_timeout());
                }
            }
            Port::Wifi { bss, from, to } if self.channels[usize::from(bss)].drivers.all_stock() => {
                self.queue_on_air(bss, from, to, packet);
            }
            Port::Wifi { bss, from, to } => self.offer_to_driver(bss, from, to, packet),
        }
    }

    pub(super) fn queue_on_air(&mut self, bss: u16, from: FunctionId, to: FunctionId, packet: PacketRef) {
        let Channel { bss, component, .. } = &mut self.channels[usize::from(bss)];
        if bss.offer(self.now, from, to, packet, &mut self.packets.holders) == Offered::Contends {
            self.scheduler.wake(*component, bss.poll_timeout());
        }
    }

    /// Where the source of flow `index` sends.
    pub(super) fn first_port(&self, index: usize) -> Option<Port> {
        first_hop(&self.flows[index].setup, End::Source, &self.topology, &self.channels)
    }

    /// A queue that packets were taken from may have room for saturating sources.
    pub(super) fn refill_from(&mut self, port: Port) {
        if let Ok(place) = self.saturator_of.binary_search_by_key(&port, |(port, _)| *port) {
            self.refill(self.saturator_of[place].1);
        }
    }

    /// Fills a queue from the flows that keep it full, in turn.
    pub(super) fn refill(&mut self, index: usize) {
        let mut idle_flows = 0;
        while idle_flows < self.saturators[index].flows.len() {
            let saturator = &mut self.saturators[index];
            let (flow, port) = (saturator.flows[saturator.next], saturator.port);
            let len = self.flows[flow].saturating_packet_len();
            if !self.has_room(port, len) {
                break;
            }
            let (saturator, flow) = (&mut self.saturators[index], &mut self.flows[flow]);
            saturator.next = (saturator.next + 1) % saturator.flows.len();
            match flow.next_saturating().filter(|_| flow.setup.start <= self.now) {
                Some(packet) => {
                    idle_flows = 0;
                    let packet = self.packets.insert(packet.into());
                    self.offer(port, packet);
                }
                None => idle_flows += 1,
            }
        }
        let saturator = &self.saturators[index];
        if let Port::Pipe(pipe) = saturator.port {
            self.scheduler.wake(saturator.component, self.wires[pipe as usize].pipe.half_begun_at());
        }
    }

    /// Whether the queue of `port` takes another packet of `len` bytes of a saturating source.
    fn has_room(&mut self, port: Port, len: Bytes) -> bool {
        match port {
            Port::Pipe(index) => {
                let pipe = &mut self.wires[index as usize].pipe;
                pipe.has_room(self.now, len, &mut self.packets.holders) && pipe.waiting() < SATURATION_PACKETS
            }
            Port::Wifi { bss: index, from, to } => {
                let channel = &self.channels[usize::from(index)].bss;
                channel.has_room(from, to, len) && !channel.is_saturated(from, to)
            }
        }
    }
}

/// Where `end` of `flow` sends.
pub(super) fn first_hop<P>(
    flow: &FlowSetup,
    end: End,
    topology: &Topology,
    channels: &[Channel<P>],
) -> Option<Port> {
    let (from, to) = match end {
        End::Source => (flow.source, flow.sink),
        End::Sink => (flow.sink, flow.source),
    };
    Some(in_category(topology.next_hop(from, to)?, channels, flow.access_category))
}

/// `port` for packets of `category`.
pub(super) fn in_category<P>(port: Port, channels: &[Channel<P>], category: AccessCategory) -> Port {
    match port {
        Port::Pipe(_) => port,
        Port::Wifi { bss, from, to } => {
            let channel = &channels[usize::from(bss)].bss;
            let in_category = |function| channel.function(channel.station(function), category);
            let (from, to) = (in_category(from), in_category(to));
            Port::Wifi { bss, from, to }
        }
    }
}
