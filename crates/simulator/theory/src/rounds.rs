//! Rounds of 802.11ax: an access point sends to several users at once (802.11ax-2021 clause 26.5.1), and they
//! acknowledge (clause 26.4.4). Their TCP ACKs are sent in separate channel accesses, in response to a trigger (clauses
//! 26.5.2 and 9.3.1.22), after Block Acks (clause 26.5.3), or inside them.

use tacit_link::wifi::air::TriggerKind;
use tacit_link::wifi::phy::{
    BLOCK_ACK_REQUEST_LEN, HeChoice, MPDU_DELIMITER_LEN, Mode, MultiUser, MultiUserPpdu, QOS_NULL_LEN,
    block_ack_len, mpdu_len, mu_bar_len, multi_sta_block_ack_len, subframe_len, trigger_len,
};
use tacit_link::wifi::{MuAcknowledgment, OfdmaConfig, Triggers};
use tacit_packet::units::Duration;

use crate::capacity::between_integers;
use crate::capacity::{AckCoding, AckExchange, Airtime, Capacity, Cycle, Feedback, Hop, Traffic};

/// An access point that always has data for all users of each of its PPDUs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rounds {
    /// Timing, the mode of data to each user and of frames sent by a single user (HE SU), the mode of triggers and
    /// Multi-STA Block Acks, and the Block Ack window.
    pub hop: Hop,
    /// Number of users in a PPDU.
    pub users: u32,
    /// How users acknowledge, whether a trigger requests their TCP ACKs, and whether a poll precedes it. Room for
    /// TCP/HACK is assumed to be as long as needed, and users do not contend after responding to a trigger.
    pub ofdma: OfdmaConfig,
    /// Highest MCS of TCP ACKs in response to a trigger.
    pub ack_mcs: u8,
    /// Highest MCS of buffer status reports.
    pub report_mcs: u8,
    /// How a trigger for TCP ACKs accesses the medium.
    pub trigger_access: TriggerAccess,
    /// Content of the Multi-STA Block Ack for each user.
    pub answer: MultiStaAnswer,
}

/// How a trigger for TCP ACKs accesses the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TriggerAccess {
    /// With a separate channel access: AIFS and the mean backoff.
    Own,
    /// SIFS after the Block Acks, in the TXOP of the data.
    SameTxop,
}

/// Content of a Multi-STA Block Ack for a station whose MPDUs all arrived (802.11ax-2021 clause 9.3.1.8.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MultiStaAnswer {
    /// An indication that all arrived, in two bytes.
    All,
    /// The bitmap of the window; for a single MPDU, an acknowledgment.
    Bitmap,
}

/// Modes of the frames in a round.
#[derive(Clone, Copy, Debug)]
struct Modes {
    /// Data to each user.
    data: Mode,
    /// A user's Block Ack.
    block_ack: Mode,
    /// A user's TCP ACKs in response to a trigger.
    acks: Mode,
    /// A user's buffer status report.
    report: Mode,
}

impl Rounds {
    /// Rounds as configured in the simulator: responses use the MCS of data except for Block Acks, triggers use
    /// separate channel accesses, and lossless responses are acknowledged with "all arrived".
    pub fn new(hop: Hop, users: u32, ofdma: OfdmaConfig) -> Self {
        Self {
            hop,
            users,
            ofdma,
            ack_mcs: u8::MAX,
            report_mcs: u8::MAX,
            trigger_access: TriggerAccess::Own,
            answer: MultiStaAnswer::All,
        }
    }

    /// The exchange that returns `acks` TCP ACKs per user in response to a Basic Trigger, including a preceding poll if
    /// configured. `None` if the channel does not have a resource unit for each user, or the hop is not HE.
    pub fn ack_round(&self, traffic: &Traffic, acks: u32) -> Option<AckExchange> {
        Some(self.triggered(&self.modes()?, traffic, acks))
    }

    /// Airtime that a poll adds to a trigger for ACKs: a trigger for buffer status reports (BSRP), the reports, and
    /// SIFS after each. `None` under the conditions of [`Self::ack_round`].
    pub fn poll(&self) -> Option<Duration> {
        Some(self.poll_in(&self.modes()?))
    }

    fn modes(&self) -> Option<Modes> {
        let alone = self.hop.data;
        let highest = |kind, mcs| self.among_users(kind, alone.at_most_mcs(mcs));
        let block_ack = match self.ofdma.acknowledgment {
            MuAcknowledgment::BlockAckRequests => self.hop.control,
            MuAcknowledgment::MuBar
            | MuAcknowledgment::AggregatedMuBar
            | MuAcknowledgment::TriggeredResponseScheduling => {
                highest(MultiUser::Up, self.ofdma.response_mcs())?
            }
            // The rate of the data after it.
            MuAcknowledgment::Cascade => highest(MultiUser::Up, self.ack_mcs)?,
        };
        Some(Modes {
            data: self.among_users(MultiUser::Down, alone)?,
            block_ack,
            acks: highest(MultiUser::Up, self.ack_mcs)?,
            report: highest(MultiUser::Up, self.report_mcs)?,
        })
    }

    /// The mode of each user that corresponds to the single-user mode `alone`.
    fn among_users(&self, kind: MultiUser, alone: Mode) -> Option<Mode> {
        let options = alone.he_options()?;
        let he = HeChoice { training: None, coding: options.coding, extension: options.extension };
        let modes = vec![alone; self.users as usize];
        alone.among_users(&MultiUserPpdu::for_users(kind, &modes, he)?)
    }

    fn sifs(&self) -> Duration {
        self.hop.phy.sifs
    }

    /// Duration of a trigger of this kind for all users.
    fn trigger(&self, kind: TriggerKind) -> Duration {
        let padding = self.ofdma.padding_bytes(&self.hop.control);
        self.hop.control.ppdu_duration(trigger_len(kind, self.users, padding))
    }

    /// SIFS and the Multi-STA Block Ack for `acks` MPDUs per user.
    fn multi_sta_block_ack(&self, acks: u32) -> Duration {
        let window = match self.answer {
            MultiStaAnswer::Bitmap if acks > 1 => Some(self.hop.block_ack_window),
            MultiStaAnswer::Bitmap | MultiStaAnswer::All => None,
        };
        let len = multi_sta_block_ack_len(std::iter::repeat_n(window, self.users as usize));
        self.sifs() + self.hop.control.ppdu_duration(len)
    }

    fn poll_in(&self, modes: &Modes) -> Duration {
        let reports = modes.report.ppdu_duration(QOS_NULL_LEN + MPDU_DELIMITER_LEN);
        self.trigger(TriggerKind::BufferStatusReport) + self.sifs() + reports + self.sifs()
    }

    fn triggered(&self, modes: &Modes, traffic: &Traffic, acks: u32) -> AckExchange {
        let access = match self.trigger_access {
            TriggerAccess::Own => self.hop.mean_acquisition(),
            TriggerAccess::SameTxop => self.sifs(),
        };
        let poll = if self.ofdma.polls { self.poll_in(modes) } else { Duration::ZERO };
        AckExchange {
            acquisition: access + poll + self.trigger(TriggerKind::Basic) + self.sifs(),
            ack: modes.acks.ppdu_duration(self.hop.psdu_len(acks, traffic.ack)),
            link_ack: self.multi_sta_block_ack(acks),
        }
    }

    /// A channel access of each user with `acks` TCP ACKs. All users contend at the same time, so they wait for one
    /// mean backoff in total: a saturated user sends once in that time.
    fn accesses(&self, traffic: &Traffic, acks: u32) -> AckExchange {
        let AckExchange { ack, link_ack, .. } = self.hop.ack_access(traffic, acks);
        let users = u64::from(self.users);
        AckExchange {
            acquisition: self.hop.phy.aifs() * users + self.hop.mean_backoff(),
            ack: ack * users,
            link_ack: link_ack * users,
        }
    }

    /// Length of each user's A-MPDU of `mpdus`, including an embedded trigger if configured.
    fn psdu_len(&self, mpdus: u32, packet: u32) -> u32 {
        match self.ofdma.request_inside_len(&self.hop.control) {
            // The last data subframe is then padded.
            Some(trigger) => {
                mpdus * subframe_len(mpdu_len(self.hop.phy.mac_header_len(), packet)) + subframe_len(trigger)
            }
            None => self.hop.psdu_len(mpdus, packet),
        }
    }

    /// Time from the end of the data to the end of the last Block Ack, each with `appended` additional bytes.
    fn answered_after(&self, modes: &Modes, appended: u32) -> Duration {
        let (sifs, control, users) = (self.sifs(), self.hop.control, u64::from(self.users));
        let block_ack = block_ack_len(self.hop.block_ack_window) + appended;
        let at_once =
            sifs + modes.block_ack.ppdu_duration(block_ack + MPDU_DELIMITER_LEN + self.ofdma.report_len());
        match self.ofdma.acknowledgment {
            MuAcknowledgment::BlockAckRequests => {
                let requests = users.saturating_sub(1);
                (sifs + control.ppdu_duration(block_ack)) * users
                    + (sifs + control.ppdu_duration(BLOCK_ACK_REQUEST_LEN)) * requests
            }
            MuAcknowledgment::MuBar => {
                let padding = self.ofdma.padding_bytes(&control);
                sifs + control.ppdu_duration(mu_bar_len(self.users, padding)) + at_once
            }
            MuAcknowledgment::AggregatedMuBar
            | MuAcknowledgment::Cascade
            | MuAcknowledgment::TriggeredResponseScheduling => at_once,
        }
    }
}

/// Total goodput of the users of `rounds` without losses and collisions. A cycle consists of AIFS, mean backoff, the
/// largest data PPDU and its Block Acks, followed by the TCP ACKs. `None` if the channel does not have a resource unit
/// for each user, or the hop is not HE.
pub fn round_capacity(rounds: &Rounds, traffic: &Traffic, feedback: Feedback) -> Option<Capacity> {
    let modes = rounds.modes()?;
    let answered_after = rounds.answered_after(&modes, 0);
    let ppdu = |mpdus| {
        let bytes = rounds.psdu_len(mpdus, traffic.packet);
        (bytes, modes.data.ppdu_duration(bytes))
    };
    let mpdus = rounds.hop.most_mpdus(answered_after, ppdu);
    Some(Shared { rounds, modes, traffic, mpdus }.capacity(traffic, feedback))
}

/// A way of sending to users and of returning their acknowledgments.
pub(crate) struct RoundWay {
    /// Its name in a legend.
    pub name: &'static str,
    pub ofdma: OfdmaConfig,
    traffic: Traffic,
    feedback: Feedback,
}

impl RoundWay {
    /// All ways, ending with UDP. Those with TCP have one ACK per two segments.
    pub const ALL: [Self; 9] = {
        let asked = OfdmaConfig { triggers: Triggers::AckAware, ..OfdmaConfig::USUAL };
        [
            Self::tcp("TCP, ACKs by accesses of their own", OfdmaConfig::USUAL),
            Self::tcp("TCP, ACKs when asked", asked),
            Self::tcp("TCP, ACKs when asked after a poll", OfdmaConfig { polls: true, ..asked }),
            Self::tcp("TCP, ACKs behind Block Acks", Self::acknowledged(MuAcknowledgment::Cascade)),
            Self { feedback: Feedback::HACK, ..Self::tcp("TCP/HACK", OfdmaConfig::USUAL) },
            Self::udp("UDP, requests", MuAcknowledgment::BlockAckRequests),
            Self::udp("UDP", MuAcknowledgment::MuBar),
            Self::udp("UDP, trigger inside", MuAcknowledgment::AggregatedMuBar),
            Self::udp("UDP, cascade", MuAcknowledgment::Cascade),
        ]
    };

    const fn acknowledged(acknowledgment: MuAcknowledgment) -> OfdmaConfig {
        OfdmaConfig { acknowledgment, ..OfdmaConfig::USUAL }
    }

    const fn tcp(name: &'static str, ofdma: OfdmaConfig) -> Self {
        let feedback = Feedback::Packets { acks_per_segment: 0.5 };
        Self { name, ofdma, traffic: Traffic::TCP, feedback }
    }

    const fn udp(name: &'static str, acknowledgment: MuAcknowledgment) -> Self {
        let ofdma = Self::acknowledged(acknowledgment);
        Self { name, ofdma, traffic: Traffic::UDP, feedback: Feedback::None }
    }

    /// Whether a run comes close to it at any number of clients: ACKs need no access of their own, or follow a poll.
    pub fn is_reached(&self) -> bool {
        self.ofdma.acknowledgment == MuAcknowledgment::MuBar
            && (self.ofdma.polls || matches!(self.feedback, Feedback::None | Feedback::OnLinkAcks { .. }))
    }

    /// Its goodput in `rounds`, which must have the same `ofdma`.
    pub fn capacity(&self, rounds: &Rounds) -> Option<Capacity> {
        round_capacity(rounds, &self.traffic, self.feedback)
    }
}

/// The cycle of one PPDU to all users.
struct Shared<'a> {
    rounds: &'a Rounds,
    modes: Modes,
    traffic: &'a Traffic,
    mpdus: u32,
}

impl Shared<'_> {
    /// Maximum number of TCP ACKs of a user in response to a trigger.
    fn most_acks(&self) -> u32 {
        let ppdu = |acks| {
            let bytes = self.rounds.hop.psdu_len(acks, self.traffic.ack);
            (bytes, self.modes.acks.ppdu_duration(bytes))
        };
        self.rounds.hop.most_mpdus(Duration::ZERO, ppdu)
    }

    /// Airtime that `acks` TCP ACKs after each Block Ack add, including the Block Ack for them.
    fn behind_block_acks(&self, acks: u32) -> AckExchange {
        let Self { rounds, modes, traffic, .. } = self;
        let before = subframe_len(block_ack_len(rounds.hop.block_ack_window));
        let longer = modes.block_ack.ppdu_duration(before + rounds.hop.psdu_len(acks, traffic.ack));
        let plain = rounds.answered_after(modes, 0) - rounds.sifs();
        AckExchange {
            acquisition: Duration::ZERO,
            ack: longer.saturating_sub(plain),
            link_ack: rounds.multi_sta_block_ack(acks),
        }
    }
}

impl Cycle for Shared<'_> {
    fn users(&self) -> u32 {
        self.rounds.users
    }

    fn mpdus(&self) -> u32 {
        self.mpdus
    }

    fn without_acks(&self) -> Airtime {
        Airtime {
            data_acquisition: self.rounds.hop.mean_acquisition(),
            data: self.modes.data.ppdu_duration(self.rounds.psdu_len(self.mpdus, self.traffic.packet)),
            data_link_ack: self.rounds.answered_after(&self.modes, 0),
            ..Airtime::default()
        }
    }

    fn with_packets(&self, acks: f64) -> Airtime {
        let Self { rounds, modes, traffic, .. } = self;
        let returned = if rounds.ofdma.acknowledgment == MuAcknowledgment::Cascade {
            AckExchange::mean(acks, self.most_acks(), |acks| self.behind_block_acks(acks))
        } else if rounds.ofdma.triggers == Triggers::Off {
            let most = rounds.hop.mpdus_per_ppdu(traffic.ack);
            AckExchange::mean(acks, most, |acks| rounds.accesses(traffic, acks))
        } else {
            AckExchange::mean(acks, self.most_acks(), |acks| rounds.triggered(modes, traffic, acks))
        };
        self.without_acks().with_acks(returned)
    }

    fn with_compressed(&self, acks: f64, coding: AckCoding) -> Airtime {
        let answered_after = |bytes| self.rounds.answered_after(&self.modes, bytes);
        let compressed_acks =
            between_integers(acks, |acks| answered_after(coding.bytes(acks)) - answered_after(0));
        Airtime { compressed_acks, ..self.without_acks() }
    }
}

#[cfg(test)]
#[path = "rounds_tests.rs"]
mod tests;
