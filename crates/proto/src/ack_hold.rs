//! A driver that holds pure TCP ACKs before its queue, so that later ones can replace them.

use std::collections::BTreeMap;

use crate::FlowKey;
use crate::tcp::AckInfo;
use crate::units::{Duration, Instant};

/// Most flows that are tracked. Beyond that, flows that hold nothing are forgotten; if all hold an ACK, packets of a
/// new flow pass unchanged.
const MAX_FLOWS: usize = 1_024;

/// Limits for held ACKs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckHoldConfig {
    /// One in this number is passed on.
    pub ratio: u32,
    /// Longest time that an ACK is held.
    pub delay: Duration,
}

impl AckHoldConfig {
    /// Typical driver settings: one in 3 to 15, 5 to 10 ms.
    pub const USUAL: Self = Self { ratio: 8, delay: Duration::from_millis(5) };
}

/// Holds plain pure ACKs, one per flow: the next one that [covers](AckInfo::covers) it replaces it. Any other packet of
/// the flow passes at once, after the held ACK.
///
/// Real drivers do not hold ACKs with options, which means none if timestamps are used; here only ACKs with SACK blocks
/// are not held. Real drivers also inspect only IPv4.
#[derive(Clone, Debug)]
pub struct AckHold<P> {
    config: AckHoldConfig,
    /// By flow key.
    flows: BTreeMap<FlowKey, Flow<P>>,
    /// No held ACK is due before this.
    next: Option<Instant>,
    dropped: u64,
}

#[derive(Clone, Debug)]
struct Flow<P> {
    last: AckInfo,
    /// ACKs held since one was passed on.
    count: u32,
    held: Option<(Instant, P)>,
}

impl<P> AckHold<P> {
    /// A driver that holds nothing.
    pub fn new(config: AckHoldConfig) -> Self {
        Self { config, flows: BTreeMap::new(), next: None, dropped: 0 }
    }

    /// The host sends `packet` of the flow `key`; `ack` has its fields if it is a pure TCP ACK with no options except
    /// timestamps and SACK. Calls `pass` with the packets to be queued now, in order; returns the ACK that it replaces.
    pub fn offer(
        &mut self,
        now: Instant,
        (key, ack): (FlowKey, Option<AckInfo>),
        packet: P,
        pass: &mut impl FnMut(P),
    ) -> Option<P> {
        let ack = ack.filter(AckInfo::is_plain);
        let Some(flow) = self.flows.get_mut(&key) else {
            ack.into_iter().for_each(|ack| self.remember(key, ack));
            pass(packet);
            return None;
        };
        let advances = ack.filter(|ack| ack.ack.after(flow.last.ack) && ack.covers(&flow.last)).is_some();
        flow.last = ack.unwrap_or(flow.last);
        if !advances {
            flow.release(pass);
            pass(packet);
            return None;
        }
        flow.count += 1;
        let (due, replaced) = flow.held.take().unzip();
        self.dropped += u64::from(due.is_some());
        if flow.count < self.config.ratio {
            let due = due.unwrap_or(now + self.config.delay);
            flow.held = Some((due, packet));
            self.next = Some(self.next.map_or(due, |next| next.min(due)));
        } else {
            flow.count = 0;
            pass(packet);
        }
        replaced
    }

    fn remember(&mut self, key: FlowKey, last: AckInfo) {
        if self.flows.len() >= MAX_FLOWS {
            self.flows.retain(|_, flow| flow.held.is_some());
        }
        if self.flows.len() < MAX_FLOWS {
            self.flows.insert(key, Flow { last, count: 0, held: None });
        }
    }

    /// The ACKs that it holds.
    pub fn iter(&self) -> impl Iterator<Item = &P> {
        self.flows.values().filter_map(|flow| flow.held.as_ref()).map(|(_, packet)| packet)
    }

    /// When the next held ACK is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.next
    }

    /// Releases ACKs that are due by `now`.
    pub fn handle_timeout(&mut self, now: Instant, pass: &mut impl FnMut(P)) {
        if self.next.is_none_or(|next| next > now) {
            return;
        }
        self.next = None;
        for flow in self.flows.values_mut() {
            match &flow.held {
                Some((due, _)) if *due <= now => flow.release(pass),
                Some((due, _)) => self.next = Some(self.next.map_or(*due, |next| next.min(*due))),
                None => {}
            }
        }
    }

    /// ACKs replaced by others, since the start.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

impl<P> Flow<P> {
    fn release(&mut self, pass: &mut impl FnMut(P)) {
        self.count = 0;
        if let Some((_, held)) = self.held.take() {
            pass(held);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::packet::{IpHeader, Packet, Transport};
    use crate::tcp::{Flags, Segment};
    use crate::units::{FlowId, HostId, SeqNumber};

    use super::*;

    fn packet(flow: u32, number: u32, payload_len: u32) -> Packet {
        let segment =
            Segment { ack: SeqNumber(number), flags: Flags::ACK, payload_len, ..Segment::default() };
        Packet {
            flow: FlowId(flow),
            source: HostId(0),
            destination: HostId(1),
            ip: IpHeader::default(),
            transport: Transport::Tcp(segment),
        }
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn number(packet: &Packet) -> u32 {
        let Transport::Tcp(segment) = packet.transport else { unreachable!("only TCP was offered") };
        segment.ack.0
    }

    /// Offers packets (flow, number, payload) at the same time; returns the numbers of those that pass.
    fn offer(hold: &mut AckHold<Packet>, packets: &[(u32, u32, u32)]) -> Vec<u32> {
        let mut passed = Vec::new();
        for (flow, number_of, payload_len) in packets {
            let packet = packet(*flow, *number_of, *payload_len);
            let of = (packet.flow_key(), packet.ack_info());
            hold.offer(at(0), of, packet, &mut |packet| passed.push(number(&packet)));
        }
        passed
    }

    fn hold(ratio: u32) -> AckHold<Packet> {
        AckHold::new(AckHoldConfig { ratio, delay: Duration::from_millis(5) })
    }

    #[test]
    fn one_in_three_passes_and_says_it_all() {
        let mut hold = hold(3);
        // The first ACK only establishes the flow's state.
        let acks = [(1, 100, 0), (1, 200, 0), (1, 300, 0), (2, 7, 0), (1, 400, 0), (1, 500, 0)];
        assert_eq!(offer(&mut hold, &acks), [100, 7, 400]);
        assert_eq!(hold.dropped(), 2);
    }

    #[test]
    fn duplicates_and_data_pass_behind_what_was_held() {
        assert_eq!(offer(&mut hold(9), &[(1, 100, 0), (1, 200, 0), (1, 200, 0)]), [100, 200, 200]);
        assert_eq!(offer(&mut hold(9), &[(1, 100, 0), (1, 200, 0), (1, 200, 50)]), [100, 200, 200]);
    }

    #[test]
    fn a_held_ack_goes_after_the_delay() {
        let mut hold = hold(9);
        assert_eq!(offer(&mut hold, &[(1, 100, 0), (1, 200, 0), (1, 300, 0)]), [100]);
        assert_eq!(hold.poll_timeout(), Some(at(5)), "counted from the first that was held");
        let mut passed = Vec::new();
        hold.handle_timeout(at(4), &mut |packet| passed.push(number(&packet)));
        hold.handle_timeout(at(5), &mut |packet| passed.push(number(&packet)));
        assert_eq!((passed, hold.poll_timeout()), (vec![300], None));
    }

    /// The limit is per flow: an ACK that replaces another one inherits its waiting time.
    #[test]
    fn a_later_ack_does_not_begin_the_wait_anew() {
        let mut hold = hold(9);
        assert_eq!(offer(&mut hold, &[(1, 100, 0), (1, 200, 0)]), [100]);
        let packet = packet(1, 300, 0);
        let of = (packet.flow_key(), packet.ack_info());
        let replaced = hold.offer(at(3), of, packet, &mut |_| panic!("it is held"));
        assert_eq!(replaced.map(|packet| number(&packet)), Some(200));
        let mut passed = Vec::new();
        hold.handle_timeout(at(5), &mut |packet| passed.push(number(&packet)));
        assert_eq!(passed, [300]);
    }

    /// Counting starts again at each release, for any reason.
    #[test]
    fn an_ack_sent_for_another_reason_restarts_the_count() {
        let mut hold = hold(3);
        let acks =
            [(1, 100, 0), (1, 200, 0), (1, 300, 0), (1, 300, 50), (1, 400, 0), (1, 500, 0), (1, 600, 0)];
        assert_eq!(offer(&mut hold, &acks), [100, 300, 300, 600]);
    }

    #[test]
    fn a_flow_that_holds_nothing_gives_its_place_to_a_new_one() {
        let mut hold = hold(9);
        let firsts: Vec<_> = (0..MAX_FLOWS as u32).map(|flow| (flow, 100, 0)).collect();
        assert_eq!(offer(&mut hold, &firsts).len(), MAX_FLOWS);
        assert_eq!(
            offer(&mut hold, &[(0, 200, 0), (5_000, 100, 0), (5_000, 200, 0)]),
            [100],
            "one is held of each"
        );
        assert_eq!(hold.flows.len(), 2, "the others are forgotten");
    }
}
