//! Validators, `Content-Range` and `Location`: the fields that show whether an answer is the requested part.

use std::time::Duration;

use hyper::header::{
    CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, DATE, ETAG, HeaderMap, HeaderName,
    LAST_MODIFIED,
};
use serde::{Deserialize, Serialize};
use tacit_between::fwp::repair::Range;

use crate::byteranges::boundary;
use crate::content_range::content_range;
use crate::head::number;

/// A validator: it identifies one version of an entity (RFC 9110 section 8.8.1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Validator {
    /// A strong `ETag`.
    Tag(String),
    /// A `Last-Modified` that is strong by RFC 9110 section 8.8.2.2.
    Date(String),
}

impl Validator {
    /// The strong validator of a response, if it has one.
    pub fn from_headers(headers: &HeaderMap) -> Option<Self> {
        if headers.contains_key(ETAG) {
            // A weak tag must not be replaced by a date (RFC 9110 section 13.1.5).
            let tag = text(headers, ETAG)?;
            return is_strong_tag(tag).then(|| Self::Tag(tag.to_owned()));
        }
        let (modified, date) = (text(headers, LAST_MODIFIED)?, text(headers, DATE)?);
        let (changed, date_sent) =
            (httpdate::parse_http_date(modified).ok()?, httpdate::parse_http_date(date).ok()?);
        // The date must be at least one second old: otherwise the file may have changed twice within that second.
        let is_strong = date_sent.duration_since(changed).is_ok_and(|age| age >= Duration::from_secs(1));
        is_strong.then(|| Self::Date(modified.to_owned()))
    }

    /// The value of `If-Range`.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Tag(text) | Self::Date(text) => text,
        }
    }

    /// True if `headers` themselves contain this validator.
    pub fn is_in(&self, headers: &HeaderMap) -> bool {
        self.fits(headers, false)
    }

    /// False if `headers` contain another validator. A partial answer need not repeat a date (RFC 9110 section 15.3.7),
    /// because it is partial only if the server found the date in `If-Range` to match.
    pub fn fits(&self, headers: &HeaderMap, partial: bool) -> bool {
        let name = match self {
            Self::Tag(_) => ETAG,
            Self::Date(_) => LAST_MODIFIED,
        };
        match headers.contains_key(&name) {
            true => text(headers, name) == Some(self.as_str()),
            false => partial,
        }
    }
}

/// The value of a header that occurs once and is plain text.
fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next().filter(|_| values.next().is_none())?;
    value.to_str().ok().map(str::trim)
}

/// `"` etagc* `"` without `W/` (RFC 9110 section 8.8.3).
fn is_strong_tag(tag: &str) -> bool {
    let inside = tag.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    inside.is_some_and(|inside| inside.bytes().all(|byte| byte == 0x21 || (0x23..=0x7e).contains(&byte)))
}

/// A partly received file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartialDownload {
    /// Bytes received, counted from the start of the file.
    #[serde(skip)]
    pub have: u64,
    /// Length of the whole file in bytes.
    pub complete: u64,
    /// Validator of the file that the bytes belong to.
    pub validator: Validator,
}

/// Why an answer to a range request cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    /// It is of another version of the file.
    #[error("the file changed on the server")]
    Changed,
    /// It has no usable `Content-Range`, another range than requested, or a length that does not match the range.
    #[error("the server's answer is not the range that was asked for")]
    Wrong,
    /// It is `multipart/byteranges` for a single range, which RFC 9110 section 15.3.7.2 forbids, or has other parts
    /// than requested.
    #[error("the server's answer has other parts than those that were asked for")]
    Multipart,
    /// It has a content coding, so its bytes are not those of the file.
    #[error("the server's answer has a content coding that was not asked for")]
    Coded,
    /// It answers a repeated request but does not name the version of the file.
    #[error("the server does not say whether the file is still the one that was begun")]
    Unproven,
    /// It is the whole file, with too many bytes before the requested range.
    #[error("the server ignores ranges")]
    Ignored,
    /// It has another status.
    #[error("the server answers a range request with status {0}")]
    Status(u16),
}

/// Whole answers are used if the requested range starts no later than this, in bytes.
const SKIP_MAX: u64 = 1024 * 1024;

/// Which bytes of a file of `complete` bytes are in the answer to a request for `asked`.
///
/// # Errors
/// Why the answer cannot be used.
pub fn check(
    status: u16,
    headers: &HeaderMap,
    asked: Range,
    complete: u64,
    validator: &Validator,
) -> Result<Range, RangeError> {
    if headers
        .get(CONTENT_ENCODING)
        .is_some_and(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity"))
    {
        return Err(RangeError::Coded);
    }
    let length = headers.get(CONTENT_LENGTH).and_then(|value| number(value.as_bytes()));
    match status {
        206 => {
            let (range, whole) = partial(headers)?;
            if whole != complete || !validator.fits(headers, true) {
                return Err(RangeError::Changed);
            }
            let fits = range.start == asked.start && range.end <= asked.end && length == Some(range.bytes());
            if fits { Ok(range) } else { Err(RangeError::Wrong) }
        }
        200 if length != Some(complete) || !validator.fits(headers, false) => Err(RangeError::Changed),
        200 if asked.start > SKIP_MAX => Err(RangeError::Ignored),
        200 => Range::new(0, complete).ok_or(RangeError::Wrong),
        412 | 416 => Err(RangeError::Changed),
        other => Err(RangeError::Status(other)),
    }
}

/// Whether the answer to a request for several ranges of a file of `complete` bytes contains them, as parts with a
/// boundary. `None` if the server does not support several ranges.
///
/// # Errors
/// Why the answer cannot be used; a request for a single range would fail in the same way.
pub fn check_several(
    status: u16,
    headers: &HeaderMap,
    complete: u64,
    validator: &Validator,
) -> Result<Option<Vec<u8>>, RangeError> {
    if status != 206 {
        let all = Range { start: 0, end: complete };
        return check(status, headers, all, complete, validator).map(|_| None);
    }
    if !validator.fits(headers, true) {
        return Err(RangeError::Changed);
    }
    let is_coded = headers.contains_key(CONTENT_ENCODING) || headers.contains_key(CONTENT_RANGE);
    let mut kinds = headers.get_all(CONTENT_TYPE).iter();
    let kind = kinds.next().filter(|_| !is_coded && kinds.next().is_none());
    Ok(kind.and_then(|kind| boundary(kind.as_bytes())))
}

/// The range of a partial answer, and the length of the whole file.
///
/// # Errors
/// If the headers do not give both.
pub fn partial(headers: &HeaderMap) -> Result<(Range, u64), RangeError> {
    let kind = headers.get(CONTENT_TYPE).map(|value| value.as_bytes().to_ascii_lowercase());
    if kind.is_some_and(|kind| kind.starts_with(b"multipart/byteranges")) {
        return Err(RangeError::Multipart);
    }
    let mut values = headers.get_all(CONTENT_RANGE).iter();
    let value = values.next().filter(|_| values.next().is_none()).ok_or(RangeError::Wrong)?;
    content_range(value.as_bytes()).ok_or(RangeError::Wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let pairs = lines.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()));
        let mut headers = HeaderMap::new();
        pairs.for_each(|(name, value)| {
            headers.append(name, value);
        });
        headers
    }

    fn range(start: u64, end: u64) -> Range {
        Range::new(start, end).unwrap()
    }

    #[test]
    fn strong_validators_are_taken_and_weak_ones_are_not() {
        let modified = ("last-modified", "Mon, 01 Jan 2024 00:00:00 GMT");
        let later = ("date", "Mon, 01 Jan 2024 00:00:01 GMT");
        let same = ("date", "Mon, 01 Jan 2024 00:00:00 GMT");
        let cases: [(&[_], _); 8] = [
            (&[("etag", "\"a-1\"")], Some("\"a-1\"")),
            (&[("etag", "W/\"a-1\""), modified, later], None),
            (&[("etag", "a-1")], None),
            (&[("etag", "\"a\" \"b\"")], None),
            (&[("etag", "\"a\""), ("etag", "\"b\"")], None),
            (&[modified, later], Some(modified.1)),
            (&[modified, same], None),
            (&[modified], None),
        ];
        for (lines, expected) in cases {
            let found = Validator::from_headers(&headers(lines));
            assert_eq!(found.as_ref().map(Validator::as_str), expected, "{lines:?}");
        }
    }

    #[test]
    fn answers_are_held_against_what_was_asked() {
        use RangeError::{Changed, Coded, Ignored, Multipart, Status, Wrong};
        let tag = Validator::Tag("\"a\"".to_owned());
        let answer = |status, lines: &[_], asked| check(status, &headers(lines), asked, 10_000_000, &tag);
        let part = ("content-range", "bytes 10-19/10000000");
        let ten = ("content-length", "10");
        let a = ("etag", "\"a\"");
        let asked = range(10, 20);
        assert_eq!(answer(206, &[part, ten, a], asked), Ok(asked));
        assert_eq!(answer(206, &[part, ten], asked), Ok(asked));
        assert_eq!(answer(206, &[part, ten, a], range(10, 30)), Ok(asked), "less than asked for");
        assert_eq!(answer(206, &[part, ten, a], range(10, 15)), Err(Wrong), "more than asked for");
        assert_eq!(answer(206, &[part, ten, a], range(9, 20)), Err(Wrong));
        assert_eq!(answer(206, &[part, ("content-length", "11")], asked), Err(Wrong));
        assert_eq!(answer(206, &[part], asked), Err(Wrong), "no length");
        assert_eq!(answer(206, &[ten], asked), Err(Wrong));
        assert_eq!(answer(206, &[part, part, ten], asked), Err(Wrong));
        assert_eq!(answer(206, &[part, ten, ("etag", "\"b\"")], asked), Err(Changed));
        assert_eq!(answer(206, &[part, ten, ("etag", "W/\"a\"")], asked), Err(Changed));
        assert_eq!(answer(206, &[("content-range", "bytes 10-19/10000001"), ten], asked), Err(Changed));
        assert_eq!(answer(206, &[part, ten, ("content-encoding", "gzip")], asked), Err(Coded));
        let parts = ("content-type", "multipart/byteranges; boundary=x");
        assert_eq!(answer(206, &[parts, ten], asked), Err(Multipart));
        let whole = ("content-length", "10000000");
        assert_eq!(answer(200, &[whole, a], asked), Ok(range(0, 10_000_000)));
        assert_eq!(answer(200, &[whole], asked), Err(Changed), "nothing says that it is the same");
        assert_eq!(answer(200, &[ten, a], asked), Err(Changed));
        assert_eq!(answer(200, &[whole, a], range(2_000_000, 2_000_010)), Err(Ignored));
        assert_eq!(answer(416, &[], asked), Err(Changed));
        assert_eq!(answer(503, &[], asked), Err(Status(503)));
    }
}
