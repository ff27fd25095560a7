//! Small queues: a connection that sends from a wireless station pauses while the station's queue holds too many of its bytes.
//! TCP derives the limit from its rate, TACK from the size of an A-MPDU; datagrams have the buffer of their socket.

use crate::transport;
use tacit_link::wifi::FunctionId;
use tacit_packet::FlowKey;
use tacit_tack_proto::OwnQueue;

use super::{Channel, World, first_hop};
use crate::Carried;
use crate::flow::{End, send_buffer};
use crate::setup::{FlowSetup, Traffic};
use crate::topology::{Port, Topology};

/// Whether `flow` has small queues, where a radio is its first hop.
pub(super) fn limits(flow: &FlowSetup) -> bool {
    match &flow.traffic {
        Traffic::Connection { config: transport::Config::Tcp(tcp), .. } => tcp.small_queues.is_some(),
        Traffic::Connection { config: transport::Config::Tack(_), .. } => true,
        Traffic::Udp { .. } => send_buffer(&flow.traffic).is_some(),
    }
}

/// What the source and the sink of `flow` leave to the queues of their stations, where TACK has to know.
pub(super) fn own_queues<P>(
    flow: &FlowSetup,
    topology: &Topology,
    channels: &[Channel<P>],
) -> [Option<OwnQueue>; 2] {
    let Traffic::Connection { config: transport::Config::Tack(tack), .. } = &flow.traffic else {
        return [None; 2];
    };
    [End::Source, End::Sink].map(|end| match first_hop(flow, end, topology, channels)? {
        Port::Pipe(_) => None,
        Port::Wifi { bss, from, to } => {
            let (aggregate, room) = channels[usize::from(bss)].bss.room_of(from, to, tack.mtu);
            Some(OwnQueue::before(aggregate, room))
        }
    })
}

impl<P: Carried> World<'_, P> {
    /// [`pump`](World::pump) where connections may have to wait. One that waits is asked again after each event on the
    /// channel; until then a timer of its pacer that is due already is ignored.
    #[inline(never)]
    pub(super) fn pump_within_small_queue(&mut self, index: usize, end: End) {
        let flow = &self.flows[index];
        let host = if end == End::Sink { flow.setup.sink } else { flow.setup.source };
        let Some(radio) = self.radio(index, end) else {
            self.pump_all(index, end);
            return;
        };
        // Counted once there is a limit: an end that only acknowledges has none.
        let mut lying = None;
        let waits = loop {
            if let Some(most) = self.flows[index].small_queue(end)
                && *lying.get_or_insert_with(|| self.lying(index, end, radio)) >= most.0
            {
                break true;
            }
            let Some(packet) = self.flows[index].poll_transmit(self.now, end) else { break false };
            lying = lying.map(|lying| lying + packet.len().0);
            self.send_new(host, packet);
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
            // While it waits for its queue it has no timer.
            self.flows[index].feed(end);
            self.pump_within_small_queue(index, end);
        }
    }

    /// Checks that an end that waits for its station's queue has packets there: their departure wakes it.
    pub(super) fn check_throttled(&self) -> Result<(), String> {
        for (index, end) in self.throttled.iter().copied() {
            if self.radio(index, end).is_none_or(|radio| self.lying(index, end, radio) == 0) {
                return Err(format!("{} waits for a queue in which it has nothing", self.flows[index].id));
            }
        }
        Ok(())
    }

    /// The radio by which `end` of flow `index` sends; `None` where its host has none, or nothing ever limits what lies before it.
    fn radio(&self, index: usize, end: End) -> Option<(u16, FunctionId, FunctionId)> {
        let setup = &self.flows[index].setup;
        match first_hop(setup, end, &self.topology, &self.channels).filter(|_| limits(setup))? {
            Port::Wifi { bss, from, to } => Some((bss, from, to)),
            Port::Pipe(_) => None,
        }
    }

    /// Bytes sent by `end` of flow `index` that lie in the queue of its station.
    fn lying(&self, index: usize, end: End, (bss, from, next): (u16, FunctionId, FunctionId)) -> u64 {
        let flow = &self.flows[index];
        let host = if end == End::Source { flow.setup.source } else { flow.setup.sink };
        let key = FlowKey::simulated(flow.id, host);
        self.channels[usize::from(bss)].bss.unsettled(from, next, |packet| packet.flow == key).0
    }
}
