//! A PPDU as received by an observer, which is also its form in records.

use serde::{Deserialize, Serialize};
use tacit_link::wifi::phy::Mode;
use tacit_link::wifi::{AccessCategory, LinkId, StationId};
use tacit_packet::units::{BitRate, Duration, FlowId, Instant};

use super::stored::{category, is_default, mpdus, raw};

/// Kind of a PPDU, in records with the name used in figure files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub struct Rate {
    /// Rate of the data field; 0 if not recorded.
    #[serde(rename = "rate_bps", with = "raw")]
    pub rate: BitRate,
    /// MCS index; `None` for legacy rates.
    #[serde(skip_serializing_if = "is_default")]
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

/// One PPDU. Records leave out what is usual, and those of older versions lack some fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ppdu {
    /// Its link of multi-link devices.
    #[serde(default, with = "raw", skip_serializing_if = "is_default")]
    pub link: LinkId,
    /// Start time.
    #[serde(rename = "at_ns", with = "raw")]
    pub at: Instant,
    /// Duration.
    #[serde(rename = "duration_ns", with = "raw")]
    pub duration: Duration,
    /// Its transmitter.
    #[serde(with = "raw")]
    pub transmitter: StationId,
    /// Its receiver; `None` for broadcast.
    #[serde(with = "raw")]
    pub receiver: Option<StationId>,
    /// Its kind.
    pub kind: Kind,
    /// For each MPDU, whether it arrived.
    #[serde(flatten, with = "mpdus")]
    pub arrived: Vec<bool>,
    /// Another PPDU overlapped it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub collided: bool,
    /// Number of MPDUs that are retransmissions.
    #[serde(default, skip_serializing_if = "is_default")]
    pub retries: usize,
    /// The More Data bit was set.
    #[serde(default, skip_serializing_if = "is_default")]
    pub more_data: bool,
    /// HACK's SYNC bit was set.
    #[serde(default, skip_serializing_if = "is_default")]
    pub sync: bool,
    /// Length of the compressed TCP ACKs appended to it, in bytes.
    #[serde(default, skip_serializing_if = "is_default")]
    pub appended: usize,
    /// The appended bytes start with those that its transmitter appended before.
    #[serde(default, skip_serializing_if = "is_default")]
    pub again: bool,
    /// Duration of the idle channel before it.
    #[serde(rename = "idle_before_ns", default, with = "raw")]
    pub idle_before: Duration,
    /// Duration for which it reserves the medium after its end.
    #[serde(rename = "reserves_ns", default, with = "raw")]
    pub reserves: Duration,
    /// The access category of the exchange it belongs to.
    #[serde(default, with = "category")]
    pub category: AccessCategory,
    /// Its rate.
    #[serde(flatten)]
    pub rate: Rate,
    /// First and last MAC sequence number of its MPDUs, or of the MPDUs that it requests or acknowledges.
    #[serde(default, skip_serializing_if = "is_default")]
    pub mac: Option<[u16; 2]>,
    /// Number of MPDUs that a Block Ack acknowledges.
    #[serde(default, skip_serializing_if = "is_default")]
    pub acknowledged: u32,
    /// Length of the IP packets in it, in bytes.
    #[serde(default, skip_serializing_if = "is_default")]
    pub bytes: u32,
    /// The flow of its first packet.
    #[serde(default, with = "raw", skip_serializing_if = "is_default")]
    pub flow: Option<FlowId>,
    /// It also carries packets of other flows.
    #[serde(default, skip_serializing_if = "is_default")]
    pub mixed: bool,
    /// Range of stream positions in that flow that its packets carry: the first, and one past the last.
    #[serde(default, skip_serializing_if = "is_default")]
    pub sequence: Option<[u64; 2]>,
    /// Stream position up to which its packets acknowledge the flow.
    #[serde(default, skip_serializing_if = "is_default")]
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
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Results stored by older versions have fewer keys.
    #[test]
    fn a_record_of_an_older_version_is_read() {
        let old =
            r#"{"at_ns":5,"duration_ns":7,"transmitter":0,"receiver":1,"kind":"data","mpdus":3,"lost":[1]}"#;
        let ppdu: Ppdu = serde_json::from_str(old).unwrap();
        assert_eq!((ppdu.kind, ppdu.lost(), ppdu.end().as_nanos()), (Kind::Data, 1, 12));
        assert_eq!((ppdu.collided, ppdu.sequence, ppdu.rate), (false, None, Rate::default()));
    }

    #[test]
    fn records_with_implausible_numbers_are_no_ppdus() {
        let read = |kind: &str, mpdus: u32, lost: &str| {
            serde_json::from_str::<Ppdu>(&format!(
                r#"{{"at_ns":5,"duration_ns":7,"transmitter":0,"receiver":null,"kind":"{kind}","mpdus":{mpdus},"lost":[{lost}]}}"#
            ))
        };
        assert!(read("data", 2, "").is_ok());
        for (kind, mpdus, lost) in [("dta", 2, ""), ("data", 5_000, ""), ("data", 2, "2")] {
            assert!(read(kind, mpdus, lost).is_err(), "{kind} {mpdus} {lost}");
        }
    }

    #[test]
    fn kinds_have_the_names_of_figure_files() {
        for (name, kind) in Kind::NAMES {
            assert_eq!(serde_json::to_value(kind).unwrap(), name);
        }
    }
}
