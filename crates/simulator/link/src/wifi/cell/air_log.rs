//! Records every frame on the channel for an observer.

use std::collections::VecDeque;

use tacit_packet::units::{Duration, Instant};

use crate::packet::{Holders, PacketRef};
use crate::wifi::air::{AirFrame, AmpduPosition, Frame, Outcome, StationId, Trigger, TriggerUser};
use crate::wifi::bitmap::AckBitmap;
use crate::wifi::category::AccessCategory;
use crate::wifi::functions::{FunctionId, Functions};
use crate::wifi::link_set::LinkId;
use crate::wifi::mac::buffer_status::BufferStatus;
use crate::wifi::mac::exchange::Exchange;
use crate::wifi::mac::mpdu::Mpdu;
use crate::wifi::mac::originator::Originator;
use crate::wifi::mac::plan::Outgoing;
use crate::wifi::mac::protection::{Handshake, Step};
use crate::wifi::mac::rules::Rules;
use crate::wifi::ofdma::HackCarrier;
use crate::wifi::phy::{Format, Mode, TriggerKind};

/// Recorded frames that were not polled yet, once recording was enabled.
#[derive(Clone, Debug)]
pub(crate) struct AirLog {
    frames: Option<VecDeque<AirFrame<PacketRef>>>,
    /// Reference number of the last data PPDU.
    ampdu_reference: u32,
    addressing: Addressing,
}

/// Numbering of functions, to find their stations and categories.
#[derive(Clone, Debug)]
struct Addressing {
    link: LinkId,
    functions: Functions,
    /// Categories in use, by index.
    categories: Vec<AccessCategory>,
}

impl AirLog {
    /// A disabled log of the channel of `link` with these access `categories`.
    pub fn new(link: LinkId, functions: Functions, categories: Vec<AccessCategory>) -> Self {
        Self { frames: None, ampdu_reference: 0, addressing: Addressing { link, functions, categories } }
    }

    /// Enables recording.
    pub fn start(&mut self) {
        self.frames.get_or_insert_with(VecDeque::new);
    }

    /// The next recorded frame.
    pub fn poll(&mut self) -> Option<AirFrame<PacketRef>> {
        self.frames.as_mut()?.pop_front()
    }

    /// True if recording is enabled.
    pub fn is_kept(&self) -> bool {
        self.frames.is_some()
    }

    /// The next data PPDU begins.
    pub fn begin_ppdu(&mut self) {
        self.ampdu_reference = self.ampdu_reference.wrapping_add(1);
    }

    /// Records the first frame of `exchange`, unless it is data.
    pub fn record(&mut self, exchange: &Exchange, mode: Mode, outcome: Outcome, frame: Frame<PacketRef>) {
        if let Some(frames) = &mut self.frames {
            frames.push_back(self.addressing.sent(exchange, mode, outcome, frame));
        }
    }

    /// Shows `see` the packets of recorded frames.
    pub fn each_held(&self, see: &mut dyn FnMut(&PacketRef)) {
        self.frames.iter().flatten().flat_map(|air| air.frame.packets()).for_each(see);
    }

    /// Records an MPDU of the current PPDU; `last` is true for its last one.
    pub fn record_mpdu(
        &mut self,
        exchange: &Exchange,
        originator: &Originator,
        (mpdu, last): (&Mpdu, bool),
        outcome: Outcome,
        holders: &mut Holders,
    ) {
        let Some(frames) = &mut self.frames else { return };
        mpdu.msdus.iter().for_each(|packet| holders.hold(*packet));
        let plan = originator.plan();
        let position = AmpduPosition { reference: self.ampdu_reference, last, single: plan.mpdus == 1 };
        let ampdu = originator.is_delimited().then_some(position);
        let sent = self.addressing.sent(exchange, originator.mode, outcome, plan.frame_of(mpdu));
        frames.push_back(AirFrame { ampdu, ..sent });
    }

    /// Records the frame that requests a response within the A-MPDU whose other MPDUs were recorded last.
    pub fn record_inside(
        &mut self,
        exchange: &Exchange,
        mode: Mode,
        outcome: Outcome,
        frame: Frame<PacketRef>,
    ) {
        let Some(frames) = &mut self.frames else { return };
        if let Some(position) = frames.back_mut().and_then(|before| before.ampdu.as_mut()) {
            (position.last, position.single) = (false, false);
        }
        let ampdu = Some(AmpduPosition { reference: self.ampdu_reference, last: true, single: false });
        frames.push_back(AirFrame { ampdu, ..self.addressing.sent(exchange, mode, outcome, frame) });
    }

    /// Records the link-layer ACK of `exchange`: a Block Ack of `scoreboard` if there is one.
    pub fn record_response(
        &mut self,
        exchange: &Exchange,
        mode: Mode,
        lost: bool,
        scoreboard: Option<(u16, AckBitmap)>,
        (appended, rules): (&[u8], &Rules),
    ) {
        let Some(frames) = &mut self.frames else { return };
        if exchange.handshake == Handshake::Triggered {
            // One Multi-STA Block Ack acknowledges the PPDUs of all users.
            return;
        }
        let (appended, behind) = match exchange.carrier(rules) {
            HackCarrier::BlockAck => (appended.to_vec(), Vec::new()),
            HackCarrier::OwnMpdu => (Vec::new(), appended.to_vec()),
        };
        let frame = match scoreboard {
            Some((start, bitmap)) => Frame::BlockAck { start, bitmap, appended },
            None => Frame::Ack { appended },
        };
        frames.push_back(self.addressing.answered(exchange, mode, lost, frame));
        if !behind.is_empty() {
            let frame = Frame::ActionNoAck { content: behind };
            frames.push_back(self.addressing.answered(exchange, mode, lost, frame));
        }
    }

    /// Changes the last recorded response to announce that a PPDU follows.
    pub fn ppdu_follows(&mut self) {
        if let Some(response) = self.frames.as_mut().and_then(VecDeque::back_mut) {
            response.more_ppdu = Some(true);
        }
    }

    /// Records the data, or the Block Ack Request, of a collided exchange of `originator`.
    pub fn record_collided_data(
        &mut self,
        exchange: &Exchange,
        originator: &Originator,
        holders: &mut Holders,
    ) {
        if self.frames.is_none() {
            return;
        }
        match exchange.outgoing {
            Outgoing::BlockAckRequest { .. } => {
                let frame = Frame::BlockAckReq { start: originator.window_start() };
                self.record(exchange, originator.control_mode, Outcome::Collided, frame);
            }
            // No receiver gets its contents.
            Outgoing::RepairRequest { .. } => {
                let frame = Frame::BlockAck { start: 0, bitmap: AckBitmap::new(0), appended: Vec::new() };
                self.record(exchange, originator.control_mode, Outcome::Collided, frame);
            }
            Outgoing::Data { .. } => {
                self.begin_ppdu();
                for (mpdu, position) in originator.streams().flat_map(Originator::in_flight).zip(1..) {
                    let last = position == originator.plan().mpdus;
                    self.record_mpdu(exchange, originator, (mpdu, last), Outcome::Collided, holders);
                }
            }
        }
    }

    /// Records a handshake frame before an exchange of `originator`.
    pub fn record_handshake(
        &mut self,
        exchange: &Exchange,
        originator: &Originator,
        rules: &Rules,
        step: Step,
        outcome: Outcome,
    ) {
        let Some(frames) = &mut self.frames else { return };
        let Exchange { begins, first_end, start, from, to, .. } = *exchange;
        let sifs = rules.phy.sifs;
        let mut mode = rules.protection_mode(&originator.mode, &originator.control_mode);
        let mut request = Frame::Rts;
        if let Some(padding) = originator.gate.padding {
            let [call, answer] = rules.phy.calling_modes(&originator.control_mode);
            mode = if step == Step::Rts { call } else { answer };
            request = Frame::Trigger(call_to(
                self.addressing.functions.station(to),
                &originator.mode,
                call,
                padding,
            ));
        }
        let ([at, end], [transmitter, receiver], frame) = match step {
            Step::Rts => ([begins, first_end], [from, to], request),
            Step::CtsToSelf => ([begins, first_end], [from, from], Frame::Cts),
            Step::Cts => ([first_end + sifs, start - sifs], [to, from], Frame::Cts),
        };
        frames.push_back(AirFrame {
            reserves: exchange.end + exchange.reserves - end,
            receiver: Some(self.addressing.functions.station(receiver)),
            outcome,
            ..self.addressing.broadcast(transmitter, [at, end], mode, frame)
        });
    }

    /// Records a broadcast frame of `transmitter`, which reserves the medium for `reserves` after it.
    pub fn record_broadcast(
        &mut self,
        transmitter: FunctionId,
        span: [Instant; 2],
        mode: Mode,
        reserves: Duration,
        outcome: Outcome,
        frame: Frame<PacketRef>,
    ) {
        let Some(frames) = &mut self.frames else { return };
        let sent = self.addressing.broadcast(transmitter, span, mode, frame);
        frames.push_back(AirFrame { reserves, outcome, ..sent });
    }

    /// Records a QoS Null from the first to the second of `ends`, in this unit of the PPDU in this `span`.
    pub fn record_null(
        &mut self,
        [from, to]: [FunctionId; 2],
        span: [Instant; 2],
        (mode, unit_index): (Mode, u16),
        queue: BufferStatus,
    ) {
        let Some(frames) = &mut self.frames else { return };
        let frame = Frame::QosNull { queue_size: queue.units() };
        frames.push_back(AirFrame {
            receiver: Some(self.addressing.functions.station(to)),
            unit_index: Some(unit_index),
            ..self.addressing.broadcast(from, span, mode, frame)
        });
    }
}

/// The initial control frame in mode `call` for `client`, whose channel is that of `data`. Padding fills rows of data bits.
fn call_to(client: StationId, data: &Mode, call: Mode, padding: Duration) -> Trigger {
    let user = TriggerUser { station: client, mode: *data, unit_index: 0, units: 1, start: 0 };
    Trigger {
        kind: TriggerKind::MuRts,
        width_mhz: data.width_mhz,
        padding_bytes: (call.rate().as_bps() / 8 * padding.as_micros() / 1_000_000) as u32,
        l_sig_length: 0,
        users: vec![user],
    }
}

impl Addressing {
    /// `frame` of `transmitter` to all stations, which receive it.
    fn broadcast(
        &self,
        transmitter: FunctionId,
        [at, until]: [Instant; 2],
        mode: Mode,
        frame: Frame<PacketRef>,
    ) -> AirFrame<PacketRef> {
        AirFrame {
            link: self.link,
            at,
            duration: until - at,
            mode,
            reserves: Duration::ZERO,
            transmitter: self.functions.station(transmitter),
            receiver: None,
            category: self.categories[self.functions.place(transmitter)],
            outcome: Outcome::Received,
            more_ppdu: None,
            unit_index: None,
            ampdu: None,
            frame,
        }
    }

    /// `frame` with the times and the addresses of `exchange`.
    fn sent(
        &self,
        exchange: &Exchange,
        mode: Mode,
        outcome: Outcome,
        frame: Frame<PacketRef>,
    ) -> AirFrame<PacketRef> {
        AirFrame {
            reserves: exchange.reserves,
            receiver: Some(self.functions.station(exchange.to)),
            outcome,
            more_ppdu: match exchange.handshake {
                Handshake::Granted => Some(false),
                _ => exchange.grants.then_some(true),
            },
            unit_index: exchange.unit_index(),
            ..self.broadcast(exchange.from, [exchange.start, exchange.end], mode, frame)
        }
    }

    /// `frame` as the link-layer ACK of `exchange`.
    fn answered(
        &self,
        exchange: &Exchange,
        mode: Mode,
        lost: bool,
        frame: Frame<PacketRef>,
    ) -> AirFrame<PacketRef> {
        AirFrame {
            reserves: exchange.reserved_until() - exchange.response_end,
            receiver: Some(self.functions.station(exchange.from)),
            outcome: if lost { Outcome::Errored } else { Outcome::Received },
            // Until a PPDU follows.
            more_ppdu: exchange.grants.then_some(false),
            unit_index: exchange.unit_index().filter(|_| mode.format == Format::HeTb),
            ..self.broadcast(exchange.to, [exchange.response_at, exchange.response_end], mode, frame)
        }
    }
}
