//! TCP small queues: a connection that sends from a wireless station hands down no more while much of it lies in the
//! station's queue, and goes on when that has less.

use tacit_proto::transport;

use super::World;
use crate::Carried;
use crate::flow::End;
use crate::setup::{FlowSetup, Traffic};
use crate::topology::Port;

/// Whether the connection of `flow` has small queues.
pub(super) fn limits(flow: &FlowSetup) -> bool {
    match &flow.traffic {
        Traffic::Connection { config: transport::Config::Tcp(tcp), .. } => tcp.small_queues.is_some(),
        Traffic::Connection { .. } | Traffic::Udp { .. } => false,
    }
}

impl<P: Carried> World<'_, P> {
    /// [`pump`](World::pump) where connections may have to wait. One that waits is asked again after each event on the
    /// channel; until then a timer of its pacer that is due already is ignored.
    #[inline(never)]
    pub(super) fn pump_within_small_queue(&mut self, index: usize, end: End) {
        let flow = &self.flows[index];
        let host = if end == End::Sink { flow.setup.sink } else { flow.setup.source };
        let Some(mut lying) = self.lying(index, end) else {
            self.pump_all(index, end);
            return;
        };
        let waits = loop {
            if self.flows[index].small_queue(end).is_some_and(|most| lying >= most.0) {
                break true;
            }
            let Some(packet) = self.flows[index].poll_transmit(self.now, end) else { break false };
            lying += packet.len().0;
            if self.wire.is_some() {
                self.send_through_the_wire(host, &packet);
            } else {
                self.send(host, &packet.into());
            }
        };
        if waits && !self.throttled.contains(&(index, end)) {
            self.throttled.push((index, end));
        }
        let timer = self.flows[index].poll_timeout(end).filter(|at| !waits || *at > self.now);
        self.scheduler.wake(self.timers[index][end as usize], timer);
    }

    /// Asks those again that waited.
    #[inline(never)]
    pub(super) fn pump_throttled(&mut self) {
        for (index, end) in std::mem::take(&mut self.throttled) {
            self.pump_within_small_queue(index, end);
        }
    }

    /// Bytes sent by `end` of flow `index` that lie in the queue of its station; `None` where its host has no radio,
    /// or nothing ever limits them.
    fn lying(&self, index: usize, end: End) -> Option<u64> {
        let flow = &self.flows[index];
        if !limits(&flow.setup) {
            return None;
        }
        let (from, to) = match end {
            End::Source => (flow.setup.source, flow.setup.sink),
            End::Sink => (flow.setup.sink, flow.setup.source),
        };
        let port =
            super::in_category(self.topology.next_hop(from, to)?, &self.bss, flow.setup.access_category);
        let Port::Wifi { bss, from, to: next } = port else { return None };
        let is_own = |packet: &P| packet.flow() == Some(flow.id) && packet.destination() == to;
        Some(self.bss[usize::from(bss)].unsettled(from, next, is_own).0)
    }
}
