//! How many TCP ACKs a receiving kernel sends: declared, since a gain without its ACK ratio means
//! nothing.
//!
//! Left alone, a kernel that gets an aggregate as one burst acknowledges once per burst or so, and how
//! often depends on who gets the processor. `quickack` on the routes of a hop makes it one ACK per
//! packet, whatever the load; the hop can then thin them as a delaying receiver would.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use rustc_hash::FxHashMap;
use tacit_proto::units::{Duration, Instant};

use crate::datagram::{Content, Datagram};

/// Longest that a thinned ACK waits for its fellows: the least delayed-ACK timeout of Linux.
const DELAY: Duration = Duration::from_millis(40);
/// Connections thinned at once; what is beyond goes through as it is.
const MAX_FLOWS: usize = 1_024;

/// How many ACKs the receiving kernels of a hop send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AckMode {
    /// As many as they like.
    #[default]
    Kernel,
    /// One per packet: `quickack` on the hop's routes.
    PerPacket,
    /// One per so many packets: one per packet, thinned where they enter the hop.
    OneIn(NonZeroU32),
}

impl AckMode {
    /// True when the hop's routes say `quickack`.
    pub fn quick(self) -> bool {
        self != Self::Kernel
    }
}

impl fmt::Display for AckMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kernel => f.write_str("kernel"),
            Self::PerPacket => f.write_str("packet"),
            Self::OneIn(packets) => write!(f, "{packets}"),
        }
    }
}

impl FromStr for AckMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "kernel" => Ok(Self::Kernel),
            "packet" | "1" => Ok(Self::PerPacket),
            _ => match text.parse::<NonZeroU32>() {
                Ok(packets) if packets.get() <= 64 => Ok(Self::OneIn(packets)),
                _ => Err("kernel, packet, or a number from 1 to 64".to_owned()),
            },
        }
    }
}

/// Lets one ACK in so many through, as a receiver that delays its ACKs would send them.
///
/// Only ACKs that say nothing but "more of the same arrived" are held: an ACK with SACK blocks, one that
/// repeats the last, and every other packet of the flow passes at once, behind what was held.
#[derive(Debug)]
pub struct Thinner {
    packets: u32,
    flows: FxHashMap<u64, Flow>,
    /// No held ACK is due before this.
    next: Option<Instant>,
}

#[derive(Debug, Default)]
struct Flow {
    last_ack: Option<u32>,
    count: u32,
    held: Option<(Instant, Datagram)>,
}

impl Thinner {
    /// One that lets one in `packets` through.
    pub fn new(packets: NonZeroU32) -> Self {
        Self { packets: packets.get(), flows: FxHashMap::default(), next: None }
    }

    /// A receiver sends `packet`; what is to go on now is handed to `pass`, in order.
    pub fn offer(&mut self, now: Instant, packet: Datagram, pass: &mut impl FnMut(Datagram)) {
        let summary = *packet.summary();
        let Content::Tcp(tcp) = summary.content else { return pass(packet) };
        if !self.flows.contains_key(&summary.flow) && self.flows.len() >= MAX_FLOWS {
            return pass(packet);
        }
        let flow = self.flows.entry(summary.flow).or_default();
        let advances = match (flow.last_ack, tcp.ack) {
            (Some(last), Some(ack)) => (ack.wrapping_sub(last) as i32) > 0,
            _ => false,
        };
        flow.last_ack = tcp.ack;
        if tcp.is_pure_ack() && !tcp.sack && advances {
            flow.count += 1;
            if flow.count < self.packets {
                let due = flow.held.as_ref().map_or(now + DELAY, |(due, _)| *due);
                flow.held = Some((due, packet));
                self.next = Some(self.next.map_or(due, |next| next.min(due)));
                return;
            }
            // This one says everything the held ones said.
            flow.held = None;
        }
        if let Some((_, held)) = flow.held.take() {
            pass(held);
        }
        flow.count = 0;
        if tcp.flagged {
            self.flows.remove(&summary.flow);
        }
        pass(packet);
    }

    /// When the next held ACK has waited for too long.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.next
    }

    /// Lets go what has waited for too long.
    pub fn handle_timeout(&mut self, now: Instant, pass: &mut impl FnMut(Datagram)) {
        if self.next.is_none_or(|next| next > now) {
            return;
        }
        let mut due: Vec<(Instant, u64)> = Vec::new();
        self.next = None;
        #[expect(clippy::disallowed_methods, clippy::iter_over_hash_type, reason = "sorted below")]
        for (flow, state) in self.flows.iter() {
            match &state.held {
                Some((at, _)) if *at <= now => due.push((*at, *flow)),
                Some((at, _)) => self.next = Some(self.next.map_or(*at, |next| next.min(*at))),
                None => {}
            }
        }
        due.sort_unstable();
        for (_, flow) in due {
            let Some(state) = self.flows.get_mut(&flow) else { continue };
            state.count = 0;
            if let Some((_, held)) = state.held.take() {
                pass(held);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use etherparse::PacketBuilder;
    use tacit_proto::units::HostId;

    use super::*;

    fn segment(ack: u32, payload: &[u8]) -> Datagram {
        let builder = PacketBuilder::ipv4([198, 18, 0, 2], [198, 18, 0, 1], 64);
        let mut octets = Vec::new();
        builder.tcp(40_000, 80, 7, 500).ack(ack).write(&mut octets, payload).unwrap();
        Datagram::new(&octets, HostId(0))
    }

    fn ack_of(packet: &Datagram) -> u32 {
        let Content::Tcp(tcp) = packet.summary().content else { panic!("TCP") };
        tcp.ack.unwrap()
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// Offers pure ACKs with these numbers; returns the numbers that pass.
    fn offer(thinner: &mut Thinner, acks: &[u32]) -> Vec<u32> {
        let mut passed = Vec::new();
        for ack in acks {
            thinner.offer(at(0), segment(*ack, b""), &mut |packet| passed.push(ack_of(&packet)));
        }
        passed
    }

    #[test]
    fn one_in_two_passes_and_says_it_all() {
        let mut thinner = Thinner::new(NonZeroU32::new(2).unwrap());
        // The first tells the thinner where the flow stands.
        assert_eq!(offer(&mut thinner, &[100, 200, 300, 400, 500]), [100, 300, 500]);
    }

    #[test]
    fn a_repeated_ack_passes_at_once_behind_what_was_held() {
        let mut thinner = Thinner::new(NonZeroU32::new(4).unwrap());
        assert_eq!(offer(&mut thinner, &[100, 200, 200, 200]), [100, 200, 200, 200]);
    }

    #[test]
    fn data_passes_at_once_behind_what_was_held() {
        let mut thinner = Thinner::new(NonZeroU32::new(4).unwrap());
        assert_eq!(offer(&mut thinner, &[100, 200]), [100]);
        let mut lens = Vec::new();
        thinner.offer(at(1), segment(200, b"data"), &mut |packet| lens.push(packet.octets().len()));
        assert_eq!(lens, [40, 44]);
    }

    #[test]
    fn a_held_ack_goes_after_the_delay() {
        let mut thinner = Thinner::new(NonZeroU32::new(4).unwrap());
        offer(&mut thinner, &[100, 200]);
        assert_eq!(thinner.poll_timeout(), Some(at(40)));
        let mut passed = Vec::new();
        thinner.handle_timeout(at(39), &mut |packet| passed.push(ack_of(&packet)));
        assert!(passed.is_empty());
        thinner.handle_timeout(at(40), &mut |packet| passed.push(ack_of(&packet)));
        assert_eq!(passed, [200]);
        assert_eq!(thinner.poll_timeout(), None);
    }

    #[test]
    fn modes_are_read_and_written() {
        for (text, mode) in [("kernel", AckMode::Kernel), ("packet", AckMode::PerPacket)] {
            assert_eq!(text.parse(), Ok(mode));
            assert_eq!(mode.to_string(), text);
        }
        assert_eq!("2".parse(), Ok(AckMode::OneIn(NonZeroU32::new(2).unwrap())));
        for wrong in ["0", "65", "", "none"] {
            assert!(wrong.parse::<AckMode>().is_err(), "{wrong}");
        }
    }
}
