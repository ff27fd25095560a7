//! The oracle of TCP/HACK: remembers the ACKs that drivers were given, and compares reconstituted ones with them. It
//! only observes: a run without it gives the same result.

use std::collections::VecDeque;

use tacit_between::hack::{AckPacket, Rides};
use tacit_link::PacketRef;
use tacit_link::wifi::{DirectLink, FunctionId, Functions, Peers};
use tacit_packet::units::{Duration, Instant};

use crate::Carried;
use crate::packets::Packets;

/// ACKs remembered per link.
const REMEMBERED: usize = 8_192;

/// ACKs and reports given to the drivers of a channel.
#[derive(Debug)]
pub(super) struct Oracle<P> {
    /// By function; `None` for functions without TCP/HACK.
    senders: Vec<Option<Sender<P>>>,
}

#[derive(Debug)]
struct Sender<P> {
    peers: Peers,
    turnaround: Duration,
    /// By peer; `None` for peers without TCP/HACK.
    links: Vec<Option<Link<P>>>,
}

#[derive(Debug)]
struct Link<P> {
    /// ACKs and reports for the peer, and when they were passed to the driver, oldest first.
    given: VecDeque<(Instant, P)>,
    /// When the NIC last built a link-layer ACK for it.
    answered_at: Instant,
}

impl<P: Carried> Oracle<P> {
    /// An oracle without records; `None` if no station has TCP/HACK. `turnaround` returns the host turnaround time of a
    /// function that has it.
    pub fn new(
        functions: Functions,
        direct: &[DirectLink],
        turnaround: impl Fn(FunctionId) -> Option<Duration>,
    ) -> Option<Self> {
        let sender = |id| {
            let (peers, turnaround_of_own) = (functions.peers(id, direct), turnaround(id)?);
            let link =
                |peer| turnaround(peer).map(|_| Link { given: VecDeque::new(), answered_at: Instant::ZERO });
            let links = peers.iter().map(link).collect();
            Some(Sender { peers, turnaround: turnaround_of_own, links })
        };
        let senders: Vec<_> = functions.all().map(sender).collect();
        senders.iter().any(Option::is_some).then_some(Self { senders })
    }

    /// The link between two functions with TCP/HACK, and the host turnaround time of `from`.
    fn link(&mut self, from: FunctionId, to: FunctionId) -> Option<(&mut Link<P>, Duration)> {
        let Sender { peers, turnaround, links } = self.senders.get_mut(from.index())?.as_mut()?;
        Some((links[peers.index(to)].as_mut()?, *turnaround))
    }

    /// The driver of `from` gets `packet` for `to`.
    pub fn given(
        &mut self,
        now: Instant,
        from: FunctionId,
        to: FunctionId,
        packet: PacketRef,
        packets: &Packets<P>,
    ) {
        if packets.content(packet).rides() == Rides::Never {
            return;
        }
        let Some((Link { given, .. }, _)) = self.link(from, to) else { return };
        if given.len() == REMEMBERED {
            given.pop_front();
        }
        given.push_back((now, packets.copy(packet)));
    }

    /// The NIC of `from` builds a link-layer ACK for `to`.
    pub fn answered(&mut self, now: Instant, from: FunctionId, to: FunctionId) {
        if let Some((link, _)) = self.link(from, to) {
            link.answered_at = now;
        }
    }

    /// An ACK from `from` was reconstituted at `at`. The sender's driver must have got this ACK, at least a host
    /// turnaround before the link-layer ACK was built; ACKs of a flow must arrive in order and once.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn judge(&mut self, at: FunctionId, from: FunctionId, packet: &P) -> Result<(), &'static str> {
        let (Link { given, answered_at }, turnaround) = self.link(from, at).ok_or("from a stock station")?;
        let place = given.iter().position(|(_, ack)| ack == packet).ok_or("never sent")?;
        if given[place].0 + turnaround > *answered_at {
            return Err("rode before its host turnaround");
        }
        let mut position = 0;
        given.retain(|(_, ack)| {
            position += 1;
            position > place + 1 || AckPacket::flow_key(ack) != AckPacket::flow_key(packet)
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tacit_link::wifi::StationId;
    use tacit_packet::tcp::{Flags, Segment};
    use tacit_packet::units::{FlowId, HostId, SeqNumber};
    use tacit_packet::{IpHeader, Packet, Transport};

    use super::*;

    const AP: FunctionId = StationId::AP.first_function();
    const CLIENT: FunctionId = StationId(1).first_function();
    const STOCK: FunctionId = StationId(2).first_function();
    const TURNAROUND: Duration = Duration::from_micros(100);

    fn ack(flow: u32, number: u32) -> Packet {
        let segment = Segment { ack: SeqNumber(number), flags: Flags::ACK, ..Segment::default() };
        Packet {
            flow: FlowId(flow),
            source: HostId(2),
            destination: HostId(0),
            ip: IpHeader::default(),
            transport: Transport::Tcp(segment),
        }
    }

    fn at(us: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(us)
    }

    /// An oracle after a client gave its driver ACKs 1 to 3 of two flows at 0, and its NIC answered at `answered_us`.
    fn oracle(answered_us: u64) -> Oracle<Packet> {
        let speaks = |id| (id != STOCK).then_some(TURNAROUND);
        let mut oracle = Oracle::new(Functions::new(3, 1), &[], speaks).unwrap();
        for (flow, number) in (1..=2).flat_map(|flow| (1..=3).map(move |number| (flow, number))) {
            let mut packets = Packets::new(false);
            let packet = packets.insert(ack(flow, number));
            oracle.given(at(0), CLIENT, AP, packet, &packets);
        }
        oracle.answered(at(answered_us), CLIENT, AP);
        oracle
    }

    #[test]
    fn packets_given_pass_once_and_in_the_order_of_their_flow() {
        let mut oracle = oracle(100);
        assert_eq!(oracle.judge(AP, CLIENT, &ack(1, 1)), Ok(()));
        assert_eq!(oracle.judge(AP, CLIENT, &ack(1, 1)), Err("never sent"), "twice");
        assert_eq!(oracle.judge(AP, CLIENT, &ack(1, 3)), Ok(()), "the one between went as a packet");
        assert_eq!(oracle.judge(AP, CLIENT, &ack(1, 2)), Err("never sent"), "it comes too late");
        assert_eq!(oracle.judge(AP, CLIENT, &ack(2, 2)), Ok(()), "another flow");
    }

    #[test]
    fn packets_not_given_do_not_pass() {
        let mut oracle = oracle(100);
        assert_eq!(oracle.judge(AP, CLIENT, &ack(1, 4)), Err("never sent"));
        assert_eq!(oracle.judge(AP, CLIENT, &ack(3, 1)), Err("never sent"));
        assert_eq!(oracle.judge(CLIENT, AP, &ack(1, 1)), Err("never sent"), "the other way");
        assert_eq!(oracle.judge(AP, STOCK, &ack(1, 1)), Err("from a stock station"));
    }

    #[test]
    fn there_is_none_among_stock_stations() {
        assert!(Oracle::<Packet>::new(Functions::new(3, 2), &[], |_| None).is_none());
    }

    #[test]
    fn nothing_rides_before_its_host_can_have_made_it() {
        assert_eq!(oracle(99).judge(AP, CLIENT, &ack(1, 1)), Err("rode before its host turnaround"));
    }
}
