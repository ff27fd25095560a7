//! One client request, from its head to its answer.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Empty, Full};
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use hyper::header::{CONTENT_TYPE, HeaderValue, IF_RANGE, RANGE};
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request, Response, StatusCode};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::headers::{is_loop, pass_on};
use super::patience::WaitLimit;
use super::served::{OnServed, Served};
use super::tunnel::{self, Tunnel};
use crate::body::{Answer, Body};
use crate::client::{RequestedRange, get, get_part, plain};
use crate::connection::{Connector, Outgoing, Settings};
use crate::error::NetError;
use crate::reach::Reach;
use crate::target::Target;

/// The body of an answer to a client.
pub type Reply = UnsyncBoxBody<Bytes, NetError>;

/// State shared by all requests.
pub struct Forwarder {
    pub settings: Arc<Settings>,
    pub reach: Arc<Reach>,
    pub ports: Vec<u16>,
    pub on_served: OnServed,
    /// Slots for requests, each held until the answer ends or is abandoned, and how long a request waits for one. Idle
    /// kept-alive connections hold none.
    pub places: Arc<Semaphore>,
    pub patience: Duration,
    /// Slots for tunnels, separate from those for requests because browsers keep idle tunnels for minutes.
    pub tunnels: Arc<Semaphore>,
    pub tunnel_ports: Vec<u16>,
    pub tunnel_idle_max: Duration,
}

impl Forwarder {
    /// Answers a request; errors become answers, too. If it opens a tunnel, the tunnel is left in `slot`.
    pub async fn answer(
        &self,
        request: Request<Incoming>,
        slot: &tunnel::Slot,
    ) -> Result<Response<Reply>, Infallible> {
        let (method, url) = (request.method().to_string(), request.uri().to_string());
        let mut served = Served {
            method,
            url,
            status: 0,
            bytes: 0,
            complete: false,
            repaired: false,
            holes: 0,
            requests: 0,
        };
        if request.method() == Method::CONNECT {
            return Ok(match self.open_tunnel(request).await {
                Ok((upgrade, server, place)) => {
                    served.status = StatusCode::OK.as_u16();
                    let report = tunnel::Report {
                        served,
                        on_served: Arc::clone(&self.on_served),
                        to_program: Arc::default(),
                        _place: place,
                    };
                    let tunnel = Tunnel { upgrade, server, idle_max: self.tunnel_idle_max, report };
                    *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(tunnel);
                    Response::new(Empty::new().map_err(|never| match never {}).boxed_unsync())
                }
                Err(refusal) => self.refuse(refusal, served),
            });
        }
        let response = match self.forward(request).await {
            Ok((answer, place)) => {
                served.status = answer.status.as_u16();
                served.repaired = answer.is_repaired;
                let mut response = Response::new(
                    Counted::new(answer.body, served, Arc::clone(&self.on_served), place).boxed_unsync(),
                );
                *response.status_mut() = answer.status;
                *response.headers_mut() = answer.headers;
                response
            }
            Err(refusal) => self.refuse(refusal, served),
        };
        Ok(response)
    }

    fn refuse(&self, refusal: Refusal, mut served: Served) -> Response<Reply> {
        served.status = refusal.0.as_u16();
        served.complete = true;
        (self.on_served)(&served);
        refusal.response()
    }

    /// Waits for a slot of `places`, or refuses the request after the time limit.
    async fn place(&self, places: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Refusal> {
        let Ok(Ok(place)) = timeout(self.patience, Arc::clone(places).acquire_owned()).await else {
            let why = "as many connections are served as --connections allows".to_owned();
            return Err(Refusal(StatusCode::SERVICE_UNAVAILABLE, why));
        };
        Ok(place)
    }

    async fn open_tunnel(
        &self,
        request: Request<Incoming>,
    ) -> Result<(OnUpgrade, TcpStream, OwnedSemaphorePermit), Refusal> {
        check_loop(&request)?;
        let target = request.uri().authority().filter(|authority| authority.port().is_some());
        let target = target.map(|authority| Target::parse(&format!("https://{authority}/"))).transpose()?;
        let target = target.ok_or_else(|| {
            Refusal(StatusCode::BAD_REQUEST, "CONNECT names HOST:PORT (RFC 9110 section 9.3.6)".to_owned())
        })?;
        if !self.tunnel_ports.contains(&target.port) {
            return Err(NetError::Port(target.port).into());
        }
        let place = self.place(&self.tunnels).await?;
        let connector = Connector::new(Arc::clone(&self.settings), Arc::clone(&self.reach), target);
        let (server, _) = connector.open(false).await?;
        Ok((hyper::upgrade::on(request), server, place))
    }

    async fn forward(&self, request: Request<Incoming>) -> Result<(Answer, OwnedSemaphorePermit), Refusal> {
        let target = self.judge(&request)?;
        let place = self.place(&self.places).await?;
        let (head, body) = request.into_parts();
        let mut headers = head.headers;
        pass_on(&mut headers, head.version);
        let connector = Arc::new(Connector::new(Arc::clone(&self.settings), Arc::clone(&self.reach), target));
        let wanted = RequestedRange::from_headers(&headers);
        let wants_all = !headers.contains_key(RANGE) && !headers.contains_key(IF_RANGE);
        let is_repaired =
            head.method == Method::GET && body.is_end_stream() && (wants_all || wanted.is_some());
        let mut answer = if !is_repaired {
            let body = if body.is_end_stream() { crate::connection::no_body() } else { self.timed(body) };
            let mut connection = connector.connect(false).await?;
            // hyper frames the body again, with `Content-Length` if the length is known.
            let request = connector.request(head.method, &headers, body)?;
            let answer = connection.send(request, None).await?;
            plain(&connector, connection, answer)
        } else if let Some(wanted) = wanted {
            get_part(&connector, &headers, wanted).await?
        } else {
            get(&connector, &headers, true).await?
        };
        pass_on(&mut answer.headers, hyper::Version::HTTP_11);
        Ok((answer, place))
    }

    fn judge(&self, request: &Request<Incoming>) -> Result<Target, Refusal> {
        if request.method() == Method::TRACE {
            return Err(Refusal(StatusCode::METHOD_NOT_ALLOWED, "TRACE is refused".to_owned()));
        }
        if request.uri().authority().is_none() {
            let why = "this is a proxy: it is asked for http://HOST/PATH".to_owned();
            return Err(Refusal(StatusCode::BAD_REQUEST, why));
        }
        check_loop(request)?;
        let target = Target::from_uri(request.uri())?;
        if target.is_tls {
            return Err(NetError::Encrypted { url: target.to_string() }.into());
        }
        if !self.ports.contains(&target.port) {
            return Err(NetError::Port(target.port).into());
        }
        Ok(target)
    }

    /// The body of a request, with a time limit between reads.
    fn timed(&self, body: Incoming) -> Outgoing {
        let patience = WaitLimit::new(self.settings.idle_timeout);
        IdleTimeout { body, patience }.map_err(Into::into).boxed_unsync()
    }
}

fn check_loop(request: &Request<Incoming>) -> Result<(), Refusal> {
    if is_loop(request.headers()) {
        return Err(Refusal(StatusCode::LOOP_DETECTED, "the request goes round in a circle".to_owned()));
    }
    Ok(())
}

/// Why the request gets no answer from a server.
struct Refusal(StatusCode, String);

impl Refusal {
    fn response(self) -> Response<Reply> {
        let text = Full::new(Bytes::from(format!("tacit: {}\n", self.1)));
        let mut response = Response::new(text.map_err(|never| match never {}).boxed_unsync());
        *response.status_mut() = self.0;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        response
    }
}

impl From<NetError> for Refusal {
    fn from(error: NetError) -> Self {
        let status = match &error {
            NetError::Url { .. } | NetError::Argument(_) => StatusCode::BAD_REQUEST,
            NetError::Encrypted { .. } => StatusCode::NOT_IMPLEMENTED,
            NetError::Private { .. } | NetError::Port(_) => StatusCode::FORBIDDEN,
            NetError::Timeout(_) => StatusCode::GATEWAY_TIMEOUT,
            _ => StatusCode::BAD_GATEWAY,
        };
        Self(status, error.to_string())
    }
}

/// A body whose bytes are counted; reports when it has ended or was abandoned.
struct Counted {
    body: Body,
    served: Served,
    on_served: OnServed,
    /// Released together with the body.
    _place: OwnedSemaphorePermit,
}

impl Counted {
    fn new(body: Body, served: Served, on_served: OnServed, place: OwnedSemaphorePermit) -> Self {
        Self { body, served, on_served, _place: place }
    }
}

impl hyper::body::Body for Counted {
    type Data = Bytes;
    type Error = NetError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, NetError>>> {
        let next = std::task::ready!(Pin::new(&mut self.body).poll_frame(cx));
        match &next {
            Some(Ok(frame)) => self.served.bytes += frame.data_ref().map_or(0, |bytes| bytes.len() as u64),
            Some(Err(_)) => (),
            None => self.served.complete = true,
        }
        Poll::Ready(next)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let counters = self.body.repaired().counters;
        (self.served.holes, self.served.requests) = (counters.holes, counters.requests);
        self.served.complete |= self.body.is_end_stream();
        (self.on_served)(&self.served);
    }
}

/// A body that fails if no data arrive within the time limit.
struct IdleTimeout {
    body: Incoming,
    patience: WaitLimit,
}

impl hyper::body::Body for IdleTimeout {
    type Data = Bytes;
    type Error = NetError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, NetError>>> {
        let next = Pin::new(&mut self.body).poll_frame(cx);
        self.patience.poll(cx, next).map(|next| match next {
            Some(frame) => frame.map(|frame| frame.map_err(|error| NetError::of_hyper(&error))),
            None => Some(Err(NetError::Timeout("the program's body"))),
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
