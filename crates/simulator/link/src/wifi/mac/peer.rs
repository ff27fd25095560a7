//! One end of a link, as a station sees it.

use tacit_packet::units::Instant;

use super::block_ack::Recipient;
use super::buffer_status::UplinkDemand;
use super::noise::Noise;
use super::originator::Originator;
use super::room_forecast::RoomForecast;
use super::triggered_rates::TriggeredRates;
use crate::loss::LossProcess;
use crate::wifi::functions::FunctionId;
use crate::wifi::turns::TurnLog;

/// A peer of a station.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub id: FunctionId,
    pub originator: Originator,
    pub recipient: Recipient,
    /// Loss process of data MPDUs to this peer.
    pub data_loss: LossProcess,
    /// Loss processes of the further spatial streams, if each has its own aggregate.
    pub stream_losses: Vec<LossProcess>,
    /// Loss process of ACKs and Block Acks to this peer.
    pub link_ack_loss: LossProcess,
    /// Effect of noise on data and acknowledgments to this peer.
    pub noise: Option<Noise>,
    /// Whether its data is acknowledged.
    pub answered: bool,
    /// It hears no frame that begins before this, because its radio is on another link or on its way back.
    pub deaf_until: Instant,
    /// When it is out of range.
    pub away: Option<(Instant, Instant)>,
    /// Forecast of the bytes that it will append to its next response to a trigger.
    pub room: RoomForecast,
    /// Estimate of its queue for this station.
    pub uplink: UplinkDemand,
    /// Rates of its HE TB PPDUs; `None` if they have those that the client finds by itself.
    pub triggered_rates: Option<Box<TriggeredRates>>,
    /// Its resource unit would be too small for even one MPDU: the next PPDU to it has a single user.
    pub needs_whole_channel: bool,
    /// Whether it is in the round-robin of peers with something to send.
    pub(super) ready: bool,
    /// Log of its turns.
    pub log: TurnLog,
    /// Airtime left to it in this round, in nanoseconds; negative if it has used more than its share.
    pub(super) deficit_ns: i64,
}

impl Peer {
    pub fn new(
        id: FunctionId,
        originator: Originator,
        recipient: Recipient,
        [data_loss, link_ack_loss]: [LossProcess; 2],
        noise: Option<Noise>,
    ) -> Self {
        Self {
            id,
            originator,
            recipient,
            data_loss,
            stream_losses: Vec::new(),
            link_ack_loss,
            noise,
            answered: true,
            deaf_until: Instant::ZERO,
            away: None,
            room: RoomForecast::default(),
            uplink: UplinkDemand::default(),
            triggered_rates: None,
            needs_whole_channel: false,
            ready: false,
            log: TurnLog::default(),
            deficit_ns: 0,
        }
    }

    /// Bytes of a request to it for missing data.
    pub fn repair_request_len(&self) -> u32 {
        if let Recipient::Deferred(recipient) = &self.recipient { recipient.request_len() } else { 0 }
    }

    /// Whether a TXOP may be shared with it: both directions are acknowledged.
    pub fn may_be_granted(&self) -> bool {
        self.answered && self.originator.is_answered()
    }

    /// Draws whether it decodes a control frame of `len` bytes that is sent to it at `at`.
    pub fn decodes(&mut self, len: u32, at: Instant) -> bool {
        let noisy = self.noise.as_mut().is_some_and(|noise| noise.takes_control(len));
        !noisy && !self.is_away(at)
    }

    /// Enters the round-robin at `at`.
    pub(super) fn enter(&mut self, at: Instant) {
        self.ready = true;
        self.log.wait(at);
    }

    /// Leaves the round-robin at `at`.
    pub(super) fn leave(&mut self, at: Instant) {
        self.ready = false;
        self.log.end_wait(at);
    }

    /// True if frames sent to it at `at` do not arrive because it is out of range, or hears nothing on this link.
    pub fn is_away(&self, at: Instant) -> bool {
        at < self.deaf_until || self.away.is_some_and(|(from, to)| (from..to).contains(&at))
    }
}
