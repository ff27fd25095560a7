//! The first request for a file, and the ways to continue that its answer allows.
//!
//! If the shim serves the connection, the first [`FIRST_PART`] bytes are requested as a range, without allowing
//! placeholders. The answer shows whether the server supports ranges, the strong validator, the length of the file and
//! the length of heads. The rest is requested on the same connection, with placeholders allowed from the first round
//! trip of that answer. Like a HEAD request this costs one round trip per file, but a file that fits in TCP's first
//! flight is then complete, and no head is ever at risk. Without a shim there is one plain request.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{
    ACCEPT_ENCODING, ACCEPT_RANGES, CONTENT_ENCODING, CONTENT_LENGTH, HeaderMap, HeaderValue, IF_MATCH,
    IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_UNMODIFIED_SINCE, RANGE,
};
use hyper::{Method, Response, StatusCode};
use tacit_between::fwp::repair::Range;
use tokio::task::JoinSet;

use crate::answers::Shape;
use crate::body::{Answer, Body};
use crate::connection::{Connection, Connector, no_body};
use crate::entity::{Entity, MainAnswer};
use crate::error::NetError;
use crate::flow::Flow;
use crate::head::number;
use crate::partial::{PartialDownload, RangeError, Validator, partial};
use crate::session::run;

/// Length of the first request in bytes: TCP's first flight (RFC 6928: ten segments, 14,600 bytes) less a head.
pub const FIRST_PART: u64 = 14_000;

/// The same over a link that loses frames: one segment, including the head, because nothing repairs it.
const FIRST_PART_LOSSY: u64 = 1_000;
/// Most first requests in parallel. With 40 % frame loss, a handshake and a head both arrive without retransmission in
/// 36 of 100 cases.
const TRIES_MAX: usize = 5;
/// Delay before the next of them: more than half of the paper's round trip time (Table I).
const TRY_WAIT: Duration = Duration::from_millis(50);

/// The single byte range of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestedRange {
    start: u64,
    /// The byte after the last one; `None` means to the end.
    end: Option<u64>,
}

impl RequestedRange {
    /// The range of a request, if it asks for a single range with a known start and does not accept codings. Other
    /// range requests must be answered by the server alone.
    pub fn from_headers(headers: &HeaderMap) -> Option<Self> {
        let mut values = headers.get_all(RANGE).iter();
        let value = values.next().filter(|_| values.next().is_none())?.as_bytes().trim_ascii();
        let (unit, range) = value.split_at_checked(6)?;
        if !unit.eq_ignore_ascii_case(b"bytes=") || !takes_uncoded_alone(headers) {
            return None;
        }
        let dash = range.iter().position(|byte| *byte == b'-')?;
        let (start, last) = (number(&range[..dash])?, &range[dash + 1..]);
        let end = match last {
            b"" => None,
            last => Some(number(last)?.checked_add(1).filter(|end| *end > start)?),
        };
        Some(Self { start, end })
    }
}

/// False if the client also accepts codings: it may hold parts of a coded representation, whose positions differ.
fn takes_uncoded_alone(headers: &HeaderMap) -> bool {
    let codings = headers
        .get_all(ACCEPT_ENCODING)
        .iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    codings.map(<[u8]>::trim_ascii).all(|coding| {
        let mut parts = coding.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
        let name = parts.next().unwrap_or_default();
        // A weight of zero (RFC 9110 section 12.4.2) refuses it.
        let is_refused = parts.any(|weight| matches!(weight, b"q=0" | b"q=0.0" | b"q=0.00" | b"q=0.000"));
        name.is_empty() || name.eq_ignore_ascii_case(b"identity") || is_refused
    })
}

/// Requests the file of `connector` with `headers`, which are end-to-end and contain no range. Holes are repaired if
/// the connection is `registered`.
///
/// # Errors
/// If there is no answer.
pub async fn get(
    connector: &Arc<Connector>,
    headers: &HeaderMap,
    registered: bool,
) -> Result<Answer, NetError> {
    request(connector, headers, None, registered).await
}

/// Requests the `wanted` range of a file with `headers`, which are end-to-end. Holes are repaired. The answer is for
/// that range, even if the server sends the whole file.
///
/// # Errors
/// If there is no answer.
pub async fn get_part(
    connector: &Arc<Connector>,
    headers: &HeaderMap,
    wanted: RequestedRange,
) -> Result<Answer, NetError> {
    request(connector, headers, Some(wanted), true).await
}

/// The first answer.
struct FirstAnswer {
    connection: Connection,
    /// It was requested as a range.
    probes: bool,
    answer: Response<Incoming>,
}

/// Requests the bytes of `span` (start inclusive, end exclusive) and returns the first answer. Nothing repairs the
/// handshake and the head of this request, so behind a shim further requests are sent after a delay, and the first
/// answer wins.
async fn first(
    connector: &Arc<Connector>,
    headers: &HeaderMap,
    span: (u64, u64),
    registered: bool,
) -> Result<FirstAnswer, NetError> {
    let parallel_max = connector.settings.repair.parallel_max;
    let most = if registered && connector.has_shim() { TRIES_MAX.min(parallel_max) } else { 1 };
    let mut tries = JoinSet::new();
    let mut started = 0;
    loop {
        if started < most.max(1) {
            started += 1;
            tries.spawn(try_first(Arc::clone(connector), headers.clone(), span, registered));
        }
        tokio::select! {
            Some(done) = tries.join_next() => match done {
                Ok(Err(error)) if tries.is_empty() => return Err(error),
                Ok(Err(_)) => {}
                Ok(first) => {
                    // Frees the connections of the other requests.
                    tries.shutdown().await;
                    return first;
                }
                Err(error) => return Err(NetError::Broken(error.to_string())),
            },
            () = tokio::time::sleep(TRY_WAIT), if started < most => {}
        }
    }
}

async fn try_first(
    connector: Arc<Connector>,
    mut headers: HeaderMap,
    (from, to): (u64, u64),
    registered: bool,
) -> Result<FirstAnswer, NetError> {
    let mut connection = connector.connect(registered).await?;
    let lossy = connection.watch.flow.as_ref().map(Flow::is_lossy);
    if lossy.is_some() {
        // Parts of different codings would not fit together.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    }
    let mut request = connector.request(Method::GET, &headers, no_body())?;
    if let Some(lossy) = lossy {
        let bytes = if lossy { FIRST_PART_LOSSY } else { FIRST_PART };
        let last = from.saturating_add(bytes).min(to) - 1;
        let range = HeaderValue::try_from(format!("bytes={from}-{last}"));
        range.map(|range| request.headers_mut().insert(RANGE, range)).ok();
    }
    let answer = connection.send(request, None).await?;
    Ok(FirstAnswer { connection, probes: lossy.is_some(), answer })
}

async fn request(
    connector: &Arc<Connector>,
    headers: &HeaderMap,
    wanted: Option<RequestedRange>,
    registered: bool,
) -> Result<Answer, NetError> {
    let mut headers = headers.clone();
    let from = wanted.map_or(0, |wanted| wanted.start);
    let to = wanted.and_then(|wanted| wanted.end).unwrap_or(u64::MAX);
    let FirstAnswer { connection, probes, answer } =
        match first(connector, &headers, (from, to), registered).await {
            // Nothing was handed to the reader yet, so a plain request can start over.
            Err(NetError::Misplaced | NetError::Hop(_)) => return plainly(connector, &headers).await,
            first => first?,
        };
    if probes {
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    }
    match answer.status() {
        StatusCode::OK => {
            let known = whole(&answer).filter(|_| is_ranged(answer.headers()));
            Ok(match known {
                Some((complete, validator)) => {
                    let has = Range { start: 0, end: complete };
                    let begun = PartialDownload { have: 0, complete, validator };
                    let entity = entity(connector, headers, &begun);
                    let (main, head) = of_the_file(connection, answer, has);
                    start(entity, has, main, head)
                }
                None => plain(connector, connection, answer),
            })
        }
        StatusCode::PARTIAL_CONTENT if probes => {
            let validator =
                Validator::from_headers(answer.headers()).filter(|_| is_uncoded(answer.headers()));
            match (partial(answer.headers()), validator) {
                (Ok((has, complete)), Some(validator)) if has.start == from && has.end <= to => {
                    let begun = PartialDownload { have: 0, complete, validator };
                    let entity = entity(connector, headers, &begun);
                    let head_len = connection.watch.head_len();
                    entity.head_len.store(head_len, Ordering::Relaxed);
                    *entity.shape() = Shape::new(Some((head_len, has)));
                    let body = Range { start: from, end: complete.min(to) };
                    let (main, head) = of_the_file(connection, answer, has);
                    let mut answer = start(entity, body, main, head);
                    match wanted {
                        Some(_) => answer.be_part(body, complete),
                        None => answer.be_whole(complete),
                    }
                    Ok(answer)
                }
                _ => plainly(connector, &headers).await,
            }
        }
        // An empty file cannot satisfy a range request.
        StatusCode::RANGE_NOT_SATISFIABLE if probes && wanted.is_none() => plainly(connector, &headers).await,
        _ => Ok(plain(connector, connection, answer)),
    }
}

/// Requests the rest of a partly received file.
///
/// # Errors
/// [`RangeError::Changed`] if the file has changed since; otherwise as for [`get`].
pub async fn go_on(connector: &Arc<Connector>, begun: PartialDownload) -> Result<Answer, NetError> {
    let rest = Range::new(begun.have, begun.complete).ok_or(RangeError::Wrong)?;
    let entity = entity(connector, HeaderMap::new(), &begun);
    let connection = connector.connect(true).await?;
    let (main, head) = entity.request(connection, rest, true).await?;
    if main.has.start != rest.start {
        // A whole answer must be requested as such.
        return Err(RangeError::Ignored.into());
    }
    Ok(start(entity, rest, main, head))
}

/// Sends one request without ranges, over a connection without placeholders.
async fn plainly(connector: &Arc<Connector>, headers: &HeaderMap) -> Result<Answer, NetError> {
    let mut connection = connector.connect(false).await?;
    let answer = connection.send(connector.request(Method::GET, headers, no_body())?, None).await?;
    Ok(plain(connector, connection, answer))
}

/// An answer that is passed on as received.
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

fn entity(connector: &Arc<Connector>, mut headers: HeaderMap, begun: &PartialDownload) -> Entity {
    // Conditional headers applied to the first request only.
    for condition in [IF_MATCH, IF_NONE_MATCH, IF_MODIFIED_SINCE, IF_UNMODIFIED_SINCE] {
        headers.remove(condition);
    }
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    let (validator, complete) = (begun.validator.clone(), begun.complete);
    let shape = Mutex::new(Shape::new(None));
    Entity {
        connector: Arc::clone(connector),
        headers,
        validator,
        complete,
        head_len: AtomicU64::new(0),
        asked: AtomicU64::new(0),
        shape,
    }
}

/// An answer whose head names the version of the file; all other answers must be of the same version.
fn of_the_file(connection: Connection, answer: Response<Incoming>, has: Range) -> (MainAnswer, Response<()>) {
    let (head, incoming) = answer.into_parts();
    (MainAnswer { connection, incoming, has, is_proven: true }, Response::from_parts(head, ()))
}

fn start(entity: Entity, body: Range, main: MainAnswer, head: Response<()>) -> Answer {
    let is_repaired = main.connection.watch.flow.is_some();
    let connector = Arc::clone(&entity.connector);
    let (head, ()) = head.into_parts();
    let resumable =
        PartialDownload { have: body.start, complete: entity.complete, validator: entity.validator.clone() };
    let report = Arc::default();
    let session_report = Arc::clone(&report);
    let body = Body::spawn(Some(body.bytes()), report, move |bytes| {
        run(Arc::new(entity), body, Some(main), bytes, session_report)
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

/// Length and strong validator of a complete, non-empty answer.
fn whole(answer: &Response<Incoming>) -> Option<(u64, Validator)> {
    let length = answer.headers().get(CONTENT_LENGTH).and_then(|value| number(value.as_bytes()));
    let length = length.filter(|length| *length > 0 && is_uncoded(answer.headers()))?;
    Some((length, Validator::from_headers(answer.headers())?))
}

fn is_ranged(headers: &HeaderMap) -> bool {
    headers
        .get(ACCEPT_RANGES)
        .is_some_and(|value| value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"bytes"))
}

fn is_uncoded(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_ENCODING).is_none_or(|coding| coding.as_bytes().eq_ignore_ascii_case(b"identity"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_range_whose_beginning_is_known_is_wanted() {
        let wanted_range = |range: &str, coding: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(RANGE, HeaderValue::from_str(range).unwrap());
            if let Some(coding) = coding {
                headers.insert(ACCEPT_ENCODING, HeaderValue::from_str(coding).unwrap());
            }
            RequestedRange::from_headers(&headers).map(|wanted| (wanted.start, wanted.end))
        };
        assert_eq!(wanted_range("bytes=0-", None), Some((0, None)));
        assert_eq!(wanted_range("Bytes=5-9", Some("identity")), Some((5, Some(10))));
        assert_eq!(
            wanted_range("bytes=5-5", Some("identity;q=1, *;q=0")),
            Some((5, Some(6))),
            "as Chromium's players ask"
        );
        for others in [
            "bytes=-5",
            "bytes=9-5",
            "bytes=0-1,5-6",
            "items=0-1",
            "bytes=",
            "bytes=5",
            "bytes=a-b",
            "bytes=0-18446744073709551615",
        ] {
            assert_eq!(wanted_range(others, None), None, "{others}");
        }
        assert_eq!(wanted_range("bytes=0-9", Some("gzip, identity")), None, "bytes of another coding");
        assert_eq!(wanted_range("bytes=0-9", Some("gzip;q=0.5")), None);
        let mut twice = HeaderMap::new();
        twice.append(RANGE, HeaderValue::from_static("bytes=0-9"));
        twice.append(RANGE, HeaderValue::from_static("bytes=20-29"));
        assert_eq!(RequestedRange::from_headers(&twice), None);
    }
}
