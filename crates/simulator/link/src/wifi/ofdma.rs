//! Settings of an access point for multi-user PPDUs.

use tacit_packet::units::Duration;

use super::category::{AccessCategory, EdcaParameters};
use super::mu_scheduler::ExternalMuScheduler;
use super::phy::{
    ACTION_NO_ACK_LEN, HT_CONTROL_LEN, MPDU_DELIMITER_LEN, Mode, QOS_NULL_LEN, TriggerKind, subframe_len,
    trigger_len,
};

/// OFDMA at an access point of 802.11ax (802.11ax-2021 clauses 26.5.1 and 26.5.2). All users of a PPDU have resource
/// units of the same size: the largest size that gives each user a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfdmaConfig {
    /// Most users in a PPDU; at least two.
    pub max_users: u16,
    /// How many of the clients with data waiting share a PPDU, up to `max_users`.
    pub sharing: Sharing,
    /// How users acknowledge their data in a multi-user PPDU.
    pub acknowledgment: MuAcknowledgment,
    /// Highest MCS of Block Acks in response to triggers.
    pub block_ack_mcs: u8,
    /// Time between the last field of a trigger and the response: 0, 8 or 16 us of padding (MinTrigProcTime,
    /// 802.11ax-2021 clause 9.3.1.22).
    pub trigger_padding: Duration,
    /// Room that multi-user Block Acks reserve for compressed TCP ACKs.
    pub hack_room: HackRoom,
    /// Position of the compressed TCP ACKs.
    pub hack_carrier: HackCarrier,
    /// When the access point triggers clients for their data.
    pub triggers: Triggers,
    /// Whether it first asks how much data they have.
    pub polls: bool,
    /// Resource units of each trigger that any client may use (UORA, 802.11ax-2021 clause 26.5.4).
    pub random_access_units: u16,
    /// Contention parameters of clients after a response to a trigger.
    pub mu_edca: MuEdca,
    /// Scheduler that replaces [`Triggers`] and round-robin.
    pub scheduler: Option<ExternalMuScheduler>,
}

impl OfdmaConfig {
    /// Up to 16 users that respond to a trigger, 16 us of trigger padding, and room by forecast.
    pub const USUAL: Self = Self {
        max_users: 16,
        sharing: Sharing::Goodput,
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

    /// Whether the access point finds the rates of triggered PPDUs, because clients hardly contend.
    pub(crate) fn adapts_triggered_rates(&self) -> bool {
        self.triggers != Triggers::Off && self.mu_edca != MuEdca::Off
    }

    /// Most OFDM symbols in a response to a TRS Control field: UL Data Symbols has five bits (802.11ax-2021 clause
    /// 9.2.4.6a.1).
    pub(crate) const TRS_SYMBOLS: u64 = 32;
    /// Highest MCS of such a response: UL HE-MCS has two bits.
    const TRS_MCS: u8 = 3;

    /// Highest MCS of Block Acks that clients send together. Data after one is sent at its usual rate, and its Block
    /// Ack too.
    pub fn response_mcs(&self) -> u8 {
        match self.acknowledgment {
            MuAcknowledgment::Cascade => u8::MAX,
            MuAcknowledgment::TriggeredResponseScheduling => self.block_ack_mcs.min(Self::TRS_MCS),
            _ => self.block_ack_mcs,
        }
    }

    /// Bytes that `appended` bytes of compressed TCP ACKs add to a response.
    pub(crate) fn carried_len(&self, appended: u32) -> u32 {
        match (self.hack_carrier, appended) {
            (_, 0) => 0,
            (HackCarrier::BlockAck, bytes) => bytes,
            // A Block Ack as a subframe needs no padding.
            (HackCarrier::OwnMpdu, bytes) => MPDU_DELIMITER_LEN + ACTION_NO_ACK_LEN + bytes,
        }
    }

    /// Whether a client reports its queue with the Block Ack that answers a MU-BAR trigger or a TRS Control field. Only
    /// access points that trigger data use reports; in a cascade the data has them.
    pub(crate) fn reports_with_block_acks(&self) -> bool {
        use MuAcknowledgment::{AggregatedMuBar, MuBar, TriggeredResponseScheduling};
        self.has_triggers()
            && matches!(self.acknowledgment, MuBar | AggregatedMuBar | TriggeredResponseScheduling)
    }

    /// Bytes that such a report adds to the response: a QoS Null (802.11ax-2021 clause 26.5.5).
    pub fn report_len(&self) -> u32 {
        if self.reports_with_block_acks() { subframe_len(QOS_NULL_LEN) } else { 0 }
    }

    /// Whether Basic Triggers are possible.
    pub(crate) fn has_triggers(&self) -> bool {
        self.triggers != Triggers::Off || self.scheduler.is_some()
    }

    /// The paddings allowed in a trigger.
    pub const TRIGGER_PADDINGS: [Duration; 3] =
        [Duration::ZERO, Duration::from_micros(8), Duration::from_micros(16)];
    /// Most users in a PPDU: units of 26 tones in 160 MHz.
    pub const MOST_USERS: u16 = 74;

    /// Bytes of padding in a trigger in mode `control_mode`.
    pub fn padding_bytes(&self, control_mode: &Mode) -> u32 {
        let bits = self.trigger_padding.as_nanos() * control_mode.rate().as_bps() / 1_000_000_000;
        bits.div_ceil(8) as u32
    }

    /// Bytes of the MPDU in each user's A-MPDU that requests the response: a trigger, with padding as in mode
    /// `control_mode`, or a QoS Null with a TRS Control field; `None` if there is none.
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

/// How many clients share an HE MU PPDU. 802.11ax leaves it to the access point. No unit remains unused in either case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// As many as bring the most bytes in the time that the access takes. Small units waste tones: eight users of
    /// 80 MHz have 848 of 996 tones, four have 968. A user with little data leaves padding in its unit. Ours.
    Goodput,
    /// As many as have data waiting: the round-robin scheduler of ns-3.
    Most,
}

impl Sharing {
    /// Fewer users than possible share a PPDU if they bring this part of the bytes more in the same time: clients then
    /// wait for more turns. Eight users of 80 MHz waste 13 % of what four have. Ours.
    pub(crate) const FEWER_WORTH: u64 = 16;
    /// One user has the channel alone if it brings this part more. A single user always gains up to 7 % at 80 MHz, by
    /// the tones between units and by its shorter answer. Ours.
    pub(crate) const ALONE_WORTH: u64 = 8;
}

/// How the users of an HE MU PPDU acknowledge it (802.11ax-2021 clause 26.4.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MuAcknowledgment {
    /// In sequence: the first user by a Block Ack, each other one by a Block Ack Request and a Block Ack.
    BlockAckRequests,
    /// All together, in response to a MU-BAR trigger after the PPDU.
    MuBar,
    /// All together, in response to a MU-BAR trigger within each A-MPDU.
    AggregatedMuBar,
    /// All together, in response to a Basic Trigger within each A-MPDU, with data after each Block Ack. One Multi-STA
    /// Block Ack acknowledges that data. This is a cascade (802.11ax-2021 clause 26.5.3).
    Cascade,
    /// All together, in response to a TRS Control field in a QoS Null within each A-MPDU (802.11ax-2021 clauses
    /// 9.2.4.6a.1 and 26.5.2). Responses that are too long for that are requested as by
    /// [`AggregatedMuBar`](Self::AggregatedMuBar).
    TriggeredResponseScheduling,
}

impl MuAcknowledgment {
    /// All kinds.
    pub const ALL: [Self; 5] = [
        Self::BlockAckRequests,
        Self::MuBar,
        Self::AggregatedMuBar,
        Self::Cascade,
        Self::TriggeredResponseScheduling,
    ];

    /// The name used in scenarios and options.
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

/// Room that responses to a trigger reserve for compressed TCP ACKs. The access point fixes their length before it
/// knows which ACKs its clients hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HackRoom {
    /// This number of bytes per user, always.
    Fixed(u32),
    /// Bytes that each user recently appended per MPDU received, times the MPDUs it has received since.
    Forecast,
}

/// Position of compressed TCP ACKs in a response to a trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HackCarrier {
    /// After the Block Ack Information, as in single-user exchanges.
    BlockAck,
    /// In a second MPDU, an Action No Ack frame, so that the control frame stays standard. If the access point misses
    /// either frame, it treats both as missed, and the bytes in it are sent again by the rules for lost link-layer
    /// ACKs.
    OwnMpdu,
}

/// When an access point triggers its clients for their data with Basic Triggers (802.11ax-2021 clause 26.5.2): at
/// accesses of its own, or later in its TXOP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Triggers {
    /// Never: access points with mainline drivers for MT7915.
    Off,
    /// The clients that send over 100 packets per second each, while there are at least two: two commercial access
    /// points (NIST IR 8506). Also clients whose Block Acks report waiting packets; the measurements had no such
    /// clients. Ours.
    Nist,
    /// All clients, at each access, except that data goes first while all have just reported empty queues with their
    /// Block Acks.
    Always,
    /// Clients to which data was just sent, because their ACKs are due, and clients that reported waiting packets.
    AckAware,
    /// No client by name, at each access: all units of a trigger are for [random
    /// access](OfdmaConfig::random_access_units).
    RandomAccess,
}

impl Triggers {
    /// Clients that must be busy before it triggers the busy ones.
    pub(crate) const NIST_BUSY: usize = 2;
}

/// Contention parameters of clients for a time after the access point acknowledged triggered data (MU EDCA Parameter
/// Set, 802.11ax-2021 clauses 9.4.2.251 and 26.2.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MuEdca {
    /// Unchanged, as with hostapd's defaults.
    Off,
    /// Those that OpenWrt's access points announce.
    OpenWrt,
    /// The clients do not contend, as with hostapd's sample configuration.
    Silent,
}

impl MuEdca {
    /// Unit of the timer: 8 TU of 1024 us each.
    const TIMER_UNIT: Duration = Duration::from_micros(8 * 1_024);

    /// Contention parameters of a client in `category`, and their duration.
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
