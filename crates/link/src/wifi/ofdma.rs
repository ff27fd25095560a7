//! PPDUs of several users: what an access point may be told of them.

use tacit_proto::units::Duration;

/// OFDMA of an access point of 802.11ax (802.11ax-2021 clauses 26.5.1 and 26.5.2). Users of a PPDU have units of one size, the
/// largest of which there are enough; the standard leaves schedulers open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfdmaConfig {
    /// Most users of one PPDU; two at least.
    pub max_users: u16,
    /// How users acknowledge what they get in one.
    pub acknowledgment: MuAcknowledgment,
    /// Highest MCS of Block Acks that answer triggers.
    pub block_ack_mcs: u8,
    /// What triggers leave their users between the last of their fields and the answer: 0, 8 or 16 us of padding
    /// (MinTrigProcTime, 802.11ax-2021 clause 9.3.1.22).
    pub trigger_padding: Duration,
    /// What Block Acks of several users leave for compressed TCP ACKs.
    pub hack_room: HackRoom,
}

impl OfdmaConfig {
    /// Up to 16 users who answer a trigger, 16 us of padding in that, and room by forecast.
    pub const USUAL: Self = Self {
        max_users: 16,
        acknowledgment: MuAcknowledgment::MuBar,
        block_ack_mcs: 5,
        trigger_padding: Duration::from_micros(16),
        hack_room: HackRoom::Forecast,
    };

    /// What the padding of a trigger may be.
    pub const TRIGGER_PADDINGS: [Duration; 3] =
        [Duration::ZERO, Duration::from_micros(8), Duration::from_micros(16)];
    /// Most users of a PPDU: units of 26 tones in 160 MHz.
    pub const MOST_USERS: u16 = 74;
}

/// How the users of an HE MU PPDU acknowledge it (802.11ax-2021 clause 26.4.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MuAcknowledgment {
    /// One after the other: the first by a Block Ack, each other one by a Block Ack Request and a Block Ack.
    BlockAckRequests,
    /// At once, in answer to a MU-BAR trigger behind the PPDU.
    MuBar,
    /// At once, in answer to a MU-BAR trigger within each A-MPDU.
    AggregatedMuBar,
}

impl MuAcknowledgment {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::BlockAckRequests, Self::MuBar, Self::AggregatedMuBar];

    /// The name users write.
    pub const fn name(self) -> &'static str {
        match self {
            Self::BlockAckRequests => "requests",
            Self::MuBar => "mu-bar",
            Self::AggregatedMuBar => "aggregated-mu-bar",
        }
    }
}

/// What the answers to a trigger leave for compressed TCP ACKs: the access point fixes how long they are before it knows what its
/// clients hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HackRoom {
    /// As many bytes for each user, always.
    Fixed(u32),
    /// What each user appended lately for what it had got, times what it has got since.
    Forecast,
}

/// What an access point foresees that a client will append.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoomForecast {
    /// Bytes appended per MPDU delivered, in 1/256.
    per_mpdu: u32,
    /// MPDUs delivered and not yet answered for.
    pending_mpdus: u32,
    /// The last answer had no room for all.
    held_more: bool,
}

impl RoomForecast {
    /// What a forecast begins with: 4.4 bytes for each TCP ACK (HACK paper, section 3.3.2), one for two MPDUs.
    const FIRST_PER_MPDU: u32 = 2 * 256 + 51;
    /// A new sample's weight is one in this many.
    const WEIGHT: u32 = 8;
    /// Beyond the forecast: a compressed ACK that is longer than others, for its header changed in unusual fields.
    const MARGIN_BYTES: u32 = 16;

    /// How many bytes the next answer should have room for, of at most `most`.
    pub fn bytes(&self, most: u32) -> u32 {
        let expected = (u64::from(self.per_mpdu) * u64::from(self.pending_mpdus)).div_ceil(256) as u32;
        // A quarter more, for they vary; twice as much where the last was too little.
        let ample = if self.held_more { 2 * expected } else { expected + expected / 4 };
        if self.pending_mpdus == 0 && !self.held_more { 0 } else { (ample + Self::MARGIN_BYTES).min(most) }
    }

    /// An answer came with `appended` bytes.
    pub fn answered(&mut self, appended: u32, held_more: bool) {
        self.held_more = held_more;
        if held_more {
            // What is held comes later, and with it the ACKs for what is delivered until then: room grows until it fits.
            return;
        }
        if let Some(sample) = (appended * 256).checked_div(self.pending_mpdus) {
            self.per_mpdu = self.per_mpdu - self.per_mpdu / Self::WEIGHT + sample / Self::WEIGHT;
        }
        self.pending_mpdus = 0;
    }

    /// `mpdus` were delivered: their ACKs come with a later answer.
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
        // 2.2 bytes each and a quarter more, and the margin.
        assert_eq!(room.bytes(1_000), 141 + 35 + 16);
        for _ in 0..40 {
            room.answered(64, false);
            room.delivered(64);
        }
        let settled = room.bytes(1_000);
        assert!((64 + 16..=64 + 16 + 20).contains(&settled), "a byte each: {settled}");
        room.answered(64, true);
        room.delivered(64);
        assert!(room.bytes(1_000) > settled + 40, "it holds more: ask for more");
        assert_eq!(room.bytes(50), 50);
    }
}
