//! A PPDU as received by an observer, and its conversion to and from the stored record.

use tacit_link::wifi::phy::Mode;
use tacit_link::wifi::{AccessCategory, LinkId, StationId};
use tacit_proto::units::{BitRate, Duration, FlowId, Instant};

use super::PpduRecord;

/// Maximum number of MPDUs in a PPDU record, which is that of EHT (802.11be).
const MAX_MPDUS: usize = 1024;

/// Kind of a PPDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Packets that do not all just acknowledge.
    Data,
    /// Only packets that just acknowledge: pure TCP ACKs, or the equivalent of other transports.
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
    /// A trigger, to which several stations respond at the same time.
    Trigger,
    /// A QoS Null, which reports the buffer status.
    Null,
}

impl Kind {
    /// Every kind with the name used in figure files.
    pub const NAMES: [(&'static str, Self); 11] = [
        ("data", Self::Data),
        ("tcp-ack", Self::TcpAck),
        ("ack", Self::Ack),
        ("block-ack", Self::BlockAck),
        ("block-ack-request", Self::BlockAckRequest),
        ("rts", Self::Rts),
        ("cts", Self::Cts),
        ("cf-end", Self::CfEnd),
        ("beacon", Self::Beacon),
        ("trigger", Self::Trigger),
        ("null", Self::Null),
    ];

    /// Its index in [`Kind::NAMES`].
    pub fn place(self) -> usize {
        Self::NAMES.iter().position(|(_, kind)| *kind == self).expect("all kinds have names")
    }

    /// True for a response to the previous PPDU.
    pub const fn is_response(self) -> bool {
        matches!(self, Self::Ack | Self::BlockAck)
    }
}

/// Rate of a PPDU, and the parameters that determine it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate {
    /// Rate of the data field.
    pub rate: BitRate,
    /// MCS index; `None` for legacy rates.
    pub mcs: Option<u8>,
    /// Number of spatial streams.
    pub streams: u8,
    /// Channel width in MHz.
    pub width_mhz: u16,
}

impl From<&Mode> for Rate {
    fn from(mode: &Mode) -> Self {
        Self { rate: mode.rate(), mcs: mode.mcs, streams: mode.streams, width_mhz: mode.width_mhz }
    }
}

/// One PPDU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ppdu {
    /// Its link of multi-link devices.
    pub link: LinkId,
    /// Start time.
    pub at: Instant,
    /// Duration.
    pub duration: Duration,
    /// Its transmitter.
    pub transmitter: StationId,
    /// Its receiver; `None` for broadcast.
    pub receiver: Option<StationId>,
    /// Its kind.
    pub kind: Kind,
    /// For each MPDU, whether it arrived.
    pub arrived: Vec<bool>,
    /// Another PPDU overlapped it.
    pub collided: bool,
    /// Number of MPDUs that are retransmissions.
    pub retries: usize,
    /// The More Data bit was set.
    pub more_data: bool,
    /// HACK's SYNC bit was set.
    pub sync: bool,
    /// Length of the compressed TCP ACKs appended to it, in bytes.
    pub appended: usize,
    /// The appended bytes start with those that its transmitter appended before.
    pub again: bool,
    /// Duration of the idle channel before it.
    pub idle_before: Duration,
    /// Duration for which it reserves the medium after its end.
    pub reserves: Duration,
    /// The access category of the exchange it belongs to.
    pub category: AccessCategory,
    /// Its rate.
    pub rate: Rate,
    /// First and last MAC sequence number of its MPDUs, or of the MPDUs that it requests or acknowledges.
    pub mac: Option<[u16; 2]>,
    /// Number of MPDUs that a Block Ack acknowledges.
    pub acknowledged: u32,
    /// Length of the IP packets in it, in bytes.
    pub bytes: u32,
    /// The flow of its first packet.
    pub flow: Option<FlowId>,
    /// It also carries packets of other flows.
    pub mixed: bool,
    /// Range of stream positions in that flow that its packets carry: the first, and one past the last.
    pub sequence: Option<[u64; 2]>,
    /// Stream position up to which its packets acknowledge the flow.
    pub acknowledges: Option<u64>,
}

impl Ppdu {
    /// End time.
    pub fn end(&self) -> Instant {
        self.at + self.duration
    }

    /// Number of MPDUs that did not arrive.
    pub fn lost(&self) -> usize {
        self.arrived.iter().filter(|arrived| !**arrived).count()
    }

    /// True if no MPDU arrived.
    pub fn is_lost(&self) -> bool {
        self.lost() == self.arrived.len()
    }

    /// Indexes, from 0, of the MPDUs that did not arrive.
    pub fn which_lost(&self) -> impl Iterator<Item = u32> + '_ {
        self.arrived.iter().zip(0..).filter(|(arrived, _)| !**arrived).map(|(_, index)| index)
    }

    /// Converts to the stored record.
    pub fn to_record(&self) -> PpduRecord {
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let (name, _) = Kind::NAMES[self.kind.place()];
        PpduRecord {
            link: self.link.0,
            at_ns: self.at.as_nanos(),
            duration_ns: self.duration.as_nanos(),
            transmitter: self.transmitter.0,
            receiver: self.receiver.map(|station| station.0),
            kind: name.to_owned(),
            mpdus: count(self.arrived.len()),
            lost: self.which_lost().collect(),
            collided: self.collided,
            retries: count(self.retries),
            more_data: self.more_data,
            sync: self.sync,
            appended: count(self.appended),
            again: self.again,
            idle_before_ns: self.idle_before.as_nanos(),
            reserves_ns: self.reserves.as_nanos(),
            category: self.category.name().to_owned(),
            rate_bps: self.rate.rate.as_bps(),
            mcs: self.rate.mcs,
            streams: self.rate.streams,
            width_mhz: self.rate.width_mhz,
            mac: self.mac,
            acknowledged: self.acknowledged,
            bytes: self.bytes,
            flow: self.flow.map(|flow| flow.0),
            mixed: self.mixed,
            sequence: self.sequence,
            acknowledges: self.acknowledges,
        }
    }

    /// Converts from the stored record; `None` if the kind is unknown or there are too many MPDUs.
    pub fn from_record(record: &PpduRecord) -> Option<Self> {
        let (_, kind) = Kind::NAMES.iter().find(|(name, _)| *name == record.kind)?;
        let mut arrived = vec![true; Some(record.mpdus as usize).filter(|mpdus| *mpdus <= MAX_MPDUS)?];
        for lost in &record.lost {
            *arrived.get_mut(*lost as usize)? = false;
        }
        let category = AccessCategory::ALL.into_iter().find(|category| category.name() == record.category);
        Some(Self {
            link: LinkId(record.link),
            at: Instant::ZERO + Duration::from_nanos(record.at_ns),
            duration: Duration::from_nanos(record.duration_ns),
            transmitter: StationId(record.transmitter),
            receiver: record.receiver.map(StationId),
            kind: *kind,
            arrived,
            collided: record.collided,
            retries: record.retries as usize,
            more_data: record.more_data,
            sync: record.sync,
            appended: record.appended as usize,
            again: record.again,
            idle_before: Duration::from_nanos(record.idle_before_ns),
            reserves: Duration::from_nanos(record.reserves_ns),
            category: category.unwrap_or_default(),
            rate: Rate {
                rate: BitRate::from_bps(record.rate_bps),
                mcs: record.mcs,
                streams: record.streams,
                width_mhz: record.width_mhz,
            },
            mac: record.mac,
            acknowledged: record.acknowledged,
            bytes: record.bytes,
            flow: record.flow.map(FlowId),
            mixed: record.mixed,
            sequence: record.sequence,
            acknowledges: record.acknowledges,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Results stored by older versions have fewer keys.
    #[test]
    fn a_record_of_an_older_version_is_read() {
        let old =
            r#"{"at_ns":5,"duration_ns":7,"transmitter":0,"receiver":1,"kind":"data","mpdus":3,"lost":[1]}"#;
        let record: PpduRecord = serde_json::from_str(old).unwrap();
        let ppdu = Ppdu::from_record(&record).unwrap();
        assert_eq!((ppdu.kind, ppdu.lost(), ppdu.end().as_nanos()), (Kind::Data, 1, 12));
        assert_eq!((ppdu.collided, ppdu.sequence, ppdu.rate), (false, None, Rate::default()));
    }

    #[test]
    fn records_with_implausible_numbers_are_no_ppdus() {
        let good = PpduRecord { kind: "data".into(), mpdus: 2, ..PpduRecord::default() };
        assert!(Ppdu::from_record(&good).is_some());
        for bad in [
            PpduRecord { kind: "dta".into(), ..good.clone() },
            PpduRecord { mpdus: 5_000, ..good.clone() },
            PpduRecord { lost: vec![2], ..good },
        ] {
            assert_eq!(Ppdu::from_record(&bad), None, "{bad:?}");
        }
    }
}
