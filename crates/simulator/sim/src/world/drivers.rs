//! Connects drivers with hosts and channels.

use tacit_link::PacketRef;
use tacit_link::wifi::{Delivery, FunctionId};
use tacit_packet::units::{FlowId, Instant};

use super::{Channel, World};
use crate::Carried;
use crate::drivers::DriverRequest;
use crate::drivers::fwp::{ReaderRequest, ToReader};
use crate::flow::Feeder;
use crate::packets::Packets;
use crate::setup::FlowSetup;
use crate::topology::Port;

impl<P: Carried> Channel<P> {
    /// The next request of the driver of `function` to the world.
    fn act(
        &mut self,
        now: Instant,
        function: FunctionId,
        packets: &mut Packets<P>,
    ) -> Option<DriverRequest<P>> {
        self.drivers.act(now, function, &mut self.bss, packets)
    }
}

impl<P: Carried> World<'_, P> {
    /// Carries out the requests of the driver of `function`.
    pub(super) fn act(&mut self, index: usize, function: FunctionId) {
        while let Some(wish) = self.channels[index].act(self.now, function, &mut self.packets) {
            match wish {
                DriverRequest::PassUp { packet, .. } => self.deliver_reconstituted(index, function, packet),
                DriverRequest::Send { packet } => {
                    let packet = self.packets.insert(packet);
                    self.send(self.channels[index].hosts[function.index()], packet);
                }
                DriverRequest::Requeue { packet } => self.queue_copy(index, function, &packet),
                DriverRequest::Deliver { packet } => {
                    let packet = self.packets.insert(packet);
                    self.deliver(self.channels[index].hosts[function.index()], packet);
                }
                DriverRequest::Tell { flow, message } => self.send_to_reader(flow, message),
                DriverRequest::Wrong { packet, what } => {
                    self.broken =
                        Some(format!("function {} made an ACK, {what}: {packet:?}", function.index()));
                }
            }
        }
        self.wake_driver(index, function);
    }

    /// Wakes the driver of `function` and its channel when they are due.
    fn wake_driver(&mut self, index: usize, function: FunctionId) {
        let Channel { bss, drivers, component, first_driver, .. } = &self.channels[index];
        if let Some(at) = drivers.poll_timeout(function) {
            self.scheduler.wake(first_driver + function.index() as u32, Some(at));
        }
        self.scheduler.wake(*component, bss.poll_timeout());
    }

    /// Sends a message to the program that reads `flow`.
    fn send_to_reader(&mut self, flow: FlowId, message: ToReader) {
        if let Some(Feeder::Program { number, .. }) = self.flows.get(flow.0 as usize).map(|flow| flow.feeder)
        {
            let now = self.now;
            self.with_app(number as usize, |app, sockets| app.on_message(now, flow, message, sockets));
        }
    }

    /// Passes a program's request to a shim.
    pub(super) fn request(&mut self, flow: FlowId, request: ReaderRequest) {
        let FlowSetup { source, sink, .. } = self.flows[flow.0 as usize].setup;
        for Channel { drivers, first_driver, .. } in &mut self.channels {
            if let Some(function) = drivers.request(flow, [source, sink], request) {
                let component = *first_driver + function.index() as u32;
                self.scheduler.wake(component, Some(self.now));
            }
        }
    }

    /// Forwards a packet that was reconstituted from a link-layer ACK.
    fn deliver_reconstituted(&mut self, index: usize, function: FunctionId, packet: P) {
        let joins = |flow: FlowId| {
            let flow = self.flows.get(flow.0 as usize)?;
            Some([flow.setup.source, flow.setup.sink].contains(&packet.destination()))
        };
        let is_known = (packet.destination().0 as usize) < self.setup.hosts.len()
            && packet.flow().is_none_or(|flow| joins(flow) == Some(true));
        if is_known {
            let packet = self.packets.insert(packet);
            self.deliver(self.channels[index].hosts[function.index()], packet);
        } else {
            self.broken = Some(format!(
                "function {} made an ACK for an unknown host or flow: {packet:?}",
                function.index()
            ));
        }
    }

    /// Queues a packet that a driver sends to a client again; it is not offered to the driver a second time.
    fn queue_copy(&mut self, index: usize, function: FunctionId, packet: &P) {
        let host = self.channels[index].hosts[function.index()];
        let queued = self.packets.insert(packet.clone());
        let Some(Port::Wifi { from, to, .. }) = self.way_out(host, queued) else {
            self.packets.holders.release(queued);
            return;
        };
        if !self.channels[index].bss.enqueue(self.now, from, to, queued, &mut self.packets.holders) {
            self.channels[index].drivers.refused(self.now, function, packet);
        }
    }

    /// Offers `packet` to drivers. Out of line, because stock stations do not need it.
    #[inline(never)]
    pub(super) fn offer_to_driver(&mut self, bss: u16, from: FunctionId, to: FunctionId, packet: PacketRef) {
        let index = usize::from(bss);
        let Channel { bss: channel, drivers, .. } = &mut self.channels[index];
        match drivers.outgoing(self.now, from, to, packet, &mut self.packets) {
            Some(packet) => self.queue_on_air(bss, from, to, packet),
            None if drivers.acts_on_packets(from) => self.act(index, from),
            None => {
                // The host may be busy with an ACK that was passed up: the next one waits for it.
                drivers.carry_out(self.now, from, channel, &mut self.packets);
                self.wake_driver(index, from);
            }
        }
    }

    /// A packet arrived at a station with a driver.
    #[inline(never)]
    pub(super) fn deliver_through_driver(
        &mut self,
        index: usize,
        Delivery { to: function, from, missing, payload }: Delivery,
    ) {
        let drivers = &mut self.channels[index].drivers;
        if let Some(packet) =
            drivers.incoming(self.now, [from, function], payload, missing, &mut self.packets)
        {
            self.missing_frames = missing;
            self.deliver(self.channels[index].hosts[function.index()], packet);
            self.missing_frames = 0;
        }
        if self.channels[index].drivers.acts_on_packets(function) {
            self.act(index, function);
        }
    }
}
