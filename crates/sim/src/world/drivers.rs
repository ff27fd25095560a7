//! Where drivers stand between hosts and channels.

use tacit_link::wifi::StationId;
use tacit_proto::units::FlowId;

use super::World;
use crate::Carried;
use crate::drivers::Wish;
use crate::topology::Port;

impl<P: Carried> World<'_, P> {
    /// Does what the driver of `station` wants.
    pub(super) fn act(&mut self, index: usize, station: StationId) {
        while let Some(wish) = self.drivers[index].act(self.now, station, &mut self.bss[index]) {
            match wish {
                Wish::PassUp { packet, .. } => self.deliver_reconstituted(index, station, packet),
                Wish::Send { packet } => self.send(self.bss_hosts[index][station.index()], packet),
                Wish::Requeue { packet } => self.queue_copy(index, station, packet),
                Wish::Wrong { packet, what } => {
                    self.broken = Some(format!("station {} made an ACK, {what}: {packet:?}", station.0));
                }
            }
        }
        if let Some(at) = self.drivers[index].poll_timeout(station) {
            self.scheduler.wake(self.driver_components[index] + u32::from(station.0), Some(at));
        }
        self.scheduler.wake(self.bss_component + index as u32, self.bss[index].poll_timeout());
    }

    /// A packet that came as octets on a link-layer ACK goes where these say.
    fn deliver_reconstituted(&mut self, index: usize, station: StationId, packet: P) {
        let joins = |flow: FlowId| {
            let flow = self.flows.get(flow.0 as usize)?;
            Some([flow.setup.source, flow.setup.sink].contains(&packet.destination()))
        };
        let is_known = (packet.destination().0 as usize) < self.setup.hosts.len()
            && packet.flow().is_none_or(|flow| joins(flow) == Some(true));
        if is_known {
            self.deliver(self.bss_hosts[index][station.index()], packet);
        } else {
            self.broken = Some(format!("station {} made an ACK for nobody: {packet:?}", station.0));
        }
    }

    /// A driver sends a client again what it had before; it is not asked again.
    fn queue_copy(&mut self, index: usize, station: StationId, packet: P) {
        let host = self.bss_hosts[index][station.index()];
        let Some(Port::Wifi { from, to, .. }) = self.way_out(host, &packet) else { return };
        let copy = packet.clone();
        if !self.bss[index].enqueue(self.now, from, to, packet) {
            self.drivers[index].refused(self.now, station, &copy);
        }
    }

    /// Offers `packet` where drivers may take it. Out of line: stock stations need none of it.
    #[inline(never)]
    pub(super) fn offer_to_driver(&mut self, bss: u32, from: StationId, to: StationId, packet: P) {
        let Some(packet) = self.drivers[bss as usize].outgoing(self.now, from, to, packet) else {
            self.act(bss as usize, from);
            return;
        };
        self.queue_on_air(bss, from, to, packet);
    }

    /// A packet arrived at `station` where drivers look at it.
    #[inline(never)]
    pub(super) fn deliver_through_driver(
        &mut self,
        index: usize,
        station: StationId,
        from: StationId,
        packet: P,
    ) {
        if let Some(packet) = self.drivers[index].incoming(self.now, station, from, packet) {
            self.deliver(self.bss_hosts[index][station.index()], packet);
        }
        if self.drivers[index].acts_on_arrivals(station) {
            self.act(index, station);
        }
    }
}
