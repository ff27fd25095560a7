//! Checks with a HEAD request, on a connection without placeholders, that a file has not changed since the download
//! began.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::{Method, StatusCode};
use tokio::time::Instant;

use crate::connection::{Connection, no_body};
use crate::entity::Entity;
use crate::error::NetError;
use crate::partial::RangeError;

/// How long unproven bytes may hold back received bytes before the server is asked explicitly. Usually the answer to a
/// repair request settles the question earlier.
const WAIT: Duration = Duration::from_millis(250);
/// Failed attempts in a row before giving up.
const FAILURES_MAX: u32 = 5;
/// Delay after the first failed attempt. It doubles with each further one.
const FAILURE_WAIT: Duration = Duration::from_millis(100);

/// The connection that was used and the number of the request that the server confirmed; `None` if the connection was
/// only opened.
pub type Proof = (Connection, Option<u64>);

type Asking = Pin<Box<dyn Future<Output = Result<Proof, NetError>> + Send>>;

/// One connection, opened before it is needed because a handshake takes a second if its SYN-ACK is lost.
#[derive(Default)]
pub struct Prover {
    asking: Option<Asking>,
    ready: Option<Connection>,
    held_since: Option<Instant>,
    failures: u32,
    /// No attempt is started earlier than this.
    not_before: Option<Instant>,
}

impl Prover {
    /// Called while bytes are unproven. `is_held` says that they hold back received bytes, `is_rest` that no other
    /// bytes are expected.
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
            Some(connection) if is_due => self.asking = Some(Box::pin(prove(entity, connection))),
            ready => self.ready = ready,
        }
    }

    /// Called while no bytes are unproven.
    pub fn rest(&mut self) {
        self.held_since = None;
    }

    /// Waits for the outcome of the current attempt.
    pub async fn next(&mut self) -> Result<Proof, NetError> {
        match &mut self.asking {
            Some(asking) => asking.await,
            None => std::future::pending().await,
        }
    }

    /// The number of the request whose answer confirms that the file has not changed.
    ///
    /// # Errors
    /// If the file has changed, or no answer names its version.
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

    /// When to call [`Prover::step`] next if nothing happens before.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let is_waiting = self.asking.is_none() && self.held_since.is_some();
        let due = self.held_since.filter(|_| is_waiting).map(|since| since + WAIT);
        due.map(|due| self.not_before.map_or(due, |at| due.max(at)))
    }
}

async fn prove(entity: Arc<Entity>, mut connection: Connection) -> Result<Proof, NetError> {
    let number = entity.next_number();
    let request = entity.connector.request(Method::HEAD, &entity.headers, no_body())?;
    let answer = connection.send(request, None).await?;
    match answer.status() {
        StatusCode::OK if entity.validator.is_in(answer.headers()) => Ok((connection, Some(number))),
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
