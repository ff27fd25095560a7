//! Output of a channel for its driver.

use std::collections::VecDeque;

use crate::packet::PacketRef;
use crate::wifi::functions::FunctionId;
use crate::wifi::interrupt::Interrupt;
use crate::wifi::mac::exchange::Exchange;

/// A packet that is passed up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The receiving function.
    pub to: FunctionId,
    /// Its sender.
    pub from: FunctionId,
    /// MPDUs of the same sender and category that were sent directly before its own and did not arrive: the gap in the
    /// sequence numbers if data is [unacknowledged](super::super::LinkAcks::None), otherwise 0.
    pub missing: u16,
    /// The packet.
    pub payload: PacketRef,
}

/// Events that wait to be polled.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outbox {
    pub delivered: VecDeque<Delivery>,
    /// Functions that took packets from a queue, and the function each queue is for.
    pub drained: Vec<(FunctionId, FunctionId)>,
    pub interrupts: VecDeque<Interrupt>,
}

impl Outbox {
    /// Adds the packets that the receiver of `exchange` passes up.
    pub fn deliver(&mut self, exchange: &Exchange) -> impl FnMut(PacketRef) {
        let (to, from) = (exchange.to, exchange.from);
        move |payload| self.delivered.push_back(Delivery { to, from, missing: 0, payload })
    }

    /// Takes over what waits in `other`.
    pub fn append(&mut self, other: &mut Self) {
        self.delivered.append(&mut other.delivered);
        self.drained.append(&mut other.drained);
        self.interrupts.append(&mut other.interrupts);
    }

    /// Shows `see` the packets that wait to be polled.
    pub fn each_held(&self, see: &mut dyn FnMut(&PacketRef)) {
        self.delivered.iter().for_each(|delivery| see(&delivery.payload));
        self.interrupts.iter().filter_map(Interrupt::packet).for_each(see);
    }

    /// Bytes of the waiting packets that were passed up after the first `before`.
    pub fn bytes_since(&self, before: usize) -> u64 {
        self.delivered.range(before..).map(|delivery| delivery.payload.len().0).sum()
    }
}
