//! Uplink OFDMA-based random access (UORA).

use crate::random::Stream;

/// A client's access to resource units for random access (UORA, 802.11ax-2021 clause 26.5.4.3).
#[derive(Clone, Debug)]
pub(crate) struct RandomAccess {
    /// OCW: the largest backoff.
    window: u32,
    /// OBO: random access units to skip.
    backoff: Option<u32>,
    stream: Stream,
}

impl RandomAccess {
    /// OCWmin and OCWmax if the access point announces no other values.
    const WINDOWS: [u32; 2] = [7, 31];

    pub fn new(stream: Stream) -> Self {
        Self { window: Self::WINDOWS[0], backoff: None, stream }
    }

    /// Handles a trigger with `units` random access units; returns the one to use, if any.
    pub fn offered(&mut self, units: u16) -> Option<u16> {
        let backoff = match self.backoff {
            Some(backoff) => backoff,
            None => self.stream.up_to(self.window),
        };
        let left = backoff.checked_sub(units.into()).filter(|left| *left > 0);
        self.backoff = left;
        left.is_none().then(|| self.stream.up_to(u32::from(units) - 1) as u16)
    }

    /// Its PPDU in a random access unit was acknowledged, or not.
    pub fn settled(&mut self, acknowledged: bool) {
        let [smallest, largest] = Self::WINDOWS;
        self.window = if acknowledged { smallest } else { (2 * self.window + 1).min(largest) };
        self.backoff = None;
    }
}
