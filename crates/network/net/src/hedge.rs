//! Hedged requests (Dean and Barroso, "The Tail at Scale", CACM 2013) for the body of a long answer.
//!
//! The head of an answer is in its first segment, where no placeholder may be. If that segment is lost, TCP retransmits
//! it, and the server's slow start ends there, at seven segments (CUBIC: 0.7 times the ten of RFC 6928): 20 MB then
//! take twice as long. A request whose head is late is therefore repeated on another connection, and the first answer
//! is used.

use std::sync::Arc;
use std::time::Duration;

use tacit_between::fwp::repair::Range;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::connection::Connection;
use crate::entity::{Entity, MainAnswer};
use crate::error::NetError;

/// Most repeated requests. With 40 % frame loss, all three heads are late for six of a hundred bodies. Ours.
const HEDGES_MAX: usize = 2;
/// Shortest delay after which a head counts as late. On shorter paths a small window grows at once, and a delay may
/// come from a busy machine instead of a lost segment. Ours.
const LATE_MIN: Duration = Duration::from_millis(20);
/// Shorter bodies end before a window of seven segments limits them. Ours.
const LONG_BYTES: u64 = 256 * 1024;

/// How many repeated requests can be worth their cost for `range` on `connection`.
pub fn worthwhile(connection: &Connection, range: Range) -> usize {
    let is_lossy = connection.watch.flow.as_ref().is_some_and(|flow| flow.is_lossy());
    if is_lossy && range.bytes() >= LONG_BYTES { HEDGES_MAX } else { 0 }
}

/// Requests `range` on `connection` and, if the head is late, on up to `hedges_max` further connections. Returns the
/// first answer; the other connections are closed.
///
/// # Errors
/// If no answer arrives: the first error of the requests.
pub async fn request(
    entity: Arc<Entity>,
    connection: Connection,
    range: Range,
    hedges_max: usize,
) -> Result<MainAnswer, NetError> {
    let usual = connection.answered_in;
    let request = |connection| Arc::clone(&entity).request_on(connection, range, true);
    if hedges_max == 0 {
        return request(Some(connection)).await;
    }
    // A head that TCP retransmits arrives a round trip later.
    let in_time = (usual + usual / 2).max(LATE_MIN);
    let mut asked = JoinSet::new();
    asked.spawn(request(Some(connection)));
    let most = 1 + hedges_max;
    let mut started = 1;
    let mut next_at = Instant::now() + in_time;
    let (mut late, mut failed) = (None, None);
    loop {
        tokio::select! {
            Some(done) = asked.join_next() => match done.unwrap_or_else(|error| Err(NetError::Broken(error.to_string()))) {
                Ok(answer) if answer.connection.answered_in <= in_time => {
                    asked.shutdown().await;
                    return Ok(answer);
                }
                Ok(answer) => late = late.or(Some(answer)),
                Err(error) => failed = failed.or(Some(error)),
            },
            () = sleep_until(next_at), if started < most => {
                started += 1;
                asked.spawn(request(None));
                // The next request first opens a connection.
                next_at = Instant::now() + 2 * in_time;
            }
            () = sleep_until(next_at), if started == most && late.is_some() => asked.abort_all(),
        }
        if asked.is_empty() && (started == most || late.is_none()) {
            return match (late, failed) {
                (Some(answer), _) => Ok(answer),
                (None, Some(error)) => Err(error),
                (None, None) => Err(NetError::Broken("no request was answered".to_owned())),
            };
        }
    }
}
