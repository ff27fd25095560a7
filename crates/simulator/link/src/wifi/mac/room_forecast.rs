//! How many bytes of compressed TCP ACKs a client will append to its next response to a trigger.

/// An access point's forecast of the bytes that a client will append.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoomForecast {
    /// Bytes appended per delivered MPDU, in 1/256.
    per_mpdu: u32,
    /// MPDUs delivered whose ACKs have not come yet.
    pending_mpdus: u32,
    /// Whether the last response lacked room for all bytes.
    held_more: bool,
}

impl RoomForecast {
    /// First forecast: 4.4 bytes per TCP ACK (HACK paper, section 3.3.2), with one TCP ACK per two MPDUs.
    const FIRST_PER_MPDU: u32 = 2 * 256 + 51;
    /// The weight of a new sample is the inverse of this.
    const WEIGHT: u32 = 8;
    /// Added to the forecast, because a frame of ACKs fits as a whole or waits, and with little room TCP ACKs are sent
    /// as packets. Figure hack/forecast.
    const MARGIN_BYTES: u32 = 48;

    /// Bytes of room to give the next response, at most `most`.
    pub fn bytes(&self, most: u32) -> u32 {
        let expected = (u64::from(self.per_mpdu) * u64::from(self.pending_mpdus)).div_ceil(256) as u32;
        // A quarter more than expected, because sizes vary; twice as much if the last room was too small.
        let ample = if self.held_more { 2 * expected } else { expected + expected / 4 };
        if self.pending_mpdus == 0 && !self.held_more { 0 } else { (ample + Self::MARGIN_BYTES).min(most) }
    }

    /// A response arrived with `appended` bytes.
    pub fn answered(&mut self, appended: u32, held_more: bool) {
        self.held_more = held_more;
        if held_more {
            // Held ACKs come later, together with those for data delivered until then: the room grows until they fit.
            return;
        }
        if let Some(sample) = (appended * 256).checked_div(self.pending_mpdus) {
            self.per_mpdu = self.per_mpdu - self.per_mpdu / Self::WEIGHT + sample / Self::WEIGHT;
        }
        self.pending_mpdus = 0;
    }

    /// `mpdus` MPDUs were delivered: their ACKs come with a later response.
    pub fn delivered(&mut self, mpdus: u32) {
        self.pending_mpdus += mpdus;
    }
}

impl Default for RoomForecast {
    fn default() -> Self {
        Self { per_mpdu: Self::FIRST_PER_MPDU, pending_mpdus: 0, held_more: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_follows_what_clients_append() {
        let mut room = RoomForecast::default();
        assert_eq!(room.bytes(1_000), 0, "nothing was delivered: nothing is to come");
        room.delivered(64);
        // 2.2 bytes each, a quarter more, and the margin.
        assert_eq!(room.bytes(1_000), 141 + 35 + 48);
        for _ in 0..40 {
            room.answered(64, false);
            room.delivered(64);
        }
        let settled = room.bytes(1_000);
        assert!((64 + 48..=64 + 48 + 20).contains(&settled), "a byte each: {settled}");
        room.answered(64, true);
        room.delivered(64);
        assert!(room.bytes(1_000) > settled + 40, "it holds more: ask for more");
        assert_eq!(room.bytes(50), 50);
    }
}
