//! Configuration of programs, with every number decided.

use tacit_proto::fwp::repair;
use tacit_proto::units::{BitRate, Bytes, Duration, FlowId};

use crate::RunError;
use crate::flow::End;
use crate::setup::{FlowSetup, Traffic};

/// A program and the flows it feeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApplicationSetup {
    /// Its name in results. Its draws derive from the seed and the name of its first flow.
    pub name: String,
    /// The flows it feeds, joining the same two hosts over the same time: TCP flows without a size, or UDP flows,
    /// whose rate then has no meaning. No flow has two programs.
    pub flows: Vec<FlowId>,
    /// Its kind and configuration.
    pub application: Application,
}

/// Kind and configuration of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Application {
    /// Loads pages over TCP, one after the other.
    RequestResponse(RequestResponse),
    /// Sends for a while, is silent for a while.
    OnOff(OnOff),
    /// Sends a video as it is taken; the sink plays it.
    Streaming(Streaming),
    /// Downloads a body over HTTP; holes that FWP's shim filled are asked for again.
    Download(Download),
}

/// Page loads: a document is asked for, then everything it names, each over whichever connection is free.
/// Connections are opened at the start and kept; one request at a time is under way on each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestResponse {
    /// Which end opens the connections and asks. With [`End::Sink`] objects are downloads; with
    /// [`End::Source`] they are uploads, and an answer of `request` bytes follows each.
    pub requester: End,
    /// The objects of a page.
    pub objects: Objects,
    /// Bytes of the messages that travel against the objects, one per object.
    pub request: Bytes,
    /// From the end of a page to the start of the next.
    pub think: Span,
    /// Holes in downloaded objects are filled by FWP's shim and asked for again, as each connection's first flow and
    /// its others have it; all first flows come first.
    pub repair: Option<Repairers>,
}

/// Connections beside one that brings data, which ask again for holes in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repairers {
    /// How many.
    pub connections: u32,
    /// Requests, heads and repair. The program feeds the first connection, so the size has no meaning.
    pub download: Download,
}

impl Repairers {
    /// The connection that brings data, and its repairers.
    pub fn flows_of_each(&self) -> usize {
        1 + self.connections as usize
    }
}

/// The objects of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Objects {
    /// These sizes, the document first.
    Listed(Vec<Bytes>),
    /// A number of them, each with a size drawn from an exponential distribution, at least a byte.
    Drawn {
        /// How many.
        count: u32,
        /// Mean size.
        mean: Bytes,
    },
}

/// How long something takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// On average.
    pub mean: Duration,
    /// Around it.
    pub law: Law,
}

/// How times are distributed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Law {
    /// All the same.
    Fixed,
    /// Exponentially, as times without memory are.
    #[default]
    Exponential,
}

/// A source that sends for a while and is silent for a while, beginning with the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnOff {
    /// How long it sends.
    pub on: Span,
    /// How long it is silent.
    pub off: Span,
    /// Payload rate while it sends; `None` is as much as TCP takes.
    pub rate: Option<BitRate>,
    /// Bytes written at once under a rate: one datagram, over UDP.
    pub chunk: Bytes,
}

/// A video of constant bit rate, a frame at a time.
///
/// Over TCP a frame can be played when all before it have arrived. Over UDP nothing is sent again: a frame is
/// played when its time has come and something of a later one has arrived, damaged where bytes are missing.
/// Either way the player waits when it has nothing to play.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Streaming {
    /// Payload rate of the video.
    pub rate: BitRate,
    /// Frames per second.
    pub frame_rate: u32,
    /// Video the player gathers before it starts, and again whenever it has run dry.
    pub buffer: Duration,
    /// Over TCP, holes are filled by FWP's shim and asked for again over the flows behind the first.
    pub repair: Option<Repairers>,
}

/// A download over HTTP, whose first flow brings the body and whose others bring ranges of it again. All are opened at the
/// start and kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Download {
    /// Bytes of the body; `None` for one without an end.
    pub size: Option<Bytes>,
    /// Bytes of a request.
    pub request: Bytes,
    /// Bytes of the head of an answer.
    pub head: Bytes,
    /// How holes are asked for.
    pub repair: repair::Config,
}

/// A download without bytes of one kind.
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
    /// Refuses a program that contradicts itself; `taken` marks the flows that have one.
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
