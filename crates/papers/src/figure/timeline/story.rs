//! What was on the air, PPDU by PPDU: the observer of a run.

use tacit_link::AirFrame;
use tacit_link::wifi::StationId;
use tacit_link::wifi::air::{Frame, Outcome};
use tacit_proto::Packet;
use tacit_proto::units::{Duration, Instant};
use tacit_runs::air::PpduRecord;
use tacit_sim::Observer;

/// Most MPDUs in a PPDU that is read: EHT has as many (802.11be).
const MAX_MPDUS: usize = 1024;

/// What a PPDU is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::figure) enum Kind {
    /// Packets, not all of them pure TCP ACKs.
    Data,
    /// Nothing but pure TCP ACKs.
    TcpAck,
    /// A single link-layer ACK.
    Ack,
    /// A Block Ack.
    BlockAck,
    /// A Block Ack Request.
    BlockAckRequest,
    /// A request to send.
    Rts,
    /// A clear to send.
    Cts,
    /// The end of a TXOP.
    CfEnd,
    /// A beacon.
    Beacon,
}

impl Kind {
    /// Every kind, by the name that figure files use.
    pub const NAMES: [(&'static str, Self); 9] = [
        ("data", Self::Data),
        ("tcp-ack", Self::TcpAck),
        ("ack", Self::Ack),
        ("block-ack", Self::BlockAck),
        ("block-ack-request", Self::BlockAckRequest),
        ("rts", Self::Rts),
        ("cts", Self::Cts),
        ("cf-end", Self::CfEnd),
        ("beacon", Self::Beacon),
    ];

    /// A response to the PPDU before it.
    pub const fn is_response(self) -> bool {
        matches!(self, Self::Ack | Self::BlockAck)
    }
}

/// One PPDU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::figure) struct Ppdu {
    pub at: Instant,
    pub duration: Duration,
    pub transmitter: StationId,
    pub receiver: Option<StationId>,
    pub kind: Kind,
    /// Of each MPDU, whether it arrived.
    pub arrived: Vec<bool>,
    /// How many of them are retransmissions.
    pub retries: usize,
    pub more_data: bool,
    pub sync: bool,
    /// Octets of compressed TCP ACKs on it.
    pub appended: usize,
    /// They begin with what its sender appended before.
    pub again: bool,
}

impl Ppdu {
    pub fn end(&self) -> Instant {
        self.at + self.duration
    }

    pub fn lost(&self) -> usize {
        self.arrived.iter().filter(|arrived| !**arrived).count()
    }

    /// As it is kept.
    pub fn to_record(&self) -> PpduRecord {
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let (name, _) =
            Kind::NAMES.iter().find(|(_, kind)| *kind == self.kind).expect("all kinds have names");
        let lost = self.arrived.iter().enumerate().filter(|(_, arrived)| !**arrived);
        PpduRecord {
            at_ns: self.at.as_nanos(),
            duration_ns: self.duration.as_nanos(),
            transmitter: self.transmitter.0,
            receiver: self.receiver.map(|station| station.0),
            kind: (*name).to_owned(),
            mpdus: count(self.arrived.len()),
            lost: lost.map(|(index, _)| count(index)).collect(),
            retries: count(self.retries),
            more_data: self.more_data,
            sync: self.sync,
            appended: count(self.appended),
            again: self.again,
        }
    }

    /// As it was kept; `None` for one of a kind that is not known, or with more MPDUs than fit.
    pub fn from_record(record: &PpduRecord) -> Option<Self> {
        let (_, kind) = Kind::NAMES.iter().find(|(name, _)| *name == record.kind)?;
        let mut arrived = vec![true; Some(record.mpdus as usize).filter(|mpdus| *mpdus <= MAX_MPDUS)?];
        for lost in &record.lost {
            *arrived.get_mut(*lost as usize)? = false;
        }
        Some(Self {
            at: Instant::ZERO + Duration::from_nanos(record.at_ns),
            duration: Duration::from_nanos(record.duration_ns),
            transmitter: StationId(record.transmitter),
            receiver: record.receiver.map(StationId),
            kind: *kind,
            arrived,
            retries: record.retries as usize,
            more_data: record.more_data,
            sync: record.sync,
            appended: record.appended as usize,
            again: record.again,
        })
    }

    /// Nothing of it arrived.
    pub fn is_lost(&self) -> bool {
        self.lost() == self.arrived.len()
    }
}

/// Listens to the first channel of a run.
#[derive(Clone, Debug, Default)]
pub(in crate::figure) struct Story {
    /// By start.
    pub ppdus: Vec<Ppdu>,
    /// What each station appended last.
    appended: Vec<Vec<u8>>,
}

impl Story {
    /// Whether what `station` appends now begins with what it appended before.
    fn appends_again(&mut self, station: StationId, appended: &[u8]) -> bool {
        if self.appended.len() <= station.index() {
            self.appended.resize_with(station.index() + 1, Vec::new);
        }
        let before = std::mem::replace(&mut self.appended[station.index()], appended.to_vec());
        !before.is_empty() && appended.starts_with(&before)
    }

    /// The PPDU this MPDU belongs to, if an MPDU of it was heard already. PPDUs that collide start
    /// together and differ in who sends.
    fn same_ppdu(&mut self, frame: &AirFrame<Packet>) -> Option<&mut Ppdu> {
        let together = self.ppdus.iter_mut().rev().take_while(|ppdu| ppdu.at == frame.at);
        together.into_iter().find(|ppdu| ppdu.transmitter == frame.transmitter)
    }
}

impl Observer for Story {
    fn on_air(&mut self, bss: usize, frame: &AirFrame<Packet>) {
        if bss != 0 {
            return;
        }
        let arrived = frame.outcome == Outcome::Received;
        let mut ppdu = Ppdu {
            at: frame.at,
            duration: frame.duration,
            transmitter: frame.transmitter,
            receiver: frame.receiver,
            kind: Kind::Beacon,
            arrived: vec![arrived],
            retries: 0,
            more_data: false,
            sync: false,
            appended: 0,
            again: false,
        };
        match &frame.frame {
            Frame::Data { retry, more_data, sync, payload, .. } => {
                ppdu.kind = if payload.is_pure_ack() { Kind::TcpAck } else { Kind::Data };
                ppdu.retries = usize::from(*retry);
                (ppdu.more_data, ppdu.sync) = (*more_data, *sync);
            }
            Frame::Ack { appended } | Frame::BlockAck { appended, .. } => {
                let block = matches!(frame.frame, Frame::BlockAck { .. });
                ppdu.kind = if block { Kind::BlockAck } else { Kind::Ack };
                ppdu.again = self.appends_again(frame.transmitter, appended);
                ppdu.appended = appended.len();
            }
            Frame::BlockAckReq { .. } => ppdu.kind = Kind::BlockAckRequest,
            Frame::Rts => ppdu.kind = Kind::Rts,
            Frame::Cts => ppdu.kind = Kind::Cts,
            Frame::CfEnd => ppdu.kind = Kind::CfEnd,
            Frame::Beacon => {}
        }
        match self.same_ppdu(frame) {
            Some(known) => {
                known.arrived.push(arrived);
                known.retries += ppdu.retries;
                if ppdu.kind == Kind::Data {
                    known.kind = Kind::Data;
                }
            }
            None => self.ppdus.push(ppdu),
        }
    }
}
