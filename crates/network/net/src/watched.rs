//! A TCP connection to a server, watched below hyper: finds where heads end, counts bytes, and checks that no
//! placeholder is where it cannot be repaired.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tacit_between::fwp::repair::Range;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::error::NetError;
use crate::flow::Flow;
use crate::head::{Framing, HeadReader};

/// Bytes on the wire, over all connections of a reader.
#[derive(Debug, Default)]
pub struct Traffic {
    /// Bytes read from TCP, including placeholders.
    pub received: AtomicU64,
    /// Bytes written to TCP.
    pub sent: AtomicU64,
    /// Of [`Traffic::received`], bytes of placeholders.
    pub placeholders: AtomicU64,
}

/// What the server sends next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing: no request is in progress.
    Idle,
    Head,
    Body {
        start: u64,
        /// Unknown for bodies that end with a chunk or with the connection.
        end: Option<u64>,
        repairable: bool,
    },
}

#[derive(Debug)]
struct State {
    /// Bytes read so far.
    read: u64,
    phase: Phase,
    head: HeadReader,
    answers_head: bool,
    /// The reader can repair the answer if its length is known and it is of the right file.
    repairs: bool,
    body: Option<Range>,
    head_len: u64,
}

/// State of a connection's stream, shared between hyper's side and ours.
#[derive(Debug)]
pub struct Watch {
    state: Mutex<State>,
    /// The flow at the shim, if it is registered.
    pub flow: Option<Flow>,
    traffic: Arc<Traffic>,
}

impl Watch {
    /// Watches a connection that has not carried any bytes yet.
    pub fn new(flow: Option<Flow>, traffic: Arc<Traffic>) -> Self {
        let state = State {
            read: 0,
            phase: Phase::Idle,
            head: HeadReader::default(),
            answers_head: false,
            repairs: false,
            body: None,
            head_len: 0,
        };
        Self { state: Mutex::new(state), flow, traffic }
    }

    /// A request is about to be sent: a HEAD request, or one whose answer will be repaired if possible. Returns the
    /// stream position at which its answer begins.
    pub fn expect(&self, is_head_request: bool, repairs: bool) -> u64 {
        let mut state = self.state();
        state.phase = Phase::Head;
        state.answers_head = is_head_request;
        state.repairs = repairs;
        state.head.clear();
        state.body = None;
        state.read
    }

    /// Stream positions of the answer's body, once its head is known and if the body has a known length.
    pub fn body(&self) -> Option<Range> {
        self.state().body
    }

    /// Length of the last final head in bytes.
    pub fn head_len(&self) -> u64 {
        self.state().head_len
    }

    /// True if the last answer was read to its end and no bytes follow it.
    pub fn is_idle(&self) -> bool {
        self.state().phase == Phase::Idle
    }

    /// Checks bytes that were just read.
    fn saw(&self, bytes: &[u8]) -> Result<(), NetError> {
        self.traffic.received.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        let mut state = self.state();
        let fresh = Range::new(state.read, state.read + bytes.len() as u64);
        // The shim announces holes before their placeholders reach TCP, so the holes in these bytes are known by now.
        if let Some(flow) = &self.flow {
            flow.drain()?;
        }
        let parsed = self.parse(&mut state, bytes);
        if let (Some(flow), Some(fresh)) = (&self.flow, fresh) {
            let allowed = match state.phase {
                Phase::Body { start, end: Some(end), repairable: true } => Range::new(start, end),
                // The body ended with these bytes.
                Phase::Idle if state.repairs => state.body,
                _ => None,
            };
            if !flow.is_clean(fresh, allowed) {
                return Err(NetError::Misplaced);
            }
        }
        parsed
    }

    fn parse(&self, state: &mut State, mut bytes: &[u8]) -> Result<(), NetError> {
        while !bytes.is_empty() {
            match state.phase {
                Phase::Idle => {
                    return Err(NetError::Broken("the server sends an answer without a request".to_owned()));
                }
                Phase::Head => {
                    // A head with a hole is not parsed further, and hyper must not get it either.
                    let (taken, whole) = state.head.push(bytes)?;
                    state.read += taken as u64;
                    bytes = &bytes[taken..];
                    if whole {
                        state.end_head()?;
                    }
                }
                Phase::Body { end, .. } => {
                    let left = end.map_or(u64::MAX, |end| end - state.read);
                    let taken = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
                    state.read += taken as u64;
                    bytes = &bytes[taken..];
                    if end == Some(state.read) {
                        state.phase = Phase::Idle;
                    }
                }
            }
        }
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A poisoned lock can be used: no code that holds it panics in the middle of a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts placeholder bytes among the bytes that were read.
    pub fn count_placeholders(&self, bytes: u64) {
        self.traffic.placeholders.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl State {
    fn end_head(&mut self) -> Result<(), NetError> {
        let head = self.head.response(self.answers_head)?;
        let len = self.head.len() as u64;
        self.head.clear();
        if head.status == 101 {
            return Err(NetError::Broken("the server changes the protocol".to_owned()));
        }
        // An interim answer: the final one follows.
        if (100..200).contains(&head.status) {
            return Ok(());
        }
        self.head_len = len;
        let start = self.read;
        let end = match head.framing {
            Framing::Length(length) => {
                Some(start.checked_add(length).ok_or(NetError::Broken("a body without end".to_owned()))?)
            }
            Framing::Chunked | Framing::Close => None,
        };
        self.body = end.and_then(|end| Range::new(start, end)).filter(|_| matches!(head.status, 200 | 206));
        self.phase = match end {
            Some(end) if end == start => Phase::Idle,
            end => Phase::Body { start, end, repairable: self.repairs && self.body.is_some() },
        };
        Ok(())
    }
}

/// A connection to a server, with or without TLS.
pub trait Stream: AsyncRead + AsyncWrite + std::fmt::Debug + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + std::fmt::Debug + Send + Unpin> Stream for S {}

/// The connection, as hyper sees it.
#[derive(Debug)]
pub struct Watched {
    stream: Box<dyn Stream>,
    watch: Arc<Watch>,
}

impl Watched {
    /// Watches `stream`.
    pub fn new(stream: Box<dyn Stream>, watch: Arc<Watch>) -> Self {
        Self { stream, watch }
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(cx, buf);
        if let Poll::Ready(Ok(())) = &result
            && let Err(error) = self.watch.saw(&buf.filled()[before..])
        {
            // No byte of it may reach a parser.
            buf.set_filled(before);
            return Poll::Ready(Err(io::Error::other(error)));
        }
        result
    }
}

impl AsyncWrite for Watched {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(cx, buf);
        if let Poll::Ready(Ok(sent)) = &result {
            self.watch.traffic.sent.fetch_add(*sent as u64, Ordering::Relaxed);
        }
        result
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
