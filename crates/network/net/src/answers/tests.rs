use proptest::prelude::*;

use super::*;

/// Bytes of the file.
const LEN: u64 = 100_000;

fn byte(place: u64) -> u8 {
    (place.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8
}

fn range(start: u64, end: u64) -> Range {
    Range::new(start, end).unwrap()
}

fn subject() -> Subject {
    Subject { validator: Validator::Tag("\"v1\"".to_owned()), complete: LEN }
}

fn body_of(range: Range) -> Vec<u8> {
    (range.start..range.end).map(byte).collect()
}

fn answer(boundary: &str, ranges: &[Range]) -> Vec<u8> {
    answer_of("\"v1\"", boundary, ranges)
}

fn answer_of(tag: &str, boundary: &str, ranges: &[Range]) -> Vec<u8> {
    let (mut kind, mut body) = (String::new(), Vec::new());
    match ranges {
        [one] => {
            kind.push_str(&format!("Content-Range: bytes {}-{}/{LEN}\r\n", one.start, one.end - 1));
            body = body_of(*one);
        }
        several => {
            kind.push_str(&format!("Content-Type: multipart/byteranges; boundary={boundary}\r\n"));
            for part in several {
                let head = format!(
                    "\r\n--{boundary}\r\nContent-Range: bytes {}-{}/{LEN}\r\n\r\n",
                    part.start,
                    part.end - 1
                );
                body.extend_from_slice(head.as_bytes());
                body.extend_from_slice(&body_of(*part));
            }
            body.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
        }
    }
    let head = format!(
        "HTTP/1.1 206 Partial Content\r\nETag: {tag}\r\n{kind}Content-Length: {}\r\n\r\n",
        body.len()
    );
    [head.into_bytes(), body].concat()
}

/// A shape that was learned from the answer to a probe.
fn taught() -> Shape {
    let (mut answers, mut shape) = (Answers::new(subject()), Shape::new(None));
    let question = Request::question(0, LEN);
    let ranges: Vec<_> = question.parts().collect();
    answers.expect(question);
    let mut heard = Vec::new();
    answers.take(&answer("b1", &ranges), &[], &mut shape, &mut heard).unwrap();
    assert_eq!(heard, [AnswerEvent::Proven(0)]);
    assert!(shape.splits && shape.keeps && shape.is_known());
    shape.single = Some(0);
    let single = answer("", &[range(0, 9)]);
    let head = single.windows(4).position(|window| window == b"\r\n\r\n").unwrap() as u64 + 4;
    shape.single = Some(head - single_digits(range(0, 9)));
    shape
}

fn holes(ranges: &[(u64, u64)]) -> Vec<(RequestId, Range)> {
    (0..).map(RequestId).zip(ranges.iter().map(|(start, end)| range(*start, *end))).collect()
}

/// Parses `bytes` in pieces, with placeholders at `hit`. Asserts that all reported bytes are right and belong to the
/// request that asked for them.
fn read(
    asked: &[(RequestId, Range)],
    bytes: &[u8],
    hit: &[Range],
    piece: usize,
    shape: &mut Shape,
) -> (Vec<Range>, Result<(), Unusable>) {
    let mut answers = Answers::new(subject());
    answers.expect(Request::new(1, asked, shape));
    let mut bytes = bytes.to_vec();
    for hole in hit {
        bytes[hole.start as usize..hole.end as usize].fill(b'\n');
    }
    let mut got = Vec::new();
    for piece in bytes.chunks(piece) {
        let mut heard = Vec::new();
        let result = answers.take(piece, hit, shape, &mut heard);
        for heard in heard {
            if let AnswerEvent::Bytes { id, position, from, len, .. } = heard {
                let found = range(position, position + len as u64);
                assert_eq!(piece[from..from + len], body_of(found), "{found:?}");
                let (_, wanted) = asked.iter().find(|(other, _)| *other == id).unwrap();
                assert_eq!(found.common(*wanted), Some(found));
                got.push(found);
            }
        }
        if result.is_err() {
            return (got, result);
        }
    }
    (got, Ok(()))
}

fn bytes_of(got: &[Range]) -> u64 {
    got.iter().map(|range| range.bytes()).sum()
}

fn parts(asked: &[(RequestId, Range)], shape: &Shape) -> Vec<Range> {
    Request::new(1, asked, shape).parts().collect()
}

#[test]
fn complete_bodies_are_forwarded_whole() {
    let mut shape = taught();
    let asked = holes(&[(10, 1500), (5000, 60_000), (99_999, 100_000)]);
    let bytes = answer("b2", &parts(&asked, &shape));
    let (got, result) = read(&asked, &bytes, &[], 7, &mut shape);
    assert!(result.is_ok());
    assert_eq!(bytes_of(&got), 1490 + 55_000 + 1);
}

#[test]
fn a_hit_head_costs_what_stands_before_the_next() {
    let mut shape = taught();
    let asked = holes(&[(10, 1500), (5000, 6000), (7000, 8000)]);
    let bytes = answer("b2", &parts(&asked, &shape));
    let (got, result) = read(&asked, &bytes, &[range(20, 40)], 999, &mut shape);
    assert!(result.is_ok());
    assert_eq!(bytes_of(&got), 3490, "the first part's head says that the answer is right");
    let (got, result) = read(&asked, &bytes, &[range(20, 300)], 999, &mut shape);
    assert!(result.is_ok());
    assert_eq!(got.first().map(|range| range.start), Some(5000));
    assert_eq!(bytes_of(&got), 2000);
}

/// The head of a part does not name the version of the file.
#[test]
fn only_an_answers_own_head_proves_its_parts() {
    let mut shape = taught();
    let asked = holes(&[(10, 1500), (5000, 6000), (7000, 8000)]);
    let right = answer("b2", &parts(&asked, &shape));
    let without = answer_of("\"v1\"", "b2", &parts(&asked, &shape));
    let tag = b"ETag: \"v1\"\r\n";
    let place = without.windows(tag.len()).position(|window| window == tag).unwrap();
    let without = [&without[..place], &without[place + tag.len()..]].concat();
    for (bytes, hit, proven) in
        [(&right, None, true), (&right, Some(range(20, 40)), false), (&without, None, false)]
    {
        let mut answers = Answers::new(subject());
        answers.expect(Request::new(7, &asked, &shape));
        let mut heard = Vec::new();
        answers.take(bytes, hit.as_slice(), &mut shape, &mut heard).unwrap();
        assert_eq!(heard.contains(&AnswerEvent::Proven(7)), proven);
        let flags: Vec<_> = heard
            .iter()
            .filter_map(|heard| match heard {
                AnswerEvent::Bytes { is_proven, .. } => Some(*is_proven),
                _ => None,
            })
            .collect();
        assert!(flags.len() >= 3 && flags.iter().all(|flag| *flag == proven), "{flags:?}");
    }
}

#[test]
fn one_hole_alone_is_asked_for_in_two_parts_where_the_server_keeps_those_apart() {
    let mut shape = taught();
    let asked = holes(&[(1000, 2448)]);
    assert_eq!(parts(&asked, &shape), [range(1000, 1724), range(1724, 2448)]);
    let long = parts(&holes(&[(0, 100_000)]), &shape);
    assert!(long.iter().all(|part| part.bytes() <= PART_MAX) && long.len() == 7);
    shape.splits = false;
    assert_eq!(parts(&asked, &shape), [range(1000, 2448)]);
}

#[test]
fn a_server_that_joins_ranges_that_touch_is_asked_for_others() {
    let (mut answers, mut shape) = (Answers::new(subject()), Shape::new(None));
    answers.expect(Request::question(0, LEN));
    let bytes = answer("b1", &[range(0, 2), range(LEN - 1, LEN)]);
    answers.take(&bytes, &[], &mut shape, &mut Vec::new()).unwrap();
    assert!(matches!(shape.several, Several::Like(..)) && !shape.splits);
}

/// No bytes are taken from an answer that does not match its request exactly.
#[test]
fn answers_that_lie_end_the_connection() {
    let shape = taught();
    let asked = holes(&[(10, 1500), (5000, 6000), (7000, 8000)]);
    let right = parts(&asked, &shape);
    let text = |bytes: &[u8], from: &str, to: &str| {
        let at = bytes.windows(from.len()).position(|window| window == from.as_bytes()).unwrap();
        [&bytes[..at], to.as_bytes(), &bytes[at + from.len()..]].concat()
    };
    let good = answer("b2", &right);
    let swapped = [right[1], right[0], right[2]];
    let lies = [
        answer("b2", &swapped),
        answer("b2", &right[..2]),
        answer("boundary", &right),
        answer("b2", &[range(10, 8000)]),
        answer_of("\"v2\"", "b2", &right),
        text(&good, "206 Partial Content", "200 OK"),
        text(&good, "206 Partial Content", "416 No"),
        text(&good, "boundary=b2", "boundary=b3"),
        text(&good, "Content-Type", "Content-Encoding: gzip\r\nContent-Type"),
        text(&good, "byteranges;", "mixed;"),
        text(&good, "bytes 5000-5999", "bytes 5000-5998"),
        text(&good, "/100000\r\n\r\n", "/100001\r\n\r\n"),
        text(&good, "\r\n--b2\r\n", "\r\n--b2--\r"),
        b"HTTP/1.1 206 Partial Content\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec(),
        b"220 hello\r\n\r\n".to_vec(),
    ];
    for lie in &lies {
        let (_, result) = read(&asked, lie, &[], 500, &mut shape.clone());
        assert!(result.is_err(), "{}", String::from_utf8_lossy(&lie[..200.min(lie.len())]));
    }
    // A wrong part is detected even if the answer's own head is lost.
    let about_parts = [
        answer("b2", &swapped),
        answer("b2", &[range(10, 8000)]),
        text(&good, "bytes 5000-5999", "bytes 5000-5998"),
    ];
    for lie in about_parts {
        let (_, result) = read(&asked, &lie, &[range(20, 40)], 500, &mut shape.clone());
        assert!(matches!(result, Err(Unusable::Refuses(_))), "{result:?}");
    }
}

#[test]
fn the_end_of_parts_is_checked_and_nothing_may_follow() {
    let mut shape = taught();
    let asked = holes(&[(10, 1500), (5000, 6000)]);
    let good = answer("b2", &parts(&asked, &shape));
    let (got, result) = read(&asked, &[&good[..], b"x"].concat(), &[], 1000, &mut shape);
    assert!(result.is_err() && bytes_of(&got) == 2490);
    let mut bad = good;
    let end = bad.len() - 3;
    bad[end] = b'x';
    assert!(read(&asked, &bad, &[], 1000, &mut shape).1.is_err());
}

#[test]
fn placeholders_in_heads_that_nobody_can_place_are_refused() {
    let mut shape = Shape::new(None);
    let asked = holes(&[(10, 1500)]);
    let bytes = answer("", &parts(&asked, &shape));
    let (got, result) = read(&asked, &bytes, &[range(5, 30)], 100, &mut shape);
    assert!(matches!(result, Err(Unusable::Net(NetError::Misplaced))) && got.is_empty());
}

proptest! {
    /// No matter what bytes are hit, all bytes handed on are right (`read` checks them), and so are all bytes handed on that
    /// are neither hit nor before the first complete head.
    #[test]
    fn answers_with_any_holes_bring_only_what_is_true(
        starts in prop::collection::btree_set(0..90_u64, 1..20),
        hit in prop::collection::vec((0..60_000_usize, 1..4000_usize), 0..20),
        piece in 1..5000_usize,
    ) {
        let mut shape = taught();
        let asked: Vec<_> = starts.iter().map(|start| (start * 1000, start * 1000 + 900)).collect();
        let asked = holes(&asked);
        let bytes = answer("b7", &parts(&asked, &shape));
        let mut flags = vec![false; bytes.len()];
        for (start, len) in hit {
            let end = (start + len).min(bytes.len());
            flags[start.min(end)..end].fill(true);
        }
        let mut lost = Vec::new();
        let mut at = 0;
        while at < flags.len() {
            let end = at + flags[at..].iter().take_while(|flag| **flag == flags[at]).count();
            if flags[at] {
                lost.push(range(at as u64, end as u64));
            }
            at = end;
        }
        let (got, result) = read(&asked, &bytes, &lost, piece, &mut shape);
        prop_assert!(result.is_ok(), "{result:?}");
        if lost.is_empty() {
            prop_assert_eq!(bytes_of(&got), asked.iter().map(|(_, range)| range.bytes()).sum::<u64>());
        }
    }

    /// Arbitrary bytes from a peer cause no panic, and no misplaced bytes are accepted.
    #[test]
    fn any_bytes_are_read_or_refused(
        bytes in prop::collection::vec(any::<u8>(), 0..2000),
        cut in 0..3000_usize,
        hole in (0..2000_u64, 1..500_u64),
    ) {
        let asked = holes(&[(10, 1500), (5000, 6000)]);
        let mut shape = taught();
        let good = answer("b2", &parts(&asked, &shape));
        let mixed = [&good[..cut.min(good.len())], &bytes].concat();
        let mut answers = Answers::new(subject());
        answers.expect(Request::new(1, &asked, &shape));
        let _ = answers.take(&mixed, &[range(hole.0, hole.0 + hole.1)], &mut shape, &mut Vec::new());
        prop_assert!(answers.at() <= mixed.len() as u64);
    }
}
