//! Pure TCP ACKs that wait before a queue, so that later ones replace them: as Wi-Fi drivers do it, and as `tacit thin`
//! does.
//!
//! An ACK is dropped only for a later one that says as much: of each flow the newest is held, and leaves when its time
//! is over, in any case.

mod thin;
mod uplink;

use std::collections::BTreeMap;

pub use self::thin::ThinFlow;
pub use self::uplink::{QueueCounts, Uplink};
use crate::hack::AckPacket;
use tacit_packet::FlowKey;
use tacit_packet::tcp::{AckInfo, Flags, Segment};
use tacit_packet::units::{BitRate, Duration, Instant};

/// Most flows that are tracked. Beyond that, a new one takes the place of the one that was silent for longest.
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

/// Which ACKs are held, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldLaw {
    /// A fixed number and time, as in drivers: every plain ACK that advances is held.
    ///
    /// Real drivers do not hold ACKs with options, which means none if timestamps are used; here only ACKs with SACK
    /// blocks are not held. Real drivers also inspect only IPv4.
    Fixed(AckHoldConfig),
    /// As long as the uplink is busy with earlier ACKs, where an ACK would wait in the queue instead; at most a
    /// quarter of the round trip. Nothing but ACKs overtakes one that waits. The uplink's rate is learned from its [queue](AckHold::observe). ACKs that say more
    /// than a number pass, and so do those of the first 100 segments.
    Thin,
}

/// Holds plain pure ACKs, one per flow: the next one that [covers](AckInfo::covers) it replaces it. Any other packet of
/// the flow passes at once, after the held ACK.
///
/// After any call that takes the time, [`AckHold::poll_timeout`] says when [`AckHold::handle_timeout`] is due.
#[derive(Clone, Debug)]
pub struct AckHold<P> {
    law: HoldLaw,
    /// By flow key.
    flows: BTreeMap<FlowKey, Flow<P>>,
    uplink: Uplink,
    /// No held ACK is due before this.
    next: Option<Instant>,
    dropped: u64,
}

#[derive(Clone, Debug)]
struct Flow<P> {
    state: State,
    used_at: Instant,
    held: Option<Held<P>>,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Fixed {
        config: AckHoldConfig,
        last: AckInfo,
        /// ACKs held since one was passed on.
        count: u32,
    },
    Thin(ThinFlow),
}

#[derive(Clone, Debug)]
struct Held<P> {
    /// When the first of those that it stands for came.
    since: Instant,
    /// When it leaves at the latest.
    due: Instant,
    segment: Segment,
    len: u32,
    packet: P,
}

/// A packet that a host sends, as [`AckHold`] sees it.
#[derive(Clone, Copy, Debug)]
pub struct Offered {
    /// Its flow and direction.
    pub key: FlowKey,
    /// Its fields; `None` if it is not TCP, or has options or bits that are not understood.
    pub segment: Option<Segment>,
    /// Bytes of the IP packet.
    pub len: u32,
}

impl Offered {
    /// The view of `packet`.
    pub fn from_packet(packet: &impl AckPacket, len: u32) -> Self {
        Self { key: packet.flow_key(), segment: packet.segment(), len }
    }
}

impl<P> AckHold<P> {
    /// Holds nothing yet.
    pub fn new(law: HoldLaw) -> Self {
        Self { law, flows: BTreeMap::new(), uplink: Uplink::default(), next: None, dropped: 0 }
    }

    /// The same, for an uplink of this rate, whose queue need not be [observed](AckHold::observe).
    #[must_use]
    pub fn with_uplink(self, rate: BitRate) -> Self {
        Self { uplink: Uplink::of_rate(rate), ..self }
    }

    /// The uplink is in this state, as another core has observed it.
    pub fn set_uplink(&mut self, uplink: Uplink) {
        self.uplink = uplink;
        self.next = self.earliest();
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// The host sends `packet`, which may wait for `hold` by the decision of another core; `None` if it must pass. Calls
    /// `pass` and returns as [`offer`](AckHold::offer) does.
    pub fn offer_decided(
        &mut self,
        now: Instant,
        offered: Offered,
        hold: Option<Duration>,
        packet: P,
        pass: &mut impl FnMut(P),
    ) -> Option<P> {
        self.admit(now, offered.key, offered.segment.as_ref(), pass);
        self.place(now, offered, hold, packet, pass)
    }

    /// A packet of the flow `key` that is no ACK has gone to the queue before what waits. All ACKs leave except that of
    /// `key`, which is returned: the packet has said all that it says.
    pub fn overtaken(&mut self, now: Instant, key: FlowKey, pass: &mut impl FnMut(P)) -> Option<P> {
        let held = self.flows.get_mut(&key).and_then(|flow| flow.held.take());
        self.release_all(now, pass);
        self.dropped += u64::from(held.is_some());
        held.map(|held| held.packet)
    }

    /// The host sends `packet`. Calls `pass` with the packets to be queued now, in order; returns the ACK that it
    /// replaces.
    pub fn offer(
        &mut self,
        now: Instant,
        offered: Offered,
        packet: P,
        pass: &mut impl FnMut(P),
    ) -> Option<P> {
        let Offered { key, segment, .. } = offered;
        let ack = segment.as_ref().and_then(AckInfo::from_segment);
        if ack.is_none() && self.law == HoldLaw::Thin {
            // In a queue, ACKs would leave before the data behind them.
            self.release_all(now, pass);
        }
        self.admit(now, key, segment.as_ref(), pass);
        let hold = self.flows.get_mut(&key).zip(segment.as_ref()).and_then(|(flow, segment)| {
            flow.used_at = now;
            flow.state.longest_hold(now, &self.uplink, segment, ack)
        });
        self.place(now, offered, hold, packet, pass)
    }

    /// Holds `packet` for as long as `hold` says, or passes it.
    fn place(
        &mut self,
        now: Instant,
        offered: Offered,
        hold: Option<Duration>,
        packet: P,
        pass: &mut impl FnMut(P),
    ) -> Option<P> {
        let Offered { key, segment, len } = offered;
        let ack = segment.as_ref().and_then(AckInfo::from_segment);
        let uplink = &mut self.uplink;
        let Some((flow, segment)) = self.flows.get_mut(&key).zip(segment) else {
            // Nothing overtakes a held ACK of its flow, even if it is not understood.
            if let Some(flow) = self.flows.get_mut(&key) {
                flow.release(now, uplink, pass);
            }
            uplink.note_queued(now, len);
            uplink.note_data();
            pass(packet);
            return None;
        };
        // The newest ACK says all that this one would have said.
        let replaced = flow.held.take_if(|held| {
            ack.zip(AckInfo::from_segment(&held.segment)).is_some_and(|(newest, held)| newest.replaces(&held))
        });
        self.dropped += u64::from(replaced.is_some());
        // One that cannot be replaced, by an ACK whose timestamps go back for instance, leaves before the newest.
        if let Some(longest) = hold.filter(|_| flow.held.is_none()) {
            let (since, due) = replaced.as_ref().map_or((now, now + longest), |held| {
                // One that replaces another one has waited as long.
                (held.since, held.due.min(now + longest))
            });
            flow.held = Some(Held { since, due, segment, len, packet });
            let leaves = if flow.state.waits_for_uplink() { due.min(uplink.free_at()) } else { due };
            self.next = Some(self.next.map_or(leaves, |next| next.min(leaves)));
        } else {
            flow.release(now, uplink, pass);
            flow.state.note_passed(now, &segment);
            uplink.note_queued(now, len);
            if ack.is_none() {
                uplink.note_data();
            }
            pass(packet);
            if segment.flags.contains(Flags::RST) {
                self.flows.remove(&key);
            }
        }
        replaced.map(|held| held.packet)
    }

    /// Tracks the flow `key` from `segment` on, if that may be its first. A new flow takes the place of the one that was
    /// silent for longest if there are as many as allowed; the ACK of that one leaves.
    fn admit(&mut self, now: Instant, key: FlowKey, segment: Option<&Segment>, pass: &mut impl FnMut(P)) {
        let Some(segment) = segment.filter(|_| !self.flows.contains_key(&key)) else { return };
        let Some(state) = State::new(self.law, segment) else { return };
        if self.flows.len() >= MAX_FLOWS {
            let oldest = self.flows.iter().min_by_key(|(_, flow)| flow.used_at).map(|(key, _)| *key);
            if let Some(mut forgotten) = oldest.and_then(|key| self.flows.remove(&key)) {
                forgotten.release(now, &mut self.uplink, pass);
            }
        }
        self.flows.insert(key, Flow { state, used_at: now, held: None });
    }

    /// `segment` arrived for the host that sends the flow `answered`.
    pub fn on_reverse_segment(&mut self, now: Instant, answered: FlowKey, segment: &Segment) {
        if let Some(Flow { state: State::Thin(flow), .. }) = self.flows.get_mut(&answered) {
            flow.on_reverse_segment(now, segment);
        }
    }

    /// Whether it learns from [`AckHold::observe`].
    pub fn wants_counts(&self) -> bool {
        self.law == HoldLaw::Thin
    }

    /// The uplink's queue is as `counts` say. Held ACKs may be due at once.
    pub fn observe(&mut self, now: Instant, counts: QueueCounts) {
        self.uplink.observe(now, counts);
        // They were to wait for a time that has changed.
        self.next = self.earliest();
    }

    /// The ACKs that it holds.
    pub fn iter(&self) -> impl Iterator<Item = &P> {
        self.flows.values().filter_map(|flow| flow.held.as_ref()).map(|held| &held.packet)
    }

    /// When the next held ACK is due, or earlier.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.next
    }

    /// Releases ACKs that are due by `now`.
    pub fn handle_timeout(&mut self, now: Instant, pass: &mut impl FnMut(P)) {
        if self.next.is_none_or(|next| next > now) {
            return;
        }
        let uplink = &mut self.uplink;
        for flow in self.flows.values_mut() {
            if flow.held.as_ref().is_some_and(|held| held.due <= now) {
                flow.release(now, uplink, pass);
            }
        }
        while self.law == HoldLaw::Thin && self.uplink.free_at() <= now && self.release_first(now, pass) {}
        self.next = self.earliest();
    }

    /// Releases the ACK that has waited for longest; returns false if none waits.
    fn release_first(&mut self, now: Instant, pass: &mut impl FnMut(P)) -> bool {
        let waiting = self.flows.values_mut().filter_map(|flow| Some((flow.held.as_ref()?.since, flow)));
        let Some((_, flow)) = waiting.min_by_key(|(since, _)| *since) else { return false };
        flow.release(now, &mut self.uplink, pass);
        true
    }

    /// Releases all ACKs, in the order in which they began to wait.
    fn release_all(&mut self, now: Instant, pass: &mut impl FnMut(P)) {
        if self.next.take().is_some() {
            while self.release_first(now, pass) {}
        }
    }

    /// When the first of the held ACKs leaves, unless the uplink gets other packets before.
    fn earliest(&self) -> Option<Instant> {
        let due = self.flows.values().filter_map(|flow| flow.held.as_ref()).map(|held| held.due).min()?;
        Some(match self.law {
            HoldLaw::Fixed(_) => due,
            HoldLaw::Thin => due.min(self.uplink.free_at()),
        })
    }

    /// ACKs replaced by others, since the start.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

impl State {
    /// For the flow of `segment`; `None` if it is not tracked yet.
    fn new(law: HoldLaw, segment: &Segment) -> Option<Self> {
        match law {
            HoldLaw::Fixed(config) => {
                let last = AckInfo::from_segment(segment).filter(AckInfo::is_plain)?;
                Some(Self::Fixed { config, last, count: 0 })
            }
            HoldLaw::Thin => Some(Self::Thin(ThinFlow::default())),
        }
    }

    /// Whether its ACKs leave as soon as the uplink is idle.
    fn waits_for_uplink(&self) -> bool {
        matches!(self, Self::Thin(_))
    }

    /// The host sends `segment`, which has the contents `ack` if it is a pure ACK. Returns how long it may wait; `None` if
    /// it must pass.
    fn longest_hold(
        &mut self,
        now: Instant,
        uplink: &Uplink,
        segment: &Segment,
        ack: Option<AckInfo>,
    ) -> Option<Duration> {
        match self {
            Self::Fixed { config, last, count } => {
                let ack = ack.filter(AckInfo::is_plain)?;
                let before = std::mem::replace(last, ack);
                *count += 1;
                (ack.replaces(&before) && *count < config.ratio).then_some(config.delay)
            }
            Self::Thin(flow) => flow.longest_hold(now, uplink, segment, ack.as_ref()),
        }
    }

    /// `segment` goes to the queue.
    fn note_passed(&mut self, now: Instant, segment: &Segment) {
        match self {
            Self::Fixed { count, .. } => *count = 0,
            Self::Thin(flow) => flow.note_passed(now, segment),
        }
    }
}

impl<P> Flow<P> {
    /// The held ACK goes to the queue.
    fn release(&mut self, now: Instant, uplink: &mut Uplink, pass: &mut impl FnMut(P)) {
        if let Some(held) = self.held.take() {
            self.state.note_passed(now, &held.segment);
            uplink.note_queued(now, held.len);
            pass(held.packet);
        }
    }
}

#[cfg(test)]
mod tests {
    use tacit_packet::tcp::{Flags, Segment};
    use tacit_packet::units::{FlowId, HostId, SeqNumber};
    use tacit_packet::{IpHeader, Packet, Transport};

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
            hold.offer(at(0), Offered::from_packet(&packet, 52), packet, &mut |packet| {
                passed.push(number(&packet));
            });
        }
        passed
    }

    fn hold(ratio: u32) -> AckHold<Packet> {
        AckHold::new(HoldLaw::Fixed(AckHoldConfig { ratio, delay: Duration::from_millis(5) }))
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
        let replaced =
            hold.offer(at(3), Offered::from_packet(&packet, 52), packet, &mut |_| panic!("it is held"));
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
    fn the_flow_that_was_silent_for_longest_gives_its_place_and_its_ack() {
        let mut hold = hold(9);
        let firsts: Vec<_> = (0..MAX_FLOWS as u32).map(|flow| (flow, 100, 0)).collect();
        assert_eq!(offer(&mut hold, &firsts).len(), MAX_FLOWS);
        let mut passed = Vec::new();
        for (ms, flow, ack) in [(1, 0, 200), (2, 5_000, 7), (3, 5_001, 8)] {
            // All others but the first two speak in between.
            let others = (2..MAX_FLOWS as u32).map(|flow| packet(flow, 100 + ms, 1));
            for packet in others.take(if ms == 2 { 0 } else { MAX_FLOWS }).chain([packet(flow, ack, 0)]) {
                let offered = Offered::from_packet(&packet, 52);
                hold.offer(at(ms.into()), offered, packet, &mut |packet| passed.push(number(&packet)));
            }
        }
        passed.retain(|number| *number >= 200 || *number < 100);
        assert_eq!(passed, [7, 200, 8], "the second flow was silent and held nothing, then the first");
        assert_eq!(hold.flows.len(), MAX_FLOWS);
    }
}
