//! What an observer hears of an exchange.

use super::exchange::Exchange;
use super::protection::{Handshake, Step};
use super::station::Outgoing;
use crate::payload::Payload;
use crate::wifi::air::{AirFrame, AmpduPosition, Frame, Outcome};
use crate::wifi::bss::Bss;
use crate::wifi::category::AccessCategory;
use crate::wifi::phy::Mode;

impl<P: Payload> Bss<P> {
    pub(super) fn record(&mut self, exchange: &Exchange, mode: Mode, outcome: Outcome, frame: Frame<P>) {
        if let Some(air) = &mut self.air {
            air.push_back(exchange.air_frame(mode, outcome, frame));
        }
    }

    /// The first frame of an exchange that collided.
    pub(super) fn record_collided(&mut self, exchange: &Exchange) {
        match exchange.handshake {
            Handshake::None | Handshake::Granted | Handshake::Continued => {
                self.record_collided_data(exchange);
            }
            Handshake::CtsToSelf => self.record_protection(exchange, Step::CtsToSelf, Outcome::Collided),
            Handshake::Rts => self.record_protection(exchange, Step::Rts, Outcome::Collided),
        }
    }

    pub(super) fn record_collided_data(&mut self, exchange: &Exchange) {
        let Some(air) = &mut self.air else { return };
        let originator = &self.stations[exchange.from.index()].peers[exchange.outgoing.peer()].originator;
        match exchange.outgoing {
            Outgoing::Request { .. } => {
                let frame = Frame::BlockAckReq { start: originator.window_start() };
                air.push_back(exchange.air_frame(originator.control_mode, Outcome::Collided, frame));
            }
            Outgoing::Data { plan, .. } => {
                self.ampdu_reference = self.ampdu_reference.wrapping_add(1);
                for (mpdu, position) in originator.in_flight().zip(1..) {
                    let ampdu = AmpduPosition {
                        reference: self.ampdu_reference,
                        last: position == plan.mpdus,
                        single: plan.mpdus == 1,
                    };
                    let frame = mpdu.frame(&plan, originator.is_delimited(&plan).then_some(ampdu));
                    air.push_back(exchange.air_frame(originator.mode, Outcome::Collided, frame));
                }
            }
        }
    }
}

impl Exchange {
    pub(super) fn air_frame<P>(&self, mode: Mode, outcome: Outcome, frame: Frame<P>) -> AirFrame<P> {
        AirFrame {
            at: self.start,
            duration: self.end - self.start,
            mode,
            reserves: self.reserves,
            transmitter: self.from,
            receiver: Some(self.to),
            // Station numbers and category are told apart when the frame is handed out.
            category: AccessCategory::default(),
            outcome,
            more_ppdu: match self.handshake {
                Handshake::Granted => Some(false),
                _ => self.grants().then_some(true),
            },
            frame,
        }
    }

    pub(super) fn response_air_frame<P>(&self, mode: Mode, lost: bool, frame: Frame<P>) -> AirFrame<P> {
        AirFrame {
            at: self.response_at,
            duration: self.response_end - self.response_at,
            mode,
            reserves: self.reserved_until() - self.response_end,
            transmitter: self.to,
            receiver: Some(self.from),
            category: AccessCategory::default(),
            outcome: if lost { Outcome::Errored } else { Outcome::Received },
            // Until something follows.
            more_ppdu: self.grants().then_some(false),
            frame,
        }
    }
}
