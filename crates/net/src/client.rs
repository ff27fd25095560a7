//! The first request for a file, and what its answer allows.
//!
//! Where the shim looks after the connection, the first [`FIRST_PART`] octets are asked for as a range, with no
//! placeholders allowed. The answer tells whether there are ranges, a strong validator, the length, and how long heads
//! are; the rest is asked for on the same connection, and placeholders may stand in it from its first round trip on. That
//! costs one round trip per file, as a HEAD would; but a file of one flight of TCP is there by then, and no head is ever
//! at risk. Without a shim one plain request is made.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use hyper::body::Incoming;
use hyper::header::{
    ACCEPT_ENCODING, ACCEPT_RANGES, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, HeaderMap, HeaderValue,
    IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_UNMODIFIED_SINCE, RANGE,
};
use hyper::{Method, Response, StatusCode};
use serde::{Deserialize, Serialize};
use tacit_proto::fwp::repair::Range;

use crate::body::{Answer, Body};
use crate::connection::{Connection, Connector, no_body};
use crate::error::NetError;
use crate::head::number;
use crate::partial::{RangeError, Validator, partial};
use crate::session::{Entity, Main, run};

/// Octets of the first request: what TCP sends before its first ACK (RFC 6928: ten segments, 14,600 octets), less a head.
pub const FIRST_PART: u64 = 14_000;

/// A file that is there in part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Begun {
    /// Octets that are there, from the first one on.
    #[serde(skip)]
    pub have: u64,
    /// Octets of the whole.
    pub complete: u64,
    /// Of the file that they belong to.
    pub validator: Validator,
}

/// Gets the file of `connector` with `headers`, which are end to end and have no ranges. With `registered`
/// holes are repaired where there are any.
///
/// # Errors
/// Where there is no answer.
pub async fn get(
    connector: &Arc<Connector>,
    headers: &HeaderMap,
    registered: bool,
) -> Result<Answer, NetError> {
    let mut headers = headers.clone();
    let mut connection = connector.connect(registered).await?;
    let probes = connection.watch.flow.is_some();
    if probes {
        // Parts of different codings would not fit together.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    }
    let mut request = connector.request(Method::GET, &headers, no_body())?;
    if probes {
        let range = HeaderValue::try_from(format!("bytes=0-{}", FIRST_PART - 1));
        range.map(|range| request.headers_mut().insert(RANGE, range)).ok();
    }
    let answer = match connection.send(request, None).await {
        // Nothing was handed on yet.
        Err(NetError::Misplaced | NetError::Hop(_)) if probes => return plainly(connector, &headers).await,
        answer => answer?,
    };
    match answer.status() {
        StatusCode::OK => {
            let known = whole(&answer).filter(|_| is_ranged(answer.headers()));
            Ok(match known {
                Some((complete, validator)) => {
                    let has = Range { start: 0, end: complete };
                    let begun = Begun { have: 0, complete, validator };
                    repaired(connector, headers, &begun, connection, answer, has, false)
                }
                None => plain(connector, connection, answer),
            })
        }
        StatusCode::PARTIAL_CONTENT if probes => {
            let validator = Validator::of(answer.headers()).filter(|_| is_uncoded(answer.headers()));
            match (partial(answer.headers()), validator) {
                (Ok((has, complete)), Some(validator)) if has.start == 0 => {
                    let begun = Begun { have: 0, complete, validator };
                    Ok(repaired(connector, headers, &begun, connection, answer, has, true))
                }
                _ => plainly(connector, &headers).await,
            }
        }
        // An empty file has no first part.
        StatusCode::RANGE_NOT_SATISFIABLE if probes => plainly(connector, &headers).await,
        _ => Ok(plain(connector, connection, answer)),
    }
}

/// Gets what is left of a file.
///
/// # Errors
/// [`RangeError::Changed`] where it is another file by now; and as [`get`].
pub async fn go_on(connector: &Arc<Connector>, begun: Begun) -> Result<Answer, NetError> {
    let rest = Range::new(begun.have, begun.complete).ok_or(RangeError::Wrong)?;
    let entity = entity(connector, HeaderMap::new(), &begun);
    let mut connection = connector.connect(true).await?;
    let (answer, has) = entity.ask(&mut connection, rest, true).await?;
    if has.start != rest.start {
        // A whole answer; whoever wants that asks for it.
        return Err(RangeError::Ignored.into());
    }
    Ok(start(entity, begun.have, connection, answer, has))
}

/// One request without ranges, over a connection without placeholders.
async fn plainly(connector: &Arc<Connector>, headers: &HeaderMap) -> Result<Answer, NetError> {
    let mut connection = connector.connect(false).await?;
    let answer = connection.send(connector.request(Method::GET, headers, no_body())?, None).await?;
    Ok(plain(connector, connection, answer))
}

/// An answer as it comes.
pub fn plain(connector: &Arc<Connector>, connection: Connection, answer: Response<Incoming>) -> Answer {
    let (head, incoming) = answer.into_parts();
    let len = hyper::body::Body::size_hint(&incoming).exact();
    let body = Body::plain(len, incoming, connection, connector.settings.idle_timeout);
    Answer {
        status: head.status,
        headers: head.headers,
        body,
        connector: Arc::clone(connector),
        is_repaired: false,
        resumable: None,
    }
}

fn entity(connector: &Arc<Connector>, mut headers: HeaderMap, begun: &Begun) -> Entity {
    // Conditions were about the first request.
    for condition in [IF_MATCH, IF_NONE_MATCH, IF_MODIFIED_SINCE, IF_UNMODIFIED_SINCE] {
        headers.remove(condition);
    }
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    let (validator, complete) = (begun.validator.clone(), begun.complete);
    Entity { connector: Arc::clone(connector), headers, validator, complete, head_len: AtomicU64::new(0) }
}

fn repaired(
    connector: &Arc<Connector>,
    headers: HeaderMap,
    begun: &Begun,
    connection: Connection,
    answer: Response<Incoming>,
    has: Range,
    is_part: bool,
) -> Answer {
    let mut entity = entity(connector, headers, begun);
    if is_part {
        entity.head_len = AtomicU64::new(connection.watch.head_len());
    }
    start(entity, begun.have, connection, answer, has)
}

fn start(
    entity: Entity,
    from: u64,
    connection: Connection,
    answer: Response<Incoming>,
    has: Range,
) -> Answer {
    let is_repaired = connection.watch.flow.is_some();
    let connector = Arc::clone(&entity.connector);
    let body = Range { start: from, end: entity.complete };
    let (mut head, incoming) = answer.into_parts();
    if from == 0 {
        head.status = StatusCode::OK;
        head.headers.remove(CONTENT_RANGE);
        head.headers.insert(CONTENT_LENGTH, HeaderValue::from(entity.complete));
    }
    let resumable = Begun { have: from, complete: entity.complete, validator: entity.validator.clone() };
    let report = Arc::default();
    let teller = Arc::clone(&report);
    let main = Main { connection, incoming, has };
    let body = Body::spawn(Some(body.octets()), report, move |octets| {
        run(Arc::new(entity), body, Some(main), octets, teller)
    });
    Answer {
        status: head.status,
        headers: head.headers,
        body,
        connector,
        is_repaired,
        resumable: Some(resumable),
    }
}

/// Length and strong validator of a whole answer that has octets.
fn whole(answer: &Response<Incoming>) -> Option<(u64, Validator)> {
    let length = answer.headers().get(CONTENT_LENGTH).and_then(|value| number(value.as_bytes()));
    let length = length.filter(|length| *length > 0 && is_uncoded(answer.headers()))?;
    Some((length, Validator::of(answer.headers())?))
}

fn is_ranged(headers: &HeaderMap) -> bool {
    headers
        .get(ACCEPT_RANGES)
        .is_some_and(|value| value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"bytes"))
}

fn is_uncoded(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_ENCODING).is_none_or(|coding| coding.as_bytes().eq_ignore_ascii_case(b"identity"))
}
