//! Complete configuration of programs.

use tacit_between::fwp::repair;
use tacit_packet::units::{BitRate, Bytes, Duration, FlowId};

use crate::RunError;
use crate::flow::End;
use crate::setup::{FlowSetup, Traffic};

/// A program and the flows it feeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApplicationSetup {
    /// Its name in results. Its random numbers depend on the seed and on the name of its first flow.
    pub name: String,
    /// The flows it feeds. They join the same two hosts over the same time, and are TCP flows without a size, or UDP
    /// flows, whose rate is ignored. Each flow has at most one program.
    pub flows: Vec<FlowId>,
    /// Its kind and configuration.
    pub application: Application,
}

/// Kind and configuration of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Application {
    /// Loads pages over TCP, one after the other.
    RequestResponse(RequestResponse),
    /// Alternates between sending and silence.
    OnOff(OnOff),
    /// Sends a live video; the sink plays it.
    Streaming(Streaming),
    /// Downloads a body over HTTP; holes filled by FWP's shim are requested again.
    Download(Download),
}

/// Page loads: a document is requested, then all objects it names, each on any free connection of the page. Each
/// connection has one request in progress at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestResponse {
    /// Which end opens the connections and sends requests. With [`End::Sink`] objects are downloads; with
    /// [`End::Source`] they are uploads, each followed by an answer of `request` bytes.
    pub requester: End,
    /// The objects of a page.
    pub objects: Objects,
    /// Bytes of the messages in the opposite direction of the objects, one per object.
    pub request: Bytes,
    /// Time from the end of a page to the start of the next.
    pub think: Span,
    /// Connections are opened at the start, and every page uses all. Otherwise each page opens one of its own when it is
    /// requested, repaired ones excepted, and the user leaves after the last.
    pub keeps_connections: bool,
    /// FWP's shim fills holes in downloaded objects, and they are requested again. The first flow of each connection
    /// carries objects, the others repair them; all first flows come first.
    pub repair: Option<Repairers>,
}

/// Repair connections in addition to one that carries data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repairers {
    /// How many there are.
    pub connections: u32,
    /// Requests, heads and repair. The size is ignored, because the program feeds the first connection.
    pub download: Download,
}

impl Repairers {
    /// Number of flows per data connection, including its repairers.
    pub fn flows_of_each(&self) -> usize {
        1 + self.connections as usize
    }
}

/// The objects of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Objects {
    /// These sizes, document first.
    Listed(Vec<Bytes>),
    /// This number of objects, each with a size drawn from an exponential distribution, at least a byte.
    Drawn {
        /// Number of objects.
        count: u32,
        /// Mean size.
        mean: Bytes,
    },
}

/// A duration, fixed or random.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Mean.
    pub mean: Duration,
    /// Distribution around the mean.
    pub law: Law,
}

/// Distribution of durations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Law {
    /// All equal.
    Fixed,
    /// Exponential (memoryless).
    #[default]
    Exponential,
}

/// A source that alternates between sending and silence, starting with sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnOff {
    /// Duration of sending.
    pub on: Span,
    /// Duration of silence.
    pub off: Span,
    /// Payload rate while sending; `None` is as much as TCP accepts.
    pub rate: Option<BitRate>,
    /// Bytes written at once if there is a rate; over UDP, one datagram.
    pub chunk: Bytes,
}

/// A video of constant bit rate, sent frame by frame.
///
/// Over TCP a frame can be played when it and all frames before it have arrived. Over UDP there are no retransmissions:
/// a frame is played when it is due and part of a later one has arrived, and is damaged if bytes are missing. In either
/// case the player waits when it has nothing to play.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Streaming {
    /// Payload rate of the video.
    pub rate: BitRate,
    /// Frames per second.
    pub frame_rate: u32,
    /// Duration of video that the player gathers before it starts, and whenever it has run dry.
    pub buffer: Duration,
    /// Over TCP, FWP's shim fills holes, and they are requested again over the flows after the first.
    pub repair: Option<Repairers>,
}

/// A download over HTTP. The first flow carries the body, the others carry ranges of it for repair. All are opened at
/// the start and kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Download {
    /// Bytes of the body; `None` for an endless one.
    pub size: Option<Bytes>,
    /// Bytes of a request.
    pub request: Bytes,
    /// Bytes of the head of an answer.
    pub head: Bytes,
    /// How holes are requested.
    pub repair: repair::Config,
}

/// The error for a download without bytes of one kind.
const EMPTY: &str = "bodies, heads and requests have bytes";

impl Repairers {
    fn check(&self) -> Result<(), &'static str> {
        let has_bytes = self.download.request.0.min(self.download.head.0) > 0;
        if self.connections == 0 {
            Err("no connection repairs")
        } else if has_bytes {
            Ok(())
        } else {
            Err(EMPTY)
        }
    }
}

/// Most connections of one program.
pub const MAX_CONNECTIONS: usize = 256;
/// Most objects of a page.
pub const MAX_OBJECTS: u32 = 10_000;

impl ApplicationSetup {
    /// Refuses an inconsistent program; `taken` marks the flows that already have one.
    pub(crate) fn check(&self, flows: &[FlowSetup], taken: &mut [bool]) -> Result<(), RunError> {
        let refuse = |what: &str| Err(RunError::Setup(format!("application {}: {what}", self.name)));
        let Some(first) = self.flows.first().and_then(|flow| flows.get(flow.0 as usize)) else {
            return refuse("it feeds no flow that exists");
        };
        for flow in &self.flows {
            let Some(setup) = flows.get(flow.0 as usize) else {
                return refuse("it feeds a flow that does not exist");
            };
            let place = |flow: &FlowSetup| (flow.source, flow.sink, flow.start, flow.stop);
            if place(setup) != place(first) {
                return refuse("its flows differ in hosts or times");
            }
            if matches!(setup.traffic, Traffic::Connection { size: Some(_), .. }) {
                return refuse("one of its flows has a size of its own");
            }
            if std::mem::replace(&mut taken[flow.0 as usize], true) {
                return refuse("another one feeds the same flow");
            }
        }
        let is_connection = matches!(first.traffic, Traffic::Connection { .. });
        match &self.application {
            Application::RequestResponse(pages) => {
                let empty = match &pages.objects {
                    Objects::Listed(sizes) => sizes.is_empty() || sizes.contains(&Bytes(0)),
                    Objects::Drawn { count, .. } => *count == 0,
                };
                if self.flows.iter().any(|flow| {
                    flows.get(flow.0 as usize).is_none_or(|flow| matches!(flow.traffic, Traffic::Udp { .. }))
                }) {
                    return refuse("it needs TCP");
                }
                if empty || pages.request == Bytes(0) {
                    return refuse("objects and requests have bytes");
                }
                if let Some(repairers) = &pages.repair {
                    if pages.requester != End::Sink {
                        return refuse("holes in uploads have no reader");
                    }
                    if !self.flows.len().is_multiple_of(repairers.flows_of_each()) {
                        return refuse("its connections have not as many repairers each");
                    }
                    repairers.check().or_else(refuse)?;
                }
            }
            Application::Download(download) => {
                if !is_connection || self.flows.len() < 2 {
                    return refuse("it needs TCP, and two connections or more");
                }
                if [Some(download.request), Some(download.head), download.size].contains(&Some(Bytes(0))) {
                    return refuse(EMPTY);
                }
            }
            Application::Streaming(Streaming { repair: Some(repairers), .. })
                if !is_connection || self.flows.len() != repairers.flows_of_each() =>
            {
                return refuse("it needs a TCP connection and its repairers");
            }
            Application::OnOff(_) | Application::Streaming(Streaming { repair: None, .. })
                if self.flows.len() > 1 =>
            {
                return refuse("it feeds one flow");
            }
            Application::OnOff(on_off) => {
                if on_off.rate.is_none() && !is_connection {
                    return refuse("over UDP it needs a rate");
                }
                if on_off.rate.is_some_and(|rate| rate.as_bps() == 0) || on_off.chunk == Bytes(0) {
                    return refuse("a rate of zero");
                }
                if on_off.on.mean == Duration::ZERO || on_off.off.mean == Duration::ZERO {
                    return refuse("a time of zero");
                }
            }
            Application::Streaming(video) => {
                if let Some(repairers) = &video.repair {
                    repairers.check().or_else(refuse)?;
                }
                let frame = video.rate.as_bps().checked_div(8 * u64::from(video.frame_rate));
                if frame.is_none_or(|bytes| bytes == 0) {
                    return refuse("frames without bytes");
                }
            }
        }
        Ok(())
    }
}
