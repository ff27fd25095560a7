//! One HTTP connection to a server, registered with the shim where there is one.

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
use tacit_proto::fwp::repair::{Config, Range};
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

/// How servers are talked to.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where the shim listens.
    pub shim: ShimName,
    /// How holes are repaired.
    pub repair: Config,
    /// For a connection.
    pub connect_timeout: Duration,
    /// For a head, from the request on.
    pub head_timeout: Duration,
    /// Between bytes of a body.
    pub idle_timeout: Duration,
}

/// Default limit of connections for repair requests.
pub const PARALLEL_MAX: usize = 16;

impl Default for Settings {
    fn default() -> Self {
        Self {
            shim: ShimName::default(),
            repair: Config {
                // A station alone that loses a tenth of its frames, 20 MB: 53 Mb/s with 16, 47 with 6 (medians of 5).
                parallel_max: PARALLEL_MAX,
                // 14,600 made the Internet carry 36 % more than the file, 512 makes it carry 15 %, and is as fast.
                gap_busy_max: Config::default().gap_max,
                ..Config::default()
            },
            connect_timeout: Duration::from_secs(15),
            // nginx's own patience for a server behind it is 60 s.
            head_timeout: Duration::from_secs(60),
            idle_timeout: Duration::from_secs(30),
        }
    }
}

/// Bytes that may wait for holes, as many as simulated readers let wait (`fwp.reorder-buffer`): where 40 % of the frames
/// are lost 8 MiB are full within two seconds.
const HELD_MAX: u64 = 64 << 20;
/// How long a hole may stay open, and how often it is asked for: no reader waits for a file's first bytes, and where much is lost
/// TCP without repair is slower by far than asking on.
const DEADLINE: tacit_proto::units::Duration = tacit_proto::units::Duration::from_secs(60);
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

/// hyper's buffers: a frame of a body is no longer.
const BUFFER_LEN: usize = 128 * 1024;

/// State of the hop, for the report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hop {
    /// Connections that the shim looks after.
    pub registered: u64,
    /// Frames in a million that the link is expected to lose.
    pub expected_fer_ppm: Option<u32>,
    /// Why a connection was not looked after.
    pub refused: Option<String>,
    /// Connections made.
    pub connections: u64,
    /// The server's address.
    pub peer: Option<IpAddr>,
}

/// Makes connections to one server.
#[derive(Debug)]
pub struct Connector {
    /// How.
    pub settings: Arc<Settings>,
    /// Bytes of all connections.
    pub traffic: Arc<Traffic>,
    /// Where to.
    pub target: Target,
    reach: Arc<Reach>,
    hop: Mutex<Hop>,
}

impl Connector {
    /// To the server of `target`, if `reach` allows.
    pub fn new(settings: Arc<Settings>, reach: Arc<Reach>, target: Target) -> Self {
        Self { settings, traffic: Arc::default(), target, reach, hop: Mutex::default() }
    }

    /// True where a shim listens, and can do something for this target.
    pub fn has_shim(&self) -> bool {
        !self.target.is_tls && Flow::is_there(&self.settings.shim)
    }

    /// State of the hop, from the connections so far.
    pub fn hop(&self) -> Hop {
        self.hop.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The address that was connected to last.
    pub fn peer(&self) -> Option<IpAddr> {
        self.hop().peer
    }

    /// A new connection; one that the shim looks after if `registered` and it can.
    ///
    /// # Errors
    /// Where there is none, or none is allowed.
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
        // The request that waits for an answer reports its failure.
        let task = tokio::spawn(async move {
            let _ = connection.await;
        });
        let head_timeout = self.settings.head_timeout;
        Ok(Connection { sender, watch, task, head_timeout, answered_in: Duration::ZERO })
    }

    /// A new TCP connection, and the shim's side of it if `registered` and it can.
    ///
    /// # Errors
    /// Where there is none, or none is allowed.
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
            // The very address that is connected to is judged: a name may mean another one the next time.
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

    /// A request for the target with `headers`, which are end to end.
    ///
    /// # Errors
    /// Where that is none.
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

/// Where placeholders may stand in the answer to a request, before its head is known.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    /// Bytes of its head, by one that was seen.
    pub head_len: Option<u64>,
    /// Bytes of its body.
    pub body_len: u64,
}

/// By so much a head may be longer or shorter than the one before: `Content-Range` and `Content-Length` have more or
/// fewer digits (three numbers of at most 20), nothing else of it depends on the range.
const HEAD_SLACK: u64 = 64;

/// An open connection.
#[derive(Debug)]
pub struct Connection {
    sender: SendRequest<Outgoing>,
    /// State of its stream.
    pub watch: Arc<Watch>,
    task: JoinHandle<()>,
    head_timeout: Duration,
    /// From the last request to the head of its answer.
    pub answered_in: Duration,
}

impl Connection {
    /// Sends a request and waits for the head of its answer. With `expected`, placeholders may stand in the body.
    ///
    /// # Errors
    /// Where no answer comes, or one that is refused.
    pub async fn send(
        &mut self,
        request: Request<Outgoing>,
        expected: Option<Expected>,
    ) -> Result<Response<Incoming>, NetError> {
        let asked_at = tokio::time::Instant::now();
        let answer = async {
            self.sender.ready().await?;
            let start = self.watch.expect(request.method() == Method::HEAD, expected.is_some());
            // Told before the request leaves: the first round trips of a body count.
            if let (Some(flow), Some(Expected { head_len: Some(head_len), body_len })) =
                (&self.watch.flow, expected)
            {
                let body = start + head_len;
                let allowed = Range::new(body + HEAD_SLACK, (body + body_len).saturating_sub(HEAD_SLACK));
                // A shim that does not listen places nothing.
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

    /// True when another request may go out on it.
    pub fn is_reusable(&self) -> bool {
        self.watch.is_idle() && !self.sender.is_closed()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.task.abort();
    }
}
