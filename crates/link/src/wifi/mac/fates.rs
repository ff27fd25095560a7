//! Outcomes of packets, for a driver that needs each one immediately.

use std::collections::VecDeque;

use super::amsdu::Msdus;

/// Packets whose MPDUs were acknowledged or given up, in the order of their numbers. Recorded only after
/// [`Fates::ask`].
#[derive(Clone, Debug)]
pub(crate) struct Fates<P> {
    asked: bool,
    decided: VecDeque<(P, bool)>,
}

impl<P> Default for Fates<P> {
    fn default() -> Self {
        Self { asked: false, decided: VecDeque::new() }
    }
}

impl<P: Clone> Fates<P> {
    /// Records the outcomes of packets from now on, for [`Fates::poll`].
    pub fn ask(&mut self) {
        self.asked = true;
    }

    /// True after [`Fates::ask`].
    #[inline]
    pub fn is_asked(&self) -> bool {
        self.asked
    }

    /// Records that the packets of an MPDU were acknowledged or given up.
    #[inline]
    pub fn note(&mut self, msdus: &Msdus<P>, acknowledged: bool) {
        if self.asked {
            msdus.copy_each(&mut |payload| self.decided.push_back((payload, acknowledged)));
        }
    }

    /// The next packet, whether it was acknowledged, and whether it is the last of those decided together.
    pub fn poll(&mut self) -> Option<(P, bool, bool)> {
        let (payload, acknowledged) = self.decided.pop_front()?;
        Some((payload, acknowledged, self.decided.is_empty()))
    }
}
