//! What a station stores for one destination, on all links: the upper MAC of multi-link operation (802.11be clause
//! 35.3). There is one for each destination and category, and the link that uses it holds it.

use std::collections::VecDeque;

use super::fates::Fates;
use super::mpdu::Mpdu;
use super::sent_buffer::SentBuffer;
use crate::packet::PacketRef;
use crate::queue::{Queue, QueueConfig};
use crate::wifi::link_set::LinkSet;

/// The queue and the MPDUs in the Block Ack window.
#[derive(Clone, Debug)]
pub(crate) struct UpperMac {
    pub(super) queue: Queue,
    pub window: VecDeque<Mpdu>,
    pub(super) next_sequence: u16,
    /// MPDUs in the window that wait to be sent.
    pub(super) waiting: u32,
    /// The last MPDU given up that no acknowledged request has announced. MPDUs after it may wait in the recipient's
    /// reorder buffer.
    pub(super) untold: Option<u16>,
    /// Whether pure ACKs that leave the window are kept for
    /// [`poll_settled_ack`](super::originator::Originator::poll_settled_ack).
    pub(super) reports_acks: bool,
    pub(super) settled_acks: VecDeque<(PacketRef, bool)>,
    /// Outcomes of packets, if a driver asked for them.
    pub fates: Fates,
    /// Vectors of A-MSDUs that left the window, for reuse.
    pub(super) spare: Vec<Vec<PacketRef>>,
    /// Of several links, those on which a link-layer ACK with compressed TCP ACKs is on the air. No packet may overtake it on
    /// another, because the recipient decompresses in the order of sending. Ours.
    pub appending: LinkSet,
    /// Of several links, those whose PPDU for that destination is on the air.
    pub(super) sending: LinkSet,
    /// The last acknowledgment from a client with one radio did not arrive, on any link: the next PPDU says so by its SYNC
    /// bit, as if there were one link. Ours.
    pub(super) unheard: bool,
    /// Sent MPDUs that the recipient may still request.
    pub(super) sent: Option<Box<SentBuffer>>,
}

impl UpperMac {
    /// With an empty queue and window.
    pub fn new(queue: QueueConfig) -> Self {
        Self {
            queue: Queue::new(queue),
            window: VecDeque::new(),
            next_sequence: 0,
            waiting: 0,
            untold: None,
            reports_acks: false,
            settled_acks: VecDeque::new(),
            fates: Fates::default(),
            spare: Vec::new(),
            appending: LinkSet::NONE,
            sending: LinkSet::NONE,
            unheard: false,
            sent: None,
        }
    }

    /// WinStartO: the first sequence number not settled.
    pub fn window_start(&self) -> u16 {
        self.window.front().map_or(self.next_sequence, |mpdu| mpdu.sequence)
    }
}
