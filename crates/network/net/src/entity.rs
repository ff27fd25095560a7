//! A file on one server, and requests for its ranges.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hyper::body::Incoming;
use hyper::header::{HeaderMap, HeaderValue, IF_RANGE, RANGE};
use hyper::{Method, Response, StatusCode};
use tacit_between::fwp::repair::Range;

use crate::answers::Shape;
use crate::connection::{Connection, Connector, Expected, no_body};
use crate::error::NetError;
use crate::partial::{Validator, check};

/// The file that all requests of a session are for.
#[derive(Debug)]
pub struct Entity {
    /// Opens connections to its server.
    pub connector: Arc<Connector>,
    /// End-to-end headers of each request, without ranges and conditions.
    pub headers: HeaderMap,
    /// Validator that every answer must match.
    pub validator: Validator,
    /// Length of the whole file in bytes.
    pub complete: u64,
    /// Bytes of the head of a partial answer; 0 until one was seen.
    pub head_len: AtomicU64,
    /// Repair requests so far.
    pub asked: AtomicU64,
    /// Layout of answers to repair requests.
    pub shape: Mutex<Shape>,
}

impl Entity {
    /// Requests `range`. With `repairs`, placeholders are allowed in the body of the answer.
    pub async fn request(
        &self,
        mut connection: Connection,
        range: Range,
        repairs: bool,
    ) -> Result<(MainAnswer, Response<()>), NetError> {
        let mut request = self.connector.request(Method::GET, &self.headers, no_body())?;
        let value = HeaderValue::try_from(format!("bytes={}-{}", range.start, range.end - 1));
        let condition = HeaderValue::try_from(self.validator.as_str());
        if let (Ok(value), Ok(condition)) = (value, condition) {
            request.headers_mut().insert(RANGE, value);
            request.headers_mut().insert(IF_RANGE, condition);
        }
        // If no head was seen yet, placeholders are allowed only after the answer's own head has arrived.
        let head_len = Some(self.head_len.load(Ordering::Relaxed)).filter(|len| *len > 0);
        let expected = Expected { head_len, body_len: range.bytes() };
        let answer = connection.send(request, repairs.then_some(expected)).await?;
        if answer.status() == StatusCode::PARTIAL_CONTENT {
            self.head_len.store(connection.watch.head_len(), Ordering::Relaxed);
        }
        let has = check(answer.status().as_u16(), answer.headers(), range, self.complete, &self.validator)?;
        let is_proven = self.validator.is_in(answer.headers());
        let (head, incoming) = answer.into_parts();
        Ok((MainAnswer { connection, incoming, has, is_proven }, Response::from_parts(head, ())))
    }

    /// Requests `range` on `connection`, or on a new one, which is registered with the shim if `registered`.
    pub async fn request_on(
        self: Arc<Self>,
        connection: Option<Connection>,
        range: Range,
        registered: bool,
    ) -> Result<MainAnswer, NetError> {
        let connection = match connection {
            Some(connection) => connection,
            None => self.connector.connect(registered).await?,
        };
        Ok(self.request(connection, range, registered).await?.0)
    }

    /// Takes the number for the next request.
    pub fn next_number(&self) -> u64 {
        self.asked.fetch_add(1, Ordering::Relaxed)
    }

    /// Layout of the server's partial answers.
    pub fn shape(&self) -> MutexGuard<'_, Shape> {
        // A poisoned lock can be used: no code that holds it panics in the middle of a change.
        self.shape.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The bytes on the wire of a request for `ranges`.
    pub fn request_text(&self, ranges: &str) -> Result<Vec<u8>, NetError> {
        let mut request = self.connector.request(Method::GET, &self.headers, no_body())?;
        let values = [(RANGE, ranges), (IF_RANGE, self.validator.as_str())];
        for (name, value) in values {
            let value = HeaderValue::try_from(value).map_err(|_| {
                NetError::Argument("a range or a condition cannot be put into a request".to_owned())
            })?;
            request.headers_mut().insert(name, value);
        }
        let mut text = format!("GET {} HTTP/1.1\r\n", self.connector.target.path).into_bytes();
        for (name, value) in request.headers() {
            for piece in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
                text.extend_from_slice(piece);
            }
        }
        text.extend_from_slice(b"\r\n");
        Ok(text)
    }
}

/// The answer that carries the body.
#[derive(Debug)]
pub struct MainAnswer {
    /// Its connection.
    pub connection: Connection,
    /// The stream of its body.
    pub incoming: Incoming,
    /// Which bytes of the file the body contains.
    pub has: Range,
    /// True if its head named the version of the file.
    pub is_proven: bool,
}
