//! PPDUs of several users: their settings at an access point.

use tacit_proto::units::Duration;

use super::category::{AccessCategory, EdcaParameters};
use super::mu_scheduler::ExternalMuScheduler;
use super::phy::{
    ACTION_NO_ACK_LEN, HT_CONTROL_LEN, MPDU_DELIMITER_LEN, Mode, QOS_NULL_LEN, TriggerKind, trigger_len,
};

/// OFDMA of an access point of 802.11ax (802.11ax-2021 clauses 26.5.1 and 26.5.2). Users of a PPDU have units of one size, the
/// largest of which there are enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfdmaConfig {
    /// Most users of one PPDU; two at least.
    pub max_users: u16,
    /// How users acknowledge their data in one.
    pub acknowledgment: MuAcknowledgment,
    /// Highest MCS of Block Acks that answer triggers.
    pub block_ack_mcs: u8,
    /// Time that triggers leave their users between the last of their fields and the answer: 0, 8 or 16 us of padding
    /// (MinTrigProcTime, 802.11ax-2021 clause 9.3.1.22).
    pub trigger_padding: Duration,
    /// Room that Block Acks of several users leave for compressed TCP ACKs.
    pub hack_room: HackRoom,
    /// Where these are.
    pub hack_carrier: HackCarrier,
    /// When the access point asks clients for their data.
    pub triggers: Triggers,
    /// Whether it asks how much that is before.
    pub polls: bool,
    /// Units of each trigger that any client may take (UORA, 802.11ax-2021 clause 26.5.4).
    pub random_access_units: u16,
    /// Contention parameters of clients after an answer to a trigger.
    pub mu_edca: MuEdca,
    /// Scheduler in place of [`Triggers`] and of taking turns.
    pub scheduler: Option<ExternalMuScheduler>,
}

impl OfdmaConfig {
    /// Up to 16 users that answer a trigger, 16 us of padding in that, and room by forecast.
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

    /// The paddings that a trigger may have.
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

/// Room that the answers to a trigger leave for compressed TCP ACKs: the access point fixes how long they are before it
/// knows which ACKs its clients hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HackRoom {
    /// As many bytes for each user, always.
    Fixed(u32),
    /// Bytes that each user appended lately for the MPDUs it had got, times those it has got since.
    Forecast,
}

/// Where compressed TCP ACKs are in an answer to a trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HackCarrier {
    /// Behind the Block Ack Information, as for one user.
    BlockAck,
    /// In a second MPDU, an Action No Ack frame, so that the control frame is that of the standard. An access point that misses either
    /// takes both for missed: bytes that rode there come again by the rules for lost link-layer ACKs.
    OwnMpdu,
}

/// When an access point asks its clients for their data, by Basic Triggers (802.11ax-2021 clause 26.5.2): at accesses of its own,
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
    /// No client by name, as often as it gets the medium: all units of a trigger are of [random
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

/// Contention parameters of clients for a while after the access point acknowledged triggered data (MU EDCA Parameter Set,
/// 802.11ax-2021 clauses 9.4.2.251 and 26.2.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MuEdca {
    /// As before: hostapd, unless it is configured otherwise.
    Off,
    /// Those that OpenWrt's access points announce.
    OpenWrt,
    /// They do not contend: hostapd's sample configuration.
    Silent,
}

impl MuEdca {
    /// A unit of the timer: 8 TU of 1024 us each.
    const TIMER_UNIT: Duration = Duration::from_micros(8 * 1_024);

    /// Contention parameters of a client in `category`, and for how long.
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
