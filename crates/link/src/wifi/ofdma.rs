//! PPDUs of several users: what an access point may be told of them.

use tacit_proto::units::{BitRate, Bytes, Duration, Instant};

use super::air::StationId;
use super::category::{AccessCategory, EdcaParameters};
use super::mac::plan::PpduPlan;
use super::mu_scheduler::{ExternalMuScheduler, UplinkClient};
use super::phy::{
    ACTION_NO_ACK_LEN, HT_CONTROL_LEN, MPDU_DELIMITER_LEN, Mode, QOS_NULL_LEN, TriggerKind, trigger_len,
};
use crate::random::Stream;

/// OFDMA of an access point of 802.11ax (802.11ax-2021 clauses 26.5.1 and 26.5.2). Users of a PPDU have units of one size, the
/// largest of which there are enough.
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
    /// Where these are.
    pub hack_carrier: HackCarrier,
    /// When the access point asks clients for what they have.
    pub triggers: Triggers,
    /// Whether it asks how much that is before.
    pub polls: bool,
    /// Units of each trigger that any client may take (UORA, 802.11ax-2021 clause 26.5.4).
    pub random_access_units: u16,
    /// What clients contend with after they sent when they were asked.
    pub mu_edca: MuEdca,
    /// What decides instead of [`Triggers`] and of taking turns.
    pub scheduler: Option<ExternalMuScheduler>,
}

impl OfdmaConfig {
    /// Up to 16 users who answer a trigger, 16 us of padding in that, and room by forecast.
    pub const USUAL: Self = Self {
        max_users: 16,
        acknowledgment: MuAcknowledgment::MuBar,
        block_ack_mcs: 5,
        trigger_padding: Duration::from_micros(16),
        hack_room: HackRoom::Forecast,
        hack_carrier: HackCarrier::BlockAck,
        triggers: Triggers::Off,
        polls: false,
        random_access_units: 0,
        mu_edca: MuEdca::Off,
        scheduler: None,
    };

    /// Most OFDM symbols of an answer to a TRS Control field: UL Data Symbols has five bits (802.11ax-2021 clause 9.2.4.6a.1).
    pub(crate) const TRS_SYMBOLS: u64 = 32;
    /// The highest MCS of one: UL HE-MCS has two bits.
    const TRS_MCS: u8 = 3;

    /// Highest MCS of Block Acks that clients send at once. Data behind one goes as fast as ever, and the Block Ack with it.
    pub fn answer_mcs(&self) -> u8 {
        match self.acknowledgment {
            MuAcknowledgment::Cascade => u8::MAX,
            MuAcknowledgment::TriggeredResponseScheduling => self.block_ack_mcs.min(Self::TRS_MCS),
            _ => self.block_ack_mcs,
        }
    }

    /// Bytes that `appended` bytes of compressed TCP ACKs add to an answer.
    pub(crate) fn carried_len(&self, appended: u32) -> u32 {
        match (self.hack_carrier, appended) {
            (_, 0) => 0,
            (HackCarrier::BlockAck, bytes) => bytes,
            // A Block Ack as a subframe needs no padding.
            (HackCarrier::OwnMpdu, bytes) => MPDU_DELIMITER_LEN + ACTION_NO_ACK_LEN + bytes,
        }
    }

    /// Whether there may be Basic Triggers.
    pub(crate) fn has_triggers(&self) -> bool {
        self.triggers != Triggers::Off || self.scheduler.is_some()
    }

    /// What the padding of a trigger may be.
    pub const TRIGGER_PADDINGS: [Duration; 3] =
        [Duration::ZERO, Duration::from_micros(8), Duration::from_micros(16)];
    /// Most users of a PPDU: units of 26 tones in 160 MHz.
    pub const MOST_USERS: u16 = 74;

    /// Bytes of padding in a trigger in mode `control_mode`.
    pub fn padding_bytes(&self, control_mode: &Mode) -> u32 {
        let bits = self.trigger_padding.as_nanos() * control_mode.rate().as_bps() / 1_000_000_000;
        bits.div_ceil(8) as u32
    }

    /// Bytes of the MPDU within each user's A-MPDU that asks for the answer: a trigger, as long as in mode `control_mode`, or a QoS Null
    /// with a TRS Control field; `None` without one.
    pub fn request_inside_len(&self, control_mode: &Mode) -> Option<u32> {
        let trigger = |kind| trigger_len(kind, 1, self.padding_bytes(control_mode));
        match self.acknowledgment {
            MuAcknowledgment::BlockAckRequests | MuAcknowledgment::MuBar => None,
            MuAcknowledgment::AggregatedMuBar => Some(trigger(TriggerKind::MuBar)),
            MuAcknowledgment::Cascade => Some(trigger(TriggerKind::Basic)),
            MuAcknowledgment::TriggeredResponseScheduling => Some(QOS_NULL_LEN + HT_CONTROL_LEN),
        }
    }
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
    /// At once, in answer to a Basic Trigger within each A-MPDU, and with data behind each Block Ack, which one for all acknowledges: a
    /// cascade (802.11ax-2021 clause 26.5.3).
    Cascade,
    /// At once, in answer to a TRS Control field in a QoS Null within each A-MPDU (802.11ax-2021 clauses 9.2.4.6a.1 and 26.5.2). Answers
    /// that are too long for one are asked for as by [`AggregatedMuBar`](Self::AggregatedMuBar).
    TriggeredResponseScheduling,
}

impl MuAcknowledgment {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::BlockAckRequests,
        Self::MuBar,
        Self::AggregatedMuBar,
        Self::Cascade,
        Self::TriggeredResponseScheduling,
    ];

    /// The name users write.
    pub const fn name(self) -> &'static str {
        match self {
            Self::BlockAckRequests => "requests",
            Self::MuBar => "mu-bar",
            Self::AggregatedMuBar => "aggregated-mu-bar",
            Self::Cascade => "cascade",
            Self::TriggeredResponseScheduling => "trs",
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

/// Where compressed TCP ACKs are in an answer to a trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HackCarrier {
    /// Behind the Block Ack Information, as for one user.
    BlockAck,
    /// In a second MPDU, an Action No Ack frame, so that the control frame is that of the standard. An access point that misses either
    /// takes both for missed: what rode there comes again by the rules for lost link-layer ACKs.
    OwnMpdu,
}

/// When an access point asks its clients for what they have, by Basic Triggers (802.11ax-2021 clause 26.5.2): at accesses of its own,
/// or on in its TXOP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Triggers {
    /// Never: access points with mainline drivers for MT7915.
    Off,
    /// While two clients or more send over 100 packets a second each, those: two commercial access points (NIST IR 8506).
    Nist,
    /// All, as often as it gets the medium.
    Always,
    /// Those that were just sent data, whose ACKs are to come, and those that said that something waits.
    AckAware,
    /// Nobody by name, as often as it gets the medium: all units of a trigger are of [random
    /// access](OfdmaConfig::random_access_units).
    RandomAccess,
}

impl Triggers {
    /// Whether it asks anybody where `busy` clients send much.
    pub(crate) fn allow(self, busy: usize) -> bool {
        match self {
            Self::Off => false,
            Self::Nist => busy >= 2,
            Self::Always | Self::AckAware | Self::RandomAccess => true,
        }
    }
}

/// What clients contend with for a while after the access point acknowledged what it had asked for (MU EDCA Parameter Set,
/// 802.11ax-2021 clauses 9.4.2.251 and 26.2.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MuEdca {
    /// As before: hostapd, unless it is configured otherwise.
    Off,
    /// What OpenWrt's access points say.
    OpenWrt,
    /// They do not contend: hostapd's sample configuration.
    Silent,
}

impl MuEdca {
    /// A unit of the timer: 8 TU of 1024 us each.
    const TIMER_UNIT: Duration = Duration::from_micros(8 * 1_024);

    /// What a client contends with in `category`, and for how long.
    pub(crate) fn parameters(self, category: AccessCategory) -> Option<(EdcaParameters, Duration)> {
        let (aifs_slots, cw_min, cw_max) = match (self, category) {
            (Self::Off, _) => return None,
            (Self::OpenWrt, AccessCategory::BestEffort) => (8, 511, 1_023),
            (Self::OpenWrt, AccessCategory::Background) => (15, 511, 1_023),
            (Self::OpenWrt, AccessCategory::Video | AccessCategory::Voice) => (5, 31, 127),
            (Self::Silent, _) => (0, 32_767, 32_767),
        };
        Some((EdcaParameters { aifs_slots, cw_min, cw_max }, Self::TIMER_UNIT * 255))
    }
}

/// What a client says that it has: Queue Size (802.11-2020 clause 9.2.4.5.6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BufferStatus {
    units: u8,
}

impl BufferStatus {
    /// Bytes of a unit.
    const UNIT_BYTES: u64 = 256;
    /// So many and more; 255 is unknown.
    const MOST_UNITS: u8 = 254;

    /// Of packets of these bytes.
    pub fn of(packets: impl Iterator<Item = u64>) -> Self {
        let mut bytes = 0;
        for more in packets {
            bytes += more;
            if bytes >= Self::UNIT_BYTES * u64::from(Self::MOST_UNITS) {
                return Self { units: Self::MOST_UNITS };
            }
        }
        Self { units: bytes.div_ceil(Self::UNIT_BYTES) as u8 }
    }

    /// As it is written.
    pub fn units(self) -> u8 {
        self.units
    }

    /// At most so many, unless it is the largest.
    pub fn bytes(self) -> u32 {
        u32::from(self.units) * Self::UNIT_BYTES as u32
    }

    pub fn is_empty(self) -> bool {
        self.units == 0
    }
}

/// What an access point knows of what a client has for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UplinkDemand {
    left: BufferStatus,
    /// MPDUs of data that it was sent since it said so.
    acks_for: u32,
    /// Bytes of PSDU per byte that it said it had, in 1/256.
    per_byte: u32,
    /// Bytes of PSDU that it had for each MPDU that it was sent, in 1/256.
    per_mpdu: u32,
    /// When it said last what it has.
    heard_at: Instant,
    /// MPDUs in the present second, which began then, and in the one before.
    second: Instant,
    mpdus: u32,
    mpdus_before: u32,
}

impl UplinkDemand {
    /// Bytes of a TCP ACK in an A-MPDU.
    const ACK_BYTES: u32 = 96;
    /// Of a client that said nothing: what ns-3 takes (UlPsduSize).
    pub const UNKNOWN_BYTES: u32 = 500;
    /// MPDUs a second that make a client busy (NIST IR 8506).
    const BUSY_MPDUS: u32 = 100;
    const SECOND: Duration = Duration::from_secs(1);
    /// Whom data was sent to is asked after this time, however little it acknowledges: it may not contend. Ours.
    const LONGEST_SILENCE: Duration = Duration::from_millis(20);
    /// A new sample's weight is one in this many.
    const WEIGHT: u32 = 8;
    /// The largest sample, in 1/256.
    const MOST: u32 = 4 * Self::ACK_BYTES * 256;

    /// It was sent `mpdus` of data.
    pub fn sent(&mut self, mpdus: u32) {
        self.acks_for = self.acks_for.saturating_add(mpdus);
    }

    /// It sent `mpdus` by itself at `at`, and said what it has left.
    pub fn heard(&mut self, at: Instant, mpdus: u32, left: BufferStatus) {
        self.count(at, mpdus);
        self.reported(at, left);
    }

    /// MPDUs of data that it was sent, and whose ACKs are to come.
    pub fn awaited(&self) -> u32 {
        self.acks_for
    }

    /// It sent `plan` when it was asked, put together when ACKs for `awaited` MPDUs were to come: in a cascade more were sent since.
    pub fn answered(&mut self, at: Instant, awaited: u32, plan: PpduPlan, left: BufferStatus) {
        let learn = |known: &mut u32, sample: u32| {
            *known = *known - *known / Self::WEIGHT + sample.min(Self::MOST) / Self::WEIGHT;
        };
        if self.left.is_empty() {
            // All that it had came for what it was sent.
            if let Some(sample) = ((plan.bytes + left.bytes()) * 256).checked_div(awaited) {
                learn(&mut self.per_mpdu, sample);
            }
        } else if awaited == 0
            && left.is_empty()
            && let Some(sample) = (plan.bytes * 256).checked_div(self.left.bytes())
        {
            learn(&mut self.per_byte, sample);
        }
        self.count(at, plan.mpdus);
        self.heard_at = at;
        self.left = left;
        self.acks_for = self.acks_for.saturating_sub(awaited);
    }

    /// Its TCP ACKs came compressed with a Block Ack at `at`: none of them waits to be asked for.
    pub fn acknowledged_inside(&mut self, at: Instant) {
        self.answered(at, self.acks_for, PpduPlan::default(), self.left);
    }

    /// It said at `at` what it has.
    pub fn reported(&mut self, at: Instant, left: BufferStatus) {
        self.heard_at = at;
        self.left = left;
        self.acks_for = 0;
    }

    fn count(&mut self, at: Instant, mpdus: u32) {
        if at >= self.second + Self::SECOND {
            let skipped = at >= self.second + Self::SECOND * 2;
            self.mpdus_before = if skipped { 0 } else { self.mpdus };
            self.mpdus = 0;
            self.second = at;
        }
        self.mpdus = self.mpdus.saturating_add(mpdus);
    }

    /// MPDUs that it sent in the busier of the second at `at` and the one before.
    fn mpdus_per_s(&self, at: Instant) -> u32 {
        if at < self.second + Self::SECOND * 2 { self.mpdus.max(self.mpdus_before) } else { 0 }
    }

    /// Whether it sends much at `at`.
    pub fn is_busy(&self, at: Instant) -> bool {
        self.mpdus_per_s(at) > Self::BUSY_MPDUS
    }

    /// Whether an access point that asks by `triggers` asks it at `at`.
    pub fn is_wanted(&self, triggers: Triggers, at: Instant) -> bool {
        match triggers {
            Triggers::Off | Triggers::RandomAccess => false,
            Triggers::Nist => self.is_busy(at),
            Triggers::Always => true,
            Triggers::AckAware => !self.expects_nothing(at),
        }
    }

    /// Nothing is known to wait, and less than a TCP ACK to come, at `at`.
    pub fn expects_nothing(&self, at: Instant) -> bool {
        let is_overdue = self.acks_for > 0 && at >= self.heard_at + Self::LONGEST_SILENCE;
        self.left.is_empty() && self.bytes_to_come() < Self::ACK_BYTES && !is_overdue
    }

    /// Bytes of PSDU that come for what it was sent.
    fn bytes_to_come(&self) -> u32 {
        (u64::from(self.acks_for) * u64::from(self.per_mpdu)).div_ceil(256) as u32
    }

    /// As a scheduler sees `client` at `at`, which sends at `rate`.
    pub fn as_seen_at(&self, at: Instant, client: StationId, rate: BitRate) -> UplinkClient {
        UplinkClient {
            client,
            reported: Bytes(self.left.bytes().into()),
            sent_mpdus: self.acks_for,
            silent: at.saturating_since(self.heard_at),
            mpdus_per_s: self.mpdus_per_s(at),
            rate,
        }
    }

    /// Bytes of PSDU that it is given room for: those of an MPDU at least, in which it says what else it has.
    pub fn expected_bytes(&self) -> u32 {
        let waits = (u64::from(self.left.bytes()) * u64::from(self.per_byte)).div_ceil(256) as u32;
        (waits + self.bytes_to_come()).max(Self::UNKNOWN_BYTES)
    }
}

impl Default for UplinkDemand {
    fn default() -> Self {
        Self {
            left: BufferStatus::default(),
            acks_for: 0,
            per_byte: 256 + 64,
            // An ACK for two.
            per_mpdu: Self::ACK_BYTES * 256 / 2,
            heard_at: Instant::ZERO,
            second: Instant::ZERO,
            mpdus: 0,
            mpdus_before: 0,
        }
    }
}

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

    /// What it sent in one was acknowledged, or not.
    pub fn settled(&mut self, acknowledged: bool) {
        let [smallest, largest] = Self::WINDOWS;
        self.window = if acknowledged { smallest } else { (2 * self.window + 1).min(largest) };
        self.backoff = None;
    }
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
    /// Beyond the forecast: a frame of ACKs has room or waits whole, and with little room TCP ACKs go as packets. Figure hack/forecast.
    const MARGIN_BYTES: u32 = 48;

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
