//! What goes before a data PPDU to keep others off: RTS and CTS, or a CTS to oneself (802.11-2020
//! clauses 10.3.2.8, 10.3.2.9 and 10.27).

use tacit_proto::units::{Duration, Instant};

use super::block_ack::Recipient;
use super::exchange::{Exchange, Phase, ends};
use super::originator::Originator;
use super::station::Outgoing;
use super::txop::Reservation;
use crate::payload::Payload;
use crate::wifi::air::{AirFrame, Frame, Outcome, StationId};
use crate::wifi::airtime::AirtimeUse;
use crate::wifi::bss::Bss;
use crate::wifi::category::AccessCategory;
use crate::wifi::config::Protection;
use crate::wifi::phy::{CTS_LEN, Format, Mode, Phy, RTS_LEN};

/// How an exchange begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handshake {
    /// With its data, or with a Block Ack Request.
    None,
    /// With a CTS to the sender itself; data follows whatever became of it.
    CtsToSelf,
    /// With an RTS; data follows the CTS.
    Rts,
    /// With what it is about, one SIFS after an acknowledgment to the holder of a TXOP, who granted it.
    Granted,
    /// With what it is about, one SIFS after another exchange of the sender's TXOP.
    Continued,
}

/// Which frame of a handshake is in the air.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    CtsToSelf,
    Rts,
    /// In answer to an RTS.
    Cts,
}

impl Protection {
    /// What may go before data.
    const fn kind(self) -> Handshake {
        match self {
            Self::None => Handshake::None,
            Self::CtsToSelf { .. } => Handshake::CtsToSelf,
            Self::RtsCts { .. } => Handshake::Rts,
        }
    }

    /// How much of a TXOP it may take before data in mode `data` with responses in mode `control`.
    pub(crate) fn longest(self, phy: &Phy, data: &Mode, control: &Mode) -> Duration {
        self.kind().duration(&phy.protection_mode(data).unwrap_or(*control), phy)
    }

    /// What goes before `outgoing` of `originator`.
    pub(crate) fn handshake<P: Payload>(self, outgoing: &Outgoing, originator: &Originator<P>) -> Handshake {
        let Outgoing::Data { .. } = outgoing else { return Handshake::None };
        let (mode, plan) = (&originator.mode, originator.plan());
        match self {
            // Stations of 802.11b need no warning of what they understand themselves.
            Self::CtsToSelf { above } if plan.octets > above && mode.format != Format::Dsss => self.kind(),
            Self::RtsCts { above } if plan.octets > above => self.kind(),
            Self::None | Self::RtsCts { .. } | Self::CtsToSelf { .. } => Handshake::None,
        }
    }
}

impl Handshake {
    /// Its first frame.
    pub fn first(self) -> Option<Step> {
        match self {
            Self::None | Self::Granted | Self::Continued => None,
            Self::CtsToSelf => Some(Step::CtsToSelf),
            Self::Rts => Some(Step::Rts),
        }
    }

    /// How long its first frame lasts in `mode`.
    pub fn first_duration(self, mode: &Mode) -> Duration {
        match self {
            Self::None | Self::Granted | Self::Continued => Duration::ZERO,
            Self::CtsToSelf => mode.ppdu_duration(CTS_LEN),
            Self::Rts => mode.ppdu_duration(RTS_LEN),
        }
    }

    /// From its start to that of the data.
    pub fn duration(self, mode: &Mode, phy: &Phy) -> Duration {
        match self {
            Self::None | Self::Granted | Self::Continued => Duration::ZERO,
            Self::CtsToSelf => self.first_duration(mode) + phy.sifs,
            Self::Rts => self.first_duration(mode) + phy.sifs + mode.ppdu_duration(CTS_LEN) + phy.sifs,
        }
    }
}

impl<P: Payload> Bss<P> {
    /// How the frames of a handshake before `data` are sent: as control responses to it are, but so that
    /// stations of 802.11b understand them where there are any.
    pub(super) fn protection_mode(&self, data: &Mode, control: &Mode) -> Mode {
        self.phy.protection_mode(data).unwrap_or(*control)
    }

    /// The first frame of the handshake of `exchange` goes out.
    pub(super) fn start_protection(&mut self, exchange: Exchange) {
        let Some(step) = exchange.handshake.first() else { return };
        let station = &mut self.stations[exchange.from.index()];
        match step {
            Step::Rts => station.counters.rts += 1,
            Step::CtsToSelf | Step::Cts => station.counters.cts_to_self += 1,
        }
        let class = exchange.outgoing.class();
        self.charge(exchange.from, class, AirtimeUse::Protection, exchange.first_end);
        self.phase = Phase::Protection { exchange, step, until: exchange.first_end };
    }

    /// A frame of the handshake is over.
    pub(crate) fn protection_ended(&mut self, exchange: &Exchange, step: Step, at: Instant) {
        match step {
            Step::CtsToSelf => {
                self.record_protection(exchange, step, Outcome::Received);
                self.protected(exchange);
            }
            Step::Rts => {
                let arrived = self.hears(exchange, RTS_LEN, exchange.begins, Direction::Forward);
                let outcome = if arrived { Outcome::Received } else { Outcome::Errored };
                self.record_protection(exchange, step, outcome);
                if arrived {
                    let until = exchange.start - self.phy.sifs;
                    let class = exchange.outgoing.class();
                    self.charge(exchange.from, class, AirtimeUse::Protection, until);
                    self.phase = Phase::Protection { exchange: *exchange, step: Step::Cts, until };
                } else {
                    // Those who heard the RTS may forget it when nothing follows (clause 10.3.2.4).
                    let mode = self.handshake_mode(exchange);
                    let reset = self.phy.sifs * 2
                        + mode.ppdu_duration(CTS_LEN)
                        + mode.rx_start_delay()
                        + self.phy.slot * 2;
                    self.fail_protection(exchange, at);
                    self.go_idle(at, at + reset);
                }
            }
            Step::Cts => {
                let arrived = self.hears(exchange, CTS_LEN, exchange.first_end, Direction::Back);
                let outcome = if arrived { Outcome::Received } else { Outcome::Errored };
                self.record_protection(exchange, step, outcome);
                if arrived {
                    let peer = &mut self.stations[exchange.from.index()].peers[exchange.outgoing.peer()];
                    peer.originator.rts_answered();
                    self.protected(exchange);
                } else {
                    self.fail_protection(exchange, at);
                    // A CTS reserves the medium to the end of what it allows.
                    if exchange.grants() {
                        self.reservation = Reservation::left_by(exchange);
                    }
                    self.go_idle(at, exchange.response_end);
                }
            }
        }
    }

    /// The handshake is over: data follows SIFS later.
    fn protected(&mut self, exchange: &Exchange) {
        self.charge(exchange.from, exchange.outgoing.class(), AirtimeUse::Protection, exchange.start);
        if exchange.handshake == Handshake::Rts {
            self.stations[exchange.from.index()].count_access(&exchange.outgoing, self.phy);
        }
        self.start_data(*exchange);
    }

    /// No CTS came, or none that was understood at `heard_until`; the sender notices. Call before
    /// [`Bss::go_idle`].
    pub(super) fn fail_protection(&mut self, exchange: &Exchange, heard_until: Instant) {
        let timeout = self.phy.ack_timeout(&self.handshake_mode(exchange));
        let noticed_at = heard_until.max(exchange.first_end + timeout);
        let limit = self.config.short_retry_limit;
        let station = &mut self.stations[exchange.from.index()];
        station.counters.missed_cts += 1;
        let peer = &mut station.peers[exchange.outgoing.peer()];
        let agreement = matches!(peer.recipient, Recipient::Block(_));
        let settled = peer.originator.rts_missed(limit, agreement);
        self.end_failed(exchange, settled, noticed_at);
    }

    /// How long a CTS within `exchange` lasts, and the time to notice it.
    pub(super) fn cts_duration(&self, exchange: &Exchange) -> Duration {
        let mode = self.handshake_mode(exchange);
        mode.ppdu_duration(CTS_LEN) + mode.rx_start_delay()
    }

    fn handshake_mode(&self, exchange: &Exchange) -> Mode {
        let peer = &self.stations[exchange.from.index()].peers[exchange.outgoing.peer()];
        self.protection_mode(&peer.originator.mode, &peer.originator.control_mode)
    }

    /// Draws whether a control frame of the handshake is understood.
    pub(super) fn hears(&mut self, exchange: &Exchange, len: u32, sent_at: Instant, way: Direction) -> bool {
        let [from, to] = ends(&mut self.stations, exchange);
        let peer = match way {
            Direction::Forward => &mut from.peers[exchange.outgoing.peer()],
            Direction::Back => {
                let back = to.peer_index(exchange.from);
                &mut to.peers[back]
            }
        };
        let noisy = peer.noise.as_mut().is_some_and(|noise| noise.takes_control(len));
        !noisy && !peer.is_away(sent_at)
    }

    pub(super) fn record_protection(&mut self, exchange: &Exchange, step: Step, outcome: Outcome) {
        if self.air.is_none() {
            return;
        }
        let mode = self.handshake_mode(exchange);
        let until = exchange.end + exchange.reserves;
        let (at, end, transmitter, receiver, frame) = match step {
            Step::Rts => (exchange.begins, exchange.first_end, exchange.from, exchange.to, Frame::Rts),
            Step::CtsToSelf => {
                (exchange.begins, exchange.first_end, exchange.from, exchange.from, Frame::Cts)
            }
            Step::Cts => {
                let at = exchange.first_end + self.phy.sifs;
                (at, exchange.start - self.phy.sifs, exchange.to, exchange.from, Frame::Cts)
            }
        };
        let receiver: Option<StationId> = Some(receiver);
        let (duration, reserves) = (end - at, until - end);
        if let Some(air) = &mut self.air {
            let category = AccessCategory::default();
            air.push_back(AirFrame {
                at,
                duration,
                mode,
                reserves,
                transmitter,
                receiver,
                category,
                outcome,
                more_ppdu: None,
                frame,
            });
        }
    }
}

/// Which way a frame of the handshake goes.
#[derive(Clone, Copy)]
pub(super) enum Direction {
    /// From the sender of data.
    Forward,
    /// To it.
    Back,
}
