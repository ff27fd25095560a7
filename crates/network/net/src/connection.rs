//! One HTTP connection to a server, registered with the shim if there is one.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper::header::{HOST, HeaderMap, HeaderValue};
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use tacit_between::fwp::repair::{Config, Range};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::error::NetError;
use crate::flow::{Flow, Registration, ShimName};
use crate::reach::Reach;
use crate::target::Target;
use crate::tls;
use crate::watched::{Stream, Traffic, Watch, Watched};

/// The body of a request.
pub type Outgoing = UnsyncBoxBody<Bytes, Box<dyn std::error::Error + Send + Sync>>;

/// A request without a body.
pub fn no_body() -> Outgoing {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

/// Settings for connections to servers.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Socket name of the shim.
    pub shim: ShimName,
    /// How holes are repaired.
    pub repair: Config,
    /// Time limit for opening a connection.
    pub connect_timeout: Duration,
    /// Time limit for the head of an answer, from the request on.
    pub head_timeout: Duration,
    /// Time limit between two reads of a body.
    pub idle_timeout: Duration,
}

/// Default limit of parallel connections for repair requests.
pub const PARALLEL_MAX: usize = 16;

impl Default for Settings {
    fn default() -> Self {
        Self {
            shim: ShimName::default(),
            repair: Config {
                // One station that loses a tenth of its frames, 20 MB: 53 Mb/s with 16 connections, 47 Mb/s with 6
                // (medians of 5 runs).
                parallel_max: PARALLEL_MAX,
                // With 14,600 the Internet path carries 36 % more than the file, with 512 only 15 %, at the same speed.
                gap_busy_max: Config::default().gap_max,
                ..Config::default()
            },
            connect_timeout: Duration::from_secs(15),
            // nginx waits 60 s for an upstream server.
            head_timeout: Duration::from_secs(60),
            idle_timeout: Duration::from_secs(30),
        }
    }
}

/// Bytes that may wait behind holes, the same number as in simulation (`fwp.reorder-buffer`). With 40 % frame loss, 8
/// MiB are full within two seconds.
const HELD_MAX: u64 = 64 << 20;
/// How long a hole may stay open, and how often it is requested. No reader waits for the first bytes of a file, and at
/// high loss rates further requests are much faster than TCP without repair.
const DEADLINE: tacit_packet::units::Duration = tacit_packet::units::Duration::from_secs(60);
const ATTEMPTS_MAX: u32 = 200;

impl Settings {
    /// Settings for files that are read only when they are complete.
    pub fn for_files() -> Self {
        let usual = Self::default();
        let repair =
            Config { held_max: HELD_MAX, deadline: DEADLINE, attempts_max: ATTEMPTS_MAX, ..usual.repair };
        Self { repair, ..usual }
    }
}

/// Size of hyper's buffers, and so the longest frame of a body.
const BUFFER_LEN: usize = 128 * 1024;

/// Hop state that the report shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hop {
    /// Connections registered with the shim.
    pub registered: u64,
    /// Expected frame loss of the link, in parts per million.
    pub expected_fer_ppm: Option<u32>,
    /// Why the shim refused a connection.
    pub refused: Option<String>,
    /// Connections opened.
    pub connections: u64,
    /// The server's address.
    pub peer: Option<IpAddr>,
}

/// Opens connections to one server.
#[derive(Debug)]
pub struct Connector {
    /// Settings for these connections.
    pub settings: Arc<Settings>,
    /// Bytes sent and received on all connections.
    pub traffic: Arc<Traffic>,
    /// The server.
    pub target: Target,
    reach: Arc<Reach>,
    hop: Mutex<Hop>,
}

impl Connector {
    /// A connector for the server of `target`, restricted by `reach`.
    pub fn new(settings: Arc<Settings>, reach: Arc<Reach>, target: Target) -> Self {
        Self { settings, traffic: Arc::default(), target, reach, hop: Mutex::default() }
    }

    /// True if a shim listens that can serve this target.
    pub fn has_shim(&self) -> bool {
        !self.target.is_tls && Flow::is_there(&self.settings.shim)
    }

    /// State of the hop, as the connections so far have shown it.
    pub fn hop(&self) -> Hop {
        self.hop.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Address of the most recent connection.
    pub fn peer(&self) -> Option<IpAddr> {
        self.hop().peer
    }

    /// Opens a connection; if `registered`, also registers it with the shim where possible.
    ///
    /// # Errors
    /// If it cannot be opened, or the address is not allowed.
    pub async fn connect(&self, registered: bool) -> Result<Connection, NetError> {
        let (tcp, flow) = self.open(registered).await?;
        let watch = Arc::new(Watch::new(flow, Arc::clone(&self.traffic)));
        let stream: Box<dyn Stream> = match self.target.is_tls {
            true => {
                let handshake = timeout(self.settings.connect_timeout, tls::connect(&self.target.host, tcp));
                Box::new(handshake.await.map_err(|_| NetError::Timeout("the TLS handshake"))??)
            }
            false => Box::new(tcp),
        };
        let io = TokioIo::new(Watched::new(stream, Arc::clone(&watch)));
        let (sender, connection) = Builder::new()
            .max_buf_size(BUFFER_LEN)
            .handshake::<_, Outgoing>(io)
            .await
            .map_err(|error| NetError::of_hyper(&error))?;
        // Connection errors are reported by the request that waits for an answer.
        let task = tokio::spawn(async move {
            let _ = connection.await;
        });
        let head_timeout = self.settings.head_timeout;
        Ok(Connection { sender, watch, task, head_timeout, answered_in: Duration::ZERO })
    }

    /// Opens a TCP connection and, if `registered`, its flow at the shim where possible.
    ///
    /// # Errors
    /// If it cannot be opened, or the address is not allowed.
    pub async fn open(&self, registered: bool) -> Result<(TcpStream, Option<Flow>), NetError> {
        let tcp = timeout(self.settings.connect_timeout, self.tcp())
            .await
            .map_err(|_| NetError::Timeout("the connection"))??;
        // A range request is one small write.
        let _ = tcp.set_nodelay(true);
        // A placeholder within a TLS record would end the connection.
        let flow = if registered && !self.target.is_tls { self.register(&tcp).await? } else { None };
        let peer = tcp.peer_addr().ok().map(|peer| peer.ip());
        self.note(|hop| (hop.connections, hop.peer) = (hop.connections + 1, peer));
        Ok((tcp, flow))
    }

    async fn tcp(&self) -> Result<TcpStream, NetError> {
        let host = &self.target.host;
        let found = tokio::net::lookup_host((host.as_str(), self.target.port)).await;
        let addresses = found.map_err(|source| NetError::Resolve { host: host.clone(), source })?;
        let mut last = None;
        for address in addresses {
            // The check applies to the address that is connected to, because the next lookup of the name may return
            // another one.
            if let Err(error) = self.reach.permit(host, address) {
                last.get_or_insert(error);
                continue;
            }
            match TcpStream::connect(address).await {
                Ok(tcp) => return Ok(tcp),
                Err(source) => last = Some(NetError::Connect { host: host.clone(), source }),
            }
        }
        Err(last.unwrap_or_else(|| NetError::Resolve {
            host: host.clone(),
            source: std::io::Error::other("the resolver knows the name and no address"),
        }))
    }

    async fn register(&self, tcp: &TcpStream) -> Result<Option<Flow>, NetError> {
        let (Ok(local), Ok(remote)) = (tcp.local_addr(), tcp.peer_addr()) else { return Ok(None) };
        let (local, remote) = (unmapped(local), unmapped(remote));
        Ok(match Flow::register(&self.settings.shim, local, remote).await? {
            Registration::NoShim => None,
            Registration::Refused(reason) => {
                self.note(|hop| hop.refused = Some(reason));
                None
            }
            Registration::Flow(flow) => {
                self.note(|hop| {
                    hop.registered += 1;
                    hop.expected_fer_ppm = Some(flow.expected_fer_ppm());
                });
                Some(flow)
            }
        })
    }

    fn note(&self, change: impl FnOnce(&mut Hop)) {
        change(&mut self.hop.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// A request for the target with `headers`, which are end-to-end.
    ///
    /// # Errors
    /// If the parts form no valid request.
    pub fn request(
        &self,
        method: Method,
        headers: &HeaderMap,
        body: Outgoing,
    ) -> Result<Request<Outgoing>, NetError> {
        let mut request = Request::builder().method(method).uri(&self.target.path).body(body);
        if let Ok(request) = &mut request {
            request.headers_mut().clone_from(headers);
            let host = HeaderValue::try_from(self.target.authority());
            host.map(|host| request.headers_mut().insert(HOST, host)).map_err(|_| bad_request())?;
        }
        request.map_err(|_| bad_request())
    }
}

fn bad_request() -> NetError {
    NetError::Argument("the address cannot be put into a request".to_owned())
}

fn unmapped(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Where placeholders may be in the answer to a request, before its head is known.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    /// Expected bytes of its head, from an earlier answer.
    pub head_len: Option<u64>,
    /// Expected bytes of its body.
    pub body_len: u64,
}

/// By how many bytes the lengths of two heads may differ: `Content-Range` and `Content-Length` contain three numbers of
/// at most 20 digits, and nothing else depends on the range.
const HEAD_SLACK: u64 = 64;

/// An open connection.
#[derive(Debug)]
pub struct Connection {
    sender: SendRequest<Outgoing>,
    /// State of its byte stream.
    pub watch: Arc<Watch>,
    task: JoinHandle<()>,
    head_timeout: Duration,
    /// Time from the last request to the head of its answer.
    pub answered_in: Duration,
}

impl Connection {
    /// Sends a request and waits for the head of its answer. With `expected`, placeholders are allowed in the body.
    ///
    /// # Errors
    /// If no answer arrives, or its head is refused.
    pub async fn send(
        &mut self,
        request: Request<Outgoing>,
        expected: Option<Expected>,
    ) -> Result<Response<Incoming>, NetError> {
        let asked_at = tokio::time::Instant::now();
        let answer = async {
            self.sender.ready().await?;
            let start = self.watch.expect(request.method() == Method::HEAD, expected.is_some());
            // Sent to the shim before the request, so that placeholders are allowed from the body's first round trip
            // on.
            if let (Some(flow), Some(Expected { head_len: Some(head_len), body_len })) =
                (&self.watch.flow, expected)
            {
                let body = start + head_len;
                let allowed = Range::new(body + HEAD_SLACK, (body + body_len).saturating_sub(HEAD_SLACK));
                // A shim that is gone writes no placeholders.
                allowed.map(|allowed| flow.allow(allowed)).transpose().ok();
            }
            self.sender.send_request(request).await
        };
        let answer =
            timeout(self.head_timeout, answer).await.map_err(|_| NetError::Timeout("the server's answer"))?;
        let answer = answer.map_err(|error| NetError::of_hyper(&error))?;
        self.answered_in = asked_at.elapsed();
        if let (Some(flow), Some(_), Some(body)) = (&self.watch.flow, expected, self.watch.body()) {
            flow.allow(body)?;
        }
        Ok(answer)
    }

    /// True if another request can be sent on it.
    pub fn is_reusable(&self) -> bool {
        self.watch.is_idle() && !self.sender.is_closed()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.task.abort();
    }
}
