//! Outcomes of packets, immediately, as some drivers need them.

use std::collections::VecDeque;

use super::amsdu::Msdus;
use crate::packet::{Holders, PacketRef};

/// Packets whose MPDUs were acknowledged or given up, in the order of their numbers. Recorded only after
/// [`Fates::ask`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Fates {
    asked: bool,
    decided: VecDeque<(PacketRef, bool)>,
}

impl Fates {
    /// Records the outcomes of packets from now on, for [`Fates::poll`].
    pub fn ask(&mut self) {
        self.asked = true;
    }

    /// True after [`Fates::ask`].
    pub fn is_asked(&self) -> bool {
        self.asked
    }

    /// Records that the packets of an MPDU were acknowledged or given up.
    pub fn note(&mut self, msdus: &Msdus, acknowledged: bool, holders: &mut Holders) {
        if self.asked {
            msdus.share(holders, &mut |packet| self.decided.push_back((packet, acknowledged)));
        }
    }

    /// The packets that wait for [`Fates::poll`].
    pub fn iter(&self) -> impl Iterator<Item = &PacketRef> {
        self.decided.iter().map(|(packet, _)| packet)
    }

    /// The next packet, whether it was acknowledged, and whether it is the last of those decided together.
    pub fn poll(&mut self) -> Option<(PacketRef, bool, bool)> {
        let (payload, acknowledged) = self.decided.pop_front()?;
        Some((payload, acknowledged, self.decided.is_empty()))
    }
}
