//! The body of an answer as its reader gets it, repaired or not.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::StatusCode;
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::header::{CONTENT_LENGTH, CONTENT_RANGE, HeaderValue};
use tacit_between::fwp::repair::{Counters, Range};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::connection::{Connection, Connector};
use crate::error::NetError;
use crate::partial::PartialDownload;

/// Statistics of repair, over all attempts at one body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepairStats {
    /// Counts and readings.
    pub counters: Counters,
    /// How often the shim detected congestion and stopped writing placeholders.
    pub switched_off: u64,
    /// How often the main connection broke and a new one continued the body.
    pub resumed: u64,
    /// Repair failed, and the rest came over TCP without placeholders.
    pub fell_back: bool,
}

/// The bytes of a body, in order and each once. After an error there are no more.
#[derive(Debug)]
pub struct Body {
    bytes: mpsc::Receiver<Result<Bytes, NetError>>,
    left: Option<u64>,
    task: tokio::task::JoinHandle<()>,
    repaired: Arc<Mutex<RepairStats>>,
}

/// Chunks that may wait for the reader.
const WAITING: usize = 2;

impl Body {
    /// A body of `len` bytes, if that is known, which the task `produce` writes.
    pub fn spawn<F>(
        len: Option<u64>,
        repaired: Arc<Mutex<RepairStats>>,
        produce: impl FnOnce(mpsc::Sender<Result<Bytes, NetError>>) -> F,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (sender, bytes) = mpsc::channel(WAITING);
        Self { bytes, left: len, task: tokio::spawn(produce(sender)), repaired }
    }

    /// A body that is passed on as received.
    pub fn plain(len: Option<u64>, mut incoming: Incoming, connection: Connection, idle: Duration) -> Self {
        Self::spawn(len, Arc::default(), move |sender| async move {
            loop {
                let piece = match timeout(idle, incoming.frame()).await {
                    Err(_) => Err(NetError::Timeout("the rest of the body")),
                    Ok(None) => break,
                    Ok(Some(Err(error))) => Err(NetError::of_hyper(&error)),
                    Ok(Some(Ok(frame))) => match frame.into_data() {
                        Ok(bytes) => Ok(bytes),
                        Err(_) => continue,
                    },
                };
                let is_last = piece.is_err();
                if sender.send(piece).await.is_err() || is_last {
                    break;
                }
            }
            drop(connection);
        })
    }

    /// Returns the next bytes.
    ///
    /// # Errors
    /// The reason why the body ends early.
    pub async fn next(&mut self) -> Result<Option<Bytes>, NetError> {
        std::future::poll_fn(|cx| self.poll_next(cx)).await.transpose()
    }

    /// Bytes still to come, if the length is known.
    pub fn left(&self) -> Option<u64> {
        self.left
    }

    /// Statistics of repair so far.
    pub fn repaired(&self) -> RepairStats {
        self.repaired.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, NetError>>> {
        let next = std::task::ready!(self.bytes.poll_recv(cx));
        Poll::Ready(match (next, &mut self.left) {
            (Some(Ok(bytes)), left) => {
                let len = bytes.len() as u64;
                match left {
                    Some(left) if *left < len => {
                        Some(Err(NetError::Broken("a body longer than it said".to_owned())))
                    }
                    Some(left) => {
                        *left -= len;
                        Some(Ok(bytes))
                    }
                    None => Some(Ok(bytes)),
                }
            }
            // The task that writes the body reports why it stops; if it just ends, the body is cut short.
            (None, Some(left)) if *left > 0 => {
                *left = 0;
                Some(Err(NetError::Broken("the body ended early".to_owned())))
            }
            (other, _) => other,
        })
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = NetError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, NetError>>> {
        self.poll_next(cx).map(|next| next.map(|bytes| bytes.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.left == Some(0)
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

/// An answer, with its end-to-end headers.
#[derive(Debug)]
pub struct Answer {
    /// Its status. A partial answer to a request for the whole file gets the status 200.
    pub status: StatusCode,
    /// Its headers.
    pub headers: hyper::HeaderMap,
    /// Its body.
    pub body: Body,
    /// Shared by all connections that serve this answer.
    pub connector: Arc<Connector>,
    /// True if holes in the body are repaired.
    pub is_repaired: bool,
    /// State for resuming the download later, if that is possible.
    pub resumable: Option<PartialDownload>,
}

impl Answer {
    /// Makes it the answer to a request for all `complete` bytes.
    pub fn be_whole(&mut self, complete: u64) {
        self.status = StatusCode::OK;
        self.headers.remove(CONTENT_RANGE);
        self.headers.insert(CONTENT_LENGTH, HeaderValue::from(complete));
    }

    /// Makes it the answer to a request for `part` of `complete` bytes.
    pub fn be_part(&mut self, part: Range, complete: u64) {
        self.status = StatusCode::PARTIAL_CONTENT;
        self.headers.insert(CONTENT_LENGTH, HeaderValue::from(part.bytes()));
        let range = HeaderValue::try_from(format!("bytes {}-{}/{complete}", part.start, part.end - 1));
        range.map(|range| self.headers.insert(CONTENT_RANGE, range)).ok();
    }
}
