//! Heads of HTTP/1 messages, parsed strictly: input that two parsers could understand differently is refused.
//!
//! hyper parses every message again after this module. It is lenient where RFC 9112 allows it: a line may end in a bare
//! LF, and `Content-Length` is ignored beside `Transfer-Encoding`. A proxy must not be lenient (RFC 9112 section 11.2).
//! Also, finding a body in its byte stream requires the end of the head, which hyper does not report.

use httparse::{EMPTY_HEADER, Header};
use hyper::header::{CONNECTION, HeaderMap, HeaderName, HeaderValue};

/// Longest head in bytes: twice nginx's default limit.
pub const MAX_HEAD_LEN: usize = 64 * 1024;
/// Most header lines: hyper's own limit.
const MAX_HEADERS: usize = 100;

/// Why a head is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeadError {
    /// Longer than [`MAX_HEAD_LEN`].
    #[error("a head of more than {MAX_HEAD_LEN} bytes")]
    Long,
    /// A line that ends in LF alone.
    #[error("a bare LF in a head")]
    BareLf,
    /// CR without LF.
    #[error("a bare CR in a head")]
    BareCr,
    /// NUL.
    #[error("a NUL in a head")]
    Nul,
    /// A header line continues on the next one (obsolete folding).
    #[error("a folded header line")]
    Fold,
    /// Not an HTTP/1 head.
    #[error("no head of HTTP/1: {0}")]
    Syntax(httparse::Error),
    /// More than one `Content-Length`, or one that is not a number.
    #[error("a Content-Length that is not one number")]
    Length,
    /// `Transfer-Encoding` beside `Content-Length`, in HTTP/1.0, or other than `chunked`.
    #[error("a Transfer-Encoding that is not chunked alone")]
    TransferEncoding,
    /// A request for a tunnel has a body.
    #[error("a body behind CONNECT")]
    ConnectContent,
    /// More than one `Host`, or no `Host` in HTTP/1.1.
    #[error("not one Host")]
    Host,
}

/// What determines the end of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Its length in bytes.
    Length(u64),
    /// Its last chunk.
    Chunked,
    /// The end of the connection.
    Close,
}

/// Fields of a response's head that are used below hyper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseHead {
    /// Its status.
    pub status: u16,
    /// What ends its body.
    pub framing: Framing,
}

/// Collects a head byte by byte.
#[derive(Clone, Debug, Default)]
pub struct HeadReader {
    bytes: Vec<u8>,
    line_len: usize,
    after_cr: bool,
}

impl HeadReader {
    /// Consumes bytes up to the end of the head. Returns the number of bytes consumed and whether the head is complete.
    ///
    /// # Errors
    /// If the bytes cannot be part of a head.
    pub fn push(&mut self, input: &[u8]) -> Result<(usize, bool), HeadError> {
        for (at, &byte) in input.iter().enumerate() {
            if self.bytes.len() == MAX_HEAD_LEN {
                return Err(HeadError::Long);
            }
            self.bytes.push(byte);
            match (byte, self.after_cr) {
                (b'\n', true) if self.line_len == 0 => return Ok((at + 1, true)),
                (b'\n', true) => (self.after_cr, self.line_len) = (false, 0),
                (b'\n', false) => return Err(HeadError::BareLf),
                (_, true) => return Err(HeadError::BareCr),
                (b'\r', false) => self.after_cr = true,
                (0, false) => return Err(HeadError::Nul),
                (b' ' | b'\t', false) if self.line_len == 0 => return Err(HeadError::Fold),
                _ => self.line_len += 1,
            }
        }
        Ok((input.len(), false))
    }

    /// Bytes collected so far.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// True before the first byte.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Resets it for the next head.
    pub fn clear(&mut self) {
        *self = Self { bytes: std::mem::take(&mut self.bytes), line_len: 0, after_cr: false };
        self.bytes.clear();
    }

    /// Parses the complete head as that of a response.
    ///
    /// # Errors
    /// A malformed or ambiguous head.
    pub fn response(&self, answers_head: bool) -> Result<ResponseHead, HeadError> {
        let mut headers = [EMPTY_HEADER; MAX_HEADERS];
        let mut response = httparse::Response::new(&mut headers);
        let complete = response.parse(&self.bytes).map_err(HeadError::Syntax)?.is_complete();
        let (Some(status), Some(version), true) = (response.code, response.version, complete) else {
            return Err(HeadError::Syntax(httparse::Error::Status));
        };
        let (length, chunked) = lengths(response.headers, version)?;
        let framing = match (status, length) {
            // RFC 9112 section 6.3: these have no body, even if their headers announce one.
            (100..=199 | 204 | 304, _) => Framing::Length(0),
            _ if answers_head => Framing::Length(0),
            _ if chunked => Framing::Chunked,
            (_, Some(length)) => Framing::Length(length),
            (_, None) => Framing::Close,
        };
        Ok(ResponseHead { status, framing })
    }

    /// The headers of a complete response head, and whether the connection stays open after the body (RFC 9112 section
    /// 9.3).
    ///
    /// # Errors
    /// A malformed head.
    pub fn headers(&self) -> Result<(HeaderMap, bool), HeadError> {
        let mut lines = [EMPTY_HEADER; MAX_HEADERS];
        let mut response = httparse::Response::new(&mut lines);
        response.parse(&self.bytes).map_err(HeadError::Syntax)?;
        let mut headers = HeaderMap::new();
        for line in response.headers.iter() {
            let name = HeaderName::from_bytes(line.name.as_bytes());
            let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(line.value)) else {
                return Err(HeadError::Syntax(httparse::Error::HeaderValue));
            };
            headers.append(name, value);
        }
        let mut options =
            headers.get_all(CONNECTION).iter().flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
        let closes = options.any(|option| option.trim_ascii().eq_ignore_ascii_case(b"close"));
        Ok((headers, response.version == Some(1) && !closes))
    }

    /// The framing of the body, with the complete head taken as that of a request.
    ///
    /// # Errors
    /// A malformed or ambiguous head.
    pub fn request(&self) -> Result<Framing, HeadError> {
        let mut headers = [EMPTY_HEADER; MAX_HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        let complete = request.parse(&self.bytes).map_err(HeadError::Syntax)?.is_complete();
        let (Some(version), true) = (request.version, complete) else {
            return Err(HeadError::Syntax(httparse::Error::Version));
        };
        let hosts = named(request.headers, "host").count();
        if hosts > 1 || hosts == 0 && version == 1 {
            return Err(HeadError::Host);
        }
        let (length, chunked) = lengths(request.headers, version)?;
        if request.method == Some("CONNECT") {
            // RFC 9110 section 9.3.6: such a request has no content, and all bytes after it belong to the tunnel.
            return if length.is_none() && !chunked {
                Ok(Framing::Close)
            } else {
                Err(HeadError::ConnectContent)
            };
        }
        Ok(if chunked { Framing::Chunked } else { Framing::Length(length.unwrap_or(0)) })
    }
}

fn named<'a>(headers: &'a [Header<'a>], name: &'a str) -> impl Iterator<Item = &'a [u8]> {
    headers.iter().filter(move |header| header.name.eq_ignore_ascii_case(name)).map(|header| header.value)
}

/// The value of `Content-Length`, if there is one, and whether the body is chunked.
fn lengths(headers: &[Header<'_>], version: u8) -> Result<(Option<u64>, bool), HeadError> {
    let mut length = None;
    for value in named(headers, "content-length") {
        if length.is_some() {
            return Err(HeadError::Length);
        }
        length = Some(number(value).ok_or(HeadError::Length)?);
    }
    let mut codings = named(headers, "transfer-encoding");
    let coding = codings.next();
    let Some(coding) = coding else { return Ok((length, false)) };
    let alone = length.is_none() && codings.next().is_none() && version == 1;
    if alone && coding.trim_ascii().eq_ignore_ascii_case(b"chunked") {
        Ok((None, true))
    } else {
        Err(HeadError::TransferEncoding)
    }
}

/// Parses a string of digits only, as RFC 9110 section 8.6 requires.
pub(crate) fn number(text: &[u8]) -> Option<u64> {
    let digits = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    // Digits are UTF-8.
    std::str::from_utf8(text).ok().filter(|_| digits)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(head: &str) -> Result<HeadReader, HeadError> {
        let mut reader = HeadReader::default();
        let mut left = head.as_bytes();
        // Heads arrive in arbitrary pieces.
        while !left.is_empty() {
            let (piece, rest) = left.split_at(left.len().min(3));
            let (taken, whole) = reader.push(piece)?;
            if whole {
                assert_eq!(reader.len(), head.len() - rest.len() - (piece.len() - taken));
                return Ok(reader);
            }
            left = rest;
        }
        panic!("{head:?} does not end");
    }

    fn response(head: &str) -> Result<ResponseHead, HeadError> {
        read(head).and_then(|reader| reader.response(false))
    }

    fn request(head: &str) -> Result<Framing, HeadError> {
        read(head).and_then(|reader| reader.request())
    }

    #[test]
    fn a_head_ends_where_its_empty_line_ends() {
        let head = "HTTP/1.1 206 Partial Content\r\nContent-Length: 5\r\n\r\nhello";
        assert_eq!(response(head), Ok(ResponseHead { status: 206, framing: Framing::Length(5) }));
        assert_eq!(
            response("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").unwrap().framing,
            Framing::Chunked
        );
        assert_eq!(response("HTTP/1.0 200 OK\r\n\r\n").unwrap().framing, Framing::Close);
        assert_eq!(
            response("HTTP/1.1 304 Not\r\nContent-Length: 5\r\n\r\n").unwrap().framing,
            Framing::Length(0)
        );
        assert_eq!(
            read("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n").unwrap().response(true).unwrap().framing,
            Framing::Length(0)
        );
    }

    #[test]
    fn ambiguous_heads_are_refused() {
        let cases = [
            ("Content-Length: 5\r\nContent-Length: 5\r\n", HeadError::Length),
            ("Content-Length: 5, 5\r\n", HeadError::Length),
            ("Content-Length: +5\r\n", HeadError::Length),
            ("Content-Length: \r\n", HeadError::Length),
            ("Content-Length: 99999999999999999999\r\n", HeadError::Length),
            ("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", HeadError::TransferEncoding),
            ("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", HeadError::TransferEncoding),
            ("Transfer-Encoding: gzip, chunked\r\n", HeadError::TransferEncoding),
            ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", HeadError::TransferEncoding),
            ("Transfer-Encoding: xchunked\r\n", HeadError::TransferEncoding),
            ("X: a\r\n b\r\n", HeadError::Fold),
            ("X: a\n", HeadError::BareLf),
            ("X: a\rb\r\n", HeadError::BareCr),
            ("X: a\0\r\n", HeadError::Nul),
        ];
        for (lines, error) in cases {
            assert_eq!(response(&format!("HTTP/1.1 200 OK\r\n{lines}\r\n")), Err(error), "{lines:?}");
            assert_eq!(
                request(&format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n")),
                Err(error),
                "{lines:?}"
            );
        }
        assert!(matches!(
            request("GET / HTTP/1.1\r\nHost: a\r\nContent-Length : 5\r\n\r\n"),
            Err(HeadError::Syntax(_))
        ));
        assert_eq!(request("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), Err(HeadError::Host));
        assert_eq!(request("GET / HTTP/1.1\r\n\r\n"), Err(HeadError::Host));
        let connect = "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n";
        assert_eq!(request(&format!("{connect}\r\n")), Ok(Framing::Close));
        for lines in ["Content-Length: 5\r\n", "Content-Length: 0\r\n", "Transfer-Encoding: chunked\r\n"] {
            assert_eq!(request(&format!("{connect}{lines}\r\n")), Err(HeadError::ConnectContent), "{lines}");
        }
        assert_eq!(
            request("POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"),
            Err(HeadError::TransferEncoding)
        );
    }

    #[test]
    fn endless_heads_are_cut() {
        let mut reader = HeadReader::default();
        let line = format!("X: {}\r\n", "a".repeat(1000));
        let refused = (0..100).find_map(|_| reader.push(line.as_bytes()).err());
        assert_eq!(refused, Some(HeadError::Long));
        let many = "X: a\r\n".repeat(MAX_HEADERS + 1);
        let refused = response(&format!("HTTP/1.1 200 OK\r\n{many}\r\n"));
        assert_eq!(refused, Err(HeadError::Syntax(httparse::Error::TooManyHeaders)));
    }
}
