//! FastACK's agent in an access point, with a check that it never acknowledges data that no NIC has acknowledged.

use tacit_between::fastack::{Agent, Config, Counters, Verdict};
use tacit_link::PacketRef;
use tacit_link::wifi::Interrupt;
use tacit_packet::tcp::{Flags, Segment};
use tacit_packet::units::{FlowId, HostId, Instant, SeqNumber};
use tacit_packet::{Packet, Transport};

use super::DriverRequest;
use crate::Carried;
use crate::packets::Packets;

/// An agent, and the oracle that checks it.
#[derive(Debug)]
pub(crate) struct ApAgent {
    agent: Agent,
    /// Checks its ACKs; `None` once dismissed.
    oracle: Option<Oracle>,
    before: Counters,
}

/// A connection, and the receiver of its data.
type Direction = (FlowId, HostId);

/// The part of a stream that has arrived, according to link-layer acknowledgments and the client's own.
#[derive(Debug, Default)]
struct Arrived {
    /// Everything before this; `None` until the sender's SYN was seen.
    upto: Option<SeqNumber>,
    /// Ranges beyond a gap, unsorted.
    beyond: Vec<[SeqNumber; 2]>,
}

impl Arrived {
    fn note(&mut self, start: SeqNumber, end: SeqNumber) {
        let Some(mut upto) = self.upto else { return };
        if start.after(upto) {
            if !self.beyond.contains(&[start, end]) {
                self.beyond.push([start, end]);
            }
            return;
        }
        upto = upto.max(end);
        while let Some(next) = self.beyond.iter().position(|[start, _]| start.before_eq(upto)) {
            upto = upto.max(self.beyond.swap_remove(next)[1]);
        }
        self.upto = Some(upto);
    }
}

/// Arrivals in all connections, and whether more was acknowledged.
#[derive(Debug, Default)]
struct Oracle {
    /// By direction of a connection.
    arrived: Vec<(Direction, Arrived)>,
    /// A wrong ACK.
    wrong: Option<Packet>,
}

impl Oracle {
    /// `packet` is on its way to a client.
    fn downlink(&mut self, packet: &Packet) {
        let Some(segment) = segment_of(packet).filter(|segment| segment.flags.contains(Flags::SYN)) else {
            return;
        };
        let arrived = self.arrived((packet.flow, packet.destination));
        if arrived.upto.is_none() {
            *arrived = Arrived { upto: Some(segment.seq + 1), beyond: Vec::new() };
        }
    }

    /// The MPDU of `packet` was acknowledged.
    fn acknowledged(&mut self, packet: &Packet) {
        if let Some(segment) = segment_of(packet) {
            let end = segment.seq + segment.sequence_len();
            self.arrived((packet.flow, packet.destination)).note(segment.seq, end);
        }
    }

    /// `packet` came from a client, whose own ACKs are always right.
    fn uplink(&mut self, packet: &Packet) {
        if let Some(segment) = segment_of(packet).filter(|segment| segment.flags.contains(Flags::ACK)) {
            let arrived = self.arrived((packet.flow, packet.source));
            if let Some(upto) = arrived.upto {
                arrived.note(upto, upto.max(segment.ack));
            }
        }
    }

    /// Checks that a forged ACK acknowledges only data that has arrived.
    fn verify(&mut self, forwarded: &Packet) {
        let Some(segment) = segment_of(forwarded) else { return };
        let upto = self.arrived((forwarded.flow, forwarded.source)).upto;
        if upto.is_none_or(|upto| segment.ack.after(upto)) {
            self.wrong = Some(forwarded.clone());
        }
    }

    fn arrived(&mut self, direction: Direction) -> &mut Arrived {
        let place = match self.arrived.binary_search_by_key(&direction, |(known, _)| *known) {
            Ok(place) => place,
            Err(place) => {
                self.arrived.insert(place, (direction, Arrived::default()));
                place
            }
        };
        &mut self.arrived[place].1
    }
}

impl ApAgent {
    pub fn new(config: Config) -> Self {
        Self { agent: Agent::new(config), oracle: Some(Oracle::default()), before: Counters::default() }
    }

    /// Disables its oracle from now on.
    pub fn dismiss_oracle(&mut self) {
        self.oracle = None;
    }

    /// `packet` is to be queued for a client. Returns it unless it is dropped.
    pub fn downlink<P: Carried>(
        &mut self,
        now: Instant,
        packet: PacketRef,
        packets: &mut Packets<P>,
    ) -> Option<PacketRef> {
        let Some(simulated) = packets.simulated(packet) else { return Some(packet) };
        if let Some(oracle) = &mut self.oracle {
            oracle.downlink(&simulated);
        }
        judged(self.agent.handle_downlink(now, &simulated), packet, packets)
    }

    /// The MAC reports the fate of a packet.
    pub fn interrupt<P: Carried>(&mut self, now: Instant, interrupt: &Interrupt, packets: &Packets<P>) {
        let Interrupt::Fate { payload, acknowledged, last, .. } = interrupt else { return };
        let Some(packet) = packets.simulated(*payload) else { return };
        if let Some(oracle) = self.oracle.as_mut().filter(|_| *acknowledged) {
            oracle.acknowledged(&packet);
        }
        self.agent.handle_fate(now, &packet, *acknowledged, *last);
    }

    /// `packet` came from a client. Returns the packet to forward, if any.
    pub fn uplink<P: Carried>(
        &mut self,
        now: Instant,
        packet: PacketRef,
        packets: &mut Packets<P>,
    ) -> Option<PacketRef> {
        let Some(simulated) = packets.simulated(packet) else { return Some(packet) };
        if let Some(oracle) = &mut self.oracle {
            oracle.uplink(&simulated);
        }
        let verdict = self.agent.handle_uplink(now, &simulated);
        if let (Verdict::Replace(forwarded), Some(oracle)) = (&verdict, &mut self.oracle) {
            oracle.verify(forwarded);
        }
        judged(verdict, packet, packets)
    }

    /// A copy found no room in the queue.
    pub fn refused<P: Carried>(&mut self, now: Instant, packet: &P) {
        if let Some(packet) = packet.simulated() {
            self.agent.handle_refused(now, packet);
        }
    }

    /// Its next request.
    pub fn poll<P: Carried>(&mut self) -> Option<DriverRequest<P>> {
        let up = self.agent.poll_up();
        if let Some(oracle) = &mut self.oracle {
            if let Some(packet) = &up {
                oracle.verify(packet);
            }
            if let Some(packet) = oracle.wrong.take() {
                return Some(DriverRequest::Wrong {
                    packet: packet.into(),
                    what: "of data that has not arrived",
                });
            }
        }
        match up {
            Some(packet) => Some(DriverRequest::Send { packet: packet.into() }),
            None => self.agent.poll_down().map(|packet| DriverRequest::Requeue { packet: packet.into() }),
        }
    }

    pub fn poll_timeout(&self) -> Option<Instant> {
        self.agent.poll_timeout()
    }

    pub fn handle_timeout(&mut self, now: Instant) {
        self.agent.handle_timeout(now);
    }

    pub fn start_measuring(&mut self) {
        self.before = self.agent.counters();
    }

    /// Counters since measuring started.
    pub fn counters(&self) -> Counters {
        self.agent.counters().since(&self.before)
    }

    pub fn check(&self) -> Result<(), String> {
        self.agent.check()
    }
}

fn segment_of(packet: &Packet) -> Option<Segment> {
    match packet.transport {
        Transport::Tcp(segment) => Some(segment),
        Transport::Udp(_) | Transport::Tack(_) => None,
    }
}

/// The packet to forward instead of `packet`.
fn judged<P: Carried>(verdict: Verdict, packet: PacketRef, packets: &mut Packets<P>) -> Option<PacketRef> {
    let other = match verdict {
        Verdict::Pass => return Some(packet),
        Verdict::Drop => None,
        Verdict::Replace(other) => Some(other),
    };
    packets.holders.release(packet);
    other.map(|other| packets.insert(other.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_in_any_order_count_once_they_have_no_gap() {
        let at = SeqNumber;
        let mut arrived = Arrived { upto: Some(at(u32::MAX - 9)), beyond: Vec::new() };
        arrived.note(at(10), at(20));
        arrived.note(at(20), at(30));
        assert_eq!(arrived.upto, Some(at(u32::MAX - 9)));
        arrived.note(at(u32::MAX - 9), at(10));
        assert_eq!((arrived.upto, arrived.beyond.len()), (Some(at(30)), 0));
    }
}
