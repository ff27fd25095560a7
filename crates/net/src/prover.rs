//! Asks a server whether a file is still the one that was begun, by HEAD on a connection without placeholders.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::{Method, StatusCode};
use tokio::time::Instant;

use crate::connection::{Connection, no_body};
use crate::entity::Entity;
use crate::error::NetError;
use crate::partial::RangeError;

/// Bytes in doubt hold back received bytes for so long before the server is asked for nothing else: most often an answer for
/// holes says it meanwhile.
const WAIT: Duration = Duration::from_millis(250);
/// Attempts in a row without an answer.
const FAILURES_MAX: u32 = 5;
/// Wait after the first of them; twice as long each further time.
const FAILURE_WAIT: Duration = Duration::from_millis(100);

/// A connection that asked, and for which request the server said so; none where it only was opened.
pub type Proof = (Connection, Option<u64>);

type Asking = Pin<Box<dyn Future<Output = Result<Proof, NetError>> + Send>>;

/// One connection, opened before it is needed: a handshake takes a second where its answer is lost.
#[derive(Default)]
pub struct Prover {
    asking: Option<Asking>,
    ready: Option<Connection>,
    held_since: Option<Instant>,
    failures: u32,
    /// Nothing is tried before.
    not_before: Option<Instant>,
}

impl Prover {
    /// There are bytes in doubt; with `is_held` they hold back received bytes, and with `is_rest` nothing else is to come.
    pub fn step(&mut self, now: Instant, entity: &Arc<Entity>, is_held: bool, is_rest: bool) {
        self.held_since = is_held.then(|| self.held_since.unwrap_or(now));
        if self.asking.is_some() || self.not_before.is_some_and(|at| now < at) {
            return;
        }
        let is_due = self.held_since.is_some_and(|since| is_rest || since + WAIT <= now);
        let entity = Arc::clone(entity);
        match self.ready.take().filter(Connection::is_reusable) {
            None => {
                let opening = async move { Ok((entity.connector.connect(false).await?, None)) };
                self.asking = Some(Box::pin(opening));
            }
            Some(connection) if is_due => self.asking = Some(Box::pin(ask(entity, connection))),
            ready => self.ready = ready,
        }
    }

    /// Nothing is in doubt.
    pub fn rest(&mut self) {
        self.held_since = None;
    }

    /// Outcome of the request under way.
    pub async fn next(&mut self) -> Result<Proof, NetError> {
        match &mut self.asking {
            Some(asking) => asking.await,
            None => std::future::pending().await,
        }
    }

    /// The request whose answer says that the file was still the same.
    ///
    /// # Errors
    /// Where it was not, or no answer says so.
    pub fn done(&mut self, now: Instant, proof: Result<Proof, NetError>) -> Result<Option<u64>, NetError> {
        self.asking = None;
        match proof {
            Ok((connection, number)) => {
                (self.ready, self.not_before) = (Some(connection), None);
                if number.is_some() {
                    (self.failures, self.held_since) = (0, None);
                }
                Ok(number)
            }
            Err(error @ NetError::Range(RangeError::Changed | RangeError::Unproven)) => Err(error),
            Err(error) if self.failures >= FAILURES_MAX => Err(error),
            Err(_) => {
                self.not_before = Some(now + FAILURE_WAIT * (1 << self.failures));
                self.failures += 1;
                Ok(None)
            }
        }
    }

    /// When to step next, if nothing happens before.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let is_waiting = self.asking.is_none() && self.held_since.is_some();
        let due = self.held_since.filter(|_| is_waiting).map(|since| since + WAIT);
        due.map(|due| self.not_before.map_or(due, |at| due.max(at)))
    }
}

async fn ask(entity: Arc<Entity>, mut connection: Connection) -> Result<Proof, NetError> {
    let number = entity.next_number();
    let request = entity.connector.request(Method::HEAD, &entity.headers, no_body())?;
    let answer = connection.send(request, None).await?;
    match answer.status() {
        StatusCode::OK if entity.validator.stands_in(answer.headers()) => Ok((connection, Some(number))),
        StatusCode::OK if entity.validator.fits(answer.headers(), true) => Err(RangeError::Unproven.into()),
        StatusCode::OK | StatusCode::NOT_FOUND | StatusCode::GONE => Err(RangeError::Changed.into()),
        status @ (StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT) => {
            Err(RangeError::Status(status.as_u16()).into())
        }
        status if status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED => {
            Err(RangeError::Status(status.as_u16()).into())
        }
        _ => Err(RangeError::Unproven.into()),
    }
}
