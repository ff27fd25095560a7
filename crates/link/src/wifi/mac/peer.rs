//! One end of a link as a station sees it.

use tacit_proto::units::Instant;

use super::block_ack::Recipient;
use super::buffer_status::UplinkDemand;
use super::noise::Noise;
use super::originator::Originator;
use super::room_forecast::RoomForecast;
use crate::loss::LossProcess;
use crate::payload::Payload;
use crate::wifi::functions::FunctionId;
use crate::wifi::turns::TurnLog;

/// One end of a link as a station sees it.
#[derive(Clone, Debug)]
pub(crate) struct Peer<P> {
    pub id: FunctionId,
    pub originator: Originator<P>,
    pub recipient: Recipient<P>,
    /// Fate of each MPDU of data sent to this peer.
    pub data_loss: LossProcess,
    /// Fate of MPDUs on further spatial streams, where each has an aggregate of its own.
    pub stream_losses: Vec<LossProcess>,
    /// Fate of ACKs and Block Acks sent to this peer.
    pub link_ack_loss: LossProcess,
    /// Effect of noise on either on the way to this peer.
    pub noise: Option<Noise>,
    /// Whether its data is acknowledged.
    pub answered: bool,
    /// When it is out of reach.
    pub away: Option<(Instant, Instant)>,
    /// Bytes that it will append to its next answer to a trigger.
    pub room: RoomForecast,
    /// Its queue for this station, as far as this station knows.
    pub uplink: UplinkDemand,
    /// Not even one MPDU for it fits in the resource unit that it would have: the next PPDU to it is for it alone.
    pub goes_alone: bool,
    /// In the round-robin of peers that have something to be sent.
    pub(super) ready: bool,
    /// How it is served.
    pub log: TurnLog,
    /// Airtime that it may still use in this round, in nanoseconds; below zero it has had more than its share.
    pub(super) deficit_ns: i64,
}

impl<P> Peer<P> {
    pub fn new(
        id: FunctionId,
        originator: Originator<P>,
        recipient: Recipient<P>,
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
            away: None,
            room: RoomForecast::default(),
            uplink: UplinkDemand::default(),
            goes_alone: false,
            ready: false,
            log: TurnLog::default(),
            deficit_ns: 0,
        }
    }

    /// Bytes of a request to it for data that did not arrive.
    pub fn ask_len(&self) -> u32 {
        if let Recipient::Deferred(recipient) = &self.recipient { recipient.request_len() } else { 0 }
    }

    /// Whether a TXOP may be shared with it: both ends acknowledge data from the other.
    pub fn may_be_granted(&self) -> bool
    where
        P: Payload,
    {
        self.answered && self.originator.is_answered()
    }

    /// Draws whether it understands a control frame of `len` bytes that is sent to it at `at`.
    pub fn hears(&mut self, len: u32, at: Instant) -> bool {
        let noisy = self.noise.as_mut().is_some_and(|noise| noise.takes_control(len));
        !noisy && !self.is_away(at)
    }

    /// Enters the round-robin at `at`.
    #[inline]
    pub(super) fn enter(&mut self, at: Instant) {
        self.ready = true;
        self.log.wait(at);
    }

    /// Leaves the round-robin at `at`.
    #[inline]
    pub(super) fn leave(&mut self, at: Instant) {
        self.ready = false;
        self.log.end_wait(at);
    }

    /// True when nothing that is sent at `at` arrives there.
    pub fn is_away(&self, at: Instant) -> bool {
        self.away.is_some_and(|(from, to)| (from..to).contains(&at))
    }
}
