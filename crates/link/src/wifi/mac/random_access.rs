//! Uplink OFDMA-based random access (UORA).

use crate::random::Stream;

/// A client's access to units that are anybody's (UORA, 802.11ax-2021 clause 26.5.4.3).
#[derive(Clone, Debug)]
pub(crate) struct RandomAccess {
    /// OCW: the largest backoff.
    window: u32,
    /// OBO: units to be let pass.
    backoff: Option<u32>,
    stream: Stream,
}

impl RandomAccess {
    /// OCWmin and OCWmax of an access point that does not say others.
    const WINDOWS: [u32; 2] = [7, 31];

    pub fn new(stream: Stream) -> Self {
        Self { window: Self::WINDOWS[0], backoff: None, stream }
    }

    /// A trigger offers `units`: which of them it takes, if it takes one.
    pub fn offered(&mut self, units: u16) -> Option<u16> {
        let backoff = match self.backoff {
            Some(backoff) => backoff,
            None => self.stream.up_to(self.window),
        };
        let left = backoff.checked_sub(units.into()).filter(|left| *left > 0);
        self.backoff = left;
        left.is_none().then(|| self.stream.up_to(u32::from(units) - 1) as u16)
    }

    /// Its PPDU in one was acknowledged, or not.
    pub fn settled(&mut self, acknowledged: bool) {
        let [smallest, largest] = Self::WINDOWS;
        self.window = if acknowledged { smallest } else { (2 * self.window + 1).min(largest) };
        self.backoff = None;
    }
}
