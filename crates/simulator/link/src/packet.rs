//! Handles of packets. A link moves handles; the caller that offered a packet keeps the content.

use tacit_packet::tcp::{AckInfo, Segment};
use tacit_packet::units::Bytes;
use tacit_packet::{Ecn, FlowKey};

/// How a packet is accounted for in airtime statistics; it must not affect its treatment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PayloadClass {
    /// Anything but a pure acknowledgment.
    #[default]
    Data,
    /// A pure transport acknowledgment.
    Ack,
}

/// A packet as links see it: what they decide by, and the place of its content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketRef {
    /// Its place in [`Holders`], and in the caller's store of contents.
    pub id: u32,
    /// Bytes of the IP packet.
    pub len: u32,
    /// Its flow and direction, for queues that separate flows; the default if flows cannot be distinguished.
    pub flow: FlowKey,
    /// Class for airtime statistics.
    pub class: PayloadClass,
    /// Its ECN field. Queues change it here; the content still has the field that the packet came with.
    pub ecn: Ecn,
}

impl PacketRef {
    /// Bytes of the IP packet.
    pub fn len(&self) -> Bytes {
        Bytes(u64::from(self.len))
    }

    /// Never true for an IP packet.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether the ECN field names the packet L4S: ECT(1) or CE (RFC 9331 section 2).
    pub fn is_l4s(&self) -> bool {
        matches!(self.ecn, Ecn::Ect1 | Ecn::Ce)
    }

    /// Sets the ECN field to congestion experienced if the packet is ECN-capable (RFC 3168 section 5); returns whether
    /// it did.
    pub fn mark_congestion(&mut self) -> bool {
        let capable = self.ecn != Ecn::NotEct;
        if capable {
            self.ecn = Ecn::Ce;
        }
        capable
    }
}

/// Marks a free place in [`Holders`]; the rest of the word is the next free place.
const FREE: u32 = 1 << 31;
/// There is no free place. No table grows that large.
const NO_FREE_PLACE: u32 = u32::MAX;

/// Counts the holders of each packet: queues, windows, reorder buffers, deliveries not yet polled. The place of a packet
/// without holders is free.
///
/// A link that is offered a packet takes over the caller's hold, and releases it if it drops the packet. A delivery
/// passes its hold to the caller. A copy of a handle that outlives the original needs a [hold](Holders::hold) of its own.
#[derive(Clone, Debug)]
pub struct Holders {
    /// The number of holders of the packet in each place, or [`FREE`] and the next free place.
    counts: Vec<u32>,
    first_free: u32,
    /// TCP segments, for [filters](crate::queue::AckFilter); empty without a filter.
    segments: Vec<Option<Segment>>,
}

impl Default for Holders {
    fn default() -> Self {
        Self { counts: Vec::new(), first_free: NO_FREE_PLACE, segments: Vec::new() }
    }
}

impl Holders {
    /// The place of a new packet, with one holder.
    #[inline]
    pub fn insert(&mut self) -> u32 {
        if self.first_free == NO_FREE_PLACE {
            self.counts.push(1);
            return self.counts.len() as u32 - 1;
        }
        let id = self.first_free & !FREE;
        self.first_free = std::mem::replace(&mut self.counts[id as usize], 1);
        id
    }

    /// Stores what filters need of the packet `id`: its TCP segment, `None` for other packets and those that cannot be
    /// inspected.
    pub fn set_segment(&mut self, id: u32, segment: Option<Segment>) {
        if self.segments.len() < self.counts.len() {
            self.segments.resize(self.counts.len(), None);
        }
        self.segments[id as usize] = segment;
    }

    /// What [`Holders::set_segment`] stored.
    pub fn segment(&self, packet: &PacketRef) -> Option<&Segment> {
        self.segments.get(packet.id as usize)?.as_ref()
    }

    /// The same, if it is a pure ACK with no options except timestamps and SACK.
    pub fn ack_info(&self, packet: &PacketRef) -> Option<AckInfo> {
        AckInfo::from_segment(self.segment(packet)?)
    }

    /// The packet has one more holder.
    #[inline]
    pub fn hold(&mut self, packet: PacketRef) {
        let count = &mut self.counts[packet.id as usize];
        debug_assert!(*count & FREE == 0, "packet {} is held", packet.id);
        *count += 1;
    }

    /// The packet has one holder less.
    #[inline]
    pub fn release(&mut self, packet: PacketRef) {
        let count = &mut self.counts[packet.id as usize];
        debug_assert!(*count & FREE == 0, "packet {} is held", packet.id);
        *count -= 1;
        if *count == 0 {
            *count = std::mem::replace(&mut self.first_free, FREE | packet.id);
        }
    }

    /// Verifies that each packet has just the holders that `each` shows.
    ///
    /// # Errors
    /// The first packet that has more or fewer.
    pub fn check(&self, each: impl FnOnce(&mut dyn FnMut(&PacketRef))) -> Result<(), String> {
        let mut found = vec![0_u32; self.counts.len()];
        each(&mut |packet| found[packet.id as usize] += 1);
        let counted = self.counts.iter().map(|count| if count & FREE == 0 { *count } else { 0 });
        match counted.zip(&found).enumerate().find(|(_, (counted, found))| counted != *found) {
            None => Ok(()),
            Some((id, (counted, found))) => Err(format!("{counted} hold packet {id}, and {found} have it")),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use tacit_between::hack::AckPacket;
    use tacit_packet::Packet;

    use super::*;

    /// Simulated packets, and their holders.
    #[derive(Default)]
    pub(crate) struct Store {
        pub holders: Holders,
        packets: Vec<Packet>,
    }

    impl Store {
        pub fn insert(&mut self, packet: Packet) -> PacketRef {
            let id = self.holders.insert();
            self.holders.set_segment(id, AckPacket::segment(&packet));
            let (len, flow, ecn) = (packet.len().0 as u32, packet.flow_key(), packet.ip.ecn);
            match self.packets.get_mut(id as usize) {
                Some(place) => *place = packet,
                None => self.packets.push(packet),
            }
            PacketRef { id, len, flow, ecn, ..PacketRef::default() }
        }

        /// The packet out of the hands of one holder.
        pub fn take(&mut self, packet: PacketRef) -> Packet {
            self.holders.release(packet);
            let mut taken = self.packets[packet.id as usize].clone();
            taken.ip.ecn = packet.ecn;
            taken
        }
    }

    #[test]
    fn a_place_is_free_once_nobody_holds_its_packet() {
        let mut holders = Holders::default();
        let [first, second] = [0, 1].map(|_| PacketRef { id: holders.insert(), ..PacketRef::default() });
        holders.hold(first);
        holders.release(first);
        assert_eq!(holders.insert(), 2, "one still holds the first");
        holders.release(second);
        holders.release(first);
        assert_eq!(
            [0, 1, 2].map(|_| holders.insert()),
            [first.id, second.id, 3],
            "the last to be free first"
        );
    }

    #[test]
    fn a_packet_that_leaks_or_that_nobody_holds_is_found() {
        let mut holders = Holders::default();
        let packet = PacketRef { id: holders.insert(), ..PacketRef::default() };
        assert_eq!(holders.check(|see| see(&packet)), Ok(()));
        assert_eq!(holders.check(|_| ()), Err("1 hold packet 0, and 0 have it".into()));
        holders.release(packet);
        assert_eq!(holders.check(|see| see(&packet)), Err("0 hold packet 0, and 1 have it".into()));
    }
}
