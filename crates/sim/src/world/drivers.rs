//! Where drivers stand between hosts and channels.

use tacit_link::wifi::StationId;

use super::World;
use crate::Carried;
use crate::hack::Outcome;
use crate::topology::Port;

impl<P: Carried> World<'_, P> {
    /// Does what the driver of `station` wants.
    pub(super) fn act(&mut self, index: usize, station: StationId) {
        while let Some(outcome) = self.hack[index].act(self.now, station, &mut self.bss[index]) {
            match outcome {
                Outcome::Deliver { station, packet } => {
                    self.deliver(self.bss_hosts[index][station.index()], packet);
                }
                Outcome::Wrong { station, packet, what } => {
                    self.broken = Some(format!("station {} made an ACK, {what}: {packet:?}", station.0));
                }
                Outcome::SendUp { packet } => self.send(self.bss_hosts[index][0], packet),
                Outcome::SendDown { packet } => self.queue_copy(index, packet),
            }
        }
        if let Some(at) = self.hack[index].poll_timeout(station) {
            self.scheduler.wake(self.driver_components[index] + u32::from(station.0), Some(at));
        }
        self.scheduler.wake(self.bss_component + index as u32, self.bss[index].poll_timeout());
    }

    /// The access point's agent sends a client again what it had before; nobody judges that.
    fn queue_copy(&mut self, index: usize, packet: P) {
        let Some(Port::Wifi { from, to, .. }) = self.way_out(self.bss_hosts[index][0], &packet) else {
            return;
        };
        let copy = packet.clone();
        if !self.bss[index].enqueue(self.now, from, to, packet) {
            self.hack[index].copy_refused(self.now, &copy);
        }
    }

    /// Offers `packet` where drivers may take it. Out of line: stock stations need none of it.
    #[inline(never)]
    pub(super) fn offer_to_driver(&mut self, bss: u32, from: StationId, to: StationId, packet: P) {
        let Some(packet) = self.hack[bss as usize].outgoing(self.now, from, to, packet) else {
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
        if let Some(packet) = self.hack[index].incoming(self.now, station, from, packet) {
            self.deliver(self.bss_hosts[index][station.index()], packet);
        }
        if self.hack[index].has_agent() {
            self.act(index, station);
        }
    }
}
