//! A run before it starts: hosts, links and flows, with every number decided.

use tacit_link::wifi::BssConfig;
use tacit_link::wired::PipeConfig;
use tacit_proto::hack;
use tacit_proto::packet::IpVersion;
use tacit_proto::tcp;
use tacit_proto::units::{BitRate, Bytes, Duration, HostId, Instant};

/// Everything a run depends on. Equal setups give equal runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// Names of the hosts; [`HostId`] is the position. Random streams derive from the names, so a
    /// host added at the end moves nobody's draws.
    pub hosts: Vec<String>,
    /// Wired links.
    pub wired: Vec<WiredSetup>,
    /// Basic service sets.
    pub bss: Vec<BssSetup>,
    /// Flows; `FlowId` is the position.
    pub flows: Vec<FlowSetup>,
    /// Length of the run.
    pub duration: Duration,
    /// Results count what happens from here to the end.
    pub measure_from: Instant,
    /// Seed of every random stream.
    pub seed: u64,
    /// Encode and decode every packet on its way; the digest must not change.
    pub wire: bool,
    /// Sample the series this often; `None` for no series.
    pub sample_interval: Option<Duration>,
}

/// A wired link between two hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WiredSetup {
    /// One end.
    pub a: HostId,
    /// The other.
    pub b: HostId,
    /// From `a` to `b`.
    pub forward: PipeConfig,
    /// From `b` to `a`.
    pub backward: PipeConfig,
}

/// A basic service set and the hosts in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BssSetup {
    /// The access point.
    pub access_point: HostId,
    /// The clients, one per entry of `config.stations`.
    pub clients: Vec<HostId>,
    /// The radio.
    pub config: BssConfig,
    /// TCP/HACK at each station, the access point first; `None` for stock ones, empty for none at all.
    pub hack: Vec<Option<hack::Config>>,
}

/// One flow: data from `source` to `sink`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowSetup {
    /// Where data is sent from.
    pub source: HostId,
    /// Where it is received.
    pub sink: HostId,
    /// When the source starts.
    pub start: Instant,
    /// When the source stops offering data; `None` is the end of the run.
    pub stop: Option<Instant>,
    /// What it sends.
    pub traffic: Traffic,
}

/// What a flow sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// A TCP connection opened by the source.
    Tcp {
        /// Configuration of both ends.
        config: tcp::Config,
        /// Octets to send before closing; `None` is bulk: as much as the connection takes.
        size: Option<Bytes>,
    },
    /// UDP datagrams.
    Udp {
        /// IP version.
        ip: IpVersion,
        /// Octets after the UDP header.
        payload: Bytes,
        /// Payload bits per second, evenly spaced; `None` keeps the first queue full.
        rate: Option<BitRate>,
        /// The sink tells the source what arrived this long after something did; `None` tells nothing.
        report_after: Option<Duration>,
    },
}
