//! `multipart/byteranges` (RFC 9110 section 14.6) as one server writes it: the text around the parts.
//!
//! Between two answers of one server that text differs only in the digits of the ranges and in the boundary. One
//! complete answer therefore predicts the position of every part of another answer, and the text of each part's head.

use httparse::{EMPTY_HEADER, Header};
use tacit_between::fwp::repair::Range;

use crate::content_range::content_range;
use crate::head::HeadReader;

/// RFC 2046 section 5.1.1: a boundary has 1 to 70 characters.
const BOUNDARY_MAX: usize = 70;
/// Longest head of a part: nginx's is 121 bytes.
const PART_HEAD_MAX: usize = 1024;
/// Most header lines of a part.
const LINES_MAX: usize = 8;
/// Most bytes after the last delimiter: nginx and Apache write CRLF.
const EPILOGUE_MAX: usize = 64;

/// The answer is not valid `multipart/byteranges`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the server's answer is not the parts that were asked for")]
pub struct NotParts;

/// The text around the parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// The first delimiter, too, begins with CRLF, as nginx and Apache write it.
    leads: bool,
    boundary_len: usize,
    /// Text of a part's head between the line of the boundary and the first digit of the range.
    before: Vec<u8>,
    /// Text of a part's head after the last digit of the range.
    after: Vec<u8>,
    /// Text after the last delimiter.
    epilogue: Vec<u8>,
}

/// The boundary in the value of a `Content-Type`, if that is `multipart/byteranges`.
pub fn boundary(content_type: &[u8]) -> Option<Vec<u8>> {
    let mut parameters = content_type.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
    if !parameters.next()?.eq_ignore_ascii_case(b"multipart/byteranges") {
        return None;
    }
    let mut found = None;
    for parameter in parameters {
        let equals = parameter.iter().position(|byte| *byte == b'=')?;
        let (name, value) = (&parameter[..equals], &parameter[equals + 1..]);
        if name.eq_ignore_ascii_case(b"boundary") && found.replace(value).is_some() {
            return None;
        }
    }
    let value = found?;
    let value = match value {
        [b'"', inside @ .., b'"'] => inside,
        plain => plain,
    };
    is_boundary(value).then(|| value.to_vec())
}

/// The characters of a boundary (RFC 2046 section 5.1.1), without spaces, which no server uses.
fn is_boundary(text: &[u8]) -> bool {
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"'()+_,-./:=?".contains(byte);
    (1..=BOUNDARY_MAX).contains(&text.len()) && text.iter().all(allowed)
}

/// Decimal digits of a number.
pub fn digits(number: u64) -> u64 {
    u64::from(number.checked_ilog10().unwrap_or(0)) + 1
}

fn first_and_last(range: Range) -> String {
    format!("{}-{}", range.start, range.end - 1)
}

fn take<'a>(text: &mut &'a [u8], bytes: usize) -> Option<&'a [u8]> {
    let (taken, rest) = text.split_at_checked(bytes)?;
    *text = rest;
    Some(taken)
}

fn skip(text: &mut &[u8], expected: &[u8]) -> Option<()> {
    *text = text.strip_prefix(expected)?;
    Some(())
}

impl Template {
    /// Learns the text around the parts from `body`, a complete answer without holes to a request for `asked`, at least
    /// two ranges of a file of `complete` bytes.
    ///
    /// # Errors
    /// If `body` does not consist of exactly these parts in this order.
    pub fn learn(body: &[u8], boundary: &[u8], asked: &[Range], complete: u64) -> Result<Self, NotParts> {
        Self::read(body, boundary, asked, complete).ok_or(NotParts)
    }

    fn read(mut body: &[u8], boundary: &[u8], asked: &[Range], complete: u64) -> Option<Self> {
        let leads = body.starts_with(b"\r\n");
        let mut around: Option<(Vec<u8>, Vec<u8>)> = None;
        for (index, range) in asked.iter().enumerate() {
            if leads || index > 0 {
                skip(&mut body, b"\r\n")?;
            }
            skip(&mut body, b"--")?;
            skip(&mut body, boundary)?;
            skip(&mut body, b"\r\n")?;
            let mut reader = HeadReader::default();
            let (len, true) = reader.push(&body[..body.len().min(PART_HEAD_MAX)]).ok()? else { return None };
            let head = take(&mut body, len)?;
            let (before, after) = part_head(head, *range, complete)?;
            // Apart from their ranges, all parts have the same head.
            let known = around.get_or_insert((before.to_vec(), after.to_vec()));
            if (known.0.as_slice(), known.1.as_slice()) != (before, after) {
                return None;
            }
            take(&mut body, usize::try_from(range.bytes()).ok()?)?;
        }
        skip(&mut body, b"\r\n--")?;
        skip(&mut body, boundary)?;
        skip(&mut body, b"--")?;
        let (before, after) = around.filter(|_| body.len() <= EPILOGUE_MAX)?;
        Some(Self { leads, boundary_len: boundary.len(), before, after, epilogue: body.to_vec() })
    }

    /// Bytes of the head of the part with `range`, including the delimiter.
    pub fn head_len(&self, is_first: bool, range: Range) -> u64 {
        let lead = if is_first && !self.leads { 0 } else { 2 };
        let text = lead + 2 + self.boundary_len + 2 + self.before.len() + self.after.len();
        text as u64 + digits(range.start) + 1 + digits(range.end - 1)
    }

    /// Bytes after the last part.
    pub fn end_len(&self) -> u64 {
        (4 + self.boundary_len + 2 + self.epilogue.len()) as u64
    }

    /// Bytes of a body with these parts.
    pub fn body_len(&self, parts: impl Iterator<Item = Range>) -> u64 {
        let parts = parts.enumerate().map(|(index, range)| self.head_len(index == 0, range) + range.bytes());
        parts.sum::<u64>() + self.end_len()
    }

    /// Bytes of a boundary.
    pub fn boundary_len(&self) -> usize {
        self.boundary_len
    }

    /// The boundary in `text`, if `text` is the head of the part with `range`. If `known` is given, the boundary must
    /// equal it.
    pub fn head<'a>(
        &self,
        mut text: &'a [u8],
        is_first: bool,
        range: Range,
        known: Option<&[u8]>,
    ) -> Result<&'a [u8], NotParts> {
        let mut read = || {
            if self.leads || !is_first {
                skip(&mut text, b"\r\n")?;
            }
            skip(&mut text, b"--")?;
            let boundary = self.boundary(&mut text, known)?;
            skip(&mut text, b"\r\n")?;
            skip(&mut text, &self.before)?;
            skip(&mut text, first_and_last(range).as_bytes())?;
            skip(&mut text, &self.after)?;
            text.is_empty().then_some(boundary)
        };
        read().ok_or(NotParts)
    }

    /// Checks that `text` is what follows the last part.
    ///
    /// # Errors
    /// If it is not.
    pub fn end(&self, mut text: &[u8], known: Option<&[u8]>) -> Result<(), NotParts> {
        let mut read = || {
            skip(&mut text, b"\r\n--")?;
            self.boundary(&mut text, known)?;
            skip(&mut text, b"--")?;
            (text == self.epilogue).then_some(())
        };
        read().ok_or(NotParts)
    }

    fn boundary<'a>(&self, text: &mut &'a [u8], known: Option<&[u8]>) -> Option<&'a [u8]> {
        let boundary = take(text, self.boundary_len)?;
        let is_right = known.map_or_else(|| is_boundary(boundary), |known| known == boundary);
        is_right.then_some(boundary)
    }
}

/// The text before and after the range in the head of a part.
fn part_head(head: &[u8], range: Range, complete: u64) -> Option<(&[u8], &[u8])> {
    let mut lines = [EMPTY_HEADER; LINES_MAX];
    let httparse::Status::Complete((len, lines)) = httparse::parse_headers(head, &mut lines).ok()? else {
        return None;
    };
    if len != head.len() {
        return None;
    }
    let named = |name: &'static str| {
        lines.iter().filter(move |line: &&Header<'_>| line.name.eq_ignore_ascii_case(name))
    };
    let mut ranges = named("content-range");
    let value = ranges.next().filter(|_| ranges.next().is_none())?.value;
    if content_range(value)? != (range, complete) {
        return None;
    }
    // A part that is itself multipart, or that is encoded and so has other bytes than the file.
    let is_nested = |line: &Header<'_>| line.value.to_ascii_lowercase().starts_with(b"multipart/");
    let mut codings = named("content-encoding").chain(named("content-transfer-encoding"));
    if named("content-type").any(is_nested) || codings.next().is_some() {
        return None;
    }
    let place = value.as_ptr() as usize - head.as_ptr() as usize;
    let digits = first_and_last(range);
    let inside = value.windows(digits.len()).position(|window| window == digits.as_bytes())?;
    let start = place + inside;
    Some((&head[..start], &head[start + digits.len()..]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn range(start: u64, end: u64) -> Range {
        Range::new(start, end).unwrap()
    }

    const ASKED: [Range; 2] = [Range { start: 0, end: 1 }, Range { start: 99, end: 100 }];

    fn part(delimiter: &str, range: &str, body: &str) -> String {
        format!("{delimiter}\r\nContent-Type: text/plain\r\nContent-Range: bytes {range}/100\r\n\r\n{body}")
    }

    fn nginx() -> String {
        [&part("\r\n--007", "0-0", "a"), &part("\r\n--007", "99-99", "b"), "\r\n--007--\r\n"].concat()
    }

    fn learn(body: &str) -> Result<Template, NotParts> {
        Template::learn(body.as_bytes(), b"007", &ASKED, 100)
    }

    #[test]
    fn an_answer_teaches_where_parts_of_others_stand() {
        let template = learn(&nginx()).unwrap();
        assert_eq!(template.body_len(ASKED.into_iter()), nginx().len() as u64);
        let head = part("\r\n--123", "5-19", "");
        let asked = range(5, 20);
        assert_eq!(template.head_len(true, asked), head.len() as u64);
        assert_eq!(template.head(head.as_bytes(), true, asked, None), Ok(&b"123"[..]));
        assert_eq!(template.head(head.as_bytes(), false, asked, Some(b"123")), Ok(&b"123"[..]));
        assert_eq!(template.head(head.as_bytes(), false, asked, Some(b"124")), Err(NotParts));
        assert_eq!(template.head(head.as_bytes(), false, range(5, 21), None), Err(NotParts));
        assert_eq!(template.end(b"\r\n--123--\r\n", Some(b"123")), Ok(()));
        assert_eq!(template.end(b"\r\n--123--\r\n", Some(b"321")), Err(NotParts));
        assert_eq!(template.end(b"\r\n--123\r\n\r\n", None), Err(NotParts));
    }

    /// As Go's server writes it: no empty line before the first delimiter, `Content-Range` first.
    #[test]
    fn the_first_delimiter_may_begin_the_body() {
        let body = "--007\r\nContent-Range: bytes 0-0/100\r\nContent-Type: a/b\r\n\r\na\r\n--007\r\nContent-Range: bytes \
                    99-99/100\r\nContent-Type: a/b\r\n\r\nb\r\n--007--";
        let template = learn(body).unwrap();
        assert_eq!(template.body_len(ASKED.into_iter()), body.len() as u64);
        let head = b"--12x\r\nContent-Range: bytes 7-8/100\r\nContent-Type: a/b\r\n\r\n";
        assert!(template.head(head, true, range(7, 9), None).is_ok());
        assert!(template.head(head, false, range(7, 9), None).is_err());
    }

    #[test]
    fn other_parts_than_those_requested_are_ignored() {
        let [a, b, end] =
            [part("\r\n--007", "0-0", "a"), part("\r\n--007", "99-99", "b"), "\r\n--007--\r\n".to_owned()];
        let nested = a.replace("text/plain", "multipart/byteranges; boundary=x");
        let cases = [
            [&b, &a, &end].map(String::as_str).concat(),
            [&a, &end].map(String::as_str).concat(),
            [&a, &b].map(String::as_str).concat(),
            [&a, &b, &b, &end].map(String::as_str).concat(),
            nginx().replace("007", "008"),
            nginx().replace("--007--", "--007"),
            nginx().replace("99-99", "98-98"),
            nginx().replace("/100", "/101"),
            nginx().replace("/100", "/*"),
            nginx().replacen("\r\nContent-R", "\nContent-R", 1),
            nginx().replacen("text/plain", "text/html", 1),
            nginx().replacen("\r\n\r\n", "\r\nContent-Range: bytes 0-0/100\r\n\r\n", 1),
            nginx().replace("Content-Type", "Content-Encoding"),
            nginx().replace("Content-Range", "X-Range"),
            nginx().replacen("\r\n\r\na", "\r\n\r\naa", 1),
            [&nested, &b.replace("text/plain", "multipart/byteranges; boundary=x"), &end]
                .map(String::as_str)
                .concat(),
            nginx() + &"x".repeat(EPILOGUE_MAX),
            String::new(),
        ];
        for case in cases {
            assert_eq!(learn(&case), Err(NotParts), "{case:?}");
        }
    }

    #[test]
    fn boundaries_are_found_or_refused() {
        let parsed = |text: &str| boundary(text.as_bytes()).map(|found| String::from_utf8(found).unwrap());
        assert_eq!(
            parsed("multipart/byteranges; boundary=00000000000000000007").as_deref(),
            Some("00000000000000000007")
        );
        assert_eq!(parsed("Multipart/Byteranges;charset=x; BOUNDARY=\"a:b\"").as_deref(), Some("a:b"));
        for bad in [
            "multipart/byteranges",
            "multipart/byteranges; boundary=",
            "multipart/byteranges; boundary=\"\"",
            "multipart/byteranges; boundary=a; boundary=b",
            "multipart/byteranges; boundary=a b",
            "multipart/byteranges; boundary=\"a",
            "multipart/mixed; boundary=a",
            "text/plain; boundary=a",
        ] {
            assert_eq!(parsed(bad), None, "{bad}");
        }
        assert_eq!(parsed(&format!("multipart/byteranges; boundary={}", "a".repeat(71))), None);
    }

    #[test]
    fn digits_are_counted() {
        assert_eq!([0, 9, 10, 99, 100, u64::MAX].map(digits), [1, 1, 2, 2, 3, 20]);
    }

    proptest! {
        #[test]
        fn nothing_panics(body in prop::collection::vec(any::<u8>(), 0..200), cut in 0..250_usize) {
            let _ = boundary(&body);
            let _ = Template::learn(&body, b"007", &ASKED, 100);
            let whole = nginx();
            let _ = learn(&whole[..cut.min(whole.len())]);
            let template = learn(&whole).unwrap();
            let _ = template.head(&body, true, ASKED[0], None);
            let _ = template.end(&body, None);
        }

        #[test]
        fn lengths_are_those_that_are_written(parts in prop::collection::vec((0..1_000_000_u64, 1..2000_u64), 2..70)) {
            let template = learn(&nginx()).unwrap();
            let ranges: Vec<_> = parts.iter().map(|(start, len)| range(*start, start + len)).collect();
            let mut written = 0;
            for asked in &ranges {
                let head = part("\r\n--xyz", &first_and_last(*asked), "");
                prop_assert!(template.head(head.as_bytes(), false, *asked, Some(b"xyz")).is_ok());
                written += head.len() as u64 + asked.bytes();
            }
            written += b"\r\n--xyz--\r\n".len() as u64;
            prop_assert_eq!(template.body_len(ranges.into_iter()), written);
        }
    }
}
