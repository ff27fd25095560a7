//! The NIC's part of TCP/HACK (paper section 3.3.1): opaque bytes per destination.

use std::collections::VecDeque;

/// A received PPDU that the NIC is about to acknowledge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SolicitedBy {
    /// One MPDU outside an A-MPDU, with this MAC sequence number.
    Single {
        /// MAC sequence number.
        sequence: u16,
    },
    /// An A-MPDU with at least one received MPDU.
    Ampdu,
    /// A Block Ack Request.
    BlockAckRequest,
}

/// What a link-layer ACK answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Solicited {
    /// The PPDU.
    pub by: SolicitedBy,
    /// Its SYNC bit.
    pub sync: bool,
    /// An acknowledgment with frames to the same peer is on the air on another link.
    pub overlaps: bool,
}

/// What the NIC did when it acknowledged; reported with the receive interrupt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Response {
    /// The peer has received the appended frames, which are removed.
    pub proven: bool,
    /// The first of the appended frames that the peer has received, which are removed; of several links, fewer than all may be
    /// known.
    pub proven_frames: u32,
    /// Frames sent for the first time.
    pub fresh_frames: u32,
    /// Bytes appended, repeated ones included.
    pub appended_bytes: u32,
    /// Frames still wait because there was no room.
    pub holds_more: bool,
}

/// Frames of compressed ACKs for one destination.
#[derive(Clone, Debug, Default)]
struct Peer {
    /// Sent, but not known to have arrived, and the length of each frame.
    retained: Vec<u8>,
    retained_lens: VecDeque<usize>,
    /// Handed over by the driver but not sent, and the length of each frame.
    fresh: Vec<u8>,
    fresh_lens: VecDeque<usize>,
    /// The first frames of `retained` that the last acknowledgment on each link carried: the next PPDU there proves them.
    carried: [usize; MOST_LINKS],
    /// On each link, the MAC sequence number of the last acknowledged single MPDU; `None` after a Block Ack.
    last_single: [Option<u16>; MOST_LINKS],
}

/// Most links of a multi-link device: one in each band.
pub const MOST_LINKS: usize = 3;

/// The table of descriptors.
#[derive(Clone, Debug, Default)]
pub struct Nic {
    peers: Vec<Peer>,
    /// Most bytes appended to one acknowledgment, if there is a limit.
    limit: Option<usize>,
}

impl Nic {
    /// A NIC with `peers` destinations, numbered from 0.
    pub fn new(peers: usize) -> Self {
        Self { peers: vec![Peer::default(); peers], limit: None }
    }

    /// Splits waiting frames over several acknowledgments, so that none carries more than `bytes` (paper section 3.3.2,
    /// footnote 7: no longer than AIFS protects). A larger frame is sent alone.
    pub fn limit_appended(&mut self, bytes: usize) {
        self.limit = Some(bytes);
    }

    /// Adds a frame for `peer`, which can be sent from now on.
    pub fn add(&mut self, peer: usize, frame: &[u8]) {
        let peer = &mut self.peers[peer];
        peer.fresh.extend_from_slice(frame);
        peer.fresh_lens.push_back(frame.len());
    }

    /// Removes the frames that were not sent.
    pub fn clear_fresh(&mut self, peer: usize) {
        let peer = &mut self.peers[peer];
        peer.fresh.clear();
        peer.fresh_lens.clear();
    }

    /// Removes the frames that were sent and not proven (paper figure 7).
    pub fn clear_retained(&mut self, peer: usize) {
        let peer = &mut self.peers[peer];
        peer.retained.clear();
        peer.retained_lens.clear();
        peer.carried = [0; MOST_LINKS];
    }

    /// [`respond_on`](Self::respond_on) the only link.
    pub fn respond(
        &mut self,
        peer: usize,
        heard: SolicitedBy,
        sync: bool,
        room: Option<usize>,
        appended: &mut Vec<u8>,
    ) -> Response {
        self.respond_on(0, peer, Solicited { by: heard, sync, overlaps: false }, room, appended)
    }

    /// Called one SIFS after a PPDU from `peer` on `link`: decides which frames the PPDU proves, and appends the unproven and the
    /// new ones to `appended`.
    ///
    /// A PPDU proves what the last acknowledgment on its link carried. On another link it may have been built before that
    /// acknowledgment ended. So acknowledgments on each link carry all frames that are not proven, in order; the peer knows
    /// those that it has by their numbers. Nothing is proven while an acknowledgment of another link is on the air: more
    /// ACKs than [`RETAINED_ACKS`](tacit_rohc::hack::RETAINED_ACKS) could pass it. Ours: paper and standard have one link.
    ///
    /// Proof (paper section 3.4): with A-MPDUs, any later A-MPDU, because a transmitter without the Block Ack would
    /// have sent a request; with single MPDUs, an MPDU with another sequence number. Not with the SYNC bit, which means
    /// that the transmitter continued without the acknowledgment (figure 8).
    ///
    /// `room` is the number of bytes available if the length of the acknowledgment is fixed in advance, as in answer to
    /// a trigger. Nothing is appended beyond it, and no new frames if the previously sent ones do not fit.
    ///
    /// # Panics
    /// If there is no such peer, or `link` is not below [`MOST_LINKS`].
    pub fn respond_on(
        &mut self,
        link: usize,
        peer: usize,
        solicited: Solicited,
        room: Option<usize>,
        appended: &mut Vec<u8>,
    ) -> Response {
        let peer = &mut self.peers[peer];
        let last_single = &mut peer.last_single[link];
        let moved_on = match solicited.by {
            SolicitedBy::Single { sequence } => last_single.replace(sequence) != Some(sequence),
            SolicitedBy::Ampdu => {
                *last_single = None;
                true
            }
            SolicitedBy::BlockAckRequest => {
                *last_single = None;
                false
            }
        };
        let is_proof = moved_on && !solicited.sync && !solicited.overlaps;
        let proven = is_proof && peer.carried[link] == peer.retained_lens.len();
        let proven_frames = if is_proof { peer.carried[link] } else { 0 };
        let proven_bytes: usize = peer.retained_lens.drain(..proven_frames).sum();
        peer.retained.drain(..proven_bytes);
        for carried in &mut peer.carried {
            *carried = carried.saturating_sub(proven_frames);
        }
        let proven_frames = proven_frames as u32;
        if room.is_some_and(|room| peer.retained.len() > room) {
            // This acknowledgment has no room, so the next PPDU does not prove them.
            peer.carried[link] = 0;
            return Response { proven, proven_frames, holds_more: true, ..Response::default() };
        }
        let mut fresh_frames = 0;
        let mut bytes = 0;
        while let Some(len) = peer.fresh_lens.front().copied() {
            let total = peer.retained.len() + bytes + len;
            let too_long = total > len && self.limit.is_some_and(|limit| total > limit);
            if too_long || room.is_some_and(|room| total > room) {
                break;
            }
            bytes += len;
            fresh_frames += 1;
            peer.fresh_lens.pop_front();
            peer.retained_lens.push_back(len);
        }
        peer.retained.extend(peer.fresh.drain(..bytes));
        peer.carried[link] = peer.retained_lens.len();
        appended.extend_from_slice(&peer.retained);
        Response {
            proven,
            proven_frames,
            fresh_frames,
            appended_bytes: peer.retained.len() as u32,
            holds_more: !peer.fresh_lens.is_empty(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn respond(nic: &mut Nic, heard: SolicitedBy, sync: bool) -> (Vec<u8>, Response) {
        let mut appended = Vec::new();
        let response = nic.respond(0, heard, sync, None, &mut appended);
        (appended, response)
    }

    #[test]
    fn frames_repeat_until_proven_with_block_acks() {
        let mut nic = Nic::new(1);
        nic.add(0, b"ab");
        assert_eq!(respond(&mut nic, SolicitedBy::Ampdu, false).0, b"ab");
        nic.add(0, b"c");
        // Figure 5a, 6: a request proves nothing.
        assert_eq!(respond(&mut nic, SolicitedBy::BlockAckRequest, false).0, b"abc");
        // Figure 8: SYNC means that it did not arrive.
        assert_eq!(respond(&mut nic, SolicitedBy::Ampdu, true).0, b"abc");
        nic.add(0, b"d");
        let (appended, response) = respond(&mut nic, SolicitedBy::Ampdu, false);
        assert_eq!((appended.as_slice(), response.proven, response.fresh_frames), (&b"d"[..], true, 1));
    }

    #[test]
    fn frames_repeat_until_proven_with_single_acks() {
        let mut nic = Nic::new(1);
        nic.add(0, b"a");
        assert_eq!(respond(&mut nic, SolicitedBy::Single { sequence: 7 }, false).0, b"a");
        // Figure 5b: the same MPDU again means that the ACK was lost.
        assert_eq!(respond(&mut nic, SolicitedBy::Single { sequence: 7 }, false).0, b"a");
        assert_eq!(respond(&mut nic, SolicitedBy::Single { sequence: 8 }, false).0, b"");
    }

    /// Only consecutive MPDUs are compared: after an A-MPDU the same number is another MPDU, 4096 later.
    #[test]
    fn an_a_mpdu_between_makes_the_same_number_a_new_one() {
        let mut nic = Nic::new(1);
        respond(&mut nic, SolicitedBy::Single { sequence: 7 }, false);
        nic.add(0, b"a");
        assert_eq!(respond(&mut nic, SolicitedBy::Ampdu, false).0, b"a");
        assert_eq!(respond(&mut nic, SolicitedBy::Single { sequence: 7 }, false).0, b"");
    }

    #[test]
    fn an_ack_that_does_not_fit_waits_for_the_next_link_ack() {
        let mut nic = Nic::new(1);
        nic.limit_appended(4);
        for frame in [&b"abc"[..], b"d", b"efghij", b"k"] {
            nic.add(0, frame);
        }
        assert_eq!(respond(&mut nic, SolicitedBy::Ampdu, false).0, b"abcd");
        // Nothing proved that those frames arrived: they are sent again, alone.
        assert_eq!(respond(&mut nic, SolicitedBy::BlockAckRequest, false).0, b"abcd");
        let (appended, response) = respond(&mut nic, SolicitedBy::Ampdu, false);
        assert_eq!((appended.as_slice(), response.fresh_frames), (&b"efghij"[..], 1), "too long, but alone");
        assert_eq!(respond(&mut nic, SolicitedBy::Ampdu, false).0, b"k");
    }

    /// In answer to a trigger: an acknowledgment of fixed length ends at a frame boundary, and one without room for
    /// repeated frames does not prove that they arrived.
    #[test]
    fn an_acknowledgment_of_a_fixed_length_is_cut_at_a_frame() {
        let within = |nic: &mut Nic, heard, room| {
            let mut appended = Vec::new();
            let response = nic.respond(0, heard, false, Some(room), &mut appended);
            (appended, response)
        };
        let mut nic = Nic::new(1);
        for frame in [&b"abc"[..], b"defg", b"h"] {
            nic.add(0, frame);
        }
        let (appended, response) = within(&mut nic, SolicitedBy::Ampdu, 5);
        assert_eq!((appended.as_slice(), response.fresh_frames, response.holds_more), (&b"abc"[..], 1, true));
        // The first frame is proven; the next one has no room at all, and later ones do not overtake it.
        let (appended, response) = within(&mut nic, SolicitedBy::Ampdu, 3);
        assert_eq!((appended.as_slice(), response.proven, response.holds_more), (&b""[..], true, true));
        let (appended, response) = within(&mut nic, SolicitedBy::Ampdu, 5);
        assert_eq!((appended.as_slice(), response.holds_more), (&b"defgh"[..], false));
        // It was lost and there is no room to repeat it, so the next A-MPDU does not prove that it arrived.
        let (appended, response) = within(&mut nic, SolicitedBy::BlockAckRequest, 4);
        assert_eq!((appended.as_slice(), response.holds_more), (&b""[..], true));
        let (appended, response) = within(&mut nic, SolicitedBy::Ampdu, 9);
        assert_eq!((appended.as_slice(), response.proven), (&b"defgh"[..], false));
        assert!(within(&mut nic, SolicitedBy::Ampdu, 9).1.proven);
    }

    /// A Block Ack is lost on link 1 while data arrives on link 2, which was built before: nothing is proven.
    #[test]
    fn data_on_another_link_proves_nothing() {
        let mut nic = Nic::new(1);
        let on = |nic: &mut Nic, link, heard, sync| {
            let mut appended = Vec::new();
            let response =
                nic.respond_on(link, 0, Solicited { by: heard, sync, overlaps: false }, None, &mut appended);
            (appended, response)
        };
        nic.add(0, b"a");
        assert_eq!(on(&mut nic, 0, SolicitedBy::Ampdu, false).0, b"a");
        nic.add(0, b"b");
        let (appended, response) = on(&mut nic, 1, SolicitedBy::Ampdu, false);
        assert_eq!((appended.as_slice(), response.proven, response.proven_frames), (&b"ab"[..], false, 0));
        // The request on link 1.
        assert_eq!(on(&mut nic, 0, SolicitedBy::BlockAckRequest, false).0, b"ab");
        // The Block Ack on link 2 carried both, and what follows there proves both.
        nic.add(0, b"c");
        let (appended, response) = on(&mut nic, 1, SolicitedBy::Ampdu, false);
        assert_eq!((appended.as_slice(), response.proven, response.proven_frames), (&b"c"[..], true, 2));
        // What follows on link 1 proves what its last Block Ack carried: nothing that is still unproven.
        let (appended, response) = on(&mut nic, 0, SolicitedBy::Ampdu, false);
        assert_eq!((appended.as_slice(), response.proven, response.proven_frames), (&b"c"[..], false, 0));
        // SYNC is of its link, too.
        assert_eq!(on(&mut nic, 1, SolicitedBy::Ampdu, true).0, b"c");
        assert_eq!(on(&mut nic, 0, SolicitedBy::Ampdu, false).0, b"");
    }

    /// A part of the frames is proven.
    #[test]
    fn each_link_proves_what_it_carried() {
        let mut nic = Nic::new(1);
        let at = |nic: &mut Nic, link, overlaps| {
            let mut appended = Vec::new();
            let solicited = Solicited { by: SolicitedBy::Ampdu, sync: false, overlaps };
            let response = nic.respond_on(link, 0, solicited, None, &mut appended);
            (appended, response.proven, response.proven_frames)
        };
        let on = |nic: &mut Nic, link| at(nic, link, false);
        nic.add(0, b"a");
        assert_eq!(on(&mut nic, 0), (b"a".to_vec(), true, 0));
        nic.add(0, b"bb");
        assert_eq!(on(&mut nic, 1), (b"abb".to_vec(), false, 0));
        nic.add(0, b"c");
        assert_eq!(on(&mut nic, 0), (b"bbc".to_vec(), false, 1), "link 1 carried a alone");
        assert_eq!(on(&mut nic, 1), (b"c".to_vec(), false, 1), "link 2 carried a and bb, and a is gone");
        assert_eq!(at(&mut nic, 0, true), (b"c".to_vec(), false, 0), "that of link 2 is still on the air");
        nic.clear_retained(0);
        assert_eq!(on(&mut nic, 0), (Vec::new(), true, 0));
    }

    /// The number of a single MPDU is compared with the last one on its link.
    #[test]
    fn single_mpdus_of_two_links_are_told_apart() {
        let mut nic = Nic::new(1);
        let on = |nic: &mut Nic, link, sequence| {
            let mut appended = Vec::new();
            let by = SolicitedBy::Single { sequence };
            nic.respond_on(link, 0, Solicited { by, sync: false, overlaps: false }, None, &mut appended);
            appended
        };
        nic.add(0, b"a");
        assert_eq!(on(&mut nic, 0, 7), b"a");
        assert_eq!(on(&mut nic, 1, 8), b"a");
        assert_eq!(on(&mut nic, 0, 7), b"a", "a repetition, though another link had a number in between");
        assert_eq!(on(&mut nic, 0, 9), b"");
    }

    #[test]
    fn the_driver_takes_back() {
        let mut nic = Nic::new(2);
        nic.add(0, b"a");
        respond(&mut nic, SolicitedBy::Ampdu, false);
        nic.add(0, b"b");
        nic.clear_fresh(0);
        assert_eq!(respond(&mut nic, SolicitedBy::BlockAckRequest, false).0, b"a");
        nic.clear_retained(0);
        assert_eq!(respond(&mut nic, SolicitedBy::BlockAckRequest, false), (Vec::new(), Response::default()));
    }
}
